//! `dav_methods`: PUT, DELETE, MKCOL, COPY and MOVE of files and directories (WebDAV's, without its properties and locks).
//!
//! An uploaded file is written to a temporary file, then renamed to its target. If the target is on another file
//! system, it is copied next to the target first. So readers of the target get the old file or the new one, and an
//! aborted upload leaves no trace.
//!
//! Absent: 207 Multi-Status. If a part of a tree cannot be changed, the status is that of the first failure.
//!
//! Source: nginx documentation, `ngx_http_dav_module`; RFC 4918 sections 9.3, 9.6 to 9.9.

mod copy;
mod destination;
mod put;
mod settings;
mod tree;

use std::rc::Rc;

use conf::ConfError;
use engines::http::{BodyLength, Escape, FieldId, Method, escape};
use server_base::errlog::{Level, Printable};
use server_base::files::{Change, EACCES, EEXIST, EISDIR, ENOSPC, ENOTDIR, EPERM, FileError, Meta};
use server_http::assemble::{ConfigBuilder, method_bit};
use server_http::debug_http;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Content, Handler, Module};
use server_http::paths;
use server_http::paths::{log_failed, reason};

use destination::{parent, refuse_links};
use settings::DavLoc;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "dav",
    directives: &[settings::PLAIN],
    settings: &[<DavLoc as server_http::settings_set::Conf>::def],
    handlers: &[Handler::Content(handle)],
    finish: Some(finish),
    on_demand: true,
    ..Module::EMPTY
};

/// PUT needs the directories for request bodies.
fn finish(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    if b.location_confs_mut::<DavLoc>()
        .any(|conf| conf.methods.0 != 0)
    {
        b.read_bodies();
    }
    Ok(())
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    let http = Rc::clone(&x.route.http);
    let conf = x.loc::<DavLoc>(&http);
    if conf.methods.0 & method_bit(x.target.method) == 0 {
        return Content::Declined;
    }
    if x.target.method == Method::Put {
        return put::put(x, cx, conf);
    }
    let done = match x.target.method {
        Method::Delete => delete(x, cx, conf),
        Method::Mkcol => make_collection(x, cx, conf),
        Method::Copy | Method::Move => copy::run(x, cx, conf),
        _ => return Content::Declined,
    };
    Content::Status(done.unwrap_or_else(|status| status))
}

/// The status of a response; `Err` if the request is refused.
type Answer = Result<u16, u16>;

fn delete(x: &mut Exchange, cx: &mut Ctx<'_>, conf: &DavLoc) -> Answer {
    refuse_body(x, "DELETE with body is unsupported")?;
    refuse_shallow(x, conf.min_delete_depth.0)?;
    let mut path = paths::map_uri(x, cx)?;
    debug_http!(x, "http delete filename: \"{}\"", Printable(&path));
    refuse_links(x, cx, parent(&path))?;
    let meta = cx.files.describe(&path).map_err(|error| {
        let missing = if error.errno == ENOTDIR { 409 } else { 404 };
        failed(x, &path, error, missing)
    })?;
    let depth = depth(x);
    if !meta.is_dir {
        // The path has no final slash here: with one, a file failed above with ENOTDIR.
        return match depth.unwrap_or(Some(Depth::Zero)) {
            Some(Depth::Zero | Depth::Infinity) => {
                remove(x, cx, &path, &meta)?;
                Ok(204)
            }
            _ => refuse(x, 400, "\"Depth\" header must be 0 or infinity"),
        };
    }
    if !x.target.uri.ends_with(b"/") {
        let reason = reason(of_errno(EISDIR));
        let text = format!("DELETE \"{}\" failed ({reason})", Printable(&path));
        return refuse(x, 409, &text);
    }
    if depth.unwrap_or(Some(Depth::Infinity)) != Some(Depth::Infinity) {
        return refuse(x, 400, "\"Depth\" header must be infinity");
    }
    cut_slash(&mut path);
    remove(x, cx, &path, &meta)?;
    Ok(204)
}

