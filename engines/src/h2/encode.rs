//! Responses to header blocks.
//!
//! If a head equals the previous one, as when a client requests one object again and again, and its block did not
//! change the table, the previous block is sent again.
//!
//! Source: RFC 9113 sections 8.2, 8.3.2.

use super::conn::Conn;
use super::frame;
use super::names;
use crate::hpack::Indexing;
use crate::http::{FieldId, ResponseHead, trim_ows, wire_status};

impl Conn {
    /// The header block of a response.
    pub(super) fn encode_response(&mut self, status: u16, head: &ResponseHead) -> Vec<u8> {
        let before = self.protocol.encoder.state();
        if let Some(block) = self.header_cache.block(status, head, before) {
            let mut out = std::mem::take(&mut self.protocol.encoded);
            out.clear();
            out.extend_from_slice(block);
            return out;
        }
        let out = self.encode(Some(status), Some(head));
        if self.protocol.encoder.state() == before {
            self.header_cache.keep(status, head, &out, before);
        }
        out
    }

    /// Returns a header block of a status and fields. White space at the ends of a value is left out: with it the message
    /// would be malformed (RFC 9113 section 8.2.1).
    pub(super) fn encode(&mut self, status: Option<u16>, head: Option<&ResponseHead>) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.protocol.encoded);
        out.clear();
        self.protocol.encoder.begin(&mut out);
        if let Some(status) = status {
            self.protocol.encoder.status(wire_status(status), &mut out);
        }
        let Some(head) = head else { return out };
        for field in &head.fields {
            let value = trim_ows(head.bytes(field.value));
            let indexing = indexing(field.id, value);
            match names::of(field.id) {
                Some(_) if is_of_connection(field.id) => {}
                Some(name) => self.protocol.encoder.named(name, value, indexing, &mut out),
                None => self.encode_other(head.bytes(field.name), value, indexing, &mut out),
            }
        }
        out
    }

    /// A field with a name that has no number.
    fn encode_other(&mut self, name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        if name.eq_ignore_ascii_case(b"proxy-connection") {
            return;
        }
        let mut lower = [0; NAME_BYTES];
        let owned;
        let lowered = match lower.get_mut(..name.len()) {
            Some(buffer) => {
                buffer.copy_from_slice(name);
                buffer.make_ascii_lowercase();
                &*buffer
            }
            None => {
                owned = name.to_ascii_lowercase();
                &owned[..]
            }
        };
        self.protocol.encoder.field(lowered, value, indexing, out);
    }

    /// Sends an interim response, 1xx but not 101, with `fields` if any.
    pub fn send_interim(&mut self, id: u32, status: u16, fields: Option<&ResponseHead>) {
        let waiting = self
            .streams
            .get(id)
            .is_some_and(|stream| stream.out.is_waiting());
        if waiting {
            let block = self.encode(Some(status), fields);
            let bytes = self.put_block(id, block, false);
            self.count(id, bytes);
        }
    }

    /// HEADERS, and CONTINUATION if one frame is too small; returns the bytes of all of them.
    pub(super) fn put_block(&mut self, id: u32, block: Vec<u8>, end_stream: bool) -> u64 {
        let before = self.out.len();
        let most = self.protocol.frame_bytes;
        self.out
            .push_with(|out| frame::put_block(out, &block, most, end_stream, id));
        // Its memory is used for the next block.
        self.protocol.encoded = block;
        self.protocol.encoded.shrink_to(KEEP_BYTES);
        self.out.len() - before
    }
}

/// Fields of an HTTP/1 connection (RFC 9113 section 8.2.2).
#[inline]
fn is_of_connection(id: FieldId) -> bool {
    matches!(
        id,
        FieldId::Connection | FieldId::TransferEncoding | FieldId::Upgrade | FieldId::KeepAlive
    )
}

#[inline]
fn indexing(id: FieldId, value: &[u8]) -> Indexing {
    match id {
        FieldId::SetCookie => Indexing::Never,
        FieldId::ContentRange => Indexing::No,
        _ if value.len() > LONG_VALUE_BYTES => Indexing::No,
        _ => Indexing::Yes,
    }
}

/// Names up to this length are made lower-case without allocation.
const NAME_BYTES: usize = 64;
/// Longer values are not worth a place in the table.
const LONG_VALUE_BYTES: usize = 512;
/// Capacity kept for the next block.
const KEEP_BYTES: usize = 4096;
