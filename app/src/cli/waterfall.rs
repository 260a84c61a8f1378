//! `waterfall`: a page's resources on a time axis, as a browser or the clients of the lab load them, or as a HAR file has them.
//!
//! Visits, their analysis and their pictures are in the crate `lab`; here are the command line, files, the progress bar, the
//! JSON and the exit status.
//!
//! Source: of our own; docs/waterfall.md.

mod evidence;
mod figures;
mod json;
mod measure;
mod options;
mod views;

use std::path::Path;
use std::process::ExitCode;

use lab::page::comparison::{Match, compare};
use lab::page::har;
use lab::report::waterfall;

use super::files::{archive, written};
use super::output::{all, fail, json as pretty};
use super::status::{CONDITION, FAILED, INTERRUPTED};
use crate::stdout;
use crate::terminal::fitted;
use measure::{Failure, measure};
use options::{NAME, Task};
use views::Visits;

pub(super) use options::Options;

/// Runs the verb.
pub(super) fn run(options: &Options) -> ExitCode {
    let ended = |result: Result<(), String>, status: u8| match result {
        Ok(()) => 0,
        Err(why) => {
            let _ = fail(NAME, &why);
            status
        }
    };
    let done = |result| ended(result, FAILED);
    let shown = |visits: &Visits| match show(options, visits) {
        Ok(()) => ended(figures::kept(&options.conditions, visits), CONDITION),
        failed => done(failed),
    };
    ExitCode::from(match options.task() {
        Err(why) => done(Err(why)),
        Ok(Task::Show(file)) => match read(options, &file) {
            Ok(visits) => shown(&visits),
            Err(why) => done(Err(why)),
        },
        Ok(Task::Compare(before, after)) => {
            let both = read(options, &before).and_then(|first| Ok((first, read(options, &after)?)));
            done(both.and_then(|(before, after)| write_comparison(options, &before, &after)))
        }
        Ok(Task::Visit(url)) => measure(options, &url, |visited| match visited {
            Ok(visits) => shown(&visits),
            Err(Failure::Interrupted) => INTERRUPTED,
            Err(Failure::Why(why)) => done(Err(why)),
        }),
    })
}

/// The visits of a HAR file.
fn read(options: &Options, file: &Path) -> Result<Visits, String> {
    let is_file = file.to_string_lossy().contains('/') || file.exists();
    let hint = if is_file {
        ""
    } else {
        " (a URL begins with http:// or https://)"
    };
    let pages = archive(file).map_err(|why| why + hint)?;
    Visits::of_pages(pages, options.page.as_deref())
        .map_err(|why| format!("{}: {why}", file.display()))
}

/// Prints visits and writes the requested files. The report is printed first, so that a failed file does not lose it.
fn show(options: &Options, visits: &Visits) -> Result<(), String> {
    let views = visits.analysed()?;
    let text = match options.json {
        true => pretty(&json::views(&views))?,
        false => fitted(|| waterfall::text(&views)),
    };
    let printed = stdout::write(&text);
    let har = written(&options.har, || Ok(har::write(&visits.all())));
    let page = written(&options.html, || Ok(waterfall::html(&views)));
    let picture = written(&options.svg, || Ok(waterfall::svg(views.first.shown())));
    all([printed, har, page, picture])
}

/// Prints the comparison of two files, and writes its pictures.
fn write_comparison(options: &Options, before: &Visits, after: &Visits) -> Result<(), String> {
    let by = match options.any_host {
        true => Match::Path,
        false => Match::Url,
    };
    let (before, after) = (before.analysed()?.first, after.analysed()?.first);
    let text = match options.json {
        true => {
            let found = compare(&before, &after, by);
            pretty(&json::comparison(&found, &before, &after))?
        }
        false => fitted(|| waterfall::compare::text(&before, &after, by)),
    };
    let printed = stdout::write(&text);
    let page = written(&options.html, || {
        Ok(waterfall::compare::html(&before, &after, by))
    });
    let picture = written(&options.svg, || {
        Ok(waterfall::compare::svg(before.shown(), after.shown(), by))
    });
    all([printed, page, picture])
}
