//! Targets of upstream requests: a table of locations and requests, as nginx 1.31.4 sends them.
//!
//! Each row was tried with nginx and an upstream server that responds with the request line. A line that is no request
//! line is nginx's own response.

use crate::site::Site;

/// The content of the block `server`, and for each target of a `GET` the target that the upstream server gets.
type Case = (&'static str, &'static [(&'static str, &'static str)]);

#[test]
fn targets_are_those_that_nginx_sends() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (conf, requests) in TABLE {
        let mut site = Site::server(&conf.replace("BACKEND", "127.0.0.1:8081"));
        for (target, expected) in *requests {
            count += 1;
            let answer = site.get(target);
            let sent = site.servers.sent();
            let got = match (sent.first(), answer.field("Location")) {
                (Some(sent), _) => sent.line(),
                (None, "") => answer.status.to_string(),
                (None, location) => format!("{} {location}", answer.status),
            };
            if got != *expected {
                wrong.push(format!("{conf}\n  {target} -> {got}, not {expected}"));
            }
        }
    }
    assert!(count >= 100, "only {count} rows");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const TABLE: &[Case] = &[
    (
        "location / { proxy_pass http://BACKEND; }",
        &[
            ("/", "GET /"),
            ("/a%20b", "GET /a%20b"),
            ("/a/../b", "GET /a/../b"),
            ("/a//b", "GET /a//b"),
            ("/%7Euser", "GET /%7Euser"),
            ("/a?x=1&y=%20", "GET /a?x=1&y=%20"),
            ("/?", "GET /?"),
            ("/a#frag", "GET /a#frag"),
            ("/%41%42", "GET /%41%42"),
            ("/a+b", "GET /a+b"),
            ("/a;b=c", "GET /a;b=c"),
            ("/caf%C3%A9", "GET /caf%C3%A9"),
            ("/a/./b", "GET /a/./b"),
            ("//a", "GET //a"),
            ("/a%2Fb", "GET /a%2Fb"),
            ("/a?b?c", "GET /a?b?c"),
            ("/%e2%82%ac?%zz", "GET /%e2%82%ac?%zz"),
        ],
    ),
    (
        "location / { proxy_pass http://BACKEND/; }",
        &[
            ("/", "GET /"),
            ("/a%20b", "GET /a%20b"),
            ("/a/../b", "GET /b"),
            ("/a//b", "GET /a/b"),
            ("/%7Euser", "GET /~user"),
            ("/a?x=1&y=%20", "GET /a?x=1&y=%20"),
            ("/?", "GET /"),
            ("/a%2Fb", "GET /a/b"),
            ("/a%3Fb", "GET /a%3Fb"),
            ("/a+b", "GET /a+b"),
            ("/caf%C3%A9", "GET /caf%C3%A9"),
            ("/%25", "GET /%25"),
            ("/a%23b", "GET /a%23b"),
            ("/a^b", "GET /a^b"),
            ("/a%5Eb^c", "GET /a%5Eb%5Ec"),
        ],
    ),
    (
        "location /app/ { proxy_pass http://BACKEND; }",
        &[
            ("/app/x", "GET /app/x"),
            ("/app", "301 http://localhost/app/"),
            ("/app?x=1", "301 http://localhost/app/?x=1"),
            ("/app/", "GET /app/"),
            ("/app/%78?y", "GET /app/%78?y"),
        ],
    ),
    (
        "location /app/ { proxy_pass http://BACKEND/; }",
        &[
            ("/app/x", "GET /x"),
            ("/app/", "GET /"),
            ("/app//x", "GET /x"),
            ("/app/../app/y", "GET /y"),
            ("/app/a%20b?z=%20", "GET /a%20b?z=%20"),
        ],
    ),
    (
        "location /app/ { proxy_pass http://BACKEND/base/; }",
        &[
            ("/app/x?q", "GET /base/x?q"),
            ("/app/", "GET /base/"),
            ("/app/%2e%2e/app/z", "GET /base/z"),
        ],
    ),
    (
        "location /app/ { proxy_pass http://BACKEND/base; }",
        &[("/app/x?q", "GET /basex?q")],
    ),
    (
        "location /app { proxy_pass http://BACKEND/base; }",
        &[
            ("/app", "GET /base"),
            ("/app/x", "GET /base/x"),
            ("/application?x", "GET /baselication?x"),
        ],
    ),
    (
        "location /app { proxy_pass http://BACKEND/; }",
        &[("/app/x", "GET //x"), ("/app", "GET /")],
    ),
    (
        "location = /only { proxy_pass http://BACKEND/one; }",
        &[
            ("/only", "GET /one"),
            ("/only?a=b", "GET /one?a=b"),
            ("/%6fnly?a", "GET /one?a"),
        ],
    ),
    (
        "location ^~ /p/ { proxy_pass http://BACKEND/q/; }",
        &[("/p/x", "GET /q/x"), ("/p", "301 http://localhost/p/")],
    ),
    (
        "location ~ ^/re/(.*)$ { proxy_pass http://BACKEND; }",
        &[
            ("/re/a%20b?x", "GET /re/a%20b?x"),
            ("/re/%2e", "GET /re/%2e"),
        ],
    ),
    (
        "location ~ ^/re/(.*)$ { proxy_pass http://BACKEND/$1; }",
        &[
            ("/re/a", "GET /a"),
            ("/re/a?x=1", "GET /a"),
            ("/re/caf%C3%A9", "GET /café"),
        ],
    ),
    (
        "location ~ ^/re/(.*)$ { proxy_pass http://BACKEND/$1$is_args$args; }",
        &[("/re/a?x=1", "GET /a?x=1"), ("/re/a", "GET /a")],
    ),
    (
        "location /v/ { proxy_pass http://BACKEND$request_uri; }",
        &[
            ("/v/a%20b?x=%20", "GET /v/a%20b?x=%20"),
            ("/v//a", "GET /v//a"),
        ],
    ),
    (
        "location /v/ { proxy_pass http://BACKEND$uri; }",
        &[("/v/a?x=1", "GET /v/a"), ("/v/a%25b", "GET /v/a%b")],
    ),
    (
        "set $b BACKEND; location /v/ { proxy_pass http://$b; }",
        &[
            ("/v/a%20b?x", "GET /v/a%20b?x"),
            ("/v//a/../b", "GET /v//a/../b"),
        ],
    ),
    (
        "set $b BACKEND; location /v/ { proxy_pass http://$b/w/; }",
        &[("/v/a?x", "GET /w/"), ("/v/", "GET /w/")],
    ),
    (
        "set $b BACKEND; location /v/ { proxy_pass http://$b?q=1; }",
        &[("/v/a?x", "GET /?q=1")],
    ),
    (
        "location /r/ { rewrite ^/r/(.*)$ /s/$1 break; proxy_pass http://BACKEND; }",
        &[
            ("/r/a%20b?x=1", "GET /s/a%20b?x=1"),
            ("/r/a", "GET /s/a"),
            ("/r/a%2Fb", "GET /s/a/b"),
        ],
    ),
    (
        "location /r/ { rewrite ^/r/(.*)$ /s/$1?new=1 break; proxy_pass http://BACKEND; }",
        &[("/r/a?x=1", "GET /s/a?new=1&x=1")],
    ),
    (
        "location /r/ { rewrite ^/r/(.*)$ /s/$1? break; proxy_pass http://BACKEND; }",
        &[("/r/a?x=1", "GET /s/a")],
    ),
    (
        "location /r/ { rewrite ^/r/(.*)$ /s/$1 break; proxy_pass http://BACKEND/t/; }",
        &[("/r/a%20b?x=1", "GET /s/a%20b?x=1")],
    ),
    (
        "location /r/ { rewrite ^/r/(.*)$ /s/$1 last; } location /s/ { proxy_pass http://BACKEND/t/; }",
        &[
            ("/r/a%20b?x=1", "GET /t/a%20b?x=1"),
            ("/r/a%25", "GET /t/a%25"),
        ],
    ),
    (
        "location /r/ { rewrite ^/r/(.*)$ /s/$1 last; } location /s/ { proxy_pass http://BACKEND; }",
        &[("/r/a%20b?x=1", "GET /s/a%20b?x=1")],
    ),
    (
        "location /r/ { set $args x=2; proxy_pass http://BACKEND; }",
        &[("/r/a%20b?x=1", "GET /r/a%20b?x=2")],
    ),
    (
        "location /r/ { set $args x=2; proxy_pass http://BACKEND/; }",
        &[("/r/a%20b?x=1", "GET /a%20b?x=2")],
    ),
    (
        "location /t/ { try_files /none @n; } location @n { proxy_pass http://BACKEND; }",
        &[
            ("/t/a%20b?x=1", "GET /t/a%20b?x=1"),
            ("/t/a/../b", "GET /t/a/../b"),
        ],
    ),
    (
        "location /t/ { try_files /none /u/x?y=1; } location /u/ { proxy_pass http://BACKEND; }",
        &[("/t/a%20b?x=1", "GET /u/x?y=1")],
    ),
    (
        "location /t/ { try_files /none /u/x; } location /u/ { proxy_pass http://BACKEND/w/; }",
        &[("/t/a%20b?x=1", "GET /w/x")],
    ),
    (
        "location /e/ { error_page 404 = @n; return 404; } location @n { proxy_pass http://BACKEND; }",
        &[("/e/a%20b?x=1", "GET /e/a%20b?x=1")],
    ),
    (
        "location /e/ { error_page 404 = /f/x; return 404; } location /f/ { proxy_pass http://BACKEND/g/; }",
        &[("/e/a%20b?x=1", "GET /g/x")],
    ),
    (
        "location /i/ { proxy_pass http://BACKEND/j/; if ($arg_x) { set $y 1; } }",
        &[("/i/a?x=1", "GET /j/a?x=1"), ("/i/a", "GET /j/a")],
    ),
    (
        "location /i/ { if ($arg_x) { proxy_pass http://BACKEND; } return 204; }",
        &[("/i/a%20?x=1", "204")],
    ),
    (
        "location /l/ { proxy_pass http://BACKEND/m/; limit_except POST { deny 192.0.2.77; } }",
        &[("/l/a", "GET /m/a")],
    ),
    (
        "location /o/ { proxy_pass http://BACKEND/p/; location /o/in/ { proxy_pass http://BACKEND/q/; } }",
        &[
            ("/o/in/a", "GET /q/a"),
            ("/o/in", "301 http://localhost/o/in/"),
            ("/o/a", "GET /p/a"),
        ],
    ),
    (
        "location /o/ { proxy_pass http://BACKEND/p/; location ~ x$ { proxy_pass http://BACKEND; } }",
        &[("/o/ax", "GET /o/ax"), ("/o/a", "GET /p/a")],
    ),
    (
        "location /s/ { proxy_pass http://BACKEND; } location = /s { return 204; }",
        &[("/s", "204")],
    ),
    (
        "location /s/ { proxy_pass http://BACKEND; } location /s { return 204; }",
        &[("/s", "204")],
    ),
    (
        "location /s/ { proxy_pass http://BACKEND; } location ~ ^/s { return 204; }",
        &[("/s", "301 http://localhost/s/"), ("/s/x", "204")],
    ),
    (
        "location / { proxy_pass http://BACKEND; proxy_redirect off; } location /s/ { return 204; }",
        &[("/s", "GET /s")],
    ),
    (
        "location /sp%20ace/ { proxy_pass http://BACKEND/; }",
        &[
            ("/sp%2520ace/x", "GET /x"),
            ("/sp%2520ace", "301 http://localhost/sp%2520ace/"),
        ],
    ),
    (
        "location '/sp ace/' { proxy_pass http://BACKEND/; }",
        &[
            ("/sp%20ace/x", "GET /x"),
            ("/sp%20ace", "301 http://localhost/sp%20ace/"),
            ("/sp%20ace?q=%20", "301 http://localhost/sp%20ace/?q=%20"),
        ],
    ),
    (
        "location /q { proxy_pass http://BACKEND/x?y=1&z=; }",
        &[("/q/a?b=1", "GET /x?y=1&z=/a?b=1"), ("/q", "GET /x?y=1&z=")],
    ),
    (
        "location /alias/ { proxy_method PUT; proxy_pass http://BACKEND/alias2; }",
        &[("/alias/x", "PUT /alias2x")],
    ),
];
