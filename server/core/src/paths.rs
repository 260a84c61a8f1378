//! From URIs to paths of the file system: `root` and `alias`.
//!
//! A path whose part taken from the URI holds a `..` segment is refused: normalised URIs have none, but an `alias`
//! without its slash or a rewrite can make one.

use std::rc::Rc;

use crate::conf_core::CoreLoc;
use crate::errlog::Level;
use crate::exchange::{Ctx, Exchange};
use crate::location::LocationKind;

/// The path of the exchange's URI; `None` when it would leave the root (answer 404).
pub fn map_uri(x: &mut Exchange, cx: &mut Ctx<'_>) -> Option<Vec<u8>> {
    let uri = std::mem::take(&mut x.uri);
    let path = map(x, cx, &uri);
    x.uri = uri;
    path
}

/// The path of any URI in the exchange's location.
pub fn map(x: &mut Exchange, cx: &mut Ctx<'_>, uri: &[u8]) -> Option<Vec<u8>> {
    let mut path = Vec::with_capacity(uri.len() + 64);
    let (tail, skip) = base(x, cx, &mut path);
    let tail = match (tail, skip) {
        (Tail::None, _) => return contained(x, path, b""),
        (Tail::Uri, skip) => uri.get(skip..).unwrap_or(b""),
    };
    path.extend_from_slice(tail);
    contained(x, path, tail)
}

enum Tail {
    /// The URI, or what follows the location's name.
    Uri,
    /// Nothing: an `alias` of a regular expression names the whole path.
    None,
}

/// Appends the directory; says what of the URI follows it.
fn base(x: &mut Exchange, cx: &mut Ctx<'_>, path: &mut Vec<u8>) -> (Tail, usize) {
    let http = Rc::clone(&x.http);
    let loc: &CoreLoc = x.loc(&http);
    let Some(root) = &loc.root else { return (Tail::Uri, 0) };
    let start = path.len();
    root.path.eval(x, cx, path);
    if path.get(start) != Some(&b'/') {
        let relative = path.split_off(start);
        path.extend_from_slice(&crate::build::full_path(&http.prefix, &relative));
    }
    if !root.alias {
        return (Tail::Uri, 0);
    }
    let named = &http.locations[http.locations[x.location].mapped];
    match named.kind {
        LocationKind::Regex(_) => (Tail::None, 0),
        _ => (Tail::Uri, named.name.len()),
    }
}

/// Checks that what the URI adds to a path stays below it.
fn contained(x: &Exchange, path: Vec<u8>, tail: &[u8]) -> Option<Vec<u8>> {
    // The tail may continue a segment of the directory, so the segment it joins counts too.
    let joined = path.len() - tail.len();
    let segment = path[..joined].iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
    let climbs = path[segment..].split(|b| *b == b'/').any(|s| s == b"..");
    if climbs || path.contains(&0) {
        x.log(
            Level::Error,
            format_args!("the path \"{}\" leaves its directory", String::from_utf8_lossy(&path)),
        );
        return None;
    }
    Some(path)
}

/// `$document_root`: the directory without the URI.
pub fn document_root(x: &mut Exchange, cx: &mut Ctx<'_>) -> Vec<u8> {
    let mut path = Vec::new();
    base(x, cx, &mut path);
    path
}

/// The policy under which the location opens paths below `root`.
pub fn policy(x: &mut Exchange, cx: &mut Ctx<'_>) -> crate::files::OpenPolicy {
    let http = Rc::clone(&x.http);
    let loc: &CoreLoc = x.loc(&http);
    let mut policy = crate::files::OpenPolicy { cache: loc.open_file_cache(), ..Default::default() };
    if let Some((mode, from)) = &loc.symlinks {
        policy.symlinks.mode = *mode;
        policy.symlinks.from = from.as_ref().map_or(0, |f| f.to_vec(x, cx).len());
    }
    policy
}
