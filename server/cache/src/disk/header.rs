//! The binary head at the begin of a file.
//!
//! Absent: verification against a key and the length of the file, which is in `prefix.rs`.

use super::error::{EncodeError, Invalid};
use crate::key::{EntryId, ID_BYTES};
use crate::layout::HEADER_BYTES;

/// The version of the format: nginx ignores files of other versions.
pub const VERSION: u64 = 5;
/// Maximum length of a stored entity tag, bytes; longer ones are left out.
pub const ETAG_BYTES_MAX: usize = 128;
/// Maximum length of a stored `Vary`, bytes; responses with a longer one cannot be stored.
pub const VARY_BYTES_MAX: usize = 128;

const VALID: usize = 8;
const UPDATING: usize = 16;
const ERROR: usize = 24;
const LAST_MODIFIED: usize = 32;
const DATE: usize = 40;
const CRC32: usize = 48;
const VALID_MS: usize = 52;
const HEADER_START: usize = 54;
const BODY_START: usize = 56;
const ETAG_LEN: usize = 58;
const ETAG: usize = 59;
const VARY_LEN: usize = 187;
const VARY: usize = 188;
const VARIANT: usize = 316;

/// The binary head of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header<'a> {
    /// End of freshness, seconds since 1970.
    pub valid_s: i64,
    /// Seconds after `valid_s` for which the entry may be used while it is updated.
    pub updating_s: i64,
    /// Seconds after `valid_s` for which the entry may be used if the server fails.
    pub error_s: i64,
    /// `Last-Modified`, seconds since 1970; -1 if there is none.
    pub last_modified_s: i64,
    /// Time of the response or of its last validation, seconds since 1970. In a file with notes it is earlier by the age of
    /// the response at that time.
    pub date_s: i64,
    /// CRC-32 of the key.
    pub crc32: u32,
    /// Milliseconds of `valid_s`; nginx writes 0.
    pub valid_ms: u16,
    /// Position of the response head, bytes.
    pub header_start: u16,
    /// Position of the body, bytes.
    pub body_start: u16,
    /// `ETag`; empty if there is none or it is longer than [`ETAG_BYTES_MAX`].
    pub etag: &'a [u8],
    /// All values of `Vary`; empty if there is none.
    pub vary: &'a [u8],
    /// The id of the variant of the stored request ([`crate::vary::variant_id`]), if there is a `Vary`.
    pub variant: EntryId,
}

impl<'a> Header<'a> {
    /// Parses the head of a file.
    ///
    /// # Errors
    /// The bytes are too few, their version is another, or a length is impossible.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Invalid> {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(Invalid::Incomplete {
                needed: HEADER_BYTES,
            });
        };
        let version = u64::from_le_bytes(array(bytes, 0));
        if version != VERSION {
            return Err(Invalid::Version(version));
        }
        let text = |len_at: usize, at: usize, max: usize| {
            let len = usize::from(bytes[len_at]);
            (len <= max).then(|| &bytes[at..at + len])
        };
        let signed = |at: usize| i64::from_le_bytes(array(bytes, at));
        let short = |at: usize| u16::from_le_bytes(array(bytes, at));
        Ok(Self {
            valid_s: signed(VALID),
            updating_s: signed(UPDATING),
            error_s: signed(ERROR),
            last_modified_s: signed(LAST_MODIFIED),
            date_s: signed(DATE),
            crc32: u32::from_le_bytes(array(bytes, CRC32)),
            valid_ms: short(VALID_MS),
            header_start: short(HEADER_START),
            body_start: short(BODY_START),
            etag: text(ETAG_LEN, ETAG, ETAG_BYTES_MAX).ok_or(Invalid::EtagLength)?,
            vary: text(VARY_LEN, VARY, VARY_BYTES_MAX).ok_or(Invalid::VaryLength)?,
            variant: EntryId(array::<ID_BYTES>(bytes, VARIANT)),
        })
    }

    /// Encodes the head. An entity tag that is too long is left out, as in nginx.
    ///
    /// # Errors
    /// `vary` is longer than [`VARY_BYTES_MAX`].
    pub fn encode(&self) -> Result<[u8; HEADER_BYTES], EncodeError> {
        if self.vary.len() > VARY_BYTES_MAX {
            return Err(EncodeError::VaryTooLong);
        }
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &VERSION.to_le_bytes());
        put(VALID, &self.valid_s.to_le_bytes());
        put(UPDATING, &self.updating_s.to_le_bytes());
        put(ERROR, &self.error_s.to_le_bytes());
        put(LAST_MODIFIED, &self.last_modified_s.to_le_bytes());
        put(DATE, &self.date_s.to_le_bytes());
        put(CRC32, &self.crc32.to_le_bytes());
        put(VALID_MS, &self.valid_ms.to_le_bytes());
        put(HEADER_START, &self.header_start.to_le_bytes());
        put(BODY_START, &self.body_start.to_le_bytes());
        if self.etag.len() <= ETAG_BYTES_MAX {
            put(ETAG_LEN, &[self.etag.len() as u8]);
            put(ETAG, self.etag);
        }
        if !self.vary.is_empty() {
            put(VARY_LEN, &[self.vary.len() as u8]);
            put(VARY, self.vary);
            put(VARIANT, &self.variant.0);
        }
        Ok(bytes)
    }

    /// Whether `newer`, made from this entry, may replace this head in its file: the response and the positions behind it
    /// are unchanged. Otherwise another worker has replaced the file.
    #[must_use]
    pub fn may_update(&self, newer: &Self) -> bool {
        let same = |header: &Self| {
            let positions = (header.header_start, header.body_start);
            (header.last_modified_s, header.crc32, positions)
        };
        same(self) == same(newer)
    }
}

