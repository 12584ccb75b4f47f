//! What is refused, and what never is.

use super::service::*;
use crate::common::site::{Kind, OWNER, Site};
use crate::on_each_database;

on_each_database![
    every_effect_is_refused_inside_and_allowed_outside,
    the_refusal_names_the_freeze_its_holder_and_its_reason,
    a_long_refusal_keeps_the_freeze_its_holder_and_its_reason,
    what_is_refused_changes_no_row,
    only_the_effects_that_are_frozen_are_refused,
    what_a_provider_reports_is_never_refused,
    paid_needs_a_captured_charge,
    paid_may_come_before_its_capture_where_it_is_judged_at_commit,
    rows_that_begin_where_they_may_not_go_are_refused,
    a_row_is_judged_by_its_old_place_and_by_its_new_one,
    replacing_and_ignoring_are_no_way_round,
    a_report_by_upsert_is_never_refused,
    removing_a_row_is_no_way_round,
    overwriting_a_row_is_no_way_round,
    moving_a_row_away_first_is_no_way_round,
    truncating_is_refused_where_it_can_be,
    a_move_that_is_made_already_is_not_refused_again,
];

fn every_effect_is_refused_inside_and_allowed_outside(site: &Site) {
    let mut service = guarded(site);
    for (place, name) in [(INSIDE, "in"), (OUTSIDE, "out")] {
        service.may(&place.order(&format!("O-{name}"), "PENDING_PAYMENT"));
        service.may(&place.order(&format!("P-{name}"), "PAID"));
        service.may(&place.hold(&format!("H-{name}"), &format!("O-{name}"), "HELD"));
        service.may(&place.hold(&format!("C-{name}"), &format!("O-{name}"), "CONFIRMED"));
        service.may(&place.message(&format!("M-{name}"), "ticket.issue", &format!("O-{name}"), "QUEUED"));
        service.may(&place.message(&format!("N-{name}"), "ticket.issue", &format!("O-{name}"), "QUEUED"));
    }
    let effects = |place: At, name: &str| {
        [
            place.payment(&format!("P-{name}"), &format!("O-{name}"), "INITIATED"),
            set_order(&format!("O-{name}"), "PAID"),
            set_order(&format!("P-{name}"), "TICKETED"),
            set_hold(&format!("H-{name}"), "RELEASED"),
            set_hold(&format!("C-{name}"), "EXPIRED"),
            set_message(&format!("M-{name}"), "IN_FLIGHT"),
            set_message(&format!("N-{name}"), "CONSUMED"),
        ]
    };
    let frozen = freeze(site, &["--show", "show"]);
    for effect in effects(INSIDE, "in") {
        service.may_not(&effect);
    }
    for effect in effects(OUTSIDE, "out").iter().filter(|e| !e.contains("PAID")) {
        service.may(effect);
    }
    service.may(&set_order("O-out", "PAID"));
    thaw(site, &frozen);
    for effect in effects(INSIDE, "in") {
        service.may(&effect);
    }
}

fn the_refusal_names_the_freeze_its_holder_and_its_reason(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    let long = "x".repeat(300);
    let frozen = site.id(
        &["freeze", "--enforce", "--show", "show", "--reason", &format!("it's 'so'; {long}")],
        "/freeze/freeze_id",
    );
    let refusal = service.may_not(&set_order("O-1", "TICKETED"));
    assert!(refusal.contains("onefold: ticketing is frozen by "), "{refusal}");
    assert!(refusal.contains(&format!(" {frozen} ({OWNER}): it's 'so'; xxx")), "{refusal}");
}

fn a_long_refusal_keeps_the_freeze_its_holder_and_its_reason(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    let owner = format!("release-engineering-{}@a-host-of-ours", "o".repeat(40));
    let reason = format!("retries double the orders {}", "x".repeat(300));
    let line = ["freeze", "--enforce", "--show", "show", "--reason", &reason, "--json"];
    let frozen = site.run_as(&owner, &line).ends(0).json()["freeze"]["freeze_id"].clone();
    let refusal = service.may_not(&set_order("O-1", "TICKETED"));
    let begins = format!(
        "onefold: ticketing is frozen by {} (release-engineering-ooooooooo",
        frozen.as_str().unwrap()
    );
    assert!(refusal.contains(&begins), "{refusal}");
    assert!(refusal.contains("): retries double the orders x"), "{refusal}");
    if site.kind() == Kind::Mariadb {
        assert!(refusal.contains("ooo...): ") && refusal.contains("xxx..."), "{refusal}");
    }
}

