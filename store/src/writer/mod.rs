//! The thread that writes a store.
//!
//! [`Writer::offer`] puts rows into a bounded queue and never waits. The thread commits them to its engine: SQLite stores them within
//! a second, and ClickHouse's spills them to disk and sends them from there. If an engine fails, the thread keeps its rows and tries
//! again, and the queue drops rows once it is full.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clickhouse::{ClickHouseEngine, ClickHouseSettings, Transport};
use crate::connection::Connection;
use crate::counters::{Counters, Report, Reports};
use crate::experiment::{ArmFigures, ExperimentSettings, Visit};
use crate::query::OpenSample;
use crate::retention::Retention;

mod engine;
mod failing;
mod item;
mod sqlite;
mod worker;

pub(crate) use engine::{Batch, Engine};
pub(crate) use failing::Failing;

use item::Item;
use sqlite::SqliteEngine;
use worker::Worker;

/// Default of [`Settings::commit_pause`].
const COMMIT_PAUSE: Duration = Duration::from_millis(500);
/// Default of [`Settings::queue_rows`].
const QUEUE_ROWS: usize = 1 << 16;

/// Settings of a [`Writer`] of SQLite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The file.
    pub path: PathBuf,
    /// Rows in the queue at most.
    pub queue_rows: usize,
    /// Longest time of a row before its commit begins. A killed process loses the rows of this time and of one
    /// commit.
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
            queue_rows: QUEUE_ROWS,
            commit_pause: COMMIT_PAUSE,
            retention: Retention::default(),
        }
    }
}

/// A running thread that writes a store. Dropping it closes the store.
#[derive(Debug)]
pub struct Writer {
    queue: Option<SyncSender<Item>>,
    counters: Arc<Counters>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts a thread that writes a file of SQLite. Errors of the store are reported, not returned.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(
        settings: Settings,
        on_report: impl Fn(Report) + Send + 'static,
    ) -> std::io::Result<Self> {
        let Settings {
            path,
            queue_rows,
            commit_pause,
            retention,
        } = settings;
        Self::run(queue_rows, commit_pause, on_report, |counters, reports| {
            Box::new(SqliteEngine::new(path, retention, counters, reports))
        })
    }

    /// Starts a thread that writes ClickHouse, with a queue of 65,536 rows. `connect` makes the client of the thread that sends.
    /// Errors of the store are reported, not returned.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start_clickhouse(
        settings: ClickHouseSettings,
        connect: Box<dyn Fn() -> Box<dyn Transport> + Send>,
        on_report: impl Fn(Report) + Send + 'static,
    ) -> std::io::Result<Self> {
        let pause = settings.batch_pause;
        Self::run(QUEUE_ROWS, pause, on_report, |counters, reports| {
            Box::new(ClickHouseEngine::new(settings, connect, counters, reports))
        })
    }

    fn run(
        queue_rows: usize,
        commit_pause: Duration,
        on_report: impl Fn(Report) + Send + 'static,
        engine: impl FnOnce(Arc<Counters>, Reports) -> Box<dyn Engine>,
    ) -> std::io::Result<Self> {
        let (queue, items) = sync_channel(queue_rows);
        let counters = Arc::new(Counters::default());
        let closing = Arc::new(AtomicBool::new(false));
        let reports = Reports::new(on_report);
        let worker = Worker::new(
            engine(Arc::clone(&counters), reports.clone()),
            items,
            commit_pause,
            Arc::clone(&counters),
            Arc::clone(&closing),
            reports,
        );
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
        self.send_row(Item::Row(Box::new(row)))
    }

    /// Queues a page view, or drops and counts it if the queue is full. Returns whether it is queued. It never waits.
    pub fn offer_visit(&self, visit: Visit) -> bool {
        self.send_row(Item::Visit(Box::new(visit)))
    }

    /// Queues a sample of open connections, or drops it without a count if the queue is full. Returns whether it is queued. It never waits.
    pub fn offer_open(&self, sample: OpenSample) -> bool {
        self.send(Item::Open(sample))
    }

    /// Queues figures of an arm, or drops them without a count if the queue is full. Returns whether they are queued. It never waits.
    pub fn offer_arm(&self, figures: ArmFigures) -> bool {
        self.send(Item::Arm(Box::new(figures)))
    }

    /// Queues settings of an experiment that apply from this time on, Unix seconds, or drops them if the queue is
    /// full. Returns whether they are queued. It never waits. SQLite ignores unchanged settings.
    pub fn offer_settings(&self, since_s: u64, settings: ExperimentSettings) -> bool {
        self.send(Item::Settings(Box::new((since_s, settings))))
    }

    fn send_row(&self, item: Item) -> bool {
        // Counted first: the thread may be quick.
        self.counters.queued.fetch_add(1, Ordering::Relaxed);
        let is_queued = self.send(item);
        if !is_queued {
            self.counters.queued.fetch_sub(1, Ordering::Relaxed);
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
        is_queued
    }

    fn send(&self, item: Item) -> bool {
        let sent = self.queue.as_ref().map(|queue| queue.try_send(item));
        !matches!(
            sent,
            None | Some(Err(TrySendError::Full(_) | TrySendError::Disconnected(_)))
        )
    }

    /// Figures of this writer.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Writes the queued rows and closes the store. Rows that cannot be written at once are dropped and counted.
    /// Rows for ClickHouse are spilled, and the next writer sends them.
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
