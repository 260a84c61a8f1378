//! Clients' certificates over sockets: who gets in, and what the others are told.
//!
//! Source: nginx documentation, `ssl_verify_client`, `ssl_client_certificate`.

mod tls_client;

use firstbyte_tests::{Server, peer};
use tls_client::{Tls, authority, client, site};

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
        // The same by a session that is resumed.
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
