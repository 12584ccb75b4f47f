//! What a configuration says of a provider: `[providers.NAME]`, with NAME as payments have it in
//! their `provider`, or `"*"` for all others.

use serde::Deserialize;

use super::Provider;
use super::outbox::Outbox;
use super::sandbox::{Misbehaviour, Sandbox};
use crate::error::Result;
use crate::store::Store;

/// Which way, and how.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Settings {
    /// Moves no real money.
    Sandbox {
        #[serde(flatten)]
        misbehaviour: Misbehaviour,
    },
    /// Rows for the company's own payment service.
    Outbox,
}

impl Settings {
    /// The provider, on these databases.
    ///
    /// # Errors
    /// Usage, where the settings make no sense.
    pub fn provider<'s>(&self, store: &'s Store) -> Result<Box<dyn Provider + 's>> {
        Ok(match self {
            Self::Sandbox { misbehaviour } => {
                misbehaviour.check()?;
                Box::new(Sandbox::new(store, misbehaviour.clone()))
            }
            Self::Outbox => Box::new(Outbox::new(store)),
        })
    }
}
