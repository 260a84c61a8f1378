//! Files kept in memory: the record of a load, and texts written by hand for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::glob::{self, Tree};
use crate::shared_map::{Revision, SharedMap};
use crate::source::paths;
use crate::{DataFile, Source, Stamp};

/// The shared content of a file, its state and the method when it was read.
#[derive(Debug, Clone)]
struct Entry {
    bytes: Arc<Vec<u8>>,
    stamp: Option<Stamp>,
    reading: Reading,
}

/// The ways to read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// By [`Source::read`].
    Always,
    /// By [`Source::read_text`].
    Text,
    /// By [`Source::read_object`].
    Object,
    /// By [`Source::read_piped`].
    Piped,
}

/// A recorded file: its bytes, and the state in which it was read, if that is known.
pub(crate) type RecordedFile<'m> = (&'m Arc<Vec<u8>>, Option<Stamp>);

/// A file as it was read now: bytes and state.
pub(crate) type ReadFile = (Arc<Vec<u8>>, Option<Stamp>);

/// Files kept in memory or open, with the answers to patterns that were recorded; other patterns match the files' paths.
/// Hosts have the addresses that were recorded, others are not found.
#[derive(Debug, Default, Clone)]
pub struct Memory {
    /// By the bytes of their paths: comparing paths by components is slow for twenty thousand files.
    files: SharedMap<Arc<[u8]>, Entry>,
    /// Index of the file expected to be requested next: loads request files in the recorded order.
    next: usize,
    opened: BTreeMap<PathBuf, DataFile>,
    globs: Arc<BTreeMap<String, Vec<PathBuf>>>,
    hosts: BTreeMap<String, Vec<IpAddr>>,
    only_checks: bool,
    /// Set when a request has no recorded answer.
    missed: Option<Arc<AtomicBool>>,
}

impl Memory {
    /// Sets `missed` at a request without a recorded answer. Such a pattern is an error then.
    #[must_use]
    pub fn recording_misses(mut self, missed: Arc<AtomicBool>) -> Self {
        self.missed = Some(missed);
        self
    }

    fn miss(&self) {
        if let Some(missed) = &self.missed {
            missed.store(true, Ordering::Relaxed);
        }
    }

    /// For a build that serves no requests.
    #[must_use]
    pub fn for_checks(mut self) -> Self {
        self.only_checks = true;
        self
    }

    /// With one file more, for building one in an expression.
    #[must_use]
    pub fn with_file(mut self, path: impl AsRef<Path>, text: impl Into<Vec<u8>>) -> Self {
        self.add_file(path, text);
        self
    }

    /// Adds or replaces a file.
    pub fn add_file(&mut self, path: impl AsRef<Path>, text: impl Into<Vec<u8>>) {
        self.add_read(path.as_ref(), Arc::new(text.into()), None);
    }

    /// Adds or replaces a file, with the state in which it was read, if that is known.
    pub fn add_read(&mut self, path: &Path, bytes: Arc<Vec<u8>>, stamp: Option<Stamp>) {
        let known = self.files.get(path.as_os_str().as_bytes());
        let reading = known.map_or(Reading::Always, |known| known.reading);
        self.add_by(reading, path, bytes, stamp);
    }

    /// Adds a file that was read in this way.
    pub(crate) fn add_by(
        &mut self,
        reading: Reading,
        path: &Path,
        bytes: Arc<Vec<u8>>,
        stamp: Option<Stamp>,
    ) {
        let path = path.as_os_str().as_bytes();
        let text = Entry {
            bytes,
            stamp,
            reading,
        };
        match self.files.get_mut(path) {
            Some(known) => *known = text,
            None => self.files.insert(path.into(), text),
        }
    }

    /// The methods by which files were read.
    pub(crate) fn readings(&self) -> impl Iterator<Item = Reading> {
        self.files.iter().map(|(_, text)| text.reading)
    }

