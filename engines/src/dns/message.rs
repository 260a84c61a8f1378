//! DNS messages: queries out, responses in.
//!
//! Only the header, the question and the answers of a response are read; the rest (authority, additional records)
//! is ignored. Absent: EDNS.
//!
//! Source: RFC 1035, section 4; RFC 3596; RFC 2782.

use super::event::Transport;
use super::name::Name;
use super::refused::Refused;

/// Record type of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryType {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Hosts that offer a service.
    Srv,
    /// The name of an address.
    Ptr,
}

impl QueryType {
    /// Number of the type on the wire.
    const fn code(self) -> u16 {
        match self {
            Self::A => TYPE_A,
            Self::Aaaa => TYPE_AAAA,
            Self::Srv => TYPE_SRV,
            Self::Ptr => TYPE_PTR,
        }
    }

    fn of_code(code: u16) -> Option<Self> {
        [Self::A, Self::Aaaa, Self::Srv, Self::Ptr]
            .into_iter()
            .find(|kind| kind.code() == code)
    }
}

/// Appends a query, preceded by its length if the transport needs it.
pub(super) fn encode_query(
    id: u16,
    name: &Name,
    kind: QueryType,
    transport: Transport,
    out: &mut Vec<u8>,
) {
    if transport == Transport::Tcp {
        let length = HEADER_BYTES + name.wire().len() + QUESTION_TAIL_BYTES;
        // A name has at most 257 bytes.
        out.extend((length as u16).to_be_bytes());
    }
    for word in [id, RECURSION_DESIRED, 1, 0, 0, 0] {
        out.extend(word.to_be_bytes());
    }
    out.extend_from_slice(name.wire());
    out.extend(kind.code().to_be_bytes());
    out.extend(CLASS_IN.to_be_bytes());
}

/// A response with a valid header and question.
#[derive(Debug)]
pub(super) struct Reply<'m> {
    message: &'m [u8],
    /// The number of the query.
    pub(super) id: u16,
    /// The response code, not above 5 and not 1.
    pub(super) code: u8,
    /// The answers did not fit.
    pub(super) truncated: bool,
    /// The name in the question.
    pub(super) name: Name,
    /// The type in the question.
    pub(super) kind: QueryType,
    answers: u16,
    answers_at: usize,
}

/// One record of the answers.
#[derive(Debug)]
pub(super) struct Record {
    /// Name of the record.
    pub(super) owner: Name,
    /// Its type.
    pub(super) kind: u16,
    /// Time to live, in seconds.
    pub(super) ttl_s: u32,
    /// Start of its data.
    pub(super) start: usize,
    /// End of its data.
    pub(super) end: usize,
}

impl<'m> Reply<'m> {
    /// Reads the header and the question.
    ///
    /// # Errors
    /// [`Refused`] if it is no response to a question of this engine.
    pub(super) fn parse(message: &'m [u8], transport: Transport) -> Result<Self, Refused> {
        let word = |at| word_at(message, at).ok_or(Refused::Short);
        // The whole header is present if its last word is.
        word(HEADER_BYTES - 2)?;
        let (id, flags) = (word(0)?, word(2)?);
        let truncated = flags & TRUNCATED != 0;
        let overlong = truncated && transport == Transport::Tcp;
        if flags & FLAGS_CHECKED != RESPONSE || overlong {
            return Err(Refused::Flags {
                transport,
                id,
                flags,
            });
        }
        let code = (flags & RCODE_MASK) as u8;
        if code == FORMERR || code > RCODE_MAX {
            return Err(Refused::Error {
                code,
                id,
                name: None,
            });
        }
        if word(4)? != 1 {
            return Err(Refused::Questions);
        }
        let (name, tail) = question(message)?;
        let (kind, class) = (word(tail)?, word(tail + 2)?);
        if class != CLASS_IN {
            return Err(Refused::Class(class));
        }
        let kind = QueryType::of_code(kind).ok_or(Refused::Type(kind))?;
        Ok(Self {
            message,
            id,
            code,
            truncated,
            name,
            kind,
            answers: word(6)?,
            answers_at: tail + QUESTION_TAIL_BYTES,
        })
    }

