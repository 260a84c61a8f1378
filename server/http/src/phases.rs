//! The phases of an exchange: one loop over plain functions, in nginx's order.
//!
//! `begin` takes a parsed head, finds server and URI, and starts the loop; `resume` continues after a wait. The
//! loop ends when the response head is complete or the exchange waits for its timer.
//!
//! Source: nginx development guide, "Phases".

mod access;
mod access_check;

use std::rc::Rc;

use engines::http::{BodyLength, Fault, FieldId, Version, normalize};

use crate::arms;
use crate::client_cert;
use crate::conf_core::CoreSrv;
use crate::debug_http;
pub use crate::decision::Phase;
use crate::decision::{Content, Step};
use crate::exchange::{Action, Ctx, Exchange, State, UriOrigin, upstream};
pub use crate::handler::Handlers;
use crate::handler::StepFn;
use crate::http::Http;
use crate::reply;
pub use crate::reply::{redirect, redirect_named};
use crate::request_body::unread;
pub use crate::route::location::location_changed;
use crate::route::location::{Search, find_location};
use crate::route::server::find_server;
pub use crate::route::server::place;
use crate::trace::Event;
pub use access::delay_counts_from;
pub use access_check::accessible_location;
use server_base::errlog::{self, Level, Printable};
use server_base::memory;
use server_base::regex::FailedMatch;

/// Starts an exchange whose head has been placed in it.
pub fn begin(x: &mut Exchange, cx: &mut Ctx<'_>) {
    if let Err(status) = start(x) {
        reply::status(x, cx, status);
    }
    // A head that was refused may have an error page, which runs through the phases.
    run(x, cx);
}

/// Finds server and URI.
///
/// # Errors
/// The status that answers a head which is refused.
fn start(x: &mut Exchange) -> Result<(), u16> {
    let http = Rc::clone(&x.route.http);
    let addr = http.ports[x.route.port].addr(x.client.local);
    place(x);
    if errlog::debugging() {
        x.debug_head();
    }
    if let Some(fault) = x.head.fault {
        // The readable part names the server of the error page and of the log.
        take_known(x);
        return Err(refuse(x, fault));
    }
    if memory::is_full() {
        return Err(503);
    }
    x.progress.keep_alive =
        !x.head.close && (x.head.version > Version::Http10 || x.head.keep_alive);
    if !take_host(x) {
        take_target(x);
        return Err(refuse(x, Fault::BadHost));
    }
    let server = find_server(x, addr).map_err(|_| 500_u16)?;
    if x.tls.is_some() && arms::is_misdirected(x, &http, server) {
        return Err(421);
    }
    x.route.server = server;
    x.route.location = http.servers[server].location;
    let offers = x.client.offers;
    if offers.is_some_and(|offers| !offers(&http, addr, server)) {
        log_not_offered(x);
        return Err(421);
    }
    if x.head.notes.is_some() {
        log_dropped(x);
    }
    if !take_target(x) {
        return Err(refuse(x, Fault::BadUri));
    }
    if errlog::debugging() {
        x.debug_uri();
    }
    if let Some(status) = client_cert::refusal(x, &http) {
        return Err(status);
    }
    let method = x.target.method;
    match x.tls.as_ref().is_some_and(|tls| tls.is_too_early(method)) {
        true => Err(425),
        false => Ok(()),
    }
}

/// Logs that the server of the request does not offer the protocol of the connection.
#[cold]
fn log_not_offered(x: &Exchange) {
    let text =
        "client attempted to request the server name for which the negotiated protocol is disabled";
    x.log_while(
        Level::Info,
        "reading client request headers",
        format_args!("{text}"),
    );
}

/// Continues an exchange if its wait may have ended: its time has come, its request body is there, or it was woken.
/// Wakes may be spurious.
pub fn resume(x: &mut Exchange, cx: &mut Ctx<'_>) {
    let State::Waiting(wait) = x.progress.state else {
        return;
    };
    if wait.wake || x.is_due(cx.clock.mono_ms) {
        x.forget_wakes();
        if !x.is_held() {
            x.progress.state = State::Running;
        } else if let Some(status) = unread::release(x) {
            reply::status(x, cx, status);
        } else {
            return;
        }
        run(x, cx);
    }
}

