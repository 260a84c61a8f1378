//! Requests to a memcached server: keys as it gets them, and the handling of its responses. All cases were tried with
//! nginx 1.31.4, too.

use server_upstream::protocol::MEMCACHED;
use server_upstream::route::UpstreamAddr;

use crate::servers::Sent;
use crate::site::Site;

const PASS: &str = "set $memcached_key $uri; memcached_pass 127.0.0.1:11211;";

/// A site with the values of a memcached server.
fn site(directives: &str) -> Site {
    Site::server(&format!("location / {{ {PASS} {directives} }}"))
}

/// Returns the only request of the server.
fn one(site: &Site) -> Sent {
    let mut all = site.servers.sent();
    assert_eq!(all.len(), 1, "one request");
    all.remove(0)
}

/// A value as the server sends it.
fn value(flags: &str, text: &str) -> String {
    let length = text.len();
    format!("200\nContent-Length: {length}\nFlags: {flags}\n\n{text}")
}

const MISSING: &str = "404\nContent-Length: 0";

#[test]
fn a_value_has_the_type_of_its_extension_and_ranges() {
    let mut site = site("types { text/plain txt; } default_type a/b;");
    for (target, kind) in [("/a.txt", "text/plain"), ("/a", "a/b")] {
        site.servers.answer(&value("0", "hello"));
        let answer = site.get(target);
        assert_eq!((answer.status, answer.body.as_str()), (200, "hello"));
        assert_eq!(answer.field("Content-Type"), kind);
        assert_eq!(answer.field("Content-Length"), "5");
        assert_eq!(answer.field("Accept-Ranges"), "bytes");
        assert_eq!(answer.field("Flags"), "", "not for clients");
        assert_eq!(one(&site).field("key"), target);
    }
    site.servers.answer(&value("0", "hello"));
    let part = site.get_with("/a", "Range: bytes=1-2\r\n");
    assert_eq!((part.status, part.body.as_str()), (206, "el"));
    assert_eq!(part.field("Content-Range"), "bytes 1-2/5");
    site.servers.answer(&value("0", "hello"));
    let head = site.send("HEAD /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(head.field("Content-Length"), "5");
}

#[test]
fn nothing_in_a_key_ends_a_word_or_a_line() {
    let mut site = site("");
    for (target, key) in [
        ("/a%20b", "/a%20b"),
        ("/a%0d%0aset%20x", "/a%0D%0Aset%20x"),
        ("/%25%01%1f", "/%25%01%1F"),
        ("/%7f", "/\x7f"),
        ("/%c3%a9", "/\u{e9}"),
        ("/a?b=c", "/a"),
    ] {
        site.get(target);
        assert_eq!(one(&site).field("key"), key, "{target}");
    }
    let arguments =
        "location / { set $memcached_key \"$arg_a $uri\t\"; memcached_pass 127.0.0.1:11211; }";
    let mut site = Site::server(arguments);
    site.get("/x?a=b");
    assert_eq!(one(&site).field("key"), "b%20/x%09");
}

#[test]
fn only_get_and_head_are_answered_and_bodies_are_left_alone() {
    let mut site = site("");
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "MKCOL"] {
        let request = format!("{method} /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
        assert_eq!(site.send(&request).status, 405, "{method}");
    }
    assert!(site.servers.sent().is_empty());
    site.servers.answer(&value("0", "hello"));
    let body = "GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nxyz";
    assert_eq!(site.send(body).body, "hello");
    let sent = one(&site);
    assert_eq!(sent.request.fields.fields.len(), 1, "the key alone");
    assert_eq!(sent.body(), "");
}

#[test]
fn a_key_that_is_not_set_is_an_error() {
    let conf =
        "location / { if ($arg_k) { set $memcached_key $arg_k; } memcached_pass 127.0.0.1:11211; }";
    let mut site = Site::server(conf);
    assert_eq!(site.get("/?k=a").status, 200);
    assert_eq!(one(&site).field("key"), "a");
    let log = site.logged(|site| assert_eq!(site.get("/").status, 500));
    assert!(log.contains("[error]"), "{log}");
    let text = "the \"$memcached_key\" variable is not set, client: ";
    assert!(log.contains(text), "{log}");
    assert!(site.servers.sent().is_empty());
    let refused = Site::refused("server { location / { memcached_pass 127.0.0.1:11211; } }");
    assert_eq!(refused, "unknown \"memcached_key\" variable");
}

#[test]
fn what_is_not_found_is_404_by_an_error_page() {
    let mut plain = site("");
    plain.servers.answer(MISSING);
    let log = plain.logged(|site| {
        let answer = site.get("/a%20b");
        assert_eq!(answer.status, 404);
        assert!(answer.body.contains("404 Not Found"), "{}", answer.body);
    });
    let text = "key: \"/a%20b\" was not found by memcached while reading response header from upstream, client: ";
    assert!(log.contains("[info]") && log.contains(text), "{log}");
    assert!(
        log.contains("upstream: \"memcached://127.0.0.1:11211\""),
        "{log}"
    );
    let mut page = site("error_page 404 = @other; } location @other { return 200 other;");
    page.servers.answer(MISSING);
    let answer = page.get("/a");
    assert_eq!((answer.status, answer.body.as_str()), (200, "other"));
}

#[test]
fn another_server_is_asked_for_what_is_not_found_where_that_is_said() {
    let two = |next: &str| {
        let conf = format!(
            "upstream two {{ server 127.0.0.1:1; server 127.0.0.1:2; }} server {{ location / {{ \
             set $memcached_key $uri; memcached_pass two; {next} }} }}"
        );
        let mut site = Site::http(&conf);
        site.servers.answer(MISSING);
        site.servers.answer(&value("0", "hello"));
        let answer = site.get("/a");
        (answer.status, site.servers.sent().len())
    };
    assert_eq!(two(""), (404, 1));
    assert_eq!(two("memcached_next_upstream not_found;"), (200, 2));
    assert_eq!(
        two("memcached_next_upstream error off not_found;"),
        (404, 1)
    );
    let once = "memcached_next_upstream not_found; memcached_next_upstream_tries 1;";
    assert_eq!(two(once), (404, 1));
    let invalid = "memcached_next_upstream http_404;";
    let refused = Site::refused(&format!("server {{ {invalid} }}"));
    assert!(refused.contains("invalid value \"http_404\""), "{refused}");
}

#[test]
fn flags_say_that_a_value_is_compressed() {
    let mut site = site("memcached_gzip_flag 2;");
    for (flags, coding) in [
        ("0", ""),
        ("1", ""),
        ("2", "gzip"),
        ("7", "gzip"),
        ("12", ""),
    ] {
        site.servers.answer(&value(flags, "hello"));
        assert_eq!(site.get("/a").field("Content-Encoding"), coding, "{flags}");
    }
    for flags in ["", "x", "-2", "2x"] {
        site.servers.answer(&value(flags, "hello"));
        assert_eq!(site.get("/a").status, 502, "{flags}");
    }
    let mut unasked = self::site("");
    unasked.servers.answer(&value("x", "hello"));
    let answer = unasked.get("/a");
    assert_eq!((answer.status, answer.field("Content-Encoding")), (200, ""));
}

#[test]
fn invalid_flags_are_told_in_the_log() {
    let mut site = site("memcached_gzip_flag 2;");
    site.servers.answer(&value("x", "hello"));
    let log = site.logged(|site| assert_eq!(site.get("/a").status, 502));
    let text = "memcached sent invalid flags in response \"VALUE /a x 5\" for key \"/a\" \
                while reading response header from upstream";
    assert!(log.contains(text), "{log}");
    assert_eq!(log.matches("[error]").count(), 1, "{log}");
}

#[test]
fn an_end_that_is_none_is_told_in_the_log() {
    let mut site = site("");
    let note = "memcached sent invalid trailer";
    let answer = format!("{}\n!{note}", value("0", "hello"));
    site.servers.answer(&answer);
    let log = site.logged(|site| assert_eq!(site.get("/a").body, "hello"));
    let text = format!("{note} while reading upstream, client: ");
    assert!(log.contains("[error]") && log.contains(&text), "{log}");
}

#[test]
fn a_compressed_value_is_unpacked_for_those_who_cannot() {
    let mut site = site("memcached_gzip_flag 2; gunzip on;");
    for (fields, coding) in [("", ""), ("Accept-Encoding: gzip\r\n", "gzip")] {
        site.servers.answer(&value("2", "hello"));
        let head = format!("HEAD /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        assert_eq!(site.send(&head).field("Content-Encoding"), coding);
    }
}

#[test]
fn settings_are_those_that_are_written() {
    let mut plain = site("");
    plain.get("/a");
    let route = one(&plain).route;
    let times = route.timeouts;
    assert_eq!(
        (times.connect_ms, times.send_ms, times.read_ms),
        (60_000, 60_000, 60_000)
    );
    assert_eq!(route.protocol, &MEMCACHED);
    assert_eq!(route.head_bytes, 65_536);
    // Larger than all buffers of other modules; memcached has none.
    let set = "memcached_connect_timeout 1s; memcached_send_timeout 2s; memcached_read_timeout 3s; \
               memcached_buffer_size 1m; memcached_socket_keepalive on; memcached_bind 127.0.0.9; \
               memcached_bind_dynamic on;";
    let mut set = site(set);
    set.get("/a");
    let route = one(&set).route;
    let times = route.timeouts;
    assert_eq!(
        (times.connect_ms, times.send_ms, times.read_ms),
        (1000, 2000, 3000)
    );
    assert_eq!(route.head_bytes, 1 << 20);
    assert!(route.options.keepalive);
    assert_eq!(route.options.bind, "127.0.0.9:0".parse().ok());
    let mut denied = site("memcached_allow_upstream $arg_yes;");
    assert_eq!(denied.get("/a").status, 403);
    assert_eq!(denied.get("/a?yes=1").status, 200);
}

#[test]
fn an_address_has_a_port_or_names_a_group_and_has_no_uri() {
    let refused = |address: &str| {
        let conf = format!(
            "server {{ location / {{ set $memcached_key a; memcached_pass {address}; }} }}"
        );
        Site::refused(&conf)
    };
    for (address, why) in [
        (
            "127.0.0.1:1/a",
            "invalid host in upstream \"127.0.0.1:1/a\"",
        ),
        (
            "memcached://a",
            "invalid host in upstream \"memcached://a\"",
        ),
        ("127.0.0.1", "no port in upstream \"127.0.0.1\""),
        ("127.0.0.1:x", "invalid port in upstream \"127.0.0.1:x\""),
        (
            "127.0.0.1:1; memcached_pass 127.0.0.1:2",
            "\"memcached_pass\" directive is duplicate",
        ),
    ] {
        assert_eq!(refused(address), why, "{address}");
    }
    let mut unix =
        Site::server("location / { set $memcached_key a; memcached_pass unix:/run/m.sock; }");
    unix.get("/");
    let addr = one(&unix).route.addr;
    assert!(
        matches!(&addr, UpstreamAddr::Unix(path) if &path[..] == b"/run/m.sock"),
        "{addr:?}"
    );
}

#[test]
fn a_block_in_the_location_passes_to_the_same_server() {
    let conf = format!("location / {{ {PASS} if ($arg_a) {{ set $memcached_key b; }} }}");
    let mut site = Site::server(&conf);
    site.get("/x?a=1");
    assert_eq!(one(&site).field("key"), "b");
    let conf = format!("location /d/ {{ {PASS} }}");
    let answer = Site::server(&conf).get("/d");
    assert_eq!(answer.status, 301, "to the name with its slash");
}
