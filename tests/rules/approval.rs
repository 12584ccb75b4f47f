//! Which plans need a second person's word, and whose counts.

use std::collections::{BTreeMap, BTreeSet};

use onefold::core::approval::{Approval, ApprovalRule, Person};
use onefold::core::limits::add_stated;
use onefold::core::plan::Plan;
use onefold::core::tally::Tally;
use onefold::core::time::Span;

use crate::common::book::{Book, at};

fn over(amounts: &[&str]) -> ApprovalRule {
    let mut stated = BTreeMap::new();
    amounts.iter().for_each(|text| add_stated(&mut stated, text).unwrap());
    ApprovalRule { over: Some(stated), ..every_plan() }
}

fn every_plan() -> ApprovalRule {
    ApprovalRule { required: true, distinct: true, ..ApprovalRule::default() }
}

/// One purchase twice, both paid: 10.00 CNY go back.
fn doubled() -> Book {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 10);
    book
}

fn approval(digest: &str, by: Person) -> Approval {
    Approval {
        plan_id: "PL".into(),
        digest: digest.into(),
        by,
        actor: "x".into(),
        because: "y".into(),
        at: at(0),
    }
}

fn person(os_user: &str, login: &str) -> Person {
    Person { os_user: os_user.into(), login: login.into() }
}

fn why(rule: &ApprovalRule, plan: &Plan) -> String {
    rule.why(&Tally::of(&plan.intents), &BTreeMap::new()).unwrap_or_default()
}

#[test]
fn what_is_required_depends_on_what_goes_back() {
    let plan = doubled().plan();
    assert_eq!(why(&ApprovalRule::default(), &plan), "");
    assert_eq!(why(&every_plan(), &plan), "every plan needs one");
    assert_eq!(why(&over(&["CNY:10"]), &plan), "");
    assert_eq!(why(&over(&["CNY:9.99"]), &plan), "it gives back 10.00 CNY, more than 9.99 CNY");
    assert_eq!(
        why(&over(&["JPY:1000000"]), &plan),
        "it gives back 10.00 CNY, a currency without a stated amount"
    );
    assert_eq!(why(&over(&[]), &plan), why(&over(&["JPY:0"]), &plan));
}

#[test]
fn what_other_plans_give_back_counts() {
    let plan = Tally::of(&doubled().plan().intents);
    let before = |minor: i128| BTreeMap::from([("CNY".parse().unwrap(), minor)]);
    let rule = over(&["CNY:20"]);
    assert_eq!(rule.why(&plan, &before(1000)), None);
    let why = "it gives back 10.00 CNY, and 20.01 CNY with other plans begun within 24h or under its freeze, more than 20.00 CNY";
    assert_eq!(rule.why(&plan, &before(1001)).as_deref(), Some(why));
    // What went back in another currency is another sum.
    assert_eq!(rule.why(&plan, &BTreeMap::from([("JPY".parse().unwrap(), 1_000_000)])), None);
}

#[test]
fn a_plan_without_a_step_needs_no_word_and_one_that_voids_always_does() {
    let mut single = Book::new();
    single.bought("A", 0);
    assert_eq!(why(&every_plan(), &single.plan()), "");
    let mut book = doubled();
    book.payment("P-V", "B", 11, "AUTHORIZED");
    let plan = book.plan();
    assert!(plan.intents.iter().flat_map(|i| &i.steps).any(|s| s.to == "VOIDED"), "{plan:?}");
    assert_eq!(why(&over(&["CNY:1000"]), &plan), "it voids charges");
}

#[test]
fn two_rules_together_are_as_strict_as_each() {
    let none = ApprovalRule::default();
    assert_eq!(none.and(&over(&["CNY:1"])), over(&["CNY:1"]));
    assert_eq!(over(&["CNY:1"]).and(&none), over(&["CNY:1"]));
    assert_eq!(over(&["CNY:1"]).and(&every_plan()), every_plan());
    assert_eq!(over(&["CNY:5", "JPY:7"]).and(&over(&["CNY:2", "EUR:1"])), over(&["CNY:2"]));
    let hours = |hours: i64| ApprovalRule { within: Span::from_mins(hours * 60), ..over(&["CNY:1"]) };
    assert_eq!(hours(1).and(&hours(48)), hours(48), "what is counted for longer is stricter");
    assert!(hours(48).is_at_least(&hours(24)) && !hours(1).is_at_least(&hours(24)));
    assert_eq!(hours(48).and(&every_plan()), every_plan());
    let shared = ApprovalRule { distinct: false, ..every_plan() };
    assert!(shared.and(&every_plan()).distinct && every_plan().and(&shared).distinct);
}

#[test]
fn a_rule_from_before_it_named_a_span_is_the_same_rule() {
    let older = r#"{"required":true,"distinct":true,"over":{"CNY":1000}}"#;
    let rule: ApprovalRule = serde_json::from_str(older).unwrap();
    assert_eq!(rule, over(&["CNY:10"]));
    let told = "a plan needs another person's approval that gives back more than 10.00 CNY";
    assert_eq!(rule.to_string(), told);
    let longer = ApprovalRule { within: Span::from_mins(48 * 60), ..rule };
    assert_eq!(longer.to_string(), format!("{told} with the plans begun within 48h"));
}

#[test]
fn words_for_a_laxer_rule_are_for_one_rule_one_place_and_one_round() {
    let digests = [
        every_plan().digest_after(1, 0),
        every_plan().digest_after(1, 1),
        every_plan().digest_after(2, 0),
        over(&["CNY:1"]).digest_after(1, 0),
        ApprovalRule { within: Span::from_mins(1), ..over(&["CNY:1"]) }.digest_after(1, 0),
    ];
    assert_eq!(BTreeSet::from(digests.clone()).len(), digests.len());
    let words = [approval("d", person("ada", ""))];
    let later = |span: Span| words[0].at.plus(span);
    let last = ApprovalRule::WORDS_LAST;
    assert!(!ApprovalRule::are_over(&words, later(last)));
    assert!(ApprovalRule::are_over(&words, later(Span::from_micros(last.micros() + 1))));
    assert!(!ApprovalRule::are_over(&[], later(last)));
}

#[test]
fn only_another_persons_word_for_this_very_decision_counts() {
    let rule = every_plan();
    let (ada, bob) = (person("ada", "app"), person("bob", "app"));
    let given = |rule: &ApprovalRule, maker: Option<&Person>, by: &Person| {
        rule.given("d", maker, &[approval("d", by.clone())]).is_some()
    };
    assert!(given(&rule, Some(&ada), &bob));
    assert!(given(&rule, Some(&ada), &person("ada", "dba")), "another login is another person");
    assert!(!given(&rule, Some(&ada), &ada));
    assert!(!given(&rule, Some(&ada), &person("", "app")), "a name that says nothing tells nobody apart");
    assert!(
        !given(&rule, Some(&person("", "app")), &bob)
            && !given(&rule, Some(&person("ada", "")), &person("ada", "x"))
    );
    assert!(!given(&rule, None, &bob), "nobody is another where the maker is not known");
    let anyone = ApprovalRule { distinct: false, ..every_plan() };
    assert!(given(&anyone, Some(&ada), &ada) && given(&anyone, None, &ada));
    let words = [approval("other", bob.clone()), approval("d", ada.clone()), approval("d", bob)];
    assert_eq!(rule.given("d", Some(&ada), &words), Some(&words[2]));
}
