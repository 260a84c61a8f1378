//! SPDY/3.1 with a client of another project: on node over TLS, with `spdy/3.1` chosen by ALPN.
//!
//! `tests/peers/spdy.js` is that client; `.ci/setup` installs its library.

use crate::tls_client::{Tls, site};
use firstbyte_tests::node::spdy as client;
use firstbyte_tests::{Server, wait_until};

/// A server with bodies of sizes that the client expects.
fn server() -> Server {
    let leaf = site("localhost");
    let pattern = |len: usize| -> Vec<u8> { (0..len).map(|n| b'a' + (n % 23) as u8).collect() };
    let common = "root %%DIR%%/html; client_max_body_size 0;
        location = /ok { return 200 ok; }
        location /protocol { return 200 \"$spdy $server_protocol $http2\"; }
        location /echo { return 200 $args; }
        location /cookies { add_header Set-Cookie a=1; add_header Set-Cookie b=2; return 200 $http_cookie; }";
    Server::http(&format!(
        "ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem; access_log %%DIR%%/access.log;
         server {{ listen 127.0.0.1:%%PORT%% ssl spdy; http2 on; {common} }}
         server {{ listen 127.0.0.1:%%PORT2%% ssl spdy; spdy_headers_comp 9; {common} }}
         server {{ listen 127.0.0.1:%%PORT3%% ssl; {common} }}"
    ))
    .bytes("c.pem", leaf.certificate.as_bytes())
    .bytes("k.pem", leaf.key.as_bytes())
    .file("html/ok.txt", "ok")
    .bytes("html/large", &pattern(300_000))
    .bytes("html/huge", &pattern(10 << 20))
    .start()
}

#[test]
fn requests_are_answered_at_all_levels_of_compression() {
    let server = server();
    for port in [server.port(), server.port_number(2)] {
        let expected = "alpn spdy/3.1\n/ok 200 ok\n/protocol 200 3.1 SPDY/3.1 \n/missing 404 ...\n\
            HEAD 200 300000 0\ncookies [\"a=1\",\"b=2\"] x=1\n";
        assert_eq!(client(port, "basic"), expected);
    }
    wait_until("the requests are logged", || {
        let log = std::fs::read_to_string(server.path("access.log")).unwrap_or_default();
        log.matches("\"GET /ok SPDY/3.1\" 200").count() == 2
    });
}

#[test]
fn hundred_streams_of_all_priorities_are_answered() {
    let server = server();
    for port in [server.port(), server.port_number(2)] {
        assert_eq!(client(port, "many"), "echoed 100\nlarge 20\n");
    }
}

#[test]
fn ten_megabytes_move_each_way() {
    let server = server();
    let expected = "received 200 true\nsent 405\nsent 405\nwrong 400\nafter ok\n";
    assert_eq!(client(server.port(), "bodies"), expected);
}

#[test]
fn streams_that_are_taken_back_harm_no_other() {
    let server = server();
    let expected = "aborted 10\nwhole 10\nping came back\nafter ok\n";
    assert_eq!(client(server.port(), "resets"), expected);
}

#[test]
fn protocol_is_offered_where_it_is_configured() {
    let server = server();
    let all: [&[u8]; 3] = [b"h2", b"spdy/3.1", b"http/1.1"];
    let agreed = |n: usize, offered: &[&[u8]]| {
        let protocol = Tls::speaking(offered).agreed(server.port_number(n), "localhost");
        protocol.unwrap_or_default()
    };
    assert_eq!(agreed(1, &all), "h2");
    assert_eq!(agreed(1, &all[1..]), "spdy/3.1");
    assert_eq!(agreed(1, &all[2..]), "http/1.1");
    assert_eq!(agreed(2, &all), "spdy/3.1");
    assert_eq!(agreed(3, &all), "http/1.1");
    // All protocols on one port.
    assert_eq!(
        Tls::new().get(server.port(), "localhost", "/protocol").body,
        " HTTP/1.1 "
    );
}
