//! A PHP application on `php-fpm`, with the usual nginx configurations of Debian and of PHP users.
//!
//! Sources: Debian's `sites-available/default` and `snippets/fastcgi-php.conf`; nginx documentation, "PHP FastCGI
//! Example", `fastcgi_keep_conn`; PHP manual, "FastCGI Process Manager". The application is in `tests/peers/php`.

use firstbyte_tests::client::request;
use firstbyte_tests::packaged::with_packaged;
use firstbyte_tests::php::{self, Listen, Page};
use firstbyte_tests::{Client, H2Client, Server, peer, shop, wait_until};

/// The parts of `/app.php/parts`.
const PARTS: usize = 10;
/// How many processes php-fpm has.
const PROCESSES: usize = 4;

/// Debian's site, with a location for path info after a script's name, and the group that `fastcgi_keep_conn` needs.
const DEBIAN: &str = "
    types { text/html html; text/plain txt; }
    upstream php { server %%PHP%%; %%KEEPALIVE%% }
    server {
        listen 127.0.0.1:%%PORT%% default_server;
        http2 on;
        root %%DIR%%/site;
        index index.php index.html;
        server_name _;
        client_max_body_size 32m;

        location / {
            try_files $uri $uri/ /index.php?$args;
        }
        location ~ ^/now(/app\\.php)(/parts)$ {
            include fastcgi.conf;
            fastcgi_param SCRIPT_FILENAME $document_root$1;
            fastcgi_param PATH_INFO $2;
            fastcgi_pass php;
            fastcgi_keep_conn %%KEEP%%;
            fastcgi_buffering off;
        }
        location ~ [^/]\\.php(/|$) {
            include snippets/fastcgi-php.conf;
            fastcgi_pass php;
            fastcgi_keep_conn %%KEEP%%;
        }
        location /files/ { internal; alias %%DIR%%/given/; }
        location = /generation { return 200 g0; }
        location ~ /\\.ht { deny all; }
    }";

fn server(listen: Listen, keep: bool) -> Server {
    let (group, on) = if keep {
        ("keepalive 4;", "on")
    } else {
        ("", "off")
    };
    let text = DEBIAN
        .replace("%%PHP%%", listen.name())
        .replace("%%KEEPALIVE%%", group)
        .replace("%%KEEP%%", on);
    let server = Server::http_with("worker_processes 1;", &text)
        .file("given/given.txt", "given by the server")
        .file("site/plain.txt", "a file");
    let files = ["snippets/fastcgi-php.conf", "fastcgi.conf"];
    php::with_site(with_packaged(server, &files)).start()
}

fn form(target: &str, body: &str, lines: &[&str]) -> String {
    let length = format!("Content-Length: {}", body.len());
    let kind = "Content-Type: application/x-www-form-urlencoded";
    request("POST", target, &[&[kind, &length], lines].concat()) + body
}

/// Logs in by the form; returns the cookie that a browser would send from then on.
#[track_caller]
fn logged_in(client: &mut Client) -> String {
    assert_eq!(client.get("/app.php/me").status, 403);
    client.send(form("/app.php/login", "name=ada+lovelace&other=1", &[]));
    let answer = client.response();
    let to = answer.header("Location");
    assert_eq!(
        (answer.status, to),
        (302, Some("http://localhost/app.php/me"))
    );
    let cookies = answer.header_values("Set-Cookie");
    assert_eq!((cookies.len(), cookies[1]), (2, "theme=dark"));
    let session = cookies[0].split(';').next().expect("it has a value");
    format!("Cookie: {session}; {}", cookies[1])
}

