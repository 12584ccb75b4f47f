//! What to alert on, as Prometheus reads it.

use std::process::Command;

use onefold::core::locks::ALERTS;

use crate::audit::fixture;
use crate::common::is_installed;
use crate::common::site::{program, run};

#[test]
fn the_rule_file_has_every_alert_and_promtool_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.yml");
    let history = fixture("locks.csv");
    let line = ["locks", "audit", &history, "--rules", path.to_str().unwrap()];
    let told = run(program().args(line), &line).ends(5);
    let text = std::fs::read_to_string(&path).unwrap();
    let named: Vec<_> = text.lines().filter_map(|l| l.trim().strip_prefix("- alert: ")).collect();
    assert_eq!(named, ALERTS.map(|alert| alert.name));
    ALERTS.iter().fold(told, |told, alert| told.prints(alert.name));
    // A file that is there is not written over.
    run(program().args(line), &line).fails(2, &["is there already"]);

    assert!(
        is_installed("promtool"),
        "missing: promtool, to check the rules (Debian: apt-get install prometheus); tests/run.sh installs it"
    );
    let checked = Command::new("promtool").args(["check", "rules"]).arg(&path).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
