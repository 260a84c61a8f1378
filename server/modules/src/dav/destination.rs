//! The field `Destination` of COPY and MOVE, and the paths that it must not name.
//!
//! Source: RFC 4918 section 10.3; nginx's dav module.

use engines::http::{FieldId, normalize, unescape};
use server_base::errlog::{Level, Printable};
use server_base::files::{ENOENT, ENOTDIR, Meta, OpenPolicy, SymlinkMode};
use server_http::conf_core::{Alias, CoreSrv};
use server_http::debug_http;
use server_http::exchange::{Ctx, Exchange};
use server_http::paths;
use server_http::paths::log_failed;
use server_http::phases::accessible_location;

use super::{cut_slash, failed, refuse};

/// Source and destination of a copy or a move.
pub(super) struct Way {
    /// The path of the source, with a final slash if the URI has one.
    pub(super) from: Vec<u8>,
    /// The path of the destination, without a slash at the end.
    pub(super) to: Vec<u8>,
    /// The URI of the destination.
    pub(super) uri: Vec<u8>,
    /// Both URIs end with a slash.
    pub(super) collections: bool,
}

/// Reads the field and maps both URIs.
pub(super) fn way(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<Way, u16> {
    let Some(field) = x.head.field(FieldId::Destination).map(<[u8]>::to_vec) else {
        return Err(refused(x, "client sent no \"Destination\" header"));
    };
    let invalid = |x: &Exchange| {
        let text = format!(
            "client sent invalid \"Destination\" header: \"{}\"",
            Printable(&field)
        );
        refused(x, &text)
    };
    let target = target(x, &field)?.ok_or_else(|| invalid(x))?;
    let mut uri = Vec::new();
    let merge = *x.route.srv::<CoreSrv>().merge_slashes;
    // `..` is refused here, though request lines may have it; as in nginx.
    if climbs(target) || normalize(target, merge, &mut uri).is_err() {
        return Err(invalid(x));
    }
    let collections = x.target.uri.ends_with(b"/");
    if collections != uri.ends_with(b"/") {
        let text = format!(
            "both URI \"{}\" and \"Destination\" URI \"{}\" should be either collections or non-collections",
            Printable(&x.target.uri),
            Printable(&field)
        );
        x.log(Level::Error, format_args!("{text}"));
        return Err(409);
    }
    let root = x.route.core_loc().root.as_ref();
    if let Some(Alias::Prefix(len)) = root.and_then(|root| root.alias)
        && !x
            .target
            .uri
            .get(..len)
            .is_some_and(|own| uri.starts_with(own))
    {
        // The alias replaces a prefix of the URI, which the destination lacks.
        return Err(invalid(x));
    }
    let mut from = paths::map_uri(x, cx)?;
    std::mem::swap(&mut x.target.uri, &mut uri);
    let to = paths::map_uri(x, cx);
    std::mem::swap(&mut x.target.uri, &mut uri);
    let mut to = to?;
    merge_slashes(&mut from);
    merge_slashes(&mut to);
    cut_slash(&mut to);
    debug_http!(x, "http copy from: \"{}\"", Printable(&from));
    debug_http!(x, "http copy to: \"{}\"", Printable(&to));
    refuse_same(x, &from, &to, collections, &field)?;
    let location = check_access(x, cx, &uri)?;
    let own = std::mem::replace(&mut x.route.location, location);
    let straight = refuse_links(x, cx, parent(&to));
    x.route.location = own;
    straight?;
    refuse_links(x, cx, parent(&to))?;
    Ok(Way {
        from,
        to,
        uri,
        collections,
    })
}

/// Whether a segment of the path is `..`, in any escaping.
fn climbs(target: &[u8]) -> bool {
    let end = memchr::memchr2(b'?', b'#', target).unwrap_or(target.len());
    let mut path = Vec::new();
    unescape(&target[..end], &mut path);
    path.split(|byte| *byte == b'/')
        .any(|segment| segment == b"..")
}

/// Returns the location of a destination URI, if the client could access that URI directly.
fn check_access(x: &mut Exchange, cx: &mut Ctx<'_>, uri: &[u8]) -> Result<usize, u16> {
    accessible_location(x, cx, uri).ok_or_else(|| {
        let text = format_args!(
            "access to the destination \"{}\" is forbidden",
            Printable(uri)
        );
        x.log(Level::Error, text);
        403
    })
}

/// Checks access to the destination URI of each entry of a directory.
pub(super) fn check_access_inside(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    from: &[u8],
    uri: &[u8],
    depth: u32,
) -> Result<(), u16> {
    let Some(below) = depth.checked_sub(1) else {
        return refuse(x, 403, "a directory is too deep to be asked for").map(|_| ());
    };
    let entries = cx.files.entries(from);
    for entry in entries.map_err(|error| failed(x, from, error, 404))? {
        let dir = from.strip_suffix(b"/").unwrap_or(from);
        let from = [dir, b"/", entry.name.as_slice()].concat();
        let mut uri = [uri, entry.name.as_slice()].concat();
        let meta = entry.meta.map_err(|error| failed(x, &from, error, 404))?;
        if meta.is_dir {
            uri.push(b'/');
        }
        check_access(x, cx, &uri)?;
        if meta.is_dir {
            check_access_inside(x, cx, &from, &uri, below)?;
        }
    }
    Ok(())
}

/// Refuses a destination directory that `disable_symlinks` forbids. If it does not exist, its nearest existing parent
/// is checked.
pub(super) fn refuse_links(x: &mut Exchange, cx: &mut Ctx<'_>, dir: &[u8]) -> Result<(), u16> {
    let policy = paths::policy(x, cx, dir);
    if policy.symlinks.mode == SymlinkMode::Off {
        return Ok(());
    }
    let policy = OpenPolicy {
        cache: None,
        ..policy
    };
    let mut dir = dir;
    loop {
        match cx.files.stat(dir, &policy) {
            // ENOTDIR: a broken link on the path, which is no directory for the system.
            Err(error) if matches!(error.errno, ENOENT | ENOTDIR) && dir.len() > 1 => {
                dir = parent(dir);
            }
            Err(error) if error.is_forbidden() => {
                log_failed(x, Level::Error, dir, error);
                return Err(403);
            }
            Err(error) => return Err(failed(x, dir, error, 409)),
            Ok(_) => return Ok(()),
        }
    }
}

/// Returns the path within the field; `None` if the URL has no path.
fn target<'f>(x: &Exchange, field: &'f [u8]) -> Result<Option<&'f [u8]>, u16> {
    if field.first() == Some(&b'/') {
        return Ok(Some(field));
    }
    if x.target.host.is_empty() {
        return Err(refused(x, "client sent no \"Host\" header"));
    }
    let scheme: &[u8] = match x.tls {
        Some(_) => b"https://",
        None => b"http://",
    };
    let Some((own, rest)) = field.split_at_checked(scheme.len()) else {
        return Ok(None);
    };
    if !own.eq_ignore_ascii_case(scheme) {
        return Ok(None);
    }
    let end = memchr::memchr(b'/', rest).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let (host, port) = authority
        .split_at_checked(x.target.host.len())
        .unwrap_or((b"", authority));
    let same =
        host.eq_ignore_ascii_case(&x.target.host) && matches!(port.first(), None | Some(b':'));
    if !same {
        let text = format!(
            "\"Destination\" URI \"{}\" is handled by different repository than the source URI",
            Printable(field)
        );
        return Err(refused(x, &text));
    }
    Ok(Some(target).filter(|target| !target.is_empty()))
}

