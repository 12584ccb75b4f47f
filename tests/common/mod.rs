//! Reads the ledgers of a fixture folder, and the options to plan it with.

#![allow(dead_code)] // Each test file uses its part.

pub mod book;
pub mod databases;
pub mod pay;
pub mod random;
pub mod server;
pub mod site;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use onefold::core::approval::{ApprovalRule, Person};
use onefold::core::evidence::Evidence;
use onefold::core::ids::{OrderId, TenantId};
use onefold::core::ledger::*;
use onefold::core::policy::Policy;
use onefold::core::scope::Scope;
use onefold::core::time::{Span, Timestamp};
use onefold::store::plans::Maker;

/// Nobody is asked.
pub static NO_APPROVAL: ApprovalRule =
    ApprovalRule { required: false, distinct: false, over: None, within: ApprovalRule::WITHIN };

/// Somebody who makes plans that need no approval.
pub fn maker(actor: &str) -> Maker<'_> {
    static SOMEBODY: Person = Person { os_user: String::new(), login: String::new() };
    Maker { actor, person: &SOMEBODY, approval: &NO_APPROVAL }
}

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cases")
}

/// The folders in `dir` that hold ledgers, by name.
pub fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut folders: Vec<PathBuf> =
        entries.map(|e| e.unwrap().path()).filter(|p| p.join("orders.csv").exists()).collect();
    folders.sort();
    folders
}

pub fn name(folder: &Path) -> String {
    folder.file_name().unwrap().to_string_lossy().into_owned()
}

/// One line of a CSV file by its columns; an empty cell is null.
struct Row(HashMap<String, String>);

impl Row {
    fn maybe<T: FromStr>(&self, column: &str) -> Option<T> {
        let text = self.0.get(column).filter(|text| !text.is_empty())?;
        Some(text.parse().unwrap_or_else(|_| panic!("{column} {text:?} in {:?}", self.0)))
    }

    fn get<T: FromStr>(&self, column: &str) -> T {
        self.maybe(column).unwrap_or_else(|| panic!("no {column} in {:?}", self.0))
    }

    fn id<T: From<String>>(&self, column: &str) -> T {
        self.get::<String>(column).into()
    }

    fn maybe_id<T: From<String>>(&self, column: &str) -> Option<T> {
        self.maybe::<String>(column).map(T::from)
    }

    fn tenant(&self) -> TenantId {
        self.maybe_id("tenant_id").unwrap_or_else(|| "default".into())
    }

    fn maybe_time(&self, column: &str) -> Option<Timestamp> {
        self.maybe::<String>(column).map(|text| time(&text))
    }

    fn time(&self, column: &str) -> Timestamp {
        self.maybe_time(column).unwrap_or_else(|| panic!("no {column} in {:?}", self.0))
    }
}

pub fn time(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap_or_else(|| panic!("no time: {text:?}"))
}

fn rows(folder: &Path, file: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(folder.join(file)).unwrap();
    reader.deserialize().map(|row| Row(row.unwrap())).collect()
}

pub fn load(folder: &Path) -> Ledgers {
    Ledgers {
        orders: rows(folder, "orders.csv").iter().map(order).collect(),
        payments: rows(folder, "payments.csv").iter().map(payment).collect(),
        inventory: rows(folder, "inventory.csv").iter().map(hold).collect(),
        messages: rows(folder, "messages.csv").iter().map(message).collect(),
    }
}

fn order(row: &Row) -> Order {
    Order {
        order_id: row.id("order_id"),
        tenant_id: row.tenant(),
        user_id: row.id("user_id"),
        show_id: row.id("show_id"),
        session_id: row.maybe_id("session_id"),
        idempotency_key: row.maybe_id("idempotency_key"),
        item: row.maybe_id("item"),
        quantity: row.get("quantity"),
        amount_minor: row.get("amount_minor"),
        currency: row.get("currency"),
        status: row.get("status"),
        source: row.maybe("source"),
        trace_id: row.maybe("trace_id"),
        created_at: row.time("created_at"),
        version: row.id("version"),
        shard: 0,
    }
}

fn payment(row: &Row) -> Payment {
    Payment {
        payment_id: row.id("payment_id"),
        tenant_id: row.tenant(),
        order_id: row.maybe_id("order_id"),
        user_id: row.id("user_id"),
        show_id: row.id("show_id"),
        session_id: row.maybe_id("session_id"),
        amount_minor: row.get("amount_minor"),
        refunded_minor: row.maybe("refunded_minor").unwrap_or(0),
        currency: row.get("currency"),
        provider: row.get("provider"),
        provider_txn_id: row.maybe("provider_txn_id"),
        status: row.get("status"),
        created_at: row.time("created_at"),
        captured_at: row.maybe_time("captured_at"),
        version: row.id("version"),
        shard: 0,
    }
}

