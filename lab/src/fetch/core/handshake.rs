//! From the first packet to an open connection.
//!
//! Source: RFC 8446 section 2, RFC 7301.

use tls::{ClientConn, EarlyData};

use super::{Core, Stage, cannot_connect};
use crate::client::{Protocol, now_ns};
use crate::fetch::event::Event;
use crate::fetch::failure::{Failure, FailureCause};
use crate::fetch::record::Handshake;

impl Core {
    pub(super) fn finish_connect(&mut self) -> Result<(), Failure> {
        let connected = self.transport.connected();
        connected.map_err(|error| cannot_connect(&self.dial, &error))?;
        self.record.opened.1 = now_ns();
        let Some(options) = &self.dial.tls else {
            let first = self.dial.protocols.first();
            self.open(first.copied().unwrap_or(Protocol::H1));
            return Ok(());
        };
        if options.early_data && self.early_protocol().is_some() {
            self.stage = Stage::Waiting;
            return Ok(());
        }
        self.begin_tls(None)
    }

    /// Returns the protocol for early data, if there is a session ticket of it.
    pub(super) fn early_protocol(&self) -> Option<Protocol> {
        let sessions = &self.dial.tls.as_ref()?.sessions;
        let known = sessions.protocol(&self.dial.url);
        known.filter(|protocol| self.dial.protocols.contains(protocol))
    }

    /// Makes the ClientHello, with early data of the protocol `early` if set.
    pub(super) fn begin_tls(&mut self, early: Option<Protocol>) -> Result<(), Failure> {
        let Some((config, name)) = self.tls_settings.clone() else {
            return Ok(());
        };
        self.tls_began_ns = now_ns();
        if let Some(protocol) = early.filter(|_| self.exchanges.are_safe()) {
            self.exchanges.start(protocol, self.dial.spdy_level);
            self.exchanges.begin();
            if let Some(engine) = self.exchanges.engine() {
                engine.transmit(&mut self.early);
            }
        }
        let tls = ClientConn::with_early_data(&config, name, &self.early);
        self.transport.tls = Some(tls.map_err(|fault| Failure::of_tls(&fault))?);
        self.stage = Stage::Handshake;
        Ok(())
    }

    fn open(&mut self, protocol: Protocol) {
        self.stage = Stage::Open;
        self.record.protocol = Some(protocol);
        if self.exchanges.protocol() != Some(protocol) {
            self.exchanges.start(protocol, self.dial.spdy_level);
        }
        self.events.push_back(Event::Open(protocol));
        self.ask_kernel();
    }

    /// The handshake is complete.
    pub(super) fn handshaken(&mut self, left: usize, now: u64) -> Result<(), Failure> {
        let Some(tls) = &self.transport.tls else {
            return Ok(());
        };
        let early = tls.early_data();
        let alpn = tls
            .alpn()
            .map(|name| String::from_utf8_lossy(name).into_owned());
        let protocol = Protocol::of_alpn(tls.alpn())
            .filter(|protocol| self.dial.protocols.contains(protocol))
            .ok_or_else(|| {
                let names: Vec<_> = self.dial.protocols.iter().map(|one| one.name()).collect();
                let message = format!("the server chose none of {}", names.join(" and "));
                Failure::new(FailureCause::Tls, message)
            })?;
        self.record.handshake = Some(Handshake {
            from: self.tls_began_ns,
            to: now,
            version: tls.version().unwrap_or(rustls::ProtocolVersion::TLSv1_2),
            alpn,
            resumed: tls.is_resumed(),
            retried: tls.is_retried(),
            early_data_sent: early != EarlyData::NotSent,
            early_data_accepted: matches!(early, EarlyData::Accepted(_)),
            certificates: tls.certificates().iter().map(|one| one.to_vec()).collect(),
            received_bytes: self.record.received_bytes - left as u64,
        });
        let guessed = self.exchanges.protocol();
        let accepted = match early {
            EarlyData::Accepted(bytes) if guessed == Some(protocol) => bytes,
            // RFC 8446 section 4.2.10: early data is accepted only with the protocol of its ticket.
            EarlyData::Accepted(_) => {
                let message = "the server accepted early data but chose another protocol";
                return Err(Failure::new(FailureCause::Tls, message));
            }
            _ => 0,
        };
        if accepted < self.early.len() {
            self.exchanges.unmark_sent();
        }
        // The engine has made these bytes already; one of another protocol makes its own.
        let early = std::mem::take(&mut self.early);
        if guessed == Some(protocol) {
            self.transport.plain.extend_from_slice(&early[accepted..]);
        }
        self.open(protocol);
        Ok(())
    }
}