fn what_is_refused_changes_no_row(site: &Site) {
    let mut service = guarded(site);
    for order in ["O-1", "O-2", "O-3"] {
        service.may(&OUTSIDE.order(order, "PAID"));
    }
    service.may(&INSIDE.order("O-4", "PAID"));
    freeze(site, &["--show", "show"]);
    service.tries("BEGIN").unwrap();
    service.may_not("UPDATE orders SET status = 'TICKETED' WHERE order_id >= 'O-1'");
    service.tries("COMMIT").unwrap();
    assert_eq!(site.column("SELECT DISTINCT status FROM orders"), ["PAID"]);
}

fn only_the_effects_that_are_frozen_are_refused(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    service.may(&INSIDE.hold("H-1", "O-1", "HELD"));
    service.may(&INSIDE.message("M-1", "ticket.issue", "O-1", "QUEUED"));
    service.may(&INSIDE.message("M-2", "mail", "O-1", "QUEUED"));
    freeze(site, &["--show", "show", "--effects", "messages", "--topics", "ticket.issue,order.cancel"]);
    service.may(&INSIDE.payment("P-1", "O-1", "INITIATED"));
    service.may(&set_order("O-1", "TICKETED"));
    service.may(&set_hold("H-1", "RELEASED"));
    service.may(&set_message("M-2", "IN_FLIGHT"));
    service.may_not(&set_message("M-1", "IN_FLIGHT"));
    // Neither does the message slip through under another topic.
    service.may_not("UPDATE messages SET status = 'IN_FLIGHT', topic = 'mail' WHERE message_id = 'M-1'");
}

fn what_a_provider_reports_is_never_refused(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PENDING_PAYMENT"));
    for id in ["P-1", "P-2", "P-3", "P-4"] {
        service.may(&INSIDE.payment(id, "O-1", "INITIATED"));
    }
    service.may(&INSIDE.payment("R-1", "O-1", "REFUNDING"));
    service.may(&INSIDE.payment("R-2", "O-1", "REFUNDING"));
    freeze(site, &["--show", "show"]);
    for (id, status) in [
        ("P-1", "CAPTURED"),
        ("P-2", "FAILED"),
        ("P-3", "UNKNOWN"),
        ("P-4", "AUTHORIZED"),
        ("P-4", "CAPTURED"),
        ("P-1", "DISPUTED"),
        ("P-1", "CHARGED_BACK"),
        ("R-1", "REFUNDED"),
        ("R-2", "CAPTURED"),
    ] {
        service.may(&set_payment(id, status));
    }
    service.may(&INSIDE.payment("P-5", "O-1", "CAPTURED"));
    let upsert = match site.kind() {
        Kind::Mariadb => "ON DUPLICATE KEY UPDATE status = 'CAPTURED'",
        _ => "ON CONFLICT (tenant_id, payment_id) DO UPDATE SET status = 'CAPTURED'",
    };
    service.may(&format!("{} {upsert}", INSIDE.payment("P-3", "O-1", "CAPTURED")));
    // What was in flight may end.
    service.may(&INSIDE.message("M-1", "mail", "O-1", "QUEUED"));
    service.may(&INSIDE.hold("H-1", "O-1", "HELD"));
    service.may(&set_hold("H-1", "CONFIRMED"));
    service.may(&INSIDE.order("O-2", "PENDING_PAYMENT"));
    service.may(&set_order("O-2", "CANCELLING"));
}

fn paid_needs_a_captured_charge(site: &Site) {
    let mut service = guarded(site);
    for id in ["O-1", "O-2"] {
        service.may(&INSIDE.order(id, "PENDING_PAYMENT"));
        service.may(&INSIDE.payment(&format!("P-{id}"), id, "INITIATED"));
    }
    freeze(site, &["--show", "show"]);
    service.may_not(&set_order("O-1", "PAID"));
    // A service that writes both in one transaction keeps both.
    service.tries("BEGIN").unwrap();
    service.may(&set_payment("P-O-1", "CAPTURED"));
    service.may(&set_order("O-1", "PAID"));
    service.tries("COMMIT").unwrap();
    assert_eq!(site.order("O-1"), "PAID");
    service.may_not(&set_order("O-2", "PAID"));
    service.may_not(&set_order("O-1", "TICKETED"));
}

