//! The first pass over payments, holds and messages: of each row its order, its place and its mark.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::HashSet;
use foldhash::fast::RandomState;
use rayon::slice::ParallelSliceMut as _;

use super::orders::{NO_ORDER, Orders, maybe};
use super::source::{Source, meet};
use super::workers::in_turn;
use crate::core::money::Currency;
use crate::core::plain::{Basis, Mark};
use crate::core::status::{HoldStatus, Ledger, MessageStatus, PaymentStatus};
use crate::core::time::Timestamp;
use crate::files::cells::Cells;
use crate::files::options::ReadOptions;

/// One row of payments, inventory or messages: its order, its place in its piece and its mark.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) order: u32,
    pub(super) at_and_mark: u32,
}

impl Row {
    pub(super) fn new(order: u32, at: u32, mark: Mark) -> Self {
        Self { order, at_and_mark: at << 10 | u32::from(mark.bits()) }
    }

    pub(super) fn mark(self) -> Mark {
        Mark::from_bits((self.at_and_mark & 0x3ff) as u16)
    }

    pub(super) fn at(self) -> u64 {
        u64::from(self.at_and_mark >> 10)
    }
}

/// What the first pass keeps of another ledger than orders.
#[derive(Default)]
pub(super) struct Attached {
    /// Those of each piece.
    pub(super) rows: Vec<Vec<Row>>,
    /// Hashes of (tenant, user, show) of the rows without an order.
    pub(super) orphan_places: Vec<u64>,
    /// Hashes of (tenant, provider, transaction), and the orders of those payments.
    pub(super) transactions: Vec<(u64, u32)>,
}

/// The same of one piece.
#[derive(Default)]
struct AttachedPiece {
    rows: Vec<Row>,
    /// Hashes of (tenant, id) of all rows.
    ids: Vec<u64>,
    orphan_places: Vec<u64>,
    transactions: Vec<(u64, u32)>,
    range: Range<u64>,
    /// The last rows, of which the orders are still to be found, and their texts.
    claims: Vec<Claim>,
    texts: String,
}

/// For how many rows the orders are looked for together: these lie far from each other in memory, and are waited for
/// at once.
const TOGETHER: usize = 64;

/// A row whose order is still to be found.
struct Claim {
    at: u32,
    /// Hashes of (tenant, id) and (tenant, order).
    id: u64,
    order: u64,
    /// How long its texts are: tenant, order, user, show and item.
    lengths: [usize; 5],
    says: Says,
}

/// What a row says of its order.
#[derive(Clone, Copy)]
enum Says {
    Payment {
        /// What it is over, and what of it went back.
        amounts: (i64, i64, Currency),
        status: PaymentStatus,
        captured_at: Timestamp,
        /// The hash of (tenant, provider, transaction).
        transaction: Option<u64>,
    },
    Hold {
        quantity: i64,
        status: HoldStatus,
        expires_at: Option<Timestamp>,
    },
    Message(Mark),
}

pub(super) struct FirstPass<'a> {
    pub(super) orders: &'a Orders,
    pub(super) options: &'a ReadOptions,
    pub(super) basis: &'a Basis,
    /// By ledger: hashes of (tenant, id) of the rows that the evidence tells something of.
    pub(super) told: &'a [HashSet<u64>; 4],
    pub(super) hashing: &'a RandomState,
}

