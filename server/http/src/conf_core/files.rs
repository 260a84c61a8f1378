//! Settings of files that are sent, and of the process's own file cache beside `open_file_cache`.

use conf::Contexts;
use server_base::files::{OpenFileCache, SymlinkMode};
use server_base::from_args::{Millis, Number, Offset};
use server_base::thread_pool::Aio;

use super::CoreLoc;
use crate::settings;
use crate::settings_set::inherited;
use crate::value::Value;

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

settings! {
    /// Settings of files that exist once.
    pub struct FilesMain: Main {
        /// Memory of all threads together for the bytes of small files; each use is preceded by a look at the path, or by
        /// a watch that reports no change. 0 for none.
        memory "open_files_memory": Offset = Offset(64 << 20), "64m", Contexts::HTTP;
        /// Whether the kernel reports changes of small files if many are sent, so that a use needs no check.
        watches "open_files_watch": bool = true, "on", Contexts::HTTP;
    }
}

settings! {
    /// Settings of files that are sent.
    pub struct StaticFiles: CoreLoc.files {
        /// Whether files are sent by the kernel; small ones are read and sent with the head.
        sendfile "sendfile": bool = false, "off", Contexts::HTTP_TO_IF;
        /// How long an entry of open_file_cache is trusted.
        open_file_cache_valid "open_file_cache_valid": Millis = Millis(60_000), "60s", HSL;
        /// Uses after which open_file_cache keeps a descriptor open.
        open_file_cache_min_uses "open_file_cache_min_uses": Number = Number(1), "1", HSL;
        /// Whether open_file_cache keeps errors.
        open_file_cache_errors "open_file_cache_errors": bool = false, "off", HSL;
    }
    extra {
        /// `open_file_cache`: `Some(None)` is off.
        file_cache: Option<Option<(usize, u64)>> = inherited,
        /// `disable_symlinks` and its `from`.
        symlinks: Option<(SymlinkMode, Option<Value>)> = inherited,
        /// `aio`.
        aio: Option<Aio> = inherited,
    }
}

impl StaticFiles {
    /// The settings of `open_file_cache`, if it is on.
    pub fn open_file_cache(&self) -> Option<OpenFileCache> {
        let (max, inactive_ms) = self.file_cache.flatten()?;
        Some(OpenFileCache {
            max,
            inactive_ms,
            valid_ms: self.open_file_cache_valid.0,
            min_uses: self.open_file_cache_min_uses.0 as u32,
            errors: *self.open_file_cache_errors,
        })
    }
}
