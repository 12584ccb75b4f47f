//! `once` and its command killed in each state of the key, and stopped by time and by signals.

use rustix::process::Signal;

use super::scene::*;
use crate::common::site::Site;
use crate::on_each_database;

on_each_database![
    killed_at_any_time_again_and_again_the_effect_is_there_once,
    killed_before_anything_ran_it_is_taken_over_and_run,
    killed_while_it_ran_it_is_settled_first,
    killed_while_it_tried_again_it_is_settled_first,
    killed_while_it_asked_it_asks_again,
    gc_killed_at_any_time_and_run_again_loses_no_key,
    a_command_that_is_killed_may_have_happened,
    a_command_that_takes_too_long_is_ended_with_all_that_it_started,
    signals_are_handed_on,
    a_command_that_leaves_something_behind_is_over_when_it_ends,
];

fn killed_before_anything_ran_it_is_taken_over_and_run(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("echo done");
    once(site, &[], &script).ends(0);
    // As it is between the two commits: taken, and nothing begun.
    site.sql("UPDATE onefold_idempotency SET state = 'PROCESSING', may_have_run = 0, exit_code = NULL, result = NULL");
    once(site, &[], &script).ends(75);
    lapse(site);
    once(site, &[], &script).ends(0).prints("done");
    assert_eq!(runs(site), ["1", "2"]);
    site.run(&["history"]).ends(0).prints("key-taken-over").prints("token 2, from ada@desk#");
    // Ended, it is given again, whatever its lease.
    lapse(site);
    once(site, &[], &script).ends(0).prints("done");
    assert_eq!(runs(site).len(), 2);
}

fn killed_while_it_ran_it_is_settled_first(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("echo $$ > pid; test -e again || sleep 100; echo \"by $ONEFOLD_FENCING_TOKEN\"");
    let first = start(site, &[], &script);
    until_it_runs(site, 1);
    let pid = || std::fs::read_to_string(site.folder().join("pid")).unwrap_or_default();
    until("its command runs", || lives(&pid()));
    first.kill();
    until("its command dies with it", || !lives(&pid()));
    once(site, &["--query", "echo yes"], &script).ends(75);
    lapse(site);
    for _ in 0..2 {
        once(site, &[], &script).fails(6, &["may have happened", "there is no --query", "once settle"]);
    }
    assert_eq!(state(site), "UNKNOWN");
    std::fs::write(site.folder().join("again"), "").unwrap();
    let query = "echo \"$ONEFOLD_KEY $ONEFOLD_FENCING_TOKEN\" > asked; exit 1";
    once(site, &["--query", query], &script).ends(0).prints("by 3");
    let asked = std::fs::read_to_string(site.folder().join("asked")).unwrap();
    assert_eq!(asked, format!("{KEY} 2\n"));
    assert_eq!(runs(site), ["1", "3"]);
}

fn killed_while_it_tried_again_it_is_settled_first(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("test -e again || { touch again; exit 75; }; echo $$ > pid; sleep 100");
    let flags = ["--retryable-exit", "75"];
    once(site, &flags, &script).ends(75);
    assert_eq!(state(site), "FAILED_RETRYABLE");
    let second = start(site, &flags, &script);
    let pid = || std::fs::read_to_string(site.folder().join("pid")).unwrap_or_default();
    until("its command runs", || lives(&pid()));
    second.kill();
    until("its command dies with it", || !lives(&pid()));
    lapse(site);
    once(site, &flags, &script).fails(6, &["may have happened"]);
    once(site, &["--query", "echo yes"], &script).ends(0).prints("yes");
    assert_eq!((runs(site), state(site)), (vec!["1".to_owned(), "2".to_owned()], "SUCCEEDED".to_owned()));
}

fn killed_while_it_asked_it_asks_again(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("kill -9 $$");
    once(site, &[], &script).ends(6);
    let asks = start(site, &["--query", "echo $$ > asks; sleep 100"], &script);
    let pid = || std::fs::read_to_string(site.folder().join("asks")).unwrap_or_default();
    until("it asks", || lives(&pid()));
    asks.kill();
    assert_eq!(state(site), "UNKNOWN");
    once(site, &["--query", "echo found"], &script).ends(0).prints("found");
    once(site, &[], &script).ends(0).prints("found");
    assert_eq!(runs(site), ["1"]);
}

fn gc_killed_at_any_time_and_run_again_loses_no_key(site: &Site) {
    site.run(&["init"]).ends(0);
    let set = "guard retention --client-retry 2m --queue 24h --replay 7d --dispute 180d --archive 3y";
    site.run(&set.split(' ').collect::<Vec<_>>()).ends(0);
    once(site, &[], "exit 3").ends(3);
    const KEYS: usize = 120;
    let columns = "tenant_id, digest, digest_parts, state, owner, lease_until_us, token, version, may_have_run, \
                   result_ref, exit_code, result, note, attempts, first_seen_us, last_seen_us, keep_for_us, retention";
    for at in 1..KEYS {
        site.sql(&format!(
            "INSERT INTO onefold_idempotency (idempotency_key, {columns})
             SELECT 'key-{at}', {columns} FROM onefold_idempotency WHERE idempotency_key = '{KEY}'"
        ));
    }
    // Of each tier some, and some that stay.
    let years = |n: usize| format!("last_seen_us - {}", n as i64 * 50 * 86_400_000_000);
    for at in 0..5 {
        site.sql(&format!(
            "UPDATE onefold_idempotency SET last_seen_us = {} WHERE idempotency_key LIKE '%{at}'",
            years(at)
        ));
    }
    let places = || {
        let count =
            |table: &str| site.column(&format!("SELECT COUNT(*) FROM {table}"))[0].parse::<usize>().unwrap();
        (count("onefold_idempotency"), count("onefold_idempotency_archive"))
    };
    for _ in 0..6 {
        let mut process = site.process(&["guard", "gc", "--batch", "3"]).spawn().unwrap();
        // At a time that nobody has chosen.
        let chance = u64::from(uuid::Uuid::new_v4().as_bytes()[0]);
        std::thread::sleep(std::time::Duration::from_millis(chance));
        process.kill().unwrap();
        process.wait().unwrap();
        let (records, archived) = places();
        assert_eq!(records + archived, KEYS);
    }
    site.run(&["guard", "gc", "--batch", "3"]).ends(0);
    assert_eq!(site.json(&["guard", "gc"])["moved"], serde_json::json!([]));
    let (records, archived) = places();
    let due = site.column("SELECT key_sha256 FROM onefold_idempotency_archive WHERE exit_code = 3");
    assert_eq!((records + archived, archived), (KEYS, due.len()));
    assert_eq!(archived, (1..KEYS).filter(|at| at % 10 == 4).count());
    site.run(&["once", "--key", "key-4", "--", "sh", "-c", "exit 3"]).fails(7, &["another request"]);
    assert_eq!(site.json(&["once", "show", "key-4"])["retention"], "archive");
}

