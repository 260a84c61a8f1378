//! The directives of passing requests on: their rows, written once for every prefix, and their values.
//!
//! A module lists the groups of rows that it has:
//!
//! ```text
//! const BUFFERED: &[DirectiveDef<ConfigBuilder>] = upstream_rows!(buffered "proxy_" ProxyLoc, temp_path "proxy_temp 1 2");
//! ```
//!
//! Source: nginx documentation, `ngx_http_proxy_module`.

use conf::{Apply, Arity, ConfError, Contexts, Directive, DirectiveDef, Setting};
use server_base::config::ConfigContext;
use server_base::from_args::{FromArgs, Size};

use super::conf::{IgnoredHeaders, NextUpstream, StorePath, local_address};
use super::settings::UpstreamDirectives;
use crate::assemble::ConfigBuilder;
use crate::value::Value;

/// Makes the row of a directive that sets one field. `field` only has the type of its values.
#[doc(hidden)]
pub const fn row<T: FromArgs>(
    name: &'static str,
    _field: fn(&mut UpstreamDirectives) -> &mut Setting<T>,
    [default, doc]: [&'static str; 2],
    apply: Apply<ConfigBuilder>,
) -> DirectiveDef<ConfigBuilder> {
    DirectiveDef {
        name,
        contexts: Contexts::HTTP_SERVER_LOCATION,
        arity: T::ARITY,
        block: false,
        default,
        doc,
        syntax: T::SYNTAX,
        apply,
    }
}

/// One row: the suffix of its name, the field that it sets, its default as shown, its documentation.
#[doc(hidden)]
#[macro_export]
macro_rules! upstream_row {
    ($assign:ident $prefix:literal $conf:ty, $suffix:literal $part:ident.$field:ident = $shown:expr, $doc:literal) => {
        $crate::upstream::directives::row(
            concat!($prefix, $suffix),
            |own| &mut own.$part.$field,
            [$shown, $doc],
            |b, d| $crate::upstream::assign::$assign::<$conf, _>(b, d, |own| &mut own.$part.$field),
        )
    };
}

/// The rows of a group of upstream directives, under a prefix, for a struct of settings that
/// [passes on](crate::upstream::PassesOn).
#[macro_export]
macro_rules! upstream_rows {
    // Connections to servers and failures, for every protocol.
    (basic $prefix:literal $conf:ty) => {
        &[
            $crate::upstream_row!(assign $prefix $conf, "bind" socket.bind = "", "Local address of connections to servers."),
            $crate::upstream_row!(assign $prefix $conf, "bind_dynamic" socket.bind_dynamic = "off", "Whether the local address is evaluated again for each attempt."),
            $crate::upstream_row!(assign $prefix $conf, "allow_upstream" retry.allow_upstream = "", "An attempt with a server is made only if all values are neither empty nor 0."),
            $crate::upstream_row!(assign $prefix $conf, "connect_timeout" timeouts.connect_timeout = "60s", "Longest time for connecting to a server."),
            $crate::upstream_row!(assign $prefix $conf, "send_timeout" timeouts.send_timeout = "60s", "Longest time between two writes to a server."),
            $crate::upstream_row!(assign $prefix $conf, "read_timeout" timeouts.read_timeout = "60s", "Longest time between two reads from a server."),
            $crate::upstream_row!(assign $prefix $conf, "next_upstream_tries" retry.next_upstream_tries = "0", "Maximum number of servers tried for a request; 0 is all."),
            $crate::upstream_row!(assign $prefix $conf, "next_upstream_timeout" retry.next_upstream_timeout = "0", "Limit of time to try other servers; 0 is no limit."),
            $crate::upstream_row!(assign $prefix $conf, "next_upstream_delay" retry.next_upstream_delay = "0", "Time between a failed attempt and the next one."),
            $crate::upstream_row!(assign $prefix $conf, "next_upstream_same" retry.next_upstream_same = "0", "Further attempts with a server that fails, before the next server is tried."),
            $crate::upstream_row!(assign $prefix $conf, "next_upstream_attempt_timeout" retry.next_upstream_attempt_timeout = "0", "Longest time of an attempt until the head of its response is complete; 0 is no limit."),
            $crate::upstream_row!(assign $prefix $conf, "retry_budget" retry.retry_budget = "off", "Largest share of the requests in progress to a group that may be retries, and the number of retries that are always allowed."),
            $crate::upstream_row!(assign_size $prefix $conf, "buffer_size" buffering.buffer_size = "64k", "Maximum size of the head of a response."),
            $crate::upstream_row!(assign $prefix $conf, "socket_keepalive" socket.socket_keepalive = "off", "Whether the system probes connections to servers (SO_KEEPALIVE)."),
        ]
    };
    // Attempts, responses and failures, for protocols with statuses.
    (connection $prefix:literal $conf:ty, next_upstream $words:expr) => {
        &[
            $crate::upstream_row!(assign $prefix $conf, "request_dynamic" retry.request_dynamic = "off", "Whether the request is created again for each attempt."),
            ::conf::DirectiveDef {
                name: concat!($prefix, "next_upstream"),
                contexts: ::conf::Contexts::HTTP_SERVER_LOCATION,
                arity: ::conf::Arity::ONE_MORE,
                block: false,
                default: "error timeout",
                doc: "Failures after which another server is tried.",
                syntax: $words.syntax,
                apply: |b, d| {
                    $crate::upstream::assign::assign_next_upstream::<$conf>(b, d, $words.names)
                },
            },
            $crate::upstream_row!(assign $prefix $conf, "socket_rcvbuf" socket.socket_rcvbuf = "0", "Receive buffer of connections to servers (SO_RCVBUF); 0 is the system's choice."),
            $crate::upstream_row!(assign $prefix $conf, "socket_sndbuf" socket.socket_sndbuf = "0", "Send buffer of connections to servers (SO_SNDBUF); 0 is the system's choice."),
            $crate::upstream_row!(assign $prefix $conf, "force_ranges" responses.force_ranges = "off", "Whether ranges are served from responses that do not allow them."),
            $crate::upstream_row!(assign $prefix $conf, "intercept_errors" responses.intercept_errors = "off", "Whether error_page applies to statuses of 300 and more that servers send."),
        ]
    };
    // Fields of responses.
    (headers $prefix:literal $conf:ty) => {
        &[
            $crate::upstream_row!(assign $prefix $conf, "hide_header" responses.hide_header = "", "A field of responses that is not passed on."),
            $crate::upstream_row!(assign $prefix $conf, "pass_header" responses.pass_header = "", "A field of responses that is passed on although it is hidden by default."),
            $crate::upstream_row!(assign $prefix $conf, "ignore_headers" responses.ignore_headers = "", "Fields of responses that are not processed."),
        ]
    };
    // Bodies, read ahead, stored.
    (buffered $prefix:literal $conf:ty, temp_path $temp:literal) => {
        &[
            $crate::upstream_row!(assign $prefix $conf, "buffering" buffering.buffering = "on", "Whether a response is read ahead of the client, into memory and a temporary file."),
            $crate::upstream_row!(assign $prefix $conf, "request_buffering" requests.request_buffering = "on", "Whether a request body is read whole before it is passed on."),
            $crate::upstream_row!(assign_size $prefix $conf, "buffers" buffering.buffers = "8 4k", "Memory for a response that is read ahead: number and size of buffers."),
            $crate::upstream_row!(assign_size $prefix $conf, "busy_buffers_size" buffering.busy_buffers_size = "8k", "The part of the buffers that may be in progress to the client."),
            $crate::upstream_row!(assign_size $prefix $conf, "max_temp_file_size" buffering.max_temp_file_size = "1024m", "Maximum number of bytes of a response that are read ahead into a file; 0 is none."),
            $crate::upstream_row!(assign_size $prefix $conf, "temp_file_write_size" buffering.temp_file_write_size = "8k", "Maximum number of bytes written to the file at once."),
            $crate::upstream_row!(assign $prefix $conf, "temp_path" buffering.temp_path = $temp, "Directory for temporary files, and digits of the names of its subdirectories."),
            $crate::upstream_row!(assign $prefix $conf, "ignore_client_abort" requests.ignore_client_abort = "off", "Whether a request continues after the client has left."),
            $crate::upstream_row!(assign $prefix $conf, "limit_rate" buffering.limit_rate = "0", "Bytes of a response read from the server per second; 0 is no limit."),
            $crate::upstream_row!(assign $prefix $conf, "pass_request_headers" requests.pass_request_headers = "on", "Whether the fields of the request are passed on."),
            $crate::upstream_row!(assign $prefix $conf, "pass_request_body" requests.pass_request_body = "on", "Whether the body of the request is passed on."),
            $crate::upstream_row!(assign_cache_or_store $prefix $conf, "store" store.store = "off", "Whether responses are stored as files, and their path."),
            $crate::upstream_row!(assign $prefix $conf, "store_access" store.store_access = "user:rw", "Permissions of files that are stored."),
        ]
    };
    // The cache.
    (cache $prefix:literal $conf:ty, use_stale $words:expr, key $key:literal) => {
        &[
            ::conf::DirectiveDef {
                name: concat!($prefix, "cache_path"),
                contexts: ::conf::Contexts::HTTP,
                arity: ::conf::Arity::TWO_MORE,
                block: false,
                default: "",
                doc: "Declares a cache: its directory, its zone of keys, and its limits.",
                syntax: $crate::cache::path::SYNTAX,
                apply: $crate::upstream::assign::declare_cache::<$conf>,
            },
            $crate::upstream_row!(assign_cache_or_store $prefix $conf, "cache" cache.cache = "off", "The cache of responses, by the name of its zone."),
            $crate::upstream_row!(assign $prefix $conf, "cache_key" cache.cache_key = $key, "The key of a response in the cache."),
            $crate::upstream_row!(assign $prefix $conf, "cache_valid" cache.cache_valid = "", "How long responses are fresh if their fields do not specify it; by status."),
            $crate::upstream_row!(assign $prefix $conf, "cache_min_uses" cache.cache_min_uses = "1", "Number of requests after which a response is stored."),
            $crate::upstream_row!(assign $prefix $conf, "cache_max_range_offset" cache.cache_max_range_offset = "", "Ranges that begin behind this number of bytes are passed on and not stored."),
            ::conf::DirectiveDef {
                name: concat!($prefix, "cache_use_stale"),
                contexts: ::conf::Contexts::HTTP_SERVER_LOCATION,
                arity: ::conf::Arity::ONE_MORE,
                block: false,
                default: "off",
                doc: "Failures of servers for which a stale response is served; updating: while it is updated.",
                syntax: $words.stale_syntax,
                apply: |b, d| {
                    $crate::upstream::assign::assign_use_stale::<$conf>(b, d, $words.names)
                },
            },
            $crate::upstream_row!(assign $prefix $conf, "cache_methods" cache.cache_methods = "GET HEAD", "Methods of requests with responses that are stored; GET and HEAD always are."),
            $crate::upstream_row!(assign $prefix $conf, "cache_lock" cache.cache_lock = "off", "Whether one request at a time receives a new response for the cache, while others wait for it."),
            $crate::upstream_row!(assign $prefix $conf, "cache_lock_timeout" cache.cache_lock_timeout = "5s", "Longest wait of a request for another one; then it is passed on and not stored."),
            $crate::upstream_row!(assign $prefix $conf, "cache_lock_age" cache.cache_lock_age = "5s", "Time after which one more request is passed on for a response that is still being received."),
            $crate::upstream_row!(assign $prefix $conf, "cache_status" cache.cache_status = "off", "Whether responses have the field Cache-Status (RFC 9211)."),
            $crate::upstream_row!(assign $prefix $conf, "cache_bypass" cache_rules.cache_bypass = "", "A response is not taken from the cache if a value is neither empty nor 0."),
            $crate::upstream_row!(assign $prefix $conf, "no_cache" cache_rules.no_cache = "", "A response is not stored if a value is neither empty nor 0."),
            $crate::upstream_row!(assign $prefix $conf, "cache_purge" cache_rules.cache_purge = "", "A request purges entries of the cache if a value is neither empty nor 0."),
            $crate::upstream_row!(assign $prefix $conf, "cache_rfc" cache_rules.cache_rfc = "on", "Whether the cache keeps the rules of RFC 9111; off: the rules of nginx."),
            $crate::upstream_row!(assign $prefix $conf, "cache_revalidate" cache_rules.cache_revalidate = "off", "Whether stale responses are validated by conditional requests."),
            $crate::upstream_row!(assign $prefix $conf, "cache_background_update" cache_rules.cache_background_update = "off", "Whether a stale response is updated by a subrequest while it is served."),
        ]
    };
    // The cache of servers with HTTP.
    (http_cache $prefix:literal $conf:ty) => {
        &[
            $crate::upstream_row!(assign $prefix $conf, "cache_convert_head" cache_rules.cache_convert_head = "on", "Whether a HEAD request is passed on as GET, so that its response can be stored."),
        ]
    };
    // An option of sockets that Linux does not have.
    (send_lowat $prefix:literal $conf:ty) => {
        &[
            $crate::upstream_row!(assign $prefix $conf, "send_lowat" socket.send_lowat = "0", "No effect on Linux, with a warning as in nginx."),
        ]
    };
    // Trailer fields.
    (trailers $prefix:literal $conf:ty) => {
        &[
            $crate::upstream_row!(assign $prefix $conf, "pass_trailers" responses.pass_trailers = "off", "Whether trailer fields of a response are passed on."),
        ]
    };
}

/// The words of `*_next_upstream` in a module.
#[derive(Clone, Copy, Debug)]
pub struct NextUpstreamWords {
    /// Each word with its bit of [`NextUpstream`].
    pub names: &'static [(&'static str, u32)],
    /// The arguments as the reference shows them.
    pub syntax: &'static str,
    /// Those of `*_cache_use_stale`.
    pub stale_syntax: &'static str,
}

