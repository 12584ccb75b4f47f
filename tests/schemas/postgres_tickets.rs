//! `fixtures/schemas/postgres-tickets`

use serde_json::{Value, json};

use crate::common::site::Kind;
use crate::example::{Example, outcomes};

fn tickets() -> Example {
    Example::new(Kind::Postgres, "postgres-tickets", &["--tenant", "3"])
}

const BOOKINGS: &str =
    "SELECT concat_ws(' ', trim(code), state) FROM booking WHERE organizer_id = 3 ORDER BY 1";
const MARKS: &str = "SELECT concat_ws(' ', trim(code), string_agg(mark, ' ' ORDER BY made_at)) FROM booking_mark GROUP BY code ORDER BY 1";
const PAYMENTS: &str =
    "SELECT concat_ws(' ', trim(code), n, state, amount) FROM payment WHERE organizer_id = 3 ORDER BY 1";
const REFUNDS: &str = "SELECT concat_ws(' ', trim(code), n, payment_n, state, amount) FROM refund ORDER BY 1";
const MESSAGES: &str = "SELECT concat_ws(' ', 'mail', id, state) FROM queued_mail WHERE organizer_id = 3
    UNION ALL SELECT concat_ws(' ', 'hook', id, CASE WHEN withheld_at IS NOT NULL THEN 'withheld' END) FROM webhook_call ORDER BY 1";
/// Everything of the organizer next door, whose codes are the same.
const NEXT_DOOR: &str = "SELECT concat_ws(' ', b, p, s, q) FROM booking b JOIN payment p USING (organizer_id, code)
    JOIN booking_position s USING (organizer_id, code) JOIN queued_mail q USING (organizer_id, code) WHERE organizer_id = 4";

#[test]
fn runs_from_init_to_thaw() {
    let tickets = tickets();
    let next_door = tickets.column(NEXT_DOOR);
    assert_eq!(next_door.len(), 1);
    let payments = tickets.column(PAYMENTS);
    let made = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'
        AND table_name IN ('orders', 'payments', 'inventory', 'messages', 'onefold_journal')";
    assert_eq!(tickets.column(made), ["onefold_journal"], "a site's own tables are its own business");

    let freeze = tickets.freeze();
    tickets
        .run(&["reconcile", "--tenant", "3"])
        .ends(0)
        .prints("PAYMENT_WITHOUT_ORDER")
        .prints("SESSION_UNKNOWN");
    let plan = tickets.plan();
    assert_eq!(
        outcomes(&plan),
        [
            "- UNWIND -",
            "ana@example.org KEEP K7Q2",
            "bea@example.org KEEP M4RT",
            "caio@example.org KEEP 9FGJ",
            "dora@example.org CLEAN -",
            "dora@example.org REVIEW - SESSION_UNKNOWN",
            "emil@example.org REVIEW - PAYMENT_WITHOUT_ORDER",
            "fia@example.org CLEAN QX8Y",
            "unknown REVIEW - HOLD_WITHOUT_ORDER",
        ]
    );
    assert_eq!(
        plan["sums"]["money"][1],
        json!({ "tenant_id": "3", "currency": "JPY", "captured": 25000, "kept": 12500,
        "to_refund": 12500, "in_review": 0, "unsettled": 0, "clean": 0 })
    );

    let plan_id = plan["plan_id"].as_str().unwrap();
    assert!(!tickets.inbox().exists());
    tickets.apply(plan_id).ends(0).prints("25 of 25 steps are done, 25 in this run");
    let told: Value = serde_json::from_str(&std::fs::read_to_string(tickets.inbox()).unwrap()).unwrap();
    assert_eq!((&told["plan_id"], &told["steps_done"]), (&json!(plan_id), &json!(25)));

    assert_eq!(
        tickets.column(BOOKINGS),
        [
            "3XWP c", "8HZD c", "9FGJ p", "B2LN c", "K7Q2 p", "M4RT p", "P1GE c", "QX8Y p", "T5VA p",
            "W6CK e", "ZJ4E n"
        ]
    );
    assert_eq!(
        tickets.column(MARKS),
        ["3XWP REFUNDING REFUNDED", "8HZD REFUNDING REFUNDED", "B2LN CANCELLING", "P1GE CANCELLING"]
    );
    assert_eq!(
        tickets.column("SELECT concat_ws(' ', trim(code), action) FROM booking_log ORDER BY 1"),
        [
            "3XWP refunded as a double",
            "8HZD refunded as a double",
            "B2LN cancelled as a double",
            "P1GE cancelled as a double"
        ]
    );
    assert_eq!(
        tickets.column(REFUNDS),
        ["3XWP 1 1 failed 10.00", "3XWP 2 1 done 70.50", "8HZD 1 1 done 12500.00"]
    );
    let after: Vec<_> = payments.iter().map(|p| p.replace("B2LN 1 authorized", "B2LN 1 released")).collect();
    assert_eq!(tickets.column(PAYMENTS), after, "a refund does not touch its payment");
    assert_eq!(
        tickets.column("SELECT seat FROM booking_position WHERE is_cancelled ORDER BY length(seat), seat"),
        ["A-3", "A-4", "A-6", "B-2", "A-10"]
    );
    assert_eq!(
        tickets.column(MESSAGES),
        [
            "hook 1 withheld",
            "hook 2 withheld",
            "hook 3",
            "hook 4 withheld",
            "mail 1 waiting",
            "mail 2 withheld",
            "mail 3 withheld",
            "mail 4 waiting",
            "mail 5 sent"
        ]
    );
    assert_eq!(tickets.column(NEXT_DOOR), next_door, "the same code of another organizer is another booking");

    tickets.apply(plan_id).ends(0).prints("nothing to do");
    assert_eq!(tickets.column(REFUNDS).len(), 3);
    tickets.run(&["verify", plan_id]).ends(6).prints("4 intents kept or unwound, 0 violations");
    tickets.run(&["thaw", &freeze]).ends(6).prints("all is thawed but 3 intents").prints("payment GONE-P-1");
}

