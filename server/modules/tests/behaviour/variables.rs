//! Values of variables before, between and after redirects.

use crate::site::Site;

fn one(value: &str) -> Site {
    Site::server(&format!("location / {{ return 200 \"{value}\"; }}"))
}

#[test]
fn host_is_the_clients_else_the_servers() {
    let mut site = one("$host|$http_host|$server_name|$request_port|$is_request_port");
    assert_eq!(
        site.send("GET / HTTP/1.0\r\n\r\n").body,
        "localhost||localhost||"
    );
    assert_eq!(
        site.send("GET / HTTP/1.1\r\nHost: A.b:81\r\n\r\n").body,
        "a.b|A.b:81|localhost|81|:"
    );
    let absolute = site.send("GET http://c.d/x HTTP/1.1\r\nHost: A.b\r\n\r\n");
    assert_eq!(absolute.body, "c.d|A.b|localhost||");
}

#[test]
fn fields_that_come_twice_are_joined() {
    let mut site = one("$http_x_a|$http_cookie|$cookie_b|$cookie_none|$content_type");
    let fields = "X-A: 1\r\nx_a: no\r\nX-a: 2\r\nCookie: a=1\r\nCookie: b=2; c=3\r\nContent-Type: a\r\nContent-Type: b\r\n";
    assert_eq!(
        site.get_with("/", fields).body,
        "1, 2|a=1; b=2; c=3|2||a, b"
    );
}

#[test]
fn arguments_are_found_without_case() {
    let mut site = one("$arg_b|$arg_c|$arg_|$args|$query_string|$is_args");
    assert_eq!(site.get("/?a=1&B=2&c").body, "2|||a=1&B=2&c|a=1&B=2&c|?");
}

#[test]
fn args_can_be_set_and_query_string_follows() {
    let mut site = Site::server(
        "location / { set $args x=1; return 200 \"$args|$query_string|$arg_x|$request_uri\"; }",
    );
    assert_eq!(site.get("/?a=2").body, "x=1|x=1|1|/?a=2");
}

#[test]
fn the_document_root_is_that_of_the_location() {
    let mut site = Site::server(
        "location / { return 200 \"$document_root|$request_filename\"; }
         location /a/ { alias /data/; return 200 \"$document_root|$request_filename\"; }",
    );
    assert_eq!(site.get("/x/y").body, "/www|/www/x/y");
    assert_eq!(site.get("/a/y").body, "/data/|/data/y");
}

#[test]
fn the_user_is_one_that_has_a_name() {
    let mut site = one("[$remote_user]");
    assert_eq!(
        site.get_with("/", "Authorization: Basic dTpw\r\n").body,
        "[u]"
    );
    assert_eq!(
        site.get_with("/", "Authorization: basic   dTpw\r\n").body,
        "[u]"
    );
    assert_eq!(
        site.get_with("/", "Authorization: Basic OnA=\r\n").body,
        "[]"
    );
    assert_eq!(
        site.get_with("/", "Authorization: Bearer dTpw\r\n").body,
        "[]"
    );
}

#[test]
fn a_request_has_one_identifier() {
    let mut site = one("$request_id $request_id");
    let first = site.get("/").body;
    let (a, b) = first.split_once(' ').expect("two values");
    assert_eq!((a.len(), a), (32, b));
    assert!(a.bytes().all(|c| c.is_ascii_hexdigit()));
    assert_ne!(site.get("/").body, first);
}

#[test]
fn sent_fields_are_known_while_fields_are_added() {
    let mut site = Site::http(
        "map $sent_http_content_type $how_long { ~image/ max; default epoch; text/html 1h; }
         server {
             root /www;
             types { text/html html; image/gif gif; }
             charset utf-8;
             expires $how_long;
             add_header X-Length $sent_http_content_length;
         }",
    )
    .file("/www/a.html", "text")
    .file("/www/a.gif", "picture");
    let page = site.get("/a.html");
    assert_eq!(
        (page.field("Cache-Control"), page.field("X-Length")),
        ("max-age=3600", "4")
    );
    assert_eq!(page.field("Content-Type"), "text/html; charset=utf-8");
    assert_eq!(
        site.get("/a.gif").field("Cache-Control"),
        "max-age=315360000"
    );
}

#[test]
fn a_map_is_looked_up_in_nginx_order() {
    let mut site = Site::http(
        "map $arg_h $m {
             hostnames;
             default none;
             exact.example.com exact;
             *.example.com head;
             .example.org dot;
             mail.* tail;
             ~^(?<word>w+)$ regex-$word;
             \\default escaped;
         }
         server { return 200 $m; }",
    );
    for (host, expected) in [
        ("EXACT.example.com", "exact"),
        ("a.example.com.", "head"),
        ("example.org", "dot"),
        ("x.example.org", "dot"),
        ("mail.test", "tail"),
        ("www", "regex-www"),
        ("default", "escaped"),
        ("", "none"),
        ("other", "none"),
    ] {
        assert_eq!(site.get(&format!("/?h={host}")).body, expected, "{host}");
    }
}

