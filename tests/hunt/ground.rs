//! The databases of one lane of runs. They are made once, and set back for each run to what a template
//! holds: the schema, the rows of a shape, the freeze and its plan. Opening SQLite anew for each run would
//! cost more than the run.

use std::path::Path;

use onefold::core::freeze::{Effect, FreezeMode};
use onefold::core::plan::{Plan, make};
use onefold::core::policy::Policy;
use onefold::core::scope::Scope;
use onefold::core::time::Span;
use onefold::store::freezes::FreezeRequest;
use onefold::store::plans::KeepChanges;
use onefold::store::{Places, Statuses, Store};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor, Row};
use tempfile::TempDir;

use super::mutants::Mutant;
use super::shapes::{self, SHAPES};
use super::stage::{WORKERS, clock};
use crate::common::databases::folder;
use crate::common::maker;

pub const FREEZE: &str = "F";
pub const FIRST_PLAN: &str = "PL-1";

/// Whether all tables stand in one file, or the ledgers in one of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    Together,
    Apart,
}

/// Every move of a row, and by whom; and every change of a step.
const WATCHERS: &str = "
    CREATE TABLE IF NOT EXISTS hand (who TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS moved (seq INTEGER PRIMARY KEY, who TEXT, ledger TEXT, id TEXT, was TEXT,
        now TEXT, version TEXT, was_refunded BIGINT, now_refunded BIGINT);
    CREATE TABLE IF NOT EXISTS changed (seq INTEGER PRIMARY KEY, step_key TEXT, was TEXT, now TEXT);
    INSERT INTO hand SELECT 'onefold' WHERE NOT EXISTS (SELECT 1 FROM hand);";

fn watcher(ledger: &str, id: &str) -> String {
    let refunded = if ledger == "payments" { "OLD.refunded_minor, NEW.refunded_minor" } else { "0, 0" };
    format!(
        "CREATE TRIGGER watch_{ledger} AFTER UPDATE ON {ledger} BEGIN
            INSERT INTO moved (who, ledger, id, was, now, version, was_refunded, now_refunded)
            VALUES ((SELECT who FROM hand), '{ledger}', NEW.{id}, OLD.status, NEW.status, NEW.version, {refunded});
         END"
    )
}

/// What a run begins with, for each layout and shape: made once, read by all lanes.
pub struct Templates {
    _folder: TempDir,
    /// Of each layout and shape.
    pub plans: Vec<Plan>,
    files: [Vec<Vec<String>>; 2],
}

impl Templates {
    pub async fn new(mutant: &Mutant) -> Self {
        let folder = folder();
        let mut made: [Vec<Vec<String>>; 2] = Default::default();
        let mut plans = Vec::new();
        for layout in [Layout::Together, Layout::Apart] {
            for shape in 0..SHAPES.len() {
                let files = files(folder.path(), layout, &format!("shape{shape}"));
                plans.push(template(&files, shape, mutant).await);
                made[layout as usize].push(files);
            }
        }
        Self { _folder: folder, plans, files: made }
    }
}

pub struct Ground {
    _folder: TempDir,
    together: Site,
    apart: Site,
}

/// The databases of one layout.
pub struct Site {
    pub layout: Layout,
    files: Vec<File>,
    /// One for each worker, and the director's.
    pub stores: Vec<Store>,
}

struct File {
    connection: AnyConnection,
    tables: Vec<String>,
    /// Of each shape.
    templates: Vec<String>,
    attached: Option<usize>,
}

impl Ground {
    pub async fn new(templates: &Templates, mutant: &Mutant) -> Self {
        let folder = folder();
        let together = Site::new(folder.path(), Layout::Together, templates, mutant).await;
        let apart = Site::new(folder.path(), Layout::Apart, templates, mutant).await;
        Self { _folder: folder, together, apart }
    }

    pub fn site(&mut self, layout: Layout) -> &mut Site {
        match layout {
            Layout::Together => &mut self.together,
            Layout::Apart => &mut self.apart,
        }
    }
}

/// The files of a layout: that of the journal first, that of the ledgers last.
fn files(folder: &Path, layout: Layout, name: &str) -> Vec<String> {
    let parts: &[&str] = if layout == Layout::Together { &["all"] } else { &["journal", "ledgers"] };
    parts.iter().map(|part| folder.join(format!("{name}-{part}.db")).display().to_string()).collect()
}

async fn open(files: &[String], mutant: &Mutant) -> Store {
    let url = |file: &String| format!("sqlite:{file}");
    let ledgers = std::array::from_fn(|_| vec![url(files.last().unwrap())]);
    let places = Places { journal: url(&files[0]), ledgers };
    Store::open(&places, mutant.queries(), Statuses::default(), true).await.unwrap()
}

/// A shape's rows, frozen and planned.
async fn template(files: &[String], shape: usize, mutant: &Mutant) -> Plan {
    let store = open(files, &Mutant::NONE).await;
    store.init().await.unwrap();
    store.import(&shapes::rows(shape), false, |_, _| ()).await.unwrap();
    let request = FreezeRequest {
        freeze_id: FREEZE.to_owned(),
        owner: "op".to_owned(),
        reason: "a run".to_owned(),
        scope: Scope { tenants: ["t".into()].into(), ..Scope::default() },
        effects: vec![Effect::AutoPayment],
        topics: Default::default(),
        mode: FreezeMode::Advisory,
        lease: Span::from_mins(30),
    };
    store.freeze(&request, clock()).await.unwrap();
    let plan = plan(&store, FIRST_PLAN, "op", mutant).await;
    assert!(plan.intents.iter().any(|i| !i.steps.is_empty()), "{}: {plan:?}", SHAPES[shape].0);
    store.close().await;
    plan
}

/// Decides the freeze's scope anew and saves the plan.
pub async fn plan(store: &Store, plan_id: &str, actor: &str, mutant: &Mutant) -> Plan {
    let freeze = store.freeze_by_id(FREEZE).await.unwrap();
    let ledgers = store.read_scope(&freeze.scope).await.unwrap();
    let evidence = store.evidence().await.unwrap();
    let decided = make(&ledgers, &freeze.scope, &Policy::default(), freeze.frozen_at, &evidence).unwrap();
    let decided = mutant.rekeyed(decided, plan_id);
    let plan = decided.into_plan(plan_id.to_owned(), clock(), Some(freeze.freeze_id));
    store.save_plan(&plan, &KeepChanges::default(), maker(actor)).await.unwrap();
    plan
}

impl Site {
    async fn new(folder: &Path, layout: Layout, templates: &Templates, mutant: &Mutant) -> Self {
        let names = files(folder, layout, "run");
        open(&names, mutant).await.init().await.unwrap();
        let mut made = Vec::new();
        for (i, name) in names.iter().enumerate() {
            let mut connection = AnyConnection::connect(&format!("sqlite:{name}")).await.unwrap();
            run(&mut connection, WATCHERS).await;
            if i == 0 {
                run(
                    &mut connection,
                    "CREATE TRIGGER watch_steps AFTER UPDATE ON onefold_steps BEGIN
                        INSERT INTO changed (step_key, was, now) VALUES (NEW.step_key, OLD.state, NEW.state);
                     END",
                )
                .await;
                // Between two runs the journal is set back, which nobody else may.
                for trigger in ["onefold_journal_is_kept", "onefold_heads_are_kept"] {
                    run(&mut connection, &format!("DROP TRIGGER {trigger}")).await;
                }
            }
            if i + 1 == names.len() {
                let ids = [
                    ("orders", "order_id"),
                    ("payments", "payment_id"),
                    ("inventory", "hold_id"),
                    ("messages", "message_id"),
                ];
                for (ledger, id) in ids {
                    run(&mut connection, &watcher(ledger, id)).await;
                }
            }
            let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
            let tables =
                rows(&mut connection, sql).await.into_iter().flatten().filter(|t| t != "hand").collect();
            let templates = templates.files[layout as usize].iter().map(|files| files[i].clone()).collect();
            made.push(File { connection, tables, templates, attached: None });
        }
        let mut stores = Vec::new();
        for _ in 0..=WORKERS {
            stores.push(open(&names, mutant).await);
        }
        Self { layout, files: made, stores }
    }

    /// Sets everything back to a shape's template.
    pub async fn set_back(&mut self, shape: usize) {
        // The runs so far are over: none goes on with a chain that is not there any more.
        for store in &self.stores {
            store.journal().end_run("op", clock()).await.unwrap();
        }
        for file in &mut self.files {
            if file.attached != Some(shape) {
                if file.attached.is_some() {
                    run(&mut file.connection, "DETACH template").await;
                }
                let attach = format!("ATTACH '{}' AS template", file.templates[shape]);
                run(&mut file.connection, &attach).await;
                file.attached = Some(shape);
            }
            let mut sql = "BEGIN IMMEDIATE;".to_owned();
            for table in &file.tables {
                sql += &format!("DELETE FROM main.{table};");
                if !["moved", "changed"].contains(&table.as_str()) {
                    sql += &format!("INSERT INTO main.{table} SELECT * FROM template.{table};");
                }
            }
            run(&mut file.connection, &(sql + "COMMIT;")).await;
        }
    }

    /// Another service writes to the ledgers; how many rows it changed.
    pub async fn others(&mut self, sql: &str) -> usize {
        let connection = &mut self.files.last_mut().unwrap().connection;
        let count = "SELECT COUNT(*) FROM moved";
        let before = rows(connection, count).await;
        let sql = format!(
            "BEGIN IMMEDIATE; UPDATE hand SET who = 'others'; {sql}; UPDATE hand SET who = 'onefold'; COMMIT;"
        );
        run(connection, &sql).await;
        let number = |rows: Vec<Vec<String>>| rows[0][0].parse::<usize>().unwrap();
        number(rows(connection, count).await) - number(before)
    }

    pub async fn in_ledgers(&mut self, sql: &str) -> Vec<Vec<String>> {
        rows(&mut self.files.last_mut().unwrap().connection, sql).await
    }

    pub async fn in_journal(&mut self, sql: &str) -> Vec<Vec<String>> {
        rows(&mut self.files[0].connection, sql).await
    }
}

async fn run(connection: &mut AnyConnection, sql: &str) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await;
    done.unwrap_or_else(|e| panic!("{sql}: {e}"));
}

/// Each row as its columns of text; null is empty.
async fn rows(connection: &mut AnyConnection, sql: &str) -> Vec<Vec<String>> {
    let rows =
        connection.fetch_all(AssertSqlSafe(sql.to_owned())).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    let text = |row: &sqlx::any::AnyRow, i| {
        let number = || row.try_get::<Option<i64>, _>(i).map(|n| n.map_or(String::new(), |n| n.to_string()));
        row.try_get::<Option<String>, _>(i).map(Option::unwrap_or_default).or_else(|_| number()).unwrap()
    };
    rows.iter().map(|row| (0..row.len()).map(|i| text(row, i)).collect()).collect()
}
