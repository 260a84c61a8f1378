//! An exchange: one request and its response, from the first byte of the head to the line in the log.
//!
//! Exchanges are boxed, pooled by the driver and reused: [`Exchange::begin`] makes one ready, buffers keep their
//! capacity. Nothing here knows which protocol carries the exchange or how its connection waits.

mod action;
mod arrival;
mod body;
mod body_source;
pub mod cache_record;
mod content_type;
mod context;
mod continued;
mod detached;
mod due;
mod early_responses;
mod extensions;
mod log;
mod matching;
mod part;
mod progress;
mod rate;
mod reply;
pub(crate) mod request_body;
mod response;
mod route;
pub(crate) mod stage_queue;
pub(crate) mod subrequest;
pub(crate) mod subrequest_queue;
mod target;
mod tls;
pub(crate) mod upstream;
mod vars;
mod wait;

use std::net::SocketAddr;
use std::rc::Rc;

use engines::http::RequestHead;
use engines::proxy_protocol;
use server_base::clock::Clock;
use server_base::waker::WakeKey;

use crate::conf_core::CoreLoc;
use crate::http::{Http, LocalHttp, PortAddr};
use crate::settings_set::Conf;
use crate::timing::{Sampled, Timings};
use crate::trace::Trace;

pub use action::Action;
pub use arrival::OnArrival;
pub use body::{BodyStage, Broken, Pulled, ResponseBody, StageStatus};
pub(crate) use body_source::BrokenSource;
pub use body_source::{BodyRead, BodySource};
pub use content_type::ContentType;
pub use context::{BODY_BUDGET_BYTES, Ctx};
pub(crate) use detached::Logging;
pub use detached::{DetachedEnd, DetachedRequest, Queues, Rest};
pub use early_responses::{EarlyResponses, HINTS_MAX};
pub use extensions::{DropGuard, Extensions};
use part::part;
pub use progress::{RequestInput, RequestProgress, State};
pub use rate::Rate;
pub use reply::{Reply, ReplyParts};
pub use request_body::CollectOptions;
pub use response::{OnEnd, ResponseState};
pub use route::{MAX_URI_CHANGES, RequestRoute};
pub use server_base::context::Env;
pub use server_base::peer::Peer;
pub use subrequest::{
    Answer, MAX_SUBREQUESTS, MAX_SUBREQUESTS_DEEP, Subrequest, SubrequestState, TooMany,
};
pub use target::{RequestTarget, UriOrigin};
pub use tls::Tls;
pub use upstream::Upstream;
pub use vars::RequestVars;
pub use wait::Wait;

/// Whether a server of an address, by its index, offers a protocol.
pub type Offers = fn(&Http, &PortAddr, usize) -> bool;

/// Properties of the connection that carries an exchange.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Address of the peer.
    pub peer: Peer,
    /// Our address, if it is known.
    pub local: Option<SocketAddr>,
    /// `$connection`.
    pub connection: u64,
    /// `$connection_requests`: 1 for the first.
    pub requests: u64,
    /// When the connection was accepted, monotonic milliseconds.
    pub since_ms: u64,
    /// The head was already there when the previous response ended.
    pub pipelined: bool,
    /// The client accepts pushed responses.
    pub may_push: bool,
    /// Whether a server offers the protocol of the connection; `None` for a protocol that all servers offer.
    pub offers: Option<Offers>,
    /// `debug_connection` names the peer: its connection is logged at level debug, everywhere.
    pub debug: bool,
    /// The number of its socket, which is open as long as its exchanges are.
    pub socket: i32,
    /// The target of the exchange's [`Waker`](server_base::waker::Waker).
    pub wake: WakeKey,
}

