//! Which `server` answers: by address and port first, then by name.
//!
//! Source: nginx's "Server names" and "How nginx processes a request".

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use firstbyte_tests::{Client, Server};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with};

/// A server block on the first port that returns its own label and `$server_name`.
fn block(label: &str, listen: &str, names: &str) -> String {
    let names = if names.is_empty() {
        String::new()
    } else {
        format!("server_name {names};")
    };
    format!("server {{ listen {listen}; {names} return 200 \"{label} $server_name\"; }}\n")
}

fn ask(client: &mut Client, host: &str) -> String {
    let host = format!("Host: {host}");
    client.get_with("/", &[&host]).text()
}

#[track_caller]
fn assert_labels(server: &Server, cases: &[(&str, &str)]) {
    let mut client = server.client();
    for (host, wanted) in cases {
        let text = ask(&mut client, host);
        assert_eq!(text.split(' ').next(), Some(*wanted), "{host}: {text}");
    }
}

#[test]
fn exact_before_leading_star_before_trailing_star_before_regex() {
    let listen = "127.0.0.1:%%PORT%%";
    let http = [
        block("first", listen, "first.example"),
        block("regex", listen, "~^www\\.(?<rest>.+)$"),
        block("later-regex", listen, "~^www"),
        block("trailing", listen, "www.example.*"),
        block("leading", listen, "*.example.org"),
        block("longer-leading", listen, "*.sub.example.org"),
        block("exact", listen, "www.example.org second.example"),
        block("dot", listen, ".dot.example"),
        block("upper", listen, "UPPER.example"),
    ]
    .concat();
    let server = Server::http(&http).start();
    assert_labels(
        &server,
        &[
            ("www.example.org", "exact"),
            ("second.example", "exact"),
            ("WWW.Example.ORG", "exact"),
            ("www.example.org:8080", "exact"),
            ("www.example.org.", "exact"),
            ("a.example.org", "leading"),
            ("a.b.example.org", "leading"),
            ("a.sub.example.org", "longer-leading"),
            ("example.org", "first"),
            ("www.example.com", "trailing"),
            ("www.example.co.uk", "trailing"),
            ("www.other", "regex"),
            ("wwwx", "later-regex"),
            ("dot.example", "dot"),
            ("a.dot.example", "dot"),
            ("xdot.example", "first"),
            ("upper.EXAMPLE", "upper"),
            ("unknown", "first"),
        ],
    );
}

#[test]
fn default_server_takes_what_no_name_fits() {
    let http = [
        block("first", "127.0.0.1:%%PORT%%", "a.example"),
        block("default", "127.0.0.1:%%PORT%% default_server", "b.example"),
    ]
    .concat();
    let server = Server::http(&http).start();
    assert_labels(
        &server,
        &[
            ("a.example", "first"),
            ("b.example", "default"),
            ("c.example", "default"),
        ],
    );
    let mut client = server.client();
    assert_eq!(
        client.send("GET / HTTP/1.0\r\n\r\n").response().text(),
        "default b.example",
        "no Host at all"
    );
}

#[test]
fn an_empty_name_takes_requests_without_a_host() {
    let http = [
        block("first", "127.0.0.1:%%PORT%%", "a.example"),
        block("nameless", "127.0.0.1:%%PORT%%", "\"\""),
    ]
    .concat();
    let server = Server::http(&http).start();
    assert_eq!(
        server
            .client()
            .send("GET / HTTP/1.0\r\n\r\n")
            .response()
            .text(),
        "nameless "
    );
    assert_labels(&server, &[("unknown", "first")]);
}

#[test]
fn names_belong_to_their_port() {
    let http = [
        block("one", "127.0.0.1:%%PORT%%", "a.example"),
        block("two", "127.0.0.1:%%PORT2%%", "b.example"),
        block(
            "both",
            "127.0.0.1:%%PORT%%; listen 127.0.0.1:%%PORT2%%",
            "c.example",
        ),
    ]
    .concat();
    let server = Server::http(&http).start();
    assert_labels(
        &server,
        &[
            ("a.example", "one"),
            ("b.example", "one"),
            ("c.example", "both"),
        ],
    );
    let mut second = Client::connect(server.port_number(2));
    assert_eq!(ask(&mut second, "a.example"), "two b.example");
    assert_eq!(ask(&mut second, "c.example"), "both c.example");
}