    /// Returns the files with the content that `read` returns for each path, its recorded content, and the method of reading.
    pub(crate) fn refresh(
        &self,
        mut read: impl FnMut(&Path, RecordedFile<'_>, Reading) -> Revision<ReadFile>,
    ) -> Self {
        let files = self.files.revise(|path, text| {
            let known = (&text.bytes, text.stamp);
            match read(path_of(path), known, text.reading) {
                Revision::Keep => Revision::Keep,
                Revision::Remove => Revision::Remove,
                Revision::Set((bytes, stamp)) => Revision::Set(Entry {
                    bytes,
                    stamp,
                    reading: text.reading,
                }),
            }
        });
        Self {
            files,
            ..Self::default()
        }
    }

    /// Returns a copy without the files and patterns that are the same in `earlier`; `None` if one of `earlier` is missing
    /// here. Files are the same if they share their bytes.
    #[must_use]
    pub fn difference(&self, earlier: &Self) -> Option<Self> {
        let mut known = earlier.files.unshared(&self.files);
        let has_all = known.all(|(path, _)| self.files.get(path).is_some())
            && (earlier.globs.keys()).all(|pattern| self.globs.contains_key(pattern));
        let is_known = |path: &Arc<[u8]>, text: &Entry| {
            let known = earlier.files.get(path);
            known.is_some_and(|known| Arc::ptr_eq(&known.bytes, &text.bytes))
        };
        let own = self.files.unshared(&earlier.files);
        let files = own.filter(|(path, text)| !is_known(path, text));
        let files = files.map(|(path, text)| (Arc::clone(path), text.clone()));
        let is_answered = |pattern: &String, paths: &[PathBuf]| {
            let known = earlier.globs.get(pattern);
            known.is_some_and(|known| is_same(known, paths))
        };
        let mut globs = BTreeMap::clone(&self.globs);
        globs.retain(|pattern, paths| !is_answered(pattern, paths));
        has_all.then(|| Self {
            files: files.collect(),
            globs: Arc::new(globs),
            ..self.clone()
        })
    }

    /// Returns a copy with only the files and the answers to patterns.
    #[must_use]
    pub fn files_and_globs(&self) -> Self {
        Self {
            files: self.files.clone(),
            globs: Arc::clone(&self.globs),
            ..Self::default()
        }
    }

    /// Adds these files; for a repeated path the last one counts.
    #[must_use]
    pub fn with_files<'t>(
        mut self,
        texts: impl IntoIterator<Item = (&'t str, Arc<Vec<u8>>)>,
    ) -> Self {
        let texts = texts.into_iter().map(|(path, bytes)| {
            let (stamp, reading) = (None, Reading::Always);
            let text = Entry {
                bytes,
                stamp,
                reading,
            };
            (Arc::from(path.as_bytes()), text)
        });
        match self.files.is_empty() {
            true => self.files = texts.collect(),
            false => texts.for_each(|(path, text)| self.files.insert(path, text)),
        }
        self
    }

    /// Sets the state in which a recorded file was read.
    pub fn add_stamp(&mut self, path: &Path, stamp: Stamp) {
        if let Some(known) = self.files.get_mut(path.as_os_str().as_bytes()) {
            known.stamp = Some(stamp);
        }
    }

    /// Adds or replaces a file that is open.
    pub fn add_opened(&mut self, path: impl Into<PathBuf>, file: DataFile) {
        self.opened.insert(path.into(), file);
    }

    /// The bytes of a file, and the state in which it was read, if that is known.
    pub fn file_with_stamp(&self, path: &Path) -> Option<(&Arc<Vec<u8>>, Option<Stamp>)> {
        let text = self.files.get(path.as_os_str().as_bytes())?;
        Some((&text.bytes, text.stamp))
    }

    /// Copies the record into contiguous memory. Texts are read between temporary allocations, and each would keep a page of
    /// freed memory in use. Texts that are also in `earlier` are shared with it.
    #[must_use]
    pub fn packed(&self, earlier: Option<&Self>) -> Self {
        let pack = |(path, text): (&Arc<[u8]>, &Entry)| {
            let known = earlier.and_then(|earlier| earlier.files.get_key_value(path));
            let shared = known.filter(|(_, known)| Arc::ptr_eq(&known.bytes, &text.bytes));
            let path = known.map_or_else(|| Arc::from(&**path), |(path, _)| Arc::clone(path));
            let bytes = shared.map_or_else(
                || Arc::new(text.bytes.to_vec()),
                |(_, known)| Arc::clone(&known.bytes),
            );
            let text = Entry { bytes, ..*text };
            (path, text)
        };
        Self {
            files: self.files.iter().map(pack).collect(),
            next: 0,
            opened: self.opened.clone(),
            globs: Arc::clone(&self.globs),
            hosts: self.hosts.clone(),
            only_checks: self.only_checks,
            missed: self.missed.clone(),
        }
    }

    /// The files that are open, by path.
    pub fn opened(&self) -> impl Iterator<Item = (&Path, &DataFile)> {
        self.opened
            .iter()
            .map(|(path, file)| (path.as_path(), file))
    }

    /// The recorded answer to a pattern.
    pub fn glob_result(&self, pattern: &str) -> Option<&[PathBuf]> {
        self.globs.get(pattern).map(Vec::as_slice)
    }

    /// Fixes the answer to a pattern.
    pub fn add_glob(&mut self, pattern: impl Into<String>, paths: Vec<PathBuf>) {
        Arc::make_mut(&mut self.globs).insert(pattern.into(), paths);
    }

    /// Fixes the addresses of a host.
    pub fn add_host(&mut self, host: impl Into<String>, addresses: Vec<IpAddr>) {
        self.hosts.insert(host.into(), addresses);
    }

    /// The files with their paths, in the order in which they were added.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &Arc<Vec<u8>>)> {
        self.files
            .iter()
            .map(|(path, text)| (path_of(path), &text.bytes))
    }

