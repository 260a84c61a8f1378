//! The simulator's dice: splitmix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
//!
//! Every choice of a run comes from one seed, so that a run that fails can be had again.

use std::ops::Range;

/// A seeded generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that yields equal numbers for equal seeds.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a separate generator, for a part with choices that must not depend on the order of other choices.
    pub fn fork(&mut self) -> Self {
        Self(self.next_u64())
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.next_u64() % end }
    }

    /// A number of a range; its start if it is empty.
    pub fn within(&mut self, range: Range<usize>) -> usize {
        range.start + self.below(range.len() as u64) as usize
    }

    /// Returns true with this probability, in thousandths.
    pub fn chance(&mut self, permille: u32) -> bool {
        self.below(1000) < u64::from(permille)
    }

    /// One of several.
    ///
    /// # Panics
    /// There is none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.within(0..from.len())]
    }

    /// A length up to `most`: often 1 or a few, sometimes all of it.
    pub fn piece(&mut self, most: usize) -> usize {
        let len = match self.below(5) {
            0 => 1,
            1 => self.within(1..9),
            2 => self.within(1..129),
            3 => self.within(1..most.max(1) + 1),
            _ => most,
        };
        len.min(most)
    }

    /// Puts a list into another order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for n in (1..list.len()).rev() {
            list.swap(n, self.within(0..n + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_its_numbers_again() {
        let mut numbers = Random::new(0);
        // The published first output of splitmix64 for seed 0.
        assert_eq!(numbers.next_u64(), 0xe220_a839_7b1d_cdaf);
        let (mut a, mut b) = (Random::new(7), Random::new(7));
        assert!((0..100).all(|_| a.next_u64() == b.next_u64()));
        assert_ne!(a.fork().next_u64(), a.fork().next_u64());
    }

    #[test]
    fn pieces_are_within_their_bounds() {
        let mut random = Random::new(1);
        for most in [1, 2, 100, 100_000] {
            assert!((0..500).all(|_| (1..=most).contains(&random.piece(most))));
        }
        assert_eq!(random.piece(0), 0);
        assert_eq!(random.below(0), 0);
    }
}
