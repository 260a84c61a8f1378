//! Metrics of the process: requests, bytes, times, handshakes, reloads, open files.
//!
//! The driver and the log handler of `metrics` count, each thread in a cell of its own; a scrape adds the cells up.
//! Requests and their times are counted only if `metrics` is configured. Absent: names and formats, which belong to
//! the module, and the counters of `stub_status`, which are in [`crate::stats`].

use std::cell::Cell as Flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engines::http::Version;
use server_base::per_thread::{PerThread, add};

/// Classes of a status; the first is for no status.
pub const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// Upper bounds of a histogram's buckets, microseconds, and as metrics write them in seconds.
pub const BOUNDS: [(u64, &str); BUCKETS] = [
    (100, "0.0001"),
    (250, "0.00025"),
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1.0"),
    (2_500_000, "2.5"),
    (5_000_000, "5.0"),
    (10_000_000, "10.0"),
];

/// A time that is counted in buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// From the end of the request head to the end of the response.
    Request,
    /// From the end of the request head to the first byte given to the kernel.
    FirstByte,
    /// Of sampled responses, from the end of the request head until the first byte left.
    FirstByteSent,
    /// Time until the first byte was acknowledged.
    FirstByteAcked,
}

/// An event that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A handshake with all of its parts.
    HandshakeFull,
    /// A handshake that took up an earlier session.
    HandshakeResumed,
    /// Plain HTTP came in place of a handshake.
    FailedPlainHttp,
    /// Bytes that are no TLS came.
    FailedNotTls,
    /// `ssl_reject_handshake`.
    FailedRejected,
    /// The certificate could not be loaded.
    FailedNoCertificate,
    /// The client sent another alert.
    FailedAlert,
    /// The client broke TLS, or has something else not in common with the server.
    FailedProtocol,
    /// The client left.
    FailedAbandoned,
    /// The client took too long.
    FailedTimeout,
    /// The client supports no version of TLS in `ssl_protocols`.
    FailedVersion,
    /// The client supports no cipher in `ssl_ciphers`.
    FailedCipher,
    /// The client refused the certificate of the server.
    FailedCertificate,
    /// A client sent no certificate, although `ssl_verify_client` requires one.
    ClientCertificateMissing,
    /// A client's certificate has expired, or is not yet valid.
    ClientCertificateExpired,
    /// A client's certificate is revoked.
    ClientCertificateRevoked,
    /// A client's certificate is refused for another reason.
    ClientCertificateRefused,
    /// A configuration was applied after the first.
    Reload,
    /// A configuration was refused by the worker.
    ReloadFailed,
    /// A response was sampled on a connection that had nothing else in flight to its client.
    SampledIdle,
    /// A response was sampled behind others.
    SampledBusy,
    /// [`engines::http::probe::Stall::DelayedAck`].
    StallDelayedAck,
    /// [`engines::http::probe::Stall::Retransmit`].
    StallRetransmit,
    /// [`engines::http::probe::Stall::Window`].
    StallWindow,
    /// A kept-alive connection was closed to make room.
    ShedKeptAlive,
    /// A connection without a whole request was closed to make room.
    ShedSilent,
    /// An idle connection to a server was closed to make room.
    ShedUpstream,
    /// A thread paused accepting, since no connection could be closed.
    AcceptPause,
    /// A connection was closed that had waited for a place for too long.
    Refused,
    /// A sample of a connection was queued for the store process.
    SampleQueued,
    /// A sample of a connection was dropped, since the store process is behind.
    SampleDropped,
    /// The visit of an experiment's beacon was given to the queue for the store process.
    BeaconRecorded,
    /// A beacon came from a user outside all experiments.
    BeaconOutside,
    /// A beacon was refused: `Content-Type`.
    BeaconContentType,
    /// A beacon was refused: it came from another origin.
    BeaconCrossSite,
    /// A beacon was refused: `max_size`.
    BeaconTooLarge,
    /// A beacon was refused: rate of its address.
    BeaconAddressRate,
    /// A beacon was refused: rate of its user.
    BeaconUserRate,
    /// A beacon was refused: version of its format.
    BeaconVersion,
    /// A beacon was refused: format.
    BeaconMalformed,
    /// A beacon was refused: limit of a field.
    BeaconLimit,
    /// A beacon was refused: age of its page.
    BeaconOld,
    /// A beacon was refused: its times run backwards.
    BeaconBackwards,
    /// A beacon was refused: one of its times is in the future.
    BeaconFuture,
    /// A beacon was refused: no user.
    BeaconNoUser,
    /// A beacon was refused: forged cookie of its user.
    BeaconForgedUser,
    /// A beacon was refused: files of another arm.
    BeaconForgedArm,
    /// A beacon was refused: its view was recorded.
    BeaconReplay,
    /// A beacon was refused: no experiment was live when its view began.
    BeaconNotLive,
}

