//! The access phase: the joint decision of its handlers, and the delay of refusals.
//!
//! `auth_delay` counts from the beginning of the turn that refused the request, or from an earlier time that a
//! handler set. So it includes the time of the password check, and the time of the response reveals nothing about
//! it. The driver reads its clock again before it waits for the timer that is set here.
//!
//! Source: nginx documentation, directives `satisfy` and `auth_delay`.

use engines::http::FieldId;
use server_base::errlog::Level;

use crate::conf_core::Satisfy;
use crate::debug_http;
use crate::decision::{Access, Phase};
use crate::exchange::{Ctx, Exchange, State, Wait};
use crate::http::Http;
use crate::reply;
use crate::trace::Event;

/// The answer that is held back until then, monotonic milliseconds.
struct DelayedResponse {
    until_ms: u64,
}

/// From when the delay of a refusal counts, monotonic milliseconds.
struct Since {
    ms: u64,
}

/// Sets the time from which the delay of the following refusal counts, monotonic milliseconds: a handler that waited
/// began then.
pub fn delay_counts_from(x: &mut Exchange, since_ms: u64) {
    x.extensions.set(Since { ms: since_ms });
}

/// Runs the handlers; a subrequest may go wherever the request that it belongs to leads it.
#[inline(always)] // See `phase`.
pub(super) fn run(x: &mut Exchange, cx: &mut Ctx<'_>, http: &Http) {
    if x.is_subrequest() {
        return x.progress.enter(Phase::PreContent);
    }
    while let Some(handler) = http.handlers.access.get(x.progress.handler) {
        let any = *x.core_loc(http).satisfy == Satisfy::Any;
        debug_http!(x, "access phase: {}", x.progress.handler);
        match handler(x, cx) {
            Access::NoOpinion => {}
            Access::Allow if any => {
                x.progress.access_code = 0;
                x.reply.fields.remove(FieldId::WwwAuthenticate);
                return x.progress.enter(Phase::PreContent);
            }
            Access::Allow => {}
            Access::Deny(status @ (401 | 403)) if any => {
                if x.progress.access_code != 401 {
                    x.progress.access_code = status;
                }
            }
            Access::Deny(401) => {
                x.record_event(|| Event::Refused(x.progress.phase, x.progress.handler, 401));
                x.progress.access_code = 401;
                return x.progress.enter(Phase::PostAccess);
            }
            Access::Deny(status) => return reply::refuse(x, cx, status),
            Access::Wait => return,
        }
        x.progress.handler += 1;
    }
    x.progress.enter(Phase::PostAccess);
}

/// Refuses the request unless a handler allowed it.
#[inline(always)] // See `phase`.
pub(super) fn decide(x: &mut Exchange, cx: &mut Ctx<'_>, http: &Http) {
    let code = x.progress.access_code;
    debug_http!(x, "post access phase: {code}");
    match code {
        0 => return x.progress.enter(Phase::PreContent),
        401 if hold(x, cx, http) => return,
        403 => x.log(Level::Error, format_args!("access forbidden by rule")),
        _ => {}
    }
    x.progress.access_code = 0;
    reply::status(x, cx, code);
}

/// Waits for the end of `auth_delay`; false once it is over, or if there is none. Waking too early does no harm.
fn hold(x: &mut Exchange, cx: &mut Ctx<'_>, http: &Http) -> bool {
    let now_ms = cx.clock.mono_ms;
    let until_ms = match x.extensions.get::<DelayedResponse>() {
        Some(held) => held.until_ms,
        None => {
            let delay_ms = x.core_loc(http).auth_delay.0;
            if delay_ms == 0 {
                return false;
            }
            x.log(Level::Info, format_args!("delaying unauthorized request"));
            let since_ms = x
                .extensions
                .take::<Since>()
                .map_or(now_ms, |since| since.ms);
            let until_ms = since_ms.saturating_add(delay_ms);
            x.extensions.push(DelayedResponse { until_ms });
            until_ms
        }
    };
    if now_ms >= until_ms {
        // Its error page may refuse it once more.
        x.extensions.drop_all::<DelayedResponse>();
        return false;
    }
    x.progress.state = State::Waiting(Wait::until(until_ms));
    true
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
