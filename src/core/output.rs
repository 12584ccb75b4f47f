//! What a command printed, as it is kept: whole up to a limit, beyond it as a digest and its end.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Up to so many bytes of a stream are kept whole.
pub const KEPT_WHOLE: usize = 1024 * 1024;
/// Of a longer one, so many bytes at its end.
pub const KEPT_TAIL: usize = 64 * 1024;

/// One of the two streams of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// What a command printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    pub stdout: Kept,
    pub stderr: Kept,
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// How many bytes it had.
    pub bytes: u64,
    pub kept: Part,
    /// Over all of it, 64 hex digits; absent where nothing was to be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// What is kept, where that is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// What is kept, where that is no text, or where text would be longer: JSON escapes control characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
}

/// How much of a stream is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    All,
    /// Its last [`KEPT_TAIL`] bytes.
    Tail,
    /// By wish.
    None,
}

impl Kept {
    /// The bytes that are kept; `None` where the record is damaged.
    pub fn body(&self) -> Option<Vec<u8>> {
        match (&self.text, &self.hex) {
            (Some(text), None) => Some(text.clone().into_bytes()),
            (None, Some(digits)) => hex::decode(digits).ok(),
            (None, None) => Some(Vec::new()),
            (Some(_), Some(_)) => None,
        }
    }

    /// The same without what was printed: its length alone, since a digest of little text gives it away.
    #[must_use]
    pub fn forgotten(&self) -> Self {
        Self { bytes: self.bytes, kept: Part::None, sha256: None, text: None, hex: None }
    }
}

/// Takes a stream in, piece by piece.
#[derive(Default)]
pub struct Capture {
    bytes: u64,
    hash: Sha256,
    kept: Vec<u8>,
}

impl Capture {
    pub fn push(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.hash.update(piece);
        self.kept.extend_from_slice(piece);
        if self.kept.len() > KEPT_WHOLE {
            // Often enough that memory stays bounded, and seldom enough that little is moved.
            self.kept.drain(..self.kept.len() - KEPT_TAIL);
        }
    }

    pub fn kept(mut self) -> Kept {
        let is_whole = self.bytes <= KEPT_WHOLE as u64;
        if !is_whole {
            self.kept.drain(..self.kept.len().saturating_sub(KEPT_TAIL));
        }
        let (text, hex) = match String::from_utf8(self.kept) {
            Ok(text) if !is_mostly_control(&text) => (Some(text), None),
            Ok(text) => (None, Some(hex::encode(text))),
            Err(e) => (None, Some(hex::encode(e.as_bytes()))),
        };
        Kept {
            bytes: self.bytes,
            kept: if is_whole { Part::All } else { Part::Tail },
            sha256: Some(hex::encode(self.hash.finalize())),
            text,
            hex,
        }
    }
}

/// Whether JSON, with six characters for each control character, would make more of it than hex.
fn is_mostly_control(text: &str) -> bool {
    text.bytes().filter(|byte| *byte < 0x20 && !b"\n\r\t".contains(byte)).count() > text.len() / 5
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(pieces: &[&[u8]]) -> Kept {
        let mut capture = Capture::default();
        pieces.iter().for_each(|piece| capture.push(piece));
        let kept = capture.kept();
        let json = serde_json::to_string(&kept).unwrap();
        assert!(!json.contains('\0'), "PostgreSQL keeps no such text");
        assert_eq!(serde_json::from_str::<Kept>(&json).unwrap(), kept);
        kept
    }

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        let zeros = vec![0; 1000];
        for bytes in [&b""[..], b"text\n\x1b[1m \0 \xc3\xa9", b"\xff\xfe", &all, &zeros] {
            let (left, right) = bytes.split_at(bytes.len() / 2);
            let kept = kept(&[left, right]);
            assert_eq!((kept.body().unwrap(), kept.kept), (bytes.to_vec(), Part::All));
            assert_eq!(kept.sha256.unwrap(), hex::encode(Sha256::digest(bytes)));
        }
    }

    #[test]
    fn of_what_is_too_long_the_end_is_kept_and_a_digest_of_all() {
        let whole: Vec<u8> = (0..KEPT_WHOLE).map(|i| (i % 251) as u8).collect();
        assert_eq!(kept(&[&whole]).body().unwrap(), whole);
        let more = [&whole[..], b"the end"].concat();
        for pieces in [vec![&more[..]], more.chunks(4096).collect(), more.chunks(KEPT_WHOLE - 1).collect()] {
            let kept = kept(&pieces);
            assert_eq!((kept.bytes, kept.kept), (more.len() as u64, Part::Tail));
            assert_eq!(kept.body().unwrap(), more[more.len() - KEPT_TAIL..]);
            assert_eq!(kept.sha256.unwrap(), hex::encode(Sha256::digest(&more)));
        }
        assert_eq!(kept(&[&more]).forgotten().body().unwrap(), b"");
    }
}
