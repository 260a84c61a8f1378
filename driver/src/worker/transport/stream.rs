//! TLS of a connection in either role: received records are decrypted, plaintext of the protocol above is encrypted.
//!
//! The output of a turn leaves in one write: the flight of a handshake and the records behind it. Records begin small,
//! so that the peer can read the first before a whole message arrives, and grow while the peer keeps reading.

use std::io;

use engines::http::{Front, OutputQueue};
use sys::socket::Sent;
use tls::{ClientConn, Conn, Fault, Scratch};

use crate::io::send::Missing;
use crate::worker::net::Net;
use crate::worker::readiness::WRITE_BYTES;

/// TLS of one connection; the type of its session is the role.
pub(crate) struct TlsStream<S> {
    pub(crate) session: S,
    /// Encrypted bytes that the socket did not take, and the number of bytes of plaintext in them.
    unsent: Vec<u8>,
    unsent_plain: u64,
    /// Plaintext sent since the connection was last silent, and the time of its last byte.
    burst_bytes: u64,
    sent_ms: u64,
    /// Received bytes since the last plaintext.
    empty_bytes: usize,
    /// Plaintext of each record, bytes, if the configuration sets it (`ssl_buffer_size`).
    pub(crate) record_bytes: Option<usize>,
}

/// A session of TLS in one of the roles.
pub(crate) trait Session {
    /// Takes received bytes; plaintext goes to `sink`, in order.
    ///
    /// # Errors
    /// The connection has failed; an alert may wait in [`Self::take_output`].
    fn receive(&mut self, input: &mut [u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), Fault>;

    /// Encrypts plaintext at the end of `out`.
    ///
    /// # Errors
    /// The session is not open, or its keys are used up.
    fn encrypt(&mut self, plain: &[u8], out: &mut Scratch) -> Result<(), Fault>;

    /// Takes bytes of the handshake, and alerts.
    fn take_output(&mut self) -> Vec<u8>;

    /// Whether [`Self::take_output`] returns bytes.
    fn has_output(&self) -> bool;

    /// Whether plaintext can be encrypted.
    fn is_open(&self) -> bool;

    /// Bytes of memory that it holds, about.
    fn memory_bytes(&self) -> usize;
}

/// Memory for encryption and decryption, one of a thread.
#[derive(Default)]
pub struct TlsBuffers {
    /// Plaintext of some records, if its pieces are not contiguous.
    pub(crate) plain: Scratch,
    /// Records that are ready to be sent.
    pub(crate) records: Scratch,
    /// Plaintext of one read.
    pub(crate) opened: Vec<u8>,
}

macro_rules! session {
    ($kind:ty) => {
        impl Session for $kind {
            fn receive(
                &mut self,
                input: &mut [u8],
                sink: &mut dyn FnMut(&[u8]),
            ) -> Result<(), Fault> {
                self.receive(input, sink)
            }

            fn encrypt(&mut self, plain: &[u8], out: &mut Scratch) -> Result<(), Fault> {
                self.encrypt(plain, RECORD_BYTES, out)
            }

            fn take_output(&mut self) -> Vec<u8> {
                self.take_output()
            }

            fn has_output(&self) -> bool {
                self.has_output()
            }

            fn is_open(&self) -> bool {
                self.is_open()
            }

            fn memory_bytes(&self) -> usize {
                self.memory_bytes()
            }
        }
    };
}

session!(Conn);
session!(ClientConn);

impl<S: Session> TlsStream<S> {
    /// A connection before its handshake.
    pub(crate) fn new(session: S) -> Self {
        Self {
            session,
            unsent: Vec::new(),
            unsent_plain: 0,
            burst_bytes: 0,
            sent_ms: 0,
            empty_bytes: 0,
            record_bytes: None,
        }
    }

    /// Decrypts received bytes; the plaintext is added to `plain`.
    ///
    /// # Errors
    /// Those of [`Session::receive`]; nothing is added then.
    pub(crate) fn open(&mut self, input: &mut [u8], plain: &mut Vec<u8>) -> Result<(), Fault> {
        let before = plain.len();
        let opened = (self.session).receive(input, &mut |opened| plain.extend_from_slice(opened));
        if opened.is_err() {
            // The buffer is the thread's: the next connection would read the rest as its own.
            plain.truncate(before);
        }
        opened
    }

