//! `onefold settle`

use crate::common::site::Site;
use crate::{doubled, on_each_database};

on_each_database![
    a_person_says_that_a_refund_was_made,
    a_person_says_that_it_was_refused,
    only_what_may_have_left_and_is_open_can_be_settled,
    a_provider_that_answers_itself_is_believed,
];

/// The doubled purchase with a refund whose request is lost in the outbox; the plan and the step.
fn stuck(site: &Site) -> (String, String) {
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    let outbox = "[providers.\"*\"]\nkind = \"outbox\"\n[limits]\nmax_refund_total = [\"CNY:100\"]\n";
    site.configure(outbox);
    site.run(&["apply", &plan, "--yes"]).ends(6);
    site.sql("DELETE FROM onefold_outbox");
    let status = site.json(&["status"]);
    let step = status.pointer("/steps_in_flight/0/step_key").unwrap().as_str().unwrap().to_owned();
    site.run(&["status"]).ends(0).prints(&step[..12]);
    (plan, step)
}

fn a_person_says_that_a_refund_was_made(site: &Site) {
    let (plan, step) = stuck(site);
    let line = ["settle", &step[..12], "--as", "done", "--reference", "re-4711", "--because", "seen there"];
    site.run(&line).ends(0).prints("the refund is done").prints(&format!("$ onefold apply {plan}"));
    assert_eq!(site.payment("P-B"), "REFUNDED");
    assert_eq!(site.column("SELECT refunded_minor FROM payments WHERE payment_id = 'P-B'"), ["1000"]);
    site.run(&["apply", &plan, "--yes"]).ends(0);
    site.run(&["history", "--plan", &plan])
        .ends(0)
        .prints("settled-by-hand")
        .prints("as done, reference re-4711: seen there");
    site.run(&line).fails(2, &["no open step begins with"]);
    let whole = ["settle", &step, "--as", "done", "--reference", "re-4711", "--because", "seen there"];
    site.run(&whole).fails(2, &["is DONE already"]);
}

fn a_person_says_that_it_was_refused(site: &Site) {
    let (plan, step) = stuck(site);
    site.run(&["settle", &step, "--as", "refused", "--because", "they say so"])
        .ends(0)
        .prints("was refused: they say so")
        .prints("$ onefold plan");
    assert_eq!((site.order("B"), site.payment("P-B")), ("REFUNDING".into(), "CAPTURED".into()));
    site.run(&["apply", &plan, "--yes"]).ends(6).prints("REFUSED");
    let again = site.json(&["plan"]);
    assert_eq!(again["intents"][0]["review_reasons"], serde_json::json!(["REFUND_REFUSED"]));
}

fn only_what_may_have_left_and_is_open_can_be_settled(site: &Site) {
    let (_, step) = stuck(site);
    let settle = |line: &[&str]| site.run(&[&["settle"], line].concat());
    settle(&[&step, "--as", "done", "--because", "x"]).fails(2, &["--reference"]);
    settle(&[&step, "--as", "maybe", "--because", "x"]).fails(2, &["possible values: done, refused"]);
    settle(&[&step, "--as", "refused", "--because", " "]).fails(2, &["needs a reason"]);
    settle(&["abc", "--as", "refused", "--because", "x"]).fails(2, &["too short", "onefold status"]);
    settle(&["abcdefabcdef", "--as", "refused", "--because", "x"])
        .fails(2, &["no open step", "onefold status"]);
    assert_eq!(site.payment("P-B"), "REFUNDING");
}

fn a_provider_that_answers_itself_is_believed(site: &Site) {
    let (plan, step) = stuck(site);
    site.sql(
        "INSERT INTO onefold_outbox (request_key, kind, tenant_id, payment_id, provider, amount_minor, currency, reason, \
         requested_at_us, state) SELECT provider_key, 'REFUND', tenant_id, row_id, 'pay', amount_minor, currency, 'x', 1, \
         'TAKEN' FROM onefold_steps WHERE to_status = 'REFUNDED' AND ledger = 'payments'",
    );
    let refused = ["settle", &step, "--as", "refused", "--because", "x"];
    let done = ["settle", &step, "--as", "done", "--reference", "r", "--because", "x"];
    for line in [&refused[..], &done[..]] {
        site.run(line)
            .fails(7, &["that it has taken it and not finished it", &format!("converge --plan {plan}")]);
    }
    site.sql("UPDATE onefold_outbox SET state = 'DONE'");
    site.run(&refused).fails(7, &["the provider says that it is done"]);
    site.run(&done).ends(0);
    assert_eq!(site.payment("P-B"), "REFUNDED");
}
