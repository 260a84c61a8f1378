//! `error_log ... json`: one JSON object a line, whatever a client sent.
//!
//! An addition to nginx (docs/differences.md). Source: RFC 8259; RFC 3339.

use firstbyte_tests::client::request;
use firstbyte_tests::syslog::Receiver;
use firstbyte_tests::{Builder, Server, peer, wait_until};
use serde_json::{Map, Value};

fn site(logs: &str) -> Builder {
    Server::http_with(
        &format!("error_log %%DIR%%/error.log info; {logs}"),
        "access_log off;
         server { listen 127.0.0.1:%%PORT%%; server_name localhost; root %%DIR%%/html; }",
    )
    .file("html/t.txt", "text")
}

/// The objects of the lines of a file; any line that is none fails the test.
#[track_caller]
fn objects(server: &Server, file: &str) -> Vec<Map<String, Value>> {
    let text = server.dir().read(file);
    let object = |line: &str| match serde_json::from_str(line) {
        Ok(Value::Object(object)) => object,
        other => panic!("{line:?} is no object: {other:?}"),
    };
    text.lines().map(object).collect()
}

#[track_caller]
fn about(server: &Server, file: &str, text: &str) -> Map<String, Value> {
    server.wait_for_text(file, text);
    let has = |object: &Map<String, Value>| {
        let message = object["message"].as_str();
        message.is_some_and(|message| message.contains(text))
    };
    let found = objects(server, file).into_iter().find(has);
    found.expect("the file has the text in a message")
}

#[test]
fn a_request_error_has_its_facts_as_members() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = site("error_log %%DIR%%/json.log json;").start();
    let head = ["Referer: http://r/?\"x\"\\"];
    let mut client = server.client();
    client.send(request("GET", "/none?a=\"b\"", &head));
    client.response();
    let object = about(&server, "json.log", "html/none");
    let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
    let message = text("message");
    let wanted = "html/none\" failed (2: No such file or directory)";
    assert!(message.starts_with("open() \"") && message.ends_with(wanted));
    assert_eq!(text("level"), "error");
    assert_eq!(text("client"), "127.0.0.1");
    assert_eq!(text("server"), "localhost");
    assert_eq!(text("request"), "GET /none?a=\"b\" HTTP/1.1");
    assert_eq!(text("host"), "localhost");
    assert_eq!(text("referrer"), "http://r/?\"x\"\\");
    let worker = server.workers()[0];
    assert_eq!(object["pid"].as_u64(), Some(u64::from(worker)));
    assert!(object["thread"].as_u64() >= object["pid"].as_u64());
    assert!(object["connection"].is_u64());
    let digit = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let time: String = text("time").chars().map(digit).collect();
    assert!(
        time == "0000-00-00T00:00:00.000+00:00" || time == "0000-00-00T00:00:00.000-00:00",
        "{time}"
    );
    let names: Vec<&String> = object.keys().collect();
    assert_eq!(names.len(), 11, "{names:?}");
}

#[test]
fn what_is_not_about_a_request_has_no_members_of_one() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = site("error_log %%DIR%%/json.log notice json;").start();
    let object = about(&server, "json.log", "start worker process");
    assert_eq!(object["pid"].as_u64(), Some(u64::from(server.pid())));
    for name in ["connection", "client", "server", "request", "host"] {
        assert!(!object.contains_key(name), "{name}");
    }
    server.get("/none");
    server.wait_for_text("error.log", "html/none");
    assert!(objects(&server, "json.log").len() > 2);
}

#[test]
fn every_line_is_an_object_whatever_a_client_sent() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = site("error_log %%DIR%%/json.log info json;").start();
    for byte in 0..=255_u8 {
        let mut head = format!("GET /none-%{byte:02x}-\"\\?").into_bytes();
        head.extend([byte, b' ', b'x', byte]);
        head.extend(b" HTTP/1.1\r\nHost: localhost\r\nReferer: \"\\");
        head.extend([byte, 0xf0, 0x9f, 0xa6, byte]);
        head.extend(b"\r\nConnection: close\r\n\r\n");
        let mut client = server.client();
        client.send(&head).finish_sending();
        client.rest();
    }
    let target = format!("/last?{}", "\u{e9}\"".repeat(2000));
    let mut client = server.client();
    client.send(request("GET", &target, &[]));
    client.response();
    about(&server, "json.log", "html/last");
    let objects = objects(&server, "json.log");
    let requests = objects.iter().filter(|o| o.contains_key("client")).count();
    assert!(requests >= 256, "{requests}");
    let text = server.dir().read("json.log");
    assert!(
        text.bytes()
            .all(|b| b == b'\n' || (0x20..0x7f).contains(&b))
    );
    let longest = text.lines().map(str::len).max().unwrap_or_default();
    assert!(longest < 9 << 10, "{longest}");
}

#[test]
fn a_syslog_server_and_standard_error_take_objects_too() {
    if !peer::is_firstbyte() {
        return;
    }
    let mut syslog = Receiver::udp();
    let to = format!("error_log syslog:server=127.0.0.1:{} json;", syslog.port());
    let server = site(&format!("{to} error_log stderr error json;")).start();
    server.get("/none");
    let message = syslog.wait_for("html/none");
    let (_, text) = message.split_once(" nginx: ").expect("a tag");
    let sent: Value = serde_json::from_str(text).expect("an object");
    assert_eq!(sent["request"], "GET /none HTTP/1.1");
    wait_until("standard error has it", || {
        server.dir().read("output").contains("html/none")
    });
    let line = server.dir().read("output");
    assert_eq!(line.trim_end(), text);
}

/// A byte that is not UTF-8 is written as `\xHH`, so that a file is found by its name.
#[test]
fn bytes_that_are_not_utf8_are_named() {
    let server = site("error_log %%DIR%%/e.json json;").start();
    server.get("/caf%e9%c3%a9%9b%1b");
    let object = about(&server, "e.json", "No such file");
    let path = server.dir().path().display();
    let text = format!(
        "open() \"{path}/html/caf\\xE9\u{e9}\\x9B\\x1B\" failed (2: No such file or directory)"
    );
    assert_eq!(object["message"], text);
    let mut client = server.client();
    let head = [&b"GET /none HTTP/1.1\r\nHost: localhost\r\nReferer: a\xe9\r\n\r\n"[..]].concat();
    client.send(head).response();
    let object = about(&server, "e.json", "html/none");
    assert_eq!(object["referrer"], "a\\xE9");
}
