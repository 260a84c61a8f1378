//! `gzip_static`, `brotli_static`, `zstd_static`: sends compressed files in place of the originals.
//!
//! As in nginx the contents of both files are not compared: they are the administrator's concern.
//!
//! Source: nginx documentation, `ngx_http_gzip_static_module`; the manual of ngx_brotli.

use std::rc::Rc;

use conf::Contexts;
use engines::http::{FieldId, Method};
use server_base::errlog::{Level, Shown};
use server_base::files::Opened;
use server_http::debug_http;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Content, Handler, Module};
use server_http::paths::log_failed;
use server_http::{paths, reply, settings};

use super::coding::{CODINGS, Coding};
use super::settings::CompressLoc;
use super::{allowed, vary};
use crate::file;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "gzip_static",
    replaces: &["brotli_static", "zstd_static"],
    directives: &[PLAIN],
    settings: &[<StaticLoc as server_http::settings_set::Conf>::def],
    handlers: &[Handler::Content(handle)],
    on_demand: true,
    ..Module::EMPTY
};

server_base::keyword! {
    /// When a compressed file is sent.
    pub enum Mode {
        /// To clients that take it.
        On = "on",
        /// Never.
        Off = "off",
        /// To all.
        Always = "always",
    }
}

settings! {
    /// Settings of a location.
    pub(crate) struct StaticLoc: Location / PLAIN {
        /// Whether a file with .gz after its name is sent in the place of one.
        gzip "gzip_static": Mode = Mode::Off, "off", Contexts::HTTP_SERVER_LOCATION;
        /// Whether a file with .br after its name is sent in the place of one.
        brotli "brotli_static": Mode = Mode::Off, "off", Contexts::HTTP_SERVER_LOCATION;
        /// Whether a file with .zst after its name is sent in the place of one.
        zstd "zstd_static": Mode = Mode::Off, "off", Contexts::HTTP_SERVER_LOCATION;
    }
}

impl StaticLoc {
    fn mode(&self, coding: Coding) -> Mode {
        match coding {
            Coding::Gzip => *self.gzip,
            Coding::Brotli => *self.brotli,
            Coding::Zstd => *self.zstd,
        }
    }
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    let http = Rc::clone(&x.route.http);
    let own: &StaticLoc = x.loc(&http);
    if Coding::ALL
        .iter()
        .all(|coding| own.mode(*coding) == Mode::Off)
        || !matches!(x.target.method, Method::Get | Method::Head)
        || x.target.uri.ends_with(b"/")
    {
        return Content::Declined;
    }
    let conf: &CompressLoc = x.loc(&http);
    let candidates = candidates(x, cx, own, conf);
    let mut path = match paths::map_uri(x, cx) {
        Ok(path) => path,
        Err(status) => return Content::Status(status),
    };
    let bare = path.len();
    for (coding, taken) in candidates.into_iter().flatten() {
        if !taken && !*conf.vary {
            continue;
        }
        path.truncate(bare);
        path.extend_from_slice(coding.extension().as_bytes());
        debug_http!(x, "http filename: \"{}\"", Shown(&path));
        let Some(opened) = open(x, cx, &path) else {
            continue;
        };
        if own.mode(coding) == Mode::On && *conf.vary {
            vary::add(&mut x.reply.fields);
        }
        if !taken || opened.meta.is_dir {
            continue;
        }
        if !opened.meta.is_file {
            return file::not_regular(x, &path);
        }
        return send(x, cx, coding, &opened);
    }
    Content::Declined
}

/// Returns the enabled codings, the client's favourite first, and whether it accepts each.
fn candidates(
    x: &Exchange,
    cx: &Ctx<'_>,
    own: &StaticLoc,
    conf: &CompressLoc,
) -> [Option<(Coding, bool)>; CODINGS] {
    let accepted = allowed::accepted(x);
    let excluded = !allowed::not_excluded(x, cx, conf);
    let mut all = conf.order.0.map(|coding| {
        let weight = match (own.mode(coding), coding) {
            (Mode::Off, _) => return (0, None),
            // The body of a subrequest has no coding, unless the mode is `always`.
            (Mode::On, _) if x.is_subrequest() => return (0, None),
            (Mode::On, Coding::Gzip) if excluded => 0,
            (Mode::On | Mode::Always, _) => accepted.weight(coding),
        };
        let taken = weight > 0 || own.mode(coding) == Mode::Always;
        (weight, Some((coding, taken)))
    });
    // The sort is stable: codings of equal weight stay in the order of the configuration.
    all.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    all.map(|(_, candidate)| candidate)
}

/// Opens a compressed file; `None` if it does not exist or cannot be read.
fn open(x: &mut Exchange, cx: &mut Ctx<'_>, path: &[u8]) -> Option<Rc<Opened>> {
    let policy = paths::policy(x, cx, path);
    match cx.files.open(path, &policy) {
        Ok(opened) => Some(opened),
        Err(error) if error.is_missing() => None,
        Err(error) => {
            let level = if error.is_forbidden() {
                Level::Error
            } else {
                Level::Crit
            };
            log_failed(x, level, path, error);
            None
        }
    }
}

fn send(x: &mut Exchange, cx: &mut Ctx<'_>, coding: Coding, opened: &Opened) -> Content {
    file::record_opened(x);
    file::describe(x, opened, opened.meta.size);
    x.reply.fields.push_id(
        FieldId::ContentEncoding,
        b"Content-Encoding",
        coding.token().as_bytes(),
    );
    let chunk = file::chunk(cx, opened);
    reply::send(x, cx, chunk);
    Content::Sent
}
