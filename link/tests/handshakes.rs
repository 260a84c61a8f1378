//! TLS handshakes over an emulated link of 50 ms take no more round trips than the protocol needs. This holds for all
//! certificates that fit one flight of TCP, with acknowledgements held for 200 ms.
//!
//! The clock runs from the TCP connection to the end of the handshake, and on to the first byte of a response.
//! `LINK_ROUNDS` is the number of rounds (1; more by `make test-all`), `LINK_TABLE=1` prints the figures. It is skipped
//! with a message if links are not possible (see `support::available`).

mod support;
mod sweep;
mod tls;

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use firstbyte_tests::{Builder, Server, peer};
use link::{Direction, Link, Options};
use rustls::client::Resumption;
use rustls::compress::{BROTLI_DECOMPRESSOR, ZLIB_DECOMPRESSOR};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, StreamOwned};
use support::available;
use sweep::{LATE_THRESHOLD, median};
use tls::Version::{Tls12, Tls13};
use tls::chain::{Algorithm, Chain, Issuer};
use tls::{client, decompressing};

const MS: Duration = Duration::from_millis(1);

/// Attempts to take a sample while the link is on time.
const ATTEMPTS: usize = 20;

/// Samples of each kind in a round.
const SAMPLES: usize = 3;

/// Bytes of the Certificate message: two elliptic-curve certificates with few names; three of RSA; a full first flight;
/// and more than fits it uncompressed.
const SIZES: [usize; 4] = [1_700, 4_900, 9_700, 14_300];

/// Body size that fits a flight of ten segments with all overhead.
const FITS: usize = 9_700;

/// Tolerance of the median above its round trips, in round trips: the work of both ends.
const OVER: f64 = 0.1;

/// Tolerance of any sample, the first one of a server included.
const SAMPLE_OVER: f64 = 0.25;

fn rounds() -> usize {
    let rounds = std::env::var("LINK_ROUNDS").ok();
    rounds.map_or(1, |text| text.parse().expect("LINK_ROUNDS is a number"))
}

/// One kind of handshake.
struct Case {
    what: &'static str,
    name: String,
    message_bytes: usize,
    config: Arc<ClientConfig>,
    kind: HandshakeKind,
    /// Permitted round trips; `None` if they are only shown.
    enough: Option<u32>,
}

/// One handshake, in round trips.
#[derive(Clone, Copy, Debug)]
struct Sample {
    handshake: f64,
    answered: f64,
    flight_bytes: u32,
}

fn name(algorithm: Algorithm, size: usize) -> String {
    format!("{algorithm:?}-{size}.example.org").to_ascii_lowercase()
}

/// The chains of both algorithms, by name.
fn chains() -> &'static [(String, Chain)] {
    static CHAINS: OnceLock<Vec<(String, Chain)>> = OnceLock::new();
    CHAINS.get_or_init(make_chains)
}

fn make_chains() -> Vec<(String, Chain)> {
    let mut chains = Vec::new();
    for algorithm in [Algorithm::Ecdsa, Algorithm::Rsa] {
        let (short, long) = (Issuer::new(algorithm, 1), Issuer::new(algorithm, 2));
        for size in SIZES {
            let issuer = if size == SIZES[0] { &short } else { &long };
            let name = name(algorithm, size);
            chains.push((name.clone(), issuer.chain(&name, size)));
        }
    }
    chains
}

/// A server with a name for each chain.
fn site(chains: &[(String, Chain)]) -> Builder {
    let compression = match peer::is_firstbyte() {
        true => "ssl_certificate_compression on;",
        false => "",
    };
    let mut text = format!("ssl_protocols TLSv1.2 TLSv1.3; {compression}\n");
    for (name, _) in chains {
        let _ = writeln!(
            text,
            "server {{ listen %%PORT%% ssl; server_name {name}; return 200 hello;
             ssl_certificate %%DIR%%/{name}.crt; ssl_certificate_key %%DIR%%/{name}.key; }}"
        );
    }
    chains
        .iter()
        .fold(Server::http(&text), |builder, (name, chain)| {
            builder
                .bytes(&format!("{name}.crt"), chain.certificates.as_bytes())
                .bytes(&format!("{name}.key"), chain.key.as_bytes())
        })
}

