//! Servers of other projects behind this server and in front of it: Apache, HAProxy, and unbound for names.
//!
//! `.ci/setup` installs them; each starts by its own command with a configuration of its own. A test is skipped with a
//! message if its server is missing. Sources: nginx documentation, `resolver`, `proxy_protocol`, `set_real_ip_from`;
//! the documentation of each.

use std::process::Command;

use firstbyte_tests::backend::{Backend, ok};
use firstbyte_tests::client::request;
use firstbyte_tests::port::Port;
use firstbyte_tests::programs::{Program, command};
use firstbyte_tests::{H2Client, Server, TempDir, peer, wait_until};

/// Modules that Debian's package brings, static files, listings and CGI's kin left out.
const APACHE: &str = "
ServerName apache.example
ServerRoot %%DIR%%/apache
DefaultRuntimeDir %%DIR%%/apache
PidFile %%DIR%%/apache/pid
ErrorLog %%DIR%%/apache/error.log
Listen 127.0.0.1:%%PORT2%%
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
LoadModule autoindex_module /usr/lib/apache2/modules/mod_autoindex.so
LoadModule filter_module /usr/lib/apache2/modules/mod_filter.so
LoadModule deflate_module /usr/lib/apache2/modules/mod_deflate.so
LoadModule headers_module /usr/lib/apache2/modules/mod_headers.so
LoadModule alias_module /usr/lib/apache2/modules/mod_alias.so
LoadModule remoteip_module /usr/lib/apache2/modules/mod_remoteip.so
TypesConfig %%DIR%%/apache/types
StartServers 1
ThreadsPerChild 8
MaxRequestWorkers 8
ServerLimit 1
RemoteIPHeader X-Real-IP
RemoteIPInternalProxy 127.0.0.1
LogFormat \"%a %H %r %>s\" seen
CustomLog %%DIR%%/apache/access.log seen
DocumentRoot %%DIR%%/htdocs
AddOutputFilterByType DEFLATE text/plain
Redirect /old http://apache.example:%%PORT2%%/new
<Directory %%DIR%%/htdocs>
    Options +Indexes
    Require all granted
</Directory>
";

#[test]
fn apache_serves_behind() {
    let Some(apache) = command("apache2") else {
        return;
    };
    let text: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; http2 on; server_name apache.example;
             location / {
                 proxy_pass http://127.0.0.1:%%PORT2%%;
                 proxy_set_header Host $host;
                 proxy_set_header X-Real-IP $remote_addr;
                 proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
                 proxy_set_header X-Forwarded-Proto $scheme;
                 proxy_redirect http://apache.example:%%PORT2%%/ /;
             } }",
    )
    .file("apache/httpd.conf", &with_user(APACHE))
    .file("apache/types", "text/plain txt\n")
    .file("htdocs/text.txt", &text)
    .file("htdocs/folder/one.txt", "one")
    .start();
    let mut start = Command::new(apache);
    start
        .args(["-D", "FOREGROUND", "-f"])
        .arg(server.path("apache/httpd.conf"));
    let _apache =
        Program::start(server.dir(), "apache", &mut start).accepting(server.port_number(2));
    let mut client = server.client();
    let whole = client.get("/text.txt");
    assert_eq!((whole.status, whole.text()), (200, text.clone()));
    // Its validators and ranges are as good as from itself.
    let tag = format!(
        "If-None-Match: {}",
        whole.header("ETag").expect("Apache gives one")
    );
    assert_eq!(client.get_with("/text.txt", &[&tag]).status, 304);
    let part = client.get_with("/text.txt", &["Range: bytes=5-9"]);
    assert_eq!((part.status, part.text()), (206, text[5..10].to_owned()));
    assert_eq!(
        client.head("/text.txt").header("Content-Length"),
        Some(&*text.len().to_string())
    );
    // Apache sends compressed responses in chunks.
    let packed = client.get_with("/text.txt", &["Accept-Encoding: gzip"]);
    assert_eq!(packed.header("Content-Encoding"), Some("gzip"));
    assert!(packed.body.len() < text.len() / 2 && packed.body.starts_with(&[0x1f, 0x8b]));
    // Redirects lead to this server.
    let folder = client.get("/folder");
    assert_eq!(
        (folder.status, folder.header("Location")),
        (301, Some("http://localhost/folder/"))
    );
    let old = client.get_with("/old", &["Host: apache.example"]);
    let here = format!("http://apache.example:{}/new", server.port());
    assert_eq!(
        (old.status, old.header("Location")),
        (302, Some(here.as_str()))
    );
    assert!(client.get("/folder/").text().contains("one.txt"));
    assert_eq!(client.get("/none").status, 404);
    client.send(request("POST", "/text.txt", &["Content-Length: 4"]) + "body");
    assert_eq!(client.response().status, 200);
    let mut h2 = H2Client::connect(server.port());
    let streams: Vec<u32> = (0..20).map(|_| h2.get("/text.txt")).collect();
    for stream in streams {
        assert!(h2.reply(stream).text() == text);
    }
    let log = server.wait_for_text("apache/access.log", "GET /none");
    assert!(
        log.lines()
            .all(|line| line.starts_with("127.0.0.1 HTTP/1.1 ")),
        "{log}"
    );
}

