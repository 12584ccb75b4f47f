//! A payment provider behind HTTP on loopback: books of charges, idempotency keys, lists in pages, and
//! the sandbox's ways to misbehave. For whole commands that move (no) money through `kind = "http"`.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::server::{Reply, Seen, Server};

/// Shares are of all requests, from 0 to 1; which ones, the seed decides.
#[derive(Clone, Debug, Default)]
pub struct Misbehaviour {
    /// Carries the request out, and hangs up.
    pub lose_answer: f64,
    /// Answers 503, and has done nothing.
    pub error_rate: f64,
    /// Refuses for good.
    pub refuse: f64,
    /// Carries the request out without looking at its key: only what is left of the charge saves it.
    pub forget_key: f64,
    /// Takes requests, and finishes them when it has been asked.
    pub pending: f64,
    pub seed: u64,
}

#[derive(Clone, Debug)]
struct Book {
    amount: i64,
    refunded: i64,
}

#[derive(Clone, Debug)]
struct Refund {
    id: String,
    key: String,
    charge: String,
    amount: i64,
    status: &'static str,
}

#[derive(Default)]
struct Books {
    charges: BTreeMap<String, Book>,
    refunds: Vec<Refund>,
    /// What was answered under a key, with the amount that was asked for.
    answered: BTreeMap<String, (Value, u16, Value)>,
    asked: u64,
}

/// Ends with its value.
pub struct Pay {
    server: Server,
    books: Arc<Mutex<Books>>,
}

impl Pay {
    /// With captured charges, by their ids and amounts in CNY.
    pub fn new<'a>(charges: impl IntoIterator<Item = (&'a str, i64)>, misbehaviour: Misbehaviour) -> Self {
        let charges = charges.into_iter().map(|(id, amount)| (id.to_owned(), Book { amount, refunded: 0 }));
        let books = Arc::new(Mutex::new(Books { charges: charges.collect(), ..Books::default() }));
        let server = Server::new({
            let books = books.clone();
            move |seen| arrives(&mut books.lock().unwrap(), seen, &misbehaviour)
        });
        Self { server, books }
    }

    /// The configuration of `[providers.NAME]` that fits it, with the token in the variable PAY_TOKEN.
    pub fn configuration(&self, name: &str) -> String {
        CONFIGURATION.replace("NAME", name).replace("URL", &self.server.url())
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.server.seen()
    }

    /// What went back of a charge.
    pub fn refunded(&self, charge: &str) -> i64 {
        self.books.lock().unwrap().charges[charge].refunded
    }

    /// How many refunds there are of a charge that did not fail.
    pub fn refunds(&self, charge: &str) -> usize {
        let books = self.books.lock().unwrap();
        books.refunds.iter().filter(|r| r.charge == charge && r.status != "failed").count()
    }
}

const CONFIGURATION: &str = r#"
[providers.NAME]
kind = "http"
base_url = "URL"
timeout = "2s"
secrets.token = { env = "PAY_TOKEN" }
headers = { Authorization = "Bearer {secret:token}" }
breaker = { failures = 1000 }

[providers.NAME.refund]
method = "POST"
path = "/charges/{payment_id}/refunds"
idempotent = true
headers = { Idempotency-Key = "{key}" }
json = { amount = "{amount_minor}", currency = "{currency}", why = "{reason}" }
reference = "/id"
amount = "/amount"
reason = "/error"
when = [
    { status = "2xx", at = { "/status" = "done" }, means = "done" },
    { status = "2xx", at = { "/status" = "pending" }, means = "accepted" },
    { status = 402, means = "refused" },
]

[providers.NAME.void]
method = "POST"
path = "/charges/{payment_id}/void"
when = [{ status = 200, means = "done" }]

[providers.NAME.query]
method = "GET"
path = "/charges/{payment_id}/refunds"

[providers.NAME.query.list]
items = "/items"
has_more = "/more"
next = { after = "{last_reference}" }
key = "/key"
status = "/status"
reference = "/id"
amount = "/amount"
statuses = { done = "done", pending = "accepted", failed = "refused" }

[providers.NAME.charge]
method = "GET"
path = "/charges/{payment_id}"
amount = "/amount"
refunded = "/refunded"
currency = "/currency"
when = [{ status = 200, means = "captured" }, { status = 404, means = "not_known" }]
"#;