#[test]
fn a_booking_that_is_purged_leaves_orphans_behind() {
    let tickets = tickets();
    tickets.freeze();
    let plan_id = tickets.plan_id();
    // Its payment says itself whose it was.
    tickets.sql("DELETE FROM booking WHERE organizer_id = 3 AND code = '8HZD'");
    tickets.apply(&plan_id).ends(4).prints("order 8HZD").prints("3 of 4 intents are through");
    assert_eq!(tickets.column("SELECT state FROM refund WHERE code = '8HZD'"), [""; 0]);
    let reasons = outcomes(&tickets.plan());
    assert!(reasons.contains(&"bea@example.org REVIEW - PAYMENT_WITHOUT_ORDER".to_owned()), "{reasons:?}");
    assert!(reasons.contains(&"unknown REVIEW - HOLD_WITHOUT_ORDER".to_owned()), "{reasons:?}");

    // One that does not say its event has no currency either, and no sum could be trusted.
    tickets.sql("UPDATE payment SET info = info - 'event' WHERE organizer_id = 3 AND code = '8HZD'");
    tickets.run(&["plan", "--tenant", "3"]).fails(2, &["payment 8HZD-P-1", "currency", "is null"]);
}

#[test]
fn any_write_to_a_booking_shows_in_its_xmin() {
    let tickets = tickets();
    tickets.freeze();
    let plan_id = tickets.plan_id();
    tickets.sql("UPDATE booking SET email = email WHERE organizer_id = 3 AND code = '3XWP'");
    // A refund that the desk began meanwhile is a row elsewhere.
    tickets.sql("INSERT INTO refund VALUES (3, '8HZD', 1, 1, 'transit', 12500, 'at the desk', now(), NULL)");
    tickets
        .apply(&plan_id)
        .ends(4)
        .prints("order 3XWP has version")
        .prints("payment 8HZD-P-1 is REFUNDING, was CAPTURED");
    assert_eq!(tickets.column(REFUNDS), ["3XWP 1 1 failed 10.00", "8HZD 1 1 transit 12500.00"]);
    assert_eq!(
        tickets.column(MARKS),
        ["B2LN CANCELLING", "P1GE CANCELLING"],
        "the other intent went through"
    );

    tickets.apply(&tickets.plan_id()).ends(0);
    assert_eq!(
        tickets.column(REFUNDS),
        ["3XWP 1 1 failed 10.00", "3XWP 2 1 done 70.50", "8HZD 1 1 transit 12500.00"]
    );
}

