//! Any provider that speaks HTTP and JSON. How it is asked and what its answers mean is configuration;
//! what holds for all of them is here: what is not known is said to be unknown, a repeat goes out only
//! where it is safe, and nothing secret is told.

mod listed;
mod operation;
mod patience;
mod rules;
pub mod secrets;
mod settings;
mod template;
pub mod wire;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time::Instant;

pub use settings::HttpSettings;

use self::listed::{After, Findings};
use self::operation::{Operation, currency_at, minor_at, must_be_base};
use self::patience::Breaker;
use self::rules::{Means, first, text_at};
use self::secrets::Secrets;
use self::template::{Facts, Reveal, is_field};
use self::wire::{Exchange, Outgoing, Reply, Wire};
use super::exec::{duration, span};
use super::{Answer, Charge, ChargeState, Doing, Found, Provider, Request, Shown};
use crate::core::money::Currency;
use crate::core::time::{Span, Timestamp};
use crate::error::{Error, Result};

/// How long one try may take where nothing is said.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A claim on a step holds for a minute: all tries together end well before.
const ALL_TRIES: Duration = Duration::from_secs(40);
const ATTEMPTS: u32 = 3;
const FAILURES: u32 = 5;
const COOL_DOWN: Duration = Duration::from_secs(30);
const LONGEST_COOL_DOWN: Duration = Duration::from_secs(3600);
/// How many pages of a list are read.
const PAGES: usize = 50;
/// How much of a provider's own words is told, in characters.
const WORDS: usize = 300;

/// A provider that is asked over HTTP.
pub struct Http {
    base_url: String,
    operations: BTreeMap<Doing, Vec<Operation>>,
    /// Not asked to move or to tell money of these.
    other_minor_units: Vec<Currency>,
    timeout: Duration,
    key_lifetime: Option<Span>,
    attempts: u32,
    breaker: Breaker,
    secrets: Secrets,
    wire: Wire,
}

/// What is checked of the settings before any secret is read.
struct Checked {
    operations: BTreeMap<Doing, Vec<Operation>>,
    timeout: Duration,
    key_lifetime: Option<Span>,
    attempts: u32,
    breaker: Breaker,
}

impl HttpSettings {
    /// Checks all that can be checked without the secrets.
    ///
    /// # Errors
    /// Usage, naming the key that is wrong.
    pub fn check(&self) -> Result<()> {
        self.checked().map(drop)
    }

    /// The provider; `variable` gives what the environment says.
    ///
    /// # Errors
    /// Usage, for settings that make no sense and secrets that are not there.
    pub fn provider(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Http> {
        let Checked { operations, timeout, key_lifetime, attempts, breaker } = self.checked()?;
        Ok(Http {
            base_url: self.shape.base_url.clone(),
            operations,
            other_minor_units: self.shape.other_minor_units.clone(),
            timeout,
            key_lifetime,
            attempts,
            breaker,
            secrets: Secrets::read(&self.shape.secrets, variable)?,
            wire: Wire::new(timeout, self.shape.ca_file.as_deref())?,
        })
    }

    fn checked(&self) -> Result<Checked> {
        let shape = &self.shape;
        must_be_base(&shape.base_url)?;
        if let Some(name) = shape.values.keys().find(|name| is_field(name)) {
            return Err(Error::usage(format!("values.{name}: every request has a field of this name"))
                .hint("name your own value otherwise"));
        }
        let mut operations = BTreeMap::new();
        for doing in [Doing::Refund, Doing::Void, Doing::Query, Doing::Charge] {
            let Some(variants) = self.operations.get(doing.as_str()) else { continue };
            let last = variants.len() - 1;
            let mut checked = Vec::new();
            for (i, (condition, settings)) in variants.iter().enumerate() {
                let place = if i == last {
                    doing.as_str().to_owned()
                } else {
                    format!("{}.variant[{i}]", doing.as_str())
                };
                checked
                    .push(Operation::new(doing, condition, settings, shape).map_err(|e| e.context(place))?);
            }
            operations.insert(doing, checked);
        }
        let needs_charge = operations.values().flatten().any(|o: &Operation| o.only_authorized);
        if needs_charge && !operations.contains_key(&Doing::Charge) {
            return Err(Error::usage("void.only_authorized needs the charge query, which is not there")
                .hint("say how the provider is asked about a charge: [providers.NAME.charge]"));
        }
        let attempts = shape.attempts.unwrap_or(ATTEMPTS);
        let failures = shape.breaker.failures.unwrap_or(FAILURES);
        if !(1..=10).contains(&attempts) || failures == 0 {
            return Err(Error::usage("attempts must be 1 to 10, and breaker.failures at least 1")
                .hint("attempts = 1 never repeats a request"));
        }
        Ok(Checked {
            operations,
            timeout: match &shape.timeout {
                None => TIMEOUT,
                Some(text) => duration("timeout", text, ALL_TRIES)?,
            },
            key_lifetime: shape.key_lifetime.as_deref().map(|text| span("key_lifetime", text)).transpose()?,
            attempts,
            breaker: Breaker::new(
                failures,
                match &shape.breaker.cool_down {
                    None => COOL_DOWN,
                    Some(text) => duration("breaker.cool_down", text, LONGEST_COOL_DOWN)?,
                },
            ),
        })
    }
}

/// How a request ended, with its repeats.
struct Ended {
    last: Exchange,
    /// Why a try before the last one may have been carried out, where one may.
    may_have_left: Option<String>,
}

impl Http {
    fn operation(&self, doing: Doing, facts: Facts<'_>) -> Option<&Operation> {
        self.operations.get(&doing)?.iter().find(|operation| operation.is_for(facts))
    }

