//! Times of certificates: digits without fractions, always UTC.
//!
//! Source: RFC 5280 section 4.1.2.5.

use std::fmt;

use super::der::{self, Reader, Value};

/// A time by its components: year, month, day, hour, minute, second.
///
/// A day beyond the end of its month counts into the next month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time([i64; 6]);

impl Time {
    /// Reads the next value, which must be a time.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let Value { tag, body, .. } = reader.value()?;
        let digits = body.strip_suffix(b"Z")?;
        let (year, rest) = match tag {
            der::UTC_TIME => digits.split_at_checked(2)?,
            der::GENERALIZED_TIME => digits.split_at_checked(4)?,
            _ => return None,
        };
        let year = match number(year)? {
            // Two digits are years from 1950 to 2049.
            short @ 0..50 if tag == der::UTC_TIME => 2000 + short,
            short if tag == der::UTC_TIME => 1900 + short,
            year => year,
        };
        let rest: &[u8; 10] = rest.try_into().ok()?;
        let mut time = [year, 0, 0, 0, 0, 0];
        for (n, (least, most)) in RANGES.into_iter().enumerate() {
            let part = number(&rest[2 * n..2 * n + 2])?;
            time[n + 1] = (least..=most).contains(&part).then_some(part)?;
        }
        Some(Self(time))
    }

    /// Seconds since 1970.
    pub(crate) fn unix_s(self) -> i64 {
        let [year, month, day, hour, minute, second] = self.0;
        // Years begin in March here, so that the leap day is the last day of a year.
        let (year, month) = match month {
            1 | 2 => (year - 1, month + 9),
            _ => (year, month - 3),
        };
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        let days = year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - DAYS_TO_1970;
        days * 86_400 + hour * 3600 + minute * 60 + second
    }
}

impl fmt::Display for Time {
    /// Prints the time in OpenSSL's form, `Nov 21 12:00:00 2026 GMT`; a day beyond the end of its month is a `Bad
    /// time value`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, month, day, hour, minute, second] = self.0;
        let days = match month {
            2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if day > days {
            return f.write_str("Bad time value");
        }
        let name = MONTHS[usize::try_from(month - 1).unwrap_or(0)];
        write!(
            f,
            "{name} {day:2} {hour:02}:{minute:02}:{second:02} {year} GMT"
        )
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        Some(number * 10 + digit)
    })
}

/// Least and most of month, day, hour, minute and second.
const RANGES: [(i64, i64); 5] = [(1, 12), (1, 31), (0, 23), (0, 59), (0, 59)];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
/// Days from the March of the year 0 to 1970.
const DAYS_TO_1970: i64 = 719_468;
