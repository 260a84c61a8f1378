//! Which cells of a sweep stall: a cell is a subject at a place of a connection.

use std::time::Duration;

use crate::stats::{Estimate, mean};

/// One response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// The place of its body in the list of subjects.
    pub(crate) subject: usize,
    /// Its place on the connection, from 0.
    pub(crate) place: usize,
    /// From the request to the first byte of the head, ms.
    pub(crate) first_ms: f64,
    /// From the request to the end of the body, ms.
    pub(crate) end_ms: f64,
    /// Bytes of the body as they were transferred.
    pub(crate) sent_bytes: u64,
}

/// Samples, and when one of them is late.
pub(crate) struct Verdict<'a> {
    /// Number of subjects.
    pub(crate) subjects: usize,
    /// Samples without a hold.
    pub(crate) free: &'a [Sample],
    /// Samples of each hold.
    pub(crate) held: &'a [Vec<Sample>],
    /// See [`late_after`].
    pub(crate) late_after_ms: &'a [f64],
}

impl Verdict<'_> {
    /// By how much each sample of a subject at a place is later than the subject without a hold, ms.
    fn lateness(&self, hold: usize, subject: usize, place: usize) -> Vec<f64> {
        let Some(free_ms) = self.free_ms(subject) else {
            return Vec::new();
        };
        let here = |one: &&Sample| one.subject == subject && one.place == place;
        let samples = self.held[hold].iter().filter(here);
        samples.map(|one| one.end_ms - free_ms).collect()
    }

    /// The slowest time of a subject without a hold, ms: a subject that is as slow by itself is not late.
    fn free_ms(&self, subject: usize) -> Option<f64> {
        let own = self.free.iter().filter(|one| one.subject == subject);
        own.map(|one| one.end_ms).max_by(f64::total_cmp)
    }

    /// Cells with a late sample at the longest hold.
    pub(crate) fn suspects(&self) -> Vec<(usize, usize)> {
        let late = |(subject, place): &(usize, usize)| {
            let lateness = self.lateness(0, *subject, *place);
            lateness.iter().any(|ms| *ms >= self.late_after_ms[0])
        };
        self.all().filter(late).collect()
    }

    fn all(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.subjects).flat_map(|subject| (0..PLACES).map(move |place| (subject, place)))
    }

    /// Cells that stall: several samples, and each of them late.
    pub(crate) fn cells(&self) -> Vec<(usize, usize)> {
        self.all()
            .filter(|(subject, place)| {
                let lateness = self.lateness(0, *subject, *place);
                let late = lateness.iter().filter(|ms| **ms >= self.late_after_ms[0]);
                let (late, of) = (late.count(), lateness.len());
                // More samples are taken if few cells stall; one of them may have been lucky.
                late >= SAMPLES && late * 5 >= of * 4
            })
            .collect()
    }

    /// Subjects that stall at a place at least.
    pub(crate) fn stalled(&self) -> Vec<usize> {
        let mut stalled: Vec<usize> = self.cells().iter().map(|(subject, _)| *subject).collect();
        stalled.dedup();
        stalled
    }

    /// Mean delay of the subjects that stall at a hold, ms. `n` is the number of subjects. Samples of one subject are not
    /// independent: they share its size and its time without a hold.
    pub(crate) fn late_ms(&self, hold: usize) -> Option<Estimate> {
        let stalled = self.stalled().into_iter();
        let means: Vec<f64> = stalled
            .filter_map(|subject| self.late_ms_of(hold, subject))
            .collect();
        mean(&means, LEVEL)
    }

    /// Mean delay of a subject at a hold, ms, at the places at which it stalls.
    pub(crate) fn late_ms_of(&self, hold: usize, subject: usize) -> Option<f64> {
        let cells = self.cells().into_iter().filter(|(n, _)| *n == subject);
        let all: Vec<f64> = cells
            .flat_map(|(_, place)| self.lateness(hold, subject, place))
            .collect();
        mean(&all, LEVEL).map(|late| late.value)
    }

    /// Of the samples at a hold that belong to cells which stall: how many are late, and of how many.
    pub(crate) fn late_of(&self, hold: usize) -> (usize, usize) {
        let cells = self.cells().into_iter();
        let all: Vec<f64> = cells
            .flat_map(|(subject, place)| self.lateness(hold, subject, place))
            .collect();
        let late = all
            .iter()
            .filter(|ms| **ms >= self.late_after_ms[hold])
            .count();
        (late, all.len())
    }
}

