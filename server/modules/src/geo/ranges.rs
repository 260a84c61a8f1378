//! Collects ranges of IPv4 addresses while a `geo` block is parsed.
//!
//! As in nginx a range is split at the ends of /16 networks. A later range may be within such a piece or equal to it,
//! but not cross its ends. Only whole pieces can be deleted.

use std::net::Ipv4Addr;

use super::ordered::Ordered;
use super::spans::Spans;
use crate::networks::parse_v4;

/// Pieces by their first address: last address and value.
#[derive(Default)]
pub(super) struct Ranges(Ordered<u32, (u32, u32)>);

/// Reads `first-last`.
pub(super) fn parse(text: &[u8]) -> Option<(u32, u32)> {
    let at = text.iter().position(|b| *b == b'-')?;
    let start = parse_v4(&text[..at])?.to_bits();
    let end = parse_v4(&text[at + 1..])?.to_bits();
    (start <= end).then_some((start, end))
}

impl Ranges {
    /// Adds a range; returns the values of replaced pieces. `Err` is a piece that overlaps in part.
    pub(super) fn add(
        &mut self,
        start: u32,
        end: u32,
        value: u32,
    ) -> Result<Vec<u32>, (Ipv4Addr, Ipv4Addr)> {
        let mut replaced = Vec::new();
        for (s, e) in pieces(start, end) {
            if let Ordered::List(list) = &mut self.0
                && list.last().is_none_or(|(_, (end, _))| *end < s)
            {
                list.push((s, (e, value)));
                continue;
            }
            let tree = self.0.tree();
            let old = tree.range(..=e).next_back();
            if let Some((&old_start, &(old_end, old_value))) = old
                && old_end >= s
            {
                if s < old_start || e > old_end {
                    return Err((old_start.into(), old_end.into()));
                }
                if (s, e) == (old_start, old_end) {
                    replaced.push(old_value);
                }
                if s > old_start {
                    tree.insert(old_start, (s - 1, old_value));
                }
                if e < old_end {
                    tree.insert(e + 1, (old_end, old_value));
                }
            }
            tree.insert(s, (e, value));
        }
        Ok(replaced)
    }

    /// Deletes a range; false if a piece of it did not exist.
    pub(super) fn delete(&mut self, start: u32, end: u32) -> bool {
        let (mut there, tree) = (true, self.0.tree());
        for (s, e) in pieces(start, end) {
            if tree.get(&s).is_some_and(|(old_end, _)| *old_end == e) {
                tree.remove(&s);
            } else {
                there = false;
            }
        }
        there
    }

    /// Returns the finished list, with a value for the addresses outside of all ranges.
    pub(super) fn finish(self, default: u32) -> Spans<u32> {
        let mut spans = Spans::default();
        spans.push(0, default);
        self.0.for_each(|start, (end, value)| {
            spans.push(start, value);
            if let Some(next) = end.checked_add(1) {
                spans.push(next, default);
            }
        });
        spans.shrink();
        spans
    }
}

/// Splits a range at the ends of /16 networks.
fn pieces(start: u32, end: u32) -> impl Iterator<Item = (u32, u32)> {
    (start >> 16..=end >> 16).map(move |high| {
        let (first, last) = (high << 16, high << 16 | 0xffff);
        (first.max(start), last.min(end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_two_ends_in_order() {
        assert_eq!(parse(b"0.0.0.1-0.0.1.0"), Some((1, 256)));
        assert_eq!(parse(b"0.0.0.1-0.0.0.1"), Some((1, 1)));
        for wrong in [
            "",
            "1.2.3.4",
            "1.2.3.4-",
            "0.0.0.2-0.0.0.1",
            "1.2.3.4-255.255.255.255",
            "::1-::2",
        ] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_range_inside_another_splits_it() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.add(0x1_0000, 0x3_ffff, 1), Ok(vec![]));
        assert_eq!(ranges.add(0x1_0010, 0x1_001f, 2), Ok(vec![]));
        assert_eq!(ranges.add(0x1_0010, 0x1_0010, 3), Ok(vec![]));
        assert_eq!(ranges.add(0x1_0011, 0x1_001f, 4), Ok(vec![2]));
        let spans = ranges.finish(9);
        for (at, value) in [
            (0, 9),
            (0xffff, 9),
            (0x1_0000, 1),
            (0x1_000f, 1),
            (0x1_0010, 3),
            (0x1_0011, 4),
            (0x1_001f, 4),
            (0x1_0020, 1),
            (0x3_ffff, 1),
            (0x4_0000, 9),
        ] {
            assert_eq!(spans.find(at), value, "{at:x}");
        }
    }

    #[test]
    fn a_range_does_not_reach_over_another() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.add(10, 20, 1), Ok(vec![]));
        let old = (Ipv4Addr::from(10), Ipv4Addr::from(20));
        assert_eq!(ranges.add(5, 10, 2), Err(old));
        assert_eq!(ranges.add(20, 25, 2), Err(old));
        assert_eq!(ranges.add(5, 25, 2), Err(old));
        assert_eq!(ranges.add(21, 25, 2), Ok(vec![]));
    }

    #[test]
    fn whole_pieces_are_deleted() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.add(0x1_8000, 0x2_8000, 1), Ok(vec![]));
        assert!(!ranges.delete(0x1_8000, 0x1_8000));
        assert!(ranges.delete(0x1_8000, 0x1_ffff));
        assert!(!ranges.delete(0x1_8000, 0x2_8000));
        let spans = ranges.finish(0);
        assert_eq!([0x1_8000, 0x2_8000].map(|at| spans.find(at)), [0, 0]);
    }
}
