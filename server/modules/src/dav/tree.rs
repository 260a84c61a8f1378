//! Directory trees: removing and copying them, and creating the parents of a file. Renaming files, also across file
//! systems.

use server_base::errlog::{Level, Printable};
use server_base::files::{
    Change, DirEntry, EACCES, EEXIST, ENOENT, ENOSPC, ENOTDIR, EXDEV, FileError, Meta,
};
use server_http::exchange::{Ctx, Exchange};
use server_http::paths::{log_failed, reason};

use super::{failed, of_errno};

/// The attributes that a copy of a file keeps.
#[derive(Clone, Copy)]
pub(super) struct CopiedAttributes {
    pub(super) mode: u32,
    pub(super) modified_s: i64,
}

impl CopiedAttributes {
    /// That of the file itself.
    pub(super) fn of(meta: &Meta) -> Self {
        Self {
            mode: meta.mode & PERMISSIONS,
            modified_s: meta.mtime_s,
        }
    }
}

/// Renames a file. If `made_dirs` has permissions, missing parents are created with them. Across file systems the file
/// is copied; the caller removes the source.
pub(super) fn rename(
    x: &Exchange,
    cx: &mut Ctx<'_>,
    (from, to): (&[u8], &[u8]),
    kept: CopiedAttributes,
    made_dirs: Option<u32>,
) -> Result<(), u16> {
    let renaming = Change::Rename { from, to };
    let mut renamed = cx.files.change(&renaming);
    if let Some(mode) = made_dirs
        && is(renamed, ENOENT)
    {
        make_way(x, cx, to, mode)?;
        renamed = cx.files.change(&renaming);
    }
    if is(renamed, EXDEV) {
        renamed = copy_file(cx, from, to, kept);
        if renamed.is_ok() {
            renamed = cx.files.change(&Change::Remove(from));
        }
    }
    renamed.map_err(|error| {
        let (from, to, reason) = (Printable(from), Printable(to), reason(error));
        let text = format_args!("{} \"{from}\" to \"{to}\" failed ({reason})", error.call);
        x.log(Level::Crit, text);
        status(error)
    })
}

/// Returns the status for a failed move to the target. As in nginx a too long name is a server error.
pub(super) fn status(error: FileError) -> u16 {
    match error.errno {
        // RFC 4918 sections 9.7.1 and 9.8.5: the directory must be there.
        ENOENT | ENOTDIR => 409,
        ENOSPC => 507,
        _ => 500,
    }
}

fn is(result: Result<(), FileError>, errno: i32) -> bool {
    result.is_err_and(|error| error.errno == errno)
}

/// Copies one file.
pub(super) fn copy_file(
    cx: &mut Ctx<'_>,
    from: &[u8],
    to: &[u8],
    kept: CopiedAttributes,
) -> Result<(), FileError> {
    cx.files.change(&Change::Copy {
        from,
        to,
        mode: kept.mode,
        modified_s: kept.modified_s,
    })
}

/// Creates the parent directories of a file.
fn make_way(x: &Exchange, cx: &mut Ctx<'_>, to: &[u8], mode: u32) -> Result<(), u16> {
    let mut denied: Option<(&[u8], FileError)> = None;
    for end in memchr::memchr_iter(b'/', to).filter(|end| *end > 0) {
        let path = &to[..end];
        denied = match cx.files.change(&Change::MakeDir { path, mode }) {
            // A directory that cannot be made may exist; if it does not, the last one fails too.
            Err(error) if error.errno == EACCES => Some((path, error)),
            Err(error) if error.errno != EEXIST => {
                // If a parent could not be created, its error is the reason.
                let (path, error) = denied.unwrap_or((path, error));
                return Err(not_made(x, path, error));
            }
            _ => None,
        };
    }
    denied.map_or(Ok(()), |(path, error)| Err(not_made(x, path, error)))
}

