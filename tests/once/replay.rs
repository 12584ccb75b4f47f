//! A repeat gives the first result again: every byte, and the code.

use super::scene::*;
use crate::common::site::{OWNER, Site};
use crate::on_each_database;

on_each_database![
    a_repeat_prints_the_same_bytes_and_ends_with_the_same_code,
    what_is_too_long_is_kept_by_its_digest_and_its_end,
    what_the_command_prints_need_not_be_kept,
    what_may_be_tried_again_is_run_again_under_the_next_token,
    what_cannot_be_run_leaves_the_key_as_it_was,
];

fn bytes(site: &Site, flags: &[&str], script: &str) -> (Option<i32>, Vec<u8>, Vec<u8>) {
    let output = site.command(&line(flags, script)).env("ONEFOLD_OWNER", OWNER).output().unwrap();
    (output.status.code(), output.stdout, output.stderr)
}

fn a_repeat_prints_the_same_bytes_and_ends_with_the_same_code(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script(r"printf 'a\000\377\033[1m\n\r\303\251 no end'; printf '\200 beside' >&2; exit 42");
    let first = bytes(site, &[], &script);
    assert_eq!(first.0, Some(42));
    assert_eq!(first.1, b"a\0\xff\x1b[1m\n\r\xc3\xa9 no end");
    assert_eq!(first.2, b"\x80 beside");
    for flags in [&[][..], &["--wait", "1s"], &["--query", "true"], &["--retryable-exit", "42"]] {
        assert_eq!(bytes(site, flags, &script), first);
    }
    assert_eq!(runs(site), ["1"]);
    let json = once(site, &["--json"], &script).ends(42).json();
    assert_eq!(
        (&json["state"], &json["how"], &json["exit_code"]),
        (&"FAILED".into(), &"replayed".into(), &42.into())
    );
    assert_eq!(json["output"]["stdout"]["hex"], "6100ff1b5b316d0a0dc3a9206e6f20656e64");
    site.run(&["once", "show", KEY]).ends(0).prints("exit code 42").does_not_print("\x1b");
}

fn what_is_too_long_is_kept_by_its_digest_and_its_end(site: &Site) {
    site.run(&["init"]).ends(0);
    let whole = 1024 * 1024;
    let exact = format!("head -c {whole} /dev/zero | tr '\\0' e");
    assert_eq!(bytes(site, &[], &exact), (Some(0), vec![b'e'; whole], vec![]));
    assert_eq!(bytes(site, &[], &exact).1.len(), whole);
    let long =
        ["once", "--key", "long", "--", "sh", "-c", "head -c 1048577 /dev/zero | tr '\\0' l; echo end"];
    let first = site.run(&long).ends(0).warns("the last 65536 are kept");
    assert_eq!(first.stdout.len(), whole + 5);
    let again = site.run(&long).ends(0).warns("of the 1048581 bytes on stdout the last 65536 are kept");
    assert!(first.stdout.ends_with(&again.stdout) && again.stdout.len() == 65536, "{}", again.stdout.len());
    let json = site.json(&["once", "show", "long"]);
    assert_eq!(json["output"]["stdout"]["kept"], "tail");
    let digest = json["output"]["stdout"]["sha256"].as_str().unwrap();
    again.warns(digest);
    assert_eq!(json["result_ref"], format!("sha256:{digest}"));
}

fn what_the_command_prints_need_not_be_kept(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("echo s3cret; echo s3cret >&2; exit 4");
    let first = once(site, &["--no-store-output"], &script).ends(4);
    assert_eq!((&*first.stdout, &*first.stderr), ("s3cret\n", "s3cret\n"));
    let again = once(site, &[], &script).ends(4);
    again.clone().warns("the 7 bytes on stdout were not kept").does_not_print("s3cret");
    assert_eq!((again.stdout.as_str(), runs(site).len()), ("", 1));
    assert_eq!(record(site)["output"]["stdout"], serde_json::json!({ "bytes": 7, "kept": "none" }));
    assert_eq!(record(site)["result_ref"], serde_json::Value::Null);
}

fn what_may_be_tried_again_is_run_again_under_the_next_token(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("test -e ready && echo done || exit 75");
    let flags = ["--retryable-exit", "75", "--retryable-exit", "9"];
    once(site, &flags, &script).ends(75);
    assert_eq!(state(site), "FAILED_RETRYABLE");
    once(site, &flags, &script).ends(75);
    std::fs::write(site.folder().join("ready"), "").unwrap();
    once(site, &flags, &script).ends(0).prints("done");
    once(site, &flags, &script).ends(0).prints("done");
    assert_eq!(runs(site), ["1", "2", "3"]);
    let record = record(site);
    assert_eq!((&record["state"], &record["attempts"]), (&"SUCCEEDED".into(), &3.into()));
    let history = site.run(&["history"]).ends(0).stdout;
    for told in [
        "key-taken key incident-2014/refund-O-502: token 1",
        "PROCESSING → FAILED_RETRYABLE: token 1, exit code 75",
        "FAILED_RETRYABLE → PROCESSING: token 3",
        "PROCESSING → SUCCEEDED: token 3, exit code 0",
    ] {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&history).contains(told), "{told}: {history}");
    }
}

fn what_cannot_be_run_leaves_the_key_as_it_was(site: &Site) {
    site.run(&["init"]).ends(0);
    std::fs::write(site.folder().join("script.sh"), "#!/bin/sh\necho ran\n").unwrap();
    for program in ["no-such-program", "./script.sh", "."] {
        site.run(&["once", "--key", KEY, "--", program]).fails(2, &["there is no program", program]);
    }
    site.run(&["once", "show", KEY]).fails(2, &["there is no key"]);
    site.run(&["once", "--key", KEY, "--", "sh", "script.sh"]).ends(0).prints("ran");
    // The first result is there also where the program is not.
    let path =
        site.command(&["once", "--key", KEY, "--", "sh", "script.sh"]).env("PATH", "").output().unwrap();
    assert_eq!((path.status.code(), &*path.stdout), (Some(0), &b"ran\n"[..]));
}
