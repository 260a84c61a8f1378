//! Settings of a SPDY connection, and the numbers of SETTINGS.
//!
//! Source: draft-mbelshe-httpbis-spdy-00 section 2.6.4.

pub(super) use crate::mux::MAX_WINDOW;

/// Limits and switches of SPDY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `spdy_max_concurrent_streams`.
    pub max_concurrent_streams: u32,
    /// `spdy_headers_comp`: zlib's level for header blocks of responses; 0 compresses nothing and needs no state.
    pub headers_level: u8,
    /// Request body bytes of a stream accepted before the body is read; at least [`DEFAULT_WINDOW`], which a client
    /// may send before it has read our SETTINGS.
    pub preread_bytes: u32,
    /// `large_client_header_buffers`: bytes of one field, name and value.
    pub field_bytes: usize,
    /// `large_client_header_buffers`: bytes of all fields of a request, names and values.
    pub header_bytes: usize,
    /// `max_headers`: fields of one request.
    pub max_headers: u32,
    /// `ignore_invalid_headers`: drop fields with an odd name instead of keeping them.
    pub ignore_invalid_headers: bool,
    /// `underscores_in_headers`: `_` is a valid byte of a field name.
    pub underscores_in_headers: bool,
    /// Frames without progress before the connection ends.
    pub abuse_budget: u32,
}

impl Default for Settings {
    /// nginx's defaults, if nginx has the setting.
    fn default() -> Self {
        Self {
            max_concurrent_streams: 100,
            headers_level: 0,
            preread_bytes: DEFAULT_WINDOW,
            field_bytes: 8 << 10,
            header_bytes: 32 << 10,
            max_headers: 1000,
            ignore_invalid_headers: true,
            underscores_in_headers: false,
            abuse_budget: 1000,
        }
    }
}

impl Settings {
    /// The window that a stream begins with.
    pub(super) fn window_bytes(&self) -> u32 {
        self.preread_bytes.clamp(DEFAULT_WINDOW, MAX_WINDOW as u32)
    }
}

pub(super) const MAX_CONCURRENT_STREAMS: u32 = 4;
pub(super) const INITIAL_WINDOW_SIZE: u32 = 7;
/// Flag of an entry: the client returns a value that the server persisted earlier. This server persists none.
pub(super) const PERSISTED: u8 = 2;

/// Windows before any setting.
pub const DEFAULT_WINDOW: u32 = 64 << 10;
/// Most entries of one SETTINGS frame; the draft names eight settings.
pub(super) const MAX_ENTRIES: usize = 128;
