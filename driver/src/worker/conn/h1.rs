//! HTTP/1: one exchange at a time, pipelined responses queued behind each other.

use engines::h1::{Event, Next};
use engines::http::{BodyLength, Fault};
use server_base::errlog::Level;
use server_http::debug_http;
use server_http::exchange::{Exchange, Pulled, State as Progress};
use server_http::phases;

use super::client::{is_hostless, open_exchange};
use super::ended;
use super::probe::{self, EndedBy, ProbeState};
use super::state::{Closed, Conn, State, Transport};
use super::{early_responses, trace};
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::serving::{
    ActiveExchange, H1_STREAM, H1Input, H1State, PIPELINE_DEPTH, Protocol, QUEUE_BYTES,
};

/// Takes the engine's events; a head, which comes before its body, starts an exchange.
pub(super) fn deliver<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let mut started = open(c, sh)?;
    let mut early = EarlyBody::default();
    loop {
        let State::Serving(Protocol::H1(h1)) = &mut c.state else {
            return Ok(());
        };
        let Some(event) = h1.engine.event() else {
            return match started {
                Some(x) => begin(c, sh, x, early),
                None if !h1.exchanges.active.is_empty() => resume(c, sh, early.fault),
                None => Ok(()),
            };
        };
        match event {
            // The request is here, if not all of its body: it is answered, and that is the end.
            Event::Eof if started.is_some() => h1.engine.close_after(),
            Event::Eof if h1.engine.is_tunnel() => end_tunnel(h1, sh),
            Event::Eof => return end_of_input(c, sh),
            event => {
                deliver_body(h1, sh, event, started.is_some(), &mut early);
                if started.is_none() {
                    // The end of a body that was dropped lets the next request begin.
                    started = open(c, sh)?;
                }
            }
        }
    }
}

/// Makes the exchange of a request after its head; its body may follow in the same turn.
#[inline]
fn open<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
) -> Result<Option<Box<Exchange>>, Closed> {
    let Some(head) = c.state.h1().and_then(|h1| h1.engine.ready_head()) else {
        return Ok(None);
    };
    let hostless = is_hostless(head);
    let mut x = open_exchange(c, sh, hostless)?;
    if let Some(h1) = c.state.h1() {
        h1.engine.swap_head(&mut x.head);
    }
    if matches!(c.transport, Transport::PlainOnTlsPort) {
        x.head.fault = Some(Fault::PlainToTls);
    }
    Ok(Some(x))
}

/// Body that came with its head, and the fault of this or of an awaited body.
#[derive(Default)]
struct EarlyBody {
    bytes: Vec<u8>,
    ended: bool,
    fault: Option<Fault>,
}

/// Takes an event of a request body.
#[inline(never)]
fn deliver_body<N: Net>(
    h1: &mut H1State,
    sh: &mut Shared<N>,
    event: Event,
    with_head: bool,
    early: &mut EarlyBody,
) {
    let mut active = h1.exchanges.active.first_mut();
    let x = active.as_mut().map(|active| &mut *active.exchange);
    match event {
        Event::Data(bytes) => match x {
            Some(x) => x.deliver_body(bytes, &mut sh.ctx()),
            None => early.bytes = bytes,
        },
        Event::BodyEnd => match x {
            Some(x) if x.wants_body() => x.end_body(&mut sh.ctx()),
            Some(_) => {}
            None if h1.next == Next::AwaitBody => end_discarding(h1),
            None => early.ended = true,
        },
        Event::BodyFault(found) => match x {
            // The response is not decided yet: answer the broken body instead.
            _ if with_head => early.fault = Some(found),
            Some(x) if x.wants_body() => early.fault = Some(found),
            _ if h1.next == Next::AwaitBody => end_discarding(h1),
            _ => h1.engine.close_after(),
        },
        Event::Head(_) | Event::Trailers(_) | Event::Eof => {}
    }
}

/// The discarded rest of a body has ended.
fn end_discarding(h1: &mut H1State) {
    h1.next = h1.engine.finish();
    h1.input = H1Input::Requests;
}

