//! The title that `ps` shows, written over the argument strings of the process.
//!
//! The kernel tells in /proc/self/stat where they are; the environment strings that follow are
//! moved first, so that a title may run over them. Whoever needs the arguments reads them before.
//! Source: proc(5), `arg_start` to `env_end`.

use std::ffi::{CString, OsString, c_char};
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;

/// The memory a title may use.
#[derive(Debug)]
pub struct Title {
    area: Range<usize>,
}

impl Title {
    /// Finds the area and moves the environment out of it; call once, before threads start and after
    /// the arguments were read. Without /proc, titles are not shown.
    #[must_use]
    pub fn new() -> Self {
        let area = area().unwrap_or(0..0);
        if !area.is_empty() {
            move_environment();
        }
        Self { area }
    }

    /// Shows `text`, cut to the area.
    pub fn set(&mut self, text: &str) {
        let room = self.area.len().saturating_sub(1);
        let bytes: Vec<u8> = text.bytes().filter(|byte| *byte != 0).take(room).collect();
        if self.area.is_empty() {
            return;
        }
        let start: *mut u8 = std::ptr::with_exposed_provenance_mut(self.area.start);
        // SAFETY: the area is the process's own writable stack memory that held the arguments and the
        // environment; the environment was moved by `new`, and the arguments stay strings that end,
        // because all after the title is zero. `bytes` is shorter than the area.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
            std::ptr::write_bytes(start.add(bytes.len()), 0, self.area.len() - bytes.len());
        }
    }
}

impl Default for Title {
    fn default() -> Self {
        Self::new()
    }
}

fn area() -> Option<Range<usize>> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    parse_area(&stat)
}

/// Reads `arg_start`, `arg_end`, `env_start` and `env_end`; the name in parentheses may hold spaces.
fn parse_area(stat: &str) -> Option<Range<usize>> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name
        .split_ascii_whitespace()
        .skip(ARG_START_FIELD - FIRST_FIELD);
    let mut next = || fields.next()?.parse::<usize>().ok();
    let (arg_start, arg_end, env_start, env_end) = (next()?, next()?, next()?, next()?);
    if arg_start == 0 || arg_end <= arg_start {
        return None;
    }
    let adjacent = env_start >= arg_end && env_start - arg_end <= 1 && env_end > env_start;
    Some(arg_start..if adjacent { env_end } else { arg_end })
}

/// Puts copies of the environment's strings in place of those on the stack.
fn move_environment() {
    unsafe extern "C" {
        static mut environ: *const *const c_char;
    }
    let mut strings: Vec<*const c_char> = Vec::new();
    for (name, value) in std::env::vars_os() {
        let mut string = OsString::into_vec(name);
        string.push(b'=');
        string.extend(OsString::into_vec(value));
        if let Ok(string) = CString::new(string) {
            strings.push(string.into_raw());
        }
    }
    strings.push(std::ptr::null());
    let moved: &'static [*const c_char] = strings.leak();
    // SAFETY: called before threads start, so nobody reads the environment meanwhile; the new list and
    // its strings are never freed and end as environ(7) demands.
    unsafe { environ = moved.as_ptr() };
}

/// The number of the field after the name, and of `arg_start`, in proc(5).
const FIRST_FIELD: usize = 3;
const ARG_START_FIELD: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(tail: &str) -> String {
        let zeros = "0 ".repeat(ARG_START_FIELD - FIRST_FIELD);
        format!("12 (a) b) {zeros}{tail} 0")
    }

    #[test]
    fn area_covers_arguments_and_adjacent_environment() {
        assert_eq!(parse_area(&stat("100 120 120 300")), Some(100..300));
        assert_eq!(parse_area(&stat("100 120 500 600")), Some(100..120));
        assert_eq!(parse_area(&stat("0 0 0 0")), None);
        assert_eq!(parse_area("12 (x) S 1"), None);
    }

    #[test]
    fn own_area_holds_the_program_name() {
        let area = area().expect("proc is mounted");
        let name = std::env::args_os().next().expect("a name").into_vec();
        assert!(area.len() > name.len());
    }
}
