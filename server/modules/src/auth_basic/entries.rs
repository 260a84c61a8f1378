//! The lines of a user file: `name:password` or `name:password:comment`, and comments after `#`.
//!
//! The first line of a name counts. Source: nginx documentation, `auth_basic_user_file`.

use super::cost::cost_us;

/// A user's entry in a user file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The stored password of the user; `None` if the file has no entry.
    pub(crate) stored: Option<Vec<u8>>,
    /// The stored password with the costliest comparison; the first of several.
    pub(crate) costliest: Option<Vec<u8>>,
}

/// Searches for a user in a file that is read in pieces.
pub(crate) struct Search<'a> {
    user: &'a [u8],
    /// The entry found so far.
    pub(crate) entry: Entry,
    /// Cost of the costliest entry for a password of usual length, microseconds.
    cost_us: u64,
    /// The incomplete last line of the previous piece; empty if it is too long.
    held: Vec<u8>,
    too_long: bool,
}

impl<'a> Search<'a> {
    /// Begins a search for a user.
    pub(crate) fn new(user: &'a [u8]) -> Self {
        Self {
            user,
            entry: Entry::default(),
            cost_us: 0,
            held: Vec::new(),
            too_long: false,
        }
    }

    /// Processes the next piece of the file.
    pub(crate) fn piece(&mut self, piece: &[u8]) {
        let Some(first) = memchr::memchr(b'\n', piece) else {
            return self.hold(piece);
        };
        let last = memchr::memrchr(b'\n', piece).unwrap_or(first);
        self.hold(&piece[..first]);
        self.end();
        self.lines(&piece[first..last]);
        self.hold(&piece[last + 1..]);
    }

    fn hold(&mut self, part: &[u8]) {
        self.too_long |= self.held.len() + part.len() > LINE_MAX;
        if self.too_long {
            self.held.clear();
        } else {
            self.held.extend_from_slice(part);
        }
    }

    /// Processes the incomplete line once it is complete, or at the end of the file.
    pub(crate) fn end(&mut self) {
        let line = std::mem::take(&mut self.held);
        self.line(&line);
        self.too_long = false;
    }

    /// Processes complete lines.
    pub(crate) fn lines(&mut self, text: &[u8]) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', text).chain([text.len()]) {
            self.line(&text[start..end]);
            start = end + 1;
        }
    }

    fn line(&mut self, line: &[u8]) {
        if matches!(line.first(), Some(b'#' | b'\r')) {
            return;
        }
        let Some(colon) = memchr::memchr(b':', line) else {
            return;
        };
        let (name, rest) = (&line[..colon], &line[colon + 1..]);
        let stored = memchr::memchr2(b':', b'\r', rest).map_or(rest, |end| &rest[..end]);
        if name == self.user && self.entry.stored.is_none() {
            self.entry.stored = Some(stored.to_vec());
        }
        let cost_us = cost_us(stored, USUAL_BYTES);
        if cost_us > self.cost_us {
            self.cost_us = cost_us;
            self.entry.costliest = Some(stored.to_vec());
        }
    }
}

/// Maximum length of a line that spans two pieces of the file, bytes; a longer one is skipped.
const LINE_MAX: usize = 4096;
/// Length of a usual password, bytes.
const USUAL_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &[u8], user: &[u8]) -> Entry {
        let mut search = Search::new(user);
        search.lines(text);
        search.entry
    }

    #[test]
    fn the_first_line_of_a_name_counts() {
        let text = b"# comment\n\nuser2:x\nuser:one:remark\r\nuser:two\nlast:three";
        for (text, user, stored) in [
            (&text[..], "user", Some("one")),
            (text, "last", Some("three")),
            (text, "use", None),
            (text, "# comment", None),
            (b"user:secret\r\n", "user", Some("secret")),
            (b"user:", "user", Some("")),
            (b"user", "user", None),
            (b"#user:x\n\ruser:y", "#user", None),
            (b"#user:x\n\ruser:y", "\ruser", None),
        ] {
            let found = entry(text, user.as_bytes()).stored;
            assert_eq!(found.as_deref(), stored.map(str::as_bytes), "{user:?}");
        }
    }

    #[test]
    fn the_costliest_entry_is_known_whoever_is_looked_for() {
        let text = b"a:{PLAIN}x\nb:$2y$10$abcdefghijklmnopqrstuuone\nc:$apr1$salt$x\n\
            d:$2y$10$abcdefghijklmnopqrstuutwo\n#e:$2y$12$abcdefghijklmnopqrstuu\nf:$2y$99$no";
        for user in ["a", "b", "d", "f", "nobody"] {
            let costliest = entry(text, user.as_bytes()).costliest;
            let expected = &b"$2y$10$abcdefghijklmnopqrstuuone"[..];
            assert_eq!(costliest.as_deref(), Some(expected), "{user}");
        }
        assert_eq!(entry(b"# nobody\n", b"a"), Entry::default());
    }

    #[test]
    fn a_file_cut_anywhere_gives_the_same() {
        let text = b"a:1\nbb:22\n\nccc:$1$x$:x\nd:4";
        for cut in 0..=text.len() {
            for user in ["a", "bb", "ccc", "d", "e"] {
                let mut search = Search::new(user.as_bytes());
                search.piece(&text[..cut]);
                search.piece(&text[cut..]);
                search.end();
                assert_eq!(
                    search.entry,
                    entry(text, user.as_bytes()),
                    "{user} at {cut}"
                );
            }
        }
    }

    #[test]
    fn a_line_in_several_pieces_has_a_limit() {
        for (length, found) in [(LINE_MAX, true), (LINE_MAX + 1, false)] {
            let line = [b"u:", "x".repeat(length - 2).as_bytes()].concat();
            let mut search = Search::new(b"u");
            search.piece(&line[..9]);
            search.piece(&line[9..]);
            search.piece(b"\n");
            assert_eq!(search.entry.stored.is_some(), found, "{length}");
            search.piece(b"u:y\n");
            assert_eq!(search.entry.stored.as_deref() == Some(b"y"), !found);
        }
    }
}
