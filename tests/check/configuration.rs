//! What is wrong before any SQL is read.

use super::site::{Engine, Site, as_user, server};

/// Makes onefold's own tables wherever the configuration puts them.
fn init(site: &Site) {
    site.check(&[]);
    assert!(site.onefold(&["init"]).status.success());
}

fn broken(toml: &str) -> (Site, super::site::Found) {
    let mut site = Site::foreign(Engine::Sqlite);
    site.toml.push_str(toml);
    let found = site.check(&[]);
    (site, found)
}

/// It ends before there is a report.
#[track_caller]
fn assert_error(found: &super::site::Found, parts: &[&str]) {
    assert_eq!(found.exit, Some(2), "{}", found.text);
    let error = found.json.to_string();
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let (_site, found) = broken("acept = \"x\"\n");
    assert_error(&found, &["onefold.toml: line 4", "unknown field `acept`"]);
}

#[test]
fn a_variable_that_is_not_set_is_named() {
    let mut site = Site::foreign(Engine::Sqlite);
    site.toml.push_str("journal = \"postgres://ops:secret@${NO_SUCH_HOST}/shop\"\n");
    let found = site.check(&[]);
    assert_error(&found, &["onefold.toml: journal: ${NO_SUCH_HOST} is not set", "export NO_SUCH_HOST="]);
    assert!(!found.text.contains("secret"), "{}", found.text);
}

#[test]
fn a_file_that_shadows_nothing_is_named() {
    let site = Site::foreign(Engine::Sqlite);
    site.file("moves/order.refund.sql", "-- A slip of the pen.\nSELECT 1");
    assert_error(
        &site.check(&[]),
        &["moves/order.refund.sql shadows no file of ours", "moves/payment.refunding.sql"],
    );
}

#[test]
fn a_status_that_stands_for_two_is_named() {
    let (_site, found) = broken("[status.order]\nPAID = 20\nTICKETED = 20\n");
    assert_error(&found, &["[status.order]", "stands for PAID and for TICKETED"]);
}

#[test]
fn databases_that_do_not_answer_are_named_and_the_others_are_looked_at() {
    let mut site = Site::foreign(Engine::Sqlite);
    let ours = site.url.clone();
    let gone = site.path("gone.db");
    site.toml = format!(
        "providers.\"*\".kind = \"sandbox\"\njournal = {ours:?}\n[ledgers]\norders = {{ urls = [{ours:?}] }}\ninventory = {{ urls = [{ours:?}] }}\n\
         payments = {{ urls = [\"postgres://ops:hunter2@127.0.0.1:1/pay\"] }}\nmessages = {{ urls = [\"sqlite:{gone}\"] }}\n"
    );
    let found = site.check(&[]);
    assert_eq!(found.exit, Some(2));
    found.says(
        "refused",
        "postgres://ops:***@127.0.0.1:1/pay",
        "cannot connect to postgres://ops:***@",
        "is the server up",
    );
    found.says("refused", &format!("sqlite:{gone}"), "there is no database", "onefold init");
    assert_eq!(found.all("refused").len(), 2, "{:#?}", found.all("refused"));
    found.says("ok", "ledgers/orders.sql", "3 rows decoded", "");
    assert!(!found.text.contains("hunter2"), "{}", found.text);
}

#[test]
fn a_wrong_password_is_not_printed() {
    let mut site = Site::foreign(Engine::Sqlite);
    site.toml
        .push_str(&format!("journal = {:?}\n", as_user(&server(Engine::Mariadb), "nobody-there", "hunter2")));
    let found = site.check(&[]);
    assert_eq!((found.exit, found.all("refused").len()), (Some(2), 1), "{}", found.text);
    assert!(found.text.contains("nobody-there:***@") && !found.text.contains("hunter2"), "{}", found.text);
}

#[test]
fn a_shard_that_is_named_twice_is_refused() {
    let mut site = Site::foreign(Engine::Sqlite);
    let ours = site.url.clone();
    site.toml = format!(
        "providers.\"*\".kind = \"sandbox\"\njournal = {ours:?}\n[ledgers]\norders = {{ urls = [{ours:?}, {ours:?}] }}\n\
         payments = {{ urls = [{ours:?}] }}\ninventory = {{ urls = [{ours:?}] }}\nmessages = {{ urls = [{ours:?}] }}\n"
    );
    site.check(&[]).only(
        "refused",
        "onefold.toml",
        "[ledgers.orders] names …shop.db twice",
        "remove url 2 of the list",
    );
}

#[test]
fn a_journal_without_our_tables_is_named() {
    let mut site = Site::foreign(Engine::Sqlite);
    let (ours, bare) = (site.url.clone(), site.path("bare.db"));
    super::site::sql(&format!("sqlite:{bare}?mode=rwc"), "CREATE TABLE x (y TEXT)");
    let ledgers =
        ["orders", "payments", "inventory", "messages"].map(|l| format!("{l} = {{ urls = [{ours:?}] }}"));
    site.toml = format!(
        "providers.\"*\".kind = \"sandbox\"\njournal = \"sqlite:{bare}\"\n[ledgers]\n{}\n",
        ledgers.join("\n")
    );
    site.check(&[]).only("refused", &format!("sqlite:{bare}"), "has no onefold tables", "onefold init");
}

#[test]
fn a_status_that_moves_lead_to_needs_a_value() {
    let (_site, found) = broken("[status.message]\nQUEUED = \"QUEUED\"\nDEAD = \"DEAD\"\n");
    found.only(
        "refused",
        "onefold.toml",
        "[status.message] gives no value for IN_FLIGHT, CONSUMED, QUARANTINED, and moves lead to QUARANTINED",
        "[status.message]: QUARANTINED = ",
    );
}

