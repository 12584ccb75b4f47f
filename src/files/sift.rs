//! Reading for a plan of everything in two passes: the first looks at every cell, as [`super::read()`] does, but
//! keeps of each row only what tells whether its order is plain ([`crate::core::plain`]); the second
//! reads the few rows that are not, in full.
//!
//! Files are cut into pieces that are read side by side. What this cannot do, such as saying on which line a
//! fault stands, it leaves to the other reader by giving nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{Seek, SeekFrom};
use std::num::NonZero;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::{panic, thread};

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashSet};
use hashbrown::HashTable;

use super::LedgerFiles;
use super::cells::{Cells, Reading};
use super::decode;
use super::faults::{FileFaults, Note};
use super::header::Header;
use super::options::{Encoding, ReadOptions};
use super::read::{noted, open};
use super::records::{Record, Records};
use super::table::{Column, FileRow};
use crate::core::evidence::Evidence;
use crate::core::ledger::{Hold, Ledgers, Message, Order, Payment};
use crate::core::money::Currency;
use crate::core::plain::{
    Kind, Kinds, LoneOrder, Mark, Plain, PlainIntent, Stretch, Stretches, Unlisted, rank,
};
use crate::core::plan::{Plan, PlanError, PlannedIntent, make};
use crate::core::policy::Policy;
use crate::core::scope::Scope;
use crate::core::status::{HoldStatus, Ledger, MessageStatus, OrderStatus, PaymentStatus};
use crate::core::time::Timestamp;

/// How much is done at once.
#[derive(Clone, Copy, Debug)]
pub struct Portions {
    /// How many bytes of a file are read as one piece, at most 4 MiB: a row's place in its piece stands in 22 bits.
    pub bytes: u64,
    /// How many orders are decided as one stretch of the plan.
    pub orders: usize,
}

impl Default for Portions {
    fn default() -> Self {
        Self { bytes: 1 << 22, orders: 1 << 12 }
    }
}

/// What both passes leave: all orders as narrow as they go, and of those that may not be plain every row as it
/// stands in the files, by the stretch of the plan in which it is decided.
pub struct Sifted<'a> {
    sources: [Source<'a>; 4],
    options: &'a ReadOptions,
    orders: Orders,
    kinds: Vec<Kind>,
    decided: HashMap<Kind, Plain>,
    layout: Layout,
    /// By ledger: the rows of the orders in its pieces.
    rows: [Vec<Copied>; 4],
    pub notes: Vec<Note>,
}

/// Reads the four ledgers for a plan as of this time. `None` where the files are not as usual: they
/// are in another encoding, something in them is at fault or worth a note, an id comes twice.
pub fn sift<'a>(
    files: &'a LedgerFiles,
    options: &'a ReadOptions,
    policy: &Policy,
    as_of: Timestamp,
    portions: Portions,
    progress: &(dyn Fn(Ledger, u64) + Sync),
) -> Option<Sifted<'a>> {
    let mut notes = Vec::new();
    let sources = [
        Source::open::<Order>(&files.orders, options, portions.bytes, &mut notes)?,
        Source::open::<Payment>(&files.payments, options, portions.bytes, &mut notes)?,
        Source::open::<Hold>(&files.inventory, options, portions.bytes, &mut notes)?,
        Source::open::<Message>(&files.messages, options, portions.bytes, &mut notes)?,
    ];
    let hashing = RandomState::default();
    let mut orders = Orders::read(&sources[0], options, &hashing, progress)?;
    let first = FirstPass { orders: &orders, options, policy, as_of, hashing: &hashing };

    let pieces: Vec<(usize, usize)> =
        [3, 1, 2].into_iter().flat_map(|s| (0..sources[s].pieces()).map(move |piece| (s, piece))).collect();
    let read = side_by_side(pieces.len(), |i| {
        let (source, piece) = pieces[i];
        let attached = first.read(&sources[source], piece)?;
        progress(sources[source].ledger, attached.rows.len() as u64);
        Some(attached)
    })?;
    let mut attached: [Vec<Attached>; 4] = Default::default();
    for ((source, _), piece) in pieces.iter().zip(read) {
        attached[*source].push(piece);
    }
    side_by_side(3, |i| Attached::are_one_file(&attached[i + 1]).then_some(()))?;
    attached.iter_mut().flatten().for_each(|piece| piece.ids = Vec::new());

    let mut kinds = std::mem::take(&mut orders.kinds);
    for row in attached.iter().flatten().flat_map(|piece| &piece.rows).filter(|row| row.order != NO_ORDER) {
        kinds[row.order as usize].add(row.mark());
    }
    let layout = Layout::new(&orders, &mut kinds, &attached, portions.orders);
    orders.places = Vec::new();
    orders.keys = Vec::new();
    let mut decided = Kinds::new(policy, as_of);
    let stretch_of: Vec<u32> = (0..)
        .zip(&kinds)
        .map(|(order, kind)| decided.plain(*kind).map_or(layout.stretch_of(order), |_| NO_STRETCH))
        .collect();
    let rows = copy_rows(&sources, &orders, &attached, &stretch_of, layout.stretches())?;
    let decided = decided.into_plain();
    Some(Sifted { sources, options, orders, kinds, decided, layout, rows, notes })
}

