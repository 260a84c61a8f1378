//! WebDAV's methods: their effects on files, and their refusals.
//!
//! Sources: nginx documentation, `ngx_http_dav_module`; RFC 4918; CVE-2026-27654.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use firstbyte_tests::client::request;
use firstbyte_tests::h2::H2Client;
use firstbyte_tests::response::Response;
use firstbyte_tests::spdy::SpdyClient;
use firstbyte_tests::{Server, wait_until};

/// A server with writable files; uploads are collected in `up`.
fn server(location: &str) -> Server {
    with_uploads(
        "%%DIR%%/up 1 2",
        &format!("dav_methods PUT DELETE MKCOL COPY MOVE; {location}"),
    )
}

/// A server whose worker may write files made by the test.
fn with_uploads(up: &str, inner: &str) -> Server {
    Server::whole(&format!(
        "user root root; daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info;
         events {{ worker_connections 512; }}
         http {{
             client_body_temp_path {up}; access_log off;
             server {{
                 listen 127.0.0.1:%%PORT%% spdy; http2 on; root %%DIR%%/html; absolute_redirect off;
                 {inner}
             }}
         }}"
    ))
    .file("html/old", "old")
    .start()
}

fn ask(server: &Server, method: &str, path: &str, lines: &[&str]) -> Response {
    server
        .client()
        .send(request(method, path, lines))
        .response()
}

fn put(server: &Server, path: &str, body: &str) -> Response {
    let length = format!("Content-Length: {}", body.len());
    server
        .client()
        .send(request("PUT", path, &[&length]))
        .send(body)
        .response()
}

