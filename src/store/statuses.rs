//! A site's own words for the contract's statuses, as its configuration gives them.

use std::collections::BTreeMap;

use super::sql::Value;
use crate::core::status::Ledger;
use crate::error::{Error, Result};

/// For each ledger, the site's values of each contract status; the first is the one that is written.
/// A ledger without any uses the contract's names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statuses([BTreeMap<String, Vec<String>>; 4]);

impl Statuses {
    /// Adds the values of a contract status.
    ///
    /// # Errors
    /// Usage, where the contract has no such status, a status has no value, or a value stands for two.
    pub fn add(&mut self, ledger: Ledger, status: &str, values: Vec<String>) -> Result<()> {
        let known = ledger.statuses();
        let what = format!("[status.{}]", ledger.row_name());
        if !known.contains(&status) {
            return Err(Error::usage(format!("{what}: {status} is not one of {}", known.join(", ")))
                .hint("write ours on the left and yours on the right: PAID = [\"20\", \"21\"]"));
        }
        if values.is_empty() {
            return Err(Error::usage(format!("{what}: {status} has no value"))
                .hint(format!("say what yours is called: {status} = \"…\", or leave it out")));
        }
        let map = &mut self.0[ledger as usize];
        for value in &values {
            if let Some((other, _)) = map.iter().find(|(_, values)| values.contains(value)) {
                return Err(Error::usage(format!("{what}: {value:?} stands for {other} and for {status}"))
                    .hint("one value stands for one status: leave it out of one of the two"));
            }
        }
        map.insert(status.to_owned(), values);
        Ok(())
    }

    /// The statuses of a ledger that have no value, where others of it have one.
    pub fn missing(&self, ledger: Ledger) -> Vec<&'static str> {
        let map = &self.0[ledger as usize];
        let missing = ledger.statuses().iter().filter(|status| !map.contains_key(**status));
        if map.is_empty() { Vec::new() } else { missing.copied().collect() }
    }

    /// The contract's name for a value of the site.
    ///
    /// # Errors
    /// What is known, where the value is none of the site's.
    pub(super) fn name<'a>(&'a self, ledger: Ledger, value: &'a str) -> std::result::Result<&'a str, String> {
        let map = &self.0[ledger as usize];
        if map.is_empty() {
            return Ok(value);
        }
        map.iter()
            .find(|(_, values)| values.iter().any(|v| v == value))
            .map(|(name, _)| name.as_str())
            .ok_or_else(|| {
                let known: Vec<_> = map.values().flatten().map(String::as_str).collect();
                format!("not one of the configured {}", known.join(", "))
            })
    }

    /// What stands for `:from`: every value of the site for this status.
    pub(super) fn all(&self, ledger: Ledger, status: &str) -> Value {
        Value::List(self.values(ledger, status))
    }

    /// What stands for `:to`: the site's first value for this status.
    pub(super) fn first(&self, ledger: Ledger, status: &str) -> String {
        self.values(ledger, status).swap_remove(0)
    }

    /// Every value of the site for a status of this ledger, with the contract's name; none where those are used.
    pub fn names(&self, ledger: Ledger) -> impl Iterator<Item = (&str, &'static str)> {
        let known = move |status: &String| ledger.statuses().iter().find(|name| *name == status);
        let of =
            self.0[ledger as usize].iter().filter_map(move |(status, values)| Some((known(status)?, values)));
        of.flat_map(|(name, values)| values.iter().map(|value| (value.as_str(), *name)))
    }

    /// Every value of the site for this status.
    pub(super) fn values(&self, ledger: Ledger, status: &str) -> Vec<String> {
        match self.0[ledger as usize].get(status) {
            Some(values) if !values.is_empty() => values.clone(),
            _ => vec![status.to_owned()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_values_are_read_as_one_status_and_the_first_is_written() {
        let mut statuses = Statuses::default();
        statuses.add(Ledger::Orders, "PAID", vec!["20".into(), "21".into()]).unwrap();
        assert_eq!(statuses.name(Ledger::Orders, "21"), Ok("PAID"));
        assert!(statuses.name(Ledger::Orders, "PAID").is_err());
        assert_eq!(statuses.name(Ledger::Payments, "CAPTURED"), Ok("CAPTURED"));
        assert_eq!(statuses.first(Ledger::Orders, "PAID"), "20");
        assert_eq!(statuses.all(Ledger::Orders, "PAID"), Value::List(vec!["20".into(), "21".into()]));
    }

    #[test]
    fn a_value_that_stands_for_two_statuses_is_refused() {
        let mut statuses = Statuses::default();
        statuses.add(Ledger::Orders, "PAID", vec!["20".into()]).unwrap();
        let error = statuses.add(Ledger::Orders, "TICKETED", vec!["20".into()]).unwrap_err();
        assert!(error.message.contains("\"20\" stands for PAID and for TICKETED"), "{error}");
        assert!(statuses.add(Ledger::Orders, "SOLD", vec!["9".into()]).is_err());
    }
}
