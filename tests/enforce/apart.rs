//! Ledgers in databases of their own, and tables of a site's own.

use super::service::*;
use crate::common::site::{Kind, OWNER, Site, program, run};

/// A site whose orders, payments, stock and messages live apart.
struct Apart {
    orders: Site,
    payments: Site,
    journal: Site,
}

impl Apart {
    fn new() -> Self {
        let apart = Self {
            orders: Site::new(Kind::Postgres),
            payments: Site::new(Kind::Mariadb),
            journal: Site::new(Kind::Sqlite),
        };
        let config = format!(
            "journal = \"{}\"\n[ledgers.orders]\nurls = [\"{}\"]\n[ledgers.payments]\nurls = [\"{}\"]\n\
             [ledgers.inventory]\nurls = [\"{1}\"]\n[ledgers.messages]\nurls = [\"{2}\"]\n",
            apart.journal.url, apart.orders.url, apart.payments.url
        );
        std::fs::write(apart.journal.folder().join("onefold.toml"), config).unwrap();
        apart
    }

    fn run(&self, line: &[&str]) -> crate::common::site::Ran {
        let mut command = program();
        command.current_dir(self.journal.folder()).env("ONEFOLD_OWNER", OWNER).args(line);
        run(&mut command, line)
    }
}

#[test]
fn each_database_holds_its_own_copy() {
    let site = Apart::new();
    site.run(&["init", "--enforce"]).ends(0);
    let (mut orders, mut payments) = (Service::of(&site.orders.url), Service::of(&site.payments.url));
    orders.may(&INSIDE.order("O-1", "PENDING_PAYMENT"));
    orders.may(&INSIDE.hold("H-1", "O-1", "HELD"));
    payments.may(&INSIDE.message("M-1", "mail", "O-1", "QUEUED"));
    let frozen = site.run(&["freeze", "--enforce", "--show", "show", "--reason", "x"]).ends(0);
    frozen.prints("since its payments are in another database");
    // Where payments live elsewhere PAID passes: the capture is not to be lost.
    orders.may(&set_order("O-1", "PAID"));
    orders.may_not(&set_order("O-1", "TICKETED"));
    orders.may_not(&set_hold("H-1", "RELEASED"));
    payments.may_not(&INSIDE.payment("P-1", "O-1", "INITIATED"));
    payments.may(&INSIDE.payment("P-2", "O-1", "CAPTURED"));
    payments.may_not(&set_message("M-1", "IN_FLIGHT"));
    let freeze = site.orders.column("SELECT freeze_id FROM onefold_live_freezes").concat();
    assert_eq!(
        site.payments.column("SELECT freeze_id FROM onefold_live_freezes"),
        std::slice::from_ref(&freeze)
    );
    site.run(&["thaw", &freeze, "--force", "--reason", "over"]).ends(0);
    orders.may(&set_order("O-1", "TICKETED"));
    payments.may(&set_message("M-1", "IN_FLIGHT"));
}

#[test]
fn a_freeze_is_copied_everywhere_or_nowhere() {
    let site = Apart::new();
    site.run(&["init", "--enforce"]).ends(0);
    let mut orders = Service::of(&site.orders.url);
    orders.may(&INSIDE.order("O-1", "PAID"));
    site.payments.sql("ALTER TABLE onefold_frozen RENAME TO lost");
    let ran = site.run(&["freeze", "--enforce", "--show", "show", "--reason", "x"]);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(site.orders.column("SELECT freeze_id FROM onefold_live_freezes").is_empty());
    orders.may(&set_order("O-1", "TICKETED"));
    assert!(site.run(&["status"]).ends(0).stdout.contains("No freeze is live."));
    site.payments.sql("ALTER TABLE lost RENAME TO onefold_frozen");
    site.run(&["freeze", "--enforce", "--show", "show", "--reason", "x"]).ends(0);
}

#[test]
fn triggers_come_to_every_database_or_to_none() {
    let site = Apart::new();
    site.run(&["init"]).ends(0);
    let mut payments = Service::of(&site.payments.url);
    payments.tries("BEGIN").unwrap();
    payments.may(&INSIDE.payment("P-1", "null", "INITIATED"));
    let line = ["freeze", "--enforce", "--install-now", "--show", "show", "--reason", "x"];
    site.run(&line).fails(1, &["nothing was installed"]);
    let of_orders = "SELECT tgname::text FROM pg_trigger WHERE tgname LIKE 'onefold_guard%'";
    assert_eq!(site.orders.column(of_orders), [""; 0]);
    payments.tries("COMMIT").unwrap();
    site.run(&line).ends(0);
    assert_ne!(site.orders.column(of_orders), [""; 0]);
}

