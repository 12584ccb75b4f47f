//! A drill leaves nothing behind and touches nothing of the user's, however it ends; and it removes nothing but what
//! is proven to be a drill's own.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::book::Book;
use crate::common::site::{Kind, Ran, Site};
use crate::on_each_database;

on_each_database![
    the_real_tables_are_as_they_were,
    a_drill_that_is_interrupted_removes_its_scratch,
    a_drill_that_fails_removes_its_scratch,
    what_a_killed_drill_left_is_removed_where_its_marker_proves_it,
];

/// The names of the scratches there are: on MariaDB also those of other tests.
fn scratches(site: &Site) -> Vec<String> {
    match site.kind() {
        Kind::Sqlite => {
            let entries = std::fs::read_dir(file(site).parent().unwrap()).unwrap();
            let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name.starts_with("onefold_drill_")).collect()
        }
        Kind::Postgres => site.column("SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'onefold_drill_%'"),
        Kind::Mariadb => site.column(
            "SELECT CAST(schema_name AS CHAR) FROM information_schema.schemata WHERE schema_name LIKE 'onefold_drill_%'",
        ),
    }
}

fn file(site: &Site) -> PathBuf {
    Path::new(site.url.trim_start_matches("sqlite:")).to_owned()
}

/// Runs a statement in a scratch; whether it could be run. `{}` stands before each table.
fn may(site: &Site, scratch: &str, statement: &str) -> bool {
    match site.kind() {
        Kind::Sqlite => {
            let inner = file(site).with_file_name(scratch).join("drill.db");
            // An attached file that is not there would be made.
            inner.exists()
                && crate::common::databases::aside(async || {
                    use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor};
                    sqlx::any::install_default_drivers();
                    let url = format!("sqlite:{}", inner.display());
                    let Ok(mut connection) = AnyConnection::connect(&url).await else { return false };
                    connection.execute(AssertSqlSafe(statement.replace("{}", "main."))).await.is_ok()
                })
        }
        Kind::Postgres | Kind::Mariadb => site.may(&statement.replace("{}", &format!("{scratch}."))),
    }
}

/// Whether a scratch is there whose marker names this operator.
fn is_of(site: &Site, scratch: &str, made_by: &str) -> bool {
    // A second marker of its name is refused, if there is a first.
    let twice =
        format!("INSERT INTO {{}}onefold_drill SELECT * FROM {{}}onefold_drill WHERE made_by = '{made_by}'");
    let is_there = || may(site, scratch, "SELECT 1 FROM {}onefold_drill");
    // Another drill may be removing what an earlier one left.
    is_there() && !may(site, scratch, &twice) && is_there()
}

/// Starts a drill that would never end, and gives it with its scratch once that is there.
fn endless(site: &Site) -> (std::process::Child, String) {
    let me = format!("{}@drill", uuid::Uuid::new_v4().simple());
    let mut process = site.process(&["guard", "drill", "--rounds", "100000000"]);
    process.env("ONEFOLD_OWNER", &me).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = process.spawn().unwrap();
    let began = Instant::now();
    let ours = || scratches(site).into_iter().find(|name| is_of(site, name, &me));
    let ours = std::iter::repeat_with(|| {
        assert!(began.elapsed() < Duration::from_secs(60), "no scratch came to be");
        std::thread::sleep(Duration::from_millis(10));
        ours()
    });
    let ours = ours.flatten().next().unwrap();
    (child, ours)
}

fn the_real_tables_are_as_they_were(site: &Site) {
    let mut book = Book::new();
    book.bought("A", 0);
    site.import(&book.ledgers);
    site.run(&["guard", "install"]).ends(0);
    let before = (site.ledgers(), site.column("SELECT COUNT(*) FROM onefold_idempotency"));
    let drill = site.json(&["guard", "drill", "--rounds", "3"]);
    assert_eq!((site.ledgers(), site.column("SELECT COUNT(*) FROM onefold_idempotency")), before);
    let name = drill["scratch"]["name"].as_str().unwrap();
    assert!(!scratches(site).iter().any(|there| there == name), "{name}");
}

fn a_drill_that_is_interrupted_removes_its_scratch(site: &Site) {
    site.run(&["init"]).ends(0);
    for signal in [Signal::INT, Signal::TERM] {
        let (child, scratch) = endless(site);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(&format!("error: in {scratch}, which is removed: interrupted")), "{told}");
        assert!(!scratches(site).contains(&scratch));
    }
}

fn a_drill_that_fails_removes_its_scratch(site: &Site) {
    site.run(&["init"]).ends(0);
    let (child, scratch) = endless(site);
    let began = Instant::now();
    // Somebody takes a table away.
    while !may(site, &scratch, "DROP TABLE {}orders") {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("error: ") && told.contains("orders"), "{told}");
    assert!(!scratches(site).contains(&scratch));
}

