//! What a README shows: commands, what they print, and excerpts of it.

/// A command, or (with no line) an excerpt of what the commands before it in its section print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The line of the file.
    pub at: usize,
    /// Which `##` it stands under, counted from 1.
    pub section: usize,
    pub line: String,
    /// What it prints, in pieces: a blank line or `…` stands for lines that are left out.
    pub output: Vec<String>,
}

impl Shown {
    /// `sql|java|go` is typed three times.
    pub fn alternatives(&self) -> Vec<String> {
        let is_one = |w: &&str| w.contains('|') && w.len() > 1 && !w.contains(['\'', '"']);
        match self.line.split(' ').find(is_one) {
            None => vec![self.line.clone()],
            Some(word) => word.split('|').map(|one| self.line.replace(word, one)).collect(),
        }
    }
}

/// Programs that a README has a reader type.
const PROGRAMS: [&str; 4] = ["onefold ", "cargo ", "tests/run.sh", "source <(onefold "];

fn is_command(text: &str) -> bool {
    let after_settings = text
        .split(' ')
        .skip_while(|w| w.contains('=') && w.chars().next().is_some_and(|c| c.is_ascii_uppercase()))
        .collect::<Vec<_>>()
        .join(" ");
    PROGRAMS.iter().any(|program| after_settings.starts_with(program))
}

/// The fenced blocks: what each is in, and its lines.
pub fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(_) if is_inside => is_inside = false,
            Some(language) => {
                is_inside = true;
                blocks.push((language.to_owned(), String::new()));
            }
            None if is_inside => {
                let block = blocks.last_mut().unwrap();
                block.1 += line;
                block.1.push('\n');
            }
            None => {}
        }
    }
    blocks
}

/// What stands between backticks outside of blocks, a span that is broken over two lines as one.
pub fn spans(text: &str) -> Vec<String> {
    let mut prose = String::new();
    let mut is_inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_inside = !is_inside;
            prose.push('\n');
        } else if !is_inside && !line.starts_with("    ") {
            prose += line;
            prose.push(' ');
        }
    }
    prose.split('`').skip(1).step_by(2).map(|s| s.replace("\\|", "|").trim().to_owned()).collect()
}

/// All that a README shows, in its order.
pub fn shown(text: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let (mut section, mut block): (usize, Option<&str>) = (0, None);
    let mut lines = text.lines().enumerate().peekable();
    // A paragraph is read as one, since a span may be broken over two lines.
    let mut paragraph: Option<(usize, String)> = None;
    let end = |paragraph: &mut Option<(usize, String)>, section: usize, all: &mut Vec<Shown>| {
        let Some((at, text)) = paragraph.take() else { return };
        for line in spans(&text).into_iter().filter(|s| is_command(s)) {
            all.push(Shown { at, section, line, output: Vec::new() });
        }
    };
    while let Some((n, line)) = lines.next() {
        let at = n + 1;
        let mut whole = |first: &str| {
            let mut whole = first.to_owned();
            while whole.ends_with('\\') {
                whole.pop();
                let more = lines.next().map_or("", |(_, more)| more.trim());
                whole = format!("{} {more}", whole.trim_end());
            }
            whole
        };
        if let Some(language) = line.strip_prefix("```") {
            end(&mut paragraph, section, &mut all);
            block = if block.is_none() { Some(language) } else { None };
            if block == Some("text") {
                all.push(Shown { at, section, line: String::new(), output: vec![String::new()] });
            }
        } else if block == Some("console") && line.starts_with("$ ") {
            let line = whole(&line[2..]);
            all.push(Shown { at, section, line, output: Vec::new() });
        } else if matches!(block, Some("console" | "text")) {
            let output = &mut all.last_mut().unwrap().output;
            if line.is_empty() || line == "…" {
                output.push(String::new());
            } else {
                if output.is_empty() {
                    output.push(String::new());
                }
                let piece = output.last_mut().unwrap();
                *piece += &normalised(line);
                piece.push('\n');
            }
        } else if block.is_some() {
            // A configuration, a program: other tests run those.
        } else if let Some(code) = line.strip_prefix("    ").filter(|c| is_command(c)) {
            end(&mut paragraph, section, &mut all);
            let line = whole(code);
            all.push(Shown { at, section, line, output: Vec::new() });
        } else {
            if line.is_empty() || line.starts_with(['#', '|']) {
                end(&mut paragraph, section, &mut all);
            }
            if line.starts_with("## ") {
                section += 1;
            }
            let text = &mut paragraph.get_or_insert_with(|| (at, String::new())).1;
            *text += line;
            text.push('\n');
        }
    }
    end(&mut paragraph, section, &mut all);
    all
}

/// Text in which what differs from run to run is the same: ids, times of day and latencies.
pub fn normalised(text: &str) -> String {
    text.split_inclusive(['\n', ' ', '/', '"', '\'']).map(word).collect()
}

fn word(word: &str) -> String {
    let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let rest = &word[bare.len()..];
    let is_hex = |hex: &str| hex.len() >= 10 && hex.bytes().all(|b| b.is_ascii_hexdigit());
    for prefix in ["F-", "PL-", "onefold_drill_"] {
        if bare.strip_prefix(prefix).is_some_and(is_hex) {
            return format!("{prefix}ID{rest}");
        }
    }
    let is_time = bare.len() == "hh:mm:ssZ".len()
        && bare.ends_with('Z')
        && bare.bytes().all(|b| b.is_ascii_digit() || matches!(b, b':' | b'Z'));
    if is_time { format!("TIME{rest}") } else { word.to_owned() }
}

/// Whether a text holds all pieces, each whole lines, one after the other.
///
/// # Errors
/// The first piece that is missing.
pub fn contains_in_order(text: &str, pieces: &[String]) -> Result<(), String> {
    let mut rest = text;
    for piece in pieces.iter().filter(|p| !p.is_empty()) {
        let at = rest
            .match_indices(piece.as_str())
            .map(|(at, _)| at)
            .find(|at| *at == 0 || rest[..*at].ends_with('\n'))
            .ok_or_else(|| piece.clone())?;
        rest = &rest[at + piece.len()..];
    }
    Ok(())
}
