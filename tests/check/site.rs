//! A site of its own for each test: a database with a few rows, a folder of SQL files and an
//! `onefold.toml`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, SqlSafeStr as _};
use tempfile::TempDir;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
    Mariadb,
}

pub const ENGINES: [Engine; 3] = [Engine::Sqlite, Engine::Postgres, Engine::Mariadb];

/// One order of each state that moves, one payment, hold and message likewise.
const ROWS: &str = "
    INSERT INTO orders VALUES
        ('shop', 'O-1', 'U-7318', 'S-204', 'session-1', 'key-1', 'A', 1, 12000, 'CNY', 'PENDING_PAYMENT', NULL, 'trace-1', 1000000, '1'),
        ('shop', 'O-2', 'U-7318', 'S-204', 'session-1', 'key-1', 'A', 1, 12000, 'CNY', 'PAID', NULL, 'trace-2', 2000000, '1'),
        ('shop', 'O-3', 'U-7318', 'S-204', 'session-1', NULL, 'A', 1, 12000, 'CNY', 'TICKETED', NULL, NULL, 3000000, '1');
    INSERT INTO payments VALUES
        ('shop', 'P-1', 'O-1', 'U-7318', 'S-204', 'session-1', 12000, 0, 'CNY', 'pay', 'txn-secret-1', 'INITIATED', 1000000, NULL, '1'),
        ('shop', 'P-2', 'O-2', 'U-7318', 'S-204', 'session-1', 12000, 2000, 'CNY', 'pay', 'txn-secret-2', 'CAPTURED', 2000000, 2000000, '1'),
        ('shop', 'P-3', 'O-3', 'U-7318', 'S-204', 'session-1', 12000, 0, 'CNY', 'pay', 'txn-secret-3', 'AUTHORIZED', 3000000, NULL, '1');
    INSERT INTO inventory VALUES
        ('shop', 'H-1', 'O-1', 'U-7318', 'S-204', 'session-1', 'A', 1, 'HELD', 1000000, NULL, '1'),
        ('shop', 'H-2', 'O-2', 'U-7318', 'S-204', 'session-1', 'A', 1, 'CONFIRMED', 2000000, NULL, '1');
    INSERT INTO messages VALUES
        ('shop', 'M-1', NULL, 'order.paid', 'O-1', 'U-7318', 'S-204', 'session-1', 'QUEUED', 0, 'trace-1', 1000000, '1'),
        ('shop', 'M-2', NULL, 'order.paid', 'O-2', 'U-7318', 'S-204', 'session-1', 'DEAD', 3, NULL, 2000000, '1')";

pub struct Site {
    dir: TempDir,
    engine: Engine,
    /// Of its database, with which its tables are made.
    pub url: String,
    /// As whom `check` connects, where that is another.
    pub as_user: Option<String>,
    /// What `onefold.toml` says besides the journal and the folder.
    pub toml: String,
    database: Option<String>,
}

/// What `check` found.
pub struct Found {
    pub exit: Option<i32>,
    pub json: Value,
    pub text: String,
    pub errors: String,
}

impl Site {
    /// The embedded schema with some rows, and nothing else.
    pub fn embedded(engine: Engine) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (url, database) = match engine {
            Engine::Sqlite => (format!("sqlite:{}", dir.path().join("shop.db").display()), None),
            Engine::Postgres | Engine::Mariadb => {
                let name = format!("onefold_check_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
                sql(&server(engine), &format!("CREATE DATABASE {name}"));
                (beside(&server(engine), &name), Some(name))
            }
        };
        let site = Self { dir, engine, url, as_user: None, toml: String::new(), database };
        site.write("onefold.toml", &format!("journal = {:?}\n", site.url));
        let init = site.onefold(&["init"]);
        assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
        site.sql(ROWS);
        site
    }

    /// The same, read and moved by SQL files of its own, which are proven.
    pub fn foreign(engine: Engine) -> Self {
        let mut site = Self::embedded(engine);
        assert!(site.onefold(&["queries", "export", "ops"]).status.success());
        site.toml = "providers.\"*\".kind = \"sandbox\"\n".to_owned();
        site
    }

    pub fn sql(&self, text: &str) {
        sql(&self.url, text);
    }

    /// Writes one of the site's SQL files anew.
    pub fn file(&self, name: &str, text: &str) -> &Self {
        self.write(&format!("ops/{name}"), text);
        self
    }

    /// Replaces a piece of one of the site's SQL files, which must be there.
    pub fn change(&self, name: &str, from: &str, to: &str) -> &Self {
        let path = self.dir.path().join("ops").join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        fs::write(path, text.replace(from, to)).unwrap();
        self
    }

