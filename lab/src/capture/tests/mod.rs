//! Rules, by captures made by hand: each with a case that has its fault and with ones that have it not.

mod copies;
mod files;
mod limits;
pub(crate) mod script;
mod seeds;

use super::stall::{self, ANSWER_NS_MAX, HELD_NS_MIN};
use super::tcp::Header;
use super::*;
use crate::doctor::{Code, Severity};
use script::{CLIENT, SERVER, Script};

pub(crate) const MS: u64 = 1000;
pub(super) const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

pub(crate) fn capture(script: &Script) -> Capture {
    read(&script.file()[..]).expect("it is a capture")
}

pub(super) fn stalls(script: &Script) -> Vec<Stall> {
    stall::of(&capture(script)).found
}

fn codes(script: &Script) -> Vec<Code> {
    findings(&capture(script))
        .iter()
        .map(|one| one.code)
        .collect()
}

/// A response with a late last byte. `client_us` and `server_us` are the distances of both ends; the acknowledgement is held for
/// `held_us`, and the last byte is sent `after_us` after its arrival.
pub(crate) fn withheld(client_us: u64, server_us: u64, held_us: u64, after_us: u64) -> Script {
    let mut script = Script::open(client_us, server_us);
    respond_late(&mut script, client_us, server_us, held_us, after_us);
    script
}

pub(super) fn respond_late(
    script: &mut Script,
    client_us: u64,
    server_us: u64,
    held_us: u64,
    after_us: u64,
) {
    script.wait(MS);
    script.data(CLIENT, REQUEST);
    script.wait(server_us);
    script.data(SERVER, &[b'x'; 400]);
    script.wait(client_us + held_us);
    script.ack(CLIENT);
    script.wait(server_us + after_us);
    script.data(SERVER, b"x");
    script.wait(client_us);
    script.ack(CLIENT);
}

#[test]
fn a_stall_is_seen_from_everywhere() {
    for (client_us, server_us) in [(0, 50 * MS), (50 * MS, 0), (25 * MS, 25 * MS), (0, 0)] {
        for held in [40, 200] {
            let mut script = withheld(client_us, server_us, held * MS, 100);
            respond_late(&mut script, client_us, server_us, held * MS, 100);
            let found = stalls(&script);
            assert_eq!(found.len(), 2, "{client_us} {server_us} {held}");
            let first = &found[0];
            assert_eq!(
                (first.segment_packet, first.ack_packet, first.next_packet),
                (5, Some(6), 7)
            );
            assert_eq!((first.segment_bytes, first.withheld_bytes), (400, 1));
            assert_eq!((first.request, found[1].request), (1, 2));
            assert_eq!(first.request_line.as_deref(), Some("GET /a"));
            assert_eq!((first.sent_bytes, first.held_ms), (400, held as f64));
            let lost = (client_us + server_us) as f64 / 1000.0 + held as f64 + 0.1;
            assert!((first.lost_ms - lost).abs() < 0.01, "{first:?}");
            let finding = &findings(&capture(&script))[0];
            assert_eq!(
                (finding.code, finding.severity),
                (Code::DelayedAckStall, Severity::Bad)
            );
        }
    }
}

/// A short segment, a full one and, after a pause, the rest, which `cut` bytes of a record are.
fn probed(pause_us: u64, cut: usize, kind: u8) -> Script {
    let mut script = Script::open(25 * MS, 25 * MS);
    script.data(CLIENT, &record(kind, &[0; 90]));
    script.wait(50 * MS);
    script.data(SERVER, &record(kind, &[0; 30]));
    let body = record(kind, &vec![0; 1448 + 300 - 5]);
    if cut > 0 {
        script.data(SERVER, &body[..1448]);
        script.wait(pause_us);
        script.data(SERVER, &body[1448..]);
    } else {
        script.data(SERVER, &body);
        script.wait(pause_us);
        script.data(SERVER, &record(kind, &[0; 300]));
    }
    script.wait(50 * MS);
    script.ack(CLIENT);
    script
}

