//! Files, indexes, directories and their refusals; `alias`, `try_files`, `types`, links.
//!
//! Source: nginx's documentation of ngx_http_core_module and ngx_http_index_module.

use std::os::unix::fs::symlink;

use firstbyte_tests::dir::set_mode;
use firstbyte_tests::{Builder, Server};

const TYPES: &str = "types { text/html html htm; text/plain txt; image/svg+xml svg; } default_type application/octet-stream;";

fn site(locations: &str) -> Builder {
    let http = format!(
        "{TYPES} server {{ listen 127.0.0.1:%%PORT%%; server_name localhost; root %%DIR%%/html; {locations} }}"
    );
    Server::http(&http)
        .file("html/index.html", "welcome")
        .file("html/page.html", "page")
        .file("html/note.txt", "note")
        .file("html/dir/index.html", "dir index")
        .file("html/bare/other.txt", "other")
        .file("files/f.txt", "aliased")
}

#[test]
fn a_file_comes_with_its_head() {
    let server = site("").start();
    let path = server.path("html/note.txt");
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(784_111_777);
    let file = std::fs::File::options()
        .write(true)
        .open(path)
        .expect("the file was just written");
    file.set_modified(time).expect("its time can be set");
    let answer = server.get("/note.txt");
    assert_eq!(answer.status_line, "HTTP/1.1 200 OK");
    assert_eq!(answer.header("Content-Type"), Some("text/plain"));
    assert_eq!(answer.header("Content-Length"), Some("4"));
    assert_eq!(
        answer.header("Last-Modified"),
        Some("Sun, 06 Nov 1994 08:49:37 GMT")
    );
    assert_eq!(
        answer.header("ETag"),
        Some("\"2ebc98a1-4\""),
        "time and size in hex"
    );
    assert_eq!(answer.header("Accept-Ranges"), Some("bytes"));
    assert_eq!(answer.header("Connection"), Some("keep-alive"));
    assert!(answer.header("Server").is_some() && answer.header("Date").is_some());
    let names = answer.headers.iter().map(|(name, _)| name.as_str());
    // Connection belongs to the protocol; its place does not matter.
    let names: Vec<&str> = names.filter(|name| *name != "Connection").collect();
    let order = [
        "Server",
        "Date",
        "Content-Type",
        "Content-Length",
        "Last-Modified",
        "ETag",
        "Accept-Ranges",
    ];
    assert_eq!(names, order, "in nginx's order");
}