/// Writes the logs of an ended exchange and releases resources that modules hold for it.
pub fn log(x: &mut Exchange, cx: &mut Ctx<'_>) {
    let http = Rc::clone(&x.route.http);
    debug_http!(x, "http close request");
    debug_http!(x, "http log handler");
    upstream::close(x, cx);
    x.progress.action = Action::Logging;
    for handler in &http.handlers.log {
        handler(x, cx);
    }
    release(x, cx);
}

/// Releases the resources that modules hold for an exchange, which ends without a log.
#[inline(always)] // Every request comes through here by `log`.
pub fn release(x: &mut Exchange, cx: &mut Ctx<'_>) {
    if let Some(mut upstream) = x.upstream.take() {
        // An attempt that is not over is given up now, not when the exchange's memory is used again.
        upstream.recycle(cx.connector);
        x.spare_upstream = Some(upstream);
    }
    x.extensions.clear();
    x.drop_waker();
    if x.input.body.is_some() {
        x.input.body = None;
    }
}

/// Writes the logs of a subrequest that has ended, with `log_subrequest`.
pub(crate) fn log_subrequest(x: &mut Exchange, cx: &mut Ctx<'_>) {
    let http = Rc::clone(&x.route.http);
    if *x.core_loc(&http).log_subrequest {
        for handler in &http.handlers.log {
            handler(x, cx);
        }
    }
}

/// Places an exchange with an incomplete head: server and URI as far as they are known.
pub fn place_unfinished(x: &mut Exchange) {
    place(x);
    take_known(x);
    let waits_for_line = x.head.version.has_request_line() && x.head.method_name.is_empty();
    x.progress.action = match waits_for_line {
        false => Action::ReadingHeaders,
        true if x.client.pipelined => Action::ReadingPipelined,
        true => Action::ReadingLine,
    };
}

/// Takes server and URI from a head that is refused or incomplete, for the error page and the log.
fn take_known(x: &mut Exchange) {
    let http = Rc::clone(&x.route.http);
    let addr = http.ports[x.route.port].addr(x.client.local);
    if take_host(x) && !x.target.host.is_empty() {
        x.route.server = find_server(x, addr).unwrap_or(x.route.server);
        // The head is refused for its own fault.
        x.vars.failed_match = FailedMatch::None;
        x.route.location = http.servers[x.route.server].location;
    }
    if !x.head.target.is_empty() {
        take_target(x);
    }
    log_dropped(x);
}

/// Logs the header lines that were dropped.
#[cold]
fn log_dropped(x: &Exchange) {
    let Some(notes) = &x.head.notes else { return };
    let what = match x.head.version.has_request_line() {
        true => "client sent invalid header line",
        false => "client sent invalid header",
    };
    for line in &notes.dropped {
        let line = Printable(x.head.bytes(*line));
        let action = "reading client request headers";
        x.log_while(Level::Info, action, format_args!("{what}: \"{line}\""));
    }
}

/// Whether the request line itself is at fault.
fn is_of_line(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::BadRequestLine
            | Fault::BadMethod
            | Fault::MethodTooLong
            | Fault::MethodInHttp09
            | Fault::UriTooLong
            | Fault::BadUri
            | Fault::BadVersion
            | Fault::UnsupportedVersion
    )
}

/// Refuses a head that breaks the protocol; the connection ends with it. Returns the status of the answer.
fn refuse(x: &mut Exchange, fault: Fault) -> u16 {
    let has_line = x.head.version.has_request_line();
    let is_authority = fault == Fault::BadHost && x.head.authority.get().is_some();
    x.progress.action = match has_line && (is_of_line(fault) || is_authority) {
        true => Action::ReadingLine,
        false => Action::ReadingHeaders,
    };
    let text = match (x.head.fault_message(), fault) {
        (b"", Fault::BadHost) if !has_line => b"client sent invalid \":authority\" header",
        (b"", _) => fault.message().as_bytes(),
        (text, _) => text,
    };
    x.log(Level::Info, format_args!("{}", Printable(text)));
    x.progress.action = Action::None;
    x.progress.keep_alive = false;
    fault.status()
}

