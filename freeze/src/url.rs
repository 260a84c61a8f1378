//! References, resolved to a path in the tree as a browser resolves them.
//!
//! Absent: a whole URL parser. A reference with a scheme or a host is out of the tree, unless it is that of the site.
//!
//! Source: WHATWG URL, "URL parsing", for special schemes.

/// URL at which the tree will be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// `https://example.org`, if known.
    origin: Option<String>,
    /// Its path there, with a slash at both ends.
    mount: String,
}

/// Meaning of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// No file: the same document, data, mail.
    Nothing,
    /// Something out of the tree; for an HTTP URL its path there, without the first slash.
    Elsewhere(String),
    /// A path in the tree, without a slash at its beginning.
    Inside(String),
}

impl Site {
    /// `https://example.org/docs/`, or `/docs/` if only the path is known.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (origin, path) = match text.split_once("://") {
            Some((scheme, rest)) => {
                let end = rest.find('/').unwrap_or(rest.len());
                let valid = matches!(scheme, "http" | "https") && end > 0;
                let origin = &text[..scheme.len() + 3 + end];
                (valid.then(|| Some(origin.to_owned()))?, &rest[end..])
            }
            None => (None, text),
        };
        if !(path.is_empty() || path.starts_with('/')) || path.contains(['?', '#']) {
            return None;
        }
        let mount = format!("{}/", path.trim_end_matches('/'));
        Some(Self { origin, mount })
    }

    /// Resolves `url` in a document in the directory `dir`, which is empty or ends in a slash.
    pub(super) fn resolve(&self, dir: &str, url: &[u8]) -> Target {
        let url = String::from_utf8_lossy(url.trim_ascii());
        let path = &url[..url.find(['?', '#']).unwrap_or(url.len())];
        if path.is_empty() {
            return Target::Nothing;
        }
        let path = path.replace('\\', "/");
        if let Some(scheme) = scheme(&path) {
            return match scheme.to_ascii_lowercase().as_str() {
                "http" | "https" => self.absolute(&path, &path),
                _ => Target::Nothing,
            };
        }
        if path.starts_with("//") {
            let scheme = self.origin.as_deref().and_then(|o| o.split_once("//"));
            let whole = format!("{}{path}", scheme.map_or("http:", |(scheme, _)| scheme));
            return self.absolute(&whole, &path);
        }
        match path.strip_prefix('/') {
            Some(_) => self.rooted(&path),
            None => self.normal(&format!("{dir}{path}")),
        }
    }

    /// Returns the directory that a `base` element sets for later references; `None` if it is outside the tree.
    pub(super) fn base(&self, dir: &str, url: &[u8]) -> Option<String> {
        match self.resolve(dir, url) {
            Target::Nothing => Some(dir.to_owned()),
            Target::Elsewhere(_) => None,
            Target::Inside(path) => {
                let end = path.rfind('/').map_or(0, |slash| slash + 1);
                Some(path[..end].to_owned())
            }
        }
    }

    fn absolute(&self, whole: &str, shown: &str) -> Target {
        let own = self
            .origin
            .as_deref()
            .and_then(|origin| whole.strip_prefix(origin));
        match own {
            Some("") => self.rooted("/"),
            Some(path) if path.starts_with('/') => self.rooted(path),
            _ => {
                let after = shown.split_once("//").map_or("", |(_, after)| after);
                let path = after.split_once('/').map_or("", |(_, path)| path);
                Target::Elsewhere(decoded(path))
            }
        }
    }

    fn rooted(&self, path: &str) -> Target {
        match path.strip_prefix(self.mount.as_str()) {
            Some(rest) => self.normal(rest),
            None if format!("{path}/") == self.mount => Target::Inside(String::new()),
            None => Target::Elsewhere(String::new()),
        }
    }

    /// Takes dots out of a path.
    fn normal(&self, path: &str) -> Target {
        let mut parts: Vec<&str> = Vec::new();
        let mut slash = true;
        for part in path.split('/') {
            slash = false;
            match part {
                "." | "%2e" | "%2E" => slash = true,
                ".." | ".%2e" | ".%2E" | "%2e." | "%2E." | "%2e%2e" | "%2E%2E" => {
                    slash = true;
                    // A browser stays at the root. A part of a site has other files above its root.
                    if parts.pop().is_none() && self.mount != "/" {
                        return Target::Elsewhere(String::new());
                    }
                }
                "" => slash = true,
                part => parts.push(part),
            }
        }
        let mut normal = decoded(&parts.join("/"));
        if slash && !normal.is_empty() {
            normal.push('/');
        }
        Target::Inside(normal)
    }
}

