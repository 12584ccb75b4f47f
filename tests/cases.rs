//! Every fixture ledger, planned, against what must come out: see fixtures/cases/README.md.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use common::{Options, fixtures, folders, load, name};
use onefold::core::plan::{self, Decided};
use serde_json::Value;

#[test]
fn every_case_comes_out_as_expected() {
    let mut differences = Vec::new();
    let cases = folders(&fixtures());
    assert!(cases.len() >= 12, "only {} cases", cases.len());
    for folder in cases {
        let case: toml::Table = fs::read_to_string(folder.join("case.toml")).unwrap().parse().unwrap();
        let text = |name: &str| case[name].as_str().unwrap();
        let policies = case["policies"].as_table().unwrap();
        let plain = ["as_of", "gap", "max_span"].map(|name| (name, text(name)));
        let options = Options::new(
            plain
                .into_iter()
                .chain(policies.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap()))),
        );
        let expected = json(&folder.join("expected.json"));
        let decided = decide(&folder, &options);
        let members = ["orders", "outcome", "keep", "findings", "review_reasons", "steps"];
        let step_members = ["ledger", "id", "from", "to", "amount_minor"];
        compare_intents(&name(&folder), &decided, &expected, &members, &step_members, &mut differences);
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn every_random_ledger_comes_out_as_expected() {
    let mut differences = Vec::new();
    let ledgers = folders(&fixtures().join("random"));
    assert!(ledgers.len() >= 60, "only {} ledgers", ledgers.len());
    for folder in ledgers {
        let options = Options::from_text(&fs::read_to_string(folder.join("options.txt")).unwrap());
        let expected = json(&folder.join("plan.json"));
        let decided = decide(&folder, &options);
        let members = [
            "tenant_id",
            "user_id",
            "show_id",
            "session_id",
            "orders",
            "orphans",
            "outcome",
            "keep",
            "findings",
            "review_reasons",
            "decided_by",
            "steps",
        ];
        let step_members = ["ledger", "id", "from", "to", "amount_minor", "currency"];
        compare_intents(&name(&folder), &decided, &expected, &members, &step_members, &mut differences);
        for (kind, place) in [("money", "currency"), ("stock", "show_id")] {
            let ours = serde_json::to_value(&decided.sums).unwrap();
            let (ours, theirs) = (sums(&ours[kind], place), sums(&expected["sums"][kind], place));
            if ours != theirs {
                differences
                    .push(format!("{} {kind}:\n  ours     {ours:?}\n  expected {theirs:?}", name(&folder)));
            }
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

fn decide(folder: &Path, options: &Options) -> Decided {
    let ledgers = load(folder);
    let evidence = options.evidence(&ledgers);
    plan::make(&ledgers, &options.scope, &options.policy, options.as_of, &evidence)
        .unwrap_or_else(|e| panic!("{}: {e}", name(folder)))
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn compare_intents(
    folder: &str,
    decided: &Decided,
    expected: &Value,
    members: &[&str],
    step_members: &[&str],
    differences: &mut Vec<String>,
) {
    let theirs = expected["intents"].as_array().unwrap();
    let ours: Vec<Value> = decided.intents.iter().map(|i| serde_json::to_value(i).unwrap()).collect();
    if ours.len() != theirs.len() {
        differences.push(format!("{folder}: {} intents, expected {}", ours.len(), theirs.len()));
    }
    for (ours, theirs) in ours.iter().zip(theirs) {
        for &member in members {
            let (mut ours_here, theirs_here) = (ours[member].clone(), &theirs[member]);
            if member == "steps" {
                for step in ours_here.as_array_mut().unwrap() {
                    step.as_object_mut().unwrap().retain(|name, _| step_members.contains(&name.as_str()));
                }
            }
            if ours_here != *theirs_here {
                differences.push(format!(
                    "{folder} {} {member}:\n  ours     {ours_here}\n  expected {theirs_here}",
                    theirs["orders"]
                ));
            }
        }
    }
}

/// Sums by their place; a row of zeros is as good as none.
fn sums(rows: &Value, place: &str) -> BTreeMap<(String, String), BTreeMap<String, i64>> {
    let rows = rows.as_array().unwrap().iter().map(|row| {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let amounts = row.as_object().unwrap().iter();
        let amounts = amounts.filter_map(|(name, value)| Some((name.clone(), value.as_i64()?))).collect();
        ((text("tenant_id"), text(place)), amounts)
    });
    rows.filter(|(_, amounts): &(_, BTreeMap<String, i64>)| amounts.values().any(|a| *a != 0)).collect()
}
