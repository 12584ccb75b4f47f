//! Which orders and payments idempotency keys are about. What is said of a key stays when its record goes into
//! the archive.

use super::idempotency::named;
use super::rows::Reader;
use super::sql::Values;
use super::{Connection, Store};
use crate::core::idempotency::Named;
use crate::core::ids::{IdempotencyKey, TenantId};
use crate::error::{Error, Result};

impl Store {
    /// Says which orders and payments a key is about, beside those that it is said of already.
    pub async fn name_key(
        &self,
        (tenant_id, key): (&TenantId, &IdempotencyKey),
        names: &[Named],
    ) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        self.keys_database().transaction(async |tx| self.name_on(tx, (tenant_id, key), names).await).await
    }

    pub(super) async fn name_on(
        &self,
        on: &mut Connection,
        (tenant_id, key): (&TenantId, &IdempotencyKey),
        names: &[Named],
    ) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let there = self.names_on(on, tenant_id, &[key]).await?;
        let mut new: Vec<_> =
            names.iter().filter(|name| !there.iter().any(|(_, said)| said == *name)).collect();
        new.sort_unstable();
        new.dedup();
        for name in new {
            let values = named(tenant_id, key)
                .bind("ledger", name.ledger.as_str())
                .bind("row_id", name.row_id.as_str());
            let statement = self.key_statement("idempotency/name", &values)?;
            if !self.keys_database().insert(on, &statement).await? {
                return Err(Error::clash(format!("another says in this very moment what {key} is about")));
            }
        }
        Ok(())
    }

    /// What keys of a tenant are about, each with its key.
    pub async fn names(
        &self,
        tenant_id: &TenantId,
        keys: &[&IdempotencyKey],
    ) -> Result<Vec<(IdempotencyKey, Named)>> {
        let mut connection = self.keys_database().connection().await?;
        self.names_on(&mut connection, tenant_id, keys).await
    }

    pub(super) async fn names_on(
        &self,
        on: &mut Connection,
        tenant_id: &TenantId,
        keys: &[&IdempotencyKey],
    ) -> Result<Vec<(IdempotencyKey, Named)>> {
        let keys: Vec<_> = keys.iter().map(|key| key.as_str().to_owned()).collect();
        let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("keys", keys);
        let statement = self.key_statement("retention/names_of", &values)?;
        let rows = self.keys_database().fetch(on, &statement).await?;
        rows.iter()
            .map(|row| {
                let r = Reader::new(row, "onefold_idempotency_names");
                Ok((r.id("idempotency_key")?, Named { ledger: r.parsed("ledger")?, row_id: r.id("row_id")? }))
            })
            .collect()
    }

    /// The keys that are about an order or a payment, archived or not.
    pub async fn keys_of(
        &self,
        tenant_id: Option<&TenantId>,
        name: &Named,
    ) -> Result<Vec<(TenantId, IdempotencyKey)>> {
        let values = Values::new()
            .bind("ledger", name.ledger.as_str())
            .bind("row_id", name.row_id.as_str())
            .bind_when("tenant_id", tenant_id.map(TenantId::as_str));
        let statement = self.key_statement("retention/keys_of", &values)?;
        let mut connection = self.keys_database().connection().await?;
        let rows = self.keys_database().fetch(&mut connection, &statement).await?;
        rows.iter()
            .map(|row| {
                let r = Reader::new(row, "onefold_idempotency_names");
                Ok((r.id("tenant_id")?, r.id("idempotency_key")?))
            })
            .collect()
    }
}
