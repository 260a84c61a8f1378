//! Messages of the error log: the system's error, the action in progress, and bytes of paths.
//!
//! Texts are those of nginx 1.31.4, as measured.

use firstbyte_tests::dir::set_mode;
use firstbyte_tests::{Builder, Server, Signal, peer, wait_until};

fn site(http: &str, locations: &str) -> Builder {
    let text = format!(
        "{http} server {{ listen 127.0.0.1:%%PORT%%; server_name localhost; root %%DIR%%/html;
             location / {{ return 200 ok; }} {locations} }}"
    );
    Server::http(&text).file("html/t.txt", "text")
}

/// The log's lines once it has `count` of them.
#[track_caller]
fn lines(server: &Server, file: &str, count: usize) -> Vec<String> {
    wait_until(&format!("{file} has {count} lines"), || {
        server.dir().read(file).lines().count() >= count
    });
    server.dir().read(file).lines().map(str::to_owned).collect()
}

/// nginx does not test the root if the file was opened; otherwise the error names the call.
#[test]
fn computed_log_is_written_if_the_file_was_opened() {
    let server = site(
        "log_format u '$uri'; access_log %%DIR%%/logs/$arg_to.log u;",
        "location = /icon { alias %%DIR%%/html/t.txt; }
         location = /gone { alias %%DIR%%/html/none; }
         location = /returned { alias %%DIR%%/html/t.txt; return 200; }
         location = /gz { gzip_static always; alias %%DIR%%/html/t.txt; }",
    )
    .file("logs/keep", "")
    .file("html/t.txt.gz", "compressed")
    .prepare(|dir| set_mode(&dir.join("logs"), 0o777))
    .start();
    let mut client = server.client();
    for path in [
        "/icon?to=a",
        "/gone?to=a",
        "/returned?to=a",
        "/gz?to=a",
        "/?to=a",
    ] {
        client.get(path);
    }
    assert_eq!(lines(&server, "logs/a.log", 3), ["/icon", "/gz", "/"]);
    let dir = server.dir().path().display();
    for (name, reason, path) in [
        ("none", "2: No such file or directory", "/gone"),
        ("t.txt", "20: Not a directory", "/returned"),
    ] {
        server.wait_for_text(
            "error.log",
            &format!(
                "testing \"{dir}/html/{name}\" existence failed ({reason}) while logging request, client: 127.0.0.1, \
                 server: localhost, request: \"GET {path}?to=a HTTP/1.1\", host: "
            ),
        );
    }
}

/// The action that nginx names after "while" is the connection's, whichever of its requests ran last.
#[test]
fn errors_name_the_action_in_progress() {
    let server = site(
        "",
        "location /ssi/ { ssi on; ssi_types *; }
         location /proxied/ { ssi on; ssi_types *; proxy_pass http://127.0.0.1:%%PORT%%/raw/; }
         location /raw/ { alias %%DIR%%/html/ssi/; }
         location /asks/ { auth_request /down; }
         location = /down { proxy_pass http://127.0.0.1:%%PORT2%%; }
         location /asks-here/ { auth_request /no; }
         location = /no { return 404; }",
    )
    .file("html/ssi/bad", "<!--#bad -->")
    .file("html/ssi/none", "<!--#include virtual=\"/ssi/absent\" -->")
    .start();
    for path in [
        "/ssi/bad",
        "/ssi/none",
        "/proxied/bad",
        "/asks/x",
        "/asks-here/x",
    ] {
        server.get(path);
    }
    for text in [
        "invalid SSI command: \"bad\" while sending response to client, client: 127.0.0.1, server: localhost, request: \"GET /ssi/bad ",
        "/html/ssi/absent\" failed (2: No such file or directory), client: 127.0.0.1, server: localhost, request: \"GET /ssi/none HTTP/1.1\", subrequest: \"/ssi/absent\"",
        "invalid SSI command: \"bad\" while sending to client, client: 127.0.0.1, server: localhost, request: \"GET /proxied/bad ",
        "auth request unexpected status: 502 while sending to client, client: 127.0.0.1, server: localhost, request: \"GET /asks/x ",
        "auth request unexpected status: 404, client: 127.0.0.1, server: localhost, request: \"GET /asks-here/x ",
    ] {
        server.wait_for_text("error.log", text);
    }
}

/// nginx writes paths unchanged: a file must be found by its name in the log.
#[test]
fn bytes_of_a_path_stay_in_the_error_log() {
    let server = site(
        "",
        "location /files/ { alias %%DIR%%/html/; index i; autoindex off; }",
    )
    .start();
    server.get("/files/caf%e9%c3%a9%9b%c2%9b%1b");
    server.wait_for_text("error.log", "failed (2: No such file or directory)");
    let log = std::fs::read(server.path("error.log")).expect("the server writes it");
    let path: &[u8] = match peer::is_firstbyte() {
        true => {
            b"/html/caf\xe9\xc3\xa9\\x9B\\xC2\\x9B\\x1B\" failed (2: No such file or directory)"
        }
        false => b"/html/caf\xe9\xc3\xa9\x9b\xc2\x9b\x1b\" failed (2: No such file or directory)",
    };
    let found = log.windows(path.len()).any(|part| part == path);
    assert!(found, "{}", String::from_utf8_lossy(&log));
}

/// As in nginx such a rate is logged and means no limit.
#[test]
fn rate_that_is_no_size_is_logged() {
    let server = site(
        "",
        "location /a { limit_rate $arg_rate; alias %%DIR%%/html; }
         location /b { set $limit_rate $arg_rate; alias %%DIR%%/html; }",
    )
    .start();
    assert_eq!(server.get("/a/t.txt?rate=fast").text(), "text");
    assert_eq!(server.get("/b/t.txt?rate=fast").text(), "text");
    server.wait_for_text("error.log", "[error]");
    server.wait_for_text(
        "error.log",
        "invalid size \"fast\" while sending response to client, client: ",
    );
    server.wait_for_text("error.log", "invalid $limit_rate \"fast\", client: ");
}

/// nginx reports the file that a reload removes.
#[test]
fn removed_file_of_a_socket_is_logged() {
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; listen unix:%%DIR%%/s.sock; return 200 ok; }",
    )
    .start();
    let socket = server.path("s.sock");
    server.rewrite_conf(|conf| {
        let listen = format!("listen unix:{};", socket.display());
        conf.replace(&listen, "")
    });
    server.signal(Signal::HUP);
    server.wait_for_text(
        "error.log",
        &format!("deleting socket {}\n", socket.display()),
    );
    wait_until("the file is gone", || !socket.exists());
}
