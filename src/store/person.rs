//! Who runs this process, by names that he is given and does not choose.

use std::fs::read_to_string;

use super::Store;
use super::enforce::pieces;
use super::rows::Reader;
use super::sql::{Statement, Values};
use crate::core::approval::Person;
use crate::error::Result;

impl Store {
    /// Who runs this process, as the operating system and the journal's database know them.
    pub async fn person(&self) -> Result<Person> {
        let journal = self.journal();
        let dialect = journal.dialect;
        let text = self.queries.get("approvals/login")?;
        let statement = Statement::new(text, &pieces(dialect), &Values::new(), dialect)?;
        let mut connection = journal.connection().await?;
        let rows = journal.fetch(&mut connection, &statement).await?;
        let login =
            rows.first().map(|row| Reader::new(row, "approvals/login").needed("login")).transpose()?;
        Ok(Person { os_user: os_user(), login: login.unwrap_or_default() })
    }
}

/// The name that the operating system gives whoever runs this; empty, which is nobody's, where he may have given it
/// himself.
fn os_user() -> String {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    // A library that is put before the system's own answers as it likes.
    if is_set("LD_PRELOAD") || is_set("LD_AUDIT") || !is_among_all_users() {
        return String::new();
    }
    let accounts = read_to_string("/etc/passwd").unwrap_or_default();
    let uid = rustix::process::geteuid().as_raw().to_string();
    if let Some(name) = name_of(&accounts, &uid) {
        return name.to_owned();
    }
    // Known elsewhere only, as in a directory: a library is asked, and must not be one of his own.
    let name = match is_set("LD_LIBRARY_PATH") {
        true => String::new(),
        false => whoami::username().unwrap_or_default(),
    };
    if is_known(&accounts, &name) { String::new() } else { name }
}

/// The first name that the file of accounts has for a user id; it may have several.
fn name_of<'a>(accounts: &'a str, uid: &str) -> Option<&'a str> {
    accounts.lines().find_map(|line| {
        let mut parts = line.split(':');
        let name = parts.next()?;
        (parts.nth(1)? == uid).then_some(name)
    })
}

/// Whether the file of accounts has a name.
fn is_known(accounts: &str, name: &str) -> bool {
    accounts.lines().any(|line| line.split(':').next() == Some(name))
}

/// Whether this process is not in a namespace of user ids of its own, where it may have given itself any, and a file
/// of accounts, too. Only the kernel's own word counts: whoever has such a namespace may mount what he likes over
/// /proc, or over a file below it.
#[cfg(target_os = "linux")]
fn is_among_all_users() -> bool {
    use std::io::Read as _;

    use rustix::fs::{Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, fstat, fstatfs, open, openat2};

    /// The number of the directory at the root of a procfs.
    const ROOT: u64 = 1;
    let read = || {
        let root = open("/proc", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        if fstatfs(&root)?.f_type != PROC_SUPER_MAGIC || fstat(&root)?.st_ino != ROOT {
            return Ok(None);
        }
        let way = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_MAGICLINKS;
        let file = openat2(&root, "self/uid_map", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty(), way)?;
        let mut map = String::new();
        std::fs::File::from(file).read_to_string(&mut map).map(|_| Some(map))
    };
    let map: std::io::Result<_> = read();
    map.is_ok_and(|map| map.is_some_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"])))
}

/// There are no such namespaces.
#[cfg(not(target_os = "linux"))]
const fn is_among_all_users() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNTS: &str = "root:x:0:0:root:/:/bin/sh\n# a remark\n+::::::\nada:x:1000:100::/:/bin/sh\n\
                            toor:x:0:0::/:/bin/sh\n";

    #[test]
    fn the_first_name_of_a_user_id_is_the_one() {
        assert_eq!(name_of(ACCOUNTS, "0"), Some("root"));
        assert_eq!(name_of(ACCOUNTS, "1000"), Some("ada"));
        assert_eq!(name_of(ACCOUNTS, "100"), None);
        assert!(is_known(ACCOUNTS, "toor") && !is_known(ACCOUNTS, "x") && !is_known("", ""));
    }
}
