//! The consequence of a failed attempt: another attempt, or the status of the failure.

use super::cache::stale;
use super::conf::NextUpstream;
use super::health::probe;
use super::run::{Flow, Retried, Run, Step, record};
use super::tries::{Failed, Next, Rules};
use super::wording::Action;
use crate::cache::counts::CacheResult;
use crate::exchange::{Ctx, Exchange, State, Wait};
use crate::handler::Content;
use server_base::errlog::Level;
use server_upstream::picker::Outcome;
use server_upstream::request::UpstreamRequest;

/// Goes on behind a failed attempt, which has been logged.
pub(super) fn next(
    run: &mut Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    failed: Failed,
    action: Action,
) -> Flow {
    let follows = decide(run, x, cx, failed);
    let is_retry = matches!(follows, Next::Same | Next::Other);
    if is_retry && !may_retry(run, x, action) {
        return take_step(run, x, cx, failed, (Next::GiveUp, action));
    }
    take_step(run, x, cx, failed, (follows, action))
}

/// Goes on behind a response that is left for that of another attempt, if the budget of retries allows one.
///
/// # Errors
/// It does not: the response is the answer.
pub(super) fn pass_by(
    run: &mut Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    failed: Failed,
    attempt: UpstreamRequest,
) -> Result<Flow, UpstreamRequest> {
    let action = Action::ReadingHead;
    if !may_retry(run, x, action) {
        return Err(attempt);
    }
    run.request = attempt.take_head();
    drop(attempt);
    let follows = decide(run, x, cx, failed);
    Ok(take_step(run, x, cx, failed, (follows, action)))
}

/// Counts the failed attempt, and returns the next step.
fn decide(run: &mut Run, x: &mut Exchange, cx: &Ctx<'_>, failed: Failed) -> Next {
    let rules = rules(run, x, cx);
    let tries = run.tries.as_mut();
    match tries.map_or(Next::GiveUp, |tries| tries.after(failed, rules)) {
        // A check tests one server once.
        Next::Same | Next::Other if x.is_health_check() => Next::GiveUp,
        follows => follows,
    }
}

/// Takes a retry from the budget, if there is one; false if nothing is left of it.
fn may_retry(run: &mut Run, x: &Exchange, action: Action) -> bool {
    let Some(budget) = run.conf(x, &x.route.http).retry.budget else {
        return true;
    };
    let allows = run.counted.as_mut().is_none_or(|one| one.retry(budget));
    if !allows {
        let text = format_args!("no retry is left in the budget of the upstream");
        x.log_while(Level::Warn, action.text(), text);
    }
    allows
}

/// Ends the attempt, and does the next step.
fn take_step(
    run: &mut Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    failed: Failed,
    (follows, action): (Next, Action),
) -> Flow {
    let status = failed.status();
    if let Some(attempt) = record(x).last() {
        attempt.status = status;
    }
    if follows == Next::Again {
        record(x).close(cx.clock.mono_ms);
        return Flow::Next(Step::Again);
    }
    x.body.on_arrival = None;
    if follows == Next::Same {
        // The server keeps its place for this request. Its failure counts if its last attempt fails.
        run.count_retried(x, cx.clock.mono_ms);
        return delayed(run, x, cx, Retried::Same);
    }
    run.finish_attempt(x, cx, outcome(failed), action);
    probe::fail(x, action, cx.clock.mono_ms);
    match follows {
        Next::Anew => Flow::Next(Step::Choose),
        Next::Other => delayed(run, x, cx, Retried::Other),
        Next::Again | Next::Same | Next::GiveUp => {
            match stale::may_send(run, x, cx, failed.reason, None) {
                true => Flow::Next(Step::Stored(CacheResult::Stale)),
                false => Flow::Done(Content::Status(status)),
            }
        }
    }
}

/// The result of the attempt for the group.
fn outcome(failed: Failed) -> Outcome {
    match failed.reason {
        NextUpstream::HTTP_403 | NextUpstream::HTTP_404 => Outcome::Next,
        _ => Outcome::Failed,
    }
}

/// The next attempt, after the delay of retries.
fn delayed(run: &Run, x: &Exchange, cx: &Ctx<'_>, then: Retried) -> Flow {
    let delay_ms = run.conf(x, &x.route.http).retry.delay_ms;
    Flow::Next(match delay_ms {
        0 => then.into(),
        _ => Step::Delay(cx.clock.mono_ms.saturating_add(delay_ms), then),
    })
}

/// Waits until the delay is over.
pub(super) fn wait(x: &mut Exchange, cx: &Ctx<'_>, until_ms: u64, then: Retried) -> Flow {
    if cx.clock.mono_ms >= until_ms {
        return Flow::Next(then.into());
    }
    x.progress.state = State::Waiting(Wait::until(until_ms));
    Flow::Wait(Step::Delay(until_ms, then))
}

/// The conditions of the decision besides the failure.
pub(super) fn rules(run: &Run, x: &Exchange, cx: &Ctx<'_>) -> Rules {
    let retry = &run.conf(x, &x.route.http).retry;
    Rules {
        on: retry.on,
        method: x.target.method,
        unbuffered: run.body.is_stream(),
        body_is_gone: run.body.is_gone(),
        now_ms: cx.clock.mono_ms,
        delay_ms: retry.delay_ms,
    }
}