/// How many there are.
const EVENTS: usize = Event::BeaconNotLive as usize + 1;

/// Gauges of a thread's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFigures {
    /// Open files that are kept.
    pub kept: u64,
    /// Requested files that were open already.
    pub hits: u64,
    /// Files that had to be opened.
    pub misses: u64,
    /// Bytes of memory that the bytes of small files take.
    pub memory_bytes: u64,
}

/// A request has ended.
pub fn request(version: Version, status: u16, received_bytes: u64, sent_bytes: u64) {
    let protocol = version as usize;
    with(|cell| {
        cell.add(REQUESTS + protocol * CLASSES.len() + class(status), 1);
        cell.add(RECEIVED + protocol, received_bytes);
        cell.add(SENT + protocol, sent_bytes);
    });
}

fn class(status: u16) -> usize {
    match status / 100 {
        hundreds @ 1..=5 => usize::from(hundreds),
        _ => 0,
    }
}

/// Something took so long, in microseconds.
pub fn time(of: Time, us: u64) {
    let bucket = BOUNDS.iter().position(|(bound, _)| us <= *bound);
    with(|cell| {
        cell.add(start(of) + bucket.unwrap_or(BUCKETS), 1);
        cell.add(start(of) + BUCKETS + 1, us);
    });
}

/// Something happened.
pub fn event(event: Event) {
    with(|cell| cell.add(HAPPENED + event as usize, 1));
}

/// The files of this thread are at this now, counted since it began.
pub fn files(now: &FileFigures) {
    let before = FILES_BEFORE.replace(*now);
    with(|cell| {
        let gauges = [
            (FILES, before.kept, now.kept),
            (FILES + 3, before.memory_bytes, now.memory_bytes),
        ];
        for (gauge, before, now) in gauges {
            let gauge = &cell.0[gauge];
            let others = gauge.load(Ordering::Relaxed).saturating_sub(before);
            gauge.store(others + now, Ordering::Relaxed);
        }
        cell.add(FILES + 1, now.hits.saturating_sub(before.hits));
        cell.add(FILES + 2, now.misses.saturating_sub(before.misses));
    });
}

/// The counters of the whole process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums([u64; COUNTERS]);

/// A histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Number of values up to each of [`BOUNDS`].
    pub within: [u64; BUCKETS],
    /// Number of all values.
    pub count: u64,
    /// All of them together, microseconds.
    pub sum_us: u64,
}

/// Adds up the counts of all threads.
pub fn sums() -> Sums {
    let mut sums = [0; COUNTERS];
    CELLS.each(|cell| {
        for (sum, counter) in sums.iter_mut().zip(&cell.0) {
            *sum += counter.load(Ordering::Relaxed);
        }
    });
    Sums(sums)
}

impl Sums {
    /// Requests of a protocol with a status of a class, by their places in the lists.
    pub fn requests(&self, protocol: usize, class: usize) -> u64 {
        self.0[REQUESTS + protocol * CLASSES.len() + class]
    }

    /// Bytes of requests of a protocol.
    pub fn received(&self, protocol: usize) -> u64 {
        self.0[RECEIVED + protocol]
    }

    /// Bytes of responses of a protocol.
    pub fn sent(&self, protocol: usize) -> u64 {
        self.0[SENT + protocol]
    }

    /// Number of events of a kind.
    pub fn events(&self, event: Event) -> u64 {
        self.0[HAPPENED + event as usize]
    }

