//! The command line of `waterfall`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lab::browser::RUNS_MAX;
use lab::client::{Protocol, Url};
use link::Spec;

use super::figures;
use crate::cli::condition::Condition;
use crate::cli::values::{Spoken, count, positive, protocols};

/// draw how a page loads: its requests on a time axis, and their waits
///
/// Visits a page with Chromium or with the built-in clients, or reads a HAR file of any browser, and draws the requests on a
/// time axis, with the parts of each wait, stalls, connections and the staircase score. "waterfall compare BEFORE.har
/// AFTER.har" draws two files on one axis and compares them. docs/waterfall.md explains the figures.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The page's URL, or a HAR file; or the word compare and two HAR files
    #[arg(value_name = "URL|FILE", required = true)]
    pub(super) targets: Vec<OsString>,
    /// Visit with the built-in clients, which run no scripts and paint nothing
    #[arg(long)]
    pub(super) wire: bool,
    /// The protocol; auto lets TLS choose of h2 and h1. Browsers use h2 over TLS only
    #[arg(long, value_name = "NAME", value_parser = protocols())]
    pub(super) protocol: Option<Spoken>,
    /// Visits of the page; the median visit is drawn (1)
    #[arg(long, value_name = "N", value_parser = count::<RUNS_MAX>)]
    pub(super) runs: Option<usize>,
    /// Visit the page again with warm caches
    #[arg(long)]
    pub(super) warm: bool,
    /// Time limit of a view (60)
    #[arg(long = "timeout", value_name = "SECONDS", value_parser = positive)]
    pub(super) timeout_s: Option<f64>,
    /// Accept any certificate
    #[arg(long, short = 'k')]
    pub(super) insecure: bool,
    /// Trusted CA certificates of the built-in clients, PEM (those of browsers)
    #[arg(
        long,
        value_name = "FILE",
        requires = "wire",
        conflicts_with = "insecure"
    )]
    pub(super) cacert: Option<PathBuf>,
    /// The browser (Chromium or Chrome, found automatically)
    #[arg(long, value_name = "PATH", conflicts_with = "wire")]
    pub(super) browser: Option<PathBuf>,
    /// Visit through an emulated link, such as 50ms,20mbit; see `firstbyte via -h`
    #[arg(long, value_name = "SPEC")]
    pub(super) via: Option<Spec>,
    /// Write packets to FILE as they leave the link (0ms, without --via), and TLS secrets to FILE.keys
    #[arg(long, value_name = "FILE")]
    pub(super) pcap: Option<PathBuf>,
    /// The page of a HAR file, by its name or its number (the first one, with others of its URL as further runs)
    #[arg(long, value_name = "PAGE")]
    pub(super) page: Option<String>,
    /// Compare resources by path, ignoring their hosts
    #[arg(long)]
    pub(super) any_host: bool,
    /// End with status 2 if this holds: "load>2000", "requests>50", "bytes>1e6", "status.404>0"; may be repeated
    #[arg(long = "fail-if", value_name = "CONDITION", value_parser = figures::condition)]
    pub(super) conditions: Vec<Condition>,
    /// Print the figures as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Write the visits as a HAR file
    #[arg(long, value_name = "FILE")]
    pub(super) har: Option<PathBuf>,
    /// Write the waterfall as a self-contained page
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Write the waterfall as a picture
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

/// The task of the verb.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// A page is visited.
    Visit(Url),
    /// A HAR file is shown.
    Show(PathBuf),
    /// Two HAR files are compared.
    Compare(PathBuf, PathBuf),
}

impl Options {
    /// The task, after checks that involve several options.
    ///
    /// # Errors
    /// Targets that are too many or too few, or options of another task.
    pub(super) fn task(&self) -> Result<Task, String> {
        let task = match &self.targets[..] {
            [word, before, after] if word == COMPARE => Task::Compare(before.into(), after.into()),
            [word, ..] if word == COMPARE => {
                return Err("compare requires two HAR files, before and after".to_owned());
            }
            [target] => match target.to_str().filter(|text| text.contains("://")) {
                Some(url) => Task::Visit(Url::parse(url)?),
                None => Task::Show(target.into()),
            },
            _ => {
                let why = "specify one URL or HAR file; compare two HAR files with \"compare BEFORE.har AFTER.har\"";
                return Err(why.to_owned());
            }
        };
        self.check(&task).map(|()| task)
    }

