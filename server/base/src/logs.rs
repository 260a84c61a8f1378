//! Access log files: direct, buffered, compressed, or named by variables.
//!
//! Every thread has one [`Logs`]. The process that starts the worker opens the files; only files with variables in their names
//! are opened here, with the worker's own rights. Lines of several threads never mix: each write is one call on a descriptor
//! opened for appending. A line costs the same however many logs and open files there are.
//!
//! A line that cannot be written is lost; the loss is reported once a minute for each file ([`Logs::report`]). A full
//! disk is tried once a second (`trouble`).
//!
//! Source: nginx documentation, `ngx_http_log_module`.

mod trouble;

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::errlog::{ErrorLog, Level};
use crate::lru::Lru;
use trouble::Troubles;

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
    /// Maximum number of descriptors.
    pub max: usize,
    /// Close a file not used for this long, milliseconds.
    pub inactive_ms: u64,
    /// Reopen a file after this time, milliseconds.
    pub valid_ms: u64,
    /// Uses within `inactive` for a file to stay open.
    pub min_uses: u32,
}

/// One thread's log buffers and open files.
#[derive(Default)]
pub struct Logs {
    buffers: Vec<Buffer>,
    /// The places of buffers, by descriptor.
    places: HashMap<(i32, Buffering), usize>,
    /// The buffer that was written to last.
    last: usize,
    /// No buffer is due before this.
    due_ms: Option<u64>,
    /// Files with variables in their names, by path.
    open: Lru<OpenLog>,
    troubles: Troubles,
    /// Memory for a line.
    line: Vec<u8>,
}

struct Buffer {
    path: PathBuf,
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
    uses: u32,
}

