//! What onefold's own journal knows about the ledgers' rows, for the rules that ask it
//! (contract, sections 3 to 5). The store reads it; the core only looks things up.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::ids::*;
use super::status::Ledger;
use super::time::Timestamp;

/// An operator's choice of the order that its intent keeps (contract, section 4). Its members stand in the order of the
/// canonical form, as a plan's do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepOverride {
    pub because: String,
    pub order_id: OrderId,
}

/// One effect on one row, whichever plan wants it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Effect {
    pub ledger: Ledger,
    pub tenant_id: TenantId,
    pub id: RowId,
    pub from: String,
    pub to: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// When `converge` last asked the provider about a charge, by the row that carries it.
    pub asked_charges: HashMap<(TenantId, PaymentId), Timestamp>,
    /// Orders in motion whose charges `converge` has asked about, with the version of the order
    /// row at that time: another version means that it has moved since.
    pub asked_orders: HashMap<(TenantId, OrderId), Version>,
    /// Charges whose refund the provider refused for good.
    pub refused_refunds: HashSet<(TenantId, PaymentId)>,
    /// What finished steps of this journal refunded, in minor units, by payment row.
    pub refunded_by_us: HashMap<(TenantId, PaymentId), i64>,
    /// Overrides that have not been withdrawn, by the order to be kept.
    pub keeps: BTreeMap<(TenantId, OrderId), String>,
    /// How often an effect has ended before (done, or refused by the provider); absent is never.
    pub occurrences: HashMap<Effect, u32>,
}

impl Evidence {
    /// Every row that it tells something of, by ledger, tenant and id; one may come several times.
    pub fn rows(&self) -> impl Iterator<Item = (Ledger, &str, &str)> {
        let Self { asked_charges, asked_orders, refused_refunds, refunded_by_us, keeps, occurrences } = self;
        let payments = asked_charges.keys().chain(refused_refunds).chain(refunded_by_us.keys());
        let orders = asked_orders.keys().chain(keeps.keys());
        let payments = payments.map(|(tenant, id)| (Ledger::Payments, tenant.as_str(), id.as_str()));
        let orders = orders.map(|(tenant, id)| (Ledger::Orders, tenant.as_str(), id.as_str()));
        let effects = occurrences.keys().map(|of| (of.ledger, of.tenant_id.as_str(), of.id.as_str()));
        payments.chain(orders).chain(effects)
    }
}
