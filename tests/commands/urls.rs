//! What is wrong with a URL, a configuration or a user's rights, and what to type next.

use crate::common::site::{Kind, Site, program, run};

/// Runs `init` on a URL, or on what a configuration says.
fn init(line: &[&str]) -> crate::common::site::Ran {
    let line = [&["init"], line].concat();
    run(program().args(&line), &line)
}

#[test]
fn a_url_that_cannot_be_read_is_told_once_and_its_form_is_shown() {
    for (url, why) in [
        ("postgres://me:x@127.0.0.1:port/x", "invalid port number"),
        ("postgres://me@127.0.0.1:1/x?sslmode=bogus", "bogus"),
        ("mysql://me@127.0.0.1:1/x?ssl-mode=bogus", "bogus"),
    ] {
        // A port that nobody listens on is found out before the rest of the URL is read.
        let ran = init(&["--database", &url.replace(":1/", &format!(":{}/", listening()))]);
        let ran = ran.fails(2, &["is no database URL", why, "hint: its form is "]);
        assert_eq!(ran.stderr.matches(why).count(), if why == "bogus" { 2 } else { 1 }, "{ran}");
    }
    for url in ["mysql://root@127.0.0.1/", "mysql://root@127.0.0.1", "mariadb://root@127.0.0.1/?charset=utf8"]
    {
        init(&["--database", url]).fails(2, &["names no database", "mysql://USER@HOST/DATABASE"]);
    }
}

/// A port that takes connections and says nothing.
fn listening() -> u16 {
    let listener = Box::leak(Box::new(std::net::TcpListener::bind("127.0.0.1:0").unwrap()));
    listener.local_addr().unwrap().port()
}

#[test]
fn the_hint_fits_what_is_in_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let no_database = dir.path().join("notes.txt");
    std::fs::write(&no_database, "not a database at all, but long enough to be read as one ".repeat(20))
        .unwrap();
    init(&["--database", &format!("sqlite:{}", no_database.display())])
        .fails(1, &["cannot connect to sqlite:", "is it an SQLite file"]);
    init(&["--database", "postgres://me@127.0.0.1:1/x"]).fails(1, &["is the server up"]);
    let (postgres, mariadb) = (Site::new(Kind::Postgres), Site::new(Kind::Mariadb));
    for site in [&postgres, &mariadb] {
        let (before, options) = site.url.split_once('?').unwrap_or((&site.url, ""));
        let url = format!("{}/no_such_place?{options}", before.rsplit_once('/').unwrap().0);
        init(&["--database", &url]).fails(1, &["no_such_place", "create that database first"]);
    }
}

#[test]
fn a_configuration_says_where_and_what_to_mend() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("onefold.toml");
    let path = path.to_str().unwrap();
    let configured = |text: &str| {
        std::fs::write(path, text).unwrap();
        init(&["--config", path])
    };
    configured("journal = \"${NO_SUCH_URL}\"\n")
        .fails(2, &["onefold.toml: journal: ${NO_SUCH_URL} is not set", "export NO_SUCH_URL="]);
    configured("journal = 1\n").fails(2, &["onefold.toml: line 1: ", "mend line 1"]);
    let passwords = dir.path().join("passwords");
    std::fs::write(&passwords, "db:5432:shop\n").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&passwords, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    configured("password_file = \"passwords\"\n").fails(2, &["line 1 has 3 parts", "* stands for any"]);
}

#[test]
fn a_user_without_rights_is_told_which_are_missing() {
    let site = Site::new(Kind::Postgres);
    site.run(&["init"]).ends(0);
    let user = format!("polite_{}", std::process::id());
    let as_user = {
        let (scheme, rest) = site.url.split_once("://").unwrap();
        let host = rest.split_once('@').map_or(rest, |(_, host)| host);
        format!("{scheme}://{user}:pw@{host}")
    };
    site.sql(&format!("CREATE USER {user} PASSWORD 'pw'"));
    let status = || {
        let line = ["status", "--database", &as_user];
        run(program().args(line), &line)
    };
    status().fails(1, &["permission denied for table onefold_counters", "onefold check"]);
    site.sql("REVOKE USAGE ON SCHEMA public FROM PUBLIC");
    status().fails(1, &["onefold's tables are in schema public", "GRANT USAGE ON SCHEMA public"]);
    site.sql(&format!("DROP USER {user}"));
}
