//! Who somebody is: no name counts that he may have given himself.

use std::process::Command;

use super::approve::{made_by_another, planned, untouched};
use crate::common::site::{Ran, Site};
use crate::on_each_database;

on_each_database![
    in_a_namespace_of_user_ids_nobody_is_anybody,
    a_library_put_before_the_systems_own_makes_nobody_of_somebody,
];

const NOBODY: &str = "a user whose name says nothing";

/// What the kernel says of a process that is in no such namespace.
const MAP: &str = "0 0 4294967295";

/// Ways to hide what the kernel says, as a shell that is root in its own namespace types them.
fn disguises() -> [String; 5] {
    [
        String::new(),
        "mount -t tmpfs none /proc".to_owned(),
        format!("mount -t tmpfs none /proc; mkdir /proc/self; echo {MAP} > /proc/self/uid_map"),
        format!("mount -t tmpfs none /mnt; echo {MAP} > /mnt/map; mount --bind /mnt/map /proc/$$/uid_map"),
        // A file of the kernel's own, with words of somebody's choosing.
        format!(
            "sh -c 'printf \"{MAP}\" > /proc/$$/comm; sleep 3; true' < /dev/null > /dev/null 2>&1 &\n\
             until [ \"$(cat /proc/$!/comm)\" = \"{MAP}\" ]; do sleep 0.01; done\n\
             mount --bind /proc/$!/comm /proc/$$/uid_map"
        ),
    ]
}

fn in_a_namespace_of_user_ids_nobody_is_anybody(site: &Site) {
    if !Command::new("unshare").args(["-Urm", "true"]).status().is_ok_and(|ended| ended.success()) {
        println!("skipped: what guards this kernel gives no namespaces of user ids");
        return;
    }
    let ours = planned(site);
    as_bob(site, &ours, &["was made by", NOBODY, "does not count as someone else"]);
    let theirs = made_by_another(site, &ours);
    as_bob(site, &theirs, &["was made by somebody-else", NOBODY]);
    untouched(site);
}

/// Whoever takes another name in such a namespace, however he hides it, is refused and not named by it.
fn as_bob(site: &Site, plan: &str, saying: &[&str]) {
    let accounts = site.path("accounts");
    std::fs::write(&accounts, "bob:x:0:0::/:/bin/sh\n").unwrap();
    for disguise in disguises() {
        let script =
            format!("set -e\nmount --bind {} /etc/passwd\n{disguise}\nexec \"$@\"\n", accounts.display());
        let line = ["approve", plan, "--because", "it is me"];
        within(site, &script, &line).fails(7, saying).does_not_print("bob");
    }
}

/// Runs a command as whoever a shell's script makes of the process.
fn within(site: &Site, script: &str, line: &[&str]) -> Ran {
    let plain = site.process(line);
    let mut command = assert_cmd::Command::new("unshare");
    command.args(["-Urm", "sh", "-c", script, "sh"]).arg(plain.get_program()).args(plain.get_args());
    command.current_dir(site.folder());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    crate::common::site::run(&mut command, line)
}

fn a_library_put_before_the_systems_own_makes_nobody_of_somebody(site: &Site) {
    let plan = made_by_another(site, &planned(site));
    let line = ["approve", &plan, "--because", "x"];
    for name in ["LD_PRELOAD", "LD_AUDIT"] {
        let ran = crate::common::site::run(site.command(&line).env(name, "/nowhere/forged.so"), &line);
        assert_eq!(ran.code, Some(7), "{name}: {ran}");
        ran.warns("was made by somebody-else").warns(NOBODY);
    }
    // Where the file of accounts names somebody, no library is asked.
    let ran = crate::common::site::run(site.command(&line).env("LD_LIBRARY_PATH", "/nowhere"), &line);
    ran.ends(0);
}
