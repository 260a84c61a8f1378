//! Parameters of a request that tries to forge them, as applications get them.
//!
//! Sources: RFC 3875 section 4.1.18; nginx documentation, `underscores_in_headers`.

use firstbyte_tests::backend::{Backend, Step};
use firstbyte_tests::client::request;
use firstbyte_tests::{Client, Server, peer};

use super::heads::{ALL, written};
use super::rows::{Gateway, LAST, end_of_request, location};

/// Bytes that an application or a memcached server gets of a request for a target with these fields.
fn told(gateway: Gateway, target: &str, fields: &[&str]) -> String {
    let backend = Backend::scripted(move |_| {
        let answer = match gateway {
            Gateway::Memcached => b"END\r\n".to_vec(),
            _ => written(gateway, b"Content-Type: a/b\r\n\r\nhello"),
        };
        vec![
            Step::Keep(end_of_request(gateway)),
            Step::Send(answer),
            Step::HalfClose,
            Step::Hold,
        ]
    });
    let server = Server::http(&format!(
        "server {{ listen 127.0.0.1:%%PORT%%; underscores_in_headers on; {} }}",
        location(gateway, "/", &backend.name())
    ))
    .start();
    let mut client = Client::connect(server.port());
    let fields = [fields, &[LAST]].concat();
    client.send(request("GET", target, &fields));
    let status = client.response().status;
    assert!([200, 404].contains(&status), "{gateway:?}: {status}");
    let kept = backend.kept();
    String::from_utf8_lossy(&kept).into_owned()
}

// nginx passes the field on: https://httpoxy.org/
#[test]
fn a_field_of_the_name_proxy_is_never_a_parameter() {
    for gateway in ALL {
        for name in ["Proxy", "proxy", "PROXY"] {
            let field = format!("{name}: http://evil.example:8080/");
            let told = told(gateway, "/", &[&field, "X-Other: here"]);
            assert!(told.contains("HTTP_X_OTHER"), "{gateway:?}: {told:?}");
            if peer::is_firstbyte() {
                assert!(!told.contains("HTTP_PROXY"), "{gateway:?}: {told:?}");
                assert!(!told.contains("evil.example"), "{gateway:?}: {told:?}");
            }
        }
        let told = told(gateway, "/", &["Proxy-Connection: keep-alive"]);
        assert!(
            told.contains("HTTP_PROXY_CONNECTION"),
            "{gateway:?}: another name"
        );
    }
}

#[test]
fn names_that_become_one_parameter_come_once() {
    for gateway in ALL {
        for fields in [
            ["X-Y: dash", "X_Y: underscore"],
            ["X_Y: underscore", "X-Y: dash"],
        ] {
            let told = told(gateway, "/", &fields);
            if peer::is_firstbyte() {
                assert_eq!(told.matches("HTTP_X_Y").count(), 1, "{gateway:?}: {told:?}");
                assert!(!told.contains("underscore"), "{gateway:?}: {told:?}");
            }
            assert!(told.contains("dash"), "{gateway:?}: {told:?}");
        }
    }
}

#[test]
fn nothing_in_a_key_of_memcached_ends_a_word_or_a_line() {
    for (target, line) in [
        ("/plain", "get /plain\r\n"),
        ("/a%20b", "get /a%20b\r\n"),
        (
            "/a%0d%0aset%20x%200%200%201",
            "get /a%0D%0Aset%20x%200%200%201\r\n",
        ),
        ("/%09%01%25", "get /%09%01%25\r\n"),
        ("/%7f%c3%a9", "get /\x7f\u{e9}\r\n"),
    ] {
        assert_eq!(told(Gateway::Memcached, target, &[]), line);
    }
}
