//! Leases: renewed while the command lives, judged by the database's clock, and lost with all that runs.

use std::time::{Duration, Instant};

use onefold::store::Queries;
use onefold::store::sql::parameters;
use rustix::process::Signal;
use sqlx::{AnyConnection, Connection, Executor};

use super::scene::*;
use crate::common::databases::wait;
use crate::common::site::{Kind, Site};
use crate::on_each_database;

on_each_database![
    a_live_key_is_waited_for_or_said_to_be_busy,
    a_command_may_live_longer_than_its_lease,
    a_stalled_owner_that_wakes_completes_nothing,
    with_a_lost_lease_the_whole_group_dies,
    a_lease_is_over_when_the_database_says_so,
    a_lease_that_cannot_be_renewed_is_given_up_with_all_that_runs,
];

fn a_live_key_is_waited_for_or_said_to_be_busy(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("until test -e go; do sleep 0.02; done; echo done");
    let first = start(site, &[], &script);
    until_it_runs(site, 1);
    let busy = once(site, &[], &script).fails(75, &[KEY, "still being processed by ada@desk#", "left"]);
    busy.does_not_print("done");
    let details = once(site, &["--json"], &script).ends(75).error()["details"].clone();
    let left = details["lease_left_us"].as_i64().unwrap();
    assert!((50_000_000..=60_000_000).contains(&left), "{details}");
    let began = Instant::now();
    once(site, &["--wait", "300ms"], &script).ends(75);
    assert!(began.elapsed() >= Duration::from_millis(300));
    once(site, &["--wait", "1m"], "true").fails(7, &["differs"]);
    let settle = ["once", "settle", KEY, "--as", "failed", "--because", "x"];
    site.run(&settle).fails(7, &["is being processed by"]);
    let waits = start(site, &["--wait", "1m"], &script);
    std::fs::write(site.folder().join("go"), "").unwrap();
    for process in [first, waits] {
        assert_eq!(process.ends(0).stdout, b"done\n");
    }
    assert_eq!(runs(site), ["1"]);
}

fn a_command_may_live_longer_than_its_lease(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("sleep 3; echo done");
    let first = start(site, &["--lease", "1500ms"], &script);
    until_it_runs(site, 1);
    std::thread::sleep(Duration::from_millis(2000));
    once(site, &["--query", "exit 1"], &script).ends(75);
    assert_eq!(first.ends(0).stdout, b"done\n");
    assert_eq!((runs(site).len(), &record(site)["token"]), (1, &1.into()));
}

fn a_stalled_owner_that_wakes_completes_nothing(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script(
        "test \"$ONEFOLD_FENCING_TOKEN\" != 1 || until test -e go; do sleep 0.02; done; echo \"by $ONEFOLD_FENCING_TOKEN\"",
    );
    let stalled = start(site, &["--lease", "1s"], &script);
    until_it_runs(site, 1);
    stalled.signal(Signal::STOP);
    until("its lease is over", || {
        let ran = once(site, &[], &script);
        ran.code == Some(6) && ran.stderr.contains("may have happened")
    });
    let fenced = record(site);
    assert_eq!((&fenced["state"], &fenced["token"]), (&"UNKNOWN".into(), &2.into()));
    once(site, &["--query", "exit 1"], &script).ends(0).prints("by 3");
    let settled = record(site);
    // What it had begun ends well meanwhile, and it wakes.
    std::fs::write(site.folder().join("go"), "").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    stalled.signal(Signal::CONT);
    let told = String::from_utf8(stalled.ends(7).stderr).unwrap();
    assert!(told.contains("another process took") && told.contains("hint: "), "{told}");
    assert_eq!(record(site), settled);
    once(site, &[], &script).ends(0).prints("by 3");
    assert_eq!(runs(site), ["1", "3"]);
}

