//! The program itself, killed while it applies the incident's plan, and run again; and run twice at once.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use onefold::core::ledger::Ledgers;
use serde_json::Value;

use crate::common::databases::{Db, all_rows};
use crate::common::site::sandbox;
use crate::on_every_database;

/// `onefold` on a database.
struct Program<'d>(&'d Db);

impl Program<'_> {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onefold"));
        command.args(words).args(["--quiet", "--json"]).stdin(Stdio::null());
        command.env("ONEFOLD_DATABASE_URL", &self.0.url).env("ONEFOLD_OWNER", "op");
        command.env("ONEFOLD_CONFIG", sandbox());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    #[track_caller]
    fn json(&self, words: &[&str]) -> Value {
        let output = self.run(words);
        let told = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{words:?}: {e}: {told}"))
    }

    fn start(&self, words: &[&str]) -> Child {
        self.command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Loads, freezes and plans the incident; the plan's id.
    fn prepare(&self) -> String {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/incident-2014");
        self.json(&["import", fixture.to_str().unwrap()]);
        self.json(&["freeze", "--show", "S-204", "--advisory", "--reason", "a test", "--for", "2h"]);
        self.json(&["plan", "--show", "S-204"])["plan_id"].as_str().unwrap().to_owned()
    }

    /// Applies and asks the provider in turns until all is done but what the provider refuses.
    fn finish(&self, plan: &str) {
        let mut last = Value::Null;
        for _ in 0..6 {
            last = self.json(&["apply", plan, "--yes"]);
            let ends: Vec<_> =
                last["intents"].as_array().unwrap().iter().map(|i| i["end"].as_str().unwrap()).collect();
            let is_over = ends.iter().all(|end| matches!(*end, "DONE" | "REFUSED"));
            // Also where nothing of ours is open: it settles what the undecided intents wait for.
            self.run(&["converge", "--plan", plan]);
            if is_over {
                return;
            }
        }
        panic!("{last:#}");
    }

    async fn outcome(&self) -> (Ledgers, Vec<Vec<String>>, Vec<Vec<String>>) {
        let rows = all_rows(&self.0.open().await).await;
        let requests =
            "SELECT charge, kind, amount_minor, status FROM onefold_sandbox_requests ORDER BY charge, kind";
        let refunded = "SELECT charge, refunded_minor FROM onefold_sandbox_charges ORDER BY charge";
        (rows, self.0.rows(requests).await, self.0.rows(refunded).await)
    }
}

/// The incident, undisturbed, and how long its apply took.
async fn calm() -> ((Ledgers, Vec<Vec<String>>, Vec<Vec<String>>), Duration) {
    let db = Db::new(crate::common::databases::Kind::Sqlite);
    let program = Program(&db);
    let plan = program.prepare();
    let began = Instant::now();
    program.run(&["apply", &plan, "--yes"]);
    let took = began.elapsed();
    program.finish(&plan);
    let outcome = program.outcome().await;
    let charges: Vec<_> = outcome.1.iter().map(|request| &request[0]).collect();
    assert!(charges.len() > 5 && charges.windows(2).all(|pair| pair[0] != pair[1]), "{charges:?}");
    (outcome, took)
}

on_every_database! {
    async fn apply_killed_at_any_time_again_and_again_ends_as_if_undisturbed(db) {
        let (calm, took) = calm().await;
        let program = Program(db);
        let plan = program.prepare();
        let hunt = std::env::var_os("ONEFOLD_TEST_HUNT").is_some();
        let rounds = if hunt { 60 } else { 12 };
        let mut kills = 0;
        for _ in 0..rounds {
            let mut child = program.start(&["apply", &plan, "--yes"]);
            // At a time that nobody has chosen, so early that much is left to do for the next.
            let chance = u32::from(uuid::Uuid::new_v4().as_bytes()[0]);
            std::thread::sleep(took * 3 * chance / (256 * rounds));
            child.kill().unwrap();
            kills += usize::from(child.wait().unwrap().code().is_none());
        }
        assert!(kills > 1, "{kills} of the runs were killed in time");
        program.finish(&plan);
        assert_eq!(program.outcome().await, calm);
    }

    async fn two_processes_that_apply_the_same_plan_at_once_end_as_if_there_were_one(db) {
        let (calm, _) = calm().await;
        let program = Program(db);
        let plan = program.prepare();
        let apply = ["apply", &plan, "--yes"];
        let ends = std::thread::scope(|scope| {
            [(); 2].map(|()| scope.spawn(|| program.run(&apply))).map(|process| process.join().unwrap())
        });
        for end in ends {
            // Done, waiting for the provider, or stopped because the other one is at it.
            let told = String::from_utf8_lossy(&end.stdout);
            assert!(matches!(end.status.code(), Some(0 | 6 | 7)), "{told}");
        }
        program.finish(&plan);
        assert_eq!(program.outcome().await, calm);
    }
}
