//! The thread that writes a store.
//!
//! [`Writer::offer`] puts rows into a bounded queue and never waits. The thread commits them within a second. If the store cannot
//! be written, the thread keeps its rows and tries again, and the queue drops rows once it is full.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use crate::clock::ClockWatch;
use crate::connection::Connection;
use crate::counters::{Counters, Report};
use crate::error::Error;
use crate::retention::Retention;
use crate::sqlite::{MovedAside, Opened, Sqlite};

/// Default of [`Settings::commit_pause`].
const COMMIT_PAUSE: Duration = Duration::from_millis(500);
/// Rows of one transaction.
const BATCH_ROWS: usize = 8192;
/// Time between two roll-ups, and between two looks for old rows.
const MAINTAIN_PAUSE: Duration = Duration::from_secs(60);
/// Rows after which a roll-up does not wait longer.
const ROLL_ROWS: u64 = 100_000;
/// Time of one maintenance; rows wait meanwhile.
const MAINTAIN_TIME: Duration = Duration::from_millis(200);
/// Time before the first retry of a failed commit. It doubles with each failure, up to [`RETRY_DOUBLINGS`] times.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
const RETRY_DOUBLINGS: u32 = 2;
/// Least time between two reports of dropped rows.
const DROPPED_PAUSE: Duration = Duration::from_secs(60);

/// Settings of a [`Writer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The file.
    pub path: PathBuf,
    /// Rows in the queue at most.
    pub queue_rows: usize,
    /// Longest time of a row before its commit begins. A process that is killed loses the rows of this time and of one commit.
    pub commit_pause: Duration,
    /// Limits of age and size.
    pub retention: Retention,
}

impl Settings {
    /// Settings of a store with a queue of 65,536 rows, a commit every 500 ms and the default retention.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            queue_rows: 1 << 16,
            commit_pause: COMMIT_PAUSE,
            retention: Retention::default(),
        }
    }
}

/// A running thread that writes a store. Dropping it closes the store.
#[derive(Debug)]
pub struct Writer {
    queue: Option<SyncSender<Connection>>,
    counters: Arc<Counters>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread, which opens the store. Errors of the store are reported, not returned.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(
        settings: Settings,
        on_report: impl Fn(Report) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (queue, rows) = sync_channel(settings.queue_rows);
        let counters = Arc::new(Counters::default());
        let closing = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            settings,
            rows,
            counters: Arc::clone(&counters),
            closing: Arc::clone(&closing),
            on_report: Box::new(on_report),
            store: None,
            batch: Vec::new(),
            clock: None,
            commit_at: None,
            maintain_at: Instant::now(),
            not_rolled: 0,
            failing: Default::default(),
            dropped_reported: 0,
            report_dropped_at: Instant::now(),
        };
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || worker.run())?;
        Ok(Self {
            queue: Some(queue),
            counters,
            closing,
            thread: Some(thread),
        })
    }

    /// Queues a row, or drops and counts it if the queue is full. Returns whether it is queued. It never waits.
    pub fn offer(&self, row: Connection) -> bool {
        let Some(queue) = &self.queue else {
            return false;
        };
        // Counted first: the thread may be quick.
        self.counters.queued.fetch_add(1, Ordering::Relaxed);
        let sent = queue.try_send(row);
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = sent {
            self.counters.queued.fetch_sub(1, Ordering::Relaxed);
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        true
    }

    /// Figures of this writer.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Writes the queued rows and closes the store. Rows that cannot be written at once are dropped and counted.
    pub fn close(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread was printed; its rows are lost.
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end();
    }
}

/// A piece of work of the thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Commit,
    Maintain,
}

/// A failure that lasts.
struct Failing {
    since: Instant,
    reason: String,
    /// Failures in a row.
    count: u32,
}

impl Failing {
    /// Time until the next try.
    fn retry_pause(&self) -> Duration {
        RETRY_PAUSE * (1 << (self.count - 1).min(RETRY_DOUBLINGS))
    }
}

struct Worker {
    settings: Settings,
    rows: Receiver<Connection>,
    counters: Arc<Counters>,
    closing: Arc<AtomicBool>,
    on_report: Box<dyn Fn(Report) + Send>,
    store: Option<Sqlite>,
    /// Rows of the next commit.
    batch: Vec<Connection>,
    /// Since the first maintenance.
    clock: Option<ClockWatch>,
    commit_at: Option<Instant>,
    maintain_at: Instant,
    /// Rows since the last roll-up.
    not_rolled: u64,
    /// Failures by work.
    failing: [Option<Failing>; 2],
    dropped_reported: u64,
    report_dropped_at: Instant,
}

impl Worker {
    fn run(mut self) {
        self.work(Work::Maintain);
        loop {
            let over = self.receive();
            let now = Instant::now();
            let is_due = self.commit_at.is_some_and(|at| at <= now);
            if !self.batch.is_empty() && (over || is_due || self.batch.len() >= BATCH_ROWS) {
                self.work(Work::Commit);
            }
            if !over && (now >= self.maintain_at || self.not_rolled >= ROLL_ROWS) {
                self.work(Work::Maintain);
            }
            self.report_dropped(over);
            let failing = self.failing[Work::Commit as usize].as_ref();
            let pause = failing.map(Failing::retry_pause);
            if over && self.batch.is_empty() {
                break;
            }
            if let Some(pause) = pause {
                // The queue may have more rows than a batch.
                if self.closing.load(Ordering::Relaxed) {
                    break;
                }
                self.pause(pause);
            }
        }
        let lost = (self.batch.len() + self.rows.try_iter().count()) as u64;
        self.counters.dropped.fetch_add(lost, Ordering::Relaxed);
        self.counters.queued.fetch_sub(lost, Ordering::Relaxed);
        self.report_dropped(true);
    }

