//! The request body on its way to servers: collected first, or passed on as it comes.
//!
//! A collected body is kept, so that it can be sent to another server again. A body that is passed on as it comes is
//! sent to one server alone, as in nginx; its beginning is kept until there is a response, should the connection turn
//! out to have been dead.
//!
//! Source: nginx documentation, `proxy_request_buffering`, `proxy_pass_request_body`, `proxy_set_body`.

use std::rc::Rc;

use engines::http::{BodyLength, Chunk, FileRange, Version};
use server_upstream::request::{BODY_WINDOW_BYTES, UpstreamRequest};

use super::cache::explained;
use super::conf::{RequestBody, UpstreamConf};
use super::run::{Flow, Run, Step};
use crate::exchange::{Ctx, Exchange, State, Wait};
use crate::handler::Content;
use crate::http::Http;
use crate::request_body::stream::{self, Piece};
use crate::request_body::{CollectOptions, Collected, collect};

/// A request body as it is sent.
pub(super) enum Body {
    None,
    /// It is known whole, and its pieces are sent to each server.
    Whole(Vec<Chunk>, u64),
    /// It is passed on as it comes.
    Stream(Stream),
}

/// A body that is passed on as it comes.
#[derive(Default)]
pub(super) struct Stream {
    /// The beginning of the body that was passed on, at most [`KEPT_BYTES`].
    kept: Vec<Chunk>,
    kept_bytes: u64,
    /// More was passed on, and is kept nowhere.
    is_gone: bool,
    ended: bool,
}

impl Body {
    /// Its length as it is announced to servers.
    pub(super) fn length(&self, x: &Exchange) -> BodyLength {
        match self {
            Self::None => BodyLength::None,
            Self::Whole(_, length) => BodyLength::Length(*length),
            Self::Stream(_) => match (x.head.body, x.body_size()) {
                (BodyLength::Unknown, Some(bytes)) => BodyLength::Length(bytes),
                (announced, _) => announced,
            },
        }
    }

    /// Whether some of it cannot be sent again.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Stream(stream) if stream.is_gone)
    }

    /// Whether it is passed on as it comes.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    /// Drops the kept part of a request body, once a response has begun and no further attempt is made.
    pub(super) fn forget(&mut self) {
        if let Self::Stream(stream) = self {
            stream.forget();
        }
    }

    fn bytes(bytes: Rc<[u8]>) -> Self {
        let length = bytes.len() as u64;
        let pieces = match length {
            0 => Vec::new(),
            _ => vec![Chunk::from(bytes)],
        };
        Self::Whole(pieces, length)
    }

    /// Begins to send it in a new attempt.
    pub(super) fn begin(&self, request: &UpstreamRequest) {
        match self {
            Self::None => {}
            Self::Whole(pieces, _) => {
                for piece in pieces {
                    request.send(piece.clone());
                }
                request.end(None);
            }
            Self::Stream(stream) => {
                for piece in &stream.kept {
                    request.send(piece.clone());
                }
                if stream.ended {
                    request.end(None);
                }
            }
        }
    }
}

impl Stream {
    /// Passes received bytes on, as far as there is room.
    ///
    /// # Errors
    /// The body cannot be had: the status that answers the request.
    pub(super) fn pump(
        &mut self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        request: &UpstreamRequest,
    ) -> Result<(), u16> {
        while !self.ended && request.room() > 0 {
            match stream::take(x, cx) {
                Piece::Chunk(chunk) => request.send(self.keep(chunk)),
                Piece::Later => return Ok(()),
                Piece::End => {
                    self.ended = true;
                    request.end(None);
                }
                Piece::Failed(status) => return Err(status),
            }
        }
        Ok(())
    }

    /// Keeps a piece that is passed on, if there is room for it.
    fn keep(&mut self, chunk: Chunk) -> Chunk {
        self.kept_bytes += chunk.len();
        if self.kept_bytes > KEPT_BYTES {
            self.forget();
        }
        if self.is_gone {
            return chunk;
        }
        let chunk = match chunk {
            Chunk::Owned(bytes) => Chunk::from(Rc::<[u8]>::from(bytes)),
            other => other,
        };
        self.kept.push(chunk.clone());
        chunk
    }

    fn forget(&mut self) {
        self.is_gone = true;
        self.kept = Vec::new();
    }

