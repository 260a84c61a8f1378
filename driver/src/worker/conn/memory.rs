//! Memory of an open connection, for experiments.
//!
//! Counted: the connection itself, TLS, the engine of its protocol, queued output, and exchanges in progress with their
//! heads. Not counted: the kernel's socket buffers, memory inside the TLS library beside its structure, bodies at hand,
//! values of modules, and pools of the thread.

use server_http::exchange::Exchange;

use super::state::{Conn, State};
use super::tls::Tls;
use crate::worker::state::mux_engine::{Engine, with_engine};
use crate::worker::state::serving::{Exchanges, H1State, MuxState, Protocol};

impl<S> Conn<S> {
    /// Bytes of memory that the connection holds, about.
    pub(super) fn memory_bytes(&self) -> u64 {
        let tls = self.transport.tls().map_or(0, Tls::memory_bytes);
        let protocol = match &self.state {
            State::Serving(Protocol::H1(h1)) => {
                size_of::<H1State>() + h1.engine.memory_bytes() + of_exchanges(&h1.exchanges)
            }
            State::Serving(Protocol::Mux(mux)) => {
                size_of::<MuxState>() + of_engine(&mux.engine) + of_exchanges(&mux.exchanges)
            }
            _ => 0,
        };
        (size_of::<Self>() + tls + protocol) as u64
    }
}

fn of_engine(engine: &Engine) -> usize {
    with_engine!(engine, engine => engine.memory_bytes())
}

fn of_exchanges(exchanges: &Exchanges) -> usize {
    let of = |x: &Exchange| {
        size_of::<Exchange>() + x.head.arena.capacity() + x.response.head.arena.capacity()
    };
    let active = exchanges.active.iter().map(|active| of(&active.exchange));
    let flushing = exchanges
        .flushing
        .iter()
        .map(|flushing| of(&flushing.exchange));
    exchanges.out.memory_bytes() + active.chain(flushing).sum::<usize>()
}
