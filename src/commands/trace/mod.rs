//! `onefold trace`: where duplicates came from; changes nothing.

mod log;
mod sheets;
mod tell;

use std::collections::HashSet;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::files::{FileFlags, load};
use super::flags::{PolicyFlags, ScopeFlags, ZoneFlag};
use super::leaving::{OutputFlags, format};
use super::now;
use super::progress::Progress;
use super::redaction::{Redacted, given_key, key};
use super::typing::again;
use crate::config::Config;
use crate::core::dossier::pseudonyms::{Pseudonyms, RedactKey};
use crate::core::ids::OrderId;
use crate::core::join::Joined;
use crate::core::ledger::Ledgers;
use crate::core::policy::Policy;
use crate::core::sheet::Sheets;
use crate::core::time::{Span, Timestamp};
use crate::core::trace::access::{AccessLine, Source, Sources};
use crate::core::trace::{Options, Purchases, Trace, Wanted};
use crate::error::{Error, Result};
use crate::files::{AccessMap, AccessOptions, LedgerFiles, read_access};
use crate::report::export::Kind;
use crate::report::{Format, Report, print_note};
use crate::store::Store;
use sheets::Traced;

/// The log that may lie beside the four ledgers.
const ACCESS_FILE: &str = "access.csv";

/// Say where duplicates came from, from the ledgers and an access log; changes nothing
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold trace --show S-204
  onefold trace --order O-20146 --access gateway.csv
  onefold trace --files exports/ --format xlsx --output trace.xlsx
  onefold trace --show S-204 --access gateway.jsonl --access-map ts=at \\
      --access-map upstream=source --source kong=gateway

For each purchase it rebuilds what came and what each arrival left: orders,
captures, tickets. It counts that by source, says what each guard would have
stopped, which hop drops or mints anew what identifies a request, what was
delivered twice, and which shape it all has over time.

An access log is a CSV with a header, or a JSON object a line: at, request_id and
source, and as far as they are known tenant_id, attempt, status, latency_ms,
trace_id, idempotency_key, user_id, show_id and order_id. at is when the request
came in, not when it was answered, and order_id is the order that the answer
names. access.csv in the folder of --files is taken by itself; a log in a table
is read by a SELECT of your own, ledgers/access.sql in the folder of --queries,
on the databases of the order ledger, with at_us in microseconds since 1970.
Without a log each order stands for one arrival; how a log does not fit is told
first.

--redact puts pseudonyms in the place of user, session and trace ids, under the
same key as those of `report --redact`; with --files, ONEFOLD_REDACT_KEY names
it.")]
pub struct TraceArgs {
    /// One purchase, by its id in a plan
    #[arg(long, value_name = "INTENT")]
    intent: Option<String>,
    /// The purchase of this order
    #[arg(long, value_name = "ORDER", conflicts_with_all = ["intent", "shows", "users", "sessions", "from", "to"])]
    order: Option<String>,
    /// Read four CSV files in this folder, without a database
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// An access log: CSV, or a JSON object a line
    #[arg(long, value_name = "FILE")]
    access: Option<PathBuf>,
    /// A column's name in the access log and ours, such as ts=at; may be repeated
    #[arg(long, value_name = "THEIRS=OURS", value_delimiter = ',')]
    access_map: Vec<AccessMap>,
    /// What a source is: kong=gateway; client, gateway, consumer or compensation; may be repeated
    /// [default: by its name, and else a client]
    #[arg(long, value_name = "NAME=KIND", value_delimiter = ',')]
    source: Vec<SourceMap>,
    /// How long the queue hides a message that it has delivered
    #[arg(long, value_name = "SPAN", default_value = "30s")]
    visibility: Span,
    /// The length of a piece of time [default: one that a line holds]
    #[arg(long, value_name = "SPAN")]
    bucket: Option<Span>,
    #[command(flatten)]
    output: OutputFlags,
    /// Put pseudonyms in the place of user, session and trace ids
    #[arg(long)]
    redact: bool,
    #[command(flatten)]
    zone: ZoneFlag,
    #[command(flatten)]
    scope: ScopeFlags,
    #[command(flatten)]
    policy: PolicyFlags,
    #[command(flatten)]
    file_flags: FileFlags,
}

/// `NAME=KIND`.
#[derive(Clone, Debug)]
struct SourceMap(String, Source);

impl FromStr for SourceMap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kinds =
            || format!("{text:?} is not NAME=KIND, where KIND is one of {}", Source::NAMES.join(", "));
        let (name, kind) = text.rsplit_once('=').ok_or_else(kinds)?;
        Ok(Self(name.trim().to_owned(), kind.trim().parse().map_err(|_| kinds())?))
    }
}

