//! A provider that is a table: it has books, idempotency keys and a status of its own, and
//! misbehaves as it is told to. For rehearsals, and as a model of a real one.

use super::{Answer, Ask, Charge, ChargeState};
use crate::core::time::Timestamp;
use crate::error::Result;
use crate::store::Store;
use crate::store::sandbox::{
    Behaviour, ChargeStatus, RequestKind, RequestStatus, SandboxCharge, SandboxRequest,
};

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

pub(super) async fn send(
    store: &Store,
    key: &str,
    charge: &Charge,
    ask: Ask,
    now: Timestamp,
) -> Result<Answer> {
    let (kind, amount_minor, currency, status) = match ask {
        Ask::Refund { amount_minor, currency } => {
            (RequestKind::Refund, amount_minor, currency, ChargeStatus::Captured)
        }
        Ask::Void => (RequestKind::Void, 0, charge.currency, ChargeStatus::Authorized),
    };
    let opened = as_told(charge, status);
    let request = SandboxRequest {
        idempotency_key: key.to_owned(),
        kind,
        amount_minor,
        currency,
        status: RequestStatus::Lost,
        asked: 0,
    };
    let (charge, request) = store.sandbox_request(opened, request, decide, now).await?;
    Ok(match (charge.behaviour, request.status) {
        (_, RequestStatus::Lost) | (Behaviour::LoseAnswer, _) => {
            Answer::Unknown("the provider did not answer".into())
        }
        (_, RequestStatus::Accepted) => Answer::Accepted,
        (_, RequestStatus::Done) => Answer::Done,
        (_, RequestStatus::Refused) => Answer::Refused(refusal(&charge, &request)),
    })
}

pub(super) async fn ask(store: &Store, key: &str, charge: &Charge, now: Timestamp) -> Result<Option<Answer>> {
    let request = store.sandbox_ask(key, &as_told(charge, ChargeStatus::Captured), carry_out, now).await?;
    let Some(request) = request else { return Ok(None) };
    Ok(match request.status {
        RequestStatus::Lost => None,
        RequestStatus::Accepted => Some(Answer::Accepted),
        RequestStatus::Done => Some(Answer::Done),
        RequestStatus::Refused => Some(Answer::Refused("the provider refused it".into())),
    })
}

pub(super) async fn charge_state(store: &Store, charge: &Charge) -> Result<ChargeState> {
    let known = store.sandbox_charge(&charge.tenant_id, &charge.provider, charge_ref(charge)).await?;
    Ok(match known {
        None => ChargeState::NotKnown,
        Some(known) => match known.status {
            ChargeStatus::Authorized => ChargeState::Authorized,
            ChargeStatus::Failed => ChargeState::Failed,
            ChargeStatus::Voided => ChargeState::Voided,
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

/// Decides about a request that has just arrived.
fn decide(charge: &mut SandboxCharge, request: &SandboxRequest) -> RequestStatus {
    match charge.behaviour {
        Behaviour::Refuse => RequestStatus::Refused,
        Behaviour::Pending => RequestStatus::Accepted,
        Behaviour::Ok | Behaviour::LoseAnswer | Behaviour::LoseRequest => carry_out(charge, request),
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
