//! Clients' certificates over sockets: accepted ones, and the errors of the others.
//!
//! Source: nginx documentation, `ssl_verify_client`, `ssl_client_certificate`.

use crate::tls_client::{Tls, authority, client, site};
use firstbyte_tests::{Server, peer};

#[test]
fn clients_are_let_in_by_their_certificates() {
    let (leaf, ours, others) = (site("localhost"), authority("Ours"), authority("Others"));
    let (known, strange) = (client("known", &ours), client("strange", &others));
    let server = Server::http(
        "ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
         ssl_client_certificate %%DIR%%/ca.pem;
         server { listen 127.0.0.1:%%PORT%% ssl; server_name on; ssl_verify_client on;
           return 200 \"$ssl_client_verify $ssl_client_s_dn\"; }
         server { listen 127.0.0.1:%%PORT%% ssl; server_name optional; ssl_verify_client optional;
           return 200 \"$ssl_client_verify $ssl_client_s_dn\"; }
         server { listen 127.0.0.1:%%PORT%% ssl; server_name any; ssl_verify_client optional_no_ca;
           return 200 \"$ssl_client_verify $ssl_client_s_dn\"; }
         server { listen 127.0.0.1:%%PORT%% ssl; server_name open;
           return 200 \"$ssl_client_verify $ssl_client_s_dn\"; }",
    )
    .bytes("c.pem", leaf.certificate.as_bytes())
    .bytes("k.pem", leaf.key.as_bytes())
    .bytes("ca.pem", ours.pem().as_bytes())
    .start();
    let port = server.port();
    let (nobody, known, strange) = (Tls::new(), Tls::known_as(&known), Tls::known_as(&strange));
    for name in ["on", "optional", "any"] {
        assert_eq!(known.get(port, name, "/").body, "SUCCESS CN=known");
        // A resumed session has the same result.
        let again = known.get(port, name, "/");
        assert_eq!(again.body, "SUCCESS CN=known");
        assert!(again.resumed || !peer::is_firstbyte());
    }
    let answer = nobody.get(port, "on", "/");
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("No required SSL certificate was sent"));
    let answer = strange.get(port, "on", "/");
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("The SSL certificate error"));
    assert_eq!(nobody.get(port, "optional", "/").body, "NONE ");
    assert_eq!(strange.get(port, "optional", "/").status, 400);
    let answer = strange.get(port, "any", "/").body;
    assert_eq!(
        answer,
        "FAILED:unable to verify the first certificate CN=strange"
    );
    assert_eq!(strange.get(port, "open", "/").body, "NONE ");
    let misdirected = nobody
        .ask(port, "open", "on", "/")
        .expect("the server answers");
    assert_eq!(misdirected.status, 421);
    let log = server.error_log();
    for text in [
        "client sent no required SSL certificate while reading client request headers, client: ",
        "client SSL certificate verify error: (21:unable to verify the first certificate) while",
        "client attempted to request the server name different from the one that was negotiated",
    ] {
        assert!(log.contains(text), "{text} in {log}");
    }
}

#[test]
fn a_session_opens_no_server_that_asks_for_other_certificates() {
    // CVE-2025-23419: one key for tickets, one cache and one name, and another policy towards clients.
    if !peer::knows_nginx(28) {
        return;
    }
    let (leaf, ours, others) = (site("localhost"), authority("Ours"), authority("Others"));
    let known = client("known", &ours);
    let server = Server::http(
        "ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
         ssl_session_cache shared:s:1m; ssl_verify_client on;
         server { listen 127.0.0.1:%%PORT%% ssl; server_name localhost; ssl_client_certificate %%DIR%%/ours.pem;
           return 200 $ssl_client_verify; }
         server { listen 127.0.0.1:%%PORT2%% ssl; server_name localhost; ssl_client_certificate %%DIR%%/others.pem;
           return 200 $ssl_client_verify; }
         server { listen 127.0.0.1:%%PORT3%% ssl; server_name localhost; ssl_verify_client off;
           return 200 open; }",
    )
    .bytes("c.pem", leaf.certificate.as_bytes())
    .bytes("k.pem", leaf.key.as_bytes())
    .bytes("ours.pem", ours.pem().as_bytes())
    .bytes("others.pem", others.pem().as_bytes())
    .start();
    for version in [None, Some(&rustls::version::TLS12)] {
        let client = || match version {
            None => Tls::known_as(&known),
            Some(_) => Tls::known_over_tls12(&known),
        };
        // The client keeps sessions by the name of the server alone, so it offers each of them everywhere.
        let begun = client();
        assert_eq!(begun.get(server.port(), "localhost", "/").body, "SUCCESS");
        let foreign = begun.get(server.port_number(2), "localhost", "/");
        assert!(!foreign.resumed && foreign.status == 400, "{foreign:?}");
        let open = client();
        assert_eq!(
            open.get(server.port_number(3), "localhost", "/").body,
            "open"
        );
        let closed = open.get(server.port_number(2), "localhost", "/");
        assert!(!closed.resumed && closed.status == 400, "{closed:?}");
        let again = client();
        assert_eq!(again.get(server.port(), "localhost", "/").body, "SUCCESS");
        assert!(again.get(server.port(), "localhost", "/").resumed || !peer::is_firstbyte());
    }
}