impl Sifted<'_> {
    /// Decides everything in scope, and gives the plan with the number of purchases that it does not list:
    /// none where it is to be `whole`. `None` where a file has changed since it was read.
    ///
    /// # Errors
    /// As [`make`] does.
    pub fn plan(
        &self,
        scope: &Scope,
        policy: &Policy,
        as_of: Timestamp,
        whole: bool,
        plan_id: String,
        made_at: Timestamp,
    ) -> Option<Result<(Plan, Unlisted), PlanError>> {
        let decide = |stretch: usize| {
            let ledgers = self.ledgers(stretch)?;
            Some(make(&ledgers, scope, policy, as_of, &Evidence::default()))
        };
        let mut apart = match decide(Layout::APART)? {
            Ok(decided) => decided,
            Err(error) => return Some(Err(error)),
        };
        let apart_intents = self.by_stretch(std::mem::take(&mut apart.intents));
        let mut stretches = Stretches::new(apart, plan_id, made_at);
        let work = |at: usize| {
            let mut decided = match decide(at + 1)? {
                Ok(decided) => decided,
                Err(error) => return Some(Err(error)),
            };
            let mut others = std::mem::take(&mut decided.intents);
            let mut apart = apart_intents[at].lock().unwrap_or_else(PoisonError::into_inner);
            if !apart.is_empty() {
                others.append(&mut apart);
                // Those of one place are together, in their order.
                others.sort_by(|a, b| rank(a).cmp(&rank(b)));
            }
            let plain = self.plain(at + 1).filter(|intent| intent.in_scope(scope));
            Some(Ok((Stretch::new(others, plain, whole), decided)))
        };
        let mut error = None;
        in_turn(self.layout.stretches() - 1, work, |done| match done? {
            Ok((stretch, decided)) => {
                stretches.add(stretch);
                stretches.add_sums(decided);
                Some(())
            }
            Err(other) => {
                error = Some(other);
                None
            }
        })
        .or(error.as_ref().map(|_| ()))?;
        Some(error.map_or_else(|| stretches.end(), Err))
    }

    /// All rows of a stretch that are not of plain purchases.
    fn ledgers(&self, stretch: usize) -> Option<Ledgers> {
        let [orders, payments, inventory, messages] = &self.sources;
        Some(Ledgers {
            orders: orders.parse(&self.rows[0], stretch, self.options)?,
            payments: payments.parse(&self.rows[1], stretch, self.options)?,
            inventory: inventory.parse(&self.rows[2], stretch, self.options)?,
            messages: messages.parse(&self.rows[3], stretch, self.options)?,
        })
    }

    /// The plain purchases of a stretch, in the plan's order.
    fn plain(&self, stretch: usize) -> impl Iterator<Item = PlainIntent<'_>> {
        self.layout.orders_of(stretch).iter().filter_map(|&i| {
            let plain = *self.decided.get(&self.kinds[i as usize])?;
            Some(PlainIntent { order: self.orders.get(i), plain })
        })
    }

    /// Intents that were decided apart, by the stretch to whose places they belong, but for the first: that is
    /// where they were decided.
    fn by_stretch(&self, intents: Vec<PlannedIntent>) -> Vec<Mutex<Vec<PlannedIntent>>> {
        let count = self.layout.stretches() - 1;
        let begin = |at: usize| self.layout.orders_of(at + 1).first().map(|&order| self.orders.get(order));
        let begins: Vec<_> = (1..count).map(begin).collect();
        let mut by_stretch: Vec<Vec<PlannedIntent>> = (0..count).map(|_| Vec::new()).collect();
        for intent in intents {
            let at = begins.partition_point(|begin| begin.is_some_and(|begin| begin.rank() <= rank(&intent)));
            by_stretch[at].push(intent);
        }
        by_stretch.into_iter().map(Mutex::new).collect()
    }
}

/// In place of a stretch, for a plain order: no row of it is read again.
const NO_STRETCH: u32 = u32::MAX;

