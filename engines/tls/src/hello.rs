//! ClientHello, parsed before the handshake begins.
//!
//! Reads only the parts needed by variables and by the choice of a configuration: the name, the application
//! protocols, the client's abilities. Malformed input is left to rustls, which sends the right alert; so this
//! parser never refuses, it only finds nothing.
//!
//! A ClientHello may come in records of one byte, and these in reads of their own. Each byte is read once, however
//! it is cut. Only the message is stored, [`HELLO_BYTES`] at most and one record, without the heads of its records.
//! rustls gets it in records of usual length ([`Reader::unread`]).
//!
//! Source: RFC 8446 sections 4.1.2 and 5.1, RFC 6066 section 3, RFC 7301 section 3.1.

use std::sync::Arc;

/// Contents of a ClientHello.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The name of the server, in lower case.
    pub server_name: Option<Vec<u8>>,
    /// Application protocols, in the client's order.
    pub alpn: Vec<Vec<u8>>,
    /// Its other offers.
    pub offered: Arc<Offered>,
}

/// Capabilities of a client, as the numbers of RFC 8446, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// Cipher suites.
    pub ciphers: Vec<u16>,
    /// Groups of key exchange.
    pub groups: Vec<u16>,
    /// Signature schemes.
    pub schemes: Vec<u16>,
}

/// Parsed first bytes of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The beginning of a ClientHello.
    More,
    /// A whole one.
    Hello(Hello),
    /// No TLS, or an unreadable ClientHello.
    Odd,
}

/// Reads the first bytes of a connection, all of them at once.
#[must_use]
pub fn parse(input: &[u8]) -> Parsed {
    Reader::default().read(input).0
}

/// Reads the first bytes of a connection, in any pieces.
#[derive(Debug, Default)]
pub struct Reader {
    /// The handshake messages so far, without the heads of their records.
    message: Vec<u8>,
    /// The beginning of the head of the next record, if it is incomplete or malformed.
    head: Vec<u8>,
    /// The version in the last record, and the number of its outstanding bytes.
    version: [u8; 2],
    left: usize,
}

impl Reader {
    /// Takes bytes; after [`Parsed::More`] further bytes may follow. Returns the unread ones behind the end.
    pub fn read<'i>(&mut self, input: &'i [u8]) -> (Parsed, &'i [u8]) {
        let mut rest = input;
        loop {
            if self.left == 0 {
                let wanted = RECORD_HEAD_BYTES.saturating_sub(self.head.len());
                let (part, after) = rest.split_at(wanted.min(rest.len()));
                self.head.extend_from_slice(part);
                rest = after;
                match self.begin_record() {
                    Message::Whole(()) => {}
                    Message::More => return (Parsed::More, rest),
                    Message::Odd => return (Parsed::Odd, rest),
                }
            }
            let (part, after) = rest.split_at(self.left.min(rest.len()));
            self.message.extend_from_slice(part);
            self.left -= part.len();
            rest = after;
            match whole_message(&self.message) {
                Message::Whole(body) => {
                    return (hello(body).map_or(Parsed::Odd, Parsed::Hello), rest);
                }
                Message::More if rest.is_empty() => return (Parsed::More, rest),
                Message::More => {}
                Message::Odd => return (Parsed::Odd, rest),
            }
        }
    }

    /// Takes the head of a record, if it is complete.
    fn begin_record(&mut self) -> Message<()> {
        let &[kind, major, minor, high, low] = self.head.as_slice() else {
            return match self.head.first() {
                None | Some(&HANDSHAKE) => Message::More,
                Some(_) => Message::Odd,
            };
        };
        let len = usize::from(u16::from_be_bytes([high, low]));
        if kind != HANDSHAKE || major != 3 || len == 0 || len > RECORD_BYTES {
            return Message::Odd;
        }
        self.head.clear();
        (self.version, self.left) = ([major, minor], len);
        Message::Whole(())
    }

    /// All received bytes, followed by `rest`: messages in as few records as possible, everything else unchanged.
    #[must_use]
    pub fn unread(self, rest: &[u8]) -> Vec<u8> {
        let [major, minor] = self.version;
        let head = |len: usize| {
            let [high, low] = (len as u16).to_be_bytes();
            [HANDSHAKE, major, minor, high, low]
        };
        let records = self.message.len().div_ceil(PLAIN_BYTES) + 2;
        let bytes = self.message.len() + records * RECORD_HEAD_BYTES + rest.len();
        let mut all = Vec::with_capacity(bytes);
        for part in self.message.chunks(PLAIN_BYTES) {
            all.extend_from_slice(&head(part.len()));
            all.extend_from_slice(part);
        }
        if self.left > 0 {
            all.extend_from_slice(&head(self.left));
        }
        all.extend_from_slice(&self.head);
        all.extend_from_slice(rest);
        all
    }
}

enum Message<T> {
    More,
    Whole(T),
    Odd,
}

