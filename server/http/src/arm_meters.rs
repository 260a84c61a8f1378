//! Figures of the server by arm: connections, requests, truncated and aborted responses, memory.
//!
//! Every arm of the process has one [`ArmMeter`], found by the names of experiment and arm, so that figures outlive reloads. The
//! driver adds to it at the begin and the end of a connection and once a second between, never for each request. Metrics and the
//! thread that sends records read it. A meter ends with the last configuration and the last connection that refer to it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use server_base::experiment::{ArmOpen, Name};

/// Figures of one arm.
#[derive(Debug)]
pub struct ArmMeter {
    /// Name of the experiment.
    pub experiment: Name,
    /// Name of the arm.
    pub arm: Name,
    open: AtomicU64,
    connections: AtomicU64,
    counts: [AtomicU64; COUNTS],
    memory_bytes: AtomicU64,
}

/// Counts of a connection or of an arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArmCounts {
    /// Requests that ended.
    pub requests: u64,
    /// Content-Length of bodies that were to be sent.
    pub promised_bytes: u64,
    /// Bytes of these bodies that were sent.
    pub sent_bytes: u64,
    /// Responses that ended before their length, or before their last chunk.
    pub truncated: u64,
    /// Requests that the client left, or reset, before their response was complete.
    pub aborted: u64,
    /// Processor time, nanoseconds.
    pub cpu_ns: u64,
}

/// Number of [`ArmCounts`].
const COUNTS: usize = 6;

impl ArmCounts {
    /// Returns the growth since an earlier time.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let (now, before) = (self.all(), before.all());
        Self::of(std::array::from_fn(|at| now[at] - before[at]))
    }

    fn all(&self) -> [u64; COUNTS] {
        [
            self.requests,
            self.promised_bytes,
            self.sent_bytes,
            self.truncated,
            self.aborted,
            self.cpu_ns,
        ]
    }

    fn of(all: [u64; COUNTS]) -> Self {
        let [
            requests,
            promised_bytes,
            sent_bytes,
            truncated,
            aborted,
            cpu_ns,
        ] = all;
        Self {
            requests,
            promised_bytes,
            sent_bytes,
            truncated,
            aborted,
            cpu_ns,
        }
    }
}

/// Figures of an arm at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmFigures {
    /// Name of the experiment.
    pub experiment: Name,
    /// Name of the arm.
    pub arm: Name,
    /// Open connections.
    pub open: u64,
    /// Connections so far.
    pub connections: u64,
    /// Counts so far.
    pub counts: ArmCounts,
    /// Memory of open connections, bytes.
    pub memory_bytes: u64,
}

/// Meters by the names of experiment and arm.
type ByName = BTreeMap<(Name, Name), Weak<ArmMeter>>;

/// The meters of all arms. Those without a reference go with the next configuration.
static METERS: Mutex<ByName> = Mutex::new(BTreeMap::new());

fn meters() -> MutexGuard<'static, ByName> {
    METERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The arms of a configuration.
#[derive(Debug, Default)]
pub struct Arms {
    /// Their meters, by the indices of experiment and arm.
    pub meters: Vec<Vec<Arc<ArmMeter>>>,
    /// Some arm has a host.
    pub any_host: bool,
    /// Some arm has none.
    pub any_without_host: bool,
}

/// An open connection that belongs to an arm.
#[derive(Debug)]
pub struct OpenConnection(Arc<ArmMeter>);

impl ArmMeter {
    /// Returns the meter of an arm, and makes it on first use.
    #[must_use]
    pub fn of(experiment: Name, arm: Name) -> Arc<Self> {
        let mut meters = meters();
        let known = meters.get(&(experiment, arm));
        if let Some(meter) = known.and_then(Weak::upgrade) {
            return meter;
        }
        let zero = || AtomicU64::new(0);
        let meter = Arc::new(Self {
            experiment,
            arm,
            open: zero(),
            connections: zero(),
            counts: std::array::from_fn(|_| zero()),
            memory_bytes: zero(),
        });
        meters.insert((experiment, arm), Arc::downgrade(&meter));
        meter
    }

