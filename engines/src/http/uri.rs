//! From the target of a request to the path the server works with.
//!
//! Percent-decoding and dot segments are resolved in one pass, so that encoded dots cannot escape
//! the rules: "%2e%2e%2f" climbs exactly like "../" and is refused above the root like it. Source:
//! RFC 3986 section 5.2.4; nginx's `ngx_http_parse_complex_uri` for every corner.

use super::escape::hex_pair;
use std::ops::Range;

/// The path cannot be decoded, or leads above the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadUri;

/// Result of [`normalize`] besides the path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedTarget {
    /// The query in the target, after '?' and before '#'; may be empty.
    pub args: Option<Range<usize>>,
    /// The extension in the path: after the last '.' of the last segment, if
    /// that is not its first byte; may be empty.
    pub ext: Option<Range<usize>>,
    /// A part was decoded, resolved, merged or cut off.
    pub changed: bool,
    /// The path had a percent-encoded byte.
    pub quoted: bool,
}

/// Decodes the path of `target` (origin form) into `uri`, which is cleared first. `%XX` is decoded,
/// "." and ".." segments are resolved, "//" is merged if `merge_slashes`, the text from '#' on is
/// cut off, and '+' is kept.
///
/// # Errors
/// [`BadUri`] if the target does not begin with '/', has a broken `%XX` or a NUL, encoded or not, or climbs above
/// the root; `uri` is then undefined.
#[inline]
pub fn normalize(
    target: &[u8],
    merge_slashes: bool,
    uri: &mut Vec<u8>,
) -> Result<ParsedTarget, BadUri> {
    uri.clear();
    if target.first() != Some(&b'/') {
        return Err(BadUri);
    }
    if let Some(parsed) = plain(target, uri) {
        return Ok(parsed);
    }
    uri.clear();
    Resolver {
        uri,
        merge_slashes,
        place: SegmentState::Usual,
        ext: None,
        quoted: false,
    }
    .run(target)
}

/// The common case: nothing to decode or resolve, so the path is a copy.
#[inline]
fn plain(target: &[u8], uri: &mut Vec<u8>) -> Option<ParsedTarget> {
    let mut end = target.len();
    let mut ext = None;
    let mut after_slash = false;
    for (at, &byte) in target.iter().enumerate() {
        if !SPECIAL[byte as usize] {
            after_slash = false;
            continue;
        }
        match byte {
            b'/' if !after_slash => {
                after_slash = true;
                ext = None;
            }
            b'.' if !after_slash => ext = Some(at + 1),
            b'?' => {
                end = at;
                break;
            }
            _ => return None,
        }
    }
    uri.extend_from_slice(&target[..end]);
    let args = args_after(target, end);
    let changed = args.as_ref().is_some_and(|args| args.end != target.len());
    Some(ParsedTarget {
        args,
        ext: ext.map(|ext| ext..end),
        changed,
        quoted: false,
    })
}

/// The query of `target` behind its path, which ends at `end`; without a fragment.
fn args_after(target: &[u8], end: usize) -> Option<Range<usize>> {
    if target.get(end) != Some(&b'?') {
        return None;
    }
    let start = end + 1;
    let len = memchr::memchr(b'#', &target[start..]).unwrap_or(target.len() - start);
    Some(start..start + len)
}

/// State of the resolver within a segment.
#[derive(Clone, Copy, PartialEq)]
enum SegmentState {
    Usual,
    /// Right after a slash.
    Slash,
    /// After "/.".
    Dot,
    /// After "/..".
    DotDot,
}

struct Resolver<'a> {
    uri: &'a mut Vec<u8>,
    merge_slashes: bool,
    place: SegmentState,
    /// Start of the extension in `uri`.
    ext: Option<usize>,
    quoted: bool,
}

