//! Samples that wait for their judgement: whether what the server was measured through was on time for them.
//!
//! An emulated link knows when it was late itself, and a sample of that time says nothing of the server. It knows so for
//! sure only once the sample is over, and is not to be asked for each; so where there is a [`Judge`], samples are kept
//! and judged together, many times a second. Without one they are counted at once.
//!
//! Source: docs/lab.md.

use std::time::{Duration, Instant};

use crate::load::now_ns;
use crate::outcome::{Kind, Outcome};

/// Who knows for which samples a server was not measured, but something between it and the client.
pub trait Judge: Sync {
    /// Whether samples are void, each from its first moment to its last; as many answers as there are samples.
    fn are_void(&self, samples: &[(Instant, Instant)]) -> Vec<bool>;

    /// Whether so few of some samples are void that the others may be trusted: one in a hundred, or a single one.
    fn is_conclusive(&self, samples: u64, void: u64) -> bool;
}

/// A sample; times are nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    kind: Kind,
    from_ns: u64,
    to_ns: u64,
}

impl Outcome {
    /// Counts a sample, or keeps it where it is to be judged.
    #[inline]
    pub(crate) fn sample(&mut self, kind: Kind, from_ns: u64, to_ns: u64) {
        match &mut self.unjudged {
            None => self.times_mut(kind).record(to_ns.saturating_sub(from_ns)),
            Some(kept) => kept.push(Sample {
                kind,
                from_ns,
                to_ns,
            }),
        }
    }

    /// Counts the samples that were kept: what is void by its number alone.
    pub(crate) fn settle(&mut self, judge: &dyn Judge) {
        let Some(kept) = self.unjudged.as_mut().filter(|kept| !kept.is_empty()) else {
            return;
        };
        let kept = std::mem::take(kept);
        let clocks = Clocks::now();
        let moments = kept
            .iter()
            .map(|sample| (clocks.instant(sample.from_ns), clocks.instant(sample.to_ns)));
        let judged = judge.are_void(&moments.collect::<Vec<_>>());
        debug_assert_eq!(judged.len(), kept.len(), "each sample is judged");
        for (sample, void) in kept.iter().zip(judged) {
            let times = self.times_mut(sample.kind);
            match void {
                true => times.void += 1,
                false => times.record(sample.to_ns.saturating_sub(sample.from_ns)),
            }
        }
    }
}

/// The monotonic clock, as the load reads it and as the standard library does.
struct Clocks {
    ns: u64,
    instant: Instant,
}

impl Clocks {
    /// One reading between two of the other; of several the closest, because this thread may have to wait in between.
    fn now() -> Self {
        let read = || {
            let before = now_ns();
            let instant = Instant::now();
            let width = now_ns() - before;
            let ns = before + width / 2;
            (width, Self { ns, instant })
        };
        let mut closest = read();
        for _ in 1..READINGS {
            let next = read();
            if next.0 < closest.0 {
                closest = next;
            }
        }
        closest.1
    }

    fn instant(&self, ns: u64) -> Instant {
        let ahead = Duration::from_nanos(ns.saturating_sub(self.ns));
        let behind = Duration::from_nanos(self.ns.saturating_sub(ns));
        self.instant + ahead - behind
    }
}

const READINGS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// A link that was late once.
    struct Late(Instant);

    impl Judge for Late {
        fn are_void(&self, samples: &[(Instant, Instant)]) -> Vec<bool> {
            let at = self.0;
            let void = samples.iter().map(|(from, to)| (*from..=*to).contains(&at));
            void.collect()
        }

        fn is_conclusive(&self, samples: u64, void: u64) -> bool {
            void * 100 <= samples
        }
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn samples_that_overlap_a_late_delivery_are_left_out_and_counted() {
        let begun = now_ns() - 1000 * MS;
        // Late at 50.5 ms: two responses are under way then, each for 2 ms.
        let judge = Late(Clocks::now().instant(begun + 50 * MS + MS / 2));
        let mut outcome = Outcome {
            unjudged: Some(Vec::new()),
            ..Outcome::default()
        };
        for at in 0..100 {
            let sent = begun + at * MS;
            outcome.sample(Kind::Service, sent, sent + 2 * MS - 1);
            outcome.sample(Kind::FirstByte, sent, sent + MS - 1);
        }
        // An outlier that the link is to blame for.
        outcome.sample(Kind::Service, begun, begun + 900 * MS);
        assert_eq!(outcome.service.taken(), 0, "not judged yet");
        outcome.settle(&judge);
        assert_eq!((outcome.service.valid.len(), outcome.service.void), (98, 3));
        assert_eq!(outcome.service.taken(), 101);
        assert!(outcome.service.valid.max() < 3 * MS, "the outlier is void");
        let first = &outcome.first_byte;
        assert_eq!((first.valid.len(), first.void), (99, 1));
        assert_eq!(outcome.connect.taken(), 0);
        outcome.settle(&judge);
        assert_eq!(outcome.service.taken(), 101, "each is judged once");
        let mut sum = Outcome::default();
        sum.append(&outcome);
        sum.append(&outcome);
        assert_eq!((sum.service.valid.len(), sum.service.void), (196, 6));
    }

    #[test]
    fn samples_are_counted_at_once_where_nobody_judges() {
        let mut outcome = Outcome::default();
        outcome.sample(Kind::Connect, 5, 7);
        outcome.settle(&Late(Instant::now()));
        let connect = &outcome.connect;
        assert_eq!((connect.valid.max(), connect.void), (2, 0));
    }

    #[test]
    fn both_readings_of_the_clock_agree() {
        let clocks = Clocks::now();
        let (before, ns, after) = (Instant::now(), now_ns(), Instant::now());
        // The clocks are bound to each other to the length of a reading; a tenth of a millisecond is far above.
        let slack = Duration::from_micros(100);
        let found = clocks.instant(ns);
        assert!(before - slack <= found && found <= after + slack);
        assert!(clocks.instant(ns - MS) < clocks.instant(ns));
    }
}
