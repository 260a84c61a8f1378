//! Records of TLS: versions, resumption, early data, records, certificates.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::ProtocolVersion;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::server::{PATIENCE, Secure, dial, get, serve};
use crate::client::trust::Trust;
use crate::client::{Protocol, Request};
use crate::fetch::{Connection, Dial, FailureCause, Handshake, Sessions, Versions};

fn handshake(connection: &Connection) -> Handshake {
    let handshake = connection.record().handshake.as_ref();
    handshake.expect("it is complete").clone()
}

/// Opens a connection, sends one request, and returns the record of the handshake.
fn once(dial: &Dial) -> Handshake {
    let mut connection = Connection::open(dial).expect("it listens");
    let response = connection.exchange(&get(dial, "/a")).expect("a response");
    assert_eq!(response.body, b"/a");
    handshake(&connection)
}

fn with(dial: &Dial, versions: Versions, sessions: &Sessions) -> Dial {
    let mut dial = dial.clone();
    let tls = dial.tls.as_mut().expect("TLS");
    (tls.versions, tls.sessions) = (versions, sessions.clone());
    dial
}

#[test]
fn alpn_chooses_among_what_is_offered() {
    let secure = Secure::new(0);
    let address = serve(Protocol::H1, Some(&secure));
    for protocol in Protocol::ALL {
        let dial = dial(address, &[protocol], Some(&secure));
        let mut connection = Connection::open(&dial).expect("it listens");
        let response = connection
            .exchange(&get(&dial, "/path"))
            .expect("a response");
        assert_eq!(response.body, b"/path");
        let handshake = handshake(&connection);
        let alpn = String::from_utf8_lossy(protocol.alpn()).into_owned();
        assert_eq!(handshake.alpn, Some(alpn));
        assert_eq!(connection.record().protocol, Some(protocol));
        assert_eq!(handshake.version, ProtocolVersion::TLSv1_3);
        assert_eq!(handshake.certificates, secure.chain);
        assert!(!handshake.resumed && !handshake.early_data_sent && !handshake.retried);
        assert!(handshake.from <= handshake.to && handshake.took_ns() > 0);
    }
}

#[test]
fn a_server_that_chooses_no_offered_protocol_is_refused() {
    let secure = Secure::new(0);
    secure.renew(|config| config.alpn_protocols.clear());
    let address = serve(Protocol::H1, Some(&secure));
    let dial = dial(address, &[Protocol::H2], Some(&secure));
    let failure = Connection::open(&dial).err().expect("it chose none");
    assert_eq!(failure.message, "the server chose none of HTTP/2");
}

#[test]
fn records_and_bytes_of_the_first_flight_are_counted() {
    let secure = Secure::new(0);
    let dial = dial(
        serve(Protocol::H1, Some(&secure)),
        &[Protocol::H1],
        Some(&secure),
    );
    for versions in [Versions::Tls13, Versions::Tls12] {
        let dial = with(&dial, versions, &Sessions::none());
        let mut connection = Connection::open(&dial).expect("it listens");
        connection.exchange(&get(&dial, "/")).expect("a response");
        let record = connection.record();
        let records: u64 = record.tls_records.iter().map(|one| one.bytes).sum();
        assert_eq!(records, record.received_bytes);
        assert_eq!(record.tls_records[0].content_type, 22);
        assert_eq!(
            record.tls_records.last().map(|one| one.content_type),
            Some(23)
        );
        // The flight ends at the end of a record, before the tickets.
        let flight = handshake(&connection).received_bytes;
        let mut end = 0;
        let ends = record.tls_records.iter().map(|one| {
            end += one.bytes;
            end
        });
        assert!(ends.collect::<Vec<_>>().contains(&flight));
        assert!(flight < record.received_bytes);
        let certificates: usize = secure.chain.iter().map(Vec::len).sum();
        assert!(flight > certificates as u64, "{flight}");
    }
}

#[test]
fn versions_are_offered_and_sessions_resumed_as_asked() {
    let secure = Secure::new(0);
    let dial = dial(
        serve(Protocol::H1, Some(&secure)),
        &[Protocol::H1],
        Some(&secure),
    );
    for (versions, version) in [
        (Versions::Tls12, ProtocolVersion::TLSv1_2),
        (Versions::Tls13, ProtocolVersion::TLSv1_3),
        (Versions::Both, ProtocolVersion::TLSv1_3),
    ] {
        for (sessions, resumed) in [(Sessions::none(), false), (Sessions::shared(), true)] {
            let dial = with(&dial, versions, &sessions);
            let first = once(&dial);
            let second = once(&dial);
            assert_eq!((first.version, second.version), (version, version));
            assert_eq!(
                (first.resumed, second.resumed),
                (false, resumed),
                "{versions:?}"
            );
            assert_eq!(second.certificates, secure.chain);
            // A resumed handshake sends no certificates.
            assert_eq!(second.received_bytes < first.received_bytes / 2, resumed);
        }
    }
}

