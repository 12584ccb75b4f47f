//! One kind of request: its templates, checked when the configuration is read, and filled in for a
//! request or a charge.

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::{Map, Value, json};

use super::rules::{Rule, pointer};
use super::settings::{Condition, ListSettings, OperationSettings, Shape};
use super::template::{Facts, Field, Names, Reveal, Template, escaped};
use super::wire::{Outgoing, is_loopback};
use crate::core::money::Currency;
use crate::error::{Error, Result};
use crate::providers::Doing;

/// Headers by which one proves who one is.
const SECRET_HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];
/// What the names of such headers hold elsewhere.
const SECRET_WORDS: [&str; 5] = ["token", "secret", "api-key", "apikey", "password"];

/// A request that can be filled in.
#[derive(Clone, Debug)]
pub struct Operation {
    pub(super) condition: Condition,
    method: Method,
    base: String,
    path: Template,
    query: Vec<(String, Template)>,
    headers: Vec<(HeaderName, Template)>,
    body: Body,
    pub(super) idempotent: bool,
    pub(super) only_authorized: bool,
    pub(super) rules: Vec<Rule>,
    pub(super) list: Option<List>,
    pub(super) at: Pointers,
}

/// Where things are in an answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Pointers {
    pub reference: Option<String>,
    pub reason: Vec<String>,
    pub amount: Option<String>,
    pub refunded: Option<String>,
    pub currency: Option<String>,
    pub captured_at: Option<String>,
    pub refund_refused: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct List {
    pub settings: ListSettings,
    /// Query parameters of the next page.
    pub next: Vec<(String, Template)>,
}

#[derive(Clone, Debug)]
enum Body {
    None,
    Json(Json),
    Form(Vec<(String, Template)>),
}

