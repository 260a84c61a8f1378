//! `firstbyte explain` agrees with the running server about the same requests.

use crate::tls_client::{Tls, site};
use firstbyte_tests::dir::set_mode;
use firstbyte_tests::explain::{explain_report, outcome};
use firstbyte_tests::{Client, Server, peer};
use serde_json::Value;

/// Requests the explained URI from the running server, and compares.
#[track_caller]
fn assert_same(server: &Server, method: &str, path: &str, host: &str) {
    let port = server.port();
    let report = explain_report(
        server,
        &[
            "--method",
            method,
            "-H",
            &format!("Host: {host}"),
            &format!("http://127.0.0.1:{port}{path}"),
        ],
    );
    let mut client = Client::connect(port);
    client.send(format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    ));
    let told = &report["answer"];
    let context = format!("{method} {path} at {host}: {report:#}");
    if told["status"].is_null() {
        assert!(client.closed(), "{context}");
        return;
    }
    let answer = match method {
        "HEAD" => client.response_to_head(),
        _ => client.response(),
    };
    assert_eq!(told["status"], u64::from(answer.status), "{context}");
    assert_eq!(
        told["location"].as_str(),
        answer.header("Location"),
        "{context}"
    );
    let fields = told["fields"].as_array().expect("fields are a list");
    let sent = answer.headers.iter();
    let own = ["date", "connection", "transfer-encoding", "keep-alive"];
    let sent: Vec<Value> = sent
        .filter(|(name, _)| !own.contains(&name.to_ascii_lowercase().as_str()))
        .map(|(name, value)| serde_json::json!([name, value]))
        .collect();
    assert_eq!(*fields, sent, "{context}");
    if method != "HEAD" {
        let body = match (told["file"].as_str(), told["text"].as_str()) {
            (Some(file), _) => std::fs::read_to_string(file).expect("it was told to be there"),
            (None, Some(text)) => text.to_owned(),
            _ => return,
        };
        assert_eq!(body, answer.text(), "{context}");
    }
}

