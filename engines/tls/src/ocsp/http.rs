//! OCSP over HTTP: a GET with the question in its target, and the response as far as OCSP needs it.
//!
//! The request is of HTTP/1.0, as nginx's is, so that a body has no coding and ends where its length or the connection
//! does. Absent: redirects, which are a status like others; POST, since a question about one certificate is short;
//! codings.
//!
//! Source: RFC 6960 appendix A; RFC 9112 sections 4 to 6.

use std::fmt;

/// The request: a question, DER, in base64 behind `path`, to `host`, which may have a port.
#[must_use]
pub fn get(host: &str, path: &str, question: &[u8]) -> Vec<u8> {
    let mut bytes = b"GET ".to_vec();
    bytes.extend_from_slice(path.as_bytes());
    if !path.ends_with('/') {
        bytes.push(b'/');
    }
    for group in question.chunks(3) {
        let part = |n: usize| u32::from(group.get(n).copied().unwrap_or(0));
        let bits = part(0) << 16 | part(1) << 8 | part(2);
        for n in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * n) & 63) as usize];
            match digit {
                // The rest of the last group.
                _ if n > group.len() => bytes.extend_from_slice(b"%3D"),
                b'+' => bytes.extend_from_slice(b"%2B"),
                b'/' => bytes.extend_from_slice(b"%2F"),
                _ => bytes.push(digit),
            }
        }
    }
    bytes.extend_from_slice(b" HTTP/1.0\r\nHost: ");
    bytes.extend_from_slice(host.as_bytes());
    bytes.extend_from_slice(b"\r\n\r\n");
    bytes
}

/// Why bytes are no response that has an answer in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpFault {
    /// They are no HTTP, or what no HTTP/1.0 has.
    Invalid,
    /// The body is of another type.
    ContentType(String),
    /// The status is another than 200.
    Status(u16),
    /// There are more than [`RESPONSE_BYTES_MAX`].
    TooLong,
    /// They end too early.
    Short,
}

impl fmt::Display for HttpFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid => f.write_str("OCSP responder sent invalid response"),
            Self::ContentType(value) => {
                let text = "OCSP responder sent invalid \"Content-Type\" header";
                write!(f, "{text}: \"{}\"", value.escape_debug())
            }
            Self::Status(status) => write!(f, "OCSP responder sent status {status}"),
            Self::TooLong => {
                write!(
                    f,
                    "OCSP responder sent more than {RESPONSE_BYTES_MAX} bytes"
                )
            }
            Self::Short => f.write_str("OCSP responder prematurely closed connection"),
        }
    }
}

impl std::error::Error for HttpFault {}

/// A response while it comes.
#[derive(Debug, Default)]
pub struct Received {
    bytes: Vec<u8>,
    head: Option<Head>,
}

/// What its head says.
#[derive(Clone, Copy, Debug)]
struct Head {
    bytes: usize,
    /// The length of the body; `None` if it goes on until the connection ends.
    body_bytes: Option<usize>,
}

impl Received {
    /// Takes what has come; true when it is whole. What comes behind a body with a length is left out.
    ///
    /// # Errors
    /// Why it will never be a response.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<bool, HttpFault> {
        // An end of the head may begin in what came before.
        let looked_at = self.bytes.len().saturating_sub(HEAD_END_BYTES_MAX - 1);
        self.bytes.extend_from_slice(bytes);
        if self.head.is_none() {
            let start = self.bytes.len().min(START.len());
            if self.bytes[..start] != START[..start] {
                return Err(HttpFault::Invalid);
            }
            self.head = match head_end(&self.bytes[looked_at..]) {
                Some(end) => Some(Head::parse(&self.bytes[..looked_at + end])?),
                None => None,
            };
        }
        match self.head {
            Some(Head {
                bytes,
                body_bytes: Some(length),
            }) if self.bytes.len() - bytes >= length => {
                self.bytes.truncate(bytes + length);
                Ok(true)
            }
            _ if self.bytes.len() > RESPONSE_BYTES_MAX => Err(HttpFault::TooLong),
            _ => Ok(false),
        }
    }

    /// The connection has ended.
    ///
    /// # Errors
    /// The response was not whole.
    pub fn end(&self) -> Result<(), HttpFault> {
        match self.head {
            Some(Head {
                body_bytes: None, ..
            }) => Ok(()),
            _ => Err(HttpFault::Short),
        }
    }

    /// The body, as far as it has come.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.head.map_or(&[], |head| &self.bytes[head.bytes..])
    }
}