    /// Counts a connection, which is open until the result is dropped.
    #[must_use]
    pub fn open(self: &Arc<Self>) -> OpenConnection {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.connections.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(self))
    }

    /// Adds counts of connections.
    pub fn add(&self, counts: &ArmCounts) {
        for (sum, count) in self.counts.iter().zip(counts.all()) {
            if count > 0 {
                sum.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    /// Replaces the memory that a thread has added before, `before_bytes`, by `now_bytes`.
    pub fn set_memory(&self, before_bytes: u64, now_bytes: u64) {
        // Wrapping: the sum of all threads is never below 0.
        let change = now_bytes.wrapping_sub(before_bytes);
        self.memory_bytes.fetch_add(change, Ordering::Relaxed);
    }

    fn figures(&self) -> ArmFigures {
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        ArmFigures {
            experiment: self.experiment,
            arm: self.arm,
            open: read(&self.open),
            connections: read(&self.connections),
            counts: ArmCounts::of(self.counts.each_ref().map(read)),
            memory_bytes: read(&self.memory_bytes),
        }
    }
}

impl OpenConnection {
    /// Returns the meter of the arm.
    #[must_use]
    pub fn meter(&self) -> &Arc<ArmMeter> {
        &self.0
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Forgets meters without a reference.
pub(crate) fn prune() {
    meters().retain(|_, meter| meter.strong_count() > 0);
}

/// Returns the figures of all arms, by the names of experiment and arm.
#[must_use]
pub fn figures() -> Vec<ArmFigures> {
    let known: Vec<Arc<ArmMeter>> = meters().values().filter_map(Weak::upgrade).collect();
    known.iter().map(|meter| meter.figures()).collect()
}

/// Reads the open connections of each arm that has had any, for [`server_base::experiment::set_open_arms`]. Idle arms of large
/// configurations cost no records.
pub fn each_open(at_ms: u64, each: &mut dyn FnMut(&ArmOpen)) {
    for figures in figures().iter().filter(|it| it.connections > 0) {
        each(&ArmOpen {
            at_ms,
            experiment: figures.experiment,
            arm: figures.arm,
            connections: u32::try_from(figures.open).unwrap_or(u32::MAX),
            memory_bytes: figures.memory_bytes,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text.as_bytes()).expect("a name")
    }

    fn of(experiment: &str) -> Vec<ArmFigures> {
        let all = figures().into_iter();
        all.filter(|it| it.experiment == name(experiment)).collect()
    }

    #[test]
    fn meter_outlives_configurations_while_connections_are_open() {
        let first = ArmMeter::of(name("meters"), name("b"));
        let other = ArmMeter::of(name("meters"), name("a"));
        let connection = first.open();
        drop(first);
        let again = ArmMeter::of(name("meters"), name("b"));
        assert!(Arc::ptr_eq(&again, connection.meter()));
        let counts = ArmCounts::of([1, 2, 3, 4, 5, 6]);
        again.add(&counts);
        again.add(&ArmCounts::of([2, 2, 3, 5, 5, 7]).since(&counts));
        let arms = of("meters");
        assert_eq!(
            arms.iter().map(|it| it.arm).collect::<Vec<_>>(),
            [name("a"), name("b")]
        );
        assert_eq!(
            (arms[1].open, arms[1].connections, arms[1].counts),
            (1, 1, ArmCounts::of([2, 2, 3, 5, 5, 7]))
        );
        let mut open = Vec::new();
        each_open(7, &mut |arm| {
            if arm.experiment == name("meters") {
                open.push(*arm);
            }
        });
        assert_eq!(open.len(), 1, "the other arm has had no connection");
        assert_eq!((open[0].at_ms, open[0].connections), (7, 1));
        drop((connection, other));
        assert_eq!(of("meters")[0].open, 0);
        drop(again);
        assert!(of("meters").is_empty());
    }

    #[test]
    fn memory_is_the_sum_of_threads() {
        let meter = ArmMeter::of(name("memory"), name("a"));
        meter.set_memory(0, 100);
        meter.set_memory(0, 50);
        meter.set_memory(100, 20);
        assert_eq!(of("memory")[0].memory_bytes, 70);
        meter.set_memory(20, 0);
        meter.set_memory(50, 0);
        assert_eq!(of("memory")[0].memory_bytes, 0);
    }
}
