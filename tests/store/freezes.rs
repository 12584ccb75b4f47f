//! Freezes: one at a time over a scope, held by lease and token.

use onefold::core::freeze::{Effect, Freeze, FreezeMode, FreezeState, HeldIntent};
use onefold::core::ids::ShowId;
use onefold::core::scope::Scope;
use onefold::core::time::Span;
use onefold::error::{Exit, Result};
use onefold::store::Store;
use onefold::store::freezes::FreezeRequest;
use onefold::store::journal::Search;

use crate::common::book::at;
use crate::common::databases::at_once;
use crate::on_every_database;

const LEASE: Span = Span::from_secs(60);

fn request(id: &str, owner: &str, show: &str) -> FreezeRequest {
    FreezeRequest {
        freeze_id: id.to_owned(),
        owner: owner.to_owned(),
        reason: "it's \"on fire\" 🔥".to_owned(),
        scope: Scope { shows: [ShowId::from(show)].into(), ..Scope::default() },
        effects: vec![Effect::AutoPayment, Effect::StockRelease],
        topics: Default::default(),
        mode: FreezeMode::Recorded,
        lease: LEASE,
    }
}

async fn renew(store: &Store, freeze: &Freeze, revive: bool, seconds: i64) -> Result<Freeze> {
    store.renew(&freeze.freeze_id, &freeze.owner, Some(freeze.token), LEASE, revive, at(seconds)).await
}

#[track_caller]
fn refused<T: std::fmt::Debug>(end: Result<T>, part: &str) {
    let error = end.unwrap_err();
    assert_eq!(error.exit, Exit::Refused, "{error}");
    assert!(error.message.contains(part), "{part}: {error}");
}

