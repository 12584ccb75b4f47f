//! Hashes over several values at once: each value goes in with its length before it, so that no
//! two lists of values read alike, whatever characters an id holds.

use sha2::{Digest, Sha256};

/// The SHA-256 over bytes alone, as every other tool computes it: 64 hex digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// A SHA-256 over a list of values. They are gathered and hashed at once: most are short, and to hash one by one
/// takes several times as long.
#[derive(Default)]
pub struct FieldHash(Vec<u8>);

impl FieldHash {
    pub fn new() -> Self {
        Self(Vec::with_capacity(256))
    }

    /// The text's length in bytes as eight bytes, the highest first; then the text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// As [`Self::text`], of what need not be text.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        self.0.extend_from_slice(bytes);
        self
    }

    /// A value that may be null: null is told from an empty text.
    #[must_use]
    pub fn maybe(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text("some").text(text),
            None => self.text("null"),
        }
    }

    /// A number as its decimal digits.
    #[must_use]
    pub fn number(self, number: i64) -> Self {
        self.text(itoa::Buffer::new().format(number))
    }

    /// 64 hex digits.
    pub fn hex(self) -> String {
        hex(&Sha256::digest(self.0))
    }

    /// The first 16 of the 64 hex digits.
    pub fn short_hex(self) -> String {
        hex(&Sha256::digest(self.0)[..8])
    }
}

/// Two digits a byte; without a look at each digit, for there are millions of hashes in a large plan.
fn hex(bytes: &[u8]) -> String {
    let mut digits = vec![0; bytes.len() * 2];
    hex::encode_to_slice(bytes, &mut digits).expect("there is room for two digits a byte");
    String::from_utf8(digits).expect("digits are ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_do_not_run_into_each_other() {
        let hash = |values: &[&str]| values.iter().fold(FieldHash::new(), |h, v| h.text(v)).hex();
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        assert_ne!(hash(&["a", ""]), hash(&["a"]));
        assert_ne!(FieldHash::new().maybe(None).hex(), FieldHash::new().maybe(Some("")).hex());
        assert_eq!(hash(&["a"]).len(), 64);
        assert_eq!(FieldHash::new().text("a").short_hex(), hash(&["a"])[..16]);
    }
}
