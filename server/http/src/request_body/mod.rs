//! The body of a request on its way in: delivery by the driver, and use by handlers.
//!
//! ```text
//! driver:   deliver_body, end_body        on events of the engine; then, if is_body_due, phases::resume
//!           body_used                     consumed bytes: the peer may send as many again
//!           has_body_room                 whether more may be read, for protocols without windows
//! handler:  collect                       the whole body, in memory or in a file; Wait until it is there
//!           stream::take                  the next piece of it, or of a tunnel
//! ```
//!
//! Only a handler that needs the body takes it. Until then received bytes are held, up to the window of the peer.
//! Once a response has been decided nothing is delivered any more, unless a handler passes the body on: then
//! request and response body are sent at the same time ([`OnArrival`](crate::exchange::OnArrival)).
//!
//! Source: nginx documentation, directives `client_body_*`, `client_max_body_size`.

mod broken;
mod collect;
pub mod stream;
pub(crate) mod unread;

use std::rc::Rc;

use engines::http::{BodyLength, Version};
use server_base::files::TempFile;

use crate::conf_core::CoreLoc;
pub use crate::exchange::CollectOptions;
use crate::exchange::request_body::{Pace, RequestBody, Stream};
use crate::exchange::{Ctx, Exchange, State, Wait};
pub use collect::{Collected, collect};

impl Exchange {
    /// Takes a piece of the body. Called while [`Exchange::wants_body`].
    pub fn deliver_body(&mut self, bytes: Vec<u8>, cx: &mut Ctx<'_>) {
        let mut request_body = self.input.body.take().unwrap_or_default();
        let len = bytes.len() as u64;
        request_body.received += len;
        match (&mut request_body.reader, &mut request_body.unread) {
            (None, Some(unread)) => {
                request_body.used += len;
                let until_ms = unread.record(len, cx.clock.mono_ms);
                if self.is_waiting() {
                    self.progress.state = State::Waiting(Wait::body_or_until(until_ms));
                }
            }
            // It was answered with 413.
            (None, None) if self.input.too_large && request_body.stream.is_none() => {
                request_body.used += len;
            }
            (None, None) => {
                request_body.hold(bytes);
                if request_body.stream.is_some() {
                    request_body.pass(self, len, cx.clock.mono_ms);
                }
            }
            (Some(reader), _) => {
                request_body.used += len;
                reader.take(self, cx, bytes, request_body.received);
                if matches!(self.progress.state, State::Waiting(wait) if wait.body) {
                    self.progress.state =
                        State::Waiting(Wait::body_or_until(reader.pace.until_ms()));
                }
            }
        }
        self.input.body = Some(request_body);
    }

    /// The body is complete.
    pub fn end_body(&mut self, cx: &mut Ctx<'_>) {
        let mut request_body = self.input.body.take().unwrap_or_default();
        request_body.ended = true;
        if let Some(reader) = &mut request_body.reader {
            reader.end(self, cx);
        }
        if let Some(stream) = &mut request_body.stream {
            stream.end();
        }
        self.input.body = Some(request_body);
    }

    /// Whether something of the body is there now for a handler that passes it on while the response is on its way.
    #[inline]
    pub fn has_body_arrived(&self) -> bool {
        let request_body = self.input.body.as_ref();
        self.body.on_arrival.is_some()
            && self.passes_body()
            && request_body.is_some_and(|request_body| request_body.is_due())
    }

    /// Whether the whole body is collected, and is not there yet.
    pub fn collects_body(&self) -> bool {
        let reader = self
            .input
            .body
            .as_ref()
            .and_then(|request_body| request_body.reader.as_ref());
        reader.is_some_and(|reader| !reader.is_done()) && self.is_waiting()
    }

    /// Whether a handler waits for more of the body.
    pub fn awaits_body(&self) -> bool {
        let request_body = self.input.body.as_ref();
        let stream = request_body.and_then(|request_body| request_body.stream.as_ref());
        self.collects_body()
            || (stream.is_some_and(Stream::is_waiting) && self.wants_body())
            || self.is_held()
    }

    /// Whether a handler takes the body, and its end has not come.
    pub fn lacks_body(&self) -> bool {
        let request_body = self.input.body.as_ref();
        let lacks = |body: &RequestBody| body.stream.is_some() && !body.ended;
        self.collects_body()
            || (request_body.is_some_and(|body| lacks(body)) && self.wants_body())
            || self.is_held()
    }

    /// Returns the bytes consumed since the last call.
    pub fn body_used(&mut self) -> u64 {
        self.input
            .body
            .as_mut()
            .map_or(0, |request_body| std::mem::take(&mut request_body.used))
    }

    /// Whether more of the body may come without being held in heaps.
    #[inline]
    pub fn has_body_room(&self) -> bool {
        self.input
            .body
            .as_ref()
            .is_none_or(|request_body| request_body.held_bytes < HELD_BYTES)
    }

    /// Whether a handler has ceased to pass the body on while the response is on its way. The pieces held are dropped
    /// then.
    pub fn drop_unwanted_body(&mut self) -> bool {
        let unwanted = self.passes_body() && !self.wants_body();
        if unwanted && let Some(request_body) = &mut self.input.body {
            request_body.stream = None;
            request_body.held.clear();
            request_body.used += std::mem::take(&mut request_body.held_bytes);
        }
        unwanted
    }

    /// The whole body, if it was collected in memory, or was passed on and fits into a buffer.
    pub fn body_bytes(&self) -> Option<&[u8]> {
        let request_body = self.input.body.as_ref()?;
        if let Some(stream) = &request_body.stream {
            let all_taken = request_body.ended && request_body.held.is_empty();
            return stream.copy().filter(|_| all_taken);
        }
        request_body.reader.as_ref()?.whole_in_memory()
    }

    /// The whole body in memory that other requests have too, if it was shared.
    pub(crate) fn shared_body(&self) -> Option<&Rc<[u8]>> {
        self.input.body.as_ref()?.reader.as_ref()?.shared.as_ref()
    }

    /// The file with the body, if it was collected in one.
    pub fn body_file(&self) -> Option<&TempFile> {
        self.input.body.as_ref()?.reader.as_ref()?.file.as_ref()
    }

    /// The file of the body, to be written to or renamed.
    pub fn body_file_mut(&mut self) -> Option<&mut TempFile> {
        self.input.body.as_mut()?.reader.as_mut()?.file.as_mut()
    }

    /// The length of the body, once all of it was read.
    pub fn body_size(&self) -> Option<u64> {
        let request_body = self.input.body.as_ref()?;
        request_body.ended.then_some(request_body.received)
    }

    /// Whether the body has come to its end, or there is none.
    fn is_body_complete(&self) -> bool {
        let empty = match self.head.body {
            BodyLength::None => true,
            // Streams that have frames end by one of them, whatever length was announced.
            BodyLength::Length(0) => self.head.version <= Version::Http11,
            _ => false,
        };
        empty
            || self
                .input
                .body
                .as_ref()
                .is_some_and(|request_body| request_body.ended)
    }
}

/// The time limits of a body that is read from now on.
fn pace_of(loc: &CoreLoc, now_ms: u64) -> Pace {
    let (gap_ms, all_ms) = (
        loc.bodies.client_body_timeout.0,
        loc.bodies.client_body_deadline.0,
    );
    Pace::begin(gap_ms, all_ms, *loc.bodies.client_body_min_rate, now_ms)
}

/// Maximum bytes of a body that are held before a handler takes them; as much is read ahead over HTTP/2.
pub const HELD_BYTES: u64 = 64 << 10;
#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
