//! FastCGI, SCGI and uwsgi: targets of requests, values of variables, and error streams of applications.

use server_upstream::protocol::{FASTCGI, SCGI, UWSGI};
use server_upstream::request::Failure;

use crate::site::Site;

const GET: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn requests_go_to_an_address_a_socket_a_group_or_what_variables_say() {
    for directive in ["fastcgi_pass", "scgi_pass", "uwsgi_pass"] {
        for (address, to) in [
            ("127.0.0.1:9000", "127.0.0.1:9000"),
            ("[::1]:9000", "[::1]:9000"),
            ("unix:/run/a.sock", "unix:/run/a.sock"),
            ("group", "127.0.0.2:80"),
            ("$server_addr:82", "192.0.2.2:82"),
            ("unix:$document_root/b", "unix:/srv/b"),
            ("$arg_to", "127.0.0.2:80"),
        ] {
            let http = format!(
                "upstream group {{ server 127.0.0.2; }} server {{ root /srv; location / {{ {directive} {address}; }} }}"
            );
            let mut site = Site::http(&http);
            let answer = site.get("/?to=group");
            assert_eq!(answer.status, 200, "{directive} {address}");
            let sent = site.servers.sent().remove(0);
            assert_eq!(sent.route.addr.to_string(), to, "{directive} {address}");
        }
    }
}

#[test]
fn an_address_of_variables_that_is_none_is_an_error() {
    for (directive, address, text) in [
        (
            "fastcgi_pass",
            "127.0.0.1",
            "no port in upstream \"127.0.0.1\"",
        ),
        ("fastcgi_pass", "", "no host in upstream \"\""),
        ("scgi_pass", "a:0", "invalid port in upstream \"a:0\""),
        (
            "uwsgi_pass",
            "uwsgi://a/b",
            "invalid host in upstream \"a/b\"",
        ),
        ("uwsgi_pass", "suwsgi://a", "no port in upstream \"a\""),
        (
            "fastcgi_pass",
            "uwsgi://a:1",
            "invalid host in upstream \"uwsgi://a:1\"",
        ),
    ] {
        let mut site = Site::server(&format!("location / {{ {directive} $arg_to; }}"));
        let said = site.logged(|site| {
            assert_eq!(site.get(&format!("/?to={address}")).status, 500);
        });
        assert!(said.contains(text), "{address}: {said}");
        assert!(site.servers.sent().is_empty());
    }
}

#[test]
fn protocols_are_those_of_the_directives() {
    let protocol = |directives: &str| {
        let mut site = Site::server(&format!("location / {{ {directives} }}"));
        site.send(GET);
        let sent = site.servers.sent().remove(0);
        let (route, request) = (sent.route, sent.request);
        (
            route.protocol,
            route.head_bytes,
            request.keep,
            request.modifiers,
        )
    };
    let head_bytes = 64 << 10;
    assert_eq!(
        protocol("fastcgi_pass 127.0.0.1:1;"),
        (&FASTCGI, head_bytes, false, [0, 0])
    );
    assert_eq!(
        protocol("fastcgi_pass 127.0.0.1:1; fastcgi_keep_conn on; fastcgi_buffer_size 8k;"),
        (&FASTCGI, 8192, true, [0, 0])
    );
    assert_eq!(
        protocol("scgi_pass 127.0.0.1:1;"),
        (&SCGI, head_bytes, false, [0, 0])
    );
    let uwsgi = |modifiers| (&UWSGI, head_bytes, false, modifiers);
    assert_eq!(protocol("uwsgi_pass 127.0.0.1:1;"), uwsgi([0, 0]));
    assert_eq!(
        protocol("uwsgi_pass 127.0.0.1:1; uwsgi_modifier1 5; uwsgi_modifier2 255;"),
        uwsgi([5, 255])
    );
}

#[test]
fn connections_are_kept_by_fastcgi_where_it_is_asked_to() {
    let pool = |directives: &str| {
        let http = format!(
            "upstream g {{ server 127.0.0.2; keepalive 4; }} server {{ location / {{ {directives} }} }}"
        );
        let mut site = Site::http(&http);
        site.send(GET);
        site.servers.sent().remove(0).route.pool.map(|pool| pool.id)
    };
    let (http, fastcgi) = (
        pool("proxy_pass http://g;"),
        pool("fastcgi_pass g; fastcgi_keep_conn on;"),
    );
    assert!(http.is_some() && fastcgi.is_some());
    assert_ne!(http, fastcgi);
    for closed in [
        "fastcgi_pass g;",
        "scgi_pass g;",
        "uwsgi_pass g;",
        "proxy_pass http://g; proxy_http_version 1.0;",
    ] {
        assert_eq!(pool(closed), None, "{closed}");
    }
}

