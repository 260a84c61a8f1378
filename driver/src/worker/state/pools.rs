//! Unused memory of a thread, for the next connections and exchanges.

use std::rc::Rc;

use engines::h1::Settings;
use engines::http::RequestHead;
use server_http::exchange::Exchange;
use server_http::http::LocalHttp;

use super::mux_engine::Pool;
use super::serving::H1State;

/// Unused parts of connections.
#[derive(Default)]
pub struct Pools {
    /// Heads for the next requests of protocols that take many requests in one read.
    pub(crate) heads: Pool<RequestHead>,
    h1_states: Pool<H1State>,
    exchanges: Pool<Exchange>,
}

impl Pools {
    /// The state of a connection that serves HTTP/1 with these settings.
    #[inline]
    pub(crate) fn h1(&mut self, settings: Rc<Settings>) -> Box<H1State> {
        match self.h1_states.pop() {
            Some(mut h1) => {
                h1.reset(settings);
                h1
            }
            None => Box::new(H1State::new(settings)),
        }
    }

    /// Takes back the state of a connection of HTTP/1, without exchanges.
    #[inline]
    pub(crate) fn release_h1(&mut self, h1: Box<H1State>) {
        if self.h1_states.len() < POOL_MAX {
            self.h1_states.push(h1);
        }
    }

    /// Takes back the memory of a head.
    #[inline]
    pub(crate) fn release_head(&mut self, head: Box<RequestHead>) {
        if self.heads.len() < HEADS_MAX && head.arena.capacity() <= HEAD_BYTES {
            self.heads.push(head);
        }
    }

    /// An exchange that had an earlier request.
    #[inline]
    pub(crate) fn exchange(&mut self) -> Option<Box<Exchange>> {
        self.exchanges.pop()
    }

    /// Takes back an exchange; it refers to `http` from here on.
    #[inline]
    pub(crate) fn release_exchange(&mut self, mut x: Box<Exchange>, http: &Rc<LocalHttp>) {
        if self.exchanges.len() < POOL_MAX {
            x.clear_reply();
            x.route.http = Rc::clone(http);
            self.exchanges.push(x);
        }
    }

    /// Drops unused exchanges, which refer to a configuration.
    pub(crate) fn drop_exchanges(&mut self) {
        self.exchanges.clear();
    }
}

/// Unused heads kept for the next requests, and bytes of one that is kept.
const HEADS_MAX: usize = 512;
const HEAD_BYTES: usize = 4096;
/// Unused parts kept for the next connections.
const POOL_MAX: usize = 256;