fn paid_may_come_before_its_capture_where_it_is_judged_at_commit(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PENDING_PAYMENT"));
    service.may(&INSIDE.payment("P-1", "O-1", "INITIATED"));
    let told = site.run(&["freeze", "--enforce", "--show", "show", "--reason", "x"]).ends(0);
    service.tries("BEGIN").unwrap();
    if site.kind() != Kind::Postgres {
        told.prints("where the service writes PAID before the capture in one transaction");
        service.may_not(&set_order("O-1", "PAID"));
        // The capture itself is taken, also in the transaction that was refused.
        service.may(&set_payment("P-1", "CAPTURED"));
        service.tries("COMMIT").unwrap();
        assert_eq!([site.payment("P-1"), site.order("O-1")], ["CAPTURED", "PENDING_PAYMENT"]);
        return;
    }
    service.may(&set_order("O-1", "PAID"));
    service.may(&set_payment("P-1", "CAPTURED"));
    service.tries("COMMIT").unwrap();
    assert_eq!([site.payment("P-1"), site.order("O-1")], ["CAPTURED", "PAID"]);
    // Without a capture nothing of the transaction is kept.
    service.tries("BEGIN").unwrap();
    service.may(&INSIDE.order("O-2", "PAID"));
    service.may_not("COMMIT");
    assert_eq!(site.order("O-2"), "");
}

fn rows_that_begin_where_they_may_not_go_are_refused(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PENDING_PAYMENT"));
    service.may(&INSIDE.payment("P-1", "O-1", "FAILED"));
    freeze(site, &["--show", "show"]);
    service.may_not(&INSIDE.order("O-2", "PAID"));
    service.may_not(&INSIDE.order("O-2", "TICKETED"));
    service.may_not(&INSIDE.hold("H-1", "O-1", "RELEASED"));
    service.may_not(&INSIDE.message("M-1", "mail", "O-1", "IN_FLIGHT"));
    service.may_not(&set_payment("P-1", "INITIATED"));
    service.may(&INSIDE.order("O-2", "PENDING_PAYMENT"));
    service.may(&INSIDE.hold("H-1", "O-1", "HELD"));
    service.may(&INSIDE.message("M-1", "mail", "O-1", "QUEUED"));
    // All of a statement, or nothing.
    let both = format!(
        "{}, ('t', 'O-4', 'u', 'show', 's', 1, 1000, 'CNY', 'TICKETED', 0, '1')",
        INSIDE.order("O-3", "PENDING_PAYMENT")
    );
    service.may_not(&both);
    assert_eq!(site.order("O-3"), "");
}

fn a_row_is_judged_by_its_old_place_and_by_its_new_one(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-in", "PAID"));
    service.may(&OUTSIDE.order("O-out", "PAID"));
    service.may(&OUTSIDE.order("T-out", "TICKETED"));
    service.may(&INSIDE.hold("H-in", "O-in", "HELD"));
    service.may(&OUTSIDE.hold("H-out", "O-out", "HELD"));
    service.may(&INSIDE.message("M-in", "mail", "O-in", "QUEUED"));
    service.may(&OUTSIDE.payment("P-out", "O-out", "INITIATED"));
    freeze(site, &["--show", "show"]);
    for (table, row, status) in [
        ("orders", "order_id = 'O-in'", "TICKETED"),
        ("inventory", "hold_id = 'H-in'", "RELEASED"),
        ("messages", "message_id = 'M-in'", "IN_FLIGHT"),
    ] {
        for away in [
            "show_id = 'other'",
            "user_id = 'x', show_id = 'other'",
            "tenant_id = 'x'",
            "show_id = 'other', order_id = 'O-x'",
        ] {
            service.may_not(&format!("UPDATE {table} SET status = '{status}', {away} WHERE {row}"));
        }
    }
    service.may_not("UPDATE orders SET status = 'TICKETED', show_id = 'show' WHERE order_id = 'O-out'");
    service.may_not("UPDATE orders SET show_id = 'show' WHERE order_id = 'T-out'");
    service.may_not("UPDATE inventory SET status = 'RELEASED', order_id = 'O-in' WHERE hold_id = 'H-out'");
    service.may_not("UPDATE payments SET order_id = 'O-in' WHERE payment_id = 'P-out'");
    // The order's place counts where the row says another.
    service.may_not(&OUTSIDE.payment("P-2", "O-in", "INITIATED"));
    // And where the order itself is unknown, the row's own.
    service.may_not(&INSIDE.payment("P-3", "O-unknown", "INITIATED"));
    service.may(&OUTSIDE.payment("P-4", "O-unknown", "INITIATED"));
    // A report may come with a new place.
    service.may("UPDATE payments SET status = 'CAPTURED', order_id = 'O-in' WHERE payment_id = 'P-out'");
}

