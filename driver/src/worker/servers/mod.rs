//! Connections to servers: [`read_ready`] and [`turn`] do for them what those of `conn` do for connections of clients.
//!
//! ```text
//! attempt     a route and a request           -> Connecting, or an idle connection of the pool
//! receive     socket -> engine.receive -> events -> the mailbox of the exchange, which is woken
//! feed        the mailbox -> engine.send -> output queue -> socket
//! ending      the end of the response -> Idle, in its pool, or closed
//! pipelined   several requests on one connection, each with a mailbox of its own
//! ```
//!
//! The loop connects, registers and keeps the table; a connection says by its [`Disposition`] what is to become of it. No
//! more is read than the exchange has room for (`UpstreamCall::window`). An idle connection holds a socket and two numbers:
//! engine and queues are the thread's ([`Attempts`]). It holds no configuration.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `ngx_http_proxy_module`.

mod ending;
mod engine;
mod pipeline;
mod pipelined;
pub mod pool;
mod response;
mod state;
mod turn;

use engines::http::BodyLength;
use server_base::waker::WakeKey;
use server_upstream::request::Failure;

use super::net::Net;
use super::readiness::{Cause, Readiness};
use super::shared::Shared;
use ending::{deadline, expire, finish};
use state::{Ending, Sending, State};

pub use pipeline::{Group, Groups};
pub use state::{Attempts, Disposition, PoolPlace, ServerConn};

/// Begins attempts on a new connection or on one that was idle, and runs its first turn; `key` wakes it. The
/// time for connecting counts where the connection is not `established`.
pub fn begin<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
    Group {
        route,
        call,
        behind,
    }: Group,
    key: WakeKey,
    established: bool,
) -> Disposition {
    let now_ms = sh.clock.mono_ms;
    let reused = c.requests > 0;
    c.requests = c.requests.saturating_add(1);
    call.attach(key);
    call.note(|facts| {
        facts.reused = reused;
        facts.connected_ms = established.then_some(now_ms);
    });
    let (protocol, head_bytes) = (route.protocol, route.head_bytes);
    let shared = (!behind.is_empty()).then(|| (route.clone(), behind));
    let spec = call.take_head().unwrap_or_default();
    let mut active = sh.attempts.take(route, call, now_ms);
    active.reused = reused;
    active.request = match spec.body {
        BodyLength::None => Sending::Queued,
        _ => Sending::Body,
    };
    // Heads of responses come from those that exchanges have given back.
    let tools = &mut active.tools;
    if let Some(head) = sh.dialer.spares.head() {
        tools.engine.recycle(head);
    }
    let refused = tools.engine.begin(protocol, head_bytes, &spec).err();
    tools.engine.transmit(&mut tools.out);
    active.call().put_head_back(spec);
    if let Some(others) = shared {
        let facts = (key, reused, established.then_some(now_ms));
        pipelined::join(c, sh, &mut active, others, facts);
    }
    c.state = match established {
        true => State::connected(active),
        false => State::Connecting(active),
    };
    match refused {
        Some(why) => finish(c, sh, Ending::Failed(Failure::Unsendable(why))),
        None => turn(c, sh, Readiness::default()),
    }
}

/// Notes the flags of an event, and reads ahead of the turn: all connections that are ready are read before any
/// exchange has its turn. False where it is an idle connection that the server has ended, or on which it has sent
/// something.
pub fn read_ready<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
    ready: Readiness,
) -> bool {
    c.flags.add(ready.socket);
    match c.state {
        State::Idle { .. } => !c.flags.readable || turn::is_silent(c, sh),
        _ => true,
    }
}

/// Does all that can be done on a connection now.
pub fn turn<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
    ready: Readiness,
) -> Disposition {
    c.flags.add(ready.socket);
    let mut passes = 0;
    let outcome = loop {
        match turn::pass(c, sh) {
            Ok(true) if passes < PASSES_A_TURN => passes += 1,
            Ok(more) => {
                if ready.cause == Cause::Expired
                    && let State::Busy(a) = &c.state
                {
                    a.call().wake_if_due(sh.clock.mono_ms);
                }
                if ready.cause == Cause::Expired
                    && !more
                    && let Err(ending) = expire(c, sh)
                {
                    break ending;
                }
                let deadline_ms = match more {
                    // There is more to do, but it is the others' turn.
                    true => sh.clock.mono_ms,
                    false => deadline(c),
                };
                return Disposition::Keep { deadline_ms };
            }
            Err(ending) => break ending,
        }
    };
    finish(c, sh, outcome)
}

/// Reads and writes of a connection in one turn, where the exchange has room for more than one read.
const PASSES_A_TURN: usize = 4;
