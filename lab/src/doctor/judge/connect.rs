//! slow-dns, slow-connect: the way to the server before its first byte.
//!
//! Source: RFC 6298 section 2 (a lost SYN is sent again after a second), listen(2), tcp(7).

use serde_json::{Value, json};

use super::sample::median;
use super::{Case, Facts, Packets, count, interval, middle_ms, of_page};
use crate::doctor::code::{slow_connect, slow_dns};
use crate::doctor::{Finding, Severity};

/// Look-ups of a name, one after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lookups {
    pub(crate) host: String,
    /// Durations in order, ms. The first lookup may need other name servers; the resolver's cache answers the rest.
    pub(crate) took_ms: Vec<f64>,
    /// Number of addresses.
    pub(crate) addresses: usize,
}

/// Connections of TCP to one server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Connects {
    /// Durations, ms.
    pub(crate) took_ms: Vec<f64>,
    /// The least round trip of all connections, ms.
    pub(crate) round_trip_ms: f64,
}

/// Connections of a capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CapturedConnects {
    /// The number of connections that were captured.
    pub(crate) connections: usize,
    /// Connections with an unanswered first SYN.
    pub(crate) retries: Vec<SynRetry>,
}

/// A connection with an unanswered first SYN.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SynRetry {
    /// From the first SYN to the one that was answered, or to the last, ms.
    pub(crate) lost_ms: f64,
    /// Both packets.
    pub(crate) packets: Packets,
    pub(crate) was_answered: bool,
}

impl Lookups {
    pub(crate) fn measured(&self) -> Value {
        json!({"host": self.host, "took_ms": self.took_ms, "addresses": self.addresses})
    }
}

impl Connects {
    pub(crate) fn measured(&self) -> Value {
        json!({
            "took_ms": self.took_ms,
            "round_trip_ms": self.round_trip_ms,
            "retransmitted": self.retransmitted(),
        })
    }

    /// Times of connections beyond a round trip, ms.
    fn excess_ms(&self) -> Vec<f64> {
        let over = |ms: &f64| (ms - self.round_trip_ms).max(0.0);
        self.took_ms.iter().map(over).collect()
    }

    /// Number of connections that waited for a second SYN.
    fn retransmitted(&self) -> usize {
        let excess = self.excess_ms().into_iter();
        excess.filter(|ms| *ms >= SYN_AGAIN_MS).count()
    }
}

/// slow-dns: bad if each name lookup is slow, warned of if the first is.
pub(crate) fn judge_lookups(lookups: &Lookups) -> Option<Finding> {
    let took_ms = &lookups.took_ms;
    let first_ms = *took_ms.first()?;
    let least_ms = took_ms.iter().copied().fold(f64::INFINITY, f64::min);
    let (severity, lost_ms) = match () {
        () if took_ms.len() >= LOOKUPS && least_ms > LOOKUP_MS => (Severity::Bad, least_ms),
        () if first_ms > LOOKUP_MS => (Severity::Warn, first_ms),
        () => return None,
    };
    let text = slow_dns::server(&lookups.host, first_ms, least_ms);
    let found = Finding::of(text, severity).costs(lost_ms, 0.0);
    Some(found.proof("lookups", lookups.measured()))
}

/// slow-dns in a page: warned of.
pub(crate) fn judge_page_lookups(cases: Vec<Case>) -> Option<Finding> {
    let is_slow = |one: &Case| one.lost_ms >= LOOKUP_MS;
    of_page(cases, is_slow, Severity::Warn, |n, worst_ms| {
        slow_dns::page(count(n, "name lookup"), LOOKUP_MS, worst_ms)
    })
}

/// slow-connect. For a server: bad if two connections or more waited for a second SYN, since any network may lose one packet;
/// warned of if the median is late. For a capture: bad unless such connections are rare.
pub(crate) fn judge_connects(facts: Facts<'_, Connects, CapturedConnects>) -> Option<Finding> {
    match facts {
        Facts::Server(connects) => judge_samples(connects),
        Facts::Packets(captured) => judge_packets(captured),
        Facts::Page(cases) => {
            let is_slow = |one: &Case| one.lost_ms >= PAGE_CONNECT_MS && one.lost_ms >= one.size;
            of_page(cases, is_slow, Severity::Warn, |n, worst_ms| {
                slow_connect::page(count(n, "connection"), worst_ms)
            })
        }
    }
}

