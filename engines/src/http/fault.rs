//! Errors of a request: one variant for each, with its response status.
//!
//! [`Fault::status`] is the only place that maps an error to a response status; [`Fault::message`] is the text for
//! the error log, worded like nginx's. An error always ends the connection after its response.

errors! {
    /// One way a peer misbehaves in a request.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Fault {
        /// The request line is malformed (RFC 9112 section 3).
        BadRequestLine = "client sent invalid request",
        /// A byte of the method is not an upper-case letter, `_` or `-`.
        BadMethod = "client sent invalid method",
        /// The method does not end within the header buffers.
        MethodTooLong = "client sent too long URI",
        /// The request line does not fit the header buffers.
        UriTooLong = "client sent too long URI",
        /// The path cannot be decoded, or leads above the root.
        BadUri = "client sent invalid request",
        /// The version is malformed, or HTTP/0.9 is switched off.
        BadVersion = "client sent invalid request",
        /// The major version is not 1.
        UnsupportedVersion = "client sent invalid version",
        /// An HTTP/0.9 request with a method other than GET.
        MethodInHttp09 = "client sent invalid method in HTTP/0.9 request",
        /// A header line is malformed (RFC 9112 section 5).
        BadHeader = "client sent invalid header line",
        /// A header line, or all of them, do not fit the header buffers.
        HeaderTooLarge = "client sent too long header line",
        /// More header lines than `max_headers`.
        TooManyHeaders = "client sent too many header lines",
        /// A field that may come once came twice.
        DuplicateHeader = "client sent duplicate header line",
        /// HTTP/1.1 without Host (RFC 9112 section 3.2).
        MissingHost = "client sent HTTP/1.1 request without \"Host\" header",
        /// More than one Host field.
        DuplicateHost = "client sent duplicate host header",
        /// Host, or the authority of the target, is not a host.
        BadHost = "client sent invalid host header",
        /// Content-Length is not a number (RFC 9112 section 6.3).
        BadContentLength = "client sent invalid \"Content-Length\" header",
        /// More than one Content-Length field.
        DuplicateContentLength = "client sent duplicate header line",
        /// Content-Length together with Transfer-Encoding.
        LengthAndEncoding = "client sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time",
        /// Transfer-Encoding in a request before HTTP/1.1.
        EncodingInHttp10 = "client sent HTTP/1.0 request with \"Transfer-Encoding\" header",
        /// A transfer coding other than "chunked".
        UnknownEncoding = "client sent unknown \"Transfer-Encoding\"",
        /// More than one Transfer-Encoding field.
        DuplicateEncoding = "client sent duplicate header line",
        /// The TRACE method.
        TraceForbidden = "client sent TRACE method",
        /// The CONNECT method.
        ConnectForbidden = "client sent CONNECT method",
        /// A plain HTTP request on a TLS port.
        PlainToTls = "client sent plain HTTP request to HTTPS port",
        /// Chunk framing is broken (RFC 9112 section 7.1).
        BadChunk = "client sent invalid chunked body",
        /// Chunk extensions exceed their limit.
        ChunkExtensionTooLong = "client sent too long chunk extension",
        /// A trailer line is malformed (RFC 9112 section 7.1.2).
        BadTrailer = "client sent invalid trailer line",
        /// The trailer section exceeds the header limits.
        TrailerTooLarge = "client sent too large trailer section",
    }
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
