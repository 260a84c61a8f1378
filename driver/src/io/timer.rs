//! Deadlines of connections: a hierarchical timer wheel that allocates nothing per timer.
//!
//! An entry belongs to the connection's index in its slab. Arming and cancelling relink it in the list of a slot; an
//! entry takes 16 bytes. Level 0 has one slot per millisecond, and each next level is 64 times coarser. An entry moves
//! down a level when time reaches its slot. The clock is an argument: milliseconds that never go back.
//!
//! Source: Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", 1987.

/// Timers by slab index, one per connection.
#[derive(Debug)]
pub struct Timers {
    entries: Vec<Entry>,
    heads: Box<[u32; LEVELS * SLOTS]>,
    occupied: [u64; LEVELS],
    elapsed_ms: u64,
    armed: usize,
}

impl Timers {
    /// Makes an empty wheel whose time starts at `now_ms`.
    #[must_use]
    pub fn new(now_ms: u64) -> Self {
        Self {
            entries: Vec::new(),
            heads: Box::new([NIL; LEVELS * SLOTS]),
            occupied: [0; LEVELS],
            elapsed_ms: now_ms,
            armed: 0,
        }
    }

    /// Sets the timer of `index` to `deadline_ms`, and replaces an earlier deadline. A deadline in the past expires at
    /// the next `expire`.
    ///
    /// # Panics
    /// `index` is `1 << 31` or more.
    pub fn arm(&mut self, index: u32, deadline_ms: u64) {
        assert!(
            index < INDEX_END,
            "a slab holds fewer than 2^31 connections"
        );
        let position = index as usize;
        if position >= self.entries.len() {
            self.entries.resize(position + 1, Entry::IDLE);
        }
        if self.entries[position].is_armed() {
            self.unlink(index);
        } else {
            self.armed += 1;
        }
        self.entries[position].deadline_ms = deadline_ms.min(DEADLINE_MS_MAX);
        self.link(index);
    }

    /// Stops the timer of `index`, if it is armed.
    pub fn cancel(&mut self, index: u32) {
        if self.deadline(index).is_some() {
            self.unlink(index);
            self.armed -= 1;
        }
    }

    /// Returns the deadline of `index`, if it is armed.
    #[must_use]
    pub fn deadline(&self, index: u32) -> Option<u64> {
        let entry = self.entries.get(index as usize)?;
        entry.is_armed().then_some(entry.deadline_ms)
    }

    /// Advances time to `now_ms`. Disarms the timers that are due and appends their indexes, in order of their
    /// deadlines. Equal deadlines come in any order.
    pub fn expire(&mut self, now_ms: u64, expired: &mut Vec<u32>) {
        while let Some((level, slot, start_ms)) = self.earliest() {
            if start_ms > now_ms {
                break;
            }
            self.elapsed_ms = self.elapsed_ms.max(start_ms);
            self.empty_slot(level, slot, expired);
        }
        self.elapsed_ms = self.elapsed_ms.max(now_ms);
    }

