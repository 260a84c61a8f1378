//! A cache with a limit on the sum of weights and S3-FIFO eviction.
//!
//! A new value is added to the end of the small queue, which has a tenth of the room. With its second use it moves to the main
//! queue. If it reaches the front of the small queue before, it is evicted, and the ghost list records its hash. A value in the
//! ghost list is added to the main queue at once. At the front of the main queue, a value used since moves back to the end. So
//! a scan over many values passes through the small queue and does not change the main queue. Further uses move nothing; the
//! slot counts them up to [`USES_MAX`].
//!
//! With [`S3Fifo::admits`] a caller can refuse values at their first request: a value that is not used again evicts nothing and
//! costs no insertion, which in a large cache misses the CPU cache.
//!
//! Callers provide hash, comparison and weight of a value; weights are bytes, or one each. Absent: expiry, and locks: each
//! thread has its own cache.
//!
//! Source: Yang, Zhang, Qiu, Yue, Rashmi, "FIFO queues are all you need for cache eviction", SOSP 2023. Differences: values
//! move from the small to the main queue when they are used, not at their eviction, so an eviction from it is one step. The
//! ghost list is a table of fingerprints; a collision drops the older one. An eviction examines at most [`LOOKS_MAX`] values of
//! the main queue.

/// Values with weights; some are evicted if the sum would exceed the limit.
#[derive(Debug)]
pub struct S3Fifo<V> {
    slots: Vec<Slot<V>>,
    free: Vec<u32>,
    /// First slot of the values with the same last bits of their hashes.
    chains: Box<[u32]>,
    small: Queue,
    main: Queue,
    ghosts: Ghosts,
    limit: u64,
    /// First-time values offered to the full cache.
    first_times: u32,
}

/// A value of up to 40 bytes shares one CPU cache line with the fields read by lookups.
#[derive(Debug)]
#[repr(align(64))]
struct Slot<V> {
    value: Option<V>,
    hash: u64,
    newer: u32,
    older: u32,
    /// The next slot of the chain.
    chained: u32,
    packed: Packed,
}

/// Weight, uses and queue of a value in 32 bits.
#[derive(Clone, Copy, Debug)]
struct Packed(u32);

impl Packed {
    fn new(weight: u32, in_main: bool) -> Self {
        Self(weight << WEIGHT_SHIFT | u32::from(in_main))
    }

    fn weight(self) -> u64 {
        u64::from(self.0 >> WEIGHT_SHIFT)
    }

    #[inline]
    fn uses(self) -> u8 {
        (self.0 >> USES_SHIFT) as u8 & USES_MAX
    }

    #[inline]
    fn set_uses(&mut self, uses: u8) {
        let others = self.0 & !(u32::from(USES_MAX) << USES_SHIFT);
        self.0 = others | u32::from(uses) << USES_SHIFT;
    }

    #[inline]
    fn in_main(self) -> bool {
        self.0 & 1 != 0
    }
}

/// A queue that is linked through the slots.
#[derive(Debug)]
struct Queue {
    newest: u32,
    oldest: u32,
    weight: u64,
}