#[test]
fn the_rest_of_a_record_that_a_probe_sends_is_a_stall() {
    let found = stalls(&probed(104 * MS, 300, 23));
    let [one] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(
        (one.ack_packet, one.held_ms, one.lost_ms),
        (None, 54.0, 104.0)
    );
    assert_eq!((one.segment_bytes, one.withheld_bytes), (1448, 300));
    let finding = &findings(&capture(&probed(104 * MS, 300, 23)))[0];
    assert_eq!(finding.code, Code::DelayedAckStall);
    assert_eq!(stalls(&probed(100 * MS, 300, 23)).len(), 1);
    // Sooner than a probe may be sent.
    assert_eq!(stalls(&probed(100 * MS - 1, 300, 23)).len(), 0);
    // A record of its own may not have been written before.
    assert_eq!(stalls(&probed(104 * MS, 0, 23)).len(), 0);
    // A handshake is written as it is computed.
    assert_eq!(stalls(&probed(104 * MS, 300, 22)).len(), 0);
}

/// A short segment, full ones and, when all were acknowledged late, a short one.
fn behind_full(short: usize, full: usize) -> Script {
    let mut script = Script::open(25 * MS, 25 * MS);
    script.data(CLIENT, REQUEST);
    script.wait(50 * MS);
    script.data(SERVER, &vec![b'x'; short]);
    for _ in 0..full {
        script.data(SERVER, &[b'x'; 1460]);
    }
    script.wait(25 * MS + 40 * MS);
    script.ack(CLIENT);
    script.wait(25 * MS);
    script.data(SERVER, b"x");
    script
}

#[test]
fn a_short_segment_before_a_full_one_is_waited_for_too() {
    assert_eq!(stalls(&behind_full(73, 1)).len(), 1);
    assert_eq!(stalls(&behind_full(1459 - 40, 1)).len(), 1);
    // Without a short segment nothing waits; with two full ones the congestion window may be the cause.
    assert_eq!(stalls(&behind_full(1460, 1)).len(), 0);
    assert_eq!(stalls(&behind_full(73, 2)).len(), 0);
}

#[test]
fn a_pause_with_all_acknowledged_is_no_probe() {
    let body = record(23, &[0; 1748]);
    for acknowledged in [false, true] {
        let mut script = Script::open(25 * MS, 25 * MS);
        script.data(CLIENT, &record(23, &[0; 90]));
        script.wait(50 * MS);
        script.data(SERVER, &record(23, &[0; 30]));
        script.data(SERVER, &body[..1448]);
        if acknowledged {
            script.wait(50 * MS);
            script.ack(CLIENT);
            script.wait(54 * MS);
        } else {
            script.wait(104 * MS);
        }
        script.data(SERVER, &body[1448..]);
        assert_eq!(stalls(&script).len(), usize::from(!acknowledged));
    }
    // Nothing short is unacknowledged: Nagle's algorithm keeps nothing back.
    let mut script = Script::open(25 * MS, 25 * MS);
    script.data(CLIENT, &record(23, &[0; 90]));
    script.wait(50 * MS);
    script.data(SERVER, &body[..1448]);
    script.wait(104 * MS);
    script.data(SERVER, &body[1448..]);
    assert_eq!(stalls(&script).len(), 0);
}

#[test]
fn a_stall_within_a_stream_has_its_frame() {
    let mut script = Script::open(0, 50 * MS);
    script.data(CLIENT, &frames::tests::request());
    script.wait(50 * MS);
    let data = frames::tests::frame(0, 1, 1, &[b'x'; 100]);
    script.data(
        SERVER,
        &[frames::tests::frame(4, 0, 0, b""), data[..108].to_vec()].concat(),
    );
    script.wait(40 * MS);
    script.ack(CLIENT);
    script.wait(50 * MS);
    script.data(SERVER, &data[108..]);
    let found = stalls(&script);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].frame.as_deref(), Some("DATA of stream 1"));
    assert_eq!(found[0].request_line.as_deref(), Some("GET /abc"));
    assert_eq!((found[0].request, found[0].counted), (1, Counted::Heads));
}

