//! Paths that directives make of variables: `..` from a client leads out of no directory.
//!
//! Source: docs/differences.md.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use firstbyte_tests::Server;

fn server() -> Server {
    Server::http(
        "log_format uri $uri;
         server {
             listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
             location /log { access_log %%DIR%%/logs/$arg_name.log uri; return 200 ok; }
             location /relative { access_log logs/../logs/x$arg_name.log uri; return 200 ok; }
             location /users {
                 auth_basic closed; auth_basic_user_file %%DIR%%/users/$arg_name;
                 try_files /f =404;
             }
         }",
    )
    .file("html/f", "file")
    .file("users/a", "joe:{PLAIN}right\n")
    .file("users/x..", "joe:{PLAIN}right\n")
    .file("other/b", "joe:{PLAIN}right\n")
    .file("secrets", "joe:{PLAIN}right\n")
    .prepare(|dir| {
        // The worker needs write access there.
        for name in ["logs", "other"] {
            let dir = dir.join(name);
            fs::create_dir_all(&dir).expect("it can be made");
            let open = fs::Permissions::from_mode(0o777);
            fs::set_permissions(&dir, open).expect("it is the test's own");
        }
    })
    .start()
}

#[test]
fn a_log_is_not_written_outside_of_its_directory() {
    let server = server();
    for (name, file) in [
        ("../other/made", "other/made.log"),
        ("a/../../other/made", "other/made.log"),
        ("../made", "made.log"),
    ] {
        assert_eq!(server.get(&format!("/log?name={name}")).status, 200);
        // By then the line of the first request is written, or never.
        assert_eq!(server.get("/log?name=a").status, 200);
        server.wait_for_text("logs/a.log", "/log");
        assert!(!server.path(file).exists(), "{name}");
    }
    server.wait_for_text("error.log", "is outside of its directory");
    server.get("/log?name=..");
    server.wait_for_text("logs/...log", "/log");
    // `..` is permitted in the configuration's own text.
    server.get("/relative?name=y");
    server.wait_for_text("logs/xy.log", "/relative");
}

#[test]
fn a_user_file_outside_of_its_directory_is_not_read() {
    let server = server();
    // "joe:right"
    let ask = |name: &str| {
        let path = format!("/users?name={name}");
        let mut client = server.client();
        client
            .get_with(&path, &["Authorization: Basic am9lOnJpZ2h0"])
            .status
    };
    assert_eq!(ask("a"), 200);
    assert_eq!(ask("x.."), 200, "dots within a name");
    for name in [
        "../secrets",
        "../other/b",
        "a/../../secrets",
        "..",
        "./../secrets",
    ] {
        assert_eq!(ask(name), 403, "{name}");
    }
    server.wait_for_text("error.log", "is outside of its directory");
}
