//! A site to visit, and visits one at a time.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use firstbyte_tests::Server;
use firstbyte_tests::skip::skip_outside_ci;
use lab::browser::{Options, Run, find};
use lab::page::{Resource, Visit};

/// A server with a page, if a browser is installed.
pub(crate) struct Site {
    pub(crate) server: Server,
    /// Its origins.
    pub(crate) http: String,
    pub(crate) https: String,
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());

impl Site {
    /// Starts the server; `None` without a browser.
    pub(crate) fn start() -> Option<Self> {
        let turn = turn()?;
        let key =
            rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]);
        let key = key.expect("names of a host");
        let mut many = String::from(HEAD);
        for n in 0..MANY {
            let _ = write!(many, "<img src=/many/{n}.gif>");
        }
        let server = Server::http(CONF)
            .file("html/index.html", &format!("{HEAD}{INDEX}"))
            .file("html/frames.html", &format!("{HEAD}{FRAMES}"))
            .file(
                "html/inner.html",
                &format!("{HEAD}<p>inside<img src=/one.svg>"),
            )
            .file(
                "html/slow.html",
                &format!("{HEAD}<script async src=/slow.js></script><p>slow"),
            )
            .bytes("html/many.html", many.as_bytes())
            .bytes("html/slow.js", "/**/ ".repeat(12_000).as_bytes())
            .bytes(
                "html/style.css",
                "p { color: green }\n".repeat(500).as_bytes(),
            )
            .bytes("html/script.js", b"fetch('/data.json')")
            .bytes("html/worker.js", b"fetch('/data.json')")
            .bytes("html/data.json", b"{}")
            .bytes("html/one.svg", SVG.as_bytes())
            .bytes("html/icon.svg", SVG.as_bytes())
            .bytes("html/dot.gif", GIF)
            .bytes("run/leaf.pem", key.cert.pem().as_bytes())
            .bytes("run/leaf.key", key.signing_key.serialize_pem().as_bytes())
            .start();
        Some(Self {
            http: format!("http://127.0.0.1:{}", server.port()),
            https: format!("https://127.0.0.1:{}", server.port_number(2)),
            server,
            _turn: turn,
        })
    }
}

/// Locks the browser for tests that measure times; `None` without a browser.
pub(crate) fn turn() -> Option<MutexGuard<'static, ()>> {
    is_installed().then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns whether there is a browser. If not, the test is reported as skipped.
pub(crate) fn is_installed() -> bool {
    let is_there = find(None).is_ok();
    if !is_there {
        skip_outside_ci("Chromium is not installed");
    }
    is_there
}

/// Options of a test on a machine that may be busy.
pub(crate) fn options(url: &str) -> Options {
    let mut options = Options::new(url);
    options.timeout = std::time::Duration::from_secs(60);
    options
}

/// Runs of a page that can be reached.
#[track_caller]
pub(crate) fn visits(options: &Options) -> Vec<Run> {
    lab::browser::visits(options, &mut |_| true).expect("the page can be reached")
}

/// The cold view of a page that can be reached.
#[track_caller]
pub(crate) fn visit(options: &Options) -> Visit {
    visits(options).remove(0).cold
}

/// The only resource with a URL.
#[track_caller]
pub(crate) fn resource<'a>(visit: &'a Visit, url: &str) -> &'a Resource {
    let mut found = visit.resources.iter().filter(|one| one.url == url);
    let urls = || {
        visit
            .resources
            .iter()
            .map(|one| &one.url)
            .collect::<Vec<_>>()
    };
    let one = found.next();
    let one = one.unwrap_or_else(|| panic!("no {url} among {:?}", urls()));
    // Several frames may ask for the same.
    one
}

/// How many pictures the largest page has.
pub(crate) const MANY: usize = 2000;

const HEAD: &str =
    "<!doctype html><meta charset=utf-8><title>a page</title><link rel=icon href=/icon.svg>";
const INDEX: &str = "<link rel=stylesheet href=/style.css><script src=/moved.js></script>\
    <p>text<img src=/one.svg><img src=/missing.png><img src=http://127.0.0.1:%%PORT3%%/refused.svg>";
const FRAMES: &str = "<p>outside<script>new Worker('/worker.js')</script>\
    <iframe src=http://localhost:%%PORT%%/inner.html></iframe>";
const SVG: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='90' height='90'>\
    <rect width='90' height='90' fill='red'/></svg>";
/// A pixel: of each vector image the browser would make a document of its own.
const GIF: &[u8] =
    b"GIF89a\x01\0\x01\0\x80\0\0\xff\0\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
const CONF: &str = "
    log_format transfers '$request_uri $status $body_bytes_sent';
    access_log %%DIR%%/transfers.log transfers;
    types { text/html html; text/css css; text/javascript js; image/svg+xml svg; image/gif gif; application/json json; }
    gzip on; gzip_types text/css; gzip_min_length 1000;
    server {
        listen 127.0.0.1:%%PORT%%;
        listen [::1]:%%PORT%%;
        listen 127.0.0.1:%%PORT2%% ssl;
        http2 on; keepalive_requests 1000000;
        ssl_certificate %%DIR%%/run/leaf.pem;
        ssl_certificate_key %%DIR%%/run/leaf.key;
        root %%DIR%%/html;
        location = /from { return 301 /between; }
        location = /between { return 302 /; }
        location = /moved.js { return 302 /script.js; }
        location = /one.svg { expires 1h; }
        location = /style.css { add_header Cache-Control no-cache; }
        location = /slow.js { limit_rate 40000; }
        location /many/ { rewrite ^ /dot.gif break; }
    }";
