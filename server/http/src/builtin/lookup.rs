//! Values of prefix variables: arguments, cookies, fields of request and response, credentials.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use engines::http::{BodyLength, FieldId, Version, http_date};

use super::out::{Out, put, put_number, put_opt};
use crate::exchange::Exchange;

/// The value of an argument; names are compared without case, as nginx does.
pub fn find_arg<'a>(args: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    args.split(|b| *b == b'&').find_map(|pair| {
        let at = memchr::memchr(b'=', pair)?;
        pair[..at]
            .eq_ignore_ascii_case(name)
            .then(|| &pair[at + 1..])
    })
}

/// The value of a cookie; names are compared without case, and spaces around `=` do not count, as in nginx.
pub fn find_cookie<'a>(cookies: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    find_cookies(cookies, name).next()
}

/// All values of a cookie in a field; see [`find_cookie`]. Browsers send several for different domains and paths (RFC 6265 section
/// 5.4).
pub fn find_cookies<'a>(cookies: &'a [u8], name: &[u8]) -> impl Iterator<Item = &'a [u8]> {
    cookies.split(|b| *b == b';').filter_map(move |pair| {
        let (key, rest) = without_spaces(pair).split_at_checked(name.len())?;
        let value = without_spaces(rest).strip_prefix(b"=")?;
        key.eq_ignore_ascii_case(name)
            .then(|| without_spaces(value))
    })
}

fn without_spaces(text: &[u8]) -> &[u8] {
    let at = text.iter().position(|b| *b != b' ').unwrap_or(text.len());
    &text[at..]
}

/// Returns two keyed hashes of a counter: no two calls in a process share them, and none can be guessed from another.
pub fn random_id() -> [u8; 16] {
    thread_local! {
        static KEY: (RandomState, Cell<u64>) = (RandomState::new(), Cell::new(0));
    }
    let next = || {
        KEY.with(|(key, counter)| {
            counter.set(counter.get().wrapping_add(1));
            key.hash_one(counter.get())
        })
    };
    let mut id = [0; 16];
    id[..8].copy_from_slice(&next().to_le_bytes());
    id[8..].copy_from_slice(&next().to_le_bytes());
    id
}

pub(super) fn with_dashes(name: &[u8]) -> Vec<u8> {
    name.iter()
        .map(|b| if *b == b'_' { b'-' } else { *b })
        .collect()
}

/// All values of a field, joined as nginx joins them.
pub(super) fn http_field(x: &Exchange, name: &[u8], out: &mut Out) -> bool {
    let separator: &[u8] = if name == b"cookie" { b"; " } else { b", " };
    let mut values = x
        .head
        .fields
        .iter()
        .filter(|f| same_name(x.head.bytes(f.name), name))
        .map(|f| x.head.bytes(f.value))
        .peekable();
    if values.peek().is_none() {
        return false;
    }
    join(values, separator, out)
}

/// Compares a field's name with the suffix of a variable: no case, `-` is `_`.
pub(crate) fn same_name(field: &[u8], suffix: &[u8]) -> bool {
    field.len() == suffix.len()
        && field.iter().zip(suffix).all(|(f, s)| {
            let f = f.to_ascii_lowercase();
            f == *s || (*s == b'_' && f == b'-')
        })
}

