//! Published attacks on caches: poisoning, deception, denial of service. A victim never gets the response of an attacker.
//!
//! Each test names its attack and its publication. Some defences need the server behind, such as `Vary` for a reflected
//! field; the scripted server has them. Absent: other defences of applications.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firstbyte_tests::backend::{Backend, Step, answer, send};
use firstbyte_tests::client::request;
use firstbyte_tests::{Server, Signal, peer};

use crate::cache_server::{
    MINUTE, assert_not_stored, cached, files, fill, fill_with, get, get_with, is_stored, numbered,
    status_of,
};

/// Asserts that each path gets its own response, requested twice.
#[track_caller]
fn assert_apart(server: &Server, paths: &[&str]) {
    for _ in 0..2 {
        for path in paths {
            let answer = server.get(path);
            // Some are no valid targets.
            if answer.status != 400 {
                let sent = path.split('#').next().unwrap_or_default();
                let is_own = |path: &str| answer.text().starts_with(&format!("<{path} "));
                assert!(is_own(path) || is_own(sent), "{path}: {answer:?}");
            }
        }
    }
}

/// Unkeyed input of "Practical Web Cache Poisoning" (Kettle, 2018): the server reflects a field, and names it in `Vary`.
#[test]
fn practical_web_cache_poisoning() {
    for name in [
        "X-Forwarded-Host",
        "X-Forwarded-Scheme",
        "X-Forwarded-Proto",
        "X-Original-URL",
        "X-Rewrite-URL",
        "X-Host",
        "Origin",
        "User-Agent",
        "Cookie",
    ] {
        let backend = Backend::answering(move |r| {
            let reflected = r.header(name).unwrap_or("none");
            let vary = format!("Vary: {name}");
            let lines = ["Cache-Control: max-age=60", &vary];
            answer("200 OK", &lines, format!("<{} {reflected}>", r.target()))
        });
        let server = cached(&backend, "").start();
        let attack = format!("{name}: evil");
        fill_with(&server, "/a", &[&attack]);
        assert_eq!(fill(&server, "/a").text(), "</a none>", "{name}");
        assert_eq!(get(&server, "/a", "HIT").text(), "</a none>", "{name}");
        let evil = get_with(&server, "/a", &[&attack], "HIT");
        assert_eq!(evil.text(), "</a evil>", "{name}");
    }
}

/// "Unkeyed port" of "Web Cache Entanglement" (Kettle, 2020): the server gets the host of `proxy_pass`.
#[test]
fn unkeyed_port() {
    let backend = Backend::answering(|r| {
        let host = r.header("Host").unwrap_or("none");
        answer("200 OK", MINUTE, format!("<{host}>"))
    });
    let server = cached(&backend, "").start();
    let first = fill_with(&server, "/a", &["Host: localhost:31337"]);
    assert_eq!(first.text(), format!("<{}>", backend.name()));
    let with_host = "proxy_set_header Host $http_host; proxy_cache_key $http_host$request_uri;";
    let server = cached(&backend, with_host).start();
    fill_with(&server, "/a", &["Host: localhost:31337"]);
    assert_eq!(fill(&server, "/a").text(), "<localhost>");
}

/// "Fat GET" of "Web Cache Entanglement" (Kettle, 2020): the server reads parameters from the body of a GET. nginx stores the
/// response.
#[test]
fn fat_get() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = Backend::answering(|r| {
        let body = String::from_utf8_lossy(&r.body).into_owned();
        answer("200 OK", MINUTE, format!("<{} {body}>", r.target()))
    });
    let server = cached(&backend, "").start();
    for framing in [
        "Content-Length: 4\r\n\r\nevil",
        "Transfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0\r\n\r\n",
    ] {
        let mut client = server.client();
        client.send(format!("GET /a HTTP/1.1\r\nHost: localhost\r\n{framing}"));
        assert_eq!(client.response().status, 200);
        fill(&server, &format!("/later/{}", framing.len()));
        assert!(!is_stored(&server, "</a evil>"));
        assert_eq!(server.get("/a").text(), "</a >");
    }
}

/// "Parameter cloaking" of "Web Cache Entanglement" (Kettle, 2020): a server separates parameters at other bytes.
#[test]
fn parameter_cloaking() {
    let backend = numbered(MINUTE);
    let server = cached(&backend, "").start();
    assert_apart(
        &server,
        &[
            "/a?q=1",
            "/a?q=1;q=evil",
            "/a?q=1&utm=x;q=evil",
            "/a?q=1&utm=x",
            "/a?q=1%26q=evil",
            "/a?q=1&",
            "/a?",
            "/a??q=1",
        ],
    );
}

