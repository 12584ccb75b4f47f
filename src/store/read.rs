//! Reads a scope's rows and all that its decision rests on (contract, section 2, rule 1): every
//! order of each buyer that has an order in scope, every order that shares a key with one of
//! these and so on until nothing is added, the rows attached to them, and the rows that may be
//! orphans of theirs. What is read may be more than the scope; the core decides exactly.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::Hash;

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
            let orders = intent.orders.iter().map(|id| (Ledger::Orders, RowId::from(id)));
            for (ledger, id) in orders.chain(intent.orphans.iter().cloned()) {
                rows.entry((ledger, intent.tenant_id.clone())).or_default().insert(id);
            }
        }
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
}

impl<T: LedgerRow> Table<T> {
    fn new() -> Self {
        Self { rows: Vec::new(), ids: HashSet::new() }
    }

    fn add(&mut self, rows: impl IntoIterator<Item = T>) {
        for row in rows {
            if self.ids.insert((row.tenant_id().clone(), row.row_id())) {
                self.rows.push(row);
            }
        }
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
}

/// Things to ask for, each once.
struct Asked<T> {
    seen: HashSet<T>,
    waiting: BTreeSet<T>,
}

impl<T: Clone + Eq + Hash + Ord> Asked<T> {
    fn new() -> Self {
        Self { seen: HashSet::new(), waiting: BTreeSet::new() }
    }

    fn want(&mut self, thing: T) {
        if self.seen.insert(thing.clone()) {
            self.waiting.insert(thing);
        }
    }

    fn take(&mut self) -> BTreeSet<T> {
        std::mem::take(&mut self.waiting)
    }
}

/// Groups things into lists of at most a batch, each list under one key.
fn batches<K: Ord + Clone, V>(things: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
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
        if scope.sessions.is_empty() && scope.from.is_none() && scope.to.is_none() {
            // Then all rows of its buyers are in scope themselves, and read here.
            self.whole = self.buyers.seen.clone();
        }
        let rows = in_scope(scope);
        self.payments.add(self.store.select::<Payment>("reads/in_scope", &rows).await?);
        self.inventory.add(self.store.select::<Hold>("reads/in_scope", &rows).await?);
        self.messages.add(self.store.select::<Message>("reads/in_scope", &rows).await?);
        Ok(())
    }

    async fn want_buyers(&mut self, file: &str, values: &Values) -> Result<()> {
        for (_, database) in self.store.shards(Ledger::Orders) {
            let statement = self.store.ledger_statement::<Order>(database, file, values)?;
            let mut connection = database.connection().await?;
            for row in database.fetch(&mut connection, &statement).await? {
                let r = Reader::new(&row, "orders");
                self.buyers.want(Buyer {
                    tenant_id: r.id("tenant_id")?,
                    show_id: r.id("show_id")?,
                    user_id: r.id("user_id")?,
                });
            }
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
            let named: BTreeSet<_> = named
                .into_iter()
                .filter(|(t, id)| !self.orders.ids.contains(&(t.clone(), id.into())))
                .collect();
            for ((tenant_id,), orders) in batches(named.iter().map(|(t, id)| ((t.clone(),), id.to_string())))
            {
                let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("orders", orders);
                let found = self.store.select::<Order>("reads/of_orders", &values).await?;
                self.orders.add(
                    found.into_iter().filter(|o| named.contains(&(o.tenant_id.clone(), o.order_id.clone()))),
                );
            }
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
        for order in &self.orders.rows {
            if !self.buyers.seen.contains(&Buyer {
                tenant_id: order.tenant_id.clone(),
                show_id: order.show_id.clone(),
                user_id: order.user_id.clone(),
            }) {
                // It is here only because some row names it.
                continue;
            }
            self.attached.want((order.tenant_id.clone(), order.order_id.clone()));
            if let Some(key) = &order.idempotency_key {
                self.keys.want((order.tenant_id.clone(), order.user_id.clone(), key.clone()));
            }
        }
        for payment in &self.payments.rows {
            if let Some(transaction) = &payment.provider_txn_id {
                self.charges.want((payment.tenant_id.clone(), payment.provider.clone(), transaction.clone()));
            }
        }
        let payments = self.payments.rows.iter().map(|p| (&p.tenant_id, &p.order_id));
        let inventory = self.inventory.rows.iter().map(|h| (&h.tenant_id, &h.order_id));
        let messages = self.messages.rows.iter().map(|m| (&m.tenant_id, &m.order_id));
        for (tenant_id, order_id) in payments.chain(inventory).chain(messages) {
            if let Some(order_id) = order_id {
                self.named.want((tenant_id.clone(), order_id.clone()));
            }
        }
    }

    /// Whether there were any that had not been asked for.
    fn want_buyers_of_orphans(&mut self) -> bool {
        fn orphans<'r, T: LedgerRow + 'r>(
            rows: &'r [T],
            orders: &'r HashSet<(TenantId, RowId)>,
        ) -> impl Iterator<Item = Buyer> + 'r {
            rows.iter()
                .filter(|r| {
                    r.order_id().is_none_or(|id| !orders.contains(&(r.tenant_id().clone(), id.into())))
                })
                .filter_map(LedgerRow::buyer)
        }
        let orders = &self.orders.ids;
        let buyers: Vec<_> = orphans(&self.payments.rows, orders)
            .chain(orphans(&self.inventory.rows, orders))
            .chain(orphans(&self.messages.rows, orders))
            .collect();
        buyers.into_iter().for_each(|b| self.buyers.want(b));
        !self.buyers.waiting.is_empty()
    }