    /// Moves queued rows to the batch until the next commit or maintenance. Returns whether the writer is closed and the queue
    /// empty.
    fn receive(&mut self) -> bool {
        while self.batch.len() < BATCH_ROWS {
            // After a commit that failed, its time is over: the queue is emptied without waiting.
            let until = self.commit_at.unwrap_or(self.maintain_at);
            let wait = until.saturating_duration_since(Instant::now());
            match self.rows.recv_timeout(wait) {
                Ok(row) => {
                    self.batch.push(row);
                    let pause = self.settings.commit_pause;
                    self.commit_at.get_or_insert_with(|| Instant::now() + pause);
                }
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
        false
    }

    /// Waits before the next try, but not while the writer is closed.
    fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.closing.load(Ordering::Relaxed) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::park_timeout(left);
        }
    }

    /// Does a piece of work, and reports when it begins to fail and when it succeeds again.
    fn work(&mut self, work: Work) {
        let mut done = self.attempt(work);
        if let Err(Error::Damaged(reason)) = &done {
            let reason = reason.clone();
            // A second failure is that of the new file.
            done = self.replace(&reason).and_then(|()| self.attempt(work));
        }
        let failing = self.failing[work as usize].take();
        match done {
            Ok(()) => {
                if let Some(failing) = failing {
                    let after = failing.since.elapsed();
                    (self.on_report)(Report::Recovered { after });
                }
            }
            Err(error) => {
                self.counters.failed.fetch_add(1, Ordering::Relaxed);
                if matches!(error, Error::ReadOnly | Error::Other(_)) {
                    // Its descriptors may be of no use after a remount or an error of the device.
                    self.store = None;
                }
                let reason = error.to_string();
                let is_new = failing.as_ref().is_none_or(|it| it.reason != reason);
                if is_new {
                    let reason = reason.clone();
                    (self.on_report)(Report::CannotWrite { reason });
                }
                let failing = Failing {
                    since: failing.as_ref().map_or_else(Instant::now, |it| it.since),
                    count: failing.map_or(1, |it| it.count.saturating_add(1)),
                    reason,
                };
                if work == Work::Maintain {
                    // A store that could not be opened is tried again as soon as one that could not be written.
                    self.maintain_at = Instant::now() + failing.retry_pause();
                }
                self.failing[work as usize] = Some(failing);
            }
        }
        let fails = self.failing.iter().any(Option::is_some);
        self.counters.failing.store(fails, Ordering::Relaxed);
    }

    fn attempt(&mut self, work: Work) -> Result<(), Error> {
        match work {
            Work::Commit => self.commit(),
            Work::Maintain => self.maintain(),
        }
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.open()?;
        if let Some(store) = &mut self.store {
            store.insert(&self.batch)?;
        }
        let rows = self.batch.len() as u64;
        self.batch.clear();
        self.commit_at = None;
        self.not_rolled += rows;
        self.counters.written.fetch_add(rows, Ordering::Relaxed);
        self.counters.queued.fetch_sub(rows, Ordering::Relaxed);
        Ok(())
    }

    fn maintain(&mut self) -> Result<(), Error> {
        self.maintain_at = Instant::now() + MAINTAIN_PAUSE;
        self.open()?;
        let Some(store) = &mut self.store else {
            return Ok(());
        };
        let now_s = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let now = Instant::now();
        let newest_s = store.newest_s()?;
        let clock = self
            .clock
            .get_or_insert_with(|| ClockWatch::new(newest_s, now_s, now));
        // Nothing is old at the time 0.
        let now_s = if clock.is_trusted(now_s, now) {
            now_s
        } else {
            0
        };
        let done = store.maintain(now_s, &self.settings.retention, MAINTAIN_TIME)?;
        self.not_rolled = 0;
        if done.more {
            self.maintain_at = Instant::now();
        }
        let size = store.size_bytes()?;
        self.counters.file_bytes.store(size, Ordering::Relaxed);
        self.counters
            .deleted_rows
            .fetch_add(done.deleted_rows, Ordering::Relaxed);
        Ok(())
    }

    /// Opens the store unless it is open. If its path leads to another file, that is opened.
    fn open(&mut self) -> Result<(), Error> {
        if self.store.as_ref().is_some_and(Sqlite::is_in_place) {
            return Ok(());
        }
        self.store = None;
        let opened = Sqlite::open(&self.settings.path)?;
        self.opened(opened);
        Ok(())
    }

    fn replace(&mut self, reason: &str) -> Result<(), Error> {
        if let Some(store) = self.store.take() {
            let opened = store.replace(reason)?;
            self.opened(opened);
        }
        Ok(())
    }

    fn opened(&mut self, Opened { store, moved_aside }: Opened) {
        if let Some(MovedAside { to, reason }) = moved_aside {
            self.counters.moved_aside.fetch_add(1, Ordering::Relaxed);
            (self.on_report)(Report::MovedAside { to, reason });
        }
        let path = store.path().to_owned();
        (self.on_report)(Report::Opened { path });
        self.store = Some(store);
    }

    fn report_dropped(&mut self, at_once: bool) {
        let dropped = self.counters.dropped.load(Ordering::Relaxed);
        let rows = dropped - self.dropped_reported;
        if rows > 0 && (at_once || Instant::now() >= self.report_dropped_at) {
            self.dropped_reported = dropped;
            self.report_dropped_at = Instant::now() + DROPPED_PAUSE;
            (self.on_report)(Report::Dropped { rows });
        }
    }
}
