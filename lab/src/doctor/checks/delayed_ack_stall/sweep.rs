//! Schedule of a sweep: every cell once, then more samples of late cells.

use std::collections::VecDeque;

use serde_json::json;

use super::walk::walk;
use crate::doctor::judge::stall::sweep::{Subject, Sweep};
use crate::doctor::judge::stall::verdict::{PLACES, late_after};
use crate::doctor::{Examination, Failure, NetworkPath};

impl Sweep {
    pub(super) fn new(subjects: Vec<Subject>, x: &Examination<'_>) -> Self {
        let holds = x.network.holds().to_vec();
        let after = holds
            .iter()
            .map(|hold| late_after(*hold, x.network.round_trip()));
        Self {
            late_after_ms: after.collect(),
            held: vec![Vec::new(); holds.len()],
            free: Vec::new(),
            subjects,
            holds,
        }
    }

    /// Each subject once without a hold, and once at each place at the longest hold.
    pub(super) fn screen(&mut self, x: &Examination<'_>) -> Result<(), Failure> {
        let all: Vec<usize> = (0..self.subjects.len()).collect();
        let once: Vec<Vec<usize>> = all.chunks(PLACES).map(<[usize]>::to_vec).collect();
        self.free = walk(x, &self.subjects, NetworkPath::Delayed(None), &once)?;
        self.held[0] = walk(
            x,
            &self.subjects,
            self.network_path(0),
            &at_each_place(&all),
        )?;
        match x.requests_left() {
            // Some bodies may not have been requested, so no verdict is possible.
            0 => Err(Failure::BudgetSpent),
            _ => Ok(()),
        }
    }

    /// Cells that were late once more without a hold, twice more at the longest hold, and then at each shorter one.
    pub(super) fn confirm(&mut self, x: &Examination<'_>) -> Result<(), Failure> {
        let mut late = self.verdict().suspects();
        // If the budget is too small for all cells, the first places of all bodies are confirmed.
        late.sort_by_key(|(subject, place)| (*place, *subject));
        late.truncate(spare(x) / REQUESTS_A_CELL);
        let sequences = packed(&late);
        let free = walk(x, &self.subjects, NetworkPath::Delayed(None), &sequences)?;
        self.free.extend(free);
        self.repeat(x, 0, &sequences, CONFIRMATIONS)?;
        let mut cells = self.verdict().cells();
        // Rare stalls may be noise of this machine, so few cells need more samples.
        let is_few = cells.len() <= FEW_CELLS;
        if is_few {
            self.repeat(x, 0, &packed(&cells), CONFIRMATIONS)?;
        }
        // One place of each body shows that the wait follows the hold.
        cells.dedup_by_key(|(subject, _)| *subject);
        for shorter in 1..self.holds.len() {
            let times = if is_few { 1 + CONFIRMATIONS } else { 1 };
            self.repeat(x, shorter, &packed(&cells), times)?;
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        x: &Examination<'_>,
        hold: usize,
        sequences: &[Vec<usize>],
        times: usize,
    ) -> Result<(), Failure> {
        for _ in 0..times {
            let more = walk(x, &self.subjects, self.network_path(hold), sequences)?;
            self.held[hold].extend(more);
        }
        Ok(())
    }

    pub(super) fn network_path(&self, hold: usize) -> NetworkPath {
        NetworkPath::Delayed(Some(self.holds[hold]))
    }

    pub(super) fn measure(&self, x: &mut Examination<'_>) {
        let verdict = self.verdict();
        x.measure(
            "delayed_ack_sweep",
            json!({
                "bodies": self.subjects.len(),
                "samples_without_hold": self.free.len(),
                "samples_held": self.held.iter().map(Vec::len).collect::<Vec<_>>(),
                "holds_ms": self.holds.iter().map(|hold| hold.as_secs_f64() * 1000.0).collect::<Vec<_>>(),
                "late_at_first": verdict.suspects().len(),
                "stalling": verdict.stalled().len(),
            }),
        );
    }
}

/// Sequences in which each subject has each place of a connection once.
fn at_each_place(subjects: &[usize]) -> Vec<Vec<usize>> {
    let of = subjects.len();
    (0..of)
        .map(|first| {
            (0..PLACES)
                .map(|place| subjects[(first + place) % of])
                .collect()
        })
        .collect()
}

/// Returns sequences that have each of these cells at its place. Empty places get a subject that is requested anyway.
fn packed(cells: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut waiting: [VecDeque<usize>; PLACES] = Default::default();
    for (subject, place) in cells {
        waiting[*place].push_back(*subject);
    }
    let mut sequences = Vec::new();
    loop {
        let next: Vec<Option<usize>> = waiting.iter_mut().map(VecDeque::pop_front).collect();
        let Some(last) = next.iter().rposition(Option::is_some) else {
            return sequences;
        };
        let filler = next.iter().flatten().next().copied().unwrap_or_default();
        let places = next[..=last].iter();
        sequences.push(places.map(|subject| subject.unwrap_or(filler)).collect());
    }
}

/// Requests left for a sweep; the rest is reserved for later checks.
pub(super) fn spare(x: &Examination<'_>) -> usize {
    x.requests_left().saturating_sub(KEPT) as usize
}

/// Requests reserved for the checks after a sweep.
const KEPT: u32 = 20;
/// Requests of a cell that is confirmed: without a hold, at the longest one, and at the shorter one, with fillers.
const REQUESTS_A_CELL: usize = 6;
/// Samples of a cell after the first one.
const CONFIRMATIONS: usize = 2;
/// So few cells that stall are measured again.
const FEW_CELLS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_subject_has_each_place_once() {
        for subjects in [vec![3], vec![0, 1], (0..30).collect::<Vec<_>>()] {
            let sequences = at_each_place(&subjects);
            for subject in &subjects {
                for place in 0..PLACES {
                    let there = sequences.iter().filter(|one| one[place] == *subject);
                    assert_eq!(there.count(), 1, "{subject} at {place}");
                }
            }
        }
        assert!(at_each_place(&[]).is_empty());
    }

    #[test]
    fn cells_are_packed_into_few_requests() {
        assert!(packed(&[]).is_empty());
        assert_eq!(packed(&[(7, 0), (8, 0)]), [vec![7], vec![8]]);
        assert_eq!(packed(&[(7, 2)]), [vec![7, 7, 7]]);
        assert_eq!(
            packed(&[(1, 0), (1, 1), (2, 0), (1, 3)]),
            [vec![1, 1, 1, 1], vec![2]]
        );
    }
}
