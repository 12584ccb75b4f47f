//! `onefold approve`, and `apply` where it needs a second person's word.

use std::time::Duration;

use onefold::core::approval::{Approval, ApprovalRule, Person};
use onefold::core::plan::Plan;
use onefold::core::tally::Tally;
use onefold::core::time::{Span, Timestamp};
use onefold::store::plans::{KeepChanges, Maker};
use onefold::store::standing_rule::RuleWord;

use crate::common::databases::aside;
use crate::common::site::Site;
use crate::{doubled, on_each_database};

on_each_database![
    a_plan_waits_for_the_word_of_another_person,
    a_name_that_is_typed_is_nobody_else,
    another_configuration_does_not_lift_the_rule_under_which_a_plan_was_made,
    the_rule_of_whoever_applies_counts_too,
    the_rule_stands_from_the_set_up_on,
    it_takes_two_people_to_make_the_rule_laxer,
    who_made_a_plan_and_by_which_rule_is_what_the_journal_says,
    a_word_is_for_one_decision,
    what_was_begun_goes_on_without_being_asked_for_again,
    small_refunds_need_no_word,
    several_plans_under_one_freeze_add_up,
    small_plans_under_freezes_of_their_own_add_up,
    what_went_back_before_the_span_counts_no_more,
    a_plan_is_what_the_journal_tells_of_it,
    a_rule_that_was_is_not_put_back_by_hand,
    of_two_that_are_begun_at_once_the_second_knows_of_the_first,
    a_plan_of_another_digest_than_was_looked_at_is_not_begun,
    words_for_a_laxer_rule_grow_old,
    the_rule_that_stands_is_told,
    a_word_that_the_journal_does_not_tell_of_is_none,
    a_word_for_one_thing_is_none_for_another_and_a_rule_by_hand_is_none,
    what_cannot_be_approved_is_refused,
    an_old_plan_is_begun_only_where_the_same_would_be_decided,
    a_rule_that_makes_no_sense_is_refused,
];

const RULE: &str = "[approval]\nrequired = true\n";
/// A provider, and limits that are not in the way.
const REST: &str = "[providers.\"*\"]\nkind = \"sandbox\"\n[limits]\nmax_refund_total = [\"CNY:1000\"]\n";

/// A site whose plans need another person's word, with a plan that gives 10.00 CNY back.
pub fn planned(site: &Site) -> String {
    site.configure(&[RULE, REST].concat());
    site.import(&doubled().ledgers);
    site.freeze();
    site.plan()
}

fn now() -> Timestamp {
    Timestamp::from_datetime(&chrono::Utc::now())
}

fn another() -> Person {
    Person { os_user: "somebody-else".to_owned(), login: String::new() }
}

/// The same plan, made by somebody else, who has no rule of his own.
pub fn made_by_another(site: &Site, plan: &str) -> String {
    let id = format!("{plan}-again");
    aside(async || {
        let store = site.store().await;
        let plan = Plan { plan_id: id.clone(), ..store.plan_by_id(plan).await.unwrap().plan };
        let maker = Maker { actor: "him", person: &another(), approval: &ApprovalRule::default() };
        store.save_plan(&plan, &KeepChanges::default(), maker).await.unwrap();
    });
    id
}

/// Somebody else gives his word for a plan.
pub fn approved_by_another(site: &Site, plan: &str) {
    aside(async || {
        let store = site.store().await;
        let digest = store.plan_by_id(plan).await.unwrap().plan.digest;
        assert!(store.approve(&word_of_another(plan, &digest)).await.unwrap());
    });
}

fn word_of_another(plan: &str, digest: &str) -> Approval {
    Approval {
        plan_id: plan.to_owned(),
        digest: digest.to_owned(),
        by: another(),
        actor: "him".to_owned(),
        because: "sums agree".to_owned(),
        at: now(),
    }
}

pub fn untouched(site: &Site) {
    assert_eq!((site.order("B"), site.payment("P-B")), ("PAID".into(), "CAPTURED".into()));
}

