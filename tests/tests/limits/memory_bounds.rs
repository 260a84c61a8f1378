//! Memory that the server holds for clients that read nothing, or a byte at a time.
//!
//! Figures are the growth of the worker's resident memory after the same requests have been served once, so that pools
//! are filled. `MEMORY_CLIENTS=50` uses as many connections. Source: CVE-2019-9511, CVE-2019-9517.

use std::fs;
use std::time::{Duration, SystemTime};

use firstbyte_tests::h2::H2Client;
use firstbyte_tests::{Server, Signal};

/// Requests of one connection.
const STREAMS: usize = 100;
/// Maximum memory of one connection that reads nothing, whatever its responses are made of, in bytes.
const MADE_MAX: u64 = 4 << 20;
/// Maximum memory of one that reads a byte of each: its share of encoders, and a piece of each response.
const DRIBBLED_MAX: u64 = 5 << 20;
/// Maximum memory for many clients in total.
const ALL_MAX: u64 = 100 << 20;

/// The longest body that Brotli's level 11 compresses in one step.
const ONE_STEP_BYTES: usize = 48 << 10;

/// Responses that are made for each client: streams that are compressed, bodies compressed in one step, pages.
const PATHS: [(&str, &str); 11] = [
    // All clients share its compressed form.
    ("gzip", "/gzip/noise.txt"),
    ("gzip", "/gzip/long.txt"),
    ("br", "/br/long.txt"),
    ("br", "/br11/long.txt"),
    ("zstd", "/zstd/long.txt"),
    ("zstd", "/zstd22/long.txt"),
    ("gzip", "/gzip/short.txt"),
    ("br", "/br11/short.txt"),
    ("br", "/br/short.txt"),
    ("gzip", "/page/page.shtml"),
    ("identity", "/list/"),
];

fn server() -> Server {
    let http = "http2 on; http2_max_concurrent_streams 128; compress_cache 8m; gzip_types text/plain;
         brotli_types text/plain; zstd_types text/plain;
         server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; default_type text/plain;
             location /ok { return 200 ok; }
             location /plain/ { alias %%DIR%%/html/; }
             location /gzip/ { gzip on; gzip_comp_level 9; alias %%DIR%%/html/; }
             location /br/ { brotli on; alias %%DIR%%/html/; }
             location /br11/ { brotli on; brotli_comp_level 11; brotli_window 16m; alias %%DIR%%/html/; }
             location /zstd/ { zstd on; zstd_comp_level 3; alias %%DIR%%/html/; }
             location /zstd22/ { zstd on; zstd_comp_level 22; alias %%DIR%%/html/; }
             location /page/ { ssi on; gzip on; sub_filter fox dog; sub_filter_once off; alias %%DIR%%/html/; }
             location /list/ { autoindex on; alias %%DIR%%/html/many/; } }";
    let mut seed = 1_u32;
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 8
    };
    let text: String = (0..350_000)
        .map(|_| format!("word{} ", (next() >> 10) % 5000))
        .collect();
    let noise: String = (0..150_000).map(|_| format!("{:06x}", next())).collect();
    let names = (0..1000).map(|n| format!("html/many/a-file-whose-name-is-rather-long-{n}"));
    let mut builder = Server::http_with("worker_processes 1;", http)
        .bytes("html/long.txt", text.as_bytes())
        .bytes("html/short.txt", &text.as_bytes()[..900_000])
        .bytes("html/noise.txt", noise.as_bytes())
        .prepare(|dir| {
            // The cache keeps compressed forms only of files that have not changed for a while: of this one alone.
            let file = fs::File::options()
                .write(true)
                .open(dir.join("html/noise.txt"));
            let long_ago = SystemTime::now() - Duration::from_secs(1000);
            file.and_then(|file| file.set_modified(long_ago))
                .expect("the file is the test's own");
        })
        .file("html/part.txt", &text[..50_000])
        .file("html/edge.txt", &text[..ONE_STEP_BYTES])
        .file("html/past.txt", &text[..=ONE_STEP_BYTES])
        .file(
            "html/page.shtml",
            &format!(
                "<!--#include virtual=\"/page/part.txt\" -->{}",
                &text[..200_000]
            ),
        );
    for name in names {
        builder = builder.file(&name, "");
    }
    builder.start()
}

fn resident_bytes(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).expect("the worker is there");
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0_u64) * 4096
}

