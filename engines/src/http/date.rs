//! Dates of HTTP: the form sent, and the three forms accepted.
//!
//! Time is an argument, seconds since 1970-01-01 UTC; nothing here reads a clock. Source: RFC 9110
//! section 5.6.7; nginx's leniency about the day name and text after the time.

/// A point in time, split into calendar and clock, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Year of the Gregorian calendar.
    pub year: i64,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month, 1 to 31.
    pub day: u8,
    /// Hour, 0 to 23.
    pub hour: u8,
    /// Minute, 0 to 59.
    pub minute: u8,
    /// Second, 0 to 59.
    pub second: u8,
    /// Day of the week, 0 is Sunday.
    pub weekday: u8,
}

/// `unix_s` as an IMF-fixdate, "Sun, 06 Nov 1994 08:49:37 GMT". Times before 1970 and after 9999 are clamped to the
/// first and last valid one, as in nginx.
#[must_use]
pub fn http_date(unix_s: i64) -> [u8; 29] {
    let time = civil(unix_s.clamp(0, LAST_SECOND));
    let mut out = *b"Day, 00 Mon 0000 00:00:00 GMT";
    out[..3].copy_from_slice(WEEKDAYS[time.weekday as usize]);
    out[5..7].copy_from_slice(&two_digits(time.day));
    out[8..11].copy_from_slice(MONTHS[time.month as usize - 1]);
    out[12..14].copy_from_slice(&two_digits((time.year / 100) as u8));
    out[14..16].copy_from_slice(&two_digits((time.year % 100) as u8));
    out[17..19].copy_from_slice(&two_digits(time.hour));
    out[20..22].copy_from_slice(&two_digits(time.minute));
    out[23..25].copy_from_slice(&two_digits(time.second));
    out
}

/// The time of an IMF-fixdate, an RFC 850 date or an asctime date, in seconds
/// since 1970; `None` if the text is none of them or not a day of the calendar.
#[must_use]
pub fn parse_http_date(text: &[u8]) -> Option<i64> {
    let end_of_weekday = text.iter().position(|byte| matches!(byte, b',' | b' '))?;
    let asctime = text[end_of_weekday] == b' ';
    let mut rest = Rest(&text[end_of_weekday + 1..]);
    rest.skip_spaces();
    let date = if asctime {
        rest.asctime()
    } else {
        rest.day_first()
    }?;
    date.unix_s()
}

/// Parses a date and time in UTC, "2026-12-01T00:00:00Z" (RFC 3339 section 5.6), in seconds since 1970. Returns `None` for
/// other forms, days out of the calendar, times before 1970, fractions and leap seconds.
#[must_use]
pub fn parse_utc(text: &[u8]) -> Option<i64> {
    let mut rest = Rest(text);
    let year = rest.number(4)?;
    rest.expect(b'-')?;
    let month = rest.number(2)? as u8;
    rest.expect(b'-')?;
    let day = rest.number(2)? as u8;
    rest.expect(b'T')?;
    let date = Date {
        year,
        month,
        day,
        clock: rest.clock()?,
    };
    let is_whole = rest.0 == b"Z" && (1..=12).contains(&month);
    date.unix_s().filter(|unix_s| is_whole && *unix_s >= 0)
}

/// Splits `unix_s` into calendar and clock, UTC.
#[must_use]
pub fn civil(unix_s: i64) -> Civil {
    let days = unix_s.div_euclid(DAY_S);
    let second_of_day = unix_s.rem_euclid(DAY_S);
    let (year, month, day) = calendar(days);
    Civil {
        year,
        month,
        day,
        hour: (second_of_day / 3600) as u8,
        minute: (second_of_day / 60 % 60) as u8,
        second: (second_of_day % 60) as u8,
        // 1970-01-01 was a Thursday.
        weekday: (days + 4).rem_euclid(7) as u8,
    }
}

/// Fields of the three date formats, not validated yet.
struct Date {
    year: i64,
    month: u8,
    day: u8,
    clock: (u8, u8, u8),
}

impl Date {
    fn unix_s(&self) -> Option<i64> {
        let (hour, minute, second) = self.clock;
        let valid = (1..=days_in_month(self.year, self.month)).contains(&self.day)
            && hour < 24
            && minute < 60
            && second < 60;
        let of_day = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
        valid.then(|| day_number(self.year, self.month, self.day) * DAY_S + of_day)
    }
}

