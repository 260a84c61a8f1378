//! Files: the last content handler.
//!
//! The descriptor comes from the driver's cache; the body is a file range, so that how its bytes reach the socket is the
//! driver's choice.
//!
//! Source: nginx documentation, `ngx_http_core_module`; nginx's static handler.

use engines::http::{Chunk, FileRange, Method};
use server_base::errlog::{Level, Shown};
use server_http::debug_http;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Content, Handler, Module};
use server_http::{paths, reply};

use std::rc::Rc;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "static",
    handlers: &[Handler::Content(handle)],
    ..Module::EMPTY
};

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    if !matches!(x.method, Method::Get | Method::Head | Method::Post) {
        return Content::Status(405);
    }
    // A directory: `index` and `autoindex` have it.
    if x.uri.ends_with(b"/") {
        return Content::Declined;
    }
    let path = match paths::map_uri(x, cx) {
        Ok(path) => path,
        Err(status) => return Content::Status(status),
    };
    debug_http!(x, "http filename: \"{}\"", Shown(&path));
    let policy = paths::policy(x, cx, &path);
    let opened = match cx.files.open(&path, &policy) {
        Ok(opened) => opened,
        Err(error) => return Content::Status(paths::open_failed(x, &path, error)),
    };
    if opened.meta.is_dir {
        reply::slash_redirect(x);
        return Content::Status(301);
    }
    let Some(file) = opened.file.clone().filter(|_| opened.meta.is_file) else {
        let text = String::from_utf8_lossy(&path);
        x.log(
            Level::Crit,
            format_args!("\"{text}\" is not a regular file"),
        );
        return Content::Status(404);
    };
    // nginx refuses POST only for what exists: a missing file is 404.
    if x.method == Method::Post {
        return Content::Status(405);
    }
    let size = opened.meta.size;
    x.reply.status = 200;
    x.reply.content_length = Some(size);
    x.reply.last_modified = Some(opened.meta.mtime_s);
    x.reply.last_modified_text = Some(Rc::clone(&opened.last_modified));
    let http = Rc::clone(&x.http);
    if *x.core_loc(&http).etag {
        x.reply.etag = Some(Rc::clone(&opened.etag));
    }
    x.reply.allow_ranges = true;
    reply::set_content_type(x);
    // Small files are held in memory and leave in the same write as the head.
    let chunk = match cx.files.content(&opened) {
        Some(content) => Chunk::from(content),
        None => Chunk::File(FileRange {
            file,
            offset: 0,
            len: size,
        }),
    };
    x.reply.source = Some(opened);
    reply::send(x, cx, (size > 0).then_some(chunk));
    Content::Sent
}
