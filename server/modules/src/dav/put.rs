//! PUT: the body becomes a file.

use engines::http::{FieldId, parse_http_date};
use server_base::errlog::{Level, Printable};
use server_base::files::{Change, EISDIR, OpenPolicy};
use server_http::conf_core::InFile;
use server_http::debug_http;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::Content;
use server_http::paths;
use server_http::paths::reason;
use server_http::request_body::{self, CollectOptions, Collected};

use super::destination::{parent, refuse_links};
use super::settings::DavLoc;
use super::{Answer, of_errno, refuse, set_location, tree};

/// Reads the body into a file, then moves the file to its target.
pub(super) fn put(x: &mut Exchange, cx: &mut Ctx<'_>, conf: &DavLoc) -> Content {
    if let Err(status) = refuse_early(x) {
        return Content::Status(status);
    }
    let plan = CollectOptions {
        in_file: InFile::Clean,
        mode: UPLOADING,
        log: None,
        most: None,
    };
    match request_body::collect(x, cx, &plan) {
        Collected::Wait => Content::Wait,
        Collected::Status(status) => Content::Status(status),
        Collected::Done => Content::Status(place(x, cx, conf).unwrap_or_else(|status| status)),
    }
}

/// Refuses a request before its body is read, if the head is sufficient to decide.
fn refuse_early(x: &Exchange) -> Result<(), u16> {
    if x.target.uri.ends_with(b"/") {
        refuse(x, 409, "cannot PUT to a collection")?;
    }
    if x.head.field(FieldId::ContentRange).is_some() {
        refuse(x, 501, "PUT with range is unsupported")?;
    }
    Ok(())
}

/// Moves the file with the body to its target.
fn place(x: &mut Exchange, cx: &mut Ctx<'_>, conf: &DavLoc) -> Answer {
    let path = paths::map_uri(x, cx)?;
    debug_http!(x, "http put filename: \"{}\"", Printable(&path));
    refuse_links(x, cx, parent(&path))?;
    let before = cx.files.stat(&path, &OpenPolicy::default());
    if before.is_ok_and(|meta| meta.is_dir) {
        let reason = reason(of_errno(EISDIR));
        let text = format!("\"{}\" could not be created ({reason})", Printable(&path));
        return refuse(x, 409, &text);
    }
    let Some(from) = x.body_file().map(|file| file.path.clone()) else {
        return refuse(x, 500, "PUT request body must be in a file");
    };
    let mode = conf.access.0;
    change(x, cx, &Change::Mode { path: &from, mode })?;
    let date = x.head.field(FieldId::Date).and_then(parse_http_date);
    if let Some(time_s) = date {
        change(
            x,
            cx,
            &Change::Modified {
                path: &from,
                time_s,
            },
        )?;
    }
    let kept = tree::CopiedAttributes {
        mode,
        modified_s: date.unwrap_or(cx.clock.unix_ms as i64 / 1000),
    };
    let made_dirs = conf
        .create_full_put_path
        .then_some(conf.access.of_directories());
    tree::rename(x, cx, (&from, &path), kept, made_dirs)?;
    if let Some(file) = x.body_file_mut() {
        file.renamed();
    }
    if before.is_ok() {
        return Ok(204);
    }
    set_location(x);
    Ok(201)
}

fn change(x: &Exchange, cx: &mut Ctx<'_>, change: &Change<'_>) -> Result<(), u16> {
    cx.files.change(change).map_err(|error| {
        let (call, path) = change.call();
        let (path, reason) = (Printable(path), reason(error));
        let text = format_args!("{call} \"{path}\" failed ({reason})");
        x.log(Level::Crit, text);
        500
    })
}

/// Permissions of the file during the upload.
const UPLOADING: u32 = 0o660;
