//! How long what is kept of idempotency keys, and what moves down, as it is typed and told.

use serde_json::json;

use super::doubled;
use crate::common::site::{Ran, Site, run};
use crate::on_each_database;

on_each_database![
    nothing_moves_before_somebody_has_said_how_long,
    a_window_that_is_too_short_is_refused_and_the_flag_named,
    what_was_promised_is_not_shortened_by_the_way,
    a_dry_run_tells_what_a_run_does_and_changes_nothing,
    what_comes_back_late_is_recognised_in_every_tier,
    an_open_plan_or_an_unfinished_step_keeps_what_it_names,
    keys_beside_the_orders_are_moved_told_and_found_as_those_of_the_journal_are,
];

const KEY: &str = "refund-O-502";
const WINDOWS: [&str; 10] =
    ["--client-retry", "2m", "--queue", "24h", "--replay", "7d", "--dispute", "180d", "--archive", "3y"];

fn set(site: &Site, flags: &[&str]) -> Ran {
    site.run(&[&["guard", "retention"], flags].concat())
}

fn once(site: &Site, flags: &[&str], script: &str) -> Ran {
    site.run(&[&["once", "--key", KEY, "--keep-for", "1h"], flags, &["--", "sh", "-c", script]].concat())
}

/// As if so many days had gone by since each key was seen.
fn age(site: &Site, days: i64) {
    let back = days * 86_400 * 1_000_000;
    site.sql(&format!("UPDATE onefold_idempotency SET last_seen_us = last_seen_us - {back}"));
}

fn tier(site: &Site) -> String {
    site.json(&["once", "show", KEY])["retention"].as_str().unwrap().to_owned()
}

fn nothing_moves_before_somebody_has_said_how_long(site: &Site) {
    site.run(&["init"]).ends(0);
    once(site, &[], "true").ends(0);
    age(site, 9999);
    site.run(&["guard", "gc"]).fails(2, &["nobody has said", "guard retention --client-retry"]);
    set(site, &[]).ends(0).prints("Nothing is set").prints("hot");
    set(site, &["--replay", "7d"]).fails(2, &["--client-retry, --queue, --dispute, --archive"]);
    set(site, &["--because", "x"]).fails(2, &["nothing to set"]);
    assert_eq!(tier(site), "hot");
    set(site, &WINDOWS).ends(0).prints("Set by ada@desk").prints("180d").prints("1095d");
    let told = site.json(&["guard", "retention"]);
    assert_eq!(
        (&told["set"]["replay_us"], &told["set"]["set_by"]),
        (&json!(604_800_000_000_i64), &json!("ada@desk"))
    );
    assert_eq!(told["storage"]["hot"]["keys"], 1);
    assert!(told["storage"]["hot"]["bytes"].as_i64().unwrap() > 300, "{told:#}");
    site.run(&["history"]).ends(0).prints("retention-set");
}

fn a_window_that_is_too_short_is_refused_and_the_flag_named(site: &Site) {
    site.run(&["init"]).ends(0);
    let rows: [(&[&str], &[&str]); 5] = [
        (
            &["--queue", "8d"],
            &["--replay 168h is shorter than a queue redelivers, 192h", "--replay 192h or longer"],
        ),
        (&["--client-retry", "8d"], &["a client retries"]),
        (&["--longest-replay", "30d"], &["the longest replay, 720h"]),
        (&["--dispute", "6d"], &["--dispute 144h is shorter than the replay window"]),
        (&["--archive", "179d"], &["--archive 4296h is shorter than the dispute window"]),
    ];
    for (flags, saying) in rows {
        // The one that is said again takes the place of its pair.
        let mut line = WINDOWS.to_vec();
        match line.iter().position(|flag| *flag == flags[0]) {
            Some(at) => line[at + 1] = flags[1],
            None => line.extend(flags),
        }
        set(site, &line).fails(7, saying);
    }
    set(site, &["--replay", "soon"]).fails(2, &["no span"]);
    set(site, &[]).ends(0).prints("Nothing is set");
    set(site, &WINDOWS).ends(0);
    set(site, &["--queue", "8d"]).fails(7, &["--replay"]);
    set(site, &["--queue", "6d"]).ends(0).prints("6d");
}

