//! Locations of the simulated proxy: one for each way of proxying, in two configurations.

use std::fs::File;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use driver::worker::thread_config::ThreadConfig;
use server_base::errlog::{ErrorLog, Level, Sink};
use server_base::opened::OpenedLogs;
use server_http::http::Http;
use server_http::module::Module;
use server_http::{LoadOptions, load};

use super::copies;

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
    conf: &'static str,
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
pub(crate) const PLACES: [LocationSpec; 38] = [
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
        name: "copied",
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

/// Where servers speak SCGI, uwsgi, FastCGI and memcached.
pub(crate) const SCGI_PORTS: RangeInclusive<u16> = 85..=88;
pub(crate) const UWSGI_PORTS: RangeInclusive<u16> = 91..=94;
pub(crate) const FASTCGI_PORTS: RangeInclusive<u16> = 95..=98;
pub(crate) const MEMCACHED_PORTS: RangeInclusive<u16> = 101..=104;
/// `uwsgi_modifier1` and `uwsgi_modifier2`.
pub(crate) const MODIFIERS: [u8; 2] = [5, 9];

/// The body in place of a response that is intercepted.
pub(crate) const OOPS: &str = "something is wrong";
/// The body behind `X-Accel-Redirect: /file`.
pub(crate) const FILE: &str = "a text of ours";
/// The least of all timeouts.
pub(crate) const LEAST_MS: u64 = 3000;
/// Time to wait for the reset that shows that a request was not read.
pub(crate) const RESET_MS: u64 = 500;
/// Buffered bytes of a body that is passed on unbuffered, less a read.
pub(crate) const KEPT_BYTES: usize = 60_000;
/// How many configurations there are.
pub(crate) const CONFS: usize = 2;
/// The ports: HTTP/1 and HTTP/2, HTTP/1 and SPDY.
pub(crate) const PORTS: usize = 2;

fn config(temp: &str, conf: usize) -> String {
    let places: String = PLACES
        .iter()
        .map(|place| format!("location /{}/ {{ {} }}\n", place.name, place.conf))
        .collect();
    // The second keeps fewer connections, and request bodies in files.
    let (kept, body) = match conf {
        0 => (4, "1m"),
        _ => (1, "1k"),
    };
    let keepalive = format!("keepalive {kept};");
    let gateways = group("m", MEMCACHED_PORTS, &keepalive)
        + "memcached_connect_timeout 3s; memcached_send_timeout 4s; memcached_read_timeout 5s;\n"
        + "add_header X-Answer $upstream_http_flags;\n"
        + &group("f", FASTCGI_PORTS, &keepalive)
        + &gateway(
            "fastcgi",
            temp,
            "fastcgi_param CONTENT_LENGTH $content_length;",
        )
        + &group("s", SCGI_PORTS, "")
        + &gateway("scgi", temp, "scgi_param SCGI 1;")
        + &group("u", UWSGI_PORTS, "")
        + &gateway(
            "uwsgi",
            temp,
            &format!(
                "uwsgi_modifier1 {}; uwsgi_modifier2 {}; uwsgi_param CONTENT_LENGTH $content_length;",
                MODIFIERS[0], MODIFIERS[1]
            ),
        );
    format!(
        "events {{}}
        http {{
            access_log off;
            http2 on; http2_abuse_budget 1000000;
            client_body_buffer_size {body};
            client_body_temp_path {temp}/body;
            proxy_temp_path {temp}/proxy;
            client_header_timeout 10s; client_body_timeout 8s; send_timeout 8s; keepalive_timeout 15s;
            proxy_connect_timeout 3s; proxy_send_timeout 4s; proxy_read_timeout 5s;
            upstream one {{ server 127.0.0.1:81 max_fails=0; keepalive {kept}; }}
            upstream three {{
                server 127.0.0.1:82 max_fails=0; server 127.0.0.1:83 max_fails=0; server 127.0.0.1:84 max_fails=0;
                keepalive {kept};
            }}
            {gateways}
            server {{
                listen 127.0.0.1:8001;
                listen 127.0.0.1:8002 spdy;
                server_name a.test;
                proxy_pass_trailers on;
                {places}
                location = /oops {{ internal; return 200 '{OOPS}'; }}
                location = /file {{ internal; return 200 '{FILE}'; }}
                location /inner/ {{ internal; proxy_pass http://one; }}
                location /copy/ {{ internal; proxy_pass http://one; }}
                location = /auth {{
                    internal;
                    proxy_pass http://one/auth$request_uri;
                    proxy_pass_request_body off;
                    proxy_set_header Content-Length '';
                }}
            }}
        }}"
    )
}

/// The servers of a protocol: one, and three others.
fn group(short: &str, ports: RangeInclusive<u16>, keepalive: &str) -> String {
    let mut servers: Vec<String> = ports
        .map(|port| format!("server 127.0.0.1:{port} max_fails=0; "))
        .collect();
    let one = servers.remove(0);
    let three = servers.concat();
    format!(
        "upstream {short}_one {{ {one} {keepalive} }}
        upstream {short}_three {{ {three} {keepalive} }}
        "
    )
}

/// The parameters that applications get, and how long they may take.
fn gateway(name: &str, temp: &str, own: &str) -> String {
    format!(
        "{name}_temp_path {temp}/{name};
        {name}_connect_timeout 3s; {name}_send_timeout 4s; {name}_read_timeout 5s;
        {name}_param REQUEST_URI $request_uri;
        {name}_param REQUEST_METHOD $request_method;
        {own}
        "
    )
}

/// Configurations, made once.
pub(crate) struct Site {
    temp: PathBuf,
    https: Vec<Arc<Http>>,
}

impl Site {
    pub(crate) fn new() -> Self {
        static SITES: AtomicU32 = AtomicU32::new(0);
        let number = SITES.fetch_add(1, Ordering::Relaxed);
        let name = format!("firstbyte-behind-{}-{number}", std::process::id());
        let temp = std::env::temp_dir().join(name);
        for folder in ["body", "proxy", "fastcgi", "scgi", "uwsgi"] {
            std::fs::create_dir_all(temp.join(folder))
                .expect("the temporary directory is writable");
        }
        let shown = temp
            .to_str()
            .expect("the temporary directory has a plain name");
        let https = (0..CONFS).map(|conf| http(&config(shown, conf))).collect();
        Self { temp, https }
    }

    /// A configuration as the `number`th of a run.
    pub(crate) fn generation(&self, conf: usize, number: u64) -> ThreadConfig {
        ThreadConfig::unprepared(Arc::clone(&self.https[conf]), number)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.temp);
    }
}

fn http(text: &str) -> Arc<Http> {
    let source = conf::Memory::default().with_file("/etc/sim.conf", text);
    let options = LoadOptions {
        conf_path: PathBuf::from("/etc/sim.conf"),
        prefix: PathBuf::from("/etc"),
        globals: None,
        error_log: None,
        access_log: PathBuf::from("/dev/null"),
    };
    let modules: &'static [&'static Module] = Vec::leak(
        [&copies::MODULE]
            .into_iter()
            .chain(server_modules::MODULES.iter().copied())
            .collect(),
    );
    let cycle = match load(source, &options, modules) {
        Ok(cycle) => cycle,
        Err(refused) => panic!("{}", refused.error.render(&refused.files)),
    };
    let http = cycle.http.expect("the configuration has an http block");
    // One run tells more with `SIM_LOG=/a/file`.
    let sinks = std::env::var("SIM_LOG").ok().map(|path| {
        let file = File::options()
            .append(true)
            .create(true)
            .open(path)
            .expect("the log can be made");
        Sink::file(Arc::new(file), Level::Debug)
    });
    http.attach_logs(
        OpenedLogs::default(),
        &ErrorLog::new(sinks.into_iter().collect()),
    );
    http
}
