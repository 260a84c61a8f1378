//! Quantities as typed by users: times (`50ms`), rates (`20mbit`), shares (`0.1%`).
//!
//! Decimals are exact: no float is involved, and a displayed value parses to the same value.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Bits a second of IP packets, 1 kbit to 100 gbit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// The least and the greatest, bits a second.
    pub const LEAST: Self = Self(1000);
    /// See [`Rate::LEAST`].
    pub const GREATEST: Self = Self(100_000_000_000);

    /// Converts bits per second; `None` below the least or above the greatest.
    #[must_use]
    pub fn from_bits(bits_per_second: u64) -> Option<Self> {
        let rate = Self(bits_per_second);
        (Self::LEAST..=Self::GREATEST)
            .contains(&rate)
            .then_some(rate)
    }

    /// Bits a second.
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0
    }
}

/// Units of rates: thousands, as networks count.
const RATES: [(&str, u64); 4] = [
    ("gbit", 1_000_000_000),
    ("mbit", 1_000_000),
    ("kbit", 1000),
    ("bit", 1),
];

impl FromStr for Rate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bits =
            with_unit(text, &RATES).ok_or("a rate is a number with bit, kbit, mbit or gbit")?;
        Self::from_bits(bits).ok_or("a rate is 1kbit to 100gbit")
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.0, &RATES)
    }
}

/// A share of packets, in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss(u32);

impl Loss {
    /// All packets, as a share in billionths.
    pub(crate) const WHOLE: u32 = 1_000_000_000;

    /// A share of this many billionths.
    #[must_use]
    pub fn billionths(self) -> u32 {
        self.0
    }
}

/// A percent, in billionths.
const PERCENT: [(&str, u64); 1] = [("%", 10_000_000)];

impl FromStr for Loss {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let share = with_unit(text, &PERCENT)
            .ok_or("a loss is a number with %, and at most 7 decimal places")?;
        let share = u32::try_from(share)
            .ok()
            .filter(|share| *share <= Self::WHOLE);
        share.map(Self).ok_or("a loss is 0% to 100%")
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, u64::from(self.0), &PERCENT)
    }
}

/// Units of times, in nanoseconds.
const TIMES: [(&str, u64); 4] = [
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
];

/// Reads a number of digits alone, which `str::parse` would take with a `+`.
pub(crate) fn digits<T: FromStr>(text: &str) -> Option<T> {
    let plain = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

/// Reads a time with its unit.
pub(crate) fn time(text: &str) -> Result<Duration, &'static str> {
    let nanos = with_unit(text, &TIMES);
    nanos
        .map(Duration::from_nanos)
        .ok_or("a time is a number with s, ms, us or ns")
}

/// A time as [`time`] reads it.
pub(crate) struct Time(pub(crate) Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Times here are limited to seconds.
        let nanos = u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX);
        // Users write 500ms, not 0.5s.
        let units = if nanos.is_multiple_of(1_000_000_000) {
            &TIMES
        } else {
            &TIMES[1..]
        };
        show(f, nanos, units)
    }
}

/// Reads a decimal number with a unit after it; `None` if it is malformed, or finer than the finest unit.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, part) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some((whole, part)) => (whole, part),
        None => (number, ""),
    };
    let mut value = whole.parse::<u64>().ok()?.checked_mul(*factor)?;
    let mut place = *factor;
    for digit in part.bytes() {
        if !digit.is_ascii_digit() || (place % 10 != 0 && digit != b'0') {
            return None;
        }
        place /= 10;
        value = value.checked_add(u64::from(digit - b'0') * place)?;
    }
    Some(value)
}

/// Writes a value in the largest unit of which it is at least one; nothing is nothing of the first.
fn show(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let fits = units
        .iter()
        .find(|(_, factor)| value >= *factor || value == 0);
    let Some((unit, factor)) = fits.or(units.last()) else {
        return Ok(());
    };
    let (whole, rest) = (value / factor, value % factor);
    if rest == 0 {
        return write!(f, "{whole}{unit}");
    }
    let width = factor.ilog10() as usize;
    let part = format!("{rest:0width$}");
    write!(f, "{whole}.{}{unit}", part.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_and_shown_as_they_are_written() {
        for (text, nanos) in [
            ("0ns", 0),
            ("1ns", 1),
            ("0.5ms", 500_000),
            ("50ms", 50_000_000),
            ("1.000000001s", 1_000_000_001),
            ("20s", 20_000_000_000),
        ] {
            assert_eq!(time(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
        for (text, shown) in [
            ("0.50ms", "500us"),
            ("1500ms", "1500ms"),
            ("2000ms", "2s"),
            ("0s", "0s"),
        ] {
            let read = time(text).expect("a time");
            assert_eq!(Time(read).to_string(), shown);
            assert_eq!(time(shown), Ok(read));
        }
        for bad in [
            "",
            "5",
            "ms",
            ".5ms",
            "5.ms",
            "-1ms",
            "1e3ms",
            "5 ms",
            "5MS",
            "0.1ns",
            "1.2.3ms",
            "99999999999s",
        ] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rates_have_their_limits() {
        for (text, bits) in [
            ("1kbit", 1000),
            ("20mbit", 20_000_000),
            ("1.5gbit", 1_500_000_000),
            ("100gbit", 100_000_000_000),
        ] {
            let rate: Rate = text.parse().expect("a rate");
            assert_eq!((rate.bits(), rate.to_string().as_str()), (bits, text));
        }
        for bad in [
            "999bit",
            "100000000001bit",
            "0mbit",
            "20mbps",
            "20",
            "20Mbit",
        ] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn losses_have_their_limits() {
        for (text, billionths) in [
            ("0%", 0),
            ("0.0000001%", 1),
            ("0.1%", 1_000_000),
            ("12.5%", 125_000_000),
            ("100%", 1_000_000_000),
        ] {
            let loss: Loss = text.parse().expect("a loss");
            assert_eq!(
                (loss.billionths(), loss.to_string().as_str()),
                (billionths, text)
            );
        }
        for bad in ["0.00000001%", "100.0000001%", "1", "0.1", "-1%"] {
            assert!(bad.parse::<Loss>().is_err(), "{bad}");
        }
    }
}
