//! The four status machines: every legal move is listed, everything else is refused
//! (contract, section 1).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One of the four ledgers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ledger {
    Orders,
    Payments,
    Inventory,
    Messages,
}

impl Ledger {
    pub const ALL: [Self; 4] = [Self::Orders, Self::Payments, Self::Inventory, Self::Messages];

    /// The ledger's name, also its table in the embedded schema and its file without `.csv`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Orders => "orders",
            Self::Payments => "payments",
            Self::Inventory => "inventory",
            Self::Messages => "messages",
        }
    }

    /// What one row of it is called.
    pub const fn row_name(self) -> &'static str {
        match self {
            Self::Orders => "order",
            Self::Payments => "payment",
            Self::Inventory => "hold",
            Self::Messages => "message",
        }
    }

    /// The names of its statuses.
    pub const fn statuses(self) -> &'static [&'static str] {
        match self {
            Self::Orders => OrderStatus::NAMES,
            Self::Payments => PaymentStatus::NAMES,
            Self::Inventory => HoldStatus::NAMES,
            Self::Messages => MessageStatus::NAMES,
        }
    }

    /// Whether a row that was once `from` may be `to`: by no move, or by some.
    pub fn may_become(self, from: &str, to: &str) -> bool {
        let mut reached = vec![from];
        let mut next = 0;
        while let Some(at) = reached.get(next).copied() {
            if at == to {
                return true;
            }
            let further = self.statuses().iter().filter(|status| self.may_move(at, status));
            let further: Vec<_> = further.copied().filter(|status| !reached.contains(status)).collect();
            reached.extend(further);
            next += 1;
        }
        false
    }

    /// Whether its status machine has this move.
    pub fn may_move(self, from: &str, to: &str) -> bool {
        fn legal<S: FromStr + PartialEq>(moves: &[(S, S)], from: &str, to: &str) -> bool {
            match (from.parse(), to.parse()) {
                (Ok(from), Ok(to)) => moves.contains(&(from, to)),
                _ => false,
            }
        }
        match self {
            Self::Orders => legal(ORDER_MOVES, from, to),
            Self::Payments => legal(PAYMENT_MOVES, from, to),
            Self::Inventory => legal(HOLD_MOVES, from, to),
            Self::Messages => legal(MESSAGE_MOVES, from, to),
        }
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Ledger {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        Self::ALL.into_iter().find(|l| l.as_str() == text).ok_or_else(|| UnknownStatus {
            value: text.to_owned(),
            known: &["orders", "payments", "inventory", "messages"],
        })
    }
}

/// The text names no status of its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownStatus {
    pub value: String,
    /// Every status that there is.
    pub known: &'static [&'static str],
}

impl fmt::Display for UnknownStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not one of {}", self.known.join(", "))
    }
}

impl std::error::Error for UnknownStatus {}

macro_rules! status_type {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, ::serde::Serialize, ::serde::Deserialize)]
        pub enum $name {
            $($(#[$about])* #[serde(rename = $text)] $variant),+
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),+
                }
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::core::status::UnknownStatus;

            fn from_str(text: &str) -> Result<Self, $crate::core::status::UnknownStatus> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err($crate::core::status::UnknownStatus { value: text.to_owned(), known: Self::NAMES }),
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
pub(crate) use status_type;

status_type!(OrderStatus {
    PendingPayment = "PENDING_PAYMENT",
    Paid = "PAID",
    Ticketed = "TICKETED",
    Cancelling = "CANCELLING",
    Cancelled = "CANCELLED",
    Refunding = "REFUNDING",
    Refunded = "REFUNDED",
});

status_type!(PaymentStatus {
    Initiated = "INITIATED",
    Authorized = "AUTHORIZED",
    Captured = "CAPTURED",
    Failed = "FAILED",
    Unknown = "UNKNOWN",
    Voiding = "VOIDING",
    Voided = "VOIDED",
    Refunding = "REFUNDING",
    Refunded = "REFUNDED",
    Disputed = "DISPUTED",
    ChargedBack = "CHARGED_BACK",
});

status_type!(HoldStatus {
    Held = "HELD",
    Confirmed = "CONFIRMED",
    Released = "RELEASED",
    Expired = "EXPIRED",
});

status_type!(MessageStatus {
    Queued = "QUEUED",
    InFlight = "IN_FLIGHT",
    Consumed = "CONSUMED",
    Dead = "DEAD",
    Quarantined = "QUARANTINED",
});

impl OrderStatus {
    pub const fn is_live(self) -> bool {
        matches!(self, Self::PendingPayment | Self::Paid | Self::Ticketed)
    }

    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Cancelled | Self::Refunded)
    }

    pub const fn is_in_motion(self) -> bool {
        matches!(self, Self::Cancelling | Self::Refunding)
    }
}

