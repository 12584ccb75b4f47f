//! What the reads cost: whether each finds its rows by an index, and how many a scope reads.

use super::columns::file;
use super::source::Source;
use super::{Check, Outcome};
use crate::core::scope::Scope;
use crate::core::status::Ledger;
use crate::store::Dialect;
use crate::store::probe::{Access, MARK, Probe, Site};

/// A read that must not read a whole table.
struct Narrow {
    file: &'static str,
    /// In words.
    by: &'static str,
    /// The columns that an index for it holds.
    columns: &'static [&'static str],
    ledgers: &'static [Ledger],
    /// Parameters that are not bound: the read without these conditions.
    without: &'static [&'static str],
}

const ATTACHED: &[Ledger] = &[Ledger::Payments, Ledger::Inventory, Ledger::Messages];
const BY_SHOW: &[&str] = &["tenants", "users", "sessions"];

const READS: [Narrow; 7] = [
    Narrow { file: "reads/by_ids", by: "id", columns: &[], ledgers: &Ledger::ALL, without: &[] },
    Narrow {
        file: "reads/of_buyers",
        by: "buyer",
        columns: &["tenant_id", "show_id", "user_id"],
        ledgers: &Ledger::ALL,
        without: &[],
    },
    Narrow {
        file: "reads/ids_of_orders",
        by: "order",
        columns: &["tenant_id", "order_id"],
        ledgers: ATTACHED,
        without: &[],
    },
    Narrow {
        file: "reads/by_keys",
        by: "idempotency key",
        columns: &["tenant_id", "idempotency_key"],
        ledgers: &[Ledger::Orders],
        without: &[],
    },
    Narrow {
        file: "reads/by_charges",
        by: "provider transaction",
        columns: &["tenant_id", "provider_txn_id"],
        ledgers: &[Ledger::Payments],
        without: &[],
    },
    Narrow {
        file: "reads/buyers_in_scope",
        by: "show and time",
        columns: &["show_id", "created_at_us"],
        ledgers: &[Ledger::Orders],
        without: BY_SHOW,
    },
    Narrow {
        file: "reads/in_scope",
        by: "show and time",
        columns: &["show_id", "created_at_us"],
        ledgers: ATTACHED,
        without: BY_SHOW,
    },
];

pub async fn check(site: &Site, scope: &Scope) -> Vec<Check> {
    let mut checks = Vec::new();
    for ledger in Ledger::ALL {
        for probe in site.probes(ledger) {
            for read in READS.iter().filter(|read| read.ledgers.contains(&ledger)) {
                checks.extend(of(site, &probe, read).await.map(|check| check.on(&probe.database.label)));
            }
        }
    }
    checks.extend(rows(site, scope).await);
    checks
}

/// `None` where the read cannot be explained: that it cannot be prepared was said before.
async fn of(site: &Site, probe: &Probe<'_>, read: &Narrow) -> Option<Check> {
    let accesses = probe.explain(read.file, read.without).await.ok()?;
    let text = site.store.queries.find(&format!("ledgers/{}", probe.ledger))?;
    let source = Source::read(text, probe.database.dialect);
    let tenant = source.as_ref().and_then(|source| source.plain_column("tenant_id"));
    let place = file(probe.ledger);
    let proven = Check::new("indexes", &place, Outcome::Ok, format!("by {}: read with an index", read.by));
    let mut wide = accesses.iter().filter(|a| !is_narrow(a, probe.database.dialect, tenant.as_deref()));
    let Some(first) = wide.next() else { return Some(proven) };
    let id = [probe.ledger.row_name(), "_id"].concat();
    let by_id = ["tenant_id", id.as_str()];
    let columns = if read.columns.is_empty() { &by_id[..] } else { read.columns };
    let index = source.as_ref().and_then(|source| source.index(columns));
    // Of a small table, the plan may prefer one index to a better one.
    if let Some((table, parts)) = &index
        && accesses.iter().all(|access| !access.by.is_empty())
    {
        let indexes = probe.indexes(&table.replace(['"', '`'], "")).await.unwrap_or_default();
        if has(&indexes, parts, tenant.as_deref()) {
            return Some(proven);
        }
    }
    let what = if first.by.is_empty() { "every row" } else { "every row of a tenant" };
    let table = source.as_ref().map_or(first.table.as_str(), |source| source.called(&first.table));
    let message = format!("to be read by {}, {table} has no index: {what} of it is read", read.by);
    let check = Check::new("indexes", place, Outcome::Warning, message);
    Some(match index {
        Some((table, parts)) => check.hint(create(&table, &parts, probe.database.dialect)),
        None => check.hint(format!("create an index on what gives {}", columns.join(", "))),
    })
}

/// Whether an index narrows by more than the tenant, who may own all rows.
fn is_narrow(access: &Access, dialect: Dialect, tenant: Option<&str>) -> bool {
    match dialect {
        // A condition without the mark joins one table to another.
        Dialect::Postgres => access.by.iter().any(|by| {
            let marks = by.matches(MARK).count();
            marks == 0 || marks > usize::from(tenant.is_some_and(|tenant| by.contains(tenant)))
        }),
        Dialect::Sqlite | Dialect::Mysql => {
            access.by.iter().any(|by| !by.is_empty() && Some(by.as_str()) != tenant)
        }
    }
}

/// Whether some index begins with columns that are looked for, and not with the tenant alone.
fn has(indexes: &[Vec<String>], parts: &[String], tenant: Option<&str>) -> bool {
    let bare = |text: &str| text.replace(['(', ')', '"', '`', ' '], "").to_lowercase();
    let wanted: Vec<String> = parts.iter().map(|part| bare(part)).collect();
    let tenant = tenant.map(bare);
    indexes.iter().any(|index| {
        let mut leading = index.iter().map(|part| bare(part)).take_while(|part| wanted.contains(part));
        leading.any(|part| Some(part) != tenant)
    })
}

fn create(table: &str, parts: &[String], dialect: Dialect) -> String {
    let made = parts.iter().any(|part| part.starts_with('('));
    let parts = parts.join(", ");
    match dialect {
        Dialect::Mysql if made => format!(
            "create an index on {table} ({parts}); where the server has no index on expressions, on a \
             generated column"
        ),
        Dialect::Postgres => format!("CREATE INDEX CONCURRENTLY ON {table} ({parts})"),
        Dialect::Sqlite | Dialect::Mysql => {
            let bare = table.rsplit('.').next().unwrap_or(table).trim_matches(['"', '`']);
            let words: Vec<_> =
                parts.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
            format!("CREATE INDEX {bare}_by_{} ON {table} ({parts})", words.join("_").to_lowercase())
        }
    }
}

async fn rows(site: &Site, scope: &Scope) -> Vec<Check> {
    if scope.is_everything() {
        let mut checks = Vec::new();
        for ledger in Ledger::ALL {
            for probe in site.probes(ledger) {
                let estimate = probe.estimate().await.map(|rows| {
                    let message =
                        format!("about {rows} rows, as the database estimates; name a scope to count");
                    Check::new("rows", file(ledger), Outcome::Ok, message).on(&probe.database.label)
                });
                checks.extend(estimate);
            }
        }
        return checks;
    }
    vec![match site.rows_in(scope).await {
        Ok(counts) => {
            let counts: Vec<_> =
                Ledger::ALL.iter().zip(counts).map(|(ledger, rows)| format!("{ledger} {rows}")).collect();
            Check::new("rows", "scope", Outcome::Ok, format!("rows that it reads: {}", counts.join(", ")))
        }
        Err(e) => Check::new("rows", "scope", Outcome::Refused, format!("cannot be read: {}", e.message)),
    }]
}
