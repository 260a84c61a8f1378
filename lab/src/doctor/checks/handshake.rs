//! handshake-round-trips: whether TLS handshakes take the round trips that their version needs.
//!
//! A request to begin anew (HelloRetryRequest) is seen without a clock. Other round trips are counted by time, where the network
//! has enough of it.
//!
//! Source: RFC 8446 sections 2 and 4.1.4, RFC 5246 section 7.3.

use rustls::ProtocolVersion;
use serde_json::{Value, json};

use crate::doctor::figures::estimate;
use crate::doctor::slow_start::further_round_trips;
use crate::doctor::{Code, Examination, Finding, Severity};
use crate::fetch::Versions;
use crate::stats::Estimate;

/// Full handshakes of one version.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    pub(super) version: Version,
    /// Whether it is the version of clients that speak all.
    pub(super) is_preferred: bool,
    /// Whether the server had the client begin anew.
    pub(super) retried: bool,
    /// Round trips by time; `None` where the least one is below [`ROUND_TRIP_MS_MIN`].
    pub(super) round_trips: Option<Estimate>,
    /// Bytes of the server's first flight.
    pub(super) flight_bytes: u64,
    /// Milliseconds that are no part of [`Figures::round_trips`], since a handshake takes them without a delay, too.
    pub(super) computed_ms: Option<Estimate>,
    /// The least round trip.
    pub(super) round_trip_ms: f64,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Tls12,
    Tls13,
}

impl Version {
    /// Those of the target, the preferred one first: a client that speaks both gets 1.3 where the server has it.
    pub(super) fn spoken(x: &Examination<'_>) -> Vec<Self> {
        let first = x.first.record.handshake.as_ref();
        match first.map(|handshake| handshake.version) {
            Some(ProtocolVersion::TLSv1_3) => vec![Self::Tls13, Self::Tls12],
            Some(_) => vec![Self::Tls12],
            None => Vec::new(),
        }
    }

    /// The offer of a client that speaks this version alone.
    pub(super) const fn alone(self) -> Versions {
        match self {
            Self::Tls12 => Versions::Tls12,
            Self::Tls13 => Versions::Tls13,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tls12 => "TLS 1.2",
            Self::Tls13 => "TLS 1.3",
        }
    }

    /// Round trips of a full handshake until the client may send its request.
    pub(super) const fn needs(self) -> u32 {
        match self {
            Self::Tls12 => 2,
            Self::Tls13 => 1,
        }
    }
}

impl Figures {
    pub(super) fn measured(&self) -> Value {
        json!({
            "needs": self.version.needs(),
            "round_trips": self.round_trips.as_ref().map(estimate),
            "computed_ms": self.computed_ms.as_ref().map(estimate),
            "hello_retry_request": self.retried,
        })
    }
}

/// handshake-round-trips: bad where it is the version that most clients speak.
pub(super) fn judge(figures: &Figures) -> Option<Finding> {
    let version = figures.version.name();
    let needs = figures.version.needs();
    let severity = match figures.is_preferred {
        true => Severity::Bad,
        false => Severity::Warn,
    };
    let (title, lost, mend): (_, _, &[&str]) = if figures.retried {
        let title = format!(
            "The server answers the first message of {version} by a request to begin anew (HelloRetryRequest): the handshake \
             takes one round trip more"
        );
        (title, 1.0, &GROUPS)
    } else {
        // Trips that the size of the flight explains are of another finding.
        let explained = f64::from(needs + further_round_trips(figures.flight_bytes));
        let trips = figures.round_trips?;
        if trips.low <= explained + OVER {
            return None;
        }
        let lost = (trips.value - explained).round().max(1.0);
        let title = format!(
            "A handshake of {version} takes {:.1} round trips ({:.1} to {:.1}, n = {}), and needs {explained:.0}",
            trips.value, trips.low, trips.high, trips.n
        );
        (title, lost, &FLIGHTS)
    };
    let mut found = Finding::new(Code::HandshakeRoundTrips, severity, title)
        .costs(lost * figures.round_trip_ms, lost)
        .proof("version", version)
        .proof("handshake", figures.measured())
        .proof("round_trip_ms", figures.round_trip_ms);
    for line in mend {
        found = found.mend(*line);
    }
    Some(found)
}

