//! A program of the site moves the money: one JSON object on its stdin, one answer on its stdout.

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Ask, Charge, ChargeState, Doing, Found, Provider, Request, Shown};
use crate::core::money::Currency;
use crate::core::time::{Span, Timestamp};
use crate::error::{Error, Result};
use crate::program::{self, Failure};

/// How long the program may take where nothing is said.
const LIMIT: Duration = Duration::from_secs(30);
/// A claim on a step holds for a minute: an answer, or none, must be there before.
const LONGEST: Duration = Duration::from_secs(45);

/// `kind = "exec"`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecSettings {
    /// The program and its arguments.
    command: Vec<String>,
    timeout: Option<String>,
    /// For how long it recognises a key; for ever, where nothing is said.
    key_lifetime: Option<String>,
}

impl ExecSettings {
    /// The provider.
    ///
    /// # Errors
    /// Usage, for an empty command and spans that make no sense.
    pub fn provider(&self) -> Result<Exec> {
        if self.command.first().is_none_or(String::is_empty) {
            return Err(Error::usage("command names no program")
                .hint("command = [\"./pay.sh\"]: a program, then its arguments"));
        }
        let limit = match &self.timeout {
            None => LIMIT,
            Some(text) => duration("timeout", text, LONGEST)?,
        };
        let key_lifetime = self.key_lifetime.as_deref().map(|text| span("key_lifetime", text)).transpose()?;
        Ok(Exec { command: self.command.clone(), limit, key_lifetime })
    }
}

/// A span under a name.
///
/// # Errors
/// Usage, where it is none.
pub(super) fn span(name: &str, text: &str) -> Result<Span> {
    text.parse().map_err(|e| {
        Error::usage(format!("{name} = {text:?}: {e}"))
            .hint(format!("write it as {name} = \"10s\" or \"24h\""))
    })
}

/// A span under a name, of at most `longest`.
///
/// # Errors
/// Usage, where it is none, or longer.
pub(super) fn duration(name: &str, text: &str, longest: Duration) -> Result<Duration> {
    let duration = Duration::from_micros(span(name, text)?.micros().unsigned_abs());
    if duration > longest {
        return Err(Error::usage(format!("{name} = {text:?} is longer than {} s", longest.as_secs()))
            .hint("a claim on a step holds for a minute, and the answer must be there before"));
    }
    Ok(duration)
}

/// A provider that is a program.
pub struct Exec {
    command: Vec<String>,
    limit: Duration,
    key_lifetime: Option<Span>,
}

/// What the program answers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    answer: Option<Word>,
    reference: Option<String>,
    why: Option<String>,
    #[serde(default)]
    listed: bool,
    status: Option<Status>,
    amount_minor: Option<i64>,
    refunded_minor: Option<i64>,
    currency: Option<Currency>,
    /// RFC 3339.
    captured_at: Option<Timestamp>,
    #[serde(default)]
    refund_refused: bool,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Done,
    Accepted,
    Refused,
    NotSent,
    Unknown,
    NotKnown,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Authorized,
    Captured,
    Failed,
    Voided,
    Disputed,
    ChargedBack,
    NotKnown,
}

impl Exec {
    async fn said(&self, input: &Value) -> Result<Said, Failure> {
        let output = program::run(&self.command, input, self.limit).await?;
        serde_json::from_slice(&output)
            .map_err(|e| Failure::Broke(format!("{}: its answer is not as it must be: {e}", self.command[0])))
    }

    fn show(&self, doing: Doing, input: &Value) -> Shown {
        Shown {
            doing,
            text: format!("{}\nstdin: {input}", self.command.join(" ")),
            json: json!({ "command": self.command, "stdin": input }),
        }
    }
}

/// What is on the program's stdin.
fn about(doing: Doing, charge: &Charge, request: Option<&Request>) -> Value {
    let currency = match request.map(|r| r.ask) {
        Some(Ask::Refund { currency, .. }) => currency,
        Some(Ask::Void) | None => charge.currency,
    };
    let amount_minor = match request {
        Some(request) => request.ask.refund_minor(),
        None => Some(charge.amount_minor),
    };
    json!({
        "do": doing.as_str(),
        "key": request.map(|r| &r.key),
        "payment_id": charge.payment_id,
        "provider": charge.provider,
        "provider_txn_id": charge.provider_txn_id,
        "tenant_id": charge.tenant_id,
        "amount_minor": amount_minor,
        "amount_major": amount_minor.map(|a| currency.show_bare(a.into())),
        "currency": currency,
        "reason": request.map(|r| &r.reason),
        "reference": request.and_then(|r| r.reference.as_ref()),
    })
}

