//! The configuration by itself, and whether its databases answer.

use super::{Check, Outcome, moves};
use crate::config::Config;
use crate::core::status::Ledger;
use crate::store::probe::Site;
use crate::store::without_password;

/// What a check about the configuration is about.
pub const FILE: &str = "onefold.toml";

const WHAT: &str = "configuration";

pub async fn check(config: &Config, site: &Site) -> Vec<Check> {
    let mut checks = connections(site);
    if site.journal_answers {
        checks.extend(journal(site).await);
    }
    for ledger in Ledger::ALL {
        checks.extend(shards(config, ledger));
        checks.extend(statuses(config, ledger));
        checks.extend(one_sided(config, site, ledger));
    }
    checks.extend(of_a_foreign_schema(config, site).await);
    checks
}

fn connections(site: &Site) -> Vec<Check> {
    let silent = site.silent.iter().map(|(label, error)| {
        hinted(Check::new("connection", label, Outcome::Refused, &error.message), error.hint.clone())
    });
    let answer =
        site.store.databases().iter().map(|d| Check::new("connection", &d.label, Outcome::Ok, "answers"));
    silent.chain(answer).collect()
}

async fn journal(site: &Site) -> Vec<Check> {
    let store = &site.store;
    let label = &store.journal().label;
    let check = |outcome, message: String| Check::new("journal", label, outcome, message);
    if let Err(e) = store.must_be_ready().await {
        let check = check(Outcome::Refused, e.message)
            .hint("create them with `onefold init`, or see its SQL with `onefold init --print`");
        return vec![check];
    }
    let mut checks = vec![match site.can_write_own_tables().await {
        Ok(()) => check(Outcome::Ok, "onefold's own tables are there, and can be written".to_owned()),
        Err(e) => check(Outcome::Refused, format!("onefold's own tables cannot be written: {}", e.message))
            .hint("grant the database user SELECT, INSERT and UPDATE on the tables onefold_…, and DELETE on onefold_pass"),
    }];
    checks.push(match store.standing_rule().await {
        Ok(standing) => check(Outcome::Ok, format!("by the rule that stands {}", standing.rule)),
        Err(e) => hinted(check(Outcome::Refused, e.message), e.hint),
    });
    for database in store.databases() {
        let check = |outcome, message: &str| Check::new("journal", &database.label, outcome, message);
        checks.push(match store.must_belong(database).await {
            Ok(()) => check(Outcome::Ok, "belongs to this journal"),
            Err(e) => hinted(check(Outcome::Refused, &e.message), e.hint),
        });
    }
    checks
}

fn hinted(check: Check, hint: Option<String>) -> Check {
    hint.into_iter().fold(check, Check::hint)
}

/// A database that is named twice would be read twice.
fn shards(config: &Config, ledger: Ledger) -> Vec<Check> {
    let urls = &config.places.ledgers[ledger as usize];
    let twice = urls.iter().enumerate().filter(|(at, url)| urls[..*at].contains(url));
    twice
        .map(|(at, url)| {
            let url = without_password(url);
            let message =
                format!("[ledgers.{ledger}] names {url} twice: every row of it would be there twice");
            Check::new(WHAT, FILE, Outcome::Refused, message)
                .hint(format!("remove url {} of the list", at + 1))
        })
        .collect()
}

/// A status without value can neither be read nor written, as soon as others of its ledger have one.
fn statuses(config: &Config, ledger: Ledger) -> Option<Check> {
    let missing = config.statuses.missing(ledger);
    let (row, names) = (ledger.row_name(), missing.join(", "));
    let written: Vec<_> =
        missing.iter().filter(|status| moves::made(ledger).iter().any(|(_, to)| to == *status)).collect();
    match (missing.is_empty(), written.first()) {
        (true, _) => None,
        (false, Some(status)) => Some(
            Check::new(
                WHAT,
                FILE,
                Outcome::Refused,
                format!("[status.{row}] gives no value for {names}, and moves lead to {status}"),
            )
            .hint(format!("add your value under [status.{row}]: {status} = \"…\"")),
        ),
        (false, None) => Some(
            Check::new(WHAT, FILE, Outcome::Warning, format!("[status.{row}] gives no value for {names}"))
                .hint("well where your tables never hold it; a row that does could not be read"),
        ),
    }
}

/// Reading theirs and writing ours, or the other way round.
fn one_sided(config: &Config, site: &Site, ledger: Ledger) -> Option<Check> {
    let queries = &site.store.queries;
    let row = ledger.row_name();
    let mut files = queries.shadows().filter(|name| {
        name.strip_prefix("moves/").is_some_and(|of| of == row || of.starts_with(&format!("{row}.")))
    });
    if !site.store.is_foreign_ledger(ledger) {
        return files.next().map(|file| {
            let message = format!("is yours, and the ledger is read by our ledgers/{ledger}.sql");
            Check::new(WHAT, format!("{file}.sql"), Outcome::Warning, message)
                .hint("well where it writes our tables; else write that file too")
        });
    }
    if config.commands.moves.contains_key(&ledger) {
        return None;
    }
    let ours: Vec<_> =
        moves::files(queries, ledger).into_iter().filter(|(file, _)| !queries.is_shadowed(file)).collect();
    let (file, targets) = ours.first()?;
    let message = format!(
        "{row}s are read from your tables and moved to {} in ours: your folder has no {file}.sql",
        targets.join(", ")
    );
    let check =
        |outcome, hint: String| Some(Check::new(WHAT, format!("{file}.sql"), outcome, &message).hint(hint));
    match ledger {
        // Messages may live where no SQL reaches.
        Ledger::Messages => check(
            Outcome::Unproven,
            format!(
                "write it; messages in a broker need a command: [exec] {row} = [\"program\", \"argument\"]"
            ),
        ),
        _ => check(
            Outcome::Refused,
            format!("write it; `onefold queries export DIR` gives {file}.sql as a start"),
        ),
    }
}

async fn of_a_foreign_schema(config: &Config, site: &Site) -> Vec<Check> {
    let mut checks = Vec::new();
    if site.store.is_foreign() && config.providers.is_empty() {
        let message =
            "names no provider: refunds and voids become rows in onefold_outbox, and wait for your service";
        checks.push(Check::new(WHAT, FILE, Outcome::Warning, message).hint(
            "say so with [providers.\"*\"] kind = \"outbox\", or name another; \"sandbox\" moves no real money",
        ));
    }
    if site.store.is_foreign()
        && let Err(e) = site.store.guards().await
    {
        let message = format!("a freeze is recorded, and `freeze --enforce` is refused: {}", e.message);
        checks.push(hinted(Check::new(WHAT, "enforce/", Outcome::Warning, message), e.hint));
    }
    checks
}
