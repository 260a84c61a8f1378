//! TLS below a connection's protocol: what the protocol sends is encrypted into records on its way to the socket.
//!
//! Output of one turn leaves in one write: the flight of a handshake and the records behind it. Records begin
//! small, so that the first of them can be read before all of a response is here, and grow while the client keeps
//! reading. Received bytes are decrypted in `handshake`.

use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::Arc;

use engines::http::{Front, OutputQueue};
use server_http::exchange;
use server_http::meters::{self, Event};
use sys::socket::Sent;
use tls::{Fault, Scratch};

use super::probe::StampedByte;
use crate::io::send::Missing;
use crate::worker::net::Net;

/// The TLS side of a connection.
pub(crate) struct Tls {
    pub(super) conn: tls::Conn,
    /// Encrypted bytes that the socket did not take, and how many bytes of plaintext are in them.
    unsent: Vec<u8>,
    unsent_plain: u64,
    /// Plaintext sent since the connection was last silent, and when the last of it was.
    burst_bytes: u64,
    sent_ms: u64,
    /// `ssl_buffer_size`, where it is set.
    pub(super) record_bytes: Option<usize>,
    pub(super) config: Option<Arc<tls::Config>>,
    pub(super) facts: Option<Rc<exchange::Tls>>,
    /// When the ClientHello was read, monotonic microseconds, where events are wanted.
    pub(super) client_hello_us: u64,
    /// The handshake's failure has been counted.
    refused: bool,
}

/// Memory for encryption and decryption, one of a thread.
#[derive(Default)]
pub struct TlsBuffers {
    /// Plaintext of some records, where its pieces lie apart.
    plain: Scratch,
    /// Records that are ready to be sent.
    records: Scratch,
    /// Plaintext of one read.
    pub(super) opened: Vec<u8>,
}

impl Tls {
    /// A connection whose first bytes are to be a handshake.
    pub(crate) fn new() -> Self {
        Self {
            conn: tls::Conn::new(),
            unsent: Vec::new(),
            unsent_plain: 0,
            burst_bytes: 0,
            sent_ms: 0,
            record_bytes: None,
            config: None,
            facts: None,
            client_hello_us: 0,
            refused: false,
        }
    }

    /// Bytes of memory that it holds, about.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.unsent.capacity() + self.conn.memory_bytes()
    }

    /// Whether there are bytes for the socket besides those of the protocol above.
    pub(super) fn has_output(&self) -> bool {
        !self.unsent.is_empty() || self.conn.has_output()
    }

    /// Whether bytes are encrypted that the socket did not take.
    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Whether the protocol above can send nothing yet: its answer to early data waits for the end of the handshake.
    pub(super) fn is_handshaking(&self) -> bool {
        self.conn.is_handshaking()
    }

    /// Announces that nothing more is sent.
    pub(super) fn close(&mut self) {
        self.conn.close();
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
        meters::event(match fault {
            Fault::PlainHttp => Event::FailedPlainHttp,
            Fault::NotTls => Event::FailedNotTls,
            Fault::Rejected => Event::FailedRejected,
            Fault::NoCertificate => Event::FailedNoCertificate,
            Fault::Alert(_) => Event::FailedAlert,
            Fault::Protocol(_) => Event::FailedProtocol,
        });
    }

    /// Counts a handshake that has begun and is not over when the connection ends.
    pub(super) fn count_end(&self) {
        if self.config.is_some() && self.facts.is_none() && !self.refused {
            meters::event(Event::FailedAbandoned);
        }
    }

    /// Plaintext of the next record, bytes.
    fn record_bytes(&mut self, now_ms: u64) -> usize {
        if let Some(bytes) = self.record_bytes {
            return bytes;
        }
        if now_ms.saturating_sub(self.sent_ms) > SILENCE_MS {
            self.burst_bytes = 0;
        }
        if self.burst_bytes < SMALL_UP_TO_BYTES {
            SMALL_RECORD_BYTES
        } else {
            RECORD_BYTES
        }
    }
}

/// Encrypts and sends from the front of `out`; returns how many bytes of plaintext have left whole.
pub(super) fn send<N: Net>(
    tls: &mut Tls,
    socket: &mut N::Socket,
    out: &mut OutputQueue,
    net: &mut N,
    buffers: &mut TlsBuffers,
    now_ms: u64,
    missing: Missing<'_>,
) -> io::Result<Sent> {
    let mut sent = Sent::default();
    if !tls.unsent.is_empty() {
        let taken = net.send_bytes(socket, &tls.unsent)?;
        tls.unsent.drain(..taken);
        if !tls.unsent.is_empty() {
            sent.blocked = true;
            return Ok(sent);
        }
        sent.bytes += std::mem::take(&mut tls.unsent_plain);
        tls.unsent = Vec::new();
    }
    while sent.bytes < WRITE_BYTES {
        buffers.records.clear(KEEP_BYTES);
        buffers.records.extend(&tls.conn.take_output());
        let plain = seal(tls, out, net, buffers, now_ms, missing)?;
        if buffers.records.is_empty() {
            break;
        }
        let records = buffers.records.filled();
        let taken = net.send_bytes(socket, records)?;
        if taken < records.len() {
            tls.unsent = records[taken..].to_vec();
            tls.unsent_plain = plain;
            sent.blocked = true;
            break;
        }
        sent.bytes += plain;
        if matches!(missing, Missing::Wait) {
            // Each write waits for the disk; others have their turn before the next.
            break;
        }
    }
    Ok(sent)
}

