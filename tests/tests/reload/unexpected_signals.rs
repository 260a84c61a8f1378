//! Unexpected signals end neither process if nginx survives them, and requests continue.
//!
//! Source: nginx documentation, "Controlling nginx"; its table of signals handles or ignores HUP, USR1, WINCH, TERM,
//! QUIT, USR2, ALRM, INT, IO, CHLD, SYS and PIPE in both of its kinds of process.

use std::fs;

use firstbyte_tests::load::{BIG_BYTES, Download, Load};
use firstbyte_tests::{Builder, Server, Signal, peer, process, wait_until};

/// Of no use to either process.
const STRAY: [Signal; 6] = [
    Signal::ALARM,
    Signal::IO,
    Signal::SYS,
    Signal::PIPE,
    Signal::CHILD,
    Signal::URG,
];

fn site(main: &str) -> Builder {
    let http = "keepalive_requests 10000000; keepalive_timeout 60s;
         server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; location = /generation { return 200 g0; } }";
    Server::http_with(main, http)
        .file("html/t.txt", "text")
        .zeros("html/big", BIG_BYTES)
}

fn generation(server: &Server) -> String {
    server.get("/generation").text()
}

/// The threads of a process: a signal to the number of one is one to the process.
fn threads(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let names = tasks.flatten().map(|task| task.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

/// A signal was taken once a later HUP has been obeyed.
fn reload(server: &Server, from: u32) {
    let (before, after) = (format!("200 g{from};"), format!("200 g{};", from + 1));
    server.rewrite_conf(|text| text.replace(&before, &after));
    server.signal(Signal::HUP);
    let wanted = format!("g{}", from + 1);
    wait_until("the new configuration answers", || {
        generation(server) == wanted
    });
}

#[test]
fn stray_signals_end_neither_process() {
    for main in ["worker_processes 2;", "master_process off;"] {
        let server = site(main).start();
        assert_eq!(generation(&server), "g0");
        let workers = server.workers();
        assert_eq!(workers.is_empty(), main.starts_with("master"));
        for signal in STRAY {
            for pid in workers.iter().flat_map(|worker| threads(*worker)) {
                assert!(process::signal(pid, signal), "{signal:?} to the worker");
            }
            server.signal(signal);
        }
        if peer::is_firstbyte() {
            // To the supervisor they mean something, to a worker nothing.
            for signal in [Signal::HUP, Signal::USR1, Signal::USR2, Signal::WINCH] {
                assert!(
                    workers
                        .iter()
                        .all(|worker| process::signal(*worker, signal))
                );
            }
            reload(&server, 0);
            assert_eq!(server.workers(), workers);
        } else {
            assert_eq!(generation(&server), "g0");
        }
    }
}

#[test]
fn a_hundred_and_forty_mixed_signals_lose_nothing() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = site("worker_processes 2;").start();
    assert_eq!(generation(&server), "g0");
    let worker = server.workers()[0];
    let mut slow = Download::begin(&server);
    let load = Load::start(server.port(), 4, 8);
    let (mut sent, mut reloads) = (0, 0);
    while sent < 140 {
        for (n, signal) in STRAY.into_iter().enumerate() {
            let pid = if (n + reloads as usize).is_multiple_of(2) {
                server.pid()
            } else {
                worker
            };
            assert!(process::signal(pid, signal));
            sent += 1;
        }
        // In the foreground, the first of these reports a new window size.
        for signal in [Signal::WINCH, Signal::USR1] {
            server.signal(signal);
            sent += 1;
        }
        reload(&server, reloads);
        sent += 1;
        reloads += 1;
    }
    load.go_on_for(200);
    let figures = load.stop();
    assert!(slow.is_whole(), "a download goes on");
    let lost = figures.failed + figures.ended + figures.reset + figures.cut;
    assert_eq!(
        lost, 0,
        "after {sent} signals, {reloads} of them reloads: {figures:?}"
    );
    assert_eq!(server.workers(), [worker]);
}
