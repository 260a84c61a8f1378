//! The PROXY protocol, versions 1 and 2: a header about the client, sent by a proxy before the client's first byte.
//!
//! [`parse`] takes the first bytes of a connection and returns the length of the header. It is pure and has no
//! state: pass all received bytes, and again with more if it needs more.
//!
//! Absent: writing a header, and the checksum of version 2 (nginx does not check it either).
//!
//! Source: "The PROXY protocol", revision 2020/03/05, sections 2.1 and 2.2.

use core::net::{IpAddr, SocketAddr};
use std::fmt;

use crate::http::parse_decimal;

/// Header of a proxy about a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Address and port of the client.
    pub source: SocketAddr,
    /// Address and port that the client connected to.
    pub destination: SocketAddr,
    /// The type-length-value fields of version 2, verbatim.
    tlvs: Box<[u8]>,
}

/// A header that was read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Bytes of the header; the client's first byte follows.
    pub used: usize,
    /// Addresses; `None` if the proxy sends none (`UNKNOWN`, `LOCAL`, other families).
    pub header: Option<Header>,
}

/// How a header breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It has neither version, or is a malformed line of version 1.
    Broken,
    /// The signature of version 2 with another version.
    UnknownVersion(u8),
    /// It would be longer than [`MAX_BYTES`].
    TooLarge,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken => f.write_str("broken header"),
            Self::UnknownVersion(version) => {
                write!(f, "unknown PROXY protocol version: {version}")
            }
            Self::TooLarge => f.write_str("header is too large"),
        }
    }
}

/// Reads the header at the beginning of `input`; `None` while more bytes are needed.
///
/// # Errors
/// The bytes cannot be the beginning of a header.
pub fn parse(input: &[u8]) -> Result<Option<Parsed>, Fault> {
    if begins(input, SIGNATURE) {
        return parse_v2(input);
    }
    if begins(input, b"PROXY ") {
        return parse_v1(input);
    }
    Err(Fault::Broken)
}

/// Whether `input` begins with `start`, or is too short to tell.
fn begins(input: &[u8], start: &[u8]) -> bool {
    let n = input.len().min(start.len());
    input[..n] == start[..n]
}

/// `PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n`
fn parse_v1(input: &[u8]) -> Result<Option<Parsed>, Fault> {
    let line = &input[..input.len().min(MAX_V1_BYTES)];
    let Some(end) = memchr::memchr(b'\n', line) else {
        return if input.len() < MAX_V1_BYTES {
            Ok(None)
        } else {
            Err(Fault::Broken)
        };
    };
    let text = line[..end].strip_suffix(b"\r").ok_or(Fault::Broken)?;
    let text = text.strip_prefix(b"PROXY ").ok_or(Fault::Broken)?;
    let header = if text == b"UNKNOWN" || text.starts_with(b"UNKNOWN ") {
        None
    } else {
        Some(line_header(text).ok_or(Fault::Broken)?)
    };
    let used = end + 1;
    Ok(Some(Parsed { used, header }))
}

fn line_header(text: &[u8]) -> Option<Header> {
    let text = std::str::from_utf8(text).ok()?;
    let mut words = text.split(' ');
    if !matches!(words.next()?, "TCP4" | "TCP6") {
        return None;
    }
    // Either family under either name, as in nginx: some proxies that listen on both mix them.
    let mut address = || words.next()?.parse::<IpAddr>().ok();
    let (source, destination) = (address()?, address()?);
    let (source_port, destination_port) = (port(words.next()?)?, port(words.next()?)?);
    words.next().is_none().then(|| Header {
        source: SocketAddr::new(source, source_port),
        destination: SocketAddr::new(destination, destination_port),
        tlvs: Box::default(),
    })
}

/// A port in decimal digits.
fn port(word: &str) -> Option<u16> {
    parse_decimal(word.as_bytes())
}

