//! `sticky`: cookies, routes and sessions; the fields of responses are those of nginx 1.31.4.

use std::collections::HashSet;

use server_upstream::request::Failure;

use crate::site::Site;

/// A site with a group of three servers, these directives in it, and these in its location.
fn site(group: &str, location: &str) -> Site {
    Site::http(&format!(
        "upstream group {{ server 127.0.0.1:8081 route=a; server 127.0.0.1:8082 route=b; server 127.0.0.1:8083; {group} }}
         server {{ location / {{ proxy_pass http://group; {location} }}
                   location /page {{ return 200 page; }} }}"
    ))
}

/// Returns the ports of the servers that got requests since the last call.
fn ports(site: &Site) -> Vec<String> {
    let sent = site.servers.sent().into_iter();
    sent.map(|sent| sent.route.addr.to_string()["127.0.0.1:".len()..].to_owned())
        .collect()
}

fn cookie(group: &str) -> String {
    let mut site = site(group, "");
    site.get("/").field("Set-Cookie").to_owned()
}

#[test]
fn a_cookie_binds_a_client_to_its_server() {
    let mut site = site("sticky cookie srv;", "");
    assert_eq!(site.get("/").field("Set-Cookie"), "srv=a");
    assert_eq!(site.get("/").field("Set-Cookie"), "srv=b");
    // MD5 of the address.
    let third = "srv=6a93711a8c3f9c2641dfc71c359a1abe";
    assert_eq!(site.get("/").field("Set-Cookie"), third);
    ports(&site);
    for (value, port) in [
        ("srv=b", "8082"),
        ("SRV = b", "8082"),
        (third, "8083"),
        ("x=1; srv=a", "8081"),
    ] {
        for _ in 0..2 {
            let answer = site.get_with("/", &format!("Cookie: {value}\r\n"));
            assert!(answer.field("Set-Cookie").starts_with("srv="), "always set");
            assert_eq!(ports(&site), [port], "{value}");
        }
    }
    // A value that names no server is balanced.
    let long = "x".repeat(200);
    for value in ["", "c", "A", &long] {
        site.get_with("/", &format!("Cookie: srv={value}\r\n"));
    }
    assert_eq!(ports(&site).len(), 4);
}

#[test]
fn the_attributes_of_the_cookie_come_in_the_order_of_nginx() {
    let all = "sticky cookie srv path=/p samesite=LaX secure httponly domain=.e.test expires=1h;";
    assert_eq!(
        cookie(all),
        "srv=a; expires=Sun, 06-Nov-94 09:51:17 GMT; max-age=3600; domain=.e.test; httponly; secure; \
         samesite=LaX; path=/p"
    );
    assert_eq!(
        cookie("sticky cookie srv expires=max;"),
        "srv=a; expires=Thu, 31-Dec-37 23:55:55 GMT; max-age=315360000"
    );
    let domain = "sticky cookie srv domain=$arg_domain$arg_more samesite=$arg_site;";
    let mut site = site(domain, "");
    for (args, attributes) in [
        ("", ""),
        ("?domain=e.test&more=x", "; domain=e.testx"),
        ("?site=none", "; samesite=none"),
        ("?site=STRICT", "; samesite=STRICT"),
        ("?site=other", "; samesite=strict"),
    ] {
        let answer = site.get_with(&format!("/{args}"), "Cookie: srv=a\r\n");
        assert_eq!(
            answer.field("Set-Cookie"),
            format!("srv=a{attributes}"),
            "{args}"
        );
    }
}

#[test]
fn the_cookie_comes_before_those_of_the_server() {
    let mut site = site("sticky cookie srv;", "");
    site.servers.answer("200\nSet-Cookie: own=1\n\nbody");
    let head = site.get("/").head;
    assert!(
        head.contains("Set-Cookie: srv=a\nSet-Cookie: own=1\n"),
        "{head}"
    );
}

#[test]
fn the_cookie_names_the_server_that_was_chosen_last() {
    let mut site = site(
        "sticky cookie srv;",
        "proxy_next_upstream error http_403; error_page 502 /page;",
    );
    site.servers.fail(Failure::Closed);
    let answer = site.get_with("/", "Cookie: srv=a\r\n");
    assert_eq!(answer.field("Set-Cookie"), "srv=b");
    assert_eq!(ports(&site), ["8081", "8082"]);
    site.servers.answer("403\n\n");
    assert_eq!(site.get_with("/", "Cookie: srv=b\r\n").status, 200);
    ports(&site);
    // As in nginx also if no server has answered.
    for _ in 0..3 {
        site.servers.fail(Failure::Closed);
    }
    let answer = site.get("/");
    let last = ports(&site).pop();
    assert_eq!((answer.status, answer.body.as_str()), (502, "page"));
    let named = [("8081", "srv=a"), ("8082", "srv=b")];
    for (port, cookie) in named {
        assert!(last.as_deref() != Some(port) || answer.field("Set-Cookie") == cookie);
    }
    assert!(answer.field("Set-Cookie").starts_with("srv="));
}

#[test]
fn a_response_that_is_no_response_takes_the_cookie_with_it() {
    let mut site = site(
        "sticky cookie srv;",
        "proxy_intercept_errors on; error_page 404 /page;",
    );
    site.servers.answer("404\n\n");
    let answer = site.get("/");
    assert_eq!((answer.status, answer.body.as_str()), (404, "page"));
    assert_eq!(answer.field("Set-Cookie"), "srv=a");
    site.servers
        .answer("200\nX-Accel-Redirect: /page\nSet-Cookie: own=1\n\n");
    let answer = site.get("/");
    assert_eq!((answer.status, answer.body.as_str()), (200, "page"));
    let cookies = "Set-Cookie: srv=b\nSet-Cookie: own=1\n";
    assert!(answer.head.contains(cookies), "{}", answer.head);
}

#[test]
fn a_group_without_sticky_sets_no_cookie() {
    let mut site = site("", "");
    assert_eq!(
        site.get_with("/", "Cookie: srv=b\r\n").field("Set-Cookie"),
        ""
    );
    assert_eq!(ports(&site), ["8081"]);
}

#[test]
fn a_group_chosen_by_a_variable_is_sticky() {
    let mut site = Site::http(
        "upstream one { server 127.0.0.1:8081 route=a; server 127.0.0.1:8082 route=b; sticky cookie s1; }
         upstream two { server 127.0.0.1:8083 route=c; server 127.0.0.1:8084 route=d; sticky cookie s2; }
         server { location / { proxy_pass http://$arg_group; } }",
    );
    assert_eq!(site.get("/?group=one").field("Set-Cookie"), "s1=a");
    let answer = site.get_with("/?group=two", "Cookie: s1=b; s2=d\r\n");
    assert_eq!(answer.field("Set-Cookie"), "s2=d");
    assert_eq!(site.get("/?group=127.0.0.1:8083").field("Set-Cookie"), "");
}

#[test]
fn the_first_route_that_is_not_empty_counts() {
    let mut site = site("sticky route $cookie_route $arg_route;", "");
    for (args, cookie, port) in [
        ("?route=b", "", "8082"),
        ("?route=b", "route=", "8082"),
        ("?route=b", "route=a", "8081"),
        ("?route=a", "route=b", "8082"),
    ] {
        let fields = format!("Cookie: {cookie}\r\n");
        let answer = site.get_with(&format!("/{args}"), &fields);
        assert_eq!(answer.field("Set-Cookie"), "");
        assert_eq!(ports(&site), [port], "{args} {cookie}");
    }
}

#[test]
fn a_draining_server_gets_its_own_clients_alone() {
    let mut site = Site::http(
        "upstream group { server 127.0.0.1:8081 route=a drain; server 127.0.0.1:8082 route=b down drain;
                          server 127.0.0.1:8083 route=c drain down; server 127.0.0.1:8084; sticky route $arg_r; }
         server { location / { proxy_pass http://group; } }",
    );
    for (route, port) in [
        ("", "8084"),
        ("a", "8081"),
        ("b", "8082"),
        ("c", "8084"),
        ("", "8084"),
    ] {
        site.get(&format!("/?r={route}"));
        assert_eq!(ports(&site), [port], "{route}");
    }
}

/// A session is known by the response of its server, or by the request.
#[test]
fn sessions_are_learned_from_responses() {
    let learn = "sticky learn create=$upstream_cookie_sid lookup=$cookie_sid zone=learned:32k;";
    for group in [
        learn.to_owned(),
        learn.replace(';', " header;").replace("learned", "header"),
    ] {
        let mut site = site(&group, "proxy_next_upstream http_403;");
        site.servers.answer("200\nSet-Cookie: sid=one; path=/\n\n");
        site.servers.answer("200\nSet-Cookie: sid=two\n\nbody");
        for _ in 0..2 {
            assert!(site.get("/").field("Set-Cookie").starts_with("sid="));
        }
        assert_eq!(ports(&site), ["8081", "8082"]);
        let mut with = |sid: &str| {
            site.get_with("/", &format!("Cookie: sid={sid}\r\n"));
            ports(&site).join(" ")
        };
        assert_eq!(
            [with("one"), with("one"), with("two")],
            ["8081", "8081", "8082"]
        );
        let unknown: HashSet<String> = (0..9).map(|_| with("ONE")).collect();
        assert_eq!(unknown.len(), 3, "not bound");
        // A failed server loses the session to the next one.
        site.servers.answer("403\n\n");
        let mut with = |sid: &str| {
            site.get_with("/", &format!("Cookie: sid={sid}\r\n"));
            ports(&site)
        };
        let tried = with("one");
        assert_eq!((tried.len(), tried[0].as_str()), (2, "8081"));
        assert_eq!(with("one"), tried[1..]);
    }
}

#[test]
fn a_session_may_be_created_by_the_request() {
    let mut site = site(
        "sticky learn create=$arg_none create=$arg_sid lookup=$arg_sid zone=by_request:32k timeout=1h;",
        "",
    );
    let mut with = |sid: &str| {
        site.get(&format!("/?sid={sid}"));
        ports(&site).remove(0)
    };
    let first: Vec<String> = ["x", "y", "z"].map(&mut with).into();
    let again: Vec<String> = ["x", "y", "z"].map(&mut with).into();
    assert_eq!(first, again);
    assert_ne!(first[0], first[1]);
}

#[test]
fn a_full_zone_is_logged() {
    let mut site = site(
        "sticky learn create=$arg_sid lookup=$arg_sid zone=full:32k;",
        "",
    );
    let logged = site.logged(|site| {
        for n in 0..=SESSIONS_OF_32K {
            site.get(&format!("/?sid={n}"));
        }
    });
    assert_eq!(
        logged.matches("the sticky session zone is full").count(),
        1,
        "{logged}"
    );
}

/// Sessions in a zone of 32 KiB: each counts as an entry of a zone with a key of 16 bytes.
const SESSIONS_OF_32K: u64 = (32 << 10) / (server_base::zone::ENTRY_BYTES + 16);
