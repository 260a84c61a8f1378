//! `firstbyte waterfall --wire`: a page of a hundred files over each protocol, as browsers load it, and servers that do not let it.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::tls_client::site;
use firstbyte_tests::{Server, peer, report, run};
use serde_json::Value;

/// A hundred files of 1 KB, named by the document and by a style sheet: port 1 plain, 2 plain SPDY, 3 TLS.
fn hundred() -> Server {
    let leaf = site("localhost");
    let images: String = (0..98).map(|n| format!("<img src={n}.png>")).collect();
    let document = format!("<title>Hundred</title>{images}<link rel=stylesheet href=a.css>");
    let css = format!("@font-face {{ src: url(f.woff2) }} /*{}*/", "x".repeat(980));
    let server = Server::http(
        "server {
            listen 127.0.0.1:%%PORT%%; listen 127.0.0.1:%%PORT2%% spdy; listen 127.0.0.1:%%PORT3%% ssl spdy;
            http2 on; ssl_certificate leaf.pem; ssl_certificate_key leaf.key; root html;
            types { text/html html; text/css css; image/png png; font/woff2 woff2; }
         }",
    )
    .bytes("leaf.pem", leaf.certificate.as_bytes())
    .bytes("leaf.key", leaf.key.as_bytes())
    .file("html/index.html", &document)
    .file("html/a.css", &css)
    .bytes("html/f.woff2", &[7; 1024]);
    let server = (0..98).fold(server, |server, n| {
        server.bytes(&format!("html/{n}.png"), &[7; 1024])
    });
    server.start()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn a_hundred_files_come_over_the_connections_that_browsers_make() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = hundred();
    for (port, protocol, name, connections) in [
        (1, "h1", "http/1.1", 6),
        (1, "h2", "h2", 1),
        (2, "spdy", "spdy/3.1", 1),
        (3, "h1", "http/1.1", 6),
        (3, "h2", "h2", 1),
        (3, "spdy", "spdy/3.1", 1),
        (3, "auto", "h2", 1),
    ] {
        let scheme = if port == 3 { "https" } else { "http" };
        let url = format!("{scheme}://localhost:{}/", server.port_number(port));
        let words = ["--wire", &url, "-k", "--protocol", protocol];
        let report = report("waterfall", &words);
        let resources = list(&report["cold"]["visit"]["resources"]);
        assert_eq!(resources.len(), 101, "{url} {protocol}");
        let used: BTreeSet<Option<u64>> = resources
            .iter()
            .map(|one| one["connection"].as_u64())
            .collect();
        assert_eq!(used.len(), connections, "{url} {protocol}: {used:?}");
        for resource in resources {
            assert_eq!(
                (
                    &resource["status"],
                    &resource["protocol"],
                    &resource["error"]
                ),
                (&200.into(), &name.into(), &Value::Null),
                "{resource}"
            );
        }
        let font = resources.iter().find(|one| {
            one["url"]
                .as_str()
                .is_some_and(|url| url.ends_with("/f.woff2"))
        });
        assert_eq!(font.map(|font| &font["kind"]), Some(&"font".into()));
    }
}

/// A server that treats every client alike.
fn scripted(script: fn(TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || script(stream));
        }
    });
    format!("http://127.0.0.1:{port}/")
}

fn keep(mut stream: TcpStream) {
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}

#[test]
fn pages_that_cannot_be_fetched_are_told_in_a_sentence_and_in_time() {
    if !peer::is_firstbyte() {
        return;
    }
    let silent = scripted(keep);
    let nonsense = scripted(|mut stream| {
        // A request has come.
        let _ = stream.read(&mut [0]);
        let _ = stream.write_all(b"SSH-2.0-x\r\n");
        keep(stream);
    });
    let endless = scripted(|mut stream| {
        let _ = stream.read(&mut [0]);
        let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while sent.is_ok() {
            sent = stream.write_all(&b"X-A: bcdefghijklmnopqrstuvwxyz\r\n".repeat(100));
        }
    });
    for (url, why) in [
        (silent, "no response within 3 s"),
        (nonsense, "no valid HTTP/1.0 header"),
        (endless, "too big header"),
    ] {
        let start = Instant::now();
        let outcome = run(["waterfall", "--wire", &url, "--timeout", "3"]);
        assert_eq!(outcome.code, 1, "{url}");
        assert!(outcome.stderr.contains(why), "{}", outcome.stderr);
        // Far below its duration without a limit.
        assert!(start.elapsed() < Duration::from_secs(20), "{url}");
    }
}
