//! Requests of the server itself, without a client: mirrors, cache updates, health checks, `post_action`.
//!
//! A [`DetachedRequest`] is made from the request of a client or from a head alone. It owns copies of the head, the host and
//! the variables, so it may outlive the request that started it. Its response is read to the end, or to the limits of
//! [`Rest`], and dropped. An observer sees the ended exchange. [`DetachedRequest::start`] queues it for the loop of the thread ([`crate::detached`]).
//!
//! As subrequests in nginx, it skips the access phase, and filters that change a body for a client. It has a request body
//! if [`DetachedRequest::with_body_of`] shares that of its parent, which must have been collected.
//!
//! Source: nginx development guide, "Subrequests"; nginx documentation, `ngx_http_mirror_module`.

use std::cell::RefCell;
use std::rc::Rc;

use engines::http::{BodyLength, Method, RequestHead};
use server_base::clock::Clock;
use server_base::peer::Peer;
use server_base::transport::NO_SOCKET;
use server_base::waker::{WakeKey, WakeQueue};

use super::subrequest::{TooMany, check_depth};
use super::{Client, Ctx, Exchange};
use crate::decision::Phase;
use crate::http::LocalHttp;

/// A request without a client.
pub struct DetachedRequest {
    /// The exchange.
    pub exchange: Box<Exchange>,
    /// Time of its end at the latest, monotonic milliseconds; `u64::MAX`: its own timeouts are enough.
    pub until_ms: u64,
    /// The lines it gets in the access log of its location.
    pub(crate) logging: Logging,
    /// Limits of its response behind the head.
    pub rest: Rest,
    observer: Option<Observer>,
}

/// Sees an ended detached exchange, before it is logged.
type Observer = Box<dyn FnOnce(&mut Exchange, DetachedEnd)>;

/// The line of a detached exchange in the access log of its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logging {
    /// None.
    None,
    /// One if `log_subrequest` is on.
    AsSubrequest,
    /// One.
    Always,
}

/// Limits of a response behind its head. At a limit the exchange ends as if the response were complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Bytes that are still read.
    pub bytes: u64,
    /// Time after the head, milliseconds.
    pub ms: u64,
}

impl Rest {
    /// The response is read to its end.
    pub const ALL: Self = Self {
        bytes: u64::MAX,
        ms: u64::MAX,
    };
    /// Nothing of the body is used: a small one is read, since its connection can then be kept.
    pub const UNUSED: Self = Self {
        bytes: UNUSED_BYTES,
        ms: UNUSED_MS,
    };
}

/// The way in which a detached exchange has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetachedEnd {
    /// Its response was read to the end, or to a limit of [`Rest`].
    Complete,
    /// Its response broke off, or there was none.
    Broken,
    /// It took too long ([`DetachedRequest::within`]).
    TimedOut,
    /// The thread or its configuration ends.
    Closed,
}

impl DetachedRequest {
    /// A request with this head in a server, by its index. The host and the target of the head are not read:
    /// [`RequestTarget::set_uri`](super::RequestTarget::set_uri) sets the URI.
    pub fn new(
        http: &Rc<LocalHttp>,
        (port, server): (usize, usize),
        head: RequestHead,
        clock: &Clock,
    ) -> Self {
        let mut x = Box::new(Exchange::new(Rc::clone(http), nobody(clock)));
        x.begin(Rc::clone(http), port, x.client, clock);
        x.head = head;
        x.head.body = BodyLength::None;
        x.target.method = x.head.method;
        x.route.server = server;
        x.route.location = http.servers[server].location;
        x.route.internal = true;
        x.progress.phase = Phase::ServerRewrite;
        x.subrequests.detach(1);
        Self {
            exchange: x,
            until_ms: u64::MAX,
            logging: Logging::None,
            rest: Rest::ALL,
            observer: None,
        }
    }

