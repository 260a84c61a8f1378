//! Optional white space (OWS) around field values and list elements: SP and HTAB; expectations, a list.
//!
//! Source: RFC 9110 sections 5.5, 5.6.1, 5.6.3.

/// Returns whether `byte` is SP or HTAB.
#[inline]
pub(crate) const fn is_ows(byte: u8) -> bool {
    // This comparison alone decides for the first byte of most values.
    byte <= b' ' && (byte == b' ' || byte == b'\t')
}

/// Returns `text` without white space at its ends.
#[inline]
#[must_use]
pub const fn trim_ows(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_ows(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_ows(*last)
    {
        text = rest;
    }
    text
}

/// Returns whether the value of an `Expect` field, a list, has the expectation `100-continue` (RFC 9110 section 10.1.1).
pub(crate) fn expects_continue(value: &[u8]) -> bool {
    let mut elements = value.split(|byte| *byte == b',').map(trim_ows);
    elements.any(|element| element.eq_ignore_ascii_case(b"100-continue"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_and_tabs_are_trimmed_and_no_other_byte() {
        for byte in 0..=255 {
            let text = [byte, b'a', byte, b'b', byte];
            let expected = match byte {
                b' ' | b'\t' => &text[1..4],
                _ => &text[..],
            };
            assert_eq!(trim_ows(&text), expected, "{byte:#x}");
        }
        assert_eq!(trim_ows(b"\t \ta \t"), b"a");
        assert_eq!(trim_ows(b" \t"), b"");
        assert_eq!(trim_ows(b""), b"");
    }
}
