//! The journal keeps its order, plans are saved once, and both tell the core what it asks for.

use onefold::core::evidence::{Effect, KeepOverride};
use onefold::core::ids::*;
use onefold::core::plan_text::IntentTexts;
use onefold::core::scope::Scope;
use onefold::core::status::Ledger;
use onefold::error::Error;
use onefold::store::journal::{Entry, Event, Search};
use onefold::store::plans::{KeepChanges, PlanParts, PlanState};

use crate::common::book::{Book, at};
use crate::common::databases::at_once;
use crate::common::maker;
use crate::on_every_database;

fn entry(event: Event, ledger: Ledger, row: &str, seconds: i64) -> Entry {
    Entry::new(event, "op", at(seconds)).row(ledger, &"t".into(), row)
}

on_every_database! {
    async fn entries_are_read_as_they_were_written_and_in_that_order(db) {
        let store = db.store().await;
        let mut written = Vec::new();
        for i in 0..5 {
            // Times go backwards: the order is that of writing.
            let mut entry = entry(Event::Moved, Ledger::Orders, &format!("O-{i}"), 100 - i)
                .freeze("F-1").plan("PL-1").moved("PAID", "REFUNDING").note("it's so 🎫");
            (entry.intent_id, entry.version) = (Some("I-1".to_owned()), Some("2".into()));
            (entry.amount_minor, entry.currency) = (Some(i), Some("CNY".to_owned()));
            store.append(&entry).await.unwrap();
            written.push(entry);
        }
        let mut read = store.history(&Search::default()).await.unwrap();
        assert!(read.windows(2).all(|pair| pair[0].seq < pair[1].seq));
        read.iter_mut().for_each(|e| e.seq = 0);
        assert_eq!(read, written);
    }

    async fn entries_written_at_once_are_all_there(db) {
        let store = db.store().await;
        let entries: Vec<_> = (0..12).map(|i| entry(Event::Asked, Ledger::Payments, &format!("P-{i}"), 0)).collect();
        for end in at_once(entries.iter().map(|e| store.append(e))).await {
            end.unwrap();
        }
        assert_eq!(store.history(&Search::default()).await.unwrap().len(), 12);
    }

    async fn an_orders_history_has_all_of_every_intent_that_it_was_in(db) {
        let store = db.store().await;
        for (intent, ledger, row, plan) in [
            ("I-1", Ledger::Orders, "O-1", "PL-1"),
            ("I-1", Ledger::Payments, "P-1", "PL-1"),
            ("I-2", Ledger::Payments, "O-1", "PL-1"),
            ("I-3", Ledger::Orders, "O-2", "PL-2"),
        ] {
            let mut entry = entry(Event::Moved, ledger, row, 0).plan(plan);
            entry.intent_id = Some(intent.to_owned());
            store.append(&entry).await.unwrap();
        }
        let rows = async |order: Option<&str>, plan: Option<&str>| -> Vec<String> {
            let search = Search { order: order.map(str::to_owned), plan: plan.map(str::to_owned), ..Search::default() };
            store.history(&search).await.unwrap().into_iter().filter_map(|e| e.row_id).map(|id| id.to_string()).collect()
        };
        assert_eq!(rows(Some("O-1"), None).await, ["O-1", "P-1"]);
        assert_eq!(rows(None, Some("PL-2")).await, ["O-2"]);
        assert_eq!(rows(Some("O-1"), Some("PL-2")).await, [""; 0]);
    }

    async fn evidence_is_what_the_journal_said_last(db) {
        let store = db.store().await;
        let mut asked = entry(Event::Asked, Ledger::Orders, "O-1", 1);
        asked.version = Some("3".into());
        for entry in [
            entry(Event::Asked, Ledger::Payments, "P-1", 1),
            entry(Event::Asked, Ledger::Payments, "P-1", 2),
            asked,
            entry(Event::Refused, Ledger::Payments, "P-2", 1),
            entry(Event::KeepChosen, Ledger::Orders, "O-1", 1).note("seen"),
            entry(Event::KeepChosen, Ledger::Orders, "O-2", 1).note("seen"),
            entry(Event::KeepWithdrawn, Ledger::Orders, "O-2", 1),
            entry(Event::Moved, Ledger::Payments, "P-3", 1),
        ] {
            store.append(&entry).await.unwrap();
        }
        let evidence = store.evidence().await.unwrap();
        let t = || TenantId::from("t");
        assert_eq!(evidence.asked_charges, [((t(), "P-1".into()), at(2))].into());
        assert_eq!(evidence.asked_orders, [((t(), "O-1".into()), "3".into())].into());
        assert_eq!(evidence.refused_refunds, [(t(), "P-2".into())].into());
        assert_eq!(evidence.keeps, [((t(), "O-1".into()), "seen".to_owned())].into());
        let never = Effect { ledger: Ledger::Orders, tenant_id: t(), id: "O-1".into(), from: "PAID".into(), to: "REFUNDING".into() };
        assert!(!evidence.occurrences.contains_key(&never));
    }

    async fn a_plan_is_read_as_it_was_saved_and_one_that_was_changed_does_not_match_its_digest(db) {
        let mut book = Book::new();
        for id in ["O-1", "O-2 ", "新-3"] {
            book.bought(id, 0);
        }
        let store = db.store_of(&book.ledgers).await;
        let plan = book.make().unwrap().into_plan("PL-1".to_owned(), at(0), Some("F-1".to_owned()));
        assert!(!plan.intents[0].steps.is_empty());
        store.save_plan(&plan, &KeepChanges::default(), maker("op")).await.unwrap();
        let saved = store.plan_by_id("PL-1").await.unwrap();
        assert_eq!((saved.plan.clone(), saved.state, saved.superseded_by), (plan, PlanState::Open, None));
        assert!(saved.plan.digest_matches());
        assert!(store.plan_by_id("pl-1").await.is_err(), "ids are compared byte for byte");
        let changes = ["intents = REPLACE(intents, 'REFUNDING', 'CAPTURED')", "plan_id = 'PL-2'"];
        for change in changes {
            db.run(format!("UPDATE onefold_plan_parts SET {change}")).await;
            let changed = store.plan_by_id("PL-1").await.unwrap_err();
            assert!(changed.to_string().contains("digest does not match"), "{changed}");
        }
    }

    async fn a_plan_that_is_too_long_for_one_row_is_read_as_it_was_saved(db) {
        let store = db.store().await;
        let mut book = Book::new();
        book.bought("O-1", 0);
        let mut decided = book.make().unwrap();
        let long = KeepOverride { order_id: "O-1".into(), because: "為".repeat(1 << 19) };
        decided.intents[0].override_keep = Some(long);
        decided.intents = vec![decided.intents[0].clone(); 20];
        let plan = decided.into_plan("PL-1".to_owned(), at(0), None);
        assert_eq!(IntentTexts::of(&plan.intents).pieces().count(), 20);
        store.save_plan(&plan, &KeepChanges::default(), maker("op")).await.unwrap();
        assert!(store.plan_by_id("PL-1").await.unwrap().plan == plan);
    }

    async fn a_plan_that_changes_between_two_readings_is_refused(db) {
        let store = db.store().await;
        let mut book = Book::new();
        book.bought("O-1", 0);
        let mut decided = book.make().unwrap();
        decided.intents = vec![decided.intents[0].clone(); 6000];
        let plan = decided.into_plan("PL-1".to_owned(), at(0), None);
        let texts = IntentTexts::of(&plan.intents);
        let pieces = texts.pieces().count();
        assert!(pieces > 1, "{pieces}");
        store.save_plan(&plan, &KeepChanges::default(), maker("op")).await.unwrap();
        let read = async |parts: &mut PlanParts<'_>| {
            let mut intents = Vec::new();
            while let Some(part) = parts.next().await? {
                intents.extend(part);
            }
            Ok::<_, Error>(intents)
        };
        let mut parts = store.parts_of_plan("PL-1").await.unwrap();
        assert!(parts.saved.plan == plan.without_intents());
        for _ in 0..2 {
            assert!(read(&mut parts).await.unwrap() == plan.intents);
        }
        let begins = db.rows("SELECT SUBSTR(intents, 1, 4) FROM onefold_plan_parts WHERE part = 0").await;
        assert_eq!(begins, [["lz4:"]], "what is long is packed");
        let last = pieces - 1;
        let write = async |text: &str| {
            db.run(format!("UPDATE onefold_plan_parts SET intents = '{text}' WHERE part = {last}")).await;
        };
        let text = texts.pieces().last().unwrap();
        // Not a word of what it says is another.
        write(&text.replace('{', "{ ")).await;
        let changed = read(&mut parts).await.unwrap_err();
        assert!(changed.message.contains("PL-1 is not what was decided"), "{changed}");
        let mut parts = store.parts_of_plan("PL-1").await.unwrap();
        let changed = read(&mut parts).await.unwrap_err();
        assert!(changed.message.contains("digest does not match"), "{changed}");
        write("lz4:????").await;
        let unreadable = store.plan_by_id("PL-1").await.unwrap_err();
        assert!(unreadable.message.contains("PL-1 is not what was decided"), "{unreadable}");
        // As an older onefold wrote it.
        write(text).await;
        let mut parts = store.parts_of_plan("PL-1").await.unwrap();
        read(&mut parts).await.unwrap();
        db.run(format!("UPDATE onefold_plan_parts SET plan_id = 'PL-2' WHERE part = {last}")).await;
        let shorter = read(&mut parts).await.unwrap_err();
        assert!(shorter.message.contains("PL-1 is not what was decided"), "{shorter}");
    }

    async fn a_newer_plan_of_a_freeze_supersedes_open_ones_whose_scope_it_meets(db) {
        let store = db.store().await;
        let save = async |id: &str, show: &str, freeze: Option<&str>, seconds: i64| {
            let mut book = Book::new();
            book.scope = Scope { shows: [ShowId::from(show)].into(), ..Scope::default() };
            let plan = book.make().unwrap().into_plan(id.to_owned(), at(seconds), freeze.map(str::to_owned));
            store.save_plan(&plan, &KeepChanges::default(), maker("op")).await.unwrap();
        };
        let state = async |id: &str| {
            let saved = store.plan_by_id(id).await.unwrap();
            (saved.state, saved.superseded_by)
        };
        save("PL-1", "a", Some("F-1"), 1).await;
        save("PL-2", "b", Some("F-1"), 2).await;
        save("PL-3", "a", Some("F-2"), 3).await;
        save("PL-4", "a", None, 4).await;
        store.end_plan("PL-2", "op", "", at(4)).await.unwrap();
        save("PL-5", "a", Some("F-1"), 5).await;
        save("PL-6", "b", Some("F-1"), 6).await;
        assert_eq!(state("PL-1").await, (PlanState::Superseded, Some("PL-5".to_owned())));
        assert_eq!(state("PL-2").await, (PlanState::Ended, None));
        assert_eq!(state("PL-3").await, (PlanState::Open, None));
        assert_eq!(state("PL-4").await, (PlanState::DryRun, None));
        assert_eq!(state("PL-5").await, (PlanState::Open, None));
        store.end_plan("PL-1", "op", "", at(7)).await.unwrap();
        assert_eq!(state("PL-1").await.0, PlanState::Superseded, "what was superseded does not end");
        assert_eq!(store.plans_of("F-1").await.unwrap()[0].plan.plan_id, "PL-6");
        let heads = store.newest_plans().await.unwrap();
        let heads: Vec<_> = heads.iter().map(|head| head.plan_id.as_str()).collect();
        assert_eq!(heads, ["PL-6", "PL-5", "PL-4", "PL-3", "PL-2", "PL-1"]);
    }

    async fn what_an_operator_chose_is_saved_with_the_plan(db) {
        let store = db.store().await;
        let plan = |id: &str, freeze: Option<&str>| {
            Book::new().make().unwrap().into_plan(id.to_owned(), at(0), freeze.map(str::to_owned))
        };
        let keep = KeepOverride { order_id: "O-1".into(), because: "seen".to_owned() };
        let keeps = KeepChanges { chosen: vec![("t".into(), keep)], withdrawn: Vec::new() };
        store.save_plan(&plan("PL-dry", None), &keeps, maker("op")).await.unwrap();
        assert_eq!(store.evidence().await.unwrap().keeps.len(), 0, "what is chosen in a dry run is chosen for it alone");
        let plan = plan("PL-1", Some("F-1"));
        store.save_plan(&plan, &keeps, maker("op")).await.unwrap();
        assert_eq!(store.evidence().await.unwrap().keeps.len(), 1);
        assert!(store.save_plan(&plan, &keeps, maker("op")).await.is_err(), "an id is used once");
        assert_eq!(store.history(&Search::default()).await.unwrap().len(), 3);
    }
}