fn what_was_promised_is_not_shortened_by_the_way(site: &Site) {
    site.run(&["init"]).ends(0);
    set(site, &WINDOWS).ends(0);
    set(site, &["--replay", "3d"]).fails(7, &["what is replay for less long", "--shorten --because"]);
    set(site, &["--replay", "3d", "--shorten"]).fails(2, &["--because"]);
    set(site, &["--replay", "3d", "--shorten", "--because", " "]).fails(2, &["needs a reason"]);
    assert_eq!(site.json(&["guard", "retention"])["set"]["version"], 1);
    set(site, &["--replay", "3d", "--shorten", "--because", "the queue is gone", "--dry-run"])
        .ends(0)
        .prints("Nothing is set: this is what would be.");
    assert_eq!(site.json(&["guard", "retention"])["set"]["version"], 1);
    set(site, &["--replay", "3d", "--shorten", "--because", "the queue is gone"])
        .ends(0)
        .prints("the queue is gone");
    // Said again, it is as it is.
    set(site, &["--replay", "3d"]).ends(0);
    assert_eq!(site.json(&["guard", "retention"])["set"]["version"], 2);
    site.run(&["history"]).ends(0).prints("replay 168h").prints("replay 72h").prints("the queue is gone");
}

fn a_dry_run_tells_what_a_run_does_and_changes_nothing(site: &Site) {
    site.run(&["init"]).ends(0);
    set(site, &WINDOWS).ends(0);
    for (days, key) in [(8, "eight"), (2, "two"), (0, "today")] {
        site.run(&["once", "--key", key, "--keep-for", "1h", "--", "sh", "-c", "echo out"]).ends(0);
        site.sql(&format!(
            "UPDATE onefold_idempotency SET last_seen_us = last_seen_us - {} WHERE idempotency_key = '{key}'",
            days * 86_400_000_000_i64
        ));
    }
    site.run(&["once", "--key", "long", "--keep-for", "90d", "--", "true"]).ends(0);
    site.sql("UPDATE onefold_idempotency SET last_seen_us = last_seen_us - 864000000000 WHERE idempotency_key = 'long'");
    site.run(&["once", "--key", "again", "--retryable-exit", "3", "--", "sh", "-c", "exit 3"]).ends(3);
    let all = || {
        let rows = site.column(
            "SELECT idempotency_key FROM onefold_idempotency WHERE retention = 'hot' AND result IS NOT NULL",
        );
        (rows.len(), site.column("SELECT event FROM onefold_journal").len())
    };
    let before = all();
    let dry = site.json(&["guard", "gc", "--dry-run"]);
    assert_eq!(all(), before);
    let moved = json!([
        { "from": "hot", "to": "replay", "keys": 1 },
        { "from": "hot", "to": "dispute", "keys": 1 },
    ]);
    let kept = json!({ "window": 1, "keep-for": 1, "not-ended": 1 });
    assert_eq!((&dry["dry_run"], &dry["moved"], &dry["kept"]), (&json!(true), &moved, &kept));
    site.run(&["guard", "gc", "--dry-run"]).ends(0).prints("hot → replay").prints("longer --keep-for");
    let run = site.json(&["guard", "gc", "--batch", "1"]);
    assert_eq!((&run["dry_run"], &run["moved"], &run["kept"]), (&json!(false), &moved, &kept));
    assert_eq!(
        (
            &run["storage"]["hot"]["keys"],
            &run["storage"]["replay"]["keys"],
            &run["storage"]["dispute"]["keys"]
        ),
        (&json!(3), &json!(1), &json!(1))
    );
    let again = site.json(&["guard", "gc"]);
    assert_eq!((&again["moved"], &again["kept"]["window"]), (&json!([]), &json!(3)));
    site.run(&["guard", "gc", "--batch", "0"]).fails(2, &["--batch"]);
}

