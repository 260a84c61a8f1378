//! `memcached_pass`: responds with values of a memcached server.
//!
//! The key is `$memcached_key`, escaped. A value is sent unchanged, with the type of its URI's extension. A missing key
//! is 404. [`server_http::upstream`] handles servers and connections, the engine the protocol; it reports the flags of
//! a value as a field that is hidden from clients.
//!
//! Source: nginx documentation, `ngx_http_memcached_module`.

mod conf;

use std::rc::Rc;

use engines::http::{Escape, FieldId, Method, ResponseHead, escape};
use server_base::errlog::{Level, Printable};
use server_http::exchange::{Ctx, Exchange};
use server_http::http::Http;
use server_http::module::{Content, Module};
use server_http::reply;
use server_http::upstream::settings::finish;
use server_http::upstream::{self, Gateway, Note, Outgoing, Target, UpstreamConf, Verdict};
use server_http::upstream_rows;
use server_upstream::protocol::{self, ProtocolSpec};
use server_upstream::request::RequestSpec;

use conf::MemcachedLoc;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "memcached",
    directives: &[
        conf::ROWS,
        conf::PLAIN,
        upstream_rows!(basic "memcached_" MemcachedLoc),
    ],
    settings: &[<MemcachedLoc as server_http::settings_set::Conf>::def],
    finish: Some(finish::<MemcachedLoc>),
    inherits: conf::INHERITS,
    ..Module::EMPTY
};

/// The content handler of locations with `memcached_pass`.
fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    match x.target.method {
        Method::Get | Method::Head => upstream::handle(x, cx, &Memcached),
        _ => Content::Status(405),
    }
}

/// The gateway of memcached.
struct Memcached;

impl Gateway for Memcached {
    fn conf<'h>(&self, x: &Exchange, http: &'h Http) -> &'h UpstreamConf {
        x.loc::<MemcachedLoc>(http).upstream.conf()
    }

    fn target(&self, x: &mut Exchange, _: &mut Ctx<'_>) -> Result<Target, u16> {
        let pass = x.route.loc::<MemcachedLoc>().pass.as_ref().ok_or(500u16)?;
        Ok(Target::Group(pass.group))
    }

    fn request(
        &self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        outgoing: &Outgoing,
    ) -> Result<RequestSpec, u16> {
        let key = escaped_key(x, cx);
        if key.is_empty() {
            let text = format_args!("the \"$memcached_key\" variable is not set");
            x.log(Level::Error, text);
            return Err(500);
        }
        let mut fields = cx.connector.fields();
        fields.push_id(FieldId::Other, b"key", &key);
        Ok(RequestSpec {
            fields,
            body: outgoing.body,
            keep: true,
            ..RequestSpec::default()
        })
    }

    fn protocol(&self) -> &'static ProtocolSpec {
        &protocol::MEMCACHED
    }

    fn note(&self, x: &Exchange, note: &Note<'_>) -> Verdict {
        let text = Printable(note.text);
        x.log_while(Level::Error, note.action, format_args!("{text}"));
        Verdict::Pass
    }

    fn takes_body(&self) -> bool {
        false
    }

    fn received(&self, x: &mut Exchange, cx: &mut Ctx<'_>, head: &ResponseHead) -> Option<u16> {
        if head.status != 404 {
            return None;
        }
        let key = escaped_key(x, cx);
        let text = format_args!("key: \"{}\" was not found by memcached", Printable(&key));
        x.log_while(Level::Info, READING_HEAD, text);
        Some(404)
    }

    fn head(&self, x: &mut Exchange, cx: &mut Ctx<'_>, head: &ResponseHead) -> Verdict {
        reply::set_content_type(x);
        let gzip_flag = x.route.loc::<MemcachedLoc>().gzip_flag.0;
        if gzip_flag == 0 {
            return Verdict::Pass;
        }
        let flags = head.named(FLAGS.as_bytes()).next().unwrap_or_default();
        let Some(number) = ::conf::parse_number(flags) else {
            log_invalid_flags(x, cx, head, flags);
            return Verdict::Refused;
        };
        if number & gzip_flag != 0 {
            (x.reply.fields).push_id(FieldId::ContentEncoding, b"Content-Encoding", b"gzip");
        }
        Verdict::Pass
    }
}

fn log_invalid_flags(x: &mut Exchange, cx: &mut Ctx<'_>, head: &ResponseHead, flags: &[u8]) {
    let key = escaped_key(x, cx);
    let length = head.get(FieldId::ContentLength).unwrap_or_default();
    let (key, flags, length) = (Printable(&key), Printable(flags), Printable(length));
    let text = format_args!(
        "memcached sent invalid flags in response \"VALUE {key} {flags} {length}\" for key \"{key}\""
    );
    x.log_while(Level::Error, READING_HEAD, text);
}

/// Returns the key with bytes escaped that would end a word or a line of the protocol; empty if the variable is empty.
fn escaped_key(x: &mut Exchange, cx: &mut Ctx<'_>) -> Vec<u8> {
    let http = Rc::clone(&x.route.http);
    let mut key = Vec::new();
    if let Some(pass) = &x.loc::<MemcachedLoc>(&http).pass {
        escape(&pass.key.to_vec(x, cx), Escape::Memcached, &mut key);
    }
    key
}

/// The header field in which the engine passes the flags of a value.
const FLAGS: &str = "flags";
/// The action while a head is read, for the log.
const READING_HEAD: &str = "reading response header from upstream";
