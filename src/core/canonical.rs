//! Canonical JSON: members sorted by name, no whitespace. The same value is always the same text.

use std::fmt;
use std::ops::Range;

use serde::ser::{self, Serialize};

/// Appends the canonical text of `value`, straight from the value: no tree of it is made.
///
/// # Errors
/// Members whose names are no text, and values that refuse to be written.
pub fn write<T: Serialize + ?Sized>(value: &T, out: &mut String) -> Result<(), NoText> {
    value.serialize(Writer { out, names: &mut Vec::new() })
}

/// Appends a text with its quotation marks, as JSON has it. Says whether something in it is escaped.
pub fn write_text(text: &str, out: &mut String) -> bool {
    let is_escaped = has_escaped(text.as_bytes());
    if is_escaped {
        out.push_str(&serde_json::Value::from(text).to_string());
    } else {
        out.reserve(text.len() + 2);
        out.push('"');
        out.push_str(text);
        out.push('"');
    }
    is_escaped
}

/// Whether some byte is not written as it is. Most texts are short: they are looked at eight bytes at a time, of which
/// the last eight may overlap with those before.
fn has_escaped(text: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH_BITS: u64 = ONES << 7;
    /// Whether a byte of the word is less than this one, which is at most 128.
    fn has_less(word: u64, than: u8) -> bool {
        word.wrapping_sub(ONES * u64::from(than)) & !word & HIGH_BITS != 0
    }
    let in_word = |bytes: &[u8; 8]| {
        let word = u64::from_ne_bytes(*bytes);
        let differs_from = |byte: u8| word ^ (ONES * u64::from(byte));
        has_less(word, b' ') | has_less(differs_from(b'"'), 1) | has_less(differs_from(b'\\'), 1)
    };
    match text.last_chunk() {
        Some(last) => text.as_chunks().0.iter().any(in_word) || in_word(last),
        None => text.iter().any(|b| matches!(b, 0..b' ' | b'"' | b'\\')),
    }
}

/// Why a value has no canonical text.
#[derive(Debug)]
pub struct NoText(String);

impl fmt::Display for NoText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoText {}

impl ser::Error for NoText {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self(problem.to_string())
    }
}

struct Writer<'o> {
    out: &'o mut String,
    /// Where the names stand that the objects around have so far, each with its quotation marks; those of the
    /// innermost are the last.
    names: &'o mut Vec<Range<usize>>,
}

impl Writer<'_> {
    fn scalar(self, scalar: impl Into<serde_json::Value>) {
        self.out.push_str(&scalar.into().to_string());
    }

    /// The same again, for a value that stands in this one.
    fn inner(&mut self) -> Writer<'_> {
        Writer { out: self.out, names: self.names }
    }
}

macro_rules! digits {
    ($($method:ident: $number:ty),+) => {$(
        fn $method(self, number: $number) -> Result<(), NoText> {
            self.out.push_str(itoa::Buffer::new().format(number));
            Ok(())
        }
    )+};
}

impl<'o> ser::Serializer for Writer<'o> {
    type Ok = ();
    type Error = NoText;
    type SerializeSeq = List<'o>;
    type SerializeTuple = List<'o>;
    type SerializeTupleStruct = List<'o>;
    type SerializeTupleVariant = List<'o>;
    type SerializeMap = Members<'o>;
    type SerializeStruct = Members<'o>;
    type SerializeStructVariant = Members<'o>;

    digits!(
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128
    );

    fn serialize_bool(self, value: bool) -> Result<(), NoText> {
        self.out.push_str(if value { "true" } else { "false" });
        Ok(())
    }

    fn serialize_f32(self, number: f32) -> Result<(), NoText> {
        self.scalar(number);
        Ok(())
    }

    fn serialize_f64(self, number: f64) -> Result<(), NoText> {
        self.scalar(number);
        Ok(())
    }

    fn serialize_char(self, c: char) -> Result<(), NoText> {
        write_text(c.encode_utf8(&mut [0; 4]), self.out);
        Ok(())
    }

    fn serialize_str(self, text: &str) -> Result<(), NoText> {
        write_text(text, self.out);
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), NoText> {
        self.collect_seq(bytes)
    }

