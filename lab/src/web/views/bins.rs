//! Steps of a period: enough for a line, and no more than a reader can see.

use std::collections::BTreeMap;

use store::{
    Answer, Error, Grouping, HOURS_KEPT_S, Histogram, MINUTES_KEPT_S, Metric, Step, Totals,
};

use super::view::Context;
use crate::time::DAY_S;
use crate::web::chart::{Chart, Lines, Scale, Series};
use crate::web::params::Params;

/// Steps of a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bins {
    /// Begin and end of the period, Unix seconds.
    pub(super) period: (u64, u64),
    /// Length of a step, seconds.
    pub(super) step_s: u64,
    /// Step of the store that steps are made of.
    pub(super) base: Step,
    /// Begins of all steps that have begun, Unix seconds; one at least.
    pub(super) starts: Vec<u64>,
    now_s: u64,
}

/// Figures of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bin {
    pub(super) totals: Totals,
    pub(super) histogram: Histogram,
}

/// A line of a rate: name, and the count behind it.
pub(super) type Rate = (&'static str, fn(&Totals) -> u64);

impl Bins {
    /// Returns the steps of a period: 60 to 200 in most cases.
    pub(super) fn of(params: &Params) -> Self {
        let (from, to) = params.period();
        let age = params.now_s.saturating_sub(from);
        let length = to - from;
        let (step_s, base) = if age + 3600 <= MINUTES_KEPT_S && length <= 26 * 3600 {
            // Roll-ups by minute must still be there for the whole period.
            let step_s = match length {
                0..=10_800 => 60,
                10_801..=43_200 => 300,
                _ => 600,
            };
            (step_s, Step::Minute)
        } else if age + DAY_S <= HOURS_KEPT_S && length <= 32 * DAY_S {
            let step_s = if length <= 8 * DAY_S { 3600 } else { 6 * 3600 };
            (step_s, Step::Hour)
        } else {
            (length.div_ceil(DAYS_MAX * DAY_S).max(1) * DAY_S, Step::Day)
        };
        let first = from - from % step_s;
        let end = to.min(params.now_s).max(from + 1);
        Self {
            period: (from, to),
            step_s,
            base,
            starts: (first..end).step_by(step_s as usize).collect(),
            now_s: params.now_s,
        }
    }

    /// Reads the figures of all steps; steps without connections are empty.
    pub(super) fn read(&self, context: &Context<'_>, metric: Metric) -> Result<Vec<Bin>, Error> {
        let query = context.query(Grouping::Time(self.base), metric);
        Ok(self.joined(&context.store.answer(&query)?))
    }

    fn joined(&self, answer: &Answer) -> Vec<Bin> {
        let mut bins: BTreeMap<u64, Bin> = BTreeMap::new();
        for group in &answer.groups {
            let at = group.key.parse().unwrap_or(0);
            let bin = bins.entry(self.start_of(at)).or_default();
            bin.totals.merge(&group.totals);
            bin.histogram.merge(&group.histogram);
        }
        let all = self.starts.iter();
        all.map(|start| bins.remove(start).unwrap_or_default())
            .collect()
    }

    /// Returns the beginning of the step of a time. Times before the first step count in it, and those after the last in that:
    /// roll-ups may be coarser than steps.
    pub(super) fn start_of(&self, at: u64) -> u64 {
        let first = self.starts.first().copied().unwrap_or(0);
        let last = self.starts.last().copied().unwrap_or(first);
        (at - at % self.step_s).clamp(first, last)
    }

    /// Returns a rate per second. The last step counts until now.
    pub(super) fn per_s(&self, start: u64, count: u64) -> Option<f64> {
        let end = (start + self.step_s).min(self.now_s).min(self.period.1);
        let seconds = end.saturating_sub(start.max(self.period.0));
        // The figures of some seconds are no rate.
        (seconds >= self.step_s.min(LEAST_S)).then(|| count as f64 / seconds as f64)
    }

    /// Returns rates per second as lines.
    pub(super) fn rates(&self, bins: &[Bin], rates: &[Rate]) -> Vec<Series> {
        let series = |(name, count): &Rate| {
            let all = self.starts.iter().zip(bins);
            let rate = |(start, bin): (&u64, &Bin)| self.per_s(*start, count(&bin.totals));
            Series {
                name: (*name).to_owned(),
                values: all.map(rate).collect(),
            }
        };
        rates.iter().map(series).collect()
    }

    /// Returns a chart of lines with a value for each step.
    pub(super) fn lines(&self, series: Vec<Series>, unit: &'static str, scale: Scale) -> Chart {
        Chart::Lines(Lines {
            period: self.period,
            times: self.starts.clone(),
            series,
            scale,
            unit,
        })
    }
}

/// Returns the line of a quantile, ms.
pub(super) fn quantile(name: &str, bins: &[Bin], q: f64) -> Series {
    let quantile = |bin: &Bin| bin.histogram.quantile_us(q).map(|us| us / 1000.0);
    Series {
        name: name.to_owned(),
        values: bins.iter().map(quantile).collect(),
    }
}

/// Sums of all steps.
pub(super) fn sum(bins: &[Bin]) -> Bin {
    let mut all = Bin::default();
    for bin in bins {
        all.totals.merge(&bin.totals);
        all.histogram.merge(&bin.histogram);
    }
    all
}

/// Steps of long periods.
const DAYS_MAX: u64 = 130;
/// Shortest time of a rate, seconds.
const LEAST_S: u64 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_767_225_600 + 1234;

    #[test]
    fn periods_have_steps_that_roll_ups_have() {
        for (query, step_s, base) in [
            ("period=1h", 60, Step::Minute),
            ("period=6h", 300, Step::Minute),
            ("", 600, Step::Minute),
            ("shift=-1", 3600, Step::Hour),
            ("period=1h&shift=-45", 60, Step::Minute),
            ("period=1h&shift=-47", 3600, Step::Hour),
            ("period=7d", 3600, Step::Hour),
            ("period=30d", 21_600, Step::Hour),
            ("period=30d&shift=-1", 86_400, Step::Day),
            ("period=90d", 86_400, Step::Day),
            ("period=400d", 4 * 86_400, Step::Day),
        ] {
            let params = Params::parse(query, NOW).expect(query);
            let bins = Bins::of(&params);
            assert_eq!((bins.step_s, bins.base), (step_s, base), "{query}");
            assert!(bins.starts.len() <= 200, "{query}: {}", bins.starts.len());
            assert!(!bins.starts.is_empty() && bins.starts.iter().all(|start| *start < NOW));
        }
    }

    #[test]
    fn last_step_counts_until_now() {
        let params = Params::parse("period=7d", NOW).expect("it is valid");
        let bins = Bins::of(&params);
        let last = *bins.starts.last().expect("it has steps");
        assert_eq!(last, 1_767_225_600);
        assert_eq!(bins.per_s(last, 1234), Some(1.0));
        assert_eq!(bins.per_s(last - 3600, 3600), Some(1.0));
        for (seconds, found) in [(29, None), (30, Some(1.0))] {
            let early = Bins {
                now_s: last + seconds,
                ..bins.clone()
            };
            assert_eq!(early.per_s(last, 30), found, "{seconds}");
        }
    }

    #[test]
    fn a_period_in_the_future_has_one_step() {
        let params = Params::parse("period=1h&shift=5", NOW).expect("it is valid");
        assert_eq!(Bins::of(&params).starts.len(), 1);
    }
}
