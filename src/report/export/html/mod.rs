//! HTML: one file that needs nothing else, written as it comes. What needs a person stands on top.

mod incident;
mod sheets;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use super::csv::shown;
use super::sums::{MONEY, STOCK, money_rows, stock_rows};
use super::target::Target;
use super::{Export, Written, count};
use crate::core::dossier::sheets::{Waiting, orders_of, reasons, waiting};
use crate::core::dossier::{Deed, Dossier, Progress};
use crate::core::explain::row_in_words;
use crate::core::money::Currency;
use crate::core::plan::{Outcome, PlannedIntent, refunds};
use crate::core::sheet::Cell;
use crate::core::words::{finding_in_words, findings_in_words};
use crate::error::Result;
use crate::report::on_one_line;
pub(super) use sheets::page;

const CSS: &str = include_str!("page.css");
const JS: &str = include_str!("page.js");

/// By which a page is known to be a report of this verb.
pub(super) fn begins(verb: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"generator\" content=\"onefold {verb}\">\n"
    )
}

/// A page up to its header.
fn opening(verb: &str, title: &str) -> String {
    format!(
        "{}\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{}</title>\n<style>\n{CSS}</style>\n</head>\n<body>\n<main>\n",
        begins(verb),
        esc(title)
    )
}

/// How much a page lists; the rest is told, and where it is.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Purchases that need a person or the provider.
    pub waiting: usize,
    /// Other purchases, those with steps first.
    pub others: usize,
    /// Entries of the journal.
    pub journal: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { waiting: 2000, others: 1000, journal: 2000 }
    }
}

/// A page that is being written.
pub struct Html {
    out: Target,
    limits: Limits,
    /// With which the plan was made.
    flags: String,
    shown: u64,
    entries: u64,
}

