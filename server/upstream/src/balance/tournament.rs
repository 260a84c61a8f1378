//! The largest of many values that grow at constant rates: a kinetic tournament.
//!
//! Each entry has a value and a slope. A step adds each slope to its value. The largest value wins, and the first of
//! equal values.
//! Nodes of a binary tree keep the winner of their subtree and the time until which it certainly wins. So a step
//! costs O(log n) instead of O(n): it visits only nodes with an expired winner.
//!
//! Source: Basch, Guibas, Hershberger, "Data structures for mobile data" (1999), section 4.

/// The tree of entries and winners.
#[derive(Debug, Default)]
pub(super) struct Tournament {
    /// Index 0 is unused. The children of `n` are `2 n` and `2 n + 1`. The second half are the entries.
    nodes: Vec<Node>,
    /// Steps so far.
    now: i64,
    /// Sum of the slopes of all entries.
    total: i64,
}

/// The winner of a subtree. Two siblings share a cache line.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// Its value at time 0. Products with the time may wrap: differences of values at one time are small.
    offset: i64,
    /// At least 0.
    slope: i64,
    /// First time at which another entry may win.
    until: i64,
    winner: u32,
}

impl Node {
    #[inline]
    fn value(&self, now: i64) -> i64 {
        self.offset.wrapping_add(self.slope.wrapping_mul(now))
    }
}

impl Tournament {
    /// Makes a tournament without entries, for entry numbers below `count`.
    pub(super) fn new(count: usize) -> Self {
        Self {
            nodes: vec![EMPTY; 2 * count.next_power_of_two()],
            now: 0,
            total: 0,
        }
    }

    /// Whether it has no room for entries.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn leaf(&self, n: u32) -> usize {
        self.nodes.len() / 2 + n as usize
    }

    /// Returns value and slope of an entry, if it takes part.
    pub(super) fn get(&self, n: u32) -> Option<(i64, i64)> {
        let leaf = &self.nodes[self.leaf(n)];
        (leaf.winner != NONE).then(|| (leaf.value(self.now), leaf.slope))
    }

    /// Returns the sum of all slopes.
    pub(super) fn total(&self) -> i64 {
        self.total
    }

    /// Adds an entry, or changes it. [`Self::update`] or [`Self::update_all`] must follow.
    pub(super) fn put(&mut self, n: u32, value: i64, slope: i64) {
        self.remove(n);
        self.total += slope;
        let at = self.leaf(n);
        self.nodes[at] = Node {
            offset: value.wrapping_sub(slope.wrapping_mul(self.now)),
            slope,
            until: i64::MAX,
            winner: n,
        };
    }

    /// Removes an entry, if it takes part. [`Self::update`] or [`Self::update_all`] must follow.
    pub(super) fn remove(&mut self, n: u32) {
        let at = self.leaf(n);
        // An empty node has slope 0.
        self.total -= self.nodes[at].slope;
        self.nodes[at] = EMPTY;
    }

    /// Recomputes the winners above an entry.
    pub(super) fn update(&mut self, n: u32) {
        let mut at = self.leaf(n) / 2;
        while at > 0 {
            self.nodes[at] = self.winner(at);
            at /= 2;
        }
    }

    /// Recomputes all winners, O(n).
    pub(super) fn update_all(&mut self) {
        for at in (1..self.nodes.len() / 2).rev() {
            self.nodes[at] = self.winner(at);
        }
    }

    /// Takes a step, and returns the entry with the largest value.
    pub(super) fn step(&mut self) -> Option<u32> {
        self.now += 1;
        self.refresh(1);
        let winner = self.nodes[1].winner;
        (winner != NONE).then_some(winner)
    }

    /// Recomputes the winners that have expired, from a node downwards.
    fn refresh(&mut self, at: usize) {
        // Entries never expire.
        if self.nodes[at].until > self.now {
            return;
        }
        self.refresh(2 * at);
        self.refresh(2 * at + 1);
        self.nodes[at] = self.winner(at);
    }

    /// Returns the winner of a node's two subtrees. A branch would be mispredicted half of the time.
    #[inline]
    fn winner(&self, at: usize) -> Node {
        let pair = &self.nodes[2 * at..2 * at + 2];
        let lead = (pair[0].value(self.now)).wrapping_sub(pair[1].value(self.now));
        // The first one of equal values wins.
        let side = usize::from(lead < 0);
        let (winner, loser) = (&pair[side], &pair[1 - side]);
        let gain = loser.slope - winner.slope;
        let difference = match gain > 0 {
            true => (lead as f64).abs(),
            false => f64::INFINITY,
        };
        // A float division is faster than an integer division. The quotient is rounded down a little: a time too early
        // costs one step, and one too late would be a wrong winner. The next integer is right for both sides, although
        // only the first one wins at equal values.
        let steps = difference / (gain as f64).abs() * (1.0 - 4.0 * f64::EPSILON);
        let until = self.now.saturating_add((steps as i64).saturating_add(1));
        Node {
            until: until.min(pair[0].until).min(pair[1].until),
            ..*winner
        }
    }
}

/// No entry has this number.
const NONE: u32 = u32::MAX;
/// A node without entries. It loses against all others.
const EMPTY: Node = Node {
    offset: i64::MIN / 4,
    slope: 0,
    until: i64::MAX,
    winner: NONE,
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the winner of a step by comparing all entries.
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
            let mut tournament = Tournament::new(count);
            for step in 0..1000 {
                for _ in 0..rng.usize(..3) {
                    let n = rng.usize(..count);
                    let slope = (rng.u8(..4) > 0).then(|| rng.i64(0..slopes));
                    values[n] = (rng.i64(-9..9) * slopes, slope);
                    match slope {
                        Some(slope) => tournament.put(n as u32, values[n].0, slope),
                        None => tournament.remove(n as u32),
                    }
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
                    let (value, slope) = tournament.get(n).expect("it has won");
                    assert_eq!((value, Some(slope)), values[n as usize]);
                    values[n as usize].0 = value - total;
                    tournament.put(n, value - total, slope);
                    tournament.update(n);
                }
            }
        }
    }
}
