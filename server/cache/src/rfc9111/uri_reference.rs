//! URI references of `Location` and `Content-Location`, resolved within one origin.
//!
//! Percent-encodings stay as they are: keys are made of the same text as those of requests. Source: RFC 3986 sections
//! 5.2, 5.3; RFC 9110 sections 4.2.3, 4.3.1.

/// The target URI of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetUri<'a> {
    /// `http` or `https`, in lower case.
    pub scheme: &'a [u8],
    /// Host and perhaps port, as in `Host`.
    pub authority: &'a [u8],
    /// Path and query in origin form; the path begins with '/'.
    pub target: &'a [u8],
}

/// Resolves a reference against the target URI. Returns path and query in origin form, without a fragment; `None` if the
/// URI has another origin or another scheme.
#[must_use]
pub fn resolve_same_origin(base: &TargetUri<'_>, reference: &[u8]) -> Option<Vec<u8>> {
    let reference = cut(reference, b'#').0;
    let (scheme, rest) = split_scheme(reference);
    if scheme.is_some_and(|scheme| !scheme.eq_ignore_ascii_case(base.scheme)) {
        return None;
    }
    let is_absolute = match rest.strip_prefix(b"//") {
        Some(_) => true,
        // "http:a" is an error (RFC 3986 section 5.2.2).
        None if scheme.is_some() => return None,
        None => false,
    };
    let rest = if is_absolute {
        let rest = &rest[2..];
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?'));
        let (authority, rest) = rest.split_at(end.unwrap_or(rest.len()));
        if !is_same_authority(base, authority) {
            return None;
        }
        rest
    } else {
        rest
    };
    let (path, query) = cut(rest, b'?');
    let (base_path, base_query) = cut(base.target, b'?');
    let (path, query) = match path {
        [] if is_absolute => (b"/".to_vec(), query),
        [] => (base_path.to_vec(), query.or(base_query)),
        [b'/', ..] => (without_dot_segments(path), query),
        _ => {
            let slash = base_path.iter().rposition(|byte| *byte == b'/');
            let mut merged = slash.map_or(b"/".to_vec(), |at| base_path[..=at].to_vec());
            merged.extend_from_slice(path);
            (without_dot_segments(&merged), query)
        }
    };
    let mut target = path;
    if let Some(query) = query {
        target.push(b'?');
        target.extend_from_slice(query);
    }
    Some(target)
}

/// Splits at the first `separator`, which belongs to neither part.
fn cut(text: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|byte| *byte == separator) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// The scheme before a colon, if there is one, and the rest behind the colon.
fn split_scheme(text: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let is_scheme_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let len = text.iter().take_while(|byte| is_scheme_byte(byte)).count();
    match text.get(len) {
        Some(b':') if text[0].is_ascii_alphabetic() => (Some(&text[..len]), &text[len + 1..]),
        _ => (None, text),
    }
}

/// Whether two authorities of one scheme have equal hosts and ports. User information makes them differ.
fn is_same_authority(base: &TargetUri<'_>, authority: &[u8]) -> bool {
    let default: &[u8] = match base.scheme {
        b"https" => b"443",
        _ => b"80",
    };
    let split = |authority| -> (Vec<u8>, Vec<u8>) {
        let (host, port) = split_port(authority);
        let port = if port.is_empty() { default } else { port };
        (host.to_ascii_lowercase(), port.to_vec())
    };
    split(base.authority) == split(authority)
}

/// Host and port of an authority; the port is empty if there is none.
fn split_port(authority: &[u8]) -> (&[u8], &[u8]) {
    let digits = authority
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let at = authority.len() - digits;
    match authority[..at].split_last() {
        Some((b':', host)) => (host, &authority[at..]),
        _ => (authority, b""),
    }
}

/// Removes "." and ".." segments of a path that begins with '/' (RFC 3986 section 5.2.4).
fn without_dot_segments(path: &[u8]) -> Vec<u8> {
    let mut out: Vec<&[u8]> = Vec::new();
    let mut segments = path.split(|byte| *byte == b'/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            b"." | b".." => {
                if segment == b".." {
                    out.pop();
                }
                if is_last {
                    out.push(b"");
                }
            }
            _ => out.push(segment),
        }
    }
    let mut joined = vec![b'/'];
    joined.extend(out.join(&b'/'));
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(authority: &str, target: &str, reference: &str) -> Option<String> {
        let base = TargetUri {
            scheme: b"http",
            authority: authority.as_bytes(),
            target: target.as_bytes(),
        };
        let target = resolve_same_origin(&base, reference.as_bytes())?;
        Some(String::from_utf8(target).expect("ASCII"))
    }

    /// RFC 3986 section 5.4.
    #[test]
    fn references_are_resolved() {
        for (reference, expected) in [
            ("", "/b/c/d;p?q"),
            ("#s", "/b/c/d;p?q"),
            ("?y", "/b/c/d;p?y"),
            ("?", "/b/c/d;p?"),
            ("g", "/b/c/g"),
            ("./g", "/b/c/g"),
            ("g/", "/b/c/g/"),
            ("/g", "/g"),
            ("g?y#s", "/b/c/g?y"),
            (";x", "/b/c/;x"),
            (".", "/b/c/"),
            ("./", "/b/c/"),
            ("..", "/b/"),
            ("../g", "/b/g"),
            ("../..", "/"),
            ("../../../g", "/g"),
            ("/./g", "/g"),
            ("/../g", "/g"),
            ("g.", "/b/c/g."),
            ("..g", "/b/c/..g"),
            ("./g/.", "/b/c/g/"),
            ("g/./h", "/b/c/g/h"),
            ("g/../h", "/b/c/h"),
            ("g?y/../x", "/b/c/g?y/../x"),
            ("//a/g", "/g"),
            ("//a", "/"),
            ("//a?x", "/?x"),
            ("http://a/x/./y", "/x/y"),
            ("%2e%2e/g", "/b/c/%2e%2e/g"),
        ] {
            let found = resolve("a", "/b/c/d;p?q", reference);
            assert_eq!(found.as_deref(), Some(expected), "{reference}");
        }
        assert_eq!(resolve("a", "/", "g").as_deref(), Some("/g"));
        assert_eq!(resolve("a", "", "g").as_deref(), Some("/g"));
    }

    /// RFC 9110 section 4.3.1: scheme, host and port.
    #[test]
    fn other_origins_are_refused() {
        for (authority, reference, is_same) in [
            ("a", "http://A:80/x", true),
            ("a:80", "http://a/x", true),
            ("a:", "//a:/x", true),
            ("a:8080", "//a:8080/x", true),
            ("[::1]", "//[::1]:80/x", true),
            ("[::1]", "//[::2]/x", false),
            ("a", "HTTP://a/x", true),
            ("a", "https://a/x", false),
            ("a", "//b/x", false),
            ("a", "//a.b/x", false),
            ("a", "//a:81/x", false),
            ("a:8080", "//a/x", false),
            ("a", "//u@a/x", false),
            ("a", "http:x", false),
            ("a", "mailto:x", false),
            ("a", "///x", false),
            ("a", "http://", false),
        ] {
            let found = resolve(authority, "/", reference);
            assert_eq!(found.is_some(), is_same, "{authority} {reference}");
        }
        // A colon in a later segment begins no scheme.
        assert_eq!(resolve("a", "/b", "/x:y").as_deref(), Some("/x:y"));
        assert_eq!(resolve("a", "/b", "1:y").as_deref(), Some("/1:y"));
    }
}
