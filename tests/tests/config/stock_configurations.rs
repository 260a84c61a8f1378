//! Well-known configurations: the shipped one under the edits of a reproduction script, and Debian's stock file.
//!
//! perl makes the edits, one line at a time, like the script. Its patterns must match the shipped file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tls_client::Tls;
use firstbyte_tests::{Outcome, Server, node, peer, run, wait_until};

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../conf")
        .join(name)
}

fn shipped_text(name: &str) -> String {
    fs::read_to_string(shipped(name)).expect("the shipped file is in the tree")
}

/// The shipped configuration in a prefix of its own, in the layout it is installed in.
fn installed() -> Server {
    let builder = Server::whole(&shipped_text("nginx.conf"))
        .bytes("conf/nginx.conf", shipped_text("nginx.conf").as_bytes())
        .bytes("conf/mime.types", shipped_text("mime.types").as_bytes())
        .bytes(
            "html/index.html",
            shipped_text("html/index.html").as_bytes(),
        )
        .bytes("html/50x.html", shipped_text("html/50x.html").as_bytes())
        .file("logs/port", "%%PORT%%")
        .allow("[emerg]");
    builder.written()
}

/// Applies perl expressions to a file, each as `perl -pi -e`.
fn edit(file: &Path, expressions: &[&str]) {
    for expression in expressions {
        let before = fs::read_to_string(file).expect("the file is there");
        let status = Command::new("perl")
            .arg("-pi")
            .arg("-e")
            .arg(expression)
            .arg(file)
            .status()
            .expect("perl runs");
        assert!(status.success(), "{expression}");
        let after = fs::read_to_string(file).expect("the file is there");
        assert_ne!(before, after, "the pattern finds its place: {expression}");
    }
}

fn run_installed(server: &Server, more: &[&str]) -> Outcome {
    let prefix = format!("{}/", server.dir().path().display());
    // nginx's own files may be anywhere: only the paths given here are used.
    let globals = format!("pid {prefix}logs/nginx.pid; error_log {prefix}logs/error.log;");
    let mut arguments = vec![
        "-p",
        &prefix,
        "-c",
        "conf/nginx.conf",
        "-e",
        "logs/error.log",
        "-g",
        &globals,
    ];
    arguments.extend(more);
    run(arguments)
}

/// Moves the installed configuration to a free port, and its logs and bodies below the prefix.
fn make_local(server: &Server, port: &str) {
    let local = server.expand(port);
    let paths = server.expand("s{^(\\s+)include\\s}{$1access_log %%DIR%%/logs/access.log; client_body_temp_path %%DIR%%/logs/t;\\n$1include }");
    edit(&server.path("conf/nginx.conf"), &[&local, &paths]);
}

#[test]
fn the_shipped_configuration_has_the_layout_people_know() {
    let text = shipped_text("nginx.conf");
    for line in [
        "#user  nobody;",
        "worker_processes  1;",
        "    include       mime.types;",
        "        listen       80;",
        "        server_name  localhost;",
    ] {
        assert!(
            text.lines().any(|l| l == line),
            "a line of its own: {line:?}"
        );
    }
    assert_eq!(
        text.lines()
            .filter(|l| l.trim_start().starts_with("server {"))
            .count(),
        1,
        "one server"
    );
    let page = shipped_text("html/index.html");
    assert!(page.len() <= 1602, "{} bytes", page.len());
    assert!(page.contains("Welcome to firstbyte"));
}

