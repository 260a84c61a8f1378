//! Files of a cache, exchanged between nginx and firstbyte: each serves the files of the other.
//!
//! `FIRSTBYTE_NGINX` is the program of nginx 1.31.4 or later. The servers run one after the other over the same folder, with
//! the same address behind them, which is in the default key. Source: nginx's files, of version 5.

use std::path::{Path, PathBuf};
use std::process::Command;

use firstbyte_tests::backend::{Backend, Step, answer, chunk, send};
use firstbyte_tests::port::Port;
use firstbyte_tests::programs::Program;
use firstbyte_tests::skip::skip;
use firstbyte_tests::wait::{DEADLINE, holds_within};
use firstbyte_tests::{Client, Response, Server, TempDir, fastcgi, peer};

/// Requests, with lines of their own.
const REQUESTS: [(&str, &[&str]); 9] = [
    ("/a", &[]),
    ("/a?b=c", &[]),
    ("/404", &[]),
    ("/302", &[]),
    ("/chunked", &[]),
    ("/empty", &[]),
    ("/large", &[]),
    ("/vary", &["Accept-Language: de"]),
    ("/vary", &["Accept-Language: fr"]),
];

/// Returns the program of nginx, or reports that the test is skipped.
fn nginx() -> Option<PathBuf> {
    let program = std::env::var_os("FIRSTBYTE_NGINX").map(PathBuf::from);
    if program.is_none() {
        skip("FIRSTBYTE_NGINX names no nginx");
    }
    // The server under test is to be the other one.
    program.filter(|_| peer::is_firstbyte())
}

fn backend() -> Backend {
    let fresh = "Cache-Control: max-age=600";
    Backend::answering(move |r| match r.target() {
        "/404" => answer("404 Not Found", &[fresh], "none"),
        "/302" => answer("302 Found", &[fresh, "Location: /a"], ""),
        "/chunked" => {
            let head = format!("HTTP/1.1 200 OK\r\n{fresh}\r\nTransfer-Encoding: chunked\r\n\r\n");
            vec![
                Step::Send(head.into_bytes()),
                Step::Send(b"3\r\nabc\r\n0\r\n\r\n".into()),
            ]
        }
        "/empty" => answer("200 OK", &[fresh], ""),
        "/aged" => answer("200 OK", &[fresh, "Age: 100"], "old"),
        "/large" => answer("200 OK", &[fresh, "ETag: \"large\""], vec![b'x'; 300_000]),
        "/vary" => {
            let language = r.header("Accept-Language").unwrap_or("none");
            answer("200 OK", &[fresh, "Vary: Accept-Language"], language)
        }
        target => {
            let lines = [
                fresh,
                "Content-Type: text/plain",
                "ETag: \"one\"",
                "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT",
                "X-Empty:",
                "X-Bytes: \u{e4}",
            ];
            answer("200 OK", &lines, format!("<{target}>"))
        }
    })
}

/// The first line of both configurations: a worker of one user could not read the files of another one.
fn user() -> &'static str {
    match peer::is_root() {
        true => "user root;",
        false => "",
    }
}

/// The `http` block of both servers; `port` is theirs.
fn http(cache: &Path, pass: &str, port: &str) -> String {
    format!(
        "proxy_cache_path {}/cache levels=1:2 keys_zone=one:1m;
         fastcgi_cache_path {}/fcgi levels=2 keys_zone=two:1m;
         scgi_cache_path {}/scgi keys_zone=three:1m;
         uwsgi_cache_path {}/uwsgi keys_zone=four:1m;
         add_header X-Cache $upstream_cache_status always;
         server {{ listen 127.0.0.1:{port};
             location / {{ {pass} proxy_cache one; proxy_http_version 1.1;
                 fastcgi_cache two; fastcgi_cache_key $uri;
                 scgi_cache three; scgi_cache_key $uri;
                 uwsgi_cache four; uwsgi_cache_key $uri; }} }}",
        cache.display(),
        cache.display(),
        cache.display(),
        cache.display()
    )
}

