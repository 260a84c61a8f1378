//! WordPress of Debian on php-fpm and MariaDB, with its documented configuration for nginx.
//!
//! Needs a database, so it runs only if `WORDPRESS` is set, as by `make test-all`. Source: WordPress documentation,
//! "Nginx".

use std::path::Path;
use std::process::Command;

use firstbyte_tests::client::request;
use firstbyte_tests::dir::set_mode;
use firstbyte_tests::packaged::with_packaged;
use firstbyte_tests::php::{self, Listen};
use firstbyte_tests::programs::{Program, command};
use firstbyte_tests::{Client, Response, Server, peer, shop};

const DOCUMENTED: &str = "
    types { text/html html; text/css css; text/plain txt; application/javascript js; }
    upstream php { server %%PHP%%; }
    server {
        listen 127.0.0.1:%%PORT%%;
        server_name localhost;
        root %%DIR%%/site;
        index index.php;
        client_max_body_size 32m;
        location = /favicon.ico { log_not_found off; access_log off; }
        location = /robots.txt { allow all; log_not_found off; access_log off; }
        location / {
            try_files $uri $uri/ /index.php?$args;
        }
        location ~ \\.php$ {
            include fastcgi_params;
            fastcgi_intercept_errors on;
            fastcgi_pass php;
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
        }
        location ~* \\.(js|css|png|jpg|jpeg|gif|ico)$ {
            expires max;
            log_not_found off;
        }
        location = /generation { return 200 g0; }
    }";

/// Configuration of the site instead of `wp-config.php` of the package.
const SETTINGS: &str = "<?php
    define('DB_NAME', 'wordpress'); define('DB_USER', 'root'); define('DB_PASSWORD', '');
    define('DB_HOST', 'localhost:%%DIR%%/db.sock'); define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', '');
    define('AUTH_KEY', 'a'); define('SECURE_AUTH_KEY', 'b'); define('LOGGED_IN_KEY', 'c'); define('NONCE_KEY', 'd');
    define('AUTH_SALT', 'e'); define('SECURE_AUTH_SALT', 'f'); define('LOGGED_IN_SALT', 'g'); define('NONCE_SALT', 'h');
    define('WP_HTTP_BLOCK_EXTERNAL', true); define('DISABLE_WP_CRON', true); define('AUTOMATIC_UPDATER_DISABLED', true);
    $table_prefix = 'wp_';
    if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
    require_once ABSPATH . 'wp-settings.php';";

/// Debian's folder of WordPress.
const PACKAGE: &str = "/usr/share/wordpress";

#[test]
fn wordpress_is_installed_written_with_and_read() {
    if std::env::var_os("WORDPRESS").is_none() {
        return;
    }
    assert!(Path::new(PACKAGE).is_dir(), "wordpress is not installed");
    let conf = DOCUMENTED.replace("%%PHP%%", Listen::Unix.name());
    let server = Server::http_with("worker_processes 1;", &conf);
    let server = with_packaged(server, &["fastcgi_params"]).prepare(copy_site);
    let server = server.start();
    let settings = server.path("site/wp-config.php");
    std::fs::write(settings, server.expand(SETTINGS)).expect("the folder is the test's");
    let _database = database(&server);
    let _php = php::start(&server, Listen::Unix, 4, "").expect("php-fpm is installed");

    let mut browser = Browser::new(&server);
    install(&mut browser);
    log_in(&mut browser);
    let home = browser.get("/").text();
    assert!(home.contains("A site behind firstbyte"), "{home}");
    readable_links(&mut browser);
    shop::reload(&server, 1);
    media(&mut browser);
    let nonce = browser.get("/wp-admin/admin-ajax.php?action=rest-nonce");
    posts_over_rest(&mut browser, &nonce.text());
    static_files(&mut browser);
}