/// Removes a file, or a directory with all that is in it.
fn remove(x: &Exchange, cx: &mut Ctx<'_>, path: &[u8], meta: &Meta) -> Result<(), u16> {
    if meta.is_dir {
        return tree::remove(x, cx, path);
    }
    let removed = cx.files.change(&Change::Remove(path));
    removed.map_err(|error| failed(x, path, error, 404))
}

/// `min_delete_depth`.
fn refuse_shallow(x: &Exchange, least: u64) -> Result<(), u16> {
    if least == 0 {
        return Ok(());
    }
    let mut depth = 0;
    for (at, byte) in x.target.uri.iter().enumerate() {
        if *byte == b'/' {
            depth += 1;
            if depth >= least && at + 1 < x.target.uri.len() {
                return Ok(());
            }
        }
    }
    refuse(x, 409, &format!("insufficient URI depth:{depth} to DELETE")).map(|_| ())
}

fn make_collection(x: &mut Exchange, cx: &mut Ctx<'_>, conf: &DavLoc) -> Answer {
    refuse_body(x, "MKCOL with body is unsupported")?;
    if !x.target.uri.ends_with(b"/") {
        return refuse(x, 409, "MKCOL can create a collection only");
    }
    let mut path = paths::map_uri(x, cx)?;
    cut_slash(&mut path);
    debug_http!(x, "http mkcol path: \"{}\"", Printable(&path));
    refuse_links(x, cx, parent(&path))?;
    let mode = conf.access.of_directories();
    let made = cx.files.change(&Change::MakeDir { path: &path, mode });
    made.map_err(|error| failed(x, &path, error, 409))?;
    set_location(x);
    Ok(201)
}

/// Refuses a body for methods without one.
fn refuse_body(x: &Exchange, text: &str) -> Result<(), u16> {
    match x.head.body {
        BodyLength::None | BodyLength::Length(0) => Ok(()),
        _ => refuse(x, 415, text).map(|_| ()),
    }
}

/// Logs why a request is refused.
fn refuse(x: &Exchange, status: u16, text: &str) -> Answer {
    x.log(Level::Error, format_args!("{text}"));
    Err(status)
}

/// Logs a failed system call; returns the status to answer with, which is `missing` for a path that does not exist.
fn failed(x: &Exchange, path: &[u8], error: FileError, missing: u16) -> u16 {
    let (level, status) = match error.errno {
        _ if error.is_missing() => (Level::Error, missing),
        EACCES | EPERM => (Level::Error, 403),
        EEXIST => (Level::Error, 405),
        ENOSPC => (Level::Crit, 507),
        _ => (Level::Crit, 500),
    };
    log_failed(x, level, path, error);
    status
}

fn of_errno(errno: i32) -> FileError {
    FileError { errno, call: "" }
}

/// The value of `Depth`: how many levels of a tree a method applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    Zero,
    One,
    Infinity,
}

/// Parses the field `Depth`: `Err` if it is absent, `None` if its value is unknown.
fn depth(x: &Exchange) -> Result<Option<Depth>, ()> {
    let value = x.head.field(FieldId::Depth).ok_or(())?;
    let depth = match value {
        b"0" => Some(Depth::Zero),
        b"1" => Some(Depth::One),
        b"infinity" => Some(Depth::Infinity),
        _ => None,
    };
    if depth.is_none() {
        let text = format_args!(
            "client sent invalid \"Depth\" header: \"{}\"",
            Printable(value)
        );
        x.log(Level::Error, text);
    }
    Ok(depth)
}

/// Sets `Location` to the URI of the created file or directory.
fn set_location(x: &mut Exchange) {
    let mut location = Vec::with_capacity(x.target.uri.len());
    escape(&x.target.uri, Escape::Uri, &mut location);
    x.reply.location = location;
}

fn cut_slash(path: &mut Vec<u8>) {
    if path.len() > 1 && path.ends_with(b"/") {
        path.pop();
    }
}
