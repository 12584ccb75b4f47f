//! The company's own payment service does the rest: a request is a row beside the payment, and the
//! answer comes in the same row. Written is accepted, never done.

use async_trait::async_trait;
use serde_json::json;

use super::{Answer, Ask, Charge, ChargeState, Doing, Found, Provider, Request, Shown};
use crate::core::hash::FieldHash;
use crate::core::time::{Span, Timestamp};
use crate::error::{Exit, Result};
use crate::store::Store;
use crate::store::outbox::{OutboxAnswer, OutboxCharge, OutboxKind, OutboxRequest, OutboxState};

/// How old an answer about a charge may be when it is read; what is older is asked anew.
const FRESH: Span = Span::from_mins(60);

/// What a question about a charge says for the service's own books.
const ASKED: &str = "what became of this charge?";

pub struct Outbox<'s> {
    store: &'s Store,
}

impl<'s> Outbox<'s> {
    pub const fn new(store: &'s Store) -> Self {
        Self { store }
    }
}

/// The row of a request.
pub fn row(request: &Request) -> OutboxRequest {
    let kind = match request.ask {
        Ask::Refund { .. } => OutboxKind::Refund,
        Ask::Void => OutboxKind::Void,
    };
    let amount_minor = request.ask.refund_minor();
    OutboxRequest { amount_minor, ..about(&request.charge, kind, &request.key, &request.reason) }
}

fn about(charge: &Charge, kind: OutboxKind, request_key: &str, reason: &str) -> OutboxRequest {
    OutboxRequest {
        request_key: request_key.to_owned(),
        kind,
        tenant_id: charge.tenant_id.clone(),
        payment_id: charge.payment_id.clone(),
        provider: charge.provider.clone(),
        provider_txn_id: charge.provider_txn_id.clone(),
        amount_minor: None,
        currency: charge.currency,
        reason: reason.to_owned(),
    }
}

#[async_trait(?Send)]
impl Provider for Outbox<'_> {
    fn kind(&self) -> &'static str {
        "outbox"
    }

    fn name(&self) -> String {
        "outbox (your payment service)".to_owned()
    }

    fn answers_at_once(&self) -> bool {
        false
    }

    fn shown(&self, request: &Request) -> Vec<Shown> {
        let show = |doing: Doing, row: &OutboxRequest| {
            let json = json!({
                "request_key": row.request_key, "kind": row.kind.as_str(), "tenant_id": row.tenant_id,
                "payment_id": row.payment_id, "provider": row.provider, "provider_txn_id": row.provider_txn_id,
                "amount_minor": row.amount_minor, "currency": row.currency, "reason": row.reason,
                "state": OutboxState::Requested.as_str(),
            });
            let text = format!("a row in onefold_outbox, beside the payment: {json}");
            Shown { doing, text, json: json!({ "table": "onefold_outbox", "row": json }) }
        };
        let ask_key = "a new key each time it is asked";
        let query = about(&request.charge, OutboxKind::Query, ask_key, ASKED);
        vec![show(request.ask.into(), &row(request)), show(Doing::Charge, &query)]
    }

    fn leaves_with_first_leg(&self) -> bool {
        true
    }

    fn is_immediate(&self) -> bool {
        true
    }

    async fn send(&self, request: &Request, now: Timestamp) -> Result<Answer> {
        match self.store.outbox_add(request.charge.shard, &row(request), now).await {
            // Another request is in its way.
            Err(error) if error.exit == Exit::Stale => return Ok(Answer::NotSent(error.message)),
            added => added?,
        }
        let there = self.store.outbox_answer(request.charge.shard, &request.key).await?;
        Ok(there.map_or(Answer::Accepted(None), |there| told(request, there)))
    }

    async fn ask(&self, request: &Request, _now: Timestamp) -> Result<Found> {
        Ok(match self.store.outbox_answer(request.charge.shard, &request.key).await? {
            Some(there) => Found::Request(told(request, there)),
            // Removed, or never written: who can tell? It is not asked for again.
            None => Found::NoAnswer(format!(
                "there is no row {} in onefold_outbox: it was removed, or never written. Look the charge up, then: \
                 onefold settle",
                request.key
            )),
        })
    }

    async fn charge_state(&self, charge: &Charge, now: Timestamp) -> Result<ChargeState> {
        Ok(self.charge_state_at(charge, now).await?.0)
    }

    async fn charge_state_at(&self, charge: &Charge, now: Timestamp) -> Result<(ChargeState, Timestamp)> {
        let asked = self.store.outbox_query(charge.shard, &charge.tenant_id, &charge.payment_id).await?;
        match asked {
            Some(answer) if matches!(answer.state, OutboxState::Requested | OutboxState::Taken) => {
                Ok((ChargeState::NoAnswer("the payment service has not answered yet".to_owned()), now))
            }
            Some(answer)
                if answer.state == OutboxState::Done
                    && self.store.outbox_set_read(charge.shard, &answer.request_key).await?
                    && answer.answered_at.is_some_and(|at| {
                        at >= answer.requested_at && at <= now && now.since(at) <= FRESH
                    }) =>
            {
                Ok((charge_told(charge, &answer), answer.requested_at))
            }
            _ => {
                let key = FieldHash::new()
                    .text("query")
                    .text(charge.tenant_id.as_str())
                    .text(charge.payment_id.as_str())
                    .number(now.micros())
                    .hex();
                let query = about(charge, OutboxKind::Query, &key, ASKED);
                self.store.outbox_add(charge.shard, &query, now).await?;
                Ok((
                    ChargeState::NoAnswer("the payment service is asked; run converge again".to_owned()),
                    now,
                ))
            }
        }
    }
}

fn told(request: &Request, there: OutboxAnswer) -> Answer {
    if there.request != row(request).about() {
        return Answer::Unknown(
            "the row in onefold_outbox is about something else than was asked".to_owned(),
        );
    }
    match there.state {
        OutboxState::Requested | OutboxState::Taken => Answer::Accepted(there.provider_ref),
        OutboxState::Done => Answer::Done(there.provider_ref),
        OutboxState::Refused => {
            Answer::Refused(there.note.unwrap_or_else(|| "the payment service refused it".to_owned()))
        }
        OutboxState::Read => Answer::Unknown("the row in onefold_outbox is READ, not DONE".to_owned()),
    }
}

fn charge_told(charge: &Charge, answer: &OutboxAnswer) -> ChargeState {
    match answer.charge_status {
        Some(OutboxCharge::Authorized) => ChargeState::Authorized,
        Some(OutboxCharge::Failed) => ChargeState::Failed,
        Some(OutboxCharge::Voided) => ChargeState::Voided,
        Some(OutboxCharge::Disputed) => ChargeState::Disputed,
        Some(OutboxCharge::ChargedBack) => ChargeState::ChargedBack,
        Some(OutboxCharge::NotKnown) => ChargeState::NotKnown,
        Some(OutboxCharge::Captured) => match (answer.charge_amount_minor, answer.charge_refunded_minor) {
            (Some(amount_minor), Some(refunded_minor)) => ChargeState::Captured {
                captured_at: answer.charge_captured_at,
                amount_minor,
                refunded_minor,
                currency: charge.currency,
                refund_refused: answer.refund_refused,
            },
            _ => ChargeState::NoAnswer(
                "the payment service says CAPTURED, without charge_amount_minor and charge_refunded_minor"
                    .to_owned(),
            ),
        },
        None => ChargeState::NoAnswer("the payment service answered without charge_status".to_owned()),
    }
}
