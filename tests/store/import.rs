//! Rows go in and come out as they are, whatever their ids look like.

use onefold::core::ids::*;
use onefold::core::ledger::*;
use onefold::core::scope::Scope;
use onefold::core::status::Ledger;
use onefold::error::Error;
use onefold::store::import::Imported;
use onefold::store::{Places, Queries, Statuses, Store};

use crate::common::book::Book;
use crate::common::databases::*;
use crate::on_every_database;

/// Ids that somebody has in a ledger.
fn nasty_ids() -> Vec<String> {
    let mut ids: Vec<String> = [
        "o1",
        "O1",
        "o1 ",
        " o1",
        "o1\t",
        "ó1",
        "o\u{301}1",
        "ß",
        "ss",
        "İ",
        "it's",
        "\"quoted\"",
        "`tick`",
        "a\\b",
        "a\\'b",
        "a;b--c",
        ":id",
        "{id}",
        "$1",
        "?",
        "%",
        "_",
        "新-票",
        "🎫",
        "🎫🎫",
        "a\u{200d}b",
        "ab",
        "line\nbreak",
        "0",
        "00",
        "1e5",
        "null",
    ]
    .into_iter()
    .map(str::to_owned)
    .collect();
    ids.push("x".repeat(190));
    ids.push("🎫".repeat(190));
    ids
}

/// An order with one row in each other ledger, every id of which is this one.
fn purchase(book: &mut Book, tenant: &str, id: &str) {
    let order = book.order(id, 0, "PAID");
    (order.tenant_id, order.user_id, order.show_id) = (tenant.into(), id.into(), id.into());
    (order.session_id, order.idempotency_key, order.item) =
        (Some(id.into()), Some(id.into()), Some(id.into()));
    (order.source, order.trace_id, order.version) = (Some(id.into()), Some(id.into()), id.into());
    let order = order.clone();
    let payment = book.payment(id, id, 1, "CAPTURED");
    (payment.tenant_id, payment.user_id, payment.show_id) = (tenant.into(), id.into(), id.into());
    (payment.provider, payment.provider_txn_id) = (id.into(), Some(id.into()));
    payment.captured_at = Some(order.created_at);
    let hold = book.hold(id, id, "HELD");
    (hold.tenant_id, hold.user_id, hold.show_id) = (tenant.into(), id.into(), id.into());
    hold.expires_at = Some(order.created_at);
    let message = book.message(id, id, "ticket.issue", "QUEUED");
    (message.tenant_id, message.user_id, message.show_id) = (tenant.into(), None, None);
    (message.message_key, message.topic) = (Some(id.into()), id.into());
}

fn nasty() -> Ledgers {
    let mut book = Book::new();
    for tenant in ["t", "T", "t "] {
        for id in nasty_ids() {
            purchase(&mut book, tenant, &id);
        }
    }
    book.ledgers
}

