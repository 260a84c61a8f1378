//! `freeze_manifest`: names that caches may keep for good, names that are stale, and all others.

use crate::site::Site;

const MANIFEST: &str = r#"{"version": 1, "compression": "gz=9", "files": {
    "css/style.css": {"path": "css/style.3f2a9c1b04de.css", "size": 3, "hash": "00", "type": "text/css",
        "encodings": {"gz": {"size": 2, "hash": "00"}}},
    "index.html": {"path": "index.html", "size": 4, "hash": "00", "type": "text/html"},
    "old.0123456789ab.js": {"path": "old.0123456789ab.js", "size": 2, "hash": "00", "type": "text/javascript",
        "encodings": {"gz": {"size": 1, "hash": "00"}}}}}"#;
const STYLE: &str = "/css/style.3f2a9c1b04de.css";
const FOR_EVER: &str = "public, max-age=31536000, immutable";

fn site(inner: &str) -> Site {
    let text = format!("server {{ server_name localhost; root /www; {inner} }}");
    Site::http_with(&text, &[("/m.json", MANIFEST.as_bytes())])
        .file("/www/css/style.3f2a9c1b04de.css", "a{}")
        .file("/www/css/style.3f2a9c1b04de.css.gz", "gz")
        .file("/www/css/style.ffffffffffff.css", "b{}")
        .file("/www/old.0123456789ab.js", "42")
        .file("/www/old.0123456789ab.js.gz", "1")
        .file("/www/index.html", "home")
}

fn frozen() -> Site {
    site("location / { freeze_manifest /m.json; }")
}

#[test]
fn names_of_the_manifest_are_for_ever() {
    let mut site = frozen();
    let answer = site.get(STYLE);
    assert_eq!((answer.status, answer.body.as_str()), (200, "a{}"));
    assert_eq!(answer.field("Cache-Control"), FOR_EVER);
    let part = site.get_with(STYLE, "Range: bytes=0-0\r\n");
    assert_eq!((part.status, part.field("Cache-Control")), (206, FOR_EVER));
    let same = format!("If-None-Match: {}\r\n", answer.field("ETag"));
    let same = site.get_with(STYLE, &same);
    assert_eq!((same.status, same.field("Cache-Control")), (304, FOR_EVER));
    let copy = site.get(&format!("{STYLE}.gz"));
    assert_eq!((copy.status, copy.field("Cache-Control")), (200, FOR_EVER));
    assert_eq!(
        site.get("/css/style.3f2a9c1b04de.css?v=1")
            .field("Cache-Control"),
        FOR_EVER
    );
}

#[test]
fn a_hash_that_is_not_known_is_not_looked_for() {
    let mut site = frozen();
    for stale in [
        "/css/style.ffffffffffff.css",
        "/gone.000000000000",
        "/css/style.ffffffffffff.css.br",
    ] {
        let said = site.logged(|site| {
            let answer = site.get(stale);
            assert_eq!(
                (answer.status, answer.field("Cache-Control")),
                (404, ""),
                "{stale}"
            );
        });
        assert!(!said.contains("No such file"), "{said}");
        site = frozen();
    }
    // One file of the list is enough for the check to come first.
    let mut tried =
        self::site("location / { freeze_manifest /m.json; try_files $uri /index.html; }");
    assert_eq!(tried.get("/css/style.ffffffffffff.css").status, 404);
    assert_eq!(tried.get("/gone.css").body, "home");
}

#[test]
fn other_names_are_served_as_ever() {
    let mut site = frozen();
    for (path, body) in [
        ("/index.html", "home"),
        ("/old.0123456789ab.js", "42"),
        ("/old.0123456789ab.js.gz", "1"),
    ] {
        let answer = site.get(path);
        assert_eq!((answer.status, answer.body.as_str()), (200, body));
        assert_eq!(answer.field("Cache-Control"), "");
    }
    assert_eq!(site.get("/gone.css").status, 404);
    // A known hash under another name is looked for and is not there.
    let missing = site.get("/other.3f2a9c1b04de.css");
    assert_eq!((missing.status, missing.field("Cache-Control")), (404, ""));
}

#[test]
fn it_holds_for_its_location_and_those_inside() {
    let mut site =
        site("location /css/ { freeze_manifest /m.json; location ~ css$ { } } location / { }");
    assert_eq!(site.get(STYLE).field("Cache-Control"), FOR_EVER);
    assert_eq!(site.get("/old.0123456789ab.js").status, 200);
    assert_eq!(site.get("/gone.ffffffffffff.js").status, 404);
    assert_eq!(site.get("/css/style.ffffffffffff.css").status, 404);
}

#[test]
fn it_replaces_what_expires_says() {
    let mut site = site("expires 1h; location / { freeze_manifest /m.json; }");
    let answer = site.get(STYLE);
    assert_eq!(answer.head.matches("Cache-Control").count(), 1);
    assert_eq!(
        (answer.field("Cache-Control"), answer.field("Expires")),
        (FOR_EVER, "")
    );
    assert_eq!(
        site.get("/index.html").field("Cache-Control"),
        "max-age=3600"
    );
}
