//! One GET request and its response, as bytes to send and bytes received.
//!
//! The request is of HTTP/1.0, as nginx's is for OCSP, so that a body has no coding and ends where its length or the
//! connection does. Redirects are a status like others. Absent: the socket, which is the attempt's.

use engines::client::{Bodies, SendError};
use engines::h1::{Client, ClientEvent, ProtocolError, RequestOptions};
use engines::http::{BodyLength, FieldId, OutputQueue, ResponseHead};
use server_base::background_fetch::FetchRequest;

/// A response while it is received.
#[derive(Debug)]
pub(super) struct HttpFetch {
    client: Client,
    media_type: &'static str,
    bytes_max: usize,
    received_bytes: usize,
    body: Vec<u8>,
}

/// Reason why there is no body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HttpError {
    /// The response breaks HTTP, or has what none to HTTP/1.0 has.
    Invalid,
    /// The body is of another media type.
    ContentType(String),
    /// The status is another than 200.
    Status(u16),
    /// The response has more bytes than this.
    TooLong(usize),
    /// The response ends too early.
    Truncated,
}

impl HttpError {
    /// The message for the log, in nginx's words; `peer` is the server's role.
    pub(super) fn message(&self, peer: &str) -> String {
        match self {
            Self::Invalid => format!("{peer} sent invalid response"),
            Self::ContentType(value) => {
                let value = value.escape_debug();
                format!("{peer} sent invalid \"Content-Type\" header: \"{value}\"")
            }
            Self::Status(status) => format!("{peer} sent status {status}"),
            Self::TooLong(bytes_max) => format!("{peer} sent more than {bytes_max} bytes"),
            Self::Truncated => format!("{peer} prematurely closed connection"),
        }
    }
}

impl From<ProtocolError> for HttpError {
    fn from(error: ProtocolError) -> Self {
        match error {
            ProtocolError::NoResponse | ProtocolError::Truncated => Self::Truncated,
            _ => Self::Invalid,
        }
    }
}

impl HttpFetch {
    /// Starts a fetch; returns it with the bytes to send.
    ///
    /// # Errors
    /// The target or the host cannot be part of a request.
    pub(super) fn new(request: &FetchRequest) -> Result<(Self, Vec<u8>), SendError> {
        let bytes_max = request.response_bytes_max;
        let mut client = Client::new(Bodies::Delivered);
        let fields: [(&[u8], &[u8]); 3] = [
            (b":method", b"GET"),
            (b":path", request.target.as_bytes()),
            (b"Host", request.host.as_bytes()),
        ];
        let options = RequestOptions {
            http10: true,
            // The limit is that of the whole response, so none of its parts may have a lower one.
            head_bytes: bytes_max + 1,
            ..RequestOptions::default()
        };
        client.request(fields, options)?;
        let (mut out, mut bytes) = (OutputQueue::default(), Vec::new());
        client.transmit(&mut out);
        out.drain_bytes(&mut bytes);
        let fetch = Self {
            client,
            media_type: request.media_type,
            bytes_max,
            received_bytes: 0,
            body: Vec::new(),
        };
        Ok((fetch, bytes))
    }

