//! `doctor`: finds the causes of late first bytes, and their fixes.
//!
//! The examination is in the crate `lab`; here are the command line, the link to a target of this machine, progress,
//! and the exit status.
//!
//! Source: of our own; docs/doctor.md.

mod files;
mod network;
mod source;
mod trials;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::TypedValueParser;
use lab::client::Url;
use lab::doctor::{Diagnosis, REQUESTS_MAX, Severity};
use lab::report::doctor::{html, text};

use super::condition::FailOn;
use super::files::written;
use super::output::{all, fail, json};
use super::status::{CONDITION, FAILED, INTERRUPTED};
use super::values::{Spoken, positive, protocols, whole};
use crate::stdout;
use crate::terminal::fitted;
use source::Source;

/// find the causes of a late first byte, and how to fix them
///
/// Examines a server with a few hundred requests and reports the causes of a late first byte, the most costly first. Each
/// finding has its evidence, the directive that fixes it and the command to test it again. Files written below --docroot are
/// removed at the end. docs/doctor.md explains the findings.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// The page to examine
    #[arg(value_name = "URL", value_parser = Url::parse, required_unless_present = "file")]
    url: Option<Url>,
    /// Analyze a packet capture instead: pcap or pcapng, from any point between client and server
    #[arg(long, value_name = "FILE", group = "file", conflicts_with = "url")]
    pcap: Option<PathBuf>,
    /// The keys of the capture's connections, as browsers and curl write them (SSLKEYLOGFILE)
    #[arg(long, value_name = "FILE", requires = "pcap", conflicts_with_all = ["url", "har", "conf"])]
    keylog: Option<PathBuf>,
    /// Analyze a page instead: a HAR file of a browser or of the verb waterfall
    #[arg(long, value_name = "FILE", group = "file", conflicts_with = "url")]
    har: Option<PathBuf>,
    /// Analyze a configuration instead, without traffic
    #[arg(
        short = 'c',
        value_name = "filename",
        group = "file",
        conflicts_with = "url"
    )]
    conf: Option<PathBuf>,
    /// Another URL of the same server, with a response of another size; may be repeated
    #[arg(long = "url", value_name = "URL", value_parser = Url::parse)]
    more: Vec<Url>,
    /// A page of the same server whose application flushes its beginning early; may be repeated
    #[arg(long = "flush", value_name = "URL", value_parser = Url::parse)]
    flushed: Vec<Url>,
    /// The directory that the URL's own is served from: files of many sizes are written there, and removed
    #[arg(long, value_name = "DIR")]
    docroot: Option<PathBuf>,
    /// The protocol; auto lets TLS choose of h2 and h1
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = protocols())]
    protocol: Spoken,
    /// Trusted CA certificates, PEM (those of browsers)
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,
    /// Accept any certificate
    #[arg(long, short = 'k')]
    insecure: bool,
    /// Change settings of this machine's kernel for a while, one after the other, to see what they cost, and restore them; needs
    /// root, and a target on this machine
    #[arg(long = "try", conflicts_with = "file")]
    tries: bool,
    /// Maximum number of requests
    #[arg(long = "max-requests", value_name = "N", default_value = "400",
          value_parser = |text: &str| whole::<u32>(text, 1..=u64::from(REQUESTS_MAX)))]
    requests_max: u32,
    /// Time limit of a connection or a response
    #[arg(long = "timeout", value_name = "SECONDS", default_value = "30", value_parser = positive)]
    timeout_s: f64,
    /// End with status 2 if there is a finding of this level or above
    #[arg(long = "fail-on", value_name = "LEVEL", default_value = "bad", value_parser = levels())]
    fail_on: FailOn<Severity>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// Write the findings as a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Levels of findings, for options.
fn levels() -> impl TypedValueParser<Value = FailOn<Severity>> {
    FailOn::parser([
        ("note", Severity::Note),
        ("warn", Severity::Warn),
        ("bad", Severity::Bad),
    ])
}

/// Runs the verb.
pub(super) fn run(options: &Options) -> ExitCode {
    match Source::of(options) {
        Ok(Source::Server(plan)) => network::examined(&plan, |result| ended(options, result)),
        Ok(Source::Capture(path)) => {
            judged(options, files::capture(&path, options.keylog.as_deref()))
        }
        Ok(Source::Archive(path)) => judged(options, files::archive(&path)),
        Ok(Source::Configuration(path)) => configured(options, &path),
        Err(why) => fail(NAME, &why),
    }
}

