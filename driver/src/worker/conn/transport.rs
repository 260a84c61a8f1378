//! Reading from the socket and writing to it, in the clear or with TLS.

use std::io;

use engines::http::OutputQueue;

use super::client::log_truncated;
use super::state::{Closed, Conn, Transport};
use super::{ended, fetching, probe, trace};
use crate::io::send::{Missing, Pieces};
use crate::worker::net::Net;
use crate::worker::readiness::WRITE_BYTES;
use crate::worker::shared::Shared;
use crate::worker::state::serving::Exchanges;

/// Result of one read.
pub(super) enum Input {
    /// Nothing for now.
    Nothing,
    /// This many bytes, in the thread's buffer.
    Bytes(usize),
    /// The end of the peer's side.
    End,
}

/// Reads once into the thread's buffer.
#[inline(always)]
pub(super) fn read<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<Input, Closed> {
    match sh.net.receive(&mut c.socket, &mut sh.scratch) {
        Ok(0) => {
            trace::received(c, sh, 0);
            c.flags.readable = false;
            Ok(Input::End)
        }
        Ok(n) => {
            probe::read(c, sh, n);
            sh.files.input_received();
            // A short read has emptied the socket, and a new event reports further bytes. After a hangup no event
            // follows, so its end must be read now.
            c.flags.readable = n == sh.scratch.len() || c.flags.hung_up;
            Ok(Input::Bytes(n))
        }
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
            c.flags.readable = false;
            c.flags.hung_up = false;
            probe::nothing_read(c, sh);
            Ok(Input::Nothing)
        }
        Err(error) => {
            ended::by_client(c, sh, Some(&error));
            Err(Closed)
        }
    }
}

/// Writes the queued output; true if there may be more to do at once.
// Long: each step needs parts of the connection that a function of its own would borrow whole.
pub(super) fn write<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    if !c.flags.writable {
        return Ok(false);
    }
    if sh.wants.samples && !probe::begin(c, sh)? {
        return Ok(c.flags.writable);
    }
    // During a handshake the protocol above can send nothing: its answer to early data waits.
    let (has_output, is_handshaking) = match c.transport.tls() {
        Some(tls) => (tls.stream.has_output(), tls.is_handshaking()),
        None => (false, false),
    };
    let Some(exchanges) = c.state.exchanges_mut() else {
        return match has_output {
            true => write_tls(c, sh),
            false => Ok(false),
        };
    };
    if (exchanges.out.is_empty() || is_handshaking) && !has_output {
        return Ok(false);
    }
    let (nodelay, pieces) = settings(exchanges, sh.clock.mono_ms);
    if nodelay != c.nodelay {
        c.nodelay = nodelay;
        sh.net.set_nodelay(&mut c.socket, nodelay);
    }
    let (out, ahead) = (&mut exchanges.out, exchanges.ahead.as_deref());
    let result = match &mut c.transport {
        Transport::Tls(tls) => {
            sh.send_tls(&mut tls.stream, &mut c.socket, out, Missing::Stop(ahead))
        }
        _ => {
            let socket = &mut c.socket;
            sh.net.send_cached(socket, out, WRITE_BYTES, pieces, ahead)
        }
    };
    match result {
        Ok(sent) => {
            c.flags.writable = !sent.blocked;
            if sent.bytes > 0 {
                c.last_progress_ms = sh.clock.mono_ms;
            }
            exchanges.sent += sent.bytes;
            sh.turn.bytes += sent.bytes;
            let left = exchanges.out.len();
            let more = left > 0 || !exchanges.active.is_empty();
            let has_ahead = exchanges.ahead.is_some();
            probe::written(exchanges, &mut c.probe, sh);
            trace::sent(c, sh, sent.bytes, left);
            let at_missing =
                left > 0 && c.flags.writable && sent.bytes < WRITE_BYTES && !is_handshaking;
            if at_missing || has_ahead {
                fetching::resume(c, sh, at_missing)?;
            }
            Ok(c.flags.writable && more && !is_handshaking)
        }
        Err(e) => {
            exchanges.record_failed_write();
            if let Some(x) = exchanges.front() {
                log_truncated(x, &mut c.probe, &e);
            }
            Err(Closed)
        }
    }
}

/// Settings of the oldest exchange's location: `tcp_nodelay`, and how files are sent.
#[inline(always)]
fn settings(exchanges: &Exchanges, now_ms: u64) -> (bool, Pieces) {
    let Some(x) = exchanges.front() else {
        return (true, Pieces::default());
    };
    let loc = x.route.core_loc();
    let pieces = Pieces {
        max_bytes: loc.connection.sendfile_max_chunk.0,
        nopush: *loc.connection.tcp_nopush,
        now_ms,
    };
    (*loc.connection.tcp_nodelay, pieces)
}

/// Writes pending output of TLS alone; there is no more to do.
#[cold]
fn write_tls<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let Some(tls) = c.transport.tls_mut() else {
        return Ok(false);
    };
    let nothing = &mut OutputQueue::default();
    let sent = sh.send_tls(&mut tls.stream, &mut c.socket, nothing, Missing::Wait);
    let sent = sent.map_err(|_| Closed)?;
    c.flags.writable = !sent.blocked;
    Ok(false)
}
