//! Turn of a connection to a server: connecting, reading, feeding, writing.

use std::io;

use server_upstream::request::{Failure, UpstreamEvent};

use super::engine::Event;
use super::pipelined;
use super::response::{READ_BYTES, tell};
use super::state::{ActiveAttempt, Draining, Ending, Receiving, Sending, ServerConn, State};
use crate::worker::net::Net;
use crate::worker::readiness::WRITE_BYTES;
use crate::worker::shared::Shared;

/// One pass; true if there may be more to do at once.
pub(super) fn pass<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    match &mut c.state {
        State::Connecting(a) if a.is_abandoned() => Err(Ending::GivenUp),
        State::Connecting(_) => connecting(c, sh),
        State::Busy(a) if a.call().is_given_up() => give_up(c, sh.clock.mono_ms),
        State::Busy(_) => {
            let read = receive(c, sh)?;
            let wrote = write(c, sh)?;
            Ok(read || wrote)
        }
        State::Pipelined(a) if a.is_abandoned() => Err(Ending::GivenUp),
        State::Pipelined(_) => {
            let read = pipelined::receive(c, sh)?;
            let wrote = write(c, sh)?;
            Ok(read || wrote)
        }
        State::Draining(..) => drain(c, sh),
        State::Idle { .. } => Ok(false),
        State::Closed => Err(Ending::GivenUp),
    }
}

/// Whether nothing has come on an idle connection.
pub(super) fn is_silent<N: Net>(c: &mut ServerConn<N::Socket>, sh: &mut Shared<N>) -> bool {
    let buffer = &mut sh.attempts.buffer;
    let silent = match sh.net.receive_into(&mut c.socket, buffer, 1) {
        Err(e) => e.kind() == io::ErrorKind::WouldBlock,
        Ok(_) => false,
    };
    buffer.clear();
    (c.flags.readable, c.flags.hung_up) = (false, false);
    silent
}

