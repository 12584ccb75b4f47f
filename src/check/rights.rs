//! What the database user may do: what is needed, and what never is.

use super::source::tables_named;
use super::{Check, Outcome, moves};
use crate::config::Config;
use crate::core::status::Ledger;
use crate::store::Dialect;
use crate::store::probe::{Probe, Refusal, Site};

const WHAT: &str = "rights";

/// What no ledger's user needs.
const NEVER: [&str; 3] = ["DELETE", "TRUNCATE", "DROP"];

pub async fn check(config: &Config, site: &Site) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for ledger in Ledger::ALL {
        for probe in site.probes(ledger) {
            let label = probe.database.label.as_str();
            // One user a database: its tables are those of every ledger that lives there.
            if seen.contains(&label) {
                continue;
            }
            seen.push(label);
            let here = Ledger::ALL.into_iter().filter(|l| site.probes(*l).any(|p| p.database.label == label));
            let here: Vec<_> = here.collect();
            let found = match probe.database.dialect {
                Dialect::Sqlite => vec![writable(&probe).await],
                Dialect::Postgres => postgres(&probe, &tables(config, site, &probe, &here)).await,
                Dialect::Mysql => mysql(&probe).await.unwrap_or_else(|e| vec![unseen(&probe, &e)]),
            };
            checks.extend(found);
        }
    }
    checks.extend(kept(site).await);
    checks
}

/// Whether the journal's database refuses that anything in it is changed. Where onefold's tables are not there yet,
/// there is nothing to keep.
async fn kept(site: &Site) -> Option<Check> {
    if !site.journal_answers || site.store.must_be_ready().await.is_err() {
        return None;
    }
    let missing = site.store.missing_triggers().await.ok().filter(|missing| !missing.is_empty())?;
    let message = format!(
        "nothing refuses changes to the journal where a trigger is missing, or not to be seen by this user: {}",
        missing.join(", ")
    );
    Some(
        Check::new(WHAT, &site.store.journal().label, Outcome::Warning, message)
            .hint("onefold init makes them"),
    )
}

/// The tables that ledgers are read from and moved in.
fn tables(config: &Config, site: &Site, probe: &Probe<'_>, ledgers: &[Ledger]) -> Vec<String> {
    let queries = &site.store.queries;
    let mut tables: Vec<String> = Vec::new();
    for ledger in ledgers {
        let mut files = vec![format!("ledgers/{ledger}")];
        if !config.commands.moves.contains_key(ledger) {
            files.extend(moves::files(queries, *ledger).into_iter().map(|(file, _)| file));
        }
        let named = files.iter().filter_map(|file| tables_named(queries.find(file)?, probe.database.dialect));
        for table in named.flatten() {
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
    }
    tables
}

async fn writable(probe: &Probe<'_>) -> Check {
    let label = &probe.database.label;
    match probe.can_write().await {
        Ok(()) => Check::new(WHAT, label, Outcome::Ok, "can be written"),
        Err(e) => Check::new(WHAT, label, Outcome::Refused, format!("cannot be written: {}", e.message))
            .hint("let the user who runs onefold write the file and its folder"),
    }
}

async fn postgres(probe: &Probe<'_>, tables: &[String]) -> Vec<Check> {
    let label = &probe.database.label;
    match probe.is_superuser().await {
        Ok(true) => {
            return vec![
                Check::new(
                    WHAT,
                    label,
                    Outcome::Warning,
                    "the database user is a superuser: nothing holds it back",
                )
                .hint(
                    "give onefold a user of its own, with SELECT, INSERT and UPDATE on the ledgers' tables",
                ),
            ];
        }
        Ok(false) => {}
        Err(refusal) => return vec![unseen(probe, &refusal)],
    }
    let (mut may, mut over): (Vec<String>, Vec<&String>) = (Vec::new(), Vec::new());
    for table in tables {
        match probe.privileges(table, &NEVER[..2]).await {
            Ok(privileges) if privileges.is_empty() => {}
            Ok(privileges) => {
                over.push(table);
                may.extend(privileges);
            }
            Err(refusal) => return vec![unseen(probe, &refusal)],
        }
    }
    vec![needless(label, &may, &over.into_iter().map(String::as_str).collect::<Vec<_>>())]
}

async fn mysql(probe: &Probe<'_>) -> Result<Vec<Check>, Refusal> {
    let label = &probe.database.label;
    let database = label.rsplit('/').next().and_then(|name| name.split('?').next()).unwrap_or_default();
    let mut may = Vec::new();
    for grant in probe.grants().await? {
        may.extend(granted(&grant, database).into_iter().map(str::to_owned));
    }
    Ok(vec![needless(label, &may, &[])])
}

/// What a line of `SHOW GRANTS` allows in a database, of what is never needed.
fn granted(grant: &str, database: &str) -> Vec<&'static str> {
    let Some((privileges, rest)) = grant.strip_prefix("GRANT ").and_then(|g| g.split_once(" ON ")) else {
        return Vec::new();
    };
    let object = rest.split(" TO ").next().unwrap_or_default().replace(['`', '\\'], "");
    let (of, table) = object.split_once('.').unwrap_or_default();
    // Of its own tables onefold has one, of passes, that it takes rows away from.
    if (of != "*" && of != database) || table.starts_with("onefold_") {
        return Vec::new();
    }
    if privileges == "ALL PRIVILEGES" {
        return vec!["DELETE", "DROP"];
    }
    let names: Vec<_> = privileges.split(", ").collect();
    NEVER.into_iter().chain(["SUPER"]).filter(|never| names.contains(never)).collect()
}

/// What onefold never does, and the user may.
fn needless(label: &str, may: &[String], tables: &[&str]) -> Check {
    let known = NEVER.into_iter().chain(["SUPER"]);
    let may: Vec<_> = known.filter(|name| may.iter().any(|m| m == name)).collect();
    if may.is_empty() {
        return Check::new(WHAT, label, Outcome::Ok, "the database user may do no more than it needs");
    }
    let on = if tables.is_empty() { String::new() } else { format!(" on {}", tables.join(", ")) };
    let message = format!("the database user may {}{on}: onefold never does", may.join(", "));
    Check::new(WHAT, label, Outcome::Warning, message).hint(
        "revoke it, or give onefold a user of its own, with SELECT, INSERT and UPDATE on the ledgers' tables",
    )
}

fn unseen(probe: &Probe<'_>, refusal: &Refusal) -> Check {
    let message = format!("what the database user may do is not seen: {}", refusal.message());
    Check::new(WHAT, &probe.database.label, Outcome::Warning, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_of_other_databases_do_not_count() {
        let found = |grant| granted(grant, "shop");
        assert_eq!(found("GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION"), ["DELETE", "DROP"]);
        assert_eq!(found("GRANT SELECT, UPDATE ON `shop`.* TO `ops`@`%`"), [""; 0]);
        assert_eq!(found("GRANT SELECT, DELETE, DROP ON `shop`.`orders` TO `ops`@`%`"), ["DELETE", "DROP"]);
        assert_eq!(found("GRANT DELETE ON `other`.* TO `ops`@`%`"), [""; 0]);
        assert_eq!(found("GRANT INSERT, DELETE ON `shop`.`onefold_pass` TO `ops`@`%`"), [""; 0]);
        assert_eq!(found("GRANT USAGE ON *.* TO `ops`@`%`"), [""; 0]);
    }
}
