//! Counts and times of a run.

use std::collections::BTreeMap;

use super::statuses::Statuses;
use crate::client::Protocol;
use crate::stats::{Metric, Times};

/// A sample; times are nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) metric: Metric,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

/// Counts and times of a run, or of a thread of it.
#[derive(Clone, Debug, Default)]
pub struct LoadResult {
    /// Time with requests in progress, nanoseconds, from the first to the last.
    pub elapsed_ns: u64,
    /// The time that the rate counts, nanoseconds: until the last request began, and the average wait from then on.
    pub steady_ns: u64,
    /// The time until the last request began, nanoseconds.
    pub window_ns: u64,
    /// Connections at a time; threads are weighed by them.
    pub(super) connections: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Responses that came whole.
    pub done: u64,
    /// By status.
    pub statuses: Statuses,
    /// Failed requests and connections, by error.
    pub errors: BTreeMap<String, u64>,
    /// Times by metric.
    pub(super) times: [Times; Metric::ALL.len()],
    /// Samples that wait to be filtered; nothing without a filter.
    pub(super) unfiltered: Option<Vec<Sample>>,
    /// Handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Received and sent bytes, including TLS.
    pub received_bytes: u64,
    /// See above.
    pub sent_bytes: u64,
    /// Bytes of response heads on the wire, and as text.
    pub head_wire_bytes: u64,
    /// See above.
    pub head_text_bytes: u64,
    /// Bytes of bodies.
    pub body_bytes: u64,
    /// Responses by when they came, a number for each [`BIN_NS`].
    pub bins: Vec<u32>,
    /// The share of its time that the busiest thread of this program used a CPU, 0 to 1.
    pub busiest_thread: f64,
    /// CPU time that this program used, nanoseconds.
    pub own_cpu_ns: u64,
    /// CPU time of the server, nanoseconds, if measured.
    pub server_cpu_ns: Option<u64>,
    /// Its memory at the end, bytes.
    pub server_memory_bytes: Option<u64>,
    /// The kernel's least round-trip time, microseconds.
    pub min_rtt_us: Option<u32>,
    /// The protocols of the connections.
    pub protocols: BTreeMap<&'static str, u64>,
    /// It was ended before its end.
    pub interrupted: bool,
}

impl LoadResult {
    /// The times of a metric.
    #[must_use]
    pub fn times(&self, metric: Metric) -> &Times {
        &self.times[metric as usize]
    }

    pub(super) fn times_mut(&mut self, metric: Metric) -> &mut Times {
        &mut self.times[metric as usize]
    }

    /// Whether its samples are filtered.
    pub(crate) fn is_filtered(&self) -> bool {
        self.unfiltered.is_some()
    }

    /// Counts a connection as HTTP/1.0. It was opened as HTTP/1.1, because the first response has the version.
    pub(super) fn rename_http10(&mut self) {
        let opened = self.protocols.entry(Protocol::H1.name()).or_default();
        *opened = opened.saturating_sub(1);
        *self.protocols.entry("HTTP/1.0").or_default() += 1;
    }

    /// Counts an error.
    pub(super) fn error(&mut self, why: &str, times: u64) {
        if times == 0 {
            return;
        }
        match self.errors.get_mut(why) {
            Some(count) => *count += times,
            None => _ = self.errors.insert(why.to_owned(), times),
        }
    }

    /// Adds the counts of another thread of the run.
    pub fn add(&mut self, other: &Self) {
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        let (own, more) = (u128::from(self.connections), u128::from(other.connections));
        let sum = u128::from(self.steady_ns) * own + u128::from(other.steady_ns) * more;
        self.steady_ns = u64::try_from(sum / (own + more).max(1)).unwrap_or(u64::MAX);
        self.connections += other.connections;
        self.window_ns = match self.window_ns {
            0 => other.window_ns,
            own => own.min(other.window_ns),
        };
        self.add_counts(other);
        if self.bins.len() < other.bins.len() {
            self.bins.resize(other.bins.len(), 0);
        }
        for (own, more) in self.bins.iter_mut().zip(&other.bins) {
            *own += more;
        }
    }

