//! The thread that sends spilled batches, in order and one at a time.
//!
//! An insertion may have any outcome: the response is lost, the server is killed between a table and its views, or
//! it executes the request after this client's timeout. So each statement does nothing if its rows are stored. All
//! statements of a batch have the same id, and ClickHouse executes only one of an id at a time. After a failure the
//! insertion runs again, then the statements that add the batch to roll-ups that lack it. Only a batch with all of
//! them is deleted.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::batch::{self, BatchHead, Kind, ReadError};
use super::client::{Client, Failure, Incoming, UNKNOWN_DATABASE, UNKNOWN_TABLE};
use super::random::random;
use super::shared::{Connect, Shared};
use super::spill::{Damaged, Waiting};
use super::sql::{self, BatchRows};
use super::{encode, experiments, keep, migrate};
use crate::counters::Report;
use crate::error::Error;
use crate::writer::Failing;

/// Time before the first retry. It doubles with each failure, up to [`RETRY_DOUBLINGS`] times: 64 s. A random part,
/// up to half, is subtracted, so that servers do not retry at the same moment.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
const RETRY_DOUBLINGS: u32 = 7;
/// Time between two looks for old partitions.
const KEEP_PAUSE: Duration = Duration::from_secs(3600);
/// Settings of insertions: a block is one part of each table, however many keys its roll-ups have.
const SETTINGS: [(&str, &str); 5] = [
    ("max_threads", "1"),
    ("min_insert_block_size_rows", "1048576"),
    ("min_insert_block_size_bytes", "1073741824"),
    ("group_by_two_level_threshold", "0"),
    ("group_by_two_level_threshold_bytes", "0"),
];
/// Codes of ClickHouse for rows that it cannot parse: 6, 26, 27, 33, 38, 41, 72, 117. Another attempt has the same
/// result.
const UNREADABLE: [u32; 8] = [6, 26, 27, 33, 38, 41, 72, 117];

pub(super) struct Sender {
    shared: Arc<Shared>,
    client: Client,
    /// Whether the schema is checked.
    is_ready: bool,
    keep_at: Instant,
    failing: Failing,
    retry_at: Instant,
}

/// Next work of the thread.
enum Work {
    Prepare,
    Send(Waiting),
    Keep,
    End,
}

impl Sender {
    pub(super) fn new(shared: Arc<Shared>, connect: &Connect) -> Self {
        let settings = &shared.settings;
        let client = Client::new(connect(), settings.user.clone(), settings.password.clone());
        Self {
            shared,
            client,
            is_ready: false,
            keep_at: Instant::now(),
            failing: Failing::default(),
            retry_at: Instant::now(),
        }
    }

    pub(super) fn run(mut self) {
        loop {
            let done = match self.next() {
                Work::End => break,
                Work::Prepare => self.prepare(),
                Work::Send(waiting) => self.send(waiting),
                Work::Keep => self.keep(),
            };
            let shared = &self.shared;
            match done {
                Ok(()) => self.failing.succeeded(&shared.reports),
                Err(error) => {
                    shared.counters.note_failure(&error.to_string());
                    self.failing.failed(error.to_string(), &shared.reports);
                    self.retry_at = Instant::now() + self.pause();
                }
            }
            let fails = self.failing.is_failing();
            shared
                .counters
                .sending_fails
                .store(fails, Ordering::Relaxed);
        }
        self.shared.lock().has_ended = true;
        self.shared.changed.notify_all();
    }

