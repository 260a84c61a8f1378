//! Requests that other servers answer: shared by `proxy_pass` and its kin.
//!
//! An exchange that is passed on keeps an [`Upstream`](crate::exchange::Upstream): the servers that were tried, and
//! the response so far. [`handle`] is the content handler; run again after each wait, it resumes its current step.
//! The specifics of a protocol are in its [`Gateway`]. Sockets belong to a
//! [`Connector`](server_upstream::connector::Connector).
//!
//! ```text
//! body      the request body is collected, or left to be passed on while it is received
//! choose    a server is chosen, the request is made, an attempt begins
//! head      its response head comes; a failure leads to the next server (tries, next), perhaps after a delay
//! examine   a health check reads the body and decides (health)
//! answer    redirects (accel), error pages, or fields and body of the response (fields)
//! look      a stored response is looked for, sent or validated (cache)
//! arrival   while the response is pulled: events of the server (response_buffer), pieces of the request body
//! ```
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `ngx_http_proxy_module`.

mod accel;
mod answer;
mod arrival;
pub mod assign;
mod body;
mod cache;
mod choose;
pub mod conf;
pub mod directives;
mod fields;
pub mod gateway;
pub mod group;
mod head;
pub mod health;
mod next;
mod ntlm;
mod response_buffer;
pub mod retry_directives;
mod run;
pub mod settings;
pub mod sticky;
mod store;
mod tries;
mod variables;
mod wording;

use crate::decision::Content;
use crate::exchange::upstream::Pass;
use crate::exchange::{Action, Ctx, Exchange};
pub use conf::UpstreamConf;
pub use gateway::{Gateway, Note, Outgoing, Verdict, is_of_client_cache};
use health::{examine, probe};
use run::{Flow, Run, Step, record};
pub use server_upstream::group::Target;
pub use settings::{Defaults, PassesOn, UpstreamSettings};
pub use variables::VARIABLES;

/// Passes the request on, or goes on with that.
pub fn handle(x: &mut Exchange, cx: &mut Ctx<'_>, gateway: &'static dyn Gateway) -> Content {
    let is_check = x.is_health_check();
    let content = pass_on(x, cx, gateway);
    match is_check {
        true => probe::close(content),
        false => content,
    }
}

#[inline]
fn pass_on(x: &mut Exchange, cx: &mut Ctx<'_>, gateway: &'static dyn Gateway) -> Content {
    let upstream = x.upstream.as_mut();
    match upstream.and_then(|upstream| upstream.pass.take()) {
        Some(pass) if pass.is_open() => return pass.resume(x, cx),
        Some(mut pass) => {
            pass.close(x, cx);
            pass.end();
        }
        None => {}
    }
    match gateway.target(x, cx) {
        Ok(target) => {
            record(x).begin_pass();
            steps(Run::begin(x, cx, gateway, target), x, cx)
        }
        Err(status) => Content::Status(status),
    }
}

impl Pass for Run {
    fn is_open(&self) -> bool {
        !matches!(self.step, Step::Answered)
    }

    fn resume(self: Box<Self>, x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
        steps(self, x, cx)
    }

    fn arrived(&mut self, x: &mut Exchange, cx: &mut Ctx<'_>) {
        arrival::take(self, x, cx);
    }

    fn close(&mut self, x: &mut Exchange, cx: &mut Ctx<'_>) {
        if !cache::update::continue_fill(self, x, cx) {
            self.learn_from_end(x, cx);
            self.cut_attempt(x, cx);
        }
    }

    fn is_storing(&self) -> bool {
        self.storing.is_some() || self.filling.is_some()
    }

    fn end(self: Box<Self>) {
        self.recycle();
    }
}

/// Runs the steps of a pass until it waits or is over.
fn steps(mut run: Box<Run>, x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    loop {
        let step = std::mem::replace(&mut run.step, Step::Answered);
        let flow = match step {
            Step::Body => body::step(&mut run, x, cx),
            Step::Look => cache::look::step(&mut run, x, cx),
            Step::Stored(result) => cache::serve::step(&mut run, x, cx, result),
            Step::Choose => choose::step(&mut run, x, cx),
            Step::Again => choose::again(&mut run, x, cx),
            Step::Same => choose::same(&mut run, x, cx),
            Step::Delay(until_ms, then) => next::wait(x, cx, until_ms, then),
            Step::Head(attempt) => head::step(&mut run, x, cx, attempt),
            Step::Examine(attempt) => examine::step(&mut run, x, cx, attempt),
            Step::Answered => return Content::Status(500),
        };
        match flow {
            Flow::Next(step) => run.step = step,
            Flow::Wait(step) => {
                run.step = step;
                run.keep(x);
                return Content::Wait;
            }
            Flow::Done(content) => {
                match content {
                    Content::Status(status) => cache::store::fail(&mut run, x, cx, status),
                    Content::Restart => cache::store::redirected(&mut run),
                    Content::Sent | Content::Declined | Content::Wait => {}
                }
                if let Content::Status(_) = content
                    && let Some(binding) = &mut run.binding
                {
                    binding.set_cookie(x);
                }
                if content == Content::Sent {
                    run.keep(x);
                } else {
                    // Nothing of it goes on; most attempts have ended before.
                    run.cut_attempt(x, cx);
                    run.recycle();
                    x.body.on_arrival = None;
                    x.progress.ignore_abort = false;
                }
                if let Content::Status(_) = content {
                    x.progress.action = Action::SendingToClient;
                }
                return content;
            }
        }
    }
}

#[cfg(test)]
mod tests;