/// Continues an exchange after the end or a fault of its body.
#[inline(never)]
fn resume<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    fault: Option<Fault>,
) -> Result<(), Closed> {
    let State::Serving(Protocol::H1(h1)) = &mut c.state else {
        return Ok(());
    };
    let Some(active) = h1.exchanges.active.first_mut() else {
        return Ok(());
    };
    let x = &mut active.exchange;
    x.input.bytes += h1.engine.body_bytes();
    match fault {
        Some(fault) if x.is_waiting() => phases::refuse_body(x, &mut sh.ctx(), fault),
        Some(fault) => {
            x.break_body(fault);
            h1.transmit();
            return Ok(());
        }
        None if x.is_body_due() => phases::resume(x, &mut sh.ctx()),
        None if x.has_body_arrived() => {
            x.arrived(&mut sh.ctx());
            arrived(h1);
            return Ok(());
        }
        None => return Ok(()),
    }
    respond(h1, &mut c.last_progress_ms, sh);
    Ok(())
}

/// Continues a response after its exchange was notified of an arrival. The rest of a body that is no longer passed on
/// is read and dropped: its client may read nothing before it has sent all of it.
pub(super) fn arrived(h1: &mut H1State) {
    if let Some(active) = h1.exchanges.active.first_mut()
        && active.exchange.drop_unwanted_body()
    {
        h1.engine.discard_body();
    }
}

/// Records that the client takes nothing of a response from a server. No more is pulled until it does, and the queued
/// bytes hold no memory beyond their length.
#[cold]
pub(super) fn stall<N: Net>(h1: &mut H1State, sh: &mut Shared<N>) {
    let Some(active) = h1.exchanges.active.first_mut() else {
        return;
    };
    let x = &mut active.exchange;
    let left = h1.exchanges.out.len();
    // Shrinking copies the queued bytes. It is repeated only after half of them have left.
    if x.body.on_arrival.is_some() && (x.body.unsent_bytes == 0 || left <= x.body.unsent_bytes / 2)
    {
        h1.exchanges.out.shrink();
        x.stalled(left, &mut sh.ctx());
        arrived(h1);
    }
}

/// The peer ended its side between requests, or inside of one.
fn end_of_input<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let Some(h1) = c.state.h1() else {
        return Err(Closed);
    };
    if h1.next == Next::AwaitBody && h1.exchanges.is_settled() {
        return Err(Closed);
    }
    let is_active = !h1.exchanges.active.is_empty();
    if is_active || !h1.exchanges.out.is_empty() {
        // The request has begun, though its body may be incomplete. The response is still sent.
        h1.engine.close_after();
        if !is_active {
            h1.next = Next::Close;
        }
        return Ok(());
    }
    ended::by_client(c, sh, None);
    Err(Closed)
}

/// The peer has ended its side of a tunnel; the other direction stays open.
#[cold]
fn end_tunnel<N: Net>(h1: &mut H1State, sh: &mut Shared<N>) {
    if let Some(active) = h1.exchanges.active.first_mut()
        && active.exchange.wants_body()
    {
        active.exchange.end_body(&mut sh.ctx());
    }
}

/// Ends an exchange that waits, or uses a server, if the peer has closed. The engine reports the end only between
/// requests.
#[inline(always)] // Nearly no peer is gone.
fn abandon<N: Net>(
    h1: &mut H1State,
    last_progress_ms: &mut u64,
    probe_state: &mut ProbeState,
    sh: &mut Shared<N>,
) -> Result<(), Closed> {
    if !h1.engine.input_ended() {
        return Ok(());
    }
    if let Some(active) = h1.exchanges.active.first_mut()
        && active.exchange.is_held()
    {
        // No more comes of the body that it waits for.
        active.exchange.end_hold();
        respond(h1, last_progress_ms, sh);
        return Ok(());
    }
    abandon_ended(h1, probe_state, sh)
}

