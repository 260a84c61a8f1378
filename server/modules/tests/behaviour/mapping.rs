//! From URIs to files: `root`, `alias`, `try_files`, `index`, locations inside locations.

use crate::site::Site;

#[test]
fn a_location_inside_an_alias_keeps_the_outer_prefix() {
    let mut site = Site::server(
        "location /a/ {
             alias /data/;
             location /a/b/ { add_header X-In prefix; }
             location ~ \\.txt$ { add_header X-In regex; }
         }",
    )
    .file("/data/b/f", "in b")
    .file("/data/c/f.txt", "in c");
    let answer = site.get("/a/b/f");
    assert_eq!(
        (answer.body.as_str(), answer.field("X-In")),
        ("in b", "prefix")
    );
    let answer = site.get("/a/c/f.txt");
    assert_eq!(
        (answer.body.as_str(), answer.field("X-In")),
        ("in c", "regex")
    );
}

#[test]
fn an_alias_of_an_expression_names_the_whole_path() {
    let mut site =
        Site::server("location ~ ^/u/(\\w+)(/.*)$ { alias /srv/users/$1/public$2; index i.html; }")
            .file("/srv/users/ann/public/f", "file")
            .file("/srv/users/ann/public/d/i.html", "index");
    assert_eq!(site.get("/u/ann/f").body, "file");
    assert_eq!(site.get("/u/ann/d/").body, "index");
    assert_eq!(
        site.get("/u/ann/d").field("Location"),
        "http://localhost/u/ann/d/"
    );
}

#[test]
fn a_path_never_climbs_out() {
    let mut site = Site::server(
        "location /files { alias /data/files/; }
         location ~ ^/u/(.*)$ { alias /srv/users/$1; }
         location /t { try_files $arg_f =404; }",
    )
    .file("/data/secret", "secret")
    .file("/etc/passwd", "secret");
    assert_eq!(site.get("/files../secret").status, 404);
    assert_eq!(site.get("/u/..%2f..%2fetc/passwd").status, 400);
    assert_eq!(site.get("/t?f=/../etc/passwd").status, 404);
}

#[test]
fn an_alias_is_of_no_use_once_the_uri_was_rewritten_in_place() {
    let mut site =
        Site::server("location /a/ { alias /data/; rewrite ^ /b break; }").file("/data/b", "b");
    assert_eq!(site.get("/a/x").status, 500);
}

#[test]
fn a_root_of_slash_is_empty() {
    let mut site = Site::server(
        "location / { root /; add_header X-Root \"[$document_root]$request_filename\"; }",
    )
    .file("/f", "file");
    assert_eq!(site.get("/f").field("X-Root"), "[]/f");
}

#[test]
fn try_files_leaves_a_directory_without_its_slash() {
    let mut site = Site::server("location / { try_files $uri $uri/ /last.html; } location = /last.html { return 200 last; }")
        .file("/www/d/index.html", "index")
        .dir("/www/empty");
    assert_eq!(site.get("/d/").body, "index");
    let answer = site.get("/d?a=1");
    assert_eq!(
        (answer.status, answer.field("Location")),
        (301, "http://localhost/d/?a=1")
    );
    assert_eq!(site.get("/empty/").status, 403);
    assert_eq!(site.get("/none").body, "last");
}

#[test]
fn try_files_below_an_alias_knows_the_location() {
    let mut site = Site::server(
        "location /a/ { alias /data/; try_files $uri other =404; }
         location ~ ^/r/(.*) { alias /data/; try_files $1 =404; }",
    )
    .file("/data/f", "file")
    .file("/data/other", "other");
    assert_eq!(site.get("/a/f").body, "file");
    assert_eq!(site.get("/a/none").body, "other");
    assert_eq!(site.get("/r/f").body, "file");
}

