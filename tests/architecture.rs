//! Keeps the rules of the source tree that the compiler does not know: who may import whom, who may
//! print, where SQL stands. A rule is a function from a source to its problems; `proofs` shows
//! that each finds what it should.

#[path = "architecture/proofs.rs"]
mod proofs;
#[path = "architecture/source.rs"]
mod source;

use source::{Source, files, paths, sources};

/// Who may import whom. `error` is open to all, and every module to itself.
const MAY_IMPORT: [(&str, &[&str]); 16] = [
    ("lib", &[]),
    ("main", &["cli"]),
    ("cli", &["commands", "config", "report"]),
    ("commands", &["check", "config", "core", "store", "execute", "providers", "files", "report", "trials"]),
    ("check", &["config", "core", "store", "execute"]),
    ("config", &["core", "store", "execute", "providers", "report"]),
    ("execute", &["core", "store", "providers", "program", "signals"]),
    ("store", &["core"]),
    ("providers", &["core", "store", "program"]),
    ("trials", &["core", "program", "signals"]),
    ("program", &[]),
    ("signals", &[]),
    ("files", &["core"]),
    ("report", &["core"]),
    ("core", &[]),
    ("error", &[]),
];

#[rustfmt::skip]
const NEVER_IN_CORE: [&str; 19] = [
    "sqlx", "tokio", "clap", "rand", "std::env", "std::fs", "std::io", "std::net", "std::process", "std::thread",
    "SystemTime::now", "Instant::now", "Utc::now", "Local::now", "Uuid::new_v4",
    "println!", "print!", "eprintln!", "eprint!",
];

/// The one takes away our own pass before its transaction is committed: that row is no record of anything. The other
/// takes a record out of the table of keys in the transaction that adds its fingerprint to the archive.
const MAY_DELETE: [&str; 3] =
    ["queries/enforce/close_pass.sql", "queries/retention/leave.sql", "queries/scratch/postgres/drop.sql"];

#[test]
fn imports_follow_the_layers() {
    expect_none(sources("src").iter().flat_map(imports));
}

#[test]
fn the_core_is_pure() {
    expect_none(sources("src/core").iter().flat_map(impurities));
}

#[test]
fn only_the_store_knows_sqlx() {
    expect_none(sources("src").iter().flat_map(sqlx_outside_the_store));
}

#[test]
fn only_the_report_prints_results() {
    expect_none(sources("src").iter().flat_map(printing));
}

#[test]
fn nothing_panics_on_purpose() {
    expect_none(sources("src").iter().flat_map(panics));
}

#[test]
fn every_query_says_what_it_is_for() {
    let schemas = sources("fixtures/schemas").into_iter().filter(|s| s.path.ends_with(".sql"));
    expect_none(sources("queries").into_iter().chain(schemas).flat_map(|s| headless_query(&s)));
}

#[test]
fn every_query_is_used() {
    expect_none(unused_queries(&sources("queries"), &sources("src")));
}

#[test]
fn sql_stands_in_queries_only() {
    expect_none(files("").iter().flat_map(|path| sql_elsewhere(path)));
}

#[test]
fn no_row_is_ever_deleted() {
    let folders = ["queries", "fixtures/schemas", "src"];
    expect_none(folders.iter().flat_map(|f| sources(f)).flat_map(|s| deletions(&s)));
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    expect_none(
        ["src", "queries", "tests", "fixtures/schemas"]
            .iter()
            .flat_map(|f| sources(f))
            .flat_map(|s| absolute_paths(&s)),
    );
}

#[track_caller]
fn expect_none(problems: impl IntoIterator<Item = String>) {
    let problems: Vec<String> = problems.into_iter().collect();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

// The rules.

fn imports(source: &Source) -> Vec<String> {
    let within = source.path.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
    let module = within.split('/').next().unwrap_or(within);
    let depth = if ["lib", "main"].contains(&module) { 0 } else { within.split('/').count() };
    let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == module) else {
        return vec![source.problem(0, "unknown module; say in MAY_IMPORT what it may import")];
    };
    let mut problems = Vec::new();
    for (at, path) in paths(&source.code) {
        let parts: Vec<&str> = path.split("::").collect();
        let ups = parts.iter().take_while(|part| **part == "super").count();
        let known = |name: &&&str| MAY_IMPORT.iter().any(|(module, _)| *module == **name);
        let target = match parts[0] {
            "crate" | "onefold" => parts.get(1),
            "super" if ups >= depth => parts.get(ups).filter(known),
            _ => None,
        };
        if let Some(target) = target
            && target != &module
            && target != &"error"
            && !allowed.contains(target)
        {
            let allowed = [&["error"], *allowed].concat().join(", ");
            let what =
                format!("`{path}` is not for `{module}`, which has {allowed}: move the code or pass it in");
            problems.push(source.problem(at, &what));
        }
    }
    problems
}

fn impurities(source: &Source) -> Vec<String> {
    source.mentions(&NEVER_IN_CORE, "has no place in the pure core: take what it gives as an argument")
}

