//! Why a message of a server was refused: one variant for each fault, with its line for the log.

use core::fmt;

use super::event::{Transport, rcode_text};
use super::name::Name;

/// Reason for which a message was ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The message is truncated.
    Short,
    /// It is no response to a standard query.
    Flags {
        /// Transport of the message.
        transport: Transport,
        /// Its number.
        id: u16,
        /// Its flags.
        flags: u16,
    },
    /// The server could not read the query, or reports an error that concerns no name.
    Error {
        /// The response code.
        code: u8,
        /// Number of the message.
        id: u16,
        /// The name of the query with that number, if it is known.
        name: Option<Name>,
    },
    /// It does not repeat one question.
    Questions,
    /// The question is compressed.
    PointerInQuestion,
    /// The question is for nothing.
    EmptyQuestion,
    /// The question is of another class than IN.
    Class(u16),
    /// The question has a type that this engine never sends.
    Type(u16),
    /// The question was not sent, or not to this server.
    Unexpected(Name),
    /// The query has another number.
    Id {
        /// The number that came.
        id: u16,
        /// The number that was sent.
        expected: u16,
        /// The name in the question.
        name: Name,
    },
    /// A label is of no known kind.
    LabelType,
    /// A name leaves the message.
    NameOutside,
    /// A pointer does not lead back, or there are too many.
    PointerLoop,
    /// A name is longer than a name may be.
    NameTooLong,
    /// A record is of another class than IN.
    RecordClass(u16),
    /// A record's data is not of its type.
    Record(&'static str),
    /// A record of the address type that was not requested.
    UnexpectedRecord(&'static str),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("short DNS response"),
            Self::Flags {
                transport,
                id,
                flags,
            } => {
                write!(f, "invalid {transport} DNS response {id} fl:{flags:04X}")
            }
            Self::Error { code, id, name } => {
                let text = rcode_text(*code);
                write!(f, "DNS error ({code}: {text}), query id:{id}")?;
                match name {
                    Some(name) => write!(f, ", name:\"{name}\""),
                    None => Ok(()),
                }
            }
            Self::Questions => f.write_str("invalid number of questions in DNS response"),
            Self::PointerInQuestion => {
                f.write_str("unexpected compression pointer in DNS response")
            }
            Self::EmptyQuestion => f.write_str("zero-length domain name in DNS response"),
            Self::Class(class) => write!(f, "unknown query class {class} in DNS response"),
            Self::Type(kind) => write!(f, "unknown query type {kind} in DNS response"),
            Self::Unexpected(name) => write!(f, "unexpected DNS response for {name}"),
            Self::Id { id, expected, name } => write!(
                f,
                "wrong ident {id} in DNS response for {name}, expect {expected}"
            ),
            Self::LabelType => f.write_str("invalid label type in DNS response"),
            Self::NameOutside => f.write_str("name is out of DNS response"),
            Self::PointerLoop => f.write_str("compression pointers loop in DNS response"),
            Self::NameTooLong => f.write_str("too long name in DNS response"),
            Self::RecordClass(class) => write!(f, "unexpected RR class {class} in DNS response"),
            Self::Record(kind) => write!(f, "invalid {kind} record in DNS response"),
            Self::UnexpectedRecord(kind) => {
                write!(f, "unexpected {kind} record in DNS response")
            }
        }
    }
}

impl core::error::Error for Refused {}
