//! Values of options that several verbs have.

use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use lab::client::Protocol;
use lab::client::trust::Trust;

/// A protocol, or none in particular.
pub(super) type Spoken = Option<Protocol>;

/// Names of protocols, for options.
pub(super) fn protocols() -> impl TypedValueParser<Value = Spoken> {
    PossibleValuesParser::new(Protocol::OPTIONS).map(|name| Protocol::of_option(&name))
}

/// Whose certificates are trusted: by `--cacert`, `--insecure`, or none of them.
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

/// A positive number, for options.
///
/// # Errors
/// It is none.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    let number = text
        .parse()
        .ok()
        .filter(|n: &f64| n.is_finite() && *n > 0.0);
    number.ok_or_else(|| "it is no positive number".to_owned())
}

/// A whole number from 1 to `MOST`, for options.
///
/// # Errors
/// It is none.
pub(super) fn count<const MOST: usize>(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=MOST).contains(n));
    number.ok_or_else(|| format!("it is no number from 1 to {MOST}"))
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
        assert_eq!(positive("0.5"), Ok(0.5));
        for wrong in ["0", "-1", "inf", "NaN", "x"] {
            assert!(positive(wrong).is_err(), "{wrong}");
        }
    }
}
