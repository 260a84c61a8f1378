//! Smooth weighted round robin.
//!
//! Each choice adds the effective weight of every usable peer to its sum. The peer with the largest sum is chosen, and
//! its sum reduced by the total. A failure lowers the effective weight. Each choice raises it by one, up to the weight.
//!
//! The sums of a long list are in a [`Tournament`]: a choice costs O(log n). A sum is a function of the count of choices, so
//! a peer is visited only if it is chosen or its state changes. If each choice changes many peers, a scan of all costs less.
//!
//! Source: nginx documentation, `upstream`; nginx's behaviour.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::tournament::Tournament;
use crate::peer::Peer;
use crate::weights::Weights;

/// The peers that one request has tried, by their numbers in the list.
#[derive(Debug, Default)]
pub struct TriedNumbers {
    few: [u32; FEW],
    len: usize,
    more: Vec<u32>,
}

/// Round-robin state of a list of peers.
#[derive(Debug, Default)]
pub struct RoundRobin {
    /// Indices of the peers, by their numbers in the list.
    list: Vec<u32>,
    /// Empty if the last choice was made by a scan; then the peers have their sums.
    sums: Tournament,
    /// Numbers of peers with a changed state.
    changed: Vec<u32>,
    /// Numbers of peers that failed, with the second at which they may be tried again.
    awaited: BinaryHeap<Reverse<(u64, u32)>>,
    /// Numbers of peers with an effective weight below their weight.
    rising: Vec<u32>,
    /// Number of such peers in the last scan.
    rising_in_scan: usize,
    /// A method chooses among parts of the list, so there is no tournament.
    has_parts: bool,
    /// Sum of the weights of all peers, also of those that are down.
    total_weight: i64,
}

/// A choice by visits of the peers that take part.
#[derive(Default)]
struct Turn {
    /// Number and sum of the winner so far.
    best: Option<(u32, i64)>,
    total: i64,
    /// Number of peers with an effective weight below their weight.
    rising: usize,
}

impl Turn {
    #[inline]
    fn visit(&mut self, n: u32, weights: &mut Weights) {
        weights.current += weights.effective;
        self.total += weights.effective;
        if weights.effective < weights.weight {
            weights.effective += 1;
            self.rising += 1;
        }
        if self.best.is_none_or(|(_, most)| weights.current > most) {
            self.best = Some((n, weights.current));
        }
    }

    /// Returns the winner, which is `bound` if it is set.
    #[inline]
    fn end(self, list: &[u32], peers: &mut [Peer], bound: Option<u32>) -> Option<u32> {
        let n = bound.or(self.best.map(|(n, _)| n))?;
        peers[list[n as usize] as usize].weights.current -= self.total;
        Some(n)
    }
}

impl TriedNumbers {
    fn numbers(&self) -> impl Iterator<Item = u32> {
        let few = &self.few[..self.len.min(FEW)];
        few.iter().chain(&self.more).copied()
    }

    /// Returns a mark for each of `len` peers, or an empty list if none was tried.
    pub(super) fn marks(&self, len: usize) -> Vec<bool> {
        let mut marks = Vec::new();
        if self.len > 0 {
            marks.resize(len, false);
            self.numbers().for_each(|n| marks[n as usize] = true);
        }
        marks
    }

    /// Whether no peer was tried.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the peer was tried.
    pub(super) fn contains(&self, n: u32) -> bool {
        self.numbers().any(|tried| tried == n)
    }

    /// Adds a peer.
    pub(super) fn add(&mut self, n: u32) {
        match self.few.get_mut(self.len) {
            Some(place) => *place = n,
            None => self.more.push(n),
        }
        self.len += 1;
    }

    /// Forgets all peers.
    pub fn clear(&mut self) {
        self.len = 0;
        self.more.clear();
    }
}

impl RoundRobin {
    /// Returns the indices of the peers in the order of the list.
    pub fn list(&self) -> &[u32] {
        &self.list
    }

    /// Sets the list. Peers that stay keep their sums. The tournament must have been closed.
    pub fn set_list(&mut self, list: Vec<u32>, peers: &mut [Peer]) {
        self.total_weight = 0;
        for (n, at) in (0..).zip(&list) {
            let peer = &mut peers[*at as usize];
            peer.number = n;
            self.total_weight += peer.weights.weight;
        }
        self.list = list;
    }

