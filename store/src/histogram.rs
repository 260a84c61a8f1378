//! Histograms of times with logarithmic buckets.
//!
//! Each doubling of the time has [`PARTS`] buckets of equal width, so a bucket is 3.1 to 6.3 % wide. A bucket keeps the number
//! and the sum of its times. Histograms merge by addition. A quantile is interpolated within its bucket:
//! times are spread evenly around their mean, as far as the nearer bound of the bucket.

/// Buckets of one doubling.
const PARTS: u64 = 16;
const PARTS_LOG2: u32 = PARTS.ilog2();

/// Content of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Number of times.
    pub count: u64,
    /// Sum of the times, microseconds.
    pub sum_us: u64,
}

/// Numbers of times by bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    cells: Vec<Cell>,
    count: u64,
}

/// Returns the number of the bucket of a time in microseconds.
#[must_use]
pub fn bucket_of(us: u64) -> u16 {
    if us < PARTS {
        return us as u16;
    }
    let octave = us.ilog2() - PARTS_LOG2;
    let part = (us >> octave) - PARTS;
    (u64::from(octave + 1) * PARTS + part) as u16
}

/// Returns the least time of a bucket and the least time above it, microseconds.
#[must_use]
pub fn bounds_of(bucket: u16) -> (u64, u64) {
    let bucket = u64::from(bucket);
    if bucket < PARTS {
        return (bucket, bucket + 1);
    }
    let octave = bucket / PARTS - 1;
    let part = bucket % PARTS + PARTS;
    // The end of the last bucket does not fit.
    let end = u64::try_from(u128::from(part + 1) << octave);
    (part << octave, end.unwrap_or(u64::MAX))
}

impl Histogram {
    /// Adds a time in microseconds.
    pub fn add(&mut self, us: u64) {
        self.add_cell(
            bucket_of(us),
            Cell {
                count: 1,
                sum_us: us,
            },
        );
    }

    /// Adds the content of a bucket.
    pub fn add_cell(&mut self, bucket: u16, cell: Cell) {
        let at = usize::from(bucket);
        if at >= self.cells.len() {
            self.cells.resize(at + 1, Cell::default());
        }
        let own = &mut self.cells[at];
        own.count = own.count.saturating_add(cell.count);
        own.sum_us = own.sum_us.saturating_add(cell.sum_us);
        self.count = self.count.saturating_add(cell.count);
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, cell) in other.cells() {
            self.add_cell(bucket, cell);
        }
    }

    /// Number of times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Buckets with at least one time, in the order of their times.
    pub fn cells(&self) -> impl Iterator<Item = (u16, Cell)> {
        let numbered = self.cells.iter().enumerate();
        numbered
            .filter(|(_, cell)| cell.count > 0)
            .map(|(at, cell)| (at as u16, *cell))
    }

    /// Returns the time in microseconds below which the share `q` (0 to 1) of the times is, `None` for an empty histogram.
    #[must_use]
    pub fn quantile_us(&self, q: f64) -> Option<f64> {
        let rank = q.clamp(0.0, 1.0) * self.count as f64;
        let (mut before, mut last) = (0.0, None);
        for (bucket, cell) in self.cells() {
            let count = cell.count as f64;
            // The first and the last of some times are within their bucket: a single time is the mean.
            let edge = 0.5 / count;
            let share = ((rank - before) / count).clamp(edge, 1.0 - edge);
            last = Some(within(bucket, cell, share));
            before += count;
            if before >= rank {
                break;
            }
        }
        last
    }
}

/// Returns the quantile of the times of one bucket.
fn within(bucket: u16, cell: Cell, share: f64) -> f64 {
    let (low, high) = bounds_of(bucket);
    let mean = (cell.sum_us as f64 / cell.count as f64).clamp(low as f64, high as f64);
    let spread = (mean - low as f64).min(high as f64 - mean);
    mean + (2.0 * share - 1.0) * spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        for bucket in 0..bucket_of(u64::MAX) {
            let (low, high) = bounds_of(bucket);
            assert_eq!((bucket_of(low), bucket_of(high - 1)), (bucket, bucket));
            assert_eq!(bucket_of(high), bucket + 1);
        }
        assert_eq!(bounds_of(bucket_of(u64::MAX)).1, u64::MAX);
    }

    #[test]
    fn quantiles_are_those_of_the_times() {
        // Times of a lognormal distribution by its quantiles.
        let times: Vec<u64> = (1..10_000u64)
            .map(|n| (50_000.0 * (2.0 * (n as f64 / 5000.0 - 1.0)).exp()) as u64)
            .collect();
        let mut histogram = Histogram::default();
        times.iter().for_each(|us| histogram.add(*us));
        for q in [0.01, 0.2, 0.5, 0.8, 0.95, 0.999] {
            let exact = times[(q * times.len() as f64) as usize] as f64;
            let found = histogram.quantile_us(q).expect("it has times");
            assert!(
                (found / exact - 1.0).abs() < 0.005,
                "{q}: {found} for {exact}"
            );
        }
    }

    #[test]
    fn median_of_equal_times_is_that_time() {
        for us in [1, 300, 5_123, 20_480, 50_200, 203_977] {
            let mut histogram = Histogram::default();
            for _ in 0..100 {
                histogram.add(us);
            }
            let median = histogram.quantile_us(0.5).expect("it has times");
            assert!((median - us as f64).abs() < 0.01, "{median} for {us}");
        }
    }

    #[test]
    fn quantiles_of_a_single_time_are_that_time() {
        let mut histogram = Histogram::default();
        histogram.add(5_123);
        for q in [0.0, 0.5, 0.95, 1.0] {
            assert_eq!(histogram.quantile_us(q), Some(5_123.0), "{q}");
        }
    }

    #[test]
    fn merged_histograms_are_those_of_all_times() {
        let (mut one, mut two, mut all) = Default::default();
        for us in 0..5000u64 {
            let histogram: &mut Histogram = if us % 3 == 0 { &mut one } else { &mut two };
            histogram.add(us * us);
            Histogram::add(&mut all, us * us);
        }
        one.merge(&two);
        assert_eq!(one, all);
        assert_eq!(all.count(), 5000);
    }

    #[test]
    fn empty_histogram_has_no_quantile() {
        assert_eq!(Histogram::default().quantile_us(0.5), None);
    }
}
