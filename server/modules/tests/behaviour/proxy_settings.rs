//! Errors of proxy directives, in nginx's words, and valid directives with warnings.
//!
//! Each row was tried with `nginx -t` of nginx 1.31.4.

use crate::site::Site;

#[test]
fn wrong_configurations_are_refused_in_the_words_of_nginx() {
    let mut wrong = Vec::new();
    for (conf, expected) in REFUSED {
        let conf = conf.replace("LONG", &"a".repeat(108));
        let said = Site::refused(&conf);
        if said != expected.replace("LONG", &"a".repeat(108)) {
            wrong.push(format!("{conf}\n  {said}\n  not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn right_configurations_have_the_warnings_of_nginx() {
    for (conf, expected) in TAKEN {
        let warnings = Site::warnings_with(conf, &[]);
        let said: Vec<_> = warnings.iter().map(|line| line.as_str()).collect();
        assert_eq!(said.len(), expected.len(), "{conf}: {said:?}");
        for (said, expected) in said.iter().zip(*expected) {
            assert!(said.contains(expected), "{conf}: {said}");
        }
    }
}

#[test]
fn what_is_not_built_names_itself() {
    for (conf, name) in [
        ("proxy_http_version 2;", "\"2\" of \"proxy_http_version\""),
        ("server { location / { grpc_pass x; } }", "\"grpc_pass\""),
    ] {
        let said = Site::refused(conf);
        assert!(
            said.contains(name) && said.contains("not built yet"),
            "{conf}: {said}"
        );
    }
    assert!(Site::refused("proxy_upgrade websocket h2c;").starts_with("protocol \"h2c\" cannot"));
}

/// The text inside the block `http`, and its error.
const REFUSED: &[(&str, &str)] = &[
    (
        "server { location / { proxy_pass ftp://x; } }",
        "invalid URL prefix",
    ),
    (
        "server { location / { proxy_pass 127.0.0.1; } }",
        "invalid URL prefix",
    ),
    (
        "server { location / { proxy_pass http://; } }",
        "no host in upstream \"\"",
    ),
    (
        "server { location / { proxy_pass http://:80; } }",
        "no host in upstream \":80\"",
    ),
    (
        "server { location / { proxy_pass http://x:0; } }",
        "invalid port in upstream \"x:0\"",
    ),
    (
        "server { location / { proxy_pass http://127.0.0.1:65536/x; } }",
        "invalid port in upstream \"127.0.0.1:65536/x\"",
    ),
    (
        "server { location / { proxy_pass http://127.0.0.1:; } }",
        "invalid port in upstream \"127.0.0.1:\"",
    ),
    (
        "server { location / { proxy_pass http://127.0.0.1:80x; } }",
        "invalid port in upstream \"127.0.0.1:80x\"",
    ),
    (
        "server { location / { proxy_pass http://[::1; } }",
        "invalid host in upstream \"[::1\"",
    ),
    (
        "server { location / { proxy_pass http://[]; } }",
        "no host in upstream \"[]\"",
    ),
    (
        "server { location / { proxy_pass http://[::1]x; } }",
        "invalid host in upstream \"[::1]x\"",
    ),
    (
        "server { location / { proxy_pass http://[x]:80; } }",
        "invalid IPv6 address in upstream \"[x]:80\"",
    ),
    (
        "server { location / { proxy_pass http://unix:; } }",
        "no path in the unix domain socket in upstream \"unix:\"",
    ),
    (
        "server { location / { proxy_pass http://unix::/x; } }",
        "no path in the unix domain socket in upstream \"unix::/x\"",
    ),
    (
        "server { location / { proxy_pass http://unix:/LONG; } }",
        "too long path in the unix domain socket in upstream \"unix:/LONG\"",
    ),
    (
        "server { location / { proxy_pass http://127.0.0.1; proxy_pass http://127.0.0.1; } }",
        "\"proxy_pass\" directive is duplicate",
    ),
    (
        "server { location ~ x { proxy_pass http://127.0.0.1/; } }",
        "\"proxy_pass\" cannot have URI part in location given by regular expression, or inside named location, or inside \"if\" statement, or inside \"limit_except\" block",
    ),
    (
        "server { location @n { proxy_pass http://127.0.0.1/x; } }",
        "\"proxy_pass\" cannot have URI part in location given by regular expression, or inside named location, or inside \"if\" statement, or inside \"limit_except\" block",
    ),
    (
        "server { location / { if ($uri) { proxy_pass http://127.0.0.1/; } } }",
        "\"proxy_pass\" cannot have URI part in location given by regular expression, or inside named location, or inside \"if\" statement, or inside \"limit_except\" block",
    ),
    (
        "server { location / { limit_except GET { proxy_pass http://127.0.0.1/x; } } }",
        "\"proxy_pass\" cannot have URI part in location given by regular expression, or inside named location, or inside \"if\" statement, or inside \"limit_except\" block",
    ),
    (
        "server { proxy_pass http://127.0.0.1; }",
        "\"proxy_pass\" directive is not allowed here",
    ),
    (
        "server { location / { proxy_pass http://$nothing_; } }",
        "unknown \"nothing_\" variable",
    ),
    (
        "upstream a { server 127.0.0.1; } server { location / { proxy_pass http://a:80; } }",
        "upstream \"a\" may not have port 80",
    ),
    (
        "proxy_buffers 1 4k; server {}",
        "there must be at least 2 \"proxy_buffers\"",
    ),
    (
        "proxy_buffers 0 4k; server {}",
        "\"proxy_buffers\" directive invalid value",
    ),
    (
        "proxy_buffer_size 128k; server {}",
        "\"proxy_busy_buffers_size\" must be less than the size of all \"proxy_buffers\" minus one buffer",
    ),
    (
        "proxy_buffers 4 8k; proxy_busy_buffers_size 4k; server {}",
        "\"proxy_busy_buffers_size\" must be equal to or greater than the maximum of the value of \"proxy_buffer_size\" and one of the \"proxy_buffers\"",
    ),
    (
        "proxy_buffers 4 8k; proxy_busy_buffers_size 32k; server {}",
        "\"proxy_busy_buffers_size\" must be less than the size of all \"proxy_buffers\" minus one buffer",
    ),
    (
        "proxy_busy_buffers_size 1k; server {}",
        "\"proxy_busy_buffers_size\" must be equal to or greater than the maximum of the value of \"proxy_buffer_size\" and one of the \"proxy_buffers\"",
    ),
    (
        "proxy_temp_file_write_size 1k; server {}",
        "\"proxy_temp_file_write_size\" must be equal to or greater than the maximum of the value of \"proxy_buffer_size\" and one of the \"proxy_buffers\"",
    ),
    (
        "proxy_max_temp_file_size 1k; server {}",
        "\"proxy_max_temp_file_size\" must be equal to zero to disable temporary files usage or must be equal to or greater than the maximum of the value of \"proxy_buffer_size\" and one of the \"proxy_buffers\"",
    ),
    (
        "proxy_buffers 2 32k; server {}",
        "\"proxy_busy_buffers_size\" must be less than the size of all \"proxy_buffers\" minus one buffer",
    ),
    (
        "server { proxy_buffers 8 16k; location / { proxy_busy_buffers_size 8k; } }",
        "\"proxy_busy_buffers_size\" must be equal to or greater than the maximum of the value of \"proxy_buffer_size\" and one of the \"proxy_buffers\"",
    ),
    (
        "proxy_next_upstream bad; server {}",
        "invalid value \"bad\"",
    ),
    (
        "proxy_ignore_headers X-Foo; server {}",
        "invalid value \"X-Foo\"",
    ),
    (
        "proxy_bind nothing; server {}",
        "invalid address \"nothing\"",
    ),
    (
        "proxy_bind 127.0.0.1 opaque; server {}",
        "invalid parameter \"opaque\"",
    ),
    (
        "proxy_bind 127.0.0.1; proxy_bind off; server {}",
        "\"proxy_bind\" directive is duplicate",
    ),
    ("proxy_http_version 1.2; server {}", "invalid value \"1.2\""),
    ("proxy_store ''; server {}", "empty path"),
    (
        "proxy_store on; proxy_store off; server {}",
        "\"proxy_store\" directive is duplicate",
    ),
    (
        "proxy_store_access user:x; server {}",
        "invalid value \"user:x\"",
    ),
    (
        "proxy_temp_path /tmp/x 1 2 0; server {}",
        "\"proxy_temp_path\" directive invalid value",
    ),
    (
        "proxy_temp_path /tmp/x 11; server {}",
        "\"proxy_temp_path\" directive invalid value",
    ),
    (
        "proxy_redirect off; proxy_redirect a b; server {}",
        "\"proxy_redirect\" directive is duplicate",
    ),
    (
        "proxy_redirect a b; proxy_redirect off; server {}",
        "\"proxy_redirect\" directive is duplicate",
    ),
    (
        "proxy_redirect other; server {}",
        "invalid parameter \"other\"",
    ),
    (
        "proxy_redirect default; server {}",
        "\"proxy_redirect default\" should be placed after the \"proxy_pass\" directive",
    ),
    (
        "server { location / { proxy_pass http://$host; proxy_redirect default; } }",
        "\"proxy_redirect default\" cannot be used with \"proxy_pass\" directive with variables",
    ),
    (
        "server { location / { proxy_redirect default; proxy_pass http://127.0.0.1; } }",
        "\"proxy_redirect default\" should be placed after the \"proxy_pass\" directive",
    ),
    (
        "proxy_redirect ~*( b; server {}",
        "pcre2_compile() failed: missing closing parenthesis in \"(\"",
    ),
    (
        "proxy_cookie_domain a; server {}",
        "invalid parameter \"a\"",
    ),
    (
        "proxy_cookie_domain off; proxy_cookie_domain a b; server {}",
        "\"proxy_cookie_domain\" directive is duplicate",
    ),
    (
        "proxy_cookie_domain a b; proxy_cookie_domain off; server {}",
        "\"proxy_cookie_domain\" directive is duplicate",
    ),
    ("proxy_cookie_path a; server {}", "invalid parameter \"a\""),
    (
        "proxy_cookie_path a b; proxy_cookie_path off; server {}",
        "\"proxy_cookie_path\" directive is duplicate",
    ),
    ("proxy_cookie_flags a; server {}", "invalid parameter \"a\""),
    (
        "proxy_cookie_flags a secure; proxy_cookie_flags off; server {}",
        "\"proxy_cookie_flags\" directive is duplicate",
    ),
    (
        "proxy_cookie_flags off; proxy_cookie_flags off; server {}",
        "\"proxy_cookie_flags\" directive is duplicate",
    ),
    (
        "proxy_set_body a; proxy_set_body b; server {}",
        "\"proxy_set_body\" directive is duplicate",
    ),
    (
        "proxy_method a; proxy_method b; server {}",
        "\"proxy_method\" directive is duplicate",
    ),
    (
        "proxy_buffering maybe; server {}",
        "invalid value \"maybe\" in \"proxy_buffering\" directive, it must be \"on\" or \"off\"",
    ),
    (
        "proxy_connect_timeout x; server {}",
        "\"proxy_connect_timeout\" directive invalid value",
    ),
    (
        "proxy_limit_rate x; server {}",
        "\"proxy_limit_rate\" directive invalid value",
    ),
    (
        "proxy_next_upstream_tries x; server {}",
        "\"proxy_next_upstream_tries\" directive invalid number",
    ),
    (
        "proxy_set_header a; server {}",
        "invalid number of arguments in \"proxy_set_header\" directive",
    ),
    (
        "proxy_hide_header a b; server {}",
        "invalid number of arguments in \"proxy_hide_header\" directive",
    ),
    (
        "proxy_cache b; server {}",
        "\"proxy_cache\" zone \"b\" is unknown",
    ),
    ("proxy_cache b;", "zero size shared memory zone \"b\""),
    (
        "proxy_cache_path c keys_zone=a:1m; proxy_cache_path d keys_zone=a:1m; server {}",
        "duplicate zone \"a\"",
    ),
    (
        "proxy_cache_path c keys_zone=a:1m; proxy_cache_path d keys_zone=a:2m; server {}",
        "the size 2097152 of shared memory zone \"a\" conflicts with already declared size 1048576",
    ),
    (
        "limit_req_zone $uri zone=a:1m rate=1r/s; proxy_cache a; server {}",
        "the shared memory zone \"a\" is already declared for a different use",
    ),
    (
        "proxy_cache_path c; server {}",
        "invalid number of arguments in \"proxy_cache_path\" directive",
    ),
    (
        "proxy_cache_path c keys_zone=a:1m; server { proxy_cache a; proxy_store on; }",
        "\"proxy_store\" directive is incompatible with \"proxy_cache\"",
    ),
    (
        "proxy_cache_path c keys_zone=a:1m; server { proxy_store on; proxy_cache a; }",
        "\"proxy_cache\" directive is incompatible with \"proxy_store\"",
    ),
    (
        "proxy_cache off; proxy_cache off; server {}",
        "\"proxy_cache\" directive is duplicate",
    ),
    (
        "proxy_cache \"\"; server {}",
        "\"proxy_cache\" zone \"\" is unknown",
    ),
    (
        "proxy_cache_key a; proxy_cache_key b; server {}",
        "\"proxy_cache_key\" directive is duplicate",
    ),
    (
        "proxy_cache_valid 200 x; server {}",
        "invalid time value \"x\"",
    ),
    (
        "proxy_cache_valid 99 1m; server {}",
        "invalid status \"99\"",
    ),
    (
        "proxy_cache_valid 600 1m; server {}",
        "invalid status \"600\"",
    ),
    (
        "proxy_cache_valid ANY 1m; server {}",
        "invalid status \"ANY\"",
    ),
    (
        "proxy_cache_methods PUT; server {}",
        "invalid value \"PUT\"",
    ),
    (
        "proxy_cache_use_stale http_502 x; server {}",
        "invalid value \"x\"",
    ),
    (
        "proxy_cache_min_uses -1; server {}",
        "\"proxy_cache_min_uses\" directive invalid number",
    ),
    (
        "proxy_cache_max_range_offset x; server {}",
        "\"proxy_cache_max_range_offset\" directive invalid value",
    ),
    (
        "proxy_cache_lock_timeout x; server {}",
        "\"proxy_cache_lock_timeout\" directive invalid value",
    ),
    (
        "proxy_cache_lock maybe; server {}",
        "invalid value \"maybe\" in \"proxy_cache_lock\" directive, it must be \"on\" or \"off\"",
    ),
    (
        "proxy_no_cache; server {}",
        "invalid number of arguments in \"proxy_no_cache\" directive",
    ),
    (
        "proxy_cache_bypass $unknown_thing; server {}",
        "unknown \"unknown_thing\" variable",
    ),
];

/// The text inside the block `http`, and a part of its warnings.
const TAKEN: &[(&str, &[&str])] = &[
    (
        "proxy_next_upstream error error; server {}",
        &["duplicate value \"error\""],
    ),
    (
        "proxy_send_lowat 1k; server {}",
        &["\"proxy_send_lowat\" is not supported, ignored"],
    ),
    (
        "proxy_next_upstream error timeout invalid_header http_500 http_502 http_503 http_504 http_403 http_404 http_429 non_idempotent updating off; server {}",
        &[],
    ),
    ("proxy_buffers 2000 4k; server {}", &[]),
    (
        "proxy_cache off; proxy_cache_bypass $arg_x; proxy_cache_bypass $arg_y; proxy_no_cache 1; server {}",
        &[],
    ),
    (
        "proxy_cache b; proxy_cache_path c keys_zone=b:8k levels=1:2; server { location / { proxy_cache $host; } }",
        &[],
    ),
    (
        "proxy_cache_path c keys_zone=a:1m; server { proxy_store on; proxy_cache off; location / { proxy_cache a; } }",
        &[],
    ),
    (
        "proxy_cache_valid 100 599 any 1m; proxy_cache_valid 5m; proxy_cache_max_range_offset 1g; server {}",
        &[],
    ),
    (
        "proxy_cache_methods POST; proxy_cache_methods GET; server {}",
        &[],
    ),
    (
        "proxy_cache_methods GET GET; server {}",
        &["duplicate value \"GET\""],
    ),
    (
        "proxy_cache_use_stale error; proxy_cache_use_stale updating off non_idempotent; server {}",
        &[],
    ),
    (
        "proxy_cookie_domain a b; proxy_cookie_domain ~c d; proxy_redirect off; server { proxy_redirect a b; proxy_redirect c d; }",
        &[],
    ),
    (
        "server { location / { proxy_pass http://127.0.0.1; proxy_redirect default; proxy_redirect a b; } }",
        &[],
    ),
    (
        "proxy_ignore_headers x-accel-redirect Vary Set-Cookie; proxy_ignore_headers Expires; server {}",
        &[],
    ),
    (
        "proxy_headers_hash_max_size 1024; proxy_headers_hash_bucket_size 128; server {}",
        &[],
    ),
    (
        "proxy_temp_path /var/t 1 2 3; proxy_store_access group:rw all:r; server {}",
        &[],
    ),
    (
        "proxy_max_temp_file_size 0; proxy_socket_rcvbuf 0; server {}",
        &[],
    ),
    (
        "proxy_buffer_size 128k; server { proxy_buffers 4 256k; proxy_busy_buffers_size 256k; }",
        &[],
    ),
];
