//! Records, in both roles: received ones are decrypted in place, plaintext is encrypted into the send buffer.
//!
//! rustls has two types for the roles, with equal methods but no common trait; [`Role`] is that trait.

use rustls::Error;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, ReadEarlyData, UnbufferedStatus, WriteTraffic,
};

use super::scratch::Scratch;

/// A connection of rustls in one of the roles.
pub(crate) trait Role {
    /// State of rustls for the role.
    type Data;

    /// Processes received bytes up to the next state that needs an action.
    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;

    /// Passes early data to `sink`; returns the number of used input bytes, `None` if there was none.
    fn read_early(
        early: ReadEarlyData<'_, '_, Self::Data>,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<Option<usize>, Error>;
}

impl Role for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(input)
    }

    fn read_early(
        mut early: ReadEarlyData<'_, '_, Self::Data>,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<Option<usize>, Error> {
        let mut used = None;
        while let Some(record) = early.next_record() {
            let record = record?;
            used = Some(used.unwrap_or(0) + record.discard);
            sink(record.payload);
        }
        Ok(used)
    }
}

impl Role for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(input)
    }

    /// A server sends none.
    fn read_early(
        _: ReadEarlyData<'_, '_, Self::Data>,
        _: &mut dyn FnMut(&[u8]),
    ) -> Result<Option<usize>, Error> {
        Ok(None)
    }
}

/// The buffers of one connection.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Received bytes of an incomplete record.
    pub(crate) partial: Vec<u8>,
    /// Bytes of the handshake, and alerts, to be sent.
    pub(crate) out: Vec<u8>,
    /// The peer has announced the end of its data (close_notify).
    pub(crate) peer_closed: bool,
    /// We have.
    pub(crate) closing: bool,
}

/// Result of processing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// The handshake is over.
    pub(crate) open: bool,
    /// Early data has come.
    pub(crate) early: bool,
    used: usize,
}

impl Records {
    /// Takes bytes from the peer and passes plaintext to `sink`, in order.
    ///
    /// # Errors
    /// The connection cannot continue and must not be used again; an alert may wait in `out`.
    pub(crate) fn receive<R: Role>(
        &mut self,
        conn: &mut R,
        input: &mut [u8],
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<Progress, Error> {
        if self.partial.is_empty() {
            let progress = self.process(conn, input, sink)?;
            self.partial.extend_from_slice(&input[progress.used..]);
            return Ok(progress);
        }
        let mut partial = std::mem::take(&mut self.partial);
        partial.extend_from_slice(input);
        let progress = self.process(conn, &mut partial, sink)?;
        partial.drain(..progress.used);
        if !partial.is_empty() {
            self.partial = partial;
        }
        Ok(progress)
    }

    /// Takes bytes as [`Self::receive`] does, on an open connection. Only the bytes that complete a record are copied behind
    /// its beginning; the records behind it are decrypted in place.
    ///
    /// # Errors
    /// Those of [`Self::receive`].
    pub(crate) fn receive_open<R: Role>(
        &mut self,
        conn: &mut R,
        input: &mut [u8],
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        let missing = missing_bytes(&self.partial, input);
        let (first, rest) = input.split_at_mut(missing.unwrap_or(0));
        if !first.is_empty() && !rest.is_empty() {
            self.receive(conn, first, sink)?;
        } else {
            return self.receive(conn, input, sink).map(drop);
        }
        // rustls leaves a record with a part of a message in the input: then the rest is behind it.
        self.receive(conn, rest, sink).map(drop)
    }

    fn process<R: Role>(
        &mut self,
        conn: &mut R,
        input: &mut [u8],
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<Progress, Error> {
        let mut progress = Progress::default();
        loop {
            // rustls returns one state per call, which borrows the input meanwhile.
            let UnbufferedStatus {
                mut discard, state, ..
            } = conn.process(&mut input[progress.used..]);
            let more = match state {
                Err(error) => {
                    let rest = progress.used + discard;
                    self.take_alert(conn, &mut input[rest..]);
                    return Err(error);
                }
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        sink(record.payload);
                    }
                    true
                }
                Ok(ConnectionState::ReadEarlyData(early)) => {
                    if let Some(used) = R::read_early(early, sink)? {
                        discard += used;
                        progress.early = true;
                    }
                    true
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    encode(&mut self.out, |space| data.encode(space));
                    true
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    true
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.peer_closed = true;
                    true
                }
                Ok(ConnectionState::WriteTraffic(_)) => {
                    progress.open = true;
                    false
                }
                Ok(ConnectionState::Closed) => {
                    self.peer_closed = true;
                    false
                }
                Ok(_) => false,
            };
            progress.used += discard;
            if !more {
                return Ok(progress);
            }
        }
    }

