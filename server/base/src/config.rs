//! The interface between parsers of directives and the configuration, for any kind of server.
//!
//! A parser takes a [`ConfigContext`] if this is enough; directives that write settings of a level take the builder itself.
//! Absent: levels and their settings, which differ by kind of server.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use conf::{ConfError, Directive, Loader, Word};

use crate::opened::LogTarget;
use crate::regex::RegexCache;

/// The path of the configuration, and the additions of the command line.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// The main file, absolute.
    pub conf_path: PathBuf,
    /// The folder that relative paths of the configuration (but not of `include`) start from.
    pub prefix: PathBuf,
    /// `-g`.
    pub globals: Option<String>,
    /// Error log if the configuration has none: `-e`, else a default; "stderr" is standard error.
    pub error_log: Option<PathBuf>,
    /// Access log if the configuration has none.
    pub access_log: PathBuf,
}

/// A variable as compiled into values: its index in the table of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VarId(pub u32);

/// The configuration while it is read, as parsers of directives see it.
pub trait ConfigContext {
    /// The loader of files: its source, its prefix, its warnings.
    fn conf_loader(&mut self) -> &mut Loader;

    /// Resolves a path of the configuration against the prefix.
    fn full_path(&self, path: &[u8]) -> Vec<u8>;

    /// The id of a variable used in `word` of a directive.
    fn variable(&mut self, name: &[u8], d: &Directive, word: &Word) -> VarId;

    /// The slot of a variable that a named capture sets.
    fn capture_slot(&mut self, name: &[u8]) -> usize;

    /// The index of a shared zone; a size of 0 refers to it, any other declares it.
    ///
    /// # Errors
    /// The zone belongs to another module or has another size.
    fn zone(&mut self, name: &[u8], size_bytes: u64, module: &'static str)
    -> Result<usize, String>;

    /// The expressions that were compiled so far.
    fn regexes(&mut self) -> &mut RegexCache;

    /// Records the target of an error log, to be opened before the start of service.
    fn record_log(&mut self, target: &LogTarget);
}

impl dyn ConfigContext + '_ {
    /// Notes a warning about a directive.
    pub fn warn(&mut self, error: ConfError) {
        self.conf_loader().warn(conf::Level::Warn, error);
    }

    /// Looks up a host that the configuration names; `None` for no such host.
    pub fn look_up(&mut self, host: &str) -> Option<Vec<IpAddr>> {
        self.conf_loader().source().addresses(host).ok()
    }
}

/// Resolves `path` against `prefix` unless it is absolute.
pub fn full_path(prefix: &Path, path: &[u8]) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    if path.starts_with(b"/") {
        return path.to_vec();
    }
    let mut full = prefix.as_os_str().as_bytes().to_vec();
    if !full.ends_with(b"/") {
        full.push(b'/');
    }
    full.extend_from_slice(path);
    full
}
