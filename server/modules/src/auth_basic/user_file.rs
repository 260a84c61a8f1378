//! Reads the user file.
//!
//! A small file is searched in the memory of the driver, a larger one piece by piece. The search always runs to the end
//! of the file: its time does not reveal whether a name exists. Absent: caching between requests.
//!
//! Source: nginx documentation, `auth_basic_user_file`.

use std::rc::Rc;

use engines::http::FileRange;
use server_base::errlog::Level;
use server_base::files::{ENOENT, FileError, OpenPolicy};
use server_http::exchange::{Ctx, Exchange};
use server_http::paths::log_failed;

use super::entries::{Entry, Search};

/// Searches for a user.
///
/// # Errors
/// The status to answer with when the file cannot be read; the reason has been logged.
pub(super) fn find(x: &Exchange, cx: &mut Ctx<'_>, path: &[u8], user: &[u8]) -> Result<Entry, u16> {
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
    if !opened.meta.is_file {
        return Err(failed(if opened.meta.is_dir { EISDIR } else { EINVAL }));
    }
    let mut search = Search::new(user);
    if let Some(bytes) = cx.files.content(&opened) {
        search.lines(&bytes);
        return Ok(search.entry);
    }
    let file = opened.file.as_ref().ok_or_else(|| failed(EIO))?;
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
        search.piece(&piece);
        offset += len;
    }
    search.end();
    Ok(search.entry)
}

/// Bytes read at a time.
const PIECE_BYTES: u64 = 64 << 10;
/// Input or output error.
const EIO: i32 = 5;
/// It is a directory.
const EISDIR: i32 = 21;
/// It cannot be read.
const EINVAL: i32 = 22;
