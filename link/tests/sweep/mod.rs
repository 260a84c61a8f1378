//! Times to first and last byte over body sizes and requests of a connection, with their criteria.
//!
//! Waits depend on sizes and on the place of a request in its connection. A last piece that the sender keeps until an
//! acknowledgement comes is visible only if that piece is small and the acknowledgement late. So a sweep requests
//! bodies around the sizes of segments, windows and buffers, several times on each connection, over a link that holds
//! acknowledgements ([`Options::client_ack_hold`](link::Options)). A [`Peer`] is the client of one protocol; a sweep
//! depends on none.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io;
use std::time::{Duration, Instant};

use link::{Direction, Link, TraceEntry, is_conclusive};

/// A client of some protocol, on one connection at a time. It runs in the client's namespace.
pub(crate) trait Peer {
    /// Replaces the connection by a new one that is ready for a request.
    ///
    /// # Errors
    /// The connection fails.
    fn connect(&mut self) -> io::Result<()>;

    /// Asks for a body of this size on the connection, and reads it to its end.
    ///
    /// # Errors
    /// The response is not that, or the connection ended.
    fn request(&mut self, body_bytes: usize) -> io::Result<Timing>;
}

/// The moments of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// Just before its bytes were written.
    pub(crate) sent: Instant,
    /// When the first bytes of the response were read.
    pub(crate) first: Instant,
    /// When its last byte was read.
    pub(crate) last: Instant,
}

/// Target and size of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sweep {
    /// Bodies, bytes; each has a connection of its own in each round.
    pub(crate) sizes: Vec<usize>,
    /// Requests on each connection.
    pub(crate) requests: usize,
    /// Number of rounds.
    pub(crate) rounds: usize,
}

/// One request's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// The requested body, bytes.
    pub(crate) body_bytes: usize,
    /// Which request of its connection, from 1.
    pub(crate) request: usize,
    /// From its sending to the first byte.
    pub(crate) first: Duration,
    /// From its sending to the last byte.
    pub(crate) last: Duration,
    /// From when the server's end had its first packet to when it sent its first one, if the link has a
    /// [trace](link::Options::trace): the server's own part of `first`.
    pub(crate) served: Option<Duration>,
    /// The greatest lateness of the link meanwhile.
    pub(crate) link_late: Duration,
}

/// Result of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The link's.
    pub(crate) round_trip: Duration,
    /// Samples in the order of measurement.
    pub(crate) samples: Vec<Sample>,
}

impl Default for Sweep {
    fn default() -> Self {
        Self {
            sizes: SIZES.to_vec(),
            requests: REQUESTS,
            rounds: 1,
        }
    }
}

impl Sweep {
    /// Runs the sweep over an otherwise idle link, and takes its trace.
    ///
    /// # Errors
    /// The peer's first error, with its request.
    pub(crate) fn run(&self, link: &Link, peer: &mut (dyn Peer + Send)) -> io::Result<Outcome> {
        let timings = link.in_client(|| self.take(peer))?;
        let trace = link.take_trace();
        let sample = |(body_bytes, request, timing): (usize, usize, Timing)| Sample {
            body_bytes,
            request,
            first: timing.first - timing.sent,
            last: timing.last - timing.sent,
            served: part_of_server(&trace.entries, timing),
            link_late: link.worst_between(timing.sent, timing.last),
        };
        Ok(Outcome {
            round_trip: link.round_trip(),
            samples: timings.into_iter().map(sample).collect(),
        })
    }

    fn take(&self, peer: &mut dyn Peer) -> io::Result<Vec<(usize, usize, Timing)>> {
        let mut timings = Vec::new();
        for _ in 0..self.rounds {
            for &size in &self.sizes {
                let told = |error: io::Error| {
                    io::Error::new(error.kind(), format!("a body of {size} bytes: {error}"))
                };
                peer.connect().map_err(told)?;
                for request in 1..=self.requests {
                    timings.push((size, request, peer.request(size).map_err(told)?));
                }
            }
        }
        Ok(timings)
    }
}

impl Sample {
    /// Whether the link was on time for it.
    #[must_use]
    pub(crate) fn is_valid(&self) -> bool {
        self.link_late <= LATE_THRESHOLD
    }
}

impl Outcome {
    /// The samples for which the link was on time.
    pub(crate) fn valid(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(|sample| sample.is_valid())
    }

    /// Whether the link was on time for enough samples; otherwise the machine was busy, and the sweep must be repeated.
    #[must_use]
    pub(crate) fn is_conclusive(&self) -> bool {
        let void = self.samples.len() - self.valid().count();
        is_conclusive(self.samples.len() as u64, void as u64)
    }

    /// Errors of the valid samples, a line each; empty if the server never waited.
    ///
    /// Medians are taken over the requests of each size, over the sizes at each place in a connection, and for each
    /// size at each place if there are enough rounds. Each sample is also checked by itself. A body larger than the
    /// first flight may take the round trips of slow start, but none of it may wait for a held acknowledgement.
    #[must_use]
    pub(crate) fn findings(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.judge_medians(&mut found);
        for sample in self.valid() {
            self.judge(sample, &mut found);
        }
        found
    }

