//! A provider with books of its own, which loses, repeats, delays, refuses and forgets by the seed, and
//! notes every real movement of money.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use onefold::core::ledger::Payment;
use onefold::core::status::PaymentStatus;
use onefold::core::time::{Span, Timestamp};
use onefold::error::Result;
use onefold::providers::{Answer, Ask, Charge, ChargeState, Found, Provider, Request};

use super::dice::Dice;
use super::stage::{pause_or_die, tell};

/// How a bank treats what it is asked; shares are in a hundred.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manners {
    /// Requests that are lost, or arrive late.
    pub loses_request: usize,
    pub loses_answer: usize,
    pub delivers_twice: usize,
    /// Takes a request and finishes it later.
    pub accepts: usize,
    pub refuses: usize,
    /// The connection cannot be made.
    pub unreachable: usize,
    /// Does not answer when it is asked.
    pub silent: usize,
    /// After which it knows no key any more; none for never.
    pub key_lifetime: Option<Span>,
    /// Finds a request of old by the refunds that it lists.
    pub lists: bool,
    /// Would give back more than it has.
    pub gives_too_much: bool,
}

#[derive(Clone, Debug)]
pub struct Account {
    pub status: PaymentStatus,
    pub amount_minor: i64,
    pub refunded_minor: i64,
    pub refund_refused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Accepted,
    Done,
    Refused,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub charge: String,
    pub ask: Ask,
    pub fate: Fate,
    first_at: Timestamp,
}

/// Money that moved, or an authorization that was let go of.
#[derive(Clone, Debug)]
pub struct Movement {
    pub charge: String,
    pub ask: Ask,
    pub key: String,
}

#[derive(Default)]
pub struct Books {
    pub accounts: BTreeMap<String, Account>,
    /// What it knows of by key. A key that is forgotten stands in `forgotten`.
    pub requests: BTreeMap<String, Entry>,
    pub forgotten: Vec<(String, Entry)>,
    pub movements: Vec<Movement>,
    /// Requests on their way.
    pub wire: Vec<(Request, Timestamp)>,
    /// Of which the ledger says that the buyer disputes them.
    pub told_disputed: BTreeSet<String>,
    /// What nobody may ask for, and somebody did.
    pub outrages: Vec<String>,
    pub calm: bool,
}

pub struct Bank {
    pub books: Mutex<Books>,
    manners: Manners,
    dice: Arc<Dice>,
}

fn currency() -> onefold::core::money::Currency {
    "CNY".parse().unwrap()
}

pub fn name_of(payment: &Payment) -> String {
    payment.provider_txn_id.clone().unwrap_or_else(|| payment.payment_id.to_string())
}

impl Bank {
    pub fn new(payments: &[Payment], manners: Manners, dice: Arc<Dice>) -> Self {
        let accounts = payments.iter().map(|p| (name_of(p), Account::of(p))).collect();
        Self { books: Mutex::new(Books { accounts, ..Books::default() }), manners, dice }
    }

    /// No more faults: what is on its way arrives or is lost, what was taken is finished.
    pub fn calm_down(&self, now: Timestamp) {
        let wire = std::mem::take(&mut self.books.lock().unwrap().wire);
        for (request, _) in wire {
            if self.dice.percent(50) {
                self.arrives(&request, now);
            }
        }
        let mut books = self.books.lock().unwrap();
        books.calm = true;
        let open: Vec<_> =
            books.requests.iter().filter(|(_, e)| e.fate == Fate::Accepted).map(|(k, _)| k.clone()).collect();
        for key in open {
            let refused = self.manners.refuses > 0 && self.dice.percent(30);
            books.finish(&key, refused, self.manners.gives_too_much);
        }
    }

    /// One request that is on its way arrives now, or is lost for good.
    pub fn deliver_one(&self, now: Timestamp) {
        let next = {
            let wire = &mut self.books.lock().unwrap().wire;
            (!wire.is_empty()).then(|| wire.remove(0))
        };
        if let Some((request, _)) = next {
            tell(|| format!("a request about {} that was on its way arrives", request.charge.payment_id));
            self.arrives(&request, now);
        }
    }