#[test]
fn the_limits_of_a_stall_are_exact() {
    let held = HELD_NS_MIN / 1000;
    let after = ANSWER_NS_MAX / 1000;
    assert_eq!(stalls(&withheld(0, 50 * MS, held, after)).len(), 1);
    assert_eq!(stalls(&withheld(0, 50 * MS, held - 1, after)).len(), 0);
    assert_eq!(stalls(&withheld(0, 50 * MS, held, after + 1)).len(), 0);
    // On the server's side a distant client is no late one.
    assert_eq!(stalls(&withheld(50 * MS, 0, 0, 0)).len(), 0);
}

#[test]
fn what_has_another_cause_is_no_stall() {
    let begin = || {
        let mut script = Script::open(0, 50 * MS);
        script.data(CLIENT, REQUEST);
        script.wait(50 * MS);
        script
    };
    // The server sends before the acknowledgement can have arrived.
    let mut early = begin();
    early.data(SERVER, &[b'x'; 400]);
    early.wait(40 * MS);
    early.ack(CLIENT);
    early.wait(20 * MS);
    early.data(SERVER, b"x");
    assert_eq!(stalls(&early), []);
    // The client sends another request, and the server answers it.
    let mut asked = begin();
    asked.data(SERVER, &[b'x'; 400]);
    asked.wait(40 * MS);
    asked.ack(CLIENT);
    asked.data(CLIENT, REQUEST);
    asked.wait(50 * MS);
    asked.data(SERVER, &[b'x'; 400]);
    assert_eq!(stalls(&asked), []);
    // Full segments are not delayed, neither after a short one nor as the outstanding one.
    for (outstanding, next) in [(400, 1460), (1460, 400)] {
        let mut full = begin();
        full.data(SERVER, &vec![b'x'; outstanding]);
        full.wait(40 * MS);
        full.ack(CLIENT);
        full.wait(50 * MS);
        full.data(SERVER, &vec![b'x'; next]);
        assert_eq!(stalls(&full), [], "{outstanding} {next}");
    }
    // A segment that was lost is sent again.
    let mut lost = begin();
    lost.data(SERVER, &[b'x'; 400]);
    lost.wait(40 * MS);
    lost.ack(CLIENT);
    lost.wait(50 * MS);
    lost.again(SERVER, &[b'x'; 400]);
    assert_eq!(stalls(&lost), []);
}

#[test]
fn chance_is_told_from_waiting() {
    let mut script = withheld(0, 50 * MS, 40 * MS, 100);
    for _ in 0..3 {
        // A server that streams at its own pace: its pauses end when they end.
        script.data(SERVER, &[b'x'; 100]);
        script.wait(40 * MS);
        script.ack(CLIENT);
        script.wait(90 * MS);
        script.data(SERVER, &[b'x'; 100]);
        script.wait(MS);
        script.ack(CLIENT);
    }
    let found = findings(&capture(&script));
    assert_eq!(found[0].severity, Severity::Warn);
    assert_eq!(found[0].evidence["pauses_that_ended_otherwise"], 3);
}

#[test]
fn a_capture_that_begins_in_the_middle_is_judged_by_other_samples() {
    let mut script = Script::from_port(50_001);
    // A request acknowledges the data before it, and the response acknowledges the request.
    script.data(SERVER, &[b'x'; 100]);
    script.data(CLIENT, REQUEST);
    script.wait(50 * MS);
    respond_late(&mut script, 0, 50 * MS, 40 * MS, 100);
    let found = stalls(&script);
    assert_eq!(found.len(), 1);
    let capture = capture(&script);
    assert!(!capture.flows[0].is_segment_size_known);
    assert_eq!(capture.flows[0].server.port(), 80);
}

