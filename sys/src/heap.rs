//! Memory of this process as the kernel counts it, and the release of the allocator's free memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::os_error;

/// The kernel's figures about this process, opened once so that they can be read even if descriptors are short.
#[derive(Debug)]
pub struct Resident(File);

impl Resident {
    /// Opens them.
    ///
    /// # Errors
    /// `/proc` is missing: no system call returns these figures. The text names the file.
    pub fn open() -> io::Result<Self> {
        let opened = File::open(STATM).map(Self);
        opened.map_err(|error| {
            let reason = os_error(&error);
            io::Error::new(
                error.kind(),
                format!("open() \"{STATM}\" failed ({reason})"),
            )
        })
    }

    /// Resident memory in bytes.
    ///
    /// # Errors
    /// The kernel's, or `InvalidData` if its figures have another form.
    pub fn bytes(&self) -> io::Result<u64> {
        let mut text = [0; 128];
        let len = self.0.read_at(&mut text, 0)?;
        let pages = std::str::from_utf8(&text[..len])
            .ok()
            .and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok())
            .ok_or(io::ErrorKind::InvalidData)?;
        Ok(pages * page_bytes())
    }
}

/// Source: proc(5).
const STATM: &str = "/proc/self/statm";

fn page_bytes() -> u64 {
    // SAFETY: the call takes no pointer and changes nothing.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

/// Fixes the thresholds of the allocator: free memory at the end of a thread's part of the heap returns to the
/// kernel from 1 MiB on, and blocks from 4 MiB on are mapped one by one. Values of `GLIBC_TUNABLES` for the two
/// have no effect any more.
///
/// glibc's own thresholds rise with the largest freed block, up to 64 and 32 MiB: the memory left behind by a freed
/// configuration would be a matter of chance. Source: mallopt(3).
#[cfg(target_env = "gnu")]
pub fn set_thresholds() {
    // SAFETY: the call takes no pointer, and locks the allocator itself.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES_MAX);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
    }
}

/// No effect: other allocators have no such thresholds.
#[cfg(not(target_env = "gnu"))]
pub fn set_thresholds() {}

/// More than a thread allocates and frees for a few requests.
#[cfg(target_env = "gnu")]
const KEPT_BYTES_MAX: libc::c_int = 1 << 20;
/// Blocks of this size are so rare that each may cost system calls and new pages.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES_MIN: libc::c_int = 4 << 20;

/// Releases unused heap memory to the kernel.
#[cfg(target_env = "gnu")]
pub fn trim() {
    // SAFETY: the call takes no pointer, and locks the allocator itself.
    unsafe { libc::malloc_trim(0) };
}

/// Releases unused heap memory to the kernel: other allocators do so by themselves.
#[cfg(not(target_env = "gnu"))]
pub fn trim() {}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Tests that measure the memory of the whole process take turns.
    static MEASURING: Mutex<()> = Mutex::new(());

    #[test]
    fn memory_that_is_used_is_counted() {
        let _turn = MEASURING.lock();
        let resident = Resident::open().expect("there is a /proc");
        let before = resident.bytes().expect("it has a known form");
        let used = vec![1_u8; 64 << 20];
        let after = resident.bytes().expect("it has a known form");
        assert!(after - before > 60 << 20, "{before} {after}");
        drop(used);
        trim();
        assert!(resident.bytes().expect("it has a known form") < after - (60 << 20));
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn the_end_of_a_threads_heap_is_released_whatever_was_freed_before() {
        let _turn = MEASURING.lock();
        set_thresholds();
        let resident = Resident::open().expect("there is a /proc");
        let bytes = || resident.bytes().expect("it has a known form");
        let kept = || {
            // This would raise glibc's own threshold to 24 MiB.
            drop(std::hint::black_box(vec![1_u8; 12 << 20]));
            let before = bytes();
            let small: Vec<_> = (0..16 << 10).map(|_| vec![1_u8; 1 << 10]).collect();
            assert!(bytes().saturating_sub(before) > 11 << 20);
            drop(small);
            bytes().saturating_sub(before)
        };
        let kept = std::thread::scope(|scope| {
            let thread = scope.spawn(kept);
            thread.join().expect("it does not panic")
        });
        assert!(kept < 8 << 20, "{kept}");
    }
}
