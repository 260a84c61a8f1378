//! `flv`: sends Flash Video files from a byte offset on (`?start=`).
//!
//! A response with an offset above 0 begins with a header. Whether the offset is the start of a tag is not checked.
//!
//! Source: nginx documentation, `ngx_http_flv_module`; Adobe Flash Video File Format Specification, annex E.2.

use conf::Contexts;
use engines::http::{Chunk, FileRange};
use server_http::assemble::ConfigBuilder;
use server_http::builtin::find_arg;
use server_http::exchange::{Action, Ctx, Exchange};
use server_http::module::{Content, Inherit, Module};
use server_http::reply;

use crate::file;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "flv",
    directives: &[ROWS],
    inherits: &[("flv", Inherit::Blocks)],
    ..Module::EMPTY
};

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Sends files of Flash Video from the byte of the argument start on.
    directive "flv": Contexts::LOCATION, NOARGS, "", "" => |b, _| {
        b.set_handler(handle);
        Ok(())
    };
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    let (_, opened, file) = match file::open(x, cx) {
        Ok(found) => found,
        Err(content) => return content,
    };
    let size = opened.meta.size;
    // As in nginx: ignored if it is no number or behind the end of the file.
    let start = find_arg(&x.target.args, b"start").and_then(conf::parse_number);
    let start = start.filter(|start| *start < size).unwrap_or(0);
    let len = size - start;
    if start > 0 {
        x.body.chunks.push_back(Chunk::Static(HEADER));
    }
    let head_len = x.body.chunks.iter().map(Chunk::len).sum::<u64>();
    file::describe(x, &opened, head_len + len);
    x.progress.action = Action::SendingFlv;
    let chunk = Chunk::File(FileRange {
        file,
        offset: start,
        len,
    });
    reply::send(x, cx, (size > 0).then_some(chunk));
    Content::Sent
}

/// Signature, version 1, audio and video, header size 9, size 0 of the previous tag.
const HEADER: &[u8] = b"FLV\x01\x05\0\0\0\x09\0\0\0\0";
