//! Attempts whose response is not received to its end: they are counted with their server.
//!
//! The client leaves, or the rest of the response is not used. Source: nginx documentation, `ngx_http_api_module`; nginx ends such
//! an attempt as one without a failure.

use firstbyte_tests::backend::{Backend, Step, chunk, ok, send};
use firstbyte_tests::client::request;
use firstbyte_tests::{Client, Server, peer, wait_until};
use serde_json::{Value, json};

/// A server with a group `counted`, and locations that use it.
fn site(counted: &Backend, plain: &Backend) -> Server {
    Server::http_with(
        "worker_processes 1;",
        &format!(
            "upstream counted {{ zone counted 64k; server {}; }}
             server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/site;
                 location / {{ proxy_pass http://counted; }}
                 location /checked {{ auth_request /check; }}
                 location = /check {{ internal; proxy_pass http://counted; }}
                 location /page {{ ssi on; ssi_types *; }}
                 location /mirrored {{ proxy_pass http://{}; mirror /copy; }}
                 location = /copy {{ internal; proxy_pass http://counted; }}
                 location /api {{ api; }} }}",
            counted.name(),
            plain.name()
        ),
    )
    .file(
        "site/page/a",
        "start <!--#include virtual=\"/included\" --> end",
    )
    .start()
}

/// Data of the only server of the group.
fn peer(server: &Server) -> Value {
    let text = server.get("/api/9/http/upstreams/counted").text();
    let group: Value = serde_json::from_str(&text).expect("the body is JSON");
    group["peers"][0].clone()
}

/// Waits for the end of the attempt; returns the data of the server.
fn ended(server: &Server) -> Value {
    wait_until("the attempt has ended", || {
        peer(server)["active"] == 0 && peer(server)["requests"] == 1
    });
    peer(server)
}

fn number(peer: &Value, name: &str) -> u64 {
    peer[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} in {peer}"))
}

fn endless() -> Backend {
    Backend::answering(|_| {
        vec![
            send("HTTP/1.1 200 OK\r\n\r\n"),
            Step::Fill(1 << 30),
            Step::Hold,
        ]
    })
}

#[test]
fn a_response_that_its_client_leaves_is_counted() {
    if !peer::is_firstbyte() {
        return;
    }
    let counted = Backend::answering(|_| {
        let head = send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        vec![head, chunk("piece"), Step::Hold]
    });
    for (path, beginning) in [("/a", "piece"), ("/page/a", "start piece")] {
        let server = site(&counted, &counted);
        let mut client = server.client();
        // Without chunks.
        client.send(format!("GET {path} HTTP/1.0\r\n\r\n"));
        assert_eq!(client.response_to_head().status, 200);
        assert_eq!(client.bytes(beginning.len()), beginning.as_bytes());
        client.reset();
        let peer = ended(&server);
        assert_eq!(peer["responses"]["codes"], json!({"200": 1}), "{path}");
        assert!(number(&peer, "sent") > 30, "{peer}");
        assert!(number(&peer, "received") > 30, "{peer}");
    }
}

/// The server has not answered yet: only its bytes are counted.
#[test]
fn a_request_that_its_client_leaves_is_counted() {
    if !peer::is_firstbyte() {
        return;
    }
    for path in ["/a", "/checked"] {
        let counted = Backend::answering(|_| vec![Step::Hold]);
        let server = site(&counted, &counted);
        let mut client = server.client();
        client.send(request("GET", path, &[]));
        wait_until("the server has it", || counted.request_count() == 1);
        client.reset();
        let peer = ended(&server);
        assert_eq!(peer["responses"]["total"], 0, "{path}");
        assert!(number(&peer, "sent") > 30, "{peer}");
        assert_eq!((&peer["fails"], &peer["state"]), (&json!(0), &json!("up")));
    }
}

#[test]
fn the_response_of_a_mirror_is_counted_as_far_as_it_is_read() {
    if !peer::is_firstbyte() {
        return;
    }
    let (counted, plain) = (endless(), Backend::answering(|_| ok("own")));
    let server = site(&counted, &plain);
    assert_eq!(
        Client::connect(server.port()).get("/mirrored").text(),
        "own"
    );
    let peer = ended(&server);
    assert_eq!(peer["responses"]["codes"], json!({"200": 1}));
    assert!(number(&peer, "received") > 64 << 10, "{peer}");
}
