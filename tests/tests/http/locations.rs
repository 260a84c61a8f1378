//! The choice of a location, and `rewrite`, `if`, `set`, `return`, `limit_except`, `internal`, `satisfy` in it.
//!
//! Source: nginx's documentation of ngx_http_core_module, ngx_http_rewrite_module and ngx_http_access_module.

use firstbyte_tests::{Builder, Client, Server, peer};

fn site(locations: &str) -> Builder {
    let http = format!(
        "types {{ text/html html; text/plain txt; }}
         server {{ listen 127.0.0.1:%%PORT%%; server_name localhost; root %%DIR%%/html; {locations} }}"
    );
    Server::http(&http)
        .file("html/index.html", "welcome")
        .file("html/t.txt", "text")
}

#[track_caller]
fn assert_bodies(client: &mut Client, cases: &[(&str, &str)]) {
    for (path, body) in cases {
        let answer = client.get(path);
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, *body),
            "{path}"
        );
    }
}

#[track_caller]
fn assert_statuses(client: &mut Client, cases: &[(&str, u16)]) {
    for (path, status) in cases {
        assert_eq!(client.get(path).status, *status, "{path}");
    }
}

#[test]
fn exact_then_regex_then_longest_prefix() {
    let server = site(
        "location / { return 200 root; }
         location = / { return 200 exact-root; }
         location = /exact { return 200 exact; }
         location /pre { return 200 prefix; }
         location /pre/longer { return 200 longer; }
         location ^~ /static/ { return 200 no-regex; }
         location ~ \\.(png|gif)$ { return 200 \"regex $1\"; }
         location ~* \\.jpe?g$ { return 200 any-case; }
         location ~ \\.png\\.gif$ { return 200 never-first; }
         location \"/with space\" { return 200 space; }
         location /mixed/Case { return 200 case; }",
    )
    .start();
    assert_bodies(
        &mut server.client(),
        &[
            ("/", "exact-root"),
            ("/x", "root"),
            ("/exact", "exact"),
            ("/exact/", "root"),
            ("/exactly", "root"),
            ("/prefix", "prefix"),
            ("/pre/longer/x", "longer"),
            ("/static/a.png", "no-regex"),
            ("/pre/a.png", "regex png"),
            ("/a.png.gif", "regex gif"),
            ("/a.JPG", "any-case"),
            ("/a.jpeg", "any-case"),
            ("/a.PNG", "root"),
            ("/with%20space/x", "space"),
            ("/mixed/case", "root"),
            ("/%65xact", "exact"),
            ("/x/../exact?query", "exact"),
        ],
    );
}

#[test]
fn nested_locations_and_what_they_inherit() {
    let server = site(
        "location /outer/ {
             add_header X-Outer yes;
             location /outer/inner/ { return 200 inner; }
             location = /outer/exact { return 200 exact; }
             location ~ \\.txt$ { return 200 \"outer regex\"; }
             location /outer/files/ { alias %%DIR%%/html/; }
             location ~ /deep/(?<part>\\w+) { location ~ x$ { return 200 \"x $part\"; } return 200 \"deep $part\"; }
             return 200 outer;
         }
         location ~ \\.txt$ { return 200 \"server regex\"; }",
    )
    .start();
    let mut client = server.client();
    assert_bodies(
        &mut client,
        &[
            ("/outer/x", "outer"),
            ("/outer/inner/x", "inner"),
            ("/outer/exact", "exact"),
            ("/outer/a.txt", "outer regex"),
            ("/outer/inner/a.txt", "outer regex"),
            ("/other/a.txt", "server regex"),
            ("/outer/deep/a", "deep a"),
            ("/outer/deep/ax", "x ax"),
        ],
    );
    assert_eq!(client.get("/outer/inner/x").header("X-Outer"), Some("yes"));
}

#[test]
fn named_and_internal_locations_are_reached_only_from_inside() {
    let server = site(
        "location /t { try_files /none @named; }
         location @named { return 200 \"named $uri\"; }
         location /inside/ { internal; return 200 \"inside $uri\"; }
         location /to/ { rewrite ^/to/(.*)$ /inside/$1 last; }",
    )
    .start();
    let mut client = server.client();
    assert_bodies(
        &mut client,
        &[("/t", "named /t"), ("/to/x", "inside /inside/x")],
    );
    assert_statuses(&mut client, &[("/inside/x", 404), ("/@named", 404)]);
}

#[test]
fn rewrite_flags() {
    let server = site(
        "rewrite ^/server/(.*)$ /last/$1;
         location /last/ { rewrite ^/last/(.*)$ /end/$1 last; return 200 never; }
         location /break/ { rewrite ^/break/(.*)$ /$1.txt break; return 200 never; }
         location /none/ { rewrite ^/none/(.*)$ /two/$1; rewrite ^/two/(.*)$ /three/$1; return 200 \"$uri\"; }
         location /end/ { return 200 \"end $uri $args\"; }
         location /temp/ { rewrite ^/temp/(.*)$ /to/$1 redirect; }
         location /perm/ { rewrite ^/perm/(.*)$ http://example.org/$1 permanent; }
         location /abs/ { rewrite ^/abs/(.*)$ https://example.org/$1?x=y; }
         location /args/ { rewrite ^/args/(.*)$ /end/$1?new=1 last; }
         location /noargs/ { rewrite ^/noargs/(.*)$ /end/$1? last; }
         location /case/ { rewrite (?i)^/CASE/(.*)$ /end/$1 last; }
         location /loop/ { rewrite ^ /loop/x last; }
         location /miss/ { rewrite ^/other /end/ last; return 200 missed; }",
    )
    .start();
    let mut client = server.client();
    assert_bodies(
        &mut client,
        &[
            ("/server/a", "end /end/a "),
            ("/last/a?q=1", "end /end/a q=1"),
            ("/break/t", "text"),
            ("/none/a", "/three/a"),
            ("/args/a?q=1", "end /end/a new=1&q=1"),
            ("/noargs/a?q=1", "end /end/a "),
            ("/case/a", "end /end/a "),
            ("/miss/x", "missed"),
        ],
    );
    let port = server.port();
    for (path, status, location) in [
        (
            "/temp/a?q=1",
            302,
            format!("http://localhost:{port}/to/a?q=1"),
        ),
        ("/perm/a?q=1", 301, "http://example.org/a?q=1".to_owned()),
        (
            "/abs/a?q=1",
            302,
            "https://example.org/a?x=y&q=1".to_owned(),
        ),
        (
            "/temp/a%20b%25",
            302,
            format!("http://localhost:{port}/to/a%20b%25"),
        ),
    ] {
        let answer = client.get(path);
        assert_eq!(
            (answer.status, answer.header("Location")),
            (status, Some(location.as_str())),
            "{path}"
        );
    }
    assert_eq!(client.get("/loop/").status, 500);
    server.wait_for_text("error.log", "rewrite or internal redirection cycle");
}

#[test]
fn return_has_three_forms() {
    let server = site(
        "location /code { return 403; } location /text { return 200 \"text $arg_a\"; }
         location /url { return http://example.org/; } location /301 { return 301 https://example.org$request_uri; }
         location /307 { return 307 /x; } location /308 { return 308 /x; } location /303 { return 303 /x; }
         location /204 { return 204; } location /empty { return 200 \"\"; }
         location /type { default_type application/json; return 200 '{}'; }",
    )
    .start();
    let mut client = server.client();
    assert_statuses(
        &mut client,
        &[
            ("/code", 403),
            ("/204", 204),
            ("/308", 308),
            ("/303", 303),
            ("/307", 307),
        ],
    );
    assert_bodies(
        &mut client,
        &[("/text?a=b", "text b"), ("/empty", ""), ("/type", "{}")],
    );
    assert_eq!(
        client.get("/type").header("Content-Type"),
        Some("application/json")
    );
    let port = server.port();
    for (path, status, location) in [
        ("/url", 302, "http://example.org/".to_owned()),
        ("/301?a=b", 301, "https://example.org/301?a=b".to_owned()),
        ("/307", 307, format!("http://localhost:{port}/x")),
    ] {
        let answer = client.get(path);
        assert_eq!(
            (answer.status, answer.header("Location")),
            (status, Some(location.as_str())),
            "{path}"
        );
    }
}

#[test]
fn if_tests_strings_patterns_and_files() {
    let server = site(
        "location /eq { if ($arg_a = b) { return 200 equal; } if ($arg_a != b) { return 200 unequal; } }
         location /true { if ($arg_a) { return 200 true; } return 200 false; }
         location /re { if ($arg_a ~ ^x(\\d+)$) { return 200 \"re $1\"; } if ($arg_a ~* ABC) { return 200 icase; }
                        if ($arg_a !~ z) { return 200 not; } if ($arg_a !~* Z) { return 200 never; } return 200 z; }
         location /f/ { alias %%DIR%%/html/;
             if (-f $request_filename) { return 200 file; } if (-d $request_filename) { return 200 dir; }
             if (!-e $request_filename) { return 200 nothing; } }
         location /x/ { if (-x %%DIR%%/html) { return 200 executable; } }
         location /m { if ($request_method = POST) { return 405; } return 200 $request_method; }
         location /named { if ($uri ~ (?<tail>[a-z]+)$) { return 200 $tail; } }",
    )
    .start();
    let mut client = server.client();
    assert_bodies(
        &mut client,
        &[
            ("/eq?a=b", "equal"),
            ("/eq?a=c", "unequal"),
            ("/eq", "unequal"),
            ("/true?a=1", "true"),
            ("/true?a=0", "false"),
            ("/true?a=", "false"),
            ("/true", "false"),
            ("/true?a=00", "true"),
            ("/re?a=x42", "re 42"),
            ("/re?a=xabcx", "icase"),
            ("/re?a=q", "not"),
            ("/re?a=z", "z"),
            ("/f/t.txt", "file"),
            ("/f/", "dir"),
            ("/f/none", "nothing"),
            ("/x/", "executable"),
            ("/m", "GET"),
            ("/named", "named"),
        ],
    );
}

#[test]
fn if_is_a_location_of_its_own_and_the_last_true_one_wins() {
    let server = site(
        "location / { if ($arg_a) { add_header X-A a; } if ($arg_b) { add_header X-B b; } add_header X-None none; return 200 ok; }
         location /set { set $v one; if ($arg_a) { set $v two; } return 200 $v; }
         location /brk { if ($arg_a) { break; } return 200 not-reached; }
         location /files/ { if ($arg_a) { rewrite ^/files/(.*)$ /$1 break; } }",
    )
    .start();
    let mut client = server.client();
    let answer = client.get("/");
    assert_eq!(
        (
            answer.header("X-A"),
            answer.header("X-B"),
            answer.header("X-None")
        ),
        (None, None, Some("none"))
    );
    let answer = client.get("/?a=1");
    assert_eq!(
        (answer.header("X-A"), answer.header("X-None")),
        (Some("a"), None)
    );
    let answer = client.get("/?a=1&b=1");
    assert_eq!(
        (answer.header("X-A"), answer.header("X-B")),
        (None, Some("b"))
    );
    assert_bodies(
        &mut client,
        &[
            ("/set", "one"),
            ("/set?a=1", "two"),
            ("/files/t.txt?a=1", "text"),
        ],
    );
    assert_statuses(&mut client, &[("/brk?a=1", 404), ("/brk", 200)]);
}

#[test]
fn set_concatenates_and_stays_for_the_request() {
    let server = site(
        "set $a server;
         location /one { set $b \"$a-${a}x\"; return 200 \"$a $b [$c]\"; }
         location /two { set $a location; set $c $arg_q; rewrite ^ /three last; }
         location /three { return 200 \"$a $c\"; }
         location /quote { set $q 'it\\'s'; return 200 \"\\\"$q\\\" ; {}\"; }",
    )
    .start();
    assert_bodies(
        &mut server.client(),
        &[
            ("/one", "server server-serverx []"),
            ("/two?q=x", "location x"),
            ("/quote", "\"it's\" ; {}"),
        ],
    );
}

#[test]
fn uninitialized_variables_are_empty_and_warned_of() {
    let server =
        site("location / { if ($arg_a) { set $maybe x; } return 200 \"[$maybe]\"; }").start();
    assert_bodies(&mut server.client(), &[("/", "[]"), ("/?a=1", "[x]")]);
    server.wait_for_text("error.log", "using uninitialized \"maybe\" variable");
}

#[test]
fn limit_except_is_a_location_for_the_other_methods() {
    let server = site(
        "location / { limit_except GET { access_log %%DIR%%/others.log; } alias %%DIR%%/html/t.txt; }
         location /post { limit_except POST PUT { access_log %%DIR%%/others.log; } alias %%DIR%%/html/t.txt; }",
    )
    .start();
    let mut client = server.client();
    for (method, path) in [
        ("GET", "/1"),
        ("PUT", "/2"),
        ("POST", "/post3"),
        ("PUT", "/post4"),
        ("GET", "/post5"),
    ] {
        let text =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
        client.send(text).response();
    }
    client.head("/6");
    let log = server.wait_for_text("others.log", "/post5");
    let paths: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split(' ').nth(6))
        .collect();
    assert_eq!(paths, ["/2", "/post5"], "HEAD goes with GET");
}

#[test]
fn limit_except_guards_the_other_methods() {
    if !peer::builds("deny all;") {
        return;
    }
    let server = site(
        "location / { limit_except GET { deny all; } return 200 ok; }
         location /post { limit_except POST { deny all; } alias %%DIR%%/html/t.txt; }
         location /here { limit_except GET { allow 127.0.0.0/8; deny all; } alias %%DIR%%/html/t.txt; }",
    )
    .start();
    let ask = |method: &str, path: &str| {
        let text =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
        server.client().send(text).response().status
    };
    assert_eq!(ask("GET", "/post"), 403);
    assert_eq!(
        ask("POST", "/post"),
        405,
        "allowed, then refused by the file"
    );
    assert_eq!(ask("POST", "/here"), 405);
    assert_eq!(ask("GET", "/here"), 200);
    assert_eq!(ask("GET", "/"), 200);
    assert_eq!(
        ask("POST", "/"),
        403,
        "it is a location of its own, without the outer return"
    );
}

#[test]
fn allow_deny_and_satisfy() {
    if !peer::builds("deny all;") {
        return;
    }
    let server = site(
        "location /no/ { deny all; }
         location /yes/ { alias %%DIR%%/html/; allow 127.0.0.1; deny all; }
         location /order/ { alias %%DIR%%/html/; deny 127.0.0.1; allow all; }
         location /net/ { alias %%DIR%%/html/; allow 127.0.0.0/8; deny all; }
         location /six/ { alias %%DIR%%/html/; allow ::1; deny all; }
         location /any/ { alias %%DIR%%/html/; satisfy any; deny 10.0.0.0/8; allow all; }
         location /all/ { alias %%DIR%%/html/; satisfy all; deny all; }",
    )
    .start();
    let mut client = server.client();
    assert_statuses(
        &mut client,
        &[
            ("/no/t.txt", 403),
            ("/yes/t.txt", 200),
            ("/order/t.txt", 403),
            ("/net/t.txt", 200),
            ("/six/t.txt", 403),
            ("/any/t.txt", 200),
            ("/all/t.txt", 403),
        ],
    );
    server.wait_for_text("error.log", "access forbidden by rule");
}

#[test]
fn variables_of_the_core() {
    let server = site(
        "location /v/ { return 200 \"$args|$arg_b|$is_args|$query_string|$uri|$document_uri|$request_uri|$request_method|$scheme|$host|$http_host|$server_name|$server_port|$remote_addr|$server_protocol|$request\"; }
         location /l/ { alias %%DIR%%/html/; return 200 \"$document_root|$request_filename|$content_length|$content_type|$cookie_b|$http_user_agent\"; }
         location ~ ^/cap/(?<name>[^/]+)/(\\d+)$ { return 200 \"$name $1 $2 [$3]\"; }",
    )
    .start();
    let mut client = server.client();
    let answer = client.get_with("/v//x%20y?a=1&B=2", &["Host: LocalHost:1"]);
    let uri = "/v/x y";
    assert_eq!(
        answer.text(),
        format!(
            "a=1&B=2|2|?|a=1&B=2|{uri}|{uri}|/v//x%20y?a=1&B=2|GET|http|localhost|LocalHost:1|localhost|{}|127.0.0.1|HTTP/1.1|GET /v//x%20y?a=1&B=2 HTTP/1.1",
            server.port()
        )
    );
    let lines = [
        "Cookie: a=1; b=two; c=3",
        "User-Agent: test",
        "Content-Type: x/y",
        "Content-Length: 0",
    ];
    let answer = client.get_with("/l/t.txt", &lines);
    let dir = server.dir().path().display();
    assert_eq!(
        answer.text(),
        format!("{dir}/html/|{dir}/html/t.txt|0|x/y|two|test")
    );
    assert_bodies(&mut client, &[("/cap/abc/42", "abc abc 42 []")]);
}

#[test]
fn redirect_of_the_whole_site_to_https() {
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; server_name www.example.org; rewrite ^(.*) https://$server_name$1 permanent; }",
    )
    .start();
    let answer = server.client().get_with("/a/b?c=d", &["Host: anything"]);
    assert_eq!(answer.status_line, "HTTP/1.1 301 Moved Permanently");
    assert_eq!(
        answer.header("Location"),
        Some("https://www.example.org/a/b?c=d")
    );
    assert!(peer::is_firstbyte() || answer.header("Connection") == Some("keep-alive"));
}
