//! Section 2: orders become intents.

use onefold::core::plan::Finding::*;
use onefold::core::policy::{DifferentRequest, DistinctKeys, WithoutSession};
use onefold::core::time::Span;

use crate::common::book::*;

#[test]
fn orders_up_to_the_gap_apart_are_one_intent_and_farther_ones_are_not() {
    let mut book = Book::new();
    book.order("A", 0, "PENDING_PAYMENT");
    book.order("B", 120, "PENDING_PAYMENT");
    book.order("C", 241, "PENDING_PAYMENT");
    assert_eq!(book.groups(), [vec!["A", "B"], vec!["C"]]);
    book.policy.gap = Span::from_secs(121);
    assert_eq!(book.groups(), [["A", "B", "C"]]);
}

#[test]
fn a_window_is_of_one_tenant_user_show_and_session() {
    let mut book = Book::new();
    book.order("A", 0, "PAID");
    book.order("B", 1, "PAID").tenant_id = "t2".into();
    book.order("C", 2, "PAID").user_id = "u2".into();
    book.order("D", 3, "PAID").show_id = "show2".into();
    book.order("E", 4, "PAID").session_id = Some("s2".into());
    assert_eq!(book.groups().len(), 5);
}

#[test]
fn orders_of_any_status_hold_a_window_together() {
    let mut book = Book::new();
    book.order("A", 0, "PENDING_PAYMENT");
    book.order("B", 100, "CANCELLED");
    book.order("C", 200, "PENDING_PAYMENT");
    assert_eq!(book.groups(), [["A", "B", "C"]]);
}

#[test]
fn an_order_without_session_takes_the_one_that_its_neighbours_name() {
    let mut book = Book::new();
    book.order("A", 0, "CANCELLED");
    book.order("B", 120, "PENDING_PAYMENT").session_id = None;
    let intent = book.intent();
    assert_eq!(intent.orders.len(), 2);
    assert_eq!(intent.session_id, Some("s".into()));
    assert!(!has(&intent, SessionUnknown));
}

#[test]
fn a_session_beyond_the_gap_fills_nothing_nor_does_a_filled_one() {
    let mut book = Book::new();
    book.order("A", 0, "PENDING_PAYMENT");
    book.order("B", 120, "PENDING_PAYMENT").session_id = None;
    book.order("C", 240, "PENDING_PAYMENT").session_id = None;
    assert_eq!(book.groups(), [vec!["C"], vec!["A", "B"]], "C has only B within reach");
}

#[test]
fn a_session_after_the_order_fills_it_too() {
    let mut book = Book::new();
    book.order("A", 0, "PENDING_PAYMENT").session_id = None;
    book.order("B", 120, "PENDING_PAYMENT");
    assert_eq!(book.groups(), [["A", "B"]]);
}

#[test]
fn several_sessions_near_by_leave_the_session_unknown() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.order("B", 60, "PENDING_PAYMENT").session_id = None;
    book.order("C", 120, "PENDING_PAYMENT").session_id = Some("s2".into());
    let intent = book.intent_of("B");
    assert_eq!(intent.orders.len(), 1);
    assert_eq!(intent.session_id, None);
    assert_eq!(review(&intent), (1, vec![SessionUnknown]));
    assert!(!has(&book.intent_of("A"), SessionUnknown));

    book.find_order("B").status = "CANCELLED".parse().unwrap();
    assert_eq!(verdict(&book.intent_of("B")), "CLEAN - 8", "nothing lives there");
    assert!(has(&book.intent_of("B"), SessionUnknown));
}

#[test]
fn sessions_that_left_the_window_are_forgotten() {
    let mut book = Book::new();
    book.order("A", 0, "PENDING_PAYMENT").session_id = Some("s1".into());
    book.order("B", 110, "PENDING_PAYMENT").session_id = None;
    book.order("C", 220, "PENDING_PAYMENT").session_id = Some("s2".into());
    book.order("D", 230, "PENDING_PAYMENT").session_id = None;
    assert_eq!(book.intent_of("B").session_id, None, "A and C are both near");
    assert_eq!(book.intent_of("D").session_id, Some("s2".into()), "only C is near");
}

#[test]
fn one_key_is_one_intent_whatever_the_show_session_or_distance() {
    let mut book = Book::new();
    book.order("A", 0, "CANCELLED").idempotency_key = Some("k".into());
    let far = book.order("B", 3000, "PENDING_PAYMENT");
    far.idempotency_key = Some("k".into());
    far.show_id = "show2".into();
    far.session_id = None;
    let other_user = book.order("C", 0, "PENDING_PAYMENT");
    other_user.idempotency_key = Some("k".into());
    other_user.user_id = "u2".into();
    assert_eq!(book.groups(), [vec!["A", "B"], vec!["C"]]);
    assert_eq!(book.intent_of("B").show_id, Some("show".into()), "the first order's");
}

