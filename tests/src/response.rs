//! One HTTP/1 response, read from bytes exactly as they came.
//!
//! [`read`] takes bytes from its source until the message is whole by RFC 9112 section 6.3: no body for HEAD, 1xx, 204
//! and 304; else chunked; else Content-Length; else up to the close. Nothing is repaired: a malformed head or chunk
//! panics with the received bytes, so that a test of the server's framing can fail.

use std::io;

/// A received response.
#[derive(Debug, Clone, Default)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The status line without its end.
    pub status_line: String,
    /// Header fields in order, names as received.
    pub headers: Vec<(String, String)>,
    /// The body, chunked framing removed.
    pub body: Vec<u8>,
    /// Fields that followed a chunked body.
    pub trailers: Vec<(String, String)>,
    /// The sizes of the chunks, when the body came in chunks.
    pub chunk_sizes: Vec<usize>,
}

impl Response {
    /// The first value of a header field, the name in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.header_values(name).first().copied()
    }

    /// All values of a header field, the name in any case.
    #[must_use]
    pub fn header_values(&self, name: &str) -> Vec<&str> {
        let fields = self
            .headers
            .iter()
            .filter(|(n, _)| n.eq_ignore_ascii_case(name));
        fields.map(|(_, value)| value.as_str()).collect()
    }

    /// The body as text, bytes that are not UTF-8 replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// True when the head announces that the connection ends after this response.
    #[must_use]
    pub fn announces_close(&self) -> bool {
        self.header("Connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    fn has_no_body(&self, to_head: bool) -> bool {
        to_head || self.status < 200 || self.status == 204 || self.status == 304
    }
}

/// Reads one response from `buffer`. `more` appends received bytes and returns their number, 0 at the end. `None` if
/// the stream ends before the first byte.
///
/// # Errors
/// Those of `more`, if they come before the message is whole.
pub fn read(
    buffer: &mut Vec<u8>,
    to_head: bool,
    mut more: impl FnMut(&mut Vec<u8>) -> io::Result<usize>,
) -> io::Result<Option<Response>> {
    let head_end = loop {
        if let Some(at) = find(buffer, b"\r\n\r\n") {
            break at + 4;
        }
        if more(buffer)? == 0 {
            if buffer.is_empty() {
                return Ok(None);
            }
            let rest = String::from_utf8_lossy(buffer);
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("end inside a head: {rest:?}"),
            ));
        }
    };
    let head: Vec<u8> = buffer.drain(..head_end).collect();
    let mut response = parse_head(&head[..head.len() - 4]);
    if response.has_no_body(to_head) {
        return Ok(Some(response));
    }
    if response.header("Transfer-Encoding").is_some() {
        read_chunks(&mut response, buffer, &mut more)?;
    } else if let Some(length) = response.header("Content-Length") {
        let length = length
            .parse()
            .unwrap_or_else(|_| panic!("not a length: {length:?}"));
        response.body = take(buffer, length, &mut more)?;
    } else {
        while more(buffer)? > 0 {}
        response.body = std::mem::take(buffer);
    }
    Ok(Some(response))
}

fn parse_head(head: &[u8]) -> Response {
    let text = String::from_utf8_lossy(head).into_owned();
    let mut lines = text.split("\r\n");
    let status_line = lines.next().unwrap_or_default().to_owned();
    assert!(
        status_line.starts_with("HTTP/1.1 "),
        "not a status line: {status_line:?}"
    );
    let status = status_line
        .get(9..12)
        .and_then(|digits| digits.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status code: {status_line:?}"));
    let headers = lines.map(parse_field).collect();
    Response {
        status,
        status_line,
        headers,
        ..Response::default()
    }
}

fn parse_field(line: &str) -> (String, String) {
    assert!(
        !line.contains(['\r', '\n', '\0']),
        "a control byte inside a field: {line:?}"
    );
    let (name, value) = line
        .split_once(':')
        .unwrap_or_else(|| panic!("a field without colon: {line:?}"));
    (name.to_owned(), value.trim_matches([' ', '\t']).to_owned())
}

fn read_chunks(
    response: &mut Response,
    buffer: &mut Vec<u8>,
    more: &mut impl FnMut(&mut Vec<u8>) -> io::Result<usize>,
) -> io::Result<()> {
    loop {
        let line = take_line(buffer, more)?;
        let size = usize::from_str_radix(&line, 16)
            .unwrap_or_else(|_| panic!("not a chunk size: {line:?}"));
        if size == 0 {
            break;
        }
        response.chunk_sizes.push(size);
        response.body.extend(take(buffer, size, more)?);
        let end = take_line(buffer, more)?;
        assert!(end.is_empty(), "a chunk longer than its size: {end:?}");
    }
    loop {
        let line = take_line(buffer, more)?;
        if line.is_empty() {
            return Ok(());
        }
        response.trailers.push(parse_field(&line));
    }
}

fn take_line(
    buffer: &mut Vec<u8>,
    more: &mut impl FnMut(&mut Vec<u8>) -> io::Result<usize>,
) -> io::Result<String> {
    loop {
        if let Some(at) = find(buffer, b"\r\n") {
            let line: Vec<u8> = buffer.drain(..at + 2).collect();
            return Ok(String::from_utf8_lossy(&line[..at]).into_owned());
        }
        if more(buffer)? == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "end inside chunked framing",
            ));
        }
    }
}

fn take(
    buffer: &mut Vec<u8>,
    length: usize,
    more: &mut impl FnMut(&mut Vec<u8>) -> io::Result<usize>,
) -> io::Result<Vec<u8>> {
    while buffer.len() < length {
        if more(buffer)? == 0 {
            let message = format!("end after {} of {length} bytes of body", buffer.len());
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
    }
    Ok(buffer.drain(..length).collect())
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}