/// Handshakes of both versions, with uncompressed certificates and with resumed sessions.
fn plain(chains: &[(String, Chain)]) -> Vec<Case> {
    let mut cases = Vec::new();
    for (version, what, resumed, enough) in [
        (Tls12, "TLS 1.2", "TLS 1.2 resumed", 2),
        (Tls13, "TLS 1.3", "TLS 1.3 resumed", 1),
    ] {
        for chain in chains {
            let enough = (chain.1.message_bytes <= FITS).then_some(enough);
            cases.push(Case::new(
                what,
                chain,
                client(version, &["http/1.1"]),
                enough,
            ));
        }
        let mut config = client(version, &["http/1.1"]);
        config.resumption = Resumption::in_memory_sessions(8);
        let resumed = Case::new(resumed, &chains[0], config, Some(1));
        cases.push(Case {
            kind: HandshakeKind::Resumed,
            ..resumed
        });
    }
    cases
}

/// Handshakes with certificates compressed.
fn compressed(chains: &[(String, Chain)]) -> Vec<Case> {
    let mut cases = Vec::new();
    for (what, how) in [
        ("TLS 1.3 brotli", BROTLI_DECOMPRESSOR),
        ("TLS 1.3 zlib", ZLIB_DECOMPRESSOR),
    ] {
        for chain in chains {
            cases.push(Case::new(what, chain, decompressing(Tls13, how), Some(1)));
        }
    }
    cases
}

impl Case {
    fn new(
        what: &'static str,
        chain: &(String, Chain),
        config: ClientConfig,
        enough: Option<u32>,
    ) -> Self {
        Self {
            what,
            name: chain.0.clone(),
            message_bytes: chain.1.message_bytes,
            config: Arc::new(config),
            kind: HandshakeKind::Full,
            enough,
        }
    }

    /// Makes one handshake and one request; returns its kind, and the moments of its begin, its end, and the response.
    fn shake(&self, server: SocketAddr) -> io::Result<(Option<HandshakeKind>, [Instant; 3])> {
        let mut stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(5000 * MS))?;
        let name = ServerName::try_from(self.name.clone()).map_err(io::Error::other)?;
        let begun = Instant::now();
        let connection = ClientConnection::new(Arc::clone(&self.config), name);
        let mut connection = connection.map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        let done = Instant::now();
        let kind = connection.handshake_kind();
        let mut stream = StreamOwned::new(connection, stream);
        write!(stream, "GET / HTTP/1.1\r\nHost: {}\r\n\r\n", self.name)?;
        let mut head = [0; 12];
        stream.read_exact(&mut head)?;
        let answered = Instant::now();
        if head != *b"HTTP/1.1 200" {
            let what = String::from_utf8_lossy(&head);
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        Ok((kind, [begun, done, answered]))
    }

    fn shaken(&self, link: &Link, server: SocketAddr) -> (Option<HandshakeKind>, [Instant; 3]) {
        let shaken = link.in_client(|| self.shake(server));
        shaken.unwrap_or_else(|error| panic!("{} of {}: {error}", self.what, self.name))
    }

    /// Shakes hands until the link was on time for it.
    fn sample(&self, link: &Link, server: SocketAddr) -> Option<Sample> {
        for _ in 0..ATTEMPTS {
            let _ = link.take_trace();
            let (kind, [begun, done, answered]) = self.shaken(link, server);
            assert_eq!(kind, Some(self.kind), "{} of {}", self.what, self.name);
            if link.worst_between(begun, answered) > LATE_THRESHOLD {
                continue;
            }
            let flight = link.take_trace().entries.into_iter().filter(|entry| {
                entry.direction == Direction::ToClient && entry.left >= begun && entry.left <= done
            });
            let round_trip = link.round_trip().as_secs_f64();
            return Some(Sample {
                handshake: (done - begun).as_secs_f64() / round_trip,
                answered: (answered - begun).as_secs_f64() / round_trip,
                flight_bytes: flight
                    .filter_map(|entry| entry.segment)
                    .map(|segment| segment.payload_bytes)
                    .sum(),
            });
        }
        support::inconclusive(&format!("{} of {}", self.what, self.name), link);
        None
    }

