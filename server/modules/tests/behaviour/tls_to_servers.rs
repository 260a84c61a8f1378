//! `proxy_ssl_*`, `uwsgi_ssl_*`: policies and names of connections to servers, and errors of configurations.
//!
//! Source: nginx documentation, `ngx_http_proxy_module`, `ngx_http_uwsgi_module`.

use std::sync::Arc;

use server_upstream::route::{HandshakeConfig, Route, ServerTls};
use tls::ServerName;

use crate::disk::Disk;
use crate::site::Site;
use crate::tls_settings::pair;

/// Files with certificates and keys, beside the configuration.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let (certificate, key) = pair("client", &rcgen::PKCS_ECDSA_P256_SHA256);
    let (other, other_key) = pair("other", &rcgen::PKCS_ECDSA_P256_SHA256);
    [
        ("/etc/nginx/c.pem", certificate),
        ("/etc/nginx/k.pem", key),
        ("/etc/nginx/other.pem", other),
        ("/etc/nginx/other.key", other_key),
        ("/etc/nginx/junk.pem", "nothing\n".to_owned()),
    ]
    .map(|(path, text)| (path, text.into_bytes()))
    .into()
}

fn with_files<T>(use_them: impl FnOnce(&[(&str, &[u8])]) -> T) -> T {
    let files = files();
    let borrowed: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(path, bytes)| (*path, bytes.as_slice()))
        .collect();
    use_them(&borrowed)
}

fn site(inner: &str) -> Site {
    with_files(|files| Site::http_with(inner, files))
}

/// The route of a request to a path of a server with this content.
fn route(server: &str, path: &str) -> Route {
    let mut site = site(&format!("server {{ server_name localhost; {server} }}"));
    site.get(path);
    site.servers.sent().remove(0).route
}

fn refused(server: &str) -> String {
    with_files(|files| Site::refused_with(&format!("server {{ {server} }}"), files))
}

