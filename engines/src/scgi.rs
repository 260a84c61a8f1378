//! SCGI, client role: parameters as a netstring, the body verbatim, a response of CGI until the end of the
//! connection.
//!
//! The first parameter is `CONTENT_LENGTH`, as the format requires; none is added.
//!
//! Source: SCGI: A Simple Common Gateway Interface alternative, sections 2 to 4.

use crate::cgi::{Client, PARAMETER_BYTES, RequestOptions};
use crate::client::SendError;
use crate::http::{Fields, parse_length};

/// Begins the request of a connection; see [`Client`]. Returns the number of the exchange.
///
/// # Errors
/// The parameters are larger than [`PARAMETER_BYTES`], have an empty name or a NUL, or the first one is not
/// `CONTENT_LENGTH` with a number; or the connection was used before. Nothing has been sent then.
pub fn request(
    client: &mut Client,
    params: &Fields,
    options: RequestOptions,
) -> Result<u32, SendError> {
    client.begin(params, options, |out| encode(params, out))
}

/// Appends a netstring of names and values, each followed by a NUL.
fn encode(params: &Fields, out: &mut Vec<u8>) -> Result<(), SendError> {
    let pairs = || {
        let of = |span| params.bytes(span);
        params.fields.iter().map(move |p| (of(p.name), of(p.value)))
    };
    match pairs().next() {
        Some((b"CONTENT_LENGTH", value)) if parse_length(value).is_some() => {}
        _ => return Err(SendError::NoLength),
    }
    let sizes = pairs().map(|(name, value)| name.len() + value.len() + 2);
    let size: usize = sizes.sum();
    if size > PARAMETER_BYTES {
        return Err(SendError::ParametersTooLarge);
    }
    out.reserve(size + 8);
    out.extend_from_slice(size.to_string().as_bytes());
    out.push(b':');
    for (name, value) in pairs() {
        let has_nul = |text| memchr::memchr(0, text).is_some();
        if name.is_empty() || has_nul(name) || has_nul(value) {
            return Err(SendError::BadParameter);
        }
        for part in [name, b"\0", value, b"\0"] {
            out.extend_from_slice(part);
        }
    }
    out.push(b',');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::OutputQueue;

    fn fields(pairs: &[(&[u8], &[u8])]) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in pairs {
            fields.push(name, value);
        }
        fields
    }

    fn asked(pairs: &[(&[u8], &[u8])]) -> Result<Vec<u8>, SendError> {
        let mut client = Client::new();
        let result = request(&mut client, &fields(pairs), RequestOptions::default());
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

    /// The example of the specification, section 4.
    #[test]
    fn parameters_are_a_netstring() {
        let pairs: [(&[u8], &[u8]); 4] = [
            (b"CONTENT_LENGTH", b"27"),
            (b"SCGI", b"1"),
            (b"REQUEST_METHOD", b"POST"),
            (b"REQUEST_URI", b"/deepthought"),
        ];
        let wanted = b"70:CONTENT_LENGTH\x0027\0SCGI\x001\0REQUEST_METHOD\0POST\0\
            REQUEST_URI\0/deepthought\0,";
        assert_eq!(asked(&pairs), Ok(wanted.to_vec()));
        let empty = [(&b"CONTENT_LENGTH"[..], &b"0"[..]), (b"QUERY_STRING", b"")];
        assert_eq!(
            asked(&empty),
            Ok(b"31:CONTENT_LENGTH\x000\0QUERY_STRING\0\0,".to_vec())
        );
    }

    #[test]
    fn what_servers_would_read_in_another_way_is_refused() {
        let length = (&b"CONTENT_LENGTH"[..], &b"0"[..]);
        for (pairs, refusal) in [
            (&[length, (b"A\0B", b"c")][..], SendError::BadParameter),
            (&[length, (b"A", b"b\0c")], SendError::BadParameter),
            (&[length, (b"", b"c")], SendError::BadParameter),
            (&[], SendError::NoLength),
            (&[(b"SCGI", b"1"), length], SendError::NoLength),
            (&[(b"CONTENT_LENGTH", b"")], SendError::NoLength),
            (&[(b"CONTENT_LENGTH", b"-1")], SendError::NoLength),
        ] {
            assert_eq!(asked(pairs), Err(refusal), "{pairs:?}");
        }
    }

    #[test]
    fn parameters_may_fill_their_limit_and_not_more() {
        let length = (&b"CONTENT_LENGTH"[..], &b"0"[..]);
        let rest = PARAMETER_BYTES - (14 + 1 + 2) - (1 + 2);
        let value = vec![b'x'; rest + 1];
        let sent = asked(&[length, (b"A", &value[..rest])]).expect("they fit");
        assert!(sent.starts_with(b"65536:"));
        assert_eq!(sent.len(), PARAMETER_BYTES + 7);
        let refused = asked(&[length, (b"A", &value)]);
        assert_eq!(refused, Err(SendError::ParametersTooLarge));
    }
}
