//! First and last bytes over an emulated link of 50 ms: no byte of the server waits for an acknowledgement.
//!
//! Bodies of many sizes, twelve requests on each connection, with acknowledgements that come 200 ms and 40 ms late,
//! over HTTP/1.1, HTTP/2 and SPDY, plain and with TLS. `sweep` describes the criteria. A further protocol is a further
//! `Peer` beside `h1`, `h2` and `spdy`, and a line of `Framing`. `LINK_ROUNDS` is the number of rounds (1; more by
//! `make test-all`), `LINK_TABLE=1` prints the figures. Each test is skipped with a message if links are not possible
//! (see `support::available`).

mod compressed;
mod h1;
mod h2;
mod round_trips;
mod spdy;
#[path = "../support/mod.rs"]
mod support;
#[path = "../sweep/mod.rs"]
mod sweep;
#[path = "../tls/mod.rs"]
mod tls;
mod transport;
mod withholding;

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;
use std::{fmt, io};

use firstbyte_tests::{Builder, Server, peer};
use link::{Direction, Link, Options};
use round_trips::RoundTrips;
use support::available;
use sweep::{Outcome, Peer, SIZES, Sample, Sweep};
use tls::Version::{self, Tls12, Tls13};
use tls::chain::{Algorithm, Chain, Issuer};
use transport::{NAME, Transport};

const MS: Duration = Duration::from_millis(1);

/// Maximum number of sweeps, if the link was late or a fault was found.
const ATTEMPTS: usize = 5;

/// Attempts in which a fault must be found.
const FOUND_MAX: usize = 3;

/// The sizes that fit a segment or some; a last piece that waits can be detected for sure.
const SMALL: [usize; 5] = [1, 100, 1024, 1461, 4096];

fn rounds() -> usize {
    let rounds = std::env::var("LINK_ROUNDS").ok();
    rounds.map_or(1, |text| text.parse().expect("LINK_ROUNDS is a number"))
}

fn holding(hold: Duration, trace: bool) -> Option<Link> {
    available(Link::new(Options {
        client_ack_hold: Some(hold),
        trace,
        ..Options::default()
    }))
}

/// Protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Http1,
    Http2,
    Spdy,
}

/// Protocol and transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Protocol {
    framing: Framing,
    /// TLS, if there is.
    version: Option<Version>,
}

const fn protocol(framing: Framing, version: Option<Version>) -> Protocol {
    Protocol { framing, version }
}

const HTTP_1: Protocol = protocol(Framing::Http1, None);
const HTTP_1_TLS12: Protocol = protocol(Framing::Http1, Some(Tls12));
const HTTP_1_TLS13: Protocol = protocol(Framing::Http1, Some(Tls13));
const HTTP_2: Protocol = protocol(Framing::Http2, None);
const HTTP_2_TLS: Protocol = protocol(Framing::Http2, Some(Tls13));
const SPDY: Protocol = protocol(Framing::Spdy, None);
const SPDY_TLS: Protocol = protocol(Framing::Spdy, Some(Tls13));
const ALL: [Protocol; 7] = [
    HTTP_1,
    HTTP_1_TLS12,
    HTTP_1_TLS13,
    HTTP_2,
    HTTP_2_TLS,
    SPDY,
    SPDY_TLS,
];

impl Framing {
    /// Its name in ALPN.
    fn alpn(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
            Self::Spdy => "spdy/3.1",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.framing {
            Framing::Http1 => "HTTP/1.1",
            Framing::Http2 => "HTTP/2",
            Framing::Spdy => "SPDY",
        })?;
        f.write_str(match self.version {
            None => "",
            Some(Tls12) => " over TLS 1.2",
            Some(Tls13) => " over TLS 1.3",
        })
    }
}

impl Protocol {
    /// A client of the server at this address.
    fn peer(self, server: SocketAddr) -> Box<dyn Peer + Send> {
        self.peer_asking_for(server, &[])
    }

    /// A client whose connections request these codings in turn.
    fn peer_asking_for(self, server: SocketAddr, codings: &[&'static str]) -> Box<dyn Peer + Send> {
        let transport = Transport::new(server, self.version, self.framing.alpn());
        let transport = transport.asking_for(codings);
        match self.framing {
            Framing::Http1 => Box::new(h1::H1::new(transport)),
            Framing::Http2 => Box::new(h2::H2::new(transport)),
            Framing::Spdy => Box::new(spdy::Spdy::new(transport)),
        }
    }

    /// The round trips of a connection before a request can be sent.
    fn round_trips(self) -> u32 {
        match self.version {
            None => 1,
            Some(Tls13) => 2,
            Some(Tls12) => 3,
        }
    }

    /// Returns whether the binary under test supports it; nginx had other directives before 1.25.
    fn is_known(self) -> bool {
        match self.framing {
            Framing::Http1 => true,
            Framing::Http2 => peer::knows_nginx(25),
            Framing::Spdy => peer::is_firstbyte(),
        }
    }
}

/// Certificates as a small site has them.
fn chain() -> &'static Chain {
    static CHAIN: OnceLock<Chain> = OnceLock::new();
    CHAIN.get_or_init(|| Issuer::new(Algorithm::Ecdsa, 1).chain(NAME, 1700))
}

