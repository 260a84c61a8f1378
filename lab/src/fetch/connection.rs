//! One connection that blocks.

use std::time::{Duration, Instant};

use sys::os_error;
use sys::poll::{Events, Interest, Poller};

use super::core::Core;
use super::dial::Dial;
use super::event::Event;
use super::failure::{Failure, FailureCause};
use super::record::ConnectionRecord;
use super::response::Response;
use crate::client::Request;

/// A connection with calls that block until the result is there, a failure, or a timeout.
pub struct Connection {
    core: Core,
    poller: Poller,
    ready: Events,
    buffer: Vec<u8>,
}

impl Connection {
    /// Opens a connection with its TLS handshake. With early data and a known session of the server, the first request
    /// begins the handshake.
    ///
    /// # Errors
    /// The server does not listen, TLS fails, or the time is up.
    pub fn open(dial: &Dial) -> Result<Self, Failure> {
        let core = Core::dial(dial)?;
        let broken = |error: std::io::Error| {
            let reason = os_error(&error);
            Failure::new(
                FailureCause::Connect,
                format!("cannot create a poller: {reason}"),
            )
        };
        let poller = Poller::new().map_err(broken)?;
        if let Some(socket) = core.socket() {
            poller
                .add(socket, 0, Interest::Connection)
                .map_err(broken)?;
        }
        let mut new = Self {
            core,
            poller,
            ready: Events::with_capacity(1),
            buffer: vec![0; BUFFER_BYTES],
        };
        let deadline = after(dial.timeout);
        while !new.core.is_open() {
            if let Some(failure) = new.take_failure() {
                return Err(failure);
            }
            new.turn(deadline);
        }
        Ok(new)
    }

    /// Sends a request, and waits for the end of its response.
    ///
    /// # Errors
    /// There is no whole response.
    pub fn exchange(&mut self, request: &Request) -> Result<Response, Failure> {
        let mut results = self.exchange_all(std::slice::from_ref(request));
        results.pop().unwrap_or_else(|| Err(no_response()))
    }

    /// Sends requests, together if the protocol has streams and the server allows them, else one after another. Returns
    /// the responses in the order of the requests.
    pub fn exchange_all(&mut self, requests: &[Request]) -> Vec<Result<Response, Failure>> {
        let mut results: Vec<Option<Result<Response, Failure>>> = Vec::new();
        results.resize_with(requests.len(), || None);
        let timeout = self.core.settings().timeout;
        let mut deadline = after(timeout);
        let (mut next, mut left) = (0, requests.len());
        while left > 0 {
            while next < requests.len() && self.core.room() > 0 {
                self.core.request(next, &requests[next]);
                next += 1;
            }
            self.core.flush(&mut self.buffer);
            while let Some(event) = self.core.event() {
                if let Event::Done(token, result) = event {
                    results[token] = Some(result.map(|response| *response));
                    left -= 1;
                    deadline = after(timeout);
                }
            }
            // A closed connection, or one that accepts no more requests, has no responses for the rest.
            if !self.core.is_open() && self.core.in_progress() == 0 {
                break;
            }
            if left > 0 && (next == requests.len() || self.core.room() == 0) {
                self.turn(deadline);
            }
        }
        let results = results.into_iter();
        results
            .map(|result| result.unwrap_or_else(|| Err(no_response())))
            .collect()
    }

    /// Waits for `time` and records the events of the server. Returns whether the connection is still open at the end.
    pub fn watch(&mut self, time: Duration) -> bool {
        let deadline = after(time);
        while self.core.is_open() && Instant::now() < deadline {
            self.wait(deadline);
        }
        self.is_open()
    }

    /// Receives without waiting; returns whether the connection is still open.
    pub(super) fn receive_pending(&mut self) -> bool {
        self.wait(Instant::now());
        self.is_open()
    }

    /// Changes the time of later exchanges.
    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        self.core.set_timeout(timeout);
    }

    /// The record of its events.
    #[must_use]
    pub fn record(&self) -> &ConnectionRecord {
        self.core.record()
    }

    /// Returns whether it accepts another request, as far as is known.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.core.is_open()
    }

    /// Returns the failure that closed it, if any.
    fn take_failure(&mut self) -> Option<Failure> {
        while let Some(event) = self.core.event() {
            if let Event::Closed(failure) = event {
                return Some(failure.unwrap_or_else(no_response));
            }
        }
        None
    }

    /// Waits for an event; expires requests after the deadline.
    fn turn(&mut self, deadline: Instant) {
        self.wait(deadline);
        // A server that sends without end always has something.
        if Instant::now() >= deadline && !self.core.is_closed() {
            let timeout = self.core.settings().timeout;
            self.core.expire(timeout);
        }
    }

    fn wait(&mut self, deadline: Instant) {
        let left = deadline.saturating_duration_since(Instant::now());
        // The poller counts in whole milliseconds; before the deadline it must not return without having waited.
        let left_ms = left.as_micros().div_ceil(1000) as u64;
        let timeout_ms = if self.core.has_more() { 0 } else { left_ms };
        if self.poller.wait(&mut self.ready, Some(timeout_ms)).is_err() {
            return;
        }
        let news = (!self.ready.is_empty()).then(|| self.ready.at(0));
        if self.core.has_more() || news.is_some() {
            self.core.ready(news, &mut self.buffer);
        }
    }
}

/// The moment when a time is up.
fn after(time: Duration) -> Instant {
    Instant::now() + time.min(LONGEST)
}

fn no_response() -> Failure {
    let message = "the server closed the connection before a response";
    Failure::new(FailureCause::Closed, message)
}

/// The longest that is waited for anything.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Bytes of one read.
const BUFFER_BYTES: usize = 64 << 10;
