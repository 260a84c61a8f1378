//! Delays acknowledgements like a receiver that waits for data to send with them.
//!
//! The ends acknowledge every segment at once (`quickack` in the routes, see `setup`). This module holds a pure
//! acknowledgement until its time is over. A later segment of its flow that leaves before supersedes it, since it
//! acknowledges as much or more. Like a receiver, it does not slow down a correct sender. It does not hold an
//! acknowledgement if
//! - it acknowledges at least two full segments since the last one that left (RFC 1122 section 4.2.3.2),
//! - it acknowledges nothing new: a repeated one, or a window update (RFC 5681 section 4.2),
//! - it is the first of its flow: it ends the handshake.
//!
//! Time is an argument. Deliberately absent: SACK blocks of a superseded acknowledgement, since this link loses nothing
//! that they would report.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::segment::{Flags, Flow, Segment};

/// A packet that leaves the policy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Released {
    /// The packet.
    pub(crate) packet: Vec<u8>,
    /// When it left: its delay begins then.
    pub(crate) at: Instant,
    /// When it was received.
    pub(crate) came: Instant,
    /// False for a superseded acknowledgement, which is dropped.
    pub(crate) is_forwarded: bool,
}

/// Delay of acknowledgements in one direction.
#[derive(Debug)]
pub(crate) struct AckDelay {
    time: Duration,
    flows: HashMap<Flow, FlowState>,
    /// When flows may have something to release, in order. The entry of a superseded acknowledgement stays until its
    /// time.
    timers: VecDeque<(Instant, Flow)>,
}

#[derive(Debug, Default)]
struct FlowState {
    /// The acknowledgement that last left.
    acknowledged: Option<u32>,
    /// The largest payload of the opposite direction.
    full_bytes: u32,
    held: Option<DelayedAck>,
}

#[derive(Debug)]
struct DelayedAck {
    packet: Vec<u8>,
    ack: u32,
    came: Instant,
    until: Instant,
}

/// Decision about a pure acknowledgement.
enum Judgement {
    /// It leaves, and supersedes the held one.
    Leaves,
    /// It acknowledges nothing new: it leaves, and the held one acknowledges more.
    Repeats,
    /// It is held.
    Waits,
}

impl AckDelay {
    pub(crate) fn new(time: Duration) -> Self {
        Self {
            time,
            flows: HashMap::new(),
            timers: VecDeque::new(),
        }
    }

    /// Sees a segment of the other direction: data that this one acknowledges.
    pub(crate) fn observe(&mut self, segment: &Segment) {
        if segment.payload_bytes > 0
            && let Some(state) = self.state(segment.flow.reversed())
        {
            state.full_bytes = state.full_bytes.max(segment.payload_bytes);
        }
    }

    /// Takes a segment of this direction; appends segments that leave now to `out`, in order.
    pub(crate) fn offer(
        &mut self,
        segment: &Segment,
        packet: Vec<u8>,
        now: Instant,
        out: &mut Vec<Released>,
    ) {
        let passes = Released {
            packet,
            at: now,
            came: now,
            is_forwarded: true,
        };
        let hold = self.time;
        let Some(state) = self.state(segment.flow) else {
            out.push(passes);
            return;
        };
        if segment.flags.any(Flags::SYN) {
            *state = FlowState::default();
        }
        if segment.is_pure_ack() {
            match state.judge(segment.ack) {
                Judgement::Leaves => {}
                Judgement::Repeats => {
                    out.push(passes);
                    return;
                }
                Judgement::Waits => {
                    if let Some(until) = state.hold(segment.ack, passes, now + hold, out) {
                        self.timers.push_back((until, segment.flow));
                    }
                    return;
                }
            }
        }
        // A reset may have no acknowledgement number, but supersedes the held acknowledgement as well.
        state.supersede(now, out);
        if segment.flags.any(Flags::ACK) {
            state.acknowledged = Some(segment.ack);
        }
        if segment.flags.any(Flags::RST) {
            self.flows.remove(&segment.flow);
        }
        out.push(passes);
    }

    /// Releases acknowledgements that were held for their time.
    pub(crate) fn expire(&mut self, now: Instant, out: &mut Vec<Released>) {
        while let Some((due, flow)) = self.timers.front().copied()
            && due <= now
        {
            self.timers.pop_front();
            let Some(state) = self.flows.get_mut(&flow) else {
                continue;
            };
            if let Some(held) = state.held.take_if(|held| held.until <= due) {
                state.acknowledged = Some(held.ack);
                out.push(Released {
                    packet: held.packet,
                    at: held.until,
                    came: held.came,
                    is_forwarded: true,
                });
            }
        }
    }

    /// When [`AckDelay::expire`] has something to do at the earliest.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.timers.front().map(|(due, _)| *due)
    }

    fn state(&mut self, flow: Flow) -> Option<&mut FlowState> {
        if self.flows.len() >= FLOWS_MAX && !self.flows.contains_key(&flow) {
            self.flows.retain(|_, state| state.held.is_some());
            if self.flows.len() >= FLOWS_MAX {
                return None;
            }
        }
        Some(self.flows.entry(flow).or_default())
    }
}

impl FlowState {
    fn judge(&self, ack: u32) -> Judgement {
        let Some(before) = self.acknowledged else {
            return Judgement::Leaves;
        };
        let news = ack.wrapping_sub(before);
        // In the arithmetic of sequence numbers, the upper half is older.
        let is_new = news != 0 && news < 1 << 31;
        let full = self.full_bytes.max(FULL_SEGMENT_MIN_BYTES);
        if !is_new {
            Judgement::Repeats
        } else if news >= full.saturating_mul(2) {
            Judgement::Leaves
        } else {
            Judgement::Waits
        }
    }

    /// Replaces a held acknowledgement, and keeps its release time. Returns the release time if none was held.
    fn hold(
        &mut self,
        ack: u32,
        packet: Released,
        until: Instant,
        out: &mut Vec<Released>,
    ) -> Option<Instant> {
        let before = self.held.as_ref().map(|held| held.until);
        self.supersede(packet.at, out);
        self.held = Some(DelayedAck {
            packet: packet.packet,
            ack,
            came: packet.came,
            until: before.unwrap_or(until),
        });
        before.is_none().then_some(until)
    }

    fn supersede(&mut self, now: Instant, out: &mut Vec<Released>) {
        if let Some(held) = self.held.take() {
            out.push(Released {
                packet: held.packet,
                at: now,
                came: held.came,
                is_forwarded: false,
            });
        }
    }
}

/// Limit of remembered connections. Beyond it, those without a held acknowledgement are forgotten, and treated as new
/// later. If all hold one, acknowledgements of new connections are not held.
const FLOWS_MAX: usize = 4096;
/// Size of a full segment while no larger one was seen, in bytes: the least that a sender assumes (RFC 9293
/// section 3.7.1).
const FULL_SEGMENT_MIN_BYTES: u32 = 536;

#[cfg(test)]
#[path = "ack_delay_tests.rs"]
mod tests;
