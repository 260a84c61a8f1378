//! `Vary: Accept-Encoding`, by which caches know that clients with other abilities get other bytes, and ETags.
//!
//! Source: RFC 9110, sections 12.5.5 and 8.8.1; nginx documentation, `gzip_vary`.

use engines::http::{FieldId, ResponseHead};
use server_http::exchange::Reply;
use server_http::reply::weaken;

/// Adds the field, unless the response has it or varies by everything.
pub(super) fn add(fields: &mut ResponseHead) {
    let said = |value: &[u8]| {
        let mut names = value.split(|b| *b == b',').map(<[u8]>::trim_ascii);
        names.any(|name| name == b"*" || name.eq_ignore_ascii_case(b"accept-encoding"))
    };
    if !fields.named(b"vary").any(said) {
        fields.push_id(FieldId::Vary, b"Vary", b"Accept-Encoding");
    }
}

/// Removes the properties of a response that another coding invalidates: its length, ranges, and the strength of its
/// ETag.
pub(super) fn recoded(reply: &mut Reply) {
    reply.content_length = None;
    reply.forbid_ranges();
    weaken(reply);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varied(values: &[&[u8]]) -> usize {
        let mut fields = ResponseHead::default();
        for value in values {
            fields.push_id(FieldId::Vary, b"Vary", value);
        }
        add(&mut fields);
        fields.fields.len()
    }

    #[test]
    fn the_field_is_added_once() {
        assert_eq!(varied(&[]), 1);
        assert_eq!(varied(&[b"Cookie"]), 2);
        assert_eq!(varied(&[b"Cookie, accept-encoding"]), 1);
        assert_eq!(varied(&[b"*"]), 1);
    }
}
