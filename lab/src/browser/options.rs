//! How a page is visited.

use std::path::PathBuf;
use std::time::Duration;

use crate::client::Url;
use crate::page::View;

/// How a page is visited.
#[derive(Clone, Debug)]
pub struct Options {
    /// The page.
    pub url: String,
    /// Path of the browser or its name in PATH; `None` for an installed Chromium.
    pub browser: Option<PathBuf>,
    /// Whether each cold view is followed by a warm one.
    pub warm: bool,
    /// How many times the page is visited, up to [`RUNS_MAX`].
    pub runs: usize,
    /// Longest time of a view.
    pub timeout: Duration,
    /// After the page's load event, the view ends when nothing has been transferred for so long...
    pub quiet: Duration,
    /// ...or when this has passed.
    pub after_load: Duration,
    /// Accept any certificate. Chromium does not cache responses with an invalid one.
    pub insecure: bool,
    /// A file to which the browser appends the secrets of TLS, as SSLKEYLOGFILE has them; one that it makes anybody may read.
    pub key_log: Option<PathBuf>,
    /// A file that gets the browser's own trace of the last view, JSON for Perfetto and chrome://tracing.
    pub trace: Option<PathBuf>,
    /// Whether to record pictures of the page.
    pub filmstrip: bool,
    /// Whether HTTP/2 is offered.
    pub http2: bool,
}

/// Progress of visits.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Runs that are over, and all.
    pub runs: (usize, usize),
    /// The view that is in progress.
    pub view: View,
    /// How many resources it has until now.
    pub resources: usize,
    /// Time since the beginning.
    pub elapsed: Duration,
}

impl Options {
    /// One cold view of a page.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            browser: None,
            warm: false,
            runs: 1,
            timeout: Duration::from_secs(60),
            quiet: Duration::from_millis(500),
            after_load: Duration::from_secs(5),
            insecure: false,
            key_log: None,
            trace: None,
            filmstrip: false,
            http2: true,
        }
    }

    /// Rejects options that a browser would refuse or interpret differently.
    pub(super) fn check(&self) -> Result<(), String> {
        Url::parse(&self.url)?;
        if self.runs == 0 || self.runs > RUNS_MAX {
            return Err(format!("the number of runs must be 1 to {RUNS_MAX}"));
        }
        Ok(())
    }
}

/// The most runs.
pub const RUNS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(change: impl FnOnce(&mut Options)) -> Result<(), String> {
        let mut options = Options::new("http://localhost/");
        change(&mut options);
        options.check()
    }

    #[test]
    fn limits_are_held() {
        changed(|options| options.runs = RUNS_MAX).expect("at the limit");
        changed(|options| options.runs = RUNS_MAX + 1).expect_err("past it");
        changed(|options| options.runs = 0).expect_err("none");
    }

    #[test]
    fn bad_input_is_refused() {
        for url in ["ftp://h/", "file:///etc/passwd", "localhost", "http://a b/"] {
            changed(|options| options.url = url.to_owned()).expect_err(url);
        }
    }
}