/// "Cache key injection" of "Web Cache Entanglement" (Kettle, 2020): a key that contains the text of a file.
#[test]
fn cache_key_injection() {
    let backend = numbered(MINUTE);
    let mut server = cached(&backend, "proxy_cache_key $uri;").start();
    let attacks = [
        "/a%0AHTTP/1.1%20200%20OK%0D%0AX-Evil:%20yes%0D%0A%0D%0Aevil",
        "/a%0A",
        "/a%0AKEY:%20/a",
        "/a%20",
    ];
    for attack in attacks {
        fill(&server, attack);
    }
    let own = fill(&server, "/a").text();
    server.signal(Signal::QUIT);
    server.wait_for_exit();
    // Keys are read from files again.
    server.launch(false);
    let hit = get(&server, "/a", "HIT");
    assert_eq!((hit.text(), hit.header("X-Evil")), (own, None));
    for attack in attacks {
        let hit = get(&server, attack, "HIT");
        assert!(hit.text().starts_with(&format!("<{attack} ")), "{hit:?}");
        assert_eq!(hit.header("X-Evil"), None);
    }
}

/// "Cache key normalization" of "Web Cache Entanglement" (Kettle, 2020), and encoded slashes: the key is the target as sent.
#[test]
fn cache_key_normalization() {
    let backend = numbered(MINUTE);
    let server = cached(&backend, "").start();
    assert_apart(
        &server,
        &[
            "/a/b",
            "/a%2Fb",
            "/a%2fb",
            "/a//b",
            "/a/./b",
            "/a/x/../b",
            "/A/b",
            "/a/b/",
            "/a/b?",
            "/%61/b",
            "/a/b%20",
            "/a%5Cb",
            "/a\\b",
        ],
    );
}

/// Fragments, which browsers never send: no target shares the response of another one.
#[test]
fn fragment_poisoning() {
    let backend = numbered(MINUTE);
    let server = cached(&backend, "").start();
    assert_apart(
        &server,
        &["/a#evil", "/a", "/b?c#evil", "/b?c", "/d#?c", "/d?c", "/d"],
    );
}

/// "Host header case normalization" (youstin, "Cache Poisoning at Scale", 2021): server and key have `$host`.
#[test]
fn host_header_case_normalization() {
    let backend = Backend::answering(|r| match r.header("Host") {
        Some("localhost") => answer("200 OK", MINUTE, format!("<{}>", r.target())),
        _ => answer("404 Not Found", MINUTE, "unknown host"),
    });
    let host = "proxy_set_header Host $host; proxy_cache_key $host$request_uri;";
    let server = cached(&backend, host).start();
    fill_with(&server, "/a", &["Host: LOCALHOST"]);
    for host in [
        "Host: LocalHost",
        "Host: localhost.",
        "Host: localhost:31337",
        "Host: localhost",
    ] {
        assert_eq!(get_with(&server, "/a", &[host], "HIT").text(), "</a>");
    }
}

/// A server that answers 400 to an attack, without freshness.
fn refusing(
    is_attack: impl Fn(&str) -> bool + Send + Sync + 'static,
    status: &'static str,
) -> Backend {
    Backend::answering(move |r| match is_attack(&r.head()) {
        true => answer(status, &[], "refused"),
        false => answer("200 OK", MINUTE, format!("<{}>", r.target())),
    })
}

/// Sends an attack, and asserts that a victim gets the page.
#[track_caller]
fn assert_page_after(server: &Server, attack: &str) {
    let answer = server.client().get_with("/a", &[attack]);
    assert!(answer.status >= 400, "{answer:?}");
    let page = server.get("/a");
    assert_eq!((page.status, page.text().as_str()), (200, "</a>"));
    assert!(!is_stored(server, "refused"));
}

/// HTTP Header Oversize of "Your Cache Has Fallen" (Nguyen, Lo Iacono, Federrath, 2019).
#[test]
fn cpdos_http_header_oversize() {
    let backend = refusing(|head| head.len() > 4096, "400 Bad Request");
    let server = cached(&backend, "proxy_cache_valid 1m;").start();
    assert_page_after(&server, &format!("X-Oversized: {}", "x".repeat(6000)));
}

/// HTTP Meta Character of "Your Cache Has Fallen" (Nguyen, Lo Iacono, Federrath, 2019).
#[test]
fn cpdos_http_meta_character() {
    let is_attack = |head: &str| head.contains('\x07');
    let backend = refusing(is_attack, "400 Bad Request");
    let server = cached(&backend, "proxy_cache_valid 1m;").start();
    assert_page_after(&server, "X-Meta: a\x07b");
}

