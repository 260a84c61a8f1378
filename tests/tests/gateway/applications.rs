//! Applications on uwsgi, SCGI and FastCGI, and memcached, each with the configuration of its documentation.
//!
//! `.ci/setup` installs uWSGI with Python, fcgiwrap and memcached. Sources: uWSGI documentation, "Nginx support"; nginx
//! documentation, `scgi_pass`, `memcached_pass`, `keepalive`; fcgiwrap's example for nginx; memcached's protocol.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use firstbyte_tests::backend::{Backend, ok};
use firstbyte_tests::client::request;
use firstbyte_tests::dir::set_mode;
use firstbyte_tests::node::script;
use firstbyte_tests::packaged::with_packaged;
use firstbyte_tests::programs::{Program, command};
use firstbyte_tests::{Builder, Client, H2Client, Server, peer, shop};

/// Hosts of `host` lines.
const HOST: &str = "Host: www.example.com";

/// A visit, an error that is `broken` to the client, a reload in the middle of transfers, many requests at once, and 502 when the application is gone.
#[track_caller]
fn shop_serves(server: &Server, app: Program, broken: u16) {
    let mut client = server.client();
    shop::visit(&mut client, HOST);
    assert_eq!(client.get_with("/broken", &[HOST]).status, broken);
    let missing = client.get_with("/none?a=b", &[HOST]);
    assert_eq!(
        (missing.status, missing.text().as_str()),
        (404, "nothing here")
    );
    let head = client.head("/digest");
    assert_eq!((head.status, head.body.len()), (200, 0));
    let digest = client.get("/digest").text();
    shop::reload_in_transfers(server, "/upload", "/download", &digest);
    let mut h2 = H2Client::connect(server.port());
    let streams: Vec<u32> = (0..20).map(|_| h2.get("/none")).collect();
    for stream in streams {
        assert_eq!(h2.reply(stream).text(), "nothing here");
    }
    drop(app);
    assert_eq!(server.get("/me").status, 502);
}

/// An HTTP server with `location`; its parameter files are the package's.
fn before(location: &str, parameters: &str) -> Builder {
    let server = Server::http_with(
        "worker_processes 1;",
        &format!(
            "server {{ listen 127.0.0.1:%%PORT%%; http2 on; client_max_body_size 0;
                 {location}
                 location = /generation {{ return 200 g0; }} }}"
        ),
    );
    with_packaged(server, &[parameters])
}

#[test]
fn python_on_uwsgi_serves() {
    let at_tcp = ("127.0.0.1:%%PORT2%%", "127.0.0.1:%%PORT2%%");
    let at_unix = ("unix:%%DIR%%/app.sock", "%%DIR%%/app.sock");
    for (pass, socket) in [at_tcp, at_unix] {
        let location = format!("location / {{ include uwsgi_params; uwsgi_pass {pass}; }}");
        let server = before(&location, "uwsgi_params").start();
        let Some(uwsgi) = command("uwsgi") else {
            return;
        };
        let mut start = Command::new(uwsgi);
        start.args(["--plugin", "python3", "--socket", &server.expand(socket)]);
        start.args(["--chmod-socket=666", "--wsgi-file"]);
        start.arg(script("shop.py"));
        start.args(["--threads", "4", "--die-on-term", "--need-app"]);
        start.env("PYTHONDONTWRITEBYTECODE", "1");
        let app = Program::start(server.dir(), "uwsgi", &mut start);
        let app = if pass.starts_with("unix:") {
            app.listening(&server.path("app.sock"))
        } else {
            app.accepting(server.port_number(2))
        };
        // If the application fails, uWSGI sends nothing.
        shop_serves(&server, app, 502);
    }
}

