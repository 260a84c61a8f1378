//! Reading a head before the phases run: server, target, keep-alive, and refusals.

use super::location_changed;
use crate::http::Http;
use crate::testing::{World, body, get, status};

#[test]
fn the_connection_is_kept_as_version_and_fields_say() {
    let mut world = World::new("");
    for (version, field, kept) in [
        ("1.1", "X: y", true),
        ("1.1", "Connection: close", false),
        ("1.0", "X: y", false),
        ("1.0", "Connection: keep-alive", true),
        ("1.1", "Connection: keep-alive", true),
    ] {
        let ran = world.run(
            &format!("GET /a HTTP/{version}\r\nHost: a\r\n{field}\r\n\r\n"),
            &[],
        );
        assert_eq!(ran.x.progress.keep_alive, kept, "HTTP/{version}, {field}");
        assert_eq!(ran.x.response.head.keep_alive, kept);
    }
}

/// Regardless of the engine's own decision about the head.
#[test]
fn http_1_0_is_kept_only_on_request() {
    let mut world = World::new("");
    let mut x = world.exchange("GET /a HTTP/1.0\r\nHost: a\r\n\r\n");
    x.head.close = false;
    assert!(!world.begin(x, &[]).x.progress.keep_alive);
}

/// A client that found HTTP/2 on one server of an address may not use it for another that does not speak it.
#[test]
fn http2_is_for_the_servers_that_speak_it() {
    let mut world = World::http(
        "server { server_name a; http2 on; } server { server_name b; } error_page 421 /say/elsewhere;",
    );
    for (host, code) in [("a", 200), ("b", 421)] {
        let mut x = world.exchange(&format!("GET /say/in HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        x.client.offers = Some(Http::speaks_http2);
        let mut ran = world.begin(x, &[]);
        assert_eq!(status(&ran.x), code, "{host}");
        let said = world.said();
        assert_eq!(
            said.contains("the negotiated protocol is disabled"),
            code == 421,
            "{said}"
        );
        assert_eq!(
            body(&mut world, &mut ran.x),
            if code == 421 { "elsewhere" } else { "in" }
        );
    }
    let mut http1 = world.run("GET /say/in HTTP/1.1\r\nHost: b\r\n\r\n", &[]);
    assert_eq!(body(&mut world, &mut http1.x), "in");
}

#[test]
fn a_location_ends_keepalive_at_its_limits() {
    let kept = |server: &str, requests: u64, age_ms: u64| {
        let mut world = World::new(server);
        let mut x = world.exchange(&get("/a"));
        x.client.requests = requests;
        x.started_ms = x.client.since_ms + age_ms;
        world.begin(x, &[]).x.progress.keep_alive
    };
    assert!(!kept("keepalive_timeout 0;", 1, 0));
    assert!(kept("keepalive_timeout 1;", 1, 0));
    assert!(kept("keepalive_requests 3;", 2, 0));
    assert!(
        !kept("keepalive_requests 3;", 3, 0),
        "the third is the last"
    );
    assert!(kept("keepalive_time 5s;", 1, 5000));
    assert!(!kept("keepalive_time 5s;", 1, 5001));
}

/// Nothing in a location keeps a connection that is not to be kept.
#[test]
fn a_location_never_keeps_what_is_to_be_closed() {
    let world = World::new("");
    let mut x = world.exchange(&get("/a"));
    x.progress.keep_alive = false;
    location_changed(&mut x);
    assert!(!x.progress.keep_alive);
}

#[test]
fn keepalive_is_disabled_for_the_browsers_named() {
    const MSIE: &str = "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)";
    const MSIE_7: &str = "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1)";
    const SAFARI: &str = "Mozilla/5.0 (Macintosh; U; PPC Mac OS X; en-us) AppleWebKit/125 (KHTML, like Gecko) Safari/125";
    const SAFARI_ELSEWHERE: &str =
        "Mozilla/5.0 (X11; Linux) AppleWebKit/125 (KHTML, like Gecko) Safari/125";
    for (rule, method, agent, kept) in [
        ("msie6", "POST", MSIE, false),
        ("msie6", "GET", MSIE, true),
        ("msie6", "POST", MSIE_7, true),
        ("msie6", "POST", SAFARI, true),
        ("safari", "GET", SAFARI, false),
        ("safari", "GET", SAFARI_ELSEWHERE, true),
        ("safari", "POST", MSIE, true),
        ("msie6 safari", "GET", MSIE, true),
        ("msie6 safari", "POST", "curl/8", true),
        ("none", "POST", MSIE, true),
        ("none", "GET", SAFARI, true),
    ] {
        let mut world = World::new(&format!("keepalive_disable {rule};"));
        let head = format!(
            "{method} /a HTTP/1.1\r\nHost: a\r\nUser-Agent: {agent}\r\nContent-Length: 0\r\n\r\n"
        );
        let ran = world.run(&head, &[]);
        assert_eq!(ran.x.progress.keep_alive, kept, "{rule}: {method} {agent}");
    }
}

#[test]
fn a_head_that_breaks_the_protocol_is_answered_and_nothing_after_it() {
    let mut world = World::new("");
    for (head, code, whence) in [
        (
            "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
            400,
            "reading client request line",
        ),
        (
            "GET / HTTP/1.1\r\n\r\n",
            400,
            "reading client request headers",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
            400,
            "reading client request headers",
        ),
        (
            "GET / HTTP/9.9\r\nHost: a\r\n\r\n",
            505,
            "reading client request line",
        ),
        (
            "get / HTTP/1.1\r\nHost: a\r\n\r\n",
            400,
            "reading client request line",
        ),
    ] {
        let ran = world.run(head, &[]);
        assert_eq!(
            (status(&ran.x), ran.handlers().as_str()),
            (code, ""),
            "{head:?}"
        );
        assert!(!ran.x.progress.keep_alive);
        let said = world.said();
        assert!(said.contains(whence), "{head:?}: {said}");
    }
}

/// The page is that of the server in the request, if the line could be read.
#[test]
fn a_refused_head_has_the_error_page_of_the_server_it_names() {
    let mut world = World::http(
        "server { listen 80 default_server; error_page 400 =200 /say/default; }
         server { listen 80; server_name b; error_page 400 =200 /say/b; }",
    );
    let two_lengths = "Content-Length: 1\r\nContent-Length: 2\r\n";
    let mut page = |head: &str| {
        let mut ran = world.run(head, &[]);
        (
            body(&mut world, &mut ran.x),
            ran.x.route.server,
            String::from_utf8(ran.x.target.uri.clone()),
        )
    };
    let (text, server, _) = page(&format!("GET /x HTTP/1.1\r\nHost: b\r\n{two_lengths}\r\n"));
    assert_eq!((text.as_str(), server), ("b", 1));
    let (text, server, _) = page(&format!("GET /x HTTP/1.1\r\nHost: c\r\n{two_lengths}\r\n"));
    assert_eq!((text.as_str(), server), ("default", 0));
    let (text, server, _) = page("GET /%zz HTTP/1.1\r\nHost: b\r\n\r\n");
    assert_eq!(
        (text.as_str(), server),
        ("b", 1),
        "the target is at fault, not the line"
    );
    let (text, server, _) = page("g / HTTP/1.1\r\nHost: b\r\n\r\n");
    assert_eq!(
        (text.as_str(), server),
        ("default", 0),
        "a line that cannot be read names nobody"
    );
}

#[test]
fn the_log_has_the_target_of_a_head_whose_fields_are_refused() {
    let mut world = World::new("");
    let ran = world.run(
        "GET /x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        &[],
    );
    assert_eq!(
        (ran.x.target.uri.as_slice(), ran.x.target.args.as_slice()),
        (&b"/x"[..], &b"y"[..])
    );
    let ran = world.run("GET /x HTTP/1.1\r\n\r\n", &[]);
    assert_eq!(ran.x.target.uri, b"/x", "without a host");
    let ran = world.run("GET /x HTTP/1.1\r\nHost: a/b\r\n\r\n", &[]);
    assert_eq!(ran.x.target.uri, b"/x", "with a bad host");
}

#[test]
fn the_target_becomes_uri_and_arguments() {
    let mut world = World::new("");
    let x = world.get("/a%20b//c.txt?x=1&y");
    assert_eq!(
        (x.target.uri.as_slice(), x.target.args.as_slice()),
        (&b"/a b/c.txt"[..], &b"x=1&y"[..])
    );
    assert!(x.target.has_args && x.target.quoted_uri);
    assert_eq!(x.target.extension(), b"txt");
    let x = world.get("/a");
    assert!(!x.target.has_args && !x.target.quoted_uri);
    assert_eq!(x.target.extension(), b"");
    assert!(!world.get("/a?").target.has_args, "nothing follows");
    assert!(world.get("/a?#b").target.has_args, "if empty ones");
    assert!(world.get("/a+b").target.quoted_uri);
    let mut keep = World::new("merge_slashes off;");
    assert_eq!(keep.get("/a//b").target.uri, b"/a//b");
}

#[test]
fn the_host_comes_from_the_target_before_the_field() {
    let mut world = World::http("server { server_name a; } server { server_name b; }");
    let x = world
        .run("GET http://B:81/x HTTP/1.1\r\nHost: a\r\n\r\n", &[])
        .x;
    assert_eq!(
        (x.target.host.as_slice(), x.target.host_port, x.route.server),
        (&b"b"[..], Some(81), 1)
    );
    let x = world.run("GET /x HTTP/1.1\r\nHost: A\r\n\r\n", &[]).x;
    assert_eq!(
        (x.target.host.as_slice(), x.target.host_port, x.route.server),
        (&b"a"[..], None, 0)
    );
    let x = world.run("GET /x HTTP/1.0\r\n\r\n", &[]).x;
    assert_eq!(
        (x.target.host.as_slice(), status(&x)),
        (&b""[..], 200),
        "1.0 needs none"
    );
}
