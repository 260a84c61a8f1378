//! Records: messages of a worker to the store process.
//!
//! The first byte of a record is its format, which determines its length. A message has whole records, one after another.

use std::net::{IpAddr, Ipv6Addr};

use engines::http::{Protocol, Version};

use super::{ConnectionSample, Handshake, OpenCounts};
use crate::experiment::{ArmConnection, ArmOpen, NAME_BYTES_MAX, Name, VISIT_METRICS, Visit};

/// Bytes of a sample or of numbers of open connections.
pub const RECORD_BYTES: usize = 96;
/// Bytes of a record of an experiment.
pub const ARM_RECORD_BYTES: usize = 192;
/// First byte of an encoded sample. Format 1 had no statuses.
const SAMPLE_FORMAT: u8 = 2;
/// First byte of encoded numbers of open connections.
const OPEN_FORMAT: u8 = 3;
/// First byte of an encoded page view.
const VISIT_FORMAT: u8 = 4;
/// First byte of an encoded connection to the host of an arm.
const ARM_FORMAT: u8 = 5;
/// First byte of encoded open connections of an arm.
const ARM_OPEN_FORMAT: u8 = 6;
/// A value that is unknown.
const UNKNOWN: u32 = u32::MAX;

const HANDSHAKES: [Handshake; 4] = [
    Handshake::None,
    Handshake::Full,
    Handshake::Resumed,
    Handshake::Early,
];

/// Message of a worker to the store process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A closed connection.
    Sample(ConnectionSample),
    /// Open connections.
    Open(OpenCounts),
    /// A page view.
    Visit(Visit),
    /// A closed connection to the host of an arm.
    Arm(ArmConnection),
    /// Open connections of an arm.
    ArmOpen(ArmOpen),
}

/// Returns the length of the record that begins with this byte; `None` for an unknown format.
#[must_use]
pub fn record_bytes(format: u8) -> Option<usize> {
    match format {
        SAMPLE_FORMAT | OPEN_FORMAT => Some(RECORD_BYTES),
        VISIT_FORMAT | ARM_FORMAT | ARM_OPEN_FORMAT => Some(ARM_RECORD_BYTES),
        _ => None,
    }
}

/// Iterator over the bytes of each record of a message. It ends before a record that is cut or has an unknown format.
#[derive(Clone, Debug)]
pub struct Records<'a>(pub &'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let bytes = record_bytes(*self.0.first()?)?;
        let (record, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(record)
    }
}

impl Record {
    /// Reads a record; `None` for an unknown format, another length, or a field without a meaning.
    #[must_use]
    pub fn decode(record: &[u8]) -> Option<Self> {
        if Some(record.len()) != record_bytes(*record.first()?) {
            return None;
        }
        let fields = Fields(record);
        match record[0] {
            SAMPLE_FORMAT => ConnectionSample::decode(fields).map(Self::Sample),
            OPEN_FORMAT => Some(Self::Open(OpenCounts::decode(fields))),
            VISIT_FORMAT => Visit::decode(fields).map(Self::Visit),
            ARM_FORMAT => ArmConnection::decode(fields).map(Self::Arm),
            _ => ArmOpen::decode(fields).map(Self::ArmOpen),
        }
    }
}

impl OpenCounts {
    /// Returns the numbers as a record.
    #[must_use]
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut record = [0; RECORD_BYTES];
        let mut space = Space(&mut record);
        space.put(&[OPEN_FORMAT, 0, 0, 0, 0, 0, 0, 0]);
        space.put(&self.at_ms.to_le_bytes());
        for count in self.counts {
            space.put(&count.to_le_bytes());
        }
        record
    }

    fn decode(mut fields: Fields<'_>) -> Self {
        fields.take::<8>();
        Self {
            at_ms: fields.u64(),
            counts: Protocol::ALL.map(|_| fields.u32()),
        }
    }
}

impl ConnectionSample {
    /// Returns the sample as a record.
    #[must_use]
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut record = [0; RECORD_BYTES];
        let mut space = Space(&mut record);
        space.put(&[
            SAMPLE_FORMAT,
            self.version as u8,
            self.handshake as u8,
            u8::from(self.via_proxy),
        ]);
        space.put(&self.tls.to_le_bytes());
        for stalls in self.stalls {
            space.put(&stalls.to_le_bytes());
        }
        let client = match self.client {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        space.put(&client.octets());
        for wide in [self.closed_ms, self.bytes_sent, self.bytes_received] {
            space.put(&wide.to_le_bytes());
        }
        space.put(&self.duration_ms.to_le_bytes());
        for time in [self.handshake_us, self.first_byte_us, self.min_rtt_us] {
            space.put_optional(time);
        }
        for narrow in [self.rtt_us, self.retransmits, self.requests] {
            space.put(&narrow.to_le_bytes());
        }
        for status in self.statuses {
            space.put(&status.to_le_bytes());
        }
        record
    }

