//! Mirrors: requests that servers get beside that of the client, their bodies, and the locations that have them.

use crate::servers::Sent;
use crate::site::Site;

/// Locations of mirrors: one for each of these names.
const MIRRORS: &str = "
    location /mirror { internal; proxy_pass http://127.0.0.1:8082; }
    location /second { internal; proxy_pass http://127.0.0.1:8083; }
";
const PASS: &str = "proxy_pass http://127.0.0.1:8081;";

fn site(server: &str) -> Site {
    Site::server(&format!("{MIRRORS} {server}"))
}

/// Returns the lines of the requests that servers received for one of a client.
fn lines(server: &str, request: &str) -> Vec<String> {
    sent(server, request).iter().map(Sent::line).collect()
}

fn sent(server: &str, request: &str) -> Vec<Sent> {
    let mut site = site(server);
    site.send(request);
    site.servers.sent()
}

const GET: &str = "GET /a?b=c HTTP/1.1\r\nHost: localhost\r\n\r\n";
const POST: &str = "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc";

#[test]
fn each_mirror_gets_a_copy_with_the_method_and_the_arguments() {
    let both = format!("location / {{ mirror /mirror; mirror /second/x; {PASS} }}");
    assert_eq!(
        lines(&both, GET),
        ["GET /a?b=c", "GET /mirror?b=c", "GET /second/x?b=c"]
    );
    let head = GET.replace("GET", "HEAD");
    assert_eq!(lines(&both, &head)[1], "HEAD /mirror?b=c");
    let strange = GET.replace("GET", "PURGE");
    assert_eq!(lines(&both, &strange)[1], "PURGE /mirror?b=c");
}

#[test]
fn a_copy_has_the_fields_and_variables_of_the_request() {
    let server = "
        location /copy { internal; proxy_pass http://127.0.0.1:8082$request_uri; proxy_set_header X-Set $set; }
        location / { set $set value; mirror /copy; return 200 done; }";
    let request =
        "GET /a?b HTTP/1.1\r\nHost: localhost\r\nX-Own: 1\r\nExpect: 100-continue\r\n\r\n";
    let mut site = site(server);
    assert_eq!(site.send(request).status, 200);
    assert!(
        site.servers.sent().is_empty(),
        "`return` comes before mirrors"
    );
    let server = server.replace("return 200 done;", PASS);
    let copy = &sent(&server, request)[1];
    assert_eq!(copy.line(), "GET /a?b");
    assert_eq!(
        (copy.field("X-Own").as_str(), copy.field("X-Set").as_str()),
        ("1", "value")
    );
    assert_eq!(copy.field("Expect"), "");
}

#[test]
fn the_body_is_shared_with_each_copy() {
    let server = format!("location / {{ mirror /mirror; mirror /second; {PASS} }}");
    let chunked = "POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
                   1\r\na\r\n2\r\nbc\r\n0\r\n\r\n";
    for request in [POST, chunked] {
        let all = sent(&server, request);
        assert_eq!(all.len(), 3);
        for one in all {
            let (length, body) = (one.field("Content-Length"), one.body());
            assert_eq!(
                (length.as_str(), body.as_str()),
                ("3", "abc"),
                "{}",
                one.line()
            );
        }
    }
}

#[test]
fn a_body_is_read_before_it_is_passed_on() {
    let server = format!("location / {{ mirror /mirror; proxy_request_buffering off; {PASS} }}");
    for one in sent(&server, POST) {
        assert_eq!(one.body(), "abc", "{}", one.line());
    }
    let large = format!("client_max_body_size 2; {server}");
    let chunked = "POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3\r\nabc\r\n0\r\n\r\n";
    let mut site = site(&large);
    assert_eq!(site.send(chunked).status, 413);
    assert!(site.servers.sent().is_empty());
}

#[test]
fn without_the_body_a_copy_has_no_length_either() {
    let server = format!("location / {{ mirror /mirror; mirror_request_body off; {PASS} }}");
    let all = sent(&server, POST);
    let shown = |one: &Sent| (one.line(), one.field("Content-Length"), one.body());
    assert_eq!(
        shown(&all[0]),
        ("POST /a".to_owned(), "3".to_owned(), "abc".to_owned())
    );
    assert_eq!(
        shown(&all[1]),
        ("POST /mirror".to_owned(), String::new(), String::new())
    );
}

#[test]
fn the_limit_of_bodies_of_the_mirrored_location_counts_for_the_copy() {
    let server = format!(
        "location /small {{ internal; client_max_body_size 2; proxy_pass http://127.0.0.1:8082; }}
         location / {{ mirror /small; {PASS} }}"
    );
    assert_eq!(lines(&server, POST), ["POST /a"]);
}

#[test]
fn mirrors_are_those_of_the_innermost_level_that_has_any() {
    let server = format!(
        "mirror /mirror;
         location /inherited {{ {PASS} }}
         location /own {{ mirror /second; {PASS} }}
         location /off {{ mirror off; {PASS} }}"
    );
    let of = |path: &str| lines(&server, &GET.replace("/a?b=c", path)).len();
    assert_eq!([of("/inherited"), of("/own"), of("/off")], [2, 2, 1]);
    let own = lines(&server, &GET.replace("/a?b=c", "/own"));
    assert_eq!(own[1], "GET /second");
}

#[test]
fn a_redirect_inside_is_mirrored_again_and_a_copy_never() {
    let server = format!(
        "mirror /mirror;
         location = /a {{ try_files /none /b; }}
         location /b {{ {PASS} }}"
    );
    assert_eq!(
        lines(&server, GET),
        ["GET /b", "GET /mirror"],
        "`try_files` comes before mirrors"
    );
    let index = "mirror /mirror; location / { index page.html; }".to_owned();
    let mut site = site(&index).file("/www/page.html", "page");
    assert_eq!(site.get("/").body, "page");
    assert_eq!(site.servers.sent().len(), 2, "before the index and after");
}

#[test]
fn a_subrequest_is_not_mirrored() {
    let server = format!(
        "location = /auth {{ mirror /second; proxy_pass http://127.0.0.1:8084; }}
         location / {{ auth_request /auth; mirror /mirror; {PASS} }}"
    );
    assert_eq!(
        lines(&server, GET),
        ["GET /auth", "GET /a?b=c", "GET /mirror?b=c"]
    );
}

#[test]
fn a_status_of_a_mirror_changes_nothing() {
    let mut site = site(&format!("location / {{ mirror /mirror; {PASS} }}"));
    site.servers.answer("200\n\nown");
    site.servers.answer("500\n\nfailed");
    let page = site.get("/a");
    assert_eq!((page.status, page.body.as_str()), (200, "own"));
    assert_eq!(site.servers.sent().len(), 2);
}

#[test]
fn sixteen_mirrors_are_possible() {
    let mirrors = |number: usize| "mirror /mirror;".repeat(number);
    for number in [15, 16] {
        let server = format!("location / {{ {} {PASS} }}", mirrors(number));
        assert_eq!(lines(&server, GET).len(), number + 1);
    }
    let refused = Site::refused(&format!("server {{ {} }}", mirrors(17)));
    assert_eq!(refused, "too many mirrors, at most 16 are possible");
}

#[test]
fn a_copy_skips_the_access_phase_of_its_location() {
    let server = format!(
        "location /limited {{ internal; proxy_pass http://127.0.0.1:8082; deny all; }}
         location /missing {{ internal; return 404; }}
         location / {{ mirror /limited; mirror /missing; {PASS} }}"
    );
    assert_eq!(lines(&server, GET), ["GET /a?b=c", "GET /limited?b=c"]);
}

/// As a subrequest in nginx: a limit that has counted the client's request does not count its copies.
#[test]
fn limits_count_a_request_and_its_copies_once() {
    for (zone, limit, results) in [
        (
            "limit_req_zone $host zone=copied:1m rate=1r/m;",
            "limit_req zone=copied;",
            ["PASSED", ""],
        ),
        (
            "limit_conn_zone $host zone=copied_too:1m;",
            "limit_conn copied_too 1;",
            ["", "PASSED"],
        ),
    ] {
        let mut site = Site::http(&format!(
            "{zone} server {{ root /www; {limit} {MIRRORS}
                 location / {{ mirror /mirror; mirror /second; {PASS} }}
                 proxy_set_header X-Req $limit_req_status; proxy_set_header X-Conn $limit_conn_status; }}"
        ));
        assert_eq!(site.send(GET).status, 200);
        let sent = site.servers.sent();
        let lines: Vec<_> = sent.iter().map(Sent::line).collect();
        let all = ["GET /a?b=c", "GET /mirror?b=c", "GET /second?b=c"];
        assert_eq!(lines, all, "{limit}");
        for one in sent {
            let shown = [one.field("X-Req"), one.field("X-Conn")];
            assert_eq!(shown, results, "{limit}");
        }
    }
}

/// No limit has counted the client's request.
#[test]
fn a_limit_of_the_location_of_a_mirror_counts_copies() {
    let mut site = Site::http(&format!(
        "limit_req_zone $host zone=of_mirror:1m rate=1r/m;
         server {{ root /www;
             location /mirror {{ internal; limit_req zone=of_mirror; proxy_pass http://127.0.0.1:8082; }}
             location / {{ mirror /mirror; {PASS} }} }}"
    ));
    for copies in [1, 0] {
        assert_eq!(site.send(GET).status, 200);
        assert_eq!(site.servers.sent().len(), 1 + copies);
    }
}
