//! A client of one server that blocks and keeps its connection: the transport of the store to ClickHouse.
//!
//! It speaks HTTP/1.1, plain or with TLS. A request is sent again only if no byte of it was sent before. This happens on a kept
//! connection that the server has closed. In any other case the error tells the caller that the server may have executed it.
//!
//! The connection is owned by a thread, because its engine cannot move between threads.
//!
//! Absent: redirects, which are errors; cookies; proxies; responses without a length, since a part of one looks whole.
//!
//! Source: RFC 9112 section 9.3, RFC 9110 section 8.4.

mod settings;
mod worker;

use std::fmt;
use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use flate2::Compression;
use flate2::write::GzEncoder;
use store::{HttpRequest, HttpResponse, Transport, TransportError};

pub use self::settings::HttpClientSettings;
use self::worker::Worker;
use crate::client::Request;

/// A client of one server with one connection at a time. Dropping it closes the connection.
pub struct HttpClient {
    settings: HttpClientSettings,
    thread: Option<Thread>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "HttpClient({})", self.settings.url.authority)
    }
}

/// The thread of a connection.
struct Thread {
    requests: Sender<Request>,
    results: Receiver<Result<HttpResponse, TransportError>>,
    handle: JoinHandle<()>,
}

impl Thread {
    fn start(settings: &HttpClientSettings) -> std::io::Result<Self> {
        let (requests, taken) = channel();
        let (given, results) = channel();
        let settings = settings.clone();
        let run = move || {
            let mut worker = Worker::new(settings);
            for request in taken {
                if given.send(worker.send(&request)).is_err() {
                    return;
                }
            }
        };
        let handle = thread::Builder::new().name("http".to_owned()).spawn(run)?;
        Ok(Self {
            requests,
            results,
            handle,
        })
    }
}

impl HttpClient {
    /// A client without a connection; the first request makes one.
    #[must_use]
    pub fn new(settings: HttpClientSettings) -> Self {
        Self {
            settings,
            thread: None,
        }
    }

    /// The request in the form of the engine.
    fn prepare(&self, request: &HttpRequest<'_>) -> Request {
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let given = request.headers.iter();
        let mut fields: Vec<_> = given.map(|(name, value)| own(name, value)).collect();
        let has = |name: &str| {
            let mut fields = request.headers.iter();
            fields.any(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        if !has("user-agent") {
            fields.push(own("user-agent", USER_AGENT));
        }
        let mut body = None;
        // ClickHouse 18.16 does not decompress forms.
        let is_form = request.headers.iter().any(|(name, value)| {
            let value = value.to_ascii_lowercase();
            name.eq_ignore_ascii_case("content-type") && value.starts_with("multipart/")
        });
        if self.settings.gzip
            && request.body.len() >= GZIP_BYTES_LEAST
            && !has("content-encoding")
            && !is_form
            && let Ok(packed) = gzip(request.body)
        {
            fields.push(own("content-encoding", "gzip"));
            body = Some(packed);
        }
        let body = body.as_deref().unwrap_or(request.body);
        let url = &self.settings.url;
        Request::new(url, request.method, request.target, &fields, body)
    }
}

impl Transport for HttpClient {
    fn send(&mut self, request: &HttpRequest<'_>) -> Result<HttpResponse, TransportError> {
        let not_sent = |reason: &str| TransportError::NotSent(reason.to_owned());
        let request = self.prepare(request);
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => Thread::start(&self.settings)
                .map_err(|error| not_sent(&format!("no thread: {}", sys::os_error(&error))))?,
        };
        if thread.requests.send(request).is_err() {
            return Err(not_sent("the thread of the connection has ended"));
        }
        // Without a result the thread has panicked, and the next request starts another.
        let result = thread.results.recv().map_err(|_| {
            let reason = "the thread of the connection has ended";
            TransportError::Unknown(reason.to_owned())
        })?;
        self.thread = Some(thread);
        result
    }
}

impl Drop for HttpClient {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            drop(thread.requests);
            // A panic of the thread was printed.
            let _ = thread.handle.join();
        }
    }
}

fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body)?;
    encoder.finish()
}

/// `User-Agent` of requests.
const USER_AGENT: &str = concat!("firstbyte/", env!("CARGO_PKG_VERSION"));
/// Shortest body that is compressed.
const GZIP_BYTES_LEAST: usize = 1024;
