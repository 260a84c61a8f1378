//! `firstbyte explain` of proxied requests: the first upstream server, and the request that it would get.

use firstbyte_tests::explain::{explain_report, outcome};
use firstbyte_tests::{Server, peer};

use crate::tls_client::site;

#[test]
fn a_request_that_is_passed_on_is_told_with_its_server_and_not_sent() {
    if !peer::is_firstbyte() {
        return;
    }
    // A connection there would be refused, with 502 as the result.
    let http = "upstream app { server 127.0.0.1:9; server 127.0.0.1:10 backup; }\n\
                server {\nlisten 127.0.0.1:%%PORT%%;\nserver_name localhost;\n\
                location /app/ {\nproxy_pass http://app/base/;\nproxy_set_header X-Path $uri;\n}\n\
                location /by-name { set $name nobody.invalid; proxy_pass http://$name:81; }\n}";
    let server = Server::http(http).written();
    let report = explain_report(
        &server,
        &["http://localhost:%%PORT%%/app/x?y", "-H", "X-One: 1"],
    );
    let passed = &report["passed"];
    assert_eq!(passed["server"], "127.0.0.1:9", "{report:#}");
    assert_eq!(passed["group"], "app");
    let request: Vec<_> = [
        "GET /base/x?y HTTP/1.1",
        "Host: app",
        "X-Path: /app/x",
        "X-One: 1",
    ]
    .into();
    assert_eq!(passed["request"], serde_json::json!(request));
    assert!(report["answer"]["status"].is_null());
    assert_eq!(
        report["answer"]["reason"],
        "the upstream server is not contacted"
    );
    let report = explain_report(&server, &["http://localhost:%%PORT%%/by-name"]);
    assert_eq!(report["passed"]["name"], "nobody.invalid", "{report:#}");
    assert!(report["passed"]["server"].is_null());
}

#[test]
fn the_parameters_of_an_application_are_told() {
    if !peer::is_firstbyte() {
        return;
    }
    let http = "upstream php { server 127.0.0.1:9; }\n\
                fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;\n\
                fastcgi_param QUERY_STRING $query_string;\nfastcgi_param HTTPS $https if_not_empty;\n\
                server {\nlisten 127.0.0.1:%%PORT%%;\nserver_name localhost;\nroot /srv;\n\
                location / {\nfastcgi_pass php;\nfastcgi_index index.php;\n}\n\
                location /s { scgi_pass 127.0.0.1:10; }\n}";
    let server = Server::http(http).written();
    let url = "http://localhost:%%PORT%%/app/?y";
    let report = explain_report(&server, &[url, "-H", "X-One: 1", "-H", "Proxy: evil"]);
    let passed = &report["passed"];
    assert_eq!(passed["server"], "127.0.0.1:9", "{report:#}");
    assert_eq!(passed["group"], "php");
    assert_eq!(passed["request"], serde_json::json!([]));
    let parameters = [
        "SCRIPT_FILENAME=/srv/app/index.php",
        "QUERY_STRING=y",
        &format!("HTTP_HOST=localhost:{}", server.port()),
        "HTTP_X_ONE=1",
    ];
    assert_eq!(passed["parameters"], serde_json::json!(parameters));
    let scgi = explain_report(&server, &["http://localhost:%%PORT%%/s"]);
    let first = &scgi["passed"]["parameters"][0];
    assert_eq!(first, "CONTENT_LENGTH=0", "{scgi:#}");
}

