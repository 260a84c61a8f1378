//! Looking up the files of a turn's requests before the first of them is answered.
//!
//! The loop tells of each request when it was read ([`FileCache::expect`]), of a group before its answers
//! ([`FileCache::prefetch_requests`]), and of each answer. How a request leads to a file is in `prefetch`, the directory that looks
//! start at in `base_dir`. Absent: anything that decides what a request gets.

use engines::http::RequestHead;

use super::FileCache;
use crate::io::prefetch::{NO_PLACE, PREFETCHED_FROM, Prefetcher};

impl FileCache {
    /// Whether [`FileCache::expect`] is to be called.
    #[inline]
    pub fn prefetches(&self) -> bool {
        self.prefetcher.is_some()
    }

    /// Adds a request to those that will be answered in this turn, in their order; `None` where a connection has none.
    #[inline]
    pub fn expect(&mut self, head: Option<&RequestHead>) {
        if let Some(prefetcher) = &mut self.prefetcher {
            prefetcher.expect(head);
        }
    }

    /// Prepares for the next `count` requests: asks for the memory that they probably need, and where many have come looks at
    /// the directory that their files lie below.
    #[inline]
    pub fn prefetch_requests(&mut self, count: usize) {
        let Some(prefetcher) = &mut self.prefetcher else {
            return;
        };
        prefetcher.prefetch_requests(count, self.memory.entries());
        let requests = prefetcher.requests();
        self.has_many |= requests >= BASE_FROM;
        if requests >= BASE_FROM || requests >= WATCHED_FROM && self.memory.is_watched() {
            self.memory.check_base(self.input_reads);
        }
    }

    /// Begins the answer to the next of the requests that are expected.
    #[inline]
    pub fn begin_expected(&mut self) {
        if let Some(prefetcher) = &mut self.prefetcher {
            let place = prefetcher.begin(self.memory.entries());
            self.memory.set_guess(place);
        }
    }

    /// Notes which file it was for.
    #[inline]
    pub fn end_expected(&mut self) {
        if let Some(prefetcher) = &mut self.prefetcher {
            match self.memory.set_guess(NO_PLACE) {
                NO_PLACE => {}
                place => prefetcher.record(place),
            }
        }
    }

    /// Forgets the requests of the turn. From [`PREFETCHED_FROM`] kept files on, the requests of the next one are looked up.
    #[inline]
    pub fn end_turn(&mut self) {
        match &mut self.prefetcher {
            Some(prefetcher) => prefetcher.end(),
            None if self.memory.len() >= PREFETCHED_FROM => {
                self.prefetcher = Some(Box::new(Prefetcher::new(self.memory.limit())));
            }
            None => {}
        }
    }

    /// Whether the next file that is asked for is probably not kept, and the memory that would tell is far.
    #[inline]
    pub(super) fn is_probably_new(&self) -> bool {
        self.mostly_missed && self.prefetcher.is_some() && !self.memory.has_guess()
    }

    /// Counts a file that was not kept. Where fewer were kept since the last [`MISSES_COMPARED`] of these, the kernel is not left
    /// to watch their directories until the next sweep.
    pub(super) fn count_miss(&mut self) {
        self.figures.misses += 1;
        if self.figures.misses.is_multiple_of(MISSES_COMPARED) {
            let before = std::mem::replace(&mut self.compared, self.figures.hits);
            self.mostly_missed = self.figures.hits - before < MISSES_COMPARED;
            if self.mostly_missed {
                self.memory.end_watch();
            }
        }
    }

    /// Opens the directory that files lie below if many requests have come together since the last call, else lets it rest.
    pub(super) fn choose_base(&mut self) {
        let counts = (self.figures.hits, self.figures.misses);
        let before = std::mem::replace(&mut self.swept, counts);
        let (hits, misses) = (counts.0 - before.0, counts.1 - before.1);
        self.mostly_missed &= hits < misses;
        let looks = self.memory.take_looks() + self.descriptors.take_looks();
        let reads = self.input_reads;
        match std::mem::take(&mut self.has_many) {
            true => self.memory.choose_base(reads, looks, hits, misses),
            false => self.memory.rest_base(),
        }
    }
}

/// Misses after which they are compared with hits.
const MISSES_COMPARED: u64 = 256;
/// The fewest requests of a turn for which the directory that their files lie below is looked at: that look costs as much as
/// three looks at files from there save.
const BASE_FROM: usize = 8;
/// The fewest requests of a turn where the directory is watched, so that its look saves those at files.
const WATCHED_FROM: usize = 2;

#[cfg(test)]
#[path = "prefetch_tests.rs"]
mod tests;