    /// Ends the tournament and stores its sums in the peers.
    pub fn close(&mut self, peers: &mut [Peer]) {
        if self.sums.is_empty() {
            return;
        }
        for (n, at) in (0..).zip(&self.list) {
            let weights = &mut peers[*at as usize].weights;
            if let Some((sum, _)) = self.sums.get(n) {
                weights.current = sum;
            }
            (weights.is_changed, weights.is_awaited) = (false, false);
            weights.is_rising = false;
        }
        *self = Self {
            list: std::mem::take(&mut self.list),
            has_parts: self.has_parts,
            total_weight: self.total_weight,
            ..Self::default()
        };
    }

    /// Begins again without sums. The list stays.
    pub fn reset(&mut self, peers: &mut [Peer]) {
        for at in &self.list {
            let weights = &mut peers[*at as usize].weights;
            *weights = Weights::new(weights.weight);
        }
        *self = Self {
            list: std::mem::take(&mut self.list),
            ..Self::default()
        };
    }

    /// Records that a peer of the list has failed or recovered, or that it is full or no longer full.
    pub fn mark_changed(&mut self, peer: &mut Peer) {
        if !self.sums.is_empty() && !peer.weights.is_changed {
            peer.weights.is_changed = true;
            self.changed.push(peer.number);
        }
    }

    /// Chooses a peer that was not tried, and returns its number.
    #[inline]
    pub(super) fn choose(
        &mut self,
        peers: &mut [Peer],
        tried: &TriedNumbers,
        now_s: u64,
    ) -> Option<u32> {
        self.choose_for(peers, tried, now_s, None)
    }

    /// Counts the choice of this peer for a request that is bound to it.
    ///
    /// As in nginx, it counts as a turn of the peer: the peer gets fewer of the requests that are not bound. Turns do not
    /// accumulate. A peer with a sum as low as after one turn is chosen without a change of the sums.
    pub(super) fn count_turn(
        &mut self,
        n: u32,
        peers: &mut [Peer],
        tried: &TriedNumbers,
        now_s: u64,
    ) {
        let weights = &peers[self.list[n as usize] as usize].weights;
        let sum = match self.sums.is_empty() {
            true => weights.current,
            false => self.sums.get(n).map_or(weights.current, |(sum, _)| sum),
        };
        if sum > weights.weight - self.total_weight {
            self.choose_for(peers, tried, now_s, Some(n));
        }
    }

    /// Makes a choice, or counts the choice of the peer `bound`. Returns the number of the peer.
    #[inline]
    fn choose_for(
        &mut self,
        peers: &mut [Peer],
        tried: &TriedNumbers,
        now_s: u64,
        bound: Option<u32>,
    ) -> Option<u32> {
        let many = self.list.len() / BULK;
        if many == 0 || self.has_parts {
            // A scan of a short list costs less than a tournament, which stays empty.
        } else if self.rising.len() > many || tried.len > many {
            let rising = self.rising.len();
            self.close(peers);
            self.rising_in_scan = self.rising_in_scan.max(rising);
        } else if self.sums.is_empty() && self.rising_in_scan <= many / 2 {
            self.open(peers);
        }
        match self.sums.is_empty() {
            true => self.scan(peers, tried, now_s, bound),
            false => self.step(peers, tried, now_s, bound),
        }
    }

    /// Chooses among these peers, which are usable and were not tried. The list has no tournament from now on.
    pub(super) fn choose_of(&mut self, peers: &mut [Peer], numbers: &[u32]) -> Option<u32> {
        self.close(peers);
        // A tournament for each part of the list would cost more than scans of the parts.
        self.has_parts = true;
        let mut turn = Turn::default();
        for n in numbers {
            turn.visit(*n, &mut peers[self.list[*n as usize] as usize].weights);
        }
        turn.end(&self.list, peers, None)
    }

    /// Chooses by a visit of each peer.
    fn scan(
        &mut self,
        peers: &mut [Peer],
        tried: &TriedNumbers,
        now_s: u64,
        bound: Option<u32>,
    ) -> Option<u32> {
        let is_tried = tried.marks(self.list.len());
        let mut turn = Turn::default();
        for (n, at) in (0..).zip(&self.list) {
            let peer = &mut peers[*at as usize];
            if peer.is_usable(now_s) && is_tried.get(n as usize) != Some(&true) {
                turn.visit(n, &mut peer.weights);
            }
        }
        self.rising_in_scan = turn.rising;
        turn.end(&self.list, peers, bound)
    }

