//! Responses, from records that arrive in any pieces.
//!
//! A body that fills its buffer is handed on in the memory it was read into, after record headers and padding have been
//! squeezed out of it.
//!
//! Source: FastCGI Specification 1.0 sections 5.3 to 5.5, RFC 3875 section 6.

use super::record::{END_REQUEST_BYTES, Part, RecordType};
use super::{Client, Event, Left, ProtocolError, Receiving, STDERR_BYTES};
use crate::cgi;
use crate::client::{HeadSize, hand_over};
use crate::http::BodyLength;

impl Client {
    /// Takes bytes from the application.
    pub fn receive(&mut self, input: &[u8]) {
        self.note_answer(input);
        if let Err(error) = self.advance(input, false) {
            self.fail(error);
        }
    }

    /// Takes bytes from the application, and leaves the buffer empty. Where they are many for its capacity and mostly of a
    /// body, the memory goes along with them and the buffer has none left.
    pub fn receive_buffer(&mut self, buffer: &mut Vec<u8>) {
        self.note_answer(buffer);
        if buffer.len() < buffer.capacity() / 2 {
            self.receive(buffer);
        } else if let Err(error) = self.advance_buffer(buffer) {
            self.fail(error);
        }
        buffer.clear();
    }

    /// Takes the end of the application's bytes.
    pub fn receive_eof(&mut self) {
        match self.receiving {
            Receiving::Over => {}
            Receiving::Idle | Receiving::Dropped => {
                self.receiving = Receiving::Over;
                self.keep = false;
                self.events.push_back(Event::Eof);
            }
            Receiving::StdoutEnded | Receiving::Body(Left::Bytes(0) | Left::NoBody) => {
                // END_REQUEST is missing, but not a byte of the response.
                self.tell_note();
                self.end_response();
                self.receiving = Receiving::Over;
                self.keep = false;
            }
            Receiving::Head if !self.has_answer => self.fail(ProtocolError::NoResponse),
            Receiving::Head | Receiving::Body(_) => self.fail(ProtocolError::Truncated),
        }
    }

    fn note_answer(&mut self, input: &[u8]) {
        self.has_answer |= !input.is_empty() && self.receiving == Receiving::Head;
    }

    /// Consumes bytes: all of them, or up to the first part behind a head; returns how many.
    fn advance(&mut self, input: &[u8], only_head: bool) -> Result<usize, ProtocolError> {
        let mut at = 0;
        while at < input.len() {
            match self.receiving {
                Receiving::Over | Receiving::Dropped => return Ok(input.len()),
                // Only padding of END_REQUEST may follow.
                Receiving::Idle if self.decoder.is_in_header() => {
                    return Err(ProtocolError::Unasked);
                }
                Receiving::Body(_) if only_head => return Ok(at),
                _ => {}
            }
            let (used, part) = self.decoder.decode(&input[at..])?;
            at += used;
            match part {
                Part::Nothing => {}
                Part::Begin(of, len) => self.begin(of, len)?,
                Part::Content(RecordType::Stdout, bytes, _) => self.stdout(bytes)?,
                Part::Content(RecordType::Stderr, bytes, left) => self.stderr(bytes, left),
                Part::Content(RecordType::EndRequest, bytes, left) => {
                    self.end_request(bytes, left)?;
                }
            }
        }
        Ok(at)
    }

    /// Consumes a whole buffer like [`Self::advance`], but may keep its memory.
    fn advance_buffer(&mut self, buffer: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let mut at = self.advance(buffer, true)?;
        let mut len = 0;
        while let Receiving::Body(left) = self.receiving {
            let before = self.decoder;
            let Some((from, to)) = self.decoder.stdout(&buffer[at..]) else {
                break;
            };
            let bytes = (to - from) as u64;
            self.receiving = match left {
                Left::Unknown => Receiving::Body(left),
                Left::Bytes(left) if left >= bytes => Receiving::Body(Left::Bytes(left - bytes)),
                _ => {
                    // Not all of it is of the body.
                    self.decoder = before;
                    break;
                }
            };
            buffer.copy_within(at + from..at + to, len);
            len += to - from;
            at += to;
        }
        if len == 0 {
            return self.advance(&buffer[at..], false).map(drop);
        }
        let mut rest = std::mem::take(&mut self.scratch);
        rest.extend_from_slice(&buffer[at..]);
        buffer.truncate(len);
        self.own_data(std::mem::take(buffer));
        let result = self.advance(&rest, false);
        rest.clear();
        self.scratch = rest;
        result.map(drop)
    }

    /// Takes the header of a record.
    fn begin(&mut self, of: RecordType, len: u16) -> Result<(), ProtocolError> {
        match of {
            RecordType::EndRequest if len != END_REQUEST_BYTES => {
                Err(ProtocolError::EndRequestLength(len))
            }
            RecordType::Stdout if self.receiving == Receiving::StdoutEnded => {
                Err(ProtocolError::StdoutAfterEnd)
            }
            RecordType::Stdout if len == 0 => self.end_stdout(),
            _ => Ok(()),
        }
    }

    fn end_stdout(&mut self) -> Result<(), ProtocolError> {
        if let Receiving::Head | Receiving::Body(Left::Bytes(1..)) = self.receiving {
            return Err(ProtocolError::StdoutClosed);
        }
        // END_REQUEST is waited for on connections that are not kept, too: an application that writes it to one that is
        // closed gets a signal.
        self.receiving = Receiving::StdoutEnded;
        Ok(())
    }

