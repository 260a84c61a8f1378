//! The largest of many values that grow at constant rates: a kinetic tournament.
//!
//! Each entry has a value and a slope. A step adds its slope to each value; the largest value wins, of equal ones the first.
//! Inner nodes of a binary tree keep the winner of their subtree and the time until which it certainly wins. So a step
//! costs O(log n) instead of O(n): it visits only nodes with an expired winner.
//!
//! Source: Basch, Guibas, Hershberger, "Data structures for mobile data" (1999), section 4.

/// Entries by number, and the tree of their winners.
#[derive(Debug)]
pub(super) struct Tournament {
    lines: Vec<Linear>,
    /// Inner nodes from 1 on; the children of `n` are `2 n` and `2 n + 1`. Leaves are not stored.
    nodes: Vec<Node>,
    /// Steps so far.
    now: i64,
    /// Sum of the slopes of all entries that take part.
    total: i64,
}

/// A value as a function of time. Products may wrap: only differences of values at one time are used, and they are small.
#[derive(Clone, Copy, Debug)]
struct Linear {
    /// Value at time 0; of an entry that takes no part: its value.
    offset: i64,
    /// At least 0; [`ABSENT`]: the entry takes no part.
    slope: i64,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    winner: u32,
    /// First time at which another entry may win.
    until: i64,
}

impl Linear {
    fn at(self, now: i64) -> i64 {
        match self.slope {
            ABSENT => self.offset,
            slope => self.offset.wrapping_add(slope.wrapping_mul(now)),
        }
    }
}

impl Tournament {
    /// Entries with these values, of which none takes part.
    pub(super) fn new(values: impl Iterator<Item = i64>) -> Self {
        let absent = |offset| Linear {
            offset,
            slope: ABSENT,
        };
        let lines: Vec<Linear> = values.map(absent).collect();
        let leaves = lines.len().next_power_of_two();
        Self {
            nodes: vec![EMPTY; leaves],
            lines,
            now: 0,
            total: 0,
        }
    }

    /// The value of an entry.
    pub(super) fn value(&self, n: u32) -> i64 {
        self.lines[n as usize].at(self.now)
    }

    /// The slope of an entry, if it takes part.
    pub(super) fn slope(&self, n: u32) -> Option<i64> {
        let slope = self.lines[n as usize].slope;
        (slope != ABSENT).then_some(slope)
    }

    /// The sum of the slopes of entries that take part.
    pub(super) fn total(&self) -> i64 {
        self.total
    }

    /// Sets value and slope of an entry; without a slope it takes no part. [`Self::update`] or [`Self::update_all`] must follow.
    pub(super) fn set(&mut self, n: u32, value: i64, slope: Option<i64>) {
        let before = self.slope(n).unwrap_or(0);
        self.total += slope.unwrap_or(0) - before;
        self.lines[n as usize] = match slope {
            Some(slope) => Linear {
                offset: value.wrapping_sub(slope.wrapping_mul(self.now)),
                slope,
            },
            None => Linear {
                offset: value,
                slope: ABSENT,
            },
        };
    }

    /// Finds the winners above an entry anew.
    pub(super) fn update(&mut self, n: u32) {
        let mut at = (self.nodes.len() + n as usize) / 2;
        while at > 0 {
            self.nodes[at] = self.match_of(at);
            at /= 2;
        }
    }

    /// Finds all winners anew, O(n).
    pub(super) fn update_all(&mut self) {
        for at in (1..self.nodes.len()).rev() {
            self.nodes[at] = self.match_of(at);
        }
    }

    /// Takes a step; returns the entry with the largest value then.
    pub(super) fn step(&mut self) -> Option<u32> {
        self.now += 1;
        self.refresh(1);
        let winner = self.node(1).winner;
        (winner != NONE).then_some(winner)
    }

