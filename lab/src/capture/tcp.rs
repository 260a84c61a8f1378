//! The header of TCP, with its options.
//!
//! Source: RFC 9293 section 3.1, RFC 7323, RFC 2018.

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) from_port: u16,
    pub(super) to_port: u16,
    pub(super) sequence: u32,
    /// Meaningful with [`Header::ACK`] alone.
    pub(super) acknowledged: u32,
    pub(super) flags: u8,
    pub(super) window: u16,
    /// Length with options, bytes.
    pub(super) bytes: usize,
    pub(super) options: Options,
}

/// Options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// The largest payload that its sender takes.
    pub(super) segment_bytes: Option<u16>,
    /// The shift of its sender's windows.
    pub(super) window_scale: Option<u8>,
    /// Whether it has timestamps, which take 12 bytes of each segment.
    pub(super) has_timestamps: bool,
    /// Number of SACK blocks.
    pub(super) sack_blocks: u8,
    /// Whether the capture has only a part of them.
    pub(super) are_cut: bool,
}

impl Header {
    pub(super) const FIN: u8 = 1;
    pub(super) const SYN: u8 = 2;
    pub(super) const RST: u8 = 4;
    pub(super) const ACK: u8 = 16;

    /// Parses a header; `None` if it is cut off or invalid.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let fixed: &[u8; 20] = bytes.first_chunk()?;
        let two = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let four = |at: usize| u32::from(two(at)) << 16 | u32::from(two(at + 2));
        let length = usize::from(fixed[12] >> 4) * 4;
        if length < fixed.len() {
            return None;
        }
        // Of a capture with short packets the options may be missing.
        let options = bytes.get(fixed.len()..length.min(bytes.len()))?;
        Some(Self {
            from_port: two(0),
            to_port: two(2),
            sequence: four(4),
            acknowledged: four(8),
            flags: fixed[13],
            window: two(14),
            bytes: length,
            options: Options {
                are_cut: bytes.len() < length,
                ..Options::parse(options)
            },
        })
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

impl Options {
    fn parse(mut bytes: &[u8]) -> Self {
        let mut found = Self::default();
        loop {
            let (kind, length) = match *bytes {
                [] | [END, ..] => return found,
                [NOTHING, ..] => {
                    bytes = &bytes[1..];
                    continue;
                }
                [kind, length, ..] => (kind, usize::from(length)),
                [_] => return found,
            };
            let Some(value) = bytes.get(2..length) else {
                return found;
            };
            match (kind, value) {
                (SEGMENT_SIZE, [high, low]) => {
                    found.segment_bytes = Some(u16::from_be_bytes([*high, *low]));
                }
                // Larger shifts count as 14 (RFC 7323 section 2.3).
                (WINDOW_SCALE, [shift]) => found.window_scale = Some((*shift).min(14)),
                (TIMESTAMPS, value) => found.has_timestamps = value.len() == 8,
                (SACK, blocks) => found.sack_blocks = (blocks.len() / 8) as u8,
                _ => {}
            }
            bytes = &bytes[length..];
        }
    }
}

const END: u8 = 0;
const NOTHING: u8 = 1;
const SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
