//! A server for the lab's tests, and a run of `bench`.
#![allow(dead_code, reason = "each test file uses its own part")]

use crate::tls_client::{self, site};
use firstbyte_tests::{Outcome, Server, run};
use serde_json::Value;

/// Speaks everything: ports 1 plain HTTP/1.1 and HTTP/2, 2 plain SPDY, 3 TLS.
pub(crate) fn server() -> Server {
    let leaf = site("localhost");
    let text = "x".repeat(100);
    Server::http(
        "keepalive_requests 1000000;
         server {
            listen 127.0.0.1:%%PORT%%; listen 127.0.0.1:%%PORT2%% spdy; listen 127.0.0.1:%%PORT3%% ssl spdy;
            http2 on; ssl_certificate leaf.pem; ssl_certificate_key leaf.key;
            ssl_session_tickets on; root html;
            location /echo { return 200 $request_method; }
            location /broken { return 500; }
         }",
    )
    .bytes("leaf.pem", leaf.certificate.as_bytes())
    .bytes("leaf.key", leaf.key.as_bytes())
    .file("html/100.txt", &text)
    .start()
}

/// A line of an access log, of a client in [`COUNTRIES`].
pub(crate) const LOG_LINE: &str = "192.0.2.1 - - [29/Nov/2026:11:00:00 +0000] \"GET / HTTP/1.1\" 200 612 \"-\" \"curl\" min_rtt=20000 requests=1\n";

/// A database of countries in Tor's format: 192.0.2.0/24 is Germany.
pub(crate) const COUNTRIES: &str = "3221225984,3221226239,DE\n";

pub(crate) fn url(server: &Server, port: usize, path: &str) -> String {
    let scheme = if port == 3 { "https" } else { "http" };
    format!("{scheme}://localhost:{}{path}", server.port_number(port))
}

/// A certificate for a name, and its key.
pub(crate) fn leaf(name: &str) -> tls_client::Leaf {
    site(name)
}

pub(crate) fn bench(words: &[&str]) -> Outcome {
    run(["bench"].iter().chain(words))
}

/// The report of a bench that must have gone well.
#[track_caller]
pub(crate) fn report(words: &[&str]) -> Value {
    firstbyte_tests::report("bench", words)
}

pub(crate) fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}