#[test]
fn python_on_scgi_serves() {
    let server = before(
        "location / {
             include scgi_params;
             scgi_param PATH_INFO $document_uri;
             scgi_param SCRIPT_NAME \"\";
             scgi_pass 127.0.0.1:%%PORT2%%;
         }",
        "scgi_params",
    )
    .start();
    let Some(python) = command("python3") else {
        return;
    };
    let mut start = Command::new(python);
    start.arg(script("scgi_server.py"));
    start.arg(server.port_number(2).to_string());
    start.env("PYTHONDONTWRITEBYTECODE", "1");
    let app = Program::start(server.dir(), "scgi", &mut start).accepting(server.port_number(2));
    shop_serves(&server, app, 500);
}

/// Configuration of fcgiwrap's package for nginx, with the folders of this test.
const FCGIWRAP: &str = "
    location /cgi-bin/ {
        # Disable gzip (it makes scripts feel slower since they have to complete
        # before getting gzipped)
        gzip off;
        root %%DIR%%;
        fastcgi_pass unix:%%DIR%%/fcgiwrap.socket;
        include fastcgi_params;
        fastcgi_param SCRIPT_FILENAME %%DIR%%$fastcgi_script_name;
    }
    location /now/ {
        rewrite ^/now(/.*) $1 break;
        fastcgi_buffering off;
        # fcgiwrap's own, so that it does not wait for more.
        fastcgi_param NO_BUFFERING 1;
        fastcgi_pass unix:%%DIR%%/fcgiwrap.socket;
        include fastcgi_params;
        fastcgi_param SCRIPT_FILENAME %%DIR%%$fastcgi_script_name;
    }";

const PLAIN: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\n";