/// As root Apache needs to know its user.
fn with_user(text: &str) -> String {
    if peer::is_root() {
        format!("User nobody\nGroup nogroup\n{text}")
    } else {
        text.to_owned()
    }
}

/// A name server on a port, with these records.
fn unbound(dir: &TempDir, port: u16, records: &[&str]) -> Option<Program> {
    let unbound = command("unbound")?;
    let data: String = records
        .iter()
        .map(|r| format!("  local-data: \"{r}\"\n"))
        .collect();
    dir.write(
        "unbound.conf",
        format!(
            "server:\n  interface: 127.0.0.1\n  port: {port}\n  do-daemonize: no\n  username: \"\"\n  chroot: \"\"\n  \
             directory: \"{0}\"\n  pidfile: \"{0}/unbound.pid\"\n  use-syslog: no\n  verbosity: 1\n  \
             do-not-query-localhost: no\n  module-config: \"iterator\"\n  num-threads: 1\n  local-zone: \"example.\" static\n{data}\
             remote-control:\n  control-enable: no\n",
            dir.path().display()
        ),
    );
    let mut start = Command::new(unbound);
    start
        .arg("-d")
        .arg("-c")
        .arg(dir.path().join("unbound.conf"));
    // It answers over TCP as well.
    Some(Program::start(dir, "unbound", &mut start).accepting(port))
}