/// Which orders are decided together: those of a stretch of the plan. What may have to do with an order of another
/// place is decided apart from all stretches, and so is every orphan.
struct Layout {
    /// All orders as a plan sorts them, by tenant, user and show.
    sorted: Vec<u32>,
    /// Where each stretch begins in it, and at the end how many orders there are; the first is [`Self::APART`], and empty.
    begins: Vec<usize>,
    /// By order: its stretch.
    of: Vec<u32>,
}

impl Layout {
    /// The stretch of what is decided apart.
    const APART: usize = 0;

    /// Makes odd whatever does not stand alone: orders of one (tenant, user, show), of one key or with
    /// payments of one transaction, and those near which an orphan may belong. By their hashes: equal
    /// ones may be one too many, never one too few.
    fn new(orders: &Orders, kinds: &mut [Kind], attached: &[Vec<Attached>; 4], at_once: usize) -> Self {
        let sorted = orders.sorted();
        let place = |order: u32| orders.get(order).rank();
        let mut place_of = vec![0; sorted.len()];
        let mut places: Vec<Range<usize>> = Vec::new();
        for same in sorted.chunk_by(|a, b| place(*a) == place(*b)) {
            let begin = places.last().map_or(0, |before| before.end);
            for &order in same {
                place_of[order as usize] = places.len();
                if same.len() > 1 {
                    kinds[order as usize].set_odd();
                }
            }
            places.push(begin..begin + same.len());
        }

        let mut is_apart = vec![false; places.len()];
        let orphans: HashSet<u64> =
            attached.iter().flatten().flat_map(|piece| &piece.orphan_places).copied().collect();
        if !orphans.is_empty() {
            for (hash, place) in orders.places.iter().zip(&place_of) {
                is_apart[*place] |= orphans.contains(hash);
            }
        }
        let transactions = attached.iter().flatten().flat_map(|piece| piece.transactions.iter().copied());
        for mut named in [orders.keys.clone(), transactions.collect::<Vec<(u64, u32)>>()] {
            named.sort_unstable();
            for same in named.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
                let mut places = same.iter().map(|(_, order)| place_of.get(*order as usize));
                let first = places.next().flatten();
                let is_far = places.any(|place| place != first);
                for (_, order) in same.iter().filter(|(_, order)| *order != NO_ORDER) {
                    kinds[*order as usize].set_odd();
                    is_apart[place_of[*order as usize]] |= is_far;
                }
            }
        }

        let mut of = vec![0; sorted.len()];
        let mut begins = vec![0, 0];
        for (place, is_apart) in places.iter().zip(is_apart) {
            if place.start - begins[begins.len() - 1] >= at_once {
                begins.push(place.start);
            }
            for &order in &sorted[place.clone()] {
                of[order as usize] = if is_apart { Self::APART } else { begins.len() - 1 } as u32;
                if is_apart {
                    kinds[order as usize].set_odd();
                }
            }
        }
        begins.push(sorted.len());
        Self { sorted, begins, of }
    }

    /// How many stretches there are, with the one that is decided apart.
    fn stretches(&self) -> usize {
        self.begins.len() - 1
    }

    fn stretch_of(&self, order: u32) -> u32 {
        self.of[order as usize]
    }

    /// Its orders, those that are decided apart included.
    fn orders_of(&self, stretch: usize) -> &[u32] {
        &self.sorted[self.begins[stretch]..self.begins[stretch + 1]]
    }
}

/// Rows as they stand in a file, those of one stretch together.
#[derive(Default)]
struct Copied {
    text: Vec<u8>,
    /// Where those of each stretch begin, and at the end how long the text is.
    begins: Vec<u32>,
}

impl Copied {
    /// Copies the rows at these places of a file; they come in its order, each with its stretch.
    fn new(source: &Source<'_>, rows: &[(u64, u32)], stretches: usize) -> Option<Self> {
        let mut copied = Self { text: Vec::new(), begins: vec![0; stretches + 1] };
        let Some(first) = rows.first() else { return Some(copied) };
        let mut records = source.records(first.0)?;
        let mut text = Vec::with_capacity(rows.len() * 192);
        let mut all: Vec<(u32, Range<usize>)> = Vec::with_capacity(rows.len());
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
        copied.text.reserve_exact(text.len());
        for (stretch, range) in all {
            copied.text.extend_from_slice(&text[range]);
            copied.begins[stretch as usize + 1] = u32::try_from(copied.text.len()).ok()?;
        }
        for stretch in 0..stretches {
            copied.begins[stretch + 1] = copied.begins[stretch + 1].max(copied.begins[stretch]);
        }
        Some(copied)
    }

