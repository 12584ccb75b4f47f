//! Where things are and who we are: flags, environment and `onefold.toml`, in one place.
//!
//! A flag goes before the environment, and both go before the file.

mod settings;

pub use settings::Setting;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;

use crate::core::approval::ApprovalRule;
use crate::core::limits::{Limits, add_stated};
use crate::core::status::Ledger;
use crate::core::time::{Span, Timestamp};
use crate::error::{Error, Exit, Result};
use crate::execute::command::Commands;
use crate::providers::sandbox::Misbehaviour;
use crate::providers::settings::Settings;
use crate::providers::{ANY, Providers};
use crate::report::{Format, print_note};
use crate::store::passwords::Passwords;
use crate::store::{Database, Places, Queries, Statuses, Store, without_password};

/// The file's name where none is given.
const FILE: &str = "onefold.toml";
/// How old a plan may be where nothing else is said.
const PLAN_MAX_AGE: Span = Span::from_mins(15);
/// Everything in one SQLite file, where nothing else is said.
const DEFAULT_DATABASE: &str = "sqlite:onefold.db";

/// What a command knows of its surroundings.
#[derive(Clone, Debug)]
pub struct Config {
    /// URLs that may hold passwords: never printed as they are.
    pub places: Places,
    /// For URLs that have none.
    pub passwords: Option<Passwords>,
    /// The site's own SQL files.
    pub queries: Option<PathBuf>,
    pub statuses: Statuses,
    /// By what payments call them in their `provider`, or `*`.
    pub providers: BTreeMap<String, Settings>,
    pub commands: Commands,
    /// How much one run of apply may do, where no flag says.
    pub limits: Limits,
    /// How old a plan may be when it is begun, unless it would be decided the same again.
    pub plan_max_age: Span,
    pub approval: ApprovalRule,
    /// Why something that cannot be proven is accepted, by the name of its file.
    pub accept: BTreeMap<String, String>,
    /// What stands on stdout.
    pub format: Format,
    /// What `--format` says.
    pub written: Option<Format>,
    pub quiet: bool,
    pub verbose: bool,
    /// The operator, as freezes and the journal name him: `USER@HOST`, or `ONEFOLD_OWNER`.
    pub actor: String,
    /// The journals' databases that were opened.
    pub opened: Opened,
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// What flags and the environment say.
    pub told: Vec<Setting>,
    /// The command line that is being carried out, without the program's name.
    pub line: Vec<String>,
}

/// The databases in which this run may have written to a journal; a configuration's copies share them.
#[derive(Clone, Debug, Default)]
pub struct Opened(Arc<Mutex<Vec<Database>>>);

impl Opened {
    /// Ends what this run has written of a journal (`core/chain.rs`), so that it does not count as killed.
    ///
    /// # Errors
    /// Failure, where that cannot be recorded; what was done is done.
    pub async fn end_run(&self, actor: &str, now: Timestamp) -> Result<()> {
        let databases = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for database in databases {
            database.end_run(actor, now).await?;
        }
        Ok(())
    }
}

/// What the command line and the environment say.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    pub config: Option<PathBuf>,
    pub database: Option<String>,
    pub queries: Option<PathBuf>,
    pub password_file: Option<PathBuf>,
    pub owner: Option<String>,
    pub format: Format,
    pub written: Option<Format>,
    pub quiet: bool,
    pub verbose: bool,
    /// All of it, without the program's name.
    pub line: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    journal: Option<String>,
    ledgers: Option<LedgerTable>,
    queries: Option<PathBuf>,
    #[serde(default)]
    providers: BTreeMap<String, Settings>,
    password_file: Option<PathBuf>,
    owner: Option<String>,
    after_apply: Option<Vec<String>>,
    #[serde(default)]
    status: StatusTable,
    #[serde(default)]
    exec: ExecTable,
    #[serde(default)]
    limits: LimitTable,
    #[serde(default)]
    approval: ApprovalTable,
    #[serde(default)]
    accept: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LimitTable {
    max_steps: Option<usize>,
    max_refund_total: Vec<String>,
    plan_max_age: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ApprovalTable {
    required: bool,
    /// Where nothing is said, another person's word counts alone.
    distinct: Option<bool>,
    over: Option<Amounts>,
    within: Option<String>,
}

/// One amount, or one a currency.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Amounts {
    One(String),
    Several(Vec<String>),
}

