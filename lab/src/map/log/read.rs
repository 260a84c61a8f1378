//! Reads logs from their begin to their end.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sys::os_error;

use super::feed::Feed;
use super::follow::follow;
use super::parsers::{Parsers, Tallies};
use super::report::{Event, Progress, Report};
use super::source::{self, Source};
use super::{Input, Job};

/// Calls with an event; false ends the reading.
pub(super) type Watch<'w> = &'w mut dyn FnMut(Event<'_>) -> bool;

/// Reads the logs of a job. `watch` gets events, and returns false to end the reading.
///
/// # Errors
/// A sentence: a log cannot be opened or read, its format is unknown, or a thread cannot be started.
pub fn read(job: &Job<'_>, watch: Watch<'_>) -> Result<Report, String> {
    let tallies = Tallies::new(job.threads.max(1));
    let done = std::thread::scope(|scope| {
        let parsers = Parsers::start(scope, &tallies, job.countries);
        let mut parsers =
            parsers.map_err(|error| format!("cannot start a thread: {}", os_error(&error)))?;
        match job.follows {
            true => follow(job, &tallies, &mut parsers, watch),
            false => all(job, &mut parsers, watch),
        }
    });
    let mut report = done?;
    tallies.add_to(&mut report);
    Ok(report)
}

/// An empty report of a job.
pub(super) fn empty(job: &Job<'_>) -> Report {
    Report {
        inputs: job.inputs.iter().map(Input::name).collect(),
        ..Report::default()
    }
}

fn all(job: &Job<'_>, parsers: &mut Parsers<'_>, watch: Watch<'_>) -> Result<Report, String> {
    let mut report = empty(job);
    // A wrong name is reported before hours of work.
    let mut streams = Vec::new();
    for (at, input) in job.inputs.iter().enumerate() {
        streams.push(Stream::open(at, input, job)?);
    }
    let sizes = streams.iter().map(|stream| stream.source.size);
    let mut progress = Progress {
        total: sizes.sum(),
        ..Progress::default()
    };
    for mut stream in streams {
        let before = progress.bytes;
        loop {
            let step = stream.step(parsers)?;
            progress.lines += step.lines();
            progress.bytes = before + stream.read.load(Ordering::Relaxed);
            if !watch(Event::Progress(progress)) {
                report.interrupted = true;
                stream.feed.finish(parsers)?;
                stream.leave(&mut report);
                return Ok(report);
            }
            if let Step::End(..) = step {
                break;
            }
        }
        stream.leave(&mut report);
    }
    Ok(report)
}

/// A log that is read to its end.
pub(super) struct Stream {
    name: String,
    pub(super) feed: Feed,
    source: Source,
    read: Arc<AtomicU64>,
    broken: Option<String>,
}

/// What a step has found.
pub(super) enum Step {
    /// So many lines were parsed, and there are more bytes.
    More(u64),
    /// Nothing is there yet.
    Idle,
    /// So many lines were parsed, the last ones.
    End(u64),
}

impl Step {
    pub(super) fn lines(&self) -> u64 {
        match self {
            Self::More(lines) | Self::End(lines) => *lines,
            Self::Idle => 0,
        }
    }
}

impl Stream {
    /// Opens a log.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) fn open(at: usize, input: &Input, job: &Job<'_>) -> Result<Self, String> {
        let name = input.name();
        let cannot = |error: io::Error| format!("cannot read {name}: {}", os_error(&error));
        let file = match &input.path {
            Some(path) => source::open(path)?,
            None => File::from(io::stdin().as_fd().try_clone_to_owned().map_err(cannot)?),
        };
        let source = Source::new(file).map_err(cannot)?;
        Ok(Self {
            feed: Feed::new(at, input, &job.client),
            read: Arc::clone(&source.read),
            source,
            broken: None,
            name,
        })
    }

    /// Reads once.
    ///
    /// # Errors
    /// The file cannot be read, or its format is unknown.
    pub(super) fn step(&mut self, parsers: &mut Parsers<'_>) -> Result<Step, String> {
        match self.source.bytes.read(self.feed.room()) {
            Ok(0) => Ok(Step::End(self.feed.finish(parsers)?)),
            Ok(count) => Ok(Step::More(self.feed.filled(count, parsers)?)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Step::Idle),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Step::More(0)),
            Err(error) if is_of_content(&error) => {
                let lines = self.feed.finish(parsers)?;
                let why = match error.kind() {
                    ErrorKind::UnexpectedEof => "it ends within a compressed block".to_owned(),
                    _ => error.to_string(),
                };
                self.broken = Some(format!("{}: {why}; the rest is not read", self.name));
                Ok(Step::End(lines))
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                Err(format!("{}: {error}", self.name))
            }
            Err(error) => Err(format!("cannot read {}: {}", self.name, os_error(&error))),
        }
    }

    /// Adds remarks to a report.
    pub(super) fn leave(&self, report: &mut Report) {
        remarks(&self.name, &self.feed, report);
        report.broken.extend(self.broken.clone());
    }
}

/// Adds remarks about a log to a report.
pub(super) fn remarks(name: &str, feed: &Feed, report: &mut Report) {
    report.lacks_requests |= feed.lacks_requests();
    if let Some(format) = &feed.detected {
        report.detected.push((name.to_owned(), format.clone()));
    }
}

/// Whether an error is one of the compressed content, not of the system.
fn is_of_content(error: &io::Error) -> bool {
    use ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    error.raw_os_error().is_none()
        && matches!(
            error.kind(),
            InvalidData | InvalidInput | Other | UnexpectedEof
        )
}
