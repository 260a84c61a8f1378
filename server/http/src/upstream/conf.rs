//! The settings of all modules that pass requests on, for any prefix of directives.
//!
//! Source: nginx documentation, `ngx_http_proxy_module`; defaults are nginx's.

use std::sync::Arc;

use engines::http::FieldId;
use server_base::files::TempDir;

use crate::value::{SizeValue, Value};

/// Settings of one location.
#[derive(Clone, Debug, Default)]
pub struct UpstreamConf {
    /// `*_buffering`.
    pub buffering: bool,
    /// `*_request_buffering`.
    pub request_buffering: bool,
    /// `*_buffer_size`: most bytes of a response head; `None`: not written, so that a head may grow to 64 KiB.
    pub buffer_size: Option<u64>,
    /// `*_buffers`: how many, and the size of each in bytes.
    pub buffers: (u64, u64),
    /// `*_max_temp_file_size`, bytes; 0: no file.
    pub max_temp_file_size: u64,
    /// `*_temp_file_write_size`, bytes.
    pub temp_file_write_size: u64,
    /// `*_temp_path`.
    pub temp_path: Option<TempDir>,
    /// `*_ignore_client_abort`.
    pub ignore_client_abort: bool,
    /// `*_intercept_errors`.
    pub intercept_errors: bool,
    /// `*_connect_timeout`, milliseconds.
    pub connect_timeout_ms: u64,
    /// `*_send_timeout`, milliseconds.
    pub send_timeout_ms: u64,
    /// `*_read_timeout`, milliseconds.
    pub read_timeout_ms: u64,
    /// `*_next_upstream`.
    pub next_upstream: NextUpstream,
    /// `*_next_upstream_tries`; 0: no limit.
    pub next_upstream_tries: u32,
    /// `*_next_upstream_timeout`, milliseconds; 0: no limit.
    pub next_upstream_timeout_ms: u64,
    /// `*_limit_rate`.
    pub limit_rate: SizeValue,
    /// `*_force_ranges`.
    pub force_ranges: bool,
    /// `*_bind`, and whether it is transparent; `None` for none or `off`.
    pub bind: Option<(Value, bool)>,
    /// `*_bind_dynamic`.
    pub bind_dynamic: bool,
    /// `*_request_dynamic`.
    pub request_dynamic: bool,
    /// `*_allow_upstream`: all values must hold; empty: no condition.
    pub allow_upstream: Vec<Value>,
    /// `*_socket_keepalive`.
    pub socket_keepalive: bool,
    /// `*_socket_rcvbuf`, bytes; 0: not set.
    pub socket_rcvbuf: u32,
    /// `*_socket_sndbuf`, bytes; 0: not set.
    pub socket_sndbuf: u32,
    /// Fields of responses that are not passed on: nginx's own list with `*_hide_header`, without `*_pass_header`.
    pub hidden: Hidden,
    /// `*_ignore_headers`.
    pub ignored: IgnoredHeaders,
    /// `*_pass_request_headers`.
    pub pass_request_headers: bool,
    /// `*_pass_request_body`.
    pub pass_request_body: bool,
    /// `*_pass_trailers`.
    pub pass_trailers: bool,
    /// `*_store`; `None`: off.
    pub store: Option<Store>,
    /// `*_store_access`: permission bits.
    pub store_access: u32,
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

/// `*_store`.
#[derive(Clone, Debug)]
pub enum Store {
    /// `on`: under the path that the URI maps to.
    Mapped,
    /// Under this path.
    Path(Value),
}

/// `*_next_upstream`: on what another server is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextUpstream(pub u32);

impl NextUpstream {
    /// A connection failed.
    pub const ERROR: u32 = 1;
    /// A time was over.
    pub const TIMEOUT: u32 = 1 << 1;
    /// A response that is none.
    pub const INVALID_HEADER: u32 = 1 << 2;
    /// The status of the same number, and so on.
    pub const HTTP_500: u32 = 1 << 3;
    /// See [`Self::HTTP_500`].
    pub const HTTP_502: u32 = 1 << 4;
    /// See [`Self::HTTP_500`].
    pub const HTTP_503: u32 = 1 << 5;
    /// See [`Self::HTTP_500`].
    pub const HTTP_504: u32 = 1 << 6;
    /// See [`Self::HTTP_500`].
    pub const HTTP_403: u32 = 1 << 7;
    /// See [`Self::HTTP_500`].
    pub const HTTP_404: u32 = 1 << 8;
    /// See [`Self::HTTP_500`].
    pub const HTTP_429: u32 = 1 << 9;
    /// Also requests whose method is not idempotent.
    pub const NON_IDEMPOTENT: u32 = 1 << 10;
    /// None.
    pub const OFF: u32 = 1 << 11;
    /// `*_allow_upstream` does not admit the server.
    pub const DENIED: u32 = 1 << 12;
    /// No server is alive; no directive says so.
    pub const NO_LIVE: u32 = 1 << 13;
    /// A response of the cache is out of date; taken, and without meaning before there is a cache.
    pub const UPDATING: u32 = 1 << 14;

