//! A second person's word: which plans need one before they are begun, and whether they have it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::dossier::Deed;
use super::hash::FieldHash;
use super::money::Currency;
use super::tally::Tally;
use super::time::{Span, Timestamp};

/// Who somebody is, by names that he is given and does not choose: nothing of it comes from the
/// environment or the command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// Of the operating system, by the process's user id; empty where that says nothing, as in a namespace of
    /// user ids, in which anybody may be anyone.
    pub os_user: String,
    /// Of the journal's database; empty where it has no logins.
    pub login: String,
}

impl Person {
    /// Whether one of the two names tells them apart; one that is not known does not.
    pub fn is_other_than(&self, other: &Self) -> bool {
        let differ = |a: &str, b: &str| !a.is_empty() && !b.is_empty() && a != b;
        differ(&self.os_user, &other.os_user) || differ(&self.login, &other.login)
    }
}

impl std::fmt::Display for Person {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.os_user.is_empty() { "a user whose name says nothing" } else { &self.os_user })?;
        if self.login.is_empty() { Ok(()) } else { write!(f, " (database login {})", self.login) }
    }
}

/// Somebody's word for exactly one decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Approval {
    /// The plan that he looked at.
    pub plan_id: String,
    /// What was decided in it: any plan with this digest decides the same.
    pub digest: String,
    pub by: Person,
    /// What he calls himself.
    pub actor: String,
    pub because: String,
    pub at: Timestamp,
}

/// Which plans need an approval, and by whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRule {
    pub required: bool,
    /// Whether it must be someone other than the plan's maker.
    pub distinct: bool,
    /// What may go back without one, in minor units, by currency: one that is not there always needs an
    /// approval, and so does a void, whose amount no step states. `None`: every plan with a step needs one.
    pub over: Option<BTreeMap<Currency, i64>>,
    /// How long what a plan gave back counts towards `over` for the plans after it; the default where that is `None`.
    #[serde(default = "within")]
    pub within: Span,
}

/// A rule from before it said so counts a day, as one that does not say.
const fn within() -> Span {
    ApprovalRule::WITHIN
}

impl Default for ApprovalRule {
    fn default() -> Self {
        Self { required: false, distinct: false, over: None, within: Self::WITHIN }
    }
}

impl ApprovalRule {
    /// How long what a plan gave back counts where nothing else is said.
    pub const WITHIN: Span = Span::from_mins(24 * 60);
    /// How long a word for a laxer rule waits for another person's.
    pub const WORDS_LAST: Span = Span::from_mins(24 * 60);

    /// What satisfies both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        match (self.required, other.required) {
            (true, false) => self.clone(),
            (false, _) => other.clone(),
            (true, true) => {
                let over: Option<BTreeMap<_, _>> =
                    self.over.as_ref().zip(other.over.as_ref()).map(|(ours, theirs)| {
                        let both =
                            ours.iter().filter_map(|(c, minor)| Some((*c, *minor.min(theirs.get(c)?))));
                        both.collect()
                    });
                let within = if over.is_some() { self.within.max(other.within) } else { Self::WITHIN };
                Self { required: true, distinct: self.distinct || other.distinct, over, within }
            }
        }
    }

    /// Whether whatever satisfies this satisfies the other, too.
    pub fn is_at_least(&self, other: &Self) -> bool {
        self.and(other) == *self
    }

    /// What words are given for, where this rule is to come after the one at a position among the rules. There is a
    /// next round, from 0 on, where those of the one before were not enough in time.
    pub fn digest_after(&self, position: i64, round: i64) -> String {
        let over = self.over.iter().flatten();
        let hash = FieldHash::new()
            .text("onefold-approval-rule-2")
            .number(position)
            .number(round)
            .number(self.within.micros())
            .text(&self.required.to_string())
            .text(&self.distinct.to_string())
            .text(&self.over.is_some().to_string());
        let hash = over.fold(hash, |hash, (currency, minor)| hash.text(currency.code()).number(*minor));
        format!("rule:{}", hash.hex())
    }

    /// Whether these words are enough to put a laxer rule in the place of this one: that of two people, where the
    /// maker of a plan may not approve it.
    pub fn yields_to(&self, words: &[Approval]) -> bool {
        match (self.required, self.distinct) {
            (true, true) => {
                words.iter().enumerate().any(|(n, a)| words[..n].iter().any(|b| a.by.is_other_than(&b.by)))
            }
            _ => !words.is_empty(),
        }
    }

    /// Whether the words of a round are too old to be added to: one of them was given longer ago than words last.
    pub fn are_over(words: &[Approval], now: Timestamp) -> bool {
        words.iter().any(|word| now.since(word.at) > Self::WORDS_LAST)
    }

    /// Why a plan that comes to this needs an approval, where other plans that count towards `over` give back `before`, by
    /// currency, in minor units; `None` where it needs none.
    pub fn why(&self, plan: &Tally, before: &BTreeMap<Currency, i128>) -> Option<String> {
        if !self.required || plan.steps() == 0 {
            return None;
        }
        let Some(over) = &self.over else {
            return Some("every plan needs one".to_owned());
        };
        if plan.deeds(Deed::Void) > 0 {
            return Some("it voids charges".to_owned());
        }
        plan.refunds().into_iter().find_map(|(currency, sum)| match (over.get(&currency), before.get(&currency)) {
            (Some(max), Some(before)) if sum + before > i128::from(*max) => Some(format!(
                "it gives back {}, and {} with other plans begun within {} or under its freeze, more than {}",
                currency.show(sum),
                currency.show(sum + before),
                self.within,
                currency.show((*max).into())
            )),
            (None, _) => {
                Some(format!("it gives back {}, a currency without a stated amount", currency.show(sum)))
            }
            (Some(max), None) if sum > i128::from(*max) => Some(format!(
                "it gives back {}, more than {}",
                currency.show(sum),
                currency.show((*max).into())
            )),
            (Some(_), _) => None,
        })
    }

    /// Whose word counts for a plan with this digest by this maker; the first in the order given. Nobody's
    /// counts as another's where it is not known who made it.
    pub fn given<'a>(
        &self,
        digest: &str,
        maker: Option<&Person>,
        approvals: &'a [Approval],
    ) -> Option<&'a Approval> {
        let counts = |by: &Person| !self.distinct || maker.is_some_and(|maker| by.is_other_than(maker));
        approvals.iter().find(|approval| approval.digest == digest && counts(&approval.by))
    }
}

impl std::fmt::Display for ApprovalRule {
    /// As the end of a sentence: `no plan needs an approval`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.required {
            return f.write_str("no plan needs an approval");
        }
        let by = if self.distinct { "another person's approval" } else { "an approval" };
        match &self.over {
            None => write!(f, "every plan needs {by}"),
            Some(over) if over.is_empty() => write!(f, "every plan that gives money back needs {by}"),
            Some(over) => {
                let amounts: Vec<_> =
                    over.iter().map(|(currency, minor)| currency.show((*minor).into())).collect();
                write!(f, "a plan needs {by} that gives back more than {}", amounts.join(" or "))?;
                // What the journal says of a rule is this text, also of one from before there was a span.
                if self.within == Self::WITHIN {
                    return Ok(());
                }
                write!(f, " with the plans begun within {}", self.within)
            }
        }
    }
}