#[test]
fn the_server_answers_as_explained() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(
        "types { text/html html; image/png png; text/plain txt; }
         index index.html;
         map $uri $moved { default \"\"; /moved /here; ~^/m/(.*)$ /n/$1; }
         error_page 404 /404.html;
         add_header X-Site $server_name always;
         server { listen 127.0.0.1:%%PORT%% default_server; server_name a.test; root %%DIR%%/html;
           if ($moved) { return 301 $moved; }
           rewrite ^/old/(.*)$ /$1;
           rewrite ^/away/(.*)$ http://other.test/$1 permanent;
           location / { try_files $uri $uri/ @app; }
           location @app { return 200 \"app $uri\"; }
           location /plain/ { alias %%DIR%%/html/sub/; autoindex on; }
           location /sub/ { location ~ \\.txt$ { add_header X-Text yes; charset utf-8; } }
           location ~ ^/user/(?<who>\\w+)/(.*)$ { alias %%DIR%%/html/$who/$2; }
           location /closed/ { deny all; error_page 403 = @app; }
           location /inner/ { internal; }
           location /hang { return 444; }
           location /many { limit_except GET { deny all; } try_files /sub/b.txt =404; }
           location /chain { rewrite ^ /chain2 last; }
           location /chain2 { rewrite ^ /sub/b.txt break; }
           location /spin { rewrite ^ /spin last; }
           location = /404.html { internal; } }
         server { listen 127.0.0.1:%%PORT%%; server_name *.b.test ~^c(?<n>\\d)\\.test$;
           root %%DIR%%/none;
           error_page 404 =200 /fallback;
           location /fallback { return 200 \"b $n\"; }
           location /dir { root %%DIR%%/html; }
           location /redirect { return 307 /x; } }",
    )
    .file("html/index.html", "welcome")
    .file("html/404.html", "no such page")
    .file("html/sub/index.html", "sub")
    .file("html/sub/b.txt", "text")
    .file("html/sub/empty.txt", "")
    .file("html/dir/x", "x")
    .file("html/sub/secret.txt", "secret")
    // Neither may the worker read it, nor the tool in its place, if both began as root.
    .prepare(|dir| set_mode(&dir.join("html/sub/secret.txt"), 0))
    .allow("cycle")
    .start();
    for path in [
        "/",
        "/index.html",
        "/sub",
        "/sub/",
        "/sub/b.txt",
        "/sub/empty.txt",
        "/sub/secret.txt",
        "/sub/none.txt",
        "/none",
        "/moved",
        "/m/a%20b",
        "/old/sub/b.txt?x",
        "/away/y?z=1",
        "/plain/",
        "/plain/b.txt",
        "/plain",
        "/user/sub/b.txt",
        "/user/sub/",
        "/closed/x",
        "/inner/x",
        "/hang",
        "/many",
        "/chain",
        "/spin",
        "/404.html",
        "/a/../sub/b.txt",
        "/%2e%2e/x",
        "/%zz",
        "/x?a=b",
    ] {
        for method in ["GET", "HEAD", "POST"] {
            assert_same(&server, method, path, "a.test");
        }
    }
    for path in ["/", "/dir", "/dir/x", "/redirect", "/none"] {
        for host in ["x.b.test", "c7.test", "unknown.test", "bad/host"] {
            assert_same(&server, "GET", path, host);
        }
    }
    assert_same(&server, "TRACE", "/", "a.test");
    assert_same(&server, "get", "/", "a.test");
}

#[test]
fn https_is_explained_as_the_server_does_it() {
    if !peer::is_firstbyte() {
        return;
    }
    let (one, two) = (site("one"), site("two"));
    let server = Server::http(
        "ssl_certificate %%DIR%%/1.crt; ssl_certificate_key %%DIR%%/1.key;
         server { listen 127.0.0.1:%%PORT%% ssl; server_name one; error_page 497 =302 https://$host$uri;
           return 200 \"one $scheme $https $server_port [$ssl_server_name]\"; }
         server { listen 127.0.0.1:%%PORT%% ssl; server_name two;
           ssl_certificate %%DIR%%/2.crt; ssl_certificate_key %%DIR%%/2.key; location / { return 301 /there; } }
         server { listen 127.0.0.1:%%PORT%% ssl; server_name closed; ssl_reject_handshake on; }
         server { listen 127.0.0.1:%%PORT%% ssl; server_name asks; ssl_client_certificate %%DIR%%/1.crt;
           ssl_verify_client on; return 200 in; }
         server { listen 127.0.0.1:%%PORT2%%; return 200 plain; }",
    )
    .bytes("1.crt", one.certificate.as_bytes())
    .bytes("1.key", one.key.as_bytes())
    .bytes("2.crt", two.certificate.as_bytes())
    .bytes("2.key", two.key.as_bytes())
    .start();
    let port = server.port();
    let explain = |name: &str, more: &[&str]| {
        let url = format!("https://{name}:{port}/x");
        explain_report(&server, &[&["--to", "127.0.0.1", &url], more].concat())
    };
    for (name, host, certificate) in [
        ("one", "one", "one"),
        ("two", "two", "two"),
        ("nobody", "nobody", "one"),
        ("one", "two", "one"),
        ("one", "asks", "one"),
        ("asks", "asks", "asks"),
    ] {
        let report = explain(name, &["-H", &format!("Host: {host}:{port}")]);
        let answer = Tls::new().ask(port, name, &format!("{host}:{port}"), "/x");
        let answer = answer.expect("the server answers");
        let context = format!("{name} {host}: {report:#}");
        assert_eq!(report["answer"]["status"], answer.status, "{context}");
        if let Some(text) = report["answer"]["text"].as_str() {
            assert_eq!(answer.body, text, "{context}");
        }
        if let Some(location) = report["answer"]["location"].as_str() {
            let line = format!("Location: {location}\r\n");
            assert!(answer.head.contains(&line), "{context}");
        }
        assert_eq!(report["handshake"]["server"], certificate, "{context}");
        assert_eq!(report["handshake"]["name"], name, "{context}");
    }
    let report = explain("closed", &[]);
    assert!(Tls::new().ask(port, "closed", "closed", "/").is_err());
    assert_eq!(report["answer"]["status"], Value::Null);
    let why = "the handshake is rejected by ssl_reject_handshake";
    assert_eq!(report["handshake"]["refused"], why);
    assert_eq!(report["answer"]["reason"], why);
    // Without TLS on a port of it, as one finds out.
    assert_same(&server, "GET", "/x", "one");
    assert_same(&server, "GET", "/x", "two");
    let report = explain_report(&server, &["http://127.0.0.1:%%PORT%%/x"]);
    assert_eq!(
        (&report["handshake"], &report["answer"]["status"]),
        (&Value::Null, &302.into())
    );
    let refused = outcome(&server, &["https://127.0.0.1:%%PORT2%%/"]);
    let why = server.expand("127.0.0.1:%%PORT2%% does not use TLS");
    assert!(
        refused.stderr.contains(&why) && refused.code == 1,
        "{}",
        refused.stderr
    );
    let text = server.expand("no server listens on port 443; there is 127.0.0.1:%%PORT%%");
    let refused = outcome(&server, &["https://one/"]);
    assert!(refused.stderr.contains(&text), "{}", refused.stderr);
}
