//! ClickHouse as an engine of the writer: spills batches, and starts the thread that sends them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::ClickHouseSettings;
use super::batch::Kind;
use super::encode::{self, Encoded};
use super::experiments;
use super::random::random;
use super::send::Sender;
use super::shared::{Connect, Shared, State};
use super::spill::Spill;
use crate::counters::{Counters, Report, Reports};
use crate::error::Error;
use crate::experiment::ExperimentSettings;
use crate::writer::{Batch, Engine};

/// Rows of a commit at most: a batch.
const ROWS_MAX: usize = encode::ROWS_MAX;
/// Time between two looks whether the spill directory can be opened.
const MAINTAIN_PAUSE: Duration = Duration::from_secs(3600);
/// Time that the end of a writer waits for the batches on their way.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Engine of a [`Writer`](crate::Writer).
pub(crate) struct ClickHouseEngine {
    settings: ClickHouseSettings,
    /// Until the thread that sends has started.
    connect: Option<Connect>,
    counters: Arc<Counters>,
    reports: Reports,
    shared: Option<Arc<Shared>>,
    is_full: bool,
    /// Settings of experiments that did not fit into the spill directory: they are offered once.
    settings_left: Vec<(u64, ExperimentSettings)>,
}

impl ClickHouseEngine {
    pub(crate) fn new(
        settings: ClickHouseSettings,
        connect: Connect,
        counters: Arc<Counters>,
        reports: Reports,
    ) -> Self {
        Self {
            settings,
            connect: Some(connect),
            counters,
            reports,
            shared: None,
            is_full: false,
            settings_left: Vec::new(),
        }
    }

    /// Opens the spill directory, and starts the thread that sends.
    fn open(&mut self) -> Result<Arc<Shared>, Error> {
        if let Some(shared) = &self.shared {
            return Ok(Arc::clone(shared));
        }
        let (spill, damaged) = Spill::open(&self.settings.spill, self.settings.spill_bytes)?;
        for damaged in damaged {
            self.counters.moved_aside.fetch_add(1, Ordering::Relaxed);
            let (to, reason) = (damaged.to, damaged.reason);
            self.reports.send(Report::MovedAside { to, reason });
        }
        let Some(connect) = self.connect.take() else {
            return Err(Error::Other("no thread can be started".to_owned()));
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                spill,
                end_at: None,
                has_ended: false,
            }),
            changed: Condvar::new(),
            settings: self.settings.clone(),
            counters: Arc::clone(&self.counters),
            reports: self.reports.clone(),
        });
        shared.count(&shared.lock().spill);
        let of_thread = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("store send".to_owned())
            .spawn(move || Sender::new(of_thread, &connect).run())?;
        self.shared = Some(Arc::clone(&shared));
        Ok(shared)
    }

    /// Spills batches. Returns the places of spilled or dropped rows, and an error if one could not be written.
    /// Settings are not dropped.
    fn spill(&mut self, shared: &Shared, batches: Vec<Encoded>) -> (Vec<usize>, Result<(), Error>) {
        let mut places = Vec::new();
        for mut batch in batches {
            let mut state = shared.lock();
            let put = state.spill.put(&mut batch.head, &batch.rows);
            shared.count(&state.spill);
            drop(state);
            match put {
                Err(error) => return (places, Err(error)),
                Ok(true) => {
                    self.is_full = false;
                    shared.changed.notify_all();
                }
                Ok(false) => {
                    self.drop_batch(&batch);
                    if batch.head.kind == Kind::Settings {
                        continue;
                    }
                }
            }
            places.extend(batch.places);
        }
        (places, Ok(()))
    }

    /// Spills settings. If they do not fit, they wait for the next commit.
    fn spill_settings(
        &mut self,
        shared: &Shared,
        settings: &mut Vec<(u64, ExperimentSettings)>,
    ) -> Result<(), Error> {
        // Rows that remain after an error are in the batch, so the commit is tried again.
        let mut all = std::mem::take(&mut self.settings_left);
        all.append(settings);
        *settings = all;
        let (places, done) = self.spill(shared, experiments::settings(settings));
        remove(settings, places);
        done?;
        self.settings_left = std::mem::take(settings);
        Ok(())
    }

    fn drop_batch(&mut self, batch: &Encoded) {
        if batch.head.is_counted() {
            let rows = batch.head.rows;
            self.counters.dropped.fetch_add(rows, Ordering::Relaxed);
            self.counters
                .spill_dropped
                .fetch_add(rows, Ordering::Relaxed);
        }
        if !std::mem::replace(&mut self.is_full, true) {
            let limit = self.settings.spill_bytes;
            self.reports.send(Report::SpillFull { limit });
        }
    }
}

/// Takes up to a quarter off a pause at random. Servers that start together do not send together for long.
fn shortened(longest: Duration) -> Duration {
    let quarter = longest / 4;
    longest - quarter.mul_f64((random() % 1024) as f64 / 1024.0)
}

