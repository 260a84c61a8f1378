//! The beginning of each line: when it was written, and by which process and thread.
//!
//! Source: nginx documentation, `error_log`; RFC 3339.

use std::cell::Cell;
use std::fmt;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use engines::http::{Civil, civil};

use crate::clock::utc_offset_s;

/// Sets the number of this thread, which its lines carry.
pub fn set_thread(id: u32) {
    PID.set(std::process::id());
    THREAD.set(id);
}

/// The wall clock: seconds since 1970, and milliseconds.
pub(crate) fn now() -> (i64, u32) {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or((0, 0), |d| (d.as_secs() as i64, d.subsec_millis()))
}

/// The numbers of this process and thread.
pub(super) fn ids() -> (u32, u32) {
    match THREAD.get() {
        0 => {
            let pid = std::process::id();
            (pid, pid)
        }
        // Asking the kernel for each line would cost a call.
        thread => (PID.get(), thread),
    }
}

/// Appends the local time of a second since 1970 as `2026/11/21 03:41:18`, which is formatted once a second.
pub(super) fn push_local(unix_s: i64, line: &mut Vec<u8>) {
    let local_s = unix_s + i64::from(utc_offset_s());
    let mut time = TIME.get();
    if time.local_s != local_s {
        time = TimeText {
            local_s,
            text: time_text(local_s),
        };
        TIME.set(time);
    }
    line.extend_from_slice(&time.text);
}

fn time_text(local_s: i64) -> [u8; TIME_BYTES] {
    let Civil {
        year: y,
        month: mo,
        day: d,
        hour: h,
        minute: mi,
        second: s,
        ..
    } = civil(local_s);
    let mut text = [b'0'; TIME_BYTES];
    let mut room = &mut text[..];
    // A year of more digits is cut.
    let _ = write!(room, "{y:04}/{mo:02}/{d:02} {h:02}:{mi:02}:{s:02}");
    text
}

/// The text of a second.
#[derive(Clone, Copy)]
struct TimeText {
    local_s: i64,
    text: [u8; TIME_BYTES],
}

/// `2026-11-21T03:41:18.123+01:00`.
pub(super) struct Rfc3339 {
    seconds: i64,
    ms: u32,
    offset_s: i32,
}

impl Rfc3339 {
    /// A local time.
    pub(super) fn local(seconds: i64, ms: u32) -> Self {
        Self {
            seconds,
            ms,
            offset_s: utc_offset_s(),
        }
    }
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let t = civil(self.seconds + i64::from(self.offset_s));
        let sign = if self.offset_s < 0 { '-' } else { '+' };
        let minutes = self.offset_s.unsigned_abs() / 60;
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}{sign}{:02}:{:02}",
            t.year,
            t.month,
            t.day,
            t.hour,
            t.minute,
            t.second,
            self.ms,
            minutes / 60,
            minutes % 60
        )
    }
}

thread_local! {
    /// The number of this thread; 0 if not set.
    static THREAD: Cell<u32> = const { Cell::new(0) };
    /// The ID of its process, set together with the ID of the thread.
    static PID: Cell<u32> = const { Cell::new(0) };
    static TIME: Cell<TimeText> = const {
        Cell::new(TimeText {
            local_s: i64::MIN,
            text: [b'0'; TIME_BYTES],
        })
    };
}

/// Bytes of `2026/11/21 03:41:18`.
const TIME_BYTES: usize = 19;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_line_is_that_of_its_second() {
        for (now, shown) in [
            (784_111_777, "1994/11/06 08:49:37"),
            (784_111_778, "1994/11/06 08:49:38"),
            (784_111_777, "1994/11/06 08:49:37"),
        ] {
            let mut line = Vec::new();
            push_local(now, &mut line);
            assert_eq!(line, shown.as_bytes());
        }
    }

    #[test]
    fn the_numbers_of_a_line_are_those_of_its_process_and_thread() {
        let pid = std::process::id();
        assert_eq!(ids(), (pid, pid));
        let numbered = std::thread::spawn(move || {
            set_thread(7);
            assert_eq!(ids(), (pid, 7));
        });
        assert!(numbered.join().is_ok());
    }

    #[test]
    fn times_have_milliseconds_and_an_offset() {
        let time = |ms, offset_s| {
            let seconds = 784_111_777;
            Rfc3339 {
                seconds,
                ms,
                offset_s,
            }
            .to_string()
        };
        assert_eq!(time(7, 0), "1994-11-06T08:49:37.007+00:00");
        assert_eq!(time(999, -12_600), "1994-11-06T05:19:37.999-03:30");
    }
}
