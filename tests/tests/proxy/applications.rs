//! Applications of other projects as upstream servers, with their documented configuration for nginx.
//!
//! `.ci/setup` installs them: `ws` on node, gunicorn. A test is skipped with a message if its application is missing.
//! Sources: nginx documentation, "WebSocket proxying"; Gunicorn's documentation, "Deploying Gunicorn"; HTML standard,
//! server-sent events.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::tls_client::site;
use firstbyte_tests::busy::{Waits, inconclusive, worst_stall_while};
use firstbyte_tests::client::request;
use firstbyte_tests::node::{modules, script};
use firstbyte_tests::programs::{Program, command};
use firstbyte_tests::{
    Client, H2Client, Server, Signal, SpdyClient, TempDir, peer, shop, wait_until,
};

/// Longest permitted delay of an event, through the application and to the last of all streams.
const LATE_THRESHOLD: Duration = Duration::from_millis(50);
/// A machine that keeps a thread from running for so long cannot judge that.
const STALL_MAX: Duration = Duration::from_millis(10);

/// The client of `ws_client.js`.
struct WebSockets {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl WebSockets {
    fn open(url: &str, connections: usize) -> Self {
        let mut node = Command::new("node");
        node.arg(script("ws_client.js"))
            .arg(modules())
            .arg(url)
            .arg(connections.to_string());
        let node = node.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = node.spawn().expect("node is there; .ci/setup installs it");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut client = Self {
            child,
            input,
            output,
        };
        assert_eq!(client.line(), "open", "{url}");
        client
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it prints text");
        line.trim_end().to_owned()
    }

    /// Sends this many messages on each connection and returns all that has come back.
    fn echo(&mut self, count: usize) -> String {
        let input = self.input.as_mut().expect("it is open");
        writeln!(input, "{count}").expect("it reads");
        self.line()
    }
}

impl Drop for WebSockets {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// nginx's documentation has the map; `ws` is named by its port.
const WEB_SOCKETS: &str = "
    map $http_upgrade $connection_upgrade { default upgrade; '' close; }
    ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
    server {
        listen 127.0.0.1:%%PORT%%;
        listen 127.0.0.1:%%PORT3%% ssl;
        location /chat/ {
            proxy_pass http://127.0.0.1:%%PORT2%%;
            proxy_http_version 1.1;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $connection_upgrade;
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        }
        location = /generation { return 200 g0; }
    }";

#[test]
fn web_sockets_outlive_six_reloads() {
    let leaf = site("localhost");
    let server = Server::http(WEB_SOCKETS)
        .bytes("c.pem", leaf.certificate.as_bytes())
        .bytes("k.pem", leaf.key.as_bytes())
        .start();
    let port = server.port_number(2).to_string();
    let mut node = Command::new("node");
    node.arg(script("ws_server.js")).arg(modules()).arg(&port);
    let app = Program::start(server.dir(), "ws", &mut node).accepting(server.port_number(2));
    let mut plain = WebSockets::open(&format!("ws://127.0.0.1:{}/chat/", server.port()), 5);
    let mut tls = WebSockets::open(
        &format!("wss://localhost:{}/chat/", server.port_number(3)),
        5,
    );
    let mut echoed = 0;
    for n in 0..7 {
        if n > 0 {
            server.rewrite_conf(|text| text.replace(&format!("g{};", n - 1), &format!("g{n};")));
            server.signal(Signal::HUP);
            wait_until("the configuration is taken", || {
                server.get("/generation").text() == format!("g{n}")
            });
        }
        echoed += 5 * 143;
        assert_eq!(
            plain.echo(143),
            format!("echoed {echoed} lost 0"),
            "reload {n}"
        );
        assert_eq!(
            tls.echo(143),
            format!("echoed {echoed} lost 0"),
            "reload {n}, TLS"
        );
    }
    assert!(echoed * 2 > 10_000);
    assert_eq!(
        app.printed().matches("from 127.0.0.1 for ").count(),
        10,
        "{}",
        app.printed()
    );
}

/// A client in the middle of a stream of events.
enum Events {
    Http1(Client),
    Http2(Box<H2Client>, u32),
    Spdy(Box<SpdyClient>, u32),
}

impl Events {
    fn http1(port: u16, path: &str, last: &str) -> Self {
        let mut client = Client::connect(port);
        client.send(request("GET", path, &[&format!("Last-Event-ID: {last}")]));
        Self::Http1(client)
    }

