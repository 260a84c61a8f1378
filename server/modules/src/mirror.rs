//! `mirror`, `mirror_request_body`, `mirror_max`: copies of requests to other locations, in the background.
//!
//! A mirror is a detached request: it has copies of the head and the variables, shares the request body, and its response is
//! dropped. So the client's connection takes its next request while mirrors are in progress. A copy that would exceed
//! `mirror_max`, or the limit of a thread, is not made ([`copies`]).
//!
//! Source: nginx documentation, `ngx_http_mirror_module`. `mirror_max` is firstbyte's.

mod copies;

use std::rc::Rc;
use std::sync::Arc;

use conf::{ConfError, Contexts, Directive};
use engines::http::BodyLength;
use server_base::errlog::{Level, Printable};
use server_base::from_args::Between;
use server_base::shared_list::SharedList;
use server_http::assemble::ConfigBuilder;
use server_http::debug_http;
use server_http::exchange::{CollectOptions, Ctx, DetachedRequest, DropGuard, Exchange};
use server_http::module::{Handler, Module, Step};
use server_http::request_body::{Collected, collect};
use server_http::settings;
use server_http::settings_set::inherited;
use server_http::trace::{At, Event};
use server_http::upstream::group::server_digest;

use copies::{MOST, Refused, UriCopies};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: NAME,
    directives: &[PLAIN, ROWS],
    settings: &[<MirrorLoc as server_http::settings_set::Conf>::def],
    handlers: &[Handler::PreContent(handle)],
    on_demand: true,
    ..Module::EMPTY
};

const NAME: &str = "mirror";
const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

settings! {
    /// Settings of a location.
    pub(crate) struct MirrorLoc: Location / PLAIN {
        /// Whether the request body is mirrored; if so, it is read before the request is passed on.
        request_body "mirror_request_body": bool = true, "on", HSL;
        /// Maximum number of requests to one mirror that are in progress at a time; 0 for no limit.
        most "mirror_max": Between<0, MOST_MAX> = Between(MOST), "128", HSL;
    }
    extra {
        /// `mirror`; `Some` of an empty list is `off`.
        mirrors: Option<SharedList<Mirror>> = inherited
    }
}

/// One `mirror`.
#[derive(Clone)]
pub(crate) struct Mirror {
    pub(crate) uri: Arc<[u8]>,
    copies: UriCopies,
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// URI of a location that gets a copy of each request; its response is dropped.
    directive "mirror": HSL, TAKE1, "off", "uri | off" => mirror;
}

fn mirror(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let (uri, is_off) = (d.arg(0), d.arg(0) == b"off");
    let conf = b.conf_mut::<MirrorLoc>();
    let list = conf.mirrors.as_ref();
    conf::once(d, list.is_some_and(|list| is_off || list.is_empty()))?;
    if uri.is_empty() {
        return Err(ConfError::word(d, d.word(0), "empty URI of a mirror"));
    }
    let list = conf.mirrors.get_or_insert_default();
    if is_off {
        return Ok(());
    }
    if list.len() == MIRRORS_MAX {
        let text = format!("too many mirrors, at most {MIRRORS_MAX} are possible");
        return Err(ConfError::at(d, text));
    }
    list.push(Mirror {
        uri: uri.into(),
        copies: UriCopies::of(uri),
    });
    Ok(())
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Step {
    let http = Rc::clone(&x.route.http);
    let conf: &MirrorLoc = x.loc(&http);
    let mirrors = conf.mirrors.as_deref().unwrap_or_default();
    if mirrors.is_empty() || x.is_subrequest() {
        return Step::Next;
    }
    debug_http!(x, "mirror handler");
    let has_body = *conf.request_body && x.head.body != BodyLength::None && !x.is_body_refused();
    if has_body {
        let plan = CollectOptions::of(x.route.core_loc());
        match collect(x, cx, &plan) {
            Collected::Wait => return Step::Wait,
            Collected::Status(status) => return Step::Status(status),
            Collected::Done => {}
        }
    }
    let server = server_digest(x);
    for (nth, mirror) in mirrors.iter().enumerate() {
        x.record_event(|| Event::Ran(At::Argument(NAME, nth), "gets a copy".to_owned()));
        let copy = match mirror.copies.begin(server, conf.most.0, cx.clock.mono_ms) {
            Ok(copy) => copy,
            Err(refused) => {
                log_refused(x, mirror, &refused);
                continue;
            }
        };
        let Ok(request) = DetachedRequest::child_of(x, cx, &mirror.uri, &x.target.args) else {
            return Step::Status(500);
        };
        let mut request = request.method(x.target.method).head_only();
        if has_body {
            request = request.with_body_of(x);
        }
        if let Some(copy) = copy {
            request.exchange.extensions.push(DropGuard::new(copy));
        }
        request.logged_as_subrequest().start(cx);
    }
    Step::Next
}

/// Logs that copies are not made, if a line is due.
fn log_refused(x: &Exchange, mirror: &Mirror, refused: &Refused) {
    let uri = Printable(&mirror.uri);
    match *refused {
        Refused::OfUri(Some(skipped), most) => x.log(
            Level::Warn,
            format_args!(
                "{skipped} requests were not mirrored to \"{uri}\": {most} others are in progress"
            ),
        ),
        Refused::OfThread(Some(skipped), most) => x.log(
            Level::Warn,
            format_args!(
                "{skipped} requests were not mirrored, the last to \"{uri}\": {most} others of all mirrors are in progress"
            ),
        ),
        Refused::OfUri(None, _) | Refused::OfThread(None, _) => {}
    }
}

/// Highest value of `mirror_max`.
const MOST_MAX: u64 = 1_000_000;
/// Maximum number of mirrors of a location.
const MIRRORS_MAX: usize = 16;
