//! `worker_memory_limit`: near it idle connections end, at it new requests are refused, below it all is as before.

use std::fs;

use firstbyte_tests::h2::H2Client;
use firstbyte_tests::{Client, Server, Signal, wait_until};

/// Far more than a worker without a request has.
const LIMIT_MIB: u64 = 96;
/// Memory of one upload in progress.
const HELD_MIB: usize = 8;

fn server(limit: &str) -> Server {
    Server::whole(&format!(
        "user root root; daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info; worker_processes 1;
         worker_memory_limit {limit};
         events {{ worker_connections 512; }}
         http {{
             client_body_temp_path %%DIR%%/up; access_log off; client_max_body_size 0; client_body_buffer_size 16m;
             server {{ listen 127.0.0.1:%%PORT%%; http2 on; root %%DIR%%/html; dav_methods PUT;
                 location /ok {{ return 200 ok; }} }}
         }}"
    ))
    .file("html/index.html", "welcome")
    .start()
}

fn resident_mib(server: &Server) -> u64 {
    let pid = server.workers()[0];
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).expect("the worker is there");
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    (pages.unwrap_or(0_u64) * 4096) >> 20
}

/// An upload of which all but a byte has come.
fn upload(server: &Server, name: &str) -> Client {
    let mut client = server.client();
    let length = (HELD_MIB << 20) + 1;
    client.send(format!(
        "PUT /{name} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"
    ));
    client.send(vec![b'x'; HELD_MIB << 20]);
    client
}

#[test]
fn requests_are_refused_at_the_limit_and_served_below_it() {
    let server = server(&format!("{LIMIT_MIB}m"));
    let mut idle = server.client();
    assert_eq!(idle.get("/ok").text(), "ok");
    let mut over_h2 = H2Client::connect(server.port());
    assert_eq!(over_h2.fetch("/ok").text(), "ok");
    let mut uploads = Vec::new();
    while uploads.len() < 16 && server.get("/ok").status == 200 {
        uploads.push(upload(&server, &format!("new{}", uploads.len())));
    }
    wait_until("the limit is reached", || server.get("/ok").status == 503);
    assert!(resident_mib(&server) >= LIMIT_MIB * 7 / 8);
    assert!(server.error_log().contains("worker_memory_limit"));
    assert!(idle.closed(), "an idle connection is in the way");
    let mut refused = H2Client::connect(server.port());
    let stream = refused.get("/ok");
    assert_eq!(refused.reply(stream).reset, Some(7), "REFUSED_STREAM");
    // Requests in progress continue and end whole; the last of them may have come too late.
    let last = uploads.len() - 1;
    for (n, mut client) in uploads.into_iter().enumerate() {
        let status = client.send("x").response().status;
        assert!(status == 201 || (n == last && status == 503), "upload {n}");
    }
    wait_until("requests are served again", || {
        server.get("/ok").text() == "ok"
    });
    server.wait_for_text("error.log", "new requests are served again");
    assert_eq!(H2Client::connect(server.port()).fetch("/ok").text(), "ok");
    assert_eq!(server.workers().len(), 1);
}

#[test]
fn nothing_is_refused_without_a_limit() {
    let server = server("off");
    let uploads: Vec<Client> = (0..16)
        .map(|n| upload(&server, &format!("new{n}")))
        .collect();
    wait_until("all is held", || {
        resident_mib(&server) > 16 * HELD_MIB as u64
    });
    assert_eq!(server.get("/ok").text(), "ok");
    for mut client in uploads {
        client.send("x");
        assert_eq!(client.response().status, 201);
    }
}

#[test]
fn limit_follows_a_reload() {
    let server = server("1m");
    wait_until("the limit is reached", || server.get("/ok").status == 503);
    server.rewrite_conf(|text| text.replace("worker_memory_limit 1m", "worker_memory_limit 1g"));
    server.signal(Signal::HUP);
    wait_until("the limit is higher", || server.get("/ok").status == 200);
}
