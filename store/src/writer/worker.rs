//! The thread between the queue and the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::engine::{Batch, Engine};
use super::failing::Failing;
use super::item::Item;
use crate::counters::{Counters, Report, Reports};
use crate::error::Error;

/// Time before the first retry of a failed commit. It doubles with each failure, up to [`RETRY_DOUBLINGS`] times.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
const RETRY_DOUBLINGS: u32 = 2;
/// Least time between two reports of dropped rows.
const DROPPED_PAUSE: Duration = Duration::from_secs(60);

/// A piece of work of the thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Commit,
    Maintain,
}

pub(super) struct Worker {
    engine: Box<dyn Engine>,
    items: Receiver<Item>,
    commit_pause: Duration,
    counters: Arc<Counters>,
    closing: Arc<AtomicBool>,
    reports: Reports,
    batch: Batch,
    commit_at: Option<Instant>,
    maintain_at: Instant,
    /// Rows since the last maintenance.
    not_maintained: u64,
    /// Failures by work.
    failing: [Failing; 2],
    dropped_reported: u64,
    report_dropped_at: Instant,
}

impl Worker {
    pub(super) fn new(
        engine: Box<dyn Engine>,
        items: Receiver<Item>,
        commit_pause: Duration,
        counters: Arc<Counters>,
        closing: Arc<AtomicBool>,
        reports: Reports,
    ) -> Self {
        Self {
            engine,
            items,
            commit_pause,
            counters,
            closing,
            reports,
            batch: Batch::default(),
            commit_at: None,
            maintain_at: Instant::now(),
            not_maintained: 0,
            failing: Default::default(),
            dropped_reported: 0,
            report_dropped_at: Instant::now(),
        }
    }

    pub(super) fn run(mut self) {
        self.work(Work::Maintain);
        loop {
            let over = self.receive();
            let now = Instant::now();
            let is_due = self.commit_at.is_some_and(|at| at <= now);
            let is_full = self.batch.largest() >= self.engine.rows_max();
            if !self.batch.is_empty() && (over || is_due || is_full) {
                self.work(Work::Commit);
            }
            let is_due = self.engine.is_maintenance_due(self.not_maintained);
            if !over && (now >= self.maintain_at || is_due) {
                self.work(Work::Maintain);
            }
            self.report_dropped(over);
            if over && self.batch.is_empty() {
                break;
            }
            let failing = &self.failing[Work::Commit as usize];
            if let Some(pause) = failing.pause(RETRY_PAUSE, RETRY_DOUBLINGS) {
                // The queue may have more rows than a batch.
                if self.closing.load(Ordering::Relaxed) {
                    break;
                }
                self.pause(pause);
            }
        }
        self.engine.close();
        let queued = self.items.try_iter().filter(Item::is_row).count();
        let lost = self.batch.counted() + queued as u64;
        self.counters.dropped.fetch_add(lost, Ordering::Relaxed);
        self.counters.queued.fetch_sub(lost, Ordering::Relaxed);
        self.report_dropped(true);
    }

    /// Moves queued rows to the batch until the next commit or maintenance. Returns whether the writer is closed and the queue
    /// empty.
    fn receive(&mut self) -> bool {
        let rows_max = self.engine.rows_max();
        while self.batch.largest() < rows_max {
            // After a commit that failed, its time is over: the queue is emptied without waiting.
            let until = self.commit_at.unwrap_or(self.maintain_at);
            let wait = until.saturating_duration_since(Instant::now());
            match self.items.recv_timeout(wait) {
                Ok(item) => {
                    item.add_to(&mut self.batch);
                    if self.commit_at.is_none() {
                        let pause = self.engine.commit_pause(self.commit_pause);
                        self.commit_at = Some(Instant::now() + pause);
                    }
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
        let done = match work {
            Work::Commit => self.commit(),
            Work::Maintain => self.maintain(),
        };
        let failing = &mut self.failing[work as usize];
        match done {
            Ok(()) => failing.succeeded(&self.reports),
            Err(error) => {
                self.counters.note_failure(&error.to_string());
                self.engine.note_failure(&error);
                failing.failed(error.to_string(), &self.reports);
                if let (Work::Maintain, Some(pause)) =
                    (work, failing.pause(RETRY_PAUSE, RETRY_DOUBLINGS))
                {
                    // A store that could not be opened is tried again as soon as one that could not be written.
                    self.maintain_at = Instant::now() + pause;
                }
            }
        }
        let fails = self.failing.iter().any(Failing::is_failing);
        self.counters.failing.store(fails, Ordering::Relaxed);
    }

    fn commit(&mut self) -> Result<(), Error> {
        let before = self.batch.counted();
        let done = self.engine.commit(&mut self.batch);
        let rows = before - self.batch.counted();
        self.not_maintained += rows;
        self.counters.queued.fetch_sub(rows, Ordering::Relaxed);
        if done.is_ok() {
            self.commit_at = None;
        }
        done
    }

    fn maintain(&mut self) -> Result<(), Error> {
        self.maintain_at = self.engine.maintain()?;
        self.not_maintained = 0;
        Ok(())
    }

    fn report_dropped(&mut self, at_once: bool) {
        let dropped = self.counters.dropped.load(Ordering::Relaxed);
        let rows = dropped - self.dropped_reported;
        if rows > 0 && (at_once || Instant::now() >= self.report_dropped_at) {
            self.dropped_reported = dropped;
            self.report_dropped_at = Instant::now() + DROPPED_PAUSE;
            self.reports.send(Report::Dropped { rows });
        }
    }
}
