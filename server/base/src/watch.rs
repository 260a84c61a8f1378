//! Files that are taken up when they change, without a reload.
//!
//! The supervisor looks at them, since it has the rights to read them, and hands the worker the configuration that it serves
//! with the files' new bytes. Absent: how it notices, which is its own business.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

/// Files that belong together: what they have now is taken up whole or not at all.
pub trait Watch: Debug + Send + Sync {
    /// The files.
    fn paths(&self) -> &[PathBuf];

    /// Whether what the files have now can be served by; `read` gives the bytes of each.
    ///
    /// # Errors
    /// What is wrong, as the error log shall say it.
    fn check(&self, read: &dyn Fn(&Path) -> io::Result<Vec<u8>>) -> Result<(), String>;
}
