//! Providers that forget, that cannot be asked, or whose charges change at the last moment.

use std::cell::RefCell;
use std::ops::ControlFlow;

use async_trait::async_trait;
use onefold::core::status::Ledger;
use onefold::core::time::{Span, Timestamp};
use onefold::error::Result;
use onefold::execute::{IntentEnd, Moment};
use onefold::providers::{Answer, Charge, ChargeState, Found, Provider, Request};
use onefold::store::Store;

use super::scene::*;
use crate::on_every_database;

/// Answers as a test says, and keeps the keys under which it was sent something.
struct Scripted<'t> {
    lifetime: Option<Span>,
    answer: &'t dyn Fn() -> Answer,
    found: Found,
    sent: &'t RefCell<Vec<(String, String)>>,
}

#[async_trait(?Send)]
impl Provider for Scripted<'_> {
    fn kind(&self) -> &'static str {
        "scripted"
    }

    fn name(&self) -> String {
        "scripted".to_owned()
    }

    fn key_lifetime(&self) -> Option<Span> {
        self.lifetime
    }

    async fn send(&self, request: &Request, _now: Timestamp) -> Result<Answer> {
        self.sent.borrow_mut().push((request.charge.payment_id.to_string(), request.key.clone()));
        Ok((self.answer)())
    }

    async fn ask(&self, _request: &Request, _now: Timestamp) -> Result<Found> {
        Ok(self.found.clone())
    }

    async fn charge_state(&self, _charge: &Charge, _now: Timestamp) -> Result<ChargeState> {
        Ok(ChargeState::NoAnswer("it does not say".to_owned()))
    }
}

/// A night whose first requests get no answer; then what the provider finds of them, and for how long it
/// keeps keys. The keys that were sent for P-O-E, and how the intents ended at last.
async fn lost_then(
    store: &Store,
    tenant: &str,
    lifetime: Option<Span>,
    found: Found,
    then: Answer,
) -> (Vec<String>, Vec<IntentEnd>) {
    let night = Night::begin(store, tenant).await;
    let sent: RefCell<Vec<(String, String)>> = RefCell::default();
    let lose = || Answer::Unknown("no answer".to_owned());
    let first = Scripted { lifetime, answer: &lose, found: found.clone(), sent: &sent };
    let _ = night.apply_through(&providers(first), go).await.unwrap();
    let answer = || then.clone();
    let second = providers(Scripted { lifetime, answer: &answer, found, sent: &sent });
    let applied = night.apply_through(&second, go).await.unwrap();
    let ends = applied.intents.into_iter().map(|(_, end)| end).collect();
    let keys = sent.take().into_iter().filter(|(p, _)| p == "P-O-E").map(|(_, key)| key).collect();
    (keys, ends)
}

