//! Which shape counts have over time.

use onefold::core::time::{Span, Timestamp};
use onefold::core::trace::shape::{Pieces, Shape, shape};
use proptest::prelude::*;

/// So many pieces; each is its mean, give or take this part of it. A shape that must always be seen stands far enough
/// out of the noise that no draw can bend it into another.
fn noisy(means: Vec<u64>, by: f64) -> impl Strategy<Value = Vec<u64>> {
    let count = means.len();
    prop::collection::vec(1.0 - by..1.0 + by, count)
        .prop_map(move |noise| means.iter().zip(noise).map(|(m, n)| (*m as f64 * n).round() as u64).collect())
}

fn level(low: u64, high: u64, at: usize, count: usize) -> Vec<u64> {
    (0..count).map(|i| if i < at { low } else { high }).collect()
}

proptest! {
    #[test]
    fn a_step_is_a_step_and_backwards_a_cliff(
        counts in (16_usize..48, 1_u64..20).prop_flat_map(|(count, low)| {
            (count / 3..count * 2 / 3).prop_flat_map(move |at| noisy(level(low, low * 12 + 20, at, count), 0.15))
        })
    ) {
        prop_assert_eq!(shape(&counts), Shape::Step);
        let backwards: Vec<_> = counts.iter().rev().copied().collect();
        prop_assert_eq!(shape(&backwards), Shape::Cliff);
    }

    #[test]
    fn what_is_level_has_no_shape(counts in (16_usize..48, 20_u64..500).prop_flat_map(|(n, m)| noisy(vec![m; n], 0.25))) {
        prop_assert_eq!(shape(&counts), Shape::Other);
    }

    #[test]
    fn what_grows_from_quarter_to_quarter_is_a_ramp(
        counts in (16_usize..48, 10_u64..90).prop_flat_map(|(n, by)| noisy((1..=n as u64).map(|i| i * by).collect(), 0.05))
    ) {
        prop_assert_eq!(shape(&counts), Shape::Ramp);
    }

    #[test]
    fn few_that_stand_alone_are_needles(
        places in prop::collection::btree_set(0_usize..12, 1..4), height in 1_u64..1000
    ) {
        let mut counts = vec![0; 48];
        // Never more than two side by side.
        places.iter().for_each(|place| counts[place * 4] = height);
        prop_assert_eq!(shape(&counts), Shape::Needles);
    }

    #[test]
    fn no_instant_is_lost_and_pieces_fit_a_line(first in 0_i64..1 << 50, span in 0_i64..1 << 45) {
        let (first, last) = (Timestamp::from_micros(first), Timestamp::from_micros(first + span));
        let pieces = Pieces::over(first, last, None).unwrap();
        prop_assert!(pieces.count <= 50, "{:?}", pieces);
        for at in [first, last, Timestamp::from_micros(first.micros() + span / 2)] {
            let piece = pieces.of(at);
            prop_assert!(piece < pieces.count);
            prop_assert!(pieces.begin(piece) <= at && at < pieces.begin(piece + 1), "{:?} in {:?}", at, pieces);
        }
    }
}

#[test]
fn the_edges_of_the_rules() {
    assert_eq!(shape(&[]), Shape::Nothing);
    assert_eq!(shape(&[0; 20]), Shape::Nothing);
    assert_eq!(shape(&[9; 7]), Shape::Other, "too few pieces");
    assert_eq!(shape(&[0, 0, 0, 0, 3, 3, 3, 3]), Shape::Other, "too few in all");
    assert_eq!(shape(&[0, 0, 0, 0, 9, 9, 9, 9]), Shape::Step);
    let mut three_wide = [0; 40];
    three_wide[10..13].fill(5);
    assert_ne!(shape(&three_wide), Shape::Needles, "three side by side");
    for shape in Shape::ALL {
        assert!(!shape.rule().is_empty());
    }
}

#[test]
fn pieces_of_a_given_length_may_be_too_many() {
    let (first, last) = (Timestamp::from_micros(0), Timestamp::from_micros(86_400_000_000));
    assert_eq!(Pieces::over(first, last, Some(Span::from_mins(60))).unwrap().count, 25);
    assert_eq!(Pieces::over(first, last, Some(Span::from_micros(1))), None);
}
