//! A request that has its connection for itself: reading, feeding, writing.

use engines::http::{BodyLength, ResponseHead};
use server_upstream::request::{Failure, UpstreamEvent};

use super::link::{self, Flushed, READ_BYTES};
use super::outcome::Ending;
use crate::worker::net::Net;
use crate::worker::server_state::engine::Event;
use crate::worker::server_state::{Attempt, Io, Link, Receiving, Sending};
use crate::worker::shared::Shared;

/// One pass; true if there may be more to do at once.
pub(super) fn pass<N: Net>(
    link: &mut Link<N::Socket>,
    io: &mut Io,
    a: &mut Attempt,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    let read = receive(link, io, a, sh)?;
    let wrote = write(link, io, a, sh)?;
    Ok(read || wrote)
}

/// Reads once, no more than the exchange has room for, and handles the events; true if there was input.
fn receive<N: Net>(
    link: &mut Link<N::Socket>,
    io: &mut Io,
    a: &mut Attempt,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    let now_ms = sh.clock.mono_ms;
    let window = a.call().window();
    if std::mem::replace(&mut a.paused, window == 0) && window > 0 {
        a.read_ms = now_ms;
    }
    if !link.flags.readable || window == 0 || a.response == Receiving::TunnelEnded {
        return Ok(false);
    }
    let most = usize::try_from(window).map_or(READ_BYTES, |window| window.min(READ_BYTES));
    let Some(input) = link::read(link, io, sh, most)? else {
        return Ok(false);
    };
    if input.bytes == 0 {
        receive_eof(link, io, a, sh)?;
        return Ok(false);
    }
    // A short read has emptied the socket, unless the server's end is behind it.
    let is_last = link.flags.eof && input.is_all;
    link.flags.readable &= !is_last;
    take_input(io, a, &mut sh.attempts.buffer, now_ms)?;
    if is_last {
        receive_eof(link, io, a, sh)?;
    } else if !link.flags.readable {
        acknowledge(link, io, sh);
    }
    Ok(true)
}

/// Takes bytes of the response, and leaves `buffer` empty.
#[inline]
pub(super) fn take_input(
    io: &mut Io,
    a: &mut Attempt,
    buffer: &mut Vec<u8>,
    now_ms: u64,
) -> Result<(), Ending> {
    a.read_ms = now_ms;
    let read = buffer.len() as u64;
    a.call().record(|facts| facts.received_bytes += read);
    if a.response == Receiving::Nothing {
        a.response = Receiving::Head;
    }
    io.engine.receive(buffer);
    deliver(io, a, now_ms)
}

/// Acknowledges a part of a response, once: a server that sends small pieces without TCP_NODELAY
/// sends the next one then only, and the kernel may delay the acknowledgement by 40 ms.
pub(super) fn acknowledge<N: Net>(link: &mut Link<N::Socket>, io: &mut Io, sh: &mut Shared<N>) {
    if !std::mem::replace(&mut io.acknowledged, true) {
        sh.net.acknowledge(&mut link.socket);
    }
}

/// The server has ended its side.
fn receive_eof<N: Net>(
    link: &mut Link<N::Socket>,
    io: &mut Io,
    a: &mut Attempt,
    sh: &mut Shared<N>,
) -> Result<(), Ending> {
    let now_ms = sh.clock.mono_ms;
    match a.response {
        Receiving::Nothing if io.unwritable.is_none() && io.reused && a.sent_bytes > 0 => {
            // The server may have closed before the request arrived. Then it answers with a reset, proof that the
            // request was not read: `ending::is_untouched`.
            let known = link::acknowledged_bytes(link, sh);
            if known.is_none_or(|acknowledged| acknowledged > link.sent_before) {
                return Err(Ending::Failed(Failure::Closed));
            }
            a.response = Receiving::AwaitingReset {
                until_ms: now_ms.saturating_add(RESET_WAIT_MS),
            };
            take_reset(link, sh)
        }
        Receiving::AwaitingReset { .. } => take_reset(link, sh),
        Receiving::Nothing | Receiving::Head if io.unwritable.is_some() => {
            Err(Ending::broken(io.unwritable.unwrap_or_default()))
        }
        _ => {
            io.engine.receive_eof(link.transport.is_whole());
            deliver(io, a, now_ms)
        }
    }
}

