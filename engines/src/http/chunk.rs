//! Pieces of a body: bytes in memory, or a range of an open file.

use std::os::fd::OwnedFd;
use std::rc::Rc;

/// An open file, carried by engines and read only by the driver.
pub type FileHandle = Rc<OwnedFd>;

/// A range of a file that is sent as it is.
#[derive(Clone, Debug)]
pub struct FileRange {
    /// The file.
    pub file: FileHandle,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

/// One piece of a body.
#[derive(Clone, Debug)]
pub enum Chunk {
    /// Bytes that live as long as the program.
    Static(&'static [u8]),
    /// Bytes of this piece alone.
    Owned(Vec<u8>),
    /// Bytes shared with a cache or with other connections of the worker.
    Shared(Rc<[u8]>),
    /// A range of a file.
    File(FileRange),
    /// No bytes but a mark: what came before it is to leave at once, whatever holds bytes back on the way.
    Flush,
}

impl Chunk {
    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::File(range) => range.len,
            memory => memory.bytes().len() as u64,
        }
    }

    /// Whether the piece has no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a piece in memory; empty for a file range and for a mark.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Static(bytes) => bytes,
            Self::Owned(bytes) => bytes,
            Self::Shared(bytes) => bytes,
            Self::File(_) | Self::Flush => &[],
        }
    }

    /// Keeps the first `len` bytes and gives the rest, if there is one.
    #[must_use]
    pub fn split_off(&mut self, len: u64) -> Option<Self> {
        if self.len() <= len {
            return None;
        }
        let at = len as usize;
        Some(match self {
            Self::Static(bytes) => {
                let (front, rest) = bytes.split_at(at);
                *bytes = front;
                Self::Static(rest)
            }
            Self::Owned(bytes) => Self::Owned(bytes.split_off(at)),
            Self::Shared(bytes) => {
                let rest = Rc::from(&bytes[at..]);
                *bytes = Rc::from(&bytes[..at]);
                Self::Shared(rest)
            }
            Self::File(range) => {
                let rest = FileRange {
                    file: Rc::clone(&range.file),
                    offset: range.offset + len,
                    len: range.len - len,
                };
                range.len = len;
                Self::File(rest)
            }
            Self::Flush => return None,
        })
    }

    /// The first `len` bytes of the piece; all of it if it is not longer.
    #[must_use]
    pub fn truncated(self, len: u64) -> Self {
        if self.len() <= len {
            return self;
        }
        let end = len as usize;
        match self {
            Self::Static(bytes) => Self::Static(&bytes[..end]),
            Self::Owned(mut bytes) => {
                bytes.truncate(end);
                Self::Owned(bytes)
            }
            Self::Shared(bytes) => Self::Shared(Rc::from(&bytes[..end])),
            Self::File(range) => Self::File(FileRange { len, ..range }),
            Self::Flush => Self::Flush,
        }
    }
}

impl From<Vec<u8>> for Chunk {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Owned(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_off_loses_no_byte() {
        let pieces = [
            Chunk::Static(b"abcd"),
            Chunk::Owned(b"abcd".to_vec()),
            Chunk::Shared(Rc::from(&b"abcd"[..])),
        ];
        for mut piece in pieces {
            assert!(piece.split_off(4).is_none());
            let rest = piece.split_off(1).expect("three bytes are left");
            assert_eq!((piece.bytes(), rest.bytes()), (&b"a"[..], &b"bcd"[..]));
        }
    }

    #[test]
    fn truncated_keeps_the_front() {
        let pieces = [
            Chunk::Static(b"abcd"),
            Chunk::Owned(b"abcd".to_vec()),
            Chunk::Shared(Rc::from(&b"abcd"[..])),
        ];
        for piece in pieces {
            assert_eq!(piece.clone().truncated(2).bytes(), b"ab");
            assert_eq!(piece.clone().truncated(4).len(), 4);
            assert_eq!(piece.truncated(9).len(), 4);
        }
    }

    #[test]
    fn a_mark_has_no_byte() {
        let mut mark = Chunk::Flush;
        assert!(mark.is_empty() && mark.split_off(0).is_none());
        assert!(matches!(mark.truncated(0), Chunk::Flush));
    }
}
