//! Implementation of `explain`: runs a request through the phases that serve (`request`), and reports the recorded
//! steps with the configuration lines that decided them (`steps`).
//!
//! Absent: the command line (`crate::cli`), request bodies, and all that only the running server knows (counters of limits,
//! caches).

mod handshake;
mod listener;
mod passed;
mod report;
mod request;
mod sections;
mod steps;
mod text;
mod url;

use std::sync::Arc;

use conf::Files;
use driver::worker::thread_config::ThreadConfig;
use engines::http::FieldId;
use server_http::DirectiveLocations;
use server_http::http::Http;

use report::{Report, Request};
use steps::{Teller, lossy_text};

pub(crate) use request::{CLIENT_PORT, ExplainRequest};
pub(crate) use text::render;
pub(crate) use url::Url;

/// Runs a request through a configuration.
///
/// # Errors
/// No socket listens for the request.
pub(crate) fn explain(
    asked: &ExplainRequest<'_>,
    http: &Arc<Http>,
    written: &DirectiveLocations,
    files: &Files,
) -> Result<Report, String> {
    let teller = &Teller {
        http,
        written,
        files,
    };
    let taken = listener::choose(http, &asked.url.destination, asked.to)?;
    let config = ThreadConfig::new(Arc::clone(http), 1);
    let run = request::run(asked, &config, &taken)?;
    let host = run.x.head.field(FieldId::Host).unwrap_or_default();
    let steps = teller.steps(&run.events);
    Ok(Report {
        request: Request {
            method: asked.method.to_owned(),
            target: asked.url.target.clone(),
            host: lossy_text(host),
            from: run.x.proxy.unwrap_or(run.x.client.peer).to_string(),
        },
        listener: sections::listener_of(&run, taken, teller),
        handshake: handshake::report(&run.greeting, teller),
        server: sections::server_of(&run, teller),
        passed: run.passed.report(teller, run.x.route.location),
        answer: sections::answer_of(&run, &steps),
        steps,
        location: teller.level(run.x.route.location),
        settings: teller.settings(run.x.route.location, asked.all),
    })
}