    /// Finds winners anew that are no longer certain, below a node.
    fn refresh(&mut self, at: usize) {
        if at >= self.nodes.len() || self.nodes[at].until > self.now {
            return;
        }
        self.refresh(2 * at);
        self.refresh(2 * at + 1);
        self.nodes[at] = self.match_of(at);
    }

    /// A node, or the leaf of an entry.
    fn node(&self, at: usize) -> Node {
        let Some(n) = at.checked_sub(self.nodes.len()) else {
            return self.nodes[at];
        };
        match self.lines.get(n) {
            Some(line) if line.slope != ABSENT => Node {
                winner: n as u32,
                ..EMPTY
            },
            _ => EMPTY,
        }
    }

    /// The winner of the two subtrees of a node.
    fn match_of(&self, at: usize) -> Node {
        let (first, second) = (self.node(2 * at), self.node(2 * at + 1));
        let until = first.until.min(second.until);
        let winner = match (first.winner, second.winner) {
            (NONE, winner) | (winner, NONE) => return Node { winner, until },
            both => both,
        };
        let [a, b] = [winner.0, winner.1].map(|n| self.lines[n as usize]);
        let lead = a.at(self.now).wrapping_sub(b.at(self.now));
        let (winner, wins_for) = match lead >= 0 {
            // The second one must be larger to win; equal values are the first one's.
            true if b.slope > a.slope => (winner.0, lead / (b.slope - a.slope) + 1),
            true => (winner.0, i64::MAX),
            false if a.slope > b.slope => {
                let gain = a.slope - b.slope;
                (winner.1, (-lead + gain - 1) / gain)
            }
            false => (winner.1, i64::MAX),
        };
        Node {
            winner,
            until: until.min(self.now.saturating_add(wins_for)),
        }
    }
}

/// The slope of an entry that takes no part.
const ABSENT: i64 = -1;
/// The number of no entry.
const NONE: u32 = u32::MAX;
/// A node without entries.
const EMPTY: Node = Node {
    winner: NONE,
    until: i64::MAX,
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The winner of a step by looking at each entry.
    fn winner(values: &mut [(i64, Option<i64>)]) -> Option<u32> {
        let mut best: Option<(u32, i64)> = None;
        for (n, (value, slope)) in (0..).zip(values) {
            let Some(slope) = slope else {
                continue;
            };
            *value += *slope;
            if best.is_none_or(|(_, best)| *value > best) {
                best = Some((n, *value));
            }
        }
        best.map(|(n, _)| n)
    }

    #[test]
    fn the_largest_value_wins_and_of_equal_ones_the_first() {
        for seed in 0..30 {
            let rng = &mut fastrand::Rng::with_seed(seed);
            let count = [1, 2, 5, 64, 65][rng.usize(..5)];
            let slopes = [1, 2, 1 << 31][rng.usize(..3)];
            let mut values: Vec<(i64, Option<i64>)> = vec![(0, None); count];
            let mut tournament = Tournament::new(values.iter().map(|(value, _)| *value));
            for step in 0..1000 {
                for _ in 0..rng.usize(..3) {
                    let n = rng.usize(..count);
                    let slope = (rng.u8(..4) > 0).then(|| rng.i64(0..slopes));
                    values[n] = (rng.i64(-9..9) * slopes, slope);
                    tournament.set(n as u32, values[n].0, slope);
                    match rng.bool() {
                        true => tournament.update(n as u32),
                        false => tournament.update_all(),
                    }
                }
                let expected = winner(&mut values);
                assert_eq!(tournament.step(), expected, "seed {seed}, step {step}");
                let total: i64 = values.iter().filter_map(|(_, slope)| *slope).sum();
                assert_eq!(tournament.total(), total);
                if let Some(n) = expected {
                    let (value, slope) = &mut values[n as usize];
                    *value -= total;
                    tournament.set(n, *value, *slope);
                    tournament.update(n);
                    assert_eq!(tournament.value(n), *value);
                }
            }
        }
    }
}
