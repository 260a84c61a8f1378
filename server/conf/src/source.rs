//! Sources of texts: the disk, or [`Memory`](crate::Memory).
//!
//! A master process reads the [`Disk`] through a [`Recorder`](crate::Recorder). The record becomes a `Memory`, which a worker
//! parses again without access to paths, and which `-T` prints.
//!
//! Host names of a configuration are resolved here, too: once by the master process and recorded for the worker, so that both
//! have the same addresses.

use std::fs;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::directory_cache::DirectoryCache;
use crate::glob::{self, Tree};
use crate::regular::{self, TEXT_BYTES_MAX};
use crate::{DataFile, Stamp};

/// Something configuration texts are read from.
pub trait Source {
    /// The bytes of a file.
    ///
    /// # Errors
    /// The I/O error of opening or reading it.
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>>;

    /// The text of a configuration file, shared; that of an earlier load, if the file is certain to be as it was then.
    ///
    /// # Errors
    /// See [`Source::read`].
    fn read_text(&mut self, path: &Path) -> io::Result<Arc<Vec<u8>>> {
        self.read(path).map(Arc::new)
    }

    /// The bytes of a file that an earlier load may have had, as it was then, if the file has not changed since: a
    /// certificate, a key and the like.
    ///
    /// # Errors
    /// See [`Source::read`].
    fn read_object(&mut self, path: &Path) -> io::Result<Arc<Vec<u8>>> {
        self.read(path).map(Arc::new)
    }

    /// Reads a file like [`Source::read`] and returns the state in which it was read, if the source knows it.
    ///
    /// # Errors
    /// See [`Source::read`].
    fn read_stamped(&mut self, path: &Path) -> io::Result<(Vec<u8>, Option<Stamp>)> {
        Ok((self.read(path)?, None))
    }

    /// The present state of a file, if the source knows it.
    fn stamp(&mut self, _: &Path) -> Option<Stamp> {
        None
    }

    /// Whether the build from this source serves no requests: then objects that an earlier build has verified need not
    /// be made again.
    fn only_checks(&self) -> bool {
        false
    }

    /// Reads a file like [`Source::read`], or a named pipe: secrets that are not kept on disk.
    ///
    /// # Errors
    /// See [`Source::read`].
    fn read_piped(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        self.read(path)
    }

    /// Opens a file for its bytes, which may be many and no text: a database.
    ///
    /// # Errors
    /// The I/O error of opening it.
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

/// The file system, and the hosts that the system knows; one for each load.
#[derive(Debug)]
pub struct Disk {
    lookup: Lookup,
    directories: DirectoryCache,
}

impl Disk {
    /// With another way to look up hosts than that of the standard library.
    pub fn with_lookup(lookup: Lookup) -> Self {
        Self {
            lookup,
            directories: DirectoryCache::default(),
        }
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
        self.directories.stamp(path).ok()
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

pub(crate) fn paths(names: Vec<String>) -> Vec<PathBuf> {
    names.into_iter().map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::memory::tests::{glob_paths, site};

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
            .flat_map(|pattern| glob_paths(&mut Disk::default(), &format!("{top}{pattern}")))
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
