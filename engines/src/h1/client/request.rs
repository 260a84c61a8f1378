//! Requests, as bytes: the line, the fields, and what frames the body.
//!
//! Fields that say where the body ends or what becomes of the connection are the engine's own.
//! Source: RFC 9112 sections 3, 6 and 7.

use super::super::encode;
use super::{Client, Sending};
use crate::client::{Refusal, is_sendable};
use crate::http::{FieldId, Fields, Method, Version, is_token, parse_length};

/// What the response needs to know about its request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    pub(super) is_head: bool,
    pub(super) is_connect: bool,
    pub(super) upgrade: bool,
    pub(super) close: bool,
}

/// The pseudo-fields, of which the line is made.
#[derive(Default)]
struct Control<'a> {
    method: &'a [u8],
    path: &'a [u8],
    authority: Option<&'a [u8]>,
}

/// Appends a request head; gives what is to be known of it, and how its body is sent.
pub(super) fn encode<'a>(
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ended: bool,
    version: Version,
    keep_alive: bool,
    out: &mut Vec<u8>,
) -> Result<(Asked, Sending), Refusal> {
    let mut control = Control::default();
    let mut asked = Asked::default();
    let mut begun = false;
    let mut length = None;
    for (name, value) in fields {
        // Pseudo-fields come first, as in HTTP/2: the request line is complete at the first other one.
        if let [b':', pseudo @ ..] = name {
            if begun || !is_sendable(value) {
                return Err(Refusal::BadField);
            }
            match pseudo {
                b"method" => control.method = value,
                b"path" => control.path = value,
                b"authority" => control.authority = Some(value),
                _ => {}
            }
            continue;
        }
        if !begun {
            begun = true;
            line(&control, version, out)?;
        }
        match FieldId::of(name) {
            FieldId::Connection => {
                asked.close |= value.eq_ignore_ascii_case(b"close");
                continue;
            }
            // The engine frames the body and keeps the connection; what the caller says of either could contradict it.
            FieldId::TransferEncoding | FieldId::KeepAlive => continue,
            FieldId::Host if control.authority.is_some() => continue,
            FieldId::ContentLength => {
                let repeated = length.is_some();
                length = parse_length(value).filter(|_| !repeated);
                if length.is_none() {
                    return Err(Refusal::BadField);
                }
            }
            FieldId::Upgrade => asked.upgrade = true,
            FieldId::Other if !is_token(name) => return Err(Refusal::BadField),
            _ => {}
        }
        if !is_sendable(value) {
            return Err(Refusal::BadField);
        }
        field(name, value, out);
    }
    if !begun {
        line(&control, version, out)?;
    }
    let method = Method::parse(control.method);
    asked.is_head = method == Method::Head;
    asked.is_connect = method == Method::Connect;
    asked.close |= !keep_alive;
    let sending = framing(method, version, ended, length, out)?;
    if asked.upgrade {
        field(b"Connection", b"upgrade", out);
    } else if asked.close && version != Version::Http10 {
        field(b"Connection", b"close", out);
    }
    out.extend_from_slice(b"\r\n");
    Ok((asked, sending))
}

/// How the body is sent; appends the field that says so where none has.
fn framing(
    method: Method,
    version: Version,
    ended: bool,
    length: Option<u64>,
    out: &mut Vec<u8>,
) -> Result<Sending, Refusal> {
    Ok(match (ended, length) {
        (true, None) => {
            // RFC 9110 section 8.6: methods that have a body say so where it is empty.
            if matches!(method, Method::Post | Method::Put | Method::Patch) {
                field(b"Content-Length", b"0", out);
            }
            Sending::Ended
        }
        (true, Some(0)) => Sending::Ended,
        (true, Some(_)) => return Err(Refusal::BadField),
        (false, Some(left)) => Sending::Counted { left },
        (false, None) if version == Version::Http10 => return Err(Refusal::BadField),
        (false, None) => {
            field(b"Transfer-Encoding", b"chunked", out);
            Sending::Chunked
        }
    })
}

/// The request line, and Host.
fn line(control: &Control<'_>, version: Version, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let target = match control.method {
        b"CONNECT" => control.authority.unwrap_or_default(),
        _ => control.path,
    };
    let bad = |byte: &u8| *byte <= b' ' || *byte == 0x7f;
    if !is_token(control.method) || target.is_empty() || target.iter().any(bad) {
        return Err(Refusal::BadField);
    }
    let version: &[u8] = match version {
        Version::Http10 => b" HTTP/1.0\r\n",
        _ => b" HTTP/1.1\r\n",
    };
    for part in [control.method, b" ", target, version] {
        out.extend_from_slice(part);
    }
    if let Some(authority) = control.authority {
        field(b"Host", authority, out);
    }
    Ok(())
}

fn field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

impl Client {
    /// Sends bytes of the request's body; with `ended` they are the last. What exceeds the length that was announced is
    /// dropped, and ends the connection after the response; so does less.
    pub fn send(&mut self, stream: u32, bytes: &[u8], ended: bool) {
        if stream != self.stream {
            return;
        }
        let out = &mut self.out;
        match &mut self.sending {
            Sending::Ended => return,
            Sending::Counted { left } => {
                let fits = bytes
                    .len()
                    .min(usize::try_from(*left).unwrap_or(usize::MAX));
                out.extend_from_slice(&bytes[..fits]);
                *left -= fits as u64;
                self.keep &= fits == bytes.len() && !(ended && *left > 0);
            }
            Sending::Chunked => {
                if !bytes.is_empty() {
                    encode::chunk_size(out, bytes.len() as u64);
                    out.extend_from_slice(bytes);
                    out.extend_from_slice(b"\r\n");
                }
                if ended {
                    encode::last_chunk(out, None);
                }
            }
            Sending::Tunnel => out.extend_from_slice(bytes),
        }
        if ended {
            self.sending = Sending::Ended;
        }
    }

    /// Ends the request's body with a trailer section, where it is chunked; fields that cannot be sent are left out.
    pub fn send_trailers(&mut self, stream: u32, trailers: &Fields) {
        if stream != self.stream || self.sending != Sending::Chunked {
            return self.send(stream, &[], true);
        }
        self.out.extend_from_slice(b"0\r\n");
        for line in &trailers.fields {
            let (name, value) = (trailers.bytes(line.name), trailers.bytes(line.value));
            if is_token(name) && is_sendable(value) && encode::is_trailer(line.id) {
                field(name, value, &mut self.out);
            }
        }
        self.out.extend_from_slice(b"\r\n");
        self.sending = Sending::Ended;
    }
}
