//! `held-first-byte`: a page whose application flushes its beginning early does not send it early.
//!
//! Only the pages that `--flush` names are judged, since nobody else knows which ones flush. Two ways of holding are seen:
//! the beginning comes with the end of the response (buffers), or it comes late where acknowledgements are held, and early
//! where they are not (the kernel waits, for want of TCP_NODELAY).

use serde_json::{Value, json};

use super::sample::average;
use crate::client::Url;
use crate::doctor::code::Code;
use crate::doctor::examine::Examination;
use crate::doctor::failure::Failure;
use crate::doctor::figures::{estimate, ms};
use crate::doctor::finding::{Finding, Severity};
use crate::doctor::network::NetworkPath;
use crate::doctor::visitor::Visitor;

pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    let hold = x.network.holds().first().copied();
    for url in x.plan.flushed.iter().take(PAGES_MAX) {
        let free = x.visit(NetworkPath::Delayed(None), |visitor| samples(visitor, url))??;
        let held = x.visit(NetworkPath::Delayed(hold), |visitor| samples(visitor, url))??;
        let round_trip_ms = x.round_trip_ms();
        let cause = cause(&free, &held, round_trip_ms)?;
        let figures = [("free", &free), ("held", &held)].map(|(name, all)| {
            let of = |part: fn(&Sample) -> f64| average(all.iter().map(part));
            let shown = |part| of(part).map_or(Value::Null, |one| estimate(&one));
            [
                (format!("first_byte_{name}_ms"), shown(|one| one.first_ms)),
                (format!("end_{name}_ms"), shown(|one| one.end_ms)),
            ]
        });
        let figures = figures.into_iter().flatten();
        x.measured.insert(
            format!("flush {url}"),
            Value::Object(figures.clone().collect()),
        );
        if let Some((lost_ms, held_by)) = cause {
            findings.push(finding(x, url, lost_ms, held_by, figures));
        }
    }
    Ok(findings)
}

/// When a response began and ended.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    /// From the request to the body's first byte, ms.
    first_ms: f64,
    /// From the request to its end, ms.
    end_ms: f64,
}

/// Who holds the beginning.
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

/// How much later the first byte is than it could be, and who holds it.
fn cause(
    free: &[Sample],
    held: &[Sample],
    round_trip_ms: f64,
) -> Result<Option<(f64, HeldBy)>, Failure> {
    if free.len() < SAMPLES || held.len() < SAMPLES {
        return Err(Failure::other("too few samples of a page that flushes"));
    }
    let least = |all: &[Sample], part: fn(&Sample) -> f64| {
        all.iter().map(part).fold(f64::INFINITY, f64::min)
    };
    let most = |all: &[Sample], part: fn(&Sample) -> f64| all.iter().map(part).fold(0.0, f64::max);
    // Of each network path the best sample of one and the worst of the other: a verdict that no single sample contradicts.
    let gap_ms = most(free, |one| one.end_ms - one.first_ms);
    let waits_ms = least(free, |one| one.first_ms) - round_trip_ms;
    if gap_ms < TOGETHER_MS && waits_ms >= WORTH_MS {
        return Ok(Some((waits_ms, HeldBy::Buffers)));
    }
    let later_ms = least(held, |one| one.first_ms) - most(free, |one| one.first_ms);
    Ok((later_ms >= LATER_MS).then_some((later_ms, HeldBy::Acknowledgements)))
}

fn finding(
    x: &Examination<'_>,
    url: &Url,
    lost_ms: f64,
    held_by: HeldBy,
    figures: impl Iterator<Item = (String, Value)>,
) -> Finding {
    let why = match held_by {
        HeldBy::Buffers => "with its end",
        HeldBy::Acknowledgements => "when what was sent before is acknowledged",
    };
    let title = format!("What {url} flushes early comes {why}: up to {lost_ms:.0} ms later");
    let round_trips = match held_by {
        HeldBy::Buffers => 0.0,
        HeldBy::Acknowledgements => 1.0,
    };
    let mut finding =
        Finding::new(Code::HeldFirstByte, Severity::Bad, title).costs(lost_ms, round_trips);
    finding = finding.proof("url", json!(url.to_string()));
    for (name, value) in figures {
        finding = finding.proof(&name, value);
    }
    let finding = match held_by {
        HeldBy::Buffers => finding
            .mend("nginx: proxy_buffering off; or fastcgi_buffering off; in the location, or X-Accel-Buffering: no from the application")
            .mend("nginx: gzip off; in the location, where the application does not ask gzip to flush")
            .mend("firstbyte: the same directives; the application has to flush its own buffers as well"),
        HeldBy::Acknowledgements => finding
            .mend("nginx: tcp_nodelay on;, and 1.7.8 or later over SPDY")
            .mend("firstbyte: nothing to set, tcp_nodelay is on"),
    };
    finding.mend(x.plan.command())
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
/// A response that takes so long could have begun earlier, ms above the round trip.
const WORTH_MS: f64 = 50.0;
/// How much later a first byte is, at least, for which the kernel waits, ms: see `late_after` of the sweep.
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
        assert_eq!(cause(&early, &early, 50.0), Ok(None));
        let buffered = all(350.0, 351.0);
        let found = cause(&buffered, &buffered, 50.0);
        assert_eq!(found, Ok(Some((300.0, HeldBy::Buffers))));
        let found = cause(&early, &all(301.0, 350.0), 50.0);
        assert_eq!(found, Ok(Some((250.0, HeldBy::Acknowledgements))));
        // A page that is there at once has nothing to flush.
        assert_eq!(cause(&all(51.0, 51.0), &all(51.0, 51.0), 50.0), Ok(None));
    }

    #[test]
    fn one_sample_that_contradicts_is_enough() {
        let (early, mut held) = (all(51.0, 350.0), all(301.0, 350.0));
        held[2].first_ms = 52.0;
        assert_eq!(cause(&early, &held, 50.0), Ok(None));
        assert!(cause(&early[..2], &held, 50.0).is_err());
    }
}
