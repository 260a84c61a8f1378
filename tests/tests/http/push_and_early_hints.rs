//! Early responses: pushes over HTTP/2, and early hints over HTTP/1.1 and HTTP/2.
//!
//! Sources: RFC 9113 section 8.4; RFC 8297; nginx's documentation of `http2_push` (up to 1.25.0) and `early_hints`.

use std::time::{Duration, Instant};

use firstbyte_tests::busy::Waits;
use firstbyte_tests::h2::*;
use firstbyte_tests::{Builder, H2Client, Server};

/// A second request to `/slow...` waits for about this long.
const HELD: Duration = Duration::from_millis(1000);

fn site() -> Builder {
    let http = "http2 on;
         limit_req_zone $uri zone=one:1m rate=1r/s;
         log_format fields '$uri $status $bytes_sent $body_bytes_sent $request';
         access_log %%DIR%%/fields.log fields;
         early_hints_link '</style.css>; rel=preload; as=style';
         server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
             location = /page { http2_push /style.css; http2_push /script.js; return 200 page; }
             location = /preload { http2_push_preload on; add_header Link '</style.css>; rel=preload'; return 200 x; }
             location = /slow { early_hints $http_x_hints $http2; limit_req zone=one burst=9; }
             location = /slow-page { http2_push /style.css; limit_req zone=one burst=9; }
             location = /now { early_hints 1; }
             location = /denied { early_hints 1; deny all; }
             location = /refused { early_hints 1; limit_req zone=one; } }";
    Server::http_with("worker_processes 1;", http)
        .file("html/style.css", "css")
        .file("html/script.js", "js")
        .file("html/slow", "slow")
        .file("html/slow-page", "slow page")
        .file("html/refused", "refused")
        .file("html/now", "now")
}

fn paths(client: &H2Client) -> Vec<(u32, u32, String)> {
    let path = |fields: &[(String, String)]| {
        let field = fields.iter().find(|(name, _)| name == ":path");
        field.map_or(String::new(), |(_, value)| value.clone())
    };
    let promises = client.protocol.promises.iter();
    promises
        .map(|(parent, own, fields)| (*parent, *own, path(fields)))
        .collect()
}

fn request(path: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n")
}

/// The line of the log about a path with this status.
#[track_caller]
fn logged(server: &Server, start: &str) -> Vec<String> {
    let text = server.wait_for_text("fields.log", start);
    let line = text.lines().find(|line| line.starts_with(start));
    let fields = line.unwrap_or_default().split(' ');
    fields.map(str::to_owned).collect()
}

#[test]
fn what_belongs_to_a_page_comes_with_it() {
    let server = site().start();
    let mut client = H2Client::connect(server.port());
    let stream = client.get("/page");
    assert_eq!(client.reply(stream).text(), "page");
    let promised = [
        (1, 2, "/style.css".to_owned()),
        (1, 4, "/script.js".to_owned()),
    ];
    assert_eq!(paths(&client), promised);
    let (css, js) = (client.reply(2), client.reply(4));
    assert_eq!((css.status, css.text().as_str()), (200, "css"));
    assert_eq!(
        css.header("content-type"),
        client.fetch("/style.css").header("content-type")
    );
    assert_eq!((js.status, js.text().as_str()), (200, "js"));
    let line = logged(&server, "/style.css 200 ");
    assert_eq!(line[4..], ["GET", "/style.css", "HTTP/2.0"]);
    // The promises are bytes of the response that they came with, but not of its body: 9 of DATA's head, 4 of it.
    let line = logged(&server, "/page 200 ");
    assert_eq!(line[3], "13");
}

#[test]
fn link_fields_are_pushed() {
    let server = site().start();
    let mut client = H2Client::connect(server.port());
    assert_eq!(client.fetch("/preload").status, 200);
    assert_eq!(paths(&client), [(1, 2, "/style.css".to_owned())]);
    assert_eq!(client.reply(2).text(), "css");
}

#[test]
fn page_that_waits_is_pushed_with_when_it_comes() {
    let server = site().start();
    let mut client = H2Client::connect(server.port());
    let (first, second) = (client.get("/slow-page"), client.get("/slow-page"));
    assert_eq!(client.reply(first).text(), "slow page");
    assert_eq!(paths(&client).len(), 1);
    assert_eq!(client.reply(second).text(), "slow page");
    assert_eq!(paths(&client)[1..], [(second, 4, "/style.css".to_owned())]);
    assert_eq!(client.reply(4).text(), "css");
}

#[test]
fn clients_that_want_no_pushes_get_none() {
    let server = site().start();
    let mut client = H2Client::connect(server.port());
    client.setting(ENABLE_PUSH, 0);
    assert_eq!(client.fetch("/page").text(), "page");
    client.settle();
    assert_eq!(paths(&client), []);
    client.setting(ENABLE_PUSH, 1);
    let stream = client.get("/page");
    assert_eq!(client.reply(stream).text(), "page");
    assert_eq!(paths(&client).len(), 2);
}

