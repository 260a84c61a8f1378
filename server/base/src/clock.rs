//! Time as servers see it: set by the driver once per iteration of its event loop, formatted once a second.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Instant;

use engines::http::{Civil, civil, http_date};

/// The current time and its cached spellings.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Monotonic time, milliseconds from an arbitrary start.
    pub mono_ms: u64,
    /// Wall clock, milliseconds since 1970.
    pub unix_ms: u64,
    /// The wall clock as an HTTP date (RFC 9110, 5.6.7).
    pub date: [u8; 29],
    /// `$time_local`: `21/Nov/2026:03:41:18 +0000`.
    pub log_time: String,
    cached_s: u64,
}

impl Clock {
    /// A clock that shows these times.
    pub fn new(mono_ms: u64, unix_ms: u64) -> Self {
        let cached_s = unix_ms / 1000;
        Self {
            mono_ms,
            unix_ms,
            date: http_date(cached_s as i64),
            log_time: log_time(cached_s as i64),
            cached_s,
        }
    }

    /// Sets the time.
    pub fn set(&mut self, mono_ms: u64, unix_ms: u64) {
        self.mono_ms = mono_ms;
        self.unix_ms = unix_ms;
        let second = unix_ms / 1000;
        if second != self.cached_s {
            self.cached_s = second;
            self.date = http_date(second as i64);
            self.log_time = log_time(second as i64);
        }
    }

    /// Seconds since 1970.
    pub fn unix_s(&self) -> i64 {
        (self.unix_ms / 1000) as i64
    }

    /// `$time_iso8601`: `2026-11-21T03:41:18+00:00`.
    pub fn iso_time(&self) -> String {
        let (t, sign, minutes) = local(self.unix_s());
        format!(
            "{}-{:02}-{:02}T{}{sign}{:02}:{:02}",
            t.year,
            t.month,
            t.day,
            day_time(&t),
            minutes / 60,
            minutes % 60
        )
    }
}

/// The local time, with the sign of its offset from UTC and the offset in minutes.
fn local(unix_s: i64) -> (Civil, char, u32) {
    let offset = utc_offset_s();
    let sign = if offset < 0 { '-' } else { '+' };
    let at = civil(unix_s + i64::from(offset));
    (at, sign, offset.unsigned_abs() / 60)
}

fn day_time(t: &Civil) -> String {
    format!("{:02}:{:02}:{:02}", t.hour, t.minute, t.second)
}

fn log_time(unix_s: i64) -> String {
    let (t, sign, minutes) = local(unix_s);
    let month = MONTHS[t.month as usize - 1];
    format!(
        "{:02}/{month}/{}:{} {sign}{:02}{:02}",
        t.day,
        t.year,
        day_time(&t),
        minutes / 60,
        minutes % 60
    )
}

/// Names of the months, January first.
pub const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Sets the offset of local time from UTC in seconds; the driver keeps it current.
pub fn set_utc_offset(seconds: i32) {
    UTC_OFFSET_S.store(seconds, Ordering::Relaxed);
}

/// The offset of local time from UTC in seconds.
pub fn utc_offset_s() -> i32 {
    UTC_OFFSET_S.load(Ordering::Relaxed)
}

static UTC_OFFSET_S: AtomicI32 = AtomicI32::new(0);

/// Returns the start of monotonic milliseconds, the time of the first call. All threads count from there, because some
/// share state with times (the zones of `limit_req`, caches).
pub fn mono_start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

/// Returns the current monotonic time, milliseconds since [`mono_start`], at least 1.
pub fn mono_ms() -> u64 {
    mono_start().elapsed().as_millis() as u64 + 1
}

/// Reads a monotonic clock, microseconds.
pub type ReadClock = fn() -> u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spelt_as_nginx_spells_them() {
        let clock = Clock::new(0, 784_111_777_000);
        assert_eq!(&clock.date, b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(clock.log_time, "06/Nov/1994:08:49:37 +0000");
        assert_eq!(clock.iso_time(), "1994-11-06T08:49:37+00:00");
    }
}
