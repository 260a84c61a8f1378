//! `rewrite`, `return`, `set`, `if`, `break`.

use crate::site::Site;

#[test]
fn captures_are_escaped_again_until_a_rewrite_has_changed_the_uri() {
    let mut site = Site::server(
        "location ~ ^/q/(.*)$ { set $a $1; return 200 $a; }
         location ~ ^/w/(.*)$ { rewrite ^/w/(.*)$ /z; rewrite ^/(z)$ /z/$1; set $a $1; return 200 $a; }
         location /r/ { rewrite ^/r/(.*)$ /to/$1 redirect; }
         location /g/ { rewrite ^/g/(.*)$ /out?x=$1 last; }
         location /out { return 200 $args; }",
    );
    assert_eq!(site.get("/q/a%20b").body, "a%20b");
    assert_eq!(site.get("/w/a%20b").body, "z");
    assert_eq!(
        site.get("/r/a%20b").field("Location"),
        "http://localhost/to/a%20b"
    );
    assert_eq!(site.get("/g/a%26b?y=1").body, "x=a%26b&y=1");
}

#[test]
fn arguments_are_kept_unless_the_replacement_ends_them() {
    let mut site = Site::server(
        "rewrite ^/keep$ /out;
         rewrite ^/drop$ /out?;
         rewrite ^/add$ /out?a=1;
         rewrite ^/swap$ /out?a=1?;
         rewrite ^/away$ http://example.com/x permanent;
         location /out { return 200 \"$uri|$args|$request_uri\"; }",
    );
    assert_eq!(site.get("/keep?b=2").body, "/out|b=2|/keep?b=2");
    assert_eq!(site.get("/drop?b=2").body, "/out||/drop?b=2");
    assert_eq!(site.get("/add?b=2").body, "/out|a=1&b=2|/add?b=2");
    assert_eq!(site.get("/swap?b=2").body, "/out|a=1|/swap?b=2");
    assert_eq!(
        site.get("/away?b=2").field("Location"),
        "http://example.com/x?b=2"
    );
}

#[test]
fn last_looks_for_a_location_again_and_break_does_not() {
    let mut site = Site::server(
        "location /a { rewrite ^ /file last; }
         location /b { rewrite ^ /file break; add_header X-In b; }
         location /c { rewrite ^ /file; break; add_header X-In c; }
         location /file { add_header X-In file; }
         location /loop { rewrite ^ /loop last; }",
    )
    .file("/www/file", "text");
    assert_eq!(site.get("/a").field("X-In"), "file");
    assert_eq!(site.get("/b").field("X-In"), "b");
    assert_eq!(site.get("/c").field("X-In"), "c");
    assert_eq!(site.get("/loop").status, 500);
}

#[test]
fn an_if_in_a_location_brings_its_own_settings() {
    let mut site = Site::server(
        "location /a {
             add_header X-In location;
             if ($arg_one) { add_header X-In one; }
             if ($arg_two) { add_header X-In two; }
         }",
    )
    .file("/www/a", "text");
    assert_eq!(site.get("/a").field("X-In"), "location");
    assert_eq!(site.get("/a?one=1").field("X-In"), "one");
    assert_eq!(site.get("/a?one=1&two=1").field("X-In"), "two");
    assert_eq!(site.get("/a?one=0").field("X-In"), "location");
}

#[test]
fn an_expression_that_does_not_match_takes_the_captures_away() {
    let mut site = Site::server(
        "location / {
             if ($arg_a ~ ^(x+)$) { set $found $1; }
             if ($arg_b ~ ^(y+)$) { set $found $1; }
             return 200 \"[$1]$found\";
         }",
    );
    assert_eq!(site.get("/?a=xx").body, "[]xx");
    assert_eq!(site.get("/?a=xx&b=y").body, "[y]y");
}

#[test]
fn files_are_tested_as_they_are() {
    let test =
        |op: &str| format!("if ({op} $document_root$uri) {{ return 200 yes; }} return 200 no;");
    let site = |op: &str| Site::server(&test(op)).file("/www/f", "text").dir("/www/d");
    for (op, file, dir, none) in [
        ("-f", "yes", "no", "no"),
        ("-d", "no", "yes", "no"),
        ("-e", "yes", "yes", "no"),
        ("-x", "no", "yes", "no"),
    ] {
        for (target, expected) in [("/f", file), ("/d", dir), ("/none", none)] {
            assert_eq!(site(op).get(target).body, expected, "{op} {target}");
            let opposite = if expected == "yes" { "no" } else { "yes" };
            assert_eq!(
                site(&format!("!{op}")).get(target).body,
                opposite,
                "!{op} {target}"
            );
        }
    }
}

#[test]
fn return_in_an_error_page_has_its_own_status() {
    let mut site = Site::server("error_page 404 /e; location /e { return 503; }");
    assert_eq!(site.get("/none").status, 503);
}

#[test]
fn return_answers_with_text_or_a_redirect() {
    let mut site = Site::server(
        "default_type text/x;
         location /t.html { return 200 \"a $arg_b\"; }
         location /r { return 301 /to?$args; }
         location /u { return https://example.com$request_uri; }
         location /n { return 204; }",
    );
    let text = site.get("/t.html?b=c");
    assert_eq!(
        (text.body.as_str(), text.field("Content-Type")),
        ("a c", "text/html")
    );
    let moved = site.get("/r?a=1");
    assert_eq!(
        (moved.status, moved.field("Location")),
        (301, "http://localhost/to?a=1")
    );
    let moved = site.get("/u");
    assert_eq!(
        (moved.status, moved.field("Location")),
        (302, "https://example.com/u")
    );
    let none = site.get("/n");
    assert_eq!(
        (
            none.status,
            none.field("Content-Type"),
            none.field("Content-Length")
        ),
        (204, "", "")
    );
}

#[test]
fn a_line_break_in_the_uri_never_ends_a_field() {
    let mut site =
        Site::server("location / { add_header X-Uri $uri; return 302 http://example.com$uri; }");
    let answer = site.get("/a%0d%0aSet-Cookie:%20x=y");
    assert!(
        !answer
            .head
            .lines()
            .any(|line| line.starts_with("Set-Cookie")),
        "{}",
        answer.head
    );
}
