//! Recorded connections: one sample for the store at the close of each, and figures for the arms of experiments.
//!
//! `rtt_map` sets the share of connections with a sample; with an experiment all are recorded. For a recorded
//! connection the clock is read until its first response has begun, and the kernel's figures are read once, at the
//! close. Absent: connections without a response, and those of UNIX-domain sockets.
//!
//! Source: docs/map.md.

use std::net::IpAddr;

use engines::http::probe::{Stall, between};
use server_base::samples::{ConnectionSample, Handshake};
use server_http::exchange::{Exchange, Peer};
use server_http::timing::{ALL, is_drawn};

use super::super::state::{Conn, State};
use super::super::tls::Tls;
use super::arm_figures::EndedBy;
use super::arms;
use super::record::{FirstResponse, Recording};
use super::state::ProbeState;
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::serving::Exchanges;

/// A connection was accepted: begins to record it if it is drawn.
pub(super) fn accepted<N: Net>(c: &mut Conn<N::Socket>, sh: &Shared<N>) {
    let share = sh.wants.connections;
    let is_drawn = share > 0 && matches!(c.peer, Peer::Inet(_)) && is_drawn(share, ALL);
    if is_drawn || sh.wants.has_arms() {
        let recording = Recording {
            behind_proxy: matches!(c.state, State::ProxyHeader(..)),
            is_drawn,
            has_experiments: sh.wants.has_arms(),
            ..Recording::default()
        };
        c.probe.record(recording);
    }
}

/// Bytes were read: records the time, until the first response has begun.
pub(super) fn read<N: Net>(c: &mut Conn<N::Socket>, sh: &Shared<N>) {
    if let Some(recording) = c.probe.recording_mut()
        && recording.first.is_none()
    {
        recording.read_us = sh.env.now_us();
        if recording.first_read_us == 0 {
            recording.first_read_us = recording.read_us;
        }
    }
}

/// The handshake is over, or early data was accepted before its end.
pub(super) fn handshake<S>(c: &mut Conn<S>, tls: &Tls) {
    let Some(recording) = c.probe.recording_mut() else {
        return;
    };
    if tls.stream.session.is_early() {
        recording.handshake = Handshake::Early;
    }
    if recording.tls == 0
        && let Some(info) = tls.stream.session.info()
    {
        recording.tls = info.version.map_or(0, u16::from);
        recording.handshake_us = between(recording.first_read_us, recording.read_us);
        recording.handshake = match recording.handshake {
            Handshake::None if info.resumed => Handshake::Resumed,
            Handshake::None => Handshake::Full,
            early => early,
        };
    }
}

/// The head of a request has come.
pub(super) fn head<S>(c: &mut Conn<S>) {
    if let Some(recording) = c.probe.recording_mut()
        && recording.head_us == 0
    {
        recording.head_us = recording.read_us;
    }
}

/// Bytes were written: records the first response if it has begun.
pub(super) fn written<N: Net>(
    probe_state: &mut ProbeState,
    exchanges: &mut Exchanges,
    sh: &Shared<N>,
) {
    let Some(recording) = probe_state.recording_mut() else {
        exchanges.first_begun = true;
        return;
    };
    if let Some(first) = &mut recording.first {
        // A proxy may name the client in a later request only.
        if recording.is_drawn && first.looks < PROXY_LOOKS {
            first.looks += 1;
            first.via_proxy |= exchanges.in_progress().any(|(_, x)| x.proxy.is_some());
        }
        return;
    }
    let sent = exchanges.sent;
    let has_begun = |start: u64, x: &Exchange| start < sent && x.response.header_bytes > 0;
    let first = exchanges
        .in_progress()
        .find(|(start, x)| has_begun(*start, x));
    if let Some((_, x)) = first {
        if recording.has_experiments {
            arms::join(recording, x);
        }
        recording.first = Some(FirstResponse {
            client: client(x),
            via_proxy: recording.behind_proxy || x.proxy.is_some(),
            looks: 0,
            version: x.head.version,
            us: between(recording.head_us, sh.env.now_us()),
        });
    }
    exchanges.first_begun = recording.first.is_some();
}

/// Returns the address of a request's client, `None` if a proxy has not named it.
fn client(x: &Exchange) -> Option<IpAddr> {
    let is_named = x.proxy.is_some();
    match (x.client.peer, &x.proxied) {
        (Peer::Inet(addr), None) => Some(addr.ip()),
        (Peer::Inet(addr), Some(_)) if is_named => Some(addr.ip()),
        (_, Some(header)) => Some(header.source.ip()),
        (Peer::Unix, None) => None,
    }
}

/// A request has ended: counts its status, and its response for arms.
#[inline(always)]
pub(super) fn ended(probe_state: &mut ProbeState, x: &Exchange, by: EndedBy) {
    if probe_state.is_recording() {
        count(probe_state, x, by);
    }
}

// Out of line: a connection that is not recorded pays one branch for a request.
#[cold]
#[inline(never)]
fn count(probe_state: &mut ProbeState, x: &Exchange, by: EndedBy) {
    let Some(recording) = probe_state.recording_mut() else {
        return;
    };
    if recording.has_experiments {
        arms::ended(recording, x, by);
    }
    if recording.is_drawn {
        count_status(recording, x.status());
    }
    if recording.is_over() {
        probe_state.stop_recording();
    }
}

fn count_status(recording: &mut Recording, status: u16) {
    let class = usize::from(status / 100).checked_sub(2);
    if let Some(count) = class.and_then(|class| recording.statuses.get_mut(class)) {
        *count = count.saturating_add(1);
    }
}

/// A sampled first byte was acknowledged late.
pub(super) fn stalled(probe_state: &mut ProbeState, stall: Stall) {
    if let Some(recording) = probe_state.recording_mut() {
        let count = &mut recording.stalls[stall as usize];
        *count = count.saturating_add(1);
    }
}

/// Makes the records of a connection that closes, for the sink.
#[cold]
pub(super) fn end<N: Net>(c: &mut Conn<N::Socket>, sh: &Shared<N>) {
    let Some(mut recording) = c.probe.take_recording() else {
        return;
    };
    let duration_ms = narrow(sh.clock.mono_ms.saturating_sub(c.since_ms));
    arms::end(&mut recording, sh, duration_ms);
    if recording.is_drawn {
        end_sample(c, sh, recording, duration_ms);
    }
}

/// Makes the sample of a connection that was drawn.
fn end_sample<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>, recording: Recording, duration_ms: u32) {
    let (Some(sink), Some(first)) = (&sh.env.samples, recording.first) else {
        return;
    };
    let info = sh
        .env
        .tcp_info
        .and_then(|read| read(sh.net.number(&c.socket)));
    let (Some(client), Some(info)) = (first.client, info) else {
        return;
    };
    sink.record(&ConnectionSample {
        closed_ms: sh.clock.unix_ms,
        duration_ms,
        client,
        via_proxy: first.via_proxy,
        version: first.version,
        tls: recording.tls,
        handshake: recording.handshake,
        handshake_us: recording.handshake_us.map(narrow),
        first_byte_us: first.us.map(narrow),
        min_rtt_us: info.min_rtt_us,
        rtt_us: info.rtt_us,
        retransmits: info.total_retrans,
        bytes_sent: info.bytes_acked,
        bytes_received: info.bytes_received,
        requests: c.requests,
        stalls: recording.stalls,
        statuses: recording.statuses,
    });
}

fn narrow(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Number of writes that are examined for a proxy. A proxy names its client in nearly every request.
const PROXY_LOOKS: u8 = 16;
