//! Reloads that make an address wider or narrower: 127.0.0.1:80 becomes *:80, or the reverse. No request is lost.
//!
//! nginx refuses such a reload, since the kernel has both addresses bound at a time. It is not run here.
//! Source: nginx documentation, `listen`; docs/differences.md.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use firstbyte_tests::{Client, Server, Signal, peer, wait_until};

/// Clients of each address that connect anew for each request.
const CONNECTING: usize = 3;
/// Clients of each address that keep their connections.
const KEEPING: usize = 4;

/// The response to a request on a new connection.
fn answer(address: &str, port: u16) -> Option<String> {
    let mut client = Client::try_connect_to(address, port).ok()?;
    asked(&mut client)
}

fn asked(client: &mut Client) -> Option<String> {
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let response = client.try_response().ok().flatten()?;
    (response.status == 200).then(|| response.text())
}

fn has_ipv6() -> bool {
    let has = std::net::TcpListener::bind("[::1]:0").is_ok();
    if !has {
        eprintln!("skipped: this machine has no IPv6");
    }
    has
}

/// Lines of `listen` with the port of the test, before and after a reload.
struct Reload<'a> {
    from: &'a [&'a str],
    to: &'a [&'a str],
    /// Addresses that are served throughout.
    stay: &'a [&'a str],
    /// Addresses that are served only afterwards, and only before.
    new: &'a [&'a str],
    gone: &'a [&'a str],
}

fn listens(lines: &[&str]) -> String {
    lines
        .iter()
        .map(|line| format!("listen {};", line.replace('P', "%%PORT2%%")))
        .collect()
}

fn check(reload: &Reload<'_>) {
    check_with("worker_processes 2;", "", reload);
}

