//! Turn of a connection to a server: connecting, handshake, requests, the rest of a response.

use std::io;

use server_base::handshakes::HandshakeResult;
use server_upstream::request::{Failure, UpstreamEvent};

use super::link::{self, READ_BYTES};
use super::outcome::{Ending, of_tls};
use super::{one, queue, streams};
use crate::worker::handshake_result::failure_of;
use crate::worker::net::Net;
use crate::worker::server_state::engine::Event;
use crate::worker::server_state::{
    ActiveConn, Draining, Io, Link, Receiving, Requests, Sending, ServerConn, State, Transport,
};
use crate::worker::shared::Shared;

/// One pass; true if there may be more to do at once.
pub(super) fn pass<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    let ServerConn { link, state } = c;
    match state {
        State::Open(active) => {
            let ActiveConn { io, requests } = &mut **active;
            match requests {
                Requests::One(one) if one.call().is_given_up() => give_up(c, sh.clock.mono_ms),
                Requests::One(one) => one::pass(link, io, one, sh),
                Requests::Queue(_) if requests.is_abandoned() => Err(Ending::GivenUp),
                Requests::Queue(_) => queue::pass(link, io, requests, sh),
                Requests::Streams(streams) => streams::pass(link, io, streams, sh),
            }
        }
        State::Connecting(active) | State::Handshaking(active)
            if active.requests.is_abandoned() =>
        {
            Err(Ending::GivenUp)
        }
        State::Connecting(_) => connecting(c, sh),
        State::Handshaking(_) => handshake(c, sh),
        State::Draining(..) => drain(c, sh),
        State::Idle { kept: None, .. } => Ok(false),
        State::Idle {
            kept: Some(active), ..
        } => streams::pass_idle(link, active, sh),
        State::Closed => Err(Ending::GivenUp),
    }
}

