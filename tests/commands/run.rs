//! `onefold run`: a playbook, step by step.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::approve::approved_by_another;
use crate::common::site::{Site, text};
use crate::{doubled, on_each_database};

on_each_database![
    a_playbook_runs_through_and_hands_freeze_and_plan_on,
    it_stops_where_a_person_is_needed_and_goes_on_from_there,
    it_waits_for_an_approval,
    what_is_wrong_with_a_playbook_is_said_before_anything_is_run,
    events_are_lines_and_the_last_is_the_result,
    the_sample_unwinds_the_incident_and_stops_for_a_person,
];

const STEPS: &str = r#"
name = "a night"
[[step]]
name = "freeze"
run = ["freeze", "--show", "show", "--advisory", "--reason", "it's a test"]
[[step]]
name = "plan"
run = ["plan", "--freeze", "{freeze}"]
[[step]]
name = "approval"
wait_for_approval = "1s"
[[step]]
name = "apply"
run = ["apply", "{plan}", "--yes", "--canary", "1"]
[[step]]
name = "verify"
run = ["verify", "{plan}"]
[[step]]
name = "thaw"
run = ["thaw", "{freeze}", "--accept-lapsing"]
"#;

fn playbook(site: &Site, text_: &str) -> String {
    let path = site.path("night.toml");
    std::fs::write(&path, text_).unwrap();
    text(&path)
}

