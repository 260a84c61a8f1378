//! Upstream servers of the site: they respond by a script and record their requests.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use engines::http::{BodyLength, Chunk, Fields, ResponseHead};
use server_base::name_servers::NameServers;
use server_base::waker::{WakeQueue, Waker};
use server_upstream::connector::{Connector, Lookup};
use server_upstream::request::{
    Failure, RequestSpec, UpstreamCall, UpstreamError, UpstreamEvent, UpstreamRequest, attempt,
};
use server_upstream::route::Route;

/// Upstream servers behind a connector; clones share their state.
#[derive(Clone, Default)]
pub(crate) struct Servers(Rc<RefCell<Script>>);

#[derive(Default)]
struct Script {
    /// Responses in HTTP/1 format, the next one first; by default an empty 200.
    answers: VecDeque<String>,
    /// Failures of the next attempts, before any response.
    failures: VecDeque<Failure>,
    sent: Vec<Sent>,
}

/// A request that a server received.
#[derive(Clone)]
pub(crate) struct Sent {
    /// Its route.
    pub(crate) route: Route,
    pub(crate) request: RequestSpec,
    call: Rc<UpstreamCall>,
}

impl Sent {
    /// The request line without the version, and the fields, a line each.
    pub(crate) fn text(&self) -> String {
        let text = |span| String::from_utf8_lossy(self.request.fields.bytes(span)).into_owned();
        let fields = &self.request.fields.fields;
        let mut lines = format!("{} {}\n", text(fields[0].value), text(fields[1].value));
        for field in &fields[2..] {
            lines.push_str(&format!("{}: {}\n", text(field.name), text(field.value)));
        }
        lines
    }

    /// Returns the parameters of an application, one per line.
    pub(crate) fn params(&self) -> String {
        let text = |span| String::from_utf8_lossy(self.request.fields.bytes(span)).into_owned();
        let fields = self.request.fields.fields.iter();
        fields
            .map(|field| format!("{}={}\n", text(field.name), text(field.value)))
            .collect()
    }

    /// The method and the target.
    pub(crate) fn line(&self) -> String {
        let text = self.text();
        text.lines().next().unwrap_or_default().to_owned()
    }

    /// The values of a field, with commas between them.
    pub(crate) fn field(&self, name: &str) -> String {
        let values = self.request.fields.named(name.as_bytes());
        let values: Vec<_> = values.map(String::from_utf8_lossy).collect();
        values.join(", ")
    }

    /// The received part of the body.
    pub(crate) fn body(&self) -> String {
        let mut body = Vec::new();
        while let Some(chunk) = self.call.take_body() {
            body.extend_from_slice(chunk.bytes());
        }
        String::from_utf8_lossy(&body).into_owned()
    }
}

impl Servers {
    /// The next request without another script gets this response.
    pub(crate) fn answer(&self, response: &str) {
        self.0.borrow_mut().answers.push_back(response.to_owned());
    }

    /// The next attempt fails like this.
    pub(crate) fn fail(&self, failure: Failure) {
        self.0.borrow_mut().failures.push_back(failure);
    }

    /// The requests since the last call.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        std::mem::take(&mut self.0.borrow_mut().sent)
    }
}

impl Connector for Servers {
    fn call(&mut self, route: Route, request: RequestSpec, waker: Waker) -> UpstreamRequest {
        let mut script = self.0.borrow_mut();
        let (ours, theirs) = attempt(request.clone(), waker, &WakeQueue::default(), 0);
        match script.failures.pop_front() {
            Some(failure) => theirs.deliver(UpstreamEvent::Failed(UpstreamError {
                failure,
                sent_bytes: 0,
                reused: false,
                untouched: true,
            })),
            None => play(&theirs, &script.answers.pop_front().unwrap_or_default()),
        }
        script.sent.push(Sent {
            route,
            request,
            call: Rc::new(theirs),
        });
        ours
    }

    fn resolve(&mut self, _: Option<&Arc<NameServers>>, _: &str, _: u64, waker: Waker) -> Lookup {
        let lookup = Lookup::pending();
        lookup.complete(Err("3: Host not found".to_owned()));
        waker.wake();
        lookup
    }
}

/// Plays a response that is complete at once. Lines that begin with "!" are messages of an application, before the head
/// and after the body.
fn play(call: &UpstreamCall, mut text: &str) {
    let note = |line: &str| call.deliver(UpstreamEvent::Note(line.as_bytes().to_vec()));
    while let Some((line, rest)) = text.strip_prefix('!').and_then(|t| t.split_once('\n')) {
        note(line);
        text = rest;
    }
    let (text, last_note) = text.split_once("\n!").unwrap_or((text, ""));
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let mut response = ResponseHead {
        status: lines
            .next()
            .map_or(200, |line| line.parse().expect("a status")),
        body: BodyLength::Length(body.len() as u64),
        ..ResponseHead::default()
    };
    for line in lines {
        let (name, value) = line.split_once(": ").expect("a field");
        response.push(name.as_bytes(), value.as_bytes());
    }
    let (body, trailers) = body.split_once("\n--\n").unwrap_or((body, ""));
    call.record(|facts| {
        facts.connected_ms = Some(0);
        facts.head_ms = Some(0);
    });
    call.deliver(UpstreamEvent::Head(Box::new(response), head.len() as u64));
    if !body.is_empty() {
        call.deliver(UpstreamEvent::Data(Chunk::Owned(body.as_bytes().to_vec())));
    }
    if !last_note.is_empty() {
        note(last_note);
    }
    if let Some((name, value)) = trailers.split_once(": ") {
        let mut fields = Fields::default();
        fields.push(name.as_bytes(), value.as_bytes());
        call.deliver(UpstreamEvent::Trailers(fields));
    }
    call.deliver(UpstreamEvent::End);
}