impl<V> S3Fifo<V> {
    /// Creates a cache for values of this total weight; 0 for none.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            chains: Box::default(),
            small: Queue::EMPTY,
            main: Queue::EMPTY,
            ghosts: Ghosts::default(),
            limit,
            first_times: 0,
        }
    }

    /// Changes the limit; values beyond it are evicted by later insertions and [`S3Fifo::shrink`].
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// The limit of the total weight.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The weight of all values.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.small.weight + self.main.weight
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns whether the cache is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The place of the value with this hash that `is_it` accepts. A place is valid until a value is inserted or removed.
    #[inline]
    pub fn find(&self, hash: u64, is_it: impl Fn(&V) -> bool) -> Option<u32> {
        let mut place = *self.first(hash)?;
        while let Some(slot) = self.slots.get(place as usize) {
            if slot.hash == hash && slot.value.as_ref().is_some_and(&is_it) {
                return Some(place);
            }
            place = slot.chained;
        }
        None
    }

    /// The first place examined by [`S3Fifo::find`], for prefetching its memory; it may have no value.
    #[inline]
    pub fn first(&self, hash: u64) -> Option<&u32> {
        self.chains.get(self.chain(hash))
    }

    /// The place of a value with this hash, probably `near`.
    #[inline]
    pub fn find_near(&self, hash: u64, near: u32) -> Option<u32> {
        match self.slots.get(near as usize) {
            Some(slot) if slot.hash == hash && slot.value.is_some() => Some(near),
            _ => self.find(hash, |_| true),
        }
    }

    /// Returns and counts a use of the value at a place from [`S3Fifo::find`]; `None` if it has no value.
    #[inline]
    pub fn use_at(&mut self, place: u32) -> Option<&mut V> {
        let slot = self.slots.get_mut(place as usize)?;
        let uses = slot.packed.uses();
        if uses < USES_MAX {
            slot.packed.set_uses(uses + 1);
            if uses + 1 == PROMOTING_USES && !slot.packed.in_main() {
                self.promote(place);
            }
        }
        self.slots.get_mut(place as usize)?.value.as_mut()
    }

    /// Returns whether to insert a value: there is room, its hash is in the ghost list, or it is the 1 in [`ADMITTED_SHARE`].
    /// The share replaces unused values even if no value is requested twice within the ghost list's reach. The ghost list has
    /// as many hashes as there are values. A refused hash enters the ghost list.
    pub fn admits(&mut self, hash: u64, weight: u64) -> bool {
        if weight > self.limit {
            return false;
        }
        if self.weight() + weight <= self.limit || self.ghosts.contains(hash) {
            return true;
        }
        self.first_times = self.first_times.wrapping_add(1);
        if self.first_times.is_multiple_of(ADMITTED_SHARE) {
            // Its hash does not enter the ghost list, which would add it to the main queue.
            return true;
        }
        self.ghosts.remember(hash, self.len());
        false
    }

    /// The memory read by [`S3Fifo::admits`], for prefetching.
    #[inline]
    pub fn admission(&self, hash: u64) -> Option<&impl Sized> {
        self.ghosts.table.get(self.ghosts.place(hash))
    }

    /// Evicts a value if there is not room for one more of `weight` and returns it. Call it until it returns `None`,
    /// before [`S3Fifo::insert`].
    pub fn evict_for(&mut self, weight: u64) -> Option<V> {
        if self.weight() + weight <= self.limit {
            return None;
        }
        self.evict(weight)
    }

    /// Evicts a value if there is more than the limit allows.
    pub fn shrink(&mut self) -> Option<V> {
        self.evict_for(0)
    }

    /// Inserts a value, evicts others as needed, and returns its place.
    ///
    /// # Errors The value, if it cannot be stored.
    pub fn insert(&mut self, hash: u64, weight: u64, value: V) -> Result<u32, V> {
        if weight > self.limit.min(u64::from(WEIGHT_MAX)) {
            return Err(value);
        }
        while self.evict_for(weight).is_some() {}
        let in_main = self.ghosts.take(hash);
        let slot = Slot {
            value: Some(value),
            hash,
            newer: NONE,
            older: NONE,
            chained: NONE,
            packed: Packed::new(weight as u32, in_main),
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.slots[place as usize] = slot;
                place
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        if self.slots.len() * CHAINS_A_SLOT > self.chains.len() {
            self.rebuild_chains();
        } else {
            self.chain_in(place);
        }
        self.link_newest(place);
        Ok(place)
    }

    /// Removes the value at a place.
    pub fn remove(&mut self, place: u32) -> Option<V> {
        let value = self.slots.get_mut(place as usize)?.value.take()?;
        self.unlink(place);
        self.unchain(place);
        self.free.push(place);
        Some(value)
    }

    /// The value at a place; that does not count as a use.
    #[inline]
    pub fn at(&self, place: u32) -> Option<&V> {
        self.slots.get(place as usize)?.value.as_ref()
    }

    /// The memory of a place, for prefetching; it may have no value.
    #[inline]
    pub fn slot(&self, place: u32) -> Option<&impl Sized> {
        self.slots.get(place as usize)
    }

    /// The value at a place; that does not count as a use.
    pub fn at_mut(&mut self, place: u32) -> Option<&mut V> {
        self.slots.get_mut(place as usize)?.value.as_mut()
    }

    /// The number of slots, those without a value counted: places are below it.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    #[cold]
    fn promote(&mut self, place: u32) {
        self.unlink(place);
        let packed = &mut self.slots[place as usize].packed;
        *packed = Packed::new(packed.weight() as u32, true);
        self.link_newest(place);
    }

    /// Evicts one value so that one of `weight` finds room.
    fn evict(&mut self, weight: u64) -> Option<V> {
        let small_is_full = self.small.weight + weight > self.limit / SMALL_SHARE;
        if small_is_full && self.small.oldest != NONE || self.main.oldest == NONE {
            let place = self.small.oldest;
            let hash = self.slots.get(place as usize)?.hash;
            self.ghosts.remember(hash, self.len());
            return self.remove(place);
        }
        for _ in 1..LOOKS_MAX {
            let place = self.main.oldest;
            let slot = self.slots.get_mut(place as usize)?;
            let uses = slot.packed.uses();
            if uses == 0 {
                break;
            }
            slot.packed.set_uses(uses - 1);
            self.unlink(place);
            self.link_newest(place);
        }
        self.remove(self.main.oldest)
    }

    fn chain(&self, hash: u64) -> usize {
        hash as usize & self.chains.len().wrapping_sub(1)
    }

    /// Doubles the number of chains.
    fn rebuild_chains(&mut self) {
        let chains = (self.slots.len() * CHAINS_A_SLOT).next_power_of_two();
        let chains = chains.max(CHAINS_LEAST);
        self.chains = vec![NONE; chains].into();
        for place in 0..self.slots.len() {
            if self.slots[place].value.is_some() {
                self.chain_in(place as u32);
            }
        }
    }

    fn chain_in(&mut self, place: u32) {
        let chain = self.chain(self.slots[place as usize].hash);
        self.slots[place as usize].chained = self.chains[chain];
        self.chains[chain] = place;
    }

    fn unchain(&mut self, place: u32) {
        let Slot { hash, chained, .. } = self.slots[place as usize];
        let chain = self.chain(hash);
        if self.chains[chain] == place {
            self.chains[chain] = chained;
            return;
        }
        let mut at = self.chains[chain];
        while let Some(slot) = self.slots.get_mut(at as usize) {
            if slot.chained == place {
                slot.chained = chained;
                return;
            }
            at = slot.chained;
        }
    }

    fn queue(&mut self, in_main: bool) -> &mut Queue {
        match in_main {
            true => &mut self.main,
            false => &mut self.small,
        }
    }

    fn unlink(&mut self, place: u32) {
        let Slot {
            newer,
            older,
            packed,
            ..
        } = self.slots[place as usize];
        let in_main = packed.in_main();
        match self.slots.get_mut(newer as usize) {
            Some(slot) => slot.older = older,
            None => self.queue(in_main).newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.newer = newer,
            None => self.queue(in_main).oldest = newer,
        }
        self.queue(in_main).weight -= packed.weight();
    }

    fn link_newest(&mut self, place: u32) {
        let packed = self.slots[place as usize].packed;
        let queue = self.queue(packed.in_main());
        queue.weight += packed.weight();
        let older = std::mem::replace(&mut queue.newest, place);
        if older == NONE {
            queue.oldest = place;
        }
        let slot = &mut self.slots[place as usize];
        (slot.newer, slot.older) = (NONE, older);
        if let Some(slot) = self.slots.get_mut(older as usize) {
            slot.newer = place;
        }
    }
}

