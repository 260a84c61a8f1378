//! Debugging: `error_log ... debug`, `debug_connection`, `error_log memory:`, and changing levels in progress.
//!
//! Source: nginx documentation, "A debugging log".

use std::os::unix::fs::PermissionsExt;

use firstbyte_tests::client::request;
use firstbyte_tests::{Builder, Client, Server, Signal, peer, process, wait_until};

fn site(main: &str, events: &str) -> Builder {
    Server::whole(&format!(
        "%%USER%%
         daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info; {main}
         events {{ {events} }}
         http {{
             client_body_temp_path %%DIR%%/client_body_temp; access_log off; keepalive_requests 1000000;
             server {{
                 listen 127.0.0.1:%%PORT%%; listen unix:%%DIR%%/http.sock; server_name localhost;
                 root %%DIR%%/html; set_real_ip_from 192.0.2.1; allow all;
                 location / {{ }}
                 location /old/ {{ rewrite ^/old/(.*) /$1; }}
                 location ~ \\.php$ {{ return 404; }}
                 location = /large.bin {{ error_log %%DIR%%/busy.log error; }}
                 location /own/ {{ error_log %%DIR%%/own.log error; }}
             }}
         }}"
    ))
    .file("html/t.txt", "text")
    .zeros("html/large.bin", 64 << 20)
}

/// A debugging log beside the others.
const DEBUG: &str = "error_log %%DIR%%/debug.log debug;";

/// Asserts that the file has the texts in this order.
#[track_caller]
fn assert_in_order(log: &str, texts: &[&str]) {
    let mut rest = log;
    for text in texts {
        let found = rest.find(text);
        let at = found.unwrap_or_else(|| panic!("no {text:?} in what is left: {rest}\nof {log}"));
        rest = &rest[at + text.len()..];
    }
}

#[test]
fn every_step_of_a_request_is_logged_at_level_debug() {
    let server = site(DEBUG, "").start();
    let mut client = server.client();
    client.send(request("GET", "/old/t.txt?a=b%1b", &["X-Test: \u{e9}"]));
    assert_eq!(client.response().text(), "text");
    assert_eq!(client.get("/t.php").status, 404);
    drop(client);
    server.wait_for_text("debug.log", "http special response: 404, \"/t.php?\"");
    wait_until("the connection's end is logged", || {
        let log = server.dir().read("debug.log");
        let after = log.rsplit("set http keepalive handler").next();
        after.is_some_and(|after| after.contains("close http connection: "))
    });
    let log = server.dir().read("debug.log");
    assert_in_order(
        &log,
        &[
            " accept: 127.0.0.1:",
            "http process request line",
            "http request line: \"GET /old/t.txt?a=b%1b HTTP/1.1\"",
            "http header: \"Host: localhost\"",
            "http header: \"X-Test: ",
            "http header done",
            "rewrite phase: ",
            "test location: ",
            "using configuration \"/old/\"",
            "http cl:-1 max:1048576",
            "http script regex: \"^/old/(.*)\"",
            "[notice]",
            "\"^/old/(.*)\" matches \"/old/t.txt\", client: 127.0.0.1",
            "post rewrite phase",
            "uri changes: 11",
            "using configuration \"/\"",
            "generic phase: ",
            "access phase: ",
            "post access phase: ",
            "content phase: ",
            "http filename: \"",
            "HTTP/1.1 200 OK",
            "http finalize request: 0, \"/t.txt?a=b%1b\" a:1, c:",
            "set http keepalive handler",
            "http keepalive handler",
            "test location: ~ \"\\.php$\"",
            "http finalize request: 404, \"/t.php?\" a:1, c:1",
            "http special response: 404, \"/t.php?\"",
            "set http keepalive handler",
            "close http connection: ",
        ],
    );
    let debug = log.lines().find(|line| line.contains("http header done"));
    let debug = debug.expect("the line was found above");
    assert!(!debug.contains(", client: "), "{debug}");
    assert!(debug.contains("[debug]") && debug.contains("#") && debug.contains(": *"));
    if peer::is_firstbyte() {
        assert!(log.contains("http header: \"X-Test: \\xC3\\xA9\""), "{log}");
    }
    let other = server.error_log();
    assert!(!other.contains("[debug]"), "{other}");
}

#[test]
fn topics_choose_what_is_logged_for_debugging() {
    // In nginx the topics of one log decide for all of a connection.
    if !peer::is_firstbyte() {
        return;
    }
    let main = "error_log %%DIR%%/http.log debug_http; error_log %%DIR%%/event.log debug_event;
                error_log %%DIR%%/mail.log debug_mail;";
    let server = site(main, "").start();
    server.get("/t.txt");
    let http = server.wait_for_text("http.log", "http log handler");
    let event = server.wait_for_text("event.log", " accept: 127.0.0.1");
    assert!(!http.contains("accept: ") && http.contains("[notice]"));
    assert!(!event.contains("http header"), "{event}");
    let mail = server.dir().read("mail.log");
    assert!(
        !mail.contains("[debug]") && mail.contains("[notice]"),
        "{mail}"
    );
}

