//! A full disk below buffered responses and request bodies: a truncated message is never taken for a whole one.
//!
//! If the tests may mount, temporary files go to a small file system. Source: nginx documentation, `proxy_temp_path`,
//! `proxy_max_temp_file_size`, `client_body_temp_path`.

use std::time::Duration;

use firstbyte_tests::backend::{Backend, Step, ok, send};
use firstbyte_tests::client::request;
use firstbyte_tests::small_disk::on_small_disk;
use firstbyte_tests::wait::{DEADLINE, holds_within};
use firstbyte_tests::{H2Client, Server, wait_until};

/// A response that fits neither the buffers nor the disk nor the sockets.
const LARGE: usize = 24 << 20;

/// A server with little space for temporary files; `None` if mounting is not possible.
fn server(backend: &Backend) -> Option<Server> {
    let pass = backend.name();
    let http = format!(
        "proxy_temp_path %%DIR%%/small/proxy; client_body_temp_path %%DIR%%/small/body;
         server {{ listen 127.0.0.1:%%PORT%%; http2 on; client_max_body_size 0; client_body_buffer_size 16k;
             location / {{ proxy_pass http://{pass}; proxy_buffers 4 8k; }} }}"
    );
    // Not [`Server::http`]: its temporary paths would duplicate the directives.
    let text = format!(
        "%%USER%%\ndaemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info;
         events {{ worker_connections 512; }} http {{ access_log %%DIR%%/access.log; {http} }}"
    );
    Some(on_small_disk(Server::whole(&text), 256)?.start())
}

/// Asserts that the bytes are correct, and that the client sees a truncated body as such.
fn is_honest(body: &[u8], whole: bool) {
    assert!(body.iter().step_by(997).all(|byte| *byte == b'x'));
    assert_eq!(whole, body.len() == LARGE, "{} bytes", body.len());
}

#[test]
fn slow_clients_of_large_responses_are_not_deceived() {
    let backend = Backend::answering(|r| match r.target() {
        "/length" => ok(vec![b'x'; LARGE]),
        "/chunked" => {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let chunk = [
                format!("{LARGE:x}\r\n").as_bytes(),
                &vec![b'x'; LARGE],
                b"\r\n0\r\n\r\n",
            ]
            .concat();
            vec![send(head), Step::Send(chunk)]
        }
        _ => ok("small"),
    });
    let Some(server) = server(&backend) else {
        return;
    };
    for path in ["/length", "/chunked"] {
        let mut client = server.client();
        client.send(request("GET", path, &[]));
        assert!(client.has_bytes_within(DEADLINE));
        // Until the disk is full. A server that stops reading ahead logs nothing.
        holds_within(Duration::from_millis(300), || {
            server.error_log().contains("No space left")
        });
        match client.try_response() {
            Ok(Some(answer)) => is_honest(&answer.body, true),
            outcome => println!("{path}: cut, {outcome:?}"),
        }
        let mut client = H2Client::narrow(server.port(), 1 << 16);
        let stream = client.get(path);
        client.until("the response begins", |c| {
            c.so_far(stream).body.len() == 65_535
        });
        client.window(0, (1 << 30) - 65_536).window(stream, 1 << 30);
        let reply = client.reply(stream);
        is_honest(&reply.body, reply.reset.is_none());
        assert_eq!(server.get("/small").text(), "small");
    }
}

/// Bodies that cannot be stored are refused, and the upstream server gets nothing of them.
#[test]
fn request_bodies_without_room_are_refused() {
    let backend = Backend::answering(|r| ok(r.body.len().to_string()));
    let Some(server) = server(&backend) else {
        return;
    };
    let post = |len: usize| {
        let mut client = server.client();
        let length = format!("Content-Length: {len}");
        client.send(request("POST", "/", &[&length, "Connection: close"]));
        client.send(vec![b'x'; len]);
        client.response()
    };
    assert_eq!(post(100_000).text(), "100000");
    for _ in 0..3 {
        assert_eq!(post(1 << 20).status, 500);
        // The rest of a refused body is read for a moment, and its file exists until then.
        wait_until("nothing of it is left", || post(100_000).text() == "100000");
    }
    assert_eq!(backend.request_count(), 4);
    assert!(
        backend
            .requests()
            .iter()
            .all(|r| r.whole && r.body.len() == 100_000)
    );
}
