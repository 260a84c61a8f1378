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

/// Releases unused heap memory to the kernel.
#[cfg(target_env = "gnu")]
pub fn trim() {
    // SAFETY: it takes no pointer, and locks the allocator itself.
    unsafe { libc::malloc_trim(0) };
}

/// Releases unused heap memory to the kernel: other allocators do so by themselves.
#[cfg(not(target_env = "gnu"))]
pub fn trim() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_used_is_counted() {
        let resident = Resident::open().expect("there is a /proc");
        let before = resident.bytes().expect("it has a known form");
        let used = vec![1_u8; 64 << 20];
        let after = resident.bytes().expect("it has a known form");
        assert!(after - before > 60 << 20, "{before} {after}");
        drop(used);
        trim();
        assert!(resident.bytes().expect("it has a known form") < after - (60 << 20));
    }
}
