//! handshake-round-trips: round trips of TLS handshakes beyond the need of their version.
//!
//! A HelloRetryRequest is visible without a clock. Other round trips are counted by time, if the network is slow enough.
//!
//! Source: RFC 8446 sections 2 and 4.1.4, RFC 5246 section 7.3.

use serde_json::{Value, json};

use super::{Case, Facts, count, interval, of_page};
use crate::doctor::code::handshake_round_trips as texts;
use crate::doctor::figures::estimate;
use crate::doctor::slow_start::further_round_trips;
use crate::doctor::{Finding, Severity};
use crate::stats::Estimate;

/// A handshake of a capture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Captured {
    pub(crate) connection: String,
    /// The packet with the ServerHello.
    pub(crate) packet: u64,
    pub(crate) version: u16,
    /// Whether the server sent a HelloRetryRequest.
    pub(crate) is_retry: bool,
    /// Whether the client offered TLS 1.3 and got an older version.
    pub(crate) is_old: bool,
    /// 0 if it is not known.
    pub(crate) round_trip_ms: f64,
}

/// Full handshakes of one version.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    pub(crate) version: Version,
    /// Whether clients that support all versions get this one.
    pub(crate) is_preferred: bool,
    /// Whether the server had the client begin anew.
    pub(crate) retried: bool,
    /// Round trips by time; `None` if the least one is below [`ROUND_TRIP_MS_MIN`].
    pub(crate) round_trips: Option<Estimate>,
    /// Bytes of the server's first flight.
    pub(crate) flight_bytes: u64,
    /// Milliseconds that are no part of [`Figures::round_trips`], since a handshake takes them without a delay, too.
    pub(crate) computed_ms: Option<Estimate>,
    /// The least round trip.
    pub(crate) round_trip_ms: f64,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Tls12,
    Tls13,
}

impl Version {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tls12 => "TLS 1.2",
            Self::Tls13 => "TLS 1.3",
        }
    }

    /// Round trips of a full handshake until the client may send its request.
    pub(crate) const fn needs(self) -> u32 {
        match self {
            Self::Tls12 => 2,
            Self::Tls13 => 1,
        }
    }
}

impl Figures {
    pub(crate) fn measured(&self) -> Value {
        json!({
            "needs": self.version.needs(),
            "round_trips": self.round_trips.as_ref().map(estimate),
            "computed_ms": self.computed_ms.as_ref().map(estimate),
            "hello_retry_request": self.retried,
        })
    }
}

/// handshake-round-trips. For a server: bad for the version that most clients get, else warned of. For captures and pages: warned
/// of.
pub(crate) fn judge(facts: Facts<'_, Figures, [Captured]>) -> Option<Finding> {
    match facts {
        Facts::Server(figures) => judge_samples(figures),
        Facts::Packets(all) => judge_packets(all),
        Facts::Page(cases) => {
            // TLS 1.3 takes one round trip. A second one is from an older version, or from a chain above the window.
            let is_slow = |one: &Case| {
                one.size >= PAGE_ROUND_TRIP_MS && one.lost_ms + one.size >= one.size * PAGE_TRIPS
            };
            of_page(cases, is_slow, Severity::Warn, |n, worst_ms| {
                texts::page(count(n, "TLS handshake"), worst_ms)
            })
        }
    }
}

/// The finding for a server without TLS 1.3.
pub(crate) fn judge_versions(spoken: &[Version], round_trip_ms: f64) -> Option<Finding> {
    if spoken != [Version::Tls12] {
        return None;
    }
    let found = Finding::of(texts::old_version(), Severity::Warn).costs(round_trip_ms, 1.0);
    let found = found.proof("versions", vec![Version::Tls12.name()]);
    Some(found.proof("round_trip_ms", round_trip_ms))
}

fn judge_packets(all: &[Captured]) -> Option<Finding> {
    let slow = all.iter().filter(|one| one.is_retry || one.is_old);
    let (n, of) = (slow.clone().count(), all.len());
    let retries = slow.clone().filter(|one| one.is_retry).count();
    let round_trip_ms = slow.clone().next()?.round_trip_ms;
    let found = Finding::of(texts::capture(n, of, n - retries, retries), Severity::Warn)
        .costs(round_trip_ms, 1.0)
        .proof("handshakes", of)
        .proof("older_versions", n - retries)
        .proof("retries", retries);
    Some(found.examples(slow.map(|one| {
        let version = format!("{:#06x}", one.version);
        json!({
            "connection": one.connection, "packet": one.packet,
            "version": version, "retry": one.is_retry,
        })
    })))
}

fn judge_samples(figures: &Figures) -> Option<Finding> {
    let version = figures.version.name();
    let needs = figures.version.needs();
    let severity = match figures.is_preferred {
        true => Severity::Bad,
        false => Severity::Warn,
    };
    let (text, lost) = if figures.retried {
        (texts::retried(version), 1.0)
    } else {
        // Trips that the size of the flight explains are of another finding.
        let explained = f64::from(needs + further_round_trips(figures.flight_bytes));
        let trips = figures.round_trips?;
        if trips.low <= explained + OVER {
            return None;
        }
        let lost = (trips.value - explained).round().max(1.0);
        let text = texts::counted(version, trips.value, interval(&trips, 1), explained);
        (text, lost)
    };
    let found = Finding::of(text, severity)
        .costs(lost * figures.round_trip_ms, lost)
        .proof("version", version)
        .proof("handshake", figures.measured())
        .proof("round_trip_ms", figures.round_trip_ms);
    Some(found)
}

/// Least round trip by which handshakes can be counted by time: below it the work of both ends, some tenths of a millisecond and
/// more on a busy machine, is as long.
pub(crate) const ROUND_TRIP_MS_MIN: f64 = 1.0;

/// Tolerance of a handshake beyond its need, round trips. Round trips are whole; the rest is computation and jitter.
const OVER: f64 = 0.5;

/// Shorter round trips of a page are no longer than computing.
const PAGE_ROUND_TRIP_MS: f64 = 5.0;
/// Round trips from which on a page's handshake took two.
const PAGE_TRIPS: f64 = 1.8;

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
        assert_eq!(judge_samples(&figures(Version::Tls13, (1.06, 1.03))), None);
        assert_eq!(judge_samples(&figures(Version::Tls12, (2.07, 2.04))), None);
        // One that is slow on average, and by an interval that carries no verdict.
        assert_eq!(judge_samples(&figures(Version::Tls13, (3.0, 1.4))), None);
        let unknown = Figures {
            round_trips: None,
            ..figures(Version::Tls13, (2.0, 2.0))
        };
        assert_eq!(judge_samples(&unknown), None);
    }

    #[test]
    fn another_round_trip_is_found() {
        let found = judge_samples(&figures(Version::Tls13, (2.1, 2.0))).expect("one too many");
        assert_eq!((found.lost_ms, found.lost_round_trips), (40.0, 1.0));
        let found = judge_samples(&figures(Version::Tls12, (4.1, 4.0))).expect("two too many");
        assert_eq!(found.lost_round_trips, 2.0);
    }

    #[test]
    fn round_trip_of_a_large_flight_belongs_to_another_finding() {
        let large = Figures {
            flight_bytes: 15_000,
            ..figures(Version::Tls13, (2.1, 2.0))
        };
        assert_eq!(judge_samples(&large), None);
    }

    #[test]
    fn retry_is_seen_without_a_clock() {
        let retried = Figures {
            retried: true,
            round_trips: None,
            ..figures(Version::Tls13, (0.0, 0.0))
        };
        let found = judge_samples(&retried).expect("it is seen");
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