    fn of(&self, stretch: usize) -> &[u8] {
        &self.text[self.begins[stretch] as usize..self.begins[stretch + 1] as usize]
    }
}

/// The second pass: every row of the orders that are not plain, and every orphan.
fn copy_rows(
    sources: &[Source<'_>; 4],
    orders: &Orders,
    attached: &[Vec<Attached>; 4],
    stretch_of: &[u32],
    stretches: usize,
) -> Option<[Vec<Copied>; 4]> {
    let rows: Vec<(u64, u32)> = orders
        .rows
        .iter()
        .zip(stretch_of)
        .filter(|(_, stretch)| **stretch != NO_STRETCH)
        .map(|(row, stretch)| (row.at, *stretch))
        .collect();
    let parts: Vec<&[(u64, u32)]> = rows.chunks(1 << 14).collect();
    let copied = side_by_side(parts.len(), |i| Copied::new(&sources[0], parts[i], stretches))?;
    let of = |row: &Row| match row.order {
        NO_ORDER => Layout::APART as u32,
        order => stretch_of[order as usize],
    };
    let copy = |ledger: usize| {
        side_by_side(attached[ledger].len(), |piece| {
            let start = sources[ledger].piece(piece).start;
            let rows = attached[ledger][piece].rows.iter().map(|row| (start + row.at(), of(row)));
            let rows: Vec<(u64, u32)> = rows.filter(|(_, stretch)| *stretch != NO_STRETCH).collect();
            Copied::new(&sources[ledger], &rows, stretches)
        })
    };
    Some([copied, copy(1)?, copy(2)?, copy(3)?])
}

/// Does pieces of work on all processors, and hands on what they give in their order; stops where that gives
/// nothing.
fn in_turn<T: Send>(
    pieces: usize,
    work: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(T) -> Option<()>,
) -> Option<()> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(pieces).max(1);
    let next = AtomicUsize::new(0);
    let (sender, done) = mpsc::sync_channel(threads);
    thread::scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            let (next, work) = (&next, &work);
            scope.spawn(move || {
                loop {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    // Nobody is left to tell only where no more is wanted.
                    if piece >= pieces || sender.send((piece, work(piece))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut wanted = 0;
        for (piece, result) in done {
            early.insert(piece, result);
            while let Some(result) = early.remove(&wanted) {
                take(result)?;
                wanted += 1;
            }
        }
        (wanted == pieces).then_some(())
    })
}

/// Does pieces of work on all processors, and gives what they give in their order; nothing where one gives nothing.
fn side_by_side<T: Send>(pieces: usize, work: impl Fn(usize) -> Option<T> + Sync) -> Option<Vec<T>> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(pieces).max(1);
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= pieces {
                return Some(done);
            }
            match work(piece) {
                Some(result) => done.push((piece, result)),
                None => {
                    next.store(pieces, Ordering::Relaxed);
                    return None;
                }
            }
        }
    };
    let mut all = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let ended = workers.into_iter().map(|w| w.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
        ended.collect::<Vec<Option<Vec<(usize, T)>>>>()
    })
    .into_iter()
    .collect::<Option<Vec<_>>>()?
    .into_iter()
    .flatten()
    .collect::<Vec<_>>();
    all.sort_unstable_by_key(|(piece, _)| *piece);
    Some(all.into_iter().map(|(_, result)| result).collect())
}

/// A file whose bytes are its text, and the way its rows stand in it.
struct Source<'p> {
    path: &'p Path,
    ledger: Ledger,
    columns: &'static [Column],
    header: Header,
    delimiter: u8,
    /// Where its rows begin, how long it is and how long its pieces are, in bytes.
    begin: u64,
    length: u64,
    piece: u64,
}

impl<'p> Source<'p> {
    fn open<R: FileRow>(
        path: &'p Path,
        options: &ReadOptions,
        piece: u64,
        notes: &mut Vec<Note>,
    ) -> Option<Self> {
        let text = decode::open(path, options.encoding).ok()?;
        if text.marked || text.encoding != Encoding::Utf8 {
            return None;
        }
        let mut faults = FileFaults::new("", Some(R::LEDGER));
        let mut told = Vec::new();
        let (mut records, _) = open(path, options.encoding, &mut faults, &mut told)?;
        let header = records.next().ok()??;
        let header = Header::read(&header, R::LEDGER, R::COLUMNS, options, &mut faults);
        if faults.count > 0 {
            return None;
        }
        told.extend(header.notes.iter().cloned());
        notes.extend(noted(path, R::LEDGER, told));
        let length = path.metadata().ok()?.len();
        let (begin, delimiter) = (records.offset(), records.delimiter);
        Some(Self { path, ledger: R::LEDGER, columns: R::COLUMNS, header, delimiter, begin, length, piece })
    }