#[cold]
#[inline(never)]
fn abandon_ended<N: Net>(
    h1: &mut H1State,
    probe_state: &mut ProbeState,
    sh: &mut Shared<N>,
) -> Result<(), Closed> {
    if let Some(active) = h1.exchanges.active.first_mut()
        && (active.exchange.is_waiting() || active.exchange.body.on_arrival.is_some())
        && !h1.engine.has_buffered()
        && h1.exchanges.flushing.is_empty()
        && !h1.engine.is_tunnel()
    {
        let lacks_body = active.exchange.lacks_body();
        if active.exchange.progress.ignore_abort && !lacks_body {
            return Ok(());
        }
        if lacks_body && let Some(mut active) = h1.exchanges.active.pop() {
            // An incomplete body is logged as an error of its own.
            active.exchange.lose_body();
            active.exchange.response.bytes_sent = h1.exchanges.sent.saturating_sub(active.start);
            probe::abort(probe_state, sh, active.exchange, EndedBy::Client);
        } else if let Some(active) = h1.exchanges.active.first()
            && active.exchange.body.on_arrival.is_some()
        {
            active
                .exchange
                .log(Level::Info, format_args!("{CLIENT_GONE}"));
        }
        return Err(Closed);
    }
    Ok(())
}

/// Starts an exchange.
fn begin<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    mut x: Box<Exchange>,
    early: EarlyBody,
) -> Result<(), Closed> {
    let State::Serving(Protocol::H1(h1)) = &mut c.state else {
        return Err(Closed);
    };
    x.head.size_bytes += h1.engine.body_bytes();
    x.head.fault = x.head.fault.or(early.fault);
    phases::begin(&mut x, &mut sh.ctx());
    if x.wants_body() {
        take_early(&mut x, sh, early);
    }
    if sh.stopping || c.drain.is_on() {
        x.progress.keep_alive = false;
        x.response.head.keep_alive = false;
    }
    let start = h1.exchanges.queued;
    h1.exchanges.active.push(ActiveExchange {
        exchange: x,
        stream: H1_STREAM,
        bytes: 0,
        start,
    });
    respond(h1, &mut c.last_progress_ms, sh);
    Ok(())
}

/// Delivers the part of a body that came with the head to a waiting exchange.
#[inline(never)]
fn take_early<N: Net>(x: &mut Exchange, sh: &mut Shared<N>, early: EarlyBody) {
    if !early.bytes.is_empty() {
        x.deliver_body(early.bytes, &mut sh.ctx());
    }
    if early.ended {
        x.end_body(&mut sh.ctx());
    }
    if x.is_body_due() {
        phases::resume(x, &mut sh.ctx());
    } else if x.has_body_arrived() {
        x.arrived(&mut sh.ctx());
    }
}

/// Sends the part of a waiting exchange that may leave: interim responses.
#[inline(never)]
fn send_interim<N: Net>(h1: &mut H1State, last_progress_ms: &mut u64, sh: &mut Shared<N>) {
    sh.timer_set = true;
    let Some(active) = h1.exchanges.active.first_mut() else {
        return;
    };
    let x = &mut active.exchange;
    // As in nginx, a request that is passed on gets the interim response even without a body.
    let is_empty = matches!(x.head.body, BodyLength::None | BodyLength::Length(0));
    let passes_empty = x.body.on_arrival.is_some() && is_empty;
    let awaited = x.awaits_body() && !h1.engine.body_done();
    let continues = x.head.expect_continue && (awaited || passes_empty);
    if x.response.early_responses.is_none() && !continues {
        return;
    }
    if h1.exchanges.out.len() < QUEUE_BYTES {
        early_responses::over_h1(x, &mut h1.engine);
    }
    if continues {
        h1.engine.send_interim(100, None);
        x.head.expect_continue = false;
    }
    if h1.exchanges.out.is_empty() {
        *last_progress_ms = sh.clock.mono_ms;
    }
    h1.transmit();
}

/// Sends the head of a decided response, or interim responses.
#[inline(always)] // Most come from `begin`, and a call costs a hundredth of an exchange.
pub(super) fn respond<N: Net>(h1: &mut H1State, last_progress_ms: &mut u64, sh: &mut Shared<N>) {
    let Some(active) = h1.exchanges.active.first_mut() else {
        return;
    };
    let x = &mut active.exchange;
    match x.progress.state {
        Progress::Running => {}
        Progress::Waiting(_) => send_interim(h1, last_progress_ms, sh),
        // Responses to requests before this one still leave, and are logged before it.
        Progress::Aborted => {}
        Progress::Responding => {
            if x.response.early_responses.is_some() {
                early_responses::over_h1(x, &mut h1.engine);
            }
            if !h1.engine.body_done() {
                // A client that expects 100 (Continue) gets it if its body is still passed on, else its final response
                // (RFC 9110 section 10.1.1).
                match x.wants_body() {
                    true if x.head.expect_continue => _ = h1.engine.send_interim(100, None),
                    true => {}
                    false => h1.engine.discard_body(),
                }
            }
            debug_http!(x, "{}", trace::Head(&x.response.head));
            x.response.header_bytes += h1.engine.send_head(&x.response.head);
            if h1.exchanges.out.is_empty() {
                *last_progress_ms = sh.clock.mono_ms;
            }
        }
    }
}

