//! Database rows to the core's rows and back. A row that the contract does not allow is an error
//! that names ledger, row, column and value.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::Display;
use std::str::FromStr;

use sqlx::any::{Any, AnyRow, AnyTypeInfoKind, AnyValueRef};
use sqlx::{Decode, Row as _, ValueRef as _};

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

    /// # Errors
    /// Usage, naming row, column and value, where the contract does not allow what it says.
    fn decode<'r>(row: impl Into<Row<'r>>, shard: Shard, statuses: &Statuses) -> Result<Self>;

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

/// What no column of a ledger holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Other {
    Bool(bool),
    Real(f64),
    /// Bytes that are no UTF-8 text.
    Bytes,
}

impl Other {
    /// That it stands where something else is needed.
    fn is_no(self, needed: &str) -> String {
        match self {
            Self::Bool(value) => format!("{value} is no {needed}"),
            Self::Real(value) => format!("{value} is no {needed}"),
            Self::Bytes => "not UTF-8 text".to_owned(),
        }
    }
}

/// What stands in a column of a row.
pub type Given<'r> = Result<Field<'r>, Other>;

/// Of text that a database gives as bytes, as some do with a binary collation.
pub(super) fn text_of(bytes: &[u8]) -> Given<'_> {
    std::str::from_utf8(bytes).map(Field::Text).map_err(|_| Other::Bytes)
}

/// The names of the columns that a SELECT gives; of two that have the same, the last one has it.
#[derive(Debug, Default)]
pub(super) struct Columns(Vec<String>);

impl Columns {
    pub(super) fn named<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut columns: Vec<String> = Vec::new();
        for name in names {
            columns.iter_mut().filter(|other| *other == name).for_each(String::clear);
            columns.push(name.to_owned());
        }
        Self(columns)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where a column is. It is looked for from a place on, since most are read in their order.
    fn find(&self, name: &str, from: usize) -> Option<usize> {
        let (before, after) = self.0.split_at(from.min(self.0.len()));
        let place = |names: &[String]| names.iter().position(|other| other == name);
        place(after).map(|at| before.len() + at).or_else(|| place(before))
    }
}

/// A row of a session.
#[derive(Clone, Copy, Debug)]
pub struct SessionRow<'a> {
    pub(super) columns: &'a Columns,
    pub(super) values: &'a [Given<'a>],
}

/// What a row says, by the names of its columns.
#[derive(Clone, Copy)]
pub enum Row<'a> {
    Session(SessionRow<'a>),
    /// As the common driver gives it, in a transaction.
    Common(&'a AnyRow),
}

impl<'a> From<SessionRow<'a>> for Row<'a> {
    fn from(row: SessionRow<'a>) -> Self {
        Self::Session(row)
    }
}

impl<'a> From<&'a AnyRow> for Row<'a> {
    fn from(row: &'a AnyRow) -> Self {
        Self::Common(row)
    }
}

fn common(value: AnyValueRef<'_>) -> sqlx::Result<Given<'_>> {
    fn decoded<'r, T: Decode<'r, Any>>(value: AnyValueRef<'r>) -> sqlx::Result<T> {
        T::decode(value).map_err(sqlx::Error::Decode)
    }
    use AnyTypeInfoKind::*;
    if value.is_null() {
        return Ok(Ok(Field::Null));
    }
    Ok(match value.type_info().kind() {
        Null => Ok(Field::Null),
        Text => Ok(Field::Text(decoded(value)?)),
        SmallInt | Integer | BigInt => Ok(Field::Int(decoded(value)?)),
        Blob => text_of(decoded(value)?),
        Real | Double => Err(Other::Real(decoded(value)?)),
        Bool => Err(Other::Bool(decoded(value)?)),
    })
}

/// Reads columns of one row, naming the row where one is not as it must be.
pub(super) struct Reader<'a> {
    row: Row<'a>,
    /// After the column that was read last.
    next: Cell<usize>,
    what: Cow<'a, str>,
    /// The column that tells which row of `what` it is.
    id: Option<&'static str>,
    /// What to do where it is not as it must be.
    hint: &'static str,
}

const OF_LEDGERS: &str = "correct the row, or what reads it: ledgers/*.sql, and [status.…] of the configuration; or leave \
                          it out with a narrower scope: --show, --user, --from, --to";

