//! Reads a scope's rows and all that its decision rests on (contract, section 2, rule 1): every
//! order of each buyer that has an order in scope, every order that shares a key with one of
//! these and so on until nothing is added, the rows attached to them, and the rows that may be
//! orphans of theirs. What is read may be more than the scope; the core decides exactly.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

use foldhash::{HashSet, HashSetExt as _};
use tokio::try_join;

use super::rows::{Buyer, LedgerRow, Reader, SessionRow};
use super::sql::{Statement, Values, statements};
use super::{BATCH, Connection, Database, Store};
use crate::core::ids::*;
use crate::core::ledger::{Hold, Ledgers, Message, Order, Payment, Shard};
use crate::core::plan::PlannedIntent;
use crate::core::scope::Scope;
use crate::core::status::Ledger;
use crate::error::{Error, Result};

/// From how many orders on it may be quicker to read all of them than those of a scope.
const LARGE: i64 = 1000;
/// How much longer an order takes to read with its neighbourhood than along with all others: measured, on SQLite.
const PART: i64 = 8;

impl Store {
    /// The rows that the decision about a scope needs.
    pub async fn read_scope(&self, scope: &Scope) -> Result<Ledgers> {
        if scope.is_everything() {
            return Ok(Ledgers {
                orders: self.select("reads/everything", &Values::new()).await?,
                payments: self.select("reads/everything", &Values::new()).await?,
                inventory: self.select("reads/everything", &Values::new()).await?,
                messages: self.select("reads/everything", &Values::new()).await?,
            });
        }
        let mut reading = Reading::of(self);
        reading.start_at_scope(scope).await?;
        reading.finish().await
    }

