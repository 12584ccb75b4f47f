//! The first sheet: what the workbook is about, and its sums as formulas over the rows of the others.
//! Ids are compared by EXACT, which neither folds case nor reads `*` or `007` as something else.

use std::collections::BTreeMap;

use rust_xlsxwriter::{Format, Formula, XlsxError};

use super::super::sums::{MONEY, STOCK, released, was_live};
use super::book::{EXACT, exact, exact_in, write};
use super::front::Front;
use crate::core::dossier::sheets::Sheet;
use crate::core::dossier::{Deed, Dossier};
use crate::core::ids::TenantId;
use crate::core::money::Currency;
use crate::core::plan::{MoneySum, Outcome, StockSum};
use crate::core::sheet::{Cell, Holds};

/// What the formulas over the money come to: captured, kept, to refund, in review, unsettled, clean, and
/// refunded so far. Amounts that stand as text count nothing, as in the formulas.
type MoneyValues = BTreeMap<(TenantId, Currency), [i128; 7]>;

/// How the workbook is to be read.
const BASIS: &str = "Times are in UTC, amounts in the major unit of their currency. The plan is as it was saved; charge \
                     references and pieces of stock were read from the ledgers when this was written.";

impl Front<'_> {
    /// Of the report about a plan.
    pub fn of_plan(mut self, dossier: &Dossier<'_>, notes: &[String]) -> Result<(), XlsxError> {
        let plan = dossier.plan;
        self.head(&format!("{}: {}", plan.plan_id, dossier.scope().in_words()))?;

        let (money, stock) = (&plan.sums.money, &plan.sums.stock);
        let values = money_values(dossier);
        self.heading("Money, added up from the sheets", &[&MONEY[..], &["As planned"]].concat())?;
        let first = self.row;
        let count = u32::try_from(money.len()).unwrap_or(u32::MAX);
        // The plan's own sums stand below, after a blank line, a title and a header.
        let stated = first + count + 3;
        let mut all_close = true;
        for (i, sum) in (0..).zip(money) {
            let value = values.get(&(sum.tenant_id.clone(), sum.currency)).copied().unwrap_or_default();
            all_close &= self.money(sum, value, stated + i)?;
        }
        let money_rows = (first, self.row);
        self.row += 1;
        self.heading("The same as the plan states it", &MONEY[..8])?;
        for sum in money {
            self.stated(sum)?;
        }
        self.row += 1;
        self.heading(
            "Stock, in pieces; what is released is added up, the rest as the plan states it",
            &STOCK,
        )?;
        let first = self.row;
        let live = live_pieces(dossier);
        let so_far = released(dossier);
        for sum in stock {
            let place = (sum.tenant_id.to_string(), sum.show_id.to_string());
            let of = |sums: &BTreeMap<_, i64>| sums.get(&place).copied().unwrap_or(0);
            all_close &= self.stock(sum, of(&live), of(&so_far))?;
        }
        let stock_rows = (first, self.row);
        self.verdict(money_rows, stock_rows, all_close)?;

        self.about(&dossier.facts())?;
        self.contents()?;
        self.notes(BASIS, notes)
    }

    fn formula(
        &mut self,
        at: u16,
        formula: String,
        result: String,
        format: &Format,
    ) -> Result<(), XlsxError> {
        self.sheet.write_formula_with_format(
            self.row,
            at,
            Formula::new(formula).set_result(result),
            format,
        )?;
        Ok(())
    }

    /// The formula that adds up a column of a sheet where other columns are as they must be.
    fn sum(&self, sheet: Sheet, value: char, conditions: &[String]) -> String {
        let terms = self.parts[sheet as usize].at.iter().enumerate().filter(|(_, (_, rows))| *rows > 0);
        let terms: Vec<_> = terms
            .map(|(part, (_, rows))| {
                let name = match part {
                    0 => sheet.title().to_owned(),
                    n => format!("'{} {}'", sheet.title(), n + 1),
                };
                let range = |column: &str| format!("{name}!${column}$2:${column}${}", rows + 1);
                let conditions = conditions.iter().map(|c| {
                    // `{X}` stands for column X of the sheet.
                    let mut text = c.clone();
                    for column in ["A", "B", "C", "H", "J"] {
                        text = text.replace(&format!("{{{column}}}"), &range(column));
                    }
                    text
                });
                let conditions: Vec<_> = conditions.collect();
                format!("SUMPRODUCT({},{})", conditions.join("*"), range(&value.to_string()))
            })
            .collect();
        if terms.is_empty() { "0".to_owned() } else { terms.join("+") }
    }

    /// A row of sums; whether it closes, and is what the plan states in row `stated`.
    fn money(&mut self, sum: &MoneySum, value: [i128; 7], stated: u32) -> Result<bool, XlsxError> {
        let line = self.row + 1;
        let of_line = [format!("EXACT({{A}},$A{line})"), format!("EXACT({{B}},$B{line})")];
        let with = |more: &str| [&of_line[..], &[more.to_owned()]].concat();
        let formulas = [
            self.sum(Sheet::Intents, 'D', &of_line),
            format!("{}-E{line}", self.sum(Sheet::Intents, 'D', &with("(({C}=\"KEEP\")+({C}=\"UNWIND\"))"))),
            self.sum(Sheet::Refunds, 'C', &of_line),
            self.sum(Sheet::Review, 'C', &of_line),
            self.sum(Sheet::Unsettled, 'C', &of_line),
            self.sum(Sheet::Intents, 'D', &with("({C}=\"CLEAN\")")),
            self.sum(Sheet::Intents, 'F', &of_line),
        ];
        let text = self.formats.text.clone();
        self.sheet.write_string_with_format(self.row, 0, sum.tenant_id.as_str(), &text)?;
        self.sheet.write_string_with_format(self.row, 1, sum.currency.code(), &text)?;
        let format = self.formats.money(sum.currency).clone();
        for (at, (formula, minor)) in (2..).zip(formulas.into_iter().zip(value)) {
            self.formula(at, format!("={formula}"), sum.currency.show_bare(minor), &format)?;
        }
        let half = 0.5 / 10_f64.powi(i32::try_from(sum.currency.decimals()).unwrap_or(0));
        let is_exact = value.iter().all(|minor| minor.abs() < EXACT);
        let closes = is_exact && value[0] == value[1..6].iter().sum();
        let agrees = is_exact && value[..6] == sum.parts();
        let verdict = self.formats.verdict.clone();
        let yes_or_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        let most = exact_in(sum.currency);
        self.formula(
            9,
            format!("=IF(AND(ABS(C{line})<{most},ABS(C{line}-SUM(D{line}:H{line}))<{half}),\"yes\",\"no\")"),
            yes_or_no(closes),
            &verdict,
        )?;
        let there = stated + 1;
        self.formula(
            10,
            format!("=IFERROR(IF(SUMPRODUCT(ABS(C{line}:H{line}-C{there}:H{there}))<{half},\"yes\",\"no\"),\"no\")"),
            yes_or_no(agrees),
            &verdict,
        )?;
        self.row += 1;
        Ok(closes && agrees)
    }

    fn stated(&mut self, sum: &MoneySum) -> Result<(), XlsxError> {
        let names = [sum.tenant_id.as_str(), sum.currency.code()];
        for (at, name) in (0..).zip(names) {
            self.sheet.write_string_with_format(self.row, at, name, &self.formats.text)?;
        }
        for (at, minor) in (2..).zip(sum.parts()) {
            let cell = Cell::Money(minor, sum.currency);
            write(self.sheet, self.row, at, &cell, Holds::Money, self.formats)?;
        }
        self.row += 1;
        Ok(())
    }

    fn stock(&mut self, sum: &StockSum, to_release: i64, so_far: i64) -> Result<bool, XlsxError> {
        let line = self.row + 1;
        let of_line = [format!("EXACT({{A}},$A{line})"), format!("EXACT({{B}},$B{line})")];
        let done = [&of_line[..], &["(({J}=\"DONE\")+({J}=\"SKIPPED\"))".to_owned()]].concat();
        let names = [sum.tenant_id.as_str(), sum.show_id.as_str()];
        for (at, name) in (0..).zip(names) {
            self.sheet.write_string_with_format(self.row, at, name, &self.formats.text)?;
        }
        let number = self.formats.number.clone();
        for (at, pieces) in (2..).zip(sum.parts()) {
            if at == 4 {
                let formula = format!("={}", self.sum(Sheet::Released, 'C', &of_line));
                self.formula(at, formula, to_release.to_string(), &number)?;
            } else {
                let pieces = i64::try_from(pieces).unwrap_or(i64::MAX);
                write(self.sheet, self.row, at, &Cell::Number(pieces), Holds::Number, self.formats)?;
            }
        }
        let formula = format!("={}", self.sum(Sheet::Released, 'C', &done));
        self.formula(8, formula, so_far.to_string(), &number)?;
        let [live, kept, _, in_review, unsettled, clean] = sum.parts();
        let closes = live == kept + i128::from(to_release) + in_review + unsettled + clean;
        let verdict = self.formats.verdict.clone();
        let formula = format!("=IFERROR(IF(C{line}=SUM(D{line}:H{line}),\"yes\",\"no\"),\"no\")");
        self.formula(9, formula, if closes { "yes" } else { "no" }.to_owned(), &verdict)?;
        self.row += 1;
        Ok(closes)
    }

    /// Whether everything closes, at the top. Rows are from the first on, before the second.
    fn verdict(&mut self, money: (u32, u32), stock: (u32, u32), close: bool) -> Result<(), XlsxError> {
        let noes = |(first, end): (u32, u32), last: char| match end > first {
            true => format!("COUNTIF(J{}:{last}{end},\"<>yes\")", first + 1),
            false => "0".to_owned(),
        };
        let formula = format!("=IF({}+{}=0,\"yes\",\"no\")", noes(money, 'K'), noes(stock, 'J'));
        let row = std::mem::replace(&mut self.row, 1);
        self.sheet.write_string_with_format(1, 0, "All sums close", &self.formats.verdict)?;
        let verdict = self.formats.verdict.clone();
        self.formula(1, formula, if close { "yes" } else { "no" }.to_owned(), &verdict)?;
        self.row = row;
        Ok(())
    }
}