fn what_comes_back_late_is_recognised_in_every_tier(site: &Site) {
    site.run(&["init"]).ends(0);
    set(site, &WINDOWS).ends(0);
    let script = "echo x >> runs; echo out; exit 3";
    let about = ["--order", "O-502", "--payment", "P-9"];
    once(site, &about, script).ends(3).prints("out");
    for (days, tier_then, saying) in [
        (2, "replay", "is done; its output, which was sha256:"),
        (8, "dispute", "is done; its output, which was sha256:"),
        (200, "archive", "is done, archived: FAILED"),
    ] {
        age(site, days);
        site.run(&["guard", "gc"]).ends(0);
        assert_eq!(tier(site), tier_then);
        let again = once(site, &about, script).ends(3).warns(saying).warns("is no longer kept");
        assert_eq!(again.stdout, "");
        let again = once(site, &["--json"], script).ends(3);
        let json = again.json();
        assert_eq!(
            (&json["state"], &json["exit_code"], &json["output"]),
            (&json!("FAILED"), &json!(3), &json!(null))
        );
        assert_eq!(json["how"], if tier_then == "archive" { "archived" } else { "replayed" });
        once(site, &[], "echo other").fails(7, &["is the key of another request"]);
        let shown = site.run(&["once", "show", KEY]).ends(0).prints("exit code 3");
        shown.prints("about order O-502, payment P-9");
        for flags in
            [&["--order", "O-502"][..], &["--payment", "P-9"], &["--order", "O-502", "--state", "FAILED"]]
        {
            let keys = site.json(&[&["once", "list"], flags].concat())["keys"].clone();
            assert_eq!(
                (keys.as_array().unwrap().len(), &keys[0]["key"], &keys[0]["retention"]),
                (1, &json!(KEY), &json!(tier_then))
            );
        }
        for flags in [
            &["--order", "P-9"][..],
            &["--order", "O-502", "--tenant", "x"],
            &["--order", "O-502", "--state", "UNKNOWN"],
        ] {
            site.run(&[&["once", "list"], flags].concat()).ends(0).prints("There is no such key.");
        }
        assert_eq!(
            std::fs::read_to_string(site.folder().join("runs")).unwrap(),
            "x\n",
            "run again in {tier_then}"
        );
        // It was asked for just now: nothing moves at once.
        site.run(&["guard", "gc"]).ends(0);
        assert_eq!(tier(site), tier_then);
    }
    site.run(&["once", "list", "--order", "O-502"]).ends(0).prints("FAILED, archived");
    site.run(&["once", "show", KEY]).ends(0).prints("FAILED, archived");
    site.run(&["once", "settle", KEY, "--as", "succeeded", "--because", "x"])
        .fails(2, &["is FAILED already, and archived"]);
    // Years later it is still there, and told.
    site.sql("UPDATE onefold_idempotency_archive SET last_seen_us = 1");
    site.run(&["guard", "gc"]).ends(0).prints("1 archived keys were not seen for longer");
    assert_eq!(site.json(&["guard", "retention"])["storage"]["archive"]["past_window"], 1);
    once(site, &[], script).ends(3).warns("done, archived");
    assert_eq!(site.json(&["guard", "retention"])["storage"]["archive"]["past_window"], 0, "it came back");
    assert_eq!(std::fs::read_to_string(site.folder().join("runs")).unwrap(), "x\n");
    // What is said later of what it is about is kept, too.
    once(site, &["--order", "O-777"], script).ends(3);
    assert_eq!(site.json(&["once", "list", "--order", "O-777"])["keys"][0]["key"], KEY);
    once(site, &["--order", " "], script).fails(2, &["is no order"]);
}

fn an_open_plan_or_an_unfinished_step_keeps_what_it_names(site: &Site) {
    site.import(&doubled().ledgers);
    site.freeze();
    set(site, &WINDOWS).ends(0);
    let key = |key: &str, flags: &[&str]| {
        site.run(
            &[&["once", "--key", key, "--keep-for", "1h", "--tenant", "t"], flags, &["--", "true"]].concat(),
        )
        .ends(0);
    };
    key("of the order", &["--order", "B"]);
    key("of the payment", &["--payment", "P-B"]);
    key("of another", &["--order", "Z"]);
    let plan = site.plan();
    let gc = || {
        age(site, 400);
        site.json(&["guard", "gc"])
    };
    let told = gc();
    assert_eq!(told["kept"], json!({ "open-plan": 2 }), "{told:#}");
    assert_eq!(told["moved"], json!([{ "from": "hot", "to": "archive", "keys": 1 }]));
    site.run(&["apply", &plan, "--yes"]).ends(0);
    site.sql(
        "UPDATE onefold_steps SET state = 'ACCEPTED' WHERE ledger = 'payments' AND to_status = 'REFUNDED'",
    );
    let told = gc();
    assert_eq!(told["kept"], json!({ "unfinished-step": 2 }), "{told:#}");
    site.sql("UPDATE onefold_steps SET state = 'DONE'");
    let told = gc();
    assert_eq!((&told["kept"], &told["moved"][0]["keys"]), (&json!({}), &json!(2)), "{told:#}");
    assert_eq!(site.json(&["once", "list", "--order", "B"])["keys"][0]["retention"], "archive");
}

/// A key that a service took and ended so beside its orders, a year ago, about an order.
fn of_a_service(site: &Site, key: &str, state: &str, order: &str) {
    site.sql(&format!(
        "INSERT INTO onefold_idempotency (tenant_id, idempotency_key, digest, digest_parts, state, owner, lease_until_us,
         token, version, may_have_run, result_ref, result, attempts, first_seen_us, last_seen_us, keep_for_us, retention)
         VALUES ('t', '{key}', 'd', '[]', '{state}', 'service', 1, 1, 2, 1, '{order}', 'the body', 1, 1, 1, 1, 'hot')"
    ));
    site.sql(&format!(
        "INSERT INTO onefold_idempotency_names (tenant_id, idempotency_key, ledger, row_id, named_at_us)
         VALUES ('t', '{key}', 'orders', '{order}', 1)"
    ));
}

