//! Settings of passing requests on, as exchanges read them, for any prefix of directives.
//!
//! [`super::settings`] makes them from directives.
//!
//! Source: nginx documentation, `ngx_http_proxy_module`; defaults are nginx's.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use engines::http::FieldId;
use server_base::files::TempDir;
use server_upstream::retry_budget::RetryBudget;
use server_upstream::route::{SocketOptions, Timeouts};

use crate::cache::conf::CacheConf;
pub use crate::next_upstream::NextUpstream;
use crate::value::{SizeValue, Value};

/// Settings of one location.
#[derive(Clone, Debug, Default)]
pub struct UpstreamConf {
    /// Parts of the client's request in requests to servers.
    pub request: PassedRequest,
    /// Memory and files for responses.
    pub buffering: Buffering,
    /// `*_connect_timeout`, `*_send_timeout`, `*_read_timeout`.
    pub timeouts: Timeouts,
    /// Attempts after the first one.
    pub retry: Retry,
    /// Sockets of new connections.
    pub socket: Socket,
    /// Fields of responses.
    pub fields: ResponseFields,
    /// Files of responses.
    pub store: Storing,
    /// `*_cache`; `None`: off.
    pub cache: Option<Arc<CacheConf>>,
    /// `*_ignore_client_abort`.
    pub ignore_client_abort: bool,
    /// `*_intercept_errors`.
    pub intercept_errors: bool,
}

/// Parts of the client's request in requests to servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassedRequest {
    /// `*_pass_request_headers`.
    pub fields: bool,
    /// `*_pass_request_body`, `*_request_buffering`.
    pub body: RequestBody,
}

/// The way of a request body to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestBody {
    /// It is not passed on.
    #[default]
    Dropped,
    /// It is passed on once it has been read whole.
    Whole,
    /// It is passed on as it comes.
    Streamed,
}

/// Memory and files for responses.
#[derive(Clone, Debug, Default)]
pub struct Buffering {
    /// `*_buffering`: responses are read ahead of the client.
    pub reads_ahead: bool,
    /// `*_buffer_size`, bytes: limit of a response head. `None`: not written, the limit is 64 KiB.
    pub head_bytes: Option<u64>,
    /// `*_buffers`: their number, and the size of each in bytes.
    pub buffers: (u64, u64),
    /// `*_max_temp_file_size`, bytes; 0: no file.
    pub max_temp_file_size: u64,
    /// `*_temp_file_write_size`, bytes.
    pub temp_file_write_size: u64,
    /// `*_temp_path`.
    pub temp_path: Option<TempDir>,
    /// `*_limit_rate`, bytes per second.
    pub limit_rate: SizeValue,
}

/// Attempts after the first one, and conditions of all attempts.
#[derive(Clone, Debug, Default)]
pub struct Retry {
    /// `*_next_upstream`.
    pub on: NextUpstream,
    /// `*_next_upstream_tries`; 0: no limit.
    pub tries: u32,
    /// `*_next_upstream_timeout`, milliseconds; 0: no limit.
    pub timeout_ms: u64,
    /// `*_next_upstream_delay`: time before another attempt, milliseconds.
    pub delay_ms: u64,
    /// `*_next_upstream_same`: attempts with a server after its first one.
    pub same: u32,
    /// `*_next_upstream_attempt_timeout`: longest time until the head of a response, milliseconds; 0: no limit.
    pub attempt_ms: u64,
    /// `*_retry_budget`.
    pub budget: Option<RetryBudget>,
    /// `*_request_dynamic`.
    pub request: Computed,
    /// `*_allow_upstream`: all values must hold; empty: no condition.
    pub allow_upstream: Vec<Value>,
}

/// How often a value with variables is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Computed {
    /// Once for all attempts.
    #[default]
    Once,
    /// For each attempt.
    EachAttempt,
}

impl From<bool> for Computed {
    /// `*_dynamic`.
    fn from(is_dynamic: bool) -> Self {
        match is_dynamic {
            true => Self::EachAttempt,
            false => Self::Once,
        }
    }
}

/// Sockets of new connections.
#[derive(Clone, Debug, Default)]
pub struct Socket {
    /// Options of every socket; without a local address.
    pub options: SocketOptions,
    /// `*_bind`: the local address, for [`local_address`]; `None` for none or `off`.
    pub bind: Option<Value>,
    /// `*_bind_dynamic`.
    pub bind_computed: Computed,
}

/// Fields of responses.
#[derive(Clone, Debug, Default)]
pub struct ResponseFields {
    /// Fields that are not passed on: nginx's own list with `*_hide_header`, without `*_pass_header`.
    pub hidden: Hidden,
    /// `*_ignore_headers`.
    pub ignored: IgnoredHeaders,
    /// `*_force_ranges`.
    pub force_ranges: bool,
    /// `*_pass_trailers`.
    pub pass_trailers: bool,
}

