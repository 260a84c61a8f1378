//! The record of the servers that an exchange is passed to: for variables, logs and modules that read their answers.
//!
//! It is kept until the exchange is logged, over internal redirects too: each pass to servers adds its attempts. The steps of
//! a pass are in [`upstream`](crate::upstream); the record keeps their state as a [`Pass`], so that an exchange does not depend
//! on them.

use std::rc::Rc;

use engines::http::{Fields, ResponseHead};
use server_upstream::connector::Connector;
use server_upstream::peer_stats::AttemptFigures;
use server_upstream::request::{AttemptFacts, AttemptWatch};
use server_upstream::times::AttemptTimes;

use super::cache_record::CacheRecord;
use super::{Ctx, Exchange};
use crate::decision::Content;

/// The record of the servers that an exchange is passed to.
#[derive(Default)]
pub struct Upstream {
    entries: Vec<Entry>,
    /// The head of the last response.
    pub head: Option<Box<ResponseHead>>,
    /// Its trailer section.
    pub trailers: Fields,
    /// `X-Accel-Charset`; empty for none.
    pub charset: Vec<u8>,
    /// `X-Accel-Expires`; empty for none.
    pub expires: Vec<u8>,
    /// The part of the cache in the request.
    pub cache: Option<Box<CacheRecord>>,
    /// The server that was chosen last.
    server: Option<Server>,
    /// The URI of the request to the server.
    uri: Vec<u8>,
    /// The words of the log about the health check; `None` for other exchanges.
    pub(crate) check: Option<Box<str>>,
    /// The pass that waits, or has a response that is pulled.
    pub(crate) pass: Option<Box<dyn Pass>>,
}

/// A pass to servers, from the first run of the content handler to the end of the response.
pub(crate) trait Pass {
    /// Whether there is no response yet.
    fn is_open(&self) -> bool;

