//! Access to responses: names and passwords, delays, cookies that identify clients, links that expire.
//!
//! Source: nginx's documentation of ngx_http_auth_basic_module, of `auth_delay`, of ngx_http_userid_module and of
//! ngx_http_secure_link_module.

use std::time::{Duration, Instant};

use firstbyte_tests::{Builder, Server};

/// The lines of a user file.
const USERS: &str = "plain:{PLAIN}secret\n\
    md5:$apr1$saltsalt$yAAkm4libquA.ZWLHbSBq/\n\
    slow:$2y$11$abcdefghijklmnopqrstuuThisIsNoHashOfAnyPasswordxxxxxxx\n";
/// `plain:secret`, `md5:password`, `slow:x` and `nobody:x` in base64.
const PLAIN: &str = "Authorization: Basic cGxhaW46c2VjcmV0";
const MD5: &str = "Authorization: Basic bWQ1OnBhc3N3b3Jk";
const SLOW: &str = "Authorization: Basic c2xvdzp4";
const NOBODY: &str = "Authorization: Basic bm9ib2R5Ong=";

/// A busy machine is late for reasons of its own, and now and then a wait is cut short by another: `IN_A_ROW` measurements
/// in a row must be good, of `ATTEMPTS` at most.
const IN_A_ROW: usize = 3;
const ATTEMPTS: usize = 15;

fn site(locations: &str) -> Builder {
    let text = format!(
        "server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; auth_basic \"closed site\";
                   auth_basic_user_file users; {locations} }}"
    );
    Server::http(&text)
        .file("html/t.txt", "text")
        .file("users", USERS)
}

#[test]
fn a_password_opens_what_is_closed() {
    let server = site("").start();
    let mut client = server.client();
    let answer = client.get("/t.txt");
    assert_eq!(answer.status, 401);
    let challenge = answer.header("WWW-Authenticate");
    assert_eq!(challenge, Some("Basic realm=\"closed site\""));
    assert_eq!(client.get_with("/t.txt", &[NOBODY]).status, 401);
    for line in [PLAIN, MD5, MD5] {
        let answer = client.get_with("/t.txt", &[line]);
        assert_eq!((answer.status, answer.text().as_str()), (200, "text"));
    }
}

#[test]
fn a_change_of_the_user_file_counts_for_the_next_request() {
    let server = site("").start();
    let mut client = server.client();
    for _ in 0..3 {
        assert_eq!(client.get_with("/t.txt", &[MD5]).status, 200);
        assert_eq!(client.get_with("/t.txt", &[PLAIN]).status, 200);
        server.dir().write("users", "plain:{PLAIN}other\n");
        assert_eq!(client.get_with("/t.txt", &[MD5]).status, 401);
        assert_eq!(client.get_with("/t.txt", &[PLAIN]).status, 401);
        server.dir().write("users", USERS);
    }
    std::fs::remove_file(server.path("users")).expect("the file is there");
    assert_eq!(client.get_with("/t.txt", &[PLAIN]).status, 403);
}

#[test]
fn auth_delay_does_not_tell_how_long_a_password_took() {
    let server = site("location /late { auth_delay 500ms; }").start();
    let mut client = server.client();
    let mut time = |target: &str| {
        let start = Instant::now();
        assert_eq!(client.get_with(target, &[SLOW]).status, 401);
        start.elapsed()
    };
    // The clock of a server counts whole milliseconds.
    let delay = Duration::from_millis(499);
    let mut seen = Vec::new();
    let mut in_a_row = 0;
    while in_a_row < IN_A_ROW {
        assert!(
            seen.len() < ATTEMPTS,
            "the hash alone and with the delay: {seen:?}"
        );
        let (hash, late) = (time("/"), time("/late"));
        assert!(late >= delay, "{late:?}");
        seen.push((hash, late));
        // If the delay began after the hash, the two times would add up.
        in_a_row = if late < delay.max(hash) + hash / 2 {
            in_a_row + 1
        } else {
            0
        };
    }
}

#[test]
fn who_leaves_during_the_delay_is_logged_as_gone() {
    let server = site("auth_delay 1h; access_log %%DIR%%/a.log;").start();
    let mut client = server.client();
    client.send("GET /t.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    server.wait_for_text("error.log", "delaying unauthorized request");
    drop(client);
    let log = server.wait_for_text("a.log", "GET /t.txt");
    assert!(log.contains("\" 499 0 "), "{log}");
}

#[test]
fn a_client_is_known_by_its_cookie() {
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; userid on; add_header X-Got $uid_got; add_header X-Set $uid_set;
                  location / { return 200 ok; } }",
    )
    .start();
    let mut client = server.client();
    let answer = client.get("/");
    let cookie = answer.header("Set-Cookie").expect("a new client gets one");
    let value = cookie.split(';').next().unwrap_or_default();
    let set = answer.header("X-Set").map(str::to_owned);
    assert!(set.is_some_and(|set| set.starts_with("uid=0100007F")));
    let again = client.get_with("/", &[&format!("Cookie: {value}")]);
    assert_eq!(again.header("X-Got"), answer.header("X-Set"));
    assert_eq!(again.header("Set-Cookie"), None);
}

#[test]
fn an_address_that_is_not_named_is_in_the_identifier() {
    let server = Server::http(
        "server { listen %%PORT%%; userid on; add_header X-Set $uid_set; location / { return 200 ok; } }",
    )
    .start();
    let answer = server.get("/");
    let set = answer.header("X-Set").unwrap_or_default();
    assert!(set.starts_with("uid=0100007F"), "{set}");
}
