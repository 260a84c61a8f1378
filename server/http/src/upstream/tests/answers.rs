//! Responses that are passed on.

use engines::http::Version;
use server_upstream::request::UpstreamEvent;

use super::{Site, fields};
use crate::exchange::State;
use crate::testing::servers::Passing;

#[test]
fn a_response_comes_through() {
    let mut site = Site::new(Passing::new());
    let mut x = site.get("/up/a");
    assert!(matches!(x.progress.state, State::Waiting(wait) if wait.wake));
    assert_eq!(site.call().addr(), "10.0.0.1:80");
    site.wake(&mut x);
    assert!(
        matches!(x.progress.state, State::Waiting(_)),
        "woken for nothing"
    );
    let type_ = "Content-Type: text/plain; charset=utf-8";
    site.call().head(200, &[type_, "X-A: 1", "Server: them"]);
    site.wake(&mut x);
    assert_eq!(
        (x.progress.state, x.response.head.status),
        (State::Responding, 200)
    );
    let sent = fields(&x);
    assert!(sent.contains("Content-Type: text/plain; charset=utf-8\nX-A: 1\n"));
    assert!(sent.contains("Server: firstbyte") && !sent.contains("them"));
    assert_eq!(site.pull(&mut x), (String::new(), "later"));
    site.call().data("one");
    assert_eq!(site.pull(&mut x).0, "one");
    site.wake(&mut x);
    site.call().data("two").end();
    assert_eq!(site.pull(&mut x), ("two".to_owned(), "end"));
    assert_eq!(site.value(&mut x, "upstream_addr"), "10.0.0.1:80");
    assert_eq!(site.value(&mut x, "upstream_status"), "200");
    assert_eq!(site.value(&mut x, "upstream_response_length"), "6");
    assert_eq!(site.world.said(), "");
}

#[test]
fn hidden_fields_and_those_of_the_connection_stay_here() {
    let mut site = Site::new(Passing::new());
    let mut x = site.get("/up/a");
    let head = [
        "Connection: close",
        "Keep-Alive: timeout=5",
        "Transfer-Encoding: chunked",
        "X-Accel-Expires: 5",
        "Date: yesterday",
        "ETag: \"a\"",
        "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
        "Set-Cookie: a=1; path=/",
        "Set-Cookie: b=2",
        "Accept-Ranges: bytes",
        "Upgrade: h2c",
    ];
    site.call().head(200, &head).end();
    site.wake(&mut x);
    let sent = fields(&x);
    for name in [
        "Connection",
        "Keep-Alive",
        "Transfer-Encoding",
        "X-Accel",
        "yesterday",
    ] {
        assert!(!sent.contains(name), "{name}: {sent}");
    }
    for line in &head[5..] {
        assert!(sent.contains(line), "{line}: {sent}");
    }
    assert_eq!(site.value(&mut x, "upstream_http_x_accel_expires"), "5");
    assert_eq!(site.value(&mut x, "upstream_http_date"), "yesterday");
    assert_eq!(site.value(&mut x, "upstream_http_no_such"), "(none)");
    assert_eq!(site.value(&mut x, "upstream_cookie_a"), "1");
    assert_eq!(site.value(&mut x, "upstream_cookie_b"), "2");
    assert_eq!(site.value(&mut x, "upstream_cookie_c"), "(none)");
}

#[test]
fn a_server_has_words_of_its_own_for_a_status() {
    let mut site = Site::new(Passing::new());
    let mut x = site.get("/up/a");
    site.call().phrased(200, b"Fine").end();
    site.wake(&mut x);
    assert_eq!(x.response.head.phrase(), b"Fine");
    let mut x = site.get("/up/a");
    site.call().head(200, &[]).end();
    site.wake(&mut x);
    assert_eq!(x.response.head.phrase(), b"OK");
}

#[test]
fn a_length_is_passed_on() {
    let mut site = Site::new(Passing::new());
    let mut x = site.get("/up/a");
    site.call()
        .head(200, &["Content-Length: 3"])
        .data("abc")
        .end();
    site.wake(&mut x);
    assert!(fields(&x).contains("Content-Length: 3\n"));
    assert_eq!(site.pull(&mut x), ("abc".to_owned(), "end"));
}

#[test]
fn the_first_of_repeated_fields_counts() {
    let mut site = Site::new(Passing::new());
    let mut x = site.get("/up/a");
    let head = [
        "Location: /a",
        "Location: /b",
        "Refresh: 1",
        "refresh: 2",
        "X-A: 1",
        "X-A: 2",
    ];
    site.call().head(200, &head).end();
    site.wake(&mut x);
    let sent = fields(&x);
    assert!(
        sent.contains("Location: /a") && !sent.contains("/b"),
        "{sent}"
    );
    assert!(
        sent.contains("Refresh: 1") && !sent.contains("refresh: 2"),
        "{sent}"
    );
    assert!(sent.contains("X-A: 1\nX-A: 2\n"), "{sent}");
    let said = site.world.said();
    assert!(
        said.contains(
            "upstream sent duplicate header line: \"Location: /b\", previous value: \
             \"Location: /a\", ignored while reading response header from upstream"
        ),
        "{said}"
    );
    assert_eq!(site.value(&mut x, "upstream_http_location"), "/a");
}

