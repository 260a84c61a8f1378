//! One run of a fetch: a request to one address after another, until one has responded.

use std::fmt;
use std::net::SocketAddr;

use server_base::background_fetch::{BackgroundFetch, Endpoint, FetchRequest};
use server_base::errlog::{ErrorLog, Level};
use server_upstream::protocol::HTTP1;
use server_upstream::request::{RequestSpec, UpstreamRequest};
use server_upstream::route::{Route, SocketOptions, Timeouts, UpstreamAddr};

use super::connections::Connections;
use super::response::Response;
use super::unix_s;

/// A fetch in progress.
pub(super) struct Attempt {
    addresses: std::vec::IntoIter<SocketAddr>,
    current: Option<Current>,
    /// When the request to the current address times out.
    pub(super) deadline_ms: u64,
}

/// A request to one address.
struct Current {
    peer: SocketAddr,
    request: UpstreamRequest,
    response: Response,
}

/// Result of looking at an attempt.
pub(super) enum Outcome {
    /// Nothing more has come.
    Pending,
    /// A request was begun: the loop is to have a turn.
    Begun,
    /// The fetch has ended.
    Ended {
        /// A response was accepted.
        succeeded: bool,
    },
}

impl Attempt {
    /// An attempt that has not begun a request.
    pub(super) fn new(addresses: Vec<SocketAddr>) -> Self {
        Self {
            addresses: addresses.into_iter(),
            current: None,
            deadline_ms: u64::MAX,
        }
    }

    /// Abandons a request that has taken too long.
    pub(super) fn time_out(&mut self, to: &Endpoint, log: &ErrorLog) {
        if let Some(current) = self.current.take() {
            let text = format_args!("{} timed out ({TIMED_OUT})", to.peer);
            write_log(log, Level::Error, to, Some(current.peer), text);
        }
    }

    /// Takes the events of the request; begins one to the next address if it has failed.
    pub(super) fn advance(
        &mut self,
        fetch: &dyn BackgroundFetch,
        connections: &mut Connections,
        now_ms: u64,
        log: &ErrorLog,
    ) -> Outcome {
        let to = fetch.endpoint();
        let error = |peer, text: &str| {
            write_log(log, Level::Error, to, Some(peer), format_args!("{text}"));
        };
        if let Some(current) = &mut self.current {
            let peer = current.peer;
            let result = match current.response.receive(&current.request, to.peer) {
                Ok(None) => return Outcome::Pending,
                Ok(Some(body)) => fetch.accept(&body, unix_s()).map_err(|text| (text, true)),
                Err(text) => Err((text, false)),
            };
            self.current = None;
            match result {
                Ok(()) => return Outcome::Ended { succeeded: true },
                Err((text, is_last)) => {
                    error(peer, &text);
                    // A response of no use: another address would send the same.
                    if is_last {
                        return Outcome::Ended { succeeded: false };
                    }
                }
            }
        }
        let Some(peer) = self.addresses.next() else {
            return Outcome::Ended { succeeded: false };
        };
        let request = fetch.request();
        self.current = Some(Current {
            peer,
            request: connections.call(route(peer, to, request), spec(request)),
            response: Response::new(request),
        });
        self.deadline_ms = now_ms.saturating_add(to.timeout_ms);
        Outcome::Begun
    }
}

/// The way to an address. As in nginx's OCSP the request is HTTP/1.0: a body has no transfer coding and ends with its
/// length or the connection.
fn route(peer: SocketAddr, to: &Endpoint, request: &FetchRequest) -> Route {
    Route {
        addr: UpstreamAddr::Inet(peer),
        // The limit is that of the whole response, so none of its parts may have a lower one.
        head_bytes: request.response_bytes_max + 1,
        protocol: &HTTP1,
        group: 0,
        tls: None,
        pool: None,
        options: SocketOptions::default(),
        timeouts: Timeouts {
            connect_ms: to.timeout_ms,
            send_ms: to.timeout_ms,
            read_ms: to.timeout_ms,
        },
    }
}

fn spec(request: &FetchRequest) -> RequestSpec {
    let mut spec = RequestSpec {
        http10: true,
        ..RequestSpec::default()
    };
    for (name, value) in [
        (":method", "GET"),
        (":path", &request.target),
        ("Host", &request.host),
    ] {
        spec.fields.push(name.as_bytes(), value.as_bytes());
    }
    spec
}

/// Logs a message with its purpose, in nginx's form.
pub(super) fn write_log(
    log: &ErrorLog,
    level: Level,
    to: &Endpoint,
    peer: Option<SocketAddr>,
    text: fmt::Arguments<'_>,
) {
    let peer = peer.map(|peer| format!(", peer: {peer}"));
    let (action, peer, purpose) = (&to.action, peer.unwrap_or_default(), &to.purpose);
    log.write(level, format_args!("{text} while {action}{peer}{purpose}"));
}

/// Error of the system for a connection that takes too long.
pub(super) const TIMED_OUT: &str = "110: Connection timed out";
