//! Every kind of scope, and what is not known.

use super::service::*;
use crate::common::book::at;
use crate::common::site::Site;
use crate::on_each_database;

on_each_database![
    each_part_of_a_scope_narrows,
    the_window_is_that_of_the_order,
    a_row_without_session_is_held_with_every_session,
    a_message_takes_the_place_of_its_order,
    ids_are_compared_byte_for_byte,
    two_freezes_hold_side_by_side,
    a_narrowed_freeze_holds_what_is_listed,
    services_that_ask_are_told,
    services_that_ask_in_sql_are_told,
];

fn each_part_of_a_scope_narrows(site: &Site) {
    let mut service = guarded(site);
    let cases: [(&[&str], At, At); 5] = [
        (&["--tenant", "t"], INSIDE, At { tenant: "t2", ..INSIDE }),
        (&["--user", "u"], INSIDE, At { user: "u2", ..INSIDE }),
        (&["--show", "show", "--show", "third"], INSIDE, OUTSIDE),
        (&["--session", "s"], INSIDE, At { session: "s2", ..INSIDE }),
        (&["--show", "show", "--user", "u"], INSIDE, At { user: "u2", ..INSIDE }),
    ];
    for (i, (flags, inside, outside)) in cases.into_iter().enumerate() {
        let (a, b) = (format!("O-{i}a"), format!("O-{i}b"));
        service.may(&inside.order(&a, "PAID"));
        service.may(&outside.order(&b, "PAID"));
        let frozen = freeze(site, flags);
        service.may_not(&set_order(&a, "TICKETED"));
        service.may_not(&inside.payment(&format!("P-{i}a"), &a, "INITIATED"));
        service.may(&set_order(&b, "TICKETED"));
        service.may(&outside.payment(&format!("P-{i}b"), &b, "INITIATED"));
        thaw(site, &frozen);
        service.may(&set_order(&a, "TICKETED"));
    }
}

fn the_window_is_that_of_the_order(site: &Site) {
    let mut service = guarded(site);
    let place = |seconds| At { seconds, ..INSIDE };
    for (id, seconds) in [("O-before", 99), ("O-first", 100), ("O-last", 199), ("O-after", 200)] {
        service.may(&place(seconds).order(id, "PAID"));
        service.may(&place(0).hold(&format!("H-{id}"), id, "HELD"));
    }
    freeze(site, &["--show", "show", "--from", &at(100).to_string(), "--to", &at(200).to_string()]);
    for id in ["O-before", "O-after"] {
        service.may(&set_order(id, "TICKETED"));
        service.may(&set_hold(&format!("H-{id}"), "RELEASED"));
        service.may(&place(150).payment(&format!("P-{id}"), id, "INITIATED"));
    }
    for id in ["O-first", "O-last"] {
        service.may_not(&set_order(id, "TICKETED"));
        service.may_not(&set_hold(&format!("H-{id}"), "RELEASED"));
        // A payment of an order in the window comes after it, perhaps late.
        service.may_not(&place(5000).payment(&format!("P-{id}"), id, "INITIATED"));
    }
    service.may_not(&place(5000).payment("P-unknown", "O-unknown", "INITIATED"));
    service.may(&place(5000).payment("P-null", "null", "INITIATED"));
    service.may_not(&place(150).payment("P-null-2", "null", "INITIATED"));
}

fn a_row_without_session_is_held_with_every_session(site: &Site) {
    let mut service = guarded(site);
    let without = At { session: "null", ..INSIDE };
    let elsewhere = At { session: "s2", ..INSIDE };
    service.may(&without.order("O-null", "PAID"));
    service.may(&elsewhere.order("O-s2", "PAID"));
    service.may(&without.hold("H-null", "O-s2", "HELD"));
    freeze(site, &["--session", "s"]);
    service.may_not(&set_order("O-null", "TICKETED"));
    service.may(&set_order("O-s2", "TICKETED"));
    // The order knows the session that its hold does not name.
    service.may(&set_hold("H-null", "RELEASED"));
    service.may_not(&without.payment("P-1", "null", "INITIATED"));
}

fn a_message_takes_the_place_of_its_order(site: &Site) {
    let mut service = guarded(site);
    let bare = At { user: "null", show: "null", session: "null", ..INSIDE };
    service.may(&INSIDE.order("O-in", "PAID"));
    service.may(&OUTSIDE.order("O-out", "PAID"));
    for (id, order) in [("M-in", "O-in"), ("M-out", "O-out"), ("M-unknown", "O-unknown"), ("M-none", "null")]
    {
        service.may(&bare.message(id, "mail", order, "QUEUED"));
    }
    service.may(&OUTSIDE.message("M-else", "mail", "O-unknown", "QUEUED"));
    let frozen = freeze(site, &["--show", "show"]);
    service.may_not(&set_message("M-in", "IN_FLIGHT"));
    service.may_not(&set_message("M-unknown", "IN_FLIGHT"));
    service.may(&set_message("M-out", "IN_FLIGHT"));
    service.may(&set_message("M-none", "IN_FLIGHT"));
    service.may(&set_message("M-else", "IN_FLIGHT"));
    thaw(site, &frozen);
    service.may(&bare.message("M-other", "mail", "null", "QUEUED"));
    freeze(site, &["--tenant", "t"]);
    service.may_not(&set_message("M-other", "IN_FLIGHT"));
}

fn ids_are_compared_byte_for_byte(site: &Site) {
    let mut service = guarded(site);
    for (id, show) in [("O-1", "Show"), ("O-2", "show "), ("O-3", "shöw")] {
        service.may(&At { show, ..INSIDE }.order(id, "PAID"));
    }
    freeze(site, &["--show", "show"]);
    for id in ["O-1", "O-2", "O-3"] {
        service.may(&set_order(id, "TICKETED"));
    }
}

