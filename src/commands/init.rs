//! `onefold init`: the embedded ledgers, onefold's own tables, and the triggers that make a freeze hold.

use clap::{Args, ValueEnum};
use serde_json::json;

use super::now;
use crate::config::Config;
use crate::core::freeze::{FreezeMode, FreezeState};
use crate::error::{Error, Result};
use crate::report::Report;
use crate::store::freezes::FREEZE;
use crate::store::{Database, Dialect, Store};

/// Create the ledgers and onefold's own tables where they are missing; safe to run twice
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold init
  onefold init --enforce
  onefold --database postgres://ops@db/shop init --print | less
  onefold init --enforce=off

Every database that holds a ledger is marked as one of this journal's: by
another journal nothing is moved there.")]
pub struct InitArgs {
    /// Show the SQL for a DBA, and run nothing
    #[arg(long)]
    print: bool,
    /// Also install the triggers that let `freeze --enforce` hold; `off` removes them
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    enforce: Option<Switch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

pub async fn run(config: &Config, args: InitArgs) -> Result<Report> {
    if args.enforce == Some(Switch::Off) {
        return off(&config.open(false).await?, args.print).await;
    }
    let label = config.label();
    // An SQLite file need not be there to see what would be made in it.
    let scratch =
        tempfile::tempdir().map_err(|e| Error::failure(format!("cannot make a temporary folder: {e}")))?;
    let store = if args.print {
        let elsewhere = |url: &String| match Dialect::of_url(url) {
            Ok(Dialect::Sqlite) => format!("sqlite:{}", scratch.path().join("onefold.db").display()),
            _ => url.clone(),
        };
        Config { places: config.places.map(elsewhere), ..config.clone() }.open(true).await?
    } else {
        config.open(true).await?
    };
    let schema = store.schema().await?;
    let mut statements: Vec<_> = schema.iter().map(|(_, sql)| sql.clone()).collect();
    let mut scripts: Vec<_> = statements.iter().map(|sql| format!("{sql};\n")).collect();
    if args.enforce.is_some() {
        let guards = store.guards().await?;
        scripts.extend(guards.iter().map(|guard| guard.script()));
        statements.extend(guards.into_iter().flat_map(|guard| guard.statements));
    }
    let json = json!({ "database": label, "ran": !args.print, "statements": statements });
    if args.print {
        return Ok(Report::new(json).verbatim(scripts.join("\n").trim_end()));
    }
    store.init().await?;
    let rule = store.tighten_rule(&config.approval, (&store.person().await?, &config.actor), now()).await?;
    let databases: Vec<_> = store.databases().iter().collect();
    let verb = if databases.len() == 1 { "is" } else { "are" };
    let report = Report::new(json).line(format!("{} {verb} ready.", labels(&databases)));
    let report = match args.enforce {
        None => report,
        Some(_) => {
            let installed = labels(&store.install_guards().await?);
            let what = if installed.is_empty() { "are there already" } else { "are installed" };
            report.line(format!("The triggers for `onefold freeze --enforce` {what}."))
        }
    };
    let is_ours_alone = databases.len() == 1 && config.places.is_embedded() && !store.is_foreign();
    let report = if rule.required { report.line(format!("From now on {rule}.")) } else { report };
    Ok(if is_ours_alone {
        report.line("Load ledgers with `onefold import DIR`, or see it all once with `onefold demo`.")
    } else {
        report
            .line("Prove the configuration before the night it is needed; that night, freeze:")
            .command("onefold check")
            .command(FREEZE)
    })
}

async fn off(store: &Store, print: bool) -> Result<Report> {
    let removals = store.removals().await?;
    let statements: Vec<_> = removals.iter().map(|(_, sql)| sql.as_str()).collect();
    let json = json!({ "database": store.journal().label, "ran": !print, "statements": statements });
    if print {
        let sql = statements.iter().map(|sql| format!("{sql};")).collect::<Vec<_>>().join("\n");
        return Ok(Report::new(json).verbatim(sql));
    }
    store.must_be_ready().await?;
    store.must_be_ours().await?;
    let live = store.open_freezes().await?;
    if let Some(freeze) = live.iter().find(|f| f.mode == FreezeMode::Enforced && f.is_live(now())) {
        return Err(Error::refused(format!(
            "{} is enforced by them, held by {} until {}",
            freeze.freeze_id, freeze.owner, freeze.lease_until
        ))
        .hint(match freeze.state {
            FreezeState::Narrowed => format!(
                "settle what it still holds, then thaw it: onefold thaw {0}; or end it whole: \
                 onefold thaw {0} --force --reason TEXT",
                freeze.freeze_id
            ),
            _ => format!("onefold thaw {}", freeze.freeze_id),
        }));
    }
    let removed = labels(&store.remove_guards().await?);
    Ok(Report::new(json).line(match removed.as_str() {
        "" => "There are no triggers of onefold.".to_owned(),
        labels => format!("The triggers of onefold are removed from {labels}."),
    }))
}

fn labels(databases: &[&Database]) -> String {
    databases.iter().map(|d| d.label.as_str()).collect::<Vec<_>>().join(", ")
}
