//! Waiting for the head of a response, while the request body is passed on.

use std::rc::Rc;

use engines::http::ResponseHead;
use server_base::errlog::Level;
use server_upstream::picker::Outcome;
use server_upstream::request::{
    BODY_WINDOW_BYTES, Failure, UpstreamError, UpstreamEvent, UpstreamRequest,
};

use super::accel::{self, Accel};
use super::answer;
use super::body::Body;
use super::cache::{stale, validate};
use super::choose;
use super::conf::NextUpstream;
use super::fields::{drop_repeated, passes_beside_head};
use super::gateway::Verdict;
use super::health::probe;
use super::next::{next, pass_by, rules};
use super::run::{Flow, Run, Step, record};
use super::tries::{Failed, reason_of};
use super::wording::{Action, log_failure, makes_socket};
use crate::cache::counts::CacheResult;
use crate::exchange::{Ctx, Exchange, State, Wait};
use crate::handler::Content;

/// Takes the events of the attempt.
pub(super) fn step(
    run: &mut Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    attempt: UpstreamRequest,
) -> Flow {
    loop {
        match attempt.next() {
            Some(UpstreamEvent::Interim(head)) => hint(run, x, cx, &head),
            Some(UpstreamEvent::Head(head, _)) => return receive(run, x, cx, attempt, head),
            Some(UpstreamEvent::Failed(error)) => return fail(run, x, cx, &attempt, &error),
            Some(UpstreamEvent::Note(text)) => {
                let action = Action::ReadingHead;
                if let Verdict::Invalid(_) = run.note(x, &text, action) {
                    run.request = attempt.take_head();
                    drop(attempt);
                    let failed = Failed::by_response(NextUpstream::INVALID_HEADER);
                    return next(run, x, cx, failed, action);
                }
            }
            // Nothing of these comes before a head.
            Some(
                UpstreamEvent::Data(_)
                | UpstreamEvent::Trailers(_)
                | UpstreamEvent::End
                | UpstreamEvent::Upgraded,
            ) => {}
            None => break,
        }
    }
    if let Body::Stream(stream) = &mut run.body
        && let Err(status) = stream.pump(x, cx, &attempt)
    {
        drop(attempt);
        return Flow::Done(Content::Status(status));
    }
    if run.attempt_until_ms <= cx.clock.mono_ms {
        return time_out(run, x, cx, attempt);
    }
    x.progress.state = State::Waiting(Wait::woken_or_until(run.attempt_until_ms));
    Flow::Wait(Step::Head(attempt))
}

/// The attempt has taken longer than `*_next_upstream_attempt_timeout`.
fn time_out(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>, attempt: UpstreamRequest) -> Flow {
    let action = action(&attempt);
    // The request of a stream may be in the output queue of its connection, which is written in any case.
    let sent = attempt.facts().sent_bytes > 0 || run.gateway.protocol().streams;
    run.request = attempt.take_head();
    drop(attempt);
    log_failure(x, &Failure::TimedOut, action);
    let failed = Failed {
        reason: NextUpstream::TIMEOUT,
        sent,
        reused: false,
        untouched: !sent,
    };
    next(run, x, cx, failed, action)
}

/// Passes early hints on.
fn hint(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>, head: &ResponseHead) {
    if head.status != EARLY_HINTS || !run.gateway.passes_hints(x, cx) {
        return;
    }
    let conf = run.conf(x, &x.route.http);
    run.hints_bytes += head.arena.len() as u64;
    if run.hints_bytes > conf.buffering.head_bytes.unwrap_or(HINTS_BYTES) {
        let text = format_args!("upstream sent too big early hints");
        return x.log_while(Level::Info, Action::ReadingHead.text(), text);
    }
    let mut hints = ResponseHead {
        status: EARLY_HINTS,
        ..ResponseHead::default()
    };
    for field in &head.fields {
        let name = head.bytes(field.name);
        if passes_beside_head(conf, field.id, name) {
            hints.push_id(field.id, name, head.bytes(field.value));
        }
    }
    x.hint(hints);
}

