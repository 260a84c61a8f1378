//! `experiment` over sockets: assignments over reloads, restarts and servers, every protocol, the kill switch, hosts of arms.

use std::fs;

use crate::tls_client::site as leaf_of;
use firstbyte_tests::h2::ENABLE_PUSH;
use firstbyte_tests::tls_pipe::tls_pipe;
use firstbyte_tests::{Builder, H2Client, Response, Server, Signal, SpdyClient, wait_until};

const KEY: &str = "0123456789abcdef0123456789abcdef";
const ARMS: &str = "arm a; arm b weight=2; arm c;";

/// A site with experiments in `http`.
fn site(experiments: &str, server: &str) -> Builder {
    let http = format!(
        "experiment_key key; {experiments}
         server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
             location = /arm {{ return 200 $experiment_x; }}
             location = /generation {{ return 200 g1; }} {server} }}"
    );
    Server::http(&http).file("key", KEY)
}

fn one() -> String {
    format!("experiment x {{ share 80%; {ARMS} }}")
}

/// The cookie set by a response, in the form of a request.
fn cookie(response: &Response) -> Option<String> {
    let [field] = response.header_values("Set-Cookie")[..] else {
        return None;
    };
    field.split(';').next().map(str::to_owned)
}

/// A user: the cookie, and the arm of the first response.
struct User {
    cookie: String,
    arm: String,
}

fn users(server: &Server) -> Vec<User> {
    let user = |_| {
        let first = server.get("/arm");
        User {
            cookie: cookie(&first).expect("the first response sets it"),
            arm: first.text(),
        }
    };
    let users: Vec<User> = (0..100).map(user).collect();
    for arm in ["a", "b", "c", ""] {
        assert!(
            users.iter().any(|user| user.arm == arm),
            "no user of {arm:?}"
        );
    }
    users
}

#[track_caller]
fn expect_same(server: &Server, users: &[User]) {
    let mut client = server.client();
    for user in users {
        let line = format!("Cookie: {}", user.cookie);
        let again = client.get_with("/arm", &[&line]);
        assert_eq!((again.text(), cookie(&again)), (user.arm.clone(), None));
    }
}

#[test]
fn arms_outlive_reloads_restarts_and_servers() {
    let mut server = site(&one(), "").start();
    let users = users(&server);
    expect_same(&server, &users);

    let before = format!("experiment w {{ {ARMS} }} ");
    server.rewrite_conf(|text| {
        let text = text.replace("experiment x", &format!("{before}experiment x"));
        text.replace("200 g1", "200 $experiment_w")
    });
    server.signal(Signal::HUP);
    wait_until("the new configuration answers", || {
        server.get("/generation").text() != "g1"
    });
    expect_same(&server, &users);

    server.signal(Signal::QUIT);
    assert_eq!(server.wait_for_exit(), 0);
    server.launch(false);
    expect_same(&server, &users);

    let other = site(&one(), "").start();
    expect_same(&other, &users);
    let stranger = site(&one(), "")
        .file("key", "another key of another fleet")
        .start();
    let line = format!("Cookie: {}", users[0].cookie);
    let forged = stranger.client().get_with("/arm", &[&line]);
    let new = cookie(&forged).expect("a cookie of another key is replaced");
    assert_ne!(new, users[0].cookie);
}

#[test]
fn a_share_that_grows_keeps_arms() {
    let server = site(&one(), "").start();
    let users = users(&server);
    server.rewrite_conf(|text| text.replace("80%", "100%").replace("200 g1", "200 g2"));
    server.signal(Signal::HUP);
    wait_until("the new configuration answers", || {
        server.get("/generation").text() == "g2"
    });
    let (inside, outside): (Vec<User>, Vec<User>) =
        users.into_iter().partition(|user| !user.arm.is_empty());
    expect_same(&server, &inside);
    for user in outside {
        let line = format!("Cookie: {}", user.cookie);
        assert_ne!(server.client().get_with("/arm", &[&line]).text(), "");
    }
}