/// Removes the elements at some places.
fn remove<T>(from: &mut Vec<T>, mut places: Vec<usize>) {
    places.sort_unstable();
    let mut places = places.into_iter().peekable();
    let mut at = 0;
    from.retain(|_| {
        let is_removed = places.next_if_eq(&at).is_some();
        at += 1;
        !is_removed
    });
}

impl Engine for ClickHouseEngine {
    fn rows_max(&self) -> usize {
        ROWS_MAX
    }

    fn commit_pause(&self, longest: Duration) -> Duration {
        shortened(longest)
    }

    fn commit(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let shared = self.open()?;
        self.spill_settings(&shared, &mut batch.experiments.settings)?;
        let (places, done) = self.spill(&shared, encode::connections(&batch.rows));
        remove(&mut batch.rows, places);
        done?;
        let (places, done) = self.spill(&shared, encode::samples(&batch.open));
        remove(&mut batch.open, places);
        done?;
        let rows = &mut batch.experiments;
        let (places, done) = self.spill(&shared, experiments::arms(&rows.arms));
        remove(&mut rows.arms, places);
        done?;
        let (places, done) = self.spill(&shared, experiments::visits(&rows.visits));
        remove(&mut rows.visits, places);
        done
    }

    fn maintain(&mut self) -> Result<Instant, Error> {
        // Batches of former processes are sent even if there are no new rows.
        self.open()?;
        Ok(Instant::now() + MAINTAIN_PAUSE)
    }

    fn is_maintenance_due(&self, _: u64) -> bool {
        false
    }

    fn note_failure(&mut self, _: &Error) {}

    /// Allows the sending thread some time. If it waits for ClickHouse any longer, it is left alone: its batches
    /// stay on disk.
    fn close(&mut self) {
        let Some(shared) = self.shared.take() else {
            return;
        };
        let end_at = Instant::now() + CLOSE_WAIT;
        let mut state = shared.lock();
        state.end_at = Some(end_at);
        shared.changed.notify_all();
        loop {
            let left = end_at.saturating_duration_since(Instant::now());
            if state.has_ended || left.is_zero() {
                return;
            }
            let waited = shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use firstbyte_tests::TempDir;

    use super::super::batch;
    use super::*;
    use crate::clickhouse::{HttpRequest, HttpResponse, Transport, TransportError};
    use crate::connection::Connection;
    use crate::retention::Retention;

    /// A client without a server.
    struct Nowhere;

    impl Transport for Nowhere {
        fn send(&mut self, _: &HttpRequest<'_>) -> Result<HttpResponse, TransportError> {
            Err(TransportError::NotSent("no server".to_owned()))
        }
    }

    /// Settings are offered once, so they must not be lost.
    #[test]
    fn settings_wait_for_room() {
        let dir = TempDir::new();
        let limited = ClickHouseSettings {
            database: "lab".to_owned(),
            user: None,
            password: None,
            spill: dir.path().to_owned(),
            // Room for the connection alone, or for the settings.
            spill_bytes: 450,
            batch_pause: Duration::ZERO,
            retention: Retention::default(),
        };
        let connect: Connect = Box::new(|| Box::new(Nowhere));
        let reports = Reports::new(|_| {});
        let mut engine = ClickHouseEngine::new(limited, connect, Arc::default(), reports);
        let mut rows = Batch::default();
        rows.rows.push(Connection {
            server: "x".repeat(256),
            ..Connection::default()
        });
        engine.commit(&mut rows).expect("it is spilled");
        let shared = engine.open().expect("it is open");
        for share in [1, 2] {
            let mut settings = Batch::default();
            let changed = ExperimentSettings {
                share,
                ..ExperimentSettings::default()
            };
            settings.experiments.settings.push((7, changed));
            engine.commit(&mut settings).expect("it is possible");
            assert!(settings.is_empty());
            assert_eq!(shared.lock().spill.sizes().0, 1, "there is no room");
        }
        shared.lock().spill.delete_first().expect("it is deleted");
        engine.commit(&mut Batch::default()).expect("it is spilled");
        let state = shared.lock();
        let waiting = state.spill.first().expect("a batch");
        let (head, _) = batch::read(&state.spill.path_of(&waiting)).expect("a batch");
        assert_eq!((head.kind, head.rows), (Kind::Settings, 2));
        drop(state);
        // Nothing is left to be stored twice.
        shared.lock().spill.delete_first().expect("it is deleted");
        engine.commit(&mut Batch::default()).expect("it is spilled");
        assert_eq!(shared.lock().spill.first(), None);
        engine.close();
    }

    #[test]
    fn pauses_differ_and_are_not_longer() {
        let longest = Duration::from_secs(60);
        let pauses: Vec<_> = (0..100).map(|_| shortened(longest)).collect();
        let range = Duration::from_secs(45)..=longest;
        assert!(
            pauses.iter().all(|pause| range.contains(pause)),
            "{pauses:?}"
        );
        let (least, most) = (pauses.iter().min(), pauses.iter().max());
        assert!(most > least, "{pauses:?}");
        assert_eq!(shortened(Duration::ZERO), Duration::ZERO);
    }
}