/// The scripts, each with its name.
fn scripts() -> [(&'static str, String); 9] {
    [
        (
            "ask",
            format!(
                "{PLAIN}cat >/dev/null\necho \"$REQUEST_METHOD $SCRIPT_NAME $QUERY_STRING $HTTP_X_NAME $CONTENT_LENGTH ${{HTTP_PROXY-no}}\"\n"
            ),
        ),
        ("digest", format!("{PLAIN}sha256sum | cut -d' ' -f1\n")),
        (
            "large",
            format!("{PLAIN}exec head -c 20971520 /dev/zero\n"),
        ),
        (
            "teapot",
            "#!/bin/sh\nprintf 'Status: 418 Teapot\\r\\nContent-Type: text/plain\\r\\n\\r\\nshort and stout'\n".to_owned(),
        ),
        (
            "moved",
            "#!/bin/sh\nprintf 'Location: http://elsewhere.example/x\\n\\n'\n".to_owned(),
        ),
        (
            "complains",
            format!("{PLAIN}echo a complaint >&2\necho done\n"),
        ),
        ("silent", "#!/bin/sh\nexit 1\n".to_owned()),
        ("headless", "#!/bin/sh\necho 'no head: at all'\n".to_owned()),
        (
            "parts",
            format!(
                "{PLAIN}for n in 0 1 2 3 4; do\n\
                 while [ ! -e \"$DOCUMENT_ROOT/gates/$n\" ]; do sleep 0.01; done\necho part $n\ndone\n"
            ),
        ),
    ]
}

fn with_scripts(mut server: Builder) -> Builder {
    for (name, text) in scripts() {
        server = server.bytes(&format!("cgi-bin/{name}"), text.as_bytes());
    }
    server.prepare(|dir| {
        for (name, _) in scripts() {
            set_mode(&dir.join("cgi-bin").join(name), 0o755);
        }
        std::fs::create_dir(dir.join("gates")).expect("the folder is the test's");
    })
}

fn fcgiwrap(server: &Server) -> Option<Program> {
    let mut start = Command::new(command("fcgiwrap")?);
    let socket = server.path("fcgiwrap.socket");
    start.args(["-f", "-c", "4", "-s"]);
    start.arg(format!("unix:{}", socket.display()));
    let program = Program::start(server.dir(), "fcgiwrap", &mut start).listening(&socket);
    // The package sets this mode for the server's group, too.
    set_mode(&socket, 0o777);
    Some(program)
}

#[test]
fn scripts_on_fcgiwrap_serve() {
    let server = with_scripts(before(
        &format!("root %%DIR%%; {FCGIWRAP}"),
        "fastcgi_params",
    ))
    .start();
    let Some(wrap) = fcgiwrap(&server) else {
        return;
    };
    let mut client = server.client();
    let asked = client.get_with("/cgi-bin/ask?a=b", &["X-Name: value"]);
    assert_eq!(
        (asked.header("Content-Type"), asked.text().as_str()),
        (Some("text/plain"), "GET /cgi-bin/ask a=b value  no\n")
    );
    client.send(request("POST", "/cgi-bin/ask", &["Content-Length: 4"]) + "body");
    assert_eq!(client.response().text(), "POST /cgi-bin/ask   4 no\n");
    if peer::is_firstbyte() {
        let asked = client.get_with("/cgi-bin/ask", &["Proxy: evil:80"]);
        assert!(asked.text().ends_with(" no\n"), "{}", asked.text());
    }
    let teapot = client.get("/cgi-bin/teapot");
    assert_eq!(teapot.status_line, "HTTP/1.1 418 Teapot");
    assert_eq!(teapot.text(), "short and stout");
    let moved = client.get("/cgi-bin/moved");
    let to = moved.header("Location");
    assert_eq!(
        (moved.status, to),
        (302, Some("http://elsewhere.example/x"))
    );
    assert_eq!(client.get("/cgi-bin/complains").text(), "done\n");
    let log = server.wait_for_text("error.log", "a complaint");
    assert!(
        log.contains("FastCGI sent in stderr: \"a complaint"),
        "{log}"
    );
    // An empty response or one without a head never becomes a page.
    assert_eq!(client.get("/cgi-bin/silent").status, 502);
    assert_eq!(server.get("/cgi-bin/headless").status, 502);
    // fcgiwrap's own response to an unknown script.
    assert_eq!(server.get("/cgi-bin/none").status, 403);
    let head = client.head("/cgi-bin/large");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert!(client.get("/cgi-bin/large").body == vec![0; 20 << 20]);
    scripts_outlive_a_reload(&server);
    drop(wrap);
    assert_eq!(server.get("/cgi-bin/ask").status, 502);
}

/// A page that comes in parts, an upload and a download continue over a reload.
#[track_caller]
fn scripts_outlive_a_reload(server: &Server) {
    let mut page = server.client();
    page.send(request("GET", "/now/cgi-bin/parts", &[]));
    let zeros = vec![0; 20 << 20];
    let mut client = server.client();
    let length = format!("Content-Length: {}", zeros.len());
    client.send(request("POST", "/cgi-bin/digest", &[&length]));
    let digest = client.send(&zeros).response().text();
    assert_eq!(digest.len(), 65, "{digest}");
    shop::reload_in_transfers(server, "/cgi-bin/digest", "/cgi-bin/large", &digest);
    let mut seen = String::new();
    for part in 0..5 {
        server.dir().write(&format!("gates/{part}"), "");
        while !seen.contains(&format!("part {part}\n")) {
            seen += &String::from_utf8_lossy(&page.bytes(1));
        }
    }
    while !seen.ends_with("\r\n0\r\n\r\n") {
        seen += &String::from_utf8_lossy(&page.bytes(1));
    }
}

/// memcached with room for large values; `None` if it is not installed.
fn memcached(server: &Server) -> Option<Program> {
    let mut start = Command::new(command("memcached")?);
    let port = server.port_number(2).to_string();
    start.args(["-l", "127.0.0.1", "-p", &port, "-I", "32m", "-m", "256"]);
    // As root it requires a user.
    start.args(["-u", "nobody"]);
    Some(Program::start(server.dir(), "memcached", &mut start).accepting(server.port_number(2)))
}

/// A connection to memcached by which the test keeps values.
struct MemcachedClient(BufReader<TcpStream>);

impl MemcachedClient {
    fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port_number(2)));
        Self(BufReader::new(stream.expect("it accepts")))
    }

    #[track_caller]
    fn set(&mut self, key: &[u8], flags: u32, value: &[u8]) {
        let line = format!(" {flags} 0 {}\r\n", value.len());
        let bytes = [b"set ", key, line.as_bytes(), value, b"\r\n"].concat();
        self.0.get_mut().write_all(&bytes).expect("it reads");
        assert_eq!(self.line(), "STORED\r\n");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("it prints text");
        line
    }

    /// A figure of its statistics.
    fn figure(&mut self, name: &str) -> u64 {
        self.0.get_mut().write_all(b"stats\r\n").expect("it reads");
        let mut figure = 0;
        loop {
            let line = self.line();
            let mut words = line.split_whitespace().skip(1);
            if words.next() == Some(name) {
                figure = words.next().and_then(|n| n.parse().ok()).unwrap_or(0);
            }
            if line == "END\r\n" {
                return figure;
            }
        }
    }
}

