//! Analyses of experiments, kept for a while and made one at a time.
//!
//! An analysis of a million users takes seconds. A thread of its own makes it, so a page waits for a moment at most; one page
//! waits at a time, so the other query thread stays free. Meanwhile pages show the last analysis.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::site::Source;
use crate::experiment::{AnalysisError, Options, Report, analysis};
use crate::time::now_s;

/// Name of an experiment, and whether it is an A/A test.
pub(super) type Key = (String, bool);

/// Analyses that all threads share.
pub(super) struct Analyses {
    shared: Arc<Shared>,
}

/// Result of a look-up.
#[derive(Clone, Debug)]
pub(super) enum Found {
    /// A report.
    Report { report: Arc<Report>, age: Age },
    /// The first report is in progress.
    InProgress,
    /// The store has no such experiment.
    Unknown,
    /// The analysis failed.
    Failed(String),
}

/// Age of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// The report is the newest one.
    New,
    /// A newer report is in progress.
    Old,
    /// The analyses since have failed; the reason of the last one.
    Failed(String),
}

struct Shared {
    source: Arc<dyn Source>,
    state: Mutex<State>,
    changed: Condvar,
    limits: Limits,
}

/// Times of analyses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Age at which an analysis is made anew.
    pub(super) life: Duration,
    /// Time from a failure to the next analysis.
    pub(super) error_life: Duration,
    /// Time that a page waits for an analysis.
    pub(super) wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            life: LIFE,
            error_life: ERROR_LIFE,
            wait: WAIT,
        }
    }
}

#[derive(Default)]
struct State {
    entries: HashMap<Key, Entry>,
    running: Option<Key>,
    is_awaited: bool,
}

struct Entry {
    at: Instant,
    result: Result<Arc<Report>, AnalysisError>,
    /// The last analysis, if it failed after this report.
    failure: Option<Failure>,
}

/// Time and reason of a failed analysis.
type Failure = (Instant, String);

impl Analyses {
    pub(super) fn new(source: Arc<dyn Source>, limits: Limits) -> Self {
        let shared = Shared {
            source,
            state: Mutex::default(),
            changed: Condvar::new(),
            limits,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Whether an analysis is kept or in progress.
    pub(super) fn has(&self, key: &Key) -> bool {
        let state = self.shared.lock();
        state.entries.contains_key(key) || state.running.as_ref() == Some(key)
    }

    /// Returns the analysis of an experiment; starts one if it is missing or old, and no other is in progress.
    pub(super) fn find(&self, key: &Key) -> Found {
        let shared = &self.shared;
        let mut state = shared.lock();
        if let Some(found) = state.fresh(key, shared.limits) {
            return found;
        }
        if state.running.is_none() {
            state.running = Some(key.clone());
            if let Err(reason) = self.start(key.clone()) {
                state.running = None;
                return Found::Failed(reason);
            }
        }
        let is_own = |state: &mut State| state.running.as_ref() == Some(key);
        if state.is_awaited || !is_own(&mut state) {
            return state.old(key);
        }
        state.is_awaited = true;
        let waited = shared
            .changed
            .wait_timeout_while(state, shared.limits.wait, |state| is_own(state));
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_awaited = false;
        match state.fresh(key, shared.limits) {
            Some(found) => found,
            None => state.old(key),
        }
    }

    /// Starts an analysis on a thread of its own.
    fn start(&self, key: Key) -> Result<(), String> {
        let shared = Arc::clone(&self.shared);
        let run = move || {
            let mut running = Running {
                shared: &shared,
                key: &key,
                result: None,
            };
            running.result = Some(shared.make(&key));
        };
        let started = thread::Builder::new()
            .name("lab-analysis".to_owned())
            .spawn(run);
        match started {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("the analysis cannot be started: {error}")),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is complete at once, so a panic elsewhere leaves the state whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, key: &Key) -> Result<Arc<Report>, AnalysisError> {
        let store = self.source.open().map_err(AnalysisError::Store)?;
        let options = Options {
            is_a_a: key.1,
            ..Options::default()
        };
        let at_s = now_s().saturating_sub(LAG_S);
        analysis(store.as_ref(), &key.0, at_s, &options).map(Arc::new)
    }
}

/// An analysis in progress. Its end is noted even if it panics.
struct Running<'a> {
    shared: &'a Shared,
    key: &'a Key,
    result: Option<Result<Arc<Report>, AnalysisError>>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let fault = || {
            Err(AnalysisError::Store(
                "the analysis failed; please report this".to_owned(),
            ))
        };
        let result = self.result.take().unwrap_or_else(fault);
        let mut state = self.shared.lock();
        state.insert(
            self.key.clone(),
            Entry {
                at: Instant::now(),
                result,
                failure: None,
            },
        );
        state.running = None;
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl Entry {
    /// Returns the report, and the failure after it.
    fn report(&self) -> Option<(&Arc<Report>, Option<&Failure>)> {
        let report = self.result.as_ref().ok()?;
        Some((report, self.failure.as_ref()))
    }
}

impl State {
    /// Returns an entry that is new enough, or a report with a new failure. Failures are shown for a moment, then tried again.
    fn fresh(&self, key: &Key, limits: Limits) -> Option<Found> {
        let entry = self.entries.get(key)?;
        let is_new = |at: Instant, life: Duration| at.elapsed() < life;
        match (&entry.result, &entry.failure) {
            (Ok(report), None) if is_new(entry.at, limits.life) => Some(Found::Report {
                report: Arc::clone(report),
                age: Age::New,
            }),
            (Ok(_), Some((at, _))) if is_new(*at, limits.error_life) => Some(self.old(key)),
            (Err(error), _) if is_new(entry.at, limits.error_life) => Some(match error {
                AnalysisError::Unknown(_) => Found::Unknown,
                AnalysisError::Store(reason) => Found::Failed(reason.clone()),
            }),
            _ => None,
        }
    }

    /// Returns the last report, however old it is.
    fn old(&self, key: &Key) -> Found {
        let Some((report, failure)) = self.entries.get(key).and_then(Entry::report) else {
            return Found::InProgress;
        };
        let failed = |(_, reason): &Failure| Age::Failed(reason.clone());
        Found::Report {
            report: Arc::clone(report),
            age: failure.map_or(Age::Old, failed),
        }
    }

    fn insert(&mut self, key: Key, entry: Entry) {
        // A new error replaces no report: both are shown until the next report.
        if let Err(AnalysisError::Store(reason)) = &entry.result
            && let Some(old) = self.entries.get_mut(&key)
            && old.result.is_ok()
        {
            old.failure = Some((entry.at, reason.clone()));
            return;
        }
        self.entries.insert(key, entry);
        while self.entries.len() > ENTRIES_MAX {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.at);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            self.entries.remove(&oldest);
        }
    }
}

/// Age at which an analysis is made anew.
const LIFE: Duration = Duration::from_secs(60);
/// Time for which an error is shown, and from a failure to the next analysis.
const ERROR_LIFE: Duration = Duration::from_secs(2);
/// Time that a page waits for an analysis.
const WAIT: Duration = Duration::from_secs(2);
/// Analyses that are kept.
const ENTRIES_MAX: usize = 64;
/// Time that recorded visits take to be stored, seconds.
pub(super) const LAG_S: u64 = 5;
