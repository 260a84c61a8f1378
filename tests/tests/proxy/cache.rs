//! Responses stored by `proxy_cache`: which are stored, for how long, and under which key.
//!
//! Expectations hold for nginx, too, except those guarded by the kind of the server. Sources: nginx documentation,
//! `ngx_http_proxy_module`; RFC 9111 section 3.

use firstbyte_tests::backend::{Backend, Gate, Step, answer};
use firstbyte_tests::client::request;
use firstbyte_tests::{Client, Server, Signal, peer, wait_until};

use crate::cache_server::{
    MINUTE, SECOND, assert_not_stored, cached, cached_with, files, fill, fill_with, get, get_until,
    get_with, numbered, status_of, wait_for_requests, wait_for_stored,
};

#[test]
fn a_stored_response_is_served_without_the_server() {
    let lines = &[
        "Cache-Control: max-age=60",
        "Content-Type: text/plain",
        "ETag: \"one\"",
        "X-Own: value",
    ];
    let backend = numbered(lines);
    let server = cached(&backend, "").start();
    let first = fill(&server, "/a");
    for _ in 0..3 {
        let hit = get(&server, "/a", "HIT");
        assert_eq!((hit.status, hit.text()), (200, first.text()));
        for name in ["Content-Type", "ETag", "X-Own", "Content-Length"] {
            assert_eq!(hit.header(name), first.header(name), "{name}");
        }
    }
    assert_eq!(backend.request_count(), 1);
    assert_eq!(fill(&server, "/b").text(), "</b 2>");
    assert_eq!(server.get("/plain").header("X-Cache"), None);
}

/// A client and a server may frame a body in other ways than the server behind.
#[test]
fn chunked_and_unframed_bodies_are_stored() {
    let backend = Backend::answering(|r| {
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
        let text = match r.target() {
            "/chunked" => "Transfer-Encoding: chunked\r\n\r\n4\r\nchun\r\n3\r\nked\r\n0\r\n\r\n",
            "/empty" => "Content-Length: 0\r\n\r\n",
            _ => "\r\nuntil close",
        };
        vec![Step::Send(format!("{head}{text}").into()), Step::Close]
    });
    let server = cached(&backend, "proxy_http_version 1.1;").start();
    for (path, body) in [("/chunked", "chunked"), ("/close", "until close")] {
        assert_eq!(fill(&server, path).text(), body);
        let hit = get(&server, path, "HIT");
        assert_eq!(hit.text(), body);
        // nginx sends a length only if the server behind did.
        let length = hit.header("Content-Length").map(str::to_owned);
        assert!(length.is_none_or(|length| length == body.len().to_string()));
    }
    get(&server, "/empty", "MISS");
    assert_eq!(get_until(&server, "/empty", "HIT").text(), "");
}

#[test]
fn an_expired_response_is_requested_again() {
    let backend = numbered(SECOND);
    let server = cached(&backend, "").start();
    assert_eq!(fill(&server, "/a").text(), "</a 1>");
    assert_eq!(get_until(&server, "/a", "EXPIRED").text(), "</a 2>");
    wait_for_stored(&server, "</a 2>");
}

#[test]
fn a_bypass_asks_the_server_and_stores_its_response() {
    let backend = numbered(MINUTE);
    let directives = "proxy_cache_key $uri; proxy_cache_bypass $arg_fresh $http_x_fresh;";
    let server = cached(&backend, directives).start();
    assert_eq!(fill(&server, "/a").text(), "</a 1>");
    for (number, query) in [(2, "?fresh=1"), (3, "?fresh=yes")] {
        let bypass = get(&server, &format!("/a{query}"), "BYPASS");
        assert_eq!(bypass.text(), format!("</a{query} {number}>"));
        wait_for_stored(&server, &bypass.text());
    }
    let bypass = get_with(&server, "/a", &["X-Fresh: 1"], "BYPASS");
    assert_eq!(bypass.text(), "</a 4>");
    wait_for_stored(&server, "</a 4>");
    for path in ["/a", "/a?fresh=0", "/a?fresh="] {
        assert_eq!(get(&server, path, "HIT").text(), "</a 4>");
    }
}

