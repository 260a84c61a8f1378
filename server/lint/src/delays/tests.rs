//! Each rule with configurations that have its fault, and with configurations that do not.

use std::path::Path;

use conf::Memory;

use super::responses::FIELDS_BYTES_MIN;
use super::*;

fn delays_of(text: &str) -> Delays {
    let source = Memory::default().with_file("/c/n.conf", text);
    delays(source, Path::new("/c/n.conf"), None).expect("the text is whole")
}

/// Codes and lines of findings above a note.
fn titles(text: &str) -> Vec<String> {
    lines(text, |one| one.weight > Weight::Note)
}

fn note_titles(text: &str) -> Vec<String> {
    lines(text, |one| one.weight == Weight::Note)
}

fn lines(text: &str, wanted: impl Fn(&Delay) -> bool) -> Vec<String> {
    let shown = |one: &Delay| {
        let places = one
            .places
            .iter()
            .map(|place| place.replace("/c/n.conf:", ""));
        format!("{} {}", one.code, places.collect::<Vec<_>>().join(","))
    };
    delays_of(text)
        .found
        .iter()
        .filter(|one| wanted(one))
        .map(shown)
        .collect()
}

/// A configuration with compression and a server on lines 2 to 4; line 3 has the settings.
fn http(settings: &str) -> String {
    format!(
        "http {{ gzip on; gzip_types text/css text/javascript;\nserver {{ listen 80;\n{settings}\n}} }}"
    )
}

/// A configuration of that kind with TLS.
fn https(settings: &str) -> String {
    http(&format!("listen 443 ssl; http2 on; {settings}"))
}

#[test]
fn a_sound_configuration_has_notes_alone() {
    assert_eq!(titles(&http("root /a;")), [""; 0]);
    assert_eq!(
        titles(&https("root /a; location / { proxy_pass http://b; }")),
        [""; 0]
    );
    assert_eq!(
        note_titles(&https("")),
        ["no-early-data 2", "tls-record-size 2"]
    );
    assert_eq!(
        note_titles(&https("ssl_early_data on; ssl_buffer_size 4k;")),
        [""; 0]
    );
    assert_eq!(delays_of(&http("")).servers, 1);
}

#[test]
fn nagle_is_found_where_it_holds() {
    assert_eq!(titles(&http("tcp_nodelay off;")), ["delayed-ack-stall 3"]);
    assert_eq!(
        titles(&http("location /a { tcp_nodelay off; }")),
        ["delayed-ack-stall 3"]
    );
    assert_eq!(titles(&http("tcp_nodelay on;")), [""; 0]);
    let overridden =
        "http { gzip on; gzip_types *; tcp_nodelay off;\nserver { listen 80; tcp_nodelay on; }";
    assert_eq!(titles(&format!("{overridden} }}")), [""; 0]);
    assert_eq!(
        titles(&format!("{overridden}\nserver {{ listen 81; }} }}")),
        ["delayed-ack-stall 1"]
    );
}

#[test]
fn connections_that_are_closed_are_found() {
    for setting in [
        "keepalive_timeout 0;",
        "keepalive_timeout 0s 10;",
        "keepalive_requests 1;",
    ] {
        assert_eq!(titles(&http(setting)), ["no-keepalive 3"], "{setting}");
    }
    for setting in [
        "keepalive_timeout 10;",
        "keepalive_timeout 0.5s;",
        "keepalive_requests 2;",
    ] {
        assert_eq!(titles(&http(setting)), [""; 0], "{setting}");
    }
}

#[test]
fn texts_that_are_not_compressed_are_found() {
    let plain = |settings: &str| format!("http {{\nserver {{ listen 80;\n{settings}\n}} }}");
    assert_eq!(titles(&plain("root /a;")), ["no-compression 2"]);
    assert_eq!(titles(&plain("gzip off;")), ["no-compression 3"]);
    assert_eq!(
        titles(&plain("gzip on;")),
        ["no-compression 3"],
        "only text/html"
    );
    assert_eq!(
        titles(&plain("gzip on; gzip_types text/css;")),
        ["no-compression 3"]
    );
    assert_eq!(titles(&plain("gzip on; gzip_types *;")), [""; 0]);
    assert_eq!(titles(&plain("brotli on;")), [""; 0]);
    assert_eq!(
        titles(&plain("return 301 http://b;")),
        [""; 0],
        "it has no texts"
    );
    assert_eq!(titles(&plain("gzip_static on;")), [""; 0]);
    // A location without it may have its reason.
    assert_eq!(titles(&http("location /secret { gzip off; }")), [""; 0]);
    let two = "http {\nserver { listen 80; }\nserver { listen 81; } }";
    assert_eq!(titles(two), ["no-compression 2,3"], "equal ones are one");
}

