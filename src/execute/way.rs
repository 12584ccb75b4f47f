//! The way from what the ledger says of a charge to what its provider says: legal moves, or why there
//! are none.

use crate::core::ledger::Payment;
use crate::core::status::PaymentStatus;
use crate::core::time::Timestamp;
use crate::providers::ChargeState;

/// One move of a payment towards what the provider says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leg {
    pub to: PaymentStatus,
    pub refund_minor: i64,
    pub captured_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The legal moves that lead there; none where ledger and provider agree.
    Moves(Vec<Leg>),
    /// Why no move can be made.
    Stays(String),
}

/// The way from what the ledger says to what the provider says. `nothing_sent`: the row is in motion
/// by a first leg of ours on which no request followed, so that it goes back.
pub(super) fn way(payment: &Payment, state: &ChargeState, nothing_sent: bool) -> Way {
    use PaymentStatus::*;
    let leg = |to| Leg { to, refund_minor: 0, captured_at: None };
    let stays = |why: &str| Way::Stays(why.to_owned());
    match *state {
        ChargeState::NotKnown if nothing_sent && payment.status == Refunding => {
            Way::Moves(vec![leg(Captured)])
        }
        ChargeState::NotKnown if nothing_sent && payment.status == Voiding => {
            Way::Moves(vec![leg(Authorized)])
        }
        ChargeState::NotKnown => stays("the provider does not know this charge"),
        ChargeState::NoAnswer(ref why) => stays(why),
        ChargeState::Disputed => match payment.status {
            Initiated | Unknown | Authorized => Way::Moves(vec![leg(Captured), leg(Disputed)]),
            Voiding => Way::Moves(vec![leg(Authorized), leg(Captured), leg(Disputed)]),
            Captured => Way::Moves(vec![leg(Disputed)]),
            Disputed => Way::Moves(Vec::new()),
            _ => stays("the buyer disputes it at the provider: nothing more is refunded, a person decides"),
        },
        ChargeState::ChargedBack => match payment.status {
            Initiated | Unknown | Authorized => {
                Way::Moves(vec![leg(Captured), leg(Disputed), leg(ChargedBack)])
            }
            Voiding => Way::Moves(vec![leg(Authorized), leg(Captured), leg(Disputed), leg(ChargedBack)]),
            Captured => Way::Moves(vec![leg(Disputed), leg(ChargedBack)]),
            Disputed => Way::Moves(vec![leg(ChargedBack)]),
            ChargedBack => Way::Moves(Vec::new()),
            _ => stays("the provider says CHARGED_BACK: a person decides"),
        },
        ChargeState::Authorized => match payment.status {
            Initiated | Unknown | Voiding => Way::Moves(vec![leg(Authorized)]),
            Authorized => Way::Moves(Vec::new()),
            _ => stays("the provider says AUTHORIZED: the ledger is ahead of it"),
        },
        ChargeState::Failed => match payment.status {
            Initiated | Unknown => Way::Moves(vec![leg(Failed)]),
            _ => stays("the provider says FAILED: the ledger says money is or was there"),
        },
        ChargeState::Voided => match payment.status {
            Initiated | Unknown => Way::Moves(vec![leg(Authorized), leg(Voiding), leg(Voided)]),
            Authorized => Way::Moves(vec![leg(Voiding), leg(Voided)]),
            Voiding => Way::Moves(vec![leg(Voided)]),
            _ => stays("the provider says VOIDED: the ledger says money is or was there"),
        },
        ChargeState::Captured { amount_minor, currency, .. }
            if (amount_minor, currency) != (payment.amount_minor, payment.currency) =>
        {
            Way::Stays(format!(
                "the provider captured {}, the ledger says {}",
                currency.show(amount_minor.into()),
                payment.currency.show(payment.amount_minor.into())
            ))
        }
        ChargeState::Captured { captured_at, amount_minor, refunded_minor, refund_refused, .. } => {
            let captured = Leg { captured_at, ..leg(Captured) };
            let mut way = match payment.status {
                Initiated | Unknown | Authorized => vec![captured],
                Voiding => vec![leg(Authorized), captured],
                Disputed => vec![leg(Captured)],
                Captured | Refunding => Vec::new(),
                Refunded if refunded_minor == amount_minor && payment.left_minor() == 0 => Vec::new(),
                _ => return stays("the provider says CAPTURED: the ledger is ahead of it"),
            };
            let gone = refunded_minor - payment.refunded_minor;
            let is_refunding = payment.status == Refunding;
            if gone > 0 && refunded_minor == amount_minor {
                if !is_refunding {
                    way.push(leg(Refunding));
                }
                way.push(Leg { refund_minor: gone, ..leg(Refunded) });
            } else if gone != 0 {
                return Way::Stays(format!(
                    "the provider has given back {}, the ledger says {}: correct the ledger",
                    payment.currency.show(refunded_minor.into()),
                    payment.currency.show(payment.refunded_minor.into())
                ));
            } else if is_refunding {
                if !refund_refused && !nothing_sent {
                    return stays("the provider has given nothing back so far, and has not refused to");
                }
                way.push(leg(Captured));
            }
            Way::Moves(way)
        }
    }
}

