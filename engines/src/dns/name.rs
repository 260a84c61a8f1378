//! Domain names: text, wire form and compression pointers.
//!
//! A name is stored in wire form, uncompressed and in lower case, so that equal names are equal bytes. Labels may
//! hold any byte, as in nginx. Absent: internationalized names, which callers encode first.
//!
//! Source: RFC 1035, sections 2.3.4, 3.1 and 4.1.4.

use core::fmt;
use core::net::IpAddr;

use super::message::HEADER_BYTES;
use super::refused::Refused;

/// A domain name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<[u8]>);

impl Name {
    /// Reads a name as people write it, with or without the final dot.
    ///
    /// `None` for a label of no or more than 63 bytes, for more than
    /// [`TEXT_BYTES_MAX`] bytes, and for nothing.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = text.strip_suffix(b".").unwrap_or(text);
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let mut wire = Vec::with_capacity(text.len() + 2);
        for label in text.split(|byte| *byte == b'.') {
            let length = u8::try_from(label.len()).ok()?;
            if length == 0 || length > LABEL_BYTES_MAX {
                return None;
            }
            wire.push(length);
            wire.extend(label.iter().map(u8::to_ascii_lowercase));
        }
        wire.push(0);
        Some(Self(wire.into()))
    }

    /// The name for the reverse lookup of an address.
    ///
    /// Source: RFC 1035, section 3.5; RFC 3596, section 2.5.
    #[must_use]
    pub fn of_address(address: IpAddr) -> Self {
        let mut wire = Vec::new();
        let mut label = |text: &[u8]| {
            wire.push(text.len() as u8);
            wire.extend_from_slice(text);
        };
        match address {
            IpAddr::V4(ip) => {
                for octet in ip.octets().iter().rev() {
                    label(octet.to_string().as_bytes());
                }
                label(b"in-addr");
            }
            IpAddr::V6(ip) => {
                for octet in ip.octets().iter().rev() {
                    label(&[HEX[usize::from(octet & 15)]]);
                    label(&[HEX[usize::from(octet >> 4)]]);
                }
                label(b"ip6");
            }
        }
        label(b"arpa");
        wire.push(0);
        Self(wire.into())
    }

    /// Reads the name at `at`; its own bytes end before `end`. Returns it and its end.
    ///
    /// # Errors
    /// It leaves the message, is longer than a name may be, or its pointers do
    /// not lead back.
    pub(super) fn read(message: &[u8], at: usize, end: usize) -> Result<(Self, usize), Refused> {
        let mut wire = Vec::new();
        let (mut at, mut end) = (at, end.min(message.len()));
        // Start of the name, then target of its last pointer: the next pointer must lead further back, so that none
        // is followed twice.
        let mut before = at;
        let mut resume = None;
        let mut pointers = 0;
        loop {
            let length = byte_at(message, at, end)?;
            match length {
                0 => {
                    wire.push(0);
                    return Ok((Self(wire.into()), resume.unwrap_or(at + 1)));
                }
                1..=LABEL_BYTES_MAX => {
                    let next = at + 1 + usize::from(length);
                    let label = message[..end].get(at + 1..next);
                    let label = label.ok_or(Refused::NameOutside)?;
                    // The root's byte has to fit, too.
                    if wire.len() + 1 + label.len() >= WIRE_BYTES_MAX {
                        return Err(Refused::NameTooLong);
                    }
                    wire.push(length);
                    wire.extend(label.iter().map(u8::to_ascii_lowercase));
                    at = next;
                }
                POINTER.. => {
                    let low = byte_at(message, at + 1, end)?;
                    let target = usize::from(length & !POINTER) << 8 | usize::from(low);
                    pointers += 1;
                    if target >= before || target < HEADER_BYTES || pointers > POINTERS_MAX {
                        return Err(Refused::PointerLoop);
                    }
                    resume.get_or_insert(at + 2);
                    (before, at, end) = (target, target, message.len());
                }
                _ => return Err(Refused::LabelType),
            }
        }
    }

    /// The bytes of the name in a message.
    #[must_use]
    pub fn wire(&self) -> &[u8] {
        &self.0
    }

    /// Whether it is the name of nothing, the root.
    pub(super) fn is_root(&self) -> bool {
        self.0.len() == 1
    }

    /// Puts labels, as text with dots between them, before the name.
    pub(super) fn below(labels: &[u8], name: &[u8]) -> Option<Self> {
        Self::parse(&[labels, b".", name].concat())
    }
}

/// The name as text without the final dot; other bytes than those of host
/// names and `_` as `\DDD`, so that a log can show any.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest: &[u8] = &self.0;
        let mut first = true;
        while let [length, more @ ..] = rest
            && *length != 0
        {
            let (label, next) = more.split_at(usize::from(*length));
            if !first {
                f.write_str(".")?;
            }
            first = false;
            for byte in label {
                if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'*' | b'/') {
                    write!(f, "{}", char::from(*byte))?;
                } else {
                    write!(f, "\\{byte:03}")?;
                }
            }
            rest = next;
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

fn byte_at(message: &[u8], at: usize, end: usize) -> Result<u8, Refused> {
    message[..end].get(at).copied().ok_or(Refused::NameOutside)
}

/// Bytes of a label.
const LABEL_BYTES_MAX: u8 = 63;
/// Bytes of a name as text, without the final dot. RFC 1035 counts the bytes on
/// the wire, which are two more; nginx counts these.
pub const TEXT_BYTES_MAX: usize = 255;
/// Length of the longest name on the wire: a length before the text, the root's after it.
const WIRE_BYTES_MAX: usize = TEXT_BYTES_MAX + 2;
/// Compression pointers of one name; more would not fit into the longest.
pub const POINTERS_MAX: usize = 128;
/// The two bits that mark a length byte as the first half of a pointer.
const POINTER: u8 = 0xc0;
const HEX: &[u8; 16] = b"0123456789abcdef";