    /// Whether a request is on its way.
    pub fn is_wired(&self) -> bool {
        !self.books.lock().unwrap().wire.is_empty()
    }

    fn chance(&self, share: usize) -> bool {
        share > 0 && !self.books.lock().unwrap().calm && self.dice.percent(share)
    }

    fn forget(&self, now: Timestamp) {
        let Some(lifetime) = self.manners.key_lifetime else { return };
        let mut books = self.books.lock().unwrap();
        let old: Vec<_> = books
            .requests
            .iter()
            .filter(|(_, e)| e.fate != Fate::Accepted && now.since(e.first_at) >= lifetime)
            .map(|(k, _)| k.clone())
            .collect();
        for key in old {
            let entry = books.requests.remove(&key).unwrap();
            books.forgotten.push((key, entry));
        }
    }

    /// A request is there: it does what is asked, unless it knows the key.
    fn arrives(&self, request: &Request, now: Timestamp) -> Fate {
        self.forget(now);
        let (accepts, refuses) = (self.chance(self.manners.accepts), self.chance(self.manners.refuses));
        let charge =
            request.charge.provider_txn_id.clone().unwrap_or_else(|| request.charge.payment_id.to_string());
        let mut books = self.books.lock().unwrap();
        if let Some(known) = books.requests.get(&request.key) {
            if (&known.charge, known.ask) != (&charge, request.ask) {
                let outrage = format!("key {} is used for {:?} of {charge}, too", request.key, request.ask);
                books.outrages.push(outrage);
                return Fate::Refused;
            }
            return known.fate;
        }
        let entry = Entry { charge, ask: request.ask, fate: Fate::Accepted, first_at: now };
        books.requests.insert(request.key.clone(), entry);
        if !accepts {
            books.finish(&request.key, refuses, self.manners.gives_too_much);
        }
        books.requests[&request.key].fate
    }

    fn answer(fate: Fate) -> Answer {
        match fate {
            Fate::Accepted => Answer::Accepted(Some("ref".to_owned())),
            Fate::Done => Answer::Done(Some("ref".to_owned())),
            Fate::Refused => Answer::Refused("the bank says no".to_owned()),
        }
    }

    fn send_now(&self, request: &Request, now: Timestamp) -> Answer {
        if self.chance(self.manners.unreachable) {
            return Answer::NotSent("no connection".to_owned());
        }
        if self.chance(self.manners.loses_request) {
            if self.dice.percent(50) {
                self.books.lock().unwrap().wire.push((request.clone(), now));
            }
            return Answer::Unknown("no answer".to_owned());
        }
        if self.chance(self.manners.delivers_twice) {
            self.books.lock().unwrap().wire.push((request.clone(), now));
        }
        let fate = self.arrives(request, now);
        if self.chance(self.manners.loses_answer) {
            return Answer::Unknown("the answer is lost".to_owned());
        }
        Self::answer(fate)
    }

    fn found(&self, request: &Request, now: Timestamp) -> Found {
        if self.chance(self.manners.silent) {
            return Found::NoAnswer("it does not say".to_owned());
        }
        self.forget(now);
        let finishes = self.chance(50);
        let refuses = self.chance(self.manners.refuses);
        let mut books = self.books.lock().unwrap();
        if finishes && books.requests.get(&request.key).is_some_and(|e| e.fate == Fate::Accepted) {
            books.finish(&request.key, refuses, self.manners.gives_too_much);
        }
        let listed = || {
            let done = |e: &Entry| e.fate == Fate::Done;
            books
                .forgotten
                .iter()
                .find(|(k, e)| self.manners.lists && *k == request.key && done(e))
                .map(|(_, e)| e)
        };
        match books.requests.get(&request.key).or_else(listed) {
            Some(entry) => Found::Request(Self::answer(entry.fate)),
            None => Found::Nothing { listed: self.manners.lists },
        }
    }

