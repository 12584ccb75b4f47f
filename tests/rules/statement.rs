//! A provider's statement beside the payment ledger.

use onefold::core::ledger::Payment;
use onefold::core::statement::{Compared, Comparison, Line, LineType, Window};

use crate::common::book::{Book, at};

fn line(number: u64, line_type: LineType, charge: &str, amount_minor: i64) -> Option<Line> {
    let currency = "CNY".parse().unwrap();
    Some(Line { line_type, charge: charge.to_owned(), amount_minor, currency, line: number, at: None })
}

fn charge(number: u64, name: &str, amount: i64) -> Option<Line> {
    line(number, LineType::Charge, name, amount)
}

fn refund(number: u64, name: &str, amount: i64) -> Option<Line> {
    line(number, LineType::Refund, name, amount)
}

/// A captured payment of 1000 under this name of its charge, of which so much went back.
fn paid(name: &str, status: &str, refunded: i64) -> Payment {
    let mut book = Book::new();
    let row = book.payment(&format!("P-{name}"), "O", 100, status);
    (row.provider_txn_id, row.refunded_minor) = (Some(name.to_owned()), refunded);
    row.clone()
}

fn whole() -> Option<Window> {
    Some(Window { from: Some(at(0)), to: Some(at(1000)) })
}

fn compare(asked: Option<Window>, lines: &[Option<Line>], rows: &[Payment]) -> Compared {
    let mut comparison = Comparison::new(asked);
    lines.iter().for_each(|line| comparison.line(line.clone()));
    rows.iter().for_each(|row| comparison.payment(row, true));
    comparison.end()
}

fn told(compared: &Compared) -> Vec<String> {
    compared.differences.iter().map(|d| format!("{} {}", d.differs, d.charge)).collect()
}

#[test]
fn what_both_know_alike_differs_in_nothing() {
    let compared = compare(
        whole(),
        &[charge(2, "a", 1000), charge(3, "b", 1000), refund(4, "b", 300), refund(5, "b", 700), None],
        &[paid("a", "CAPTURED", 0), paid("b", "REFUNDED", 1000)],
    );
    assert_eq!(told(&compared), [""; 0]);
    assert_eq!((compared.charges, compared.lines_of_other_types), (2, 1));
    // A row that says REFUNDED gave back all of it, whatever its amounts say.
    let compared =
        compare(whole(), &[charge(2, "b", 1000), refund(3, "b", 1000)], &[paid("b", "REFUNDED", 0)]);
    assert_eq!(told(&compared), [""; 0]);
}

#[test]
fn every_way_to_differ_has_its_name() {
    let mut dollars = charge(8, "currency", 1000);
    dollars.as_mut().unwrap().currency = "USD".parse().unwrap();
    let mut odd = refund(21, "odd", 5);
    odd.as_mut().unwrap().currency = "USD".parse().unwrap();
    let compared = compare(
        whole(),
        &[
            charge(2, "amount", 999),
            charge(3, "unknown", 1000),
            refund(4, "unknown-refund", 10),
            charge(5, "refund", 1000),
            refund(6, "refund", 100),
            charge(7, "returned", 1000),
            dollars,
            charge(9, "twice", 1000),
            charge(10, "twice", 1000),
            charge(11, "failed", 1000),
            charge(12, "given", 1000),
            refund(13, "given", 50),
            charge(14, "double", 1000),
            charge(19, "odd", 1000),
            refund(20, "odd", 5),
            odd,
        ],
        &[
            paid("amount", "CAPTURED", 0),
            paid("refund", "CAPTURED", 200),
            paid("returned", "CAPTURED", 10),
            paid("currency", "CAPTURED", 0),
            paid("twice", "CAPTURED", 0),
            paid("failed", "FAILED", 0),
            paid("given", "CAPTURED", 0),
            paid("double", "CAPTURED", 0),
            paid("double", "DISPUTED", 0),
            paid("ledger", "CAPTURED", 0),
            paid("odd", "CAPTURED", 5),
        ],
    );
    let expected = [
        "AMOUNT_DIFFERS amount",
        "CURRENCY_DIFFERS currency",
        "TWICE_IN_LEDGER double",
        "CHARGE_ONLY_IN_STATEMENT failed",
        "REFUND_ONLY_IN_STATEMENT given",
        "CHARGE_ONLY_IN_LEDGER ledger",
        "CURRENCY_DIFFERS odd",
        "REFUND_DIFFERS refund",
        "REFUND_ONLY_IN_LEDGER returned",
        "TWICE_IN_STATEMENT twice",
        "CHARGE_ONLY_IN_STATEMENT unknown",
        "REFUND_ONLY_IN_STATEMENT unknown-refund",
    ];
    assert_eq!(told(&compared), expected);
    let amount = &compared.differences[0];
    assert_eq!((amount.statement_minor, amount.ledger_minor, amount.line), (Some(999), Some(1000), Some(2)));
    let failed = &compared.differences[3];
    assert_eq!(failed.status.map(|s| s.as_str()), Some("FAILED"), "the row that is there is named");
    let refund = &compared.differences[7];
    assert_eq!((refund.statement_minor, refund.ledger_minor), (Some(100), Some(200)));
}

#[test]
fn only_what_the_statement_must_have_is_missed() {
    let rows = [paid("a", "CAPTURED", 0), paid("b", "CAPTURED", 400)];
    let none = compare(None, &[], &rows);
    assert_eq!((told(&none), none.rows_outside_window, none.window), (vec![], 2, None));
    assert_eq!(none.minor_outside_window, [("CNY".parse().unwrap(), 2000)].into());
    let early = Some(Window { from: None, to: Some(at(100)) });
    assert_eq!(compare(early, &[], &rows).rows_outside_window, 2, "the end is excluded");
    assert_eq!(compare(whole(), &[], &rows).differences.len(), 2);
    // The statement's own times, both ends included.
    let mut last = charge(2, "c", 1000);
    last.as_mut().unwrap().at = Some(at(100));
    let own = compare(None, &[last], &[rows[0].clone(), paid("c", "CAPTURED", 0)]);
    assert_eq!(told(&own), ["CHARGE_ONLY_IN_LEDGER a"]);
    // The refund of a charge of an earlier statement: more may have gone back than this one tells.
    let earlier = compare(early, &[refund(2, "b", 100)], &rows);
    assert_eq!(told(&earlier), [""; 0]);
    assert_eq!(told(&compare(early, &[refund(2, "b", 500)], &rows)), ["REFUND_DIFFERS b"]);
    // Times of lines that no row knows count, too.
    let mut late = charge(2, "late", 1000);
    late.as_mut().unwrap().at = Some(at(5000));
    let compared = compare(whole(), &[late], &[]);
    assert_eq!((told(&compared), compared.lines_outside_window), (vec![], 1));
}

#[test]
fn what_cannot_be_compared_is_counted() {
    let mut comparison = Comparison::new(whole());
    comparison.line(charge(2, "other", 1000));
    comparison.line(charge(3, "moving", 1000));
    comparison.line(refund(4, "moving", 10));
    comparison.payment(&paid("other", "CAPTURED", 0), false);
    comparison.payment(&paid("moving", "REFUNDING", 0), true);
    let nameless = Payment { provider_txn_id: None, ..paid("x", "CAPTURED", 0) };
    comparison.payment(&nameless, true);
    let compared = comparison.end();
    assert_eq!(told(&compared), [""; 0]);
    assert_eq!((compared.lines_outside_scope, compared.refunds_in_motion), (1, 1));
    assert_eq!(compared.rows_without_charge, 1);
}
