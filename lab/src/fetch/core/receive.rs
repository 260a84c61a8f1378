//! The receiving side: reads, TLS records, events of the engine.

use std::io;

use sys::socket;
use tls::ClientConn;

use super::{Core, MAX_READS, MAX_RECEIVED_BYTES, Stage};
use crate::client::{failed, now_ns, scheme};
use crate::fetch::event::Event;
use crate::fetch::failure::{Failure, FailureCause};
use crate::fetch::record::{Read, TlsRecord};

impl Core {
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        self.has_more = true;
        for _ in 0..READS_AT_ONCE {
            self.choose_acks();
            let Some(fd) = self.transport.socket() else {
                self.has_more = false;
                return Ok(());
            };
            match socket::receive(fd, buffer) {
                Ok(0) => {
                    self.has_more = false;
                    return self.handle_close();
                }
                Ok(len) => {
                    let now = now_ns();
                    self.note_read(now, len)?;
                    self.take(&mut buffer[..len], now)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.has_more = false;
                    return Ok(());
                }
                Err(error) => {
                    return Err(Failure::new(FailureCause::Closed, failed("read", &error)));
                }
            }
        }
        Ok(())
    }

    fn note_read(&mut self, now: u64, len: usize) -> Result<(), Failure> {
        let record = &mut self.record;
        record.received_bytes += len as u64;
        if record.received_bytes > MAX_RECEIVED_BYTES {
            let most = MAX_RECEIVED_BYTES >> 20;
            let message = format!("the server sent more than {most} MiB on one connection");
            return Err(Failure::new(FailureCause::Limit, message));
        }
        if record.reads.len() >= MAX_READS {
            let message = format!("the server sent its bytes in more than {MAX_READS} pieces");
            return Err(Failure::new(FailureCause::Limit, message));
        }
        record.reads.push(Read {
            at: now,
            bytes: len as u64,
        });
        Ok(())
    }

    fn note_record(&mut self, record: TlsRecord) -> Result<(), Failure> {
        if self.record.tls_records.len() >= MAX_READS {
            let message = format!("the server sent more than {MAX_READS} TLS records");
            return Err(Failure::new(FailureCause::Limit, message));
        }
        self.record.tls_records.push(record);
        Ok(())
    }

    /// Processes received bytes. During the TLS handshake they go to TLS record by record, so that its last byte is
    /// known.
    fn take(&mut self, mut bytes: &mut [u8], now: u64) -> Result<(), Failure> {
        let is_first = self.record.reads.len() == 1;
        if self.transport.tls.is_none() {
            if let Some(why) = scheme::instead_of_plain(bytes).filter(|_| is_first) {
                return Err(Failure::new(FailureCause::Protocol, why));
            }
            if let Some(engine) = self.exchanges.engine() {
                engine.receive(bytes);
            }
            return self.absorb(now);
        }
        if let Some(why) = scheme::instead_of_tls(bytes).filter(|_| is_first) {
            return Err(Failure::new(FailureCause::Tls, why));
        }
        while !bytes.is_empty() {
            let (len, ended) = self.boundaries.advance(bytes);
            let (piece, rest) = bytes.split_at_mut(len);
            bytes = rest;
            if let Some((content_type, bytes)) = ended {
                self.note_record(TlsRecord {
                    at: now,
                    bytes,
                    content_type,
                })?;
            }
            self.decrypt(piece, bytes.len(), now)?;
        }
        self.absorb(now)
    }

    /// Decrypts bytes of a record; `left` bytes of the same read follow them.
    fn decrypt(&mut self, piece: &mut [u8], left: usize, now: u64) -> Result<(), Failure> {
        let Some(tls) = &mut self.transport.tls else {
            return Ok(());
        };
        let mut plain = Vec::new();
        let result = tls.receive(piece, &mut |bytes| plain.extend_from_slice(bytes));
        let tickets = tls.tickets();
        if let Err(fault) = result {
            // The alert is for the server; that it may not arrive changes nothing.
            let alert = tls.take_output();
            if let Some(fd) = self.transport.socket() {
                let _ = socket::send(fd, &alert, false);
            }
            return Err(Failure::of_tls(&fault));
        }
        if self.stage == Stage::Handshake && tls.is_open() {
            self.handshaken(left, now)?;
        }
        if tickets > self.record.tickets {
            self.record.tickets = tickets;
            if let (Some(options), Some(protocol)) = (&self.dial.tls, self.record.protocol) {
                options.sessions.ticket_came(&self.dial.url, protocol);
            }
        }
        if let Some(engine) = self.exchanges.engine().filter(|_| !plain.is_empty()) {
            engine.receive(&plain);
        }
        Ok(())
    }

    fn absorb(&mut self, now: u64) -> Result<(), Failure> {
        match self.exchanges.absorb(now) {
            Some((cause, why)) => {
                let cause = cause.unwrap_or(FailureCause::Protocol);
                Err(Failure::new(cause, why))
            }
            None => Ok(()),
        }
    }

    /// Handles the close of the server.
    fn handle_close(&mut self) -> Result<(), Failure> {
        let now = now_ns();
        self.record.closed = Some(now);
        if self.stage == Stage::Handshake {
            let message = "the server closed the connection during the TLS handshake";
            return Err(Failure::new(FailureCause::Tls, message));
        }
        let tls = self.transport.tls.as_ref();
        let whole = tls.is_none_or(ClientConn::peer_closed);
        if let Some(engine) = self.exchanges.engine() {
            engine.receive_eof(whole);
        }
        if let Some((cause, why)) = self.exchanges.absorb(now) {
            let cause = cause.unwrap_or(FailureCause::Closed);
            return Err(Failure::new(cause, why));
        }
        self.ask_kernel();
        self.stage = Stage::Closed;
        self.transport.close();
        let why = "the server closed the connection";
        self.exchanges
            .fail(|_| Failure::new(FailureCause::Closed, why));
        self.events.push_back(Event::Closed(None));
        Ok(())
    }
}

/// Reads after which others have their turn.
const READS_AT_ONCE: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Url;
    use crate::fetch::Dial;
    use std::net::TcpListener;
    use std::time::Duration;

    #[test]
    fn reads_and_records_are_limited() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let url = Url::parse(&format!("http://{address}/")).expect("a URL");
        let dial = Dial::new(&url, address, Duration::from_secs(1));
        let mut core = Core::dial(&dial).expect("it listens");
        let record = TlsRecord {
            at: 1,
            bytes: 1,
            content_type: 23,
        };
        core.record.reads = vec![Read { at: 1, bytes: 1 }; MAX_READS - 1];
        core.record.tls_records = vec![record; MAX_READS - 1];
        assert!(core.note_read(2, 1).is_ok() && core.note_record(record).is_ok());
        let failures = [core.note_read(3, 1), core.note_record(record)];
        for failure in failures.map(|result| result.expect_err("one too many")) {
            assert_eq!(failure.cause, FailureCause::Limit);
        }
    }
}
