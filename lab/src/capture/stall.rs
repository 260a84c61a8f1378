//! The stall rule: a server waits for an acknowledgement before it sends the rest.
//!
//! A sender under Nagle's algorithm (RFC 896) keeps a short segment while another short one is unacknowledged. A receiver may
//! delay its acknowledgement (RFC 1122 section 4.2.3.2). In a capture, the server has sent a segment below the segment size,
//! perhaps a full one after it, and is silent. The client's bare acknowledgement comes late, and within [`ANSWER_NS_MAX`] of its
//! arrival the server sends more, without another request.
//!
//! A sender may end the wait earlier. With two or more unacknowledged segments, its tail-loss probe (RFC 8985 section 7.3) sends
//! the kept data after two round trips. A program that paused looks the same, unless the data is the rest of a TLS record: then
//! the program had written all of it before.
//!
//! Times are converted to those at the ends (`paths`). The acknowledgement is late by its time beyond the path to the client and
//! back. The answer is due after the path to the server and back.

use serde_json::{Value, json};

use super::collect::Capture;
use super::flow::{Flow, Segment, Side};
use super::records::{self, APPLICATION_DATA, Record};
use super::requests::{Counted, Requests};
use crate::doctor::milliseconds;

/// A time for which a server waited for an acknowledgement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stall {
    /// The place of its flow in [`Capture::flows`].
    pub flow: usize,
    /// Packet of the short segment that was unacknowledged, and its payload's bytes.
    pub segment_packet: u64,
    /// Bytes of that segment.
    pub segment_bytes: u32,
    /// Packet of the late acknowledgement; `None` if a tail-loss probe came first.
    pub ack_packet: Option<u64>,
    /// For how long the client held it, ms; with a probe, for how long at least.
    pub held_ms: f64,
    /// Packet with the data that the server had kept.
    pub next_packet: u64,
    /// Bytes of that packet.
    pub withheld_bytes: u32,
    /// From the short segment to the kept data: the client's whole loss, ms.
    pub lost_ms: f64,
    /// Capture times of the short segment and of the kept data, nanoseconds since 1970.
    pub span_ns: (u64, u64),
    /// Bytes that the server sent since the request, before the stall.
    pub sent_bytes: u64,
    /// Number of the request on its connection, from 1; 0 if none was captured.
    pub request: usize,
    /// How requests were counted.
    pub counted: Counted,
    /// Method and target, if they are in the clear or were decrypted.
    pub request_line: Option<String>,
    /// The kept HTTP/2 frame, such as `DATA of stream 1`, if known.
    pub frame: Option<String>,
}

impl Stall {
    /// Its figures for the report.
    pub(super) fn figures(&self, flow: &Flow) -> Value {
        let ended_by = match self.ack_packet {
            Some(_) => "acknowledgement",
            None => "tail-loss probe",
        };
        let mut figures = json!({
            "connection": flow.name(),
            "request": self.request,
            "requests_counted_by": self.counted.name(),
            "lost_ms": self.lost_ms,
            "ack_held_ms": self.held_ms,
            "sent_bytes": self.sent_bytes,
            "segment": {"packet": self.segment_packet, "bytes": self.segment_bytes},
            "ack": self.ack_packet.map(|packet| json!({"packet": packet})),
            "ended_by": ended_by,
            "withheld": {"packet": self.next_packet, "bytes": self.withheld_bytes},
            "segment_size": flow.segment_bytes,
            "segment_size_from_handshake": flow.is_segment_size_known,
        });
        if let Some(line) = &self.request_line {
            figures["request_line"] = line.as_str().into();
        }
        if let Some(frame) = &self.frame {
            figures["withheld"]["frame"] = frame.as_str().into();
        }
        figures
    }

    /// A line about it, with its packets.
    pub(super) fn in_words(&self, flow: &Flow) -> String {
        let request = match &self.request_line {
            Some(line) => format!("{} ({line})", self.request),
            None => self.request.to_string(),
        };
        let held_ms = self.held_ms;
        let acknowledged = match self.ack_packet {
            Some(packet) => format!("acknowledged {held_ms} ms late by {packet}"),
            None => format!("not acknowledged for {held_ms} ms"),
        };
        format!(
            "{}, request {request}: {} bytes in packet {}, {acknowledged}, {} bytes in {}",
            flow.name(),
            self.segment_bytes,
            self.segment_packet,
            self.withheld_bytes,
            self.next_packet
        )
    }
}

/// The stalls of a capture, and how often servers were silent until after a late acknowledgement and went on some other time.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    pub(super) found: Vec<Stall>,
    /// Such pauses that ended otherwise.
    pub(super) others: usize,
    /// Connections without a verdict, since their round trip is unknown.
    pub(super) unjudged: usize,
}