/// nginx's documentation of `memcached_pass` and of `keepalive`, and the module's other directives.
const MEMCACHED: &str = "
    types { text/html html; text/css css; }
    default_type text/plain;
    upstream memcached_backend { server 127.0.0.1:%%PORT2%%; keepalive 32; }
    server {
        listen 127.0.0.1:%%PORT%%;
        http2 on;
        location / {
            set            $memcached_key \"$uri?$args\";
            memcached_pass 127.0.0.1:%%PORT2%%;
            error_page     404 502 504 = @fallback;
        }
        location @fallback {
            proxy_pass     http://%%FALLBACK%%;
        }
        location /memcached/ {
            set $memcached_key $uri;
            memcached_pass memcached_backend;
        }
        location /packed/ {
            set $memcached_key $uri;
            memcached_pass memcached_backend;
            memcached_gzip_flag 2;
            gunzip on;
        }
        location = /generation { return 200 g0; }
    }";

fn gzip(text: &str) -> Vec<u8> {
    let mut gzip = Command::new("gzip");
    let piped = gzip.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = piped.spawn().expect("it is there; .ci/setup installs it");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    child.wait_with_output().expect("it was started").stdout
}

#[test]
fn memcached_serves() {
    let fallback = Backend::answering(|r| ok(format!("made for {}", r.target())));
    let text = MEMCACHED.replace("%%FALLBACK%%", &fallback.name());
    let server = Server::http_with("worker_processes 1;", &text).start();
    let Some(program) = memcached(&server) else {
        return;
    };
    let mut memcached_client = MemcachedClient::connect(&server);
    let mut client = server.client();
    assert_eq!(client.get("/page?a=b").text(), "made for /page?a=b");
    memcached_client.set(b"/page?a=b", 0, b"kept");
    let kept = client.get("/page?a=b");
    assert_eq!((kept.status, kept.text().as_str()), (200, "kept"));
    assert_eq!(kept.header("Content-Length"), Some("4"));
    assert_eq!(fallback.request_count(), 1);
    keys(&mut client, &mut memcached_client);
    values(&mut client, &mut memcached_client);
    let connections = memcached_client.figure("total_connections");
    for _ in 0..50 {
        assert_eq!(client.get("/memcached/a.css").text(), "css");
        assert_eq!(client.get("/memcached/none").status, 404);
    }
    assert_eq!(
        memcached_client.figure("total_connections"),
        connections,
        "kept connections"
    );
    large_value_over_a_reload(&server, &mut memcached_client);
    let mut h2 = H2Client::connect(server.port());
    let streams: Vec<u32> = (0..40).map(|_| h2.get("/memcached/a.css")).collect();
    for stream in streams {
        assert_eq!(h2.reply(stream).text(), "css");
    }
    drop(program);
    assert_eq!(server.get("/memcached/a.css").status, 502);
    assert_eq!(server.get("/page?a=b").text(), "made for /page?a=b");
}