fn replacing_and_ignoring_are_no_way_round(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    service.may(&INSIDE.hold("H-1", "O-1", "HELD"));
    service.may(&INSIDE.message("M-1", "mail", "O-1", "QUEUED"));
    freeze(site, &["--show", "show"]);
    let rows = [
        (OUTSIDE.order("O-1", "TICKETED"), "(tenant_id, order_id) DO UPDATE SET status = 'TICKETED'"),
        (INSIDE.order("O-1", "TICKETED"), "(tenant_id, order_id) DO UPDATE SET status = 'TICKETED'"),
        (OUTSIDE.hold("H-1", "null", "RELEASED"), "(tenant_id, hold_id) DO UPDATE SET status = 'RELEASED'"),
        (
            INSIDE.message("M-1", "mail", "O-1", "IN_FLIGHT"),
            "(tenant_id, message_id) DO UPDATE SET status = 'IN_FLIGHT'",
        ),
    ];
    for (insert, conflict) in rows {
        if site.kind() != Kind::Postgres {
            service.may_not(&insert.replacen("INSERT", "REPLACE", 1));
        }
        match site.kind() {
            Kind::Mariadb => {
                let (_, set) = conflict.split_once("SET ").unwrap();
                service.may_not(&format!("{insert} ON DUPLICATE KEY UPDATE {set}"));
                service.may_not(&insert.replacen("INSERT", "INSERT IGNORE", 1));
            }
            Kind::Sqlite => {
                service.may_not(&format!("{insert} ON CONFLICT {conflict}"));
                service.may_not(&insert.replacen("INSERT", "INSERT OR IGNORE", 1));
            }
            Kind::Postgres => drop(service.may_not(&format!("{insert} ON CONFLICT {conflict}"))),
        }
    }
    match site.kind() {
        Kind::Sqlite => {
            for how in ["IGNORE", "REPLACE", "FAIL"] {
                service.may_not(&set_order("O-1", "TICKETED").replacen(
                    "UPDATE",
                    &format!("UPDATE OR {how}"),
                    1,
                ));
            }
        }
        Kind::Mariadb => {
            drop(service.may_not(&set_order("O-1", "TICKETED").replacen("UPDATE", "UPDATE IGNORE", 1)))
        }
        Kind::Postgres => {}
    }
    assert_eq!(site.order("O-1"), "PAID");
}

fn removing_a_row_is_no_way_round(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    service.may(&INSIDE.hold("H-1", "O-1", "HELD"));
    service.may(&INSIDE.hold("H-2", "O-1", "RELEASED"));
    service.may(&INSIDE.message("M-1", "mail", "O-1", "QUEUED"));
    service.may(&INSIDE.message("M-2", "mail", "O-1", "CONSUMED"));
    freeze(site, &["--show", "show"]);
    service.may_not("DELETE FROM inventory WHERE hold_id = 'H-1'");
    service.may_not("DELETE FROM messages WHERE message_id = 'M-1'");
    service.may("DELETE FROM inventory WHERE hold_id = 'H-2'");
    service.may("DELETE FROM messages WHERE message_id = 'M-2'");
}

fn a_move_that_is_made_already_is_not_refused_again(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "TICKETED"));
    service.may(&INSIDE.message("M-1", "mail", "O-1", "IN_FLIGHT"));
    service.may(&INSIDE.payment("P-1", "O-1", "INITIATED"));
    freeze(site, &["--show", "show"]);
    service.may("UPDATE orders SET status = 'TICKETED', version = '2' WHERE order_id = 'O-1'");
    service.may("UPDATE messages SET attempts = 3 WHERE message_id = 'M-1'");
    service.may(&set_message("M-1", "CONSUMED"));
    service.may("UPDATE payments SET version = '2' WHERE payment_id = 'P-1'");
}