impl Queue {
    const EMPTY: Self = Self {
        newest: NONE,
        oldest: NONE,
        weight: 0,
    };
}

/// Hashes of values that were evicted from the small queue not long ago: as many as there are values.
#[derive(Debug, Default)]
struct Ghosts {
    /// Fingerprint, and the count of ghosts when it was put in.
    table: Box<[(u32, u32)]>,
    count: u32,
    /// The capacity of the list.
    most: u32,
}

impl Ghosts {
    fn remember(&mut self, hash: u64, most: usize) {
        self.most = most as u32;
        if most > self.table.len() {
            // The known hashes are dropped, which happens only while the cache grows.
            self.table = vec![(0, 0); most.next_power_of_two()].into();
        }
        self.count = self.count.wrapping_add(1);
        let place = hash as usize & (self.table.len() - 1);
        self.table[place] = (fingerprint(hash), self.count);
    }

    /// Whether the hash is known.
    fn contains(&self, hash: u64) -> bool {
        let ghost = self.table.get(self.place(hash));
        ghost.is_some_and(|ghost| {
            ghost.0 == fingerprint(hash) && self.count.wrapping_sub(ghost.1) < self.most
        })
    }

    /// Whether the hash is known; it is not afterwards.
    fn take(&mut self, hash: u64) -> bool {
        let is_known = self.contains(hash);
        let place = self.place(hash);
        if is_known && let Some(ghost) = self.table.get_mut(place) {
            ghost.0 = 0;
        }
        is_known
    }

    fn place(&self, hash: u64) -> usize {
        hash as usize & self.table.len().wrapping_sub(1)
    }
}

/// The bits of a hash that its slot does not imply; never 0, which marks an empty slot.
fn fingerprint(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

/// No slot has this place.
const NONE: u32 = u32::MAX;

/// Maximum count of uses of a value.
pub const USES_MAX: u8 = 3;

/// The use that takes a value from the small queue to the main queue.
const PROMOTING_USES: u8 = 2;

/// The small queue has this part of the room.
pub const SMALL_SHARE: u64 = 10;

/// Of the values that come for the first time to a full cache, one in as many is admitted.
pub const ADMITTED_SHARE: u32 = 32;

/// An eviction takes at the latest the value of this number, whatever its uses.
pub const LOOKS_MAX: usize = 64;

/// The heaviest value that is kept.
const WEIGHT_MAX: u32 = u32::MAX >> WEIGHT_SHIFT;

/// Place of the uses in [`Packed`], behind the bit for the main queue.
const USES_SHIFT: u32 = 1;

/// Place of the weight in [`Packed`].
const WEIGHT_SHIFT: u32 = 3;

/// Chains are this many times the slots, at least: few values share one, and looking at another value costs a cache miss.
const CHAINS_A_SLOT: usize = 2;

/// The fewest chains.
const CHAINS_LEAST: usize = 16;

#[cfg(test)]
#[path = "s3_fifo_tests.rs"]
mod tests;
