//! Bytes of a file into UTF-8. The byte order mark decides; without one the text is UTF-8 and must
//! be valid, unless `--encoding` says otherwise. Nothing is guessed.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

use encoding_rs::{Decoder, DecoderResult};

use super::faults::Problem;
use super::options::Encoding;

/// A file opened for reading as UTF-8.
pub(super) struct Text {
    pub input: Box<dyn Read>,
    /// What it is encoded in, and whether a byte order mark says so.
    pub encoding: Encoding,
    pub marked: bool,
    pub bytes: BytesRead,
}

/// How many bytes of a file have been read so far.
pub(super) type BytesRead = Rc<Cell<u64>>;

const MARKS: [(&[u8], Encoding); 4] = [
    (&[0xEF, 0xBB, 0xBF], Encoding::Utf8),
    (&[0xFF, 0xFE], Encoding::Utf16Le),
    (&[0xFE, 0xFF], Encoding::Utf16Be),
    (&[0x84, 0x31, 0x95, 0x33], Encoding::Gb18030),
];

/// Opens a file and finds out how it is encoded.
pub(super) fn open(path: &Path, encoding: Encoding) -> Result<Text, Problem> {
    let unreadable = |error: io::Error| Problem::new(format!("cannot be read: {error}"));
    let bytes = BytesRead::default();
    let mut file = Counted { inner: File::open(path).map_err(unreadable)?, bytes: bytes.clone() };
    let mut head = Vec::with_capacity(4);
    file.by_ref().take(4).read_to_end(&mut head).map_err(unreadable)?;
    let mark = MARKS.into_iter().find(|(mark, _)| head.starts_with(mark));
    let (encoding, length) = match (mark, encoding) {
        (Some((mark, marked)), _) => (marked, mark.len()),
        (None, Encoding::Utf16) => {
            return Err(Problem::new("no byte order mark says which UTF-16 this is")
                .hint("--encoding utf-16le (as Windows writes) or utf-16be"));
        }
        (None, Encoding::Auto) => match head[..] {
            [a, 0, b, 0] if a != 0 && b != 0 => return Err(unmarked_utf16(Encoding::Utf16Le)),
            [0, a, 0, b] if a != 0 && b != 0 => return Err(unmarked_utf16(Encoding::Utf16Be)),
            _ => (Encoding::Utf8, 0),
        },
        (None, stated) => (stated, 0),
    };
    let rest = io::Cursor::new(head.split_off(length)).chain(file);
    let input: Box<dyn Read> = match encoding {
        Encoding::Utf16Le => Box::new(Transcoder::new(rest, encoding_rs::UTF_16LE, encoding)),
        Encoding::Utf16Be => Box::new(Transcoder::new(rest, encoding_rs::UTF_16BE, encoding)),
        Encoding::Gb18030 => Box::new(Transcoder::new(rest, encoding_rs::GB18030, encoding)),
        Encoding::Auto | Encoding::Utf8 | Encoding::Utf16 => Box::new(rest),
    };
    Ok(Text { input, encoding, marked: mark.is_some(), bytes })
}

fn unmarked_utf16(encoding: Encoding) -> Problem {
    Problem::new("looks like UTF-16 without a byte order mark").hint(format!("--encoding {encoding}"))
}

/// Counts what is read through it.
struct Counted<R> {
    inner: R,
    bytes: BytesRead,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}

/// The bytes stand for no character in the file's encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    pub bytes: Vec<u8>,
    pub encoding: Encoding,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not valid {}", self.encoding)
    }
}

impl std::error::Error for Malformed {}

/// Turns another encoding into UTF-8 as it is read. Each call must leave room for a character.
struct Transcoder<R> {
    input: R,
    decoder: Decoder,
    encoding: Encoding,
    /// Read and not yet decoded is `raw[from..to]`.
    raw: Box<[u8]>,
    from: usize,
    to: usize,
    state: State,
}

#[derive(Clone)]
enum State {
    Reading,
    /// The file is at its end, the decoder is not.
    Last,
    Done,
    Broken(Malformed),
}

impl<R: Read> Transcoder<R> {
    fn new(input: R, from: &'static encoding_rs::Encoding, encoding: Encoding) -> Self {
        let raw = vec![0; 1 << 16].into_boxed_slice();
        let decoder = from.new_decoder_without_bom_handling();
        Self { input, decoder, encoding, raw, from: 0, to: 0, state: State::Reading }
    }

    /// The bytes before the decoder's place that it cannot take, as far as they are still here.
    fn malformed(&self, length: u8, after: u8) -> Malformed {
        let end = self.from.saturating_sub(usize::from(after));
        let begin = end.saturating_sub(usize::from(length));
        Malformed { bytes: self.raw[begin..end].to_vec(), encoding: self.encoding }
    }
}

impl<R: Read> Read for Transcoder<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match &self.state {
                State::Done => return Ok(0),
                State::Broken(malformed) => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, malformed.clone()));
                }
                State::Reading if self.from == self.to => match self.input.read(&mut self.raw)? {
                    0 => self.state = State::Last,
                    read => (self.from, self.to) = (0, read),
                },
                State::Reading | State::Last => {}
            }
            let last = matches!(self.state, State::Last);
            let raw = &self.raw[self.from..self.to];
            let (result, read, written) = self.decoder.decode_to_utf8_without_replacement(raw, into, last);
            self.from += read;
            match result {
                DecoderResult::Malformed(length, after) => {
                    self.state = State::Broken(self.malformed(length, after));
                }
                DecoderResult::InputEmpty if last => self.state = State::Done,
                DecoderResult::OutputFull if written == 0 => {
                    return Err(io::Error::other("no room for a character"));
                }
                DecoderResult::InputEmpty | DecoderResult::OutputFull => {}
            }
            if written > 0 {
                return Ok(written);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcode(bytes: &[u8], from: &'static encoding_rs::Encoding, room: usize) -> io::Result<String> {
        let mut transcoder = Transcoder::new(bytes, from, Encoding::Gb18030);
        let (mut text, mut piece) = (Vec::new(), vec![0; room]);
        loop {
            match transcoder.read(&mut piece)? {
                0 => return Ok(String::from_utf8(text).unwrap()),
                read => text.extend(&piece[..read]),
            }
        }
    }

    #[test]
    fn characters_survive_any_division_into_pieces() {
        let long = "order,已支付,🎫\r\n".repeat(9000);
        let (gb, ..) = encoding_rs::GB18030.encode(&long);
        let utf16: Vec<u8> = long.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for room in [16, 4096, 1 << 18] {
            assert_eq!(transcode(&gb, encoding_rs::GB18030, room).unwrap(), long);
            assert_eq!(transcode(&utf16, encoding_rs::UTF_16LE, room).unwrap(), long);
        }
        assert_eq!(transcode(b"", encoding_rs::GB18030, 16).unwrap(), "");
    }

    #[test]
    fn bytes_that_are_no_character_are_named() {
        for bytes in [&b"a,\xff,b"[..], b"a,\xd6"] {
            let error = transcode(bytes, encoding_rs::GB18030, 64).unwrap_err();
            let malformed = error.get_ref().and_then(|e| e.downcast_ref::<Malformed>()).unwrap();
            assert_eq!(malformed.bytes, [bytes[2]]);
        }
    }
}
