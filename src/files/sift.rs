//! Reading for a plan of everything in two passes: the first looks at every cell, as [`super::read()`] does, but
//! keeps of each row only what tells whether its order is plain ([`crate::core::plain`]); the second
//! reads the few rows that are not, in full.
//!
//! Files are cut into pieces that are read side by side. What this cannot do, such as saying on which line a
//! fault stands, it leaves to the other reader by giving nothing.

use std::fs::File;
use std::hash::BuildHasher;
use std::io::{Seek, SeekFrom};
use std::num::NonZero;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{panic, thread};

use foldhash::HashMap;
use foldhash::fast::RandomState;
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
use crate::core::ledger::{Hold, Ledgers, Message, Order, Payment};
use crate::core::money::Currency;
use crate::core::plain::{Kind, Kinds, LoneOrder, Mark, Plain, PlainIntent};
use crate::core::policy::Policy;
use crate::core::status::{HoldStatus, Ledger, MessageStatus, OrderStatus, PaymentStatus};
use crate::core::time::Timestamp;

/// How many bytes of a file are one piece of work, at most: a row's place in its piece stands in 22 bits.
pub const PIECE: u64 = 1 << 22;

/// What the first pass leaves: the rows of all orders that may not be plain, and the plain ones.
pub struct Sifted {
    /// Whole neighbourhoods, and all orphans.
    pub rest: Ledgers,
    pub plain: PlainOrders,
    pub notes: Vec<Note>,
}

/// Reads the four ledgers for a plan as of this time, in pieces of so many bytes. `None` where the files are not as usual: they
/// are in another encoding, something in them is at fault or worth a note, an id comes twice.
pub fn sift(
    files: &LedgerFiles,
    options: &ReadOptions,
    policy: &Policy,
    as_of: Timestamp,
    piece: u64,
    progress: &(dyn Fn(Ledger, u64) + Sync),
) -> Option<Sifted> {
    let mut notes = Vec::new();
    let sources = [
        Source::open::<Order>(&files.orders, options, piece, &mut notes)?,
        Source::open::<Payment>(&files.payments, options, piece, &mut notes)?,
        Source::open::<Hold>(&files.inventory, options, piece, &mut notes)?,
        Source::open::<Message>(&files.messages, options, piece, &mut notes)?,
    ];
    let hashing = RandomState::default();
    let orders = Orders::read(&sources[0], options, &hashing, progress)?;
    let first = FirstPass { orders: &orders, options, policy, as_of, hashing: &hashing };

    // The largest first, so that none is left to one thread at the end.
    let pieces: Vec<(usize, usize)> =
        [3, 1, 2].into_iter().flat_map(|s| (0..sources[s].pieces()).map(move |piece| (s, piece))).collect();
    let read = side_by_side(pieces.len(), |i| {
        let (source, piece) = pieces[i];
        let attached = first.read(&sources[source], piece)?;
        progress(sources[source].ledger, attached.rows.len() as u64);
        Some(attached)
    })?;
    let mut by_source: [Vec<Attached>; 4] = Default::default();
    for ((source, _), attached) in pieces.iter().zip(read) {
        by_source[*source].push(attached);
    }
    side_by_side(3, |i| Attached::are_one_file(&by_source[i + 1]).then_some(()))?;
    by_source.iter_mut().flatten().for_each(|piece| piece.ids = Vec::new());

    let mut orders = orders;
    let mut kinds = std::mem::take(&mut orders.kinds);
    orders.mark_neighbours(&mut kinds, &by_source);
    for attached in by_source.iter().flatten() {
        for row in attached.rows.iter().filter(|row| row.order != NO_ORDER) {
            kinds[row.order as usize].add(row.mark());
        }
    }
    let mut decided = Kinds::new(policy, as_of);
    let plain: Vec<bool> = kinds.iter().map(|kind| decided.plain(*kind).is_some()).collect();

    let rest = read_rest(&sources, options, &orders, &by_source, &plain)?;
    drop(by_source);
    let plain = PlainOrders::new(orders, kinds, decided.into_plain());
    Some(Sifted { rest, plain, notes })
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
            let mut read = OrdersPiece::default();
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
            let same = |other: &u32| {
                let other = orders.get(*other);
                (other.tenant_id, other.order_id) == (order.tenant_id, order.order_id)
            };
            if index.find(hash(&order), same).is_some() {
                return None;
            }
            index.insert_unique(hash(&order), i, |other| hash(&orders.get(*other)));
        }
        orders.index = index;
        Some(orders)
    }

    fn get(&self, order: u32) -> LoneOrder<'_> {
        let row = &self.rows[order as usize];
        let mut at = row.texts as usize;
        let [order_id, tenant_id, user_id, show_id, session_id, item] = row.lengths.map(|length| {
            let text = &self.texts[at..at + usize::from(length)];
            at += usize::from(length);
            text
        });
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
        let same = |order: &u32| {
            let order = self.get(*order);
            (order.tenant_id, order.order_id) == (tenant_id, order_id)
        };
        self.index.find(hash, same).copied()
    }

    /// Makes odd whatever does not stand alone: orders of one (tenant, user, show), of one key or with
    /// payments of one transaction, and those near which an orphan may belong. By their hashes: equal
    /// ones may be one too many, never one too few.
    fn mark_neighbours(&self, kinds: &mut [Kind], attached: &[Vec<Attached>; 4]) {
        let orders = self.places.iter().zip(0..).map(|(place, order)| (*place, order));
        let orphans = attached.iter().flatten().flat_map(|piece| &piece.orphan_places);
        let places = orders.chain(orphans.map(|place| (*place, NO_ORDER)));
        let transactions = attached.iter().flatten().flat_map(|piece| piece.transactions.iter().copied());
        for mut named in [places.collect(), self.keys.clone(), transactions.collect::<Vec<(u64, u32)>>()] {
            named.sort_unstable();
            for same in named.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
                for (_, order) in same.iter().filter(|(_, order)| *order != NO_ORDER) {
                    kinds[*order as usize].set_odd();
                }
            }
        }
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
        let mut read = Attached::default();
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

    /// Keeps a row; `mark` is asked for where it has an order.
    fn keep(&self, at: u32, order: u32, read: &mut Attached, mark: impl FnOnce(&LoneOrder<'_>) -> Mark) {
        let mark = if order == NO_ORDER { Mark::ODD } else { mark(&self.orders.get(order)) };
        read.rows.push(Row::new(order, at, mark));
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
        self.keep(at, order, read, |order| {
            let captured_at = captured_at.unwrap_or(created_at);
            let amounts = (amount_minor, refunded_minor, currency);
            Mark::of_payment(order, (user_id, show_id), amounts, status, captured_at, self.policy)
        });
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
        self.keep(at, order, read, |order| {
            Mark::of_hold(order, (user_id, show_id), maybe(item), quantity, status, expires_at, self.as_of)
        });
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
        self.keep(at, order, read, |_| Mark::of_message(topic, status));
        Some(())
    }
}

