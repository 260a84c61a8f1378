//! Responses on their way into a cache: nothing short, broken or unrequested is stored, also if clients
//! leave or the server is killed.
//!
//! Sources: RFC 9111 sections 3 and 3.3; RFC 9112 section 8.

use firstbyte_tests::backend::{Backend, Gate, Step, answer, chunk, send};
use firstbyte_tests::client::request;
use firstbyte_tests::{H2Client, Server, peer, wait_until};

use crate::cache_server::{
    MINUTE, assert_not_stored, cached, files, fill, get, is_stored, status_of, wait_for_requests,
    wait_for_stored,
};

/// Bytes of a body that does not fit in the buffers of one connection.
const LARGE: usize = 2 << 20;

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A body that ends with a line of its own.
fn large() -> Vec<u8> {
    let mut body = vec![b'x'; LARGE];
    body.extend_from_slice(b"<the end>");
    body
}

/// The way in which a client leaves.
#[derive(Clone, Copy, Debug)]
enum Leaves {
    Fin,
    Reset,
    ResetsStream,
}

/// Sends a request and leaves after the backend has it; `first` bytes of its body are received before.
fn request_and_leave(server: &Server, backend: &Backend, leaves: Leaves, first: usize) {
    let is_sent = || wait_until("it is sent", || backend.request_count() == 1);
    if let Leaves::ResetsStream = leaves {
        let mut client = H2Client::connect(server.port());
        let stream = client.get("/a");
        is_sent();
        if first > 0 {
            client.until("a part", |c| c.so_far(stream).body.len() >= first);
        }
        client.cancel(stream);
        assert_eq!(client.fetch("/plain").status, 204);
        return;
    }
    let mut client = server.client();
    client.send(request("GET", "/a", &[]));
    is_sent();
    if first > 0 {
        client.response_to_head();
        client.bytes(first);
    }
    match leaves {
        Leaves::Reset => client.reset(),
        _ => drop(client),
    }
    assert_eq!(server.get("/plain").status, 204);
}

#[test]
fn a_client_that_leaves_does_not_end_a_fill() {
    for leaves in [Leaves::Fin, Leaves::Reset, Leaves::ResetsStream] {
        // nginx stores nothing for a client that has left before the head.
        let parts: &[usize] = if peer::is_firstbyte() { &[0, 5] } else { &[5] };
        for &first in parts {
            let gate = Gate::default();
            let of_script = gate.clone();
            let backend = Backend::answering(move |_| {
                let gate = Step::Gate(of_script.clone());
                let part = [send(CHUNKED), chunk("piece")];
                let rest = [chunk(large()), chunk("")];
                match first {
                    0 => [gate].into_iter().chain(part).chain(rest).collect(),
                    _ => part.into_iter().chain([gate]).chain(rest).collect(),
                }
            });
            let server = cached(&backend, "proxy_http_version 1.1;").start();
            request_and_leave(&server, &backend, leaves, first);
            gate.open();
            wait_for_stored(&server, "<the end>");
            let hit = get(&server, "/a", "HIT");
            assert_eq!(hit.body.len(), LARGE + 14, "{leaves:?} {first}");
            assert_eq!(backend.request_count(), 1);
        }
    }
}

/// Nothing is kept for a client that leaves if the response cannot be stored.
#[test]
fn a_response_that_is_not_stored_ends_with_its_client() {
    let backend = Backend::answering(|_| {
        let head = CHUNKED.replace("max-age=60", "no-store");
        vec![send(head), chunk("piece"), Step::Hold]
    });
    let server = cached(&backend, "proxy_http_version 1.1;").start();
    request_and_leave(&server, &backend, Leaves::Reset, 5);
    wait_until("the connection ends", || backend.open() == 0);
}

