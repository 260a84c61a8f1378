//! Turns of connections to servers, the counterpart of `conn` for clients.
//!
//! ```text
//! begin       a route and a request           -> Connecting, or an idle connection of the pool
//! join        a request                       -> a connection that has a free stream
//! turn        socket -> transport -> engine -> events -> mailboxes of exchanges, and wakes
//!             mailboxes -> engine -> output queue -> transport -> socket
//! ending      the end of the response -> Idle, in its pool, or closed
//! ```
//!
//! `one`, `queue` and `streams` are the ways in which requests use a connection. The loop connects, registers and keeps the
//! table; a turn returns the [`Disposition`] of its connection. No more is read than exchanges have room
//! for (`UpstreamCall::window`). States and memory are in `server_state`. A connection holds no configuration.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `ngx_http_proxy_module`.

mod ending;
mod link;
mod one;
mod outcome;
pub mod pool;
mod queue;
mod streams;
mod turn;
mod upload;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use engines::http::BodyLength;
use server_base::hash::Fnv;
use server_base::waker::WakeKey;
use server_upstream::request::Failure;
use server_upstream::route::{HandshakeConfig, Route, ServerTls};
use tls::ClientConn;

use super::dialer::Dial;
use super::net::Net;
use super::readiness::{Readiness, TurnCause};
use super::server_state::{
    ActiveConn, Disposition, Group, Io, Link, Requests, Sending, ServerConn, State, Streams,
    Transport,
};
use super::shared::Shared;
use super::transport::TlsStream;
use ending::{deadline, expire, finish};
use outcome::{Ending, of_tls};

/// Begins attempts on a new connection or on one that was idle, and runs its first turn; `key` wakes it. The
/// time for connecting counts if the connection is not `established`.
// Long: a connection is checked, secured and given its requests, each step once.
pub fn begin<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
    group: Group,
    key: WakeKey,
    established: bool,
) -> Disposition {
    if !is_fit(&c.link, &group) {
        dial_anew(sh, group);
        return Disposition::Close;
    }
    if let State::Idle { kept, .. } = &mut c.state
        && let Some(kept) = kept.take()
    {
        c.state = State::Open(streams::resume(kept, &group.route));
        return join(c, sh, group);
    }
    if let Err(failure) = secure(&mut c.link, &group.route, sh) {
        group.fail(&failure);
        return Disposition::Close;
    }
    if group.route.protocol.streams {
        return begin_streams(c, sh, group, key, established);
    }
    let Group {
        route,
        call,
        behind,
    } = group;
    let now_ms = sh.clock.mono_ms;
    let reused = c.link.requests > 0;
    c.link.requests = c.link.requests.saturating_add(1);
    let is_open = established && (reused || c.link.tls.is_none());
    let connected_ms = is_open.then_some(now_ms);
    call.attach(key);
    call.record(|facts| {
        facts.reused = reused;
        facts.connected_ms = connected_ms;
        facts.handshaking = established && !is_open;
    });
    let (protocol, head_bytes) = (route.protocol, route.head_bytes);
    let others = (!behind.is_empty()).then(|| (route.clone(), behind));
    let spec = call.take_head().unwrap_or_default();
    let request = match spec.body {
        BodyLength::None => Sending::Queued,
        _ => Sending::Body,
    };
    let mut active = sh.attempts.take(route, call, request, now_ms);
    let ActiveConn { io, requests } = &mut *active;
    io.reused = reused;
    // Heads of responses reuse memory that exchanges have released.
    if let Some(head) = sh.dialer.spares.head() {
        io.engine.recycle(head);
    }
    let refused = io.engine.begin(protocol, head_bytes, &spec).err();
    io.engine.transmit(&mut io.out);
    if let Requests::One(one) = requests {
        one.call().put_head_back(spec);
    }
    if let Some(others) = others {
        queue::join(&mut c.link, &mut active, sh, others, (key, connected_ms));
    }
    c.state = match established {
        true if reused => State::Open(active),
        true => turn::connected(&c.link, active),
        false => State::Connecting(active),
    };
    match refused {
        None => turn(c, sh, Readiness::default()),
        Some(why) => finish(c, sh, Ending::Failed(Failure::Unsendable(why))),
    }
}

/// Begins attempts as streams of a new connection.
fn begin_streams<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
    group: Group,
    key: WakeKey,
    established: bool,
) -> Disposition {
    let active = Box::new(ActiveConn {
        io: Io::new(&group.route, sh.clock.mono_ms),
        requests: Requests::Streams(Box::new(Streams::new(key.owner))),
    });
    c.state = match established {
        true => turn::connected(&c.link, active),
        false => State::Connecting(active),
    };
    join(c, sh, group)
}

