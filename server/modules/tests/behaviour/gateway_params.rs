//! Parameters as applications get them: configured ones, the client's fields, and fields that never pass.

use crate::servers::Sent;
use crate::site::Site;

const PASS: &str = "fastcgi_pass 127.0.0.1:9000;";

/// Returns a request as an application receives it, with these directives in its location.
fn sent(directives: &str, request: &str) -> Sent {
    sent_by(&format!("location / {{ {directives} }}"), request)
}

fn sent_by(server: &str, request: &str) -> Sent {
    let mut site = Site::server(server);
    let answer = site.send(request);
    let mut all = site.servers.sent();
    assert_eq!(all.len(), 1, "one request, {}", answer.status);
    all.remove(0)
}

/// A `GET` with more fields, each with its line end.
fn get(fields: &str) -> String {
    format!("GET /a?b HTTP/1.1\r\nHost: localhost:81\r\n{fields}\r\n")
}

/// Returns the FastCGI parameters of a `GET` with these fields and directives.
fn params(directives: &str, fields: &str) -> String {
    sent(&format!("{PASS} {directives}"), &get(fields)).params()
}

#[test]
fn parameters_come_in_their_order_and_before_the_fields_of_the_client() {
    let set = "fastcgi_param QUERY_STRING $query_string; fastcgi_param A 1; fastcgi_param A 2; fastcgi_param EMPTY \"\";
               fastcgi_param NONE $arg_none if_not_empty; fastcgi_param SOME $args if_not_empty;";
    assert_eq!(
        params(set, "Accept: */*\r\nX-One: 1\r\n"),
        "QUERY_STRING=b\nA=1\nA=2\nEMPTY=\nSOME=b\nHTTP_HOST=localhost:81\nHTTP_ACCEPT=*/*\nHTTP_X_ONE=1\n"
    );
    let no_port = sent(PASS, "GET / HTTP/1.1\r\nHost: LocalHost\r\n\r\n");
    assert_eq!(no_port.params(), "HTTP_HOST=localhost\n");
    let absolute = sent(
        PASS,
        "GET http://localhost/ HTTP/1.1\r\nHost: other\r\n\r\n",
    );
    assert_eq!(absolute.params(), "HTTP_HOST=localhost\n");
}

#[test]
fn a_parameter_takes_the_place_of_a_field() {
    let set = "fastcgi_param HTTP_HOST $host; fastcgi_param HTTP_X_ONE set; fastcgi_param HTTP_ACCEPT \"\";
               fastcgi_param HTTP_X_Two $arg_none; fastcgi_param HTTP_X_THREE $arg_none if_not_empty;";
    let fields = "Accept: */*\r\nX-One: 1\r\nx-one: 2\r\nX-TWO: 2\r\nX-Three: 3\r\nX-Four: 4\r\n";
    assert_eq!(
        params(set, fields),
        "HTTP_HOST=localhost\nHTTP_X_ONE=set\nHTTP_X_Two=\nHTTP_X_FOUR=4\n"
    );
}

#[test]
fn parameters_of_a_level_replace_those_of_the_level_around_it() {
    let server = "fastcgi_param A 1; fastcgi_param B 2;
        location / { fastcgi_pass 127.0.0.1:9000; if ($arg_x) { set $y 1; } }
        location /own { fastcgi_pass 127.0.0.1:9000; fastcgi_param C 3; }";
    let to = |target: &str| {
        let request = format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
        sent_by(server, &request).params()
    };
    assert_eq!(to("/"), "A=1\nB=2\nHTTP_HOST=h\n");
    assert_eq!(to("/?x=1"), "A=1\nB=2\nHTTP_HOST=h\n", "in a block");
    assert_eq!(to("/own"), "C=3\nHTTP_HOST=h\n");
}

#[test]
fn fields_of_one_name_are_joined() {
    let fields = "X-One: 1\r\nCookie: a=b\r\nAccept: x\r\nX-ONE: 2\r\ncookie: c=d\r\nX-Other: 0\r\nACCEPT: y\r\nx-one:\r\n";
    assert_eq!(
        params("", fields),
        "HTTP_HOST=localhost:81\nHTTP_X_ONE=1, 2, \nHTTP_COOKIE=a=b; c=d\nHTTP_ACCEPT=x, y\nHTTP_X_OTHER=0\n"
    );
}