fn go(_: Moment<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

on_every_database! {
    async fn a_key_that_may_be_forgotten_is_not_sent_again(db) {
        let store = db.store().await;
        let nothing = Found::Nothing { listed: false };
        let forgotten = Some(Span::from_secs(0));
        let (keys, ends) = lost_then(&store, "forgetful", forgotten, nothing, Answer::Done(None)).await;
        assert_eq!(keys.len(), 1, "sent once");
        assert!(matches!(&ends[1], IntentEnd::Unknown(why) if why.contains("onefold settle")), "{ends:?}");
    }

    async fn within_its_lifetime_or_by_the_list_of_refunds_it_goes_out_again_under_the_same_key(db) {
        let store = db.store().await;
        for (tenant, lifetime, listed) in [
            ("within", Some(Span::from_mins(60)), false),
            ("for-ever", None, false),
            ("listed", Some(Span::from_secs(0)), true),
        ] {
            let nothing = Found::Nothing { listed };
            let (keys, _) = lost_then(&store, tenant, lifetime, nothing, Answer::Done(None)).await;
            assert_eq!(keys.len(), 2, "{tenant}");
            assert_eq!(keys[0], keys[1], "{tenant}");
        }
    }

    async fn what_may_have_left_stays_unknown_though_it_could_not_be_sent_again(db) {
        let store = db.store().await;
        let (tenant, nothing) = ("t", Found::Nothing { listed: true });
        let (_, ends) = lost_then(&store, tenant, None, nothing, Answer::NotSent("down".to_owned())).await;
        assert!(matches!(&ends[1], IntentEnd::Unknown(why) if why.contains("not sent again: down")), "{ends:?}");
        let open = store.open_steps().await.unwrap();
        assert!(open.iter().any(|r| r.step.id.as_str() == "P-O-E" && r.sent && r.sent_at.is_some()));
    }

    async fn a_provider_that_cannot_be_asked_is_believed_by_the_row_that_its_report_moved(db) {
        let store = db.store().await;
        let night = Night::begin(&store, "t").await;
        let sent: RefCell<Vec<(String, String)>> = RefCell::default();
        let accepted = || Answer::Accepted(Some("ref-1".to_owned()));
        let mute = Found::NoAnswer("it cannot be asked".to_owned());
        let mute = providers(Scripted { lifetime: None, answer: &accepted, found: mute, sent: &sent });
        let _ = night.apply_through(&mute, go).await.unwrap();
        let learned = night.converge_through(&mute).await;
        let of = |learned: &[onefold::execute::converge::Learned]| {
            learned.iter().find(|l| l.id.as_str() == "P-O-E").map(|l| l.settled)
        };
        assert_eq!(of(&learned), Some(false), "{learned:?}");
        // A refund of half of it is not ours.
        db.run(night.touch(Ledger::Payments, "P-O-E", "status = 'REFUNDED', refunded_minor = 500")).await;
        assert_eq!(of(&night.converge_through(&mute).await), Some(false));
        db.run(night.touch(Ledger::Payments, "P-O-E", "status = 'REFUNDED', refunded_minor = 1000")).await;
        let learned = night.converge_through(&mute).await;
        assert_eq!(of(&learned), Some(true), "{learned:?}");
        let keys = sent.take();
        assert_eq!(keys.iter().filter(|(payment, _)| payment == "P-O-E").count(), 1);
    }

    async fn a_charge_that_is_disputed_at_the_last_moment_is_not_refunded(db) {
        let store = db.store().await;
        let mut ledgers = of_tenant(night(), "t");
        let charge = ledgers.payments.iter_mut().find(|p| p.payment_id.as_str() == "P-O-E").unwrap();
        charge.provider_txn_id = Some("ch-1".to_owned());
        store.import(&ledgers, false, |_, _| ()).await.unwrap();
        let night = Night::of_rows_there(&store, "t").await;
        let sent: RefCell<Vec<(String, String)>> = RefCell::default();
        let done = || Answer::Done(None);
        let script = Scripted { lifetime: None, answer: &done, found: Found::Nothing { listed: true }, sent: &sent };
        let disputed = dispute(&night);
        let applied = night
            .apply_through(&providers(script), |moment| {
                if matches!(moment, Moment::Claimed(step) if step.id.as_str() == "P-O-E") {
                    db.run_now(&disputed);
                }
                ControlFlow::Continue(())
            })
            .await
            .unwrap();
        assert!(sent.take().iter().all(|(payment, _)| payment != "P-O-E"));
        assert!(matches!(&applied.intents[1].1, IntentEnd::Conflict(why) if why[0].contains("DISPUTED")), "{applied:?}");
    }
}

/// Another row of the charge of P-O-E arrives, and says that the buyer disputes it.
fn dispute(night: &Night<'_>) -> String {
    let columns = "order_id, user_id, show_id, session_id, amount_minor, refunded_minor, currency, provider, \
                   provider_txn_id";
    format!(
        "INSERT INTO payments (tenant_id, payment_id, {columns}, status, created_at_us, version) \
         SELECT tenant_id, 'P-dispute', {columns}, 'DISPUTED', created_at_us, '1' FROM payments \
         WHERE tenant_id = '{}' AND payment_id = 'P-O-E'",
        night.tenant
    )
}
