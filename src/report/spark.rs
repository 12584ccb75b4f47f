//! Counts over time in one line of text.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A character a count, as high as the count is beside the greatest; nothing is the lowest bar.
pub fn sparkline(counts: &[u64]) -> String {
    let greatest = counts.iter().copied().max().unwrap_or(0).max(1);
    let bar = |count: u64| {
        // A count that is there is seen, however small it is beside the greatest.
        let level = (count * 7).div_ceil(greatest);
        BARS[usize::try_from(level).unwrap_or(7).min(7)]
    };
    counts.iter().map(|count| bar(*count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_as_high_as_it_is_beside_the_greatest() {
        assert_eq!(sparkline(&[0, 0, 8, 0]), "▁▁█▁");
        assert_eq!(sparkline(&[0, 1, 1000]), "▁▂█");
        assert_eq!(sparkline(&[0, 0]), "▁▁");
        assert_eq!(sparkline(&[]), "");
    }
}
