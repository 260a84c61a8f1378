//! Requests, as bytes: the line, the fields verbatim, and the body framed according to them.
//!
//! Nothing is added to the caller's request. A request that the server could read in another way is
//! refused: lines that end early, two lengths, more body than announced.
//!
//! Source: RFC 9112 sections 3, 6 and 7.

use super::super::encode;
use super::super::framing::Framing;
use super::{Client, ConnectionOptions, Receiving, Sending};
use crate::client::{SendError, is_sendable};
use crate::http::{BodyLength, Chunk, FieldId, Fields, Method, Version, is_token};

/// Properties of a request besides its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOptions {
    /// The request line names HTTP/1.0.
    pub http10: bool,
    /// The length of the body, at most the value of `Content-Length` if that is among the fields.
    /// The body is chunked if the fields specify it.
    pub body: BodyLength,
    /// The caller is prepared for a tunnel: 101, or success of CONNECT.
    pub upgrade: bool,
    /// Most bytes of a response head, interim or not, and of a trailer section.
    pub head_bytes: usize,
}

impl Default for RequestOptions {
    /// HTTP/1.1 without a body.
    fn default() -> Self {
        Self {
            http10: false,
            body: BodyLength::None,
            upgrade: false,
            head_bytes: HEAD_BYTES,
        }
    }
}

/// Properties of a request that framing its response depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestInfo {
    pub(super) is_head: bool,
    pub(super) is_connect: bool,
    pub(super) upgrade: bool,
    /// The request leaves the connection open.
    pub(super) keep: bool,
}

/// Appends a request head; returns its properties and how its body is sent.
fn encode<'a>(
    fields: impl Iterator<Item = (FieldId, &'a [u8], &'a [u8])>,
    options: RequestOptions,
    out: &mut Vec<u8>,
) -> Result<(RequestInfo, Sending), SendError> {
    let (mut method, mut target): (&[u8], &[u8]) = (b"", b"");
    let mut begun = false;
    let mut framing = Framing::default();
    let mut connection = ConnectionOptions::default();
    for (id, name, value) in fields {
        // The request line is complete at the first regular field.
        match name {
            b":method" if !begun => method = value,
            b":path" if !begun => target = value,
            // The names of known fields are names.
            _ if id == FieldId::Other && !is_name(name) => return Err(SendError::BadName),
            _ if !is_sendable(value) => return Err(SendError::BadValue),
            _ => {
                if !begun {
                    begun = true;
                    line(method, target, options, out)?;
                }
                let framed = match id {
                    FieldId::ContentLength => framing.content_length(value),
                    FieldId::TransferEncoding => framing.transfer_encoding(value),
                    FieldId::Connection => {
                        connection.take(value);
                        Ok(())
                    }
                    _ => Ok(()),
                };
                framed.map_err(|_| SendError::BadFraming)?;
                field(name, value, out);
            }
        }
    }
    if !begun {
        line(method, target, options, out)?;
    }
    out.extend_from_slice(b"\r\n");
    let version = version(options);
    let announced = framing.body(version).map_err(|_| SendError::BadFraming)?;
    let method = Method::parse(method);
    let sending = sending(announced, options.body, out)?;
    // The server may wait for a body that was announced and is not sent.
    let is_short = matches!(announced, BodyLength::Length(1..)) && sending == Sending::Ended;
    let request_info = RequestInfo {
        is_head: method == Method::Head,
        is_connect: method == Method::Connect,
        upgrade: options.upgrade,
        keep: connection.keeps(version) && !is_short,
    };
    Ok((request_info, sending))
}

/// How to send a body of this length if the fields announce another; appends a coded body that is
/// empty.
fn sending(
    announced: BodyLength,
    body: BodyLength,
    out: &mut Vec<u8>,
) -> Result<Sending, SendError> {
    let is_empty = matches!(body, BodyLength::None | BodyLength::Length(0));
    Ok(match (announced, body) {
        (BodyLength::Unknown, _) if is_empty => {
            encode::last_chunk(out, None);
            Sending::Ended
        }
        (BodyLength::Unknown, _) => Sending::Chunked,
        _ if is_empty => Sending::Ended,
        (BodyLength::Length(left), BodyLength::Length(body)) if body > left => {
            return Err(SendError::BodyTooLong);
        }
        (BodyLength::Length(left), _) => Sending::Counted { left },
        (BodyLength::None, _) => return Err(SendError::BodyTooLong),
    })
}

/// The request line.
fn line(
    method: &[u8],
    target: &[u8],
    options: RequestOptions,
    out: &mut Vec<u8>,
) -> Result<(), SendError> {
    let is_tunnel = Method::parse(method) == Method::Connect;
    if !is_token(method) || (is_tunnel && !options.upgrade) {
        return Err(SendError::BadMethod);
    }
    let bad = |byte: &u8| *byte <= b' ' || *byte == 0x7f;
    if target.is_empty() || target.iter().any(bad) {
        return Err(SendError::BadTarget);
    }
    let version: &[u8] = match version(options) {
        Version::Http10 => b" HTTP/1.0\r\n",
        _ => b" HTTP/1.1\r\n",
    };
    for part in [method, b" ", target, version] {
        out.extend_from_slice(part);
    }
    Ok(())
}

