//! `onefold plan`

use std::fs;

use onefold::core::evidence::Evidence;
use onefold::core::plan::{Plan, make};
use onefold::core::policy::Policy;
use onefold::core::scope::Scope;
use serde_json::{Value, json};

use crate::common::book::{Book, at};
use crate::common::site::{Site, run, text};
use crate::{doubled, on_each_database};

on_each_database![
    under_a_freeze_it_takes_its_time_else_it_is_a_dry_run,
    several_freezes_are_not_chosen_among,
    the_same_decision_has_the_same_digest,
    an_operators_choice_is_kept_to_until_it_is_withdrawn,
    a_choice_that_cannot_be_kept_is_refused,
    from_files_it_needs_no_database_and_makes_none,
    a_file_that_is_there_is_not_written_over,
    a_detailed_exit_code_tells_steps_from_doubt,
    a_plan_of_everything_is_saved_whole,
    a_large_scope_is_planned_from_every_row,
    without_room_for_the_ledgers_it_says_where_room_is_wanted,
    every_policy_is_a_flag_under_its_name,
    its_json_has_the_shape_of_the_contract,
];

fn under_a_freeze_it_takes_its_time_else_it_is_a_dry_run(site: &Site) {
    site.import(&doubled().ledgers);
    let before = site.ledgers();
    site.run(&["plan", "--show", "show"])
        .ends(0)
        .prints("a dry run")
        .prints("freeze the scope and plan again")
        .does_not_print("No row is in scope");
    site.run(&["plan", "--show", "shwo"]).ends(0).prints("No row is in scope: is the name right?");
    let freeze = site.json(&["freeze", "--show", "show", "--reason", "x"])["freeze"].clone();
    let plan = site.json(&["plan"]);
    assert_eq!(plan["as_of"], freeze["frozen_at"]);
    assert_eq!(plan["freeze_id"], freeze["freeze_id"]);
    assert_eq!(plan["scope"]["shows"], json!(["show"]), "the scope is the freeze's");
    site.run(&["plan", "--user", "u"])
        .ends(0)
        .prints("user u")
        .prints("under F-")
        .prints(&format!("$ onefold freeze --renew {} --enforce", freeze["freeze_id"].as_str().unwrap()));
    let dry = site.json(&["plan", "--as-of", "2026-11-11T20:20:00+08:00"]);
    assert_eq!(dry["freeze_id"], Value::Null);
    assert_eq!(dry["as_of"], "2026-11-11T12:20:00Z");
    assert_eq!(site.ledgers(), before, "no ledger is changed");
    let states = site.json(&["status"])["plans"].clone();
    let states: Vec<_> = states.as_array().unwrap().iter().map(|p| p["state"].as_str().unwrap()).collect();
    assert!(states.contains(&"OPEN") && states.contains(&"SUPERSEDED"), "{states:?}");
}

fn several_freezes_are_not_chosen_among(site: &Site) {
    site.import(&doubled().ledgers);
    let first = site.freeze();
    let second = site.id(&["freeze", "--show", "other", "--reason", "x"], "/freeze/freeze_id");
    site.run(&["plan", "--user", "u"]).fails(2, &[&first, &second, "--freeze F-"]);
    assert_eq!(site.json(&["plan", "--freeze", &first])["freeze_id"], first.as_str());
    assert_eq!(site.json(&["plan", "--show", "other"])["freeze_id"], second.as_str());
    site.run(&["plan", "--freeze", "F-none"]).fails(2, &["no freeze F-none"]);
    site.run(&["thaw", &second]).ends(0);
    site.run(&["plan", "--freeze", &second]).fails(7, &["is not live"]);
    site.sql("UPDATE onefold_freezes SET lease_until_us = 1");
    site.run(&["plan", "--freeze", &first]).fails(7, &["is not live", "--renew"]);
    site.run(&["plan"]).ends(0).prints("a dry run");
}

