//! Recorded, advisory, enforced: what each lets happen, and that every report says so.

use super::service::*;
use crate::common::site::Site;
use crate::on_each_database;

on_each_database![
    a_plan_under_a_recorded_freeze_is_not_applied,
    an_advisory_freeze_says_so_everywhere,
    a_recorded_freeze_becomes_enforced,
    an_enforced_freeze_does_not_become_less,
];

const RECORD: [&str; 5] = ["freeze", "--show", "show", "--reason", "x"];

fn a_plan_under_a_recorded_freeze_is_not_applied(site: &Site) {
    site.run(&["init"]).ends(0);
    site.import(&super::passes::tripled().ledgers);
    let frozen = site.id(&RECORD, "/freeze/freeze_id");
    let plan = site.plan();
    let before = site.ledgers();
    site.run(&["apply", &plan, "--yes"]).fails(
        7,
        &[
            &frozen,
            "only recorded",
            &format!("onefold freeze --renew {frozen} --enforce"),
            &format!("onefold freeze --renew {frozen} --advisory"),
        ],
    );
    assert_eq!(site.ledgers(), before);
    site.run(&["freeze", "--renew", &frozen, "--advisory"]).ends(0);
    site.run(&["apply", &plan, "--yes"]).ends(0);
}

fn an_advisory_freeze_says_so_everywhere(site: &Site) {
    site.run(&["init"]).ends(0);
    site.import(&super::passes::tripled().ledgers);
    let says = |line: &[&str]| site.run(line).ends(0).prints("advisory");
    says(&[&RECORD[..], &["--advisory"]].concat()).prints("not enforced");
    says(&["status"]);
    says(&["plan"]);
    let plan = site.plan();
    says(&["apply", &plan, "--yes"]);
    says(&["verify", &plan]);
    says(&["history"]).prints("advisory: x").prints("under a freeze that is advisory");
    for line in [&["plan"][..], &["verify", &plan]] {
        assert_eq!(site.json(line)["freeze_mode"], "advisory");
    }
    assert_eq!(site.json(&["status"])["freezes"][0]["freeze"]["mode"], "advisory");
}

fn a_recorded_freeze_becomes_enforced(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    service.may(&INSIDE.order("O-2", "PAID"));
    let frozen = site.id(&RECORD, "/freeze/freeze_id");
    service.may(&set_order("O-1", "TICKETED"));
    site.run(&["freeze", "--renew", &frozen, "--enforce"])
        .ends(0)
        .prints("enforced: the database refuses it");
    assert!(service.may_not(&set_order("O-2", "TICKETED")).contains(&frozen));
    site.run(&["history"]).ends(0).prints("enforced from now on");
}

fn an_enforced_freeze_does_not_become_less(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    let frozen = freeze(site, &["--show", "show"]);
    site.run(&["freeze", "--renew", &frozen, "--advisory"]).fails(2, &["is enforced", "thaw"]);
    site.run(&["freeze", "--renew", &frozen]).ends(0).prints("enforced");
    service.may_not(&set_order("O-1", "TICKETED"));
    site.run(&["freeze", "--show", "a", "--enforce", "--advisory", "--reason", "x"]).ends(2);
    site.run(&["freeze", "--show", "a", "--install-now", "--reason", "x"]).ends(2);
}
