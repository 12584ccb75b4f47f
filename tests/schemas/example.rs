//! One of `fixtures/schemas`, in a database of its own.

use std::path::PathBuf;

use serde_json::Value;

use crate::common::site::{Kind, Ran, Site, run, text};

pub struct Example {
    site: Site,
    folder: PathBuf,
    /// What is frozen and planned.
    scope: &'static [&'static str],
    /// The configuration, where it is not the example's own.
    config: PathBuf,
}

impl Example {
    /// The example's tables and data, and onefold's own tables.
    #[track_caller]
    pub fn new(on: Kind, name: &str, scope: &'static [&'static str]) -> Self {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/schemas").join(name);
        let config = folder.join("onefold.toml");
        let example = Self { site: Site::new(on), folder, scope, config };
        let files = ["schema.sql", "for-onefold.sql", "data.sql"].map(|file| example.folder.join(file));
        for file in files.iter().filter(|file| file.exists()) {
            example.sql(&std::fs::read_to_string(file).unwrap());
        }
        example.run(&["init"]).ends(0);
        example
    }

    /// With a line of the configuration replaced.
    pub fn configured(mut self, line: &str, by: &str) -> Self {
        let toml = std::fs::read_to_string(&self.config).unwrap();
        assert!(toml.contains(line), "{line} in {toml}");
        let queries = format!("queries = {:?}", text(&self.folder.join("queries")));
        self.config = self.site.path("onefold.toml");
        std::fs::write(&self.config, toml.replace(line, by).replace("queries = \"queries\"", &queries))
            .unwrap();
        self
    }

    pub fn run(&self, line: &[&str]) -> Ran {
        let mut command = self.site.command(line);
        command
            .env_remove("ONEFOLD_DATABASE_URL")
            .env("ONEFOLD_CONFIG", &self.config)
            .env("ONEFOLD_OWNER", crate::common::site::OWNER)
            .env("ONEFOLD_JOURNAL", self.journal())
            .env("SEAT_MAP_INBOX", self.inbox())
            .env("SHOP_URL", &self.site.url);
        run(&mut command, line)
    }

    /// The one place that knows how these tests freeze; the freeze's id.
    #[track_caller]
    pub fn freeze(&self) -> String {
        let line = [&["freeze"], self.scope, &["--advisory", "--reason", "doubles", "--json"]].concat();
        text_at(&self.run(&line).ends(0).json(), "/freeze/freeze_id")
    }

    /// Plans under the freeze that there is.
    #[track_caller]
    pub fn plan(&self) -> Value {
        self.run(&[&["plan"], self.scope, &["--json"]].concat()).ends(0).json()
    }

    #[track_caller]
    pub fn plan_id(&self) -> String {
        text_at(&self.plan(), "/plan_id")
    }

    pub fn apply(&self, plan_id: &str) -> Ran {
        let limits = ["CNY", "EUR", "JPY"].map(|code| format!("{code}:1000000"));
        let limits = limits.iter().flat_map(|limit| ["--max-refund-total", limit]);
        self.run(&["apply", plan_id, "--yes"].into_iter().chain(limits).collect::<Vec<_>>())
    }

    /// Changes the site's tables behind onefold's back.
    #[track_caller]
    pub fn sql(&self, statements: &str) {
        self.site.sql(statements);
    }

    /// The first column of every row, as text.
    #[track_caller]
    pub fn column(&self, query: &str) -> Vec<String> {
        self.site.column(query)
    }

    /// Tells the sandbox provider of a charge: tenant, provider, its number, status, amount, what is
    /// refunded of it, currency, captured when, and how it behaves.
    #[track_caller]
    pub fn provider_knows(&self, charge: &str) {
        let toml = std::fs::read_to_string(&self.config).unwrap();
        let apart = toml.contains("ONEFOLD_JOURNAL");
        let journal = if apart { format!("sqlite:{}", text(&self.journal())) } else { self.site.url.clone() };
        self.site.execute(&journal, &format!("INSERT INTO onefold_sandbox_charges VALUES ({charge})"));
    }

    fn journal(&self) -> PathBuf {
        self.site.path("journal.db")
    }

    /// Where the command after apply of the ticket shop writes to.
    pub fn inbox(&self) -> PathBuf {
        self.site.path("inbox")
    }
}

#[track_caller]
pub fn text_at(json: &Value, pointer: &str) -> String {
    json.pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{pointer} in {json:#}"))
        .to_owned()
}

/// Of each intent its user, outcome, kept order and reasons, in a line; sorted.
pub fn outcomes(plan: &Value) -> Vec<String> {
    let intents = plan["intents"].as_array().unwrap().iter();
    let mut lines: Vec<_> = intents
        .map(|intent| {
            let of = |name: &str| intent[name].as_str().unwrap_or("-").to_owned();
            let reasons = intent["review_reasons"].as_array().unwrap().iter();
            let reasons: Vec<_> = reasons.map(|r| r.as_str().unwrap()).collect();
            format!("{} {} {} {}", of("user_id"), of("outcome"), of("keep"), reasons.join(" "))
                .trim_end()
                .to_owned()
        })
        .collect();
    lines.sort();
    lines
}
