//! Access log files: direct, buffered, compressed, or named by variables.
//!
//! Every thread has one [`Logs`]. Files are opened by whoever starts the worker; only files whose names hold variables
//! are opened here, with the worker's own rights. Lines of several threads never mix: each write is one call on a
//! descriptor opened for appending.
//!
//! Source: nginx documentation, `ngx_http_log_module`.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;

/// `buffer=`, `flush=`, `gzip=` of one `access_log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Buffering {
    /// Size of the buffer in bytes.
    pub size: usize,
    /// Longest time a line stays in the buffer, milliseconds.
    pub flush_ms: Option<u64>,
    /// Compression level, 1 to 9.
    pub gzip: Option<u32>,
}

/// `open_log_file_cache`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogCache {
    /// Most descriptors.
    pub max: usize,
    /// Close a file not used for this long, milliseconds.
    pub inactive_ms: u64,
    /// Open a file anew after this long, milliseconds.
    pub valid_ms: u64,
    /// Uses within `inactive` for a file to stay open.
    pub min_uses: u32,
}

/// One thread's log buffers and open files.
#[derive(Default)]
pub struct Logs {
    buffers: Vec<Buffer>,
    open: HashMap<PathBuf, OpenLog>,
    /// Counts uses of `open`, for the order of them.
    turn: u64,
}

struct Buffer {
    file: Arc<File>,
    how: Buffering,
    data: Vec<u8>,
    since_ms: u64,
}

struct OpenLog {
    /// Open once it has been used often enough.
    file: Option<Arc<File>>,
    opened_ms: u64,
    used_ms: u64,
    /// The turn of its last use.
    turn: u64,
    uses: u32,
}

impl Logs {
    /// Writes a line to an opened file.
    pub fn write(&mut self, file: &Arc<File>, line: &[u8], how: Option<Buffering>, now_ms: u64) {
        let Some(how) = how else {
            let _ = (&**file).write_all(line);
            return;
        };
        let buffer = self.buffer(file, how);
        if buffer.data.len() + line.len() > how.size {
            buffer.flush();
        }
        if line.len() > how.size {
            buffer.data.extend_from_slice(line);
            buffer.flush();
            return;
        }
        if buffer.data.is_empty() {
            buffer.since_ms = now_ms;
        }
        buffer.data.extend_from_slice(line);
    }

    /// Writes a line to a file that is opened by its path here.
    ///
    /// # Errors
    /// The file could not be opened.
    pub fn write_path(
        &mut self,
        path: &Path,
        line: &[u8],
        cache: Option<LogCache>,
        now_ms: u64,
    ) -> std::io::Result<()> {
        let Some(cache) = cache else {
            return open_append(path)?.write_all(line);
        };
        self.open
            .retain(|_, o| now_ms.saturating_sub(o.used_ms) <= cache.inactive_ms);
        self.turn += 1;
        let turn = self.turn;
        if let Some(entry) = self.open.get_mut(path) {
            entry.turn = turn;
            entry.uses = entry.uses.saturating_add(1);
            entry.used_ms = now_ms;
            let fresh = now_ms.saturating_sub(entry.opened_ms) <= cache.valid_ms;
            if let Some(file) = entry.file.as_deref().filter(|_| fresh) {
                return (&*file).write_all(line);
            }
        }
        let mut file = open_append(path)?;
        let written = file.write_all(line);
        let uses = self.open.get(path).map_or(1, |entry| entry.uses);
        if !self.open.contains_key(path) {
            self.make_room(cache.max);
        }
        let file = (uses >= cache.min_uses).then(|| Arc::new(file));
        self.open.insert(
            path.to_path_buf(),
            OpenLog {
                file,
                opened_ms: now_ms,
                used_ms: now_ms,
                turn,
                uses,
            },
        );
        written
    }

    /// Flushes buffers whose time has come; gives the time of the next.
    pub fn flush_due(&mut self, now_ms: u64) -> Option<u64> {
        let mut next: Option<u64> = None;
        for buffer in self.buffers.iter_mut().filter(|b| !b.data.is_empty()) {
            let Some(flush_ms) = buffer.how.flush_ms else {
                continue;
            };
            let due = buffer.since_ms + flush_ms;
            if due <= now_ms {
                buffer.flush();
            } else {
                next = Some(next.map_or(due, |n| n.min(due)));
            }
        }
        next
    }

    /// Flushes everything and forgets open files: before an exit, a reopening or a new configuration.
    pub fn flush_all(&mut self) {
        for buffer in &mut self.buffers {
            buffer.flush();
        }
        self.buffers.clear();
        self.open.clear();
    }

