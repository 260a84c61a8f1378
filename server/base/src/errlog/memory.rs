//! `error_log memory:SIZE`: the last lines, kept in an unnamed file in memory.
//!
//! The supervisor creates the file and so can still read it after a crash of its worker. The file begins with a line that names
//! its format. After it is a ring of lines: a mark follows the newest line, and the oldest line follows the mark. One process
//! writes to a ring.
//!
//! Source: nginx documentation, `error_log`, "a debugging log", "logging to a cyclic memory buffer".

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// One `error_log memory:`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemoryBuffer {
    /// Size of the whole file, bytes.
    pub size: usize,
    /// The place of the directive: `FILE:LINE`.
    pub place: String,
}

impl MemoryBuffer {
    /// The key of the ring among the logs that a worker is handed; never the path of a file.
    pub fn key(&self) -> PathBuf {
        PathBuf::from(format!("memory:{}:{}", self.size, self.place))
    }

    /// The line with which the file begins.
    fn head(&self) -> String {
        format!("MEMLOG {} {}\n", self.size, self.place)
    }

    /// Makes `file` an empty ring.
    ///
    /// # Errors
    /// There is no memory.
    pub fn clear(&self, file: &File) -> io::Result<()> {
        file.set_len(0)?;
        file.write_all_at(self.head().as_bytes(), 0)
    }

    /// Reads the lines of a ring, oldest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, file: &File) -> io::Result<Vec<u8>> {
        let size = usize::try_from(file.metadata()?.len()).unwrap_or(self.size);
        let mut bytes = vec![0; size.min(self.size)];
        file.read_exact_at(&mut bytes, 0)?;
        let head = self.head();
        let body = bytes.get(head.len()..).unwrap_or_default();
        let (newer, older) = match memchr::memmem::find(body, MARK) {
            Some(at) => (&body[..at], &body[at + MARK.len()..]),
            None => (body, &body[..0]),
        };
        // The mark was written over the beginning of a line.
        let from = memchr::memchr(b'\n', older).map_or(older.len(), |at| at + 1);
        let mut out = head.into_bytes();
        let lines = older[from..].split_inclusive(|b| *b == b'\n');
        out.extend(lines.filter(|line| *line != b"\n").flatten());
        out.extend_from_slice(newer);
        out.retain(|b| *b != 0);
        Ok(out)
    }
}

/// The writing end of a ring.
#[derive(Debug)]
pub struct Ring {
    file: File,
    start: usize,
    size: usize,
    /// The offset of the next line.
    at: Mutex<usize>,
}

impl Ring {
    /// A ring over a file that [`MemoryBuffer::clear`] has prepared.
    pub fn new(file: File, buffer: &MemoryBuffer) -> Self {
        let start = buffer.head().len();
        Self {
            file,
            start,
            size: buffer.size,
            at: Mutex::new(start),
        }
    }

    /// Writes a line over the oldest ones. Errors are ignored, since no other log is left for them.
    pub fn write(&self, line: &[u8]) {
        let most = self.size.saturating_sub(self.start + MARK.len());
        let mut bytes = line[..line.len().min(most)].to_vec();
        let length = bytes.len();
        bytes.extend_from_slice(MARK);
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        if *at + bytes.len() > self.size {
            // No line is split: the rest at the end is cleared.
            let rest = vec![b'\n'; self.size - *at];
            let _ = self.file.write_all_at(&rest, *at as u64);
            *at = self.start;
        }
        let _ = self.file.write_all_at(&bytes, *at as u64);
        *at += length;
    }
}

/// Follows the newest line.
const MARK: &[u8] = b"MEMLOG END\n";

/// Smallest ring apart from the name of the configuration file, so that a line fits: nginx's sum of the longest line,
/// two numbers and the words of the first line.
pub const MIN_RING_BYTES: usize = super::MAX_LINE_BYTES + 20 + 20 + 11;

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(name: &str, size: usize) -> (MemoryBuffer, Ring, File) {
        let name = format!("firstbyte-ring-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true);
        let file = options
            .open(&path)
            .expect("the temporary directory is writable");
        std::fs::remove_file(path).expect("the file was made above");
        let place = "/x:1".to_owned();
        let buffer = MemoryBuffer { size, place };
        buffer.clear(&file).expect("there is room");
        let ours = file.try_clone().expect("a descriptor");
        (buffer.clone(), Ring::new(file, &buffer), ours)
    }

    fn content(buffer: &MemoryBuffer, file: &File) -> String {
        let bytes = buffer.read(file).expect("the file can be read");
        String::from_utf8(bytes).expect("lines of ASCII")
    }

    #[test]
    fn the_newest_lines_are_kept_in_order() {
        let (buffer, ring, file) = ring("order", 100);
        assert_eq!(content(&buffer, &file), "MEMLOG 100 /x:1\n");
        ring.write(b"line 0\n");
        assert_eq!(content(&buffer, &file), "MEMLOG 100 /x:1\nline 0\n");
        for n in 1..1000 {
            ring.write(format!("line {n}\n").as_bytes());
            let text = content(&buffer, &file);
            let mut lines = text.lines().skip(1);
            let first = lines.next().expect("a line");
            let first: usize = first[5..].parse().expect("a whole line");
            let rest: Vec<String> = (first + 1..=n).map(|n| format!("line {n}")).collect();
            assert_eq!(lines.collect::<Vec<_>>(), rest, "{text}");
            assert!(n < 20 || n - first >= 4, "{text}");
            assert!(file.metadata().expect("a file").len() <= 100);
        }
    }

    #[test]
    fn a_line_longer_than_the_ring_is_cut() {
        let (buffer, ring, file) = ring("long", 64);
        ring.write(&[b'x'; 500]);
        let most = 64 - "MEMLOG 64 /x:1\n".len() - MARK.len();
        let text = content(&buffer, &file);
        assert_eq!(text, format!("MEMLOG 64 /x:1\n{}", "x".repeat(most)));
    }
}
