//! Shared by handlers of files: opening one, describing it, and its content.

use std::rc::Rc;

use engines::http::{Chunk, FileHandle, FileRange, Method};
use server_base::errlog::{Level, Printable};
use server_base::files::Opened;
use server_http::exchange::{Action, Ctx, Exchange};
use server_http::module::Content;
use server_http::{paths, reply};

/// Opens the file of the URI for a handler of GET and HEAD. Directories and special files are left to other handlers.
///
/// # Errors
/// The result of the handler instead of a response.
pub(crate) fn open(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
) -> Result<(Vec<u8>, Rc<Opened>, FileHandle), Content> {
    if !matches!(x.target.method, Method::Get | Method::Head) {
        return Err(Content::Status(405));
    }
    if x.target.uri.ends_with(b"/") {
        return Err(Content::Declined);
    }
    let path = paths::map_uri(x, cx).map_err(Content::Status)?;
    let policy = paths::policy(x, cx, &path);
    let opened = cx.files.open_descriptor(&path, &policy);
    let opened = opened.map_err(|error| Content::Status(paths::open_failed(x, &path, error)))?;
    record_opened(x);
    let file = opened.file.clone().filter(|_| opened.meta.is_file);
    let file = file.ok_or(Content::Declined)?;
    Ok((path, opened, file))
}

/// Logs that a path is a special file, and refuses it.
pub(crate) fn not_regular(x: &Exchange, path: &[u8]) -> Content {
    let text = format_args!("\"{}\" is not a regular file", Printable(path));
    x.log(Level::Crit, text);
    Content::Status(404)
}

/// Records that a file of the root was opened, so that the root need not be checked. The file of an error page proves
/// nothing.
pub(crate) fn record_opened(x: &mut Exchange) {
    x.progress.root_tested = !x.route.error_page;
}

/// Sets the fields of the response head for `len` bytes of a file: time, ETag, type, and support of ranges.
pub(crate) fn describe(x: &mut Exchange, file: &Opened, len: u64) {
    x.progress.action = Action::SendingResponse;
    x.reply.status = 200;
    x.reply.content_length = Some(len);
    x.reply.last_modified = Some(file.meta.mtime_s);
    if *x.route.core_loc().etag {
        x.reply.etag = Some(file.etag());
    }
    x.reply.allow_ranges = true;
    reply::set_content_type(x);
}

/// Returns the content of a file, if it is not empty. Small files are in memory and sent in one write with the head.
pub(crate) fn chunk(cx: &mut Ctx<'_>, opened: &Opened) -> Option<Chunk> {
    let len = opened.meta.size;
    if len == 0 {
        return None;
    }
    if let Some(content) = cx.files.content(opened) {
        return Some(Chunk::Shared(content));
    }
    let (file, offset) = (opened.file.clone()?, 0);
    Some(Chunk::File(FileRange { file, offset, len }))
}
