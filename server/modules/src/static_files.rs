//! Files: the last content handler.
//!
//! The descriptor comes from the driver's cache. The body is a file range; the driver decides how to send it.
//!
//! Source: nginx documentation, `ngx_http_core_module`; nginx's static handler.

use engines::http::Method;
use server_base::errlog::Shown;
use server_http::debug_http;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Content, Handler, Module};
use server_http::{paths, reply};

use crate::file;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "static",
    handlers: &[Handler::Content(handle)],
    ..Module::EMPTY
};

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    if !matches!(x.target.method, Method::Get | Method::Head | Method::Post) {
        return Content::Status(405);
    }
    // A directory, for `index` and `autoindex`.
    if x.target.uri.ends_with(b"/") {
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
    file::record_opened(x);
    if opened.meta.is_dir {
        reply::slash_redirect(x);
        return Content::Status(301);
    }
    if !opened.meta.is_file {
        return file::not_regular(x, &path);
    }
    // nginx refuses POST only for existing files: a missing one is 404.
    if x.target.method == Method::Post {
        return Content::Status(405);
    }
    file::describe(x, &opened, opened.meta.size);
    let chunk = file::chunk(cx, &opened);
    x.reply.source = Some(opened);
    reply::send(x, cx, chunk);
    Content::Sent
}