/// The words of modules with HTTP servers.
pub const HTTP_NEXT_UPSTREAM: NextUpstreamWords = NextUpstreamWords {
    names: WORDS,
    syntax: "error | timeout | denied | invalid_header | non_idempotent | http_500 | http_502 | http_503 | http_504 | http_403 | http_404 | http_429 | off ...",
    stale_syntax: "error | timeout | invalid_header | updating | http_500 | http_502 | http_503 | http_504 | http_403 | http_404 | http_429 | off ...",
};

/// The words of modules with applications: 502 and 504 are statuses of gateways.
pub const APPLICATION_NEXT_UPSTREAM: NextUpstreamWords = NextUpstreamWords {
    names: WORDS.split_at(WORDS.len() - 2).0,
    syntax: "error | timeout | denied | invalid_header | non_idempotent | http_500 | http_503 | http_403 | http_404 | http_429 | off ...",
    stale_syntax: "error | timeout | invalid_header | updating | http_500 | http_503 | http_403 | http_404 | http_429 | off ...",
};

/// All words; those of gateways come last.
const WORDS: &[(&str, u32)] = &[
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
    ("http_502", NextUpstream::HTTP_502),
    ("http_504", NextUpstream::HTTP_504),
];

impl FromArgs for IgnoredHeaders {
    const ARITY: Arity = Arity::ONE_MORE;
    const SYNTAX: &'static str = "field ...";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Self::default().parse_again(cx, d)
    }

    fn parse_again(self, cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        conf::mask_more(cx.conf_loader(), d, Self::NAMES, self.0).map(Self)
    }
}