pub(super) fn of(capture: &Capture) -> Stalls {
    let mut all = Stalls::default();
    let flows = capture
        .flows
        .iter()
        .zip(&capture.paths)
        .zip(&capture.decrypted);
    for (place, ((flow, path), decrypted)) in flows.enumerate() {
        let (Some(client_ns), Some(server_ns)) = (path.client_ns, path.server_ns) else {
            all.unjudged += usize::from(flow.has_both_directions());
            continue;
        };
        let mut watch = Watch {
            flow,
            client_ns,
            server_ns,
            records: None,
            outstanding: None,
            short_end: i64::MIN,
            late: None,
            acknowledged: i64::MIN,
            room: None,
            sent_bytes: 0,
        };
        let mut requests = None;
        for segment in &flow.segments {
            match watch.observe(segment) {
                Observed::Nothing => {}
                Observed::OtherPause => all.others += 1,
                Observed::Stall(held) => {
                    let requests =
                        requests.get_or_insert_with(|| Requests::of(flow, decrypted.as_ref()));
                    if all.found.len() < STALLS_MAX {
                        all.found.push(watch.stall(place, &held, segment, requests));
                    }
                }
            }
            watch.count(segment);
        }
    }
    all
}

/// The state of one TCP connection while its captured packets are read in order.
struct Watch<'c> {
    flow: &'c Flow,
    client_ns: u64,
    server_ns: u64,
    /// The server's records, parsed at first use.
    records: Option<Vec<Record>>,
    /// The server's last segment, while nothing followed it and the client has sent nothing.
    outstanding: Option<Segment>,
    /// The end of the server's last short segment.
    short_end: i64,
    /// The late acknowledgement of that one.
    late: Option<Late>,
    acknowledged: i64,
    /// Offset up to which the client accepts data, if known.
    room: Option<i64>,
    /// Payload of the server since the client's last.
    sent_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Late {
    at_ns: u64,
    packet: u64,
    held_ns: u64,
    /// How far the client took data before this one.
    room: Option<i64>,
}

/// A pause of the server: the segment that was unacknowledged, and the acknowledgement that ended it.
struct Held {
    before: Segment,
    ack_packet: Option<u64>,
    held_ns: u64,
}

enum Observed {
    Nothing,
    /// The server went on, and not because of the acknowledgement.
    OtherPause,
    Stall(Held),
}

