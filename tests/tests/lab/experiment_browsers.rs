//! The script of `experiment_beacon` in Chromium and Firefox: strict Content-Security-Policy, failed and truncated
//! files, missing interfaces, and endpoints that never respond.
//!
//! `.ci/setup` installs the browsers, and `ws` for WebDriver BiDi. A missing browser skips its tests; with `CI=true`
//! they fail.

use std::ffi::OsString;
use std::path::Path;

use crate::tls_client::site;
use engines::beacon::{self, Beacon, HostFiles};
use firstbyte_tests::backend::{Backend, Step, send};
use firstbyte_tests::dir::TempDir;
use firstbyte_tests::judge::judged_by;
use firstbyte_tests::{Builder, Client, Server, programs};
use serde_json::Value;

/// Policies of the pages below `/page/`, by name. `%` is the host of static files.
const POLICIES: [(&str, &str, &str); 3] = [
    ("self", "'self'", ""),
    ("nonce", "'nonce-$request_id'", "nonce=\"$request_id\""),
    (
        "hash",
        "'$beacon_integrity'",
        "integrity=\"$beacon_integrity\"",
    ),
];

/// Locations of pages with one of the policies each.
fn pages() -> String {
    let page = |(name, source, attribute): &(&str, &str, &str)| {
        format!(
            "location = /page/{name} {{ try_files /page.html =404; sub_filter_once off;
               sub_filter STATIC $experiment_e_host:$server_port;
               sub_filter '<head>' '<head><script async src=\"/beacon\" {attribute} data-hosts=\"$experiment_e_host\"></script>';
               add_header Content-Security-Policy \"default-src 'none'; connect-src 'self'; script-src {source} $own; style-src $own; img-src $own\"; }}\n"
        )
    };
    POLICIES.iter().map(page).collect()
}

/// A page with 20 static files: 16 are whole, three fail, one is truncated.
fn page() -> String {
    let images: String = (0..12)
        .map(|n| format!("<img crossorigin src=\"//STATIC/{n}.gif\">\n"))
        .collect();
    format!(
        "<!doctype html><html lang=\"en\"><head><title>page</title>
         <link crossorigin rel=\"stylesheet\" href=\"//STATIC/a.css\"><link crossorigin rel=\"stylesheet\" href=\"//STATIC/b.css\">
         <script crossorigin src=\"//STATIC/a.js\"></script><script crossorigin defer src=\"//STATIC/b.js\"></script>
         </head><body><h1>A page of twenty files</h1>{images}
         <link crossorigin rel=\"stylesheet\" href=\"//STATIC/missing.css\"><script crossorigin src=\"//STATIC/missing.js\"></script>
         <img crossorigin src=\"//STATIC/missing.gif\"><img crossorigin src=\"//STATIC/cut.png\"></body></html>"
    )
}