    /// Takes received bytes; returns the body once it is complete. Bytes after a body with a length are ignored.
    ///
    /// # Errors
    /// There will be no body.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, HttpError> {
        self.received_bytes += bytes.len();
        let too_long = self.received_bytes > self.bytes_max;
        self.client.receive(bytes);
        match self.take_body() {
            // The engine, which has the same limit for a head, may have met it first.
            Ok(None) | Err(HttpError::Invalid) if too_long => {
                Err(HttpError::TooLong(self.bytes_max))
            }
            other => other,
        }
    }

    /// The connection has ended.
    ///
    /// # Errors
    /// The response was not complete.
    pub(super) fn end(&mut self) -> Result<Vec<u8>, HttpError> {
        self.client.receive_eof(true);
        self.take_body()?.ok_or(HttpError::Truncated)
    }

    fn take_body(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
        while let Some(event) = self.client.event() {
            match event {
                ClientEvent::Head { head, .. } => self.check(&head)?,
                ClientEvent::Data { bytes, .. } => self.body.extend_from_slice(&bytes),
                ClientEvent::End { .. } => return Ok(Some(std::mem::take(&mut self.body))),
                ClientEvent::Failed(error) => return Err(error.into()),
                // Interim responses mean nothing here.
                _ => {}
            }
        }
        Ok(None)
    }

    fn check(&self, head: &ResponseHead) -> Result<(), HttpError> {
        if head.status != 200 {
            return Err(HttpError::Status(head.status));
        }
        let fields = head.fields.iter();
        for field in fields.filter(|field| field.id == FieldId::ContentType) {
            let value = head.bytes(field.value);
            if !value.eq_ignore_ascii_case(self.media_type.as_bytes()) {
                let value = String::from_utf8_lossy(value).into_owned();
                return Err(HttpError::ContentType(value));
            }
        }
        match head.body {
            BodyLength::Length(bytes) if bytes > self.bytes_max as u64 => {
                Err(HttpError::TooLong(self.bytes_max))
            }
            // Nobody who is asked in HTTP/1.0 may answer so (RFC 9112 section 6.1).
            BodyLength::Unknown => Err(HttpError::Invalid),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES_MAX: usize = 16 << 10;

    fn request() -> FetchRequest {
        FetchRequest {
            host: "ocsp.test".to_owned(),
            target: "/x/AAEC".to_owned(),
            media_type: "application/ocsp-response",
            response_bytes_max: BYTES_MAX,
        }
    }

    /// The body of a response that comes in pieces of some length and then ends.
    fn read(response: &[u8], step: usize) -> Result<Vec<u8>, HttpError> {
        let (mut fetch, _) = HttpFetch::new(&request()).expect("it can be sent");
        for piece in response.chunks(step) {
            if let Some(body) = fetch.receive(piece)? {
                return Ok(body);
            }
        }
        fetch.end()
    }

    #[test]
    fn request_is_of_http10() {
        let (_, bytes) = HttpFetch::new(&request()).expect("it can be sent");
        assert_eq!(bytes, b"GET /x/AAEC HTTP/1.0\r\nHost: ocsp.test\r\n\r\n");
        let odd = FetchRequest {
            target: "/ x".to_owned(),
            ..request()
        };
        assert!(HttpFetch::new(&odd).is_err());
    }

    #[test]
    fn bodies_end_by_length_or_with_the_connection() {
        for response in [
            &b"HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\n\r\nbody"[..],
            b"HTTP/1.0 200\nX:\ncontent-type:Application/OCSP-Response \n\nbody",
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody",
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbodyless",
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
        use HttpError::{Invalid, Status, TooLong, Truncated};
        for (response, error) in [
            ("SSH-2.0-x\r\n", Invalid),
            ("http/1.1 200 OK\r\n\r\n", Invalid),
            ("HTTP/1.1 20 OK\r\n\r\n", Invalid),
            ("HTTP/1.1 2000 OK\r\n\r\n", Invalid),
            ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", Invalid),
            ("HTTP/1.1 200 OK\r\nX: a\r\n b: c\r\n\r\n", Invalid),
            ("HTTP/1.1 200 OK\r\n: a\r\n\r\n", Invalid),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Invalid),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
                Invalid,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                Invalid,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 16385\r\n\r\n",
                TooLong(BYTES_MAX),
            ),
            (
                "HTTP/1.1 301 Moved\r\nLocation: http://x/\r\n\r\n",
                Status(301),
            ),
            ("HTTP/1.1 500\r\n\r\n", Status(500)),
            ("", Truncated),
            ("HTTP/1.1 200 OK\r\n", Truncated),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbody",
                Truncated,
            ),
        ] {
            for step in [1, 2, 3, 7, 1000] {
                assert_eq!(
                    read(response.as_bytes(), step),
                    Err(error.clone()),
                    "{response}"
                );
            }
        }
        let page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\tx\r\n\r\n";
        let error = read(page, 1000).expect_err("it is a page");
        assert_eq!(
            error.message("OCSP responder"),
            r#"OCSP responder sent invalid "Content-Type" header: "text/html\tx""#
        );
    }

    #[test]
    fn responses_are_read_to_their_limit() {
        let head = b"HTTP/1.1 200 OK\r\n\r\n";
        let whole = |bytes: usize| [&head[..], &vec![7; bytes - head.len()]].concat();
        let body = read(&whole(BYTES_MAX), 4096).expect("it is short enough");
        assert_eq!(body.len(), BYTES_MAX - head.len());
        let error = read(&whole(BYTES_MAX + 1), 4096);
        assert_eq!(error, Err(HttpError::TooLong(BYTES_MAX)));
        let endless = [&b"HTTP/1.1 200 OK\r\nX: "[..], &[b'x'; BYTES_MAX]].concat();
        assert_eq!(read(&endless, 4096), Err(HttpError::TooLong(BYTES_MAX)));
    }
}
