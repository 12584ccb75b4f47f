//! What a configuration says of a provider: `[providers.NAME]`, with NAME as payments have it in
//! their `provider`, or `"*"` for all others.

use std::path::Path;

use serde::Deserialize;

use super::Provider;
use super::exec::ExecSettings;
use super::http::HttpSettings;
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
    /// A provider's own API, asked over HTTP.
    Http(Box<HttpSettings>),
    /// A program of the site.
    Exec(ExecSettings),
}

impl Settings {
    /// The same, with files that it names taken to lie in this folder.
    #[must_use]
    pub fn beside(mut self, folder: &Path) -> Self {
        if let Self::Http(http) = &mut self {
            http.beside(folder);
        }
        self
    }

    /// Checks all that can be checked without databases and secrets.
    ///
    /// # Errors
    /// Usage, where the settings make no sense.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Sandbox { misbehaviour } => misbehaviour.check(),
            Self::Outbox => Ok(()),
            Self::Http(http) => http.check(),
            Self::Exec(exec) => exec.provider().map(drop),
        }
    }

    /// The provider, on these databases, with its secrets read.
    ///
    /// # Errors
    /// Usage, where the settings make no sense, and where a secret is not there.
    pub fn provider<'s>(&self, store: &'s Store) -> Result<Box<dyn Provider + 's>> {
        self.check()?;
        Ok(match self {
            Self::Sandbox { misbehaviour } => Box::new(Sandbox::new(store, misbehaviour.clone())),
            Self::Outbox => Box::new(Outbox::new(store)),
            Self::Http(http) => Box::new(http.provider(|name| std::env::var(name).ok())?),
            Self::Exec(exec) => Box::new(exec.provider()?),
        })
    }
}
