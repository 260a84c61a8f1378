//! A connection that speaks HTTP/1: one exchange at a time, pipelined responses queued behind each other.

use engines::h1::{Event, Next, Phase};
use engines::http::{Fault, RequestHead};
use server_core::conf_core::Lingering;
use server_core::debug_http;
use server_core::exchange::{Exchange, Pulled, State};
use server_core::phases;

use super::lifecycle::{linger, log_unfinished};
use super::state::{Active, Closed, Closing, Conn, Mode, Queued};
use super::trace::{self, debug_conn};
use super::{
    CLIENT_CLOSED_REQUEST, PIPELINE_DEPTH, QUEUE_BYTES, early_responses, open_exchange, sampling,
};
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// Takes the engine's events; a head starts an exchange.
pub(super) fn deliver<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let Some(a) = &mut c.active else {
        return Ok(());
    };
    let mut started: Option<RequestHead> = None;
    let mut early = Early::default();
    while let Some(event) = a.engine.event() {
        match event {
            Event::Head(mut head) => {
                if c.plain_on_tls {
                    head.fault = Some(Fault::PlainToTls);
                }
                started = Some(head);
            }
            // The request is here, if not all of its body: it is answered, and that is the end.
            Event::Eof if started.is_some() => a.engine.close_after(),
            Event::Eof => {
                peer_ended(c, sh)?;
                return Ok(());
            }
            event => deliver_body(a, sh, event, started.is_some(), &mut early),
        }
    }
    match started {
        Some(mut head) => {
            head.size_bytes += a.engine.body_bytes();
            head.fault = head.fault.or(early.fault);
            begin(c, sh, head, early)
        }
        None if a.exchange.is_some() => go_on(c, sh, early.fault),
        None => Ok(()),
    }
}

/// Body that came with its head, and what is wrong with it, or with one that is waited for.
#[derive(Default)]
struct Early {
    bytes: Vec<u8>,
    ended: bool,
    fault: Option<Fault>,
}

/// Takes an event of a request body.
#[inline(never)]
fn deliver_body<N: Net>(
    a: &mut Active,
    sh: &mut Shared<N>,
    event: Event,
    with_head: bool,
    early: &mut Early,
) {
    match event {
        Event::Data(bytes) => match &mut a.exchange {
            Some(x) => x.deliver_body(bytes, &mut sh.ctx()),
            None => early.bytes = bytes,
        },
        Event::BodyEnd => match &mut a.exchange {
            Some(x) if x.wants_body() => x.end_body(&mut sh.ctx()),
            Some(_) => {}
            None if a.next == Next::AwaitBody => end_exchange(a),
            None => early.ended = true,
        },
        Event::BodyFault(found) => match &a.exchange {
            // The response is not decided yet: answer the broken body instead.
            _ if with_head => early.fault = Some(found),
            Some(x) if x.is_waiting() => early.fault = Some(found),
            _ if a.next == Next::AwaitBody => end_exchange(a),
            _ => a.engine.close_after(),
        },
        Event::Head(_) | Event::Trailers(_) | Event::Eof => {}
    }
}

/// The rest of a body that nobody wanted is over.
fn end_exchange(a: &mut Active) {
    a.next = a.engine.finish();
    a.mode = Mode::Serve;
}

/// Goes on with an exchange whose body is there, or is none.
#[inline(never)]
fn go_on<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    fault: Option<Fault>,
) -> Result<(), Closed> {
    let Some(a) = &mut c.active else {
        return Ok(());
    };
    let Some(x) = &mut a.exchange else {
        return Ok(());
    };
    x.request_bytes += a.engine.body_bytes();
    match fault {
        Some(fault) => phases::refuse_body(x, &mut sh.ctx(), fault),
        None if x.is_body_due() => phases::resume(x, &mut sh.ctx()),
        None => return Ok(()),
    }
    respond(c, sh)
}

/// The peer ended its side between requests, or inside of one.
fn peer_ended<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let Some(a) = &mut c.active else {
        return Err(Closed);
    };
    if a.next == Next::AwaitBody && a.is_settled() {
        return Err(Closed);
    }
    if a.exchange.is_some() || !a.out.is_empty() {
        // The request is here, if not all of its body. The response still goes out.
        a.engine.close_after();
        if a.exchange.is_none() {
            a.next = Next::Close;
        }
        return Ok(());
    }
    if a.engine.phase() == Phase::Head {
        log_unfinished(
            c,
            sh,
            400,
            "client prematurely closed connection while reading the request head",
        );
    }
    Err(Closed)
}