#[test]
fn debug_connection_logs_its_clients_everywhere_and_no_others() {
    let server = site(
        "error_log %%DIR%%/alert.log alert;",
        "debug_connection unix:;",
    )
    .start();
    server.get("/t.txt");
    server.get("/none.txt");
    server.wait_for_text("error.log", "html/none.txt\" failed");
    assert_eq!(server.dir().read("alert.log"), "");
    let mut client = Client::connect_unix(&server.path("http.sock"));
    assert_eq!(client.get("/own/none").status, 404);
    drop(client);
    let own = server.wait_for_text("own.log", "http log handler");
    assert!(
        own.contains("[debug]") && own.contains("client: unix:"),
        "{own}"
    );
    let alert = server.wait_for_text("alert.log", "accept: unix:");
    let of_it: Vec<&str> = alert.split(": *").skip(1).collect();
    let number = of_it[0].split(' ').next();
    assert!(of_it.iter().all(|line| line.split(' ').next() == number));
    if !peer::is_firstbyte() {
        return;
    }
    // A reload names other clients: open connections obey it at once.
    let mut client = server.client();
    client.get("/t.txt");
    server.rewrite_conf(|text| {
        text.replace("debug_connection unix:", "debug_connection 127.0.0.0/8")
    });
    server.signal(Signal::HUP);
    wait_until("the connection is debugged", || {
        client.get("/t.txt?after");
        let alert = server.dir().read("alert.log");
        alert.contains("http args: \"after\"")
    });
    let mut quiet = Client::connect_unix(&server.path("http.sock"));
    quiet.get("/t.txt?quiet");
    client.get("/t.txt?last");
    let alert = server.wait_for_text("alert.log", "http args: \"last\"");
    assert!(!alert.contains("http args: \"quiet\""));
}

#[test]
fn a_reload_changes_levels_for_open_connections_and_requests_under_way() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = site("", "").start();
    let mut idle = server.client();
    idle.get("/t.txt?before");
    let mut busy = server.client();
    busy.send(request("GET", "/large.bin", &[]));
    let head = busy.bytes(1000);
    assert!(head.starts_with(b"HTTP/1.1 200"));
    let mut own = server.client();
    own.get("/own/none");
    server.rewrite_conf(|text| {
        let text = text.replace("error.log info", "error.log debug");
        let text = text.replace("busy.log error", "busy.log debug");
        text.replace("own.log error", "own.log debug")
    });
    server.signal(Signal::HUP);
    wait_until("the next request of an open connection is debugged", || {
        idle.get("/t.txt?after");
        server.error_log().contains("http args: \"after\"")
    });
    own.get("/own/none?after");
    server.wait_for_text("own.log", "using configuration \"/own/\"");
    assert!(!server.error_log().contains("http args: \"before\""));
    busy.bytes((64 << 20) - 1000);
    let log = server.wait_for_text("busy.log", "http log handler");
    assert!(log.contains(" send: fd:"), "{log}");
    assert!(!log.contains("http filename"), "{log}");
    assert_eq!(server.workers().len(), 1, "the same worker goes on");

    server.rewrite_conf(|text| text.replace("error.log debug", "error.log warn"));
    server.signal(Signal::HUP);
    wait_until("it is quiet again", || {
        let before = server.error_log().len();
        idle.get("/t.txt?quiet");
        own.get("/t.txt?quiet");
        server.error_log().len() == before
    });
}

#[test]
fn a_log_in_memory_keeps_the_last_lines_and_is_saved_on_usr1() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = site("error_log memory:32k debug;", "").start();
    let mut client = server.client();
    for n in 0..200 {
        client.get(&format!("/t.txt?n{n}n"));
    }
    server.signal(Signal::USR1);
    server.wait_for_text("error.log", "logs in memory were saved to \"");
    let name = "error.log.memory";
    let text = server.wait_for_text(name, "http args: \"n199n\"");
    assert!(text.starts_with("MEMLOG 32768 "), "{text}");
    assert!(text.len() <= 32 << 10 && text.len() > 30 << 10);
    assert!(!text.contains("\"n0n\"") && text.contains("\"n198n\""));
    let numbers = text
        .lines()
        .filter_map(|line| line.split("http args: \"n").nth(1));
    let numbers: Vec<u32> = numbers
        .filter_map(|rest| rest.split('n').next()?.parse().ok())
        .collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    let mode = std::fs::metadata(server.path(name)).expect("it is there");
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    assert!(!server.error_log().contains("[debug]"));
    // Without a signal, the log can be read through the descriptor in /proc.
    let fds = format!("/proc/{}/fd", server.pid());
    let fds = std::fs::read_dir(fds).expect("the server is ours");
    let mut shown = fds.flatten().map(|entry| entry.path());
    let ring = shown.find(|path| {
        let target = std::fs::read_link(path).unwrap_or_default();
        target.to_string_lossy().contains("memfd:error_log")
    });
    let bytes = std::fs::read(ring.expect("the ring is there")).expect("it can be read");
    assert!(bytes.starts_with(b"MEMLOG 32768 "));
}

#[test]
fn a_log_in_memory_outlives_a_killed_worker() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = site("error_log memory:64k debug;", "")
        .allow("exited on signal 9")
        .start();
    server.get("/t.txt?last");
    let worker = server.workers()[0];
    assert!(process::signal(worker, Signal::KILL));
    let saved = server.wait_for_text("error.log.memory", "http args: \"last\"");
    assert!(saved.contains("http header done"), "{saved}");
    wait_until("another worker serves", || {
        server.workers().first().is_some_and(|pid| *pid != worker)
    });
    server.get("/t.txt?next");
    server.signal(Signal::USR1);
    let saved = server.wait_for_text("error.log.memory", "http args: \"next\"");
    assert!(!saved.contains("http args: \"last\""), "{saved}");
}