    /// From here on it is one direction of a tunnel, and nothing of it is sent again.
    pub(super) fn tunnel() -> Self {
        Self {
            is_gone: true,
            ..Self::default()
        }
    }
}

/// Collects the body, or leaves it to be passed on.
pub(super) fn step(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Flow {
    if !run.gateway.takes_body() {
        return Flow::Next(after(run.conf(x, &x.route.http), x));
    }
    if x.is_subrequest() || x.is_body_refused() {
        // A subrequest may send a collected body, and reads none from the client. A body that was refused is not
        // read for the location of the error page, as in nginx.
        return take_body(run, x, cx);
    }
    // Some of it went to the servers of another location: it is not taken piece by piece once more.
    let passed_on = stream::taken_bytes(x) > 0;
    if passed_on && !needs_body(run, x, &x.route.http) {
        return take_body(run, x, cx);
    }
    if !passed_on && streams(run, x, &x.route.http) {
        run.body = Body::Stream(Stream::default());
        if x.head.body == BodyLength::Unknown && x.body_size().is_none() {
            // Input behind the head is delivered before the wake. If all of the body is there, its length is announced:
            // an application of FastCGI reads no body without one.
            x.waker(cx).wake();
            x.progress.state = State::Waiting(Wait::woken());
            return Flow::Wait(after(run.conf(x, &x.route.http), x));
        }
        return Flow::Next(after(run.conf(x, &x.route.http), x));
    }
    if x.head.body == BodyLength::None {
        return take_body(run, x, cx);
    }
    let plan = CollectOptions::of(x.route.core_loc());
    match collect(x, cx, &plan) {
        Collected::Wait => return Flow::Wait(Step::Body),
        Collected::Status(status) => return Flow::Done(Content::Status(status)),
        Collected::Done => {}
    }
    take_body(run, x, cx)
}

/// Takes the collected body, or the body that the configuration sets instead.
fn take_body(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) -> Flow {
    let bytes = run.gateway.body(x, cx);
    let conf = run.conf(x, &x.route.http);
    let next = after(conf, x);
    run.body = match (bytes, conf.request.body) {
        (Some(bytes), _) => Body::bytes(bytes.into()),
        (None, RequestBody::Dropped) => Body::None,
        (None, RequestBody::Whole | RequestBody::Streamed) => collected_body(x),
    };
    Flow::Next(next)
}

/// The step behind the request body.
fn after(conf: &UpstreamConf, x: &Exchange) -> Step {
    match conf.cache {
        None => {
            explained::without_cache(x);
            Step::Choose
        }
        Some(_) => Step::Look,
    }
}

/// Whether the client's body is part of the request: it is to be sent, and the request is the client's own, not the
/// `GET` of an error page.
fn needs_body(run: &Run, x: &Exchange, http: &Http) -> bool {
    x.target.method == x.head.method
        && run.conf(x, http).request.body != RequestBody::Dropped
        && !run.gateway.has_body(x, http)
}

/// Whether the body is passed on as it comes.
fn streams(run: &Run, x: &Exchange, http: &Http) -> bool {
    let can_be = match x.head.body {
        BodyLength::None => false,
        // Over protocols with streams its end may be yet to come.
        BodyLength::Length(0) => x.head.version > Version::Http11,
        BodyLength::Length(_) => true,
        BodyLength::Unknown => run.gateway.sends_unknown_length(x, http),
    };
    // A body that was collected for another handler cannot be received again.
    can_be
        && run.conf(x, http).request.body == RequestBody::Streamed
        && !run.gateway.has_body(x, http)
        && x.body_bytes().is_none()
        && x.body_file().is_none()
}

/// The body that has been collected, if any was.
fn collected_body(x: &Exchange) -> Body {
    if let Some(bytes) = x.shared_body() {
        return Body::bytes(Rc::clone(bytes));
    }
    if let Some(bytes) = x.body_bytes() {
        return Body::bytes(bytes.into());
    }
    let Some(file) = x.body_file() else {
        return Body::None;
    };
    let range = FileRange {
        file: Rc::clone(&file.file),
        offset: 0,
        len: file.len,
    };
    Body::Whole(vec![Chunk::File(range)], file.len)
}

/// Bytes of a body that are kept while they are passed on: as many as wait for a connection.
const KEPT_BYTES: u64 = BODY_WINDOW_BYTES;