#[test]
fn types_of_several_lines_and_codings_count() {
    let plain = |settings: &str| format!("http {{\nserver {{ listen 80;\n{settings}\n}} }}");
    for sound in [
        "gzip on; gzip_types text/css; gzip_types application/javascript;",
        "gzip on; brotli on; brotli_types text/css text/javascript;",
        "gzip on; gzip_static on;",
    ] {
        assert_eq!(titles(&plain(sound)), [""; 0], "{sound}");
    }
    assert_eq!(
        titles(&plain("gzip on; brotli_types text/css text/javascript;")),
        ["no-compression 3"],
        "brotli is off"
    );
}

#[test]
fn what_a_server_behind_may_compress_is_warned_of() {
    let weights = |text: &str| -> Vec<Weight> {
        let shown = delays_of(text).found.into_iter();
        let compression = shown.filter(|one| one.code == "no-compression");
        compression.map(|one| one.weight).collect()
    };
    let plain = |settings: &str| format!("http {{ server {{ listen 80; {settings} }} }}");
    let passed = "location / { proxy_pass http://b; }";
    assert_eq!(weights(&plain(passed)), [Weight::Warn]);
    assert_eq!(
        weights(&plain(&format!("gzip on; {passed}"))),
        [Weight::Warn]
    );
    let files = format!("{passed} location /static {{ root /a; }}");
    assert_eq!(weights(&plain(&files)), [Weight::Bad], "its own files");
    assert_eq!(
        weights(&plain(&format!("gzip on; {files}"))),
        [Weight::Warn, Weight::Bad]
    );
}

#[test]
fn servers_that_only_redirect_and_refuse_have_no_texts() {
    let challenge = "location ^~ /.well-known/acme-challenge/ { root /a; }";
    for settings in [
        "location / { return 301 https://$host$request_uri; }",
        "if ($host = a) { return 301 https://a$request_uri; } return 404;",
        "rewrite ^/(.*)$ https://a/$1 permanent;",
        "location / { rewrite ^ https://a$request_uri; }",
        "location / { deny all; }",
    ] {
        let text = format!(
            "http {{ tcp_nodelay off; keepalive_timeout 0; server {{ listen 80; {settings} {challenge} }} }}"
        );
        assert_eq!(titles(&text), [""; 0], "{settings}");
        // They have no page with requests that could wait for each other.
        let text = format!("http {{ server {{ listen 443 ssl; {settings} {challenge} }} }}");
        assert_eq!(titles(&text), [""; 0], "{settings}");
    }
    for settings in [
        "location /a { return 301 https://a; }",
        "location = / { return 301 https://a; }",
        "location / { rewrite ^/a https://a; }",
        "location / { rewrite ^ /a; }",
        "location / { deny all; allow 10.0.0.0/8; }",
        "if ($a) { return 301 https://a; }",
    ] {
        let text = format!("http {{\nserver {{ listen 80; {settings} }} }}");
        assert_eq!(titles(&text), ["no-compression 2"], "{settings}");
    }
}

#[test]
fn servers_that_refuse_handshakes_have_no_tls() {
    let text = "http { server { listen 443 ssl default_server; ssl_reject_handshake on; ssl_certificate a; } }";
    let none = Delays {
        servers: 1,
        ..Delays::default()
    };
    assert_eq!(delays_of(text), none);
    // Requests without TLS are answered.
    let plain = text.replace("server {", "server { listen 80;");
    assert_eq!(titles(&plain), ["no-compression 1"]);
}

#[test]
fn servers_without_http2_are_found() {
    assert_eq!(titles(&http("listen 443 ssl;")), ["no-http2 3"]);
    assert_eq!(titles(&http("listen 443 ssl http2;")), [""; 0]);
    assert_eq!(titles(&http("listen 443 ssl; http2 on;")), [""; 0]);
    assert_eq!(titles(&http("listen 443 ssl; http2 off;")), ["no-http2 3"]);
    // The parameter belongs to the address.
    for address in ["443", "*:443", "0.0.0.0:443"] {
        let both = format!("listen 443 ssl; }} server {{ listen {address} ssl http2;");
        assert_eq!(titles(&http(&both)), [""; 0], "{address}");
    }
    let other = "listen 443 ssl; listen [::]:443 ssl http2;";
    assert_eq!(titles(&http(other)), ["no-http2 3"]);
    // As before nginx 1.25.1.
    assert_eq!(titles(&http("listen 443; ssl on;")), ["no-http2 2,3"]);
}