const fn version(options: RequestOptions) -> Version {
    if options.http10 {
        Version::Http10
    } else {
        Version::Http11
    }
}

/// Whether every reader takes this as a name. It need not be a token: odd names of client fields
/// are passed on if the configuration permits them.
fn is_name(name: &[u8]) -> bool {
    // Without an early exit from the loop the compiler vectorizes it.
    let bad = |byte: &u8| *byte <= b' ' || *byte == 0x7f || *byte == b':';
    !name.is_empty() && !name.iter().fold(false, |any, byte| any | bad(byte))
}

fn field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.reserve(name.len() + value.len() + 4);
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

impl Client {
    /// Sends a request head with these fields, `:method` and `:path` first, the rest verbatim and in order. Returns
    /// its number. A body follows by [`Self::send`] and [`Self::end`].
    ///
    /// # Errors
    /// The connection cannot take it, or it cannot be sent; nothing has been sent then.
    pub fn request<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        options: RequestOptions,
    ) -> Result<u32, SendError> {
        let fields = fields.into_iter();
        let fields = fields.map(|(name, value)| (FieldId::of(name), name, value));
        self.begin_request(fields, options)
    }

    /// Sends a request like [`Self::request`], with fields that carry the numbers of their names.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    pub fn request_fields(
        &mut self,
        fields: &Fields,
        options: RequestOptions,
    ) -> Result<u32, SendError> {
        let lines = fields.fields.iter();
        let lines = lines.map(|field| {
            let (name, value) = (fields.bytes(field.name), fields.bytes(field.value));
            (field.id, name, value)
        });
        self.begin_request(lines, options)
    }

    fn begin_request<'a>(
        &mut self,
        fields: impl Iterator<Item = (FieldId, &'a [u8], &'a [u8])>,
        options: RequestOptions,
    ) -> Result<u32, SendError> {
        self.admit()?;
        let (request_info, sending) = self.put_request(|run| encode(fields, options, run))?;
        (self.protocol.request_info, self.protocol.sending) = (request_info, sending);
        self.begin_response(options.head_bytes);
        Ok(self.begin_exchange(request_info.keep))
    }

    /// Sends a piece of the request's body, or of a tunnel. Data beyond the announced length is dropped, and ends
    /// the connection after the response.
    pub fn send(&mut self, mut chunk: Chunk) {
        let len = chunk.len();
        if len == 0 {
            return;
        }
        match &mut self.protocol.sending {
            Sending::Ended => self.keep = false,
            Sending::Counted { left } => {
                self.keep &= len <= *left;
                chunk = chunk.truncated(*left);
                *left -= chunk.len();
                if *left == 0 {
                    self.protocol.sending = Sending::Ended;
                }
                self.out.push(chunk);
            }
            Sending::Chunked => {
                self.out.push_with(|run| encode::chunk_size(run, len));
                self.out.push(chunk);
                self.out.push_bytes(b"\r\n");
            }
            Sending::Tunnel => self.out.push(chunk),
        }
    }

    /// Ends the request's body, or our side of a tunnel. Trailers are sent if the body is chunked;
    /// unsendable ones are left out. A body shorter than announced ends the connection after the
    /// response.
    pub fn end(&mut self, trailers: Option<&Fields>) {
        match std::mem::replace(&mut self.protocol.sending, Sending::Ended) {
            Sending::Counted { left } => self.keep &= left == 0,
            Sending::Chunked => self.out.push_with(|run| {
                run.extend_from_slice(b"0\r\n");
                for line in trailers.iter().flat_map(|trailers| &trailers.fields) {
                    let of = |span| trailers.map_or(&b""[..], |trailers| trailers.bytes(span));
                    let (name, value) = (of(line.name), of(line.value));
                    if is_token(name) && is_sendable(value) && encode::is_trailer(line.id) {
                        field(name, value, run);
                    }
                }
                run.extend_from_slice(b"\r\n");
            }),
            Sending::Tunnel | Sending::Ended => {}
        }
    }

    /// Gets ready for the response to a request.
    fn begin_response(&mut self, head_bytes: usize) {
        let own = &mut self.protocol;
        own.settings.header_buffer_bytes = head_bytes;
        own.settings.large_header_buffers = (0, head_bytes);
        own.parser.reset(&own.settings);
        own.receiving = Receiving::Head;
        own.interim = 0;
    }
}

/// Default maximum of a response head, bytes.
const HEAD_BYTES: usize = 64 << 10;
