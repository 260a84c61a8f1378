//! TLS of a client's connection: negotiated parameters, counters of failures, and stamped sends.
//!
//! Records and their sizes are the transport's (`worker::transport`); received bytes are decrypted in `handshake`.

use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::Arc;

use engines::http::OutputQueue;
use server_base::handshakes::{CertificateFault, HandshakeFailure, HandshakeResult};
use server_http::exchange;
use server_http::meters::{self, Event};
use server_http::status_zones::StatusZone;
use sys::socket::Sent;
use tls::{ClientCertError, Fault};

use super::probe::StampedByte;
use crate::io::send::Missing;
use crate::worker::handshake_result::{certificate_fault, failure_of};
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::transport::{KEEP_BYTES, TlsStream, collect, encrypt, seal};

/// The TLS side of a connection.
pub(crate) struct Tls {
    pub(super) stream: TlsStream<tls::Conn>,
    pub(super) config: Option<Arc<tls::Config>>,
    pub(super) facts: Option<Rc<exchange::Tls>>,
    /// When the ClientHello was read, monotonic microseconds, if events are wanted.
    pub(super) client_hello_us: u64,
    /// The zone that counts handshakes of the server, once the server is chosen.
    pub(super) zone: Option<Arc<StatusZone>>,
    /// The handshake's failure has been counted.
    refused: bool,
}

impl Tls {
    /// A connection before its handshake.
    pub(crate) fn new() -> Self {
        Self {
            stream: TlsStream::new(tls::Conn::new()),
            config: None,
            facts: None,
            client_hello_us: 0,
            zone: None,
            refused: false,
        }
    }

    /// Bytes of memory that it holds, about.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.stream.memory_bytes()
    }

    /// Whether the protocol above can send nothing yet: its answer to early data waits for the end of the handshake.
    pub(super) fn is_handshaking(&self) -> bool {
        self.stream.session.is_handshaking()
    }

    /// Announces that nothing more is sent.
    pub(super) fn close(&mut self) {
        self.stream.session.close();
    }

    /// Negotiated parameters of the handshake, for the exchanges of the connection.
    pub(super) fn facts(&self) -> Option<Rc<exchange::Tls>> {
        self.facts.clone()
    }

    /// Counts why a handshake failed.
    pub(super) fn count_failure(&mut self, fault: &Fault) {
        if self.facts.is_some() {
            return;
        }
        self.refused = true;
        let failure = failure_of(fault);
        self.count_in_zone(HandshakeResult::Failed(failure));
        meters::event(match failure {
            HandshakeFailure::NoCommonProtocol => Event::FailedVersion,
            HandshakeFailure::NoCommonCipher => Event::FailedCipher,
            HandshakeFailure::RejectedCertificate => Event::FailedCertificate,
            _ => match fault {
                Fault::PlainHttp => Event::FailedPlainHttp,
                Fault::NotTls => Event::FailedNotTls,
                Fault::Rejected => Event::FailedRejected,
                Fault::NoCertificate => Event::FailedNoCertificate,
                Fault::Alert(_) => Event::FailedAlert,
                Fault::Protocol(_) | Fault::Empty | Fault::Server(_) => Event::FailedProtocol,
            },
        });
    }

    /// Counts a handshake that has begun and took too long.
    pub(super) fn count_timeout(&mut self) {
        if self.is_unfinished() {
            self.refused = true;
            meters::event(Event::FailedTimeout);
            self.count_in_zone(HandshakeResult::Failed(HandshakeFailure::TimedOut));
        }
    }

    /// Counts a handshake that has begun and is not over when the connection ends.
    pub(super) fn count_end(&self) {
        if self.is_unfinished() {
            meters::event(Event::FailedAbandoned);
            self.count_in_zone(HandshakeResult::Failed(HandshakeFailure::Other));
        }
    }

    /// Whether a handshake has begun whose result was not counted.
    fn is_unfinished(&self) -> bool {
        self.config.is_some() && self.facts.is_none() && !self.refused
    }

    /// Counts a client without an accepted certificate; its requests are refused.
    #[cold]
    pub(super) fn count_certificate(&self, error: ClientCertError) {
        let (event, fault) = match error {
            ClientCertError::NoCertificate => {
                let fault = CertificateFault::Missing;
                (Event::ClientCertificateMissing, fault)
            }
            ClientCertError::BadCertificate(reason) => {
                let fault = certificate_fault(reason);
                let event = match fault {
                    CertificateFault::Expired => Event::ClientCertificateExpired,
                    CertificateFault::Revoked => Event::ClientCertificateRevoked,
                    _ => Event::ClientCertificateRefused,
                };
                (event, fault)
            }
        };
        meters::event(event);
        if let Some(zone) = &self.zone {
            zone.refused_certificate(fault);
        }
    }

    /// Counts a handshake in the zone of its server.
    pub(super) fn count_in_zone(&self, result: HandshakeResult) {
        if let Some(zone) = &self.zone {
            zone.handshake(result);
        }
    }
}

/// Encrypts and sends once, as `transport::send` does. The kernel timestamps the first byte of the record that carries
/// the byte after `lead` bytes of `out`.
///
/// # Errors
/// The file's error, or the socket's.
pub(super) fn send_stamped<N: Net>(
    tls: &mut TlsStream<tls::Conn>,
    socket: &mut N::Socket,
    out: &mut OutputQueue,
    sh: &mut Shared<N>,
    lead: u64,
) -> io::Result<(Sent, StampedByte)> {
    let (net, buffers, now_ms) = (&mut sh.net, &mut sh.tls_buffers, sh.clock.mono_ms);
    buffers.records.clear(KEEP_BYTES);
    buffers.records.extend(&tls.session.take_output());
    let mut plain = 0;
    if lead > 0 {
        collect(out, net, &mut buffers.plain, lead as usize, Missing::Wait)?;
        let record_bytes = tls.record_bytes(now_ms);
        for record in buffers.plain.filled().chunks(record_bytes) {
            plain += encrypt(tls, record, &mut buffers.records, now_ms)?;
        }
    }
    let before = buffers.records.len();
    plain += seal(tls, out, net, buffers, now_ms, Missing::Wait)?;
    let records = buffers.records.filled();
    let stamped = records.get(..=before).unwrap_or(records);
    let mut taken = net.send_stamped(socket, &[IoSlice::new(stamped)])?;
    let stamped = match taken {
        0 => StampedByte::Nothing,
        taken if taken == before + 1 => StampedByte::After(before as u64),
        _ => StampedByte::Another,
    };
    if let StampedByte::After(_) = stamped {
        taken += net.send_bytes(socket, &records[taken..])?;
    }
    let mut sent = Sent::default();
    if taken < records.len() {
        tls.keep_unsent(&records[taken..], plain);
        sent.blocked = true;
    } else {
        sent.bytes = plain;
    }
    Ok((sent, stamped))
}
