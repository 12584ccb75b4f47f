//! What services paste: the SQL runs, also where two race for a key; Java compiles.

use std::collections::BTreeMap;
use std::process::Command;

use onefold::core::retention::key_sha256;
use onefold::store::sql::{Statement, Value as Bound, Values, parameters, statements};
use onefold::store::{Dialect, Queries};
use serde_json::Value;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor, Row};

use crate::common::databases::wait;
use crate::common::site::{Kind, Site};
use crate::on_each_database;

on_each_database![
    the_sql_runs_as_it_is_printed_and_of_two_who_race_one_has_the_key,
    a_key_that_is_archived_while_it_is_begun_is_seen_by_the_printed_look,
    the_sql_of_every_language_is_understood,
];

const LANGUAGES: [&str; 3] = ["sql", "java", "go"];

fn dialect(site: &Site) -> Dialect {
    Dialect::of_url(&site.url).unwrap()
}

fn ready(site: &Site) {
    site.run(&["init"]).ends(0);
    site.run(&["guard", "install"]).ends(0);
    site.run(&["guard", "install", "--ledger", "messages"]).ends(0);
}

fn snippets(site: &Site, language: &str) -> Value {
    site.json(&["guard", "snippets", "--for", language])
}

/// The statements as they stand in the text, by the word that heads each.
fn printed(site: &Site) -> BTreeMap<String, String> {
    let text = site.run(&["guard", "snippets", "--for", "sql"]).ends(0).stdout;
    let mut found = BTreeMap::new();
    for statement in statements(&text) {
        let head = statement.lines().rev().find_map(|line| {
            line.strip_prefix("-- ").filter(|l| {
                l.starts_with(|c: char| c.is_ascii_digit()) && l.contains(". ") || l.starts_with("4b. ")
            })
        });
        let name = head.unwrap().split_once(". ").unwrap().1.split([',', ' ']).next().unwrap().to_owned();
        found.insert(name, statement.to_owned());
    }
    found
}

/// A service that does what the text says.
struct Service {
    connection: AnyConnection,
    dialect: Dialect,
    statements: BTreeMap<String, String>,
    owner: &'static str,
}

impl Service {
    async fn new(site: &Site, owner: &'static str) -> Self {
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(&site.url).await.unwrap();
        if site.kind() == Kind::Sqlite {
            connection.execute("PRAGMA busy_timeout = 10000").await.unwrap();
        }
        Self { connection, dialect: dialect(site), statements: printed(site), owner }
    }

    /// A statement of the text, with what is bound in the order in which it names that.
    fn statement(
        &self,
        name: &str,
        state: &str,
        (version, token): (i64, i64),
    ) -> sqlx::query::Query<'static, sqlx::Any, sqlx::any::AnyArguments> {
        let all: [(&'static str, Bound); 28] = [
            ("tenant_id", "t".into()),
            ("idempotency_key", "k".into()),
            ("digest", "d".into()),
            ("digest_parts", "[]".into()),
            ("owner", self.owner.into()),
            ("lease_us", 1_000.into()),
            ("keep_for_us", 1.into()),
            ("version", version.into()),
            ("token", token.into()),
            ("may_have_run", 0.into()),
            ("seen_state", "PROCESSING".into()),
            ("state", state.into()),
            ("note", Bound::Text(None)),
            ("exit_code", Bound::Int(None)),
            ("result_ref", self.owner.into()),
            ("result", "{}".into()),
            ("order_id", self.owner.into()),
            ("user_id", "u".into()),
            ("show_id", "s".into()),
            ("item", "i".into()),
            ("quantity", 1.into()),
            ("amount_minor", 1.into()),
            ("currency", "CNY".into()),
            ("consumer", "c".into()),
            ("message_key", "m".into()),
            ("key_sha256", key_sha256(&"t".into(), &"k".into()).into()),
            ("ledger", "orders".into()),
            ("row_id", self.owner.into()),
        ];
        let all = BTreeMap::from(all);
        let text = &self.statements[name];
        let values = all.iter().fold(Values::new(), |values, (name, value)| values.bind(name, value.clone()));
        let sql = Statement::new(text, &[], &values, self.dialect).unwrap().sql;
        parameters(text).into_iter().fold(sqlx::query(AssertSqlSafe(sql)), |query, name| match &all[name] {
            Bound::Text(text) => query.bind(text.clone()),
            Bound::Int(int) => query.bind(*int),
            Bound::List(_) | Bound::Rows(_) => unreachable!(),
        })
    }

