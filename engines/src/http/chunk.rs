//! Pieces of a body: bytes in memory, or a range of an open file.

use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// An open file, carried by engines and read only by the driver.
pub type FileHandle = Rc<OwnedFd>;

/// A range of a file, sent verbatim.
#[derive(Clone, Debug)]
pub struct FileRange {
    /// The file.
    pub file: FileHandle,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

/// A range of shared bytes; a cache, other connections of the thread or other pieces of the same body hold them
/// too.
#[derive(Clone, Debug)]
pub struct SharedBytes {
    bytes: Rc<[u8]>,
    /// 32 bits each, so that this kind does not enlarge a chunk.
    start: u32,
    len: u32,
}

impl SharedBytes {
    /// The bytes from `begin` to `end` of shared memory.
    ///
    /// # Panics
    /// The memory has no such range, or 4 GiB and more, which exceeds any cache.
    #[inline]
    #[must_use]
    pub fn part(bytes: &Rc<[u8]>, begin: usize, end: usize) -> Self {
        assert!(begin <= end && end <= bytes.len() && end <= u32::MAX as usize);
        Self {
            bytes: Rc::clone(bytes),
            start: begin as u32,
            len: (end - begin) as u32,
        }
    }

    /// The bytes of the range.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start as usize..][..self.len as usize]
    }

    /// Returns the bytes from `at` on, none if there are fewer; nothing is copied.
    #[must_use]
    pub fn starting_at(mut self, at: u32) -> Self {
        self.split_off(at)
    }

    /// Keeps the first `at` bytes and returns the rest, at most all; nothing is copied.
    fn split_off(&mut self, at: u32) -> Self {
        let at = at.min(self.len);
        let rest = Self {
            bytes: Rc::clone(&self.bytes),
            start: self.start + at,
            len: self.len - at,
        };
        self.len = at;
        rest
    }
}

impl From<Rc<[u8]>> for SharedBytes {
    /// All of the bytes.
    ///
    /// # Panics
    /// With 4 GiB or more, which exceeds any cache.
    #[inline(always)] // Each file that is kept comes through here.
    fn from(bytes: Rc<[u8]>) -> Self {
        let len = u32::try_from(bytes.len()).expect("no cache holds a body of 4 GiB");
        Self {
            bytes,
            start: 0,
            len,
        }
    }
}

impl From<&[u8]> for SharedBytes {
    /// A copy of the bytes.
    ///
    /// # Panics
    /// With 4 GiB or more.
    fn from(bytes: &[u8]) -> Self {
        Rc::<[u8]>::from(bytes).into()
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes()
    }
}

/// One piece of a body.
#[derive(Clone, Debug)]
pub enum Chunk {
    /// Bytes that live as long as the program.
    Static(&'static [u8]),
    /// Bytes of this piece alone.
    Owned(Vec<u8>),
    /// Bytes shared with a cache or with other connections of the worker.
    Shared(SharedBytes),
    /// A range of a file.
    File(FileRange),
    /// A mark without bytes: everything before it must be sent at once, regardless of buffering on
    /// the way.
    Flush,
}

impl Chunk {
    /// Length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::File(range) => range.len,
            Self::Shared(range) => u64::from(range.len),
            memory => memory.bytes().len() as u64,
        }
    }

    /// Whether the piece has no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a piece in memory; empty for a file range and for a mark.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Static(bytes) => bytes,
            Self::Owned(bytes) => bytes,
            Self::Shared(range) => range.bytes(),
            Self::File(_) | Self::Flush => &[],
        }
    }

    /// Keeps the first `len` bytes and returns the rest, if any. However often a piece is split, each of its bytes
    /// is copied a few times at most.
    #[must_use]
    #[inline]
    pub fn split_off(&mut self, len: u64) -> Option<Self> {
        if self.len() <= len {
            return None;
        }
        self.split_at(len as usize)
    }

    /// Splits off the first `at` bytes of a longer piece.
    fn split_at(&mut self, at: usize) -> Option<Self> {
        let len = at as u64;
        Some(match self {
            Self::Static(bytes) => {
                let (front, rest) = bytes.split_at(at);
                *bytes = front;
                Self::Static(rest)
            }
            Self::Owned(bytes) if bytes.len() - at <= at || bytes.len() > SHARED_MAX => {
                Self::Owned(bytes.split_off(at))
            }
            Self::Owned(bytes) => {
                // The rest must not be copied each time for a peer that reads a few bytes at a time.
                let all: Rc<[u8]> = std::mem::take(bytes).into();
                let mut front = SharedBytes::from(all);
                let rest = front.split_off(at as u32);
                *self = Self::Shared(front);
                Self::Shared(rest)
            }
            Self::Shared(front) => Self::Shared(front.split_off(at as u32)),
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

    /// The first `len` bytes of the piece, or the whole piece if it is shorter.
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
            Self::Shared(mut front) => {
                let _ = front.split_off(end as u32);
                Self::Shared(front)
            }
            Self::File(range) => Self::File(FileRange { len, ..range }),
            Self::Flush => Self::Flush,
        }
    }
}

impl From<Rc<[u8]>> for Chunk {
    /// Shared bytes; see [`SharedBytes`] for the limit.
    #[inline]
    fn from(bytes: Rc<[u8]>) -> Self {
        Self::Shared(bytes.into())
    }
}

impl From<Vec<u8>> for Chunk {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Owned(bytes)
    }
}

/// The longest range of shared bytes.
const SHARED_MAX: usize = u32::MAX as usize;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_off_loses_no_byte() {
        let pieces = [
            Chunk::Static(b"abcd"),
            Chunk::Owned(b"abcd".to_vec()),
            Chunk::from(Rc::<[u8]>::from(&b"abcd"[..])),
        ];
        for mut piece in pieces {
            assert!(piece.split_off(4).is_none());
            let rest = piece.split_off(1).expect("three bytes are left");
            assert_eq!((piece.bytes(), rest.bytes()), (&b"a"[..], &b"bcd"[..]));
        }
    }

    #[test]
    fn splitting_byte_by_byte_copies_no_rest() {
        let all: Rc<[u8]> = (0..=255).collect::<Vec<u8>>().into();
        for whole in [Chunk::from(Rc::clone(&all)), Chunk::Owned(all.to_vec())] {
            let mut rest = Some(whole);
            let mut at = None;
            for byte in 0..=255 {
                let mut front = rest.take().expect("bytes are left");
                rest = front.split_off(1);
                assert_eq!(front.bytes(), [byte]);
                if byte == 0 {
                    let rest = rest.as_ref().expect("bytes are left");
                    at = Some(rest.bytes().as_ptr());
                } else if let (Some(rest), Some(at)) = (&rest, at) {
                    assert_eq!(rest.bytes().as_ptr(), at.wrapping_add(byte.into()));
                }
            }
            assert!(rest.is_none());
        }
    }

    #[test]
    fn larger_half_of_owned_bytes_is_not_copied() {
        let mut piece = Chunk::Owned(vec![1; 100]);
        let before = piece.bytes().as_ptr();
        let rest = piece.split_off(50).expect("50 bytes are left");
        assert!(matches!(rest, Chunk::Owned(_)));
        assert_eq!((piece.bytes().as_ptr(), rest.len()), (before, 50));
    }

    #[test]
    fn truncated_keeps_the_front() {
        let pieces = [
            Chunk::Static(b"abcd"),
            Chunk::Owned(b"abcd".to_vec()),
            Chunk::from(Rc::<[u8]>::from(&b"abcd"[..])),
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