on_every_database! {
    async fn of_overlapping_freezes_made_at_once_exactly_one_wins(db) {
        let store = db.store().await;
        let requests: Vec<_> = (0..8).map(|i| request(&format!("F-{i}"), &format!("op-{i}"), "S-1")).collect();
        let ends = at_once(requests.iter().map(|r| store.freeze(r, at(0)))).await;
        let won: Vec<_> = ends.iter().filter_map(|end| end.as_ref().ok()).collect();
        assert_eq!(won.len(), 1, "{ends:?}");
        for end in ends.iter().filter_map(|end| end.as_ref().err()) {
            assert_eq!(end.exit, Exit::Refused, "{end}");
            assert!(end.message.contains(&won[0].owner), "names the holder: {end}");
        }
        assert_eq!(store.open_freezes().await.unwrap(), [won[0].clone()]);
        assert_eq!(store.freeze_by_id(&won[0].freeze_id).await.unwrap(), *won[0]);
    }

    async fn freezes_of_scopes_that_do_not_meet_live_side_by_side_with_growing_tokens(db) {
        let store = db.store().await;
        let requests: Vec<_> = (0..6).map(|i| request(&format!("F-{i}"), "op", &format!("S-{i}"))).collect();
        let ends = at_once(requests.iter().map(|r| store.freeze(r, at(0)))).await;
        let mut tokens: Vec<_> = ends.into_iter().map(|end| end.unwrap().token).collect();
        tokens.sort_unstable();
        assert_eq!(tokens, [1, 2, 3, 4, 5, 6]);
    }

    async fn a_lease_is_renewed_by_who_holds_it_while_it_lasts(db) {
        let store = db.store().await;
        let freeze = store.freeze(&request("F-1", "a", "S-1"), at(0)).await.unwrap();
        let renewed = renew(&store, &freeze, false, 59).await.unwrap();
        assert_eq!(renewed.lease_until, at(119));
        assert_eq!(renew(&store, &freeze, false, 58).await.unwrap().lease_until, at(119), "never shorter");
        refused(renew(&store, &Freeze { owner: "b".to_owned(), ..freeze.clone() }, false, 60).await, "held by a");
        refused(renew(&store, &Freeze { token: 9, ..freeze.clone() }, false, 60).await, "held by a");
        refused(renew(&store, &freeze, false, 119).await, "ran out");
        assert!(renew(&store, &freeze, true, 500).await.unwrap().is_live(at(559)), "nobody has taken the scope");
    }

    async fn a_scope_whose_lease_ran_out_is_anybodys_and_does_not_come_back(db) {
        let store = db.store().await;
        let old = store.freeze(&request("F-1", "a", "S-1"), at(0)).await.unwrap();
        refused(store.freeze(&request("F-2", "b", "S-1"), at(59)).await, "F-1 overlaps");
        let new = store.freeze(&request("F-2", "b", "S-1"), at(60)).await.unwrap();
        assert!(new.token > old.token);
        assert_eq!(store.freeze_by_id("F-1").await.unwrap().state, FreezeState::Lapsed);
        refused(renew(&store, &old, true, 61).await, "lapsed");
        refused(store.take_over("F-1", "c", "why", LEASE, at(61)).await, "lapsed");
    }

    async fn reviving_and_freezing_at_once_gives_the_scope_to_one(db) {
        let store = db.store().await;
        for i in 0..4 {
            let show = format!("S-{i}");
            let old = store.freeze(&request(&format!("F-{i}"), "a", &show), at(0)).await.unwrap();
            let revive = async { renew(&store, &old, true, 100).await.is_ok() };
            let anew = request(&format!("G-{i}"), "b", &show);
            let freeze = async { store.freeze(&anew, at(100)).await.is_ok() };
            let (revived, frozen) = tokio::join!(revive, freeze);
            assert!(revived != frozen, "revived {revived}, frozen {frozen}");
        }
    }

    async fn who_takes_over_fences_off_the_one_before(db) {
        let store = db.store().await;
        let old = store.freeze(&request("F-1", "a", "S-1"), at(0)).await.unwrap();
        let new = store.take_over("F-1", "b", "a's laptop is dead", LEASE, at(10)).await.unwrap();
        assert!(new.token > old.token);
        refused(renew(&store, &old, false, 11).await, "held by b");
        let fence = async |freeze: &Freeze, seconds| {
            let Freeze { freeze_id, owner, token, .. } = freeze;
            store.journal().transaction(async |tx| store.fence(tx, freeze_id, owner, *token, at(seconds)).await).await
        };
        refused(fence(&old, 11).await, "held by b");
        fence(&new, 11).await.unwrap();
        refused(fence(&new, 70).await, "ran out");
        refused(store.thaw(&old, Vec::new(), "a", "", at(12)).await, "taken over");
        let both = at_once(["c", "d"].map(|who| store.take_over("F-1", who, "again", LEASE, at(13)))).await;
        let held = store.freeze_by_id("F-1").await.unwrap();
        let tokens: Vec<_> = both.into_iter().map(|end| end.unwrap()).collect();
        assert!(tokens.iter().any(|t| (t.token, &t.owner) == (held.token, &held.owner)));
        assert_eq!(held.token, 4, "the last one");
    }

    async fn taking_over_what_is_being_thawed_never_brings_it_back(db) {
        let store = db.store().await;
        for i in 0..4 {
            let id = format!("F-{i}");
            let freeze = store.freeze(&request(&id, "a", "S-1"), at(0)).await.unwrap();
            let (thawed, taken) = tokio::join!(
                store.thaw(&freeze, Vec::new(), "a", "", at(1)),
                store.take_over(&id, "b", "why", LEASE, at(1)),
            );
            let now = store.freeze_by_id(&id).await.unwrap();
            match (thawed, taken) {
                (Ok(_), Err(_)) => assert_eq!(now.state, FreezeState::Thawed),
                (Err(_), Ok(taken)) => {
                    assert_eq!((now.owner.as_str(), now.token), ("b", taken.token));
                    assert!(now.is_open());
                    store.thaw(&taken, Vec::new(), "b", "", at(2)).await.unwrap();
                }
                other => panic!("both or neither: {other:?}"),
            }
        }
    }

    async fn a_freeze_thaws_in_stages_and_may_stay_over_some_intents(db) {
        let store = db.store().await;
        let freeze = store.freeze(&request("F-1", "a", "S-1"), at(0)).await.unwrap();
        let held = HeldIntent { tenant_id: "t".into(), orders: vec!["O-1".into()], orphans: Vec::new(), because: "REVIEW".to_owned() };
        let narrowed = store.thaw(&freeze, vec![held.clone()], "a", "", at(1)).await.unwrap();
        assert_eq!(narrowed.state, FreezeState::Narrowed);
        assert_eq!(store.freeze_by_id("F-1").await.unwrap(), narrowed);
        assert_eq!(narrowed.narrowed_to, Some(vec![held]));
        refused(store.freeze(&request("F-2", "b", "S-1"), at(2)).await, "F-1 overlaps");
        store.thaw(&narrowed, Vec::new(), "a", "done", at(3)).await.unwrap();
        assert_eq!(store.freeze_by_id("F-1").await.unwrap().state, FreezeState::Thawed);
        store.freeze(&request("F-2", "b", "S-1"), at(4)).await.unwrap();
        let events: Vec<_> = store.history(&Search::default()).await.unwrap().into_iter().map(|e| e.event).collect();
        assert_eq!(events, ["froze", "narrowed", "narrowed", "thawed", "froze"]);
    }
}
