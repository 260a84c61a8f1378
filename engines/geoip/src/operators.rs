//! Network operators: the autonomous system or provider of an address, as a text that is safe to store and to show.

use core::net::IpAddr;

use crate::database::Database;
use crate::mmdb::Mmdb;
use crate::mmdb_data::Value;

/// Returns an operator such as `AS64496 Example`.
pub(crate) fn operator(database: &Database, ip: IpAddr) -> Option<String> {
    match database {
        Database::Ranges(_) => None,
        Database::Mmdb(mmdb) => operator_of_record(mmdb, mmdb.record_of(ip)?),
        Database::Legacy(legacy) => {
            let name = legacy
                .has_family(ip)
                .then(|| legacy.name(Some(ip)))
                .flatten()?;
            // ISO 8859-1 has the first 256 characters of Unicode.
            clean(name.iter().map(|byte| char::from(*byte)))
        }
    }
}

/// Returns the operator in a record of a MaxMind DB file.
pub(crate) fn operator_of_record(mmdb: &Mmdb, record: usize) -> Option<String> {
    let text = |name: &str| match mmdb.value_of(record, &[name])? {
        Value::Text(text) => clean(String::from_utf8_lossy(text).chars()),
        _ => None,
    };
    let number = match mmdb.value_of(record, &["autonomous_system_number"]) {
        Some(Value::Unsigned(number)) => Some(format!("AS{number}")),
        _ => text("asn").filter(|number| is_number(number)),
    };
    let name = NAMES.iter().find_map(|name| text(name));
    match (number, name) {
        (Some(number), Some(name)) => clean(format!("{number} {name}").chars()),
        (number, name) => number.or(name),
    }
}

/// Whether a text is `AS` and a number.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix("AS").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Returns a text without control characters, of [`OPERATOR_CHARS_MAX`] characters at most; `None` if it is empty.
fn clean(text: impl Iterator<Item = char>) -> Option<String> {
    let replaced = text.map(|c| {
        if is_control(c) {
            char::REPLACEMENT_CHARACTER
        } else {
            c
        }
    });
    let whole: String = replaced.take(OPERATOR_CHARS_MAX).collect();
    let trimmed = whole.trim();
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

/// Whether a character controls a terminal, ends a line, or changes the direction of the text after it.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Fields with an operator's name, the most specific to a number first: MaxMind and DB-IP, IPinfo, MaxMind's others.
const NAMES: [&str; 4] = [
    "autonomous_system_organization",
    "as_name",
    "isp",
    "organization",
];
/// Maximum length of an operator, characters.
pub const OPERATOR_CHARS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cleaned_and_bounded() {
        let cleaned = |text: &str| clean(text.chars());
        assert_eq!(
            cleaned(" Café GmbH\t").as_deref(),
            Some("Café GmbH\u{fffd}")
        );
        assert_eq!(
            cleaned("a\nb\u{1b}[0m\u{202e}c\u{85}").as_deref(),
            Some("a\u{fffd}b\u{fffd}[0m\u{fffd}c\u{fffd}")
        );
        assert_eq!((cleaned(""), cleaned("  ")), (None, None));
        for (length, expected) in [(99, 99), (100, 100), (101, 100)] {
            let text = cleaned(&"é".repeat(length)).expect("it is not empty");
            assert_eq!(text.chars().count(), expected);
        }
    }

    #[test]
    fn a_number_has_digits() {
        assert!(is_number("AS1") && is_number("AS4294967295"));
        for text in ["", "AS", "1", "AS1x", "as1", "AS-1"] {
            assert!(!is_number(text), "{text}");
        }
    }
}