#[test]
fn an_address_is_closer_than_any() {
    let http = [
        block("any", "%%PORT%%", "a.example"),
        block("loopback", "127.0.0.1:%%PORT%%", "a.example"),
        block("second", "127.0.0.2:%%PORT%%", "a.example"),
    ]
    .concat();
    let server = Server::http(&http).start();
    assert_labels(&server, &[("a.example", "loopback")]);
    assert_eq!(
        ask(&mut Client::connect_to("127.0.0.2", server.port()), "x"),
        "second a.example"
    );
    assert_eq!(
        ask(&mut Client::connect_to("127.0.0.3", server.port()), "x"),
        "any a.example"
    );
}

#[test]
fn a_regex_name_gives_its_captures() {
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; server_name ~^(www\\.)?(?<site>.+)\\.example$;
                  location / { return 200 \"$site $2 [$1]\"; } }",
    )
    .start();
    let mut client = server.client();
    assert_eq!(ask(&mut client, "www.shop.example"), "shop shop [www.]");
    assert_eq!(ask(&mut client, "blog.example"), "blog blog []");
}

#[test]
fn ipv6_and_unix_sockets_are_listened_on() {
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; listen [::1]:%%PORT%% ipv6only=on; listen unix:%%DIR%%/sock;
                  return 200 \"$remote_addr $server_addr $server_port\"; }",
    )
    .start();
    let port = server.port();
    assert_eq!(
        server.get("/").text(),
        format!("127.0.0.1 127.0.0.1 {port}")
    );
    if let Ok(mut client) = Client::try_connect_to("::1", port) {
        assert_eq!(client.get("/").text(), format!("::1 ::1 {port}"));
        assert_eq!(client.get_with("/", &["Host: [::1]"]).status, 200);
    }
    let socket = server.path("sock");
    let answer = Client::connect_unix(&socket).get("/");
    let expected = format!("unix: unix:{} ", socket.display());
    assert_eq!(answer.text(), expected, "a socket has no port");
    server.stop();
    assert!(!socket.exists(), "a stopped server takes its socket away");
}

/// A large body is sent by sendfile, over Multipath TCP too. If the kernel has no Multipath TCP, both ends use TCP.
#[test]
fn clients_of_either_protocol_reach_a_multipath_listener() {
    let body = "0123456789abcdef".repeat(64 << 10);
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%% multipath; root %%DIR%%/html; keepalive_timeout 0; }",
    )
    .file("html/large", &body)
    .allow("socket(IPPROTO_MPTCP)")
    .start();
    let flags = SocketFlags::CLOEXEC;
    for protocol in [None, Some(ipproto::MPTCP)] {
        let Ok(socket) = socket_with(AddressFamily::INET, SocketType::STREAM, flags, protocol)
        else {
            continue;
        };
        let address = SocketAddr::from(([127, 0, 0, 1], server.port()));
        connect(&socket, &address).expect("the server accepts");
        let mut stream = TcpStream::from(socket);
        let request = b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n";
        stream.write_all(request).expect("the request is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the response");
        let (head, got) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(got == body, "{protocol:?}: {} bytes", got.len());
    }
}

#[test]
fn a_port_range_and_reuseport_and_options_are_accepted() {
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%% reuseport backlog=64 rcvbuf=32k sndbuf=32k deferred so_keepalive=30m::10;
                  return 200 ok; }
         server { listen 127.0.0.1:%%PORT2%%-%%PORT2%% bind; return 200 range; }",
    )
    .start();
    assert_eq!(server.get("/").text(), "ok");
    assert_eq!(
        Client::connect(server.port_number(2)).get("/").text(),
        "range"
    );
}