    pub fn remove(&self, name: &str) -> &Self {
        fs::remove_file(self.dir.path().join("ops").join(name)).unwrap();
        self
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// Runs `onefold check`.
    #[track_caller]
    pub fn check(&self, arguments: &[&str]) -> Found {
        let folder = if Path::new(&self.path("ops")).exists() { "queries = \"ops\"\n" } else { "" };
        let journal = if self.toml.contains("journal =") {
            String::new()
        } else {
            format!("journal = {:?}\n", self.as_user.as_ref().unwrap_or(&self.url))
        };
        self.write("onefold.toml", &format!("{journal}{folder}{}", self.toml));
        let output = self.onefold(&[&["check", "--json"], arguments].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        Found {
            exit: output.status.code(),
            json: serde_json::from_str(if text.is_empty() { &errors } else { &text })
                .unwrap_or_else(|e| panic!("{e}: {text}{errors}")),
            text,
            errors,
        }
    }

    pub fn onefold(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_onefold"))
            .args(arguments)
            .current_dir(self.dir.path())
            .env_remove("ONEFOLD_DATABASE_URL")
            .env_remove("ONEFOLD_CONFIG")
            .env_remove("ONEFOLD_QUERIES")
            .output()
            .unwrap()
    }

    /// Every row of the four ledgers, as text.
    pub fn rows(&self) -> Vec<String> {
        let tables = ["orders", "payments", "inventory", "messages"];
        tables.iter().flat_map(|table| rows(&self.url, table)).collect()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(name) = &self.database {
            let force = if self.engine == Engine::Postgres { " WITH (FORCE)" } else { "" };
            sql(&server(self.engine), &format!("DROP DATABASE {name}{force}"));
        }
    }
}

impl Found {
    /// The checks that ended so, as (where, message, hint).
    pub fn all(&self, result: &str) -> Vec<(&str, &str, &str)> {
        let text = |check: &'_ Value, name: &str| check[name].as_str().unwrap_or_default().to_owned();
        let checks = self.json["checks"].as_array().unwrap_or_else(|| panic!("{}", self.text));
        let found = checks.iter().filter(|check| text(check, "result") == result);
        found
            .map(|check| {
                let of = |name: &str| check[name].as_str().unwrap_or_default();
                (of("where"), of("message"), of("hint"))
            })
            .collect()
    }

    /// One finding of this kind says so at this place; each part of what it says is separated by `…`.
    #[track_caller]
    pub fn says(&self, result: &str, place: &str, message: &str, hint: &str) -> &Self {
        let all = self.all(result);
        let parts = |pattern: &str, text: &str| pattern.split('…').all(|part| text.contains(part));
        let fits =
            |(at, what, how): &(&str, &str, &str)| *at == place && parts(message, what) && parts(hint, how);
        if !all.iter().any(fits) {
            let stops: Vec<_> = ["refused", "unproven", "warning"].iter().map(|r| (r, self.all(r))).collect();
            let here: Vec<_> = all.iter().filter(|(at, ..)| *at == place).collect();
            panic!(
                "no {result} of {place} says {message:?} and {hint:?}, but {here:#?}\n{stops:#?}\n{}",
                self.errors
            );
        }
        self
    }

    /// As [`Found::says`], and there is nothing else that stops the configuration.
    #[track_caller]
    pub fn only(&self, result: &str, place: &str, message: &str, hint: &str) -> &Self {
        self.says(result, place, message, hint);
        let stops: Vec<_> = [self.all("refused"), self.all("unproven")].concat();
        assert_eq!(stops.len(), 1, "{stops:#?}");
        assert_eq!(self.exit, Some(2), "{}", self.text);
        self
    }

    /// Nothing stops it, though something may be worth a look.
    #[track_caller]
    pub fn is_proven(&self) -> &Self {
        let stops: Vec<_> = [self.all("refused"), self.all("unproven")].concat();
        assert_eq!((self.exit, stops), (Some(0), Vec::new()), "{}", self.errors);
        self
    }
}

/// The server that the tests are given.
pub fn server(engine: Engine) -> String {
    let variable = match engine {
        Engine::Sqlite => panic!("SQLite has no server"),
        Engine::Postgres => "ONEFOLD_TEST_POSTGRES_URL",
        Engine::Mariadb => "ONEFOLD_TEST_MYSQL_URL",
    };
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run the tests by tests/run.sh"))
}

/// The URL of another database of the same server.
pub fn beside(server: &str, database: &str) -> String {
    let mut url = url::Url::parse(server).unwrap();
    url.set_path(database);
    url.to_string()
}

/// The same URL for another user.
pub fn as_user(url: &str, user: &str, password: &str) -> String {
    let mut url = url::Url::parse(url).unwrap();
    url.set_username(user).unwrap();
    url.set_password(Some(password)).unwrap();
    url.to_string()
}

pub fn sql(url: &str, text: &str) {
    on(async {
        let mut connection = sqlx::AnyConnection::connect(url).await.unwrap();
        for statement in text.split(";\n") {
            let sql = AssertSqlSafe(statement.to_owned()).into_sql_str();
            sqlx::raw_sql(sql).execute(&mut connection).await.unwrap_or_else(|e| panic!("{e}: {statement}"));
        }
        connection.close().await.unwrap();
    });
}

fn rows(url: &str, table: &str) -> Vec<String> {
    on(async {
        let mut connection = sqlx::AnyConnection::connect(url).await.unwrap();
        let query = AssertSqlSafe(format!("SELECT * FROM {table} ORDER BY 1, 2")).into_sql_str();
        let rows = sqlx::raw_sql(query).fetch_all(&mut connection).await.unwrap();
        rows.iter().map(|row| format!("{table} {:?}", row.values)).collect()
    })
}

fn on<T>(work: impl Future<Output = T>) -> T {
    sqlx::any::install_default_drivers();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}
