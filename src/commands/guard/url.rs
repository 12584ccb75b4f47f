//! `onefold guard drill --url`: the same request, many times at once, to a service of the user's.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::super::confirm::confirm;
use super::super::progress::Progress;
use super::super::{count, new_id};
use super::drill::{Stop, in_words, latency};
use crate::config::Config;
use crate::core::replies::Replies;
use crate::core::time::Span;
use crate::error::{Error, Exit, Result};
use crate::execute::drill::http::Target;
use crate::providers::http::secrets::{Secrets, Source};
use crate::providers::http::wire::{Outgoing, Wire, is_loopback};
use crate::report::{Column, Report, Table, print_note};

#[derive(Debug, Args)]
#[command(next_help_heading = "At a service's door")]
pub struct UrlFlags {
    /// Send the requests there, instead of into a scratch
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    #[arg(long, value_name = "METHOD", default_value = "POST", requires = "url")]
    method: String,
    /// A header, as 'NAME: VALUE'; {env:NAME} and {file:PATH} in it stand for secrets; may be repeated
    #[arg(long = "header", value_name = "HEADER", requires = "url")]
    headers: Vec<String>,
    /// What is sent; @FILE for what is in a file
    #[arg(long, value_name = "TEXT|@FILE", requires = "url")]
    body: Option<String>,
    /// The header that the key stands in
    #[arg(long, value_name = "NAME", default_value = "Idempotency-Key", requires = "url")]
    key_header: String,
    /// The key of every round [default: a new one each round]
    #[arg(long, value_name = "KEY", requires = "url")]
    key: Option<String>,
    /// A JSON pointer to a member of answers that does not count, such as /served_at; may be repeated
    #[arg(long = "ignore", value_name = "POINTER", requires = "url")]
    ignored: Vec<String>,
    /// How long an answer is waited for
    #[arg(long, value_name = "SPAN", default_value = "30s", requires = "url")]
    timeout: Span,
    /// Certificates, as PEM, that are trusted beside the public ones
    #[arg(long, value_name = "FILE", requires = "url")]
    ca_file: Option<PathBuf>,
    /// Send without asking
    #[arg(long, requires = "url")]
    yes: bool,
}

impl UrlFlags {
    pub const fn is_given(&self) -> bool {
        self.url.is_some()
    }
}

#[derive(Clone, Copy, Debug)]
pub struct HowOften {
    pub rounds: u64,
    pub requests: usize,
    pub concurrency: usize,
}

/// Headers that are secrets, whatever else is.
const SECRET: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