    fn pieces(&self) -> usize {
        (self.length.saturating_sub(self.begin)).div_ceil(self.piece) as usize
    }

    /// How many rows a piece has, where they are not unusually short: room is made for them at once.
    fn rows_at_most(&self) -> usize {
        self.piece.min(self.length) as usize / 96
    }

    fn piece(&self, piece: usize) -> Range<u64> {
        let begin = self.begin + piece as u64 * self.piece;
        begin..begin + self.piece
    }

    fn records(&self, from: u64) -> Option<Records<File>> {
        let mut file = File::open(self.path).ok()?;
        file.seek(SeekFrom::Start(from)).ok()?;
        let mut records = Records::at(from, file);
        records.delimiter = self.delimiter;
        Some(records)
    }

    fn reading<'o>(&self, options: &'o ReadOptions) -> Reading<'o> {
        Reading::new(options, self.ledger, self.columns.len(), FileFaults::new("", None))
    }

    /// Takes the cells of every record that begins in a piece; gives where the first of them begins, and
    /// the first after them.
    fn read_piece(
        &self,
        piece: usize,
        options: &ReadOptions,
        mut take: impl FnMut(u32, &mut Cells<'_, '_>) -> Option<()>,
    ) -> Option<Range<u64>> {
        let Range { start, end } = self.piece(piece);
        let mut records = self.records(if piece == 0 { start } else { start - 1 })?;
        if piece > 0 {
            // It is the end of the record before, unless that one holds line ends: then the pieces do not meet.
            records.skip_line().ok()?;
        }
        let mut reading = self.reading(options);
        let (mut first, mut after) = (None, u64::MAX);
        while let Some(record) = records.next().ok()? {
            first.get_or_insert(record.offset);
            if record.offset >= end {
                after = record.offset;
                break;
            }
            let mut cells = self.cells(&record, &mut reading)?;
            take((record.offset - start) as u32, &mut cells)?;
        }
        reading.is_silent().then(|| first.unwrap_or(after)..after)
    }

    /// The rows of a stretch; `None` where they are not as they were.
    fn parse<R: FileRow>(&self, copied: &[Copied], stretch: usize, options: &ReadOptions) -> Option<Vec<R>> {
        let text = copied.iter().map(|piece| piece.of(stretch)).collect::<Vec<_>>().concat();
        let mut records = Records::new(&text[..]);
        records.delimiter = self.delimiter;
        let mut reading = self.reading(options);
        let mut rows = Vec::with_capacity(text.len() / 128);
        while let Some(record) = records.next().ok()? {
            rows.push(R::read(&mut self.cells(&record, &mut reading)?)?);
        }
        Some(rows)
    }

    fn cells<'c, 'o>(
        &'c self,
        record: &'c Record<'c>,
        reading: &'c mut Reading<'o>,
    ) -> Option<Cells<'c, 'o>> {
        let is_whole = record.after_quote.is_none() && record.len() == self.header.width();
        is_whole.then(|| Cells::new(self.columns, &self.header, record, reading))
    }
}

/// Whether pieces of one file meet: each begins where the one before it ends.
fn meet<'r>(mut pieces: impl Iterator<Item = &'r Range<u64>>) -> bool {
    let Some(mut before) = pieces.next() else { return true };
    pieces.all(|piece| std::mem::replace(&mut before, piece).end == piece.start)
}

/// Whether all hashes differ.
fn all_differ(mut hashes: Vec<u64>) -> bool {
    hashes.sort_unstable();
    hashes.is_sorted_by(|a, b| a < b)
}