impl MessageStatus {
    /// QUEUED, IN_FLIGHT or DEAD: somebody may still act on it.
    pub const fn is_unfinished(self) -> bool {
        matches!(self, Self::Queued | Self::InFlight | Self::Dead)
    }
}

pub const ORDER_MOVES: &[(OrderStatus, OrderStatus)] = {
    use OrderStatus::*;
    &[
        (PendingPayment, Paid),
        (PendingPayment, Cancelling),
        (Cancelling, Cancelled),
        (Paid, Ticketed),
        (Paid, Refunding),
        (Ticketed, Refunding),
        (Refunding, Refunded),
    ]
};

pub const PAYMENT_MOVES: &[(PaymentStatus, PaymentStatus)] = {
    use PaymentStatus::*;
    &[
        (Initiated, Authorized),
        (Initiated, Captured),
        (Initiated, Failed),
        (Initiated, Unknown),
        (Unknown, Authorized),
        (Unknown, Captured),
        (Unknown, Failed),
        (Authorized, Captured),
        (Authorized, Voiding),
        (Voiding, Voided),
        (Captured, Refunding),
        (Refunding, Refunded),
        // The provider refused, and said so.
        (Voiding, Authorized),
        (Refunding, Captured),
        (Captured, Disputed),
        (Disputed, Captured),
        (Disputed, ChargedBack),
    ]
};

pub const HOLD_MOVES: &[(HoldStatus, HoldStatus)] = {
    use HoldStatus::*;
    &[(Held, Confirmed), (Held, Released), (Held, Expired), (Confirmed, Released)]
};

pub const MESSAGE_MOVES: &[(MessageStatus, MessageStatus)] = {
    use MessageStatus::*;
    &[
        (Queued, InFlight),
        (InFlight, Consumed),
        (InFlight, Queued),
        (InFlight, Dead),
        (Queued, Quarantined),
        (InFlight, Quarantined),
        (Dead, Quarantined),
        // Released on purpose.
        (Quarantined, Queued),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Every ordered pair of the names that the machine has, and how many of them are moves.
    fn moves_of(ledger: Ledger, names: &[&str]) -> usize {
        names
            .iter()
            .flat_map(|from| names.iter().map(move |to| (from, to)))
            .filter(|(from, to)| ledger.may_move(from, to))
            .count()
    }

    #[test]
    fn only_the_listed_moves_are_legal() {
        assert_eq!(moves_of(Ledger::Orders, OrderStatus::NAMES), 7);
        assert_eq!(moves_of(Ledger::Payments, PaymentStatus::NAMES), 17);
        assert_eq!(moves_of(Ledger::Inventory, HoldStatus::NAMES), 4);
        assert_eq!(moves_of(Ledger::Messages, MessageStatus::NAMES), 8);
    }

    #[test]
    fn a_terminal_order_never_moves_and_no_row_moves_to_where_it_is() {
        for &to in OrderStatus::NAMES {
            assert!(!Ledger::Orders.may_move("CANCELLED", to));
            assert!(!Ledger::Orders.may_move("REFUNDED", to));
            assert!(!Ledger::Orders.may_move(to, to));
        }
        assert!(!Ledger::Orders.may_move("nonsense", "PAID"));
    }

    #[test]
    fn an_order_is_live_or_terminal_or_in_motion() {
        for &status in OrderStatus::ALL {
            let kinds = [status.is_live(), status.is_terminal(), status.is_in_motion()];
            assert_eq!(kinds.iter().filter(|k| **k).count(), 1, "{status}");
        }
    }
}
