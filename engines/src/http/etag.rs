//! Entity tags: whether one is in an If-Match or If-None-Match list.
//!
//! Source: RFC 9110 sections 8.8.3 and 13.1; nginx's list rules.

/// Whether `etag`, as it stands in the ETag field of the response, is in
/// `list`. `weak` compares as If-None-Match does, ignoring `W/`; without it
/// the tags must be equal byte for byte, as If-Match needs.
///
/// "*" alone matches any tag, an empty one too. An empty `etag` (no ETag)
/// matches nothing else.
#[must_use]
pub fn etag_matches(list: &[u8], etag: &[u8], weak: bool) -> bool {
    if list == b"*" {
        return true;
    }
    let etag = if weak { strong_part(etag) } else { etag };
    if etag.is_empty() {
        return false;
    }
    let mut rest = list;
    while !rest.is_empty() {
        let tag = if weak { strong_part(rest) } else { rest };
        if let Some(after) = tag.strip_prefix(etag)
            && ends_entry(after)
        {
            return true;
        }
        rest = next_entry(tag);
    }
    false
}

/// The tag without the mark of weakness.
fn strong_part(tag: &[u8]) -> &[u8] {
    match tag.strip_prefix(b"W/") {
        Some(strong) if !strong.is_empty() => strong,
        _ => tag,
    }
}

/// Whether nothing but white space comes before the next comma or the end.
fn ends_entry(rest: &[u8]) -> bool {
    !matches!(rest.iter().find(|byte| !matches!(byte, b' ' | b'\t')), Some(byte) if *byte != b',')
}

/// Returns the text behind the next comma and the white space and commas after it.
fn next_entry(rest: &[u8]) -> &[u8] {
    let comma = memchr::memchr(b',', rest).unwrap_or(rest.len());
    let rest = &rest[comma..];
    let skipped = rest
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t' | b','))
        .count();
    &rest[skipped..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_anywhere_in_a_list() {
        assert!(etag_matches(b"\"a\"", b"\"a\"", false));
        assert!(etag_matches(
            b"\"x\", \"y\", \t\"a\" , \"z\"",
            b"\"a\"",
            false
        ));
        assert!(etag_matches(b"\"x\",,\"a\"", b"\"a\"", false));
        assert!(!etag_matches(b"\"ab\"", b"\"a\"", false));
        assert!(!etag_matches(b"\"a\"b", b"\"a\"", false));
        assert!(!etag_matches(b"", b"\"a\"", false));
    }

    /// RFC 9110 section 13.1.1 and 13.1.2: If-Match compares strongly,
    /// If-None-Match weakly.
    #[test]
    fn weakness_matters_only_to_the_strong_comparison() {
        assert!(etag_matches(b"W/\"a\"", b"\"a\"", true));
        assert!(etag_matches(b"\"a\"", b"W/\"a\"", true));
        assert!(etag_matches(b"\"b\", W/\"a\"", b"W/\"a\"", true));
        assert!(!etag_matches(b"W/\"a\"", b"\"a\"", false));
        assert!(etag_matches(b"W/\"a\"", b"W/\"a\"", false));
    }

    #[test]
    fn star_matches_anything_but_only_alone() {
        assert!(etag_matches(b"*", b"\"a\"", true));
        assert!(etag_matches(b"*", b"", false));
        assert!(!etag_matches(b"*, \"b\"", b"\"a\"", true));
        assert!(!etag_matches(b"\"a\"", b"", true));
    }
}