    fn judge_medians(&self, found: &mut Vec<String>) {
        let mut groups: BTreeMap<(Option<usize>, Option<usize>), Vec<Duration>> = BTreeMap::new();
        for sample in self.valid() {
            let (size, request) = (Some(sample.body_bytes), Some(sample.request));
            for group in [(size, None), (None, request), (size, request)] {
                groups.entry(group).or_default().push(sample.first);
            }
        }
        for ((size, request), times) in groups {
            let median = median(&times);
            if times.len() >= GROUP_MIN && median > self.round_trip + MEDIAN_OVER {
                let size = size.map_or("any size".to_owned(), |size| format!("{size} bytes"));
                let request = request.map_or("any request".to_owned(), |n| format!("request {n}"));
                found.push(format!(
                    "{size}, {request}: the median first byte came after {median:.1?}"
                ));
            }
        }
    }

    fn judge(&self, sample: &Sample, found: &mut Vec<String>) {
        let Sample {
            body_bytes,
            request,
            first,
            last,
            ..
        } = sample;
        let mut say =
            |what: String| found.push(format!("{body_bytes} bytes, request {request}: {what}"));
        if *first < self.round_trip {
            say(format!(
                "the first byte came after {first:.1?}, sooner than the link lets it"
            ));
        }
        if *first > self.round_trip + SAMPLE_OVER {
            let served = sample
                .served
                .map(|time| format!(", {time:.1?} of it at the server"));
            say(format!(
                "the first byte came after {first:.1?}{}",
                served.unwrap_or_default()
            ));
        }
        let flights = flights(*body_bytes);
        if *last > self.round_trip * flights + SAMPLE_OVER {
            say(format!(
                "the last byte came after {last:.1?}, {flights} round trips are enough"
            ));
        }
    }

    /// A table: for each size the median and the worst of its valid samples, milliseconds.
    #[must_use]
    pub(crate) fn table(&self) -> String {
        let mut text = String::from(
            "    body  valid  void  first: median  worst  last: median  worst  served: median  worst\n",
        );
        let sizes: BTreeSet<usize> = self.samples.iter().map(|s| s.body_bytes).collect();
        for size in sizes {
            let of_size = self.samples.iter().filter(|s| s.body_bytes == size);
            let (valid, void): (Vec<&Sample>, Vec<&Sample>) = of_size.partition(|s| s.is_valid());
            let (first, first_worst) = summary(valid.iter().map(|s| s.first));
            let (last, last_worst) = summary(valid.iter().map(|s| s.last));
            let (served, served_worst) = summary(valid.iter().filter_map(|s| s.served));
            let (valid, void) = (valid.len(), void.len());
            // Writing into a String does not fail.
            let _ = writeln!(
                text,
                "{size:8}  {valid:5}  {void:4}  {first:13.2}  {first_worst:5.1}  {last:12.2}  {last_worst:5.1}  \
                 {served:14.2}  {served_worst:5.1}"
            );
        }
        text
    }
}

/// The median and the worst, milliseconds.
fn summary(times: impl Iterator<Item = Duration>) -> (f64, f64) {
    let times: Vec<Duration> = times.collect();
    let worst = times.iter().max().copied().unwrap_or_default();
    (
        median(&times).as_secs_f64() * 1000.0,
        worst.as_secs_f64() * 1000.0,
    )
}

/// The time between the first data to reach the server and the first that it sends, within a request.
fn part_of_server(entries: &[TraceEntry], timing: Timing) -> Option<Duration> {
    let mut of_then = entries
        .iter()
        .skip_while(|entry| entry.left < timing.sent)
        // A packet that is no TCP segment may be data of QUIC.
        .filter(|entry| {
            entry
                .segment
                .is_none_or(|segment| segment.payload_bytes > 0)
        });
    let asked = of_then.find(|entry| entry.direction == Direction::ToServer)?;
    let answered = of_then.find(|entry| entry.direction == Direction::ToClient)?;
    let within = answered.came <= timing.first;
    within.then(|| answered.came.saturating_duration_since(asked.left))
}

/// The median of some times; `None` without times.
#[must_use]
pub(crate) fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// How many round trips a body takes on a new connection: flights of ten segments, twenty, forty (RFC 5681 section
/// 3.1). On a connection that has sent much it takes fewer.
fn flights(body_bytes: usize) -> u32 {
    let mut left = (body_bytes + HEAD_BYTES).div_ceil(SEGMENT_BYTES);
    let mut window = INITIAL_WINDOW_SEGMENTS;
    let mut flights = 1;
    while left > window {
        left -= window;
        window *= 2;
        flights += 1;
    }
    flights
}

/// Bodies, bytes: the least; small; about a segment; one byte past an Ethernet segment; some segments; the most that
/// fits the initial window of ten segments beside one of tickets; past that; several windows.
pub(crate) const SIZES: [usize; 9] = [1, 100, 1024, 1461, 4096, 12_288, 14_336, 16_384, 65_536];
/// Requests of a connection, as many as take a Linux receiver out of its first mode of acknowledging.
pub(crate) const REQUESTS: usize = 12;
/// How much the median of times to first byte may be above a round trip.
pub(crate) const MEDIAN_OVER: Duration = Duration::from_millis(2);
/// How much any sample may be above its round trips; below the shortest time that systems delay acknowledgements,
/// 40 ms.
pub(crate) const SAMPLE_OVER: Duration = Duration::from_millis(30);
/// A sample is void when the link delivered a packet later than this meanwhile.
pub(crate) const LATE_THRESHOLD: Duration = MEDIAN_OVER;

/// Groups of fewer samples have no median worth judging.
const GROUP_MIN: usize = 5;
/// The first flight of a response (RFC 6928): ten segments, their payload next to TCP timestamps.
const INITIAL_WINDOW_SEGMENTS: usize = 10;
const SEGMENT_BYTES: usize = 1448;
/// Overhead of a body: its head, and the records or frames around it.
const HEAD_BYTES: usize = 512;

mod tests;
