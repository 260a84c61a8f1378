//! Groups with `zone`: threads share the state of servers. It outlives reloads, and restarts with `state`.
//!
//! Sources: nginx documentation, `ngx_http_upstream_module`, `zone`, `state`; docs/differences.md.

use std::net::UdpSocket;

use firstbyte_tests::client::request;
use firstbyte_tests::dir::set_mode;
use firstbyte_tests::small_disk::on_small_disk;
use firstbyte_tests::{Response, Server, Signal, peer, process, wait_until};
use serde_json::{Value, json};

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

const SERVERS: &str = "/api/9/http/upstreams/app/servers";

/// A group with a file below this folder, and the API. Names are looked up at this port.
fn stored_group(folder: &str, dns: u16) -> String {
    format!(
        "upstream app {{ zone app 64k; state %%DIR%%/{folder}servers.conf; resolver 127.0.0.1:{dns}; }}
         server {{ listen 127.0.0.1:%%PORT%%; location / {{ proxy_pass http://app; }} location /api {{ api write=on; }} }}"
    )
}

fn call(server: &Server, method: &str, path: &str, body: &Value) -> Response {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let length = format!("Content-Length: {}", body.len());
    let response = server
        .client()
        .send(request(method, path, &[&length]) + &body)
        .response();
    assert!([200, 201].contains(&response.status), "{}", response.text());
    response
}

/// The servers of the group without their ids, and the ids.
fn servers(server: &Server) -> (Vec<Value>, Vec<Value>) {
    let list: Value = serde_json::from_slice(&server.get(SERVERS).body).expect("it is JSON");
    let mut list = list.as_array().expect("a list").clone();
    // Addresses of a host come when it was looked up.
    list.retain(|server| server.get("parent").is_none());
    let ids = list.iter_mut().map(|server| {
        let server = server.as_object_mut().expect("an object");
        server.remove("id").expect("it has an id")
    });
    let ids = ids.collect();
    (list, ids)
}

#[test]
fn changes_by_the_api_are_the_same_after_a_restart() {
    if !peer::is_firstbyte() {
        return;
    }
    // It answers no question, so names have no addresses.
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let dns = silent.local_addr().expect("it is bound").port();
    let mut server = Server::http(&stored_group("", dns))
        .allow("could not be resolved")
        .start();
    let change = |server: &Server, round: u64| {
        for body in [
            json!({"server": format!("127.0.0.1:{}", 1 + round), "weight": 2, "route": "a \"b\""}),
            json!({"server": format!("[::1]:{}", 1 + round), "backup": true, "max_conns": 9, "down": true}),
            json!({"server": format!("unix:/run/{round}"), "slow_start": "1500ms", "drain": true}),
            json!({"server": format!("a{round}.test:81"), "max_fails": 0, "fail_timeout": "1h"}),
            json!({"server": format!("b{round}.test"), "service": "http"}),
        ] {
            call(server, "POST", SERVERS, &body);
        }
        let ids = servers(server).1;
        let last = |n: usize| format!("{SERVERS}/{}", ids[ids.len() - n]);
        call(server, "PATCH", &last(1), &json!({"weight": 100 + round}));
        call(
            server,
            "PATCH",
            &last(3),
            &json!({"server": format!("unix:/tmp/{round}")}),
        );
        call(server, "DELETE", &last(5), &Value::Null);
    };
    for (round, end) in [Signal::KILL, Signal::TERM, Signal::QUIT]
        .into_iter()
        .enumerate()
    {
        // The worker writes the file, and is nobody if the tests run as root.
        set_mode(server.dir().path(), 0o777);
        change(&server, round as u64);
        let before = servers(&server).0;
        assert_eq!(before.len(), 4 * (round + 1));
        let workers = server.workers();
        if end == Signal::KILL {
            // Only an end without a chance loses changes that are not stored so far.
            wait_until("the changes are stored", || {
                let text = server.dir().read("servers.conf");
                text.contains("weight=100") && !text.contains("127.0.0.1:")
            });
        }
        server.signal(end);
        let status = server.wait_for_exit();
        assert_eq!(status, if end == Signal::KILL { -1 } else { 0 });
        for worker in &workers {
            process::signal(*worker, Signal::KILL);
        }
        wait_until("the workers have ended", || {
            !workers.iter().any(|worker| process::is_alive(*worker))
        });
        server.launch(false);
        assert_eq!(servers(&server).0, before, "{end:?}");
    }
}

#[test]
fn a_full_disk_leaves_the_old_servers_in_their_file() {
    if !peer::is_firstbyte() {
        return;
    }
    let Some(builder) = on_small_disk(Server::http(&stored_group("small/", 53)), 64) else {
        return;
    };
    let server = builder.start();
    // Its file system is another one.
    let inside = format!("/proc/{}/root", server.workers()[0]);
    let path = server.path("small/servers.conf");
    let path = std::path::Path::new(&inside).join(path.strip_prefix("/").expect("it is absolute"));
    let stored = || std::fs::read_to_string(&path).unwrap_or_default();
    let failure = "servers could not be stored in";
    let mut added = 0;
    while !server.error_log().contains(failure) {
        let body = json!({"server": format!("unix:/{added:0>90}"), "route": "r".repeat(32), "weight": 1_000_000});
        call(&server, "POST", SERVERS, &body);
        added += 1;
        assert!(added < 1000, "the disk is never full");
    }
    assert!(server.error_log().contains("(28: No space left on device)"));
    let whole = |text: &str| {
        let mut lines = text.split_inclusive('\n');
        lines.all(|line| line.starts_with("server ") && line.ends_with(";\n"))
    };
    let old = stored();
    assert!(whole(&old) && old.lines().count() < added, "{old}");
    // With less to store, the next change stores all.
    let ids = servers(&server).1;
    for id in ids.iter().take(20) {
        call(&server, "DELETE", &format!("{SERVERS}/{id}"), &Value::Null);
    }
    wait_until("the servers are stored", || {
        stored().lines().count() == added - 20
    });
    assert!(whole(&stored()));
}
