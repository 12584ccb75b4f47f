//! A journal that somebody brings himself moves nothing that belongs to another.

use crate::common::site::{Kind, Ran, Site, program, run, text};
use crate::{doubled, on_each_database};

on_each_database![
    a_journal_of_ones_own_reads_and_moves_nothing,
    a_name_that_is_read_from_a_ledger_makes_no_journal,
    what_an_older_version_set_up_is_marked_by_init,
    in_a_copy_its_owner_decides,
];

const RULES: &str = "[approval]\nrequired = true\n[providers.\"*\"]\nkind = \"sandbox\"\n";

/// A journal in an SQLite file of its own, and the configuration by which it is over a site's ledgers.
struct Own<'s> {
    site: &'s Site,
    journal: String,
    config: String,
}

impl<'s> Own<'s> {
    fn over(site: &'s Site) -> Self {
        let journal = format!("sqlite:{}", text(&site.path("own.db")));
        let ledgers = ["orders", "payments", "inventory", "messages"]
            .map(|ledger| format!("[ledgers.{ledger}]\nurls = [\"{}\"]\n", site.url));
        let config = text(&site.path("of-ones-own.toml"));
        let rest = "[providers.\"*\"]\nkind = \"sandbox\"\n";
        std::fs::write(&config, format!("journal = \"{journal}\"\n{}{rest}", ledgers.concat())).unwrap();
        Self { site, journal, config }
    }

    /// Sets the journal up, over ledgers in its own file.
    fn set_up(&self) {
        self.alone(&["init", "--database", &self.journal]).ends(0);
    }

    fn run(&self, line: &[&str]) -> Ran {
        self.alone(&[line, &["--config", &self.config]].concat())
    }

    fn alone(&self, line: &[&str]) -> Ran {
        let mut command = program();
        command.current_dir(self.site.folder()).env("ONEFOLD_OWNER", "eve@desk").args(line);
        run(&mut command, line)
    }
}

fn a_journal_of_ones_own_reads_and_moves_nothing(site: &Site) {
    site.configure(RULES);
    site.import(&doubled().ledgers);
    site.run(&["init", "--enforce"]).ends(0);
    site.run(&["freeze", "--show", "show", "--enforce", "--reason", "x"]).ends(0);
    let before = site.ledgers();
    let folder = site.files(&doubled().ledgers);
    let own = Own::over(site);
    own.run(&["init"]).fails(7, &["belongs to another journal", "its freezes and its rule", "onefold init"]);
    assert_eq!(site.column("SELECT COUNT(*) FROM onefold_belongs"), ["1"]);
    own.set_up();
    let refused: [&[&str]; 13] = [
        &["init"],
        &["init", "--enforce"],
        &["init", "--enforce=off"],
        &["import", &folder],
        &["freeze", "--show", "show", "--advisory", "--reason", "x"],
        &["plan"],
        &["apply", "PL-1", "--yes"],
        &["approve", "PL-1", "--because", "x"],
        &["converge"],
        &["settle", "key", "--as", "refused", "--because", "x"],
        &["requeue", "M-B", "--tenant", "t", "--because", "x"],
        &["guard", "install", "--ledger", "payments"],
        &["guard", "remove", "--ledger", "payments"],
    ];
    for line in refused {
        own.run(line).fails(7, &["belongs to another journal"]);
    }
    for line in [&["status"][..], &["reconcile"], &["history"], &["trace"]] {
        own.run(line).ends(0).warns("note: ").warns("belongs to another journal");
    }
    let checks = own.run(&["check", "--json"]).ends(2).json();
    let is_told = |c: &serde_json::Value| {
        c["result"] == "refused" && c["message"].as_str().unwrap().contains("belongs to another journal")
    };
    assert!(checks["checks"].as_array().unwrap().iter().any(is_told), "{checks:#}");
    let checks = site.run(&["check", "--json"]).json();
    let is_ours = |c: &serde_json::Value| c["message"] == "belongs to this journal" && c["result"] == "ok";
    assert!(checks["checks"].as_array().unwrap().iter().any(is_ours), "{checks:#}");
    assert_eq!(site.ledgers(), before);
    site.run(&["plan"]).ends(0).prints("It needs another person's approval");
}

fn a_name_that_is_read_from_a_ledger_makes_no_journal(site: &Site) {
    // The site's journal lives apart.
    let first = Own::over(site);
    first.set_up();
    first.run(&["init"]).ends(0);
    first.run(&["import", &site.files(&doubled().ledgers)]).ends(0);
    first.run(&["plan"]).ends(0);
    let name = site.column("SELECT journal FROM onefold_belongs").concat();
    // Another file takes its place, and says that it has its name.
    std::fs::rename(site.path("own.db"), site.path("first.db")).unwrap();
    first.set_up();
    first.run(&["plan"]).fails(7, &["belongs to another journal", &name[..12]]);
    site.execute(&first.journal, &format!("UPDATE onefold_belongs SET journal = '{name}'"));
    first.run(&["plan"]).fails(7, &["belongs to another journal"]);
    // Nor is the ledgers' database a home of its own.
    site.run(&["init"]).fails(7, &["belongs to another journal"]);
}

fn what_an_older_version_set_up_is_marked_by_init(site: &Site) {
    site.configure(RULES);
    site.import(&doubled().ledgers);
    site.freeze();
    site.sql("DROP TABLE onefold_belongs");
    site.run(&["plan"]).fails(2, &["onefold init"]);
    let own = Own::over(site);
    own.set_up();
    own.run(&["init"]).fails(7, &["is the home of another journal", "onefold init"]);
    site.run(&["init"]).ends(0);
    site.run(&["init"]).ends(0);
    site.run(&["plan"]).ends(0);
    own.run(&["init"]).fails(7, &["belongs to another journal"]);
}

fn in_a_copy_its_owner_decides(site: &Site) {
    site.configure(RULES);
    site.import(&doubled().ledgers);
    let own = Own::over(site);
    own.set_up();
    // As it is, a copy of all of it belongs to the journal that is in it.
    site.run(&["plan"]).ends(0);
    site.sql("DELETE FROM onefold_belongs");
    own.run(&["plan"]).fails(2, &["onefold init"]);
    own.run(&["init"]).ends(0);
    own.run(&["plan"]).ends(0);
    site.run(&["plan"]).fails(7, &["belongs to another journal"]);
    if site.kind() == Kind::Sqlite {
        own.run(&["check"]).prints("belongs to this journal");
    }
}