#[test]
fn the_fields_of_a_connection_pass_as_with_nginx() {
    let fields = "Connection: close\r\nKeep-Alive: 1\r\nUpgrade: x\r\nTE: trailers\r\nIf-None-Match: \"e\"\r\nRange: bytes=0-\r\n";
    assert_eq!(
        params("", fields),
        "HTTP_HOST=localhost:81\nHTTP_CONNECTION=close\nHTTP_KEEP_ALIVE=1\nHTTP_UPGRADE=x\nHTTP_TE=trailers\n\
         HTTP_IF_NONE_MATCH=\"e\"\nHTTP_RANGE=bytes=0-\n"
    );
}

#[test]
fn a_field_proxy_never_becomes_http_proxy() {
    for directive in ["fastcgi", "scgi", "uwsgi"] {
        let pass = format!("{directive}_pass 127.0.0.1:9000;");
        for field in ["Proxy", "proxy", "PROXY"] {
            let request = get(&format!(
                "{field}: http://evil/\r\nProxy-Authorization: x\r\n"
            ));
            let params = sent(&pass, &request).params();
            assert!(!params.contains("HTTP_PROXY="), "{params}");
            assert!(params.contains("HTTP_PROXY_AUTHORIZATION=x\n"), "{params}");
        }
        let own = format!("{pass} {directive}_param HTTP_PROXY ours;");
        let params = sent(&own, &get("Proxy: theirs\r\n")).params();
        assert!(
            params.contains("HTTP_PROXY=ours\n") && !params.contains("theirs"),
            "{params}"
        );
    }
}

/// Parameters if fields may have any names: `underscores_in_headers on`, `ignore_invalid_headers off`.
fn lenient(directives: &str, fields: &str) -> String {
    let mut site = Site::server(&format!("location / {{ {PASS} {directives} }}"));
    site.allow_names().send(&get(fields));
    site.servers.sent().remove(0).params()
}

#[test]
fn one_of_several_names_for_a_parameter_passes() {
    let host = "HTTP_HOST=localhost:81\n";
    let one = |fields: &str| lenient("", fields).replace(host, "");
    assert_eq!(one("X_Y: 1\r\n"), "HTTP_X_Y=1\n", "alone");
    assert_eq!(one("X_Y: 1\r\nX-Y: 2\r\n"), "HTTP_X_Y=2\n");
    assert_eq!(one("X-Y: 1\r\nX_Y: 2\r\nx-y: 3\r\n"), "HTTP_X_Y=1, 3\n");
    assert_eq!(
        one("X_Y-Z: 1\r\nX-Y_Z: 2\r\n"),
        "HTTP_X_Y_Z=1\n",
        "the first"
    );
    assert_eq!(one("X_Y: 1\r\nx_y: 2\r\n"), "HTTP_X_Y=1, 2\n", "one name");
    assert_eq!(
        one("X.Y: 1\r\nX-Y: 2\r\n"),
        "HTTP_X_Y=2\n",
        "PHP reads both as one"
    );
    assert_eq!(
        one("User_Agent: 1\r\nUser-Agent: 2\r\n"),
        "HTTP_USER_AGENT=2\n"
    );
    let set = lenient(
        "fastcgi_param HTTP_X_Y ours; fastcgi_param HTTP_ACCEPT ours;",
        "X_Y: 1\r\nX-Y: 2\r\nAccept_: 1\r\n",
    );
    assert_eq!(
        set,
        "HTTP_X_Y=ours\nHTTP_ACCEPT=ours\nHTTP_HOST=localhost:81\nHTTP_ACCEPT_=1\n"
    );
    let known = lenient("fastcgi_param HTTP_USER_AGENT ours;", "User_Agent: 1\r\n");
    assert_eq!(known, format!("HTTP_USER_AGENT=ours\n{host}"));
    let host_too = lenient("", "host_: x\r\nHOST.: y\r\n");
    assert_eq!(host_too, format!("{host}HTTP_HOST_=x\n"));
}

#[test]
fn what_is_left_out_is_logged() {
    let mut site = Site::server(&format!("location / {{ {PASS} }}"));
    site.allow_names();
    let said = site.logged(|site| {
        site.get_with("/", "X_Y: 1\r\nX-Y: 2\r\nProxy: a\r\n");
    });
    assert!(
        said.contains(
            "client sent field \"X_Y\" that maps to the parameter of another field, ignored"
        ),
        "{said}"
    );
    assert!(
        said.contains("client sent field \"Proxy\" that programs use"),
        "{said}"
    );
}