    /// The rows that the decision about these intents of one plan needs, as they are now.
    pub async fn read_intents<'a>(
        &self,
        intents: impl IntoIterator<Item = &'a PlannedIntent>,
    ) -> Result<Ledgers> {
        let mut reading = Reading::of(self);
        let mut rows: BTreeMap<(Ledger, TenantId), BTreeSet<RowId>> = BTreeMap::new();
        for intent in intents {
            if let (Some(show_id), Some(user_id)) = (&intent.show_id, &intent.user_id) {
                let (tenant_id, show_id) = (intent.tenant_id.clone(), show_id.clone());
                reading.buyers.want(Buyer { tenant_id, show_id, user_id: user_id.clone() });
            }
            let orders = intent.orders.iter().map(|id| (Ledger::Orders, RowId::from(id)));
            for (ledger, id) in orders.chain(intent.orphans.iter().cloned()) {
                rows.entry((ledger, intent.tenant_id.clone())).or_default().insert(id);
            }
        }
        let buyers = reading.buyers.take();
        reading.read_buyers(buyers).await?;
        // What has not come with its buyer is another's by now, or gone.
        for ((ledger, tenant_id), ids) in &mut rows {
            ids.retain(|id| !reading.has(*ledger, tenant_id, id));
        }
        rows.retain(|_, ids| !ids.is_empty());
        reading.start_at_rows(&rows).await?;
        reading.finish().await
    }

    /// The rows that intents' steps move and the intents' orders, and no more: where each stands. `look` is given some
    /// intents at a time.
    pub async fn each_moved<'a>(
        &self,
        intents: &[&'a PlannedIntent],
        mut look: impl FnMut(&[&'a PlannedIntent], &Ledgers) -> Result<()>,
    ) -> Result<()> {
        for intents in intents.chunks(BATCH) {
            let mut rows: BTreeMap<(Ledger, TenantId), BTreeSet<RowId>> = BTreeMap::new();
            for intent in intents {
                let orders = intent.orders.iter().map(|id| (Ledger::Orders, RowId::from(id)));
                let moved = intent.steps.iter().map(|step| (step.ledger, step.id.clone()));
                for (ledger, id) in orders.chain(moved) {
                    rows.entry((ledger, intent.tenant_id.clone())).or_default().insert(id);
                }
            }
            let mut reading = Reading::of(self);
            reading.start_at_rows(&rows).await?;
            look(intents, &reading.into_rows())?;
        }
        Ok(())
    }

    /// The rows that the decision about an order needs, as [`Store::read_scope`] reads them; of each of these
    /// tenants, or of all, that has an order of this id.
    pub async fn read_around(&self, order_id: &OrderId, tenants: &BTreeSet<TenantId>) -> Result<Ledgers> {
        let mut reading = Reading::of(self);
        let tenants: Vec<_> = tenants.iter().map(ToString::to_string).collect();
        let values = Values::new()
            .bind("orders", vec![order_id.to_string()])
            .bind_when("tenants", Some(tenants).filter(|tenants| !tenants.is_empty()));
        reading.want_buyers("reads/buyers_of_orders", &values).await?;
        reading.finish().await
    }

    /// Every payment row, one by one: a ledger may be large.
    pub async fn each_payment(&self, mut take: impl FnMut(Payment)) -> Result<()> {
        for (shard, database) in self.shards(Ledger::Payments) {
            let statement = self.ledger_statement::<Payment>(database, "reads/everything", &Values::new())?;
            let decode = |row: SessionRow<'_>| {
                take(Payment::decode(row, shard, &self.statuses)?);
                Ok(())
            };
            database.each_row(&statement, decode).await?;
        }
        Ok(())
    }

    /// One row by its id; `None` when it is gone.
    pub async fn read_row<T: LedgerRow>(&self, tenant_id: &TenantId, id: &RowId) -> Result<Option<T>> {
        let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("ids", vec![id.to_string()]);
        let rows: Vec<T> = self.select("reads/by_ids", &values).await?;
        Ok(rows.into_iter().find(|row| row.tenant_id() == tenant_id && row.row_id() == *id))
    }

    /// Every row of the charge that a payment is about, itself included (contract, section 3).
    pub async fn rows_of_charge(&self, payment: &Payment) -> Result<Vec<Payment>> {
        let Some(transaction) = &payment.provider_txn_id else { return Ok(vec![payment.clone()]) };
        let values = Values::new()
            .bind("tenant_id", payment.tenant_id.as_str())
            .bind("transactions", vec![transaction.clone()]);
        let rows: Vec<Payment> = self.select("reads/by_charges", &values).await?;
        Ok(rows
            .into_iter()
            .filter(|p| p.provider == payment.provider && p.provider_txn_id.as_ref() == Some(transaction))
            .collect())
    }

    /// Whether some row is in a scope by its own columns; a session counts as the row has it, not as filled.
    pub async fn has_rows_in(&self, scope: &Scope) -> Result<bool> {
        let values = in_scope(scope);
        let file = "reads/one_in_scope";
        Ok(!self.select::<Order>(file, &values).await?.is_empty()
            || !self.select::<Payment>(file, &values).await?.is_empty()
            || !self.select::<Hold>(file, &values).await?.is_empty()
            || !self.select::<Message>(file, &values).await?.is_empty())
    }

    /// Whether a scope holds so large a part of all orders that reading every row takes less time than looking for its
    /// own. It counts no more rows than a multiple of those in scope.
    pub async fn is_large(&self, scope: &Scope) -> Result<bool> {
        let in_scope = in_scope(scope);
        let in_scope = self.count_orders(in_scope.bind("limit", i64::MAX)).await?;
        if in_scope < LARGE {
            return Ok(false);
        }
        let all = self.count_orders(Values::new().bind("limit", in_scope * PART + 1)).await?;
        Ok(all <= in_scope * PART)
    }

    async fn count_orders(&self, values: Values) -> Result<i64> {
        let mut count = 0;
        for (_, database) in self.shards(Ledger::Orders) {
            let statement = self.ledger_statement::<Order>(database, "reads/count", &values)?;
            let add = |row: SessionRow<'_>| {
                count += Reader::new(row, "reads/count").int("counted")?;
                Ok(())
            };
            database.each_row(&statement, add).await?;
        }
        Ok(count)
    }

    /// Rows of one ledger, from each of its shards.
    ///
    /// # Errors
    /// Usage, where one row is in two of them: which is the real one?
    pub(super) async fn select<T: LedgerRow>(&self, file: &str, values: &Values) -> Result<Vec<T>> {
        let mut rows: Vec<T> = Vec::new();
        for (shard, database) in self.shards(T::LEDGER) {
            let found: Vec<T> = self.select_from(shard, database, file, values).await?;
            if rows.is_empty() {
                rows = found;
                continue;
            }
            let earlier: HashSet<_> = rows.iter().map(|r| (r.tenant_id(), r.row_id())).collect();
            if let Some(twice) = found.iter().find(|r| earlier.contains(&(r.tenant_id(), r.row_id()))) {
                let (name, id, tenant) = (T::LEDGER.row_name(), twice.row_id(), twice.tenant_id());
                return Err(Error::usage(format!(
                    "{name} {id} of tenant {tenant} is in {} and in another database of its ledger",
                    database.label
                ))
                .hint("leave it in one of them; until then nothing that reads it can be decided"));
            }
            rows.extend(found);
        }
        Ok(rows)
    }

    /// Rows of one shard of a ledger.
    pub(super) async fn select_from<T: LedgerRow>(
        &self,
        shard: Shard,
        database: &Database,
        file: &str,
        values: &Values,
    ) -> Result<Vec<T>> {
        let statement = self.ledger_statement::<T>(database, file, values)?;
        let mut rows = Vec::new();
        let decode = |row: SessionRow<'_>| {
            rows.push(T::decode(row, shard, &self.statuses)?);
            Ok(())
        };
        database.each_row(&statement, decode).await?;
        Ok(rows)
    }

    /// As [`Self::select_from`], within a transaction.
    pub(super) async fn rows_on<T: LedgerRow>(
        &self,
        on: &mut Connection,
        shard: Shard,
        database: &Database,
        file: &str,
        values: &Values,
    ) -> Result<Vec<T>> {
        let statement = self.ledger_statement::<T>(database, file, values)?;
        let rows = database.fetch(on, &statement).await?;
        rows.iter().map(|row| T::decode(row, shard, &self.statuses)).collect()
    }

    pub(super) fn ledger_statement<T: LedgerRow>(
        &self,
        database: &Database,
        file: &str,
        values: &Values,
    ) -> Result<Statement> {
        let ledger = self.ledger_source(T::LEDGER)?;
        let pieces = [("ledger", ledger.as_str()), ("id", T::ID)];
        Statement::new(self.queries.get(file)?, &pieces, values, database.dialect)
            .map_err(|e| e.context(format!("{file}.sql")))
    }

    /// What stands for `{ledger}` in a statement.
    pub(super) fn ledger_source(&self, ledger: Ledger) -> Result<String> {
        let source = format!("ledgers/{ledger}");
        // A semicolon at its end would end the statement around it.
        let [source] = statements(self.queries.get(&source)?)[..] else {
            return Err(Error::usage(format!("{source}.sql is not one SELECT")));
        };
        Ok(format!("(\n{source}\n) AS ledger"))
    }
}

