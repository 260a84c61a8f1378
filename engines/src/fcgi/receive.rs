//! Responses, from records that arrive in any pieces.
//!
//! A body that fills its buffer is passed on in its receive buffer, after record headers and padding were removed
//! in place.
//!
//! Source: FastCGI Specification 1.0 sections 5.3 to 5.5, RFC 3875 section 6.

use super::record::{Decoder, END_REQUEST_BYTES, Part, RecordType};
use super::{Client, Event, FastCgi, Left, ProtocolError, Receiving, STDERR_BYTES, Sending};
use crate::cgi;
use crate::client::{Phase, Protocol, hand_over};
use crate::http::BodyLength;

impl Protocol for FastCgi {
    type ProtocolError = ProtocolError;

    fn phase(&self) -> Phase {
        match self.receiving {
            Receiving::Idle => Phase::Idle,
            Receiving::Head => Phase::Head,
            Receiving::Body(_) | Receiving::StdoutEnded => Phase::Body,
            Receiving::Dropped | Receiving::Over => Phase::Over,
        }
    }

    fn is_sent(&self) -> bool {
        self.sending == Sending::Ended
    }

    fn is_whole(&self) -> bool {
        self.decoder.is_between_records()
    }

    fn advance(client: &mut Client, input: &[u8]) -> Result<usize, ProtocolError> {
        client.decode(input, false)
    }

    fn advance_buffer(client: &mut Client, buffer: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let mut at = client.decode(buffer, true)?;
        let mut len = 0;
        while let Receiving::Body(left) = client.protocol.receiving {
            let before = client.protocol.decoder;
            let Some((from, to)) = client.protocol.decoder.stdout(&buffer[at..]) else {
                break;
            };
            let bytes = (to - from) as u64;
            client.protocol.receiving = match left {
                Left::Unknown => Receiving::Body(left),
                Left::Bytes(left) if left >= bytes => Receiving::Body(Left::Bytes(left - bytes)),
                _ => {
                    // Not all of it is of the body.
                    client.protocol.decoder = before;
                    break;
                }
            };
            buffer.copy_within(at + from..at + to, len);
            len += to - from;
            at += to;
        }
        if len == 0 {
            return client.decode(&buffer[at..], false).map(drop);
        }
        let mut rest = std::mem::take(&mut client.protocol.scratch);
        rest.extend_from_slice(&buffer[at..]);
        buffer.truncate(len);
        client.own_data(std::mem::take(buffer));
        let result = client.decode(&rest, false);
        rest.clear();
        client.protocol.scratch = rest;
        result.map(drop)
    }

    fn reopen(&mut self) {
        self.receiving = Receiving::Idle;
    }

    fn close(client: &mut Client) {
        client.tell_note();
        let own = &mut client.protocol;
        own.receiving = Receiving::Over;
        own.sending = Sending::Ended;
        own.decoder = Decoder::default();
        own.partial.clear();
    }
}

impl Client {
    /// Takes the end of the application's bytes.
    pub fn receive_eof(&mut self) {
        match self.protocol.receiving {
            Receiving::Over => {}
            Receiving::Idle | Receiving::Dropped => {
                self.protocol.receiving = Receiving::Over;
                self.deliver_eof();
            }
            Receiving::StdoutEnded | Receiving::Body(Left::Bytes(0) | Left::NoBody) => {
                // END_REQUEST is missing, but not a byte of the response.
                self.tell_note();
                self.deliver_end();
                self.protocol.receiving = Receiving::Over;
                self.keep = false;
            }
            Receiving::Head if !self.has_answer => self.fail(ProtocolError::NoResponse),
            Receiving::Head | Receiving::Body(_) => self.fail(ProtocolError::Truncated),
        }
    }

