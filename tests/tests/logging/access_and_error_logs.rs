//! The access log and the error log: formats, escaping, buffers, conditions, levels, reopening.
//!
//! Source: nginx's documentation of ngx_http_log_module and of `error_log`.

use std::io::Write;
use std::process::{Command, Stdio};

use firstbyte_tests::client::request;
use firstbyte_tests::dir::set_mode;
use firstbyte_tests::{Builder, H2Client, Server, Signal, peer, wait_until};

fn site(http: &str, locations: &str) -> Builder {
    let text = format!(
        "{http} keepalive_requests 1000000; server {{ listen 127.0.0.1:%%PORT%%; server_name localhost; root %%DIR%%/html;
                          location / {{ return 200 ok; }} {locations} }}"
    );
    Server::http(&text).file("html/t.txt", "text")
}

/// The log's lines once it has `count` of them.
#[track_caller]
fn lines(server: &Server, file: &str, count: usize) -> Vec<String> {
    wait_until(&format!("{file} has {count} lines"), || {
        server.dir().read(file).lines().count() >= count
    });
    server.dir().read(file).lines().map(str::to_owned).collect()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[test]
fn combined_is_the_default_format() {
    let server = site("access_log %%DIR%%/a.log;", "").start();
    server
        .client()
        .get_with("/x?y=1", &["User-Agent: agent \"q\"", "Referer: http://r/"]);
    let line = lines(&server, "a.log", 1).remove(0);
    let (head, tail) = line.split_once('[').expect("the time is in brackets");
    assert_eq!(head, "127.0.0.1 - - ");
    let (time, rest) = tail.split_once("] ").expect("the time is in brackets");
    assert_eq!(
        rest,
        "\"GET /x?y=1 HTTP/1.1\" 200 2 \"http://r/\" \"agent \\x22q\\x22\""
    );
    let shape: String = time
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert!(
        shape.starts_with("00/") && shape.ends_with("/0000:00:00:00 +0000"),
        "{time}"
    );
}

#[test]
fn a_variable_of_a_format_ends_with_its_word() {
    let server = site(
        "log_format w '$status' 'abc' '$uri' x \"${arg_a}\" $status y; access_log %%DIR%%/w.log w;",
        "",
    )
    .start();
    server.client().get("/x?a=1");
    assert_eq!(lines(&server, "w.log", 1), ["200abc/xx1200y"]);
}

#[test]
fn escape_chooses_how_values_are_written() {
    let server = site(
        "log_format d '[$arg_none] $http_x';
         log_format j escape=json '{\"none\":\"$arg_none\",\"x\":\"$http_x\"}';
         log_format n escape=none '[$arg_none] $http_x';
         access_log %%DIR%%/d.log d; access_log %%DIR%%/j.log j; access_log %%DIR%%/n.log n;",
        "",
    )
    .start();
    let mut client = server.client();
    let value = "a\"b\\c\td\u{e9}";
    client.send(request("GET", "/", &[&format!("X: {value}")]));
    client.response();
    assert_eq!(
        lines(&server, "d.log", 1),
        ["[-] a\\x22b\\x5Cc\\x09d\\xC3\\xA9"]
    );
    assert_eq!(
        lines(&server, "j.log", 1),
        ["{\"none\":\"\",\"x\":\"a\\\"b\\\\c\\td\u{e9}\"}"]
    );
    assert_eq!(lines(&server, "n.log", 1), [format!("[] {value}")]);
}

#[test]
fn control_bytes_from_a_path_are_escaped_in_the_access_log() {
    let server = site(
        "log_format d '$uri'; log_format j escape=json '$uri'; access_log %%DIR%%/d.log d; access_log %%DIR%%/j.log j;",
        "",
    )
    .start();
    server.get("/%1b[31m%0a%0d%7f%22%5c");
    assert_eq!(
        lines(&server, "d.log", 1),
        ["/\\x1B[31m\\x0A\\x0D\\x7F\\x22\\x5C"]
    );
    assert_eq!(
        lines(&server, "j.log", 1),
        ["/\\u001B[31m\\n\\r\u{7f}\\\"\\\\"]
    );
}

#[test]
fn control_bytes_are_escaped_in_the_error_log() {
    let server = site("", "location /files/ { alias %%DIR%%/html/; }").start();
    server.get("/files/%1b[31m%0aforged%0dline%07%7f");
    let log = server.wait_for_text("error.log", "forged");
    assert!(
        log.contains("failed (2: No such file or directory)"),
        "{log}"
    );
    if peer::is_firstbyte() {
        assert!(
            !log.contains(['\u{1b}', '\r', '\u{7}', '\u{7f}']),
            "{log:?}"
        );
        assert!(log.lines().all(|line| !line.starts_with("forged")), "{log}");
    }
    let mut client = server.client();
    client
        .send("GET /files/x HTTP/1.1\r\nHost: localhost\r\nReferer: a\"b\u{e9}\r\n\r\n")
        .response();
    server.wait_for_text("error.log", "referrer: \"a");
}

#[test]
fn several_logs_each_with_its_condition() {
    let server = site(
        "log_format u '$uri'; access_log %%DIR%%/all.log u; access_log %%DIR%%/some.log u if=$arg_log;",
        "location /off/ { access_log off; return 200 off; }
         location /own/ { access_log %%DIR%%/own.log u; return 200 own; }",
    )
    .start();
    let mut client = server.client();
    for path in [
        "/a",
        "/b?log=1",
        "/c?log=0",
        "/d?log=",
        "/off/x",
        "/own/x",
        "/e?log=yes",
    ] {
        client.get(path);
    }
    assert_eq!(lines(&server, "all.log", 5), ["/a", "/b", "/c", "/d", "/e"]);
    assert_eq!(lines(&server, "some.log", 2), ["/b", "/e"]);
    assert_eq!(lines(&server, "own.log", 1), ["/own/x"]);
}

#[test]
fn a_buffered_log_is_written_when_full_when_flushed_and_at_the_end() {
    let server = site(
        "log_format u '$uri';",
        "location /full/ { access_log %%DIR%%/full.log u buffer=64; return 200 ok; }
         location /flush/ { access_log %%DIR%%/flush.log u buffer=64k flush=100ms; return 200 ok; }
         location /end/ { access_log %%DIR%%/end.log u buffer=64k; return 200 ok; }",
    )
    .start();
    let mut client = server.client();
    client.get("/end/only");
    client.get("/flush/a");
    assert_eq!(lines(&server, "flush.log", 1), ["/flush/a"]);
    for n in 0..20 {
        client.get(&format!("/full/{n:02}"));
    }
    assert!(
        lines(&server, "full.log", 10).len() < 20,
        "the last ones wait in the buffer"
    );
    assert_eq!(
        server.dir().read("end.log"),
        "",
        "one line does not fill 64k"
    );
    drop(client);
    server.signal(Signal::USR1);
    assert_eq!(
        lines(&server, "end.log", 1),
        ["/end/only"],
        "reopening flushes"
    );
    assert_eq!(lines(&server, "full.log", 20).len(), 20);
}

#[test]
fn a_buffer_is_not_lost_when_the_server_ends() {
    let mut server = site(
        "log_format u '$uri'; access_log %%DIR%%/end.log u buffer=64k;",
        "",
    )
    .start();
    server.get("/last");
    server.signal(Signal::QUIT);
    assert_eq!(server.wait_for_exit(), 0);
    assert_eq!(server.dir().read("end.log"), "/last\n");
}

#[test]
fn a_compressed_log_is_a_gzip_file() {
    let mut server = site(
        "log_format u '$uri'; access_log %%DIR%%/a.log.gz u gzip=6 flush=5m;",
        "",
    )
    .start();
    for n in 0..100 {
        server.get(&format!("/{n}"));
    }
    server.signal(Signal::QUIT);
    assert_eq!(server.wait_for_exit(), 0);
    let packed = std::fs::read(server.path("a.log.gz")).expect("the log was written");
    assert!(
        packed.len() < 400,
        "it is compressed: {} bytes",
        packed.len()
    );
    let mut gzip = Command::new("gzip")
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gzip runs");
    gzip.stdin
        .take()
        .expect("it was piped")
        .write_all(&packed)
        .expect("gzip reads");
    let output = gzip.wait_with_output().expect("gzip ends");
    let wanted: String = (0..100).map(|n| format!("/{n}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&output.stdout), wanted);
}

#[test]
fn variables_in_the_path_choose_the_file() {
    let server = site(
        "log_format u '$uri'; access_log %%DIR%%/logs/$arg_to.log u; open_log_file_cache max=4;",
        "",
    )
    .file("logs/keep", "")
    .prepare(|dir| set_mode(&dir.join("logs"), 0o777))
    .start();
    let mut client = server.client();
    for path in ["/1?to=a", "/2?to=b", "/3?to=a", "/4?to=none/such"] {
        client.get(path);
    }
    assert_eq!(lines(&server, "logs/a.log", 2), ["/1", "/3"]);
    assert_eq!(lines(&server, "logs/b.log", 1), ["/2"]);
    server.wait_for_text(
        "error.log",
        "none/such.log\" failed (2: No such file or directory)",
    );
}

#[test]
fn variables_of_the_log_have_their_shapes() {
    let server = site(
        "log_format v '$status $body_bytes_sent $bytes_sent $request_length $request_time $msec $pipe $connection $connection_requests $time_iso8601 $sent_http_content_type';
         access_log %%DIR%%/v.log v;",
        "",
    )
    .start();
    let mut client = server.client();
    let text = request("GET", "/x", &[]);
    client.send(&text);
    let answer = client.response();
    client.send(text.repeat(2));
    client.response();
    client.response();
    let all = lines(&server, "v.log", 3);
    let first: Vec<&str> = all[0].split(' ').collect();
    assert_eq!(first[..2], ["200", "2"]);
    let head: usize = answer
        .headers
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4)
        .sum();
    let whole = answer.status_line.len() + 2 + head + 2 + 2;
    assert_eq!(first[2], whole.to_string(), "head and body");
    assert_eq!(first[3], text.len().to_string());
    let (seconds, millis) = first[4].split_once('.').expect("seconds with a fraction");
    assert!(
        is_digits(seconds) && is_digits(millis) && millis.len() == 3,
        "{}",
        first[4]
    );
    assert!(
        first[5]
            .split_once('.')
            .is_some_and(|(s, ms)| s.len() >= 10 && ms.len() == 3),
        "{}",
        first[5]
    );
    assert_eq!((first[6], first[8]), (".", "1"));
    assert!(is_digits(first[7]));
    assert!(
        first[9].len() == 25 && first[9].contains('T'),
        "{}",
        first[9]
    );
    assert_eq!(first[10], "text/plain");
    let piped: Vec<&str> = all
        .iter()
        .map(|line| line.split(' ').nth(6).unwrap_or_default())
        .collect();
    assert!(
        piped[2] == "p" || piped[1] == "p",
        "one of two sent at once was pipelined: {piped:?}"
    );
}

#[test]
fn error_lines_carry_their_context() {
    let server = site("", "location /files/ { alias %%DIR%%/html/; }").start();
    server.client().get_with(
        "/files/none?q",
        &["Host: localhost:1", "Referer: http://r/"],
    );
    let log = server.wait_for_text("error.log", "[error]");
    let line = log
        .lines()
        .find(|line| line.contains("[error]"))
        .unwrap_or_default();
    let dir = server.dir().path().display();
    let tail = format!(
        "open() \"{dir}/html/none\" failed (2: No such file or directory), client: 127.0.0.1, server: localhost, \
         request: \"GET /files/none?q HTTP/1.1\", host: \"localhost:1\", referrer: \"http://r/\""
    );
    assert!(line.ends_with(&tail), "{line}\n{tail}");
    let head = line.strip_suffix(tail.as_str()).unwrap_or_default();
    let shape: String = head
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert!(shape.starts_with("0000/00/00 00:00:00 [error] 0"), "{head}");
    let (ids, number) = head
        .rsplit_once("] ")
        .and_then(|(_, r)| r.trim().split_once(": *"))
        .unwrap_or_default();
    assert!(ids.split('#').all(is_digits) && is_digits(number), "{head}");
}

#[test]
fn error_log_levels_filter_and_places_override() {
    let server = Server::http_with(
        "error_log %%DIR%%/main.log notice;",
        "log_format u '$uri'; access_log off;
         server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; error_log %%DIR%%/error.log warn; error_log %%DIR%%/crit.log crit;
             location /own/ { error_log %%DIR%%/own.log error; }
             location /quiet/ { error_log %%DIR%%/own.log crit; }
             location /silent/ { log_not_found off; } }",
    )
    .file("html/t.txt", "text")
    .start();
    let mut client = server.client();
    for path in ["/quiet/none", "/silent/none", "/own/none", "/first"] {
        assert_eq!(client.get(path).status, 404);
    }
    let log = server.wait_for_text("error.log", "html/first\" failed");
    assert!(
        !log.contains("[notice]") && !log.contains("/own/") && !log.contains("/silent/"),
        "{log}"
    );
    let own = server.dir().read("own.log");
    assert!(
        own.contains("/own/none") && !own.contains("/quiet/"),
        "{own}"
    );
    assert_eq!(server.dir().read("crit.log"), "");
    assert!(server.dir().read("main.log").contains("[notice]"));
    drop(client);
}

#[test]
fn usr1_reopens_every_log_after_a_rename() {
    let server = site(
        "log_format u '$uri'; access_log %%DIR%%/a.log u;",
        "location /files/ { alias %%DIR%%/html/; }",
    )
    .start();
    let mut client = server.client();
    client.get("/files/before");
    lines(&server, "a.log", 1);
    for name in ["a.log", "error.log"] {
        std::fs::rename(server.path(name), server.path(&format!("{name}.1")))
            .expect("the log is there");
    }
    client.get("/files/between");
    assert_eq!(
        lines(&server, "a.log.1", 2),
        ["/files/before", "/files/between"],
        "still the renamed file"
    );
    server.signal(Signal::USR1);
    wait_until("the new files are there", || {
        server.path("a.log").exists() && server.path("error.log").exists()
    });
    wait_until("and written to", || {
        client.get("/files/after");
        server.dir().read("a.log").contains("/files/after")
            && server.error_log().contains("/files/after")
    });
    assert!(!server.dir().read("a.log").contains("/files/before"));
    assert_eq!(server.workers().len(), 1, "the same worker goes on");
}

#[test]
fn lines_buffered_before_usr1_go_to_the_old_file() {
    let server = Server::http_with(
        "worker_processes 4;",
        "log_format u '$uri'; access_log %%DIR%%/a.log u buffer=64k;
         server { listen 127.0.0.1:%%PORT%%; location / { return 200 ok; } }",
    )
    .start();
    for round in 0..5 {
        let old = format!("a.log.{round}");
        for n in 0..20 {
            server.get(&format!("/{round}/{n}"));
        }
        std::fs::rename(server.path("a.log"), server.path(&old)).expect("the log is there");
        server.signal(Signal::USR1);
        let log = lines(&server, &old, 20);
        assert_eq!(log.len(), 20);
        assert!(
            log.iter()
                .all(|line| line.starts_with(&format!("/{round}/")))
        );
        wait_until("the new file is there", || server.path("a.log").exists());
        assert_eq!(server.dir().read("a.log"), "");
    }
}

/// nginx: a question mark at the end of a URI begins no arguments.
#[test]
fn a_bare_question_mark_is_no_argument() {
    let server = Server::http(
        "log_format f '[$args][$query_string][$is_args][$request_uri]'; access_log %%DIR%%/args.log f;
         server { listen 127.0.0.1:%%PORT%%; http2 on;
             location /rewritten { rewrite ^ /to; }
             location / { return 200 '$args$is_args$uri$is_args$args'; } }",
    )
    .start();
    let expected = [
        ("/a", "/a", "[-][-][][/a]"),
        ("/a?", "/a", "[-][-][][/a?]"),
        ("/rewritten?", "/to", "[-][-][][/rewritten?]"),
        ("/a??", "??/a??", "[?][?][?][/a??]"),
        ("/a?x=", "x=?/a?x=", "[x=][x=][?][/a?x=]"),
    ];
    let mut http2 = H2Client::connect(server.port());
    for (target, body, _) in expected {
        assert_eq!(server.get(target).text(), body, "{target}");
        assert_eq!(http2.fetch(target).text(), body, "{target} over HTTP/2");
    }
    let logged = lines(&server, "args.log", 2 * expected.len());
    let wanted = expected.iter().flat_map(|(.., line)| [*line; 2]);
    assert_eq!(logged, wanted.collect::<Vec<_>>());
}