fn parse_v2(input: &[u8]) -> Result<Option<Parsed>, Fault> {
    let Some((start, rest)) = input.split_at_checked(V2_START_BYTES) else {
        return Ok(None);
    };
    let version = start[12] >> 4;
    if version != 2 {
        return Err(Fault::UnknownVersion(version));
    }
    let len = usize::from(u16::from_be_bytes([start[14], start[15]]));
    let used = V2_START_BYTES + len;
    if used > MAX_BYTES {
        return Err(Fault::TooLarge);
    }
    let Some(body) = rest.get(..len) else {
        return Ok(None);
    };
    let header = match (start[12] & 0xf, start[13]) {
        (COMMAND_PROXY, FAMILY_TCP4) => Some(v2_header::<4>(body)?),
        (COMMAND_PROXY, FAMILY_TCP6) => Some(v2_header::<16>(body)?),
        _ => None,
    };
    Ok(Some(Parsed { used, header }))
}

/// Both addresses of `N` bytes, both ports, then fields.
fn v2_header<const N: usize>(body: &[u8]) -> Result<Header, Fault>
where
    IpAddr: From<[u8; N]>,
{
    let (source, rest) = body.split_first_chunk::<N>().ok_or(Fault::Broken)?;
    let (destination, rest) = rest.split_first_chunk::<N>().ok_or(Fault::Broken)?;
    let (ports, tlvs) = rest.split_first_chunk::<4>().ok_or(Fault::Broken)?;
    let port = |n: usize| u16::from_be_bytes([ports[n], ports[n + 1]]);
    Ok(Header {
        source: SocketAddr::new(IpAddr::from(*source), port(0)),
        destination: SocketAddr::new(IpAddr::from(*destination), port(2)),
        tlvs: tlvs.into(),
    })
}

/// Reason why a field has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlvError {
    /// There is no such field, or it follows a broken one.
    Absent,
    /// The fields are cut off.
    Broken,
    /// There is no field of this name.
    UnknownName,
}

impl Header {
    /// Returns a TLV by its name in nginx's `$proxy_protocol_tlv_`: `alpn`, `ssl_cn`, `0xEA`, `ssl_0x21`.
    /// `ssl_verify` is a number in decimal digits; other fields are returned verbatim.
    ///
    /// # Errors
    /// There is no value.
    pub fn tlv(&self, name: &[u8]) -> Result<Vec<u8>, TlvError> {
        let Some(name) = name.strip_prefix(b"ssl_") else {
            let kind = kind_of(name, NAMES)?;
            return find(&self.tlvs, kind).map(<[u8]>::to_vec);
        };
        let ssl = find(&self.tlvs, TLV_SSL)?;
        let (start, inner) = ssl.split_first_chunk::<5>().ok_or(TlvError::Broken)?;
        if name == b"verify" {
            let verify = u32::from_be_bytes([start[1], start[2], start[3], start[4]]);
            return Ok(verify.to_string().into_bytes());
        }
        find(inner, kind_of(name, SSL_NAMES)?).map(<[u8]>::to_vec)
    }
}

/// The type of a field by its name, or by `0x` and its number.
fn kind_of(name: &[u8], names: &[(&str, u8)]) -> Result<u8, TlvError> {
    if let Some(digits) = name.strip_prefix(b"0x") {
        let hex = digits.iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(digits).ok().filter(|_| hex);
        let kind = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let kind = kind.ok_or(TlvError::UnknownName)?;
        return u8::try_from(kind).map_err(|_| TlvError::Absent);
    }
    names
        .iter()
        .find(|(known, _)| known.as_bytes() == name)
        .map(|(_, kind)| *kind)
        .ok_or(TlvError::UnknownName)
}

/// The first field of a type.
fn find(mut tlvs: &[u8], kind: u8) -> Result<&[u8], TlvError> {
    while !tlvs.is_empty() {
        let (start, rest) = tlvs.split_first_chunk::<3>().ok_or(TlvError::Broken)?;
        let len = usize::from(u16::from_be_bytes([start[1], start[2]]));
        let (value, rest) = rest.split_at_checked(len).ok_or(TlvError::Broken)?;
        if start[0] == kind {
            return Ok(value);
        }
        tlvs = rest;
    }
    Err(TlvError::Absent)
}

