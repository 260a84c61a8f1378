//! Groups of servers, and which of them is tried next.
//!
//! A group is data of the configuration ([`Group`]); how its servers fare is state of each thread ([`Peers`]), which begins
//! anew with each configuration, as in nginx without `zone`.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`.

use std::sync::Arc;

use server_base::connector::{Pool, UpstreamAddr};

use super::gateway::Target;
use crate::exchange::{Ctx, Exchange, Wait};

/// The index of a group in its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupId(pub usize);

/// A server that was chosen for an attempt.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Its address.
    pub addr: UpstreamAddr,
    /// The address as `$upstream_addr` shows it.
    pub name: Arc<[u8]>,
    /// The server as it is written in the configuration, for `$upstream_last_server_name`.
    pub server: Arc<[u8]>,
    /// The pool of idle connections of its group, if the group keeps any.
    pub pool: Option<Pool>,
}

/// What [`Picker::pick`] found.
#[derive(Debug)]
pub enum Pick {
    /// A server.
    Chosen(Chosen),
    /// None is alive and free ("no live upstreams").
    None,
    /// Names are being resolved; the exchange is woken.
    Wait(Wait),
    /// The name does not resolve; what is to be logged.
    Unresolved(String),
}

/// Chooses servers for one request, each at most once.
#[derive(Debug)]
pub struct Picker {}

/// How an attempt ended, as the group counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server has answered.
    Alive,
    /// The attempt failed in a way that counts against the server.
    Failed,
    /// Another server is to be tried, but this one is not to blame (`http_403`, `http_404`, `http_429`, `non_idempotent`).
    Next,
}

impl Picker {
    /// For these servers.
    pub fn new(_: &Exchange, _: Target) -> Self {
        Self {}
    }

    /// How many attempts there may be, as nginx counts them (`pc->tries`).
    pub fn tries(&self) -> u32 {
        0
    }

    /// Chooses a server; what it holds (a place among `max_conns`) it gives back by [`Picker::finish`] or when dropped.
    pub fn pick(&mut self, _: &mut Exchange, _: &mut Ctx<'_>) -> Pick {
        Pick::None
    }

    /// The attempt with the server that was chosen last has ended.
    pub fn finish(&mut self, _: &Exchange, _: &Ctx<'_>, _: Outcome) {}

    /// The name of the group, or the host that is resolved: for logs, `$proxy_host`-like variables and pools.
    pub fn name(&self) -> &[u8] {
        b""
    }
}
