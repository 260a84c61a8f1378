//! Failed system calls of WebDAV's methods: the status, and the cause in the error log.
//!
//! Sources: nginx 1.31.4, as measured; RFC 4918, sections 9.7.1, 9.8.3, 9.8.5 and 9.9.2.

use std::path::Path;

use firstbyte_tests::Server;
use firstbyte_tests::client::request;
use firstbyte_tests::dir::set_mode;

/// A server that may write below `html`, but not in `html/closed`.
fn server() -> Server {
    Server::http(
        "access_log off;
         server {
             listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; dav_methods PUT DELETE MKCOL COPY MOVE;
             location /full/ { create_full_put_path on; }
         }",
    )
    .file("html/f.txt", "file")
    .file("html/tree/member", "member")
    .file("html/tree/inner/member", "member")
    .file("html/other/old", "old")
    .file("html/closed/old", "old")
    .file("html/full/closed/old", "old")
    .prepare(open_up)
    .start()
}

fn open_up(dir: &Path) {
    for (name, mode) in [
        ("html", 0o777),
        ("html/tree", 0o777),
        ("html/tree/inner", 0o777),
        ("html/other", 0o777),
        ("html/full", 0o777),
        ("html/closed", 0o555),
        ("html/full/closed", 0o555),
    ] {
        set_mode(&dir.join(name), mode);
    }
}

/// The status of a request with a body of one byte for PUT, or with a destination.
fn ask(server: &Server, method: &str, path: &str, lines: &[&str]) -> u16 {
    let mut lines = lines.to_vec();
    if method == "PUT" {
        lines.push("Content-Length: 1");
    }
    let mut text = request(method, path, &lines);
    if method == "PUT" {
        text.push('x');
    }
    server.client().send(text).response().status
}

/// Sends a request and looks for its status and the message of its error.
#[track_caller]
fn check(server: &Server, method: &str, path: &str, to: &str, status: u16, error: &str) {
    let destination = format!("Destination: {to}");
    let lines: &[&str] = match to {
        "" => &[],
        _ => &[&destination],
    };
    assert_eq!(
        ask(server, method, path, lines),
        status,
        "{method} {path} {to}"
    );
    let root = server.path("html");
    server.wait_for_text(
        "error.log",
        &error.replace("ROOT", &root.display().to_string()),
    );
}

#[test]
fn directory_that_may_not_be_written_is_named_with_its_cause() {
    let server = server();
    let denied = "failed (13: Permission denied)";
    for (method, path, to, status, call) in [
        ("PUT", "/closed/new", "", 500, "to \"ROOT/closed/new\""),
        (
            "PUT",
            "/full/closed/a/new",
            "",
            500,
            "[crit] mkdir() \"ROOT/full/closed/a\"",
        ),
        (
            "PUT",
            "/full/closed/b/c/new",
            "",
            500,
            "[crit] mkdir() \"ROOT/full/closed/b\"",
        ),
        (
            "MKCOL",
            "/closed/new/",
            "",
            403,
            "[error] mkdir() \"ROOT/closed/new\"",
        ),
        (
            "COPY",
            "/f.txt",
            "/closed/copy",
            500,
            "\"ROOT/closed/copy\"",
        ),
        (
            "COPY",
            "/tree/",
            "/closed/tree/",
            403,
            "[error] mkdir() \"ROOT/closed/tree\"",
        ),
        (
            "MOVE",
            "/f.txt",
            "/closed/moved",
            500,
            "to \"ROOT/closed/moved\"",
        ),
        (
            "MOVE",
            "/f.txt",
            "/closed/d/moved",
            500,
            "[crit] mkdir() \"ROOT/closed/d\"",
        ),
        (
            "MOVE",
            "/closed/old",
            "/moved",
            500,
            "rename() \"ROOT/closed/old\" to \"ROOT/moved\"",
        ),
        (
            "DELETE",
            "/closed/old",
            "",
            403,
            "[error] unlink() \"ROOT/closed/old\"",
        ),
    ] {
        let (level, call) = call.split_once("] ").unwrap_or(("", call));
        check(
            &server,
            method,
            path,
            to,
            status,
            &format!("{call} {denied}"),
        );
        let log = server.error_log();
        let found = log
            .lines()
            .any(|line| line.contains(level) && line.contains(denied));
        assert!(found, "{level}: {log}");
    }
}

