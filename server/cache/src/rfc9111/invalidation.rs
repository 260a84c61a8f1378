//! Invalidation of stored responses after a successful request with an unsafe method.
//!
//! Source: RFC 9111 section 4.4; RFC 9110 section 9.2.1.

use engines::http::{FieldId, Method};

use super::field_list::FieldList;
use super::uri_reference::{TargetUri, resolve_same_origin};

/// Whether a method is safe: it requests no change. An unknown method counts as unsafe.
#[must_use]
pub const fn is_safe(method: Method) -> bool {
    matches!(
        method,
        Method::Get | Method::Head | Method::Options | Method::Trace | Method::Propfind
    )
}

/// Whether a response invalidates stored ones: the method is unsafe, and the status 2xx or 3xx.
#[must_use]
pub const fn invalidates(method: Method, status: u16) -> bool {
    !is_safe(method) && matches!(status, 200..=399)
}

/// Returns the targets to invalidate, in origin form: that of the request, and those of `Location` and
/// `Content-Location` with its origin. Each is in the list once.
///
/// All stored responses of a target are meant, with each method and each secondary key. Other origins are left alone: a
/// server could empty the cache of another one.
#[must_use]
pub fn invalidated_targets(base: &TargetUri<'_>, response: FieldList<'_>) -> Vec<Vec<u8>> {
    let locations = response.by_id(FieldId::Location);
    let references = locations.chain(response.named(b"Content-Location"));
    let mut targets = vec![base.target.to_vec()];
    for target in references.filter_map(|reference| resolve_same_origin(base, reference)) {
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;
    use engines::http::Fields;

    /// RFC 9111 section 4.4.
    #[test]
    fn unsafe_methods_invalidate_after_success() {
        for (method, status, expected) in [
            (Method::Post, 200, true),
            (Method::Put, 201, true),
            (Method::Delete, 204, true),
            (Method::Patch, 200, true),
            (Method::Move, 201, true),
            (Method::Other, 200, true),
            (Method::Post, 303, true),
            (Method::Post, 399, true),
            (Method::Post, 199, false),
            (Method::Post, 400, false),
            (Method::Post, 500, false),
            (Method::Get, 200, false),
            (Method::Head, 200, false),
            (Method::Options, 200, false),
            (Method::Trace, 200, false),
            (Method::Propfind, 207, false),
        ] {
            assert_eq!(invalidates(method, status), expected, "{method:?} {status}");
        }
    }

    /// RFC 9111 section 4.4: no other origin.
    #[test]
    fn targets_have_the_origin_of_the_request() {
        let base = TargetUri {
            scheme: b"https",
            authority: b"example.com",
            target: b"/a/b?c",
        };
        let mut response = Fields::default();
        for (name, value) in [
            ("Location", "new"),
            ("Content-Location", "https://EXAMPLE.com:443/d?e#f"),
            ("Content-Location", "/a/new"),
            ("Location", "https://other.example/x"),
        ] {
            response.push(name.as_bytes(), value.as_bytes());
        }
        let found = invalidated_targets(&base, FieldList::from(&response));
        assert_eq!(found, [&b"/a/b?c"[..], b"/a/new", b"/d?e"]);
        let none = Fields::default();
        let found = invalidated_targets(&base, FieldList::from(&none));
        assert_eq!(found, [b"/a/b?c"]);
    }
}
