//! Stalls of `firstbyte waterfall`: each planted one is found, by the wire, in Chromium and from packets, and pages of
//! small responses on a busy machine have none.
//!
//! Tests that need a link or a browser are skipped with a message without one. Ten visits of each page, pages of 500 and
//! 2,500 resources, and visits over TLS need `LAB_LONG`, as set by `make test-all`. Own executable: delays of milliseconds
//! are measured.

#[path = "common/lab.rs"]
mod lab;
#[allow(dead_code, reason = "the doctor's tests use the rest")]
#[path = "common/planted/mod.rs"]
mod planted;
#[path = "common/tls_client.rs"]
mod tls_client;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use firstbyte_tests::busy::check_timing;
use firstbyte_tests::skip::{skip, skip_outside_ci};
use firstbyte_tests::{Server, TempDir, peer, programs, report, run, via};
use planted::{Fault, Planted, Protocol};
use serde_json::Value;

/// The word of a visit by the built-in clients; a browser's has none.
const WIRE: &[&str] = &["--wire"];
const BROWSER: &[&str] = &[];
/// A thread that waits for a CPU for so long makes responses as late as a stall does.
const BUSY: Duration = Duration::from_millis(20);

fn has_browser() -> bool {
    let is_there = programs::command("chromium").is_some();
    if !is_there {
        skip_outside_ci("Chromium is not installed");
    }
    is_there
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn stalls(report: &Value) -> &[Value] {
    list(&report["cold"]["visit"]["stalls"])
}

/// The stalls of a resource with this path, by their causes.
fn causes<'r>(report: &'r Value, path: &str) -> Vec<&'r str> {
    let resources = list(&report["cold"]["visit"]["resources"]);
    let is_of = |stall: &&Value| {
        let place = stall["resource"].as_u64().unwrap_or(u64::MAX);
        let url = resources.get(place as usize).map(|one| &one["url"]);
        let url = url.and_then(Value::as_str);
        url.is_some_and(|url| url.ends_with(path))
    };
    let of_path = stalls(report).iter().filter(is_of);
    of_path
        .filter_map(|stall| stall["cause"].as_str())
        .collect()
}

/// The codes of the doctor's findings in a capture.
fn codes(pcap: &str) -> Vec<String> {
    let outcome = run(["doctor", "--pcap", pcap, "--json"]);
    let found: Value = serde_json::from_str(&outcome.stdout)
        .unwrap_or_else(|error| panic!("{error}: {outcome:?}"));
    let codes = list(&found["findings"]).iter();
    let codes = codes.filter_map(|one| one["code"].as_str());
    codes.map(str::to_owned).collect()
}

/// A planted server, and the resource under test.
#[derive(Clone, Copy, Debug)]
struct Case {
    protocol: Protocol,
    fault: Fault,
    /// The page, and its stalled resource.
    page: &'static str,
    path: &'static str,
    hold_ms: u32,
}

impl Case {
    /// A server that withholds the last byte of bodies up to 1,600 bytes.
    fn withholding(
        protocol: Protocol,
        page: &'static str,
        path: &'static str,
        hold_ms: u32,
    ) -> Self {
        Self {
            protocol,
            fault: Fault::Withholds(1600),
            page,
            path,
            hold_ms,
        }
    }

    /// A sound server.
    fn sound(self) -> Self {
        Self {
            fault: Fault::None,
            ..self
        }
    }

    /// Visits the page over a link of 50 ms, and judges the visit, its archive and its packets.
    fn judge(self, way: &[&str]) {
        let what = format!("{way:?} {self:?}");
        let server = Planted::serve(self.protocol, self.fault);
        let (url, spec) = (
            server.url(self.page),
            format!("50ms,delack={}ms", self.hold_ms),
        );
        let dir = TempDir::new();
        let shown = |name: &str| dir.path().join(name).display().to_string();
        let (pcap, har) = (shown("a.pcap"), shown("a.har"));
        let mut words = vec![url.as_str(), "-k", "--via", &spec, "--har", &har];
        if way == WIRE {
            words.extend(["--protocol", self.protocol.name()]);
        }
        words.extend(way);
        let is_stalled = self.fault != Fault::None;
        let expected = if is_stalled {
            &["delayed acknowledgement"][..]
        } else {
            &[]
        };
        // Without a file for its packets, the visit still has their evidence.
        for is_named in [false, true] {
            let more: &[&str] = if is_named { &["--pcap", &pcap] } else { &[] };
            let words = [&words[..], more].concat();
            check_timing(
                &what,
                BUSY,
                || report("waterfall", &words),
                |found| {
                    assert_eq!(
                        causes(found, self.path),
                        expected,
                        "{what}: {}",
                        found["cold"]["visit"]
                    );
                    let again = report("waterfall", &[&har]);
                    assert_eq!(
                        causes(&again, self.path),
                        expected,
                        "{what}: of the archive"
                    );
                    if is_named {
                        let has_code = codes(&pcap).iter().any(|code| code == "delayed-ack-stall");
                        assert_eq!(has_code, is_stalled, "{what}: of the packets");
                    }
                },
            );
        }
    }
}