/// Runs nginx, which is stopped when the program is dropped.
fn start_nginx(program: &Path, cache: &Path, pass: &str) -> (Program, TempDir, Port) {
    let (dir, port) = (TempDir::new(), Port::reserve());
    let place = dir.path().display();
    let temps: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("{name}_temp_path {place}/{name};\n"))
        .collect();
    let http = http(cache, pass, &port.number().to_string());
    dir.write(
        "nginx.conf",
        format!(
            "{} daemon off; master_process off; pid {place}/pid; error_log {place}/log;
             events {{}} http {{ access_log off; {temps} {http} }}",
            user()
        ),
    );
    let mut start = Command::new(program);
    start.args(["-e", "log", "-c", "nginx.conf", "-p"]);
    start.arg(format!("{place}/"));
    let program = Program::start(&dir, "nginx", &mut start).accepting(port.number());
    (program, dir, port)
}

/// Runs the server under test.
fn start_ours(cache: &Path, pass: &str) -> Server {
    let http = http(cache, pass, "%%PORT%%");
    let text = format!(
        "{} daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info; events {{}}
         http {{ access_log off; client_body_temp_path %%DIR%%/body; {http} }}",
        user()
    );
    Server::whole(&text).start()
}

/// Sends all requests and returns the responses without fields that differ between servers and times.
fn responses(port: u16, status: &str) -> Vec<Response> {
    let ask = |(path, lines): &(&str, &[&str])| response(port, path, lines, status);
    REQUESTS.iter().map(ask).collect()
}

/// Sends a request and returns the response without these fields.
#[track_caller]
fn response(port: u16, path: &str, lines: &[&str], status: &str) -> Response {
    let mut answer = Client::connect(port).get_with(path, lines);
    assert_eq!(answer.header("X-Cache"), Some(status), "{path}: {answer:?}");
    // Ranges of all stored responses are a rule of RFC 9111, which nginx does not have.
    let differs = [
        "Accept-Ranges",
        "X-Cache",
        "Server",
        "Date",
        "Connection",
        "Age",
        "Keep-Alive",
    ];
    let of_framing = ["Content-Length", "Transfer-Encoding"];
    let is_left_out = |name: &str| {
        let mut names = differs.iter().chain(&of_framing);
        names.any(|one| one.eq_ignore_ascii_case(name))
    };
    answer.headers.retain(|(name, _)| !is_left_out(name));
    answer.headers.sort();
    answer.chunk_sizes.clear();
    answer
}

/// Waits until a number of files is stored.
#[track_caller]
fn wait_for_files(folder: &Path, count: usize) {
    fn files(folder: &Path) -> usize {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let of_entry = |path: PathBuf| if path.is_dir() { files(&path) } else { 1 };
        entries.map(|entry| of_entry(entry.path())).sum()
    }
    let mut found = 0;
    let are_stored = holds_within(DEADLINE, || {
        found = files(folder);
        found == count
    });
    assert!(are_stored, "{found} files of {count}");
}

#[track_caller]
fn assert_equal(stored: &[Response], served: &[Response]) {
    for (stored, served) in stored.iter().zip(served) {
        assert_eq!(stored.status_line, served.status_line);
        assert_eq!(stored.headers, served.headers);
        assert!(stored.body == served.body, "{}", stored.status_line);
    }
}

#[test]
fn files_of_nginx_are_served() {
    let Some(program) = nginx() else { return };
    let (backend, dir) = (backend(), TempDir::new());
    let pass = format!("proxy_pass http://{};", backend.name());
    let (nginx, _nginx_dir, port) = start_nginx(&program, dir.path(), &pass);
    let stored = responses(port.number(), "MISS");
    wait_for_files(&dir.path().join("cache"), REQUESTS.len());
    drop(nginx);
    let count = backend.request_count();
    let ours = start_ours(dir.path(), &pass);
    assert_equal(&stored, &responses(ours.port(), "HIT"));
    assert_eq!(backend.request_count(), count);
}