/// Files of responses.
#[derive(Clone, Debug, Default)]
pub struct Storing {
    /// `*_store`; `None`: off.
    pub path: Option<StorePath>,
    /// `*_store_access`: permission bits.
    pub access: u32,
}

/// The path of a file with a response.
#[derive(Clone, Debug)]
pub enum StorePath {
    /// `on`: the path that the URI maps to.
    Mapped,
    /// This path.
    Value(Value),
}

/// Parses a local address with or without a port, which is 0 then: `192.0.2.1`, `192.0.2.1:80`, `[::1]:80`, `::1`.
pub fn local_address(text: &[u8]) -> Option<SocketAddr> {
    let text = str::from_utf8(text).ok()?;
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let ip: Option<IpAddr> = bare.unwrap_or(text).parse().ok();
    match ip {
        Some(ip) => Some(SocketAddr::new(ip, 0)),
        None => text.parse().ok(),
    }
}

/// Names of fields.
#[derive(Clone, Debug, Default)]
pub struct Hidden {
    /// A bit for each that has a number.
    known: u64,
    others: Arc<[Box<[u8]>]>,
}

impl Hidden {
    /// Whether a name is among them, in any case.
    #[inline]
    pub fn has(&self, id: FieldId, name: &[u8]) -> bool {
        let same = |known: &[u8]| known.len() == name.len() && known.eq_ignore_ascii_case(name);
        match id {
            FieldId::Other => self.others.iter().any(|known| same(known)),
            id => self.known >> id as u8 & 1 == 1,
        }
    }
}

impl From<Vec<Box<[u8]>>> for Hidden {
    fn from(names: Vec<Box<[u8]>>) -> Self {
        let (others, known): (Vec<_>, Vec<_>) =
            (names.into_iter()).partition(|name| FieldId::of(name) == FieldId::Other);
        let bit = |name: &[u8]| 1_u64 << FieldId::of(name) as u8;
        Self {
            known: known
                .iter()
                .map(|name| bit(name))
                .fold(0, |all, bit| all | bit),
            others: others.into(),
        }
    }
}

/// `*_ignore_headers`: fields of responses that are passed on and not acted on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredHeaders(pub u32);

impl IgnoredHeaders {
    /// `X-Accel-Redirect`.
    pub const XA_REDIRECT: u32 = 1;
    /// `X-Accel-Expires`.
    pub const XA_EXPIRES: u32 = 1 << 1;
    /// `X-Accel-Limit-Rate`.
    pub const XA_LIMIT_RATE: u32 = 1 << 2;
    /// `X-Accel-Buffering`.
    pub const XA_BUFFERING: u32 = 1 << 3;
    /// `X-Accel-Charset`.
    pub const XA_CHARSET: u32 = 1 << 4;
    /// `Expires`.
    pub const EXPIRES: u32 = 1 << 5;
    /// `Cache-Control`.
    pub const CACHE_CONTROL: u32 = 1 << 6;
    /// `Set-Cookie`.
    pub const SET_COOKIE: u32 = 1 << 7;
    /// `Vary`.
    pub const VARY: u32 = 1 << 8;

    /// The words of the directive.
    pub const NAMES: &[(&str, u32)] = &[
        ("X-Accel-Redirect", Self::XA_REDIRECT),
        ("X-Accel-Expires", Self::XA_EXPIRES),
        ("X-Accel-Limit-Rate", Self::XA_LIMIT_RATE),
        ("X-Accel-Buffering", Self::XA_BUFFERING),
        ("X-Accel-Charset", Self::XA_CHARSET),
        ("Expires", Self::EXPIRES),
        ("Cache-Control", Self::CACHE_CONTROL),
        ("Set-Cookie", Self::SET_COOKIE),
        ("Vary", Self::VARY),
    ];

    /// Whether one of these is written.
    #[must_use]
    pub fn has(self, of: u32) -> bool {
        self.0 & of != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_have_a_port_or_none() {
        let shown = |text: &str| local_address(text.as_bytes()).map(|addr| addr.to_string());
        assert_eq!(shown("127.0.0.2").as_deref(), Some("127.0.0.2:0"));
        assert_eq!(shown("127.0.0.2:81").as_deref(), Some("127.0.0.2:81"));
        assert_eq!(shown("[::1]").as_deref(), Some("[::1]:0"));
        assert_eq!(shown("[::1]:81").as_deref(), Some("[::1]:81"));
        for bad in ["", "a", "1.2.3", "127.0.0.1:99999", "unix:/x", "[::1"] {
            assert_eq!(shown(bad), None, "{bad}");
        }
    }
}