#[test]
fn handshakes_that_are_long_are_found() {
    assert_eq!(
        titles(&https("ssl_protocols TLSv1.2;")),
        ["handshake-round-trips 3"]
    );
    let old = delays_of(&https("ssl_protocols TLSv1.2;")).found;
    assert_eq!(old[0].weight, Weight::Warn, "as by URL and by capture");
    assert_eq!(titles(&https("ssl_protocols TLSv1.2 TLSv1.3;")), [""; 0]);
    assert_eq!(
        titles(&https("ssl_protocols TLSv1.2; ssl_protocols TLSv1.3;")),
        [""; 0],
        "the lines of a level join"
    );
    assert_eq!(
        titles(&http("ssl_protocols TLSv1.2;")),
        [""; 0],
        "there is no TLS"
    );
    assert_eq!(
        titles(&https("ssl_session_tickets off;")),
        ["no-resumption 3"]
    );
    assert_eq!(
        titles(&https("ssl_session_tickets off; ssl_session_cache off;")),
        ["no-resumption 3"]
    );
    assert_eq!(
        titles(&https(
            "ssl_session_tickets off; ssl_session_cache shared:a:1m;"
        )),
        [""; 0]
    );
    assert_eq!(titles(&https("ssl_session_cache none;")), [""; 0]);
}

#[test]
fn large_records_are_noted() {
    for (value, count) in [("16k", 1), ("16384", 1), ("1m", 1), ("8k", 0), ("16383", 0)] {
        let text = https(&format!("ssl_early_data on; ssl_buffer_size {value};"));
        assert_eq!(note_titles(&text).len(), count, "{value}");
    }
}

#[test]
fn redirects_that_come_again_are_found() {
    let site = |redirect: &str, settings: &str| {
        format!(
            "http {{ gzip on; gzip_types *;\nserver {{ listen 80; server_name a;\n{redirect}\n}}
             server {{ listen 443 ssl; http2 on; server_name a; {settings} }}
             server {{ listen 443 ssl; http2 on; server_name b; }} }}"
        )
    };
    let redirect = "return 301 https://$host$request_uri;";
    let hsts = "add_header Strict-Transport-Security max-age=1;";
    assert_eq!(titles(&site(redirect, "")), ["redirect-to-https-late 3"]);
    assert_eq!(
        titles(&site("rewrite ^ https://a/ permanent;", "")),
        ["redirect-to-https-late 3"]
    );
    assert_eq!(
        titles(&site("location / { return 302 https://a/; }", "")),
        ["redirect-to-https-late 3"]
    );
    assert_eq!(titles(&site(redirect, hsts)), [""; 0]);
    assert_eq!(titles(&site("return 301 http://b/;", "")), [""; 0]);
    // A level with fields of its own inherits none.
    let lost = format!("{hsts} add_header A 1;").replace("server {", "");
    assert_eq!(titles(&site(redirect, &lost)), [""; 0]);
    let outer =
        site(redirect, "add_header A 1;").replacen("gzip on;", &format!("gzip on; {hsts}"), 1);
    assert_eq!(titles(&outer), ["redirect-to-https-late 3"]);
}

#[test]
fn redirects_are_followed_to_the_servers_that_they_reach() {
    let hsts = "add_header Strict-Transport-Security max-age=1;";
    let site = |listens: &str, redirect: &str, secure: &str| {
        format!(
            "http {{ gzip on; gzip_types *;\nserver {{ {listens}\n{redirect}\n}}
             server {{ listen 443 ssl; http2 on; {secure} }}
             server {{ listen 443 ssl; http2 on; server_name _; }} }}"
        )
    };
    let www = "return 301 https://www.a.test$request_uri;";
    let to = |name: &str| format!("server_name {name}; {hsts}");
    for name in ["www.a.test", "*.a.test", ".a.test"] {
        assert_eq!(
            titles(&site("server_name a.test;", www, &to(name))),
            [""; 0],
            "{name}"
        );
        let bare = format!("server_name {name};");
        assert_eq!(
            titles(&site("server_name a.test;", www, &bare)),
            ["redirect-to-https-late 3"],
            "{name}"
        );
    }
    let secure = "server_name a.test;";
    // Nothing is known of a server elsewhere, and of addresses that are no redirect.
    for redirect in ["return 301 https://b.test/;", "return 200 https://a.test/;"] {
        assert_eq!(
            titles(&site("server_name a.test;", redirect, secure)),
            [""; 0],
            "{redirect}"
        );
    }
    let same = "return 301 https://$host$request_uri;";
    for (listens, secure) in [
        // Catch-all names do not name a server.
        ("server_name _;", to("a.test")),
        (
            "server_name a.test;",
            format!("server_name a.test; location / {{ {hsts} }}"),
        ),
        (
            "server_name a.test;",
            "server_name a.test; more_set_headers 'Strict-Transport-Security: max-age=1';"
                .to_owned(),
        ),
        // It has no requests without TLS.
        (
            "server_name a.test; listen 443 ssl; listen 443 quic; http2 on;",
            secure.to_owned(),
        ),
    ] {
        assert_eq!(
            titles(&site(listens, same, &secure)),
            [""; 0],
            "{listens} {secure}"
        );
    }
    let both = "server_name a.test; listen 80; listen 443 ssl; http2 on;";
    let late = ["redirect-to-https-late 3"];
    let if_plain = "if ($scheme = http) { return 301 https://$host$request_uri; }";
    assert_eq!(titles(&site(both, if_plain, secure)), late);
    for (how, expected) in [("merge", &[][..]), ("off", &late), ("on", &late)] {
        let own = format!("{if_plain} add_header_inherit {how}; add_header A 1;");
        let text = site(both, &own, "server_name b.test;");
        let text = text.replacen("gzip on;", &format!("gzip on; {hsts}"), 1);
        assert_eq!(titles(&text), expected, "{how}");
    }
    let cut = site(
        both,
        &format!("{if_plain} add_header_inherit off;"),
        "server_name b.test;",
    );
    let cut = cut.replacen("gzip on;", &format!("gzip on; {hsts}"), 1);
    assert_eq!(titles(&cut), late, "nothing is inherited");
}

