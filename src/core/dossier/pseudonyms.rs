//! Names that stand for people: stable under one key, so that two reports of one incident agree, and
//! without it no way back.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::core::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    User,
    Session,
    Trace,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Session => "session",
            Self::Trace => "trace",
        }
    }
}

/// The key of a site's pseudonyms: 32 bytes that no report shows.
#[derive(Clone)]
pub struct RedactKey(pub [u8; 32]);

impl RedactKey {
    /// A key of a secret of any length.
    pub fn from_secret(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }
}

impl std::fmt::Debug for RedactKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedactKey")
    }
}

/// Gives pseudonyms, and finds the ids that are known to it in text.
#[derive(Debug)]
pub struct Pseudonyms {
    key: RedactKey,
    known: HashMap<String, Kind>,
    /// The known ids by themselves in small letters: people write them as they come.
    folded: HashMap<String, String>,
    /// The lengths of the known ids in bytes.
    lengths: BTreeSet<usize>,
}

impl Pseudonyms {
    pub fn new(key: RedactKey) -> Self {
        Self { key, known: HashMap::new(), folded: HashMap::new(), lengths: BTreeSet::new() }
    }

    /// Makes an id known, so that it is found in text.
    pub fn know_user(&mut self, id: &str) {
        self.know(id, Kind::User);
    }

    pub fn know_session(&mut self, id: &str) {
        self.know(id, Kind::Session);
    }

    pub fn know_trace(&mut self, id: &str) {
        self.know(id, Kind::Trace);
    }

    fn know(&mut self, id: &str, kind: Kind) {
        if !id.trim().is_empty() {
            self.lengths.insert(id.len());
            let folded = self.folded.entry(id.to_ascii_lowercase()).or_insert_with(|| id.to_owned());
            // Of several that differ only so, which one is meant must not hang on the order of reading.
            if id < folded.as_str() {
                id.clone_into(folded);
            }
            let known = self.known.entry(id.to_owned()).or_insert(kind);
            // An id of both is a user's: which it is must not hang on the order of reading.
            *known = kind.min(*known);
        }
    }

    pub fn user(&self, id: &str) -> String {
        self.pseudonym(Kind::User, id)
    }

    pub fn session(&self, id: &str) -> String {
        self.pseudonym(Kind::Session, id)
    }

    fn pseudonym(&self, kind: Kind, id: &str) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.key.0).expect("a key of any length is one of HMAC's");
        mac.update(kind.name().as_bytes());
        mac.update(b"\0");
        mac.update(id.as_bytes());
        format!("{}-{}", kind.name(), hex::encode(&mac.finalize().into_bytes()[..8]))
    }

    /// The text with every known id in it replaced, the longest first. Words that are times, or that
    /// `stays` says are something else, stay as they are.
    pub fn text<'t>(&self, text: &'t str, stays: &dyn Fn(&str) -> bool) -> Cow<'t, str> {
        let mut replaced = String::new();
        let (mut copied, mut at) = (0, 0);
        while at < text.len() {
            if let Some(end) = self.word_that_stays(text, at, stays) {
                at = end;
            } else if let Some((end, id, kind)) = self.known_at(text, at) {
                replaced.push_str(&text[copied..at]);
                replaced.push_str(&self.pseudonym(kind, id));
                (copied, at) = (end, end);
            } else {
                at += text[at..].chars().next().map_or(1, char::len_utf8);
            }
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        replaced.push_str(&text[copied..]);
        Cow::Owned(replaced)
    }

    /// Where the word that begins here ends, if it is to stay.
    fn word_that_stays(&self, text: &str, at: usize, stays: &dyn Fn(&str) -> bool) -> Option<usize> {
        if at > 0 && !text[..at].ends_with([' ', '(']) {
            return None;
        }
        let word = text[at..].split(' ').next()?.trim_end_matches([',', ';', ':', '.', ')']);
        let is_kept = !word.is_empty() && (stays(word) || Timestamp::parse_rfc3339(word).is_some());
        is_kept.then_some(at + word.len())
    }

    /// The longest known id that begins here, in whatever letters, and does not go on as a longer word of ASCII;
    /// where it ends, and the id as it is known.
    fn known_at(&self, text: &str, at: usize) -> Option<(usize, &str, Kind)> {
        let joins = |a: Option<char>, b: Option<char>| {
            a.zip(b).is_some_and(|(a, b)| a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric())
        };
        if joins(text[..at].chars().next_back(), text[at..].chars().next()) {
            return None;
        }
        self.lengths.iter().rev().find_map(|length| {
            let end = at + length;
            let found = text.get(at..end)?;
            let (id, kind) = self
                .known
                .get_key_value(found)
                .or_else(|| self.known.get_key_value(self.folded.get(&found.to_ascii_lowercase())?))?;
            (!joins(found.chars().next_back(), text[end..].chars().next())).then_some((
                end,
                id.as_str(),
                *kind,
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pseudonyms(key: u8) -> Pseudonyms {
        let mut all = Pseudonyms::new(RedactKey([key; 32]));
        all.know_user("U-7318");
        all.know_user("11");
        all.know_user("张三");
        all.know_session("c-7318");
        all.know_trace("tr-7318-tap3");
        all.know_trace("tr-7318-tap3-retry");
        all
    }

    #[test]
    fn the_same_key_gives_the_same_names_and_another_key_others() {
        let (a, b, other) = (pseudonyms(1), pseudonyms(1), pseudonyms(2));
        assert_eq!(a.user("U-7318"), b.user("U-7318"));
        assert_ne!(a.user("U-7318"), other.user("U-7318"));
        assert_ne!(a.user("7318"), a.session("7318")[..].replace("session", "user"));
        assert!(!format!("{a:?}").contains("[1, 1"), "{a:?}");
    }

    #[test]
    fn every_known_id_in_a_text_is_replaced_and_the_longest_first() {
        let all = pseudonyms(1);
        let text =
            all.text("(U-7318) on c-7318, tr-7318-tap3-retry; 退款张三U-7318。", &|_| false).into_owned();
        for id in ["U-7318", "c-7318", "tap3", "张三", "retry"] {
            assert!(!text.contains(id), "{id} in {text}");
        }
        assert_eq!(text.matches(&all.user("U-7318")).count(), 2, "{text}");
    }

    #[test]
    fn an_id_in_other_letters_is_the_same_persons() {
        let all = pseudonyms(1);
        let text = all.text("u-7318 asked for TR-7318-TAP3", &|_| false).into_owned();
        assert_eq!(
            text,
            format!("{} asked for {}", all.user("U-7318"), all.pseudonym(Kind::Trace, "tr-7318-tap3"))
        );
        let mut both = Pseudonyms::new(RedactKey([1; 32]));
        both.know_user("ab");
        both.know_user("Ab");
        assert_eq!(both.text("ab Ab", &|_| false), format!("{} {}", both.user("ab"), both.user("Ab")));
    }

    #[test]
    fn what_is_no_id_stays() {
        let all = pseudonyms(1);
        let stays = |text: &str| assert_eq!(all.text(text, &|w| w == "O-11"), text);
        stays("paid at 2026-11-11T12:14:33.118Z, backed by stock; O-11 was paid first");
        stays("U-73180 and 113 are other words");
        assert_ne!(all.text("row 11", &|_| false), "row 11");
    }
}
