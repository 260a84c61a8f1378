//! Samples on their way to the store process: a queue of the worker, and the thread that sends it.
//!
//! Threads that serve add records without waiting. A full queue drops and counts them. The sending thread gathers records for
//! [`GATHER`] and writes them to a socket of the supervisor, several in one message. It waits while the store process is behind.
//! Once a second it also sends the numbers of open connections, in all and of each arm. Counters of metrics have them.
//! Absent: the store, which the worker does not know.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::SendFlags;
use server_base::experiment::{ArmConnection, Visit, each_open_arm};
use server_base::samples::{
    ARM_RECORD_BYTES, ConnectionSample, FIGURES_BYTES, OpenCounts, RECORD_BYTES, Records,
    SampleSink, StoreFigures,
};
use server_http::meters::{self, Event};
use server_http::stats;

/// The way to the store process.
#[derive(Debug)]
pub struct SampleChannel {
    /// Takes messages of records.
    pub socket: OwnedFd,
    /// The store process writes its figures into this file.
    pub figures: OwnedFd,
}

/// Records of the threads that serve, until they are sent.
#[derive(Debug, Default)]
pub(super) struct SampleQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    records: Vec<u8>,
    channel: Option<Arc<SampleChannel>>,
    has_thread: bool,
    /// Records were taken out and are being sent.
    is_sending: bool,
    /// Records are sent at once, without gathering.
    is_draining: bool,
}

impl SampleSink for SampleQueue {
    fn record(&self, sample: &ConnectionSample) {
        self.add(&sample.encode());
    }

    fn visit(&self, visit: &Visit) {
        self.add(&visit.encode());
    }

    fn arm(&self, connection: &ArmConnection) {
        self.add(&connection.encode());
    }
}