#[test]
fn responses_of_no_cache_are_not_stored() {
    let backend = numbered(MINUTE);
    let server = cached(&backend, "proxy_no_cache $arg_private $upstream_http_x;").start();
    assert_not_stored(&server, "/a?private=1", &[]);
    fill(&server, "/a?private=0");
    get(&server, "/a?private=0", "HIT");
}

#[test]
fn a_response_is_stored_at_its_third_use() {
    let backend = numbered(MINUTE);
    let server = cached(&backend, "proxy_cache_min_uses 3;").start();
    for number in 1..=2 {
        let answer = get(&server, "/a", "MISS");
        assert_eq!(answer.text(), format!("</a {number}>"));
    }
    assert_eq!(fill(&server, "/a").text(), "</a 3>");
    assert_eq!(get(&server, "/a", "HIT").text(), "</a 3>");
}

/// Responses without freshness of their own.
#[test]
fn times_are_configured_by_status() {
    let backend = Backend::answering(|r| {
        let status = &r.target()[1..4];
        answer(&format!("{status} X"), &[], format!("<{}>", r.target()))
    });
    let valid = "proxy_cache_valid 1m; proxy_cache_valid 404 410 1m; proxy_cache_valid 403 0;";
    let server = cached(&backend, valid).start();
    for path in ["/200", "/301", "/302", "/404", "/410"] {
        fill(&server, path);
        get(&server, path, "HIT");
        assert_eq!(server.get(path).status.to_string(), path[1..]);
    }
    for path in ["/201", "/403", "/500"] {
        let first = get(&server, path, "MISS");
        fill(&server, &format!("/200{path}"));
        get(&server, path, "MISS");
        assert_eq!(first.status.to_string(), path[1..]);
    }
    let any = cached(
        &backend,
        "proxy_cache_valid 403 0; proxy_cache_valid any 1m;",
    )
    .start();
    fill(&any, "/500");
    get(&any, "/500", "HIT");
}

#[test]
fn x_accel_expires_overrides_other_fields() {
    let backend = Backend::answering(|r| {
        let body = format!("<{}>", r.target());
        let lines: &[&str] = match r.target() {
            "/stored" => &["Cache-Control: no-store", "X-Accel-Expires: 60"],
            "/time" => &["Cache-Control: no-cache", "X-Accel-Expires: @4102444800"],
            "/never" => &["Cache-Control: max-age=60", "X-Accel-Expires: 0"],
            _ => MINUTE,
        };
        answer("200 OK", lines, body)
    });
    let server = cached(&backend, "").start();
    for path in ["/stored", "/time"] {
        let first = fill(&server, path);
        assert_eq!(first.header("X-Accel-Expires"), None);
        let hit = get(&server, path, "HIT");
        assert_eq!(hit.header("X-Accel-Expires"), None);
    }
    assert_not_stored(&server, "/never", &[]);
    let ignored = cached(&backend, "proxy_ignore_headers X-Accel-Expires;").start();
    fill(&ignored, "/never");
    get(&ignored, "/never", "HIT");
}

/// RFC 9111 sections 3, 5.2.2 and 5.3; nginx documentation, `proxy_cache_valid`.
#[test]
fn private_and_expired_responses_are_not_stored() {
    let backend = Backend::answering(|r| {
        let body = format!("<{}>", r.target());
        let line = match r.target() {
            "/cookie" => "Set-Cookie: session=1",
            "/private" => "Cache-Control: private, max-age=60",
            "/no-store" => "Cache-Control: no-store, max-age=60",
            "/expires" => "Expires: Thu, 01 Jan 1970 00:00:01 GMT",
            "/vary" => "Vary: *",
            _ => "X: y",
        };
        answer("200 OK", &[line], body)
    });
    let server = cached(&backend, "proxy_cache_valid 1m;").start();
    for path in ["/cookie", "/private", "/no-store", "/expires", "/vary"] {
        assert_not_stored(&server, path, &[]);
    }
    let ignored =
        "proxy_cache_valid 1m; proxy_ignore_headers Cache-Control Expires Set-Cookie Vary;";
    let server = cached(&backend, ignored).start();
    for path in ["/private", "/no-store", "/expires", "/vary"] {
        fill(&server, path);
        get(&server, path, "HIT");
    }
}

