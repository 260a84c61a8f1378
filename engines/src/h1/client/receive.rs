//! Responses, from bytes that arrive in any pieces.
//!
//! A body with a length, one that ends with the connection and a tunnel are handed on in the memory they were read into, a
//! chunked one after its framing has been squeezed out of it.
//!
//! Source: RFC 9112 section 6.3, RFC 9110 section 15.

use super::super::chunked::ChunkedDecoder;
use super::head::{Ends, Parsed, ends};
use super::{Client, Event, ProtocolError, Receiving, Sending};
use crate::client::{Bodies, HeadSize, MAX_INTERIM};
use crate::http::{BodyLength, Fields, ResponseHead, Version};

impl Client {
    /// Takes bytes from the server.
    pub fn receive(&mut self, input: &[u8]) {
        self.note_answer(input);
        let all = self.partial.join(input);
        match self.advance(&all) {
            Ok(used) => self.partial.keep(all, used),
            Err(error) => self.fail(error),
        }
    }

    /// Takes bytes from the server, and leaves the buffer empty. Where they are many for its capacity and all of a body, but
    /// for a head before them, the memory goes along with them and the buffer has none left.
    pub fn receive_buffer(&mut self, buffer: &mut Vec<u8>) {
        self.note_answer(buffer);
        let is_full = buffer.len() >= buffer.capacity() / 2;
        let in_place =
            is_full && self.bodies == Bodies::Delivered && self.partial.bytes().is_empty();
        if !in_place {
            self.receive(buffer);
        } else if let Err(error) = self.advance_buffer(buffer) {
            self.fail(error);
        }
        buffer.clear();
    }

    /// Takes the end of the server's bytes. It ends a body without a length only where it is `whole`: with TLS, where the
    /// server has said so before it closed.
    pub fn receive_eof(&mut self, whole: bool) {
        match self.receiving {
            Receiving::Over => {}
            Receiving::Idle => {
                self.receiving = Receiving::Over;
                self.events.push_back(Event::Eof);
            }
            Receiving::UntilClose | Receiving::Tunnel if whole => {
                self.end_response();
                self.receiving = Receiving::Over;
            }
            Receiving::Head if self.interim == 0 && self.parser.is_fresh() => {
                self.fail(ProtocolError::NoResponse);
            }
            _ => self.fail(ProtocolError::Truncated),
        }
    }

    fn note_answer(&mut self, input: &[u8]) {
        self.has_answer |= !input.is_empty() && matches!(self.receiving, Receiving::Head);
    }

    /// Consumes bytes; returns how many. The rest is a part of a head.
    fn advance(&mut self, input: &[u8]) -> Result<usize, ProtocolError> {
        let mut at = self.advance_heads(input)?;
        while at < input.len() {
            let rest = &input[at..];
            at += match &mut self.receiving {
                Receiving::Over => rest.len(),
                Receiving::Idle => return Err(self.surplus),
                Receiving::Head => return Ok(at),
                Receiving::Length { left } => {
                    let used = (*left).min(rest.len() as u64) as usize;
                    *left -= used as u64;
                    let done = *left == 0;
                    self.data(&rest[..used]);
                    if done {
                        self.end_response();
                    }
                    used
                }
                Receiving::Chunked(decoder, trailers) => {
                    let mut data = std::mem::take(&mut self.scratch);
                    let result = decoder.decode(rest, &self.settings, &mut data, trailers);
                    let result = result.map_err(ProtocolError::Body);
                    self.chunks(data, result.is_ok());
                    result?
                }
                Receiving::UntilClose | Receiving::Tunnel => {
                    self.data(rest);
                    rest.len()
                }
            };
        }
        Ok(at)
    }

    /// Consumes the heads at the start of the input; returns how many bytes.
    fn advance_heads(&mut self, input: &[u8]) -> Result<usize, ProtocolError> {
        let mut at = 0;
        while at < input.len() && matches!(self.receiving, Receiving::Head) {
            let (used, done) = self.parser.advance(&input[at..])?;
            at += used;
            if !done {
                break;
            }
            let spare = self.spares.take();
            let parsed = self.parser.take(spare, &self.settings)?;
            self.head(parsed)?;
        }
        Ok(at)
    }

