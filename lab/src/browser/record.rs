//! All that is recorded of one view, and the visit that it becomes.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::events::{LifecycleEvent, LoadingFailed, ScreencastFrame};
use super::options::Options;
use super::recorder::Recorder;
use super::timings::LifecycleTimes;
use super::trace::Trace;
use crate::page::{Frame, Visit};

/// All that is recorded of one view.
pub(super) struct Record {
    network: Recorder,
    moments: LifecycleTimes,
    trace: Trace,
    frames: Vec<(f64, Vec<u8>)>,
    frames_bytes: usize,
    pub(super) notes: Vec<String>,
}

/// The meaning of an event to the end of a view.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// The page and its resources are loaded.
    Loaded,
    /// The document broke off: there will be no load event.
    Broken,
    /// Another document replaces it.
    Left,
    /// Something was sent or received.
    Transferred,
    Other,
}

/// Reads parameters of an event. If a browser uses other types for them, they are empty.
pub(super) fn read<T: DeserializeOwned + Default>(params: Value) -> T {
    serde_json::from_value(params).unwrap_or_default()
}

impl Record {
    /// Nothing yet.
    ///
    /// # Errors
    /// The file for the trace cannot be written.
    pub(super) fn new(options: &Options) -> Result<Self, String> {
        Ok(Self {
            network: Recorder::default(),
            moments: LifecycleTimes::default(),
            trace: Trace::create(options.trace.as_deref())?,
            frames: Vec::new(),
            frames_bytes: 0,
            notes: Vec::new(),
        })
    }

    pub(super) fn count(&self) -> usize {
        self.network.count()
    }

    pub(super) fn open(&self) -> usize {
        self.network.open()
    }

    /// Returns the URL of a document without a response, after its redirects. Returns `url` if no document was
    /// requested.
    pub(super) fn unanswered<'a>(&'a self, url: &'a str) -> Option<&'a str> {
        match &self.network.document {
            Some(_) => self.network.unanswered_document(),
            None => Some(url),
        }
    }

    pub(super) fn is_painted(&self) -> bool {
        self.moments.first_paint.is_some()
    }

    pub(super) fn trace_is_over(&self) -> bool {
        self.trace.is_over
    }

    pub(super) fn finish_trace(&mut self) -> Result<(), String> {
        self.trace.finish()
    }

    /// Handles an event of the network or of the trace.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub(super) fn take(&mut self, method: &str, params: Value) -> Result<Seen, String> {
        let network = &mut self.network;
        match method {
            "Network.requestWillBeSent" => network.request_will_be_sent(read(params)),
            "Network.requestWillBeSentExtraInfo" => network.request_extra_info(read(params)),
            "Network.responseReceived" => network.response_received(read(params)),
            "Network.responseReceivedExtraInfo" => network.response_extra_info(read(params)),
            "Network.dataReceived" => network.data_received(&read(params)),
            "Network.requestServedFromCache" => network.served_from_cache(&read(params)),
            "Network.loadingFinished" => network.loading_finished(&read(params)),
            "Network.loadingFailed" => {
                let event: LoadingFailed = read(params);
                network.loading_failed(&event);
                if network.is_document(&event.request_id) {
                    return Ok(Seen::Broken);
                }
            }
            "Tracing.dataCollected" => {
                let document = network.document.as_ref();
                let (frame, start) = document.map_or(("", 0.0), |one| (&one.frame, one.start));
                self.trace.collect(&params, frame, start)?;
                return Ok(Seen::Other);
            }
            "Tracing.tracingComplete" => {
                self.trace.is_over = true;
                return Ok(Seen::Other);
            }
            _ => return Ok(Seen::Other),
        }
        Ok(Seen::Transferred)
    }

    pub(super) fn lifecycle_event(&mut self, event: LifecycleEvent) -> Seen {
        let document = self.network.document.as_ref();
        // Other frames and the empty page before have these events, too.
        if document.is_none_or(|one| one.frame != event.frame_id || event.timestamp < one.start) {
            return Seen::Other;
        }
        let begins = event.name == "init";
        match self.moments.lifecycle_event(event) {
            true => Seen::Loaded,
            false if begins => Seen::Left,
            false => Seen::Other,
        }
    }

    /// Adds a picture unless the limit of memory is reached.
    pub(super) fn add_frame(&mut self, params: Value) {
        let frame: ScreencastFrame = read(params);
        let Ok(jpeg) = BASE64_STANDARD.decode(frame.data) else {
            return;
        };
        let has_room = |of: &Self| {
            of.frames.len() < FRAMES_MAX && of.frames_bytes + jpeg.len() <= FRAMES_BYTES_MAX
        };
        // The final state of the page has priority over the picture before it.
        if !has_room(self)
            && let Some((_, last)) = self.frames.pop()
        {
            self.frames_bytes -= last.len();
        }
        if has_room(self) {
            self.frames_bytes += jpeg.len();
            self.frames.push((frame.metadata.timestamp, jpeg));
        }
    }

    /// The visit until `end`, seconds of the monotonic clock.
    pub(super) fn visit(mut self, end: f64) -> Visit {
        let mut visit = Visit::default();
        if self.network.left_out > 0 {
            let note = format!("{} more requests are not recorded", self.network.left_out);
            self.notes.push(note);
        }
        if let Some(why) = self.network.document_error() {
            self.notes.push(format!("the page is incomplete: {why}"));
        }
        if let Some(document) = self.network.document.clone() {
            self.moments.largest_contentful_paint = self.trace.largest_contentful_paint;
            let first_byte = self.network.document_first_byte();
            visit.timings = self.moments.since(document.start, first_byte);
            visit.started_unix_ms = document.start_unix * 1000.0;
            visit.filmstrip = filmstrip(self.frames, document.start_unix);
        }
        visit.resources = self.network.resources(end);
        visit.round_trip_ms = round_trip_ms(&visit);
        visit.notes = self.notes;
        visit
    }
}

