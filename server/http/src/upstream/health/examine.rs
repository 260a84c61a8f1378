//! The step of a health check behind the response head: it reads the body and decides.
//!
//! The body is read to its end, or up to the limit of a [`Probe`]. No field of the response is acted on, and no filter
//! sees it.

use server_base::errlog::Level;
use server_upstream::picker::Outcome;
use server_upstream::request::{UpstreamEvent, UpstreamRequest};

use super::probe::{Probe, Verdict, fail};
use super::response_test::Tested;
use crate::decision::CLOSE_WITHOUT_RESPONSE;
use crate::exchange::{Ctx, Exchange, State, Wait};
use crate::handler::Content;
use crate::upstream::run::{Flow, Run, Step, record};
use crate::upstream::wording::{Action, log_failure};

/// Reads the body of the response, then decides.
pub(crate) fn step(
    run: &mut Run,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    attempt: UpstreamRequest,
) -> Flow {
    while let Some(event) = attempt.next() {
        match event {
            UpstreamEvent::Data(chunk) => {
                if let Some(last) = record(x).last() {
                    last.body_bytes += chunk.len();
                }
                let probe = x.extensions.get_mut::<Probe>();
                if probe.is_none_or(|probe| probe.add(chunk.bytes())) {
                    return decide(run, x, cx);
                }
            }
            UpstreamEvent::End => return decide(run, x, cx),
            UpstreamEvent::Failed(error) => {
                log_failure(x, &error.failure, Action::Reading);
                return failed(run, x, cx);
            }
            UpstreamEvent::Note(text) => {
                run.note(x, &text, Action::Reading);
            }
            UpstreamEvent::Interim(_)
            | UpstreamEvent::Head(..)
            | UpstreamEvent::Trailers(_)
            | UpstreamEvent::Upgraded => {}
        }
    }
    // A read timeout alone would never end a body that comes byte by byte.
    let timeouts = run.conf(x, &x.route.http).timeouts;
    let most_ms = timeouts.connect_ms.saturating_add(timeouts.send_ms);
    let most_ms = most_ms.saturating_add(timeouts.read_ms);
    let until_ms = attempt.facts().started_ms.saturating_add(most_ms);
    if cx.clock.mono_ms >= until_ms {
        let text = format_args!("upstream timed out (110: Connection timed out)");
        x.log_while(Level::Error, Action::Reading.text(), text);
        return failed(run, x, cx);
    }
    x.progress.state = State::Waiting(Wait::woken_or_until(until_ms));
    Flow::Wait(Step::Examine(attempt))
}

/// The response broke off, or took too long.
fn failed(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Flow {
    fail(x, Action::Reading, cx.clock.mono_ms);
    run.finish_attempt(x, cx, Outcome::Failed, Action::Reading);
    Flow::Done(Content::Status(CLOSE_WITHOUT_RESPONSE))
}

/// Decides by the response.
fn decide(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Flow {
    run.finish_attempt(x, cx, Outcome::Alive, Action::Reading);
    let Some(mut probe) = x.extensions.take::<Probe>() else {
        return Flow::Done(Content::Status(CLOSE_WITHOUT_RESPONSE));
    };
    probe.verdict = Some(verdict(&probe, x, cx));
    x.extensions.push(probe);
    Flow::Done(Content::Status(CLOSE_WITHOUT_RESPONSE))
}

fn verdict(probe: &Probe, x: &mut Exchange, cx: &mut Ctx<'_>) -> Verdict {
    let now_ms = cx.clock.mono_ms;
    let of = |passed, tested: Tested| Verdict {
        passed,
        action: tested.text(),
        at_ms: now_ms,
    };
    let Some(head) = record(x).head.take() else {
        return of(false, Tested::Status);
    };
    let result = match &probe.test {
        Some(test) => test.check(x, &head, &probe.body),
        None if (200..400).contains(&head.status) => Ok(Tested::Status),
        None => Err(Tested::Status),
    };
    record(x).head = Some(head);
    match (result, &probe.test) {
        (Err(tested), _) => of(false, tested),
        (Ok(_), Some(test)) if !test.require.is_empty() => {
            of(test.has_required(x, cx), Tested::Variables)
        }
        (Ok(tested), _) => of(true, tested),
    }
}
