//! Settings of an HTTP/1 connection.

use super::PIPELINE_BUFFER_BYTES;

/// Limits and switches of HTTP/1 parsing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `client_header_buffer_size`, bytes.
    pub header_buffer_bytes: usize,
    /// `large_client_header_buffers`: number of buffers, and bytes of each.
    pub large_header_buffers: (u32, usize),
    /// `max_headers`: most field lines of one request.
    pub max_headers: u32,
    /// `ignore_invalid_headers`: drop lines with an invalid name instead of
    /// keeping them.
    pub ignore_invalid_headers: bool,
    /// `underscores_in_headers`: `_` is a valid byte of a field name.
    pub underscores_in_headers: bool,
    /// Maximum number of buffered bytes of pipelined requests, or of a body that is not read,
    /// before [`Conn::wants_input`](super::Conn::wants_input) returns false; at least 1.
    pub held_bytes: usize,
    /// Whether HTTP/0.9 requests are answered.
    pub allow_http09: bool,
    /// Whether TRACE is passed on instead of refused.
    pub allow_trace: bool,
}

impl Default for Settings {
    /// nginx's defaults.
    fn default() -> Self {
        Self {
            header_buffer_bytes: 1024,
            large_header_buffers: (4, 8192),
            max_headers: 1000,
            ignore_invalid_headers: true,
            underscores_in_headers: false,
            held_bytes: PIPELINE_BUFFER_BYTES,
            allow_http09: true,
            allow_trace: false,
        }
    }
}
