//! First bytes with late acknowledgements are counted by cause, and those in time are not: over the emulated link of 50
//! ms, with stalls made by the link or the client.
//!
//! Every response is sampled. The client's kernel acknowledges at once (see `link`), so every delay is made on purpose.
//! Skipped with a message if links are not possible (see `support::available`).

#[path = "first_byte/h1.rs"]
mod h1;
#[path = "first_byte/h2.rs"]
#[allow(dead_code, reason = "a server's part is in it, too")]
mod h2;
mod support;
mod sweep;
mod tls;
#[path = "first_byte/transport.rs"]
#[allow(dead_code, reason = "a server's part is in it, too")]
mod transport;

use std::io::{Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use firstbyte_tests::wait::holds_within;
use firstbyte_tests::{Client, Server, wait_until};
use link::{Direction, Link, Options};
use rustix::net::{AddressFamily, SocketType, sockopt};
use support::available;
use sweep::Peer;
use tls::Version::Tls13;
use tls::chain::{Algorithm, Chain, Issuer};
use transport::{NAME, Transport};

const MS: Duration = Duration::from_millis(1);

/// Time for which the link holds acknowledgements, if it does.
const HOLD: Duration = Duration::from_millis(200);

/// Responses of one connection.
const REQUESTS: usize = 4;

/// Responses that are in time, and concurrent connections that request them.
const CLEAN: usize = 1000;
const CLIENTS: usize = 20;

/// Attempts to get clean responses while the link is late.
const ATTEMPTS: usize = 3;

/// How late the link may be for a response to be in time for sure.
const LATE_THRESHOLD: Duration = Duration::from_millis(5);

const CAUSES: [&str; 3] = ["delayed_ack", "retransmit", "window"];

/// Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http1Tls,
    Http2,
    Http2Tls,
}

const ALL: [Protocol; 4] = [
    Protocol::Http1,
    Protocol::Http1Tls,
    Protocol::Http2,
    Protocol::Http2Tls,
];

/// The server, and how to get at it.
struct Site<'l> {
    link: &'l Link,
    server: Server,
}

impl<'l> Site<'l> {
    fn start(link: &'l Link) -> Self {
        let chain: Chain = Issuer::new(Algorithm::Ecdsa, 1).chain(NAME, 1700);
        let text = "log_format s '$first_byte_sent_time $first_byte_acked_time $request_time [$first_byte_stall]';
             access_log %%DIR%%/s.log s; first_byte_sampling 100%; http2 on; keepalive_requests 100000;
             limit_conn_zone $binary_remote_addr zone=one:1m;
             ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
             server { listen %%PORT%%; listen %%PORT2%% ssl; root %%DIR%%/html;
               location /alone/ { limit_conn one 1; alias %%DIR%%/html/; }
               location = /metrics { metrics; first_byte_sampling off; access_log off; } }";
        let builder = Server::http(text)
            .bytes("c.pem", chain.certificates.as_bytes())
            .bytes("k.pem", chain.key.as_bytes())
            .bytes("html/100", &[b'x'; 100])
            .bytes("html/1024", &[b'x'; 1024])
            .bytes("html/65536", &[b'x'; 65536]);
        let server = link.in_server(|| builder.start());
        Self { link, server }
    }

    fn peer(&self, protocol: Protocol) -> Box<dyn Peer + Send> {
        let (port, version) = match protocol {
            Protocol::Http1 | Protocol::Http2 => (self.server.port(), None),
            Protocol::Http1Tls | Protocol::Http2Tls => (self.server.port_number(2), Some(Tls13)),
        };
        let address: SocketAddr = (self.link.server_address(), port).into();
        match protocol {
            Protocol::Http1 | Protocol::Http1Tls => {
                Box::new(h1::H1::new(Transport::new(address, version, "http/1.1")))
            }
            Protocol::Http2 | Protocol::Http2Tls => {
                Box::new(h2::H2::new(Transport::new(address, version, "h2")))
            }
        }
    }

    /// The value of a sample of the metrics.
    fn value(&self, sample: &str) -> usize {
        let page = self.link.in_server(|| self.server.get("/metrics").text());
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        let value = line.unwrap_or_else(|| panic!("no {sample} in\n{page}"));
        value.parse().expect("a number")
    }

