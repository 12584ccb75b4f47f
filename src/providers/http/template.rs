//! Texts with named fields in braces: `{key}`, `{secret:NAME}`, `{text:amount_minor}`. Every field is
//! escaped for its place, so that no id of a ledger changes the shape of a request.

use std::borrow::Cow;
use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::secrets::{MASK, Secrets};
use crate::core::money::Currency;
use crate::error::{Error, Result};
use crate::providers::{Ask, Charge, Doing, Request};

/// Everything but what RFC 3986 calls unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A value as it stands in a URL, in a path's segment or a query.
pub fn escaped(value: &str) -> String {
    utf8_percent_encode(value, RESERVED).to_string()
}

/// What a template may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    PaymentId,
    ProviderTxnId,
    TenantId,
    Provider,
    Currency,
    CurrencyLower,
    /// Of the charge as a whole.
    ChargeMinor,
    ChargeMajor,
    Key,
    Reason,
    Reference,
    AmountMinor,
    AmountMajor,
    /// Of a list's last element.
    LastReference,
    /// What the list itself says comes next.
    Next,
}

const FIELDS: [(&str, Field); 15] = [
    ("payment_id", Field::PaymentId),
    ("provider_txn_id", Field::ProviderTxnId),
    ("tenant_id", Field::TenantId),
    ("provider", Field::Provider),
    ("currency", Field::Currency),
    ("currency_lower", Field::CurrencyLower),
    ("charge_minor", Field::ChargeMinor),
    ("charge_major", Field::ChargeMajor),
    ("key", Field::Key),
    ("reason", Field::Reason),
    ("reference", Field::Reference),
    ("amount_minor", Field::AmountMinor),
    ("amount_major", Field::AmountMajor),
    ("last_reference", Field::LastReference),
    ("next", Field::Next),
];

impl Field {
    fn name(self) -> &'static str {
        FIELDS.iter().find(|(_, field)| *field == self).map_or("", |(name, _)| name)
    }

    /// Whether a request of this purpose can have it; `paging`, where it asks for a list's next page.
    fn fits(self, doing: Doing, paging: bool) -> bool {
        match self {
            Self::LastReference | Self::Next => paging,
            Self::AmountMinor | Self::AmountMajor => matches!(doing, Doing::Refund | Doing::Query),
            Self::Key | Self::Reason | Self::Reference => doing != Doing::Charge,
            _ => true,
        }
    }

    const fn is_number(self) -> bool {
        matches!(self, Self::AmountMinor | Self::ChargeMinor)
    }
}

/// What fields are filled in from.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    pub charge: &'a Charge,
    pub request: Option<&'a Request>,
    pub last_reference: Option<&'a str>,
    pub next: Option<&'a str>,
}

impl<'a> Facts<'a> {
    pub const fn of(request: &'a Request) -> Self {
        Self { charge: &request.charge, request: Some(request), last_reference: None, next: None }
    }

    pub const fn of_charge(charge: &'a Charge) -> Self {
        Self { charge, request: None, last_reference: None, next: None }
    }

    /// Of the amount that is asked for, else of the charge.
    pub fn currency(&self) -> Currency {
        match self.request.map(|request| request.ask) {
            Some(Ask::Refund { currency, .. }) => currency,
            Some(Ask::Void) | None => self.charge.currency,
        }
    }

    fn get(&self, field: Field) -> Option<Cow<'a, str>> {
        let Self { charge, request, .. } = *self;
        let amount = request.and_then(|r| r.ask.refund_minor());
        let currency = self.currency();
        let major = |minor: i64| currency.show_bare(minor.into()).into();
        Some(match field {
            Field::PaymentId => charge.payment_id.as_str().into(),
            Field::ProviderTxnId => charge.provider_txn_id.as_deref()?.into(),
            Field::TenantId => charge.tenant_id.as_str().into(),
            Field::Provider => charge.provider.as_str().into(),
            Field::Currency => currency.code().into(),
            Field::CurrencyLower => currency.code().to_lowercase().into(),
            Field::ChargeMinor => charge.amount_minor.to_string().into(),
            Field::ChargeMajor => major(charge.amount_minor),
            Field::Key => request?.key.as_str().into(),
            Field::Reason => request?.reason.as_str().into(),
            Field::Reference => request?.reference.as_deref()?.into(),
            Field::AmountMinor => amount?.to_string().into(),
            Field::AmountMajor => major(amount?),
            Field::LastReference => self.last_reference?.into(),
            Field::Next => self.next?.into(),
        })
    }
}

/// Where secrets come from when a template is filled in.
#[derive(Clone, Copy)]
pub enum Reveal<'a> {
    Real(&'a Secrets),
    /// For a person's eyes.
    Masked,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Field(Field),
    /// A value of the configuration's own, by its name.
    Own(String),
    Secret(String),
}

