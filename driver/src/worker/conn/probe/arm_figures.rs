//! Figures that a connection has for its arms.

use engines::http::{BodyLength, Method, Version};
use server_http::arm_meters::{ArmCounts, OpenConnection};
use server_http::exchange::Exchange;
use server_http::experiments::ArmId;
use server_http::http::Http;

/// Figures of a connection that belongs to arms.
#[derive(Debug, Default)]
pub(crate) struct ConnectionArms {
    /// The arms.
    pub(super) arms: Vec<OpenConnection>,
    /// The arm of its host is among them.
    pub(super) has_host: bool,
    /// The arms of a user are among them.
    pub(super) has_assigned: bool,
    /// The list of arms is final.
    pub(super) is_complete: bool,
    pub(super) counts: ArmCounts,
    /// Counts that the meters have.
    added: ArmCounts,
}

/// The reason of the end of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndedBy {
    /// The response has left, or the server ends it.
    Server,
    /// The client has left, or has reset the stream.
    Client,
    /// There was no whole head.
    Unfinished,
}

impl ConnectionArms {
    /// Adds an arm, unless there are enough.
    pub(super) fn join(&mut self, http: &Http, id: ArmId) {
        let arms = http.arms.meters.get(usize::from(id.experiment));
        let meter = arms.and_then(|arms| arms.get(usize::from(id.arm)));
        if let Some(meter) = meter.filter(|_| self.arms.len() < ARMS_MAX) {
            self.arms.push(meter.open());
        }
    }

    /// Counts an exchange at its end.
    pub(super) fn count(&mut self, x: &Exchange, by: EndedBy) {
        let body = Body::of(x);
        self.counts.requests += 1;
        self.counts.truncated += u64::from(body.is_truncated);
        let is_aborted = by == EndedBy::Client && !x.response.completed;
        self.counts.aborted += u64::from(is_aborted);
        self.counts.promised_bytes += body.promised;
        self.counts.sent_bytes += body.sent;
    }

    /// Brings the meters of the arms up to date.
    pub(super) fn add_counts(&mut self, cpu_ns: u64) {
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
                    is_truncated: !x.response.completed,
                    ..Self::default()
                };
            }
            BodyLength::None => return Self::default(),
        };
        let body_bytes = x
            .response
            .bytes_sent
            .saturating_sub(x.response.header_bytes);
        let sent = match x.response.completed {
            true => promised,
            false => body_bytes.min(promised),
        };
        // On a stream the bytes include frame heads, so their number alone does not prove it.
        let is_whole =
            x.response.completed || (x.head.version <= Version::Http11 && sent == promised);
        Self {
            promised,
            sent,
            is_truncated: promised > 0 && !is_whole,
        }
    }
}

/// Maximum number of arms of a connection.
const ARMS_MAX: usize = 4;
