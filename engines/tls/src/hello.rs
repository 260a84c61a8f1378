//! What a ClientHello asks for, read before the handshake begins.
//!
//! Only what the choice of a configuration and the variables need is read: the name, the application protocols, what
//! the client can do. Whatever cannot be read is left to rustls, which sends the right alert; so this parser never
//! refuses, it only finds nothing.
//!
//! Source: RFC 8446 sections 4.1.2 and 5.1, RFC 6066 section 3, RFC 7301 section 3.1.

use std::sync::Arc;

/// What a ClientHello asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The name of the server, in lower case.
    pub server_name: Option<Vec<u8>>,
    /// Application protocols, in the client's order.
    pub alpn: Vec<Vec<u8>>,
    /// What it offers besides.
    pub offered: Arc<Offered>,
}

/// What a client can do, as the numbers of RFC 8446, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// Cipher suites.
    pub ciphers: Vec<u16>,
    /// Groups of key exchange.
    pub groups: Vec<u16>,
    /// Signature schemes.
    pub schemes: Vec<u16>,
}

/// What the first bytes of a connection are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The beginning of a ClientHello.
    More,
    /// A whole one.
    Hello(Hello),
    /// No TLS, or a ClientHello that cannot be read.
    Odd,
}

/// Reads the first bytes of a connection.
#[must_use]
pub fn parse(input: &[u8]) -> Parsed {
    let mut message = Vec::new();
    let mut rest = input;
    loop {
        let Some((head, after)) = rest.split_first_chunk::<5>() else {
            return if rest.first().is_none_or(|kind| *kind == HANDSHAKE) {
                Parsed::More
            } else {
                Parsed::Odd
            };
        };
        let len = usize::from(u16::from_be_bytes([head[3], head[4]]));
        if head[0] != HANDSHAKE || head[1] != 3 || len == 0 || len > RECORD_BYTES {
            return Parsed::Odd;
        }
        let n = len.min(after.len());
        message.extend_from_slice(&after[..n]);
        match whole_message(&message) {
            Message::Whole(body) => {
                return hello(body).map_or(Parsed::Odd, Parsed::Hello);
            }
            Message::More if n < len => return Parsed::More,
            Message::More => rest = &after[len..],
            Message::Odd => return Parsed::Odd,
        }
    }
}

enum Message<'a> {
    More,
    Whole(&'a [u8]),
    Odd,
}

fn whole_message(message: &[u8]) -> Message<'_> {
    let Some((head, body)) = message.split_first_chunk::<4>() else {
        return if message.first().is_none_or(|kind| *kind == CLIENT_HELLO) {
            Message::More
        } else {
            Message::Odd
        };
    };
    let len = u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize;
    if head[0] != CLIENT_HELLO || len > HELLO_BYTES {
        return Message::Odd;
    }
    match body.get(..len) {
        Some(body) => Message::Whole(body),
        None => Message::More,
    }
}

/// Reads the body of a ClientHello; `None` where it breaks off.
fn hello(body: &[u8]) -> Option<Hello> {
    let mut input = Input(body);
    // Version and random.
    input.take(2 + 32)?;
    input.short_list()?;
    let mut found = Hello::default();
    let mut offered = Offered {
        ciphers: numbers(input.list()?),
        ..Offered::default()
    };
    input.short_list()?;
    if input.0.is_empty() {
        found.offered = Arc::new(offered);
        return Some(found);
    }
    let mut extensions = Input(input.list()?);
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let mut data = Input(extensions.list()?);
        match kind {
            SERVER_NAME => {
                let mut names = Input(data.list()?);
                while !names.0.is_empty() {
                    let host = names.take(1)? == [HOST_NAME];
                    let name = names.list()?;
                    if host && found.server_name.is_none() {
                        found.server_name = Some(name.to_ascii_lowercase());
                    }
                }
            }
            ALPN => {
                let mut names = Input(data.list()?);
                while !names.0.is_empty() {
                    found.alpn.push(names.short_list()?.to_vec());
                }
            }
            GROUPS => offered.groups = numbers(data.list()?),
            SCHEMES => offered.schemes = numbers(data.list()?),
            _ => {}
        }
    }
    found.offered = Arc::new(offered);
    Some(found)
}

