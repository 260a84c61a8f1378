//! Follows logs until the caller ends it.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use super::feed::Feed;
use super::parsers::{Parsers, Tallies};
use super::report::{Event, Progress, Report, Watch};
use super::rotated::is_rotated_behind;
use super::source::is_compressed;
use super::stream::{Step, Stream};
use super::tail::{Held, Tail};
use super::{Input, Job};

/// A followed log.
enum Followed {
    /// A file, read on after its end.
    Tail(Box<Tail>),
    /// A pipe, or a compressed file. It is dropped at its end.
    Stream(Box<Stream>),
    Ended,
}

/// Follows the logs of a job until `watch` returns false, or all of them are pipes that have ended.
///
/// # Errors
/// A log cannot be read, or its format is unknown.
pub(super) fn follow(
    job: &Job<'_>,
    tallies: &Tallies,
    parsers: &mut Parsers<'_>,
    watch: Watch<'_>,
) -> Result<Report, String> {
    let mut remarked = Report::of_job(job);
    let mut logs = Vec::new();
    for (at, input) in job.inputs.iter().enumerate() {
        logs.push(Followed::open(at, input, job)?);
    }
    let mut held = Held::new();
    let mut progress = Progress::default();
    let (mut shown_at, mut shown_lines) = (Instant::now(), 0);
    loop {
        let mut is_more = false;
        for log in &mut logs {
            let (lines, own) = log.step(parsers, &mut remarked, &mut held)?;
            progress.lines += lines;
            is_more |= own;
        }
        let is_over = logs.iter().all(|log| matches!(log, Followed::Ended));
        if is_over || !watch(Event::Progress(progress)) {
            break;
        }
        let is_due = shown_at.elapsed() >= Duration::from_millis(REFRESH_MS);
        if is_due && progress.lines > shown_lines {
            (shown_at, shown_lines) = (Instant::now(), progress.lines);
            let mut report = remarked.clone();
            logs.iter().for_each(|log| log.remark(&mut report));
            tallies.add_to(&mut report);
            if !watch(Event::Refresh(&report)) {
                break;
            }
        }
        if !is_more {
            std::thread::sleep(Duration::from_millis(POLL_MS));
        }
    }
    for log in &mut logs {
        log.finish(parsers, &mut remarked, &mut held)?;
    }
    Ok(remarked)
}

impl Followed {
    fn open(at: usize, input: &Input, job: &Job<'_>) -> Result<Self, String> {
        match &input.path {
            Some(path) if is_plain(path) => {
                let is_last = is_rotated_input(path, job);
                if is_last && !path.exists() {
                    return Ok(Self::Ended);
                }
                let feed = Feed::new(at, input, &job.client);
                Ok(Self::Tail(Box::new(Tail::new(path, feed, is_last))))
            }
            _ => Ok(Self::Stream(Box::new(Stream::open(at, input, job)?))),
        }
    }

    /// Reads a part. Returns the number of lines, and whether there may be more at once.
    fn step(
        &mut self,
        parsers: &mut Parsers<'_>,
        remarked: &mut Report,
        held: &mut Held,
    ) -> Result<(u64, bool), String> {
        match self {
            Self::Tail(tail) => tail.step(parsers, held),
            Self::Stream(stream) => {
                let step = stream.step(parsers)?;
                let mut lines = step.lines();
                match step {
                    // Lines are shown before a block is full.
                    Step::More(_) => lines += stream.feed.flush(parsers)?,
                    Step::Idle => {}
                    Step::End(_) => {
                        stream.leave(remarked);
                        *self = Self::Ended;
                    }
                }
                // A pipe has waited already.
                Ok((lines, true))
            }
            Self::Ended => Ok((0, false)),
        }
    }

    fn remark(&self, report: &mut Report) {
        match self {
            Self::Tail(tail) => {
                if let Some(feed) = tail.feed() {
                    feed.remark(report);
                }
                report.broken.extend(tail.faults().cloned());
            }
            Self::Stream(stream) => stream.leave(report),
            Self::Ended => {}
        }
    }

    /// Reads the remaining data, and lines without a newline.
    fn finish(
        &mut self,
        parsers: &mut Parsers<'_>,
        remarked: &mut Report,
        held: &mut Held,
    ) -> Result<(), String> {
        match self {
            Self::Tail(tail) => {
                let deadline = Instant::now() + Duration::from_millis(REFRESH_MS);
                // A server that writes faster than this reads does not keep it from ending.
                while tail.step(parsers, held)?.1 && Instant::now() < deadline {}
                tail.finish(parsers)?;
            }
            Self::Stream(stream) => drop(stream.feed.finish(parsers)?),
            Self::Ended => return Ok(()),
        }
        self.remark(remarked);
        Ok(())
    }
}

/// Whether a log is a rotated file of another one, so that files with its name come from the other.
fn is_rotated_input(path: &Path, job: &Job<'_>) -> bool {
    let names = job
        .inputs
        .iter()
        .filter_map(|input| input.path.as_ref()?.file_name());
    path.file_name()
        .is_some_and(|own| names.into_iter().any(|log| is_rotated_behind(own, log)))
}

/// Whether a path is a file to wait at the end of: plain, or not there yet.
fn is_plain(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else {
        return true;
    };
    // Bytes of a pipe are read once.
    if !metadata.is_file() {
        return false;
    }
    let mut begin = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read(&mut begin));
    !read.is_ok_and(|count| is_compressed(&begin[..count]))
}

/// Time between two reports of followed logs, milliseconds.
const REFRESH_MS: u64 = 5000;
/// Time between two looks at logs that have had nothing new, milliseconds.
const POLL_MS: u64 = 100;