#[test]
fn script_name_and_path_info_are_parts_of_the_uri() {
    let split = "fastcgi_split_path_info \"^(.+?\\.php)(/.*)$\";";
    let empty = "fastcgi_split_path_info \"^(|/x.*)(/.*)$\";";
    for (directives, target, name, info) in [
        ("", "/a.php", "/a.php", ""),
        ("", "/a/", "/a/", ""),
        ("fastcgi_index index.php;", "/a/", "/a/index.php", ""),
        ("fastcgi_index index.php;", "/a", "/a", ""),
        (split, "/a.php/b/c", "/a.php", "/b/c"),
        (split, "/a.php/b.php/", "/a.php", "/b.php/"),
        (split, "/a.php", "/a.php", ""),
        (split, "/a/", "/a/", ""),
        (empty, "/y", "", "/y"),
    ] {
        let mut site = Site::server(&format!(
            "fastcgi_index i; location / {{ {directives} return 200 $fastcgi_script_name|$fastcgi_path_info|$1; }}"
        ));
        let name = match directives {
            "" if name.ends_with('/') => format!("{name}i"),
            _ if directives == split && name.ends_with('/') => format!("{name}i"),
            _ => name.to_owned(),
        };
        assert_eq!(
            site.get(target).body,
            format!("{name}|{info}|"),
            "{directives} {target}"
        );
    }
}

#[test]
fn what_an_application_writes_to_its_error_stream_is_logged() {
    let mut site = Site::server("location / { fastcgi_pass 127.0.0.1:9000; }");
    site.servers
        .answer("!PHP message: a. \r\n!two\n200\n\nbody\n!late\n");
    let said = site.logged(|site| {
        let answer = site.send(GET);
        assert_eq!((answer.status, &*answer.body), (200, "body"));
    });
    let head = "while reading response header from upstream, client: ";
    let upstream = "upstream: \"fastcgi://127.0.0.1:9000\", host: \"localhost\"";
    for text in [
        "[error]",
        &format!("FastCGI sent in stderr: \"PHP message: a\" {head}"),
        &format!("FastCGI sent in stderr: \"two\" {head}"),
        "FastCGI sent in stderr: \"late\" while reading upstream, client: ",
        upstream,
    ] {
        assert!(said.contains(text), "{text}: {said}");
    }
}

#[test]
fn of_an_error_stream_4_kib_are_logged() {
    let mut site = Site::server("location / { fastcgi_pass 127.0.0.1:9000; }");
    let line = "a".repeat(4000);
    site.servers
        .answer(&format!("!{line}\n!{}b\n!c\n200\n\nbody", "a".repeat(96)));
    let said = site.logged(|site| assert_eq!(site.send(GET).status, 200));
    assert_eq!(said.matches("FastCGI sent in stderr").count(), 2, "{said}");
    assert!(
        said.contains(&format!("\"{}\" while", "a".repeat(96))),
        "{said}"
    );
}