    /// Refuses options that mean nothing for a task.
    fn check(&self, task: &Task) -> Result<(), String> {
        let of_visits = [
            ("--wire", self.wire),
            ("--protocol", self.protocol.is_some()),
            ("--runs", self.runs.is_some()),
            ("--warm", self.warm),
            ("--timeout", self.timeout_s.is_some()),
            ("--insecure", self.insecure),
            ("--browser", self.browser.is_some()),
            ("--via", self.via.is_some()),
            ("--pcap", self.pcap.is_some()),
        ];
        let given = |options: &[(&'static str, bool)]| {
            let mut options = options.iter().filter(|(_, given)| *given);
            options.next().map(|(name, _)| *name)
        };
        let why = match task {
            Task::Visit(url) => {
                let of_files = [
                    ("--page", self.page.is_some()),
                    ("--any-host", self.any_host),
                ];
                given(&of_files)
                    .map(|name| format!("{name} is for HAR files only"))
                    .or_else(|| self.unspoken(url))
            }
            Task::Show(_) | Task::Compare(..) if given(&of_visits).is_some() => {
                given(&of_visits).map(|name| format!("{name} is for URLs only"))
            }
            Task::Show(_) => self
                .any_host
                .then(|| "--any-host is for comparisons only".to_owned()),
            Task::Compare(..) => {
                let har = self.har.is_some();
                let budget = !self.conditions.is_empty();
                let har = har.then(|| "--har cannot be used in a comparison".to_owned());
                har.or_else(|| {
                    budget.then(|| "--fail-if cannot be used in a comparison".to_owned())
                })
            }
        };
        why.map_or(Ok(()), Err)
    }

    /// Returns why a browser cannot use the requested protocol.
    fn unspoken(&self, url: &Url) -> Option<String> {
        // A browser cannot be kept from HTTP/1.1 either, if a server offers nothing else. The report has the protocol
        // in use.
        match self.protocol? {
            _ if self.wire => None,
            Some(Protocol::H1) | None => None,
            Some(Protocol::H2) if url.tls => None,
            Some(Protocol::H2) => {
                Some("browsers use h2 over TLS only: use https or --wire".to_owned())
            }
            Some(_) => Some("no current browser supports this protocol: use --wire".to_owned()),
        }
    }

    /// How many times the page is visited.
    pub(super) fn runs(&self) -> usize {
        self.runs.unwrap_or(1)
    }

    /// Longest time of a view.
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout_s.unwrap_or(TIMEOUT_S).min(TIMEOUT_MAX_S))
    }
}

/// The first word of a comparison; a file of that name is `./compare`.
const COMPARE: &str = "compare";
/// Longest time of a view, seconds.
const TIMEOUT_S: f64 = 60.0;
/// More is as good as for ever: a day.
const TIMEOUT_MAX_S: f64 = 86_400.0;

/// The verb.
pub(super) const NAME: &str = "waterfall";

#[cfg(test)]
mod tests {
    use super::*;

    fn task(line: &str) -> Result<Task, String> {
        let options: Options = crate::cli::values::parsed(line)?;
        options.task()
    }

    #[test]
    fn targets_are_urls_files_or_two_files() {
        let url = Url::parse("https://h/").expect("a URL");
        assert_eq!(
            task("https://h/ --runs 5 --via 50ms -k"),
            Ok(Task::Visit(url))
        );
        assert_eq!(task("a.har --page 2"), Ok(Task::Show("a.har".into())));
        let both = Task::Compare("a".into(), "b".into());
        assert_eq!(task("compare a b --any-host"), Ok(both));
        assert_eq!(task("./compare"), Ok(Task::Show("./compare".into())));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, why) in [
            ("", "<URL|FILE>"),
            ("gopher://h/", "unknown scheme \"gopher\""),
            ("a b", "specify one URL or HAR file"),
            ("compare a", "compare requires two HAR files"),
            ("a.har --runs 2", "--runs is for URLs only"),
            ("compare a b --warm", "--warm is for URLs only"),
            ("a.har --via 50ms", "--via is for URLs"),
            ("a.har --wire", "--wire is for URLs"),
            ("a.har --protocol h2", "--protocol is for URLs"),
            (
                "https://h/ --protocol spdy",
                "no current browser supports this protocol: use --wire",
            ),
            (
                "http://h/ --protocol h2",
                "browsers use h2 over TLS only: use https or --wire",
            ),
            ("http://h/ --cacert c", "--wire"),
            ("http://h/ --wire --cacert c -k", "cannot be used with"),
            ("http://h/ --wire --browser c", "cannot be used with"),
            (
                "http://h/ --wire --protocol h3",
                "[possible values: auto, h1, h2, spdy]",
            ),
            ("http://h/ --page 1", "--page is for HAR files"),
            ("http://h/ --any-host", "--any-host is for HAR files"),
            ("a.har --any-host", "--any-host is for comparisons only"),
            (
                "compare a b --har c",
                "--har cannot be used in a comparison",
            ),
            (
                "compare a b --fail-if load>1",
                "--fail-if cannot be used in a comparison",
            ),
            (
                "http://h/ --fail-if load",
                "expected one such as \"load>500\"",
            ),
            (
                "http://h/ --fail-if p99>1",
                "expected one of first_byte, first_paint",
            ),
            ("http://h/ --runs 0", "not a number from 1 to 100"),
            ("http://h/ --runs 101", "not a number from 1 to 100"),
            ("http://h/ --timeout 0", "not a positive number"),
            ("http://h/ --via 50", "\"50\" at character 1: "),
        ] {
            let told = task(line).map(|_| ()).expect_err("it is refused");
            assert!(told.contains(why), "{line}: {told}");
        }
        assert!(task("http://h/ --runs 100").is_ok());
    }
}
