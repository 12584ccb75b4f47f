//! `fixtures/schemas/mariadb-shop`

use serde_json::json;

use crate::common::site::Kind;
use crate::example::{Example, outcomes};

fn shop() -> Example {
    Example::new(Kind::Mariadb, "mariadb-shop", &["--tenant", "7"])
}

const PURCHASES: &str = "SELECT CONCAT_WS(' ', purchase_no, state) FROM purchase WHERE shop = 7 ORDER BY 1";
const PAYMENTS: &str = "SELECT CONCAT_WS(' ', CONCAT('W-', id), state, amount, given_back) FROM wallet_payment WHERE shop = 7
    UNION ALL SELECT CONCAT_WS(' ', CONCAT('C-', id), state, amount, given_back) FROM card_charge WHERE shop = 7 ORDER BY 1";
const HOLDS: &str = "SELECT CONCAT_WS(' ', id, state, rev) FROM seat_hold WHERE shop = 7 ORDER BY id";
const OUTBOX: &str = "SELECT CONCAT_WS(' ', id, state) FROM outbox WHERE shop = 7 ORDER BY id";
/// All that moves could have changed of the shop next door, whose numbers are the same.
const NEXT_DOOR: &str =
    "SELECT CONCAT_WS(' ', p.state, p.moved_at, c.state, c.given_back, c.etag, h.state, h.rev, o.state)
    FROM purchase p JOIN card_charge c USING (shop, purchase_no) JOIN seat_hold h USING (shop, purchase_no)
    JOIN outbox o USING (shop, purchase_no) WHERE shop = 8";

#[test]
fn runs_from_init_to_thaw() {
    let shop = shop();
    let next_door = shop.column(NEXT_DOOR);
    assert_eq!(next_door, ["20 4 0.00 ffff01 2 1 0"]);
    let made = "SELECT TABLE_NAME FROM information_schema.TABLES
        WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('orders', 'payments', 'onefold_journal', 'onefold_steps')";
    assert_eq!(shop.column(made), [""; 0], "the journal is elsewhere, and the ledgers are the shop's own");

    let (purchases, payments) = (shop.column(PURCHASES), shop.column(PAYMENTS));
    shop.run(&["check", "--try-moves"])
        .ends(0)
        .prints("0 refused, 0 unproven")
        .prints("W-1 CAPTURED→REFUNDING: ");
    assert_eq!(
        (shop.column(PURCHASES), shop.column(PAYMENTS)),
        (purchases, payments),
        "a trial is rolled back"
    );

    let freeze = shop.freeze();
    shop.run(&["reconcile", "--tenant", "7"]).ends(0).prints("PAYMENT_WITHOUT_ORDER").prints("DISTINCT_KEYS");
    let plan = shop.plan();
    assert_eq!(
        outcomes(&plan),
        [
            "5001 KEEP P-1001",
            "5002 KEEP P-1003",
            "5003 KEEP P-1005",
            "5004 REVIEW - DISTINCT_KEYS",
            "5005 REVIEW - HOLD_WITHOUT_ORDER",
            "5005 REVIEW - PAYMENT_WITHOUT_ORDER",
            "5005 UNWIND -",
            "5006 REVIEW - PAYMENT_WITHOUT_ORDER",
            "5007 UNWIND -",
            "5008 CLEAN P-1012",
            "unknown REVIEW - HOLD_WITHOUT_ORDER",
        ]
    );
    assert_eq!(
        plan["sums"]["money"][0],
        json!({ "tenant_id": "7", "currency": "CNY", "captured": 24070, "kept": 12035,
        "to_refund": 12035, "in_review": 0, "unsettled": 0, "clean": 0 })
    );
    assert_eq!(
        plan["sums"]["money"][1],
        json!({ "tenant_id": "7", "currency": "JPY", "captured": 44100, "kept": 14700,
        "to_refund": 9800, "in_review": 14700, "unsettled": 0, "clean": 4900 })
    );

    let plan_id = plan["plan_id"].as_str().unwrap();
    shop.apply(plan_id).ends(0).prints("19 of 19 steps are done, 19 in this run");
    assert_eq!(
        shop.column(PURCHASES),
        [
            "P-1001 20",
            "P-1002 51",
            "P-1003 20",
            "P-1004 51",
            "P-1005 20",
            "P-1006 41",
            "P-1007 20",
            "P-1008 10",
            "P-1009 20",
            "P-1012 30"
        ]
    );
    assert_eq!(
        shop.column(PAYMENTS),
        [
            "C-1 9 9800.00 9800.00",
            "C-2 4 120.35 0.00",
            "C-3 4 4900.00 0.00",
            "C-4 4 4900.00 0.00",
            "C-5 4 4900.00 0.00",
            "W-1 4 9800.00 0.00",
            "W-2 9 120.35 120.35",
            "W-3 4 4900.00 0.00",
            "W-4 4 4900.00 0.00",
            "W-5 7 4900.00 0.00"
        ]
    );
    assert_eq!(
        shop.column(HOLDS),
        ["1 2 1", "2 3 2", "3 2 1", "4 3 2", "5 2 1", "6 3 2", "7 2 1", "8 2 1", "9 2 1", "10 2 1"]
    );
    assert_eq!(shop.column(OUTBOX), ["101 0", "102 9", "103 9", "104 9", "105 9", "106 2"]);
    assert_eq!(shop.column(NEXT_DOOR), next_door, "the same numbers of another shop are other rows");
    assert_eq!(
        shop.column(
            "SELECT CAST(ABS(TIMESTAMPDIFF(MINUTE, moved_at, UTC_TIMESTAMP() + INTERVAL 8 HOUR)) < 5 AS CHAR)
            FROM purchase WHERE moved_by IS NOT NULL"
        ),
        ["1"; 3],
        "a move is written in the shop's own wall clock"
    );

    shop.apply(plan_id).ends(0).prints("nothing to do");
    // What a person must decide stays, and is no violation.
    shop.run(&["verify", plan_id]).ends(6).prints("5 intents kept or unwound, 0 violations");
    shop.run(&["thaw", &freeze]).ends(6).prints("all is thawed but 5 intents").prints("payment W-4");
    shop.run(&["plan", "--tenant", "7", "--json"]).ends(0);
    assert_eq!(shop.column(PURCHASES).len(), 10, "nothing is deleted");
}

