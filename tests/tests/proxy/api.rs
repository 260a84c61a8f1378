//! `api` on a running server: groups change for all threads at once, changes stay over reloads, errors change nothing.
//!
//! Source: nginx documentation, `ngx_http_api_module`.

use firstbyte_tests::backend::{Backend, ok};
use firstbyte_tests::client::request;
use firstbyte_tests::{Response, Server, Signal, wait_until};
use serde_json::{Value, json};

const SERVERS: &str = "/api/9/http/upstreams/app/servers";

/// A server with a group of one server, for two threads.
fn site(first: &Backend) -> Server {
    let name = first.name();
    let http = format!(
        "upstream app {{ zone app 64k; server {name}; }}
         upstream hashed {{ zone hashed 64k; hash $uri; server {name}; }}
         server {{
             listen 127.0.0.1:%%PORT%%;
             status_zone site;
             location / {{ proxy_pass http://app; }}
             location /generation {{ return 200 g1; }}
             location /metrics {{ metrics; }}
             location /api {{ api write=on; }}
             location /read {{ api; }}
         }}"
    );
    Server::http_with("worker_processes 2;", &http).start()
}

fn backend(name: &'static str) -> Backend {
    Backend::answering(move |_| ok(name))
}

pub(crate) fn call(server: &Server, method: &str, path: &str, body: &str) -> Response {
    let length = format!("Content-Length: {}", body.len());
    let text = request(method, path, &[&length]) + body;
    server.client().send(text).response()
}

pub(crate) fn document(response: &Response) -> Value {
    let is_json = response.header("Content-Type") == Some("application/json");
    assert!(is_json, "{}", response.status_line);
    serde_json::from_slice(&response.body).expect("the body is JSON")
}

pub(crate) fn get(server: &Server, path: &str) -> Value {
    let response = server.get(path);
    assert_eq!(response.status, 200, "{path}: {}", response.text());
    document(&response)
}

/// Makes requests by new connections, which either thread may take; returns the number of answers of each name.
fn answers(server: &Server, requests: usize, names: [&str; 2]) -> [usize; 2] {
    let mut counts = [0; 2];
    for _ in 0..requests {
        let text = server.get("/").text();
        let at = names.iter().position(|name| *name == text);
        counts[at.unwrap_or_else(|| panic!("an answer of {text:?}"))] += 1;
    }
    counts
}

fn reload(server: &Server, from: &str, to: &str) {
    server.rewrite_conf(|text| text.replace(from, to));
    server.signal(Signal::HUP);
    wait_until("the new configuration answers", || {
        server.get("/generation").text() == to
    });
}

#[test]
fn servers_are_added_changed_and_removed_for_all_threads() {
    let (one, two) = (backend("one"), backend("two"));
    let server = site(&one);
    assert_eq!(answers(&server, 8, ["one", "two"]), [8, 0]);
    let body = json!({"server": two.name(), "weight": 3}).to_string();
    let added = call(&server, "POST", SERVERS, &body);
    assert_eq!(added.status, 201, "{}", added.text());
    let added = document(&added);
    assert_eq!(
        (&added["server"], &added["weight"]),
        (&json!(two.name()), &json!(3))
    );
    assert_eq!(answers(&server, 16, ["one", "two"]), [4, 12]);
    let path = |id: &Value| format!("{SERVERS}/{id}");
    let id = get(&server, SERVERS)[0]["id"].clone();
    for (change, expected) in [
        ("{\"down\": true}", [0, 8]),
        ("{\"down\": false}", [2, 6]),
        ("{\"weight\": 3}", [4, 4]),
        ("{\"drain\": true}", [0, 8]),
        (
            "{\"drain\": false, \"slow_start\": \"1s\", \"route\": \"r\"}",
            [4, 4],
        ),
    ] {
        let changed = call(&server, "PATCH", &path(&id), change);
        assert_eq!(changed.status, 200, "{}", changed.text());
        assert_eq!(answers(&server, 8, ["one", "two"]), expected, "{change}");
    }
    let left = call(&server, "DELETE", &path(&id), "");
    assert_eq!(left.status, 200);
    assert_eq!(document(&left), json!([added]));
    assert_eq!(answers(&server, 8, ["one", "two"]), [0, 8]);
    let missing = call(&server, "DELETE", &path(&id), "");
    assert_eq!(
        document(&missing)["error"]["code"],
        "UpstreamServerNotFound"
    );
}

#[test]
fn changes_stay_over_reloads() {
    let (one, two) = (backend("one"), backend("two"));
    let server = site(&one);
    let body = json!({"server": two.name()}).to_string();
    assert_eq!(call(&server, "POST", SERVERS, &body).status, 201);
    let down = call(&server, "PATCH", &format!("{SERVERS}/0"), "{\"down\":true}");
    assert_eq!(down.status, 200);
    server.get("/");
    let before = get(&server, SERVERS);
    reload(&server, "g1", "g2");
    assert_eq!(get(&server, SERVERS), before);
    assert_eq!(answers(&server, 8, ["one", "two"]), [0, 8]);
    let zone = get(&server, "/api/9/http/server_zones/site");
    assert!(zone["requests"].as_u64() > Some(9), "{zone}");
    assert_eq!(get(&server, "/api/9/nginx")["generation"], 1);
    // The configuration changes the server.
    let name = one.name();
    server.rewrite_conf(|text| {
        text.replace(
            &format!("server {name};"),
            &format!("server {name} weight=2;"),
        )
    });
    reload(&server, "g2", "g3");
    // Shared servers change once all threads have the configuration.
    wait_until("the weight has changed", || {
        get(&server, SERVERS)[0]["weight"] == json!(2)
    });
    let after = get(&server, SERVERS);
    assert_eq!(after[0]["down"], json!(false));
    assert_eq!(after[1], before[1]);
}

#[test]
fn a_request_with_an_error_changes_nothing() {
    let one = backend("one");
    let server = site(&one);
    let before = get(&server, SERVERS);
    let existing = json!({"server": one.name()}).to_string();
    let exists = ("POST", "app/servers", &*existing, 409, "EntryExists");
    for (method, path, body, status, code) in BAD.iter().chain([&exists]) {
        let path = format!("/api/9/http/upstreams/{path}");
        let response = call(&server, method, &path, body);
        let case = format!("{method} {path} {body}: {}", response.text());
        assert_eq!(response.status, *status, "{case}");
        assert_eq!(document(&response)["error"]["code"], *code, "{case}");
    }
    let read_only = SERVERS.replace("/api", "/read");
    let added = call(&server, "POST", &read_only, "{\"server\":\"127.0.0.1:9\"}");
    assert_eq!(document(&added)["error"]["code"], "MethodDisabled");
    let large = format!("{{\"server\":\"{}\"}}", "x".repeat(64 << 10));
    assert_eq!(call(&server, "POST", SERVERS, &large).status, 413);
    assert_eq!(get(&server, SERVERS), before);
    assert_eq!(answers(&server, 4, ["one", "two"]), [4, 0]);
}

/// Requests with an error: method, path below the groups, body, and the status and code of the response.
type BadRequest<'a> = (&'a str, &'a str, &'a str, u16, &'a str);

#[rustfmt::skip] // One line a request.
const BAD: &[BadRequest<'_>] = &[
    ("POST", "app/servers", "{}", 400, "UpstreamConfFormatError"),
    ("POST", "app/servers", "{\"server\":\"127.0.0.1:0\"}", 400, "UpstreamBadAddress"),
    ("POST", "app/servers", "{\"server\":\"unix:\"}", 400, "UpstreamBadAddress"),
    ("POST", "app/servers", "{\"server\":\"127.0.0.1:9\",\"weight\":0}", 400, "UpstreamBadWeight"),
    ("POST", "app/servers", "{\"server\":\"a.example:1\",\"service\":\"http\"}", 400, "UpstreamBadAddress"),
    ("POST", "app/servers", "{\"server\":\"127.0.0.1\",\"service\":\"http\"}", 400, "UpstreamBadAddress"),
    ("POST", "app/servers", "{\"server\":", 415, "JsonError"),
    ("POST", "other/servers", "{\"server\":\"127.0.0.1:9\"}", 404, "UpstreamNotFound"),
    ("PATCH", "app/servers/0", "{\"down\":true,\"weight\":0}", 400, "UpstreamBadWeight"),
    ("PATCH", "app/servers/0", "{\"down\":true,\"id\":7}", 400, "UpstreamConfFormatError"),
    ("PATCH", "app/servers/0", "{\"weight\":5,\"server\":\"x\"}", 400, "UpstreamBadAddress"),
    ("POST", "hashed/servers", "{\"server\":\"127.0.0.1:9\",\"slow_start\":\"1s\"}", 400, "UpstreamBadSlowStart"),
    ("POST", "hashed/servers", "{\"server\":\"127.0.0.1:9\",\"backup\":true}", 400, "UpstreamNoBackup"),
    ("PATCH", "hashed/servers/0", "{\"slow_start\":1}", 400, "UpstreamBadSlowStart"),
    ("PATCH", "app/servers/99", "{\"down\":true}", 404, "UpstreamServerNotFound"),
    ("DELETE", "app/servers/x", "", 400, "UpstreamBadServerId"),
    ("PUT", "app/servers", "{}", 405, "MethodDisabled"),
];

#[test]
fn responses_of_servers_are_counted() {
    let one = backend("one");
    let server = site(&one);
    assert_eq!(answers(&server, 5, ["one", "two"]), [5, 0]);
    let group = get(&server, "/api/9/http/upstreams/app");
    let peer = &group["peers"][0];
    assert_eq!(
        (&peer["requests"], &peer["state"]),
        (&json!(5), &json!("up"))
    );
    assert_eq!((&peer["active"], &peer["fails"]), (&json!(0), &json!(0)));
    assert_eq!(peer["responses"]["codes"], json!({"200": 5}));
    assert_eq!(peer["response_time_hist"]["count"], 5);
    for bytes in ["sent", "received"] {
        assert!(peer[bytes].as_u64() > Some(100), "{peer}");
    }
    assert_eq!(
        (&group["zone"], &group["zombies"]),
        (&json!("app"), &json!(0))
    );
    let metrics = server.get("/metrics").text();
    let name = one.name();
    let line = format!("firstbyte_upstream_requests_total{{upstream=\"app\",server=\"{name}\"}} 5");
    assert!(metrics.lines().any(|known| known == line), "{metrics}");
    let reset = call(&server, "DELETE", "/api/9/http/upstreams/app", "");
    assert_eq!(reset.status, 204);
    let peers = get(&server, "/api/9/http/upstreams?fields=peers");
    assert_eq!(peers["app"]["peers"][0]["requests"], 0);
    assert!(peers["app"].get("zone").is_none());
}