#[test]
fn a_key_joins_whole_windows() {
    let mut book = Book::new();
    book.order("A", 0, "PENDING_PAYMENT");
    book.order("B", 10, "CANCELLED").idempotency_key = Some("k".into());
    book.order("C", 1000, "CANCELLED").idempotency_key = Some("k".into());
    book.order("D", 1010, "CANCELLED");
    assert_eq!(book.groups(), [["A", "B", "C", "D"]]);
}

#[test]
fn one_key_with_different_requests_is_always_reviewed() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.reserved("B", 1);
    for order in &mut book.ledgers.orders {
        order.idempotency_key = Some("k".into());
    }
    assert_eq!(verdict(&book.intent()), "KEEP A 3");
    book.find_order("B").quantity = 2;
    book.policy.different_request = DifferentRequest::Split;
    book.policy.distinct_keys = DistinctKeys::Merge;
    let intent = book.intent();
    assert_eq!(review(&intent), (1, vec![KeyReused]));
    assert!(!has(&intent, DifferentRequest), "the orders share a key");
}

fn two_keys() -> Book {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1);
    book.find_order("A").idempotency_key = Some("k1".into());
    book.find_order("B").idempotency_key = Some("k2".into());
    book
}

#[test]
fn distinct_keys_are_reviewed_by_default() {
    assert_eq!(review(&two_keys().intent()), (1, vec![DistinctKeys]));
}

#[test]
fn distinct_keys_are_merged_where_policy_says_so() {
    let mut book = two_keys();
    book.policy.distinct_keys = DistinctKeys::Merge;
    assert_eq!(verdict(&book.intent()), "KEEP A 3");
    assert!(has(&book.intent(), DistinctKeys));
}

#[test]
fn distinct_keys_split_and_each_piece_keeps_the_finding() {
    let mut book = two_keys();
    book.policy.distinct_keys = DistinctKeys::Split;
    assert_eq!(book.groups(), [["A"], ["B"]]);
    for order in ["A", "B"] {
        let intent = book.intent_of(order);
        assert_eq!(intent.findings, [DistinctKeys]);
        assert_eq!(verdict(&intent), format!("CLEAN {order} 3"));
    }
}

#[test]
fn where_keys_split_the_orders_without_key_are_one_intent_to_review() {
    let mut book = two_keys();
    book.bought("C", 2);
    book.bought("D", 3);
    book.policy.distinct_keys = DistinctKeys::Split;
    assert_eq!(book.groups(), [vec!["A"], vec!["B"], vec!["C", "D"]]);
    assert_eq!(review(&book.intent_of("C")), (1, vec![DistinctKeys]));
}

#[test]
fn where_keys_split_requests_split_no_further() {
    let mut book = two_keys();
    book.reserved("C", 2);
    book.reserved("D", 3);
    book.find_order("D").quantity = 2;
    book.policy.distinct_keys = DistinctKeys::Split;
    book.policy.different_request = DifferentRequest::Split;
    assert_eq!(book.groups(), [vec!["A"], vec!["B"], vec!["C", "D"]]);
    assert!(has(&book.intent_of("C"), DifferentRequest), "its own orders differ");
    assert!(!has(&book.intent_of("A"), DifferentRequest));
}

#[test]
fn keys_and_requests_of_terminal_orders_raise_no_doubt_but_split() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.order("B", 1, "CANCELLED").quantity = 2;
    assert_eq!(verdict(&book.intent()), "CLEAN A 3");
    assert!(!has(&book.intent(), DifferentRequest));
    book.policy.different_request = DifferentRequest::Split;
    assert_eq!(book.groups(), [["A"], ["B"]]);
    assert!(has(&book.intent_of("B"), DifferentRequest));

    let mut book = two_keys();
    book.find_order("B").status = "REFUNDED".parse().unwrap();
    book.ledgers.payments.retain(|p| p.payment_id.as_str() == "P-A");
    book.ledgers.inventory.retain(|h| h.hold_id.as_str() == "H-A");
    assert_eq!(verdict(&book.intent()), "CLEAN A 3");
    book.policy.distinct_keys = DistinctKeys::Split;
    assert_eq!(book.groups(), [["A"], ["B"]]);
}

fn two_requests() -> Book {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1);
    book.find_order("B").item = Some("VIP".into());
    book
}

