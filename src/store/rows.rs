//! Database rows to the core's rows and back. A row that the contract does not allow is an error
//! that names ledger, row, column and value.

use std::fmt::Display;
use std::str::FromStr;

use serde_json::Value as Json;
use sqlx::Row as _;
use sqlx::any::AnyRow;

#[cfg(doc)]
use super::sql::Statement;
use super::statuses::Statuses;
use crate::core::ids::*;
use crate::core::ledger::{Hold, Message, Order, Payment, Portions, Rows, Shard};
use crate::core::money::Currency;
use crate::core::status::Ledger;
use crate::core::time::Timestamp;
use crate::error::{Error, Result};

/// A row of one of the four ledgers.
pub trait LedgerRow: Sized + Clone + PartialEq {
    const LEDGER: Ledger;
    /// The name of its id column.
    const ID: &'static str;
    /// The columns of our own tables, all of them.
    const COLUMNS: &'static [&'static str];

    /// # Errors
    /// Usage, naming row, column and value, where the contract does not allow what it says.
    fn decode(row: Row<'_>, shard: Shard, statuses: &Statuses) -> Result<Self>;

    /// Its values in the order of the ledger's SELECT, each with its column's name.
    fn values(&self) -> impl Iterator<Item = (&'static str, Field<'_>)>;

    /// Those of its ledger among the rows of all four.
    fn of(rows: &dyn Rows) -> Portions<'_, Self>;

    fn tenant_id(&self) -> &TenantId;

    fn row_id(&self) -> RowId;

    fn order_id(&self) -> Option<&OrderId>;

    /// (tenant, user, show), where it names all three.
    fn buyer(&self) -> Option<Buyer>;
}

/// A value of a row, which holds its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'r> {
    Null,
    Text(&'r str),
    Int(i64),
}

impl<'r> From<&'r str> for Field<'r> {
    fn from(text: &'r str) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Field<'_> {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl<'r, T: Into<Self>> From<Option<T>> for Field<'r> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, T::into)
    }
}

/// Whose purchases of which show: the unit in which orders become intents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Buyer {
    pub tenant_id: TenantId,
    pub show_id: ShowId,
    pub user_id: UserId,
}

/// What a row says, by the names of its columns.
#[derive(Clone, Copy)]
pub enum Row<'a> {
    /// As its database gave it.
    Single(&'a AnyRow),
    /// One of many that came as one, with their columns: see [`Statement::packed`].
    Packed(&'a [&'a str], &'a [Json]),
}

impl<'a> From<&'a AnyRow> for Row<'a> {
    fn from(row: &'a AnyRow) -> Self {
        Self::Single(row)
    }
}

impl Row<'_> {
    /// # Errors
    /// Why there is no text in this column, nor nothing.
    fn text(&self, column: &str) -> Result<Option<String>, String> {
        match *self {
            Self::Single(row) => match row.try_get(column) {
                Ok(text) => Ok(text),
                // Some databases give text with a binary collation as bytes.
                Err(error) => match row.try_get::<Option<Vec<u8>>, _>(column) {
                    Ok(bytes) => {
                        bytes.map(String::from_utf8).transpose().map_err(|_| "not UTF-8 text".to_owned())
                    }
                    Err(_) => Err(self.mistyped(column, "text", &error.to_string())),
                },
            },
            Self::Packed(columns, cells) => match at(columns, cells, column)? {
                Json::Null => Ok(None),
                Json::String(text) => Ok(Some(text.clone())),
                other => Err(self.mistyped(column, "text", &other.to_string())),
            },
        }
    }

    /// # Errors
    /// Why there is no whole number in this column, nor nothing.
    fn int(&self, column: &str) -> Result<Option<i64>, String> {
        const NEEDED: &str = "whole number";
        match *self {
            Self::Single(row) => {
                row.try_get(column).map_err(|error| self.mistyped(column, NEEDED, &error.to_string()))
            }
            Self::Packed(columns, cells) => match at(columns, cells, column)? {
                Json::Null => Ok(None),
                other => {
                    other.as_i64().map(Some).ok_or_else(|| self.mistyped(column, NEEDED, &other.to_string()))
                }
            },
        }
    }

    fn has(&self, column: &str) -> bool {
        match self {
            Self::Single(row) => row.try_column(column).is_ok(),
            Self::Packed(columns, _) => columns.contains(&column),
        }
    }

    /// That a value is of another type than the column must have; `why`, where it cannot be shown.
    fn mistyped(&self, column: &str, needed: &str, why: &str) -> String {
        let shown = match *self {
            Self::Single(row) => match row.try_get::<String, _>(column) {
                Ok(text) => Some(format!("{text:?}")),
                Err(_) => match row.try_get::<i64, _>(column) {
                    Ok(number) => Some(number.to_string()),
                    Err(_) => row.try_get::<f64, _>(column).ok().map(|number| number.to_string()),
                },
            },
            Self::Packed(columns, cells) => at(columns, cells, column).ok().map(Json::to_string),
        };
        shown.map_or_else(|| why.to_owned(), |value| format!("{value} is no {needed}"))
    }
}