fn a_plan_waits_for_the_word_of_another_person(site: &Site) {
    planned(site);
    site.run(&["plan"]).ends(0).prints("It needs another person's approval: every plan needs one.");
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"])
        .fails(7, &["needs the approval of someone other than", "onefold approve"]);
    // Whoever made it is not another, however often he says so.
    for _ in 0..2 {
        site.run(&["approve", &plan, "--because", "looks right"]).fails(7, &["was made by", "someone else"]);
    }
    site.run(&["apply", &plan, "--yes"]).fails(7, &["needs the approval of someone other than"]);
    untouched(site);
    let plan = made_by_another(site, &plan);
    site.run(&["apply", &plan, "--yes"])
        .fails(7, &["needs the approval of someone other than somebody-else"]);
    site.run(&["approve", &plan, "--because", "sums agree"])
        .ends(0)
        .prints("10.00 CNY refunded")
        .prints("approved by");
    site.run(&["approve", &plan, "--because", "again"]).ends(0).prints("was approved already by");
    site.run(&["show", &plan]).ends(0).prints(": sums agree").does_not_print(": again");
    site.run(&["apply", &plan, "--yes"]).ends(0);
    assert_eq!(site.payment("P-B"), "REFUNDED");
    let history = site.run(&["history", "--plan", &plan]).ends(0);
    history.prints("approved").prints("begun");
}

fn a_name_that_is_typed_is_nobody_else(site: &Site) {
    let plan = planned(site);
    for (name, value) in [("USER", "bob"), ("LOGNAME", "bob"), ("SUDO_USER", "bob"), ("ONEFOLD_OWNER", "bob")]
    {
        let line = ["approve", &plan, "--because", "it is me, bob"];
        let ran = crate::common::site::run(site.command(&line).env(name, value), &line);
        ran.fails(7, &["was made by", "--owner is only a label"]);
    }
    site.run(&["approve", &plan, "--because", "x", "--owner", "bob"]).fails(7, &["was made by"]);
    site.run(&["apply", &plan, "--yes", "--owner", "bob"]).fails(7, &["is held by ada@desk"]);
    site.run(&["apply", &plan, "--yes"]).fails(7, &["needs the approval"]);
    untouched(site);
}

fn another_configuration_does_not_lift_the_rule_under_which_a_plan_was_made(site: &Site) {
    let plan = planned(site);
    let lax = site.configured(REST);
    site.run(&["apply", &plan, "--yes", "--config", &lax]).fails(7, &["needs the approval of someone other"]);
    let same = site.configured(&format!("[approval]\nrequired = true\ndistinct = false\n{REST}"));
    site.run(&["approve", &plan, "--because", "x", "--config", &same]).fails(7, &["was made by"]);
    site.run(&["apply", &plan, "--yes", "--config", &same])
        .fails(7, &["needs the approval of someone other"]);
    untouched(site);
    // Nor does planning by it: the rule stands in the database since somebody has planned by it.
    site.configure(REST);
    site.run(&["plan"]).ends(0).prints("It needs another person's approval: every plan needs one.");
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"]).fails(7, &["needs the approval of someone other"]);
    untouched(site);
}

fn the_rule_of_whoever_applies_counts_too(site: &Site) {
    site.configure(REST);
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    let strict = site.configured(&[RULE, REST].concat());
    site.run(&["apply", &plan, "--yes", "--config", &strict])
        .fails(7, &["needs the approval of someone other"]);
    site.run(&["apply", &plan, "--yes"]).ends(0);
}

fn the_rule_stands_from_the_set_up_on(site: &Site) {
    let strict = site.configured(&[RULE, REST].concat());
    site.run(&["init", "--config", &strict])
        .ends(0)
        .prints("From now on every plan needs another person's approval.");
    site.configure(REST);
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"]).fails(7, &["needs the approval of someone other"]);
    untouched(site);
}