    /// Returns the time of the next `expire`. It is never later than the earliest deadline. It is earlier if an entry
    /// must move down a level first.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.earliest().map(|(_, _, start_ms)| start_ms)
    }

    /// Returns the number of armed timers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.armed
    }

    /// No timer is armed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.armed == 0
    }

    /// Returns the first occupied slot in time: every entry of a level is due before those of the next.
    fn earliest(&self) -> Option<(usize, usize, u64)> {
        let level = self.occupied.iter().position(|bits| *bits != 0)?;
        let slot = self.occupied[level].trailing_zeros() as usize;
        let shift = level as u32 * SLOT_BITS;
        let block = (1u64 << (shift + SLOT_BITS)) - 1;
        let start_ms = (self.elapsed_ms & !block) | ((slot as u64) << shift);
        Some((level, slot, start_ms.max(self.elapsed_ms)))
    }

    fn empty_slot(&mut self, level: usize, slot: usize, expired: &mut Vec<u32>) {
        let place = level * SLOTS + slot;
        let mut index = std::mem::replace(&mut self.heads[place], NIL);
        self.occupied[level] &= !(1 << slot);
        while index != NIL {
            let entry = &mut self.entries[index as usize];
            let next = entry.next;
            if entry.deadline_ms <= self.elapsed_ms {
                entry.previous = IDLE;
                self.armed -= 1;
                expired.push(index);
            } else {
                self.link(index);
            }
            index = next;
        }
    }

    /// Returns level and slot of a deadline. The level is the highest base-64 digit that differs from now.
    fn place(&self, deadline_ms: u64) -> (usize, usize) {
        let when = deadline_ms.max(self.elapsed_ms);
        let differing = (when ^ self.elapsed_ms) | (SLOTS as u64 - 1);
        let level = ((u64::BITS - 1 - differing.leading_zeros()) / SLOT_BITS) as usize;
        let slot = (when >> (level as u32 * SLOT_BITS)) as usize % SLOTS;
        (level, slot)
    }

    fn link(&mut self, index: u32) {
        let (level, slot) = self.place(self.entries[index as usize].deadline_ms);
        let place = level * SLOTS + slot;
        let next = std::mem::replace(&mut self.heads[place], index);
        self.occupied[level] |= 1 << slot;
        let entry = &mut self.entries[index as usize];
        entry.next = next;
        entry.previous = FIRST_IN_SLOT | place as u32;
        if next != NIL {
            self.entries[next as usize].previous = index;
        }
    }

    fn unlink(&mut self, index: u32) {
        let Entry { next, previous, .. } = self.entries[index as usize];
        if previous & FIRST_IN_SLOT == 0 {
            self.entries[previous as usize].next = next;
        } else {
            let place = (previous & !FIRST_IN_SLOT) as usize;
            self.heads[place] = next;
            if next == NIL {
                self.occupied[place / SLOTS] &= !(1 << (place % SLOTS));
            }
        }
        if next != NIL {
            self.entries[next as usize].previous = previous;
        }
        self.entries[index as usize].previous = IDLE;
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    deadline_ms: u64,
    /// The next entry of the slot, or `NIL`.
    next: u32,
    /// The previous entry of the slot. The first entry has `FIRST_IN_SLOT` and the slot's index; a disarmed one has
    /// `IDLE`.
    previous: u32,
}

impl Entry {
    const IDLE: Self = Self {
        deadline_ms: 0,
        next: NIL,
        previous: IDLE,
    };

    fn is_armed(self) -> bool {
        self.previous != IDLE
    }
}