fn money_values(dossier: &Dossier<'_>) -> MoneyValues {
    let mut values = MoneyValues::new();
    for intent in &dossier.plan.intents {
        let mut add = |currency: Currency, at: usize, minor: i128| {
            if exact(minor, currency).is_some() {
                values.entry((intent.tenant_id.clone(), currency)).or_default()[at] += minor;
            }
        };
        let of = match intent.outcome {
            Outcome::Keep | Outcome::Unwind => 1,
            Outcome::Review => 3,
            Outcome::Unsettled => 4,
            Outcome::Clean => 5,
        };
        for (currency, minor) in &intent.captured {
            add(*currency, 0, *minor);
            add(*currency, of, *minor);
        }
        for step in intent.steps.iter().filter(|s| s.is_refund()) {
            if let Some((amount, currency)) = step.amount_minor.zip(step.currency) {
                add(currency, 1, -i128::from(amount));
                add(currency, 2, amount.into());
            }
        }
        let done = intent.steps.iter().filter(|s| dossier.is_done(s));
        crate::core::plan::refunds(done).into_iter().for_each(|(currency, minor)| add(currency, 6, minor));
    }
    values
}

/// Live pieces that are to be released, by tenant and show.
fn live_pieces(dossier: &Dossier<'_>) -> BTreeMap<(String, String), i64> {
    let mut sums = BTreeMap::new();
    for intent in &dossier.plan.intents {
        for step in intent.steps.iter().filter(|s| Deed::of(s) == Some(Deed::Release)) {
            let hold = dossier.holds.get(&(intent.tenant_id.clone(), step.id.clone()));
            if let Some(hold) = hold.filter(|hold| was_live(step, hold)) {
                *sums.entry((intent.tenant_id.to_string(), hold.show_id.to_string())).or_insert(0) +=
                    hold.quantity;
            }
        }
    }
    sums
}
