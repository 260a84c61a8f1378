//! The PROXY protocol before the first request: addresses in its header, and malformed headers.
//!
//! Source: nginx's documentation of `listen` and of ngx_http_realip_module.

use firstbyte_tests::client::request;
use firstbyte_tests::{Builder, Client, Server};

const V1: &str = "PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n";

fn site(directives: &str) -> Builder {
    Server::http(&format!(
        "log_format who '$remote_addr $proxy_protocol_addr';
         {directives}
         server {{ listen 127.0.0.1:%%PORT%% proxy_protocol; access_log %%DIR%%/who.log who;
             set_real_ip_from 127.0.0.0/8;
             location / {{ return 200 \"$remote_addr $proxy_protocol_addr:$proxy_protocol_port \
             $proxy_protocol_server_addr:$proxy_protocol_server_port\"; }}
             location /real {{ real_ip_header proxy_protocol; add_header X-R $realip_remote_addr;
                 try_files /none /real/2; }}
             location /real/2 {{ real_ip_header proxy_protocol; return 200 \"$remote_addr:$remote_port\"; }} }}
         server {{ listen 127.0.0.1:%%PORT2%%; location / {{ return 200 \"-$proxy_protocol_addr-\"; }} }}"
    ))
}

#[test]
fn header_names_the_client_for_every_request_of_the_connection() {
    let server = site("").start();
    let mut client = server.client();
    client.send(V1);
    for _ in 0..3 {
        let text = client.get("/").text();
        assert_eq!(text, "127.0.0.1 192.0.2.1:123 192.0.2.2:5678");
    }
    assert_eq!(client.get("/real").text(), "192.0.2.1:123");
}

#[test]
fn header_may_come_in_pieces_and_with_the_request() {
    let server = site("").start();
    let whole = V1.to_owned() + &request("GET", "/", &[]);
    for cut in 1..whole.len() {
        let mut client = server.client();
        client.send(&whole[..cut]);
        client.send(&whole[cut..]);
        assert_eq!(client.response().status, 200, "cut at {cut}");
    }
}

#[test]
fn header_that_names_nobody_leaves_the_connections_own_address() {
    let server = site("").start();
    let mut client = server.client();
    client.send("PROXY UNKNOWN\r\n");
    assert_eq!(client.get("/").text(), "127.0.0.1 : :");
    assert_eq!(
        client.get("/real").text().split(':').next(),
        Some("127.0.0.1")
    );
    let mut local = server.client();
    local.send(b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0");
    assert_eq!(local.get("/").text(), "127.0.0.1 : :");
}

#[test]
fn connection_without_the_header_is_closed_and_logged() {
    let server = site("").allow("broken header").start();
    let mut client = server.client();
    client.send(request("GET", "/", &[]));
    assert_eq!(client.rest(), b"");
    let log = server.wait_for_text("error.log", "while reading PROXY protocol");
    let line = format!(
        "broken header: \"GET / HTTP/1.1\" while reading PROXY protocol, client: 127.0.0.1, \
         server: 127.0.0.1:{}",
        server.port()
    );
    assert!(log.contains(&line), "{log}");
    let mut client = server.client();
    client.send(b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\0");
    assert_eq!(client.rest(), b"");
    server.wait_for_text("error.log", "unknown PROXY protocol version: 3");
    // The first bytes were no request.
    server.client().send(V1).get("/");
    let who = server.wait_for_text("who.log", "192.0.2.1");
    assert_eq!(who, "127.0.0.1 192.0.2.1\n");
}

#[test]
fn impossible_addresses_and_ports_break_the_header() {
    let server = site("").allow("broken header").start();
    for line in [
        "TCP4 999.1.1.1 192.0.2.2 1 2",
        "TCP4 192.0.2.1 192.0.2.2.2 1 2",
        "TCP4  192.0.2.2 1 2",
        "TCP6 2001:db8:::1 2001:db8::2 1 2",
        "TCP4 192.0.2.1 192.0.2.2 65536 2",
        "TCP4 192.0.2.1 192.0.2.2 1 65536",
        "TCP4 192.0.2.1 192.0.2.2 +1 2",
        "TCP4 192.0.2.1 192.0.2.2 1 +2",
        "TCP4 192.0.2.1 192.0.2.2 1",
        "TCP4 192.0.2.1",
    ] {
        let mut client = server.client();
        client.send(format!("PROXY {line}\r\n{}", request("GET", "/", &[])));
        assert_eq!(client.rest(), b"", "{line}");
        let said = format!("broken header: \"PROXY {line}\" while");
        server.wait_for_text("error.log", &said);
    }
}

#[test]
fn addresses_of_the_other_family_name_the_client_and_port_0_is_empty() {
    let server = site("").start();
    for (line, shown) in [
        ("TCP6 192.0.2.1 192.0.2.2 1 2", "192.0.2.1:1 192.0.2.2:2"),
        ("TCP4 ::1 192.0.2.2 0 0", "::1: 192.0.2.2:"),
    ] {
        let mut client = server.client();
        client.send(format!("PROXY {line}\r\n"));
        assert_eq!(client.get("/").text(), format!("127.0.0.1 {shown}"));
    }
}

/// Source: nginx 1.31.4, compared side by side.
#[test]
fn a_unix_socket_is_named_by_its_path() {
    let server = Server::http(
        "server { listen unix:%%DIR%%/s proxy_protocol; listen 127.0.0.1:%%PORT%%;
             set_real_ip_from unix:; real_ip_header proxy_protocol;
             return 200 \"$server_addr [$server_port] $remote_addr [$remote_port]\"; }",
    )
    .allow("broken header")
    .start();
    let socket = server.path("s");
    let address = format!("unix:{}", socket.display());
    let mut client = Client::connect_unix(&socket);
    client.send(V1);
    assert_eq!(
        client.get("/").text(),
        format!("{address} [] 192.0.2.1 [123]")
    );
    let mut nobody = Client::connect_unix(&socket);
    nobody.send("PROXY UNKNOWN\r\n");
    assert_eq!(nobody.get("/").text(), format!("{address} [] unix: []"));
    Client::connect_unix(&socket).send("GET / HTTP/1.1\r\n");
    let line = format!("while reading PROXY protocol, client: unix:, server: {address}\n");
    server.wait_for_text("error.log", &line);
}

#[test]
fn client_that_never_sends_the_header_is_closed_in_time() {
    let server = site("client_header_timeout 300ms;").start();
    let mut client = server.client();
    client.send("PROXY TCP4 ");
    assert!(client.closed());
}

#[test]
fn other_addresses_take_no_header() {
    let server = site("").start();
    let mut client = Client::connect(server.port_number(2));
    assert_eq!(client.get("/").text(), "--");
    client.send(V1);
    assert_eq!(client.response().status, 400);
}