/// Bodies that are shorter than announced or not decodable, by the way they end.
#[test]
fn a_short_or_broken_body_is_never_stored() {
    let long = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 100\r\n\r\n";
    let unframed = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\n";
    let backend = Backend::answering(move |r| match r.target() {
        "/short/close" => vec![send(long), send("short"), Step::Close],
        "/short/reset" => vec![send(long), send("short"), Step::Reset],
        "/short/empty" => vec![send(long), Step::Close],
        "/short/timeout" => vec![send(long), send("short"), Step::Hold],
        "/chunked/close" => vec![send(CHUNKED), chunk("short"), Step::Close],
        "/chunked/none" => vec![send(CHUNKED), Step::Close],
        "/chunked/size" => vec![send(CHUNKED), chunk("short"), send("zz\r\n"), Step::Close],
        "/chunked/part" => vec![send(CHUNKED), send("10\r\nshort"), Step::Close],
        "/chunked/end" => vec![send(CHUNKED), chunk("short"), send("0\r\n"), Step::Close],
        "/chunked/reset" => vec![send(CHUNKED), chunk("short"), Step::Reset],
        "/unframed/timeout" => vec![send(unframed), send("short"), Step::Hold],
        _ => answer("200 OK", MINUTE, format!("<{}>", r.target())),
    });
    let directives = "proxy_http_version 1.1; proxy_read_timeout 300ms;";
    let server = cached(&backend, directives).start();
    for path in [
        "/short/close",
        "/short/reset",
        "/short/empty",
        "/short/timeout",
        "/chunked/close",
        "/chunked/none",
        "/chunked/size",
        "/chunked/part",
        "/chunked/reset",
        "/unframed/timeout",
    ] {
        assert_not_stored(&server, path, &[]);
    }
    // nginx takes a body without the last line for whole.
    if peer::is_firstbyte() {
        assert_not_stored(&server, "/chunked/end", &[]);
    }
    assert!(!is_stored(&server, "short"));
}

/// RFC 9110 section 15.3.7: a part is a response to a request with a range alone. nginx stores it like another status.
#[test]
fn an_unrequested_part_is_never_stored() {
    let backend = Backend::answering(|r| match r.target() {
        "/part" | "/bare" => {
            let range = match r.target() {
                "/part" => "Content-Range: bytes 0-3/10",
                _ => "X: y",
            };
            let lines = ["Cache-Control: max-age=60", "ETag: \"one\"", range];
            answer("206 Partial Content", &lines, "part")
        }
        _ => answer("200 OK", MINUTE, format!("<{}>", r.target())),
    });
    if !peer::is_firstbyte() {
        return;
    }
    let server = cached(&backend, "").start();
    for path in ["/part", "/bare"] {
        assert_not_stored(&server, path, &[]);
        assert_not_stored(&server, path, &["Range: bytes=0-3"]);
    }
}

/// An interim response is not the response.
#[test]
fn interim_responses_are_not_stored() {
    let backend = Backend::answering(|r| {
        let hints = send("HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n");
        let last = answer("200 OK", MINUTE, format!("<{}>", r.target()));
        [vec![hints], last].concat()
    });
    let server = cached(&backend, "proxy_http_version 1.1;").start();
    assert_eq!(fill(&server, "/a").text(), "</a>");
    let hit = get(&server, "/a", "HIT");
    assert_eq!((hit.status, hit.header("Link")), (200, None));
}

/// A server that fails with and without the lock: waiting requests ask it themselves.
#[test]
fn requests_that_wait_for_a_failed_fill_are_answered() {
    let gate = Gate::default();
    let of_script = gate.clone();
    let backend = Backend::answering(move |r| match (r.target(), r.connection) {
        ("/a", 1) => vec![Step::Gate(of_script.clone()), Step::Close],
        (target, _) => answer("200 OK", MINUTE, format!("<{target}>")),
    });
    let lock = "proxy_cache_lock on; proxy_cache_lock_timeout 60s; proxy_cache_lock_age 60s;";
    let server = cached(&backend, lock).start();
    let mut clients: Vec<_> = (0..20).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send(request("GET", "/a", &[]));
    }
    wait_until("one is sent", || backend.request_count() == 1);
    wait_for_requests(&server, clients.len());
    gate.open();
    let mut failed = 0;
    for client in &mut clients {
        match client.response() {
            answer if answer.status == 502 => failed += 1,
            answer => assert_eq!(answer.text(), "</a>"),
        }
    }
    assert_eq!(failed, 1);
    wait_for_stored(&server, "</a>");
}

