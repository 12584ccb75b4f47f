//! The command lines that a report names do decide what it says they do.

use onefold::core::dossier::Dossier;
use onefold::core::evidence::Evidence;
use onefold::core::plan::{Outcome, make};

use crate::common::Options;
use crate::scene::Scene;

#[test]
fn a_policy_or_a_choice_that_is_named_for_an_intent_takes_it_out_of_review() {
    let scene = Scene::incident();
    let dossier = Dossier::of_plan(&scene.plan);
    let flags = dossier.plan_flags();
    let (mut policies, mut choices, mut rows) = (0, 0, 0);
    for intent in scene.plan.intents.iter().filter(|i| i.outcome == Outcome::Review) {
        for line in dossier.next(intent, &flags) {
            let Some(line) = line.strip_prefix("onefold plan ") else {
                let shows = format!("onefold show {} --intent {}", scene.plan.plan_id, intent.intent_id);
                assert_eq!(line, shows);
                rows += 1;
                continue;
            };
            let words: Vec<&str> = line.split(' ').collect();
            let pairs = words.chunks(2).map(|pair| (pair[0].strip_prefix("--").unwrap(), pair[1]));
            let pairs: Vec<_> = pairs.filter(|(name, _)| *name != "because").collect();
            let keeps = pairs.iter().any(|(name, _)| *name == "keep");
            let options = Options::new(pairs);
            assert_eq!(options.scope, scene.plan.scope, "{line}");
            let evidence = if keeps { options.evidence(&scene.ledgers) } else { Evidence::default() };
            let decided =
                make(&scene.ledgers, &options.scope, &options.policy, scene.plan.as_of, &evidence).unwrap();
            let order = &intent.orders[0];
            let now = decided.intents.iter().find(|i| i.orders.contains(order)).unwrap();
            // Behind it there may be another reason, of which the plan does not know yet.
            let left = now.review_reasons.iter().any(|reason| intent.review_reasons.contains(reason));
            assert!(!left, "{line}: {now:#?}");
            if keeps { choices += 1 } else { policies += 1 }
        }
    }
    assert!(policies >= 5 && choices >= 4 && rows >= 8, "{policies} {choices} {rows}");
}

#[test]
fn what_only_the_provider_knows_is_asked_of_it() {
    let scene = Scene::incident();
    let dossier = Dossier::of_plan(&scene.plan);
    let unsettled: Vec<_> = scene.plan.intents.iter().filter(|i| i.outcome == Outcome::Unsettled).collect();
    assert_eq!(unsettled.len(), 6);
    for intent in unsettled {
        assert_eq!(dossier.next(intent, ""), [format!("onefold converge --plan {}", scene.plan.plan_id)]);
    }
}
