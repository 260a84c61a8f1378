//! Objects about the process: version and times, connections, requests, TLS handshakes, lost workers.
//!
//! Counters of the process never fall, since metrics show them too. A reset stores their present values, which are
//! subtracted from then on.
//!
//! Source: nginx documentation, `ngx_http_api_module`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use engines::http::{Civil, civil};
use server_base::handshakes::{CERTIFICATE_FAULTS, HandshakeCounts};
use server_http::builtin::NGINX_VERSION;
use server_http::exchange::{Ctx, Exchange};
use server_http::meters::{self, Event, Sums};
use server_http::{reply, stats};

use super::handshakes::{self, Owner};
use super::json::Json;

/// Returns the object about the running instance.
pub(super) fn nginx(x: &Exchange, cx: &Ctx<'_>) -> Json {
    let mut address = Vec::new();
    reply::push_local_address(x, &mut address);
    Json::object([
        ("version", NGINX_VERSION.into()),
        ("build", BUILD.into()),
        ("address", address.as_slice().into()),
        // The first configuration has number 1.
        ("generation", x.route.http.number.saturating_sub(1).into()),
        ("load_timestamp", timestamp(stats::loaded_ms()).into()),
        ("timestamp", timestamp(cx.clock.unix_ms).into()),
        ("pid", u64::from(cx.env.pid).into()),
        (
            "ppid",
            u64::from(std::os::unix::process::parent_id()).into(),
        ),
    ])
}

/// Returns the object about connections of clients.
pub(super) fn connections() -> Json {
    // Before the counters: a reset in between would make the base greater than they are.
    let base = base();
    let now = Counters::now();
    let open = stats::totals();
    Json::object([
        ("accepted", (now.accepted - base.accepted).into()),
        ("dropped", (now.dropped - base.dropped).into()),
        ("active", (open.reading + open.writing).into()),
        ("idle", open.waiting.into()),
    ])
}

/// Returns the object about requests.
pub(super) fn requests() -> Json {
    let base = base();
    let now = stats::totals();
    let total = now.requests - base.requests;
    Json::object([
        ("total", total.into()),
        // Connections with a request in progress: those of one HTTP/2 connection count as one.
        ("current", now.writing.into()),
    ])
}

/// Returns the object about TLS handshakes.
pub(super) fn ssl(version: u64) -> Json {
    let base = base();
    let counts = Counters::now().handshakes.since(&base.handshakes);
    handshakes::object(&counts, Owner::Process, version)
}

/// Returns the object about lost worker processes.
pub(super) fn processes() -> Json {
    let base = base();
    let respawned = stats::respawned() - base.respawned;
    Json::object([("respawned", respawned.into())])
}

/// Returns the object about the worker process: there is one.
pub(super) fn worker(cx: &Ctx<'_>) -> Json {
    Json::object([
        ("id", 0.into()),
        ("pid", u64::from(cx.env.pid).into()),
        ("connections", connections()),
        ("http", Json::object([("requests", requests())])),
    ])
}

/// Resets the counters of connections.
pub(super) fn reset_connections() {
    let now = Counters::now();
    let mut base = base();
    (base.accepted, base.dropped) = (now.accepted, now.dropped);
}

/// Resets the number of requests.
pub(super) fn reset_requests() {
    base().requests = Counters::now().requests;
}

/// Resets the counters of TLS handshakes.
pub(super) fn reset_ssl() {
    base().handshakes = Counters::now().handshakes;
}

/// Resets the number of lost worker processes, until this worker ends.
pub(super) fn reset_processes() {
    base().respawned = stats::respawned();
}

/// Returns a time as `2022-06-28T11:15:44.467Z`, from milliseconds since 1970.
pub(super) fn timestamp(unix_ms: u64) -> String {
    let Civil {
        year,
        month,
        day,
        hour,
        minute,
        second,
        ..
    } = civil((unix_ms / 1000) as i64);
    let ms = unix_ms % 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Counters that can be reset.
#[derive(Clone, Copy, Default)]
struct Counters {
    accepted: u64,
    dropped: u64,
    requests: u64,
    respawned: u64,
    handshakes: HandshakeCounts,
}

impl Counters {
    /// Reads the counters of the process.
    fn now() -> Self {
        let (totals, sums) = (stats::totals(), meters::sums());
        Self {
            accepted: totals.accepted,
            dropped: totals.accepted - totals.handled,
            requests: totals.requests,
            respawned: stats::respawned(),
            handshakes: handshake_counts(&sums),
        }
    }
}

/// Returns the counts of all handshakes with clients.
fn handshake_counts(sums: &Sums) -> HandshakeCounts {
    let resumed = sums.events(Event::HandshakeResumed);
    HandshakeCounts {
        succeeded: sums.events(Event::HandshakeFull) + resumed,
        resumed,
        failed: FAILURES.iter().map(|event| sums.events(*event)).sum(),
        no_common_protocol: sums.events(Event::FailedVersion),
        no_common_cipher: sums.events(Event::FailedCipher),
        timed_out: sums.events(Event::FailedTimeout),
        rejected_certificate: sums.events(Event::FailedCertificate),
        certificates: CERTIFICATES.map(|event| event.map_or(0, |event| sums.events(event))),
    }
}

fn base() -> MutexGuard<'static, Counters> {
    BASE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The values at the last reset.
static BASE: Mutex<Counters> = Mutex::new(Counters {
    accepted: 0,
    dropped: 0,
    requests: 0,
    respawned: 0,
    handshakes: HandshakeCounts::NONE,
});

/// Failed handshakes of all kinds.
const FAILURES: [Event; 11] = [
    Event::FailedPlainHttp,
    Event::FailedNotTls,
    Event::FailedRejected,
    Event::FailedNoCertificate,
    Event::FailedAlert,
    Event::FailedProtocol,
    Event::FailedAbandoned,
    Event::FailedTimeout,
    Event::FailedVersion,
    Event::FailedCipher,
    Event::FailedCertificate,
];

/// Refused certificates of clients, by `CertificateFault`. Names of clients are not compared.
const CERTIFICATES: [Option<Event>; CERTIFICATE_FAULTS] = [
    Some(Event::ClientCertificateMissing),
    Some(Event::ClientCertificateExpired),
    Some(Event::ClientCertificateRevoked),
    None,
    Some(Event::ClientCertificateRefused),
];

/// `build` of the running instance.
const BUILD: &str = concat!("firstbyte-", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(784_111_777_042), "1994-11-06T08:49:37.042Z");
    }
}
