//! Files of the doctor in a directory of the target's server, of sizes that the site lacks.
//!
//! Names are random, and no existing file is overwritten. Dropping the [`Docroot`] removes all files, also if an examination is
//! interrupted.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sys::os_error;

use super::failure::Failure;
use crate::client::Url;

/// A directory with files of the doctor.
#[derive(Debug)]
pub(super) struct Docroot {
    directory: PathBuf,
    /// The URL of the directory.
    base: Url,
    /// The beginning of all names.
    tag: String,
    written: Vec<PathBuf>,
}

/// The type of a file; all are filled with random bytes, which no coding makes fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// A file of no known type, so servers do not compress it.
    Binary,
    /// HTML, which servers compress by default, and hardly anything else. Over SPDY some do whatever the client accepts.
    Html,
}

impl Docroot {
    /// A directory that is served at the last `/` of a URL's path; nothing is written yet.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(super) fn new(directory: &Path, target: &Url) -> Result<Self, Failure> {
        let mut number = [0; 8];
        let drawn = sys::random::fill(&mut number);
        drawn.map_err(|error| Failure::other(format!("no random number: {}", os_error(&error))))?;
        let path = target.path.split('?').next().unwrap_or_default();
        let end = path.rfind('/').map_or(0, |at| at + 1);
        let base = Url {
            path: path[..end].to_owned(),
            ..target.clone()
        };
        Ok(Self {
            directory: directory.to_owned(),
            base,
            tag: format!("firstbyte-doctor-{:016x}", u64::from_ne_bytes(number)),
            written: Vec::new(),
        })
    }

    /// Returns the URL of a file of this size, and writes the file if it is missing.
    ///
    /// # Errors
    /// The file cannot be written, or there are [`FILES_MAX`].
    pub(super) fn file(&mut self, bytes: usize, kind: Type) -> Result<Url, Failure> {
        let ending = match kind {
            Type::Binary => "bin",
            Type::Html => "html",
        };
        let name = format!("{}-{bytes}.{ending}", self.tag);
        let path = self.directory.join(&name);
        let url = Url {
            path: format!("{}{name}", self.base.path),
            ..self.base.clone()
        };
        if self.written.contains(&path) {
            return Ok(url);
        }
        if self.written.len() >= FILES_MAX {
            return Err(Failure::other(
                "the limit of files for one examination is reached",
            ));
        }
        let failed = |error: std::io::Error| {
            let reason = os_error(&error);
            Failure::other(format!("cannot write {}: {reason}", path.display()))
        };
        let mut options = OpenOptions::new();
        // The server's workers may run as any user, and must read the file.
        let options = options.write(true).create_new(true).mode(0o644);
        let mut file = options.open(&path).map_err(failed)?;
        self.written.push(path.clone());
        file.write_all(&content(bytes)).map_err(failed)?;
        Ok(url)
    }
}

impl Drop for Docroot {
    fn drop(&mut self) {
        for path in &self.written {
            // Somebody else may have removed it.
            let _ = fs::remove_file(path);
        }
    }
}

fn content(bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(bytes as u64);
    (0..bytes).map(|_| random.u8(..)).collect()
}

/// Files of one examination, at most.
const FILES_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> PathBuf {
        let mut number = [0; 8];
        sys::random::fill(&mut number).expect("random numbers");
        let name = format!("firstbyte-docroot-{:x}", u64::from_ne_bytes(number));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("it is new");
        path
    }

    #[test]
    fn files_are_of_their_size_and_go_with_the_docroot() {
        let path = directory();
        let target = Url::parse("http://h/a/b.html?x=/c").expect("a URL");
        let mut docroot = Docroot::new(&path, &target).expect("a name");
        let url = docroot.file(1602, Type::Binary).expect("it is written");
        docroot.file(1602, Type::Binary).expect("it is there");
        assert!(url.path.starts_with("/a/firstbyte-doctor-"), "{url}");
        let name = url.path.rsplit('/').next().expect("a name");
        let written = fs::read(path.join(name)).expect("it is there");
        assert_eq!(written.len(), 1602);
        assert_eq!(fs::read_dir(&path).expect("a directory").count(), 1);
        drop(docroot);
        assert_eq!(fs::read_dir(&path).expect("a directory").count(), 0);
        fs::remove_dir(&path).expect("it is empty");
    }

    #[test]
    fn there_are_two_hundred_files_and_no_more() {
        let path = directory();
        let target = Url::parse("http://h/").expect("a URL");
        let mut docroot = Docroot::new(&path, &target).expect("a name");
        for bytes in 0..FILES_MAX {
            docroot.file(bytes, Type::Html).expect("there is room");
        }
        assert!(docroot.file(FILES_MAX, Type::Html).is_err());
        drop(docroot);
        fs::remove_dir(&path).expect("it is empty");
    }
}