/// Least delay of a response that waits for a held acknowledgement, ms.
///
/// The wait costs the hold and a round trip; without a hold, the same response costs that round trip, too. With two segments in
/// flight Linux sends the rest earlier, as a probe after two round trips (RFC 8985 section 7). That is one round trip more than
/// without a hold. The threshold is a share of the smaller delay, since times vary.
pub(crate) fn late_after(hold: Duration, link: Option<Duration>) -> f64 {
    let least = link.map_or(hold, |round_trip| hold.min(round_trip));
    least.as_secs_f64() * 1000.0 * LATE_SHARE
}

/// Requests of a connection.
pub(crate) const PLACES: usize = 4;
/// Samples of a cell, at least.
const SAMPLES: usize = 3;
/// The share of it from which on a response is late.
const LATE_SHARE: f64 = 0.75;
/// The level of intervals.
const LEVEL: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: [f64; 1] = [75.0];

    fn samples(subject: usize, place: usize, times: &[f64]) -> Vec<Sample> {
        let sample = |ms: &f64| Sample {
            subject,
            place,
            first_ms: 50.0,
            end_ms: *ms,
            sent_bytes: 100,
        };
        times.iter().map(sample).collect()
    }

    type Places = Vec<(usize, usize)>;

    fn stalled(free: &[Sample], held: Vec<Sample>) -> (Places, Places) {
        let verdict = Verdict {
            subjects: 2,
            free,
            held: &[held],
            late_after_ms: &AFTER,
        };
        (verdict.suspects(), verdict.cells())
    }

    #[test]
    fn a_cell_stalls_when_three_samples_are_late() {
        let free = samples(0, 0, &[51.0]);
        let held = |times: &[f64]| stalled(&free, samples(0, 2, times));
        assert_eq!(held(&[300.0]), (vec![(0, 2)], vec![]));
        assert_eq!(held(&[300.0, 301.0]), (vec![(0, 2)], vec![]));
        assert_eq!(held(&[300.0, 301.0, 300.0]), (vec![(0, 2)], vec![(0, 2)]));
        assert_eq!(held(&[300.0, 301.0, 52.0]), (vec![(0, 2)], vec![]));
        assert_eq!(held(&[52.0, 51.0, 52.0]), (vec![], vec![]));
        // Of five, one may be in time.
        assert_eq!(held(&[300.0, 301.0, 52.0, 300.0, 300.0]).1, [(0, 2)]);
    }

    #[test]
    fn interval_of_the_delay_is_of_bodies_not_of_samples() {
        let free = [samples(0, 0, &[50.0]), samples(1, 0, &[50.0])].concat();
        let late_ms = |held: Vec<Sample>| {
            let verdict = Verdict {
                subjects: 2,
                free: &free,
                held: &[held],
                late_after_ms: &AFTER,
            };
            verdict.late_ms(0).expect("it stalls")
        };
        let one = samples(0, 2, &[150.0, 151.0, 149.0, 150.0]);
        let alone = late_ms(one.clone());
        assert_eq!((alone.value, alone.n), (100.0, 1));
        assert!(alone.low.is_infinite() && alone.high.is_infinite());
        let both = late_ms([one, samples(1, 2, &[250.0; 3])].concat());
        assert_eq!((both.value, both.n), (150.0, 2));
        assert!(both.low < 100.0 && both.high > 200.0, "{both:?}");
    }

    #[test]
    fn a_server_that_is_slow_without_holds_does_not_stall() {
        let slow = samples(0, 0, &[50.0, 310.0]);
        assert_eq!(stalled(&slow, samples(0, 0, &[320.0; 3])), (vec![], vec![]));
        // A subject without a sample at no hold has no verdict.
        assert_eq!(stalled(&[], samples(0, 0, &[320.0; 3])), (vec![], vec![]));
    }

    #[test]
    fn lateness_is_the_hold_or_a_round_trip() {
        let ms = Duration::from_millis;
        assert_eq!(late_after(ms(200), Some(ms(50))), 37.5);
        assert_eq!(late_after(ms(40), Some(ms(50))), 30.0);
        assert_eq!(late_after(ms(40), None), 30.0);
    }
}
