//! Handshakes with a client of rustls: negotiation, application data, and resumption.
#![allow(
    clippy::disallowed_types,
    reason = "a cache of sessions is shared, and is none of the engine's"
)]

mod pair;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pair::{
    OneKey, Pair, Wishes, build, client_config, identity, intermediate, root, self_signed, settings,
};
use rustls::{CipherSuite, NamedGroup, ProtocolVersion, SignatureScheme, version};
use tls::{
    Chain, Ciphers, Config, Groups, Identity, Key, Policy, SessionCache, Settings, Versions,
};

const TLS12: &[&rustls::SupportedProtocolVersion] = &[&version::TLS12];
const TLS13: &[&rustls::SupportedProtocolVersion] = &[&version::TLS13];

/// Sessions without an end.
#[derive(Debug, Default)]
struct Kept(Mutex<HashMap<Vec<u8>, Vec<u8>>>);

impl SessionCache for Kept {
    fn put(&self, key: Vec<u8>, value: Vec<u8>, _: u64, _: u64) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(key, value);
    }

    fn get(&self, key: &[u8], _: u64) -> Option<Vec<u8>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).cloned()
    }

    fn take(&self, key: &[u8], _: u64) -> Option<Vec<u8>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(key)
    }
}

fn shake(client: &Arc<rustls::ClientConfig>, server: &Arc<Config>) -> Pair {
    Pair::shake(client, server, "localhost").expect("they agree")
}

/// Whether a second connection to one configuration resumes a session begun at another.
fn resumes(versions: Wishes, first: &Arc<Config>, second: &Arc<Config>) -> bool {
    let client = client_config(versions);
    let pair = shake(&client, first);
    assert!(!pair.server.info().expect("it is open").resumed);
    let pair = shake(&client, second);
    pair.server.info().expect("it is open").resumed
}

fn only(versions: &'static [&'static rustls::SupportedProtocolVersion]) -> Wishes {
    Wishes {
        versions,
        ..Wishes::default()
    }
}

#[test]
fn records_in_one_read_are_all_taken_in_order() {
    let mut pair = shake(
        &client_config(Wishes::default()),
        &build(settings("localhost")),
    );
    assert!(pair.server.is_open());
    let mut bytes = pair.client_says(b"first ");
    bytes.extend(pair.client_says(b"second "));
    bytes.extend(pair.client_says(b"third"));
    let mut received = Vec::new();
    pair.server
        .receive(&mut bytes, &mut |plain| received.extend_from_slice(plain))
        .expect("the records are whole");
    assert_eq!(received, b"first second third");
    assert_eq!(pair.server_says(b"answer"), b"answer");
}

#[test]
fn versions_that_are_off_are_not_spoken() {
    for (versions, tls12, tls13) in [
        (Versions::Tls12, true, false),
        (Versions::Tls13, false, true),
        (Versions::Both, true, true),
    ] {
        let server = build(Settings {
            versions,
            ..settings("localhost")
        });
        let agreed = |versions| Pair::shake(&client_config(only(versions)), &server, "localhost");
        assert_eq!(agreed(TLS12).is_ok_and(|pair| pair.server.is_open()), tls12);
        assert_eq!(agreed(TLS13).is_ok_and(|pair| pair.server.is_open()), tls13);
    }
}

#[test]
fn what_is_agreed_on_is_told() {
    let server = build(Settings {
        ciphers: Ciphers::parse("ECDHE-ECDSA-AES128-GCM-SHA256").expect("it is built"),
        groups: Groups::parse("secp384r1").expect("it is built"),
        alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        ..settings("localhost")
    });
    let client = client_config(Wishes {
        alpn: vec![b"http/1.1".to_vec(), b"h2".to_vec()],
        ..only(TLS12)
    });
    let info = shake(&client, &server).server.info().expect("it is open");
    assert_eq!(info.version, Some(ProtocolVersion::TLSv1_2));
    let suite = CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256;
    assert_eq!(info.cipher, Some(suite));
    assert_eq!(info.group, Some(NamedGroup::secp384r1));
    assert_eq!(
        info.alpn.as_deref(),
        Some(&b"h2"[..]),
        "the server's order counts"
    );
    assert_eq!(info.server_name.as_deref(), Some(&b"localhost"[..]));
    assert!(info.offered.ciphers.contains(&u16::from(suite)));
    assert!(info.offered.groups.contains(&0x18));
    assert!(!info.offered.schemes.is_empty());
}

