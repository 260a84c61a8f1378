//! Times of pages and reports: UTC, as ISO 8601 has them.

use std::time::{SystemTime, UNIX_EPOCH};

use engines::http::civil;

/// Returns the time of the system, Unix seconds.
pub(crate) fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Writes a time as `2026-11-29T14:00:00Z`.
pub(crate) fn iso(unix_s: u64) -> String {
    let date = date(unix_s);
    format!("{}T{}Z", day(unix_s), clock(&date))
}

/// Writes a time for readers: `2026-11-29 14:00`, with seconds if they are not 0.
pub(crate) fn readable(unix_s: u64) -> String {
    let date = date(unix_s);
    let clock = clock(&date);
    let shown = clock.strip_suffix(":00").unwrap_or(&clock);
    format!("{} {shown}", day(unix_s))
}

/// Writes a time as the value of a field: `2026-11-29T14:00`, to the minute.
pub(crate) fn input(unix_s: u64) -> String {
    let date = date(unix_s);
    format!("{}T{:02}:{:02}", day(unix_s), date.hour, date.minute)
}

/// Writes a tick of a time axis: the date at midnight, else the clock.
pub(crate) fn tick(unix_s: u64) -> String {
    let date = date(unix_s);
    match unix_s % DAY_S {
        0 => format!("{:02}-{:02}", date.month, date.day),
        _ => format!("{:02}:{:02}", date.hour, date.minute),
    }
}

/// Reads a time in UTC, with or without seconds, or a date. Returns Unix seconds; `None` for any other text.
pub fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let ms = match text.len() {
        DATE_BYTES => crate::page::har::parse_date(&format!("{text}T00:00Z"))?,
        _ => crate::page::har::parse_date(text)?,
    };
    Some((ms / 1000.0) as u64)
}

/// Writes a length of time in its largest whole unit, such as `6 h`.
pub(crate) fn length(seconds: u64) -> String {
    match seconds {
        s if s >= 2 * DAY_S && s.is_multiple_of(DAY_S) => format!("{} days", s / DAY_S),
        s if s >= 3600 && s.is_multiple_of(3600) => format!("{} h", s / 3600),
        s if s >= 60 && s.is_multiple_of(60) => format!("{} min", s / 60),
        s => format!("{s} s"),
    }
}

fn date(unix_s: u64) -> engines::http::Civil {
    civil(i64::try_from(unix_s).unwrap_or(i64::MAX).min(LATEST_S))
}

fn day(unix_s: u64) -> String {
    let date = date(unix_s);
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

fn clock(date: &engines::http::Civil) -> String {
    format!("{:02}:{:02}:{:02}", date.hour, date.minute, date.second)
}

/// Seconds of a day.
pub(crate) const DAY_S: u64 = 86_400;
/// Length of `2026-11-29`.
const DATE_BYTES: usize = 10;
/// End of the year 9999.
const LATEST_S: i64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        for unix_s in [0, 59, 1_767_225_600, 1_772_323_199, 4_102_444_800] {
            assert_eq!(parse(&iso(unix_s)), Some(unix_s));
            assert_eq!(parse(&input(unix_s)), Some(unix_s - unix_s % 60));
        }
        assert_eq!(iso(1_767_225_600), "2026-01-01T00:00:00Z");
        assert_eq!(readable(1_767_225_600), "2026-01-01 00:00");
        assert_eq!(readable(1_767_225_601), "2026-01-01 00:00:01");
        assert_eq!(parse("2026-01-01"), Some(1_767_225_600));
        for text in [
            "",
            "x",
            "2026-13-01",
            "2026-01-01T25:00",
            "1e9",
            "2026-01-0'",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn ticks_have_the_date_at_midnight() {
        assert_eq!(tick(1_767_225_600), "01-01");
        assert_eq!(tick(1_767_225_600 + 3 * 3600 + 300), "03:05");
        assert_eq!(iso(u64::MAX), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn lengths_have_their_largest_unit() {
        let all = [30, 90, 3600, 86_400, 604_800, 5400].map(length);
        assert_eq!(all, ["30 s", "90 s", "1 h", "24 h", "7 days", "90 min"]);
    }
}