fn judge_samples(connects: &Connects) -> Option<Finding> {
    let excess = connects.excess_ms();
    let (usual, n) = (median(&excess)?, excess.len());
    let mean_ms = excess.iter().sum::<f64>() / n as f64;
    let (severity, text, lost_ms) = match connects.retransmitted() {
        0 if usual.low > LATE_MS => {
            let text = slow_connect::all_late(usual.value, interval(&usual, 0));
            (Severity::Warn, text, usual.value)
        }
        0 => return None,
        1 => (Severity::Note, slow_connect::one_again(), mean_ms),
        again => (
            Severity::Bad,
            slow_connect::several_again(again, n),
            mean_ms,
        ),
    };
    let found = Finding::of(text, severity).costs(lost_ms, 0.0);
    Some(found.proof("connects", connects.measured()))
}

fn judge_packets(captured: &CapturedConnects) -> Option<Finding> {
    let mut again: Vec<&SynRetry> = captured.retries.iter().collect();
    again.sort_by(|a, b| b.lost_ms.total_cmp(&a.lost_ms));
    let (n, worst) = (again.len(), again.first()?);
    let of = captured.connections;
    let unanswered = again.iter().filter(|one| !one.was_answered).count();
    let lost_ms = middle_ms(again.iter().map(|one| one.lost_ms));
    let severity = match n * RARE < of {
        true => Severity::Warn,
        false => Severity::Bad,
    };
    let text = slow_connect::capture(n, of, unanswered, lost_ms, worst.lost_ms);
    let found = Finding::of(text, severity)
        .costs(lost_ms, 0.0)
        .proof("connections", of)
        .proof("syn_sent_again", n)
        .proof("packets", worst.packets.to_string());
    Some(found.examples(again.iter().map(|one| {
        let figures = json!({"lost_ms": one.lost_ms, "answered": one.was_answered});
        one.packets.with(figures)
    })))
}

/// Lookups of a name.
pub(crate) const LOOKUPS: usize = 3;
/// A resolver near a visitor answers known names within some 20 ms, others within some 100.
pub(crate) const LOOKUP_MS: f64 = 100.0;
/// A SYN is sent again after a second; the timer may be a little early.
const SYN_AGAIN_MS: f64 = 900.0;
/// The kernel answers a SYN itself, in microseconds: no application has a part in it.
const LATE_MS: f64 = 50.0;
/// A connection of a page this much slower than another to the same host is slow.
pub(crate) const PAGE_CONNECT_MS: f64 = 100.0;
/// A share of lost connections below one in this many is the network's.
const RARE: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn lookups(took_ms: &[f64]) -> Option<Severity> {
        let lookups = Lookups {
            host: "h".to_owned(),
            took_ms: took_ms.to_vec(),
            addresses: 1,
        };
        judge_lookups(&lookups).map(|found| found.severity)
    }

    #[test]
    fn look_up_is_slow_once_or_each_time() {
        assert_eq!(lookups(&[]), None);
        assert_eq!(lookups(&[100.0, 100.0, 100.0]), None);
        assert_eq!(lookups(&[101.0, 1.0, 1.0]), Some(Severity::Warn));
        assert_eq!(lookups(&[101.0, 5000.0, 101.0]), Some(Severity::Bad));
        assert_eq!(
            lookups(&[101.0]),
            Some(Severity::Warn),
            "once is not each time"
        );
    }

    /// Connections of a server that is examined.
    const SAMPLES: usize = 7;

    fn connects(took_ms: &[f64]) -> Option<Finding> {
        judge_connects(Facts::Server(&Connects {
            took_ms: took_ms.to_vec(),
            round_trip_ms: 50.0,
        }))
    }

    #[test]
    fn second_syn_is_seen() {
        assert_eq!(connects(&[50.0; SAMPLES]), None);
        let mut some = [50.2; SAMPLES];
        some[2] = 1050.3;
        assert_eq!(
            connects(&some).map(|one| one.severity),
            Some(Severity::Note)
        );
        some[4] = 3060.0;
        let found = connects(&some).expect("two were late");
        assert_eq!(found.severity, Severity::Bad);
        assert!(
            found.lost_ms > 500.0 && found.title.starts_with("2 of 7"),
            "{found:?}"
        );
    }

    #[test]
    fn late_answers_are_warned_of_by_the_interval() {
        assert_eq!(
            connects(&[101.0; SAMPLES]).map(|one| one.severity),
            Some(Severity::Warn)
        );
        assert_eq!(connects(&[100.0; SAMPLES]), None);
        let mut mixed = [200.0; SAMPLES];
        mixed[0] = 51.0;
        assert_eq!(connects(&mixed), None, "seven samples leave none out");
        assert_eq!(connects(&[200.0; 3]), None, "too few");
    }
}