#[test]
fn the_order_of_suites_is_the_clients_unless_the_server_says_otherwise() {
    let chosen = |prefer_server_ciphers| {
        let server = build(Settings {
            ciphers: Ciphers::parse("CHACHA20:AES256").expect("they are built"),
            prefer_server_ciphers,
            ..settings("localhost")
        });
        let info = shake(&client_config(only(TLS12)), &server).server.info();
        info.and_then(|info| info.cipher)
    };
    let (aes, chacha) = (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    );
    assert_eq!(chosen(false), Some(aes));
    assert_eq!(chosen(true), Some(chacha));
}

#[test]
fn protocols_without_one_in_common_end_the_handshake() {
    let server = build(Settings {
        alpn: vec![b"http/1.1".to_vec()],
        ..settings("localhost")
    });
    let client = client_config(Wishes {
        alpn: vec![b"unknown".to_vec()],
        ..Wishes::default()
    });
    let failed = Pair::shake(&client, &server, "localhost");
    let fault = failed.err().expect("they have none in common");
    assert!(fault.to_string().starts_with("SSL_do_handshake() failed"));
}

#[test]
fn the_certificate_is_one_that_the_client_can_check() {
    let rsa = self_signed("rsa", &rcgen::PKCS_RSA_SHA256);
    let replaced = self_signed("replaced", &rcgen::PKCS_RSA_SHA256);
    let ecdsa = self_signed("ecdsa", &rcgen::PKCS_ECDSA_P256_SHA256);
    let edwards = self_signed("edwards", &rcgen::PKCS_ED25519);
    let server = build(Settings {
        identities: [&replaced, &ecdsa, &edwards, &rsa].map(identity).to_vec(),
        ..settings("localhost")
    });
    let shown = |schemes: &[SignatureScheme], versions| {
        let client = client_config(Wishes {
            schemes: Some(schemes.to_vec()),
            versions,
            ..Wishes::default()
        });
        let pair = shake(&client, &server);
        let certificates = pair.client.peer_certificates();
        certificates.expect("there is one")[0].to_vec()
    };
    for versions in [TLS12, TLS13] {
        assert_eq!(shown(&[SignatureScheme::RSA_PSS_SHA256], versions), rsa.der);
        assert_eq!(
            shown(&[SignatureScheme::ECDSA_NISTP256_SHA256], versions),
            ecdsa.der
        );
        assert_eq!(
            shown(
                &[
                    SignatureScheme::RSA_PSS_SHA256,
                    SignatureScheme::ECDSA_NISTP256_SHA256
                ],
                versions
            ),
            rsa.der,
            "the client's order counts"
        );
    }
    assert_eq!(shown(&[SignatureScheme::ED25519], TLS13), edwards.der);
}

#[test]
fn a_ticket_resumes_a_session() {
    for versions in [TLS12, TLS13] {
        let server = build(Settings {
            tickets: Some(OneKey::ring()),
            ..settings("localhost")
        });
        assert!(resumes(only(versions), &server, &server));
        let without = build(settings("localhost"));
        assert!(!resumes(only(versions), &without, &without));
    }
}

#[test]
fn a_kept_session_is_resumed() {
    for versions in [TLS12, TLS13] {
        let server = build(Settings {
            sessions: Some(Arc::new(Kept::default())),
            ..settings("localhost")
        });
        assert!(resumes(only(versions), &server, &server));
        // Each connection has settings of its own.
        let (one, other) = (server.shared(), server.shared());
        assert!(resumes(only(versions), &one, &other) && !Arc::ptr_eq(&one, &other));
    }
}

