//! What the other services do meanwhile, at any moment between two steps: a freeze that is only advisory
//! stops none of them.

use onefold::core::status::PaymentStatus;

use super::bank::{Account, Bank};
use super::dice::Dice;
use super::ground::Site;
use super::stage::tell;

/// One of the things that happen, if it can happen now.
pub async fn meddle(site: &mut Site, bank: &Bank, dice: &Dice) {
    match dice.below(8) {
        0 => late_capture(site, bank, dice).await,
        1 => second_payment(site, bank, dice).await,
        2 => dispute(site, bank, dice).await,
        3 | 4 => report(site, bank).await,
        5 => hold_lapses(site).await,
        6 => message_moves_on(site, dice).await,
        _ => order_is_ticketed(site, dice).await,
    }
}

/// The ledger learns what the bank's accounts say, as by calls that came late.
pub async fn call_back(site: &mut Site, bank: &Bank) {
    report(site, bank).await;
    let accounts = bank.books.lock().unwrap().accounts.clone();
    for (charge, account) in accounts {
        match account.status {
            PaymentStatus::Captured => capture(site, &charge).await,
            PaymentStatus::Disputed => dispute_row(site, bank, &charge).await,
            _ => {}
        }
    }
}

fn pick(bank: &Bank, dice: &Dice, wanted: impl Fn(&Account) -> bool) -> Option<String> {
    let books = bank.books.lock().unwrap();
    let fits: Vec<_> =
        books.accounts.iter().filter(|(_, a)| wanted(a)).map(|(name, _)| name.clone()).collect();
    (!fits.is_empty()).then(|| dice.pick(&fits).clone())
}

async fn others(site: &mut Site, what: &str, sql: &str) -> bool {
    let done = site.others(sql).await > 0;
    if done {
        tell(|| format!("others: {what}"));
    }
    done
}

/// An authorization is captured, and the ledger hears of it now or later.
async fn late_capture(site: &mut Site, bank: &Bank, dice: &Dice) {
    let Some(charge) = pick(bank, dice, |a| a.status == PaymentStatus::Authorized) else { return };
    tell(|| format!("the bank captures {charge}"));
    bank.books.lock().unwrap().accounts.get_mut(&charge).unwrap().status = PaymentStatus::Captured;
    if dice.percent(50) {
        capture(site, &charge).await;
    }
}

async fn capture(site: &mut Site, charge: &str) {
    let sql = format!(
        "UPDATE payments SET status = 'CAPTURED', version = version || 'c' WHERE payment_id = '{charge}' AND status = 'AUTHORIZED'"
    );
    others(site, &format!("{charge} is CAPTURED"), &sql).await;
}

/// Another capture appears on some order.
async fn second_payment(site: &mut Site, bank: &Bank, dice: &Dice) {
    if bank.books.lock().unwrap().accounts.contains_key("P-LATE") {
        return;
    }
    let orders = site.in_ledgers("SELECT order_id FROM orders ORDER BY order_id").await;
    let order = &dice.pick(&orders)[0];
    let columns: Vec<String> = site
        .in_ledgers("SELECT name FROM pragma_table_info('payments') ORDER BY cid")
        .await
        .into_iter()
        .flatten()
        .collect();
    let values = columns.iter().map(|column| match column.as_str() {
        "payment_id" => "'P-LATE'".to_owned(),
        "order_id" => format!("'{order}'"),
        "status" => "'CAPTURED'".to_owned(),
        "refunded_minor" => "0".to_owned(),
        "version" => "'1'".to_owned(),
        other => other.to_owned(),
    });
    let values = values.collect::<Vec<_>>().join(", ");
    // Everything else as on a payment of the same buyer.
    let like = format!(
        "SELECT {values} FROM payments WHERE user_id = (SELECT user_id FROM orders WHERE order_id = '{order}')
         ORDER BY payment_id LIMIT 1"
    );
    tell(|| format!("others: P-LATE is CAPTURED on {order}"));
    site.others(&format!("INSERT INTO payments ({}) {like}", columns.join(", "))).await;
    let account = Account {
        status: PaymentStatus::Captured,
        amount_minor: 1000,
        refunded_minor: 0,
        refund_refused: false,
    };
    bank.books.lock().unwrap().accounts.insert("P-LATE".to_owned(), account);
}

/// A buyer disputes a charge, and the ledger hears of it now or later.
async fn dispute(site: &mut Site, bank: &Bank, dice: &Dice) {
    let captured = |a: &Account| a.status == PaymentStatus::Captured && a.refunded_minor == 0;
    let Some(charge) = pick(bank, dice, captured) else { return };
    tell(|| format!("the bank says that {charge} is disputed"));
    bank.books.lock().unwrap().accounts.get_mut(&charge).unwrap().status = PaymentStatus::Disputed;
    if dice.percent(70) {
        dispute_row(site, bank, &charge).await;
    }
}

async fn dispute_row(site: &mut Site, bank: &Bank, charge: &str) {
    let sql = format!(
        "UPDATE payments SET status = 'DISPUTED', version = version || 'd' WHERE payment_id = '{charge}' AND status = 'CAPTURED'"
    );
    if others(site, &format!("{charge} is DISPUTED"), &sql).await {
        bank.books.lock().unwrap().told_disputed.insert(charge.to_owned());
    }
}

/// The bank's own report of what it has done reaches the ledger.
async fn report(site: &mut Site, bank: &Bank) {
    let accounts = bank.books.lock().unwrap().accounts.clone();
    for (charge, account) in accounts {
        let sql = match account.status {
            PaymentStatus::Captured if account.refunded_minor == account.amount_minor => format!(
                "UPDATE payments SET status = 'REFUNDED', refunded_minor = amount_minor, version = version || 'r'
                 WHERE payment_id = '{charge}' AND status = 'REFUNDING'"
            ),
            PaymentStatus::Voided => format!(
                "UPDATE payments SET status = 'VOIDED', version = version || 'r'
                 WHERE payment_id = '{charge}' AND status = 'VOIDING'"
            ),
            _ => continue,
        };
        others(site, &format!("the bank reports the end of {charge}"), &sql).await;
    }
}

async fn hold_lapses(site: &mut Site) {
    let sql = "UPDATE inventory SET status = 'EXPIRED', version = version || 'e' WHERE status = 'HELD'";
    others(site, "a hold lapses", sql).await;
}

async fn message_moves_on(site: &mut Site, dice: &Dice) {
    let (from, to) = *dice.pick(&[
        ("QUEUED", "IN_FLIGHT"),
        ("IN_FLIGHT", "CONSUMED"),
        ("IN_FLIGHT", "QUEUED"),
        ("IN_FLIGHT", "DEAD"),
    ]);
    let sql = format!(
        "UPDATE messages SET status = '{to}', version = version || 'm' WHERE message_id =
         (SELECT MIN(message_id) FROM messages WHERE status = '{from}')"
    );
    others(site, &format!("a message is {to}"), &sql).await;
}

async fn order_is_ticketed(site: &mut Site, dice: &Dice) {
    let orders = site.in_ledgers("SELECT order_id FROM orders WHERE status = 'PAID' ORDER BY order_id").await;
    if orders.is_empty() {
        return;
    }
    let order = &dice.pick(&orders)[0];
    let sql = format!(
        "UPDATE orders SET status = 'TICKETED', version = version || 't' WHERE order_id = '{order}' AND status = 'PAID'"
    );
    others(site, &format!("{order} is TICKETED"), &sql).await;
}
