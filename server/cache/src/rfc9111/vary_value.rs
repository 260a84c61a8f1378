//! Values of selecting fields in a normal form, so that requests with equal meanings share a stored response.
//!
//! The normal form of `Accept-Encoding` drops preferences among accepted codings: a client may get the coding that
//! another one preferred, but never one that it does not accept. Source: RFC 9111 section 4.1; RFC 9110 sections 5.3,
//! 12.4.2, 12.5.3, 12.5.4.

use engines::http::trim_ows;

use super::field_list::Elements;

/// Appends the normal form of `Accept-Encoding`: accepted codings in lower case, sorted, without weights.
///
/// A refused coding (`q=0`) is dropped, since codings that are not listed are not accepted either. It is kept if it
/// restricts `*`, or refuses `identity`, which needs no listing.
pub(super) fn push_accept_encoding<'a>(values: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    let mut codings: Vec<(&[u8], bool)> = Vec::with_capacity(LIST_ELEMENTS);
    for element in values.flat_map(Elements::new) {
        let (coding, parameters) = split_parameters(element);
        // RFC 9110 section 8.4.1: the names with "x-" are equivalent.
        let coding = match coding {
            [b'x' | b'X', b'-', rest @ ..] if is_either(rest, b"gzip", b"compress") => rest,
            coding => coding,
        };
        codings.push((coding, weight(parameters).is_some_and(is_zero)));
    }
    // A stable sort keeps the first of several equal codings in front.
    codings.sort_by(|(one, _), (other, _)| lower(one).cmp(lower(other)));
    codings.dedup_by(|(later, _), (first, _)| later.eq_ignore_ascii_case(first));
    let star = codings.iter().find(|(coding, _)| *coding == b"*");
    let (any, none) = (
        star.is_some_and(|(_, refused)| !refused),
        star.is_some_and(|(_, refused)| *refused),
    );
    let is_kept = |(coding, refused): &(&[u8], bool)| match refused {
        true => any || is_either(coding, b"identity", b"*"),
        // Identity is accepted without being listed, unless `*` is refused.
        false => none || !coding.eq_ignore_ascii_case(b"identity"),
    };
    for (at, (coding, refused)) in codings.into_iter().filter(is_kept).enumerate() {
        separate(at, out);
        out.extend(lower(coding));
        if refused {
            out.extend_from_slice(b";q=0");
        }
    }
}

/// Appends the normal form of `Accept-Language`: ranges and parameters in lower case, without white space, weights
/// without zeros at their end. Unless `order_matters`, ranges are sorted.
///
/// The order of ranges with one weight has no meaning in RFC 9110 section 12.5.4, but servers exist that use it.
pub(super) fn push_accept_language<'a>(
    values: impl Iterator<Item = &'a [u8]>,
    order_matters: bool,
    out: &mut Vec<u8>,
) {
    let mut ranges: Vec<(&[u8], &[u8], &[u8])> = Vec::with_capacity(LIST_ELEMENTS);
    for element in values.flat_map(Elements::new) {
        let (range, parameters) = split_parameters(element);
        ranges.push(match weight(parameters).map(shortest_weight) {
            Some(b"1") => (range, b"", b""),
            Some(weight) => (range, b";q=", weight),
            None if parameters.is_empty() => (range, b"", b""),
            // Not a weight: the text decides.
            None => (range, b";", parameters),
        });
    }
    if !order_matters {
        ranges.sort_by(|one, other| {
            let text = |(range, sign, rest): &(&'a [u8], &'a [u8], &'a [u8])| {
                lower(range).chain(lower(sign)).chain(lower(rest))
            };
            text(one).cmp(text(other))
        });
    }
    for (at, (range, sign, rest)) in ranges.into_iter().enumerate() {
        separate(at, out);
        out.extend(lower(range).chain(lower(sign)).chain(lower(rest)));
    }
}

/// Appends the values of a list field: lines joined, no white space around elements, no empty elements.
///
/// Values of fields that are no lists lose white space around commas, too.
pub(super) fn push_list<'a>(values: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    for (at, element) in values.flat_map(Elements::new).enumerate() {
        separate(at, out);
        out.extend_from_slice(element);
    }
}

/// Appends the lines of `Cookie`. Over HTTP/2 each pair may have a line of its own (RFC 9113 section 8.2.3).
pub(super) fn push_cookie<'a>(values: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    for (at, value) in values.enumerate() {
        if at > 0 {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(trim_ows(value));
    }
}

/// The bytes of a text in lower case.
fn lower(text: &[u8]) -> impl Iterator<Item = u8> {
    text.iter().map(u8::to_ascii_lowercase)
}

/// Returns whether `text` is one of two names, without case.
fn is_either(text: &[u8], one: &[u8], other: &[u8]) -> bool {
    text.eq_ignore_ascii_case(one) || text.eq_ignore_ascii_case(other)
}

fn separate(at: usize, out: &mut Vec<u8>) {
    if at > 0 {
        out.push(b',');
    }
}