#[test]
fn certificates_are_compressed_only_where_that_is_offered() {
    let secure = Secure::new(4000);
    let dial = dial(
        serve(Protocol::H1, Some(&secure)),
        &[Protocol::H1],
        Some(&secure),
    );
    let compressed = once(&dial).received_bytes;
    let mut without = dial;
    without.tls.as_mut().expect("TLS").certificate_compression = false;
    let whole = once(&without);
    assert!(compressed + 3000 < whole.received_bytes, "{compressed}");
    assert_eq!(whole.certificates, secure.chain);
}

/// Options of a connection that sends early data if possible.
fn early(address: std::net::SocketAddr, protocol: Protocol, secure: &Secure) -> Dial {
    let mut dial = dial(address, &[protocol], Some(secure));
    let tls = dial.tls.as_mut().expect("TLS");
    (tls.sessions, tls.early_data) = (Sessions::shared(), true);
    dial
}

#[test]
fn early_data_is_sent_accepted_and_sent_again_where_it_is_not() {
    for protocol in Protocol::ALL {
        let secure = Secure::new(0);
        let allow = |config: &mut rustls::ServerConfig| config.max_early_data_size = 1 << 14;
        secure.renew(allow);
        let dial = early(serve(protocol, Some(&secure)), protocol, &secure);
        let first = once(&dial);
        assert!(!first.early_data_sent && !first.resumed);
        let second = once(&dial);
        assert!(second.early_data_sent && second.early_data_accepted && second.resumed);
        // The server has forgotten the session.
        secure.renew(allow);
        let third = once(&dial);
        assert!(third.early_data_sent && !third.early_data_accepted && !third.resumed);
    }
}

#[test]
fn early_data_beyond_what_the_session_allows_follows_the_handshake() {
    for protocol in Protocol::ALL {
        let secure = Secure::new(0);
        // The request alone is longer.
        secure.renew(|config| config.max_early_data_size = 40);
        let dial = early(serve(protocol, Some(&secure)), protocol, &secure);
        once(&dial);
        let second = once(&dial);
        assert!(
            second.early_data_sent && second.early_data_accepted,
            "{protocol:?}"
        );
    }
}

#[test]
fn what_may_not_be_repeated_is_not_sent_early() {
    let secure = Secure::new(0);
    secure.renew(|config| config.max_early_data_size = 1 << 14);
    let dial = early(serve(Protocol::H1, Some(&secure)), Protocol::H1, &secure);
    once(&dial);
    let mut connection = Connection::open(&dial).expect("it listens");
    let post = Request::new(&dial.url, "POST", "/p", &[], &[]);
    let response = connection.exchange(&post).expect("a response");
    assert_eq!(response.body, b"/p");
    let found = handshake(&connection);
    assert!(found.resumed && !found.early_data_sent);
}

#[test]
fn certificate_of_another_authority_is_refused() {
    let (secure, other) = (Secure::new(0), Secure::new(0));
    let dial = dial(
        serve(Protocol::H1, Some(&secure)),
        &[Protocol::H1],
        Some(&other),
    );
    let failure = Connection::open(&dial).err().expect("it is unknown");
    assert_eq!(failure.cause, FailureCause::Tls);
    // Both authorities have the same name.
    let why = "tls: bad certificate: BadSignature; --insecure accepts any";
    assert_eq!(failure.message, why);
    assert!(dial.timeout == PATIENCE);
}

/// As `openssl req -x509` makes it: an authority that is its own server.
#[test]
fn certificate_that_is_signed_by_itself_is_named() {
    let secure = Secure::new(0);
    let key = KeyPair::generate().expect("there is randomness");
    let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own = params.self_signed(&key).expect("it can be signed");
    secure.renew(|config| {
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("it is a key");
        let key = aws_lc_rs::sign::any_supported_type(&key).expect("it can sign");
        let certified = CertifiedKey::new(vec![own.der().clone()], key);
        config.cert_resolver = Arc::new(SingleCertAndKey::from(certified));
    });
    let mut dial = dial(
        serve(Protocol::H1, Some(&secure)),
        &[Protocol::H1],
        Some(&secure),
    );
    let failure = Connection::open(&dial).err().expect("it is none");
    let why = "tls: bad certificate: CaUsedAsEndEntity; --insecure accepts any";
    assert_eq!(failure.message, why);
    dial.tls.as_mut().expect("TLS").trust = Trust::Nobody;
    assert!(Connection::open(&dial).is_ok());
}
