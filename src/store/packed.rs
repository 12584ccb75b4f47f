//! Long texts as they are saved: compressed, since most databases write every byte twice or take long to compress it
//! themselves; and as text, which no driver and no collation changes. A short one stays as it is, for whoever looks into
//! the table.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;

/// What is shorter is not packed.
const LONG: usize = 1 << 16;

/// How a packed text begins; no JSON does.
const MARK: &str = "lz4:";

/// How many bytes at most a byte of LZ4 stands for.
const MOST: usize = 255;

/// A text as it is to be saved.
pub(super) fn pack(text: &str) -> Cow<'_, str> {
    if text.len() < LONG {
        return text.into();
    }
    let mut packed = MARK.to_owned();
    BASE64.encode_string(lz4_flex::compress_prepend_size(text.as_bytes()), &mut packed);
    packed.into()
}

/// The text that was saved, packed or as it was.
///
/// # Errors
/// Why it cannot be unpacked: somebody has changed it.
pub(super) fn unpack(saved: String) -> Result<String, String> {
    let Some(packed) = saved.strip_prefix(MARK) else { return Ok(saved) };
    let bytes = BASE64.decode(packed).map_err(|e| e.to_string())?;
    // The room for the text is made by what it says of its size.
    let (size, block) = lz4_flex::block::uncompressed_size(&bytes).map_err(|e| e.to_string())?;
    if size > block.len().saturating_mul(MOST) {
        return Err("it is shorter than it says".to_owned());
    }
    let text = lz4_flex::decompress(block, size).map_err(|e| e.to_string())?;
    String::from_utf8(text).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long() -> String {
        (0..10_000).map(|i| format!("{{\"é\":\"O-{i}\"}},")).collect()
    }

    #[test]
    fn texts_come_back() {
        for text in ["", "{}", &long(), &"x".repeat(LONG), &"x".repeat(LONG - 1)] {
            assert_eq!(unpack(pack(text).into_owned()).unwrap(), *text);
        }
        assert_eq!(pack("{\"a\":1}"), "{\"a\":1}");
        let (packed, text) = (pack(&long()).into_owned(), long());
        assert!(packed.len() < text.len() / 2, "{} of {}", packed.len(), text.len());
    }

    #[test]
    fn what_was_changed_is_refused() {
        let packed = pack(&long()).into_owned();
        for changed in [
            packed.replacen("lz4:", "lz4:/", 1),
            packed[..packed.len() / 2].to_owned(),
            format!("{packed}A"),
            "lz4:".to_owned(),
            "lz4:é".to_owned(),
            // 4 GiB of nothing.
            format!("lz4:{}", BASE64.encode([0xff; 8])),
        ] {
            assert!(unpack(changed.clone()).is_err(), "{}", &changed[..changed.len().min(20)]);
        }
    }
}