/// `main` is extended by `changes` at the reload, for which another worker may be needed.
fn check_with(main: &str, changes: &str, reload: &Reload<'_>) {
    if !peer::is_firstbyte() {
        return;
    }
    let text = format!(
        "keepalive_requests 1000000; server {{ listen 127.0.0.1:%%PORT%%; return 200 other; }}
         server {{ {} return 200 g1; }}",
        listens(reload.from)
    );
    let server = Server::http_with(main, &text).start();
    let port = server.port_number(2);
    let kept = |address: &&str| {
        let clients = (0..KEEPING).map(|_| Client::connect_to(address, port));
        clients.collect::<Vec<_>>()
    };
    let mut keeping: Vec<Client> = reload.stay.iter().flat_map(kept).collect();
    for client in &mut keeping {
        assert_eq!(asked(client).as_deref(), Some("g1"));
    }
    for address in reload.new {
        assert_eq!(answer(address, port), None, "{address} is not served yet");
    }
    let (stop, lost, done) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let connect = |address: &str| {
        while !stop.load(Ordering::Relaxed) {
            match answer(address, port).as_deref() {
                Some("g1" | "g2") => done.fetch_add(1, Ordering::Relaxed),
                _ => lost.fetch_add(1, Ordering::Relaxed),
            };
        }
    };
    let go_on = |count: u64| {
        let until = done.load(Ordering::Relaxed) + count;
        wait_until("the load goes on", || done.load(Ordering::Relaxed) >= until);
    };
    thread::scope(|scope| {
        for address in reload.stay {
            for _ in 0..CONNECTING {
                scope.spawn(|| connect(address));
            }
        }
        go_on(200);
        server.rewrite_conf(|text| {
            text.replace(&server.expand(&listens(reload.from)), &listens(reload.to))
                .replace("200 g1", "200 g2")
                .replace(main, &format!("{main} {changes}"))
        });
        server.signal(Signal::HUP);
        let all = reload.stay.iter().chain(reload.new);
        for address in all {
            wait_until("the new configuration answers", || {
                answer(address, port).as_deref() == Some("g2")
            });
        }
        go_on(500);
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(lost.load(Ordering::Relaxed), 0, "of the connecting clients");
    if changes.is_empty() {
        for client in &mut keeping {
            assert_eq!(asked(client).as_deref(), Some("g2"), "it is kept");
        }
    }
    for address in reload.gone {
        wait_until("the old address is closed", || {
            Client::try_connect_to(address, port).is_err()
        });
    }
    let log = server.error_log();
    assert!(!log.contains("failed ("), "{log}");
}

#[test]
fn an_address_becomes_the_wildcard() {
    check(&Reload {
        from: &["127.0.0.1:P"],
        to: &["P"],
        stay: &["127.0.0.1"],
        new: &["127.0.0.2"],
        gone: &[],
    });
}

#[test]
fn the_wildcard_becomes_an_address() {
    check(&Reload {
        from: &["P"],
        to: &["127.0.0.1:P"],
        stay: &["127.0.0.1"],
        new: &[],
        gone: &["127.0.0.2"],
    });
}

#[test]
fn two_addresses_become_the_wildcard_with_other_options() {
    check(&Reload {
        from: &["127.0.0.1:P deferred", "127.0.0.2:P reuseport"],
        to: &["P backlog=64 reuseport"],
        stay: &["127.0.0.1", "127.0.0.2"],
        new: &["127.0.0.3"],
        gone: &[],
    });
}

#[test]
fn the_wildcard_becomes_two_addresses() {
    check(&Reload {
        from: &["P"],
        to: &["127.0.0.1:P", "127.0.0.2:P"],
        stay: &["127.0.0.1", "127.0.0.2"],
        new: &[],
        gone: &["127.0.0.3"],
    });
}

#[test]
fn an_address_of_ipv6_becomes_the_wildcard_and_the_reverse() {
    if !has_ipv6() {
        return;
    }
    let (one, all) = (&["[::1]:P"], &["[::]:P"]);
    let stay = &["::1"];
    let wider = Reload {
        from: one,
        to: all,
        stay,
        new: &[],
        gone: &[],
    };
    check(&wider);
    let narrower = Reload {
        from: all,
        to: one,
        stay,
        new: &[],
        gone: &[],
    };
    check(&narrower);
}

#[test]
fn addresses_of_ipv4_become_a_wildcard_of_both_families_and_the_reverse() {
    if !has_ipv6() {
        return;
    }
    let both: &[&str] = &["[::]:P ipv6only=off"];
    for v4 in ["127.0.0.1:P", "P"] {
        check(&Reload {
            from: &[v4],
            to: both,
            stay: &["127.0.0.1"],
            new: &["::1"],
            gone: &[],
        });
        check(&Reload {
            from: both,
            to: &[v4],
            stay: &["127.0.0.1"],
            new: &[],
            gone: &["::1"],
        });
    }
}

#[test]
fn ipv6only_changes() {
    if !has_ipv6() {
        return;
    }
    let (both, apart): (&[&str], &[&str]) = (&["[::]:P ipv6only=off"], &["[::]:P", "P"]);
    let stay = &["127.0.0.1", "::1"];
    check(&Reload {
        from: both,
        to: apart,
        stay,
        new: &[],
        gone: &[],
    });
    check(&Reload {
        from: apart,
        to: both,
        stay,
        new: &[],
        gone: &[],
    });
}

/// The change starts another worker, and the first one finishes.
#[test]
fn another_worker_takes_the_wider_address_over() {
    check_with(
        "worker_processes 2;",
        "env ADDED=1;",
        &Reload {
            from: &["127.0.0.1:P"],
            to: &["P"],
            stay: &["127.0.0.1"],
            new: &["127.0.0.2"],
            gone: &[],
        },
    );
}

/// While another address of the new configuration is in use, the old ones are served, and after it was given up.
#[test]
fn a_reload_that_fails_leaves_all_as_it_was() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(
        "# %%PORT2%% and %%PORT3%% are used later.
         server { listen %%PORT%%; return 200 g1; }",
    )
    .allow("bind() to")
    .allow("still could not bind()")
    .start();
    let port = server.port();
    let taken = std::net::TcpListener::bind(("127.0.0.1", server.port_number(2))).expect("bind");
    server.rewrite_conf(|text| {
        let (from, to) = (
            format!("listen {port};"),
            "listen 127.0.0.1:%%PORT%%; listen 127.0.0.1:%%PORT2%%;",
        );
        assert!(text.contains(&from));
        text.replace(&from, to).replace("200 g1", "200 g2")
    });
    server.signal(Signal::HUP);
    server.wait_for_text("error.log", "try again to bind()");
    // A socket that listened already would hold this request back, and lose it when the reload is given up.
    let mut client = Client::connect(port);
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.response().text(), "g1");
    server.wait_for_text("error.log", "still could not bind()");
    assert_eq!(answer("127.0.0.1", port).as_deref(), Some("g1"));
    // Back to the address that it has, and to the narrower one again.
    drop(taken);
    server.signal(Signal::HUP);
    wait_until("the new configuration answers", || {
        answer("127.0.0.1", port).as_deref() == Some("g2")
    });
}

#[test]
fn there_and_back_at_once() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http("server { listen 127.0.0.1:%%PORT%%; return 200 g1; }").start();
    let port = server.port();
    let mut client = server.client();
    for n in 2..12 {
        server.rewrite_conf(|text| {
            let (one, all) = (
                format!("listen 127.0.0.1:{port};"),
                format!("listen {port};"),
            );
            let text = match text.contains(&one) {
                true => text.replace(&one, &all),
                false => text.replace(&all, &one),
            };
            text.replace(&format!("200 g{};", n - 1), &format!("200 g{n};"))
        });
        server.signal(Signal::HUP);
        let wanted = format!("g{n}");
        wait_until("the new configuration answers", || {
            answer("127.0.0.1", port).expect("it is served all the time") == wanted
        });
        assert_eq!(asked(&mut client), Some(wanted), "it is kept");
    }
    let log = server.error_log();
    assert!(!log.contains("Address already in use"), "{log}");
}