    fn decode(mut fields: Fields<'_>) -> Option<Self> {
        let [_, version, handshake, via_proxy] = fields.take();
        let version = version_of(version)?;
        let handshake = *HANDSHAKES.get(usize::from(handshake))?;
        let tls = u16::from_le_bytes(fields.take());
        let stalls = [(); 3].map(|()| u16::from_le_bytes(fields.take()));
        let client = Ipv6Addr::from(fields.take::<16>());
        let [closed_ms, bytes_sent, bytes_received] = [(); 3].map(|()| fields.u64());
        // Fields are read in the order of their places.
        Some(Self {
            closed_ms,
            duration_ms: fields.u32(),
            client: IpAddr::V6(client).to_canonical(),
            via_proxy: via_proxy != 0,
            version,
            tls,
            handshake,
            handshake_us: fields.optional(),
            first_byte_us: fields.optional(),
            min_rtt_us: fields.optional(),
            rtt_us: fields.u32(),
            retransmits: fields.u32(),
            bytes_sent,
            bytes_received,
            requests: fields.u32(),
            stalls,
            statuses: [(); 4].map(|()| fields.u32()),
        })
    }
}

impl Visit {
    /// Returns the page view as a record.
    #[must_use]
    pub fn encode(&self) -> [u8; ARM_RECORD_BYTES] {
        let mut record = [0; ARM_RECORD_BYTES];
        let mut space = Space(&mut record);
        space.put(&[VISIT_FORMAT, u8::from(self.is_failed), 0, 0, 0, 0, 0, 0]);
        for wide in [self.at_ms, self.user, self.view, self.file_bytes] {
            space.put(&wide.to_le_bytes());
        }
        space.put(self.experiment.padded());
        space.put(self.arm.padded());
        for value in self.values {
            space.put_optional(value);
        }
        for count in [self.files, self.files_failed, self.files_truncated] {
            space.put(&count.to_le_bytes());
        }
        record
    }

    fn decode(mut fields: Fields<'_>) -> Option<Self> {
        let [_, is_failed, ..] = fields.take::<8>();
        let [at_ms, user, view, file_bytes] = [(); 4].map(|()| fields.u64());
        Some(Self {
            at_ms,
            user,
            view,
            experiment: fields.name().filter(|name| !name.is_empty())?,
            arm: fields.name()?,
            values: [(); VISIT_METRICS].map(|()| fields.optional()),
            files: fields.u32(),
            files_failed: fields.u32(),
            files_truncated: fields.u32(),
            file_bytes,
            is_failed: is_failed != 0,
        })
    }
}

impl ArmConnection {
    /// Returns the connection as a record.
    #[must_use]
    pub fn encode(&self) -> [u8; ARM_RECORD_BYTES] {
        let mut record = [0; ARM_RECORD_BYTES];
        let mut space = Space(&mut record);
        space.put(&[ARM_FORMAT, self.version as u8, 0, 0, 0, 0, 0, 0]);
        for wide in [self.closed_ms, self.promised, self.sent] {
            space.put(&wide.to_le_bytes());
        }
        space.put(self.experiment.padded());
        space.put(self.arm.padded());
        for count in [
            self.duration_ms,
            self.requests,
            self.truncated,
            self.aborted,
        ] {
            space.put(&count.to_le_bytes());
        }
        for time in [self.cpu_us, self.handshake_us, self.first_byte_us] {
            space.put_optional(time);
        }
        record
    }

    fn decode(mut fields: Fields<'_>) -> Option<Self> {
        let [_, version, ..] = fields.take::<8>();
        let [closed_ms, promised, sent] = [(); 3].map(|()| fields.u64());
        Some(Self {
            closed_ms,
            experiment: fields.name().filter(|name| !name.is_empty())?,
            arm: fields.name().filter(|name| !name.is_empty())?,
            version: version_of(version)?,
            duration_ms: fields.u32(),
            requests: fields.u32(),
            promised,
            sent,
            truncated: fields.u32(),
            aborted: fields.u32(),
            cpu_us: fields.optional(),
            handshake_us: fields.optional(),
            first_byte_us: fields.optional(),
        })
    }
}

impl ArmOpen {
    /// Returns the open connections as a record.
    #[must_use]
    pub fn encode(&self) -> [u8; ARM_RECORD_BYTES] {
        let mut record = [0; ARM_RECORD_BYTES];
        let mut space = Space(&mut record);
        space.put(&[ARM_OPEN_FORMAT, 0, 0, 0]);
        space.put(&self.connections.to_le_bytes());
        space.put(&self.at_ms.to_le_bytes());
        space.put(&self.memory_bytes.to_le_bytes());
        space.put(self.experiment.padded());
        space.put(self.arm.padded());
        record
    }

    fn decode(mut fields: Fields<'_>) -> Option<Self> {
        fields.take::<4>();
        let connections = fields.u32();
        let [at_ms, memory_bytes] = [(); 2].map(|()| fields.u64());
        Some(Self {
            at_ms,
            experiment: fields.name().filter(|name| !name.is_empty())?,
            arm: fields.name().filter(|name| !name.is_empty())?,
            connections,
            memory_bytes,
        })
    }
}

fn version_of(number: u8) -> Option<Version> {
    Version::ALL
        .into_iter()
        .find(|version| *version as u8 == number)
}

/// The rest of a record that has no fields yet.
struct Space<'a>(&'a mut [u8]);

impl Space<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let (field, rest) = std::mem::take(&mut self.0).split_at_mut(bytes.len());
        field.copy_from_slice(bytes);
        self.0 = rest;
    }

    fn put_optional(&mut self, value: Option<u32>) {
        self.put(&value.unwrap_or(UNKNOWN).to_le_bytes());
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

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    /// Returns the next value, `None` if it is unknown.
    fn optional(&mut self) -> Option<u32> {
        Some(self.u32()).filter(|value| *value != UNKNOWN)
    }

    fn name(&mut self) -> Option<Name> {
        Name::from_padded(&self.take::<NAME_BYTES_MAX>())
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
