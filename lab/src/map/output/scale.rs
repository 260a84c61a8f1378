//! Measures of a map, their classes and colours.
//!
//! Classes have fixed bounds, so maps of different days can be compared. The contrast of neighbouring colours is 1.4 to 1.
//! So the order is visible without hues, in grey prints too. Light and dark grounds have the same colours.

use std::fmt;

/// Measure of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Quantile of the round-trip times, or of the times that the options name; milliseconds.
    RoundTrip,
    /// Share of all requests, percent.
    Requests,
}

impl Measure {
    /// Least value of each class but the first.
    fn bounds(self) -> [f64; CLASSES - 1] {
        match self {
            Self::RoundTrip => [20.0, 50.0, 100.0, 200.0, 400.0],
            Self::Requests => [0.1, 0.3, 1.0, 3.0, 10.0],
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::RoundTrip => "ms",
            Self::Requests => "%",
        }
    }

    /// Returns the class of a value.
    pub(super) fn class(self, value: f64) -> usize {
        let bounds = self.bounds();
        bounds.iter().filter(|bound| value >= **bound).count()
    }

    /// Returns the label of a class, such as `20-50 ms`.
    pub(super) fn label(self, class: usize) -> String {
        let (bounds, unit) = (self.bounds(), self.unit());
        match (class.checked_sub(1).map(|at| bounds[at]), bounds.get(class)) {
            (None, Some(high)) => format!("<{high} {unit}"),
            (Some(low), Some(high)) => format!("{low}-{high} {unit}"),
            (low, None) => format!("\u{2265} {} {unit}", low.unwrap_or_default()),
        }
    }

    /// Returns the unit of the least number of a country: samples or requests.
    pub(super) fn unit_of_least(self) -> &'static str {
        match self {
            Self::RoundTrip => "samples",
            Self::Requests => "requests",
        }
    }
}

/// Fill of a country.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fill {
    /// Colour of a class.
    Class(usize),
    /// Fewer samples than the least number.
    TooFew,
    /// No samples.
    None,
}

impl Fill {
    /// All fills, in the order of a legend.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let classes = (0..CLASSES).map(Self::Class);
        classes.chain([Self::TooFew, Self::None])
    }

    /// Value of the attribute `fill` on a light ground.
    pub(super) fn paint(self) -> &'static str {
        match self {
            Self::Class(class) => COLOURS[class.min(CLASSES - 1)],
            Self::TooFew => "url(#few)",
            Self::None => NO_SAMPLES,
        }
    }

    /// Class of the element, for rules of dark grounds.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Class(_) => "known",
            Self::TooFew => "few",
            Self::None => "none",
        }
    }
}

/// Milliseconds with three digits at least, without false precision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ms(pub(super) f64);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.0 {
            ms if ms < 10.0 => 2,
            ms if ms < 100.0 => 1,
            _ => 0,
        };
        write!(f, "{:.digits$}", self.0)
    }
}

/// Number of classes.
const CLASSES: usize = 6;
/// Colours of the classes: OKLCH with hues from 100 to -35 degrees, and luminances in geometric order.
const COLOURS: [&str; CLASSES] = [
    "#ffe547", "#fdb339", "#fd7f24", "#eb514f", "#c63271", "#8f2697",
];
/// Colour of countries without samples on a light ground.
const NO_SAMPLES: &str = "#eef1f4";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::output::style;

    #[test]
    fn bounds_belong_to_the_class_above_them() {
        for (class, bound) in [20.0, 50.0, 100.0, 200.0, 400.0].into_iter().enumerate() {
            let of = |value| Measure::RoundTrip.class(value);
            assert_eq!((of(bound - 0.01), of(bound)), (class, class + 1));
        }
        let labels: Vec<String> = (0..CLASSES).map(|n| Measure::RoundTrip.label(n)).collect();
        let words = "<20 ms, 20-50 ms, 50-100 ms, 100-200 ms, 200-400 ms, \u{2265} 400 ms";
        assert_eq!(labels.join(", "), words);
        assert_eq!(Measure::Requests.label(1), "0.1-0.3 %");
        assert_eq!(Measure::Requests.class(0.099), 0);
        assert_eq!(Measure::Requests.class(10.0), 5);
    }

    /// Relative luminance of `#rrggbb`. Source: WCAG 2.2.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let byte = u8::from_str_radix(&colour[at..at + 2], 16).expect("hexadecimal");
            let value = f64::from(byte) / 255.0;
            match value <= 0.04045 {
                true => value / 12.92,
                false => ((value + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn colours_are_told_apart_by_lightness_alone() {
        for pair in COLOURS.windows(2) {
            assert!(luminance(pair[0]) > luminance(pair[1]), "{pair:?}");
            assert!(contrast(pair[0], pair[1]) > 1.4, "{pair:?}");
        }
        // The first class beside countries without samples on light grounds, and the last one on dark grounds.
        assert!(contrast(COLOURS[0], NO_SAMPLES) > 1.1);
        let [_, _, _, _, _, none] = style::DARK;
        assert!(contrast(COLOURS[5], none) > 2.0);
    }

    #[test]
    fn borders_and_texts_have_contrast_to_the_ground() {
        let [page, ink, soft, bad, border, _] = style::DARK;
        for (colour, ground, least) in [
            (style::BORDER, style::PAGE, 3.0),
            (style::INK, style::PAGE, 4.5),
            (style::SOFT, style::PAGE, 4.5),
            (style::BAD, style::PAGE, 4.5),
            (border, page, 3.0),
            (ink, page, 4.5),
            (soft, page, 4.5),
            (bad, page, 4.5),
        ] {
            let found = contrast(colour, ground);
            assert!(found >= least, "{colour} on {ground}: {found:.2}");
        }
        for colour in style::DARK {
            assert!(style::PICTURE.contains(colour), "{colour} is in use");
        }
    }

    #[test]
    fn times_have_three_digits() {
        let all = [5.117, 20.48, 203.98].map(|ms| Ms(ms).to_string());
        assert_eq!(all, ["5.12", "20.5", "204"]);
    }
}
