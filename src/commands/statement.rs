//! `onefold reconcile --statement`: a provider's settlement file beside the payment ledger.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::count;
use super::decided::LISTED;
use super::flags::ZoneFlag;
use super::progress::Progress;
use crate::config::Config;
use crate::core::ledger::Payment;
use crate::core::money::Currency;
use crate::core::scope::Scope;
use crate::core::statement::{Compared, Comparison, Difference, Window};
use crate::core::status::Ledger;
use crate::error::{Error, Exit, Result};
use crate::files::{Amounts, Encoding, StatementMap, StatementOptions, TypeMap, read_statement};
use crate::report::{Column, Report, Table, print_note};

/// How a statement is read.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Statement")]
pub struct StatementFlags {
    /// Compare this settlement file of a provider, a CSV, with the payment ledger
    #[arg(long, value_name = "FILE")]
    pub statement: Option<PathBuf>,
    /// Which of its columns is the charge, amount, currency, type and time, such as charge=Reference;
    /// several with commas, or repeated [default: columns of these names]
    #[arg(long, value_name = "OURS=THEIRS", value_delimiter = ',', requires = "statement")]
    map: Vec<StatementMap>,
    /// What a type in the file is: Payout=other, Sale=charge or Chargeback=other; may be repeated
    #[arg(long, value_name = "THEIRS=charge|refund|other", value_delimiter = ',', requires = "statement")]
    type_map: Vec<TypeMap>,
    /// How amounts stand there: minor (1234), decimal (1,234.56) or decimal-comma (1.234,56) [default: minor]
    #[arg(long, value_name = "FORM", requires = "statement")]
    amounts: Option<Amounts>,
    /// How characters stand there [default: auto, which never guesses]
    #[arg(long, value_name = "ENCODING", requires = "statement")]
    encoding: Option<Encoding>,
    /// Whose statement it is, as payments name their provider [default: the only one that they name]
    #[arg(long, value_name = "PROVIDER", requires = "statement")]
    provider: Option<String>,
}

pub async fn run(
    config: &Config,
    path: &Path,
    flags: &StatementFlags,
    scope: &Scope,
    zone: ZoneFlag,
    all: bool,
) -> Result<Report> {
    let options = StatementOptions {
        encoding: flags.encoding.unwrap_or_default(),
        amounts: flags.amounts.unwrap_or_default(),
        timezone: zone.timezone,
        map: flags.map.clone(),
        types: flags.type_map.clone(),
    };
    let store = config.open_to_read().await?;
    let progress = Progress::new(config, "reading and comparing");
    let (from, to) = (scope.from, scope.to);
    let asked = (from.is_some() || to.is_some()).then_some(Window { from, to });
    let mut comparison = Comparison::new(asked);
    let mut lines = 0_u64;
    let mut take = |line| {
        lines += 1;
        comparison.line(line);
    };
    let notes = read_statement(path, &options, &mut take, &mut |read| progress.at(format!("{read} lines")))?;
    if lines == 0 {
        return Err(Error::usage(format!(
            "{} has a header and no line: there is nothing to compare",
            path.display()
        ))
        .hint("look whether the provider's file is whole; one that is empty proves nothing"));
    }
    let mut providers = BTreeSet::new();
    let mut rows = 0;
    store
        .each_payment(|row| {
            rows += 1;
            if rows % 1024 == 0 {
                progress.rows(Ledger::Payments, rows);
            }
            let in_scope = is_in_scope(scope, &row);
            match &flags.provider {
                Some(provider) if row.provider != *provider => return,
                Some(_) => {}
                None if in_scope && !providers.contains(&row.provider) => {
                    providers.insert(row.provider.clone());
                }
                None => {}
            }
            comparison.payment(&row, in_scope);
        })
        .await?;
    if providers.len() > 1 {
        let named: Vec<_> = providers.iter().map(String::as_str).collect();
        return Err(Error::usage(format!("the payments are of several providers: {}", named.join(", ")))
            .hint(format!("say whose statement it is: --provider {}", named[0])));
    }
    let compared = comparison.end();
    progress.end();
    if !config.quiet {
        notes.iter().for_each(|note| print_note(&format!("note: {}: {note}", path.display())));
    }
    Ok(tell(path, scope, lines, &compared, all))
}