impl<'a> Reader<'a> {
    pub(super) fn new(row: impl Into<Row<'a>>, what: impl Into<Cow<'a, str>>) -> Self {
        Self { row: row.into(), next: Cell::new(0), what: what.into(), id: None, hint: OF_LEDGERS }
    }

    /// Of rows that no ledger has.
    pub(super) fn hinting(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    fn of<T: LedgerRow>(row: impl Into<Row<'a>>) -> Self {
        Self { id: Some(T::ID), ..Self::new(row, T::LEDGER.row_name()) }
    }

    pub(super) fn bad(&self, column: &str, problem: impl Display) -> Error {
        let mut what = self.what.to_string();
        if let Some(id) = self.id {
            let id = self.found_text(id).ok().flatten().unwrap_or("?");
            what = format!("{what} {}", id.escape_debug());
        }
        Error::usage(format!("{what}, column {column}: {problem}")).hint(self.hint)
    }

    fn has(&self, column: &str) -> bool {
        match self.row {
            Row::Session(row) => row.columns.find(column, self.next.get()).is_some(),
            Row::Common(row) => row.try_column(column).is_ok(),
        }
    }

    fn given(&self, column: &str) -> Result<Given<'a>, String> {
        match self.row {
            Row::Session(row) => {
                let at = row.columns.find(column, self.next.get());
                let at = at.ok_or_else(|| sqlx::Error::ColumnNotFound(column.to_owned()).to_string())?;
                self.next.set(at + 1);
                Ok(row.values[at])
            }
            Row::Common(row) => row.try_get_raw(column).and_then(common).map_err(|e| e.to_string()),
        }
    }

