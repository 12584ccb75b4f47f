//! The triggers come and go.

use super::service::*;
use crate::common::site::{Kind, OWNER, Site};
use crate::on_each_database;

on_each_database![
    freeze_says_what_to_type_where_they_are_missing,
    they_are_shown_to_a_dba_and_work_as_shown,
    they_are_installed_in_the_middle_of_an_incident,
    a_table_that_stays_locked_leaves_nothing_half_installed,
    an_older_version_gives_way,
    off_removes_them_unless_a_freeze_needs_them,
    an_old_sqlite_can_read_and_write_and_is_refused,
    a_freeze_whose_triggers_are_gone_lets_no_plan_be_applied,
];

/// What is there of ours.
fn installed(site: &Site) -> Vec<String> {
    site.column(match site.kind() {
        Kind::Sqlite => "SELECT name FROM sqlite_schema WHERE name LIKE 'onefold_guard%'",
        Kind::Postgres => {
            "SELECT tgname::text FROM pg_trigger WHERE tgname LIKE 'onefold_guard%' \
             UNION ALL SELECT proname::text FROM pg_proc WHERE proname LIKE 'onefold_guard%' \
             UNION ALL SELECT relname::text FROM pg_class WHERE relname LIKE 'onefold_guard%'"
        }
        Kind::Mariadb => {
            "SELECT CAST(trigger_name AS CHAR) FROM information_schema.triggers \
             WHERE trigger_schema = DATABASE() AND trigger_name LIKE 'onefold_guard%' \
             UNION ALL SELECT CAST(routine_name AS CHAR) FROM information_schema.routines WHERE routine_schema = DATABASE() \
             UNION ALL SELECT CAST(table_name AS CHAR) FROM information_schema.views \
             WHERE table_schema = DATABASE() AND table_name LIKE 'onefold_guard%'"
        }
    })
}

const FREEZE: [&str; 6] = ["freeze", "--enforce", "--show", "show", "--reason", "x"];

fn freeze_says_what_to_type_where_they_are_missing(site: &Site) {
    site.run(&["init"]).ends(0);
    site.run(&FREEZE).fails(2, &["not installed", "onefold init --enforce", "--install-now"]);
    assert!(site.run(&["status"]).ends(0).stdout.contains("No freeze is live."));
    site.run(&["init", "--enforce"]).ends(0).prints("are installed");
    let there = installed(site);
    site.run(&["init", "--enforce"]).ends(0).prints("are there already");
    assert_eq!(installed(site), there);
    site.run(&FREEZE).ends(0).prints("enforced: the database refuses it");
}