/// Rows of one ledger, each once.
struct Table<T> {
    rows: Vec<T>,
    ids: HashSet<(TenantId, RowId)>,
    /// How many of them have been looked at for what they name.
    noted: usize,
    /// How many of them have been looked at for their orders.
    placed: usize,
}

impl<T: LedgerRow> Table<T> {
    fn new() -> Self {
        Self { rows: Vec::new(), ids: HashSet::new(), noted: 0, placed: 0 }
    }

    fn add(&mut self, rows: impl IntoIterator<Item = T>) {
        for row in rows {
            if self.ids.insert((row.tenant_id().clone(), row.row_id())) {
                self.rows.push(row);
            }
        }
    }

    fn has(&self, tenant_id: &TenantId, id: RowId) -> bool {
        self.ids.contains(&(tenant_id.clone(), id))
    }

    /// The orders that those rows name which have not been noted before.
    fn newly_named(&mut self) -> impl Iterator<Item = (&TenantId, &OrderId)> {
        let from = std::mem::replace(&mut self.noted, self.rows.len());
        self.rows[from..].iter().filter_map(|row| Some((row.tenant_id(), row.order_id()?)))
    }

    /// Whose rows are orphans, of those that have not been placed before.
    fn buyers_of_orphans(&mut self, orders: &Table<Order>) -> impl Iterator<Item = Buyer> {
        let from = std::mem::replace(&mut self.placed, self.rows.len());
        let is_orphan = |r: &&T| r.order_id().is_none_or(|id| !orders.has(r.tenant_id(), id.into()));
        self.rows[from..].iter().filter(is_orphan).filter_map(LedgerRow::buyer)
    }
}

