//! A sorted list of spans that covers every address, each with the index of a value.
//!
//! Nested networks are flattened into it, so that the longest prefix needs no walk down a tree.

use std::collections::BTreeMap;

/// Networks by address and number of leading bits, with the index of their value.
pub(super) type Prefixes = BTreeMap<(u128, u8), u32>;

/// Spans by their first address; each ends where the next begins.
#[derive(Debug)]
pub(super) struct Spans<K> {
    starts: Vec<K>,
    values: Vec<u32>,
}

impl<K> Default for Spans<K> {
    fn default() -> Self {
        Self {
            starts: Vec::new(),
            values: Vec::new(),
        }
    }
}

impl<K: Copy + Ord> Spans<K> {
    /// Begins a span; it may begin where the last one did, which then was of no length.
    pub(super) fn push(&mut self, start: K, value: u32) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.values.pop();
        }
        if self.values.last() != Some(&value) {
            self.starts.push(start);
            self.values.push(value);
        }
    }

    /// The index of the value at an address, 0 before the first span.
    pub(super) fn find(&self, at: K) -> u32 {
        match self.starts.partition_point(|start| *start <= at) {
            0 => 0,
            n => self.values[n - 1],
        }
    }
}

impl<K: Copy + Ord + TryFrom<u128>> Spans<K> {
    /// Flattens networks of addresses that have `width` bits.
    pub(super) fn of_prefixes(prefixes: &Prefixes, width: u8) -> Self {
        let mut spans = Self::default();
        // The networks around the place reached, outermost first: last address and value.
        let mut around: Vec<(u128, u32)> = Vec::new();
        for ((start, bits), value) in prefixes {
            spans.leave(&mut around, |end| end < *start);
            spans.begin(*start, *value);
            let host_bits = u32::from(width - bits);
            let size = 1u128.checked_shl(host_bits).unwrap_or(0);
            around.push((start | size.wrapping_sub(1), *value));
        }
        spans.leave(&mut around, |_| true);
        spans
    }

    /// Ends the networks whose last address has been passed.
    fn leave(&mut self, around: &mut Vec<(u128, u32)>, passed: impl Fn(u128) -> bool) {
        while let Some((end, _)) = around.pop_if(|(end, _)| passed(*end)) {
            let value = around.last().map_or(0, |(_, value)| *value);
            if let Some(next) = end.checked_add(1) {
                self.begin(next, value);
            }
        }
    }

    /// Begins a span unless it lies behind the last address there is.
    fn begin(&mut self, start: u128, value: u32) {
        if let Ok(start) = K::try_from(start) {
            self.push(start, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins() {
        let prefixes: Prefixes = [
            ((0x0a00_0000, 8), 1),
            ((0x0a01_0000, 16), 2),
            ((0x0a01_0100, 24), 3),
            ((0x0a01_0101, 32), 4),
            ((0xffff_ff00, 24), 5),
        ]
        .into();
        let spans: Spans<u32> = Spans::of_prefixes(&prefixes, 32);
        for (at, value) in [
            (0, 0),
            (0x09ff_ffff, 0),
            (0x0a00_0000, 1),
            (0x0a00_ffff, 1),
            (0x0a01_0000, 2),
            (0x0a01_0100, 3),
            (0x0a01_0101, 4),
            (0x0a01_0102, 3),
            (0x0a01_01ff, 3),
            (0x0a01_0200, 2),
            (0x0a02_0000, 1),
            (0x0aff_ffff, 1),
            (0x0b00_0000, 0),
            (0xffff_feff, 0),
            (u32::MAX, 5),
        ] {
            assert_eq!(spans.find(at), value, "{at:x}");
        }
    }

    #[test]
    fn spans_give_what_a_walk_through_all_networks_gives() {
        let mut prefixes = Prefixes::new();
        let mut seed = 7u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 8
        };
        for value in 1..200 {
            let bits = (next() % 33) as u8;
            let net = u128::from((next() << 24) | (next() % 4)) & (u128::MAX << (32 - bits));
            prefixes.insert((net, bits), value);
        }
        let spans: Spans<u32> = Spans::of_prefixes(&prefixes, 32);
        for _ in 0..5000 {
            let at = (next() << 24) | (next() % 8);
            let fits = |((net, bits), _): &(&(u128, u8), &u32)| {
                u128::from(at) & (u128::MAX << (32 - bits)) == *net
            };
            let longest = prefixes
                .iter()
                .filter(fits)
                .max_by_key(|((_, bits), _)| *bits);
            assert_eq!(
                spans.find(at),
                longest.map_or(0, |(_, value)| *value),
                "{at:x}"
            );
        }
    }

    #[test]
    fn a_network_may_be_all_addresses() {
        let spans: Spans<u128> = Spans::of_prefixes(&[((0, 0), 1), ((1, 128), 2)].into(), 128);
        assert_eq!([0, 1, 2, u128::MAX].map(|at| spans.find(at)), [1, 2, 1, 1]);
        assert_eq!(Spans::<u32>::default().find(5), 0);
    }
}