impl Resolver<'_> {
    fn run(mut self, target: &[u8]) -> Result<ParsedTarget, BadUri> {
        let mut at = 0;
        while let Some(&byte) = target.get(at) {
            match byte {
                b'?' | b'#' => break,
                0 => return Err(BadUri),
                b'%' => {
                    self.decoded(hex_pair(&target[at + 1..]).ok_or(BadUri)?)?;
                    at += 3;
                }
                _ => {
                    self.byte(byte)?;
                    at += 1;
                }
            }
        }
        self.end_segment()?;
        let end = self.uri.len();
        Ok(ParsedTarget {
            args: args_after(target, at),
            ext: self.ext.map(|ext| ext..end),
            changed: true,
            quoted: self.quoted,
        })
    }

    /// A byte received as `%XX`. It has its plain meaning, except that an encoded '%', '#' or '?'
    /// is only text.
    fn decoded(&mut self, byte: u8) -> Result<(), BadUri> {
        self.quoted = true;
        match byte {
            0 => Err(BadUri),
            b'%' | b'#' | b'?' => {
                self.place = SegmentState::Usual;
                self.uri.push(byte);
                Ok(())
            }
            _ => self.byte(byte),
        }
    }

    fn byte(&mut self, byte: u8) -> Result<(), BadUri> {
        match (self.place, byte) {
            (SegmentState::Slash, b'/') => {
                if !self.merge_slashes {
                    self.uri.push(b'/');
                }
                return Ok(());
            }
            (SegmentState::Dot | SegmentState::DotDot, b'/') => {
                self.end_segment()?;
                self.place = SegmentState::Slash;
                return Ok(());
            }
            (SegmentState::Usual, b'/') => {
                self.ext = None;
                self.place = SegmentState::Slash;
            }
            (SegmentState::Usual, b'.') => self.ext = Some(self.uri.len() + 1),
            (SegmentState::Slash, b'.') => self.place = SegmentState::Dot,
            (SegmentState::Dot, b'.') => self.place = SegmentState::DotDot,
            _ => self.place = SegmentState::Usual,
        }
        self.uri.push(byte);
        Ok(())
    }

    /// Resolves a dot segment that ends here.
    fn end_segment(&mut self) -> Result<(), BadUri> {
        match self.place {
            SegmentState::Usual | SegmentState::Slash => {}
            SegmentState::Dot => {
                self.uri.pop();
            }
            SegmentState::DotDot => {
                let above = self.uri.len().checked_sub(PARENT.len()).ok_or(BadUri)?;
                let slash = memchr::memrchr(b'/', &self.uri[..above]).ok_or(BadUri)?;
                self.uri.truncate(slash + 1);
            }
        }
        Ok(())
    }
}

/// End of the path when a parent segment is complete.
const PARENT: &[u8] = b"/..";

