//! `least_time`: the server with the shortest estimated time for its weight; equal ones take turns.
//!
//! The estimate is the average response time, in steps of [`STEP_MS`], for each attempt in progress and the new one. An
//! average above [`TIME_MAX_MS`] counts as that much. A server that was not chosen for `fail_timeout` counts as twice as
//! fast, so that slow servers are tried again. With `inflight`, attempts in progress raise an average that they exceed.
//!
//! A choice visits each peer of the list.
//!
//! Source: nginx documentation, `least_time`; nginx's behaviour.

use super::least_conn::keep_least;
use super::{Balance, Candidates, Measures, Method};
use crate::peer::Peer;

/// The measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Until the response head.
    Header,
    /// Until the end of the response.
    LastByte,
}

/// The method.
#[derive(Clone, Copy, Debug)]
pub struct LeastTime {
    /// The measured time.
    pub time: Time,
    /// `inflight`: attempts in progress count too.
    pub in_flight: bool,
}

impl Method for LeastTime {
    fn name(&self) -> &'static str {
        "least_time"
    }

    fn measures(&self) -> Measures {
        match (self.in_flight, self.time) {
            (false, _) => Measures::Finished,
            (true, Time::Header) => Measures::UntilHead,
            (true, Time::LastByte) => Measures::UntilEnd,
        }
    }

    fn make(&self) -> Box<dyn Balance> {
        Box::new(State {
            time: self.time,
            numbers: Vec::new(),
        })
    }
}

#[derive(Debug)]
struct State {
    time: Time,
    /// Memory of a choice.
    numbers: Vec<u32>,
}

impl Balance for State {
    fn set_list(&mut self, _: &[Peer], _: &[u32]) {}

    fn pick(&mut self, candidates: &mut Candidates<'_>) -> Option<u32> {
        let now_ms = candidates.now_ms;
        candidates.free_numbers(&mut self.numbers);
        keep_least(&mut self.numbers, |n| {
            let peer = candidates.peer_mut(n);
            peer.times.average_in_flight(now_ms);
            (estimate(self.time, peer, now_ms), peer.weights.weight)
        });
        candidates.turn_of_equal(&self.numbers)
    }
}

/// Returns the estimated milliseconds until a peer has answered its attempts in progress and a new one.
pub(super) fn estimate(time: Time, peer: &Peer, now_ms: u64) -> u64 {
    let average_ms = match time {
        Time::Header => peer.times.header_ms(),
        Time::LastByte => peer.times.response_ms(),
    };
    let periods = peer.failures.periods_since_check(now_ms / 1000);
    let periods = u32::try_from(periods).unwrap_or(u32::MAX);
    let average_ms = average_ms.checked_shr(periods).unwrap_or(0);
    let average_ms = average_ms.max(peer.times.in_flight_ms());
    let stepped_ms = match average_ms > TIME_MAX_MS {
        true => TIME_MAX_MS,
        // Servers with close times take turns.
        false => average_ms + STEP_MS - average_ms % STEP_MS,
    };
    stepped_ms.saturating_mul(1 + peer.conns)
}

/// Longer averages are equal, and attempts in progress decide.
const TIME_MAX_MS: u64 = 5000;
/// Averages are rounded up to a multiple of this.
const STEP_MS: u64 = 20;

#[cfg(test)]
#[path = "least_time_tests.rs"]
mod tests;