fn the_same_decision_has_the_same_digest(site: &Site) {
    let folder = site.files(&doubled().ledgers);
    site.import(&doubled().ledgers);
    let as_of = ["--as-of", "2026-11-11T20:20:00Z"];
    let plan = |more: &[&str]| site.json(&[&["plan"], &as_of[..], more].concat());
    let (a, b) = (plan(&[]), plan(&[]));
    assert_ne!(a["plan_id"], b["plan_id"]);
    assert_eq!(a["digest"], b["digest"]);
    assert_eq!(plan(&["--files", &folder])["digest"], a["digest"], "files say the same");
    assert_ne!(plan(&["--gap", "90s"])["digest"], a["digest"], "the policy is part of it");
    site.freeze();
    let (first, second) = (site.json(&["plan"]), site.json(&["plan"]));
    assert_eq!(first["digest"], second["digest"]);
}

fn an_operators_choice_is_kept_to_until_it_is_withdrawn(site: &Site) {
    site.import(&doubled().ledgers);
    site.freeze();
    let keep = |line: &[&str]| site.json(&[&["plan"], line].concat())["intents"][0].clone();
    assert_eq!(keep(&[])["keep"], "A");
    let chosen = keep(&["--keep", "B", "--because", "he holds this ticket"]);
    assert_eq!(chosen["keep"], "B");
    assert_eq!(chosen["override"], json!({ "order_id": "B", "because": "he holds this ticket" }));
    assert_eq!(chosen["decided_by"], 3);
    assert_eq!(keep(&[])["keep"], "B", "later plans keep to it");
    let plan = site.plan();
    site.run(&["show", &plan, "--intent", "A"])
        .ends(0)
        .prints("an operator keeps B: he holds this ticket")
        .prints("lost: paid at 2026-09-21T14:13:22Z");
    site.run(&["history", "--order", "B"]).ends(0).prints("keep-chosen order B: he holds this ticket");
    assert_eq!(keep(&["--withdraw-keep", "B"])["keep"], "A");
    assert_eq!(keep(&[])["keep"], "A", "and later plans do not");
    site.run(&["history", "--order", "B"]).ends(0).prints("keep-withdrawn order B");
    site.run(&["plan", "--withdraw-keep", "B"]).fails(2, &["order B is not chosen", "onefold history"]);
}

fn a_choice_that_cannot_be_kept_is_refused(site: &Site) {
    let mut book = doubled();
    book.order("gone", 5, "CANCELLED");
    site.import(&book.ledgers);
    let plan = |line: &[&str]| site.run(&[&["plan"], line].concat());
    plan(&["--keep", "gone", "--because", "x"])
        .fails(2, &["order gone", "CANCELLED, not live", "choose a live order"]);
    plan(&["--keep", "B"]).fails(2, &["--because"]);
    for flag in ["--show", "--user", "--session", "--tenant"] {
        site.run(&["plan", flag, ""]).fails(2, &[flag, "without a name"]);
    }
    plan(&["--keep", "B", "--because", "  "]).fails(2, &["needs a reason"]);
    plan(&["--keep", "Z", "--because", "x"]).fails(2, &["no such order in this scope"]);
    plan(&["--keep", "A", "--keep", "B", "--because", "x"]).fails(2, &["A and B", "both are chosen"]);
    site.run(&["status"]).ends(0).prints("No plan has been made.");
    site.run(&["history"]).ends(0).does_not_print("keep-chosen");
}

fn from_files_it_needs_no_database_and_makes_none(site: &Site) {
    let folder = site.files(&doubled().ledgers);
    let output = text(&site.path("plan.json"));
    let line = ["plan", "--files", &folder, "--as-of", "2026-11-11 20:20", "--output", &output];
    let ran = site.run(&line).ends(0).prints("KEEP 1 2").prints("10.00 CNY").prints("a dry run");
    ran.does_not_print("onefold apply");
    let plan: Plan = serde_json::from_str(&fs::read_to_string(&output).unwrap()).unwrap();
    assert!(plan.digest_matches());
    assert_eq!(fs::read_dir(site.folder()).unwrap().count(), 0);
    assert!(site.has_no_file());
    site.run(&["status"]).fails(2, &["onefold init"]);
    let keep = ["plan", "--files", &folder, "--keep", "B", "--because", "x"];
    assert_eq!(site.json(&keep)["intents"][0]["keep"], "B");
    site.run(&["plan", "--files", "nowhere"]).fails(2, &["no folder nowhere"]);
    site.run(&["plan", "--files", &folder, "--freeze", "F-1"]).fails(2, &["cannot be used with"]);
}

