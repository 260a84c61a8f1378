//! Idle connections and sessions with servers: their limits, and the policies under which they are used.
//!
//! Source: nginx documentation, `keepalive`, `proxy_ssl_name`, `proxy_ssl_certificate`.

use firstbyte_tests::wait::wait_until;
use firstbyte_tests::{Server, peer};
use rustix::process::Signal;

use super::{authority, issued, pair};

/// A server of one thread with these files, that passes requests to itself over TLS. The server behind answers with
/// facts of the connection.
fn front(keepalive: &str, locations: &str, files: &[(&str, &str)]) -> Server {
    let ours = authority("Ours");
    let site = issued(&ours, "localhost", |_| {});
    let mut server = Server::http_with(
        "worker_processes 1;",
        &format!(
            "upstream back {{ server 127.0.0.1:%%PORT2%%; {keepalive} }}
             proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_ssl_server_name on;
             server {{ listen 127.0.0.1:%%PORT%%; {locations} location /load {{ return 200 first; }} }}
             server {{ listen 127.0.0.1:%%PORT2%% ssl; ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/c.key;
               ssl_verify_client optional_no_ca; keepalive_timeout 60s; ssl_session_cache shared:s:1m;
               return 200 \"$connection $ssl_session_reused $ssl_client_s_dn\"; }}"
        ),
    )
    .bytes("ca.pem", ours.pem().as_bytes());
    for (name, text) in pair(&site, ["c.pem", "c.key"]).iter().chain(files) {
        server = server.bytes(name, text.as_bytes());
    }
    server.start()
}

/// Loads the configuration again, and waits until it serves.
fn reload(server: &Server) {
    let before = server.get("/load").text();
    let after = format!("{before}+");
    server.rewrite_conf(|text| {
        text.replace(
            &format!("return 200 {before};"),
            &format!("return 200 {after};"),
        )
    });
    server.signal(Signal::HUP);
    wait_until("the new configuration serves", || {
        server.get("/load").text() == after
    });
}

/// `$connection` of the server behind.
fn connection(server: &Server, path: &str) -> String {
    let answer = server.get(path);
    assert_eq!(answer.status, 200, "{path}");
    let text = answer.text();
    text.split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn limit_of_idle_connections_is_of_the_group_and_not_of_each_name() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = front(
        "keepalive 2;",
        "location / { proxy_pass https://back; proxy_ssl_name $arg_n; }",
        &[],
    );
    let get = |name: &str| connection(&server, &format!("/?n={name}.test"));
    let [a, b, c] = ["a", "b", "c"].map(get);
    assert!(a != b && b != c && a != c, "each name has its connection");
    assert_eq!(get("c"), c);
    assert_eq!(get("b"), b);
    assert_ne!(get("a"), a, "a third one has made room, used longest ago");
    assert_eq!(get("b"), b);
    assert_ne!(get("c"), c, "this one was used longest ago then");
}

#[test]
fn limit_of_idle_connections_is_of_all_locations() {
    if !peer::is_firstbyte() {
        return;
    }
    // `local` separates connections by location, not the limit.
    let server = front(
        "keepalive 1 local;",
        "location /a { proxy_pass https://back; } location /b { proxy_pass https://back; }",
        &[],
    );
    let (a, b) = (connection(&server, "/a"), connection(&server, "/b"));
    assert_eq!(connection(&server, "/b"), b);
    assert_ne!(connection(&server, "/a"), a);
}

#[test]
fn request_on_an_idle_connection_reads_no_certificate() {
    let ours = authority("Ours");
    let [one, two] = ["one", "two"].map(|name| issued(&ours, name, |_| {}));
    let files = [
        pair(&one, ["one.pem", "one.key"]),
        pair(&two, ["two.pem", "two.key"]),
    ]
    .concat();
    let named =
        "proxy_ssl_certificate %%DIR%%/$arg_c.pem; proxy_ssl_certificate_key %%DIR%%/$arg_c.key;";
    let server = front(
        "keepalive 8;",
        &format!(
            "location / {{ proxy_pass https://back; {named} }}
             location /alone {{ proxy_pass https://127.0.0.1:%%PORT2%%; {named} }}"
        ),
        &files,
    );
    let text = |path: &str| server.get(path).text();
    let first = text("/?c=one");
    assert!(first.ends_with(" CN=one"), "{first}");
    for name in ["one.pem", "one.key"] {
        std::fs::remove_file(server.path(name)).expect("it was there");
    }
    assert_eq!(text("/?c=one"), first, "the connection is used");
    assert_eq!(server.get("/alone?c=one").status, 500, "a handshake reads");
    let log = server.wait_for_text("error.log", "cannot load certificate");
    assert!(log.contains(" while SSL handshaking to upstream"), "{log}");
    // Files with other content are used by new connections, and after a reload by all.
    for (name, text) in pair(&two, ["one.pem", "one.key"]) {
        server.dir().write(name, text);
    }
    let alone = text("/alone?c=one");
    assert!(alone.ends_with(" CN=two"), "{alone}");
    assert_eq!(text("/?c=one"), first);
    reload(&server);
    let after = text("/?c=one");
    assert!(after.ends_with(" CN=two"), "{after}");
}

#[test]
fn cached_certificate_is_used_by_new_connections() {
    let ours = authority("Ours");
    let one = issued(&ours, "one", |_| {});
    let location = |cache: &str| {
        format!(
            "location / {{ proxy_pass https://127.0.0.1:%%PORT2%%; {cache} proxy_ssl_session_reuse off;
               proxy_ssl_certificate %%DIR%%/$arg_c.pem; proxy_ssl_certificate_key %%DIR%%/$arg_c.key; }}"
        )
    };
    if !peer::builds("proxy_ssl_certificate_cache off;") {
        return;
    }
    for (cache, status) in [("max=2", 200), ("off", 500)] {
        let server = front(
            "",
            &location(&format!("proxy_ssl_certificate_cache {cache};")),
            &pair(&one, ["one.pem", "one.key"]),
        );
        assert_eq!(server.get("/?c=one").status, 200);
        for name in ["one.pem", "one.key"] {
            std::fs::remove_file(server.path(name)).expect("it was there");
        }
        assert_eq!(server.get("/?c=one").status, status, "{cache}");
    }
}

#[test]
fn reload_with_other_trusted_certificates_uses_no_connection_or_session_of_before() {
    let others = authority("Others").pem();
    let verify = "proxy_ssl_verify on; proxy_ssl_name localhost; proxy_ssl_trusted_certificate %%DIR%%/ca.pem;";
    for version in ["TLSv1.2", "TLSv1.3"] {
        let server = front(
            "keepalive 8;",
            &format!(
                "proxy_ssl_protocols {version}; {verify}
                 location / {{ proxy_pass https://back; }}
                 location /alone {{ proxy_pass https://127.0.0.1:%%PORT2%%; proxy_set_header Connection close; }}"
            ),
            &[],
        );
        let resumed = |server: &Server| {
            let text = server.get("/alone").text();
            text.split(' ').nth(1).unwrap_or_default().to_owned()
        };
        let first = connection(&server, "/");
        assert_eq!(connection(&server, "/"), first);
        assert_eq!(
            (resumed(&server), resumed(&server)),
            (".".into(), "r".into())
        );
        // More trust is another policy, too.
        let ours = server.dir().read("ca.pem");
        server.dir().write("ca.pem", format!("{ours}{others}"));
        reload(&server);
        assert_ne!(connection(&server, "/"), first, "{version}");
        assert_eq!(resumed(&server), ".", "{version}");
        server.dir().write("ca.pem", &others);
        reload(&server);
        assert_eq!(server.get("/").status, 502, "{version}");
        assert_eq!(server.get("/alone").status, 502, "{version}");
    }
}

#[test]
fn each_handshake_but_the_first_resumes_a_session() {
    for version in ["TLSv1.2", "TLSv1.3"] {
        for (reuse, expected) in [("on", 5), ("off", 0)] {
            let server = front(
                "",
                &format!(
                    "proxy_ssl_protocols {version}; proxy_ssl_session_reuse {reuse};
                     location / {{ proxy_pass https://127.0.0.1:%%PORT2%%; proxy_set_header Connection close; }}"
                ),
                &[],
            );
            let texts: Vec<String> = (0..6).map(|_| server.get("/").text()).collect();
            let resumed = texts.iter().filter(|text| text.contains(" r ")).count();
            assert_eq!(resumed, expected, "{version} {reuse}: {texts:?}");
        }
    }
}