/// RFC 9111 section 4.1.
#[test]
fn each_variant_is_stored() {
    let backend = Backend::answering(|r| {
        let language = r.header("Accept-Language").unwrap_or("none");
        let lines = &["Cache-Control: max-age=60", "Vary: Accept-Language"];
        answer("200 OK", lines, format!("<{} {language}>", r.target()))
    });
    let server = cached(&backend, "").start();
    let variants = [&["Accept-Language: de"][..], &["Accept-Language: fr"], &[]];
    for lines in variants {
        fill_with(&server, "/a", lines);
    }
    for (lines, language) in variants.into_iter().zip(["de", "fr", "none"]) {
        let hit = get_with(&server, "/a", lines, "HIT");
        assert_eq!(hit.text(), format!("</a {language}>"));
    }
    assert_eq!(backend.request_count(), 3);
}

#[test]
fn other_methods_use_the_cache_only_if_configured() {
    let post = |server: &Server, path: &str, body: &str| {
        let length = format!("Content-Length: {}", body.len());
        let mut client = server.client();
        client.send(request("POST", path, &[&length]) + body);
        client.response()
    };
    let backend = numbered(MINUTE);
    let server = cached(&backend, "").start();
    for number in 1..=2 {
        let answer = post(&server, "/a", "x");
        assert_eq!(answer.text(), format!("</a {number}>"));
        assert_eq!(status_of(&answer), "");
    }
    let backend = numbered(MINUTE);
    let key = "proxy_cache_methods POST; proxy_cache_key $request_method$uri$request_body;";
    let server = cached(&backend, key).start();
    let first = post(&server, "/a", "x");
    wait_for_stored(&server, &first.text());
    let hit = post(&server, "/a", "x");
    assert_eq!((status_of(&hit), hit.text()), ("HIT", first.text()));
    assert_eq!(status_of(&post(&server, "/a", "y")), "MISS");
    fill(&server, "/a");
}

#[test]
fn the_key_has_variables() {
    let backend = numbered(MINUTE);
    let server = cached(&backend, "proxy_cache_key $host$uri$arg_v;").start();
    let a = fill_with(&server, "/a?v=1", &["Host: a.test"]);
    let hit = get_with(&server, "/a?x=2&v=1", &["Host: a.test"], "HIT");
    assert_eq!(hit.text(), a.text());
    fill_with(&server, "/a?v=1", &["Host: b.test"]);
    fill_with(&server, "/a?v=2", &["Host: a.test"]);
    fill_with(&server, "/b?v=1", &["Host: a.test"]);
    assert_eq!(files(&server).len(), 4);
}

/// By default the key has the scheme, the server of `proxy_pass`, and the target sent to it.
#[test]
fn the_default_key_has_the_target() {
    let backend = numbered(MINUTE);
    let server = cached(&backend, "").start();
    let first = fill(&server, "/a?b");
    fill(&server, "/a?c");
    fill(&server, "/a");
    let mut stored = files(&server).into_iter().flat_map(std::fs::read);
    let bytes = stored.find(|bytes| bytes.ends_with(first.text().as_bytes()));
    let bytes = bytes.expect("it is stored");
    let key = format!("\nKEY: http://{}/a?b\n", backend.name());
    assert_eq!(&bytes[336..336 + key.len()], key.as_bytes());
}