    /// Takes rustls's alert for the peer after an error; `rest` is the unused part of the input. rustls must not be
    /// called again after that: it would read the broken bytes anew and panic over a second alert.
    fn take_alert<R: Role>(&mut self, conn: &mut R, mut rest: &mut [u8]) {
        for _ in 0..MESSAGES_AFTER_ERROR {
            let UnbufferedStatus { discard, state, .. } = conn.process(rest);
            match state {
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    let start = self.out.len();
                    encode(&mut self.out, |space| data.encode(space));
                    if matches!(self.out.get(start), Some(&(ALERT | ENCRYPTED))) {
                        return;
                    }
                }
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                _ => return,
            }
            rest = &mut rest[discard..];
        }
    }

    /// Encrypts plaintext into records with at most `record_bytes` of it each, at the end of `out`.
    ///
    /// # Errors
    /// The connection's keys are used up.
    pub(crate) fn encrypt<R: Role>(
        &mut self,
        conn: &mut R,
        plain: &[u8],
        record_bytes: usize,
        out: &mut Scratch,
    ) -> Result<(), Error> {
        let record_bytes = record_bytes.clamp(1, RECORD_BYTES);
        for piece in plain.chunks(record_bytes) {
            self.encrypt_record(conn, piece, out)?;
        }
        Ok(())
    }

    fn encrypt_record<R: Role>(
        &mut self,
        conn: &mut R,
        plain: &[u8],
        out: &mut Scratch,
    ) -> Result<(), Error> {
        let start = out.len();
        let written = self.with_traffic(conn, |traffic| {
            let room = out.room(plain.len() + RECORD_OVERHEAD_BYTES);
            match traffic.encrypt(plain, room) {
                Err(EncryptError::InsufficientSize(needed)) => {
                    traffic.encrypt(plain, out.room(needed.required_size))
                }
                other => other,
            }
        })?;
        out.fill(written.map_err(|_| Error::EncryptError)?);
        if !self.out.is_empty() {
            // Output queued before the record, such as a change of keys, must be sent before it.
            out.insert(start, &std::mem::take(&mut self.out));
        }
        Ok(())
    }

    /// Queues the alert that ends our side (close_notify).
    pub(crate) fn close<R: Role>(&mut self, conn: &mut R) {
        let mut alert = [0; ALERT_BYTES];
        let queued = self.with_traffic(conn, |traffic| traffic.queue_close_notify(&mut alert));
        if let Ok(Ok(written)) = queued {
            self.out.extend_from_slice(&alert[..written]);
        }
    }

    /// Advances to the state that can write application data, and first emits all pending output. rustls remembers
    /// the position up to which it has read the partial record, so that record must be passed each time.
    fn with_traffic<R: Role, T>(
        &mut self,
        conn: &mut R,
        write: impl FnOnce(&mut WriteTraffic<'_, R::Data>) -> T,
    ) -> Result<T, Error> {
        for _ in 0..STATES_BEFORE_TRAFFIC {
            let UnbufferedStatus { discard, state, .. } = conn.process(&mut self.partial);
            match state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    let written = write(&mut traffic);
                    self.partial.drain(..discard);
                    return Ok(written);
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    encode(&mut self.out, |space| data.encode(space));
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => self.peer_closed = true,
                _ => break,
            }
            self.partial.drain(..discard);
        }
        Err(Error::EncryptError)
    }
}

/// Returns how many bytes of `input` complete the record that `partial` begins; `None` if there is none, or its length has
/// not come.
fn missing_bytes(partial: &[u8], input: &[u8]) -> Option<usize> {
    if partial.is_empty() {
        return None;
    }
    let mut head = partial.iter().chain(input).copied().skip(LENGTH_AT);
    let length = u16::from_be_bytes([head.next()?, head.next()?]);
    let whole = HEAD_BYTES + usize::from(length);
    whole
        .checked_sub(partial.len())
        .map(|missing| missing.min(input.len()))
}

/// Appends the output of `write`, after making enough room.
pub(crate) fn encode(
    out: &mut Vec<u8>,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) {
    let start = out.len();
    let needed = match write(&mut []) {
        Err(EncodeError::InsufficientSize(needed)) => needed.required_size,
        _ => return,
    };
    out.resize(start + needed, 0);
    let written = write(&mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
}

/// Bytes of a record's head, and the place of the length in it (RFC 8446 section 5.1).
const HEAD_BYTES: usize = 5;
const LENGTH_AT: usize = 3;
/// Most plaintext of a record (RFC 8446 section 5.1), bytes.
pub(crate) const RECORD_BYTES: usize = 1 << 14;
/// Overhead of a record in bytes: its head, an explicit nonce of TLS 1.2, the content type of TLS 1.3, the tag.
const RECORD_OVERHEAD_BYTES: usize = 5 + 8 + 1 + 16;
/// An encrypted alert.
const ALERT_BYTES: usize = 64;
/// Most states passed before application data can be written.
const STATES_BEFORE_TRAFFIC: usize = 16;
/// Messages that are taken after an error.
const MESSAGES_AFTER_ERROR: usize = 8;
/// Types of records (RFC 8446 section 5.1): an alert, and anything encrypted.
const ALERT: u8 = 21;
const ENCRYPTED: u8 = 23;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_complete_a_record_are_counted() {
        let record = [23, 3, 3, 1, 2];
        for (partial, input, missing) in [
            (&record[..0], &record[..], None),
            (&record[..2], &record[2..4], None),
            (&record[..1], &record[1..], Some(4)),
            (&record[..], &[0; 1000], Some(258)),
            (&record[..], &[0; 258], Some(258)),
            (&record[..], &[0; 257], Some(257)),
        ] {
            assert_eq!(missing_bytes(partial, input), missing, "{partial:?}");
        }
        let more = [&record[..], &[0; 258]].concat();
        assert_eq!(missing_bytes(&more, &[0]), Some(0), "it is whole");
        assert_eq!(missing_bytes(&[&more[..], &[0]].concat(), &[0]), None);
    }
}
