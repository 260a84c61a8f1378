//! Both roles of this crate against each other, with bytes cut anywhere.
//!
//! Source: RFC 8446, RFC 7301.

mod pair;

use std::sync::Arc;

use pair::{Leaf, OneKey, build, identity, root, self_signed};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, ServerName};
use tls::{Ciphers, ClientConfig, ClientConn, Config, Conn, Fault, Scratch, ServerTrust, Settings};

/// Both ends, and the plaintext that each received.
struct Ends {
    client: ClientConn,
    server: Conn,
    at_client: Vec<u8>,
    at_server: Vec<u8>,
}

impl Ends {
    fn new(config: &ClientConfig) -> Self {
        let name = ServerName::try_from("localhost").expect("a host name");
        Self {
            client: ClientConn::new(config, name).expect("the settings go together"),
            server: Conn::new(),
            at_client: Vec::new(),
            at_server: Vec::new(),
        }
    }

    /// Exchanges bytes in pieces of `step` until neither side has any.
    fn run(&mut self, config: &Arc<Config>, step: usize) -> Result<(), Fault> {
        loop {
            let (mut up, mut down) = (self.client.take_output(), self.server.take_output());
            if up.is_empty() && down.is_empty() {
                return Ok(());
            }
            self.client_sent(config, &mut up, step)?;
            self.server_sent(&mut down, step)?;
        }
    }

    fn client_sent(
        &mut self,
        config: &Arc<Config>,
        up: &mut [u8],
        step: usize,
    ) -> Result<(), Fault> {
        let received = &mut self.at_server;
        let mut sink = |plain: &[u8]| received.extend_from_slice(plain);
        for piece in up.chunks_mut(step) {
            self.server.receive(piece, &mut sink)?;
            if self.server.hello().is_some() {
                self.server.start(config, &[b"h2"], &mut sink)?;
            }
        }
        Ok(())
    }

    fn server_sent(&mut self, down: &mut [u8], step: usize) -> Result<(), Fault> {
        let received = &mut self.at_client;
        for piece in down.chunks_mut(step) {
            self.client
                .receive(piece, &mut |plain| received.extend_from_slice(plain))?;
        }
        Ok(())
    }
}

fn server(leaf: &Leaf) -> Arc<Config> {
    build(Settings {
        identities: vec![identity(leaf)],
        tickets: Some(OneKey::ring()),
        ciphers: Ciphers::parse("HIGH").expect("it chooses some"),
        ..Settings::default()
    })
}

fn leaf() -> Leaf {
    self_signed("localhost", &rcgen::PKCS_ECDSA_P256_SHA256)
}

fn alpn() -> Vec<Vec<u8>> {
    vec![b"h2".to_vec(), b"http/1.1".to_vec()]
}

fn any(sessions: usize) -> ClientConfig {
    ClientConfig::new(ServerTrust::Any, alpn(), sessions).expect("it can be set up")
}

#[test]
fn both_ends_get_what_the_other_sent_however_it_is_cut() {
    let (config, text) = (server(&leaf()), vec![b'x'; 40_000]);
    for step in [1, 7, 4096, usize::MAX] {
        let mut ends = Ends::new(&any(0));
        assert!(!ends.client.is_open());
        ends.run(&config, step).expect("they agree");
        assert!(ends.client.is_open() && ends.server.is_open());
        assert_eq!(ends.client.alpn(), Some(&b"h2"[..]));
        let (mut up, mut down) = (Scratch::default(), Scratch::default());
        ends.client
            .encrypt(&text, 1 << 14, &mut up)
            .expect("it is open");
        ends.server
            .encrypt(&text, 1400, &mut down)
            .expect("it is open");
        ends.client_sent(&config, &mut up.filled().to_vec(), step)
            .expect("it is whole");
        ends.server_sent(&mut down.filled().to_vec(), step)
            .expect("it is whole");
        assert!(ends.at_client == text && ends.at_server == text);
    }
}

#[test]
fn open_client_keeps_no_more_than_the_beginning_of_a_record() {
    const PIECES: [usize; 6] = [1, 3, 4, 5, 60_000, 1 << 17];
    let (config, text) = (server(&leaf()), vec![b'x'; 1 << 20]);
    for piece in PIECES {
        let mut ends = Ends::new(&any(0));
        ends.run(&config, usize::MAX).expect("they agree");
        let empty = ends.client.memory_bytes();
        let mut down = Scratch::default();
        ends.server
            .encrypt(&text, 1 << 14, &mut down)
            .expect("it is open");
        for piece in down.filled().to_vec().chunks_mut(piece) {
            ends.server_sent(piece, usize::MAX).expect("it is whole");
            let kept = ends.client.memory_bytes() - empty;
            assert!(kept <= 2 * RECORD_BYTES, "{kept}");
        }
        assert!(ends.at_client == text);
        assert_eq!(ends.client.memory_bytes(), empty);
    }
}

/// The longest record (RFC 8446 section 5.2), bytes.
const RECORD_BYTES: usize = 5 + (1 << 14) + 256;

#[test]
fn end_of_the_server_is_noticed() {
    let config = server(&leaf());
    let mut ends = Ends::new(&any(0));
    ends.run(&config, usize::MAX).expect("they agree");
    assert!(!ends.client.peer_closed());
    ends.server.close();
    ends.run(&config, 3).expect("an alert that is no error");
    assert!(ends.client.peer_closed());
}

#[test]
fn sessions_are_resumed_only_where_they_are_kept() {
    let config = server(&leaf());
    for (sessions, resumed) in [(0, false), (8, true)] {
        let client = any(sessions);
        for second in [false, true] {
            let mut ends = Ends::new(&client);
            ends.run(&config, usize::MAX).expect("they agree");
            assert_eq!(ends.client.is_resumed(), resumed && second);
        }
    }
}

#[test]
fn certificate_of_an_unknown_authority_ends_the_handshake_with_an_alert() {
    let mut roots = RootCertStore::empty();
    let other = root("another authority");
    let der = CertificateDer::from(other.der().to_vec());
    roots.add(der).expect("it is a certificate");
    let client = ClientConfig::new(ServerTrust::Authorities(roots), alpn(), 0);
    let (client, config) = (client.expect("it can be set up"), server(&leaf()));
    let mut ends = Ends::new(&client);
    let fault = ends.run(&config, usize::MAX).expect_err("it is unknown");
    assert!(matches!(fault, Fault::Protocol(_)), "{fault}");
    assert!(!ends.client.is_open());
    let mut alert = ends.client.take_output();
    assert!(!alert.is_empty());
    let told = ends.client_sent(&config, &mut alert, usize::MAX);
    assert!(matches!(told, Err(Fault::Alert(_))), "{told:?}");
    // Input after an error is left unread.
    assert_eq!(ends.client.receive(&mut [22, 3, 3], &mut |_| {}), Ok(()));
}