fn it_takes_two_people_to_make_the_rule_laxer(site: &Site) {
    planned(site);
    site.configure(&[RULE, "over = \"CNY:10\"\n", REST].concat());
    let laxer = ["approve", "--rule", "--because", "small ones are fine"];
    site.run(&["approve", "--because", "x"]).fails(2, &["<PLAN>"]);
    for _ in 0..2 {
        site.run(&laxer)
            .ends(6)
            .prints("Still every plan needs another person's approval.")
            .prints("another person's,");
    }
    site.run(&["plan"]).ends(0).prints("It needs another person's approval");
    // The word is for this rule alone.
    site.configure(REST);
    site.run(&laxer).ends(6).prints("that no plan needs an approval");
    site.configure(&[RULE, "over = \"CNY:10\"\n", REST].concat());
    aside(async || {
        let store = site.store().await;
        let amounts = [("CNY".parse().unwrap(), 1000)].into();
        let rule =
            ApprovalRule { required: true, distinct: true, over: Some(amounts), ..ApprovalRule::default() };
        store.approve_rule(&rule, &word_of_another("", "")).await.unwrap();
    });
    site.run(&laxer).ends(0).prints(
        "It stands already: a plan needs another person's approval that gives back more than 10.00 CNY.",
    );
    let told = site.run(&["history"]).ends(0);
    told.prints("approval-rule-set").prints("somebody-else: sums agree");
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"]).ends(0);
    assert_eq!(site.payment("P-B"), "REFUNDED");
    // A stricter one stands by one word, and at once.
    site.configure(&[RULE, REST].concat());
    site.run(&laxer).ends(0).prints("From now on every plan needs another person's approval.");
    assert!(!site.may("DELETE FROM onefold_rules") && !site.may("UPDATE onefold_rules SET rule = '{}'"));
    site.run(&["history", "verify"]).ends(0);
}

fn who_made_a_plan_and_by_which_rule_is_what_the_journal_says(site: &Site) {
    let plan = planned(site);
    let changed = |columns: &str| {
        site.sql(&format!("UPDATE onefold_plans SET {columns} WHERE plan_id = '{plan}'"));
    };
    changed("os_user = 'somebody-else'");
    site.run(&["approve", &plan, "--because", "as if I had not made it"]).ends(0);
    site.run(&["apply", &plan, "--yes"]).fails(7, &["is not what the journal says of it", "plan again"]);
    untouched(site);
    let plan = site.plan();
    approved_by_another(site, &plan);
    site.sql(&format!(
        "UPDATE onefold_plans SET approval = '{{\"required\":false,\"distinct\":false,\"over\":null}}' WHERE plan_id = '{plan}'"
    ));
    site.run(&["apply", &plan, "--yes"]).fails(7, &["is not what the journal says of it"]);
    untouched(site);
}

fn a_word_is_for_one_decision(site: &Site) {
    let plan = made_by_another(site, &planned(site));
    let wrong = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
    site.run(&["approve", &plan, "--because", "x", "--digest", wrong]).fails(7, &["has the digest sha256:"]);
    let digest = site.json(&["show", &plan])["plan"]["digest"].as_str().unwrap().to_owned();
    site.run(&["approve", &plan, "--because", "x", "--digest", &digest]).ends(0);
    // The same decision again is another plan with the same digest; another decision is not.
    let again = made_by_another(site, &site.plan());
    assert_eq!(site.json(&["show", &again])["approvals"][0]["plan_id"], plan);
    site.sql("UPDATE orders SET version = '7' WHERE order_id = 'B'");
    let other = made_by_another(site, &site.plan());
    site.run(&["apply", &other, "--yes"]).fails(7, &["needs the approval"]);
    site.run(&["apply", &again, "--yes"]).fails(7, &["was superseded by"]);
    untouched(site);
}

fn what_was_begun_goes_on_without_being_asked_for_again(site: &Site) {
    site.provider(&[("P-B", "lose-answer")]);
    let plan = made_by_another(site, &planned(site));
    site.run(&["approve", &plan, "--because", "x"]).ends(0);
    site.run(&["apply", &plan, "--yes"]).ends(6);
    // A word is evidence.
    assert!(
        !site.may("DELETE FROM onefold_approvals") && !site.may("UPDATE onefold_approvals SET because = 'x'")
    );
    // Not even a plan that has grown old is kept half done.
    let short = site.configured(&[RULE, REST, "plan_max_age = \"1s\"\n"].concat());
    site.run(&["converge", "--plan", &plan, "--config", &short]).ends(0);
    site.run(&["apply", &plan, "--yes", "--config", &short]).ends(0);
    assert_eq!((site.order("B"), site.payment("P-B")), ("REFUNDED".into(), "REFUNDED".into()));
}

