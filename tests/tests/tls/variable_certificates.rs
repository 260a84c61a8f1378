//! Certificates that variables name, over sockets: by name, from data, from a cache, and when there is none.
//!
//! Source: nginx documentation, `ssl_certificate`, `ssl_certificate_cache`.

use crate::tls_client::{Leaf, Tls, site};
use firstbyte_tests::{Builder, Server, peer};

/// A server with a certificate for each name, and files for them.
fn by_name(more: &str, leaves: &[(&str, &Leaf)]) -> Builder {
    let template = format!(
        "ssl_certificate %%DIR%%/$ssl_server_name.crt; ssl_certificate_key %%DIR%%/$ssl_server_name.key;
         server {{ listen 127.0.0.1:%%PORT%% ssl; server_name _; {more}
           return 200 \"$ssl_server_name $ssl_session_reused\"; }}"
    );
    let mut builder = Server::http(&template);
    for (name, leaf) in leaves {
        builder = builder
            .bytes(&format!("{name}.crt"), leaf.certificate.as_bytes())
            .bytes(&format!("{name}.key"), leaf.key.as_bytes());
    }
    builder
}

fn put(server: &Server, name: &str, leaf: &Leaf) {
    server
        .dir()
        .write(&format!("{name}.crt"), &leaf.certificate);
    server.dir().write(&format!("{name}.key"), &leaf.key);
}

#[test]
fn each_name_has_its_own_files_read_at_each_handshake() {
    let (one, two, three) = (site("one"), site("two"), site("three"));
    let server = by_name("", &[("one.example", &one), ("two.example", &two)]).start();
    let port = server.port();
    assert!(Tls::new().get(port, "one.example", "/").is_from(&one));
    assert!(Tls::new().get(port, "two.example", "/").is_from(&two));
    put(&server, "one.example", &three);
    assert!(Tls::new().get(port, "one.example", "/").is_from(&three));
}

#[test]
fn sessions_are_bound_to_the_certificate_that_was_shown() {
    if !peer::is_firstbyte() {
        // nginx binds them to the words of the directive.
        return;
    }
    let (one, two) = (site("one"), site("two"));
    let server = by_name("", &[("one.example", &one)]).start();
    let client = Tls::new();
    assert_eq!(
        client.get(server.port(), "one.example", "/").body,
        "one.example ."
    );
    assert_eq!(
        client.get(server.port(), "one.example", "/").body,
        "one.example r"
    );
    put(&server, "one.example", &two);
    let answer = client.get(server.port(), "one.example", "/");
    assert!(!answer.resumed && answer.is_from(&two), "{answer:?}");
}

#[test]
fn a_certificate_that_cannot_be_loaded_fails_its_handshake_alone() {
    let (one, two) = (site("one"), site("two"));
    let server = by_name(
        "",
        &[
            ("one.example", &one),
            ("mixed.example", &one),
            ("junk.example", &one),
        ],
    )
    .start();
    let port = server.port();
    server.dir().write("mixed.example.key", &two.key);
    server.dir().write("junk.example.crt", "nothing");
    for name in ["none.example", "mixed.example", "junk.example"] {
        assert!(Tls::new().ask(port, name, name, "/").is_err(), "{name}");
    }
    assert!(Tls::new().get(port, "one.example", "/").is_from(&one));
    let log = server.wait_for_text("error.log", "no start line");
    for text in [
        "none.example.crt\": BIO_new_file() failed (SSL: error:80000002:system library::No such file",
        "mixed.example.key\") failed (SSL: error:05800074:x509 certificate routines::key values mismatch)",
        "while SSL handshaking, client: 127.0.0.1",
    ] {
        assert!(log.contains(text), "{text:?} is not in {log}");
    }
    assert!(!log.contains("PRIVATE KEY"));
}

#[test]
fn a_name_that_is_no_host_name_names_no_file() {
    if !peer::is_firstbyte() {
        return;
    }
    let one = site("one");
    let server = by_name("", &[("one.example", &one)]).start();
    // Without the name, ".crt" is left of the words, and no such file exists.
    let mut nameless = Tls::new();
    nameless.send_no_name();
    assert!(
        nameless
            .ask(server.port(), "one.example", "one.example", "/")
            .is_err()
    );
    server.wait_for_text("error.log", "/.crt\"");
}

#[test]
fn data_of_a_variable_is_taken() {
    let (one, two) = (site("one"), site("two"));
    let template = format!(
        "map $ssl_server_name $text {{ default \"{}\"; two \"{}\"; }}
         map $ssl_server_name $secret {{ default \"{}\"; two \"{}\"; }}
         server {{ listen 127.0.0.1:%%PORT%% ssl; server_name _; return 200 ok;
           ssl_certificate data:$text; ssl_certificate_key data:$secret; }}",
        one.certificate, two.certificate, one.key, two.key
    );
    let server = Server::http(&template).start();
    assert!(Tls::new().get(server.port(), "one", "/").is_from(&one));
    assert!(Tls::new().get(server.port(), "two", "/").is_from(&two));
}

#[test]
fn a_cache_keeps_certificates_while_they_are_valid() {
    if !peer::is_firstbyte() && !peer::knows_nginx(28) {
        return;
    }
    let (one, two) = (site("one"), site("two"));
    let server = by_name("ssl_certificate_cache max=4;", &[("one.example", &one)]).start();
    let port = server.port();
    assert!(Tls::new().get(port, "one.example", "/").is_from(&one));
    put(&server, "one.example", &two);
    assert!(
        Tls::new().get(port, "one.example", "/").is_from(&one),
        "from the cache"
    );
    put(&server, "a", &two);
    put(&server, "b", &two);
    assert!(Tls::new().get(port, "a", "/").is_from(&two));
    assert!(Tls::new().get(port, "b", "/").is_from(&two));
    assert!(
        Tls::new().get(port, "one.example", "/").is_from(&two),
        "there was room for two"
    );
}