    fn outgoing(&self, operation: &Operation, facts: Facts<'_>) -> Result<Outgoing, String> {
        self.must_count_alike(facts)?;
        operation.outgoing(facts, Reveal::Real(&self.secrets), &[])
    }

    /// Refuses amounts that the provider would read as others.
    fn must_count_alike(&self, facts: Facts<'_>) -> Result<(), String> {
        let currency = facts.currency();
        if currency != facts.charge.currency {
            return Err(format!("the charge is in {}, the request in {currency}", facts.charge.currency));
        }
        if self.other_minor_units.contains(&currency) {
            return Err(format!("the provider counts {currency} in another minor unit than ISO 4217 does"));
        }
        Ok(())
    }

    /// A provider's words, fit to be told: short, on one line, without secrets.
    fn words(&self, text: &str) -> String {
        let text = self.secrets.masked(text);
        let mut words: String =
            text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WORDS).collect();
        if text.chars().nth(WORDS).is_some() {
            words.push('…');
        }
        words
    }

    /// Sends a request, and again where `again` says of an answer that it may go out again, or where
    /// there was none and repeats are safe.
    async fn exchange(
        &self,
        outgoing: &Outgoing,
        is_safe: bool,
        deadline: Instant,
        again: impl Fn(&Reply) -> Again,
    ) -> Result<Ended, String> {
        let attempts = if is_safe { self.attempts } else { 1 };
        let mut may_have_left = None;
        let mut tries = 0;
        let rest = self.breaker.rest();
        if Instant::now() + rest + self.timeout > deadline && !rest.is_zero() {
            return Err(format!(
                "the provider asks to be left alone for another {} s",
                rest.as_secs_f64().ceil()
            ));
        }
        tokio::time::sleep(rest).await;
        loop {
            if let Err(why) = self.breaker.admit() {
                // Between two tries: what the tries before were stands.
                return match may_have_left {
                    Some(why) => Ok(Ended { last: Exchange::Lost(why), may_have_left: None }),
                    None => Err(why),
                };
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if tries == 0 && left.is_zero() {
                return Err(format!(
                    "not begun: {} s have gone by with what was before",
                    ALL_TRIES.as_secs()
                ));
            }
            tries += 1;
            let ended =
                self.wire.exchange(outgoing, self.timeout.min(left.max(Duration::from_secs(1)))).await;
            let (failed, next) = match &ended {
                Exchange::NotSent(_) | Exchange::Lost(_) => (true, Again::Yes),
                Exchange::Reply(reply) => (reply.status >= 500 || reply.is_unreadable(), again(reply)),
            };
            self.breaker.ended(!failed);
            let asked_for = match &ended {
                Exchange::Reply(reply) if matches!(reply.status, 429 | 503) => reply.retry_after,
                _ => None,
            };
            let wait = patience::wait(tries, asked_for);
            let is_last = next == Again::No || tries >= attempts || Instant::now() + wait >= deadline;
            if is_last {
                if let Some(asked_for) = asked_for {
                    self.breaker.rests(asked_for);
                }
                return Ok(Ended { last: ended, may_have_left });
            }
            match &ended {
                Exchange::Lost(why) => may_have_left = Some(why.clone()),
                Exchange::Reply(reply) if next == Again::Yes => {
                    may_have_left = Some(format!("HTTP {}", reply.status));
                }
                Exchange::Reply(_) | Exchange::NotSent(_) => {}
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// The provider's own reason, where it gives one.
    fn why(&self, operation: &Operation, reply: &Reply) -> Option<String> {
        let body = reply.body.as_ref()?;
        let why = operation.at.reason.iter().find_map(|pointer| text_at(body, Some(pointer)))?;
        Some(self.words(&why))
    }

    /// What an answer that no rule explains says.
    fn unexplained(&self, operation: &Operation, reply: &Reply) -> String {
        let what = format!("the provider answered HTTP {}", reply.status);
        match self.why(operation, reply) {
            Some(why) => format!("{what}: {why}"),
            None if reply.is_unreadable() => format!("{what} with a body that is no JSON"),
            None => what,
        }
    }

    fn reason(&self, operation: &Operation, reply: &Reply) -> String {
        self.why(operation, reply).unwrap_or_else(|| format!("the provider answered HTTP {}", reply.status))
    }

    fn reference(&self, operation: &Operation, reply: &Reply) -> Option<String> {
        let reference = text_at(reply.body.as_ref()?, operation.at.reference.as_deref())?;
        Some(self.words(&reference))
    }

    async fn send_by(&self, request: &Request, deadline: Instant) -> Answer {
        let facts = Facts::of(request);
        let Some(operation) = self.operation(request.ask.into(), facts) else {
            return Answer::NotSent(format!("no {} is configured for this provider", request.ask));
        };
        let outgoing = match self.outgoing(operation, facts) {
            Ok(outgoing) => outgoing,
            Err(lack) => return Answer::NotSent(lack),
        };
        if operation.only_authorized {
            match self.charge_by(&request.charge, deadline).await {
                ChargeState::Authorized => {}
                ChargeState::NoAnswer(why) => {
                    return Answer::NotSent(format!(
                        "whether the charge is only authorized is not known: {why}"
                    ));
                }
                other => {
                    return Answer::NotSent(format!(
                        "the provider says that the charge is {}, and a void there could give money back",
                        in_a_word(&other)
                    ));
                }
            }
        }
        let again = |reply: &Reply| match first(&operation.rules, reply).map(|rule| rule.means) {
            Some(Means::Done | Means::Accepted | Means::Refused | Means::AlreadyDone) => Again::No,
            Some(Means::NotSent) if may_pass(reply.status) => Again::NothingDone,
            Some(Means::NotSent) => Again::No,
            _ if may_pass(reply.status) => Again::Yes,
            _ => Again::No,
        };
        let Ended { last, may_have_left } =
            match self.exchange(&outgoing, operation.idempotent, deadline, again).await {
                Ok(ended) => ended,
                Err(why) => return Answer::NotSent(why),
            };
        let reply = match last {
            Exchange::Reply(reply) => reply,
            Exchange::Lost(why) => return Answer::Unknown(self.words(&why)),
            Exchange::NotSent(why) => return or_unknown(self.words(&why), may_have_left),
        };
        match first(&operation.rules, &reply).map(|rule| rule.means) {
            Some(Means::Done) => self.done(operation, &reply, request),
            Some(Means::Accepted) => Answer::Accepted(self.reference(operation, &reply)),
            Some(Means::Refused) => match may_have_left {
                None => Answer::Refused(self.reason(operation, &reply)),
                Some(before) => {
                    let why =
                        format!("a try before ended with: {before}; {}", self.reason(operation, &reply));
                    self.asked_instead(request, why, false, deadline).await
                }
            },
            Some(Means::AlreadyDone) => {
                let why =
                    format!("it is so already, and not by this request: {}", self.reason(operation, &reply));
                self.asked_instead(request, why, may_have_left.is_none(), deadline).await
            }
            Some(Means::NotSent) => or_unknown(self.reason(operation, &reply), may_have_left),
            _ => Answer::Unknown(self.unexplained(operation, &reply)),
        }
    }

    /// Done, unless the answer names another amount than was asked for.
    fn done(&self, operation: &Operation, reply: &Reply, request: &Request) -> Answer {
        let told = reply.body.as_ref().and_then(|body| minor_at(body, operation.at.amount.as_deref()));
        match told.zip(request.ask.refund_minor()) {
            Some((told, meant)) if told != meant => Answer::Unknown(format!(
                "the provider says that it gave back {told} minor units, not {meant}: look the charge up there"
            )),
            _ => Answer::Done(self.reference(operation, reply)),
        }
    }

    /// An answer that does not say whether it is about our own request: the provider is asked about it.
    /// Where it has looked through all and knows of none, it refused; `may_refuse`, where nothing of
    /// ours can still be on its way.
    async fn asked_instead(
        &self,
        request: &Request,
        why: String,
        may_refuse: bool,
        deadline: Instant,
    ) -> Answer {
        match self.found_by(request, deadline).await {
            Found::Request(answer) => answer,
            Found::Nothing { listed: true } if may_refuse => Answer::Refused(why),
            Found::Nothing { .. } => Answer::Unknown(why),
            Found::NoAnswer(silence) => Answer::Unknown(format!("{why}; {silence}")),
        }
    }

    async fn found_by(&self, request: &Request, deadline: Instant) -> Found {
        let facts = Facts::of(request);
        let Some(operation) = self.operation(Doing::Query, facts) else {
            return Found::NoAnswer(
                "the provider cannot be asked: no query is configured, its answer comes another way"
                    .to_owned(),
            );
        };
        match self.found(operation, request, deadline).await {
            Ok(found) => found,
            Err(why) => Found::NoAnswer(self.words(&why)),
        }
    }

    async fn found(
        &self,
        operation: &Operation,
        request: &Request,
        deadline: Instant,
    ) -> Result<Found, String> {
        let facts = Facts::of(request);
        let mut outgoing = self.outgoing(operation, facts)?;
        let origin = outgoing.url.origin();
        let mut findings = Findings::default();
        for _ in 0..PAGES {
            let reply = self.queried(operation, &outgoing, deadline).await?;
            if let Some(rule) = first(&operation.rules, &reply) {
                return Ok(self.found_told(operation, &reply, rule, request));
            }
            let Some(list) = &operation.list else { return Err(self.unexplained(operation, &reply)) };
            let body = reply.body.as_ref().filter(|_| (200..=299).contains(&reply.status));
            let body = body.ok_or_else(|| self.unexplained(operation, &reply))?;
            match findings.read(&list.settings, body, request)? {
                After::End => {
                    return Ok(findings
                        .answer()
                        .map_or(Found::Nothing { listed: true }, |answer| self.found_listed(answer)));
                }
                After::MaybeMore => {
                    return Ok(findings
                        .answer()
                        .map_or(Found::Nothing { listed: false }, |answer| self.found_listed(answer)));
                }
                After::Page { next, last_reference } => {
                    let facts =
                        Facts { next: next.as_deref(), last_reference: last_reference.as_deref(), ..facts };
                    let page = operation.outgoing(facts, Reveal::Real(&self.secrets), &list.next)?;
                    if page.url == outgoing.url && page.body == outgoing.body {
                        return Err("the provider's next page is the same page".to_owned());
                    }
                    outgoing = page;
                }
                After::Url(url) => {
                    let url =
                        outgoing.url.join(&url).map_err(|e| format!("the next page's URL is none: {e}"))?;
                    if url.origin() != origin {
                        return Err(
                            "the provider's next page is on another host, which is not asked".to_owned()
                        );
                    }
                    if url == outgoing.url {
                        return Err("the provider's next page is the same page".to_owned());
                    }
                    outgoing.url = url;
                }
            }
        }
        Err(format!("the provider lists more than {PAGES} pages of refunds on the charge"))
    }

    fn found_listed(&self, answer: Answer) -> Found {
        Found::Request(match answer {
            Answer::Refused(why) => Answer::Refused(self.words(&why)),
            Answer::Unknown(why) => Answer::Unknown(self.words(&why)),
            Answer::Done(reference) => Answer::Done(reference.map(|r| self.words(&r))),
            Answer::Accepted(reference) => Answer::Accepted(reference.map(|r| self.words(&r))),
            Answer::NotSent(why) => Answer::NotSent(why),
        })
    }

    fn found_told(
        &self,
        operation: &Operation,
        reply: &Reply,
        rule: &rules::Rule,
        request: &Request,
    ) -> Found {
        match rule.means {
            Means::Done => Found::Request(self.done(operation, reply, request)),
            Means::Accepted => Found::Request(Answer::Accepted(self.reference(operation, reply))),
            Means::Refused => Found::Request(Answer::Refused(self.reason(operation, reply))),
            Means::Unknown => Found::Request(Answer::Unknown(self.unexplained(operation, reply))),
            Means::Nothing => Found::Nothing { listed: rule.listed },
            _ => Found::NoAnswer(self.unexplained(operation, reply)),
        }
    }

    /// Asks, and again where no answer came: that is always safe.
    async fn queried(
        &self,
        operation: &Operation,
        outgoing: &Outgoing,
        deadline: Instant,
    ) -> Result<Reply, String> {
        let again = |reply: &Reply| match first(&operation.rules, reply) {
            None if may_pass(reply.status) => Again::Yes,
            _ => Again::No,
        };
        match self.exchange(outgoing, true, deadline, again).await?.last {
            Exchange::Reply(reply) => Ok(reply),
            Exchange::NotSent(why) | Exchange::Lost(why) => Err(why),
        }
    }

    async fn charge_by(&self, charge: &Charge, deadline: Instant) -> ChargeState {
        let facts = Facts::of_charge(charge);
        let Some(operation) = self.operation(Doing::Charge, facts) else {
            return ChargeState::NoAnswer(
                "the provider cannot be asked: no charge query is configured".to_owned(),
            );
        };
        let asked = async {
            let outgoing = self.outgoing(operation, facts)?;
            let reply = self.queried(operation, &outgoing, deadline).await?;
            let rule = first(&operation.rules, &reply).ok_or_else(|| self.unexplained(operation, &reply))?;
            charge_told(charge, operation, &reply, rule.means)
                .ok_or_else(|| self.unexplained(operation, &reply))?
        };
        asked.await.unwrap_or_else(|why: String| ChargeState::NoAnswer(self.words(&why)))
    }

    fn show(&self, doing: Doing, facts: Facts<'_>) -> Option<Shown> {
        let operation = self.operation(doing, facts)?;
        let shown = self.must_count_alike(facts).and_then(|()| operation.shown(facts));
        let (text, json) = shown.unwrap_or_else(|lack| {
            let what = format!("cannot be sent: {lack}");
            (what, json!({ "lack": lack }))
        });
        Some(Shown { doing, text, json })
    }
}

/// Whether a request goes out again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    No,
    Yes,
    /// It may, and the provider says that it did nothing so far.
    NothingDone,
}

/// Whether an answer of this status may be another one in a moment: too many requests, one of the same
/// key under way, a server in trouble.
const fn may_pass(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429) || status >= 500
}

/// Nothing left with the last try; but one before may have.
fn or_unknown(why: String, may_have_left: Option<String>) -> Answer {
    match may_have_left {
        None => Answer::NotSent(why),
        Some(before) => Answer::Unknown(format!("a try before ended with: {before}; the last one: {why}")),
    }
}

/// What an answer says of a charge: the state, or why it does not say; `None`, where only the answer
/// itself tells that.
fn charge_told(
    charge: &Charge,
    operation: &Operation,
    reply: &Reply,
    means: Means,
) -> Option<Result<ChargeState, String>> {
    let state = match means {
        Means::Authorized => ChargeState::Authorized,
        Means::Failed => ChargeState::Failed,
        Means::Voided => ChargeState::Voided,
        Means::Disputed => ChargeState::Disputed,
        Means::ChargedBack => ChargeState::ChargedBack,
        Means::NotKnown => ChargeState::NotKnown,
        Means::Captured => return Some(captured(charge, operation, reply.body.as_ref()?)),
        _ => return None,
    };
    Some(Ok(state))
}

fn captured(charge: &Charge, operation: &Operation, body: &Value) -> Result<ChargeState, String> {
    let at = &operation.at;
    let amount = |name: &str, pointer: &Option<String>| {
        let amount = minor_at(body, pointer.as_deref()).filter(|amount| *amount >= 0);
        amount.ok_or_else(|| format!("the provider says captured, without the amount that is {name}"))
    };
    let currency = match &at.currency {
        None => charge.currency,
        Some(pointer) => {
            currency_at(body, pointer).ok_or("the provider says captured, in a currency that is none")?
        }
    };
    Ok(ChargeState::Captured {
        captured_at: at.captured_at.as_ref().and_then(|pointer| time_at(body, pointer)),
        amount_minor: amount("captured", &at.amount)?,
        refunded_minor: amount("refunded", &at.refunded)?,
        currency,
        refund_refused: at
            .refund_refused
            .as_ref()
            .and_then(|pointer| body.pointer(pointer))
            .is_some_and(|value| value.as_bool() == Some(true)),
    })
}

/// A time as RFC 3339, or as seconds since 1970.
fn time_at(body: &Value, pointer: &str) -> Option<Timestamp> {
    match body.pointer(pointer)? {
        Value::String(text) => Timestamp::parse_rfc3339(text),
        Value::Number(seconds) => Some(Timestamp::from_micros(seconds.as_i64()?.checked_mul(1_000_000)?)),
        _ => None,
    }
}

const fn in_a_word(state: &ChargeState) -> &'static str {
    match state {
        ChargeState::Authorized => "authorized",
        ChargeState::Captured { .. } => "captured",
        ChargeState::Failed => "failed",
        ChargeState::Voided => "voided",
        ChargeState::Disputed => "disputed",
        ChargeState::ChargedBack => "charged back",
        ChargeState::NotKnown => "not known to it",
        ChargeState::NoAnswer(_) => "not told",
    }
}

#[async_trait(?Send)]
impl Provider for Http {
    fn kind(&self) -> &'static str {
        "http"
    }

