//! The file of a response while its body is received.
//!
//! Source: nginx documentation, `proxy_cache_path`; RFC 9111 section 3.3.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use engines::http::{Chunk, FileHandle};
use server_base::errlog::{Level, Printable};
use server_base::files::{FileError, TempFile};
use server_cache::disk::body_length_at;
use server_cache::index::{Committed, FillToken, PurgeFacts, StoredFile};
use server_cache::key::EntryId;

use crate::cache::counts::CacheResult;
use crate::cache::zone::SharedCache;
use crate::exchange::Exchange;
use crate::upstream::wording::Action;

/// A response that is being stored.
pub(crate) struct Filling {
    pub(super) file: TempFile,
    /// The descriptor of the file, to write behind the head.
    pub(super) own: Arc<File>,
    pub(super) token: FillToken,
    pub(super) shared: Arc<SharedCache>,
    pub(super) main: EntryId,
    pub(super) key: Box<[u8]>,
    pub(super) tags: Vec<u8>,
    pub(super) body_start: u16,
    pub(super) valid_s: i64,
    /// Length of the body, if it is known.
    pub(super) length: Option<u64>,
    /// Whether the file has that length already.
    pub(super) has_length: bool,
    pub(super) received: u64,
    /// The part of the cache in the request, for its counts.
    pub(super) result: Option<CacheResult>,
}

impl Filling {
    /// The file, and the position of the body in it.
    pub(crate) fn body(&self) -> (FileHandle, u64) {
        (Rc::clone(&self.file.file), u64::from(self.body_start))
    }

    /// Adds a piece of the body; false if that failed, which has been logged.
    pub(crate) fn add(&mut self, x: &Exchange, chunk: &Chunk) -> bool {
        match self.file.append(chunk.bytes()) {
            Ok(()) => {
                let bytes = chunk.len();
                self.received += bytes;
                self.token.fill().advance(bytes);
                true
            }
            Err(error) => {
                log(x, error, &self.file.path);
                false
            }
        }
    }

    /// The response is complete: the file gets its name.
    pub(crate) fn finish(mut self, x: &Exchange) {
        // A short body leaves no file.
        if self.length.is_some_and(|length| length != self.received) {
            return;
        }
        let at = body_length_at(self.body_start);
        if !self.has_length
            && let Err(error) = self.own.write_all_at(&self.received.to_le_bytes(), at)
        {
            let path = Printable(&self.file.path);
            let error = conf::os_error(&error);
            let text = format_args!("pwrite() \"{path}\" failed ({error})");
            return x.log_while(Level::Crit, Action::Reading.text(), text);
        }
        let Some(directory) = self.shared.directory() else {
            return;
        };
        let id = self.token.id();
        let facts = PurgeFacts {
            main: self.main,
            key: &self.key,
            tags: &self.tags,
        };
        let temp = Path::new(OsStr::from_bytes(&self.file.path));
        let published =
            self.token
                .commit(&facts, || match directory.publish(temp, &self.own, &id) {
                    Ok(meta) => Some(StoredFile {
                        blocks: directory.blocks(meta.blocks()),
                        uniq: meta.ino(),
                        body_start: self.body_start,
                        valid_s: self.valid_s,
                    }),
                    Err(error) => {
                        let path = directory.path_of(&id);
                        let (to, error) = (path.display(), conf::os_error(&error));
                        let from = Printable(&self.file.path);
                        let text = format_args!("rename() \"{from}\" to \"{to}\" failed ({error})");
                        x.log_while(Level::Crit, Action::Reading.text(), text);
                        None
                    }
                });
        match published {
            Committed::Stored | Committed::Stale => {
                if let Some(result) = self.result {
                    self.shared.counts.count_written(result, self.received);
                }
                self.file.renamed();
            }
            Committed::Purged => {
                self.file.renamed();
                let _ = self
                    .shared
                    .index
                    .remove_unused(&id, || directory.remove(&id));
            }
            Committed::Refused | Committed::Failed | Committed::Replaced => {}
        }
    }
}

pub(super) fn log(x: &Exchange, error: FileError, name: &[u8]) {
    let reason = conf::os_error(&io::Error::from_raw_os_error(error.errno));
    let (call, name) = (error.call, Printable(name));
    x.log_while(
        Level::Crit,
        Action::Reading.text(),
        format_args!("{call} \"{name}\" failed ({reason})"),
    );
}
