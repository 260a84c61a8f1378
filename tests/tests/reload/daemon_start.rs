//! When the command that starts a daemon returns, its pid file is whole and its sockets listen; a failed start leaves nothing.
//!
//! nginx returns before the pid file is written. Source: nginx documentation, `pid`, `daemon`; systemd.service(5), `forking`.

use std::fs;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use firstbyte_tests::{Builder, Client, Server, Signal, command, peer, process, wait_until};

const STARTS: usize = 10;

fn daemon() -> Builder {
    Server::http_with(
        "daemon on;",
        "server { listen 127.0.0.1:%%PORT%%; listen unix:%%DIR%%/socket; return 200 ok; }",
    )
}

#[test]
fn the_command_returns_when_all_is_in_place() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = daemon().written();
    let path = server.path("nginx.pid");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !stop.load(Ordering::Relaxed) {
                if let Ok(text) = fs::read_to_string(&path) {
                    let number = text.strip_suffix('\n').map(str::parse::<u32>);
                    assert!(matches!(number, Some(Ok(1..))), "{text:?}");
                    reads += 1;
                }
            }
            reads
        });
        for n in 0..STARTS {
            let outcome = command::run(server.arguments());
            assert_eq!(outcome.code, 0, "{outcome:?}");
            let text = fs::read_to_string(&path).expect("the pid file is there");
            let pid: u32 = text.trim().parse().expect("it is whole");
            let _client = Client::connect_unix(&server.path("socket"));
            assert_eq!(server.get("/").text(), "ok");
            // Every other time the file is left, as after kill -9.
            process::signal(pid, Signal::TERM);
            wait_until("it ends", || !process::is_alive(pid));
            if n % 2 == 0 {
                fs::write(server.path("old"), "4194303\n").expect("a file");
                fs::rename(server.path("old"), &path).expect("a pid file");
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(reader.join().expect("it read whole files") > 0);
    });
}

#[test]
fn a_failed_start_leaves_nothing() {
    if !peer::is_firstbyte() {
        return;
    }
    // The pid file cannot be written, though it is the last that is opened.
    let server = daemon().allow("[emerg]").written();
    server.rewrite_conf(|text| text.replace("/nginx.pid", "/none/nginx.pid"));
    let outcome = command::run(server.arguments());
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(
        outcome.stderr.contains("(2: No such file or directory)"),
        "{outcome:?}"
    );
    assert!(!server.path("socket").exists());
    // An address is in use.
    let server = daemon().allow("[emerg]").written();
    let taken = TcpListener::bind(("127.0.0.1", server.port())).expect("bind");
    let outcome = command::run(server.arguments());
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(!server.path("socket").exists() && !server.path("nginx.pid").exists());
    drop(taken);
    // A test of the configuration leaves no empty pid file.
    let outcome = command::run(server.arguments().into_iter().chain(["-t".to_owned()]));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(!server.path("nginx.pid").exists());
}