    /// Continues after a wait.
    fn resume(self: Box<Self>, x: &mut Exchange, cx: &mut Ctx<'_>) -> Content;

    /// Takes arrivals while the response is pulled.
    fn arrived(&mut self, x: &mut Exchange, cx: &mut Ctx<'_>);

    /// Ends an attempt in progress and counts it, for instance if the client has left in the middle of the response.
    fn close(&mut self, x: &mut Exchange, cx: &mut Ctx<'_>);

    /// Whether the response is being stored as a file.
    fn is_storing(&self) -> bool;

    /// Ends it. An attempt that is not over is given up.
    fn end(self: Box<Self>);
}

/// Ends the last attempt and the pass of an exchange that ends, if there are any, and those of its subrequests.
pub(crate) fn close(x: &mut Exchange, cx: &mut Ctx<'_>) {
    if x.subrequests.has_any() {
        close_subrequests(x, cx);
    }
    let Some(upstream) = &mut x.upstream else {
        return;
    };
    let pass = upstream.pass.take();
    let pass = pass.map(|mut pass| {
        pass.close(x, cx);
        pass
    });
    if let Some(upstream) = &mut x.upstream {
        upstream.close(cx.clock.mono_ms);
        if upstream.cache.is_some() {
            upstream.count_cached();
        }
        upstream.pass = pass;
    }
}

/// Ends the attempts of subrequests that are not over, since the client has left.
#[cold]
fn close_subrequests(x: &mut Exchange, cx: &mut Ctx<'_>) {
    if let Some(mut child) = x.subrequests.awaited.take() {
        x.with_parent_state(&mut child, |child| close(child, cx));
        x.subrequests.awaited = Some(child);
    }
    x.with_queued(|child| close(child, cx));
}

struct Server {
    scheme: &'static str,
    /// Its address.
    name: Rc<[u8]>,
    /// Its name in the configuration.
    server: Rc<[u8]>,
    is_unix: bool,
}

/// An attempt, or the separator of two passes.
pub(crate) enum Entry {
    Attempt(Attempt),
    /// An internal redirect led to other servers.
    Redirect,
}

/// An attempt with a server.
pub(crate) struct Attempt {
    /// Its address, or the name of a group without a server that lives.
    pub(crate) name: Rc<[u8]>,
    /// The status of its response, or that of its failure; 0 while there is none.
    pub(crate) status: u16,
    pub(crate) started_ms: u64,
    pub(crate) head_ms: Option<u64>,
    pub(crate) ended_ms: Option<u64>,
    /// Time in the queue of the group before it, milliseconds; `None`: it was not queued.
    pub(crate) queued_ms: Option<u64>,
    /// Bytes of the response body.
    pub(crate) body_bytes: u64,
    watch: Option<AttemptWatch>,
}

impl Attempt {
    /// The connection's facts of the attempt.
    pub(crate) fn facts(&self) -> AttemptFacts {
        self.watch
            .as_ref()
            .map_or_else(AttemptFacts::default, AttemptWatch::facts)
    }

    /// Returns the time from the start to the response head, milliseconds, if there was one.
    pub(crate) fn header_ms(&self) -> Option<u64> {
        Some(self.head_ms?.saturating_sub(self.started_ms))
    }

    /// Returns the figures of an attempt that has ended, for counters of its server.
    pub(crate) fn figures(&self) -> AttemptFigures {
        let facts = self.facts();
        let ended_ms = self.ended_ms.unwrap_or(self.started_ms);
        AttemptFigures {
            status: self.status,
            head_ms: self.header_ms(),
            response_ms: Some(ended_ms.saturating_sub(self.started_ms)),
            sent_bytes: facts.sent_bytes,
            received_bytes: facts.received_bytes,
            handshake: facts.handshake,
        }
    }

    /// Returns the times of an attempt that has ended, if it brought a response head.
    pub(crate) fn times(&self) -> Option<AttemptTimes> {
        Some(AttemptTimes {
            header_ms: self.header_ms()?,
            response_ms: self.ended_ms?.saturating_sub(self.started_ms),
        })
    }
}

impl Exchange {
    /// Whether it is a health check of a server.
    pub fn is_health_check(&self) -> bool {
        let upstream = self.upstream.as_ref();
        upstream.is_some_and(|upstream| upstream.check.is_some())
    }
}

impl Upstream {
    /// Empties it for another exchange. An unfinished attempt is given up; the memory of the others returns to the
    /// connector.
    pub fn recycle(&mut self, connector: &mut dyn Connector) {
        if let Some(pass) = self.pass.take() {
            pass.end();
        }
        for entry in self.entries.drain(..) {
            if let Entry::Attempt(attempt) = entry
                && let Some(watch) = attempt.watch
            {
                connector.recycle(watch);
            }
        }
        if let Some(head) = self.head.take() {
            connector.recycle_head(head);
        }
        self.trailers = Fields::default();
        self.charset.clear();
        self.expires.clear();
        self.cache = None;
        self.server = None;
        self.uri.clear();
        self.check = None;
    }

    /// Whether the response is being stored as a file, so that it is useful without a client.
    pub(crate) fn is_storing(&self) -> bool {
        self.pass.as_ref().is_some_and(|pass| pass.is_storing())
    }

    /// Begins to pass the exchange on.
    pub(crate) fn begin_pass(&mut self) {
        if !self.entries.is_empty() {
            self.entries.push(Entry::Redirect);
        }
        self.head = None;
        self.trailers.clear();
        self.cache = None;
        self.server = None;
        self.uri.clear();
    }

    /// A server was chosen.
    pub(crate) fn choose(
        &mut self,
        scheme: &'static str,
        name: &Rc<[u8]>,
        server: &Rc<[u8]>,
        is_unix: bool,
    ) {
        self.server = Some(Server {
            scheme,
            name: Rc::clone(name),
            server: Rc::clone(server),
            is_unix,
        });
    }

    /// Sets the URI of the requests to the servers.
    pub(crate) fn set_uri(&mut self, uri: &[u8]) {
        self.uri.clear();
        self.uri.extend_from_slice(uri);
    }

    /// An attempt begins.
    pub(crate) fn begin_attempt(
        &mut self,
        name: Rc<[u8]>,
        now_ms: u64,
        watch: Option<AttemptWatch>,
    ) {
        self.head = None;
        self.trailers.clear();
        self.entries.push(Entry::Attempt(Attempt {
            name,
            status: 0,
            started_ms: now_ms,
            head_ms: None,
            ended_ms: None,
            queued_ms: None,
            body_bytes: 0,
            watch,
        }));
    }

    /// The attempt that began last.
    pub(crate) fn last(&mut self) -> Option<&mut Attempt> {
        match self.entries.last_mut()? {
            Entry::Attempt(attempt) => Some(attempt),
            Entry::Redirect => None,
        }
    }

    /// The last attempt has ended, if it had not before.
    pub fn close(&mut self, now_ms: u64) {
        if let Some(attempt) = self.last() {
            attempt.ended_ms.get_or_insert(now_ms);
        }
    }

    /// Counts the request for its cache.
    #[cold]
    fn count_cached(&mut self) {
        let received_bytes = self.last().map_or(0, |attempt| attempt.body_bytes);
        if let Some(cache) = &mut self.cache {
            cache.count(received_bytes);
        }
    }

    /// Ends the pass and the last attempt, if they had not ended. The record of the attempts stays.
    pub(crate) fn end_pass(&mut self, now_ms: u64) {
        self.close(now_ms);
        if let Some(pass) = self.pass.take() {
            pass.end();
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The address of the server that was chosen last.
    pub(crate) fn last_name(&self) -> Option<&[u8]> {
        self.server.as_ref().map(|server| &*server.name)
    }

    /// The name in the configuration of the server that was chosen last.
    pub(crate) fn last_server(&self) -> Option<&[u8]> {
        self.server.as_ref().map(|server| &*server.server)
    }

    /// Whether the last attempt brought a response with this status.
    pub fn has_status(&self, status: u16) -> bool {
        matches!(self.entries.last(), Some(Entry::Attempt(attempt)) if attempt.status == status)
    }

    /// The URL of the request to the server of the last attempt.
    pub fn url(&self) -> Option<Vec<u8>> {
        let server = self.server.as_ref()?;
        let separator: &[u8] = if server.is_unix { b":" } else { b"" };
        let scheme = server.scheme.as_bytes();
        Some([scheme, &server.name, separator, &self.uri].concat())
    }
}
