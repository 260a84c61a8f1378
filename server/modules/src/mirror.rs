//! `mirror`, `mirror_request_body`, `mirror_max`: copies of requests to other locations, in the background.
//!
//! A mirror is a detached request: it has copies of the head and the variables, shares the request body, and its response is
//! dropped. So the client's connection takes its next request while mirrors are in progress. A copy that would exceed
//! `mirror_max` is not made. Copies in progress are counted by URI for the whole process, also over reloads.
//!
//! Source: nginx documentation, `ngx_http_mirror_module`. `mirror_max` is firstbyte's.

use std::rc::Rc;
use std::sync::Arc;

use conf::{ConfError, Contexts, Directive};
use engines::http::BodyLength;
use server_base::errlog::{Level, Printable};
use server_base::from_args::Between;
use server_base::shared_list::SharedList;
use server_base::zone::{self, Zone};
use server_http::assemble::ConfigBuilder;
use server_http::debug_http;
use server_http::exchange::{CollectOptions, Ctx, DetachedRequest, DropGuard, Exchange};
use server_http::module::{Handler, Module, Step};
use server_http::request_body::{Collected, collect};
use server_http::settings;
use server_http::settings_set::inherited;
use server_http::trace::{At, Event};

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
    copies: Arc<Zone<Copies>>,
}

/// Copies of requests to one URI.
#[derive(Clone, Copy, Default)]
struct Copies {
    in_progress: u64,
    /// Copies that were not made since the last log line about them.
    skipped: u64,
    /// Time of that line, monotonic milliseconds.
    logged_ms: Option<u64>,
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
    // An equal key never conflicts.
    let copies = zone::attach(NAME, uri, ZONE_BYTES, b"").unwrap_or_else(|_| new_zone());
    let uri = uri.into();
    list.push(Mirror { uri, copies });
    Ok(())
}

fn new_zone() -> Arc<Zone<Copies>> {
    Arc::new(Zone::new(ZONE_BYTES, b""))
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
    for (nth, mirror) in mirrors.iter().enumerate() {
        x.record_event(|| Event::Ran(At::Argument(NAME, nth), "gets a copy".to_owned()));
        let copy = match mirror.begin(conf.most.0, cx.clock.mono_ms) {
            Ok(copy) => copy,
            Err(skipped) => {
                log_skipped(x, mirror, conf.most.0, skipped);
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
        request.exchange.extensions.push(DropGuard::new(copy));
        request.logged_as_subrequest().start(cx);
    }
    Step::Next
}

/// Logs that copies are not made, if a line is due: `skipped` of them since the last line.
fn log_skipped(x: &Exchange, mirror: &Mirror, most: u64, skipped: Option<u64>) {
    if let Some(skipped) = skipped {
        let uri = Printable(&mirror.uri);
        let text = format_args!(
            "{skipped} requests were not mirrored to \"{uri}\": {most} others are in progress"
        );
        x.log(Level::Warn, text);
    }
}

impl Mirror {
    /// Counts a copy until the returned value is dropped.
    ///
    /// # Errors
    /// `most` copies are in progress: the number of copies that were not made, if a log line is due.
    fn begin(&self, most: u64, now_ms: u64) -> Result<CountedCopy, Option<u64>> {
        let mut shard = self.copies.lock(b"");
        if shard.get_mut(b"").is_none() {
            // The zone has room for its only entry.
            let _ = shard.insert(b"", Copies::default());
        }
        let now = shard.get_mut(b"").ok_or(None)?;
        if most == 0 || now.in_progress < most {
            now.in_progress += 1;
            return Ok(CountedCopy(Arc::clone(&self.copies)));
        }
        now.skipped += 1;
        let is_due = |logged_ms| now_ms >= logged_ms + LOG_MS;
        if !now.logged_ms.is_none_or(is_due) {
            return Err(None);
        }
        now.logged_ms = Some(now_ms);
        Err(Some(std::mem::take(&mut now.skipped)))
    }
}

/// A copy in progress.
struct CountedCopy(Arc<Zone<Copies>>);

impl Drop for CountedCopy {
    fn drop(&mut self) {
        if let Some(now) = self.0.lock(b"").get_mut(b"") {
            now.in_progress -= 1;
        }
    }
}

/// Default of `mirror_max`: a mirror that never answers leaves most of nginx's 512 `worker_connections` free.
const MOST: u64 = 128;
/// Highest value of `mirror_max`.
const MOST_MAX: u64 = 1_000_000;
/// Maximum number of mirrors of a location.
const MIRRORS_MAX: usize = 16;
/// Budget of the zone of a URI, bytes: one entry.
const ZONE_BYTES: u64 = zone::ENTRY_BYTES;
/// Time between two log lines about copies that are not made, milliseconds.
const LOG_MS: u64 = 1000;

#[cfg(test)]
#[path = "mirror_tests.rs"]
mod tests;