    fn sampled(&self) -> usize {
        let of = |connection| {
            self.value(&format!(
                "firstbyte_first_byte_samples_total{{connection=\"{connection}\"}}"
            ))
        };
        of("idle") + of("busy")
    }

    fn acked(&self) -> usize {
        self.value("firstbyte_first_byte_acked_seconds_count")
    }

    /// Stalls by cause.
    fn stalls(&self) -> [usize; 3] {
        CAUSES.map(|cause| {
            self.value(&format!(
                "firstbyte_first_byte_stalls_total{{cause=\"{cause}\"}}"
            ))
        })
    }

    /// Waits until this many stalls are counted, and no others.
    #[track_caller]
    fn expect(&self, what: &str, stalls: [usize; 3]) {
        let found = holds_within(5000 * MS, || self.stalls() == stalls);
        assert!(
            found,
            "{what}: {:?} are {:?}, not {stalls:?}\n{}",
            CAUSES,
            self.stalls(),
            self.server.dir().read("s.log")
        );
    }

    /// Waits until the log has this many lines; returns the times and the cause of each.
    fn log(&self, lines: usize) -> Vec<(f64, f64, f64, String)> {
        let read = || self.server.dir().read("s.log");
        wait_until("all lines are logged", || read().lines().count() == lines);
        let log = read();
        let line = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let seconds = |at: usize| words[at].parse().expect("a time");
            (seconds(0), seconds(1), seconds(2), words[3].to_owned())
        };
        log.lines().map(line).collect()
    }
}

fn link(client_ack_hold: Option<Duration>) -> Option<Link> {
    available(Link::new(Options {
        client_ack_hold,
        trace: true,
        ..Options::default()
    }))
}

#[test]
fn acknowledgements_held_by_the_client_are_stalls_with_that_cause() {
    let Some(link) = link(Some(HOLD)) else { return };
    let site = Site::start(&link);
    let mut found = 0;
    for protocol in ALL {
        let mut peer = site.peer(protocol);
        link.in_client(|| peer.connect()).expect("it connects");
        for n in 0..REQUESTS {
            link.in_client(|| peer.request(100))
                .expect("it is answered");
            // TLS 1.3 tickets precede the first response, and their acknowledgement is held as well; so that response
            // is not alone.
            wait_until("the acknowledgement is there", || {
                site.acked() == site.sampled()
            });
            found += usize::from(site.stalls()[0] > found);
            let alone = n > 0 || matches!(protocol, Protocol::Http1 | Protocol::Http2);
            assert!(!alone || site.stalls()[0] == found, "{protocol:?}");
        }
    }
    assert!(found >= ALL.len() * (REQUESTS - 1), "{found}");
    site.expect("held acknowledgements", [found, 0, 0]);
    let log = site.log(ALL.len() * REQUESTS);
    for (sent, acked, request, stall) in &log {
        // The link's round trip and the hold. That of the tickets begins earlier, by the time that a busy machine takes.
        let least = if stall == "[-]" { 0.0 } else { 0.24 };
        assert!((least..0.5).contains(&(acked - sent)), "{log:?}");
        assert!(*request < 0.05 && *sent < 0.05, "{log:?}");
        assert!(stall == "[delayed_ack]" || stall == "[-]", "{log:?}");
    }
    let stalled = log.iter().filter(|line| line.3 == "[delayed_ack]").count();
    assert_eq!(stalled, found);
}

#[test]
fn a_response_that_waits_for_its_acknowledgement_alone_is_not_under_way() {
    let Some(link) = link(Some(HOLD)) else { return };
    let site = Site::start(&link);
    link.in_client(|| {
        let connect = || Client::connect_to(&link.server_address().to_string(), site.server.port());
        for mut client in [connect(), connect(), connect()] {
            assert_eq!(client.get("/alone/100").status, 200);
        }
    });
    site.log(3);
}

