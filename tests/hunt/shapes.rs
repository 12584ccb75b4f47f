//! The purchases that a run is about: few rows each, so that many runs fit in a minute. Together their
//! plans hold a step of every kind.

use onefold::core::ledger::Ledgers;

use crate::common::book::{Book, Change};

pub const SHAPES: [(&str, Change); 6] = [
    ("a paid order too many", |book| {
        book.bought("O-A", 0);
        book.bought("O-B", 20);
        book.message("M-B", "O-B", "ticket.issue", "QUEUED");
    }),
    ("a pending order with an authorization", |book| {
        book.bought("O-A", 0);
        book.reserved("O-C", 30);
        book.payment("P-C", "O-C", 35, "AUTHORIZED");
        book.message("M-C", "O-C", "order.timeout", "IN_FLIGHT");
    }),
    ("an order to be kept and repaired", |book| {
        book.order("O-A", 0, "PENDING_PAYMENT");
        book.payment("P-A", "O-A", 2, "CAPTURED");
        book.payment("P-A2", "O-A", 40, "CAPTURED");
        book.payment("P-A3", "O-A", 50, "AUTHORIZED");
        book.hold("H-A", "O-A", "CONFIRMED");
        book.hold("H-A2", "O-A", "HELD");
        for id in ["M-A", "M-A2"] {
            book.message(id, "O-A", "ticket.issue", "QUEUED").message_key = Some("k".into());
        }
    }),
    ("a cancelled order that is charged still", |book| {
        book.bought("O-A", 0);
        book.order("O-X", 10, "CANCELLED");
        book.payment("P-X", "O-X", 12, "CAPTURED");
        book.payment("P-X2", "O-X", 13, "AUTHORIZED");
        book.hold("H-X", "O-X", "HELD");
        book.message("M-X", "O-X", "ticket.issue", "QUEUED");
    }),
    ("two buyers", |book| {
        book.bought("O-A", 0);
        book.bought("O-B", 20);
        book.bought("O-D", 0);
        book.bought("O-E", 10);
        let of_v = |id: &str| id.ends_with("-D") || id.ends_with("-E");
        let rows = &mut book.ledgers;
        rows.orders.iter_mut().filter(|r| of_v(r.order_id.as_str())).for_each(|r| r.user_id = "v".into());
        rows.payments.iter_mut().filter(|r| of_v(r.payment_id.as_str())).for_each(|r| r.user_id = "v".into());
        rows.inventory.iter_mut().filter(|r| of_v(r.hold_id.as_str())).for_each(|r| r.user_id = "v".into());
    }),
    ("a paid order too many, charged twice", |book| {
        book.bought("O-A", 0);
        book.bought("O-B", 20);
        book.payment("P-B2", "O-B", 25, "CAPTURED");
        book.payment("P-B3", "O-B", 26, "AUTHORIZED");
    }),
];

pub fn rows(shape: usize) -> Ledgers {
    let mut book = Book::new();
    SHAPES[shape].1(&mut book);
    book.ledgers
}