/// HTTP Method Override of "Your Cache Has Fallen" (Nguyen, Lo Iacono, Federrath, 2019).
#[test]
fn cpdos_http_method_override() {
    for status in [
        "404 Not Found",
        "405 Method Not Allowed",
        "501 Not Implemented",
    ] {
        let backend = refusing(|head| head.contains("Method-Override"), status);
        let server = cached(&backend, "proxy_cache_valid 1m;").start();
        assert_page_after(&server, "X-HTTP-Method-Override: DELETE");
    }
}

/// Requests with other methods: their responses answer no GET.
#[test]
fn method_confusion() {
    let backend = Backend::answering(|r| {
        let text = format!("<{} {}>", r.method(), r.target());
        answer("200 OK", MINUTE, text)
    });
    let server = cached(&backend, "").start();
    for method in [
        "OPTIONS", "PUT", "DELETE", "PATCH", "POST", "PROPFIND", "get",
    ] {
        let mut client = server.client();
        client.send(request(method, "/a", &["Content-Length: 0"]));
        client.try_response().expect("it is whole");
        assert_eq!(server.get("/a").text(), "<GET /a>", "{method}");
    }
}

/// "Web Cache Deception" (Gil, 2017): a page of an account under a name like a static file. The server forbids storing.
#[test]
fn web_cache_deception() {
    let backend = Backend::answering(|r| match r.target() {
        "/account/x.css" => answer("200 OK", &["Cache-Control: private"], "secret"),
        "/account/y.css" => answer("200 OK", &["Cache-Control: no-store"], "secret"),
        "/account/z.css" => answer("200 OK", &["Set-Cookie: session=1"], "secret"),
        "/account/expires.css" => answer("200 OK", &["Expires: 0"], "secret"),
        target => answer("200 OK", MINUTE, format!("<{target}>")),
    });
    let server = cached(&backend, "proxy_cache_valid any 10m;").start();
    let cookie = &["Cookie: session=1"];
    for path in ["/account/x.css", "/account/y.css", "/account/z.css"] {
        assert_not_stored(&server, path, cookie);
    }
    if peer::is_firstbyte() {
        assert_not_stored(&server, "/account/expires.css", cookie);
    }
    assert!(!is_stored(&server, "secret"));
}

/// A page for one user, requested with credentials (RFC 9111 section 3.5). nginx stores it.
#[test]
fn responses_to_authorized_requests() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = Backend::answering(|r| {
        let line = match r.target() {
            "/public" => "Cache-Control: public, max-age=60",
            _ => "Cache-Control: max-age=60",
        };
        answer("200 OK", &[line], format!("<{}>", r.target()))
    });
    let server = cached(&backend, "").start();
    let lines = &["Authorization: Basic eDp5"];
    assert_not_stored(&server, "/a", lines);
    fill_with(&server, "/public", lines);
    get(&server, "/public", "HIT");
}

/// Path confusion of "Cached and Confused" (Mirheidari and others, 2020): encoded delimiters in front of a file name.
#[test]
fn path_confusion() {
    let backend = numbered(MINUTE);
    let server = cached(&backend, "").start();
    let paths = [
        "/account",
        "/account/x.css",
        "/account%0Ax.css",
        "/account%3Bx.css",
        "/account;x.css",
        "/account%23x.css",
        "/account%3Fx.css",
        "/account%00x.css",
        "/account?x.css",
    ];
    assert_apart(&server, &paths);
}