/// Prints the diagnosis of a file; returns the exit status.
fn judged(options: &Options, result: Result<Diagnosis, String>) -> ExitCode {
    ExitCode::from(ended(options, result.map(|diagnosis| (diagnosis, false))))
}

/// Reports why a configuration does not load, as `-t` does, then the findings of its text. Returns the exit status.
fn configured(options: &Options, path: &Path) -> ExitCode {
    let loads = files::loads(path);
    if !loads {
        let _ = fail(NAME, "the configuration does not load");
    }
    match files::configuration(path) {
        Some(diagnosis) if loads => judged(options, Ok(diagnosis)),
        Some(diagnosis) => {
            judged(options, Ok(diagnosis));
            ExitCode::from(FAILED)
        }
        None => ExitCode::from(FAILED),
    }
}

/// Prints the diagnosis or the error; returns the exit status.
fn ended(options: &Options, result: Result<(Diagnosis, bool), String>) -> u8 {
    let (diagnosis, interrupted) = match result {
        Ok(ended) => ended,
        Err(why) => {
            let _ = fail(NAME, &why);
            return FAILED;
        }
    };
    if let Err(why) = shown(options, &diagnosis) {
        let _ = fail(NAME, &why);
        return FAILED;
    }
    let levels = diagnosis.findings.iter().map(|one| one.severity);
    match (interrupted, options.fail_on.fails(levels)) {
        (true, _) => INTERRUPTED,
        (false, true) => CONDITION,
        (false, false) => 0,
    }
}

/// Prints a diagnosis, and writes the requested page.
fn shown(options: &Options, diagnosis: &Diagnosis) -> Result<(), String> {
    let text = match options.json {
        true => json(diagnosis)?,
        false => fitted(|| text(diagnosis)),
    };
    let printed = stdout::write(&text);
    let page = written(&options.html, || Ok(html(diagnosis)));
    all([printed, page])
}

/// The verb.
const NAME: &str = "doctor";

#[cfg(test)]
mod tests {
    use lab::client::Protocol;

    use super::*;
    use crate::cli::values::parsed;

    #[test]
    fn the_command_line_is_read() {
        let options: Options =
            parsed("https://h/ --protocol spdy --docroot / --url https://h/a -k")
                .expect("it is one");
        let Ok(Source::Server(plan)) = Source::of(&options) else {
            panic!("a server");
        };
        assert_eq!(plan.protocol, Some(Protocol::Spdy));
        assert_eq!(plan.requests_max, lab::doctor::REQUESTS);
        assert_eq!(plan.urls().count(), 2);
    }

    #[test]
    fn files_stand_in_place_of_a_url() {
        for (line, expected) in [
            ("--pcap f", Source::Capture("f".into())),
            ("--har f --json", Source::Archive("f".into())),
            ("-c f", Source::Configuration("f".into())),
        ] {
            let options: Options = parsed(line).expect("it is one");
            let source = Source::of(&options).expect("a file");
            assert_eq!(format!("{source:?}"), format!("{expected:?}"));
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for (line, why) in [
            ("", "URL"),
            ("ftp://h/", "unknown scheme"),
            ("http://h/ --max-requests 0", "0 is not in"),
            ("http://h/ --max-requests 100001", "100001 is not in"),
            ("http://h/ --timeout 0", "positive"),
            (
                "http://h/ --fail-on worse",
                "[possible values: note, warn, bad, never]",
            ),
            ("http://h/ -k --cacert f", "cannot be used"),
            ("http://h/ --pcap f", "cannot be used"),
            ("--har f --pcap g", "cannot be used"),
            ("-c f --har g", "cannot be used"),
            ("http://h/ --keylog f", "cannot be used"),
            ("--har f --keylog g", "cannot be used"),
            ("--keylog g", "URL"),
        ] {
            let error = parsed::<Options>(line).expect_err(line);
            assert!(error.contains(why), "{line}: {error}");
        }
        for (line, why) in [
            ("http://h/ --url http://i/", "another server"),
            ("http://h/ --flush https://h/", "another server"),
            ("http://h/ --docroot /no/such/directory", "not a directory"),
        ] {
            let options: Options = parsed(line).expect("clap takes it");
            let error = Source::of(&options).expect_err(line);
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}
