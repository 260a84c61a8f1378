//! The browser's trace of a view: the largest paint, and for a file all that the browser's own tools show.
//!
//! Source: <https://perfetto.dev/docs/>, "JSON trace format".

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};
use sys::os_error;

/// A trace, received in pieces.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// When the largest paint of the main frame was, seconds of the monotonic clock.
    pub(super) largest_contentful_paint: Option<f64>,
    pub(super) is_over: bool,
    file: Option<BufWriter<File>>,
    written_bytes: usize,
}

/// Returns the parameters that start a trace. A trace for a file has more categories, which cost time.
pub(super) fn parameters(is_kept: bool) -> Value {
    let categories: &[&str] = if is_kept {
        &[
            "devtools.timeline",
            "loading",
            "rail",
            "blink.user_timing",
            "netlog",
        ]
    } else {
        &["rail"]
    };
    json!({
        "transferMode": "ReportEvents",
        "traceConfig": {
            "recordMode": "recordAsMuchAsPossible",
            "includedCategories": categories,
            "excludedCategories": ["*"],
        },
    })
}

impl Trace {
    /// Creates a trace, written to a file if `path` is set.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn create(path: Option<&Path>) -> Result<Self, String> {
        let file = match path {
            None => None,
            Some(path) => {
                let file = File::create(path).and_then(|file| {
                    let mut file = BufWriter::new(file);
                    file.write_all(b"{\"traceEvents\":[\n")?;
                    Ok(file)
                });
                Some(file.map_err(|error| {
                    format!("cannot write {}: {}", path.display(), os_error(&error))
                })?)
            }
        };
        Ok(Self {
            file,
            ..Self::default()
        })
    }

    /// Adds events of `Tracing.dataCollected`; `frame` is that of the page, shown since `start`, in seconds.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn collect(
        &mut self,
        params: &Value,
        frame: &str,
        start: f64,
    ) -> Result<(), String> {
        for event in params["value"].as_array().into_iter().flatten() {
            if event["name"] == LARGEST && event["args"]["frame"] == frame {
                let at = event["ts"].as_f64().unwrap_or_default() / 1e6;
                // Each is larger than those before.
                if at >= start && self.largest_contentful_paint.is_none_or(|last| at > last) {
                    self.largest_contentful_paint = Some(at);
                }
            }
            self.write(event)?;
        }
        Ok(())
    }

    fn write(&mut self, event: &Value) -> Result<(), String> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let text = event.to_string();
        if self.written_bytes + text.len() > FILE_BYTES_MAX {
            return Ok(());
        }
        let comma = if self.written_bytes == 0 { "" } else { ",\n" };
        self.written_bytes += text.len();
        write!(file, "{comma}{text}")
            .map_err(|error| format!("cannot write the trace: {}", os_error(&error)))
    }

    /// Ends the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let ended = file.write_all(b"\n]}\n").and_then(|()| file.flush());
        ended.map_err(|error| format!("cannot write the trace: {}", os_error(&error)))
    }
}

/// The event of a paint that is larger than those before.
const LARGEST: &str = "largestContentfulPaint::Candidate";
/// Most bytes of events in a file; further events are dropped.
const FILE_BYTES_MAX: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use firstbyte_tests::TempDir;

    fn paint(frame: &str, ts: f64) -> Value {
        json!({"name": LARGEST, "ts": ts, "args": {"frame": frame}})
    }

    #[test]
    fn largest_paint_is_the_last_of_the_frame() {
        let mut trace = Trace::default();
        let events = [
            paint("F", 0.9e6),
            paint("F", 2.0e6),
            paint("F", 1.5e6),
            paint("G", 3.0e6),
            json!({"name": "other", "ts": 4e6, "args": {"frame": "F"}}),
            json!(5),
        ];
        trace
            .collect(&json!({"value": events}), "F", 1.0)
            .expect("no file");
        assert_eq!(trace.largest_contentful_paint, Some(2.0));
    }

    #[test]
    fn events_past_the_limit_are_not_written() {
        let dir = TempDir::new();
        let path = dir.path().join("trace.json");
        let event = json!({"name": "x"});
        for (more, is_written) in [(0, true), (1, false)] {
            let mut trace = Trace::create(Some(&path)).expect("it can be written");
            trace.written_bytes = FILE_BYTES_MAX - event.to_string().len() + more;
            trace.write(&event).expect("written");
            trace.finish().expect("written");
            assert_eq!(dir.read("trace.json").contains("name"), is_written);
        }
    }

    #[test]
    fn file_is_one_object() {
        let dir = TempDir::new();
        let path = dir.path().join("trace.json");
        let mut trace = Trace::create(Some(&path)).expect("it can be written");
        for ts in [1.0, 2.0] {
            let piece = json!({"value": [paint("F", ts)]});
            trace.collect(&piece, "F", 0.0).expect("written");
        }
        trace.finish().expect("written");
        let text = dir.read("trace.json");
        let whole: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(whole["traceEvents"].as_array().map(Vec::len), Some(2));
        Trace::create(Some(Path::new("/nonexistent/trace"))).expect_err("no folder");
    }
}
