//! Paths that were looked for and are not there, until more is read from a socket.
//!
//! One look serves every request that had been received when it was made, also where it finds nothing: the compressed form
//! that `gzip_static` looks for, the file that `try_files` looks for and the handler again. A look in vain costs one
//! system call, as one at a kept file does, so that nothing is won by keeping it for longer.

use server_base::files::FileError;

/// The paths, a few.
#[derive(Debug, Default)]
pub(crate) struct NegativeLookups {
    /// The first `used` of them are valid; the others are memory for the next ones.
    paths: Vec<(Vec<u8>, FileError)>,
    used: usize,
}

impl NegativeLookups {
    /// Forgets all of them.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// Returns the reason why there is nothing at a path, as failure of a call.
    #[inline]
    pub(crate) fn find(&self, path: &[u8], call: &'static str) -> Option<FileError> {
        let mut known = self.paths[..self.used].iter();
        let (_, error) = known.find(|(known, _)| *known == path)?;
        Some(FileError { call, ..*error })
    }

    /// Remembers that there is nothing at a path, if that is what the error says.
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

/// Most paths between two reads of sockets.
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
    fn what_is_there_and_cannot_be_read_is_not_remembered() {
        let mut negative_lookups = NegativeLookups::default();
        let errno = libc::EACCES;
        negative_lookups.record(b"/x", FileError { errno, ..MISSING });
        assert_eq!(negative_lookups.find(b"/x", "open()"), None);
    }
}
