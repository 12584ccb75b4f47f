//! SQL files with named parameters, made into statements for one dialect.
//!
//! A file is plain SQL that begins with a comment. What is special in it:
//!
//! - `:name` is a bound value. A list bound under the name becomes at least as many placeholders as it
//!   has values, the last of which may come again, so it stands in `IN (:name)`; a table of rows bound under it becomes
//!   `(…), (…)`, so it stands in `VALUES :name`.
//! - A line that names `:name` and ends in `-- when name` is left out unless something is bound
//!   under `name`. Any other comment is one.
//! - `{name}` is replaced by a piece of SQL that the program owns (never by data): `{ledger}` by
//!   the SELECT of the ledger that is read, `{id}` by the name of its id column.
//!
//! Values are always bound; no SQL is built from data.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

use include_dir::{Dir, include_dir};
use sqlx::any::AnyArguments;
use sqlx::{Any, AssertSqlSafe, Encode, SqlSafeStr, SqlStr, Type};

use super::rows::Field;
use super::{BATCH, Dialect};
use crate::core::status::Ledger;
use crate::error::{Error, Result};

static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/queries");

/// The texts of ours by name: one is looked up for each statement.
static OURS: LazyLock<BTreeMap<String, &str>> = LazyLock::new(|| {
    fn walk(dir: &Dir<'static>, texts: &mut BTreeMap<String, &'static str>) {
        for file in dir.files() {
            let name = file.path().to_str().and_then(|path| path.strip_suffix(".sql"));
            if let Some((name, text)) = name.zip(file.contents_utf8()) {
                texts.insert(name.replace('\\', "/"), text);
            }
        }
        dir.dirs().for_each(|dir| walk(dir, texts));
    }
    let mut texts = BTreeMap::new();
    walk(&EMBEDDED, &mut texts);
    texts
});

/// The SQL files: ours, each of which a file of the same path in a user's folder shadows.
#[derive(Clone, Debug, Default)]
pub struct Queries {
    shadows: BTreeMap<String, String>,
}

impl Queries {
    /// Whether a site may bring a file of its own in the place of this one of ours.
    pub fn may_be_shadowed(name: &str) -> bool {
        match name.split_once('/') {
            Some(("ledgers" | "moves" | "enforce", _)) => true,
            Some(("unique", of)) => is_index(of),
            _ => false,
        }
    }

    /// Ours, shadowed file by file by those of `folder`: its `ledgers/`, `moves/`, `enforce/` and `unique/`.
    ///
    /// # Errors
    /// Usage, when the folder cannot be read, or holds an SQL file that shadows nothing.
    pub fn shadowed_by(folder: &Path) -> Result<Self> {
        let mut shadows = BTreeMap::new();
        collect(folder, folder, &mut shadows)?;
        for name in shadows.keys() {
            let is_one = match name.split_once('/') {
                Some(("moves", of)) => is_move(of),
                Some(("enforce", _)) => true,
                // Of an access log there is none of ours.
                _ if name == super::access::ACCESS => true,
                _ => OURS.contains_key(name) && Self::may_be_shadowed(name),
            };
            if !is_one {
                return Err(Error::usage(format!(
                    "{}: {name}.sql shadows no file of ours",
                    folder.display()
                ))
                .hint(
                    "there may be ledgers/{orders,payments,inventory,messages}.sql, ledgers/access.sql, \
                     moves/{order,payment,hold,message}.sql, one for a single move such as \
                     moves/payment.refunding.sql, enforce/… and unique/…; `onefold queries export DIR` writes ours",
                ));
            }
        }
        Ok(Self { shadows })
    }

    /// Ours, with this text in the place of one of them. What a site may shadow, [`Queries::shadowed_by`]
    /// says; this is for tests that show what goes wrong without a guard.
    #[must_use]
    pub fn with(mut self, name: &str, text: &str) -> Self {
        self.shadows.insert(name.to_owned(), text.to_owned());
        self
    }

