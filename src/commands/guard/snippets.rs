//! `onefold guard snippets`: what a service needs, from the very files that the drill runs.

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::config::Config;
use crate::core::status::Ledger;
use crate::error::{Error, Result};
use crate::report::{Block, Report};
use crate::store::Dialect;
use crate::store::snippet::{Placeholders, Snippet};

/// The SQL by which a service takes a key, ends it and takes it over, to be pasted into the service
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold guard snippets --for sql
  onefold guard snippets --for java --dialect postgres > OnefoldGuard.java
  onefold guard snippets --for go --dialect mysql > onefoldguard.go

These are the statements that `guard drill` runs. `guard install` makes the
tables that they are about; `guard install --ledger messages` that of a consumer.
Java is for Java 17 and java.sql, Go for database/sql; neither needs more.")]
pub struct SnippetArgs {
    /// The language
    #[arg(long = "for", value_name = "LANGUAGE")]
    language: Language,
    /// The database that it is for [default: that of the orders]
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<OfDialect>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    Sql,
    Java,
    Go,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OfDialect {
    Sqlite,
    Postgres,
    /// MySQL and MariaDB
    #[value(alias = "mariadb")]
    Mysql,
}

/// The statements, as templates name them.
const STATEMENTS: [(&str, &str); 11] = [
    ("begin", "idempotency/insert"),
    ("archived", "idempotency/archived"),
    ("name", "idempotency/name"),
    ("seen", "idempotency/seen"),
    ("look", "idempotency/by_key"),
    ("order", "drill/order"),
    ("finish", "idempotency/finish"),
    ("take", "idempotency/take"),
    ("renew", "idempotency/renew"),
    ("start", "idempotency/start"),
    ("inbox", "inbox/add"),
];

pub fn run(config: &Config, args: SnippetArgs) -> Result<Report> {
    let dialect = match args.dialect {
        Some(OfDialect::Sqlite) => Dialect::Sqlite,
        Some(OfDialect::Postgres) => Dialect::Postgres,
        Some(OfDialect::Mysql) => Dialect::Mysql,
        None => match config.places.ledgers[Ledger::Orders as usize].first() {
            Some(url) => Dialect::of_url(url)?,
            None => return Err(Error::usage("there is no database of orders").hint("--dialect postgres")),
        },
    };
    let (template, placeholders) = match args.language {
        Language::Sql => (include_str!("snippets/guard.sql.in"), Placeholders::Named),
        Language::Java => (include_str!("snippets/OnefoldGuard.java.in"), Placeholders::Question),
        Language::Go => (
            include_str!("snippets/onefoldguard.go.in"),
            if dialect == Dialect::Postgres { Placeholders::Numbered } else { Placeholders::Question },
        ),
    };
    let mut text = template.replace("{{database}}", name(dialect));
    text = text.replace("{{unique}}", is_unique(args.language, dialect));
    text = text.replace("{{transaction}}", begin(dialect));
    text = without_empty(&text.replace("{{isolation}}", isolation(args.language, dialect)));
    let mut statements = serde_json::Map::new();
    for (name, file) in STATEMENTS {
        let snippet = Snippet::of(file, dialect, placeholders)?;
        text = filled_in(&text, name, &snippet);
        statements.insert(name.to_owned(), json!({ "sql": snippet.sql, "parameters": snippet.parameters }));
    }
    let json = json!({ "dialect": name(dialect), "statements": statements, "text": text });
    // As it is, with the tabs that Go is written with.
    Ok(Report::new(json).block(Block::Raw { stdout: text.into_bytes(), stderr: Vec::new() }))
}

const fn name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "SQLite",
        Dialect::Postgres => "PostgreSQL",
        Dialect::Mysql => "MySQL and MariaDB",
    }
}

/// How a transaction begins that writes.
const fn begin(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "BEGIN IMMEDIATE",
        Dialect::Postgres => "BEGIN",
        Dialect::Mysql => "START TRANSACTION",
    }
}

/// A line that held a mark alone, of which nothing is left, goes.
fn without_empty(text: &str) -> String {
    text.lines().filter(|line| !line.trim_end().ends_with('\u{0}')).map(|line| format!("{line}\n")).collect()
}

/// What sees to it that the look into the archive, after the insert, sees what was archived before it.
const fn isolation(language: Language, dialect: Dialect) -> &'static str {
    match (language, dialect) {
        (Language::Java, Dialect::Postgres) => {
            "connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);"
        }
        (Language::Java, Dialect::Sqlite | Dialect::Mysql) => "\0",
        (Language::Go, Dialect::Postgres) => "&sql.TxOptions{Isolation: sql.LevelReadCommitted}",
        (Language::Go, Dialect::Sqlite | Dialect::Mysql) => "nil",
        (Language::Sql, Dialect::Postgres) => {
            "Let it be READ COMMITTED, as is the default: in any other level 1b may be blind to it."
        }
        (Language::Sql, Dialect::Mysql) => {
            "In REPEATABLE READ, the default, a transaction sees what was there at its first read."
        }
        (Language::Sql, Dialect::Sqlite) => {
            "BEGIN IMMEDIATE has the file's one lock for writing before anything is read."
        }
    }
}

/// What tells that a key is there already.
const fn is_unique(language: Language, dialect: Dialect) -> &'static str {
    match (language, dialect) {
        (Language::Java, Dialect::Sqlite) => "(e.getErrorCode() & 0xff) == 19",
        (Language::Java, Dialect::Postgres) => "\"23505\".equals(e.getSQLState())",
        (Language::Java, Dialect::Mysql) => "e.getErrorCode() == 1062",
        (Language::Go, Dialect::Sqlite) => "UNIQUE constraint failed",
        (Language::Go, Dialect::Postgres) => "23505",
        (Language::Go, Dialect::Mysql) => "Error 1062",
        (Language::Sql, Dialect::Sqlite) => "error 19 (SQLITE_CONSTRAINT)",
        (Language::Sql, Dialect::Postgres) => "SQLSTATE 23505",
        (Language::Sql, Dialect::Mysql) => "error 1062",
    }
}

/// Puts a statement where a template names it: `{{name.sql}}` its text, `{{name.about}}` what it is for, and
/// `{{name.bound}}` what is bound, as names of variables.
fn filled_in(template: &str, name: &str, snippet: &Snippet) -> String {
    let (sql, about) = (format!("{{{{{name}.sql}}}}"), format!("{{{{{name}.about}}}}"));
    let bound: Vec<_> = snippet.parameters.iter().map(|p| camel(p)).collect();
    let template = template.replace(&format!("{{{{{name}.bound}}}}"), &bound.join(", "));
    let mut text = String::with_capacity(template.len());
    for line in template.lines() {
        let lines: Vec<&str> = match () {
            () if line.contains(&sql) => snippet.sql.lines().collect(),
            () if line.contains(&about) => snippet.about.iter().map(String::as_str).collect(),
            () => vec![line],
        };
        // Further lines begin as the first does, with what stands before and after it in its place.
        let (mark, last) = (if line.contains(&sql) { &sql } else { &about }, lines.len().saturating_sub(1));
        let (before, after) = line.split_once(mark.as_str()).unwrap_or(("", ""));
        for (at, inner) in lines.iter().enumerate() {
            text.push_str(&format!("{before}{inner}{}\n", if at == last { after } else { "" }));
        }
    }
    text
}

/// `result_ref` as `resultRef`.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |text, word| {
        let (head, tail) = word.split_at(1.min(word.len()));
        text + &head.to_uppercase() + tail
    })
}