    /// Writes so many buffers out and lets go of them, those that were begun last first; false if there are no more.
    pub fn flush_some(&mut self, most: usize) -> bool {
        for _ in 0..most {
            let Some(mut buffer) = self.buffers.pop() else {
                return false;
            };
            buffer.flush();
        }
        !self.buffers.is_empty()
    }

    fn make_room(&mut self, max: usize) {
        while self.open.len() >= max.max(1) {
            let oldest = self
                .open
                .iter()
                .min_by_key(|(_, o)| o.turn)
                .map(|(path, _)| path.clone());
            match oldest {
                Some(path) => self.open.remove(&path),
                None => return,
            };
        }
    }

    fn buffer(&mut self, file: &Arc<File>, how: Buffering) -> &mut Buffer {
        let fd = file.as_raw_fd();
        let found = self
            .buffers
            .iter()
            .position(|b| b.file.as_raw_fd() == fd && b.how == how);
        let at = found.unwrap_or_else(|| {
            self.buffers.push(Buffer {
                file: Arc::clone(file),
                how,
                data: Vec::with_capacity(how.size),
                since_ms: 0,
            });
            self.buffers.len() - 1
        });
        &mut self.buffers[at]
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        self.flush_all();
    }
}

impl Buffer {
    fn flush(&mut self) {
        if self.data.is_empty() {
            return;
        }
        let _ = match self.how.gzip {
            None => (&*self.file).write_all(&self.data),
            Some(level) => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
                let _ = encoder.write_all(&self.data);
                encoder
                    .finish()
                    .and_then(|packed| (&*self.file).write_all(&packed))
            }
        };
        self.data.clear();
    }
}

fn open_append(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(LOG_MODE)
        .open(path)
}

/// Who may read and write a new log, before the umask: as those that the supervisor opens.
const LOG_MODE: u32 = 0o644;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn file(name: &str) -> (PathBuf, Arc<File>) {
        let path =
            std::env::temp_dir().join(format!("firstbyte-logs-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let file = open_append(&path).expect("the temporary directory is writable");
        (path, Arc::new(file))
    }

    fn content(path: &Path) -> Vec<u8> {
        std::fs::read(path).expect("the file was made above")
    }

    #[test]
    fn a_buffer_is_written_when_full_or_due() {
        let (path, log) = file("buffer");
        let how = Some(Buffering {
            size: 8,
            flush_ms: Some(100),
            gzip: None,
        });
        let mut logs = Logs::default();
        logs.write(&log, b"aaaa\n", how, 0);
        assert_eq!(content(&path), b"");
        logs.write(&log, b"bbbb\n", how, 10);
        assert_eq!(content(&path), b"aaaa\n");
        assert_eq!(logs.flush_due(50), Some(110));
        assert_eq!(logs.flush_due(110), None);
        assert_eq!(content(&path), b"aaaa\nbbbb\n");
        logs.write(&log, b"longer than the buffer\n", how, 111);
        assert_eq!(content(&path), b"aaaa\nbbbb\nlonger than the buffer\n");
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn a_compressed_buffer_is_readable() {
        let (path, log) = file("gzip");
        let how = Some(Buffering {
            size: 1024,
            flush_ms: None,
            gzip: Some(1),
        });
        let mut logs = Logs::default();
        logs.write(&log, b"line\n", how, 0);
        drop(logs);
        let mut text = String::new();
        let bytes = content(&path);
        flate2::read::MultiGzDecoder::new(bytes.as_slice())
            .read_to_string(&mut text)
            .expect("gzip");
        assert_eq!(text, "line\n");
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn files_named_by_variables_are_bounded() {
        let mut logs = Logs::default();
        let cache = Some(LogCache {
            max: 2,
            inactive_ms: 1000,
            valid_ms: 60_000,
            min_uses: 1,
        });
        for n in 0..5 {
            let (path, _) = file(&format!("var{n}"));
            logs.write_path(&path, b"x\n", cache, n).expect("writable");
            assert_eq!(content(&path), b"x\n");
            let _ = std::fs::remove_file(path);
        }
        assert_eq!(logs.open.len(), 2);
    }

    #[test]
    fn a_file_named_by_variables_stays_open_from_its_min_uses_on() {
        let mut logs = Logs::default();
        let cache = Some(LogCache {
            max: 2,
            inactive_ms: 1000,
            valid_ms: 60_000,
            min_uses: 2,
        });
        let (path, _) = file("uses");
        for expected in [false, true] {
            logs.write_path(&path, b"x\n", cache, 0).expect("writable");
            assert_eq!(logs.open[&path].file.is_some(), expected);
        }
        std::fs::remove_file(&path).expect("the file was made above");
        logs.write_path(&path, b"x\n", cache, 0)
            .expect("the descriptor is kept");
        assert!(!path.exists());
    }
}
