//! Every command that the READMEs show, typed as it stands there, in the order shown; and what they show under one
//! is what it prints. Both READMEs show the same commands in the same order.

mod common;
#[path = "readme/shown.rs"]
mod shown;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use common::site::{Ran, program, run};
use shown::{Shown, contains_in_order, normalised, spans};
use tempfile::TempDir;

const READMES: [&str; 2] = ["README.md", "README.zh-CN.md"];

/// Not typed by this test, and why.
const NOT_TYPED: [(&str, &str); 7] = [
    ("tests/run.sh", "runs all tests, this one, too"),
    ("cargo test --test hunt", "is a test of its own"),
    ("ONEFOLD_TEST_SEED=N cargo test --test hunt", "is a test of its own"),
    (
        "ONEFOLD_TEST_HUNT=1 tests/run.sh --test enforce cost -- --nocapture",
        "measures for minutes, on servers",
    ),
    ("cargo install --path .", "builds a release into the user's folder"),
    ("onefold provider test stripe --payment P-20173", "asks Stripe, under the user's key"),
    (
        "onefold guard drill --url https://staging.example/orders --header 'Authorization: Bearer {env:API_TOKEN}' \
         --body @order.json",
        "asks a service of the user's; tests/guard has one",
    ),
];

/// Typed in another form, and why.
const TYPED_AS: [(&str, &str, &str); 2] = [
    ("cargo run -- demo", "onefold demo", "it is built already"),
    (
        "onefold watch --show S-204",
        "onefold watch --show S-204 --every 1s --until-quiet 1s",
        "it would wait for ten minutes",
    ),
];

/// How a command ends, where that is not with 0.
const ENDS: [(&str, i32, &str); 14] = [
    (
        "onefold locks audit fixtures/locks-2014/locks.csv --skew 50ms --files fixtures/locks-2014",
        5,
        "two held a lock",
    ),
    (
        "onefold locks audit fixtures/incident-2014/locks.csv --files fixtures/incident-2014 --rules locks.yml",
        5,
        "two held a lock",
    ),
    (
        "onefold locks check-script --release-command 'DEL {key}' --renew-command 'PEXPIRE {key} {lease_ms}'",
        5,
        "a bare DEL robs",
    ),
    (
        "onefold apply PLAN --yes --max-refund-total CNY:6500 --max-refund-total JPY:37000",
        6,
        "the bank loses an answer, then refuses",
    ),
    ("onefold converge --plan PLAN", 6, "a request must go out again"),
    ("onefold verify PLAN2", 6, "purchases are left to a person"),
    ("onefold thaw FREEZE", 6, "purchases are left to a person"),
    ("onefold show PL-none --json", 2, "shows an error"),
    (
        "onefold apply PLAN --yes --canary 10 --workers 8 --rate 20/s --max-refund-total CNY:50000 \
         --max-refund-total JPY:40000 --stop-file stop",
        6,
        "the bank loses an answer",
    ),
    ("onefold run fixtures/playbook.toml", 6, "the bank refuses a refund"),
    ("onefold run fixtures/playbook.toml --from verify", 6, "purchases are left to a person"),
    ("onefold frozen --order O-20173 --effect ticketing", 7, "it is frozen"),
    ("onefold guard install", 7, "what is in its way is not unwound yet"),
    (
        "onefold reconcile --statement settled.csv --provider card --amounts decimal --timezone Asia/Shanghai \
         --map charge=Reference,amount=Gross,currency=Currency,type=Type,time=Settled --type-map Payout=other",
        5,
        "the statement is another one",
    ),
];

/// What a section finds when it begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// An empty folder.
    Nothing,
    /// The incident, loaded.
    Imported,
    /// The incident, frozen and planned.
    Planned,
}

/// A folder to type in, as a reader has it after the clone.
struct Place {
    dir: TempDir,
    freezes: Vec<String>,
    plans: Vec<String>,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures"), dir.path().join("fixtures")).unwrap();
        fs::create_dir(dir.path().join("ops")).unwrap();
        for (name, says) in [("refund.sh", "refund re_3Q8 of 1760.00 CNY accepted"), ("refunded.sh", "")] {
            let path = dir.path().join(name);
            fs::write(&path, format!("#!/bin/sh\necho {says}\n")).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(
            dir.path().join("settled.csv"),
            "Reference,Gross,Currency,Type,Settled\nch_none,12.00,CNY,charge,2026-11-11 20:15:00\n",
        )
        .unwrap();
        Self { dir, freezes: Vec::new(), plans: Vec::new() }
    }

