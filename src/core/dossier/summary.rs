//! What a report says before its rows: what it is about, and by whose word.

use super::{Deed, Dossier};
use crate::core::plan::Outcome;
use crate::core::sheet::{Cell, Fact, number};
use crate::core::words::policies_in_words;

impl<'a> Dossier<'a> {
    /// The head of every report.
    pub fn facts(&'a self) -> Vec<Fact<'a>> {
        let plan = self.plan;
        let say = |name: &str, text: String| (name.to_owned(), Cell::Text(text.into()));
        let mut facts = vec![
            say("Plan", plan.plan_id.clone()),
            say("Digest", plan.digest.clone()),
            say("State", self.state_in_words()),
            say("Scope", self.scope().in_words()),
            ("As of (UTC)".to_owned(), Cell::Time(plan.as_of)),
            ("Planned at (UTC)".to_owned(), Cell::Time(plan.made_at)),
            say("Planned by", self.text(self.made_by).into_owned()),
            ("Ledgers and journal read at (UTC)".to_owned(), Cell::Time(self.read_at)),
        ];
        match self.freeze {
            Some(freeze) => {
                facts.push(say("Freeze", format!("{}, {}, {}", freeze.freeze_id, freeze.mode, freeze.state)));
                facts.push(("Frozen at (UTC)".to_owned(), Cell::Time(freeze.frozen_at)));
                facts.push(say("Frozen by", self.text(&freeze.owner).into_owned()));
                facts.push(say("Frozen because", self.text(&freeze.reason).into_owned()));
            }
            None => facts.push(say("Freeze", "none: a dry run, which cannot be applied".to_owned())),
        }
        if let Some((first, last)) = self.carried_out() {
            facts.push(("First step at (UTC)".to_owned(), Cell::Time(first)));
            facts.push(("Last step at (UTC)".to_owned(), Cell::Time(last)));
        }
        for (name, value) in policies_in_words(&self.policy()) {
            facts.push(say(&format!("Policy {name}"), value));
        }
        for outcome in [Outcome::Keep, Outcome::Unwind, Outcome::Review, Outcome::Unsettled, Outcome::Clean] {
            let of = plan.intents.iter().filter(|i| i.outcome == outcome).count();
            facts.push((format!("Purchases {outcome}"), number(of)));
        }
        let progress = self.progress();
        for (deed, what) in [
            (Deed::Refund, "Refunds"),
            (Deed::Void, "Cards let go"),
            (Deed::Cancel, "Orders closed"),
            (Deed::Confirm, "Orders confirmed"),
            (Deed::Release, "Holds released"),
            (Deed::Quarantine, "Messages quarantined"),
        ] {
            let of = progress.get(&deed).copied().unwrap_or_default();
            facts.push(say(what, format!("{} of {} done", of.done, of.planned)));
        }
        for money in &plan.outside_sums {
            let sum = money.currency.show(money.amount_minor);
            facts.push(say(
                &format!("Outside the sums when planned, {}", money.status),
                format!("{sum} on {} charges of tenant {}", money.charges, money.tenant_id),
            ));
        }
        for approval in &self.approvals {
            let by = format!("{} at {}: {}", approval.by, approval.at, approval.because);
            facts.push(say("Approved by", self.text(&by).into_owned()));
        }
        for head in &self.heads {
            facts.push(say(&format!("Journal head {}", head.position), head.hash.clone()));
        }
        if self.pseudonyms.is_some() {
            facts.push(say(
                "Redacted",
                "users, sessions and traces stand under pseudonyms, the same in every report".to_owned(),
            ));
        }
        facts
    }

    /// What the state of the plan means.
    pub fn state_in_words(&self) -> String {
        let begun = !self.ends.is_empty();
        let means = match self.state {
            "DRY_RUN" => "a dry run: nothing was carried out".to_owned(),
            "OPEN" if begun => "being carried out: the state so far".to_owned(),
            "OPEN" => "not yet carried out".to_owned(),
            "ENDED" => "carried out".to_owned(),
            "SUPERSEDED" => match self.superseded_by {
                Some(newer) => format!("superseded by {newer}"),
                None => "superseded".to_owned(),
            },
            _ => String::new(),
        };
        format!("{}, {means}", self.state)
    }
}
