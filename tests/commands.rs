//! Whole commands, as they are typed, on SQLite, PostgreSQL and MariaDB: what they print, how they
//! end and what they leave behind. A file for each verb, and one for what all of them keep to.

mod common;

#[path = "commands/apply.rs"]
mod apply;
#[path = "commands/approve.rs"]
mod approve;
#[path = "commands/belonging.rs"]
mod belonging;
#[path = "commands/config.rs"]
mod config;
#[path = "commands/converge.rs"]
mod converge;
#[path = "commands/demo.rs"]
mod demo;
#[path = "commands/every_verb.rs"]
mod every_verb;
#[path = "commands/freeze.rs"]
mod freeze;
#[path = "commands/guard.rs"]
mod guard;
#[path = "commands/history.rs"]
mod history;
#[path = "commands/import.rs"]
mod import;
#[path = "commands/init.rs"]
mod init;
#[path = "commands/limits.rs"]
mod limits;
#[path = "commands/outbox.rs"]
mod outbox;
#[path = "commands/pace.rs"]
mod pace;
#[path = "commands/person.rs"]
mod person;
#[path = "commands/plan.rs"]
mod plan;
#[path = "commands/reconcile.rs"]
mod reconcile;
#[path = "commands/report.rs"]
mod report;
#[path = "commands/requeue.rs"]
mod requeue;
#[path = "commands/retention.rs"]
mod retention;
#[path = "commands/run.rs"]
mod run;
#[path = "commands/settle.rs"]
mod settle;
#[path = "commands/show.rs"]
mod show;
#[path = "commands/statement.rs"]
mod statement;
#[path = "commands/status.rs"]
mod status;
#[path = "commands/thaw.rs"]
mod thaw;
#[path = "commands/trace.rs"]
mod trace;
#[path = "commands/urls.rs"]
mod urls;
#[path = "commands/verify.rs"]
mod verify;
#[path = "commands/watch.rs"]
mod watch;

/// A purchase that became two orders, both paid and backed: A is kept, B is given back.
fn doubled() -> common::book::Book {
    let mut book = common::book::Book::new();
    book.bought("A", 0);
    book.bought("B", 10);
    book.message("M-B", "B", "ticket.issue", "QUEUED");
    book
}
