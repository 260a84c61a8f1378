//! Requests to a ClickHouse server, independent of the HTTP client that sends them.
//!
//! Source: ClickHouse's documentation, "HTTP Interface".

use std::fmt;

/// A request of HTTP.
#[derive(Clone, Copy)]
pub struct HttpRequest<'a> {
    /// Method, `GET` or `POST`.
    pub method: &'static str,
    /// Path and query, encoded.
    pub target: &'a str,
    /// Names and values of fields. `Host` and `Content-Length` are added by the transport.
    pub headers: &'a [(&'a str, &'a str)],
    /// Body; empty for none.
    pub body: &'a [u8],
}

/// A complete response of HTTP with any final status from 200 on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpResponse {
    /// Status.
    pub status: u16,
    /// Names and values of fields, as the server wrote them.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

/// Failure without a complete response. Its text has neither fields nor body of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportError {
    /// The server has not executed the request: no byte of it was sent.
    NotSent(String),
    /// The server may have executed the request.
    Unknown(String),
}

impl fmt::Display for TransportError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::NotSent(reason) | Self::Unknown(reason)) = self;
        out.write_str(reason)
    }
}

impl std::error::Error for TransportError {}

/// A client of HTTP that blocks.
pub trait Transport: Send {
    /// Sends a request and waits for the end of its response.
    ///
    /// # Errors
    /// If there is no complete response.
    fn send(&mut self, request: &HttpRequest<'_>) -> Result<HttpResponse, TransportError>;
}
