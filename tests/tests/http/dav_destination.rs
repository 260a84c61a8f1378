//! The destination of COPY and MOVE: its location is checked, and links obey `disable_symlinks`.
//!
//! Sources: docs/differences.md; nginx documentation, `ngx_http_dav_module`; CVE-2026-27654.

use std::fs;
use std::os::unix::fs::symlink;

use firstbyte_tests::Server;
use firstbyte_tests::client::request;
use firstbyte_tests::response::Response;

fn server(inner: &str) -> Server {
    let server = Server::whole(&format!(
        "user root root; daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info;
         events {{ worker_connections 512; }}
         http {{
             client_body_temp_path %%DIR%%/up; access_log off;
             server {{
                 listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
                 dav_methods PUT DELETE MKCOL COPY MOVE;
                 {inner}
             }}
         }}"
    ))
    .file("html/old", "old")
    .file("html/tree/private/f", "deep")
    .file("html/tree/f", "file")
    .file("html/tree/run.php", "code")
    .file("html/private/kept", "kept")
    .file("users", "joe:{PLAIN}right\n")
    .start();
    fs::create_dir_all(server.path("html/open")).expect("it can be made");
    server
}

fn ask(server: &Server, method: &str, path: &str, lines: &[&str]) -> Response {
    server
        .client()
        .send(request(method, path, lines))
        .response()
}

fn go(server: &Server, method: &str, from: &str, to: &str) -> u16 {
    ask(server, method, from, &[&format!("Destination: {to}")]).status
}

fn exists(server: &Server, name: &str) -> bool {
    server.path("html").join(name).symlink_metadata().is_ok()
}

/// nginx does so, too.
#[test]
fn a_destination_that_climbs_is_refused() {
    let server = server("");
    for to in [
        "/open/../new",
        "/open/%2e%2e/new",
        "/open/.%2E/new",
        "/open/..%2fnew",
        "/open/..",
        "http://localhost/open/../new",
    ] {
        for method in ["COPY", "MOVE"] {
            assert_eq!(go(&server, method, "/old", to), 400, "{method} {to}");
        }
    }
    assert!(!exists(&server, "new"));
    assert_eq!(
        go(&server, "COPY", "/old", "/open/..new"),
        204,
        "no segment of its own"
    );
    assert_eq!(
        go(&server, "COPY", "/old", "/open/new?a=/../b"),
        204,
        "an argument"
    );
}

#[test]
fn the_location_of_a_destination_is_asked() {
    for closed in [
        "location /private/ { deny all; }",
        "location /private/ { limit_except GET PUT { deny all; } }",
        "location /private/ { internal; }",
        "location /private/ { return 403; }",
        "location /private/ { if ($request_method = COPY) { return 403; } if ($request_method = MOVE) { return 403; } }",
        "location /private/ { auth_basic closed; auth_basic_user_file %%DIR%%/users; }",
        "location /private/ { auth_request /no; } location = /no { internal; return 403; }",
        "location ~ ^/private/ { deny all; }",
        "if ($uri ~ ^/private/) { return 404; }",
    ] {
        let server = server(closed);
        for method in ["COPY", "MOVE"] {
            assert_eq!(
                go(&server, method, "/old", "/private/kept"),
                403,
                "{closed}"
            );
            assert_eq!(go(&server, method, "/old", "/private/new"), 403, "{closed}");
            assert_eq!(go(&server, method, "/tree/", "/private/"), 403, "{closed}");
        }
        let kept = fs::read_to_string(server.path("html/private/kept"));
        assert_eq!(kept.ok().as_deref(), Some("kept"), "{closed}");
        assert!(!exists(&server, "private/new"), "{closed}");
        assert_eq!(go(&server, "COPY", "/old", "/open/new"), 204, "{closed}");
        assert_eq!(go(&server, "MOVE", "/old", "/open/newer"), 204, "{closed}");
        let log = server.error_log();
        assert!(
            log.contains("access to the destination \"/private/"),
            "{log}"
        );
    }
}

