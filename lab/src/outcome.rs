//! What a run has counted.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::judge::Sample;

/// What a time is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// See [`Outcome::response`].
    Response,
    /// See [`Outcome::service`].
    Service,
    /// See [`Outcome::first_byte`].
    FirstByte,
    /// See [`Outcome::connect`].
    Connect,
    /// See [`Outcome::handshake`].
    Handshake,
}

impl Kind {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 5] = [
        Self::Response,
        Self::Service,
        Self::FirstByte,
        Self::Connect,
        Self::Handshake,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Service => "service",
            Self::FirstByte => "first_byte",
            Self::Connect => "connect",
            Self::Handshake => "handshake",
        }
    }
}

/// Times of one kind, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Times {
    /// Those that count.
    pub valid: Histogram<u64>,
    /// How many more there were, which say nothing of the server.
    pub void: u64,
}

impl Default for Times {
    fn default() -> Self {
        // Three digits of any value between 1 ns and the longest.
        let valid = Histogram::new_with_bounds(1, LONGEST_NS, 3);
        Self {
            valid: valid.expect("the bounds are in order"),
            void: 0,
        }
    }
}

impl Times {
    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        self.valid.saturating_record(ns.max(1));
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Self) {
        let added = self.valid.add(&other.valid);
        added.expect("all have the same bounds");
        self.void += other.void;
    }

    /// How many were taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.valid.len() + self.void
    }
}

/// What a run has counted, or a thread of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How long requests were under way, nanoseconds, from the first to the last.
    pub elapsed_ns: u64,
    /// Responses that came whole.
    pub done: u64,
    /// By the first digit of their status.
    pub statuses: [u64; 10],
    /// Requests and connections that failed, by what went wrong.
    pub errors: BTreeMap<String, u64>,
    /// From sending to the end of the response.
    pub service: Times,
    /// From the time at which a request should have been sent to the end of its response; at a constant rate alone.
    pub response: Times,
    /// From sending to the head of the response.
    pub first_byte: Times,
    /// From the first packet to an open connection.
    pub connect: Times,
    /// From there to the end of the handshake.
    pub handshake: Times,
    /// Samples that wait to be judged; nothing where nobody judges them.
    pub(crate) unjudged: Option<Vec<Sample>>,
    /// Handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Bytes that were received and sent, those of TLS included.
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
    /// CPU time that this program used, nanoseconds.
    pub own_cpu_ns: u64,
    /// CPU time that the server used, nanoseconds, where it was looked at.
    pub server_cpu_ns: Option<u64>,
    /// Its memory at the end, bytes.
    pub server_memory_bytes: Option<u64>,
    /// Least round-trip time that the kernel has seen, microseconds.
    pub min_rtt_us: Option<u32>,
    /// The protocols of the connections.
    pub protocols: BTreeMap<&'static str, u64>,
    /// It was ended before its end.
    pub interrupted: bool,
}

impl Outcome {
    /// The times of a kind.
    #[must_use]
    pub fn times(&self, kind: Kind) -> &Times {
        match kind {
            Kind::Response => &self.response,
            Kind::Service => &self.service,
            Kind::FirstByte => &self.first_byte,
            Kind::Connect => &self.connect,
            Kind::Handshake => &self.handshake,
        }
    }

    pub(crate) fn times_mut(&mut self, kind: Kind) -> &mut Times {
        match kind {
            Kind::Response => &mut self.response,
            Kind::Service => &mut self.service,
            Kind::FirstByte => &mut self.first_byte,
            Kind::Connect => &mut self.connect,
            Kind::Handshake => &mut self.handshake,
        }
    }

    /// Whether somebody judges its samples.
    pub(crate) fn is_judged(&self) -> bool {
        self.unjudged.is_some()
    }

    /// Counts an error.
    pub(crate) fn error(&mut self, why: &str, times: u64) {
        if times == 0 {
            return;
        }
        match self.errors.get_mut(why) {
            Some(count) => *count += times,
            None => _ = self.errors.insert(why.to_owned(), times),
        }
    }

    /// Adds what another thread, or run, has counted; the longer time counts.
    pub fn add(&mut self, other: &Self) {
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
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
        self.add_counts(other);
        self.own_cpu_ns += other.own_cpu_ns;
        self.server_cpu_ns = match (self.server_cpu_ns, other.server_cpu_ns) {
            (Some(own), Some(more)) => Some(own + more),
            (own, more) => own.or(more),
        };
        self.server_memory_bytes = self.server_memory_bytes.max(other.server_memory_bytes);
        self.interrupted |= other.interrupted;
        self.bins.extend_from_slice(&other.bins);
    }

    fn add_counts(&mut self, other: &Self) {
        if other.is_judged() && !self.is_judged() {
            self.unjudged = Some(Vec::new());
        }
        self.done += other.done;
        for (own, more) in self.statuses.iter_mut().zip(other.statuses) {
            *own += more;
        }
        for (why, times) in &other.errors {
            self.error(why, *times);
        }
        for kind in Kind::ALL {
            self.times_mut(kind).add(other.times(kind));
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

    /// Responses a second; 0 where nothing came.
    #[must_use]
    pub fn rate(&self) -> f64 {
        match self.elapsed_ns {
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

    /// Rates of about `count` pieces of the run, without the begun one at its end.
    #[must_use]
    pub fn rates(&self, count: usize) -> Vec<f64> {
        let bins = (self.elapsed_ns / BIN_NS) as usize;
        let bins = &self.bins[..self.bins.len().min(bins)];
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
/// The longest time that is told exactly: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
