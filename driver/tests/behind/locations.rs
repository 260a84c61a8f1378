//! The locations of the simulated proxy.

/// A location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocationSpec {
    pub(crate) name: &'static str,
    /// Servers that one request may be sent to, over new connections.
    pub(crate) tries: usize,
    /// POST may be sent again.
    pub(crate) repeats: bool,
    /// Statuses that lead to the next server.
    pub(crate) passes_by: &'static [u16],
    /// Responses take time of their own.
    pub(crate) is_slow: bool,
    /// From this status on responses are replaced.
    pub(crate) intercepts: bool,
    /// Request bodies are passed on as they come.
    pub(crate) streams: bool,
    /// A server may answer 101.
    pub(crate) upgrades: bool,
    /// Nothing but reading is allowed.
    pub(crate) reads_only: bool,
    pub(super) conf: &'static str,
}

const PLACE: LocationSpec = LocationSpec {
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

/// The locations, `/NAME/ID`.
pub(crate) const LOCATIONS: [LocationSpec; 46] = [
    PLACE,
    LocationSpec {
        name: "tries",
        tries: 3,
        passes_by: &[503, 404],
        conf: "proxy_pass http://three; proxy_next_upstream error timeout invalid_header http_503 http_404;",
        ..PLACE
    },
    LocationSpec {
        name: "any",
        tries: 3,
        repeats: true,
        conf: "proxy_pass http://three; proxy_next_upstream error timeout invalid_header non_idempotent;",
        ..PLACE
    },
    LocationSpec {
        name: "raw",
        conf: "proxy_pass http://one; proxy_buffering off; proxy_buffer_size 1k;",
        ..PLACE
    },
    LocationSpec {
        name: "up",
        tries: 3,
        streams: true,
        conf: "proxy_pass http://three; proxy_request_buffering off;",
        ..PLACE
    },
    LocationSpec {
        name: "through",
        tries: 2,
        streams: true,
        conf: "proxy_pass http://three; proxy_next_upstream_tries 2; proxy_request_buffering off; proxy_buffering off;",
        ..PLACE
    },
    LocationSpec {
        name: "spool",
        conf: "proxy_pass http://one; proxy_buffer_size 1k; proxy_buffers 2 1k; proxy_busy_buffers_size 1k; \
               proxy_max_temp_file_size 30k; proxy_temp_file_write_size 2k;",
        ..PLACE
    },
    LocationSpec {
        name: "tight",
        conf: "proxy_pass http://one; proxy_buffer_size 1k; proxy_buffers 2 1k; proxy_busy_buffers_size 1k; \
               proxy_max_temp_file_size 0;",
        ..PLACE
    },
    LocationSpec {
        name: "rate",
        is_slow: true,
        conf: "proxy_pass http://one; proxy_limit_rate 5k;",
        ..PLACE
    },
    LocationSpec {
        name: "errors",
        intercepts: true,
        conf: "proxy_pass http://one; proxy_intercept_errors on; error_page 404 500 503 /oops;",
        ..PLACE
    },
    LocationSpec {
        name: "zip",
        conf: "proxy_pass http://one; gzip on; gzip_types *; gzip_proxied any; gzip_min_length 1;",
        ..PLACE
    },
    LocationSpec {
        name: "guard",
        conf: "auth_request /auth; proxy_pass http://one;",
        ..PLACE
    },
    LocationSpec {
        name: "ws",
        upgrades: true,
        conf: "proxy_pass http://one; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $http_connection;",
        ..PLACE
    },
    LocationSpec {
        name: "scgi",
        conf: "scgi_pass s_one;",
        ..PLACE
    },
    LocationSpec {
        name: "scgi-tries",
        tries: 3,
        passes_by: &[503, 404],
        conf: "scgi_pass s_three; scgi_next_upstream error timeout invalid_header http_503 http_404;",
        ..PLACE
    },
    LocationSpec {
        name: "scgi-raw",
        conf: "scgi_pass s_one; scgi_buffering off; scgi_buffer_size 1k;",
        ..PLACE
    },
    LocationSpec {
        name: "scgi-up",
        tries: 3,
        streams: true,
        conf: "scgi_pass s_three; scgi_request_buffering off;",
        ..PLACE
    },
    LocationSpec {
        name: "scgi-zip",
        conf: "scgi_pass s_one; gzip on; gzip_types *; gzip_proxied any; gzip_min_length 1;",
        ..PLACE
    },
    LocationSpec {
        name: "scgi-ws",
        upgrades: true,
        conf: "scgi_pass s_one;",
        ..PLACE
    },
    LocationSpec {
        name: "uwsgi",
        conf: "uwsgi_pass u_one;",
        ..PLACE
    },
    LocationSpec {
        name: "uwsgi-any",
        tries: 3,
        repeats: true,
        conf: "uwsgi_pass u_three; uwsgi_next_upstream error timeout invalid_header non_idempotent;",
        ..PLACE
    },
    LocationSpec {
        name: "uwsgi-through",
        tries: 2,
        streams: true,
        conf: "uwsgi_pass u_three; uwsgi_next_upstream_tries 2; uwsgi_request_buffering off; uwsgi_buffering off;",
        ..PLACE
    },
    LocationSpec {
        name: "uwsgi-spool",
        conf: "uwsgi_pass u_one; uwsgi_buffer_size 1k; uwsgi_buffers 2 1k; uwsgi_busy_buffers_size 1k; \
               uwsgi_max_temp_file_size 30k; uwsgi_temp_file_write_size 2k;",
        ..PLACE
    },
    LocationSpec {
        name: "uwsgi-ws",
        upgrades: true,
        conf: "uwsgi_pass u_one;",
        ..PLACE
    },
    LocationSpec {
        name: "uwsgi-errors",
        intercepts: true,
        conf: "uwsgi_pass u_one; uwsgi_intercept_errors on; error_page 404 500 503 /oops;",
        ..PLACE
    },
    LocationSpec {
        name: "fcgi",
        conf: "fastcgi_pass f_one;",
        ..PLACE
    },
    LocationSpec {
        name: "fcgi-kept",
        conf: "fastcgi_pass f_one; fastcgi_keep_conn on;",
        ..PLACE
    },
    LocationSpec {
        name: "fcgi-tries",
        tries: 3,
        passes_by: &[503, 404],
        conf: "fastcgi_pass f_three; fastcgi_keep_conn on; fastcgi_next_upstream error timeout invalid_header http_503 http_404;",
        ..PLACE
    },
    LocationSpec {
        name: "fcgi-any",
        tries: 3,
        repeats: true,
        conf: "fastcgi_pass f_three; fastcgi_keep_conn on; fastcgi_next_upstream error timeout invalid_header non_idempotent;",
        ..PLACE
    },
    LocationSpec {
        name: "fcgi-raw",
        conf: "fastcgi_pass f_one; fastcgi_keep_conn on; fastcgi_buffering off; fastcgi_buffer_size 1k;",
        ..PLACE
    },
    LocationSpec {
        name: "fcgi-up",
        tries: 3,
        streams: true,
        conf: "fastcgi_pass f_three; fastcgi_request_buffering off;",
        ..PLACE
    },
    LocationSpec {
        name: "fcgi-through",
        tries: 2,
        streams: true,
        conf: "fastcgi_pass f_three; fastcgi_keep_conn on; fastcgi_next_upstream_tries 2; fastcgi_request_buffering off; \
               fastcgi_buffering off;",
        ..PLACE
    },
    LocationSpec {
        name: "fcgi-spool",
        conf: "fastcgi_pass f_one; fastcgi_keep_conn on; fastcgi_buffer_size 1k; fastcgi_buffers 2 1k; \
               fastcgi_busy_buffers_size 1k; fastcgi_max_temp_file_size 30k; fastcgi_temp_file_write_size 2k;",
        ..PLACE
    },
    LocationSpec {
        name: "fcgi-errors",
        intercepts: true,
        conf: "fastcgi_pass f_one; fastcgi_keep_conn on; fastcgi_intercept_errors on; error_page 404 500 503 /oops;",
        ..PLACE
    },
    LocationSpec {
        name: "fcgi-zip",
        conf: "fastcgi_pass f_one; fastcgi_keep_conn on; gzip on; gzip_types *; gzip_proxied any; gzip_min_length 1;",
        ..PLACE
    },
    LocationSpec {
        name: "copied",
        ..PLACE
    },
    LocationSpec {
        name: "tls",
        conf: "proxy_pass http://t_one;",
        ..PLACE
    },
    LocationSpec {
        name: "tls-tries",
        tries: 3,
        passes_by: &[503, 404],
        conf: "proxy_pass http://t_three; proxy_next_upstream error timeout invalid_header http_503 http_404;",
        ..PLACE
    },
    LocationSpec {
        name: "tls-up",
        tries: 3,
        streams: true,
        conf: "proxy_pass http://t_three; proxy_request_buffering off;",
        ..PLACE
    },
    LocationSpec {
        name: "h2",
        conf: "proxy_pass http://h_one;",
        ..PLACE
    },
    LocationSpec {
        name: "h2-tries",
        tries: 3,
        passes_by: &[503, 404],
        conf: "proxy_pass http://h_three; proxy_next_upstream error timeout invalid_header http_503 http_404;",
        ..PLACE
    },
    LocationSpec {
        name: "h2-up",
        tries: 3,
        streams: true,
        conf: "proxy_pass http://h_three; proxy_request_buffering off; proxy_buffering off;",
        ..PLACE
    },
    LocationSpec {
        name: "h2-tight",
        conf: "proxy_pass http://h_one; proxy_buffer_size 1k; proxy_buffers 2 1k; proxy_busy_buffers_size 1k; \
               proxy_max_temp_file_size 0;",
        ..PLACE
    },
    LocationSpec {
        name: "h2-tls",
        tries: 3,
        conf: "proxy_pass http://g_three;",
        ..PLACE
    },
    LocationSpec {
        name: "mc",
        reads_only: true,
        conf: "set $memcached_key $request_uri; memcached_pass m_one;",
        ..PLACE
    },
    LocationSpec {
        name: "mc-tries",
        tries: 3,
        passes_by: &[404],
        reads_only: true,
        conf: "set $memcached_key $request_uri; memcached_pass m_three; \
               memcached_next_upstream error timeout invalid_response not_found;",
        ..PLACE
    },
];
