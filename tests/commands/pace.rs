//! `onefold apply` by several, in parts, paused and stopped.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::book::Book;
use crate::common::site::Site;
use crate::on_each_database;

on_each_database![
    several_workers_end_as_one_does,
    several_processes_share_a_plan,
    a_canary_comes_first_and_stops_the_rest_where_it_goes_wrong,
    what_was_done_is_told_whatever_breaks_it_off,
    a_stop_file_leaves_a_plan_that_can_be_taken_up,
    a_pause_file_holds_it_until_it_is_gone,
    an_interrupt_lets_the_steps_under_way_end,
    a_rate_is_kept,
];

const PURCHASES: usize = 6;

/// Several purchases, each of which became two orders.
fn night(site: &Site) -> String {
    let mut book = Book::new();
    for at in 0..PURCHASES {
        let at = i64::try_from(at).unwrap();
        book.bought(&format!("A{at}"), at * 1800);
        book.bought(&format!("B{at}"), at * 1800 + 10);
    }
    site.import(&book.ledgers);
    site.freeze();
    site.plan()
}

fn refunded(site: &Site) -> usize {
    let each = site.column("SELECT refunded_minor FROM onefold_sandbox_charges WHERE refunded_minor > 0");
    assert!(each.iter().all(|sum| sum == "1000"), "{each:?}");
    each.len()
}

fn all_is_done(site: &Site, plan: &str) {
    assert_eq!(refunded(site), PURCHASES);
    for at in 0..PURCHASES {
        let (kept, lost) = (site.order(&format!("A{at}")), site.order(&format!("B{at}")));
        assert_eq!((kept.as_str(), lost.as_str()), ("PAID", "REFUNDED"));
    }
    assert_eq!(site.json(&["apply", plan, "--yes"])["done_now"], 0);
    site.run(&["verify", plan]).ends(0);
}

fn several_workers_end_as_one_does(site: &Site) {
    let plan = night(site);
    let json = site.json(&["apply", &plan, "--yes", "--workers", "4"]);
    assert_eq!((&json["ended"], &json["steps_done"]), (&true.into(), &json["steps"]));
    all_is_done(site, &plan);
}

fn several_processes_share_a_plan(site: &Site) {
    let plan = night(site);
    std::thread::scope(|scope| {
        let run = || site.run(&["apply", &plan, "--yes", "--workers", "2"]);
        for process in [(); 3].map(|()| scope.spawn(run)) {
            process.join().unwrap().ends(0);
        }
    });
    all_is_done(site, &plan);
}

fn a_canary_comes_first_and_stops_the_rest_where_it_goes_wrong(site: &Site) {
    site.provider(&[("P-B0", "lose-answer")]);
    let plan = night(site);
    assert_eq!(site.run(&["apply", &plan, "--yes", "--canary", "0"]).code, Some(2));
    site.run(&["apply", &plan, "--yes", "--canary", "1"])
        .ends(6)
        .prints("The canary of 1 did not get through: the rest is not begun.");
    assert_eq!(site.order("B1"), "PAID");
    site.run(&["converge", "--plan", &plan]).ends(0);
    site.run(&["apply", &plan, "--yes", "--canary", "1"]).ends(0);
    all_is_done(site, &plan);
}

fn what_was_done_is_told_whatever_breaks_it_off(site: &Site) {
    let plan = night(site);
    let folder = site.path("queries/moves");
    std::fs::create_dir_all(&folder).unwrap();
    let fails = "UPDATE inventory SET status = CASE hold_id WHEN 'H-B2' THEN NULL ELSE :to END, version = :next_version
        WHERE tenant_id = :tenant_id AND hold_id = :id AND status IN (:from) AND version = :version";
    std::fs::write(folder.join("hold.sql"), fails).unwrap();
    let queries = site.path("queries");
    let line = ["apply", &plan, "--yes", "--canary", "1", "--queries", queries.to_str().unwrap()];
    let ran = site.run(&[&line[..], &["--json"]].concat()).ends(1);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(told["error"]["message"].as_str().unwrap().contains("moves/hold.sql"), "{told}");
    let back = refunded(site);
    assert!(back > 1 && told["refunded_now"][0]["amount_minor"] == back * 1000, "{back}: {told}");
    assert_eq!(told["ended"], false);
    assert!(told["steps_done"] == told["done_now"] && told["done_now"] != told["steps"], "{told}");
    site.run(&line).fails(1, &["moves/hold.sql"]);
    site.run(&["apply", &plan, "--yes"]).ends(0);
    all_is_done(site, &plan);
}

fn a_stop_file_leaves_a_plan_that_can_be_taken_up(site: &Site) {
    let plan = night(site);
    let file = site.folder().join("stop");
    std::fs::write(&file, "").unwrap();
    let line = ["apply", &plan, "--yes", "--stop-file", "stop"];
    site.run(&line).ends(1).prints("It was stopped by stop; remove the file to go on.");
    assert_eq!(refunded(site), 0);
    std::fs::remove_file(&file).unwrap();
    site.run(&line).ends(0);
    all_is_done(site, &plan);
}

fn a_pause_file_holds_it_until_it_is_gone(site: &Site) {
    let plan = night(site);
    let file = site.folder().join("pause");
    std::fs::write(&file, "").unwrap();
    let line = ["apply", &plan, "--yes", "--pause-file", "pause"];
    std::thread::scope(|scope| {
        let process = scope.spawn(|| site.run(&line));
        std::thread::sleep(Duration::from_millis(1500));
        assert!(!process.is_finished());
        assert_eq!(refunded(site), 0);
        std::fs::remove_file(&file).unwrap();
        process.join().unwrap().ends(0);
    });
    all_is_done(site, &plan);
}

fn an_interrupt_lets_the_steps_under_way_end(site: &Site) {
    let plan = night(site);
    let child = site
        .process(&["apply", &plan, "--yes", "--rate", "10/s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while site.column("SELECT step_key FROM onefold_steps").is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "nothing was begun");
        std::thread::sleep(Duration::from_millis(20));
    }
    let interrupted = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("It was interrupted."), "{told}");
    let open = site.column("SELECT state FROM onefold_steps WHERE state NOT IN ('DONE', 'SKIPPED')");
    assert_eq!(open, [""; 0], "what was under way has ended");
    assert!(refunded(site) < PURCHASES);
    site.run(&["apply", &plan, "--yes"]).ends(0);
    all_is_done(site, &plan);
}

fn a_rate_is_kept(site: &Site) {
    let plan = night(site);
    let began = Instant::now();
    let json = site.json(&["apply", &plan, "--yes", "--rate", "15/s", "--workers", "3"]);
    let steps = json["steps"].as_u64().unwrap();
    // The last one is not waited for.
    let least = Duration::from_millis((steps - 5) * 1000 / 15);
    assert!(began.elapsed() > least, "{steps} steps in {:?}", began.elapsed());
}