/// Static directories of "Gotta Cache 'em All" (Doyhenard, 2024): a location with a cache, and a path out of it.
#[test]
fn gotta_cache_em_all() {
    let backend = Backend::answering(|r| answer("200 OK", &[], format!("<{}>", r.target())));
    let pass = backend.name();
    let server = Server::http_with(
        "worker_processes 2;",
        &format!(
            "proxy_cache_path %%DIR%%/cache levels=1:2 keys_zone=one:1m;
             add_header X-Cache $upstream_cache_status always;
             server {{ listen 127.0.0.1:%%PORT%%;
                 location / {{ proxy_pass http://{pass}; }}
                 location /static/ {{ proxy_pass http://{pass}; proxy_cache one; proxy_cache_valid 1m; }} }}"
        ),
    )
    .start();
    for path in [
        "/static/..%2faccount",
        "/static/..%2Faccount",
        "/static/%2e%2e/account",
        "/static/%2e%2e%2faccount",
        "/static/../account",
        "/static/x/../../account",
        "/account%2f..%2f..%2faccount",
    ] {
        for _ in 0..2 {
            assert_eq!(status_of(&server.get(path)), "", "{path}");
        }
    }
    fill(&server, "/static/a");
    assert_eq!(files(&server).len(), 1);
}

/// "HTTP Response Splitting" (Klein, 2004): a second response behind the first one is no response to the next request.
#[test]
fn http_response_splitting() {
    let part = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: ";
    let both = format!("{part}2\r\n\r\nok{part}4\r\n\r\nevil");
    let backend = Backend::answering(move |r| match r.target() {
        "/split" => vec![send(&both)],
        target => answer("200 OK", MINUTE, format!("<{target}>")),
    });
    let directives = "proxy_http_version 1.1; proxy_set_header Connection '';";
    let server = cached(&backend, directives).start();
    assert_eq!(fill(&server, "/split").text(), "ok");
    for number in 0..10 {
        let path = format!("/a/{number}");
        assert_eq!(fill(&server, &path).text(), format!("<{path}>"));
    }
    assert_eq!(get(&server, "/split", "HIT").text(), "ok");
    assert!(!is_stored(&server, "evil"));
}

/// "HTTP Request Smuggling" (Linhart, Klein, Heled, Orrin, 2005): the body of a request is no request, also of a hit.
#[test]
fn http_request_smuggling() {
    let backend = numbered(MINUTE);
    let directives = "proxy_http_version 1.1; proxy_set_header Connection '';";
    let server = cached(&backend, directives).start();
    let own = fill(&server, "/a").text();
    let hidden = "GET /evil HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let length = format!("Content-Length: {}", hidden.len());
    let mut client = server.client();
    client.send(request("GET", "/a", &[&length]) + hidden);
    assert_eq!(client.response().status, 200);
    assert_eq!(client.get("/a").text(), own);
    // Contradictory framing ends the connection at the latest behind the first response.
    for framing in [
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        "Content-Length: 4\r\nContent-Length: 5",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding : chunked",
    ] {
        let mut client = server.client();
        client.send(format!(
            "POST /b HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n0\r\n\r\n{hidden}"
        ));
        let _ = client.rest();
        assert_eq!(get(&server, "/a", "HIT").text(), own, "{framing}");
    }
    let targets = backend
        .requests()
        .into_iter()
        .map(|r| r.target().to_owned());
    assert!(targets.into_iter().all(|target| target != "/evil"));
}

/// "Abusing HTTP hop-by-hop request headers" (Davison, 2019): a client's `Connection` removes no field of the proxy.
#[test]
fn hop_by_hop_headers() {
    let backend = refusing(|head| !head.contains("X-Needed: yes"), "401 Unauthorized");
    let server = cached(
        &backend,
        "proxy_set_header X-Needed yes; proxy_cache_valid any 1m;",
    )
    .start();
    for nominated in [
        "X-Needed",
        "close, X-Needed",
        "keep-alive, x-needed, Host, Cookie",
    ] {
        let line = format!("Connection: {nominated}");
        let answer = server.client().get_with("/a", &[&line, "X-Needed: no"]);
        assert_eq!(answer.text(), "</a>");
    }
    assert_eq!(server.get("/a").text(), "</a>");
}

/// Poisoning by `Range` and conditions: parts and 304 of one client are no response for others.
#[test]
fn range_and_condition_poisoning() {
    let backend = Backend::answering(|r| {
        let lines = ["Cache-Control: max-age=60", "ETag: \"one\""];
        let body = "0123456789";
        match (r.header("Range"), r.header("If-None-Match")) {
            (None, None) => answer("200 OK", &lines, body),
            (Some(_), _) => {
                let lines = [lines[0], lines[1], "Content-Range: bytes 0-0/10"];
                answer("206 Partial Content", &lines, "0")
            }
            _ => vec![send(
                "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nETag: \"one\"\r\n\r\n",
            )],
        }
    });
    for line in [
        "Range: bytes=0-0",
        "Range: bytes=99-",
        "Range: bytes=0-0,2-2",
        "If-None-Match: \"one\"",
        "If-None-Match: *",
        "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT",
        "If-Range: \"other\"",
    ] {
        let server = cached(&backend, "").start();
        server.client().get_with("/a", &[line]);
        let page = server.get("/a");
        assert_eq!(
            (page.status, page.text().as_str()),
            (200, "0123456789"),
            "{line}"
        );
    }
}

/// Errors of the proxy itself are no responses to store.
#[test]
fn own_errors_are_not_stored() {
    let fails = Arc::new(AtomicBool::new(true));
    let of_script = Arc::clone(&fails);
    let backend = Backend::answering(move |r| match of_script.load(Ordering::SeqCst) {
        true => vec![Step::Close],
        false => answer("200 OK", MINUTE, format!("<{}>", r.target())),
    });
    let server = cached(&backend, "proxy_cache_valid 1m;").start();
    assert_eq!(server.get("/a").status, 502);
    fails.store(false, Ordering::SeqCst);
    assert_eq!(fill(&server, "/a").text(), "</a>");
}
