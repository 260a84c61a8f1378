//! Sampled responses: the kernel reports when their first byte left and when it was acknowledged.
//!
//! The kernel timestamps the last byte of a send. So data up to the first byte of the response goes in a send of its
//! own that ends with that byte. The rest follows at once: TCP puts both into the same segments. A connection has one
//! sampled response at a time. Its exchange may end before all times are known. If a variable reports samples, the
//! exchange is kept until then, or for [`TELL_MS`], and logged as of its end. A late acknowledgement on a connection
//! without earlier unacknowledged bytes counts as a stall, with its cause.
//!
//! A response is not sampled in three cases: its first byte is behind a file of another response in one write, has left
//! before the draw, as with hints, or `tcp_nodelay` is off, since a cut could then show.
//!
//! Source: Linux, Documentation/networking/timestamping.rst.

use std::io::IoSlice;
use std::rc::Rc;

use engines::http::probe::{Point, between};
use server_base::transport::TcpInfo;
use server_http::exchange::{Exchange, Peer};
use server_http::probe::notify;
use server_http::timing::Sampling;
use sys::clock::wall_us;
use sys::socket::Sent;
use sys::timestamps::Passed;

use super::super::client::log_truncated;
use super::super::state::{Closed, Conn};
use super::super::tls;
use super::arm_figures::EndedBy;
use super::points;
use super::recording;
use super::sample::{HeldLog, STALL_US, Sample, StampedByte};
use super::state::ProbeState;
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::serving::Exchanges;

/// The first response in the queue that was drawn and has not begun to leave: its position, and how many bytes are before it.
fn first_drawn(exchanges: &mut Exchanges) -> Option<(u64, u64)> {
    let unsent = exchanges.unsent();
    let all = exchanges.in_progress();
    let drawn = all.filter(|(_, x)| x.sampled.state == Sampling::Drawn);
    let positions = drawn.map(|(start, _)| start);
    let start = positions.filter(|start| unsent.contains(start)).min()?;
    Some((start, start - unsent.start))
}

fn at(exchanges: &mut Exchanges, start: u64) -> Option<&mut Exchange> {
    let mut all = exchanges.in_progress();
    all.find_map(|(position, x)| (position == start).then_some(x))
}

/// The exchange with requested timestamps, unless it has ended.
fn stamped_exchange<S>(c: &mut Conn<S>) -> Option<&mut Exchange> {
    let mut all = c.state.exchanges_mut()?.in_progress().map(|(_, x)| x);
    all.find(|x| x.sampled.state == Sampling::Asked)
}

/// Sends the bytes up to and including the first byte of a drawn response, if there is one in the queue that can be
/// timestamped; false if nothing more can be written now.
pub(crate) fn begin<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let tls = c.transport.tls();
    let is_held = tls.is_some_and(|tls| tls.is_handshaking() || tls.stream.has_unsent());
    if c.probe.sample().is_some() || is_held || !c.nodelay || !matches!(c.peer, Peer::Inet(_)) {
        return Ok(true);
    }
    let Some(exchanges) = c.state.exchanges_mut() else {
        return Ok(true);
    };
    let Some((start, lead)) = first_drawn(exchanges) else {
        return Ok(true);
    };
    let nodelay = at(exchanges, start).is_some_and(|x| *x.route.core_loc().connection.tcp_nodelay);
    c.timestamping = c.timestamping || sh.net.enable_stamps(&mut c.socket);
    if !nodelay || !c.timestamping {
        return Ok(true);
    }
    // Before the write: bytes already on their way would be acknowledged first, and the sample is void for them.
    let before = tcp_info(c, sh).unwrap_or_default();
    let (given_us, given_wall_us) = (sh.env.now_us(), wall_us());
    let Some((sent, stamped)) = send(c, sh, lead)? else {
        return Ok(true);
    };
    c.flags.writable = !sent.blocked;
    if sent.bytes > 0 {
        c.last_progress_ms = sh.clock.mono_ms;
    }
    let Some(exchanges) = c.state.exchanges_mut() else {
        return Ok(true);
    };
    exchanges.sent += sent.bytes;
    let quiet = before.unacked == 0 && before.notsent_bytes == 0;
    let idle = quiet && matches!(stamped, StampedByte::After(lead) if lead <= SHARED_BYTES_MAX);
    let (state, until_ms) = match stamped {
        StampedByte::After(_) => (Sampling::Asked, sh.clock.mono_ms.saturating_add(TELL_MS)),
        StampedByte::Another | StampedByte::Nothing => (Sampling::Told, u64::MAX),
    };
    let Some(x) = at(exchanges, start) else {
        return Ok(true);
    };
    x.sampled.state = state;
    match stamped {
        StampedByte::After(_) => x.emit(Point::FirstByte { idle: Some(idle) }, sh.env.now_us()),
        StampedByte::Another => {}
        StampedByte::Nothing => return Ok(false),
    }
    let sample = Sample {
        event: x.probe_event(Point::Sent, 0),
        given_us,
        given_wall_us,
        before,
        idle,
        void: stamped == StampedByte::Another,
        left_us: None,
        again_us: None,
        until_ms,
        held: None,
    };
    c.probe.set_sample(sample);
    points::written(exchanges, &mut c.probe, sh);
    Ok(c.flags.writable && !exchanges.out.is_empty())
}

