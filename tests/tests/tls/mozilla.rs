//! The unchanged configuration of Mozilla's generator for nginx, level "intermediate".
//!
//! Source: https://ssl-config.mozilla.org for nginx 1.27 and OpenSSL 3, guideline 5.7; its group of finite-field key
//! exchange is ffdhe2048 of RFC 7919. Only addresses and paths are filled in.

use crate::tls_client::{Tls, authority, client};
use firstbyte_tests::{Builder, Client, Server, run};

fn generated() -> Builder {
    let authority = authority("Authority");
    // A client certificate is enough, since its purpose is not checked here.
    let leaf = client("localhost", &authority);
    let chain = leaf.certificate + &authority.pem();
    Server::http(&CONF.replace("CIPHERS", &CIPHERS.join(":")))
        .bytes("chain.pem", chain.as_bytes())
        .bytes("key.pem", leaf.key.as_bytes())
        .bytes("ca.pem", authority.pem().as_bytes())
        .file("dhparam", FFDHE2048)
}

/// Settings that rustls lacks are logged, once each, and stop nothing.
#[test]
fn generated_configuration_is_sound() {
    let server = generated().written();
    let mut arguments = server.arguments();
    arguments.push("-t".to_owned());
    let outcome = run(arguments);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let warnings: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| line.contains("[warn]"))
        .collect();
    let expected = [
        "cipher suites that are not supported are ignored: DHE-RSA-AES128-GCM-SHA256, \
         DHE-RSA-AES256-GCM-SHA384, DHE-RSA-CHACHA20-POLY1305",
        "\"ssl_stapling\" ignored, no OCSP responder URL in the certificate",
        "\"ssl_dhparam\" ignored: ",
    ];
    assert_eq!(warnings.len(), expected.len(), "{warnings:#?}");
    for text in expected {
        let found = warnings.iter().any(|line| line.contains(text));
        assert!(found, "{text} in {warnings:#?}");
    }
}

#[test]
fn generated_configuration_serves() {
    let server = generated().start();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let client = Tls::of(version);
        for resumed in [false, true] {
            let answer = client.get(server.port(), "localhost", "/");
            assert_eq!(answer.status, 404);
            let header = "Strict-Transport-Security: max-age=63072000";
            assert!(answer.head.contains(header), "{}", answer.head);
            assert_eq!(answer.resumed, resumed, "{version:?}");
        }
    }
    let client = Tls::speaking(&[b"http/1.1"]);
    let answer = client.get(server.port(), "localhost", "/");
    assert_eq!(answer.alpn.as_deref(), Some(&b"http/1.1"[..]));
    let plain = Client::connect(server.port_number(2)).get("/way?there");
    assert_eq!(plain.status, 301);
    assert_eq!(
        plain.header("Location"),
        Some("https://localhost/way?there")
    );
}

const CONF: &str = r#"
    server {
        listen 127.0.0.1:%%PORT%% ssl;
        listen [::1]:%%PORT%% ssl;
        http2 on;
        ssl_certificate %%DIR%%/chain.pem;
        ssl_certificate_key %%DIR%%/key.pem;

        # HSTS (ngx_http_headers_module is required) (63072000 seconds)
        add_header Strict-Transport-Security "max-age=63072000" always;
    }

    # intermediate configuration
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_ecdh_curve X25519:prime256v1:secp384r1;
    ssl_ciphers CIPHERS;
    ssl_prefer_server_ciphers off;

    # see also ssl_session_ticket_key alternative to stateful session cache
    ssl_session_timeout 1d;
    ssl_session_cache shared:MozSSL:10m;  # about 40000 sessions
    ssl_session_tickets off;

    # curl https://ssl-config.mozilla.org/ffdhe2048.txt > /path/to/dhparam
    ssl_dhparam "%%DIR%%/dhparam";

    # OCSP stapling
    ssl_stapling on;
    ssl_stapling_verify on;

    # verify chain of trust of OCSP response using Root CA and Intermediate certs
    ssl_trusted_certificate %%DIR%%/ca.pem;

    # replace with the IP address of your resolver;
    # async 'resolver' is important for proper operation of OCSP stapling
    resolver 127.0.0.1;

    # HSTS
    server {
        listen 127.0.0.1:%%PORT2%% default_server;
        listen [::1]:%%PORT2%% default_server;

        return 301 https://$host$request_uri;
    }
"#;

/// The list is one line, too long for this file.
const CIPHERS: [&str; 9] = [
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "DHE-RSA-AES128-GCM-SHA256",
    "DHE-RSA-AES256-GCM-SHA384",
    "DHE-RSA-CHACHA20-POLY1305",
];

const FFDHE2048: &str = "-----BEGIN DH PARAMETERS-----
MIIBCAKCAQEA//////////+t+FRYortKmq/cViAnPTzx2LnFg84tNpWp4TZBFGQz
+8yTnc4kmz75fS/jY2MMddj2gbICrsRhetPfHtXV/WVhJDP1H18GbtCFY2VVPe0a
87VXE15/V8k1mE8McODmi3fipona8+/och3xWKE2rec1MKzKT0g6eXq8CrGCsyT7
YdEIqUuyyOP7uWrat2DX9GgdT0Kj3jlN9K5W7edjcrsZCwenyO4KbXCeAvzhzffi
7MA0BM0oNC9hkXL+nOmFg/+OTxIy7vKBg8P+OxtMb61zO7X8vC7CIAXFjvGDfRaD
ssbzSibBsu/6iGtCOGEoXJf//////////wIBAg==
-----END DH PARAMETERS-----
";
