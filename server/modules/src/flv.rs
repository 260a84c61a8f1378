//! `flv`: files of Flash Video from any byte on, as old players ask for them (`?start=`).
//!
//! What is sent from the middle begins with a header of its own. Whether the byte begins a tag is the player's concern.
//!
//! Source: nginx documentation, `ngx_http_flv_module`; Adobe Flash Video File Format Specification, annex E.2.

use std::rc::Rc;

use conf::{Arity, Contexts, Row};
use engines::http::{Chunk, FileRange, Method};
use server_http::build::Build;
use server_http::builtin::find_arg;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Content, Inherit, Module};
use server_http::{paths, reply};

use server_http::paths::open_failed;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "flv",
    directives: &[ROWS],
    inherits: &[("flv", Inherit::Blocks)],
    ..Module::EMPTY
};

const ROWS: &[Row<Build>] = &[Row {
    name: "flv",
    contexts: Contexts::LOCATION,
    arity: Arity::NOARGS,
    block: false,
    default: "",
    doc: "Sends files of Flash Video from the byte on that the argument start names.",
    syntax: "",
    apply: |b, _| {
        b.set_handler(handle);
        Ok(())
    },
}];

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    if !matches!(x.method, Method::Get | Method::Head) {
        return Content::Status(405);
    }
    if x.uri.ends_with(b"/") {
        return Content::Declined;
    }
    let path = match paths::map_uri(x, cx) {
        Ok(path) => path,
        Err(status) => return Content::Status(status),
    };
    let policy = paths::policy(x, cx, &path);
    let opened = match cx.files.open(&path, &policy) {
        Ok(opened) => opened,
        Err(error) => return Content::Status(open_failed(x, &path, error)),
    };
    let Some(file) = opened.file.clone().filter(|_| opened.meta.is_file) else {
        return Content::Declined;
    };
    let size = opened.meta.size;
    // As in nginx what is no number, or lies beyond the end, counts for nothing.
    let start = find_arg(&x.args, b"start").and_then(conf::parse_number);
    let start = start.filter(|start| *start < size).unwrap_or(0);
    let len = size - start;
    if start > 0 {
        x.body.push_back(Chunk::Static(HEADER));
    }
    x.reply.status = 200;
    x.reply.content_length = Some(len + x.body.iter().map(Chunk::len).sum::<u64>());
    x.reply.last_modified = Some(opened.meta.mtime_s);
    x.reply.last_modified_text = Some(Rc::clone(&opened.last_modified));
    let http = Rc::clone(&x.http);
    if *x.core_loc(&http).etag {
        x.reply.etag = Some(Rc::clone(&opened.etag));
    }
    x.reply.allow_ranges = true;
    reply::set_content_type(x);
    let chunk = Chunk::File(FileRange {
        file,
        offset: start,
        len,
    });
    reply::send(x, cx, (size > 0).then_some(chunk));
    Content::Sent
}

/// Signature, version 1, audio and video, a header of 9 bytes, no tag before the first.
const HEADER: &[u8] = b"FLV\x01\x05\0\0\0\x09\0\0\0\0";
