//! Services that go on and on, through freeze, plan, apply and thaw: not one of their forbidden moves
//! gets through, and every report of a capture does.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use super::passes::tripled;
use super::service::*;
use crate::common::site::{Kind, Site};

/// What the services met.
#[derive(Default)]
struct Met {
    /// From when freeze has said that it holds until thaw is asked for.
    frozen: AtomicBool,
    over: AtomicBool,
    refused: AtomicU64,
    passed: AtomicU64,
    /// Forbidden moves that went through while it was frozen.
    leaked: AtomicU64,
    captured: AtomicU64,
    /// Captures that were not let through.
    lost: AtomicU64,
}

impl Met {
    /// Tries a forbidden move and notes what became of it.
    fn forbidden(&self, service: &mut Service, sql: &str) {
        let before = self.frozen.load(SeqCst);
        let done = service.tries(sql);
        let after = self.frozen.load(SeqCst);
        match done {
            Ok(_) if before && after => self.leaked.fetch_add(1, SeqCst),
            Ok(_) => self.passed.fetch_add(1, SeqCst),
            Err(refusal) if refusal.contains("is frozen by") => self.refused.fetch_add(1, SeqCst),
            // Two who lock the same rows: nobody's fault, and nothing was written.
            Err(_) => 0,
        };
    }

    fn report(&self, service: &mut Service, sql: &str) {
        for _ in 0..20 {
            match service.tries(sql) {
                Ok(_) => drop(self.captured.fetch_add(1, SeqCst)),
                Err(clash) if !clash.contains("onefold") => continue,
                Err(_) => drop(self.lost.fetch_add(1, SeqCst)),
            }
            return;
        }
        self.lost.fetch_add(1, SeqCst);
    }
}

/// Buyers whom no plan touches: an order each.
const BUYERS: usize = 40;

fn hammer(on: Kind) {
    let site = Site::new(on);
    let mut service = guarded(&site);
    site.import(&tripled().ledgers);
    for i in 0..BUYERS {
        let order = format!("W-{i}");
        service.may(&INSIDE.order(&order, "PAID").replace("'u'", &format!("'w{i}'")));
        service
            .may(&INSIDE.payment(&format!("C-{i}"), &order, "CAPTURED").replace("'u'", &format!("'w{i}'")));
        service.may(&INSIDE.hold(&format!("K-{i}"), &order, "CONFIRMED").replace("'u'", &format!("'w{i}'")));
    }
    let met = Met::default();
    std::thread::scope(|scope| {
        let met = &met;
        let url = site.url.as_str();
        // New payments, plain and in transactions of two statements.
        for worker in 0..2 {
            scope.spawn(move || {
                let mut service = Service::of(url);
                if worker == 1 && on == Kind::Mariadb {
                    service.tries("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ").unwrap();
                }
                for n in 0.. {
                    if met.over.load(SeqCst) {
                        break;
                    }
                    let i = n % BUYERS;
                    let (user, order) = (format!("'w{i}'"), format!("W-{i}"));
                    let payment = format!("N-{worker}-{n}");
                    let insert = INSIDE.payment(&payment, &order, "INITIATED").replace("'u'", &user);
                    if worker == 0 {
                        met.forbidden(&mut service, &insert);
                    } else {
                        let _ = service.tries("BEGIN");
                        met.forbidden(&mut service, &insert);
                        let _ = service.tries("ROLLBACK");
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
        // Tickets, and their seats.
        scope.spawn(move || {
            let mut service = Service::of(url);
            for n in 0.. {
                if met.over.load(SeqCst) {
                    break;
                }
                let i = n % BUYERS;
                met.forbidden(&mut service, &set_order(&format!("W-{i}"), "TICKETED"));
                let _ = service.tries(&set_order(&format!("W-{i}"), "PAID"));
                met.forbidden(&mut service, &set_hold(&format!("K-{i}"), "RELEASED"));
                let _ = service.tries(&set_hold(&format!("K-{i}"), "CONFIRMED"));
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        // What the provider says.
        scope.spawn(move || {
            let mut service = Service::of(url);
            for n in 0.. {
                if met.over.load(SeqCst) {
                    break;
                }
                let i = n % BUYERS;
                let order = format!("W-{i}");
                let captured = INSIDE.payment(&format!("R-{n}"), &order, "CAPTURED");
                met.report(&mut service, &captured.replace("'u'", &format!("'w{i}'")));
                met.report(&mut service, &set_payment(&format!("R-{n}"), "DISPUTED"));
                met.report(&mut service, &set_payment(&format!("R-{n}"), "CAPTURED"));
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        // A panic here must end the services, too.
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            std::thread::sleep(Duration::from_secs(1));
            let frozen = freeze(&site, &["--show", "show"]);
            met.frozen.store(true, SeqCst);
            let user = ["--user", "u", "--show", "show"];
            let plan = site.id(&[&["plan", "--freeze", &frozen], &user[..]].concat(), "/plan_id");
            site.run(&["apply", &plan, "--yes"]).ends(0);
            std::thread::sleep(Duration::from_secs(3));
            site.run(&["freeze", "--renew", &frozen]).ends(0);
            std::thread::sleep(Duration::from_secs(1));
            met.frozen.store(false, SeqCst);
            thaw(&site, &frozen);
            std::thread::sleep(Duration::from_secs(1));
            [site.order("O-1"), site.order("O-2"), site.order("O-3")]
        }));
        met.over.store(true, SeqCst);
        let orders = played.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert_eq!(orders, ["PAID", "CANCELLED", "CANCELLED"]);
    });
    let count = |of: &AtomicU64| of.load(SeqCst);
    eprintln!(
        "{on:?}: {} refused, {} passed before and after, {} captures",
        count(&met.refused),
        count(&met.passed),
        count(&met.captured)
    );
    assert_eq!(count(&met.leaked), 0, "forbidden moves went through");
    assert_eq!(count(&met.lost), 0, "captures were lost");
    assert!(count(&met.refused) > 100 && count(&met.passed) > 100 && count(&met.captured) > 100);
}

#[test]
fn nothing_gets_through_on_postgres() {
    hammer(Kind::Postgres);
}

#[test]
fn nothing_gets_through_on_mariadb() {
    hammer(Kind::Mariadb);
}