    /// Whether the last choice was made by a tournament.
    #[cfg(test)]
    pub(crate) fn has_tournament(&self) -> bool {
        !self.sums.is_empty()
    }

    /// Begins a tournament with the sums of the peers.
    fn open(&mut self, peers: &mut [Peer]) {
        self.sums = Tournament::new(self.list.len());
        for at in &self.list {
            let peer = &mut peers[*at as usize];
            peer.weights.is_changed = true;
            self.changed.push(peer.number);
        }
    }

    /// Chooses by a step of the tournament.
    fn step(
        &mut self,
        peers: &mut [Peer],
        tried: &TriedNumbers,
        now_s: u64,
        bound: Option<u32>,
    ) -> Option<u32> {
        self.visit_changed(peers, now_s);
        // A tried peer takes no part in this choice, and keeps its sum.
        let mut left_out = Vec::new();
        for n in tried.numbers() {
            if let Some((sum, slope)) = self.sums.get(n) {
                left_out.push((n, sum, slope));
                self.sums.remove(n);
                self.sums.update(n);
            }
        }
        let total = self.sums.total();
        let best = self.sums.step();
        let winner = bound.or(best);
        if let Some(n) = winner {
            match self.sums.get(n) {
                Some((sum, slope)) => {
                    self.sums.put(n, sum - total, slope);
                    self.sums.update(n);
                }
                // A draining peer takes part in no choice.
                None => peers[self.list[n as usize] as usize].weights.current -= total,
            }
            self.raise(peers);
        }
        for (n, sum, slope) in left_out {
            self.sums.put(n, sum, slope);
            self.sums.update(n);
            self.add_rising(n, &mut peers[self.list[n as usize] as usize]);
        }
        winner
    }

    /// Lists a peer with an effective weight below its weight.
    fn add_rising(&mut self, n: u32, peer: &mut Peer) {
        let weights = &mut peer.weights;
        if weights.effective < weights.weight && !std::mem::replace(&mut weights.is_rising, true) {
            self.rising.push(n);
        }
    }

    /// Visits the peers with a changed state.
    fn visit_changed(&mut self, peers: &mut [Peer], now_s: u64) {
        while let Some(Reverse((at_s, n))) = self.awaited.peek().copied()
            && at_s <= now_s
        {
            self.awaited.pop();
            let weights = &mut peers[self.list[n as usize] as usize].weights;
            weights.is_awaited = false;
            if !std::mem::replace(&mut weights.is_changed, true) {
                self.changed.push(n);
            }
        }
        // One pass over all nodes is cheaper than many paths to the root.
        let is_bulk = self.changed.len() > self.list.len() / BULK;
        let mut changed = std::mem::take(&mut self.changed);
        for n in changed.drain(..) {
            let peer = &mut peers[self.list[n as usize] as usize];
            let is_usable = peer.is_usable(now_s);
            let weights = &mut peer.weights;
            weights.is_changed = false;
            if let Some((sum, _)) = self.sums.get(n) {
                weights.current = sum;
            }
            match is_usable {
                true => self.sums.put(n, weights.current, weights.effective),
                false => self.sums.remove(n),
            }
            if !is_bulk {
                self.sums.update(n);
            }
            if is_usable {
                self.add_rising(n, peer);
            }
            if peer.failures.has_failed(now_s)
                && !std::mem::replace(&mut peer.weights.is_awaited, true)
            {
                self.awaited.push(Reverse((peer.failures.retry_s(), n)));
            }
        }
        self.changed = changed;
        if is_bulk {
            self.sums.update_all();
        }
    }

    /// Raises effective weights that are below the weight, of peers that took part in the choice.
    fn raise(&mut self, peers: &mut [Peer]) {
        let Self { rising, sums, .. } = self;
        rising.retain(|n| {
            let weights = &mut peers[self.list[*n as usize] as usize].weights;
            weights.is_rising = false;
            if let Some((sum, _)) = sums.get(*n) {
                weights.effective += 1;
                sums.put(*n, sum, weights.effective);
                sums.update(*n);
                weights.is_rising = weights.effective < weights.weight;
            }
            weights.is_rising
        });
    }
}

/// Number of tried peers stored without an allocation.
const FEW: usize = 4;
/// If more than one in this number of peers is to be visited, all are. Shorter lists have no tournament.
const BULK: usize = 16;

#[cfg(test)]
#[path = "round_robin_tests.rs"]
mod tests;
