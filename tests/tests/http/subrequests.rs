//! Subrequests over the wire: added and included bodies come in order, a ready part does not wait for a later one, and
//! the connection stays usable.
//!
//! Sources: nginx's documentation of ngx_http_addition_module, ngx_http_ssi_module and ngx_http_auth_request_module.

use std::time::{Duration, Instant};

use firstbyte_tests::busy::Waits;
use firstbyte_tests::client::request;
use firstbyte_tests::{Builder, H2Client, Server};

/// A second request to a location with the limit waits for about this long.
const HELD: Duration = Duration::from_millis(1000);
/// The size of a file that does not fit into any queue.
const BIG_BYTES: u64 = 3 << 20;

fn site() -> Builder {
    let http = "http2 on;
         limit_req_zone $uri zone=one:1m rate=1r/s;
         types { text/html html; }
         server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
             location = /page.html { add_before_body /before; add_after_body /after; }
             location = /late.html { add_after_body /slow; }
             location = /big.html { add_before_body /big; add_after_body /big; }
             location = /zipped.html { gzip on; gzip_min_length 0; add_after_body /slow; }
             location = /self.html { ssi on; }
             location = /ssi.html { ssi on; }
             location = /rated.html { ssi on; limit_rate 20000; limit_rate_after 1; }
             location = /asked { auth_request /slow; }
             location = /refused { auth_request /no; }
             location = /no { return 403; }
             location = /before { return 200 before-; }
             location = /after { return 200 -after; }
             location = /slow { limit_req zone=one burst=9; } }";
    Server::http_with("worker_processes 1;", http)
        .file("html/page.html", "page")
        .file("html/late.html", "ready-")
        .file("html/zipped.html", "ready-")
        .file("html/big.html", "|")
        .file("html/asked", "asked")
        .file("html/slow", "slow")
        .file("html/self.html", "x<!--#include virtual='/self.html' -->")
        .file(
            "html/ssi.html",
            "1<!--#include virtual='/before' -->2<!--#include virtual='/after?a' -->3<!--#echo var='arg_a' -->",
        )
        .file("html/rated.html", "<!--#include virtual='/rated' -->.")
        .zeros("html/rated", 30_000)
        .zeros("html/big", BIG_BYTES)
}

#[test]
fn bodies_come_in_order_and_the_connection_goes_on() {
    let server = site().start();
    let mut client = server.client();
    for _ in 0..2 {
        let page = client.get("/page.html");
        assert_eq!(
            (page.status, page.text().as_str()),
            (200, "before-page-after")
        );
        assert_eq!(page.header("Content-Length"), None);
        assert_eq!(page.header("Accept-Ranges"), None);
        assert!(
            page.header("ETag")
                .is_some_and(|etag| etag.starts_with("W/"))
        );
        assert!(!page.announces_close());
    }
    let head = client.head("/page.html");
    assert_eq!((head.status, head.header("Content-Length")), (200, None));
    assert_eq!(client.get("/ssi.html?a=4").text(), "1before-2-after34");
    let range = client.get_with("/page.html", &["Range: bytes=0-0"]);
    assert_eq!(
        (range.status, range.text().as_str()),
        (200, "before-page-after")
    );
}

#[test]
fn old_clients_get_the_same_up_to_the_close() {
    let server = site().start();
    let told = server
        .client()
        .send("GET /page.html HTTP/1.0\r\n\r\n")
        .rest();
    assert!(told.ends_with(b"\r\n\r\nbefore-page-after"));
}

#[test]
fn pages_over_http2_are_the_same() {
    let server = site().start();
    let mut client = H2Client::connect(server.port());
    let (one, two) = (client.get("/page.html"), client.get("/ssi.html?a=4"));
    assert_eq!(client.reply(two).text(), "1before-2-after34");
    let page = client.reply(one);
    assert_eq!(page.text(), "before-page-after");
    assert_eq!(page.header("content-length"), None);
    let head = client.request("HEAD", "/page.html", &[], true);
    let head = client.reply(head);
    assert_eq!((head.status, head.text().as_str()), (200, ""));
}