/// 20 MB each way, in every framing: the application's digest is that of the sent bytes.
#[track_caller]
fn large_bodies(client: &mut Client) {
    let digest = client.get("/app.php/digest").text();
    let download = client.get("/app.php/download").body;
    let with_length = client.get("/app.php/download?length=1");
    assert_eq!(with_length.header("Content-Length"), Some("20971520"));
    assert!(download == with_length.body, "something is lost or doubled");
    let length = format!("Content-Length: {}", download.len());
    client
        .send(request("POST", "/app.php/upload", &[&length]))
        .send(&download);
    assert_eq!(client.response().text(), digest);
    client.send(request(
        "POST",
        "/app.php/upload",
        &["Transfer-Encoding: chunked"],
    ));
    for piece in download.chunks(1 << 16) {
        let size = format!("{:x}\r\n", piece.len());
        client.send(size).send(piece).send("\r\n");
    }
    assert_eq!(client.send("0\r\n\r\n").response().text(), digest);
    let before = "--edge\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nwords\r\n--edge\r\n\
                  Content-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\r\n";
    let after = "\r\n--edge--\r\n";
    let length = before.len() + download.len() + after.len();
    let length = format!("Content-Length: {length}");
    let kind = "Content-Type: multipart/form-data; boundary=edge";
    client
        .send(request("POST", "/app.php/form", &[kind, &length]) + before)
        .send(&download)
        .send(after);
    assert_eq!(client.response().text(), format!("words a.bin {digest}"));
}

/// Paths, the parameters that scripts get for them, and refused paths.
#[track_caller]
fn paths(client: &mut Client) {
    assert_eq!(client.get("/plain.txt").text(), "a file");
    let index = client.get("/no/file?a=b");
    assert_eq!(index.text(), "index /no/file?a=b /index.php a=b");
    assert_eq!(client.get("/").text(), "index / /index.php ");
    let names = "SCRIPT_NAME,PATH_INFO,QUERY_STRING,REQUEST_METHOD,SERVER_PROTOCOL,REMOTE_ADDR,HTTP_X_A_B,GATEWAY_INTERFACE";
    let asked = client.get_with(&format!("/app.php/ask?names={names}"), &["X-A-B: c"]);
    let expected = format!(
        "SCRIPT_NAME=/app.php\nPATH_INFO=/ask\nQUERY_STRING=names={names}\nREQUEST_METHOD=GET\n\
         SERVER_PROTOCOL=HTTP/1.1\nREMOTE_ADDR=127.0.0.1\nHTTP_X_A_B=c\nGATEWAY_INTERFACE=CGI/1.1\n"
    );
    assert_eq!(asked.text(), expected);
    assert_eq!(
        client.get("/app.php/a%20b/c?d").text(),
        "nothing at '/a b/c'"
    );
    // No script of that name, and a file that is none: nothing of them reaches PHP.
    assert_eq!(client.get("/none.php").status, 404);
    assert_eq!(client.get("/plain.txt/x.php").status, 404);
    // A form, and a redirect within.
    client.send(form(
        "/app.php/ask?names=CONTENT_LENGTH,CONTENT_TYPE",
        "a=b",
        &[],
    ));
    let body = "CONTENT_LENGTH=3\nCONTENT_TYPE=application/x-www-form-urlencoded\n";
    assert_eq!(client.response().text(), body);
    assert_eq!(client.get("/app.php/file").text(), "given by the server");
}

/// Statuses, conditions and HEAD on a kept connection.
#[track_caller]
fn answers(server: &Server, client: &mut Client) {
    let head = client.head("/app.php/download?length=1");
    assert_eq!(
        (head.status, head.header("Content-Length")),
        (200, Some("20971520"))
    );
    let tagged = client.get("/app.php/tag");
    assert_eq!(
        (tagged.header("ETag"), tagged.text().as_str()),
        (Some("\"php\""), "tagged")
    );
    let same = client.get_with("/app.php/tag", &["If-None-Match: \"php\""]);
    assert_eq!((same.status, same.body.len()), (304, 0));
    assert_eq!(client.get("/app.php/elsewhere").status, 404);
    assert!(
        same.header("X-Powered-By")
            .is_none_or(|by| by.starts_with("PHP/"))
    );
    // The script's message beside its page is in the log, with the request.
    assert_eq!(client.get("/app.php/log").text(), "logged");
    let log = server.wait_for_text("error.log", "a line of the application");
    let line = log
        .lines()
        .find(|line| line.contains("a line of the application"));
    let line = line.unwrap_or_default();
    assert!(
        line.contains("[error] ")
            && line.contains(
                "FastCGI sent in stderr: \"PHP message: a line of the application\" while"
            )
            && line.contains("request: \"GET /app.php/log HTTP/1.1\", upstream: \"fastcgi://"),
        "{line}"
    );
    assert_eq!(client.get("/app.php/broken").status, 500);
    server.wait_for_text("error.log", "broken on purpose");
}

