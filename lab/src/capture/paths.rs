//! Times from the point of capture to both ends of each flow.
//!
//! The answer to a captured packet takes at least the time to its receiver and back. So the shortest time from data to its
//! acknowledgement is measured for each direction, handshakes included. Delayed acknowledgements make single samples too long,
//! so flows between the same hosts share the minimum.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::net::IpAddr;

use super::flow::{Flow, Side};

/// Times from the point of capture to the ends of a flow and back, nanoseconds; `None` without an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Path {
    /// To the client; about zero if the capture was made there.
    pub(super) client_ns: Option<u64>,
    /// To the server.
    pub(super) server_ns: Option<u64>,
}

impl Path {
    /// The round trip between client and server.
    pub(super) fn round_trip_ns(&self) -> Option<u64> {
        Some(self.client_ns?.saturating_add(self.server_ns?))
    }

    fn least(self, other: Self) -> Self {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        Self {
            client_ns: least(self.client_ns, other.client_ns),
            server_ns: least(self.server_ns, other.server_ns),
        }
    }
}

/// The path of each flow.
pub(super) fn of(flows: &[Flow]) -> Vec<Path> {
    let ends = |flow: &Flow| -> (IpAddr, IpAddr) { (flow.client.ip(), flow.server.ip()) };
    let mut least: HashMap<(IpAddr, IpAddr), Path> = HashMap::new();
    for flow in flows {
        let path = Path {
            client_ns: answer_ns(flow, Side::Server),
            server_ns: answer_ns(flow, Side::Client),
        };
        let known = least.entry(ends(flow)).or_default();
        *known = known.least(path);
    }
    let path = |flow: &Flow| least.get(&ends(flow)).copied().unwrap_or_default();
    flows.iter().map(path).collect()
}

/// The least time from something that `sender` sends to its acknowledgement.
fn answer_ns(flow: &Flow, sender: Side) -> Option<u64> {
    let mut unanswered: VecDeque<(i64, u64)> = VecDeque::new();
    let mut least: Option<u64> = None;
    for segment in &flow.segments {
        if segment.from == sender {
            if segment.is_new {
                unanswered.push_back((segment.end(), segment.at_ns));
            }
            continue;
        }
        let Some(acknowledged) = segment.acknowledged else {
            continue;
        };
        // The last covered segment has the shortest time.
        let mut last = None;
        while let Some((end, at_ns)) = unanswered.front().copied()
            && end <= acknowledged
        {
            unanswered.pop_front();
            last = Some(at_ns);
        }
        if let Some(at_ns) = last
            && let Some(took) = segment.at_ns.checked_sub(at_ns)
        {
            least = Some(least.map_or(took, |before| before.min(took)));
        }
    }
    least
}