impl Head {
    /// Reads a head with the empty line that ends it.
    fn parse(bytes: &[u8]) -> Result<Self, HttpFault> {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let mut lines = lines
            .by_ref()
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let status = lines.next().and_then(status).ok_or(HttpFault::Invalid)?;
        if status != 200 {
            return Err(HttpFault::Status(status));
        }
        let mut body_bytes = None;
        for line in lines.take_while(|line| !line.is_empty()) {
            let colon = line.iter().position(|byte| *byte == b':');
            let (name, value) = line.split_at(colon.ok_or(HttpFault::Invalid)?);
            if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
                return Err(HttpFault::Invalid);
            }
            let value = value[1..].trim_ascii();
            if name.eq_ignore_ascii_case(b"content-type") && !value.eq_ignore_ascii_case(TYPE) {
                let value = String::from_utf8_lossy(value).into_owned();
                return Err(HttpFault::ContentType(value));
            }
            if name.eq_ignore_ascii_case(b"content-length") {
                let length = length(value).ok_or(HttpFault::Invalid)?;
                if length > RESPONSE_BYTES_MAX {
                    return Err(HttpFault::TooLong);
                }
                if body_bytes
                    .replace(length)
                    .is_some_and(|other| other != length)
                {
                    return Err(HttpFault::Invalid);
                }
            }
            // HTTP/1.0 has none.
            if name.eq_ignore_ascii_case(b"transfer-encoding") {
                return Err(HttpFault::Invalid);
            }
        }
        Ok(Self {
            bytes: bytes.len(),
            body_bytes,
        })
    }
}

/// The number in a status line.
fn status(line: &[u8]) -> Option<u16> {
    let [version, b'.', minor, b' ', digits @ ..] = line.strip_prefix(START)? else {
        return None;
    };
    let (digits, rest) = digits.split_first_chunk::<3>()?;
    let known = version.is_ascii_digit() && minor.is_ascii_digit();
    if !known || !digits.iter().all(u8::is_ascii_digit) || !matches!(rest, [] | [b' ', ..]) {
        return None;
    }
    Some(
        digits
            .iter()
            .fold(0, |n, digit| n * 10 + u16::from(digit - b'0')),
    )
}

/// A length in digits alone.
fn length(value: &[u8]) -> Option<usize> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    digits.then(|| {
        value.iter().fold(0_usize, |n, digit| {
            n.saturating_mul(10)
                .saturating_add(usize::from(digit - b'0'))
        })
    })
}

/// Where the empty line ends that ends a head; lines may end without CR.
fn head_end(bytes: &[u8]) -> Option<usize> {
    let line_ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    for (n, _) in line_ends {
        match bytes[n + 1..] {
            [b'\n', ..] => return Some(n + 2),
            [b'\r', b'\n', ..] => return Some(n + 3),
            _ => {}
        }
    }
    None
}

/// Most bytes of a response, its head with them; as in nginx.
pub const RESPONSE_BYTES_MAX: usize = 16 << 10;

const START: &[u8] = b"HTTP/";
const TYPE: &[u8] = b"application/ocsp-response";
const HEAD_END_BYTES_MAX: usize = b"\n\r\n".len();
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[cfg(test)]
mod tests {
    use super::*;

