//! `autoindex`: a listing of a directory, as a page, JSON, JSONP or XML.
//!
//! The directory is read whole before the response begins, so that one that cannot be read answers with an error.
//!
//! Source: nginx documentation, `ngx_http_autoindex_module`.

mod data;
mod page;

use std::rc::Rc;

use conf::Contexts;
use engines::http::{Chunk, Method};
use server_base::errlog::{Level, Printable};
use server_base::{
    files::{EACCES, ENAMETOOLONG, ENOENT, ENOTDIR, FileError},
    keyword,
};
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Content, Handler, Module};
use server_http::{paths, reply, settings};

use crate::charset;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "autoindex",
    directives: &[PLAIN],
    settings: &[<AutoindexLoc as server_http::settings_set::Conf>::def],
    handlers: &[Handler::Content(handle)],
    on_demand: true,
    ..Module::EMPTY
};

keyword! {
    /// `autoindex_format`.
    pub enum Format {
        /// A page.
        Html = "html",
        /// JSON.
        Json = "json",
        /// JSON as the argument of the function that the request names.
        Jsonp = "jsonp",
        /// XML.
        Xml = "xml",
    }
}

settings! {
    /// Settings of the module.
    pub(crate) struct AutoindexLoc: Location / PLAIN {
        /// Whether directories are listed.
        enable "autoindex": bool = false, "off", Contexts::HTTP_SERVER_LOCATION;
        /// How they are listed.
        format "autoindex_format": Format = Format::Html, "html", Contexts::HTTP_SERVER_LOCATION;
        /// Whether times on a page are local ones.
        localtime "autoindex_localtime": bool = false, "off", Contexts::HTTP_SERVER_LOCATION;
        /// Whether sizes on a page are exact or rounded.
        exact_size "autoindex_exact_size": bool = true, "on", Contexts::HTTP_SERVER_LOCATION;
    }
}

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: Vec<u8>,
    kind: EntryKind,
    /// Seconds since 1970.
    modified_s: i64,
    size: u64,
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EntryKind {
    Directory,
    File,
    Other,
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    let http = Rc::clone(&x.route.http);
    let conf: &AutoindexLoc = x.loc(&http);
    if !x.target.uri.ends_with(b"/")
        || !matches!(x.target.method, Method::Get | Method::Head)
        || !*conf.enable
    {
        return Content::Declined;
    }
    let path = match paths::map_uri(x, cx) {
        Ok(path) => path,
        Err(status) => return Content::Status(status),
    };
    let Ok(callback) = callback(x, *conf.format) else {
        return Content::Status(400);
    };
    if !x.hold_memory(cx, LISTING_BYTES) {
        return Content::Wait;
    }
    let entries = match read(x, cx, &path) {
        Ok(entries) => entries,
        Err(status) => return Content::Status(status),
    };
    x.reply.status = 200;
    (x.reply.content_type).set(content_type(*conf.format, &callback));
    if *conf.format == Format::Xml {
        x.reply.charset = b"utf-8".to_vec();
    }
    let body = match *conf.format {
        Format::Html => {
            let style = page_style(x, cx, conf);
            page::html(&x.target.uri, &entries, style)
        }
        Format::Json | Format::Jsonp => data::json(&entries, &callback),
        Format::Xml => data::xml(&entries),
    };
    reply::send(x, cx, Some(Chunk::Owned(body)));
    Content::Sent
}

fn page_style(x: &mut Exchange, cx: &mut Ctx<'_>, conf: &AutoindexLoc) -> page::Style {
    page::Style {
        utf8: charset::upcoming(x, cx).eq_ignore_ascii_case(b"utf-8"),
        exact_size: *conf.exact_size,
        offset_s: if *conf.localtime {
            i64::from(server_base::clock::utc_offset_s())
        } else {
            0
        },
    }
}

fn content_type(format: Format, callback: &[u8]) -> &'static [u8] {
    match format {
        Format::Html => b"text/html",
        Format::Jsonp if !callback.is_empty() => b"application/javascript",
        Format::Json | Format::Jsonp => b"application/json",
        Format::Xml => b"text/xml",
    }
}

/// Returns the callback function of a JSONP request; empty for none.
fn callback(x: &Exchange, format: Format) -> Result<Vec<u8>, ()> {
    if format != Format::Jsonp {
        return Ok(Vec::new());
    }
    let named = x.target.args.split(|b| *b == b'&').find_map(|arg| {
        let at = arg.iter().position(|b| *b == b'=')?;
        arg[..at]
            .eq_ignore_ascii_case(b"callback")
            .then(|| &arg[at + 1..])
    });
    let name = named.unwrap_or_default();
    let fault = if name.len() > CALLBACK_MAX_BYTES {
        "too long"
    } else if !name
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'))
    {
        "invalid"
    } else {
        return Ok(name.to_vec());
    };
    let name = Printable(name);
    let text = format_args!("client sent {fault} callback name: \"{name}\"");
    x.log(Level::Info, text);
    Err(())
}

/// Reads a directory: its subdirectories first, then the rest, by name.
fn read(x: &Exchange, cx: &mut Ctx<'_>, path: &[u8]) -> Result<Vec<Entry>, u16> {
    let listed = cx.files.list(path);
    let listed = listed.map_err(|error| not_listed(x, path, error))?;
    let mut entries = Vec::with_capacity(listed.len());
    for entry in listed {
        let meta = match entry.meta {
            Ok(meta) => meta,
            Err(error) => {
                let path = [path, &entry.name].concat();
                paths::log_failed(x, Level::Crit, &path, error);
                if error.errno == EACCES {
                    continue;
                }
                return Err(500);
            }
        };
        entries.push(Entry {
            name: entry.name,
            kind: match (meta.is_dir, meta.is_file) {
                (true, _) => EntryKind::Directory,
                (_, true) => EntryKind::File,
                _ => EntryKind::Other,
            },
            modified_s: meta.mtime_s,
            size: meta.size,
        });
    }
    entries.sort_by(|a, b| {
        let files_last = (a.kind != EntryKind::Directory).cmp(&(b.kind != EntryKind::Directory));
        files_last.then_with(|| a.name.cmp(&b.name))
    });
    Ok(entries)
}

/// Logs why a directory cannot be read; returns the status.
pub(crate) fn not_listed(x: &Exchange, path: &[u8], error: FileError) -> u16 {
    let (level, status) = match error.errno {
        ENOENT | ENOTDIR | ENAMETOOLONG => (Level::Error, 404),
        EACCES => (Level::Error, 403),
        _ => (Level::Crit, 500),
    };
    let shown = match path {
        [.., _, b'/'] => &path[..path.len() - 1],
        _ => path,
    };
    paths::log_failed(x, level, shown, error);
    status
}

/// Bytes charged for a listing, which is complete before it is sent. This limits how many listings of a connection are
/// in memory at a time.
const LISTING_BYTES: u64 = 256 << 10;
/// Maximum length of the name of a callback function, as in nginx.
const CALLBACK_MAX_BYTES: usize = 128;
