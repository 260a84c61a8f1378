//! A server with a cache in front of a scripted one, and the files of that cache.
//!
//! `$upstream_cache_status` is in the field `X-Cache` of each response. A response is stored after its client has it, so
//! tests wait for its file. Absent: tests.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use firstbyte_tests::backend::{Backend, answer};
use firstbyte_tests::client::request;
use firstbyte_tests::{Builder, Client, Response, Server, wait_until};

/// Lines of a response that is fresh for a minute.
pub(crate) const MINUTE: &[&str] = &["Cache-Control: max-age=60"];
/// Lines of a response that is fresh for a second, the shortest time.
pub(crate) const SECOND: &[&str] = &["Cache-Control: max-age=1"];

/// Numbers the targets of [`assert_not_stored`].
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Makes a server with a cache in `cache` of its folder; `directives` are in the location `/`.
pub(crate) fn cached(backend: &Backend, directives: &str) -> Builder {
    cached_with("", backend, directives)
}

/// Like [`cached`], with `http` in front of the `server` block.
pub(crate) fn cached_with(http: &str, backend: &Backend, directives: &str) -> Builder {
    let pass = backend.name();
    Server::http_with(
        "worker_processes 2;",
        &format!(
            "proxy_cache_path %%DIR%%/cache levels=1:2 keys_zone=one:1m;
             add_header X-Cache $upstream_cache_status always; {http}
             server {{ listen 127.0.0.1:%%PORT%%; http2 on;
                 location / {{ proxy_pass http://{pass}; proxy_cache one; {directives} }}
                 location = /plain {{ return 204; }}
                 location = /requests {{ stub_status; }} }}"
        ),
    )
}

/// Like [`cached`], for thousands of connections.
pub(crate) fn cached_for_many(backend: &Backend, directives: &str) -> Builder {
    let pass = backend.name();
    let temps = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temps = temps.map(|name| format!("{name}_temp_path %%DIR%%/{name};"));
    Server::whole(&format!(
        "%%USER%%
         daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info;
         worker_processes 2; worker_rlimit_nofile 10000; events {{ worker_connections 4096; }}
         http {{ access_log off; {}
             proxy_cache_path %%DIR%%/cache levels=1:2 keys_zone=one:16m;
             add_header X-Cache $upstream_cache_status always;
             server {{ listen 127.0.0.1:%%PORT%% backlog=4096;
                 location / {{ proxy_pass http://{pass}; proxy_cache one;
                     proxy_http_version 1.1; {directives} }}
                 location = /requests {{ stub_status; }} }} }}",
        temps.concat()
    ))
}

/// A backend that answers each request with its target and its number, such as `</a 1>`, with these lines.
pub(crate) fn numbered(lines: &'static [&'static str]) -> Backend {
    let count = AtomicUsize::new(0);
    Backend::answering(move |r| {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        answer("200 OK", lines, format!("<{} {number}>", r.target()))
    })
}

/// Returns the status of the cache for a response; empty if the request did not use the cache.
pub(crate) fn status_of(answer: &Response) -> &str {
    answer.header("X-Cache").unwrap_or_default()
}

/// Sends a GET and asserts the status of the cache.
#[track_caller]
pub(crate) fn get(server: &Server, path: &str, status: &str) -> Response {
    get_with(server, path, &[], status)
}

/// Sends a GET with further lines and asserts the status of the cache.
#[track_caller]
pub(crate) fn get_with(server: &Server, path: &str, lines: &[&str], status: &str) -> Response {
    let answer = server.client().get_with(path, lines);
    assert_eq!(status_of(&answer), status, "{path} {lines:?}: {answer:?}");
    answer
}

/// Sends a GET for an absent entry, and waits until the response is stored.
#[track_caller]
pub(crate) fn fill(server: &Server, path: &str) -> Response {
    fill_with(server, path, &[])
}

/// Like [`fill`], with further lines.
#[track_caller]
pub(crate) fn fill_with(server: &Server, path: &str, lines: &[&str]) -> Response {
    let answer = get_with(server, path, lines, "MISS");
    wait_for_stored(server, &answer.text());
    answer
}

/// Waits until a file of the cache ends with these bytes.
#[track_caller]
pub(crate) fn wait_for_stored(server: &Server, body: &str) {
    wait_until(&format!("{body:?} is stored"), || is_stored(server, body));
}

/// Whether a file of the cache ends with these bytes.
pub(crate) fn is_stored(server: &Server, body: &str) -> bool {
    file_of(server, body).is_some()
}

/// Returns the file of the cache that ends with these bytes.
pub(crate) fn file_of(server: &Server, body: &str) -> Option<PathBuf> {
    let mut files = files(server).into_iter();
    files.find(|path| fs::read(path).is_ok_and(|bytes| bytes.ends_with(body.as_bytes())))
}

/// Returns the paths of all stored responses.
pub(crate) fn files(server: &Server) -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![server.path("cache")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                files.push(path);
            }
        }
    }
    files
}

/// The file of the only stored response.
#[track_caller]
pub(crate) fn only_file(server: &Server) -> PathBuf {
    let mut files = files(server);
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

/// Asserts that no response for a path is stored, after a response that was requested later is stored.
#[track_caller]
pub(crate) fn assert_not_stored(server: &Server, path: &str, lines: &[&str]) {
    let ask = || {
        let mut client = server.client();
        client.send(request("GET", path, lines));
        // It may be cut.
        client.try_response().ok().flatten().unwrap_or_default()
    };
    let first = ask();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    fill(server, &format!("/stored/later/{number}"));
    let second = ask();
    for answer in [&first, &second] {
        assert_ne!(status_of(answer), "HIT", "{path}");
    }
    let stored = files(server).into_iter().flat_map(fs::read);
    let key = format!("{path}\n");
    let is_of_path = |bytes: &Vec<u8>| {
        let mut parts = bytes.windows(key.len());
        parts.any(|part| part == key.as_bytes())
    };
    let mut of_path = stored.filter(is_of_path);
    assert!(of_path.next().is_none(), "{path}");
}

/// Waits until this many requests are in progress, besides the one that counts them.
#[track_caller]
pub(crate) fn wait_for_requests(server: &Server, count: usize) {
    wait_until(&format!("{count} requests are in progress"), || {
        let text = server.get("/requests").text();
        let writing = text.split("Writing: ").nth(1);
        let number = writing.and_then(|rest| rest.split(' ').next()?.parse().ok());
        number.is_some_and(|number: usize| number > count)
    });
}

/// Sends requests until one of them is the `count`th of the backend, and returns its client.
#[track_caller]
pub(crate) fn sent_on(server: &Server, backend: &Backend, path: &str, count: usize) -> Client {
    let mut found = None;
    wait_until("a request is sent to the server", || {
        let mut client = server.client();
        client.send(request("GET", path, &[]));
        wait_until("it is answered or sent on", || {
            backend.request_count() == count || client.has_bytes_within(Duration::from_millis(1))
        });
        found = (backend.request_count() == count).then_some(client);
        found.is_some()
    });
    found.expect("it was found")
}

/// Requests a path until the cache has this status for it, and returns that response.
#[track_caller]
pub(crate) fn get_until(server: &Server, path: &str, status: &str) -> Response {
    let mut found = None;
    wait_until(&format!("{path} is {status}"), || {
        let answer = server.get(path);
        found = (status_of(&answer) == status).then_some(answer);
        found.is_some()
    });
    found.expect("it was found")
}