#[test]
fn a_status_that_is_only_read_may_lack_a_value() {
    let (_site, found) =
        broken("[status.message]\nQUEUED = \"QUEUED\"\nDEAD = \"DEAD\"\nQUARANTINED = \"ON_HOLD\"\n");
    found.is_proven().says(
        "warning",
        "onefold.toml",
        "gives no value for IN_FLIGHT, CONSUMED",
        "could not be read",
    );
}

#[test]
fn theirs_are_not_moved_in_our_tables() {
    let site = Site::foreign(Engine::Sqlite);
    site.remove("moves/payment.sql");
    site.check(&[]).only(
        "refused",
        "moves/payment.sql",
        "payments are read from your tables and moved to AUTHORIZED, CAPTURED, …in ours: your folder has no moves/payment.sql",
        "onefold queries export",
    );
    // Files for some moves leave the others.
    site.file("moves/payment.refunding.sql", "-- One move.\nUPDATE payments SET status = :to WHERE tenant_id = :tenant_id AND payment_id = :id AND status IN (:from)");
    let found = site.check(&["--try-moves"]);
    found.says(
        "refused",
        "moves/payment.sql",
        "moved to AUTHORIZED, CAPTURED, FAILED, VOIDING, VOIDED, REFUNDED in ours",
        "",
    );
}

#[test]
fn moves_of_theirs_on_our_tables_are_worth_a_look() {
    let site = Site::foreign(Engine::Sqlite);
    site.remove("ledgers/orders.sql");
    site.check(&[]).is_proven().says(
        "warning",
        "moves/order.sql",
        "is yours, and the ledger is read by our ledgers/orders.sql",
        "",
    );
}

#[test]
fn messages_that_nothing_moves_are_unproven_until_a_reason_is_given() {
    let mut site = Site::foreign(Engine::Sqlite);
    site.remove("moves/message.sql");
    site.check(&[]).only(
        "unproven",
        "moves/message.sql",
        "messages are read from your tables and moved to QUARANTINED",
        "[exec] message = …[accept] \"moves/message\" = ",
    );
    site.toml.push_str("[accept]\n\"moves/message\" = \"the queue is stopped by hand\"\n");
    site.check(&[]).is_proven().says(
        "accepted",
        "moves/message.sql",
        "accepted: the queue is stopped by hand",
        "",
    );
}

#[test]
fn a_command_is_unproven_and_must_be_there() {
    let mut site = Site::foreign(Engine::Sqlite);
    site.remove("moves/message.sql");
    site.toml.push_str("[exec]\nmessage = [\"cat\"]\n");
    site.check(&["--try-moves"]).says(
        "unproven",
        "moves/message",
        "cat makes the moves: that it compares",
        "[accept] \"moves/message\"",
    );
    site.toml = site.toml.replace("[\"cat\"]", "[\"no-such-program\", \"--quarantine\"]");
    site.check(&[]).only("refused", "onefold.toml", "[exec] message runs no-such-program", "whole path");
    site.toml = "providers.\"*\".kind = \"sandbox\"\nafter_apply = [\"no-such-program\"]\n[exec]\nmessage = [\"cat\"]\n[accept]\n\"moves/message\" = \"tried\"\n".to_owned();
    site.check(&[]).only("refused", "onefold.toml", "after_apply runs no-such-program", "whole path");
}

#[test]
fn a_foreign_schema_without_provider_is_worth_a_look() {
    let mut site = Site::foreign(Engine::Sqlite);
    site.toml.clear();
    site.check(&[]).is_proven().says("warning", "onefold.toml", "names no provider", "[providers");
}

#[test]
fn a_ledger_without_triggers_of_its_own_is_worth_a_look() {
    let site = Site::foreign(Engine::Sqlite);
    site.remove("enforce/sqlite/payments.sql");
    site.check(&[]).is_proven().says(
        "warning",
        "enforce/",
        "`freeze --enforce` is refused: …your queries have no enforce/sqlite/payments.sql",
        "onefold queries export",
    );
}

#[test]
fn reasons_that_accept_nothing_are_named() {
    let (_site, found) = broken("[accept]\n\"moves/order\" = \"why not\"\n\"moves/hold\" = \" \"\n");
    found.is_proven();
    found.says("warning", "onefold.toml", "[accept] \"moves/order\" accepts nothing", "remove it");
    found.says("warning", "onefold.toml", "[accept] \"moves/hold\" gives no reason", "remove it");
}

#[test]
fn an_id_in_two_shards_is_named() {
    let (mut site, other) = (Site::foreign(Engine::Sqlite), Site::embedded(Engine::Sqlite));
    let (ours, theirs) = (site.url.clone(), other.url.clone());
    // A shard of this journal's, and not the home of one of its own.
    super::site::sql(&theirs, "DELETE FROM onefold_belongs");
    site.toml = format!(
        "providers.\"*\".kind = \"sandbox\"\njournal = {ours:?}\n[ledgers]\norders = {{ urls = [{ours:?}, {theirs:?}] }}\n\
         payments = {{ urls = [{ours:?}] }}\ninventory = {{ urls = [{ours:?}] }}\nmessages = {{ urls = [{ours:?}] }}\n"
    );
    init(&site);
    site.check(&[]).is_proven().says(
        "warning",
        "ledgers/orders.sql",
        "order O-1 of tenant shop is in two shards",
        "ids must be unique",
    );
}
