//! Attempts with servers, between the exchange that requests one and the connection that gets it.
//!
//! During the turn of an exchange the tables of the loop cannot be touched, so attempts wait here until it is over.
//! Absent: connections and the pool of idle ones, which the loop has.

use std::rc::Rc;
use std::sync::Arc;

use engines::http::{Fields, ResponseHead};
use server_base::name_servers::NameServers;
use server_base::waker::{WakeQueue, Waker};
use server_upstream::connector::{BoundClient, Connector, Lookup};
use server_upstream::request::{AttemptWatch, RequestSpec, Spares, UpstreamCall, UpstreamRequest};
use server_upstream::route::Route;

use super::client_bindings::ClientBindings;
use super::names::Names;

/// An attempt that has no connection yet.
pub struct Dial {
    /// The way to its server.
    pub route: Route,
    /// The attempt.
    pub call: UpstreamCall,
    /// It shares its connection with no other.
    pub alone: bool,
}

/// Attempts and names that exchanges have requested in this turn.
pub struct Dialer {
    /// Attempts that have no connection yet.
    pub calls: Vec<Dial>,
    /// Clients with connections to servers of their own.
    pub bindings: ClientBindings,
    /// Memory for attempts.
    pub spares: Spares,
    /// Lookups of names.
    pub names: Names,
    wakers: WakeQueue,
    /// Monotonic milliseconds.
    now_ms: u64,
}

impl Dialer {
    /// Without attempts; connections are woken by way of this queue.
    pub fn new(wakers: WakeQueue) -> Self {
        Self {
            calls: Vec::new(),
            bindings: ClientBindings::default(),
            spares: Spares::default(),
            names: Names::default(),
            wakers,
            now_ms: 0,
        }
    }

    /// Sets the time, monotonic milliseconds.
    pub fn set_now(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }
}

impl Connector for Dialer {
    fn call(&mut self, route: Route, request: RequestSpec, waker: Waker) -> UpstreamRequest {
        let (ours, theirs) = (self.spares).attempt(request, waker, &self.wakers, self.now_ms);
        self.calls.push(Dial {
            route,
            call: theirs,
            alone: false,
        });
        ours
    }

    fn recycle(&mut self, watch: AttemptWatch) {
        self.spares.release(watch);
    }

    fn recycle_head(&mut self, head: Box<ResponseHead>) {
        self.spares.release_head(head);
    }

    fn fields(&mut self) -> Fields {
        self.spares.fields()
    }

    fn bound_server(&self, client: BoundClient) -> Option<Rc<[u8]>> {
        self.bindings.server(client)
    }

    fn bind_client(&mut self, client: BoundClient, server_id: Rc<[u8]>, idle: u64) {
        self.bindings.bind(client, server_id, idle);
    }

    fn resolve(
        &mut self,
        servers: Option<&Arc<NameServers>>,
        name: &str,
        timeout_ms: u64,
        waker: Waker,
    ) -> Lookup {
        let now_ms = self.now_ms;
        self.names.resolve(now_ms, servers, name, timeout_ms, waker)
    }
}
