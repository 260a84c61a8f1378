//! Logs to syslog: the form of messages, UDP and UNIX-domain sockets, servers that are not there.
//!
//! Source: nginx documentation, "Logging to syslog"; RFC 3164, section 4.

use firstbyte_tests::port::Port;
use firstbyte_tests::syslog::Receiver;
use firstbyte_tests::{Builder, Server, Signal, peer, wait_until};

const SOCKET: &str = "log.sock";

/// A server whose http block logs by `logs`, with a file as additional error log.
fn site(main: &str, logs: &str, locations: &str) -> Builder {
    let text = format!(
        "log_format u '$uri'; access_log off; keepalive_requests 1000000; {logs}
         server {{ listen 127.0.0.1:%%PORT%%; server_name localhost; root %%DIR%%/html;
                   location / {{ return 200 ok; }} {locations} }}"
    );
    let main = format!("error_log %%DIR%%/error.log info; {main}");
    Server::http_with(&main, &text).file("html/t.txt", "text")
}

/// `Nov  6 08:49:37` with every digit as 0.
fn shape(text: &str) -> String {
    let digit = |c: char| if c.is_ascii_digit() { '0' } else { c };
    text.chars().map(digit).collect()
}

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.expect("a host has a name").trim().to_lowercase()
}

#[test]
fn an_access_log_line_is_a_message_of_rfc_3164() {
    let mut syslog = Receiver::udp();
    let to = format!("access_log syslog:server=127.0.0.1:{} u;", syslog.port());
    let server = site("", "", &format!("location /a {{ {to} return 200; }}")).start();
    server.get("/a%0a%1bb");
    let message = syslog.wait_for("/a");
    let rest = message.strip_prefix("<190>").expect("local7, info");
    let (time, rest) = rest.split_at("Nov  6 08:49:37".len());
    let day = shape(&time[4..6]);
    assert!(day == "00" || day == " 0", "{message}");
    assert_eq!(shape(&time[6..]), " 00:00:00", "{message}");
    assert_eq!(rest, format!(" {} nginx: /a\\x0A\\x1Bb", hostname()));
}

#[test]
fn facility_severity_tag_and_name_of_the_host_are_chosen() {
    let mut syslog = Receiver::udp();
    let log = |parameters: &str| format!("syslog:server=127.0.0.1:{}{parameters}", syslog.port());
    let server = site(
        "",
        "",
        &format!(
            "location /1 {{ access_log {} u; return 200; }}
             location /2 {{ access_log {} u; return 200; }}
             location /3 {{ error_log {}; }}
             location /4 {{ access_log {} u if=$arg_log; return 200; }}",
            log(",facility=user,severity=alert,tag=web_1"),
            log(",nohostname"),
            log(",facility=daemon,severity=debug"),
            log(",tag=some"),
        ),
    )
    .start();
    for path in ["/1", "/2", "/3", "/4", "/4?log=1"] {
        server.get(path);
    }
    let first = syslog.wait_for(": /1");
    assert!(first.starts_with("<9>") && first.ends_with(" web_1: /1"));
    let second = syslog.wait_for(": /2");
    assert_eq!(
        second.split_at("<190>Nov  6 08:49:37".len()).1,
        " nginx: /2"
    );
    let third = syslog.wait_for("[error]");
    assert!(third.starts_with("<27>"), "daemon, error: {third}");
    assert!(third.contains(" nginx: ") && third.contains("html/3\" failed (2: No such file"));
    syslog.wait_for("some: /4");
    let fourths = syslog.received().iter().filter(|m| m.contains("some: "));
    assert_eq!(fourths.count(), 1);
}