    /// Runs a statement of the text: how many rows; `None` where its row is there already.
    async fn run(&mut self, name: &str, state: &str, hold: (i64, i64)) -> Option<u64> {
        match self.statement(name, state, hold).execute(&mut self.connection).await {
            Ok(done) => Some(done.rows_affected()),
            Err(sqlx::Error::Database(e)) if e.is_unique_violation() => None,
            Err(e) => panic!("{name}: {e}"),
        }
    }

    async fn plain(&mut self, sql: &'static str) {
        let sql = match (sql, self.dialect) {
            ("BEGIN", Dialect::Sqlite) => "BEGIN IMMEDIATE",
            (sql, _) => sql,
        };
        self.connection.execute(sql).await.unwrap();
    }
}

fn the_sql_runs_as_it_is_printed_and_of_two_who_race_one_has_the_key(site: &Site) {
    ready(site);
    wait(async {
        let (mut a, mut b) = (Service::new(site, "a").await, Service::new(site, "b").await);
        assert_eq!(
            a.statements.keys().map(String::as_str).collect::<Vec<_>>(),
            [
                "archived", "begin", "effect", "finish", "inbox", "look", "name", "renew", "seen", "start",
                "take"
            ]
        );
        // The two begin at once: one has it.
        let race = async |s: &mut Service| {
            s.plain("BEGIN").await;
            let began = s.run("begin", "", (0, 0)).await;
            s.plain(if began.is_some() { "COMMIT" } else { "ROLLBACK" }).await;
            began
        };
        let (first, second) = tokio::join!(race(&mut a), race(&mut b));
        assert!(matches!((first, second), (Some(1), None) | (None, Some(1))), "{first:?} {second:?}");
        let (owner, other) = if first.is_some() { (&mut a, &mut b) } else { (&mut b, &mut a) };
        // The owner stalls beyond its lease, which is a millisecond: the other takes the key, and by version alone.
        while other.run("take", "PROCESSING", (1, 1)).await != Some(1) {}
        assert_eq!(owner.run("take", "PROCESSING", (1, 1)).await, Some(0));
        assert_eq!(other.run("renew", "", (2, 2)).await, Some(1));
        // It wakes: its order is undone with its end.
        assert_eq!(owner.run("renew", "", (1, 1)).await, Some(0));
        owner.plain("BEGIN").await;
        assert_eq!(owner.run("effect", "", (1, 1)).await, Some(1));
        assert_eq!(owner.run("finish", "SUCCEEDED", (1, 1)).await, Some(0));
        owner.plain("ROLLBACK").await;
        other.plain("BEGIN").await;
        assert_eq!(other.run("effect", "", (2, 2)).await, Some(1));
        assert_eq!(other.run("name", "", (2, 2)).await, Some(1));
        assert_eq!(other.run("finish", "SUCCEEDED", (2, 2)).await, Some(1));
        other.plain("COMMIT").await;
        assert_eq!(other.run("seen", "", (0, 0)).await, Some(1));
        let named =
            sqlx::query("SELECT row_id FROM onefold_idempotency_names").fetch_one(&mut other.connection);
        assert_eq!(named.await.unwrap().get::<String, _>("row_id"), other.owner);
        let row = other.statement("look", "", (0, 0)).fetch_one(&mut owner.connection).await.unwrap();
        assert_eq!(row.get::<String, _>("state"), "SUCCEEDED");
        assert_eq!(row.get::<String, _>("result_ref"), other.owner);
        assert_eq!(row.get::<i64, _>("token"), 2);
        // An owner of before completes nothing, and what has ended does not begin again.
        assert_eq!(owner.run("finish", "FAILED", (1, 1)).await, Some(0));
        assert_eq!(other.run("start", "", (3, 2)).await, Some(0));
        let rows = sqlx::query("SELECT order_id FROM orders").fetch_all(&mut other.connection).await.unwrap();
        let orders: Vec<String> = rows.iter().map(|row| row.get("order_id")).collect();
        assert_eq!(orders, [other.owner]);
        // Of two deliveries of a message one does the work.
        let consume = async |s: &mut Service| {
            s.plain("BEGIN").await;
            let first = s.run("inbox", "", (0, 0)).await;
            s.plain(if first.is_some() { "COMMIT" } else { "ROLLBACK" }).await;
            first
        };
        let (first, second) = tokio::join!(consume(owner), consume(other));
        assert!(matches!((first, second), (Some(1), None) | (None, Some(1))), "{first:?} {second:?}");
    });
}