fn two_freezes_hold_side_by_side(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    service.may(&OUTSIDE.order("O-2", "PAID"));
    let one = freeze(site, &["--show", "show"]);
    let other = freeze(site, &["--show", "other", "--effects", "ticketing"]);
    assert!(service.may_not(&set_order("O-1", "TICKETED")).contains(&one));
    assert!(service.may_not(&set_order("O-2", "TICKETED")).contains(&other));
    service.may(&OUTSIDE.payment("P-2", "O-2", "INITIATED"));
    thaw(site, &one);
    service.may(&set_order("O-1", "TICKETED"));
    service.may_not(&set_order("O-2", "TICKETED"));
}

fn a_narrowed_freeze_holds_what_is_listed(site: &Site) {
    let mut service = guarded(site);
    // Says that it is paid, and no payment shows it: a person must look.
    service.may(&INSIDE.order("O-review", "PAID"));
    service.may(&INSIDE.message("M-review", "mail", "O-review", "QUEUED"));
    let clean = At { user: "u2", ..INSIDE };
    service.may(&clean.order("O-clean", "PENDING_PAYMENT"));
    service.may(&clean.payment("P-clean", "O-clean", "FAILED"));
    let orphan = At { user: "u3", ..INSIDE };
    service.may(&orphan.hold("H-orphan", "null", "HELD"));
    service.may(&orphan.hold("H-other", "null", "RELEASED"));
    let frozen = freeze(site, &["--show", "show"]);
    service.may_not(&clean.payment("P-1", "O-clean", "INITIATED"));
    for _ in 0..2 {
        let thawed = site.run(&["thaw", &frozen, "--json"]).ends(6).json();
        assert_eq!(thawed["still_frozen"].as_array().unwrap().len(), 2, "{thawed:#}");
        service.may_not(&set_order("O-review", "TICKETED"));
        service.may_not(&set_message("M-review", "IN_FLIGHT"));
        service.may_not(&set_hold("H-orphan", "RELEASED"));
        // Renewing it brings nothing back.
        site.run(&["freeze", "--renew", &frozen]).ends(0);
    }
    service.may(&clean.payment("P-1", "O-clean", "INITIATED"));
    service.may(&orphan.hold("H-new", "null", "EXPIRED"));
    site.run(&["frozen", "--order", "O-review", "--tenant", "t", "--effect", "ticketing"]).ends(7);
    site.run(&["frozen", "--order", "O-clean", "--tenant", "t", "--effect", "ticketing"]).ends(0);
    service.may(&INSIDE.payment("P-review", "O-review", "CAPTURED"));
    let thawed = site.run(&["thaw", &frozen, "--json"]).ends(6).json();
    assert_eq!(
        thawed["still_frozen"].as_array().unwrap().len(),
        2,
        "without stock, a person must look: {thawed:#}"
    );
    thaw(site, &frozen);
    service.may(&set_order("O-review", "TICKETED"));
}

fn services_that_ask_are_told(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-in", "PAID"));
    service.may(&OUTSIDE.order("O-out", "PAID"));
    let ask = |flags: &[&str]| site.run(&[&["frozen", "--tenant", "t"], flags].concat());
    ask(&["--order", "O-in", "--effect", "ticketing"]).ends(0).prints("ticketing is not frozen.");
    let frozen =
        freeze(site, &["--show", "show", "--effects", "ticketing,messages,auto-payment", "--topics", "mail"]);
    ask(&["--order", "O-in", "--effect", "ticketing"]).ends(7).prints(&frozen).prints("retries double");
    let json = ask(&["--order", "O-in", "--effect", "ticketing", "--json"]).ends(7).json();
    assert_eq!(json["frozen"], true);
    assert_eq!(json["by"][0]["freeze_id"], frozen.as_str());
    assert_eq!(json["by"][0]["mode"], "enforced");
    assert!(json["by"][0]["until"].is_string(), "{json:#}");
    ask(&["--order", "O-in", "--effect", "stock-release"]).ends(0);
    ask(&["--order", "O-out", "--effect", "ticketing"]).ends(0);
    ask(&["--order", "O-in", "--effect", "messages", "--topic", "push"]).ends(0);
    ask(&["--order", "O-in", "--effect", "messages", "--topic", "mail"]).ends(7);
    ask(&["--order", "O-in", "--effect", "messages"]).ends(7);
    ask(&["--show", "show", "--user", "anybody", "--effect", "auto-payment"]).ends(7);
    ask(&["--show", "other", "--user", "u", "--effect", "auto-payment"]).ends(0);
    ask(&["--user", "u", "--effect", "auto-payment"]).ends(7);
    ask(&["--order", "O-none", "--effect", "ticketing"]).fails(2, &["there is no order O-none"]);
    ask(&["--effect", "ticketing"]).ends(2);
}

fn services_that_ask_in_sql_are_told(site: &Site) {
    let _service = guarded(site);
    let live = "SELECT freeze_id FROM onefold_live_freezes WHERE ticketing = 1 AND messages = 0";
    assert!(site.column(live).is_empty());
    let frozen = freeze(site, &["--show", "a\"b", "--show", "show", "--effects", "ticketing"]);
    assert_eq!(site.column(live), std::slice::from_ref(&frozen));
    assert_eq!(site.column("SELECT shows FROM onefold_live_freezes"), [r#"["a\"b","show"]"#]);
    assert_eq!(
        site.column("SELECT reason FROM onefold_live_freezes WHERE users IS NULL"),
        ["retries double the orders"]
    );
    thaw(site, &frozen);
    assert!(site.column(live).is_empty());
}
