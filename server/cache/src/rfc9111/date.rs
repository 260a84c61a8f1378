//! Dates of `Expires`, `Date` and `Last-Modified`, by the strict grammar, in any case.
//!
//! The parser of the engines follows nginx: it ignores text behind the time, so that "UTC" would pass for "GMT". A cache
//! must take such a date as invalid. Source: RFC 9110 section 5.6.7; RFC 9111 section 4.2.

use engines::http::{civil, parse_http_date, trim_ows};

/// Parses an HTTP-date in one of its three forms, compared without case. Returns seconds since 1970.
///
/// `now_s` decides the century of a year with two digits: the date is at most 50 years in the future. A leap second is
/// the second before it. Returns `None` for other forms, other zones than GMT, and days out of the calendar.
#[must_use]
pub fn parse_date(text: &[u8], now_s: i64) -> Option<i64> {
    let text = trim_ows(text);
    match text.iter().position(|byte| matches!(byte, b',' | b' '))? {
        3 if text[3] == b' ' => asctime(text),
        comma if text[comma] == b',' => {
            let (weekday, rest) = (&text[..comma], text[comma + 1..].strip_prefix(b" ")?);
            if is_one_of(weekday, &WEEKDAYS, 3) {
                imf_fixdate(rest)
            } else if is_one_of(weekday, &WEEKDAYS, usize::MAX) {
                rfc850(rest, now_s)
            } else {
                None
            }
        }
        _ => None,
    }
}

/// "06 Nov 1994 08:49:37 GMT".
fn imf_fixdate(text: &[u8]) -> Option<i64> {
    let text: &[u8; 24] = text.try_into().ok()?;
    let is_form = text[2] == b' ' && text[6] == b' ' && is_time_in_gmt(&text[11..]);
    let year = digits(&text[7..11])?;
    is_form.then(|| unix_s(&text[..2], &text[3..6], year, &text[12..20]))?
}

/// "06-Nov-94 08:49:37 GMT".
fn rfc850(text: &[u8], now_s: i64) -> Option<i64> {
    let text: &[u8; 22] = text.try_into().ok()?;
    if text[2] != b'-' || text[6] != b'-' || !is_time_in_gmt(&text[9..]) {
        return None;
    }
    let year_of_century = digits(&text[7..9])?;
    let century = civil(now_s).year.div_euclid(100);
    // The latest century in which the date is not too far in the future.
    [century + 1, century, century - 1]
        .into_iter()
        .filter_map(|century| {
            let year = u32::try_from(century).ok()? * 100 + year_of_century;
            unix_s(&text[..2], &text[3..6], year, &text[10..18])
        })
        .find(|date_s| *date_s <= now_s.saturating_add(FIFTY_YEARS_S))
}

/// "Sun Nov  6 08:49:37 1994".
fn asctime(text: &[u8]) -> Option<i64> {
    let text: &[u8; 24] = text.try_into().ok()?;
    let is_form = is_one_of(&text[..3], &WEEKDAYS, 3)
        && [3, 7, 10, 19].iter().all(|blank| text[*blank] == b' ');
    let day = match text[8] {
        b' ' => [b'0', text[9]],
        tens => [tens, text[9]],
    };
    let year = digits(&text[20..])?;
    is_form.then(|| unix_s(&day, &text[4..7], year, &text[11..19]))?
}

/// Whether `text` is a blank, a time with a blank, and "GMT".
fn is_time_in_gmt(text: &[u8]) -> bool {
    text[0] == b' ' && text[9] == b' ' && text[10..].eq_ignore_ascii_case(b"GMT")
}

/// Returns whether `text` is one of `names`, cut to a length, without case.
fn is_one_of(text: &[u8], names: &[&str], len: usize) -> bool {
    let mut names = names
        .iter()
        .map(|name| &name.as_bytes()[..name.len().min(len)]);
    names.any(|name| name.eq_ignore_ascii_case(text))
}

fn digits(text: &[u8]) -> Option<u32> {
    text.iter().try_fold(0, |number: u32, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + u32::from(byte - b'0'))
    })
}