fn a_key_that_is_archived_while_it_is_begun_is_seen_by_the_printed_look(site: &Site) {
    ready(site);
    wait(async {
        let (mut a, mut b) = (Service::new(site, "a").await, Service::new(site, "b").await);
        for round in 0..5 {
            assert_eq!(a.run("begin", "", (0, 0)).await, Some(1));
            assert_eq!(a.run("finish", "SUCCEEDED", (1, 1)).await, Some(1));
            // As `guard gc` does: out of the table and into the archive, in one transaction.
            b.plain("BEGIN").await;
            b.plain("DELETE FROM onefold_idempotency").await;
            let archive = format!(
                "INSERT INTO onefold_idempotency_archive (key_sha256, digest, state, result_ref, first_seen_us,
                 last_seen_us, archived_at_us) VALUES ('{}', 'd', 'SUCCEEDED', 'a', 1, 1, 1)",
                key_sha256(&"t".into(), &"k".into())
            );
            b.connection.execute(AssertSqlSafe(archive)).await.unwrap();
            let begin = async {
                a.plain("BEGIN").await;
                let began = a.run("begin", "", (0, 0)).await;
                // Refused is one who was too early to wait: it looks, and comes again.
                let seen = match began {
                    Some(_) => {
                        let archived = a.statement("archived", "", (0, 0));
                        archived.fetch_optional(&mut a.connection).await.unwrap()
                    }
                    None => None,
                };
                a.plain("ROLLBACK").await;
                (began, seen.map(|row| row.get::<String, _>("result_ref")))
            };
            let (began, ()) = tokio::join!(begin, b.plain("COMMIT"));
            assert_eq!(began, (Some(1), Some("a".to_owned())), "round {round}");
            b.plain("DELETE FROM onefold_idempotency_archive").await;
        }
    });
}

fn the_sql_of_every_language_is_understood(site: &Site) {
    ready(site);
    wait(async {
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(&site.url).await.unwrap();
        for language in LANGUAGES {
            let snippets = snippets(site, language);
            let text = snippets["text"].as_str().unwrap();
            assert!(!text.contains("{{"), "{text}");
            for (name, statement) in snippets["statements"].as_object().unwrap() {
                let sql = statement["sql"].as_str().unwrap();
                let parameters = statement["parameters"].as_array().unwrap();
                let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
                // A class has no use for the order of its user, nor for what leaves the database.
                if language == "sql" || !["order", "seen", "start"].contains(&name.as_str()) {
                    assert!(flat(text).contains(&flat(sql)), "{language} has no {name}");
                }
                let sql = match language {
                    "sql" => {
                        let values = parameters.iter().fold(Values::new(), |values, name| {
                            values.bind(name.as_str().unwrap().to_owned().leak(), "x")
                        });
                        Statement::new(sql, &[], &values, dialect(site)).unwrap().sql
                    }
                    // PostgreSQL's own wire knows no question marks: the JDBC driver numbers them.
                    "java" if site.kind() == Kind::Postgres => {
                        let mut parts = sql.split('?');
                        let first = parts.next().unwrap().to_owned();
                        parts.enumerate().fold(first, |sql, (at, part)| format!("{sql}${}{part}", at + 1))
                    }
                    _ => sql.to_owned(),
                };
                let count = sql.matches(if sql.contains("$1") { '$' } else { '?' }).count();
                assert_eq!(count, parameters.len(), "{language} {name}: {sql}");
                use sqlx::SqlSafeStr;
                connection
                    .prepare(AssertSqlSafe(sql.clone()).into_sql_str())
                    .await
                    .unwrap_or_else(|e| panic!("{language} {name}: {e}\n{sql}"));
            }
        }
    });
}

