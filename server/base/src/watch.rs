//! Files that are reloaded when they change, without a reload of the configuration.
//!
//! The supervisor checks them, since it has the rights to read them, and sends the worker its current configuration with the
//! new bytes. Absent: the detection of changes, a task of the supervisor.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

/// Files that belong together: their present contents are applied all or none.
pub trait Watch: Debug + Send + Sync {
    /// The files.
    fn paths(&self) -> &[PathBuf];

    /// Whether the present contents of the files are valid; `read` returns the bytes of each.
    ///
    /// # Errors
    /// The problem, worded for the error log.
    fn check(&self, read: &dyn Fn(&Path) -> io::Result<Vec<u8>>) -> Result<(), String>;
}