fn a_word_that_the_journal_does_not_tell_of_is_none(site: &Site) {
    let plan = planned(site);
    let digest = site.json(&["show", &plan])["plan"]["digest"].as_str().unwrap().to_owned();
    site.sql(&format!(
        "INSERT INTO onefold_approvals (digest, os_user, login, plan_id, actor, because, at_us) \
         VALUES ('{digest}', 'cfo', '', '{plan}', 'cfo', 'fine', 1)"
    ));
    site.run(&["apply", &plan, "--yes"]).fails(7, &["needs the approval of someone other than"]);
    let forged = |columns: &str, values: &str| {
        site.may(&format!(
            "INSERT INTO onefold_journal (at_us, actor, event, plan_id{columns}) VALUES (1, 'cfo', 'approved', '{plan}'{values})"
        ))
    };
    assert!(
        !forged("", "") && !forged(", seq", ", 0") && !forged(", seq", ", -1"),
        "an entry outside a chain"
    );
    site.run(&["apply", &plan, "--yes"]).fails(7, &["needs the approval of someone other than"]);
    site.run(&["history", "verify"])
        .ends(5)
        .prints(&format!("approval of {plan}"))
        .prints("no entry tells of it");
    untouched(site);
}

fn a_word_for_one_thing_is_none_for_another_and_a_rule_by_hand_is_none(site: &Site) {
    let plan = planned(site);
    let lax = site.configured(REST);
    site.run(&["approve", "--rule", "--because", "x", "--config", &lax]).ends(6);
    // The word that the journal tells of, as somebody else's and for the plan.
    site.sql(
        "INSERT INTO onefold_approvals (digest, os_user, login, plan_id, actor, because, at_us) \
         SELECT (SELECT digest FROM onefold_plans), 'bob', login, plan_id, actor, because, at_us FROM onefold_approvals AS a",
    );
    site.run(&["apply", &plan, "--yes"]).fails(7, &["needs the approval of someone other than"]);
    site.sql(
        "INSERT INTO onefold_approvals (digest, os_user, login, plan_id, actor, because, at_us) \
         SELECT digest, 'bob', login, plan_id, actor, because, at_us FROM onefold_approvals AS a WHERE os_user <> 'bob'",
    );
    site.run(&["approve", "--rule", "--because", "x", "--config", &lax]).ends(6);
    let rule = r#"{"required":false,"distinct":false,"over":null}"#;
    site.sql(&format!("INSERT INTO onefold_rules VALUES (9, '{rule}', 'root', '', 'op', 1)"));
    for line in [&["plan"][..], &["apply", &plan, "--yes"]] {
        site.run(line).fails(7, &["is not the one that the journal tells of"]);
    }
    untouched(site);
}

/// Two users who bought twice: 10.00 CNY go back to each, and up to 15.00 CNY need no word.
fn two_of_10_where_15_need_none(site: &Site) {
    let mut book = doubled();
    for id in ["C", "D"] {
        book.bought(id, if id == "C" { 0 } else { 10 });
        book.find_order(id).user_id = "other".into();
        book.find_payment(&format!("P-{id}")).user_id = "other".into();
        book.find_hold(&format!("H-{id}")).user_id = "other".into();
    }
    site.configure(&[RULE, "over = \"CNY:15\"\n", REST].concat());
    site.import(&book.ledgers);
}

fn several_plans_under_one_freeze_add_up(site: &Site) {
    two_of_10_where_15_need_none(site);
    let freeze = site.freeze();
    let part = |user: &str| site.id(&["plan", "--freeze", &freeze, "--user", user], "/plan_id");
    let first = part("other");
    site.run(&["apply", &first, "--yes"]).ends(0);
    let user = site.column("SELECT user_id FROM orders WHERE order_id = 'B'").concat();
    let second = part(&user);
    site.run(&["apply", &second, "--yes"]).fails(7, &["and 20.00 CNY with other plans begun within 24h"]);
    untouched(site);
}

