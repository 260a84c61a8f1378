//! A format as a matcher of lines: it finds the values of a few variables and verifies the rest of the line.
//!
//! A value ends at the first byte of the text behind its variable, if the value cannot have that byte. This holds for numbers,
//! addresses, times and quoted values with escapes. Other values are free: their end is searched, and searched further right if the
//! rest of the line does not match. So a client cannot forge fields behind a user agent, if all later fields are exact.

use std::ops::Range;

use memchr::memmem::Finder;

use super::format::{Escape, Format, Part};

/// Fields that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The client's address.
    Client,
    /// A round-trip time.
    Rtt,
    /// `$connection_requests`.
    Requests,
    /// `$realip_remote_addr`.
    Peer,
    /// `$proxy_protocol_addr`.
    ProxyProtocol,
    /// A value of the user, see `Field::with_value`.
    Value,
}

/// Number of slots.
pub(super) const SLOTS: usize = 6;

/// Places of the fields in a line; `None` for a field without a place in the format.
pub(super) type Fields = [Option<Range<usize>>; SLOTS];

/// Attempts to place free values of one line. A line that needs more is damaged.
pub(super) const ATTEMPTS_MAX: u32 = 10_000;

/// A compiled format.
#[derive(Debug)]
pub(super) struct Pattern {
    begin: Vec<u8>,
    values: Vec<Value>,
}

/// A variable and the text behind it.
#[derive(Debug)]
struct Value {
    slot: Option<Slot>,
    class: Class,
    text: Vec<u8>,
    end: End,
}

/// How the end of a value is found.
#[derive(Debug)]
enum End {
    /// At the end of the line.
    Line,
    /// At the first byte of the text, which the value cannot have.
    Byte,
    /// At the first quote that has no backslash.
    JsonQuote,
    /// At an occurrence of the text: the first after which the rest of the line matches.
    Free(Box<Finder<'static>>),
}

/// Bytes of a variable's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Digits, `.` and `-`.
    Number,
    /// Letters, digits and `.:-_%/`.
    Address,
    /// No spaces, quotes and brackets.
    Word,
    /// `$time_local`: no quotes and brackets.
    Time,
    /// Anything that the escaping leaves.
    Text,
}

impl Class {
    fn of(variable: &str) -> Self {
        match variable {
            "status"
            | "body_bytes_sent"
            | "bytes_sent"
            | "connection"
            | "connection_requests"
            | "connection_time"
            | "msec"
            | "request_length"
            | "request_time"
            | "pid"
            | "remote_port"
            | "server_port"
            | "connections_active" => Self::Number,
            "remote_addr" | "realip_remote_addr" | "server_addr" => Self::Address,
            "time_iso8601" | "request_id" | "scheme" | "pipe" => Self::Word,
            "time_local" => Self::Time,
            name if name.starts_with("tcpinfo_") => Self::Number,
            _ => Self::Text,
        }
    }

    /// Whether values may have a byte.
    fn permits(self, byte: u8, escape: Escape) -> bool {
        match self {
            Self::Number => byte.is_ascii_digit() || matches!(byte, b'.' | b'-'),
            Self::Address => byte.is_ascii_alphanumeric() || b".:-_%/".contains(&byte),
            Self::Word => byte.is_ascii_graphic() && !b"\"'[]{}|,;".contains(&byte),
            Self::Time => (b' '..0x7f).contains(&byte) && !b"\"'[]{}|,;".contains(&byte),
            // The start of an escape is a backslash, which a text may begin with as well.
            Self::Text => match escape {
                Escape::Default => (b' '..0x7f).contains(&byte) && byte != b'"',
                Escape::Json => byte >= b' ',
                Escape::None => true,
            },
        }
    }
}