#[test]
fn an_apply_that_broke_off_is_resumed_and_refunds_once() {
    let tickets = tickets();
    tickets.freeze();
    let plan_id = tickets.plan_id();
    tickets.sql(
        "CREATE FUNCTION no_more() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'seats are down'; END $$;
         CREATE TRIGGER no_more BEFORE UPDATE ON booking_position FOR EACH ROW EXECUTE FUNCTION no_more()",
    );
    tickets.apply(&plan_id).ends(1).prints("It was broken off: ").prints("seats are down");
    assert_eq!(tickets.column(REFUNDS), ["3XWP 1 1 failed 10.00", "3XWP 2 1 done 70.50"]);
    assert_eq!(tickets.column(MARKS), ["3XWP REFUNDING"]);
    tickets.sql("DROP TRIGGER no_more ON booking_position");
    tickets.apply(&plan_id).ends(0).prints("25 of 25 steps are done");
    assert_eq!(
        tickets.column(REFUNDS),
        ["3XWP 1 1 failed 10.00", "3XWP 2 1 done 70.50", "8HZD 1 1 done 12500.00"]
    );
}

#[test]
fn a_refund_that_the_provider_refuses_ends_as_failed() {
    let tickets = tickets();
    tickets.freeze();
    tickets.provider_knows("'3', 'card', 'ch_102', 'CAPTURED', 7050, 0, 'EUR', NULL, 'refuse'");
    let plan_id = tickets.plan_id();
    tickets.apply(&plan_id).ends(6).prints("refused");
    assert_eq!(
        tickets.column(REFUNDS),
        ["3XWP 1 1 failed 10.00", "3XWP 2 1 failed 70.50", "8HZD 1 1 done 12500.00"]
    );
    assert!(outcomes(&tickets.plan()).contains(&"ana@example.org REVIEW - REFUND_REFUSED".to_owned()));
}

#[test]
fn what_converge_learns_is_written_where_the_shop_keeps_it() {
    let tickets = tickets();
    tickets.sql(
        "UPDATE payment SET state = 'pending', confirmed_at = NULL WHERE organizer_id = 3 AND code = '8HZD';
         UPDATE booking SET state = 'n' WHERE organizer_id = 3 AND code = '8HZD'",
    );
    tickets.provider_knows("'3', 'card', 'ch_104', 'CAPTURED', 12500, 0, 'JPY', 1774782044000000, 'ok'");
    tickets.freeze();
    assert!(outcomes(&tickets.plan()).contains(&"bea@example.org UNSETTLED -".to_owned()));
    tickets.run(&["converge", "--tenant", "3"]).ends(0);
    let payment = "SELECT concat_ws(' ', state, confirmed_at AT TIME ZONE 'UTC') FROM payment WHERE organizer_id = 3 AND code = '8HZD'";
    assert_eq!(tickets.column(payment), ["confirmed 2026-03-29 11:00:44"]);
    tickets.apply(&tickets.plan_id()).ends(0);
    assert_eq!(tickets.column(REFUNDS)[2], "8HZD 1 1 done 12500.00");
}

#[test]
fn what_was_withheld_is_let_go_again_in_its_own_table() {
    let tickets = tickets();
    tickets.freeze();
    tickets.apply(&tickets.plan_id()).ends(0);
    for message in ["mail-3", "hook-2"] {
        tickets.run(&["requeue", message, "--tenant", "3", "--because", "it is wanted after all"]).ends(0);
    }
    assert_eq!(tickets.column(MESSAGES)[1], "hook 2");
    assert_eq!(tickets.column(MESSAGES)[6], "mail 3 waiting");
    assert_eq!(
        tickets.column("SELECT concat_ws(' ', tries, started_at) FROM webhook_call WHERE id = 2"),
        ["0"]
    );
}

#[test]
fn nothing_is_moved_where_no_provider_is_configured_for_a_payment() {
    let tickets = tickets().configured("[providers.\"*\"]", "[providers.another]");
    tickets.freeze();
    tickets.apply(&tickets.plan_id()).fails(7, &["no provider is configured", "[providers."]);
    assert_eq!(tickets.column(MARKS), [""; 0]);
    assert!(!tickets.inbox().exists());
}

#[test]
fn a_command_after_apply_that_fails_is_told_and_undoes_nothing() {
    let tickets = tickets().configured("cat >> ", "echo the seat map is asleep >&2; exit 3; cat >> ");
    tickets.freeze();
    tickets
        .apply(&tickets.plan_id())
        .ends(1)
        .prints("after_apply: sh: ended with")
        .prints("the seat map is asleep");
    assert_eq!(tickets.column(REFUNDS).len(), 3);
}
