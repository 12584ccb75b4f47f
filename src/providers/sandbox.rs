//! A provider that is a table: it has books, idempotency keys and a status of its own, and
//! misbehaves as it is told to. For rehearsals, and as a model of a real one.

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::{Answer, Ask, Charge, ChargeState, Doing, Found, Provider, Request, Shown};
use crate::core::hash::FieldHash;
use crate::core::time::{Span, Timestamp};
use crate::error::{Error, Result};
use crate::store::Store;
use crate::store::sandbox::{
    Behaviour, ChargeStatus, RequestKind, RequestStatus, SandboxCharge, SandboxRequest,
};

/// How it misbehaves, beside what its books say of single charges. Shares are of all requests, from 0
/// to 1; which ones, the seed decides.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Misbehaviour {
    /// Carries the request out, and the answer is lost.
    pub lose_answer: f64,
    /// Refuses for good.
    pub refuse: f64,
    /// The request arrives twice.
    pub duplicate: f64,
    /// An error is the answer, and nothing was done.
    pub error_rate: f64,
    /// How long it takes, as `2s` or `1m`.
    pub delay: Option<String>,
    pub seed: i64,
}

impl Misbehaviour {
    /// # Errors
    /// Usage, for a share that is none and a delay that cannot be read.
    pub fn check(&self) -> Result<()> {
        let shares = [
            ("lose_answer", self.lose_answer),
            ("refuse", self.refuse),
            ("duplicate", self.duplicate),
            ("error_rate", self.error_rate),
        ];
        if let Some((name, share)) = shares.into_iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
            return Err(Error::usage(format!("{name} = {share} is no share"))
                .hint("a share is between 0 and 1: 0.1 is every tenth request"));
        }
        self.delay().map(|_| ())
    }

    fn delay(&self) -> Result<Duration> {
        let Some(text) = &self.delay else { return Ok(Duration::ZERO) };
        let span: Span = text.parse().map_err(|e| Error::usage(format!("delay = {text:?}: {e}")))?;
        Ok(Duration::from_micros(span.micros().unsigned_abs()))
    }

    /// Whether this befalls the request of a key that has been asked about so often.
    fn befalls(&self, what: &str, share: f64, key: &str, asked: i64) -> bool {
        let hash = FieldHash::new().number(self.seed).text(what).text(key).number(asked).short_hex();
        let chance = u64::from_str_radix(&hash, 16).unwrap_or(u64::MAX);
        // The upper 53 bits: what a float holds exactly.
        #[allow(clippy::cast_precision_loss)]
        let chance = (chance >> 11) as f64 / (1_u64 << 53) as f64;
        chance < share
    }
}

pub struct Sandbox<'s> {
    store: &'s Store,
    misbehaviour: Misbehaviour,
}

impl<'s> Sandbox<'s> {
    pub const fn new(store: &'s Store, misbehaviour: Misbehaviour) -> Self {
        Self { store, misbehaviour }
    }

    /// One that only does what its books say.
    pub fn well_behaved(store: &'s Store) -> Self {
        Self::new(store, Misbehaviour::default())
    }

    async fn arrives(&self, request: &Request, now: Timestamp) -> Result<Answer> {
        let Request { key, charge, ask, .. } = request;
        let (kind, amount_minor, currency, status) = match *ask {
            Ask::Refund { amount_minor, currency } => {
                (RequestKind::Refund, amount_minor, currency, ChargeStatus::Captured)
            }
            Ask::Void => (RequestKind::Void, 0, charge.currency, ChargeStatus::Authorized),
        };
        let opened = as_told(charge, status);
        let arriving = SandboxRequest {
            idempotency_key: key.clone(),
            kind,
            amount_minor,
            currency,
            status: RequestStatus::Lost,
            asked: 0,
        };
        let (charge, known) =
            self.store.sandbox_request(opened, arriving, |c, r| self.decide(c, r), now).await?;
        let is_lost = known.status == RequestStatus::Lost
            || charge.behaviour == Behaviour::LoseAnswer
            || self.misbehaviour.befalls("lose_answer", self.misbehaviour.lose_answer, key, known.asked);
        if is_lost {
            return Ok(Answer::Unknown("the provider did not answer".into()));
        }
        Ok(told(&known).unwrap_or_else(|| Answer::Refused(refusal(&charge, &known))))
    }

    /// Decides about a request that has just arrived.
    fn decide(&self, charge: &mut SandboxCharge, request: &SandboxRequest) -> RequestStatus {
        let befalls =
            |what, share| self.misbehaviour.befalls(what, share, &request.idempotency_key, request.asked);
        match charge.behaviour {
            Behaviour::LoseRequest if request.asked == 0 => RequestStatus::Lost,
            _ if befalls("error_rate", self.misbehaviour.error_rate) => RequestStatus::Lost,
            Behaviour::Refuse => RequestStatus::Refused,
            _ if befalls("refuse", self.misbehaviour.refuse) => RequestStatus::Refused,
            Behaviour::Pending => RequestStatus::Accepted,
            Behaviour::Ok | Behaviour::LoseAnswer | Behaviour::LoseRequest => carry_out(charge, request),
        }
    }
}

