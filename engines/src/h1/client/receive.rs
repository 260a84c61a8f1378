//! Responses, from bytes that arrive in any pieces.
//!
//! A body with a length, one that ends with the connection and a tunnel are passed on in their
//! receive buffers. A chunked body is passed on after its framing was removed in place.
//!
//! Source: RFC 9112 section 6.3, RFC 9110 section 15.

use super::super::chunked::ChunkedDecoder;
use super::head::{Ends, Parsed, ends};
use super::{Client, Event, Http1, ProtocolError, Receiving, Sending};
use crate::client::{Bodies, MAX_INTERIM, Phase, Protocol};
use crate::http::{BodyLength, Fields, ResponseHead, Version};

impl Protocol for Http1 {
    type ProtocolError = ProtocolError;

    fn phase(&self) -> Phase {
        match self.receiving {
            Receiving::Idle => Phase::Idle,
            Receiving::Head => Phase::Head,
            Receiving::Length { .. } | Receiving::Chunked(..) | Receiving::UntilClose => {
                Phase::Body
            }
            Receiving::Tunnel | Receiving::Over => Phase::Over,
        }
    }

    fn is_sent(&self) -> bool {
        self.sending == Sending::Ended
    }

    fn passes_buffers(&self) -> bool {
        self.bodies == Bodies::Delivered
    }

    fn advance(client: &mut Client, input: &[u8]) -> Result<usize, ProtocolError> {
        let mut at = client.advance_heads(input)?;
        while at < input.len() {
            let rest = &input[at..];
            at += match &mut client.protocol.receiving {
                Receiving::Over => rest.len(),
                Receiving::Idle => return Err(client.protocol.surplus),
                Receiving::Head => return Ok(at),
                Receiving::Length { left } => {
                    let used = (*left).min(rest.len() as u64) as usize;
                    *left -= used as u64;
                    let done = *left == 0;
                    client.data(&rest[..used]);
                    if done {
                        client.end_response();
                    }
                    used
                }
                Receiving::Chunked(decoder, trailers) => {
                    let mut data = std::mem::take(&mut client.protocol.scratch);
                    let result =
                        decoder.decode(rest, &client.protocol.settings, &mut data, trailers);
                    let result = result.map_err(ProtocolError::Body);
                    client.chunks(data, result.is_ok());
                    result?
                }
                Receiving::UntilClose | Receiving::Tunnel => {
                    client.data(rest);
                    rest.len()
                }
            };
        }
        Ok(at)
    }

    fn advance_buffer(client: &mut Client, buffer: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let from = client.advance_heads(buffer)?;
        let body_bytes = (buffer.len() - from) as u64;
        match &mut client.protocol.receiving {
            Receiving::Chunked(decoder, trailers) => {
                let result =
                    decoder.decode_in_place(buffer, from, &client.protocol.settings, trailers);
                let result = result.map_err(ProtocolError::Body);
                let mut data = std::mem::take(buffer);
                if data.len() < data.capacity() / 2 {
                    data.shrink_to_fit();
                }
                client.chunks(data, result.is_ok());
                match result? {
                    0 => Ok(()),
                    _ => Err(client.protocol.surplus),
                }
            }
            Receiving::Length { left } if *left >= body_bytes => {
                *left -= body_bytes;
                let done = *left == 0;
                buffer.drain(..from);
                client.own_data(std::mem::take(buffer));
                if done {
                    client.end_response();
                }
                Ok(())
            }
            Receiving::UntilClose | Receiving::Tunnel => {
                buffer.drain(..from);
                client.own_data(std::mem::take(buffer));
                Ok(())
            }
            _ => {
                let used = Self::advance(client, &buffer[from..])?;
                client.partial.keep((&buffer[from..]).into(), used);
                Ok(())
            }
        }
    }

    fn reopen(&mut self) {
        self.receiving = Receiving::Idle;
        self.surplus = ProtocolError::Unasked;
    }

    fn close(client: &mut Client) {
        client.protocol.receiving = Receiving::Over;
        client.protocol.sending = Sending::Ended;
    }
}

impl Client {
    /// Handles the end of the server's bytes. It ends a body without a length only if the end is
    /// `whole`: with TLS, if the server sent its close alert first.
    pub fn receive_eof(&mut self, whole: bool) {
        match self.protocol.receiving {
            Receiving::Over => {}
            Receiving::Idle => {
                self.protocol.receiving = Receiving::Over;
                self.deliver_eof();
            }
            Receiving::UntilClose | Receiving::Tunnel if whole => {
                self.end_response();
                self.protocol.receiving = Receiving::Over;
            }
            Receiving::Head if self.protocol.interim == 0 && self.protocol.parser.is_fresh() => {
                self.fail(ProtocolError::NoResponse);
            }
            _ => self.fail(ProtocolError::Truncated),
        }
    }

