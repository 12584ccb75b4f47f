//! A plan of a million orders, in memory as it was saved: no writer may hold another copy of it.

use onefold::core::dossier::Dossier;
use onefold::core::plan::{Plan, PlannedIntent};
use onefold::report::export::{Csv, Export, Html, Json, Limits, ROWS_A_SHEET, Written, Xlsx};

use crate::scene::{Scene, target, temporary};

/// Purchases; each of the night's is there many times, under other ids.
const INTENTS: usize = 1_000_000;

/// What this process holds at most, in MiB, since it was last asked to forget.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

fn many() -> Plan {
    let mut plan = Scene::incident().plan;
    let some: Vec<PlannedIntent> = std::mem::take(&mut plan.intents);
    plan.intents = (0..INTENTS)
        .map(|i| {
            let mut intent = some[i % some.len()].clone();
            intent.intent_id = format!("I-{i:016x}");
            for order in &mut intent.orders {
                *order = format!("{order}-{i}").into();
            }
            for step in &mut intent.steps {
                step.id = format!("{}-{i}", step.id).into();
                step.step_key = format!("{i:08x}{}", &step.step_key[8..]);
            }
            intent
        })
        .collect();
    plan
}

#[test]
fn a_million_purchases_are_written_without_another_copy_of_them() {
    if std::env::var("ONEFOLD_TEST_HUNT").as_deref() != Ok("1") {
        return;
    }
    let plan = many();
    let dossier = Dossier { state: "DRY_RUN", made_by: "ada@desk", ..Dossier::of_plan(&plan) };
    let (_dir, folder) = temporary();
    type Begin<'b> = &'b dyn Fn() -> Box<dyn Export>;
    let formats: [(&str, Begin<'_>, u64); 4] = [
        ("csv", &|| Box::new(Csv::begin(&dossier, &folder.join("csv"), false, None).unwrap()), 64),
        ("json", &|| Box::new(Json::begin(&dossier, target(&folder.join("r.json"))).unwrap()), 64),
        (
            "html",
            &|| Box::new(Html::begin(&dossier, target(&folder.join("r.html")), Limits::default()).unwrap()),
            128,
        ),
        (
            "xlsx",
            &|| {
                Box::new(
                    Xlsx::begin(&dossier, target(&folder.join("r.xlsx")), ROWS_A_SHEET, &folder).unwrap(),
                )
            },
            256,
        ),
    ];
    for (name, begin, most) in formats {
        forget_peak();
        let before = peak_mib();
        let started = std::time::Instant::now();
        let Written { rows, .. } = begin().end(&dossier).unwrap();
        let more = peak_mib() - before;
        eprintln!("{name}: {more} MiB above the plan's {before}, in {:?}; {rows:?}", started.elapsed());
        assert!(more <= most, "{name} needs {more} MiB beside the plan");
        assert!(rows.iter().any(|(name, n)| *name == "Intents" && *n > 0), "{rows:?}");
    }
}