fn small_plans_under_freezes_of_their_own_add_up(site: &Site) {
    two_of_10_where_15_need_none(site);
    let frozen = |user: &str| {
        let line = ["freeze", "--user", user, "--advisory", "--reason", "a small one"];
        site.id(&line, "/freeze/freeze_id")
    };
    let under = |freeze: &str| site.id(&["plan", "--freeze", freeze], "/plan_id");
    let first = under(&frozen("other"));
    site.run(&["apply", &first, "--yes"]).ends(0);
    let user = site.column("SELECT user_id FROM orders WHERE order_id = 'B'").concat();
    let freeze = frozen(&user);
    let why = "20.00 CNY with other plans begun within 24h or under its freeze, more than 15.00 CNY";
    site.run(&["plan", "--freeze", &freeze]).ends(0).prints(why);
    let second = under(&freeze);
    site.run(&["apply", &second, "--yes"]).fails(7, &[why]);
    // A shorter span of one's own is a laxer rule, and lifts nothing.
    let shorter = site.configured(&[RULE, "over = \"CNY:15\"\nwithin = \"1s\"\n", REST].concat());
    site.run(&["apply", &second, "--yes", "--config", &shorter]).fails(7, &[why]);
    untouched(site);
    // When the first was begun the journal says, and not the table.
    site.sql(&format!("UPDATE onefold_plans SET begun_at_us = 1 WHERE plan_id = '{first}'"));
    site.run(&["apply", &second, "--yes"]).fails(7, &[why]);
    site.run(&["history", "verify"]).ends(5).prints(&first);
    untouched(site);
}

fn what_went_back_before_the_span_counts_no_more(site: &Site) {
    two_of_10_where_15_need_none(site);
    site.configure(&[RULE, "over = \"CNY:15\"\nwithin = \"2s\"\n", REST].concat());
    let frozen = |user: &str| {
        let line = ["freeze", "--user", user, "--advisory", "--reason", "a small one"];
        site.id(&line, "/freeze/freeze_id")
    };
    let under = |freeze: &str| site.id(&["plan", "--freeze", freeze], "/plan_id");
    site.run(&["apply", &under(&frozen("other")), "--yes"]).ends(0);
    let user = site.column("SELECT user_id FROM orders WHERE order_id = 'B'").concat();
    let second = under(&frozen(&user));
    std::thread::sleep(Duration::from_secs(2));
    site.run(&["apply", &second, "--yes"]).ends(0);
    assert_eq!(site.payment("P-B"), "REFUNDED");
}

fn a_plan_is_what_the_journal_tells_of_it(site: &Site) {
    let plan = planned(site);
    let refused = |set: &str, back: &str, why: &str| {
        site.sql(&format!("UPDATE onefold_plans SET {set}"));
        site.run(&["apply", &plan, "--yes"]).fails(7, &[why]);
        untouched(site);
        site.sql(&format!("UPDATE onefold_plans SET {back}"));
    };
    refused(
        "begun_at_us = 1",
        "begun_at_us = NULL",
        "whether it is begun is not what the journal says of it",
    );
    let name = |from: &str, to: &str| format!("body = REPLACE(body, '{from}', '{to}')");
    let other = "it stands under another name, freeze or time than its own";
    refused(&name(&plan, "PL-other"), &name("PL-other", &plan), other);
    let (now, later) = ("\"made_at\":\"20", "\"made_at\":\"21");
    refused(&name(now, later), &name(later, now), other);
    site.run(&["apply", &plan, "--yes"]).fails(7, &["needs the approval of someone other than"]);
}