/// nginx stores `Age` as a field alone.
#[test]
fn the_age_of_a_file_of_nginx_counts() {
    let Some(program) = nginx() else { return };
    let (backend, dir) = (backend(), TempDir::new());
    let pass = format!("proxy_pass http://{};", backend.name());
    let (nginx, _nginx_dir, port) = start_nginx(&program, dir.path(), &pass);
    response(port.number(), "/aged", &[], "MISS");
    wait_for_files(&dir.path().join("cache"), 1);
    drop(nginx);
    let ours = start_ours(dir.path(), &pass);
    let hit = Client::connect(ours.port()).get("/aged");
    let age = hit.header("Age").and_then(|age| age.parse().ok());
    assert!(
        age.is_some_and(|age: u32| (100..200).contains(&age)),
        "{hit:?}"
    );
    assert_eq!(backend.request_count(), 1);
}

#[test]
fn nginx_serves_our_files() {
    let Some(program) = nginx() else { return };
    let (backend, dir) = (backend(), TempDir::new());
    let pass = format!("proxy_pass http://{};", backend.name());
    let ours = start_ours(dir.path(), &pass);
    let stored = responses(ours.port(), "MISS");
    wait_for_files(&dir.path().join("cache"), REQUESTS.len());
    ours.stop();
    let count = backend.request_count();
    let (nginx, nginx_dir, port) = start_nginx(&program, dir.path(), &pass);
    assert_equal(&stored, &responses(port.number(), "HIT"));
    assert_eq!(backend.request_count(), count);
    drop(nginx);
    let log = nginx_dir.read("log");
    assert!(!log.contains("cache file"), "{log}");
}

/// Statuses of responses that are stored by an explicit time. RFC 6585 forbids that for 428, 429, 431 and 511.
const STATUSES: [u16; 26] = [
    200, 201, 202, 203, 204, 300, 301, 302, 303, 307, 308, 400, 403, 404, 405, 406, 409, 410, 414,
    415, 421, 402, 451, 500, 501, 503,
];
/// Entries of a directory that is exchanged whole.
const ENTRIES: usize = 1000;

/// Returns the path and the languages of an entry: every fifth one is a variant of the one before.
fn entry(number: usize) -> (String, String) {
    let of = match number % 5 {
        4 => number - 1,
        _ => number,
    };
    (
        format!("/entry/{of}"),
        format!("Accept-Language: l{number}"),
    )
}