#[test]
fn one_direction_alone_is_told_and_not_judged() {
    let mut script = withheld(0, 50 * MS, 40 * MS, 100);
    script.packets.retain(|(_, packet)| packet[15] == 2);
    let capture = capture(&script);
    assert!(!capture.flows[0].has_both_directions());
    assert_eq!(findings(&capture), []);
    assert!(
        capture.notes[0].contains("in one direction"),
        "{:?}",
        capture.notes
    );
}

/// A connection with a SYN that is sent again after this time.
pub(crate) fn syn_sent_again(after_us: u64) -> Script {
    let mut script = Script::new();
    script.send(CLIENT, Header::SYN, b"");
    script.wait(after_us);
    let (_, syn) = script.packets[0].clone();
    script.packets.push((script.at_us, syn));
    script.wait(MS);
    script.send(SERVER, Header::SYN | Header::ACK, b"");
    script.ack(CLIENT);
    script
}

#[test]
fn a_syn_sent_again_is_slow() {
    let lost = syn_sent_again;
    let found = findings(&capture(&lost(1_000_000)));
    assert_eq!(found[0].code, Code::SlowConnect);
    assert_eq!(found[0].lost_ms, 1000.0);
    assert_eq!(found[0].evidence["examples"][0]["last_packet"], 2);
    // Two devices of one machine see the same packet.
    assert_eq!(codes(&lost(50)), []);
    let least = connect::SENT_AGAIN_NS_MIN / 1000;
    assert_eq!(codes(&lost(least)), [Code::SlowConnect]);
    assert_eq!(codes(&lost(least - 1)), []);
}

/// A handshake of TLS 1.3, or 1.2, with a flight of this length. Bytes beyond 14,600 come a round trip later.
pub(crate) fn tls(flight: usize, version: u16, offers_tls13: bool) -> Script {
    let round_trip = 50 * MS;
    let mut script = Script::open(0, round_trip);
    script.data(CLIENT, &hello(1, offers_tls13.then_some(0x0304)));
    script.wait(round_trip);
    let mut bytes = hello(2, (version == 0x0304).then_some(0x0304));
    let rest = flight - bytes.len();
    bytes.extend([23, 3, 3]);
    bytes.extend(((rest - 5) as u16).to_be_bytes());
    bytes.resize(flight, 0);
    for (n, piece) in bytes.chunks(1460).enumerate() {
        if n == 10 {
            script.ack(CLIENT);
            script.wait(round_trip);
        }
        script.data(SERVER, piece);
    }
    script.data(
        CLIENT,
        &record(if version == 0x0304 { 23 } else { 22 }, &[0; 50]),
    );
    script.data(CLIENT, &record(23, &[0; 90]));
    script.wait(round_trip);
    script
}

pub(super) fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3][..], &(body.len() as u16).to_be_bytes(), body].concat()
}

/// A hello, of the client (1) or the server (2), with a version in its extensions.
fn hello(kind: u8, version: Option<u16>) -> Vec<u8> {
    let mut body = [&[3, 3][..], &[7; 32], &[0]].concat();
    match kind {
        1 => body.extend([0, 2, 0x13, 0x01, 1, 0]),
        _ => body.extend([0x13, 0x01, 0]),
    }
    if let Some(version) = version {
        let [high, low] = version.to_be_bytes();
        match kind {
            1 => body.extend([0, 7, 0, 43, 0, 3, 2, high, low]),
            _ => body.extend([0, 6, 0, 43, 0, 2, high, low]),
        }
    }
    let length = [0, (body.len() >> 8) as u8, body.len() as u8];
    record(22, &[&[kind][..], &length, &body].concat())
}

#[test]
fn a_chain_over_the_window_is_counted_to_the_byte() {
    let found = findings(&capture(&tls(16_000, 0x0304, true)));
    assert_eq!(found[0].code, Code::ChainOverWindow);
    assert_eq!(found[0].severity, Severity::Bad);
    assert_eq!(found[0].evidence["flight_bytes"], 16_000);
    assert_eq!(found[0].evidence["bytes_over_window"], 1400);
    assert_eq!((found[0].lost_ms, found[0].lost_round_trips), (50.0, 1.0));
    assert_eq!(codes(&tls(14_600, 0x0304, true)), []);
    assert_eq!(codes(&tls(14_601, 0x0304, true)), [Code::ChainOverWindow]);
}

