//! From the text of a header block to a response head.
//!
//! Source: draft-mbelshe-httpbis-spdy-00 sections 2.6.10, 3.2.2.

use super::super::Settings;
use super::super::pairs;
use crate::client::{Announced, Malformed, parse_status};
use crate::http::{BodyLength, FieldId, Fields, ResponseHead};

/// A finished head.
pub(super) struct Built {
    pub(super) text_bytes: u64,
    pub(super) broken: Option<Malformed>,
}

/// Fills a head from the text of a block; fields are stored, or only counted. `ended`: the response has no body.
pub(super) fn build(
    text: &[u8],
    head: &mut ResponseHead,
    settings: &Settings,
    stored: bool,
    ended: bool,
) -> Built {
    let mut broken = None;
    let mut text_bytes = 0;
    let mut count = 0;
    let mut length = Announced::default();
    let result = pairs::each(text, |name, values| {
        text_bytes += name.len() + values.len();
        match name {
            b":status" if head.status == 0 => {
                // A phrase may follow.
                let code = values.split(|byte| *byte == b' ').next();
                match code.and_then(parse_status) {
                    Some(status) => head.status = status,
                    None => broken = Some(Malformed::Status),
                }
                return;
            }
            b":status" => broken = Some(Malformed::Status),
            b":version" => return,
            _ if !is_name(name) => broken = Some(Malformed::Field),
            _ => {}
        }
        let id = FieldId::of(name);
        for value in values.split(|byte| *byte == 0) {
            count += 1;
            if !is_value(value) {
                broken = Some(Malformed::Field);
            }
            if id == FieldId::ContentLength {
                length.take(value);
            }
            if stored && broken.is_none() && count <= settings.max_headers {
                head.push_id(id, name, value);
            }
        }
    });
    if result.is_err() {
        broken.get_or_insert(Malformed::Field);
    }
    if head.status == 0 {
        broken.get_or_insert(Malformed::Status);
    }
    if count > settings.max_headers || text_bytes > settings.header_bytes {
        broken.get_or_insert(Malformed::TooLarge);
    }
    head.keep_alive = true;
    head.body = length.body(ended).unwrap_or_else(|| {
        broken.get_or_insert(Malformed::Length);
        BodyLength::None
    });
    Built {
        text_bytes: text_bytes as u64,
        broken,
    }
}

/// The fields of a HEADERS frame after the reply.
pub(super) fn trailers(text: &[u8], settings: &Settings) -> Result<Fields, Malformed> {
    let mut fields = Fields::default();
    let mut bad = text.len() > settings.header_bytes + LENGTHS_BYTES;
    let result = pairs::each(text, |name, values| {
        bad |= !is_name(name);
        for value in values.split(|byte| *byte == 0) {
            bad |= !is_value(value);
            fields.push(name, value);
        }
    });
    match result {
        Ok(()) if !bad => Ok(fields),
        _ => Err(Malformed::Field),
    }
}

/// A name in lower case, none of a pseudo-field.
fn is_name(name: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase() && *byte != b':';
    !name.is_empty() && name.iter().all(fits)
}

/// A value without controls.
fn is_value(value: &[u8]) -> bool {
    let control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
    !value.iter().any(control)
}

/// Room for the lengths before names and values.
const LENGTHS_BYTES: usize = 8 << 10;
