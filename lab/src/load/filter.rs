//! Samples that are kept until a filter has accepted them.
//!
//! An emulated link knows the times when it was late, and excludes samples of those times. It knows them only after a sample is
//! complete, and a query for each sample would be expensive. So with a [`SampleFilter`], samples are kept and filtered together,
//! many times a second. Without one they are counted at once.
//!
//! Source: docs/lab.md.

use std::time::Instant;

use super::result::{LoadResult, Sample};
use crate::client::Clocks;
use crate::stats::Metric;

/// Excludes samples that measured something between client and server instead of the server.
pub trait SampleFilter: Sync {
    /// Whether samples are excluded, each from its first moment to its last; as many answers as there are samples.
    fn excludes(&self, samples: &[(Instant, Instant)]) -> Vec<bool>;

    /// Whether the other samples can be trusted: at most one in a hundred is excluded, or a single one.
    fn is_conclusive(&self, samples: u64, excluded: u64) -> bool;
}

impl LoadResult {
    /// Counts a sample, or keeps it for the filter if there is one.
    #[inline]
    pub(super) fn sample(&mut self, metric: Metric, from_ns: u64, to_ns: u64) {
        match &mut self.unfiltered {
            None => self.times_mut(metric).record(to_ns.saturating_sub(from_ns)),
            Some(kept) => kept.push(Sample {
                metric,
                from_ns,
                to_ns,
            }),
        }
    }

    /// Filters the kept samples. Accepted ones are counted with their times, excluded ones only by number.
    pub(super) fn settle(&mut self, filter: &dyn SampleFilter) {
        let Some(kept) = self.unfiltered.as_mut().filter(|kept| !kept.is_empty()) else {
            return;
        };
        let kept = std::mem::take(kept);
        let clocks = Clocks::now();
        let moments = kept
            .iter()
            .map(|sample| (clocks.instant(sample.from_ns), clocks.instant(sample.to_ns)));
        let answers = filter.excludes(&moments.collect::<Vec<_>>());
        debug_assert_eq!(answers.len(), kept.len(), "each sample has its answer");
        for (sample, excluded) in kept.iter().zip(answers) {
            let times = self.times_mut(sample.metric);
            match excluded {
                true => times.excluded += 1,
                false => times.record(sample.to_ns.saturating_sub(sample.from_ns)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::now_ns;

    /// A link that was late once.
    struct Late(Instant);

    impl SampleFilter for Late {
        fn excludes(&self, samples: &[(Instant, Instant)]) -> Vec<bool> {
            let at = self.0;
            let excluded = samples.iter().map(|(from, to)| (*from..=*to).contains(&at));
            excluded.collect()
        }

        fn is_conclusive(&self, samples: u64, excluded: u64) -> bool {
            excluded * 100 <= samples
        }
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn samples_that_overlap_a_late_delivery_are_left_out_and_counted() {
        let begun = now_ns() - 1000 * MS;
        // Late at 50.5 ms: two responses are in progress then, each for 2 ms.
        let filter = Late(Clocks::now().instant(begun + 50 * MS + MS / 2));
        let mut result = LoadResult {
            unfiltered: Some(Vec::new()),
            ..LoadResult::default()
        };
        for at in 0..100 {
            let sent = begun + at * MS;
            result.sample(Metric::Service, sent, sent + 2 * MS - 1);
            result.sample(Metric::FirstByte, sent, sent + MS - 1);
        }
        // An outlier that the link is to blame for.
        result.sample(Metric::Service, begun, begun + 900 * MS);
        assert_eq!(result.times(Metric::Service).taken(), 0, "not filtered yet");
        result.settle(&filter);
        assert_eq!(
            (
                result.times(Metric::Service).valid.len(),
                result.times(Metric::Service).excluded
            ),
            (98, 3)
        );
        assert_eq!(result.times(Metric::Service).taken(), 101);
        assert!(
            result.times(Metric::Service).valid.max() < 3 * MS,
            "the outlier is excluded"
        );
        let first = result.times(Metric::FirstByte);
        assert_eq!((first.valid.len(), first.excluded), (99, 1));
        assert_eq!(result.times(Metric::Connect).taken(), 0);
        result.settle(&filter);
        assert_eq!(
            result.times(Metric::Service).taken(),
            101,
            "each is filtered once"
        );
        let mut sum = LoadResult::default();
        sum.append(&result);
        sum.append(&result);
        assert_eq!(
            (
                sum.times(Metric::Service).valid.len(),
                sum.times(Metric::Service).excluded
            ),
            (196, 6)
        );
    }

    #[test]
    fn samples_are_counted_at_once_without_a_filter() {
        let mut result = LoadResult::default();
        result.sample(Metric::Connect, 5, 7);
        result.settle(&Late(Instant::now()));
        let connect = result.times(Metric::Connect);
        assert_eq!((connect.valid.max(), connect.excluded), (2, 0));
    }
}
