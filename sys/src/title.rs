//! The title of the process in `ps`, written over its argument strings.
//!
//! The C library passes the strings to `note` before `main`, so no /proc is needed. The environment strings follow
//! the arguments; they are moved first, so that a title may overwrite them. The arguments must be read before. Any
//! thread may read arguments and environment at any time, so both are touched only while there is one thread.
//! Source: proc(5), `/proc/PID/cmdline`; glibc, `_dl_init`, which calls the functions of `.init_array` with the
//! arguments of `main`.

#[cfg(target_env = "gnu")]
use std::ffi::{CStr, c_int};
use std::ffi::{CString, OsString, c_char};
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::process::thread_count;

/// The title of the process and its memory; at most one value has that memory.
#[derive(Debug)]
pub struct Title {
    area: Range<usize>,
}

impl Title {
    /// Takes the title and moves the environment out of its memory. A title shows nothing if there is another one
    /// already, if the process has several threads, and with another C library than glibc.
    #[must_use]
    pub fn take() -> Self {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        let area = take_area(&TAKEN, thread_count(), area);
        if !area.is_empty() {
            move_environment();
        }
        Self { area }
    }

    /// Shows `text`, cut to the area; no effect while the process has several threads.
    pub fn set(&mut self, text: &str) {
        if self.area.is_empty() || thread_count() > 1 {
            return;
        }
        let room = self.area.len().saturating_sub(1);
        let bytes: Vec<u8> = text.bytes().filter(|byte| *byte != 0).take(room).collect();
        let start: *mut u8 = std::ptr::with_exposed_provenance_mut(self.area.start);
        // SAFETY: the area is the process's own writable stack memory, which held the arguments and the
        // environment. `take` moved the environment and returns the area in one value only. The arguments stay
        // terminated strings, because all bytes after the title are zero. There is one thread, so there are no
        // concurrent readers. `bytes` is shorter than the area.
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

/// Addresses of the first and behind the last byte of arguments and environment; both 0 if unknown.
static AREA: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

fn area() -> Option<Range<usize>> {
    let [start, end] = AREA.each_ref().map(|at| at.load(Ordering::Relaxed));
    (start != 0 && start < end).then_some(start..end)
}

#[cfg(target_env = "gnu")]
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) = note;

/// Records the place of the strings. It runs before `main`: there is one thread, and the environment is unchanged.
///
/// # Safety
/// Both lists are those of `main`: strings that end with NUL, and a null pointer behind the last.
#[cfg(target_env = "gnu")]
unsafe extern "C" fn note(
    _: c_int,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) {
    let mut noted = Adjacent::default();
    for list in [arguments, environment] {
        if list.is_null() {
            continue;
        }
        let mut at = list;
        // SAFETY: by the caller's contract `at` is in the list, which ends with a null pointer.
        while let Some(string) = unsafe { at.as_ref() }.filter(|string| !string.is_null()) {
            // SAFETY: by the caller's contract this is a string that ends with NUL.
            let bytes = unsafe { CStr::from_ptr(*string) }.count_bytes() + 1;
            noted.add(string.expose_provenance(), bytes);
            // SAFETY: the null pointer is still ahead.
            at = unsafe { at.add(1) };
        }
    }
    AREA[0].store(noted.0.start, Ordering::Relaxed);
    AREA[1].store(noted.0.end, Ordering::Relaxed);
}

/// Memory of adjacent strings: each begins at the end of the one before.
#[derive(Default)]
struct Adjacent(Range<usize>);

impl Adjacent {
    /// Adds a string with its NUL, unless it is elsewhere.
    fn add(&mut self, at: usize, bytes: usize) {
        if self.0.is_empty() {
            self.0 = at..at;
        }
        if at == self.0.end {
            self.0.end += bytes;
        }
    }
}

/// Replaces the environment's strings on the stack by copies on the heap.
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
    // SAFETY: called while there is one thread, so there are no concurrent readers of the environment; the new list
    // and its strings are never freed and end as environ(7) demands.
    unsafe { environ = moved.as_ptr() };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn area_covers_arguments_and_adjacent_environment() {
        let area = |strings: &[(usize, usize)]| {
            let mut all = Adjacent::default();
            strings.iter().for_each(|(at, bytes)| all.add(*at, *bytes));
            all.0
        };
        assert_eq!(area(&[(100, 10), (110, 10), (120, 180)]), 100..300);
        // The second is one byte behind, one byte before, and elsewhere.
        for at in [111, 109, 500] {
            assert_eq!(area(&[(100, 10), (at, 10), (110, 5)]), 100..115);
        }
        assert!(area(&[]).is_empty());
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
        // A title taken earlier shows nothing new.
        let mut earlier = Title {
            area: area().expect("glibc passes them"),
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

    /// The kernel's own account of the same memory.
    #[test]
    fn own_area_is_that_of_the_kernel() {
        let stat = std::fs::read_to_string("/proc/self/stat").expect("proc is mounted");
        let (_, fields) = stat.rsplit_once(") ").expect("a name");
        // `arg_start` and `env_end` are the fields 48 and 51, and the first after the name is the third.
        let field = |n: usize| fields.split(' ').nth(n - 3)?.trim().parse().ok();
        assert_eq!(area().map(|area| area.start), field(48));
        assert_eq!(area().map(|area| area.end), field(51));
    }
}
