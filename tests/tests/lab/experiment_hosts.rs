//! `experiment`: protocols of hosts of arms, and requests for them on connections of other hosts.
//!
//! Sources: docs/experiments.md; RFC 9110 section 15.5.20 for 421; RFC 9113 section 9.1.1 for requests to several hosts on one
//! connection.

use crate::tls_client::{Tls, site as leaf_of};
use firstbyte_tests::tls_pipe::tls_pipe_to;
use firstbyte_tests::{H2Client, Server, SpdyClient};

/// A site with several hosts on one TLS address. Three of four arms have protocols of their own.
fn tls_site() -> Server {
    let leaf = leaf_of("localhost");
    let servers = ["a.test", "b.test", "c.test", "d.test", "other.test"].map(|name| {
        format!(
            "server {{ listen 127.0.0.1:%%PORT%% ssl; http2 off; server_name {name}; return 200 {name}; }}"
        )
    });
    Server::http(&format!(
        "experiment_key %%DIR%%/key; access_log off;
         ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
         experiment x {{ user address;
             arm a host=a.test protocols=http/1.1;
             arm b host=b.test protocols=h2,http/1.1;
             arm c host=c.test protocols=spdy/3.1,http/1.1;
             arm d host=d.test; }}
         server {{ listen 127.0.0.1:%%PORT%% ssl default_server; http2 on; server_name _; return 200 default; }}
         {}",
        servers.concat()
    ))
    .bytes("c.pem", leaf.certificate.as_bytes())
    .bytes("k.pem", leaf.key.as_bytes())
    .file("key", "0123456789abcdef0123456789abcdef\n")
    .start()
}

#[test]
fn hosts_of_arms_offer_their_protocols() {
    let server = tls_site();
    let port = server.port();
    let all: [&[u8]; 3] = [b"h2", b"spdy/3.1", b"http/1.1"];
    for (name, protocol) in [
        ("a.test", "http/1.1"),
        ("b.test", "h2"),
        ("c.test", "spdy/3.1"),
        ("d.test", "http/1.1"),
        ("other.test", "http/1.1"),
        ("unknown.test", "h2"),
    ] {
        assert_eq!(
            Tls::speaking(&all).agreed(port, name).as_deref(),
            Some(protocol),
            "{name}"
        );
        let only_http1 = Tls::speaking(&[b"http/1.1"]).agreed(port, name);
        assert_eq!(only_http1.as_deref(), Some("http/1.1"), "{name}");
    }
    // The client uses the negotiated protocol.
    let mut client = SpdyClient::connect(tls_pipe_to("c.test", port, "spdy/3.1"));
    assert_eq!(client.ask_host("c.test").1, "c.test");
    drop(client);
    let mut client = H2Client::connect(tls_pipe_to("b.test", port, "h2"));
    assert_eq!(client.ask_host("b.test").1, "b.test");
}

/// A request for a host.
trait AsksHost {
    /// Returns status and text of the response.
    fn ask_host(&mut self, host: &str) -> (u16, String);
}

impl AsksHost for H2Client {
    fn ask_host(&mut self, host: &str) -> (u16, String) {
        let fields = [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", host),
            (":path", "/"),
        ];
        let stream = self.headers(&fields, true);
        let reply = self.reply(stream);
        (reply.status, reply.text())
    }
}

impl AsksHost for SpdyClient {
    fn ask_host(&mut self, host: &str) -> (u16, String) {
        let fields = [
            (":method", "GET"),
            (":scheme", "https"),
            (":host", host),
            (":path", "/"),
            (":version", "HTTP/1.1"),
        ];
        let stream = self.syn(&fields, 0, true);
        let reply = self.reply(stream);
        (reply.status, reply.text())
    }
}

/// A client that uses one connection for all hosts of one address, as browsers do if the certificate allows it.
#[test]
fn arms_share_no_connection_with_other_hosts() {
    let server = tls_site();
    let port = server.port();
    let served = |host: &str| (200, host.to_owned());
    let mut client = H2Client::connect(tls_pipe_to("b.test", port, "h2"));
    assert_eq!(client.ask_host("b.test"), served("b.test"));
    for host in ["a.test", "c.test", "d.test", "unknown.test"] {
        assert_eq!(client.ask_host(host).0, 421, "{host}");
    }
    assert_eq!(
        client.ask_host("b.test"),
        served("b.test"),
        "the connection stays"
    );
    // A connection of the default server, which is no arm.
    let mut client = H2Client::connect(tls_pipe_to("unknown.test", port, "h2"));
    assert_eq!(client.ask_host("unknown.test"), served("default"));
    assert_eq!(client.ask_host("b.test").0, 421);
    let mut client = SpdyClient::connect(tls_pipe_to("c.test", port, "spdy/3.1"));
    assert_eq!(client.ask_host("c.test"), served("c.test"));
    for host in ["b.test", "other.test", "unknown.test"] {
        assert_eq!(client.ask_host(host).0, 421, "{host}");
    }
    let mut client = Tls::new();
    for (name, host, status) in [
        ("d.test", "d.test", 200),
        ("d.test", "a.test", 421),
        ("d.test", "other.test", 421),
        ("other.test", "d.test", 421),
        ("other.test", "unknown.test", 200),
        ("unknown.test", "other.test", 200),
    ] {
        let answer = client.ask(port, name, host, "/").expect("an answer");
        assert_eq!(answer.status, status, "{name}, {host}");
    }
    // Without a name in the handshake, a proxy may send requests for all hosts.
    client.send_no_name();
    for host in ["a.test", "d.test", "other.test"] {
        let answer = client.ask(port, host, host, "/").expect("an answer");
        assert_eq!(answer.status, 200, "{host}");
    }
    server.wait_for_text(
        "error.log",
        "requested the host of an arm on a connection of another host",
    );
}

/// Clients without ALPN, and connections without TLS.
#[test]
fn lists_of_protocols_need_tls() {
    let leaf = leaf_of("localhost");
    let server = Server::http(
        "experiment_key %%DIR%%/key; ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
         experiment x { user address; arm a host=a.test protocols=h2,http/1.1; arm b host=b.test protocols=http/1.1; }
         server { listen 127.0.0.1:%%PORT%%; listen 127.0.0.1:%%PORT2%% ssl; server_name a.test; return 200 a; }
         server { listen 127.0.0.1:%%PORT3%%; listen 127.0.0.1:%%PORT4%% ssl; http2 on; server_name b.test; return 200 b; }",
    )
    .bytes("c.pem", leaf.certificate.as_bytes())
    .bytes("k.pem", leaf.key.as_bytes())
    .file("key", "0123456789abcdef0123456789abcdef\n")
    .start();
    // Without TLS, `http2` decides.
    let mut client = H2Client::connect(server.port_number(3));
    assert_eq!(client.ask_host("b.test"), (200, "b".to_owned()));
    assert_eq!(server.get("/").text(), "a");
    let mut client = H2Client::connect(server.port());
    client.get("/");
    client.until_closed();
    assert!(client.replies.is_empty(), "HTTP/1 is expected there");
    assert_eq!(
        Tls::new().get(server.port_number(2), "a.test", "/").body,
        "a"
    );
    let h2 = Tls::speaking(&[b"h2", b"http/1.1"]);
    assert_eq!(
        h2.agreed(server.port_number(4), "b.test").as_deref(),
        Some("http/1.1")
    );
}
