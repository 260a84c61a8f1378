//! The response: as it is being decided, and as it is sent.

use std::rc::Rc;

use engines::http::ResponseHead;
use server_base::files::Opened;

use super::part::part;
use super::{Ahead, Ctx, Exchange, Rate};

part! {
    /// The response while it is being decided; the last header stage turns it into a [`ResponseHead`].
    #[derive(Debug, Default)]
    pub struct Reply() {
        /// Status code.
        pub status: u16,
        /// `Content-Type` without charset; empty for none.
        pub content_type: Vec<u8> => clear,
        /// Charset to add to the content type.
        pub charset: Vec<u8> => clear,
        /// Length of the body in bytes, where it is known.
        pub content_length: Option<u64>,
        /// Modification time of the content, seconds since 1970.
        pub last_modified: Option<i64>,
        /// That time as text, where it is at hand.
        pub last_modified_text: Option<Rc<[u8]>>,
        /// `ETag`.
        pub etag: Option<Rc<[u8]>>,
        /// `Location`.
        pub location: Vec<u8> => clear,
        /// The file whose bytes, from the first to the last, are the body as the content handler made it.
        pub source: Option<Rc<Opened>>,
        /// Whether range requests may be served from it.
        pub allow_ranges: bool,
        /// Of several ranges that are asked for at once, none is served.
        pub single_range: bool,
        /// The request's conditions are not looked at: who made the response has done that.
        pub unconditional: bool,
        /// `add_header` and `expires` have had their say: an error met after that does not get their fields twice.
        pub headers_added: bool,
        /// Other fields in the order in which they are sent.
        pub fields: ResponseHead => clear,
        /// Trailer fields.
        pub trailers: ResponseHead => clear,
    }
}

/// What is called when the body has ended.
pub type OnEnd = fn(&mut Exchange, &mut Ctx<'_>);

part! {
    /// The response as it is sent.
    pub struct ResponseState() {
        /// Its head.
        pub head: ResponseHead => clear,
        /// What leaves ahead of it, if anything does.
        pub ahead: Option<Box<Ahead>> => rare,
        /// Status of the error being served, 0 for none.
        pub err_status: u16,
        /// The filters have run: it is too late for another status.
        pub header_sent: bool,
        /// All of it was sent.
        pub completed: bool,
        /// Bytes on the wire of the head and of what leaves ahead of it.
        pub header_bytes: u64,
        /// Bytes sent for this exchange.
        pub bytes_sent: u64,
        /// Called when the body has ended, before trailers are sent.
        pub on_end: Option<OnEnd>,
        /// How fast it may be sent.
        pub rate: Rate,
    }
}
