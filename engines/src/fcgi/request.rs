//! Requests, as records: BEGIN_REQUEST, PARAMS and its end, then STDIN around the pieces of the body, and its end.
//!
//! Source: FastCGI Specification 1.0 sections 3.4, 5.1 to 5.3.

use super::record::{self, BEGIN_REQUEST, HEADER_BYTES, PARAMS, RECORD_BYTES, STDIN};
use super::{Client, Receiving, Sending};
use crate::cgi;
use crate::client::SendError;
use crate::http::{BodyLength, Chunk, Fields};

/// Properties of a request besides its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOptions {
    /// Most bytes of a response head.
    pub head_bytes: usize,
    /// The application should keep the connection open.
    pub keep: bool,
    /// The length of the body; bytes beyond it are not sent.
    pub body: BodyLength,
}

impl Client {
    /// Sends a request with these parameters, in order and verbatim. Returns its number. A body follows by
    /// [`Self::send`] and [`Self::end`].
    ///
    /// # Errors
    /// The connection cannot take it, or a parameter is longer than a record; nothing has been sent then.
    pub fn request(&mut self, params: &Fields, options: RequestOptions) -> Result<u32, SendError> {
        self.admit()?;
        // An empty body still has an end, which may come later.
        let has_body = options.body != BodyLength::None;
        self.put_request(|run| {
            begin(options.keep, run);
            encode(params, run)?;
            if !has_body {
                empty(STDIN, run);
            }
            Ok(())
        })?;
        self.protocol.sending = match options.body {
            _ if !has_body => Sending::Ended,
            BodyLength::Length(left) => Sending::Counted { left },
            _ => Sending::Open,
        };
        self.protocol.is_head = cgi::is_head(params);
        self.protocol.parser.reset(options.head_bytes);
        self.protocol.receiving = Receiving::Head;
        self.protocol.stderr_bytes = 0;
        Ok(self.begin_exchange(options.keep))
    }

    /// Sends a piece of the request's body. Data beyond the announced length is dropped, and ends the connection
    /// after the response.
    pub fn send(&mut self, mut chunk: Chunk) {
        let len = chunk.len();
        if len == 0 {
            return;
        }
        match self.protocol.sending {
            Sending::Ended => {
                self.keep = false;
                return;
            }
            Sending::Counted { left } => {
                self.keep &= len <= left;
                if left == 0 {
                    return;
                }
                chunk = chunk.truncated(left);
                // Only `end` sends the end: excess data of a caller is detected before.
                let left = left.saturating_sub(len);
                self.protocol.sending = Sending::Counted { left };
            }
            Sending::Open => {}
        }
        let mut rest = Some(chunk);
        while let Some(mut piece) = rest {
            rest = piece.split_off(STDIN_BYTES);
            let (header, padding) = record::header(STDIN, piece.len() as usize);
            self.out.push_bytes(&header);
            self.out.push(piece);
            self.out.push_bytes(&[0; HEADER_BYTES][..padding]);
        }
    }

    /// Ends the request's body. One shorter than announced ends the connection after the response.
    pub fn end(&mut self) {
        let sending = std::mem::replace(&mut self.protocol.sending, Sending::Ended);
        if sending != Sending::Ended {
            self.keep &= matches!(sending, Sending::Open | Sending::Counted { left: 0 });
            self.out.push_with(|run| empty(STDIN, run));
        }
    }
}

fn begin(keep: bool, out: &mut Vec<u8>) {
    let content = [0, RESPONDER, u8::from(keep), 0, 0, 0, 0, 0];
    let (header, _) = record::header(BEGIN_REQUEST, content.len());
    out.extend_from_slice(&header);
    out.extend_from_slice(&content);
}

/// The empty record that ends a stream.
fn empty(of: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&record::header(of, 0).0);
}

/// Appends all parameters and the end of them.
fn encode(params: &Fields, out: &mut Vec<u8>) -> Result<(), SendError> {
    let lines = params.fields.iter();
    let bytes: usize = lines
        .map(|field| 8 + field.name.range().len() + field.value.range().len())
        .sum();
    out.reserve(bytes + 4 * HEADER_BYTES);
    let mut from = open(out);
    for field in &params.fields {
        let (name, value) = (field.name.range(), field.value.range());
        let text_bytes = name.len() + value.len();
        let is_short = name.len() <= SHORT_LENGTH && value.len() <= SHORT_LENGTH;
        let len = match is_short {
            true => 2 + text_bytes,
            false => length_bytes(name.len()) + length_bytes(value.len()) + text_bytes,
        };
        if len > RECORD_BYTES {
            return Err(SendError::ParametersTooLarge);
        }
        // Servers parse the pairs of each record by themselves.
        if out.len() - from + len > RECORD_BYTES {
            close(from, out);
            from = open(out);
        }
        match is_short {
            true => out.extend_from_slice(&[name.len() as u8, value.len() as u8]),
            false => {
                length(name.len(), out);
                length(value.len(), out);
            }
        }
        if name.end == value.start {
            // Callers usually store a value directly behind its name: one copy for both.
            out.extend_from_slice(&params.arena[name.start..value.end]);
        } else {
            out.extend_from_slice(&params.arena[name]);
            out.extend_from_slice(&params.arena[value]);
        }
    }
    if out.len() > from {
        close(from, out);
        empty(PARAMS, out);
    } else {
        // The empty record opened above is the end already.
        close(from, out);
    }
    Ok(())
}

/// Begins a PARAMS record; returns the start of its content.
fn open(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; HEADER_BYTES]);
    out.len()
}

/// Ends the PARAMS record with content from `from` on.
fn close(from: usize, out: &mut Vec<u8>) {
    let (header, padding) = record::header(PARAMS, out.len() - from);
    out[from - HEADER_BYTES..from].copy_from_slice(&header);
    out.extend_from_slice(&[0; HEADER_BYTES][..padding]);
}

/// Bytes of the length of a name or value.
fn length_bytes(len: usize) -> usize {
    if len <= SHORT_LENGTH { 1 } else { 4 }
}

/// The length of a name or value: one byte, or four with the highest bit set.
fn length(len: usize, out: &mut Vec<u8>) {
    match len {
        short @ ..=SHORT_LENGTH => out.push(short as u8),
        long => out.extend_from_slice(&(long as u32 | 1 << 31).to_be_bytes()),
    }
}

const RESPONDER: u8 = 1;
/// The longest length of one byte.
const SHORT_LENGTH: usize = 127;
/// Bytes of a body in one record: as many as fit without padding.
const STDIN_BYTES: u64 = 65528;
