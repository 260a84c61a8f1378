//! Negative lookups: paths that were missing, valid until more is read from a socket.
//!
//! One failed lookup serves all requests received before it. `gzip_static` looks for the compressed form, `try_files`
//! for the file, and the handler opens the path again. A failed lookup costs one system call, like the check of a
//! cached file. So a longer lifetime would gain nothing.

use server_base::files::FileError;

/// A few missing paths.
#[derive(Debug, Default)]
pub(crate) struct NegativeLookups {
    /// The first `used` elements are valid. The others are spare memory.
    paths: Vec<(Vec<u8>, FileError)>,
    used: usize,
}

impl NegativeLookups {
    /// Forgets all paths.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// Returns the recorded error of a missing path, as an error of `call`.
    #[inline]
    pub(crate) fn find(&self, path: &[u8], call: &'static str) -> Option<FileError> {
        let mut known = self.paths[..self.used].iter();
        let (_, error) = known.find(|(known, _)| *known == path)?;
        Some(FileError { call, ..*error })
    }

    /// Records a path if `error` means that it is missing. Ignores it if the table is full.
    pub(crate) fn record(&mut self, path: &[u8], error: FileError) {
        if !error.is_missing() || self.used == NEGATIVE_LOOKUPS_MAX {
            return;
        }
        match self.paths.get_mut(self.used) {
            Some((memory, known)) => {
                memory.clear();
                memory.extend_from_slice(path);
                *known = error;
            }
            None => self.paths.push((path.to_vec(), error)),
        }
        self.used += 1;
    }
}

/// Maximum number of paths between two reads of sockets.
pub(crate) const NEGATIVE_LOOKUPS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const MISSING: FileError = FileError {
        errno: libc::ENOENT,
        call: "open()",
    };

    #[test]
    fn paths_are_known_until_more_is_read_and_up_to_their_number() {
        let mut negative_lookups = NegativeLookups::default();
        let path = |n: usize| format!("/{n}").into_bytes();
        for round in 0..2 {
            assert_eq!(negative_lookups.find(&path(0), "stat()"), None, "{round}");
            (0..=NEGATIVE_LOOKUPS_MAX).for_each(|n| negative_lookups.record(&path(n), MISSING));
            let error = negative_lookups.find(&path(NEGATIVE_LOOKUPS_MAX - 1), "stat()");
            let found = error.map(|error| (error.errno, error.call));
            assert_eq!(found, Some((libc::ENOENT, "stat()")));
            assert_eq!(
                negative_lookups.find(&path(NEGATIVE_LOOKUPS_MAX), "stat()"),
                None
            );
            negative_lookups.clear();
        }
    }

    #[test]
    fn unreadable_files_are_not_recorded() {
        let mut negative_lookups = NegativeLookups::default();
        let errno = libc::EACCES;
        negative_lookups.record(b"/x", FileError { errno, ..MISSING });
        assert_eq!(negative_lookups.find(b"/x", "open()"), None);
    }
}