/// The package's files, of which some are links to those of other packages; uploads are PHP's to write.
fn copy_site(dir: &Path) {
    let mut copy = Command::new("cp");
    copy.arg("-rL").arg(PACKAGE).arg(dir.join("site"));
    // A link may lead to a package that is only recommended.
    let _ = copy.output().expect("cp runs");
    let uploads = dir.join("site/wp-content/uploads");
    std::fs::create_dir_all(&uploads).expect("the folder is the test's");
    set_mode(&uploads, 0o777);
    std::fs::create_dir(dir.join("sessions")).expect("the folder is the test's");
}

/// MariaDB on a socket, with an empty database.
fn database(server: &Server) -> Program {
    let at = |name: &str| server.path(name).display().to_string();
    let mut install = Command::new(command("mariadb-install-db").expect("mariadb-server is there"));
    install.args([
        "--no-defaults",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        &format!("--datadir={}", at("db")),
    ]);
    let done = install.output().expect("it runs");
    assert!(done.status.success(), "{done:?}");
    server.dir().write("db.sql", "CREATE DATABASE wordpress;\n");
    let mut daemon = Command::new(command("mariadbd").expect("mariadb-server is there"));
    daemon.args(["--no-defaults", "--skip-networking", "--skip-log-bin"]);
    for (option, name) in [
        ("datadir", "db"),
        ("socket", "db.sock"),
        ("init-file", "db.sql"),
    ] {
        daemon.arg(format!("--{option}={}", at(name)));
    }
    if peer::is_root() {
        daemon.arg("--user=root");
    }
    Program::start(server.dir(), "mariadbd", &mut daemon).listening(&server.path("db.sock"))
}

/// A connection, and the cookies that it has been given.
struct Browser {
    client: Client,
    cookies: Vec<String>,
}

impl Browser {
    fn new(server: &Server) -> Self {
        let cookies = Vec::new();
        let client = server.client();
        Self { client, cookies }
    }

    fn send(&mut self, method: &str, target: &str, lines: &[&str], body: &[u8]) -> Response {
        let cookies = format!("Cookie: {}", self.cookies.join("; "));
        let length = format!("Content-Length: {}", body.len());
        let head = request(method, target, &[&[&*cookies, &*length], lines].concat());
        self.client.send(head).send(body);
        let response = self.client.response();
        for line in response.header_values("Set-Cookie") {
            let pair = line.split(';').next().unwrap_or_default();
            let name = pair.split('=').next().unwrap_or_default();
            self.cookies
                .retain(|old| old.split('=').next() != Some(name));
            self.cookies.push(pair.to_owned());
        }
        response
    }

    fn get(&mut self, target: &str) -> Response {
        self.send("GET", target, &[], b"")
    }

    fn form(&mut self, target: &str, body: &str) -> Response {
        let kind = "Content-Type: application/x-www-form-urlencoded";
        self.send("POST", target, &[kind], body.as_bytes())
    }
}

fn install(browser: &mut Browser) {
    let first = browser.get("/");
    assert_eq!(first.status, 302);
    assert_eq!(
        first.header("Location"),
        Some("http://localhost/wp-admin/install.php")
    );
    let form = "weblog_title=A+site+behind+firstbyte&user_name=ada&admin_password=engine&admin_password2=engine\
                &pw_weak=1&admin_email=ada%40example.com&blog_public=0&language=";
    let done = browser.form("/wp-admin/install.php?step=2", form);
    assert!(done.text().contains("Success!"), "{}", done.text());
}

fn log_in(browser: &mut Browser) {
    assert_eq!(browser.get("/wp-admin/").status, 302, "nobody is logged in");
    assert_eq!(browser.get("/wp-login.php").status, 200);
    let form = "log=ada&pwd=engine&wp-submit=Log+In&redirect_to=%2Fwp-admin%2F&testcookie=1";
    let answer = browser.form("/wp-login.php", form);
    assert_eq!(answer.status, 302, "{}", answer.text());
    let page = browser.get("/wp-admin/");
    assert_eq!(page.status, 200);
    assert!(page.text().contains("Dashboard"));
    assert!(page.text().trim_end().ends_with("</html>"));
}

