//! A connection whose next bytes are of a file and not in the page cache.
//!
//! [`wait`] has them read by a thread of the pool that `aio` names, and the connection writes nothing until it is woken.
//! Other connections have their turns meanwhile. The thread that serves reads for itself where `aio off` says so, where
//! the pool's queue is full, and where a piece that was read is missing again, so that each wait ends in progress.
//!
//! What waits behind the piece in the output queue waits as well, be it of another stream.

use std::sync::Arc;

use engines::http::Front;
use server_base::errlog::Level;
use server_base::thread_pool::{Aio, ThreadPool};
use server_base::waker::{WakeKey, Waker};

use super::client::{log, log_truncated};
use super::serving::Exchanges;
use super::state::{Closed, Conn, Transport};
use super::tls;
use crate::io::send::Missing;
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// Sees to the next bytes of the queue, before which a write has ended although the socket is not full.
#[cold]
#[inline(never)]
pub(super) fn wait<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let Some(exchanges) = c.state.exchanges_mut() else {
        return Ok(());
    };
    let Some(Front::File(range)) = exchanges.out.front() else {
        return Ok(());
    };
    if !sh.net.stops_at_missing() {
        return Ok(());
    }
    if is_waiting(exchanges) {
        // An event has told of room in the socket.
        c.writable = false;
        return Ok(());
    }
    let begun_at = exchanges.fetch.take().map(|(at, _)| at);
    if begun_at == Some(exchanges.sent) {
        return read_here(c, sh);
    }
    let Some(pool) = pool(exchanges) else {
        return read_here(c, sh);
    };
    let key = WakeKey {
        owner: sh.owner,
        stream: FETCH_STREAM,
    };
    let waker = Waker::new(key, &sh.wakers).remote();
    match sh.net.fetch(range, &pool, waker) {
        Ok(fetch) => {
            exchanges.fetch = Some((exchanges.sent, fetch));
            c.writable = false;
            Ok(())
        }
        Err(_) => {
            let text = format_args!(
                "thread pool \"{}\" queue overflow: {} tasks waiting",
                pool.name(),
                pool.max_queue()
            );
            log(c, sh, Level::Error, text);
            read_here(c, sh)
        }
    }
}

/// A piece may have been read: the connection writes again.
pub(super) fn wake<S>(c: &mut Conn<S>, keys: &[WakeKey]) {
    // Keys are sorted by stream.
    if keys.first().is_some_and(|key| key.stream == FETCH_STREAM) {
        c.writable = true;
    }
}

/// Whether a piece is being read.
pub(super) fn is_waiting(exchanges: &Exchanges) -> bool {
    let fetch = exchanges.fetch.as_ref();
    fetch.is_some_and(|(_, fetch)| !fetch.is_done())
}

/// The pool that `aio` of the front exchange's location names; none with `aio off`.
fn pool(exchanges: &Exchanges) -> Option<Arc<ThreadPool>> {
    let x = exchanges.front()?;
    match &x.core_loc(&x.http).aio {
        Some(Aio::Threads(pool)) => Some(Arc::clone(pool)),
        Some(Aio::Off) | None => None,
    }
}

/// Writes a little of what is missing, which waits for the disk.
fn read_here<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let Some(exchanges) = c.state.exchanges_mut() else {
        return Ok(());
    };
    let out = &mut exchanges.out;
    let now_ms = sh.clock.mono_ms;
    let result = match &mut c.transport {
        Transport::Tls(tls) => {
            let (net, buffers) = (&mut sh.net, &mut sh.tls_buffers);
            let wait = Missing::Wait;
            tls::send(tls, &mut c.socket, out, net, buffers, now_ms, wait)
        }
        _ => sh.net.send(&mut c.socket, out, READ_HERE_BYTES, 0),
    };
    match result {
        Ok(sent) => {
            c.writable = !sent.blocked;
            exchanges.sent += sent.bytes;
            if sent.bytes > 0 {
                c.last_progress_ms = now_ms;
            }
            Ok(())
        }
        Err(error) => {
            if let Some(x) = exchanges.front() {
                log_truncated(x, &error);
            }
            Err(Closed)
        }
    }
}

/// The stream of no exchange, by which a connection itself is woken.
const FETCH_STREAM: u32 = 0;
/// Bytes that a thread that serves reads at a time.
const READ_HERE_BYTES: u64 = 256 << 10;