    /// # Errors
    /// Why there is no text in this column, nor nothing.
    fn found_text(&self, column: &str) -> Result<Option<&'a str>, String> {
        match self.given(column)? {
            Ok(Field::Null) => Ok(None),
            Ok(Field::Text(text)) => Ok(Some(text)),
            Ok(Field::Int(int)) => Err(format!("{int} is no text")),
            Err(other) => Err(other.is_no("text")),
        }
    }

    /// # Errors
    /// Why there is no whole number in this column, nor nothing.
    fn found_int(&self, column: &str) -> Result<Option<i64>, String> {
        match self.given(column)? {
            Ok(Field::Null) => Ok(None),
            Ok(Field::Int(int)) => Ok(Some(int)),
            Ok(Field::Text(text)) => Err(format!("{text:?} is no whole number")),
            Err(other) => Err(other.is_no("whole number")),
        }
    }

    fn text_or_null(&self, column: &str) -> Result<Option<&'a str>> {
        self.found_text(column).map_err(|why| self.bad(column, why))
    }

    fn needed_text(&self, column: &str) -> Result<&'a str> {
        self.text_or_null(column)?.ok_or_else(|| self.bad(column, "is null"))
    }

    pub(super) fn text(&self, column: &str) -> Result<Option<String>> {
        Ok(self.text_or_null(column)?.map(str::to_owned))
    }

    pub(super) fn needed(&self, column: &str) -> Result<String> {
        self.needed_text(column).map(str::to_owned)
    }

    pub(super) fn id<T: for<'s> From<&'s str>>(&self, column: &str) -> Result<T> {
        self.needed_text(column).map(T::from)
    }

    pub(super) fn id_or_null<T: for<'s> From<&'s str>>(&self, column: &str) -> Result<Option<T>> {
        Ok(self.text_or_null(column)?.map(T::from))
    }

    /// An id of a ledger: a blank one names nothing, and would make all such rows one.
    fn ledger_id<T: for<'s> From<&'s str>>(&self, column: &str) -> Result<T> {
        self.ledger_id_or_null(column)?.ok_or_else(|| self.bad(column, "is null or blank"))
    }

    /// As [`Self::ledger_id`], where there may be none: sites write `NOT NULL DEFAULT ''`.
    fn ledger_id_or_null<T: for<'s> From<&'s str>>(&self, column: &str) -> Result<Option<T>> {
        Ok(self.text_or_null(column)?.filter(|id| !id.trim().is_empty()).map(T::from))
    }

    /// Whose row it is, where it names all three.
    pub(super) fn buyer(&self) -> Option<Buyer> {
        let id = |column| self.found_text(column).ok().flatten().filter(|id| !id.trim().is_empty());
        let (tenant_id, show_id, user_id) = (id("tenant_id")?, id("show_id")?, id("user_id")?);
        Some(Buyer { tenant_id: tenant_id.into(), show_id: show_id.into(), user_id: user_id.into() })
    }

    pub(super) fn parsed<T: FromStr<Err: Display>>(&self, column: &str) -> Result<T> {
        let text = self.needed_text(column)?;
        text.parse().map_err(|e| self.bad(column, format!("{text:?} is {e}")))
    }

    pub(super) fn status<T: FromStr<Err: Display>>(&self, ledger: Ledger, statuses: &Statuses) -> Result<T> {
        let value = self.needed_text("status")?;
        let name =
            statuses.name(ledger, value).map_err(|e| self.bad("status", format!("{value:?} is {e}")))?;
        name.parse().map_err(|e| self.bad("status", format!("{value:?} is {e}")))
    }

    /// An amount: from the column `minor` in minor units, else from the column `major`, a decimal text
    /// in major units that must be exact in the currency's decimals.
    fn amount(&self, [minor, major]: [&str; 2], currency: Currency) -> Result<i64> {
        if self.has(minor) {
            return self.at_least(minor, 0);
        }
        let text = self.needed_text(major)?;
        currency
            .minor_of_decimal(text)
            .filter(|amount| *amount >= 0)
            .ok_or_else(|| self.bad(major, format!("{text:?} is no exact amount of {currency}")))
    }

    pub(super) fn int_or_null(&self, column: &str) -> Result<Option<i64>> {
        self.found_int(column).map_err(|why| self.bad(column, why))
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

/// The two columns in either of which an amount may stand.
const AMOUNT: [&str; 2] = ["amount_minor", "amount_major"];
const REFUNDED: [&str; 2] = ["refunded_minor", "refunded_major"];

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

    fn decode<'r>(row: impl Into<Row<'r>>, shard: Shard, statuses: &Statuses) -> Result<Self> {
        let r = Reader::of::<Self>(row);
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
            amount_minor: r.amount(AMOUNT, currency)?,
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

    fn decode<'r>(row: impl Into<Row<'r>>, shard: Shard, statuses: &Statuses) -> Result<Self> {
        let r = Reader::of::<Self>(row);
        let currency = r.parsed("currency")?;
        Ok(Self {
            payment_id: r.ledger_id("payment_id")?,
            tenant_id: r.ledger_id("tenant_id")?,
            order_id: r.ledger_id_or_null("order_id")?,
            user_id: r.ledger_id("user_id")?,
            show_id: r.ledger_id("show_id")?,
            session_id: r.ledger_id_or_null("session_id")?,
            amount_minor: r.amount(AMOUNT, currency)?,
            refunded_minor: r.amount(REFUNDED, currency)?,
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

    fn decode<'r>(row: impl Into<Row<'r>>, shard: Shard, statuses: &Statuses) -> Result<Self> {
        let r = Reader::of::<Self>(row);
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

    fn decode<'r>(row: impl Into<Row<'r>>, shard: Shard, statuses: &Statuses) -> Result<Self> {
        let r = Reader::of::<Self>(row);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_found_wherever_it_stands_and_of_two_of_one_name_the_last() {
        let columns = Columns::named(["a", "b", "a"]);
        for from in 0..5 {
            assert_eq!(["a", "b", "c"].map(|name| columns.find(name, from)), [Some(2), Some(1), None]);
        }
    }

    #[test]
    fn what_is_not_as_it_must_be_is_told_by_row_column_and_value() {
        let columns = Columns::named(["order_id", "real", "int", "text", "bytes"]);
        let values = [
            Ok(Field::Text("O-1")),
            Err(Other::Real(1.5)),
            Ok(Field::Int(7)),
            Ok(Field::Text("x")),
            text_of(b"\xff"),
        ];
        let r = Reader::of::<Order>(SessionRow { columns: &columns, values: &values });
        let told = |error: Error| error.message;
        assert_eq!(told(r.text("real").unwrap_err()), "order O-1, column real: 1.5 is no text");
        assert_eq!(told(r.text("int").unwrap_err()), "order O-1, column int: 7 is no text");
        assert_eq!(told(r.int("text").unwrap_err()), "order O-1, column text: \"x\" is no whole number");
        assert_eq!(told(r.text("bytes").unwrap_err()), "order O-1, column bytes: not UTF-8 text");
        assert_eq!(told(r.text("no").unwrap_err()), "order O-1, column no: no column found for name: no");
    }
}