#[async_trait(?Send)]
impl Provider for Sandbox<'_> {
    fn kind(&self) -> &'static str {
        "sandbox"
    }

    fn name(&self) -> String {
        "sandbox (no real money moves)".to_owned()
    }

    fn is_immediate(&self) -> bool {
        self.misbehaviour.delay.is_none()
    }

    fn shown(&self, request: &Request) -> Vec<Shown> {
        let send = Doing::from(request.ask);
        let amount_minor = request.ask.refund_minor();
        let charge = charge_ref(&request.charge);
        let json = json!({
            "do": send.as_str(), "key": request.key, "tenant_id": request.charge.tenant_id,
            "provider": request.charge.provider, "charge": charge, "amount_minor": amount_minor,
            "currency": request.charge.currency,
        });
        let told = |doing: Doing, what: String, json: serde_json::Value| Shown { doing, text: what, json };
        vec![
            told(send, format!("nothing leaves; its own tables would be told of {json}"), json.clone()),
            told(
                Doing::Query,
                format!("its own tables are asked for the request of key {}", request.key),
                json!({ "do": "query", "key": request.key }),
            ),
            told(
                Doing::Charge,
                format!("its own tables are asked for the charge {charge}"),
                json!({ "do": "charge", "charge": charge }),
            ),
        ]
    }

    async fn send(&self, request: &Request, now: Timestamp) -> Result<Answer> {
        tokio::time::sleep(self.misbehaviour.delay()?).await;
        let answer = self.arrives(request, now).await?;
        if self.misbehaviour.befalls("duplicate", self.misbehaviour.duplicate, &request.key, 0) {
            return self.arrives(request, now).await;
        }
        Ok(answer)
    }

    async fn ask(&self, request: &Request, now: Timestamp) -> Result<Found> {
        let charge = as_told(&request.charge, ChargeStatus::Captured);
        let known = self.store.sandbox_ask(&request.key, &charge, carry_out, now).await?;
        let Some(known) = known.filter(|known| known.status != RequestStatus::Lost) else {
            return Ok(Found::Nothing { listed: true });
        };
        let refused = || Answer::Refused("the provider refused it".into());
        Ok(Found::Request(told(&known).unwrap_or_else(refused)))
    }

    async fn charge_state(&self, charge: &Charge, _now: Timestamp) -> Result<ChargeState> {
        let known =
            self.store.sandbox_charge(&charge.tenant_id, &charge.provider, charge_ref(charge)).await?;
        Ok(match known {
            None => ChargeState::NotKnown,
            Some(known) => match known.status {
                ChargeStatus::Authorized => ChargeState::Authorized,
                ChargeStatus::Failed => ChargeState::Failed,
                ChargeStatus::Voided => ChargeState::Voided,
                ChargeStatus::Disputed => ChargeState::Disputed,
                ChargeStatus::ChargedBack => ChargeState::ChargedBack,
                ChargeStatus::Captured | ChargeStatus::Refunded | ChargeStatus::RefundRefused => {
                    ChargeState::Captured {
                        captured_at: known.captured_at,
                        amount_minor: known.amount_minor,
                        refunded_minor: known.refunded_minor,
                        currency: known.currency,
                        refund_refused: known.status == ChargeStatus::RefundRefused,
                    }
                }
            },
        })
    }
}

/// What is answered about a request, as its books have it; `None` where it was refused.
fn told(known: &SandboxRequest) -> Option<Answer> {
    let reference = Some(format!("sandbox-{}", known.idempotency_key.chars().take(12).collect::<String>()));
    match known.status {
        RequestStatus::Lost => Some(Answer::Unknown("the provider did not answer".into())),
        RequestStatus::Accepted => Some(Answer::Accepted(reference)),
        RequestStatus::Done => Some(Answer::Done(reference)),
        RequestStatus::Refused => None,
    }
}

/// By what the provider knows a charge: its own transaction id, else our payment's id.
fn charge_ref(charge: &Charge) -> &str {
    charge.provider_txn_id.as_deref().unwrap_or(charge.payment_id.as_str())
}

/// A charge that it was never told of is taken to be what the payment ledger says it is.
fn as_told(charge: &Charge, status: ChargeStatus) -> SandboxCharge {
    SandboxCharge {
        tenant_id: charge.tenant_id.clone(),
        provider: charge.provider.clone(),
        charge: charge_ref(charge).to_owned(),
        status,
        amount_minor: charge.amount_minor,
        refunded_minor: charge.refunded_minor,
        currency: charge.currency,
        captured_at: None,
        behaviour: Behaviour::Ok,
    }
}

/// Moves the sandbox's money, if the charge allows it.
fn carry_out(charge: &mut SandboxCharge, request: &SandboxRequest) -> RequestStatus {
    match request.kind {
        RequestKind::Void if charge.status == ChargeStatus::Authorized => {
            charge.status = ChargeStatus::Voided;
            RequestStatus::Done
        }
        RequestKind::Refund
            if matches!(charge.status, ChargeStatus::Captured | ChargeStatus::RefundRefused)
                && request.currency == charge.currency
                && request.amount_minor <= charge.amount_minor - charge.refunded_minor =>
        {
            charge.refunded_minor += request.amount_minor;
            if charge.refunded_minor == charge.amount_minor {
                charge.status = ChargeStatus::Refunded;
            }
            RequestStatus::Done
        }
        RequestKind::Void | RequestKind::Refund => RequestStatus::Refused,
    }
}

fn refusal(charge: &SandboxCharge, request: &SandboxRequest) -> String {
    match charge.behaviour {
        Behaviour::Refuse => "the provider refuses requests about this charge".to_owned(),
        _ if request.currency != charge.currency => {
            format!("the charge is in {}, the request in {}", charge.currency.code(), request.currency.code())
        }
        _ => format!(
            "the charge is {}, {} of {} refunded",
            charge.status,
            charge.currency.show_bare(charge.refunded_minor.into()),
            charge.currency.show(charge.amount_minor.into())
        ),
    }
}