fn a_rule_that_was_is_not_put_back_by_hand(site: &Site) {
    let lax = site.configured(REST);
    let stricter = [RULE, "over = \"CNY:15\"\n", REST].concat();
    site.configure(&stricter);
    site.import(&doubled().ledgers);
    site.freeze();
    site.plan();
    site.configure(&[RULE, REST].concat());
    let plan = site.plan();
    site.run(&["history", "verify"]).ends(0);
    site.sql("INSERT INTO onefold_rules SELECT 3, rule, os_user, login, actor, at_us FROM onefold_rules WHERE position = 1");
    site.run(&["apply", &plan, "--yes", "--config", &lax])
        .fails(7, &["is not the one that the journal tells of"]);
    site.run(&["history", "verify"]).ends(5).prints("rule");
    untouched(site);
}

fn of_two_that_are_begun_at_once_the_second_knows_of_the_first(site: &Site) {
    two_of_10_where_15_need_none(site);
    let freeze = site.freeze();
    let user = site.column("SELECT user_id FROM orders WHERE order_id = 'B'").concat();
    let plans = ["other", &user].map(|u| site.id(&["plan", "--freeze", &freeze, "--user", u], "/plan_id"));
    let rule = ApprovalRule::default();
    let begun = aside(async || {
        let (one, other) = (site.store().await, site.store().await);
        let saved = [one.plan_by_id(&plans[0]).await.unwrap(), one.plan_by_id(&plans[1]).await.unwrap()];
        let all = saved.each_ref().map(|saved| Tally::of(&saved.plan.intents));
        let (a, b) = tokio::join!(
            one.begin_plan(&saved[0].plan, &all[0], &rule, "x", now()),
            other.begin_plan(&saved[1].plan, &all[1], &rule, "x", now())
        );
        [a, b].map(|begun| begun.map_err(|e| e.message))
    });
    assert_eq!(begun.iter().filter(|b| b.is_ok()).count(), 1, "{begun:?}");
}

fn a_plan_of_another_digest_than_was_looked_at_is_not_begun(site: &Site) {
    let plan = planned(site);
    let rule = ApprovalRule::default();
    let begun = aside(async || {
        let store = site.store().await;
        let mut saved = store.plan_by_id(&plan).await.unwrap();
        let all = Tally::of(&saved.plan.intents);
        saved.plan.digest.push('0');
        store.begin_plan(&saved.plan, &all, &rule, "x", now()).await.map_err(|e| e.message)
    });
    assert!(begun.as_ref().is_err_and(|why| why.contains("its digest is another")), "{begun:?}");
    untouched(site);
}

fn words_for_a_laxer_rule_grow_old(site: &Site) {
    planned(site);
    site.configure(&[RULE, "over = \"CNY:10\"\n", REST].concat());
    let rule = ApprovalRule {
        required: true,
        distinct: true,
        over: Some([("CNY".parse().unwrap(), 1000)].into()),
        ..ApprovalRule::default()
    };
    let word = |hours: i64| {
        let at = now().minus(Span::from_mins(hours * 60));
        let word = Approval { at, ..word_of_another("", "") };
        aside(async || site.store().await.approve_rule(&rule, &word).await.unwrap())
    };
    // Two rounds that came to nothing.
    assert_eq!((word(72), word(25)), (RuleWord::Noted, RuleWord::Noted));
    let laxer = ["approve", "--rule", "--because", "small ones are fine"];
    site.run(&laxer).ends(6).prints("Still every plan needs another person's approval.");
    assert_eq!(word(0), RuleWord::Set);
    site.run(&laxer).ends(0).prints("It stands already");
    site.run(&["history", "verify"]).ends(0);
}

fn the_rule_that_stands_is_told(site: &Site) {
    site.configure(REST);
    site.import(&doubled().ledgers);
    site.run(&["status"]).ends(0).does_not_print("approval");
    site.configure(&[RULE, REST].concat());
    site.run(&["init"]).ends(0);
    site.configure(REST);
    let rule = "every plan needs another person's approval";
    site.run(&["status"]).ends(0).prints(&format!("By the rule that stands {rule}."));
    site.run(&["config", "show"]).ends(0).prints(&format!("By the rule that stands in the journal {rule}."));
    for line in [&["status"][..], &["config", "show"]] {
        assert_eq!(site.json(line)["standing_rule"]["rule"]["required"], true, "{line:?}");
    }
    let checks = site.run(&["check", "--json"]).json();
    let message = format!("by the rule that stands {rule}");
    let is_said = |c: &serde_json::Value| c["what"] == "journal" && c["message"] == message;
    assert!(checks["checks"].as_array().unwrap().iter().any(is_said), "{checks:#}");
}