/// The finding for a server without TLS 1.3.
pub(super) fn judge_versions(spoken: &[Version], round_trip_ms: f64) -> Option<Finding> {
    if spoken != [Version::Tls12] {
        return None;
    }
    let title = "TLS 1.3 is not spoken: a handshake takes two round trips where one is enough";
    Some(
        Finding::new(Code::HandshakeRoundTrips, Severity::Warn, title)
            .costs(round_trip_ms, 1.0)
            .proof("versions", vec![Version::Tls12.name()])
            .proof("round_trip_ms", round_trip_ms)
            .mend("nginx and firstbyte: ssl_protocols TLSv1.2 TLSv1.3;"),
    )
}

/// Least round trip by which handshakes can be counted by time: below it the work of both ends, some tenths of a millisecond and
/// more on a busy machine, is as long.
pub(super) const ROUND_TRIP_MS_MIN: f64 = 1.0;

/// How much of a round trip more than needed is still none: half of one, since they come whole; work and jitter are in it.
const OVER: f64 = 0.5;

const GROUPS: [&str; 2] = [
    "nginx and firstbyte: ssl_ecdh_curve auto; or a list with X25519 in it, for which clients send a share with their first \
     message",
    "nginx with OpenSSL 3.5 and later: ssl_ecdh_curve X25519MLKEM768:X25519:prime256v1;",
];
const FLIGHTS: [&str; 2] = [
    "servers and balancers that write their flight in parts, such as nginx before 1.5.6 with more than 4 KB of certificates: bring \
     them up to date",
    "firstbyte via 50ms -- firstbyte doctor URL, where the server is this machine's, has the round trips without the network",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(version: Version, trips: (f64, f64)) -> Figures {
        Figures {
            version,
            is_preferred: true,
            retried: false,
            round_trips: Some(Estimate {
                value: trips.0,
                low: trips.1,
                high: trips.0 + 0.2,
                n: 9,
            }),
            flight_bytes: 4000,
            computed_ms: None,
            round_trip_ms: 40.0,
        }
    }

    #[test]
    fn usual_handshakes_are_not_found() {
        assert_eq!(judge(&figures(Version::Tls13, (1.06, 1.03))), None);
        assert_eq!(judge(&figures(Version::Tls12, (2.07, 2.04))), None);
        // One that is slow on average, and by an interval that carries no verdict.
        assert_eq!(judge(&figures(Version::Tls13, (3.0, 1.4))), None);
        let unknown = Figures {
            round_trips: None,
            ..figures(Version::Tls13, (2.0, 2.0))
        };
        assert_eq!(judge(&unknown), None);
    }

    #[test]
    fn another_round_trip_is_found() {
        let found = judge(&figures(Version::Tls13, (2.1, 2.0))).expect("one too many");
        assert_eq!((found.lost_ms, found.lost_round_trips), (40.0, 1.0));
        let found = judge(&figures(Version::Tls12, (4.1, 4.0))).expect("two too many");
        assert_eq!(found.lost_round_trips, 2.0);
    }

    #[test]
    fn round_trip_of_a_large_flight_belongs_to_another_finding() {
        let large = Figures {
            flight_bytes: 15_000,
            ..figures(Version::Tls13, (2.1, 2.0))
        };
        assert_eq!(judge(&large), None);
    }

    #[test]
    fn retry_is_seen_without_a_clock() {
        let retried = Figures {
            retried: true,
            round_trips: None,
            ..figures(Version::Tls13, (0.0, 0.0))
        };
        let found = judge(&retried).expect("it is seen");
        assert_eq!(
            (found.severity, found.lost_round_trips),
            (Severity::Bad, 1.0)
        );
    }

    #[test]
    fn server_without_tls_1_3_is_warned_of() {
        let found = judge_versions(&[Version::Tls12], 30.0).expect("it is missing");
        assert_eq!((found.lost_ms, found.lost_round_trips), (30.0, 1.0));
        assert_eq!(
            judge_versions(&[Version::Tls13, Version::Tls12], 30.0),
            None
        );
        assert_eq!(judge_versions(&[], 30.0), None);
    }
}