#[async_trait(?Send)]
impl Provider for Exec {
    fn kind(&self) -> &'static str {
        "exec"
    }

    fn name(&self) -> String {
        format!("exec ({})", self.command[0])
    }

    fn key_lifetime(&self) -> Option<Span> {
        self.key_lifetime
    }

    fn shown(&self, request: &Request) -> Vec<Shown> {
        let send = Doing::from(request.ask);
        vec![
            self.show(send, &about(send, &request.charge, Some(request))),
            self.show(Doing::Query, &about(Doing::Query, &request.charge, Some(request))),
            self.show(Doing::Charge, &about(Doing::Charge, &request.charge, None)),
        ]
    }

    async fn send(&self, request: &Request, _now: Timestamp) -> Result<Answer> {
        let input = about(request.ask.into(), &request.charge, Some(request));
        Ok(match self.said(&input).await {
            Ok(said) => answer(said).unwrap_or_else(|| {
                Answer::Unknown(format!("{}: its answer to a {} is none", self.command[0], request.ask))
            }),
            Err(Failure::NotStarted(why)) => Answer::NotSent(why),
            Err(failure) => Answer::Unknown(failure.why()),
        })
    }

    async fn ask(&self, request: &Request, _now: Timestamp) -> Result<Found> {
        let input = about(Doing::Query, &request.charge, Some(request));
        let said = match self.said(&input).await {
            Ok(said) => said,
            Err(failure) => return Ok(Found::NoAnswer(failure.why())),
        };
        Ok(match said.answer {
            Some(Word::NotKnown) => Found::Nothing { listed: said.listed },
            Some(Word::Done | Word::Accepted | Word::Refused) => match answer(said) {
                Some(answer) => Found::Request(answer),
                None => Found::NoAnswer("the program did not say".to_owned()),
            },
            Some(Word::NotSent | Word::Unknown) | None => {
                Found::NoAnswer(said.why.unwrap_or_else(|| "the program does not say".to_owned()))
            }
        })
    }

    async fn charge_state(&self, charge: &Charge, _now: Timestamp) -> Result<ChargeState> {
        let said = match self.said(&about(Doing::Charge, charge, None)).await {
            Ok(said) => said,
            Err(failure) => return Ok(ChargeState::NoAnswer(failure.why())),
        };
        Ok(match said.status {
            Some(Status::Authorized) => ChargeState::Authorized,
            Some(Status::Failed) => ChargeState::Failed,
            Some(Status::Voided) => ChargeState::Voided,
            Some(Status::Disputed) => ChargeState::Disputed,
            Some(Status::ChargedBack) => ChargeState::ChargedBack,
            Some(Status::NotKnown) => ChargeState::NotKnown,
            Some(Status::Captured) => match (said.amount_minor, said.refunded_minor) {
                (Some(amount_minor), Some(refunded_minor)) => ChargeState::Captured {
                    captured_at: said.captured_at,
                    amount_minor,
                    refunded_minor,
                    currency: said.currency.unwrap_or(charge.currency),
                    refund_refused: said.refund_refused,
                },
                _ => ChargeState::NoAnswer(
                    "the program says captured, without amount_minor and refunded_minor".to_owned(),
                ),
            },
            None => ChargeState::NoAnswer(said.why.unwrap_or_else(|| "the program does not say".to_owned())),
        })
    }
}

/// What is said of a request; `None`, where it is no answer to a request that was sent.
fn answer(said: Said) -> Option<Answer> {
    let why = |why: Option<String>, or: &str| why.unwrap_or_else(|| or.to_owned());
    Some(match said.answer? {
        Word::Done => Answer::Done(said.reference),
        Word::Accepted => Answer::Accepted(said.reference),
        Word::Refused => Answer::Refused(why(said.why, "the program refused it")),
        Word::NotSent => Answer::NotSent(why(said.why, "the program did not send it")),
        Word::Unknown => Answer::Unknown(why(said.why, "the program does not know")),
        Word::NotKnown => return None,
    })
}