/// Adds attempts as streams to a connection; those that it cannot take get another one.
pub fn join<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
    group: Group,
) -> Disposition {
    let now_ms = sh.clock.mono_ms;
    let ServerConn { link, state } = c;
    let connected_ms = matches!(state, State::Open(_)).then_some(now_ms);
    let Group {
        route,
        call,
        behind,
    } = group;
    let mut is_full = false;
    if let State::Connecting(active) | State::Handshaking(active) | State::Open(active) =
        &mut *state
        && let Requests::Streams(streams) = &mut active.requests
    {
        // `Available::take` has counted a stream that may not be opened.
        streams.announced = None;
    }
    for call in std::iter::once(call).chain(behind) {
        if let State::Connecting(active) | State::Handshaking(active) | State::Open(active) =
            &mut *state
            && let ActiveConn {
                io,
                requests: Requests::Streams(streams),
            } = &mut **active
            && !streams.closing
            && io.engine.room() > 0
        {
            streams::add(link, io, streams, (route.timeouts, call), connected_ms, sh);
            continue;
        }
        is_full = true;
        sh.dialer.calls.push(Dial {
            route: route.clone(),
            call,
            alone: true,
        });
    }
    // Others of this turn find it before it is connected.
    if let State::Connecting(active) | State::Handshaking(active) = state
        && let ActiveConn {
            io,
            requests: Requests::Streams(streams),
        } = &mut **active
    {
        streams::announce(link, io, streams, sh);
    }
    if let State::Open(active) = state
        && let Requests::Streams(streams) = &active.requests
        && is_full
        && streams.open.is_empty()
    {
        // The server allows no stream any more. In its pool the connection would be taken again at once.
        return Disposition::Close;
    }
    turn(c, sh, Readiness::default())
}

/// Whether a connection has the transport of a route. Pools are found by a digest, which may be equal for two kinds of
/// transport: clients choose names of servers (`proxy_ssl_name $host`).
#[inline]
fn is_fit<S>(link: &Link<S>, group: &Group) -> bool {
    link.requests == 0 || link.tls == group.route.tls
}

/// Whether a connection has the TLS settings of a route, or none if the route has none.
pub fn is_secured_for<S>(conn: &ServerConn<S>, route: &Route) -> bool {
    conn.link.tls == route.tls
}

/// Has attempts begin on a connection of their own that is in no pool.
#[cold]
fn dial_anew<N: Net>(sh: &mut Shared<N>, group: Group) {
    let Group {
        mut route,
        call,
        behind,
    } = group;
    route.pool = None;
    for call in std::iter::once(call).chain(behind) {
        sh.dialer.calls.push(Dial {
            route: route.clone(),
            call,
            alone: true,
        });
    }
}

/// Begins TLS on a new connection: the first message waits until the socket is connected.
#[inline]
fn secure<N: Net>(
    link: &mut Link<N::Socket>,
    route: &Route,
    sh: &mut Shared<N>,
) -> Result<(), Failure> {
    match &route.tls {
        Some(tls) if link.requests == 0 => begin_tls(link, route, tls, sh),
        _ => Ok(()),
    }
}

fn begin_tls<N: Net>(
    link: &mut Link<N::Socket>,
    route: &Route,
    tls: &Arc<ServerTls>,
    sh: &mut Shared<N>,
) -> Result<(), Failure> {
    let loaded;
    let config = match &tls.config {
        HandshakeConfig::Made(config) => config,
        HandshakeConfig::Loaded(own) => {
            let made = own.load(&mut sh.files, sh.clock.mono_ms);
            loaded = made.map_err(|why| Failure::Certificate(why.into()))?;
            &loaded
        }
    };
    let mut peer = Fnv::default();
    (&route.addr, route.group).hash(&mut peer);
    let session = ClientConn::to_peer(config, tls.name.clone(), peer.finish());
    let session = session.map_err(|fault| of_tls(&fault))?;
    link.transport = Transport::Tls(Box::new(TlsStream::new(session)));
    link.tls = Some(Arc::clone(tls));
    Ok(())
}

/// Adds the flags of an event, and reads before the turn: all ready connections are read before any exchange has its
/// turn. False for an idle connection that the server has ended, or that has received something.
pub fn read_ready<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
    ready: Readiness,
) -> bool {
    c.link.flags.add(ready.socket);
    match c.state {
        State::Idle { kept: None, .. } => {
            !c.link.flags.readable || link::is_silent(&mut c.link, sh)
        }
        _ => true,
    }
}

/// Runs a turn of a connection for mailboxes that were woken; the keys name their streams.
pub fn wake<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
    keys: &[WakeKey],
) -> Disposition {
    // A connection without streams has one mailbox, or checks all mailboxes of its queue.
    if keys.last().is_some_and(|key| key.stream != 0)
        && let State::Connecting(active) | State::Handshaking(active) | State::Open(active) =
            &mut c.state
        && let Requests::Streams(streams) = &mut active.requests
    {
        streams.woken.extend(keys.iter().map(|key| key.stream));
    }
    turn(c, sh, Readiness::default())
}

/// Does all that can be done on a connection now.
pub fn turn<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
    ready: Readiness,
) -> Disposition {
    c.link.flags.add(ready.socket);
    let mut passes = 0;
    let outcome = loop {
        match turn::pass(c, sh) {
            Ok(true) if passes < PASSES_A_TURN => passes += 1,
            Ok(more) => {
                if ready.cause == TurnCause::Expired {
                    wake_due(c, sh.clock.mono_ms);
                    if !more {
                        match expire(c, sh) {
                            Ok(false) => {}
                            // A stream was abandoned: its reset is written.
                            Ok(true) => continue,
                            Err(ending) => break ending,
                        }
                    }
                }
                let deadline_ms = match more {
                    // There is more to do, but other connections have their turn first.
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

/// Wakes the exchanges that have set a wake for this time.
#[cold]
fn wake_due<S>(c: &ServerConn<S>, now_ms: u64) {
    if let State::Open(active) = &c.state {
        (active.requests.calls()).for_each(|call| call.wake_if_due(now_ms));
    }
}

/// Reads and writes of a connection in one turn, if the exchange has room for more than one read.
const PASSES_A_TURN: usize = 4;