    /// Consumes the heads at the start of the input; returns the number of bytes.
    fn advance_heads(&mut self, input: &[u8]) -> Result<usize, ProtocolError> {
        let mut at = 0;
        while at < input.len() && matches!(self.protocol.receiving, Receiving::Head) {
            let (used, done) = self.protocol.parser.advance(&input[at..])?;
            at += used;
            if !done {
                break;
            }
            let spare = self.spares.take();
            let parsed = self.protocol.parser.take(spare, &self.protocol.settings)?;
            self.head(parsed)?;
        }
        Ok(at)
    }

    fn head(&mut self, parsed: Parsed) -> Result<(), ProtocolError> {
        let Parsed {
            head,
            version,
            keep,
            size_bytes,
        } = parsed;
        let stream = self.stream;
        let status = head.status;
        self.protocol.version = version;
        let unasked =
            !self.protocol.request_info.upgrade || self.protocol.sending != Sending::Ended;
        if status == 101 && unasked {
            return Err(ProtocolError::UnaskedUpgrade);
        }
        if (100..200).contains(&status) && status != 101 {
            return self.interim(head, version);
        }
        let tunnel = status == 101
            || (self.protocol.request_info.is_connect && (200..300).contains(&status));
        let ends = ends(&head, self.protocol.request_info.is_head);
        self.protocol.surplus = match head.body {
            BodyLength::Length(_) => ProtocolError::DataAfterLength,
            BodyLength::Unknown => ProtocolError::DataAfterChunks,
            BodyLength::None => ProtocolError::Unasked,
        };
        self.keep &= keep && ends != Ends::AtClose && !tunnel;
        self.deliver_head(head, size_bytes);
        if tunnel {
            self.events.push_back(Event::Upgraded(stream));
            self.protocol.receiving = Receiving::Tunnel;
            self.protocol.sending = Sending::Tunnel;
            return Ok(());
        }
        match ends {
            Ends::Now => self.end_response(),
            Ends::After(left) => self.protocol.receiving = Receiving::Length { left },
            Ends::Chunked => {
                self.protocol.receiving =
                    Receiving::Chunked(ChunkedDecoder::new(), Fields::default());
            }
            Ends::AtClose => self.protocol.receiving = Receiving::UntilClose,
        }
        Ok(())
    }

    fn interim(&mut self, head: Box<ResponseHead>, version: Version) -> Result<(), ProtocolError> {
        if head.status == 103 && version == Version::Http10 {
            return Err(ProtocolError::EarlyHintsInHttp10);
        }
        self.protocol.interim += 1;
        if self.protocol.interim > MAX_INTERIM {
            return Err(ProtocolError::TooManyInterim);
        }
        let stream = self.stream;
        self.events.push_back(Event::Interim { stream, head });
        Ok(())
    }

    fn data(&mut self, bytes: &[u8]) {
        match self.protocol.bodies {
            Bodies::Delivered => self.deliver_data(bytes),
            Bodies::Counted => self.body_bytes += bytes.len() as u64,
        }
    }

    /// Bytes of a body in an owned buffer. The buffer is reused if they are not reported.
    fn own_data(&mut self, mut bytes: Vec<u8>) {
        if !bytes.is_empty() && self.protocol.bodies == Bodies::Delivered {
            return self.deliver_owned(bytes);
        }
        self.body_bytes += bytes.len() as u64;
        bytes.clear();
        self.protocol.scratch = bytes;
    }

    /// Reports the decoded data of a chunked body, and its end.
    fn chunks(&mut self, data: Vec<u8>, is_good: bool) {
        self.own_data(data);
        let Receiving::Chunked(decoder, trailers) = &mut self.protocol.receiving else {
            return;
        };
        if !is_good || !decoder.is_done() {
            return;
        }
        let fields = std::mem::take(trailers);
        if !fields.is_empty() && self.protocol.bodies == Bodies::Delivered {
            let stream = self.stream;
            self.events.push_back(Event::Trailers { stream, fields });
        }
        self.end_response();
    }

    fn end_response(&mut self) {
        self.protocol.receiving = Receiving::Idle;
        self.deliver_end();
    }
}
