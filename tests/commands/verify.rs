//! `onefold verify`

use crate::common::site::Site;
use crate::{doubled, on_each_database};

on_each_database![
    a_plan_that_is_not_carried_out_is_a_violation_and_one_that_is_holds,
    what_a_person_must_decide_is_listed_and_no_violation,
    what_breaks_after_the_plan_is_found,
];

fn a_plan_that_is_not_carried_out_is_a_violation_and_one_that_is_holds(site: &Site) {
    site.import(&doubled().ledgers);
    site.run(&["verify"]).fails(2, &["no plan", "onefold plan"]);
    site.freeze();
    let plan = site.plan();
    let before = site.ledgers();
    site.run(&["verify", &plan])
        .ends(5)
        .prints("orders A, B are all live")
        .prints(&format!("$ onefold apply {plan}"));
    assert_eq!(site.ledgers(), before, "verify changes nothing");
    site.run(&["apply", &plan, "--yes"]).ends(0);
    site.run(&["verify"])
        .ends(0)
        .prints(&format!("{plan}: 1 intent kept or unwound, 0 violations"))
        .prints("t CNY 20.00 10.00 10.00 0.00")
        .prints("t stock show 2 1 1 0");
    assert_eq!(site.json(&["verify"])["holds"], true);
    site.run(&["verify", "PL-none"]).fails(2, &["no plan PL-none"]);
}

fn what_a_person_must_decide_is_listed_and_no_violation(site: &Site) {
    let mut book = doubled();
    book.payment("P-lost", "O-lost", 1200, "CAPTURED");
    site.import(&book.ledgers);
    site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"]).ends(0).prints("1 intent in REVIEW or UNSETTLED: nothing of these");
    site.run(&["verify", &plan]).ends(6).prints("0 violations").prints("REVIEW u PAYMENT_WITHOUT_ORDER");
    assert_eq!(site.run(&["verify", "--json"]).ends(6).json()["undecided"][0]["outcome"], "REVIEW");
}

fn what_breaks_after_the_plan_is_found(site: &Site) {
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"]).ends(0);
    let breaks = [
        ("UPDATE messages SET status = 'QUEUED'", "M-B"),
        ("UPDATE inventory SET status = 'HELD' WHERE hold_id = 'H-B'", "H-B"),
        ("UPDATE payments SET status = 'CAPTURED', refunded_minor = 0 WHERE payment_id = 'P-B'", "P-B"),
    ];
    for (statement, row) in breaks {
        site.sql(statement);
        site.run(&["verify", &plan]).ends(5).prints(row);
    }
}