impl Default for Site {
    fn default() -> Self {
        Self {
            origin: None,
            mount: "/".to_owned(),
        }
    }
}

/// The place of the hash in a reference: before the last dot of the last part of its path, else at the end.
pub(super) fn hash_place(url: &[u8]) -> usize {
    let blank = |b: &u8| b.is_ascii_whitespace();
    let trimmed = url.len() - url.iter().rev().take_while(|b| blank(b)).count();
    let end = url[..trimmed]
        .iter()
        .position(|b| matches!(b, b'?' | b'#'))
        .unwrap_or(trimmed);
    let from = url[..end]
        .iter()
        .rposition(|b| matches!(b, b'/' | b'\\'))
        .map_or(0, |slash| slash + 1);
    let name = &url[from..end];
    let dot = (0..name.len()).rev().find(|i| {
        name[*i] == b'.'
            || name[*i..]
                .get(..3)
                .is_some_and(|t| t.eq_ignore_ascii_case(b"%2e"))
    });
    dot.map_or(end, |dot| from + dot)
}

fn scheme(path: &str) -> Option<&str> {
    let (scheme, _) = path.split_once(':')?;
    let bytes = scheme.as_bytes();
    let valid = bytes.first()?.is_ascii_alphabetic()
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    valid.then_some(scheme)
}

/// Decodes percent signs; a result that is not UTF-8 is no name of the tree.
pub(super) fn decoded(path: &str) -> String {
    if !path.contains('%') {
        return path.to_owned();
    }
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let digits = bytes
            .get(i + 1..i + 3)
            .filter(|d| bytes[i] == b'%' && d.iter().all(u8::is_ascii_hexdigit));
        let byte = digits
            .and_then(|d| std::str::from_utf8(d).ok())
            .and_then(|d| u8::from_str_radix(d, 16).ok());
        out.push(byte.unwrap_or(bytes[i]));
        i += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(site: &Site, dir: &str, url: &str) -> String {
        match site.resolve(dir, url.as_bytes()) {
            Target::Inside(path) => path,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn references_are_resolved_as_browsers_do() {
        let site = Site::default();
        for (dir, url, path) in [
            ("a/", "b.css", "a/b.css"),
            ("a/", "../b.css?x=1#y", "b.css"),
            ("a/", "../../../b.css", "b.css"),
            ("a/", "/c/./d/../e%20f.png", "c/e f.png"),
            ("a/", " x/ ", "a/x/"),
            ("a/b/", "..", "a/"),
            ("", ".", ""),
            ("a/", "c\\d.png", "a/c/d.png"),
            ("a/", "b:c.css", "Nothing"),
            ("a/", "#top", "Nothing"),
            ("a/", "?page=2", "Nothing"),
            ("a/", "data:image/png;base64,AA==", "Nothing"),
            ("a/", "https://other.test/x/a.css", "Elsewhere(\"x/a.css\")"),
            ("a/", "//other.test/a.css", "Elsewhere(\"a.css\")"),
        ] {
            assert_eq!(inside(&site, dir, url), path, "{url}");
        }
    }

    #[test]
    fn a_site_below_a_path_has_its_own_root() {
        let site = Site::parse("https://example.test/docs").expect("it is a site");
        for (url, path) in [
            ("/docs/a.css", "a.css"),
            ("/docs", ""),
            ("https://example.test/docs/x/a.css", "x/a.css"),
            ("//example.test/docs/a.css", "a.css"),
            ("/other/a.css", "Elsewhere(\"\")"),
            ("../../a.css", "Elsewhere(\"\")"),
            ("https://example.test.evil/docs/a", "Elsewhere(\"docs/a\")"),
        ] {
            assert_eq!(inside(&site, "p/", url), path, "{url}");
        }
        assert_eq!(Site::parse("/"), Some(Site::default()));
        for wrong in ["ftp://a/", "docs", "https:///x", "https://a/?x"] {
            assert_eq!(Site::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_base_is_the_directory_of_its_reference() {
        let site = Site::default();
        assert_eq!(site.base("a/", b"/x/y.html").as_deref(), Some("x/"));
        assert_eq!(site.base("a/", b"../").as_deref(), Some(""));
        assert_eq!(site.base("a/", b"https://cdn.test/"), None);
    }

    #[test]
    fn the_hash_stands_before_the_last_dot() {
        for (url, place) in [
            ("a.css", 1),
            ("x.d/a.min.js?v=1.2", 9),
            ("a.tar%2Egz", 5),
            ("x.d/LICENSE#a.b", 11),
            ("a.css ", 1),
        ] {
            assert_eq!(hash_place(url.as_bytes()), place, "{url}");
        }
    }
}