/// The text not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    /// "06 Nov 1994 08:49:37" and "06-Nov-94 08:49:37".
    fn day_first(&mut self) -> Option<Date> {
        let day = self.number(2)? as u8;
        let separator = self.byte()?;
        let month = self.month()?;
        if self.byte()? != separator {
            return None;
        }
        let year = match separator {
            b' ' => self.number(4)?,
            b'-' => match self.number(2)? {
                // RFC 9110 requires a sliding window; nginx splits at 1970.
                year @ 0..70 => year + 2000,
                year => year + 1900,
            },
            _ => return None,
        };
        self.expect(b' ')?;
        Some(Date {
            year,
            month,
            day,
            clock: self.clock()?,
        })
    }

    /// "Nov  6 08:49:37 1994".
    fn asctime(&mut self) -> Option<Date> {
        let month = self.month()?;
        self.expect(b' ')?;
        self.skip_spaces();
        let digits = self
            .0
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let day = self.number(digits.clamp(1, 2))? as u8;
        self.expect(b' ')?;
        let clock = self.clock()?;
        self.expect(b' ')?;
        Some(Date {
            year: self.number(4)?,
            month,
            day,
            clock,
        })
    }

    fn clock(&mut self) -> Option<(u8, u8, u8)> {
        let hour = self.number(2)? as u8;
        self.expect(b':')?;
        let minute = self.number(2)? as u8;
        self.expect(b':')?;
        Some((hour, minute, self.number(2)? as u8))
    }

    fn month(&mut self) -> Option<u8> {
        let (name, rest) = self.0.split_at_checked(3)?;
        self.0 = rest;
        MONTHS
            .iter()
            .position(|month| *month == name)
            .map(|at| at as u8 + 1)
    }

    /// A number of exactly `digits` digits.
    fn number(&mut self, digits: usize) -> Option<i64> {
        let (text, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        text.iter().try_fold(0, |number, byte| {
            byte.is_ascii_digit()
                .then(|| number * 10 + i64::from(byte - b'0'))
        })
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.byte()? == wanted).then_some(())
    }

    fn skip_spaces(&mut self) {
        while let Some((b' ', rest)) = self.0.split_first() {
            self.0 = rest;
        }
    }
}

fn two_digits(number: u8) -> [u8; 2] {
    [b'0' + number / 10, b'0' + number % 10]
}

fn days_in_month(year: i64, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970-01-01 to the date. Years begin in March here, so that the leap day is the last day of a year.
fn day_number(year: i64, month: u8, day: u8) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + day_of_year - DAYS_TO_1970
}

/// The date `days` after 1970-01-01; the inverse of [`day_number`].
fn calendar(days: i64) -> (i64, u8, u8) {
    let days = days + DAYS_TO_1970;
    let era = days.div_euclid(ERA_DAYS);
    let day_of_era = days.rem_euclid(ERA_DAYS);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month as u8, day as u8)
}

const WEEKDAYS: [&[u8; 3]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

const DAY_S: i64 = 86_400;

/// Days of 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;

/// Days from March 1 of year 0 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;

/// December 31, 9999, 23:59:59.
const LAST_SECOND: i64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9110 section 5.6.7: the same moment in the three forms.
    #[test]
    fn three_forms_of_one_moment_are_equal() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun Nov 06 08:49:37 1994",
            "Sun, 06 Nov 1994 08:49:37",
        ] {
            assert_eq!(
                parse_http_date(text.as_bytes()),
                Some(784_111_777),
                "{text}"
            );
        }
    }

    #[test]
    fn times_in_utc_have_one_form() {
        for (text, unix_s) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1994-11-06T08:49:37Z", 784_111_777),
            ("2024-02-29T23:59:59Z", 1_709_251_199),
            ("9999-12-31T23:59:59Z", LAST_SECOND),
        ] {
            assert_eq!(parse_utc(text.as_bytes()), Some(unix_s), "{text}");
        }
        for text in [
            "",
            "2026-12-01",
            "2026-12-01T00:00:00",
            "2026-12-01t00:00:00z",
            "2026-12-01 00:00:00Z",
            "2026-12-01T00:00:00+00:00",
            "2026-12-01T00:00:00.5Z",
            "2026-12-01T00:00:00Z ",
            "2026-12-01T24:00:00Z",
            "2026-12-01T00:60:00Z",
            "2026-12-31T23:59:60Z",
            "2026-02-29T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-12-00T00:00:00Z",
            "2026-12-32T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "-026-12-01T00:00:00Z",
        ] {
            assert_eq!(parse_utc(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_is_sent_is_accepted_again() {
        for unix_s in [
            0,
            1,
            784_111_777,
            951_782_400,
            2_147_483_648,
            6_442_450_943,
            LAST_SECOND,
        ] {
            assert_eq!(parse_http_date(&http_date(unix_s)), Some(unix_s));
        }
        assert_eq!(&http_date(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http_date(-1), http_date(0));
        assert_eq!(http_date(LAST_SECOND + 1), http_date(LAST_SECOND));
    }

    #[test]
    fn every_day_of_two_eras_round_trips() {
        for days in -ERA_DAYS..ERA_DAYS {
            let (year, month, day) = calendar(days);
            assert_eq!(day_number(year, month, day), days);
            assert!((1..=days_in_month(year, month)).contains(&day));
        }
        assert!(civil(i64::MIN).year < civil(i64::MAX).year);
    }

    #[test]
    fn impossible_days_and_times_are_refused() {
        for text in [
            "",
            "Sun",
            "Sun,",
            "Sun, 31 Feb 2000 00:00:00 GMT",
            "Sun, 29 Feb 1900 00:00:00 GMT",
            "Sun, 00 Jan 2000 00:00:00 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:00 GMT",
            "Sun, 06 Nov 1994 08:49:60 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov 1994 08:49:37 GMT",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49",
            "Sun Nov  6 08:49:37",
            "Sun, 06 Nov +994 08:49:37 GMT",
        ] {
            assert_eq!(parse_http_date(text.as_bytes()), None, "{text}");
        }
        assert!(parse_http_date(b"Tue, 29 Feb 2000 00:00:00 GMT").is_some());
    }

    #[test]
    fn two_digit_years_split_at_1970() {
        assert_eq!(
            civil(parse_http_date(b"x, 01-Jan-69 00:00:00 GMT").unwrap()).year,
            2069
        );
        assert_eq!(
            civil(parse_http_date(b"x, 01-Jan-70 00:00:00 GMT").unwrap()).year,
            1970
        );
    }
}