#[test]
fn different_requests_without_a_shared_key_are_reviewed_by_default() {
    assert_eq!(review(&two_requests().intent()), (1, vec![DifferentRequest]));
}

#[test]
fn every_part_of_a_request_makes_it_another() {
    for change in 0..4 {
        let mut book = Book::new();
        book.bought("A", 0);
        book.bought("B", 1);
        let order = book.find_order("B");
        match change {
            0 => order.item = Some("VIP".into()),
            1 => order.quantity = 2,
            2 => order.amount_minor = 999,
            _ => order.currency = "EUR".parse().unwrap(),
        }
        assert!(has(&book.intent(), DifferentRequest), "change {change}");
    }
}

#[test]
fn different_requests_split_where_policy_says_so() {
    let mut book = two_requests();
    book.bought("C", 2);
    book.policy.different_request = DifferentRequest::Split;
    assert_eq!(book.groups(), [vec!["A", "C"], vec!["B"]]);
    assert_eq!(verdict(&book.intent_of("A")), "KEEP A 3");
    assert!(has(&book.intent_of("A"), DifferentRequest));
}

#[test]
fn a_doubt_that_ends_in_review_stops_every_split() {
    let mut book = two_keys();
    book.find_order("B").quantity = 2;
    book.policy.different_request = DifferentRequest::Split;
    let intent = book.intent();
    assert_eq!(review(&intent).1, [DistinctKeys]);
    assert!(has(&intent, DifferentRequest));

    let mut book = two_requests();
    book.policy.different_request = DifferentRequest::Split;
    book.policy.max_span = Span::from_micros(999_999);
    assert_eq!(review(&book.intent()).1, [SpanExceeded]);
}

#[test]
fn an_intent_longer_than_the_span_is_reviewed() {
    let mut book = Book::new();
    book.bought("A", 0);
    for i in 1..6 {
        book.reserved(&format!("B{i}"), i * 120);
    }
    assert_eq!(verdict(&book.intent()), "KEEP A 3", "exactly ten minutes");
    book.reserved("C", 601);
    assert_eq!(review(&book.intent()), (1, vec![SpanExceeded]));
    book.find_order("C").status = "CANCELLED".parse().unwrap();
    book.ledgers.inventory.retain(|h| h.order_id != Some("C".into()));
    assert_eq!(verdict(&book.intent()), "KEEP A 3", "a terminal order is no doubt");
}

#[test]
fn live_orders_without_any_session_are_reviewed_unless_they_share_a_key() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1);
    for order in &mut book.ledgers.orders {
        order.session_id = None;
    }
    assert_eq!(review(&book.intent()), (1, vec![SessionUnknown]));

    book.policy.without_session = WithoutSession::Merge;
    assert_eq!(verdict(&book.intent()), "KEEP A 3");

    book.policy.without_session = WithoutSession::Review;
    for order in &mut book.ledgers.orders {
        order.idempotency_key = Some("k".into());
    }
    assert_eq!(verdict(&book.intent()), "KEEP A 3");
    book.bought("C", 2);
    book.find_order("C").session_id = None;
    assert_eq!(review(&book.intent()).1, [SessionUnknown], "C shares no key");
}

#[test]
fn a_guests_orders_are_not_filled_and_not_joined_without_session() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1);
    book.bought("C", 2);
    book.bought("D", 3);
    book.find_order("B").session_id = None;
    book.find_order("C").session_id = None;
    assert_eq!(book.groups().len(), 1);
    book.policy.guests.insert("u".into());
    assert_eq!(book.groups(), [vec!["B"], vec!["C"], vec!["A", "D"]]);
    for order in ["B", "C"] {
        book.find_order(order).idempotency_key = Some("k".into());
    }
    assert_eq!(book.groups(), [["B", "C"], ["A", "D"]], "a key joins strangers' orders");
}

#[test]
fn an_intent_is_in_scope_with_any_of_its_orders_and_grouping_ignores_the_scope() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 100);
    book.order("C", 1000, "PENDING_PAYMENT");
    book.scope.from = Some(at(50));
    book.scope.to = Some(at(101));
    assert_eq!(book.groups(), [["A", "B"]], "A comes along, C does not");
    book.scope.to = Some(at(100));
    assert!(book.groups().is_empty(), "a window ends before its `to`");
}

#[test]
fn a_session_in_the_scope_is_the_filled_one() {
    let mut book = Book::new();
    book.order("A", 0, "PENDING_PAYMENT").session_id = None;
    book.order("B", 100, "PENDING_PAYMENT");
    book.scope.sessions.insert("s".into());
    book.scope.to = Some(at(50));
    assert_eq!(book.groups(), [["A", "B"]]);
}