/// The bytes that end the fast path; NUL is never accepted.
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let chars = b"/.%?#\0";
    let mut at = 0;
    while at < chars.len() {
        table[chars[at] as usize] = true;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn path_with(target: &str, merge_slashes: bool) -> Option<String> {
        let mut uri = b"old".to_vec();
        normalize(target.as_bytes(), merge_slashes, &mut uri).ok()?;
        Some(String::from_utf8(uri).unwrap())
    }

    fn path(target: &str) -> Option<String> {
        path_with(target, true)
    }

    fn parts(target: &str) -> (String, Option<String>, Option<String>) {
        let mut uri = Vec::new();
        let parsed = normalize(target.as_bytes(), true, &mut uri).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let ext = parsed.ext.map(|ext| text(&uri[ext]));
        let args = parsed.args.map(|args| text(&target.as_bytes()[args]));
        (text(&uri), args, ext)
    }

    #[test]
    fn a_plain_path_is_copied_and_not_changed() {
        let mut uri = Vec::new();
        let parsed = normalize(b"/a/b+c.tar.gz?x=1", true, &mut uri).unwrap();
        assert_eq!(uri, b"/a/b+c.tar.gz");
        assert_eq!(parsed.args, Some(14..17));
        assert_eq!(parsed.ext, Some(11..13));
        assert!(!parsed.changed && !parsed.quoted);
    }

    /// nginx's http_uri.t.
    #[test]
    fn dot_segments_are_resolved_before_query_and_fragment() {
        for (target, wanted) in [
            ("/foo/bar/.?args", "/foo/bar/"),
            ("/foo/bar/.#frag", "/foo/bar/"),
            ("/foo/bar/..?args", "/foo/"),
            ("/foo/bar/..#frag", "/foo/"),
            ("/foo/bar/.", "/foo/bar/"),
            ("/foo/bar/..", "/foo/"),
            ("/foo/./bar", "/foo/bar"),
            ("/foo/../bar", "/bar"),
            ("/foo/...", "/foo/..."),
            ("/foo/.../..", "/foo/"),
            ("/foo/.bar/..bar", "/foo/.bar/..bar"),
            ("/%02", "/\u{2}"),
            ("/a+b", "/a+b"),
            ("/%2B", "/+"),
        ] {
            assert_eq!(path(target).as_deref(), Some(wanted), "{target}");
        }
    }

    #[test]
    fn encoded_dots_and_slashes_mean_the_same_as_plain_ones() {
        assert_eq!(path("/a/%2e%2e/b").as_deref(), Some("/b"));
        assert_eq!(path("/a%2f..%2Fb").as_deref(), Some("/b"));
        assert_eq!(path("/a/%2e/b").as_deref(), Some("/a/b"));
        assert_eq!(path("/a%2f%2fb").as_deref(), Some("/a/b"));
    }

    /// An encoded delimiter is text, and decoding happens once.
    #[test]
    fn encoded_delimiters_stay_in_the_path() {
        assert_eq!(parts("/a%3Fb%23c%25d"), ("/a?b#c%d".into(), None, None));
        assert_eq!(path("/%252e%252e/").as_deref(), Some("/%2e%2e/"));
        assert_eq!(path("/.%23/..").as_deref(), Some("/"));
    }

    #[test]
    fn climbing_above_the_root_is_refused() {
        for target in [
            "/..",
            "/../",
            "/../../etc/passwd",
            "/%2e%2e/",
            "/..%2f",
            "/a/../..",
            "/./..",
        ] {
            assert_eq!(path(target), None, "{target}");
        }
        assert_eq!(path("/../a"), None);
    }

    #[test]
    fn broken_encoding_and_nul_are_refused() {
        for target in [
            "/%",
            "/%1",
            "/%zz",
            "/%1z",
            "/foo/bar%",
            "/%00",
            "/a%00b",
            "/%?a",
            "",
            "a",
            "*",
            "?x",
        ] {
            assert_eq!(path(target), None, "{target}");
        }
    }

    /// nginx's merge_slashes.t.
    #[test]
    fn slashes_are_merged_or_kept_as_told() {
        assert_eq!(path("/foo//bar///"), Some("/foo/bar/".into()));
        assert_eq!(path_with("/foo//bar", false), Some("/foo//bar".into()));
        assert_eq!(path_with("/foo//../bar", false), Some("/foo/bar".into()));
        assert_eq!(path_with("/foo///../bar", false), Some("/foo//bar".into()));
        assert_eq!(path_with("//..", false), Some("/".into()));
        assert_eq!(path_with("//..", true), None);
    }

    #[test]
    fn the_query_ends_at_the_fragment() {
        assert_eq!(parts("/?a#b"), ("/".into(), Some("a".into()), None));
        assert_eq!(parts("/#b?c"), ("/".into(), None, None));
        assert_eq!(parts("/?"), ("/".into(), Some(String::new()), None));
        assert_eq!(
            parts("/%41?a%42?c"),
            ("/A".into(), Some("a%42?c".into()), None)
        );
    }

    #[test]
    fn the_extension_is_of_the_last_segment_and_not_its_first_byte() {
        let ext = |target| parts(target).2;
        assert_eq!(ext("/a.b.html").as_deref(), Some("html"));
        assert_eq!(ext("/a.b/c"), None);
        assert_eq!(ext("/.htaccess"), None);
        assert_eq!(ext("/..a.txt").as_deref(), Some("txt"));
        assert_eq!(ext("/a.").as_deref(), Some(""));
        assert_eq!(ext("/%41%2ephp?x.y").as_deref(), Some("php"));
        assert_eq!(ext("/a.php/.."), None);
        assert_eq!(
            ext("/a.php%00.txt".replace("%00", "%01").as_str()).as_deref(),
            Some("txt")
        );
    }
}