/// JSON whose texts are templates.
#[derive(Clone, Debug)]
enum Json {
    Text(Template),
    Fixed(Value),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Operation {
    /// Checks an operation.
    ///
    /// # Errors
    /// Usage, naming the key that is wrong.
    pub(super) fn new(
        doing: Doing,
        condition: &Condition,
        settings: &OperationSettings,
        shape: &Shape,
    ) -> Result<Self> {
        let names = Names { values: &shape.values, secrets: &shape.secrets, doing, paging: false };
        let template = |key: &str, text: &str| Template::parse(text, names).map_err(|e| e.context(key));
        let base = if settings.path.starts_with('/') { shape.base_url.trim_end_matches('/') } else { "" };
        must_be_safe(&format!("{base}{}", settings.path))?;
        if settings.path.contains(['?', '#']) {
            return Err(Error::usage(format!("path = {:?} has a query in it", settings.path))
                .hint("write it as a table: query = { limit = \"100\" }"));
        }
        let method = match settings.method.as_str() {
            known @ ("GET" | "POST" | "PUT" | "PATCH" | "DELETE") => {
                Method::from_bytes(known.as_bytes()).unwrap_or(Method::POST)
            }
            other => {
                return Err(Error::usage(format!("method = {other:?} is none"))
                    .hint("GET, POST, PUT, PATCH or DELETE"));
            }
        };
        let pairs = |key: &str, pairs: &std::collections::BTreeMap<String, String>| {
            let each = |(name, text): (&String, &String)| {
                Ok((name.clone(), template(&format!("{key}.{name}"), text)?))
            };
            pairs.iter().map(each).collect::<Result<Vec<_>>>()
        };
        let mut headers = Vec::new();
        for (name, text) in shape.headers.iter().chain(&settings.headers) {
            let (name, value) = header(name, text, names)?;
            headers.retain(|(there, _)| *there != name);
            headers.push((name, value));
        }
        let body = match (&settings.json, &settings.form) {
            (None, None) => Body::None,
            (Some(table), None) => Body::Json(json_of("json", &toml::Value::Table(table.clone()), names)?),
            (None, Some(form)) => Body::Form(pairs("form", form)?),
            (Some(_), Some(_)) => {
                return Err(
                    Error::usage("json and form are two bodies of one request").hint("keep one of them")
                );
            }
        };
        if matches!(doing, Doing::Query | Doing::Charge) && method != Method::GET && method != Method::POST {
            return Err(Error::usage(format!("method = {:?} would not only ask", settings.method))
                .hint("a query is a GET, or a POST where the provider searches by POST"));
        }
        let list = settings.list.as_ref().map(|list| List::new(list, names)).transpose()?;
        if list.is_some() && doing != Doing::Query {
            return Err(Error::usage("list is for the query").hint("only `query` reads a list of refunds"));
        }
        let operation = Self {
            condition: condition.clone(),
            method,
            base: base.to_owned(),
            path: template("path", &settings.path)?,
            query: pairs("query", &settings.query)?,
            headers,
            body,
            idempotent: settings.idempotent,
            only_authorized: settings.only_authorized,
            rules: settings
                .when
                .iter()
                .enumerate()
                .map(|(i, rule)| rule.rule(doing).map_err(|e| e.context(format!("when[{i}]"))))
                .collect::<Result<_>>()?,
            list,
            at: Pointers::new(settings)?,
        };
        operation.must_make_sense(doing)?;
        Ok(operation)
    }

    fn must_make_sense(&self, doing: Doing) -> Result<()> {
        let is_send = matches!(doing, Doing::Refund | Doing::Void);
        if self.idempotent && !is_send {
            return Err(Error::usage("idempotent is for refund and void")
                .hint("remove it: a query is safe to repeat"));
        }
        if self.idempotent && !self.names(Field::Key) {
            return Err(Error::usage("idempotent = true, and no {key} is sent")
                .hint("send it as the provider wants it, such as headers.Idempotency-Key = \"{key}\""));
        }
        if doing == Doing::Refund && !self.names(Field::Key) {
            return Err(Error::usage("no {key} is sent, by which the refund could be known again")
                .hint("send it where the provider shows it again, such as json.reference = \"{key}\""));
        }
        if self.only_authorized && doing != Doing::Void {
            return Err(Error::usage("only_authorized is for void").hint("remove it"));
        }
        if self.rules.is_empty() && self.list.is_none() {
            return Err(Error::usage("no answer means anything: there are no rules")
                .hint("when = [{ status = \"2xx\", means = \"…\" }]"));
        }
        if doing == Doing::Charge && (self.at.amount.is_none() || self.at.refunded.is_none()) {
            return Err(Error::usage("amount and refunded are missing")
                .hint("say where the answer has them, in minor units: amount = \"/amount_captured\""));
        }
        Ok(())
    }

    fn names(&self, field: Field) -> bool {
        let in_body = match &self.body {
            Body::None => false,
            Body::Json(json) => json.names(field),
            Body::Form(pairs) => pairs.iter().any(|(_, t)| t.names(field)),
        };
        in_body
            || self.path.names(field)
            || self.query.iter().any(|(_, t)| t.names(field))
            || self.headers.iter().any(|(_, t)| t.names(field))
    }

    /// Whether it is for a charge of this id, and about a request that is a refund or a void.
    pub(super) fn is_for(&self, facts: Facts<'_>) -> bool {
        let Condition { prefixes, ask } = &self.condition;
        let txn_id = facts.charge.provider_txn_id.as_deref();
        let id_fits =
            prefixes.is_empty() || txn_id.is_some_and(|id| prefixes.iter().any(|p| id.starts_with(p)));
        let ask_fits =
            ask.as_ref().is_none_or(|ask| facts.request.is_some_and(|r| r.ask.to_string() == *ask));
        id_fits && ask_fits
    }

    /// The URL, as text.
    fn url(
        &self,
        facts: Facts<'_>,
        reveal: Reveal<'_>,
        more: &[(String, Template)],
    ) -> Result<String, String> {
        let mut url = format!("{}{}", self.base, self.path.filled(facts, reveal, escaped)?);
        // A segment that is dots would climb to another path.
        let after_host = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        if after_host.split('/').any(|s| matches!(s.to_lowercase().replace("%2e", ".").as_str(), "." | ".."))
        {
            return Err("an id is made of dots, and would change the URL's path".to_owned());
        }
        let replaced = |name: &String| more.iter().any(|(other, _)| other == name);
        let own = self.query.iter().filter(|(name, _)| !replaced(name));
        for (i, (name, value)) in own.chain(more).enumerate() {
            url.push(if i == 0 { '?' } else { '&' });
            url.push_str(&escaped(name));
            url.push('=');
            url.push_str(&value.filled(facts, reveal, escaped)?);
        }
        Ok(url)
    }

    fn body(&self, facts: Facts<'_>, reveal: Reveal<'_>) -> Result<Option<(&'static str, String)>, String> {
        Ok(match &self.body {
            Body::None => None,
            Body::Json(json) => Some(("application/json", json.filled(facts, reveal)?.to_string())),
            Body::Form(pairs) => {
                let each = |(name, value): &(String, Template)| {
                    Ok(format!("{}={}", escaped(name), value.filled(facts, reveal, escaped)?))
                };
                let pairs = pairs.iter().map(each).collect::<Result<Vec<_>, String>>()?;
                Some(("application/x-www-form-urlencoded", pairs.join("&")))
            }
        })
    }

    /// The request, to a list's next page with `more` in its query.
    ///
    /// # Errors
    /// What is lacking, in words: then nothing may be sent.
    pub(super) fn outgoing(
        &self,
        facts: Facts<'_>,
        reveal: Reveal<'_>,
        more: &[(String, Template)],
    ) -> Result<Outgoing, String> {
        let url = self.url(facts, reveal, more)?;
        let url = Url::parse(&url).map_err(|e| format!("its URL is none: {e}"))?;
        let body = self.body(facts, reveal)?;
        let mut headers = Vec::new();
        if let Some((kind, _)) = body
            && !self.headers.iter().any(|(name, _)| name == "content-type")
        {
            headers.push((reqwest::header::CONTENT_TYPE, HeaderValue::from_static(kind)));
        }
        for (name, template) in &self.headers {
            let text = template.filled(facts, reveal, str::to_owned)?;
            let mut value = HeaderValue::from_str(&text)
                .map_err(|_| format!("the header {name} would hold characters that no header can"))?;
            value.set_sensitive(template.names_secret());
            headers.push((name.clone(), value));
        }
        let body = body.map(|(_, text)| text);
        Ok(Outgoing { method: self.method.clone(), url, headers, body })
    }

    /// The request for a person's eyes, with its secrets masked; as text and as one object.
    ///
    /// # Errors
    /// What is lacking, in words.
    pub(super) fn shown(&self, facts: Facts<'_>) -> Result<(String, Value), String> {
        // What can be filled in can be sent: the same checks as for what leaves.
        self.outgoing(facts, Reveal::Masked, &[])?;
        let url = self.url(facts, Reveal::Masked, &[])?;
        let body = self.body(facts, Reveal::Masked)?;
        let mut text = format!("{} {url}", self.method);
        let mut headers = Map::new();
        let mut add = |name: &str, value: String| {
            text.push_str(&format!("\n{name}: {value}"));
            headers.insert(name.to_owned(), value.into());
        };
        if let Some((kind, _)) = body
            && !self.headers.iter().any(|(name, _)| name == "content-type")
        {
            add("content-type", kind.to_owned());
        }
        for (name, template) in &self.headers {
            add(name.as_str(), template.filled(facts, Reveal::Masked, str::to_owned)?);
        }
        let body = body.map(|(_, body)| body);
        if let Some(body) = &body {
            text.push_str(&format!("\n\n{body}"));
        }
        Ok((text, json!({ "method": self.method.as_str(), "url": url, "headers": headers, "body": body })))
    }
}

impl Pointers {
    fn new(settings: &OperationSettings) -> Result<Self> {
        let of = |name: &str, text: &Option<String>| -> Result<Option<String>> {
            text.iter().try_for_each(|text| pointer(name, text))?;
            Ok(text.clone())
        };
        Ok(Self {
            reference: of("reference", &settings.reference)?,
            reason: {
                let reason = settings.reason.as_ref().map_or(&[][..], |reason| reason.as_slice());
                reason.iter().try_for_each(|text| pointer("reason", text))?;
                reason.to_vec()
            },
            amount: of("amount", &settings.amount)?,
            refunded: of("refunded", &settings.refunded)?,
            currency: of("currency", &settings.currency)?,
            captured_at: of("captured_at", &settings.captured_at)?,
            refund_refused: of("refund_refused", &settings.refund_refused)?,
        })
    }
}

impl List {
    fn new(settings: &ListSettings, names: Names<'_>) -> Result<Self> {
        let named = [
            ("list.items", Some(&settings.items)),
            ("list.key", Some(&settings.key)),
            ("list.status", Some(&settings.status)),
            ("list.has_more", settings.has_more.as_ref()),
            ("list.next_at", settings.next_at.as_ref()),
            ("list.next_url", settings.next_url.as_ref()),
            ("list.reference", settings.reference.as_ref()),
            ("list.amount", settings.amount.as_ref()),
            ("list.reason", settings.reason.as_ref()),
        ];
        for (name, text) in named {
            text.into_iter().try_for_each(|text| pointer(name, text))?;
        }
        let each = |(name, text): (&String, &String)| {
            let template = Template::parse(text, Names { paging: true, ..names });
            Ok((name.clone(), template.map_err(|e| e.context(format!("list.next.{name}")))?))
        };
        let next = settings.next.iter().map(each).collect::<Result<Vec<_>>>()?;
        Ok(Self { settings: settings.clone(), next })
    }
}

impl Json {
    fn names(&self, field: Field) -> bool {
        match self {
            Self::Text(template) => template.names(field),
            Self::Fixed(_) => false,
            Self::List(all) => all.iter().any(|json| json.names(field)),
            Self::Object(all) => all.iter().any(|(_, json)| json.names(field)),
        }
    }