#[track_caller]
fn serves(listen: Listen, keep: bool) {
    let server = server(listen, keep);
    let Some(php) = php::start(&server, listen, PROCESSES, "") else {
        return;
    };
    let mut client = server.client();
    let cookie = logged_in(&mut client);
    let hello = |client: &mut Client| client.get_with("/app.php/me", &[&cookie]).text();
    assert_eq!(hello(&mut client), "hello ada lovelace");
    paths(&mut client);
    answers(&server, &mut client);
    if keep == (listen == Listen::Tcp) {
        large_bodies(&mut client);
    }
    // Requests one by one need one connection, which stays or does not. A process that waits has the socket it listens on.
    wait_until("connections are kept as configured", || {
        php.sockets_of_children() == PROCESSES + usize::from(keep)
    });
    // No more at a time than there are processes: a kept connection holds one.
    let mut h2 = H2Client::connect(server.port());
    let streams: Vec<u32> = (0..PROCESSES)
        .map(|_| h2.get("/app.php/download"))
        .collect();
    for stream in streams {
        assert_eq!(h2.reply(stream).body.len(), 20 << 20);
    }
    assert_eq!(hello(&mut client), "hello ada lovelace");
}

#[test]
fn application_serves_on_a_unix_socket() {
    serves(Listen::Unix, false);
}

#[test]
fn application_serves_on_a_unix_socket_with_kept_connections() {
    serves(Listen::Unix, true);
}

#[test]
fn application_serves_over_tcp() {
    serves(Listen::Tcp, false);
}

#[test]
fn application_serves_over_tcp_with_kept_connections() {
    serves(Listen::Tcp, true);
}

/// Each part leaves PHP after the one before has come, so a held part would never come.
#[test]
fn page_in_ten_parts_comes_part_by_part() {
    let server = server(Listen::Unix, false);
    let Some(_php) = php::start(&server, Listen::Unix, 2, "") else {
        return;
    };
    let mut targets = vec![
        "/now/app.php/parts?",
        "/app.php/parts?unbuffered=1&",
        "/now/app.php/parts?length=1&",
    ];
    if peer::is_firstbyte() {
        // nginx collects a buffered response before it sends a part.
        targets.extend(["/app.php/parts?", "/app.php/parts?length=1&"]);
    }
    for (n, target) in targets.into_iter().enumerate() {
        let name = format!("parts{n}");
        php::gates(&server, &name);
        let mut page = Page::ask(&server, &format!("{target}gates={name}"));
        page.until("parts\n");
        assert!(!page.seen.contains("X-Accel"), "{}", page.seen);
        for part in 0..PARTS {
            php::open(&server, &name, part);
            page.until(&format!("part {part}\n"));
        }
        if !target.contains("length") {
            page.until("\r\n0\r\n\r\n");
        }
        assert_eq!(page.client.get("/plain.txt").text(), "a file", "{target}");
    }
}

#[test]
fn reload_cuts_neither_downloads_nor_uploads() {
    for keep in [false, true] {
        let server = server(Listen::Unix, keep);
        let Some(_php) = php::start(&server, Listen::Unix, 4, "") else {
            return;
        };
        php::gates(&server, "reload");
        let mut page = Page::ask(&server, "/now/app.php/parts?gates=reload");
        php::open(&server, "reload", 0);
        page.until("part 0\n");
        let digest = server.get("/app.php/digest").text();
        shop::reload_in_transfers(&server, "/app.php/upload", "/app.php/download", &digest);
        for part in 1..PARTS {
            php::open(&server, "reload", part);
            page.until(&format!("part {part}\n"));
        }
        page.until("\r\n0\r\n\r\n");
        assert_eq!(server.get("/app.php/digest").text(), digest);
    }
}