    /// Consumes bytes: all of them, or up to the first part behind a head; returns how many.
    fn decode(&mut self, input: &[u8], only_head: bool) -> Result<usize, ProtocolError> {
        let mut at = 0;
        while at < input.len() {
            match self.protocol.receiving {
                Receiving::Over | Receiving::Dropped => return Ok(input.len()),
                // Only padding of END_REQUEST may follow.
                Receiving::Idle if self.protocol.decoder.is_in_header() => {
                    return Err(ProtocolError::Unasked);
                }
                Receiving::Body(_) if only_head => return Ok(at),
                _ => {}
            }
            let (used, part) = self.protocol.decoder.decode(&input[at..])?;
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

    /// Takes the header of a record.
    fn begin(&mut self, of: RecordType, len: u16) -> Result<(), ProtocolError> {
        match of {
            RecordType::EndRequest if len != END_REQUEST_BYTES => {
                Err(ProtocolError::EndRequestLength(len))
            }
            RecordType::Stdout if self.protocol.receiving == Receiving::StdoutEnded => {
                Err(ProtocolError::StdoutAfterEnd)
            }
            RecordType::Stdout if len == 0 => self.end_stdout(),
            _ => Ok(()),
        }
    }

    fn end_stdout(&mut self) -> Result<(), ProtocolError> {
        if let Receiving::Head | Receiving::Body(Left::Bytes(1..)) = self.protocol.receiving {
            return Err(ProtocolError::StdoutClosed);
        }
        // END_REQUEST is awaited on connections that are not kept, too: an application that writes it to a closed
        // connection gets a signal.
        self.protocol.receiving = Receiving::StdoutEnded;
        Ok(())
    }

    /// Takes content of STDOUT.
    fn stdout(&mut self, mut bytes: &[u8]) -> Result<(), ProtocolError> {
        if self.protocol.receiving == Receiving::Head {
            let all = self.protocol.partial.join(bytes);
            let (used, done) = self
                .protocol
                .parser
                .advance(&all)
                .map_err(ProtocolError::Head)?;
            if !done {
                self.protocol.partial.keep(all, used);
                return Ok(());
            }
            // A complete head has consumed all retained bytes.
            let behind = all.len() - used;
            bytes = &bytes[bytes.len() - behind..];
            self.head()?;
        }
        let Receiving::Body(left) = self.protocol.receiving else {
            return Ok(());
        };
        match left {
            _ if bytes.is_empty() => {}
            Left::NoBody => {}
            Left::Unknown => self.deliver_data(bytes),
            Left::Bytes(left) => {
                let most = usize::try_from(left).unwrap_or(usize::MAX);
                let used = most.min(bytes.len());
                self.deliver_data(&bytes[..used]);
                self.protocol.receiving = Receiving::Body(Left::Bytes(left - used as u64));
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
        let parsed = self
            .protocol
            .parser
            .take(spare)
            .map_err(ProtocolError::Head)?;
        let (head, size_bytes) = (parsed.head, parsed.size_bytes);
        if head.status < 200 {
            // STDOUT is no tunnel.
            return Err(ProtocolError::Head(cgi::ProtocolError::UnaskedUpgrade));
        }
        let left = match (head.status, head.body) {
            _ if self.protocol.is_head => Left::NoBody,
            (204 | 304, _) => Left::Bytes(0),
            (_, BodyLength::Length(bytes)) => Left::Bytes(bytes),
            _ => Left::Unknown,
        };
        self.protocol.receiving = Receiving::Body(left);
        self.deliver_head(head, size_bytes);
        Ok(())
    }

    /// Takes content of STDERR. It is reported a record at a time, so that one write of the application stays
    /// together.
    fn stderr(&mut self, bytes: &[u8], left: u16) {
        let room = (STDERR_BYTES as u64).saturating_sub(self.protocol.stderr_bytes);
        let told = bytes.len().min(room as usize);
        self.protocol.stderr_bytes += bytes.len() as u64;
        self.protocol.note.extend_from_slice(&bytes[..told]);
        if left == 0 {
            self.tell_note();
        }
    }

    fn tell_note(&mut self) {
        if !self.protocol.note.is_empty() {
            let mut text = Vec::new();
            hand_over(&mut self.protocol.note, &mut text);
            let stream = self.stream;
            self.events.push_back(Event::Note { stream, text });
        }
    }

    /// Takes content of END_REQUEST: application status, protocol status, reserved.
    fn end_request(&mut self, bytes: &[u8], left: u16) -> Result<(), ProtocolError> {
        let from = usize::from(END_REQUEST_BYTES) - usize::from(left) - bytes.len();
        let status = STATUS_AT.checked_sub(from).and_then(|at| bytes.get(at));
        if let Some(&status) = status {
            match self.protocol.receiving {
                Receiving::Head => return Err(ProtocolError::EndRequestInHead(status)),
                Receiving::Body(Left::Bytes(1..)) if status == REQUEST_COMPLETE => {
                    return Err(ProtocolError::RequestClosed);
                }
                Receiving::Body(Left::Bytes(1..) | Left::Unknown) if status != REQUEST_COMPLETE => {
                    return Err(ProtocolError::Rejected(status));
                }
                // The response was already known to be complete.
                _ => self.keep &= status == REQUEST_COMPLETE,
            }
        }
        if left == 0 {
            self.deliver_end();
            self.protocol.receiving = Receiving::Idle;
        }
        Ok(())
    }

    /// Bytes of a body in memory of their own.
    fn own_data(&mut self, mut bytes: Vec<u8>) {
        // With many small records, or much padding, a small part of the buffer remains.
        if bytes.len() < bytes.capacity() / 2 {
            bytes.shrink_to_fit();
        }
        self.deliver_owned(bytes);
    }

    /// The response is complete, though more bytes of it may arrive.
    fn drop_rest(&mut self) {
        self.deliver_end();
        self.protocol.receiving = Receiving::Dropped;
        self.keep = false;
    }
}

/// Offset of the protocol status in the content of END_REQUEST.
const STATUS_AT: usize = 4;
/// The protocol status of a served request.
const REQUEST_COMPLETE: u8 = 0;