#[test]
fn one_request_of_many_is_sent_with_the_lock() {
    const CLIENTS: usize = 100;
    let gate = Gate::default();
    let of_script = gate.clone();
    let backend = Backend::answering(move |r| {
        let mut steps = vec![Step::Gate(of_script.clone())];
        steps.extend(answer("200 OK", MINUTE, format!("<{}>", r.target())));
        steps
    });
    let lock = "proxy_cache_lock on; proxy_cache_lock_timeout 60s; proxy_cache_lock_age 60s;";
    let server = cached(&backend, lock).start();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send(request("GET", "/a", &[]));
    }
    wait_until("one is sent", || backend.request_count() > 0);
    wait_for_requests(&server, CLIENTS);
    gate.open();
    let answers = clients.iter_mut().map(Client::response);
    let answers: Vec<_> = answers.collect();
    assert!(answers.iter().all(|answer| answer.text() == "</a>"));
    assert_eq!(backend.request_count(), 1);
    let misses = answers.iter().filter(|answer| status_of(answer) == "MISS");
    assert_eq!(misses.count(), 1);
}

#[test]
fn other_requests_are_sent_after_the_time_of_the_lock() {
    for times in [
        "proxy_cache_lock_timeout 100ms;",
        "proxy_cache_lock_age 100ms;",
    ] {
        let gate = Gate::default();
        let of_script = gate.clone();
        let backend = Backend::answering(move |r| {
            let mut steps = match (r.target(), r.connection) {
                ("/a", 1) => vec![Step::Gate(of_script.clone())],
                _ => Vec::new(),
            };
            let body = format!("<{} {}>", r.target(), r.connection);
            steps.extend(answer("200 OK", MINUTE, body));
            steps
        });
        let server = cached(&backend, &format!("proxy_cache_lock on; {times}")).start();
        let mut first = server.client();
        first.send(request("GET", "/a", &[]));
        wait_until("it is sent", || backend.request_count() == 1);
        assert_eq!(get(&server, "/a", "MISS").text(), "</a 2>");
        gate.open();
        assert_eq!(first.response().text(), "</a 1>");
    }
}

#[test]
fn a_location_can_do_without_the_cache() {
    let backend = numbered(MINUTE);
    let pass = backend.name();
    let own = format!("location /own {{ proxy_pass http://{pass}; proxy_cache off; }}");
    let server = cached(&backend, &own).start();
    for number in 1..=2 {
        assert_eq!(get(&server, "/own", "").text(), format!("</own {number}>"));
    }
    fill(&server, "/a");
}

#[test]
fn stored_responses_survive_a_reload_and_a_restart() {
    let backend = numbered(MINUTE);
    let mut server = cached_with("keepalive_timeout 60s;", &backend, "").start();
    let first = fill(&server, "/a").text();
    server
        .rewrite_conf(|conf| conf.replace("keepalive_timeout 60s;", "add_header X-New 1 always;"));
    server.signal(Signal::HUP);
    wait_until("the new configuration is used", || {
        server.get("/a").header("X-New").is_some()
    });
    assert_eq!(get(&server, "/a", "HIT").text(), first);
    server.signal(Signal::QUIT);
    assert_eq!(server.wait_for_exit(), 0);
    server.launch(false);
    assert_eq!(get(&server, "/a", "HIT").text(), first);
    assert_eq!(backend.request_count(), 1);
}

/// Response heads of firstbyte may be longer than the positions in a file allow.
#[test]
fn a_head_beyond_limits_is_sent_and_not_stored() {
    let backend = Backend::answering(|r| {
        let (vary, long) = ("X-A".repeat(43), "v".repeat(65_100));
        let line = match r.target() {
            "/vary" => format!("Vary: {vary}"),
            "/long" => format!("X-Long: {long}"),
            _ => "X: y".to_owned(),
        };
        let lines = ["Cache-Control: max-age=60", &line];
        answer("200 OK", &lines, format!("<{}>", r.target()))
    });
    let server = cached(&backend, "").start();
    assert_not_stored(&server, "/vary", &[]);
    assert_eq!(server.get("/vary").text(), "</vary>");
    if peer::is_firstbyte() {
        assert_not_stored(&server, "/long", &[]);
        assert_eq!(server.get("/long").text(), "</long>");
    }
}
