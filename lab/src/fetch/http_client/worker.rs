//! The connection of a client, in the thread that has it.
//!
//! Source: RFC 9112 section 9.3.

use std::time::{Duration, Instant};

use store::{HttpResponse, TransportError};

use super::settings::HttpClientSettings;
use crate::client::{Protocol, Request};
use crate::fetch::connection::Connection;
use crate::fetch::dial::{Dial, TlsOptions};
use crate::fetch::failure::Failure;
use crate::fetch::resolve::resolve;
use crate::fetch::response::Response;
use crate::fetch::sessions::Sessions;

/// The kept connection and its use.
pub(super) struct Worker {
    settings: HttpClientSettings,
    tls: Option<TlsOptions>,
    kept: Option<Kept>,
}

/// A connection between two requests.
struct Kept {
    connection: Connection,
    /// After this time the server may be about to close it.
    until: Instant,
    exchanges: u32,
}

impl Worker {
    /// A worker without a connection; the first request makes one.
    pub(super) fn new(settings: HttpClientSettings) -> Self {
        let tls = settings.url.tls.then(|| TlsOptions {
            trust: settings.trust.clone(),
            sessions: Sessions::shared(),
            ..TlsOptions::default()
        });
        Self {
            settings,
            tls,
            kept: None,
        }
    }

    /// Takes the kept connection if it is usable.
    fn take_kept(&mut self) -> Option<Kept> {
        let mut kept = self.kept.take()?;
        let is_fresh = Instant::now() < kept.until
            && kept.exchanges < EXCHANGES_MAX
            && kept.connection.record().received_bytes < RECEIVED_BYTES_MAX;
        // The server's close may wait in the socket.
        (is_fresh && kept.connection.receive_pending()).then_some(kept)
    }

    /// Opens a connection to the first address that accepts one.
    fn connect(&self) -> Result<Kept, String> {
        let settings = &self.settings;
        let deadline = Instant::now() + settings.connect_timeout;
        let found = resolve(&settings.url, settings.connect_timeout).map_err(|it| it.message)?;
        let mut result = Err(String::new());
        for (at, address) in found.addresses.iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = left / (found.addresses.len() - at) as u32;
            let dial = Dial {
                tls: self.tls.clone(),
                protocols: vec![Protocol::H1],
                body_limit: Some(settings.response_bytes.min(RECEIVED_BYTES_MAX as usize)),
                ..Dial::new(&settings.url, *address, timeout)
            };
            result = Connection::open(&dial).map_err(Failure::without_hint);
            if result.is_ok() {
                break;
            }
        }
        Ok(Kept {
            connection: result?,
            until: Instant::now(),
            exchanges: 0,
        })
    }

    /// Exchanges a request: on the kept connection, or on a new one if nothing was sent.
    pub(super) fn send(&mut self, request: &Request) -> Result<HttpResponse, TransportError> {
        let first = match self.take_kept() {
            Some(kept) => self.exchange(kept, request),
            None => Err(TransportError::NotSent(String::new())),
        };
        let response = match first {
            Err(TransportError::NotSent(_)) => {
                let new = self.connect().map_err(TransportError::NotSent)?;
                self.exchange(new, request)?
            }
            result => result?,
        };
        complete(response).map_err(|reason| {
            self.kept = None;
            TransportError::Unknown(reason)
        })
    }

    /// Exchanges a request, and keeps the connection if it is reusable.
    fn exchange(&mut self, mut kept: Kept, request: &Request) -> Result<Response, TransportError> {
        let connection = &mut kept.connection;
        connection.set_timeout(self.settings.timeout);
        let sent_before = connection.record().sent_bytes;
        match connection.exchange(request) {
            Ok(response) => {
                kept.exchanges += 1;
                if connection.is_open() {
                    kept.until = Instant::now() + idle_time(&response);
                    self.kept = Some(kept);
                }
                Ok(response)
            }
            Err(failure) => {
                let is_sent = connection.record().sent_bytes > sent_before;
                let reason = failure.without_hint();
                Err(match is_sent {
                    true => TransportError::Unknown(reason),
                    false => TransportError::NotSent(reason),
                })
            }
        }
    }
}

/// The response, if it is final and certainly whole.
fn complete(response: Response) -> Result<HttpResponse, String> {
    let status = response.status;
    if (300..400).contains(&status) {
        return Err(format!("the server redirects (status {status})"));
    }
    let has_length = ["content-length", "transfer-encoding"]
        .iter()
        .any(|name| response.field(name).is_some());
    if !has_length && status != 204 {
        return Err("the server sent a response without a length".to_owned());
    }
    Ok(HttpResponse {
        status,
        headers: response.fields,
        body: response.body,
    })
}

/// Time for which a connection is kept: less than the server does, which announces it by `Keep-Alive: timeout=SECONDS`.
fn idle_time(response: &Response) -> Duration {
    let field = response.field("keep-alive").unwrap_or_default();
    let announced = field.split(',').find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let is_timeout = name.trim().eq_ignore_ascii_case("timeout");
        let seconds = value.trim().parse().ok().filter(|_| is_timeout)?;
        Some(Duration::from_secs(seconds))
    });
    let idle = announced.map_or(IDLE_TIME, |time| time.saturating_sub(IDLE_MARGIN));
    idle.min(IDLE_TIME)
}

/// Exchanges of one connection. The record of its reads grows with each.
const EXCHANGES_MAX: u32 = 1000;
/// Bytes received on one connection before it is replaced, and the longest body: half of
/// [`MAX_RECEIVED_BYTES`](crate::fetch::MAX_RECEIVED_BYTES).
const RECEIVED_BYTES_MAX: u64 = crate::fetch::MAX_RECEIVED_BYTES / 2;
/// Longest time between two requests on a connection.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Time before the announced close at which a connection is not used again.
const IDLE_MARGIN: Duration = Duration::from_secs(1);
