//! What a service answered when the same request was sent to it many times at once: how many results there were.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::canonical;
use super::drill::Latencies;
use super::hash::FieldHash;

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    /// Of its body, without what is ignored.
    pub digest: String,
    pub has_body: bool,
}

impl Reply {
    /// `body` as it arrived, and as JSON where it is JSON; members at `ignored` pointers do not count.
    pub fn new(status: u16, body: &[u8], json: Option<&Value>, ignored: &[String]) -> Self {
        let digest = match json {
            Some(json) => {
                let mut json = json.clone();
                ignored.iter().for_each(|pointer| remove(&mut json, pointer));
                let mut text = String::new();
                canonical::write(&json, &mut text).expect("JSON has a canonical text");
                FieldHash::new().text("json").text(&text)
            }
            None => FieldHash::new().text("bytes").bytes(body),
        };
        Self { status, digest: digest.short_hex(), has_body: !body.is_empty() }
    }

    const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }
}

/// Takes away what a JSON pointer names, where it names something.
fn remove(json: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return };
    match json.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.remove(&name.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(list)) => {
            if let Some(element) = name.parse().ok().and_then(|at: usize| list.get_mut(at)) {
                *element = Value::Null;
            }
        }
        _ => {}
    }
}

/// How one request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shot {
    Answered(Reply),
    /// No byte of it left.
    NotSent(String),
    /// It may have arrived, and no answer came.
    Lost(String),
}

/// A kind of answer, over all rounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kind {
    pub status: u16,
    /// The digest of one such body.
    pub example: String,
    pub answers: u64,
}

/// A key under which there was more than one result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Doubled {
    pub key: String,
    /// The digests of the bodies of its successes.
    pub results: BTreeSet<String>,
}

/// How many keys with several results are told.
const TOLD: usize = 20;

/// All rounds of a drill over HTTP.
#[derive(Clone, Debug, Default)]
pub struct Replies {
    pub rounds: u64,
    pub requests: u64,
    pub latencies: Latencies,
    /// By status.
    pub kinds: BTreeMap<u16, Kind>,
    pub not_sent: u64,
    pub lost: u64,
    /// Why something was not sent or lost, the first time.
    pub why: Option<String>,
    /// The most that there were under one key.
    pub most_results: usize,
    /// Keys under which there was more than one.
    pub doubled: u64,
    pub told: Vec<Doubled>,
    /// Keys under which nothing succeeded.
    pub without_success: u64,
    /// Whether some success had no body: such ones cannot be told apart.
    pub is_bare: bool,
    /// Of the key of the round before, where the same one is used again.
    last: Option<Doubled>,
}

impl Replies {
    /// Adds a round. Where its key is that of the round before, its results count together with those.
    ///
    /// Successes that differ in status alone, such as 201 and then 200, are one result.
    pub fn add(&mut self, key: &str, shots: &[(Shot, u64)]) {
        self.rounds += 1;
        let mut current = match self.last.take() {
            Some(last) if last.key == key => last,
            _ => Doubled { key: key.to_owned(), results: BTreeSet::new() },
        };
        let was = current.results.len();
        for (shot, micros) in shots {
            self.requests += 1;
            match shot {
                Shot::Answered(reply) => {
                    self.latencies.add(*micros);
                    let kind = Kind { status: reply.status, example: reply.digest.clone(), answers: 0 };
                    self.kinds.entry(reply.status).or_insert(kind).answers += 1;
                    if reply.is_success() {
                        self.is_bare |= !reply.has_body;
                        current.results.insert(reply.digest.clone());
                    }
                }
                Shot::NotSent(why) => {
                    self.not_sent += 1;
                    self.why.get_or_insert_with(|| why.clone());
                }
                Shot::Lost(why) => {
                    self.lost += 1;
                    self.why.get_or_insert_with(|| why.clone());
                }
            }
        }
        let results = current.results.len();
        self.most_results = self.most_results.max(results);
        self.without_success += u64::from(results == 0);
        if results > 1 && results > was {
            match self.told.iter_mut().find(|told| told.key == key) {
                Some(told) => told.results.clone_from(&current.results),
                None => {
                    self.doubled += 1;
                    if self.told.len() < TOLD {
                        self.told.push(current.clone());
                    }
                }
            }
        }
        self.last = Some(current);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shot(status: u16, body: &str, ignored: &[&str]) -> (Shot, u64) {
        let ignored: Vec<String> = ignored.iter().map(|p| (*p).to_owned()).collect();
        let json = serde_json::from_str(body).ok();
        (Shot::Answered(Reply::new(status, body.as_bytes(), json.as_ref(), &ignored)), 5)
    }

    #[test]
    fn results_are_told_apart_by_body_and_not_by_the_order_of_members_or_the_kind_of_success() {
        let mut replies = Replies::default();
        replies.add("k", &[shot(201, r#"{"a": 1, "b": 2}"#, &[]), shot(200, r#"{"b":2,"a":1}"#, &[])]);
        assert_eq!((replies.most_results, replies.doubled), (1, 0));
        replies
            .add("l", &[shot(200, r#"{"a":1}"#, &[]), shot(200, r#"{"a":2}"#, &[]), shot(409, "busy", &[])]);
        assert_eq!((replies.most_results, replies.doubled, replies.told.len()), (2, 1, 1));
        assert_eq!(replies.kinds[&409].answers, 1);
    }

    #[test]
    fn another_key_may_have_another_result_and_the_same_key_may_not() {
        let rounds = |keys: [&str; 2]| {
            let mut replies = Replies::default();
            replies.add(keys[0], &[shot(200, "O-1", &[])]);
            replies.add(keys[1], &[shot(200, "O-2", &[])]);
            replies.doubled
        };
        assert_eq!(rounds(["k", "l"]), 0);
        assert_eq!(rounds(["k", "k"]), 1);
    }

    #[test]
    fn what_is_ignored_does_not_make_a_result() {
        let at = |at: &str| json!({ "order": { "id": "O-1", "a/b": at }, "list": [at] }).to_string();
        let mut replies = Replies::default();
        let ignored = ["/order/a~1b", "/list/0", "/nowhere/at/all", "nothing"];
        replies.add("k", &[shot(200, &at("12:00"), &ignored), shot(200, &at("12:01"), &ignored)]);
        assert_eq!(replies.most_results, 1);
        replies.add("l", &[shot(200, &at("12:00"), &[]), shot(200, &at("12:01"), &[])]);
        assert_eq!(replies.most_results, 2);
    }

    #[test]
    fn what_never_came_is_no_result() {
        let mut replies = Replies::default();
        replies
            .add("k", &[(Shot::NotSent("no".into()), 1), (Shot::Lost("gone".into()), 1), shot(500, "", &[])]);
        assert_eq!((replies.not_sent, replies.lost, replies.without_success), (1, 1, 1));
        assert_eq!(replies.why.as_deref(), Some("no"));
    }
}
