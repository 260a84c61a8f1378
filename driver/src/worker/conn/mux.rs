//! Protocols with streams: an exchange for each stream.
//!
//! The engine pulls body pieces in the order of priorities; all pieces of a turn leave in one write. An exchange ends
//! after the write of its last byte.

mod body;
mod streams;
mod timeouts;

use engines::http::{self, RequestHead};
use engines::mux::Event;
use server_base::errlog::Level;
use server_base::memory;
use server_http::exchange::Exchange;
use server_http::phases;

use super::client::{abandon, is_hostless, open_exchange};
use super::ended;
use super::probe::{self, EndedBy};
use super::state::{Closed, Conn, State};
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::mux_engine::{Engine, Reason, with_engine};
use crate::worker::state::outliving::outlives_client;
use crate::worker::state::serving::{ActiveExchange, MuxState, Protocol};
use streams::{pump, remove};

pub(super) use streams::{arrived, queue_goaway, respond};
pub(super) use timeouts::{deadline_ms, on_deadline};

/// Begins a protocol on a connection.
pub(super) fn open<N: Net>(c: &mut Conn<N::Socket>, sh: &Shared<N>, protocol: http::Protocol) {
    let settings = &sh.generation.mux[c.port()];
    let Some(engine) = Engine::new(protocol, settings) else {
        return;
    };
    let timeouts = settings.timeouts(protocol);
    if let Some(timeouts) = timeouts {
        c.idle_ms = timeouts.idle_ms;
    }
    c.counted.speak(protocol);
    let mux = MuxState::new(engine, timeouts, sh.clock.mono_ms);
    c.state = State::Serving(Protocol::Mux(Box::new(mux)));
}

/// Takes events and moves bodies to the output queue.
pub(super) fn run<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    deliver(c, sh)?;
    pump(c, sh);
    if let Some(mux) = c.state.mux()
        && !mux.outliving.is_empty()
    {
        mux.outliving.run(&mut c.probe, sh);
    }
    Ok(())
}

/// Takes the engine's events.
fn deliver<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    while let State::Serving(Protocol::Mux(mux)) = &mut c.state {
        with_engine!(&mut mux.engine, engine => match engine.event() {
            Some(Event::Failed(error)) => {
                let text = engine.failure_text(&error);
                let text = format_args!("{text} while {}", ended::processing(c));
                ended::log(c, sh, Level::Info, text);
            }
            Some(event) => take(c, sh, event)?,
            None => break,
        });
    }
    Ok(())
}

/// Takes one event that is no error of the connection; `M` is the type of such errors.
#[inline]
fn take<N: Net, M>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    event: Event<M>,
) -> Result<(), Closed> {
    match event {
        Event::Head { stream, head } => begin(c, sh, stream, head)?,
        Event::Data { stream, bytes } => body::data(c, sh, stream, bytes),
        Event::BodyEnd(stream) => body::end(c, sh, stream),
        Event::Trailers { .. } | Event::Failed(_) => {}
        Event::BodyFault(stream, fault) => body::fault(c, sh, stream, fault),
        Event::Reset { stream, sent_bytes } => drop_exchange(c, sh, stream, sent_bytes),
        Event::Eof => {
            ended::by_client(c, sh, None);
            return Err(Closed);
        }
    }
    Ok(())
}

/// Starts an exchange.
fn begin<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    stream: u32,
    mut head: Box<RequestHead>,
) -> Result<(), Closed> {
    let refuses = c.drain.is_listener_removed() || memory::is_full();
    if let Some(mux) = c.state.mux()
        && (refuses || mux.outliving.is_full())
    {
        // No server accepts it here, or not now; the client may retry, here or elsewhere.
        mux.engine.reset(stream, Reason::Refused);
        sh.pools.release_head(head);
        return Ok(());
    }
    let mut x = open_exchange(c, sh, is_hostless(&head))?;
    std::mem::swap(&mut x.head, &mut head);
    sh.pools.release_head(head);
    let State::Serving(Protocol::Mux(mux)) = &mut c.state else {
        return Err(Closed);
    };
    x.client.may_push = mux.engine.may_push(stream);
    x.client.offers = mux.engine.offers();
    x.client.wake.stream = stream;
    phases::begin(&mut x, &mut sh.ctx());
    // A protocol with timeouts of its own is, as in nginx, not ended by the number of requests.
    if mux.timeouts.is_none() && is_last(&x) && !stream.is_multiple_of(2) {
        mux.engine.end_after(stream);
    }
    let loc = x.route.core_loc();
    let send_check_ms = sh
        .clock
        .mono_ms
        .saturating_add(loc.connection.send_timeout.0);
    mux.send_check_ms = mux.send_check_ms.min(send_check_ms);
    mux.idle_since_ms = None;
    c.idle_ms = mux.idle_ms(loc);
    c.min_idle_ms = loc.connection.keepalive_min_timeout.0;
    mux.exchanges.active.push(ActiveExchange {
        exchange: x,
        stream,
        bytes: 0,
        start: u64::MAX,
    });
    let at = mux.exchanges.active.len() - 1;
    respond(mux, sh, at);
    Ok(())
}

/// Whether the connection has had as many requests, or as much time, as it may have.
fn is_last(x: &Exchange) -> bool {
    let loc = x.route.core_loc();
    let age_ms = x.started_ms.saturating_sub(x.client.since_ms);
    x.client.requests >= loc.connection.keepalive_requests.0
        || age_ms > loc.connection.keepalive_time.0
        || loc.connection.keepalive().idle_ms == 0
}

/// Ends the exchange of a stream that is gone, unless the exchange outlives its client.
fn drop_exchange<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    stream: u32,
    sent_bytes: u64,
) {
    let Some(mux) = c.state.mux() else { return };
    let Some(at) = mux.exchanges.position(stream) else {
        return;
    };
    let mut x = remove(mux, at, sent_bytes);
    if outlives_client(&x) {
        return mux.outliving.add(x, sent_bytes);
    }
    abandon(&mut x);
    probe::abort(&mut c.probe, sh, x, EndedBy::Client);
}