    /// A request of the same client to the same server as `x`, with a copy of its head, host and variables. Limits that have
    /// counted `x` do not count the copy, as in nginx.
    ///
    /// # Errors
    /// Requests have started each other too many times; the log has a line.
    pub fn child_of(x: &Exchange, cx: &Ctx<'_>, uri: &[u8], args: &[u8]) -> Result<Self, TooMany> {
        check_depth(x, uri)?;
        let place = (x.route.port, x.route.server);
        let mut child = Self::new(&x.route.http, place, x.head.clone(), cx.clock);
        let own = &mut child.exchange;
        own.client = Client {
            may_push: false,
            // Its socket may be that of another connection before the request ends.
            socket: NO_SOCKET,
            wake: WakeKey::default(),
            ..x.client
        };
        own.copy_client(x);
        own.target.host.clone_from(&x.target.host);
        own.target.set_uri(uri);
        own.target.set_args(args);
        own.vars.copy_of(&x.vars);
        own.subrequests.detach(x.subrequests.depth() + 1);
        Ok(child)
    }

    /// With another method.
    #[must_use]
    pub fn method(mut self, method: Method) -> Self {
        self.exchange.target.method = method;
        self
    }

    /// Handled by the content handlers of a location of its server, by its index, without a search.
    #[must_use]
    pub fn in_location(mut self, location: usize) -> Self {
        self.exchange.route.location = location;
        self.exchange.progress.phase = Phase::Content;
        self
    }

    /// Ended after this time at the latest, milliseconds.
    #[must_use]
    pub fn within(mut self, ms: u64) -> Self {
        self.until_ms = self.exchange.started_ms.saturating_add(ms);
        self
    }

    /// With the request body of `x`, if that was collected whole. Nothing is copied but, at the first call, a body in
    /// memory.
    #[must_use]
    pub fn with_body_of(mut self, x: &mut Exchange) -> Self {
        let shared = x.input.body.as_mut().and_then(|body| body.share());
        if let Some(body) = shared {
            self.exchange.head.body = x.head.body;
            self.exchange.input.body = Some(Box::new(body));
        }
        self
    }

    /// With a line in the access log of its location.
    #[must_use]
    pub fn logged(mut self) -> Self {
        self.logging = Logging::Always;
        self
    }

    /// With a line in the access log of its location if `log_subrequest` is on.
    #[must_use]
    pub fn logged_as_subrequest(mut self) -> Self {
        self.logging = Logging::AsSubrequest;
        self
    }

    /// Ended after the head of its response, except for the rest that [`Rest::UNUSED`] allows.
    #[must_use]
    pub fn head_only(mut self) -> Self {
        self.rest = Rest::UNUSED;
        self
    }

    /// Shown to `observer` when it has ended, whichever way.
    #[must_use]
    pub fn observed_by(
        mut self,
        observer: impl FnOnce(&mut Exchange, DetachedEnd) + 'static,
    ) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// Queues the request: it begins in this turn of the loop if possible, after the handlers that run now.
    pub fn start(self, cx: &Ctx<'_>) {
        cx.queues.start(self);
    }

    /// Shows the ended exchange to its observer.
    pub fn observe(&mut self, end: DetachedEnd) {
        if let Some(observer) = self.observer.take() {
            observer(&mut self.exchange, end);
        }
    }
}

/// Bytes of an unused response that are read behind its head.
const UNUSED_BYTES: u64 = 64 << 10;
/// Time for reading the rest of an unused response, milliseconds.
const UNUSED_MS: u64 = 1000;

/// Queues of a thread, emptied by its loop.
#[derive(Default)]
pub struct Queues {
    /// Exchanges and connections that were woken.
    pub wakers: WakeQueue,
    /// Detached requests that are to begin.
    detached: RefCell<Vec<DetachedRequest>>,
    /// The key that makes the loop look at `detached`.
    look: WakeKey,
}

impl Queues {
    /// Queues of a thread; it begins detached requests when `look` is woken.
    pub fn new(wakers: WakeQueue, look: WakeKey) -> Self {
        Self {
            wakers,
            detached: RefCell::default(),
            look,
        }
    }

    /// Queues a detached request.
    pub fn start(&self, request: DetachedRequest) {
        self.detached.borrow_mut().push(request);
        self.wakers.push(self.look);
    }

    /// Takes the detached requests that are to begin.
    pub fn take_detached(&self) -> Vec<DetachedRequest> {
        self.detached.take()
    }
}

/// The client of a request that has none.
fn nobody(clock: &Clock) -> Client {
    Client {
        peer: Peer::Unix,
        local: None,
        connection: 0,
        requests: 0,
        since_ms: clock.mono_ms,
        pipelined: false,
        may_push: false,
        offers: None,
        debug: false,
        socket: NO_SOCKET,
        wake: WakeKey::default(),
    }
}