/// Splits an element at its first semicolon.
fn split_parameters(element: &[u8]) -> (&[u8], &[u8]) {
    match element.iter().position(|byte| *byte == b';') {
        Some(at) => (trim_ows(&element[..at]), trim_ows(&element[at + 1..])),
        None => (element, b""),
    }
}

/// The digits of a weight, `q=0.5`; `None` if the parameters are not exactly one valid weight (RFC 9110 section 12.4.2).
fn weight(parameters: &[u8]) -> Option<&[u8]> {
    let [b'q' | b'Q', b'=', digits @ ..] = parameters else {
        return None;
    };
    let (whole, fraction) = match digits {
        [whole] => (*whole, &b""[..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (*whole, fraction),
        _ => return None,
    };
    let is_valid = match whole {
        b'0' => fraction.iter().all(u8::is_ascii_digit),
        b'1' => fraction.iter().all(|byte| *byte == b'0'),
        _ => false,
    };
    is_valid.then_some(digits)
}

fn is_zero(weight: &[u8]) -> bool {
    shortest_weight(weight) == b"0"
}

/// A weight without zeros at the end of its fraction.
fn shortest_weight(mut weight: &[u8]) -> &[u8] {
    if weight.contains(&b'.') {
        while let [rest @ .., b'0'] = weight {
            weight = rest;
        }
    }
    weight.strip_suffix(b".").unwrap_or(weight)
}

/// Elements for which a list has room at once, more than browsers send.
const LIST_ELEMENTS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn encoding(values: &[&str]) -> String {
        let mut out = Vec::new();
        push_accept_encoding(values.iter().map(|value| value.as_bytes()), &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    fn language(value: &str, order_matters: bool) -> String {
        let mut out = Vec::new();
        push_accept_language([value.as_bytes()].into_iter(), order_matters, &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    fn list(values: &[&str]) -> String {
        let mut out = Vec::new();
        push_list(values.iter().map(|value| value.as_bytes()), &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    /// RFC 9110 section 12.5.3.
    #[test]
    fn accepted_codings_are_a_sorted_set() {
        for (values, expected) in [
            (&["gzip, deflate, br"][..], "br,deflate,gzip"),
            (&["br;q=0.5 , GZIP;Q=1.000,deflate"], "br,deflate,gzip"),
            (&["gzip", "br"], "br,gzip"),
            (&["x-gzip, x-compress"], "compress,gzip"),
            (&["gzip, gzip;q=0"], "gzip"),
            (&["gzip;q=0, br"], "br"),
            (&["gzip;q=0.000"], ""),
            (&["gzip;q=0.001"], "gzip"),
            (&["identity"], ""),
            (&["identity;q=0, br"], "br,identity;q=0"),
            (&["*;q=0, br"], "*;q=0,br"),
            (&["*;q=0, identity"], "*;q=0,identity"),
            (&["*, gzip;q=0"], "*,gzip;q=0"),
            (&["gzip;q=x"], "gzip"),
            (&["gzip ; q=0"], ""),
            (&[""], ""),
        ] {
            assert_eq!(encoding(values), expected, "{values:?}");
        }
    }

    /// RFC 9110 sections 12.4.2, 12.5.4.
    #[test]
    fn languages_have_no_case_and_no_space() {
        for (value, ordered, sorted) in [
            ("en, de", "en,de", "de,en"),
            (" eN ,   De", "en,de", "de,en"),
            ("en-US,en;q=0.90", "en-us,en;q=0.9", "en-us,en;q=0.9"),
            ("en;q=1, de ; Q=1.000", "en,de", "de,en"),
            ("de;q=0.0", "de;q=0", "de;q=0"),
            ("de;Level=1", "de;level=1", "de;level=1"),
            ("de;q=2", "de;q=2", "de;q=2"),
        ] {
            assert_eq!(language(value, true), ordered, "{value}");
            assert_eq!(language(value, false), sorted, "{value}");
        }
    }

    /// RFC 9111 section 4.1: white space, and several lines of one field.
    #[test]
    fn other_fields_are_joined_lists() {
        assert_eq!(list(&["1, 2"]), list(&["1", "2"]));
        assert_eq!(list(&[" 1,2 ", ",3"]), "1,2,3");
        assert_eq!(list(&["A b,\"c, d\""]), "A b,\"c, d\"");
        assert_ne!(list(&["a"]), list(&["A"]));
        let mut out = Vec::new();
        push_cookie([&b"a=1, 2"[..], b" b=3 "].into_iter(), &mut out);
        assert_eq!(out, b"a=1, 2; b=3");
    }

    /// RFC 9110 section 12.4.2.
    #[test]
    fn weights_have_three_digits_at_most() {
        for (text, digits) in [
            ("q=0", Some("0")),
            ("Q=0.", Some("0.")),
            ("q=0.123", Some("0.123")),
            ("q=1.000", Some("1.000")),
            ("q=0.1234", None),
            ("q=1.001", None),
            ("q=2", None),
            ("q=", None),
            ("q=0.x", None),
            ("q=0;x", None),
            ("r=0", None),
        ] {
            assert_eq!(weight(text.as_bytes()), digits.map(str::as_bytes), "{text}");
        }
    }
}