#[test]
fn what_the_drill_runs_is_what_is_printed() {
    let site = Site::new(Kind::Sqlite);
    let snippets = snippets(&site, "sql");
    let queries = Queries::default();
    for (name, file) in [
        ("begin", "insert"),
        ("archived", "archived"),
        ("name", "name"),
        ("look", "by_key"),
        ("finish", "finish"),
        ("take", "take"),
    ] {
        let text = queries.find(&format!("idempotency/{file}")).unwrap();
        let parameters = onefold::store::sql::parameters(text);
        assert_eq!(snippets["statements"][name]["parameters"], serde_json::json!(parameters), "{name}");
    }
}

#[test]
fn the_dialect_may_be_named() {
    let site = Site::new(Kind::Sqlite);
    let line = |dialect| ["guard", "snippets", "--for", "go", "--dialect", dialect];
    site.run(&line("postgres")).ends(0).prints("// PostgreSQL.").prints("VALUES ($1, $2");
    site.run(&line("mariadb"))
        .ends(0)
        .prints("// MySQL and MariaDB.")
        .prints("VALUES (?, ?")
        .prints("\tbeginSQL = `");
    site.run(&["guard", "snippets", "--for", "go"]).ends(0).prints("// SQLite.");
    site.run(&line("oracle")).fails(2, &["invalid value"]);
}

#[test]
fn java_compiles() {
    if Command::new("javac").arg("-version").output().is_err() {
        return;
    }
    let site = Site::new(Kind::Sqlite);
    for dialect in ["sqlite", "postgres", "mysql"] {
        let text = site.run(&["guard", "snippets", "--for", "java", "--dialect", dialect]).ends(0).stdout;
        let folder = site.folder().join(dialect);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("OnefoldGuard.java"), text).unwrap();
        let ran = Command::new("javac")
            .args(["-Xlint:all", "-Werror", "OnefoldGuard.java"])
            .current_dir(&folder)
            .output();
        let ran = ran.unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
    // It calls an archived key what we call it.
    let folder = site.folder().join("sqlite");
    let check = r#"public class Check {
        public static void main(String[] args) throws Exception {
            var method = OnefoldGuard.class.getDeclaredMethod("keySha256", String.class, String.class);
            method.setAccessible(true);
            System.out.print(method.invoke(null, "t\u00e9nant", "k/1"));
        }
    }"#;
    std::fs::write(folder.join("Check.java"), check).unwrap();
    let java = |program: &str, argument: &str| {
        let ran = Command::new(program).args(["-cp", ".", argument]).current_dir(&folder).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    java("javac", "Check.java");
    assert_eq!(java("java", "Check"), key_sha256(&"t\u{e9}nant".into(), &"k/1".into()));
}

#[test]
fn go_is_as_gofmt_writes_it() {
    if Command::new("gofmt").arg("-h").output().is_err() {
        return;
    }
    let site = Site::new(Kind::Sqlite);
    let text = site.run(&["guard", "snippets", "--for", "go"]).ends(0).stdout;
    let file = site.folder().join("guard.go");
    std::fs::write(&file, &text).unwrap();
    let ran = Command::new("gofmt").arg(&file).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), text);
}