fn at<'a>(columns: &[&str], cells: &'a [Json], column: &str) -> Result<&'a Json, String> {
    let at = columns.iter().position(|name| *name == column);
    at.and_then(|at| cells.get(at)).ok_or_else(|| "there is no such column".to_owned())
}

/// Reads columns of one row, naming the row where one is not as it must be.
pub(super) struct Reader<'a> {
    row: Row<'a>,
    what: String,
    /// What to do where it is not as it must be.
    hint: &'static str,
}

const OF_LEDGERS: &str = "correct the row, or what reads it: ledgers/*.sql, and [status.…] of the configuration; or leave \
                          it out with a narrower scope: --show, --user, --from, --to";

impl<'a> Reader<'a> {
    pub(super) fn new(row: impl Into<Row<'a>>, what: impl Display) -> Self {
        Self { row: row.into(), what: what.to_string(), hint: OF_LEDGERS }
    }

    /// Of rows that no ledger has.
    pub(super) fn hinting(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    fn of(row: Row<'a>, ledger: Ledger, id: &str) -> Self {
        let id = row.text(id).ok().flatten().unwrap_or_else(|| "?".to_owned());
        Self::new(row, format!("{} {}", ledger.row_name(), id.escape_debug()))
    }

    pub(super) fn bad(&self, column: &str, problem: impl Display) -> Error {
        Error::usage(format!("{}, column {column}: {problem}", self.what)).hint(self.hint)
    }

    pub(super) fn text(&self, column: &str) -> Result<Option<String>> {
        self.row.text(column).map_err(|why| self.bad(column, why))
    }

    pub(super) fn needed(&self, column: &str) -> Result<String> {
        self.text(column)?.ok_or_else(|| self.bad(column, "is null"))
    }

    pub(super) fn id<T: From<String>>(&self, column: &str) -> Result<T> {
        self.needed(column).map(T::from)
    }

    pub(super) fn id_or_null<T: From<String>>(&self, column: &str) -> Result<Option<T>> {
        Ok(self.text(column)?.map(T::from))
    }

    /// An id of a ledger: a blank one names nothing, and would make all such rows one.
    fn ledger_id<T: From<String>>(&self, column: &str) -> Result<T> {
        self.ledger_id_or_null(column)?.ok_or_else(|| self.bad(column, "is null or blank"))
    }

    /// As [`Self::ledger_id`], where there may be none: sites write `NOT NULL DEFAULT ''`.
    fn ledger_id_or_null<T: From<String>>(&self, column: &str) -> Result<Option<T>> {
        Ok(self.text(column)?.filter(|id| !id.trim().is_empty()).map(T::from))
    }

    pub(super) fn parsed<T: FromStr<Err: Display>>(&self, column: &str) -> Result<T> {
        let text = self.needed(column)?;
        text.parse().map_err(|e| self.bad(column, format!("{text:?} is {e}")))
    }

    pub(super) fn status<T: FromStr<Err: Display>>(&self, ledger: Ledger, statuses: &Statuses) -> Result<T> {
        let value = self.needed("status")?;
        let name =
            statuses.name(ledger, &value).map_err(|e| self.bad("status", format!("{value:?} is {e}")))?;
        name.parse().map_err(|e| self.bad("status", format!("{value:?} is {e}")))
    }

    /// An amount: from the column `NAME_minor` in minor units, else from `NAME_major`, a decimal text
    /// in major units that must be exact in the currency's decimals.
    fn amount(&self, name: &str, currency: Currency) -> Result<i64> {
        let (minor, major) = (format!("{name}_minor"), format!("{name}_major"));
        if self.row.has(&minor) {
            return self.at_least(&minor, 0);
        }
        let text = self.needed(&major)?;
        currency
            .minor_of_decimal(&text)
            .filter(|amount| *amount >= 0)
            .ok_or_else(|| self.bad(&major, format!("{text:?} is no exact amount of {currency}")))
    }

    pub(super) fn int_or_null(&self, column: &str) -> Result<Option<i64>> {
        self.row.int(column).map_err(|why| self.bad(column, why))
    }

    pub(super) fn int(&self, column: &str) -> Result<i64> {
        self.int_or_null(column)?.ok_or_else(|| self.bad(column, "is null"))
    }

    fn at_least(&self, column: &str, least: i64) -> Result<i64> {
        let value = self.int(column)?;
        if value < least {
            return Err(self.bad(column, format!("{value} is less than {least}")));
        }
        Ok(value)
    }

    pub(super) fn time(&self, column: &str) -> Result<Timestamp> {
        self.int(column).map(Timestamp::from_micros)
    }

    pub(super) fn time_or_null(&self, column: &str) -> Result<Option<Timestamp>> {
        Ok(self.int_or_null(column)?.map(Timestamp::from_micros))
    }
}

fn buyer(tenant_id: &TenantId, show_id: Option<&ShowId>, user_id: Option<&UserId>) -> Option<Buyer> {
    Some(Buyer { tenant_id: tenant_id.clone(), show_id: show_id?.clone(), user_id: user_id?.clone() })
}

/// Under which tenant and id a row is found, and among which of all rows.
macro_rules! row_key {
    ($id:ident, $ledger:ident) => {
        fn of(rows: &dyn Rows) -> Portions<'_, Self> {
            rows.$ledger()
        }

        fn tenant_id(&self) -> &TenantId {
            &self.tenant_id
        }

        fn row_id(&self) -> RowId {
            (&self.$id).into()
        }
    };
}