/// A site with one host per arm, over TLS with HTTP/2, and without TLS.
fn server(backend: &Backend, slow: &Backend) -> Builder {
    let leaf = site("localhost");
    let (cut, slow) = (backend.name(), slow.name());
    let http = format!(
        "lab_store sqlite:%%DIR%%/lab/store.db server=edge; experiment_key %%DIR%%/key;
         experiment e {{ host s0.localhost; arm one host=s1.localhost; arm two host=s2.localhost; }}
         map $scheme $own {{ default '$scheme://$experiment_e_host:$server_port'; }}
         map $request_method $beacons {{ POST 1; default 0; }}
         log_format beacon escape=json '{{\"status\":$status,\"protocol\":\"$server_protocol\",\"body\":\"$request_body\"}}';
         types {{ text/html html; text/css css; text/javascript js; image/gif gif; image/png png; }}
         access_log off; http2 on; root %%DIR%%/html;
         ssl_certificate %%DIR%%/leaf.pem; ssl_certificate_key %%DIR%%/leaf.key;
         server {{ listen 127.0.0.1:%%PORT%% ssl; listen 127.0.0.1:%%PORT2%%; server_name www.localhost plain.localhost;
           location = /beacon {{ experiment_beacon rate=100r/s; access_log %%DIR%%/beacons.log beacon if=$beacons; }}
           location = /metrics {{ metrics; }}
           location = /slow {{ experiment_beacon; if ($request_method = POST) {{ proxy_pass http://{slow}; }} }}
           location = /hung {{ proxy_pass http://{slow}; }}
           location /own/ {{ sub_filter @@N@@ $request_id; sub_filter_once off;
             add_header Content-Security-Policy \"default-src 'none'; connect-src 'self'; script-src 'self' 'nonce-$request_id'\"; }}
           {pages} }}
         server {{ listen 127.0.0.1:%%PORT%% ssl; listen 127.0.0.1:%%PORT2%%; server_name s1.localhost; {shared}
           location = /cut.png {{ proxy_pass http://{cut}; }} }}
         server {{ listen 127.0.0.1:%%PORT%% ssl; listen 127.0.0.1:%%PORT2%%; server_name s2.localhost; {shared}
           location = /cut.png {{ proxy_pass http://{cut}; }} }}
         server {{ listen 127.0.0.1:%%PORT%% ssl; listen 127.0.0.1:%%PORT2%%; server_name s0.localhost; }}",
        pages = pages(),
        shared = "add_header Access-Control-Allow-Origin * always;"
    );
    let mut builder = Server::http(&http)
        .file("key", "0123456789abcdef0123456789abcdef")
        .bytes("leaf.pem", leaf.certificate.as_bytes())
        .bytes("leaf.key", leaf.key.as_bytes())
        .file("html/page.html", &page())
        .file("html/own/bare.html", BARE)
        .file("html/own/end.html", "<!doctype html><head></head><p>end")
        .file(
            "html/own/slow.html",
            "<!doctype html><head><script async src=\"/slow\"></script><p>slow",
        )
        .file(
            "html/own/hung.html",
            "<!doctype html><head><script async src=\"/hung\"></script><p>hung",
        )
        .file("html/a.css", "h1 { color: #333 }")
        .file("html/b.css", "h1 { margin: 1em }")
        .file("html/a.js", "window.a = 1;\n")
        .file("html/b.js", "window.b = 1;\n")
        .allow("prematurely closed connection")
        .allow("failed (2: No such file or directory)");
    for n in 0..12 {
        builder = builder.bytes(&format!("html/{n}.gif"), GIF);
    }
    builder
}

/// A picture of 5,000 bytes that ends after 2,000.
fn truncating() -> Backend {
    Backend::answering(|_| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 5000\r\n\r\n";
        vec![
            send(head),
            send(vec![b'x'; 2000]),
            Step::Wait(APART_MS),
            Step::Close,
        ]
    })
}

/// Runs steps in a browser and returns their values.
#[track_caller]
fn visit(browser: &Path, steps: &[String]) -> Vec<Value> {
    let dir = TempDir::new();
    let printed = judged_by("visit.js", browser, &dir, steps.iter().map(OsString::from));
    let mut lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.pop(), Some("done"), "{printed}");
    let value = |line: &str| serde_json::from_str(line).expect("each line is JSON");
    lines.into_iter().map(value).collect()
}

/// Beacons in the log, with the protocols of their requests, once there are this many.
#[track_caller]
fn beacons(server: &Server, count: usize) -> Vec<(String, Beacon)> {
    let mut lines = Vec::new();
    firstbyte_tests::wait_until("all beacons have come", || {
        let text = std::fs::read_to_string(server.path("beacons.log")).unwrap_or_default();
        lines = text.lines().map(str::to_owned).collect();
        lines.len() >= count
    });
    assert_eq!(lines.len(), count, "{lines:?}");
    let parsed = lines.iter().map(|line| {
        let line: Value = serde_json::from_str(line).expect("a line is JSON");
        assert_eq!(line["status"], 204, "{line}");
        let body = line["body"].as_str().expect("it has a body");
        let read = beacon::parse(body.as_bytes());
        let protocol = line["protocol"].as_str().expect("it has one");
        (
            protocol.to_owned(),
            read.unwrap_or_else(|fault| panic!("{fault}: {body}")),
        )
    });
    parsed.collect()
}

/// The files of the arm's host.
#[track_caller]
fn static_files(beacon: &Beacon) -> &HostFiles {
    let mut all = beacon.hosts.iter();
    let files = all.find(|host| ["s1.localhost", "s2.localhost"].contains(&&*host.host));
    files.unwrap_or_else(|| panic!("{beacon:?}"))
}

/// Steps on pages with each policy, the last without TLS.
fn steps_on_pages(server: &Server) -> Vec<String> {
    let mut steps = Vec::new();
    for (name, _, _) in POLICIES {
        let page = format!("load=https://www.localhost:{}/page/{name}", server.port());
        // A browser reports no larger paint after a click.
        steps.extend([page, SETTLED.to_owned(), BUSY.to_owned()]);
        steps.extend(["click=60,40".to_owned(), SETTLED.to_owned()]);
    }
    let plain = server.port_number(2);
    steps.push(format!("load=http://plain.localhost:{plain}/page/nonce"));
    steps.push(SETTLED.to_owned());
    steps
}

/// Steps on pages without interfaces, and with endpoints that never respond.
fn steps_on_broken_pages(server: &Server) -> [String; 12] {
    let host = format!("http://plain.localhost:{}", server.port_number(2));
    [
        format!("load={host}/page/self"),
        "value=window.marker = 7".to_owned(),
        format!("load={host}/own/bare.html"),
        SETTLED.to_owned(),
        "value=faults.length".to_owned(),
        "back=/page/self".to_owned(),
        "value=window.marker || 0".to_owned(),
        // The beacon of this page never gets a response.
        format!("load={host}/own/slow.html"),
        SETTLED.to_owned(),
        format!("read={host}/own/hung.html"),
        "value=document.readyState".to_owned(),
        // The last page has no script: the browser may send its beacon or end before.
        format!("read={host}/own/end.html"),
    ]
}

#[track_caller]
fn views_are_measured(program: &str) {
    let Some(browser) = programs::command(program) else {
        return;
    };
    let (cut, slow) = (truncating(), Backend::answering(|_| vec![Step::Hold]));
    let server = server(&cut, &slow).start();
    let pages = steps_on_pages(&server);
    let last = vec![HAS_INTERACTIONS.to_owned()];
    let steps = [pages.clone(), steps_on_broken_pages(&server).to_vec(), last].concat();
    let values = visit(&browser, &steps);
    let broken = &values[pages.len()..];
    assert_eq!(broken[4], 0, "the script throws nothing");
    assert_eq!(broken[10], "interactive", "the page waits for no script");
    // A page that the browser has kept is no new view.
    let was_restored = broken[6] == 7;
    let count = if was_restored { 6 } else { 7 };
    let beacons = beacons(&server, count);
    for (n, (protocol, beacon)) in beacons.iter().take(5).enumerate() {
        let expected = if n < 3 { "HTTP/2.0" } else { "HTTP/1.1" };
        assert_eq!(protocol, expected);
        page_is_measured(beacon);
    }
    let (_, bare) = &beacons[5];
    assert_eq!((bare.load_us(), bare.first_byte_us()), (None, None));
    assert_eq!((bare.shift, bare.largest_paint_us()), (None, None));
    let mut views: Vec<u64> = beacons.iter().map(|(_, beacon)| beacon.view).collect();
    views.sort_unstable();
    views.dedup();
    assert_eq!(views.len(), count, "each view has an id of its own");
    if program == "chromium" {
        // Firefox has no layout shifts.
        assert!(
            beacons
                .iter()
                .take(5)
                .all(|(_, beacon)| beacon.shift.is_some())
        );
    }
    let mut interactions = beacons
        .iter()
        .filter_map(|(_, beacon)| beacon.interaction_us);
    assert_eq!(
        interactions.next().is_some(),
        broken[12] == true,
        "a click is measured if the browser reports interactions"
    );
    let mut client = Client::connect(server.port_number(2));
    let metrics = client
        .get_with("/metrics", &["Host: plain.localhost"])
        .text();
    let recorded = format!("firstbyte_experiment_beacons_total{{result=\"recorded\"}} {count}");
    assert!(metrics.contains(&recorded), "{metrics}");
    let requests = slow.requests();
    let mut posts = requests.iter().filter(|request| request.method() == "POST");
    assert!(posts.any(|request| request.target() == "/slow"));
}

/// The counts of files are exact, and times are in their order.
#[track_caller]
fn page_is_measured(beacon: &Beacon) {
    let files = static_files(beacon);
    let counts = (files.files, files.failed, files.truncated);
    assert_eq!(counts, (20, 3, 1), "{beacon:?}");
    assert!(beacon.load_us() > beacon.first_byte_us(), "{beacon:?}");
    assert!(
        beacon.files_us(files) > beacon.first_byte_us(),
        "{beacon:?}"
    );
    assert!(beacon.first_paint_us().is_some(), "{beacon:?}");
    assert!(beacon.largest_paint_us().is_some(), "{beacon:?}");
}

#[test]
fn views_are_measured_in_chromium() {
    views_are_measured("chromium");
}

#[test]
fn views_are_measured_in_firefox() {
    views_are_measured("firefox-esr");
}

/// A page without some interfaces of browsers.
const BARE: &str = "<!doctype html><html lang=\"en\"><head><title>bare</title>
<script nonce=\"@@N@@\">
  window.faults = []
  addEventListener('error', (event) => faults.push(event.message))
  delete window.PerformanceObserver
  performance.getEntries = undefined
</script>
<script async src=\"/beacon\"></script></head><body><p>text</p></body></html>";

/// Time between the bytes of the truncated picture and its end, milliseconds. Chromium reports no size if a stream is reset with
/// its head.
const APART_MS: u64 = 300;
/// A picture of one pixel.
const GIF: &[u8] = b"GIF89a\x01\0\x01\0\x80\x01\0\0\0\0\xff\xff\xff\x21\xf9\x04\x01\0\0\x01\0\
    \x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x4c\x01\0\x3b";
/// Makes presses of the mouse button take 60 ms: browsers do not report shorter ones.
const BUSY: &str = "value=void addEventListener('pointerdown', () => { const end = performance.now() + 60; while (performance.now() < end); })";
/// Returns whether the browser reports interactions; Firefox does since version 144.
const HAS_INTERACTIONS: &str =
    "value='interactionId' in (window.PerformanceEventTiming || Object).prototype";
/// Waits for two frames and for the events of elements.
const SETTLED: &str = "value=new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))";