#[test]
fn planted_stalls_are_found_by_the_wire_and_from_packets() {
    if !via::possible() {
        return;
    }
    let small = Case::withholding(Protocol::Http1, "/100", "/100", 200);
    // The first response of HTTP/2 does not stall: the client acknowledges SETTINGS meanwhile. Over TLS the tickets stall before
    // it.
    let cases = [
        small,
        small.sound(),
        Case::withholding(Protocol::Http1, "/1600", "/1600", 40),
        Case::withholding(Protocol::Http1Tls, "/page", "/100", 40),
        Case::withholding(Protocol::Http2, "/page", "/100", 200),
        Case::withholding(Protocol::Spdy, "/page", "/100", 200),
        Case::withholding(Protocol::Spdy, "/1600", "/1600", 40),
    ];
    thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || case.judge(WIRE));
        }
    });
}

#[test]
fn planted_stalls_are_found_in_a_browser() {
    if !via::possible() || !has_browser() {
        return;
    }
    let small = Case::withholding(Protocol::Http1, "/page", "/100", 200);
    small.judge(BROWSER);
    small.sound().judge(BROWSER);
    Case::withholding(Protocol::Http1, "/1600", "/1600", 40).judge(BROWSER);
    Case::withholding(Protocol::Http1Tls, "/page", "/100", 40).judge(BROWSER);
}

/// A server with pages of images of 43 bytes, each a response of one segment: port 1 plain, 2 with TLS.
fn small() -> Server {
    let leaf = lab::leaf("localhost");
    let page = |images: usize| {
        let images = (0..images).map(|n| format!("<img src=i/{n}.gif>"));
        let head = "<!doctype html><title>t</title><link rel=icon href=data:,>";
        format!("{head}{}", images.collect::<String>())
    };
    let server = Server::http(
        "server {
            listen 127.0.0.1:%%PORT%%; listen 127.0.0.1:%%PORT2%% ssl; http2 on; keepalive_requests 100000;
            ssl_certificate leaf.pem; ssl_certificate_key leaf.key; root html;
            types { text/html html; image/gif gif; }
            location /i/ { rewrite ^ /dot.gif break; }
         }",
    );
    let server = server
        .bytes("leaf.pem", leaf.certificate.as_bytes())
        .bytes("leaf.key", leaf.key.as_bytes())
        .bytes("html/dot.gif", GIF);
    let pages = [250, 500, 2500].into_iter();
    let server = pages.fold(server, |server, images| {
        server.file(&format!("html/{images}.html"), &page(images))
    });
    server.start()
}

/// A picture of a pixel.
const GIF: &[u8] =
    b"GIF89a\x01\0\x01\0\x80\0\0\xff\0\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// Runs a task while two threads compute without a pause.
fn while_cpus_are_busy(task: impl FnOnce()) {
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // If the task panics, these threads must end too.
        let _over = Over(&is_over);
        task();
    });
}

/// The ways to visit a page: the built-in clients, and the browser if it is installed.
fn ways() -> Vec<&'static [&'static str]> {
    match has_browser() {
        true => vec![WIRE, BROWSER],
        false => vec![WIRE],
    }
}

/// Visits a page of small images by every way, and finds no stall. `scheme` is `http` or `https`.
fn page_has_no_stall(server: &Server, scheme: &str, images: usize) {
    let port = server.port_number(if scheme == "http" { 1 } else { 2 });
    let url = format!("{scheme}://localhost:{port}/{images}.html");
    for way in ways() {
        let words = [&[url.as_str(), "-k"], way].concat();
        let found = report("waterfall", &words);
        let resources = list(&found["cold"]["visit"]["resources"]);
        let is_image = |one: &&Value| one["kind"] == "image" && one["status"] == 200;
        let count = resources.iter().filter(is_image).count();
        // The built-in clients fetch 2,000 resources at most.
        let expected = if way == WIRE {
            images.min(1999)
        } else {
            images
        };
        assert_eq!(count, expected, "{words:?}");
        assert_eq!(stalls(&found), [Value::Null; 0], "{words:?}");
    }
}

#[test]
fn small_responses_have_no_stall_on_a_busy_machine() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = small();
    while_cpus_are_busy(|| page_has_no_stall(&server, "http", 250));
}

/// Packets of such a page show no stall either.
#[test]
fn a_capture_of_small_responses_has_no_stall_on_a_busy_machine() {
    if !via::possible() {
        return;
    }
    let (server, dir) = (small(), TempDir::new());
    let pcap = dir.path().join("a.pcap").display().to_string();
    let url = format!("http://localhost:{}/250.html", server.port_number(1));
    while_cpus_are_busy(|| {
        for way in ways() {
            let found = report(
                "waterfall",
                &[&[url.as_str(), "--pcap", &pcap], way].concat(),
            );
            assert_eq!(stalls(&found), [Value::Null; 0], "{way:?}");
            let codes = codes(&pcap);
            let is_named = codes.iter().any(|code| code == "delayed-ack-stall");
            assert!(!is_named, "{way:?}: {codes:?}");
        }
    });
}

#[test]
fn ten_pages_of_small_responses_have_no_stall_on_a_busy_machine() {
    if !peer::is_firstbyte() {
        return;
    }
    if std::env::var_os("LAB_LONG").is_none() {
        return skip("LAB_LONG is not set");
    }
    let server = small();
    while_cpus_are_busy(|| {
        for page in 1..=10 {
            for images in [500, 2500] {
                for scheme in ["http", "https"] {
                    page_has_no_stall(&server, scheme, images);
                }
                println!("page {page} of {images} images: no stall");
            }
        }
    });
}