#[test]
fn push_that_is_not_wanted_costs_nothing_else() {
    let server = site().start();
    let mut client = H2Client::narrow(server.port(), 1);
    let stream = client.get("/page");
    client.until("both are promised", |c| c.protocol.promises.len() == 2);
    client.cancel(2);
    for id in [stream, 4] {
        client.window(id, 100);
    }
    assert_eq!(client.reply(stream).text(), "page");
    assert_eq!(client.reply(4).text(), "js");
    let rest = client.settle().so_far(2);
    assert!(!rest.ended && rest.reset.is_none(), "{rest:?}");
    assert_eq!(client.goaways, []);
    logged(&server, "/style.css 200 ");
}

#[test]
fn hints_come_before_a_response_that_waits() {
    let server = site().start();
    let waits = Waits::begin();
    assert_eq!(server.get("/slow").status, 200);
    let mut client = server.client();
    let start = Instant::now();
    client.send(request("/slow", "X-Hints: 1\r\n"));
    let hints = client.response();
    let hinted_after = start.elapsed();
    assert_eq!(hints.status_line, "HTTP/1.1 103 Early Hints");
    let link = (
        "Link".to_owned(),
        "</style.css>; rel=preload; as=style".to_owned(),
    );
    assert_eq!(hints.headers, [link]);
    let response = client.response();
    let answered_after = start.elapsed();
    assert_eq!((response.status, response.text().as_str()), (200, "slow"));
    assert_eq!(response.header("Link"), None);
    assert!(
        hinted_after + HELD / 2 < answered_after || waits.explain(HELD / 2, "the hints were late"),
        "{hinted_after:?} {answered_after:?}"
    );
    // The connection stays usable.
    assert_eq!(client.get("/style.css").text(), "css");
}

#[test]
fn hints_over_http2_come_before_a_response_that_waits() {
    let server = site().start();
    let waits = Waits::begin();
    assert_eq!(server.get("/slow").status, 200);
    let mut client = H2Client::connect(server.port());
    let start = Instant::now();
    let stream = client.get("/slow");
    client.until("the hints are here", |c| c.so_far(stream).status == 103);
    let hinted_after = start.elapsed();
    let hints = client.so_far(stream);
    assert_eq!(
        hints.header("link"),
        Some("</style.css>; rel=preload; as=style")
    );
    assert!(!hints.ended);
    let reply = client.reply(stream);
    let answered_after = start.elapsed();
    assert_eq!((reply.status, reply.interim.as_slice()), (200, &[103][..]));
    assert_eq!(reply.text(), "slow");
    assert!(
        hinted_after + HELD / 2 < answered_after || waits.explain(HELD / 2, "the hints were late"),
        "{hinted_after:?} {answered_after:?}"
    );
}

#[test]
fn hints_leave_with_a_response_that_is_ready_and_count_for_it() {
    let server = site().start();
    let mut client = server.client();
    let start = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload; as=style\r\n\r\n";
    let told = client.send(request("/now", "Connection: close\r\n")).rest();
    let told = String::from_utf8_lossy(&told);
    assert!(
        told.starts_with(&format!("{start}HTTP/1.1 200 OK\r\n")),
        "{told}"
    );
    assert!(told.ends_with("\r\n\r\nnow"), "{told}");
    let line = logged(&server, "/now ");
    assert_eq!(line[1..4], ["200", &told.len().to_string(), "3"]);
}

#[test]
fn hints_of_pipelined_requests_come_in_order() {
    let server = site().start();
    let mut client = server.client();
    client.send(
        [
            request("/style.css", ""),
            request("/now", ""),
            request("/now", ""),
        ]
        .concat(),
    );
    let statuses: Vec<u16> = (0..5).map(|_| client.response().status).collect();
    assert_eq!(statuses, [200, 103, 200, 103, 200]);
}

#[test]
fn hints_are_kept_from_those_who_do_not_know_them() {
    let server = site().start();
    let mut client = server.client();
    client.send("GET /now HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let told = String::from_utf8_lossy(&client.rest()).into_owned();
    assert!(told.starts_with("HTTP/1.1 200 OK\r\n"), "{told}");
    // No condition holds: this is not HTTP/2, and the field is missing.
    assert_eq!(server.get("/slow").status, 200);
    assert_eq!(server.get("/style.css").status, 200);
}

#[test]
fn refusals_have_no_hints() {
    let server = site().start();
    assert_eq!(server.get("/denied").status, 403);
    let first = server.get("/refused");
    assert_eq!(first.status, 103);
    assert_eq!(server.get("/refused").status, 503);
    let mut client = H2Client::connect(server.port());
    let denied = client.fetch("/denied");
    assert_eq!((denied.status, denied.interim), (403, vec![]));
}
