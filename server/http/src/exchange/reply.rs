//! The response while it is being decided.

use std::rc::Rc;

use engines::http::{FieldId, ResponseHead, SharedBytes, parse_http_date};
use server_base::files::Opened;

use super::ContentType;
use super::part::part;

part! {
    /// The response while it is being decided; the last header stage turns it into a [`ResponseHead`].
    #[derive(Debug, Default)]
    pub struct Reply() {
        /// Status code.
        pub status: u16,
        /// `Content-Type`.
        pub content_type: ContentType => clear,
        /// Charset of the content: that of the content type, or the one that is added to it.
        pub charset: Vec<u8> => clear,
        /// Length of the body in bytes, if it is known.
        pub content_length: Option<u64>,
        /// Modification time of the content, seconds since 1970; `None` if it is unknown or only a text.
        pub last_modified: Option<i64>,
        /// `Last-Modified` of an upstream server. Few responses need its number: [`Reply::modified_s`].
        pub last_modified_text: Option<Rc<[u8]>>,
        /// `ETag`.
        pub etag: Option<SharedBytes>,
        /// `Location`.
        pub location: Vec<u8> => clear,
        /// The file with exactly the bytes of the body that the content handler made.
        pub source: Option<Rc<Opened>>,
        /// Whether range requests may be served from it.
        pub allow_ranges: bool,
        /// A request for several ranges gets the whole content.
        pub single_range: bool,
        /// The parts in which the body continues in subrequests: ranges are cut from all together.
        pub parts: Option<Box<ReplyParts>>,
        /// The request's conditions are not evaluated: the origin of the response has done that.
        pub unconditional: bool,
        /// `add_header` and `expires` have had their say: an error met after that does not get their fields twice.
        pub headers_added: bool,
        /// Other fields in the order in which they are sent.
        pub fields: ResponseHead => clear,
        /// Trailer fields.
        pub trailers: ResponseHead => clear,
    }
}

/// A response body in parts, each with a subrequest of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyParts {
    /// Position of the body in the content, bytes. At first it is that of the first part, later that of the sent range.
    pub offset: u64,
    /// Size of a part, bytes.
    pub size: u64,
}

impl Reply {
    /// Its body is changed on the way: ranges of the original do not apply, and `Accept-Ranges` of a server is removed.
    pub fn forbid_ranges(&mut self) {
        self.allow_ranges = false;
        self.fields.remove(FieldId::AcceptRanges);
    }

    /// Returns the modification time of the content, seconds since 1970; `None` if it is unknown or no valid date.
    pub fn modified_s(&self) -> Option<i64> {
        let parsed = || parse_http_date(self.last_modified_text.as_deref()?);
        self.last_modified.or_else(parsed)
    }
}
