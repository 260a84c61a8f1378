//! Bytes of a log: a file or standard input, decompressed by its content.
//!
//! Source: RFC 1952 (gzip), RFC 8878 (Zstandard).

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sys::os_error;
use zstd_safe::{DCtx, InBuffer, OutBuffer, get_error_name};

/// A log that is read from its beginning to its end.
pub(super) struct Source {
    /// Decompressed bytes. `WouldBlock` is no end: a pipe has nothing yet.
    pub(super) bytes: Box<dyn Read>,
    /// Bytes of the file that were read, before decompression.
    pub(super) read: Arc<AtomicU64>,
    /// Size of the file; `None` for a pipe.
    pub(super) size: Option<u64>,
}

/// Opens a file for reading.
///
/// # Errors
/// A sentence with its name: it cannot be opened, or is a directory.
pub(super) fn open(path: &Path) -> Result<File, String> {
    let cannot = |why: &str| format!("cannot read {}: {why}", path.display());
    let file = File::open(path).map_err(|error| cannot(&os_error(&error)))?;
    let kind = file.metadata().map_err(|error| cannot(&os_error(&error)))?;
    match kind.is_dir() {
        true => Err(cannot("it is a directory")),
        false => Ok(file),
    }
}

impl Source {
    /// Reads an opened file.
    ///
    /// # Errors
    /// The system's error, or a compression that is not read.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let read = Arc::new(AtomicU64::new(0));
        let raw = Raw {
            file,
            waits: !metadata.is_file(),
            read: Arc::clone(&read),
        };
        Ok(Self {
            bytes: Box::new(Detecting::New(Some(BufReader::with_capacity(
                RAW_BYTES, raw,
            )))),
            read,
            size: metadata.is_file().then_some(metadata.len()),
        })
    }
}

/// The file, read without waiting longer than [`WAIT_MS`].
struct Raw {
    file: File,
    waits: bool,
    read: Arc<AtomicU64>,
}

impl Read for Raw {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.waits {
            let mut fds = [PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::IN)];
            let limit = Timespec {
                tv_sec: 0,
                tv_nsec: WAIT_MS * 1_000_000,
            };
            if poll(&mut fds, Some(&limit))? == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
        let count = self.file.read(buf)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// A source; its first bytes decide how it is read.
enum Detecting {
    New(Option<BufReader<Raw>>),
    Known(Box<dyn Read>),
}

impl Read for Detecting {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Self::New(raw) = self {
            // A pipe may have nothing yet.
            let begin = raw.as_mut().map(BufRead::fill_buf).transpose()?;
            let compression = Compression::of(begin.unwrap_or_default());
            let Some(raw) = raw.take() else {
                return Ok(0);
            };
            *self = Self::Known(match compression {
                Compression::None => Box::new(raw),
                Compression::Gzip => Box::new(MultiGzDecoder::new(raw)),
                Compression::Zstd => Box::new(Zstd::new(raw)?),
                Compression::Other(name) => {
                    let why = format!(
                        "it is compressed by {name}, which is not read: use {name} -dc FILE | firstbyte map -"
                    );
                    return Err(io::Error::new(ErrorKind::Unsupported, why));
                }
            });
        }
        match self {
            Self::Known(known) => known.read(buf),
            Self::New(_) => Ok(0),
        }
    }
}

/// Whether a file with this begin is compressed.
pub(super) fn is_compressed(begin: &[u8]) -> bool {
    !matches!(Compression::of(begin), Compression::None)
}

/// How a file is compressed.
enum Compression {
    None,
    Gzip,
    Zstd,
    Other(&'static str),
}

impl Compression {
    fn of(begin: &[u8]) -> Self {
        match begin {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // The second is a frame that decoders skip.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Other("xz"),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Self::Other("bzip2"),
            _ => Self::None,
        }
    }
}

/// Frames of Zstandard.
struct Zstd<R> {
    raw: R,
    context: DCtx<'static>,
    /// A frame has begun and not ended.
    is_open: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(raw: R) -> io::Result<Self> {
        let context = DCtx::try_create().ok_or(ErrorKind::OutOfMemory)?;
        Ok(Self {
            raw,
            context,
            is_open: false,
        })
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let given = self.raw.fill_buf()?;
            let is_end = given.is_empty();
            if is_end && !self.is_open {
                return Ok(0);
            }
            let mut given = InBuffer::around(given);
            let mut out = OutBuffer::around(&mut *buf);
            let left = self.context.decompress_stream(&mut out, &mut given);
            let left =
                left.map_err(|code| io::Error::new(ErrorKind::InvalidData, get_error_name(code)))?;
            let (taken, made) = (given.pos(), out.pos());
            self.raw.consume(taken);
            self.is_open = left != 0;
            if made > 0 {
                return Ok(made);
            }
            if is_end {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Bytes that are read of a file at a time.
const RAW_BYTES: usize = 128 << 10;
/// The longest wait for bytes of a pipe.
const WAIT_MS: i64 = 100;

#[cfg(test)]
mod tests;
