//! What is told of keys: as one JSON object, as a list, and of what is typed wrongly.

use super::scene::*;
use crate::common::site::{Site, run};
use crate::on_each_database;

on_each_database![
    json_is_one_object,
    keys_are_listed_by_state_and_tenant,
    what_makes_no_sense_is_refused_before_anything_runs,
    a_journal_without_the_table_says_what_to_type,
    the_ledgers_need_not_answer,
];

fn json_is_one_object(site: &Site) {
    site.run(&["init"]).ends(0);
    let script = script("echo out; echo err >&2; exit 3");
    let mut told = Vec::new();
    for how in ["ran", "replayed"] {
        let ran = once(site, &["--json"], &script).ends(3);
        assert_eq!(ran.stderr, "", "{ran}");
        let json = ran.json();
        assert_eq!(
            (&json["how"], &json["state"], &json["attempts"]),
            (&how.into(), &"FAILED".into(), &1.into())
        );
        assert_eq!((&json["exit_code"], &json["token"], &json["key"]), (&3.into(), &1.into(), &KEY.into()));
        told.push(json["output"].clone());
    }
    assert_eq!(told[0], told[1]);
    assert_eq!((&told[0]["stdout"]["text"], &told[0]["stderr"]["text"]), (&"out\n".into(), &"err\n".into()));
}

fn keys_are_listed_by_state_and_tenant(site: &Site) {
    site.run(&["init"]).ends(0);
    site.run(&["once", "list"]).ends(0).prints("There is no such key.");
    once(site, &[], "true").ends(0);
    once(site, &["--tenant", "t"], "exit 3").ends(3);
    site.run(&["once", "list"]).ends(0).prints(KEY).prints("SUCCEEDED").prints(&format!("{KEY} (tenant t)"));
    let keys =
        |line: &[&str]| site.json(&[&["once", "list"], line].concat())["keys"].as_array().unwrap().len();
    assert_eq!((keys(&[]), keys(&["--tenant", "t"]), keys(&["--state", "FAILED"])), (2, 1, 1));
    assert_eq!((keys(&["--state", "SUCCEEDED", "--tenant", "t"]), keys(&["--state", "UNKNOWN"])), (0, 0));
    site.run(&["once", "list", "--state", "DONE"]).fails(2, &["possible values: PROCESSING"]);
    for verb in ["list", "show", "settle"] {
        site.run(&["once", verb, "--help"]).ends(0).prints(&format!("Examples: onefold once {verb}"));
    }
}

fn what_makes_no_sense_is_refused_before_anything_runs(site: &Site) {
    site.run(&["init"]).ends(0);
    let ran = |line: &[&str]| site.run(&[&["once"], line, &["--", "sh", "-c", "echo x >> runs"]].concat());
    let long = "k".repeat(191);
    for key in ["", " ", "a\nb", &long] {
        ran(&["--key", key]).fails(2, &["is no key"]);
    }
    ran(&["--key", KEY, "--tenant", ""]).fails(2, &["is no tenant"]);
    ran(&["--key", KEY, "--lease", "10ms"]).fails(2, &["too short"]);
    ran(&["--key", KEY, "--lease", "soon"]).fails(2, &["no span"]);
    ran(&["--key", KEY, "--retryable-exit", "0"]).fails(2, &["retryable-exit"]);
    ran(&[]).fails(2, &["--key"]);
    site.run(&["once", "--key", KEY]).fails(2, &["COMMAND"]);
    site.run(&["once"]).fails(2, &["--key"]);
    assert_eq!(runs(site), [""; 0]);
    ran(&["--key", &"é".repeat(190)]).ends(0);
}

fn a_journal_without_the_table_says_what_to_type(site: &Site) {
    site.run(&["init"]).ends(0);
    site.sql("ALTER TABLE onefold_idempotency RENAME TO kept_elsewhere");
    for line in [&line(&[], "true")[..], &["once", "list"], &["once", "show", KEY]] {
        site.run(line).fails(1, &["onefold init"]);
    }
    site.run(&["init"]).ends(0);
    once(site, &[], "echo done").ends(0).prints("done");
}

fn the_ledgers_need_not_answer(site: &Site) {
    site.run(&["init"]).ends(0);
    let ledgers = ["orders", "payments", "inventory", "messages"]
        .map(|ledger| format!("[ledgers.{ledger}]\nurls = [\"postgres://nobody@127.0.0.1:1/none\"]\n"));
    let config = site.configured(&format!("journal = \"{}\"\n{}", site.url, ledgers.concat()));
    let line = line(&[], "echo done");
    let mut command = site.command(&line);
    command.env_remove("ONEFOLD_DATABASE_URL").env("ONEFOLD_CONFIG", config);
    run(&mut command, &line).ends(0).prints("done");
}
