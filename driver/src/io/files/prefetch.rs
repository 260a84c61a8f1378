//! Prefetches cached files of a turn's requests before the first request is answered.
//!
//! The loop calls [`FileCache::expect`] for each request that was read, [`FileCache::prefetch_requests`] before a group
//! of responses, and begin and end calls around each response. `prefetch` maps requests to files. `base_dir` holds the
//! directory at which lookups start. Nothing here changes a response.

use engines::http::RequestHead;

use super::FileCache;
use crate::io::prefetch::{NO_PLACE, PREFETCHED_FROM, Prefetcher};

impl FileCache {
    /// Whether the caller must call [`FileCache::expect`].
    #[inline]
    pub fn prefetches(&self) -> bool {
        self.prefetcher.is_some()
    }

    /// Adds the next request of this turn, in order of the responses; `None` for a connection without a request head.
    #[inline]
    pub fn expect(&mut self, head: Option<&RequestHead>) {
        if let Some(prefetcher) = &mut self.prefetcher {
            prefetcher.expect(head);
        }
    }

    /// Prepares for the next `count` requests: prefetches the memory that they probably need. If the turn has many
    /// requests, also checks the common directory of the files.
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

    /// Begins the response to the next expected request.
    #[inline]
    pub fn begin_expected(&mut self) {
        if let Some(prefetcher) = &mut self.prefetcher {
            let place = prefetcher.begin(self.memory.entries());
            self.memory.set_guess(place);
        }
    }

    /// Records the cached file that the response used.
    #[inline]
    pub fn end_expected(&mut self) {
        if let Some(prefetcher) = &mut self.prefetcher {
            match self.memory.set_guess(NO_PLACE) {
                NO_PLACE => {}
                place => prefetcher.record(place),
            }
        }
    }

    /// Forgets the requests of the turn. Prefetching begins in the turn after [`PREFETCHED_FROM`] files are cached.
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

    /// Whether the next path is probably not cached, and the memory of its hash-table entry probably not in the CPU's
    /// cache.
    #[inline]
    pub(super) fn is_probably_new(&self) -> bool {
        self.mostly_missed && self.prefetcher.is_some() && !self.memory.has_guess()
    }

    /// Counts a miss. Every [`MISSES_COMPARED`] misses, compares them with the hits since the last comparison. If there
    /// were fewer hits, ends the watch of directories before the next sweep.
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

    /// Opens the common directory of the files if a turn since the last call had many requests. Otherwise closes it.
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

/// Number of misses between two comparisons with hits.
const MISSES_COMPARED: u64 = 256;
/// Minimum number of requests of a turn for which the common directory is checked. The check costs what three lookups
/// from there save.
const BASE_FROM: usize = 8;
/// Minimum while the directory is watched: the check then saves the lookups of files.
const WATCHED_FROM: usize = 2;

#[cfg(test)]
#[path = "prefetch_tests.rs"]
mod tests;