    fn http2(port: u16, path: &str) -> Self {
        let mut client = Box::new(H2Client::connect(port));
        let stream = client.get(path);
        Self::Http2(client, stream)
    }

    fn spdy(port: u16, path: &str) -> Self {
        let mut client = Box::new(SpdyClient::connect(port));
        let stream = client.get(path);
        Self::Spdy(client, stream)
    }

    /// Reads until the data ends with this, and returns when it did.
    #[track_caller]
    fn until(&mut self, end: &str) -> Instant {
        match self {
            Self::Http1(client) => {
                let mut seen = Vec::new();
                // Over HTTP/1.1 an event is a chunk.
                while !String::from_utf8_lossy(&seen).contains(end) {
                    seen.extend(client.bytes(1));
                }
            }
            Self::Http2(client, stream) => {
                let stream = *stream;
                client.until(end, |c| c.so_far(stream).text().ends_with(end));
            }
            Self::Spdy(client, stream) => {
                let stream = *stream;
                client.until(end, |c| c.so_far(stream).text().ends_with(end));
            }
        }
        Instant::now()
    }
}

#[test]
fn server_sent_events_come_when_they_are_sent() {
    let spdy = if peer::is_firstbyte() { "spdy" } else { "" };
    let server = Server::http(&format!(
        "server {{ listen 127.0.0.1:%%PORT%% {spdy}; http2 on; gzip on; gzip_types text/event-stream;
             location / {{ proxy_pass http://127.0.0.1:%%PORT2%%; }}
             location /usual/ {{
                 proxy_pass http://127.0.0.1:%%PORT2%%/;
                 proxy_set_header Connection '';
                 proxy_http_version 1.1;
                 chunked_transfer_encoding off;
                 proxy_buffering off;
                 proxy_cache off;
             }} }}"
    ))
    .start();
    let mut node = Command::new("node");
    node.arg(script("sse_server.js"))
        .arg(server.port_number(2).to_string());
    let _app = Program::start(server.dir(), "sse", &mut node).accepting(server.port_number(2));
    let publish = |text: &str| {
        let length = format!("Content-Length: {}", text.len());
        let mut client = server.client();
        client.send(request("POST", "/publish", &[&length]) + text);
        client.response().text()
    };
    let mut streams = vec![
        Events::http1(server.port(), "/usual/events", ""),
        Events::http2(server.port(), "/usual/events"),
        Events::http1(server.port(), "/events", ""),
        Events::http2(server.port(), "/events"),
    ];
    if peer::is_firstbyte() {
        streams.push(Events::spdy(server.port(), "/events"));
    }
    let all = streams.len().to_string();
    wait_until("all streams are there", || publish("begin") == all);
    let mut events = 0;
    let mut round = || {
        let mut worst = Duration::ZERO;
        for _ in 0..20 {
            let text = format!("event {events}");
            events += 1;
            let start = Instant::now();
            assert_eq!(publish(&text), all);
            for stream in &mut streams {
                worst = worst.max(stream.until(&format!("data: {text}\n\n")) - start);
            }
        }
        worst
    };
    let mut rounds = Vec::new();
    for _ in 0..4 {
        let mut worst = Duration::ZERO;
        let waits = Waits::begin();
        let stall = worst_stall_while(|| worst = round());
        rounds.push((worst, stall.max(waits.waited())));
        if worst < LATE_THRESHOLD {
            break;
        }
    }
    let in_time = rounds.iter().any(|(worst, _)| *worst < LATE_THRESHOLD);
    if !in_time
        && rounds
            .iter()
            .all(|(worst, stall)| *stall >= STALL_MAX.max(*worst - LATE_THRESHOLD))
    {
        inconclusive(&format!("events took {rounds:?}"));
    } else {
        assert!(in_time, "events take {rounds:?}");
    }
    // A client that reconnects gets the events that it missed.
    let mut late = Events::http1(server.port(), "/events", "1");
    late.until(&format!("data: event {}\n\n", events - 1));
    // The application, too, sees that a client has left.
    drop(late);
    drop(streams);
    wait_until("the application sees them go", || publish("end") == "0");
}

/// Configuration of Gunicorn's documentation for nginx, with the paths and the names of this test.
const GUNICORN: &str = r"
worker_processes 1;

%%USER%%
daemon off;
pid %%DIR%%/nginx.pid;
error_log %%DIR%%/error.log warn;

events {
  worker_connections 1024; # increase if you have lots of clients
  accept_mutex off; # set to 'on' if nginx worker_processes > 1
  # 'use epoll;' to enable for Linux 2.6+
  # 'use kqueue;' to enable for FreeBSD, OSX
}

http {
  include mime.types;
  # fallback in case we can't determine a type
  default_type application/octet-stream;
  access_log %%DIR%%/access.log combined;
  sendfile on;

  upstream app_server {
    # fail_timeout=0 means we always retry an upstream even if it failed
    # to return a good HTTP response

    # for UNIX domain socket setups
    server unix:%%DIR%%/gunicorn.sock fail_timeout=0;

    # for a TCP configuration
    # server 192.168.0.7:8000 fail_timeout=0;
  }

  server {
    # if no Host match, close the connection to prevent host spoofing
    listen 127.0.0.1:%%PORT%% default_server;
    return 444;
  }

  server {
    listen 127.0.0.1:%%PORT%%;
    client_max_body_size 4G;

    # set the correct host(s) for your site
    server_name example.com www.example.com;

    keepalive_timeout 5;

    # path for static files
    root %%DIR%%/public;

    location / {
      # checks for static file, if not found proxy to app
      try_files $uri @proxy_to_app;
    }

    location @proxy_to_app {
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header Host $http_host;
      # we don't want nginx trying to do something clever with
      # redirects, we set the Host: header above already.
      proxy_redirect off;
      proxy_pass http://app_server;
    }

    error_page 500 502 503 504 /500.html;
    location = /500.html {
      root %%DIR%%/public;
    }
  }
}
";

/// The documentation's socket and `shop.py`, with a worker of threads so that a slow client does not hold all.
fn gunicorn(dir: &TempDir) -> Option<Program> {
    let mut gunicorn = Command::new(command("gunicorn")?);
    let socket = dir.path().join("gunicorn.sock");
    gunicorn
        .arg("--bind")
        .arg(format!("unix:{}", socket.display()));
    gunicorn.args([
        "--workers",
        "1",
        "--threads",
        "4",
        "--umask",
        "0",
        "shop:application",
    ]);
    gunicorn
        .current_dir(script(""))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let program = Program::start(dir, "gunicorn", &mut gunicorn);
    let ready = || std::os::unix::net::UnixStream::connect(&socket).is_ok();
    wait_until("gunicorn listens", ready);
    Some(program)
}

#[test]
fn gunicorn_serves_behind_its_documented_configuration() {
    let server = Server::whole(GUNICORN)
        .file("mime.types", "types { text/html html; text/css css; }")
        .file("public/site.css", "css")
        .file("public/500.html", "sorry")
        .start();
    let Some(app) = gunicorn(server.dir()) else {
        return;
    };
    let host = "Host: www.example.com";
    let mut client = server.client();
    assert_eq!(client.get_with("/site.css", &[host]).text(), "css");
    shop::visit(&mut client, host);
    // Its own error page comes through; without it, the configured one.
    assert_eq!(client.get_with("/broken", &[host]).status, 500);
    assert!(
        server.client().send(request("GET", "/", &[])).closed(),
        "no host of ours"
    );
    drop(app);
    let down = server.client().get_with("/me", &[host]);
    assert_eq!((down.status, down.text().as_str()), (502, "sorry"));
}
