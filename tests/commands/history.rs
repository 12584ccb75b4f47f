//! `onefold history`

use crate::common::site::{OWNER, Site};
use crate::{doubled, on_each_database};

on_each_database![tells_who_did_what_to_an_order_and_under_which_plan];

fn tells_who_did_what_to_an_order_and_under_which_plan(site: &Site) {
    let mut book = doubled();
    book.bought("C", 900);
    book.bought("D", 910);
    site.import(&book.ledgers);
    let (freeze, plan) = (site.freeze(), site.plan());
    site.run(&["apply", &plan, "--yes"]).ends(0);
    site.run(&["history", "--order", "B"])
        .ends(0)
        .prints(&format!("{OWNER} {plan} I-"))
        .prints("tenant t")
        .prints("moved message M-B QUEUED → QUARANTINED")
        .prints("moved order B PAID → REFUNDING")
        .prints("sent payment P-B REFUNDING → REFUNDED 10.00 CNY: refund under key")
        .prints("moved order B REFUNDING → REFUNDED")
        .does_not_print("order D");
    // The one that was kept was moved by no step; what became of its purchase is its story, too.
    site.run(&["history", "--order", "A"])
        .ends(0)
        .prints("moved order B PAID → REFUNDING")
        .does_not_print("order D");
    site.run(&["history", "--plan", &plan])
        .ends(0)
        .prints(&freeze)
        .prints("planned")
        .prints("applied")
        .prints("order D");
    site.run(&["history", "--order", "B", "--tenant", "t"]).ends(0).prints("moved order B");
    site.run(&["history", "--order", "B", "--tenant", "u"]).ends(0).prints("no such entry");
    let all = site.json(&["history"]);
    let entries = all["entries"].as_array().unwrap();
    assert_eq!(entries[0]["event"], "imported");
    assert!(entries.windows(2).all(|w| w[0]["seq"].as_i64() < w[1]["seq"].as_i64()));
    let refund =
        entries.iter().find(|e| e["row_id"] == "P-B" && e["to"] == "REFUNDED" && e["event"] == "moved");
    assert_eq!(refund.unwrap()["amount_minor"], 1000);
    site.run(&["history", "--order", "nobody"]).ends(0).prints("The journal has no such entry.");
}
