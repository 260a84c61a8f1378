//! Figures of a connection for the arms of experiments: one record for the store per arm, at the close.
//!
//! A connection belongs to the arm of its host. With TLS the name in the handshake is the host, else the host of the first
//! request for an arm. It also belongs to the arms of the first request whose user was assigned, of experiments without hosts. It has
//! [`ARMS_MAX`] arms at most. Figures count from then on. Bytes are those of bodies with a Content-Length: a response without
//! one promises nothing. Absent: connections of no arm, which keep no figures.
//!
//! Source: docs/experiments.md.

use std::sync::Arc;

use engines::http::{BodyLength, Method, Version};
use server_base::experiment::ArmConnection;
use server_http::arm_meters::{ArmCounts, ArmMeter, OpenConnection};
use server_http::exchange::Exchange;
use server_http::experiments::ArmId;
use server_http::http::Http;

use super::super::state::{ClosedBy, Conn};
use super::kept::Kept;
use super::record::Recording;
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// Figures of a connection that belongs to arms.
#[derive(Debug, Default)]
pub(crate) struct ConnectionArms {
    /// The arms.
    arms: Vec<OpenConnection>,
    /// The arm of its host is among them.
    has_host: bool,
    /// The arms of a user are among them.
    has_assigned: bool,
    /// No further arm is looked for.
    is_complete: bool,
    counts: ArmCounts,
    /// Counts that the meters have.
    added: ArmCounts,
}

/// The reason of the end of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The response has left, or the server ends it.
    Server,
    /// The client has left, or has reset the stream.
    Client,
    /// There was no whole head.
    Unfinished,
}

impl From<ClosedBy> for Ending {
    fn from(by: ClosedBy) -> Self {
        match by {
            ClosedBy::Client => Self::Client,
            ClosedBy::Server => Self::Server,
        }
    }
}

impl ConnectionArms {
    /// Adds an arm, unless there are enough.
    fn join(&mut self, http: &Http, id: ArmId) {
        let arms = http.arm_meters.get(usize::from(id.experiment));
        let meter = arms.and_then(|arms| arms.get(usize::from(id.arm)));
        if let Some(meter) = meter.filter(|_| self.arms.len() < ARMS_MAX) {
            self.arms.push(meter.open());
        }
    }

    /// Counts an exchange at its end.
    fn count(&mut self, x: &Exchange, ending: Ending) {
        let body = Body::of(x);
        self.counts.requests += 1;
        self.counts.truncated += u64::from(body.is_truncated);
        let is_aborted = ending == Ending::Client && !x.progress.completed;
        self.counts.aborted += u64::from(is_aborted);
        self.counts.promised_bytes += body.promised;
        self.counts.sent_bytes += body.sent;
    }

    /// Brings the meters of the arms up to date.
    fn add_counts(&mut self, cpu_ns: u64) {
        self.counts.cpu_ns = cpu_ns;
        let new = self.counts.since(&self.added);
        self.added = self.counts;
        for arm in &self.arms {
            arm.meter().add(&new);
        }
    }
}

/// The body of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Body {
    /// Content-Length of a body that was to be sent, bytes.
    promised: u64,
    /// Bytes of it that were sent.
    sent: u64,
    /// It ended before its length, or before its last chunk.
    is_truncated: bool,
}

impl Body {
    fn of(x: &Exchange) -> Self {
        let head = &x.response.head;
        let has_body = x.head.method != Method::Head && !matches!(head.status, 101 | 204 | 304);
        if !x.progress.header_sent || !has_body {
            return Self::default();
        }
        let promised = match head.body {
            BodyLength::Length(promised) => promised,
            BodyLength::Unknown => {
                return Self {
                    is_truncated: !x.progress.completed,
                    ..Self::default()
                };
            }
            BodyLength::None => return Self::default(),
        };
        let body_bytes = x
            .response
            .bytes_sent
            .saturating_sub(x.response.header_bytes);
        let sent = match x.progress.completed {
            true => promised,
            false => body_bytes.min(promised),
        };
        // Bytes on a stream include heads of frames, so that their number alone does not tell.
        let is_whole =
            x.progress.completed || (x.head.version <= Version::Http11 && sent == promised);
        Self {
            promised,
            sent,
            is_truncated: promised > 0 && !is_whole,
        }
    }
}

/// A handshake is for this server: adds its arm.
pub(crate) fn named<N: Net>(c: &mut Conn<N::Socket>, sh: &Shared<N>, server: usize) {
    let http = &sh.generation.http;
    if let (true, Some(arm)) = (sh.wants.arms, http.servers[server].arm)
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
    if http.has_arms_without_hosts && !is_known {
        join_user(recording, x);
    }
    if let Some(arms) = &mut recording.arms {
        arms.is_complete = (arms.has_host || !http.has_arm_hosts)
            && (arms.has_assigned || !http.has_arms_without_hosts);
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
pub(super) fn ended(recording: &mut Recording, x: &Exchange, ending: Ending) {
    if ending == Ending::Unfinished {
        return;
    }
    if !recording.arms.as_ref().is_some_and(|arms| arms.is_complete) {
        join(recording, x);
    }
    let ending = match recording.has_short_file {
        true => Ending::Server,
        false => ending,
    };
    if let Some(arms) = &mut recording.arms {
        arms.count(x, ending);
    }
}

/// A file became shorter while it was sent, for which the server ends the connection.
pub(crate) fn file_became_shorter(kept: &mut Kept) {
    if let Some(recording) = kept.recording_mut() {
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
pub fn look_at_arms<S>(c: &mut Conn<S>, mut each: impl FnMut(&Arc<ArmMeter>, u64)) {
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
    let Some(sink) = sh.env.samples.as_ref().filter(|_| sh.wants.arm_records) else {
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
                .cpu
                .is_measured()
                .then(|| narrow((counts.cpu_ns + 500) / 1000)),
            handshake_us: recording.handshake_us.map(narrow),
            first_byte_us: first.and_then(|first| first.us).map(narrow),
        });
    }
}

/// Maximum number of arms of a connection.
const ARMS_MAX: usize = 4;