fn sqlx_outside_the_store(source: &Source) -> Vec<String> {
    if source.is_in("src/store") {
        return Vec::new();
    }
    source.mentions(&["sqlx"], "belongs to the store alone: give the store a function for it")
}

fn printing(source: &Source) -> Vec<String> {
    let may_print = ["src/report", "src/cli", "src/main.rs"].iter().any(|part| source.is_in(part));
    let prints: &[&str] = if may_print { &["dbg!"] } else { &["dbg!", "println!", "print!", "io::stdout"] };
    source.mentions(prints, "prints: put it in the Report, or on stderr if it is progress")
}

fn panics(source: &Source) -> Vec<String> {
    let mut problems = source.mentions(
        &["panic!", "todo!", "unimplemented!"],
        "ends the program: return an Error that has a hint",
    );
    for (at, _) in source.code.match_indices(".unwrap()") {
        problems.push(
            source.problem(at, "`.unwrap()` hides the reason: return an Error, or `expect` why it holds"),
        );
    }
    problems
}

fn headless_query(source: &Source) -> Option<String> {
    let first = source.text.lines().next().unwrap_or_default();
    let says_something =
        first.strip_prefix("--").is_some_and(|purpose| purpose.split_whitespace().count() > 1);
    (!says_something)
        .then(|| source.problem(0, "begin with a `--` comment: purpose, parameters, expected row count"))
}

fn unused_queries(queries: &[Source], code: &[Source]) -> Vec<String> {
    let named = |query: &&Source| {
        let name = query.path.trim_start_matches("queries/").trim_end_matches(".sql");
        code.iter().any(|source| source.literals.iter().any(|(_, literal)| names(literal, name)))
    };
    let unused = queries.iter().filter(|query| !named(query));
    unused.map(|query| query.problem(0, "no source file names this query: use it or remove it")).collect()
}

/// Whether a literal names the query: "ledgers/orders", with or without folder and ".sql"; a
/// placeholder as in "moves/{ledger}" stands for one part of the path.
fn names(literal: &str, query: &str) -> bool {
    let literal = literal.rsplit_once("queries/").map_or(literal, |(_, name)| name).trim_end_matches(".sql");
    let (literal, query): (Vec<_>, Vec<_>) = (literal.split('/').collect(), query.split('/').collect());
    let fits = |(pattern, part): (&&str, &&str)| match (pattern.split_once('{'), pattern.rsplit_once('}')) {
        (Some((before, _)), Some((_, after))) => part.starts_with(before) && part.ends_with(after),
        _ => pattern == part,
    };
    !literal[0].contains('{') && literal.len() == query.len() && literal.iter().zip(&query).all(fits)
}

fn sql_elsewhere(path: &str) -> Option<String> {
    // Sites' own schemas stand in fixtures/schemas/.
    let may = ["queries/", "fixtures/schemas/"].iter().any(|folder| path.starts_with(folder));
    let stray = path.ends_with(".sql") && !may;
    stray.then(|| format!("{path}:1: SQL stands in queries/: move this file there"))
}

fn deletions(source: &Source) -> Vec<String> {
    if MAY_DELETE.contains(&&*source.path) {
        return Vec::new();
    }
    let texts =
        if source.path.ends_with(".sql") { vec![(0, source.text.clone())] } else { source.literals.clone() };
    let mut problems = Vec::new();
    for (start, text) in texts {
        let words: Vec<&str> =
            text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
        for pair in words.windows(2) {
            let upper = (pair[0].to_uppercase(), pair[1].to_uppercase());
            let deletes = matches!(
                (&*upper.0, &*upper.1),
                ("DELETE", "FROM") | ("DROP", "TABLE") | ("TRUNCATE", "TABLE")
            );
            // A trigger BEFORE TRUNCATE ON a table deletes nothing.
            if deletes || (pair[0] == "TRUNCATE" && upper.1 != "ON") {
                let at = start + (pair[0].as_ptr() as usize - text.as_ptr() as usize);
                problems.push(source.problem(
                    at,
                    &format!("`{}`: no row is ever deleted, move it on instead", pair.join(" ")),
                ));
            }
        }
    }
    problems
}

fn absolute_paths(source: &Source) -> Vec<String> {
    let mut problems = Vec::new();
    for folder in ["home", "work", "tmp", "root", "Users"].map(|name| format!("/{name}")) {
        for (at, _) in source.text.match_indices(&folder) {
            let (before, after) = (&source.text[..at], &source.text[at + folder.len()..]);
            let goes_on = |c: char| c.is_alphanumeric() || "_-.".contains(c);
            if !before.ends_with(|c| goes_on(c) || "/~}".contains(c)) && !after.starts_with(goes_on) {
                problems.push(
                    source.problem(
                        at,
                        &format!("`{folder}` is a place on one machine: take it as a parameter"),
                    ),
                );
            }
        }
    }
    problems
}