impl LedgerRow for Order {
    const LEDGER: Ledger = Ledger::Orders;
    const ID: &'static str = "order_id";
    const COLUMNS: &'static [&'static str] = &[
        "order_id",
        "tenant_id",
        "user_id",
        "show_id",
        "session_id",
        "idempotency_key",
        "item",
        "quantity",
        "amount_minor",
        "currency",
        "status",
        "source",
        "trace_id",
        "created_at_us",
        "version",
    ];

    fn decode(row: Row<'_>, shard: Shard, statuses: &Statuses) -> Result<Self> {
        let r = Reader::of(row, Self::LEDGER, Self::ID);
        let currency = r.parsed("currency")?;
        Ok(Self {
            order_id: r.ledger_id("order_id")?,
            tenant_id: r.ledger_id("tenant_id")?,
            user_id: r.ledger_id("user_id")?,
            show_id: r.ledger_id("show_id")?,
            session_id: r.ledger_id_or_null("session_id")?,
            idempotency_key: r.ledger_id_or_null("idempotency_key")?,
            item: r.ledger_id_or_null("item")?,
            quantity: r.at_least("quantity", 1)?,
            amount_minor: r.amount("amount", currency)?,
            currency,
            status: r.status(Self::LEDGER, statuses)?,
            source: r.text("source")?,
            trace_id: r.ledger_id_or_null("trace_id")?,
            created_at: r.time("created_at_us")?,
            version: r.id("version")?,
            shard,
        })
    }

    fn values(&self) -> impl Iterator<Item = (&'static str, Field<'_>)> {
        [
            ("order_id", self.order_id.as_str().into()),
            ("tenant_id", self.tenant_id.as_str().into()),
            ("user_id", self.user_id.as_str().into()),
            ("show_id", self.show_id.as_str().into()),
            ("session_id", self.session_id.as_ref().map(SessionId::as_str).into()),
            ("idempotency_key", self.idempotency_key.as_ref().map(IdempotencyKey::as_str).into()),
            ("item", self.item.as_ref().map(Item::as_str).into()),
            ("quantity", self.quantity.into()),
            ("amount_minor", self.amount_minor.into()),
            ("currency", self.currency.code().into()),
            ("status", self.status.as_str().into()),
            ("source", self.source.as_deref().into()),
            ("trace_id", self.trace_id.as_deref().into()),
            ("created_at", self.created_at.micros().into()),
            ("version", self.version.as_str().into()),
        ]
        .into_iter()
    }

    row_key!(order_id, orders);

    fn order_id(&self) -> Option<&OrderId> {
        Some(&self.order_id)
    }

    fn buyer(&self) -> Option<Buyer> {
        buyer(&self.tenant_id, Some(&self.show_id), Some(&self.user_id))
    }
}

