//! Dates in cookies.
//!
//! Absent: the other attributes, which modules write.

use engines::http::{civil, http_date};

/// Formats a date with a two-digit year, the only form of old browsers, as long as possible.
pub fn cookie_date(unix_s: i64) -> Vec<u8> {
    let date = http_date(unix_s);
    let year = match civil(unix_s).year {
        ..=LAST_SHORT_YEAR => &date[14..16],
        _ => &date[12..16],
    };
    [&date[..7], b"-", &date[8..11], b"-", year, &date[16..]].concat()
}

/// The last year with two digits: all systems can represent it.
const LAST_SHORT_YEAR: i64 = 2037;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_are_short_as_long_as_old_browsers_can_read_them() {
        assert_eq!(cookie_date(784_111_777), b"Sun, 06-Nov-94 08:49:37 GMT");
        assert_eq!(cookie_date(2_145_916_555), b"Thu, 31-Dec-37 23:55:55 GMT");
        assert_eq!(cookie_date(2_145_916_800), b"Fri, 01-Jan-2038 00:00:00 GMT");
    }
}
