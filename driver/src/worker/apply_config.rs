//! Configurations that the supervisor sends: built at once, or first prepared and then served.

use std::sync::Arc;

use conf::Memory;
use server_base::errlog::Level;
use server_http::meters::{self, Event};

use super::Worker;
use super::keeper::{Built, Keeper};
use super::samples::SampleChannel;
use crate::bundle::{Bundle, FromWorker, Step};

impl Worker {
    /// Serves by a new configuration, or stays with the one before.
    pub(super) fn configure(&mut self, bundle: Bundle) {
        let generation = bundle.generation;
        let built = match self.built(bundle) {
            Ok(built) => built,
            Err(message) => {
                meters::event(Event::ReloadFailed);
                return self.say(FromWorker::Failed {
                    generation,
                    message,
                });
            }
        };
        let Built {
            bundle,
            mut cycle,
            mut keeper,
        } = built;
        let first = self.threads.is_empty();
        if let Some(http) = &mut cycle.http {
            let unshared = Arc::get_mut(http).expect("nobody else has got it yet");
            self.places.arrange(unshared);
            keeper.keep(http);
        }
        self.keepers.push(keeper);
        let applied = self.apply(bundle, cycle);
        match &applied {
            // What was needed to build it is not needed again soon.
            Ok(()) if first => self.settle_memory(),
            Ok(()) => meters::event(Event::Reload),
            Err(_) => meters::event(Event::ReloadFailed),
        }
        match applied {
            Ok(()) => self.say(FromWorker::Ready { generation }),
            Err(message) => self.say(FromWorker::Failed {
                generation,
                message,
            }),
        }
    }

    /// Sends samples over this channel from now on. If that fails, requests are served all the same.
    pub(super) fn attach_samples(&self, channel: Option<SampleChannel>) {
        if let Err(error) = self.samples.attach(channel) {
            let reason = sys::os_error(&error);
            let text = format_args!("connections are not recorded ({reason})");
            self.log.write(Level::Alert, text);
        }
    }

    /// Builds a configuration, or takes the one that was prepared. One that was prepared for nothing goes.
    fn built(&mut self, mut bundle: Bundle) -> Result<Built, String> {
        let prepared = self.prepared.take();
        if bundle.step != Step::Commit {
            drop(prepared);
            return self.build(bundle);
        }
        let is_it = |built: &Built| built.bundle.generation == bundle.generation;
        let mut built = prepared
            .filter(is_it)
            .ok_or("the configuration was not prepared")?;
        built.bundle.listeners = std::mem::take(&mut bundle.listeners);
        built.bundle.logs = std::mem::take(&mut bundle.logs);
        built.bundle.samples = bundle.samples.take();
        Ok(built)
    }

    fn build(&mut self, mut bundle: Bundle) -> Result<Built, String> {
        let texts = self.texts(&mut bundle)?;
        let (load, generation) = (Arc::clone(&self.load), bundle.generation);
        let (built, texts) = Keeper::build(bundle, move |bundle| load(bundle, texts), &self.ended)?;
        self.texts = Some((generation, texts));
        Ok(built)
    }

    /// All that the configuration of a bundle is read from but what it has open.
    fn texts(&self, bundle: &mut Bundle) -> Result<Memory, String> {
        let Step::Prepare {
            base: Some(base), ..
        } = bundle.step
        else {
            return Ok(bundle.take_texts(Memory::default()));
        };
        match &self.texts {
            Some((generation, texts)) if *generation == base => {
                Ok(bundle.take_texts(texts.clone()))
            }
            Some(_) | None => Err("the files are those of another generation".to_owned()),
        }
    }

    /// Builds a configuration, and keeps it until it is to be served.
    pub(super) fn prepare(&mut self, bundle: Bundle) {
        let generation = bundle.generation;
        let said = match self.built(bundle) {
            Ok(built) => {
                self.prepared = Some(built);
                FromWorker::Prepared { generation }
            }
            // Why is told by the supervisor, once it has found it itself.
            Err(_) => FromWorker::Unprepared { generation },
        };
        self.say(said);
    }
}