/// A server with a file of each size, named by it.
fn site() -> Builder {
    site_with("")
}

/// Starts the server with more directives.
fn site_with(more: &str) -> Builder {
    let http2 = if HTTP_2.is_known() { "http2 on;" } else { "" };
    let spdy = if SPDY.is_known() { "spdy" } else { "" };
    let files = format!(
        "{more} ssl_protocols TLSv1.2 TLSv1.3; {http2}
         ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
         server {{ listen %%PORT%% {spdy}; listen %%PORT2%% ssl {spdy}; root %%DIR%%/html; }}"
    );
    let builder = Server::http(&files)
        .bytes("c.pem", chain().certificates.as_bytes())
        .bytes("k.pem", chain().key.as_bytes());
    SIZES.iter().fold(builder, |builder, &size| {
        builder.bytes(&format!("html/{size}"), &text(size))
    })
}

/// Text that compresses to about three quarters, so that large bodies stay large: letters at random (SplitMix64).
fn text(len: usize) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = 0_u64;
    let mut letter = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        LETTERS[(mixed >> 58) as usize]
    };
    std::iter::repeat_with(&mut letter).take(len).collect()
}

/// The server's address for a protocol.
fn address(link: &Link, server: &Server, protocol: Protocol) -> SocketAddr {
    let port = match protocol.version {
        None => server.port(),
        Some(_) => server.port_number(2),
    };
    (link.server_address(), port).into()
}

/// Runs a sweep until the link was on time for it and nothing was found. Waiting for an acknowledgement happens each
/// time; a delay by a busy machine does not repeat.
fn judge(what: &str, link: &Link, sweep: &Sweep, peer: &mut (dyn Peer + Send)) {
    let shows = std::env::var_os("LINK_TABLE").is_some();
    let mut found = 0;
    for attempt in 1..=ATTEMPTS {
        let outcome = sweep.run(link, peer).expect("the server answers");
        let samples = sweep.rounds * sweep.sizes.len() * sweep.requests;
        assert_eq!(outcome.samples.len(), samples);
        let (table, lateness) = (outcome.table(), link.lateness());
        if shows {
            eprintln!("{what}, {lateness:?}\n{table}");
        }
        let findings = outcome.findings();
        if !findings.is_empty() {
            found += 1;
            let findings = findings.join("\n");
            let line = format!("{what}, attempt {attempt}:\n{findings}\n{table}\n{lateness:?}");
            assert!(found < FOUND_MAX && !support::is_strict(), "{line}");
            eprintln!("{line}");
        } else if outcome.is_conclusive() {
            return;
        }
    }
    support::inconclusive(&format!("{what}, {found} times with findings"), link);
}

/// Runs the whole sweep against the binary under test.
fn sweep(protocol: Protocol, hold: Duration) {
    if protocol.is_known() {
        sweep_of("", protocol, hold, &[], &SIZES);
    }
}