/// Ends an exchange that waits for a timer if the peer is gone: nobody waits for the answer any more. The engine tells
/// of the end only where a request may begin.
pub(super) fn abandon<S>(c: &mut Conn<S>) -> Result<(), Closed> {
    if let Some(a) = &mut c.active
        && let Some(x) = &mut a.exchange
        && x.is_waiting()
        && a.engine.input_ended()
        && !a.engine.has_buffered()
        && a.tail.is_empty()
    {
        if x.awaits_body() {
            x.lose_body();
        } else {
            x.err_status = CLIENT_CLOSED_REQUEST;
            x.reply.status = CLIENT_CLOSED_REQUEST;
        }
        return Err(Closed);
    }
    Ok(())
}

/// Starts an exchange.
fn begin<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    head: RequestHead,
    early: Early,
) -> Result<(), Closed> {
    let mut x = open_exchange(c, sh, &head)?;
    let old = std::mem::replace(&mut x.head, head);
    let Some(a) = &mut c.active else {
        return Err(Closed);
    };
    a.engine.recycle(old);
    a.start = a.queued;
    let stopping = sh.stopping || c.retired;
    phases::begin(&mut x, &mut sh.ctx());
    if x.wants_body() {
        take_early(&mut x, sh, early);
    }
    if stopping {
        x.keep_alive = false;
        x.response.keep_alive = false;
    }
    a.exchange = Some(x);
    respond(c, sh)
}

/// Gives an exchange that waits what came of its body with the head.
#[inline(never)]
fn take_early<N: Net>(x: &mut Exchange, sh: &mut Shared<N>, early: Early) {
    if !early.bytes.is_empty() {
        x.deliver_body(early.bytes, &mut sh.ctx());
    }
    if early.ended {
        x.end_body(&mut sh.ctx());
    }
    if x.is_body_due() {
        phases::resume(x, &mut sh.ctx());
    }
}

/// Sends what may leave of an exchange that waits: interim responses.
#[inline(never)]
fn wait<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    sh.timer_set = true;
    let Some(a) = &mut c.active else { return };
    let Some(x) = &mut a.exchange else { return };
    let continues = x.head.expect_continue && x.awaits_body() && !a.engine.body_done();
    if x.ahead.is_none() && !continues {
        return;
    }
    early_responses::over_h1(x, &mut a.engine);
    if continues {
        a.engine.send_interim(100, None);
        x.head.expect_continue = false;
    }
    if a.out.is_empty() {
        c.mark_ms = sh.clock.mono_ms;
    }
    let before = a.out.len();
    a.engine.transmit(&mut a.out);
    a.queued += a.out.len() - before;
}

/// Sends the head of an exchange that has one.
#[inline(always)] // Most come from `begin`, and a call costs a hundredth of an exchange.
pub(super) fn respond<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let Some(a) = &mut c.active else {
        return Err(Closed);
    };
    let Some(x) = &mut a.exchange else {
        return Ok(());
    };
    match x.state {
        State::Running => Ok(()),
        State::Waiting(_) => {
            wait(c, sh);
            Ok(())
        }
        // Responses to requests before this one still leave, and are logged before it.
        State::Aborted => Ok(()),
        State::Responding => {
            if x.ahead.is_some() {
                early_responses::over_h1(x, &mut a.engine);
            }
            if !a.engine.body_done() {
                if x.head.expect_continue && x.err_status == 0 {
                    a.engine.send_interim(100, None);
                }
                a.engine.discard_body();
            }
            debug_http!(x, "{}", trace::Head(&x.response));
            x.header_bytes += a.engine.send_head(&x.response);
            if a.out.is_empty() {
                c.mark_ms = sh.clock.mono_ms;
            }
            Ok(())
        }
    }
}