/// Responses are stored whole or not at all, whenever the processes are killed.
#[test]
fn after_a_kill_in_a_fill_nothing_short_is_served() {
    for received in [0, 1, 4096, LARGE] {
        let gate = Gate::default();
        let of_script = gate.clone();
        let backend = Backend::answering(move |r| {
            let body = large();
            let (first, rest) = body.split_at(received);
            let mut steps = vec![send(CHUNKED)];
            if !first.is_empty() {
                steps.push(chunk(first));
            }
            if r.connection == 1 {
                steps.push(Step::Gate(of_script.clone()));
            }
            steps.extend([chunk(rest), chunk("")]);
            steps
        });
        let mut server = cached(&backend, "proxy_http_version 1.1;").start();
        let mut client = server.client();
        client.send(request("GET", "/a", &[]));
        client.response_to_head();
        client.bytes(received);
        assert!(files(&server).is_empty());
        server.kill();
        gate.open();
        server.launch(false);
        let answer = server.get("/a");
        assert_ne!(status_of(&answer), "HIT", "{received}");
        assert!(answer.body == large(), "{received}");
        wait_for_stored(&server, "<the end>");
        assert!(get(&server, "/a", "HIT").body == large(), "{received}");
    }
}

/// Requests that wait for a response which is no response of its own send theirs at the same time.
#[test]
fn requests_that_wait_for_a_redirected_response_are_answered() {
    if !peer::is_firstbyte() {
        return;
    }
    let gate = Gate::default();
    let of_script = gate.clone();
    let backend = Backend::answering(move |r| match r.connection {
        1 => {
            let lines = ["X-Accel-Redirect: /plain"];
            let mut steps = vec![Step::Gate(of_script.clone())];
            steps.extend(answer("200 OK", &lines, "no"));
            steps
        }
        _ => answer("200 OK", MINUTE, "yes"),
    });
    let server = cached(&backend, "proxy_cache_lock on;").start();
    let mut clients: Vec<_> = (0..4).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send(request("GET", "/a", &[]));
    }
    wait_for_requests(&server, 4);
    gate.open();
    let statuses: Vec<u16> = clients.iter_mut().map(|c| c.response().status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 1);
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 3);
    assert_eq!(backend.request_count(), 4, "each sends its own");
}

/// The parts of a body that is being received come in its order, so several parts at once are not sent.
#[test]
fn several_parts_of_a_response_being_received_are_the_whole() {
    if !peer::is_firstbyte() {
        return;
    }
    let gate = Gate::default();
    let of_script = gate.clone();
    let backend = Backend::answering(move |_| {
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\n";
        let gate = Step::Gate(of_script.clone());
        vec![send(format!("{head}01234")), gate, send("56789")]
    });
    let server = cached(&backend, "proxy_cache_lock on;").start();
    let mut first = server.client();
    first.send(request("GET", "/a", &[]));
    wait_until("it is sent", || backend.request_count() == 1);
    let mut many = server.client();
    many.send(request("GET", "/a", &["Range: bytes=7-9,0-2"]));
    let mut one = server.client();
    one.send(request("GET", "/a", &["Range: bytes=3-6"]));
    wait_for_requests(&server, 3);
    gate.open();
    assert_eq!(first.response().text(), "0123456789");
    let answer = many.response();
    assert_eq!((answer.status, answer.text().as_str()), (200, "0123456789"));
    let answer = one.response();
    assert_eq!((answer.status, answer.text().as_str()), (206, "3456"));
    assert_eq!(backend.request_count(), 1);
    wait_for_stored(&server, "0123456789");
    let many = server.client().get_with("/a", &["Range: bytes=7-9,0-2"]);
    assert_eq!(many.status, 206, "a stored body is sent in any order");
}