/// A text with fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
    as_text: bool,
}

/// What a template may name beside the fields of a request.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    pub values: &'a BTreeMap<String, String>,
    pub secrets: &'a BTreeMap<String, super::secrets::Source>,
    pub doing: Doing,
    /// Whether it asks for a list's next page.
    pub paging: bool,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// Usage, for a brace without its other and a field that there is not, or not in such a request.
    pub fn parse(text: &str, names: Names<'_>) -> Result<Self> {
        let mut template = Self { pieces: Vec::new(), as_text: false };
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
                continue;
            }
            let (name, after) = (brace == "{").then(|| rest.split_once('}')).flatten().ok_or_else(|| {
                Error::usage(format!("{text:?}: a brace without its other"))
                    .hint("a field stands in braces: {key}; a brace itself is written twice: {{")
            })?;
            if !literal.is_empty() {
                template.pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            let bare = name.strip_prefix("text:");
            template.as_text |= bare.is_some();
            template.pieces.push(piece(text, bare.unwrap_or(name), names)?);
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            template.pieces.push(Piece::Text(literal));
        }
        Ok(template)
    }

    pub fn names_secret(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Secret(_)))
    }

    pub fn names(&self, field: Field) -> bool {
        self.pieces.contains(&Piece::Field(field))
    }

    /// Whether it is one number and nothing else.
    fn is_number(&self) -> bool {
        !self.as_text && matches!(self.pieces.as_slice(), [Piece::Field(field)] if field.is_number())
    }

    /// The text with its fields filled in, each as `escape` writes it.
    ///
    /// # Errors
    /// What is lacking, in words.
    pub fn filled(
        &self,
        facts: Facts<'_>,
        reveal: Reveal<'_>,
        escape: impl Fn(&str) -> String,
    ) -> Result<String, String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(literal) => text.push_str(literal),
                Piece::Own(value) => text.push_str(&escape(value)),
                Piece::Field(field) => {
                    // An empty id in a path would name another thing: all charges instead of one.
                    let value = facts.get(*field).filter(|value| !value.is_empty()).ok_or_else(|| {
                        let of = if field.fits(Doing::Charge, false) { "charge" } else { "request" };
                        format!("the {of} has no {}, which the request needs", field.name())
                    })?;
                    text.push_str(&escape(&value));
                }
                Piece::Secret(name) => match reveal {
                    Reveal::Masked => text.push_str(MASK),
                    Reveal::Real(secrets) => {
                        let value = secrets.get(name).ok_or_else(|| format!("there is no secret {name}"))?;
                        text.push_str(&escape(value));
                    }
                },
            }
        }
        Ok(text)
    }

    /// As a JSON value: a number, where it is a number's field and nothing else.
    ///
    /// # Errors
    /// What is lacking, in words.
    pub fn json(&self, facts: Facts<'_>, reveal: Reveal<'_>) -> Result<serde_json::Value, String> {
        let text = self.filled(facts, reveal, str::to_owned)?;
        match text.parse::<i64>() {
            Ok(number) if self.is_number() => Ok(number.into()),
            _ => Ok(text.into()),
        }
    }
}

fn piece(text: &str, name: &str, names: Names<'_>) -> Result<Piece> {
    if let Some(secret) = name.strip_prefix("secret:") {
        if !names.secrets.contains_key(secret) {
            return Err(Error::usage(format!("{text:?}: there is no secret {secret}"))
                .hint(format!("say where it is: secrets.{secret} = {{ env = \"…\" }}")));
        }
        return Ok(Piece::Secret(secret.to_owned()));
    }
    if let Some(value) = names.values.get(name) {
        return Ok(Piece::Own(value.clone()));
    }
    let all = || {
        let fits = FIELDS.iter().filter(|(_, field)| field.fits(names.doing, names.paging));
        fits.map(|(name, _)| *name)
            .chain(names.values.keys().map(String::as_str))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match FIELDS.iter().find(|(known, _)| *known == name) {
        Some((_, field)) if field.fits(names.doing, names.paging) => Ok(Piece::Field(*field)),
        Some(_) => Err(Error::usage(format!("{text:?}: a {} request has no {name}", names.doing.as_str()))
            .hint(format!("it has {}", all()))),
        None => Err(Error::usage(format!("{text:?}: there is no field {name}"))
            .hint(format!("there are {}; one of your own goes under values: values.{name} = \"…\"", all()))),
    }
}

/// Whether a name is one of the fields, and so cannot be a value of the configuration's own.
pub fn is_field(name: &str) -> bool {
    FIELDS.iter().any(|(known, _)| *known == name)
}
