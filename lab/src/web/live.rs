//! Figures of this moment: open connections and rates. The process that records sets them, events show them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use store::Counts;

/// Figures of this moment. Any thread may set and read them; each call takes some microseconds.
#[derive(Debug, Default)]
pub struct Live {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Open connections by worker.
    workers: BTreeMap<u64, (Instant, Vec<(String, u64)>)>,
    closed: Sums,
    store: Option<Counts>,
}

/// Sums since the process has started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Connections that were closed and recorded.
    pub(super) connections: u64,
    /// Their requests.
    pub(super) requests: u64,
    /// Their responses by class, 2xx to 5xx.
    pub(super) statuses: [u64; 4],
}

impl Live {
    /// Sets the open connections of a worker by protocol. A worker that is silent for 5 seconds counts no more.
    pub fn set_open(&self, worker: u64, counts: impl IntoIterator<Item = (String, u64)>) {
        let counts = counts.into_iter().take(PROTOCOLS_MAX).collect();
        self.with(|inner| {
            let now = Instant::now();
            inner.workers.insert(worker, (now, counts));
            inner
                .workers
                .retain(|_, (at, _)| now.duration_since(*at) < SILENCE);
        });
    }

    /// Adds a recorded connection with its requests and its responses by class, 2xx to 5xx.
    pub fn add_closed(&self, requests: u64, statuses: [u64; 4]) {
        self.with(|inner| {
            let closed = &mut inner.closed;
            closed.connections = closed.connections.saturating_add(1);
            closed.requests = closed.requests.saturating_add(requests);
            for (own, more) in closed.statuses.iter_mut().zip(statuses) {
                *own = own.saturating_add(more);
            }
        });
    }

    /// Sets the figures of the writer.
    pub fn set_store(&self, counts: Counts) {
        self.with(|inner| inner.store = Some(counts));
    }

    /// Returns open connections of all workers by protocol.
    pub(super) fn open(&self) -> BTreeMap<String, u64> {
        self.with(|inner| {
            let mut sums = BTreeMap::new();
            let now = Instant::now();
            let heard = inner.workers.values();
            for (_, counts) in heard.filter(|(at, _)| now.duration_since(*at) < SILENCE) {
                for (protocol, count) in counts {
                    let sum = sums.entry(protocol.clone()).or_insert(0_u64);
                    *sum = sum.saturating_add(*count);
                }
            }
            sums
        })
    }

    pub(super) fn closed(&self) -> Sums {
        self.with(|inner| inner.closed)
    }

    pub(super) fn store(&self) -> Option<Counts> {
        self.with(|inner| inner.store)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        // Each change is complete at once, so a panic elsewhere leaves the figures whole.
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Rates and counts of an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Figures {
    /// Name of the format.
    pub(super) format: &'static str,
    /// Time, UTC.
    pub(super) at: String,
    /// Open connections by protocol; empty if unknown.
    pub(super) open: BTreeMap<String, u64>,
    /// Connections that were closed and recorded, per second.
    pub(super) connections_per_s: f64,
    /// Requests of these connections, per second.
    pub(super) requests_per_s: f64,
    /// Responses of these connections by class, 2xx to 5xx, per second.
    pub(super) statuses_per_s: [f64; 4],
    /// Rows that wait for the store, and rows that were dropped since the start; `null` for a reader.
    pub(super) store: Option<Rows>,
}

/// Figures of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Rows {
    pub(super) queued: u64,
    pub(super) dropped: u64,
    pub(super) failing: bool,
}

impl Figures {
    /// Returns the figures between two sums.
    pub(super) fn between(at: String, before: &Sums, now: &Sums, seconds: f64) -> Self {
        let rate = |before: u64, now: u64| {
            let per_s = now.saturating_sub(before) as f64 / seconds.max(0.001);
            (per_s * 10.0).round() / 10.0
        };
        let mut statuses_per_s = [0.0; 4];
        for (n, own) in statuses_per_s.iter_mut().enumerate() {
            *own = rate(before.statuses[n], now.statuses[n]);
        }
        Self {
            format: super::FORMAT,
            at,
            open: BTreeMap::new(),
            connections_per_s: rate(before.connections, now.connections),
            requests_per_s: rate(before.requests, now.requests),
            statuses_per_s,
            store: None,
        }
    }

    /// Returns the event of a stream.
    pub(super) fn event(&self, id: u64) -> String {
        let data = serde_json::to_string(self).expect("texts and finite numbers are JSON");
        // A line end within the data would begin another field.
        let data = crate::report::escaped_json(&data).replace('\n', "\\u000a");
        format!("event: figures\nid: {id}\ndata: {data}\n\n")
    }
}

/// Time after which the counts of a worker are old.
const SILENCE: Duration = Duration::from_secs(5);
/// Protocols of one worker.
const PROTOCOLS_MAX: usize = 16;