    /// The bytes of all of it.
    pub(super) fn message(&self) -> &'m [u8] {
        self.message
    }

    /// Whether it has no answers.
    pub(super) fn is_empty(&self) -> bool {
        self.answers == 0
    }

    /// The records of the answer section, as many as the header counts.
    ///
    /// # Errors
    /// One of the records is malformed.
    pub(super) fn records(&self) -> Result<Vec<Record>, Refused> {
        let mut at = self.answers_at;
        // A record has at least the bytes of its fields, so an impossible count reserves no memory.
        let room = (self.message.len() - at) / RECORD_FIELDS_BYTES;
        if usize::from(self.answers) > room {
            return Err(Refused::Short);
        }
        let mut records = Vec::with_capacity(usize::from(self.answers));
        for _ in 0..self.answers {
            let (owner, fields) = Name::read(self.message, at, self.message.len())?;
            let word = |n: usize| word_at(self.message, fields + n).ok_or(Refused::Short);
            let (kind, class) = (word(0)?, word(2)?);
            if class != CLASS_IN {
                return Err(Refused::RecordClass(class));
            }
            let ttl_s = u32::from(word(4)?) << 16 | u32::from(word(6)?);
            let start = fields + RECORD_FIELDS_BYTES;
            let end = start + usize::from(word(8)?);
            if end > self.message.len() {
                return Err(Refused::Short);
            }
            records.push(Record {
                owner,
                kind,
                // RFC 2181, section 8: the highest bit set means zero.
                ttl_s: if ttl_s > i32::MAX as u32 { 0 } else { ttl_s },
                start,
                end,
            });
            at = end;
        }
        Ok(records)
    }
}

/// The name of the question and the position of its type.
fn question(message: &[u8]) -> Result<(Name, usize), Refused> {
    let mut at = HEADER_BYTES;
    loop {
        match *message.get(at).ok_or(Refused::Short)? {
            0 => break,
            length @ 1..=63 => at += 1 + usize::from(length),
            _ => return Err(Refused::PointerInQuestion),
        }
    }
    if at == HEADER_BYTES {
        return Err(Refused::EmptyQuestion);
    }
    Name::read(message, HEADER_BYTES, at + 1)
}

/// A number of two bytes.
pub(super) fn word_at(message: &[u8], at: usize) -> Option<u16> {
    let bytes = message.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*bytes))
}

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 12;
/// Type and class of a question.
const QUESTION_TAIL_BYTES: usize = 4;
/// Type, class, time to live and length of a record.
const RECORD_FIELDS_BYTES: usize = 10;
/// Largest datagram read completely, bytes, as in nginx; a longer one is truncated.
pub const UDP_MESSAGE_BYTES_MAX: usize = 4096;

/// The internet.
const CLASS_IN: u16 = 1;
/// An IPv4 address.
pub(super) const TYPE_A: u16 = 1;
/// An alias.
pub(super) const TYPE_CNAME: u16 = 5;
/// The name of an address.
pub(super) const TYPE_PTR: u16 = 12;
/// An IPv6 address.
pub(super) const TYPE_AAAA: u16 = 28;
/// A host that offers a service.
pub(super) const TYPE_SRV: u16 = 33;

const RECURSION_DESIRED: u16 = 0x0100;
const TRUNCATED: u16 = 0x0200;
/// Response, kind of query and the three bits after "recursion available": the bits that nginx checks.
const FLAGS_CHECKED: u16 = 0xf870;
const RESPONSE: u16 = 0x8000;
const RCODE_MASK: u16 = 0x000f;
const FORMERR: u8 = 1;
/// REFUSED, the last code that concerns a name.
const RCODE_MAX: u8 = 5;