    /// Adds a run that came after this one: times add up.
    pub fn append(&mut self, other: &Self) {
        self.elapsed_ns += other.elapsed_ns;
        self.steady_ns += other.steady_ns;
        self.window_ns += other.window_ns;
        self.add_counts(other);
        self.own_cpu_ns += other.own_cpu_ns;
        self.server_cpu_ns = match (self.server_cpu_ns, other.server_cpu_ns) {
            (Some(own), Some(more)) => Some(own + more),
            (own, more) => own.or(more),
        };
        self.server_memory_bytes = self.server_memory_bytes.max(other.server_memory_bytes);
        self.interrupted |= other.interrupted;
        self.bins.extend_from_slice(other.whole_bins());
    }

    fn add_counts(&mut self, other: &Self) {
        if other.is_filtered() && !self.is_filtered() {
            self.unfiltered = Some(Vec::new());
        }
        self.busiest_thread = self.busiest_thread.max(other.busiest_thread);
        self.sent += other.sent;
        self.done += other.done;
        self.statuses.add(&other.statuses);
        for (why, times) in &other.errors {
            self.error(why, *times);
        }
        for metric in Metric::ALL {
            self.times_mut(metric).add(other.times(metric));
        }
        self.resumed += other.resumed;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.head_wire_bytes += other.head_wire_bytes;
        self.head_text_bytes += other.head_text_bytes;
        self.body_bytes += other.body_bytes;
        self.min_rtt_us = match (self.min_rtt_us, other.min_rtt_us) {
            (Some(own), Some(more)) => Some(own.min(more)),
            (own, more) => own.or(more),
        };
        for (name, times) in &other.protocols {
            *self.protocols.entry(name).or_default() += times;
        }
    }

    /// Responses per second; 0 without responses.
    #[must_use]
    pub fn rate(&self) -> f64 {
        match self.steady_ns {
            0 => 0.0,
            ns => self.done as f64 * 1e9 / ns as f64,
        }
    }

    /// Failed requests and connections.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The share of bytes of response heads that compression saves; 0 for HTTP/1.
    #[must_use]
    pub fn head_saved(&self) -> f64 {
        match self.head_text_bytes {
            0 => 0.0,
            text => 1.0 - self.head_wire_bytes as f64 / text as f64,
        }
    }

    /// CPU time of the server for a response, microseconds.
    #[must_use]
    pub fn server_cpu_us(&self) -> Option<f64> {
        let ns = self.server_cpu_ns?;
        (self.done > 0).then(|| ns as f64 / 1e3 / self.done as f64)
    }

    /// CPU time of this program for a response, microseconds.
    #[must_use]
    pub fn own_cpu_us(&self) -> Option<f64> {
        (self.done > 0).then(|| self.own_cpu_ns as f64 / 1e3 / self.done as f64)
    }

    /// Bins of the time in which requests began, without the incomplete one at its end.
    fn whole_bins(&self) -> &[u32] {
        let whole = (self.window_ns / BIN_NS) as usize;
        &self.bins[..self.bins.len().min(whole)]
    }

    /// Rates of about `count` equal pieces of the run.
    #[must_use]
    pub fn rates(&self, count: usize) -> Vec<f64> {
        let bins = self.whole_bins();
        let each = bins.len() / count.max(1);
        if each == 0 {
            return Vec::new();
        }
        let seconds = each as f64 * BIN_NS as f64 / 1e9;
        bins.chunks_exact(each)
            .map(|piece| piece.iter().map(|n| f64::from(*n)).sum::<f64>() / seconds)
            .collect()
    }
}

/// The time for which responses are counted together.
pub const BIN_NS: u64 = 10_000_000;
