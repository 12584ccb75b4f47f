//! Flags that several verbs share.

use std::collections::BTreeSet;
use std::str::FromStr;

use chrono_tz::Tz;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::core::policy::*;
use crate::core::scope::Scope;
use crate::core::status::UnknownStatus;
use crate::core::time::{Span, Timestamp, parse_instant};
use crate::error::{Error, Result};

/// What a verb is about.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Scope")]
pub struct ScopeFlags {
    /// A performance on sale; may be repeated
    #[arg(long = "show", value_name = "SHOW")]
    pub shows: Vec<String>,
    /// A user; may be repeated
    #[arg(long = "user", value_name = "USER")]
    pub users: Vec<String>,
    /// A client session; may be repeated
    #[arg(long = "session", value_name = "SESSION")]
    pub sessions: Vec<String>,
    /// A tenant; may be repeated
    #[arg(long = "tenant", value_name = "TENANT")]
    pub tenants: Vec<String>,
    /// Orders created at this time or later: RFC 3339, or 2026-11-11 20:14 in --timezone
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Orders created before this time
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
}

/// In which zone times without an offset are.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct ZoneFlag {
    /// The IANA zone of times without an offset, such as Asia/Shanghai [default: UTC for flags; in
    /// files such times are refused without it]
    #[arg(long, value_name = "ZONE", value_parser = zone)]
    pub timezone: Option<Tz>,
}

fn zone(text: &str) -> Result<Tz, String> {
    text.parse().map_err(|_| "not an IANA time zone such as Asia/Shanghai or UTC".to_owned())
}

impl ZoneFlag {
    /// A time that was typed after a flag.
    pub fn time(self, flag: &str, text: &str) -> Result<Timestamp> {
        parse_instant(text, Some(self.timezone.unwrap_or(Tz::UTC))).map_err(|e| {
            let hint = "write it with an offset: 2026-11-11T20:14:00+08:00";
            let hint = match self.timezone {
                Some(_) => hint.to_owned(),
                None => format!("{hint}, or without one and say --timezone"),
            };
            Error::usage(format!("{flag} {text:?}: {e}")).hint(hint)
        })
    }
}

impl ScopeFlags {
    pub fn scope(&self, zone: ZoneFlag) -> Result<Scope> {
        fn set<T: From<String> + Ord>(names: &[String]) -> BTreeSet<T> {
            names.iter().cloned().map(T::from).collect()
        }
        let named = [
            ("show", &self.shows),
            ("user", &self.users),
            ("session", &self.sessions),
            ("tenant", &self.tenants),
        ];
        if let Some((flag, _)) = named.iter().find(|(_, names)| names.iter().any(|n| n.trim().is_empty())) {
            return Err(Error::usage(format!("--{flag} is given without a name"))
                .hint("name what is meant, or leave the flag out"));
        }
        let scope = Scope {
            tenants: set(&self.tenants),
            users: set(&self.users),
            shows: set(&self.shows),
            sessions: set(&self.sessions),
            from: self.from.as_deref().map(|t| zone.time("--from", t)).transpose()?,
            to: self.to.as_deref().map(|t| zone.time("--to", t)).transpose()?,
        };
        if let (Some(from), Some(to)) = (scope.from, scope.to)
            && from >= to
        {
            return Err(Error::usage(format!("--from {from} is not before --to {to}")).hint("swap the two"));
        }
        Ok(scope)
    }
}

/// One of a list of names, read as what they name.
pub fn one_of<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = UnknownStatus> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>())
}

/// What the site has decided where the contract leaves a choice.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Policies")]
pub struct PolicyFlags {
    /// The longest a client retries; orders farther apart are different intents [default: 2m]
    #[arg(long, value_name = "SPAN")]
    gap: Option<Span>,
    /// The longest an intent may last before a person must look [default: 10m]
    #[arg(long, value_name = "SPAN")]
    max_span: Option<Span>,
    /// Different idempotency keys in one intent [default: review]
    #[arg(long, value_name = "POLICY", value_parser = one_of::<DistinctKeys>(DistinctKeys::NAMES))]
    distinct_keys: Option<DistinctKeys>,
    /// Different requests without a shared key in one intent [default: review]
    #[arg(long, value_name = "POLICY", value_parser = one_of::<DifferentRequest>(DifferentRequest::NAMES))]
    different_request: Option<DifferentRequest>,
    /// Live orders without session [default: review]
    #[arg(long, value_name = "POLICY", value_parser = one_of::<WithoutSession>(WithoutSession::NAMES))]
    without_session: Option<WithoutSession>,
    /// A user id that stands for nobody in particular; may be repeated
    #[arg(long = "guest", value_name = "USER")]
    guests: Vec<String>,
    /// INITIATED payments older than this count as FAILED [default: never]
    #[arg(long, value_name = "SPAN")]
    initiated_expires: Option<Span>,
    /// Orders that are paid and have no stock [default: review]
    #[arg(long, value_name = "POLICY", value_parser = one_of::<PaidWithoutStock>(PaidWithoutStock::NAMES))]
    paid_without_stock: Option<PaidWithoutStock>,
    /// Several live orders of which none is paid [default: keep_earliest]
    #[arg(long, value_name = "POLICY", value_parser = one_of::<Unpaid>(Unpaid::NAMES))]
    unpaid: Option<Unpaid>,
    /// A ticket issued for another order than the kept one [default: review]
    #[arg(long, value_name = "POLICY", value_parser = one_of::<Ticketed>(Ticketed::NAMES))]
    ticketed: Option<Ticketed>,
    /// A cancel or refund message waiting for the kept order [default: review]
    #[arg(long, value_name = "POLICY", value_parser = one_of::<CancelPending>(CancelPending::NAMES))]
    cancel_pending: Option<CancelPending>,
    /// Captured money on a cancelled or refunded order [default: duplicates]
    #[arg(long, value_name = "POLICY", value_parser = one_of::<TerminalCaptured>(TerminalCaptured::NAMES))]
    terminal_captured: Option<TerminalCaptured>,
}

impl PolicyFlags {
    /// The contract's defaults, changed where a flag says so.
    pub fn policy(&self) -> Policy {
        let default = Policy::default();
        Policy {
            gap: self.gap.unwrap_or(default.gap),
            max_span: self.max_span.unwrap_or(default.max_span),
            distinct_keys: self.distinct_keys.unwrap_or(default.distinct_keys),
            different_request: self.different_request.unwrap_or(default.different_request),
            without_session: self.without_session.unwrap_or(default.without_session),
            guests: self.guests.iter().cloned().map(Into::into).collect(),
            initiated_expires: self.initiated_expires.or(default.initiated_expires),
            paid_without_stock: self.paid_without_stock.unwrap_or(default.paid_without_stock),
            unpaid: self.unpaid.unwrap_or(default.unpaid),
            ticketed: self.ticketed.unwrap_or(default.ticketed),
            cancel_pending: self.cancel_pending.unwrap_or(default.cancel_pending),
            terminal_captured: self.terminal_captured.unwrap_or(default.terminal_captured),
        }
    }
}