#[test]
fn every_protocol_sets_the_cookie() {
    let leaf = leaf_of("localhost");
    let server = site(
        &format!("http2 on; {}", one().replace("80%", "100%")),
        "listen 127.0.0.1:%%PORT2%% ssl spdy; ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
         location = /page { http2_push /arm; return 200 $experiment_x; }",
    )
    .bytes("c.pem", leaf.certificate.as_bytes())
    .bytes("k.pem", leaf.key.as_bytes())
    .start();
    let plain = server.get("/arm");
    let plain = plain.header("Set-Cookie").expect("a cookie");
    assert!(
        plain.ends_with("; Max-Age=34560000; Path=/; HttpOnly; SameSite=Lax"),
        "{plain}"
    );

    let mut client = H2Client::connect(tls_pipe(server.port_number(2), "h2"));
    let first = client.fetch("/arm");
    let field = first.header("set-cookie").expect("a cookie");
    assert!(field.contains("; Secure; HttpOnly"), "{field}");
    assert_eq!(first.header("cache-control"), Some("private"));
    let value = field.split(';').next().unwrap_or_default();
    let stream = client.request("GET", "/arm", &[("cookie", value)], true);
    let again = client.reply(stream);
    assert_eq!(
        (again.header("set-cookie"), again.text()),
        (None, first.text())
    );

    // A pushed request has no cookies: its response must not replace the user's.
    client.setting(ENABLE_PUSH, 1).settle();
    let page = client.fetch("/page");
    assert!(page.header("set-cookie").is_some());
    client.until("the push ends", |client| client.so_far(2).ended);
    let pushed = client.reply(2);
    assert_eq!((pushed.status, pushed.header("set-cookie")), (200, None));

    let mut client = SpdyClient::connect(tls_pipe(server.port_number(2), "spdy/3.1"));
    let stream = client.get("/arm");
    let first = client.reply(stream);
    assert!(
        first
            .header("set-cookie")
            .is_some_and(|field| field.contains("; Secure"))
    );
}

#[test]
fn kill_switch_needs_no_reload() {
    let server = site(
        &format!("experiment x {{ kill_switch %%DIR%%/html/off; {ARMS} }}"),
        "",
    )
    .file("html/index.html", "")
    .start();
    let first = server.get("/arm");
    let line = format!("Cookie: {}", cookie(&first).expect("it is on"));
    let arm = || server.client().get_with("/arm", &[&line]).text();
    assert_eq!(arm(), first.text());
    fs::write(server.path("html/off"), "").expect("the directory is there");
    wait_until("the experiment is off", || arm().is_empty());
    assert_eq!(cookie(&server.get("/arm")), None);
    fs::remove_file(server.path("html/off")).expect("it was made above");
    wait_until("the experiment is on", || arm() == first.text());
    let log = server.error_log();
    assert!(log.contains("is on") && log.contains("is off"), "{log}");
}

/// The example of the documentation.
#[test]
fn pages_name_the_host_of_the_arm() {
    let http = "experiment_key key;
         experiment images { host static.test; arm control host=s1.test; arm fast host=s2.test; }
         server { listen 127.0.0.1:%%PORT%%; server_name www.test; root %%DIR%%/html;
             location / { sub_filter static.test $experiment_images_host; sub_filter_once off; } }
         server { listen 127.0.0.1:%%PORT%%; server_name static.test s0.test; root %%DIR%%/html; }
         server { listen 127.0.0.1:%%PORT%%; server_name s1.test; root %%DIR%%/html; }
         server { listen 127.0.0.1:%%PORT%%; server_name s2.test; root %%DIR%%/html; }";
    let server = Server::http(http)
        .file("key", KEY)
        .file(
            "html/index.html",
            "<img src=//static.test/a.png><img src=//static.test/b.png>",
        )
        .file("html/a.png", "a")
        .start();
    let page = server.client().get_with("/", &["Host: www.test"]);
    let text = page.text();
    let host = if text.contains("s1.test") {
        "s1.test"
    } else {
        "s2.test"
    };
    assert_eq!(
        text,
        format!("<img src=//{host}/a.png><img src=//{host}/b.png>")
    );
    assert!(cookie(&page).is_some());
    let file = server
        .client()
        .send(format!("GET /a.png HTTP/1.1\r\nHost: {host}\r\n\r\n"))
        .response();
    assert_eq!(file.header("Timing-Allow-Origin"), Some("*"));
    assert_eq!(file.header("Set-Cookie"), None);
}

#[test]
fn hundred_experiments_with_a_thousand_arms_load_and_serve() {
    let arms: String = (0..10).map(|n| format!("arm arm{n}; ")).collect();
    let block = |n: usize| format!("experiment e{n} {{ {arms} }}\n");
    let blocks: String = (0..100).map(block).collect();
    let blocks = format!("{blocks} experiment x {{ {arms} }}");
    let server = site(
        &blocks,
        "location = /three { return 200 $experiment_e0$experiment_e50$experiment_e99; }",
    )
    .start();
    let first = server.get("/three");
    assert!(cookie(&first).is_some());
    assert_eq!(first.text().matches("arm").count(), 3);
}
