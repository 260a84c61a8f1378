//! Compressed responses, read by the commands people have: `gzip`, `brotli`, `zstd`, `curl --compressed`.
//!
//! Source: nginx's documentation of ngx_http_gzip_module, ngx_http_gzip_static_module, ngx_http_gunzip_module and
//! ngx_http_sub_module.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use firstbyte_tests::{Builder, Client, H2Client, Response, Server, peer, wait_until};

const TYPES: &str =
    "types { text/html html; text/plain txt; } default_type application/octet-stream;";

fn site(settings: &str) -> Builder {
    Server::http(&format!(
        "{TYPES} keepalive_requests 1000000;
         server {{ listen 127.0.0.1:%%PORT%%; server_name localhost; root %%DIR%%/html; {settings} }}"
    ))
}

fn text(len: usize) -> String {
    let mut text = String::new();
    for n in (0_u64..).map(|n| n * 7919 % 999_983) {
        if text.len() >= len {
            break;
        }
        text.push_str(&format!("<p>{n:06} the quick brown fox</p>\n"));
    }
    text.truncate(len);
    text
}

/// Output of a command for these bytes.
fn piped(command: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let child = Command::new(command)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.unwrap_or_else(|e| panic!("{command}: {e}; .ci/setup installs it"));
    let mut stdin = child.stdin.take().expect("it is piped");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("it was started");
    let written = writer.join().expect("writing does not panic");
    assert!(output.status.success(), "{command} refuses it");
    written.expect("it reads all");
    output.stdout
}

fn decoded(answer: &Response) -> Vec<u8> {
    match answer.header("Content-Encoding") {
        Some("gzip") => piped("gzip", &["-dc"], &answer.body),
        Some("br") => piped("brotli", &["-dc"], &answer.body),
        Some("zstd") => piped("zstd", &["-dcq"], &answer.body),
        other => panic!("an unknown coding: {other:?}"),
    }
}

fn accepting(client: &mut Client, path: &str, accept: &str) -> Response {
    client.get_with(path, &[&format!("Accept-Encoding: {accept}")])
}

/// The codings of the server under test.
fn codings() -> &'static [&'static str] {
    if peer::is_firstbyte() {
        &["gzip", "br", "zstd"]
    } else {
        &["gzip"]
    }
}

fn all_on() -> &'static str {
    if peer::is_firstbyte() {
        "gzip on; brotli on; zstd on; gzip_types text/plain; brotli_types text/plain; zstd_types text/plain;"
    } else {
        "gzip on; gzip_vary on; gzip_types text/plain;"
    }
}

#[test]
fn the_commands_read_what_is_sent() {
    let sizes = [20, 1000, 100_000, 3_000_000];
    let mut builder = site(all_on());
    for size in sizes {
        builder = builder.file(&format!("html/{size}.txt"), &text(size));
    }
    let server = builder.start();
    let mut client = server.client();
    for size in sizes {
        for coding in codings() {
            let answer = accepting(&mut client, &format!("/{size}.txt"), coding);
            assert_eq!(answer.status, 200);
            assert_eq!(answer.header("Content-Encoding"), Some(*coding));
            assert_eq!(answer.header("Vary"), Some("Accept-Encoding"));
            assert!(decoded(&answer) == text(size).as_bytes(), "{coding} {size}");
            assert!(
                size < 1000 || answer.body.len() < size / 2,
                "{coding} {size}"
            );
            let chunked = answer.header("Transfer-Encoding").is_some();
            let known = answer.header("Content-Length").is_some();
            assert!(chunked != known);
        }
    }
}

#[test]
fn http_2_is_compressed_as_well() {
    let page = text(100_000);
    let server = Server::http(&format!(
        "{TYPES} server {{ listen 127.0.0.1:%%PORT%% http2; root %%DIR%%/html; {} }}",
        all_on()
    ))
    .file("html/a.txt", &page)
    .file("html/b.txt", &text(3_000_000))
    .allow("deprecated")
    .start();
    let mut client = H2Client::connect(server.port());
    for (path, page) in [("/a.txt", page), ("/b.txt", text(3_000_000))] {
        for coding in codings() {
            let stream = client.request("GET", path, &[("accept-encoding", coding)], true);
            let reply = client.reply(stream);
            assert_eq!(reply.header("content-encoding"), Some(*coding));
            let answer = Response {
                headers: vec![("Content-Encoding".to_owned(), (*coding).to_owned())],
                body: reply.body,
                ..Response::default()
            };
            assert!(decoded(&answer) == page.as_bytes(), "{path} {coding}");
        }
    }
}