#[test]
fn a_session_of_another_configuration_is_none() {
    let (ring, kept): (_, Arc<dyn SessionCache>) = (OneKey::ring(), Arc::new(Kept::default()));
    let with = |identities: Vec<Identity>, tickets: bool| {
        build(Settings {
            identities,
            tickets: tickets.then(|| Arc::clone(&ring)),
            sessions: Some(Arc::clone(&kept)),
            ..settings("localhost")
        })
    };
    let [own, others] = ["own", "others"]
        .map(|name| vec![identity(&self_signed(name, &rcgen::PKCS_ECDSA_P256_SHA256))]);
    for versions in [TLS12, TLS13] {
        for tickets in [true, false] {
            let first = with(own.clone(), tickets);
            assert!(resumes(only(versions), &first, &with(own.clone(), tickets)));
            assert!(!resumes(
                only(versions),
                &first,
                &with(others.clone(), tickets)
            ));
        }
    }
}

#[test]
fn servers_of_one_policy_have_certificates_and_sessions_of_their_own() {
    let with_tickets = Settings {
        tickets: Some(OneKey::ring()),
        ..settings("unused")
    };
    let with_sessions = Settings {
        sessions: Some(Arc::new(Kept::default())),
        ..settings("unused")
    };
    for settings in [with_tickets, with_sessions] {
        let policy = Arc::new(Policy::build(settings).expect("the settings go together"));
        let leaves = [1, 2].map(|_| self_signed("localhost", &rcgen::PKCS_ECDSA_P256_SHA256));
        let servers = leaves
            .each_ref()
            .map(|leaf| Arc::new(Config::of(Arc::clone(&policy), vec![identity(leaf)])));
        for versions in [TLS12, TLS13] {
            // The handshakes of both go on by turns, on one thread.
            let client = client_config(only(versions));
            let mut pairs = [1, 2].map(|_| Pair::new(&client, "localhost"));
            let mut goes_on = true;
            while goes_on {
                goes_on = false;
                for (pair, server) in pairs.iter_mut().zip(&servers) {
                    goes_on |= pair.step(server).expect("they agree");
                }
            }
            for (pair, leaf) in pairs.iter().zip(&leaves) {
                let shown = pair.client.peer_certificates().expect("one was shown");
                assert_eq!(shown[0].as_ref(), leaf.der);
            }
            let [one, other] = &servers;
            assert!(resumes(only(versions), one, one));
            assert!(resumes(only(versions), other, other));
            assert!(!resumes(only(versions), one, other));
        }
    }
}

#[test]
fn a_session_of_another_name_is_none() {
    let server = build(Settings {
        tickets: Some(OneKey::ring()),
        ..settings("localhost")
    });
    let client = client_config(Wishes::default());
    shake(&client, &server);
    // The client keeps sessions by name, so it is made to offer one under another name.
    let mut hello = Pair::new(&client, "localhost");
    let mut up = Vec::new();
    hello.client.write_tls(&mut up).expect("memory takes all");
    let at = up
        .windows(9)
        .position(|part| part == b"localhost")
        .expect("the name is in the clear");
    up[at..at + 9].copy_from_slice(b"otherhost");
    let mut conn = tls::Conn::new();
    conn.receive(&mut up, &mut |_| {}).expect("it is a hello");
    assert_eq!(
        conn.hello().and_then(|hello| hello.server_name.as_deref()),
        Some(&b"otherhost"[..])
    );
    // An accepted session would make the binder wrong; an unknown one leads to a full handshake.
    conn.start(&server, &[], &mut |_| {})
        .expect("the session is passed over");
}