    /// Whether a file of the user's own stands in the place of ours.
    pub fn is_shadowed(&self, name: &str) -> bool {
        self.shadows.contains_key(name)
    }

    /// The names of the user's own files, sorted.
    pub fn shadows(&self) -> impl Iterator<Item = &str> {
        self.shadows.keys().map(String::as_str)
    }

    /// The file for a move: that of the very move, else the ledger's general one.
    pub fn move_name(&self, ledger: Ledger, to: &str) -> String {
        let general = format!("moves/{}", ledger.row_name());
        let single = format!("{general}.{}", to.to_lowercase());
        if self.find(&single).is_some() { single } else { general }
    }

    /// The text of a file, named by its path without `.sql`; `None` where there is none.
    pub fn find(&self, name: &str) -> Option<&str> {
        self.shadows.get(name).map(String::as_str).or_else(|| OURS.get(name).copied())
    }

    /// As [`Queries::find`], for a file that the program itself brings.
    pub(super) fn get(&self, name: &str) -> Result<&str> {
        self.find(name).ok_or_else(|| Error::failure(format!("no query file {name}.sql")))
    }

    /// Every name of ours, sorted.
    pub fn names() -> impl Iterator<Item = &'static str> {
        OURS.keys().map(String::as_str)
    }
}

/// Whether a file below `unique/` makes an index, or the column that one is over.
fn is_index(name: &str) -> bool {
    name.split_once('/').is_some_and(|(_, file)| file != "installed" && !file.starts_with("remove"))
}

/// Whether a name is that of a ledger's moves, or of one move: `payment`, `payment.refunding`.
fn is_move(name: &str) -> bool {
    Ledger::ALL.into_iter().any(|ledger| match name.strip_prefix(ledger.row_name()) {
        Some("") => true,
        Some(rest) => rest.strip_prefix('.').is_some_and(|to| {
            let to = to.to_uppercase();
            ledger.statuses().iter().any(|from| ledger.may_move(from, &to))
        }),
        None => false,
    })
}

fn collect(root: &Path, folder: &Path, into: &mut BTreeMap<String, String>) -> Result<()> {
    let failed = |e: std::io::Error| Error::usage(format!("cannot read {}: {e}", folder.display()));
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            collect(root, &path, into)?;
        } else if path.extension().is_some_and(|e| e == "sql") {
            let text = std::fs::read_to_string(&path)
                .map_err(|e| Error::usage(format!("cannot read {}: {e}", path.display())))?;
            let relative = path.strip_prefix(root).unwrap_or(&path).with_extension("");
            into.insert(relative.to_string_lossy().replace('\\', "/"), text);
        }
    }
    Ok(())
}

/// A value to be bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(Option<String>),
    Int(Option<i64>),
    /// Placeholders for a list that stands in `IN (…)`.
    List(Vec<String>),
    /// Placeholders for rows of single values, all of one width.
    Rows(Vec<Vec<Value>>),
}

macro_rules! value_from {
    ($($from:ty => |$v:ident| $to:expr),+ $(,)?) => {$(
        impl From<$from> for Value {
            fn from($v: $from) -> Self {
                $to
            }
        }
    )+};
}

value_from!(
    &str => |v| Value::Text(Some(v.to_owned())),
    String => |v| Value::Text(Some(v)),
    &String => |v| Value::Text(Some(v.clone())),
    Option<&str> => |v| Value::Text(v.map(str::to_owned)),
    Option<String> => |v| Value::Text(v),
    i64 => |v| Value::Int(Some(v)),
    Option<i64> => |v| Value::Int(v),
    Vec<String> => |v| Value::List(v),
    Vec<Vec<Value>> => |v| Value::Rows(v),
    Field<'_> => |v| match v {
        Field::Null => Value::Text(None),
        Field::Text(text) => text.into(),
        Field::Int(int) => int.into(),
    },
);

