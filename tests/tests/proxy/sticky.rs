//! `sticky` over threads, reloads and clients that leave; details are in the tests of modules.

use firstbyte_tests::backend::{Backend, Step, ok, send};
use firstbyte_tests::client::request;
use firstbyte_tests::{Server, Signal, wait_until};

/// Two servers that answer with their names, `a` and `b`, and set this cookie.
fn servers() -> [Backend; 2] {
    ["a", "b"].map(|name| Backend::answering(move |_| ok(name)))
}

/// A server with two threads and a group of these servers.
fn server(servers: &[Backend; 2], group: &str) -> Server {
    let [a, b] = servers.each_ref().map(Backend::name);
    Server::http_with(
        "worker_processes 2;",
        &format!(
            "upstream behind {{ server {a} route=a; server {b} route=b; {group} }}
             server {{ listen 127.0.0.1:%%PORT%%;
                 location / {{ proxy_pass http://behind; }}
                 location = /generation {{ return 200 g0; }} }}"
        ),
    )
    .start()
}

#[test]
fn sessions_are_shared_by_threads_and_outlive_reloads() {
    let behind = servers();
    let group = "sticky learn create=$arg_sid lookup=$arg_sid zone=sessions:1m;";
    let server = server(&behind, group);
    let sids: Vec<String> = (0..16).map(|n| format!("/?sid={n}")).collect();
    let first: Vec<String> = sids.iter().map(|path| server.get(path).text()).collect();
    for _ in 0..3 {
        for (path, name) in sids.iter().zip(&first) {
            assert_eq!(server.get(path).text(), *name, "{path}");
        }
    }
    server.rewrite_conf(|conf| conf.replace("200 g0", "200 g1"));
    server.signal(Signal::HUP);
    wait_until("all threads have the new configuration", || {
        (0..8).all(|_| server.get("/generation").text() == "g1")
    });
    for (path, name) in sids.iter().zip(&first) {
        assert_eq!(server.get(path).text(), *name, "{path} after a reload");
    }
}

#[test]
fn a_server_that_drains_keeps_its_clients() {
    let behind = servers();
    let server = server(&behind, "sticky cookie srv;");
    server.rewrite_conf(|conf| conf.replace("route=a", "route=a drain"));
    server.signal(Signal::HUP);
    wait_until("requests of new clients leave it", || {
        (0..8).all(|_| server.get("/").text() == "b")
    });
    for _ in 0..4 {
        let bound = server.client().get_with("/", &["Cookie: srv=a"]);
        assert_eq!(
            (bound.text().as_str(), bound.header("Set-Cookie")),
            ("a", Some("srv=a"))
        );
    }
}

/// The client has the cookie of a response that it did not wait for.
#[test]
fn a_session_is_learned_from_a_response_that_its_client_leaves() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nSet-Cookie: sid=s\r\n\r\n";
    let slow = Backend::answering(move |request| match request.target() {
        "/slow" => vec![send(head), Step::Hold],
        _ => ok("slow"),
    });
    let behind = [slow, Backend::answering(|_| ok("b"))];
    let group = "sticky learn create=$upstream_cookie_sid lookup=$cookie_sid zone=left:32k;";
    let server = Server::http_with(
        "worker_processes 1;",
        &format!(
            "upstream behind {{ server {}; server {}; {group} }}
             server {{ listen 127.0.0.1:%%PORT%%; location / {{ proxy_pass http://behind; }} }}",
            behind[0].name(),
            behind[1].name()
        ),
    )
    .start();
    let mut client = server.client();
    client.send(request("GET", "/slow", &[]));
    assert_eq!(
        client.response_to_head().header("Set-Cookie"),
        Some("sid=s")
    );
    client.reset();
    wait_until("the attempt is given up", || behind[0].open() == 0);
    for n in 2..6 {
        let bound = server.client().get_with("/", &["Cookie: sid=s"]);
        assert_eq!(bound.text(), "slow");
        assert_eq!(
            (behind[0].request_count(), behind[1].request_count()),
            (n, 0)
        );
    }
}
