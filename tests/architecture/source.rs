//! Reads the repository's files, and Rust text as far as the rules need it.

use std::fs;
use std::path::Path;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

pub struct Source {
    pub path: String,
    pub text: String,
    /// The text as Rust: comments, literals and `#[cfg(test)]` items are blanks, every byte in its place.
    pub code: String,
    /// Where a literal stands outside `#[cfg(test)]`, and what is between its quotes.
    pub literals: Vec<(usize, String)>,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let (mut code, mut literals, mut at) = (text.as_bytes().to_vec(), Vec::new(), 0);
        while at < text.len() {
            let length = blank_length(&text[at..]);
            if text[at..].starts_with(['"', 'r']) && length > 1 {
                literals.push((
                    at,
                    text[at..at + length].trim_start_matches('r').trim_matches('#').trim_matches('"').into(),
                ));
            }
            blank(&mut code[at..at + length]);
            at += length.max(text[at..].chars().next().map_or(1, char::len_utf8));
        }
        while let Some(start) = String::from_utf8_lossy(&code).find("#[cfg(test)]") {
            let mut depth = 0;
            let end = code[start..].iter().position(|byte| {
                depth += i32::from(*byte == b'{') - i32::from(*byte == b'}');
                depth == 0 && b"};".contains(byte)
            });
            let end = end.map_or(code.len(), |length| start + length + 1);
            blank(&mut code[start..end]);
            literals.retain(|(at, _)| !(start..end).contains(at));
        }
        let code = String::from_utf8_lossy(&code).into_owned();
        Self { path: path.into(), text: text.into(), code, literals }
    }

    pub fn problem(&self, at: usize, what: &str) -> String {
        let line = self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
        format!("{}:{line}: {what}", self.path)
    }

    pub fn is_in(&self, part: &str) -> bool {
        self.path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
    }

    pub fn mentions(&self, names: &[&str], why: &str) -> Vec<String> {
        let mut problems = Vec::new();
        for (at, path) in paths(&self.code) {
            let found = names.iter().find(|name| format!("::{path}::").contains(&format!("::{name}::")));
            problems.extend(found.map(|name| self.problem(at, &format!("`{name}` {why}"))));
        }
        problems
    }
}

/// Every file below a folder of the repository, read; none if the folder does not exist.
pub fn sources(folder: &str) -> Vec<Source> {
    let read = |path: &String| fs::read(Path::new(ROOT).join(path)).expect("the repository can be read");
    files(folder).iter().map(|path| Source::new(path, &String::from_utf8_lossy(&read(path)))).collect()
}

/// The path of every file below a folder, from the root of the repository.
pub fn files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(Path::new(ROOT).join(folder)).into_iter().flatten() {
        let entry = entry.expect("the repository can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if !entry.path().is_dir() {
            found.push(path);
        } else if !["target", ".git"].contains(&name.as_str()) {
            found.extend(files(&path));
        }
    }
    found.sort();
    found
}

/// Every path in the code and where it stands, with `use` groups spelt out: `std::{env, fs}` is
/// `std::env` and `std::fs`. A macro's name ends in `!`.
pub fn paths(code: &str) -> Vec<(usize, String)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < code.len() {
        at = if name_length(&code[at..]) > 0 { read_path(code, at, "", &mut found) } else { at + 1 };
    }
    found
}

/// Reads the path that begins at `at`, below `prefix`; returns where it ends.
fn read_path(code: &str, at: usize, prefix: &str, found: &mut Vec<(usize, String)>) -> usize {
    let end = at + name_length(&code[at..]);
    let path = format!("{prefix}{}", &code[at..end]);
    let next = skip_blanks(code, end);
    if code[next..].starts_with("::") {
        let next = skip_blanks(code, next + 2);
        if name_length(&code[next..]) > 0 {
            return read_path(code, next, &format!("{path}::"), found);
        }
        if code[next..].starts_with('{') {
            let mut next = next + 1;
            while next < code.len() && !code[next..].starts_with('}') {
                let name = name_length(&code[next..]) > 0;
                next = if name { read_path(code, next, &format!("{path}::"), found) } else { next + 1 };
            }
            return next + 1;
        }
    }
    let macro_mark = code[end..].starts_with('!') && !code[end..].starts_with("!=");
    found.push((at, if macro_mark { path + "!" } else { path }));
    end
}

fn name_length(code: &str) -> usize {
    code.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count()
}

fn skip_blanks(code: &str, at: usize) -> usize {
    code.len() - code[at..].trim_start().len()
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

/// The length of the comment or literal that the text begins with; 0 if it begins with neither.
fn blank_length(text: &str) -> usize {
    let raw = text.trim_start_matches('r');
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    let character = text.starts_with("'\\") || (text.starts_with('\'') && text.chars().nth(2) == Some('\''));
    let through =
        |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    if text.starts_with("//") {
        text.find('\n').unwrap_or(text.len())
    } else if text.starts_with("/*") {
        through("*/", 2)
    } else if text.starts_with("r") && raw[hashes..].starts_with('"') {
        through(&format!("\"{}", "#".repeat(hashes)), hashes + 2)
    } else if character || text.starts_with('"') {
        quoted_length(text)
    } else {
        0
    }
}

/// The length of the literal between two of its first character, of which an escaped one is no end.
fn quoted_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = !escaped && byte == text.as_bytes()[0];
        escaped = !escaped && byte == b'\\';
        ends
    });
    end.map_or(text.len(), |length| length + 2)
}

#[test]
fn rust_is_read_without_comments_literals_and_test_items() {
    let text = r##"a /* b */ "c\"d" 'd' '\'' <'e> r#"f" "# // g
        #[cfg(test)] mod h { fn i() { "j"; } } #[cfg(test)] use k; l"##;
    let source = Source::new("a.rs", text);
    assert_eq!(source.code.split_whitespace().collect::<String>(), "a<'e>l");
    assert_eq!(source.code.len(), text.len());
    let literals: Vec<&str> = source.literals.iter().map(|(_, literal)| literal.as_str()).collect();
    assert_eq!(literals, ["c\\\"d", "f\" "]);
}

#[test]
fn paths_are_spelt_out() {
    let found = paths("use a::{b, c :: {d as e, f::*}, self}; g::<h::I>(); j!(1 != k)");
    let found: Vec<&str> = found.iter().map(|(_, path)| path.as_str()).collect();
    let group = ["a::b", "a::c::d", "a::c::as", "a::c::e", "a::c::f", "a::self"];
    assert_eq!(found, [&["use"], &group[..], &["g", "h::I", "j!", "1", "k"]].concat());
}
