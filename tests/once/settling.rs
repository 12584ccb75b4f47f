//! What may have happened is settled by a query, or by hand.

use super::scene::*;
use crate::common::site::Site;
use crate::on_each_database;

on_each_database![
    a_query_that_says_yes_gives_the_result,
    a_query_that_says_neither_changes_nothing,
    a_person_says_what_came_of_it,
    only_what_is_not_known_is_settled,
];

/// Runs once, is killed, and would say so if it ran again.
fn lost(site: &Site) -> String {
    site.run(&["init"]).ends(0);
    let script = script("test $ONEFOLD_FENCING_TOKEN = 1 && kill -9 $$; echo again");
    once(site, &[], &script).ends(6);
    script
}

fn a_query_that_says_yes_gives_the_result(site: &Site) {
    let script = lost(site);
    let query = "echo re-4711; echo beside >&2";
    let settled = once(site, &["--query", query], &script).ends(0);
    assert_eq!((&*settled.stdout, &*settled.stderr), ("re-4711\n", "beside\n"));
    let again = once(site, &["--query", "exit 1"], &script).ends(0);
    assert_eq!((&*again.stdout, &*again.stderr), ("re-4711\n", ""));
    assert_eq!(runs(site), ["1"]);
    site.run(&["history"])
        .ends(0)
        .prints("key-settled")
        .prints("UNKNOWN → SUCCEEDED: the query says that it happened");
}

fn a_query_that_says_neither_changes_nothing(site: &Site) {
    let script = lost(site);
    let before = record(site);
    for (query, told) in [
        ("exit 2", "the query ended with code 2"),
        ("kill -9 $$", "the query was ended by signal 9"),
        ("no-such-program-at-all", "the query ended with code 127"),
    ] {
        once(site, &["--query", query], &script).fails(6, &["may have happened", told]);
    }
    assert_eq!(record(site), before);
    assert_eq!(runs(site), ["1"]);
    // The first that says something decides, also among many at once.
    std::thread::scope(|scope| {
        let line = line(&["--query", "exit 1", "--wait", "1m"], &script);
        let processes: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn({
                    let line = line.clone();
                    move || site.run(&line)
                })
            })
            .collect();
        processes.into_iter().for_each(|process| {
            process.join().unwrap().ends(0).prints("again");
        });
    });
    assert_eq!(runs(site), ["1", "2"]);
}

fn a_person_says_what_came_of_it(site: &Site) {
    let script = lost(site);
    let settle = |how: &str, why: &str| site.run(&["once", "settle", KEY, "--as", how, "--because", why]);
    settle("retryable", "it was never sent").ends(0).prints("UNKNOWN → FAILED_RETRYABLE");
    once(site, &[], &script).ends(0).prints("again");
    for (how, code, state) in [("succeeded", 0, "SUCCEEDED"), ("failed", 1, "FAILED")] {
        site.sql("UPDATE onefold_idempotency SET state = 'UNKNOWN', version = version + 1");
        let told = site.json(&["once", "settle", KEY, "--as", how, "--because", "seen in the books"]);
        assert_eq!((&told["state"], &told["exit_code"]), (&state.into(), &code.into()));
        let again = once(site, &[], &script).ends(code);
        assert_eq!(again.stdout, "", "what is settled by hand has no output");
        site.run(&["history"])
            .ends(0)
            .prints(&format!("UNKNOWN → {state}: ada@desk says: seen in the books"));
    }
    // One that was killed, too, once its lease is over.
    site.sql(
        "UPDATE onefold_idempotency SET state = 'PROCESSING', lease_until_us = 1, version = version + 1",
    );
    settle("succeeded", "seen").ends(0);
    assert_eq!((state(site), runs(site).len()), ("SUCCEEDED".to_owned(), 2));
}

fn only_what_is_not_known_is_settled(site: &Site) {
    site.run(&["init"]).ends(0);
    let settle = |line: &[&str]| site.run(&[&["once", "settle"], line].concat());
    settle(&[KEY, "--as", "failed", "--because", "x"]).fails(2, &["there is no key", "once list"]);
    once(site, &[], "true").ends(0);
    settle(&[KEY, "--as", "failed", "--because", "x"]).fails(2, &["is SUCCEEDED already"]);
    settle(&[KEY, "--as", "failed", "--because", " "]).fails(2, &["needs a reason"]);
    settle(&[KEY, "--as", "maybe", "--because", "x"])
        .fails(2, &["possible values: succeeded, failed, retryable"]);
    settle(&[KEY, "--as", "failed", "--because", "x", "--tenant", "t"])
        .fails(2, &["there is no key", "--tenant"]);
}
