//! Requests that other servers answer: shared by `proxy_pass` and its kin.
//!
//! An exchange that is passed on keeps an [`Upstream`]: which servers were tried, and the response so far. [`handle`]
//! is the content handler; run again after each wait, it goes on with the step it is at. The specifics of a protocol
//! are in its [`Gateway`]. Sockets are the business of a [`Connector`](server_upstream::connector::Connector).
//!
//! ```text
//! body      the request body is collected, or left to be passed on as it comes
//! choose    a server is chosen, the request is made, an attempt begins
//! head      its response head comes; a failure leads to the next server (tries, next)
//! answer    redirects (accel), error pages, or fields and body of the response (fields)
//! arrival   while the response is pulled: what comes of it (response_buffer), what comes of the request
//! ```
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `ngx_http_proxy_module`.

mod accel;
mod answer;
mod arrival;
mod body;
mod choose;
pub mod conf;
mod directives;
mod fields;
pub mod gateway;
pub mod group;
mod head;
mod next;
mod record;
mod response_buffer;
mod rows;
mod run;
pub mod settings;
mod store;
mod tries;
pub mod types;
pub mod values;
mod variables;
mod wording;

use crate::exchange::{Action, Ctx, Exchange};
use crate::handler::Content;
pub use conf::UpstreamConf;
pub use gateway::{Gateway, Note, Outgoing, Verdict};
pub use record::Upstream;
use run::{Flow, Run, Step, record};
pub use server_upstream::group::Target;
pub use settings::{Defaults, PassesOn, UpstreamSettings};
pub use variables::VARIABLES;

/// Passes the request on, or goes on with that.
pub fn handle(x: &mut Exchange, cx: &mut Ctx<'_>, gateway: &'static dyn Gateway) -> Content {
    let mut run = match Run::take(x) {
        Some(run) if !matches!(run.step, Step::Answered) => run,
        _ => match gateway.target(x, cx) {
            Ok(target) => {
                record(x).begin_pass();
                Run::begin(x, gateway, target)
            }
            Err(status) => return Content::Status(status),
        },
    };
    loop {
        let step = std::mem::replace(&mut run.step, Step::Answered);
        let flow = match step {
            Step::Body => body::step(&mut run, x, cx),
            Step::Choose => choose::step(&mut run, x, cx),
            Step::Again => choose::again(&mut run, x, cx),
            Step::Head(attempt) => head::step(&mut run, x, cx, attempt),
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
                if content == Content::Sent {
                    run.keep(x);
                } else {
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
