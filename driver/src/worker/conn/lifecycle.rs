//! How a connection waits and ends: its one deadline, what happens when it passes, lingering, and the close.

use engines::h1::{Next, Phase};
use server_core::conf_core::{CoreSrv, Lingering};
use server_core::errlog::Level;
use server_core::exchange::State;
use server_core::phases;

use super::h1::respond;
use super::state::{Active, Cause, Closed, Conn, Fate, Mode, client};
use super::trace::debug_conn;
use super::{mux, sampling, turn, write};
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// Closes, or ends our side and reads on where the peer may still be sending: a close with unread bytes would reset the
/// connection and could take the response with it.
pub(super) fn linger<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    next: Next,
) -> Result<bool, Closed> {
    let Some(a) = &mut c.active else {
        return Err(Closed);
    };
    let wanted = match a.closing.rule {
        Lingering::Off => false,
        Lingering::On => next == Next::Linger || c.readable,
        Lingering::Always => true,
    };
    if !wanted && (sh.stopping || c.retired) {
        // The head of this response may have told that the connection stays.
        return end_side(c, sh);
    }
    if !wanted {
        return Err(Closed);
    }
    say_goodbye(c, sh);
    sh.net.shutdown(&mut c.socket);
    let Some(a) = &mut c.active else {
        return Err(Closed);
    };
    a.mode = Mode::Linger {
        until_ms: sh.clock.mono_ms + a.closing.time_ms,
    };
    c.mark_ms = sh.clock.mono_ms;
    debug_conn!(HTTP, c, sh, "http lingering close handler");
    // As in `end_side`.
    c.readable = true;
    Ok(true)
}

/// Makes the response under way, or else the next one, the last. A connection that is kept alive ends at once, unless
/// `keepalive_min_timeout` spares it or a request has come that was not read yet.
pub fn retire<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Fate {
    if c.says_goodbye() {
        // Its engine says when it ends.
        if sh.stopping {
            c.drain();
        } else {
            c.make_last();
        }
        return turn(c, sh, Cause::default());
    }
    let ends = c.is_kept_alive() && !c.is_spared(sh.clock.mono_ms);
    c.make_last();
    let cause = Cause {
        readable: ends,
        ..Cause::default()
    };
    let fate = turn(c, sh, cause);
    if !ends || !c.is_kept_alive() || c.ended || fate == Fate::Close {
        return fate;
    }
    match end_side(c, sh) {
        Ok(_) => turn(c, sh, Cause::default()),
        Err(Closed) => close(c, sh),
    }
}

/// Ends our side of a connection on which nothing is under way. A request may be on its way that the peer sent before it
/// saw the end; a close now would answer it with a reset, which can take the last response with it. With
/// `lingering_close off` in the location of the last request, the connection closes.
fn end_side<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    if !c.lingers {
        return Err(Closed);
    }
    say_goodbye(c, sh);
    sh.net.shutdown(&mut c.socket);
    if let Some(active) = c.active.take() {
        sh.release(active);
    }
    c.ended = true;
    c.mark_ms = sh.clock.mono_ms;
    // The peer's end may have been read before, and is found again by one more read.
    c.readable = true;
    Ok(true)
}

/// The goodbyes of HTTP/2 and TLS, as far as the socket takes them.
fn say_goodbye<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    if c.mux.is_some() {
        let _ = write(c, sh);
    }
    if let Some(tls) = &mut c.tls {
        tls.close();
        let _ = write(c, sh);
    }
}

/// The deadline has passed, unless the connection has moved on since it was set.
pub(super) fn expire<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    sampling::expire(c, sh);
    if deadline(c, sh) > sh.clock.mono_ms {
        return Ok(());
    }
    if c.mux.is_some() {
        return if mux::resume(c, sh) {
            Ok(())
        } else {
            Err(Closed)
        };
    }
    let Some(a) = &mut c.active else {
        if c.is_kept_alive() && !c.ended && (sh.stopping || c.retired) {
            return end_side(c, sh).map(|_| ());
        }
        return Err(Closed);
    };
    if let Some(x) = &mut a.exchange
        && let State::Waiting(wait) = x.state
        && wait.until_ms <= sh.clock.mono_ms
        && a.tail.is_empty()
    {
        phases::resume(x, &mut sh.ctx());
        return respond(c, sh);
    }
    if held_until(a).is_some() {
        // The next piece of a response may be there.
        return Ok(());
    }
    if !a.is_settled() {
        let x = a.tail.front().map(|q| &q.exchange).or(a.exchange.as_ref());
        let reset = x.is_some_and(|x| *x.core_loc(&x.http).reset_timedout_connection);
        if reset {
            sh.net.reset(&mut c.socket);
        }
    } else if a.mode == Mode::Serve && a.engine.phase() == Phase::Head {
        log_unfinished(c, sh, 408, "client timed out");
    }
    Err(Closed)
}

