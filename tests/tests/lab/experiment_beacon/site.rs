//! A site with an experiment and a beacon, its users, and beacons over several protocols.

use std::time::{SystemTime, UNIX_EPOCH};

use engines::http::civil;
use firstbyte_tests::client::request;
use firstbyte_tests::{Builder, H2Client, Server};

/// A server with an experiment of two hosts that began an hour ago, and a beacon at `/beacon`.
pub(crate) fn site(parameters: &str) -> Builder {
    site_with(parameters, "")
}

/// The server with another experiment.
pub(crate) fn site_with(parameters: &str, other: &str) -> Builder {
    let start = utc(now_s() - HOUR_S);
    let http = format!(
        "lab_store sqlite:%%DIR%%/lab/store.db server=edge; experiment_key %%DIR%%/key;
         experiment e {{ start {start}; host static.test; arm one host=one.test; arm two host=two.test; }} {other}
         access_log off; http2 on;
         server {{ listen 127.0.0.1:%%PORT%%; server_name localhost; root %%DIR%%/html;
           location = /arm {{ return 200 \"$experiment_e\"; }}
           location = /hash {{ return 200 \"$beacon_integrity\"; }}
           location = /beacon {{ experiment_beacon {parameters}; }}
           location = /metrics {{ metrics; }} }}
         server {{ listen 127.0.0.1:%%PORT%%; server_name one.test; root %%DIR%%/html; }}
         server {{ listen 127.0.0.1:%%PORT%%; server_name two.test; root %%DIR%%/html; }}
         server {{ listen 127.0.0.1:%%PORT%%; server_name static.test; root %%DIR%%/html; }}"
    );
    Server::http(&http)
        .file("key", "0123456789abcdef0123456789abcdef")
        .file("html/f.txt", "0123456789")
        .allow("client intended to send too large")
}

pub(crate) fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("it is after 1970").as_secs()
}

/// A time in the form of the configuration.
pub(crate) fn utc(unix_s: u64) -> String {
    let t = civil(unix_s as i64);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        t.year, t.month, t.day, t.hour, t.minute, t.second
    )
}

/// A user: its cookie and its arm.
pub(crate) struct User {
    pub(crate) cookie: String,
    pub(crate) arm: String,
}

/// A visitor gets a cookie with the first page.
pub(crate) fn user(server: &Server) -> User {
    let page = server.get("/arm");
    let field = page.header("Set-Cookie").expect("a cookie is issued");
    let cookie = field.split(';').next().expect("it has a value").to_owned();
    let arm = page.text();
    assert!(["one", "two"].contains(&&*arm), "{arm}");
    User { cookie, arm }
}

/// A beacon of a view with files of a host.
pub(crate) fn beacon(view: u64, host: &str) -> String {
    format!(
        "firstbyte 1\nv {view:016x}\na 5230\nn - 3000 9000 9000 - 31000 31000 80000 95000 900000 950000\n\
         p 700000 800000 48000 103\nh localhost 1 0 0 10 700000\nh {host} 20 3 1 48213 940000\n."
    )
}

/// Sends beacons over one protocol.
pub(crate) trait Sender {
    /// Sends a POST with these fields besides `Host`; returns the status.
    fn post(&mut self, fields: &[(&str, &str)], body: &[u8]) -> u16;
}

/// HTTP/1.1 with a length, a connection for each request: refusals may close it.
pub(crate) struct Http1(pub(crate) u16);

impl Sender for Http1 {
    fn post(&mut self, fields: &[(&str, &str)], body: &[u8]) -> u16 {
        let lines: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .chain([format!("Content-Length: {}", body.len())])
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut client = firstbyte_tests::Client::connect(self.0);
        client.send(request("POST", "/beacon", &lines)).send(body);
        client.response().status
    }
}

/// HTTP/1.1 in chunks.
pub(crate) struct Chunked(pub(crate) u16);

impl Sender for Chunked {
    fn post(&mut self, fields: &[(&str, &str)], body: &[u8]) -> u16 {
        let lines: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .chain(["Transfer-Encoding: chunked".to_owned()])
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut client = firstbyte_tests::Client::connect(self.0);
        client.send(request("POST", "/beacon", &lines));
        let chunks = body.chunks(700);
        let chunks =
            chunks.map(|part| [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat());
        client
            .send(chunks.collect::<Vec<_>>().concat())
            .send("0\r\n\r\n");
        client.response().status
    }
}

/// HTTP/2 without a length.
pub(crate) struct Http2(pub(crate) H2Client);

impl Sender for Http2 {
    fn post(&mut self, fields: &[(&str, &str)], body: &[u8]) -> u16 {
        let lower: Vec<(String, &str)> = fields
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), *value))
            .collect();
        let fields: Vec<(&str, &str)> = lower
            .iter()
            .map(|(name, value)| (&**name, *value))
            .collect();
        let stream = self.0.request("POST", "/beacon", &fields, false);
        for part in body.chunks(FRAME_BYTES) {
            self.0.data(stream, part, false);
        }
        self.0.data(stream, b"", true);
        self.0.reply(stream).status
    }
}

/// The fields of a browser.
pub(crate) fn fields(cookie: &str) -> Vec<(&str, &str)> {
    vec![
        ("Content-Type", "text/plain;charset=UTF-8"),
        ("Origin", "http://localhost"),
        ("Sec-Fetch-Site", "same-origin"),
        ("Cookie", cookie),
    ]
}

/// Fields with one replaced; removed if the value is empty.
pub(crate) fn but<'a>(
    all: &[(&'a str, &'a str)],
    name: &str,
    value: &'a str,
) -> Vec<(&'a str, &'a str)> {
    let changed = all
        .iter()
        .map(|(n, v)| (*n, if *n == name { value } else { *v }));
    changed.filter(|(_, value)| !value.is_empty()).collect()
}

/// The counters of beacons: accepted by result, refused by reason; those above zero.
pub(crate) fn counters(server: &Server) -> Vec<(String, u64)> {
    let page = server.get("/metrics").text();
    let lines = page.lines().filter_map(|line| {
        let rest = line.strip_prefix("firstbyte_experiment_beacons")?;
        let (label, count) = rest.split_once("=\"")?.1.split_once("\"} ")?;
        Some((label.to_owned(), count.parse().expect("a number")))
    });
    let mut found: Vec<(String, u64)> = lines.filter(|(_, count)| *count > 0).collect();
    found.sort();
    found
}

#[track_caller]
pub(crate) fn assert_counters(server: &Server, expected: &[(&str, u64)]) {
    let mut expected: Vec<(String, u64)> = expected
        .iter()
        .map(|(label, count)| ((*label).to_owned(), *count))
        .collect();
    expected.sort();
    assert_eq!(counters(server), expected);
}

pub(crate) const HOUR_S: u64 = 3600;
/// Bytes of a DATA frame, below the limit of every server.
const FRAME_BYTES: usize = 10_000;
