//! `onefold history`

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::common::site::{Kind, OWNER, Site, text};
use crate::{doubled, on_each_database};

on_each_database![
    tells_who_did_what_to_an_order_and_under_which_plan,
    every_run_ends_its_chain_and_verify_covers_all_of_them,
    verify_names_what_was_changed_and_heads_that_are_gone,
    verify_names_what_nothing_tells_of_any_more,
    anybody_can_check_what_is_exported,
];

fn tells_who_did_what_to_an_order_and_under_which_plan(site: &Site) {
    let mut book = doubled();
    book.bought("C", 900);
    book.bought("D", 910);
    site.import(&book.ledgers);
    let (freeze, plan) = (site.freeze(), site.plan());
    site.run(&["apply", &plan, "--yes"]).ends(0);
    site.run(&["history", "--order", "B"])
        .ends(0)
        .prints(&format!("{OWNER} {plan} I-"))
        .prints("tenant t")
        .prints("moved message M-B QUEUED → QUARANTINED")
        .prints("moved order B PAID → REFUNDING")
        .prints("sent payment P-B REFUNDING → REFUNDED 10.00 CNY: refund under key")
        .prints("moved order B REFUNDING → REFUNDED")
        .does_not_print("order D");
    // The one that was kept was moved by no step; what became of its purchase is its story, too.
    site.run(&["history", "--order", "A"])
        .ends(0)
        .prints("moved order B PAID → REFUNDING")
        .does_not_print("order D");
    site.run(&["history", "--plan", &plan])
        .ends(0)
        .prints(&freeze)
        .prints("planned")
        .prints("applied")
        .prints("order D");
    site.run(&["history", "--order", "B", "--tenant", "t"]).ends(0).prints("moved order B");
    site.run(&["history", "--order", "B", "--tenant", "u"]).ends(0).prints("no such entry");
    let all = site.json(&["history"]);
    let entries = all["entries"].as_array().unwrap();
    assert_eq!(entries[0]["event"], "imported");
    assert!(entries.windows(2).all(|w| w[0]["seq"].as_i64() < w[1]["seq"].as_i64()));
    let refund =
        entries.iter().find(|e| e["row_id"] == "P-B" && e["to"] == "REFUNDED" && e["event"] == "moved");
    assert_eq!(refund.unwrap()["amount_minor"], 1000);
    site.run(&["history", "--order", "nobody"]).ends(0).prints("The journal has no such entry.");
}

/// Import, freeze, plan and apply, each a run of its own; the plan.
fn applied(site: &Site) -> String {
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes", "--workers", "4"]).ends(0);
    plan
}

fn every_run_ends_its_chain_and_verify_covers_all_of_them(site: &Site) {
    let plan = applied(site);
    site.run(&["history", "verify"]).ends(0).prints("The journal fits.").does_not_print("without an end");
    // A run that fails has ended, too, and one that writes nothing has no chain.
    let heads = site.json(&["history", "verify"])["journal"]["heads"].as_i64().unwrap();
    site.run(&["apply", "PL-none"]).ends(2);
    site.run(&["status"]).ends(0);
    site.run(&["once", "--key", "k", "--", "sh", "-c", "exit 3"]).ends(3);
    let json = site.json(&["history", "verify"]);
    assert_eq!(json["fits"], true);
    assert_eq!(json["journal"]["heads"], heads + 1);
    assert_eq!(json["journal"]["covered"], json["journal"]["entries"]);
    assert_eq!(json["journal"]["unfinished_runs"], 0);
    assert_eq!(json["journal"]["not_chained"], 0);
    site.run(&["history", "--plan", &plan]).ends(0).does_not_print(" ended");
    site.run(&["history", "verify", "--seal"]).ends(0).prints("No chain was without an end.");
}

fn verify_names_what_was_changed_and_heads_that_are_gone(site: &Site) {
    applied(site);
    let head = site.id(&["history", "verify"], "/journal/newest_head/hash");
    site.run(&["history", "verify", "--head", &head]).ends(0);
    site.run(&["history", "verify", "--head", &"a".repeat(64)]).ends(5).prints("there is no head aaaa");
    site.run(&["history", "verify", "--head", "abc"]).fails(2, &["64 hex digits"]);
    match site.kind() {
        Kind::Postgres => site.sql("ALTER TABLE onefold_journal DISABLE TRIGGER USER"),
        Kind::Sqlite | Kind::Mariadb => site.sql("DROP TRIGGER onefold_journal_is_kept_as_it_is"),
    }
    let seq = site.column("SELECT seq FROM onefold_journal WHERE event = 'froze'").concat();
    site.sql("UPDATE onefold_journal SET actor = 'somebody else' WHERE event = 'froze'");
    site.run(&["history", "verify"])
        .ends(5)
        .prints(&format!("The journal does not fit: entry {seq}, position 1 of RUN-"))
        .prints("what it says does not fit its hash");
    let json = site.run(&["history", "verify", "--json"]).ends(5).json();
    assert_eq!(json["fits"], false);
    assert_eq!(json["journal"]["misfits"][0]["seq"].to_string(), seq);
}