/// A reading in progress: what was read, and what was asked for already.
struct Reading<'a> {
    store: &'a Store,
    orders: Table<Order>,
    payments: Table<Payment>,
    inventory: Table<Hold>,
    messages: Table<Message>,
    buyers: Asked<Buyer>,
    /// Buyers all of whose payments, holds and messages have been read.
    whole: HashSet<Buyer>,
    keys: Asked<(TenantId, UserId, IdempotencyKey)>,
    charges: Asked<(TenantId, String, String)>,
    /// Orders whose attached rows are wanted.
    attached: Asked<(TenantId, OrderId)>,
    /// Orders that some row names: are they there?
    named: Asked<(TenantId, OrderId)>,
    /// Where those orders stand that are here only because some row names them.
    strangers: Vec<usize>,
}

/// Things to ask for, each once.
struct Asked<T> {
    seen: HashSet<T>,
    waiting: Vec<T>,
}

impl<T: Clone + Eq + Hash> Asked<T> {
    fn new() -> Self {
        Self { seen: HashSet::new(), waiting: Vec::new() }
    }

    fn want(&mut self, thing: T) {
        if self.seen.insert(thing.clone()) {
            self.waiting.push(thing);
        }
    }

    fn take(&mut self) -> Vec<T> {
        std::mem::take(&mut self.waiting)
    }
}

/// Groups things into lists of at most a batch, each list under one key.
pub(super) fn batches<K: Ord + Clone, V>(things: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: BTreeMap<K, Vec<V>> = BTreeMap::new();
    for (key, value) in things {
        groups.entry(key).or_default().push(value);
    }
    let mut lists = Vec::new();
    for (key, mut values) in groups {
        while values.len() > BATCH {
            let rest = values.split_off(BATCH);
            lists.push((key.clone(), std::mem::replace(&mut values, rest)));
        }
        lists.push((key, values));
    }
    lists
}

impl<'a> Reading<'a> {
    fn of(store: &'a Store) -> Self {
        Self {
            store,
            orders: Table::new(),
            payments: Table::new(),
            inventory: Table::new(),
            messages: Table::new(),
            buyers: Asked::new(),
            whole: HashSet::new(),
            keys: Asked::new(),
            charges: Asked::new(),
            attached: Asked::new(),
            named: Asked::new(),
            strangers: Vec::new(),
        }
    }

    fn add(&mut self, payments: Vec<Payment>, inventory: Vec<Hold>, messages: Vec<Message>) {
        self.payments.add(payments);
        self.inventory.add(inventory);
        self.messages.add(messages);
    }

    fn has(&self, ledger: Ledger, tenant_id: &TenantId, id: &RowId) -> bool {
        match ledger {
            Ledger::Orders => self.orders.has(tenant_id, id.clone()),
            Ledger::Payments => self.payments.has(tenant_id, id.clone()),
            Ledger::Inventory => self.inventory.has(tenant_id, id.clone()),
            Ledger::Messages => self.messages.has(tenant_id, id.clone()),
        }
    }

    async fn start_at_scope(&mut self, scope: &Scope) -> Result<()> {
        // A session counts as filled. The order that fills another may itself lie outside the
        // window, so a scope of sessions is read by these alone and the window is left to the core.
        let buyers = match names(&scope.sessions) {
            Some(sessions) => names_of(scope).bind("sessions", sessions),
            None => window(names_of(scope), scope),
        };
        self.want_buyers("reads/buyers_in_scope", &buyers).await?;
        let rows = in_scope(scope);
        if scope.sessions.is_empty() && scope.from.is_none() && scope.to.is_none() {
            // Then all rows of its buyers are in scope themselves: read here, they are not asked for again.
            self.whole = self.buyers.seen.clone();
            let file = "reads/in_scope";
            let (payments, inventory, messages) = try_join!(
                self.store.select(file, &rows),
                self.store.select(file, &rows),
                self.store.select(file, &rows)
            )?;
            self.add(payments, inventory, messages);
        } else {
            let (payments, inventory, messages) =
                try_join!(self.of_others(&rows), self.of_others(&rows), self.of_others(&rows))?;
            self.add(payments, inventory, messages);
        }
        Ok(())
    }