on_every_database! {
    async fn rows_come_out_as_they_went_in_and_every_id_is_itself_alone(db) {
        let ledgers = nasty();
        let store = db.store_of(&ledgers).await;
        assert_eq!(all_rows(&store).await, sorted(ledgers.clone()));
        for order in &ledgers.orders {
            let id = RowId::from(&order.order_id);
            assert_eq!(store.read_row::<Order>(&order.tenant_id, &id).await.unwrap().as_ref(), Some(order));
            let state = store.row_state(Ledger::Orders, &order.tenant_id, &id).await.unwrap().unwrap();
            assert_eq!(state.version, order.version);
        }
        for id in nasty_ids() {
            let scope = Scope { users: [UserId::from(id.as_str())].into(), ..Scope::default() };
            let read = store.read_scope(&scope).await.unwrap();
            assert_eq!(read.orders.len(), 3, "of each tenant one: {id:?}");
            assert!(read.orders.iter().all(|o| o.order_id.as_str() == id), "{id:?}");
            assert_eq!((read.payments.len(), read.inventory.len(), read.messages.len()), (3, 3, 3), "{id:?}");
        }
        assert!(store.read_row::<Order>(&"t".into(), &"o1  ".into()).await.unwrap().is_none());
    }

    async fn importing_the_same_again_changes_nothing_and_other_content_is_refused_by_field(db) {
        let ledgers = nasty();
        let store = db.store().await;
        let count = ledgers.orders.len() as u64;
        let dry = store.import(&ledgers, true, |_, _| ()).await.unwrap();
        assert_eq!(dry, [Imported { added: count, present: 0 }; 4]);
        assert!(all_rows(&store).await.is_empty(), "a dry run writes nothing");
        store.import(&ledgers, false, |_, _| ()).await.unwrap();
        let again = store.import(&ledgers, false, |_, _| ()).await.unwrap();
        assert_eq!(again, [Imported { added: 0, present: count }; 4]);

        let mut other = ledgers.clone();
        other.orders.truncate(1);
        other.messages[0].attempts = 7;
        purchase_of(&mut other.orders);
        let error = store.import(&other, false, |_, _| ()).await.unwrap_err();
        assert!(error.message.contains("attempts is 0, the file says 7"), "{error}");
        assert_eq!(all_rows(&store).await, sorted(ledgers), "all or nothing");
    }

    async fn rows_of_many_portions_are_added_once_and_those_that_are_new_beside_others(db) {
        let store = db.store().await;
        let all = shop(2_345);
        let mut some = all.clone();
        some.orders.truncate(1_200);
        some.messages.retain(|m| m.message_id.as_str() > "M-2000");
        store.import(&some, false, |_, _| ()).await.unwrap();
        let (orders, messages) = (some.orders.len() as u64, some.messages.len() as u64);
        let mut told = Vec::new();
        let rest = store.import(&all, false, |ledger, rows| told.push((ledger, rows))).await.unwrap();
        assert_eq!(rest[0], Imported { added: 2_345 - orders, present: orders });
        assert_eq!(rest[1], Imported { added: 0, present: 2_345 });
        assert_eq!(rest[3], Imported { added: 2_345 - messages, present: messages });
        assert_eq!(all_rows(&store).await, sorted(all));
        assert_eq!(told.last(), Some(&(Ledger::Messages, 2_345)));
    }

    async fn two_that_import_the_same_at_once_add_every_row_once(db) {
        let all = shop(300);
        let stores = [db.store().await, db.open().await];
        let both = at_once(stores.iter().map(|store| store.import(&all, false, |_, _| ()))).await;
        for ledger in Ledger::ALL {
            let of = |i: usize| both[i].as_ref().unwrap()[ledger as usize];
            assert_eq!(of(0).added + of(1).added, 300, "{ledger}");
            assert_eq!(of(0).added + of(0).present, 300, "{ledger}");
            assert_eq!(of(1).added + of(1).present, 300, "{ledger}");
        }
        assert_eq!(all_rows(&stores[0]).await, sorted(all));
    }

    async fn a_unique_index_of_a_sites_own_is_an_error_at_once(db) {
        let store = db.store().await;
        db.run("CREATE UNIQUE INDEX one_order_a_trace ON orders (trace_id)").await;
        let mut ledgers = shop(2);
        ledgers.orders.iter_mut().for_each(|order| order.trace_id = Some("tr-1".to_owned()));
        let error = store.import(&ledgers, false, |_, _| ()).await.unwrap_err();
        assert!(!error.is_clash(), "{error}");
        assert!(error.message.contains("trace"), "{error}");
        assert!(all_rows(&store).await.is_empty());
    }

    async fn an_error_of_the_rows_undoes_what_was_added_before_it(db) {
        struct Broken(Ledgers);
        impl Rows for Broken {
            fn count(&self, ledger: Ledger) -> u64 {
                self.0.count(ledger)
            }
            fn orders(&self) -> Portions<'_, Order> {
                self.0.orders()
            }
            fn payments(&self) -> Portions<'_, Payment> {
                self.0.payments()
            }
            fn inventory(&self) -> Portions<'_, Hold> {
                let broken = std::iter::once_with(|| Err(Error::failure("the file has changed")));
                Box::new(self.0.inventory().chain(broken))
            }
            fn messages(&self) -> Portions<'_, Message> {
                self.0.messages()
            }
        }
        let store = db.store().await;
        let rows = Broken(shop(20));
        let error = store.import(&rows, false, |_, _| ()).await.unwrap_err();
        assert_eq!(error.message, "the file has changed");
        assert!(all_rows(&store).await.is_empty());
        store.import(&rows.0, false, |_, _| ()).await.unwrap();
        assert_eq!(all_rows(&store).await, sorted(rows.0));
    }

    async fn an_id_that_is_too_long_for_the_schema_is_an_error_and_is_never_cut_off(db) {
        let store = db.store().await;
        let mut book = Book::new();
        book.order(&"x".repeat(191), 0, "PAID");
        match store.import(&book.ledgers, false, |_, _| ()).await {
            Ok(_) => assert_eq!(all_rows(&store).await, book.ledgers, "no limit here"),
            Err(error) => {
                assert_eq!(db.kind, Kind::Mariadb);
                assert!(error.message.contains("order_id"), "{error}");
                assert!(all_rows(&store).await.is_empty());
            }
        }
    }

    async fn what_the_contract_does_not_allow_is_an_error_that_names_row_and_column(db) {
        let mut book = Book::new();
        book.order("O-1", 0, "PAID");
        let store = db.store_of(&book.ledgers).await;
        db.run("UPDATE orders SET status = 'LOST'").await;
        let error = store.read_scope(&Scope::default()).await.unwrap_err();
        for part in ["order O-1", "status", "LOST", "PENDING_PAYMENT"] {
            assert!(error.message.contains(part), "{part}: {error}");
        }
    }

    async fn a_blank_id_is_none_where_there_may_be_none_and_an_error_elsewhere(db) {
        let mut book = Book::new();
        book.bought("A", 0);
        book.bought("B", 1);
        let store = db.store_of(&book.ledgers).await;
        db.run("UPDATE payments SET provider_txn_id = '', session_id = '  '").await;
        db.run("UPDATE orders SET session_id = '', idempotency_key = ' ', item = ''").await;
        let read = store.read_scope(&Scope::default()).await.unwrap();
        assert_eq!(read.payments.len(), 2);
        assert!(read.payments.iter().all(|p| p.provider_txn_id.is_none() && p.session_id.is_none()));
        assert!(read.orders.iter().all(|o| o.session_id.is_none() && o.idempotency_key.is_none() && o.item.is_none()));
        db.run("UPDATE payments SET user_id = '' WHERE payment_id = 'P-B'").await;
        let error = store.read_scope(&Scope::default()).await.unwrap_err();
        assert_eq!(error.message, "payment P-B, column user_id: is null or blank");
        assert!(error.hint.unwrap().contains("--show"));
    }

    async fn each_ledger_is_written_to_its_own_database(db) {
        let elsewhere = Db::new(Kind::Sqlite);
        let mut places = Places::one(&db.url);
        places.ledgers[Ledger::Orders as usize] = vec![elsewhere.url.clone()];
        let store = Store::open(&places, Queries::default(), Statuses::default(), true).await.unwrap();
        store.init().await.unwrap();
        let mut book = Book::new();
        book.bought("O-1", 0);
        store.import(&book.ledgers, false, |_, _| ()).await.unwrap();
        assert_eq!(all_rows(&store).await, book.ledgers);
        assert_eq!(elsewhere.open().await.read_row::<Order>(&"t".into(), &"O-1".into()).await.unwrap(), Some(book.ledgers.orders[0].clone()));

        let mut other = book.ledgers.clone();
        other.payments[0].amount_minor = 7;
        purchase_of(&mut other.orders);
        let error = store.import(&other, false, |_, _| ()).await.unwrap_err();
        assert!(error.message.contains("amount_minor"), "{error}");
        assert_eq!(all_rows(&store).await, book.ledgers, "nothing, in no database");

        places.ledgers[Ledger::Orders as usize] = vec![elsewhere.url.clone(), db.url.clone()];
        let store = Store::open(&places, Queries::default(), Statuses::default(), true).await.unwrap();
        let error = store.import(&book.ledgers, false, |_, _| ()).await.unwrap_err();
        assert!(error.message.contains("several shards"), "{error}");
    }
}

/// So many purchases.
fn shop(purchases: usize) -> Ledgers {
    let mut book = Book::new();
    for n in 0..purchases {
        purchase(&mut book, "t", &format!("M-{n:04}"));
    }
    book.ledgers
}

/// Adds one more order to a ledger.
fn purchase_of(orders: &mut Vec<Order>) {
    let mut book = Book::new();
    orders.push(book.order("O-new", 9, "PAID").clone());
}
