//! The title that `ps` shows, written over the argument strings of the process.
//!
//! The kernel shows in /proc/self/stat where they are; the environment strings that follow are moved first, so that a
//! title may run over them. The arguments must be read before. Any thread may read arguments and environment at any
//! time, so both are touched only while there is one thread. Source: proc(5), `arg_start` to `env_end`.

use std::ffi::{CString, OsString, c_char};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicBool, Ordering};

use super::process::thread_count;

/// The title of the process: the memory that it may use, which at most one value has.
#[derive(Debug)]
pub struct Title {
    area: Range<usize>,
}

impl Title {
    /// Takes the title and moves the environment out of its memory. A title shows nothing where there is another one already,
    /// where the process has several threads, and without /proc.
    #[must_use]
    pub fn take() -> Self {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        let area = take_area(&TAKEN, thread_count(), area);
        if !area.is_empty() {
            move_environment();
        }
        Self { area }
    }

    /// Shows `text`, cut to the area; nothing new while the process has several threads.
    pub fn set(&mut self, text: &str) {
        if self.area.is_empty() || thread_count() > 1 {
            return;
        }
        let room = self.area.len().saturating_sub(1);
        let bytes: Vec<u8> = text.bytes().filter(|byte| *byte != 0).take(room).collect();
        let start: *mut u8 = std::ptr::with_exposed_provenance_mut(self.area.start);
        // SAFETY: the kernel said that the area is the process's own writable stack memory, which held the arguments and the
        // environment. The environment was moved by `take`, which gives the area to one value alone, and the arguments stay
        // strings that end, because all after the title is zero; nobody reads them meanwhile, as there is one thread.
        // `bytes` is shorter than the area.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
            std::ptr::write_bytes(start.add(bytes.len()), 0, self.area.len() - bytes.len());
        }
    }
}

/// Returns the area to the first caller, if there is one thread.
fn take_area(
    taken: &AtomicBool,
    threads: usize,
    area: impl FnOnce() -> Option<Range<usize>>,
) -> Range<usize> {
    if threads > 1 || taken.swap(true, Ordering::Relaxed) {
        return 0..0;
    }
    area().unwrap_or(0..0)
}

fn area() -> Option<Range<usize>> {
    let mut file = File::open("/proc/self/stat").ok()?;
    // Another file system there could name any memory.
    let system = rustix::fs::fstatfs(&file).ok()?;
    if system.f_type != rustix::fs::PROC_SUPER_MAGIC {
        return None;
    }
    let mut stat = String::new();
    file.read_to_string(&mut stat).ok()?;
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
    // SAFETY: called while there is one thread, so nobody reads the environment meanwhile; the new list and
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
    fn title_is_taken_once_and_with_one_thread() {
        let taken = AtomicBool::new(false);
        let area = || Some(1..9);
        assert_eq!(take_area(&taken, 2, area), 0..0);
        assert_eq!(take_area(&taken, 1, area), 1..9);
        assert_eq!(take_area(&taken, 1, area), 0..0);
    }

    #[test]
    fn several_threads_keep_their_arguments_and_environment() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || receiver.recv());
        let arguments: Vec<OsString> = std::env::args_os().collect();
        let mut title = Title::take();
        title.set("a title");
        assert_eq!(title.area, 0..0);
        assert!(std::env::args_os().eq(arguments));
        // One that was taken before shows nothing new.
        let mut earlier = Title {
            area: area().expect("proc is mounted"),
        };
        earlier.set("a title");
        assert!(
            std::env::args_os()
                .next()
                .is_some_and(|name| name != "a title")
        );
        drop(sender);
        assert!(other.join().is_ok());
    }

    #[test]
    fn own_area_holds_the_program_name() {
        let area = area().expect("proc is mounted");
        let name = std::env::args_os().next().expect("a name").into_vec();
        assert!(area.len() > name.len());
    }
}