/// Number and size of the buffers for a response, as many as one likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseBuffers(pub u64, pub u64);

impl FromArgs for ResponseBuffers {
    const ARITY: Arity = Arity::TAKE2;
    const SYNTAX: &'static str = "number size";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        conf::buffers(d).map(|(number, size)| Self(number, size as u64))
    }
}

/// `*_bind`: the address, and whether it is transparent; `None` for `off`.
#[derive(Clone, Debug)]
pub struct Bind(pub Option<(Value, bool)>);

impl FromArgs for Bind {
    const ARITY: Arity = Arity::TAKE12;
    const SYNTAX: &'static str = "address [transparent] | off";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        if d.args.len() == 1 && d.arg(0) == b"off" {
            return Ok(Self(None));
        }
        let value = Value::compile(cx, d, d.word(0))?;
        if value
            .constant()
            .is_some_and(|text| local_address(text).is_none())
        {
            let text = format!("invalid address \"{}\"", d.arg_str(0));
            return Err(ConfError::word(d, d.word(0), text));
        }
        let transparent = match d.args.get(1) {
            None => false,
            Some(word) if word.text == b"transparent" => true,
            Some(word) => {
                let text = format!("invalid parameter \"{}\"", word.as_str());
                return Err(ConfError::word(d, word, text));
            }
        };
        Ok(Self(Some((value, transparent))))
    }
}

