//! A thousand clients at once: slow readers hold little memory of the server, even with a fast upstream server, and bodies
//! of senders are complete.
//!
//! `PROXY_CLIENTS=1000` is the number of clients, 200 by default. Figures are the growth of the worker's memory. Own
//! executable: it raises its limit of open files. Sources: nginx documentation, `proxy_buffers`,
//! `proxy_max_temp_file_size`, `proxy_request_buffering`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firstbyte_tests::backend::{Backend, Step, answer, ok, send};
use firstbyte_tests::client::request;
use firstbyte_tests::wait::DEADLINE;
use firstbyte_tests::{Client, Server, wait_until};

/// A response for a slow reader: far more than a connection may hold.
const RESPONSE_BYTES: usize = 4 << 20;
/// Maximum memory of a slow reader: the buffers by their defaults (32 KiB), the rest of the piece in transit to the
/// client (64 KiB at most, half of that on average), and two connections. It is independent of the length of the
/// response.
const READER_MAX_BYTES: u64 = 96 << 10;
/// Maximum memory of a connection that sends a body: `client_body_buffer_size` by its default, twice, and the connection.
const SENDER_MAX_BYTES: u64 = 64 << 10;
/// Memory that the allocator may keep besides.
const SLACK_BYTES: u64 = 8 << 20;
/// Bytes of each upload.
const UPLOAD_BYTES: usize = 100_000;

fn clients() -> usize {
    std::env::var("PROXY_CLIENTS").map_or(200, |n| n.parse().expect("a number"))
}

fn resident_bytes(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).expect("the worker is there");
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0_u64) * 4096
}

fn server(backend: &Backend) -> Server {
    let pass = backend.name();
    raise_descriptors();
    // Twice as many connections as clients, and the files of their bodies.
    Server::whole(&format!(
        "%%USER%%\ndaemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log warn;
         worker_processes 1; worker_rlimit_nofile 20000; events {{ worker_connections 8000; }}
         http {{ access_log off; client_body_temp_path %%DIR%%/body; proxy_temp_path %%DIR%%/proxy;
             server {{ listen 127.0.0.1:%%PORT%% backlog=4096; client_max_body_size 0;
                 location / {{ proxy_pass http://{pass}; }}
                 location /memory {{ proxy_pass http://{pass}; proxy_max_temp_file_size 0; }}
                 location /direct {{ proxy_pass http://{pass}; proxy_buffering off; }}
                 location /stream {{ proxy_pass http://{pass}; proxy_request_buffering off; }} }} }}"
    ))
    .start()
}

/// This process has both ends of many of the connections.
fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("up to the maximum anybody may");
}

/// Clients that read only the beginning of their response: returns the growth of the worker, and the bytes that the
/// upstream server has sent.
fn growth_bytes(path: &str, count: usize) -> (u64, u64) {
    let sent = Arc::new(AtomicU64::new(0));
    let of_script = Arc::clone(&sent);
    let backend = Backend::answering(move |r| {
        if r.target() == "/warm" {
            return ok("warm");
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {RESPONSE_BYTES}\r\n\r\n");
        of_script.fetch_add(1, Ordering::Relaxed);
        vec![send(head), Step::Fill(RESPONSE_BYTES)]
    });
    let server = server(&backend);
    assert_eq!(server.get("/warm").text(), "warm");
    let worker = server.workers()[0];
    let before = resident_bytes(worker);
    let mut held: Vec<Client> = Vec::new();
    for _ in 0..count {
        let mut client = server.client();
        client.send(request("GET", path, &[]));
        held.push(client);
    }
    for client in &mut held {
        assert!(
            client.has_bytes_within(DEADLINE),
            "each of them has its beginning"
        );
    }
    wait_until("all have been asked for", || {
        sent.load(Ordering::Relaxed) == count as u64
    });
    let mut growth = resident_bytes(worker);
    // It must not grow while no client reads.
    for _ in 0..20 {
        firstbyte_tests::wait::pause(Duration::from_millis(10));
        growth = growth.max(resident_bytes(worker));
    }
    // A client that resumes gets the whole response.
    let mut last = held.pop().expect("there is one");
    assert_eq!(last.response().body.len(), RESPONSE_BYTES);
    assert_eq!(server.get("/warm").text(), "warm");
    (growth.saturating_sub(before), count as u64)
}

#[test]
fn slow_readers_hold_little_memory() {
    let mut findings = Vec::new();
    for (what, path) in [
        ("temporary files", "/file"),
        ("no temporary files", "/memory"),
        ("no buffering", "/direct"),
    ] {
        let (growth, count) = growth_bytes(path, clients());
        println!(
            "{count} slow readers, {what}: {} KiB, {} bytes each",
            growth >> 10,
            growth / count
        );
        if growth > count * READER_MAX_BYTES + SLACK_BYTES {
            findings.push(format!("{what}: {} bytes each", growth / count));
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// The body of an upload: its number is in all of it.
fn upload(number: usize) -> Vec<u8> {
    let mut body = format!("upload {number} ")
        .into_bytes()
        .repeat(UPLOAD_BYTES / 9 + 1);
    body.truncate(UPLOAD_BYTES);
    body
}

#[test]
fn thousand_uploads_at_once_arrive_whole() {
    let backend = Backend::answering(|r| {
        let number = r.target().rsplit('/').next().and_then(|n| n.parse().ok());
        let same = number.is_some_and(|number| r.body == upload(number));
        if same {
            ok("whole")
        } else {
            answer("409 Conflict", &[], r.body.len().to_string())
        }
    });
    let server = server(&backend);
    for path in ["/u", "/stream"] {
        let worker = server.workers()[0];
        let before = resident_bytes(worker);
        let mut peak = 0;
        let mut sending: Vec<TcpStream> = Vec::new();
        for number in 0..clients() {
            let mut client = TcpStream::connect(("127.0.0.1", server.port())).expect("it accepts");
            client
                .set_read_timeout(Some(DEADLINE))
                .expect("it is not zero");
            client
                .set_write_timeout(Some(DEADLINE))
                .expect("it is not zero");
            let framing = format!("Content-Length: {UPLOAD_BYTES}");
            let head = request(
                "POST",
                &format!("{path}/{number}"),
                &[&framing, "Connection: close"],
            );
            client.write_all(head.as_bytes()).expect("it reads");
            sending.push(client);
        }
        // All of them a piece at a time, so that all are in the middle of theirs at once.
        let bodies: Vec<Vec<u8>> = (0..clients()).map(upload).collect();
        for from in (0..UPLOAD_BYTES).step_by(20_000) {
            for (client, body) in sending.iter_mut().zip(&bodies) {
                client
                    .write_all(&body[from..from + 20_000])
                    .expect("it reads");
            }
            peak = peak.max(resident_bytes(worker));
        }
        for (number, mut client) in sending.into_iter().enumerate() {
            let mut answer = String::new();
            client.read_to_string(&mut answer).expect("it answers");
            assert!(
                answer.ends_with("\r\n\r\nwhole"),
                "{path} {number}: {answer}"
            );
        }
        let growth = peak.saturating_sub(before);
        println!("{} uploads to {path}: {} KiB", clients(), growth >> 10);
        assert!(
            growth <= clients() as u64 * SENDER_MAX_BYTES + SLACK_BYTES,
            "{path}: {growth} bytes"
        );
    }
}