#[test]
fn what_holds_a_first_byte_is_found() {
    let pass = "location / { proxy_pass http://b; }";
    assert_eq!(note_titles(&http(pass)), ["held-first-byte 3"]);
    assert_eq!(
        note_titles(&http(&format!("proxy_buffering off; {pass}"))),
        [""; 0]
    );
    let ignores = format!("proxy_ignore_headers X-Accel-Buffering; {pass}");
    assert_eq!(titles(&http(&ignores)), ["held-first-byte 3"]);
    assert_eq!(
        titles(&http("postpone_gzipping 1000;")),
        ["held-first-byte 3"]
    );
    assert_eq!(titles(&http("postpone_gzipping 0;")), [""; 0]);
    assert_eq!(
        titles(&http("location /a { gzip off; postpone_gzipping 1000; }")),
        [""; 0]
    );
}

#[test]
fn large_fields_are_found() {
    let field = |bytes: usize| {
        let value = "x".repeat(bytes - "A".len() - 4);
        http(&format!("add_header A {value};"))
    };
    assert_eq!(titles(&field(FIELDS_BYTES_MIN)), ["header-bloat 3"]);
    assert_eq!(titles(&field(FIELDS_BYTES_MIN - 1)), [""; 0]);
}

#[test]
fn certificates_are_returned_where_they_are_files() {
    let text = https("ssl_certificate a.pem; ssl_certificate $host.pem; ssl_certificate data:x;");
    let files = delays_of(&text).certificates;
    assert_eq!(files.len(), 1);
    assert_eq!(
        (files[0].path.as_str(), files[0].places[0].as_str()),
        ("a.pem", "/c/n.conf:3")
    );
    assert_eq!(delays_of(&http("ssl_certificate a.pem;")).certificates, []);
}

#[test]
fn places_are_bounded() {
    let servers: String = (0..delay::PLACES_MAX + 1)
        .map(|n| format!("server {{ listen {}; }}\n", n + 1))
        .collect();
    let found = delays_of(&format!("http {{ {servers} }}")).found;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].places.len(), delay::PLACES_MAX);
}

#[test]
fn a_text_that_is_not_whole_is_not_judged() {
    let source = Memory::default().with_file("/c/n.conf", "http {");
    assert_eq!(delays(source, Path::new("/c/n.conf"), None), None);
}

#[test]
fn flags_and_values_of_lists_are_read_in_any_case() {
    let compressed = "text/css text/javascript";
    for text in [
        http("tcp_nodelay off;"),
        http("gzip off;"),
        http("gzip off; gzip_static always;"),
        http("gzip on; gzip_types text/css; proxy_pass http://b;"),
        http("location / { proxy_pass http://b; proxy_buffering off; }"),
        http("gzip on; postpone_gzipping 1k;"),
        http("add_header A b; location / { add_header_inherit merge; add_header C d; }"),
        format!("http {{ gzip on; gzip_types {compressed}; server {{ listen 443; ssl on; }} }}"),
        https("ssl_reject_handshake on;"),
        https("ssl_early_data on; ssl_protocols TLSv1.2 TLSv1.3;"),
        https("ssl_session_tickets off; ssl_session_cache none;"),
        https("http2 off;"),
    ] {
        let mut other = text.clone();
        for value in ["on", "off", "always", "merge", "TLSv1.3"] {
            other = other.replace(
                &format!(" {value};"),
                &format!(" {};", value.to_uppercase()),
            );
        }
        assert_ne!(other, text);
        let all = |text: &str| lines(text, |_| true);
        assert_eq!(all(&other), all(&text), "{other}");
    }
}