fn verify_names_what_nothing_tells_of_any_more(site: &Site) {
    let plan = applied(site);
    site.run(&["history", "verify"]).ends(0).does_not_print("onefold init");
    match site.kind() {
        Kind::Postgres => {
            site.sql("ALTER TABLE onefold_journal DISABLE TRIGGER USER");
            site.sql("DROP TRIGGER onefold_rows_are_kept ON onefold_heads");
        }
        Kind::Sqlite | Kind::Mariadb => {
            site.sql("DROP TRIGGER onefold_journal_is_kept");
            site.sql("DROP TRIGGER onefold_heads_are_kept");
        }
    }
    // As if nothing had ever been: no hash is wrong, and no head is missing.
    site.sql("DELETE FROM onefold_journal");
    site.sql("DELETE FROM onefold_heads");
    site.sql("UPDATE onefold_counters SET value = 0 WHERE name = 'heads'");
    let missing = match site.kind() {
        Kind::Postgres => "onefold_rows_are_kept on onefold_heads",
        Kind::Sqlite | Kind::Mariadb => "onefold_heads_are_kept",
    };
    site.run(&["history", "verify"])
        .ends(5)
        .prints(&format!("The journal does not fit: plan {plan}"))
        .prints("no entry tells of it")
        .prints(&format!("begun plan {plan}"))
        .prints("step on row P-B")
        .prints(missing);
    site.run(&["init"]).ends(0);
    site.run(&["history", "verify"]).ends(5).does_not_print("onefold init");
}

/// The README's algorithm, written down once more.
fn hash(fields: &[Field<'_>]) -> String {
    let mut bytes = Vec::new();
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as u64).to_be_bytes());
        bytes.extend(text.as_bytes());
    };
    for field in fields {
        match field {
            Field::Bare(value) => text(&mut bytes, &plain(value)),
            Field::MayBeNull(Value::Null) => text(&mut bytes, "null"),
            Field::MayBeNull(value) => {
                text(&mut bytes, "some");
                text(&mut bytes, &plain(value));
            }
        }
    }
    Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

enum Field<'v> {
    Bare(&'v Value),
    MayBeNull(&'v Value),
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn anybody_can_check_what_is_exported(site: &Site) {
    applied(site);
    let path = text(&site.path("journal.jsonl"));
    site.run(&["history", "export", "--output", &path]).ends(0).prints("heads in");
    site.run(&["history", "export", "--output", &path]).fails(2, &["is there already"]);
    let refused = site.run(&["history", "export", "--json"]).ends(2).error();
    assert!(refused["hint"].as_str().unwrap().contains("--output FILE"), "{refused}");
    let written = std::fs::read_to_string(&path).unwrap();
    let printed = site.run(&["history", "export"]).ends(0);
    assert_eq!(printed.stdout, written);

    let said = [
        "at_us",
        "actor",
        "event",
        "freeze_id",
        "plan_id",
        "intent_id",
        "ledger",
        "tenant_id",
        "row_id",
        "from_status",
        "to_status",
        "amount_minor",
        "currency",
        "version",
        "note",
    ];
    let (entry_kind, head_kind) = (Value::from("onefold-journal-1"), Value::from("onefold-head-1"));
    let mut tips: BTreeMap<String, (i64, String)> = BTreeMap::new();
    let (mut entries, mut heads) = (0, (0, String::new()));
    for line in written.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let bare = |name: &str| Field::Bare(line.get(name).unwrap());
        let chain = line["chain"].as_str().unwrap().to_owned();
        if line.get("head").is_some() {
            let fields = ["head", "previous_hash", "chain", "last_position", "last_hash", "at_us", "actor"];
            let fields: Vec<_> = [Field::Bare(&head_kind)].into_iter().chain(fields.map(bare)).collect();
            assert_eq!(line["hash"], hash(&fields), "{line}");
            assert_eq!(
                (&line["head"], &line["previous_hash"]),
                (&Value::from(heads.0 + 1), &Value::from(&*heads.1))
            );
            heads = (heads.0 + 1, plain(&line["hash"]));
            let tip = (line["last_position"].as_i64().unwrap(), plain(&line["last_hash"]));
            assert_eq!(tips.remove(&chain), Some(tip), "{line}");
            continue;
        }
        let place = ["chain", "position", "previous_hash"].map(bare);
        let said = said.map(|name| Field::MayBeNull(line.get(name).unwrap()));
        let fields: Vec<_> = [Field::Bare(&entry_kind)].into_iter().chain(place).chain(said).collect();
        assert_eq!(line["hash"], hash(&fields), "{line}");
        let tip = tips.entry(chain).or_default();
        assert_eq!(
            (&line["position"], &line["previous_hash"]),
            (&Value::from(tip.0 + 1), &Value::from(&*tip.1))
        );
        *tip = (tip.0 + 1, plain(&line["hash"]));
        entries += 1;
    }
    assert!(entries > 10 && heads.0 > 3, "{written}");
    assert!(tips.is_empty(), "every run has ended");
}