impl Misbehaviour {
    fn befalls(&self, what: &str, share: f64, asked: u64) -> bool {
        let mut hasher = DefaultHasher::new();
        (self.seed, what, asked).hash(&mut hasher);
        (hasher.finish() >> 11) as f64 / ((1_u64 << 53) as f64) < share
    }
}

fn arrives(books: &mut Books, seen: &Seen, bad: &Misbehaviour) -> Reply {
    if seen.header("authorization").is_none_or(|a| !a.starts_with("Bearer ")) {
        return Reply::json(401, json!({ "error": "who are you?" }));
    }
    books.asked += 1;
    let asked = books.asked;
    let befalls = |what: &str, share: f64| bad.befalls(what, share, asked);
    if befalls("error_rate", bad.error_rate) {
        return Reply::json(503, json!({ "error": "later" })).with("retry-after", "0");
    }
    let path = seen.path().to_owned();
    let parts: Vec<&str> = path.split('/').collect();
    match (seen.method.as_str(), parts.as_slice()) {
        ("GET", ["", "charges", id]) => match books.charges.get(*id) {
            None => Reply::json(404, json!({ "error": "no such charge" })),
            Some(book) => Reply::json(
                200,
                json!({ "amount": book.amount, "refunded": book.refunded, "currency": "CNY" }),
            ),
        },
        ("GET", ["", "charges", id, "refunds"]) => list(books, id, seen),
        ("POST", ["", "charges", id, "refunds"]) => {
            let (status, body) = refund(books, id, seen, &befalls, bad);
            if befalls("lose_answer", bad.lose_answer) {
                return Reply::HangUp;
            }
            Reply::json(status, body)
        }
        _ => Reply::json(404, json!({ "error": "no such place" })),
    }
}

/// One to a page, the newest last.
fn list(books: &mut Books, charge: &str, seen: &Seen) -> Reply {
    for refund in books.refunds.iter_mut().filter(|r| r.charge == charge && r.status == "pending") {
        refund.status = "done";
    }
    let after = seen.query().into_iter().find(|(name, _)| name == "after").map(|(_, value)| value);
    let of: Vec<&Refund> = books.refunds.iter().filter(|r| r.charge == charge).collect();
    let start = after.map_or(0, |after| of.iter().position(|r| r.id == after).map_or(0, |at| at + 1));
    let items: Vec<Value> = of[start..]
        .iter()
        .take(1)
        .map(|r| json!({ "id": r.id, "key": r.key, "amount": r.amount, "status": r.status }))
        .collect();
    Reply::json(200, json!({ "items": items, "more": start + 1 < of.len() }))
}

fn refund(
    books: &mut Books,
    charge: &str,
    seen: &Seen,
    befalls: &impl Fn(&str, f64) -> bool,
    bad: &Misbehaviour,
) -> (u16, Value) {
    let Some(key) = seen.header("idempotency-key").map(str::to_owned) else {
        return (400, json!({ "error": "no key" }));
    };
    let amount = seen.json()["amount"].clone();
    if let Some((meant, status, body)) = books.answered.get(&key)
        && !befalls("forget_key", bad.forget_key)
    {
        if *meant != amount {
            return (409, json!({ "error": "this key was for another amount" }));
        }
        return (*status, body.clone());
    }
    let (status, body) = carry_out(books, charge, &key, &amount, befalls, bad);
    books.answered.insert(key, (amount, status, body.clone()));
    (status, body)
}

fn carry_out(
    books: &mut Books,
    charge: &str,
    key: &str,
    amount: &Value,
    befalls: &impl Fn(&str, f64) -> bool,
    bad: &Misbehaviour,
) -> (u16, Value) {
    let id = format!("re_{}", books.refunds.len() + 1);
    let Some(book) = books.charges.get_mut(charge) else {
        return (402, json!({ "error": "no such charge" }));
    };
    let Some(amount) = amount.as_i64().filter(|a| *a > 0) else {
        return (402, json!({ "error": "no amount" }));
    };
    if amount > book.amount - book.refunded {
        return (402, json!({ "error": "more than is left of the charge" }));
    }
    let status = match () {
        () if befalls("refuse", bad.refuse) => "failed",
        () if befalls("pending", bad.pending) => "pending",
        () => "done",
    };
    if status != "failed" {
        book.refunded += amount;
    }
    let (key, charge) = (key.to_owned(), charge.to_owned());
    books.refunds.push(Refund { id: id.clone(), key, charge, amount, status });
    match status {
        "failed" => (402, json!({ "error": "the bank refuses it" })),
        status => (200, json!({ "id": id, "status": status, "amount": amount })),
    }
}