/// Sends up to the byte after `lead` bytes of the queue, or with TLS all that is ready, and has that byte timestamped;
/// `None` if that cannot be done.
fn send<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    lead: u64,
) -> Result<Option<(Sent, StampedByte)>, Closed> {
    let Some(exchanges) = c.state.exchanges_mut() else {
        return Ok(None);
    };
    let out = &mut exchanges.out;
    if let Some(tls) = c.transport.tls_mut() {
        let sent = tls::send_stamped(&mut tls.stream, &mut c.socket, out, sh, lead);
        return sent.map(Some).map_err(|error| {
            if let Some(x) = exchanges.front() {
                log_truncated(x, &mut c.probe, &error);
            }
            Closed
        });
    }
    // The kernel stamps the last byte of a send, so the send ends with the first byte of the response.
    let wanted = lead + 1;
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let count = out.slices(&mut slices);
    let mut cut = [IoSlice::new(&[]); SLICES_MAX];
    let (mut missing, mut used) = (usize::try_from(wanted).unwrap_or(usize::MAX), 0);
    for (to, from) in cut.iter_mut().zip(&slices[..count]) {
        let len = from.len().min(missing);
        *to = IoSlice::new(&from[..len]);
        (missing, used) = (missing - len, used + 1);
        if missing == 0 {
            break;
        }
    }
    if missing > 0 {
        return Ok(None);
    }
    let sent = sh.net.send_stamped(&mut c.socket, &cut[..used]);
    let bytes = sent.map_err(|_| Closed)? as u64;
    out.advance(bytes);
    let stamped = match bytes {
        0 => StampedByte::Nothing,
        bytes if bytes == wanted => StampedByte::After(lead),
        _ => StampedByte::Another,
    };
    let blocked = bytes < wanted;
    Ok(Some((Sent { bytes, blocked }, stamped)))
}

/// Ends an exchange after the write of its last byte; a sampled one may have to wait for its log line.
#[inline(always)] // Each request has it.
pub(crate) fn finish<N: Net>(probe_state: &mut ProbeState, sh: &mut Shared<N>, x: Box<Exchange>) {
    recording::ended(probe_state, &x, EndedBy::Server);
    if x.sampled.state == Sampling::Asked {
        hold(probe_state, sh, x);
    } else {
        sh.finish(x);
    }
}

/// Ends an exchange that broke off: nothing more is known of its response.
#[inline]
pub(crate) fn abort<N: Net>(
    probe_state: &mut ProbeState,
    sh: &mut Shared<N>,
    x: Box<Exchange>,
    by: EndedBy,
) {
    recording::ended(probe_state, &x, by);
    sh.finish(x);
}

#[cold]
#[inline(never)]
fn hold<N: Net>(probe_state: &mut ProbeState, sh: &mut Shared<N>, mut x: Box<Exchange>) {
    let waits = |sample: &&mut Sample| sample.until_ms != u64::MAX && sample.held.is_none();
    let held = probe_state.sample_mut().filter(waits);
    let Some(sample) = held.filter(|_| x.route.http.wants.holds_log) else {
        return sh.finish(x);
    };
    // The response is on its way, so counts of responses under way are released now.
    x.extensions.release();
    x.timings.ended_us = sh.env.now_us();
    let clock = sh.clock.clone();
    sample.held = Some(HeldLog { exchange: x, clock });
}

/// There was nothing to read: the event may have announced timestamps in the error queue.
#[inline]
pub(crate) fn nothing_read<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    if c.timestamping {
        take_timestamps(c, sh);
    }
}