#[test]
fn the_shipped_configuration_serves_its_page() {
    let mut server = installed();
    make_local(
        &server,
        "s/listen\\s+80;/listen 127.0.0.1:%%PORT%%;/ if /^\\s+listen/",
    );
    let outcome = run_installed(&server, &["-t"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(run_installed(&server, &[]).code, 0);
    server.adopt("logs/nginx.pid");
    let mut client = server.client();
    let answer = client.get("/");
    assert_eq!(
        (answer.status, answer.header("Content-Type")),
        (200, Some("text/html"))
    );
    assert_eq!(answer.text(), shipped_text("html/index.html"));
    assert_eq!(
        client.get("/50x.html").text(),
        shipped_text("html/50x.html")
    );
    assert_eq!(client.get("/missing").status, 404);
    assert_eq!(run_installed(&server, &["-s", "stop"]).code, 0);
    server.wait_for_exit();
}

/// The lines of the installed configuration that begin with these words, each there once.
fn lines_of<const N: usize>(file: &Path, words: [&str; N]) -> [usize; N] {
    let text = fs::read_to_string(file).expect("the file is there");
    words.map(|words| {
        let mut lines = text.lines();
        let at = lines.position(|line| line.trim_start().starts_with(words));
        at.unwrap_or_else(|| panic!("no line begins with {words:?}")) + 1
    })
}

/// The script's edits, with its certificate in this directory.
fn edit_as_the_script_does(file: &Path, certificates: &str) {
    let certificates = format!(
        r"s|^(\s+)server \{{|$1server {{\n$1    ssl_certificate     {certificates}/nginx.test.pem;\n$1    ssl_certificate_key {certificates}/nginx.test.key;|"
    );
    edit(
        file,
        &[
            r"s/^\#user\s+nobody\;/user www-data\;/",
            r"s/listen\s+80\;/listen 443 ssl spdy\;/ if !/#/",
            r"s/server_name\s+localhost\;/server_name nginx.test\;/",
            &certificates,
        ],
    );
    assert_eq!(lines_of(file, ["user www-data;"]), [2]);
    lines_of(file, ["server_name nginx.test;", "listen 443 ssl spdy;"]);
}

#[test]
fn the_reproduction_script_edits_the_shipped_configuration() {
    let server = installed();
    let file = server.path("conf/nginx.conf");
    edit_as_the_script_does(&file, "/none");
    // The certificates do not exist; the error names them and their line.
    let outcome = run_installed(&server, &["-t"]);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    if peer::is_firstbyte() {
        let received = &outcome.stderr;
        let [line] = lines_of(&file, ["ssl_certificate "]);
        let place = format!("{}:{line}", file.display());
        assert!(received.contains(&place), "{place}: {received}");
        assert!(received.contains("/none/nginx.test.pem"), "{received}");
    }
}

#[test]
fn the_edited_configuration_serves_its_page_by_spdy_and_http_1() {
    if !peer::is_firstbyte() {
        return;
    }
    let mut server = installed();
    let file = server.path("conf/nginx.conf");
    let directory = server.dir().path().display().to_string();
    edit_as_the_script_does(&file, &directory);
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:4096", "-nodes", "-days", "2",
        ])
        .args(["-subj", "/CN=nginx.test", "-keyout"])
        .arg(server.path("nginx.test.key"))
        .arg("-out")
        .arg(server.path("nginx.test.pem"))
        .output()
        .expect("openssl is there");
    assert!(made.status.success(), "{made:?}");
    make_local(&server, "s/listen 443 /listen 127.0.0.1:%%PORT%% /");
    edit(&file, &[&server.expand("s/^user www-data;/%%USER%%/")]);
    assert_eq!(run_installed(&server, &["-t"]).code, 0);
    assert_eq!(run_installed(&server, &[]).code, 0);
    server.adopt("logs/nginx.pid");
    let page = shipped_text("html/index.html");
    let by_spdy = node::spdy(server.port(), "page");
    assert_eq!(by_spdy, format!("spdy/3.1 200 text/html\n{page}"));
    // Who offers nothing, or HTTP/2, which is not on, gets HTTP/1.1.
    for client in [Tls::new(), Tls::speaking(&[b"h2", b"http/1.1"])] {
        let answer = client.get(server.port(), "nginx.test", "/");
        assert_eq!((answer.status, &answer.body), (200, &page));
        assert!(answer.head.starts_with("HTTP/1.1 200"), "{}", answer.head);
        assert!(answer.alpn.is_none_or(|name| name == b"http/1.1"));
    }
    let logged = || fs::read_to_string(server.path("logs/access.log")).unwrap_or_default();
    wait_until("three requests are logged", || {
        logged().lines().count() == 3
    });
    assert_eq!(logged().matches("\"GET / SPDY/3.1\" 200 ").count(), 1);
    assert_eq!(run_installed(&server, &["-s", "stop"]).code, 0);
    server.wait_for_exit();
}

