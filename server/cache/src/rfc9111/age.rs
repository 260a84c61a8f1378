//! The age of a response: the `Age` received, the age at reception, the age now.
//!
//! Source: RFC 9111 sections 4.2.3, 5.1.

use super::directives::{delta_seconds, saturated};
use super::field_list::{Elements, FieldList};

/// Parses the `Age` fields of a response, in seconds. The first member counts; an invalid one is ignored (RFC 9111
/// section 5.1).
#[must_use]
pub fn parse_age(response: FieldList<'_>) -> Option<u32> {
    let mut members = response.named(b"Age").flat_map(Elements::new);
    delta_seconds(members.next()?)
}

/// Returns the age of a response at its reception in seconds, `corrected_initial_age` of RFC 9111 section 4.2.3.
///
/// Times are seconds since 1970. With `date_s`, the value of `Date`, the age is at least the time since then. RFC 9111
/// recommends this only behind caches that send no `Age`: it depends on the clock of the server.
#[must_use]
pub fn initial_age_s(
    age_s: Option<u32>,
    date_s: Option<i64>,
    request_time_s: i64,
    response_time_s: i64,
) -> u32 {
    let apparent_s = date_s.map_or(0, |date_s| {
        saturated(response_time_s.saturating_sub(date_s))
    });
    let delay_s = saturated(response_time_s.saturating_sub(request_time_s));
    let corrected_s = saturated(i64::from(age_s.unwrap_or(0)) + i64::from(delay_s));
    apparent_s.max(corrected_s)
}

/// Returns the age of a stored response in seconds, `current_age` of RFC 9111 section 4.2.3. It is the value of the
/// `Age` field to send. A clock that was set back makes no response younger than at its reception.
#[must_use]
pub fn current_age_s(initial_age_s: u32, response_time_s: i64, now_s: i64) -> u32 {
    let resident_s = saturated(now_s.saturating_sub(response_time_s));
    saturated(i64::from(initial_age_s) + i64::from(resident_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use engines::http::Fields;

    use super::super::DELTA_SECONDS_MAX;

    fn age(values: &[&str]) -> Option<u32> {
        let mut list = Fields::default();
        for value in values {
            list.push(b"age", value.as_bytes());
        }
        parse_age(FieldList::from(&list))
    }

    /// RFC 9111 section 5.1.
    #[test]
    fn the_first_member_counts_if_it_is_valid() {
        for (values, expected) in [
            (&["7200"][..], Some(7200)),
            (&["7200, 0"], Some(7200)),
            (&["0, 7200"], Some(0)),
            (&["7200", "0"], Some(7200)),
            (&["0", "7200"], Some(0)),
            (&["", "5"], Some(5)),
            (&["2147483647"], Some(DELTA_SECONDS_MAX - 1)),
            (&["2147483649"], Some(DELTA_SECONDS_MAX)),
            (&["abc"], None),
            (&["-7200"], None),
            (&["7200.0"], None),
            (&["7200;foo=bar"], None),
            (&["abc, 5"], None),
            (&[""], None),
            (&[], None),
        ] {
            assert_eq!(age(values), expected, "{values:?}");
        }
    }

    /// RFC 9111 section 4.2.3.
    #[test]
    fn the_age_at_reception_contains_the_delay() {
        for (age_s, date_s, request_s, response_s, expected) in [
            (None, None, 100, 100, 0),
            (Some(30), None, 100, 103, 33),
            (Some(30), Some(100), 100, 103, 33),
            (None, Some(40), 100, 103, 63),
            (Some(30), Some(200), 100, 103, 33),
            (Some(30), None, 103, 100, 30),
            (Some(DELTA_SECONDS_MAX), None, 100, 103, DELTA_SECONDS_MAX),
            (None, Some(i64::MIN), i64::MIN, i64::MAX, DELTA_SECONDS_MAX),
        ] {
            let found = initial_age_s(age_s, date_s, request_s, response_s);
            assert_eq!(
                found, expected,
                "{age_s:?} {date_s:?} {request_s} {response_s}"
            );
        }
    }

    /// RFC 9111 section 4.2.3.
    #[test]
    fn a_stored_response_gets_older() {
        for (initial_s, response_s, now_s, expected) in [
            (0, 100, 100, 0),
            (30, 100, 160, 90),
            (30, 100, 40, 30),
            (DELTA_SECONDS_MAX, 100, 160, DELTA_SECONDS_MAX),
            (0, i64::MIN, i64::MAX, DELTA_SECONDS_MAX),
        ] {
            assert_eq!(current_age_s(initial_s, response_s, now_s), expected);
        }
    }
}
