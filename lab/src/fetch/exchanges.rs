//! Requests of a connection that wait, are in progress, or have ended.

use std::collections::VecDeque;

use engines::client::Event as Happened;

use super::event::Event;
use super::failure::{Failure, FailureCause};
use super::response::{self, MAX_BODY_BYTES, Response};
use crate::client::{Engine, Protocol, Request};

/// The exchanges of one connection, and the engine that carries them.
#[derive(Default)]
pub(super) struct Exchanges {
    engine: Option<Engine>,
    /// Exchanges that are not yet in the engine.
    queue: VecDeque<Exchange>,
    live: Vec<Exchange>,
    events: VecDeque<Event>,
    /// Longest body of a response; a longer one is a failure.
    body_limit: Option<usize>,
}

/// An exchange.
struct Exchange {
    /// The caller's token.
    token: usize,
    request: Request,
    response: Box<Response>,
}

impl Exchange {
    /// Returns the event of a failure, with the received part of the response.
    fn fail(self, failure: Failure) -> Event {
        let partial = (self.response.head > 0).then_some(self.response);
        Event::Done(self.token, Err(failure.with(partial)))
    }
}

impl Exchanges {
    pub(super) fn new(body_limit: Option<usize>) -> Self {
        Self {
            body_limit,
            ..Self::default()
        }
    }

    /// Uses an engine of this protocol for further requests. Requests in an earlier engine are sent again.
    pub(super) fn start(&mut self, protocol: Protocol, spdy_level: u8) {
        self.engine = Some(Engine::delivering(protocol, spdy_level));
        for exchange in self.live.drain(..).rev() {
            self.queue.push_front(exchange);
        }
    }

    pub(super) fn engine(&mut self) -> Option<&mut Engine> {
        self.engine.as_mut()
    }

    pub(super) fn protocol(&self) -> Option<Protocol> {
        self.engine.as_ref().map(Engine::protocol)
    }

    /// Returns whether it accepts no more requests.
    pub(super) fn is_closed(&self) -> bool {
        self.engine.as_ref().is_some_and(Engine::is_closed)
    }

    /// Returns how many requests can be added to the waiting ones.
    pub(super) fn room(&self) -> usize {
        let room = self.engine.as_ref().map_or(usize::MAX, Engine::room);
        room.saturating_sub(self.queue.len())
    }

    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Returns the number of requests without a complete response.
    pub(super) fn len(&self) -> usize {
        self.queue.len() + self.live.len()
    }

    /// Whether all requests that wait may be sent twice, as early data may be (RFC 8470 section 4).
    pub(super) fn are_safe(&self) -> bool {
        let is_safe = |exchange: &Exchange| {
            let mut fields = exchange.request.fields.iter();
            let method = fields.find(|(name, _)| name == b":method");
            method.is_some_and(|(_, method)| matches!(&method[..], b"GET" | b"HEAD"))
        };
        self.queue.iter().all(is_safe)
    }

    /// Returns the response to a request in progress, as far as it was received.
    pub(super) fn response(&self, token: usize) -> Option<&Response> {
        let found = self.live.iter().find(|exchange| exchange.token == token);
        found.map(|exchange| &*exchange.response)
    }

    pub(super) fn push(&mut self, token: usize, request: &Request, now_ns: u64) {
        let response = Response {
            asked: now_ns,
            ..Response::default()
        };
        self.queue.push_back(Exchange {
            token,
            request: request.clone(),
            response: Box::new(response),
        });
    }

    /// Passes waiting requests to the engine, as many as it accepts.
    pub(super) fn begin(&mut self) {
        let Some(engine) = &mut self.engine else {
            return;
        };
        if engine.is_closed() {
            let why = "the server accepts no more requests on this connection";
            for exchange in self.queue.drain(..) {
                let failure = Failure::new(FailureCause::Refused, why);
                self.events.push_back(exchange.fail(failure));
            }
            return;
        }
        while engine.room() > 0
            && let Some(mut exchange) = self.queue.pop_front()
        {
            let request = &exchange.request;
            match engine.request(&request.fields, &request.body) {
                Ok(stream) => {
                    exchange.response.stream = stream;
                    self.live.push(exchange);
                }
                Err(refusal) => {
                    let message = format!("the request cannot be sent: {}", refusal.message());
                    let failure = Failure::new(FailureCause::Request, message);
                    self.events.push_back(exchange.fail(failure));
                }
            }
        }
    }