    fn filled(&self, facts: Facts<'_>, reveal: Reveal<'_>) -> Result<Value, String> {
        Ok(match self {
            Self::Text(template) => template.json(facts, reveal)?,
            Self::Fixed(value) => value.clone(),
            Self::List(all) => {
                all.iter().map(|json| json.filled(facts, reveal)).collect::<Result<Vec<_>, _>>()?.into()
            }
            Self::Object(all) => {
                let each = |(name, json): &(String, Self)| Ok((name.clone(), json.filled(facts, reveal)?));
                Value::Object(all.iter().map(each).collect::<Result<_, String>>()?)
            }
        })
    }
}

fn json_of(place: &str, value: &toml::Value, names: Names<'_>) -> Result<Json> {
    Ok(match value {
        toml::Value::String(text) => Json::Text(Template::parse(text, names).map_err(|e| e.context(place))?),
        toml::Value::Integer(number) => Json::Fixed((*number).into()),
        toml::Value::Float(number) => Json::Fixed((*number).into()),
        toml::Value::Boolean(truth) => Json::Fixed((*truth).into()),
        toml::Value::Datetime(time) => Json::Fixed(time.to_string().into()),
        toml::Value::Array(all) => {
            let each = |(i, value)| json_of(&format!("{place}[{i}]"), value, names);
            Json::List(all.iter().enumerate().map(each).collect::<Result<_>>()?)
        }
        toml::Value::Table(table) => {
            let each = |(name, value): (&String, &toml::Value)| {
                Ok((name.clone(), json_of(&format!("{place}.{name}"), value, names)?))
            };
            Json::Object(table.iter().map(each).collect::<Result<_>>()?)
        }
    })
}

fn header(name: &str, text: &str, names: Names<'_>) -> Result<(HeaderName, Template)> {
    let place = format!("headers.{name}");
    let lower = name.to_lowercase();
    let header = HeaderName::from_bytes(lower.as_bytes()).map_err(|_| {
        Error::usage(format!("{place}: that is no header's name")).hint("such as Idempotency-Key")
    })?;
    let template = Template::parse(text, names).map_err(|e| e.context(&place))?;
    let is_secret =
        SECRET_HEADERS.contains(&lower.as_str()) || SECRET_WORDS.iter().any(|w| lower.contains(w));
    if is_secret && !template.names_secret() && !template.names(Field::Key) {
        // Not the value: it may be the secret itself.
        return Err(Error::usage(format!("{place} holds a secret in the configuration itself")).hint(
            "keep it elsewhere: secrets.token = { env = \"PAY_TOKEN\" }, and here \"Bearer {secret:token}\"",
        ));
    }
    Ok((header, template))
}

/// Checks the URL that all paths stand behind.
///
/// # Errors
/// Usage, where it is none, not safe, or has a field in it.
pub(super) fn must_be_base(url: &str) -> Result<()> {
    if url.contains(['{', '}', '?', '#']) {
        return Err(Error::usage(format!("base_url = {url:?} has a field or a query in it"))
            .hint("write it out; fields stand in paths"));
    }
    must_be_safe(&format!("{}/", url.trim_end_matches('/'))).map_err(|e| e.context("base_url"))
}

/// A URL's host must be written out, and encrypted on its way.
fn must_be_safe(url: &str) -> Result<()> {
    let bad = |what: &str| Error::usage(format!("{url:?} {what}"));
    let start = url.find('{').map_or(url, |at| &url[..at]);
    let host_ends = start.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    if !host_ends && start.len() != url.len() {
        return Err(bad("has a field in its host").hint("write the host out, one provider for each"));
    }
    let parsed = Url::parse(start).map_err(|_| {
        bad("is no URL").hint("base_url = \"https://…\", and a path that begins with a slash")
    })?;
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(Error::usage("a URL holds a user or a password")
            .hint("put it in a header: headers.Authorization = \"Basic {secret:…}\""));
    }
    match parsed.scheme() {
        "https" => Ok(()),
        "http" if is_loopback(&parsed) => Ok(()),
        "http" => Err(bad("is not encrypted: whoever listens reads the key and can change the amount")
            .hint("write https://; plain http:// is for this machine only: http://127.0.0.1:8080")),
        _ => Err(bad("is neither https nor http").hint("base_url = \"https://…\"")),
    }
}

/// An amount in minor units, which must be a whole number.
pub(super) fn minor_at(body: &Value, pointer: Option<&str>) -> Option<i64> {
    body.pointer(pointer?)?.as_i64()
}

/// A currency's code, in capitals or not.
pub(super) fn currency_at(body: &Value, pointer: &str) -> Option<Currency> {
    body.pointer(pointer)?.as_str()?.to_uppercase().parse().ok()
}