#[test]
fn what_is_ready_does_not_wait() {
    let server = site().start();
    let waits = Waits::begin();
    assert_eq!(server.get("/slow").status, 200);
    let mut client = server.client();
    let start = Instant::now();
    client.send(request("GET", "/late.html", &[]));
    client.send(request("GET", "/page.html", &[]));
    let mut ready = Vec::new();
    while !ready.ends_with(b"ready-") {
        ready.extend(client.bytes(1));
    }
    let ready_after = start.elapsed();
    let rest = client.bytes(b"\r\n4\r\nslow\r\n0\r\n\r\n".len());
    assert_eq!(rest, b"\r\n4\r\nslow\r\n0\r\n\r\n");
    let whole_after = start.elapsed();
    assert!(
        ready_after + HELD / 2 < whole_after || waits.explain(HELD / 2, "what was ready was late"),
        "{ready_after:?} {whole_after:?}"
    );
    assert_eq!(
        client.response().text(),
        "before-page-after",
        "the request behind it"
    );
}

#[test]
fn what_is_ready_does_not_wait_over_http2_nor_does_another_stream() {
    let server = site().start();
    let waits = Waits::begin();
    assert_eq!(server.get("/slow").status, 200);
    let mut client = H2Client::connect(server.port());
    let start = Instant::now();
    let stream = client.get("/late.html");
    client.until("what is ready is here", |c| {
        c.so_far(stream).text() == "ready-"
    });
    assert_eq!(client.fetch("/page.html").text(), "before-page-after");
    let ready_after = start.elapsed();
    assert_eq!(client.reply(stream).text(), "ready-slow");
    let whole_after = start.elapsed();
    assert!(
        ready_after + HELD / 2 < whole_after || waits.explain(HELD / 2, "what was ready was late"),
        "{ready_after:?} {whole_after:?}"
    );
}

#[test]
fn compression_does_not_hold_back_what_is_ready() {
    let server = site().start();
    let waits = Waits::begin();
    assert_eq!(server.get("/slow").status, 200);
    let mut client = server.client();
    let start = Instant::now();
    client.send(request("GET", "/zipped.html", &["Accept-Encoding: gzip"]));
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(client.bytes(1));
    }
    // The chunk of the ready part: gzip's head alone has 10 bytes.
    let _ = client.bytes(4 + 10 + 8);
    let ready_after = start.elapsed();
    let _ = client
        .send(request("GET", "/none", &["Connection: close"]))
        .rest();
    let whole_after = start.elapsed();
    assert!(
        ready_after + HELD / 2 < whole_after || waits.explain(HELD / 2, "what was ready was late"),
        "{ready_after:?} {whole_after:?}"
    );
}

#[test]
fn large_bodies_are_whole() {
    let server = site().start();
    let mut expected = vec![0; BIG_BYTES as usize];
    expected.push(b'|');
    expected.resize(expected.len() + BIG_BYTES as usize, 0);
    let page = server.get("/big.html");
    assert!(page.body == expected, "{} bytes", page.body.len());
    let mut client = H2Client::connect(server.port());
    assert!(client.fetch("/big.html").body == expected);
}

#[test]
fn a_page_that_includes_itself_ends() {
    let server = site().allow("subrequests cycle").start();
    let page = server.get("/self.html").text();
    let error = "[an error occurred while processing the directive]";
    assert_eq!(page, format!("{}{error}", "x".repeat(52)));
    assert_eq!(server.get("/page.html").status, 200);
}

#[test]
fn the_rate_of_a_response_is_that_of_all_its_bodies() {
    let server = site().start();
    let start = Instant::now();
    let page = server.get("/rated.html");
    assert_eq!(page.body.len(), 30_001);
    // The first 20,000 bytes are free: those of the first second.
    assert!(
        start.elapsed() > Duration::from_millis(400),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn who_may_pass_is_asked_first_and_waited_for() {
    let server = site().start();
    let mut client = server.client();
    assert_eq!(client.get("/refused").status, 403);
    // The held response comes this much later than the one before.
    let start = Instant::now();
    assert_eq!(client.get("/slow").text(), "slow");
    assert_eq!(client.get("/asked").text(), "asked");
    assert!(start.elapsed() > HELD / 2, "{:?}", start.elapsed());
    let mut client = H2Client::connect(server.port());
    assert_eq!(client.fetch("/asked").text(), "asked");
    assert_eq!(client.fetch("/refused").status, 403);
}

#[test]
fn a_client_that_leaves_while_a_subrequest_waits_harms_nobody() {
    let server = site().start();
    assert_eq!(server.get("/slow").status, 200);
    for path in ["/late.html", "/asked"] {
        let mut client = server.client();
        client.send(request("GET", path, &[]));
        drop(client);
    }
    assert_eq!(server.get("/page.html").text(), "before-page-after");
}
