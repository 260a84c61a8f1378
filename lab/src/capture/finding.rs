//! Facts of a capture, for the judges of the doctor.

use std::collections::BTreeSet;

use serde_json::Value;

use super::collect::Capture;
use super::connect;
use super::flow::{Flow, Side};
use super::handshake::{self, Handshake};
use super::hello::TLS13;
use super::paths::Path;
use super::stall::{self, Stall};
use super::writes;
use crate::doctor::judge::connect::CapturedConnects;
use crate::doctor::judge::first_flight::Captured as Flight;
use crate::doctor::judge::handshake::Captured;
use crate::doctor::judge::stall::{LINES_MAX, Stalls};
use crate::doctor::judge::tls_record_size::SlowRecord;
use crate::doctor::judge::write_size::Run;
use crate::doctor::judge::{self, Case, EXAMPLES_MAX, Facts};
use crate::doctor::{Code, Coverage, Finding, milliseconds};

/// Judges a capture by the doctor's rules. Each code has one finding at most, with the packets of its worst cases.
#[must_use]
pub fn findings(capture: &Capture) -> Vec<Finding> {
    let found = RULES.iter().filter_map(|rule| rule(capture));
    found.collect()
}

type Rule = fn(&Capture) -> Option<Finding>;

const RULES: [Rule; 6] = [
    |capture| judge::stall::judge(Facts::Packets(&stalls(capture))),
    |capture| judge::first_flight::judge_window(Facts::Packets(&flights(capture))),
    |capture| judge::handshake::judge(Facts::Packets(&hellos(capture))),
    |capture| judge::connect::judge_connects(Facts::Packets(&connects(capture))),
    |capture| judge::tls_record_size::judge(Facts::Packets(&slow_records(capture))),
    |capture| judge::write_size::judge(Facts::Packets(&runs(capture))),
];

/// The rules with and without a verdict. Rules about pauses have none for connections with an unknown round trip; a note has
/// their number.
#[must_use]
pub fn coverage(capture: &Capture) -> (Coverage, Option<String>) {
    let has_data = |flow: &Flow| {
        let mut segments = flow.segments.iter();
        segments.any(|one| one.from == Side::Server && one.bytes > 0)
    };
    let with_data = each(capture).filter(|(flow, _)| has_data(flow));
    let trips: Vec<_> = with_data.map(|(_, path)| path.round_trip_ns()).collect();
    let unknown = trips.iter().filter(|trip| trip.is_none()).count();
    let of_pauses = [Code::DelayedAckStall, Code::TlsRecordSize];
    let names = of_pauses.iter().filter(|_| unknown > 0);
    let coverage = Coverage {
        checks: RULES.len(),
        unjudged: names.map(|code| code.name().to_owned()).collect(),
        is_interrupted: false,
    };
    let note = (unknown > 0).then(|| {
        format!(
            "pauses of {unknown} of {} connections were not analyzed: no acknowledgement shows their round trip",
            trips.len()
        )
    });
    (coverage, note)
}

fn each(capture: &Capture) -> impl Iterator<Item = (&Flow, &Path)> {
    capture.flows.iter().zip(&capture.paths)
}

/// Stalls of a capture.
pub(crate) fn stalls(capture: &Capture) -> Stalls {
    let stall::Stalls {
        mut found, others, ..
    } = stall::of(capture);
    found.sort_by(|a, b| b.lost_ms.total_cmp(&a.lost_ms));
    let flow = |one: &Stall| &capture.flows[one.flow];
    let lines = found.iter().take(LINES_MAX);
    let lines = lines.map(|one| one.in_words(flow(one))).collect();
    // A capture may have thousands; a finding shows the first.
    let cases = found.iter().enumerate().map(|(n, one)| Case {
        lost_ms: one.lost_ms,
        size: 0.0,
        figures: match n < EXAMPLES_MAX {
            true => one.figures(flow(one)),
            false => Value::Null,
        },
    });
    let flows: BTreeSet<usize> = found.iter().map(|one| one.flow).collect();
    Stalls {
        cases: cases.collect(),
        lines,
        connections: flows.len(),
        others,
    }
}

/// Handshakes of all connections that begin with one.
fn all_handshakes(capture: &Capture) -> impl Iterator<Item = (&Flow, &Path, Handshake)> {
    each(capture).filter_map(|(flow, path)| Some((flow, path, handshake::of(flow, path)?)))
}

pub(crate) fn flights(capture: &Capture) -> Vec<Flight> {
    let all = all_handshakes(capture).filter_map(|(_, _, one)| one.flight);
    all.collect()
}

pub(crate) fn slow_records(capture: &Capture) -> Vec<SlowRecord> {
    let slow = each(capture).filter_map(|(flow, path)| handshake::slow_record(flow, path));
    slow.collect()
}

pub(crate) fn runs(capture: &Capture) -> Vec<Run> {
    capture.flows.iter().filter_map(writes::of).collect()
}

pub(crate) fn hellos(capture: &Capture) -> Vec<Captured> {
    let all = all_handshakes(capture).map(|(flow, path, one)| Captured {
        connection: flow.name(),
        packet: one.packet,
        version: one.server.version,
        is_retry: one.server.is_retry,
        is_old: one.client.offers_tls13 && one.server.version < TLS13,
        round_trip_ms: path.round_trip_ns().map_or(0.0, milliseconds),
    });
    all.collect()
}

/// Connections of a capture as they were opened.
pub(crate) fn connects(capture: &Capture) -> CapturedConnects {
    let begins = |flow: &&Flow| flow.segments.first().is_some_and(|one| one.is_syn());
    CapturedConnects {
        connections: capture.flows.iter().filter(begins).count(),
        retries: capture.flows.iter().filter_map(connect::of).collect(),
    }
}