    /// The rows of a ledger in a scope that do not come with the buyers of its orders: a few, at the ends of a window.
    async fn of_others<T: LedgerRow>(&self, scope: &Values) -> Result<Vec<T>> {
        let mut others = Vec::new();
        for (_, database) in self.store.shards(T::LEDGER) {
            let statement = self.store.ledger_statement::<T>(database, "reads/whose_in_scope", scope)?;
            let look = |row: SessionRow<'_>| {
                let r = Reader::new(row, T::LEDGER.as_str());
                if !r.buyer().is_some_and(|buyer| self.buyers.seen.contains(&buyer)) {
                    others.push(r.id("tenant_id").ok().zip(r.id("id").ok()));
                }
                Ok(())
            };
            database.each_row(&statement, look).await?;
        }
        // What is wrong with one that has no id, the whole row tells.
        match others.into_iter().collect::<Option<Vec<_>>>().filter(|others| others.len() <= BATCH) {
            Some(others) => self.by_ids(others).await,
            None => self.store.select("reads/in_scope", scope).await,
        }
    }

    /// The rows of a ledger that have some ids.
    async fn by_ids<T: LedgerRow>(&self, ids: Vec<(TenantId, String)>) -> Result<Vec<T>> {
        let mut rows = Vec::new();
        for (tenant_id, ids) in batches(ids) {
            let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("ids", ids);
            rows.extend(self.store.select("reads/by_ids", &values).await?);
        }
        Ok(rows)
    }

    async fn want_buyers(&mut self, file: &str, values: &Values) -> Result<()> {
        for (_, database) in self.store.shards(Ledger::Orders) {
            let statement = self.store.ledger_statement::<Order>(database, file, values)?;
            let want = |row: SessionRow<'_>| {
                let r = Reader::new(row, "orders");
                self.buyers.want(Buyer {
                    tenant_id: r.id("tenant_id")?,
                    show_id: r.id("show_id")?,
                    user_id: r.id("user_id")?,
                });
                Ok(())
            };
            database.each_row(&statement, want).await?;
        }
        Ok(())
    }

    async fn start_at_rows(&mut self, rows: &BTreeMap<(Ledger, TenantId), BTreeSet<RowId>>) -> Result<()> {
        for ((ledger, tenant_id), ids) in rows {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            for ids in ids.chunks(BATCH) {
                let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("ids", ids.to_vec());
                let store = self.store;
                match ledger {
                    Ledger::Orders => {
                        let orders = store.select::<Order>("reads/by_ids", &values).await?;
                        orders.iter().filter_map(LedgerRow::buyer).for_each(|b| self.buyers.want(b));
                        self.orders.add(orders);
                        // What hangs on an order is there also when the order is gone.
                        ids.iter().for_each(|id| self.attached.want((tenant_id.clone(), id.as_str().into())));
                    }
                    Ledger::Payments => self.payments.add(store.select("reads/by_ids", &values).await?),
                    Ledger::Inventory => self.inventory.add(store.select("reads/by_ids", &values).await?),
                    Ledger::Messages => self.messages.add(store.select("reads/by_ids", &values).await?),
                }
            }
        }
        Ok(())
    }

    /// Follows buyers, keys, charges and order ids until nothing new turns up.
    async fn finish(mut self) -> Result<Ledgers> {
        loop {
            self.note_what_rows_name();
            let (buyers, keys, charges) = (self.buyers.take(), self.keys.take(), self.charges.take());
            let (attached, named) = (self.attached.take(), self.named.take());
            if buyers.is_empty()
                && keys.is_empty()
                && charges.is_empty()
                && attached.is_empty()
                && named.is_empty()
            {
                // Only now is it known which rows are orphans: their buyers' orders may claim them.
                if !self.want_buyers_of_orphans() {
                    break;
                }
                continue;
            }
            self.read_buyers(buyers).await?;
            self.read_keys(keys).await?;
            self.read_charges(charges).await?;
            self.read_attached(attached).await?;
            self.read_named(named).await?;
        }
        Ok(self.into_rows())
    }

    fn into_rows(self) -> Ledgers {
        Ledgers {
            orders: self.orders.rows,
            payments: self.payments.rows,
            inventory: self.inventory.rows,
            messages: self.messages.rows,
        }
    }

    fn note_what_rows_name(&mut self) {
        let new = std::mem::replace(&mut self.orders.noted, self.orders.rows.len());
        let strangers = std::mem::take(&mut self.strangers);
        for at in strangers.into_iter().chain(new..self.orders.rows.len()) {
            let order = &self.orders.rows[at];
            if !order.buyer().is_some_and(|buyer| self.buyers.seen.contains(&buyer)) {
                self.strangers.push(at);
                continue;
            }
            self.attached.want((order.tenant_id.clone(), order.order_id.clone()));
            if let Some(key) = &order.idempotency_key {
                self.keys.want((order.tenant_id.clone(), order.user_id.clone(), key.clone()));
            }
        }
        for payment in &self.payments.rows[self.payments.noted..] {
            if let Some(transaction) = &payment.provider_txn_id {
                self.charges.want((payment.tenant_id.clone(), payment.provider.clone(), transaction.clone()));
            }
        }
        let payments = self.payments.newly_named();
        for (tenant_id, id) in payments.chain(self.inventory.newly_named()).chain(self.messages.newly_named())
        {
            if !self.orders.has(tenant_id, id.into()) {
                self.named.want((tenant_id.clone(), id.clone()));
            }
        }
    }

    /// Whether there were any that had not been asked for.
    fn want_buyers_of_orphans(&mut self) -> bool {
        let payments = self.payments.buyers_of_orphans(&self.orders);
        let inventory = self.inventory.buyers_of_orphans(&self.orders);
        let messages = self.messages.buyers_of_orphans(&self.orders);
        payments.chain(inventory).chain(messages).for_each(|buyer| self.buyers.want(buyer));
        !self.buyers.waiting.is_empty()
    }

    async fn read_buyers(&mut self, buyers: Vec<Buyer>) -> Result<()> {
        let orders = self.of_buyers(&buyers.iter().collect::<Vec<_>>()).await?;
        self.orders.add(orders);
        let others: Vec<_> = buyers.iter().filter(|b| !self.whole.contains(b)).collect();
        let (payments, inventory, messages) =
            try_join!(self.of_buyers(&others), self.of_buyers(&others), self.of_buyers(&others))?;
        self.add(payments, inventory, messages);
        Ok(())
    }

    /// The rows of a ledger that belong to some buyers.
    async fn of_buyers<T: LedgerRow>(&self, buyers: &[&Buyer]) -> Result<Vec<T>> {
        let users = buyers.iter().map(|b| ((b.tenant_id.clone(), b.show_id.clone()), b.user_id.to_string()));
        let mut rows = Vec::new();
        for ((tenant_id, show_id), users) in batches(users) {
            let values = Values::new()
                .bind("tenant_id", tenant_id.as_str())
                .bind("show_id", show_id.as_str())
                .bind("users", users);
            let found: Vec<T> = self.store.select("reads/of_buyers", &values).await?;
            // A collation that folds case would bring others' rows along.
            let is_theirs = |row: &T| row.buyer().is_some_and(|buyer| self.buyers.seen.contains(&buyer));
            rows.extend(found.into_iter().filter(is_theirs));
        }
        Ok(rows)
    }

    async fn read_keys(&mut self, keys: Vec<(TenantId, UserId, IdempotencyKey)>) -> Result<()> {
        for (tenant_id, list) in batches(keys.into_iter().map(|(t, _, key)| (t, key.to_string()))) {
            let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("keys", list);
            let mut found = self.store.select::<Order>("reads/by_keys", &values).await?;
            found.retain(|o| {
                o.idempotency_key.as_ref().is_some_and(|key| {
                    self.keys.seen.contains(&(o.tenant_id.clone(), o.user_id.clone(), key.clone()))
                })
            });
            found.iter().filter_map(LedgerRow::buyer).for_each(|b| self.buyers.want(b));
            self.orders.add(found);
        }
        Ok(())
    }

    async fn read_charges(&mut self, charges: Vec<(TenantId, String, String)>) -> Result<()> {
        for (tenant_id, list) in batches(charges.into_iter().map(|(t, _, transaction)| (t, transaction))) {
            let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("transactions", list);
            let mut found = self.store.select::<Payment>("reads/by_charges", &values).await?;
            found.retain(|p| {
                p.provider_txn_id.as_ref().is_some_and(|id| {
                    self.charges.seen.contains(&(p.tenant_id.clone(), p.provider.clone(), id.clone()))
                })
            });
            self.payments.add(found);
        }
        Ok(())
    }

    async fn read_named(&mut self, mut named: Vec<(TenantId, OrderId)>) -> Result<()> {
        // Some have come meanwhile, with their buyers.
        named.retain(|(tenant_id, id)| !self.orders.has(tenant_id, id.into()));
        for (tenant_id, list) in batches(named.into_iter().map(|(t, id)| (t, id.to_string()))) {
            let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("orders", list);
            let mut found = self.store.select::<Order>("reads/of_orders", &values).await?;
            found.retain(|o| self.named.seen.contains(&(o.tenant_id.clone(), o.order_id.clone())));
            self.orders.add(found);
        }
        Ok(())
    }

    async fn read_attached(&mut self, orders: Vec<(TenantId, OrderId)>) -> Result<()> {
        for (tenant_id, list) in batches(orders.into_iter().map(|(t, id)| (t, id.to_string()))) {
            let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("orders", list);
            let (payments, inventory, messages) = try_join!(
                self.of_orders(&tenant_id, &values, &self.payments),
                self.of_orders(&tenant_id, &values, &self.inventory),
                self.of_orders(&tenant_id, &values, &self.messages)
            )?;
            self.add(payments, inventory, messages);
        }
        Ok(())
    }

    /// The rows of a ledger that name one of some orders and have not been read yet. Most have been,
    /// with their buyers; so it is asked for ids first.
    async fn of_orders<T: LedgerRow>(
        &self,
        tenant_id: &TenantId,
        orders: &Values,
        read: &Table<T>,
    ) -> Result<Vec<T>> {
        let mut missing = Vec::new();
        for (_, database) in self.store.shards(T::LEDGER) {
            let statement = self.store.ledger_statement::<T>(database, "reads/ids_of_orders", orders)?;
            let look = |row: SessionRow<'_>| {
                let id: RowId = Reader::new(row, T::LEDGER.as_str()).id("id")?;
                if !read.has(tenant_id, id.clone()) {
                    missing.push((tenant_id.clone(), id.to_string()));
                }
                Ok(())
            };
            database.each_row(&statement, look).await?;
        }
        let mut rows: Vec<T> = self.by_ids(missing).await?;
        rows.retain(|row| {
            let named = row.order_id().map(|id| (row.tenant_id().clone(), id.clone()));
            named.is_some_and(|named| self.attached.seen.contains(&named))
        });
        Ok(rows)
    }
}

fn names<T: ToString>(set: &BTreeSet<T>) -> Option<Vec<String>> {
    (!set.is_empty()).then(|| set.iter().map(ToString::to_string).collect())
}

/// The names of a scope but for its sessions.
fn names_of(scope: &Scope) -> Values {
    Values::new()
        .bind_when("tenants", names(&scope.tenants))
        .bind_when("users", names(&scope.users))
        .bind_when("shows", names(&scope.shows))
}

/// Everything that a scope names.
fn in_scope(scope: &Scope) -> Values {
    window(names_of(scope).bind_when("sessions", names(&scope.sessions)), scope)
}

fn window(values: Values, scope: &Scope) -> Values {
    values
        .bind_when("from_us", scope.from.map(|t| t.micros()))
        .bind_when("to_us", scope.to.map(|t| t.micros()))
}
