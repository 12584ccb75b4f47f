//! The table of the contract's section 1: for each ledger its columns, what stands in their cells
//! and whether they may be empty. Reading, writing and the texts of errors all follow it.

use Kind::*;
use Need::*;

use super::cells::{Cell, Cells};
use crate::core::ids::DEFAULT_TENANT;
use crate::core::ledger::{Hold, Message, Order, Payment};
use crate::core::status::Ledger;

/// What stands in a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Opaque text that names something: never trimmed unasked, refused where a tool has changed it.
    Id,
    /// Text that is compared byte for byte, but that nobody takes for a number: never trimmed unasked.
    Name,
    /// Text for people.
    Text,
    /// A whole number, at least this one.
    Count(i64),
    /// Money of the row's currency, at least 0.
    Amount,
    /// A code of ISO 4217.
    Currency,
    /// A status of the ledger's machine.
    Status,
    /// An instant.
    Time,
}

impl Kind {
    /// Whether blanks around the value mean nothing.
    pub const fn drops_blanks(self) -> bool {
        matches!(self, Count(_) | Amount | Currency | Status | Time)
    }
}

/// What an empty cell, or a file without the column, means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It is refused.
    Required,
    /// It is null.
    Nullable,
    /// It is this value.
    Default(&'static str),
}

/// One column of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub need: Need,
}

/// The columns of a ledger, in the contract's order.
pub const fn columns(ledger: Ledger) -> &'static [Column] {
    match ledger {
        Ledger::Orders => Order::COLUMNS,
        Ledger::Payments => Payment::COLUMNS,
        Ledger::Inventory => Hold::COLUMNS,
        Ledger::Messages => Message::COLUMNS,
    }
}

/// A row of a ledger that has a file.
pub(super) trait FileRow: Sized + Send {
    const LEDGER: Ledger;
    /// The first is the row's id, the second its tenant.
    const COLUMNS: &'static [Column];

    /// Takes the cells in the order of the columns; `None` where one is at fault.
    fn read(cells: &mut Cells<'_, '_>) -> Option<Self>;

    fn write(&self, record: &mut csv::StringRecord);

    /// Tenant and id: at most one row of a ledger has both.
    fn key(&self) -> (&str, &str);
}

macro_rules! table {
    ($row:ident in $ledger:ident { $id:ident: Id, Required; $($field:ident: $kind:expr, $need:expr;)+ }) => {
        impl FileRow for $row {
            const LEDGER: Ledger = Ledger::$ledger;
            const COLUMNS: &'static [Column] = &[
                Column { name: stringify!($id), kind: Id, need: Required },
                $(Column { name: stringify!($field), kind: $kind, need: $need },)+
            ];

            fn read(cells: &mut Cells<'_, '_>) -> Option<Self> {
                let $id = cells.take();
                $(let $field = cells.take();)+
                Some(Self { $id: $id?, $($field: $field?,)+ shard: cells.shard()? })
            }

            fn write(&self, record: &mut csv::StringRecord) {
                record.clear();
                record.push_field(self.$id.as_str());
                $(record.push_field(&self.$field.text());)+
            }

            fn key(&self) -> (&str, &str) {
                (self.tenant_id.as_str(), self.$id.as_str())
            }
        }
    };
}

table!(Order in Orders {
    order_id: Id, Required;
    tenant_id: Id, Default(DEFAULT_TENANT);
    user_id: Id, Required;
    show_id: Id, Required;
    session_id: Id, Nullable;
    idempotency_key: Id, Nullable;
    item: Name, Nullable;
    quantity: Count(1), Required;
    amount_minor: Amount, Required;
    currency: Currency, Required;
    status: Status, Required;
    source: Text, Nullable;
    trace_id: Id, Nullable;
    created_at: Time, Required;
    version: Name, Default("1");
});

table!(Payment in Payments {
    payment_id: Id, Required;
    tenant_id: Id, Default(DEFAULT_TENANT);
    order_id: Id, Nullable;
    user_id: Id, Required;
    show_id: Id, Required;
    session_id: Id, Nullable;
    amount_minor: Amount, Required;
    refunded_minor: Amount, Default("0");
    currency: Currency, Required;
    provider: Name, Required;
    provider_txn_id: Id, Nullable;
    status: Status, Required;
    created_at: Time, Required;
    captured_at: Time, Nullable;
    version: Name, Default("1");
});

table!(Hold in Inventory {
    hold_id: Id, Required;
    tenant_id: Id, Default(DEFAULT_TENANT);
    order_id: Id, Nullable;
    user_id: Id, Required;
    show_id: Id, Required;
    session_id: Id, Nullable;
    item: Name, Nullable;
    quantity: Count(1), Required;
    status: Status, Required;
    created_at: Time, Required;
    expires_at: Time, Nullable;
    version: Name, Default("1");
});

table!(Message in Messages {
    message_id: Id, Required;
    tenant_id: Id, Default(DEFAULT_TENANT);
    message_key: Id, Nullable;
    topic: Name, Required;
    order_id: Id, Nullable;
    user_id: Id, Nullable;
    show_id: Id, Nullable;
    session_id: Id, Nullable;
    status: Status, Required;
    attempts: Count(0), Default("0");
    trace_id: Id, Nullable;
    created_at: Time, Required;
    version: Name, Default("1");
});