/// Debian's stock configuration, rewritten: the same directives, in the same order.
const STOCK: &str = "
user www-data;
worker_processes auto;
pid %%DIR%%/run/nginx.pid;
error_log %%DIR%%/log/error.log;
include %%DIR%%/etc/modules-enabled/*.conf;

events {
	worker_connections 768;
}

http {
	sendfile on;
	tcp_nopush on;
	types_hash_max_size 2048;

	include %%DIR%%/etc/mime.types;
	default_type application/octet-stream;

	ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3;
	ssl_prefer_server_ciphers on;

	access_log %%DIR%%/log/access.log;

	gzip on;

	include %%DIR%%/etc/conf.d/*.conf;
	include %%DIR%%/etc/sites-enabled/*;
}
";

const STOCK_SITE: &str = "
server {
	listen 80 default_server;
	listen [::]:80 default_server;
	root %%DIR%%/html;
	index index.html index.htm index.nginx-debian.html;
	server_name _;
	location / {
		try_files $uri $uri/ =404;
	}
}
";

fn stock(main: &str, site: &str) -> Server {
    let server = Server::whole(main)
        .bytes("etc/mime.types", shipped_text("mime.types").as_bytes())
        .file("etc/sites-enabled/default", site)
        .file("html/index.nginx-debian.html", "stock page, long enough")
        .file("log/port", "%%PORT%%")
        .file("run/unused", "")
        .allow("[emerg]")
        .written();
    make_stock_local(&server);
    server
}

fn make_stock_local(server: &Server) {
    let site = server.path("etc/sites-enabled/default");
    let port = server.expand(
        "s/^(\\s*listen) (?:\\[::\\]:)?80 /$1 127.0.0.1:%%PORT%% / and $seen++ and $_ = \"\\n\"",
    );
    edit(&site, &[&port]);
    let paths = server.expand("s|^http \\{|http { client_body_temp_path %%DIR%%/run/t;|");
    let user = server.expand("s/^user www-data;/%%USER%%/");
    edit(&server.path("nginx.conf"), &[&paths, &user]);
}

/// Tests the configuration and returns the output.
fn accepted(server: &Server) -> String {
    let mut arguments = server.arguments();
    arguments.push("-t".to_owned());
    let outcome = run(&arguments);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    outcome.stderr
}

#[test]
fn debians_stock_configuration_is_accepted() {
    let said = accepted(&stock(STOCK, STOCK_SITE));
    assert!(said.contains("test is successful"), "{said}");
}

#[test]
fn debians_own_files_are_too_where_they_are_installed() {
    let read = |path: &str| fs::read_to_string(Path::new("/etc/nginx").join(path)).ok();
    let (Some(main), Some(site)) = (read("nginx.conf"), read("sites-available/default")) else {
        return;
    };
    let moved = |text: &str| {
        text.replace("/etc/nginx/", "%%DIR%%/etc/")
            .replace("/var/log/nginx/", "%%DIR%%/log/")
            .replace("/run/nginx.pid", "%%DIR%%/run/nginx.pid")
            .replace("/var/www/html", "%%DIR%%/html")
    };
    accepted(&stock(&moved(&main), &moved(&site)));
}

#[test]
fn the_stock_site_is_served_and_compressed() {
    let mut server = stock(STOCK, STOCK_SITE);
    let start = run(server.arguments());
    assert_eq!(start.code, 0, "{}", start.stderr);
    server.adopt("run/nginx.pid");
    assert_eq!(server.get("/").text(), "stock page, long enough");
    assert_eq!(server.get("/none").status, 404);
    let answer = server
        .client()
        .get_with("/", &["Accept-Encoding: gzip, deflate, br"]);
    assert_eq!(answer.header("Content-Encoding"), Some("gzip"));
}

#[test]
fn a_server_that_only_leads_to_https() {
    let mut server = Server::http(
        "server { listen 80; rewrite ^(.*) https://$server_name$1 permanent; server_name shop.example; }",
    )
    .file("port", "%%PORT%%")
    .written();
    let file = server.path("nginx.conf");
    edit(
        &file,
        &[
            &server.expand("s/listen 80;/listen 127.0.0.1:%%PORT%%;/"),
            "s/daemon off;/daemon on;/",
        ],
    );
    assert_eq!(run(server.arguments()).code, 0);
    server.adopt("nginx.pid");
    let answer = server.get("/a?b=c");
    assert_eq!(
        (answer.status, answer.header("Location")),
        (301, Some("https://shop.example/a?b=c"))
    );
}
