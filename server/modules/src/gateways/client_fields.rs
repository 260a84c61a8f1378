//! Converts the client's header fields to parameters: `HTTP_` and the name in upper case, with `_` for `-`.
//!
//! Several names map to one parameter: `X-Y`, also `X_Y` with `underscores_in_headers on`, and names that some
//! languages normalize, such as `X.Y`. If a proxy in front of us sets one of them, a client could forge another, and
//! the application could not tell them apart. So only one passes: the name of letters, digits and `-` alone, else the
//! first. A field `Proxy` never passes, since programs treat `HTTP_PROXY` as a setting (httpoxy, CVE-2016-5385).
//!
//! Source: RFC 3875 section 4.1.18; nginx's way to join fields.

use engines::http::{BodyLength, Field, FieldId, Fields, RequestHead, Span};
use server_base::errlog::{Level, Printable};
use server_http::exchange::Exchange;
use server_http::upstream::{Outgoing, is_of_client_cache};

use super::params::{ParamSet, bit};

/// Appends the fields that pass. Fields with equal names are joined.
pub(super) fn push(x: &Exchange, set: &ParamSet, outgoing: &Outgoing, fields: &mut Fields) {
    let sends_body = !matches!(outgoing.body, BodyLength::None);
    let head = &x.head;
    let mut seen = 0;
    for (at, field) in head.fields.iter().enumerate() {
        let name = head.bytes(field.name);
        if set.replaces(field.id, name) {
            continue;
        }
        if outgoing.is_cached && is_of_client_cache(field.id) {
            continue;
        }
        match field.id {
            // An application would wait for a body of this length, which is not sent.
            FieldId::ContentLength if !sends_body => continue,
            FieldId::Other => {
                if let Some(why) = why_left_out(head, at, name, set) {
                    let name = Printable(name);
                    let text = format_args!("client sent field \"{name}\" {why}, ignored");
                    x.log(Level::Info, text);
                    continue;
                }
                if same_before(head, at, name) {
                    continue;
                }
            }
            id if seen & bit(id) != 0 => continue,
            id => seen |= bit(id),
        }
        push_joined(head, at, fields);
    }
}

/// Returns the reason for dropping an unknown field that no configured parameter replaces literally.
fn why_left_out(
    head: &RequestHead,
    at: usize,
    name: &[u8],
    set: &ParamSet,
) -> Option<&'static str> {
    if name.eq_ignore_ascii_case(b"Proxy") {
        return Some("that programs use as their proxy");
    }
    if is_plain(name) {
        return None;
    }
    // Rare, so it may be slow: such names are refused by default.
    let dashed = dashed(name);
    let id = FieldId::of(&dashed);
    if id != FieldId::Other && set.replaces(id, &dashed) {
        return Some("that would replace a parameter");
    }
    let rivals = head.fields.iter().enumerate().any(|(other_at, other)| {
        let other_name = head.bytes(other.name);
        same_param(other_name, name)
            && !other_name.eq_ignore_ascii_case(name)
            && (is_plain(other_name) || other_at < at)
    });
    rivals.then_some("that maps to the parameter of another field")
}

/// Whether a name has only letters, digits and `-`.
fn is_plain(name: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    name.iter().all(plain)
}

/// Replaces each byte of a name that is neither letter nor digit by `-`.
pub(super) fn dashed(name: &[u8]) -> Vec<u8> {
    let dash = |byte: &u8| match byte.is_ascii_alphanumeric() {
        true => *byte,
        false => b'-',
    };
    name.iter().map(dash).collect()
}

/// Whether two names map to one parameter.
pub(super) fn same_param(one: &[u8], other: &[u8]) -> bool {
    let same = |(one, other): (&u8, &u8)| {
        one.eq_ignore_ascii_case(other)
            || !one.is_ascii_alphanumeric() && !other.is_ascii_alphanumeric()
    };
    one.len() == other.len() && one.iter().zip(other).all(same)
}

/// Whether an unknown field with this name precedes.
fn same_before(head: &RequestHead, at: usize, name: &[u8]) -> bool {
    head.fields[..at]
        .iter()
        .any(|other| is_same(head, other, FieldId::Other, name))
}

fn is_same(head: &RequestHead, other: &Field, id: FieldId, name: &[u8]) -> bool {
    other.id == id
        && (id != FieldId::Other
            || other.name.len as usize == name.len()
                && head.bytes(other.name).eq_ignore_ascii_case(name))
}

/// Appends a parameter with the values of this field and of the later fields with its name.
fn push_joined(head: &RequestHead, at: usize, fields: &mut Fields) {
    let field = &head.fields[at];
    let name = head.bytes(field.name);
    let start = fields.arena.len();
    fields.arena.extend_from_slice(PREFIX);
    fields.arena.extend(name.iter().map(|byte| match byte {
        b'-' => b'_',
        byte => byte.to_ascii_uppercase(),
    }));
    let value = fields.arena.len();
    fields.arena.extend_from_slice(head.bytes(field.value));
    let separator: &[u8] = match field.id {
        FieldId::Cookie => b"; ",
        _ => b", ",
    };
    let rest = head.fields[at + 1..].iter();
    for again in rest.filter(|other| is_same(head, other, field.id, name)) {
        fields.arena.extend_from_slice(separator);
        fields.arena.extend_from_slice(head.bytes(again.value));
    }
    fields.fields.push(Field {
        name: Span::new(start, value - start),
        value: Span::new(value, fields.arena.len() - value),
        id: FieldId::Other,
    });
}

const PREFIX: &[u8] = b"HTTP_";
