//! Settings of the process's own file cache, beside `open_file_cache`.

use conf::Contexts;
use server_base::from_args::Offset;

use crate::settings;

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
