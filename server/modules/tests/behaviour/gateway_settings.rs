//! Errors of directives of FastCGI, SCGI and uwsgi, in nginx's words, and valid directives.
//!
//! Each row was tried with `nginx -t` of nginx 1.31.4.

use crate::site::Site;

#[test]
fn wrong_configurations_are_refused_in_the_words_of_nginx() {
    let mut wrong = Vec::new();
    for (conf, expected) in REFUSED {
        let long = |text: &str| text.replace("LONG", &"a".repeat(108));
        let said = Site::refused(&long(conf));
        if !said.starts_with(&long(expected)) {
            wrong.push(format!("{conf}\n  {said}\n  not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn right_configurations_have_the_warnings_of_nginx() {
    for (conf, expected) in TAKEN {
        let warnings = Site::warnings_with(conf, &[]);
        let said: Vec<_> = warnings.iter().map(String::as_str).collect();
        assert_eq!(said.len(), expected.len(), "{conf}: {said:?}");
        for (said, expected) in said.iter().zip(*expected) {
            assert!(said.contains(expected), "{conf}: {said}");
        }
    }
}

/// The text inside the block `http`, and its error.
const REFUSED: &[(&str, &str)] = &[
    (
        "fastcgi_cache b; server {}",
        "\"fastcgi_cache\" zone \"b\" is unknown",
    ),
    (
        "proxy_cache_path c keys_zone=a:1m; uwsgi_cache a; server {}",
        "the shared memory zone \"a\" is already declared for a different use",
    ),
    (
        "scgi_cache_path c keys_zone=a:1m; server { scgi_store on; scgi_cache a; }",
        "\"scgi_cache\" directive is incompatible with \"scgi_store\"",
    ),
    (
        "scgi_cache_use_stale http_502; server {}",
        "invalid value \"http_502\"",
    ),
    (
        "server { location / { fastcgi_pass http://x; } }",
        "invalid host in upstream \"http://x\"",
    ),
    (
        "server { location / { fastcgi_pass 127.0.0.1; } }",
        "no port in upstream \"127.0.0.1\"",
    ),
    (
        "server { location / { fastcgi_pass x:0; } }",
        "invalid port in upstream \"x:0\"",
    ),
    (
        "server { location / { fastcgi_pass \"\"; } }",
        "no host in upstream \"\"",
    ),
    (
        "server { location / { fastcgi_pass :80; } }",
        "no host in upstream \":80\"",
    ),
    (
        "server { location / { fastcgi_pass 127.0.0.1:9000/x; } }",
        "invalid host in upstream \"127.0.0.1:9000/x\"",
    ),
    (
        "server { location / { fastcgi_pass [::1; } }",
        "invalid host in upstream \"[::1\"",
    ),
    (
        "server { location / { fastcgi_pass unix:; } }",
        "no path in the unix domain socket in upstream \"unix:\"",
    ),
    (
        "server { location / { fastcgi_pass unix:/LONG; } }",
        "too long path in the unix domain socket in upstream \"unix:/LONG\"",
    ),
    (
        "server { location / { fastcgi_pass 127.0.0.1:1; fastcgi_pass 127.0.0.1:2; } }",
        "\"fastcgi_pass\" directive is duplicate",
    ),
    (
        "upstream g { server 127.0.0.1; } server { location / { fastcgi_pass g:80; } }",
        "upstream \"g\" may not have port 80",
    ),
    (
        "server { fastcgi_pass 127.0.0.1:1; }",
        "\"fastcgi_pass\" directive is not allowed here",
    ),
    (
        "server { location / { uwsgi_pass uwsgi://; } }",
        "no host in upstream \"\"",
    ),
    (
        "server { location / { uwsgi_pass uwsgi://a:b; } }",
        "invalid port in upstream \"a:b\"",
    ),
    (
        "server { location / { scgi_pass scgi://a:80; } }",
        "invalid host in upstream \"scgi://a:80\"",
    ),
    (
        "server { location / { scgi_pass 127.0.0.1:1; scgi_pass 127.0.0.1:2; } }",
        "\"scgi_pass\" directive is duplicate",
    ),
    (
        "fastcgi_param A;",
        "invalid number of arguments in \"fastcgi_param\" directive",
    ),
    ("fastcgi_param A b c;", "invalid parameter \"c\""),
    (
        "fastcgi_param A b if_not_empty d;",
        "invalid number of arguments in \"fastcgi_param\" directive",
    ),
    ("scgi_param A b if_empty;", "invalid parameter \"if_empty\""),
    (
        "uwsgi_param A b IF_NOT_EMPTY;",
        "invalid parameter \"IF_NOT_EMPTY\"",
    ),
    (
        "fastcgi_index a; fastcgi_index b;",
        "\"fastcgi_index\" directive is duplicate",
    ),
    (
        "fastcgi_keep_conn maybe;",
        "invalid value \"maybe\" in \"fastcgi_keep_conn\" directive, it must be \"on\" or \"off\"",
    ),
    (
        "fastcgi_keep_conn on; fastcgi_keep_conn on;",
        "\"fastcgi_keep_conn\" directive is duplicate",
    ),
    (
        "fastcgi_split_path_info \"^(.+)$\";",
        "pattern \"^(.+)$\" must have 2 captures",
    ),
    (
        "fastcgi_split_path_info \"^(.+)(.+)(.+)$\";",
        "pattern \"^(.+)(.+)(.+)$\" must have 2 captures",
    ),
    (
        "fastcgi_split_path_info \"^(.+\";",
        "pcre2_compile() failed: missing closing parenthesis in \"^(.+\"",
    ),
    (
        "fastcgi_param \"\" value;",
        "\"fastcgi_param\" needs a name",
    ),
    ("uwsgi_param \"\" value;", "\"uwsgi_param\" needs a name"),
    ("uwsgi_modifier1 256;", "value must be between 0 and 255"),
    (
        "uwsgi_modifier1 -1;",
        "\"uwsgi_modifier1\" directive invalid number",
    ),
    (
        "uwsgi_modifier2 x;",
        "\"uwsgi_modifier2\" directive invalid number",
    ),
    (
        "uwsgi_modifier1 1; uwsgi_modifier1 2;",
        "\"uwsgi_modifier1\" directive is duplicate",
    ),
    (
        "uwsgi_string a; uwsgi_string b;",
        "\"uwsgi_string\" directive is duplicate",
    ),
    (
        "fastcgi_next_upstream http_502;",
        "invalid value \"http_502\"",
    ),
    ("scgi_next_upstream http_504;", "invalid value \"http_504\""),
    ("scgi_store \"\";", "empty path"),
    (
        "fastcgi_store on; fastcgi_store off;",
        "\"fastcgi_store\" directive is duplicate",
    ),
    (
        "uwsgi_send_lowat 1;",
        "unknown directive \"uwsgi_send_lowat\"",
    ),
    (
        "scgi_send_lowat 1;",
        "unknown directive \"scgi_send_lowat\"",
    ),
    (
        "fastcgi_pass_trailers on;",
        "unknown directive \"fastcgi_pass_trailers\"",
    ),
    ("fastcgi_bind nowhere;", "invalid address \"nowhere\""),
    (
        "scgi_connect_timeout x;",
        "\"scgi_connect_timeout\" directive invalid value",
    ),
    ("fastcgi_ignore_headers X;", "invalid value \"X\""),
    (
        "server { location / { limit_except GET { fastcgi_pass 127.0.0.1:1; } if ($arg_a) { uwsgi_pass 127.0.0.1:1; } } }",
        "\"fastcgi_pass\" directive is not allowed here",
    ),
];

/// The text inside the block `http`, and its warnings.
const TAKEN: &[(&str, &[&str])] = &[
    (
        "uwsgi_next_upstream http_500 http_500;",
        &["duplicate value \"http_500\""],
    ),
    ("fastcgi_buffers 1 8k;", &[]),
    ("fastcgi_buffers 8 8k; fastcgi_busy_buffers_size 4k;", &[]),
    ("uwsgi_buffers 8 8k; uwsgi_temp_file_write_size 1k;", &[]),
    ("scgi_max_temp_file_size 1k;", &[]),
    (
        "fastcgi_send_lowat 12k;",
        &["\"fastcgi_send_lowat\" is not supported, ignored"],
    ),
    ("fastcgi_catch_stderr a; fastcgi_catch_stderr b;", &[]),
    (
        "fastcgi_split_path_info \"^(a)(b)$\"; fastcgi_split_path_info \"^(a)(c)$\";",
        &[],
    ),
    (
        "fastcgi_hide_header X; fastcgi_hide_header X; fastcgi_pass_header Status;",
        &[],
    ),
    (
        "uwsgi_cache off; uwsgi_cache_bypass $arg_a; uwsgi_no_cache $arg_a $arg_b; uwsgi_no_cache 1;",
        &[],
    ),
    (
        "server { location / { fastcgi_pass g; } } upstream g { server 127.0.0.1; }",
        &[],
    ),
];
