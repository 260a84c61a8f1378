//! `explain`: what becomes of a request, and because of which lines of the configuration.
//!
//! The configuration is loaded as for `-t`, the request is run through the phases that serve (`request`), and what they
//! noted on the way is told with the lines it came from (`steps`). Nothing is listened on, connected to, logged or
//! written. Absent: request bodies, and all that only the running server knows (counters of limits, caches).

mod handshake;
mod listener;
mod options;
mod passed;
mod report;
mod request;
mod sections;
mod steps;
mod text;
mod url;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use driver::worker::config::ThreadConfig;
use engines::http::FieldId;
use server_http::http::Http;

use super::long::Asked;
use crate::console::Console;
use crate::paths::Paths;
use crate::{load, supervisor};
use options::Options;
use report::{Report, Request};
use steps::{Teller, shown};

/// Runs the tool with the words after its name.
pub(super) fn run(words: &[OsString]) -> ExitCode {
    let options = match options::parse(words) {
        Ok(Asked::Help) => return super::help(HELP),
        Ok(Asked::Work(options)) => options,
        Err(why) => return super::misused(NAME, &why),
    };
    let console = Console::of_tool();
    let paths = Paths::new(&options.place);
    let (cycle, written) = match load::for_tool(&paths.load_options(&options.place)) {
        Ok(loaded) => loaded,
        Err(refused) => {
            console.refused(&refused);
            return super::fail(NAME, "the configuration has an error");
        }
    };
    console.warnings(&cycle.warnings);
    let Some(http) = &cycle.http else {
        return super::fail(NAME, "the configuration serves no HTTP");
    };
    if supervisor::take_on_user(&cycle.main, &console).is_err() {
        return super::fail(NAME, "files cannot be looked at as the worker would");
    }
    let teller = Teller {
        http,
        written: &written,
        files: &cycle.files,
    };
    match explain(&options, http, &teller) {
        Err(why) => super::fail(NAME, &why),
        Ok(report) if options.json => match serde_json::to_string_pretty(&report) {
            Ok(json) => super::print(&(json + "\n")),
            Err(error) => super::fail(NAME, &error.to_string()),
        },
        Ok(report) => super::print(&text::render(&report)),
    }
}

fn explain(options: &Options, http: &Arc<Http>, teller: &Teller<'_>) -> Result<Report, String> {
    let taken = listener::choose(http, &options.url.destination, options.to)?;
    let config = ThreadConfig::new(Arc::clone(http), 1);
    let run = request::run(options, &config, &taken)?;
    let host = run.x.head.field(FieldId::Host).unwrap_or_default();
    Ok(Report {
        request: Request {
            method: options.method.clone(),
            target: options.url.target.clone(),
            host: shown(host),
            from: run.x.proxy.unwrap_or(run.x.client.peer).to_string(),
        },
        listener: sections::listener_of(&run, taken, teller),
        handshake: handshake::report(&run.greeting, teller),
        server: sections::server_of(&run, teller),
        steps: teller.steps(&run.events),
        passed: run.passed.report(http, teller.url_behind(run.x.location)),
        answer: sections::answer_of(&run),
        location: teller.level(run.x.location),
        settings: teller.settings(run.x.location, options.all),
    })
}

/// The tool's name.
const NAME: &str = "explain";

const HELP: &str = "\
Usage: firstbyte explain URL [-c filename] [-p prefix] [-g directives] [-e filename]
                 [-H 'Name: value'] [--method NAME] [--from ADDRESS] [--to ADDRESS]
                 [--all] [--json]

Says what becomes of a request to URL under a configuration, and which lines make it so:
the server, the search for a location, each step through the phases, the answer, and the
settings in effect. Nothing is listened on, connected to or written.

  URL             : http[s]://host[:port]/path, or http[s]://unix:/path/of/socket:/path
  -c, -p, -g, -e  : which configuration, as for serving
  -H 'Name: value': a field of the request; may be repeated
  --method NAME   : its method (default: GET)
  --from ADDRESS  : the client, with or without a port, or unix: (default: 127.0.0.1)
  --to ADDRESS    : the address it is sent to, where the name does not say which
  --all           : settings at their default, too
  --json          : JSON instead of text
";
