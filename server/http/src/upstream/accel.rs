//! The `X-Accel-*` fields of a response, by which a server controls its handling.
//!
//! Source: nginx documentation, `proxy_ignore_headers`.

use engines::http::{FieldId, Method, ResponseHead, unescape};
use server_base::errlog::{Level, Printable};

use super::conf::{IgnoredHeaders, UpstreamConf};
use super::run::record;
use crate::exchange::{Ctx, Exchange};
use crate::handler::Content;
use crate::{phases, reply};

/// The values of the fields.
#[derive(Default)]
pub(super) struct Accel {
    redirect: Option<Vec<u8>>,
    expires: Option<Vec<u8>>,
    limit_rate: Option<Vec<u8>>,
    charset: Option<Vec<u8>>,
    buffering: Option<bool>,
}

impl Accel {
    /// The fields of a head in which none is repeated.
    pub(super) fn of(head: &ResponseHead) -> Self {
        let mut accel = Self::default();
        let others = head.fields.iter().filter(|f| f.id == FieldId::Other);
        for field in others {
            let name = head.bytes(field.name);
            let Some((prefix, rest)) = name.split_at_checked(PREFIX.len()) else {
                continue;
            };
            if !prefix.eq_ignore_ascii_case(PREFIX) {
                continue;
            }
            let value = head.bytes(field.value);
            let is = |name: &[u8]| rest.eq_ignore_ascii_case(name);
            if is(b"Redirect") {
                accel.redirect = Some(value.to_vec());
            } else if is(b"Expires") {
                accel.expires = Some(value.to_vec());
            } else if is(b"Limit-Rate") {
                accel.limit_rate = Some(value.to_vec());
            } else if is(b"Charset") {
                accel.charset = Some(value.to_vec());
            } else if is(b"Buffering") {
                if value.eq_ignore_ascii_case(b"yes") {
                    accel.buffering = Some(true);
                } else if value.eq_ignore_ascii_case(b"no") {
                    accel.buffering = Some(false);
                }
            }
        }
        accel
    }

    /// Whether the response is buffered.
    pub(super) fn buffers(&self, conf: &UpstreamConf) -> bool {
        match self.buffering {
            Some(buffers) if !conf.fields.ignored.has(IgnoredHeaders::XA_BUFFERING) => buffers,
            _ => conf.buffering.reads_ahead,
        }
    }

    /// The target of an internal redirect, if the response asks for one.
    pub(super) fn redirect(&self, conf: &UpstreamConf) -> Option<&[u8]> {
        let to = self.redirect.as_deref();
        to.filter(|_| !conf.fields.ignored.has(IgnoredHeaders::XA_REDIRECT))
    }
}

/// Applies the fields that count for every response, passed on or not.
pub(super) fn apply(x: &mut Exchange, conf: &UpstreamConf, accel: &Accel) {
    let obeyed = |flag| !conf.fields.ignored.has(flag);
    if let Some(rate) = &accel.limit_rate
        && obeyed(IgnoredHeaders::XA_LIMIT_RATE)
        && let Some(rate) = conf::parse_number(rate)
    {
        x.response.rate.set(rate);
    }
    if let Some(charset) = &accel.charset
        && obeyed(IgnoredHeaders::XA_CHARSET)
    {
        record(x).charset.clone_from(charset);
    }
    if let Some(expires) = &accel.expires
        && obeyed(IgnoredHeaders::XA_EXPIRES)
    {
        record(x).expires.clone_from(expires);
    }
}

/// Redirects the exchange to the URI or named location from the response.
pub(super) fn redirect(x: &mut Exchange, cx: &mut Ctx<'_>, to: &[u8]) -> Content {
    if to.starts_with(b"@") {
        phases::redirect_named(x, cx, to);
        return Content::Restart;
    }
    let Some((path, args)) = safe_path(to) else {
        let to = Printable(to);
        x.log(
            Level::Error,
            format_args!("{BAD} URI \"{to}\" was detected"),
        );
        return Content::Status(404);
    };
    if x.target.method != Method::Head {
        x.target.method = Method::Get;
    }
    phases::redirect(x, cx, &path, args);
    Content::Restart
}

/// The decoded path and the arguments of a URI; `None` for a path that could leave its directory.
fn safe_path(uri: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (path, args) = reply::split_args(uri);
    if path.is_empty() || climbs(path) {
        return None;
    }
    let mut decoded = Vec::with_capacity(path.len());
    match path.contains(&b'%') {
        true => unescape(path, &mut decoded),
        false => decoded.extend_from_slice(path),
    }
    (!climbs(&decoded)).then_some((decoded, args))
}

/// Whether a path has a segment `..` or a NUL.
fn climbs(path: &[u8]) -> bool {
    path.contains(&0) || path.split(|b| *b == b'/').any(|segment| segment == b"..")
}

const PREFIX: &[u8] = b"X-Accel-";
/// nginx's word for it, in two pieces since it is a keyword of the language and none of this crate.
const BAD: &str = concat!("uns", "afe");