part! {
    /// One request and its response.
    pub struct Exchange(http: Rc<LocalHttp>, client: Client) {
        /// The connection.
        pub client: Client = client => keep,
        /// The peer of the connection, if `client` has the address of a client behind it.
        pub proxy: Option<Peer>,
        /// The header of the PROXY protocol that the connection began with.
        pub proxied: Option<Rc<proxy_protocol::Header>>,
        /// The TLS connection that carries it, if there is one.
        pub tls: Option<Rc<Tls>>,
        /// The request head.
        pub head: RequestHead => keep,
        /// The target of the request: method, host, URI and arguments.
        pub target: RequestTarget => reset,
        /// The received part of the request besides its head.
        pub input: RequestInput => reset,
        /// The server and location of the request.
        pub route: RequestRoute = RequestRoute::empty(http) => keep,
        /// Its progress.
        pub progress: RequestProgress => reset,
        /// Values of variables, and captures.
        pub vars: RequestVars => reset,
        /// Values that modules keep with the exchange until it ends.
        pub extensions: Extensions => clear,
        /// The response being decided; [`Exchange::clear_reply`] resets it, and the body.
        pub reply: Reply = Reply::empty() => keep,
        /// The response as it is sent.
        pub response: ResponseState => reset,
        /// The response body.
        pub body: ResponseBody = ResponseBody::empty() => keep,
        /// The record of the servers that it is passed to.
        pub upstream: Option<Box<Upstream>> => rare,
        /// The memory of that of an earlier request.
        pub(crate) spare_upstream: Option<Box<Upstream>> => keep,
        /// Its place among subrequests, and those of its own.
        pub subrequests: SubrequestState => keep,
        /// When the head was complete, monotonic milliseconds.
        pub started_ms: u64 => keep,
        /// The begin of the exchange on the wall clock, milliseconds since 1970.
        pub started_unix_ms: u64 => keep,
        /// Times of its stages, if the configuration uses them.
        pub timings: Timings,
        /// The kernel's times of its first byte, if the response is sampled.
        pub sampled: Sampled => keep,
        /// A record of its steps; never while serving.
        pub trace: Option<Rc<Trace>> => keep,
    }
}

impl Exchange {
    /// An empty exchange.
    pub fn new(http: Rc<LocalHttp>, client: Client) -> Self {
        Self::empty(http, client)
    }

    /// Makes the exchange ready for a new request; buffers keep their capacity. It is new, or its reply was cleared when the
    /// last one was over ([`Exchange::clear_reply`]).
    #[inline(always)] // Every request comes through here, from one place of the driver.
    pub fn begin(&mut self, http: Rc<LocalHttp>, port: usize, client: Client, clock: &Clock) {
        debug_assert!(self.body.chunks.is_empty() && self.body.source.is_none());
        debug_assert!(self.body.stages.is_empty());
        let waker = &self.progress.waker;
        debug_assert!(waker.is_none(), "it went with the last request");
        debug_assert!(self.reply.status == 0 && self.reply.fields.fields.is_empty());
        // Field by field, not by `new`: the buffers keep their memory, and a copy of the whole would cost more than the request.
        self.reset();
        self.client = client;
        self.vars.resize(http.vars.slots);
        self.route.reset();
        self.route.http = http;
        self.route.port = port;
        self.subrequests.begin();
        self.started_ms = clock.mono_ms;
        self.started_unix_ms = clock.unix_ms;
    }

    /// The status that logs and metrics have: that of the error being served, else that of the reply.
    pub fn status(&self) -> u16 {
        match self.route.err_status {
            0 => self.reply.status,
            status => status,
        }
    }

    /// Takes the connection's addresses, its TLS and the server of another exchange of the same client.
    pub(crate) fn copy_client(&mut self, of: &Self) {
        self.proxy = of.proxy;
        self.proxied.clone_from(&of.proxied);
        self.tls.clone_from(&of.tls);
        self.target.host_port = of.target.host_port;
        self.route.port = of.route.port;
        self.route.server = of.route.server;
        self.route.location = of.route.own_server().location;
    }

    /// Resets all decisions about the response.
    pub fn clear_reply(&mut self) {
        self.reply.reset();
        self.drop_body();
    }

    /// Drops the body and its stages.
    pub fn drop_body(&mut self) {
        self.body.reset();
        self.subrequests.drop_own();
    }

    /// Resets state that an internal redirect does not keep; `add_header` fields of an error stay with it.
    pub fn clear_for_redirect(&mut self) {
        self.route.uri_changed = false;
        self.reply.headers_added = false;
        self.reply.source = None;
        self.drop_body();
    }

    /// The server's settings of one module.
    pub fn srv<'h, T: Conf>(&self, http: &'h Http) -> &'h T {
        http.servers[self.route.server].confs.get()
    }

    /// The location's settings of one module.
    pub fn loc<'h, T: Conf>(&self, http: &'h Http) -> &'h T {
        http.locations[self.route.location].confs.get()
    }

    /// The location's settings of the core: a faster [`Self::loc`].
    #[inline]
    pub fn core_loc<'h>(&self, http: &'h Http) -> &'h CoreLoc {
        &http.locations[self.route.location].core
    }
}

#[cfg(test)]
mod tests {
    use super::Exchange;

    #[test]
    fn an_exchange_takes_no_more_memory_than_is_known() {
        // Flags of a part are declared together: elsewhere one more flag may take eight bytes of padding.
        assert!(size_of::<Exchange>() <= 1536, "{}", size_of::<Exchange>());
    }
}