/// Source: nginx 1.31.4, compared side by side.
#[test]
fn a_fallback_with_variables_loses_the_prefix_of_an_alias_once() {
    let php = r#"location ~ \.php$ { return 200 "$uri $request_filename $args"; }"#;
    let mut site = Site::server(&format!(
        "location /stage/ {{ alias /data/; try_files $uri $uri/ /stage//stage/i.php?q=$args; {php} }}
         location /shop {{ alias /data; try_files $uri $uri/ /shop/shop/i.php$is_args$args; {php} }}
         location /once {{ alias /data; try_files $uri /once/i.php?q=$args; {php} }}
         location /text/ {{ alias /data/; try_files $uri /text/i.php; {php} }}
         location /twice/ {{ alias /data/; try_files $uri /twice//twice/i.php; {php} }}
         location /out/ {{ alias /data/; try_files $uri /else/i.php?$args; {php} }}
         location /outer/ {{
             alias /data/;
             location /outer/inner/ {{ try_files $uri /outer//outer/i.php?q=$args; }}
             {php}
         }}
         location /plain/ {{ root /data; try_files $uri /plain//plain/i.php?q=$args; {php} }}
         location = /exact {{ alias /data/none; try_files '' $uri /exact/i.php?$args; }}
         location /named/ {{ alias /data/; try_files $uri @$arg_to; }}
         location @there {{ return 200 \"named $uri\"; }}
         {php}"
    ));
    for (target, body) in [
        ("/stage/a/b?x=1", "/stage/i.php /data/i.php q=x=1"),
        ("/shop/cart?x=1", "/shop/i.php /data/i.php x=1"),
        ("/once/a?x=1", "/i.php /www/i.php q=x=1"),
        ("/text/a", "/text/i.php /data/i.php "),
        ("/twice/a", "/twice//twice/i.php /data//twice/i.php "),
        ("/out/a?x=1", "/else/i.php /www/else/i.php x=1"),
        ("/outer/inner/a?x", "/outer/i.php /data/i.php q=x"),
        (
            "/plain/a?x",
            "/plain//plain/i.php /data/plain//plain/i.php q=x",
        ),
        ("/exact?x", "/i.php /www/i.php x"),
        ("/named/a?to=there", "named /named/a"),
    ] {
        assert_eq!(site.get(target).body, body, "{target}");
    }
}

#[test]
fn try_files_ends_with_a_status_or_a_location() {
    let mut site = Site::server(
        "location /s { try_files /none =410; }
         location /n { try_files /none @named; }
         location /u { try_files /none /new?from=$uri&$args; }
         location @named { return 200 \"$uri\"; }
         location /new { return 200 \"$uri $args\"; }",
    );
    assert_eq!(site.get("/s").status, 410);
    assert_eq!(site.get("/n").body, "/n");
    assert_eq!(site.get("/u?a=1").body, "/new from=/u&a=1");
}

#[test]
fn try_files_is_not_inherited_into_an_if() {
    let mut site = Site::server("location / { if ($arg_a) { set $b 1; } try_files /other =404; }")
        .file("/www/f", "file")
        .file("/www/other", "other");
    assert_eq!(site.get("/f").body, "other");
    assert_eq!(site.get("/f?a=1").body, "file");
}

#[test]
fn an_index_is_looked_for_in_its_directory() {
    let mut site = Site::server("index a.html sub; location /abs/ { index a.html /top.html; }")
        .file("/www/d/a.html", "index")
        .dir("/www/e/sub")
        .dir("/www/abs")
        .file("/www/top.html", "top")
        .dir("/www/none");
    assert_eq!(site.get("/d/").body, "index");
    assert_eq!(site.get("/abs/").body, "top");
    assert_eq!(site.get("/e/").field("Location"), "http://localhost/e/sub/");
    assert_eq!(site.get("/none/").status, 403);
    assert_eq!(site.get("/nowhere/").status, 404);
    assert_eq!(site.get("/top.html/").status, 404);
}

#[test]
fn locations_are_chosen_inside_locations_first() {
    let mut site = Site::server(
        "location /a {
             location ^~ /a/b { return 200 inner-prefix; }
             location ~ x$ { return 200 inner-regex; }
             return 200 outer;
         }
         location ~ y$ { return 200 outer-regex; }
         location ^~ /c { location /c/d { return 200 cd; } return 200 c; }",
    );
    assert_eq!(site.get("/a/b/x").body, "inner-prefix");
    // Only the innermost `^~` counts, and only for the expressions beside it.
    assert_eq!(site.get("/a/b/y").body, "outer-regex");
    assert_eq!(site.get("/a/x").body, "inner-regex");
    assert_eq!(site.get("/a/y").body, "outer-regex");
    assert_eq!(site.get("/a/z").body, "outer");
    assert_eq!(site.get("/c/d/y").body, "cd");
}

#[test]
fn of_named_locations_with_one_name_the_first_counts() {
    let mut site = Site::server(
        "location / { try_files /none @a; } location @a { return 200 first; } location @a { return 200 second; }",
    );
    assert_eq!(site.get("/").body, "first");
}

#[test]
fn a_request_without_a_host_goes_to_the_empty_name() {
    let mut site = Site::http(
        "server { listen 80; server_name a; return 200 a; }
         server { listen 80; server_name \"\"; return 200 empty; }",
    );
    assert_eq!(site.send("GET / HTTP/1.0\r\n\r\n").body, "empty");
    assert_eq!(
        site.send("GET / HTTP/1.0\r\nHost: A:8080\r\n\r\n").body,
        "a"
    );
    assert_eq!(site.send("GET / HTTP/1.0\r\nHost: b\r\n\r\n").body, "a");
}

#[test]
fn an_empty_gif_is_for_reading() {
    let mut site = Site::server("location /p { empty_gif; }");
    let answer = site.get("/p");
    assert_eq!(
        (answer.field("Content-Type"), answer.field("Content-Length")),
        ("image/gif", "43")
    );
    assert_eq!(
        answer.field("Last-Modified"),
        "Mon, 28 Sep 1970 06:00:00 GMT"
    );
    let post = site.send("POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(post.status, 405);
}