    /// Counts received bytes; `is_empty`: no plaintext came with them.
    ///
    /// # Errors
    /// More than [`EMPTY_BYTES_MAX`] came without plaintext.
    pub(crate) fn count_empty(&mut self, bytes: usize, is_empty: bool) -> Result<(), Fault> {
        self.empty_bytes = match is_empty {
            true => self.empty_bytes.saturating_add(bytes),
            false => 0,
        };
        match self.empty_bytes > EMPTY_BYTES_MAX {
            true => Err(Fault::Empty),
            false => Ok(()),
        }
    }

    /// Number of encrypted bytes that the socket did not take.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.unsent.len()
    }

    /// Bytes of memory of its buffers and session, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.unsent.capacity() + self.session.memory_bytes()
    }

    /// Whether there are bytes for the socket besides the output of the protocol above.
    pub(crate) fn has_output(&self) -> bool {
        !self.unsent.is_empty() || self.session.has_output()
    }

    /// Whether bytes are encrypted that the socket did not take.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Keeps records that the socket did not take, with `plain` bytes of plaintext in them.
    pub(crate) fn keep_unsent(&mut self, records: &[u8], plain: u64) {
        self.unsent = records.to_vec();
        self.unsent_plain = plain;
    }

    /// Plaintext of the next record, bytes.
    pub(crate) fn record_bytes(&mut self, now_ms: u64) -> usize {
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
///
/// # Errors
/// The file's error, or the socket's.
pub(crate) fn send<S: Session, N: Net>(
    tls: &mut TlsStream<S>,
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
        buffers.records.extend(&tls.session.take_output());
        let plain = seal(tls, out, net, buffers, now_ms, missing)?;
        if buffers.records.is_empty() {
            break;
        }
        let records = buffers.records.filled();
        let taken = net.send_bytes(socket, records)?;
        if taken < records.len() {
            tls.keep_unsent(&records[taken..], plain);
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

/// Encrypts up to [`SEALED_BYTES`] from the front of `out`; returns how many bytes of it.
pub(crate) fn seal<S: Session, N: Net>(
    tls: &mut TlsStream<S>,
    out: &mut OutputQueue,
    net: &mut N,
    buffers: &mut TlsBuffers,
    now_ms: u64,
    missing: Missing<'_>,
) -> io::Result<u64> {
    let mut total = 0;
    if !tls.session.is_open() {
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
        // A request's head as a rule is a single piece: it is encrypted without a copy.
        if let Some(bytes) = out.only_bytes()
            && bytes.len() as u64 <= SEALED_BYTES - total
        {
            let sealed = encrypt(tls, bytes, &mut buffers.records, now_ms)?;
            out.advance(sealed);
            return Ok(total + sealed);
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
pub(crate) fn encrypt<S: Session>(
    tls: &mut TlsStream<S>,
    plain: &[u8],
    records: &mut Scratch,
    now_ms: u64,
) -> io::Result<u64> {
    let result = tls.session.encrypt(plain, records);
    result.map_err(io::Error::other)?;
    tls.burst_bytes += plain.len() as u64;
    tls.sent_ms = now_ms;
    Ok(plain.len() as u64)
}

/// Takes up to `most` bytes from the front of `out`; files are read up to the first missing byte.
pub(crate) fn collect<N: Net>(
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

/// Maximum number of bytes without plaintext in a row: records without content, tickets, updates of keys. Each takes CPU
/// and ends nothing. A record with content has less than a third of that.
const EMPTY_BYTES_MAX: usize = 64 << 10;
/// Plaintext of a record while the peer's window is not known to be open.
const SMALL_RECORD_BYTES: usize = 4 << 10;
/// Plaintext after which records are large.
const SMALL_UP_TO_BYTES: u64 = 32 << 10;
/// Largest record (RFC 8446 section 5.1).
pub(crate) const RECORD_BYTES: usize = 16 << 10;
/// A pause after which records are small again.
const SILENCE_MS: u64 = 1000;
/// Plaintext encrypted for one write.
const SEALED_BYTES: u64 = 64 << 10;
/// Memory that is kept for the next write.
pub(crate) const KEEP_BYTES: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_without_plaintext_are_limited_in_a_row() {
        let mut tls = TlsStream::new(Conn::new());
        assert_eq!(tls.count_empty(EMPTY_BYTES_MAX - 1, true), Ok(()));
        assert_eq!(tls.count_empty(1, true), Ok(()));
        assert_eq!(tls.count_empty(1, true), Err(Fault::Empty));
        assert_eq!(tls.count_empty(1, false), Ok(()));
        assert_eq!(tls.count_empty(EMPTY_BYTES_MAX, true), Ok(()));
    }
}