    /// Types a line in a shell.
    fn types(&mut self, line: &str) -> Ran {
        let program = program();
        let bin = PathBuf::from(program.get_program());
        let path = std::env::join_paths(
            [bin.parent().unwrap().to_owned()]
                .into_iter()
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        );
        let mut shell = assert_cmd::Command::new("bash");
        for (name, _) in std::env::vars_os().filter(|(n, _)| n.to_string_lossy().starts_with("ONEFOLD_")) {
            shell.env_remove(name);
        }
        shell
            .current_dir(self.dir.path())
            .env("PATH", path.unwrap())
            .env("HOME", self.dir.path())
            .env("ONEFOLD_REDIS_URL", std::env::var_os("ONEFOLD_TEST_REDIS_URL").unwrap_or_default())
            .args(["-c", line]);
        let ran = run(&mut shell, &[line.strip_prefix("onefold ").unwrap_or(line)]);
        for word in ran.stdout.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
            let is_id = |prefix: &str| {
                word.strip_prefix(prefix)
                    .is_some_and(|hex| hex.len() == 10 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
            };
            for (prefix, ids) in [("F-", &mut self.freezes), ("PL-", &mut self.plans)] {
                if is_id(prefix) && !ids.iter().any(|id| id == word) {
                    ids.push(word.to_owned());
                }
            }
        }
        ran
    }

    /// A line with the names that a README gives to what came out before.
    fn filled(&mut self, line: &str, nth: usize) -> String {
        let mut filled = line.replace("DIR", "fixtures/incident-2014");
        for (name, id) in
            [("PLAN2", self.plans.get(1)), ("PLAN", self.plans.first()), ("FREEZE", self.freezes.first())]
        {
            if let Some(id) = id {
                filled = filled.replace(name, id);
            }
        }
        if filled.split(' ').any(|word| word == "KEY") {
            // One of which nobody knows what came of it.
            let key = format!("key-{nth}");
            self.types(&format!("onefold once --key {key} -- sh -c 'kill -9 $$'")).ends(6);
            filled = filled.replace("KEY", &key);
        }
        filled
    }

    fn prepare(&mut self, before: Before) {
        if before == Before::Nothing {
            return;
        }
        self.types("onefold init --enforce").ends(0);
        self.types("onefold import fixtures/incident-2014").ends(0);
        if before == Before::Planned {
            self.types("onefold freeze --show S-204 --enforce --reason 'a test'").ends(0);
            self.types("onefold plan").ends(0);
        }
    }
}

fn readme(name: &str) -> Vec<Shown> {
    shown::shown(&fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap())
}

/// Types what a README shows, section by section; what is wrong with it.
fn type_all(name: &str) -> Vec<String> {
    let all = readme(name);
    let sections: BTreeSet<usize> = all.iter().map(|s| s.section).collect();
    let mut wrong = Vec::new();
    for section in sections {
        let here: Vec<_> = all.iter().filter(|s| s.section == section).collect();
        let any = |verb: &str| here.iter().any(|s| s.line.starts_with(verb));
        let before = match () {
            () if any("onefold init --enforce") || any("cargo run") => Before::Nothing,
            () if any("onefold run") => Before::Imported,
            () => Before::Planned,
        };
        let typed: Vec<_> =
            here.iter().filter(|s| !NOT_TYPED.iter().any(|(line, _)| *line == s.line)).collect();
        if typed.iter().all(|s| s.line.is_empty()) && typed.iter().all(|s| s.output.is_empty()) {
            continue;
        }
        let mut place = Place::new();
        place.prepare(before);
        let mut printed = String::new();
        for shown in typed {
            if shown.line.is_empty() {
                // An excerpt of what was printed before.
                if let Err(missing) = contains_in_order(&printed, &shown.output) {
                    wrong.push(format!("{name}:{}: nothing prints\n{missing}", shown.at));
                }
                continue;
            }
            for (nth, line) in shown.alternatives().iter().enumerate() {
                let typed =
                    TYPED_AS.iter().find(|(shown, _, _)| shown == line).map_or(line.as_str(), |t| t.1);
                let filled = place.filled(typed, nth);
                let ran = place.types(&filled);
                let code = ENDS.iter().find(|(l, _, _)| l == line).map_or(0, |e| e.1);
                if ran.code != Some(code) {
                    wrong.push(format!("{name}:{}: ends with another code than {code}: {ran}", shown.at));
                }
                let out = normalised(&format!("{}{}", ran.stdout, ran.stderr));
                if let Err(missing) = contains_in_order(&out, &shown.output) {
                    wrong.push(format!(
                        "{name}:{}: `{filled}` does not print\n{missing}\nbut\n{out}",
                        shown.at
                    ));
                }
                printed += &out;
            }
        }
    }
    wrong
}

