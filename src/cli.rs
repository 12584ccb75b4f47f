//! The command line: its tree, its help, and which command runs.

mod pages;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::commands;
use crate::config::{Config, Flags};
use crate::error::{Error, Exit, Result};
use crate::report::{self, Format, Report, Style};

const AFTER_HELP: &str = "\
The playbook:
  onefold freeze --show S-204 --reason 'retries double the orders'
  onefold reconcile --show S-204
  onefold plan --show S-204
  onefold apply PLAN --yes --max-refund-total CNY:3480.00
  onefold converge --plan PLAN   where a provider is silent; then apply again
  onefold verify PLAN
  onefold thaw FREEZE

See it once on an invented incident, without a server or any set-up:
  onefold demo

Exit codes:
  0  done, or nothing to do
  1  failure
  2  usage, configuration or bad input
  3  steps are planned (with --detailed-exitcode)
  4  stale: a row moved, plan again
  5  violations found
  6  a person or the provider must decide first
  7  refused: freeze missing, lost or held by another, or a safety limit
  Where several fit: 7, then 4, 6, 5, 3.
  `once` ends with the code of its command, and with 75 while another is at the
  key.";

/// Joins, decides and unwinds the orders that retries made out of one purchase.
#[derive(Debug, Parser)]
#[command(name = "onefold", version, about, after_help = AFTER_HELP, max_term_width = 80)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global")]
struct Global {
    /// The database of everything, as a URL: sqlite:FILE, postgres://USER@HOST/DATABASE or
    /// mysql://USER@HOST/DATABASE [default: what onefold.toml says, else sqlite:onefold.db]
    #[arg(long, global = true, value_name = "URL", env = "ONEFOLD_DATABASE_URL", hide_env_values = true)]
    database: Option<String>,
    /// The configuration [default: onefold.toml where there is one]
    #[arg(long, global = true, value_name = "FILE", env = "ONEFOLD_CONFIG")]
    config: Option<PathBuf>,
    /// A folder of your own SQL files, which go before ours of the same name
    #[arg(long, global = true, value_name = "DIR", env = "ONEFOLD_QUERIES")]
    queries: Option<PathBuf>,
    /// A file of lines host:port:database:user:password, for URLs without password
    #[arg(long, global = true, value_name = "FILE", env = "ONEFOLD_PASSWORD_FILE")]
    password_file: Option<PathBuf>,
    /// Print one JSON object instead of text and tables; an error is one on stderr
    #[arg(long, global = true)]
    json: bool,
    /// What to write: table, json, or jsonl (an object a line while it goes on, the result last); `report`,
    /// `trace` and `locks audit` also write csv, xlsx and html, and with jsonl need --output
    #[arg(long, global = true, value_name = "FORMAT")]
    format: Option<Format>,
    /// No progress and no notes on stderr
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Print everything at once, also what is longer than the screen
    #[arg(long, global = true)]
    no_pager: bool,
    /// Say on stderr which database is used, and as whom
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    verbose: bool,
    /// Who you are, in freezes and in the journal [default: USER@HOST]
    #[arg(long, global = true, value_name = "NAME", env = "ONEFOLD_OWNER", hide_env_values = true)]
    owner: Option<String>,
}