fn a_report_by_upsert_is_never_refused(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PENDING_PAYMENT"));
    service.may(&INSIDE.payment("P-1", "O-1", "INITIATED"));
    service.may(&INSIDE.payment("P-2", "O-1", "FAILED"));
    freeze(site, &["--show", "show"]);
    let upsert = |id: &str, status: &str| {
        let conflict = match site.kind() {
            Kind::Mariadb => "ON DUPLICATE KEY UPDATE",
            _ => "ON CONFLICT (tenant_id, payment_id) DO UPDATE SET",
        };
        format!("{} {conflict} status = '{status}'", INSIDE.payment(id, "O-1", "INITIATED"))
    };
    service.may(&upsert("P-1", "CAPTURED"));
    assert_eq!(site.payment("P-1"), "CAPTURED");
    // Neither another attempt nor a new payment comes in by it.
    service.may_not(&upsert("P-2", "INITIATED"));
    service.may_not(&upsert("P-3", "CAPTURED"));
    if site.kind() != Kind::Postgres {
        service.may_not(&INSIDE.payment("P-2", "O-1", "INITIATED").replacen("INSERT", "REPLACE", 1));
    }
}

fn overwriting_a_row_is_no_way_round(site: &Site) {
    if site.kind() == Kind::Postgres {
        return; // Nothing is replaced there that is not updated or deleted.
    }
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    service.may(&INSIDE.hold("H-1", "O-1", "HELD"));
    service.may(&OUTSIDE.hold("H-2", "null", "HELD"));
    service.may(&INSIDE.message("M-1", "mail", "O-1", "QUEUED"));
    service.may(&OUTSIDE.message("M-2", "mail", "null", "QUEUED"));
    freeze(site, &["--show", "show"]);
    for row in [
        OUTSIDE.hold("H-1", "null", "HELD"),
        INSIDE.hold("H-1", "O-1", "RELEASED"),
        OUTSIDE.message("M-1", "mail", "null", "QUEUED"),
        INSIDE.message("M-1", "mail", "O-1", "CONSUMED"),
    ] {
        service.may_not(&row.replacen("INSERT", "REPLACE", 1));
    }
    if site.kind() == Kind::Sqlite {
        service.may_not("UPDATE OR REPLACE inventory SET hold_id = 'H-1' WHERE hold_id = 'H-2'");
        service.may_not("UPDATE OR REPLACE messages SET message_id = 'M-1' WHERE message_id = 'M-2'");
        // A row that stays where it is and alive is no loss.
        service.may(&INSIDE.hold("H-1", "O-1", "CONFIRMED").replacen("INSERT", "REPLACE", 1));
        service.may(&INSIDE.message("M-1", "mail", "O-1", "QUEUED").replacen("INSERT", "REPLACE", 1));
    }
    service.may(&OUTSIDE.hold("H-2", "null", "CONFIRMED").replacen("INSERT", "REPLACE", 1));
    assert_eq!(site.column("SELECT show_id FROM inventory WHERE hold_id = 'H-1'"), ["show"]);
}

fn moving_a_row_away_first_is_no_way_round(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.hold("H-1", "null", "HELD"));
    service.may(&OUTSIDE.hold("H-2", "null", "HELD"));
    service.may(&INSIDE.message("M-1", "mail", "null", "QUEUED"));
    service.may(&INSIDE.order("O-1", "PENDING_PAYMENT"));
    freeze(site, &["--show", "show"]);
    service.may_not("UPDATE inventory SET show_id = 'other' WHERE hold_id = 'H-1'");
    service.may_not("UPDATE inventory SET status = 'CONFIRMED', show_id = 'other' WHERE hold_id = 'H-1'");
    service.may_not("UPDATE messages SET show_id = 'other' WHERE message_id = 'M-1'");
    // A first order takes nothing away, and what comes in from elsewhere is not lost here.
    service.may("UPDATE inventory SET order_id = 'O-1' WHERE hold_id = 'H-1'");
    service.may("UPDATE messages SET order_id = 'O-1' WHERE message_id = 'M-1'");
    service.may_not("UPDATE inventory SET order_id = NULL WHERE hold_id = 'H-1'");
    service.may_not("UPDATE messages SET order_id = NULL WHERE message_id = 'M-1'");
    service.may("UPDATE inventory SET show_id = 'show' WHERE hold_id = 'H-2'");
}

fn truncating_is_refused_where_it_can_be(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.hold("H-1", "null", "HELD"));
    service.may(&INSIDE.message("M-1", "mail", "null", "QUEUED"));
    let all = if site.kind() == Kind::Postgres { "TRUNCATE" } else { "DELETE FROM" };
    let frozen = freeze(site, &["--show", "show", "--effects", "messages"]);
    service.may_not(&format!("{all} messages"));
    thaw(site, &frozen);
    freeze(site, &["--show", "show", "--effects", "stock-release"]);
    service.may_not(&format!("{all} inventory"));
    service.tries(&format!("{all} messages")).unwrap();
}
