//! What each ledger's SQL gives, beside what the contract wants; and every read that wraps it.

use super::source::{Wanted, wanted};
use super::{Check, Outcome};
use crate::core::status::Ledger;
use crate::store::Dialect;
use crate::store::probe::{Column, Kind, Probe, Refusal, Site};

const WHAT: &str = "columns";

pub async fn check(site: &Site) -> Vec<Check> {
    let mut checks = Vec::new();
    for ledger in Ledger::ALL {
        for probe in site.probes(ledger) {
            checks.extend(of(&probe).await);
        }
    }
    checks
}

async fn of(probe: &Probe<'_>) -> Vec<Check> {
    let (file, label) = (file(probe.ledger), probe.database.label.as_str());
    let columns = match probe.columns().await {
        Ok(columns) => columns,
        // What wraps it cannot do better.
        Err(refusal) => return vec![not_taken(&file, &refusal, label)],
    };
    let mut checks = compared(probe.ledger, probe.database.dialect, &columns);
    let is_whole = checks.iter().all(|check| check.result != Outcome::Refused);
    if is_whole {
        let message = format!("gives the {} columns of the contract", columns.len());
        checks.push(Check::new(WHAT, &file, Outcome::Ok, message));
        for (read, result) in probe.prepare_reads().await {
            let place = format!("{file} in {read}.sql");
            checks.push(match result {
                Ok(()) => Check::new("reads", place, Outcome::Ok, "is prepared"),
                Err(refusal) => not_taken(&place, &refusal, label),
            });
        }
    }
    checks.into_iter().map(|check| check.on(label)).collect()
}

/// The file of a ledger's SQL.
pub fn file(ledger: Ledger) -> String {
    format!("ledgers/{ledger}.sql")
}

fn not_taken(place: &str, refusal: &Refusal, label: &str) -> Check {
    let check = Check::new("reads", place, Outcome::Refused, refusal.message()).on(label);
    match refusal {
        Refusal::Denied(_) => check.hint("grant the database user SELECT on the tables that it names"),
        Refusal::Other(_) => check.hint("correct the SQL: the database does not prepare it"),
    }
}

/// How columns differ from what the contract wants.
fn compared(ledger: Ledger, dialect: Dialect, columns: &[Column]) -> Vec<Check> {
    let wanted = wanted(ledger);
    let mut checks: Vec<Check> =
        wanted.iter().filter_map(|want| faulty(want, ledger, dialect, columns)).collect();
    let refused =
        |message: String, hint: &str| Check::new(WHAT, file(ledger), Outcome::Refused, message).hint(hint);
    for (at, column) in columns.iter().enumerate() {
        let name = &column.name;
        if columns[..at].iter().any(|other| other.name == *name) {
            checks.push(refused(format!("gives {name} twice"), "leave one out, or name it otherwise"));
        }
        let is_known =
            wanted.iter().any(|want| want.name == *name || in_major(&want.name).as_ref() == Some(name));
        if is_known {
            continue;
        }
        checks.push(match column.kind {
            Kind::Other => refused(
                format!(
                    "gives {name} of type {}, which is no column of the contract and cannot be read",
                    column.type_name
                ),
                "leave it out",
            ),
            _ => Check::new(
                WHAT,
                file(ledger),
                Outcome::Warning,
                format!("gives {name}, which is no column of the contract"),
            )
            .hint("leave it out: it is read for nothing"),
        });
    }
    checks
}

/// `amount_major` for `amount_minor`: a decimal text in its place.
fn in_major(name: &str) -> Option<String> {
    name.strip_suffix("_minor").map(|stem| format!("{stem}_major"))
}

fn faulty(want: &Wanted, ledger: Ledger, dialect: Dialect, columns: &[Column]) -> Option<Check> {
    let find = |name: &str| columns.iter().find(|column| column.name == name);
    let refused = |message: String, hint: String| {
        Some(Check::new(WHAT, file(ledger), Outcome::Refused, message).hint(hint))
    };
    let (column, want_number) = match (find(&want.name), in_major(&want.name)) {
        (Some(column), _) => (column, want.is_number),
        (None, Some(major)) => match find(&major) {
            Some(column) => (column, false),
            None => {
                return refused(
                    format!("gives no column {}", want.name),
                    format!(
                        "select … AS {} in the currency's minor unit, or {} AS {major} in its major unit",
                        want.name,
                        cast("…", false, dialect)
                    ),
                );
            }
        },
        (None, None) => {
            let hint = match columns.iter().find(|c| c.name.eq_ignore_ascii_case(&want.name)) {
                Some(column) => format!("name {} exactly so: {} AS {}", column.name, column.name, want.name),
                None => format!(
                    "select … AS {} ({} AS {} where there is none)",
                    want.name,
                    nothing(want, dialect),
                    want.name
                ),
            };
            return refused(format!("gives no column {}", want.name), hint);
        }
    };
    match (column.kind, want_number) {
        (Kind::Unknown, _) | (Kind::Text, false) | (Kind::Int, true) => None,
        (_, is_number) => refused(
            format!(
                "gives {} as {}; the contract wants {}",
                column.name,
                column.type_name,
                if is_number { "a BIGINT" } else { "text" }
            ),
            match want.name.ends_with("_us") {
                true => format!("write {}", instant(dialect, &column.name)),
                false => format!("write {} AS {}", cast("…", is_number, dialect), column.name),
            },
        ),
    }
}

fn cast(what: &str, to_number: bool, dialect: Dialect) -> String {
    let name = match (dialect, to_number) {
        (Dialect::Mysql, true) => "SIGNED",
        (Dialect::Mysql, false) => "CHAR",
        (Dialect::Sqlite, true) => "INTEGER",
        (Dialect::Postgres, true) => "BIGINT",
        (_, false) => "TEXT",
    };
    format!("CAST({what} AS {name})")
}

/// What stands for a column that their tables do not have.
fn nothing(want: &Wanted, dialect: Dialect) -> String {
    match want.name.as_str() {
        "version" => "'1'".to_owned(),
        "tenant_id" => "'default'".to_owned(),
        "attempts" => "0".to_owned(),
        _ => cast("NULL", want.is_number, dialect),
    }
}

/// Microseconds since 1970 in UTC, out of a database's own type for times.
fn instant(dialect: Dialect, column: &str) -> String {
    match dialect {
        Dialect::Postgres => {
            format!("CAST(EXTRACT(EPOCH FROM …) * 1000000 AS BIGINT) AS {column}, of a timestamptz")
        }
        Dialect::Mysql => {
            format!("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', …) AS {column}, of a DATETIME in UTC")
        }
        Dialect::Sqlite => format!("CAST(strftime('%s', …) AS INTEGER) * 1000000 AS {column}"),
    }
}
