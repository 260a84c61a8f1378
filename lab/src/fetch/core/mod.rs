//! One connection that does not block: socket, TLS, exchanges, and the record of events.
//!
//! [`Core::dial`] begins it. Its socket ([`Core::socket`]) goes to a poller, and reports of the poller to
//! [`Core::ready`]. Requests are accepted at any time ([`Core::request`]) and sent by [`Core::flush`]; [`Core::event`]
//! returns events. The caller keeps the time and calls [`Core::expire`].

mod handshake;
mod receive;
mod send;

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustls::pki_types::ServerName;
use sys::poll::Ready;
use tls::ClientConfig;

use super::dial::Dial;
use super::event::Event;
use super::exchanges::Exchanges;
use super::failure::{Failure, FailureCause};
use super::record::{ConnectionRecord, RecordBoundaries};
use super::response::Response;
use crate::client::trust::server_name;
use crate::client::{Request, Transport, failed, now_ns};

/// A connection that does not block.
pub struct Core {
    dial: Dial,
    stage: Stage,
    transport: Transport,
    /// How TLS is begun.
    tls_settings: Option<(ClientConfig, ServerName<'static>)>,
    exchanges: Exchanges,
    record: ConnectionRecord,
    boundaries: RecordBoundaries,
    /// Time of the ClientHello, and the early data that was or will be sent with it.
    tls_began_ns: u64,
    early: Vec<u8>,
    /// The socket has more than was read at once.
    has_more: bool,
    events: VecDeque<Event>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    /// TCP is connected, and TLS begins with the first request.
    Waiting,
    Handshake,
    Open,
    Closed,
}

impl Core {
    /// Begins a connection.
    ///
    /// # Errors
    /// There is no way to the address, the limit of descriptors is reached, or TLS cannot be set up.
    pub fn dial(dial: &Dial) -> Result<Self, Failure> {
        // Setup before the connection begins is not part of its time.
        let settings = dial.tls.as_ref().map(|options| {
            tls::warm_up();
            let offered = options.client_options(&dial.protocols);
            let sessions = &options.sessions;
            let config = sessions.config(&options.trust, options.versions, offered)?;
            server_name(&dial.url.host).map(|name| (config, name))
        });
        let broken = |why: String| Failure::new(FailureCause::Tls, format!("tls: {why}"));
        let tls_settings = settings.transpose().map_err(broken)?;
        let from = now_ns();
        let mut transport = Transport::default();
        let dialed = transport.dial(dial.address);
        dialed.map_err(|error| cannot_connect(dial, &error))?;
        let new = Self {
            record: ConnectionRecord::new(dial.address, from),
            dial: dial.clone(),
            stage: Stage::Connecting,
            transport,
            tls_settings,
            exchanges: Exchanges::new(dial.body_limit),
            boundaries: RecordBoundaries::default(),
            tls_began_ns: 0,
            early: Vec::new(),
            has_more: false,
            events: VecDeque::new(),
        };
        new.choose_acks();
        Ok(new)
    }

    /// Its socket, for a poller; `None` once it is closed.
    #[must_use]
    pub fn socket(&self) -> Option<&OwnedFd> {
        self.transport.socket()
    }

    /// The settings it was begun with.
    #[must_use]
    pub fn settings(&self) -> &Dial {
        &self.dial
    }

    /// Changes the time of later exchanges.
    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        self.dial.timeout = timeout;
    }

    /// The record of its events below responses.
    #[must_use]
    pub fn record(&self) -> &ConnectionRecord {
        &self.record
    }