/// Keys with bytes that would end the line, or be more than a key, are escaped; others are as they came.
#[track_caller]
fn keys(client: &mut Client, memcached_client: &mut MemcachedClient) {
    let cases: [(&str, &[u8]); 6] = [
        ("/memcached/a%20b", b"/memcached/a%20b"),
        ("/memcached/100%25", b"/memcached/100%25"),
        ("/memcached/x%0D%0Aget%20y", b"/memcached/x%0D%0Aget%20y"),
        ("/memcached/%C3%A4%FF", b"/memcached/\xc3\xa4\xff"),
        ("/memcached/%22%23%7F", b"/memcached/\"#\x7f"),
        ("/memcached/%01", b"/memcached/%01"),
    ];
    for (target, key) in cases {
        assert_eq!(client.get(target).status, 404, "{target}");
        memcached_client.set(key, 0, target.as_bytes());
        assert_eq!(client.get(target).text(), target);
    }
    // As long as a key may be, and one more, which memcached refuses.
    let longest = "k".repeat(250 - "/memcached/".len());
    memcached_client.set(format!("/memcached/{longest}").as_bytes(), 0, b"long");
    assert_eq!(client.get(&format!("/memcached/{longest}")).text(), "long");
    assert_eq!(client.get(&format!("/memcached/{longest}k")).status, 502);
    assert_eq!(client.get("/memcached/none").status, 404);
}

#[track_caller]
fn values(client: &mut Client, memcached_client: &mut MemcachedClient) {
    memcached_client.set(b"/memcached/a.css", 0, b"css");
    let typed = client.get("/memcached/a.css");
    assert_eq!(typed.header("Content-Type"), Some("text/css"));
    assert_eq!(
        client.head("/memcached/a.css").header("Content-Length"),
        Some("3")
    );
    client.send(request("POST", "/memcached/a.css", &["Content-Length: 0"]));
    assert_eq!(client.response().status, 405);
    for value in ["", "\r\nEND\r\n", "VALUE /memcached/v 0 2\r\nno\r\nEND\r\n"] {
        memcached_client.set(b"/memcached/v", 7, value.as_bytes());
        assert_eq!(client.get("/memcached/v").text(), value);
        assert_eq!(client.get("/memcached/a.css").text(), "css");
    }
    let text = "a line that is compressed\n".repeat(100);
    let packed = gzip(&text);
    memcached_client.set(b"/packed/p", 2, &packed);
    memcached_client.set(b"/packed/q", 1, text.as_bytes());
    let as_kept = client.get_with("/packed/p", &["Accept-Encoding: gzip"]);
    assert_eq!(as_kept.header("Content-Encoding"), Some("gzip"));
    assert!(as_kept.body == packed);
    let unpacked = client.get("/packed/p");
    assert_eq!(
        (unpacked.header("Content-Encoding"), unpacked.text()),
        (None, text.clone())
    );
    let plain = client.get_with("/packed/q", &["Accept-Encoding: gzip"]);
    assert_eq!(
        (plain.header("Content-Encoding"), plain.text()),
        (None, text)
    );
}

/// A client that has stopped reading has all of a value, whatever is configured meanwhile.
#[track_caller]
fn large_value_over_a_reload(server: &Server, memcached_client: &mut MemcachedClient) {
    let value: Vec<u8> = (0..=250).collect::<Vec<u8>>().repeat(83_000);
    memcached_client.set(b"/memcached/large", 0, &value);
    assert!(server.get("/memcached/large").body == value);
    let mut client = server.client();
    client.send(request("GET", "/memcached/large", &[]));
    let mut other = Client::connect(server.port());
    assert_eq!(other.get("/memcached/a.css").text(), "css");
    for generation in 1..=2 {
        shop::reload(server, generation);
    }
    assert!(client.response().body == value, "the value is cut");
}
