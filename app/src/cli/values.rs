//! Values of options that several verbs have.

use std::ops::RangeInclusive;
use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use engines::http::parse_decimal;
use lab::client::Protocol;
use lab::client::trust::Trust;

/// A protocol, or none in particular.
pub(super) type Spoken = Option<Protocol>;

/// Names of protocols, for options.
pub(super) fn protocols() -> impl TypedValueParser<Value = Spoken> {
    PossibleValuesParser::new(Protocol::OPTIONS).map(|name| Protocol::of_option(&name))
}

/// Returns the trusted certificates: those of `--cacert`, any with `--insecure`, else those of browsers.
///
/// # Errors
/// A sentence: the file cannot be read, or has no certificate.
pub(super) fn trust(cacert: Option<&Path>, insecure: bool) -> Result<Trust, String> {
    match (cacert, insecure) {
        (Some(file), _) => Trust::file(file),
        (None, true) => Ok(Trust::Nobody),
        (None, false) => Ok(Trust::Browsers),
    }
}

/// Parses a positive number of an option.
///
/// # Errors
/// It is not a positive number.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    let number = decimal(text).filter(|n| n.is_finite() && *n > 0.0);
    number.ok_or_else(|| "not a positive number".to_owned())
}

/// Parses a whole number from 1 to `MOST` of an option.
///
/// # Errors
/// It is not such a number.
pub(super) fn count<const MOST: usize>(text: &str) -> Result<usize, String> {
    let number = parse_decimal(text.as_bytes()).filter(|n| (1..=MOST).contains(n));
    number.ok_or_else(|| format!("not a number from 1 to {MOST}"))
}

/// Parses a whole number of a range for an option.
///
/// # Errors
/// It is not such a number.
pub(super) fn whole<T: TryFrom<u64>>(text: &str, range: RangeInclusive<u64>) -> Result<T, String> {
    let number = parse_decimal(text.as_bytes()).filter(|n| range.contains(n));
    let number = number.and_then(|n: u64| T::try_from(n).ok());
    number.ok_or_else(|| format!("{text} is not in {}..={}", range.start(), range.end()))
}

/// A number with or without a fraction, and without a sign.
pub(super) fn decimal(text: &str) -> Option<f64> {
    text.parse().ok().filter(|_| !text.starts_with(['+', '-']))
}

/// Options as a test writes them, or clap's error.
#[cfg(test)]
pub(super) fn parsed<O: clap::Args>(line: &str) -> Result<O, String> {
    let command = O::augment_args(clap::Command::new("verb").no_binary_name(true));
    let found = command.try_get_matches_from(line.split_whitespace());
    let found = found.and_then(|found| O::from_arg_matches(&found));
    found.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_limits() {
        assert_eq!((count::<5>("1"), count::<5>("5")), (Ok(1), Ok(5)));
        assert!(count::<5>("0").is_err() && count::<5>("6").is_err());
        assert!(count::<5>("+1").is_err() && count::<5>("").is_err());
        assert_eq!((whole("1", 1..=5), whole("5", 1..=5)), (Ok(1_u8), Ok(5_u8)));
        for wrong in ["0", "6", "+1", "-1", "1.0", ""] {
            assert!(whole::<u8>(wrong, 1..=5).is_err(), "{wrong}");
        }
        assert!(whole::<u8>("256", 1..=300).is_err());
        assert_eq!(whole(&u64::MAX.to_string(), 0..=u64::MAX), Ok(u64::MAX));
        assert_eq!(positive("0.5"), Ok(0.5));
        for wrong in ["0", "-1", "+1", "inf", "NaN", "x"] {
            assert!(positive(wrong).is_err(), "{wrong}");
        }
    }
}