impl Pattern {
    /// Compiles a format; `slot` returns the slot of a variable.
    ///
    /// # Errors
    /// A sentence: a field that is read has a neighbour without a separator.
    pub(super) fn compile(
        format: &Format,
        slot: impl Fn(&str) -> Option<Slot>,
    ) -> Result<Self, String> {
        let mut begin = Vec::new();
        let mut values: Vec<Value> = Vec::new();
        let mut taken = [false; SLOTS];
        let mut last = "";
        for part in &format.parts {
            match part {
                Part::Text(text) => match values.last_mut() {
                    Some(value) => value.text.extend_from_slice(text),
                    None => begin.extend_from_slice(text),
                },
                Part::Variable(name) => {
                    // If a variable is repeated, its first value is read.
                    let own = slot(name).filter(|slot| !taken[*slot as usize]);
                    own.into_iter().for_each(|slot| taken[slot as usize] = true);
                    let before = values.last_mut().filter(|value| value.text.is_empty());
                    match before {
                        Some(before) if own.is_some() || before.slot.is_some() => {
                            return Err(format!(
                                "\"${last}\" and \"${name}\" follow each other without a separator"
                            ));
                        }
                        // Neither is read: one value.
                        Some(before) => before.class = Class::Text,
                        None => values.push(Value {
                            slot: own,
                            class: Class::of(name),
                            text: Vec::new(),
                            end: End::Line,
                        }),
                    }
                    last = name;
                }
            }
        }
        for value in &mut values {
            value.end = End::of(value, format.escape);
        }
        Ok(Self { begin, values })
    }

    /// Finds the fields of a line without its end. Returns false if the line does not have the format.
    pub(super) fn find(&self, line: &[u8], fields: &mut Fields) -> bool {
        let mut attempts = ATTEMPTS_MAX;
        let begin = self.begin.len();
        line.starts_with(&self.begin)
            && self.find_from(line, (begin, 0), fields, &mut attempts) == Some(true)
    }

    /// Matches values from number `next` on at `at`. `None` if the attempts are used up.
    fn find_from(
        &self,
        line: &[u8],
        (mut at, mut next): (usize, usize),
        fields: &mut Fields,
        attempts: &mut u32,
    ) -> Option<bool> {
        while let Some(value) = self.values.get(next) {
            let rest = &line[at..];
            let end = match &value.end {
                End::Line => Some(rest.len()),
                End::Byte => memchr::memchr(value.text[0], rest),
                End::JsonQuote => quote(rest),
                End::Free(finder) => {
                    return self.find_free(line, (at, next), finder, fields, attempts);
                }
            };
            let Some(end) = end.filter(|end| value.accepts(rest, *end)) else {
                return Some(false);
            };
            value.keep(at..at + end, fields);
            at += end + value.text.len();
            next += 1;
        }
        Some(at == line.len())
    }

    /// Tries ends of a free value from left to right.
    fn find_free(
        &self,
        line: &[u8],
        (at, next): (usize, usize),
        finder: &Finder<'_>,
        fields: &mut Fields,
        attempts: &mut u32,
    ) -> Option<bool> {
        let value = &self.values[next];
        let mut from = at;
        while let Some(found) = finder.find(&line[from..]) {
            *attempts = attempts.checked_sub(1)?;
            let end = from + found;
            let behind = (end + value.text.len(), next + 1);
            if self.find_from(line, behind, fields, attempts)? {
                value.keep(at..end, fields);
                return Some(true);
            }
            from = end + 1;
        }
        Some(false)
    }
}

impl End {
    fn of(value: &Value, escape: Escape) -> Self {
        match value.text.first() {
            None => Self::Line,
            Some(first) if !value.class.permits(*first, escape) => Self::Byte,
            Some(b'"') if escape == Escape::Json => Self::JsonQuote,
            Some(_) => Self::Free(Box::new(Finder::new(&value.text).into_owned())),
        }
    }
}

impl Value {
    /// Whether `rest` has the text of this value at `end`, and before it a value of its class.
    fn accepts(&self, rest: &[u8], end: usize) -> bool {
        // Other classes are exact enough by their end.
        let is_class = self.class != Class::Number
            || rest[..end]
                .iter()
                .all(|byte| Class::Number.permits(*byte, Escape::None));
        is_class && rest[end..].starts_with(&self.text)
    }

    fn keep(&self, place: Range<usize>, fields: &mut Fields) {
        if let Some(slot) = self.slot {
            fields[slot as usize] = Some(place);
        }
    }
}

/// The first quote without a backslash before it.
pub(super) fn quote(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let found = at + memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[found] == b'"' {
            return Some(found);
        }
        // The byte behind a backslash ends nothing.
        at = found + 2;
    }
}

#[cfg(test)]
mod tests;
