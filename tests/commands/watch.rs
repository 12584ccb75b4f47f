//! `onefold watch`: what still comes into a scope.

use onefold::core::time::{Span, Timestamp};

use crate::common::site::Site;
use crate::{doubled, on_each_database};

on_each_database![
    it_ends_by_itself_once_nothing_new_comes,
    a_late_capture_on_an_order_that_is_unwound_is_named,
    what_makes_no_sense_is_refused,
];

fn now() -> Timestamp {
    Timestamp::from_datetime(&chrono::Utc::now())
}

fn it_ends_by_itself_once_nothing_new_comes(site: &Site) {
    let mut book = doubled();
    book.find_order("A").created_at = now().minus(Span::from_mins(3));
    book.find_order("B").created_at = now().minus(Span::from_mins(2));
    site.import(&book.ledgers);
    let freeze = site.freeze();
    site.run(&["frozen", "--order", "B", "--tenant", "t", "--effect", "ticketing"]).ends(7);
    site.run(&["frozen", "--order", "A", "--tenant", "t", "--effect", "ticketing"]).ends(7);
    let line = ["watch", "--every", "1s", "--until-quiet", "1s"];
    let ran = site.run(&line).ends(0);
    let last: Vec<_> = ran.stdout.lines().rfind(|l| l.contains('▁')).unwrap().split(' ').collect();
    let [_, orders, doubles, _, late, held, waiting] =
        last.into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>()[..]
    else {
        panic!("{ran}")
    };
    assert_eq!([orders, doubles, late, held, waiting], ["2", "1", "0", "2", "1"], "{ran}");
    assert!(ran.stdout.lines().all(|l| l.chars().count() <= 80), "{ran}");
    ran.prints("TIME ORDERS DOUBLES BY MINUTE LATE HELD WAITING")
        .prints("No double and no late capture came for 1s.");
    let json = site.json(&line);
    let sum = |name: &str| json[name].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("orders_by_minute"), sum("doubles_by_minute")), (2, 1));
    assert_eq!(json["held_up"]["ticketing"], 2);
    assert_eq!(json["waiting"]["ticket.issue"], 1);
    assert_eq!(json["quiet"], true);
    let lines = site.run(&[&line[..], &["--format", "jsonl"]].concat()).ends(0).stdout;
    assert!(lines.lines().count() >= 2 && lines.contains("\"event\":\"look\""), "{lines}");
    assert!(!freeze.is_empty());
}

fn a_late_capture_on_an_order_that_is_unwound_is_named(site: &Site) {
    let mut book = doubled();
    book.order("C", 20, "PENDING_PAYMENT");
    site.import(&book.ledgers);
    let freeze = site.freeze();
    site.plan();
    site.run(&["watch", "--every", "1s", "--until-quiet", "1s"]).ends(0);
    let late = now().plus(Span::from_secs(60)).micros();
    site.sql(&format!(
        "INSERT INTO payments (payment_id, tenant_id, order_id, user_id, show_id, session_id, amount_minor, refunded_minor, \
         currency, provider, provider_txn_id, status, created_at_us, captured_at_us, version) \
         SELECT 'P-late', tenant_id, 'C', user_id, show_id, session_id, amount_minor, 0, currency, provider, 'late', \
         'CAPTURED', {late}, {late}, '1' FROM payments WHERE payment_id = 'P-B'"
    ));
    let ran = site.run(&["watch", "--every", "1s", "--until-quiet", "1s"]).ends(5);
    ran.prints("1 late capture on orders that").prints(&format!("onefold plan --freeze {freeze}"));
}

fn what_makes_no_sense_is_refused(site: &Site) {
    site.run(&["init"]).ends(0);
    site.run(&["watch", "--every", "1ms"]).fails(2, &["asks the databases too often"]);
    site.run(&["watch", "--last", "3h"]).fails(2, &["no picture of a line"]);
    site.run(&["watch", "--from", "noon"]).fails(2, &["--from \"noon\""]);
}