fn a_file_that_is_there_is_not_written_over(site: &Site) {
    site.import(&doubled().ledgers);
    let output = site.path("plan.json");
    fs::write(&output, "mine").unwrap();
    let ran = site.run(&["plan", "--output", &text(&output)]);
    ran.fails(2, &["is there already", "nothing is written over"]);
    assert_eq!(fs::read_to_string(&output).unwrap(), "mine");
    site.run(&["status"]).ends(0).prints("No plan has been made.");
    site.run(&["plan", "--output", "no/such/folder/plan.json"])
        .fails(2, &["there is no folder no/such/folder"]);
}

fn a_detailed_exit_code_tells_steps_from_doubt(site: &Site) {
    let mut book = doubled();
    book.bought("C", 900);
    site.import(&book.ledgers);
    let plan = |line: &[&str]| site.run(&[&["plan", "--detailed-exitcode"], line].concat());
    plan(&[]).ends(3);
    plan(&["--from", "2026-09-21T14:20:00Z"]).ends(0).prints("Nothing to do");
    book.payment("P-lost", "O-lost", 1200, "UNKNOWN");
    site.import(&book.ledgers);
    plan(&[]).ends(6);
    site.run(&["plan"]).ends(0);
}

fn every_policy_is_a_flag_under_its_name(site: &Site) {
    let folder = site.files(&doubled().ledgers);
    let policies: [(&str, &[&str]); 8] = [
        ("distinct_keys", &["review", "merge", "split"]),
        ("different_request", &["review", "split"]),
        ("without_session", &["review", "merge"]),
        ("paid_without_stock", &["review", "refund"]),
        ("unpaid", &["keep_earliest", "review", "cancel_all"]),
        ("ticketed", &["review", "prefer"]),
        ("cancel_pending", &["review", "quarantine"]),
        ("terminal_captured", &["duplicates", "refund", "review"]),
    ];
    let last: Vec<String> = policies
        .iter()
        .flat_map(|(n, v)| [format!("--{}", n.replace('_', "-")), v[v.len() - 1].into()])
        .collect();
    let last: Vec<&str> = last.iter().map(String::as_str).collect();
    let spans = [
        "--gap",
        "90s",
        "--max-span",
        "1h30m",
        "--initiated-expires",
        "30m",
        "--guest",
        "U-1",
        "--guest",
        "U-2",
    ];
    let json = site.json(&[&["plan", "--files", &folder][..], &last, &spans].concat());
    for (name, values) in policies {
        assert_eq!(json["policy"][name], values[values.len() - 1]);
        let flag = format!("--{}", name.replace('_', "-"));
        let ran = site.run(&["plan", "--files", &folder, &flag, "whatever"]);
        ran.fails(2, values).warns("whatever").warns(&flag);
    }
    assert_eq!(json["policy"]["guests"], json!(["U-1", "U-2"]));
    assert_eq!(json["policy"]["gap_us"], 90_000_000);
    assert_eq!(json["policy"]["initiated_expires_us"], 1_800_000_000);
    site.run(&["plan", "--files", &folder, "--gap", "2"]).fails(2, &["--gap", "90s"]);
}

