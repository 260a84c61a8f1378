//! slow-dns, slow-connect: the way to the server before its first byte.
//!
//! Source: RFC 6298 section 2 (a lost SYN is sent again after a second), listen(2), tcp(7).

use serde_json::{Value, json};

use super::sample::median;
use crate::client::Protocol;
use crate::doctor::figures::{in_ms, ms};
use crate::doctor::{Code, Examination, Failure, Finding, NetworkPath, Severity, Visitor};
use crate::fetch;

/// Look-ups of a name, one after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lookups {
    pub(super) host: String,
    /// Durations in order: the first may have had to ask others, what follows is answered by the nearest resolver.
    pub(super) took_ms: Vec<f64>,
    /// How many addresses it has.
    pub(super) addresses: usize,
}

/// Connections of TCP.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Connects {
    /// How long each took, ms.
    pub(super) took_ms: Vec<f64>,
    /// The least round trip that was seen on any, ms.
    pub(super) round_trip_ms: f64,
}

impl Lookups {
    pub(super) fn measured(&self) -> Value {
        json!({"host": self.host, "took_ms": self.took_ms, "addresses": self.addresses})
    }
}

impl Connects {
    pub(super) fn measured(&self) -> Value {
        json!({
            "took_ms": self.took_ms,
            "round_trip_ms": self.round_trip_ms,
            "retransmitted": self.retransmitted(),
        })
    }

    /// The time of each beyond a round trip.
    fn excess_ms(&self) -> Vec<f64> {
        let over = |ms: &f64| (ms - self.round_trip_ms).max(0.0);
        self.took_ms.iter().map(over).collect()
    }

    /// How many waited for a second SYN.
    fn retransmitted(&self) -> usize {
        self.excess_ms()
            .iter()
            .filter(|ms| **ms >= SYN_AGAIN_MS)
            .count()
    }
}

/// Looks the name up, and opens connections on which nothing is said.
pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    // An address in place of a name is looked up by nobody.
    if !x.plan.url.is_address() {
        let lookups = lookups(x)?;
        x.measure("lookup", lookups.measured());
        findings.extend(judge_lookups(&lookups));
    }
    let connects = x.visit(NetworkPath::Direct, connects)??;
    x.measure("connect", connects.measured());
    findings.extend(judge_connects(&connects));
    Ok(findings)
}

fn lookups(x: &Examination<'_>) -> Result<Lookups, Failure> {
    // The first one has been: who asks again may be answered from what the resolver remembers.
    let mut took_ms = vec![in_ms(x.lookup.took)];
    while took_ms.len() < LOOKUPS {
        let again = fetch::resolve(&x.plan.url, x.plan.timeout)?;
        took_ms.push(in_ms(again.took));
    }
    Ok(Lookups {
        host: x.plan.url.host.clone(),
        took_ms,
        addresses: x.lookup.addresses.len(),
    })
}

fn connects(visitor: &Visitor<'_>) -> Result<Connects, Failure> {
    let mut dial = visitor.dial();
    dial.tls = None;
    dial.protocols = vec![Protocol::H1];
    let (mut samples, mut least_ns) = (Vec::new(), u64::MAX);
    for _ in 0..CONNECTS {
        let session = visitor.open(&dial)?;
        let record = session.record();
        samples.push(record.opened);
        least_ns = least_ns
            .min(record.round_trip_ns())
            .min(record.connect_ns());
    }
    Ok(Connects {
        took_ms: visitor.valid_ms(&samples),
        round_trip_ms: ms(0, least_ns),
    })
}

/// slow-dns: bad where each look-up is slow, warned of where the first is.
pub(super) fn judge_lookups(lookups: &Lookups) -> Option<Finding> {
    let first = *lookups.took_ms.first()?;
    let least = lookups
        .took_ms
        .iter()
        .copied()
        .fold(f64::INFINITY, f64::min);
    let (severity, lost_ms) = match () {
        () if lookups.took_ms.len() >= LOOKUPS && least > SLOW_LOOKUP_MS => (Severity::Bad, least),
        () if first > SLOW_LOOKUP_MS => (Severity::Warn, first),
        () => return None,
    };
    let title = format!(
        "Looking up {} took {first:.0} ms, and {least:.0} ms at best",
        lookups.host
    );
    Some(
        Finding::new(Code::SlowDns, severity, title)
            .costs(lost_ms, 0.0)
            .proof("lookups", lookups.measured())
            .mend("a longer time to live of the name's records, fewer CNAMEs, name servers near visitors; see dig +trace")
            .mend("where each look-up is slow: the first server of /etc/resolv.conf does not answer (options timeout, attempts)"),
    )
}

/// slow-connect: bad where more than one connection waited for a second SYN, warned of where one did or where the median is late.
pub(super) fn judge_connects(connects: &Connects) -> Option<Finding> {
    let excess = connects.excess_ms();
    let late = median(&excess)?;
    let again = connects.retransmitted();
    let n = excess.len();
    let (severity, title) = match again {
        // One packet is lost at times on any network.
        2.. => (
            Severity::Bad,
            format!("{again} of {n} connections took a second or more longer than a round trip: the server did not answer the first SYN"),
        ),
        1 => (
            Severity::Note,
            "One connection took a second or more longer than a round trip: a SYN was lost, or not answered".to_owned(),
        ),
        0 if late.low > LATE_MS => (
            Severity::Warn,
            format!("Connecting takes {:.0} ms ({:.0} to {:.0}, n = {n}) longer than a round trip", late.value, late.low, late.high),
        ),
        0 => return None,
    };
    let mean = excess.iter().sum::<f64>() / n as f64;
    Some(
        Finding::new(Code::SlowConnect, severity, title)
            .costs(if again > 0 { mean } else { late.value }, 0.0)
            .proof("connects", connects.measured())
            .mend("nginx and firstbyte: listen ... backlog=4096; and net.core.somaxconn as much")
            .mend("nstat -az TcpExtListenOverflows TcpExtListenDrops on the server, twice: numbers that grow say that the backlog is full")
            .mend("a firewall or balancer that answers late or limits connections"),
    )
}

/// How often a name is looked up.
const LOOKUPS: usize = 3;
/// How many connections are opened.
const CONNECTS: usize = 7;
/// A resolver near a visitor answers what it knows within some 20 ms, what it has to ask for within some 100.
const SLOW_LOOKUP_MS: f64 = 100.0;
/// A SYN is sent again after a second; the timer may be a little early.
const SYN_AGAIN_MS: f64 = 900.0;
/// The kernel answers a SYN itself, in microseconds: no application has a part in it.
const LATE_MS: f64 = 50.0;

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

    fn connects(took_ms: &[f64]) -> Option<Finding> {
        judge_connects(&Connects {
            took_ms: took_ms.to_vec(),
            round_trip_ms: 50.0,
        })
    }

    #[test]
    fn second_syn_is_seen() {
        assert_eq!(connects(&[50.0; CONNECTS]), None);
        let mut some = [50.2; CONNECTS];
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
            connects(&[101.0; CONNECTS]).map(|one| one.severity),
            Some(Severity::Warn)
        );
        assert_eq!(connects(&[100.0; CONNECTS]), None);
        let mut mixed = [200.0; CONNECTS];
        mixed[0] = 51.0;
        assert_eq!(connects(&mixed), None, "seven samples leave none out");
        assert_eq!(connects(&[200.0; 3]), None, "too few");
    }
}