/// Names of posts in place of their numbers: the purpose of `try_files`.
fn readable_links(browser: &mut Browser) {
    let page = browser.get("/wp-admin/options-permalink.php").text();
    let nonce = between(&page, "name=\"_wpnonce\" value=\"", "\"");
    let form = format!(
        "_wpnonce={nonce}&selection=%2F%25postname%25%2F&permalink_structure=%2F%25postname%25%2F"
    );
    let saved = browser.form("/wp-admin/options-permalink.php", &form);
    assert!(matches!(saved.status, 200 | 302), "{}", saved.text());
    let post = browser.get("/hello-world/").text();
    assert!(post.contains("Welcome to WordPress"), "{post}");
    let missing = browser.get("/no-such-post/");
    assert_eq!(missing.status, 404);
    assert!(
        missing.text().contains("A site behind firstbyte"),
        "its own page"
    );
}

/// A file of 5 MB is uploaded by the form of the media library, and served as it was.
fn media(browser: &mut Browser) {
    let page = browser.get("/wp-admin/media-new.php").text();
    let nonce = between(&page, "\"_wpnonce\":\"", "\"").to_owned();
    let line = b"a line of the file that is uploaded\n";
    let file = line.repeat(5_000_000 / line.len());
    let mut body = Vec::new();
    for (name, value) in [
        ("name", "a.txt"),
        ("action", "upload-attachment"),
        ("_wpnonce", &*nonce),
    ] {
        let part =
            format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend(part.into_bytes());
    }
    body.extend(
        b"--edge\r\nContent-Disposition: form-data; name=\"async-upload\"; filename=\"a.txt\"\r\n",
    );
    body.extend(b"Content-Type: text/plain\r\n\r\n");
    body.extend(&file);
    body.extend(b"\r\n--edge--\r\n");
    let kind = "Content-Type: multipart/form-data; boundary=edge";
    let answer = browser.send("POST", "/wp-admin/async-upload.php", &[kind], &body);
    let answer = answer.text().replace("\\/", "/");
    let url = between(&answer, "\"url\":\"http://localhost", "\"").to_owned();
    let served = browser.get(&url);
    assert_eq!(served.header("Content-Type"), Some("text/plain"));
    assert!(
        served.body == file,
        "{} bytes of {}",
        served.body.len(),
        file.len()
    );
}

/// A post is made, changed and deleted as the editor does it.
fn posts_over_rest(browser: &mut Browser, nonce: &str) {
    let nonce = format!("X-WP-Nonce: {nonce}");
    let lines = [&*nonce, "Content-Type: application/json"];
    let post = br#"{"title":"The first byte","content":"does not wait","status":"publish"}"#;
    let made = browser.send("POST", "/wp-json/wp/v2/posts", &lines, post);
    assert_eq!(made.status, 201, "{}", made.text());
    let location = made.header("Location").expect("where it is").to_owned();
    let path = location
        .strip_prefix("http://localhost")
        .expect("on this site");
    assert!(
        browser
            .get("/the-first-byte/")
            .text()
            .contains("does not wait")
    );
    let changed = browser.send("PUT", path, &lines, br#"{"content":"never waits"}"#);
    assert_eq!(changed.status, 200, "{}", changed.text());
    assert!(
        browser
            .get("/the-first-byte/")
            .text()
            .contains("never waits")
    );
    let gone = browser.send("DELETE", &format!("{path}?force=true"), &lines, b"");
    assert_eq!(gone.status, 200, "{}", gone.text());
    assert_eq!(browser.get("/the-first-byte/").status, 404);
}

fn static_files(browser: &mut Browser) {
    let style = browser.get("/wp-includes/css/dashicons.min.css");
    assert_eq!(
        (style.status, style.header("Content-Type")),
        (200, Some("text/css"))
    );
    assert_eq!(style.header("Cache-Control"), Some("max-age=315360000"));
    assert_eq!(browser.get("/wp-includes/css/no-such.css").status, 404);
}

#[track_caller]
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let from = text
        .find(before)
        .unwrap_or_else(|| panic!("no {before} in {text}"));
    let rest = &text[from + before.len()..];
    &rest[..rest.find(after).expect("it ends")]
}
