//! Requests, and their trailers.
//!
//! Source: RFC 9113 sections 8.1 to 8.3.

use super::super::error::CANCEL;
use super::super::frame::{self, Http2Frames};
use super::{Client, Http2};
use crate::client::{SendError, is_sendable};
use crate::hpack::Indexing;
use crate::http::{FieldId, Fields, is_token, trim_ows};
use crate::mux::Frames;

impl Client {
    /// Opens a stream with these fields, `:method`, `:scheme`, `:authority` and `:path` first, names in lower case, and
    /// returns its number. With `ended` the request has no body. White space at the ends of values is left out (RFC 9113
    /// section 8.2.1).
    ///
    /// # Errors
    /// The connection cannot take it, and nothing has been sent; or a field cannot be sent: then a stream was begun and reset,
    /// since fields before it have changed the table.
    pub fn request<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        ended: bool,
    ) -> Result<u32, SendError> {
        self.admit()?;
        let protocol = &mut self.protocol;
        let block = &mut protocol.encoded;
        block.clear();
        protocol.encoder.begin(block);
        let mut is_head = false;
        let mut bad = false;
        for (name, value) in fields {
            // A refused field may follow others that have changed the table: the block must be sent.
            bad |= !is_sendable(value);
            match name {
                b":method" => is_head = value == b"HEAD",
                [b':', ..] => {}
                _ => bad |= !is_token(name) || name.iter().any(u8::is_ascii_uppercase),
            }
            let id = FieldId::of(name);
            if !bad && !is_of_connection(id) {
                let value = trim_ows(value);
                protocol.encoder.field(name, value, indexing(id), block);
            }
        }
        let id = self.take_number();
        let Http2 {
            encoded,
            frame_bytes,
            ..
        } = &self.protocol;
        frame::put_block(&mut self.out, encoded, *frame_bytes, ended && !bad, id);
        if bad {
            Http2Frames::put_reset(&mut self.out, id, CANCEL);
            return Err(SendError::BadField);
        }
        self.open(id, ended, is_head);
        Ok(id)
    }

    /// Ends a request's body with a trailer section; unsendable fields are left out.
    pub fn send_trailers(&mut self, id: u32, trailers: &Fields) {
        let fits = |name: &[u8], value: &[u8]| is_token(name) && is_sendable(value);
        let fields = trailers.fields.iter().filter_map(|field| {
            let (name, value) = (trailers.bytes(field.name), trailers.bytes(field.value));
            let sent = fits(name, value) && !is_of_connection(field.id);
            sent.then(|| (name.to_ascii_lowercase(), trim_ows(value).to_vec()))
        });
        let fields: Vec<_> = fields.collect();
        self.send_last(id, &[], Some((!fields.is_empty()).then_some(fields)));
    }
}

/// Fields that belong to an HTTP/1 connection (RFC 9113 section 8.2.2); `:authority` replaces `host`.
fn is_of_connection(id: FieldId) -> bool {
    matches!(
        id,
        FieldId::Connection
            | FieldId::TransferEncoding
            | FieldId::Upgrade
            | FieldId::KeepAlive
            | FieldId::Host
    )
}

/// Secrets never enter tables of other hops; fields that differ from request to request do not enter ours.
fn indexing(id: FieldId) -> Indexing {
    match id {
        FieldId::Authorization => Indexing::Never,
        FieldId::ContentLength => Indexing::No,
        _ => Indexing::Yes,
    }
}