    /// Waits for the next work.
    fn next(&self) -> Work {
        let mut state = self.shared.lock();
        loop {
            let now = Instant::now();
            let first = state.spill.first();
            if let Some(end_at) = state.end_at {
                // A failure now is left to the next process.
                let is_over = now >= end_at || self.failing.is_failing();
                match first {
                    Some(waiting) if self.is_ready && !is_over => return Work::Send(waiting),
                    Some(_) if !is_over => return Work::Prepare,
                    _ => return Work::End,
                }
            }
            let mut until = self.keep_at;
            if now < self.retry_at && self.failing.is_failing() {
                until = self.retry_at;
            } else if !self.is_ready {
                return Work::Prepare;
            } else if let Some(waiting) = first {
                return Work::Send(waiting);
            } else if now >= self.keep_at {
                return Work::Keep;
            }
            let left = until.saturating_duration_since(now);
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    fn pause(&self) -> Duration {
        let pause = self.failing.pause(RETRY_PAUSE, RETRY_DOUBLINGS);
        let half = pause.unwrap_or(RETRY_PAUSE) / 2;
        half + half.mul_f64((random() % 1024) as f64 / 1024.0)
    }

    fn prepare(&mut self) -> Result<(), Error> {
        let database = &self.shared.settings.database;
        migrate::prepare(&mut self.client, database)?;
        self.is_ready = true;
        let database = database.clone();
        self.shared.reports.send(Report::Connected { database });
        Ok(())
    }

    /// Deletes rows beyond the retention time. A failure is no reason to keep batches.
    fn keep(&mut self) -> Result<(), Error> {
        self.keep_at = Instant::now() + KEEP_PAUSE;
        // A lost table is found here at the latest.
        self.is_ready = false;
        let settings = &self.shared.settings;
        migrate::prepare(&mut self.client, &settings.database)?;
        self.is_ready = true;
        let deleted = keep::drop_old(&mut self.client, &settings.database, &settings.retention)?;
        let counters = &self.shared.counters;
        counters.deleted_rows.fetch_add(deleted, Ordering::Relaxed);
        Ok(())
    }

    fn send(&mut self, waiting: Waiting) -> Result<(), Error> {
        let path = self.shared.lock().spill.path_of(&waiting);
        let (head, rows) = match batch::read(&path) {
            Err(ReadError::Damaged(reason)) => return self.move_aside(reason),
            Err(ReadError::System(error)) => return Err(error),
            Ok(read) => read,
        };
        if waiting.attempted {
            self.shared.counters.retries.fetch_add(1, Ordering::Relaxed);
        }
        match self.store(&head, &rows, waiting.attempted) {
            Ok(()) => {}
            Err(failure) => return self.failed(failure),
        }
        let mut state = self.shared.lock();
        let deleted = state.spill.delete_first();
        self.shared.count(&state.spill);
        drop(state);
        deleted?;
        let counters = &self.shared.counters;
        counters.batches_sent.fetch_add(1, Ordering::Relaxed);
        if head.is_counted() {
            counters.written.fetch_add(head.rows, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Stores a batch in all tables that lack it.
    fn store(&mut self, head: &BatchHead, rows: &[u8], again: bool) -> Result<(), Failure> {
        let database = &self.shared.settings.database;
        let id = format!("firstbyte-{:016x}-{}", head.run, head.batch);
        let structure = match head.kind {
            Kind::Connections => sql::structure(&sql::COLUMNS),
            Kind::Open => sql::structure(&sql::OPEN_COLUMNS),
            Kind::Visits | Kind::Arms | Kind::Settings => experiments::incoming(head.kind),
        };
        let incoming = Incoming {
            structure: &structure,
            rows,
        };
        let text = match head.kind {
            Kind::Open => Some(sql::insert_open(database)),
            Kind::Visits | Kind::Arms | Kind::Settings => {
                Some(experiments::insert(database, head, rows))
            }
            Kind::Connections => None,
        };
        if let Some(text) = text {
            return self.client.insert(&text, &id, &SETTINGS, Some(&incoming));
        }
        let batch = BatchRows {
            day: head.first_s / 86_400,
            first_s: head.first_s,
            last_s: head.last_s,
            run: head.run,
            batch: head.batch,
            server: encode::first_server(rows),
        };
        let text = sql::insert_rows(database, &batch);
        self.client.insert(&text, &id, &SETTINGS, Some(&incoming))?;
        if again {
            for rollup in sql::ROLLUPS {
                let markers = sql::markers(database, rollup.0, &batch);
                let found = self
                    .client
                    .query(&format!("{markers} FORMAT TabSeparated"))?;
                if found.trim() != "0" {
                    continue;
                }
                // The statement checks again: another one may have been quicker.
                let text = sql::repair(database, rollup, &batch);
                self.client.insert(&text, &id, &SETTINGS, None)?;
            }
        }
        Ok(())
    }

    fn failed(&mut self, failure: Failure) -> Result<(), Error> {
        if !matches!(failure, Failure::NotSent(_)) {
            self.shared.lock().spill.note_attempt();
        }
        match failure.code() {
            Some(UNKNOWN_TABLE | UNKNOWN_DATABASE) => self.is_ready = false,
            Some(code) if UNREADABLE.contains(&code) => {
                return self.move_aside(failure.to_string());
            }
            _ => {}
        }
        Err(failure.into())
    }

    fn move_aside(&self, reason: String) -> Result<(), Error> {
        let mut state = self.shared.lock();
        let damaged = state.spill.move_first_aside(reason)?;
        self.shared.count(&state.spill);
        drop(state);
        if let Some(Damaged { to, reason }) = damaged {
            let counters = &self.shared.counters;
            counters.moved_aside.fetch_add(1, Ordering::Relaxed);
            self.shared.reports.send(Report::MovedAside { to, reason });
        }
        Ok(())
    }
}