/// A client that sends as many requests as permitted, with these windows, and reads nothing more.
fn idler(server: &Server, coding: &str, path: &str, window: u32) -> H2Client {
    let mut client = H2Client::narrow(server.port(), window);
    client.settle();
    for _ in 0..STREAMS {
        client.request("GET", path, &[("accept-encoding", coding)], true);
    }
    client.settle();
    client
}

/// Growth of the worker while `clients` of them hold their responses.
fn growth_bytes(server: &Server, coding: &str, path: &str, window: u32, clients: usize) -> u64 {
    // Pools and the allocator's first reserve exist before the measurement.
    drop(idler(server, "identity", "/plain/part.txt", window));
    let mut fetched = H2Client::connect(server.port());
    let stream = fetched.request("GET", path, &[("accept-encoding", coding)], true);
    assert_eq!(fetched.reply(stream).status, 200, "{path}");
    drop(fetched);
    let worker = server.workers()[0];
    let before = resident_bytes(worker);
    let held: Vec<_> = (0..clients)
        .map(|_| idler(server, coding, path, window))
        .collect();
    let growth = resident_bytes(worker).saturating_sub(before);
    assert_eq!(server.get("/ok").text(), "ok");
    drop(held);
    growth
}

#[test]
fn one_connection_that_takes_nothing_holds_little() {
    for (coding, path) in PATHS {
        let server = server();
        for window in [0, 1] {
            let growth = growth_bytes(&server, coding, path, window, 1);
            println!("{path}, windows of {window}: {} KiB", growth >> 10);
            let most = if window == 0 { MADE_MAX } else { DRIBBLED_MAX };
            assert!(growth <= most, "{path}, {window}: {growth} bytes");
        }
    }
}

#[test]
fn files_that_nobody_takes_hold_next_to_nothing() {
    let server = server();
    let growth = growth_bytes(&server, "identity", "/plain/short.txt", 0, 1);
    println!("files, windows of 0: {} KiB", growth >> 10);
    assert!(growth <= 64 << 10, "{growth} bytes");
}

#[test]
fn many_connections_that_take_nothing_share_a_budget() {
    let wanted = std::env::var("MEMORY_CLIENTS").ok();
    let clients = wanted.as_ref().map_or(12, |n| n.parse().expect("a number"));
    // By default only the most expensive paths.
    let paths = if wanted.is_some() {
        &PATHS[..]
    } else {
        &PATHS[2..3]
    };
    for (coding, path) in paths {
        let server = server();
        for window in [0, 1] {
            let growth = growth_bytes(&server, coding, path, window, clients);
            println!(
                "{clients} x {path}, windows of {window}: {} KiB",
                growth >> 10
            );
            assert!(growth <= ALL_MAX, "{path}, {window}: {growth} bytes");
        }
    }
}

/// Brotli's level 11 takes a millisecond for each kilobyte. So longer bodies are streams without a length, and other
/// clients are served between their pieces.
#[test]
fn slowest_level_compresses_short_bodies_alone_in_one_step() {
    let server = server();
    let brotli = ["Accept-Encoding: br"];
    for (path, whole) in [("edge", true), ("past", false), ("short", false)] {
        let reply = server
            .client()
            .get_with(&format!("/br11/{path}.txt"), &brotli);
        assert_eq!(reply.header("Content-Encoding"), Some("br"), "{path}");
        assert_eq!(reply.header("Content-Length").is_some(), whole, "{path}");
    }
}

/// A client that takes its responses after all gets them whole, in whatever order they were made.
#[test]
fn responses_that_waited_for_memory_come_whole() {
    let server = server();
    for (coding, path) in PATHS {
        let mut client = H2Client::narrow(server.port(), 0);
        client.settle();
        let ask = |client: &mut H2Client| {
            client.request("GET", path, &[("accept-encoding", coding)], true)
        };
        let streams: Vec<u32> = (0..20).map(|_| ask(&mut client)).collect();
        client.settle();
        client.window(0, (1 << 31) - 1 - 65_535);
        for stream in streams.iter().rev() {
            client.window(*stream, (1 << 31) - 1);
        }
        let first = client.reply(streams[0]);
        assert!(!first.body.is_empty() && first.ended, "{path}");
        let applied = first.header("content-encoding").unwrap_or("identity");
        assert_eq!(applied, coding, "{path}");
        for stream in &streams[1..] {
            let reply = client.reply(*stream);
            assert_eq!((reply.status, reply.reset), (200, None), "{path}");
            assert!(!reply.body.is_empty() && reply.ended, "{path}");
        }
    }
    assert!(
        server.workers().len() == 1 && server.error_log().lines().all(|l| !l.contains("[crit]"))
    );
    server.signal(Signal::QUIT);
}