/// `*_store`.
#[derive(Clone, Debug)]
pub struct Stored(pub Option<StorePath>);

impl FromArgs for Stored {
    const SYNTAX: &'static str = "on | off | string";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Ok(Self(match d.arg(0) {
            b"off" => None,
            b"" => return Err(ConfError::word(d, d.word(0), "empty path")),
            b"on" => Some(StorePath::Mapped),
            _ => Some(StorePath::Value(Value::compile(cx, d, d.word(0))?)),
        }))
    }
}

/// Values, of which all or any must hold.
#[derive(Clone, Debug, Default)]
pub struct Conditions(pub Vec<Value>);

impl FromArgs for Conditions {
    const ARITY: Arity = Arity::ONE_MORE;
    const SYNTAX: &'static str = "string ...";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let values = d.args.iter().map(|word| Value::compile(cx, d, word));
        Ok(Self(values.collect::<Result<_, _>>()?))
    }
}

/// Names of fields, in lower case.
#[derive(Clone, Debug, Default)]
pub struct FieldNames(pub Vec<Box<[u8]>>);

impl FromArgs for FieldNames {
    const SYNTAX: &'static str = "field";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Self::default().parse_again(cx, d)
    }

    fn parse_again(mut self, _: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        self.0.push(d.arg(0).to_ascii_lowercase().into());
        Ok(self)
    }
}

/// A size of a buffer of a socket, bytes.
#[derive(Clone, Copy, Debug)]
pub struct SocketBuffer(pub u32);

impl FromArgs for SocketBuffer {
    const SYNTAX: &'static str = "size";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let size = Size::parse(cx, d)?.0;
        let size = u32::try_from(size).ok().filter(|n| *n <= i32::MAX as u32);
        size.map(Self)
            .ok_or_else(|| server_base::from_args::invalid(d))
    }
}

/// `*_send_lowat`: Linux has no such limit that could be set.
#[derive(Clone, Copy, Debug)]
pub struct SendLowat;

impl FromArgs for SendLowat {
    const SYNTAX: &'static str = "size";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Size::parse(cx, d)?;
        let text = format!("\"{}\" is not supported, ignored", d.name());
        cx.warn(ConfError::at(d, text));
        Ok(Self)
    }
}
