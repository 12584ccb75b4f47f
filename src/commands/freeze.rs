//! `onefold freeze`: hold a scope still.

use clap::Args;
use serde_json::json;

use super::flags::{ScopeFlags, ZoneFlag};
use super::{caveat, new_id, now};
use crate::config::Config;
use crate::core::freeze::{Effect, Freeze, FreezeMode};
use crate::core::time::Span;
use crate::error::{Error, Result};
use crate::report::{Column, Report, Table, on_one_line};
use crate::store::Store;
use crate::store::freezes::FreezeRequest;

/// Freeze a scope: record who holds what still, under which token and for how long
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold freeze --show S-204 --reason 'retries double the orders'
  onefold freeze --show S-204 --user U-7318 --effects ticketing,messages \\
      --for 1h --reason 'one buyer'
  onefold freeze --show S-204 --enforce --reason 'retries double the orders'
  onefold freeze --show S-204 --enforce --install-now \\
      --reason 'no time for init --enforce'
  onefold freeze --renew F-5c1d2e3f40
  onefold freeze --take-over F-5c1d2e3f40 \\
      --reason 'the laptop of its holder is dead'")]
pub struct FreezeArgs {
    /// Why: whoever runs into the freeze reads it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// What is to stop [default: auto-payment,ticketing,stock-release,messages]
    #[arg(long, value_name = "EFFECT", value_delimiter = ',')]
    effects: Vec<Effect>,
    /// Whose messages are to stop [default: those of every topic]
    #[arg(long, value_name = "TOPIC", value_delimiter = ',')]
    topics: Vec<String>,
    /// Let the databases refuse what is to stop, by the triggers of `init --enforce`
    #[arg(long, conflicts_with = "advisory")]
    enforce: bool,
    /// With --enforce: install missing triggers now; gives up where a table stays locked for 2 s
    #[arg(long, requires = "enforce")]
    install_now: bool,
    /// Only record it, and let plans be applied all the same
    #[arg(long)]
    advisory: bool,
    /// How long the lease lasts unless it is renewed
    #[arg(long = "for", value_name = "SPAN", default_value = "30m")]
    lease: Span,
    /// Renew your freeze, also one whose lease has run out while nobody took its scope
    #[arg(long, value_name = "FREEZE", conflicts_with_all = ["shows", "users", "sessions", "tenants", "from", "to", "effects", "topics", "take_over"])]
    renew: Option<String>,
    /// Take over a freeze whose holder is gone: the next token, and the old one is fenced off
    #[arg(long, value_name = "FREEZE", requires = "reason", conflicts_with_all = ["shows", "users", "sessions", "tenants", "from", "to", "effects", "topics", "enforce", "advisory"])]
    take_over: Option<String>,
    #[command(flatten)]
    zone: ZoneFlag,
    #[command(flatten)]
    scope: ScopeFlags,
}

/// A freeze that nobody renews must end one day.
const LONGEST: Span = Span::from_secs(30 * 24 * 60 * 60);