impl Global {
    /// What stands on stdout.
    fn format(&self) -> Format {
        match self.format {
            Some(Format::Jsonl) => Format::Jsonl,
            Some(Format::Json) => Format::Json,
            _ if self.json => Format::Json,
            _ => Format::Table,
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(commands::demo::DemoArgs),
    Init(commands::init::InitArgs),
    Import(commands::import::ImportArgs),
    Freeze(commands::freeze::FreezeArgs),
    Frozen(commands::frozen::FrozenArgs),
    Status(commands::status::StatusArgs),
    Reconcile(commands::reconcile::ReconcileArgs),
    Plan(commands::plan::PlanArgs),
    Show(commands::show::ShowArgs),
    Report(commands::report::ReportArgs),
    Approve(commands::approve::ApproveArgs),
    Apply(commands::apply::ApplyArgs),
    Converge(commands::converge::ConvergeArgs),
    Verify(commands::verify::VerifyArgs),
    History(commands::history::HistoryArgs),
    Settle(commands::settle::SettleArgs),
    Requeue(commands::requeue::RequeueArgs),
    Once(commands::once::OnceArgs),
    Thaw(commands::thaw::ThawArgs),
    Trace(commands::trace::TraceArgs),
    Watch(commands::watch::WatchArgs),
    Run(commands::run::RunArgs),
    Guard(commands::guard::GuardArgs),
    Queries(commands::queries::QueriesArgs),
    Locks(commands::locks::LocksArgs),
    Token(commands::token::TokenArgs),
    Check(commands::check::CheckArgs),
    Config(commands::config::ConfigArgs),
    Provider(commands::provider::ProviderArgs),
    Completions(pages::CompletionsArgs),
    Man(pages::ManArgs),
}

/// Parses the command line, runs the command, prints its report and says how the process ends.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) if e.use_stderr() => {
            // What comes after -- is another command's.
            if std::env::args_os().take_while(|arg| arg != "--").any(|arg| arg == "--json") {
                report::print_error(&misused(&e), Format::Json);
            } else {
                let _ = e.print();
            }
            return ExitCode::from(Exit::Usage.code());
        }
        Err(help) => {
            let _ = help.print();
            return ExitCode::from(Exit::Done.code());
        }
    };
    let (format, paged) = (cli.global.format(), !cli.global.no_pager);
    let code = match run(cli) {
        Ok(report) => match report::print(&report, Style::detect(format).paged(paged)) {
            Ok(()) => report.code.unwrap_or(report.exit.code()),
            Err(e) => {
                eprintln!("error: cannot print the report: {e}");
                Exit::Failure.code()
            }
        },
        Err(error) => {
            report::print_error(&error, format);
            error.exit.code()
        }
    };
    ExitCode::from(code)
}

/// A command line that cannot be read, as the one error that JSON is asked for.
fn misused(error: &clap::Error) -> Error {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let (message, help) = text.split_once("\n\n").unwrap_or((text, ""));
    Error::usage(message.trim()).hint(help.trim())
}

fn run(cli: Cli) -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::failure(format!("cannot start: {e}")))?;
    let line = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let flags = flags(cli.global, line);
    // These need no configuration, not even one that can be read.
    let config = match &cli.command {
        Command::Demo(_) | Command::Completions(_) | Command::Man(_) => Config::without_file(flags),
        Command::Config(args) if args.is_without() => Config::without_file(flags),
        _ => Config::load(flags, |name| std::env::var(name).ok())?,
    };
    if config.verbose {
        report::print_note(&format!("note: {} as {}", config.label(), config.actor));
    }
    runtime.block_on(async {
        match cli.command {
            Command::Demo(args) => {
                commands::demo::run(args, async |line| run_line(&config, line).await).await
            }
            Command::Run(args) => {
                let typed = async |line: Vec<String>| {
                    let cli = parse(&line)?;
                    let config = Config { written: cli.global.format, line, ..config.clone() };
                    run_command(&config, cli.command).await
                };
                commands::run::run(&config, args, may_type, typed).await
            }
            command => run_command(&config, command).await,
        }
    })
}

/// A command line without the program's name, as a playbook and the demo type it.
fn parse(line: &[String]) -> Result<Cli> {
    Cli::try_parse_from(std::iter::once("onefold").chain(line.iter().map(String::as_str)))
        .map_err(|e| misused(&e))
}

/// Refuses a playbook's line that cannot be read, or that says what is said once for all of them.
fn may_type(line: &[String]) -> Result<()> {
    let words = std::iter::once("onefold").chain(line.iter().map(String::as_str));
    let matches = Cli::command().try_get_matches_from(words).map_err(|e| misused(&e))?;
    let is_said = |id: &clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
    let ids: Vec<_> = Global::augment_args(clap::Command::new("onefold"))
        .get_arguments()
        .map(|arg| arg.get_id().clone())
        .collect();
    // What `report` writes is said in its line; what stands on stdout is said once.
    let on_stdout = |id: &clap::Id| {
        let format = || matches.get_one::<Format>("format");
        id.as_str() != "format" || format().is_none_or(|f| f.is_json() || *f == Format::Table)
    };
    match ids.iter().find(|id| is_said(id) && on_stdout(id)) {
        None => Ok(()),
        Some(id) => Err(Error::usage(format!(
            "a line of a playbook does not say --{}",
            id.as_str().replace('_', "-")
        ))
        .hint("say it to `onefold run` itself: it holds for every step")),
    }
}

