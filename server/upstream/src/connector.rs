//! Connections to upstream servers, as handlers see them.
//!
//! A handler never opens a socket itself. It requests an attempt with one server from a [`Connector`], and gets an
//! [`UpstreamRequest`]: pieces go in, events come out, a waker announces them. The driver implements the trait with
//! sockets, a pool of idle connections and its resolver; the simulator and the tests of modules have their own.
//!
//! Source: nginx documentation, `ngx_http_proxy_module`, `ngx_http_upstream_module`.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use engines::http::{Fields, ResponseHead};

use crate::request::{AttemptWatch, RequestSpec, UpstreamRequest};
use crate::route::Route;
use server_base::name_servers::NameServers;
use server_base::waker::Waker;

/// Connects to servers and resolves names.
pub trait Connector {
    /// Begins an attempt with a server, over an idle connection of the route's pool or over a new one. It never blocks
    /// and never fails: a failure is an event of the request.
    fn call(&mut self, route: Route, request: RequestSpec, waker: Waker) -> UpstreamRequest;

    /// Takes back the memory of an attempt that has ended.
    fn recycle(&mut self, _: AttemptWatch) {}

    /// Takes back the memory of a response's head.
    fn recycle_head(&mut self, _: Box<ResponseHead>) {}

    /// Returns an empty list of fields, for a request.
    fn fields(&mut self) -> Fields {
        Fields::default()
    }

    /// Returns the identifier of the server to which a client's connection is bound.
    fn bound_server(&self, _: BoundClient) -> Option<Rc<[u8]>> {
        None
    }

    /// Binds a client's connection to the server with this identifier. Idle connections of the group
    /// ([`Pool::group`](crate::route::Pool)) are closed together with the client's connection.
    fn bind_client(&mut self, _: BoundClient, _server_id: Rc<[u8]>, _idle: u64) {}

    /// Resolves a name by these name servers or those of the system. A cached answer is available at once. Otherwise
    /// the waker is called with the answer, after at most `timeout_ms` milliseconds (0: no limit).
    fn resolve(
        &mut self,
        servers: Option<&Arc<NameServers>>,
        name: &str,
        timeout_ms: u64,
        waker: Waker,
    ) -> Lookup;
}

/// A client's connection in a group with `ntlm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundClient {
    /// `$connection`.
    pub connection: u64,
    /// The digest of the group.
    pub group: u64,
}

/// A name being resolved. Dropping it cancels the query.
#[derive(Clone, Debug, Default)]
pub struct Lookup(Rc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    answer: RefCell<Option<Result<Resolved, String>>>,
    /// Incremented with the answer.
    answers: RefCell<Option<Rc<Cell<usize>>>>,
}

/// Resolves a name for the request. Arguments: name servers, name, and timeout in milliseconds (0: none).
pub type Resolve<'a> = &'a mut dyn FnMut(Option<&Arc<NameServers>>, &str, u64) -> Lookup;

/// The addresses of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The addresses, at least one.
    pub addresses: Rc<[IpAddr]>,
    /// End of their validity, monotonic milliseconds.
    pub valid_until_ms: u64,
}

impl Lookup {
    /// A lookup without an answer so far.
    #[must_use]
    pub fn pending() -> Self {
        Self::default()
    }

    /// Returns the answer, if there is one. An error has the text for the log, such as "3: Host not found".
    pub fn answer(&self) -> Option<Result<Resolved, String>> {
        self.0.answer.borrow().clone()
    }

    /// Whether the answer is there.
    pub fn is_answered(&self) -> bool {
        self.0.answer.borrow().is_some()
    }

    /// Sets the answer. Called by the connector, which then wakes the exchange.
    pub fn complete(&self, answer: Result<Resolved, String>) {
        *self.0.answer.borrow_mut() = Some(answer);
        if let Some(answers) = self.0.answers.take() {
            answers.set(answers.get() + 1);
        }
    }

    /// Counts the answer of this lookup in a counter, which several lookups can share: now, or once it is there.
    pub(crate) fn count_in(&self, answers: &Rc<Cell<usize>>) {
        match self.is_answered() {
            true => answers.set(answers.get() + 1),
            false => drop(self.0.answers.replace(Some(Rc::clone(answers)))),
        }
    }

    /// Whether the exchange has dropped its copy of the lookup. Called by the connector, which has the other copy.
    pub fn is_abandoned(&self) -> bool {
        Rc::strong_count(&self.0) == 1
    }
}
