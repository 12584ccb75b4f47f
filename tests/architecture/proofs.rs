//! Shows that each rule finds what it should, and nothing else.

use super::*;

#[track_caller]
fn finds(rule: impl Fn(&Source) -> Vec<String>, path: &str, bad: &str, good: &str) {
    let problems = rule(&Source::new(path, bad));
    let place = format!("{path}:{}: ", bad.lines().count());
    assert!(problems.len() == 1 && problems[0].starts_with(&place), "{bad} {problems:?}");
    assert_eq!(rule(&Source::new(path, good)), [""; 0], "{good}");
}

#[test]
fn imports_that_climb() {
    finds(imports, "src/core/a.rs", "\nuse crate::store::Rows;", "use crate::{core::ids, error::Error};");
    finds(
        imports,
        "src/store/a.rs",
        "use crate::{core::ids, report};",
        "use crate::core::ids::RowId; // crate::cli",
    );
    finds(
        imports,
        "src/report/mod.rs",
        "fn f() { super::files::read() }",
        "use super::core; use self::a::B;",
    );
    finds(imports, "src/files/a.rs", "use super::super::store;", "use super::table; use std::fs;");
    finds(imports, "src/main.rs", "use onefold::store;", "use onefold::cli;");
    finds(imports, "src/cli.rs", "use crate::Error;", "use crate::error::Error;");
    assert_eq!(imports(&Source::new("src/stray/a.rs", "")).len(), 1);
}

#[test]
fn effects_in_the_core() {
    finds(impurities, "src/core/a.rs", "use std::{\nfmt, env::var};", "use std::fmt; // std::env");
    finds(impurities, "src/core/a.rs", "fn f() { chrono::Utc::now(); }", "use chrono::Utc; // Utc::now()");
    finds(impurities, "src/core/a.rs", "#[derive(sqlx::Type)]", "const NAME: &str = \"sqlx\";");
    finds(impurities, "src/core/a.rs", "println!();", "#[cfg(test)]\nmod tests { fn f() { println!() } }");
}

#[test]
fn sqlx_and_printing_in_the_wrong_place() {
    finds(sqlx_outside_the_store, "src/error.rs", "impl From<sqlx::Error> for E {}", "/* sqlx */");
    assert!(sqlx_outside_the_store(&Source::new("src/store/mod.rs", "use sqlx::Any;")).is_empty());
    finds(printing, "src/commands/a.rs", "print!();", "eprintln!(); command.stdout(x)");
    finds(printing, "src/files/a.rs", "use std::io::{self, stdout};", "use std::io::{self, stderr};");
    finds(printing, "src/report/mod.rs", "dbg!(1);", "println!();");
}

#[test]
fn panics_outside_tests() {
    finds(panics, "src/a.rs", "fn f() {\n x.unwrap() }", "x.unwrap_or(1); // .unwrap()");
    finds(panics, "src/a.rs", "fn f() { todo!() }", "#[cfg(test)] mod tests { fn f() { panic!() } }");
}

#[test]
fn queries_without_head_use_or_place() {
    let headless = |source: &Source| headless_query(source).into_iter().collect();
    finds(headless, "queries/a.sql", "SELECT 1", "-- One row: whether the server answers.\nSELECT 1");
    assert!(sql_elsewhere("src/a.sql").is_some());
    assert!(sql_elsewhere("queries/a.sql").is_none());
    let unused = |code: &str| {
        unused_queries(&[Source::new("queries/moves/order.sql", "")], &[Source::new("src/store/a.rs", code)])
    };
    for code in ["", "// \"moves/order\"", "f(\"moves\", \"{ledger}/order\", \"moves/{ledger}/all\")"] {
        assert_eq!(unused(code).len(), 1, "{code}");
    }
    for code in ["f(\"moves/order\")", "f(\"../queries/moves/order.sql\")", "format!(\"moves/{ledger}\")"] {
        assert_eq!(unused(code), [""; 0], "{code}");
    }
}

#[test]
fn deletions_and_absolute_paths() {
    finds(
        deletions,
        "queries/a.sql",
        "-- A\ndelete\tfrom orders",
        "-- Deleted rows\nUPDATE orders SET x = 1",
    );
    assert_eq!(deletions(&Source::new(MAY_DELETE[0], "DELETE FROM onefold_pass")), [""; 0]);
    finds(deletions, "src/a.rs", "q(\"DROP TABLE orders\")", "q(\"cannot truncate the file\")");
    finds(deletions, "src/a.rs", "q(\"TRUNCATE orders\")", "file.truncate(true); // TRUNCATE orders");
    finds(
        deletions,
        "queries/a.sql",
        "-- A\nTRUNCATE orders",
        "-- A\nCREATE TRIGGER t BEFORE TRUNCATE ON orders EXECUTE FUNCTION f()",
    );
    for folder in ["home", "work", "tmp"] {
        let (bad, good) =
            (format!("-- A\n\"/{folder}/me\""), format!("https://a.b/{folder}/ ~/{folder} /{folder}s"));
        finds(absolute_paths, "tests/a.sh", &bad, &good);
    }
}