/// Runs one command line, given without the program's name, as the demo types it.
async fn run_line(surroundings: &Config, line: Vec<String>) -> Result<Report> {
    let cli = parse(&line)?;
    let database = cli.global.database.unwrap_or_default();
    let config = Config { line, ..surroundings.embedded(&database) };
    run_command(&config, cli.command).await
}

/// Runs a command; however it ends, its run has ended.
async fn run_command(config: &Config, command: Command) -> Result<Report> {
    let ran = carry_out(config, command).await;
    if let Err(e) = config.opened.end_run(&config.actor, commands::now()).await
        && !config.quiet
    {
        report::print_note(&format!(
            "note: the journal does not know that this run has ended: {e}; `onefold history verify --seal` ends it"
        ));
    }
    ran
}

async fn carry_out(config: &Config, command: Command) -> Result<Report> {
    if let Some(format @ (Format::Csv | Format::Xlsx | Format::Html)) = config.written
        && !matches!(command, Command::Report(_) | Command::Trace(_) | Command::Locks(_))
    {
        return Err(Error::usage(format!("only `report`, `trace` and `locks audit` write {format}"))
            .hint(format!("onefold report PLAN --format {format} --output FILE")));
    }
    match command {
        Command::Demo(_) | Command::Run(_) => Err(Error::usage("a playbook runs no playbook")),
        Command::Init(args) => commands::init::run(config, args).await,
        Command::Import(args) => commands::import::run(config, args).await,
        Command::Freeze(args) => commands::freeze::run(config, args).await,
        Command::Frozen(args) => commands::frozen::run(config, args).await,
        Command::Status(args) => commands::status::run(config, args).await,
        Command::Reconcile(args) => commands::reconcile::run(config, args).await,
        Command::Plan(args) => commands::plan::run(config, args).await,
        Command::Show(args) => commands::show::run(config, args).await,
        Command::Report(args) => commands::report::run(config, args).await,
        Command::Approve(args) => commands::approve::run(config, args).await,
        Command::Apply(args) => commands::apply::run(config, args).await,
        Command::Converge(args) => commands::converge::run(config, args).await,
        Command::Verify(args) => commands::verify::run(config, args).await,
        Command::History(args) => commands::history::run(config, args).await,
        Command::Settle(args) => commands::settle::run(config, args).await,
        Command::Requeue(args) => commands::requeue::run(config, args).await,
        Command::Once(args) => commands::once::run(config, args).await,
        Command::Trace(args) => commands::trace::run(config, args).await,
        Command::Watch(args) => commands::watch::run(config, args).await,
        Command::Thaw(args) => commands::thaw::run(config, args).await,
        Command::Guard(args) => commands::guard::run(config, args).await,
        Command::Queries(args) => commands::queries::run(config, args).await,
        Command::Locks(args) => commands::locks::run(config, args).await,
        Command::Token(args) => commands::token::run(config, args).await,
        Command::Check(args) => commands::check::run(config, args).await,
        Command::Provider(args) => commands::provider::run(config, args).await,
        Command::Config(args) => commands::config::run(config, args).await,
        Command::Completions(args) => Ok(pages::completions(&args)),
        Command::Man(args) => pages::man(&args),
    }
}

fn flags(global: Global, line: Vec<String>) -> Flags {
    let format = global.format();
    Flags {
        config: global.config,
        database: global.database,
        queries: global.queries,
        password_file: global.password_file,
        owner: global.owner,
        format,
        written: global.format,
        quiet: global.quiet,
        verbose: global.verbose,
        line,
    }
}
