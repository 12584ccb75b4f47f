//! Rows as they stand in a file, read a second time.

use std::ops::Range;

use rayon::prelude::*;

use super::layout::Places;
use super::source::Source;

/// How many rows are copied as one part.
const ROWS: usize = 1 << 14;

/// Rows as they stand in a file, those of one stretch together.
pub(super) struct Copied {
    text: Vec<u8>,
    /// The first of the stretches.
    first: usize,
    /// Where the rows of each stretch begin, and at the end how long the text is.
    begins: Vec<u32>,
}

impl Copied {
    /// The rows of some stretches, in parts that follow each other in the file; nothing where they are not as they were.
    pub(super) fn of_stretches(
        source: &Source,
        places: &Places,
        stretches: &Range<usize>,
    ) -> Option<Vec<Self>> {
        let of = |stretch: usize| places.of(stretch).iter().map(move |at| (*at, stretch));
        let mut rows: Vec<(u64, usize)> = stretches.clone().flat_map(of).collect();
        rows.par_sort_unstable();
        rows.par_chunks(ROWS).map(|part| Self::new(source, part, stretches)).collect()
    }

    /// The rows at these places of a file, which come in its order, each with its stretch.
    fn new(source: &Source, rows: &[(u64, usize)], stretches: &Range<usize>) -> Option<Self> {
        let mut records = source.records(rows[0].0);
        let mut text = Vec::with_capacity(rows.len() * 192);
        let mut all: Vec<(usize, Range<usize>)> = Vec::with_capacity(rows.len());
        for &(at, stretch) in rows {
            records.jump(at).ok()?;
            let begin = text.len();
            text.extend_from_slice(records.next_bytes().ok()??);
            if !text.ends_with(b"\n") {
                text.push(b'\n');
            }
            all.push((stretch, begin..text.len()));
        }
        all.sort_by_key(|(stretch, _)| *stretch);
        let mut sorted = Vec::with_capacity(text.len());
        let mut begins = Vec::with_capacity(stretches.len() + 1);
        for (stretch, range) in all {
            begins.resize(stretch - stretches.start + 1, u32::try_from(sorted.len()).ok()?);
            sorted.extend_from_slice(&text[range]);
        }
        begins.resize(stretches.len() + 1, u32::try_from(sorted.len()).ok()?);
        Some(Self { text: sorted, first: stretches.start, begins })
    }

    pub(super) fn of(&self, stretch: usize) -> &[u8] {
        let at = stretch - self.first;
        &self.text[self.begins[at] as usize..self.begins[at + 1] as usize]
    }
}
