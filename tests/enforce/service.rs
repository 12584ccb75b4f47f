//! A service with its own connection, and the rows that it writes.

use onefold::core::time::Span;
use sqlx::{AnyConnection, AssertSqlSafe, Connection};
use tokio::runtime::Runtime;

use crate::common::book::at;
use crate::common::site::{OWNER, Site};

/// Writes plain SQL and knows nothing of onefold.
pub struct Service {
    runtime: Runtime,
    connection: AnyConnection,
}

impl Service {
    pub fn of(url: &str) -> Self {
        sqlx::any::install_default_drivers();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut connection = runtime.block_on(AnyConnection::connect(url)).unwrap();
        if url.starts_with("sqlite") {
            let patience = sqlx::raw_sql("PRAGMA busy_timeout = 10000").execute(&mut connection);
            runtime.block_on(patience).unwrap();
        }
        Self { runtime, connection }
    }

    /// Runs a statement; how many rows it changed, or why it was refused.
    pub fn tries(&mut self, sql: &str) -> Result<u64, String> {
        let run = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut self.connection);
        self.runtime.block_on(run).map(|done| done.rows_affected()).map_err(|e| e.to_string())
    }

    /// Runs a statement that is prepared once, with `value` for each of its placeholders.
    pub fn runs(&mut self, prepared: &str, value: &str) {
        let placeholders = if prepared.contains("$1") { 1 } else { prepared.matches('?').count() };
        let query = (0..placeholders)
            .fold(sqlx::query(AssertSqlSafe(prepared)), |query, _| query.bind(value.to_owned()));
        self.runtime.block_on(query.execute(&mut self.connection)).unwrap();
    }

    /// The statement is let through and changes rows.
    #[track_caller]
    pub fn may(&mut self, sql: &str) {
        let changed = self.tries(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert_ne!(changed, 0, "{sql}");
    }

    /// A freeze refuses the statement; what it says.
    #[track_caller]
    pub fn may_not(&mut self, sql: &str) -> String {
        // SQLite doubles the quotes of what it quotes.
        let refusal = self.tries(sql).expect_err(sql).replace("''", "'");
        assert!(refusal.contains("onefold: ") && refusal.contains(" is frozen by F-"), "{sql}: {refusal}");
        refusal
    }
}

/// A site with triggers, and a service on it.
pub fn guarded(site: &Site) -> Service {
    site.run(&["init", "--enforce"]).ends(0);
    Service::of(&site.url)
}

/// Freezes, enforced; the freeze's id.
#[track_caller]
pub fn freeze(site: &Site, flags: &[&str]) -> String {
    let line = [&["freeze", "--enforce", "--reason", "retries double the orders"], flags].concat();
    site.id(&line, "/freeze/freeze_id")
}

#[track_caller]
pub fn thaw(site: &Site, freeze: &str) {
    site.run_as(OWNER, &["thaw", freeze, "--force", "--reason", "over"]).ends(0);
}

/// A text as SQL, or null.
fn text(value: &str) -> String {
    if value == "null" { value.to_owned() } else { format!("'{value}'") }
}

/// Where a row stands.
#[derive(Clone, Copy)]
pub struct At {
    pub tenant: &'static str,
    pub user: &'static str,
    pub show: &'static str,
    pub session: &'static str,
    pub seconds: i64,
}

pub const INSIDE: At = At { tenant: "t", user: "u", show: "show", session: "s", seconds: 0 };
pub const OUTSIDE: At = At { show: "other", ..INSIDE };

impl At {
    fn micros(self) -> i64 {
        at(0).plus(Span::from_secs(self.seconds)).micros()
    }

    pub fn order(self, id: &str, status: &str) -> String {
        format!(
            "INSERT INTO orders (tenant_id, order_id, user_id, show_id, session_id, quantity, amount_minor, \
             currency, status, created_at_us, version) VALUES ('{}', '{id}', '{}', '{}', {}, 1, 1000, 'CNY', \
             '{status}', {}, '1')",
            self.tenant,
            self.user,
            self.show,
            text(self.session),
            self.micros()
        )
    }

    pub fn payment(self, id: &str, order: &str, status: &str) -> String {
        format!(
            "INSERT INTO payments (tenant_id, payment_id, order_id, user_id, show_id, session_id, amount_minor, \
             refunded_minor, currency, provider, status, created_at_us, version) VALUES ('{}', '{id}', {}, '{}', \
             '{}', {}, 1000, 0, 'CNY', 'pay', '{status}', {}, '1')",
            self.tenant,
            text(order),
            self.user,
            self.show,
            text(self.session),
            self.micros()
        )
    }

    pub fn hold(self, id: &str, order: &str, status: &str) -> String {
        format!(
            "INSERT INTO inventory (tenant_id, hold_id, order_id, user_id, show_id, session_id, quantity, \
             status, created_at_us, version) VALUES ('{}', '{id}', {}, '{}', '{}', {}, 1, '{status}', {}, '1')",
            self.tenant,
            text(order),
            self.user,
            self.show,
            text(self.session),
            self.micros()
        )
    }

    pub fn message(self, id: &str, topic: &str, order: &str, status: &str) -> String {
        format!(
            "INSERT INTO messages (tenant_id, message_id, topic, order_id, user_id, show_id, session_id, status, \
             attempts, created_at_us, version) VALUES ('{}', '{id}', '{topic}', {}, {}, {}, {}, '{status}', 0, \
             {}, '1')",
            self.tenant,
            text(order),
            text(self.user),
            text(self.show),
            text(self.session),
            self.micros()
        )
    }
}

pub fn set_order(id: &str, status: &str) -> String {
    format!("UPDATE orders SET status = '{status}' WHERE order_id = '{id}'")
}

pub fn set_payment(id: &str, status: &str) -> String {
    format!("UPDATE payments SET status = '{status}' WHERE payment_id = '{id}'")
}

pub fn set_hold(id: &str, status: &str) -> String {
    format!("UPDATE inventory SET status = '{status}' WHERE hold_id = '{id}'")
}

pub fn set_message(id: &str, status: &str) -> String {
    format!("UPDATE messages SET status = '{status}' WHERE message_id = '{id}'")
}