#[test]
fn a_purchase_that_is_deleted_or_gone_leaves_orphans_behind() {
    let shop = shop();
    let plan = shop.plan();
    let orphans = |user: &str| -> Vec<String> {
        let intents = plan["intents"].as_array().unwrap().iter().filter(|i| i["user_id"] == user);
        let mut orphans: Vec<_> =
            intents.flat_map(|i| i["orphans"].as_array().unwrap()).map(ToString::to_string).collect();
        orphans.sort();
        orphans
    };
    assert_eq!(orphans("5005"), [r#"["inventory","8"]"#, r#"["messages","104"]"#, r#"["payments","W-4"]"#]);
    assert_eq!(orphans("5006"), [r#"["payments","C-4"]"#]);
    assert_eq!(orphans("5007"), [r#"["messages","105"]"#]);
    assert_eq!(orphans("unknown"), [r#"["inventory","10"]"#]);

    // One that is deleted in the middle of the incident takes its payment out of what was planned.
    shop.freeze();
    let plan_id = shop.plan_id();
    shop.sql("UPDATE purchase SET is_deleted = 1 WHERE shop = 7 AND purchase_no = 'P-1002'");
    shop.apply(&plan_id).ends(4).prints("P-1002");
    assert_eq!(
        shop.column("SELECT CONCAT_WS(' ', state, given_back) FROM card_charge WHERE shop = 7 AND id = 1"),
        ["4 0.00"]
    );
    assert!(
        outcomes(&shop.plan()).contains(&"5001 REVIEW - HOLD_WITHOUT_ORDER PAYMENT_WITHOUT_ORDER".to_owned())
    );
}

#[test]
fn a_row_that_moved_since_the_plan_stops_its_intent_and_no_other() {
    let shop = shop();
    shop.freeze();
    let plan_id = shop.plan_id();
    // No version says so: the row is compared as a whole.
    shop.sql("UPDATE purchase SET cabin = 'lower' WHERE shop = 7 AND purchase_no = 'P-1002'");
    // An etag does.
    shop.sql("UPDATE card_charge SET etag = 'touched' WHERE shop = 7 AND id = 2");
    shop.apply(&plan_id).ends(4).prints("has version touched, was 91cc02");
    let states = "SELECT CAST(state AS CHAR) FROM purchase WHERE shop = 7 AND purchase_no IN ('P-1002', 'P-1004', 'P-1006')
        ORDER BY purchase_no";
    assert_eq!(shop.column(states), ["20", "21", "41"]);

    shop.sql("UPDATE purchase SET cabin = 'upper' WHERE shop = 7 AND purchase_no = 'P-1002'");
    let again = shop.plan_id();
    shop.apply(&plan_id).fails(7, &["superseded"]);
    shop.apply(&again).ends(0);
    assert_eq!(shop.column(states), ["51", "51", "41"]);
}

#[test]
fn an_apply_that_broke_off_is_resumed_and_refunds_once() {
    let shop = shop();
    shop.freeze();
    let plan_id = shop.plan_id();
    shop.sql("CREATE TRIGGER no_more BEFORE UPDATE ON seat_hold FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'stock is down'");
    shop.apply(&plan_id).ends(1).prints("It was broken off: ").prints("stock is down");
    assert_eq!(
        shop.column("SELECT CAST(given_back AS CHAR) FROM card_charge WHERE shop = 7 AND id = 1"),
        ["9800.00"]
    );
    shop.sql("DROP TRIGGER no_more");
    shop.apply(&plan_id).ends(0).prints("19 of 19 steps are done");
    let backs = "SELECT CONCAT_WS(' ', id, given_back) FROM card_charge WHERE given_back > 0
        UNION ALL SELECT CONCAT_WS(' ', id, given_back) FROM wallet_payment WHERE given_back > 0";
    assert_eq!(shop.column(backs), ["1 9800.00", "2 120.35"]);
}

#[test]
fn what_the_mapping_does_not_cover_is_an_error_that_names_the_row() {
    let shop = shop();
    shop.sql("UPDATE purchase SET state = 77 WHERE shop = 7 AND purchase_no = 'P-1012'");
    shop.run(&["plan", "--tenant", "7"]).fails(2, &["order P-1012", "status", "\"77\""]);
    shop.sql("UPDATE purchase SET state = 30, total = 4900.50 WHERE shop = 7 AND purchase_no = 'P-1012'");
    shop.run(&["plan", "--tenant", "7"]).fails(2, &["order P-1012", "4900.50", "JPY"]);
    shop.sql("UPDATE purchase SET total = 4900 WHERE shop = 7 AND purchase_no = 'P-1012'");
    shop.sql("UPDATE trip SET trip_no = 'elsewhere' WHERE shop = 7 AND trip_no = 'L-0918'");
    shop.run(&["plan", "--tenant", "7"]).fails(2, &["currency", "is null"]);
}

#[test]
fn a_late_capture_is_written_in_the_wall_clock_of_the_shop() {
    let shop = shop();
    shop.sql(
        "UPDATE card_charge SET state = 2, received_at = NULL WHERE shop = 7 AND id = 1;
         UPDATE purchase SET state = 10 WHERE shop = 7 AND purchase_no = 'P-1002'",
    );
    shop.provider_knows("'7', 'bank', 'b-501', 'CAPTURED', 9800, 0, 'JPY', 1790337607000000, 'ok'");
    shop.freeze();
    assert!(outcomes(&shop.plan()).contains(&"5001 UNSETTLED -".to_owned()));
    shop.run(&["converge", "--tenant", "7"]).ends(0);
    assert_eq!(
        shop.column("SELECT CONCAT_WS(' ', state, received_at, etag <> 'e4f0aa') FROM card_charge WHERE shop = 7 AND id = 1"),
        ["4 2026-09-25 20:00:07.000 1"]
    );
}

#[test]
fn nothing_is_moved_where_no_provider_is_configured_for_a_payment() {
    let shop = shop().configured("[providers.\"*\"]", "[providers.another]");
    shop.freeze();
    let plan_id = shop.plan_id();
    let before = shop.column(PAYMENTS);
    shop.apply(&plan_id).fails(7, &["no provider is configured", "[providers."]);
    assert_eq!(shop.column(PAYMENTS), before);
    assert_eq!(shop.column(PURCHASES)[1], "P-1002 20");
}

#[test]
fn a_message_is_let_go_again_on_purpose() {
    let shop = shop();
    shop.freeze();
    shop.apply(&shop.plan_id()).ends(0);
    shop.run(&["requeue", "105", "--tenant", "7", "--because", "the guest is at the quay"]).ends(0);
    assert_eq!(shop.column(OUTBOX)[4], "105 0");
}