/// The numbers of two bytes that are in a list.
fn numbers(list: &[u8]) -> Vec<u16> {
    list.chunks_exact(2)
        .map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
        .collect()
}

/// Bytes that are left to read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(front)
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2)
            .map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Bytes after their number, of two bytes.
    fn list(&mut self) -> Option<&'a [u8]> {
        let len = self.number()?;
        self.take(usize::from(len))
    }

    /// Bytes after their number, of one byte.
    fn short_list(&mut self) -> Option<&'a [u8]> {
        let len = *self.take(1)?.first()?;
        self.take(usize::from(len))
    }
}

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;
const GROUPS: u16 = 10;
const SCHEMES: u16 = 13;
const ALPN: u16 = 16;
/// Largest record (RFC 8446 section 5.1), with what TLS 1.2 adds.
const RECORD_BYTES: usize = (1 << 14) + 2048;
/// Largest ClientHello that is read.
const HELLO_BYTES: usize = 32 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn list(bytes: &[u8]) -> Vec<u8> {
        let mut out = (bytes.len() as u16).to_be_bytes().to_vec();
        out.extend(bytes);
        out
    }

    fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
        let mut out = kind.to_be_bytes().to_vec();
        out.extend(list(data));
        out
    }

    fn message(extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        body.extend(list(extensions));
        let mut out = vec![1, 0];
        out.extend((body.len() as u16).to_be_bytes());
        out.extend(body);
        out
    }

    /// The message in records of at most `len` bytes.
    fn records(message: &[u8], len: usize) -> Vec<u8> {
        message
            .chunks(len)
            .flat_map(|part| [&[22, 3, 1][..], &list(part)].concat())
            .collect()
    }

    fn sample() -> Vec<u8> {
        let mut name = vec![0];
        name.extend(list(b"WWW.Example.org"));
        let mut extensions = extension(10, &[0, 2, 0, 29]);
        extensions.extend(extension(13, &[0, 4, 4, 3, 8, 4]));
        extensions.extend(extension(0, &list(&name)));
        extensions.extend(extension(16, &list(b"\x02h2\x08http/1.1")));
        message(&extensions)
    }

    #[test]
    fn name_and_protocols_are_found_in_any_number_of_records() {
        let expected = Hello {
            server_name: Some(b"www.example.org".to_vec()),
            alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            offered: Arc::new(Offered {
                ciphers: vec![0x1301],
                groups: vec![29],
                schemes: vec![0x0403, 0x0804],
            }),
        };
        let message = sample();
        for len in 1..=message.len() {
            let records = records(&message, len);
            assert_eq!(parse(&records), Parsed::Hello(expected.clone()), "{len}");
        }
        let whole = records(&message, 1000);
        for end in 0..whole.len() {
            assert_eq!(parse(&whole[..end]), Parsed::More, "{end}");
        }
    }

    #[test]
    fn hello_without_extensions_asks_for_nothing() {
        let Parsed::Hello(hello) = parse(&records(&message(b""), 100)) else {
            panic!("it is one");
        };
        assert_eq!((hello.server_name, hello.alpn.len()), (None, 0));
        assert_eq!(hello.offered.ciphers, [0x1301]);
    }

    #[test]
    fn what_is_no_hello_is_odd() {
        for odd in [
            &b"GET / HTTP/1.1\r\n"[..],
            &[21, 3, 1, 0, 2, 1, 0],
            &[22, 2, 1, 0, 5],
            &[22, 3, 1, 0, 0],
            &[22, 3, 1, 0xff, 0xff],
            &[22, 3, 1, 0, 4, 2, 0, 0, 0],
            &[22, 3, 1, 0, 4, 1, 1, 0, 0],
        ] {
            assert_eq!(parse(odd), Parsed::Odd, "{odd:?}");
        }
        // An extension that is longer than the list.
        let broken = message(&[0, 0, 0, 9, 0]);
        assert_eq!(parse(&records(&broken, 100)), Parsed::Odd);
    }
}