#[test]
fn every_process_logs_to_the_main_error_log() {
    let mut syslog = Receiver::udp();
    let main = format!(
        "error_log syslog:server=127.0.0.1:{} notice;",
        syslog.port()
    );
    let server = site(&main, "", "").start();
    let started = syslog.wait_for("start worker process");
    assert!(started.starts_with("<189>"), "local7, notice: {started}");
    assert!(started.contains(&format!("[notice] {}#", server.pid())));
    server.signal(Signal::HUP);
    syslog.wait_for("signal 1 (SIGHUP) received");
    server.get("/none.txt");
    server.stop();
    let worker = syslog.wait_for("gracefully shutting down");
    let in_file = |message: &str| message.split("nginx: ").nth(1).map(str::to_owned);
    assert!(in_file(&worker).is_some_and(|line| line.contains("[notice]")));
    syslog.wait_for("[notice]");
}

#[test]
fn a_socket_that_is_made_anew_is_found_again() {
    let server = site(
        "",
        "",
        "location /x { access_log syslog:server=unix:%%DIR%%/log.sock u; return 200; }",
    )
    .allow("connect() failed (2: No such file or directory)")
    .start();
    let mut client = server.client();
    assert_eq!(client.get("/x/lost").status, 200);
    if peer::is_firstbyte() {
        let log = server.wait_for_text("error.log", "while logging to syslog, server: unix:");
        let wanted = "connect() failed (2: No such file or directory)";
        assert!(log.contains("[alert]") && log.contains(wanted), "{log}");
    }
    for round in 0..3 {
        let mut syslog = Receiver::unix(&server.path(SOCKET));
        let path = format!("/x/{round}");
        assert_eq!(client.get(&path).status, 200);
        if peer::is_firstbyte() || round == 0 {
            syslog.wait_for(&path);
        } else {
            wait_until("nginx needs one message to notice", || {
                client.get(&path);
                !syslog.received().is_empty()
            });
        }
        drop(syslog);
        std::fs::remove_file(server.path(SOCKET)).expect("the socket's name is there");
        client.get("/x/nobody");
    }
}

#[test]
fn a_server_that_is_not_there_costs_no_request_and_is_told_of_once_a_second() {
    // Nobody else is given it before messages are received there.
    let reserved = Port::reserve();
    let port = reserved.number();
    let to = format!("syslog:server=127.0.0.1:{port}");
    let server = site(
        "",
        "",
        &format!("location /x {{ access_log {to} u; return 200; }}"),
    )
    .start();
    let mut client = server.client();
    let begun = std::time::Instant::now();
    for _ in 0..200 {
        assert_eq!(client.get("/x").status, 200);
    }
    let seconds = begun.elapsed().as_secs() as usize;
    let said = format!("while logging to syslog, server: 127.0.0.1:{port}");
    // An old nginx is silent about it.
    if peer::is_firstbyte() {
        let log = server.wait_for_text("error.log", &said);
        assert!(log.contains("[error]") && log.contains("send() failed (111: Connection refused)"));
        assert!(log.matches(&said).count() <= seconds + 1, "{log}");
    }
    let mut syslog = Receiver::on_port(port);
    wait_until("messages come again", || {
        client.get("/x");
        !syslog.received().is_empty()
    });
    if peer::is_firstbyte() {
        wait_until("the lost ones have been counted", || {
            client.get("/x");
            server.error_log().contains(", messages lost: ")
        });
    }
}

#[test]
fn a_server_that_does_not_listen_is_not_waited_for() {
    let receiver = std::sync::Mutex::new(None);
    let server = site(
        "",
        "",
        "location /x { access_log syslog:server=unix:%%DIR%%/log.sock u; return 200; }",
    )
    .prepare(|dir| {
        let made = Receiver::unix(&dir.join(SOCKET));
        *receiver.lock().expect("one thread") = Some(made);
    })
    .start();
    let mut client = server.client();
    for _ in 0..900 {
        assert_eq!(client.get("/x").status, 200);
    }
    if peer::is_firstbyte() {
        let log = server.wait_for_text("error.log", "while logging to syslog");
        assert!(log.contains("send() failed (11: Resource temporarily unavailable)"));
    }
}