#[test]
fn a_response_may_lead_elsewhere() {
    let more = "location /in/ { internal; }";
    let mut site = Site::with(Passing::new(), more);
    let mut x = site.get("/up/a");
    let head = [
        "X-Accel-Redirect: /in/b%20c?d=e",
        "Content-Type: a/b; charset=c",
        "Set-Cookie: f=1",
        "Content-Disposition: g",
        "Cache-Control: h",
        "X-Other: i",
        "Content-Length: 100",
    ];
    site.call().head(200, &head);
    site.wake(&mut x);
    assert!(site.call().is_given_up(), "the body is not wanted");
    assert_eq!(
        (x.target.uri.as_slice(), x.target.args.as_slice()),
        (&b"/in/b c"[..], &b"d=e"[..])
    );
    assert_eq!(x.response.head.status, 200);
    let sent = fields(&x);
    for line in [
        "Set-Cookie: f=1",
        "Content-Disposition: g",
        "Cache-Control: h",
    ] {
        assert!(sent.contains(line), "{line}: {sent}");
    }
    assert!(!sent.contains("X-Other") && !sent.contains("100"), "{sent}");
    assert_eq!(site.pull(&mut x), ("/in/b c".to_owned(), "end"));
    assert_eq!(site.value(&mut x, "upstream_status"), "200");
}

#[test]
fn a_redirect_may_name_a_location_and_may_not_climb() {
    let more = "location @there { }";
    for (to, uri) in [
        ("@there", "/up/a"),
        ("/../x", ""),
        ("/a/%2e%2e/x", ""),
        ("..", ""),
        ("?a", ""),
    ] {
        let mut site = Site::with(Passing::new(), more);
        let mut x = site.get("/up/a");
        site.call()
            .head(200, &[&format!("X-Accel-Redirect: {to}")])
            .end();
        site.wake(&mut x);
        match uri {
            "" => {
                assert_eq!(x.response.head.status, 404, "{to}");
                let said = site.world.said();
                assert!(
                    said.contains(&format!("safe URI \"{to}\" was detected")),
                    "{said}"
                );
            }
            uri => assert_eq!(site.pull(&mut x), (uri.to_owned(), "end")),
        }
    }
}

#[test]
fn a_redirect_that_is_ignored_is_a_field() {
    let mut passing = Passing::new();
    passing.conf.fields.ignored.0 = 1;
    passing.conf.fields.hidden = Vec::new().into();
    let mut site = Site::new(passing);
    let mut x = site.get("/up/a");
    site.call()
        .head(200, &["X-Accel-Redirect: /b"])
        .data("a")
        .end();
    site.wake(&mut x);
    assert!(fields(&x).contains("X-Accel-Redirect: /b"));
    assert_eq!(site.pull(&mut x), ("a".to_owned(), "end"));
}

#[test]
fn error_pages_take_the_place_of_responses_where_they_may() {
    let more = "location /page { pass; error_page 401 500 /say/sorry; }";
    for (intercepts, code, text) in [(true, 500, "sorry"), (false, 500, "a"), (true, 501, "a")] {
        let mut passing = Passing::new();
        passing.conf.intercept_errors = intercepts;
        let mut site = Site::with(passing, more);
        let mut x = site.get("/page");
        site.call().head(code, &[]).data("a").end();
        site.wake(&mut x);
        assert_eq!(x.response.head.status, code);
        assert_eq!(site.pull(&mut x).0, text);
    }
    let mut passing = Passing::new();
    passing.conf.intercept_errors = true;
    let mut site = Site::with(passing, more);
    let mut x = site.get("/page");
    site.call()
        .head(401, &["WWW-Authenticate: Basic", "X-A: 1"])
        .end();
    site.wake(&mut x);
    assert!(fields(&x).contains("WWW-Authenticate: Basic\n"));
    assert!(!fields(&x).contains("X-A"));
}

#[test]
fn early_hints_are_passed_on_where_they_may_be() {
    for (passes, status, expected) in [(true, 103, true), (false, 103, false), (true, 102, false)] {
        let mut passing = Passing::new();
        passing.hints = passes;
        let mut site = Site::new(passing);
        let mut x = site.get("/up/a");
        site.call().interim(status, &["Link: <a>", "Server: b"]);
        site.wake(&mut x);
        assert!(x.is_waiting());
        assert_eq!(
            x.response.early_responses.is_some(),
            expected,
            "{passes} {status}"
        );
    }
}