    fn serialize_none(self) -> Result<(), NoText> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NoText> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), NoText> {
        self.out.push_str("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), NoText> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), NoText> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), NoText> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), NoText> {
        open_variant(self.out, variant);
        value.serialize(self.inner())?;
        self.out.push('}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<List<'o>, NoText> {
        Ok(List::new(self, "]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<List<'o>, NoText> {
        Ok(List::new(self, "]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<List<'o>, NoText> {
        Ok(List::new(self, "]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<List<'o>, NoText> {
        open_variant(self.out, variant);
        Ok(List::new(self, "]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'o>, NoText> {
        Ok(Members::new(self, "}"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members<'o>, NoText> {
        Ok(Members::new(self, "}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'o>, NoText> {
        open_variant(self.out, variant);
        Ok(Members::new(self, "}}"))
    }
}

fn open_variant(out: &mut String, variant: &str) {
    out.push('{');
    write_text(variant, out);
    out.push(':');
}

struct List<'o> {
    writer: Writer<'o>,
    first: bool,
    end: &'static str,
}

impl<'o> List<'o> {
    fn new(writer: Writer<'o>, end: &'static str) -> Self {
        writer.out.push('[');
        Self { writer, first: true, end }
    }

    fn add<T: Serialize + ?Sized>(&mut self, element: &T) -> Result<(), NoText> {
        if !std::mem::take(&mut self.first) {
            self.writer.out.push(',');
        }
        element.serialize(self.writer.inner())
    }

    fn close(self) -> Result<(), NoText> {
        self.writer.out.push_str(self.end);
        Ok(())
    }
}

macro_rules! lists {
    ($($list:ident: $method:ident),+) => {$(
        impl ser::$list for List<'_> {
            type Ok = ();
            type Error = NoText;

            fn $method<T: Serialize + ?Sized>(&mut self, element: &T) -> Result<(), NoText> {
                self.add(element)
            }

            fn end(self) -> Result<(), NoText> {
                self.close()
            }
        }
    )+};
}

lists!(
    SerializeSeq: serialize_element, SerializeTuple: serialize_element, SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
);

/// An object: its members are written as they come, and put in order at its end where they are not.
struct Members<'o> {
    writer: Writer<'o>,
    /// Where the members begin.
    begin: usize,
    /// Which of the names are the first of its own; the value of each follows it.
    first_name: usize,
    /// Whether some name has characters that are escaped.
    escaped: bool,
    end: &'static str,
}

impl<'o> Members<'o> {
    fn new(writer: Writer<'o>, end: &'static str) -> Self {
        writer.out.push('{');
        let (begin, first_name) = (writer.out.len(), writer.names.len());
        Self { writer, begin, first_name, escaped: false, end }
    }

    fn begin_member(&mut self) -> usize {
        if self.writer.names.len() > self.first_name {
            self.writer.out.push(',');
        }
        self.writer.out.len()
    }

    fn end_name(&mut self, begin: usize) {
        let Writer { out, names } = &mut self.writer;
        names.push(begin..out.len());
        out.push(':');
    }

    fn add<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), NoText> {
        let begin = self.begin_member();
        self.escaped |= write_text(name, self.writer.out);
        self.end_name(begin);
        value.serialize(self.writer.inner())
    }

    fn close(self) -> Result<(), NoText> {
        let Self { writer: Writer { out, names }, begin, first_name, escaped, end } = self;
        let own = &names[first_name..];
        // As it was before it was escaped, and without its quotation marks: else names would be sorted by those.
        let name = |text: &str, at: &Range<usize>| -> String {
            let written = &text[at.start - begin..at.end - begin];
            let inner = || written[1..written.len() - 1].to_owned();
            if escaped { serde_json::from_str(written).unwrap_or_else(|_| inner()) } else { inner() }
        };
        let plainly_sorted = !escaped && {
            let inner = |at: &Range<usize>| &out[at.start + 1..at.end - 1];
            own.is_sorted_by(|a, b| inner(a) <= inner(b))
        };
        if !plainly_sorted {
            let written = out.split_off(begin);
            let ends = own.iter().skip(1).map(|next| next.start - 1).chain([begin + written.len()]);
            let mut members: Vec<(String, Range<usize>)> =
                own.iter().zip(ends).map(|(at, end)| (name(&written, at), at.start..end)).collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            for (i, (_, at)) in members.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&written[at.start - begin..at.end - begin]);
            }
        }
        out.push_str(end);
        names.truncate(first_name);
        Ok(())
    }
}

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = NoText;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), NoText> {
        let begin = self.begin_member();
        name.serialize(self.writer.inner())?;
        let written = &self.writer.out[begin..];
        if !written.starts_with('"') {
            return Err(NoText("a member's name that is no text".to_owned()));
        }
        self.escaped |= written.contains('\\');
        self.end_name(begin);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoText> {
        value.serialize(self.writer.inner())
    }

    fn end(self) -> Result<(), NoText> {
        self.close()
    }
}

macro_rules! structs {
    ($($kind:ident),+) => {$(
        impl ser::$kind for Members<'_> {
            type Ok = ();
            type Error = NoText;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), NoText> {
                self.add(name, value)
            }

            fn end(self) -> Result<(), NoText> {
                self.close()
            }
        }
    )+};
}

structs!(SerializeStruct, SerializeStructVariant);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn text<T: Serialize>(value: &T) -> String {
        let mut text = String::new();
        write(value, &mut text).unwrap();
        text
    }

    #[test]
    fn members_are_sorted_at_every_depth_and_nothing_is_spaced() {
        let value = json!({"b": [1, {"z": null, "a\"": "é\n"}], "a": true});
        assert_eq!(text(&value), r#"{"a":true,"b":[1,{"a\"":"é\n","z":null}]}"#);

        #[derive(serde::Serialize)]
        struct Unsorted {
            z: Option<i64>,
            ab: Vec<(bool, &'static str)>,
            a: Kind,
        }
        #[derive(serde::Serialize)]
        enum Kind {
            Of { y: u8, x: i128 },
        }
        let value = Unsorted { z: None, ab: vec![(true, "\\"), (false, "")], a: Kind::Of { y: 1, x: -2 } };
        assert_eq!(text(&value), r#"{"a":{"Of":{"x":-2,"y":1}},"ab":[[true,"\\"],[false,""]],"z":null}"#);
    }

    #[test]
    fn a_name_that_is_no_text_is_refused() {
        let by_list = std::collections::BTreeMap::from([(vec![1], 2)]);
        assert!(write(&by_list, &mut String::new()).is_err());
    }

    fn any_json() -> impl proptest::strategy::Strategy<Value = Value> {
        use proptest::prelude::*;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a\"\\\\é\u{1}\n]{0,3}".prop_map(Value::from),
            "[a-zé ~]{0,9}[\"\\\\\u{1f}]?[a-zé ~]{0,9}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a\"!é\u{1}]{0,3}", inner, 0..4)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// `serde_json` holds members sorted by name, and writes them without blanks.
        #[test]
        fn the_text_is_that_of_the_sorted_tree(value in any_json()) {
            proptest::prop_assert_eq!(text(&value), value.to_string());
        }
    }
}