/// Returns the bytes at a position of the head.
fn array<const N: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_verified_at_their_limits() {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = 5;
        for (len, error) in [(127, None), (128, None), (129, Some(Invalid::EtagLength))] {
            bytes[ETAG_LEN] = len;
            assert_eq!(Header::parse(&bytes).err(), error);
        }
        bytes[ETAG_LEN] = 0;
        for (len, error) in [(127, None), (128, None), (129, Some(Invalid::VaryLength))] {
            bytes[VARY_LEN] = len;
            assert_eq!(Header::parse(&bytes).err(), error);
        }
        let text = [b'x'; 129];
        for len in [127, 128, 129] {
            let header = Header {
                etag: &text[..len],
                vary: &text[..128],
                ..Header::default()
            };
            let bytes = header.encode().expect("the values of Vary fit");
            let found = Header::parse(&bytes).expect("it is a head").etag.len();
            assert_eq!(found, if len > 128 { 0 } else { len });
        }
        let header = Header {
            vary: &text,
            ..Header::default()
        };
        assert_eq!(header.encode(), Err(EncodeError::VaryTooLong));
    }

    #[test]
    fn another_version_or_a_short_head_is_refused() {
        let bytes = Header::default().encode().expect("it is empty");
        assert_eq!(Header::parse(&bytes), Ok(Header::default()));
        let needed = Invalid::Incomplete { needed: 336 };
        assert_eq!(Header::parse(&bytes[..335]), Err(needed));
        for (at, version) in [(0, 4), (0, 6)] {
            let mut bytes = bytes;
            bytes[at] = version;
            let error = Invalid::Version(u64::from(version));
            assert_eq!(Header::parse(&bytes), Err(error));
        }
    }

    #[test]
    fn a_head_is_updated_only_for_the_same_response() {
        let old = Header {
            last_modified_s: 1,
            crc32: 2,
            header_start: 3,
            body_start: 4,
            ..Header::default()
        };
        let newer = Header {
            valid_s: 9,
            date_s: 8,
            etag: b"\"2\"",
            ..old
        };
        assert!(old.may_update(&newer));
        for other in [
            Header {
                last_modified_s: 2,
                ..newer
            },
            Header { crc32: 3, ..newer },
            Header {
                header_start: 4,
                ..newer
            },
            Header {
                body_start: 5,
                ..newer
            },
        ] {
            assert!(!old.may_update(&other));
        }
    }
}
