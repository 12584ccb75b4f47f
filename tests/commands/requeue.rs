//! `onefold requeue`

use crate::common::site::Site;
use crate::{doubled, on_each_database};

on_each_database![puts_a_quarantined_message_back_and_says_why, refuses_what_is_not_quarantined];

const BECAUSE: [&str; 2] = ["--because", "the buyer called"];

fn puts_a_quarantined_message_back_and_says_why(site: &Site) {
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"]).ends(0);
    let line = [&["requeue", "M-B", "--tenant", "t"][..], &BECAUSE].concat();
    site.run(&line).ends(0).prints("message M-B: QUARANTINED → QUEUED");
    assert_eq!(site.column("SELECT status FROM messages"), ["QUEUED"]);
    site.run(&line).ends(0).prints("QUEUED already");
    site.run(&["history"]).ends(0).prints("requeued message M-B QUARANTINED → QUEUED: the buyer called");
}

fn refuses_what_is_not_quarantined(site: &Site) {
    let mut book = doubled();
    book.message("M-dead", "B", "mail", "DEAD");
    site.import(&book.ledgers);
    let requeue = |line: &[&str]| site.run(&[&["requeue"], line].concat());
    requeue(&["M-dead", "--tenant", "t", "--because", "x"]).fails(2, &["is DEAD, not QUARANTINED"]);
    requeue(&["M-dead", "--because", "x"]).fails(2, &["no message M-dead of tenant default", "--tenant"]);
    requeue(&["M-dead", "--tenant", "t"]).fails(2, &["--because"]);
    requeue(&["M-dead", "--tenant", "t", "--because", " "]).fails(2, &["needs a reason"]);
    assert_eq!(site.column("SELECT status FROM messages WHERE message_id = 'M-dead'"), ["DEAD"]);
}
