//! The key of an entry: its text, the MD5 that names its file, and the checksum in its head.
//!
//! Source: nginx documentation, `proxy_cache_key`.

use std::fmt;

use md5::{Digest, Md5};

use crate::layout::{HEADER_BYTES, KEY_MARK, header_start};
use server_base::crc32::crc32;

/// Names an entry and its file: the MD5 of a key, or of a key and the request fields of a variant.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub [u8; ID_BYTES]);

/// Bytes of an [`EntryId`].
pub const ID_BYTES: usize = 16;
/// Length of a file's name, digits.
pub const NAME_BYTES: usize = 2 * ID_BYTES;
/// Maximum length of a key in bytes: the head's 16-bit position of the response is behind it.
pub const KEY_BYTES_MAX: usize = u16::MAX as usize - HEADER_BYTES - KEY_MARK.len() - 1;

impl EntryId {
    /// Returns the name of the file: 32 lower-case hexadecimal digits.
    #[must_use]
    pub fn name(&self) -> [u8; NAME_BYTES] {
        let mut name = [0; NAME_BYTES];
        for (pair, byte) in name.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        name
    }

    /// Parses the name of a file; `None` unless it is 32 lower-case hexadecimal digits.
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        if name.len() != NAME_BYTES {
            return None;
        }
        let mut id = [0; ID_BYTES];
        for (byte, pair) in id.iter_mut().zip(name.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(id))
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.name()).unwrap_or_default())
    }
}

/// The key of a request in a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheKey {
    text: Box<[u8]>,
    id: EntryId,
    crc32: u32,
}

/// A key is longer than [`KEY_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTooLong;

impl CacheKey {
    /// Makes a key of its text.
    ///
    /// # Errors
    /// The text is longer than [`KEY_BYTES_MAX`].
    pub fn new(text: impl Into<Box<[u8]>>) -> Result<Self, KeyTooLong> {
        let text = text.into();
        if text.len() > KEY_BYTES_MAX {
            return Err(KeyTooLong);
        }
        Ok(Self {
            id: entry_id(&text),
            crc32: crc32(&text),
            text,
        })
    }

    /// Returns its text.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the MD5 of its text: the entry for requests that no variant differs for.
    #[must_use]
    pub fn id(&self) -> EntryId {
        self.id
    }

    /// Returns the CRC-32 of its text.
    #[must_use]
    pub fn crc32(&self) -> u32 {
        self.crc32
    }

    /// Returns the position of the response head in a file with this key.
    #[must_use]
    pub fn header_start(&self) -> usize {
        header_start(self.text.len())
    }
}

/// Returns the id of a key with this text.
pub(crate) fn entry_id(text: &[u8]) -> EntryId {
    EntryId(Md5::digest(text).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_as_they_are_written() {
        let key = CacheKey::new(*b"http://cache.test/a").expect("it is short");
        let name = key.id().name();
        assert_eq!(&name, b"77cd5775d52dd246fff48d13f364e2c6");
        assert_eq!(EntryId::parse(&name), Some(key.id()));
        assert_eq!(format!("{:?}", key.id()).as_bytes(), name);
        for name in [
            &b"77CD5775d52dd246fff48d13f364e2c6"[..],
            b"77cd5775d52dd246fff48d13f364e2c",
            b"77cd5775d52dd246fff48d13f364e2c66",
            b"g7cd5775d52dd246fff48d13f364e2c6",
            b"",
        ] {
            assert_eq!(EntryId::parse(name), None);
        }
    }

    #[test]
    fn a_key_ends_at_its_limit() {
        let key = |len: usize| CacheKey::new(vec![b'a'; len]);
        for len in [KEY_BYTES_MAX - 1, KEY_BYTES_MAX] {
            let start = key(len).map(|key| key.header_start());
            assert_eq!(start, Ok(len + 343));
        }
        assert_eq!(KEY_BYTES_MAX + 343, 65535);
        assert_eq!(key(KEY_BYTES_MAX + 1), Err(KeyTooLong));
    }
}
