//! One request over the wire, and what came back. Nothing is repeated here, and no redirect followed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;

use crate::error::{Error, Result};

/// How long a connection may take to be there; never longer than the whole request may.
const CONNECT: Duration = Duration::from_secs(5);
/// How much of an answer is read, in bytes.
const LARGEST: usize = 4 * 1024 * 1024;

/// A request as it leaves. Holds secrets: never printed.
#[derive(Clone)]
pub struct Outgoing {
    pub method: Method,
    pub url: Url,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Option<String>,
}

impl Outgoing {
    /// A request that has nothing but its method and place yet.
    ///
    /// # Errors
    /// Usage, where one of them is none.
    pub fn new(method: &str, url: &str) -> Result<Self> {
        let method = Method::from_bytes(method.to_uppercase().as_bytes())
            .map_err(|_| Error::usage(format!("{method:?} is no method")).hint("--method POST"))?;
        let url = Url::parse(url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                // It may hold a password, so it is not told.
                Error::usage("the URL is none of HTTP").hint("--url https://HOST/PATH")
            })?;
        Ok(Self { method, url, headers: Vec::new(), body: None })
    }

    /// The same with a header more, which stands in the place of one of its name.
    ///
    /// # Errors
    /// Usage, naming the header and never its value, where one of them cannot stand in a header.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self> {
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
            Error::usage(format!("{name:?} is no name of a header")).hint("such as Idempotency-Key")
        })?;
        let mut told = HeaderValue::from_str(value).map_err(|_| {
            Error::usage(format!("the value of the header {name} has what no header may have"))
                .hint("no line breaks, and no letters beyond ASCII")
        })?;
        told.set_sensitive(true);
        self.headers.retain(|(there, _)| *there != header);
        self.headers.push((header, told));
        Ok(self)
    }

    pub fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(there, _)| there.as_str().eq_ignore_ascii_case(name))
    }
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    /// How long the provider asks us to wait.
    pub retry_after: Option<Duration>,
    /// `None`, where it is no JSON.
    pub body: Option<Value>,
    /// The body as it arrived; empty where there was none.
    pub bytes: Vec<u8>,
}

impl Reply {
    /// Whether there is a body that is no JSON.
    pub const fn is_unreadable(&self) -> bool {
        !self.bytes.is_empty() && self.body.is_none()
    }
}

/// How one request ended.
#[derive(Clone, Debug)]
pub enum Exchange {
    Reply(Reply),
    /// No byte of it left.
    NotSent(String),
    /// It may have left, and no answer is there.
    Lost(String),
}

/// The way to the provider.
pub struct Wire {
    /// Past any proxy, for hosts that are this machine.
    near: Client,
    far: Client,
}

impl Wire {
    /// `ca_file` holds certificates, as PEM, that are trusted beside the public ones.
    ///
    /// # Errors
    /// Usage, for a file that cannot be read or holds no certificate.
    pub fn new(timeout: Duration, ca_file: Option<&Path>) -> Result<Self> {
        let tls = tls(ca_file)?;
        let client = |near: bool| {
            let builder = Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .http1_only()
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .referer(false)
                // A connection that the other side closes at this very moment would leave us without an
                // answer: each request has its own.
                .pool_max_idle_per_host(0)
                // Ends before the whole does, so that what never left is told from what is not known.
                .connect_timeout((timeout / 2).min(CONNECT))
                .user_agent(concat!("onefold/", env!("CARGO_PKG_VERSION")));
            let builder = if near { builder.no_proxy() } else { builder };
            builder.build().map_err(|e| Error::failure(format!("cannot make an HTTP client: {e}")))
        };
        Ok(Self { near: client(true)?, far: client(false)? })
    }

    /// Sends a request and waits for its answer, at most this long.
    pub async fn exchange(&self, outgoing: &Outgoing, timeout: Duration) -> Exchange {
        let client = if is_loopback(&outgoing.url) { &self.near } else { &self.far };
        let headers: HeaderMap = outgoing.headers.iter().cloned().collect();
        let mut request =
            client.request(outgoing.method.clone(), outgoing.url.clone()).headers(headers).timeout(timeout);
        if let Some(body) = &outgoing.body {
            request = request.body(body.clone());
        }
        let mut response = match request.send().await {
            Ok(response) => response,
            Err(e) if e.is_builder() => return Exchange::NotSent(format!("it cannot be built: {}", told(e))),
            Err(e) if e.is_connect() => {
                return Exchange::NotSent(format!("no connection to {}: {}", host(&outgoing.url), told(e)));
            }
            Err(e) if e.is_timeout() => return Exchange::Lost(silence(timeout)),
            Err(e) => return Exchange::Lost(format!("the connection broke: {}", told(e))),
        };
        let status = response.status().as_u16();
        let retry_after = response.headers().get(reqwest::header::RETRY_AFTER).and_then(retry_after);
        let mut bytes = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if bytes.len() + chunk.len() > LARGEST => {
                    return Exchange::Lost(format!(
                        "the answer (HTTP {status}) is longer than {LARGEST} bytes"
                    ));
                }
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(e) if e.is_timeout() => return Exchange::Lost(silence(timeout)),
                Err(e) => {
                    return Exchange::Lost(format!("the answer (HTTP {status}) broke off: {}", told(e)));
                }
            }
        }
        Exchange::Reply(Reply { status, retry_after, body: serde_json::from_slice(&bytes).ok(), bytes })
    }
}

fn tls(ca_file: Option<&Path>) -> Result<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = ca_file {
        let failed = |what: String| {
            Error::usage(format!("ca_file = {}: {what}", path.display()))
                .hint("a file of certificates as PEM: -----BEGIN CERTIFICATE-----")
        };
        let before = roots.len();
        for certificate in CertificateDer::pem_file_iter(path).map_err(|e| failed(e.to_string()))? {
            let certificate = certificate.map_err(|e| failed(e.to_string()))?;
            roots.add(certificate).map_err(|e| failed(e.to_string()))?;
        }
        if roots.len() == before {
            return Err(failed("holds no certificate".to_owned()));
        }
    }
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::failure(format!("no TLS: {e}")))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Whether the host is this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn silence(timeout: Duration) -> String {
    format!("no answer within {} s", timeout.as_secs_f64())
}

/// An error and its last cause, without the URL, which may hold an id or a secret.
fn told(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// `Retry-After`, as seconds or as a date.
fn retry_after(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = chrono::DateTime::parse_from_rfc2822(text).ok()?;
    (at.to_utc() - chrono::Utc::now()).to_std().ok()
}
