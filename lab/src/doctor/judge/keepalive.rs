//! no-keepalive: whether a connection serves more than one request.
//!
//! Source: RFC 9112 section 9.3; nginx documentation, `keepalive_requests`, `keepalive_timeout`.

use serde_json::{Value, json};

use super::{Case, count, of_page};
use crate::client::Protocol;
use crate::doctor::code::no_keepalive;
use crate::doctor::command::quoted;
use crate::doctor::{Finding, Severity};

/// Requests one after another on a connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures {
    pub(crate) protocol: Protocol,
    /// Planned requests.
    pub(crate) asked: u32,
    /// Responses before the server closed.
    pub(crate) answered: u32,
    /// Whether the last of these responses had `Connection: close`.
    pub(crate) said_close: bool,
    pub(crate) is_http10: bool,
    /// Round trips before the first request of a connection: one for TCP, and those for TLS.
    pub(crate) round_trips: u32,
    /// Milliseconds that opening a connection took, TLS included.
    pub(crate) open_ms: f64,
    /// The round trip of visitors; it may be longer than in this measurement.
    pub(crate) round_trip_ms: f64,
    pub(crate) url: String,
}

impl Figures {
    pub(crate) fn measured(&self) -> Value {
        json!({
            "protocol": self.protocol.name(),
            "asked": self.asked,
            "answered": self.answered,
            "connection_close": self.said_close,
            "open_ms": self.open_ms,
        })
    }
}

/// no-keepalive: bad if each request needs a new connection, warned of if a connection serves fewer than [`ASKED`].
pub(crate) fn judge(figures: &Figures) -> Option<Finding> {
    // A server without any response has no verdict.
    if figures.answered == 0 || figures.answered >= figures.asked {
        return None;
    }
    let how = match (figures.said_close, figures.is_http10) {
        (true, true) => "as HTTP/1.0 does by default",
        (true, false) => "with Connection: close",
        (false, _) => "without notice",
    };
    let protocol = match figures.is_http10 {
        true => "HTTP/1.0",
        false => figures.protocol.name(),
    };
    let (severity, responses) = match figures.answered {
        1 => (Severity::Bad, "one response".to_owned()),
        some => (Severity::Warn, format!("{some} responses")),
    };
    let text = no_keepalive::server(protocol, responses, how, quoted(&figures.url));
    let lost_ms = f64::from(figures.round_trips) * figures.round_trip_ms;
    // The requests of a connection share the cost of opening it.
    let share = 1.0 / f64::from(figures.answered);
    let trips = f64::from(figures.round_trips) * share;
    let found = Finding::of(text, severity).costs(figures.open_ms.max(lost_ms) * share, trips);
    Some(found.proof("connection", figures.measured()))
}

/// no-keepalive in a page: bad.
pub(crate) fn judge_page(cases: Vec<Case>) -> Option<Finding> {
    of_page(
        cases,
        |_| true,
        Severity::Bad,
        |n, worst_ms| no_keepalive::page(count(n, "request"), worst_ms),
    )
}

/// Requests that are sent on a connection: as many as a page of some size has from one server.
pub(crate) const ASKED: u32 = 20;

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
        let expected = "The server closes HTTP/1.0 connections after one response, as HTTP/1.0 does by default";
        assert_eq!(title.as_deref(), Some(expected));
    }
}
