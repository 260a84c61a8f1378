//! The user file: lines `name:password` or `name:password:comment`, and comments after `#`.
//!
//! The first line of a name counts. A small file is looked through where the driver holds it, a larger one piece by
//! piece. Absent: keeping anything of the file from one request to the next.
//!
//! Source: nginx documentation, `auth_basic_user_file`.

use std::rc::Rc;

use engines::http::FileRange;
use server_core::errlog::Level;
use server_core::exchange::{Ctx, Exchange};
use server_core::{ENOENT, FileError, OpenPolicy};

use crate::static_files::log_failed;

/// The password stored for a user, as it is written; `None` if the file does not name the user.
///
/// # Errors
/// The status to answer with when the file cannot be read; the reason has been logged.
pub(super) fn find(
    x: &Exchange,
    cx: &mut Ctx<'_>,
    path: &[u8],
    user: &[u8],
) -> Result<Option<Vec<u8>>, u16> {
    let opened = cx
        .files
        .open(path, &OpenPolicy::default())
        .map_err(|error| {
            let (level, status) = match error.errno {
                ENOENT => (Level::Error, 403_u16),
                _ => (Level::Crit, 500),
            };
            log_failed(x, level, path, error);
            status
        })?;
    let failed = |errno| {
        let call = "read()";
        log_failed(x, Level::Crit, path, FileError { errno, call });
        500
    };
    let file = match &opened.file {
        Some(file) if opened.meta.is_file => file,
        Some(_) => return Err(failed(EINVAL)),
        None => return Err(failed(EISDIR)),
    };
    if let Some(bytes) = cx.files.content(&opened) {
        return Ok(password_of(&bytes, user).map(<[u8]>::to_vec));
    }
    let mut search = Search::new(user);
    let mut offset = 0;
    while offset < opened.meta.size {
        let len = PIECE_BYTES.min(opened.meta.size - offset);
        let range = FileRange {
            file: Rc::clone(file),
            offset,
            len,
        };
        let piece = cx
            .files
            .read(&range)
            .map_err(|error| failed(error.raw_os_error().unwrap_or(EIO)))?;
        if let Some(found) = search.piece(&piece) {
            return Ok(Some(found));
        }
        offset += len;
    }
    Ok(search.end())
}

/// Looks for a user in the pieces of a file.
struct Search<'a> {
    user: &'a [u8],
    /// The line that the piece before broke off in; empty for one that is too long, and whether it is.
    held: Vec<u8>,
    too_long: bool,
}

impl<'a> Search<'a> {
    fn new(user: &'a [u8]) -> Self {
        Self {
            user,
            held: Vec::new(),
            too_long: false,
        }
    }

    fn piece(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        let Some(first) = piece.iter().position(|b| *b == b'\n') else {
            self.hold(piece);
            return None;
        };
        let last = piece.iter().rposition(|b| *b == b'\n').unwrap_or(first);
        self.hold(&piece[..first]);
        let found = self
            .end()
            .or_else(|| password_of(&piece[first..last], self.user).map(<[u8]>::to_vec));
        self.hold(&piece[last + 1..]);
        found
    }

    fn hold(&mut self, part: &[u8]) {
        self.too_long |= self.held.len() + part.len() > LINE_MAX;
        if self.too_long {
            self.held.clear();
        } else {
            self.held.extend_from_slice(part);
        }
    }

    /// The line held ends.
    fn end(&mut self) -> Option<Vec<u8>> {
        let found = password_of(&self.held, self.user).map(<[u8]>::to_vec);
        self.held.clear();
        self.too_long = false;
        found
    }
}

/// The password of a user in a text.
fn password_of<'t>(text: &'t [u8], user: &[u8]) -> Option<&'t [u8]> {
    let line = |line: &'t [u8]| {
        if matches!(line.first(), Some(b'#' | b'\r')) {
            return None;
        }
        let rest = line.strip_prefix(user)?.strip_prefix(b":")?;
        rest.split(|b| matches!(b, b':' | b'\r')).next()
    };
    text.split(|b| *b == b'\n').find_map(line)
}

/// Bytes read at a time.
const PIECE_BYTES: u64 = 64 << 10;
/// Bytes of a line that lies in more than one piece; a longer one is passed over.
const LINE_MAX: usize = 4096;
/// Input or output error.
const EIO: i32 = 5;
/// It is a directory.
const EISDIR: i32 = 21;
/// It cannot be read.
const EINVAL: i32 = 22;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_name_counts() {
        let text = b"# comment\n\nuser2:x\nuser:one:remark\r\nuser:two\nlast:three";
        assert_eq!(password_of(text, b"user"), Some(&b"one"[..]));
        assert_eq!(password_of(text, b"last"), Some(&b"three"[..]));
        assert_eq!(password_of(text, b"use"), None);
        assert_eq!(password_of(text, b"# comment"), None);
        assert_eq!(
            password_of(b"user:secret\r\n", b"user"),
            Some(&b"secret"[..])
        );
        assert_eq!(password_of(b"user:", b"user"), Some(&b""[..]));
        assert_eq!(password_of(b"user", b"user"), None);
        assert_eq!(password_of(b"#user:x\n\ruser:y", b"#user"), None);
        assert_eq!(password_of(b"#user:x\n\ruser:y", b"\ruser"), None);
    }

    #[test]
    fn a_file_cut_anywhere_gives_the_same() {
        let text = b"a:1\nbb:22\n\nccc:333:x\nd:4";
        for cut in 0..=text.len() {
            for user in ["a", "bb", "ccc", "d", "e"] {
                let mut search = Search::new(user.as_bytes());
                let found = search
                    .piece(&text[..cut])
                    .or_else(|| search.piece(&text[cut..]))
                    .or_else(|| search.end());
                let whole = password_of(text, user.as_bytes());
                assert_eq!(found.as_deref(), whole, "{user} at {cut}");
            }
        }
    }

    #[test]
    fn a_line_in_several_pieces_has_a_limit() {
        for (length, found) in [(LINE_MAX, true), (LINE_MAX + 1, false)] {
            let line = [b"u:", "x".repeat(length - 2).as_bytes()].concat();
            let mut search = Search::new(b"u");
            assert_eq!(search.piece(&line[..9]), None);
            assert_eq!(search.piece(&line[9..]), None);
            assert_eq!(search.piece(b"\n").is_some(), found, "{length}");
            assert_eq!(search.piece(b"u:y\n"), Some(b"y".to_vec()));
        }
    }
}