/// The values bound in a statement, by name.
#[derive(Clone, Debug, Default)]
pub struct Values(Vec<(&'static str, Value)>);

impl Values {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn bind(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    /// Binds when there is something to bind; else the lines `-- when name` are left out.
    #[must_use]
    pub fn bind_when(self, name: &'static str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.bind(name, value),
            None => self,
        }
    }

    /// What is bound but for these names.
    #[must_use]
    pub(super) fn without(mut self, names: &[&str]) -> Self {
        self.0.retain(|(name, _)| !names.contains(name));
        self
    }

    /// What is bound, in order, as one row of a table that is bound under one name.
    pub(super) fn into_row(self) -> Vec<Value> {
        self.0.into_iter().map(|(_, value)| value).collect()
    }

    /// The names under which something is bound.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }
}

/// A statement ready to run: SQL with the dialect's placeholders, and what is bound to them in order.
#[derive(Debug)]
pub struct Statement {
    pub sql: String,
    pub(super) arguments: Vec<Value>,
}

impl Statement {
    /// Makes a statement of a file's text.
    ///
    /// # Errors
    /// When the text names a parameter that is not bound: a mistake in the file.
    pub fn new(text: &str, pieces: &[(&str, &str)], values: &Values, dialect: Dialect) -> Result<Self> {
        let kept = kept_lines(text, values);
        let text = with_pieces(&kept, pieces);
        let mut statement = Self { sql: String::with_capacity(text.len()), arguments: Vec::new() };
        for token in tokens(&text) {
            match token {
                Token::Sql(sql) => statement.sql.push_str(sql),
                Token::Parameter(name) => {
                    let value = values.get(name).ok_or_else(|| {
                        Error::usage(format!("the SQL names :{name}, which is not a parameter of this file"))
                    })?;
                    statement.place(value, dialect);
                }
            }
        }
        Ok(statement)
    }

    fn place(&mut self, value: &Value, dialect: Dialect) {
        match value {
            Value::List(list) => {
                let again = list.last().map(|last| std::iter::repeat_n(last, padding(list.len())));
                for (i, text) in list.iter().chain(again.into_iter().flatten()).enumerate() {
                    if i > 0 {
                        self.sql.push_str(", ");
                    }
                    self.place(&Value::Text(Some(text.clone())), dialect);
                }
            }
            Value::Rows(rows) => {
                for (i, row) in rows.iter().enumerate() {
                    self.sql.push_str(if i > 0 { ", (" } else { "(" });
                    for (j, value) in row.iter().enumerate() {
                        if j > 0 {
                            self.sql.push_str(", ");
                        }
                        self.place(value, dialect);
                    }
                    self.sql.push(')');
                }
            }
            single => {
                self.arguments.push(single.clone());
                match dialect {
                    Dialect::Postgres => {
                        // Writing to a String cannot fail.
                        let _ = write!(self.sql, "${}", self.arguments.len());
                    }
                    Dialect::Sqlite | Dialect::Mysql => self.sql.push('?'),
                }
            }
        }
    }

    /// As [`Statement::query`], outside the protocol of prepared statements, which knows no triggers.
    pub(super) fn script(&self) -> sqlx::RawSql {
        sqlx::raw_sql(AssertSqlSafe(self.sql.clone()))
    }

    /// The one place at which SQL text is declared safe: it comes from files, and values are bound.
    pub(super) fn text(&self) -> SqlStr {
        AssertSqlSafe(self.sql.clone()).into_sql_str()
    }

    /// The same statement, explained instead of run: `how` is the dialect's word for that.
    pub(super) fn explained(&self, how: &str) -> Self {
        Self { sql: format!("{how}{}", self.sql), arguments: self.arguments.clone() }
    }

    pub(super) fn query(&self) -> sqlx::query::Query<'static, Any, AnyArguments> {
        fn add<'q, T: 'q + Encode<'q, Any> + Type<Any>>(
            query: sqlx::query::Query<'q, Any, AnyArguments>,
            value: T,
        ) -> sqlx::query::Query<'q, Any, AnyArguments> {
            query.bind(value)
        }
        let mut query = sqlx::query(self.text());
        for value in &self.arguments {
            query = match value {
                Value::Text(text) => add(query, text.clone()),
                Value::Int(int) => add(query, *int),
                Value::List(_) | Value::Rows(_) => query,
            };
        }
        query
    }
}