/// Looks whether the connection is established.
fn connecting<N: Net>(c: &mut ServerConn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Ending> {
    if !c.flags.writable && !c.flags.hung_up {
        return Ok(false);
    }
    if let Some(error) = sh.net.take_error(&mut c.socket) {
        return Err(Ending::failed("connect()", &error));
    }
    if !c.flags.writable {
        return Ok(false);
    }
    let State::Connecting(mut a) = std::mem::replace(&mut c.state, State::Closed) else {
        return Err(Ending::GivenUp);
    };
    let now_ms = sh.clock.mono_ms;
    (a.wrote_ms, a.read_ms) = (now_ms, now_ms);
    a.note_all(|facts| facts.connected_ms = Some(now_ms));
    c.state = State::connected(a);
    Ok(true)
}

/// The exchange has given its attempt up: where little of the response is left, that is dropped and the connection kept.
fn give_up<S>(c: &mut ServerConn<S>, now_ms: u64) -> Result<bool, Ending> {
    let State::Busy(a) = std::mem::replace(&mut c.state, State::Closed) else {
        return Err(Ending::GivenUp);
    };
    let left_bytes = match a.response {
        Receiving::Body(left)
            if a.pool.is_some() && a.request == Sending::Sent && a.protocol.drains =>
        {
            left
        }
        _ => Some(u64::MAX),
    };
    // A body whose length nobody has told may end soon.
    if a.unwritable.is_some() || left_bytes.is_some_and(|left| left > DRAIN_BYTES) {
        c.state = State::Busy(a);
        return Err(Ending::GivenUp);
    }
    let draining = Draining {
        left_bytes: DRAIN_BYTES,
        until_ms: now_ms.saturating_add(DRAIN_MS),
    };
    c.state = State::Draining(a, draining);
    Ok(true)
}

/// Reads and drops what is left of a response.
fn drain<N: Net>(c: &mut ServerConn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Ending> {
    let State::Draining(a, draining) = &mut c.state else {
        return Ok(false);
    };
    if !c.flags.readable {
        return Ok(false);
    }
    let buffer = &mut sh.attempts.buffer;
    match sh.net.receive_into(&mut c.socket, buffer, READ_BYTES) {
        Ok(read) if read > 0 => {
            c.flags.readable = read == READ_BYTES || c.flags.hung_up;
            draining.left_bytes = draining.left_bytes.saturating_sub(read as u64);
            let left = draining.left_bytes;
            a.tools.engine.receive(buffer);
            while let Some(event) = a.tools.engine.event() {
                match event {
                    Event::Upstream(UpstreamEvent::End) => return Err(Ending::Complete),
                    Event::Upstream(_) => {}
                    Event::Failed(_) => return Err(Ending::GivenUp),
                }
            }
            // More than that is not worth a connection.
            if left == 0 {
                Err(Ending::GivenUp)
            } else {
                Ok(true)
            }
        }
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
            c.flags.readable = false;
            Ok(false)
        }
        _ => Err(Ending::GivenUp),
    }
}

/// Reads once, no more than the exchange has room for, and handles the events; true if there was input.
fn receive<N: Net>(c: &mut ServerConn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Ending> {
    let State::Busy(a) = &mut c.state else {
        return Ok(false);
    };
    let now_ms = sh.clock.mono_ms;
    let window = a.call().window();
    if std::mem::replace(&mut a.paused, window == 0) && window > 0 {
        a.read_ms = now_ms;
    }
    if !c.flags.readable || window == 0 || a.response == Receiving::TunnelEnded {
        return Ok(false);
    }
    let most = usize::try_from(window).map_or(READ_BYTES, |window| window.min(READ_BYTES));
    let buffer = &mut sh.attempts.buffer;
    match sh.net.receive_into(&mut c.socket, buffer, most) {
        Ok(0) => {
            c.flags.readable = false;
            sh.files.input_received();
            receive_eof(c, sh)?;
            Ok(false)
        }
        Ok(read) => {
            // A file that the server has just written must show, where its response names one.
            sh.files.input_received();
            a.read_ms = now_ms;
            a.call().note(|facts| facts.received_bytes += read as u64);
            if a.response == Receiving::Nothing {
                a.response = Receiving::Head;
            }
            // A short read has emptied the socket, unless the server's end is behind it.
            let is_last = c.flags.eof && read < most;
            c.flags.readable = read == most || (c.flags.hung_up && !is_last);
            a.tools.engine.receive(buffer);
            tell(a, now_ms)?;
            if is_last {
                receive_eof(c, sh)?;
            } else if !c.flags.readable {
                acknowledge(a, &mut c.socket, &mut sh.net);
            }
            Ok(true)
        }
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
            c.flags.readable = false;
            c.flags.hung_up = false;
            match a.unwritable {
                // Nothing was said before the connection broke.
                Some(errno) => Err(Ending::Failed(Failure::Socket {
                    call: WRITE_CALL,
                    errno,
                })),
                None => Ok(false),
            }
        }
        Err(e) => Err(Ending::failed("recv()", &e)),
    }
}

/// Acknowledges what has come of a response that is not whole, once: a server that sends small pieces without TCP_NODELAY
/// sends the next one then only, and the kernel may delay the acknowledgement by 40 ms.
pub(super) fn acknowledge<N: Net>(a: &mut ActiveAttempt, socket: &mut N::Socket, net: &mut N) {
    if !std::mem::replace(&mut a.acknowledged, true) {
        net.acknowledge(socket);
    }
}

/// The server has ended its side.
fn receive_eof<N: Net>(c: &mut ServerConn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Ending> {
    let State::Busy(a) = &mut c.state else {
        return Ok(());
    };
    let now_ms = sh.clock.mono_ms;
    match a.response {
        Receiving::Nothing if a.unwritable.is_none() && a.reused && a.sent_bytes > 0 => {
            // The server may have closed before the request was there. If so it answers with a reset, which tells that nobody
            // has read the request: `ending::is_untouched`.
            let known = sh.net.acknowledged_bytes(&mut c.socket);
            if known.is_none_or(|acknowledged| acknowledged > c.sent_before) {
                return Err(Ending::Failed(Failure::Closed));
            }
            a.response = Receiving::Unanswered {
                until_ms: now_ms.saturating_add(RESET_WAIT_MS),
            };
            unanswered(c, sh)
        }
        Receiving::Unanswered { .. } => unanswered(c, sh),
        Receiving::Nothing | Receiving::Head if a.unwritable.is_some() => {
            Err(Ending::Failed(Failure::Socket {
                call: WRITE_CALL,
                errno: a.unwritable.unwrap_or_default(),
            }))
        }
        _ => {
            a.tools.engine.receive_eof();
            tell(a, now_ms)
        }
    }
}

/// Looks whether the reset has come.
fn unanswered<N: Net>(c: &mut ServerConn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Ending> {
    match sh.net.take_error(&mut c.socket) {
        Some(error) => Err(Ending::failed("recv()", &error)),
        None => Ok(()),
    }
}

/// Takes what the exchange has of the request, and writes; true if there may be more to do at once.
fn write<N: Net>(c: &mut ServerConn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Ending> {
    let (State::Busy(a) | State::Pipelined(a)) = &mut c.state else {
        return Ok(false);
    };
    let now_ms = sh.clock.mono_ms;
    let was_empty = a.tools.out.is_empty();
    feed(a);
    if was_empty && !a.tools.out.is_empty() && a.sent_bytes > 0 {
        a.wrote_ms = now_ms;
    }
    if a.unwritable.is_some() {
        a.tools.out.clear();
    }
    if c.flags.writable && !a.tools.out.is_empty() {
        // A request that leaves in one write waits for no acknowledgement of what was sent before.
        let is_alone = c.sent_before == 0
            && a.sent_bytes == 0
            && a.request == Sending::Queued
            && a.tools.out.len() <= ONE_WRITE_BYTES;
        if !is_alone && !c.nodelay {
            sh.net.set_nodelay(&mut c.socket, true);
            c.nodelay = true;
        }
        match sh.net.send(&mut c.socket, &mut a.tools.out, WRITE_BYTES, 0) {
            Ok(sent) => {
                c.flags.writable = !sent.blocked;
                wrote(a, sent.bytes, now_ms);
            }
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(Ending::Failed(Failure::Unsendable(SHORT_FILE)));
            }
            Err(e) => {
                // The server may have answered before it closed: that is read first.
                a.unwritable = Some(errno(&e));
                a.tools.out.clear();
                c.flags.readable = true;
                return Ok(true);
            }
        }
    }
    if a.tools.out.is_empty() && a.request == Sending::Queued {
        a.request = Sending::Sent;
        a.read_ms = now_ms;
        a.note_all_sent(now_ms);
        if matches!(a.response, Receiving::Tunnel | Receiving::TunnelEnded) {
            sh.net.shutdown(&mut c.socket);
        }
    }
    if a.request == Sending::Sent && a.response == Receiving::TunnelEnded {
        return Err(Ending::Complete);
    }
    // A send that ends at its limit leaves room in the socket, of which no event tells.
    let has_more = !a.tools.out.is_empty() || (a.call().has_body() && a.request == Sending::Body);
    Ok(c.flags.writable && has_more)
}

fn wrote(a: &mut ActiveAttempt, bytes: u64, now_ms: u64) {
    if bytes == 0 {
        return;
    }
    a.wrote_ms = now_ms;
    a.sent_bytes += bytes;
    a.note_sent(bytes);
    if a.response == Receiving::Tunnel {
        // A tunnel is in use while either side says something.
        a.read_ms = now_ms;
    }
}

/// Moves pieces of the request from the mailbox to the output queue.
fn feed(a: &mut ActiveAttempt) {
    while a.request == Sending::Body && a.tools.out.len() < QUEUE_BYTES {
        if let Some(chunk) = a.call().take_body() {
            a.tools.engine.send(chunk);
        } else if let Some(trailers) = a.call().take_body_end() {
            a.tools.engine.end(trailers.as_ref());
            a.request = Sending::Queued;
        } else {
            return;
        }
        a.tools.engine.transmit(&mut a.tools.out);
    }
}

impl Ending {
    fn failed(call: &'static str, error: &io::Error) -> Self {
        Self::Failed(Failure::Socket {
            call,
            errno: errno(error),
        })
    }
}

/// The number of an error; one without is that of a broken connection.
pub(super) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::BrokenPipe => EPIPE,
        io::ErrorKind::ConnectionRefused => ECONNREFUSED,
        _ => ECONNRESET,
    })
}

/// Bytes of a request in the output queue before no more of its body is taken; file ranges count in full.
const QUEUE_BYTES: u64 = 64 << 10;
/// Bytes that a new socket takes in one write, in any pieces: a buffer of 16 KiB is the least that systems are set to.
const ONE_WRITE_BYTES: u64 = 8 << 10;
/// Limits of reading an unwanted rest of a response to keep the connection, in bytes and milliseconds.
const DRAIN_BYTES: u64 = 64 << 10;
const DRAIN_MS: u64 = 1000;
/// Time to wait for a reset where the server has ended its side without an answer: longer than the way to nearly every
/// server and back takes.
const RESET_WAIT_MS: u64 = 500;
/// Name of a write in nginx's log.
const WRITE_CALL: &str = "writev()";
/// Error of a request whose body is in a file that has become shorter.
const SHORT_FILE: &str = "the file with the request body was truncated";
pub(super) const EPIPE: i32 = 32;
const ECONNRESET: i32 = 104;
const ECONNREFUSED: i32 = 111;