/// Sweeps with more directives, and with bodies of these sizes, coded so: each connection in its turn.
fn sweep_of(
    more: &str,
    protocol: Protocol,
    hold: Duration,
    codings: &[&'static str],
    sizes: &[usize],
) {
    let Some(link) = holding(hold, true) else {
        return;
    };
    let server = link.in_server(|| site_with(more).start());
    let mut peer = protocol.peer_asking_for(address(&link, &server, protocol), codings);
    let sweep = Sweep {
        sizes: sizes.to_vec(),
        rounds: rounds(),
        ..Sweep::default()
    };
    let what = format!("{protocol} {codings:?}, acknowledgements held for {hold:?}");
    judge(&what, &link, &sweep, &mut *peer);
}

/// Runs a test of each protocol over links of their own, `at_once` at a time: nearly all of their time is waiting. A test that is
/// to prove figures runs them in turn.
fn each(protocols: &[Protocol], at_once: usize, test: impl Fn(Protocol) + Sync) {
    let at_once = if support::is_strict() { 1 } else { at_once };
    let test = &test;
    for some in protocols.chunks(at_once) {
        // A panic of a thread is that of the test; its message has the protocol.
        std::thread::scope(|scope| {
            for &protocol in some {
                scope.spawn(move || test(protocol));
            }
        });
    }
}

#[test]
fn bodies_wait_for_no_acknowledgement_held_for_200_ms() {
    each(&ALL, ALL.len(), |protocol| sweep(protocol, 200 * MS));
}

#[test]
fn bodies_wait_for_no_acknowledgement_held_for_40_ms() {
    each(&ALL, ALL.len(), |protocol| sweep(protocol, 40 * MS));
}

#[test]
fn body_of_the_first_window_leaves_in_one_flight() {
    let Some(link) = holding(200 * MS, true) else {
        return;
    };
    let server = link.in_server(|| site().start());
    for protocol in ALL.into_iter().filter(|protocol| protocol.is_known()) {
        let mut peer = protocol.peer(address(&link, &server, protocol));
        let mut timings = Vec::new();
        for size in SMALL {
            link.in_client(|| {
                peer.connect().expect("the server accepts");
                for _ in 0..3 {
                    timings.push(peer.request(size).expect("the server answers"));
                }
            });
        }
        let trace = link.take_trace();
        assert_eq!(trace.lost, 0);
        for timing in timings {
            // Pieces sent by the server for each response; the times are those of their sending.
            let sent = timing.sent + link.round_trip() / 2..timing.last;
            let came: Vec<_> = trace
                .entries
                .iter()
                .filter(|entry| entry.direction == Direction::ToClient)
                .filter(|entry| {
                    entry
                        .segment
                        .is_some_and(|segment| segment.payload_bytes > 0)
                })
                .map(|entry| entry.came)
                .filter(|came| sent.contains(came))
                .collect();
            let (first, last) = (came[0], came[came.len() - 1]);
            let spread = last - first;
            assert!(
                spread < 20 * MS,
                "{protocol}: a piece left {spread:?} after the first"
            );
        }
    }
}

/// The sweep that the server passes, against a server made to fail it; repeated until the link was on time for all of
/// it.
fn sweep_of_a_withholding_server(
    link: &Link,
    protocol: Protocol,
    sweep: &Sweep,
) -> Option<Outcome> {
    for _ in 0..ATTEMPTS {
        let (address, connections) = (link.server_address(), sweep.sizes.len());
        let server = link.in_server(|| withholding::serve(address, connections, protocol, chain()));
        let mut peer = protocol.peer(server.address());
        let outcome = sweep.run(link, &mut *peer).expect("the server answers");
        drop(peer);
        server.join();
        if outcome.samples.iter().all(Sample::is_valid) {
            return Some(outcome);
        }
    }
    support::inconclusive("a server that withholds", link);
    None
}

fn find_withholding(protocol: Protocol, hold: Duration) {
    let Some(link) = holding(hold, false) else {
        return;
    };
    let sweep = Sweep {
        sizes: SMALL.to_vec(),
        requests: 2,
        rounds: 1,
    };
    let Some(outcome) = sweep_of_a_withholding_server(&link, protocol, &sweep) else {
        return;
    };
    let findings = outcome.findings();
    for size in SMALL {
        for request in 1..=sweep.requests {
            let what = format!("{size} bytes, request {request}: the last byte");
            let found = findings.iter().any(|finding| finding.starts_with(&what));
            assert!(
                found,
                "{protocol}: {what} is not in\n{}",
                findings.join("\n")
            );
        }
    }
    // With more than one segment in flight, Linux sends the kept bytes as a tail loss probe (RFC 8985 section 7),
    // before a long-held acknowledgement comes.
    let waited = 2 * link.round_trip() + hold;
    let mut single = outcome
        .samples
        .iter()
        .filter(|sample| sample.body_bytes <= 1024);
    assert!(
        single.all(|sample| sample.last >= waited),
        "{protocol}\n{}",
        outcome.table()
    );
}

#[test]
fn sweep_finds_a_last_piece_that_waits_200_ms() {
    each(&ALL, ALL.len(), |protocol| {
        find_withholding(protocol, 200 * MS)
    });
}

#[test]
fn sweep_finds_a_last_piece_that_waits_40_ms() {
    each(&ALL, ALL.len(), |protocol| {
        find_withholding(protocol, 40 * MS)
    });
}

#[test]
fn answer_on_a_new_connection_takes_the_round_trips_of_the_protocol_alone() {
    let Some(link) = holding(200 * MS, false) else {
        return;
    };
    let server = link.in_server(|| site().start());
    for protocol in ALL.into_iter().filter(|protocol| protocol.is_known()) {
        let mut peer = protocol.peer(address(&link, &server, protocol));
        let expected = protocol.round_trips();
        let what = protocol.to_string();
        let answered = |exchanged: io::Result<()>| exchanged.expect("the server answers");
        RoundTrips::assert(&link, &what, expected, || peer.connect(), answered);
        let with_request = || {
            peer.connect()?;
            peer.request(100).map(drop)
        };
        RoundTrips::assert(&link, &what, expected + 1, with_request, answered);
    }
}
