//! Scripts that run under a key, and processes that can be stopped and killed while they do.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::site::{OWNER, Ran, Site, sandbox};

pub const KEY: &str = "incident-2014/refund-O-502";

/// A script that says in the file `runs` that it ran; what else it does comes after.
pub fn script(then: &str) -> String {
    format!("echo \"$ONEFOLD_FENCING_TOKEN\" >> runs; {then}")
}

/// `onefold once` with a script, and what is to stand before it.
pub fn line<'a>(flags: &[&'a str], script: &'a str) -> Vec<&'a str> {
    [&["once", "--key", KEY], flags, &["--", "sh", "-c", script]].concat()
}

pub fn once(site: &Site, flags: &[&str], script: &str) -> Ran {
    site.run(&line(flags, script))
}

/// The same, started and not waited for; in a process of which we know the id.
pub fn start(site: &Site, flags: &[&str], script: &str) -> Started {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onefold"));
    command.args(line(flags, script)).current_dir(site.folder()).stdin(Stdio::null());
    command.env("ONEFOLD_DATABASE_URL", &site.url).env("ONEFOLD_OWNER", OWNER);
    command.env("ONEFOLD_CONFIG", sandbox()).env_remove("ONEFOLD_QUERIES");
    Started(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

pub struct Started(Child);

impl Started {
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// Kills it as nothing can hinder.
    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    #[track_caller]
    pub fn ends(self, code: i32) -> Output {
        let output = self.0.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{told}");
        output
    }
}

/// The fencing tokens of the runs that there were, one by one.
pub fn runs(site: &Site) -> Vec<String> {
    let text = std::fs::read_to_string(site.folder().join("runs")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Waits until the script has said that it runs for the nth time.
#[track_caller]
pub fn until_it_runs(site: &Site, times: usize) {
    until("it runs", || runs(site).len() >= times);
}

#[track_caller]
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process is there that is not merely a dead one's entry; none is where no id is written yet.
pub fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, state)| !state.trim_start().starts_with('Z'))
}

/// The record of the key.
#[track_caller]
pub fn record(site: &Site) -> Value {
    site.json(&["once", "show", KEY])
}

#[track_caller]
pub fn state(site: &Site) -> String {
    record(site)["state"].as_str().unwrap().to_owned()
}

/// Lets the lease of the key be over, as the database sees it.
pub fn lapse(site: &Site) {
    site.sql("UPDATE onefold_idempotency SET lease_until_us = 1");
}