#[test]
fn mirrors_of_a_request_are_steps_with_their_lines() {
    if !peer::is_firstbyte() {
        return;
    }
    let http = "mirror /outer;\nserver {\nlisten 127.0.0.1:%%PORT%%;\nserver_name localhost;\n\
                location / {\nmirror /first;\nmirror /second;\nproxy_pass http://127.0.0.1:9;\n}\n\
                location /off { mirror off; proxy_pass http://127.0.0.1:9; }\n}";
    let server = Server::http(http).written();
    let mirrors = |path: &str| -> Vec<String> {
        let report = explain_report(&server, &[&format!("http://localhost:%%PORT%%{path}")]);
        let steps = report["steps"].as_array().expect("a list").iter();
        let mirrors = steps.filter(|step| step["step"] == "mirror");
        mirrors
            .map(|step| format!("{}, line {}", step["text"], step["at"]["line"]))
            .collect()
    };
    let both = mirrors("/x");
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(
        both[0].starts_with("\"/first: gets a copy\", line "),
        "{both:?}"
    );
    assert!(
        both[1].starts_with("\"/second: gets a copy\", line "),
        "{both:?}"
    );
    assert!(mirrors("/off").is_empty());
}

#[test]
fn the_method_of_a_group_is_told_with_the_server_that_it_chooses() {
    if !peer::is_firstbyte() {
        return;
    }
    let http = "upstream turns { server 127.0.0.1:9; server 127.0.0.1:10; }\n\
                upstream hashed { hash $uri; server 127.0.0.1:9; server 127.0.0.1:10; }\n\
                server {\nlisten 127.0.0.1:%%PORT%%;\nserver_name localhost;\n\
                location /turns { proxy_pass http://turns; }\n\
                location /hashed { proxy_pass http://hashed; }\n\
                location /one { proxy_pass http://127.0.0.1:9; }\n}";
    let server = Server::http(http).written();
    for (path, method, text) in [
        (
            "/turns",
            serde_json::Value::Null,
            ", of upstream turns, by round robin\n",
        ),
        ("/hashed", "hash".into(), ", of upstream hashed, by hash\n"),
        (
            "/one",
            serde_json::Value::Null,
            "passed    to 127.0.0.1:9\n",
        ),
    ] {
        let url = format!("http://localhost:%%PORT%%{path}");
        let report = explain_report(&server, &[&url]);
        let passed = &report["passed"];
        assert_eq!(passed["method"], method, "{report:#}");
        assert!(passed["tls"].is_null());
        let shown = outcome(&server, &[&url]).stdout;
        assert!(shown.contains(text), "{shown}");
    }
}

#[test]
fn tls_to_a_server_is_told_with_its_name_and_its_checks() {
    if !peer::is_firstbyte() {
        return;
    }
    let http = "proxy_ssl_name api.example.com;\n\
                server {\nlisten 127.0.0.1:%%PORT%%;\nserver_name localhost;\n\
                location /default { proxy_pass https://127.0.0.1:9; }\n\
                location /named { proxy_pass https://127.0.0.1:9; proxy_ssl_server_name ON; }\n\
                location /checked { proxy_pass https://127.0.0.1:9;\n\
                proxy_ssl_verify On; proxy_ssl_trusted_certificate site.pem; }\n}";
    let site = site("api.example.com");
    let server = Server::http(http)
        .bytes("site.pem", site.certificate.as_bytes())
        .written();
    let name = serde_json::json!("api.example.com");
    for (path, name, sends_name, verifies, text) in [
        (
            "/default",
            None,
            false,
            false,
            "without a name; the certificate is not verified",
        ),
        (
            "/named",
            Some(&name),
            true,
            false,
            "to api.example.com; the certificate is not verified",
        ),
        (
            "/checked",
            Some(&name),
            false,
            true,
            "without a name; the certificate is verified for api.example.com",
        ),
    ] {
        let url = format!("http://localhost:%%PORT%%{path}");
        let report = explain_report(&server, &[&url]);
        let tls = &report["passed"]["tls"];
        assert_eq!(
            &tls["name"],
            name.unwrap_or(&serde_json::Value::Null),
            "{report:#}"
        );
        assert_eq!(tls["sends_name"], sends_name);
        assert_eq!(tls["verifies"], verifies);
        let shown = outcome(&server, &[&url]).stdout;
        assert!(shown.contains(&format!("  tls       {text}\n")), "{shown}");
    }
}
