//! Memory of kept files, asked for before the requests for them are answered.
//!
//! Of many kept files no cache of the processor has the next one, and each step to it waits for memory: its slot, what is
//! known of it, its bytes. All requests that were read in a turn are known before the first of them is answered: a table
//! leads from the target of a request to the place of the file that was opened for it last time, and the memory of many is
//! asked for at once. That place is a guess: a wrong one costs time and changes no response.
//!
//! Absent: files with a descriptor, and requests that are alone in their turn.

use std::hash::{BuildHasher, Hasher};

use engines::http::{FieldId, RequestHead};
use server_base::s3_fifo::S3Fifo;
use sys::prefetch::{prefetch, prefetch_bytes};

use super::cached_files::Entry;
use super::lru::PathHash;

/// Places of files by target, and the requests of a turn.
#[derive(Debug)]
pub(crate) struct Prefetcher {
    hash: PathHash,
    /// Files that were opened for targets of which the lower bits of the hash are the index, the one noted last in front.
    sets: Box<[[Slot; WAYS]]>,
    /// The requests of a turn in the order in which they are answered.
    requests: Vec<Guess>,
    /// Of how many of them memory was asked for.
    prefetched: usize,
    /// How many were begun to be answered.
    begun: usize,
}

/// One more than the place of a file, and above that the tag of the target that it was opened for; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slot(u32);

impl Slot {
    /// `None` for a place that has not so few bits.
    fn new(tag: u32, place: u32) -> Option<Self> {
        let number = place.checked_add(1)?;
        (number >> PLACE_BITS == 0).then_some(Self(tag << PLACE_BITS | number))
    }

    fn is_of(self, tag: u32) -> bool {
        self.0 >> PLACE_BITS == tag
    }

    /// [`NO_PLACE`] for none.
    fn place(self) -> u32 {
        (self.0 & ((1 << PLACE_BITS) - 1)).wrapping_sub(1)
    }
}

/// A request, and the file that it is probably for.
#[derive(Clone, Copy, Debug)]
struct Guess {
    /// Index of the target's set.
    set: u32,
    /// The upper bits of the target's hash.
    tag: u32,
    place: u32,
}

impl Prefetcher {
    /// A table for files that weigh `limit_bytes` together.
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

    /// A hash of the target without its query, and of the host.
    #[inline]
    fn hash(&self, head: &RequestHead) -> u64 {
        let target = head.bytes(head.target);
        let path = target.split(|byte| *byte == b'?').next();
        let mut hasher = self.hash.build_hasher();
        hasher.write(path.unwrap_or(target));
        hasher.write(head.field(FieldId::Host).unwrap_or_default());
        hasher.finish()
    }

    /// Adds a request that was read; `None` for a connection of which none is known.
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

    /// Asks for memory that the next `count` requests need, a step for all of them before the next one: so the waits for one
    /// step pass together.
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

    /// Returns the place that the next request probably needs, and asks for the bytes of the one after it.
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

    /// Notes the place of the file that was opened for the request begun last.
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

    /// The number of requests of this turn.
    #[inline]
    pub(crate) fn requests(&self) -> usize {
        self.requests.len()
    }

    /// The turn is over.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.requests.clear();
        (self.prefetched, self.begun) = (0, 0);
    }
}

/// No file has this place.
pub(crate) const NO_PLACE: u32 = u32::MAX;

/// The number of files kept in memory from which requests are looked up ahead: the memory of fewer stays in the processor's
/// cache.
pub(crate) const PREFETCHED_FROM: usize = 512;

/// Files of a set: two targets that are asked for by turns do not forget each other.
const WAYS: usize = 2;
/// Bits of a file's place in the table; the others are of the target's hash.
const PLACE_BITS: u32 = 22;
/// Bytes of kept files for each set of the table, which makes the table 0.8 % of `open_files_memory`: of a larger one, the processor
/// knows fewer pages.
const BYTES_A_SET: u64 = 1 << 10;
/// The least and the most sets of the table; each takes eight bytes.
const SETS_LEAST: u64 = 1 << 9;
/// See [`SETS_LEAST`].
const SETS_MOST: u64 = 1 << 20;

/// The most bytes of a file's path, and of its header fields, that are asked for when it is looked up.
const PREFETCHED_BYTES: usize = 64;
/// The most bytes that are asked for while the request before is answered.
const NEXT_BYTES: usize = 4 << 10;

#[cfg(test)]
#[path = "prefetch_tests.rs"]
mod tests;