/// How often the last value of a list is bound again: lists of few lengths make few texts, and a database prepares each
/// once.
fn padding(values: usize) -> usize {
    if values > BATCH { 0 } else { values.next_power_of_two() - values }
}

/// The text without the lines whose `-- when name` is not fulfilled.
fn kept_lines(text: &str, values: &Values) -> String {
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        let needs = line.rsplit_once("-- when ").map(|(sql, name)| (sql, name.trim()));
        let needs = needs.filter(|(sql, name)| parameters(sql).contains(name));
        if needs.is_none_or(|(_, name)| values.get(name).is_some()) {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn with_pieces<'a>(text: &'a str, pieces: &[(&str, &str)]) -> Cow<'a, str> {
    pieces
        .iter()
        .fold(Cow::Borrowed(text), |text, (name, sql)| Cow::Owned(text.replace(&format!("{{{name}}}"), sql)))
}

pub(super) enum Token<'a> {
    Sql(&'a str),
    Parameter(&'a str),
}

/// A piece of SQL: one byte of code and where it stands, or what is not looked into.
#[derive(Clone, Copy)]
enum Piece {
    Code(usize, u8),
    /// Up to where.
    Quoted(usize),
    Comment(usize),
}

/// Walks over SQL, byte by byte but for quoted text and comments, which are each one piece.
fn pieces(text: &str) -> impl Iterator<Item = Piece> + '_ {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let from = at;
        let end_of = |start: usize, mark: &str| {
            text[start..].find(mark).map_or(text.len(), |i| start + i + mark.len())
        };
        let piece = match *bytes.get(from)? {
            b'\'' => Piece::Quoted(end_of(from + 1, "'")),
            b'"' => Piece::Quoted(end_of(from + 1, "\"")),
            b'`' => Piece::Quoted(end_of(from + 1, "`")),
            b'-' if text[from..].starts_with("--") => Piece::Comment(end_of(from, "\n")),
            b'/' if text[from..].starts_with("/*") => Piece::Comment(end_of(from, "*/")),
            byte => Piece::Code(from, byte),
        };
        at = match piece {
            Piece::Code(..) => from + 1,
            Piece::Quoted(end) | Piece::Comment(end) => end,
        };
        Some(piece)
    })
}

/// Splits SQL at its `:name` parameters; comments, quoted text and `::` casts are not looked into.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let (mut tokens, mut start) = (Vec::new(), 0);
    for piece in pieces(text) {
        let Piece::Code(at, b':') = piece else { continue };
        let before = at.checked_sub(1).and_then(|i| bytes.get(i));
        if before == Some(&b':') || !bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        let end = (at + 1..bytes.len()).find(|i| !is_name(&bytes[*i])).unwrap_or(bytes.len());
        tokens.push(Token::Sql(&text[start..at]));
        tokens.push(Token::Parameter(&text[at + 1..end]));
        start = end;
    }
    tokens.push(Token::Sql(&text[start..]));
    tokens
}

/// The statements of a text, split at the semicolons between them; comments alone are no statement.
pub fn statements(text: &str) -> Vec<&str> {
    let mut statements = Vec::new();
    let (mut start, mut has_code) = (0, false);
    for piece in pieces(text) {
        match piece {
            Piece::Code(from, b';') => {
                if has_code {
                    statements.push(text[start..from].trim());
                }
                (start, has_code) = (from + 1, false);
            }
            Piece::Code(_, byte) => has_code |= !byte.is_ascii_whitespace(),
            Piece::Quoted(_) => has_code = true,
            Piece::Comment(_) => {}
        }
    }
    if has_code {
        statements.push(text[start..].trim());
    }
    statements
}

