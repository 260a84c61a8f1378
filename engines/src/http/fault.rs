//! Errors of a request, one variant for each, and the response status of each.
//!
//! [`Fault::status`] is the only place that maps an error to a response status; [`Fault::message`] is the text for
//! the error log, worded like nginx's. An error always ends the connection after its response.

use std::fmt;

/// One way a peer misbehaves in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The request line is malformed (RFC 9112 section 3).
    BadRequestLine,
    /// A byte of the method is not an upper-case letter, `_` or `-`.
    BadMethod,
    /// The method does not end within the header buffers.
    MethodTooLong,
    /// The request line does not fit the header buffers.
    UriTooLong,
    /// The path cannot be decoded, or leaves the root.
    BadUri,
    /// The version is malformed, or HTTP/0.9 is switched off.
    BadVersion,
    /// The major version is not 1.
    UnsupportedVersion,
    /// An HTTP/0.9 request with a method other than GET.
    MethodInHttp09,
    /// A header line is malformed (RFC 9112 section 5).
    BadHeader,
    /// A header line, or all of them, do not fit the header buffers.
    HeaderTooLarge,
    /// More header lines than `max_headers`.
    TooManyHeaders,
    /// A field that may come once came twice.
    DuplicateHeader,
    /// HTTP/1.1 without Host (RFC 9112 section 3.2).
    MissingHost,
    /// More than one Host field.
    DuplicateHost,
    /// Host, or the authority of the target, is not a host.
    BadHost,
    /// Content-Length is not a number (RFC 9112 section 6.3).
    BadContentLength,
    /// More than one Content-Length field.
    DuplicateContentLength,
    /// Content-Length together with Transfer-Encoding.
    LengthAndEncoding,
    /// Transfer-Encoding in a request before HTTP/1.1.
    EncodingInHttp10,
    /// A transfer coding other than "chunked".
    UnknownEncoding,
    /// More than one Transfer-Encoding field.
    DuplicateEncoding,
    /// The TRACE method.
    TraceForbidden,
    /// The CONNECT method.
    ConnectForbidden,
    /// A plain HTTP request on a TLS port.
    PlainToTls,
    /// Chunk framing is broken (RFC 9112 section 7.1).
    BadChunk,
    /// Chunk extensions exceed their limit.
    ChunkExtensionTooLong,
    /// A trailer line is malformed (RFC 9112 section 7.1.2).
    BadTrailer,
    /// The trailer section exceeds the header limits.
    TrailerTooLarge,
}

impl Fault {
    /// The status to answer with. 494 and 497 are nginx's internal codes, for
    /// `error_page`; they are sent to the peer as 400.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::MethodTooLong | Self::UriTooLong => 414,
            Self::UnsupportedVersion => 505,
            Self::HeaderTooLarge | Self::TooManyHeaders => 494,
            Self::UnknownEncoding => 501,
            Self::TraceForbidden | Self::ConnectForbidden => 405,
            Self::PlainToTls => 497,
            // Listed one by one, so that a new variant does not become 400 by accident.
            Self::BadRequestLine
            | Self::BadMethod
            | Self::BadUri
            | Self::BadVersion
            | Self::MethodInHttp09
            | Self::BadHeader
            | Self::DuplicateHeader
            | Self::MissingHost
            | Self::DuplicateHost
            | Self::BadHost
            | Self::BadContentLength
            | Self::DuplicateContentLength
            | Self::LengthAndEncoding
            | Self::EncodingInHttp10
            | Self::DuplicateEncoding
            | Self::BadChunk
            | Self::ChunkExtensionTooLong
            | Self::BadTrailer
            | Self::TrailerTooLarge => 400,
        }
    }

    /// The text for the error log.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::BadRequestLine | Self::BadUri | Self::BadVersion => "client sent invalid request",
            Self::BadMethod => "client sent invalid method",
            Self::MethodTooLong => "client sent too long method",
            Self::UriTooLong => "client sent too long URI",
            Self::UnsupportedVersion => "client sent invalid version",
            Self::MethodInHttp09 => "client sent invalid method in HTTP/0.9 request",
            Self::BadHeader => "client sent invalid header line",
            Self::HeaderTooLarge => "client sent too long header line",
            Self::TooManyHeaders => "client sent too many header lines",
            Self::DuplicateHeader => "client sent duplicate header line",
            Self::MissingHost => "client sent HTTP/1.1 request without \"Host\" header",
            Self::DuplicateHost => "client sent duplicate host header",
            Self::BadHost => "client sent invalid host header",
            Self::BadContentLength => "client sent invalid \"Content-Length\" header",
            Self::DuplicateContentLength => "client sent duplicate \"Content-Length\" header",
            Self::LengthAndEncoding => {
                "client sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time"
            }
            Self::EncodingInHttp10 => {
                "client sent HTTP/1.0 request with \"Transfer-Encoding\" header"
            }
            Self::UnknownEncoding => "client sent unknown \"Transfer-Encoding\"",
            Self::DuplicateEncoding => "client sent duplicate \"Transfer-Encoding\" header",
            Self::TraceForbidden => "client sent TRACE method",
            Self::ConnectForbidden => "client sent CONNECT method",
            Self::PlainToTls => "client sent plain HTTP request to HTTPS port",
            Self::BadChunk => "client sent invalid chunked body",
            Self::ChunkExtensionTooLong => "client sent too long chunk extension",
            Self::BadTrailer => "client sent invalid trailer line",
            Self::TrailerTooLarge => "client sent too large trailer section",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.message())
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_nginx_answers() {
        assert_eq!(Fault::BadMethod.status(), 400);
        assert_eq!(Fault::MethodTooLong.status(), 414);
        assert_eq!(Fault::HeaderTooLarge.status(), 494);
        assert_eq!(Fault::UnknownEncoding.status(), 501);
        assert_eq!(Fault::UnsupportedVersion.status(), 505);
        assert_eq!(Fault::TraceForbidden.status(), 405);
    }
}