impl LedgerRow for Payment {
    const LEDGER: Ledger = Ledger::Payments;
    const ID: &'static str = "payment_id";
    const COLUMNS: &'static [&'static str] = &[
        "payment_id",
        "tenant_id",
        "order_id",
        "user_id",
        "show_id",
        "session_id",
        "amount_minor",
        "refunded_minor",
        "currency",
        "provider",
        "provider_txn_id",
        "status",
        "created_at_us",
        "captured_at_us",
        "version",
    ];

    fn decode(row: Row<'_>, shard: Shard, statuses: &Statuses) -> Result<Self> {
        let r = Reader::of(row, Self::LEDGER, Self::ID);
        let currency = r.parsed("currency")?;
        Ok(Self {
            payment_id: r.ledger_id("payment_id")?,
            tenant_id: r.ledger_id("tenant_id")?,
            order_id: r.ledger_id_or_null("order_id")?,
            user_id: r.ledger_id("user_id")?,
            show_id: r.ledger_id("show_id")?,
            session_id: r.ledger_id_or_null("session_id")?,
            amount_minor: r.amount("amount", currency)?,
            refunded_minor: r.amount("refunded", currency)?,
            currency,
            provider: r.needed("provider")?,
            provider_txn_id: r.ledger_id_or_null("provider_txn_id")?,
            status: r.status(Self::LEDGER, statuses)?,
            created_at: r.time("created_at_us")?,
            captured_at: r.time_or_null("captured_at_us")?,
            version: r.id("version")?,
            shard,
        })
    }

    fn values(&self) -> impl Iterator<Item = (&'static str, Field<'_>)> {
        [
            ("payment_id", self.payment_id.as_str().into()),
            ("tenant_id", self.tenant_id.as_str().into()),
            ("order_id", self.order_id.as_ref().map(OrderId::as_str).into()),
            ("user_id", self.user_id.as_str().into()),
            ("show_id", self.show_id.as_str().into()),
            ("session_id", self.session_id.as_ref().map(SessionId::as_str).into()),
            ("amount_minor", self.amount_minor.into()),
            ("refunded_minor", self.refunded_minor.into()),
            ("currency", self.currency.code().into()),
            ("provider", self.provider.as_str().into()),
            ("provider_txn_id", self.provider_txn_id.as_deref().into()),
            ("status", self.status.as_str().into()),
            ("created_at", self.created_at.micros().into()),
            ("captured_at", self.captured_at.map(Timestamp::micros).into()),
            ("version", self.version.as_str().into()),
        ]
        .into_iter()
    }

    row_key!(payment_id, payments);

    fn order_id(&self) -> Option<&OrderId> {
        self.order_id.as_ref()
    }

    fn buyer(&self) -> Option<Buyer> {
        buyer(&self.tenant_id, Some(&self.show_id), Some(&self.user_id))
    }
}

