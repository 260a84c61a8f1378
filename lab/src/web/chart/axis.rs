//! Axes: round steps, times, logarithms.

use maud::{Markup, html};

use super::{GRID, LEFT, RIGHT, px};
use crate::time::{DAY_S, tick};
use crate::web::table::{bytes, real};

/// Format of a vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::web) enum Scale {
    /// Numbers of things, or milliseconds.
    Number,
    /// Bytes.
    Bytes,
}

/// Returns the step between ticks and the end of an axis from 0 that has `most`.
pub(super) fn steps(most: f64, scale: Scale) -> (f64, f64) {
    let most = if most.is_finite() && most > 0.0 {
        most
    } else {
        1.0
    };
    let rough = most / TICKS;
    let unit = match scale {
        Scale::Number => 10_f64.powf(rough.log10().floor()),
        // Powers of two keep labels such as 1.50 MiB round.
        Scale::Bytes => 2_f64.powf(rough.log2().floor()),
    };
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * unit);
    let step = step
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    (step, (most / step).ceil() * step)
}

/// Writes a value of an axis.
pub(super) fn label(value: f64, scale: Scale) -> String {
    match scale {
        Scale::Bytes => bytes(value as u64),
        Scale::Number if value == 0.0 => "0".to_owned(),
        Scale::Number if value >= 10_000.0 => {
            let (short, unit) = match value {
                _ if value >= 1e12 => return format!("{value:.0e}"),
                _ if value >= 1e9 => (value / 1e9, "G"),
                _ if value >= 1e6 => (value / 1e6, "M"),
                _ => (value / 1e3, "k"),
            };
            let text = format!("{short:.1}");
            format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
        }
        Scale::Number if value.fract() == 0.0 => format!("{value:.0}"),
        Scale::Number => real(value),
    }
}

/// Writes a change of an axis around 0: `+2.5 %`.
pub(super) fn signed(percent: f64) -> String {
    let size = label(percent.abs(), Scale::Number);
    match percent {
        p if p > 0.0 => format!("+{size} %"),
        p if p < 0.0 => format!("\u{2212}{size} %"),
        _ => "0".to_owned(),
    }
}

/// Draws horizontal lines of the grid with their labels; `y` returns the place of a value.
pub(super) fn vertical(most: f64, scale: Scale, y: &dyn Fn(f64) -> f64) -> Markup {
    let (step, end) = steps(most, scale);
    let count = (end / step).round() as u32;
    html! {
        @for n in 0..=count {
            @let value = f64::from(n) * step;
            line .grid stroke=(GRID) x1=(LEFT) x2=(RIGHT) y1=(px(y(value))) y2=(px(y(value))) {}
            text x=(LEFT - 6.0) y=(px(y(value) + 4.0)) text-anchor="end" { (label(value, scale)) }
        }
    }
}

/// Draws ticks of a time axis with their labels; `x` returns the place of a time.
pub(super) fn times(from: u64, to: u64, bottom: f64, x: &dyn Fn(u64) -> f64) -> Markup {
    let step = time_step(to.saturating_sub(from));
    let first = from.next_multiple_of(step);
    let all = (first..=to).step_by(step as usize).take(TIME_TICKS_MAX);
    html! {
        @for at in all {
            line .tick stroke=(GRID) x1=(px(x(at))) x2=(px(x(at))) y1=(bottom) y2=(bottom + 4.0) {}
            // Labels at the ends must stay within the picture.
            @let anchor = if x(at) > RIGHT - 20.0 { "end" } else { "middle" };
            text x=(px(x(at))) y=(bottom + 17.0) text-anchor=(anchor) { (tick(at)) }
        }
    }
}

/// Returns the time between two ticks, seconds.
fn time_step(length: u64) -> u64 {
    let steps = [
        60,
        300,
        600,
        900,
        1800,
        3600,
        2 * 3600,
        3 * 3600,
        6 * 3600,
        12 * 3600,
    ];
    let rough = length / TIME_TICKS;
    let found = steps.into_iter().find(|step| *step >= rough);
    found.unwrap_or_else(|| rough.div_ceil(DAY_S).max(1) * DAY_S)
}

/// Ticks of a logarithmic axis: 1, 2 and 5 of each power of ten within two values.
pub(super) fn decades(low: f64, high: f64) -> Vec<f64> {
    let first = low.max(f64::MIN_POSITIVE).log10().floor() as i32;
    let last = high.max(f64::MIN_POSITIVE).log10().ceil() as i32;
    let factors: &[f64] = match last - first {
        // More labels would overlap.
        5.. => &[1.0],
        _ => &[1.0, 2.0, 5.0],
    };
    let all = (first..=last).flat_map(|power| factors.iter().map(move |f| f * 10_f64.powi(power)));
    let within = |value: &f64| *value >= low * 0.999 && *value <= high * 1.001;
    all.filter(within).take(TIME_TICKS_MAX).collect()
}

/// Ticks of a vertical axis, about.
const TICKS: f64 = 4.0;
/// Ticks of a time axis, at most.
const TIME_TICKS: u64 = 8;
const TIME_TICKS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_values_above_the_greatest() {
        for (most, step, end) in [
            (0.0, 0.25, 1.0),
            (1.0, 0.25, 1.0),
            (7.0, 2.0, 8.0),
            (100.0, 25.0, 100.0),
            (101.0, 50.0, 150.0),
            (f64::NAN, 0.25, 1.0),
        ] {
            let found = steps(most, Scale::Number);
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            assert!(
                near(found.0, step) && near(found.1, end),
                "{most}: {found:?}"
            );
        }
        assert_eq!(steps(3.0 * 1024.0, Scale::Bytes), (1024.0, 3072.0));
    }

    #[test]
    fn labels_are_short() {
        let all = [0.0, 0.25, 5.0, 2500.0, 12_500.0, 3e6, 2e9].map(|v| label(v, Scale::Number));
        assert_eq!(all, ["0", "0.25", "5", "2500", "12.5k", "3M", "2G"]);
        assert_eq!(label(1024.0, Scale::Bytes), "1.00 KiB");
    }

    #[test]
    fn changes_have_their_sign() {
        let all = [-2.5, -0.0, 0.25, 10.0].map(signed);
        assert_eq!(all, ["\u{2212}2.50 %", "0", "+0.25 %", "+10 %"]);
    }

    #[test]
    fn time_axes_have_few_ticks() {
        for length in [3600, 6 * 3600, DAY_S, 7 * DAY_S, 30 * DAY_S, 400 * DAY_S] {
            let count = length / time_step(length);
            assert!((2..=8).contains(&count), "{length}: {count}");
        }
        assert_eq!(
            decades(1.0, 100.0),
            [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
        );
        assert_eq!(decades(0.5, 2.5), [0.5, 1.0, 2.0]);
    }
}
