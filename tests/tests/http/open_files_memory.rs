//! Responses from memory (`open_files_memory`) equal those from a descriptor, byte for byte.
//!
//! Two servers have the same files and differ in the directive alone. Each request is sent twice to both, so that the
//! first response reads the file and the second one comes from memory.

use std::fs;

use firstbyte_tests::peer::is_firstbyte;
use firstbyte_tests::wait::DEADLINE;
use firstbyte_tests::{Client, H2Client, Server, Signal, wait_until};

/// A server that keeps bytes of files, and one that does not.
fn pair(http: &str) -> (Server, Server) {
    let start = |memory: &str| {
        Server::http(&format!(
            "keepalive_requests 100000; open_files_memory {memory}; types {{ text/html html; text/plain txt; }} {http}"
        ))
        .file("html/t.txt", &"0123456789 line of text\n".repeat(100))
        .file(
            "html/page.html",
            "<p><!--#include virtual=\"/t.txt\" --><!--#echo var=\"QUERY_STRING\" --></p>",
        )
        .file("html/empty.txt", "")
        .file("html/16k.txt", &"x".repeat(16 << 10))
        .file("html/more.txt", &"x".repeat((16 << 10) + 1))
        .file("html/pre.txt", "plain")
        .file("html/pre.txt.gz", "compressed, it says")
        .start()
    };
    let pair = (start("64m"), start("0"));
    let mut client = pair.0.client();
    wait_until("bytes of files are kept", || {
        for path in PATHS {
            client.get(path);
        }
        kept_bytes(&mut client) > 5.0 * 384.0
    });
    assert_eq!(kept_bytes(&mut pair.1.client()), 0.0);
    pair
}

const PATHS: [&str; 7] = [
    "/t.txt",
    "/page.html?a=b",
    "/empty.txt",
    "/16k.txt",
    "/more.txt",
    "/pre.txt",
    "/missing.txt",
];

fn kept_bytes(client: &mut Client) -> f64 {
    let page = client.get("/metrics").text();
    let name = "firstbyte_open_files_memory_bytes ";
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|value| value.parse().ok()).expect("a sample")
}

/// Status, header fields that are about the file, and the body.
fn told(client: &mut Client, path: &str, lines: &[&str]) -> (u16, Vec<Option<String>>, Vec<u8>) {
    let answer = client.get_with(path, lines);
    let fields = [
        "Content-Length",
        "Content-Type",
        "Content-Range",
        "Content-Encoding",
        "Accept-Ranges",
        "Transfer-Encoding",
        "Vary",
    ];
    let fields = fields.map(|name| answer.header(name).map(str::to_owned));
    (answer.status, fields.to_vec(), answer.body)
}

/// Directives that change how a file is sent.
const WAYS: [&str; 6] = [
    "sendfile on;",
    "sendfile off;",
    "sendfile on; tcp_nopush on; sendfile_max_chunk 1k;",
    "directio 1;",
    "gzip on; gzip_min_length 1; gzip_types text/plain; gzip_static on;",
    "ssi on;",
];

#[test]
fn ranges_conditions_codings_and_pages_are_the_same_from_memory() {
    if !is_firstbyte() {
        return;
    }
    let requests: [&[&str]; 8] = [
        &[],
        &["Range: bytes=0-0"],
        &["Range: bytes=100-1000"],
        &["Range: bytes=-7, 3-5"],
        &["Range: bytes=99999999-"],
        &["If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT"],
        &["If-Unmodified-Since: Thu, 01 Jan 1998 00:00:00 GMT"],
        &["Accept-Encoding: gzip"],
    ];
    let ways: String = WAYS
        .iter()
        .enumerate()
        .map(|(n, way)| format!("location /{n}/ {{ alias %%DIR%%/html/; {way} }} "))
        .collect();
    let (memory, disk) = pair(&format!(
        "server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
             location = /metrics {{ metrics; }} {ways} }}"
    ));
    let (mut kept, mut read) = (memory.client(), disk.client());
    for way in 0..WAYS.len() {
        for path in PATHS {
            let path = format!("/{way}{path}");
            for lines in requests {
                for _ in 0..2 {
                    let one = told(&mut kept, &path, lines);
                    let other = told(&mut read, &path, lines);
                    // The separator of several ranges is the process's own.
                    if one.0 == 206 && lines == ["Range: bytes=-7, 3-5"] {
                        assert_eq!((one.0, one.2.len()), (other.0, other.2.len()), "{path}");
                        continue;
                    }
                    assert_eq!(one, other, "{path} {lines:?}");
                }
            }
        }
    }
}

#[test]
fn streams_are_the_same_from_memory() {
    if !is_firstbyte() {
        return;
    }
    let (memory, disk) = pair(
        "server { listen 127.0.0.1:%%PORT%%; http2 on; root %%DIR%%/html; location = /metrics { metrics; } }",
    );
    let (mut kept, mut read) = (
        H2Client::connect(memory.port()),
        H2Client::connect(disk.port()),
    );
    for path in PATHS {
        for _ in 0..2 {
            let (one, other) = (kept.fetch(path), read.fetch(path));
            assert_eq!(one.header(":status"), other.header(":status"), "{path}");
            assert_eq!(one.header("content-length"), other.header("content-length"));
            assert_eq!(one.text(), other.text(), "{path}");
        }
    }
}

/// If a file shrinks during a response, the response keeps the bytes of its start.
#[test]
fn a_kept_file_that_is_cut_or_replaced_while_it_is_sent_stays_whole() {
    if !is_firstbyte() {
        return;
    }
    let (memory, _) = pair(
        "server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; location = /metrics { metrics; }
             location /slow/ { alias %%DIR%%/html/; limit_rate 8k; } }",
    );
    let mut client = memory.client();
    client.send("GET /slow/16k.txt HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(client.has_bytes_within(DEADLINE));
    let path = memory.path("html/16k.txt");
    let file = fs::File::options().write(true).open(&path);
    file.and_then(|file| file.set_len(1))
        .expect("it can be cut");
    assert_eq!(memory.get("/16k.txt").text(), "x");
    assert_eq!(client.response().text(), "x".repeat(16 << 10));
    fs::write(&path, "now").expect("it is writable");
    assert_eq!(memory.get("/16k.txt").text(), "now");
}

#[test]
fn a_reload_changes_how_much_is_kept() {
    if !is_firstbyte() {
        return;
    }
    let (memory, _) = pair(
        "server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; location = /metrics { metrics; } }",
    );
    memory.rewrite_conf(|text| text.replace("open_files_memory 64m", "open_files_memory 0"));
    memory.signal(Signal::HUP);
    wait_until("nothing is kept any more", || {
        kept_bytes(&mut memory.client()) == 0.0
    });
    assert_eq!(memory.get("/16k.txt").body.len(), 16 << 10);
}