#[test]
fn fields_and_body_may_be_kept_back() {
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nX-One: 1\r\n\r\nabc";
    let none = sent(&format!("{PASS} fastcgi_pass_request_headers off;"), post);
    assert_eq!(none.params(), "HTTP_HOST=h\n");
    assert_eq!(none.body(), "abc");
    let length = "fastcgi_param CONTENT_LENGTH $content_length;";
    let both = sent(&format!("{PASS} {length}"), post);
    assert_eq!(
        both.params(),
        "CONTENT_LENGTH=3\nHTTP_HOST=h\nHTTP_CONTENT_LENGTH=3\nHTTP_X_ONE=1\n"
    );
    let no_body = sent(&format!("{PASS} fastcgi_pass_request_body off;"), post);
    assert_eq!(no_body.params(), "HTTP_HOST=h\nHTTP_X_ONE=1\n");
    assert_eq!(no_body.body(), "");
}

#[test]
fn the_length_of_scgi_comes_first_and_is_that_of_what_is_sent() {
    let pass = "scgi_pass 127.0.0.1:9000; scgi_param SCGI 1;";
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(
        sent(pass, post).params(),
        "CONTENT_LENGTH=3\nSCGI=1\nHTTP_HOST=h\nHTTP_CONTENT_LENGTH=3\n"
    );
    let none = sent(&format!("{pass} scgi_pass_request_body off;"), post);
    assert_eq!(none.params(), "CONTENT_LENGTH=0\nSCGI=1\nHTTP_HOST=h\n");
    let chunked =
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let chunked = sent(&format!("{pass} scgi_request_buffering off;"), chunked);
    assert!(chunked.params().starts_with("CONTENT_LENGTH=3\nSCGI=1\n"));
    assert_eq!(chunked.body(), "abc");
}

#[test]
fn the_bytes_of_uwsgi_come_last_without_a_name() {
    let sent = sent(
        "uwsgi_pass uwsgi://127.0.0.1:9000; uwsgi_param A 1; uwsgi_string \"$x\";",
        &get(""),
    );
    assert_eq!(sent.params(), "A=1\nHTTP_HOST=localhost:81\n=$x\n");
}

#[test]
fn parameters_have_64_kib_in_all() {
    // Lengths of names and values of the padded parameter and of HTTP_HOST, with the protocol's length fields.
    for (directive, per_param, long) in [("fastcgi", 2, 3), ("scgi", 2, 0), ("uwsgi", 4, 0)] {
        let host = "HTTP_HOSTh".len() + per_param;
        let length = if directive == "scgi" {
            "CONTENT_LENGTH0".len() + 2
        } else {
            0
        };
        let room = 65_535 - host - length - "A".len() - per_param - long;
        for (bytes, status) in [(room, 200), (room + 1, 431)] {
            // A word of the configuration has 4 KiB at most.
            let (long, rest) = ("v".repeat(3000), "v".repeat(bytes % 3000));
            let all = "${long}".repeat(bytes / 3000);
            let config = format!(
                "location / {{ {directive}_pass 127.0.0.1:9000; set $long {long}; {directive}_param A {all}{rest}; }}"
            );
            let mut site = Site::server(&config);
            let said = site.logged(|site| {
                let answer = site.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
                assert_eq!(answer.status, status, "{directive} {bytes}");
            });
            assert_eq!(site.servers.sent().len(), usize::from(status == 200));
            assert_eq!(said.contains("is too big: 65536"), status == 431, "{said}");
        }
    }
    let room = 65_535 - "HTTP_HOSTh".len() - 4 - "string".len() - "A".len() - 4;
    let all = "${long}".repeat(room / 3000);
    for (bytes, status) in [(room % 3000, 200), (room % 3000 + 1, 431)] {
        let mut site = Site::server(&format!(
            "location / {{ uwsgi_pass 127.0.0.1:9000; uwsgi_string string; set $long {}; uwsgi_param A {all}{}; }}",
            "v".repeat(3000),
            "v".repeat(bytes)
        ));
        let answer = site.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(answer.status, status, "{bytes}");
    }
}