/// The time of a date in parts, which the engines' parser checks against the calendar.
fn unix_s(day: &[u8], month: &[u8], year: u32, time: &[u8]) -> Option<i64> {
    let at = MONTHS
        .iter()
        .position(|name| name.as_bytes().eq_ignore_ascii_case(month))?;
    let mut time: [u8; 8] = time.try_into().ok()?;
    if time.ends_with(b":60") {
        time[6..].copy_from_slice(b"59");
    }
    let year = format!("{year:04}");
    let parts: [&[u8]; 9] = [
        b"Day, ",
        day,
        b" ",
        MONTHS[at].as_bytes(),
        b" ",
        year.as_bytes(),
        b" ",
        &time,
        b" GMT",
    ];
    parse_http_date(&parts.concat())
}

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Fifty years of the Gregorian calendar on average, in seconds.
const FIFTY_YEARS_S: i64 = 50 * 31_556_952;

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01.
    const NOW_S: i64 = 1_767_225_600;

    fn parse(text: &str) -> Option<i64> {
        parse_date(text.as_bytes(), NOW_S)
    }

    /// RFC 9110 section 5.6.7.
    #[test]
    fn three_forms_are_read_in_any_case() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "sUN, 06 NOV 1994 08:49:37 gmt",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "SUNDAY, 06-nov-94 08:49:37 Gmt",
            "Sun Nov  6 08:49:37 1994",
            "SUN nov  6 08:49:37 1994",
            "Sun Nov 06 08:49:37 1994",
            "\tSun, 06 Nov 1994 08:49:37 GMT ",
        ] {
            assert_eq!(parse(text), Some(784_111_777), "{text}");
        }
    }

    /// RFC 9111 section 4.2: zones other than GMT are invalid. Section 5.3: so is "0".
    #[test]
    fn other_texts_are_invalid() {
        for text in [
            "",
            "0",
            "-1",
            "now",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 AEST",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 GMT;",
            "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun 06 Nov 1994 08:49:37 GMT",
            "Sun,06 Nov 1994 08:49:37 GMT",
            "Sun,  06 Nov 1994 08:49:37 GMT",
            "Sun, 06  Nov  1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Sunday, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08.49.37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Foo, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun Nov  6 08:49:37 94",
            "Sun Nov 6 08:49:37 1994",
            "Foo Nov  6 08:49:37 1994",
            "Sun Nov  6 08:49:37 1994 GMT",
            "Sun, \u{664}6 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    /// RFC 9110 section 5.6.7: more than 50 years in the future is the most recent year in the past.
    #[test]
    fn two_digits_of_a_year_are_at_most_50_years_ahead() {
        let year = |text: &str| civil(parse(text).expect("a date")).year;
        for (digits, expected) in [
            ("26", 2026),
            ("75", 2075),
            ("77", 1977),
            ("99", 1999),
            ("00", 2000),
        ] {
            assert_eq!(
                year(&format!("Monday, 01-Mar-{digits} 00:00:00 GMT")),
                expected
            );
        }
        // A leap day exists in 2000 alone, of the centuries nearby.
        assert_eq!(year("Tuesday, 29-Feb-00 00:00:00 GMT"), 2000);
        let far_s = 4_000_000_000_000;
        assert_eq!(parse_date(b"Monday, 01-Mar-26 00:00:00 GMT", far_s), None);
        assert_eq!(parse_date(b"Monday, 01-Mar-26 00:00:00 GMT", -far_s), None);
    }

    /// RFC 9111 section 4.2: the nearest time that is not later.
    #[test]
    fn a_leap_second_is_the_second_before() {
        let leap = parse("Sat, 31 Dec 2016 23:59:60 GMT");
        assert_eq!(leap, parse("Sat, 31 Dec 2016 23:59:59 GMT"));
        assert!(leap.is_some());
        assert_eq!(parse("Sat, 31 Dec 2016 23:59:61 GMT"), None);
    }

    #[test]
    fn dates_before_1970_and_far_ahead_are_numbers() {
        assert_eq!(parse("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(parse("Wed, 31 Dec 1969 23:59:59 GMT"), Some(-1));
        assert_eq!(parse("Sun, 21 Nov 2286 04:46:39 GMT"), Some(10_000_039_599));
        assert!(parse("Fri, 31 Dec 9999 23:59:59 GMT").is_some());
    }
}