/// A server of entries with all statuses and forms of heads.
fn entries() -> Backend {
    Backend::answering(|r| {
        let number = r.target().rsplit('/').next().and_then(|n| n.parse().ok());
        let number: usize = number.unwrap_or(0);
        let status = STATUSES[number % STATUSES.len()];
        let language = r.header("Accept-Language").unwrap_or("none");
        let body = match status {
            204 => String::new(),
            _ => format!("<{number} {language}>").repeat(number * 7 % 400),
        };
        let mut lines = vec!["Cache-Control: max-age=600".to_owned()];
        match number % 4 {
            0 => lines.push(format!("ETag: \"{number}\"")),
            1 => lines.push(format!("ETag: W/\"{number}\"")),
            2 => lines.push("Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT".to_owned()),
            _ => lines.push("Content-Type: text/x-own; charset=utf-8".to_owned()),
        }
        match number % 5 {
            3 => lines.push("Vary: Accept-Language".to_owned()),
            2 => lines.push("Vary: Accept-Encoding, accept-language".to_owned()),
            _ => {}
        }
        if matches!(status, 301..=308) {
            lines.push(format!("Location: /to/{number}"));
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        if !number.is_multiple_of(3) || status == 204 {
            return answer(&format!("{status} Own {number}"), &lines, body);
        }
        let head = format!(
            "HTTP/1.1 {status} Own\r\n{}\r\nTransfer-Encoding: chunked\r\n\r\n",
            lines.join("\r\n")
        );
        let mut steps = vec![send(head)];
        if !body.is_empty() {
            steps.push(chunk(&body));
        }
        steps.push(chunk(""));
        steps
    })
}

/// A whole directory is exchanged in each direction: each entry is a hit with the same response.
#[test]
fn directories_are_exchanged_entry_for_entry() {
    let Some(program) = nginx() else { return };
    for nginx_first in [true, false] {
        let (backend, dir) = (entries(), TempDir::new());
        let pass = format!("proxy_pass http://{};", backend.name());
        let ask = |port: u16, status: &str| -> Vec<Response> {
            let of_entry = |number| {
                let (path, language) = entry(number);
                response(port, &path, &[&language], status)
            };
            let all = (0..ENTRIES).map(of_entry).collect();
            wait_for_files(&dir.path().join("cache"), ENTRIES);
            all
        };
        let by_nginx = |status: &str| {
            let (_nginx, _dir, port) = start_nginx(&program, dir.path(), &pass);
            ask(port.number(), status)
        };
        let by_us = |status: &str| {
            let ours = start_ours(dir.path(), &pass);
            ask(ours.port(), status)
        };
        let (stored, served) = match nginx_first {
            true => (by_nginx("MISS"), by_us("HIT")),
            false => (by_us("MISS"), by_nginx("HIT")),
        };
        assert_equal(&stored, &served);
        assert_eq!(backend.request_count(), ENTRIES);
    }
}

/// Heads of SCGI and uwsgi are stored without `Status`, which nginx would send to clients of uwsgi.
#[test]
fn files_of_scgi_and_uwsgi_are_exchanged() {
    let Some(program) = nginx() else { return };
    for protocol in ["scgi", "uwsgi"] {
        for nginx_first in [true, false] {
            let backend = Backend::scripted(|_| {
                let head = "HTTP/1.1 404 Nothing\r\nCache-Control: max-age=600\r\nX-Own: y\r\n\r\n";
                // The last field of the request.
                let host = Step::Until(b"localhost".into());
                vec![host, send(head), send("page"), Step::Close]
            });
            let dir = TempDir::new();
            let pass = format!("{protocol}_pass {};", backend.name());
            let ask = |port: u16, status: &str| {
                let answer = Client::connect(port).get("/a");
                assert_eq!(answer.header("X-Cache"), Some(status), "{answer:?}");
                assert_eq!(answer.status_line, "HTTP/1.1 404 Nothing");
                assert_eq!(answer.text(), "page");
                assert_eq!(answer.header("X-Own"), Some("y"));
                assert_eq!(answer.header("Status"), None, "{protocol} {nginx_first}");
                wait_for_files(&dir.path().join(protocol), 1);
            };
            let by_nginx = |status: &str| {
                let (_nginx, _dir, port) = start_nginx(&program, dir.path(), &pass);
                ask(port.number(), status);
            };
            let by_us = |status: &str| ask(start_ours(dir.path(), &pass).port(), status);
            match nginx_first {
                true => {
                    by_nginx("MISS");
                    by_us("HIT");
                }
                false => {
                    by_us("MISS");
                    by_nginx("HIT");
                }
            }
            assert_eq!(backend.accepted(), 1);
        }
    }
}

/// Heads of FastCGI are stored with their records.
#[test]
fn files_of_fastcgi_are_exchanged() {
    let Some(program) = nginx() else { return };
    for nginx_first in [true, false] {
        let backend = Backend::scripted(|_| {
            let head = "Status: 404 Nothing\r\nCache-Control: max-age=600\r\nX-Own: y\r\n\r\n";
            vec![
                fastcgi::request(),
                fastcgi::stdout(head),
                fastcgi::stdout("page"),
                fastcgi::end(),
                // nginx waits for it without `fastcgi_keep_conn`.
                Step::Close,
            ]
        });
        let dir = TempDir::new();
        let pass = format!("fastcgi_pass {};", backend.name());
        let ask = |port: u16, status: &str| {
            let answer = Client::connect(port).get("/a");
            assert_eq!(answer.header("X-Cache"), Some(status), "{answer:?}");
            assert_eq!((answer.status, answer.text().as_str()), (404, "page"));
            assert_eq!(answer.header("X-Own"), Some("y"));
            assert_eq!(answer.header("Status"), None);
        };
        let by_nginx = |status: &str| {
            let (_nginx, _dir, port) = start_nginx(&program, dir.path(), &pass);
            ask(port.number(), status);
            wait_for_files(&dir.path().join("fcgi"), 1);
        };
        let by_us = |status: &str| {
            let ours = start_ours(dir.path(), &pass);
            ask(ours.port(), status);
            wait_for_files(&dir.path().join("fcgi"), 1);
        };
        match nginx_first {
            true => {
                by_nginx("MISS");
                by_us("HIT");
            }
            false => {
                by_us("MISS");
                by_nginx("HIT");
            }
        }
        assert_eq!(backend.accepted(), 1);
    }
}
