//! The handshake of TLS in a flow: its round trips, and the server's flight that the client waits for.

use super::flow::{Flow, Side};
use super::hello::{self, ClientHello, ServerHello};
use super::paths::Path;
use super::records::{self, APPLICATION_DATA, CHANGE_CIPHER_SPEC, Record};
use crate::doctor::judge::first_flight::Captured as Flight;
use crate::doctor::judge::tls_record_size::SlowRecord;
use crate::doctor::milliseconds;

/// A handshake.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Handshake {
    pub(super) client: ClientHello,
    pub(super) server: ServerHello,
    pub(super) flight: Option<Flight>,
    /// The packet with the ServerHello.
    pub(super) packet: u64,
}

/// The handshake of a flow that begins with one.
pub(super) fn of(flow: &Flow, path: &Path) -> Option<Handshake> {
    let client = hello::client(&flow.from_client)?;
    let server = hello::server(&flow.from_server)?;
    let packet = flow.from_server.part(0)?.packet;
    let flight = (!server.is_retry && !client.has_early_data)
        .then(|| flight(flow, path, server.version))
        .flatten();
    Some(Handshake {
        client,
        server,
        flight,
        packet,
    })
}

/// The client's first record after its ClientHello that answers the server.
fn answer(flow: &Flow, version: u16) -> Option<Record> {
    let records = records::of(&flow.from_client);
    // In TLS 1.3 a ChangeCipherSpec means nothing, and may come early.
    let is_answer = |record: &&Record| match record.kind {
        CHANGE_CIPHER_SPEC => version < hello::TLS13,
        _ => true,
    };
    let hello = flow.from_server.part(0)?;
    let behind = records
        .iter()
        .filter(|record| record.first.packet > hello.packet);
    behind.into_iter().find(is_answer).copied()
}

fn flight(flow: &Flow, path: &Path, version: u16) -> Option<Flight> {
    let answer = answer(flow, version)?;
    let begin = flow.from_server.part(0)?.packet;
    let pause_ns = path
        .round_trip_ns()
        .filter(|round_trip| *round_trip >= ROUND_TRIP_NS_MIN);
    let pause_ns = pause_ns.map(|round_trip| round_trip / 10 * PAUSE_TENTHS);
    let mut flight = Flight {
        bytes: 0,
        first_bytes: 0,
        window: u64::from(INITIAL_WINDOW_SEGMENTS * flow.segment_bytes),
        round_trips: pause_ns.map(|_| 1),
        round_trip_ns: path.round_trip_ns().unwrap_or_default(),
        connection: flow.name(),
        packet_behind: None,
        last_packet: begin,
    };
    let mut last_ns = None;
    let within = flow
        .segments
        .iter()
        .filter(|one| one.from == Side::Server && one.bytes > 0);
    let within = within.filter(|one| one.packet >= begin && one.packet < answer.first.packet);
    let mut sent_again = false;
    for segment in within {
        sent_again |= !segment.is_new;
        let gap_ns = last_ns.map_or(0, |last| segment.at_ns.saturating_sub(last));
        if let (Some(pause_ns), Some(trips)) = (pause_ns, &mut flight.round_trips)
            && gap_ns >= pause_ns
        {
            *trips += 1;
            flight.packet_behind.get_or_insert(segment.packet);
        }
        if segment.is_new {
            flight.bytes += u64::from(segment.bytes);
            if flight.packet_behind.is_none() {
                flight.first_bytes += u64::from(segment.bytes);
            }
        }
        flight.last_packet = segment.packet;
        last_ns = Some(segment.at_ns);
    }
    if sent_again {
        // A pause may be due to the loss.
        flight.round_trips = None;
    }
    Some(flight)
}

/// Finds a slow record among the first ones after the handshake; later records are large on purpose.
pub(super) fn slow_record(flow: &Flow, path: &Path) -> Option<SlowRecord> {
    let round_trip = path.round_trip_ns().filter(|ns| *ns >= ROUND_TRIP_NS_MIN)?;
    let version = hello::server(&flow.from_server)?.version;
    let answer = answer(flow, version)?;
    let records = records::of(&flow.from_server);
    let data = records
        .iter()
        .filter(|one| one.kind == APPLICATION_DATA && one.first.packet > answer.first.packet);
    data.take(RECORDS_LOOKED_AT).find_map(|record| {
        let took_ns = record.last.at_ns.saturating_sub(record.first.at_ns);
        // Loss delays records of any size.
        let sent_again = flow.segments.iter().any(|one| {
            one.from == Side::Server
                && !one.is_new
                && one.bytes > 0
                && (record.first.packet..=record.last.packet).contains(&one.packet)
        });
        let is_slow = took_ns >= round_trip / 10 * PAUSE_TENTHS
            && record.bytes > 2 * flow.segment_bytes as usize
            && !sent_again;
        is_slow.then(|| SlowRecord {
            bytes: record.bytes,
            took_ms: milliseconds(took_ns),
            packets: flow.packets(record.first.packet, record.last.packet),
        })
    })
}

/// Shortest round trip that is distinguishable from pauses of a busy machine.
pub(super) const ROUND_TRIP_NS_MIN: u64 = 2_000_000;
/// The segments that Linux sends before it has an acknowledgement (RFC 6928).
const INITIAL_WINDOW_SEGMENTS: u32 = 10;
/// A pause of this many tenths of a round trip is one for an acknowledgement.
const PAUSE_TENTHS: u64 = 7;
/// Records at the beginning of the data: tickets and the first response.
const RECORDS_LOOKED_AT: usize = 4;