impl ApprovalTable {
    fn rule(self) -> Result<ApprovalRule> {
        if !self.required && (self.distinct.is_some() || self.over.is_some() || self.within.is_some()) {
            return Err(Error::usage("[approval] says how, and not that approvals are required")
                .hint("required = true"));
        }
        if self.over.is_none() && self.within.is_some() {
            return Err(Error::usage(
                "[approval] says within which time refunds count together, and not towards what",
            )
            .hint("over = [\"CNY:10000\"], or leave out `within`"));
        }
        if !self.required {
            return Ok(ApprovalRule::default());
        }
        let mut rule = ApprovalRule {
            required: true,
            distinct: self.distinct.unwrap_or(true),
            ..ApprovalRule::default()
        };
        if let Some(text) = &self.within {
            rule.within = text
                .parse()
                .map_err(|e| Error::usage(format!("[approval] within: {e}")).hint("within = \"24h\""))?;
        }
        if let Some(over) = self.over {
            let texts = match over {
                Amounts::One(text) => vec![text],
                Amounts::Several(texts) => texts,
            };
            let amounts = rule.over.insert(BTreeMap::new());
            for text in &texts {
                add_stated(amounts, text).map_err(|e| e.context("[approval] over"))?;
            }
        }
        Ok(rule)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LedgerTable {
    orders: Shards,
    payments: Shards,
    inventory: Shards,
    messages: Shards,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shards {
    urls: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StatusTable {
    order: BTreeMap<String, Values>,
    payment: BTreeMap<String, Values>,
    hold: BTreeMap<String, Values>,
    message: BTreeMap<String, Values>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ExecTable {
    order: Option<Vec<String>>,
    payment: Option<Vec<String>>,
    hold: Option<Vec<String>>,
    message: Option<Vec<String>>,
}

/// One value, or several that stand for the same status.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Values {
    One(Value),
    Several(Vec<Value>),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Value {
    Text(String),
    Number(i64),
}

impl Values {
    fn into_texts(self) -> Vec<String> {
        let values = match self {
            Self::One(value) => vec![value],
            Self::Several(values) => values,
        };
        values
            .into_iter()
            .map(|value| match value {
                Value::Text(text) => text,
                Value::Number(number) => number.to_string(),
            })
            .collect()
    }
}

impl Config {
    /// Where onefold's own tables are, as it may be printed.
    pub fn label(&self) -> String {
        without_password(&self.places.journal)
    }

    /// Reads the configuration; `variable` gives what the environment says.
    ///
    /// # Errors
    /// Usage, naming file and place, for a file that is not as it must be, a variable that a URL
    /// names and the environment lacks, and a password file that others may read.
    pub fn load(flags: Flags, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let named = flags.config;
        let path = match &named {
            Some(path) => Some(path.clone()),
            None => Some(PathBuf::from(FILE)).filter(|path| path.is_file()),
        };
        let (file, folder) = match &path {
            Some(path) => (read(path)?, path.parent().unwrap_or(Path::new("")).to_owned()),
            None => (File::default(), PathBuf::new()),
        };
        let passwords = match flags.password_file.clone().or(file.password_file.map(|p| folder.join(p))) {
            Some(path) => Some(Passwords::read(&path)?),
            None => None,
        };
        let said = |name: &str, flag: &str, env: &str, value: Option<String>| {
            let value = value?;
            let from = if variable(env).as_ref() == Some(&value) { env } else { flag };
            Some(Setting::new(name, &value, from))
        };
        let shown = |path: &Option<PathBuf>| path.as_ref().map(|p| p.display().to_string());
        let told = [
            said("journal", "--database", "ONEFOLD_DATABASE_URL", flags.database.clone()),
            said("config", "--config", "ONEFOLD_CONFIG", shown(&named)),
            said("queries", "--queries", "ONEFOLD_QUERIES", shown(&flags.queries)),
            said("password_file", "--password-file", "ONEFOLD_PASSWORD_FILE", shown(&flags.password_file)),
            said("owner", "--owner", "ONEFOLD_OWNER", flags.owner.clone()),
        ];
        let of_file = path.as_deref().unwrap_or(Path::new(FILE)).display();
        let url = |key: &str, text: &str| {
            let url = expanded(text, &variable).map_err(|e| e.context(key))?;
            Ok(passwords.as_ref().map_or(url.clone(), |p| p.filled_in(&url)))
        };
        let places = match (&flags.database, &file.journal, &file.ledgers) {
            (Some(database), ..) => Places::one(&url("the URL of --database", database)?),
            (None, journal, Some(ledgers)) => {
                let journal = journal.as_deref().ok_or_else(|| {
                    Error::usage("the configuration has [ledgers] and no journal")
                        .hint("say where onefold's own tables live: journal = \"sqlite:onefold.db\"")
                })?;
                let shards = |name: &str, shards: &Shards| {
                    let key = format!("{of_file}: [ledgers.{name}] urls");
                    if shards.urls.is_empty() {
                        return Err(Error::usage(format!("{key} names no database"))
                            .hint("urls = [\"postgres://USER@HOST/DATABASE\"]"));
                    }
                    shards.urls.iter().map(|u| url(&key, u)).collect::<Result<Vec<_>>>()
                };
                Places {
                    journal: url(&format!("{of_file}: journal"), journal)?,
                    ledgers: [
                        shards("orders", &ledgers.orders)?,
                        shards("payments", &ledgers.payments)?,
                        shards("inventory", &ledgers.inventory)?,
                        shards("messages", &ledgers.messages)?,
                    ],
                }
            }
            (None, Some(journal), None) => Places::one(&url(&format!("{of_file}: journal"), journal)?),
            (None, None, None) => Places::one(DEFAULT_DATABASE),
        };
        let mut statuses = Statuses::default();
        let StatusTable { order, payment, hold, message } = file.status;
        for (ledger, map) in Ledger::ALL.into_iter().zip([order, payment, hold, message]) {
            for (status, values) in map {
                statuses.add(ledger, &status, values.into_texts())?;
            }
        }
        let mut limits = Limits { max_steps: file.limits.max_steps, ..Limits::default() };
        for text in &file.limits.max_refund_total {
            add_stated(&mut limits.max_refunds, text).map_err(|e| e.context("[limits] max_refund_total"))?;
        }
        let plan_max_age = match &file.limits.plan_max_age {
            Some(text) => text.parse().map_err(|e| {
                Error::usage(format!("{of_file}: [limits] plan_max_age: {e}")).hint("plan_max_age = \"15m\"")
            })?,
            None => PLAN_MAX_AGE,
        };
        let approval = file.approval.rule().map_err(|e| e.context(of_file.to_string()))?;
        let mut providers = BTreeMap::new();
        for (name, settings) in file.providers {
            settings.check().map_err(|e| e.context(format!("{of_file}: [providers.{name}]")))?;
            providers.insert(name, settings.beside(&folder));
        }
        let ExecTable { order, payment, hold, message } = file.exec;
        let moves = Ledger::ALL.into_iter().zip([order, payment, hold, message]);
        Ok(Self {
            places,
            passwords,
            queries: flags.queries.or(file.queries.map(|dir| folder.join(dir))),
            statuses,
            providers,
            commands: Commands {
                moves: moves.filter_map(|(ledger, command)| Some((ledger, command?))).collect(),
                after_apply: file.after_apply,
            },
            limits,
            plan_max_age,
            approval,
            accept: file.accept,
            format: flags.format,
            written: flags.written,
            quiet: flags.quiet,
            verbose: flags.verbose,
            actor: flags.owner.or(file.owner).filter(|name| !name.is_empty()).unwrap_or_else(default_actor),
            told: told.into_iter().flatten().collect(),
            line: flags.line,
            file: path.clone(),
            opened: Opened::default(),
        })
    }

    /// The same operator on the embedded schema in one database, whatever the configuration says.
    pub fn embedded(&self, url: &str) -> Self {
        Self {
            places: Places::one(url),
            format: self.format,
            written: None,
            quiet: self.quiet,
            verbose: self.verbose,
            actor: self.actor.clone(),
            ..Self::without_file(Flags::default())
        }
    }

    /// The embedded schema where nothing else is said; no file is read.
    pub fn without_file(flags: Flags) -> Self {
        Self {
            places: Places::one(flags.database.as_deref().unwrap_or(DEFAULT_DATABASE)),
            passwords: None,
            queries: None,
            statuses: Statuses::default(),
            providers: BTreeMap::new(),
            commands: Commands::default(),
            limits: Limits::default(),
            plan_max_age: PLAN_MAX_AGE,
            approval: ApprovalRule::default(),
            accept: BTreeMap::new(),
            format: flags.format,
            written: flags.written,
            quiet: flags.quiet,
            verbose: flags.verbose,
            actor: flags.owner.filter(|name| !name.is_empty()).unwrap_or_else(default_actor),
            file: None,
            told: Vec::new(),
            line: flags.line,
            opened: Opened::default(),
        }
    }

    /// Who moves money. Where none is named: on the embedded schema in SQLite the sandbox, elsewhere the
    /// outbox, whose rows the company's own payment service works off.
    ///
    /// # Errors
    /// Usage, where what is said of a provider makes no sense.
    pub fn providers<'s>(&self, store: &'s Store) -> Result<Providers<'s>> {
        let mut providers = Providers::default();
        for (name, settings) in &self.providers {
            let provider = settings.provider(store).map_err(|e| e.context(format!("[providers.{name}]")))?;
            providers.add(name, provider);
        }
        if self.providers.is_empty() {
            let by_default = if store.is_foreign() || !self.places.is_embedded() {
                Settings::Outbox
            } else {
                Settings::Sandbox { misbehaviour: Misbehaviour::default() }
            };
            providers.add(ANY, by_default.provider(store)?);
        }
        Ok(providers)
    }

    /// The SQL files: ours, shadowed by the site's own.
    pub fn queries(&self) -> Result<Queries> {
        self.queries.as_deref().map_or(Ok(Queries::default()), Queries::shadowed_by)
    }

    /// Opens the databases; `create` makes an SQLite file that is not there.
    pub async fn open(&self, create: bool) -> Result<Store> {
        let store = Store::open(&self.places, self.queries()?, self.statuses.clone(), create).await?;
        self.opened.0.lock().unwrap_or_else(PoisonError::into_inner).push(store.journal().clone());
        Ok(store)
    }

    /// Opens the databases, and fails with what to type where onefold's tables are not there, or a database belongs to
    /// another journal.
    pub async fn open_ready(&self) -> Result<Store> {
        let store = self.open(false).await?;
        store.must_be_ready().await?;
        store.must_be_ours().await?;
        Ok(store)
    }

    /// As [`Config::open_ready`], for what moves no row and proposes no move: the ledgers of another journal may be
    /// read, and a note says whose they are.
    pub async fn open_to_read(&self) -> Result<Store> {
        let store = self.open(false).await?;
        store.must_be_ready().await?;
        match store.must_be_ours().await {
            Err(why) if why.exit == Exit::Refused => {
                if !self.quiet {
                    print_note(&format!("note: {}; {}", why.message, why.hint.unwrap_or_default()));
                }
                Ok(store)
            }
            ours => ours.map(|()| store),
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::usage(format!("cannot read the configuration {}: {error}", path.display()))
        .hint("name one that is there with --config, or leave it out")
}

fn read(path: &Path) -> Result<File> {
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(path, &e))?;
    toml::from_str(&text).map_err(|e| {
        // The library's picture of the place would show the line, and with it a password.
        let at = e.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        Error::usage(format!("{}: line {at}: {}", path.display(), e.message()))
            .hint(format!("mend line {at} of {}; then `onefold check` proves the whole", path.display()))
    })
}

/// The text with each `${NAME}` replaced by what the environment says.
fn expanded(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String> {
    let mut url = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            return Err(Error::usage(format!("{} has ${{ without }}", without_password(text)))
                .hint("a variable is written ${NAME}"));
        };
        let value = variable(name).ok_or_else(|| {
            Error::usage(format!("${{{name}}} is not set"))
                .hint(format!("export {name}=…, or write the URL without it"))
        })?;
        url.push_str(before);
        url.push_str(&value);
        rest = after;
    }
    url.push_str(rest);
    Ok(url)
}

/// The operator's name where nothing gives one.
fn default_actor() -> String {
    let user = whoami::username().unwrap_or_else(|_| "unknown".to_owned());
    let host = whoami::hostname().unwrap_or_else(|_| "unknown".to_owned());
    format!("{user}@{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Config> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        std::fs::write(&path, text).unwrap();
        let variable = |name: &str| (name == "PAY_URL").then(|| "postgres://pay/pay".to_owned());
        Config::load(Flags { config: Some(path), ..Flags::default() }, variable)
    }

    #[test]
    fn a_ledger_may_live_in_a_database_each_and_in_shards() {
        let config = load(
            r#"
            journal = "sqlite:j.db"
            [ledgers.orders]
            urls = ["mysql://a/orders_00", "mysql://b/orders_01"]
            [ledgers.payments]
            urls = ["${PAY_URL}"]
            [ledgers.inventory]
            urls = ["mysql://a/stock"]
            [ledgers.messages]
            urls = ["postgres://m/outbox"]
            [status.order]
            PENDING_PAYMENT = 10
            PAID = ["20", 21]
            "#,
        )
        .unwrap();
        assert_eq!(config.places.ledgers[0].len(), 2);
        assert_eq!(config.places.ledgers[1], ["postgres://pay/pay"]);
    }

    #[test]
    fn what_the_file_gets_wrong_is_named_with_its_line() {
        let error = load("journal = \"sqlite:j.db\"\nquerys = \"ops\"\n").unwrap_err();
        assert!(error.message.contains("line 2") && error.message.contains("querys"), "{error}");
        let error = load("journal = \"postgres://u:secret@${NO_SUCH}/x\"\n").unwrap_err();
        assert!(error.message.ends_with("onefold.toml: journal: ${NO_SUCH} is not set"), "{error}");
        assert!(!error.message.contains("secret"), "{error}");
        let error = load("[ledgers.orders]\nurls = []\n").unwrap_err();
        assert!(error.message.contains("payments"), "{error}");
    }
}