fn a_playbook_runs_through_and_hands_freeze_and_plan_on(site: &Site) {
    site.import(&doubled().ledgers);
    let book = playbook(site, STEPS);
    let dry = site.run(&["run", &book, "--dry-run"]).ends(0);
    dry.prints("onefold freeze --show show --advisory --reason 'it'\\''s a test'")
        .prints("onefold apply '{plan}'");
    assert_eq!(site.payment("P-B"), "CAPTURED");
    let ran = site.run(&["run", &book]).ends(0);
    let (freeze, plan) = (
        site.column("SELECT freeze_id FROM onefold_freezes"),
        site.column("SELECT plan_id FROM onefold_plans"),
    );
    let ran = ran.prints(&format!("$ onefold plan --freeze {}", freeze[0])).prints("a night: through");
    ran.prints(&format!("$ onefold apply {} --yes", plan[0])).prints(&format!("{}: none is needed", plan[0]));
    assert_eq!((site.payment("P-B"), site.order("B")), ("REFUNDED".into(), "REFUNDED".into()));
    assert_eq!(site.column("SELECT state FROM onefold_freezes"), ["THAWED"]);
    // Typed again it freezes again, finds nothing to do, and ends well.
    let json = site.json(&["run", &book]);
    let steps: Vec<_> =
        json["steps"].as_array().unwrap().iter().map(|s| s["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["freeze", "plan", "approval", "apply", "verify", "thaw"]);
    assert_eq!(json["stopped_at"], serde_json::Value::Null);
}

fn it_stops_where_a_person_is_needed_and_goes_on_from_there(site: &Site) {
    site.provider(&[("P-B", "lose-answer")]);
    site.import(&doubled().ledgers);
    let book = playbook(site, STEPS);
    let json = site.run(&["run", &book, "--json"]).ends(6).json();
    assert_eq!(
        (json["stopped_at"].as_str(), json["steps"].as_array().map(Vec::len)),
        (Some("apply"), Some(4))
    );
    site.run(&["run", &book]).ends(7).prints("stopped at freeze").prints("--from freeze");
    assert_eq!(site.payment("P-B"), "REFUNDING");
    // Its freeze is ours, its plan the newest. The provider is asked under the same key, and has done it.
    site.run(&["run", &book, "--from", "apply"]).ends(0).prints("a night: through");
    assert_eq!((site.order("B"), site.payment("P-B")), ("REFUNDED".into(), "REFUNDED".into()));
    assert_eq!(
        site.column("SELECT idempotency_key FROM onefold_sandbox_requests WHERE kind = 'REFUND'").len(),
        1
    );
    site.run(&["run", &book, "--from", "apply"]).fails(2, &["{freeze} is not known", "holds 0 live freezes"]);
    site.run(&["run", &book, "--from", "nothing"]).fails(2, &["the playbook has no step nothing"]);
}

fn it_waits_for_an_approval(site: &Site) {
    site.configure("[approval]\nrequired = true\n[providers.\"*\"]\nkind = \"sandbox\"\n[limits]\nmax_refund_total = [\"CNY:1000\"]\n");
    site.import(&doubled().ledgers);
    let book = playbook(site, STEPS);
    let ran =
        site.run(&["run", &book]).ends(6).prints("stopped at approval").prints("no approval came within 1s");
    ran.warns("needs the approval of someone other than");
    assert_eq!(site.payment("P-B"), "CAPTURED");
    let book = playbook(site, &STEPS.replace("\"1s\"", "\"10m\""));
    let mut waiting = site
        .process(&["run", &book, "--from", "approval"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It says so while it waits.
    let (mut stderr, mut said) = (waiting.stderr.take().unwrap(), Vec::new());
    let mut byte = [0; 1];
    while !said.ends_with(b"--because TEXT") {
        assert_eq!(stderr.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&said));
        said.extend(byte);
    }
    let plan = site.column("SELECT plan_id FROM onefold_plans").concat();
    approved_by_another(site, &plan);
    let began = Instant::now();
    while waiting.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(120), "it does not see the approval");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(waiting.wait().unwrap().success());
    assert_eq!(site.payment("P-B"), "REFUNDED");
}

fn what_is_wrong_with_a_playbook_is_said_before_anything_is_run(site: &Site) {
    site.import(&doubled().ledgers);
    let bad = |text: &str, saying: &[&str]| {
        let book = playbook(site, text);
        site.run(&["run", &book]).fails(2, saying);
    };
    let step = |line: &str| format!("{STEPS}\n[[step]]\nname = \"last\"\n{line}\n");
    site.run(&["run", "nowhere.toml"]).fails(2, &["cannot read the playbook nowhere.toml"]);
    bad("name = \"x\"\nstep = []\n", &["has no step"]);
    bad("name = \"x\"\n\n[[step]]\nname = \"a\"\nrum = []\n", &["line 5", "rum"]);
    bad(&step("run = []"), &["step last: run is empty"]);
    bad(&step("run = [\"plan\", \"--sow\", \"x\"]"), &["step last", "--sow"]);
    bad(&step("run = [\"run\", \"x\"]"), &["`run` is not for a playbook"]);
    bad(&step("run = [\"status\", \"--database\", \"sqlite:x\"]"), &["step last", "does not say --database"]);
    bad(&step("run = [\"status\", \"--json\"]"), &["step last", "does not say --json"]);
    bad(&step("run = [\"status\"]\nwait_for_approval = \"1m\""), &["step last", "or both"]);
    bad(&step("wait_for_approval = \"soon\""), &["step last", "soon"]);
    bad(&step("run = [\"status\"]").replace("\"last\"", "\"plan\""), &["two steps go by \"plan\""]);
    assert_eq!(site.column("SELECT freeze_id FROM onefold_freezes"), Vec::<String>::new());
}

fn events_are_lines_and_the_last_is_the_result(site: &Site) {
    site.import(&doubled().ledgers);
    let book = playbook(site, STEPS);
    let ran = site.run(&["run", &book, "--format", "jsonl"]).ends(0);
    let lines: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events.iter().filter(|e| **e == "step").count(), 6, "{ran}");
    assert!(events.contains(&"begin") && events.contains(&"end"), "{ran}");
    assert_eq!((events.last(), lines.last().unwrap()["code"].as_i64()), (Some(&"result"), Some(0)));
    assert_eq!(ran.stderr, "");
    let failed = site.run(&["apply", "PL-none", "--format", "jsonl"]).ends(2);
    assert_eq!(failed.error()["kind"], "usage");
    assert_eq!(failed.stderr.lines().count(), 1);
    assert!(site.run(&["status", "--format", "csv"]).ends(2).stderr.contains("csv"));
}

/// The sample of the fixtures on the night that it is written for, where the bank loses an answer, loses a request and
/// refuses a refund.
fn the_sample_unwinds_the_incident_and_stops_for_a_person(site: &Site) {
    let fixture = |name: &str| text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name));
    let book = fixture("playbook.toml");
    site.run(&["init", "--enforce"]).ends(0);
    site.run(&["import", &fixture("incident-2014")]).ends(0);
    let json = site.run(&["run", &book, "--json"]).ends(6).json();
    let ends: Vec<_> = json["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (s["step"].as_str().unwrap(), s["exit"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        ends,
        [
            ("freeze", 0),
            ("settle", 0),
            ("plan", 0),
            ("approval", 0),
            ("apply", 6),
            ("ask", 6),
            ("go-on", 6),
            ("ask-again", 0),
            ("finish", 6)
        ]
    );
    // Everything is back but the one refund that the bank refused, and all within what the sample states.
    let applied = &json["steps"][8]["report"];
    let open: Vec<_> = applied["intents"].as_array().unwrap().iter().filter(|i| i["end"] != "DONE").collect();
    assert_eq!(open.len(), 1, "{applied:#}");
    assert_eq!(open[0]["end"], "REFUSED", "{applied:#}");
    assert_eq!(site.payment("P-70283"), "CAPTURED");
    let back = "SELECT payment_id FROM payments WHERE status = 'REFUNDED' AND payment_id IN ('P-70276', 'P-70097', 'P-70205')";
    assert_eq!(site.column(back).len(), 3);
    assert_eq!(json["stopped_at"], "finish");
    // A person has looked at it, and goes on; the purchases that nobody has decided stay frozen.
    let ran = site.run(&["run", &book, "--from", "verify"]).ends(6);
    ran.prints("stopped at verify").prints("a person or the provider must decide").prints("--from verify");
    site.run(&["run", &book, "--from", "thaw"])
        .ends(0)
        .prints("all is thawed but 25 intents")
        .prints("through");
    assert_eq!(site.column("SELECT state FROM onefold_freezes"), ["NARROWED"]);
}
