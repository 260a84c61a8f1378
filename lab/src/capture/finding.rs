//! Findings of the doctor that a capture proves.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::collect::Capture;
use super::connect;
use super::flow::{Flow, Side};
use super::handshake::{self, Handshake};
use super::hello::TLS13;
use super::paths::Path;
use super::stall::{self, Stall, milliseconds};
use super::writes;
use crate::doctor::{Code, Coverage, Finding, Severity};

/// Judges a capture by the doctor's rules. Each code has one finding at most, with the packets of its worst cases.
#[must_use]
pub fn findings(capture: &Capture) -> Vec<Finding> {
    let found = RULES.iter().filter_map(|rule| rule(capture));
    found.collect()
}

type Rule = fn(&Capture) -> Option<Finding>;

const RULES: [Rule; 6] = [
    stalls,
    chain_over_window,
    handshake_round_trips,
    slow_connect,
    tls_record_size,
    write_size,
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
            "pauses of {unknown} of {} connections were not judged: no acknowledgement shows how far both ends are",
            trips.len()
        )
    });
    (coverage, note)
}

fn each(capture: &Capture) -> impl Iterator<Item = (&Flow, &Path)> {
    capture.flows.iter().zip(&capture.paths)
}

/// Evidence about the worst cases, which come first.
fn examples(of: impl Iterator<Item = Value>) -> Value {
    Value::Array(of.take(EXAMPLES_MAX).collect())
}

fn connections(count: usize) -> String {
    match count {
        1 => "1 connection".to_owned(),
        more => format!("{more} connections"),
    }
}

fn times(count: usize) -> String {
    match count {
        1 => "Once".to_owned(),
        more => format!("{more} times"),
    }
}

/// The middle one of some costs, ms.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn stalls(capture: &Capture) -> Option<Finding> {
    let stalls = stall::of(capture);
    let mut found = stalls.found;
    let count = found.len();
    let lost = median(found.iter().map(|one| one.lost_ms).collect());
    found.sort_by(|a, b| b.lost_ms.total_cmp(&a.lost_ms));
    let worst = found.first()?;
    let mut flows: Vec<usize> = found.iter().map(|one| one.flow).collect();
    flows.sort_unstable();
    flows.dedup();
    // A server whose pauses mostly end at other times may have met an acknowledgement by chance.
    let severity = if count > stalls.others {
        Severity::Bad
    } else {
        Severity::Warn
    };
    let title = format!(
        "{} on {} the server kept bytes until a late acknowledgement came, or a timer ran out: {} ms each in the middle, at most {} ms",
        times(count),
        connections(flows.len()),
        lost,
        worst.lost_ms
    );
    let finding = Finding::new(Code::DelayedAckStall, severity, title)
        .costs(lost, 1.0)
        .proof("stalls", count)
        .proof("packets", found.iter().take(LINES_MAX).map(|one| line(capture, one)).collect::<Vec<_>>())
        .proof("pauses_that_ended_otherwise", stalls.others)
        .proof("examples", examples(found.iter().map(|one| example(capture, one))))
        .mend("nginx: tcp_nodelay on; wherever it is off (http, server, location); programs behind it: TCP_NODELAY, or one write for a response")
        .mend("firstbyte: nothing to set; connections have TCP_NODELAY from their first byte")
        .mend("again: tcpdump -w again.pcap on the same port with the same requests, then firstbyte doctor --pcap again.pcap");
    Some(finding)
}

/// A stall in a line, with its packets.
fn line(capture: &Capture, stall: &Stall) -> String {
    let request = match &stall.request_line {
        Some(line) => format!("{} ({line})", stall.request),
        None => stall.request.to_string(),
    };
    let acknowledged = match stall.ack_packet {
        Some(packet) => format!("acknowledged {} ms late by {packet}", stall.held_ms),
        None => format!("not acknowledged for {} ms", stall.held_ms),
    };
    format!(
        "{}, request {request}: {} bytes in packet {}, {acknowledged}, {} bytes in {}",
        capture.flows[stall.flow].name(),
        stall.segment_bytes,
        stall.segment_packet,
        stall.withheld_bytes,
        stall.next_packet
    )
}

/// First and last packet of the worst case, for people.
fn packets(flow: &Flow, first: u64, last: u64) -> String {
    format!("{}: {first} to {last}", flow.name())
}

fn example(capture: &Capture, stall: &Stall) -> Value {
    let mut value = json!({
        "connection": capture.flows[stall.flow].name(),
        "request": stall.request,
        "requests_counted_by": stall.counted.name(),
        "lost_ms": stall.lost_ms,
        "ack_held_ms": stall.held_ms,
        "sent_bytes": stall.sent_bytes,
        "segment": {"packet": stall.segment_packet, "bytes": stall.segment_bytes},
        "ack": stall.ack_packet.map(|packet| json!({"packet": packet})),
        "ended_by": if stall.ack_packet.is_some() { "acknowledgement" } else { "tail-loss probe" },
        "withheld": {"packet": stall.next_packet, "bytes": stall.withheld_bytes},
        "segment_size": capture.flows[stall.flow].segment_bytes,
        "segment_size_from_handshake": capture.flows[stall.flow].is_segment_size_known,
    });
    if let Some(line) = &stall.request_line {
        value["request_line"] = line.as_str().into();
    }
    if let Some(frame) = &stall.frame {
        value["withheld"]["frame"] = frame.as_str().into();
    }
    value
}

