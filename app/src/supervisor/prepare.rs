//! HUP where the supervisor's own settings do not change: only the worker interprets the files.
//!
//! Most reloads change what the worker serves, not what the supervisor opens. So what the last load has asked for is read
//! again, as far as it has changed, and the worker builds the configuration of it, without serving it yet. If that asks for
//! nothing else, and says the same to the supervisor as the one before (see `Cycle::fingerprint`), then the supervisor opens
//! the same again, as at each reload, and the worker changes over. In all other cases, errors included, the supervisor reads
//! and judges the configuration itself, and nothing has happened until then.
//!
//! The worker decides nothing that is not its own: what the supervisor does is what it has found in a text itself.

use std::ops::ControlFlow::Continue;
use std::time::{Duration, Instant};

use driver::bundle::ToWorker;

use super::open::OpenConfig;
use super::state::{Flow, Phase, Preparing, Supervisor};
use super::worker::{Worker, needs_new_worker};
use crate::console::Logged;
use crate::load;

impl Supervisor {
    /// Has the worker prepare what the files say now; false where the supervisor must look into them.
    pub(super) fn prepare(&mut self) -> bool {
        let Some(worker) = self.preparing_worker() else {
            return false;
        };
        let Some(record) = load::repeated(&self.current.read()) else {
            return false;
        };
        let number = self.generations + 1;
        let Ok(bundle) = self.current.preparation(number, &record, &self.options) else {
            return false;
        };
        self.generations = number;
        self.preparing = Some(Preparing {
            number,
            worker,
            record,
            due: Instant::now() + WAIT,
        });
        self.tell(worker, &ToWorker::Configure(Box::new(bundle)));
        true
    }

    /// The worker that serves, if nothing else is on its way to it.
    fn preparing_worker(&self) -> Option<u64> {
        let is_steady = self.phase == Phase::Serving
            && self.earlier.is_empty()
            && self.reloading.is_none()
            && self.built.is_none();
        // What is watched is found in the text, which has to be looked into.
        if !is_steady || !self.current.watches.is_empty() {
            return None;
        }
        let OpenConfig { number, main, .. } = &self.current;
        let serves = |worker: &&Worker| {
            !worker.leaving
                && worker.generation == *number
                && !needs_new_worker(&worker.process, main)
        };
        self.workers.iter().find(serves).map(|worker| worker.id)
    }

    /// A worker has built what it was to prepare: opens what belongs to it.
    pub(super) fn prepared(&mut self, number: u64) -> Flow {
        let is_it = |preparing: &mut Preparing| preparing.number == number;
        let Some(preparing) = self.preparing.take_if(is_it) else {
            return Continue(());
        };
        self.console.warnings(self.current.warnings());
        let loaded = self.current.again(preparing.record);
        match self.open(number, loaded) {
            Ok(next) => self.try_reload(next.prepared_by(preparing.worker), 0),
            Err(Logged) => {
                self.notify.refused(&self.console);
                Continue(())
            }
        }
    }

    /// A worker cannot build a generation. True if that was only to be prepared: then the supervisor looks into it.
    pub(super) fn is_unprepared(&mut self, number: u64) -> bool {
        let is_it = |preparing: &mut Preparing| preparing.number == number;
        self.preparing.take_if(is_it).is_some()
    }

    /// Looks into the files itself where the worker that was to prepare them is gone, or does not answer.
    pub(super) fn prepare_otherwise(&mut self, now: Instant) -> Flow {
        let workers = &self.workers;
        let is_lost = |preparing: &mut Preparing| {
            let is_it = |worker: &Worker| worker.id == preparing.worker && !worker.leaving;
            preparing.due <= now || !workers.iter().any(is_it)
        };
        match self.preparing.take_if(is_lost) {
            Some(_) => self.reload_whole(),
            None => Continue(()),
        }
    }
}

/// Time limit of a worker for preparing a configuration, which is enough for half a second of work on CPUs that serving takes
/// nearly whole. One that hangs must not keep a reload that starts another.
const WAIT: Duration = Duration::from_secs(5);
