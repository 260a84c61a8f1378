//! Entity tags: membership in an If-Match or If-None-Match list.
//!
//! Source: RFC 9110 sections 8.8.3 and 13.1; nginx's list rules.

/// Returns whether `etag`, the value of the ETag field of the response, is in the list in `fields`. Several fields
/// of one name are one list (RFC 9110 section 5.3). With `weak`, tags are compared without `W/`, as for
/// If-None-Match; else they must be equal byte for byte, as for If-Match.
///
/// "*" alone matches any tag, an empty one too. An empty `etag` (no ETag) matches nothing else.
#[must_use]
pub fn etag_matches<'a>(
    mut fields: impl Iterator<Item = &'a [u8]>,
    etag: &[u8],
    weak: bool,
) -> bool {
    let first = fields.next();
    match (first, fields.next()) {
        (Some(b"*"), None) => true,
        (first, second) => {
            let mut lists = first.into_iter().chain(second).chain(fields);
            lists.any(|list| is_listed(list, etag, weak))
        }
    }
}

/// Returns whether a tag is in one field.
fn is_listed(list: &[u8], etag: &[u8], weak: bool) -> bool {
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

/// Whether only white space precedes the next comma or the end.
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
    fn etag_matches(list: &[u8], etag: &[u8], weak: bool) -> bool {
        super::etag_matches([list].into_iter(), etag, weak)
    }

    /// RFC 9110 section 5.3.
    #[test]
    fn several_fields_are_one_list() {
        let in_fields = |fields: &[&'static [u8]], weak| {
            super::etag_matches(fields.iter().copied(), b"\"a\"", weak)
        };
        assert!(in_fields(&[b"\"x\"", b"\"y\", \"a\"", b""], false));
        assert!(in_fields(&[b"\"x\"", b",", b", W/\"a\","], true));
        assert!(!in_fields(&[b"\"x\"", b"W/\"a\""], false));
        assert!(!in_fields(&[b"*", b"\"x\""], true));
        assert!(!in_fields(&[], true));
    }

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
