//! Figures of a connection for the arms of experiments: one record for the store per arm, at the close.
//!
//! A connection belongs to the arm of its host. With TLS the name in the handshake is the host, else the host of the first
//! request for an arm. In experiments without hosts it belongs to the arms of its first user with an assignment. It has four arms
//! at most. Figures count from then on. Bytes are those of bodies with a Content-Length: a response without one promises nothing.
//! Absent: connections of no arm, which keep no figures.
//!
//! Source: docs/experiments.md.

use std::sync::Arc;

use engines::http::Version;
use server_base::experiment::ArmConnection;
use server_http::arm_meters::ArmMeter;
use server_http::exchange::Exchange;
use server_http::experiments::ArmId;
use server_http::http::Http;
use server_http::wants::ArmFigures;

use super::super::state::{ClosedBy, Conn};
use super::arm_figures::EndedBy;
use super::record::Recording;
use super::state::ProbeState;
use crate::worker::net::Net;
use crate::worker::shared::Shared;

impl From<ClosedBy> for EndedBy {
    fn from(by: ClosedBy) -> Self {
        match by {
            ClosedBy::Client => Self::Client,
            ClosedBy::Server => Self::Server,
        }
    }
}

/// A handshake is for this server: adds its arm.
pub(crate) fn add_host_arm<N: Net>(c: &mut Conn<N::Socket>, sh: &Shared<N>, server: usize) {
    let http = &sh.generation.http;
    if sh.wants.has_arms()
        && let Some(arm) = http.servers[server].arm
        && let Some(recording) = c.probe.recording_mut()
    {
        join_host(recording, http, arm);
    }
}

/// Adds the arm of a host, if none was added before.
fn join_host(recording: &mut Recording, http: &Http, arm: ArmId) {
    let arms = recording.arms.get_or_insert_default();
    if !std::mem::replace(&mut arms.has_host, true) {
        arms.join(http, arm);
    }
}

/// A response has begun or ended: adds the arms of its server, and of its user if those are not known.
pub(super) fn join(recording: &mut Recording, x: &Exchange) {
    let http = &x.route.http;
    if let Some(arm) = x.route.own_server().arm {
        join_host(recording, http, arm);
    }
    let is_known = recording
        .arms
        .as_ref()
        .is_some_and(|arms| arms.has_assigned);
    if http.arms.any_without_host && !is_known {
        join_user(recording, x);
    }
    if let Some(arms) = &mut recording.arms {
        arms.is_complete = (arms.has_host || !http.arms.any_host)
            && (arms.has_assigned || !http.arms.any_without_host);
    }
}

/// Adds the arms of a user that was assigned, of experiments without hosts.
fn join_user(recording: &mut Recording, x: &Exchange) {
    let http = &x.route.http;
    let has_no_hosts = |arm: &ArmId| {
        let experiment = &http.experiments[usize::from(arm.experiment)];
        experiment.arms.iter().all(|arm| arm.host.is_none())
    };
    for arm in x.known_arms().filter(has_no_hosts) {
        let arms = recording.arms.get_or_insert_default();
        arms.has_assigned = true;
        arms.join(http, arm);
    }
}

/// An exchange has ended.
pub(super) fn ended(recording: &mut Recording, x: &Exchange, by: EndedBy) {
    if by == EndedBy::Unfinished {
        return;
    }
    if !recording.arms.as_ref().is_some_and(|arms| arms.is_complete) {
        join(recording, x);
    }
    let by = match recording.has_short_file {
        true => EndedBy::Server,
        false => by,
    };
    match &mut recording.arms {
        Some(arms) => arms.count(x, by),
        None => recording.without_arm = recording.without_arm.saturating_add(1),
    }
}

/// A file became shorter while it was sent, for which the server ends the connection.
pub(crate) fn file_became_shorter(probe_state: &mut ProbeState) {
    if let Some(recording) = probe_state.recording_mut() {
        recording.has_short_file = true;
    }
}

/// Adds processor time of a connection, scaled to all turns.
pub fn add_cpu<S>(c: &mut Conn<S>, ns: u64) {
    if let Some(recording) = c.probe.recording_mut() {
        recording.cpu_ns += ns;
    }
}

/// Brings the meters of an open connection's arms up to date, and reports its memory for each.
pub fn report_arms<S>(c: &mut Conn<S>, mut each: impl FnMut(&Arc<ArmMeter>, u64)) {
    let Some(recording) = c.probe.recording_mut() else {
        return;
    };
    let Some(figures) = &mut recording.arms else {
        return;
    };
    figures.add_counts(recording.cpu_ns);
    let bytes = c.memory_bytes();
    let recording = c.probe.recording_mut();
    let arms = recording.and_then(|recording| recording.arms.as_ref());
    for arm in arms.iter().flat_map(|figures| &figures.arms) {
        each(arm.meter(), bytes);
    }
}

/// Makes the records of a connection that closes.
pub(super) fn end<N: Net>(recording: &mut Recording, sh: &Shared<N>, duration_ms: u32) {
    let Some(mut figures) = recording.arms.take() else {
        return;
    };
    figures.add_counts(recording.cpu_ns);
    let Some(sink) = sh
        .env
        .samples
        .as_ref()
        .filter(|_| sh.wants.arms == ArmFigures::Stored)
    else {
        return;
    };
    let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let (first, counts) = (recording.first.as_ref(), figures.counts);
    for arm in &figures.arms {
        sink.arm(&ArmConnection {
            closed_ms: sh.clock.unix_ms,
            experiment: arm.meter().experiment,
            arm: arm.meter().arm,
            version: first.map_or(Version::default(), |first| first.version),
            duration_ms,
            requests: narrow(counts.requests),
            promised: counts.promised_bytes,
            sent: counts.sent_bytes,
            truncated: narrow(counts.truncated),
            aborted: narrow(counts.aborted),
            cpu_us: sh
                .arms
                .cpu
                .is_measured()
                .then(|| narrow((counts.cpu_ns + 500) / 1000)),
            handshake_us: recording.handshake_us.map(narrow),
            first_byte_us: first.and_then(|first| first.us).map(narrow),
        });
    }
}
