//! Who moves money. A provider is asked under a key of ours that belongs to the effect; asking
//! again under the same key never moves it twice.

pub mod sandbox;

use std::fmt;

use crate::core::ids::*;
use crate::core::money::Currency;
use crate::core::time::Timestamp;
use crate::error::Result;
use crate::store::Store;

/// What is asked of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Give back this much, in the currency's minor unit.
    Refund { amount_minor: i64, currency: Currency },
    /// Let go of an authorization.
    Void,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refund { .. } => "refund",
            Self::Void => "void",
        })
    }
}

/// A charge as the payment ledger describes it to the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    pub tenant_id: TenantId,
    pub payment_id: PaymentId,
    pub provider: String,
    pub provider_txn_id: Option<String>,
    pub amount_minor: i64,
    pub refunded_minor: i64,
    pub currency: Currency,
}

/// What a provider answers about a request.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The money has moved.
    Done,
    /// It has taken the request, and will finish it.
    Accepted,
    /// It refuses for good, and says why. Nothing moved.
    Refused(String),
    /// The request never left us: nothing moved, and it may be sent.
    NotSent(String),
    /// The request may have left, and no answer arrived: the money may have moved.
    Unknown(String),
}

/// What a provider says of a charge.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChargeState {
    Authorized,
    /// Captured, of which `refunded_minor` has been given back; all of it when it equals the amount.
    /// `refund_refused`: a refund was asked for and the provider refused it, and says so.
    Captured {
        captured_at: Option<Timestamp>,
        amount_minor: i64,
        refunded_minor: i64,
        currency: Currency,
        refund_refused: bool,
    },
    Failed,
    Voided,
    /// It was never told of such a charge, or cannot say.
    NotKnown,
}

/// The providers that there are.
#[derive(Clone, Copy, Debug)]
pub enum Provider<'a> {
    /// Moves no real money: a table that behaves as a provider.
    Sandbox(&'a Store),
}

impl Provider<'_> {
    /// What to call it in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sandbox(_) => "sandbox (no real money moves)",
        }
    }

    /// Sends a request. Its key is the effect's own, so sending it twice is the same as once.
    ///
    /// # Errors
    /// Only where our side failed before anything could have left; what is not known is an
    /// [`Answer::Unknown`].
    pub async fn send(self, key: &str, charge: &Charge, ask: Ask, now: Timestamp) -> Result<Answer> {
        match self {
            Self::Sandbox(store) => sandbox::send(store, key, charge, ask, now).await,
        }
    }

    /// Asks what became of a request; `None` when the provider knows no request of that key.
    pub async fn ask(self, key: &str, charge: &Charge, now: Timestamp) -> Result<Option<Answer>> {
        match self {
            Self::Sandbox(store) => sandbox::ask(store, key, charge, now).await,
        }
    }

    /// Asks what became of a charge.
    pub async fn charge_state(self, charge: &Charge) -> Result<ChargeState> {
        match self {
            Self::Sandbox(store) => sandbox::charge_state(store, charge).await,
        }
    }
}