#[test]
fn a_text_that_is_caught_makes_a_response_invalid() {
    let http = "upstream g { server 127.0.0.1:1 max_fails=0; server 127.0.0.1:2 max_fails=0; }
        server { location / { fastcgi_pass g; fastcgi_catch_stderr \"PHP Fatal\"; fastcgi_catch_stderr oops; MORE } }";
    let mut site = Site::http(&http.replace("MORE", ""));
    site.servers.answer("!a PHP Fatal error\n200\n\nbody");
    let said = site.logged(|site| assert_eq!(site.send(GET).status, 502));
    assert!(
        said.contains(
            "FastCGI sent in stderr: \"a PHP Fatal error\" while reading response header"
        )
    );
    assert_eq!(site.servers.sent().len(), 1);
    let mut site = Site::http(&http.replace("MORE", "fastcgi_next_upstream invalid_header;"));
    site.servers.answer("!oops\n200\n\nbody");
    site.servers.answer("!fine\n200\n\nother");
    let answer = site.send(GET);
    assert_eq!((answer.status, &*answer.body), (200, "other"));
    assert_eq!(site.servers.sent().len(), 2);
    // After the head it is too late, as in nginx.
    site.servers.answer("200\n\nbody\n!oops");
    assert_eq!(site.send(GET).body, "body");
    // Also beyond the logged part.
    site.servers
        .answer(&format!("!{}\n!oops\n200\n\nbody", "a".repeat(5000)));
    site.servers.answer("200\n\nother");
    assert_eq!(site.send(GET).body, "other");
}

#[test]
fn a_status_is_hidden_by_fastcgi_and_scgi_as_with_nginx() {
    for (directive, shown) in [
        ("fastcgi_pass", ""),
        ("scgi_pass", ""),
        ("uwsgi_pass", "404 X"),
    ] {
        let mut site = Site::server(&format!("location / {{ {directive} 127.0.0.1:9000; }}"));
        site.servers
            .answer("404\nStatus: 404 X\nDate: d\nServer: s\nX-Accel-Expires: 1\n\nbody");
        let answer = site.send(GET);
        assert_eq!(answer.field("Status"), shown, "{directive}");
        assert_eq!(answer.field("Server"), "s", "{directive}");
        assert_eq!(answer.field("X-Accel-Expires"), "");
    }
}

#[test]
fn a_content_type_without_content_is_passed_on_as_with_nginx() {
    for directive in ["fastcgi_pass", "scgi_pass", "uwsgi_pass"] {
        for status in [204, 304] {
            let mut site = Site::server(&format!("location / {{ {directive} 127.0.0.1:9000; }}"));
            site.servers
                .answer(&format!("{status}\nContent-Type: a/b\n\n"));
            let answer = site.send(GET);
            assert_eq!(
                (answer.status, answer.field("Content-Type")),
                (status, "a/b")
            );
        }
        let intercepts = directive.replace("pass", "intercept_errors");
        let mut site = Site::server(&format!(
            "location / {{ {directive} 127.0.0.1:9000; {intercepts} on; error_page 404 =204 /none; }}
             location /none {{ default_type c/d; return 200 text; }}"
        ));
        site.servers.answer("404\nContent-Type: a/b\n\nbody");
        let answer = site.send(GET);
        assert_eq!((answer.status, answer.field("Content-Type")), (204, ""));
    }
}

#[test]
fn an_application_may_switch_protocols_where_the_client_asks_for_it() {
    let upgrade = |directives: &str, fields: &str| {
        let mut site = Site::server(&format!("location / {{ {directives} }}"));
        site.get_with("/", fields);
        site.servers.sent().remove(0).request.upgrade
    };
    let asked = "Upgrade: websocket\r\nConnection: upgrade\r\n";
    for pass in ["scgi_pass 127.0.0.1:1;", "uwsgi_pass 127.0.0.1:1;"] {
        assert!(upgrade(pass, asked), "{pass}");
        assert!(!upgrade(pass, ""), "{pass}");
        assert!(!upgrade(pass, "Upgrade: x, H2C\r\n"), "{pass}");
    }
    assert!(!upgrade(
        "scgi_pass 127.0.0.1:1; scgi_pass_request_headers off;",
        asked
    ));
    assert!(!upgrade("fastcgi_pass 127.0.0.1:1;", asked));
}

#[test]
fn each_kind_of_server_has_the_directives_about_retries() {
    let kinds = [
        ("proxy", "http://127.0.0.1:1"),
        ("fastcgi", "127.0.0.1:1"),
        ("scgi", "127.0.0.1:1"),
        ("uwsgi", "127.0.0.1:1"),
        ("memcached", "127.0.0.1:1"),
    ];
    for (kind, address) in kinds {
        for (directives, status, attempts) in [
            ("", 502, 1),
            ("KIND_next_upstream_same 1;", 502, 2),
            ("KIND_next_upstream_same 2;", 200, 3),
            (
                "KIND_next_upstream_same 2; KIND_retry_budget 100% min=0;",
                200,
                3,
            ),
            (
                "KIND_next_upstream_same 2; KIND_retry_budget 0% min=0;",
                502,
                1,
            ),
            (
                "KIND_next_upstream_same 2; KIND_next_upstream_tries 2;",
                502,
                2,
            ),
            (
                "KIND_next_upstream_same 2; KIND_next_upstream_delay 1s; KIND_next_upstream_timeout 1s;",
                502,
                1,
            ),
        ] {
            let mut site = Site::server(&format!(
                "location / {{ set $memcached_key a; {} {kind}_pass {address}; }}",
                directives.replace("KIND", kind)
            ));
            for _ in 0..2 {
                let (call, errno) = ("connect()", 111);
                site.servers.fail(Failure::Socket { call, errno });
            }
            assert_eq!(site.send(GET).status, status, "{kind} {directives}");
            assert_eq!(site.servers.sent().len(), attempts, "{kind} {directives}");
        }
    }
}
