//! Ids: opaque text, compared byte for byte, never parsed and never trimmed (contract, section 1).
//!
//! Each kind of id is a type of its own, so that a payment id cannot stand where an order id is
//! meant. All are cheap to clone: up to [`INLINE`] bytes stand in the value itself, longer ones are shared.

use std::fmt;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// The tenant of a row that names none (contract, section 1).
pub const DEFAULT_TENANT: &str = "default";

/// How many bytes of an id stand in the value itself.
pub const INLINE: usize = 23;

macro_rules! id_type {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(SmolStr);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.as_str())
            }
        }
    )+};
}

id_type!(
    TenantId,
    UserId,
    /// The performance on sale.
    ShowId,
    /// The client session.
    SessionId,
    /// The seat or ticket tier.
    Item,
    OrderId,
    PaymentId,
    HoldId,
    MessageId,
    /// A key that the client sent with its order, the same for each retry of one request.
    IdempotencyKey,
    /// The id of a row of any of the four ledgers, where the ledger stands beside it.
    RowId,
    /// A row's optimistic-lock token: compared, never computed.
    Version,
);

macro_rules! into_row_id {
    ($($name:ident),+) => {$(
        impl From<&$name> for RowId {
            fn from(id: &$name) -> Self {
                Self(id.0.clone())
            }
        }
    )+};
}

into_row_id!(OrderId, PaymentId, HoldId, MessageId);
