//! The locations of the simulated proxy.

/// A location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocationSpec {
    pub(crate) name: &'static str,
    /// Maximum number of servers for one request, over new connections.
    pub(crate) tries: usize,
    /// POST may be sent again.
    pub(crate) repeats: bool,
    /// Statuses that lead to the next server.
    pub(crate) passes_by: &'static [u16],
    /// Responses are delayed.
    pub(crate) is_slow: bool,
    /// Error statuses are replaced by an error page.
    pub(crate) intercepts: bool,
    /// Request bodies are not buffered.
    pub(crate) streams: bool,
    /// A server may answer 101.
    pub(crate) upgrades: bool,
    /// Only GET and HEAD are allowed.
    pub(crate) reads_only: bool,
    pub(super) conf: &'static str,
}

const DEFAULT: LocationSpec = LocationSpec {
    name: "plain",
    tries: 1,
    repeats: false,
    passes_by: &[],
    is_slow: false,
    intercepts: false,
    streams: false,
    upgrades: false,
    reads_only: false,
    conf: "proxy_pass http://one;",
};

/// The locations; URIs are `/NAME/ID`.
pub(crate) const LOCATIONS: [LocationSpec; 54] = [
    DEFAULT,
    LocationSpec {
        name: "tries",
        tries: 3,
        passes_by: &[503, 404],
        conf: "proxy_pass http://three; proxy_next_upstream error timeout invalid_header http_503 http_404;",
        ..DEFAULT
    },
    LocationSpec {
        name: "any",
        tries: 3,
        repeats: true,
        conf: "proxy_pass http://three; proxy_next_upstream error timeout invalid_header non_idempotent;",
        ..DEFAULT
    },
    LocationSpec {
        name: "raw",
        conf: "proxy_pass http://one; proxy_buffering off; proxy_buffer_size 1k;",
        ..DEFAULT
    },
    LocationSpec {
        name: "up",
        tries: 3,
        streams: true,
        conf: "proxy_pass http://three; proxy_request_buffering off;",
        ..DEFAULT
    },
    LocationSpec {
        name: "through",
        tries: 2,
        streams: true,
        conf: "proxy_pass http://three; proxy_next_upstream_tries 2; proxy_request_buffering off; proxy_buffering off;",
        ..DEFAULT
    },
    LocationSpec {
        name: "again",
        tries: 3,
        passes_by: &[503],
        conf: "proxy_pass http://one; proxy_next_upstream error timeout invalid_header http_503; \
               proxy_next_upstream_same 2; proxy_next_upstream_delay 200ms;",
        ..DEFAULT
    },
    LocationSpec {
        name: "hasty",
        tries: 6,
        repeats: true,
        conf: "proxy_pass http://three; proxy_next_upstream error timeout invalid_header non_idempotent; \
               proxy_next_upstream_same 1; proxy_next_upstream_attempt_timeout 3500ms; proxy_retry_budget 20% min=1;",
        ..DEFAULT
    },
    LocationSpec {
        name: "spool",
        conf: "proxy_pass http://one; proxy_buffer_size 1k; proxy_buffers 2 1k; proxy_busy_buffers_size 1k; \
               proxy_max_temp_file_size 30k; proxy_temp_file_write_size 2k;",
        ..DEFAULT
    },
    LocationSpec {
        name: "tight",
        conf: "proxy_pass http://one; proxy_buffer_size 1k; proxy_buffers 2 1k; proxy_busy_buffers_size 1k; \
               proxy_max_temp_file_size 0;",
        ..DEFAULT
    },
    LocationSpec {
        name: "rate",
        is_slow: true,
        conf: "proxy_pass http://one; proxy_limit_rate 5k;",
        ..DEFAULT
    },
    LocationSpec {
        name: "errors",
        intercepts: true,
        conf: "proxy_pass http://one; proxy_intercept_errors on; error_page 404 500 503 /oops;",
        ..DEFAULT
    },
    LocationSpec {
        name: "zip",
        conf: "proxy_pass http://one; gzip on; gzip_types *; gzip_proxied any; gzip_min_length 1;",
        ..DEFAULT
    },
    LocationSpec {
        name: "guard",
        conf: "auth_request /auth; proxy_pass http://one;",
        ..DEFAULT
    },
    LocationSpec {
        name: "ws",
        upgrades: true,
        conf: "proxy_pass http://one; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $http_connection;",
        ..DEFAULT
    },
    LocationSpec {
        name: "scgi",
        conf: "scgi_pass s_one;",
        ..DEFAULT
    },
    LocationSpec {
        name: "scgi-tries",
        tries: 3,
        passes_by: &[503, 404],
        conf: "scgi_pass s_three; scgi_next_upstream error timeout invalid_header http_503 http_404;",
        ..DEFAULT
    },
    LocationSpec {
        name: "scgi-raw",
        conf: "scgi_pass s_one; scgi_buffering off; scgi_buffer_size 1k;",
        ..DEFAULT
    },
    LocationSpec {
        name: "scgi-up",
        tries: 3,
        streams: true,
        conf: "scgi_pass s_three; scgi_request_buffering off;",
        ..DEFAULT
    },
    LocationSpec {
        name: "scgi-zip",
        conf: "scgi_pass s_one; gzip on; gzip_types *; gzip_proxied any; gzip_min_length 1;",
        ..DEFAULT
    },
    LocationSpec {
        name: "scgi-ws",
        upgrades: true,
        conf: "scgi_pass s_one;",
        ..DEFAULT
    },
    LocationSpec {
        name: "uwsgi",
        conf: "uwsgi_pass u_one;",
        ..DEFAULT
    },
    LocationSpec {
        name: "uwsgi-any",
        tries: 3,
        repeats: true,
        conf: "uwsgi_pass u_three; uwsgi_next_upstream error timeout invalid_header non_idempotent;",
        ..DEFAULT
    },
    LocationSpec {
        name: "uwsgi-through",
        tries: 2,
        streams: true,
        conf: "uwsgi_pass u_three; uwsgi_next_upstream_tries 2; uwsgi_request_buffering off; uwsgi_buffering off;",
        ..DEFAULT
    },
    LocationSpec {
        name: "uwsgi-spool",
        conf: "uwsgi_pass u_one; uwsgi_buffer_size 1k; uwsgi_buffers 2 1k; uwsgi_busy_buffers_size 1k; \
               uwsgi_max_temp_file_size 30k; uwsgi_temp_file_write_size 2k;",
        ..DEFAULT
    },
    LocationSpec {
        name: "uwsgi-ws",
        upgrades: true,
        conf: "uwsgi_pass u_one;",
        ..DEFAULT
    },
    LocationSpec {
        name: "uwsgi-errors",
        intercepts: true,
        conf: "uwsgi_pass u_one; uwsgi_intercept_errors on; error_page 404 500 503 /oops;",
        ..DEFAULT
    },
    LocationSpec {
        name: "fcgi",
        conf: "fastcgi_pass f_one;",
        ..DEFAULT
    },
    LocationSpec {
        name: "fcgi-kept",
        conf: "fastcgi_pass f_one; fastcgi_keep_conn on;",
        ..DEFAULT
    },
    LocationSpec {
        name: "fcgi-tries",
        tries: 3,
        passes_by: &[503, 404],
        conf: "fastcgi_pass f_three; fastcgi_keep_conn on; fastcgi_next_upstream error timeout invalid_header http_503 http_404;",
        ..DEFAULT
    },
    LocationSpec {
        name: "fcgi-any",
        tries: 3,
        repeats: true,
        conf: "fastcgi_pass f_three; fastcgi_keep_conn on; fastcgi_next_upstream error timeout invalid_header non_idempotent;",
        ..DEFAULT
    },
    LocationSpec {
        name: "fcgi-raw",
        conf: "fastcgi_pass f_one; fastcgi_keep_conn on; fastcgi_buffering off; fastcgi_buffer_size 1k;",
        ..DEFAULT
    },
    LocationSpec {
        name: "fcgi-up",
        tries: 3,
        streams: true,
        conf: "fastcgi_pass f_three; fastcgi_request_buffering off;",
        ..DEFAULT
    },
    LocationSpec {
        name: "fcgi-through",
        tries: 2,
        streams: true,
        conf: "fastcgi_pass f_three; fastcgi_keep_conn on; fastcgi_next_upstream_tries 2; fastcgi_request_buffering off; \
               fastcgi_buffering off;",
        ..DEFAULT
    },
    LocationSpec {
        name: "fcgi-spool",
        conf: "fastcgi_pass f_one; fastcgi_keep_conn on; fastcgi_buffer_size 1k; fastcgi_buffers 2 1k; \
               fastcgi_busy_buffers_size 1k; fastcgi_max_temp_file_size 30k; fastcgi_temp_file_write_size 2k;",
        ..DEFAULT
    },
    LocationSpec {
        name: "fcgi-errors",
        intercepts: true,
        conf: "fastcgi_pass f_one; fastcgi_keep_conn on; fastcgi_intercept_errors on; error_page 404 500 503 /oops;",
        ..DEFAULT
    },
    LocationSpec {
        name: "fcgi-zip",
        conf: "fastcgi_pass f_one; fastcgi_keep_conn on; gzip on; gzip_types *; gzip_proxied any; gzip_min_length 1;",
        ..DEFAULT
    },
    LocationSpec {
        name: "hash",
        tries: 3,
        passes_by: &[503, 404],
        conf: "proxy_pass http://hash; proxy_next_upstream error timeout invalid_header http_503 http_404;",
        ..DEFAULT
    },
    LocationSpec {
        name: "least",
        tries: 3,
        repeats: true,
        conf: "proxy_pass http://least; proxy_next_upstream error timeout invalid_header non_idempotent;",
        ..DEFAULT
    },
    LocationSpec {
        name: "by-ip",
        tries: 3,
        streams: true,
        conf: "proxy_pass http://by_ip; proxy_request_buffering off;",
        ..DEFAULT
    },
    LocationSpec {
        name: "random",
        tries: 6,
        passes_by: &[503],
        conf: "proxy_pass http://random; proxy_next_upstream error timeout invalid_header http_503; \
               proxy_next_upstream_same 1;",
        ..DEFAULT
    },
    LocationSpec {
        name: "time",
        tries: 3,
        conf: "proxy_pass http://time; proxy_buffering off;",
        ..DEFAULT
    },
    LocationSpec {
        name: "mirrored",
        conf: "mirror /mirror; proxy_pass http://one;",
        ..DEFAULT
    },
    LocationSpec {
        name: "copied",
        ..DEFAULT
    },
    LocationSpec {
        name: "tls",
        conf: "proxy_pass http://t_one;",
        ..DEFAULT
    },
    LocationSpec {
        name: "tls-tries",
        tries: 3,
        passes_by: &[503, 404],
        conf: "proxy_pass http://t_three; proxy_next_upstream error timeout invalid_header http_503 http_404;",
        ..DEFAULT
    },
    LocationSpec {
        name: "tls-up",
        tries: 3,
        streams: true,
        conf: "proxy_pass http://t_three; proxy_request_buffering off;",
        ..DEFAULT
    },
    LocationSpec {
        name: "h2",
        conf: "proxy_pass http://h_one;",
        ..DEFAULT
    },
    LocationSpec {
        name: "h2-tries",
        tries: 3,
        passes_by: &[503, 404],
        conf: "proxy_pass http://h_three; proxy_next_upstream error timeout invalid_header http_503 http_404;",
        ..DEFAULT
    },
    LocationSpec {
        name: "h2-up",
        tries: 3,
        streams: true,
        conf: "proxy_pass http://h_three; proxy_request_buffering off; proxy_buffering off;",
        ..DEFAULT
    },
    LocationSpec {
        name: "h2-tight",
        conf: "proxy_pass http://h_one; proxy_buffer_size 1k; proxy_buffers 2 1k; proxy_busy_buffers_size 1k; \
               proxy_max_temp_file_size 0;",
        ..DEFAULT
    },
    LocationSpec {
        name: "h2-tls",
        tries: 3,
        conf: "proxy_pass http://g_three; proxy_next_upstream_attempt_timeout 3500ms;",
        ..DEFAULT
    },
    LocationSpec {
        name: "mc",
        reads_only: true,
        conf: "set $memcached_key $request_uri; memcached_pass m_one;",
        ..DEFAULT
    },
    LocationSpec {
        name: "mc-tries",
        tries: 3,
        passes_by: &[404],
        reads_only: true,
        conf: "set $memcached_key $request_uri; memcached_pass m_three; \
               memcached_next_upstream error timeout invalid_response not_found;",
        ..DEFAULT
    },
];