    /// Takes content of STDOUT.
    fn stdout(&mut self, mut bytes: &[u8]) -> Result<(), ProtocolError> {
        if self.receiving == Receiving::Head {
            let all = self.partial.join(bytes);
            let (used, done) = self.parser.advance(&all).map_err(ProtocolError::Head)?;
            if !done {
                self.partial.keep(all, used);
                return Ok(());
            }
            // A head that is complete has consumed all that was held.
            let behind = all.len() - used;
            bytes = &bytes[bytes.len() - behind..];
            self.head()?;
        }
        let Receiving::Body(left) = self.receiving else {
            return Ok(());
        };
        match left {
            _ if bytes.is_empty() => {}
            Left::NoBody => {}
            Left::Unknown => self.data(bytes),
            Left::Bytes(left) => {
                let most = usize::try_from(left).unwrap_or(usize::MAX);
                let used = most.min(bytes.len());
                self.data(&bytes[..used]);
                self.receiving = Receiving::Body(Left::Bytes(left - used as u64));
                if used < bytes.len() {
                    self.drop_rest();
                }
            }
        }
        Ok(())
    }

    /// Takes the head that is complete.
    fn head(&mut self) -> Result<(), ProtocolError> {
        let spare = self.spares.take();
        let parsed = self.parser.take(spare).map_err(ProtocolError::Head)?;
        let (head, size_bytes) = (parsed.head, parsed.size_bytes);
        if head.status < 200 {
            // STDOUT is no tunnel.
            return Err(ProtocolError::Head(cgi::ProtocolError::UnaskedUpgrade));
        }
        let left = match (head.status, head.body) {
            _ if self.is_head => Left::NoBody,
            (204 | 304, _) => Left::Bytes(0),
            (_, BodyLength::Length(bytes)) => Left::Bytes(bytes),
            _ => Left::Unknown,
        };
        self.receiving = Receiving::Body(left);
        self.events.push_back(Event::Head {
            stream: self.stream,
            head,
            size: HeadSize {
                wire_bytes: size_bytes,
                text_bytes: size_bytes,
            },
        });
        Ok(())
    }

    /// Takes content of STDERR. It is reported a record at a time, so that what one write of the application said stays
    /// together.
    fn stderr(&mut self, bytes: &[u8], left: u16) {
        let room = (STDERR_BYTES as u64).saturating_sub(self.stderr_bytes);
        let told = bytes.len().min(room as usize);
        self.stderr_bytes += bytes.len() as u64;
        self.note.extend_from_slice(&bytes[..told]);
        if left == 0 {
            self.tell_note();
        }
    }

    fn tell_note(&mut self) {
        if !self.note.is_empty() {
            let mut text = Vec::new();
            hand_over(&mut self.note, &mut text);
            let stream = self.stream;
            self.events.push_back(Event::Note { stream, text });
        }
    }

    /// Takes content of END_REQUEST: application status, protocol status, reserved.
    fn end_request(&mut self, bytes: &[u8], left: u16) -> Result<(), ProtocolError> {
        let from = usize::from(END_REQUEST_BYTES) - usize::from(left) - bytes.len();
        let status = STATUS_AT.checked_sub(from).and_then(|at| bytes.get(at));
        if let Some(&status) = status {
            match self.receiving {
                Receiving::Head => return Err(ProtocolError::EndRequestInHead(status)),
                Receiving::Body(Left::Bytes(1..)) if status == REQUEST_COMPLETE => {
                    return Err(ProtocolError::RequestClosed);
                }
                Receiving::Body(Left::Bytes(1..) | Left::Unknown) if status != REQUEST_COMPLETE => {
                    return Err(ProtocolError::Rejected(status));
                }
                // Something else has said that the response is whole.
                _ => self.keep &= status == REQUEST_COMPLETE,
            }
        }
        if left == 0 {
            self.end_response();
            self.receiving = Receiving::Idle;
        }
        Ok(())
    }

    fn data(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.body_bytes += bytes.len() as u64;
        match self.events.back_mut() {
            Some(Event::Data { bytes: last, .. }) => last.extend_from_slice(bytes),
            _ => self.events.push_back(Event::Data {
                stream: self.stream,
                bytes: bytes.to_vec(),
            }),
        }
    }

    /// Bytes of a body in memory of their own.
    fn own_data(&mut self, mut bytes: Vec<u8>) {
        self.body_bytes += bytes.len() as u64;
        // Many small records, or much padding, leave little of a buffer.
        if bytes.len() < bytes.capacity() / 2 {
            bytes.shrink_to_fit();
        }
        let stream = self.stream;
        self.events.push_back(Event::Data { stream, bytes });
    }

    fn end_response(&mut self) {
        self.events.push_back(Event::End {
            stream: self.stream,
            body_bytes: self.body_bytes,
        });
    }

    /// The response is complete, though more may come of it.
    fn drop_rest(&mut self) {
        self.end_response();
        self.receiving = Receiving::Dropped;
        self.keep = false;
    }

    fn fail(&mut self, error: ProtocolError) {
        self.tell_note();
        self.close();
        self.events.push_back(Event::Failed(error));
    }
}

/// Where the protocol status is in the content of END_REQUEST.
const STATUS_AT: usize = 4;
/// The protocol status of a request that was served.
const REQUEST_COMPLETE: u8 = 0;
