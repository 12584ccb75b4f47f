//! A transaction, and the chains of the journal's entries that this process writes (`core/chain.rs`).
//!
//! Each transaction that writes an entry has a chain to itself until it ends, so no two wait for each
//! other. A chain goes on where its last committed entry stands: one of which it is not known whether
//! its last entry was committed is not gone on with, and is ended with the others, by what the database
//! then says.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sqlx::Any;

use super::Connection;
use crate::core::chain::{Content, Link, Tip};

/// A transaction on any of the databases; what is not committed is rolled back.
#[derive(Debug)]
pub struct Transaction {
    /// Stands first: it is rolled back before its chain is given up.
    inner: sqlx::Transaction<'static, Any>,
    writing: Writing,
}

impl Transaction {
    pub(super) fn new(inner: sqlx::Transaction<'static, Any>, chains: Arc<Chains>) -> Self {
        Self { inner, writing: Writing { chains, tip: None } }
    }

    pub(super) async fn commit(self) -> sqlx::Result<()> {
        let Self { inner, writing } = self;
        inner.commit().await?;
        writing.committed();
        Ok(())
    }

    pub(super) async fn rollback(self) -> sqlx::Result<()> {
        self.inner.rollback().await
    }

    /// The place of the journal's next entry in this transaction's chain.
    pub(super) fn next_link(&mut self, content: &Content) -> Link {
        let Writing { chains, tip } = &mut self.writing;
        tip.get_or_insert_with(|| chains.take()).next(content)
    }

    /// The entry is written: the next one comes after it.
    pub(super) fn written(&mut self, link: Link) {
        self.writing.tip = Some(link.into());
    }
}

impl Deref for Transaction {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.inner
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.inner
    }
}

/// What a transaction has written of the journal, as far as that is not given back to the chains.
#[derive(Debug)]
struct Writing {
    chains: Arc<Chains>,
    tip: Option<Tip>,
}

impl Writing {
    fn committed(mut self) {
        if let Some(tip) = self.tip.take() {
            self.chains.lock().free.push(tip);
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(tip) = self.tip.take() {
            self.chains.lock().left.push(tip.chain);
        }
    }
}

/// The chains of one run.
#[derive(Debug)]
pub(super) struct Chains {
    run: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    begun: u64,
    /// No transaction writes to them just now.
    free: Vec<Tip>,
    /// Not gone on with.
    left: Vec<String>,
}

impl Chains {
    pub(super) fn new() -> Self {
        let random = uuid::Uuid::new_v4().simple().to_string();
        Self { run: format!("RUN-{}", &random[..16]), state: Mutex::default() }
    }

    fn take(&self) -> Tip {
        let mut state = self.lock();
        state.free.pop().unwrap_or_else(|| {
            state.begun += 1;
            Tip::begin(format!("{}.{}", self.run, state.begun))
        })
    }

    /// The names of all that this run has written to and not ended yet; it goes on with none of them.
    pub(super) fn take_all(&self) -> Vec<String> {
        let mut state = self.lock();
        let free: Vec<_> = state.free.drain(..).map(|tip| tip.chain).collect();
        let mut all: Vec<_> = state.left.drain(..).chain(free).collect();
        all.sort();
        all
    }

    /// Nothing that holds it can fail half-way.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