fn maybe(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// An order's columns, without its texts.
struct Narrow {
    /// Where its texts begin, one after the other: order, tenant, user, show, session, item.
    texts: u32,
    lengths: [u8; 6],
    currency: Currency,
    status: OrderStatus,
    quantity: i64,
    amount_minor: i64,
    created_at: Timestamp,
    /// Where its row begins in the file.
    at: u64,
}

/// All orders, as narrow as they go.
struct Orders {
    rows: Vec<Narrow>,
    texts: String,
    /// Before anything attaches.
    kinds: Vec<Kind>,
    index: HashTable<u32>,
    /// By order, the hash of its (tenant, user, show).
    places: Vec<u64>,
    /// Hashes of (tenant, user, key), and the orders that have one.
    keys: Vec<(u64, u32)>,
}

#[derive(Default)]
struct OrdersPiece {
    rows: Vec<Narrow>,
    texts: String,
    places: Vec<u64>,
    keys: Vec<(u64, u32)>,
    range: Range<u64>,
}

impl Orders {
    fn read(
        source: &Source<'_>,
        options: &ReadOptions,
        hashing: &RandomState,
        progress: &(dyn Fn(Ledger, u64) + Sync),
    ) -> Option<Self> {
        let pieces = side_by_side(source.pieces(), |piece| {
            let rows = source.rows_at_most();
            let mut read = OrdersPiece {
                rows: Vec::with_capacity(rows),
                texts: String::with_capacity(rows * 64),
                places: Vec::with_capacity(rows),
                keys: Vec::with_capacity(rows),
                ..OrdersPiece::default()
            };
            let start = source.piece(piece).start;
            read.range = source.read_piece(piece, options, |offset, cells| {
                read.add(start + u64::from(offset), cells, hashing)
            })?;
            progress(Ledger::Orders, read.rows.len() as u64);
            Some(read)
        })?;
        if !meet(pieces.iter().map(|piece| &piece.range)) {
            return None;
        }
        let count: usize = pieces.iter().map(|piece| piece.rows.len()).sum();
        let length: usize = pieces.iter().map(|piece| piece.texts.len()).sum();
        if u32::try_from(length).is_err() || u32::try_from(count).is_ok_and(|count: u32| count == NO_ORDER) {
            return None;
        }
        let mut orders = Self {
            rows: Vec::with_capacity(count),
            texts: String::with_capacity(length),
            kinds: Vec::with_capacity(count),
            index: HashTable::with_capacity(count),
            places: Vec::with_capacity(count),
            keys: Vec::new(),
        };
        for piece in pieces {
            let (rows, texts) = (orders.rows.len() as u32, orders.texts.len() as u32);
            orders.kinds.extend(piece.rows.iter().map(|row| Kind::of_order(row.status, row.amount_minor)));
            orders.rows.extend(piece.rows.into_iter().map(|row| Narrow { texts: texts + row.texts, ..row }));
            orders.texts.push_str(&piece.texts);
            orders.places.extend(piece.places);
            orders.keys.extend(piece.keys.into_iter().map(|(hash, order)| (hash, rows + order)));
        }
        let hash = |order: &LoneOrder<'_>| hashing.hash_one((order.tenant_id, order.order_id));
        let mut index = std::mem::take(&mut orders.index);
        for i in 0..orders.rows.len() as u32 {
            let order = orders.get(i);
            let hash_of = hash(&order);
            if index.find(hash_of, |other| orders.is(*other, order.tenant_id, order.order_id)).is_some() {
                return None;
            }
            index.insert_unique(hash_of, i, |other| hash(&orders.get(*other)));
        }
        orders.index = index;
        Some(orders)
    }

    /// Whether an order is the one of this tenant and id.
    fn is(&self, order: u32, tenant_id: &str, order_id: &str) -> bool {
        let row = &self.rows[order as usize];
        let [id, tenant, ..] = row.lengths.map(usize::from);
        let texts = &self.texts.as_bytes()[row.texts as usize..];
        (id, tenant) == (order_id.len(), tenant_id.len())
            && texts[..id] == *order_id.as_bytes()
            && texts[id..id + tenant] == *tenant_id.as_bytes()
    }

    fn get(&self, order: u32) -> LoneOrder<'_> {
        let row = &self.rows[order as usize];
        let [id, tenant, user, show, session, item] = row.lengths.map(usize::from);
        let (order_id, rest) = self.texts[row.texts as usize..].split_at(id);
        let (tenant_id, rest) = rest.split_at(tenant);
        let (user_id, rest) = rest.split_at(user);
        let (show_id, rest) = rest.split_at(show);
        let (session_id, rest) = rest.split_at(session);
        let item = &rest[..item];
        LoneOrder {
            order_id,
            tenant_id,
            user_id,
            show_id,
            session_id: maybe(session_id),
            item: maybe(item),
            quantity: row.quantity,
            amount_minor: row.amount_minor,
            currency: row.currency,
            status: row.status,
            created_at: row.created_at,
        }
    }

    fn find(&self, tenant_id: &str, order_id: &str, hashing: &RandomState) -> Option<u32> {
        let hash = hashing.hash_one((tenant_id, order_id));
        self.index.find(hash, |order| self.is(*order, tenant_id, order_id)).copied()
    }

    /// All of them by tenant, user and show.
    fn sorted(&self) -> Vec<u32> {
        // Most users differ in their first bytes, which are compared as one number.
        let begin = |text: &str| {
            let mut bytes = [0; 16];
            let length = text.len().min(bytes.len());
            bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
            u128::from_be_bytes(bytes)
        };
        let mut tenants: HashMap<&str, u32> = HashMap::default();
        let mut keys: Vec<(u32, u128, u32)> = Vec::with_capacity(self.rows.len());
        for i in 0..self.rows.len() as u32 {
            let order = self.get(i);
            let next = tenants.len() as u32;
            let tenant = *tenants.entry(order.tenant_id).or_insert(next);
            keys.push((tenant, begin(order.user_id), i));
        }
        let mut names: Vec<(&str, u32)> = tenants.into_iter().collect();
        names.sort_unstable();
        let mut ranks = vec![0; names.len()];
        names.iter().zip(0..).for_each(|((_, tenant), rank)| ranks[*tenant as usize] = rank);
        keys.iter_mut().for_each(|(tenant, ..)| *tenant = ranks[*tenant as usize]);
        keys.sort_unstable_by(|a, b| {
            let rank = |i: u32| self.get(i).rank();
            (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| rank(a.2).cmp(&rank(b.2)))
        });
        keys.into_iter().map(|(.., order)| order).collect()
    }
}