/// Reads the timestamps that the kernel has queued.
#[cold]
fn take_timestamps<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    let now_us = sh.env.now_us();
    while let Some(stamp) = sh.net.stamp(&mut c.socket) {
        let Some(sample) = c.probe.sample_mut() else {
            continue;
        };
        let us = sample.monotonic(stamp.wall_us, now_us);
        if us.is_none() {
            sample.void = true;
        }
        match stamp.passed {
            Passed::Left if sample.left_us.is_none() => sample.left_us = us,
            Passed::Left => sample.again_us = sample.again_us.or(us),
            Passed::Acked => {
                report(c, sh, us);
                c.probe.drop_sample();
                return;
            }
        }
    }
    if let Some(sample) = c.probe.sample() {
        let sent_us = sample
            .left_us
            .and_then(|us| between(sample.event.head_us, us));
        // A trailer can report it.
        if let Some(x) = stamped_exchange(c) {
            x.sampled.sent_us = sent_us;
        }
    }
}

/// Emits the known times of the sampled response, and writes its log line if that waits. Without `acked_us` the byte is
/// not acknowledged yet.
fn report<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, acked_us: Option<u64>) {
    if let Some(held) = emit(c, sh, acked_us) {
        sh.finish_late(held.exchange, held.clock);
    }
}

/// Emits the known times; returns the exchange if its log line waits.
fn emit<N: Net>(c: &mut Conn<N::Socket>, sh: &Shared<N>, acked_us: Option<u64>) -> Option<HeldLog> {
    let end_us = acked_us.unwrap_or_else(|| sh.env.now_us());
    let sample = c.probe.sample()?;
    let info = match end_us > sample.given_us + STALL_US {
        true => tcp_info(c, sh),
        false => None,
    };
    let sample = c.probe.sample_mut()?;
    let mut held = sample.held.take();
    if sample.void {
        return held;
    }
    // When all but the acknowledgement has been stamped, the exchange is over.
    let is_first = sample.until_ms != u64::MAX;
    let (mut event, sent_us) = (sample.event, sample.left_us.filter(|_| is_first));
    let stall = (is_first && sample.idle).then(|| sample.stall(end_us, info));
    let stall = stall.filter(|stall| acked_us.is_some() || stall.is_some());
    if let Some(stall) = stall.flatten() {
        recording::stalled(&mut c.probe, stall);
    }
    let mut x = match &mut held {
        Some(held) => Some(&mut *held.exchange),
        None => stamped_exchange(c).filter(|_| is_first),
    };
    let http = Rc::clone(x.as_ref().map_or(&sh.generation.http, |x| &x.route.http));
    let events = [
        sent_us.map(|us| (Point::Sent, us)),
        acked_us.map(|us| (Point::Acknowledged, us)),
        stall.map(|stall| (Point::Stall(stall), end_us)),
    ];
    for (point, at_us) in events.into_iter().flatten() {
        (event.point, event.at_us) = (point, at_us);
        notify(&http, &event, x.as_deref_mut());
    }
    if let Some(x) = x {
        x.sampled.state = Sampling::Told;
    }
    held
}

/// Completes a sample after its deadline, with the times known by now.
pub(crate) fn expire<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    let now_ms = sh.clock.mono_ms;
    if c.probe
        .sample()
        .is_none_or(|sample| sample.until_ms > now_ms)
    {
        return;
    }
    take_timestamps(c, sh);
    report(c, sh, None);
    if let Some(sample) = c.probe.sample_mut() {
        sample.until_ms = u64::MAX;
    }
}

/// Completes the sample of a connection that ends with the times known by now.
pub(crate) fn end<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    if c.probe.sample().is_none() {
        return;
    }
    take_timestamps(c, sh);
    report(c, sh, None);
    c.probe.drop_sample();
}

/// Returns the deadline of a connection, no later than that of its sample.
#[inline(always)] // As the `deadline` of connections, which alone calls it.
pub(crate) fn deadline<S>(c: &Conn<S>, deadline_ms: u64) -> u64 {
    match c.probe.sample() {
        None => deadline_ms,
        Some(sample) => deadline_ms.min(sample.until_ms),
    }
}

fn tcp_info<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>) -> Option<TcpInfo> {
    sh.env
        .tcp_info
        .and_then(|read| read(sh.net.number(&c.socket)))
}

/// Maximum time for which the log line of a sampled response waits for the kernel's timestamps.
const TELL_MS: u64 = 1000;
/// Maximum number of bytes before a first byte that counts as sent alone: they share its segment.
const SHARED_BYTES_MAX: u64 = 1024;
/// Pieces of memory before a first byte.
const SLICES_MAX: usize = 64;
