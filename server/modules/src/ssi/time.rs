//! Formats dates by `timefmt`: the conversions of strftime in the C locale.
//!
//! Absent: the modifiers E and O, which have no effect in the C locale, and the names of time zones, which the process
//! does not know. `%Z` of a local time is its offset from UTC, as for zones without a name.
//!
//! Source: nginx documentation, `ngx_http_ssi_module`, `config`; POSIX, strftime.

use engines::http::{Civil, civil};
use server_base::clock::MONTHS;

/// A time and its zone.
struct Moment {
    unix_s: i64,
    offset_s: i32,
    gmt: bool,
    at: Civil,
    /// Days since the first of January, and since Sunday.
    year_day: i64,
    week_day: i64,
}

/// Formats a time. `offset_s` is the offset of a local time from UTC, seconds; `None` for GMT.
pub(super) fn format(unix_s: i64, offset_s: Option<i32>, format: &[u8]) -> Vec<u8> {
    if format == b"%s" {
        return unix_s.to_string().into_bytes();
    }
    let (gmt, offset_s) = (offset_s.is_none(), offset_s.unwrap_or(0));
    let local_s = unix_s + i64::from(offset_s);
    let days = local_s.div_euclid(86_400);
    let at = civil(local_s);
    let moment = Moment {
        unix_s,
        offset_s,
        gmt,
        year_day: days - days_before_year(at.year),
        week_day: i64::from(at.weekday),
        at,
    };
    let mut out = String::new();
    let mut rest = format;
    let mut raw = Vec::new();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, rest.split_first()) {
            (b'%', Some((&conversion, after))) => {
                rest = after;
                out.clear();
                moment.write(conversion, &mut out);
                raw.extend_from_slice(out.as_bytes());
            }
            _ => raw.push(byte),
        }
    }
    raw
}

/// Days from 1970 to the first of January of a year.
fn days_before_year(year: i64) -> i64 {
    let before = year - 1;
    365 * (year - 1970) + before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400)
        - 477
}

impl Moment {
    /// Writes the value of a conversion of strftime(3).
    // Long: a line for each conversion.
    fn write(&self, conversion: u8, out: &mut String) {
        use std::fmt::Write as _;
        let Civil {
            year,
            month,
            day,
            hour,
            minute,
            second,
            ..
        } = self.at;
        let hour12 = (hour + 11) % 12 + 1;
        let week_day = self.week_day as usize;
        let month_name = MONTHS[month as usize - 1];
        let written = match conversion {
            b'a' => write!(out, "{}", &WEEK_DAYS[week_day][..3]),
            b'A' => write!(out, "{}", WEEK_DAYS[week_day]),
            b'b' | b'h' => write!(out, "{month_name}"),
            b'B' => write!(out, "{month_name}{}", MONTH_ENDS[month as usize - 1]),
            b'c' => return self.write_all("abeTY", ' ', out),
            b'C' => write!(out, "{:02}", year / 100),
            b'd' => write!(out, "{day:02}"),
            b'D' | b'x' => return self.write_all("mdy", '/', out),
            b'e' => write!(out, "{day:2}"),
            b'F' => return self.write_all("Ymd", '-', out),
            b'g' => write!(out, "{:02}", self.iso_week().0.rem_euclid(100)),
            b'G' => write!(out, "{}", self.iso_week().0),
            b'H' => write!(out, "{hour:02}"),
            b'I' => write!(out, "{hour12:02}"),
            b'j' => write!(out, "{:03}", self.year_day + 1),
            b'k' => write!(out, "{hour:2}"),
            b'l' => write!(out, "{hour12:2}"),
            b'm' => write!(out, "{month:02}"),
            b'M' => write!(out, "{minute:02}"),
            b'n' => writeln!(out),
            b'p' => write!(out, "{}", if hour < 12 { "AM" } else { "PM" }),
            b'P' => write!(out, "{}", if hour < 12 { "am" } else { "pm" }),
            b'r' => {
                self.write_all("IMS", ':', out);
                write!(out, " {}", if hour < 12 { "AM" } else { "PM" })
            }
            b'R' => return self.write_all("HM", ':', out),
            b's' => write!(out, "{}", self.unix_s),
            b'S' => write!(out, "{second:02}"),
            b't' => write!(out, "\t"),
            b'T' | b'X' => return self.write_all("HMS", ':', out),
            b'u' => write!(out, "{}", (self.week_day + 6) % 7 + 1),
            b'U' => write!(out, "{:02}", (self.year_day + 7 - self.week_day) / 7),
            b'V' => write!(out, "{:02}", self.iso_week().1),
            b'w' => write!(out, "{}", self.week_day),
            b'W' => write!(
                out,
                "{:02}",
                (self.year_day + 7 - (self.week_day + 6) % 7) / 7
            ),
            b'y' => write!(out, "{:02}", year.rem_euclid(100)),
            b'Y' => write!(out, "{year}"),
            b'z' => {
                let (sign, minutes) = self.offset();
                write!(out, "{sign}{:02}{:02}", minutes / 60, minutes % 60)
            }
            // glibc prints the name of the zone; only its offset is known here.
            b'Z' if self.gmt => write!(out, "GMT"),
            b'Z' => match self.offset() {
                (_, 0) => write!(out, "UTC"),
                (sign, minutes) if minutes % 60 == 0 => write!(out, "{sign}{:02}", minutes / 60),
                _ => return self.write(b'z', out),
            },
            b'%' => write!(out, "%"),
            other => write!(out, "%{}", char::from(other)),
        };
        written.expect("a string takes all that is written to it");
    }