fn a_command_that_is_killed_may_have_happened(site: &Site) {
    site.run(&["init"]).ends(0);
    let ends = [("kill -9 $$", "signal 9"), ("sh -c 'kill -9 $$'; exit $?", "code 137")];
    for (at, (then, told)) in ends.into_iter().enumerate() {
        let key = format!("key-{at}");
        let script = script(then);
        let line = ["once", "--key", &key, "--", "sh", "-c", &script];
        for _ in 0..2 {
            site.run(&line).fails(6, &["may have happened", told]);
        }
        assert_eq!(site.json(&["once", "show", &key])["state"], "UNKNOWN");
        assert_eq!(runs(site).len(), at + 1);
    }
}

fn a_command_that_takes_too_long_is_ended_with_all_that_it_started(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("sleep 100 & echo $! > grandchild; trap 'exit 0' TERM; wait");
    let flags = ["--timeout", "500ms"];
    once(site, &flags, &script).fails(6, &["took longer than --timeout"]);
    let grandchild = std::fs::read_to_string(site.folder().join("grandchild")).unwrap();
    until("the grandchild is gone", || !lives(&grandchild));
    assert_eq!(state(site), "UNKNOWN");
    let flags = ["--timeout", "500ms", "--query", "exit 1"];
    once(site, &flags, &script).fails(75, &["did not happen"]);
    assert_eq!((state(site), runs(site).len()), ("FAILED_RETRYABLE".to_owned(), 2));
    let flags = ["--timeout", "500ms", "--query", "echo found"];
    once(site, &flags, &script).ends(0).prints("found");
    once(site, &[], &script).ends(0).prints("found");
    assert_eq!(runs(site), ["1", "2", "3"]);
}

fn signals_are_handed_on(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("trap 'echo heard; exit 5' TERM; while :; do sleep 0.02; done");
    let first = start(site, &[], &script);
    until_it_runs(site, 1);
    std::thread::sleep(std::time::Duration::from_millis(100));
    first.signal(Signal::TERM);
    assert_eq!(first.ends(5).stdout, b"heard\n");
    once(site, &[], &script).ends(5).prints("heard");
    let waits = "sleep 100";
    let line = ["once", "--key", "other", "--", "sh", "-c", waits];
    site.run(&line[..3]).ends(2);
    let untrapped = start(site, &["--tenant", "other"], waits);
    until("it runs", || {
        site.column("SELECT tenant_id FROM onefold_idempotency WHERE may_have_run = 1")
            .contains(&"other".to_owned())
    });
    std::thread::sleep(std::time::Duration::from_millis(100));
    untrapped.signal(Signal::INT);
    let told = untrapped.ends(6).stderr;
    assert!(
        String::from_utf8_lossy(&told).contains("ended by signal 2"),
        "{}",
        String::from_utf8_lossy(&told)
    );
}

fn a_command_that_leaves_something_behind_is_over_when_it_ends(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("sleep 30 & echo $! > left; echo done");
    once(site, &[], &script).ends(0).prints("done");
    let left = std::fs::read_to_string(site.folder().join("left")).unwrap();
    assert!(lives(&left), "it may be meant to stay");
    std::process::Command::new("kill").arg(left.trim()).status().unwrap();
}

fn killed_at_any_time_again_and_again_the_effect_is_there_once(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("sleep 0.05; echo x >> effect; sleep 0.05; echo done");
    let flags = ["--query", "test -s effect && echo found || exit 1"];
    let rounds = if std::env::var_os("ONEFOLD_TEST_HUNT").is_some() { 60 } else { 6 };
    for _ in 0..rounds {
        let process = start(site, &flags, &script);
        // At a time that nobody has chosen.
        let chance = u64::from(uuid::Uuid::new_v4().as_bytes()[0]);
        std::thread::sleep(std::time::Duration::from_millis(chance));
        process.kill();
        std::thread::sleep(std::time::Duration::from_millis(100));
        lapse(site);
    }
    let first = once(site, &flags, &script).ends(0).stdout;
    assert!(["done\n", "found\n"].contains(&&*first), "{first}");
    assert_eq!(once(site, &[], &script).ends(0).stdout, first);
    assert_eq!(std::fs::read_to_string(site.folder().join("effect")).unwrap(), "x\n");
    let tokens: Vec<i64> = runs(site).iter().map(|token| token.parse().unwrap()).collect();
    assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]), "{tokens:?}");
}