#[test]
fn connections_without_a_round_trip_are_counted() {
    let script = withheld(0, 50 * MS, 40 * MS, 100);
    let (whole, note) = coverage(&capture(&script));
    assert_eq!((whole.checks, whole.unjudged, note), (6, vec![], None));
    let mut one_way = withheld(0, 50 * MS, 40 * MS, 100);
    one_way.packets.retain(|(_, packet)| packet[15] == 2);
    let (partial, note) = coverage(&capture(&one_way));
    assert_eq!(partial.unjudged, ["delayed-ack-stall", "tls-record-size"]);
    let note = note.expect("it has the number");
    assert!(note.starts_with("pauses of 1 of 1 connections"), "{note}");
    // A connection that is refused has no pauses.
    one_way.packets.truncate(1);
    assert_eq!(coverage(&capture(&one_way)).1, None);
}

#[test]
fn an_older_version_costs_a_round_trip() {
    let found = findings(&capture(&tls(3000, 0x0303, true)));
    let judged = found.iter().map(|one| (one.code, one.severity));
    let expected = (Code::HandshakeRoundTrips, Severity::Warn);
    assert_eq!(judged.collect::<Vec<_>>(), [expected], "as by URL");
    assert_eq!(codes(&tls(3000, 0x0304, true)), []);
    // The client offers only TLS 1.2.
    assert_eq!(codes(&tls(3000, 0x0303, false)), []);
}

#[test]
fn requests_behind_a_handshake_are_counted_without_it() {
    let mut script = tls(3000, 0x0304, true);
    script.data(SERVER, &record(23, &[0; 400]));
    script.wait(40 * MS);
    script.ack(CLIENT);
    script.wait(50 * MS);
    script.data(SERVER, &record(23, &[0; 40]));
    let found = stalls(&script);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].request, found[0].counted), (1, Counted::Flights));
}

/// A handshake of TLS 1.3, then a record of this length. Bytes beyond 14,600 come a round trip later.
pub(crate) fn first_record(bytes: usize) -> Script {
    let mut script = tls(3000, 0x0304, true);
    for (n, piece) in record(23, &vec![0; bytes]).chunks(1460).enumerate() {
        if n == 10 {
            script.ack(CLIENT);
            script.wait(50 * MS);
        }
        script.data(SERVER, piece);
    }
    script
}

#[test]
fn a_large_first_record_is_slow_where_it_takes_a_round_trip() {
    let with = first_record;
    let found = findings(&capture(&with(16_384)));
    assert_eq!(found[0].code, Code::TlsRecordSize);
    assert_eq!(
        (found[0].evidence["record_bytes"].clone(), found[0].lost_ms),
        (16_389.into(), 50.0)
    );
    assert_eq!(codes(&with(14_000)), []);
}

/// A response in segments of 100 bytes: this many, and one more, with a time between them.
pub(crate) fn short_segments(count: u64, gap_us: u64) -> Script {
    let mut script = Script::open(0, 50 * MS);
    script.data(CLIENT, REQUEST);
    script.wait(50 * MS);
    for _ in 0..=count {
        script.data(SERVER, &[b'x'; 100]);
        script.wait(gap_us);
    }
    script
}

#[test]
fn many_short_segments_at_once_are_a_finding() {
    let with = short_segments;
    let found = findings(&capture(&with(writes::RUN_MIN, 100)));
    assert_eq!(found[0].code, Code::WriteSize);
    assert_eq!(found[0].evidence["segments"], writes::RUN_MIN);
    assert_eq!(codes(&with(writes::RUN_MIN - 1, 100)), []);
    assert_eq!(
        codes(&with(100, 20 * MS)),
        [],
        "events that come one by one"
    );
}