#[test]
fn early_hints_are_limited() {
    for (link, expected) in [(92, true), (93, false)] {
        let mut passing = Passing::new();
        passing.hints = true;
        passing.conf.buffering.head_bytes = Some(100);
        let mut site = Site::new(passing);
        let mut x = site.get("/up/a");
        // The line has eight bytes more.
        site.call()
            .interim(103, &[&format!("Link: <{}>", "a".repeat(link - 2))]);
        site.wake(&mut x);
        assert_eq!(x.response.early_responses.is_some(), expected, "{link}");
        let said = site.world.said();
        assert_eq!(
            said.contains("upstream sent too big early hints"),
            !expected
        );
    }
}

#[test]
fn trailers_are_passed_on_to_those_who_may_have_them() {
    for (passes, version, expected) in [
        (true, "1.1", true),
        (false, "1.1", false),
        (true, "1.0", false),
    ] {
        let mut passing = Passing::new();
        passing.conf.fields.pass_trailers = passes;
        let mut site = Site::new(passing);
        let mut x = site.run(&format!("GET /up/a HTTP/{version}\r\nHost: a\r\n\r\n"));
        site.call().head(200, &[]);
        site.wake(&mut x);
        site.call().data("a");
        let mut trailers = engines::http::Fields::default();
        trailers.push(b"X-Sum", b"1");
        trailers.push(b"Server", b"b");
        trailers.push(b"Content-Length", b"3");
        trailers.push(b"Proxy-Connection", b"close");
        site.call().deliver(UpstreamEvent::Trailers(trailers)).end();
        assert_eq!(site.pull(&mut x), ("a".to_owned(), "end"));
        let names = x.reply.trailers.fields.len();
        assert_eq!(names, usize::from(expected), "{passes} {version}");
        assert_eq!(site.value(&mut x, "upstream_trailer_x_sum"), "1");
    }
}

#[test]
fn times_are_told_when_they_are_known() {
    let mut site = Site::new(Passing::new());
    let mut x = site.get("/up/a");
    assert_eq!(site.value(&mut x, "upstream_header_time"), "-");
    site.world.pass(1500);
    site.call().head(200, &[]);
    site.wake(&mut x);
    assert_eq!(site.value(&mut x, "upstream_header_time"), "1.500");
    assert_eq!(site.value(&mut x, "upstream_response_time"), "-");
    site.world.pass(20);
    site.call().end();
    site.wake(&mut x);
    site.world.pass(1000);
    assert_eq!(site.value(&mut x, "upstream_response_time"), "1.520");
}

#[test]
fn a_subrequest_is_answered_by_a_server() {
    let mut site = Site::with(Passing::new(), "location /page { }");
    let mut x = site.world.exchange(&crate::testing::get("/page"));
    x.add_around(None, Some(b"/up/b".to_vec()));
    let mut x = site.world.begin(x, &[]).x;
    let (text, how) = site.world.pull(&mut x);
    assert_eq!((text.trim_end_matches('|'), how), ("/page", "later"));
    site.call().head(200, &[]).data("part").end();
    assert_eq!(site.world.pull(&mut x), ("part".to_owned(), "end"));
}

#[test]
fn what_has_come_with_its_head_is_at_hand() {
    let mut site = Site::new(Passing::new());
    let mut x = site.get("/up/a");
    site.call().head(200, &[]).data("a").data("b").end();
    site.wake(&mut x);
    assert!(x.body.source.is_none() && x.body.chunks.len() == 2);
    assert!(x.body.on_arrival.is_none(), "nothing more comes");
    assert_eq!(site.pull(&mut x), ("ab".to_owned(), "end"));
    assert_eq!(site.value(&mut x, "upstream_response_length"), "2");
}

#[test]
fn what_is_about_a_connection_stays_out_of_multiplexed_responses() {
    for (version, passes) in [(Version::Http11, true), (Version::Http2, false)] {
        let mut site = Site::new(Passing::new());
        let mut x = site.get("/up/a");
        x.head.version = version;
        let sent = ["TE: a", "Proxy-Connection: b", "Upgrade: c", "X-A: d"];
        site.call().head(200, &sent).end();
        site.wake(&mut x);
        let got = fields(&x).to_ascii_lowercase();
        for field in ["te: a\n", "proxy-connection: b\n", "upgrade: c\n"] {
            assert_eq!(got.contains(field), passes, "{version:?}: {got}");
        }
        assert!(got.contains("x-a: d\n"), "{got}");
    }
}

#[test]
fn early_hints_say_nothing_of_bodies_and_connections() {
    let mut passing = Passing::new();
    passing.hints = true;
    let mut site = Site::new(passing);
    let mut x = site.get("/up/a");
    let sent = ["Content-Length: 7", "Connection: close", "TE: a", "Link: b"];
    site.call().interim(103, &sent);
    site.wake(&mut x);
    let hints = &x.response.early_responses.as_ref().expect("hints").hints[0];
    let names: Vec<&[u8]> = hints.fields.iter().map(|f| hints.bytes(f.name)).collect();
    assert_eq!(names, [b"Link"]);
}
