//! `held-first-byte`: the application flushes the beginning of a page early, but the server does not send it early.
//!
//! Only pages of `--flush` are examined, since the doctor cannot know which pages flush. There are two causes. With buffers, the
//! beginning arrives with the end of the response. Without TCP_NODELAY, it is late only if acknowledgements are held.

use serde_json::{Map, Value};

use crate::client::Url;
use crate::doctor::code::held_first_byte as texts;
use crate::doctor::figures::{estimate, ms};
use crate::doctor::judge::sample::average;
use crate::doctor::{Examination, Failure, Finding, NetworkPath, Severity, Visitor};

pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    let hold = x.network.holds().first().copied();
    for url in x.plan.flushed.iter().take(PAGES_MAX) {
        let free = x.visit(NetworkPath::Delayed(None), |visitor| samples(visitor, url))??;
        let held = x.visit(NetworkPath::Delayed(hold), |visitor| samples(visitor, url))??;
        let figures = Figures::of(url.to_string(), free, held, x.round_trip_ms());
        let figures =
            figures.ok_or_else(|| Failure::other("too few samples of a page that flushes"))?;
        x.measure(&format!("flush {url}"), figures.measured());
        findings.extend(judge(&figures));
    }
    Ok(x.with_command(findings))
}

/// Responses of a page that flushes, without a hold and with one.
struct Figures {
    url: String,
    free: Vec<Sample>,
    held: Vec<Sample>,
    round_trip_ms: f64,
}

impl Figures {
    /// `None` with too few samples.
    fn of(url: String, free: Vec<Sample>, held: Vec<Sample>, round_trip_ms: f64) -> Option<Self> {
        let is_enough = free.len() >= SAMPLES && held.len() >= SAMPLES;
        is_enough.then_some(Self {
            url,
            free,
            held,
            round_trip_ms,
        })
    }

    fn measured(&self) -> Map<String, Value> {
        let figures = [("free", &self.free), ("held", &self.held)].map(|(name, all)| {
            let of = |part: fn(&Sample) -> f64| average(all.iter().map(part));
            let shown = |part| of(part).map_or(Value::Null, |one| estimate(&one));
            [
                (format!("first_byte_{name}_ms"), shown(|one| one.first_ms)),
                (format!("end_{name}_ms"), shown(|one| one.end_ms)),
            ]
        });
        figures.into_iter().flatten().collect()
    }
}

/// When a response began and ended.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    /// From the request to the body's first byte, ms.
    first_ms: f64,
    /// From the request to its end, ms.
    end_ms: f64,
}

/// Cause of a late beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeldBy {
    Buffers,
    Acknowledgements,
}

fn samples(visitor: &Visitor<'_>, url: &Url) -> Result<Vec<Sample>, Failure> {
    let samples = visitor.rounds(CONNECTIONS, |_| {
        let mut samples = Vec::new();
        let mut session = visitor.open(&visitor.dial())?;
        for _ in 0..REQUESTS_A_CONNECTION {
            if !session.is_open() {
                break;
            }
            let response = session.exchange(&visitor.get(url, &[("accept-encoding", "gzip")]))?;
            let first = response.first_body.unwrap_or(response.head);
            if visitor.are_void(&[(response.sent, response.end)]) == [false] {
                samples.push(Sample {
                    first_ms: ms(response.sent, first),
                    end_ms: ms(response.sent, response.end),
                });
            }
        }
        Ok(samples)
    })?;
    Ok(samples.into_iter().flatten().collect())
}

/// Returns the delay of the first byte, ms, and its cause.
fn cause(free: &[Sample], held: &[Sample], round_trip_ms: f64) -> Option<(f64, HeldBy)> {
    let least = |all: &[Sample], part: fn(&Sample) -> f64| {
        all.iter().map(part).fold(f64::INFINITY, f64::min)
    };
    let most = |all: &[Sample], part: fn(&Sample) -> f64| all.iter().map(part).fold(0.0, f64::max);
    // Of each network path the best sample of one and the worst of the other: a verdict that no single sample contradicts.
    let gap_ms = most(free, |one| one.end_ms - one.first_ms);
    let waits_ms = least(free, |one| one.first_ms) - round_trip_ms;
    if gap_ms < TOGETHER_MS && waits_ms >= WORTH_MS {
        return Some((waits_ms, HeldBy::Buffers));
    }
    let later_ms = least(held, |one| one.first_ms) - most(free, |one| one.first_ms);
    (later_ms >= LATER_MS).then_some((later_ms, HeldBy::Acknowledgements))
}

/// held-first-byte: bad, by buffers and by acknowledgements.
fn judge(figures: &Figures) -> Option<Finding> {
    let (lost_ms, held_by) = cause(&figures.free, &figures.held, figures.round_trip_ms)?;
    let (text, round_trips) = match held_by {
        HeldBy::Buffers => (texts::by_buffers(&figures.url, lost_ms), 0.0),
        HeldBy::Acknowledgements => (texts::by_acknowledgements(&figures.url, lost_ms), 1.0),
    };
    let found = Finding::of(text, Severity::Bad).costs(lost_ms, round_trips);
    let mut found = found.proof("url", figures.url.as_str());
    found.evidence.extend(figures.measured());
    Some(found)
}

/// Pages that are judged.
const PAGES_MAX: usize = 3;
/// Connections, and requests of each.
const CONNECTIONS: usize = 2;
const REQUESTS_A_CONNECTION: usize = 2;
/// Samples that a verdict needs.
const SAMPLES: usize = 3;
/// A beginning and an end that are no further apart came together, ms.
const TOGETHER_MS: f64 = 10.0;
/// Least wait above the round trip, ms, for which an earlier first byte is worthwhile.
const WORTH_MS: f64 = 50.0;
/// Least delay of a first byte that waits for an acknowledgement, ms: see `late_after` of the sweep.
const LATER_MS: f64 = 30.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn all(first_ms: f64, end_ms: f64) -> Vec<Sample> {
        vec![Sample { first_ms, end_ms }; 4]
    }

    #[test]
    fn buffers_and_acknowledgements_are_told_apart() {
        let early = all(51.0, 350.0);
        assert_eq!(cause(&early, &early, 50.0), None);
        let buffered = all(350.0, 351.0);
        let found = cause(&buffered, &buffered, 50.0);
        assert_eq!(found, Some((300.0, HeldBy::Buffers)));
        let found = cause(&early, &all(301.0, 350.0), 50.0);
        assert_eq!(found, Some((250.0, HeldBy::Acknowledgements)));
        // A page without a delay gains nothing by a flush.
        assert_eq!(cause(&all(51.0, 51.0), &all(51.0, 51.0), 50.0), None);
    }

    #[test]
    fn one_sample_that_contradicts_is_enough() {
        let (early, mut held) = (all(51.0, 350.0), all(301.0, 350.0));
        held[2].first_ms = 52.0;
        assert_eq!(cause(&early, &held, 50.0), None);
        let two = early[..2].to_vec();
        assert!(Figures::of(String::new(), two, held, 50.0).is_none());
    }
}