pub(crate) fn join<'a>(
    values: impl Iterator<Item = &'a [u8]>,
    separator: &[u8],
    out: &mut Out,
) -> bool {
    for (n, value) in values.enumerate() {
        if n > 0 {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(value);
    }
    true
}

/// Response fields, including those framed by the engine; before the head is made, the fields so far.
pub(super) fn sent_field(x: &Exchange, name: &[u8], out: &mut Out) -> bool {
    let undecided = x.response.head.status == 0;
    match name {
        b"content_type" if undecided => {
            return put_opt(
                out,
                Some(x.reply.content_type.text()).filter(|t| !t.is_empty()),
            );
        }
        b"content_length" if undecided => {
            return x.reply.content_length.is_some_and(|n| put_number(out, n));
        }
        b"location" if undecided => {
            return put_opt(out, Some(&*x.reply.location).filter(|l| !l.is_empty()));
        }
        b"etag" if undecided => return put_opt(out, x.reply.etag.as_deref()),
        b"last_modified" if undecided => {
            return match (&x.reply.last_modified_text, x.reply.last_modified) {
                (Some(text), _) => put(out, text),
                (None, Some(time)) => put(out, &http_date(time)),
                (None, None) => false,
            };
        }
        b"connection" => {
            return put(
                out,
                if x.response.head.status == 101 {
                    b"upgrade"
                } else if x.progress.keep_alive {
                    b"keep-alive"
                } else {
                    b"close"
                },
            );
        }
        b"keep_alive" => {
            return match x.response.head.keep_alive_hint_s {
                Some(s) if x.progress.keep_alive => put(out, format!("timeout={s}").as_bytes()),
                _ => false,
            };
        }
        b"transfer_encoding" => {
            // The engine frames the body after the head was made: its decision is repeated here, as nginx's is.
            let chunked = x.response.head.body == BodyLength::Unknown
                && x.progress.header_sent
                && x.head.version == Version::Http11
                && !x.response.head.forbid_chunked
                && !matches!(x.response.head.status, 204 | 304);
            return if chunked { put(out, b"chunked") } else { false };
        }
        _ => {}
    }
    // The fields above are not kept as text until the head is made; all others are.
    let head = if undecided {
        &x.reply.fields
    } else {
        &x.response.head
    };
    let mut values = head
        .fields
        .iter()
        .filter(|f| same_name(head.bytes(f.name), name))
        .map(|f| head.bytes(f.value))
        .peekable();
    if values.peek().is_none() {
        return false;
    }
    join(values, b", ", out)
}

/// The user of `Authorization: Basic`, if it has that form.
pub fn basic_user(x: &Exchange) -> Option<Vec<u8>> {
    basic_credentials(x)
        .map(|(user, _)| user)
        .filter(|user| !user.is_empty())
}

/// User and password of `Authorization: Basic` (RFC 7617).
pub fn basic_credentials(x: &Exchange) -> Option<(Vec<u8>, Vec<u8>)> {
    let value = x.head.field(FieldId::Authorization)?;
    let (scheme, rest) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    let decoded = decode_base64(rest.trim_ascii())?;
    let at = memchr::memchr(b':', &decoded)?;
    Some((decoded[..at].to_vec(), decoded[at + 1..].to_vec()))
}

/// Decodes base64 (RFC 4648, section 4); `None` for anything else.
pub fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text
        .strip_suffix(b"==")
        .or_else(|| text.strip_suffix(b"="))
        .unwrap_or(text);
    if text.len() % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut held) = (0u32, 0u32);
    for b in text {
        let v = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(v);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_found_by_whole_name() {
        assert_eq!(find_arg(b"aa=1&a=2&b=", b"a"), Some(&b"2"[..]));
        assert_eq!(find_arg(b"A=2", b"a"), Some(&b"2"[..]));
        assert_eq!(find_arg(b"b=", b"b"), Some(&b""[..]));
        assert_eq!(find_arg(b"b", b"b"), None);
    }

    #[test]
    fn cookies_are_found_by_whole_name() {
        assert_eq!(find_cookie(b"ab=1; b=2", b"b"), Some(&b"2"[..]));
        assert_eq!(find_cookie(b"ab=1", b"b"), None);
        assert_eq!(find_cookie(b"a=1,b=2; b = 3 ", b"B"), Some(&b"3 "[..]));
        assert_eq!(find_cookie(b"bc; b=", b"b"), Some(&b""[..]));
    }

    #[test]
    fn request_identifiers_differ() {
        assert_ne!(random_id(), random_id());
    }

    #[test]
    fn base64_is_decoded_with_and_without_padding() {
        assert_eq!(decode_base64(b"dTpw").as_deref(), Some(&b"u:p"[..]));
        assert_eq!(decode_base64(b"dXM6cA==").as_deref(), Some(&b"us:p"[..]));
        assert_eq!(decode_base64(b"dXM6cA").as_deref(), Some(&b"us:p"[..]));
        assert_eq!(decode_base64(b"d*"), None);
        assert_eq!(decode_base64(b"d"), None);
    }
}
