//! Fields of upstream responses: redirects, cookies, hidden and forwarded fields.

use crate::site::{Answer, Site};

/// Returns a response as the client receives it, status line and fields each on a line, with `directives` in the
/// location `/app/`.
fn got(directives: &str, response: &str) -> Answer {
    got_from(
        "proxy_pass http://127.0.0.1:8081/base/;",
        directives,
        response,
    )
}

fn got_from(pass: &str, directives: &str, response: &str) -> Answer {
    let mut site = Site::server(&format!("location /app/ {{ {pass} {directives} }}"));
    site.servers.answer(response);
    site.get("/app/x?to=there")
}

fn location(directives: &str, value: &str) -> String {
    let response = format!("302\nLocation: {value}\n\n");
    got(directives, &response).field("Location").to_owned()
}

#[test]
fn a_redirect_of_the_server_to_itself_becomes_one_to_us() {
    let value = "http://127.0.0.1:8081/base/y?z";
    assert_eq!(location("", value), "http://localhost/app/y?z");
    assert_eq!(
        location("proxy_redirect default;", value),
        "http://localhost/app/y?z"
    );
    assert_eq!(location("proxy_redirect off;", value), value);
    assert_eq!(location("absolute_redirect off;", value), "/app/y?z");
    for other in [
        "http://127.0.0.1:8081/other",
        "http://127.0.0.1/base/",
        "/base/x",
        "y",
    ] {
        assert_eq!(location("", other), other);
    }
    let whole = "302\nLocation: http://127.0.0.1:8081/y\n\n";
    let to = |pass| got_from(pass, "", whole).field("Location").to_owned();
    assert_eq!(
        to("proxy_pass http://127.0.0.1:8081;"),
        "http://localhost/y"
    );
    assert_eq!(
        to("proxy_pass http://127.0.0.1:8081$request_uri;"),
        "http://127.0.0.1:8081/y"
    );
}

#[test]
fn redirects_are_changed_by_the_first_rule_that_fits() {
    let rules = "proxy_redirect http://b/$arg_to/ /new/; proxy_redirect http://b/ http://c/; \
                 proxy_redirect ~^http://(.*?):(\\d+)/(.*)$ /$1-$2/$3; proxy_redirect ~*^HTTPS:// http://s; \
                 proxy_redirect / /deep/;";
    for (from, to) in [
        ("http://b/there/x", "http://localhost/new/x"),
        ("http://b/here/x", "http://c/here/x"),
        ("http://q:80/p", "http://localhost/q-80/p"),
        ("https://any/x", "http://s"),
        ("/x", "http://localhost/deep/x"),
        ("ftp://x", "ftp://x"),
    ] {
        assert_eq!(location(rules, from), to);
    }
}

#[test]
fn refresh_is_changed_behind_its_url() {
    let refresh = |value: &str| {
        let response = format!("200\nRefresh: {value}\n\nbody");
        got("", &response).field("Refresh").to_owned()
    };
    assert_eq!(
        refresh("5; URL=http://127.0.0.1:8081/base/y"),
        "5; URL=/app/y"
    );
    assert_eq!(refresh("5"), "5");
    assert_eq!(refresh("5; url=/x"), "5; url=/x");
}

#[test]
fn a_location_inside_another_one_has_its_default_as_in_nginx() {
    let mut site = Site::server(
        "location /a/ { proxy_pass http://127.0.0.1:1/; location /a/b/ { proxy_pass http://127.0.0.1:2/; } }",
    );
    for (value, expected) in [
        ("http://127.0.0.1:1/x", "http://localhost/a/x"),
        ("http://127.0.0.1:2/x", "http://127.0.0.1:2/x"),
    ] {
        site.servers.answer(&format!("302\nLocation: {value}\n\n"));
        assert_eq!(site.get("/a/b/").field("Location"), expected);
    }
}

fn cookie(directives: &str, value: &str) -> String {
    let response = format!("200\nSet-Cookie: {value}\n\n");
    got(directives, &response).field("Set-Cookie").to_owned()
}

#[test]
fn domains_of_cookies_are_changed() {
    let rules = "proxy_cookie_domain localhost example.org; proxy_cookie_domain .Dot.test .new.test; \
                 proxy_cookie_domain ~\\.([a-z]+\\.com)$ $1; proxy_cookie_domain $arg_to variable.test;";
    for (from, to) in [
        (
            "a=b; domain=localhost; path=/",
            "a=b; domain=example.org; path=/",
        ),
        ("a=b;Domain=.LOCALHOST", "a=b; Domain=.example.org"),
        ("a=b; domain=dot.test", "a=b; domain=new.test"),
        ("a=b; domain=x.Nginx.com", "a=b; domain=Nginx.com"),
        ("a=b; domain=there", "a=b; domain=variable.test"),
        ("a=b;  domain=other;secure", "a=b;  domain=other;secure"),
        ("a; domain=localhost", "a; domain=localhost"),
        ("domain=localhost", "domain=localhost"),
    ] {
        assert_eq!(cookie(rules, from), to);
    }
    let off = "proxy_cookie_domain off;";
    assert_eq!(
        cookie(off, "a=b; domain=localhost"),
        "a=b; domain=localhost"
    );
}

