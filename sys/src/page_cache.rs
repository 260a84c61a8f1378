//! The cached part of files: which bytes can be read without waiting for a disk, and loading of the rest.
//!
//! A serving thread checks before it reads; another thread [`load`]s missing pages. Only RWF_NOWAIT reveals whether
//! a page is cached: mincore and cachestat answer only the owner of a file. A file system without RWF_NOWAIT is
//! treated as fully cached.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;

use rustix::io::{Errno, ReadWriteFlags};

use super::retry;
use super::socket::{append_at, read_at};

/// Whether a read of the byte at `offset` would not wait; also true if the kernel cannot tell.
#[must_use]
pub fn is_cached(file: impl AsFd, offset: u64) -> bool {
    let read = retry(|| {
        let mut byte = [0];
        let mut room = [IoSliceMut::new(&mut byte)];
        rustix::io::preadv2(file.as_fd(), &mut room, offset, ReadWriteFlags::NOWAIT)
    });
    read != Err(Errno::AGAIN)
}

/// Reads a file from `offset` into `buffer` as far as possible without waiting; 0 at the end of the file.
///
/// # Errors
/// `WouldBlock` when the first byte is not in the page cache; else the file's error.
pub fn read_cached(file: impl AsFd, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let read = retry(|| {
        let mut room = [IoSliceMut::new(&mut *buffer)];
        rustix::io::preadv2(file.as_fd(), &mut room, offset, ReadWriteFlags::NOWAIT)
    });
    match read {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => read_at(file, offset, buffer),
        other => Ok(other?),
    }
}

/// Appends `len` bytes of a file from `offset` to `bytes`, which is unchanged on an error.
///
/// # Errors
/// `WouldBlock` when some of them are not in the page cache; `UnexpectedEof` when the file is shorter; else the error of
/// the read.
pub fn append_cached(
    file: impl AsFd,
    offset: u64,
    len: u64,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    let (before, len) = (bytes.len(), usize::try_from(len).unwrap_or(usize::MAX));
    bytes.reserve(len);
    let room = libc::iovec {
        iov_base: bytes.spare_capacity_mut().as_mut_ptr().cast(),
        iov_len: len,
    };
    let at = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    let fd = file.as_fd().as_raw_fd();
    // The C library's function is a thread cancellation point, which costs a tenth of the call.
    let call = libc::SYS_preadv2;
    // SAFETY: `room` is one iovec over `len` bytes of spare capacity, which `reserve` made and which outlive the
    // call; the second half of the offset is for systems of 32 bits.
    let read = unsafe {
        let flags = libc::c_long::from(libc::RWF_NOWAIT);
        libc::syscall(call, fd, &raw const room, 1_usize, at, 0_usize, flags)
    };
    if usize::try_from(read) == Ok(len) {
        // SAFETY: the kernel has initialized all `len` bytes.
        unsafe { bytes.set_len(before + len) };
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match read {
        // The file ends here, or a page is missing behind the bytes read.
        0.. if is_cached(&file, offset + read as u64) => append_at(file, offset, len as u64, bytes),
        0.. => Err(io::ErrorKind::WouldBlock.into()),
        _ if error.kind() == io::ErrorKind::WouldBlock => Err(error),
        // The call was interrupted, or the file system does not support RWF_NOWAIT.
        _ => append_at(file, offset, len as u64, bytes),
    }
}

/// Waits until `len` bytes of a file from `offset` were in the page cache; returns their number, fewer at the end
/// of the file.
///
/// # Errors
/// The file's error.
pub fn load(file: impl AsFd, offset: u64, len: u64) -> io::Result<u64> {
    static NULL: OnceLock<Option<File>> = OnceLock::new();
    let null = NULL.get_or_init(|| File::options().write(true).open("/dev/null").ok());
    let mut scratch = Vec::new();
    let mut loaded = 0;
    while loaded < len {
        let most = usize::try_from(len - loaded).unwrap_or(usize::MAX);
        // The null device accepts pages without copying them.
        let moved = null.as_ref().map(|null| {
            let mut at = offset + loaded;
            retry(|| rustix::fs::sendfile(null, file.as_fd(), Some(&mut at), most))
        });
        let moved = match moved {
            Some(Ok(moved)) => moved,
            Some(Err(error)) if error != Errno::INVAL => return Err(error.into()),
            _ => {
                scratch.resize(SCRATCH_BYTES, 0);
                let most = most.min(SCRATCH_BYTES);
                read_at(file.as_fd(), offset + loaded, &mut scratch[..most])?
            }
        };
        if moved == 0 {
            break;
        }
        loaded += moved as u64;
    }
    Ok(loaded)
}

/// Bytes of one read if pages cannot be spliced to the null device.
const SCRATCH_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::OwnedFd;

    use super::*;

    fn file(len: usize) -> OwnedFd {
        let mut file = tempfile();
        file.write_all(&vec![7; len]).expect("it is written");
        file.into()
    }

    fn tempfile() -> File {
        use std::os::unix::fs::OpenOptionsExt;
        File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_TMPFILE)
            .open(std::env::temp_dir())
            .expect("a file without a name")
    }

    #[test]
    fn what_was_written_is_cached_and_read() {
        let file = file(10_000);
        assert!(is_cached(&file, 0) && is_cached(&file, 9_999) && is_cached(&file, 20_000));
        let mut bytes = b"a".to_vec();
        append_cached(&file, 1, 9_000, &mut bytes).expect("it is there");
        assert_eq!((bytes.len(), bytes[0], bytes[9_000]), (9_001, b'a', 7));
        let short = append_cached(&file, 1, 10_000, &mut bytes).expect_err("it is shorter");
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(bytes.len(), 9_001);
    }

    #[test]
    fn load_ends_at_the_end_of_the_file() {
        let file = file(200_000);
        assert_eq!(load(&file, 0, 200_000).ok(), Some(200_000));
        assert_eq!(load(&file, 100_000, 200_000).ok(), Some(100_000));
        assert_eq!(load(&file, 200_000, 1).ok(), Some(0));
    }

    /// The kernel decides whether to evict the pages: only consequences of their absence are asserted.
    #[test]
    fn what_was_dropped_is_missing_until_it_is_loaded() {
        let file = file(4 << 20);
        rustix::fs::fsync(&file).expect("the pages are clean");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
        if is_cached(&file, 2 << 20) {
            return;
        }
        assert_eq!(load(&file, 2 << 20, 1 << 20).ok(), Some(1 << 20));
        assert!(is_cached(&file, 2 << 20) && is_cached(&file, (3 << 20) - 1));
    }
}