pub async fn run(config: &Config, flags: UrlFlags, how_often: HowOften) -> Result<Report> {
    let url = flags.url.as_deref().unwrap_or_default();
    let mut outgoing = Outgoing::new(&flags.method, url)?;
    if !outgoing.url.username().is_empty() || outgoing.url.password().is_some() {
        return Err(Error::usage(
            "the URL holds a user or a password, which anybody may read in the list of processes",
        )
        .hint("--header 'Authorization: Basic {env:CREDENTIALS}'"));
    }
    if let Some(pointer) = flags.ignored.iter().find(|pointer| !pointer.starts_with('/')) {
        return Err(Error::usage(format!("{pointer:?} is no JSON pointer")).hint("such as /order/served_at"));
    }
    let headers = flags.headers.iter().map(|text| Header::parse(text)).collect::<Result<Vec<_>>>()?;
    let sources: BTreeMap<_, _> =
        headers.iter().filter_map(|h| Some((h.name.clone(), h.secret.clone()?))).collect();
    let secrets = Secrets::read(&sources, |name| std::env::var(name).ok()).map_err(|e| {
        e.hint("'NAME: … {env:VARIABLE}', or {file:PATH} for a file that only its owner may read")
    })?;
    if !sources.is_empty() && outgoing.url.scheme() == "http" && !is_loopback(&outgoing.url) {
        return Err(Error::usage("a secret would be sent over plain http").hint("https:// is for secrets"));
    }
    for header in &headers {
        outgoing =
            outgoing.header(&header.name, &header.value(secrets.get(&header.name).unwrap_or_default()))?;
    }
    outgoing.body = flags.body.as_deref().map(body).transpose()?;
    let is_json = outgoing.body.as_ref().is_some_and(|b| serde_json::from_str::<Value>(b).is_ok());
    if is_json && !outgoing.has_header("content-type") {
        outgoing = outgoing.header("content-type", "application/json")?;
    }
    // Before anything is sent it must be sure that all of it can be.
    let keys = flags.key.clone();
    let key = move || keys.clone().unwrap_or_else(|| new_id("drill"));
    outgoing.clone().header(&flags.key_header, &key())?;
    let target = Target {
        wire: &Wire::new(flags.timeout.duration(), flags.ca_file.as_deref())?,
        outgoing,
        key_header: flags.key_header.clone(),
        secrets,
        ignored: flags.ignored.clone(),
        timeout: flags.timeout.duration(),
        rounds: how_often.rounds,
        requests: how_often.requests,
        concurrency: how_often.concurrency.min(how_often.requests),
    };
    let sent = told(&target, &flags, &headers);
    if !config.format.is_json() && (!config.quiet || !flags.yes) {
        sent.iter().for_each(|line| print_note(line));
    }
    if !flags.yes {
        confirm("Send it?", "a drill asks before it sends anything", "the same again with --yes")
            .map_err(|e| e.details(&json!({ "would_send": sent })))?;
    }
    let mut stop = Stop::listen()?;
    let progress = Progress::new(config, "asking");
    let watch = |replies: &Replies| {
        progress.at(format!(
            "round {} of {}, at most {} a key",
            replies.rounds,
            how_often.rounds,
            count(replies.most_results, "result")
        ));
    };
    let ended = tokio::select! {
        ended = target.run(key, watch) => ended,
        () = stop.heard() => Err(Error::failure("interrupted: what was sent is sent")
            .hint("look at what the service has made of it")),
    };
    progress.end();
    Ok(report(&target, &ended?))
}

/// What will be sent where, and how often.
fn told(target: &Target<'_>, flags: &UrlFlags, headers: &[Header]) -> Vec<String> {
    let mut lines = vec![format!("{} {}", target.outgoing.method, target.outgoing.url)];
    lines.extend(headers.iter().map(|h| format!("  {}: {}", h.name, h.value("***"))));
    lines.push(match &flags.key {
        Some(key) => format!("  {}: {key}", flags.key_header),
        None => format!("  {}: a new one each round", flags.key_header),
    });
    if let Some(body) = &target.outgoing.body {
        lines.push(format!("  a body of {}", count(body.len(), "byte")));
    }
    lines.push(format!(
        "{} of {}, {} at once: {} in all",
        count(usize::try_from(target.rounds).unwrap_or(usize::MAX), "round"),
        count(target.requests, "request"),
        target.concurrency,
        target.rounds.saturating_mul(target.requests as u64)
    ));
    lines
}

