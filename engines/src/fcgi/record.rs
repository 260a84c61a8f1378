//! Records: their headers, in both directions.
//!
//! ```text
//! version  type  request id  content length  padding length  reserved   content, padding
//!    1       1        2             2               1            1
//! ```
//!
//! Source: FastCGI Specification 1.0 section 3.3.

use super::ProtocolError;

/// Types of records that a client sends.
pub(super) const BEGIN_REQUEST: u8 = 1;
pub(super) const PARAMS: u8 = 4;
pub(super) const STDIN: u8 = 5;
/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 8;
/// Most bytes of a record's content.
pub(super) const RECORD_BYTES: usize = 0xffff;
/// Bytes of the content of END_REQUEST.
pub(super) const END_REQUEST_BYTES: u16 = 8;
/// Contents are padded to a multiple of this, as the specification recommends.
const ALIGNMENT: usize = 8;
const VERSION: u8 = 1;
/// The only request id.
const REQUEST_ID: [u8; 2] = [0, 1];

/// Types of records that a client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordType {
    EndRequest,
    Stdout,
    Stderr,
}

/// Decodes records that come in any pieces.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decoder {
    /// Between records, or in a header with `len` received bytes.
    Header { bytes: [u8; HEADER_BYTES], len: u8 },
    /// `left` is never 0.
    Content {
        of: RecordType,
        left: u16,
        padding: u8,
    },
    /// `left` is never 0.
    Padding { left: u8 },
}

/// A part of a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// A part of a header, or padding.
    Nothing,
    /// A header: the type and the length of the content, which may be 0.
    Begin(RecordType, u16),
    /// A piece of the content, never empty, and the number of content bytes behind it.
    Content(RecordType, &'a [u8], u16),
}

impl Default for Decoder {
    fn default() -> Self {
        Self::Header {
            bytes: [0; HEADER_BYTES],
            len: 0,
        }
    }
}

impl Decoder {
    /// Whether no part of a record is pending, padding included.
    pub(super) fn is_between_records(&self) -> bool {
        matches!(self, Self::Header { len: 0, .. })
    }

    /// Whether the next byte belongs to a header.
    pub(super) fn is_in_header(&self) -> bool {
        matches!(self, Self::Header { .. })
    }

    /// Decodes a part of a record at the start of `input`, which is not empty. Returns its length in bytes; never 0.
    pub(super) fn decode<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<(usize, Part<'a>), ProtocolError> {
        match self {
            Self::Header { bytes, len } => {
                let known = usize::from(*len);
                let used = input.len().min(HEADER_BYTES - known);
                bytes[known..known + used].copy_from_slice(&input[..used]);
                *len += used as u8;
                let part = self.header()?;
                Ok((used, part))
            }
            Self::Content { of, left, padding } => {
                let used = input.len().min(usize::from(*left));
                let (of, padding) = (*of, *padding);
                *left -= used as u16;
                let left = *left;
                if left == 0 {
                    *self = Self::padding(padding);
                }
                Ok((used, Part::Content(of, &input[..used], left)))
            }
            Self::Padding { left } => {
                let used = input.len().min(usize::from(*left));
                *self = Self::padding(*left - used as u8);
                Ok((used, Part::Nothing))
            }
        }
    }

    /// Checks the received part of a header; a fault shows at its first byte.
    fn header<'a>(&mut self) -> Result<Part<'a>, ProtocolError> {
        let Self::Header { bytes, len } = self else {
            return Ok(Part::Nothing);
        };
        let known = &bytes[..usize::from(*len)];
        let of = check(known)?;
        let ([_, _, _, _, high, low, padding, _], Some(of), 8) = (*bytes, of, known.len()) else {
            return Ok(Part::Nothing);
        };
        let left = u16::from_be_bytes([high, low]);
        *self = match left {
            0 => Self::padding(padding),
            left => Self::Content { of, left, padding },
        };
        Ok(Part::Begin(of, left))
    }

    /// Returns the range of STDOUT content at the start of `input`, behind padding and at most one header, as far
    /// as it has arrived. `None` if other parts must be handled first. The bytes before the end of the range are
    /// decoded then.
    pub(super) fn stdout(&mut self, input: &[u8]) -> Option<(usize, usize)> {
        let mut next = *self;
        let mut at = 0;
        loop {
            let rest = &input[at..];
            if rest.is_empty() {
                return None;
            }
            match next.decode(rest).ok()? {
                (used, Part::Nothing) => at += used,
                (_, Part::Begin(RecordType::Stdout, 0)) => return None,
                (used, Part::Begin(RecordType::Stdout, _)) => at += used,
                (used, Part::Content(RecordType::Stdout, ..)) => {
                    *self = next;
                    return Some((at, at + used));
                }
                _ => return None,
            }
        }
    }

    fn padding(left: u8) -> Self {
        match left {
            0 => Self::default(),
            left => Self::Padding { left },
        }
    }

    pub(super) fn check_invariants(&self) {
        match *self {
            Self::Header { len, .. } => assert!(usize::from(len) < HEADER_BYTES),
            Self::Content { left, .. } => assert!(left > 0, "a content is complete"),
            Self::Padding { left } => assert!(left > 0, "a padding is complete"),
        }
    }
}

/// Checks the first bytes of a header; returns the type if it has arrived.
fn check(known: &[u8]) -> Result<Option<RecordType>, ProtocolError> {
    if let Some(&version) = known.first()
        && version != VERSION
    {
        return Err(ProtocolError::Version(version));
    }
    let of = match known.get(1) {
        None => return Ok(None),
        Some(3) => RecordType::EndRequest,
        Some(6) => RecordType::Stdout,
        Some(7) => RecordType::Stderr,
        Some(&other) => return Err(ProtocolError::RecordType(other)),
    };
    match (known.get(2), known.get(3)) {
        (Some(&high), _) if high != REQUEST_ID[0] => Err(ProtocolError::RequestIdHigh(high)),
        (_, Some(&low)) if low != REQUEST_ID[1] => Err(ProtocolError::RequestIdLow(low)),
        _ => Ok(Some(of)),
    }
}

/// The header of an outgoing record, and the number of padding bytes behind its content.
pub(super) fn header(of: u8, content_bytes: usize) -> ([u8; HEADER_BYTES], usize) {
    debug_assert!(content_bytes <= RECORD_BYTES, "the content fits");
    let padding = content_bytes.next_multiple_of(ALIGNMENT) - content_bytes;
    let [high, low] = (content_bytes as u16).to_be_bytes();
    let [id_high, id_low] = REQUEST_ID;
    let bytes = [VERSION, of, id_high, id_low, high, low, padding as u8, 0];
    (bytes, padding)
}