    /// Whether requests can be sent, or could be if there were fewer in progress.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open | Stage::Waiting) && !self.exchanges.is_closed()
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }

    /// Returns the number of requests that it accepts now; before it is open, requests wait.
    #[must_use]
    pub fn room(&self) -> usize {
        match self.stage {
            Stage::Open => self.exchanges.room(),
            Stage::Closed => 0,
            _ => REQUESTS_BEFORE_OPEN.saturating_sub(self.exchanges.len()),
        }
    }

    /// Returns the number of requests without a complete response.
    #[must_use]
    pub fn in_progress(&self) -> usize {
        self.exchanges.len()
    }

    /// Returns the response to a request in progress, as far as it was received.
    #[must_use]
    pub fn response(&self, token: usize) -> Option<&Response> {
        self.exchanges.response(token)
    }

    /// Returns whether [`Core::ready`] must be called again without news of the poller.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Adds a request; its events have the token.
    pub fn request(&mut self, token: usize, request: &Request) {
        self.exchanges.push(token, request, now_ns());
        if self.stage == Stage::Closed {
            let why = "the connection is closed";
            self.exchanges
                .fail(|_| Failure::new(FailureCause::Closed, why));
        }
    }

    /// Returns the next event.
    pub fn event(&mut self) -> Option<Event> {
        // The end of a connection is reported after the end of its exchanges.
        match self.events.front() {
            Some(Event::Closed(_)) | None => {}
            Some(_) => return self.events.pop_front(),
        }
        let event = self.exchanges.event();
        if let Some(Event::Done(..)) = event {
            self.ask_kernel();
        }
        event.or_else(|| self.events.pop_front())
    }

    /// Handles readiness reported by the poller. Without `news`, continues an earlier read ([`Core::has_more`]).
    pub fn ready(&mut self, news: Option<Ready>, buffer: &mut [u8]) {
        let readable = news.is_some_and(|ready| ready.readable || ready.closed);
        let writable = news.is_some_and(|ready| ready.writable || ready.closed);
        let result = match self.stage {
            // The poller reports each change once, so data that arrived with the connection are read now.
            Stage::Connecting if writable => match self.finish_connect() {
                Ok(()) if readable => self.receive(buffer),
                result => result,
            },
            Stage::Connecting | Stage::Closed => Ok(()),
            _ if readable || self.has_more => self.receive(buffer),
            _ => Ok(()),
        };
        match result {
            Ok(()) => self.flush(buffer),
            Err(failure) => self.fail(failure),
        }
    }

    /// Sends pending output.
    pub fn flush(&mut self, buffer: &mut [u8]) {
        if let Err(failure) = self.send() {
            // A response may have arrived before the server closed.
            if let (Stage::Open, Err(failure)) = (self.stage, self.receive(buffer)) {
                return self.fail(failure);
            }
            if self.stage != Stage::Closed {
                self.fail(failure);
            }
        }
    }

    /// The time is up: all that is in progress fails, and the connection is over.
    pub fn expire(&mut self, after: Duration) {
        let (address, after) = (self.dial.address, after.as_secs_f64());
        let late = |message: String| Failure::new(FailureCause::Timeout, message);
        match self.stage {
            Stage::Connecting => {
                self.fail(late(format!(
                    "no TCP connection to {address} within {after} s"
                )));
            }
            Stage::Handshake => {
                let what = format!("the TLS handshake with {address}");
                self.fail(late(format!("{what} was not complete within {after} s")));
            }
            _ => {
                self.exchanges.fail(|response| match response.head {
                    0 => late(format!("no response within {after} s")),
                    _ => late(format!(
                        "the response was not complete within {after} s: {} bytes of its body came",
                        response.body_bytes
                    )),
                });
                self.fail(late(format!("the time of {after} s is up")));
            }
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.ask_kernel();
        self.stage = Stage::Closed;
        self.transport.close();
        self.has_more = false;
        self.exchanges.fail(|_| failure.clone());
        self.events.push_back(Event::Closed(Some(failure)));
    }
}

fn cannot_connect(dial: &Dial, error: &io::Error) -> Failure {
    let why = failed("cannot connect", error);
    let why = why.strip_prefix("cannot connect: ").unwrap_or(&why);
    let message = format!("cannot connect to {}: {why}", dial.address);
    Failure::new(FailureCause::Connect, message)
}

/// Most bytes received by one connection.
pub const MAX_RECEIVED_BYTES: u64 = 256 << 20;
/// Most recorded reads, and TLS records, of one connection; a server that sends more is a failure.
pub const MAX_READS: usize = 1 << 20;
/// Requests that may wait for a connection to be open.
pub(super) const REQUESTS_BEFORE_OPEN: usize = 100;