impl Logs {
    /// An empty buffer for a line; [`Self::return_line`] returns it.
    pub fn take_line(&mut self) -> Vec<u8> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        line.reserve(LINE_BYTES);
        line
    }

    /// Keeps the buffer of a line for the next one, unless it has become large.
    pub fn return_line(&mut self, line: Vec<u8>) {
        if line.capacity() <= LINE_KEPT_BYTES {
            self.line = line;
        }
    }

    /// Writes a line to an opened file; its path is for [`Self::report`].
    pub fn write(
        &mut self,
        (path, file): (&Path, &Arc<File>),
        line: &[u8],
        how: Option<Buffering>,
        now_ms: u64,
    ) {
        let Some(how) = how else {
            self.troubles.put(path, file, line, now_ms);
            return;
        };
        let at = self.place((path, file), how);
        let (buffer, troubles) = (&mut self.buffers[at], &mut self.troubles);
        if buffer.data.len() + line.len() > how.size {
            buffer.flush(troubles, now_ms);
        }
        if line.len() > how.size {
            buffer.data.extend_from_slice(line);
            buffer.flush(troubles, now_ms);
            return;
        }
        if buffer.data.is_empty() {
            buffer.since_ms = now_ms;
            if let Some(flush_ms) = how.flush_ms {
                let due_ms = now_ms + flush_ms;
                self.due_ms = Some(self.due_ms.map_or(due_ms, |at_ms| at_ms.min(due_ms)));
            }
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
            let file = open_append(path)?;
            self.troubles.put(path, &file, line, now_ms);
            return Ok(());
        };
        self.close_unused(cache.inactive_ms, now_ms);
        let key = path.as_os_str().as_bytes();
        let mut uses = 1;
        if let Some(entry) = self.open.get_mut(key) {
            entry.uses = entry.uses.saturating_add(1);
            entry.used_ms = now_ms;
            uses = entry.uses;
            let fresh = now_ms.saturating_sub(entry.opened_ms) <= cache.valid_ms;
            if let Some(file) = entry.file.as_deref().filter(|_| fresh) {
                self.troubles.put(path, file, line, now_ms);
                return Ok(());
            }
        }
        let file = open_append(path)?;
        self.troubles.put(path, &file, line, now_ms);
        self.open.remove(key);
        self.make_room(cache.max);
        let file = (uses >= cache.min_uses).then(|| Arc::new(file));
        self.open.insert(
            key,
            OpenLog {
                file,
                opened_ms: now_ms,
                used_ms: now_ms,
                uses,
            },
        );
        Ok(())
    }

    /// Flushes the buffers that are due and returns the time of the next flush, monotonic milliseconds. Buffers are
    /// visited only when one is due.
    pub fn flush_due(&mut self, now_ms: u64) -> Option<u64> {
        if self.due_ms? > now_ms {
            return self.due_ms;
        }
        let mut next: Option<u64> = None;
        for buffer in self.buffers.iter_mut().filter(|b| !b.data.is_empty()) {
            let Some(flush_ms) = buffer.how.flush_ms else {
                continue;
            };
            let due = buffer.since_ms + flush_ms;
            if due <= now_ms {
                buffer.flush(&mut self.troubles, now_ms);
            } else {
                next = Some(next.map_or(due, |n| n.min(due)));
            }
        }
        self.due_ms = next;
        next
    }

    /// Flushes everything and forgets open files: before an exit, a reopening or a new configuration.
    pub fn flush_all(&mut self) {
        // Reopened files may have room, so the next write is tried at once.
        self.troubles.try_again();
        self.flush_some(usize::MAX);
    }

    /// Flushes and closes up to `count` buffers and open files, since all at once may take too long. Returns true if none is
    /// left.
    pub fn flush_some(&mut self, count: usize) -> bool {
        for _ in 0..count {
            if let Some(mut buffer) = self.buffers.pop() {
                buffer.flush(&mut self.troubles, 0);
                self.places.remove(&(buffer.file.as_raw_fd(), buffer.how));
            } else if let Some((key, _)) = self.open.oldest() {
                let key = Arc::clone(key);
                self.open.remove(&key);
            } else {
                break;
            }
        }
        let done = self.buffers.is_empty() && self.open.len() == 0;
        if self.buffers.is_empty() {
            self.due_ms = None;
        }
        done
    }

    /// Logs the write failures since the last call, for each file once a minute.
    pub fn report(&mut self, log: &ErrorLog) {
        for (path, error) in self.troubles.take_failures() {
            let (path, error) = (path.display(), conf::os_error(&error));
            log.write(
                Level::Alert,
                format_args!("write() to \"{path}\" failed ({error})"),
            );
        }
    }

    /// Closes files that have not been used for so long: those used least recently come first.
    fn close_unused(&mut self, inactive_ms: u64, now_ms: u64) {
        while let Some((key, entry)) = self.open.oldest()
            && now_ms.saturating_sub(entry.used_ms) > inactive_ms
        {
            let key = Arc::clone(key);
            self.open.remove(&key);
        }
    }

    fn make_room(&mut self, max: usize) {
        while self.open.len() >= max.max(1)
            && let Some((key, _)) = self.open.oldest()
        {
            let key = Arc::clone(key);
            self.open.remove(&key);
        }
    }

    /// The place of the buffer of a file.
    fn place(&mut self, (path, file): (&Path, &Arc<File>), how: Buffering) -> usize {
        let fd = file.as_raw_fd();
        let is_it = |b: &Buffer| b.file.as_raw_fd() == fd && b.how == how;
        if !self.buffers.get(self.last).is_some_and(is_it) {
            self.last = *self.places.entry((fd, how)).or_insert_with(|| {
                self.buffers.push(Buffer {
                    path: path.to_path_buf(),
                    file: Arc::clone(file),
                    how,
                    data: Vec::with_capacity(how.size),
                    since_ms: 0,
                });
                self.buffers.len() - 1
            });
        }
        self.last
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        self.flush_all();
    }
}

impl Buffer {
    fn flush(&mut self, troubles: &mut Troubles, now_ms: u64) {
        if self.data.is_empty() {
            return;
        }
        match self.how.gzip {
            None => troubles.put(&self.path, &self.file, &self.data, now_ms),
            Some(level) => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
                // Writing to memory cannot fail.
                let _ = encoder.write_all(&self.data);
                if let Ok(packed) = encoder.finish() {
                    troubles.put(&self.path, &self.file, &packed, now_ms);
                }
            }
        }
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

/// Permission bits of a new log, before the umask: those of logs that the supervisor opens.
const LOG_MODE: u32 = 0o644;
/// Room for most lines.
const LINE_BYTES: usize = 256;
/// Maximum memory that is kept for the next line, bytes.
const LINE_KEPT_BYTES: usize = 16 << 10;

#[cfg(test)]
#[path = "logs_tests.rs"]
mod tests;