/// Logs the failure to create a parent directory; returns the status.
fn not_made(x: &Exchange, path: &[u8], error: FileError) -> u16 {
    log_failed(x, Level::Crit, path, error);
    status(error)
}

/// Removes a directory tree. After a failure the rest is still removed as far as possible.
pub(super) fn remove(x: &Exchange, cx: &mut Ctx<'_>, path: &[u8]) -> Result<(), u16> {
    let mut first = None;
    remove_inside(x, cx, path, TREE_DEPTH, &mut first);
    if let Err(error) = cx.files.change(&Change::RemoveDir(path)) {
        first.get_or_insert(failed(x, path, error, 404));
    }
    first.map_or(Ok(()), Err)
}

fn remove_inside(x: &Exchange, cx: &mut Ctx<'_>, path: &[u8], depth: u32, first: &mut Option<u16>) {
    for (path, meta) in entries(x, cx, path, depth, first) {
        let removed = if meta.is_dir {
            remove_inside(x, cx, &path, depth - 1, first);
            cx.files.change(&Change::RemoveDir(&path))
        } else {
            cx.files.change(&Change::Remove(&path))
        };
        if let Err(error) = removed {
            first.get_or_insert(failed(x, &path, error, 404));
        }
    }
}

/// Copies the entries of a directory into an existing one. Links and special files are skipped; with `all` that is a
/// failure.
pub(super) fn copy_inside(
    x: &Exchange,
    cx: &mut Ctx<'_>,
    from: &[u8],
    to: &[u8],
    all: bool,
) -> Result<(), u16> {
    let mut first = None;
    copy_level(x, cx, (from, to), all, TREE_DEPTH, &mut first);
    first.map_or(Ok(()), Err)
}

fn copy_level(
    x: &Exchange,
    cx: &mut Ctx<'_>,
    (from, to): (&[u8], &[u8]),
    all: bool,
    depth: u32,
    first: &mut Option<u16>,
) {
    for (path, meta) in entries(x, cx, from, depth, first) {
        let target = [to, &path[from.len()..]].concat();
        let kept = CopiedAttributes::of(&meta);
        let copied = if meta.is_dir {
            let made = cx.files.change(&Change::MakeDir {
                path: &target,
                mode: kept.mode,
            });
            if made.is_ok() {
                copy_level(x, cx, (&path, &target), all, depth - 1, first);
                let _ = cx.files.change(&Change::Modified {
                    path: &target,
                    time_s: kept.modified_s,
                });
            }
            made
        } else if meta.is_file {
            copy_file(cx, &path, &target, kept)
        } else {
            if all {
                let path = Printable(&path);
                let text = format_args!("\"{path}\" is not a regular file: it cannot be moved");
                x.log(Level::Error, text);
                first.get_or_insert(500);
            }
            Ok(())
        };
        if let Err(error) = copied {
            first.get_or_insert(failed(x, &target, error, 500));
        }
    }
}

/// Returns the entries of a directory with their paths; an error if `depth` is exhausted.
fn entries(
    x: &Exchange,
    cx: &mut Ctx<'_>,
    path: &[u8],
    depth: u32,
    first: &mut Option<u16>,
) -> Vec<(Vec<u8>, Meta)> {
    let found = match depth {
        0 => Err(of_errno(server_base::files::ENAMETOOLONG)),
        _ => cx.files.entries(path),
    };
    let list = found.unwrap_or_else(|error| {
        first.get_or_insert(failed(x, path, error, 404));
        Vec::new()
    });
    let described = |entry: DirEntry| {
        let path = [path, b"/", &entry.name].concat();
        entry.meta.ok().map(|meta| (path, meta))
    };
    list.into_iter().filter_map(described).collect()
}

/// Maximum depth of a directory that is removed or copied.
pub(super) const TREE_DEPTH: u32 = 512;
/// The bits of a mode that are permissions.
const PERMISSIONS: u32 = 0o7777;