/// Encrypts and sends once as [`send`] does, and asks the kernel for timestamps of the first byte of the record that carries
/// the byte after `lead` bytes of `out`.
///
/// # Errors
/// The file's error, or the socket's.
pub(super) fn send_stamped<N: Net>(
    tls: &mut Tls,
    socket: &mut N::Socket,
    out: &mut OutputQueue,
    net: &mut N,
    buffers: &mut TlsBuffers,
    now_ms: u64,
    lead: u64,
) -> io::Result<(Sent, StampedByte)> {
    buffers.records.clear(KEEP_BYTES);
    buffers.records.extend(&tls.conn.take_output());
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
    let told = match taken {
        0 => StampedByte::Nothing,
        taken if taken == before + 1 => StampedByte::After(before as u64),
        _ => StampedByte::Another,
    };
    if let StampedByte::After(_) = told {
        taken += net.send_bytes(socket, &records[taken..])?;
    }
    let mut sent = Sent::default();
    if taken < records.len() {
        tls.unsent = records[taken..].to_vec();
        tls.unsent_plain = plain;
        sent.blocked = true;
    } else {
        sent.bytes = plain;
    }
    Ok((sent, told))
}

/// Encrypts up to [`SEALED_BYTES`] from the front of `out`; returns how many bytes of it.
fn seal<N: Net>(
    tls: &mut Tls,
    out: &mut OutputQueue,
    net: &mut N,
    buffers: &mut TlsBuffers,
    now_ms: u64,
    missing: Missing<'_>,
) -> io::Result<u64> {
    let mut total = 0;
    if !tls.conn.is_open() {
        return Ok(0);
    }
    while total < SEALED_BYTES && !out.is_empty() {
        let most = tls.record_bytes(now_ms);
        if let Some(Front::Bytes(bytes)) = out.front()
            && bytes.len() >= most
        {
            total += encrypt(tls, &bytes[..most], &mut buffers.records, now_ms)?;
            out.advance(most as u64);
            continue;
        }
        collect(
            out,
            net,
            &mut buffers.plain,
            (SEALED_BYTES - total) as usize,
            missing,
        )?;
        let mut rest = buffers.plain.filled();
        if rest.is_empty() {
            break;
        }
        while !rest.is_empty() {
            let (record, after) = rest.split_at(rest.len().min(tls.record_bytes(now_ms)));
            total += encrypt(tls, record, &mut buffers.records, now_ms)?;
            rest = after;
        }
    }
    Ok(total)
}

/// Encrypts one record; returns how many bytes of plaintext it has.
fn encrypt(tls: &mut Tls, plain: &[u8], records: &mut Scratch, now_ms: u64) -> io::Result<u64> {
    let result = tls.conn.encrypt(plain, RECORD_BYTES, records);
    result.map_err(io::Error::other)?;
    tls.burst_bytes += plain.len() as u64;
    tls.sent_ms = now_ms;
    Ok(plain.len() as u64)
}

/// Takes up to `most` bytes from the front of `out`; files are read, up to what is missing.
fn collect<N: Net>(
    out: &mut OutputQueue,
    net: &mut N,
    plain: &mut Scratch,
    most: usize,
    missing: Missing<'_>,
) -> io::Result<()> {
    plain.clear(KEEP_BYTES);
    while plain.len() < most {
        let room = most - plain.len();
        let taken = match out.front() {
            None => break,
            Some(Front::Bytes(bytes)) => {
                let taken = bytes.len().min(room);
                plain.extend(&bytes[..taken]);
                taken
            }
            Some(Front::File(range)) => {
                let most = range.len.min(missing.most(range));
                let wanted = usize::try_from(most).unwrap_or(room).min(room);
                if wanted == 0 {
                    break;
                }
                let read = match missing {
                    Missing::Wait => net.read_file(range, plain.room(wanted)),
                    Missing::Stop(_) => net.read_cached(range, plain.room(wanted)),
                };
                let read = match read {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    read => read?,
                };
                plain.fill(read);
                if read == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                read
            }
        };
        out.advance(taken as u64);
    }
    Ok(())
}

/// Plaintext of a record while the client's window is not known to be open.
const SMALL_RECORD_BYTES: usize = 4 << 10;
/// Plaintext after which records are large.
const SMALL_UP_TO_BYTES: u64 = 32 << 10;
/// Largest record (RFC 8446 section 5.1).
pub(super) const RECORD_BYTES: usize = 16 << 10;
/// A pause after which records are small again.
const SILENCE_MS: u64 = 1000;
/// Bytes of one write: sending them takes some 20 us, for which other connections wait. More would not save
/// CPU time, either.
pub const WRITE_BYTES: u64 = 128 << 10;
/// Plaintext encrypted for one write.
const SEALED_BYTES: u64 = 64 << 10;
/// Memory that is kept for the next write.
const KEEP_BYTES: usize = 128 << 10;