/// The other README shows the same, as the test after this one proves.
#[test]
fn every_command_can_be_typed_and_prints_what_is_shown() {
    let wrong = type_all(READMES[0]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Both show the same commands and the same blocks, in the same order.
#[test]
fn both_languages_show_the_same() {
    let [english, chinese] = READMES.map(readme);
    let lines = |all: &[Shown]| -> Vec<_> {
        all.iter().map(|s| format!("{}: {} {:?}", s.section, s.line, s.output)).collect()
    };
    assert_eq!(lines(&english), lines(&chinese));
    let [english, chinese] = READMES.map(|name| {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
        shown::blocks(&text)
    });
    assert_eq!(english, chinese);
}

/// What is listed here is shown: a list must not outlive what it is about.
#[test]
fn the_lists_of_exceptions_name_what_is_shown() {
    let shown: BTreeSet<_> = readme(READMES[0]).iter().flat_map(Shown::alternatives).collect();
    let whole: BTreeSet<_> = readme(READMES[0]).into_iter().map(|s| s.line).collect();
    let listed =
        NOT_TYPED.iter().map(|e| e.0).chain(TYPED_AS.iter().map(|e| e.0)).chain(ENDS.iter().map(|e| e.0));
    for line in listed {
        assert!(shown.contains(line) || whole.contains(line), "{line:?} is in no README any more");
    }
}

/// A flag that a README names is one of the verb's that stands before it, or of some verb.
#[test]
fn every_flag_that_is_named_exists() {
    let helps = helps();
    let everywhere = helps.values().cloned().collect::<String>();
    for name in READMES {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
        for span in spans(&text) {
            let words: Vec<_> = span.split_whitespace().filter(|w| *w != "onefold").collect();
            if words.iter().any(|w| w.ends_with("cargo") || w.ends_with("run.sh") || *w == "man") {
                continue;
            }
            let verb = (1..=2).rev().filter_map(|n| words.get(..n)).map(|w| w.join(" "));
            let help = verb.filter_map(|v| helps.get(&v)).next().unwrap_or(&everywhere);
            for word in words.iter().take_while(|w| **w != "--") {
                let flag: String = word
                    .trim_start_matches('[')
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
                    .collect();
                if flag.len() > 2 && flag.starts_with("--") {
                    let is_there =
                        help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|w| w == flag);
                    assert!(is_there, "{name}: {flag} in `{span}`");
                }
            }
        }
    }
}

/// The help of every verb, and of the verbs under it.
fn helps() -> BTreeMap<String, String> {
    fn add(all: &mut BTreeMap<String, String>, verb: &str) {
        let words: Vec<_> = verb.split(' ').filter(|w| !w.is_empty()).chain(["--help"]).collect();
        let help = run(program().args(&words), &words).ends(0).stdout;
        let under: Vec<_> = help
            .lines()
            .skip_while(|l| *l != "Commands:")
            .skip(1)
            .take_while(|l| l.starts_with("  "))
            .filter_map(|l| l.strip_prefix("  ")?.split(' ').next())
            .filter(|w| !w.is_empty() && *w != "help")
            .map(|w| format!("{verb} {w}").trim().to_owned())
            .collect();
        if !verb.is_empty() {
            all.insert(verb.to_owned(), help.clone());
        }
        for verb in under {
            add(all, &verb);
        }
    }
    let mut all = BTreeMap::new();
    add(&mut all, "");
    all
}

/// Every verb has a row in the table, and the table has no other.
#[test]
fn every_verb_is_in_the_table() {
    let helps = helps();
    for name in READMES {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
        for verb in helps.keys().filter(|v| !v.contains(' ')) {
            let row = text.lines().any(|l| {
                l.starts_with("| `") && spans(l).iter().any(|s| s.split(' ').next() == Some(verb.as_str()))
            });
            assert!(row, "{name}: {verb}");
        }
    }
}
