//! Decides whether a client may get gzip: it accepts it, and is not excluded by version, browser or proxy.
//!
//! Source: nginx documentation, `gzip_http_version`, `gzip_proxied`, `gzip_disable`.

use engines::http::{FieldId, Version, parse_http_date};
use server_base::errlog::Level;
use server_base::regex::Regex;
use server_http::exchange::{Ctx, Exchange};
use server_http::user_agent::Browser;

use super::accept::Accepted;
use super::coding::Coding;
use super::settings::{CompressLoc, HttpVersion};

/// The codings that the client accepts, according to its request.
pub(super) fn accepted(x: &Exchange) -> Accepted {
    Accepted::of(x.head.fields_by_id(FieldId::AcceptEncoding))
}

/// Whether the response may be sent with gzip.
pub(super) fn gzip(x: &Exchange, cx: &Ctx<'_>, conf: &CompressLoc) -> bool {
    // The body of a subrequest becomes part of another body, and has no coding.
    !x.is_subrequest() && accepted(x).weight(Coding::Gzip) > 0 && not_excluded(x, cx, conf)
}

/// Whether gzip is allowed apart from the client's `Accept-Encoding`.
pub(super) fn not_excluded(x: &Exchange, cx: &Ctx<'_>, conf: &CompressLoc) -> bool {
    let least = match *conf.version {
        HttpVersion::V10 => Version::Http10,
        HttpVersion::V11 => Version::Http11,
    };
    if x.head.version < least {
        return false;
    }
    if x.head.field(FieldId::Via).is_some() && !proxied(x, cx, conf.proxied) {
        return false;
    }
    match (&conf.disable, x.head.field(FieldId::UserAgent)) {
        (Some(disabled), Some(agent)) => {
            let old = || matches!(Browser::of(agent), Browser::Msie { old: true });
            !(disabled.msie6 && old()
                || disabled
                    .patterns
                    .iter()
                    .any(|regex| excludes(x, regex, agent)))
        }
        _ => true,
    }
}

/// Whether `gzip_disable` matches a browser. If the expression exceeds its limits, gzip is disabled as in nginx, and
/// the request continues.
fn excludes(x: &Exchange, regex: &Regex, agent: &[u8]) -> bool {
    regex.is_match(agent).unwrap_or_else(|limit| {
        let text = limit.display(agent, &regex.pattern);
        x.log(Level::Alert, format_args!("{text}"));
        true
    })
}

/// `gzip_proxied`.
fn proxied(x: &Exchange, cx: &Ctx<'_>, mask: u32) -> bool {
    let says = |bit: u32| mask & bit != 0;
    if says(OFF) {
        return false;
    }
    if says(ANY) || says(AUTH) && x.head.field(FieldId::Authorization).is_some() {
        return true;
    }
    let fields = &x.reply.fields;
    if let Some(expires) = fields.get(FieldId::Expires) {
        let date = match fields.get(FieldId::Date) {
            Some(date) => parse_http_date(date),
            None => Some(cx.clock.unix_s()),
        };
        let past = matches!((parse_http_date(expires), date), (Some(expires), Some(date)) if expires < date);
        return says(EXPIRED) && past;
    }
    if fields.get(FieldId::CacheControl).is_some() {
        let forbids = |word: &[u8]| {
            fields
                .named(b"cache-control")
                .any(|value| lists(value, word))
        };
        return says(NO_CACHE) && forbids(b"no-cache")
            || says(NO_STORE) && forbids(b"no-store")
            || says(PRIVATE) && forbids(b"private");
    }
    let dated = x.reply.last_modified.is_some() || x.reply.last_modified_text.is_some();
    !(says(NO_LAST_MODIFIED) && dated || says(NO_ETAG) && x.reply.etag.is_some())
}

/// Whether a list contains a word.
fn lists(value: &[u8], word: &[u8]) -> bool {
    let mut words = value.split(|b| matches!(b, b',' | b';' | b' ' | b'\t' | b'='));
    words.any(|w| w.eq_ignore_ascii_case(word))
}

/// The words of `gzip_proxied` and their bits.
pub(super) const PROXIED: &[(&str, u32)] = &[
    ("off", OFF),
    ("expired", EXPIRED),
    ("no-cache", NO_CACHE),
    ("no-store", NO_STORE),
    ("private", PRIVATE),
    ("no_last_modified", NO_LAST_MODIFIED),
    ("no_etag", NO_ETAG),
    ("auth", AUTH),
    ("any", ANY),
];

/// No response to a request that came through a proxy.
pub(super) const OFF: u32 = 1;
const EXPIRED: u32 = 2;
const NO_CACHE: u32 = 4;
const NO_STORE: u32 = 8;
const PRIVATE: u32 = 16;
const NO_LAST_MODIFIED: u32 = 32;
const NO_ETAG: u32 = 64;
const AUTH: u32 = 128;
const ANY: u32 = 256;