fn keys_beside_the_orders_are_moved_told_and_found_as_those_of_the_journal_are(site: &Site) {
    // The journal and the orders each in a database of its own.
    let journal = format!("sqlite:{}", site.path("journal.db").display());
    let ledger = |name: &str| format!("[ledgers.{name}]\nurls = [\"{}\"]\n", site.url);
    let ledgers = ["orders", "payments", "inventory", "messages"].map(ledger).concat();
    let config = site.configured(&format!("journal = \"{journal}\"\n{ledgers}"));
    let run = |line: &[&str]| {
        let mut command = site.command(&[&["--config", &config], line].concat());
        run(command.env_remove("ONEFOLD_DATABASE_URL").env("ONEFOLD_OWNER", "ada@desk"), line)
    };
    let json = |line: &[&str]| run(&[line, &["--json"]].concat()).ends(0).json();
    run(&["init"]).ends(0);
    run(&["import", &site.files(&doubled().ledgers)]).ends(0);
    run(&[&["guard", "retention"][..], &WINDOWS].concat()).ends(0);
    run(&["once", "--key", "of once", "--tenant", "t", "--order", "B", "--keep-for", "1h", "--", "true"])
        .ends(0);
    // Until there is a table of keys beside the orders, there is one place.
    assert_eq!(json(&["guard", "gc"])["databases"].as_array().unwrap().len(), 1);
    run(&["guard", "install"]).ends(0);
    of_a_service(site, "tied", "SUCCEEDED", "B");
    of_a_service(site, "free", "SUCCEEDED", "Z");
    of_a_service(site, "lapsed", "PROCESSING", "Y");
    let kept = json(&["guard", "retention"]);
    let keys = |at: usize| kept["databases"][at]["storage"]["hot"]["keys"].clone();
    assert_eq!(
        (keys(0), keys(1), &kept["storage"]["hot"]["keys"]),
        (json!(1), json!(3), &json!(4)),
        "{kept:#}"
    );
    run(&["freeze", "--show", "show", "--advisory", "--reason", "a test"]).ends(0);
    run(&["plan"]).ends(0);

    let dry = json(&["guard", "gc", "--dry-run"]);
    let told = json(&["guard", "gc"]);
    assert_eq!(
        (&told["moved"], &told["kept"]),
        (&dry["moved"], &json!({ "window": 1, "open-plan": 1, "not-ended": 1 }))
    );
    let [first, second] = &told["databases"].as_array().unwrap()[..] else { panic!("{told:#}") };
    assert_eq!((&first["moved"], &first["kept"]), (&json!([]), &json!({ "window": 1 })));
    assert_eq!(second["moved"], json!([{ "from": "hot", "to": "archive", "keys": 1 }]));
    assert_eq!(
        (&second["kept"], &second["fenced_off"]),
        (&json!({ "open-plan": 1, "not-ended": 1 }), &json!(1))
    );
    let place = second["database"].as_str().unwrap();
    run(&["guard", "gc"]).ends(0).prints(place).prints("an open plan names its order");
    run(&["guard", "retention"]).ends(0).prints(place);
    run(&["history"]).ends(0).prints(&format!("hot → archive 1, in {place}"));

    // A person finds both by the order, and what is archived, too.
    let listed = json(&["once", "list", "--order", "B"])["keys"].clone();
    let names: Vec<_> =
        listed.as_array().unwrap().iter().map(|key| (&key["key"], &key["database"])).collect();
    assert_eq!(names, [(&json!("of once"), &first["database"]), (&json!("tied"), &second["database"])]);
    run(&["once", "list", "--order", "Z"]).ends(0).prints(place).prints("SUCCEEDED, archived");
    let shown = json(&["once", "show", "free", "--tenant", "t"]);
    assert_eq!((&shown["retention"], &shown["result_ref"]), (&json!("archive"), &json!("Z")));
    // What a service left half-way is settled where it lies.
    run(&["once", "settle", "lapsed", "--tenant", "t", "--as", "failed", "--because", "seen in the books"])
        .ends(0)
        .prints("UNKNOWN → FAILED, in");
    assert_eq!(
        site.column("SELECT state FROM onefold_idempotency WHERE idempotency_key = 'lapsed'"),
        ["FAILED"]
    );
    run(&["history", "verify"]).ends(0);
}
