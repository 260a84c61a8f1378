//! Samples of connections, for the store of the lab.
//!
//! The driver creates one sample of a recorded connection at its close and passes it to a [`SampleSink`]. The sink never waits.
//! The store process receives samples, page views of experiments and open connections as records ([`Record`]). A sample has the
//! full address of the client. The store process truncates it before it writes anything. Absent: the store itself.
//!
//! Source: docs/map.md.

mod record;

use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use engines::http::{Protocol, Version};

use crate::experiment::{ArmConnection, Visit};
pub use record::{ARM_RECORD_BYTES, RECORD_BYTES, Record, Records, record_bytes};

/// Kind of TLS handshake of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handshake {
    /// None: a plain connection.
    #[default]
    None,
    /// With certificates.
    Full,
    /// An earlier session was resumed.
    Resumed,
    /// An earlier session was resumed with early data.
    Early,
}

/// One connection, as it was at its close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionSample {
    /// When the connection was closed, milliseconds since 1970.
    pub closed_ms: u64,
    /// Time since it was accepted, milliseconds.
    pub duration_ms: u32,
    /// Address of the client, after the PROXY protocol or `set_real_ip_from`.
    pub client: IpAddr,
    /// The peer of the connection is a proxy: times of the kernel are those of the way to the proxy.
    pub via_proxy: bool,
    /// Version of HTTP of its first request.
    pub version: Version,
    /// Version of TLS as in the protocol, 0x0304 for TLS 1.3; 0 for a plain connection.
    pub tls: u16,
    /// Kind of handshake.
    pub handshake: Handshake,
    /// Time from the first byte of the client until the end of the handshake, microseconds.
    pub handshake_us: Option<u32>,
    /// Time from the end of the first request's head until the first byte of its response was given to the kernel, microseconds.
    pub first_byte_us: Option<u32>,
    /// Minimum of the round-trip times in the last five minutes, microseconds; `None` before the first measurement.
    pub min_rtt_us: Option<u32>,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Segments sent again.
    pub retransmits: u32,
    /// Bytes that the client acknowledged.
    pub bytes_sent: u64,
    /// Bytes received from the client.
    pub bytes_received: u64,
    /// Requests.
    pub requests: u32,
    /// First bytes of sampled responses that were acknowledged late, by cause: delayed ACK, retransmission, window.
    pub stalls: [u16; 3],
    /// Requests that ended, by class of status: 2xx, 3xx, 4xx, 5xx. Requests without a status are in none.
    pub statuses: [u32; 4],
}

/// Open client connections of a worker, recorded or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenCounts {
    /// Time, milliseconds since 1970.
    pub at_ms: u64,
    /// Numbers by the place in [`Protocol::ALL`].
    pub counts: [u32; Protocol::ALL.len()],
}

/// Receiver of samples.
pub trait SampleSink: fmt::Debug + Send + Sync {
    /// Takes a sample without waiting, or drops and counts it.
    fn record(&self, sample: &ConnectionSample);

    /// Takes a page view without waiting, or drops and counts it.
    fn visit(&self, visit: &Visit);

    /// Takes a connection to the host of an arm without waiting, or drops and counts it.
    fn arm(&self, connection: &ArmConnection);
}

/// Figures of the store process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// Samples written to the store.
    pub written: u64,
    /// Samples dropped because the store was behind.
    pub dropped: u64,
    /// Writes that failed and were tried again.
    pub failed_writes: u64,
    /// The last write failed, or the store could not be opened.
    pub is_failing: bool,
    /// Batches that ClickHouse has stored.
    pub batches_sent: u64,
    /// Batches sent again because ClickHouse did not confirm them.
    pub retries: u64,
    /// Batches in the spill directory.
    pub spilled_batches: u64,
    /// Bytes of these batches.
    pub spilled_bytes: u64,
    /// Samples dropped because the spill directory was full; they are among `dropped`.
    pub spill_dropped: u64,
}

/// Bytes of the encoded figures.
pub const FIGURES_BYTES: usize = 72;

/// The figures that metrics of this process show.
static PUBLISHED: Mutex<Option<StoreFigures>> = Mutex::new(None);

impl StoreFigures {
    /// Returns the figures as bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; FIGURES_BYTES] {
        let mut bytes = [0; FIGURES_BYTES];
        let figures = [
            self.written,
            self.dropped,
            self.failed_writes,
            u64::from(self.is_failing),
            self.batches_sent,
            self.retries,
            self.spilled_batches,
            self.spilled_bytes,
            self.spill_dropped,
        ];
        for (place, figure) in bytes.chunks_mut(8).zip(figures) {
            place.copy_from_slice(&figure.to_le_bytes());
        }
        bytes
    }

    /// Reads encoded figures.
    #[must_use]
    pub fn decode(bytes: &[u8; FIGURES_BYTES]) -> Self {
        let mut fields = bytes.chunks_exact(8);
        let mut next = || {
            let field = fields.next().and_then(|field| field.try_into().ok());
            u64::from_le_bytes(field.expect("the array has all figures"))
        };
        Self {
            written: next(),
            dropped: next(),
            failed_writes: next(),
            is_failing: next() != 0,
            batches_sent: next(),
            retries: next(),
            spilled_batches: next(),
            spilled_bytes: next(),
            spill_dropped: next(),
        }
    }

    /// Shows the figures to the metrics of this process.
    pub fn publish(self) {
        *PUBLISHED.lock().unwrap_or_else(PoisonError::into_inner) = Some(self);
    }

    /// Stops publishing figures: there is no store.
    pub fn unpublish() {
        *PUBLISHED.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the figures that were published last, `None` without a store.
    #[must_use]
    pub fn published() -> Option<Self> {
        *PUBLISHED.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_back() {
        let figures = StoreFigures {
            written: u64::MAX,
            dropped: 1,
            failed_writes: 2,
            is_failing: true,
            batches_sent: 5,
            retries: 6,
            spilled_batches: 7,
            spilled_bytes: 8,
            spill_dropped: u64::MAX,
        };
        assert_eq!(StoreFigures::decode(&figures.encode()), figures);
    }
}
