//! `onefold config`, `completions` and `man`.

use crate::common::site::{Site, text};
use crate::on_each_database;

on_each_database![every_setting_is_told_with_where_it_comes_from, a_file_to_begin_with_sets_nothing];

/// Where each setting comes from, by name.
fn from(json: &serde_json::Value, name: &str) -> (String, String) {
    let of = |member: &str| {
        let settings = json["settings"].as_array().unwrap();
        let found = settings.iter().find(|s| s["name"] == name).unwrap_or_else(|| panic!("{name}: {json:#}"));
        found[member].as_str().unwrap().to_owned()
    };
    (of("value"), of("from"))
}

fn every_setting_is_told_with_where_it_comes_from(site: &Site) {
    let config = site.configured(
        "journal = \"postgres://ops:s3cret@db/shop\"\nowner = \"site\"\n\n[limits]\nmax_steps = 12\n[providers.card]\nkind = \"outbox\"\n",
    );
    let json = site.json(&["config", "show", "--config", &config]);
    assert_eq!(from(&json, "journal").1, "ONEFOLD_DATABASE_URL");
    assert_eq!(from(&json, "owner"), ("ada@desk".into(), "ONEFOLD_OWNER".into()));
    assert_eq!(from(&json, "limits.max_steps"), ("12".into(), format!("{config}:5")));
    assert_eq!(from(&json, "providers.card.kind"), ("outbox".into(), format!("{config}:7")));
    assert_eq!(from(&json, "limits.plan_max_age"), ("15m".into(), "default".into()));
    assert_eq!(from(&json, "config").1, "--config");
    let mut alone = site.command(&["config", "show", "--config", &config]);
    let ran = crate::common::site::run(alone.env_remove("ONEFOLD_DATABASE_URL"), &["config", "show"]).ends(0);
    ran.prints("postgres://ops:***@db/shop").does_not_print("s3cret");
    let by_flag = ["config", "show", "--json", "--database", "mysql://u:s3cret@h/d", "--owner", "eve"];
    let json = site.run(&by_flag).ends(0).does_not_print("s3cret").json();
    assert_eq!(from(&json, "journal"), ("mysql://u:***@h/d".into(), "--database".into()));
    assert_eq!(from(&json, "owner"), ("eve".into(), "--owner".into()));
}

fn a_file_to_begin_with_sets_nothing(site: &Site) {
    let path = text(&site.path("new.toml"));
    site.run(&["config", "init", &path]).ends(0).prints("is written");
    site.run(&["config", "init", &path]).fails(2, &["is there already"]);
    let with = site.json(&["config", "show", "--config", &path]);
    let settings = with["settings"].as_array().unwrap();
    assert!(settings.iter().all(|s| !s["from"].as_str().unwrap().contains("new.toml")), "{with:#}");
    // And every remark in it, made a setting, can be read.
    let written = std::fs::read_to_string(&path).unwrap();
    let set: String = written
        .lines()
        .map(|l| l.strip_prefix("# ").filter(|l| !l.contains("onefold.toml:")).unwrap_or(""))
        .fold(String::new(), |all, l| {
            let is_prose = !l.contains('=') && !l.starts_with('[');
            all + if is_prose { "" } else { l } + "\n"
        });
    let all = site.path("all.toml");
    std::fs::write(&all, set).unwrap();
    let mut command = site.command(&["config", "show", "--config", &text(&all), "--json"]);
    std::fs::write(site.path("onefold.pass"), "").unwrap();
    let mut mode = std::fs::metadata(site.path("onefold.pass")).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o600);
    std::fs::set_permissions(site.path("onefold.pass"), mode).unwrap();
    command.env("PAYMENTS_URL", "postgres://ops@pay/payments").env_remove("ONEFOLD_DATABASE_URL");
    let json = crate::common::site::run(&mut command, &["config", "show"]).ends(0).json();
    assert_eq!(from(&json, "approval.over").0, "CNY:10000");
    assert_eq!(from(&json, "limits.max_steps").0, "5000");
}

#[test]
fn shells_and_man_get_every_verb() {
    let run =
        |line: &[&str]| crate::common::site::run(crate::common::site::program().args(line), line).ends(0);
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]).stdout;
        for verb in ["freeze", "reconcile", "approve", "watch"] {
            assert!(script.contains(verb), "{shell}: {verb}");
        }
    }
    run(&["completions", "bash", "--json"]).json();
    assert!(run(&["man"]).stdout.starts_with(".ie"), "a page for man");
    let dir = tempfile::tempdir().unwrap();
    let into = text(&dir.path().join("man1"));
    run(&["man", "--dir", &into]).prints("pages are in");
    let page = std::fs::read_to_string(dir.path().join("man1/onefold-apply.1")).unwrap();
    assert!(page.contains("canary") && page.contains(".SH EXAMPLES\n.nf\n"), "{page}");
    assert!(page.contains("\n\\&  onefold apply PL\\-5c1d2e3f40\n"), "an example keeps its line: {page}");
}