    fn name(&self) -> String {
        format!("http ({})", self.base_url)
    }

    fn key_lifetime(&self) -> Option<Span> {
        let is_kept = |operation: &Operation| operation.idempotent;
        let refunds = self.operations.get(&Doing::Refund);
        // A key that the provider does not go by is as one that it has forgotten.
        if refunds.is_some_and(|all| all.iter().all(is_kept)) {
            self.key_lifetime
        } else {
            Some(Span::from_secs(0))
        }
    }

    fn shown(&self, request: &Request) -> Vec<Shown> {
        let (of_request, of_charge) = (Facts::of(request), Facts::of_charge(&request.charge));
        let send = self.show(request.ask.into(), of_request);
        let query = self.show(Doing::Query, of_request);
        send.into_iter().chain(query).chain(self.show(Doing::Charge, of_charge)).collect()
    }

    async fn send(&self, request: &Request, _now: Timestamp) -> Result<Answer> {
        Ok(self.send_by(request, Instant::now() + ALL_TRIES).await)
    }

    async fn ask(&self, request: &Request, _now: Timestamp) -> Result<Found> {
        Ok(self.found_by(request, Instant::now() + ALL_TRIES).await)
    }

    async fn charge_state(&self, charge: &Charge, _now: Timestamp) -> Result<ChargeState> {
        Ok(self.charge_by(charge, Instant::now() + ALL_TRIES).await)
    }
}