impl Watch<'_> {
    fn observe(&mut self, segment: &Segment) -> Observed {
        if segment.from == Side::Client {
            self.observe_client(segment);
            return Observed::Nothing;
        }
        if segment.bytes == 0 {
            return Observed::Nothing;
        }
        let (before, late) = (self.outstanding.take(), self.late.take());
        if !segment.is_new {
            return Observed::Nothing;
        }
        self.outstanding = Some(*segment);
        let Some(before) = before else {
            return Observed::Nothing;
        };
        let Some(late) = late else {
            return self.observe_probe(before, segment);
        };
        let due_ns = late.at_ns.saturating_add(self.server_ns);
        let is_answer = segment.at_ns.saturating_add(SLACK_NS) >= due_ns
            && segment.at_ns <= due_ns.saturating_add(ANSWER_NS_MAX);
        // With a full receive window, every server has to wait.
        let had_room = late.room.is_none_or(|room| segment.end() <= room);
        // Nagle's algorithm never delays a full segment, so a full one was written only now.
        let is_short = segment.bytes < self.flow.segment_bytes;
        if segment.begin == before.end() && is_answer && had_room && is_short {
            Observed::Stall(Held {
                before,
                ack_packet: Some(late.packet),
                held_ns: late.held_ns,
            })
        } else {
            Observed::OtherPause
        }
    }

    /// Judges a segment of the server for which nothing was acknowledged.
    fn observe_probe(&mut self, before: Segment, segment: &Segment) -> Observed {
        let round_trip_ns = self.client_ns + self.server_ns;
        let pause_ns = segment.at_ns.saturating_sub(before.at_ns);
        let is_probe = segment.begin == before.end()
            && segment.bytes < self.flow.segment_bytes
            && self.short_end > self.acknowledged
            // A single segment is probed for after the longest delay of an acknowledgement alone.
            && before.begin > self.acknowledged
            && pause_ns >= (2 * round_trip_ns).max(PROBE_NS_MIN)
            && self.is_little(segment.begin, self.acknowledged)
            && self.room.is_none_or(|room| segment.end() <= room)
            && self.is_within_record(segment.begin);
        if is_probe {
            Observed::Stall(Held {
                before,
                ack_packet: None,
                held_ns: pause_ns - round_trip_ns,
            })
        } else {
            Observed::Nothing
        }
    }

    /// Whether the bytes before `end` that are not acknowledged are so few that no congestion window keeps more from being sent
    /// (RFC 5681 section 3.1).
    fn is_little(&self, end: i64, acknowledged: i64) -> bool {
        end.saturating_sub(acknowledged) <= 2 * i64::from(self.flow.segment_bytes)
    }

    /// Whether the server's byte at `place` continues a record of TLS that carries data.
    fn is_within_record(&mut self, place: i64) -> bool {
        let flow = self.flow;
        let records = self
            .records
            .get_or_insert_with(|| records::of(&flow.from_server));
        let Ok(place) = usize::try_from(place) else {
            return false;
        };
        let behind = records.partition_point(|record| record.begin < place);
        behind.checked_sub(1).is_some_and(|last| {
            let record = &records[last];
            record.kind == APPLICATION_DATA && place < record.begin + record.bytes
        })
    }

    fn observe_client(&mut self, segment: &Segment) {
        let room_before = self.room;
        if let (Some(acknowledged), Some(window)) = (segment.acknowledged, segment.window) {
            self.room = Some(acknowledged + i64::from(window));
        }
        if !segment.is_bare_ack() {
            // A request or a FIN of the client: the server's next data may be the answer to it.
            (self.outstanding, self.late) = (None, None);
            self.acknowledged = self
                .acknowledged
                .max(segment.acknowledged.unwrap_or(i64::MIN));
            return;
        }
        let acknowledged = segment.acknowledged.unwrap_or(i64::MIN);
        let before = self.acknowledged;
        let is_news = acknowledged > before;
        self.acknowledged = self.acknowledged.max(acknowledged);
        let Some(outstanding) = &self.outstanding else {
            return;
        };
        let covers = acknowledged == outstanding.end() && is_news;
        if !covers || self.late.is_some() {
            return;
        }
        // Segments may have been joined by a device: the last of them is the rest. A short one before a full one is waited for, too.
        let is_short = !outstanding.bytes.is_multiple_of(self.flow.segment_bytes)
            || (self.short_end > before && self.is_little(outstanding.end(), before));
        let took = segment.at_ns.saturating_sub(outstanding.at_ns);
        let held_ns = took.saturating_sub(self.client_ns);
        if is_short && held_ns >= HELD_NS_MIN {
            self.late = Some(Late {
                at_ns: segment.at_ns,
                packet: segment.packet,
                held_ns,
                room: room_before,
            });
        } else {
            self.outstanding = None;
        }
    }

    /// Counts the server's bytes since the client's last payload.
    fn count(&mut self, segment: &Segment) {
        match segment.from {
            Side::Client if segment.bytes > 0 => self.sent_bytes = 0,
            Side::Server if segment.is_new => {
                self.sent_bytes += u64::from(segment.bytes);
                if segment.bytes > 0 && segment.bytes + OPTIONS_BYTES_MAX < self.flow.segment_bytes
                {
                    self.short_end = segment.end();
                }
            }
            _ => {}
        }
    }

    fn stall(&self, flow: usize, held: &Held, next: &Segment, requests: &Requests) -> Stall {
        let before = &held.before;
        let told = requests.at(before.at_ns, next.begin);
        Stall {
            flow,
            segment_packet: before.packet,
            segment_bytes: before.bytes,
            ack_packet: held.ack_packet,
            held_ms: milliseconds(held.held_ns),
            next_packet: next.packet,
            withheld_bytes: next.bytes,
            lost_ms: milliseconds(next.at_ns.saturating_sub(before.at_ns)),
            span_ns: (before.at_ns, next.at_ns),
            sent_bytes: self.sent_bytes,
            request: told.request,
            counted: requests.counted,
            request_line: told.line,
            frame: told.frame,
        }
    }
}

/// An acknowledgement is late from 35 ms on: the shortest delay in use is Linux's 40 ms.
pub(super) const HELD_NS_MIN: u64 = 35_000_000;
/// Limit of time from the acknowledgement's arrival to the server's answer.
pub(super) const ANSWER_NS_MAX: u64 = 3_000_000;
/// Clocks of captures may be off by this much; nothing is caused before its cause.
const SLACK_NS: u64 = 200_000;
/// The shortest pause before a probe: on short ways it is timers that decide.
const PROBE_NS_MIN: u64 = 10_000_000;
/// The options of a segment, which the segment size of the handshake counts as payload.
const OPTIONS_BYTES_MAX: u32 = 40;
/// Limit of stalls in memory.
pub(super) const STALLS_MAX: usize = 10_000;
