//! `onefold provider test`: what would leave for a provider, and whether it answers. Moves no money.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::now;
use crate::config::Config;
use crate::core::ids::*;
use crate::core::ledger::Payment;
use crate::error::{Error, Exit, Result};
use crate::providers::{ANY, Answer, Ask, Charge, ChargeState, Doing, Found, Provider, Request, Shown};
use crate::report::Report;

/// Try a provider's configuration without moving money
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold provider test stripe --payment P-20173")]
pub struct ProviderArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Test(TestArgs),
}

/// Show what would be sent to a provider, and ask it about a request that it does not know
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold provider test stripe
  onefold provider test stripe --payment P-20173
  onefold provider test '*' --json

Refund and void are shown, and never sent; secrets are shown as ***. The
provider is asked about a refund under a key that no request has, so the
answer to expect is that it knows none. With --payment it is asked about that
charge, too; without, about a made-up one, which a real provider may answer
with an error.")]
struct TestArgs {
    /// The provider's name, as in [providers.NAME]
    name: String,
    /// A payment of the ledger
    #[arg(long, value_name = "PAYMENT")]
    payment: Option<String>,
    #[arg(long, value_name = "TENANT", default_value = "default")]
    tenant: String,
}

pub async fn run(config: &Config, args: ProviderArgs) -> Result<Report> {
    let Verb::Test(args) = args.verb;
    test(config, args).await
}

async fn test(config: &Config, args: TestArgs) -> Result<Report> {
    let store = config.open_ready().await?;
    let providers = config.providers(&store)?;
    let provider = providers.named(&args.name)?;
    let tenant_id = TenantId::from(args.tenant);
    let of_ledger = args.payment.is_some();
    let charge = match args.payment.map(RowId::from) {
        None => sample(&args.name, tenant_id)?,
        Some(id) => {
            let payment = store.read_row::<Payment>(&tenant_id, &id).await?.ok_or_else(|| {
                Error::usage(format!("there is no payment {id} of tenant {tenant_id}"))
                    .hint("name another tenant with --tenant")
            })?;
            if args.name != ANY && payment.provider != args.name {
                return Err(Error::usage(format!(
                    "payment {id} is with {:?}, not with {:?}",
                    payment.provider, args.name
                ))
                .hint(format!("onefold provider test {} --payment {id}", payment.provider)));
            }
            Charge::from(&payment)
        }
    };
    let (refund, void) = requests(charge);
    let mut shown = provider.shown(&refund);
    for more in provider.shown(&void) {
        // A query about the void is the same as about the refund, but where it says otherwise.
        if more.doing == Doing::Void || !shown.iter().any(|s| s.doing == more.doing) {
            shown.push(more);
        }
    }
    shown.sort_by_key(|s| s.doing);
    let mut report = Report::new(json!({
        "name": args.name, "provider": provider.name(), "payment_id": refund.charge.payment_id,
        "made_up": !of_ledger,
        "key_lifetime": provider.key_lifetime().map(|span| span.to_string()),
        "requests": shown.iter().map(|s| (s.doing.as_str().to_owned(), s.json.clone())).collect::<serde_json::Map<_, _>>(),
    }))
    .line(format!("{}: {}. No money moves.", args.name, provider.name()))
    .line(match provider.key_lifetime() {
        None => "It is taken to recognise a key for ever.".to_owned(),
        Some(span) if span.micros() == 0 => {
            "It is not taken to recognise a key: what it does not know is not sent again, unless it lists the \
             charge's refunds."
                .to_owned()
        }
        Some(span) => format!("It is taken to recognise a key for {span}."),
    })
    .line(if of_ledger {
        format!("Payment {}:", refund.charge.payment_id)
    } else {
        "A made-up payment; --payment takes one of the ledger:".to_owned()
    });
    for Shown { doing, text, .. } in &shown {
        let title = match doing {
            Doing::Refund | Doing::Void => format!("{} (not sent)", doing.as_str()),
            Doing::Query | Doing::Charge => doing.as_str().to_owned(),
        };
        report = report.title(title).verbatim(text);
    }
    let can = |doing: Doing| shown.iter().any(|s| s.doing == doing);
    report = report.title("answers");
    report = asked(report, provider, &refund, can(Doing::Query)).await?;
    if of_ledger {
        report = asked_about_charge(report, provider, &refund.charge, can(Doing::Charge)).await?;
    }
    Ok(report)
}

