//! Prefetches the memory of cached files before their requests are answered.
//!
//! If many files are cached, the next one is not in the CPU's cache. Each step to it waits for memory: slot, entry,
//! bytes. All requests of a turn are known before the first one is answered. A table maps the target of a request to
//! the slot of the file opened for it last time, and many slots are prefetched together. The slot is a guess: a wrong
//! one costs time and changes no response.
//!
//! Absent: files with a descriptor, and a request that is alone in its turn.

use std::hash::{BuildHasher, Hasher};

use engines::http::{FieldId, RequestHead};
use server_base::s3_fifo::S3Fifo;
use sys::prefetch::{prefetch, prefetch_bytes};

use super::cached_files::Entry;
use super::lru::PathHash;

/// Slots of files by request target, and the requests of a turn.
#[derive(Debug)]
pub(crate) struct Prefetcher {
    hash: PathHash,
    /// Files opened for targets, indexed by the lower bits of the target's hash; in each set, the most recent is first.
    sets: Box<[[Slot; WAYS]]>,
    /// The requests of a turn, in order of their responses.
    requests: Vec<Guess>,
    /// Number of requests whose memory was prefetched.
    prefetched: usize,
    /// Number of requests whose response has begun.
    begun: usize,
}

/// Slot number of a file plus one, and above it the tag of the target; 0 for an empty slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slot(u32);

impl Slot {
    /// Returns `None` if `place` does not fit into [`PLACE_BITS`].
    fn new(tag: u32, place: u32) -> Option<Self> {
        let number = place.checked_add(1)?;
        (number >> PLACE_BITS == 0).then_some(Self(tag << PLACE_BITS | number))
    }

    fn is_of(self, tag: u32) -> bool {
        self.0 >> PLACE_BITS == tag
    }

    /// Returns [`NO_PLACE`] if it is empty.
    fn place(self) -> u32 {
        (self.0 & ((1 << PLACE_BITS) - 1)).wrapping_sub(1)
    }
}

/// A request and the file that it probably needs.
#[derive(Clone, Copy, Debug)]
struct Guess {
    /// Index of the target's set.
    set: u32,
    /// The upper bits of the target's hash.
    tag: u32,
    place: u32,
}

impl Prefetcher {
    /// Makes a table for cached files of `limit_bytes` in total.
    pub(crate) fn new(limit_bytes: u64) -> Self {
        let sets = (limit_bytes / BYTES_A_SET).clamp(SETS_LEAST, SETS_MOST);
        let sets = (sets as usize).next_power_of_two();
        Self {
            hash: PathHash::new(),
            sets: vec![[Slot::default(); WAYS]; sets].into(),
            requests: Vec::new(),
            prefetched: 0,
            begun: 0,
        }
    }

    /// Hashes the host and the target without its query.
    #[inline]
    fn hash(&self, head: &RequestHead) -> u64 {
        let target = head.bytes(head.target);
        let path = target.split(|byte| *byte == b'?').next();
        let mut hasher = self.hash.build_hasher();
        hasher.write(path.unwrap_or(target));
        hasher.write(head.field(FieldId::Host).unwrap_or_default());
        hasher.finish()
    }

    /// Adds a request of this turn; `None` for a connection without a request head.
    #[inline]
    pub(crate) fn expect(&mut self, head: Option<&RequestHead>) {
        let hash = head.map_or(0, |head| self.hash(head));
        let set = hash as usize & (self.sets.len() - 1);
        prefetch(&self.sets[set]);
        self.requests.push(Guess {
            set: set as u32,
            tag: (hash >> (32 + PLACE_BITS)) as u32,
            place: NO_PLACE,
        });
    }

    /// Prefetches memory for the next `count` requests. Each step is done for all of them before the next step, so that
    /// their waits for memory overlap.
    pub(crate) fn prefetch_requests(&mut self, count: usize, entries: &S3Fifo<Entry>) {
        let end = self.requests.len().min(self.begun + count);
        let Some(requests) = self.requests.get_mut(self.prefetched..end) else {
            return;
        };
        self.prefetched = end;
        for request in &mut *requests {
            let set = &self.sets[request.set as usize];
            let slot = set.iter().find(|slot| slot.is_of(request.tag));
            request.place = slot.map_or(NO_PLACE, |slot| slot.place());
            if let Some(slot) = entries.slot(request.place) {
                prefetch(slot);
            }
        }
        let of = |request: &Guess| Some(&entries.at(request.place)?.opened);
        for request in &*requests {
            if let Some(entry) = entries.at(request.place) {
                prefetch(&*entry.opened);
                prefetch_bytes(&entry.path, PREFETCHED_BYTES);
            }
        }
        for opened in requests.iter().filter_map(of) {
            prefetch_bytes(opened.texts(), PREFETCHED_BYTES);
        }
    }

    /// Returns the slot that the next request probably needs. Prefetches the bytes of the request after it.
    #[inline]
    pub(crate) fn begin(&mut self, entries: &S3Fifo<Entry>) -> u32 {
        let next = self.requests.get(self.begun + 1);
        if let Some(entry) = next.and_then(|next| entries.at(next.place)) {
            prefetch_bytes(entry.opened.texts(), NEXT_BYTES);
        }
        let place = self.requests.get(self.begun).map(|request| request.place);
        self.begun += 1;
        place.unwrap_or(NO_PLACE)
    }

    /// Records the slot of the file that was opened for the current request.
    #[inline]
    pub(crate) fn record(&mut self, place: u32) {
        let request = self.begun.checked_sub(1).and_then(|n| self.requests.get(n));
        if let Some(request) = request
            && request.place != place
            && let Some(slot) = Slot::new(request.tag, place)
        {
            let set = &mut self.sets[request.set as usize];
            let own = set.iter().position(|slot| slot.is_of(request.tag));
            set[..=own.unwrap_or(WAYS - 1)].rotate_right(1);
            set[0] = slot;
        }
    }

    /// Returns the number of requests of this turn.
    #[inline]
    pub(crate) fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Ends the turn.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.requests.clear();
        (self.prefetched, self.begun) = (0, 0);
    }
}

/// No slot has this number.
pub(crate) const NO_PLACE: u32 = u32::MAX;

/// Number of cached files from which on requests are prefetched. The memory of fewer files stays in the CPU's cache.
pub(crate) const PREFETCHED_FROM: usize = 512;

/// Slots per set: two targets requested in turns do not evict each other.
const WAYS: usize = 2;
/// Bits of a slot number in the table. The other bits are the tag.
const PLACE_BITS: u32 = 22;
/// Cached bytes per set. The table takes 0.8 % of `open_files_memory`; a larger one would cause more TLB misses.
const BYTES_A_SET: u64 = 1 << 10;
/// Minimum and maximum number of sets; each takes eight bytes.
const SETS_LEAST: u64 = 1 << 9;
/// See [`SETS_LEAST`].
const SETS_MOST: u64 = 1 << 20;

/// Maximum number of prefetched bytes of a file's path, and of its header fields.
const PREFETCHED_BYTES: usize = 64;
/// Maximum number of bytes prefetched while the previous request is answered.
const NEXT_BYTES: usize = 4 << 10;

#[cfg(test)]
#[path = "prefetch_tests.rs"]
mod tests;
