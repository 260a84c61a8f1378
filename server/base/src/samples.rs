//! Samples of connections, for the store of the lab.
//!
//! The driver makes one sample of a recorded connection at its close and gives it to a [`SampleSink`]. The sink never waits. The
//! store process receives samples and numbers of open connections as fixed-length records ([`Record`]). A sample has the full address of the
//! client; the store process truncates it before it writes anything. Absent: the store itself.
//!
//! Source: docs/map.md.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use engines::http::{Protocol, Version};

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
        let mut fields = Fields(bytes);
        let mut next = || u64::from_le_bytes(fields.take());
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

    /// Shows no figures any more: there is no store.
    pub fn unpublish() {
        *PUBLISHED.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the figures that were published last, `None` without a store.
    #[must_use]
    pub fn published() -> Option<Self> {
        *PUBLISHED.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of a record.
pub const RECORD_BYTES: usize = 96;
/// First byte of an encoded sample. Format 1 had no statuses.
const SAMPLE_FORMAT: u8 = 2;
/// First byte of encoded numbers of open connections.
const OPEN_FORMAT: u8 = 3;
/// A time that is unknown.
const UNKNOWN: u32 = u32::MAX;

const HANDSHAKES: [Handshake; 4] = [
    Handshake::None,
    Handshake::Full,
    Handshake::Resumed,
    Handshake::Early,
];

/// A message of a worker to the store process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A closed connection.
    Sample(ConnectionSample),
    /// Open connections.
    Open(OpenCounts),
}

impl Record {
    /// Reads a record; `None` for an unknown format.
    #[must_use]
    pub fn decode(record: &[u8; RECORD_BYTES]) -> Option<Self> {
        match record[0] {
            SAMPLE_FORMAT => ConnectionSample::decode(record).map(Self::Sample),
            OPEN_FORMAT => Some(Self::Open(OpenCounts::decode(record))),
            _ => None,
        }
    }
}

impl OpenCounts {
    /// Returns the numbers as a record.
    #[must_use]
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut record = [0; RECORD_BYTES];
        record[0] = OPEN_FORMAT;
        record[8..16].copy_from_slice(&self.at_ms.to_le_bytes());
        for (place, count) in record[16..].chunks_mut(4).zip(self.counts) {
            place.copy_from_slice(&count.to_le_bytes());
        }
        record
    }

    fn decode(record: &[u8; RECORD_BYTES]) -> Self {
        let mut fields = Fields(&record[8..]);
        Self {
            at_ms: u64::from_le_bytes(fields.take()),
            counts: Protocol::ALL.map(|_| u32::from_le_bytes(fields.take())),
        }
    }
}

impl ConnectionSample {
    /// Returns the sample as a record.
    #[must_use]
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut record = [0; RECORD_BYTES];
        let mut rest = &mut record[..];
        let mut put = |bytes: &[u8]| {
            let (field, after) = std::mem::take(&mut rest).split_at_mut(bytes.len());
            field.copy_from_slice(bytes);
            rest = after;
        };
        put(&[
            SAMPLE_FORMAT,
            self.version as u8,
            self.handshake as u8,
            u8::from(self.via_proxy),
        ]);
        put(&self.tls.to_le_bytes());
        for stalls in self.stalls {
            put(&stalls.to_le_bytes());
        }
        let client = match self.client {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        put(&client.octets());
        for wide in [self.closed_ms, self.bytes_sent, self.bytes_received] {
            put(&wide.to_le_bytes());
        }
        let known = |us: Option<u32>| us.unwrap_or(UNKNOWN);
        for narrow in [
            self.duration_ms,
            known(self.handshake_us),
            known(self.first_byte_us),
            known(self.min_rtt_us),
            self.rtt_us,
            self.retransmits,
            self.requests,
        ]
        .into_iter()
        .chain(self.statuses)
        {
            put(&narrow.to_le_bytes());
        }
        record
    }

    /// Reads a record of its format; `None` if a field has no meaning.
    fn decode(record: &[u8; RECORD_BYTES]) -> Option<Self> {
        let mut fields = Fields(record);
        let [_, version, handshake, via_proxy] = fields.take();
        let version = Version::ALL.into_iter().find(|v| *v as u8 == version)?;
        let handshake = *HANDSHAKES.get(usize::from(handshake))?;
        let tls = u16::from_le_bytes(fields.take());
        let stalls = [(); 3].map(|()| u16::from_le_bytes(fields.take()));
        let client = Ipv6Addr::from(fields.take::<16>());
        let [closed_ms, bytes_sent, bytes_received] =
            [(); 3].map(|()| u64::from_le_bytes(fields.take()));
        let [
            duration_ms,
            handshake_us,
            first_byte_us,
            min_rtt_us,
            rtt_us,
            retransmits,
            requests,
        ] = [(); 7].map(|()| u32::from_le_bytes(fields.take()));
        let statuses = [(); 4].map(|()| u32::from_le_bytes(fields.take()));
        let known = |us: u32| (us != UNKNOWN).then_some(us);
        Some(Self {
            closed_ms,
            duration_ms,
            client: IpAddr::V6(client).to_canonical(),
            via_proxy: via_proxy != 0,
            version,
            tls,
            handshake,
            handshake_us: known(handshake_us),
            first_byte_us: known(first_byte_us),
            min_rtt_us: known(min_rtt_us),
            rtt_us,
            retransmits,
            bytes_sent,
            bytes_received,
            requests,
            stalls,
            statuses,
        })
    }
}

/// The unread fields of a record.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    /// Returns the next field.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().expect("a record has all fields");
        self.0 = rest;
        *field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(client: &str) -> ConnectionSample {
        ConnectionSample {
            closed_ms: 1_796_000_000_123,
            duration_ms: 61_000,
            client: client.parse().expect("an address"),
            via_proxy: true,
            version: Version::Http2,
            tls: 0x0304,
            handshake: Handshake::Early,
            handshake_us: Some(51_000),
            first_byte_us: None,
            min_rtt_us: Some(UNKNOWN - 1),
            rtt_us: 50_400,
            retransmits: 3,
            bytes_sent: u64::MAX,
            bytes_received: 700,
            requests: 12,
            stalls: [1, 2, u16::MAX],
            statuses: [9, 2, 1, 0],
        }
    }

    #[test]
    fn record_is_read_back() {
        for client in ["192.0.2.7", "2001:db8::7", "::1", "0.0.0.0"] {
            let sample = sample(client);
            let read = Record::decode(&sample.encode());
            assert_eq!(read, Some(Record::Sample(sample)));
        }
        let open = OpenCounts {
            at_ms: u64::MAX - 1,
            counts: [1, 0, u32::MAX, 7],
        };
        assert_eq!(Record::decode(&open.encode()), Some(Record::Open(open)));
    }

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

    #[test]
    fn record_fills_its_bytes() {
        let mut sample = sample("2001:db8::7");
        sample.statuses[3] = u32::MAX;
        let record = sample.encode();
        assert_eq!(record[RECORD_BYTES - 4..], [0xff; 4]);
    }

    #[test]
    fn record_of_another_format_is_refused() {
        let whole = sample("192.0.2.7").encode();
        for (at, value) in [(0, 0), (0, 1), (0, 4), (1, 250), (2, 4)] {
            let mut record = whole;
            record[at] = value;
            assert_eq!(Record::decode(&record), None, "{at}: {value}");
        }
    }
}