#[test]
fn unbound_resolves_names_while_serving() {
    if command("unbound").is_none() {
        return;
    }
    let backend = Backend::answering(|r| ok(r.header("Host").unwrap_or_default()));
    let port = backend.name().split(':').nth(1).map(str::to_owned);
    let port = port.expect("it is an address and a port");
    let server = Server::http(&format!(
        "resolver 127.0.0.1:%%PORT2%% valid=1s ipv6=off; resolver_timeout 2s;
         server {{ listen 127.0.0.1:%%PORT%%;
             location / {{ set $app $arg_name.example; proxy_pass http://$app:{port}; }} }}"
    ))
    .start();
    let records = [
        "one.example. 1 IN A 127.0.0.1",
        "alias.example. 1 IN CNAME one.example.",
    ];
    let names = unbound(server.dir(), server.port_number(2), &records).expect("it is there");
    assert_eq!(
        server.get("/?name=one").text(),
        format!("one.example:{port}")
    );
    assert_eq!(server.get("/?name=ONE").status, 200);
    // An unknown name is an error of its own, and may be known later.
    assert_eq!(server.get("/?name=two").status, 502);
    server.wait_for_text(
        "error.log",
        "two.example could not be resolved (3: Host not found)",
    );
    drop(names);
    let records = [
        "one.example. 1 IN A 127.0.0.1",
        "two.example. 1 IN A 127.0.0.1",
    ];
    let _names = unbound(server.dir(), server.port_number(2), &records);
    wait_until("the new name is found", || {
        server.get("/?name=two").status == 200
    });
    // Names of one DNS response, in many concurrent requests.
    let mut clients: Vec<_> = (0..50).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send(request("GET", "/?name=one", &[]));
    }
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }
}

/// nginx does not start in that case.
#[test]
fn name_that_resolves_later_is_followed_when_it_does() {
    if !peer::is_firstbyte() || command("unbound").is_none() {
        return;
    }
    let backend = Backend::answering(|_| ok("found"));
    let port = backend.name().split(':').nth(1).map(str::to_owned);
    let port = port.expect("it is an address and a port");
    let server = Server::http(&format!(
        "resolver 127.0.0.1:%%PORT2%% valid=1s ipv6=off; resolver_timeout 500ms;
         upstream app {{ server later.firstbyte-test.example:{port}; }}
         server {{ listen 127.0.0.1:%%PORT%%; location / {{ proxy_pass http://app; }} }}"
    ))
    .start();
    assert_eq!(server.get("/").status, 502);
    let record = "later.firstbyte-test.example. 1 IN A 127.0.0.1";
    let _names = unbound(server.dir(), server.port_number(2), &[record]);
    wait_until("the name is found", || server.get("/").text() == "found");
}

fn haproxy(dir: &TempDir, port: u16, text: &str) -> Option<Program> {
    let haproxy = command("haproxy")?;
    let common = "global\n  maxconn 200\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 20s\n  timeout server 20s\n";
    dir.write("haproxy.cfg", format!("{common}{text}"));
    let mut start = Command::new(haproxy);
    start
        .arg("-db")
        .arg("-f")
        .arg(dir.path().join("haproxy.cfg"));
    Some(Program::start(dir, "haproxy", &mut start).accepting(port))
}

/// HAProxy sends the client's address by the PROXY protocol, in both of its versions.
#[test]
fn haproxy_in_front_tells_the_client() {
    if command("haproxy").is_none() {
        return;
    }
    let backend = Backend::answering(|r| {
        ok(format!(
            "{} {}",
            r.header("X-Real").unwrap_or_default(),
            r.body.len()
        ))
    });
    let server = Server::http(&format!(
        "set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol;
         server {{ listen 127.0.0.1:%%PORT%% proxy_protocol; listen 127.0.0.1:%%PORT2%%; client_max_body_size 0;
             location / {{ proxy_pass http://{};
                 proxy_set_header X-Real \"$proxy_protocol_addr $remote_addr $remote_port\"; }} }}",
        backend.name()
    ))
    .start();
    for version in ["send-proxy", "send-proxy-v2"] {
        let front = Port::reserve();
        let text = format!(
            "frontend f\n  bind 127.0.0.1:{}\n  default_backend b\nbackend b\n  server s 127.0.0.1:{} {version}\n",
            front.number(),
            server.port()
        );
        let _haproxy = haproxy(server.dir(), front.number(), &text);
        let mut client = firstbyte_tests::Client::connect_to("127.0.0.1", front.number());
        let own = client.local_port();
        for _ in 0..3 {
            let seen = client.get("/").text();
            assert_eq!(seen, format!("127.0.0.1 127.0.0.1 {own} 0"), "{version}");
        }
        client
            .send(request("POST", "/", &["Content-Length: 1000000"]))
            .send(vec![b'x'; 1_000_000]);
        assert!(client.response().text().ends_with(" 1000000"), "{version}");
    }
}

#[test]
fn haproxy_serves_behind() {
    if command("haproxy").is_none() {
        return;
    }
    let backend = Backend::answering(|r| match r.target() {
        "/large" => ok(vec![b'x'; 3 << 20]),
        _ => ok(format!(
            "{} {}",
            r.header("X-Forwarded-For").unwrap_or_default(),
            r.body.len()
        )),
    });
    let server = Server::http_with(
        "worker_processes 1;",
        "upstream behind { server 127.0.0.1:%%PORT2%%; keepalive 8; }
         server { listen 127.0.0.1:%%PORT%%; http2 on; client_max_body_size 0;
             location / { proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection \"\";
                 proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; } }",
    )
    .start();
    let text = format!(
        "frontend f\n  bind 127.0.0.1:{}\n  default_backend b\nbackend b\n  server s {}\n",
        server.port_number(2),
        backend.name()
    );
    let _haproxy = haproxy(server.dir(), server.port_number(2), &text);
    let mut client = server.client();
    for _ in 0..10 {
        assert_eq!(client.get("/").text(), "127.0.0.1 0");
        assert_eq!(client.get("/large").body.len(), 3 << 20);
    }
    for framing in ["Content-Length: 5", "Transfer-Encoding: chunked"] {
        let body = if framing.starts_with('C') {
            "hello"
        } else {
            "5\r\nhello\r\n0\r\n\r\n"
        };
        client.send(request("POST", "/", &[framing]) + body);
        assert_eq!(client.response().text(), "127.0.0.1 5");
    }
    let mut h2 = H2Client::connect(server.port());
    let streams: Vec<u32> = (0..20).map(|_| h2.get("/large")).collect();
    for stream in streams {
        assert_eq!(h2.reply(stream).body.len(), 3 << 20);
    }
}