/// The second pass: in full the orders that are not plain, what attaches to them, and every orphan.
fn read_rest(
    sources: &[Source<'_>; 4],
    options: &ReadOptions,
    orders: &Orders,
    attached: &[Vec<Attached>; 4],
    plain: &[bool],
) -> Option<Ledgers> {
    let is_odd = |row: &&Row| row.order == NO_ORDER || !plain[row.order as usize];
    let rows_of = |source: usize, piece: usize| {
        let start = sources[source].piece(piece).start;
        attached[source][piece].rows.iter().filter(is_odd).map(move |row| start + row.at())
    };
    let (payments, inventory, messages) = (1, 2, 3);
    let odd_orders: Vec<u64> =
        orders.rows.iter().zip(plain).filter(|(_, plain)| !**plain).map(|(row, _)| row.at).collect();
    let all = |source: usize| sources[source].pieces();
    let of_orders = odd_orders.chunks(1 << 14).collect::<Vec<_>>();
    Some(Ledgers {
        orders: side_by_side(of_orders.len(), |i| {
            read_at::<Order>(&sources[0], options, of_orders[i].iter().copied())
        })?
        .into_iter()
        .flatten()
        .collect(),
        payments: side_by_side(all(payments), |i| {
            read_at::<Payment>(&sources[payments], options, rows_of(payments, i))
        })?
        .into_iter()
        .flatten()
        .collect(),
        inventory: side_by_side(all(inventory), |i| {
            read_at::<Hold>(&sources[inventory], options, rows_of(inventory, i))
        })?
        .into_iter()
        .flatten()
        .collect(),
        messages: side_by_side(all(messages), |i| {
            read_at::<Message>(&sources[messages], options, rows_of(messages, i))
        })?
        .into_iter()
        .flatten()
        .collect(),
    })
}

/// The rows that begin at these places, which come in the order of the file.
fn read_at<R: FileRow>(
    source: &Source<'_>,
    options: &ReadOptions,
    mut places: impl Iterator<Item = u64>,
) -> Option<Vec<R>> {
    let mut rows = Vec::new();
    let Some(first) = places.next() else { return Some(rows) };
    let mut records = source.records(first)?;
    let mut reading = source.reading(options);
    for at in std::iter::once(first).chain(places) {
        records.jump(at).ok()?;
        let record = records.next().ok()??;
        rows.push(R::read(&mut source.cells(&record, &mut reading)?)?);
    }
    Some(rows)
}

/// The plain orders of some ledgers, sorted as a plan sorts them.
pub struct PlainOrders {
    orders: Orders,
    kinds: Vec<Kind>,
    /// By kind.
    decided: HashMap<Kind, Plain>,
    sorted: Vec<u32>,
}

impl PlainOrders {
    fn new(orders: Orders, kinds: Vec<Kind>, decided: HashMap<Kind, Plain>) -> Self {
        // Most users differ in their first bytes, which are compared as one number.
        let begin = |text: &str| {
            let mut bytes = [0; 16];
            let length = text.len().min(bytes.len());
            bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
            u128::from_be_bytes(bytes)
        };
        let mut tenants: HashMap<&str, u32> = HashMap::default();
        let plain = (0..orders.rows.len() as u32).filter(|i| decided.contains_key(&kinds[*i as usize]));
        let mut keys: Vec<(u32, u128, u32)> = Vec::new();
        for i in plain {
            let order = orders.get(i);
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
            let place = |i: u32| {
                let order = orders.get(i);
                (order.user_id, order.show_id)
            };
            (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| place(a.2).cmp(&place(b.2)))
        });
        let sorted = keys.into_iter().map(|(.., order)| order).collect();
        Self { orders, kinds, decided, sorted }
    }

    /// As [`crate::core::plain::into_plan`] wants them.
    pub fn iter(&self) -> impl Iterator<Item = PlainIntent<'_>> {
        self.sorted
            .iter()
            .map(|&i| PlainIntent { order: self.orders.get(i), plain: self.decided[&self.kinds[i as usize]] })
    }
}
