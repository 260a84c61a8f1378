//! A sorted list of spans that covers all addresses, each with a value.
//!
//! Nested networks are flattened, so the longest prefix needs no tree. The first addresses of every [`BLOCK`] spans
//! form a list that is searched first. It fits into the CPU cache; of a million spans only one block is then read.

use super::ordered::Ordered;

/// Networks by address and number of leading bits, with their value.
pub(super) type Prefixes<K> = Ordered<(K, u8), u32>;

/// Spans by their first address; each ends at the next one.
#[derive(Debug)]
pub(super) struct Spans<K> {
    starts: Vec<K>,
    values: Vec<u32>,
    /// The first address of each block.
    blocks: Vec<K>,
}

impl<K> Default for Spans<K> {
    fn default() -> Self {
        Self {
            starts: Vec::new(),
            values: Vec::new(),
            blocks: Vec::new(),
        }
    }
}

impl<K: Copy + Ord> Spans<K> {
    /// Begins a span. It replaces the last one if that begins at the same address.
    pub(super) fn push(&mut self, start: K, value: u32) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.values.pop();
            self.blocks.truncate(self.starts.len().div_ceil(BLOCK));
        }
        if self.values.last() != Some(&value) {
            if self.starts.len().is_multiple_of(BLOCK) {
                self.blocks.push(start);
            }
            self.starts.push(start);
            self.values.push(value);
        }
    }

    /// Frees unused capacity.
    pub(super) fn shrink(&mut self) {
        self.starts.shrink_to_fit();
        self.values.shrink_to_fit();
        self.blocks.shrink_to_fit();
    }

    /// The value at an address, 0 before the first span.
    pub(super) fn find(&self, at: K) -> u32 {
        let begun = |start: &K| *start <= at;
        let Some(block) = self.blocks.partition_point(begun).checked_sub(1) else {
            return 0;
        };
        let rest = &self.starts[block * BLOCK..];
        let rest = &rest[..rest.len().min(BLOCK)];
        // At least 1: the first span of the block starts at or before `at`.
        self.values[block * BLOCK + rest.partition_point(begun) - 1]
    }
}

impl<K: Copy + Ord + Into<u128> + TryFrom<u128>> Spans<K> {
    /// Flattens networks of addresses that have `width` bits.
    pub(super) fn of_prefixes(prefixes: Prefixes<K>, width: u8) -> Self {
        let mut spans = Self::default();
        // The networks that contain the current address, outermost first: last address and value.
        let mut around: Vec<(u128, u32)> = Vec::new();
        prefixes.for_each(|(start, bits), value| {
            let host_bits = u32::from(width - bits);
            let size = 1u128.checked_shl(host_bits).unwrap_or(0);
            spans.leave(&mut around, |end| end < start.into());
            spans.push(start, value);
            around.push((start.into() | size.wrapping_sub(1), value));
        });
        spans.leave(&mut around, |_| true);
        spans.shrink();
        spans
    }

    /// Ends the networks that end before the current address.
    fn leave(&mut self, around: &mut Vec<(u128, u32)>, passed: impl Fn(u128) -> bool) {
        while let Some((end, _)) = around.pop_if(|(end, _)| passed(*end)) {
            let value = around.last().map_or(0, |(_, value)| *value);
            // No span begins after the highest address.
            if let Some(Ok(next)) = end.checked_add(1).map(K::try_from) {
                self.push(next, value);
            }
        }
    }
}

/// Spans of a block. Their addresses fill four cache lines, those of IPv6 sixteen.
const BLOCK: usize = 64;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn tree<K: Ord, const N: usize>(entries: [((K, u8), u32); N]) -> Prefixes<K> {
        Ordered::Tree(entries.into())
    }

    fn mask(bits: u8) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)
    }

    #[test]
    fn the_longest_prefix_wins() {
        let prefixes = [
            ((0x0a00_0000, 8), 1),
            ((0x0a01_0000, 16), 2),
            ((0x0a01_0100, 24), 3),
            ((0x0a01_0101, 32), 4),
            ((0xffff_ff00, 24), 5),
        ];
        let spans: Spans<u32> = Spans::of_prefixes(tree(prefixes), 32);
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
        let mut prefixes = BTreeMap::new();
        let mut seed = 7u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 8
        };
        for value in 1..200 {
            let bits = (next() % 33) as u8;
            let net = ((next() << 24) | (next() % 4)) & mask(bits);
            prefixes.insert((net, bits), value);
        }
        let spans: Spans<u32> = Spans::of_prefixes(Ordered::Tree(prefixes.clone()), 32);
        for _ in 0..5000 {
            let at = (next() << 24) | (next() % 8);
            let fits = |((net, bits), _): &(&(u32, u8), &u32)| at & mask(*bits) == *net;
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
        let spans: Spans<u128> = Spans::of_prefixes(tree([((0, 0), 1), ((1, 128), 2)]), 128);
        assert_eq!([0, 1, 2, u128::MAX].map(|at| spans.find(at)), [1, 2, 1, 1]);
        assert_eq!(Spans::<u32>::default().find(5), 0);
    }

    #[test]
    fn spans_of_whole_and_of_broken_blocks_are_found() {
        for count in [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 5] {
            let mut spans = Spans::default();
            for n in 0..count as u32 {
                // Each is begun twice at one address: the second one wins.
                spans.push(n * 10 + 5, 9999);
                spans.push(n * 10 + 5, n + 1);
            }
            assert_eq!(spans.blocks.len(), count.div_ceil(BLOCK));
            for at in 0..count as u32 * 10 + 20 {
                let expected = (at + 5) / 10;
                assert_eq!(spans.find(at), expected.min(count as u32), "{count} {at}");
            }
        }
    }
}