    /// Runs all rounds, and returns the faults.
    fn judge(&self, link: &Link, server: SocketAddr, table: &mut String) -> Vec<String> {
        if self.kind == HandshakeKind::Resumed {
            // The session to resume; it resumes an earlier one itself when the case is judged again.
            self.shaken(link, server);
        }
        let samples: Option<Vec<Sample>> = (0..rounds() * SAMPLES)
            .map(|_| self.sample(link, server))
            .collect();
        let Some(samples) = samples else {
            return Vec::new();
        };
        let (handshake, worst) = summary(samples.iter().map(|sample| sample.handshake));
        let (answered, late) = summary(samples.iter().map(|sample| sample.answered));
        let flight = samples.iter().map(|sample| sample.flight_bytes).max();
        let _ = writeln!(
            table,
            "{:16} {:26} {:7} {:7} {handshake:7.3} {worst:6.3} {answered:9.3} {late:6.3}",
            self.what,
            self.name,
            self.message_bytes,
            flight.unwrap_or_default()
        );
        let Some(enough) = self.enough else {
            return Vec::new();
        };
        let enough = f64::from(enough);
        let mut found = Vec::new();
        for (what, median, worst, enough) in [
            ("the handshake", handshake, worst, enough),
            ("the answer", answered, late, enough + 1.0),
        ] {
            if median > enough + OVER || worst > enough + SAMPLE_OVER {
                found.push(format!(
                    "{} of {}: {what} took {median:.3} round trips, {worst:.3} at worst; {enough} are enough",
                    self.what, self.name
                ));
            }
        }
        found
    }
}

/// The median and the worst.
fn summary(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let times: Vec<Duration> = numbers.map(Duration::from_secs_f64).collect();
    let worst = times.iter().max().copied().unwrap_or_default();
    (median(&times).as_secs_f64(), worst.as_secs_f64())
}

/// Runs these cases against the binary under test.
fn judge(cases: fn(&[(String, Chain)]) -> Vec<Case>) {
    let made = available(Link::new(Options {
        client_ack_hold: Some(200 * MS),
        trace: true,
        ..Options::default()
    }));
    let Some(link) = made else { return };
    let shows = std::env::var_os("LINK_TABLE").is_some();
    let chains = chains();
    let server = link.in_server(|| site(chains).start());
    let address = (link.server_address(), server.port()).into();
    let mut table = String::from(
        "protocol         chain                      message  flight   handshake worst  answered  worst\n",
    );
    let mut findings = Vec::new();
    let mut cases = cases(chains);
    cases.retain(|case| shows || case.enough.is_some());
    for case in cases {
        // Other load also delays the server's cryptography, which the link does not see. So a fault must be found each
        // time.
        let attempts = (0..JUDGED).map(|_| case.judge(&link, address, &mut table));
        let mut found = Vec::new();
        for attempt in attempts {
            found = attempt;
            if found.is_empty() {
                break;
            }
        }
        findings.extend(found);
    }
    if shows {
        eprintln!("{table}{:?}", link.lateness());
    }
    assert!(findings.is_empty(), "{}\n{table}", findings.join("\n"));
}

/// Attempts in which a fault must be found.
const JUDGED: usize = 3;

#[test]
fn handshakes_take_no_more_round_trips_than_the_protocol_needs() {
    judge(plain);
}

#[test]
fn compressed_certificates_that_fill_more_than_a_flight_take_one_round_trip() {
    if peer::is_firstbyte() {
        judge(compressed);
    }
}