    /// Consumes a whole buffer like [`Self::advance`], but may keep its memory.
    fn advance_buffer(&mut self, buffer: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let from = self.advance_heads(buffer)?;
        let body_bytes = (buffer.len() - from) as u64;
        match &mut self.receiving {
            Receiving::Chunked(decoder, trailers) => {
                let result = decoder.decode_in_place(buffer, from, &self.settings, trailers);
                let result = result.map_err(ProtocolError::Body);
                let mut data = std::mem::take(buffer);
                if data.len() < data.capacity() / 2 {
                    data.shrink_to_fit();
                }
                self.chunks(data, result.is_ok());
                match result? {
                    0 => Ok(()),
                    _ => Err(self.surplus),
                }
            }
            Receiving::Length { left } if *left >= body_bytes => {
                *left -= body_bytes;
                let done = *left == 0;
                buffer.drain(..from);
                self.own_data(std::mem::take(buffer));
                if done {
                    self.end_response();
                }
                Ok(())
            }
            Receiving::UntilClose | Receiving::Tunnel => {
                buffer.drain(..from);
                self.own_data(std::mem::take(buffer));
                Ok(())
            }
            _ => {
                let used = self.advance(&buffer[from..])?;
                self.partial.keep((&buffer[from..]).into(), used);
                Ok(())
            }
        }
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
        let unasked = !self.request_info.upgrade || self.sending != Sending::Ended;
        if status == 101 && unasked {
            return Err(ProtocolError::UnaskedUpgrade);
        }
        if (100..200).contains(&status) && status != 101 {
            return self.interim(head, version);
        }
        let tunnel =
            status == 101 || (self.request_info.is_connect && (200..300).contains(&status));
        let ends = ends(&head, self.request_info.is_head);
        self.surplus = match head.body {
            BodyLength::Length(_) => ProtocolError::DataAfterLength,
            BodyLength::Unknown => ProtocolError::DataAfterChunks,
            BodyLength::None => ProtocolError::Unasked,
        };
        let size = HeadSize {
            wire_bytes: size_bytes,
            text_bytes: size_bytes,
        };
        self.keep &= keep && ends != Ends::AtClose && !tunnel;
        self.body_bytes = 0;
        self.events.push_back(Event::Head { stream, head, size });
        if tunnel {
            self.events.push_back(Event::Upgraded(stream));
            self.receiving = Receiving::Tunnel;
            self.sending = Sending::Tunnel;
            return Ok(());
        }
        match ends {
            Ends::Now => self.end_response(),
            Ends::After(left) => self.receiving = Receiving::Length { left },
            Ends::Chunked => {
                self.receiving = Receiving::Chunked(ChunkedDecoder::new(), Fields::default());
            }
            Ends::AtClose => self.receiving = Receiving::UntilClose,
        }
        Ok(())
    }

    fn interim(&mut self, head: Box<ResponseHead>, version: Version) -> Result<(), ProtocolError> {
        if head.status == 103 && version == Version::Http10 {
            return Err(ProtocolError::EarlyHintsInHttp10);
        }
        self.interim += 1;
        if self.interim > MAX_INTERIM {
            return Err(ProtocolError::TooManyInterim);
        }
        let stream = self.stream;
        self.events.push_back(Event::Interim { stream, head });
        Ok(())
    }

    fn data(&mut self, bytes: &[u8]) {
        self.body_bytes += bytes.len() as u64;
        if bytes.is_empty() || self.bodies == Bodies::Counted {
            return;
        }
        match self.events.back_mut() {
            Some(Event::Data { bytes: last, .. }) => last.extend_from_slice(bytes),
            _ => self.events.push_back(Event::Data {
                stream: self.stream,
                bytes: bytes.to_vec(),
            }),
        }
    }

    /// Bytes of a body in an owned buffer, whose memory is kept where they are not reported.
    fn own_data(&mut self, mut bytes: Vec<u8>) {
        self.body_bytes += bytes.len() as u64;
        if !bytes.is_empty() && self.bodies == Bodies::Delivered {
            let stream = self.stream;
            self.events.push_back(Event::Data { stream, bytes });
        } else {
            bytes.clear();
            self.scratch = bytes;
        }
    }

    /// Takes what a chunked body was decoded to, and its end.
    fn chunks(&mut self, data: Vec<u8>, is_good: bool) {
        self.own_data(data);
        let Receiving::Chunked(decoder, trailers) = &mut self.receiving else {
            return;
        };
        if !is_good || !decoder.is_done() {
            return;
        }
        let fields = std::mem::take(trailers);
        if !fields.is_empty() && self.bodies == Bodies::Delivered {
            let stream = self.stream;
            self.events.push_back(Event::Trailers { stream, fields });
        }
        self.end_response();
    }

    fn end_response(&mut self) {
        self.receiving = Receiving::Idle;
        self.events.push_back(Event::End {
            stream: self.stream,
            body_bytes: self.body_bytes,
        });
    }

    fn fail(&mut self, error: ProtocolError) {
        self.close();
        self.events.push_back(Event::Failed(error));
    }
}
