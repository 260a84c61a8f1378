//! Time axis: milliseconds to places, with ticks at 1, 2 or 5 times a power of ten.

/// A time axis that begins at 0 ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    end_ms: f64,
    left: f64,
    right: f64,
}

impl Scale {
    /// An axis between two places that ends at a time.
    pub(super) fn new(end_ms: f64, left: f64, right: f64) -> Self {
        // A visit that took no time still needs an axis.
        let end_ms = sane_ms(end_ms).max(1.0);
        Self {
            end_ms,
            left,
            right,
        }
    }

    /// The place of a time; those beyond the axis are at its ends.
    pub(super) fn x(self, ms: f64) -> f64 {
        let share = (sane_ms(ms) / self.end_ms).clamp(0.0, 1.0);
        self.left + share * (self.right - self.left)
    }

    /// Times of ticks after 0, at most `most`.
    pub(super) fn ticks(self, most: usize) -> Vec<f64> {
        let step = step(self.end_ms, most);
        let count = (self.end_ms / step + ROUNDING).floor() as usize;
        (0..=count).map(|n| n as f64 * step).collect()
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that divides a time into `most` steps at most.
fn step(end_ms: f64, most: usize) -> f64 {
    let least = end_ms / most.max(1) as f64;
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let fits = |step: &&f64| **step >= least * (1.0 - ROUNDING);
    steps.iter().find(fits).copied().unwrap_or(steps[3])
}

/// Limits a time from a file or a browser to a drawable one: finite, from 0 to [`MOST_MS`].
pub(super) fn sane_ms(ms: f64) -> f64 {
    match ms.is_nan() {
        true => 0.0,
        // Nought below nought, such as an empty sum, is nought.
        false => ms.clamp(0.0, MOST_MS) + 0.0,
    }
}

/// The label of a tick.
pub(super) fn tick_label(ms: f64, step: f64) -> String {
    match step {
        _ if ms == 0.0 => "0".to_owned(),
        step if step >= 1000.0 => format!("{:.0} s", ms / 1000.0),
        step if ms >= 1000.0 && step >= 100.0 => format!("{:.1} s", ms / 1000.0),
        step if step >= 1.0 => format!("{ms:.0} ms"),
        _ => format!("{ms:.1} ms"),
    }
}

/// The longest time that is drawn, ms: 1,000 hours.
const MOST_MS: f64 = 3.6e9;
/// Tolerance of divisions of times.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_1_2_or_5_and_no_more_than_asked() {
        for (end_ms, wanted) in [
            (1.0, 0.1),
            (10.0, 1.0),
            (11.0, 2.0),
            (49.0, 5.0),
            (51.0, 10.0),
            (4_321.0, 500.0),
        ] {
            let found = step(end_ms, 10);
            assert!((found - wanted).abs() < 1e-6, "{end_ms}: {found}");
            let ticks = Scale::new(end_ms, 0.0, 1.0).ticks(10);
            assert!(ticks.len() <= 11 && ticks.len() > 4, "{ticks:?}");
            assert!(ticks.iter().all(|tick| *tick <= end_ms + 1e-6));
        }
    }

    #[test]
    fn no_time_leaves_the_axis() {
        let scale = Scale::new(100.0, 10.0, 210.0);
        for (ms, x) in [
            (0.0, 10.0),
            (50.0, 110.0),
            (100.0, 210.0),
            (-1.0, 10.0),
            (1e300, 210.0),
        ] {
            assert!((scale.x(ms) - x).abs() < 1e-9, "{ms}");
        }
        assert!(sane_ms(-0.0).is_sign_positive());
        assert!((scale.x(f64::NAN) - 10.0).abs() < 1e-9);
        assert!(Scale::new(f64::NAN, 0.0, 1.0).x(0.5).is_finite());
        assert!(Scale::new(f64::INFINITY, 0.0, 1.0).ticks(10).len() <= 11);
    }

    #[test]
    fn ticks_are_labelled_in_the_unit_of_their_size() {
        for (ms, step, label) in [
            (0.0, 1.0, "0"),
            (200.0, 50.0, "200 ms"),
            (0.5, 0.1, "0.5 ms"),
            (1500.0, 500.0, "1.5 s"),
            (3000.0, 1000.0, "3 s"),
            (1020.0, 20.0, "1020 ms"),
        ] {
            assert_eq!(tick_label(ms, step), label);
        }
    }
}