#[test]
fn paths_of_cookies_are_changed() {
    let rules = "proxy_cookie_path /base/ /; proxy_cookie_path ~^/(\\w+)-(.*)$ /$2/$1; proxy_cookie_path ~*^/CASE$ /low;";
    for (from, to) in [
        ("a=b; path=/base/x", "a=b; path=/x"),
        ("a=b; path=/one-two", "a=b; path=/two/one"),
        ("a=b; Path=/case", "a=b; Path=/low"),
        ("a=b; path = /base/ ; x", "a=b; path=/; x"),
        ("a=b; path=/else", "a=b; path=/else"),
    ] {
        assert_eq!(cookie(rules, from), to);
    }
}

#[test]
fn flags_of_cookies_are_set_and_taken_away() {
    let rules = "proxy_cookie_flags one httponly; proxy_cookie_flags ~^two secure samesite=strict; \
                 proxy_cookie_flags three nosecure nohttponly nosamesite; proxy_cookie_flags four $arg_none; \
                 proxy_cookie_flags ~ samesite=LAX;";
    for (from, to) in [
        ("ONE=1", "ONE=1; HttpOnly"),
        ("one=1; httponly", "one=1; httponly"),
        ("Two2=1; samesite=None", "Two2=1; SameSite=Strict; Secure"),
        (
            "two=1; SAMESITE=strict; secure",
            "two=1; SAMESITE=strict; secure",
        ),
        (
            "three=1; Secure; path=/; HttpOnly; SameSite=None",
            "three=1; path=/",
        ),
        ("four=1;secure", "four=1;secure"),
        ("five=1", "five=1; SameSite=Lax"),
        ("flag", "flag"),
    ] {
        assert_eq!(cookie(rules, from), to);
    }
}

#[test]
fn captures_of_rules_do_not_replace_those_of_the_location() {
    let mut site = Site::server(
        "location ~ ^/(\\w+)/$ {
             proxy_pass http://127.0.0.1:8081;
             proxy_redirect ~^http://(.*)$ /$1;
             proxy_cookie_path ~^/(.*)$ /own/$1;
             proxy_cookie_flags ~^(s)ecret secure$arg_none;
             add_header X-C $1;
         }",
    );
    for field in [
        "Location: http://b/x",
        "Set-Cookie: a=b; path=/base",
        "Set-Cookie: secret=b",
    ] {
        site.servers.answer(&format!("302\n{field}\n\n"));
        assert_eq!(site.get("/place/").field("X-C"), "place", "{field}");
    }
    site.servers.answer("302\nSet-Cookie: a=b; path=/base\n\n");
    let answer = site.get("/place/");
    assert_eq!(answer.field("Set-Cookie"), "a=b; path=/own/base");
}

#[test]
fn rules_of_a_level_replace_those_around_it() {
    let mut site = Site::server(
        "proxy_cookie_path / /outer/; proxy_cookie_domain localhost outer; proxy_redirect http://b/ /outer/;
        location /in/ { proxy_pass http://127.0.0.1:8081; }
        location /own/ { proxy_pass http://127.0.0.1:8081; proxy_cookie_path / /own/; proxy_cookie_domain off;
            proxy_redirect off; }",
    );
    let response = "302\nLocation: http://b/x\nSet-Cookie: a=b; path=/; domain=localhost\n\n";
    for (target, cookie, location) in [
        (
            "/in/",
            "a=b; path=/outer/; domain=outer",
            "http://localhost/outer/x",
        ),
        ("/own/", "a=b; path=/own/; domain=localhost", "http://b/x"),
    ] {
        site.servers.answer(response);
        let answer = site.get(target);
        assert_eq!(answer.field("Set-Cookie"), cookie);
        assert_eq!(answer.field("Location"), location);
    }
}

#[test]
fn some_fields_are_hidden_and_others_can_be() {
    let response = "200\nDate: then\nServer: behind\nX-Pad: avoid browser bug\nX-Accel-Expires: 5\nX-Own: 1\nX-More: 2\n\n";
    let plain = got("", response);
    assert_eq!(plain.field("X-Own"), "1");
    assert_eq!(plain.field("X-Pad"), "");
    assert_eq!(plain.field("X-Accel-Expires"), "");
    assert!(plain.field("Server") != "behind" && plain.field("Date") != "then");
    let hidden = got(
        "proxy_hide_header x-own; proxy_pass_header X-PAD; proxy_pass_header Server;",
        response,
    );
    assert_eq!(hidden.field("X-Own"), "");
    assert_eq!(hidden.field("X-More"), "2");
    assert_eq!(hidden.field("X-Pad"), "avoid browser bug");
    assert_eq!(hidden.field("Server"), "behind");
}

#[test]
fn hidden_and_passed_fields_are_inherited_each_by_itself() {
    let mut site = Site::server(
        "proxy_hide_header X-One; proxy_pass_header X-Pad;
        location /none/ { proxy_pass http://127.0.0.1:8081; }
        location /hide/ { proxy_pass http://127.0.0.1:8081; proxy_hide_header X-Two; }
        location /pass/ { proxy_pass http://127.0.0.1:8081; proxy_pass_header X-One; }",
    );
    for (target, shown) in [("/none/", "2p"), ("/hide/", "1p"), ("/pass/", "12")] {
        site.servers.answer("200\nX-One: 1\nX-Two: 2\nX-Pad: p\n\n");
        let answer = site.get(target);
        let all: String = ["X-One", "X-Two", "X-Pad"]
            .map(|name| answer.field(name))
            .concat();
        assert_eq!(all, shown, "{target}");
    }
}
