//! Reads one page of a charge's refunds, and what it says of one request.

use serde_json::Value;

use super::operation::minor_at;
use super::rules::text_at;
use super::settings::{ListSettings, ListedStatus};
use crate::providers::{Answer, Request};

/// What was found in the pages so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// What each element that is ours says.
    ours: Vec<Answer>,
}

/// What comes after a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Nothing: the list is whole.
    End,
    /// Nothing says whether there is more.
    MaybeMore,
    /// Another page; with what it is asked for, and the last element's reference.
    Page { next: Option<String>, last_reference: Option<String> },
    /// Another page, at this URL.
    Url(String),
}

impl Findings {
    /// Reads a page.
    ///
    /// # Errors
    /// What of it cannot be read, in words.
    pub fn read(&mut self, list: &ListSettings, body: &Value, request: &Request) -> Result<After, String> {
        let items = body
            .pointer(&list.items)
            .and_then(Value::as_array)
            .ok_or_else(|| format!("the provider's answer has no list at {:?}", list.items))?;
        for item in items {
            let key_fits = text_at(item, Some(&list.key)).is_some_and(|key| key == request.key);
            let reference = text_at(item, list.reference.as_deref());
            if key_fits || (reference.is_some() && reference == request.reference) {
                self.ours.push(told(list, item, request, reference));
            }
        }
        let last_reference = items.last().and_then(|item| text_at(item, list.reference.as_deref()));
        after(list, body, last_reference)
    }

    /// The answer about the request; `None`, where no element is about it.
    pub fn answer(self) -> Option<Answer> {
        let is_refused = |answer: &Answer| matches!(answer, Answer::Refused(_));
        let mut alive: Vec<_> = self.ours.iter().filter(|a| !is_refused(a)).cloned().collect();
        match alive.len() {
            0 => self.ours.into_iter().next(),
            1 => alive.pop(),
            several => Some(Answer::Unknown(format!(
                "the provider lists {several} of them under one key: look the charge up there"
            ))),
        }
    }
}

fn after(list: &ListSettings, body: &Value, last_reference: Option<String>) -> Result<After, String> {
    let next = text_at(body, list.next_at.as_deref());
    let url = text_at(body, list.next_url.as_deref());
    let more = match &list.has_more {
        Some(pointer) => Some(body.pointer(pointer).and_then(Value::as_bool).ok_or_else(|| {
            format!("the provider's answer does not say at {pointer:?} whether there is more")
        })?),
        None if list.next_at.is_some() || list.next_url.is_some() => Some(next.is_some() || url.is_some()),
        None => None,
    };
    match more {
        Some(false) => Ok(After::End),
        None if list.whole => Ok(After::End),
        None => Ok(After::MaybeMore),
        Some(true) => match url {
            Some(url) => Ok(After::Url(url)),
            None if !list.next.is_empty() => Ok(After::Page { next, last_reference }),
            None => {
                Err("the provider has more refunds on the charge, and no next page is configured".to_owned())
            }
        },
    }
}

fn told(list: &ListSettings, item: &Value, request: &Request, reference: Option<String>) -> Answer {
    let meant = request.ask.refund_minor();
    if let (Some(pointer), Some(meant)) = (&list.amount, meant) {
        match minor_at(item, Some(pointer)) {
            Some(amount) if amount == meant => {}
            Some(amount) => {
                return Answer::Unknown(format!(
                    "the provider has {amount} minor units under this key, not {meant}: look the charge up there"
                ));
            }
            None => {
                return Answer::Unknown(format!("the provider lists it without an amount at {pointer:?}"));
            }
        }
    }
    let status = text_at(item, Some(&list.status)).unwrap_or_default();
    match list.statuses.get(&status) {
        Some(ListedStatus::Done) => Answer::Done(reference),
        Some(ListedStatus::Accepted) => Answer::Accepted(reference),
        Some(ListedStatus::Refused) => Answer::Refused(
            text_at(item, list.reason.as_deref())
                .map_or_else(|| format!("it is {status}"), |why| format!("it is {status}: {why}")),
        ),
        None => Answer::Unknown(format!("the provider lists it as {status:?}, which no status stands for")),
    }
}
