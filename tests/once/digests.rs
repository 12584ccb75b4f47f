//! The same key for another request is refused, and what differs is named; nothing of it is kept but digests.

use super::scene::*;
use crate::common::site::{OWNER, Ran, Site, run};
use crate::on_each_database;

on_each_database![what_differs_is_named_and_nothing_runs, no_value_of_the_request_is_kept];

fn with_input(site: &Site, line: &[&str], value: Option<&str>, input: &str) -> Ran {
    let mut command = site.command(line);
    command.env("ONEFOLD_OWNER", OWNER).env_remove("AMOUNT").write_stdin(input.to_owned());
    if let Some(value) = value {
        command.env("AMOUNT", value);
    }
    run(&mut command, line)
}

fn what_differs_is_named_and_nothing_runs(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("cat");
    let flags = ["--env", "AMOUNT", "--env", "AMOUNT", "--stdin"];
    let same = line(&flags, &script);
    with_input(site, &same, Some("12"), "input").ends(0).prints("input");
    with_input(site, &same, Some("12"), "input").ends(0).prints("input");
    let more = [&same[..], &["x"]].concat();
    for (line, value, input, differing) in [
        (&same, Some("13"), "input", "differs in env AMOUNT"),
        (&same, None, "input", "differs in env AMOUNT"),
        (&same, Some("12"), "", "differs in stdin"),
        (&same, Some(""), "other", "differs in env AMOUNT, stdin"),
        (&more, Some("12"), "input", "differs in argv[3]"),
    ] {
        with_input(site, line, value, input).fails(7, &[KEY, "the key of another request", differing]);
    }
    let other = with_input(site, &[&["--json"], &same[..]].concat(), Some("13"), "input").ends(7).error();
    assert_eq!(other["details"]["differing"], serde_json::json!(["env AMOUNT"]));
    once(site, &[], "true").fails(7, &["differs in argv[2], env AMOUNT, stdin"]);
    assert_eq!((runs(site).len(), state(site)), (1, "SUCCEEDED".to_owned()));
    // Another tenant's key is another key.
    once(site, &["--tenant", "other"], "echo other").ends(0).prints("other");
}

fn no_value_of_the_request_is_kept(site: &Site) {
    site.run(&["init"]).ends(0);
    let line =
        ["once", "--key", KEY, "--env", "AMOUNT", "--stdin", "--", "sh", "-c", "cat > input", "arg-s3cret"];
    with_input(site, &line, Some("env-s3cret"), "stdin-s3cret").ends(0);
    let input = std::fs::read_to_string(site.folder().join("input")).unwrap();
    assert_eq!(input, "stdin-s3cret");
    site.run(&["once", "show", KEY, "--json"]).ends(0).does_not_print("s3cret").prints("env AMOUNT");
    site.run(&["history"]).ends(0).does_not_print("s3cret");
    for column in ["digest", "digest_parts", "owner", "result_ref", "result", "note"] {
        let kept = site.column(&format!("SELECT COALESCE({column}, '') FROM onefold_idempotency")).concat();
        assert!(!kept.contains("s3cret"), "{column}: {kept}");
    }
}
