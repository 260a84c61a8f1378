//! Settings of an HTTP/2 connection, and the peer's SETTINGS.

use super::error::ProtocolError;
use super::frame::number;
use crate::hpack::Encoder;

/// Limits and switches of HTTP/2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `http2_max_concurrent_streams`.
    pub max_concurrent_streams: u32,
    /// `http2_max_concurrent_pushes`.
    pub max_concurrent_pushes: u32,
    /// `http2_body_preread_size`: request body bytes of a stream accepted before the body is read.
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
    /// `http2_abuse_budget`: frames without progress before the connection ends.
    pub abuse_budget: u32,
    /// `http2_header_table_size`: bytes of the dynamic table, of each direction.
    pub header_table_bytes: usize,
    /// Whether CONNECT with `:protocol` is accepted as a request (RFC 8441).
    pub extended_connect: bool,
}

impl Default for Settings {
    /// nginx's defaults, if nginx has the setting.
    fn default() -> Self {
        Self {
            max_concurrent_streams: 128,
            max_concurrent_pushes: 10,
            preread_bytes: 64 << 10,
            field_bytes: 8 << 10,
            header_bytes: 32 << 10,
            max_headers: 1000,
            ignore_invalid_headers: true,
            underscores_in_headers: false,
            abuse_budget: 1000,
            header_table_bytes: 4096,
            extended_connect: false,
        }
    }
}

/// Reads a SETTINGS frame: applies the size of our header table and of frames, returns the last initial window in
/// it; passes the rest to `others`.
pub(super) fn take(
    payload: &[u8],
    encoder: &mut Encoder,
    frame_bytes: &mut usize,
    mut others: impl FnMut(Setting) -> Result<(), ProtocolError>,
) -> Result<Option<u32>, ProtocolError> {
    let (settings, rest) = payload.as_chunks::<6>();
    if !rest.is_empty() {
        return Err(ProtocolError::FrameSize);
    }
    let mut window = None;
    for setting in settings {
        match Setting::parse(setting)? {
            Setting::HeaderTableSize(bytes) => encoder.set_allowed_bytes(bytes as usize),
            Setting::MaxFrameSize(bytes) => *frame_bytes = bytes as usize,
            Setting::InitialWindowSize(bytes) => window = Some(bytes),
            other => others(other)?,
        }
    }
    Ok(window)
}

/// One setting of a SETTINGS frame (RFC 9113 section 6.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    HeaderTableSize(u32),
    EnablePush(bool),
    MaxConcurrentStreams(u32),
    InitialWindowSize(u32),
    MaxFrameSize(u32),
    /// Unknown, or without effect on a server.
    Other,
}

impl Setting {
    /// Reads six bytes.
    pub(super) fn parse(bytes: &[u8; 6]) -> Result<Self, ProtocolError> {
        let value = number(&bytes[2..]).unwrap_or_default();
        Ok(match u16::from_be_bytes([bytes[0], bytes[1]]) {
            HEADER_TABLE_SIZE => Self::HeaderTableSize(value),
            ENABLE_PUSH if value <= 1 => Self::EnablePush(value == 1),
            MAX_CONCURRENT_STREAMS => Self::MaxConcurrentStreams(value),
            INITIAL_WINDOW_SIZE if value < 1 << 31 => Self::InitialWindowSize(value),
            INITIAL_WINDOW_SIZE => return Err(ProtocolError::WindowOverflow),
            MAX_FRAME_SIZE if (1 << 14..1 << 24).contains(&value) => Self::MaxFrameSize(value),
            ENABLE_PUSH | MAX_FRAME_SIZE => return Err(ProtocolError::BadSetting),
            ENABLE_CONNECT_PROTOCOL | NO_RFC7540_PRIORITIES if value > 1 => {
                return Err(ProtocolError::BadSetting);
            }
            _ => Self::Other,
        })
    }
}

pub(super) const HEADER_TABLE_SIZE: u16 = 1;
pub(super) const ENABLE_PUSH: u16 = 2;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(super) const MAX_FRAME_SIZE: u16 = 5;
pub(super) const MAX_HEADER_LIST_SIZE: u16 = 6;
/// RFC 8441 section 3.
pub(super) const ENABLE_CONNECT_PROTOCOL: u16 = 8;
/// RFC 9218 section 2.1.
pub(super) const NO_RFC7540_PRIORITIES: u16 = 9;

/// Windows before any setting (RFC 9113 section 6.9.2).
pub(super) const DEFAULT_WINDOW: u32 = 65_535;
/// Largest frame before any setting, and the largest accepted one.
pub(super) const FRAME_BYTES: usize = 1 << 14;