pub async fn run(config: &Config, args: FreezeArgs) -> Result<Report> {
    if args.lease > LONGEST {
        return Err(Error::usage(format!("--for {} is longer than {LONGEST}", args.lease))
            .hint("take a shorter lease, and renew it while it is needed: onefold freeze --renew FREEZE"));
    }
    let reason = args.reason.as_deref().map(str::trim).filter(|r| !r.is_empty());
    for (what, text) in [("--reason", reason.unwrap_or_default()), ("--owner", &config.actor)] {
        // Databases put both into their errors, as they are.
        if on_one_line(text) != text {
            return Err(Error::usage(format!("{what} holds a line break or another control character"))
                .hint("write it as one line of plain text"));
        }
    }
    let store = config.open_ready().await?;
    let mode = match (args.enforce, args.advisory) {
        (true, _) => FreezeMode::Enforced,
        (_, true) => FreezeMode::Advisory,
        _ => FreezeMode::Recorded,
    };
    if args.install_now {
        store.install_guards().await?;
    } else if args.enforce {
        store.must_be_guarded().await?;
    }
    let (freeze, what) = if let Some(freeze_id) = &args.renew {
        let renewed = store.renew(freeze_id, &config.actor, None, args.lease, true, now()).await?;
        (with_mode(&store, renewed, mode).await?, "renewed")
    } else if let Some(freeze_id) = &args.take_over {
        let reason = reason.ok_or_else(|| needs_reason("onefold freeze --take-over F --reason TEXT"))?;
        (store.take_over(freeze_id, &config.actor, reason, args.lease, now()).await?, "taken over")
    } else {
        let scope = args.scope.scope(args.zone)?;
        if scope.tenants.is_empty()
            && scope.users.is_empty()
            && scope.shows.is_empty()
            && scope.sessions.is_empty()
        {
            return Err(Error::usage("a freeze needs a tenant, show, user or session")
                .hint("onefold freeze --show S-204 --reason TEXT"));
        }
        let effects = if args.effects.is_empty() { Effect::ALL.to_vec() } else { args.effects.clone() };
        let request = FreezeRequest {
            freeze_id: new_id("F"),
            owner: config.actor.clone(),
            reason: reason
                .ok_or_else(|| needs_reason("onefold freeze --show S-204 --reason TEXT"))?
                .to_owned(),
            scope,
            effects,
            topics: args.topics.iter().cloned().collect(),
            mode,
            lease: args.lease,
        };
        (store.freeze(&request, now()).await?, "frozen")
    };
    // It holds already: what cannot be read now is no reason to say that it failed.
    let is_empty = matches!(store.has_rows_in(&freeze.scope).await, Ok(false));
    let mut report = report(&freeze, what, paid(&store));
    report.json["is_empty"] = json!(is_empty);
    Ok(if is_empty { report.line("No row is in this scope yet: is the name right?") } else { report })
}

/// A freeze as it is renewed: only recorded until now, it may become more than that, and never less.
async fn with_mode(store: &Store, freeze: Freeze, mode: FreezeMode) -> Result<Freeze> {
    match (freeze.mode, mode) {
        (_, FreezeMode::Recorded) => Ok(freeze),
        (is, wanted) if is == wanted => Ok(freeze),
        (FreezeMode::Enforced, _) => Err(Error::usage(format!("{} is enforced", freeze.freeze_id))
            .hint("thaw it, and freeze with --advisory, if that is meant")),
        (_, wanted) => store.set_mode(&freeze.freeze_id, &freeze.owner, wanted, now()).await,
    }
}

fn needs_reason(hint: &str) -> Error {
    Error::usage("a freeze needs a reason: whoever runs into it reads it").hint(hint)
}

/// What becomes of an order that becomes PAID while automatic payment is frozen.
fn paid(store: &Store) -> &'static str {
    if !store.payments_are_beside_orders() {
        "but an order may become PAID, since its payments are in another database"
    } else if store.paid_is_judged_at_commit() {
        "an order whose captured charge it sees at commit may become PAID"
    } else {
        "an order whose captured charge it sees may become PAID; where the service writes PAID before the capture \
         in one transaction, PAID is refused: stop that service, or the capture may be rolled back with it"
    }
}

fn report(freeze: &Freeze, what: &str, paid: &str) -> Report {
    let mut effects =
        Table::new([Column::exact("EFFECT"), Column::prose("WHAT STOPS"), Column::prose("HOW")]);
    for effect in &freeze.effects {
        effects.row([effect.to_string(), effect.meaning().to_owned(), how(freeze, *effect, paid)]);
    }
    let is_enforced = freeze.mode == FreezeMode::Enforced;
    let enforced: Vec<_> = freeze
        .effects
        .iter()
        .map(|e| json!({ "effect": e, "enforced": is_enforced, "recorded": true }))
        .collect();
    let report = Report::new(json!({ "freeze": freeze, "what": what, "effects": enforced }))
        .title(format!("{} {what}: {}", freeze.freeze_id, freeze.scope.in_words()))
        .line(format!("held by {} under token {} until {}", freeze.owner, freeze.token, freeze.lease_until))
        .line(format!("as of {}: {}", freeze.frozen_at, freeze.reason))
        .table(effects);
    caveat(freeze).into_iter().fold(report, Report::line)
}

fn how(freeze: &Freeze, effect: Effect, paid: &str) -> String {
    let mut how = freeze.mode.meaning().to_owned();
    if freeze.mode == FreezeMode::Enforced && effect == Effect::AutoPayment {
        how = format!("{how}; {paid}");
    }
    if effect == Effect::Messages && !freeze.topics.is_empty() {
        how = format!("topics {}: {how}", freeze.topics.iter().cloned().collect::<Vec<_>>().join(", "));
    }
    how
}