/// The alternatives of a move's text, which stand between lines `-- or`.
pub fn alternatives(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for line in text.lines() {
        if line.trim() == "-- or" {
            all.push(String::new());
        } else if let Some(last) = all.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    all
}

/// The names of the parameters of a file's text, in the order of their first use.
pub fn parameters(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for token in tokens(text) {
        if let Token::Parameter(name) = token
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str, values: &Values, dialect: Dialect) -> String {
        Statement::new(text, &[("ledger", "(SELECT 1) AS ledger")], values, dialect)
            .unwrap()
            .sql
            .trim()
            .to_owned()
    }

    #[test]
    fn parameters_become_the_placeholders_of_the_dialect() {
        let values = Values::new().bind("a", "x").bind("ids", vec!["1".to_owned(), "2".to_owned()]);
        let text = "SELECT a::text, ':a' FROM {ledger} WHERE a = :a AND id IN (:ids) -- not :b";
        assert_eq!(
            made(text, &values, Dialect::Postgres),
            "SELECT a::text, ':a' FROM (SELECT 1) AS ledger WHERE a = $1 AND id IN ($2, $3) -- not :b"
        );
        assert_eq!(
            made(text, &values, Dialect::Sqlite),
            "SELECT a::text, ':a' FROM (SELECT 1) AS ledger WHERE a = ? AND id IN (?, ?) -- not :b"
        );
    }

    #[test]
    fn lists_of_many_lengths_make_few_texts() {
        let bound = |count: usize| {
            let list: Vec<String> = (0..count).map(|at| at.to_string()).collect();
            let values = Values::new().bind("ids", list);
            Statement::new("id IN (:ids)", &[], &values, Dialect::Sqlite).unwrap().arguments
        };
        assert_eq!([1, 2, 3, 5, 257, BATCH, BATCH + 1].map(|n| bound(n).len()), [1, 2, 4, 8, 512, 512, 501]);
        assert_eq!(bound(3), ["0", "1", "2", "2"].map(Value::from));
    }

    #[test]
    fn rows_become_tuples() {
        let rows = vec![vec![Value::from("a"), Value::from(1)], vec![Value::from("b"), Value::from(2)]];
        let values = Values::new().bind("rows", rows);
        assert_eq!(made("VALUES :rows", &values, Dialect::Postgres), "VALUES ($1, $2), ($3, $4)");
    }

    #[test]
    fn a_conditional_line_stays_only_where_its_value_is_bound() {
        let text = "SELECT 1\nWHERE a = :a -- when a\nAND b = :b -- when b";
        let values = Values::new().bind("b", "x").bind_when("a", None::<&str>);
        assert_eq!(made(text, &values, Dialect::Mysql), "SELECT 1\nAND b = ? -- when b");
    }

    #[test]
    fn a_remark_that_only_looks_conditional_leaves_its_line_alone() {
        let text = "SELECT 1 -- when paid\nWHERE a = :a -- when it is due";
        let values = Values::new().bind("a", "x");
        assert_eq!(
            made(text, &values, Dialect::Mysql),
            "SELECT 1 -- when paid\nWHERE a = ? -- when it is due"
        );
    }

    #[test]
    fn statements_end_at_semicolons_that_are_code() {
        let text = "-- a; b\nUPDATE a SET b = ';' ; /* ; */ INSERT INTO c VALUES (1);\n-- end\n";
        assert_eq!(statements(text), ["-- a; b\nUPDATE a SET b = ';'", "/* ; */ INSERT INTO c VALUES (1)"]);
        assert_eq!(alternatives("a\n-- or\nb\n"), ["a\n", "b\n"]);
    }

    #[test]
    fn an_unbound_parameter_is_an_error_that_names_it() {
        let error = Statement::new("SELECT :x", &[], &Values::new(), Dialect::Sqlite).unwrap_err();
        assert!(error.message.contains(":x"), "{error}");
        assert_eq!(parameters("a = :a AND b = :b AND c = :a"), ["a", "b"]);
    }
}