const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// Eight levels of 64 slots cover 2^48 ms, or 8900 years.
const LEVELS: usize = 8;
const DEADLINE_MS_MAX: u64 = (1 << (LEVELS as u32 * SLOT_BITS)) - 1;
const NIL: u32 = u32::MAX;
const IDLE: u32 = u32::MAX;
const FIRST_IN_SLOT: u32 = 1 << 31;
const INDEX_END: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Random;
    use std::collections::BTreeMap;

    #[test]
    fn entry_takes_sixteen_bytes() {
        assert_eq!(size_of::<Entry>(), 16);
    }

    #[test]
    fn expires_at_its_millisecond_and_not_before() {
        let mut timers = Timers::new(1_000);
        let mut expired = Vec::new();
        timers.arm(3, 61_000);
        timers.expire(60_999, &mut expired);
        assert!(expired.is_empty() && timers.len() == 1);
        assert_eq!(timers.next_deadline(), Some(61_000));
        timers.expire(61_000, &mut expired);
        assert_eq!(expired, [3]);
        assert!(timers.is_empty() && timers.next_deadline().is_none());
    }

    #[test]
    fn past_deadline_expires_at_once() {
        let mut timers = Timers::new(500);
        let mut expired = Vec::new();
        timers.arm(0, 10);
        assert_eq!(timers.next_deadline(), Some(500));
        timers.expire(500, &mut expired);
        assert_eq!(expired, [0]);
    }

    #[test]
    fn arming_again_replaces_and_cancel_is_idempotent() {
        let mut timers = Timers::new(0);
        let mut expired = Vec::new();
        for index in 0..3 {
            timers.arm(index, 100);
        }
        timers.arm(1, 5_000_000);
        timers.cancel(0);
        timers.cancel(0);
        timers.cancel(77);
        timers.expire(200, &mut expired);
        assert_eq!(expired, [2]);
        assert_eq!(timers.deadline(1), Some(5_000_000));
    }

    #[test]
    fn far_deadline_is_cut_to_the_wheel() {
        let mut timers = Timers::new(0);
        timers.arm(0, u64::MAX);
        assert_eq!(timers.deadline(0), Some(DEADLINE_MS_MAX));
        let mut expired = Vec::new();
        timers.expire(DEADLINE_MS_MAX, &mut expired);
        assert_eq!(expired, [0]);
    }

    fn matches_model(seed: u64) {
        let mut random = Random::new(seed);
        let mut now = random.below(1 << 40);
        let mut timers = Timers::new(now);
        let mut model: BTreeMap<u32, u64> = BTreeMap::new();
        for _ in 0..3_000 {
            let index = random.below(40) as u32;
            match random.below(4) {
                0 | 1 => {
                    let reach = 1 << random.below(30);
                    let deadline = (now + random.below(reach)).saturating_sub(random.below(3));
                    timers.arm(index, deadline);
                    model.insert(index, deadline);
                }
                2 => {
                    timers.cancel(index);
                    model.remove(&index);
                }
                _ => {
                    let reach = 1 << random.below(26);
                    now += random.below(reach);
                    expire_both(&mut timers, &mut model, now, seed);
                }
            }
            assert_eq!(timers.len(), model.len(), "seed {seed}");
            let earliest = model.values().min().copied();
            let next = timers.next_deadline();
            assert_eq!(next.is_some(), earliest.is_some(), "seed {seed}");
            if let (Some(next), Some(earliest)) = (next, earliest) {
                assert!(next <= earliest.max(now) && next >= now, "seed {seed}");
            }
        }
    }

    fn expire_both(timers: &mut Timers, model: &mut BTreeMap<u32, u64>, now: u64, seed: u64) {
        let mut expired = Vec::new();
        timers.expire(now, &mut expired);
        let mut expected: Vec<u32> = model
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(index, _)| *index)
            .collect();
        let mut sorted = expired.clone();
        sorted.sort_unstable();
        expected.sort_unstable();
        assert_eq!(sorted, expected, "seed {seed}");
        for index in expired {
            model.remove(&index);
        }
        assert!(
            model
                .iter()
                .all(|(index, at)| timers.deadline(*index) == Some(*at)),
            "seed {seed}"
        );
    }

    #[test]
    fn wheel_agrees_with_an_ordered_map() {
        for seed in 1..=60 {
            matches_model(seed);
        }
    }

    #[test]
    fn following_next_deadline_reaches_each_deadline_exactly() {
        let mut timers = Timers::new(0);
        let deadlines = [
            1, 63, 64, 65, 4_095, 4_096, 60_000, 65_000, 262_144, 90_000_000,
        ];
        for (index, deadline) in deadlines.iter().enumerate() {
            timers.arm(index as u32, *deadline);
        }
        let mut expired = Vec::new();
        let mut seen = Vec::new();
        while let Some(next) = timers.next_deadline() {
            timers.expire(next, &mut expired);
            seen.extend(
                expired
                    .drain(..)
                    .map(|index| (deadlines[index as usize], next)),
            );
        }
        assert!(seen.iter().all(|(deadline, at)| deadline == at));
        assert_eq!(seen.len(), deadlines.len());
    }
}
