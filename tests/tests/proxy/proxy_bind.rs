//! `proxy_bind`: the local address of connections to upstream servers.

use firstbyte_tests::{Server, Signal, peer, wait_until};

/// Two locations with an upstream server that responds with its client's address.
fn site(bound: &str) -> Server {
    Server::http(&format!(
        "server {{ listen 127.0.0.1:%%PORT%%;
            location / {{ proxy_pass http://127.0.0.1:%%PORT2%%; }}
            location /bound {{ proxy_pass http://127.0.0.1:%%PORT2%%; {bound} }} }}
        server {{ listen 127.0.0.1:%%PORT2%%; location / {{ return 200 $remote_addr; }} }}"
    ))
    .start()
}

#[test]
fn connections_come_from_the_address_that_is_written() {
    let server = site("proxy_bind $arg_from;");
    assert_eq!(server.get("/").text(), "127.0.0.1");
    assert_eq!(server.get("/bound?from=127.0.0.2").text(), "127.0.0.2");
    assert_eq!(
        server.get("/bound").text(),
        "127.0.0.1",
        "an empty address is none"
    );
}

#[test]
fn a_worker_of_another_user_may_still_bind_transparently() {
    // The worker can keep this right only if the supervisor is root.
    if !peer::is_root() {
        return;
    }
    let server = site("proxy_bind 127.0.0.3 transparent;");
    assert_eq!(server.get("/bound").text(), "127.0.0.3");
}

/// The old worker has given up the right, so another one is started.
#[test]
fn a_reload_may_begin_to_bind_transparently() {
    if !peer::is_root() {
        return;
    }
    let server = site("");
    assert_eq!(server.get("/bound").text(), "127.0.0.1");
    let before = server.workers();
    server.rewrite_conf(|text| {
        let bound = "location /bound { proxy_bind 127.0.0.3 transparent; ";
        text.replace("location /bound { ", bound)
    });
    server.signal(Signal::HUP);
    wait_until("connections come from the new address", || {
        server.get("/bound").text() == "127.0.0.3"
    });
    wait_until("the old worker ends", || {
        let now = server.workers();
        now.iter().all(|worker| !before.contains(worker))
    });
}
