//! Methods of choosing a server in an `upstream` block: keys of requests, and retries.

use server_upstream::request::Failure;

use crate::site::Site;

/// A site that passes all requests to a group of three servers, with these directives in the group and in the server.
fn site(method: &str, server: &str) -> Site {
    Site::http(&format!(
        "upstream g {{ {method} server 127.0.0.1:8081; server 127.0.0.1:8082; server 127.0.0.1:8083; }}
         server {{ {server} location / {{ proxy_pass http://g; proxy_next_upstream error; }} }}"
    ))
}

/// The ports of the servers that requests have reached since the last call.
fn ports(site: &Site) -> String {
    let sent = site.servers.sent();
    let addrs = sent.iter().map(|sent| sent.route.addr.to_string());
    addrs
        .map(|addr| addr.replace("127.0.0.1:808", ""))
        .collect()
}

/// The ports that `GET` requests with these targets reach.
fn reached(site: &mut Site, targets: &[&str]) -> String {
    for target in targets {
        assert_eq!(site.get(target).status, 200, "{target}");
    }
    ports(site)
}

#[test]
fn a_key_of_variables_decides() {
    // As nginx 1.31.4 with servers of these names.
    for (method, expected) in [
        ("hash $arg_a;", HASHED),
        ("hash $arg_a consistent;", CONSISTENT),
    ] {
        let mut site = site(method, "");
        let targets: Vec<String> = (1..=20).map(|n| format!("/?a={n}")).collect();
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        assert_eq!(reached(&mut site, &targets), expected, "{method}");
        assert_eq!(reached(&mut site, &targets), expected, "{method}");
        assert_eq!(
            reached(&mut site, &["/", "/?a=", "/?b=1"]),
            "123",
            "{method}"
        );
    }
}

#[test]
fn a_request_keeps_its_key_over_attempts() {
    // The second attempt of the request would have another key.
    let mut site = site("hash $upstream_addr$arg_a consistent;", "");
    let once = reached(&mut site, &["/?a=1"]);
    site.servers.fail(Failure::Closed);
    let with_retry = reached(&mut site, &["/?a=1"]);
    assert_eq!(&with_retry[..1], once);
    assert_ne!(&with_retry[1..], once);
}

#[test]
fn clients_of_one_network_use_one_server() {
    let mut site = site("ip_hash;", "set_real_ip_from 192.0.2.0/24;");
    let mut from = |peer: &str| {
        site.come_from(peer);
        reached(&mut site, &["/a"; 2])
    };
    // As nginx 1.31.4 for the address in `X-Real-IP`.
    for (peer, expected) in NETWORKS {
        assert_eq!(from(peer), *expected, "{peer}");
    }
    site.come_from("192.0.2.1:1");
    for (network, expected) in [("10.1.2.3", "2"), ("127.0.0.2", "3"), ("::1", "3")] {
        site.get_with("/", &format!("X-Real-IP: {network}\r\n"));
        assert_eq!(ports(&site), expected, "{network}");
    }
}

#[test]
fn a_failed_server_is_not_chosen_by_any_method() {
    for method in [
        "hash $arg_a;",
        "hash $arg_a consistent;",
        "ip_hash;",
        "least_conn;",
        "least_time header;",
        "least_time last_byte inflight;",
        "random;",
        "random two;",
        "random two least_time=header;",
        "random two least_time=last_byte;",
    ] {
        let mut site = site(method, "");
        site.servers.fail(Failure::Closed);
        let tried = reached(&mut site, &["/?a=1"]);
        assert_eq!(tried.len(), 2, "{method}");
        let later = reached(&mut site, &["/?a=1"; 20]);
        assert_eq!(later.len(), 20, "{method}");
        assert!(!later.contains(&tried[..1]), "{method}: {tried} {later}");
    }
}

#[test]
fn backup_servers_are_used_last_where_they_are_allowed() {
    for method in ["least_conn;", "least_time header;"] {
        let http = format!(
            "upstream g {{ {method} server 127.0.0.1:8081; server 127.0.0.1:8082 backup; server 127.0.0.1:8083 backup; }}
             server {{ location / {{ proxy_pass http://g; }} }}"
        );
        let mut site = Site::http(&http);
        assert_eq!(reached(&mut site, &["/", "/"]), "11", "{method}");
        site.servers.fail(Failure::Closed);
        assert_eq!(reached(&mut site, &["/", "/", "/"]), "1232", "{method}");
    }
}

#[test]
fn a_backup_server_before_the_method_takes_turns_as_in_nginx() {
    for method in METHODS_WITHOUT_BACKUP {
        for zone in ["", "zone before_the_method 64k;"] {
            let http = format!(
                "upstream g {{ {zone} server 127.0.0.1:8081; server 127.0.0.1:8082;
                               server 127.0.0.1:8083 backup; server 127.0.0.1:8084 backup; {method} }}
                 server {{ location / {{ proxy_pass http://g; }} }}"
            );
            let mut site = Site::http(&http);
            site.servers.fail(Failure::Closed);
            site.servers.fail(Failure::Closed);
            let tried = reached(&mut site, &["/?a=1", "/?a=1", "/?a=1"]);
            assert!(tried.ends_with("343"), "{method} {zone}: {tried}");
        }
    }
}

#[test]
fn a_backup_server_behind_a_method_without_backup_servers_is_an_error_as_in_nginx() {
    for method in METHODS_WITHOUT_BACKUP {
        for zone in ["", "zone behind_the_method 64k;"] {
            let refused = Site::refused(&format!(
                "upstream g {{ {zone} {method} server 127.0.0.1:8081; server 127.0.0.1:8082 backup; }}"
            ));
            let expected = "balancing method does not support parameter \"backup\"";
            assert!(refused.contains(expected), "{method} {zone}: {refused}");
            // The last method counts at the server, and one that replaces it later keeps the server.
            Site::http(&format!(
                "upstream g {{ {zone} {method} least_conn; server 127.0.0.1:8081; server 127.0.0.1:8082 backup; {method} }}"
            ));
        }
    }
}

/// Directives of methods without backup servers.
const METHODS_WITHOUT_BACKUP: [&str; 6] = [
    "hash $arg_a;",
    "hash $arg_a consistent;",
    "ip_hash;",
    "random;",
    "random two;",
    "random two least_time=header;",
];
/// The servers of the keys 1 to 20.
const HASHED: &str = "23212113313133231223";
const CONSISTENT: &str = "13131312121121223112";
/// Clients, and their servers.
const NETWORKS: &[(&str, &str)] = &[
    ("127.0.0.2:5", "33"),
    ("127.0.0.255:6", "33"),
    ("10.1.2.3:5", "22"),
    ("192.0.2.7:5", "11"),
    ("[::1]:5", "33"),
    ("[2001:db8::5]:5", "11"),
    ("unix:", "22"),
];