#[test]
fn scheme_of_the_url_decides_about_tls_and_the_port() {
    let server = "location / { proxy_pass https://127.0.0.2; } location /plain { proxy_pass http://127.0.0.2; }
        location /any { proxy_pass $arg_u; }
        location /app { uwsgi_pass suwsgi://127.0.0.2:3031; } location /alias { uwsgi_pass uwsgis://127.0.0.2:3031; }
        location /app-plain { uwsgi_pass 127.0.0.2:3031; } location /app-any { uwsgi_pass $arg_u; }";
    for (path, addr, is_secure) in [
        ("/", "127.0.0.2:443", true),
        ("/plain", "127.0.0.2:80", false),
        ("/any?u=https://127.0.0.3", "127.0.0.3:443", true),
        ("/any?u=HTTPS://127.0.0.3:1", "127.0.0.3:1", true),
        ("/any?u=http://127.0.0.3", "127.0.0.3:80", false),
        ("/app", "127.0.0.2:3031", true),
        ("/alias", "127.0.0.2:3031", true),
        ("/app-plain", "127.0.0.2:3031", false),
        ("/app-any?u=suwsgi://127.0.0.3:1", "127.0.0.3:1", true),
        ("/app-any?u=127.0.0.3:1", "127.0.0.3:1", false),
    ] {
        let route = route(server, path);
        assert_eq!(route.addr.to_string(), addr, "{path}");
        assert_eq!(route.tls.is_some(), is_secure, "{path}");
    }
}

#[test]
fn name_is_the_host_of_the_server_or_that_of_the_directive() {
    let name = |directives: &str, url: &str, path: &str| {
        let mut site = site(&format!(
            "upstream back.test {{ server 127.0.0.2; }}
             server {{ server_name localhost; {directives} location / {{ proxy_pass {url}; }} }}"
        ));
        site.get(path);
        let route = site.servers.sent().remove(0).route;
        let tls = route.tls.expect("the URL is https");
        match &tls.name {
            ServerName::DnsName(name) => name.as_ref().to_owned(),
            name => format!("{name:?}"),
        }
    };
    let sends = "proxy_ssl_server_name on;";
    let dns = |name: &str| name.to_owned();
    assert_eq!(name(sends, "https://back.test", "/"), dns("back.test"));
    let own = |value: &str| format!("{sends} proxy_ssl_name {value};");
    assert_eq!(
        name(&own("a.test:1"), "https://back.test", "/"),
        dns("a.test")
    );
    assert_eq!(
        name(&own("$arg_n"), "https://back.test", "/?n=b.test"),
        dns("b.test")
    );
    let unnamed = name("", "https://back.test", "/");
    assert_eq!(
        name("proxy_ssl_name a.test;", "https://back.test", "/"),
        unnamed
    );
    let address = name(sends, "https://[::1]:8443", "/");
    assert!(
        address.contains("IpAddress") && address != unnamed,
        "{address}"
    );
}

#[test]
fn names_that_no_server_can_have_are_errors() {
    let server = "location / { proxy_pass https://127.0.0.2; proxy_ssl_server_name on; proxy_ssl_name $arg_n; }
        location /v { proxy_pass https://127.0.0.2; proxy_ssl_name $arg_n;
          proxy_ssl_verify on; proxy_ssl_trusted_certificate c.pem; }";
    for (path, status, text) in [
        ("/?n=a..b", 500, "SSL_set_tlsext_host_name(\"a..b\") failed"),
        (
            "/v?n=a..b",
            502,
            "upstream SSL certificate does not match \"a..b\"",
        ),
        ("/v", 502, "upstream SSL certificate does not match \"\""),
    ] {
        let mut site = site(&format!("server {{ server_name localhost; {server} }}"));
        let log = site.logged(|site| assert_eq!(site.get(path).status, status, "{path}"));
        let whole = format!("{text} while SSL handshaking to upstream");
        assert!(log.contains(&whole), "{path}: {log}");
        assert!(log.contains("upstream: \"https://127.0.0.2:443/"), "{log}");
        assert!(site.servers.sent().is_empty());
    }
    let mut site = site(&format!("server {{ server_name localhost; {server} }}"));
    assert_eq!(site.get("/").status, 200, "an empty name is not sent");
}

#[test]
fn connections_are_exchangeable_if_policy_and_name_are_equal() {
    let http = |location: &str| {
        format!(
            "upstream g {{ server 127.0.0.2; keepalive 4; }}
             server {{ server_name localhost; location / {{ proxy_pass https://g; {location} }} }}"
        )
    };
    let of = |location: &str| {
        let mut site = site(&http(location));
        site.get("/");
        let route = site.servers.sent().remove(0).route;
        let tls = route.tls.expect("the URL is https");
        (
            tls.digest,
            route.pool.expect("the group keeps connections").id,
        )
    };
    let verify = "proxy_ssl_verify on; proxy_ssl_trusted_certificate c.pem;";
    let settings = [
        "",
        "proxy_ssl_protocols TLSv1.3;",
        "proxy_ssl_protocols TLSv1.2;",
        "proxy_ssl_ciphers ECDHE-RSA-AES128-GCM-SHA256;",
        "proxy_ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;",
        "proxy_ssl_conf_command Groups X25519;",
        "proxy_ssl_server_name on;",
        "proxy_ssl_session_reuse off;",
        verify,
        &format!("{verify} proxy_ssl_verify_depth 2;"),
        "proxy_ssl_verify on; proxy_ssl_trusted_certificate other.pem;",
        "proxy_ssl_certificate c.pem; proxy_ssl_certificate_key k.pem;",
        "proxy_ssl_certificate other.pem; proxy_ssl_certificate_key other.key;",
    ];
    // Certificates are made once, so each site has the others' digests.
    with_files(|files| {
        let of = |location: &str| {
            let mut site = Site::http_with(&http(location), files);
            site.get("/");
            let route = site.servers.sent().remove(0).route;
            let tls = route.tls.expect("the URL is https");
            (
                tls.digest,
                route.pool.expect("the group keeps connections").id,
            )
        };
        let all = settings.map(of);
        for (n, one) in all.iter().enumerate() {
            assert_eq!(*one, of(settings[n]), "{}", settings[n]);
            let others = all[..n].iter();
            let is_new = others
                .clone()
                .all(|other| one.0 != other.0 && one.1 != other.1);
            assert!(is_new, "{}", settings[n]);
        }
    });
    let named = |name: &str| of(&format!("proxy_ssl_server_name on; proxy_ssl_name {name};"));
    let (a, b) = (named("a.test"), named("b.test"));
    assert!(a.0 == b.0 && a.1 != b.1);
    assert_eq!(
        of("proxy_ssl_name a.test;"),
        of("proxy_ssl_name b.test;"),
        "it is not used"
    );
}

#[test]
fn locations_inherit_settings_and_set_their_own() {
    let server = "proxy_ssl_protocols TLSv1.3; proxy_ssl_conf_command Groups X25519;
        location /a { proxy_pass https://127.0.0.2; } location /b { proxy_pass https://127.0.0.2; }
        location /c { proxy_pass https://127.0.0.2; proxy_ssl_protocols TLSv1.2; }
        location /d { proxy_pass https://127.0.0.2; proxy_ssl_conf_command Options -Compression; }
        location /e { proxy_pass https://127.0.0.2; proxy_ssl_conf_command Groups X25519; }";
    let digest = |path: &str| route(server, path).tls.map(|tls| tls.digest);
    assert_eq!(digest("/a"), digest("/b"));
    assert_eq!(digest("/a"), digest("/e"));
    assert_ne!(digest("/a"), digest("/c"));
    assert_ne!(digest("/a"), digest("/d"), "commands replace those around");
}

/// The settings of connections for requests to a location with a certificate that its arguments name.
fn named_by_arguments(directives: &str, paths: &[&str]) -> Vec<Arc<ServerTls>> {
    let mut site = site(&format!(
        "server {{ server_name localhost; location / {{ proxy_pass https://127.0.0.2; {directives}
           proxy_ssl_certificate $arg_c; proxy_ssl_certificate_key $arg_k; }} }}"
    ));
    for path in paths {
        assert_eq!(site.get(path).status, 200, "{path}");
    }
    let sent = site.servers.sent();
    let tls = sent.into_iter().map(|sent| sent.route.tls);
    tls.map(|tls| tls.expect("the URL is https")).collect()
}

/// Loads the certificate for a handshake; "" or the error.
fn load(tls: &ServerTls, disk: &mut Disk, now_ms: u64) -> String {
    match &tls.config {
        HandshakeConfig::Loaded(config) => config.load(disk, now_ms).err().unwrap_or_default(),
        HandshakeConfig::Made(_) => panic!("it has no names"),
    }
}

fn disk() -> Disk {
    let mut disk = Disk::default();
    for (path, bytes) in files() {
        disk.add_descriptor(path, &bytes);
    }
    disk
}

#[test]
fn certificates_named_by_variables_are_loaded_by_handshakes() {
    let (c, k) = ("/etc/nginx/c.pem", "/etc/nginx/k.pem");
    let (other, other_key) = ("/etc/nginx/other.pem", "/etc/nginx/other.key");
    let path = |c: &str, k: &str| format!("/?c={c}&k={k}");
    // A request alone reads no file: there is none.
    let all = named_by_arguments(
        "",
        &[
            &path(c, k),
            &path(c, k),
            &path(other, other_key),
            "/",
            &path("/etc/nginx/absent.pem", k),
            &path(other, k),
        ],
    );
    let [one, again, two, none, absent, mixed] = &all[..] else {
        panic!("each request was sent");
    };
    assert_eq!(one, again);
    let mut digests = [one, two, none, absent, mixed]
        .map(|tls| tls.digest)
        .to_vec();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 5);
    assert!(matches!(none.config, HandshakeConfig::Made(_)));
    let disk = &mut disk();
    assert_eq!(load(one, disk, 0), "");
    assert_eq!(load(two, disk, 0), "");
    for (tls, text) in [
        (
            absent,
            "cannot load certificate \"/etc/nginx/absent.pem\": BIO_new_file() failed",
        ),
        (mixed, "SSL_use_PrivateKey(\"/etc/nginx/k.pem\") failed"),
    ] {
        let error = load(tls, disk, 0);
        assert!(error.contains(text), "{error}");
    }
    let reloaded = named_by_arguments("", &[&path(c, k)]);
    assert_ne!(
        reloaded[0], *one,
        "a new configuration reads the files anew"
    );
}

#[test]
fn certificates_for_servers_are_cached_while_they_are_valid() {
    let path = "/?c=/etc/nginx/c.pem&k=/etc/nginx/k.pem";
    let other = "/?c=/etc/nginx/other.pem&k=/etc/nginx/other.key";
    let cache = "proxy_ssl_certificate_cache max=4 inactive=100s valid=60s;";
    for (directives, later_ms, is_loaded) in [
        ("", 0, false),
        (cache, 0, true),
        (cache, 60_999, true),
        (cache, 61_000, false),
    ] {
        let tls = named_by_arguments(directives, &[path]);
        let disk = &mut disk();
        assert_eq!(load(&tls[0], disk, 0), "");
        disk.0.remove(&b"/etc/nginx/k.pem"[..]);
        let error = load(&tls[0], disk, later_ms);
        assert_eq!(
            error.is_empty(),
            is_loaded,
            "{directives} {later_ms} {error}"
        );
    }
    // A certificate and a key are two elements: at the limit, and one below.
    for (most, is_loaded) in [(4, true), (3, false)] {
        let tls = named_by_arguments(
            &format!("proxy_ssl_certificate_cache max={most};"),
            &[path, other],
        );
        let disk = &mut disk();
        for tls in &tls {
            assert_eq!(load(tls, disk, 0), "");
        }
        disk.0.remove(&b"/etc/nginx/c.pem"[..]);
        assert_eq!(load(&tls[0], disk, 0).is_empty(), is_loaded, "{most}");
    }
}

#[test]
fn files_are_read_only_if_tls_is_used() {
    let bad = "proxy_ssl_verify on; proxy_ssl_certificate absent.pem; proxy_ssl_certificate_key absent.pem;";
    site(&format!(
        "server {{ location / {{ proxy_pass http://127.0.0.2; {bad} }} }}"
    ));
    let unused = "proxy_ssl_trusted_certificate absent.pem; proxy_ssl_crl absent.pem; proxy_ssl_certificate_key absent;";
    site(&format!(
        "server {{ location / {{ proxy_pass https://127.0.0.2; {unused} }} }}"
    ));
}

#[test]
fn errors_in_settings_are_those_of_nginx() {
    for (prefix, pass) in [
        ("proxy_", "proxy_pass https://127.0.0.2;"),
        ("proxy_", "proxy_pass $scheme://127.0.0.2;"),
        ("uwsgi_", "uwsgi_pass suwsgi://127.0.0.2:1;"),
    ] {
        for (directives, text) in [
            ("P_verify on;", "no P_trusted_certificate for P_verify"),
            (
                "P_certificate c.pem;",
                "no \"P_certificate_key\" is defined for certificate \"c.pem\"",
            ),
            (
                "P_certificate c.pem; P_certificate_key other.key;",
                "SSL_CTX_use_PrivateKey(\"/etc/nginx/other.key\") failed",
            ),
            (
                "P_certificate junk.pem; P_certificate_key k.pem;",
                "cannot load certificate \"/etc/nginx/junk.pem\"",
            ),
            (
                "P_verify on; P_trusted_certificate absent.pem;",
                "cannot load certificate \"/etc/nginx/absent.pem\"",
            ),
            (
                "P_verify on; P_trusted_certificate c.pem; P_crl junk.pem;",
                "cannot load CRL \"/etc/nginx/junk.pem\"",
            ),
            (
                "P_ciphers NONE;",
                "SSL_CTX_set_cipher_list(\"NONE\") failed",
            ),
            (
                "P_conf_command Nothing 1;",
                "SSL_CONF_cmd(\"Nothing\", \"1\") failed",
            ),
            (
                "P_certificate_cache inactive=1s;",
                "\"P_certificate_cache\" must have the \"max\" parameter",
            ),
            ("P_verify on; P_verify on;", "is duplicate"),
        ] {
            let named = |text: &str| text.replace("P_", &format!("{prefix}ssl_"));
            let error = refused(&format!("location / {{ {pass} {} }}", named(directives)));
            assert!(error.contains(&named(text)), "{directives}: {error}");
        }
    }
}