/// Takes events and moves bodies to the queue while responses to requests at hand can leave in the same write.
pub(super) fn run<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    loop {
        deliver(c, sh)?;
        let State::Serving(Protocol::H1(h1)) = &mut c.state else {
            return Ok(());
        };
        abandon(h1, &mut c.last_progress_ms, &mut c.probe, sh)?;
        if !pump(h1, &mut c.last_progress_ms, c.flags.writable, sh) {
            return Ok(());
        }
    }
}

/// Moves the body from the exchange to the engine and on to the queue. Returns true if the response is queued whole and
/// a further request is at hand: its response can leave in the same write.
#[inline(always)]
fn pump<N: Net>(
    h1: &mut H1State,
    last_progress_ms: &mut u64,
    writable: bool,
    sh: &mut Shared<N>,
) -> bool {
    let Some(active) = h1.exchanges.active.first_mut() else {
        return false;
    };
    let (x, start) = (&mut active.exchange, active.start);
    if x.progress.state != Progress::Responding {
        return false;
    }
    if x.body.unsent_bytes > 0 {
        if !writable || h1.exchanges.out.len() > REFILL_BELOW_BYTES {
            return false;
        }
        x.body.unsent_bytes = 0;
    }
    let limited = x.has_rate();
    if (limited || x.may_wait()) && h1.exchanges.out.is_empty() {
        // Time without output from us is not silence of the client.
        *last_progress_ms = sh.clock.mono_ms;
    }
    let (mut ended, mut later) = (false, false);
    let mut cx = sh.ctx();
    while !ended && !later && h1.exchanges.out.len() < QUEUE_BYTES {
        let pulled = if limited {
            let sent = h1.exchanges.queued - start;
            x.pull_within(&mut cx, sent)
        } else {
            x.pull(&mut cx)
        };
        match pulled {
            Pulled::Broken => {
                // The rest of the response is dropped. The bytes queued before are sent, then the connection ends.
                x.progress.state = Progress::Aborted;
                later = true;
            }
            Pulled::Chunk(chunk) => h1.engine.send_data(chunk),
            Pulled::Pending | Pulled::BudgetSpent => later = true,
            Pulled::End => {
                if let Some(on_end) = x.response.on_end {
                    on_end(x, &mut cx);
                }
                let trailers = (!x.reply.trailers.fields.is_empty()).then_some(&x.reply.trailers);
                h1.engine.send_end(trailers);
                ended = true;
            }
        }
        // The head leaves even without any byte of the body.
        let before = h1.exchanges.out.len();
        h1.engine.transmit(&mut h1.exchanges.out);
        h1.exchanges.queued += h1.exchanges.out.len() - before;
    }
    if !ended {
        return false;
    }
    let Some(active) = h1.exchanges.active.pop() else {
        return false;
    };
    trace::finalized(&active.exchange);
    let bytes = h1.exchanges.queued - start;
    h1.exchanges.flush(active.exchange, start, bytes);
    h1.next = h1.engine.finish();
    h1.next == Next::KeepAlive
        && h1.exchanges.out.len() < QUEUE_BYTES
        && h1.exchanges.flushing.len() < PIPELINE_DEPTH
}

/// Bytes in the queue of a stalled client above which no more are pulled. A client that takes little at a time would
/// otherwise have an ever longer queue.
const REFILL_BELOW_BYTES: u64 = 16 << 10;
/// As nginx words it.
const CLIENT_GONE: &str = "epoll_wait() reported that client prematurely closed connection, \
     so upstream connection is closed too";