impl SampleQueue {
    /// Adds a record, or drops and counts it.
    fn add(&self, record: &[u8]) {
        let mut state = self.state();
        if state.channel.is_none() || state.records.len() + record.len() > QUEUE_BYTES {
            drop(state);
            return meters::event(Event::SampleDropped);
        }
        let before = state.records.len();
        state.records.extend_from_slice(record);
        drop(state);
        meters::event(Event::SampleQueued);
        // The thread waits for the first record, and gathers until there are many.
        if before == 0 || (before < GATHERED_BYTES && before + record.len() >= GATHERED_BYTES) {
            self.changed.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends over another channel from now on; without one the queue takes nothing.
    ///
    /// # Errors
    /// The sending thread cannot be started.
    pub(super) fn attach(self: &Arc<Self>, channel: Option<SampleChannel>) -> io::Result<()> {
        if channel.is_none() {
            // Those that wait belong to the store before.
            self.drain(DETACH_WAIT);
            StoreFigures::unpublish();
        }
        let mut state = self.state();
        state.channel = channel.map(Arc::new);
        if state.channel.is_some() && !state.has_thread {
            let queue = Arc::clone(self);
            let sender = thread::Builder::new().name("samples".to_owned());
            sender.spawn(move || queue.send_all())?;
            state.has_thread = true;
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Sends queued samples before the worker ends, within a time limit.
    pub(super) fn flush(&self, is_quick: bool) {
        self.drain(if is_quick { QUICK_END_WAIT } else { END_WAIT });
    }

    /// Sends queued samples at once; after the limit the rest is dropped and counted.
    fn drain(&self, limit: Duration) {
        let until = Instant::now() + limit;
        let mut state = self.state();
        state.is_draining = true;
        self.changed.notify_all();
        while state.channel.is_some() && (state.is_sending || !state.records.is_empty()) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.wait(state, left);
        }
        state.is_draining = false;
        count_dropped(&std::mem::take(&mut state.records));
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, limit: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Sends records as long as the process lives.
    fn send_all(&self) {
        let mut count_at = Instant::now();
        loop {
            let (records, channel) = self.next();
            match &channel {
                Some(channel) => {
                    send(channel, &records);
                    if Instant::now() >= count_at {
                        count_at = Instant::now() + COUNT_EVERY;
                        send_open(channel);
                    }
                    publish(channel);
                }
                None => count_dropped(&records),
            }
            let mut state = self.state();
            state.is_sending = false;
            if state.records.is_empty() && state.records.capacity() == 0 {
                // The memory is used again.
                state.records = records;
                state.records.clear();
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Waits for records and gathers more; without any returns after [`PUBLISH_EVERY`].
    fn next(&self) -> (Vec<u8>, Option<Arc<SampleChannel>>) {
        let until = Instant::now() + PUBLISH_EVERY;
        let mut state = self.state();
        while state.records.is_empty() && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            state = self.wait(state, left);
        }
        let until = Instant::now() + GATHER;
        while !state.is_draining && state.records.len() < GATHERED_BYTES && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            state = self.wait(state, left);
        }
        state.is_sending = true;
        (std::mem::take(&mut state.records), state.channel.clone())
    }
}

/// Sends records in messages of at most [`MESSAGE_BYTES`]. If the supervisor is gone, they are lost.
fn send(channel: &SampleChannel, mut records: &[u8]) {
    while !records.is_empty() {
        let (message, rest) = records.split_at(message_bytes(records));
        if send_message(channel, message).is_err() {
            count_dropped(message);
        }
        records = rest;
    }
}

/// Returns the length of the next message: as many whole records as fit.
fn message_bytes(records: &[u8]) -> usize {
    let mut bytes = 0;
    for record in Records(records) {
        if bytes + record.len() > MESSAGE_BYTES {
            return bytes;
        }
        bytes += record.len();
    }
    // All are of this program, and whole.
    records.len()
}

/// Sends the open connections of the process and of each arm. If the supervisor is gone, they are of no use.
fn send_open(channel: &SampleChannel) {
    let counts = open_counts();
    let _ = send_message(channel, &counts.encode());
    let mut arms = Vec::new();
    each_open_arm(counts.at_ms, &mut |open| arms.extend(open.encode()));
    for message in arms.chunks(MESSAGE_BYTES / ARM_RECORD_BYTES * ARM_RECORD_BYTES) {
        let _ = send_message(channel, message);
    }
}

fn send_message(channel: &SampleChannel, message: &[u8]) -> rustix::io::Result<usize> {
    loop {
        match rustix::net::send(&channel.socket, message, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Returns the open connections of the process.
fn open_counts() -> OpenCounts {
    let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    OpenCounts {
        at_ms: sys::clock::wall_us() / 1000,
        counts: stats::open().map(|open| narrow(open.waiting + open.reading + open.writing)),
    }
}

/// Counts records as dropped.
fn count_dropped(records: &[u8]) {
    for _ in Records(records) {
        meters::event(Event::SampleDropped);
    }
}

/// Shows the figures of the store process to the metrics of this process.
fn publish(channel: &SampleChannel) {
    let mut bytes = [0; FIGURES_BYTES];
    let file = channel.figures.try_clone().map(File::from);
    if file
        .and_then(|file| file.read_exact_at(&mut bytes, 0))
        .is_ok()
    {
        StoreFigures::decode(&bytes).publish();
    }
}

/// Bytes that may wait: 10,922 samples.
const QUEUE_BYTES: usize = 1 << 20;
/// Bytes of a message at most: 256 samples.
const MESSAGE_BYTES: usize = 256 * RECORD_BYTES;
/// Time for which records are gathered.
const GATHER: Duration = Duration::from_millis(100);
/// Interval of the numbers of open connections, at least.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// Interval of the figures for metrics.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);
/// Bytes that are sent without gathering more.
const GATHERED_BYTES: usize = QUEUE_BYTES / 4;
/// Maximum time for which the end of the worker waits for the queue, and its quick end, before the supervisor kills it.
const END_WAIT: Duration = Duration::from_secs(5);
const QUICK_END_WAIT: Duration = Duration::from_millis(300);
/// Maximum time for which a configuration without recording waits for the queue of the one before.
const DETACH_WAIT: Duration = Duration::from_millis(200);

#[cfg(test)]
#[path = "samples_tests.rs"]
mod tests;
