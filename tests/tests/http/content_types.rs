//! The `Content-Type` of an application is passed on unchanged, and lists of types are matched as in nginx.
//!
//! Sources: nginx documentation, `charset`, `charset_types`, `override_charset`, `gzip_types`, `sub_filter_types`,
//! `ssi_types`; nginx 1.31.4, its responses; RFC 9110 section 8.3.

use firstbyte_tests::backend::{Backend, Step, answer, send};
use firstbyte_tests::fastcgi;
use firstbyte_tests::{H2Client, Server, peer};

/// A type, whether a list with `text/html` contains it, and the type sent with `charset koi8-r`.
const TYPES: [(&str, bool, &str); 14] = [
    ("text/html", true, "text/html; charset=koi8-r"),
    ("TEXT/html", true, "TEXT/html; charset=koi8-r"),
    ("text/html;charset=UTF-8", true, "text/html;charset=UTF-8"),
    ("text/html; CHARSET=utf-8", true, "text/html; CHARSET=utf-8"),
    (
        "text/html; charset=\"utf-8\"",
        true,
        "text/html; charset=\"utf-8\"",
    ),
    ("text/html;charset=koi8-r", true, "text/html;charset=koi8-r"),
    (
        "text/html; charset=utf-8; v=1",
        true,
        "text/html; charset=utf-8; v=1",
    ),
    ("text/html; charset=", true, "text/html; charset="),
    ("text/html;", false, "text/html;"),
    ("text/html; a=b", false, "text/html; a=b"),
    (
        "text/html; a=b; charset=c",
        false,
        "text/html; a=b; charset=c",
    ),
    ("text/html ;charset=x", false, "text/html ;charset=x"),
    (
        "application/json;profile=\"x;charset=y\"",
        false,
        "application/json;profile=\"x;charset=y\"",
    ),
    ("application/json", false, "application/json"),
];

/// The type with the number at the end of a target.
fn type_of(target: &str) -> &'static str {
    let number = target
        .rsplit('/')
        .next()
        .and_then(|number| number.parse().ok());
    TYPES[number.unwrap_or(0_usize)].0
}

fn behind() -> Backend {
    Backend::answering(|r| {
        let kind = format!("Content-Type: {}", type_of(r.target()));
        answer("200 OK", &[&kind], "abc".repeat(100))
    })
}

fn site(backend: &Backend, locations: &str) -> Server {
    Server::http(&format!(
        "proxy_http_version 1.1;
         server {{ listen 127.0.0.1:%%PORT%%; http2 on; {} }}",
        locations.replace("PASS", &format!("proxy_pass http://{};", backend.name()))
    ))
    .start()
}

#[test]
fn a_type_goes_out_as_it_came() {
    let backend = behind();
    let server = site(
        &backend,
        "location /plain { PASS } location /ssi { PASS ssi on; } location /sub { PASS sub_filter abc xyz; }
         location /gzip { PASS gzip on; }",
    );
    let mut http2 = H2Client::connect(server.port());
    for (number, (kind, ..)) in TYPES.iter().enumerate() {
        for place in ["plain", "ssi", "sub", "gzip"] {
            let path = format!("/{place}/{number}");
            let answer = server.client().get_with(&path, &["Accept-Encoding: gzip"]);
            assert_eq!(answer.header("Content-Type"), Some(*kind), "{path}");
            let reply = http2.fetch(&path);
            assert_eq!(
                reply.header("content-type"),
                Some(*kind),
                "{path} over HTTP/2"
            );
        }
    }
}