fn what_a_killed_drill_left_is_removed_where_its_marker_proves_it(site: &Site) {
    site.run(&["init"]).ends(0);
    let (mut child, scratch) = endless(site);
    child.kill().unwrap();
    child.wait().unwrap();
    // As long as it says that it is at work, it is left.
    let drill = site.json(&["guard", "drill"]);
    let fate = |drill: &serde_json::Value| {
        let all = drill["leftovers"].as_array().unwrap();
        all.iter().find(|l| l["name"] == *scratch).map(|l| l["fate"].as_str().unwrap().to_owned())
    };
    assert_eq!(fate(&drill).as_deref(), Some("in_use"), "{drill:#}");
    // One whose marker is another's is left, too.
    assert!(may(
        site,
        &scratch,
        "UPDATE {}onefold_drill SET lease_until_us = 1, name = 'onefold_drill_0123456789ab'"
    ));
    assert_eq!(fate(&site.json(&["guard", "drill"])).as_deref(), Some("kept"));
    site.run(&["guard", "drill"])
        .ends(0)
        .warns(&format!("{scratch} is named like a drill's own, and is left alone"));
    assert!(scratches(site).contains(&scratch));
    assert!(may(site, &scratch, &format!("UPDATE {{}}onefold_drill SET name = '{scratch}'")));
    // What somebody has put there, or built upon it, is not removed with it.
    let guest = match site.kind() {
        Kind::Sqlite => Some(file(site).with_file_name(&scratch).join("notes.txt")),
        _ => None,
    };
    if let Some(guest) = &guest {
        std::fs::write(guest, "mine").unwrap();
    }
    if site.kind() == Kind::Postgres {
        site.sql(&format!("CREATE VIEW leans AS SELECT * FROM {scratch}.orders"));
    }
    if site.kind() != Kind::Mariadb {
        assert_eq!(fate(&site.json(&["guard", "drill"])).as_deref(), Some("kept"));
        assert!(may(site, &scratch, "SELECT * FROM {}orders"), "all of it is left");
    }
    if let Some(guest) = &guest {
        assert_eq!(std::fs::read_to_string(guest).unwrap(), "mine");
        std::fs::remove_file(guest).unwrap();
    }
    if site.kind() == Kind::Postgres {
        site.sql("DROP VIEW leans");
    }
    if site.kind() != Kind::Sqlite {
        site.sql(&format!("CREATE TABLE {scratch}.guest (id BIGINT)"));
        assert_eq!(fate(&site.json(&["guard", "drill"])).as_deref(), Some("kept"));
        site.sql(&format!("DROP TABLE {scratch}.guest"));
    }
    // On MariaDB the drill of another test may be faster.
    let removed: Ran = site.run(&["guard", "drill"]).ends(0);
    if site.kind() != Kind::Mariadb {
        removed.warns(&format!("{scratch} was left by a drill that was killed, and is removed"));
    }
    assert!(!scratches(site).contains(&scratch));
}

mod without_the_right_to_make_one {
    use super::*;

    /// The same database as another user.
    fn as_user(site: &Site, user: &str) -> Ran {
        let (scheme, rest) = site.url.split_once("://").unwrap();
        let host = rest.split_once('@').unwrap().1;
        let url = format!("{scheme}://{user}:pw@{host}");
        site.run(&["guard", "drill", "--database", &url])
    }

    fn user() -> String {
        format!("drill_{}", &uuid::Uuid::new_v4().simple().to_string()[..10])
    }

    #[test]
    fn postgres() {
        let (site, user) = (Site::new(Kind::Postgres), user());
        site.run(&["init"]).ends(0);
        site.sql(&format!("CREATE USER {user} PASSWORD 'pw'"));
        let refused = as_user(&site, &user);
        site.sql(&format!("DROP USER {user}"));
        refused.fails(
            1,
            &["needs a scratch beside the orders", "GRANT CREATE ON DATABASE", &format!("TO {user}")],
        );
    }

    #[test]
    fn mariadb() {
        let (site, user) = (Site::new(Kind::Mariadb), user());
        site.run(&["init"]).ends(0);
        site.sql(&format!("CREATE USER {user}@'%' IDENTIFIED BY 'pw'"));
        let database = site.column("SELECT CAST(DATABASE() AS CHAR)").concat();
        site.sql(&format!("GRANT SELECT ON {database}.* TO {user}@'%'"));
        let refused = as_user(&site, &user);
        let grant = "GRANT ALL PRIVILEGES ON `onefold\\_drill\\_%`.* TO";
        site.sql(&format!("{grant} {user}@'%'"));
        let granted = as_user(&site, &user);
        site.sql(&format!("DROP USER {user}@'%'"));
        refused.fails(1, &["needs a scratch beside the orders", grant, &user]);
        granted.ends(0);
    }

    #[test]
    fn sqlite() {
        use std::os::unix::fs::PermissionsExt;
        let site = Site::new(Kind::Sqlite);
        site.run(&["init"]).ends(0);
        // Whoever may write everywhere is not stopped by a folder: a file of the scratch's name is no folder, either.
        let folder = file(&site).parent().unwrap().to_owned();
        std::fs::write(folder.join("onefold_drill_0123456789ab"), "mine").unwrap();
        std::fs::create_dir(folder.join("onefold_drill_0123456789ac")).unwrap();
        std::fs::write(folder.join("onefold_drill_0123456789ac/notes"), "mine").unwrap();
        std::fs::set_permissions(folder.join("onefold_drill_0123456789ac"), PermissionsExt::from_mode(0o755))
            .unwrap();
        site.run(&["guard", "drill"]).ends(0).warns("onefold_drill_0123456789ac is named like a drill's own");
        assert!(folder.join("onefold_drill_0123456789ab").exists());
        assert!(folder.join("onefold_drill_0123456789ac/notes").exists());
    }
}
