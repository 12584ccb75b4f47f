//! Over TLS: to whom the certificate belongs that is trusted, and to nobody else.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::spawn;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, Stream};

use super::*;

/// A server that answers one request with done, under a certificate for this name; its port, and the
/// certificate as PEM.
fn server(name: &str) -> (u16, String) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    spawn(move || -> std::io::Result<()> {
        let (mut socket, _) = listener.accept()?;
        let mut connection = ServerConnection::new(Arc::new(config)).map_err(std::io::Error::other)?;
        let mut stream = Stream::new(&mut connection, &mut socket);
        let mut seen = Vec::new();
        while !seen.ends_with(b"}") {
            let mut bytes = [0; 1024];
            let read = stream.read(&mut bytes)?;
            seen.extend_from_slice(&bytes[..read]);
        }
        let body = "{\"status\":\"done\"}";
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )?;
        stream.conn.send_close_notify();
        stream.flush()
    });
    (port, cert.pem())
}

fn sent(name: &str, trusted: bool) -> Answer {
    let (port, pem) = server(name);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("ca.pem"), pem).unwrap();
    let plain = plain(&format!("https://localhost:{port}"));
    let text = if trusted { format!("ca_file = \"ca.pem\"\n{plain}") } else { plain };
    let mut settings: HttpSettings = toml::from_str(&text).unwrap();
    settings.beside(dir.path());
    send(&settings.provider(|_| None).unwrap(), &refund())
}

#[test]
fn a_certificate_of_the_sites_own_is_trusted_where_it_is_named() {
    assert_eq!(sent("localhost", true), Answer::Done(None));
}

#[test]
fn what_is_not_trusted_is_sent_nothing() {
    is_not_sent(sent("localhost", false), "no connection to localhost");
    is_not_sent(sent("elsewhere.example", true), "no connection to localhost");
}
