//! Protocol errors of memcached servers; each one ends the connection.

use std::fmt;

/// One way a server breaks the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The first line exceeds its limit.
    LineTooLong,
    /// The first line is neither a value nor the end; `ERROR` and the like among them.
    Response(Box<[u8]>),
    /// The value of another key: the line, and the requested key.
    Key(Box<[u8]>, Box<[u8]>),
    /// The length of the value is no number: the line, and the key.
    Length(Box<[u8]>, Box<[u8]>),
    /// With other answers pending behind it, a value is followed by something else than END.
    Trailer,
    /// With other answers pending behind it, a value exceeds `PIPELINED_VALUE_BYTES`.
    ValueTooLarge,
    /// Bytes arrived without a request. The response before them, if any, is complete.
    Unasked,
    /// The server has closed the connection before it answered.
    NoResponse,
    /// The server has closed the connection within a response.
    Truncated,
}

impl fmt::Display for ProtocolError {
    /// In nginx's words, as the log has them; text from servers is shown without controls.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LineTooLong => out.write_str("upstream sent too big header"),
            Self::Response(line) => {
                let line = line.strip_suffix(b"\r").unwrap_or(line).escape_ascii();
                write!(out, "memcached sent invalid response: \"{line}\"")
            }
            Self::Key(line, key) => of_key(out, "key", line, key),
            Self::Length(line, key) => of_key(out, "length", line, key),
            Self::Trailer => out.write_str("memcached sent invalid trailer"),
            Self::ValueTooLarge => out.write_str("memcached sent too large a value"),
            Self::Unasked => out.write_str("upstream sent data without being asked"),
            Self::NoResponse | Self::Truncated => {
                out.write_str("upstream prematurely closed connection")
            }
        }
    }
}

fn of_key(out: &mut fmt::Formatter<'_>, what: &str, line: &[u8], key: &[u8]) -> fmt::Result {
    let (line, key) = (line.escape_ascii(), key.escape_ascii());
    write!(
        out,
        "memcached sent invalid {what} in response \"{line}\" for key \"{key}\""
    )
}