fn hold(row: &Row) -> Hold {
    Hold {
        hold_id: row.id("hold_id"),
        tenant_id: row.tenant(),
        order_id: row.maybe_id("order_id"),
        user_id: row.id("user_id"),
        show_id: row.id("show_id"),
        session_id: row.maybe_id("session_id"),
        item: row.maybe_id("item"),
        quantity: row.get("quantity"),
        status: row.get("status"),
        created_at: row.time("created_at"),
        expires_at: row.maybe_time("expires_at"),
        version: row.id("version"),
        shard: 0,
    }
}

fn message(row: &Row) -> Message {
    Message {
        message_id: row.id("message_id"),
        tenant_id: row.tenant(),
        message_key: row.maybe("message_key"),
        topic: row.get("topic"),
        order_id: row.maybe_id("order_id"),
        user_id: row.maybe_id("user_id"),
        show_id: row.maybe_id("show_id"),
        session_id: row.maybe_id("session_id"),
        status: row.get("status"),
        attempts: row.maybe("attempts").unwrap_or(0),
        trace_id: row.maybe("trace_id"),
        created_at: row.time("created_at"),
        version: row.id("version"),
        shard: 0,
    }
}

/// What a plan is made with.
pub struct Options {
    pub as_of: Timestamp,
    pub scope: Scope,
    pub policy: Policy,
    /// Orders that an operator has chosen to keep.
    pub keeps: Vec<OrderId>,
}

impl Options {
    /// `pairs` are names without dashes in front, and values.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut options = Self {
            as_of: Timestamp::from_micros(0),
            scope: Scope::default(),
            policy: Policy::default(),
            keeps: Vec::new(),
        };
        for (name, value) in pairs {
            options.set(&name.replace('-', "_"), value);
        }
        options
    }

    /// Reads `--name value --name value …`.
    pub fn from_text(text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        Self::new(words.chunks(2).map(|pair| (pair[0].strip_prefix("--").unwrap(), pair[1])))
    }

    fn set(&mut self, name: &str, value: &str) {
        let (scope, policy) = (&mut self.scope, &mut self.policy);
        match name {
            "as_of" => self.as_of = time(value),
            "tenant" => drop(scope.tenants.insert(value.into())),
            "user" => drop(scope.users.insert(value.into())),
            "show" => drop(scope.shows.insert(value.into())),
            "session" => drop(scope.sessions.insert(value.into())),
            "from" => scope.from = Some(time(value)),
            "to" => scope.to = Some(time(value)),
            "keep" => self.keeps.push(value.into()),
            "gap" => policy.gap = span(value),
            "max_span" => policy.max_span = span(value),
            "initiated_expires" => policy.initiated_expires = Some(span(value)),
            "guest" => drop(policy.guests.insert(value.into())),
            "distinct_keys" => policy.distinct_keys = value.parse().unwrap(),
            "different_request" => policy.different_request = value.parse().unwrap(),
            "without_session" => policy.without_session = value.parse().unwrap(),
            "paid_without_stock" => policy.paid_without_stock = value.parse().unwrap(),
            "unpaid" => policy.unpaid = value.parse().unwrap(),
            "ticketed" => policy.ticketed = value.parse().unwrap(),
            "cancel_pending" => policy.cancel_pending = value.parse().unwrap(),
            "terminal_captured" => policy.terminal_captured = value.parse().unwrap(),
            other => panic!("unknown option {other}"),
        }
    }

    /// The overrides as evidence.
    pub fn evidence(&self, ledgers: &Ledgers) -> Evidence {
        let mut evidence = Evidence::default();
        for keep in &self.keeps {
            for order in ledgers.orders.iter().filter(|o| o.order_id == *keep) {
                let id = (order.tenant_id.clone(), order.order_id.clone());
                evidence.keeps.insert(id, "a test says so".to_owned());
            }
        }
        evidence
    }
}

pub fn span(text: &str) -> Span {
    let duration = humantime::parse_duration(text).unwrap();
    Span::from_micros(i64::try_from(duration.as_micros()).unwrap())
}

/// Whether a program can be run here.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