impl OrdersPiece {
    fn add(&mut self, at: u64, cells: &mut Cells<'_, '_>, hashing: &RandomState) -> Option<()> {
        let order_id = cells.take_text()?;
        let tenant_id = cells.take_text()?;
        let user_id = cells.take_text()?;
        let show_id = cells.take_text()?;
        let session_id = cells.take_text()?;
        let key = cells.take_text()?;
        let item = cells.take_text()?;
        let quantity = cells.take()?;
        let amount_minor = cells.take()?;
        let currency = cells.take()?;
        let status = cells.take()?;
        let _source = cells.take_text()?;
        let _trace_id = cells.take_text()?;
        let created_at = cells.take()?;
        let _version = cells.take_text()?;

        let order = self.rows.len() as u32;
        self.places.push(hashing.hash_one((tenant_id, user_id, show_id)));
        if !key.is_empty() {
            self.keys.push((hashing.hash_one((tenant_id, user_id, key)), order));
        }
        let mut lengths = [0; 6];
        let texts = self.texts.len() as u32;
        for (length, text) in
            lengths.iter_mut().zip([order_id, tenant_id, user_id, show_id, session_id, item])
        {
            *length = u8::try_from(text.len()).ok()?;
            self.texts.push_str(text);
        }
        self.rows.push(Narrow { texts, lengths, currency, status, quantity, amount_minor, created_at, at });
        Some(())
    }
}

/// In place of an order, for a row that has none.
const NO_ORDER: u32 = u32::MAX;

/// One row of payments, inventory or messages: its order, its place in its piece and its mark.
#[derive(Clone, Copy)]
struct Row {
    order: u32,
    at_and_mark: u32,
}

impl Row {
    fn new(order: u32, at: u32, mark: Mark) -> Self {
        Self { order, at_and_mark: at << 10 | u32::from(mark.bits()) }
    }

    fn mark(self) -> Mark {
        Mark::from_bits((self.at_and_mark & 0x3ff) as u16)
    }

    fn at(self) -> u64 {
        u64::from(self.at_and_mark >> 10)
    }
}

/// What the first pass keeps of a piece of another ledger than orders.
#[derive(Default)]
struct Attached {
    rows: Vec<Row>,
    /// Hashes of (tenant, id) of all rows.
    ids: Vec<u64>,
    /// Hashes of (tenant, user, show) of the rows without an order.
    orphan_places: Vec<u64>,
    /// Hashes of (tenant, provider, transaction), and the orders of those payments.
    transactions: Vec<(u64, u32)>,
    range: Range<u64>,
}

impl Attached {
    fn with_capacity(rows: usize) -> Self {
        Self { rows: Vec::with_capacity(rows), ids: Vec::with_capacity(rows), ..Self::default() }
    }

    /// Whether the pieces are those of one file without an id that comes twice.
    fn are_one_file(pieces: &[Self]) -> bool {
        meet(pieces.iter().map(|piece| &piece.range))
            && all_differ(pieces.iter().flat_map(|piece| piece.ids.iter().copied()).collect())
    }
}

struct FirstPass<'a> {
    orders: &'a Orders,
    options: &'a ReadOptions,
    policy: &'a Policy,
    as_of: Timestamp,
    hashing: &'a RandomState,
}