fn small_refunds_need_no_word(site: &Site) {
    site.import(&doubled().ledgers);
    site.freeze();
    let with_over = |over: &str| site.configured(&[RULE, over, REST].concat());
    site.configure(&[RULE, "over = [\"JPY:5000\", \"CNY:10\"]\n", REST].concat());
    let plan = site.plan();
    let lower = with_over("over = \"CNY:9.99\"\n");
    site.run(&["apply", &plan, "--yes", "--config", &lower])
        .fails(7, &["it gives back 10.00 CNY, more than 9.99 CNY"]);
    site.run(&["apply", &plan, "--yes"]).ends(0);
    assert_eq!(site.payment("P-B"), "REFUNDED");
}

fn what_cannot_be_approved_is_refused(site: &Site) {
    let plan = made_by_another(site, &planned(site));
    site.run(&["approve", "PL-none", "--because", "x"]).fails(2, &["there is no plan PL-none"]);
    site.run(&["approve", &plan, "--because", " "]).fails(2, &["--because needs a reason"]);
    let dry = site.id(&["plan", "--as-of", "2026-11-11T12:00:00Z"], "/plan_id");
    site.run(&["approve", &dry, "--because", "x"]).fails(7, &["is a dry run"]);
    let newer = site.plan();
    site.run(&["approve", &plan, "--because", "x"]).fails(7, &[&format!("was superseded by {newer}")]);
    // A plan that an older version made has no maker that could be told from anybody.
    site.sql(&format!("UPDATE onefold_plans SET os_user = NULL, login = NULL WHERE plan_id = '{newer}'"));
    site.run(&["approve", &newer, "--because", "x"]).fails(7, &["it is not known who made"]);
    site.run(&["apply", &newer, "--yes"]).fails(7, &["who made it is not known"]);
    untouched(site);
}

fn an_old_plan_is_begun_only_where_the_same_would_be_decided(site: &Site) {
    site.configure(&[REST, "plan_max_age = \"2s\"\n"].concat());
    site.import(&doubled().ledgers);
    site.freeze();
    let age = || std::thread::sleep(Duration::from_millis(2100));
    let plan = site.plan();
    age();
    site.sql("UPDATE payments SET version = '7' WHERE payment_id = 'P-B'");
    site.run(&["apply", &plan, "--yes"])
        .fails(4, &["older than 2s", "another plan would be made now", "onefold plan --freeze"]);
    untouched(site);
    let plan = site.plan();
    age();
    site.run(&["apply", &plan, "--yes"]).ends(0);
    assert_eq!(site.payment("P-B"), "REFUNDED");
}

fn a_rule_that_makes_no_sense_is_refused(site: &Site) {
    let bad = |toml: &str, saying: &[&str]| {
        let config = site.configured(toml);
        site.run(&["status", "--config", &config]).fails(2, saying);
    };
    bad("[approval]\nover = \"CNY:1\"\n", &["[approval] says how, and not that approvals are required"]);
    bad(
        "[approval]\nrequired = true\nover = \"CNY\"\n",
        &["[approval] over: the amount \"CNY\" has no colon"],
    );
    bad("[approval]\nrequired = true\nover = [\"CNY:1\", \"CNY:2\"]\n", &["twice"]);
    bad(
        "[approval]\nrequired = true\nover = [\"CNY:-1\"]\n",
        &["[approval] over: the amount \"CNY:-1\" is less than nothing"],
    );
    bad("[approval]\nrequired = true\nwithin = \"1h\"\n", &["within which time refunds count together"]);
    bad("[approval]\nrequired = true\nover = \"CNY:1\"\nwithin = \"soon\"\n", &["[approval] within", "soon"]);
    bad("[approval]\nrequired = \"yes\"\n", &["line 2"]);
    bad("[limits]\nplan_max_age = \"soon\"\n", &["plan_max_age", "soon"]);
}