/// rustls reads the head of a message and fails: its alert must be taken with the same bytes, and once.
#[test]
fn broken_handshakes_end_with_one_alert_at_most() {
    let server = build(settings("localhost"));
    for head in [
        &[22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff][..],
        &[22, 3, 1, 0, 4, 2, 0, 0, 0],
        &[22, 3, 1, 0, 4, 1, 0, 0, 0],
        &[22, 3, 1, 0, 6, 1, 0, 0, 2, 3, 3],
        &[22, 3, 1, 0xff, 0xff, 1, 0, 0, 0],
        &[22, 3, 1, 0, 1, 1, 22, 3, 1, 0, 3, 0xff, 0xff, 0xff],
    ] {
        let mut bytes = head.to_vec();
        bytes.resize(70_000, 0);
        let mut conn = tls::Conn::new();
        let mut sink = |_: &[u8]| panic!("nothing was sent");
        let mut result = conn.receive(&mut bytes, &mut sink);
        if result.is_ok() && conn.hello().is_some() {
            result = conn.start(&server, &[], &mut sink);
        }
        assert!(result.is_err(), "{head:?}");
        let out = conn.take_output();
        let is_alert = out.len() == 7 && out[0] == 21;
        assert!(out.is_empty() || is_alert, "{out:?} for {head:?}");
    }
}

#[test]
fn early_data_is_taken_once() {
    let server = build(Settings {
        sessions: Some(Arc::new(Kept::default())),
        tickets: Some(OneKey::ring()),
        early_data_bytes: 16 << 10,
        ..settings("localhost")
    });
    let client = client_config(Wishes {
        early_data: true,
        ..only(TLS13)
    });
    shake(&client, &server);
    let mut pair = Pair::new(&client, "localhost");
    std::io::Write::write_all(
        &mut pair.client.early_data().expect("there is a session"),
        b"early",
    )
    .expect("it fits");
    let mut first = Vec::new();
    while pair.client.wants_write() {
        pair.client.write_tls(&mut first).expect("memory takes all");
    }
    let receive = |mut bytes: Vec<u8>| {
        let mut conn = tls::Conn::new();
        let mut received = Vec::new();
        let mut sink = |plain: &[u8]| received.extend_from_slice(plain);
        conn.receive(&mut bytes, &mut sink).expect("it is a hello");
        conn.start(&server, &[], &mut sink).expect("they agree");
        received
    };
    assert_eq!(receive(first.clone()), b"early");
    assert_eq!(receive(first), b"", "the same bytes a second time");
}

/// A long chain of certificates, as on some sites.
fn long_chain() -> Identity {
    let top = root("Some Authority with quite a long name for the sake of the length of the chain");
    let mut chain = Vec::new();
    let mut above = top;
    for n in 0..26 {
        let next = intermediate(
            &format!("Authority number {n} of Some Authority with quite a long name"),
            &above,
        );
        chain.insert(0, next.pem());
        above = next;
    }
    let leaf = pair::client_with("localhost", &above, |_| {});
    let text = leaf.certificate + &chain.concat();
    let key = Key::from_pem(leaf.key.as_bytes(), &[]).expect("it is a key");
    let chain = Chain::from_pem(text.as_bytes()).expect("they are certificates");
    Identity::new(chain, &key, None).expect("they belong together")
}

#[test]
fn compressed_certificates_fit_into_the_first_flight() {
    let chain = long_chain();
    let flight = |compress| {
        let server = build(Settings {
            identities: vec![chain.clone()],
            compress,
            ..settings("localhost")
        });
        shake(&client_config(only(TLS13)), &server).first_flight
    };
    let plain = flight(false);
    assert!(plain > INITIAL_WINDOW_BYTES, "{plain}");
    let compressed = flight(true);
    assert!(compressed < INITIAL_WINDOW_BYTES, "{compressed}");
}

/// Bytes that a server may send before any acknowledgement (RFC 6928): ten segments of 1460 bytes.
const INITIAL_WINDOW_BYTES: usize = 14_600;
