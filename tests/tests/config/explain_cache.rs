//! `firstbyte explain` of requests with a cache: zone, key, and the reason why a stored response answers them or does not.

use std::fs;

use firstbyte_tests::backend::{Backend, answer};
use firstbyte_tests::client::request;
use firstbyte_tests::explain::explain_report;
use firstbyte_tests::{Server, peer, wait_until};

/// The texts of the steps of the cache.
#[track_caller]
fn steps(server: &Server, words: &[&str]) -> Vec<String> {
    let report = explain_report(server, words);
    let steps = report["steps"].as_array().expect("a list").iter();
    let of_cache = steps.filter(|step| step["step"] == "cache");
    let text = |step: &serde_json::Value| step["text"].as_str().expect("text").to_owned();
    of_cache.map(text).collect()
}

#[test]
fn a_request_without_a_stored_response_has_its_reason() {
    if !peer::is_firstbyte() {
        return;
    }
    let http = "proxy_cache_path %%DIR%%/cache levels=1:2 keys_zone=one:1m;\n\
                server {\nlisten 127.0.0.1:%%PORT%%;\nserver_name localhost;\n\
                location / {\nproxy_pass http://127.0.0.1:9;\nproxy_cache one;\n\
                proxy_cache_bypass $arg_pass;\nproxy_cache_purge $arg_purge;\n\
                proxy_cache_key $host$uri;\n}\n\
                location /plain { proxy_pass http://127.0.0.1:9; }\n\
                location /off { proxy_pass http://127.0.0.1:9; proxy_cache $arg_zone; }\n}";
    let server = Server::http(http).written();
    let absent = steps(&server, &["http://localhost:%%PORT%%/a"]);
    assert!(
        absent[1].starts_with("does not answer: its directory"),
        "{absent:?}"
    );
    fs::create_dir(server.path("cache")).expect("the test's directory is writable");
    let url = |path: &str| format!("http://localhost:%%PORT%%{path}");
    let key = "zone one, key \"localhost/a\"";
    for (path, words, expected) in [
        (
            "/a",
            &[][..],
            &[key, "does not answer: no response is stored"][..],
        ),
        (
            "/a?pass=1",
            &[],
            &[key, "does not answer: a condition of cache_bypass is true"],
        ),
        (
            "/a",
            &["--method", "OPTIONS"],
            &["not used: the method OPTIONS is not cached"],
        ),
        (
            "/a",
            &["--method", "POST"],
            &[
                key,
                "not used: a successful POST removes the stored response",
            ],
        ),
        ("/a?purge=1", &[], &[key, "purges the entries of the key"]),
        ("/plain", &[], &["not used: the location has no cache"]),
        (
            "/off",
            &[],
            &["not used: the name of its zone is empty or off"],
        ),
    ] {
        let url = url(path);
        let mut all = vec![url.as_str()];
        all.extend(words);
        assert_eq!(steps(&server, &all), expected, "{path} {words:?}");
    }
}

#[test]
fn a_stored_response_is_the_answer() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = Backend::answering(|r| match r.target() {
        "/vary" => answer("200 OK", &["Cache-Control: max-age=60", "Vary: X"], "vary"),
        _ => answer("200 OK", &["Cache-Control: max-age=60"], "whole"),
    });
    let name = backend.name();
    let server = Server::http(&format!(
        "proxy_cache_path %%DIR%%/cache keys_zone=one:1m;\n\
         server {{ listen 127.0.0.1:%%PORT%%; server_name localhost;\n\
         location / {{ proxy_pass http://{name}; proxy_cache one; proxy_cache_key $uri;\n\
         proxy_cache_purge $arg_purge; }} }}"
    ))
    .start();
    let stored = || {
        let names = fs::read_dir(server.path("cache")).into_iter().flatten();
        let names = names.flatten().map(|entry| entry.file_name());
        names.filter(|name| name.len() == 32).count()
    };
    let mut client = server.client();
    client.send(request("GET", "/a", &[]));
    client.response();
    client.send(request("GET", "/vary", &["X: 1"]));
    client.response();
    wait_until("both are stored", || stored() == 2);
    let url = |path: &str| format!("http://localhost:%%PORT%%{path}");
    let hit = steps(&server, &[&url("/a")]);
    let key = "zone one, key \"/a\"";
    assert_eq!(hit, [key, "answers with the stored response: HIT"]);
    let report = explain_report(&server, &[&url("/a")]);
    assert_eq!(report["answer"]["status"], 200, "{report:#}");
    assert!(report["passed"].is_null());
    for (path, field, reason) in [
        (
            "/vary",
            "X: 2",
            "no stored response has the fields of the request",
        ),
        (
            "/a",
            "Cache-Control: no-cache",
            "Cache-Control of the request excludes the stored response",
        ),
    ] {
        let found = steps(&server, &[&url(path), "-H", field]);
        assert_eq!(found[1], format!("does not answer: {reason}"), "{path}");
    }
    // Nothing is removed for a report.
    steps(&server, &[&url("/a?purge=1")]);
    assert_eq!(stored(), 2);
    assert_eq!(backend.request_count(), 2);
}