/// Looks whether the reset has come.
fn take_reset<N: Net>(link: &mut Link<N::Socket>, sh: &mut Shared<N>) -> Result<(), Ending> {
    match sh.net.take_error(&mut link.socket) {
        Some(error) => Err(Ending::failed("recv()", &error)),
        None => Ok(()),
    }
}

/// Sends received events to the exchange.
pub(super) fn deliver(io: &mut Io, a: &mut Attempt, now_ms: u64) -> Result<(), Ending> {
    while let Some(event) = io.engine.event() {
        let event = match event {
            Event::Upstream(event) => event,
            Event::Failed(failure) => return Err(Ending::Failed(failure)),
        };
        match &event {
            UpstreamEvent::Head(head, _) => {
                a.call().record(|facts| facts.head_ms = Some(now_ms));
                a.response = Receiving::Body(body_left(head));
            }
            UpstreamEvent::Data(chunk) => {
                if let Receiving::Body(Some(left)) = &mut a.response {
                    *left = left.saturating_sub(chunk.len());
                }
            }
            UpstreamEvent::Upgraded => {
                a.response = Receiving::Tunnel;
                a.request = Sending::Body;
            }
            UpstreamEvent::End if a.response == Receiving::Tunnel => {
                a.response = Receiving::TunnelEnded;
                a.call().record(|facts| facts.ended_ms = Some(now_ms));
            }
            UpstreamEvent::End => return Err(Ending::Complete),
            _ => {}
        }
        a.call().deliver(event);
    }
    Ok(())
}

fn body_left(head: &ResponseHead) -> Option<u64> {
    match head.body {
        BodyLength::None => Some(0),
        BodyLength::Length(bytes) => Some(bytes),
        BodyLength::Unknown => None,
    }
}

/// Takes pieces of the request from the mailbox, and writes; true if there may be more to do at once.
pub(super) fn write<N: Net>(
    link: &mut Link<N::Socket>,
    io: &mut Io,
    a: &mut Attempt,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    let now_ms = sh.clock.mono_ms;
    let was_empty = io.out.is_empty();
    feed(io, a);
    if was_empty && !io.out.is_empty() && a.sent_bytes > 0 {
        io.wrote_ms = now_ms;
    }
    // A request that leaves in one write waits for no acknowledgement of earlier bytes.
    let may_be_alone = a.sent_bytes == 0 && a.request == Sending::Queued;
    let Flushed { bytes, is_broken } = link::flush(link, io, sh, may_be_alone)?;
    if bytes > 0 {
        a.sent_bytes += bytes;
        a.call().record(|facts| facts.sent_bytes += bytes);
        if a.response == Receiving::Tunnel {
            // A tunnel is in use while either side sends.
            a.read_ms = now_ms;
        }
    }
    if is_broken {
        return Ok(true);
    }
    if a.request == Sending::Queued && link::is_flushed(link, io) {
        a.request = Sending::Sent;
        a.read_ms = now_ms;
        a.call().record(|facts| {
            facts.sent_ms.get_or_insert(now_ms);
        });
        if matches!(a.response, Receiving::Tunnel | Receiving::TunnelEnded) {
            link::shutdown(link, sh);
        }
    }
    if a.request == Sending::Sent && a.response == Receiving::TunnelEnded {
        return Err(Ending::Complete);
    }
    // A send that ends at its limit leaves room in the socket, and no event reports it.
    let has_more = !io.out.is_empty() || (a.call().has_body() && a.request == Sending::Body);
    Ok(link.flags.writable && has_more)
}

/// Moves pieces of the request from the mailbox to the output queue.
fn feed(io: &mut Io, a: &mut Attempt) {
    while a.request == Sending::Body && io.out.len() < QUEUE_BYTES {
        if let Some(chunk) = a.call().take_body() {
            io.engine.send(chunk);
        } else if let Some(trailers) = a.call().take_body_end() {
            io.engine.end(trailers.as_ref());
            a.request = Sending::Queued;
        } else {
            return;
        }
        io.engine.transmit(&mut io.out);
    }
}

/// Bytes of a request in the output queue before no more of its body is taken; file ranges count in full.
const QUEUE_BYTES: u64 = 64 << 10;
/// Time to wait for a reset after the server has ended its side without an answer: longer than the way to nearly every
/// server and back takes.
const RESET_WAIT_MS: u64 = 500;