impl FirstPass<'_> {
    fn read(&self, source: &Source<'_>, piece: usize) -> Option<Attached> {
        let mut read = Attached::with_capacity(source.rows_at_most());
        let range = source.read_piece(piece, self.options, |at, cells| match source.ledger {
            Ledger::Orders => None,
            Ledger::Payments => self.payment(at, cells, &mut read),
            Ledger::Inventory => self.hold(at, cells, &mut read),
            Ledger::Messages => self.message(at, cells, &mut read),
        })?;
        read.range = range;
        Some(read)
    }

    /// The order that a row names. One that names none, or one that is not there, is an orphan of its place.
    fn order(&self, tenant_id: &str, order_id: &str, place: (&str, &str), read: &mut Attached) -> u32 {
        let order = maybe(order_id).and_then(|order_id| self.orders.find(tenant_id, order_id, self.hashing));
        order.unwrap_or_else(|| {
            read.orphan_places.push(self.hashing.hash_one((tenant_id, place.0, place.1)));
            NO_ORDER
        })
    }

    /// The mark of a row; it is asked for where there is an order.
    fn mark(&self, order: u32, mark: impl FnOnce(&LoneOrder<'_>) -> Mark) -> Mark {
        if order == NO_ORDER { Mark::ODD } else { mark(&self.orders.get(order)) }
    }

    fn payment(&self, at: u32, cells: &mut Cells<'_, '_>, read: &mut Attached) -> Option<()> {
        let id = cells.take_text()?;
        let tenant_id = cells.take_text()?;
        let order_id = cells.take_text()?;
        let user_id = cells.take_text()?;
        let show_id = cells.take_text()?;
        let _session_id = cells.take_text()?;
        let amount_minor = cells.take()?;
        let refunded_minor = cells.take()?;
        let currency = cells.take()?;
        let provider = cells.take_text()?;
        let transaction = cells.take_text()?;
        let status: PaymentStatus = cells.take()?;
        let created_at: Timestamp = cells.take()?;
        let captured_at: Option<Timestamp> = cells.take()?;
        let _version = cells.take_text()?;

        read.ids.push(self.hashing.hash_one((tenant_id, id)));
        let order = self.order(tenant_id, order_id, (user_id, show_id), read);
        if !transaction.is_empty() {
            let hash = self.hashing.hash_one((tenant_id, provider, transaction));
            read.transactions.push((hash, order));
        }
        let mark = self.mark(order, |order| {
            let captured_at = captured_at.unwrap_or(created_at);
            let amounts = (amount_minor, refunded_minor, currency);
            Mark::of_payment(order, (user_id, show_id), amounts, status, captured_at, self.policy)
        });
        read.rows.push(Row::new(order, at, mark));
        Some(())
    }

    fn hold(&self, at: u32, cells: &mut Cells<'_, '_>, read: &mut Attached) -> Option<()> {
        let id = cells.take_text()?;
        let tenant_id = cells.take_text()?;
        let order_id = cells.take_text()?;
        let user_id = cells.take_text()?;
        let show_id = cells.take_text()?;
        let _session_id = cells.take_text()?;
        let item = cells.take_text()?;
        let quantity = cells.take()?;
        let status: HoldStatus = cells.take()?;
        let _created_at: Timestamp = cells.take()?;
        let expires_at: Option<Timestamp> = cells.take()?;
        let _version = cells.take_text()?;

        read.ids.push(self.hashing.hash_one((tenant_id, id)));
        let order = self.order(tenant_id, order_id, (user_id, show_id), read);
        let mark = self.mark(order, |order| {
            Mark::of_hold(order, (user_id, show_id), maybe(item), quantity, status, expires_at, self.as_of)
        });
        read.rows.push(Row::new(order, at, mark));
        Some(())
    }

    fn message(&self, at: u32, cells: &mut Cells<'_, '_>, read: &mut Attached) -> Option<()> {
        let id = cells.take_text()?;
        let tenant_id = cells.take_text()?;
        let _key = cells.take_text()?;
        let topic = cells.take_text()?;
        let order_id = cells.take_text()?;
        let user_id = cells.take_text()?;
        let show_id = cells.take_text()?;
        let _session_id = cells.take_text()?;
        let status: MessageStatus = cells.take()?;
        let _attempts: i64 = cells.take()?;
        let _trace_id = cells.take_text()?;
        let _created_at: Timestamp = cells.take()?;
        let _version = cells.take_text()?;

        read.ids.push(self.hashing.hash_one((tenant_id, id)));
        let order = self.order(tenant_id, order_id, (user_id, show_id), read);
        let mark = if order == NO_ORDER { Mark::ODD } else { Mark::of_message(topic, status) };
        read.rows.push(Row::new(order, at, mark));
        Some(())
    }
}
