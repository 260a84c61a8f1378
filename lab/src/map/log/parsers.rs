//! Threads that parse blocks.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;

use super::Countries;
use super::cutter::Block;
use super::line::LineFormat;
use super::report::Report;
use super::tally::{Origin, Tally};

/// A block to parse.
pub(super) struct Work {
    pub(super) block: Block,
    pub(super) origin: Origin,
    pub(super) formats: Arc<Vec<LineFormat>>,
}

/// The tallies of all threads.
pub(super) struct Tallies(Vec<Mutex<Tally>>);

impl Tallies {
    pub(super) fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| Mutex::default()).collect())
    }

    /// Adds all figures to a report.
    pub(super) fn add_to(&self, report: &mut Report) {
        for tally in &self.0 {
            let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.add_to(&mut report.map, &mut report.counts);
        }
    }
}

/// The way of blocks to the threads.
pub(super) struct Parsers<'t> {
    countries: Countries<'t>,
    way: Way<'t>,
    kept: Option<Block>,
}

enum Way<'t> {
    /// One thread does it all.
    Here(&'t Mutex<Tally>),
    Threads {
        work: SyncSender<Work>,
        spare: Receiver<Block>,
        /// Blocks that may still be allocated.
        new: usize,
    },
}

impl<'t> Parsers<'t> {
    /// Starts the threads. They end when this is dropped.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(super) fn start<'s>(
        scope: &'s Scope<'s, 't>,
        tallies: &'t Tallies,
        countries: Countries<'t>,
    ) -> std::io::Result<Self> {
        if let [tally] = &tallies.0[..] {
            return Ok(Self {
                countries,
                way: Way::Here(tally),
                kept: None,
            });
        }
        let threads = tallies.0.len();
        let (work, queue) = sync_channel(threads);
        let (parsed, spare) = channel();
        let queue = Arc::new(Mutex::new(queue));
        for tally in &tallies.0 {
            let (queue, parsed) = (Arc::clone(&queue), parsed.clone());
            let thread = std::thread::Builder::new().name("parser".to_owned());
            thread.spawn_scoped(scope, move || parse(&queue, &parsed, tally, countries))?;
        }
        let way = Way::Threads {
            work,
            spare,
            // One for each thread, one for each place of the queue, and one of each stream that is cut.
            new: 2 * threads + 1,
        };
        Ok(Self {
            countries,
            way,
            kept: None,
        })
    }

    /// An empty block, when there is one.
    pub(super) fn spare(&mut self) -> Block {
        if let Some(block) = self.kept.take() {
            return block;
        }
        match &mut self.way {
            Way::Here(_) => Block::default(),
            Way::Threads { spare, new, .. } => {
                if let Ok(block) = spare.try_recv() {
                    return block;
                }
                if *new > 0 {
                    *new -= 1;
                    return Block::default();
                }
                // The threads are gone after a panic, which the scope passes on.
                spare.recv().unwrap_or_default()
            }
        }
    }

    /// Takes a block back that was not used.
    pub(super) fn give_back(&mut self, block: Block) {
        self.kept = Some(block);
    }

    /// Parses a block, or hands it to a thread.
    pub(super) fn send(&mut self, work: Work) {
        match &mut self.way {
            Way::Here(tally) => {
                let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
                let bytes = work.block.bytes();
                tally.block(bytes, work.origin, &work.formats, self.countries);
                self.kept = Some(work.block);
            }
            Way::Threads { work: queue, .. } => drop(queue.send(work)),
        }
    }
}

fn parse(
    queue: &Mutex<Receiver<Work>>,
    parsed: &Sender<Block>,
    tally: &Mutex<Tally>,
    countries: Countries<'_>,
) {
    let next = || {
        let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.recv()
    };
    while let Ok(work) = next() {
        // Nobody else holds it, but for the moment of a report.
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.block(work.block.bytes(), work.origin, &work.formats, countries);
        drop(tally);
        let _ = parsed.send(work.block);
    }
}