/// Until when the next piece of the response is waited for at most, where it is and nothing is queued before it.
fn held_until(a: &Active) -> Option<u64> {
    let x = a.exchange.as_ref().filter(|_| a.out.is_empty())?;
    x.pull_wait.map(|wait| wait.until_ms)
}

/// When the connection is to take a turn if nothing happens before.
pub(super) fn deadline<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>) -> u64 {
    let deadline_ms = own_deadline(c, sh);
    match &c.sample {
        None => deadline_ms,
        Some(sample) => deadline_ms.min(sample.until_ms()),
    }
}

/// The same, but for the sake of a sampled response.
fn own_deadline<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>) -> u64 {
    if let Some(mux) = &c.mux {
        let idle_ms = if sh.stopping || c.retired {
            c.min_idle_ms.min(c.idle_ms)
        } else {
            c.idle_ms
        };
        return mux.deadline(c.mark_ms, idle_ms, header_timeout(c, sh), c.requests == 0);
    }
    let Some(a) = &c.active else {
        let wait = match c.requests {
            _ if c.ended => ENDED_MS,
            0 => header_timeout(c, sh),
            _ if sh.stopping || c.retired => c.min_idle_ms.min(c.idle_ms),
            _ => c.idle_ms,
        };
        return c.mark_ms.saturating_add(wait);
    };
    match a.mode {
        Mode::AwaitBody { until_ms } | Mode::Linger { until_ms } => {
            return until_ms.min(c.mark_ms.saturating_add(a.closing.timeout_ms));
        }
        Mode::Serve => {}
    }
    if let Some(until_ms) = held_until(a) {
        return until_ms;
    }
    let x = a.tail.front().map(|q| &q.exchange).or(a.exchange.as_ref());
    let wait = match x {
        Some(x) => match x.state {
            State::Waiting(wait) => return wait.until_ms,
            _ => x.core_loc(&x.http).send_timeout.0,
        },
        None => header_timeout(c, sh),
    };
    c.mark_ms.saturating_add(wait)
}

/// `client_header_timeout` of the port's default server.
pub(super) fn header_timeout<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>) -> u64 {
    let http = &sh.generation.http;
    // A retired connection may have no port in a new configuration.
    let server = http
        .ports
        .get(c.port as usize)
        .map_or(0, |port| port.addr(None).default_server);
    http.servers.get(server).map_or(0, |server| {
        server.confs.get::<CoreSrv>().client_header_timeout.0
    })
}

/// Logs a request whose head never became complete.
pub(super) fn log_unfinished<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    status: u16,
    why: &str,
) {
    if c.gone {
        return;
    }
    c.requests = c.requests.saturating_add(1);
    let client = client(c, sh, false);
    let mut x = sh.exchange(client, c.port());
    x.head.clear();
    phases::place(&mut x);
    x.err_status = status;
    x.log(Level::Info, format_args!("{why}"));
    if status == 408 && *x.core_loc(&x.http).reset_timedout_connection {
        sh.net.reset(&mut c.socket);
    }
    sh.finish(x);
}

/// Gives back what the connection holds; exchanges under way are logged as far as they came.
pub(super) fn close<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Fate {
    if let Some(tls) = &c.tls {
        tls.count_end();
    }
    sampling::end(c, sh);
    // What the goodbye takes with it has been sent as well.
    mux::say_last(c);
    say_goodbye(c, sh);
    mux::close(c, sh);
    debug_conn!(
        HTTP,
        c,
        sh,
        "close http connection: {}",
        sh.net.number(&c.socket)
    );
    let Some(mut a) = c.active.take() else {
        return Fate::Close;
    };
    let sent = a.sent;
    while let Some(queued) = a.tail.pop_front() {
        let mut x = queued.exchange;
        x.bytes_sent = sent.clamp(queued.start, queued.end) - queued.start;
        sh.finish(x);
    }
    if let Some(mut x) = a.exchange.take() {
        x.bytes_sent = sent.saturating_sub(a.start);
        sh.finish(x);
    }
    sh.release(a);
    Fate::Close
}

/// How long what comes is dropped after our side of an idle connection was ended: more than the way to nearly every client
/// and back takes, and little to wait for when a server ends.
pub const ENDED_MS: u64 = 500;