#[test]
fn tables_of_a_sites_own_need_triggers_of_its_own() {
    for on in [Kind::Sqlite, Kind::Postgres, Kind::Mariadb] {
        let site = Site::new(on);
        site.run(&["init"]).ends(0);
        site.sql(
            "CREATE TABLE bookings (code VARCHAR(40) PRIMARY KEY, buyer VARCHAR(40), gig VARCHAR(40), state INT)",
        );
        let queries = site.path("queries");
        std::fs::create_dir_all(queries.join("ledgers")).unwrap();
        let ledger = "-- Bookings as orders.\nSELECT code AS order_id, 't' AS tenant_id, buyer AS user_id, gig AS show_id, \
             NULL AS session_id, NULL AS idempotency_key, NULL AS item, 1 AS quantity, 1000 AS amount_minor, \
             'CNY' AS currency, CASE state WHEN 3 THEN 'TICKETED' ELSE 'PAID' END AS status, NULL AS source, \
             NULL AS trace_id, 0 AS created_at_us, '1' AS version\nFROM bookings\n";
        std::fs::write(queries.join("ledgers/orders.sql"), ledger).unwrap();
        let queries_flag = queries.to_str().unwrap();
        let enforce = ["--queries", queries_flag, "init", "--enforce"];
        let dialect = match on {
            Kind::Sqlite => "sqlite",
            Kind::Postgres => "postgres",
            Kind::Mariadb => "mysql",
        };
        let file = format!("enforce/{dialect}/orders.sql");
        site.run(&enforce).fails(2, &["orders", &file, "onefold queries export"]);
        site.run(&["--queries", queries_flag, "freeze", "--enforce", "--show", "gig", "--reason", "x"])
            .fails(2, &[&file]);

        let arguments = "'ticketing', 'orders', 't', NEW.code, NEW.code, NEW.buyer, NEW.gig, NULL, NULL, 0";
        let trigger = match on {
            Kind::Sqlite => format!(
                "-- Bookings.\nCREATE TRIGGER onefold_guard_bookings_{{version}} AFTER UPDATE ON bookings\n\
                 WHEN NEW.state = 3 AND OLD.state <> 3\nBEGIN\n    INSERT INTO onefold_guard_check_{{version}} VALUES ({arguments});\nEND\n"
            ),
            Kind::Postgres => format!(
                "-- Bookings.\nCREATE FUNCTION onefold_guard_bookings_{{version}}() RETURNS trigger LANGUAGE plpgsql AS $$\nBEGIN\n    \
                 PERFORM onefold_guard_check_{{version}}({arguments});\n    RETURN NULL;\nEND\n$$\n----\n\
                 CREATE TRIGGER onefold_guard_bookings_{{version}} AFTER UPDATE ON bookings FOR EACH ROW\n\
                 WHEN (NEW.state = 3 AND OLD.state <> 3) EXECUTE FUNCTION onefold_guard_bookings_{{version}}()\n"
            ),
            Kind::Mariadb => format!(
                "-- Bookings.\nCREATE TRIGGER onefold_guard_bookings_{{version}} AFTER UPDATE ON bookings FOR EACH ROW\nBEGIN\n    \
                 IF NEW.state = 3 AND OLD.state <> 3 THEN\n        CALL onefold_guard_check_{{version}}({arguments});\n    END IF;\nEND\n"
            ),
        };
        std::fs::create_dir_all(queries.join(format!("enforce/{dialect}"))).unwrap();
        std::fs::write(queries.join(&file), trigger).unwrap();
        site.run(&enforce).ends(0);
        let mut service = Service::of(&site.url);
        service.may("INSERT INTO bookings VALUES ('B-1', 'u', 'gig', 2), ('B-2', 'u', 'free', 2)");
        site.run(&["--queries", queries_flag, "freeze", "--enforce", "--show", "gig", "--reason", "x"])
            .ends(0);
        service.may_not("UPDATE bookings SET state = 3 WHERE code = 'B-1'");
        service.may("UPDATE bookings SET state = 3 WHERE code = 'B-2'");
        // A hold takes the place of its booking.
        service.may(&OUTSIDE.hold("H-1", "B-1", "HELD"));
        service.may_not(&set_hold("H-1", "RELEASED"));
    }
}
