//! `kill_switch`: a file that ends an experiment at once, without a reload.
//!
//! A task of the worker's main thread checks the file once a second, so requests do not touch the file system. A
//! directory that cannot be searched also ends the experiment, since the file may be there. States outlive a reload.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use conf::{Stamp, os_error};
use server_base::errlog::{ErrorLog, Level};
use server_base::periodic_task::{PeriodicTask, TaskClock};
use server_http::experiments::KillSwitch;

/// Returns the state of a file's switch; experiments with the same file share it.
pub(super) fn of_path(path: &Path) -> Arc<KillSwitch> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|(_, switch)| switch.strong_count() > 0);
    let mut same = known.iter().filter(|(other, _)| other == path);
    if let Some(switch) = same.find_map(|(_, switch)| switch.upgrade()) {
        return switch;
    }
    drop(same);
    let switch = Arc::new(KillSwitch::default());
    known.push((path.to_owned(), Arc::downgrade(&switch)));
    switch
}

/// The switches of all configurations of this process.
static KNOWN: Mutex<Vec<(PathBuf, Weak<KillSwitch>)>> = Mutex::new(Vec::new());

/// Looks for the file of a switch.
pub(super) struct Look {
    pub(super) path: PathBuf,
    pub(super) switch: Arc<KillSwitch>,
    is_reported: AtomicBool,
}

impl Look {
    pub(super) fn new(path: PathBuf, switch: Arc<KillSwitch>) -> Self {
        Self {
            path,
            switch,
            is_reported: AtomicBool::new(false),
        }
    }
}

impl PeriodicTask for Look {
    fn run(&self, clock: &TaskClock<'_>, log: &ErrorLog) -> Option<u64> {
        let path = self.path.display();
        let was_reported = self.is_reported.load(Ordering::Relaxed);
        let found = Stamp::of(&self.path);
        let is_absent = matches!(&found, Err(error) if error.kind() == ErrorKind::NotFound);
        let failed = found.err().filter(|_| !is_absent);
        self.is_reported.store(failed.is_some(), Ordering::Relaxed);
        let is_changed = match self.switch.is_known() {
            true => self.switch.is_live() != is_absent,
            false => !is_absent,
        };
        match &failed {
            Some(error) if !was_reported => {
                let error = os_error(error);
                let text =
                    format_args!("stat() \"{path}\" failed ({error}), its experiments are off");
                log.write(Level::Error, text);
            }
            // Nothing is written of the usual state at the first look.
            None if is_changed => {
                let state = if is_absent { "off" } else { "on" };
                let text = format_args!("kill switch \"{path}\" is {state}");
                log.write(Level::Notice, text);
            }
            _ => {}
        }
        // Views of this second may have begun before: none of them counts.
        let now_ms = u64::try_from(clock.unix_s).map_or(0, |now| now.saturating_add(1) * 1000);
        self.switch.record(is_absent, now_ms);
        Some(INTERVAL_MS)
    }
}

/// Time between two looks, milliseconds.
const INTERVAL_MS: u64 = 1000;
