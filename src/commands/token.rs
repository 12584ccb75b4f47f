//! `onefold token drill`: how a one-time form token is taken, and what it does not cover.

use clap::{Args, Subcommand};
use serde_json::json;

use super::progress::Progress;
use super::redis::RedisFlag;
use crate::config::Config;
use crate::error::{Exit, Result};
use crate::report::{Column, Report, Table};
use crate::trials::token::{Counts, Crowd, Retried, Way};

/// Take one-time tokens many times at once on a real Redis: once each, or more?
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold token drill --redis redis://127.0.0.1:6379
  onefold token drill --rounds 1000 --requests 50")]
pub struct TokenArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Drill(DrillArgs),
}

/// One token a round, taken by all requests at once: by what DEL answers, and by GET, then DEL
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold token drill --redis redis://127.0.0.1:6379
  onefold token drill --rounds 1000 --requests 50

Afterwards the same tokens meet a gateway that repeats a request whose answer
was lost, and a queue that delivers an accepted request's message twice: what a
token does not cover. Keys are its own, under a random prefix, and are removed.
Ends with 5 where two requests got one token by DEL's answer, which cannot be.")]
struct DrillArgs {
    #[command(flatten)]
    redis: RedisFlag,
    /// How many tokens
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// How many requests take each of them
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(2..=500))]
    requests: u64,
}

pub async fn run(config: &Config, args: TokenArgs) -> Result<Report> {
    let Verb::Drill(args) = args.verb;
    let server = args.redis.server(config)?;
    let requests = usize::try_from(args.requests).unwrap_or(usize::MAX);
    let mut crowd = Crowd::gather(&server, requests).await?;
    let progress = Progress::new(config, "taking tokens");
    let mut raced = Vec::new();
    for way in Way::ALL {
        let watch = |counts: &Counts| {
            progress.at(format!("{}: round {} of {}", way.in_words(), counts.rounds, args.rounds));
        };
        raced.push((way, crowd.race(&server, way, args.rounds, watch).await?));
    }
    let retried = crowd.retried(&server, args.rounds).await?;
    let redelivered = crowd.redelivered(&server, args.rounds).await?;
    progress.end();
    Ok(tell(&server.label, args.requests, &raced, retried, redelivered))
}

fn tell(
    label: &str,
    requests: u64,
    raced: &[(Way, Counts)],
    retried: Retried,
    redelivered: Counts,
) -> Report {
    let mut table = Table::new([
        Column::exact("TAKEN BY"),
        Column::number("TOKENS"),
        Column::number("ACCEPTED"),
        Column::number("TAKEN TWICE OR MORE"),
        Column::number("MOST"),
    ]);
    for (way, counts) in raced {
        let counts = [counts.rounds, counts.accepted, counts.doubled, counts.most].map(|n| n.to_string());
        let [rounds, accepted, doubled, most] = counts;
        table.row([way.in_words().to_owned(), rounds, accepted, doubled, most]);
    }
    let mut uncovered = Table::new([
        Column::prose("WHAT A TOKEN DOES NOT COVER"),
        Column::number("TOKENS"),
        Column::number("DONE TWICE"),
        Column::prose("WHAT HAPPENED"),
    ]);
    uncovered.row([
        "the answer is lost, and the gateway sends the request again".to_owned(),
        retried.rounds.to_string(),
        retried.doubled.to_string(),
        format!(
            "{} retries refused, though the order was there; the form, loaded anew, has a new token and orders again",
            retried.refused
        ),
    ]);
    uncovered.row([
        "the message of an accepted request is delivered again".to_owned(),
        redelivered.rounds.to_string(),
        redelivered.doubled.to_string(),
        "a worker died between its effect and its word; the token was taken at the door, and no worker asks for it"
            .to_owned(),
    ]);
    let by_del = raced.iter().find(|(way, _)| *way == Way::Del).is_some_and(|(_, c)| c.doubled > 0);
    let ways: Vec<_> = raced.iter().map(|(way, counts)| json!({ "way": way, "counts": counts })).collect();
    let json = json!({ "redis": label, "requests": requests, "ways": ways, "retried": retried,
        "redelivered": redelivered });
    let report = Report::new(json)
        .title(format!("One-time tokens on redis {label}, {requests} requests for each at once"))
        .table(table)
        .table(uncovered)
        .line("A key of the client's own, unique in the order table, covers all three: `onefold guard install`.");
    if by_del { report.exit(Exit::Violations) } else { report }
}
