//! `valid_referers`: valid and invalid referers.

use crate::site::Site;

/// A server with a list of referers in each location.
fn site(lists: &[(&str, &str)]) -> Site {
    let locations: String = lists
        .iter()
        .map(|(path, list)| {
            format!(
                "location {path} {{ valid_referers {list}; return 200 \"[$invalid_referer]\"; }}"
            )
        })
        .collect();
    Site::server(&format!("server_name ~bar ~^anchored$; {locations}"))
}

#[track_caller]
fn check(site: &mut Site, target: &str, cases: &[(&str, bool)]) {
    for (referer, valid) in cases {
        let answer = site.get_with(target, &format!("Referer: {referer}\r\n"));
        let expected = if *valid { "[]" } else { "[1]" };
        assert_eq!(answer.body, expected, "{target} {referer}");
    }
}

#[test]
fn a_missing_referer_is_not_a_blocked_one() {
    let mut site = site(&[
        ("/simple", "www.example.org"),
        ("/none", "none www.example.org"),
        ("/blocked", "blocked www.example.org"),
    ]);
    assert_eq!(site.get("/simple").body, "[1]");
    assert_eq!(site.get("/none").body, "[]");
    assert_eq!(site.get("/blocked").body, "[1]");
    check(
        &mut site,
        "/none",
        &[("", false), ("www.example.org", false)],
    );
    check(
        &mut site,
        "/blocked",
        &[
            ("", true),
            ("www.example.com", true),
            ("http://su", true),
            ("http://www.example.com", false),
        ],
    );
}

#[test]
fn a_name_is_compared_without_case_port_and_path() {
    let mut site = site(&[("/", "www.Example.org")]);
    check(
        &mut site,
        "/",
        &[
            ("http://www.example.org", true),
            ("HTTPS://WWW.example.org/uri", true),
            ("http://www.example.org:8080/uri", true),
            ("http://example.org", false),
            ("ftp://www.example.org", false),
            ("www.example.org", false),
        ],
    );
}

#[test]
fn a_path_has_to_begin_as_written() {
    let mut site = site(&[("/", "www.example.org/uri mail.*/in")]);
    check(
        &mut site,
        "/",
        &[
            ("http://www.example.org/uri", true),
            ("http://www.example.org:80/urii", true),
            ("http://www.example.org/uRi", false),
            ("http://www.example.org/ur", false),
            ("http://www.example.org", false),
            ("http://mail.test/in", true),
            ("http://mail.test/", false),
        ],
    );
}

#[test]
fn wildcards_and_expressions() {
    let mut site = site(&[
        ("/wild", "*.example.com .example.net www.example.*"),
        ("/regex", "~example.org/uri ~(?-i)lower\\.test$"),
    ]);
    check(
        &mut site,
        "/wild",
        &[
            ("http://a.b.example.com", true),
            ("http://example.com", false),
            ("http://example.net", true),
            ("http://www.example.test", true),
        ],
    );
    check(
        &mut site,
        "/regex",
        &[
            ("http://www.eXample.org/uRI", true),
            ("http://www.example.org", false),
            ("https://lower.test", true),
            ("https://Lower.test", false),
        ],
    );
}

#[test]
fn a_host_name_has_256_bytes_at_most() {
    let mut site = site(&[("/", "~.*")]);
    let referer = |n: usize| format!("http://{}", "a".repeat(n));
    check(
        &mut site,
        "/",
        &[(&referer(256), true), (&referer(257), false)],
    );
}

#[test]
fn names_of_the_server_count_wherever_they_stand() {
    let mut site = Site::http(
        "server {
             server_name localhost ~bar ~^anchored$;
             location / { valid_referers server_names; return 200 \"[$invalid_referer]\"; }
             server_name below *.wild.test;
         }",
    );
    check(
        &mut site,
        "/",
        &[
            ("http://localHost/uri", true),
            ("http://below", true),
            ("http://x.wild.test", true),
            ("http://foobAr/uri", true),
            ("http://anchored/uri", true),
            ("http://xanchored", false),
            ("http://other/bar", false),
            ("localhost", false),
        ],
    );
}

#[test]
fn a_list_stands_in_for_the_one_around_it_but_keeps_its_expressions() {
    let mut site = Site::server(
        "valid_referers none outer.test ~regex;
         location /in { return 200 \"[$invalid_referer]\"; }
         location /own { valid_referers inner.test; return 200 \"[$invalid_referer]\"; }
         location /both { valid_referers inner.test ~other; return 200 \"[$invalid_referer]\"; }",
    );
    assert_eq!(site.get("/in").body, "[]");
    assert_eq!(site.get("/own").body, "[1]");
    check(
        &mut site,
        "/in",
        &[("http://outer.test", true), ("http://regex.test", true)],
    );
    check(
        &mut site,
        "/own",
        &[
            ("http://outer.test", false),
            ("http://inner.test", true),
            ("http://regex.test", true),
        ],
    );
    check(
        &mut site,
        "/both",
        &[("http://regex.test", false), ("http://other.test", true)],
    );
}

#[test]
fn without_a_list_every_referer_is_valid() {
    let mut site = Site::server("return 200 \"[$invalid_referer]\";");
    assert_eq!(site.get("/").body, "[]");
    check(&mut site, "/", &[("http://anywhere.test", true)]);
}

#[test]
fn the_variable_keeps_its_first_value_and_can_be_set() {
    let mut site = Site::server(
        "set $first $invalid_referer;
         location /a { valid_referers good.test; return 200 \"[$invalid_referer]\"; }
         location /b { set $invalid_referer 1; return 200 \"[$invalid_referer]\"; }",
    );
    check(&mut site, "/a", &[("http://bad.test", true)]);
    check(&mut site, "/b", &[("http://bad.test", false)]);
}
