//! Where texts come from: the disk or memory.
//!
//! A master process reads the [`Disk`] through a [`Recorder`](crate::Recorder); what was read becomes a [`Memory`] that a worker
//! parses again without touching a path, and that `-T` prints. Tests write a `Memory` by hand.
//!
//! Names of hosts that a configuration mentions are looked up here, too: once by the master process, recorded for the
//! worker, so that both have the same addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::glob::{self, Tree};
use crate::regular::{self, TEXT_BYTES_MAX};
use crate::{DataFile, Stamp};

/// Something configuration texts are read from.
pub trait Source {
    /// The bytes of a file.
    ///
    /// # Errors
    /// What the system says when it cannot be opened or read.
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>>;

    /// The text of a configuration file, shared; that of an earlier load, if the file is certain to be as it was then.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn read_text(&mut self, path: &Path) -> io::Result<Arc<Vec<u8>>> {
        self.read(path).map(Arc::new)
    }

    /// The bytes of a file that an earlier load may have had, as it was then, if the file has not changed since: a
    /// certificate, a key and the like.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn read_object(&mut self, path: &Path) -> io::Result<Arc<Vec<u8>>> {
        self.read(path).map(Arc::new)
    }

    /// As [`Source::read`], with the state in which the file was read, if the source knows.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn read_stamped(&mut self, path: &Path) -> io::Result<(Vec<u8>, Option<Stamp>)> {
        Ok((self.read(path)?, None))
    }

    /// What tells the present state of a file from others, if the source knows.
    fn stamp(&mut self, _: &Path) -> Option<Stamp> {
        None
    }

    /// Whether nobody is served by what is built from it: then what an earlier build has found sound need not be made again.
    fn only_checks(&self) -> bool {
        false
    }

    /// As [`Source::read`], of what may also be a named pipe: of secrets that are not kept on disk.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn read_piped(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        self.read(path)
    }

    /// Opens a file for its bytes, which may be many and no text: a database.
    ///
    /// # Errors
    /// What the system says when it cannot be opened.
    fn open(&mut self, path: &Path) -> io::Result<DataFile>;

    /// The paths that match a shell pattern, sorted by their bytes; none is no error.
    ///
    /// # Errors
    /// When the source cannot be searched at all.
    fn glob(&mut self, pattern: &str) -> io::Result<Vec<PathBuf>>;

    /// The addresses of a host, each once, in the order in which they were found; at least one.
    ///
    /// # Errors
    /// There is no such host, or it cannot be found out.
    fn addresses(&mut self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// How hosts are looked up.
pub type Lookup = fn(&str) -> io::Result<Vec<IpAddr>>;

/// The file system, and the hosts that the system knows.
#[derive(Debug, Clone, Copy)]
pub struct Disk {
    lookup: Lookup,
}

impl Disk {
    /// With another way to look up hosts than that of the standard library.
    pub fn with_lookup(lookup: Lookup) -> Self {
        Self { lookup }
    }
}

impl Default for Disk {
    fn default() -> Self {
        Self::with_lookup(|host| {
            Ok((host, 0)
                .to_socket_addrs()?
                .map(|found| found.ip())
                .collect())
        })
    }
}

impl Source for Disk {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        regular::read(path, TEXT_BYTES_MAX)
    }

    fn read_stamped(&mut self, path: &Path) -> io::Result<(Vec<u8>, Option<Stamp>)> {
        let (bytes, meta) = regular::read_with_state(path, TEXT_BYTES_MAX)?;
        Ok((bytes, Some(meta.into())))
    }

    fn read_piped(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        regular::read_piped(path, TEXT_BYTES_MAX)
    }

    fn stamp(&mut self, path: &Path) -> Option<Stamp> {
        Stamp::of(path).ok()
    }

    fn open(&mut self, path: &Path) -> io::Result<DataFile> {
        DataFile::open(path)
    }

    fn glob(&mut self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        Ok(paths(glob::expand(self, pattern)))
    }

    fn addresses(&mut self, host: &str) -> io::Result<Vec<IpAddr>> {
        let mut addresses: Vec<IpAddr> = Vec::new();
        for address in (self.lookup)(host)? {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(addresses)
    }
}

impl Tree for Disk {
    fn names(&mut self, directory: &str) -> Vec<String> {
        let directory = if directory.is_empty() { "." } else { directory };
        let Ok(entries) = fs::read_dir(directory) else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect()
    }

    fn exists(&mut self, path: &str) -> bool {
        fs::symlink_metadata(path).is_ok()
    }
}

/// What a file holds, shared by all who keep it, and the state in which it was read.
#[derive(Debug, Clone)]
struct Text {
    bytes: Arc<Vec<u8>>,
    stamp: Option<Stamp>,
}

/// Files kept in memory or open, with the answers to patterns that were recorded; other patterns match the files' paths.
/// Hosts have the addresses that were recorded, others are not found.
#[derive(Debug, Default, Clone)]
pub struct Memory {
    /// By the bytes of their paths: to compare paths component by component is dear where there are twenty thousand.
    files: BTreeMap<Arc<[u8]>, Text>,
    opened: BTreeMap<PathBuf, DataFile>,
    globs: BTreeMap<String, Vec<PathBuf>>,
    hosts: BTreeMap<String, Vec<IpAddr>>,
    only_checks: bool,
}

impl Memory {
    /// For a build that serves nobody.
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
        let path = path.as_os_str().as_bytes();
        let text = Text { bytes, stamp };
        match self.files.get_mut(path) {
            Some(known) => *known = text,
            None => drop(self.files.insert(path.into(), text)),
        }
    }

    /// Sets the state in which a file that is there was read.
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
    pub fn stamped(&self, path: &Path) -> Option<(&Arc<Vec<u8>>, Option<Stamp>)> {
        let text = self.files.get(path.as_os_str().as_bytes())?;
        Some((&text.bytes, text.stamp))
    }

    /// The same in memory of its own, without gaps. What a load reads lies among all that it makes and frees again, and
    /// each text would keep a page from the system. What is also in `earlier` is shared with it.
    #[must_use]
    pub fn packed(&self, earlier: Option<&Self>) -> Self {
        let pack = |(path, text): (&Arc<[u8]>, &Text)| {
            let known = earlier.and_then(|earlier| earlier.files.get_key_value(path));
            let shared = known.filter(|(_, known)| Arc::ptr_eq(&known.bytes, &text.bytes));
            let path = known.map_or_else(|| Arc::from(&**path), |(path, _)| Arc::clone(path));
            let bytes = shared.map_or_else(
                || Arc::new(text.bytes.to_vec()),
                |(_, known)| Arc::clone(&known.bytes),
            );
            let stamp = text.stamp;
            (path, Text { bytes, stamp })
        };
        Self {
            files: self.files.iter().map(pack).collect(),
            opened: self.opened.clone(),
            globs: self.globs.clone(),
            hosts: self.hosts.clone(),
            only_checks: self.only_checks,
        }
    }

    /// The files that are open, by path.
    pub fn opened(&self) -> impl Iterator<Item = (&Path, &DataFile)> {
        self.opened
            .iter()
            .map(|(path, file)| (path.as_path(), file))
    }

    /// The recorded answer to a pattern.
    pub fn globbed(&self, pattern: &str) -> Option<&[PathBuf]> {
        self.globs.get(pattern).map(Vec::as_slice)
    }

    /// Fixes the answer to a pattern.
    pub fn add_glob(&mut self, pattern: impl Into<String>, paths: Vec<PathBuf>) {
        self.globs.insert(pattern.into(), paths);
    }

    /// Fixes the addresses of a host.
    pub fn add_host(&mut self, host: impl Into<String>, addresses: Vec<IpAddr>) {
        self.hosts.insert(host.into(), addresses);
    }

    /// The files, by path.
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
        match self.files.get(path.as_os_str().as_bytes()) {
            Some(text) => Ok(Arc::clone(&text.bytes)),
            None => Err(io::Error::from_raw_os_error(ENOENT)),
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
            None => Err(io::Error::from_raw_os_error(ENOENT)),
        }
    }

    fn glob(&mut self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        match self.globs.get(pattern) {
            Some(recorded) => Ok(recorded.clone()),
            None => Ok(paths(glob::expand(self, pattern))),
        }
    }

    fn addresses(&mut self, host: &str) -> io::Result<Vec<IpAddr>> {
        let recorded = self.hosts.get(host).cloned();
        recorded.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Tree for Memory {
    fn names(&mut self, directory: &str) -> Vec<String> {
        let directory = Path::new(directory);
        let below = self
            .files
            .keys()
            .filter_map(|path| path_of(path).strip_prefix(directory).ok());
        let first = below.filter_map(|rest| rest.components().next());
        let names: BTreeSet<_> = first.filter_map(|name| name.as_os_str().to_str()).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    fn exists(&mut self, path: &str) -> bool {
        self.files
            .keys()
            .any(|file| path_of(file).starts_with(path))
    }
}

fn path_of(key: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(key))
}

fn paths(names: Vec<String>) -> Vec<PathBuf> {
    names.into_iter().map(PathBuf::from).collect()
}

/// "No such file or directory" on every system with Linux's numbers.
const ENOENT: i32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &mut impl Source, pattern: &str) -> Vec<String> {
        let paths = source.glob(pattern).expect("the source can be searched");
        paths
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    }

    fn site() -> Memory {
        [
            "/c/b.conf",
            "/c/a.conf",
            "/c/.x.conf",
            "/c/a.txt",
            "/c/sub/d.conf",
            "/d/sub/e.conf",
        ]
        .into_iter()
        .fold(Memory::default(), |memory, path| {
            memory.with_file(path, path)
        })
    }

    #[test]
    fn memory_reads_what_it_was_given_and_nothing_else() {
        let mut memory = Memory::default().with_file("/a", "x");
        assert_eq!(memory.read(Path::new("/a")).expect("it is there"), b"x");
        assert_eq!(
            memory
                .read(Path::new("/b"))
                .expect_err("it is not")
                .raw_os_error(),
            Some(ENOENT)
        );
    }

    #[test]
    fn packed_memory_is_equal_and_shares_what_an_earlier_one_has() {
        let earlier = site().with_file("/changed", "old");
        let mut memory = Memory::default().with_file("/changed", "new");
        let (same, _) = earlier.stamped(Path::new("/c/a.txt")).expect("it is there");
        memory.add_read(Path::new("/c/a.txt"), Arc::clone(same), None);
        memory.add_glob("/c/*", vec!["/c/a.txt".into()]);
        memory.add_host("a", vec![[127, 0, 0, 1].into()]);
        memory.add_opened("/data", DataFile::from(b"x".as_slice()));
        let packed = memory.for_checks().packed(Some(&earlier));
        let texts: Vec<_> = packed.files().map(|(_, text)| text.to_vec()).collect();
        assert_eq!(texts, [b"/c/a.txt".to_vec(), b"new".to_vec()]);
        let (kept, _) = packed.stamped(Path::new("/c/a.txt")).expect("it is there");
        assert!(Arc::ptr_eq(kept, same));
        assert_eq!(packed.globs().count(), 1);
        assert_eq!((packed.hosts().count(), packed.opened().count()), (1, 1));
        assert!(packed.only_checks());
    }

    #[test]
    fn patterns_match_paths_in_byte_order() {
        let mut memory = site();
        assert_eq!(shown(&mut memory, "/c/*.conf"), ["/c/a.conf", "/c/b.conf"]);
        assert_eq!(
            shown(&mut memory, "/*/sub/?.conf"),
            ["/c/sub/d.conf", "/d/sub/e.conf"]
        );
        assert_eq!(shown(&mut memory, "/c/[b]*"), ["/c/b.conf"]);
        assert_eq!(shown(&mut memory, "/none/*"), [""; 0]);
        assert_eq!(shown(&mut memory, "/*/none"), [""; 0]);
    }

    #[test]
    fn the_disk_is_searched_like_memory() {
        let root = std::env::temp_dir().join(format!("firstbyte-conf-{}", std::process::id()));
        for (path, text) in site().files() {
            let path = root.join(
                path.strip_prefix("/")
                    .expect("the paths of the site are absolute"),
            );
            fs::create_dir_all(path.parent().expect("the files are in directories"))
                .expect("a directory can be made");
            fs::write(path, text.as_slice()).expect("a file can be written");
        }
        let top = root.display().to_string();
        let found: Vec<_> = ["/c/*.conf", "/*/sub/?.conf", "/none/*", "/c/*/d.conf"]
            .iter()
            .flat_map(|pattern| shown(&mut Disk::default(), &format!("{top}{pattern}")))
            .map(|path| path.replacen(&top, "", 1))
            .collect();
        let read = Disk::default().read(&root.join("c/a.conf"));
        fs::remove_dir_all(&root).expect("what was made can be removed");
        assert_eq!(
            found,
            [
                "/c/a.conf",
                "/c/b.conf",
                "/c/sub/d.conf",
                "/d/sub/e.conf",
                "/c/sub/d.conf"
            ]
        );
        assert_eq!(read.expect("it is there"), b"/c/a.conf");
    }
}