/// An attempt has failed before there was a head.
fn fail(
    run: &mut Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    attempt: &UpstreamRequest,
    error: &UpstreamError,
) -> Flow {
    let action = match error.failure {
        Failure::Certificate(_) => Action::Handshaking,
        _ => action(attempt),
    };
    run.request = attempt.take_head();
    log_failure(x, &error.failure, action);
    // Faults of ours: no other server mends them, and they are not counted against this one.
    let is_ours = match error.failure {
        Failure::Unsendable(_) | Failure::Certificate(_) | Failure::NoConnection => true,
        Failure::Socket { call, .. } => makes_socket(call),
        _ => false,
    };
    if is_ours {
        if matches!(error.failure, Failure::Certificate(_)) {
            // Without a result of its checks the server would keep its state for ever.
            probe::fail(x, action, cx.clock.mono_ms);
        }
        record(x).close(cx.clock.mono_ms);
        return Flow::Done(Content::Status(500));
    }
    next(run, x, cx, Failed::of(error), action)
}

/// The action during which the attempt failed.
fn action(attempt: &UpstreamRequest) -> Action {
    let facts = attempt.facts();
    if facts.connected_ms.is_none() {
        match facts.handshaking {
            true => Action::Handshaking,
            false => Action::Connecting,
        }
    } else if attempt.room() < BODY_WINDOW_BYTES {
        Action::Sending
    } else {
        Action::ReadingHead
    }
}

/// There is a head: it is passed on, or leads elsewhere.
fn receive(
    run: &mut Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    mut attempt: UpstreamRequest,
    mut head: Box<ResponseHead>,
) -> Flow {
    let http = Rc::clone(&x.route.http);
    let conf = run.conf(x, &http);
    let status = head.status;
    drop_repeated(x, &mut head);
    let accel = Accel::of(&head);
    let replaced = run.gateway.received(x, cx, &head);
    let upstream = record(x);
    if let Some(last) = upstream.last() {
        last.status = status;
        last.head_ms = Some(cx.clock.mono_ms);
    }
    upstream.head = Some(head);
    if upstream.check.is_some() {
        return Flow::Next(Step::Examine(attempt));
    }
    accel::apply(x, conf, &accel);
    if status >= 300 {
        let failed = reason_of(status).map(Failed::by_response);
        let rules = rules(run, x, cx);
        if let (Some(failed), Some(tries)) = (failed, run.tries)
            && tries.passes_by(failed, rules)
        {
            match pass_by(run, x, cx, failed, attempt) {
                Ok(flow) => return flow,
                Err(kept) => attempt = kept,
            }
        }
        // After other servers were tried: a stale response is better than a failure.
        if run.cache.is_some()
            && let Some(instead) = stored_instead(run, x, cx, status)
        {
            drop(attempt);
            let Instead::Stored(result) = instead else {
                return choose::without_conditions(run, x, cx);
            };
            run.finish_attempt(x, cx, Outcome::Alive, Action::ReadingHead);
            return Flow::Next(Step::Stored(result));
        }
        if let Some(status) = replaced {
            drop(attempt);
            return answer::intercept(run, x, cx, status);
        }
        if conf.intercept_errors && answer::intercepts(x, status) {
            drop(attempt);
            return answer::intercept(run, x, cx, status);
        }
    }
    if let Some(binding) = &run.binding {
        binding.learn_from_head(x, cx);
    }
    run.body.forget();
    run.answered(x);
    answer::step(run, x, cx, attempt, &accel)
}

/// The continuation in the place of a response.
enum Instead {
    /// The stored response is sent.
    Stored(CacheResult),
    /// The server confirms another response than the stored one: it is asked without conditions.
    Unconditional,
}

/// Returns the step for another response in the place of this one. It is the stored response, if the server has confirmed
/// it or has failed, or a new response without conditions.
fn stored_instead(
    run: &mut Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    status: u16,
) -> Option<Instead> {
    if let Some(reason) = reason_of(status)
        && stale::may_send(run, x, cx, reason, Some(status))
    {
        return Some(Instead::Stored(CacheResult::Stale));
    }
    if status != NOT_MODIFIED || !validate::is_conditional(run, x) {
        return None;
    }
    let head = record(x).head.take()?;
    if !validate::is_about_stored(run, &head) {
        return Some(Instead::Unconditional);
    }
    validate::confirm(run, x, cx, &head);
    Some(Instead::Stored(CacheResult::Revalidated))
}

/// The status of a response that confirms a stored one.
const NOT_MODIFIED: u16 = 304;
/// RFC 8297.
const EARLY_HINTS: u16 = 103;
/// Maximum bytes of early hints of one response, if no buffer size is written.
const HINTS_BYTES: u64 = 64 << 10;
