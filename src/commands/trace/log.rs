//! What is to be known of the log before anything that is told by it.

use super::sheets::Traced;
use crate::commands::count;
use crate::core::time::Span;
use crate::core::trace::{Log, NEAR};

fn n(n: u64, what: &str) -> String {
    count(usize::try_from(n).unwrap_or(usize::MAX), what)
}

fn are(n: u64) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

impl Traced<'_> {
    /// How log and orders do not fit, where they do not.
    pub fn log_warning(&self) -> Option<String> {
        let trace = self.trace;
        let log = trace.log().filter(|log| log.lines > 0)?;
        if trace.is_beside_its_log() {
            return self.beside(log);
        }
        let fit = &trace.fit;
        let mut parts = Vec::new();
        if fit.lacks_lines() {
            let (orders, without) = (n(fit.orders, "order"), fit.orders_without_line);
            parts.push(format!(
                "of {orders} that were written while the log went on, {without} {} without a line in it, so what came is \
                 not known and may count twice",
                are(without)
            ));
        }
        if fit.lacks_orders() {
            let (lines, without) = (n(fit.lines, "line"), fit.lines_without_order);
            let they = if without == 1 { "it is an arrival" } else { "they are arrivals" };
            parts.push(format!(
                "of {lines} with an answer, {without} left no order here; {they} all the same"
            ));
        }
        if fit.is_layered() {
            let (they, tell) = if fit.layered == 1 { ("line", "tells") } else { ("lines", "tell") };
            parts.push(format!(
                "{} {they} of the log {tell} of an attempt that another line tells of, too, as those of a gateway and of \
                 the service behind it do, so arrivals count twice: leave the lines of one of the two out",
                fit.layered
            ));
        }
        if fit.is_of_answers() {
            parts.push(format!(
                "of {} that name their order, {} {} later than it, and {} would not be less the time until the answer: \
                 `at` is to be when a request came in, not when it was answered",
                n(fit.answered, "line"),
                fit.answered_later,
                are(fit.answered_later),
                fit.answered_at,
            ));
        } else if let Some(later) = fit.later.filter(|_| fit.is_off()) {
            parts.push(format!(
                "of {} with a line, {} {} not of its time; the line in their middle is {} {} than can be: do the clocks \
                 differ, or is the zone another one (--timezone)?",
                n(fit.matched, "order"),
                fit.off,
                are(fit.off),
                later.abs(),
                if later.micros() < 0 { "earlier" } else { "later" },
            ));
        }
        (!parts.is_empty()).then(|| format!("WARNING: {}", parts.join("; ")))
    }

    /// That the log hardly has a line of these orders.
    fn beside(&self, log: &Log) -> Option<String> {
        let trace = self.trace;
        let orders = trace.purchases.intents().iter().flat_map(|intent| &intent.orders);
        let times = || orders.clone().map(|rows| rows.order.created_at);
        let mut text = format!(
            "WARNING: of {} only {} beside a line of the access log, so what came is not known and may count twice; its \
             lines are from {} to {}, the orders from {} to {}",
            count(trace.orders(), "order"),
            if trace.beside == 1 { "1 stands".to_owned() } else { format!("{} stand", trace.beside) },
            log.first?,
            log.last?,
            times().min()?,
            times().max()?,
        );
        if let Some(later) = log.later.filter(|later| later.abs() > NEAR) {
            // Zones differ by quarters of an hour.
            let quarter = Span::from_mins(15).micros();
            let about = later.abs().micros().saturating_add(quarter / 2) / quarter * quarter;
            text += &format!(
                "; those that name a purchase are about {} {} than it. Is it the right log, and are its times in the zone \
                 that they are taken for (--timezone)?",
                Span::from_micros(about),
                if later.micros() < 0 { "earlier" } else { "later" }
            );
        } else {
            text += ". Is it the right log, and are its ids those of the ledgers?";
        }
        Some(text)
    }

    /// What the log has, and what it has not.
    pub fn log_told(&self) -> Vec<String> {
        let Some(log) = self.trace.log() else {
            return vec![
                "There is no access log: when requests came, which attempt each was and whether its answer was lost is \
                 not in the ledgers, so each order stands for one arrival"
                    .to_owned(),
            ];
        };
        if log.lines == 0 {
            return vec![
                "The access log has no line, so each order stands for one arrival; of a log in a table only the time of \
                 these purchases is read"
                    .to_owned(),
            ];
        }
        let placed: u64 = log.placed.values().sum();
        let by: Vec<_> = log.placed.iter().map(|(basis, n)| format!("{n} by {basis}")).collect();
        let by = if by.is_empty() { String::new() } else { format!(": {}", by.join(", ")) };
        let twice = if log.twice > 0 { format!("; {} twice", n(log.twice, "line")) } else { String::new() };
        let mut told = vec![format!(
            "{} of the access log, {placed} of these purchases{by}{twice}",
            n(log.lines, "line")
        )];
        let lacks = [(log.lines_with_trace, "a trace id"), (log.lines_with_key, "an idempotency key")];
        let lacks: Vec<_> = lacks.iter().filter(|(lines, _)| *lines == 0).map(|(_, what)| *what).collect();
        if !lacks.is_empty() {
            told.push(format!("No line of the access log has {} (--access-map)", lacks.join(" or ")));
        }
        let fit = &self.trace.fit;
        if fit.inferred > 0 {
            told.push(format!(
                "{} {} with a request by buyer and time alone, which is inferred",
                n(fit.inferred, "order"),
                are(fit.inferred),
            ));
        }
        if fit.rivalled > 0 {
            told.push(format!(
                "{} may be another request's than the one it is with, since more than one was under way",
                n(fit.rivalled, "order"),
            ));
        }
        if fit.reused > 0 {
            told.push(format!(
                "{} {} the request id of another request, which was answered before: they are not taken for one",
                n(fit.reused, "line"),
                if fit.reused == 1 { "has" } else { "have" },
            ));
        }
        if fit.unknown > 0 {
            let more = if fit.unknown > fit.unknown_orders.len() as u64 { ", …" } else { "" };
            told.push(format!(
                "{} of these purchases {} an order that is not among those that were read, and may be lost: {}{more}",
                n(fit.unknown, "line"),
                if fit.unknown == 1 { "names" } else { "name" },
                fit.unknown_orders.join(", "),
            ));
        }
        told
    }
}