/// Asks about a request that was never made.
async fn asked(report: Report, provider: &dyn Provider, refund: &Request, can: bool) -> Result<Report> {
    if !can {
        let line = "query: it cannot be asked about a request; its answer comes another way";
        return Ok(told(report, "query", json!({ "can_be_asked": false }), line.to_owned(), Exit::Done));
    }
    let found = provider.ask(refund, now()).await?;
    let (word, why, exit) = match found {
        Found::Nothing { listed: true } => (
            "nothing",
            "it knows no such request, and has looked through all of the charge's".to_owned(),
            Exit::Done,
        ),
        Found::Nothing { listed: false } => ("nothing", "it knows no such request".to_owned(), Exit::Done),
        Found::NoAnswer(why) => ("no_answer", format!("no answer: {why}"), Exit::Undecided),
        Found::Request(Answer::Unknown(why)) => {
            ("unknown", format!("it does not know: {why}"), Exit::Undecided)
        }
        Found::Request(answer) => {
            let what = format!("it says of a request that was never made: {answer:?}; the query is wrong");
            ("wrong", what, Exit::Violations)
        }
    };
    Ok(told(report, "query", json!({ "found": word, "why": why }), format!("query: {why}"), exit))
}

async fn asked_about_charge(
    report: Report,
    provider: &dyn Provider,
    charge: &Charge,
    can: bool,
) -> Result<Report> {
    if !can || !provider.answers_at_once() {
        let line = "charge: it is not asked here, for that would leave a trace; converge asks";
        let line = if can { line } else { "charge: it cannot be asked about a charge" };
        return Ok(told(report, "charge", json!({ "asked": false }), line.to_owned(), Exit::Done));
    }
    let currency = charge.currency;
    let (word, why, exit) = match provider.charge_state(charge, now()).await? {
        ChargeState::Captured { captured_at, amount_minor, refunded_minor, currency, refund_refused } => {
            let at = captured_at.map(|at| format!(" at {at}")).unwrap_or_default();
            let refused = if refund_refused { "; it refused a refund" } else { "" };
            let what = format!(
                "captured{at}: {}, of which {} went back{refused}",
                currency.show(amount_minor.into()),
                currency.show_bare(refunded_minor.into())
            );
            let differs = amount_minor != charge.amount_minor || currency != charge.currency;
            ("captured", what, if differs { Exit::Violations } else { Exit::Done })
        }
        ChargeState::Authorized => ("authorized", "authorized, not captured".to_owned(), Exit::Done),
        ChargeState::Failed => ("failed", "failed".to_owned(), Exit::Done),
        ChargeState::Voided => ("voided", "voided".to_owned(), Exit::Done),
        ChargeState::Disputed => ("disputed", "the buyer disputes it".to_owned(), Exit::Done),
        ChargeState::ChargedBack => ("charged_back", "the buyer's bank took it back".to_owned(), Exit::Done),
        ChargeState::NotKnown => ("not_known", "it was never told of it".to_owned(), Exit::Undecided),
        ChargeState::NoAnswer(why) => ("no_answer", format!("no answer: {why}"), Exit::Undecided),
    };
    let why = if exit == Exit::Violations {
        format!("{why}; the payment ledger has {}", currency.show(charge.amount_minor.into()))
    } else {
        why
    };
    Ok(told(report, "charge", json!({ "state": word, "why": why }), format!("charge: {why}"), exit))
}

fn told(mut report: Report, what: &str, json: Value, line: String, exit: Exit) -> Report {
    report.json[what] = json;
    report.line(line).exit(exit)
}

/// A payment that there is not.
fn sample(name: &str, tenant_id: TenantId) -> Result<Charge> {
    let currency = "EUR".parse().map_err(|e| Error::failure(format!("EUR: {e}")))?;
    Ok(Charge {
        tenant_id,
        payment_id: "P-SAMPLE".into(),
        provider: name.to_owned(),
        provider_txn_id: Some("sample_txn_1".to_owned()),
        amount_minor: 1234,
        refunded_minor: 0,
        currency,
        shard: 0,
    })
}

/// A refund of what the charge has left, and a void, each under a key that no request has.
fn requests(charge: Charge) -> (Request, Request) {
    let key = |what: &str| format!("onefold-test-{what}-{}", uuid::Uuid::new_v4().simple());
    let left = charge.amount_minor.saturating_sub(charge.refunded_minor);
    let amount_minor = if left > 0 { left } else { charge.amount_minor };
    let request = |what: &str, ask| Request {
        key: key(what),
        charge: charge.clone(),
        ask,
        reason: "onefold provider test".to_owned(),
        reference: None,
    };
    let refund = request("refund", Ask::Refund { amount_minor, currency: charge.currency });
    (refund, request("void", Ask::Void))
}
