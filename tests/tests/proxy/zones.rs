//! Groups with `zone`: state of servers that all threads share, and that reloads keep.
//!
//! Sources: nginx documentation, `ngx_http_upstream_module`, `zone`; docs/differences.md.

use firstbyte_tests::{Server, Signal, peer, wait_until};

/// A group with a dead server, which is left out for an hour after its first failure.
const GROUP: &str = "upstream app { zone app 64k; server 127.0.0.1:%%PORT2%% fail_timeout=1h; server 127.0.0.1:%%PORT3%%; }
     server { listen 127.0.0.1:%%PORT%%; add_header X-Tried $upstream_addr;
         location / { proxy_pass http://app; } location = /generation { return 200 g0; } }
     server { listen 127.0.0.1:%%PORT3%%; location / { return 200 alive; } }";

/// Number of 40 requests, each over a connection of its own, that tried two servers.
fn failures(server: &Server) -> usize {
    let tried = (0..40).map(|_| {
        let response = server.get("/");
        assert_eq!(response.text(), "alive");
        let tried = response.header("X-Tried").unwrap_or_default().to_owned();
        usize::from(tried.contains(','))
    });
    tried.sum()
}

fn reload(server: &Server, change: impl FnOnce(String) -> String) {
    server.rewrite_conf(|text| change(text).replace("200 g0;", "200 g1;"));
    server.signal(Signal::HUP);
    wait_until("the configuration is taken", || {
        server.get("/generation").text() == "g1"
    });
}

#[test]
fn a_failure_that_one_thread_meets_is_known_to_all() {
    let server = Server::http_with("worker_processes 4;", GROUP).start();
    assert_eq!(failures(&server), 1);
    assert_eq!(failures(&server), 0);
}

/// nginx begins anew.
#[test]
fn a_reload_keeps_failures_of_servers_that_stay() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http_with("worker_processes 4;", GROUP).start();
    assert_eq!(failures(&server), 1);
    reload(&server, |text| {
        text.replace("fail_timeout=1h", "fail_timeout=2h")
    });
    assert_eq!(failures(&server), 0);
}

#[test]
fn a_reload_that_fails_leaves_the_servers_in_use() {
    let server = Server::http_with("worker_processes 4;", GROUP)
        .allow("[emerg]")
        .start();
    assert_eq!(failures(&server), 1);
    let alive = format!("server 127.0.0.1:{};", server.port_number(3));
    let gone = format!("server 127.0.0.1:{} down;", server.port_number(3));
    let before = std::fs::read_to_string(server.path("nginx.conf")).expect("it is there");
    server.rewrite_conf(|text| text.replace(&alive, &gone) + "\nnonsense;\n");
    server.signal(Signal::HUP);
    server.wait_for_text("error.log", "unknown directive \"nonsense\"");
    assert_eq!(failures(&server), 0);
    server.rewrite_conf(|_| before);
    reload(&server, |text| text);
    assert_eq!(failures(&server), if peer::is_firstbyte() { 0 } else { 1 });
}

#[test]
fn servers_are_read_from_a_state_file() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(
        "upstream app { zone app 64k; state %%DIR%%/servers.conf; }
         server { listen 127.0.0.1:%%PORT%%; location / { proxy_pass http://app; }
             location = /generation { return 200 g0; } }
         server { listen 127.0.0.1:%%PORT2%%; location / { return 200 alive; } }",
    )
    .start();
    assert_eq!(server.get("/").status, 502, "there is no file so far");
    let line = server.expand("server 127.0.0.1:%%PORT2%% weight=2;\n");
    server.dir().write("servers.conf", line);
    reload(&server, |text| text);
    assert_eq!(server.get("/").text(), "alive");
}
