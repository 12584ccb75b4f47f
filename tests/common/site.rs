//! A place to run whole commands in: an empty folder, a database of its own, and an operator.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use onefold::core::ledger::Ledgers;
use serde_json::Value;
use tempfile::TempDir;

pub use super::databases::Kind;
use super::databases::{Db, aside, run_on, wait};

/// Whose name freezes and the journal bear unless a test says otherwise.
pub const OWNER: &str = "ada@desk";

/// Makes a test of each function, for each database: `name::sqlite`, `name::postgres`, `name::mariadb`.
#[macro_export]
macro_rules! on_each_database {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            use $crate::common::site::{Kind, Site};

            #[test]
            fn sqlite() {
                super::$name(&Site::new(Kind::Sqlite));
            }

            #[test]
            fn postgres() {
                super::$name(&Site::new(Kind::Postgres));
            }

            #[test]
            fn mariadb() {
                super::$name(&Site::new(Kind::Mariadb));
            }
        })+
    };
}

pub struct Site {
    pub url: String,
    db: Db,
    dir: TempDir,
}

impl Site {
    /// An empty database, without any table.
    pub fn new(kind: Kind) -> Self {
        let db = Db::new(kind);
        // Handshakes of TLS would be most of what these tests wait for.
        let plain = match kind {
            Kind::Postgres if !db.url.contains('?') => "?sslmode=disable",
            Kind::Mariadb if !db.url.contains('?') => "?ssl-mode=disabled",
            _ => "",
        };
        Self { url: format!("{}{plain}", db.url), db, dir: tempfile::tempdir().unwrap() }
    }

    pub fn kind(&self) -> Kind {
        self.db.kind
    }

    /// Whether there is no SQLite file, as before any command that makes one.
    pub fn has_no_file(&self) -> bool {
        self.db.kind != Kind::Sqlite || !Path::new(self.url.trim_start_matches("sqlite:")).exists()
    }

    /// A folder or file of the site.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The folder in which the commands run.
    pub fn folder(&self) -> PathBuf {
        let folder = self.path("here");
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// From now on all commands have this configuration.
    pub fn configure(&self, toml: &str) {
        std::fs::write(self.path("own.toml"), toml).unwrap();
    }

    /// Another configuration than the tests' own, for `--config`.
    pub fn configured(&self, toml: &str) -> String {
        let path = self.path("configured.toml");
        std::fs::write(&path, toml).unwrap();
        text(&path)
    }

    /// Writes ledgers as four files; returns their folder.
    pub fn files(&self, ledgers: &Ledgers) -> String {
        let folder = self.path("ledgers");
        onefold::files::write(&folder, ledgers).unwrap();
        text(&folder)
    }

    /// How the provider treats requests about captured charges of 1000 CNY: `refuse`, `lose-answer`, …
    pub fn provider(&self, charges: &[(&str, &str)]) {
        let mut csv =
            "tenant_id,provider,charge,status,amount_minor,currency,captured_at,behaviour\n".to_owned();
        for (charge, behaviour) in charges {
            csv += &format!("t,pay,{charge},CAPTURED,1000,CNY,2026-09-21T15:33:20Z,{behaviour}\n");
        }
        std::fs::create_dir_all(self.path("ledgers")).unwrap();
        std::fs::write(self.path("ledgers/provider.csv"), csv).unwrap();
    }

    /// Loads ledgers into the database.
    #[track_caller]
    pub fn import(&self, ledgers: &Ledgers) {
        let folder = self.files(ledgers);
        self.run(&["import", &folder]).ends(0);
    }

    /// Freezes the show of the tests' ledgers, by word only; the freeze's id.
    #[track_caller]
    pub fn freeze(&self) -> String {
        self.id(&["freeze", "--show", "show", "--advisory", "--reason", "a test"], "/freeze/freeze_id")
    }

    /// Plans under the freeze that there is; the plan's id.
    #[track_caller]
    pub fn plan(&self) -> String {
        self.id(&["plan"], "/plan_id")
    }

    /// Runs a command that ends well; the text at a place of its JSON.
    #[track_caller]
    pub fn id(&self, line: &[&str], pointer: &str) -> String {
        let json = self.json(line);
        json.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{json:#}")).to_owned()
    }

    /// Runs a command that ends well, with `--json`.
    #[track_caller]
    pub fn json(&self, line: &[&str]) -> Value {
        self.run(&[line, &["--json"]].concat()).ends(0).json()
    }

    pub fn run(&self, line: &[&str]) -> Ran {
        self.run_as(OWNER, line)
    }

    pub fn run_as(&self, owner: &str, line: &[&str]) -> Ran {
        run(self.command(line).env("ONEFOLD_OWNER", owner), line)
    }

    /// The program as it runs here, on this database.
    pub fn command(&self, line: &[&str]) -> Command {
        let mut command = program();
        command.current_dir(self.folder()).env("ONEFOLD_DATABASE_URL", &self.url).args(line);
        let own = self.path("own.toml");
        // A file in the folder is found without being named.
        if !self.folder().join("onefold.toml").exists() {
            command.env("ONEFOLD_CONFIG", if own.exists() { own } else { sandbox() });
        }
        command
    }

    /// The same as a process that can be sent signals.
    pub fn process(&self, line: &[&str]) -> std::process::Command {
        let command = self.command(line);
        let mut process = std::process::Command::new(command.get_program());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => process.env(name, value),
                None => process.env_remove(name),
            };
        }
        process.args(command.get_args()).env("ONEFOLD_OWNER", OWNER).current_dir(self.folder());
        process
    }

