//! What applications are told of a request that would have them believe something.
//!
//! Sources: RFC 3875 section 4.1.18; nginx documentation, `underscores_in_headers`.

use firstbyte_tests::backend::{Backend, Step};
use firstbyte_tests::client::request;
use firstbyte_tests::{Client, Server, peer};

use crate::heads::{ALL, written};
use crate::rows::{Gateway, LAST, end_of_request, location};

/// What an application gets of a request, as bytes.
fn told(gateway: Gateway, fields: &[&str]) -> String {
    let backend = Backend::scripted(move |_| {
        let answer = written(gateway, b"Content-Type: a/b\r\n\r\nhello");
        vec![
            Step::Keep(end_of_request(gateway)),
            Step::Send(answer),
            Step::HalfClose,
            Step::Hold,
        ]
    });
    let server = Server::http(&format!(
        "server {{ listen 127.0.0.1:%%PORT%%; {} }}",
        location(gateway, "/", &backend.name())
    ))
    .start();
    let mut client = Client::connect(server.port());
    let fields = [fields, &[LAST]].concat();
    client.send(request("GET", "/", &fields));
    assert_eq!(client.response().status, 200, "{gateway:?} {fields:?}");
    let kept = backend.kept();
    String::from_utf8_lossy(&kept).into_owned()
}

// nginx passes it on: https://httpoxy.org/
#[test]
fn a_field_of_the_name_proxy_is_never_a_parameter() {
    for gateway in ALL {
        for name in ["Proxy", "proxy", "PROXY"] {
            let field = format!("{name}: http://evil.example:8080/");
            let told = told(gateway, &[&field, "X-Other: here"]);
            assert!(told.contains("HTTP_X_OTHER"), "{gateway:?}: {told:?}");
            if peer::is_firstbyte() {
                assert!(!told.contains("HTTP_PROXY"), "{gateway:?}: {told:?}");
                assert!(!told.contains("evil.example"), "{gateway:?}: {told:?}");
            }
        }
        let told = told(gateway, &["Proxy-Connection: keep-alive"]);
        assert!(
            told.contains("HTTP_PROXY_CONNECTION"),
            "{gateway:?}: another name"
        );
    }
}

#[test]
fn names_that_become_one_parameter_come_once() {
    for gateway in ALL {
        let told = told(gateway, &["X-Y: dash", "X_Y: underscore"]);
        assert_eq!(told.matches("HTTP_X_Y").count(), 1, "{gateway:?}: {told:?}");
        assert!(
            told.contains("dash") && !told.contains("underscore"),
            "{gateway:?}: {told:?}"
        );
    }
}