    /// The body of a response that comes in pieces of some length and then ends.
    fn read(response: &[u8], step: usize) -> Result<Vec<u8>, HttpFault> {
        let mut received = Received::default();
        for piece in response.chunks(step) {
            if received.receive(piece)? {
                return Ok(received.body().to_vec());
            }
        }
        received.end()?;
        Ok(received.body().to_vec())
    }

    #[test]
    fn questions_are_escaped_in_the_target() {
        let text = |path, question: &[u8]| {
            let request = get("ocsp.test", path, question);
            String::from_utf8(request).expect("it is ASCII")
        };
        let request = "GET /AAEC HTTP/1.0\r\nHost: ocsp.test\r\n\r\n";
        assert_eq!(text("/", &[0, 1, 2]), request);
        for (question, target) in [
            (&[0xfb, 0xff][..], "/x/%2B%2F8%3D "),
            (&[0xff], "/x/%2Fw%3D%3D "),
            (b"foobar", "/x/Zm9vYmFy "),
        ] {
            let request = text("/x", question);
            assert!(request.starts_with(&format!("GET {target}")), "{request}");
        }
    }

    #[test]
    fn bodies_end_by_length_or_with_the_connection() {
        for response in [
            &b"HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\n\r\nbody"[..],
            b"HTTP/1.0 200\nX:\ncontent-type:Application/OCSP-Response \n\nbody",
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody",
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nbodyless",
        ] {
            for step in 1..=response.len() {
                assert_eq!(read(response, step).as_deref(), Ok(&b"body"[..]));
            }
        }
        let empty = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(read(empty, 1).as_deref(), Ok(&b""[..]));
    }

    #[test]
    fn what_is_no_response_is_refused() {
        use HttpFault::{Invalid, Short, Status, TooLong};
        for (response, fault) in [
            ("SSH-2.0-x\r\n", Invalid),
            ("http/1.1 200 OK\r\n\r\n", Invalid),
            ("HTTP/1.1 20 OK\r\n\r\n", Invalid),
            ("HTTP/1.1 2000 OK\r\n\r\n", Invalid),
            ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", Invalid),
            ("HTTP/1.1 200 OK\r\nX: a\r\n b: c\r\n\r\n", Invalid),
            ("HTTP/1.1 200 OK\r\n: a\r\n\r\n", Invalid),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Invalid),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                Invalid,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                Invalid,
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: 16385\r\n\r\n", TooLong),
            (
                "HTTP/1.1 301 Moved\r\nLocation: http://x/\r\n\r\n",
                Status(301),
            ),
            ("HTTP/1.1 500\r\n\r\n", Status(500)),
            ("", Short),
            ("HTTP/1.1 200 OK\r\n", Short),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbody", Short),
        ] {
            for step in [1, 2, 3, 7, 1000] {
                assert_eq!(
                    read(response.as_bytes(), step),
                    Err(fault.clone()),
                    "{response}"
                );
            }
        }
        let page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\x1b\r\n\r\n";
        let fault = read(page, 1000).expect_err("it is a page");
        assert_eq!(
            fault.to_string(),
            r#"OCSP responder sent invalid "Content-Type" header: "text/html\u{1b}""#
        );
    }

    #[test]
    fn responses_are_read_to_their_limit() {
        let head = b"HTTP/1.1 200 OK\r\n\r\n";
        let whole = |bytes: usize| [&head[..], &vec![7; bytes - head.len()]].concat();
        let body = read(&whole(RESPONSE_BYTES_MAX), 4096).expect("it is short enough");
        assert_eq!(body.len(), RESPONSE_BYTES_MAX - head.len());
        let fault = read(&whole(RESPONSE_BYTES_MAX + 1), 4096);
        assert_eq!(fault, Err(HttpFault::TooLong));
        let endless = [&b"HTTP/1.1 200 OK\r\nX: "[..], &[b'x'; RESPONSE_BYTES_MAX]].concat();
        assert_eq!(read(&endless, 4096), Err(HttpFault::TooLong));
    }
}