/// Looks whether the connection is established.
fn connecting<N: Net>(c: &mut ServerConn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Ending> {
    let link = &mut c.link;
    if !link.flags.writable && !link.flags.hung_up {
        return Ok(false);
    }
    if let Some(error) = sh.net.take_error(&mut link.socket) {
        return Err(Ending::failed("connect()", &error));
    }
    if !link.flags.writable {
        return Ok(false);
    }
    let State::Connecting(mut active) = std::mem::replace(&mut c.state, State::Closed) else {
        return Err(Ending::GivenUp);
    };
    let now_ms = sh.clock.mono_ms;
    active.io.since_ms = now_ms;
    begin_waiting(&mut active, now_ms);
    let is_plain = matches!(link.transport, Transport::Plain);
    for call in active.requests.calls() {
        call.record(|facts| match is_plain {
            true => facts.connected_ms = Some(now_ms),
            false => facts.handshaking = true,
        });
    }
    c.state = connected(link, active);
    Ok(true)
}

/// The state of a connection once its socket is connected.
pub(super) fn connected<S>(link: &Link<S>, active: Box<ActiveConn>) -> State {
    match link.transport {
        Transport::Plain => State::Open(active),
        Transport::Tls(_) => State::Handshaking(active),
    }
}

/// The times of the requests count from now on.
fn begin_waiting(active: &mut ActiveConn, now_ms: u64) {
    active.io.wrote_ms = now_ms;
    match &mut active.requests {
        Requests::One(one) => one.read_ms = now_ms,
        Requests::Queue(queue) => queue.read_ms = now_ms,
        Requests::Streams(streams) => {
            for stream in &mut streams.open {
                (stream.read_ms, stream.wrote_ms) = (now_ms, now_ms);
            }
        }
    }
}

/// Goes on with the handshake of TLS.
fn handshake<N: Net>(c: &mut ServerConn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Ending> {
    let (link, State::Handshaking(active)) = (&mut c.link, &mut c.state) else {
        return Ok(false);
    };
    let read = link.flags.readable && receive_handshake(link, active, sh)?;
    let io = &mut active.io;
    let Transport::Tls(tls) = &mut link.transport else {
        return Err(Ending::GivenUp);
    };
    let (is_open, is_resumed) = (tls.session.is_open(), tls.session.is_resumed());
    if is_open && !io.engine.speaks(tls.session.alpn()) {
        sh.attempts.buffer.clear();
        return Err(Ending::Failed(Failure::Handshake(OTHER_PROTOCOL.into())));
    }
    if !is_open {
        // The requests stay queued until the session is open.
        let wrote = flush_handshake(link, io, sh)?;
        return Ok(read || wrote);
    }
    let State::Handshaking(mut active) = std::mem::replace(&mut c.state, State::Closed) else {
        return Err(Ending::GivenUp);
    };
    let now_ms = sh.clock.mono_ms;
    begin_waiting(&mut active, now_ms);
    let result = match is_resumed {
        true => HandshakeResult::Resumed,
        false => HandshakeResult::Full,
    };
    record_handshake(&active, result);
    for call in active.requests.calls() {
        call.record(|facts| facts.connected_ms = Some(now_ms));
    }
    let ActiveConn { io, requests } = &mut *active;
    // Plaintext may have come with the server's last message. With streams it may precede all requests.
    let buffer = &mut sh.attempts.buffer;
    let is_early = !buffer.is_empty() && !matches!(requests, Requests::Streams(_));
    if !is_early {
        io.engine.receive(buffer);
    }
    buffer.clear();
    c.state = State::Open(active);
    match is_early {
        true => Err(Ending::Failed(Failure::Invalid(EARLY_RESPONSE))),
        false => Ok(true),
    }
}

/// Reads once, and passes the bytes to the handshake; plaintext stays in the thread's buffer.
fn receive_handshake<N: Net>(
    link: &mut Link<N::Socket>,
    active: &mut ActiveConn,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    let Transport::Tls(tls) = &mut link.transport else {
        return Ok(false);
    };
    let read = match sh.net.receive(&mut link.socket, &mut sh.scratch) {
        Ok(0) => return Err(Ending::Failed(Failure::Handshake(CLOSED.into()))),
        Ok(read) => read,
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
            (link.flags.readable, link.flags.hung_up) = (false, false);
            return Ok(false);
        }
        Err(e) => {
            let text = format!("{CLOSED} ({})", conf::os_error(&e));
            return Err(Ending::Failed(Failure::Handshake(text.into())));
        }
    };
    link.flags.readable = read == sh.scratch.len() || link.flags.hung_up;
    let opened = tls.open(&mut sh.scratch[..read], &mut sh.attempts.buffer);
    if let Err(fault) = opened {
        // The alert reports the reason to the server, and no answer is awaited.
        let _ = flush_handshake(link, &mut active.io, sh);
        record_handshake(active, HandshakeResult::Failed(failure_of(&fault)));
        return Err(Ending::Failed(of_tls(&fault)));
    }
    Ok(true)
}

/// Records the result of the handshake, for the first attempt on the connection.
pub(super) fn record_handshake(active: &ActiveConn, result: HandshakeResult) {
    if let Some(call) = active.requests.calls().next() {
        call.record(|facts| facts.handshake = facts.handshake.or(Some(result)));
    }
}

/// Writes messages of the handshake; the requests wait.
fn flush_handshake<N: Net>(
    link: &mut Link<N::Socket>,
    io: &mut Io,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    let requests = std::mem::take(&mut io.out);
    let flushed = link::flush(link, io, sh, false);
    io.out = requests;
    flushed.map(|flushed| flushed.is_broken)
}

/// The exchange has abandoned its attempt. If little of the response is left, the rest is dropped and the connection
/// kept.
fn give_up<S>(c: &mut ServerConn<S>, now_ms: u64) -> Result<bool, Ending> {
    let State::Open(active) = &c.state else {
        return Err(Ending::GivenUp);
    };
    let ActiveConn { io, requests } = &**active;
    let left_bytes = match requests {
        Requests::One(one) if one.request == Sending::Sent => match one.response {
            Receiving::Body(left) if io.pool.is_some() && io.protocol.drains => left,
            _ => Some(u64::MAX),
        },
        _ => Some(u64::MAX),
    };
    // A body of unknown length may end soon.
    if io.unwritable.is_some() || left_bytes.is_some_and(|left| left > DRAIN_BYTES) {
        return Err(Ending::GivenUp);
    }
    let State::Open(active) = std::mem::replace(&mut c.state, State::Closed) else {
        return Err(Ending::GivenUp);
    };
    let draining = Draining {
        left_bytes: DRAIN_BYTES,
        until_ms: now_ms.saturating_add(DRAIN_MS),
    };
    c.state = State::Draining(active, draining);
    Ok(true)
}

/// Reads and drops the rest of a response.
fn drain<N: Net>(c: &mut ServerConn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Ending> {
    let (link, State::Draining(active, draining)) = (&mut c.link, &mut c.state) else {
        return Ok(false);
    };
    if !link.flags.readable {
        return Ok(false);
    }
    let input = match link::read(link, &active.io, sh, READ_BYTES) {
        Ok(None) => return Ok(false),
        Ok(Some(input)) if input.bytes > 0 => input,
        Ok(Some(_)) | Err(_) => return Err(Ending::GivenUp),
    };
    draining.left_bytes = draining.left_bytes.saturating_sub(input.bytes as u64);
    let engine = &mut active.io.engine;
    engine.receive(&mut sh.attempts.buffer);
    while let Some(event) = engine.event() {
        match event {
            Event::Upstream(UpstreamEvent::End) => return Err(Ending::Complete),
            Event::Upstream(_) => {}
            Event::Failed(_) => return Err(Ending::GivenUp),
        }
    }
    // More than that is not worth a connection.
    match draining.left_bytes {
        0 => Err(Ending::GivenUp),
        _ => Ok(true),
    }
}

/// Limits of reading an unwanted rest of a response to keep the connection, in bytes and milliseconds.
const DRAIN_BYTES: u64 = 64 << 10;
const DRAIN_MS: u64 = 1000;
/// The server has ended its side during the handshake, in nginx's words.
const CLOSED: &str = "peer closed connection in SSL handshake";
/// Plaintext came before the server could have read a request.
const EARLY_RESPONSE: &str = "sent data before the SSL handshake was over";
/// Reason of a handshake after which the server speaks another protocol than the engine.
const OTHER_PROTOCOL: &str = "the upstream server did not select the offered protocol";