/// Refuses two paths if they are equal or one contains the other.
fn refuse_same(
    x: &Exchange,
    from: &[u8],
    to: &[u8],
    collections: bool,
    field: &[u8],
) -> Result<(), u16> {
    let from = from.strip_suffix(b"/").unwrap_or(from);
    let (uri, field) = (Printable(&x.target.uri), Printable(field));
    if from == to {
        let text = format!(
            "both URI \"{uri}\" and \"Destination\" URI \"{field}\" point to the same location"
        );
        return refuse(x, 403, &text).map(|_| ());
    }
    if collections && (is_below(from, to) || is_below(to, from)) {
        let text = format!("\"{uri}\" could not go to collection \"{field}\"");
        return refuse(x, 403, &text).map(|_| ());
    }
    Ok(())
}

/// Whether a path is below a directory, compared by text.
fn is_below(path: &[u8], dir: &[u8]) -> bool {
    path.strip_prefix(dir)
        .is_some_and(|rest| rest.first() == Some(&b'/') || dir.ends_with(b"/"))
}

/// Whether a directory is another one or below it, after following links; false if it does not exist.
pub(super) fn lies_in(cx: &mut Ctx<'_>, path: &[u8], dir: &Meta) -> bool {
    let mut path = path.to_vec();
    let mut below = None;
    for _ in 0..LEVELS {
        let Ok(meta) = cx.files.stat(&path, &OpenPolicy::default()) else {
            return false;
        };
        let here = (meta.dev, meta.ino);
        if here == (dir.dev, dir.ino) {
            return true;
        }
        if below == Some(here) {
            // The root is its own parent.
            return false;
        }
        below = Some(here);
        path.extend_from_slice(b"/..");
    }
    // Too deep to decide; refusing is the safe answer.
    true
}

/// The directory that a path is in.
pub(super) fn parent(path: &[u8]) -> &[u8] {
    let end = memchr::memrchr(b'/', path).unwrap_or(0);
    &path[..end.max(1)]
}

fn refused(x: &Exchange, text: &str) -> u16 {
    x.log(Level::Error, format_args!("{text}"));
    400
}

fn merge_slashes(path: &mut Vec<u8>) {
    path.dedup_by(|next, before| *next == b'/' && *before == b'/');
}

/// Maximum number of parent directories that are visited.
const LEVELS: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_a_directory_by_whole_segments() {
        assert!(is_below(b"/a/b", b"/a"));
        assert!(is_below(b"/a", b"/"));
        assert!(!is_below(b"/ab", b"/a"));
        assert!(!is_below(b"/a", b"/a"));
    }

    #[test]
    fn slashes_are_merged() {
        let mut path = b"//a///b/".to_vec();
        merge_slashes(&mut path);
        assert_eq!(path, b"/a/b/");
    }
}
