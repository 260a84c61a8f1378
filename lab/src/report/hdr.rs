//! All times as a log of HdrHistogram, which its tools plot.
//!
//! Source: HdrHistogram's log format, version 1.3; times are in nanoseconds.

use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use super::format::Report;
use crate::load::Measured;
use crate::stats::Metric;

/// The log: a line for each run and metric, with a tag that names both.
///
/// # Errors
/// A histogram cannot be encoded.
pub fn log(report: &Report, measured: &Measured) -> Result<String, String> {
    let mut out = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let began = SystemTime::UNIX_EPOCH + Duration::from_secs(report.began_unix_s);
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment("[Histogram log format version 1.3]")
        .add_comment(&report.program)
        .add_comment("nanoseconds");
    for server in &report.servers {
        if let Some(sentence) = server.excluded_sentence() {
            builder.add_comment(&format!("{}: {sentence}", server.name));
        }
    }
    let mut writer = builder
        .with_start_time(began)
        .with_base_time(began)
        // Values are written as they are.
        .with_max_value_divisor(1.0)
        .begin_log_with(&mut out, &mut serializer)
        .map_err(|error| error.to_string())?;
    for (server, runs) in report.servers.iter().zip(&measured.runs) {
        let name: String = server.name.chars().map(tagged).collect();
        let mut at = Duration::ZERO;
        for run in runs {
            let length = Duration::from_nanos(run.elapsed_ns);
            for metric in Metric::ALL {
                let times = &run.times(metric).valid;
                if times.is_empty() {
                    continue;
                }
                let tag = format!("{name}.{}", metric.name());
                let tag = Tag::new(&tag).ok_or("a tag has a space or a comma")?;
                writer
                    .write_histogram(times, at, length, Some(tag))
                    .map_err(|error| format!("{error:?}"))?;
            }
            at += length;
        }
    }
    String::from_utf8(out).map_err(|error| error.to_string())
}

/// Replaces a character that a tag cannot have.
fn tagged(c: char) -> char {
    match c {
        ' ' | ',' | '\r' | '\n' => '_',
        c => c,
    }
}