    /// The recorded answers to patterns.
    pub fn globs(&self) -> impl Iterator<Item = (&str, &[PathBuf])> {
        self.globs
            .iter()
            .map(|(pattern, paths)| (pattern.as_str(), paths.as_slice()))
    }

    /// The recorded addresses of hosts.
    pub fn hosts(&self) -> impl Iterator<Item = (&str, &[IpAddr])> {
        self.hosts
            .iter()
            .map(|(host, addresses)| (host.as_str(), addresses.as_slice()))
    }
}

impl Source for Memory {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        self.read_object(path).map(|bytes| bytes.to_vec())
    }

    fn read_object(&mut self, path: &Path) -> io::Result<Arc<Vec<u8>>> {
        let path = path.as_os_str().as_bytes();
        match self.files.get_next(&mut self.next, path) {
            Some(text) => Ok(Arc::clone(&text.bytes)),
            None => {
                self.miss();
                Err(io::Error::from_raw_os_error(ENOENT))
            }
        }
    }

    fn read_text(&mut self, path: &Path) -> io::Result<Arc<Vec<u8>>> {
        self.read_object(path)
    }

    fn only_checks(&self) -> bool {
        self.only_checks
    }

    fn open(&mut self, path: &Path) -> io::Result<DataFile> {
        if let Some(file) = self.opened.get(path) {
            return Ok(file.clone());
        }
        match self.files.get(path.as_os_str().as_bytes()) {
            Some(text) => Ok(DataFile::from(text.bytes.as_slice())),
            None => {
                self.miss();
                Err(io::Error::from_raw_os_error(ENOENT))
            }
        }
    }

    fn glob(&mut self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        match self.globs.get(pattern) {
            Some(recorded) => Ok(recorded.clone()),
            None if self.missed.is_some() => {
                self.miss();
                Err(io::ErrorKind::NotFound.into())
            }
            None => Ok(paths(glob::expand(self, pattern))),
        }
    }

    fn addresses(&mut self, host: &str) -> io::Result<Vec<IpAddr>> {
        let recorded = self.hosts.get(host).cloned();
        recorded.ok_or_else(|| {
            self.miss();
            io::ErrorKind::NotFound.into()
        })
    }
}

impl Tree for Memory {
    fn names(&mut self, directory: &str) -> Vec<String> {
        let directory = Path::new(directory);
        let below = self
            .files
            .iter()
            .filter_map(|(path, _)| path_of(path).strip_prefix(directory).ok());
        let first = below.filter_map(|rest| rest.components().next());
        let names: BTreeSet<_> = first.filter_map(|name| name.as_os_str().to_str()).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    fn exists(&mut self, path: &str) -> bool {
        self.files
            .iter()
            .any(|(file, _)| path_of(file).starts_with(path))
    }
}

/// Returns whether paths are equal, byte by byte: comparing components is slow for many paths.
pub(crate) fn is_same(paths: &[PathBuf], others: &[PathBuf]) -> bool {
    let names = paths.iter().map(|path| path.as_os_str());
    names.eq(others.iter().map(|path| path.as_os_str()))
}

fn path_of(key: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(key))
}

/// "No such file or directory" on every system with Linux's numbers.
const ENOENT: i32 = 2;

#[cfg(test)]
#[path = "memory_tests.rs"]
pub(crate) mod tests;