    /// Writes several conversions with a separator.
    fn write_all(&self, conversions: &str, between: char, out: &mut String) {
        for (n, conversion) in conversions.bytes().enumerate() {
            if n > 0 {
                out.push(between);
            }
            self.write(conversion, out);
        }
    }

    fn offset(&self) -> (char, u32) {
        let sign = if self.offset_s < 0 { '-' } else { '+' };
        (sign, self.offset_s.unsigned_abs() / 60)
    }

    /// Returns year and week number by ISO 8601: weeks begin on Monday and belong to the year with most of their days.
    fn iso_week(&self) -> (i64, i64) {
        let year = self.at.year;
        let monday = self.year_day - (self.week_day + 6) % 7;
        // The week is the one of its Thursday.
        let thursday = monday + 3;
        let length = |year: i64| days_before_year(year + 1) - days_before_year(year);
        if thursday < 0 {
            (year - 1, (thursday + length(year - 1)) / 7 + 1)
        } else if thursday >= length(year) {
            (year + 1, 1)
        } else {
            (year, thursday / 7 + 1)
        }
    }
}

const WEEK_DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
/// The rest of the long names of the months after the short ones.
const MONTH_ENDS: [&str; 12] = [
    "uary", "ruary", "ch", "il", "", "e", "y", "ust", "tember", "ober", "ember", "ember",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn gmt(unix_s: i64, text: &str) -> String {
        String::from_utf8_lossy(&format(unix_s, None, text.as_bytes())).into_owned()
    }

    #[test]
    fn the_usual_format_is_that_of_nginx() {
        assert_eq!(
            gmt(784_111_777, "%A, %d-%b-%Y %H:%M:%S %Z"),
            "Sunday, 06-Nov-1994 08:49:37 GMT"
        );
    }

    /// As `date -u -d @N` of coreutils writes them in the C locale.
    #[test]
    fn every_conversion_is_that_of_strftime() {
        assert_eq!(
            gmt(
                784_111_777,
                "%a|%B|%c|%C|%D|%e|%F|%g|%G|%h|%I|%j|%k|%l|%m|%n|%p|%P|%r|%R|%s|%t|%T|%u|%U|%V|%w|%W|%x|%X|%y|%z|%%"
            ),
            "Sun|November|Sun Nov  6 08:49:37 1994|19|11/06/94| 6|1994-11-06|94|1994|Nov|08|310| 8| 8|11|\n|AM|am|\
             08:49:37 AM|08:49|784111777|\t|08:49:37|7|45|44|0|44|11/06/94|08:49:37|94|+0000|%"
        );
    }

    #[test]
    fn weeks_belong_to_the_year_of_their_thursday() {
        // 2005-01-01, 2008-12-31, 2010-01-03, 2020-12-31, 2024-02-29.
        for (unix_s, week) in [
            (1_104_537_600, "2004-W53-6"),
            (1_230_681_600, "2009-W01-3"),
            (1_262_476_800, "2009-W53-7"),
            (1_609_372_800, "2020-W53-4"),
            (1_709_164_800, "2024-W09-4"),
        ] {
            assert_eq!(gmt(unix_s, "%G-W%V-%u"), week);
        }
    }

    #[test]
    fn local_times_have_their_distance_from_utc() {
        let local = |offset_s, text: &[u8]| format(784_111_777, Some(offset_s), text);
        assert_eq!(local(3600, b"%H %z %Z"), b"09 +0100 +01");
        assert_eq!(local(-12_600, b"%R %Z"), b"05:19 -0330");
        assert_eq!(local(0, b"%Z"), b"UTC");
        assert_eq!(local(3600, b"%s"), b"784111777");
        assert_eq!(format(0, None, b"100%"), b"100%");
    }
}
