//! Why a file cannot be served, and why a response cannot be stored.

use std::fmt;

/// Why a file cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// More bytes of the file must be read.
    Incomplete {
        /// Bytes from the begin of the file.
        needed: usize,
    },
    /// The file ends before its response head.
    TooSmall,
    /// The format has another version.
    Version(u64),
    /// The key is another, or damaged.
    Key,
    /// The body begins before the response head.
    BodyStart,
    /// The response head is in frames of HTTP/2, as stored by nginx with `proxy_http_version 2`.
    Frames,
    /// The file ends before its body.
    HeadLength,
    /// The length of the entity tag is impossible.
    EtagLength,
    /// The length of `Vary` is impossible.
    VaryLength,
    /// Our notes are damaged.
    Notes,
    /// The body does not have its noted length.
    BodyLength,
}

impl fmt::Display for Invalid {
    /// Writes the text that follows `cache file "..."` in the log, in the words of nginx if it has such a message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Incomplete { .. } => "has too long header",
            Self::TooSmall => "is too small",
            Self::Version(_) => "version mismatch",
            Self::Key => "has md5 collision",
            Self::BodyStart => "has incorrect body start",
            Self::Frames => "has a head in frames of HTTP/2",
            Self::HeadLength => "is truncated in its header",
            Self::EtagLength => "has incorrect etag length",
            Self::VaryLength => "has incorrect vary length",
            Self::Notes => "has damaged notes",
            Self::BodyLength => "is truncated",
        })
    }
}

/// Why a response cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// Key, head and notes are longer than 65,535 bytes together.
    HeadTooLong,
    /// `Vary` is longer than [`super::VARY_BYTES_MAX`].
    VaryTooLong,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HeadTooLong => "the response head is too long for a cache",
            Self::VaryTooLong => "\"Vary\" is too long for a cache",
        })
    }
}
