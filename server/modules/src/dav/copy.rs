//! COPY and MOVE.
//!
//! A directory that another one replaces is removed first. A move removes the source only when all of it is at the
//! destination.

use engines::http::{FieldId, Method};
use server_base::errlog::{Level, Printable};
use server_base::files::{Change, EEXIST, ENOENT, Meta, OpenPolicy};
use server_http::exchange::{Ctx, Exchange};
use server_http::paths::{log_failed, reason};

use super::destination::{Way, check_access_inside, lies_in, parent, refuse_links, way};
use super::settings::DavLoc;
use super::tree::{self, CopiedAttributes, TREE_DEPTH};
use super::{Answer, Depth, cut_slash, depth, failed, of_errno, refuse, refuse_body, remove};

/// Does either.
pub(super) fn run(x: &mut Exchange, cx: &mut Ctx<'_>, conf: &DavLoc) -> Answer {
    refuse_body(x, "COPY and MOVE with body are unsupported")?;
    let way = way(x, cx)?;
    refuse_links(x, cx, parent(&way.from))?;
    let moves = x.target.method == Method::Move;
    let depth = depth(x).unwrap_or(Some(Depth::Infinity));
    match depth {
        Some(Depth::Infinity) => {}
        Some(Depth::Zero) if !moves => {}
        _ if moves => return refuse(x, 400, "\"Depth\" header must be infinity"),
        _ => return refuse(x, 400, "\"Depth\" header must be 0 or infinity"),
    }
    let overwrites = overwrites(x)?;
    let taken = there(x, cx, &way, overwrites)?;
    let meta = cx
        .files
        .describe(&way.from)
        .map_err(|error| failed(x, &way.from, error, 404))?;
    if !meta.is_dir {
        if !moves {
            // A copy follows symbolic links; a move renames the link itself.
            refuse_links(x, cx, &way.from)?;
        }
        return one(x, cx, conf, &way, &meta);
    }
    if !way.collections {
        let text = format!("\"{}\" is collection", Printable(&x.target.uri));
        return refuse(x, 400, &text);
    }
    let round = lies_in(cx, parent(&way.to), &meta)
        || taken.is_some_and(|taken| taken.is_dir && lies_in(cx, &way.from, &taken));
    if round {
        let text = format!(
            "\"{}\" is inside its destination, or contains it",
            Printable(&x.target.uri)
        );
        return refuse(x, 403, &text);
    }
    // RFC 4918 section 9.8.3: a COPY with depth 0 leaves the members out.
    let has_members = depth != Some(Depth::Zero);
    if has_members {
        check_access_inside(x, cx, &way.from, &way.uri, TREE_DEPTH)?;
    }
    if let Some(taken) = &taken {
        if taken.is_dir {
            check_access_inside(x, cx, &way.to, &way.uri, TREE_DEPTH)?;
        }
        remove(x, cx, &way.to, taken)?;
    }
    directory(x, cx, way, &meta, has_members)
}

/// The field `Overwrite`.
fn overwrites(x: &Exchange) -> Result<bool, u16> {
    match x.head.field(FieldId::Overwrite) {
        None | Some(b"T" | b"t") => Ok(true),
        Some(b"F" | b"f") => Ok(false),
        Some(other) => {
            let other = Printable(other);
            let text = format_args!("client sent invalid \"Overwrite\" header: \"{other}\"");
            x.log(Level::Error, text);
            Err(400)
        }
    }
}

/// Returns the existing destination, if any; an error if it must not be overwritten.
fn there(x: &Exchange, cx: &mut Ctx<'_>, way: &Way, overwrites: bool) -> Result<Option<Meta>, u16> {
    let to = &way.to;
    let taken = match cx.files.describe(to) {
        Err(error) if error.errno == ENOENT => return Ok(None),
        Err(error) => return Err(failed(x, to, error, 404)),
        Ok(taken) => taken,
    };
    if taken.is_dir && !way.collections {
        let text = format!(
            "\"{}\" could not go to collection \"{}\"",
            Printable(&x.target.uri),
            Printable(to)
        );
        refuse(x, 409, &text)?;
    }
    if !overwrites {
        let reason = reason(of_errno(EEXIST));
        let text = format!("\"{}\" could not be created ({reason})", Printable(to));
        refuse(x, 412, &text)?;
    }
    Ok(Some(taken))
}

/// Copies or moves a directory, with its members if `has_members`; nothing is at the destination.
fn directory(x: &Exchange, cx: &mut Ctx<'_>, way: Way, meta: &Meta, has_members: bool) -> Answer {
    let Way { mut from, to, .. } = way;
    cut_slash(&mut from);
    let moves = x.target.method == Method::Move;
    let renaming = Change::Rename {
        from: &from,
        to: &to,
    };
    if moves && cx.files.change(&renaming).is_ok() {
        return Ok(201);
    }
    let kept = CopiedAttributes::of(meta);
    let made = cx.files.change(&Change::MakeDir {
        path: &to,
        mode: kept.mode,
    });
    made.map_err(|error| failed(x, &to, error, 404))?;
    if has_members {
        tree::copy_inside(x, cx, &from, &to, moves)?;
    }
    if moves {
        tree::remove(x, cx, &from)?;
    }
    Ok(201)
}

/// Copies or moves a file, a link or a special file.
fn one(x: &Exchange, cx: &mut Ctx<'_>, conf: &DavLoc, way: &Way, meta: &Meta) -> Answer {
    let (from, to) = (&way.from, &way.to);
    if x.target.method == Method::Move {
        let made_dirs = Some(conf.access.of_directories());
        tree::rename(x, cx, (from, to), CopiedAttributes::of(meta), made_dirs)?;
        return Ok(204);
    }
    // Links are followed. Special files are refused: reading a device or a pipe might never end.
    let source = cx
        .files
        .stat(from, &OpenPolicy::default())
        .map_err(|error| failed(x, from, error, 404))?;
    if !source.is_file {
        let text = format!("\"{}\" is not a regular file", Printable(from));
        return refuse(x, 403, &text);
    }
    tree::copy_file(cx, from, to, CopiedAttributes::of(&source)).map_err(|error| {
        log_failed(x, Level::Crit, to, error);
        tree::status(error)
    })?;
    Ok(204)
}