fn with_a_lost_lease_the_whole_group_dies(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("sleep 100 & echo $! > grandchild; wait");
    let first = start(site, &["--lease", "1s"], &script);
    until_it_runs(site, 1);
    let grandchild = || std::fs::read_to_string(site.folder().join("grandchild")).unwrap_or_default();
    until("the grandchild is there", || lives(&grandchild()));
    site.sql("UPDATE onefold_idempotency SET owner = 'another', token = token + 1, version = version + 1");
    first.ends(7);
    until("the grandchild is gone", || !lives(&grandchild()));
}

fn a_lease_is_over_when_the_database_says_so(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("until test -e go; do sleep 0.02; done");
    let first = start(site, &[], &script);
    until_it_runs(site, 1);
    let begin =
        |name: &str| site.column(&format!("SELECT {name} FROM onefold_idempotency"))[0].parse::<i64>();
    let held = begin("lease_until_us").unwrap() - begin("first_seen_us").unwrap();
    assert!((60_000_000..90_000_000).contains(&held), "{held}");
    // Were it this machine's clock that is asked, a year more or less would make no difference.
    let year = 365 * 24 * 3600 * 1_000_000_i64;
    site.sql(&format!("UPDATE onefold_idempotency SET lease_until_us = lease_until_us + {year}"));
    once(site, &[], &script).fails(75, &["8760h", "left"]);
    site.sql(&format!("UPDATE onefold_idempotency SET lease_until_us = lease_until_us - 2 * {year}"));
    once(site, &[], &script).fails(6, &["the lease of ada@desk#", "ran out while it ran"]);
    std::fs::write(site.folder().join("go"), "").unwrap();
    first.ends(7);
}

fn a_lease_that_cannot_be_renewed_is_given_up_with_all_that_runs(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("echo $$ > pid; sleep 100");
    let first = start(site, &["--lease", "1s"], &script);
    let pid = || std::fs::read_to_string(site.folder().join("pid")).unwrap_or_default();
    until("it runs", || lives(&pid()));
    wait(async {
        let mut other = AnyConnection::connect(&site.url).await.unwrap();
        let begin = if site.kind() == Kind::Sqlite { "BEGIN IMMEDIATE" } else { "BEGIN" };
        other.execute(begin).await.unwrap();
        other.execute("UPDATE onefold_idempotency SET note = 'held'").await.unwrap();
        until("the command is killed, before the database answers", || !lives(&pid()));
        other.execute("ROLLBACK").await.unwrap();
    });
    let told = String::from_utf8(first.ends(6).stderr).unwrap();
    assert!(told.contains("the lease could not be renewed"), "{told}");
    assert_eq!((state(site), runs(site).len()), ("UNKNOWN".to_owned(), 1));
}

#[test]
fn no_statement_about_keys_is_told_the_time_of_this_machine() {
    let names: Vec<_> = Queries::names().filter(|name| name.starts_with("idempotency/")).collect();
    assert!(names.len() > 5, "{names:?}");
    for name in names {
        let text = Queries::default().find(name).unwrap().to_owned();
        let told: Vec<_> = parameters(&text).into_iter().filter(|name| name.ends_with("_us")).collect();
        assert!(told.iter().all(|name| ["lease_us", "keep_for_us"].contains(name)), "{name}: {told:?}");
        assert!(text.contains("{now_us}"), "{name}");
    }
    // What moves records compares with what it read, and with the length of a window.
    let told = ["window_us", "after_us", "first_seen_us", "last_seen_us"];
    for name in Queries::names().filter(|name| name.starts_with("retention/")) {
        let text = Queries::default().find(name).unwrap().to_owned();
        let times = parameters(&text).into_iter().filter(|name| name.ends_with("_us"));
        let is_window = |name: &str| name == "set" || name == "set_first";
        let times: Vec<_> = times.filter(|_| !is_window(name.trim_start_matches("retention/"))).collect();
        assert!(times.iter().all(|name| told.contains(name)), "{name}: {times:?}");
    }
}