fn whole_message(message: &[u8]) -> Message<&[u8]> {
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

/// Reads the body of a ClientHello; `None` if it is truncated.
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

/// The two-byte numbers in a list.
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
/// Largest record (RFC 8446 section 5.1), with the expansion of TLS 1.2.
const RECORD_BYTES: usize = (1 << 14) + 2048;
/// Bytes of its head, and of plaintext at most.
const RECORD_HEAD_BYTES: usize = 5;
const PLAIN_BYTES: usize = 1 << 14;
/// Largest accepted ClientHello, also rustls's limit. A record has at least one byte, so this limits the number of
/// records, too.
const HELLO_BYTES: usize = 0xffff;

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

    /// The message with a body of this many bytes, filled by an unknown extension.
    fn long(body: usize) -> Vec<u8> {
        let mut extensions = Vec::new();
        let mut room = body - 43;
        while room > 0 {
            let len = room.min(40_000).saturating_sub(4);
            extensions.extend(extension(0xff00, &vec![7; len]));
            room -= len + 4;
        }
        let mut message = message(&extensions);
        message.truncate(4);
        message.extend([3, 3]);
        message.extend([7; 32]);
        message.extend([0, 0, 2, 0x13, 1, 1, 0]);
        message.extend(list(&extensions));
        let len = (message.len() - 4) as u32;
        message[1..4].copy_from_slice(&len.to_be_bytes()[1..]);
        message
    }

    #[test]
    fn reads_cut_anywhere_find_the_same_and_leave_the_same() {
        let whole = sample();
        let mut stream = records(&whole, 7);
        stream.extend(b"behind it");
        for cut in 0..stream.len() {
            let mut reader = Reader::default();
            let mut parsed = reader.read(&stream[..cut]);
            let mut seen = &stream[..cut];
            if parsed.0 == Parsed::More {
                assert!(parsed.1.is_empty());
                parsed = reader.read(&stream[cut..]);
                seen = &stream;
            }
            let (found, rest) = parsed;
            assert_eq!(found, parse(seen), "{cut}");
            assert!(matches!(found, Parsed::Hello(_)), "{cut}");
            let left = reader.unread(rest);
            let read = seen.len() - rest.len();
            assert_eq!(
                left,
                [&records(&whole, 1000), &seen[read..]].concat(),
                "{cut}"
            );
        }
    }

    #[test]
    fn a_byte_is_read_once_however_it_comes() {
        for body in [1000, HELLO_BYTES] {
            let message = long(body);
            let (mut reader, mut calls) = (Reader::default(), 0);
            for byte in records(&message, 1) {
                let before = reader.message.len() + reader.head.len();
                calls += 1;
                let byte = [byte];
                let (parsed, rest) = reader.read(&byte);
                assert!(rest.is_empty() && before <= message.len() + RECORD_HEAD_BYTES);
                assert_eq!(parsed == Parsed::More, calls < message.len() * 6, "{calls}");
            }
            assert_eq!(reader.message, message);
            assert!(reader.unread(b"").len() <= message.len() + 5 * RECORD_HEAD_BYTES);
        }
    }

    #[test]
    fn hello_has_a_largest_length() {
        for (body, whole) in [
            (HELLO_BYTES - 1, true),
            (HELLO_BYTES, true),
            (HELLO_BYTES + 1, false),
        ] {
            let message = long(body);
            assert_eq!(message.len(), body + 4);
            for len in [1, 16_384] {
                let parsed = parse(&records(&message, len));
                assert_eq!(matches!(parsed, Parsed::Hello(_)), whole, "{body}");
            }
            // It is refused by its length, before its body arrives.
            let (parsed, _) = Reader::default().read(&records(&message[..4], 1));
            assert_eq!(parsed == Parsed::More, whole, "{body}");
        }
    }

    #[test]
    fn what_is_odd_is_left_as_it_came() {
        let message = sample();
        let begin = records(&message[..40], 10);
        for odd in [&b"GET /"[..], &[21, 3, 1, 0, 2, 1, 0], &[22, 3, 1, 0, 0, 5]] {
            let mut reader = Reader::default();
            let (parsed, rest) = reader.read(odd);
            assert_eq!(parsed, Parsed::Odd);
            assert_eq!(reader.unread(rest), odd);
            let mut reader = Reader::default();
            let input = [&begin[..], odd].concat();
            let (parsed, rest) = reader.read(&input);
            assert_eq!(parsed, Parsed::Odd);
            let expected = [&records(&message[..40], 100), odd].concat();
            assert_eq!(reader.unread(rest), expected);
        }
        // A partly received record.
        let mut reader = Reader::default();
        let mut longer = records(&[&message[..], b"next"].concat(), 1000);
        longer.truncate(longer.len() - 2);
        let (parsed, rest) = reader.read(&longer);
        assert!(matches!(parsed, Parsed::Hello(_)));
        let left = reader.unread(rest);
        assert_eq!(left[5..], [&message[..], b"ne", &[22, 3, 1, 0, 2]].concat());
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
        // An extension longer than the list.
        let broken = message(&[0, 0, 0, 9, 0]);
        assert_eq!(parse(&records(&broken, 100)), Parsed::Odd);
    }
}