/// Handshakes of all connections that begin with one.
fn handshakes(capture: &Capture) -> impl Iterator<Item = (&Flow, &Path, Handshake)> {
    each(capture).filter_map(|(flow, path)| Some((flow, path, handshake::of(flow, path)?)))
}

fn chain_over_window(capture: &Capture) -> Option<Finding> {
    let mut full = 0;
    let mut over = Vec::new();
    for (flow, path, handshake) in handshakes(capture) {
        let Some(flight) = handshake.flight else {
            continue;
        };
        full += 1;
        let window = u64::from(INITIAL_WINDOW_SEGMENTS * flow.segment_bytes);
        let extra = match flight.round_trips {
            // Without a window's worth before it, a pause is the server's own.
            Some(trips) if flight.first_bytes >= window / 2 => trips - 1,
            Some(_) => 0,
            None => u64::from(flight.bytes > window),
        };
        if extra > 0 {
            over.push((flow, path, flight, extra, window));
        }
    }
    over.sort_by_key(|(_, _, flight, extra, _)| Reverse((*extra, flight.bytes)));
    let (flow, path, flight, extra, window) = over.first().copied()?;
    let behind = flight.packet_behind.unwrap_or(flight.last_packet);
    let first = match flight.round_trips {
        Some(_) => flight.first_bytes,
        None => window,
    };
    let severity = match flight.round_trips {
        Some(_) => Severity::Bad,
        // The rule counts bytes here; the server's window may be larger.
        None => Severity::Warn,
    };
    let title = format!(
        "the server's handshake has {} bytes, and {first} leave at once: {} of {full} handshakes wait for {extra} round trips more",
        flight.bytes,
        over.len()
    );
    let round_trip = path.round_trip_ns().unwrap_or_default();
    let shown = over.iter().map(|(flow, _, flight, extra, _)| {
        json!({
            "connection": flow.name(),
            "flight_bytes": flight.bytes,
            "extra_round_trips": extra,
            "packet_behind_the_window": flight.packet_behind,
            "last_packet": flight.last_packet,
        })
    });
    let finding = Finding::new(Code::ChainOverWindow, severity, title)
        .costs(milliseconds(round_trip.saturating_mul(extra)), extra as f64)
        .proof("flight_bytes", flight.bytes)
        .proof("first_bytes", first)
        .proof("bytes_over_window", flight.bytes.saturating_sub(first))
        .proof("packets", packets(flow, behind, flight.last_packet))
        .proof("is_pause_seen", flight.round_trips.is_some())
        .proof("round_trip_ms", milliseconds(round_trip))
        .proof("examples", examples(shown))
        .mend("ssl_certificate: leave the root out of the file, and choose a chain with fewer or ECDSA certificates")
        .mend("firstbyte: ssl_certificate_compression on;")
        .mend("again: firstbyte doctor https://NAME/");
    Some(finding)
}

fn handshake_round_trips(capture: &Capture) -> Option<Finding> {
    let mut all = 0;
    let mut found = Vec::new();
    for (flow, path, handshake) in handshakes(capture) {
        all += 1;
        let is_old = handshake.client.offers_tls13 && handshake.server.version < TLS13;
        if handshake.server.is_retry || is_old {
            found.push((flow, path, handshake));
        }
    }
    let (_, path, _) = found.first()?;
    let retries = found
        .iter()
        .filter(|(_, _, one)| one.server.is_retry)
        .count();
    let older = found.len() - retries;
    let title = format!(
        "{} of {all} handshakes take a round trip more than TLS 1.3 needs: {older} clients that offered it got an older version, {retries} were asked for another key",
        found.len()
    );
    let round_trip = path.round_trip_ns().map_or(0.0, milliseconds);
    let shown = found.iter().map(|(flow, _, one)| {
        json!({
            "connection": flow.name(),
            "packet": one.packet,
            "version": format!("{:#06x}", one.server.version),
            "retry": one.server.is_retry,
        })
    });
    let finding = Finding::new(Code::HandshakeRoundTrips, Severity::Warn, title)
        .costs(round_trip, 1.0)
        .proof("handshakes", all)
        .proof("older_versions", older)
        .proof("retries", retries)
        .proof("examples", examples(shown))
        .mend("ssl_protocols TLSv1.2 TLSv1.3;")
        .mend("ssl_ecdh_curve: name the groups that clients send keys for, X25519 among them")
        .mend("again: firstbyte doctor https://NAME/");
    Some(finding)
}

