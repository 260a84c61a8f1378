//! `Location` and other fields made of the request: nothing in them comes together to mean something else.
//!
//! Sources: RFC 9110 section 5.5; WHATWG URL, section 4.4 (browsers leave out tabs and line ends and take `\` for a slash).

use firstbyte_tests::Server;

fn server() -> Server {
    Server::http(
        "server {
             listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; absolute_redirect off;
             location /capture { rewrite ^/capture(.*)$ $1 redirect; }
             location /named { rewrite ^/named(?<rest>.*)$ $rest redirect; }
             location / { return 302 $uri; }
         }",
    )
    .start()
}

/// The URL to which a browser resolves a `Location` that is a path.
fn as_browsers_read(location: &str) -> String {
    let kept = location
        .chars()
        .filter(|c| !matches!(c, '\t' | '\r' | '\n'));
    let kept: String = kept.collect();
    kept.trim_matches(|c: char| c <= ' ').replace('\\', "/")
}

#[test]
fn a_redirect_to_the_same_server_never_leads_to_another() {
    let server = server();
    for prefix in ["", "/capture", "/named"] {
        for attack in [
            "/%0d/evil.example",
            "/%0a/evil.example",
            "/%0d%0a/evil.example",
            "/%09/evil.example",
            "/%09%0d%09/evil.example",
            "/%5cevil.example",
            "/%5c/evil.example",
            "/%0b/evil.example",
            "/%1f/evil.example",
            "/%7f/evil.example",
        ] {
            let answer = server.get(&format!("{prefix}{attack}"));
            let Some(location) = answer.header("Location") else {
                // A dot in the expression is no line end.
                assert_eq!(answer.status, 404, "{prefix}{attack}");
                continue;
            };
            assert_eq!(answer.status, 302, "{attack}");
            let read = as_browsers_read(location);
            assert!(!read.starts_with("//"), "{prefix}{attack}: {location:?}");
            let is_plain = |byte: u8| (0x21..0x7f).contains(&byte) && byte != b'\\';
            assert!(location.bytes().all(is_plain), "{attack}: {location:?}");
        }
    }
}

#[test]
fn what_is_encoded_is_what_was_asked_for() {
    let server = server();
    for (path, location) in [
        ("/%0d/x", "/%0D/x"),
        ("/%0a/x", "/%0A/x"),
        ("/%09/x", "/%09/x"),
        ("/a%5cb", "/a%5Cb"),
        ("/a%20b", "/a b"),
        ("/%c3%a4", "/ä"),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.header("Location"), Some(location), "{path}");
    }
}

#[test]
fn line_ends_stay_visible_in_other_fields() {
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; location / { add_header X-Uri $uri always; return 204; } }",
    )
    .start();
    for (path, value) in [
        ("/a%0d%0aSet-Cookie:%20x=y", "/a%0D%0ASet-Cookie: x=y"),
        ("/a%09b%5c", "/a\tb\\"),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.header("X-Uri"), Some(value), "{path}");
        assert_eq!(answer.header("Set-Cookie"), None, "{path}");
    }
}

#[test]
fn an_added_location_is_encoded_as_well() {
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; location / { add_header Location $uri; return 201; } }",
    )
    .start();
    let answer = server.get("/%09/evil.example");
    assert_eq!(answer.header("Location"), Some("/%09/evil.example"));
}
