//! From URIs to paths of the file system: `root` and `alias`.
//!
//! A path is refused if the part from the request has a `..` segment. Normalised URIs have none, but an `alias`
//! without its slash, a capture or a rewrite can make one.
//!
//! Source: nginx documentation, directives `root`, `alias`, `disable_symlinks`.

use std::path::Path;
use std::rc::Rc;

use server_base::config::full_path;
use server_base::errlog::{Level, Printable};
use server_base::files::{FileError, OpenPolicy, SymlinkMode};
use server_base::regex::FailedMatch;

use crate::conf_core::{Alias, Root};
use crate::exchange::{Ctx, Exchange, UriOrigin};
use crate::http::Http;
use crate::value::{Part, Value};

/// The path of the exchange's URI.
///
/// # Errors
/// The status to answer with: 404 if the path would leave its directory, 500 if the URI is no longer inside the
/// location of its `alias`.
pub fn map_uri(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<Vec<u8>, u16> {
    map_with(x, cx, b"")
}

/// The path of the exchange's URI followed by a name, as for an index file.
///
/// # Errors
/// See [`map_uri`].
pub fn map_with(x: &mut Exchange, cx: &mut Ctx<'_>, name: &[u8]) -> Result<Vec<u8>, u16> {
    let (mut path, fixed, alias) = directory(x, cx)?;
    let skip = match alias {
        Some(Alias::Whole) if !x.target.uri_below_alias => x.target.uri.len(),
        Some(Alias::Prefix(len)) => len,
        _ => 0,
    };
    path.extend_from_slice(x.target.uri.get(skip..).unwrap_or_default());
    path.extend_from_slice(name);
    check_contained(x, path, fixed)
}

/// The path of a candidate of `try_files`. A `computed` name loses its [`aliased_prefix`].
///
/// # Errors
/// See [`map_uri`].
pub fn map_candidate(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    name: &[u8],
    computed: bool,
) -> Result<Vec<u8>, u16> {
    let (mut path, fixed, _) = directory(x, cx)?;
    let skip = if computed { aliased_prefix(x, name) } else { 0 };
    path.extend_from_slice(&name[skip..]);
    check_contained(x, path, fixed)
}

/// Length in bytes of the location's prefix at the start of a name with variables.
///
/// An `alias` replaces this prefix. Returns 0 without an `alias`, with the `alias` of a regex location, and if the name
/// starts otherwise. Source: nginx documentation, directives `alias` and `try_files`.
pub fn aliased_prefix(x: &Exchange, name: &[u8]) -> usize {
    let alias = x.route.core_loc().root.as_ref().and_then(|root| root.alias);
    let Some(Alias::Prefix(len)) = alias else {
        return 0;
    };
    let own = x.target.uri.get(..len);
    own.filter(|own| name.starts_with(own))
        .map_or(0, <[u8]>::len)
}

/// The path of a directive's value with variables; a relative one is below `base`. It is not a file of the location
/// itself.
///
/// # Errors
/// The status to answer with: 404 if the path would leave the constant part of its directory, 500 if a variable
/// depends on a failed regular expression.
pub fn evaluate_path(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    value: &Value,
    base: &Path,
) -> Result<Vec<u8>, u16> {
    let name = value.to_vec(x, cx);
    if x.vars.failed_match == FailedMatch::New {
        return Err(500);
    }
    let own = match value.parts.first() {
        Some(Part::Text(text)) => text.len(),
        _ => 0,
    };
    let path = full_path(base, &name);
    let fixed = path.len() - name.len() + own;
    check_contained(x, path, fixed)
}

/// The directory of the location, the length of its part without variables, and the mapping by `alias`.
fn directory(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<(Vec<u8>, usize, Option<Alias>), u16> {
    let http = Rc::clone(&x.route.http);
    let Some(root) = &x.core_loc(&http).root else {
        return Ok((Vec::new(), 0, None));
    };
    if root.alias.is_some() && x.target.origin == UriOrigin::Elsewhere {
        let name = Printable(&x.route.own_location().name);
        let text =
            format_args!("\"alias\" cannot be used in location \"{name}\" where URI was rewritten");
        x.log(Level::Alert, text);
        return Err(500);
    }
    let mut path = Vec::with_capacity(x.target.uri.len() + 64);
    let fixed = evaluate(root, &http, x, cx, &mut path).ok_or(500u16)?;
    Ok((path, fixed, root.alias))
}

/// Appends the directory and returns the length of the part without variables; `None` if a variable depends on a
/// failed regular expression.
#[inline]
fn evaluate(
    root: &Root,
    http: &Http,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    path: &mut Vec<u8>,
) -> Option<usize> {
    let fixed = match root.path.parts.as_slice() {
        [] => 0,
        [Part::Text(text)] => {
            path.extend_from_slice(text);
            text.len()
        }
        [first, ..] => {
            root.path.eval(x, cx, path);
            if x.vars.failed_match == FailedMatch::New {
                return None;
            }
            match first {
                _ if path.first() != Some(&b'/') => {
                    *path = full_path(&http.prefix, path);
                    http.prefix.as_os_str().len()
                }
                Part::Text(text) => text.len(),
                _ => 0,
            }
        }
    };
    Some(fixed)
}

/// Checks that the part of a path after its first `fixed` bytes stays below them.
fn check_contained(x: &Exchange, path: Vec<u8>, fixed: usize) -> Result<Vec<u8>, u16> {
    // The rest may continue a segment of the directory, so the segment it joins counts too.
    let segment = path[..fixed]
        .iter()
        .rposition(|b| *b == b'/')
        .map_or(0, |at| at + 1);
    if climbs(&path[segment..]) || memchr::memchr(0, &path).is_some() {
        x.log(
            Level::Error,
            format_args!(
                "the path \"{}\" is outside of its directory",
                Printable(&path)
            ),
        );
        return Err(404);
    }
    Ok(path)
}

/// Whether a segment of a path is `..`.
fn climbs(path: &[u8]) -> bool {
    memchr::memchr_iter(b'.', path).any(|at| {
        let begins = at == 0 || path[at - 1] == b'/';
        begins && matches!(&path[at + 1..], [b'.'] | [b'.', b'/', ..])
    })
}

/// `$document_root`: the directory without the URI.
pub fn document_root(x: &mut Exchange, cx: &mut Ctx<'_>) -> Vec<u8> {
    let http = Rc::clone(&x.route.http);
    let mut path = Vec::new();
    if let Some(root) = &x.core_loc(&http).root {
        evaluate(root, &http, x, cx, &mut path);
    }
    path
}

/// Appends the same to a value.
pub(crate) fn push_document_root(x: &mut Exchange, cx: &mut Ctx<'_>, out: &mut Vec<u8>) {
    match x
        .route
        .core_loc()
        .root
        .as_ref()
        .map(|root| root.path.constant())
    {
        Some(Some(text)) => out.extend_from_slice(text),
        Some(None) => out.extend_from_slice(&document_root(x, cx)),
        None => {}
    }
}

/// The policy under which the location opens `path`.
pub fn policy(x: &mut Exchange, cx: &mut Ctx<'_>, path: &[u8]) -> OpenPolicy {
    let http = Rc::clone(&x.route.http);
    let loc = x.core_loc(&http);
    let mut policy = OpenPolicy {
        cache: loc.files.open_file_cache(),
        ..Default::default()
    };
    if let Some((mode, from)) = &loc.files.symlinks {
        policy.symlinks.mode = *mode;
        if let Some(from) = from {
            let from = from.to_vec(x, cx);
            match trusted_len(&from, path) {
                Some(len) if len == path.len() => policy.symlinks.mode = SymlinkMode::Off,
                Some(len) => policy.symlinks.from = len,
                None => {}
            }
        }
    }
    policy
}

/// Length of the part of `path` that the directory `from` exempts from the check for links: it must end at the end
/// of a segment.
fn trusted_len(from: &[u8], path: &[u8]) -> Option<usize> {
    let rest = path.strip_prefix(from).filter(|_| !from.is_empty())?;
    match (rest.first(), from.last()) {
        (None | Some(b'/'), _) => Some(from.len()),
        (_, Some(b'/')) => Some(from.len() - 1),
        _ => None,
    }
}

/// Logs the error of opening a file; `log_not_found off` silences missing files. Returns the status to answer with.
pub fn open_failed(x: &Exchange, path: &[u8], error: FileError) -> u16 {
    let (level, status) = if error.is_missing() {
        (Level::Error, 404)
    } else if error.is_forbidden() {
        (Level::Error, 403)
    } else {
        (Level::Crit, 500)
    };
    let quiet = status == 404 && !*x.route.core_loc().log_not_found;
    if !quiet {
        log_failed(x, level, path, error);
    }
    status
}

/// Logs a failed system call on a path.
pub fn log_failed(x: &Exchange, level: Level, path: &[u8], error: FileError) {
    let path = Printable(path);
    x.log(
        level,
        format_args!("{} \"{path}\" failed ({})", error.call, reason(error)),
    );
}

/// The error of a system call as logs show it: `2: No such file or directory`.
pub fn reason(error: FileError) -> String {
    conf::os_error(&std::io::Error::from_raw_os_error(error.errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_trusted_in_whole_segments_of_the_path() {
        assert_eq!(trusted_len(b"/srv/www", b"/srv/www/a"), Some(8));
        assert_eq!(trusted_len(b"/srv/www/", b"/srv/www/a"), Some(8));
        assert_eq!(trusted_len(b"/srv/www", b"/srv/www"), Some(8));
        assert_eq!(trusted_len(b"/srv/ww", b"/srv/www/a"), None);
        assert_eq!(trusted_len(b"/other", b"/srv/www/a"), None);
        assert_eq!(trusted_len(b"", b"/srv/www/a"), None);
    }
}