    /// Changes the database behind onefold's back.
    pub fn sql(&self, statement: &str) {
        self.db.run_now(statement);
    }

    /// What onefold keeps in the database, for what no command does.
    pub async fn store(&self) -> onefold::store::Store {
        self.db.open().await
    }

    /// Whether the database lets a statement through.
    pub fn may(&self, statement: &str) -> bool {
        aside(async || self.db.try_run(statement).await)
    }

    /// Changes another database.
    pub fn execute(&self, url: &str, statement: &str) {
        aside(async || run_on(url, statement.to_owned()).await);
    }

    /// The first column of every row, as text.
    pub fn column(&self, query: &str) -> Vec<String> {
        wait(self.db.rows(query)).into_iter().map(|mut row| row.swap_remove(0)).collect()
    }

    /// The status of an order.
    #[track_caller]
    pub fn order(&self, id: &str) -> String {
        self.column(&format!("SELECT status FROM orders WHERE order_id = '{id}'")).concat()
    }

    /// The status of a payment.
    #[track_caller]
    pub fn payment(&self, id: &str) -> String {
        self.column(&format!("SELECT status FROM payments WHERE payment_id = '{id}'")).concat()
    }

    /// Every row of the four ledgers, as far as commands may change it.
    pub fn ledgers(&self) -> Vec<String> {
        let of = |columns: &str, ledger: &str| self.column(&format!("SELECT {columns} FROM {ledger}"));
        let concat = |id: &str, ledger: &str| match self.db.kind {
            Kind::Mariadb => of(&format!("CONCAT({id}, ' ', status, ' ', version)"), ledger),
            _ => of(&format!("{id} || ' ' || status || ' ' || version"), ledger),
        };
        let mut rows = [
            concat("order_id", "orders"),
            concat("payment_id", "payments"),
            concat("hold_id", "inventory"),
            concat("message_id", "messages"),
        ]
        .concat();
        rows.sort();
        rows
    }
}

/// A configuration that names the sandbox, as it must be named on a server, and says how much may go back.
pub fn sandbox() -> PathBuf {
    static FILE: std::sync::LazyLock<TempDir> = std::sync::LazyLock::new(|| {
        let dir = tempfile::tempdir().unwrap();
        let limits = ["CNY", "EUR", "JPY", "KWD", "USD"].map(|code| format!("\"{code}:1000000\"")).join(", ");
        let text =
            format!("[limits]\nmax_refund_total = [{limits}]\n[providers.\"*\"]\nkind = \"sandbox\"\n");
        std::fs::write(dir.path().join("onefold.toml"), text).unwrap();
        dir
    });
    FILE.path().join("onefold.toml")
}

/// The program without any of the surroundings' settings.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onefold"));
    for (name, _) in std::env::vars_os().filter(|(n, _)| n.to_string_lossy().starts_with("ONEFOLD_")) {
        command.env_remove(name);
    }
    command
}

pub fn run(command: &mut Command, line: &[&str]) -> Ran {
    let output = command.output().unwrap();
    Ran {
        line: line.join(" "),
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// What a command printed, and how it ended.
#[derive(Clone, Debug)]
pub struct Ran {
    line: String,
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Ends with an error: a sentence in lower case that says all of this, and a hint.
    #[track_caller]
    pub fn fails(self, code: i32, saying: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        assert_eq!(self.stdout, "", "an error is told on stderr: {self}");
        let sentence = self.stderr.lines().find_map(|l| l.strip_prefix("error: "));
        let sentence = sentence.unwrap_or_else(|| panic!("no error: {self}"));
        let is_name = sentence.split([' ', ':']).next().unwrap().contains(['-', '/', '.']);
        assert!(is_name || !sentence.starts_with(char::is_uppercase), "{self}");
        let hint = ["\nhint: ", "try '--help'", "possible values"].iter().any(|h| self.stderr.contains(h));
        assert!(hint, "an error says what to type next: {self}");
        saying.iter().fold(self, |ran, text| ran.warns(text))
    }

    /// Prints this, wherever lines are wrapped.
    #[track_caller]
    pub fn prints(self, text: &str) -> Self {
        assert!(unwrapped(&self.stdout).contains(&unwrapped(text)), "no {text:?} on stdout: {self}");
        self
    }

    #[track_caller]
    pub fn does_not_print(self, text: &str) -> Self {
        assert!(!self.stdout.contains(text) && !self.stderr.contains(text), "{text:?}: {self}");
        self
    }

    #[track_caller]
    pub fn warns(self, text: &str) -> Self {
        assert!(unwrapped(&self.stderr).contains(&unwrapped(text)), "no {text:?} on stderr: {self}");
        self
    }

    /// The error as the one JSON object on stderr, and nothing on stdout.
    #[track_caller]
    pub fn error(&self) -> Value {
        assert_eq!(self.stdout, "", "an error is told on stderr: {self}");
        let value: Value = serde_json::from_str(&self.stderr).unwrap_or_else(|e| panic!("{e}: {self}"));
        assert_eq!(value["code"].as_i64(), self.code.map(i64::from), "{self}");
        value
    }

    /// The one JSON object on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self}"));
        assert!(value.is_object(), "{self}");
        value
    }
}

fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { line, code, stdout, stderr } = self;
        write!(f, "\n$ onefold {line}\n{stdout}--- stderr\n{stderr}--- exit {code:?}")
    }
}