/// Whether a payment is meant; when it was captured is another question.
fn is_in_scope(scope: &Scope, row: &Payment) -> bool {
    let sessions = &scope.sessions;
    (scope.tenants.is_empty() || scope.tenants.contains(&row.tenant_id))
        && (scope.shows.is_empty() || scope.shows.contains(&row.show_id))
        && (scope.users.is_empty() || scope.users.contains(&row.user_id))
        && (sessions.is_empty() || row.session_id.as_ref().is_some_and(|session| sessions.contains(session)))
}

fn tell(path: &Path, scope: &Scope, lines: u64, compared: &Compared, all: bool) -> Report {
    let limit = if all { compared.differences.len() } else { LISTED };
    let lines = count(usize::try_from(lines).unwrap_or(usize::MAX), "line");
    let mut report = Report::new(json!({ "statement": path, "scope": scope, "compared": compared }))
        .title(format!("{} beside the payments: {}", path.display(), scope.in_words()))
        .line(format!(
            "{lines}; {} that both have; {}.",
            plural(compared.charges, "charge"),
            count(compared.differences.len(), "difference")
        ))
        .table(differences(&compared.differences[..limit.min(compared.differences.len())]));
    if let more @ 1.. = compared.differences.len().saturating_sub(limit) {
        report = report.line(format!("… and {}; all of them with --all", count(more, "more difference")));
    }
    report = not_compared(compared).into_iter().fold(report, Report::line);
    if compared.differences.is_empty() { report } else { report.exit(Exit::Violations) }
}

/// What was left aside, a line each.
fn not_compared(compared: &Compared) -> Vec<String> {
    let window = match compared.window {
        Some(Window { from, to }) => {
            let from = from.map(|t| format!(" from {t}")).unwrap_or_default();
            let to = to.map(|t| format!(" before {t}")).unwrap_or_default();
            let own = if compared.window_is_its_own {
                " These are its own first and last time: what it must have, say with --from and --to."
            } else {
                ""
            };
            format!("The statement must have what was captured{from}{to}.{own}")
        }
        None => "What the ledger has and the statement does not is not compared: the file has no times, and \
                 neither --from nor --to says when it begins and ends."
            .to_owned(),
    };
    let sums: Vec<_> =
        compared.minor_outside_window.iter().map(|(currency, minor)| currency.show(*minor)).collect();
    let why = match compared.window {
        None => "",
        Some(_) if compared.window_is_its_own => ", captured before or after its own times",
        Some(_) => ", captured outside that time",
    };
    let outside = format!("that the statement does not have ({}){why}", sums.join(", "));
    let left = [
        (compared.lines_of_other_types, "line", "of other types"),
        (compared.lines_outside_scope, "line", "about payments outside the scope"),
        (compared.lines_outside_window, "line", "from outside that time"),
        (compared.rows_without_charge, "payment", "without the provider's transaction"),
        (compared.rows_outside_window, "payment", outside.as_str()),
        (compared.refunds_in_motion, "refund", "under way"),
    ];
    let left: Vec<_> = left
        .into_iter()
        .filter(|(n, _, _)| *n > 0)
        .map(|(n, what, which)| format!("{} {which}", plural(n, what)))
        .collect();
    let left = (!left.is_empty()).then(|| format!("Not compared: {}.", left.join("; ")));
    std::iter::once(window).chain(left).collect()
}

fn plural(n: u64, what: &str) -> String {
    count(usize::try_from(n).unwrap_or(usize::MAX), what)
}

fn differences(differences: &[Difference]) -> Table {
    let mut table = Table::new([
        Column::exact("DIFFERENCE"),
        Column::exact("CHARGE"),
        Column::number("LINE"),
        Column::number("STATEMENT"),
        Column::number("LEDGER"),
        Column::exact("PAYMENT"),
        Column::exact("STATUS"),
    ]);
    let money = |minor: Option<i64>, currency: Option<Currency>| match minor.zip(currency) {
        Some((minor, currency)) => currency.show(minor.into()),
        None => "-".to_owned(),
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for d in differences {
        table.row([
            d.differs.to_string(),
            d.charge.clone(),
            or_none(d.line.map(|n| n.to_string())),
            money(d.statement_minor, d.statement_currency),
            money(d.ledger_minor, d.ledger_currency),
            or_none(d.payment_id.as_ref().map(ToString::to_string)),
            or_none(d.status.map(|s| s.to_string())),
        ]);
    }
    table
}
