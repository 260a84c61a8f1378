//! Responses to header blocks.
//!
//! Where the head is that of the response before, as when a client asks for one object again and again, and its block has
//! left the table as it was, the block is that of the response before, too.
//!
//! Source: RFC 9113 sections 8.2, 8.3.2.

use super::conn::Conn;
use super::names;
use crate::hpack::Indexing;
use crate::http::{FieldId, ResponseHead};

impl Conn {
    /// The header block of a response.
    pub(super) fn encode_response(&mut self, status: u16, head: &ResponseHead) -> Vec<u8> {
        let before = self.encoder.state();
        if let Some(block) = self.repeated.block(status, head, before) {
            let mut out = std::mem::take(&mut self.encoded);
            out.clear();
            out.extend_from_slice(block);
            return out;
        }
        let out = self.encode(Some(status), Some(head));
        if self.encoder.state() == before {
            self.repeated.keep(status, head, &out, before);
        }
        out
    }

    /// A header block of a status and fields.
    pub(super) fn encode(&mut self, status: Option<u16>, head: Option<&ResponseHead>) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.encoded);
        out.clear();
        self.encoder.begin(&mut out);
        if let Some(status) = status {
            self.encoder.status(wire_status(status), &mut out);
        }
        let Some(head) = head else { return out };
        for field in &head.fields {
            let value = head.bytes(field.value);
            let indexing = indexing(field.id, value);
            match names::of(field.id) {
                Some(_) if is_of_connection(field.id) => {}
                Some(name) => self.encoder.named(name, value, indexing, &mut out),
                None => self.encode_other(head.bytes(field.name), value, indexing, &mut out),
            }
        }
        out
    }

    /// A field whose name has no number.
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
        self.encoder.field(lowered, value, indexing, out);
    }
}

/// nginx's own codes leave as 400, as in HTTP/1.
fn wire_status(status: u16) -> u16 {
    match status {
        494..=497 => 400,
        other => other,
    }
}

/// Fields that belong to a connection of HTTP/1 (RFC 9113 section 8.2.2).
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