/// Returns the pictures from the start of the visit. The last picture before the start becomes the first, at 0 ms.
fn filmstrip(frames: Vec<(f64, Vec<u8>)>, start_unix: f64) -> Vec<Frame> {
    let mut strip: Vec<Frame> = Vec::new();
    for (at, jpeg) in frames {
        let at_ms = ((at - start_unix) * 1000.0).max(0.0);
        if at_ms == 0.0 {
            strip.clear();
        }
        strip.push(Frame { at_ms, jpeg });
    }
    strip
}

/// Returns the duration of the first TCP handshake with the server of the page: a round trip and the time of both ends.
/// The shortest handshake would be wrong: a request may take over a connection that is being opened, and then Chromium
/// reports a part of the handshake.
fn round_trip_ms(visit: &Visit) -> Option<f64> {
    let server = visit.resources.first()?.remote.as_ref();
    let of_server = visit
        .resources
        .iter()
        .filter(|one| one.remote.as_ref() == server);
    let mut times = of_server.filter_map(|one| one.phases.connect_ms);
    times.next()
}

/// The most pictures of a view.
pub(super) const FRAMES_MAX: usize = 120;
/// The most bytes of these.
const FRAMES_BYTES_MAX: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns the times of the recorded pictures out of `count` pictures of `bytes` bytes each.
    fn kept(count: usize, bytes: usize) -> Vec<f64> {
        let mut record = Record::new(&Options::new("http://h/")).expect("no file");
        let data = BASE64_STANDARD.encode(vec![0; bytes]);
        for at in 0..count {
            record.add_frame(json!({"data": data, "metadata": {"timestamp": at as f64}}));
        }
        let bytes: usize = record.frames.iter().map(|(_, jpeg)| jpeg.len()).sum();
        assert_eq!(record.frames_bytes, bytes);
        record.frames.iter().map(|(at, _)| *at).collect()
    }

    #[test]
    fn pictures_have_limits_and_the_last_is_kept() {
        let last = FRAMES_MAX as f64;
        assert_eq!(kept(FRAMES_MAX, 1).last(), Some(&(last - 1.0)));
        let past = kept(FRAMES_MAX + 1, 1);
        assert_eq!((past.len(), past.last()), (FRAMES_MAX, Some(&last)));
        let half = FRAMES_BYTES_MAX / 2;
        assert_eq!(kept(2, half), [0.0, 1.0]);
        assert_eq!(kept(3, half), [0.0, 2.0]);
        assert_eq!(kept(2, half + 1), [1.0]);
    }
}