#[test]
fn lost_first_segments_are_stalls_with_that_cause() {
    let Some(link) = link(None) else { return };
    let site = Site::start(&link);
    let mut lost = 0;
    for protocol in ALL {
        for size in [100, 65_536] {
            let mut peer = site.peer(protocol);
            link.in_client(|| peer.connect()).expect("it connects");
            for _ in 0..REQUESTS {
                link.in_client(|| peer.request(100))
                    .expect("it is answered");
                wait_until("the acknowledgement is there", || {
                    site.acked() == site.sampled()
                });
                site.expect("before a loss", [0, lost, 0]);
                link.drop_next(Direction::ToClient, 1);
                link.in_client(|| peer.request(size))
                    .expect("it is answered");
                lost += 1;
                wait_until("the acknowledgement is there", || {
                    site.acked() == site.sampled()
                });
                site.expect("a lost segment", [0, lost, 0]);
            }
        }
    }
    assert_eq!(link.counters().dropped(), lost as u64);
}

/// A connection with a small receive buffer.
fn narrow(address: SocketAddrV4) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
    let socket = socket.expect("sockets are allowed");
    sockopt::set_socket_recv_buffer_size(&socket, 8192).expect("any size is taken");
    rustix::net::connect(&socket, &address).expect("the server accepts");
    TcpStream::from(socket)
}

#[test]
fn closed_windows_are_stalls_with_that_cause() {
    let Some(link) = link(None) else { return };
    let site = Site::start(&link);
    let address = SocketAddrV4::new(link.server_address(), site.server.port());
    for closed in 1..=REQUESTS {
        let mut stream = link.in_client(|| narrow(address));
        let mut asked = 0;
        // The client sends requests and does not read, until a response does not reach it.
        loop {
            let before = site.sampled();
            let request = b"GET /100 HTTP/1.1\r\nHost: a\r\n\r\n";
            stream.write_all(request).expect("connected");
            asked += 1;
            wait_until("it is answered", || site.sampled() == before + 1);
            if !holds_within(150 * MS, || site.acked() == site.sampled()) {
                break;
            }
            assert!(asked < 1000, "the window is never closed");
        }
        site.expect("before the window opens", [0, 0, closed - 1]);
        stream.set_read_timeout(Some(300 * MS)).expect("not zero");
        while stream.read(&mut [0; 4096]).is_ok_and(|n| n > 0) {}
        wait_until("it is acknowledged", || site.acked() == site.sampled());
        site.expect("after it has opened", [0, 0, closed]);
    }
}

#[test]
fn responses_in_time_are_no_stalls() {
    let Some(link) = link(None) else { return };
    for _ in 0..ATTEMPTS {
        let site = Site::start(&link);
        let each = CLEAN / CLIENTS;
        link.in_client(|| {
            std::thread::scope(|scope| {
                for client in 0..CLIENTS {
                    let protocol = ALL[client % ALL.len()];
                    let mut peer = site.peer(protocol);
                    scope.spawn(move || {
                        peer.connect().expect("it connects");
                        for n in 0..each {
                            let size = [100, 1024, 65_536][n % 3];
                            peer.request(size).expect("it is answered");
                        }
                    });
                }
            });
        });
        wait_until("all are acknowledged", || site.acked() == CLEAN);
        assert_eq!(site.sampled(), CLEAN);
        let late = link.lateness().worst;
        if site.stalls() == [0; 3] {
            return;
        }
        assert!(
            late > LATE_THRESHOLD,
            "{:?}, with the link late by {late:?}",
            site.stalls()
        );
    }
    support::inconclusive("responses in time", &link);
}

#[test]
fn asking_the_kernel_costs_no_segment() {
    let Some(link) = link(None) else { return };
    let site = Site::start(&link);
    for protocol in ALL {
        let mut peer = site.peer(protocol);
        link.in_client(|| peer.connect()).expect("it connects");
        link.in_client(|| peer.request(100))
            .expect("it is answered");
        wait_until("all of it is acknowledged", || {
            site.acked() == site.sampled()
        });
        let _of_before = link.take_trace();
        link.in_client(|| peer.request(100))
            .expect("it is answered");
        wait_until("it is acknowledged", || site.acked() == site.sampled());
        let trace = link.take_trace();
        let sent: Vec<u32> = trace
            .entries
            .iter()
            .filter(|entry| entry.direction == Direction::ToClient)
            .filter_map(|entry| Some(entry.segment?.payload_bytes).filter(|bytes| *bytes > 0))
            .collect();
        assert_eq!(sent.len(), 1, "{protocol:?}: {sent:?}");
    }
}
