//! JSON: the shape that `fixtures/report.schema.json` says, and the plan's own numbers in it.

use std::fs;
use std::path::Path;

use onefold::core::dossier::Dossier;
use onefold::report::export::Json;
use serde_json::Value;

use crate::scene::{HOSTILE, Scene, finish, hostile, journal, target, temporary};

/// Whether a report is as the schema says, and why not.
pub fn faults(report: &Value) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/report.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    validator.iter_errors(report).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

pub fn report(dossier: &Dossier<'_>, notes: &[&'static str]) -> Value {
    let (_dir, folder) = temporary();
    let path = folder.join("report.json");
    finish(Json::begin(dossier, target(&path)).unwrap(), dossier, &journal(notes));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn before_and_after_it_is_as_the_schema_says() {
    let (scene, hostile) = (Scene::incident(), hostile());
    for (dossier, notes) in [(scene.before(), &[][..]), (scene.after(), &["x"]), (hostile.after(), &HOSTILE)]
    {
        let report = report(&dossier, notes);
        assert_eq!(faults(&report), [""; 0]);
        assert_eq!(report["intents"].as_array().unwrap().len(), dossier.plan.intents.len());
        assert_eq!(report["journal"].as_array().unwrap().len(), notes.len());
        assert_eq!(report["sums"], serde_json::json!(dossier.plan.sums));
        let ends = report["intents"].as_array().unwrap().iter().flat_map(|i| i["steps"].as_array().unwrap());
        let done = ends.filter(|s| s["outcome"]["state"] == "DONE").count();
        assert_eq!(done, dossier.ends.len());
    }
}

#[test]
fn what_is_not_as_the_schema_says_is_found() {
    let scene = Scene::incident();
    let good = report(&scene.before(), &["x"]);
    let changes: [fn(&mut Value); 6] = [
        |r| drop(r.as_object_mut().unwrap().remove("digest")),
        |r| r["more"] = Value::Null,
        |r| r["intents"][0]["outcome"] = "MAYBE".into(),
        |r| r["sums"]["money"][0]["captured"] = "12.00".into(),
        |r| r["as_of"] = "yesterday".into(),
        |r| drop(r["journal"][0].as_object_mut().unwrap().remove("actor")),
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let mut report = good.clone();
        change(&mut report);
        assert!(!faults(&report).is_empty(), "change {i}");
    }
}
