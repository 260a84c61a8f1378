//! Files of `state`: servers changed by `api` are the same servers after they were stored and read again.
//!
//! Here a file is its text. Absent: writing it to a disk, which the driver does.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `state`.

use std::sync::Arc;

use serde_json::{Value, json};
use server_upstream::group::{Group, Groups};
use server_upstream::shared::SharedPeers;
use server_upstream::state_file::directive;

use crate::site::{Answer, Site};

const SERVERS: &str = "/api/9/http/upstreams/app/servers";

/// A site with a group whose file has this text.
fn site(state: &str) -> Site {
    Site::http_with(
        &conf("state /servers.conf;"),
        &[("/servers.conf", state.as_bytes())],
    )
}

fn conf(servers: &str) -> String {
    format!(
        "upstream app {{ zone app 64k; {servers} }}
         server {{ server_name localhost; location /api {{ api write=on; }} }}"
    )
}

fn call(site: &mut Site, method: &str, target: &str, body: &str) -> Answer {
    let length = body.len();
    site.send(&format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"
    ))
}

fn peers(site: &Site) -> &Arc<SharedPeers> {
    let mut groups = site.generation().main::<Groups>().iter();
    let group = groups.find(|group| *group.name == *b"app");
    group.and_then(Group::shared_peers).expect("it has a zone")
}

/// The text of the file after a change.
fn stored(site: &Site) -> String {
    let servers = peers(site).servers();
    let lines = servers
        .iter()
        .map(|server| [&*directive(server), b"\n"].concat());
    String::from_utf8(lines.collect::<Vec<_>>().concat()).expect("names are UTF-8")
}

/// The servers as the API shows them, without their ids.
fn servers(site: &mut Site) -> Vec<Value> {
    let answer = site.get(SERVERS);
    let mut all: Vec<Value> = serde_json::from_str(&answer.body).expect("a list");
    for server in &mut all {
        server.as_object_mut().expect("an object").remove("id");
    }
    all
}

/// Asserts that the stored servers are the same when they are read. Returns them as stored.
fn assert_same(site: &mut Site) -> String {
    let text = stored(site);
    let mut again = self::site(&text);
    assert_eq!(servers(&mut again), servers(site), "{text}");
    assert_eq!(stored(&again), text);
    text
}

fn add(site: &mut Site, body: &Value) -> Value {
    let added = call(site, "POST", SERVERS, &body.to_string());
    assert_eq!(added.status, 201, "{body}: {}", added.body);
    let added: Value = serde_json::from_str(&added.body).expect("an object");
    added["id"].clone()
}

fn change(site: &mut Site, id: &Value, body: &Value) {
    let changed = call(site, "PATCH", &format!("{SERVERS}/{id}"), &body.to_string());
    assert_eq!(changed.status, 200, "{body}: {}", changed.body);
}

#[test]
fn added_servers_are_the_same_after_a_restart() {
    let mut site = site("");
    let most = i64::MAX;
    let odd = "\"'\\ ;{}$#\r\n\t\u{7f}é${x}~";
    for body in [
        json!({"server": "192.0.2.7"}),
        json!({"server": "192.0.2.8:080", "weight": 2, "max_conns": 3, "max_fails": 0, "fail_timeout": "1m",
            "slow_start": "1500ms", "route": "r", "backup": true, "down": true}),
        json!({"server": "[2001:db8::7]", "weight": most, "max_conns": most, "max_fails": most}),
        json!({"server": "[2001:db8::8]:65535", "drain": true, "fail_timeout": 0, "slow_start": 0}),
        json!({"server": "unix:/run/a", "down": true, "drain": true, "route": odd}),
        json!({"server": format!("unix:/run/{odd}")}),
        json!({"server": "a.test"}),
        json!({"server": "a.test.:8080", "weight": 7}),
        json!({"server": "b.test", "service": "http", "backup": true}),
        json!({"server": "b.test", "service": "_http._tcp.x"}),
        json!({"server": format!("{odd}\u{0}:1")}),
    ] {
        add(&mut site, &body);
        assert_same(&mut site);
    }
    assert_eq!(servers(&mut site).len(), 11);
}