impl LedgerRow for Hold {
    const LEDGER: Ledger = Ledger::Inventory;
    const ID: &'static str = "hold_id";
    const COLUMNS: &'static [&'static str] = &[
        "hold_id",
        "tenant_id",
        "order_id",
        "user_id",
        "show_id",
        "session_id",
        "item",
        "quantity",
        "status",
        "created_at_us",
        "expires_at_us",
        "version",
    ];

    fn decode(row: Row<'_>, shard: Shard, statuses: &Statuses) -> Result<Self> {
        let r = Reader::of(row, Self::LEDGER, Self::ID);
        Ok(Self {
            hold_id: r.ledger_id("hold_id")?,
            tenant_id: r.ledger_id("tenant_id")?,
            order_id: r.ledger_id_or_null("order_id")?,
            user_id: r.ledger_id("user_id")?,
            show_id: r.ledger_id("show_id")?,
            session_id: r.ledger_id_or_null("session_id")?,
            item: r.ledger_id_or_null("item")?,
            quantity: r.at_least("quantity", 1)?,
            status: r.status(Self::LEDGER, statuses)?,
            created_at: r.time("created_at_us")?,
            expires_at: r.time_or_null("expires_at_us")?,
            version: r.id("version")?,
            shard,
        })
    }

    fn values(&self) -> impl Iterator<Item = (&'static str, Field<'_>)> {
        [
            ("hold_id", self.hold_id.as_str().into()),
            ("tenant_id", self.tenant_id.as_str().into()),
            ("order_id", self.order_id.as_ref().map(OrderId::as_str).into()),
            ("user_id", self.user_id.as_str().into()),
            ("show_id", self.show_id.as_str().into()),
            ("session_id", self.session_id.as_ref().map(SessionId::as_str).into()),
            ("item", self.item.as_ref().map(Item::as_str).into()),
            ("quantity", self.quantity.into()),
            ("status", self.status.as_str().into()),
            ("created_at", self.created_at.micros().into()),
            ("expires_at", self.expires_at.map(Timestamp::micros).into()),
            ("version", self.version.as_str().into()),
        ]
        .into_iter()
    }

    row_key!(hold_id, inventory);

    fn order_id(&self) -> Option<&OrderId> {
        self.order_id.as_ref()
    }

    fn buyer(&self) -> Option<Buyer> {
        buyer(&self.tenant_id, Some(&self.show_id), Some(&self.user_id))
    }
}

impl LedgerRow for Message {
    const LEDGER: Ledger = Ledger::Messages;
    const ID: &'static str = "message_id";
    const COLUMNS: &'static [&'static str] = &[
        "message_id",
        "tenant_id",
        "message_key",
        "topic",
        "order_id",
        "user_id",
        "show_id",
        "session_id",
        "status",
        "attempts",
        "trace_id",
        "created_at_us",
        "version",
    ];

    fn decode(row: Row<'_>, shard: Shard, statuses: &Statuses) -> Result<Self> {
        let r = Reader::of(row, Self::LEDGER, Self::ID);
        Ok(Self {
            message_id: r.ledger_id("message_id")?,
            tenant_id: r.ledger_id("tenant_id")?,
            message_key: r.ledger_id_or_null("message_key")?,
            topic: r.needed("topic")?,
            order_id: r.ledger_id_or_null("order_id")?,
            user_id: r.ledger_id_or_null("user_id")?,
            show_id: r.ledger_id_or_null("show_id")?,
            session_id: r.ledger_id_or_null("session_id")?,
            status: r.status(Self::LEDGER, statuses)?,
            attempts: r.at_least("attempts", 0)?,
            trace_id: r.ledger_id_or_null("trace_id")?,
            created_at: r.time("created_at_us")?,
            version: r.id("version")?,
            shard,
        })
    }

    fn values(&self) -> impl Iterator<Item = (&'static str, Field<'_>)> {
        [
            ("message_id", self.message_id.as_str().into()),
            ("tenant_id", self.tenant_id.as_str().into()),
            ("message_key", self.message_key.as_deref().into()),
            ("topic", self.topic.as_str().into()),
            ("order_id", self.order_id.as_ref().map(OrderId::as_str).into()),
            ("user_id", self.user_id.as_ref().map(UserId::as_str).into()),
            ("show_id", self.show_id.as_ref().map(ShowId::as_str).into()),
            ("session_id", self.session_id.as_ref().map(SessionId::as_str).into()),
            ("status", self.status.as_str().into()),
            ("attempts", self.attempts.into()),
            ("trace_id", self.trace_id.as_deref().into()),
            ("created_at", self.created_at.micros().into()),
            ("version", self.version.as_str().into()),
        ]
        .into_iter()
    }

    row_key!(message_id, messages);

    fn order_id(&self) -> Option<&OrderId> {
        self.order_id.as_ref()
    }

    fn buyer(&self) -> Option<Buyer> {
        buyer(&self.tenant_id, self.show_id.as_ref(), self.user_id.as_ref())
    }
}
