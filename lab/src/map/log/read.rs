//! Reads logs from their begin to their end.

use std::sync::atomic::Ordering;

use sys::os_error;

use super::Job;
use super::follow::follow;
use super::parsers::{Parsers, Tallies};
use super::report::{Event, Progress, Report, Watch};
use super::stream::{Step, Stream};

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

fn all(job: &Job<'_>, parsers: &mut Parsers<'_>, watch: Watch<'_>) -> Result<Report, String> {
    let mut report = Report::of_job(job);
    let mut progress = Progress {
        total: Some(0),
        ..Progress::default()
    };
    // A wrong name is reported before hours of work. Pipes stay open; there may be more files than descriptors.
    let mut pipes = Vec::new();
    for (at, input) in job.inputs.iter().enumerate() {
        let stream = Stream::open(at, input, job)?;
        let size = stream.source.size;
        progress.total = progress.total.zip(size).map(|(all, own)| all + own);
        pipes.push(Some(stream).filter(|_| size.is_none()));
    }
    for (at, (pipe, input)) in pipes.into_iter().zip(&job.inputs).enumerate() {
        let mut stream = match pipe {
            Some(pipe) => pipe,
            None => Stream::open(at, input, job)?,
        };
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
