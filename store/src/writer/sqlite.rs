//! SQLite as an engine of the writer: opens the file, replaces a damaged one, and maintains it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::engine::{Batch, Engine};
use crate::clock::{ClockWatch, wall_s};
use crate::counters::{Counters, Report, Reports};
use crate::error::Error;
use crate::experiment::ExperimentSettings;
use crate::retention::Retention;
use crate::sqlite::{MovedAside, Opened, Sqlite};

/// Rows of one transaction.
const BATCH_ROWS: usize = 8192;
/// Time between two roll-ups, and between two looks for old rows.
const MAINTAIN_PAUSE: Duration = Duration::from_secs(60);
/// Number of rows after which a roll-up waits no longer.
const ROLL_ROWS: u64 = 100_000;
/// Time of one maintenance; rows wait meanwhile.
const MAINTAIN_TIME: Duration = Duration::from_millis(200);

/// A file, kept open while it can be written.
pub(super) struct SqliteEngine {
    path: PathBuf,
    retention: Retention,
    counters: Arc<Counters>,
    reports: Reports,
    store: Option<Sqlite>,
    /// Stored settings of experiments by name: they are offered once, and another file needs them.
    settings: BTreeMap<String, (u64, ExperimentSettings)>,
    /// Whether the file was opened since the settings were stored.
    is_reopened: bool,
    /// Since the first maintenance.
    clock: Option<ClockWatch>,
}

impl SqliteEngine {
    pub(super) fn new(
        path: PathBuf,
        retention: Retention,
        counters: Arc<Counters>,
        reports: Reports,
    ) -> Self {
        Self {
            path,
            retention,
            counters,
            reports,
            store: None,
            settings: BTreeMap::new(),
            is_reopened: false,
            clock: None,
        }
    }

    /// Does a piece of work, in a new file if the old one turns out to be damaged.
    fn attempt<T>(
        &mut self,
        mut work: impl FnMut(&mut Self, &mut Sqlite) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut once = |engine: &mut Self| {
            let mut store = engine.open()?;
            let restored = engine.restore_settings(&mut store);
            let done = restored.and_then(|()| work(engine, &mut store));
            engine.store = Some(store);
            done
        };
        match once(self) {
            Err(Error::Damaged(reason)) => {
                self.replace(&reason)?;
                // A second failure is that of the new file.
                once(self)
            }
            done => done,
        }
    }

    /// Returns the open store. If its path leads to another file, that file is opened.
    fn open(&mut self) -> Result<Sqlite, Error> {
        if let Some(store) = self.store.take_if(|store| store.is_in_place()) {
            return Ok(store);
        }
        self.store = None;
        let opened = Sqlite::open(&self.path)?;
        Ok(self.opened(opened))
    }

    /// Stores the settings of experiments in a file opened after them. Most files have them already.
    fn restore_settings(&mut self, store: &mut Sqlite) -> Result<(), Error> {
        if self.is_reopened && !self.settings.is_empty() {
            store.restore_settings(self.settings.values())?;
        }
        self.is_reopened = false;
        Ok(())
    }

    fn replace(&mut self, reason: &str) -> Result<(), Error> {
        if let Some(store) = self.store.take() {
            let opened = store.replace(reason)?;
            self.store = Some(self.opened(opened));
        }
        Ok(())
    }

    fn opened(&mut self, Opened { store, moved_aside }: Opened) -> Sqlite {
        if let Some(MovedAside { to, reason }) = moved_aside {
            self.counters.moved_aside.fetch_add(1, Ordering::Relaxed);
            self.reports.send(Report::MovedAside { to, reason });
        }
        self.is_reopened = true;
        let path = store.path().to_owned();
        self.reports.send(Report::Opened { path });
        store
    }

    /// Time of the wall clock, or 0 if it is not trusted: then nothing counts as old.
    fn now_s(&mut self, newest_s: Option<u64>) -> u64 {
        let (now_s, now) = (wall_s(), Instant::now());
        let clock = self
            .clock
            .get_or_insert_with(|| ClockWatch::new(newest_s, now_s, now));
        if clock.is_trusted(now_s, now) {
            now_s
        } else {
            0
        }
    }
}

impl Engine for SqliteEngine {
    fn rows_max(&self) -> usize {
        BATCH_ROWS
    }

    fn commit(&mut self, batch: &mut Batch) -> Result<(), Error> {
        self.attempt(|_, store| store.commit_all(&batch.rows, &batch.open, &batch.experiments))?;
        let counters = &self.counters;
        counters
            .written
            .fetch_add(batch.counted(), Ordering::Relaxed);
        let settings = batch.experiments.settings.drain(..);
        self.settings
            .extend(settings.map(|row| (row.1.name.clone(), row)));
        batch.clear();
        Ok(())
    }

    fn maintain(&mut self) -> Result<Instant, Error> {
        let begin = Instant::now();
        let (done, size) = self.attempt(|engine, store| {
            let now_s = engine.now_s(store.newest_s()?);
            let done = store.maintain(now_s, &engine.retention, MAINTAIN_TIME)?;
            Ok((done, store.size_bytes()?))
        })?;
        let counters = &self.counters;
        counters.file_bytes.store(size, Ordering::Relaxed);
        counters
            .deleted_rows
            .fetch_add(done.deleted_rows, Ordering::Relaxed);
        Ok(if done.more {
            Instant::now()
        } else {
            begin + MAINTAIN_PAUSE
        })
    }

    fn is_maintenance_due(&self, rows: u64) -> bool {
        rows >= ROLL_ROWS
    }

    fn note_failure(&mut self, error: &Error) {
        if matches!(error, Error::ReadOnly | Error::Other(_)) {
            // Its descriptors may be unusable after a remount or an error of the device.
            self.store = None;
        }
    }

    fn close(&mut self) {
        self.store = None;
    }
}
