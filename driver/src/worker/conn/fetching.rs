//! Output of a connection that continues with file bytes outside the page cache.
//!
//! [`resume`] has them read by a thread of the pool in `aio`, and the connection writes nothing until it is woken.
//! Other connections have their turns meanwhile. From then on the file is read ahead of the sends (`io::read_ahead`).
//! The serving thread reads the bytes itself in three cases: `aio off`, a full queue of the pool, or a piece that was
//! read and is missing again. So each wait ends in progress.
//!
//! Output behind the piece in the queue waits as well, even of other streams.

use std::sync::Arc;

use engines::http::{FileRange, Front};
use server_base::errlog::Level;
use server_base::thread_pool::{Aio, ThreadPool};
use server_base::waker::{RemoteWaker, WakeKey, Waker};

use super::client::log_truncated;
use super::ended::log;
use super::state::{Closed, Conn, State, Transport};
use crate::io::read_ahead::Step;
use crate::io::read_pool::Refused;
use crate::io::send::Missing;
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::serving::{Exchanges, Protocol};

/// Handles the file at the front of the queue after a write. The write has ended before missing bytes (`at_missing`),
/// at a full socket, or at its limit.
#[cold]
#[inline(never)]
pub(super) fn resume<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    at_missing: bool,
) -> Result<(), Closed> {
    let is_whole = matches!(&c.state, State::Serving(Protocol::H1(_)));
    let Some(exchanges) = c.state.exchanges_mut() else {
        return Ok(());
    };
    let Some(Front::File(range)) = exchanges.out.front() else {
        if exchanges.out.is_empty() && exchanges.active.is_empty() {
            exchanges.ahead = None;
        }
        return Ok(());
    };
    if !sh.net.stops_at_missing() {
        return Ok(());
    }
    let mut range = range.clone();
    if !is_whole {
        // A frame holds only a part of the stream's file range; a read ends at the end of the file.
        range.len = u64::MAX - range.offset;
    }
    let piece_bytes = sh.net.piece_bytes();
    let step = match &mut exchanges.ahead {
        Some(ahead) => ahead.step(&range, at_missing, piece_bytes),
        None if at_missing => Step::Read,
        None => Step::Send,
    };
    match step {
        Step::Send => Ok(()),
        Step::Wait => {
            // Room in the socket is of no use until the bytes are there.
            pause(c, sh.clock.mono_ms);
            Ok(())
        }
        Step::Read => read(c, sh, &range),
        Step::ReadHere => read_here(c, sh),
        Step::ReadAhead(from) => {
            let next = FileRange {
                offset: from,
                len: range.len - (from - range.offset),
                ..range.clone()
            };
            read_on(c, sh, &range, &next);
            Ok(())
        }
    }
}

/// Has the first bytes of `range` read, for which the connection waits.
fn read<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    range: &FileRange,
) -> Result<(), Closed> {
    let Some(pool) = pool(c) else {
        return read_here(c, sh);
    };
    let waker = waker(sh);
    match (sh.net.fetch(range, &pool, waker), c.state.exchanges_mut()) {
        (Ok(fetch), Some(exchanges)) => {
            let ahead = exchanges.ahead.get_or_insert_default();
            ahead.await_read(range, fetch);
            pause(c, sh.clock.mono_ms);
            Ok(())
        }
        (Err(Refused::Full), _) => {
            let text = format_args!(
                "thread pool \"{}\" queue overflow: {} tasks waiting",
                pool.name(),
                pool.max_queue()
            );
            log(c, sh, Level::Error, text);
            read_here(c, sh)
        }
        _ => read_here(c, sh),
    }
}

/// Has the first bytes of `next` read while the bytes before them, at the begin of `front`, are sent. If the pool
/// refuses, they are requested again before their send.
fn read_on<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    front: &FileRange,
    next: &FileRange,
) {
    let Some(pool) = pool(c) else {
        return;
    };
    let waker = waker(sh);
    if let Ok(fetch) = sh.net.fetch(next, &pool, waker)
        && let Some(exchanges) = c.state.exchanges_mut()
        && let Some(ahead) = &mut exchanges.ahead
    {
        ahead.read_on(front, fetch);
    }
}

fn waker<N: Net>(sh: &Shared<N>) -> RemoteWaker {
    let key = WakeKey {
        owner: sh.owner,
        stream: FETCH_STREAM,
    };
    Waker::new(key, &sh.queues.wakers).remote()
}

/// A piece may have been read: the connection writes again.
pub(super) fn wake<S>(c: &mut Conn<S>, keys: &[WakeKey]) {
    // Keys are sorted by stream.
    if keys.first().is_some_and(|key| key.stream == FETCH_STREAM)
        && let Some(exchanges) = c.state.exchanges_mut()
        && let Some(ahead) = &mut exchanges.ahead
        && ahead.resume()
    {
        c.flags.writable = true;
    }
}

/// The connection writes nothing until it is woken.
fn pause<S>(c: &mut Conn<S>, now_ms: u64) {
    c.flags.writable = false;
    if let Some(exchanges) = c.state.exchanges_mut()
        && let Some(ahead) = &mut exchanges.ahead
    {
        ahead.pause(now_ms);
    }
}

/// Whether a read of the next bytes has been in progress since before this time.
pub(super) fn waits_since_before(exchanges: &Exchanges, at_ms: u64) -> bool {
    let ahead = exchanges.ahead.as_ref();
    let paused_ms = ahead.and_then(|ahead| ahead.paused_ms());
    paused_ms.is_some_and(|paused_ms| paused_ms < at_ms)
}

/// The pool that `aio` of the front exchange's location names; none with `aio off`.
fn pool<S>(c: &Conn<S>) -> Option<Arc<ThreadPool>> {
    let x = c.state.exchanges()?.front()?;
    match &x.route.core_loc().files.aio {
        Some(Aio::Threads(pool)) => Some(Arc::clone(pool)),
        Some(Aio::Off) | None => None,
    }
}

/// Writes a little of the missing bytes, and waits for the disk.
fn read_here<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let Some(exchanges) = c.state.exchanges_mut() else {
        return Ok(());
    };
    let out = &mut exchanges.out;
    let now_ms = sh.clock.mono_ms;
    let result = match &mut c.transport {
        Transport::Tls(tls) => sh.send_tls(&mut tls.stream, &mut c.socket, out, Missing::Wait),
        _ => sh.net.send(&mut c.socket, out, READ_HERE_BYTES, 0),
    };
    match result {
        Ok(sent) => {
            c.flags.writable = !sent.blocked;
            exchanges.sent += sent.bytes;
            if sent.bytes > 0 {
                c.last_progress_ms = now_ms;
            }
            Ok(())
        }
        Err(error) => {
            exchanges.record_failed_write();
            if let Some(x) = exchanges.front() {
                log_truncated(x, &mut c.probe, &error);
            }
            Err(Closed)
        }
    }
}

/// The stream of no exchange, by which a connection itself is woken.
const FETCH_STREAM: u32 = 0;
/// Bytes that a thread that serves reads at a time.
const READ_HERE_BYTES: u64 = 256 << 10;
