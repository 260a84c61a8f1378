//! Visits: runs, each with a browser of its own for each view.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use sys::os_error;

use super::devtools::{Devtools, Progress};
use super::options::{Options, Step};
use super::process::{Process, is_root};
use super::profile::Profile;
use super::vendor::PageHosts;
use super::{find, flags, view};
use crate::page::{View, Visit};

/// The views of one profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The view with a new profile.
    pub cold: Visit,
    /// The second view in the same profile, if requested.
    pub warm: Option<Visit>,
}

/// Visits a page, and returns a run for each of [`Options::runs`].
///
/// `progress` is called several times a second and ends the visits by returning false. When the function returns, no
/// process of the browser and no file of a profile remains. If the calling thread ends earlier, the kernel kills the
/// browser.
///
/// # Errors
/// A sentence: there is no browser, it does not start, it crashes, the page has no response, or `interrupted`.
/// An incomplete page is a visit with errors in its resources and notes.
pub fn visits(options: &Options, progress: &mut Progress<'_>) -> Result<Vec<Run>, String> {
    options.check()?;
    let program = find(options.browser.as_deref())?;
    let mut runs = Vec::new();
    let mut changes = 0;
    let mut hosts = PageHosts::of(&options.url);
    while runs.len() < options.runs {
        match run(options, &hosts, &program, runs.len(), progress) {
            // Changes of network devices end all requests. Such a run does not measure the page.
            Err(why) if why.contains(NETWORK_CHANGED) && changes < CHANGES_MAX => changes += 1,
            // The number of hosts has a limit, and so has the number of such visits.
            Err(why) if hosts.learn_from_error(&why) => {}
            Err(why) => return Err(why),
            Ok(run) if run.views().any(|view| hosts.learn(&view.resources)) => {}
            Ok(run) => runs.push(run),
        }
    }
    Ok(runs)
}

impl Run {
    fn views(&self) -> impl Iterator<Item = &Visit> {
        [&self.cold].into_iter().chain(&self.warm)
    }
}

/// The views of a new profile.
fn run(
    options: &Options,
    hosts: &PageHosts,
    program: &Path,
    number: usize,
    progress: &mut Progress<'_>,
) -> Result<Run, String> {
    let made = Profile::create(flags::PREFERENCES);
    let profile = made.map_err(|error| format!("cannot make a profile: {}", os_error(&error)))?;
    let mut visit = |of| {
        let step = Step {
            runs: (number, options.runs),
            view: of,
            resources: 0,
            elapsed: Duration::ZERO,
        };
        let started = Process::start(program, options, hosts, &profile);
        let (mut process, pipe) = started
            .map_err(|error| format!("cannot start {}: {}", program.display(), os_error(&error)))?;
        let mut devtools = Devtools::new(pipe, progress, step);
        let visit = view::visit(&mut devtools, options, program)?;
        // A normal exit writes the caches; a killed browser leaves them unchanged.
        let closed = devtools.post(None, "Browser.close", &json!({}));
        process.end(closed.map_or(Duration::ZERO, |_| CLOSING_MAX));
        let errors = visit.resources.iter().filter_map(|one| one.error.as_ref());
        match errors.into_iter().find(|why| why.contains(NETWORK_CHANGED)) {
            Some(why) => Err(format!("{}: {why}", options.url)),
            None => Ok(with_notes(visit, options, hosts)),
        }
    };
    let cold = visit(View::Cold)?;
    let warm = options.warm.then(|| visit(View::Warm)).transpose()?;
    Ok(Run { cold, warm })
}

/// Adds notes about effects of the browser's options.
fn with_notes(mut visit: Visit, options: &Options, hosts: &PageHosts) -> Visit {
    let mut note = |text: &str| visit.notes.push(text.to_owned());
    if is_root() {
        note("the browser ran as root and therefore without its sandbox (--no-sandbox)");
    }
    if options.insecure {
        note(
            "certificates were not verified; the browser does not cache responses with an invalid one",
        );
    }
    visit.notes.extend(hosts.note());
    visit
}

/// The browser's error of requests that it aborted because a network device of this machine appeared or disappeared.
const NETWORK_CHANGED: &str = "ERR_NETWORK_CHANGED";
/// How many runs are made again for it.
const CHANGES_MAX: usize = 5;
/// Longest wait for the browser to exit after the command to close.
const CLOSING_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(change: impl FnOnce(&mut Options)) -> String {
        let mut options = Options::new("http://127.0.0.1:9/");
        change(&mut options);
        visits(&options, &mut |_| true).expect_err("no browser")
    }

    #[test]
    fn programs_that_are_no_browsers_are_told() {
        let why = failure(|options| options.browser = Some("/nonexistent/x".into()));
        assert_eq!(why, "/nonexistent/x is not an executable file");
        let why = failure(|options| options.browser = Some("true".into()));
        assert_eq!(why, "the browser has exited");
        let why = failure(|options| options.browser = Some("ls".into()));
        assert!(why.starts_with("the browser has exited: "), "{why}");
        assert!(why.contains("ls"), "{why}");
    }

    #[test]
    fn bad_options_are_told_before_a_browser_is_started() {
        let why = failure(|options| options.url = "ftp://h/".to_owned());
        assert!(why.contains("unknown scheme"), "{why}");
    }
}