fn its_json_has_the_shape_of_the_contract(site: &Site) {
    let mut book = doubled();
    book.payment("P-lost", "O-lost", 1200, "CAPTURED");
    site.import(&book.ledgers);
    let plan = site.json(&["plan"]);
    let has = |value: &Value, names: &[&str]| {
        let missing: Vec<_> = names.iter().filter(|n| value.get(n).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?} in {value:#}");
    };
    has(&plan, &["plan_id", "digest", "as_of", "scope", "policy", "intents", "sums"]);
    assert!(plan["digest"].as_str().unwrap().starts_with("sha256:"));
    assert!(plan["as_of"].as_str().unwrap().ends_with('Z'));
    for intent in plan["intents"].as_array().unwrap() {
        has(intent, &["intent_id", "tenant_id", "user_id", "show_id", "session_id", "orders", "orphans"]);
        has(intent, &["outcome", "keep", "findings", "review_reasons", "decided_by", "steps"]);
        for step in intent["steps"].as_array().unwrap() {
            has(step, &["ledger", "id", "from", "to", "amount_minor", "currency", "version", "step_key"]);
        }
    }
    let (kept, lost) = (&plan["intents"][0], &plan["intents"][1]);
    assert_eq!(lost["orphans"], json!([["payments", "P-lost"]]));
    assert_eq!(lost["keep"], Value::Null);
    let refund: Vec<_> =
        kept["steps"].as_array().unwrap().iter().filter(|s| s["ledger"] == "payments").collect();
    assert_eq!((&refund[0]["version"], &refund[1]["version"]), (&json!("1"), &Value::Null));
    assert_eq!((&refund[0]["amount_minor"], &refund[1]["currency"]), (&json!(1000), &json!("CNY")));
    has(
        &plan["sums"]["money"][0],
        &["tenant_id", "currency", "captured", "kept", "to_refund", "in_review", "unsettled", "clean"],
    );
    has(
        &plan["sums"]["stock"][0],
        &["tenant_id", "show_id", "live", "kept", "to_release", "in_review", "unsettled", "clean"],
    );
}

fn a_plan_of_everything_is_saved_whole(site: &Site) {
    site.import(&doubled().ledgers);
    let parts = site.json(&["plan", "--tenant", "t"]);
    let everything = site.json(&["plan"]);
    assert!(!everything["intents"].as_array().unwrap().is_empty());
    assert_eq!(everything["intents"], parts["intents"]);
    let lines = site.run(&["plan", "--format", "jsonl"]).ends(0).stdout;
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["event"], &last["result"]["intents"]),
        (&json!("result"), &parts["intents"]),
        "line by line"
    );
    // What is not listed for people is saved all the same, and shown as it was.
    let told = site.run(&["plan"]).ends(0).prints("a dry run").stdout;
    let newest = site.json(&["status"])["plans"][0]["plan_id"].as_str().unwrap().to_owned();
    assert!(told.contains(&newest), "{told}");
    let saved = site.json(&["show", &newest]);
    assert_eq!(saved["plan"]["intents"], parts["intents"]);
    let shown = site.run(&["show", &newest]).ends(0).stdout;
    let outcomes = |text: &str| text[text.find("OUTCOME").unwrap()..text.rfind("CNY").unwrap()].to_owned();
    assert_eq!(outcomes(&told), outcomes(&shown));
}

fn a_large_scope_is_planned_from_every_row(site: &Site) {
    let mut book = Book::new();
    for n in 0..1000 {
        book.bought(&format!("O-{n}"), n);
    }
    for n in 0..3 {
        book.bought(&format!("O-double-{n}"), 10 * n);
        book.bought(&format!("O-other-{n}"), 10 * n);
    }
    let mut ledgers = book.ledgers;
    ledgers.orders.iter_mut().filter(|o| !o.order_id.as_str().contains("-double-")).for_each(|o| {
        o.user_id = o.order_id.as_str().into();
        if o.order_id.as_str().contains("-other-") {
            (o.user_id, o.show_id) = ("u".into(), "other".into());
        }
    });
    site.import(&ledgers);
    let scope = Scope { shows: ["show".into()].into(), ..Scope::default() };
    let as_of = at(10_000);
    let decided = make(&ledgers, &scope, &Policy::default(), as_of, &Evidence::default()).unwrap();
    let made = decided.into_plan("p".to_owned(), as_of, None);
    assert!(made.with_steps().len() == 1, "{made:?}");
    let line = ["plan", "--show", "show", "--as-of", "2026-09-21T17:00:00Z"];
    assert_eq!(site.json(&line)["digest"], made.digest);
    // Read row by row, it would need no room.
    run(site.command(&line).env("TMPDIR", site.path("gone")), &line)
        .fails(1, &["cannot write a temporary file in"]);
}

fn without_room_for_the_ledgers_it_says_where_room_is_wanted(site: &Site) {
    site.import(&doubled().ledgers);
    let line = ["plan"];
    run(site.command(&line).env("TMPDIR", site.path("gone")), &line)
        .fails(1, &["cannot write a temporary file in", "gone", "TMPDIR=FOLDER"]);
    // What is narrower needs none.
    let line = ["plan", "--show", "show"];
    run(site.command(&line).env("TMPDIR", site.path("gone")), &line).ends(0);
}