#[test]
fn who_may_do_it_there_may_do_it_from_here() {
    let server = server(
        "location /private/ {
             limit_except GET COPY { deny all; }
             auth_basic closed; auth_basic_user_file %%DIR%%/users;
         }
         location /asked/ { auth_request /yes; }
         location = /yes { internal; return 204; }",
    );
    fs::create_dir_all(server.path("html/asked")).expect("it can be made");
    let right = "Authorization: Basic am9lOnJpZ2h0";
    let lines = ["Destination: /private/new", right];
    assert_eq!(ask(&server, "MOVE", "/old", &lines).status, 403);
    assert_eq!(ask(&server, "COPY", "/old", &lines).status, 204);
    assert_eq!(go(&server, "COPY", "/old", "/asked/new"), 204);
}

/// Entries of a directory get URIs of their own, and so do those that were there before.
#[test]
fn every_file_of_a_tree_is_asked_for() {
    let closed =
        server("location /open/private/ { deny all; } location ~ ^/php/.*\\.php$ { deny all; }");
    for (method, to) in [
        ("COPY", "/open/"),
        ("MOVE", "/open/"),
        ("COPY", "/php/"),
        ("MOVE", "/php/"),
    ] {
        assert_eq!(go(&closed, method, "/tree/", to), 403, "{method} {to}");
    }
    assert!(!exists(&closed, "open/private") && !exists(&closed, "php"));
    assert!(exists(&closed, "tree/run.php"));
    let taken = server("location /tree/private/ { deny all; }");
    assert_eq!(
        go(&taken, "COPY", "/open/", "/tree/"),
        403,
        "it would be removed"
    );
    assert!(exists(&taken, "tree/private/f"));
    let open = server("");
    assert_eq!(go(&open, "COPY", "/tree/", "/open/"), 201);
    assert!(exists(&open, "open/private/f"));
}

#[test]
fn links_are_kept_to() {
    let within = |rule: &str| {
        let server = server(&format!("{rule} create_full_put_path on;"));
        fs::create_dir_all(server.path("outside")).expect("it can be made");
        symlink(server.path("outside"), server.path("html/link")).expect("it can be made");
        fs::write(server.path("outside/f"), "outside").expect("it can be written");
        symlink(server.path("outside/f"), server.path("html/linked")).expect("it can be made");
        server
    };
    let changes = |server: &Server| {
        [
            go(server, "COPY", "/old", "/link/copy"),
            go(server, "COPY", "/old", "/link/new/copy"),
            go(server, "COPY", "/link/f", "/copy"),
            go(server, "COPY", "/linked", "/copy"),
            ask(server, "PUT", "/link/put", &["Content-Length: 0"]).status,
            ask(server, "PUT", "/link/new/put", &["Content-Length: 0"]).status,
            ask(server, "MKCOL", "/link/dir/", &[]).status,
            ask(server, "DELETE", "/link/f", &[]).status,
            go(server, "MOVE", "/old", "/link/moved"),
        ]
    };
    let server = within("disable_symlinks on from=$document_root;");
    assert_eq!(changes(&server), [403; 9]);
    let left = fs::read_dir(server.path("outside"))
        .expect("it is there")
        .count();
    assert_eq!(left, 1, "nothing was changed there");
    assert_eq!(
        ask(&server, "PUT", "/open/new/f", &["Content-Length: 0"]).status,
        201
    );
    assert_eq!(go(&server, "COPY", "/old", "/open/new"), 409);
    assert_eq!(
        ask(&server, "DELETE", "/linked", &[]).status,
        204,
        "the link itself"
    );
    let free = within("");
    let answers = changes(&free);
    assert!(
        answers
            .iter()
            .all(|status| matches!(status, 201 | 204 | 409)),
        "{answers:?}"
    );
}

/// The destination's location decides on links too, not only the source's.
#[test]
fn the_links_of_the_destination_are_its_own_matter() {
    let server = server("location /strict/ { disable_symlinks on from=$document_root; }");
    fs::create_dir_all(server.path("html/strict")).expect("it can be made");
    fs::create_dir_all(server.path("outside")).expect("it can be made");
    symlink(server.path("outside"), server.path("html/strict/link")).expect("it can be made");
    assert_eq!(go(&server, "COPY", "/old", "/strict/link/f"), 403);
    assert_eq!(go(&server, "COPY", "/old", "/strict/f"), 204);
}
