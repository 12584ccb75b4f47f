//! A plan's canonical text (contract, section 8): its intents in pieces, and the digest over the whole.

use serde::ser::{Error as _, SerializeSeq as _};
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::canonical;
use super::plan::{PlannedIntent, Sums};
use super::policy::Policy;
use super::scope::Scope;
use super::time::Timestamp;

/// The canonical text of intents in the plan's order, in pieces that nobody minds to hold or to send at once: each has
/// whole intents, with a comma between two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntentTexts(Vec<String>);

impl IntentTexts {
    /// A piece of so many bytes takes no intent more.
    const PIECE: usize = 1 << 20;

    pub fn of(intents: &[PlannedIntent]) -> Self {
        let mut texts = Self::default();
        intents.iter().for_each(|intent| texts.add(intent));
        texts
    }

    pub fn add(&mut self, intent: &PlannedIntent) {
        canonical::write(intent, self.next()).expect("the names in a plan are text");
    }

    /// The text behind which the next intent is to be written.
    pub(super) fn next(&mut self) -> &mut String {
        self.room(1)
    }

    /// Adds what comes behind these.
    pub fn append(&mut self, texts: Self) {
        for piece in texts.0 {
            if piece.len() < Self::PIECE {
                self.room(piece.len()).push_str(&piece);
            } else {
                self.0.push(piece);
            }
        }
    }

    /// The text behind which so many bytes have room.
    fn room(&mut self, bytes: usize) -> &mut String {
        match self.0.last_mut() {
            Some(last) if last.len() + bytes <= Self::PIECE => last.push(','),
            // Room enough for the intent that goes beyond, too: to grow copies everything.
            _ => self.0.push(String::with_capacity(Self::PIECE + (1 << 16))),
        }
        self.0.last_mut().expect("there is one")
    }

    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// As the list of the intents, of which no more than a piece is held at once.
impl Serialize for IntentTexts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for piece in self.pieces() {
            let intents: Vec<PlannedIntent> =
                serde_json::from_str(&format!("[{piece}]")).map_err(S::Error::custom)?;
            for intent in &intents {
                list.serialize_element(intent)?;
            }
        }
        list.end()
    }
}

/// A plan's digest as its intents come, in the plan's order.
pub struct PlanDigest {
    text: TextHash,
    before: &'static str,
}

impl PlanDigest {
    /// Of no intent yet.
    pub fn new(as_of: Timestamp) -> Self {
        let mut text = TextHash::default();
        text.member("{\"as_of\":", &as_of);
        text.text(",\"intents\":[");
        Self { text, before: "" }
    }

    /// The next intent.
    pub fn intent(&mut self, intent: &PlannedIntent) {
        self.text.member(std::mem::replace(&mut self.before, ","), intent);
    }

    /// The next intents.
    pub fn intents(&mut self, texts: &IntentTexts) {
        texts.pieces().for_each(|piece| self.piece(piece));
    }

    /// The next intents, by a piece of their canonical text.
    pub fn piece(&mut self, piece: &str) {
        self.text.text(std::mem::replace(&mut self.before, ","));
        self.text.hash_all(piece);
    }

    /// The digest of a plan of these intents.
    pub fn end(mut self, live_orders: u64, policy: &Policy, scope: &Scope, sums: &Sums) -> String {
        self.text.member("],\"live_orders\":", &live_orders);
        self.text.member(",\"policy\":", policy);
        self.text.member(",\"scope\":", scope);
        self.text.member(",\"sums\":", sums);
        self.text.text("}");
        self.text.finish()
    }
}

/// The SHA-256 of a canonical text, piece by piece as it is written.
#[derive(Default)]
struct TextHash {
    hash: Sha256,
    /// Written and not yet hashed.
    waiting: String,
}

impl TextHash {
    /// How many bytes are hashed at once.
    const BLOCK: usize = 1 << 16;

    fn text(&mut self, text: &str) {
        self.waiting.push_str(text);
    }

    /// A value in its canonical form, behind what leads to it.
    fn member<T: Serialize>(&mut self, before: &str, value: &T) {
        self.text(before);
        canonical::write(value, &mut self.waiting).expect("the names in a plan are text");
        if self.waiting.len() > Self::BLOCK {
            self.hash_all("");
        }
    }

    /// What waits, and then a long text.
    fn hash_all(&mut self, text: &str) {
        self.hash.update(&self.waiting);
        self.waiting.clear();
        self.hash.update(text);
    }

    fn finish(mut self) -> String {
        self.hash.update(&self.waiting);
        format!("sha256:{}", hex::encode(self.hash.finalize()))
    }
}