/// Where an access log is.
enum Log<'l> {
    None,
    File(PathBuf),
    Table(&'l Store),
}

pub async fn run(config: &Config, args: TraceArgs) -> Result<Report> {
    let format = format(config);
    let names: Vec<_> = sheets::HEADS.iter().map(|head| head.name()).collect();
    let kind = Kind::of_heads("trace", &sheets::HEADS, format, args.output.sheet(&names)?);
    args.output.check(config, format, "trace", "arrivals", &kind)?;
    let scope = args.scope.scope(args.zone)?;
    let policy = args.policy.policy();
    let order = args.order.as_deref().map(OrderId::from);
    let options = Options {
        sources: Sources(args.source.iter().map(|SourceMap(name, kind)| (name.clone(), *kind)).collect()),
        visibility: args.visibility,
        piece: args.bucket,
    };

    let given = args.redact.then(given_key).transpose()?.flatten();
    let store = match &args.files {
        Some(_) => None,
        None => Some(config.open_to_read().await?),
    };
    let key = match args.redact {
        true => Some(key(given, store.as_ref()).await?),
        false => None,
    };
    let ledgers = match (&store, &args.files) {
        (Some(store), _) => {
            let progress = Progress::new(config, "reading");
            let ledgers = match &order {
                Some(order) => store.read_around(order, &scope.tenants).await?,
                None => store.read_scope(&scope).await?,
            };
            progress.end();
            ledgers
        }
        (None, dir) => {
            let dir = dir.clone().unwrap_or_default();
            load(config, &LedgerFiles::in_dir(&dir)?, &args.file_flags.options(args.zone)?)?
        }
    };
    let beside = args.files.as_ref().map(|dir| dir.join(ACCESS_FILE)).filter(|path| path.is_file());
    let log = match (args.access.clone().or(beside), &store) {
        (Some(path), _) => Log::File(path),
        (None, Some(store)) if store.has_access_log() => Log::Table(store),
        (None, _) => Log::None,
    };
    if matches!(log, Log::None) && !args.access_map.is_empty() {
        return Err(Error::usage("--access-map is for the columns of an access log, and there is none")
            .hint("name it: --access FILE"));
    }
    let wanted = match (&args.intent, &order) {
        (Some(id), _) => Wanted::Intent(id, &scope),
        (None, Some(id)) => Wanted::Order(id, &scope),
        (None, None) => Wanted::Scope(&scope),
    };
    let traced = About { config, args: &args, options: &options, wanted, key };
    traced.trace(&ledgers, &policy, log, format).await
}

/// Ids of rows, which stand for nobody.
fn ids_of_rows(ledgers: &Ledgers) -> HashSet<&str> {
    let ids = ledgers.orders.iter().map(|o| o.order_id.as_str());
    let ids = ids.chain(ledgers.payments.iter().map(|p| p.payment_id.as_str()));
    let ids = ids.chain(ledgers.inventory.iter().map(|h| h.hold_id.as_str()));
    ids.chain(ledgers.messages.iter().map(|m| m.message_id.as_str())).collect()
}

/// What a trace is about.
struct About<'a> {
    config: &'a Config,
    args: &'a TraceArgs,
    options: &'a Options,
    wanted: Wanted<'a>,
    /// The key of pseudonyms, where they are wanted.
    key: Option<RedactKey>,
}

