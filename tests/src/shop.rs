//! Actions of a client of `tests/peers/shop.py`, whatever is in front of it: a visit with a session, 20 MB each way.

use crate::client::{Client, request};
use crate::server::Server;
use crate::wait::wait_until;
use rustix::process::Signal;

/// Logs in, requests the name of its user, and moves 20 MB each way in both framings; `host` is the header line.
///
/// # Panics
/// If a response is not the application's.
#[track_caller]
pub fn visit(client: &mut Client, host: &str) {
    // The application's session: two cookies and a redirect that is passed on unchanged.
    assert_eq!(client.get_with("/me", &[host]).status, 403);
    client.send(request("POST", "/login", &[host, "Content-Length: 8"]) + "name=ada");
    let answer = client.response();
    let to = format!("http://{}/me", host.trim_start_matches("Host: "));
    assert_eq!(
        (answer.status, answer.header("Location")),
        (302, Some(to.as_str()))
    );
    let cookies = answer.header_values("Set-Cookie");
    assert_eq!((cookies.len(), cookies[1]), (2, "theme=dark"));
    let session = cookies[0].split(';').next().expect("it has a value");
    let cookie = format!("Cookie: {session}; {}", cookies[1]);
    assert_eq!(client.get_with("/me", &[host, &cookie]).text(), "hello ada");
    // The application's own response has no Content-Length.
    let download = client.get_with("/download", &[host]);
    assert_eq!((download.status, download.body.len()), (200, 20 << 20));
    let block: Vec<u8> = (0..=250).collect::<Vec<u8>>().repeat(261);
    let mut blocks = download.body.chunks(block.len());
    let in_place = blocks.all(|piece| *piece == block[..piece.len()]);
    assert!(in_place, "something is lost or doubled");
    let digest = client.get_with("/digest", &[host]).text();
    for framing in ["Content-Length", "Transfer-Encoding"] {
        if framing == "Content-Length" {
            let length = format!("Content-Length: {}", download.body.len());
            client
                .send(request("POST", "/upload", &[host, &length]))
                .send(&download.body);
        } else {
            let chunked = "Transfer-Encoding: chunked";
            client.send(request("POST", "/upload", &[host, chunked]));
            for piece in download.body.chunks(1 << 16) {
                client
                    .send(format!("{:x}\r\n", piece.len()))
                    .send(piece)
                    .send("\r\n");
            }
            client.send("0\r\n\r\n");
        }
        assert_eq!(client.response().text(), digest, "{framing}");
    }
}

/// Makes the server read its configuration again; `/generation` then answers `gN`.
///
/// # Panics
/// If it never does.
#[track_caller]
pub fn reload(server: &Server, generation: usize) {
    let (before, now) = (generation - 1, format!("g{generation}"));
    server.rewrite_conf(|text| text.replace(&format!("200 g{before};"), &format!("200 {now};")));
    server.signal(Signal::HUP);
    wait_until("the configuration is taken", || {
        server.get("/generation").text() == now
    });
}

/// Reloads twice during an upload, and during a download with a client that has stopped reading; both must end by the
/// old configuration.
///
/// # Panics
/// If one of them does not.
#[track_caller]
pub fn reload_in_transfers(server: &Server, upload: &str, download: &str, digest: &str) {
    let body = server.get(download).body;
    let (first, last) = body.split_at(body.len() / 2);
    let length = format!("Content-Length: {}", body.len());
    let mut sending = server.client();
    sending
        .send(request("POST", upload, &[&length]))
        .send(first);
    let mut receiving = server.client();
    receiving.send(request("GET", download, &[]));
    // Waits for the first byte of the response; the later reader gets all of it.
    assert!(receiving.has_bytes_within(crate::wait::DEADLINE));
    for generation in 1..=2 {
        reload(server, generation);
    }
    assert!(sending.send(last).response().text().contains(digest));
    assert!(receiving.response().body == body, "the download is cut");
}