fn slow_connect(capture: &Capture) -> Option<Finding> {
    let opened = capture.flows.iter().filter(|flow| {
        let first = flow.segments.first();
        first.is_some_and(|one| one.is_syn())
    });
    let all = opened.count();
    let mut found: Vec<_> = each(capture)
        .filter_map(|(flow, _)| Some((flow, connect::of(flow)?)))
        .collect();
    found.sort_by_key(|(_, one)| Reverse(one.lost_ns));
    let lost = median(
        found
            .iter()
            .map(|(_, one)| milliseconds(one.lost_ns))
            .collect(),
    );
    let (flow, worst) = found.first()?;
    let unanswered = found.iter().filter(|(_, one)| !one.was_answered).count();
    let title = format!(
        "{} of {all} connections were opened at a second attempt or later, {unanswered} not at all: {lost} ms each in the middle, at most {} ms",
        found.len(),
        milliseconds(worst.lost_ns)
    );
    let severity = match found.len() * RARE < all {
        true => Severity::Warn,
        false => Severity::Bad,
    };
    let shown = found.iter().map(|(flow, one)| {
        json!({
            "connection": flow.name(),
            "first_packet": one.first_packet,
            "last_packet": one.last_packet,
            "lost_ms": milliseconds(one.lost_ns),
            "answered": one.was_answered,
        })
    });
    let finding = Finding::new(Code::SlowConnect, severity, title)
        .costs(lost, 0.0)
        .proof("connections", all)
        .proof("syn_sent_again", found.len())
        .proof("packets", packets(flow, worst.first_packet, worst.last_packet))
        .proof("examples", examples(shown))
        .mend("a full queue of connections drops SYNs: net.core.somaxconn, net.ipv4.tcp_max_syn_backlog, and listen ... backlog=; see nstat TcpExtListenDrops")
        .mend("a filter or a lossy way drops them otherwise: capture at both ends and compare");
    Some(finding)
}

fn tls_record_size(capture: &Capture) -> Option<Finding> {
    let mut found: Vec<_> = each(capture)
        .filter_map(|(flow, path)| Some((flow, handshake::slow_record(flow, path)?)))
        .collect();
    found.sort_by_key(|(_, record)| Reverse(record.took_ns));
    let lost = median(
        found
            .iter()
            .map(|(_, one)| milliseconds(one.took_ns))
            .collect(),
    );
    let (flow, worst) = found.first()?;
    let title = format!(
        "on {} the first records of data took a round trip to arrive, up to {} bytes in {} ms: nothing of a record can be read before its end",
        connections(found.len()),
        worst.bytes,
        milliseconds(worst.took_ns)
    );
    let shown = found.iter().map(|(flow, record)| {
        json!({
            "connection": flow.name(),
            "record_bytes": record.bytes,
            "took_ms": milliseconds(record.took_ns),
            "first_packet": record.first_packet,
            "last_packet": record.last_packet,
        })
    });
    let finding = Finding::new(Code::TlsRecordSize, Severity::Warn, title)
        .costs(lost, 1.0)
        .proof("record_bytes", worst.bytes)
        .proof("packets", packets(flow, worst.first_packet, worst.last_packet))
        .proof("examples", examples(shown))
        .mend("nginx: ssl_buffer_size 4k;")
        .mend("firstbyte: ssl_buffer_size away from the configuration: records are small at first and grow")
        .mend("again: firstbyte doctor https://NAME/");
    Some(finding)
}

fn write_size(capture: &Capture) -> Option<Finding> {
    let mut found: Vec<_> = each(capture)
        .filter_map(|(flow, _)| Some((flow, writes::of(flow)?)))
        .collect();
    found.sort_by_key(|(_, run)| Reverse(run.segments));
    let (flow, run) = found.first()?;
    let title = format!(
        "on {} data left in segments far below {} bytes with more at once behind them, up to {} in a row for {} bytes, where {} would do",
        connections(found.len()),
        flow.segment_bytes,
        run.segments,
        run.bytes,
        run.needed(flow.segment_bytes)
    );
    let shown = found.iter().map(|(flow, run)| {
        json!({
            "connection": flow.name(),
            "segments": run.segments,
            "bytes": run.bytes,
            "needed": run.needed(flow.segment_bytes),
            "first_packet": run.first_packet,
            "last_packet": run.last_packet,
        })
    });
    let finding = Finding::new(Code::WriteSize, Severity::Warn, title)
        .proof("segments", run.segments)
        .proof("packets", packets(flow, run.first_packet, run.last_packet))
        .proof("bytes", run.bytes)
        .proof("examples", examples(shown))
        .mend("nginx: postpone_output 1460; tcp_nopush on; and larger buffers of what the program writes")
        .mend("again: firstbyte doctor --pcap of a new capture");
    Some(finding)
}

/// The cases that a finding shows people.
const LINES_MAX: usize = 5;
/// The cases that a finding shows.
const EXAMPLES_MAX: usize = 20;
/// The segments that Linux sends before it has an acknowledgement (RFC 6928).
const INITIAL_WINDOW_SEGMENTS: u32 = 10;
/// A share of lost connections below one in this many is the network's.
const RARE: usize = 20;
