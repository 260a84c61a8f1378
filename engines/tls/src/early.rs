//! Early data: bytes that a client sends with its first message, before the server has answered.
//!
//! For unbuffered connections rustls reports only whether early data can be sent. Acceptance is visible in the
//! client's bytes after the server's Finished: they contain an EndOfEarlyData if it was accepted, else none.
//!
//! Source: RFC 8446 sections 2.3, 4.2.10 and 4.5.

use rustls::Error;
use rustls::client::{EarlyDataError, UnbufferedClientConnection};
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};

use super::records::{RECORD_BYTES, encode};

/// State of early data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyData {
    /// None was sent: there was no data, or no session that permits it.
    #[default]
    NotSent,
    /// This many bytes were sent; the server has not answered.
    Sent(usize),
    /// The server has accepted this many bytes: the rest is sent after the handshake.
    Accepted(usize),
    /// The server rejected it: all data is sent again after the handshake.
    Rejected,
}

impl EarlyData {
    /// The handshake is complete; `flight` holds the client's bytes sent then.
    pub(crate) fn settle(&mut self, flight: &[u8]) {
        if let Self::Sent(bytes) = *self {
            *self = match has_end_of_early_data(flight) {
                true => Self::Accepted(bytes),
                false => Self::Rejected,
            };
        }
    }
}

/// Encodes the first message of a client, followed by the sendable part of `early`.
pub(crate) fn begin(
    conn: &mut UnbufferedClientConnection,
    early: &[u8],
    out: &mut Vec<u8>,
) -> Result<EarlyData, Error> {
    let mut sent = EarlyData::NotSent;
    loop {
        let UnbufferedStatus { state, .. } = conn.process_tls_records(&mut []);
        match state? {
            ConnectionState::EncodeTlsData(mut data) => encode(out, |space| data.encode(space)),
            ConnectionState::TransmitTlsData(mut data) => {
                if let Some(mut allowed) =
                    data.may_encrypt_early_data().filter(|_| !early.is_empty())
                {
                    let start = out.len();
                    let records = early.len().div_ceil(RECORD_BYTES);
                    out.resize(start + early.len() + records * OVERHEAD_BYTES, 0);
                    let written = match allowed.encrypt(early, &mut out[start..]) {
                        Ok(written) => written,
                        Err(EarlyDataError::ExceededAllowedEarlyData) => 0,
                        Err(EarlyDataError::Encrypt(_)) => return Err(Error::EncryptError),
                    };
                    out.truncate(start + written);
                    sent = EarlyData::Sent(plain_bytes(written));
                }
                data.done();
            }
            _ => return Ok(sent),
        }
    }
}

/// Plaintext of records of `bytes`: rustls accepts as much as the session permits, and does not report the amount.
fn plain_bytes(bytes: usize) -> usize {
    bytes - bytes.div_ceil(RECORD_BYTES + OVERHEAD_BYTES) * OVERHEAD_BYTES
}

/// Whether records of a client's second flight have an EndOfEarlyData. It is the one message without content (RFC
/// 8446 section 4.5), visible only by its length, since it is encrypted.
fn has_end_of_early_data(mut flight: &[u8]) -> bool {
    while let [kind, _, _, high, low, rest @ ..] = flight {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if *kind == APPLICATION_DATA && length == EMPTY_MESSAGE_BYTES {
            return true;
        }
        flight = rest.get(length..).unwrap_or_default();
    }
    false
}

/// Bytes of a record of TLS 1.3 besides its plaintext: head, content type and tag; the tag has 16 bytes in all
/// supported ciphers.
const OVERHEAD_BYTES: usize = 5 + 1 + 16;
/// An encrypted handshake message without content: its head, the content type and the tag.
const EMPTY_MESSAGE_BYTES: usize = 4 + 1 + 16;
/// Type of an encrypted record.
const APPLICATION_DATA: u8 = 23;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_early_data_is_found_by_its_length() {
        let record = |kind: u8, length: u8| {
            let mut record = vec![kind, 3, 3, 0, length];
            record.resize(5 + usize::from(length), 7);
            record
        };
        let finished = record(23, 53);
        assert!(has_end_of_early_data(
            &[record(23, 21), finished.clone()].concat()
        ));
        assert!(!has_end_of_early_data(
            &[record(20, 1), finished.clone()].concat()
        ));
        assert!(!has_end_of_early_data(&[record(20, 21), finished].concat()));
        assert!(!has_end_of_early_data(&[23, 3, 3]));
    }

    #[test]
    fn plaintext_of_records_is_counted() {
        for plain in [1, RECORD_BYTES, RECORD_BYTES + 1, 3 * RECORD_BYTES] {
            let records = plain.div_ceil(RECORD_BYTES);
            assert_eq!(plain_bytes(plain + records * OVERHEAD_BYTES), plain);
        }
        assert_eq!(plain_bytes(0), 0);
    }
}