    fn state(&self, charge: &Charge) -> ChargeState {
        if self.chance(self.manners.silent) {
            return ChargeState::NoAnswer("it does not say".to_owned());
        }
        let name = charge.provider_txn_id.clone().unwrap_or_else(|| charge.payment_id.to_string());
        let books = self.books.lock().unwrap();
        let Some(account) = books.accounts.get(&name) else { return ChargeState::NotKnown };
        match account.status {
            PaymentStatus::Authorized => ChargeState::Authorized,
            PaymentStatus::Voided => ChargeState::Voided,
            PaymentStatus::Disputed => ChargeState::Disputed,
            _ => ChargeState::Captured {
                captured_at: None,
                amount_minor: account.amount_minor,
                refunded_minor: account.refunded_minor,
                currency: currency(),
                refund_refused: account.refund_refused,
            },
        }
    }
}

impl Account {
    pub fn of(payment: &Payment) -> Self {
        Self {
            status: payment.status,
            amount_minor: payment.amount_minor,
            refunded_minor: payment.refunded_minor,
            refund_refused: false,
        }
    }
}

impl Books {
    /// Does what a request that it has taken asks for, or refuses it.
    fn finish(&mut self, key: &str, refuse: bool, gives_too_much: bool) {
        let entry = self.requests.get_mut(key).unwrap();
        let Some(account) = self.accounts.get_mut(&entry.charge) else {
            entry.fate = Fate::Refused;
            return;
        };
        let may = match entry.ask {
            Ask::Refund { amount_minor, .. } => {
                let left = account.amount_minor - account.refunded_minor;
                account.status == PaymentStatus::Captured && (gives_too_much || amount_minor <= left)
            }
            Ask::Void => account.status == PaymentStatus::Authorized,
        };
        if refuse || !may {
            entry.fate = Fate::Refused;
            account.refund_refused |= entry.ask != Ask::Void;
            return;
        }
        match entry.ask {
            Ask::Refund { amount_minor, .. } => account.refunded_minor += amount_minor,
            Ask::Void => account.status = PaymentStatus::Voided,
        }
        entry.fate = Fate::Done;
        self.movements.push(Movement { charge: entry.charge.clone(), ask: entry.ask, key: key.to_owned() });
    }
}

/// What speaks with the bank for one worker. A hasty one takes silence for a refusal.
pub struct Teller {
    pub bank: Arc<Bank>,
    pub hasty: bool,
}

#[async_trait(?Send)]
impl Provider for Teller {
    fn kind(&self) -> &'static str {
        "bank"
    }

    fn name(&self) -> String {
        "bank".to_owned()
    }

    fn key_lifetime(&self) -> Option<Span> {
        self.bank.manners.key_lifetime
    }

    /// Is asked between the rereading of an intent and its first money move: others may go on here.
    fn leaves_with_first_leg(&self) -> bool {
        pause_or_die(false, || "has read the intent's rows".to_owned());
        false
    }

    async fn send(&self, request: &Request, now: Timestamp) -> Result<Answer> {
        let id = &request.charge.payment_id;
        {
            let mut books = self.bank.books.lock().unwrap();
            if books.told_disputed.contains(id.as_str()) {
                books
                    .outrages
                    .push(format!("the {} of {id} was sent though the ledger says DISPUTED", request.ask));
            }
        }
        pause_or_die(true, || format!("sends the {} of {id} under {}", request.ask, &request.key[..8]));
        let answer = self.bank.send_now(request, now);
        tell(|| format!("the bank: {answer:?}"));
        pause_or_die(false, || format!("is told about {id}"));
        Ok(match answer {
            Answer::Unknown(why) if self.hasty => Answer::Refused(why),
            answer => answer,
        })
    }

    async fn ask(&self, request: &Request, now: Timestamp) -> Result<Found> {
        let id = &request.charge.payment_id;
        pause_or_die(false, || format!("asks what became of the {} of {id}", request.ask));
        let found = self.bank.found(request, now);
        tell(|| format!("the bank: {found:?}"));
        pause_or_die(false, || format!("knows of {id}"));
        Ok(found)
    }

    async fn charge_state(&self, charge: &Charge, _now: Timestamp) -> Result<ChargeState> {
        pause_or_die(false, || format!("asks what became of charge {}", charge.payment_id));
        let state = self.bank.state(charge);
        tell(|| format!("the bank: {state:?}"));
        pause_or_die(false, || format!("knows of charge {}", charge.payment_id));
        Ok(state)
    }
}