/// What a provider says, for a person.
pub(super) fn words(state: &ChargeState) -> String {
    match state {
        ChargeState::NotKnown => "nothing".to_owned(),
        ChargeState::Authorized => "AUTHORIZED".to_owned(),
        ChargeState::Failed => "FAILED".to_owned(),
        ChargeState::Voided => "VOIDED".to_owned(),
        ChargeState::Disputed => "DISPUTED".to_owned(),
        ChargeState::ChargedBack => "CHARGED_BACK".to_owned(),
        ChargeState::NoAnswer(why) => format!("nothing: {why}"),
        ChargeState::Captured { refunded_minor: 0, refund_refused: true, .. } => {
            "CAPTURED, the refund refused".to_owned()
        }
        ChargeState::Captured { refunded_minor: 0, .. } => "CAPTURED".to_owned(),
        ChargeState::Captured { amount_minor, refunded_minor, .. } if amount_minor == refunded_minor => {
            "REFUNDED".to_owned()
        }
        ChargeState::Captured { .. } => "CAPTURED, partly given back".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::status::Ledger;

    #[test]
    fn every_way_is_made_of_legal_moves_and_ends_where_the_provider_is() {
        let captured = |refunded_minor, refund_refused| ChargeState::Captured {
            captured_at: None,
            amount_minor: 100,
            refunded_minor,
            currency: "EUR".parse().unwrap(),
            refund_refused,
        };
        let states = [
            ChargeState::Authorized,
            ChargeState::Failed,
            ChargeState::Voided,
            ChargeState::NotKnown,
            ChargeState::Disputed,
            ChargeState::ChargedBack,
            captured(0, false),
            captured(0, true),
            captured(40, false),
            captured(100, false),
        ];
        for &status in PaymentStatus::ALL {
            for state in &states {
                let payment = payment(status);
                let Way::Moves(legs) = way(&payment, state, false) else { continue };
                let mut at = status;
                for leg in &legs {
                    assert!(
                        Ledger::Payments.may_move(at.as_str(), leg.to.as_str()),
                        "{status} {state:?}: {at} → {}",
                        leg.to
                    );
                    at = leg.to;
                }
                let there: &[PaymentStatus] = match state {
                    ChargeState::Authorized => &[PaymentStatus::Authorized],
                    ChargeState::Failed => &[PaymentStatus::Failed],
                    ChargeState::Voided => &[PaymentStatus::Voided],
                    ChargeState::Disputed => &[PaymentStatus::Disputed],
                    ChargeState::ChargedBack => &[PaymentStatus::ChargedBack],
                    ChargeState::Captured { refunded_minor: 100, .. } => &[PaymentStatus::Refunded],
                    _ => &[PaymentStatus::Captured],
                };
                assert!(there.contains(&at), "{status} {state:?} ends at {at}");
            }
        }
    }

    #[test]
    fn a_refund_that_the_provider_has_neither_made_nor_refused_stays_in_doubt() {
        let state = ChargeState::Captured {
            captured_at: None,
            amount_minor: 100,
            refunded_minor: 0,
            currency: "EUR".parse().unwrap(),
            refund_refused: false,
        };
        assert!(matches!(way(&payment(PaymentStatus::Refunding), &state, false), Way::Stays(_)));
    }

    #[test]
    fn money_that_went_back_behind_the_ledger_is_not_called_settled() {
        let state = ChargeState::Captured {
            captured_at: None,
            amount_minor: 100,
            refunded_minor: 40,
            currency: "EUR".parse().unwrap(),
            refund_refused: false,
        };
        assert!(matches!(way(&payment(PaymentStatus::Captured), &state, false), Way::Stays(_)));
    }

    fn payment(status: PaymentStatus) -> Payment {
        Payment {
            payment_id: "P-1".into(),
            tenant_id: "t".into(),
            order_id: Some("O-1".into()),
            user_id: "u".into(),
            show_id: "s".into(),
            session_id: None,
            amount_minor: 100,
            refunded_minor: 0,
            currency: "EUR".parse().unwrap(),
            provider: "p".to_owned(),
            provider_txn_id: Some("x".to_owned()),
            status,
            created_at: Timestamp::from_micros(0),
            captured_at: None,
            version: "1".into(),
            shard: 0,
        }
    }
}