fn report(target: &Target<'_>, replies: &Replies) -> Report {
    let method = target.outgoing.method.as_str();
    let json = json!({
        "url": target.outgoing.url.as_str(),
        "method": method,
        "key_header": target.key_header,
        "rounds": replies.rounds,
        "requests": target.requests,
        "concurrency": target.concurrency,
        "sent": replies.requests,
        "answers": replies.kinds.values().collect::<Vec<_>>(),
        "not_sent": replies.not_sent,
        "lost": replies.lost,
        "why": replies.why,
        "latency_us": latency(&replies.latencies),
        "most_results_of_a_key": replies.most_results,
        "keys_with_several_results": replies.doubled,
        "several_results": replies.told,
        "keys_without_success": replies.without_success,
    });
    let mut table =
        Table::new([Column::exact("ANSWER"), Column::number("HOW OFTEN"), Column::prose("WHICH IS")]);
    for kind in replies.kinds.values() {
        let which = match kind.status {
            200..300 => "a success",
            409 => "refused: the key is in use, or another request's",
            401 | 403 => "not allowed",
            422 => "refused: perhaps the key is another request's",
            429 => "too many at once",
            _ => "no success",
        };
        table.row([format!("HTTP {}", kind.status), kind.answers.to_string(), which.to_owned()]);
    }
    let why = replies.why.clone().unwrap_or_default();
    for (what, n) in [("not sent", replies.not_sent), ("no answer", replies.lost)] {
        if n > 0 {
            table.row([what.to_owned(), n.to_string(), why.clone()]);
        }
    }
    let report = Report::new(json)
        .line(format!("{} to {} {}.", count_of(replies.requests, "request"), method, target.outgoing.url))
        .table(table)
        .line(in_words(&replies.latencies));
    let report = if replies.is_bare {
        report.line("Some successes have no body: nothing tells those apart.")
    } else {
        report
    };
    if replies.doubled > 0 {
        let mut table = Table::new([Column::exact("KEY"), Column::prose("DIGESTS OF ITS RESULTS")]);
        for doubled in &replies.told {
            table.row([doubled.key.clone(), doubled.results.iter().cloned().collect::<Vec<_>>().join(" ")]);
        }
        return report
            .line(format!(
                "MORE THAN ONE RESULT under {}, up to {}.",
                count_of(replies.doubled, "key"),
                replies.most_results
            ))
            .table(table)
            .line("If only a time or the like differs, name it: --ignore /POINTER")
            .exit(Exit::Violations);
    }
    match replies.most_results {
        0 => report.line("Nothing succeeded, so nothing is proven.").exit(Exit::Failure),
        _ => report.line("One result for each key that had one."),
    }
}

fn count_of(n: u64, what: &str) -> String {
    count(usize::try_from(n).unwrap_or(usize::MAX), what)
}

fn body(text: &str) -> Result<String> {
    match text.strip_prefix('@') {
        None => Ok(text.to_owned()),
        Some(file) => std::fs::read_to_string(file).map_err(|e| {
            Error::usage(format!("cannot read {file}: {e}")).hint("--body TEXT, or --body @FILE")
        }),
    }
}

/// A header with at most one secret in it.
struct Header {
    name: String,
    before: String,
    secret: Option<Source>,
    after: String,
}

impl Header {
    fn parse(text: &str) -> Result<Self> {
        let (name, value) = text.split_once(':').ok_or_else(|| {
            // It may be a secret, so it is not told.
            Error::usage("a header has no colon").hint("--header 'Accept: application/json'")
        })?;
        let (name, value) = (name.trim().to_lowercase(), value.trim());
        let source = |place: &str| match place.split_once(':') {
            Some(("env", name)) => Some(Source::Env(name.to_owned())),
            Some(("file", path)) => Some(Source::File(path.into())),
            _ => None,
        };
        let braced = value.split_once('{').and_then(|(before, rest)| {
            let (place, after) = rest.split_once('}')?;
            Some((before, source(place)?, after))
        });
        // The whole of it may stand without braces.
        let found = braced.or_else(|| Some(("", source(value)?, "")));
        if let Some((before, secret, after)) = found {
            return Ok(Self {
                name,
                before: before.to_owned(),
                secret: Some(secret),
                after: after.to_owned(),
            });
        }
        if SECRET.contains(&name.as_str()) {
            return Err(Error::usage(format!(
                "the value of {name} would stand where anybody may read it: in the list of processes"
            ))
            .hint(format!("--header '{name}: {{env:NAME}}', or {{file:PATH}}")));
        }
        Ok(Self { name, before: value.to_owned(), secret: None, after: String::new() })
    }

    fn value(&self, secret: &str) -> String {
        match self.secret {
            Some(_) => format!("{}{secret}{}", self.before, self.after),
            None => self.before.clone(),
        }
    }
}