fn they_are_shown_to_a_dba_and_work_as_shown(site: &Site) {
    let shown = site.run(&["init", "--enforce", "--print"]).ends(0).stdout;
    assert!(
        shown.contains("onefold_guard_orders_update_") && shown.contains("onefold_live_freezes"),
        "{shown}"
    );
    // Its own shell takes it whole; ours takes it in statements.
    let new = if site.kind() == Kind::Sqlite { "?mode=rwc" } else { "" };
    let mut service = Service::of(&format!("{}{new}", site.url));
    let json = site.json(&["init", "--enforce", "--print"]);
    for statement in json["statements"].as_array().unwrap() {
        let statement = statement.as_str().unwrap();
        assert!(shown.contains(statement));
        service.tries(statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
    }
    site.run(&["init", "--enforce"]).ends(0).prints("are there already");
    site.run(&FREEZE).ends(0);
    service.may(&INSIDE.order("O-1", "PENDING_PAYMENT"));
    service.may_not(&set_order("O-1", "TICKETED"));
}

fn they_are_installed_in_the_middle_of_an_incident(site: &Site) {
    site.run(&["init"]).ends(0);
    let mut service = Service::of(&site.url);
    service.may(&INSIDE.order("O-1", "PAID"));
    site.run(&[&FREEZE[..], &["--install-now"]].concat()).ends(0);
    service.may_not(&set_order("O-1", "TICKETED"));
}

fn a_table_that_stays_locked_leaves_nothing_half_installed(site: &Site) {
    site.run(&["init"]).ends(0);
    let mut service = Service::of(&site.url);
    service.may(&INSIDE.order("O-1", "PAID"));
    let begin = if site.kind() == Kind::Sqlite { "BEGIN IMMEDIATE" } else { "BEGIN" };
    service.tries(begin).unwrap();
    // The ledger that comes last.
    service.may(&INSIDE.message("M-1", "mail", "O-1", "QUEUED"));
    let began = std::time::Instant::now();
    site.run(&[&FREEZE[..], &["--install-now"]].concat()).fails(1, &["2 s", "nothing was installed"]);
    assert!(began.elapsed().as_secs() < 9, "{:?}", began.elapsed());
    service.tries("COMMIT").unwrap();
    assert_eq!(installed(site), [""; 0]);
    assert!(site.run(&["status"]).ends(0).stdout.contains("No freeze is live."));
    site.run(&[&FREEZE[..], &["--install-now"]].concat()).ends(0);
    service.may_not(&set_message("M-1", "IN_FLIGHT"));
}

fn an_older_version_gives_way(site: &Site) {
    let mut service = guarded(site);
    let now = installed(site);
    let old = "onefold_guard_orders_insert_00000000";
    site.sql(&match site.kind() {
        Kind::Sqlite => format!("CREATE TRIGGER {old} AFTER INSERT ON orders BEGIN SELECT 1; END"),
        Kind::Postgres => format!(
            "CREATE FUNCTION {old}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
             CREATE TRIGGER {old} AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION {old}()"
        ),
        Kind::Mariadb => format!("CREATE TRIGGER {old} AFTER INSERT ON orders FOR EACH ROW SET @old = 1"),
    });
    assert_ne!(installed(site), now);
    site.run(&["init", "--enforce"]).ends(0);
    let mut left = installed(site);
    left.sort();
    let mut now = now;
    now.sort();
    assert_eq!(left, now);
    service.may(&INSIDE.order("O-1", "PAID"));
}

fn off_removes_them_unless_a_freeze_needs_them(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    let frozen = freeze(site, &["--show", "show"]);
    site.run(&["init", "--enforce=off"]).fails(7, &[&frozen, "thaw"]);
    service.may_not(&set_order("O-1", "TICKETED"));
    thaw(site, &frozen);
    let shown = site.run(&["init", "--enforce=off", "--print"]).ends(0).stdout;
    assert!(shown.contains("DROP TRIGGER onefold_guard_orders_update_"), "{shown}");
    assert_ne!(installed(site), [""; 0]);
    site.run(&["init", "--enforce=off"]).ends(0).prints("are removed from");
    assert_eq!(installed(site), [""; 0]);
    site.run(&["init", "--enforce=off"]).ends(0).prints("There are no triggers");
    site.run(&FREEZE).fails(2, &["not installed"]);
}

/// Services bring their own SQLite, and each of them parses the whole schema before it reads a row.
fn an_old_sqlite_can_read_and_write_and_is_refused(site: &Site) {
    if site.kind() != Kind::Sqlite {
        return;
    }
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    service.may(&INSIDE.order("O-2", "PAID"));
    // Neither a RAISE with a computed text (3.47) nor what came to be in 3.38 and later.
    for sql in site.column("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL") {
        for raise in sql.split("RAISE(").skip(1) {
            let literal = raise
                .strip_prefix("ABORT,")
                .and_then(|text| text.trim_start().strip_prefix('\''))
                .and_then(|text| text.split_once('\''));
            assert!(literal.is_some_and(|(_, after)| after.starts_with(')')), "{sql}");
        }
        for new in ["unixepoch(", "'subsec'", "->>", "IS DISTINCT FROM", " CONCAT("] {
            assert!(!sql.contains(new), "{new} in {sql}");
        }
    }
    let file = site.url.trim_start_matches("sqlite://").trim_start_matches("sqlite:");
    let shell = |sql: &str| std::process::Command::new("sqlite3").args([file, sql]).output();
    if shell("SELECT 1").is_err() {
        return; // There is no other SQLite here.
    }
    let writes = shell(&set_order("O-1", "TICKETED")).unwrap();
    assert!(writes.status.success(), "{writes:?}");
    freeze(site, &["--show", "show"]);
    let reads = shell("SELECT status FROM orders WHERE order_id = 'O-1'").unwrap();
    assert_eq!(String::from_utf8_lossy(&reads.stdout), "TICKETED\n", "{reads:?}");
    let refused = shell(&set_order("O-2", "TICKETED")).unwrap();
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && told.contains("onefold: ticketing is frozen by F-"), "{told}");
    assert_eq!(
        shell("SELECT owner FROM onefold_live_freezes").unwrap().stdout,
        format!("{OWNER}\n").into_bytes()
    );
}

fn a_freeze_whose_triggers_are_gone_lets_no_plan_be_applied(site: &Site) {
    let _service = guarded(site);
    site.import(&super::passes::tripled().ledgers);
    let frozen = freeze(site, &["--show", "show"]);
    let plan = site.plan();
    let trigger = installed(site).into_iter().find(|name| name.contains("orders_update")).unwrap();
    let on = if site.kind() == Kind::Postgres { " ON orders" } else { "" };
    site.sql(&format!("DROP TRIGGER {trigger}{on}"));
    site.run(&["apply", &plan, "--yes"]).fails(7, &[&frozen, "no longer", "--install-now"]);
    site.run(&["freeze", "--renew", &frozen, "--enforce", "--install-now"]).ends(0);
    site.run(&["apply", &plan, "--yes"]).ends(0);
}
