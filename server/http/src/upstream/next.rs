//! The consequence of a failed attempt: another attempt, or the status of the failure.

use super::conf::NextUpstream;
use super::health::probe;
use super::run::{Flow, Run, Step, record};
use super::tries::{Failed, Next, Rules};
use super::wording::Action;
use crate::exchange::{Ctx, Exchange};
use crate::handler::Content;
use server_upstream::picker::Outcome;

/// Goes on behind a failed attempt, which has been logged.
pub(super) fn next(
    run: &mut Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    failed: Failed,
    action: Action,
) -> Flow {
    let rules = rules(run, x, cx);
    let status = failed.status();
    let upstream = record(x);
    if let Some(attempt) = upstream.last() {
        attempt.status = status;
    }
    let follows = match &mut run.tries {
        Some(tries) => tries.after(failed, rules),
        None => Next::GiveUp,
    };
    if follows == Next::Again {
        record(x).close(cx.clock.mono_ms);
        return Flow::Next(Step::Again);
    }
    let outcome = match failed.reason {
        NextUpstream::HTTP_403 | NextUpstream::HTTP_404 => Outcome::Next,
        _ => Outcome::Failed,
    };
    run.finish_attempt(x, cx, outcome, action);
    probe::fail(x, action);
    x.body.on_arrival = None;
    match follows {
        Next::Other => Flow::Next(Step::Choose),
        Next::Again | Next::GiveUp => Flow::Done(Content::Status(status)),
    }
}

/// The conditions of the decision besides the failure.
pub(super) fn rules(run: &Run, x: &Exchange, cx: &Ctx<'_>) -> Rules {
    Rules {
        on: run.conf(x, &x.route.http).retry.on,
        method: x.target.method,
        unbuffered: run.body.is_stream(),
        body_is_gone: run.body.is_gone(),
        now_ms: cx.clock.mono_ms,
    }
}