impl FirstPass<'_> {
    /// Nothing where the file is not as usual, or an id comes twice.
    pub(super) fn read(&self, source: &Source, progress: &(dyn Fn(Ledger, u64) + Sync)) -> Option<Attached> {
        let mut attached = Attached::default();
        let mut ids = Vec::with_capacity(source.rows_at_most(source.length));
        let mut ranges = Vec::new();
        in_turn(
            source.pieces(),
            |piece| self.read_piece(source, piece),
            |read| {
                let mut read = read?;
                progress(source.ledger, read.rows.len() as u64);
                read.rows.shrink_to_fit();
                attached.rows.push(read.rows);
                attached.orphan_places.append(&mut read.orphan_places);
                attached.transactions.append(&mut read.transactions);
                ids.append(&mut read.ids);
                ranges.push(read.range);
                Some(())
            },
        )?;
        (meet(&ranges) && all_differ(ids)).then_some(attached)
    }

    fn read_piece(&self, source: &Source, piece: usize) -> Option<AttachedPiece> {
        let rows = source.rows_at_most(source.piece);
        let mut read = AttachedPiece {
            rows: Vec::with_capacity(rows),
            ids: Vec::with_capacity(rows),
            ..AttachedPiece::default()
        };
        let range = source.read_piece(piece, self.options, |at, cells| {
            match source.ledger {
                Ledger::Orders => return None,
                Ledger::Payments => self.payment(at, cells, &mut read)?,
                Ledger::Inventory => self.hold(at, cells, &mut read)?,
                Ledger::Messages => self.message(at, cells, &mut read)?,
            }
            if read.claims.len() == TOGETHER {
                self.settle(source.ledger, &mut read);
            }
            Some(())
        })?;
        self.settle(source.ledger, &mut read);
        Some(AttachedPiece { range, ..read })
    }

    fn claim(&self, at: u32, id: &str, texts: [&str; 5], says: Says, read: &mut AttachedPiece) {
        let [tenant_id, order_id, ..] = texts;
        let id = self.hashing.hash_one((tenant_id, id));
        read.ids.push(id);
        texts.iter().for_each(|text| read.texts.push_str(text));
        let order = self.hashing.hash_one((tenant_id, order_id));
        read.claims.push(Claim { at, id, order, lengths: texts.map(str::len), says });
    }

    /// Finds the orders of the last rows, and marks them.
    fn settle(&self, ledger: Ledger, read: &mut AttachedPiece) {
        let AttachedPiece { rows, orphan_places, transactions, claims, texts, .. } = read;
        let mut rest = &texts[..];
        let mut texts_of = |claim: &Claim| {
            claim.lengths.map(|length| {
                let (text, behind) = rest.split_at(length);
                rest = behind;
                text
            })
        };
        let named: Vec<[&str; 5]> = claims.iter().map(&mut texts_of).collect();
        // Each look into memory is one for all rows.
        let likely: Vec<Option<u32>> = claims.iter().map(|claim| self.orders.likely(claim.order)).collect();
        let the_one = |((claim, likely), [tenant_id, order_id, ..]): ((&Claim, Option<u32>), &[&str; 5])| {
            let likely = maybe(order_id).and(likely)?;
            self.orders.the_one(likely, claim.order, tenant_id, order_id)
        };
        let orders: Vec<Option<u32>> = claims.iter().zip(likely).zip(&named).map(the_one).collect();
        for ((claim, order), [tenant_id, _, user_id, show_id, item]) in claims.iter().zip(orders).zip(named) {
            // One that names no order, or one that is not there, is an orphan of its place.
            let number = order.unwrap_or(NO_ORDER);
            if order.is_none() {
                orphan_places.push(self.hashing.hash_one((tenant_id, user_id, show_id)));
            }
            if let Says::Payment { transaction: Some(transaction), .. } = claim.says {
                transactions.push((transaction, number));
            }
            let order = order.filter(|_| !self.told[ledger as usize].contains(&claim.id));
            let mark = order.map_or(Mark::ODD, |order| {
                let owner = (user_id, show_id);
                match claim.says {
                    Says::Payment { amounts, status, captured_at, .. } => {
                        let order = self.orders.get(order);
                        Mark::of_payment(&order, owner, amounts, status, captured_at, &self.basis.policy)
                    }
                    Says::Hold { quantity, status, expires_at } => {
                        let (order, as_of) = (self.orders.get(order), self.basis.as_of);
                        Mark::of_hold(&order, owner, maybe(item), quantity, status, expires_at, as_of)
                    }
                    Says::Message(mark) => mark,
                }
            });
            rows.push(Row::new(number, claim.at, mark));
        }
        claims.clear();
        texts.clear();
    }

    fn payment(&self, at: u32, cells: &mut Cells<'_, '_>, read: &mut AttachedPiece) -> Option<()> {
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

        let says = Says::Payment {
            amounts: (amount_minor, refunded_minor, currency),
            status,
            captured_at: captured_at.unwrap_or(created_at),
            transaction: maybe(transaction).map(|id| self.hashing.hash_one((tenant_id, provider, id))),
        };
        self.claim(at, id, [tenant_id, order_id, user_id, show_id, ""], says, read);
        Some(())
    }

    fn hold(&self, at: u32, cells: &mut Cells<'_, '_>, read: &mut AttachedPiece) -> Option<()> {
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

        let says = Says::Hold { quantity, status, expires_at };
        self.claim(at, id, [tenant_id, order_id, user_id, show_id, item], says, read);
        Some(())
    }

    fn message(&self, at: u32, cells: &mut Cells<'_, '_>, read: &mut AttachedPiece) -> Option<()> {
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

        let says = Says::Message(Mark::of_message(topic, status));
        self.claim(at, id, [tenant_id, order_id, user_id, show_id, ""], says, read);
        Some(())
    }
}

/// Whether all hashes differ.
fn all_differ(mut hashes: Vec<u64>) -> bool {
    hashes.par_sort_unstable();
    hashes.is_sorted_by(|a, b| a < b)
}
