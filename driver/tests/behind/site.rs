//! Locations of the simulated proxy: one for each way of proxying, in two configurations.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use driver::worker::thread_config::ThreadConfig;
use server_base::opened::OpenedLogs;
use server_http::http::Http;
use server_http::module::Module;
use server_upstream::protocol::HTTP2;
use server_upstream::route::{Route, UpstreamAddr};

use super::copies;
use super::load::{load_text, log};
use super::locations::LOCATIONS;
use super::secure::Pair;

/// Number of locations for HTTP/2 servers, in front of the two for memcached.
pub(crate) const STREAM_LOCATIONS: usize = 5;
/// Ports of servers with SCGI, uwsgi, FastCGI and memcached.
pub(crate) const SCGI_PORTS: RangeInclusive<u16> = 85..=88;
pub(crate) const UWSGI_PORTS: RangeInclusive<u16> = 91..=94;
pub(crate) const FASTCGI_PORTS: RangeInclusive<u16> = 95..=98;
pub(crate) const MEMCACHED_PORTS: RangeInclusive<u16> = 101..=104;
/// Ports with HTTP/1 over TLS, HTTP/2, and HTTP/2 over TLS, as set by [`Site::adjust`].
pub(crate) const TLS_PORTS: RangeInclusive<u16> = 111..=114;
pub(crate) const H2_PORTS: RangeInclusive<u16> = 121..=124;
pub(crate) const H2S_PORTS: RangeInclusive<u16> = 131..=134;
/// Groups with a balancing method.
const METHODS: [(&str, &str); 5] = [
    ("hash", "hash $request_uri consistent"),
    ("least", "least_conn"),
    ("by_ip", "ip_hash"),
    ("random", "random two least_conn"),
    ("time", "least_time header inflight"),
];
/// `uwsgi_modifier1` and `uwsgi_modifier2`.
pub(crate) const MODIFIERS: [u8; 2] = [5, 9];

/// The body of the error page.
pub(crate) const OOPS: &str = "something is wrong";
/// The body after `X-Accel-Redirect: /file`.
pub(crate) const FILE: &str = "a text of ours";
/// The shortest timeout, milliseconds.
pub(crate) const LEAST_MS: u64 = 3000;
/// Time to wait for the reset that shows that a request was not read, milliseconds.
pub(crate) const RESET_MS: u64 = 500;
/// Buffered bytes of an unbuffered request body, minus one read.
pub(crate) const KEPT_BYTES: usize = 60_000;
/// Number of configurations.
pub(crate) const CONFS: usize = 2;
/// Number of ports: HTTP/1 with HTTP/2, and HTTP/1 with SPDY.
pub(crate) const PORTS: usize = 2;

fn config(temp: &str, conf: usize) -> String {
    let locations: String = LOCATIONS
        .iter()
        .map(|location| format!("location /{}/ {{ {} }}\n", location.name, location.conf))
        .collect();
    // The second configuration keeps fewer connections, and stores request bodies in files.
    let (kept, body) = match conf {
        0 => (4, "1m"),
        _ => (1, "1k"),
    };
    let keepalive = format!("keepalive {kept};");
    let gateways = group("m", MEMCACHED_PORTS, &keepalive)
        + "memcached_connect_timeout 3s; memcached_send_timeout 4s; memcached_read_timeout 5s;\n"
        + "add_header X-Answer $upstream_http_flags;\n"
        + &group("t", TLS_PORTS, &keepalive)
        + &group("h", H2_PORTS, &keepalive)
        + &group("g", H2S_PORTS, &keepalive)
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
    let methods: String = METHODS
        .iter()
        .map(|(name, method)| {
            let servers = [82, 83, 84].map(|port| format!("server 127.0.0.1:{port} max_fails=0; "));
            let servers = servers.concat();
            format!("upstream {name} {{ {method}; {servers} {keepalive} }}\n")
        })
        .collect();
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
            {methods}
            {gateways}
            server {{
                listen 127.0.0.1:8001;
                listen 127.0.0.1:8002 spdy;
                server_name a.test;
                proxy_pass_trailers on;
                {locations}
                location = /oops {{ internal; return 200 '{OOPS}'; }}
                location = /file {{ internal; return 200 '{FILE}'; }}
                location /inner/ {{ internal; proxy_pass http://one; }}
                location /copy/ {{ internal; proxy_pass http://one; }}
                location = /mirror {{ internal; proxy_pass http://one/mirror$request_uri; }}
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

/// Returns the upstream groups of a protocol: one server, and three others.
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

/// Returns parameters and timeouts of the gateway modules.
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

/// The configurations, made once.
pub(crate) struct Site {
    temp: PathBuf,
    pub(crate) tls: Rc<Pair>,
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
        Self {
            temp,
            tls: Rc::new(Pair::new()),
            https,
        }
    }

    /// Returns a function that sets TLS and HTTP/2 by the server's port.
    pub(crate) fn adjust(&self) -> Box<dyn Fn(&mut Route)> {
        let tls = Rc::clone(&self.tls);
        Box::new(move |route| {
            let UpstreamAddr::Inet(addr) = &route.addr else {
                return;
            };
            let port = addr.port();
            let streams = H2_PORTS.contains(&port) || H2S_PORTS.contains(&port);
            if streams {
                route.protocol = &HTTP2;
            }
            if TLS_PORTS.contains(&port) || H2S_PORTS.contains(&port) {
                route.tls = Some(tls.client(streams));
            }
        })
    }

    /// Makes the configuration the `number`th of a run.
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
    let modules: &'static [&'static Module] = Vec::leak(
        [&copies::MODULE]
            .into_iter()
            .chain(server_modules::MODULES.iter().copied())
            .collect(),
    );
    let http = load_text(text, modules);
    http.attach_logs(OpenedLogs::default(), &log());
    http
}