#[test]
fn changed_and_removed_servers_are_the_same_after_a_restart() {
    let mut site = site(
        "server 192.0.2.1 weight=2; server [2001:db8::1]:81 backup; server unix:/run/a; server a.test resolve;",
    );
    assert_same(&mut site);
    for (id, body) in [
        (0, json!({"server": "192.0.2.9:81"})),
        (0, json!({"server": "[2001:db8::9]"})),
        (1, json!({"down": true, "max_conns": 9, "route": "r"})),
        (1, json!({"drain": true})),
        (1, json!({"down": false, "route": ""})),
        (2, json!({"server": "unix:/run/b", "slow_start": 1})),
        (
            3,
            json!({"weight": 5, "fail_timeout": "1h", "max_fails": 3}),
        ),
    ] {
        change(&mut site, &json!(id), &body);
        assert_same(&mut site);
    }
    for left in [3, 2, 1, 0] {
        let removed = call(&mut site, "DELETE", &format!("{SERVERS}/{left}"), "");
        assert_eq!(removed.status, 200, "{}", removed.body);
        assert_same(&mut site);
        assert_eq!(servers(&mut site).len(), left);
    }
}

/// `two.test` has two addresses.
#[test]
fn a_name_with_several_addresses_is_not_multiplied() {
    let mut site = site("server two.test:81 max_fails=2;");
    let both = "server two.test:81 max_fails=2;\n";
    assert_eq!(
        (assert_same(&mut site).as_str(), servers(&mut site).len()),
        (both, 2)
    );
    let id = add(&mut site, &json!({"server": "192.0.2.9"}));
    let three = format!("{both}server 192.0.2.9;\n");
    assert_eq!(assert_same(&mut site), three);
    change(&mut site, &json!(0), &json!({"weight": 3}));
    assert_eq!(
        assert_same(&mut site),
        "server 192.0.2.1:81 weight=3 max_fails=2;\nserver [2001:db8::1]:81 max_fails=2;\nserver 192.0.2.9;\n"
    );
    change(&mut site, &json!(0), &json!({"weight": 1}));
    assert_eq!(assert_same(&mut site), three);
    for id in [json!(0), id] {
        let removed = call(&mut site, "DELETE", &format!("{SERVERS}/{id}"), "");
        assert_eq!(removed.status, 200, "{}", removed.body);
    }
    assert_eq!(
        assert_same(&mut site),
        "server [2001:db8::1]:81 max_fails=2;\n"
    );
}

/// A host name of some bytes.
fn host(bytes: usize) -> String {
    let byte = |n: usize| if n % 64 == 63 { '.' } else { 'a' };
    (0..bytes).map(byte).collect()
}

#[test]
fn names_have_the_same_limits_in_the_api_and_in_a_configuration() {
    for (bytes, is_fine) in [(252, true), (253, true), (254, false)] {
        let name = host(bytes);
        let mut site = site("");
        let added = call(
            &mut site,
            "POST",
            SERVERS,
            &json!({"server": name}).to_string(),
        );
        let line = format!("server {name} resolve;");
        if is_fine {
            assert_eq!(added.status, 201, "{bytes}");
            assert_eq!(assert_same(&mut site), line.clone() + "\n");
            continue;
        }
        assert!(
            added.body.contains("too long host name while parsing"),
            "{}",
            added.body
        );
        assert!(added.body.contains("UpstreamBadAddress"), "{}", added.body);
        assert!(servers(&mut site).is_empty());
        for line in [line, format!("server {name};")] {
            let refused = Site::refused(&conf(&line));
            let text = format!("too long host name in upstream \"{name}\"");
            assert!(refused.contains(&text), "{refused}");
        }
    }
    for (bytes, is_fine) in [(190, true), (191, true), (192, false)] {
        let service = host(bytes);
        let mut site = site("");
        let body = json!({"server": "a.test", "service": service}).to_string();
        let added = call(&mut site, "POST", SERVERS, &body);
        let line = format!("server a.test resolve service={service};");
        if is_fine {
            assert_eq!(added.status, 201, "{bytes}");
            assert_eq!(assert_same(&mut site), line + "\n");
            continue;
        }
        assert!(added.body.contains("UpstreamBadService"), "{}", added.body);
        let refused = Site::refused(&conf(&line));
        assert!(refused.contains("service is too long"), "{refused}");
    }
}