/// Answers a request body that breaks the protocol, while nothing has been answered yet.
pub fn refuse_body(x: &mut Exchange, cx: &mut Ctx<'_>, fault: Fault) {
    if x.is_held() {
        unread::withdraw(x);
    }
    x.progress.state = State::Running;
    x.log(Level::Info, format_args!("{}", fault.message()));
    x.progress.keep_alive = false;
    reply::status(x, cx, fault.status());
    run(x, cx);
}

/// Takes the host from the target or the `Host` field; false if it is no host.
fn take_host(x: &mut Exchange) -> bool {
    let raw = match x.head.authority.get() {
        Some(span) => Some(x.head.bytes(span)),
        None => x.head.field(FieldId::Host),
    };
    let Some(raw) = raw else { return true };
    if x.target.host_cache.parse(raw).is_err() {
        return false;
    }
    x.target.host.extend_from_slice(&x.target.host_cache.name);
    x.target.host_port = x.target.host_cache.port;
    true
}

/// Normalises the target into `uri` and `args`; false if it is not one.
fn take_target(x: &mut Exchange) -> bool {
    let merge = *x.route.srv::<CoreSrv>().merge_slashes;
    let target = x.head.bytes(x.head.target);
    match normalize(target, merge, &mut x.target.uri) {
        Ok(parsed) => {
            if let Some(args) = parsed.args {
                // As in nginx `/a?` has no arguments.
                x.target.has_args = args.start < target.len();
                x.target.args.extend_from_slice(&target[args]);
            }
            x.target.ext_len = parsed.ext.map_or(0, |ext| ext.len() as u32);
            x.target.origin = UriOrigin::RequestLine;
            x.target.quoted_uri = parsed.quoted || x.target.uri.contains(&b'+');
            true
        }
        Err(_) => {
            x.target.uri.clear();
            false
        }
    }
}

/// Runs phases until there is a response or a wait.
pub fn run(x: &mut Exchange, cx: &mut Ctx<'_>) {
    let http = Rc::clone(&x.route.http);
    // A comparison would look into the waits of other states, too.
    while matches!(x.progress.state, State::Running) {
        if x.vars.failed_match == FailedMatch::New {
            reply::status(x, cx, 500);
            continue;
        }
        phase(x, cx, &http);
    }
    if x.head.body == BodyLength::Unknown && x.progress.state == State::Responding {
        unread::hold(x, cx);
    }
}

/// Runs one phase.
#[inline(always)] // Ten calls cost a hundredth of an exchange, and so do those of the functions below.
fn phase(x: &mut Exchange, cx: &mut Ctx<'_>, http: &Http) {
    match x.progress.phase {
        Phase::PostRead => steps(x, cx, &http.handlers.post_read, Phase::ServerRewrite),
        Phase::ServerRewrite => steps(x, cx, &http.handlers.server_rewrite, Phase::FindConfig),
        Phase::FindConfig => find_config(x, cx, http),
        Phase::Rewrite => steps(x, cx, &http.handlers.rewrite, Phase::PostRewrite),
        Phase::PostRewrite => post_rewrite(x, cx, http),
        Phase::PreAccess => steps(x, cx, &http.handlers.pre_access, Phase::Access),
        Phase::Access => access::run(x, cx, http),
        Phase::PostAccess => access::decide(x, cx, http),
        Phase::PreContent => steps(x, cx, &http.handlers.pre_content, Phase::Content),
        Phase::Content => content(x, cx, http),
    }
}

