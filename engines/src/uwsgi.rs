//! uwsgi, client role: a packet of variables, the body verbatim, a response of CGI until the end of the connection.
//!
//! ```text
//! modifier1 u8, size u16, modifier2 u8, then of each variable: length u16, name, length u16, value
//! ```
//!
//! Numbers are little endian. A field without a name is sent verbatim, without lengths (`uwsgi_string`).
//!
//! Source: uWSGI documentation, "The uwsgi Protocol".

use crate::cgi::{Client, RequestOptions};
use crate::client::SendError;
use crate::http::Fields;

/// Begins the request of a connection; see [`Client`]. Returns the number of the exchange.
///
/// # Errors
/// The variables are larger than [`PACKET_BYTES`] with their lengths, or the connection was used before. Nothing
/// has been sent then.
pub fn request(
    client: &mut Client,
    params: &Fields,
    modifiers: [u8; 2],
    options: RequestOptions,
) -> Result<u32, SendError> {
    client.begin(params, options, |out| encode(params, modifiers, out))
}

/// Appends the packet.
fn encode(params: &Fields, modifiers: [u8; 2], out: &mut Vec<u8>) -> Result<(), SendError> {
    let too_large = SendError::ParametersTooLarge;
    let of = |span| params.bytes(span);
    let pairs = || params.fields.iter().map(|p| (of(p.name), of(p.value)));
    let sizes = pairs().map(|(name, value)| match name {
        [] => value.len(),
        _ => name.len() + value.len() + 4,
    });
    let size: usize = sizes.sum();
    let [low, high] = u16::try_from(size).map_err(|_| too_large)?.to_le_bytes();
    out.reserve(size + 4);
    out.extend_from_slice(&[modifiers[0], low, high, modifiers[1]]);
    for (name, value) in pairs() {
        for part in [name, value] {
            if !name.is_empty() {
                // A part is shorter than the packet.
                let len = u16::try_from(part.len()).map_err(|_| too_large)?;
                out.extend_from_slice(&len.to_le_bytes());
            }
            out.extend_from_slice(part);
        }
    }
    Ok(())
}

/// Most bytes of the variables of a packet.
pub const PACKET_BYTES: usize = u16::MAX as usize;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::OutputQueue;

    fn asked(pairs: &[(&[u8], &[u8])], modifiers: [u8; 2]) -> Result<Vec<u8>, SendError> {
        let mut fields = Fields::default();
        for (name, value) in pairs {
            fields.push(name, value);
        }
        let mut client = Client::new();
        let result = request(&mut client, &fields, modifiers, RequestOptions::default());
        let (mut queue, mut out) = (OutputQueue::default(), Vec::new());
        client.transmit(&mut queue);
        queue.drain_bytes(&mut out);
        match result {
            Ok(_) => Ok(out),
            Err(refusal) => {
                assert!(out.is_empty(), "nothing is sent of what is refused");
                Err(refusal)
            }
        }
    }

    #[test]
    fn variables_are_a_packet() {
        let pairs: [(&[u8], &[u8]); 3] = [(b"A", b"bc"), (b"NUL", b"\0"), (b"E", b"")];
        let wanted = b"\x05\x14\0\x09\x01\0A\x02\0bc\x03\0NUL\x01\0\0\x01\0E\0\0";
        assert_eq!(asked(&pairs, [5, 9]), Ok(wanted.to_vec()));
        assert_eq!(asked(&[], [0, 255]), Ok(b"\0\0\0\xff".to_vec()));
    }

    #[test]
    fn a_text_without_a_name_is_sent_raw() {
        let pairs: [(&[u8], &[u8]); 2] = [(b"A", b"b"), (b"", b"raw")];
        assert_eq!(
            asked(&pairs, [0, 0]),
            Ok(b"\0\x09\0\0\x01\0A\x01\0braw".to_vec())
        );
    }

    #[test]
    fn variables_may_fill_a_packet_and_not_more() {
        let value = vec![b'x'; PACKET_BYTES - 4];
        let sent = asked(&[(b"A", &value[1..])], [0, 0]).expect("they fit");
        assert_eq!(&sent[..8], b"\0\xff\xff\0\x01\0A\xfa");
        assert_eq!(sent.len(), PACKET_BYTES + 4);
        let too_large = Err(SendError::ParametersTooLarge);
        assert_eq!(asked(&[(b"A", &value)], [0, 0]), too_large);
        let huge = vec![b'x'; 70_000];
        assert_eq!(asked(&[(b"A", &huge)], [0, 0]), too_large);
        assert_eq!(asked(&[(b"", &huge)], [0, 0]), too_large);
    }
}