/// Moves the body from the exchange to the engine and on to the queue; true if the response is queued whole and bytes
/// of a next request are at hand, whose response can leave in the same write.
pub(super) fn pump<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let Some(a) = &mut c.active else {
        return Ok(false);
    };
    let Some(x) = &mut a.exchange else {
        return Ok(false);
    };
    if x.state != State::Responding {
        return Ok(false);
    }
    let (mut ended, mut later) = (false, false);
    let limited = x.has_rate();
    if (limited || x.may_wait()) && a.out.is_empty() {
        // What was held back is no silence of the client.
        c.mark_ms = sh.clock.mono_ms;
    }
    while !ended && !later && a.out.len() < QUEUE_BYTES {
        let pulled = if limited {
            x.pull_within(&mut sh.ctx(), a.queued - a.start)
        } else {
            x.pull(&mut sh.ctx())
        };
        match pulled {
            Pulled::Broken => return Err(Closed),
            Pulled::Chunk(chunk) => a.engine.send_data(chunk),
            Pulled::Pending | Pulled::BudgetSpent => later = true,
            Pulled::End => {
                if let Some(on_end) = x.on_end {
                    on_end(x, &mut sh.ctx());
                }
                let trailers = (!x.reply.trailers.fields.is_empty()).then_some(&x.reply.trailers);
                a.engine.send_end(trailers);
                ended = true;
            }
        }
        // The head leaves even where nothing of the body can yet.
        let before = a.out.len();
        a.engine.transmit(&mut a.out);
        a.queued += a.out.len() - before;
    }
    if !ended {
        return Ok(false);
    }
    let Some(exchange) = a.exchange.take() else {
        return Ok(false);
    };
    trace::finalized(&exchange);
    let loc = exchange.core_loc(&exchange.http);
    a.closing = Closing {
        rule: *loc.lingering_close,
        time_ms: loc.lingering_time.0,
        timeout_ms: loc.lingering_timeout.0,
    };
    c.idle_ms = loc.keepalive().idle_ms;
    c.min_idle_ms = loc.keepalive_min_timeout.0;
    c.lingers = a.closing.rule != Lingering::Off;
    a.tail.push_back(Queued {
        exchange,
        start: a.start,
        end: a.queued,
        bytes: 0,
    });
    a.next = a.engine.finish();
    Ok(a.next == Next::KeepAlive && a.out.len() < QUEUE_BYTES && a.tail.len() < PIPELINE_DEPTH)
}

/// Ends exchanges whose last byte has been written; with nothing left, decides what becomes of the connection. True if
/// there may be more to do at once.
pub(super) fn settle<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let Some(a) = &mut c.active else {
        return Ok(false);
    };
    let mut any = false;
    let sent = a.sent;
    while let Some(queued) = a.tail.pop_front_if(|q| q.end <= sent) {
        any = true;
        let mut x = queued.exchange;
        x.bytes_sent = queued.end - queued.start;
        x.completed = true;
        sampling::finish(&mut c.sample, sh, x);
    }
    let current = a.exchange.as_deref();
    if a.tail.is_empty()
        && let Some(x) = current
        && x.state == State::Aborted
    {
        if *x.core_loc(&x.http).reset_timedout_connection {
            sh.net.reset(&mut c.socket);
        }
        return Err(Closed);
    }
    if !a.is_settled() || a.mode != Mode::Serve {
        return Ok(false);
    }
    match a.next {
        Next::KeepAlive => {
            if a.engine.phase() == Phase::Idle && !a.engine.has_buffered() {
                // Not even a byte of a next request: the connection becomes idle.
                // At the end of the server the deadline of an idle connection ends our side, if at once: a close could
                // take this response along.
                if c.gone || (c.idle_ms == 0 && c.requests > 0) {
                    return Err(Closed);
                }
                debug_conn!(HTTP, c, sh, "set http keepalive handler");
                if let Some(active) = c.active.take() {
                    sh.release(active);
                }
                c.mark_ms = sh.clock.mono_ms;
                return Ok(c.readable);
            }
            if any {
                c.mark_ms = sh.clock.mono_ms;
                debug_conn!(HTTP, c, sh, "pipelined request");
            }
            Ok(any)
        }
        Next::AwaitBody => {
            a.mode = Mode::AwaitBody {
                until_ms: sh.clock.mono_ms + a.closing.time_ms,
            };
            c.mark_ms = sh.clock.mono_ms;
            Ok(c.readable)
        }
        next => linger(c, sh, next),
    }
}