#[test]
fn curl_gets_the_file_itself() {
    let page = text(200_000);
    let server = site(all_on()).file("html/a.txt", &page).start();
    let url = format!("http://127.0.0.1:{}/a.txt", server.port());
    let sizes = [
        "-s",
        "--compressed",
        "-w",
        "%{stderr}%{size_download}",
        "-o",
        "-",
        &url,
    ];
    let output = Command::new("curl")
        .args(sizes)
        .output()
        .expect("curl is installed");
    assert!(output.stdout == page.as_bytes());
    let sent: usize = String::from_utf8_lossy(&output.stderr)
        .trim()
        .parse()
        .expect("curl says how much came");
    assert!(sent < page.len() / 2, "{sent}");
}

#[test]
fn http_1_0_is_compressed_only_where_it_is_asked_for() {
    let server = site("gzip on; location /old/ { gzip_http_version 1.0; }")
        .file("html/a.html", &text(3000))
        .file("html/old/a.html", &text(3000))
        .start();
    for (path, coding) in [("/a.html", None), ("/old/a.html", Some("gzip"))] {
        let mut client = server.client();
        client.send(format!(
            "GET {path} HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"
        ));
        let answer = client.response();
        assert_eq!(answer.header("Content-Encoding"), coding);
        assert!(answer.header("Transfer-Encoding").is_none());
        if coding.is_some() {
            assert!(decoded(&answer) == text(3000).as_bytes());
        }
    }
}

#[test]
fn a_changed_file_is_never_sent_in_its_old_form() {
    let server = site("gzip on;").file("html/a.html", &text(3000)).start();
    let path = server.path("html/a.html");
    let mut client = server.client();
    for n in 0..50 {
        // The same length each time; half of the changes replace the file.
        let page = format!("{n:04} {}", text(3000));
        if n % 2 == 0 {
            fs::write(&path, &page).expect("the file can be written");
        } else {
            let next = server.path("html/next");
            fs::write(&next, &page).expect("the directory can be written");
            fs::rename(&next, &path).expect("both are in one directory");
        }
        for _ in 0..2 {
            let answer = accepting(&mut client, "/a.html", "gzip");
            assert!(decoded(&answer) == page.as_bytes(), "change {n}");
        }
    }
}

#[test]
fn a_kept_form_ends_with_the_bytes_it_was_made_of() {
    let page = text(60_000);
    let server = site("gzip on;").file("html/a.html", &page).start();
    let path = server.path("html/a.html");
    let written = fs::metadata(&path).and_then(|meta| meta.modified());
    let written = written.expect("the file was just written");
    let mut client = server.client();
    // Forms of files that changed a moment ago are not kept.
    wait_until("the file is old enough", || {
        let answer = accepting(&mut client, "/a.html", "gzip");
        assert!(decoded(&answer) == page.as_bytes());
        written.elapsed().is_ok_and(|age| age.as_millis() > 3100)
    });
    let kept = accepting(&mut client, "/a.html", "gzip");
    assert!(accepting(&mut client, "/a.html", "gzip").body == kept.body);
    // The same file, length and time of modification; another content.
    let other = page.replace("fox", "dog");
    fs::write(&path, &other).expect("the file can be written");
    let file = fs::File::options().write(true).open(&path);
    let set = file.and_then(|file| file.set_modified(written));
    set.expect("its time can be set");
    let answer = accepting(&mut client, "/a.html", "gzip");
    assert!(decoded(&answer) == other.as_bytes());
    assert_eq!(
        answer.header("ETag"),
        kept.header("ETag"),
        "nothing else tells"
    );
    fs::remove_file(&path).expect("the file is there");
    assert_eq!(accepting(&mut client, "/a.html", "gzip").status, 404);
}

