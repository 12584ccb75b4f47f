//! What an answer means: by its HTTP status and by values at places in its JSON. The first rule that
//! fits holds; an answer that fits none says nothing.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::wire::Reply;
use crate::error::{Error, Result};
use crate::providers::Doing;

/// What a rule can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    Done,
    Accepted,
    Refused,
    /// What was asked for is so already, by whichever request: the provider is asked by which.
    AlreadyDone,
    /// Nothing was done, and nothing will be: the same request may be sent.
    NotSent,
    Unknown,
    /// The provider knows no such request.
    Nothing,
    Authorized,
    Captured,
    Failed,
    Voided,
    Disputed,
    ChargedBack,
    NotKnown,
    NoAnswer,
}

/// One, or several of which one must fit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum AnyOf<T> {
    Several(Vec<T>),
    One(T),
}

impl<T> AnyOf<T> {
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::Several(all) => all,
            Self::One(one) => std::slice::from_ref(one),
        }
    }
}

/// `404`, `"2xx"` or `"500-599"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum StatusText {
    Number(u16),
    Text(String),
}

/// What must be at a place: exactly this; a text may begin or end with `*`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Wanted {
    Truth(bool),
    Number(i64),
    Text(String),
}

impl Wanted {
    fn fits(&self, value: &Value) -> bool {
        match self {
            Self::Truth(truth) => value.as_bool() == Some(*truth),
            Self::Number(number) => value.as_i64() == Some(*number),
            Self::Text(pattern) => value.as_str().is_some_and(|text| {
                let (open_start, open_end) = (pattern.starts_with('*'), pattern.ends_with('*'));
                match (open_start, open_end, pattern.trim_matches('*')) {
                    (true, true, middle) => text.contains(middle),
                    (true, false, end) => text.ends_with(end),
                    (false, true, start) => text.starts_with(start),
                    (false, false, _) => text == pattern,
                }
            }),
        }
    }
}

/// One rule as the configuration writes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSettings {
    /// Any 2xx, where nothing is said.
    status: Option<AnyOf<StatusText>>,
    /// JSON pointers, and what must be there.
    #[serde(default)]
    at: BTreeMap<String, AnyOf<Wanted>>,
    means: Means,
    /// Of `nothing`: that every request about the charge was looked through.
    #[serde(default)]
    listed: bool,
    /// That it holds for a body that is no JSON, too: else such an answer may be anybody's, a proxy's or
    /// a login page's.
    #[serde(default)]
    unreadable: bool,
}

/// A rule that has been checked.
#[derive(Clone, Debug)]
pub struct Rule {
    /// From, to; both may be.
    statuses: Vec<(u16, u16)>,
    at: BTreeMap<String, AnyOf<Wanted>>,
    pub means: Means,
    pub listed: bool,
    unreadable: bool,
}

impl RuleSettings {
    /// The rule, for answers to requests of this purpose.
    ///
    /// # Errors
    /// Usage, for a status or a pointer that is none, and a meaning that such an answer cannot have.
    pub fn rule(&self, doing: Doing) -> Result<Rule> {
        use Means::*;
        let may: &[Means] = match doing {
            Doing::Refund | Doing::Void => &[Done, Accepted, Refused, AlreadyDone, NotSent, Unknown],
            Doing::Query => &[Done, Accepted, Refused, Unknown, Nothing, NoAnswer],
            Doing::Charge => {
                &[Authorized, Captured, Failed, Voided, Disputed, ChargedBack, NotKnown, NoAnswer]
            }
        };
        if !may.contains(&self.means) {
            let names: Vec<_> = may.iter().map(|m| snake(&format!("{m:?}"))).collect();
            return Err(Error::usage(format!(
                "means = {:?} is no answer to a {}",
                snake(&format!("{:?}", self.means)),
                doing.as_str()
            ))
            .hint(format!("one of {}", names.join(", "))));
        }
        if self.status.is_none() && self.at.is_empty() {
            return Err(Error::usage("a rule fits every answer")
                .hint("say when it holds: status = \"2xx\", or at = { \"/status\" = \"succeeded\" }"));
        }
        for at in self.at.keys() {
            pointer("at", at)?;
        }
        let statuses = match &self.status {
            None => vec![(200, 299)],
            Some(all) => all.as_slice().iter().map(range).collect::<Result<_>>()?,
        };
        Ok(Rule {
            statuses,
            at: self.at.clone(),
            means: self.means,
            listed: self.listed,
            unreadable: self.unreadable,
        })
    }
}

/// `ChargedBack` as the configuration writes it.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(c.to_lowercase());
    }
    text
}

fn range(status: &StatusText) -> Result<(u16, u16)> {
    let bad = |text: &str| {
        Error::usage(format!("status = {text:?} is no HTTP status"))
            .hint("write 404, \"2xx\" or \"500-599\"; several as a list: [400, 422]")
    };
    let (from, to, shown) = match status {
        StatusText::Number(number) => (Some(*number), Some(*number), number.to_string()),
        StatusText::Text(text) => match (text.strip_suffix("xx"), text.split_once('-')) {
            (Some(hundreds), _) => {
                let from = hundreds.parse::<u16>().ok().and_then(|h| h.checked_mul(100));
                (from, from.map(|f| f.saturating_add(99)), text.clone())
            }
            (None, Some((from, to))) => (from.trim().parse().ok(), to.trim().parse().ok(), text.clone()),
            (None, None) => (text.parse().ok(), text.parse().ok(), text.clone()),
        },
    };
    let is_status = |status: &u16| (100..=599).contains(status);
    from.filter(is_status)
        .zip(to.filter(is_status))
        .filter(|(from, to)| from <= to)
        .ok_or_else(|| bad(&shown))
}

/// Checks that a text is a JSON pointer, under a name.
///
/// # Errors
/// Usage, where it is none.
pub fn pointer(name: &str, text: &str) -> Result<()> {
    if text.is_empty() || text.starts_with('/') {
        return Ok(());
    }
    Err(Error::usage(format!("{name} = {text:?} is no JSON pointer"))
        .hint("a pointer begins with a slash: \"/error/code\", \"/data/0/id\""))
}

impl Rule {
    fn fits(&self, reply: &Reply) -> bool {
        let there = |(pointer, wanted): (&String, &AnyOf<Wanted>)| {
            let value = reply.body.as_ref().and_then(|body| body.pointer(pointer));
            value.is_some_and(|value| wanted.as_slice().iter().any(|w| w.fits(value)))
        };
        (self.unreadable || !reply.is_unreadable())
            && self.statuses.iter().any(|(from, to)| (*from..=*to).contains(&reply.status))
            && self.at.iter().all(there)
    }
}

/// The first rule that fits.
pub fn first<'r>(rules: &'r [Rule], reply: &Reply) -> Option<&'r Rule> {
    rules.iter().find(|rule| rule.fits(reply))
}

/// The text or number at a place.
pub fn text_at(body: &Value, pointer: Option<&str>) -> Option<String> {
    match body.pointer(pointer?)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