    /// Whether one of these is written.
    #[must_use]
    pub fn has(self, of: u32) -> bool {
        self.0 & of != 0
    }

    /// Whether all of these are written.
    #[must_use]
    pub fn has_all(self, of: u32) -> bool {
        self.0 & of == of
    }
}

/// The words of `*_next_upstream` in a module.
#[derive(Clone, Copy, Debug)]
pub struct NextUpstreamWords {
    /// Each with what it stands for.
    pub names: &'static [(&'static str, u32)],
    /// The arguments as the reference shows them.
    pub syntax: &'static str,
}

/// The words of modules whose servers are HTTP servers.
pub const HTTP_NEXT_UPSTREAM: NextUpstreamWords = NextUpstreamWords {
    names: &[
        ("error", NextUpstream::ERROR),
        ("timeout", NextUpstream::TIMEOUT),
        ("invalid_header", NextUpstream::INVALID_HEADER),
        ("non_idempotent", NextUpstream::NON_IDEMPOTENT),
        ("http_500", NextUpstream::HTTP_500),
        ("http_502", NextUpstream::HTTP_502),
        ("http_503", NextUpstream::HTTP_503),
        ("http_504", NextUpstream::HTTP_504),
        ("http_403", NextUpstream::HTTP_403),
        ("http_404", NextUpstream::HTTP_404),
        ("http_429", NextUpstream::HTTP_429),
        ("denied", NextUpstream::DENIED),
        ("updating", NextUpstream::UPDATING),
        ("off", NextUpstream::OFF),
    ],
    syntax: "error | timeout | denied | invalid_header | non_idempotent | http_500 | http_502 | http_503 | \
             http_504 | http_403 | http_404 | http_429 | off ...",
};

/// The words of modules whose servers are applications: 502 and 504 are statuses of gateways.
pub const APPLICATION_NEXT_UPSTREAM: NextUpstreamWords = NextUpstreamWords {
    names: &[
        ("error", NextUpstream::ERROR),
        ("timeout", NextUpstream::TIMEOUT),
        ("invalid_header", NextUpstream::INVALID_HEADER),
        ("non_idempotent", NextUpstream::NON_IDEMPOTENT),
        ("http_500", NextUpstream::HTTP_500),
        ("http_503", NextUpstream::HTTP_503),
        ("http_403", NextUpstream::HTTP_403),
        ("http_404", NextUpstream::HTTP_404),
        ("http_429", NextUpstream::HTTP_429),
        ("denied", NextUpstream::DENIED),
        ("updating", NextUpstream::UPDATING),
        ("off", NextUpstream::OFF),
    ],
    syntax: "error | timeout | denied | invalid_header | non_idempotent | http_500 | http_503 | http_403 | \
             http_404 | http_429 | off ...",
};

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