#[test]
fn name_that_is_too_long_is_named_with_its_cause() {
    let server = server();
    let long = "n".repeat(300);
    let error = "failed (36: File name too long)";
    for (method, path, to, status, call) in [
        ("PUT", format!("/{long}"), String::new(), 500, "rename() "),
        (
            "PUT",
            format!("/full/{long}/x"),
            String::new(),
            500,
            "rename() ",
        ),
        ("MKCOL", format!("/{long}/"), String::new(), 409, "mkdir() "),
        (
            "COPY",
            "/f.txt".to_owned(),
            format!("/{long}"),
            404,
            "lstat() ",
        ),
        (
            "MOVE",
            "/f.txt".to_owned(),
            format!("/{long}"),
            404,
            "lstat() ",
        ),
        ("DELETE", format!("/{long}"), String::new(), 404, "lstat() "),
    ] {
        check(&server, method, &path, &to, status, error);
        let log = server.error_log();
        let has_call = |line: &str| line.contains(call) && line.contains(error);
        assert!(log.lines().any(has_call), "{method} {call}: {log}");
    }
}

/// nginx answers 500 to PUT and COPY here; RFC 4918 demands 409.
#[test]
fn parent_that_is_no_directory_is_named_with_its_cause() {
    let server = server();
    let (absent, no_directory) = (
        "failed (2: No such file or directory)",
        "failed (20: Not a directory)",
    );
    for (method, path, to, status, error) in [
        ("PUT", "/none/x", "", 409, absent),
        ("PUT", "/f.txt/x", "", 409, no_directory),
        ("MKCOL", "/none/x/", "", 409, absent),
        ("MKCOL", "/f.txt/x/", "", 409, no_directory),
        ("COPY", "/f.txt", "/none/x", 409, absent),
        ("COPY", "/f.txt", "/f.txt/x", 404, no_directory),
        ("MOVE", "/f.txt", "/f.txt/x", 404, no_directory),
        ("DELETE", "/f.txt/x", "", 409, no_directory),
        ("DELETE", "/none", "", 404, absent),
    ] {
        check(&server, method, path, to, status, error);
    }
    assert_eq!(
        ask(&server, "MOVE", "/f.txt", &["Destination: /new/dir/x"]),
        204
    );
}

/// RFC 4918, section 9.8.3; nginx copies the members.
#[test]
fn collection_is_copied_without_members_by_depth_0() {
    let server = server();
    for to in ["/copy/", "/other/"] {
        let lines = [&format!("Destination: {to}")[..], "Depth: 0"];
        assert_eq!(ask(&server, "COPY", "/tree/", &lines), 201);
        let made = server.path(&format!("html{to}"));
        let entries = std::fs::read_dir(made).expect("it was made");
        assert_eq!(entries.count(), 0, "{to}");
    }
    let lines = ["Destination: /all/", "Depth: infinity"];
    assert_eq!(ask(&server, "COPY", "/tree/", &lines), 201);
    assert!(server.path("html/all/inner/member").is_file());
}

#[test]
fn depths_of_other_methods_are_as_in_nginx() {
    let server = server();
    for (method, path, to, depth, status) in [
        ("COPY", "/tree/", "/copy/", "1", 400),
        ("COPY", "/tree/", "/copy/", "2", 400),
        ("COPY", "/f.txt", "/f2.txt", "0", 204),
        ("MOVE", "/f2.txt", "/f3.txt", "0", 400),
        ("MOVE", "/tree/", "/moved/", "0", 400),
        ("DELETE", "/tree/", "", "0", 400),
        ("DELETE", "/tree/", "", "1", 400),
        ("DELETE", "/f.txt", "", "1", 400),
        ("DELETE", "/f.txt", "", "0", 204),
        ("DELETE", "/tree/", "", "infinity", 204),
    ] {
        let (to, depth) = (format!("Destination: {to}"), format!("Depth: {depth}"));
        let got = ask(&server, method, path, &[&to, &depth]);
        assert_eq!(got, status, "{method} {path} {depth}");
    }
}
