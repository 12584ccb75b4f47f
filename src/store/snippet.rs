//! One of our query files as a service writes it: for one dialect, with the placeholders of its language.

use super::enforce::pieces;
use super::sql::{Token, tokens};
use super::{Dialect, Queries};
use crate::error::Result;

/// How a value that is bound is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholders {
    /// `:name`
    Named,
    /// `?`
    Question,
    /// `$1`, `$2`, …
    Numbered,
}

/// A statement for a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// The lines of comment that the file begins with, without their dashes.
    pub about: Vec<String>,
    pub sql: String,
    /// The names of what is bound, one for each placeholder in its order.
    pub parameters: Vec<String>,
}

impl Snippet {
    /// Of a file that the program brings, whatever a site has in its place.
    ///
    /// # Errors
    /// Failure, where there is no such file.
    pub fn of(file: &str, dialect: Dialect, placeholders: Placeholders) -> Result<Self> {
        let queries = Queries::default();
        let (about, code): (Vec<&str>, Vec<&str>) =
            queries.get(file)?.lines().partition(|line| line.starts_with("--"));
        let code = pieces(dialect)
            .iter()
            .fold(code.join("\n"), |text, (name, sql)| text.replace(&format!("{{{name}}}"), sql));
        let (mut sql, mut parameters) = (String::new(), Vec::new());
        for token in tokens(code.trim()) {
            match token {
                Token::Sql(text) => sql.push_str(text),
                Token::Parameter(name) => {
                    parameters.push(name.to_owned());
                    sql.push_str(&match placeholders {
                        Placeholders::Named => format!(":{name}"),
                        Placeholders::Question => "?".to_owned(),
                        Placeholders::Numbered => format!("${}", parameters.len()),
                    });
                }
            }
        }
        let about = about.iter().map(|line| line.trim_start_matches('-').trim().to_owned()).collect();
        Ok(Self { about, sql, parameters })
    }
}