    /// All that the engine had to send has gone to the kernel.
    pub(super) fn mark_sent(&mut self, now_ns: u64) {
        for exchange in &mut self.live {
            if exchange.response.sent == 0 {
                exchange.response.sent = now_ns;
            }
        }
    }

    /// Requests that were sent as early data were not accepted.
    pub(super) fn unmark_sent(&mut self) {
        for exchange in &mut self.live {
            exchange.response.sent = 0;
        }
    }

    /// Handles the engine's events of a read at this time. Returns cause and text of a failure of the connection. The
    /// cause is `Limit`, or `None` for an error of the server.
    pub(super) fn absorb(&mut self, now_ns: u64) -> Option<(Option<FailureCause>, String)> {
        while let Some(happened) = self.engine.as_mut()?.whole_event() {
            match happened {
                Happened::Head { stream, head, size } => {
                    let is_http10 = self.engine.as_ref().is_some_and(Engine::is_http10);
                    self.on(stream, Event::Head, |response| {
                        response.is_http10 = is_http10;
                        response.head = now_ns;
                        response.status = head.status;
                        response.fields = response::fields(&head);
                        response.head_bytes = size.wire_bytes;
                        response.head_text_bytes = size.text_bytes;
                    });
                }
                Happened::Data { stream, bytes } => {
                    // The window opens at once: no server waits for this client.
                    if let Some(engine) = &mut self.engine {
                        engine.consumed(stream, bytes.len() as u64);
                    }
                    let kept_bytes = self.body_limit.unwrap_or(MAX_BODY_BYTES);
                    let mut body_bytes = 0;
                    self.on(stream, Event::Data, |response| {
                        response.push(&bytes, now_ns, kept_bytes);
                        body_bytes = response.body_bytes;
                    });
                    if let Some(limit) = self.body_limit.filter(|most| body_bytes > *most as u64) {
                        let why = format!("the response is larger than {limit} bytes");
                        return Some((Some(FailureCause::Limit), why));
                    }
                }
                Happened::End { stream, .. } => {
                    if let Some(mut exchange) = self.take(stream) {
                        exchange.response.end = now_ns;
                        let done = Event::Done(exchange.token, Ok(exchange.response));
                        self.events.push_back(done);
                    }
                }
                Happened::Reset { stream, code } => {
                    let is_refusal = self.protocol().is_some_and(|one| one.is_refusal(code));
                    let (cause, why) = match is_refusal {
                        // A GOAWAY means the same for streams above its last one.
                        true => (
                            FailureCause::Refused,
                            "the server did not process the request".to_owned(),
                        ),
                        false => {
                            let why = format!("the server reset the stream, code {code}");
                            (FailureCause::Protocol, why)
                        }
                    };
                    self.lost(stream, cause, why);
                }
                Happened::Malformed { stream, what } => {
                    self.lost(stream, FailureCause::Protocol, what.message().into());
                }
                Happened::Failed(why) => return Some((None, why)),
                Happened::Interim { .. }
                | Happened::Trailers { .. }
                | Happened::Note { .. }
                | Happened::Upgraded(_)
                | Happened::Pong(_)
                | Happened::Closing { .. }
                | Happened::Eof => {}
            }
        }
        None
    }

    fn on(&mut self, stream: u32, event: fn(usize) -> Event, change: impl FnOnce(&mut Response)) {
        let mut live = self.live.iter_mut();
        if let Some(exchange) = live.find(|one| one.response.stream == stream) {
            change(&mut exchange.response);
            self.events.push_back(event(exchange.token));
        }
    }

    fn take(&mut self, stream: u32) -> Option<Exchange> {
        let mut live = self.live.iter();
        let at = live.position(|one| one.response.stream == stream)?;
        Some(self.live.remove(at))
    }

    fn lost(&mut self, stream: u32, cause: FailureCause, why: String) {
        if let Some(exchange) = self.take(stream) {
            let failure = Failure::new(cause, why);
            self.events.push_back(exchange.fail(failure));
        }
    }

    /// Ends all that have not, each with its own failure.
    pub(super) fn fail(&mut self, failure: impl Fn(&Response) -> Failure) {
        self.engine = None;
        for exchange in self.live.drain(..).chain(self.queue.drain(..)) {
            let failure = failure(&exchange.response);
            self.events.push_back(exchange.fail(failure));
        }
    }

    pub(super) fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
