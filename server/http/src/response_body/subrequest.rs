//! Running subrequests, and subrequests for their heads alone.

use crate::exchange::subrequest::{TooMany, open};
use crate::exchange::{Answer, Ctx, Exchange, State, Wait};
use crate::phases;

impl Exchange {
    /// Makes a subrequest for its head alone, or continues it: for a handler that waits for it in its phase.
    pub fn ask(&mut self, cx: &mut Ctx<'_>, uri: &[u8], args: &[u8]) -> Answer {
        let mut child = match self.subrequests.awaited.take() {
            Some(child) => child,
            None => match open(self, cx, uri, args) {
                Ok(child) => child,
                Err(TooMany) => {
                    self.progress.state = State::Aborted;
                    return Answer::None;
                }
            },
        };
        self.with_parent_state(&mut child, |child| resume(child, cx));
        match child.progress.state {
            State::Running | State::Waiting(_) => {
                self.progress.state = match child.progress.state {
                    // The child shares the wake key of this exchange, so its wakes give this exchange a turn.
                    waits @ State::Waiting(_) => waits,
                    _ => State::Waiting(Wait::woken()),
                };
                self.subrequests.awaited = Some(child);
                Answer::Wait
            }
            State::Responding => {
                self.with_parent_state(&mut child, |child| phases::log_subrequest(child, cx));
                Answer::Head(child)
            }
            State::Aborted => {
                self.reply.status = child.reply.status;
                self.progress.keep_alive = false;
                self.progress.state = State::Aborted;
                Answer::None
            }
        }
    }
}

/// Runs a subrequest, unless it waits.
pub(super) fn resume(child: &mut Exchange, cx: &mut Ctx<'_>) {
    match child.progress.state {
        State::Running => phases::run(child, cx),
        State::Waiting(_) if child.is_due(cx.clock.mono_ms) => phases::resume(child, cx),
        _ => {}
    }
}

#[cfg(test)]
#[path = "subrequest_tests.rs"]
mod tests;