#[test]
fn files_compressed_before_are_sent_and_unpacked() {
    let page = text(150_000);
    let packed = piped("gzip", &["-9nc"], page.as_bytes());
    let server = site("gzip_static always; gunzip on; gzip_vary on;")
        .file("html/unused", "")
        .prepare({
            let packed = packed.clone();
            move |dir| {
                fs::write(dir.join("html/a.html.gz"), packed).expect("the directory is there")
            }
        })
        .start();
    let mut client = server.client();
    let answer = accepting(&mut client, "/a.html", "gzip");
    assert_eq!(answer.header("Content-Encoding"), Some("gzip"));
    assert_eq!(
        answer.header("Content-Length"),
        Some(packed.len().to_string().as_str())
    );
    assert!(answer.body == packed);
    let answer = client.get("/a.html");
    assert_eq!(answer.header("Content-Encoding"), None);
    assert_eq!(answer.header("Vary"), Some("Accept-Encoding"));
    assert!(
        answer
            .header("ETag")
            .is_some_and(|etag| etag.starts_with("W/"))
    );
    assert!(answer.body == page.as_bytes());
}

#[test]
fn a_bomb_takes_the_memory_of_a_piece() {
    let bomb = piped("gzip", &["-9nc"], &vec![0; 200 << 20]);
    let server = site("gzip_static always; gunzip on;")
        .file("html/unused", "")
        .prepare(move |dir| {
            fs::write(dir.join("html/a.html.gz"), bomb).expect("the directory is there")
        })
        .start();
    let before = resident_kib(&server);
    let mut slow = server.client();
    slow.send("GET /a.html HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // The client stops reading, so bytes beyond the socket buffers wait in the server.
    let head = slow.bytes(100_000);
    assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"));
    // Others are served meanwhile.
    assert_eq!(server.get("/none").status, 404);
    let grown = resident_kib(&server).saturating_sub(before);
    assert!(grown < 20 << 10, "{grown} KiB");
}

fn resident_kib(server: &Server) -> u64 {
    let of = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        number.unwrap_or_default()
    };
    server.workers().into_iter().map(of).sum()
}

#[test]
fn broken_gzip_ends_the_connection() {
    let server = site("gzip_static always; gunzip on;")
        .file("html/a.html.gz", "this is no gzip, however it is read")
        .allow("inflate() failed")
        .start();
    let mut client = server.client();
    client.send("GET /a.html HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let rest = client.rest();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "the end is not told");
    assert!(server.error_log().contains("inflate() failed"));
}

#[test]
fn strings_are_replaced_before_the_body_is_compressed() {
    let page = format!("{}<b>Needle</b>{}", text(70_000), text(70_000));
    let server = site("gzip on; sub_filter '<b>needle</b>' '<i>$arg_by</i>';")
        .file("html/a.html", &page)
        .start();
    let mut client = server.client();
    let expected = page.replace("<b>Needle</b>", "<i>thread</i>");
    let plain = client.get("/a.html?by=thread");
    assert!(plain.body == expected.as_bytes());
    assert_eq!(
        (
            plain.header("Content-Length"),
            plain.header("Last-Modified")
        ),
        (None, None)
    );
    let answer = accepting(&mut client, "/a.html?by=thread", "gzip");
    assert!(decoded(&answer) == expected.as_bytes());
}

#[test]
fn the_ratio_is_logged() {
    let server = Server::http(&format!(
        "{TYPES} log_format ratio '$uri $gzip_ratio'; access_log %%DIR%%/ratio.log ratio;
         server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; gzip on; }}"
    ))
    .file("html/a.html", &"x".repeat(10_000))
    .start();
    let mut client = server.client();
    let answer = accepting(&mut client, "/a.html", "gzip");
    let log = server.wait_for_text("ratio.log", "/a.html ");
    let ratio = log.trim_end().strip_prefix("/a.html ").unwrap_or_default();
    let ratio: f64 = ratio.parse().unwrap_or_else(|_| panic!("a ratio: {log:?}"));
    let expected = 10_000.0 / answer.body.len() as f64;
    assert!((ratio - expected).abs() < 0.011, "{ratio} {expected}");
    client.get("/a.html");
    server.wait_for_text("ratio.log", "/a.html -\n");
}
