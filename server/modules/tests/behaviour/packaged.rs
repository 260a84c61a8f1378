//! The packages' files for `include`: the parameters that applications get by them.

use crate::site::Site;

/// A request with a body and a target with all parts.
const POST: &str = "POST /app/a%20b?c=d HTTP/1.1\r\nHost: localhost:81\r\nContent-Type: text/x\r\n\
                    Content-Length: 2\r\n\r\nhi";

/// Returns the parameters of a request for an application, without the client's fields.
fn params_with(location: &str, request: &str) -> Vec<String> {
    let mut site = Site::server(&format!("location /app/ {{ {location} }}"));
    site.send(request);
    let sent = site.servers.sent().remove(0);
    let params = sent.params();
    let lines = params.lines().filter(|line| !line.starts_with("HTTP_"));
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Parameters in all of the files.
const COMMON: [&str; 11] = [
    "CONTENT_TYPE=text/x",
    "DOCUMENT_ROOT=/www",
    "QUERY_STRING=c=d",
    "REMOTE_ADDR=192.0.2.1",
    "REMOTE_PORT=4000",
    "REQUEST_METHOD=POST",
    "REQUEST_SCHEME=http",
    "REQUEST_URI=/app/a%20b?c=d",
    "SERVER_NAME=localhost",
    "SERVER_PORT=80",
    "SERVER_PROTOCOL=HTTP/1.1",
];

/// These with others, sorted.
fn common_and<'a>(others: &[&'a str]) -> Vec<&'a str> {
    let mut all = [&COMMON, others].concat();
    all.sort_unstable();
    all
}

const FASTCGI: [&str; 7] = [
    "CONTENT_LENGTH=2",
    "DOCUMENT_URI=/app/a b",
    "GATEWAY_INTERFACE=CGI/1.1",
    "REDIRECT_STATUS=200",
    "SCRIPT_NAME=/app/a b",
    "SERVER_ADDR=192.0.2.2",
    "SERVER_SOFTWARE=nginx/1.31.4",
];

#[test]
fn fastcgi_params_tell_all_but_the_script_which_fastcgi_conf_tells_too() {
    let params = include_str!("../../../../conf/fastcgi_params");
    let location = format!("{params} fastcgi_pass 127.0.0.1:9000;");
    assert_eq!(params_with(&location, POST), common_and(&FASTCGI));
    let conf = include_str!("../../../../conf/fastcgi.conf");
    let location = format!("{conf} fastcgi_pass 127.0.0.1:9000;");
    let with_script = [&FASTCGI[..], &["SCRIPT_FILENAME=/www/app/a b"]].concat();
    assert_eq!(params_with(&location, POST), common_and(&with_script));
}

#[test]
fn scgi_params_and_uwsgi_params_tell_what_their_protocols_know() {
    let params = include_str!("../../../../conf/scgi_params");
    let location = format!("{params} scgi_pass 127.0.0.1:9000;");
    let others = ["CONTENT_LENGTH=2", "DOCUMENT_URI=/app/a b", "SCGI=1"];
    assert_eq!(params_with(&location, POST), common_and(&others));
    let params = include_str!("../../../../conf/uwsgi_params");
    let location = format!("{params} uwsgi_pass 127.0.0.1:9000;");
    let others = ["CONTENT_LENGTH=2", "PATH_INFO=/app/a b"];
    assert_eq!(params_with(&location, POST), common_and(&others));
}

/// A site of PHP, with the snippet and its included files in their places.
fn php() -> Site {
    let conf = include_str!("../../../../conf/fastcgi.conf");
    let snippet = include_str!("../../../../conf/snippets/fastcgi-php.conf");
    assert!(snippet.contains("include fastcgi.conf;"));
    let snippet = snippet.replace("include fastcgi.conf;", conf);
    let server = format!(
        "index index.php; location ~ \\.php(/|$) {{ {snippet} fastcgi_pass 127.0.0.1:9000; }}"
    );
    Site::server(&server)
        .file("/www/a.php", "a script")
        .file("/www/upload.jpg", "no script")
        .file("/www/d/index.php", "the index")
}

#[test]
fn the_snippet_for_php_runs_scripts_that_exist() {
    let mut site = php();
    for (target, file, name, path) in [
        ("/a.php", "/www/a.php", "/a.php", ""),
        ("/a.php/b/c?x", "/www/a.php", "/a.php", "/b/c"),
        ("/a.php/b.php/c", "/www/a.php", "/a.php", "/b.php/c"),
        ("/d/", "/www/d/index.php", "/d/index.php", ""),
    ] {
        assert_eq!(site.get(target).status, 200, "{target}");
        let sent = site.servers.sent().remove(0);
        let param = |name: &str| sent.field(name);
        assert_eq!(param("SCRIPT_FILENAME"), file, "{target}");
        assert_eq!(param("SCRIPT_NAME"), name, "{target}");
        assert_eq!(param("PATH_INFO"), path, "{target}");
    }
}

#[test]
fn the_snippet_for_php_runs_nothing_else() {
    let mut site = php();
    for target in [
        "/missing.php",
        "/upload.jpg/x.php",
        "/missing.php/b",
        "/d.php/",
    ] {
        assert_eq!(site.get(target).status, 404, "{target}");
        assert!(site.servers.sent().is_empty(), "{target}");
    }
}
