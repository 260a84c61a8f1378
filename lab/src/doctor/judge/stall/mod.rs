//! delayed-ack-stall: the server keeps the end of a response until the client acknowledges the beginning.
//!
//! Source: RFC 896 (Nagle), RFC 1122 section 4.2.3.2 (delayed acknowledgements).

pub(crate) mod sweep;
pub(crate) mod verdict;

use super::{Case, Facts, count, middle_ms, of_page};
use crate::doctor::code::delayed_ack_stall as texts;
use crate::doctor::{Finding, Severity};
use sweep::SweepFacts;

/// Stalls of a capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stalls {
    /// The most costly first.
    pub(crate) cases: Vec<Case>,
    /// The first cases in words, with their packets.
    pub(crate) lines: Vec<String>,
    /// Connections with a stall.
    pub(crate) connections: usize,
    /// Pauses after a late acknowledgement that ended at another time.
    pub(crate) others: usize,
}

/// delayed-ack-stall: bad if samples show it, or if packets prove most pauses; a page's pauses are warned of.
pub(crate) fn judge(facts: Facts<'_, SweepFacts<'_>, Stalls>) -> Option<Finding> {
    match facts {
        Facts::Server(facts) => sweep::judge(facts),
        Facts::Packets(stalls) => judge_packets(stalls),
        Facts::Page(cases) => of_page(
            cases,
            |_| true,
            Severity::Warn,
            |n, worst_ms| texts::page(count(n, "response"), worst_ms),
        ),
    }
}

fn judge_packets(stalls: &Stalls) -> Option<Finding> {
    let Stalls { cases, others, .. } = stalls;
    let (n, worst_ms) = (cases.len(), cases.first()?.lost_ms);
    let lost_ms = middle_ms(cases.iter().map(|one| one.lost_ms));
    // If most pauses end at other times, the match with an acknowledgement may be chance.
    let severity = if n > *others {
        Severity::Bad
    } else {
        Severity::Warn
    };
    let times = match n {
        1 => "Once".to_owned(),
        more => format!("{more} times"),
    };
    let text = texts::capture(
        times,
        count(stalls.connections, "connection"),
        lost_ms,
        worst_ms,
    );
    let found = Finding::of(text, severity)
        .costs(lost_ms, 1.0)
        .proof("stalls", n)
        .proof("packets", stalls.lines.clone())
        .proof("pauses_that_ended_otherwise", *others);
    Some(found.examples(cases.iter().map(|one| one.figures.clone())))
}

/// The cases that a finding shows people.
pub(crate) const LINES_MAX: usize = 5;