#[test]
fn head_has_the_same_head_and_no_body() {
    let server = site("").start();
    let mut client = server.client();
    for path in ["/note.txt", "/", "/dir", "/missing", "/bare/"] {
        let whole = client.get(path);
        let head = client.head(path);
        assert_eq!(head.status, whole.status, "{path}");
        let without_date = |r: &firstbyte_tests::Response| {
            r.headers
                .iter()
                .filter(|(name, _)| name != "Date")
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(without_date(&head), without_date(&whole), "{path}");
    }
    assert_eq!(
        client.get("/note.txt").text(),
        "note",
        "nothing was left over on the connection"
    );
}

#[test]
fn types_follow_the_extension() {
    let server = site("location /own/ { alias %%DIR%%/html/; types { text/x-own txt; } default_type text/x-default; }")
        .file("html/a.svg", "<svg/>")
        .file("html/a.HTML", "upper")
        .file("html/a.unknown", "?")
        .file("html/noext", "?")
        .file("html/d.txt/noext", "?")
        .start();
    let mut client = server.client();
    for (path, kind) in [
        ("/page.html", "text/html"),
        ("/a.HTML", "text/html"),
        ("/a.svg", "image/svg+xml"),
        ("/a.unknown", "application/octet-stream"),
        ("/noext", "application/octet-stream"),
        ("/d.txt/noext", "application/octet-stream"),
        ("/own/note.txt", "text/x-own"),
        ("/own/page.html", "text/x-default"),
    ] {
        assert_eq!(
            client.get(path).header("Content-Type"),
            Some(kind),
            "{path}"
        );
    }
}

#[test]
fn the_first_index_that_exists_is_served() {
    let server = site(
        "index first.html $arg_name.html index.html;
         location /far/ { index missing.html /note.txt; }
         location = /dir/chosen.html { return 200 \"redirected inside\"; }",
    )
    .file("html/dir/chosen.html", "chosen")
    .file("html/far/x.txt", "x")
    .start();
    let mut client = server.client();
    assert_eq!(client.get("/").text(), "welcome");
    assert_eq!(client.get("/dir/").text(), "dir index");
    assert_eq!(
        client.get("/dir/?name=chosen").text(),
        "redirected inside",
        "an index is an internal redirect"
    );
    assert_eq!(
        client.get("/far/").text(),
        "note",
        "the last one may name any URI"
    );
}

#[test]
fn a_directory_without_its_slash_is_redirected() {
    let server = site(
        "location /rel/ { absolute_redirect off; alias %%DIR%%/html/; }
         location /noport/ { port_in_redirect off; alias %%DIR%%/html/; }
         location /named/ { server_name_in_redirect on; alias %%DIR%%/html/; }",
    )
    .file("html/a b/c.txt", "spaced")
    .start();
    let port = server.port();
    let mut client = server.client();
    for (path, host, location) in [
        ("/dir", "localhost", format!("http://localhost:{port}/dir/")),
        (
            "/dir?a=b&c",
            "localhost",
            format!("http://localhost:{port}/dir/?a=b&c"),
        ),
        (
            "/dir",
            "Example.ORG:99",
            format!("http://example.org:{port}/dir/"),
        ),
        (
            "/a%20b",
            "localhost",
            format!("http://localhost:{port}/a%20b/"),
        ),
        ("/rel/dir", "localhost", "/rel/dir/".to_owned()),
        (
            "/noport/dir",
            "localhost",
            "http://localhost/noport/dir/".to_owned(),
        ),
        (
            "/named/dir",
            "other",
            format!("http://localhost:{port}/named/dir/"),
        ),
    ] {
        let answer = client.get_with(path, &[&format!("Host: {host}")]);
        assert_eq!(
            answer.status_line, "HTTP/1.1 301 Moved Permanently",
            "{path}"
        );
        assert_eq!(answer.header("Location"), Some(location.as_str()), "{path}");
    }
}

#[test]
fn what_cannot_be_served_is_403_or_404() {
    let server = site("")
        .file("html/closed.txt", "closed")
        .file("html/shut/in.txt", "in")
        .start();
    set_mode(&server.path("html/closed.txt"), 0o000);
    set_mode(&server.path("html/shut"), 0o000);
    let mut client = server.client();
    let long = format!("/{}", "n".repeat(300));
    for (path, status) in [
        ("/missing", 404),
        ("/missing/", 404),
        ("/note.txt/", 404),
        ("/note.txt/x", 404),
        ("/bare/", 403),
        ("/closed.txt", 403),
        ("/shut/in.txt", 403),
        (long.as_str(), 404),
    ] {
        let answer = client.get(path);
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.header("Content-Type"), Some("text/html"), "{path}");
        assert!(
            answer.text().contains(&format!("<title>{status} ")),
            "{path}"
        );
    }
    server.wait_for_text("error.log", "open() \"");
    let log = server.error_log();
    assert!(
        log.contains("html/missing\" failed (2: No such file or directory)"),
        "{log}"
    );
    assert!(
        log.contains("html/closed.txt\" failed (13: Permission denied)"),
        "{log}"
    );
    assert!(
        log.contains("directory index of \"") && log.contains("html/bare/\" is forbidden"),
        "{log}"
    );
    set_mode(&server.path("html/shut"), 0o755);
}

#[test]
fn special_files_are_not_served() {
    let server = site("").start();
    let fifo = server.path("html/fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        0o644.into(),
        0,
    )
    .expect("a fifo can be made");
    assert_eq!(
        server.get("/fifo").status,
        404,
        "and the worker does not hang on it"
    );
}

#[test]
fn methods_that_write_are_405() {
    let server = site("").start();
    let mut client = server.client();
    for method in [
        "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "MKCOL", "ANYTHING",
    ] {
        let text = format!(
            "{method} /note.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"
        );
        assert_eq!(client.send(text).response().status, 405, "{method}");
    }
    assert_eq!(
        client.get("/note.txt").text(),
        "note",
        "their bodies were read past"
    );
}

#[test]
fn alias_replaces_the_prefix() {
    let server = site(
        "location /a/ { alias %%DIR%%/files/; }
         location /noslash { alias %%DIR%%/files; }
         location = /one { alias %%DIR%%/files/f.txt; }
         location ~ ^/re/([a-z]+)$ { alias %%DIR%%/files/$1.txt; }
         location /q/ { alias %%DIR%%/files/$arg_dir/; }",
    )
    .file("files/sub/s.txt", "sub")
    .start();
    let mut client = server.client();
    for (path, body) in [
        ("/a/f.txt", "aliased"),
        ("/noslash/f.txt", "aliased"),
        ("/one", "aliased"),
        ("/re/f", "aliased"),
        ("/q/s.txt?dir=sub", "sub"),
    ] {
        let answer = client.get(path);
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, body),
            "{path}"
        );
    }
    assert_eq!(client.get("/a/").status, 403);
    assert_eq!(
        client.get("/a").status,
        404,
        "only a location that passes requests on redirects to its slash"
    );
}

