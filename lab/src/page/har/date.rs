//! Dates as HAR has them: ISO 8601 with a time and a zone, such as `2026-11-23T09:30:00.123+01:00`.

use engines::http::civil;

/// Writes a moment, ms since 1970 in UTC, to the microsecond.
pub(super) fn encode(unix_ms: f64) -> String {
    // A number that is not finite becomes the first date, so that the archive is valid in any case.
    let us = match unix_ms.is_finite() {
        true => (unix_ms.clamp(0.0, LATEST_MS) * 1000.0).round() as i64,
        false => 0,
    };
    let (seconds, fraction) = (us.div_euclid(1_000_000), us.rem_euclid(1_000_000));
    let date = civil(seconds);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{fraction:06}Z",
        date.year, date.month, date.day, date.hour, date.minute, date.second
    )
}

/// Parses a date, ms since 1970 in UTC; without a zone it is UTC. Returns `None` before 1970 and after 2200.
pub(crate) fn parse(text: &str) -> Option<f64> {
    let mut rest = Rest(text.trim().as_bytes());
    let year = rest.number(4)?;
    rest.skip(b'-');
    let month = rest.number(2)?;
    rest.skip(b'-');
    let day = rest.number(2)?;
    if !rest.skip(b'T') && !rest.skip(b't') && !rest.skip(b' ') {
        return None;
    }
    let hour = rest.number(2)?;
    rest.skip(b':');
    let minute = rest.number(2)?;
    // ISO 8601 allows a time without seconds.
    let second = match rest.skip(b':') || rest.begins_with_digit() {
        true => rest.number(2)?,
        false => 0,
    };
    let fraction_s = match rest.skip(b'.') || rest.skip(b',') {
        true => rest.fraction()?,
        false => 0.0,
    };
    rest.skip(b' ');
    let zone_s = rest.zone_s()?;
    let valid = rest.0.is_empty()
        && (YEARS.0..=YEARS.1).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    let seconds = day_number(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    let unix_ms = (seconds - zone_s) as f64 * 1000.0 + fraction_s * 1000.0;
    (valid && unix_ms >= 0.0).then_some(unix_ms)
}

/// The text that is not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn skip(&mut self, wanted: u8) -> bool {
        let rest = self.0.strip_prefix(&[wanted]);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn begins_with_digit(&self) -> bool {
        self.0.first().is_some_and(u8::is_ascii_digit)
    }

    /// A number of `digits` digits.
    fn number(&mut self, digits: usize) -> Option<i64> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        number.iter().try_fold(0, |sum, byte| {
            let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
            Some(sum * 10 + digit)
        })
    }

    /// Digits behind the point.
    fn fraction(&mut self) -> Option<f64> {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit());
        let (digits, rest) = self.0.split_at(digits.count());
        self.0 = rest;
        let digits = std::str::from_utf8(digits).ok()?;
        format!("0.{digits}")
            .parse()
            .ok()
            .filter(|_| !digits.is_empty())
    }

    /// The distance of a zone from UTC.
    fn zone_s(&mut self) -> Option<i64> {
        if self.0.is_empty() || self.skip(b'Z') || self.skip(b'z') {
            return Some(0);
        }
        let sign = match (self.skip(b'+'), self.skip(b'-')) {
            (true, _) => 1,
            (_, true) => -1,
            _ => return None,
        };
        let hours = self.number(2)?;
        self.skip(b':');
        let minutes = match self.0.is_empty() {
            true => 0,
            false => self.number(2)?,
        };
        (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date, which may be none.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let days_before = |year: i64| 365 * year + year / 4 - year / 100 + year / 400;
    let years = days_before(year - 1) - days_before(1969);
    let months: i64 = (1..month).map(|month| days_in_month(year, month)).sum();
    years + months + day - 1
}

/// Accepted years of a date.
const YEARS: (i64, i64) = (1970, 2200);
/// The last moment that is written, ms: the end of 2200.
const LATEST_MS: f64 = 7_289_654_399_999.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_with_their_zones() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0.0),
            ("2017-06-28T17:41:55.090+09:00", 1_498_639_315_090.0),
            ("2017-06-28T08:41:55.09Z", 1_498_639_315_090.0),
            ("2015-12-26T13:52:12.272+00:00", 1_451_137_932_272.0),
            ("20151226T135212.272-0100", 1_451_141_532_272.0),
            ("2024-02-29 23:59:60", 1_709_251_200_000.0),
            ("2017-06-28T17:41+09:00", 1_498_639_260_000.0),
            ("2017-06-28 08:41:55.090 +0000", 1_498_639_315_090.0),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn absurd_dates_are_none() {
        for text in [
            "",
            "yesterday",
            "2023-02-29T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
            "2201-01-01T00:00:00Z",
            "9999-99-99T99:99:99Z",
            "2020-13-01T00:00:00Z",
            "2020-01-01T24:00:00Z",
            "2020-01-01T00:00:00.Z",
            "2020-01-01T00:00:00X",
            "2020-01-01T00:00:00Z0",
            "2020-01-01",
            "2020-01-01T00",
            "2020-01-01T00:00:",
            "-020-01-01T00:00:00Z",
            "2020-01-01T00:00:00+99:00",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for day in 0..84_000 {
            let unix_ms = f64::from(day) * 86_400_000.0 + 3_723_004.5;
            assert_eq!(parse(&encode(unix_ms)), Some(unix_ms));
        }
        assert_eq!(encode(1_498_639_315_090.25), "2017-06-28T08:41:55.090250Z");
        assert_eq!(encode(f64::NAN), "1970-01-01T00:00:00.000000Z");
        assert!(encode(f64::INFINITY).starts_with("1970"));
        assert!(parse(&encode(1e300)).is_some());
    }
}
