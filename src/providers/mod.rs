//! Who moves money. A provider is asked under a key of ours that belongs to the effect; asking
//! again under the same key never moves it twice.

pub mod exec;
pub mod http;
pub mod outbox;
pub mod sandbox;
pub mod settings;

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;

use crate::core::ids::*;
use crate::core::ledger::{Payment, Shard};
use crate::core::money::Currency;
use crate::core::time::{Span, Timestamp};
use crate::error::{Error, Result};

/// What is asked of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Give back this much, in the currency's minor unit.
    Refund { amount_minor: i64, currency: Currency },
    /// Let go of an authorization.
    Void,
}

impl Ask {
    /// What goes back, in the minor unit; none for a void.
    pub const fn refund_minor(self) -> Option<i64> {
        match self {
            Self::Refund { amount_minor, .. } => Some(amount_minor),
            Self::Void => None,
        }
    }
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
    /// In the currency's minor unit, as is what of it was given back before.
    pub amount_minor: i64,
    pub refunded_minor: i64,
    pub currency: Currency,
    /// Where the payment's row lies.
    pub shard: Shard,
}

impl From<&Payment> for Charge {
    fn from(payment: &Payment) -> Self {
        Self {
            tenant_id: payment.tenant_id.clone(),
            payment_id: payment.payment_id.clone(),
            provider: payment.provider.clone(),
            provider_txn_id: payment.provider_txn_id.clone(),
            amount_minor: payment.amount_minor,
            refunded_minor: payment.refunded_minor,
            currency: payment.currency,
            shard: payment.shard,
        }
    }
}

/// One request: the same key is always about the same effect, with the same amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// At most 64 characters.
    pub key: String,
    pub charge: Charge,
    pub ask: Ask,
    /// For the provider's own books: why.
    pub reason: String,
    /// The provider's own name of the request, where it has told one.
    pub reference: Option<String>,
}

/// What a provider answers about a request.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The money has moved. With the provider's own name of the request, where it tells one.
    Done(Option<String>),
    /// It has taken the request, and will finish it.
    Accepted(Option<String>),
    /// It refuses for good, and says why. Nothing moved.
    Refused(String),
    /// The request never left us: nothing moved, and it may be sent.
    NotSent(String),
    /// The request may have left, and no answer arrived: the money may have moved.
    Unknown(String),
}

/// What a provider says when it is asked what became of a request.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Request(Answer),
    /// It knows no request of this key. `listed`: it has looked through every refund on the charge, so
    /// that this holds however old the request is; else it may have forgotten the key.
    Nothing {
        listed: bool,
    },
    /// It does not say: it cannot be asked, or did not answer. What was known before stays so.
    NoAnswer(String),
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
    /// The buyer disputes it.
    Disputed,
    /// The buyer's bank took it back.
    ChargedBack,
    /// It was never told of such a charge.
    NotKnown,
    /// It does not say, or not yet; why.
    NoAnswer(String),
}

/// What a request to a provider is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    Refund,
    Void,
    /// What became of a request.
    Query,
    /// What became of a charge.
    Charge,
}

impl Doing {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refund => "refund",
            Self::Void => "void",
            Self::Query => "query",
            Self::Charge => "charge",
        }
    }
}

impl From<Ask> for Doing {
    fn from(ask: Ask) -> Self {
        match ask {
            Ask::Refund { .. } => Self::Refund,
            Ask::Void => Self::Void,
        }
    }
}

/// A request as it would leave, for a person who checks a configuration. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub doing: Doing,
    /// With line breaks.
    pub text: String,
    /// The same as one object.
    pub json: serde_json::Value,
}

/// One way to move money.
#[async_trait(?Send)]
pub trait Provider {
    /// What to call it in reports.
    fn name(&self) -> String;

    /// Which way it is, as recorded with what was sent through it: what one way was asked, another knows
    /// nothing of.
    fn kind(&self) -> &'static str;

    /// Whether it answers when it is asked about a charge, without a trace of the question being left.
    fn answers_at_once(&self) -> bool {
        true
    }

    /// For how long it recognises the key of a request that it has had; `None`: for ever. After that,
    /// a request that it does not know is not sent again unless it lists the charge's refunds.
    fn key_lifetime(&self) -> Option<Span> {
        None
    }

    /// Whether its requests are rows that are written with the payment's first leg, in one
    /// transaction: they have left as soon as that leg is done.
    fn leaves_with_first_leg(&self) -> bool {
        false
    }

    /// Whether it takes a request at once, since nobody outside our own databases is asked.
    fn is_immediate(&self) -> bool {
        false
    }

    /// What would leave for a request, for asking what became of it, and for asking about its charge;
    /// nothing leaves by it. What cannot be asked is not among it.
    fn shown(&self, _request: &Request) -> Vec<Shown> {
        Vec::new()
    }

    /// Sends a request. Its key is the effect's own, so sending it twice is the same as once.
    ///
    /// # Errors
    /// Only where our side failed before anything could have left; what is not known is an
    /// [`Answer::Unknown`].
    async fn send(&self, request: &Request, now: Timestamp) -> Result<Answer>;

    /// Asks what became of a request.
    async fn ask(&self, request: &Request, now: Timestamp) -> Result<Found>;

    /// Asks what became of a charge.
    async fn charge_state(&self, charge: &Charge, now: Timestamp) -> Result<ChargeState>;

    /// As [`Provider::charge_state`], with the time at which it was asked: what happened later it cannot
    /// have known.
    async fn charge_state_at(&self, charge: &Charge, now: Timestamp) -> Result<(ChargeState, Timestamp)> {
        Ok((self.charge_state(charge, now).await?, now))
    }
}

/// The provider that stands for all that are not named.
pub const ANY: &str = "*";

/// The providers that are configured, by what payments call them.
#[derive(Default)]
pub struct Providers<'s>(BTreeMap<String, Box<dyn Provider + 's>>);

impl<'s> Providers<'s> {
    #[must_use]
    pub fn with(mut self, name: &str, provider: impl Provider + 's) -> Self {
        self.0.insert(name.to_owned(), Box::new(provider));
        self
    }

    pub(crate) fn add(&mut self, name: &str, provider: Box<dyn Provider + 's>) {
        self.0.insert(name.to_owned(), provider);
    }

    /// The provider of a payment, by its `provider`.
    ///
    /// # Errors
    /// Refused, where none is configured for it.
    pub fn of(&self, name: &str) -> Result<&(dyn Provider + 's)> {
        self.0.get(name).or_else(|| self.0.get(ANY)).map(Box::as_ref).ok_or_else(|| {
            Error::refused(format!("no provider is configured for payments of {name:?}"))
                .hint(format!("name one in onefold.toml: [providers.{name}], or [providers.\"*\"] for all"))
        })
    }

    /// The provider that is configured under just this name.
    ///
    /// # Errors
    /// Usage, where none is.
    pub fn named(&self, name: &str) -> Result<&(dyn Provider + 's)> {
        self.0.get(name).map(Box::as_ref).ok_or_else(|| {
            let names: Vec<_> = self.0.keys().map(|name| format!("{name:?}")).collect();
            Error::usage(format!("no provider is configured under the name {name:?}"))
                .hint(format!("there are {}", names.join(", ")))
        })
    }

    /// All of them in words.
    pub fn names(&self) -> String {
        match self.0.iter().collect::<Vec<_>>().as_slice() {
            [] => "none".to_owned(),
            [(_, only)] => only.name(),
            all => all.iter().map(|(n, p)| format!("{n}: {}", p.name())).collect::<Vec<_>>().join(", "),
        }
    }
}

impl fmt::Debug for Providers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names())
    }
}