impl About<'_> {
    async fn trace(
        &self,
        ledgers: &Ledgers,
        policy: &Policy,
        log: Log<'_>,
        format: Format,
    ) -> Result<Report> {
        let progress = Progress::new(self.config, "joining");
        let joined = Joined::new(ledgers, policy, now());
        let mut purchases = Purchases::of(&joined, self.wanted);
        progress.end();
        if purchases.intents().is_empty() {
            self.must_be_there()?;
        }
        if !matches!(log, Log::None) {
            let progress = Progress::new(self.config, "reading the access log");
            let told = &progress;
            purchases
                .read_log(policy.gap, async |window, take| self.read_log(&log, window, take, told).await)
                .await?;
            progress.end();
        }
        let trace = Trace::new(&purchases, self.options).ok_or_else(|| {
            Error::usage(
                "--bucket is too short: it would make more than 100,000 pieces of the time that is traced",
            )
            .hint("leave it out, or name a longer span: --bucket 1m")
        })?;
        let traced = Traced { trace: &trace, title: self.title(), read_at: now() };
        let Some(key) = &self.key else { return self.leave(&traced, &traced, format, |report| report) };
        let pseudonyms = self.pseudonyms(key, ledgers, &purchases);
        let stays = ids_of_rows(ledgers);
        let redacted = Redacted::new(&traced, &pseudonyms, &stays);
        self.leave(&traced, &redacted, format, |report| redacted.told(report))
    }

    /// On the terminal, where `put` says how, or as sheets.
    fn leave(
        &self,
        traced: &Traced<'_>,
        sheets: &dyn Sheets,
        format: Format,
        put: impl FnOnce(Report) -> Report,
    ) -> Result<Report> {
        match format {
            Format::Table => Ok(put(tell::report(self.config, traced, self.wanted))),
            format => self.args.output.leave(self.config, sheets, format),
        }
    }

    /// Of everybody who stands in what was read, or is asked for.
    fn pseudonyms(&self, key: &RedactKey, ledgers: &Ledgers, purchases: &Purchases<'_>) -> Pseudonyms {
        let mut all = Pseudonyms::new(key.clone());
        let users = ledgers.orders.iter().map(|o| &o.user_id);
        let users = users.chain(ledgers.payments.iter().map(|p| &p.user_id));
        let users = users.chain(ledgers.inventory.iter().map(|h| &h.user_id));
        let users = users.chain(ledgers.messages.iter().filter_map(|m| m.user_id.as_ref()));
        let users = users.chain(purchases.lines().filter_map(|line| line.user_id.as_ref()));
        users.for_each(|id| all.know_user(id.as_str()));
        let sessions = ledgers.orders.iter().map(|o| &o.session_id);
        let sessions = sessions.chain(ledgers.payments.iter().map(|p| &p.session_id));
        let sessions = sessions.chain(ledgers.inventory.iter().map(|h| &h.session_id));
        let sessions = sessions.chain(ledgers.messages.iter().map(|m| &m.session_id));
        sessions.flatten().for_each(|id| all.know_session(id.as_str()));
        let traces = ledgers.orders.iter().map(|o| &o.trace_id);
        let traces = traces.chain(ledgers.messages.iter().map(|m| &m.trace_id));
        let traces = traces.chain(purchases.lines().map(|line| &line.trace_id));
        traces.flatten().for_each(|id| all.know_trace(id));
        let (Wanted::Scope(scope) | Wanted::Intent(_, scope) | Wanted::Order(_, scope)) = self.wanted;
        scope.users.iter().for_each(|id| all.know_user(id.as_str()));
        scope.sessions.iter().for_each(|id| all.know_session(id.as_str()));
        all
    }

    fn title(&self) -> String {
        match self.wanted {
            Wanted::Scope(scope) => scope.in_words(),
            Wanted::Intent(id, _) => format!("purchase {id}"),
            Wanted::Order(id, _) => format!("order {id}"),
        }
    }

    /// # Errors
    /// Usage, where one purchase is asked for, and is not there.
    fn must_be_there(&self) -> Result<()> {
        match self.wanted {
            Wanted::Scope(_) => Ok(()),
            Wanted::Intent(id, scope) => {
                Err(Error::usage(format!("there is no purchase {id} in {}", scope.in_words()))
                    .hint(format!("`{}` lists them, and so does a plan made with the same policies; they are named by their rows", self.all())))
            }
            Wanted::Order(id, scope) => Err(Error::usage(format!("there is no order {id} in {}", scope.in_words()))
                .hint(format!("ids are compared byte for byte; `{} --user USER` lists what somebody bought", self.all()))),
        }
    }

    /// The command line that traces every purchase of the scope.
    fn all(&self) -> String {
        again(self.config, &["--intent", "--order"], "")
    }

    async fn read_log(
        &self,
        log: &Log<'_>,
        window: Option<(Timestamp, Timestamp)>,
        take: &mut dyn FnMut(AccessLine),
        progress: &Progress,
    ) -> Result<()> {
        match (log, window) {
            (Log::Table(store), Some(window)) => store.each_access_line(window, take).await,
            (Log::File(path), _) => {
                let options = AccessOptions {
                    encoding: self.args.file_flags.encoding(),
                    timezone: self.args.zone.timezone,
                    accept_ids: self.args.file_flags.accepts_ids(),
                    map: self.args.access_map.clone(),
                };
                let notes =
                    read_access(path, &options, take, &mut |lines| progress.at(format!("{lines} lines")))?;
                if !self.config.quiet {
                    notes.iter().for_each(|note| print_note(&format!("note: {}: {note}", path.display())));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