#[test]
fn values_of_a_map_are_texts_or_have_variables() {
    let mut site = Site::http(
        "map $arg_h $m {
             one same;
             two \"same\";
             three \"\";
             four \"a \\\"b\\\"\";
             five $arg_v;
             six same$arg_v;
             ~^(C)$ seen-$1;
         }
         server { return 200 [$m]; }",
    );
    for (key, expected) in [
        ("one", "[same]"),
        ("TWO", "[same]"),
        ("three", "[]"),
        ("four", "[a \"b\"]"),
        ("five", "[x]"),
        ("six", "[samex]"),
        ("C", "[seen-C]"),
        ("c", "[]"),
        ("none", "[]"),
    ] {
        assert_eq!(site.get(&format!("/?v=x&h={key}")).body, expected, "{key}");
    }
}

#[test]
fn captures_of_a_map_do_not_replace_those_of_a_directive() {
    let mut site = Site::http(
        "map $arg_l $lang { default none; ~^(d)(e)$ $1$2; ~^fr$ fr; }
         map $lang $nested { default none; ~(.)(.) $2$lang$1; }
         server {
             server_name ~^(\\w+)\\.example$;
             location /rewrite/ { rewrite ^/rewrite/(.*)$ /shown/$lang/$1 last; }
             location /shown/ { return 200 $uri; }
             location ~ ^/in/([^/]+)/$ { return 200 \"$lang $1\"; }
             location ~ ^/nested/(.*)$ { return 200 \"$nested $1\"; }
             location ~ ^/set/(.*)$ { set $a $lang; set $b $1; return 200 \"$a $b\"; }
             location ~ ^/field/(.*)$ { add_header X-L $lang; add_header X-C $1; return 200 ''; }
             location /if { if ($uri ~ ^/if/(.*)$) { set $a \"$lang $1\"; } return 200 $a; }
             location /named { return 200 \"$lang $1\"; }
         }",
    );
    for (target, body) in [
        ("/rewrite/abc?l=de", "/shown/de/abc"),
        ("/rewrite/abc?l=fr", "/shown/fr/abc"),
        ("/rewrite/abc?l=x", "/shown/none/abc"),
        ("/in/abc/?l=de", "de abc"),
        ("/in/abc/?l=fr", "fr abc"),
        ("/nested/abc?l=de", "eded abc"),
        ("/set/abc?l=de", "de abc"),
        ("/if/abc?l=de", "de abc"),
    ] {
        assert_eq!(site.get(target).body, body, "{target}");
    }
    let answer = site.get("/field/abc?l=de");
    assert_eq!((answer.field("X-L"), answer.field("X-C")), ("de", "abc"));
    let named = "GET /named?l=de HTTP/1.1\r\nHost: blog.example\r\n\r\n";
    assert_eq!(site.send(named).body, "de blog");
}

/// "can contain named and positional captures that can later be used in other directives along with the resulting
/// variable": nginx documentation, directive `map`.
#[test]
fn captures_of_a_map_are_there_for_directives_without_their_own() {
    let mut site = Site::http(
        "map $arg_a $first { ~^(?<name>.)(.*)$ yes; }
         map $arg_b $second { ~^(.*)$ yes; }
         map $arg_b $given { ~^ $1; default $1; }
         server {
             location / { if ($first) { return 200 \"$name $2\"; } return 200 \"[$2]\"; }
             location /two { set $x $first; set $y $second; return 200 $1; }
             location ~ ^/default/(.*)$ { return 200 \"[$given]\"; }
             location /dead { set $x $first; rewrite ^/no(.*)$ /; return 200 \"[$1]\"; }
         }",
    );
    assert_eq!(site.get("/?a=xyz").body, "x yz");
    assert_eq!(site.get("/?b=xyz").body, "[]");
    assert_eq!(site.get("/two?a=x&b=y").body, "y");
    assert_eq!(site.get("/default/abc").body, "[abc]");
    assert_eq!(site.get("/default/abc?b=x").body, "[]");
    assert_eq!(site.get("/dead?a=x").body, "[]");
}

#[test]
fn a_map_of_many_lines_has_each_of_them() {
    let exact = (0..5000).map(|n| format!("k{n}.example {n};\n"));
    let wildcards = (0..5000).map(|n| format!("*.w{n}.example w{};\n", n % 7));
    let lines: String = exact.chain(wildcards).collect();
    let mut site = Site::http(&format!(
        "map $arg_h $m {{ hostnames; default none; {lines} }} server {{ return 200 $m; }}"
    ));
    for n in (0..5000).step_by(499) {
        for (host, expected) in [
            (format!("k{n}.example"), format!("{n}")),
            (format!("a.W{n}.example"), format!("w{}", n % 7)),
            (
                format!("{}w{n}.example", "a.".repeat(400)),
                format!("w{}", n % 7),
            ),
            (format!("w{n}.example"), "none".to_owned()),
            (format!("k{n}.exampl"), "none".to_owned()),
        ] {
            assert_eq!(site.get(&format!("/?h={host}")).body, expected, "{host}");
        }
    }
}

#[test]
fn maps_that_need_each_other_end() {
    let mut site = Site::http(
        "map $b $a { default $b; } map $a $b { default $a; } server { return 200 [$a]; }",
    );
    assert_eq!(site.get("/").body, "[]");
}

#[test]
fn a_map_is_computed_once_unless_volatile() {
    let inner = |kind: &str| {
        format!(
            "map $uri $m {{ {kind} default $uri; }}
             server {{ set $first $m; location /a {{ rewrite ^ /b last; }} location /b {{ return 200 $m; }} }}"
        )
    };
    assert_eq!(Site::http(&inner("")).get("/a").body, "/a");
    assert_eq!(Site::http(&inner("volatile;")).get("/a").body, "/b");
}

/// Expressions share the memory for their groups. Numbers of groups rise and fall from match to match.
#[test]
fn captures_of_expressions_with_different_numbers_of_groups() {
    let mut site = Site::http(
        "map $arg_h $m {
             ~^one-(.)$ one:$1;
             ~^none$ none;
             ~^five-(.)(.)?(.)?(.)?(.)$ five:$1$2$3$4:$5;
             ~^(?<first>.)two(?<second>.)$ two:$first$second;
             ~^opt(a)?(b)?$ opt:[$1][$2];
             default default;
         }
         server { return 200 $m; }",
    );
    for (subject, expected) in [
        ("one-x", "one:x"),
        ("five-abcde", "five:abcd:e"),
        ("one-y", "one:y"),
        ("none", "none"),
        ("optb", "opt:[][b]"),
        ("five-ae", "five:a:e"),
        ("opta", "opt:[a][]"),
        ("1two2", "two:12"),
        ("optb", "opt:[][b]"),
        ("one-", "default"),
    ] {
        assert_eq!(site.get(&format!("/?h={subject}")).body, expected);
    }
}
