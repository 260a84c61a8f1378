//! The rows of upstream directives, written once for every prefix.
//!
//! A module asks for the groups that it has:
//!
//! ```text
//! const BUFFERED: &[DirectiveDef<ConfigBuilder>] = upstream_rows!(buffered "proxy_" ProxyLoc, temp_path "proxy_temp 1 2");
//! ```

/// One row: the suffix of its name, the field that it sets, its type, its default as shown, its documentation.
#[doc(hidden)]
#[macro_export]
macro_rules! upstream_row {
    ($assign:ident $prefix:literal $conf:ty, $suffix:literal $field:ident : $ty:ty = $shown:expr, $doc:literal) => {
        ::conf::DirectiveDef {
            name: concat!($prefix, $suffix),
            contexts: ::conf::Contexts::HTTP_SERVER_LOCATION,
            arity: <$ty as ::server_base::from_args::FromArgs>::ARITY,
            block: false,
            default: $shown,
            doc: $doc,
            syntax: <$ty as ::server_base::from_args::FromArgs>::SYNTAX,
            apply: |b, d| {
                $crate::upstream::settings::$assign::<$conf, $ty>(b, d, |own| &mut own.$field)
            },
        }
    };
}

/// The rows of a group of upstream directives, under a prefix, for a struct of settings that
/// [passes on](crate::upstream::PassesOn).
#[macro_export]
macro_rules! upstream_rows {
    // Connections to servers and failures, for every protocol.
    (basic $prefix:literal $conf:ty) => {
        &[
            $crate::upstream_row!(assign $prefix $conf, "bind" bind: $crate::upstream::types::Bind = "", "Local address of connections to servers."),
            $crate::upstream_row!(assign $prefix $conf, "bind_dynamic" bind_dynamic: bool = "off", "Whether the local address is computed for each attempt anew."),
            $crate::upstream_row!(assign $prefix $conf, "allow_upstream" allow_upstream: $crate::upstream::types::Conditions = "", "An attempt with a server is made only if all values are neither empty nor 0."),
            $crate::upstream_row!(assign $prefix $conf, "connect_timeout" connect_timeout: $crate::upstream::types::Millis = "60s", "Longest time for connecting to a server."),
            $crate::upstream_row!(assign $prefix $conf, "send_timeout" send_timeout: $crate::upstream::types::Millis = "60s", "Longest time between two writes to a server."),
            $crate::upstream_row!(assign $prefix $conf, "read_timeout" read_timeout: $crate::upstream::types::Millis = "60s", "Longest time between two reads from a server."),
            $crate::upstream_row!(assign $prefix $conf, "next_upstream_tries" next_upstream_tries: $crate::upstream::types::Number = "0", "How many servers are tried for a request; 0 is all."),
            $crate::upstream_row!(assign $prefix $conf, "next_upstream_timeout" next_upstream_timeout: $crate::upstream::types::Millis = "0", "Limit of time to try other servers; 0 is no limit."),
            $crate::upstream_row!(assign_size $prefix $conf, "buffer_size" buffer_size: $crate::upstream::types::Size = "64k", "Most bytes of the head of a response."),
            $crate::upstream_row!(assign $prefix $conf, "socket_keepalive" socket_keepalive: bool = "off", "Whether the system probes connections to servers (SO_KEEPALIVE)."),
        ]
    };
    // What is done about responses and failures, for protocols with statuses.
    (connection $prefix:literal $conf:ty, next_upstream $words:expr) => {
        &[
            $crate::upstream_row!(assign $prefix $conf, "request_dynamic" request_dynamic: bool = "off", "Whether the request is made for each attempt anew."),
            ::conf::DirectiveDef {
                name: concat!($prefix, "next_upstream"),
                contexts: ::conf::Contexts::HTTP_SERVER_LOCATION,
                arity: ::conf::Arity::ONE_MORE,
                block: false,
                default: "error timeout",
                doc: "Failures after which another server is tried.",
                syntax: $words.syntax,
                apply: |b, d| {
                    $crate::upstream::settings::assign_next_upstream::<$conf>(b, d, $words.names)
                },
            },
            $crate::upstream_row!(assign $prefix $conf, "socket_rcvbuf" socket_rcvbuf: $crate::upstream::types::SocketBuffer = "0", "Receive buffer of connections to servers (SO_RCVBUF); 0 is the system's choice."),
            $crate::upstream_row!(assign $prefix $conf, "socket_sndbuf" socket_sndbuf: $crate::upstream::types::SocketBuffer = "0", "Send buffer of connections to servers (SO_SNDBUF); 0 is the system's choice."),
            $crate::upstream_row!(assign $prefix $conf, "force_ranges" force_ranges: bool = "off", "Whether ranges are served from responses that do not allow them."),
            $crate::upstream_row!(assign $prefix $conf, "intercept_errors" intercept_errors: bool = "off", "Whether error_page applies to statuses of 300 and more that servers send."),
        ]
    };
    // Fields of responses.
    (headers $prefix:literal $conf:ty) => {
        &[
            $crate::upstream_row!(assign $prefix $conf, "hide_header" hide_header: $crate::upstream::types::FieldNames = "", "A field of responses that is not passed on."),
            $crate::upstream_row!(assign $prefix $conf, "pass_header" pass_header: $crate::upstream::types::FieldNames = "", "A field of responses that is passed on though it would be hidden."),
            $crate::upstream_row!(assign $prefix $conf, "ignore_headers" ignore_headers: $crate::upstream::types::IgnoredHeaders = "", "Fields of responses that have no effect here."),
        ]
    };
    // Bodies, read ahead, stored.
    (buffered $prefix:literal $conf:ty, temp_path $temp:literal) => {
        &[
            $crate::upstream_row!(assign $prefix $conf, "buffering" buffering: bool = "on", "Whether a response is read ahead of the client, into memory and a temporary file."),
            $crate::upstream_row!(assign $prefix $conf, "request_buffering" request_buffering: bool = "on", "Whether a request body is read whole before it is passed on."),
            $crate::upstream_row!(assign_size $prefix $conf, "buffers" buffers: $crate::upstream::types::ResponseBuffers = "8 4k", "Memory for a response that is read ahead: number and size of buffers."),
            $crate::upstream_row!(assign_size $prefix $conf, "busy_buffers_size" busy_buffers_size: $crate::upstream::types::Size = "8k", "The part of the buffers that may be in progress to the client."),
            $crate::upstream_row!(assign_size $prefix $conf, "max_temp_file_size" max_temp_file_size: $crate::upstream::types::Size = "1024m", "Most bytes of a response that are read ahead into a file; 0 is none."),
            $crate::upstream_row!(assign_size $prefix $conf, "temp_file_write_size" temp_file_write_size: $crate::upstream::types::Size = "8k", "How much is written to the file at once."),
            $crate::upstream_row!(assign $prefix $conf, "temp_path" temp_path: $crate::upstream::types::TempPath = $temp, "Directory for temporary files, and digits of the names of its subdirectories."),
            $crate::upstream_row!(assign $prefix $conf, "ignore_client_abort" ignore_client_abort: bool = "off", "Whether a request continues after the client has left."),
            $crate::upstream_row!(assign $prefix $conf, "limit_rate" limit_rate: $crate::upstream::types::SizeValue = "0", "How many bytes of a response are read from the server in a second; 0 is no limit."),
            $crate::upstream_row!(assign $prefix $conf, "pass_request_headers" pass_request_headers: bool = "on", "Whether the fields of the request are passed on."),
            $crate::upstream_row!(assign $prefix $conf, "pass_request_body" pass_request_body: bool = "on", "Whether the body of the request is passed on."),
            $crate::upstream_row!(assign $prefix $conf, "store" store: $crate::upstream::types::Stored = "off", "Whether responses are stored as files, and under which path."),
            $crate::upstream_row!(assign $prefix $conf, "store_access" store_access: $crate::upstream::types::Access = "user:rw", "Permissions of files that are stored."),
            $crate::upstream_row!(assign $prefix $conf, "cache" cache: $crate::upstream::types::NoCache = "off", "There is no cache; only `off` is accepted."),
            $crate::upstream_row!(assign $prefix $conf, "cache_bypass" cache_bypass: $crate::upstream::types::CacheConditions = "", "Without effect, since there is no cache."),
            $crate::upstream_row!(assign $prefix $conf, "no_cache" no_cache: $crate::upstream::types::CacheConditions = "", "Without effect, since there is no cache."),
        ]
    };
    // An option of sockets that Linux does not have.
    (send_lowat $prefix:literal $conf:ty) => {
        &[
            $crate::upstream_row!(assign $prefix $conf, "send_lowat" send_lowat: $crate::upstream::types::SendLowat = "0", "Without effect on Linux, as in nginx; it causes a warning."),
        ]
    };
    // Trailer fields.
    (trailers $prefix:literal $conf:ty) => {
        &[
            $crate::upstream_row!(assign $prefix $conf, "pass_trailers" pass_trailers: bool = "off", "Whether trailer fields of a response are passed on."),
        ]
    };
}
