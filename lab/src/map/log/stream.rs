//! One log on its way from a source to the parsers, read once from its beginning to its end.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sys::os_error;

use super::feed::Feed;
use super::parsers::Parsers;
use super::report::Report;
use super::source::{self, Source};
use super::{Input, Job};

/// A log that is read to its end.
pub(super) struct Stream {
    name: String,
    pub(super) feed: Feed,
    pub(super) source: Source,
    pub(super) read: Arc<AtomicU64>,
    broken: Option<String>,
}

/// The result of a step, with the number of parsed lines.
pub(super) enum Step {
    /// There are more bytes.
    More(u64),
    /// A pipe has nothing yet.
    Idle,
    /// The log has ended.
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
        self.feed.remark(report);
        report.broken.extend(self.broken.clone());
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
