//! no-keepalive: whether a connection serves more than one request.
//!
//! Source: RFC 9112 section 9.3; nginx documentation, `keepalive_requests`, `keepalive_timeout`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::handshake::Version;
use crate::client::Protocol;
use crate::doctor::command::quoted;
use crate::doctor::figures::ms;
use crate::doctor::{Code, Examination, Failure, Finding, NetworkPath, Severity, Visitor};

/// Requests one after another on a connection.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figures {
    pub(super) protocol: Protocol,
    /// How many were to be sent.
    pub(super) asked: u32,
    /// How many were answered before the server closed.
    pub(super) answered: u32,
    /// Whether the last of these responses had `Connection: close`.
    pub(super) said_close: bool,
    pub(super) is_http10: bool,
    /// Round trips that a new connection takes before its request: one of TCP and those of TLS.
    pub(super) round_trips: u32,
    /// Milliseconds that opening a connection took, TLS included.
    pub(super) open_ms: f64,
    /// The round trip of visitors, which may be longer than that of these connections.
    pub(super) round_trip_ms: f64,
    pub(super) url: String,
}

impl Figures {
    pub(super) fn measured(&self) -> Value {
        json!({
            "protocol": self.protocol.name(),
            "asked": self.asked,
            "answered": self.answered,
            "connection_close": self.said_close,
            "open_ms": self.open_ms,
        })
    }
}

/// Sends requests one after another on a connection of each protocol.
pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let of_tls = Version::spoken(x)
        .first()
        .map_or(0, |version| version.needs());
    let mut protocols = vec![x.first.protocol];
    // Who asks for one protocol gets no other.
    if x.plan.protocol.is_none() && !protocols.contains(&Protocol::H1) {
        protocols.push(Protocol::H1);
    }
    let round_trip_ms = x.round_trip_ms();
    let all = x.visit(NetworkPath::Direct, |visitor| {
        visitor.rounds(protocols.len(), |n| {
            let mut figures = requests(visitor, protocols[n])?;
            (figures.round_trips, figures.round_trip_ms) = (1 + of_tls, round_trip_ms);
            Ok(figures)
        })
    })??;
    let measured: Vec<Value> = all.iter().map(Figures::measured).collect();
    x.measure("keepalive", measured);
    let findings = all.iter().filter_map(judge);
    Ok(findings
        .max_by_key(|found| found.severity)
        .into_iter()
        .collect())
}

fn requests(visitor: &Visitor<'_>, protocol: Protocol) -> Result<Figures, Failure> {
    let url = &visitor.plan().url;
    let mut dial = visitor.dial();
    dial.protocols = vec![protocol];
    let mut session = visitor.open(&dial)?;
    let record = session.record();
    let ready = record
        .handshake
        .as_ref()
        .map_or(record.opened.1, |handshake| handshake.to);
    let mut figures = Figures {
        protocol,
        asked: ASKED,
        answered: 0,
        said_close: false,
        is_http10: false,
        round_trips: 0,
        round_trip_ms: 0.0,
        open_ms: ms(record.opened.0, ready),
        url: url.to_string(),
    };
    let begun = Instant::now();
    while figures.answered < figures.asked {
        if figures.answered > 0 && begun.elapsed() > LONGEST {
            // The connection is kept as far as anybody has waited.
            figures.asked = figures.answered;
            break;
        }
        match session.exchange(&visitor.get(url, &[])) {
            Ok(response) => {
                figures.answered += 1;
                if response.status >= 400 {
                    // Servers close after errors, and may (RFC 9112 section 9.6).
                    figures.asked = figures.answered;
                    break;
                }
                figures.said_close = response.announces_close();
                figures.is_http10 = response.is_http10;
            }
            // A server may close while the request is on its way, which is no fault of either.
            Err(Failure::Fetch(_)) if session.record().closed.is_some() && figures.answered > 0 => {
                break;
            }
            Err(failure) => return Err(failure),
        }
        if !session.is_open() {
            break;
        }
    }
    Ok(figures)
}

/// How long requests are sent to a server that answers slowly.
const LONGEST: Duration = Duration::from_secs(5);

/// no-keepalive: bad where each request needs a connection of its own, warned of where a connection serves fewer than [`ASKED`].
pub(super) fn judge(figures: &Figures) -> Option<Finding> {
    // Nothing is known of a server that answers nothing.
    if figures.answered == 0 || figures.answered >= figures.asked {
        return None;
    }
    let how = match (figures.said_close, figures.is_http10) {
        (true, true) => "as its version announces",
        (true, false) => "with Connection: close",
        (false, _) => "without saying so before",
    };
    let protocol = match figures.is_http10 {
        true => "HTTP/1.0",
        false => figures.protocol.name(),
    };
    let (severity, title) = match figures.answered {
        1 => (
            Severity::Bad,
            format!("The server closes a connection of {protocol} after one response, {how}"),
        ),
        some => (
            Severity::Warn,
            format!("The server closes a connection of {protocol} after {some} responses, {how}"),
        ),
    };
    let lost_ms = f64::from(figures.round_trips) * figures.round_trip_ms;
    // One of these requests opens a connection for all.
    let share = 1.0 / f64::from(figures.answered);
    Some(
        Finding::new(Code::NoKeepalive, severity, title)
            .costs(figures.open_ms.max(lost_ms) * share, f64::from(figures.round_trips) * share)
            .proof("connection", figures.measured())
            .mend("nginx and firstbyte: keepalive_timeout 75s; keepalive_requests 1000; (the defaults)")
            .mend("an application that sends Connection: close itself, and balancers in front, have settings of their own")
            .mend(format!("curl -sv -o /dev/null {0} -o /dev/null {0} 2>&1 | grep -i re-us", quoted(&figures.url))),
    )
}

/// Requests that are sent on a connection: as many as a page of some size has from one server.
pub(super) const ASKED: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(answered: u32) -> Figures {
        Figures {
            protocol: Protocol::H1,
            asked: ASKED,
            answered,
            said_close: true,
            is_http10: false,
            round_trips: 2,
            round_trip_ms: 40.0,
            open_ms: 100.0,
            url: "https://h/".to_owned(),
        }
    }

    #[test]
    fn connection_that_is_kept_is_not_found() {
        assert_eq!(judge(&figures(ASKED)), None);
        assert_eq!(judge(&figures(0)), None);
    }

    #[test]
    fn each_request_pays_its_share_of_a_connection() {
        let found = judge(&figures(1)).expect("it is closed");
        assert_eq!((found.severity, found.lost_ms), (Severity::Bad, 100.0));
        assert_eq!(found.lost_round_trips, 2.0);
        let found = judge(&figures(ASKED - 1)).expect("it is closed");
        assert_eq!(found.severity, Severity::Warn);
        let found = judge(&figures(10)).expect("it is closed");
        assert!((found.lost_ms - 10.0).abs() < 1e-9);
        let near = Figures {
            open_ms: 0.3,
            ..figures(1)
        };
        assert_eq!(judge(&near).map(|found| found.lost_ms), Some(80.0));
    }

    #[test]
    fn version_1_0_announces_the_end_of_its_connections() {
        let old = Figures {
            is_http10: true,
            ..figures(1)
        };
        let title = judge(&old).map(|found| found.title);
        let expected = "The server closes a connection of HTTP/1.0 after one response, as its version announces";
        assert_eq!(title.as_deref(), Some(expected));
    }
}