#[test]
fn try_files_takes_the_first_that_is_there() {
    let server = site(
        "location / { try_files $uri $uri/ /page.html; }
         location /code/ { try_files $uri =404; }
         location /teapot/ { try_files $uri =418; }
         location /named/ { try_files $uri @named; }
         location @named { return 200 \"named $uri\"; }
         location /dirs/ { try_files /dir/ =404; }
         location /args/ { try_files /missing /page.html?x=$uri&$args; }
         location = /page.html { add_header X-Args \"$args\"; }
         location /al/ { alias %%DIR%%/files/; try_files $uri /f.txt =404; }
         location /type/ { try_files /note.txt =404; }",
    )
    .start();
    let mut client = server.client();
    for (path, status, body) in [
        ("/note.txt", 200, "note"),
        ("/nothing", 200, "page"),
        ("/dir/", 200, "dir index"),
        ("/code/x", 404, ""),
        ("/teapot/x", 418, ""),
        ("/named/x", 200, "named /named/x"),
        ("/al/f.txt", 200, "aliased"),
        ("/type/x", 200, "note"),
    ] {
        let answer = client.get(path);
        assert_eq!(answer.status, status, "{path}");
        assert!(
            answer.text() == body || status != 200,
            "{path}: {:?}",
            answer.text()
        );
    }
    assert_eq!(
        client.get("/args/y?z=1").header("X-Args"),
        Some("x=/args/y&z=1")
    );
    assert_eq!(
        client.get("/type/x").header("Content-Type"),
        Some("text/plain"),
        "of the file found"
    );
    let location = format!("http://localhost:{}/dir/", server.port());
    let answer = client.get("/dirs/");
    assert_eq!(
        answer.header("Location"),
        Some(location.as_str()),
        "the directory found, without its slash"
    );
}

#[test]
fn symbolic_links_are_followed_unless_disabled() {
    let server = site(
        "location /all/ { alias %%DIR%%/html/; disable_symlinks on; }
         location /part/ { alias %%DIR%%/html/; disable_symlinks on from=%%DIR%%/html/linked; }
         location /owner/ { alias %%DIR%%/html/; disable_symlinks if_not_owner; }",
    )
    .prepare(|dir| {
        symlink("../files/f.txt", dir.join("html/link.txt")).expect("a link can be made");
        symlink("../files", dir.join("html/linked")).expect("a link can be made");
        symlink("nowhere", dir.join("html/broken")).expect("a link can be made");
        symlink("loop", dir.join("html/loop")).expect("a link can be made");
    })
    .start();
    let mut client = server.client();
    for (path, status) in [
        ("/link.txt", 200),
        ("/linked/f.txt", 200),
        ("/broken", 404),
        ("/all/note.txt", 200),
        ("/all/link.txt", 403),
        ("/all/linked/f.txt", 404),
        ("/part/linked/f.txt", 200),
        ("/owner/link.txt", 200),
        ("/loop", 403),
    ] {
        assert_eq!(client.get(path).status, status, "{path}");
    }
}

#[test]
fn large_files_arrive_whole_by_every_way_of_sending() {
    let big: Vec<u8> = (0..3_000_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 23) as u8)
        .collect();
    let http = "server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
        location /plain/ { alias %%DIR%%/html/; sendfile off; output_buffers 2 16k; }
        location /sendfile/ { alias %%DIR%%/html/; sendfile on; }
        location /nopush/ { alias %%DIR%%/html/; sendfile on; tcp_nopush on; tcp_nodelay off; }
        location /chunks/ { alias %%DIR%%/html/; sendfile on; sendfile_max_chunk 64k; } }";
    let server = Server::http(http).bytes("html/big", &big).start();
    let mut client = server.client();
    for place in ["plain", "sendfile", "nopush", "chunks"] {
        assert!(
            client.get(&format!("/{place}/big")).body == big,
            "{place}: the bytes differ"
        );
        let part = client.get_with(&format!("/{place}/big"), &["Range: bytes=1000-1999999"]);
        assert!(
            part.status == 206 && part.body == big[1000..2_000_000],
            "{place}: the part differs"
        );
    }
}
