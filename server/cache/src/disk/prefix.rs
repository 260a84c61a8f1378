//! All bytes of a file before its body: binary head, key, response head, notes.

use super::error::{EncodeError, Invalid};
use super::header::Header;
use super::notes::{self, Notes};
use crate::key::CacheKey;
use crate::layout::{HEADER_BYTES, KEY_MARK, header_start};
use server_base::crc32::crc32;

/// The parsed begin of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix<'a> {
    /// The binary head.
    pub header: Header<'a>,
    /// The key.
    pub key: &'a [u8],
    /// The response head as received, with its empty line. It is empty for a response of HTTP/0.9.
    pub head: &'a [u8],
    /// Our notes; empty in a file of nginx.
    pub notes: Notes<'a>,
    /// Length of the body, bytes.
    pub body_len: u64,
}

/// Parses the begin of a file of `file_len` bytes, and verifies that it belongs to a key.
///
/// # Errors
/// The file is damaged, has another version or another key. [`Invalid::Incomplete`] if `bytes` end before the body.
pub fn parse<'a>(bytes: &'a [u8], file_len: u64, key: &CacheKey) -> Result<Prefix<'a>, Invalid> {
    let start = key.header_start();
    if file_len < start as u64 {
        return Err(Invalid::TooSmall);
    }
    let header = Header::parse(bytes)?;
    if header.crc32 != key.crc32() || usize::from(header.header_start) != start {
        return Err(Invalid::Key);
    }
    let prefix = split(bytes, file_len, header)?;
    if prefix.key == key.text() {
        Ok(prefix)
    } else {
        Err(Invalid::Key)
    }
}

/// Parses the begin of a file of `file_len` bytes with any key, which is verified by its checksum.
///
/// # Errors
/// See [`parse`].
pub fn parse_unknown(bytes: &[u8], file_len: u64) -> Result<Prefix<'_>, Invalid> {
    if file_len < header_start(0) as u64 {
        return Err(Invalid::TooSmall);
    }
    let prefix = split(bytes, file_len, Header::parse(bytes)?)?;
    if prefix.header.crc32 == crc32(prefix.key) {
        Ok(prefix)
    } else {
        Err(Invalid::Key)
    }
}

/// Splits the begin of a file at the positions of its head.
fn split<'a>(bytes: &'a [u8], file_len: u64, header: Header<'a>) -> Result<Prefix<'a>, Invalid> {
    let (start, end) = (
        usize::from(header.header_start),
        usize::from(header.body_start),
    );
    if start < header_start(0) {
        return Err(Invalid::Key);
    }
    if end < start {
        return Err(Invalid::BodyStart);
    }
    let Some(body_len) = file_len.checked_sub(end as u64) else {
        return Err(Invalid::HeadLength);
    };
    let Some(bytes) = bytes.get(..end) else {
        return Err(Invalid::Incomplete { needed: end });
    };
    let line = bytes[HEADER_BYTES..start].strip_prefix(KEY_MARK);
    let Some(key) = line.and_then(|line| line.strip_suffix(b"\n")) else {
        return Err(Invalid::Key);
    };
    let (head, notes) = notes::split(&bytes[start..])?;
    // The length of a frame is at most 16,384, of three bytes. No other head begins with 0.
    if head.first() == Some(&0) {
        return Err(Invalid::Frames);
    }
    if notes.body_len.is_some_and(|len| len != body_len) {
        return Err(Invalid::BodyLength);
    }
    Ok(Prefix {
        header,
        key,
        head,
        notes,
        body_len,
    })
}

/// Encodes the begin of a file. Positions and checksum in `header` are those of the other arguments, whatever it has.
///
/// # Errors
/// The result would be longer than 65,535 bytes, or `Vary` is too long.
pub fn encode(
    header: &Header<'_>,
    key: &CacheKey,
    head: &[u8],
    notes: Option<&Notes<'_>>,
) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes.reserve(key.text().len() + head.len() + notes::TYPICAL_BYTES);
    bytes.extend_from_slice(KEY_MARK);
    bytes.extend_from_slice(key.text());
    bytes.push(b'\n');
    bytes.extend_from_slice(head);
    if let Some(notes) = notes {
        notes.encode(&mut bytes);
    }
    let body_start = u16::try_from(bytes.len()).map_err(|_| EncodeError::HeadTooLong)?;
    let header = Header {
        crc32: key.crc32(),
        // It is less than `body_start`.
        header_start: key.header_start() as u16,
        body_start,
        ..*header
    };
    bytes[..HEADER_BYTES].copy_from_slice(&header.encode()?);
    Ok(bytes)
}
