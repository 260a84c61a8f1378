//! Regular files of the disk, opened and read within a size. Opening a pipe would wait for its writer, and reading a
//! device might never end; both are refused. `/dev/null` is an empty file, because a file of a directory that is
//! included is put out of action by a link to it.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file of at most `limit` bytes.
///
/// # Errors
/// The I/O error; `InvalidInput` for a path that is neither a regular file nor a directory, `FileTooLarge` past the
/// limit.
pub(crate) fn open(path: &Path, limit: u64) -> io::Result<File> {
    // Looked at first, because opening some devices does something.
    check(&fs::metadata(path)?, limit)?;
    open_checked(path, limit).map(|(file, _)| file)
}

fn open_checked(path: &Path, limit: u64) -> io::Result<(File, Metadata)> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open(path)?;
    // Once more, because another file may have taken its place.
    let meta = file.metadata()?;
    check(&meta, limit)?;
    Ok((file, meta))
}

/// The bytes of a regular file of at most `limit` bytes.
///
/// # Errors
/// See [`open`].
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_with_state(path, limit).map(|(bytes, _)| bytes)
}

/// Reads a file like [`read`] and returns the state that it had before the read: a change meanwhile comes after this
/// state.
///
/// # Errors
/// See [`open`].
pub(crate) fn read_with_state(path: &Path, limit: u64) -> io::Result<(Vec<u8>, Metadata)> {
    let seen = fs::metadata(path)?;
    if is_null(&seen) {
        return Ok((Vec::new(), seen));
    }
    check(&seen, limit)?;
    let (file, meta) = open_checked(path, limit)?;
    // Room for one byte more: the end is found without growing, and ten thousand small files cost two reads each.
    let mut bytes = Vec::with_capacity(meta.len() as usize + 1);
    // It may grow while it is read.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    fits(bytes.len() as u64, limit)?;
    bytes.shrink_to_fit();
    Ok((bytes, meta))
}

/// Reads a file like [`read`], or all that a process writes into a named pipe, and waits for it.
///
/// # Errors
/// See [`open`].
pub(crate) fn read_piped(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.file_type().is_fifo() {
        return read(path, limit);
    }
    let mut bytes = Vec::new();
    let pipe = File::open(path)?;
    pipe.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    fits(bytes.len() as u64, limit)?;
    Ok(bytes)
}

fn check(meta: &Metadata, limit: u64) -> io::Result<()> {
    if meta.is_dir() {
        return Err(io::Error::from_raw_os_error(EISDIR));
    }
    if !meta.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    fits(meta.len(), limit)
}

fn is_null(meta: &Metadata) -> bool {
    let is_device = meta.mode() & FORMAT == CHARACTER_DEVICE;
    is_device && meta.rdev() == NULL_DEVICE
}

/// Whether a size is within a limit.
///
/// # Errors
/// `FileTooLarge`.
pub(crate) fn fits(size: u64, limit: u64) -> io::Result<()> {
    if size > limit {
        let text = format!("larger than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(())
}

/// "Is a directory" with Linux's numbers.
pub(crate) const EISDIR: i32 = 21;
/// For `open`, with Linux's numbers: a pipe is not waited for.
const O_NONBLOCK: i32 = 0o4000;
/// The bits of a mode for the type of a file, and their value for a character device.
const FORMAT: u32 = 0o170_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
/// Major 1, minor 3.
const NULL_DEVICE: u64 = 0x103;

/// Larger texts, certificates and keys are refused: no configuration known has a hundredth of it.
pub const TEXT_BYTES_MAX: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn pipe_is_read_where_one_may_be_and_refused_elsewhere() {
        let pipe = Temporary::new("pipe", 0);
        fs::remove_file(&pipe.0).expect("it was made");
        let made = std::process::Command::new("mkfifo").arg(&pipe.0).status();
        assert!(made.is_ok_and(|status| status.success()));
        let refused = read(&pipe.0, 10).expect_err("a pipe is no regular file");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        for (written, wanted) in [(&b"0123456789"[..], true), (b"0123456789a", false)] {
            let path = pipe.0.clone();
            let writer = std::thread::spawn(move || fs::write(path, written));
            let read = read_piped(&pipe.0, 10);
            assert_eq!(read.is_ok_and(|bytes| bytes == written), wanted);
            // Whoever writes too much may find the pipe closed.
            let _ = writer.join().expect("it does not panic");
        }
        let file = Temporary::new("no-pipe", 3);
        assert_eq!(
            read_piped(&file.0, 3).map(|bytes| bytes.len()).ok(),
            Some(3)
        );
    }

    /// A file of the temporary directory that goes with its owner.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str, size: u64) -> Self {
            let name = format!("firstbyte-regular-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let file = File::create(&path).expect("the temporary directory is writable");
            file.set_len(size).expect("a hole takes no room");
            Self(path)
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_file_is_read_up_to_the_limit() {
        for (size, limit, fits) in [(0, 0, true), (9, 10, true), (10, 10, true), (11, 10, false)] {
            let place = Temporary::new("limit", size);
            let read = read(&place.0, limit);
            assert_eq!(read.is_ok(), fits, "{size}");
            match read {
                Ok(bytes) => assert_eq!(bytes.len() as u64, size),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::FileTooLarge),
            }
        }
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        let said = |path: &str| read(Path::new(path), 10).expect_err("it is refused");
        assert_eq!(said("/").raw_os_error(), Some(EISDIR));
        assert_eq!(said("/dev/zero").to_string(), "not a regular file");
        assert_eq!(said("/none/at/all").raw_os_error(), Some(2));
    }

    #[test]
    fn the_null_device_is_an_empty_file() {
        assert_eq!(
            read(Path::new("/dev/null"), 10).expect("it is empty"),
            [0; 0]
        );
    }
}