fn text(server: &Server, name: &str) -> String {
    fs::read_to_string(server.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Files below a directory, however deep.
fn files(dir: &Path) -> usize {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    let count = |path: &Path| if path.is_dir() { files(path) } else { 1 };
    entries
        .map(|e| count(&e.expect("the directory is there").path()))
        .sum()
}

fn uploads(server: &Server) -> usize {
    files(&server.path("up"))
}

#[test]
fn a_file_is_made_replaced_and_served_at_once() {
    let server = server("");
    let answer = put(&server, "/new%20one", "first");
    assert_eq!(answer.status, 201);
    assert_eq!(answer.header("Location"), Some("/new%20one"));
    assert_eq!(answer.header("Content-Length"), Some("0"));
    assert_eq!(text(&server, "html/new one"), "first");
    assert_eq!(put(&server, "/new%20one", "").status, 204);
    assert_eq!(text(&server, "html/new one"), "");
    assert_eq!(uploads(&server), 0, "nothing is left of the uploads");
}

/// One stat of a file serves all requests of one read, except those after a change of the file.
#[test]
fn a_request_behind_a_change_sees_it() {
    let server = server("");
    let get = request("GET", "/old", &[]);
    let put = request("PUT", "/old", &["Content-Length: 3"]);
    let delete = request("DELETE", "/old", &[]);
    let mut client = server.client();
    client.send(format!("{get}{put}new{get}{delete}{get}"));
    let answers: Vec<_> = (0..5).map(|_| client.response()).collect();
    let told: Vec<_> = answers.iter().map(|a| (a.status, a.text())).collect();
    assert_eq!(told[0], (200, "old".to_owned()));
    assert_eq!(told[1].0, 204);
    assert_eq!(told[2], (200, "new".to_owned()));
    assert_eq!((told[3].0, told[4].0), (204, 404));
}

#[test]
fn chunked_bodies_and_bodies_in_pieces_arrive_whole() {
    let server = server("client_body_buffer_size 1k;");
    let mut client = server.client();
    client.send(request("PUT", "/chunked", &["Transfer-Encoding: chunked"]));
    for n in 0..300 {
        client.send(format!("a;x=y\r\n{n:010}\r\n"));
    }
    assert_eq!(client.send("0\r\nX: y\r\n\r\n").response().status, 201);
    let all: String = (0..300).map(|n| format!("{n:010}")).collect();
    assert_eq!(text(&server, "html/chunked"), all);
    assert_eq!(client.get("/chunked").text(), all, "the connection stays");

    let length = format!("Content-Length: {}", all.len());
    client.send(request("PUT", "/pieces", &[&length]));
    for piece in all.as_bytes().chunks(100) {
        client.send(piece);
    }
    assert_eq!(client.response().status, 201);
    assert_eq!(text(&server, "html/pieces"), all);
}

#[test]
fn a_body_that_was_not_announced_is_an_empty_file() {
    let server = server("");
    assert_eq!(ask(&server, "PUT", "/old", &[]).status, 204);
    assert_eq!(text(&server, "html/old"), "");
}

#[test]
fn a_client_that_waits_for_leave_gets_it_and_one_that_is_refused_does_not() {
    let server = server("location /small { client_max_body_size 4; }");
    let expecting = ["Content-Length: 5", "Expect: 100-continue"];
    let mut client = server.client();
    client.send(request("PUT", "/old", &expecting));
    assert_eq!(client.response().status, 100);
    assert_eq!(client.send("hello").response().status, 204);
    assert_eq!(text(&server, "html/old"), "hello");
    assert_eq!(ask(&server, "PUT", "/dir/", &expecting).status, 409);
    assert_eq!(ask(&server, "PUT", "/small", &expecting).status, 413);
}

#[test]
fn a_put_that_breaks_off_leaves_the_old_file_and_nothing_else() {
    let server = server("");
    let mut client = server.client();
    client.send(request("PUT", "/old", &["Content-Length: 100000"]));
    client.send(vec![b'x'; 60_000]);
    wait_until("the upload has begun", || uploads(&server) == 1);
    client.finish_sending();
    assert!(client.closed(), "there is nobody to answer");
    wait_until("the upload is gone", || uploads(&server) == 0);
    assert_eq!(text(&server, "html/old"), "old");
    assert_eq!(put(&server, "/old", "next").status, 204);

    let mut client = H2Client::connect(server.port());
    let stream = client.request("PUT", "/old", &[], false);
    client.data(stream, &[b'x'; 16_000], false);
    client.data(stream, &[b'x'; 16_000], false);
    wait_until("the upload has begun", || uploads(&server) == 1);
    client.cancel(stream);
    wait_until("the upload is gone", || uploads(&server) == 0);
    assert_eq!(text(&server, "html/old"), "next");
}

#[test]
fn broken_framing_is_refused_and_leaves_nothing() {
    let server = server("");
    let mut client = server.client();
    client.send(request("PUT", "/old", &["Transfer-Encoding: chunked"]));
    client.send("3\r\nabc\r\n");
    assert!(!client.closed_within(std::time::Duration::from_millis(50)));
    client.send("xyz\r\n");
    assert_eq!(client.response().status, 400);
    wait_until("the upload is gone", || uploads(&server) == 0);
    assert_eq!(text(&server, "html/old"), "old");
}

/// Over HTTP/2 a window is no limit of an upload that is wanted whole.
#[test]
fn large_bodies_come_over_http2_and_spdy() {
    let server = server("client_max_body_size 8m; client_body_buffer_size 16k;");
    let body: Vec<u8> = (0..1_000_000_u32).map(|n| (n / 3) as u8).collect();
    let mut client = H2Client::connect(server.port());
    let stream = client.request("PUT", "/h2", &[("content-length", "1000000")], false);
    // The window that was opened for the whole body has come before this has.
    client.settle();
    let pieces = body.chunks(16_000).count();
    for (n, piece) in body.chunks(16_000).enumerate() {
        client.data(stream, piece, n + 1 == pieces);
    }
    assert_eq!(client.reply(stream).status, 201);
    assert_eq!(fs::read(server.path("html/h2")).ok(), Some(body.clone()));

    let mut client = SpdyClient::connect(server.port());
    let stream = client.request("PUT", "/spdy", &[], false);
    client.data(stream, &body[..60_000], true);
    assert_eq!(client.reply(stream).status, 201);
    let put = fs::read(server.path("html/spdy")).ok();
    assert_eq!(put.as_deref(), Some(&body[..60_000]));
    assert_eq!(uploads(&server), 0);
}

#[test]
fn a_body_shorter_than_its_length_is_refused_over_http2() {
    let server = server("");
    let mut client = H2Client::connect(server.port());
    let stream = client.request("PUT", "/old", &[("content-length", "5")], false);
    client.data(stream, b"abc", true);
    assert_eq!(client.reply(stream).status, 400);
    assert_eq!(text(&server, "html/old"), "old");
}

#[test]
fn bodies_up_to_the_limit_are_taken() {
    let server = server("client_max_body_size 1000;");
    let (most, more) = ("x".repeat(1000), "x".repeat(1001));
    assert_eq!(put(&server, "/new", &most).status, 201);
    assert_eq!(put(&server, "/new", &more).status, 413);
    let chunked = |sizes: [usize; 2]| {
        let mut client = server.client();
        client.send(request("PUT", "/chunked", &["Transfer-Encoding: chunked"]));
        for size in sizes {
            client.send(format!("{size:x}\r\n{}\r\n", "y".repeat(size)));
        }
        client.send("0\r\n\r\n").response().status
    };
    assert_eq!(chunked([400, 600]), 201);
    assert_eq!(chunked([400, 601]), 413);
    let streamed = |size: usize| {
        let mut client = H2Client::connect(server.port());
        let stream = client.request("PUT", "/h2", &[], false);
        client.data(stream, &vec![b'z'; size], true);
        client.reply(stream).status
    };
    assert_eq!(streamed(1000), 201);
    assert_eq!(streamed(1001), 413);
    assert_eq!(text(&server, "html/new"), most);
    assert_eq!(text(&server, "html/chunked").len(), 1000);
    assert_eq!(text(&server, "html/h2").len(), 1000);
    assert_eq!(uploads(&server), 0);
}

#[test]
fn times_modes_and_directories_are_as_asked_for() {
    let server = server(
        "location /a/ { create_full_put_path on; dav_access group:rw all:r; }
         location /b/ { dav_methods PUT; }",
    );
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT";
    let answer = ask(&server, "PUT", "/a/b/c", &[date, "Content-Length: 0"]);
    assert_eq!(answer.status, 201);
    let meta = fs::metadata(server.path("html/a/b/c")).expect("it was put");
    assert_eq!(meta.mtime(), 784_111_777);
    assert_eq!(meta.permissions().mode() & 0o777, 0o664);
    let dir = fs::metadata(server.path("html/a/b")).expect("it was made");
    assert!(dir.is_dir());
    assert_eq!(
        dir.permissions().mode() & 0o700,
        0o700,
        "the owner may enter"
    );
    assert_eq!(put(&server, "/b/c", "x").status, 409, "no directory");
    assert_eq!(ask(&server, "DELETE", "/b/c", &[]).status, 405);
}

#[test]
fn collections_are_made_and_removed() {
    let server = server("");
    assert_eq!(ask(&server, "MKCOL", "/dir/", &[]).status, 201);
    assert_eq!(ask(&server, "MKCOL", "/dir/", &[]).status, 405);
    assert_eq!(ask(&server, "MKCOL", "/none/dir/", &[]).status, 409);
    assert_eq!(put(&server, "/dir/.hidden", "x").status, 201);
    symlink("/nowhere", server.path("html/dir/link")).expect("a link can be made");
    symlink(server.path("html/old"), server.path("html/dir/other")).expect("a link can be made");
    assert_eq!(ask(&server, "DELETE", "/dir", &[]).status, 409);
    assert_eq!(ask(&server, "DELETE", "/dir/", &[]).status, 204);
    assert!(!server.path("html/dir").exists());
    assert_eq!(
        text(&server, "html/old"),
        "old",
        "a link is removed, not its file"
    );
}

fn go(server: &Server, method: &str, from: &str, to: &str) -> u16 {
    let destination = format!("Destination: {to}");
    ask(server, method, from, &[&destination]).status
}

/// CVE-2026-27654 and its variants: a source that equals or contains its destination is refused, and the reverse.
#[test]
fn nothing_is_copied_or_moved_onto_or_into_itself() {
    let server = server(
        "location /alias/ { alias %%DIR%%/html/; }
         location ~ ^/one/(.*)$ { alias %%DIR%%/html/old; }",
    );
    for path in ["a/b/c", "d"] {
        fs::create_dir_all(server.path("html").join(path)).expect("it can be made");
    }
    fs::write(server.path("html/a/b/file"), "kept").expect("it can be written");
    symlink(server.path("html/a/b"), server.path("html/d/link")).expect("a link can be made");
    for method in ["COPY", "MOVE"] {
        for (from, to, status) in [
            ("/old", "/old", 403),
            ("/old", "/./old", 403),
            ("/old", "/./x/../old", 400),
            ("/alias/old", "/alias//old", 403),
            ("/one/1", "/one/2", 403),
            ("/a/", "/a/", 403),
            ("/a/", "/a/b/", 403),
            ("/a/b/", "/a/", 403),
            ("/a/", "/d/link/e/", 403),
            ("/alias/old", "/o", 400),
            ("/alias/old", "/aliasx", 400),
            ("/old", "/../old", 400),
            ("/old", "/%00", 400),
            ("/old", "", 400),
            ("/old", "http://localhost.example/x", 400),
            ("/old", "http://localhost@example/x", 400),
            ("/old", "https://localhost/x", 400),
            ("/a/", "/x", 409),
            ("/old", "/a/", 409),
            ("/old", "/a", 409),
        ] {
            assert_eq!(
                go(&server, method, from, to),
                status,
                "{method} {from} {to}"
            );
        }
    }
    assert_eq!(text(&server, "html/old"), "old");
    assert_eq!(text(&server, "html/a/b/file"), "kept");
    assert_eq!(files(&server.path("html")), 3, "nothing was added");
}

#[test]
fn files_and_trees_are_copied_and_moved() {
    let server = server("location /alias/ { alias %%DIR%%/html/; }");
    assert_eq!(go(&server, "COPY", "/old", "http://LOCALHOST:1/copy"), 204);
    assert_eq!(text(&server, "html/copy"), "old");
    assert_eq!(go(&server, "MOVE", "/alias/copy", "/alias/made/way"), 204);
    assert_eq!(text(&server, "html/made/way"), "old");
    assert!(!server.path("html/copy").exists());
    fs::create_dir_all(server.path("html/t/u")).expect("it can be made");
    fs::write(server.path("html/t/u/f"), "deep").expect("it can be written");
    fs::create_dir(server.path("html/taken")).expect("it can be made");
    fs::write(server.path("html/taken/gone"), "").expect("it can be written");
    assert_eq!(go(&server, "COPY", "/t/", "/taken/"), 201);
    assert_eq!(text(&server, "html/taken/u/f"), "deep");
    assert!(
        !server.path("html/taken/gone").exists(),
        "the other tree is replaced"
    );
    assert_eq!(go(&server, "MOVE", "/t/", "/alias2/"), 201);
    assert!(!server.path("html/t").exists());
    assert_eq!(text(&server, "html/alias2/u/f"), "deep");
    let lines = ["Destination: /old", "Overwrite: F"];
    assert_eq!(ask(&server, "COPY", "/made/way", &lines).status, 412);
}

/// Who has the file open while it is overwritten reads the old one to its end.
#[test]
fn a_copy_takes_the_place_of_a_file_in_one_step() {
    let server = server("");
    fs::write(server.path("html/new"), "newer and longer").expect("it can be written");
    let before = fs::metadata(server.path("html/old"))
        .expect("it is there")
        .ino();
    assert_eq!(go(&server, "COPY", "/new", "/old"), 204);
    let after = fs::metadata(server.path("html/old"))
        .expect("it is there")
        .ino();
    assert_ne!(before, after, "another file has the name");
    assert_eq!(files(&server.path("html")), 2, "nothing is left beside it");
}

/// Reading a special file might never end.
#[test]
fn what_is_special_is_not_copied() {
    let server = server("");
    let pipe = server.path("html/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    let kind = fs::metadata(&pipe).expect("it was made").file_type();
    assert!(kind.is_fifo());
    assert_eq!(go(&server, "COPY", "/pipe", "/x"), 403);
    assert_eq!(server.get("/old").status, 200, "the server goes on");
}

/// The temporary file and its target may lie on different file systems.
#[test]
fn a_file_is_put_across_file_systems() {
    let other = Path::new("/dev/shm");
    let here = fs::metadata(std::env::temp_dir())
        .expect("it is there")
        .dev();
    if fs::metadata(other).map(|meta| meta.dev()).unwrap_or(here) == here {
        eprintln!("there is no other file system to test with");
        return;
    }
    let up = other.join(format!("firstbyte-dav-{}", std::process::id()));
    let inner = "dav_methods PUT; dav_access all:r;";
    let server = with_uploads(&up.display().to_string(), inner);
    assert_eq!(put(&server, "/old", "from afar").status, 204);
    assert_eq!(text(&server, "html/old"), "from afar");
    assert_eq!(files(&server.path("html")), 1, "nothing is left beside it");
    assert_eq!(files(&up), 0, "nothing is left where it came from");
    let mode = fs::metadata(server.path("html/old"))
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o004, 0o004);
    let _ = fs::remove_dir_all(up);
}
