//! Reloads that have to wait: an address in use, a worker that is not ready yet.

use std::net::TcpListener;

use firstbyte_tests::client::request;
use firstbyte_tests::limited::limited;
use firstbyte_tests::{Builder, Client, Server, Signal, peer, process, wait_until};

const AGAIN: &str = "try again to bind() after 500ms";

fn site(main: &str) -> Builder {
    let http = "server { listen 127.0.0.1:%%PORT%%; location = /generation { return 200 g1; } }";
    Server::http_with(main, http)
        .file("unused", "%%PORT2%%")
        .allow("Address already in use")
        .allow("still could not bind()")
}

fn generation(server: &Server) -> String {
    server.get("/generation").text()
}

/// Takes the second port, and reloads a configuration that listens there, too.
fn reload_onto_a_taken_port(server: &Server) -> TcpListener {
    let second = server.port_number(2);
    let taken = TcpListener::bind(("127.0.0.1", second)).expect("it was reserved for this test");
    let one = format!("listen 127.0.0.1:{};", server.port());
    let both = format!("{one} listen 127.0.0.1:{second};");
    server.rewrite_conf(|text| text.replace(&one, &both).replace("200 g1;", "200 g2;"));
    server.signal(Signal::HUP);
    server.wait_for_text("error.log", AGAIN);
    taken
}

#[test]
fn an_address_in_use_is_tried_five_times() {
    let server = site("").start();
    let _taken = reload_onto_a_taken_port(&server);
    assert_eq!(generation(&server), "g1", "the old one serves meanwhile");
    let log = server.wait_for_text("error.log", "still could not bind()");
    assert_eq!(log.matches(AGAIN).count(), 5);
    assert_eq!(generation(&server), "g1");
}

#[test]
fn an_address_that_becomes_free_is_taken() {
    let server = site("").start();
    drop(reload_onto_a_taken_port(&server));
    wait_until("the new configuration answers", || {
        generation(&server) == "g2"
    });
    let mut second = Client::connect(server.port_number(2));
    assert_eq!(second.get("/generation").text(), "g2");
    assert!(!server.error_log().contains("still could not bind()"));
}

#[test]
fn signals_are_heard_while_an_address_is_tried() {
    if !peer::is_firstbyte() {
        // nginx sleeps between its tries.
        return;
    }
    let mut server = site("").start();
    let _taken = reload_onto_a_taken_port(&server);
    let log = server.path("access.log");
    std::fs::rename(&log, server.path("access.log.1")).expect("the log is there");
    server.signal(Signal::USR1);
    wait_until("the log is opened anew", || log.exists());
    server.signal(Signal::QUIT);
    assert_eq!(server.wait_for_exit(), 0);
    let log = server.error_log();
    assert!(
        log.contains("reconfiguring is canceled by another signal"),
        "{log}"
    );
    assert!(!log.contains("still could not bind()"), "{log}");
}

#[test]
fn a_mended_configuration_is_not_kept_waiting() {
    let server = site("").start();
    let _taken = reload_onto_a_taken_port(&server);
    let second = format!("listen 127.0.0.1:{};", server.port_number(2));
    server.rewrite_conf(|text| text.replace(&second, "").replace("200 g2;", "200 g3;"));
    server.signal(Signal::HUP);
    wait_until("it is taken", || generation(&server) == "g3");
    if peer::is_firstbyte() {
        let log = server.error_log();
        assert!(!log.contains("still could not bind()"), "{log}");
    }
}

/// Returns whether a new connection gets this response.
fn says(server: &Server, generation: &str) -> bool {
    let mut client = server.client();
    client.send(request("GET", "/generation", &[]));
    matches!(client.try_response(), Ok(Some(answer)) if answer.text() == generation)
}

#[test]
fn a_refused_reload_goes_back_to_the_one_the_worker_has_taken() {
    if !peer::is_firstbyte() {
        return;
    }
    // So few descriptors that threads for the third configuration cannot be made.
    let server = limited(site(""), "-n 40")
        .allow("Too many open files")
        .allow("worker thread")
        .allow("exited on signal 9")
        .start();
    assert_eq!(generation(&server), "g1");
    let worker = server.workers()[0];
    wait_until("it has said that it is ready", || {
        process::is_waiting(worker)
    });
    assert!(process::signal(worker, Signal::STOP));
    read_another(&server, "200 g1;", "200 g2;", "g2.log", "events");
    let threads = "worker_processes 64; events";
    read_another(&server, "200 g2;", "200 g3;", "g3.log", threads);
    assert!(process::signal(worker, Signal::CONT));
    server.wait_for_text("error.log", "[emerg]");
    // The next worker serves the supervisor's current configuration; this one may have ended by itself.
    process::signal(worker, Signal::KILL);
    wait_until("the second configuration is served", || says(&server, "g2"));
    assert!(!server.workers().contains(&worker));
}

/// Loads a configuration with a log of its own, which shows that it has been read.
fn read_another(server: &Server, from: &str, to: &str, log: &str, main: &str) {
    let log = server.path(log);
    let to = format!("{to} access_log {};", log.display());
    server.rewrite_conf(|text| {
        let text = text.replace(from, &to).replace("env ANOTHER=1; ", "");
        text.replace("events", main)
    });
    server.signal(Signal::HUP);
    wait_until("it is read", || log.exists());
}

#[test]
fn of_reloads_that_no_worker_has_answered_the_last_one_counts() {
    if !peer::is_firstbyte() {
        return;
    }
    let worker_of = |second: &str, third: &str| {
        let server = site("").allow("exited on signal").start();
        assert_eq!(generation(&server), "g1");
        let worker = server.workers()[0];
        wait_until("it has said that it is ready", || {
            process::is_waiting(worker)
        });
        assert!(process::signal(worker, Signal::STOP));
        read_another(&server, "200 g1;", "200 g2;", "g2.log", second);
        read_another(&server, "200 g2;", "200 g3;", "g3.log", third);
        assert!(process::signal(worker, Signal::CONT));
        wait_until("the third is served by one worker", || {
            says(&server, "g3") && server.workers().len() == 1
        });
        for _ in 0..20 {
            assert!(says(&server, "g3"));
        }
        server.workers()[0] == worker
    };
    // The second needs another process; the third serves there, or in one like the first.
    let another = "env ANOTHER=1; events";
    // Each waits for the supervisor's patience with the worker.
    let kept = std::thread::scope(|scope| {
        let cases = [
            ("events", "events"),
            (another, another),
            (another, "events"),
        ];
        let threads = cases.map(|(second, third)| scope.spawn(move || worker_of(second, third)));
        threads.map(|thread| thread.join().expect("the last reload counts"))
    });
    assert_eq!(kept[..2], [true, false]);
}

#[test]
fn a_broken_configuration_leaves_one_that_waits_for_its_address() {
    let server = site("").allow("unknown directive").start();
    let taken = reload_onto_a_taken_port(&server);
    let good = server.dir().read("nginx.conf");
    server.rewrite_conf(|text| text.replace("events", "nonsense; events"));
    server.signal(Signal::HUP);
    server.wait_for_text("error.log", "unknown directive");
    std::fs::write(server.path("nginx.conf"), good).expect("it was there");
    drop(taken);
    wait_until("the one that waited is served", || {
        generation(&server) == "g2"
    });
}