#[test]
fn types_of_applications_go_out_as_they_came() {
    let head = |number: usize| {
        format!(
            "Content-Type: {}\r\nContent-Length: 2\r\n\r\nok",
            TYPES[number].0
        )
    };
    for (number, (kind, ..)) in TYPES.iter().enumerate() {
        let cgi = head(number);
        let records = cgi.clone();
        let fastcgi = Backend::scripted(move |_| {
            vec![
                fastcgi::request(),
                fastcgi::stdout(&records),
                fastcgi::end(),
                Step::Close,
            ]
        });
        let (for_scgi, for_uwsgi) = (cgi.clone(), format!("HTTP/1.1 200 OK\r\n{cgi}"));
        let scgi = Backend::scripted(move |_| {
            vec![
                Step::Until(b",".to_vec()),
                send(&for_scgi),
                Step::HalfClose,
                Step::Hold,
            ]
        });
        let uwsgi = Backend::scripted(move |_| {
            vec![Step::Read(4), send(&for_uwsgi), Step::HalfClose, Step::Hold]
        });
        let server = Server::http(&format!(
            "server {{ listen 127.0.0.1:%%PORT%%;
                 location /fastcgi {{ fastcgi_pass {}; fastcgi_param A b; }}
                 location /scgi {{ scgi_pass {}; scgi_param A b; }}
                 location /uwsgi {{ uwsgi_pass {}; uwsgi_param A b; }} }}",
            fastcgi.name(),
            scgi.name(),
            uwsgi.name()
        ))
        .start();
        for path in ["/fastcgi", "/scgi", "/uwsgi"] {
            assert_eq!(
                server.get(path).header("Content-Type"),
                Some(*kind),
                "{path}"
            );
        }
    }
}

#[test]
fn a_charset_is_added_to_types_without_parameters() {
    let backend = behind();
    let server = site(
        &backend,
        "charset koi8-r; location /plain { PASS } location /override { PASS override_charset on; }
         location /listed { PASS charset_types 'text/html; a=b'; }",
    );
    let mut http2 = H2Client::connect(server.port());
    for (number, (kind, _, named)) in TYPES.iter().enumerate() {
        let path = format!("/plain/{number}");
        assert_eq!(
            server.get(&path).header("Content-Type"),
            Some(*named),
            "{kind}"
        );
        let reply = http2.fetch(&path);
        assert_eq!(
            reply.header("content-type"),
            Some(*named),
            "{kind} over HTTP/2"
        );
    }
    let of = |place: &str, kind: &str| {
        let number = TYPES.iter().position(|(known, ..)| *known == kind);
        let path = format!("/{place}/{}", number.expect("it is in the list"));
        server.get(&path).header("Content-Type").map(str::to_owned)
    };
    let listed = of("listed", "text/html; a=b");
    assert_eq!(listed.as_deref(), Some("text/html; a=b; charset=koi8-r"));
    // The same charset replaces the text, as any other with a table does.
    let same = of("override", "text/html;charset=koi8-r");
    assert_eq!(same.as_deref(), Some("text/html; charset=koi8-r"));
}

#[test]
fn lists_of_types_compare_all_but_the_charset() {
    let backend = behind();
    let mut codings = vec![("gzip", "gzip")];
    if peer::is_firstbyte() {
        codings.extend([("brotli", "br"), ("zstd", "zstd")]);
    }
    let place = |(name, _): &(&str, &str)| format!("location /{name} {{ PASS {name} on; }} ");
    let locations: String = codings.iter().map(place).collect();
    let server = site(
        &backend,
        &(locations + "location /sub { PASS sub_filter abc xyz; }"),
    );
    for (number, (kind, is_listed, _)) in TYPES.iter().enumerate() {
        for (place, coding) in &codings {
            let path = format!("/{place}/{number}");
            let accept = format!("Accept-Encoding: {coding}");
            let answer = server.client().get_with(&path, &[&accept]);
            let expected = is_listed.then_some(*coding);
            assert_eq!(
                answer.header("Content-Encoding"),
                expected,
                "{kind} {coding}"
            );
        }
        let is_changed = server
            .get(&format!("/sub/{number}"))
            .text()
            .starts_with("xyz");
        assert_eq!(is_changed, *is_listed, "{kind}");
    }
}
