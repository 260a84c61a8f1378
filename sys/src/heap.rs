//! Memory of this process as the kernel counts it, and giving back what the allocator keeps.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The kernel's figures about this process, opened once so that they can be read when descriptors are short.
#[derive(Debug)]
pub struct Resident(File);

impl Resident {
    /// Opens them.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn open() -> io::Result<Self> {
        File::open("/proc/self/statm").map(Self)
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

fn page_bytes() -> u64 {
    // SAFETY: it takes no pointer and changes nothing.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

/// Releases unused heap memory to the kernel, but for the end of other threads' parts of the heap: see [`trim_thread`].
#[cfg(target_env = "gnu")]
pub fn trim() {
    // SAFETY: it takes no pointer, and locks the allocator itself.
    unsafe { libc::malloc_trim(0) };
}

/// Releases unused heap memory to the kernel: other allocators do so by themselves.
#[cfg(not(target_env = "gnu"))]
pub fn trim() {}

/// Releases the unused end of this thread's part of the heap to the kernel. It costs a thousand system calls.
///
/// glibc does that only where the end gets longer than a threshold (`M_TRIM_THRESHOLD` of mallopt(3)), which rises with the
/// largest block that was freed: to 16 MiB by one of 8 MiB. To set it would change how all large blocks are allocated from
/// then on. So blocks as large as the end can be are allocated, their memory is released, and they are freed again.
#[cfg(target_env = "gnu")]
pub fn trim_thread() {
    let page = page_bytes() as usize;
    let mut blocks = Vec::with_capacity(END_BYTES_MAX / BLOCK_BYTES);
    blocks.resize_with(END_BYTES_MAX / BLOCK_BYTES, || {
        Vec::<u8>::with_capacity(BLOCK_BYTES)
    });
    for block in &mut blocks {
        let start = block.as_mut_ptr();
        let whole = start.align_offset(page);
        let len = BLOCK_BYTES.saturating_sub(whole) / page * page;
        // SAFETY: the pages lie inside of the block, of which nothing was written; it is not read either before it is freed.
        unsafe { libc::madvise(start.add(whole).cast(), len, libc::MADV_DONTNEED) };
    }
}

/// Releases nothing: other allocators do so by themselves.
#[cfg(not(target_env = "gnu"))]
pub fn trim_thread() {}

/// Length of a part of the heap of glibc, bytes.
#[cfg(target_env = "gnu")]
const END_BYTES_MAX: usize = 64 << 20;
/// Bytes of a block: those from 128 KiB on may lie elsewhere.
#[cfg(target_env = "gnu")]
const BLOCK_BYTES: usize = 96 << 10;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Tests that look at the memory of the whole process take turns.
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
    fn the_end_of_a_threads_heap_is_released() {
        let _turn = MEASURING.lock();
        let resident = Resident::open().expect("there is a /proc");
        let bytes = || resident.bytes().expect("it has a known form");
        let kept = || {
            // By this the end may be 24 MiB long.
            drop(std::hint::black_box(vec![1_u8; 12 << 20]));
            let before = bytes();
            let small: Vec<_> = (0..16 << 10).map(|_| vec![1_u8; 1 << 10]).collect();
            assert!(bytes() - before > 15 << 20);
            drop(small);
            trim();
            let freed = bytes();
            trim_thread();
            (freed.saturating_sub(before), bytes().saturating_sub(before))
        };
        let (by_trim, by_both) = std::thread::scope(|scope| {
            let thread = scope.spawn(kept);
            thread.join().expect("it does not panic")
        });
        assert!(
            by_trim > 12 << 20,
            "what is measured does not happen: {by_trim}"
        );
        assert!(by_both < 4 << 20, "{by_both}");
    }
}
