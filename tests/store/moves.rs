//! A move is a compare-and-set on one row.

use onefold::core::ids::*;
use onefold::core::status::Ledger;
use onefold::error::{Exit, Result};
use onefold::store::Store;
use onefold::store::moves::{Move, Moved};

use crate::common::book::{Book, at};
use crate::common::databases::*;
use crate::on_every_database;

async fn moved(
    store: &Store,
    ledger: Ledger,
    id: &str,
    from: &str,
    to: &str,
    version: &str,
) -> Result<Moved> {
    let (tenant_id, id, version) = (TenantId::from("t"), RowId::from(id), Version::from(version));
    let asked = Move {
        ledger,
        tenant_id: &tenant_id,
        id: &id,
        from,
        to,
        version: &version,
        refund_minor: if to == "REFUNDED" && ledger == Ledger::Payments { 400 } else { 0 },
        captured_at: (to == "CAPTURED").then_some(at(7)),
        amount: None,
        step_key: "",
        actor: "tester",
        now: onefold::core::time::Timestamp::from_micros(0),
    };
    store.shard(ledger, 0).transaction(async |tx| store.move_row(tx, 0, &asked).await).await
}

fn now(moved: Moved) -> (String, String, Option<i64>) {
    match moved {
        Moved::Now(row) => (row.status, row.version.to_string(), row.refunded_minor),
        Moved::NotAsSeen(row) => panic!("it is {row:?}"),
    }
}

fn not_as_seen(moved: Moved) -> Option<(String, String)> {
    match moved {
        Moved::NotAsSeen(row) => row.map(|row| (row.status, row.version.to_string())),
        Moved::Now(row) => panic!("it was moved: {row:?}"),
    }
}

/// The same ids in two tenants.
fn book() -> Book {
    let mut book = Book::new();
    book.bought("O-1", 0);
    book.message("M-1", "O-1", "ticket.issue", "QUEUED");
    book.payment("P-2", "O-1", 5, "AUTHORIZED").captured_at = None;
    let mut other = book.ledgers.clone();
    other.orders.iter_mut().for_each(|r| r.tenant_id = "T".into());
    other.payments.iter_mut().for_each(|r| r.tenant_id = "T".into());
    other.inventory.iter_mut().for_each(|r| r.tenant_id = "T".into());
    other.messages.iter_mut().for_each(|r| r.tenant_id = "T".into());
    book.ledgers.absorb(other);
    book
}

on_every_database! {
    async fn a_row_that_is_as_seen_moves_and_gets_another_version_and_nobody_elses_row_moves(db) {
        let book = book();
        let store = db.store_of(&book.ledgers).await;
        use Ledger::*;
        for (ledger, id, from, to, refunded) in [
            (Orders, "O-1", "PAID", "REFUNDING", None),
            (Payments, "P-O-1", "CAPTURED", "REFUNDING", Some(0)),
            (Inventory, "H-O-1", "CONFIRMED", "RELEASED", None),
            (Messages, "M-1", "QUEUED", "QUARANTINED", None),
        ] {
            let done = moved(&store, ledger, id, from, to, "1").await.unwrap();
            assert_eq!(now(done), (to.to_owned(), "2".to_owned(), refunded));
        }
        let done = moved(&store, Payments, "P-O-1", "REFUNDING", "REFUNDED", "2").await.unwrap();
        assert_eq!(now(done), ("REFUNDED".to_owned(), "3".to_owned(), Some(400)));

        let mut after = all_rows(&store).await;
        let others = |tenant: &TenantId| tenant.as_str() == "T";
        after.orders.retain(|r| others(&r.tenant_id));
        after.payments.retain(|r| others(&r.tenant_id));
        after.inventory.retain(|r| others(&r.tenant_id));
        after.messages.retain(|r| others(&r.tenant_id));
        let mut before = sorted(book.ledgers);
        before.orders.retain(|r| others(&r.tenant_id));
        before.payments.retain(|r| others(&r.tenant_id));
        before.inventory.retain(|r| others(&r.tenant_id));
        before.messages.retain(|r| others(&r.tenant_id));
        assert_eq!(after, before);
    }

    async fn a_capture_that_the_provider_tells_of_keeps_the_time_that_is_there(db) {
        let store = db.store_of(&book().ledgers).await;
        let _ = moved(&store, Ledger::Payments, "P-2", "AUTHORIZED", "CAPTURED", "1").await.unwrap();
        let rows = all_rows(&store).await;
        let row = rows.payments.iter().find(|p| p.payment_id.as_str() == "P-2" && p.tenant_id.as_str() == "t");
        assert_eq!(row.unwrap().captured_at, Some(at(7)));
    }

    async fn a_row_that_is_not_as_seen_stays_and_is_told_as_it_is(db) {
        let store = db.store_of(&book().ledgers).await;
        let before = all_rows(&store).await;
        let stale = moved(&store, Ledger::Orders, "O-1", "PAID", "REFUNDING", "0").await.unwrap();
        assert_eq!(not_as_seen(stale), Some(("PAID".to_owned(), "1".to_owned())));
        let elsewhere = moved(&store, Ledger::Orders, "O-1", "TICKETED", "REFUNDING", "1").await.unwrap();
        assert_eq!(not_as_seen(elsewhere), Some(("PAID".to_owned(), "1".to_owned())));
        let gone = moved(&store, Ledger::Orders, "O-2", "PAID", "REFUNDING", "1").await.unwrap();
        assert_eq!(not_as_seen(gone), None);
        let of_other_case = moved(&store, Ledger::Orders, "o-1", "PAID", "REFUNDING", "1").await.unwrap();
        assert_eq!(not_as_seen(of_other_case), None);
        let illegal = moved(&store, Ledger::Orders, "O-1", "PAID", "CANCELLED", "1").await.unwrap_err();
        assert_eq!(illegal.exit, Exit::Usage, "{illegal}");
        assert_eq!(all_rows(&store).await, before);
    }

    async fn of_many_who_move_a_row_at_once_one_does(db) {
        let store = db.store_of(&book().ledgers).await;
        let ends = at_once((0..8).map(|_| moved(&store, Ledger::Orders, "O-1", "PAID", "REFUNDING", "1"))).await;
        let hits = ends.iter().filter(|end| matches!(end, Ok(Moved::Now(_)))).count();
        assert_eq!(hits, 1, "{ends:?}");
    }
}