/// Runs the handlers of a phase that is not special, from the one that comes next.
fn steps(x: &mut Exchange, cx: &mut Ctx<'_>, handlers: &[StepFn], next: Phase) {
    while let Some(handler) = handlers.get(x.progress.handler) {
        debug_http!(x, "{} phase: {}", x.shown_phase(), x.progress.handler);
        match handler(x, cx) {
            Step::Next => x.progress.handler += 1,
            Step::Status(status) => return reply::refuse(x, cx, status),
            Step::Sent | Step::Restart | Step::Wait => return,
        }
    }
    x.progress.enter(next);
}

#[inline(always)] // See `phase`.
fn find_config(x: &mut Exchange, cx: &mut Ctx<'_>, http: &Http) {
    x.route.uri_changed = false;
    x.record_event(|| Event::Search(x.target.uri.clone()));
    let Ok(search) = find_location(http, x) else {
        return reply::status(x, cx, 500);
    };
    x.record_event(|| Event::Found(x.route.location));
    if !x.route.internal && x.core_loc(http).internal {
        return reply::status(x, cx, 404);
    }
    debug_http!(x, "using configuration \"{}\"", x.route.own_location());
    location_changed(x);
    let limit = x.core_loc(http).bodies.client_max_body_size.0;
    debug_http!(x, "http cl:{} max:{limit}", x.shown_length());
    if let BodyLength::Length(n) = x.head.body
        && limit != 0
        && n > limit
        && !x.input.too_large
    {
        x.input.too_large = true;
        x.log(
            Level::Error,
            format_args!("client intended to send too large body: {n} bytes"),
        );
        return reply::status(x, cx, 413);
    }
    if search == Search::Slash {
        reply::slash_redirect(x);
        return reply::status(x, cx, 301);
    }
    x.progress.enter(Phase::Rewrite);
}

#[inline(always)] // See `phase`.
fn post_rewrite(x: &mut Exchange, cx: &mut Ctx<'_>, http: &Http) {
    debug_http!(x, "post rewrite phase");
    if !x.route.uri_changed {
        return x.progress.enter(Phase::PreAccess);
    }
    debug_http!(x, "uri changes: {}", x.route.uri_changes);
    if !x.route.spend_redirect() {
        x.log(
            Level::Error,
            format_args!(
                "rewrite or internal redirection cycle while processing \"{}\"",
                Printable(&x.target.uri)
            ),
        );
        return reply::status(x, cx, 500);
    }
    x.route.location = http.servers[x.route.server].location;
    x.progress.enter(Phase::FindConfig);
}

#[inline(always)] // See `phase`.
fn content(x: &mut Exchange, cx: &mut Ctx<'_>, http: &Http) {
    if let Some(handler) = x.route.own_location().handler
        && x.progress.handler == 0
    {
        debug_http!(x, "content phase: handler of the location");
        match handler(x, cx) {
            Content::Declined => {}
            done => return end_content(x, cx, done, None),
        }
    }
    while let Some(handler) = http.handlers.content.get(x.progress.handler) {
        debug_http!(x, "content phase: {}", x.progress.handler);
        match handler(x, cx) {
            Content::Declined => x.progress.handler += 1,
            done => return end_content(x, cx, done, Some(x.progress.handler)),
        }
    }
    if x.target.uri.ends_with(b"/") {
        if let Ok(path) = crate::paths::map_uri(x, cx) {
            let path = Printable(&path);
            x.log(
                Level::Error,
                format_args!("directory index of \"{path}\" is forbidden"),
            );
        }
        return reply::status(x, cx, 403);
    }
    x.log(Level::Error, format_args!("no handler found"));
    reply::status(x, cx, 404);
}

/// Ends a content handler that has not declined.
#[inline(always)] // See `phase`.
fn end_content(x: &mut Exchange, cx: &mut Ctx<'_>, done: Content, handler: Option<usize>) {
    match done {
        Content::Sent => x.record_event(|| Event::Answered(handler)),
        Content::Status(status) => {
            x.record_event(|| Event::Answered(handler));
            reply::status(x, cx, status);
        }
        Content::Declined | Content::Restart | Content::Wait => {}
    }
}

#[cfg(test)]
#[path = "phases/head_tests.rs"]
mod head_tests;
#[cfg(test)]
#[path = "phases_tests.rs"]
mod tests;