/// Text as it stands in a page: nothing in it is markup, steers the direction of writing or hides.
fn esc(text: &str) -> String {
    let text = on_one_line(text);
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// An id, in its own direction of writing.
fn id(text: &str) -> String {
    format!("<bdi class=\"id\">{}</bdi>", esc(text))
}

fn command(line: &str) -> String {
    format!("<code class=\"cmd\">{}</code>", esc(line))
}

fn commands(lines: &[String]) -> String {
    lines.iter().map(|line| command(line)).collect()
}

impl Html {
    /// Writes all but the journal.
    ///
    /// # Errors
    /// Failure, where it cannot be written.
    pub fn begin(dossier: &Dossier<'_>, out: Target, limits: Limits) -> Result<Self> {
        let mut page = Self { out, limits, flags: dossier.plan_flags(), shown: 0, entries: 0 };
        page.head(dossier)?;
        page.waiting(dossier)?;
        page.deeds(dossier)?;
        page.sums(dossier)?;
        page.put(&incident::section(dossier))?;
        page.intents(dossier)?;
        page.journal_head()?;
        Ok(page)
    }

    fn put(&mut self, text: &str) -> Result<()> {
        self.out.write_all(text.as_bytes()).map_err(|e| self.out.failed(&e))
    }

    fn head(&mut self, dossier: &Dossier<'_>) -> Result<()> {
        let plan = dossier.plan;
        let title = format!("{}: {}", plan.plan_id, dossier.scope().in_words());
        let freeze = dossier.freeze.map_or_else(String::new, |f| {
            format!(
                "<span>frozen <b>{}</b> by <b>{}</b>: {}</span>",
                f.frozen_at,
                esc(&dossier.text(&f.owner)),
                esc(&dossier.text(&f.reason))
            )
        });
        let carried = dossier.carried_out().map_or_else(String::new, |(first, last)| {
            format!("<span>carried out <b>{first}</b> to <b>{last}</b></span>")
        });
        self.put(&format!(
            "{opening}<header>\n\
             <p class=\"eyebrow\">onefold report · {plan_id}</p>\n<h1>{scope}</h1>\n\
             <p class=\"head\"><span><b>{state}</b></span><span>as of <b>{as_of}</b></span>\
             <span>planned <b>{made_at}</b> by <b>{made_by}</b></span>{freeze}{carried}</p>\n\
             <p class=\"digest mono\">{digest}</p>\n\
             <nav><a href=\"#person\">Needs a person</a><a href=\"#deeds\">What happens</a>\
             <a href=\"#sums\">Sums</a><a href=\"#incident\">The incident</a>\
             <a href=\"#intents\">Purchases</a><a href=\"#journal\">Journal</a>\
             <a href=\"#about\">About</a></nav>\n</header>\n",
            opening = opening("report", &title),
            plan_id = esc(&plan.plan_id),
            scope = esc(&capital(&dossier.scope().in_words())),
            state = esc(&dossier.state_in_words()),
            as_of = plan.as_of,
            made_at = plan.made_at,
            made_by = esc(&dossier.text(dossier.made_by)),
            digest = esc(&plan.digest),
        ))
    }

    /// What needs a person or the provider, by what must be decided.
    fn waiting(&mut self, dossier: &Dossier<'_>) -> Result<()> {
        let groups = waiting(dossier.plan);
        let all = groups.iter().map(|group| group.intents.len()).sum::<usize>();
        self.put(&format!(
            "<section id=\"person\" data-waiting=\"{all}\">\n<h2>Needs a person or the provider</h2>\n"
        ))?;
        if groups.is_empty() {
            return self.put("<p class=\"quiet\">Nothing: every purchase is decided.</p>\n</section>\n");
        }
        self.put(&format!(
            "<p>{} are left alone until somebody decides. Nothing of theirs is touched.</p>\n",
            count(all as u64, "purchase")
        ))?;
        let mut listed = 0;
        for Waiting { outcome, findings, intents } in groups {
            let room = self.limits.waiting.saturating_sub(listed);
            listed += intents.len().min(room);
            let names = findings.iter().map(|f| f.as_str()).collect::<Vec<_>>().join(" ");
            self.put(&format!(
                "<div class=\"group {outcome}\"><h3>{words} <span class=\"id\">{names}</span></h3>\n<ul>\n",
                words = esc(&capital(&findings_in_words(&findings))),
            ))?;
            for intent in intents.iter().take(room) {
                let money: Vec<_> = intent.captured.iter().map(|(c, minor)| c.show(*minor)).collect();
                let money = if money.is_empty() { "no money".to_owned() } else { money.join(" + ") };
                self.put(&format!(
                    "<li><div><a href=\"#{intent_id}\">{user}</a> <span>{money}</span></div>\
                     <div>{orders}{command}</div></li>\n",
                    intent_id = esc(&intent.intent_id),
                    user = id(&user(dossier, intent)),
                    orders = id(&orders_of(intent)),
                    command = commands(&dossier.next(intent, &self.flags)),
                ))?;
            }
            if intents.len() > room {
                self.put(&format!(
                    "<li>… and {}</li>\n",
                    count((intents.len() - room) as u64, "more purchase")
                ))?;
            }
            self.put("</ul></div>\n")?;
        }
        self.put("</section>\n")
    }

    /// What is done to money, orders, stock and messages.
    fn deeds(&mut self, dossier: &Dossier<'_>) -> Result<()> {
        let progress = dossier.progress();
        let of = |deed| progress.get(&deed).copied().unwrap_or_default();
        let money: Vec<_> = refunds(dossier.plan.intents.iter().flat_map(|i| &i.steps))
            .into_iter()
            .map(|(currency, minor)| currency.show(minor))
            .collect();
        let money = if money.is_empty() { "nothing".to_owned() } else { money.join("<br>") };
        let (refund, void) = (of(Deed::Refund), of(Deed::Void));
        let (cancel, confirm) = (of(Deed::Cancel), of(Deed::Confirm));
        let kept = dossier.plan.intents.iter().filter(|i| i.outcome == Outcome::Keep).count();
        self.put("<section id=\"deeds\">\n<h2>What happens</h2>\n<p>Planned, and done so far.</p>\n<div class=\"tiles\">\n")?;
        self.tile(
            "Money goes back",
            &money,
            &format!(
                "{} of {} done; {} of {} let go",
                refund.done,
                count(refund.planned as u64, "refund"),
                void.done,
                count(void.planned as u64, "card"),
            ),
            refund,
        )?;
        self.tile(
            "Orders",
            &count(cancel.planned as u64, "order"),
            &format!(
                "closed, {} done; {} keep one, {} confirmed",
                cancel.done,
                count(kept as u64, "purchase"),
                confirm.planned,
            ),
            cancel,
        )?;
        let release = of(Deed::Release);
        self.tile(
            "Stock",
            &count(release.planned as u64, "hold"),
            &format!("released, {} done", release.done),
            release,
        )?;
        let stop = of(Deed::Quarantine);
        self.tile(
            "Messages",
            &count(stop.planned as u64, "message"),
            &format!("quarantined, {} done", stop.done),
            stop,
        )?;
        self.put("</div>\n</section>\n")
    }

    fn tile(&mut self, title: &str, value: &str, what: &str, progress: Progress) -> Result<()> {
        let percent = (progress.done * 100).checked_div(progress.planned).unwrap_or(0);
        self.put(&format!(
            "<div class=\"tile\"><h3>{title}</h3><strong>{value}</strong><span>{what}</span>\
             <div class=\"bar\"><i style=\"width:{percent}%\"></i></div></div>\n"
        ))
    }

    fn sums(&mut self, dossier: &Dossier<'_>) -> Result<()> {
        self.put(
            "<section id=\"sums\">\n<h2>Sums</h2>\n<p>What is captured is kept, to be refunded, in review, unsettled \
             or clean, and nothing else; so is live stock.</p>\n",
        )?;
        self.sum_table("money", &MONEY, &money_rows(dossier))?;
        self.sum_table("stock", &STOCK, &stock_rows(dossier))?;
        self.put("</section>\n")
    }

    fn sum_table(&mut self, name: &str, titles: &[&str], rows: &[Vec<Cell<'_>>]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let is_number = |at: usize| (2..9).contains(&at);
        let heads = titles.iter().enumerate().map(|(at, title)| {
            format!("<th{}>{title}</th>", if is_number(at) { " class=\"n\"" } else { "" })
        });
        let mut html = format!(
            "<table class=\"rows\" id=\"{name}\"><thead><tr>{}</tr></thead><tbody>\n",
            heads.collect::<String>()
        );
        for row in rows {
            html.push_str("<tr>");
            for (at, cell) in row.iter().enumerate() {
                let class = if is_number(at) { " class=\"n\"" } else { "" };
                let text = esc(&shown(cell));
                let _ = write!(html, "<td{class} data-l=\"{}\">{text}</td>", titles[at]);
            }
            html.push_str("</tr>\n");
        }
        self.put(&(html + "</tbody></table>\n"))
    }

    /// Every purchase that a page has room for: those that wait, those with steps, and the others.
    fn intents(&mut self, dossier: &Dossier<'_>) -> Result<()> {
        let all = &dossier.plan.intents;
        let waits = |i: &&PlannedIntent| matches!(i.outcome, Outcome::Review | Outcome::Unsettled);
        let moves = |i: &&PlannedIntent| !i.steps.is_empty();
        let waiting = all.iter().filter(waits).take(self.limits.waiting);
        let moving = all.iter().filter(moves);
        let rest = all.iter().filter(|i| !waits(i) && !moves(i));
        let others = moving.chain(rest).take(self.limits.others);
        let shown = all.iter().filter(waits).count().min(self.limits.waiting)
            + all.iter().filter(|i| !waits(i)).count().min(self.limits.others);
        self.put(&format!(
            "<section id=\"intents\" data-all=\"{all}\">\n<h2>Purchases</h2>\n<p><span id=\"shown\">{shown}</span> of {all} \
             shown. Open one to see its orders, why it was decided so, and its steps.</p>\n",
            all = all.len(),
        ))?;
        if shown < all.len() {
            self.put(&format!(
                "<p class=\"note\" id=\"more\">A page cannot hold them all: it shows those that need a person and the \
                 first {} others. The rest is in the workbook and the CSV files: {}</p>\n",
                self.limits.others,
                command(&format!("onefold report {} --format xlsx --output report.xlsx", dossier.plan.plan_id)),
            ))?;
        }
        let buttons = [Outcome::Review, Outcome::Unsettled, Outcome::Keep, Outcome::Unwind, Outcome::Clean];
        let buttons = buttons.iter().map(|o| {
            format!("<button type=\"button\" aria-pressed=\"false\" data-outcome=\"{o}\">{o}</button>")
        });
        self.put(&format!(
            "<div class=\"tools\" hidden><input type=\"search\" placeholder=\"Find a user, order, payment, finding …\" \
             aria-label=\"Find a purchase\">{}</div>\n",
            buttons.collect::<String>()
        ))?;
        for intent in waiting.chain(others) {
            self.shown += 1;
            self.put(&self::intent(dossier, intent, &self.flags))?;
        }
        self.put("</section>\n")
    }

    fn journal_head(&mut self) -> Result<()> {
        self.put(
            "<section id=\"journal\">\n<h2>Journal</h2>\n<p>Who did what to which row, in the order of writing.</p>\n\
             <details class=\"fold\"><summary>Show the entries</summary><div class=\"body\"><ol class=\"entries\">\n",
        )
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn user(dossier: &Dossier<'_>, intent: &PlannedIntent) -> String {
    intent.user_id.as_ref().map_or_else(|| "no user".to_owned(), |u| dossier.user(u).into_owned())
}

fn money_of(sums: &BTreeMap<Currency, i128>) -> String {
    sums.iter().map(|(currency, minor)| currency.show(*minor)).collect::<Vec<_>>().join(" + ")
}

/// One purchase, folded.
fn intent(dossier: &Dossier<'_>, intent: &PlannedIntent, flags: &str) -> String {
    let mut html = String::new();
    let keep = intent.keep.as_ref().map_or_else(String::new, |k| format!("keeps {}", id(k.as_str())));
    let back = refunds(intent.steps.iter());
    let money = if back.is_empty() { money_of(&intent.captured) } else { format!("−{}", money_of(&back)) };
    let why = findings_in_words(reasons(intent));
    let _ = writeln!(
        html,
        "<details class=\"intent {outcome}\" id=\"{intent_id}\" data-outcome=\"{outcome}\"><summary>\
         <span class=\"badge\">{outcome}</span><span>{user}</span><small>{why}</small><span class=\"keep\">{keep}</span>\
         <span class=\"n\">{money}</span></summary><div class=\"body\">",
        outcome = intent.outcome,
        intent_id = esc(&intent.intent_id),
        user = id(&user(dossier, intent)),
        why = esc(if why.is_empty() { "nothing out of the ordinary" } else { &why }),
    );
    let session = intent.session_id.as_ref().map(|s| dossier.session(s).into_owned());
    let place = [
        Some(format!("tenant {}", id(intent.tenant_id.as_str()))),
        intent.show_id.as_ref().map(|s| format!("show {}", id(s.as_str()))),
        session.map(|s| format!("session {}", id(&s))),
        Some(id(&intent.intent_id)),
    ];
    let _ = writeln!(
        html,
        "<p>{} · {}.</p>\n<p>Row {} of the table: {}.</p>",
        place.into_iter().flatten().collect::<Vec<_>>().join(", "),
        id(&orders_of(intent)),
        intent.decided_by,
        row_in_words(intent.decided_by),
    );
    if let Some(chosen) = &intent.override_keep {
        let _ = writeln!(
            html,
            "<p>An operator keeps {}: {}</p>",
            id(chosen.order_id.as_str()),
            esc(&dossier.text(&chosen.because))
        );
    }
    if !intent.findings.is_empty() {
        html.push_str("<p>");
        for finding in &intent.findings {
            let _ = write!(html, "<span class=\"id\">{finding}</span>: {}. ", finding_in_words(*finding));
        }
        html.push_str("</p>\n");
    }
    if matches!(intent.outcome, Outcome::Review | Outcome::Unsettled) {
        let _ = writeln!(html, "<p>To decide it:{}</p>", commands(&dossier.next(intent, flags)));
    }
    html.push_str(&evidence(dossier, intent));
    html.push_str(&steps(dossier, intent));
    html + "</div></details>\n"
}

fn evidence(dossier: &Dossier<'_>, intent: &PlannedIntent) -> String {
    if intent.evidence.is_empty() {
        return String::new();
    }
    let mut html = "<h4>Orders</h4>\n<table class=\"rows\"><thead><tr><th>Order</th><th>Written (UTC)</th><th>Status</th>\
                    <th class=\"n\">Amount</th><th class=\"n\">Captured</th><th>What becomes of it, and why</th></tr></thead><tbody>\n"
        .to_owned();
    for order in &intent.evidence {
        let _ = writeln!(
            html,
            "<tr><td data-l=\"Order\">{}</td><td data-l=\"Written\">{}</td><td data-l=\"Status\">{}</td>\
             <td class=\"n\" data-l=\"Amount\">{}</td><td class=\"n\" data-l=\"Captured\">{}</td><td data-l=\"Why\">{}</td></tr>",
            id(order.order_id.as_str()),
            order.created_at,
            order.status,
            order.currency.show(order.amount_minor.into()),
            order.currency.show(order.net_minor.into()),
            esc(&dossier.sentence(&order.because, intent)),
        );
    }
    html + "</tbody></table>\n"
}

fn steps(dossier: &Dossier<'_>, intent: &PlannedIntent) -> String {
    if intent.steps.is_empty() {
        return String::new();
    }
    let mut html = "<h4>Steps</h4>\n<table class=\"rows steps\"><thead><tr><th>Row</th><th>Move</th><th class=\"n\">Amount</th>\
                    <th>State</th><th>At (UTC)</th><th>Step key</th><th>Provider, note</th></tr></thead><tbody>\n"
        .to_owned();
    for step in &intent.steps {
        let end = dossier.end(step);
        let amount = step.amount_minor.zip(step.currency).map(|(minor, c)| c.show(minor.into()));
        let said =
            end.map(|e| [e.provider_ref.as_deref(), e.note.as_deref()]).into_iter().flatten().flatten();
        let said: Vec<_> = said.map(|text| esc(&dossier.text(text))).collect();
        let _ = writeln!(
            html,
            "<tr><td data-l=\"Row\">{} {}</td><td data-l=\"Move\">{} → {}</td><td class=\"n\" data-l=\"Amount\">{}</td>\
             <td data-l=\"State\">{}</td><td data-l=\"At\">{}</td><td data-l=\"Step key\" class=\"id\">{}</td><td data-l=\"Said\">{}</td></tr>",
            step.ledger.row_name(),
            id(step.id.as_str()),
            step.from,
            step.to,
            amount.unwrap_or_default(),
            end.map_or(crate::core::dossier::PLANNED, |e| e.state),
            end.map_or_else(String::new, |e| e.at.to_string()),
            step.step_key.chars().take(12).collect::<String>(),
            said.join(": "),
        );
    }
    html + "</tbody></table>\n"
}

impl Export for Html {
    fn journal(&mut self, entry: &[Cell<'_>]) -> Result<()> {
        self.entries += 1;
        if self.entries > self.limits.journal {
            return Ok(());
        }
        let [_, at, who, event, _, ledger, row, from, to, currency, amount, freeze, _, intent, note] = entry
        else {
            return Ok(());
        };
        let text = |cell: &Cell<'_>| esc(&shown(cell));
        let moved = match (from, to) {
            (Cell::None, _) | (_, Cell::None) => String::new(),
            _ => format!(" {} → {}", text(from), text(to)),
        };
        let note = match note {
            Cell::None => String::new(),
            _ => format!(": {}", text(note)),
        };
        self.put(&format!(
            "<li><span class=\"when\">{}</span> <b>{}</b> <span>{} {}{moved} {} {}{note}</span> <small>{} {} {}</small></li>\n",
            text(at), text(event), text(ledger), id(&shown(row)), text(amount), text(currency), text(who), text(freeze),
            text(intent),
        ))
    }

    fn end(mut self: Box<Self>, dossier: &Dossier<'_>) -> Result<Written> {
        self.put("</ol>\n")?;
        if self.entries == 0 {
            self.put("<p>The journal has no entry of this plan.</p>\n")?;
        }
        if let Some(more) = self.entries.checked_sub(self.limits.journal).filter(|more| *more > 0) {
            self.put(&format!(
                "<p class=\"note\">… and {}: {}</p>\n",
                count(more, "more entry").replace("entrys", "entries"),
                command(&format!("onefold history --plan {}", dossier.plan.plan_id))
            ))?;
        }
        self.put("</div></details>\n</section>\n<section id=\"about\">\n<h2>About this report</h2>\n<table class=\"facts\"><tbody>\n")?;
        for (name, value) in dossier.facts() {
            self.put(&format!("<tr><td>{}</td><td>{}</td></tr>\n", esc(&name), esc(&shown(&value))))?;
        }
        self.put(&format!(
            "</tbody></table>\n</section>\n<footer>Decided and carried out by onefold; all times are UTC. The plan is as it \
             was saved, its digest checked. Charge references, pieces of stock and the picture of the incident were \
             read from the ledgers at {}.</footer>\n</main>\n<script>\n{JS}</script>\n</body>\n</html>\n",
            dossier.read_at
        ))?;
        self.out.end()?;
        let rows = vec![("Intents", self.shown), ("Journal", self.entries.min(self.limits.journal))];
        let all = dossier.plan.intents.len() as u64;
        let notes = (self.shown < all).then(|| {
            format!(
                "the page shows {} of {}: those that need a person and the first {} others; all are in --format xlsx \
                 and csv",
                self.shown,
                count(all, "purchase"),
                self.limits.others
            )
        });
        Ok(Written { rows, notes: notes.into_iter().collect() })
    }
}