    /// The files of all threads.
    pub fn files(&self) -> FileFigures {
        FileFigures {
            kept: self.0[FILES],
            hits: self.0[FILES + 1],
            misses: self.0[FILES + 2],
            memory_bytes: self.0[FILES + 3],
        }
    }

    /// A histogram.
    pub fn histogram(&self, of: Time) -> Histogram {
        let mut count = 0;
        let mut within = [0; BUCKETS];
        for (place, sum) in within.iter_mut().enumerate() {
            count += self.0[start(of) + place];
            *sum = count;
        }
        Histogram {
            within,
            count: count + self.0[start(of) + BUCKETS],
            sum_us: self.0[start(of) + BUCKETS + 1],
        }
    }
}

const BUCKETS: usize = 16;
/// Buckets, the count above them, and the sum.
const HISTOGRAM: usize = BUCKETS + 2;
const TIMES: usize = 4;

// Offsets of the counters in a cell.
const REQUESTS: usize = 0;
const RECEIVED: usize = REQUESTS + Version::ALL.len() * CLASSES.len();
const SENT: usize = RECEIVED + Version::ALL.len();
const HISTOGRAMS: usize = SENT + Version::ALL.len();
const HAPPENED: usize = HISTOGRAMS + TIMES * HISTOGRAM;
const FILES: usize = HAPPENED + EVENTS;
const COUNTERS: usize = FILES + 4;

fn start(of: Time) -> usize {
    HISTOGRAMS + of as usize * HISTOGRAM
}

/// One thread's counters, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
struct Cell([AtomicU64; COUNTERS]);

impl Default for Cell {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; COUNTERS])
    }
}

impl Cell {
    fn add(&self, counter: usize, n: u64) {
        add(&self.0[counter], n);
    }
}

thread_local! {
    static CELL: Arc<Cell> = CELLS.of_thread();
    static FILES_BEFORE: Flag<FileFigures> = const { Flag::new(FileFigures { kept: 0, hits: 0, misses: 0, memory_bytes: 0 }) };
}

static CELLS: PerThread<Cell> = PerThread::new();

/// At the very end of a thread its cell may be gone; such counts are lost.
fn with(count: impl FnOnce(&Cell)) {
    let _ = CELL.try_with(|cell| count(cell));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_count_is_added_up() {
        request(Version::Http11, 200, 10, 100);
        request(Version::Http11, 304, 10, 20);
        let other = std::thread::spawn(|| {
            request(Version::Http11, 206, 1, 2);
            request(Version::Http2, 0, 3, 4);
            event(Event::HandshakeResumed);
            files(&FileFigures {
                kept: 2,
                hits: 5,
                misses: 3,
                memory_bytes: 700,
            });
            files(&FileFigures {
                kept: 1,
                hits: 6,
                misses: 3,
                memory_bytes: 500,
            });
        });
        assert!(other.join().is_ok());
        files(&FileFigures {
            kept: 4,
            hits: 1,
            misses: 1,
            memory_bytes: 20,
        });
        let sums = sums();
        assert_eq!((sums.requests(2, 2), sums.requests(2, 3)), (2, 1));
        assert_eq!(sums.requests(4, 0), 1);
        assert_eq!((sums.received(2), sums.sent(2)), (21, 122));
        assert_eq!((sums.received(4), sums.sent(4)), (3, 4));
        assert_eq!(sums.events(Event::HandshakeResumed), 1);
        assert_eq!(sums.events(Event::HandshakeFull), 0);
        assert_eq!(
            sums.files(),
            FileFigures {
                kept: 5,
                hits: 7,
                misses: 4,
                memory_bytes: 520
            }
        );
    }

    #[test]
    fn a_time_is_in_the_first_bucket_that_holds_it_and_those_after() {
        for us in [0, 100, 101, 10_000_000, 10_000_001] {
            time(Time::FirstByte, us);
        }
        let histogram = sums().histogram(Time::FirstByte);
        assert_eq!(histogram.within[0], 2);
        assert_eq!(histogram.within[1], 3);
        assert_eq!(histogram.within[BUCKETS - 1], 4);
        assert_eq!((histogram.count, histogram.sum_us), (5, 20_000_202));
    }
}
