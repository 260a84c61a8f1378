//! Header blocks of responses.
//!
//! Source: draft-mbelshe-httpbis-spdy-00 sections 2.6.2, 2.6.7, 3.2.2.

use super::conn::Conn;
use super::frame::{self, put_control};
use crate::http::{FieldId, ResponseHead, wire_status};

impl Conn {
    /// The text of a reply's header block.
    pub(super) fn write_head(&mut self, head: &ResponseHead) {
        let writer = &mut self.protocol.writer;
        // A server's own reason phrase follows its status, as in nginx 1.9.4.
        let phrase = head.own_phrase().filter(|phrase| !phrase.is_empty());
        if phrase.is_none()
            && let Some(text) = self.header_cache.block(head.status, head, 0)
        {
            writer.repeat(text);
            return;
        }
        writer.begin();
        writer.single(b":version", b"HTTP/1.1");
        let digits = wire_status(head.status).to_string();
        match phrase {
            Some(phrase) => writer.single(b":status", &[digits.as_bytes(), b" ", phrase].concat()),
            None => writer.single(b":status", digits.as_bytes()),
        }
        for (n, field) in head.fields.iter().enumerate() {
            let name = head.bytes(field.name);
            let same = |other: &&crate::http::Field| {
                other.id == field.id && head.bytes(other.name).eq_ignore_ascii_case(name)
            };
            let told = head.fields[..n].iter().any(|other| same(&other));
            if told || is_of_connection(field.id, name) {
                continue;
            }
            // A name appears once, with all its values.
            let values = head.fields[n..].iter().filter(same);
            let values = values.map(|field| head.bytes(field.value));
            writer.pair(name, values, field.id == FieldId::SetCookie);
        }
        writer.finish();
        if writer.secrets.is_empty() && phrase.is_none() {
            self.header_cache.keep(head.status, head, &writer.text, 0);
        }
    }

    /// A control frame with the encoded header block; returns its bytes.
    pub(super) fn put_block(&mut self, id: u32, kind: u16, fin: bool) -> u64 {
        let before = self.out.len();
        let flags = if fin { frame::FIN } else { 0 };
        let (deflater, writer) = (&mut self.protocol.deflater, &self.protocol.writer);
        self.out.push_with(|out| {
            let start = out.len();
            put_control(out, kind, flags, 0);
            out.extend_from_slice(&id.to_be_bytes());
            deflater.block(&writer.text, &writer.secrets, out);
            let len = out.len() - start - frame::HEAD_BYTES;
            debug_assert!(len <= frame::MAX_LEN, "a head is shorter than 16 MiB");
            let len = (len as u32).to_be_bytes();
            out[start + 5..start + 8].copy_from_slice(&len[1..]);
        });
        self.protocol.writer.text.shrink_to(KEEP_BYTES);
        self.out.len() - before
    }
}

/// Fields of an HTTP/1 connection (section 3.2.2).
fn is_of_connection(id: FieldId, name: &[u8]) -> bool {
    matches!(
        id,
        FieldId::Connection | FieldId::TransferEncoding | FieldId::Upgrade
    ) || name.eq_ignore_ascii_case(b"keep-alive")
        || name.eq_ignore_ascii_case(b"proxy-connection")
}

/// Capacity kept for the next block.
const KEEP_BYTES: usize = 4096;