/// Longest header, as in nginx; of version 2 the length field would allow 65551.
pub const MAX_BYTES: usize = 4096;
/// Longest line of version 1, its end included.
pub const MAX_V1_BYTES: usize = 107;

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family, length.
const V2_START_BYTES: usize = 16;
const COMMAND_PROXY: u8 = 1;
/// AF_INET and STREAM.
const FAMILY_TCP4: u8 = 0x11;
/// AF_INET6 and STREAM.
const FAMILY_TCP6: u8 = 0x21;
const TLV_SSL: u8 = 0x20;
const NAMES: &[(&str, u8)] = &[
    ("alpn", 0x01),
    ("authority", 0x02),
    ("unique_id", 0x05),
    ("ssl", TLV_SSL),
    ("netns", 0x30),
];
const SSL_NAMES: &[(&str, u8)] = &[
    ("version", 0x21),
    ("cn", 0x22),
    ("cipher", 0x23),
    ("sig_alg", 0x24),
    ("key_alg", 0x25),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn v2(version_command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let mut out = SIGNATURE.to_vec();
        out.extend([version_command, family]);
        out.extend((body.len() as u16).to_be_bytes());
        out.extend(body);
        out
    }

    fn tlv(kind: u8, value: &[u8]) -> Vec<u8> {
        let mut out = vec![kind];
        out.extend((value.len() as u16).to_be_bytes());
        out.extend(value);
        out
    }

    const ADDRESSES: [u8; 12] = [192, 0, 2, 1, 192, 0, 2, 2, 0, 123, 22, 46];

    fn header(input: &[u8]) -> Header {
        let parsed = parse(input).expect("valid").expect("whole");
        assert_eq!(parsed.used, input.len());
        parsed.header.expect("addresses")
    }

    #[test]
    fn version_1_names_both_ends() {
        let four = header(b"PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n");
        assert_eq!(four.source.to_string(), "192.0.2.1:123");
        assert_eq!(four.destination.to_string(), "192.0.2.2:5678");
        let six = header(b"PROXY TCP6 2001:Db8::1 2001:Db8::2 123 5678\r\n");
        assert_eq!(six.source.to_string(), "[2001:db8::1]:123");
        let mixed = header(b"PROXY TCP6 192.0.2.1 2001:db8::2 0 00080\r\n");
        assert_eq!(mixed.source.to_string(), "192.0.2.1:0");
        assert_eq!(mixed.destination.to_string(), "[2001:db8::2]:80");
        for unknown in ["PROXY UNKNOWN\r\n", "PROXY UNKNOWN 1 2 3 4 5 6\r\n"] {
            let parsed = parse(unknown.as_bytes()).expect("valid").expect("whole");
            assert_eq!((parsed.used, parsed.header), (unknown.len(), None));
        }
    }

    #[test]
    fn what_follows_the_header_is_the_clients() {
        let input = b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.0\r\n";
        let parsed = parse(input).expect("valid").expect("whole");
        assert_eq!(&input[parsed.used..], b"GET / HTTP/1.0\r\n");
    }

    #[test]
    fn every_prefix_of_a_header_asks_for_more() {
        let mut v2_tlv = ADDRESSES.to_vec();
        v2_tlv.extend(tlv(1, b"h2"));
        for input in [
            b"PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n".to_vec(),
            b"PROXY UNKNOWN\r\n".to_vec(),
            v2(0x21, 0x11, &v2_tlv),
        ] {
            for end in 0..input.len() {
                assert_eq!(parse(&input[..end]), Ok(None), "{end}");
            }
            assert!(matches!(parse(&input), Ok(Some(_))));
        }
    }

    #[test]
    fn lines_that_are_no_header_are_broken() {
        for wrong in [
            "GET / HTTP/1.0\r\n",
            "PROXY\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 123\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 123 5678 9\r\n",
            "PROXY TCP4 192.0.2.1  192.0.2.2 123 5678\r\n",
            "PROXY TCP4 999.1.1.1 192.0.2.2 123 5678\r\n",
            "PROXY TCP4 192.0.2 192.0.2.2 123 5678\r\n",
            "PROXY TCP6 2001:db8:: abcd 123 5678\r\n",
            "PROXY TCP4 host 192.0.2.2 123 5678\r\n",
            "PROXY TCP5 192.0.2.1 192.0.2.2 123 5678\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 65536 5678\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 +1 5678\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 -1 5678\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2  5678\r\n",
            "PROXY UNKNOWNX\r\n",
            "\r\n\r\n\0\r\nQUIX\n",
        ] {
            assert_eq!(parse(wrong.as_bytes()), Err(Fault::Broken), "{wrong:?}");
        }
    }

    #[test]
    fn line_of_version_1_is_limited() {
        let line = |len: usize| {
            let mut line = b"PROXY UNKNOWN ".to_vec();
            line.resize(len - 2, b'x');
            line.extend(b"\r\n");
            line
        };
        assert!(matches!(parse(&line(MAX_V1_BYTES)), Ok(Some(_))));
        assert_eq!(parse(&line(MAX_V1_BYTES + 1)), Err(Fault::Broken));
    }

    #[test]
    fn version_2_names_both_ends() {
        let four = header(&v2(0x21, 0x11, &ADDRESSES));
        assert_eq!(four.source.to_string(), "192.0.2.1:123");
        assert_eq!(four.destination.to_string(), "192.0.2.2:5678");
        let mut body = [0; 36];
        (body[0], body[15], body[31], body[33]) = (0x20, 1, 2, 7);
        assert_eq!(
            header(&v2(0x21, 0x21, &body)).source.to_string(),
            "[2000::1]:7"
        );
    }

    #[test]
    fn version_2_without_addresses_says_nothing() {
        for input in [
            v2(0x20, 0x11, &ADDRESSES),
            v2(0x21, 0x00, b""),
            v2(0x21, 0x12, &ADDRESSES),
            v2(0x21, 0x31, b"path"),
        ] {
            let parsed = parse(&input).expect("valid").expect("whole");
            assert_eq!((parsed.used, parsed.header), (input.len(), None));
        }
    }

    #[test]
    fn version_2_is_refused_where_it_cannot_be_read() {
        assert_eq!(
            parse(&v2(0x31, 0x11, &ADDRESSES)),
            Err(Fault::UnknownVersion(3))
        );
        assert_eq!(parse(&v2(0x21, 0x11, &ADDRESSES[..11])), Err(Fault::Broken));
        let body = vec![0; MAX_BYTES - V2_START_BYTES + 1];
        assert!(matches!(parse(&v2(0x21, 0, &body[1..])), Ok(Some(_))));
        assert_eq!(parse(&v2(0x21, 0, &body)), Err(Fault::TooLarge));
    }

    #[test]
    fn fields_are_found_by_name_and_number() {
        let mut ssl = vec![1, 0, 0, 0, 255];
        ssl.extend(tlv(0x22, b"example.com"));
        let mut body = ADDRESSES.to_vec();
        body.extend(tlv(1, b"h2"));
        body.extend(tlv(0x20, &ssl));
        body.extend(tlv(0xae, b"12345"));
        let header = header(&v2(0x21, 0x11, &body));
        assert_eq!(header.tlv(b"alpn").as_deref(), Ok(&b"h2"[..]));
        assert_eq!(header.tlv(b"0x01").as_deref(), Ok(&b"h2"[..]));
        assert_eq!(header.tlv(b"0x000ae").as_deref(), Ok(&b"12345"[..]));
        assert_eq!(header.tlv(b"ssl_cn").as_deref(), Ok(&b"example.com"[..]));
        assert_eq!(header.tlv(b"ssl_0x22").as_deref(), Ok(&b"example.com"[..]));
        assert_eq!(header.tlv(b"ssl_verify").as_deref(), Ok(&b"255"[..]));
        assert_eq!(header.tlv(b"ssl"), Ok(ssl));
        assert_eq!(header.tlv(b"0x0f"), Err(TlvError::Absent));
        assert_eq!(header.tlv(b"0x1ff"), Err(TlvError::Absent));
        assert_eq!(header.tlv(b"nothing"), Err(TlvError::UnknownName));
        assert_eq!(header.tlv(b"0xzz"), Err(TlvError::UnknownName));
        assert_eq!(header.tlv(b"0x+1"), Err(TlvError::UnknownName));
    }

    #[test]
    fn fields_cut_off_are_broken() {
        let mut body = ADDRESSES.to_vec();
        body.extend([1, 0, 3, b'h', b'2']);
        assert_eq!(
            header(&v2(0x21, 0x11, &body)).tlv(b"alpn"),
            Err(TlvError::Broken)
        );
        body.truncate(body.len() - 4);
        assert_eq!(
            header(&v2(0x21, 0x11, &body)).tlv(b"alpn"),
            Err(TlvError::Broken)
        );
    }
}