    async fn read_buyers(&mut self, buyers: BTreeSet<Buyer>) -> Result<()> {
        self.orders.add(self.of_buyers::<Order>(buyers.iter()).await?);
        let others: Vec<_> = buyers.iter().filter(|b| !self.whole.contains(b)).collect();
        self.payments.add(self.of_buyers::<Payment>(others.iter().copied()).await?);
        self.inventory.add(self.of_buyers::<Hold>(others.iter().copied()).await?);
        self.messages.add(self.of_buyers::<Message>(others.iter().copied()).await?);
        Ok(())
    }

    /// The rows of a ledger that belong to some buyers.
    async fn of_buyers<T: LedgerRow>(&self, buyers: impl Iterator<Item = &Buyer>) -> Result<Vec<T>> {
        let lists = batches(buyers.map(|b| ((b.tenant_id.clone(), b.show_id.clone()), b.user_id.clone())));
        let mut rows = Vec::new();
        for ((tenant_id, show_id), users) in lists {
            let values = Values::new()
                .bind("tenant_id", tenant_id.as_str())
                .bind("show_id", show_id.as_str())
                .bind("users", users.iter().map(ToString::to_string).collect::<Vec<_>>());
            let users: HashSet<_> = users.into_iter().collect();
            // A collation that folds case would bring others' rows along.
            let is_theirs =
                |b: Buyer| b.tenant_id == tenant_id && b.show_id == show_id && users.contains(&b.user_id);
            let found: Vec<T> = self.store.select("reads/of_buyers", &values).await?;
            rows.extend(found.into_iter().filter(|row| row.buyer().is_some_and(is_theirs)));
        }
        Ok(rows)
    }

    async fn read_keys(&mut self, keys: BTreeSet<(TenantId, UserId, IdempotencyKey)>) -> Result<()> {
        for ((tenant_id,), list) in batches(keys.iter().map(|(t, _, key)| ((t.clone(),), key.to_string()))) {
            let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("keys", list);
            let found = self.store.select::<Order>("reads/by_keys", &values).await?;
            let same_key = found.into_iter().filter(|o| {
                o.idempotency_key
                    .as_ref()
                    .is_some_and(|key| keys.contains(&(o.tenant_id.clone(), o.user_id.clone(), key.clone())))
            });
            let same_key: Vec<_> = same_key.collect();
            same_key.iter().filter_map(LedgerRow::buyer).for_each(|b| self.buyers.want(b));
            self.orders.add(same_key);
        }
        Ok(())
    }

    async fn read_charges(&mut self, charges: BTreeSet<(TenantId, String, String)>) -> Result<()> {
        for ((tenant_id,), list) in
            batches(charges.iter().map(|(t, _, transaction)| ((t.clone(),), transaction.clone())))
        {
            let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("transactions", list);
            let found = self.store.select::<Payment>("reads/by_charges", &values).await?;
            self.payments.add(found.into_iter().filter(|p| {
                p.provider_txn_id.as_ref().is_some_and(|id| {
                    charges.contains(&(p.tenant_id.clone(), p.provider.clone(), id.clone()))
                })
            }));
        }
        Ok(())
    }

    async fn read_attached(&mut self, orders: BTreeSet<(TenantId, OrderId)>) -> Result<()> {
        for ((tenant_id,), list) in batches(orders.iter().map(|(t, id)| ((t.clone(),), id.clone()))) {
            let payments = self.of_orders(&tenant_id, &list, &self.payments).await?;
            self.payments.add(payments);
            let inventory = self.of_orders(&tenant_id, &list, &self.inventory).await?;
            self.inventory.add(inventory);
            let messages = self.of_orders(&tenant_id, &list, &self.messages).await?;
            self.messages.add(messages);
        }
        Ok(())
    }

    /// The rows of a ledger that name one of some orders and have not been read yet. Most have been,
    /// with their buyers; so it is asked for ids first.
    async fn of_orders<T: LedgerRow>(
        &self,
        tenant_id: &TenantId,
        orders: &[OrderId],
        read: &Table<T>,
    ) -> Result<Vec<T>> {
        let list: Vec<_> = orders.iter().map(ToString::to_string).collect();
        let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("orders", list);
        let mut missing: Vec<String> = Vec::new();
        for (_, database) in self.store.shards(T::LEDGER) {
            let statement = self.store.ledger_statement::<T>(database, "reads/ids_of_orders", &values)?;
            let mut connection = database.connection().await?;
            for row in database.fetch(&mut connection, &statement).await? {
                let id: RowId = Reader::new(&row, T::LEDGER.as_str()).id("id")?;
                let key = (tenant_id.clone(), id);
                if !read.ids.contains(&key) {
                    missing.push(key.1.to_string());
                }
            }
        }
        let orders: HashSet<_> = orders.iter().collect();
        let mut rows = Vec::new();
        for ids in missing.chunks(BATCH) {
            let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("ids", ids.to_vec());
            let found: Vec<T> = self.store.select("reads/by_ids", &values).await?;
            rows.extend(found.into_iter().filter(|r| r.order_id().is_some_and(|id| orders.contains(id))));
        }
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
