//! USR2: the binary is changed under load, it fails, it is taken back; the owner of the pid file at each step.
//!
//! Every server here runs from a link in its directory, and a test points the link at another program. `$pid` is the
//! responding worker, and the kernel knows its supervisor. The changes between firstbyte and nginx are in
//! `upgrade_nginx.rs`.

use std::path::Path;

use firstbyte_tests::change::{
    change, install, pid_in, served_by, site, wait_until_alone, workers_beside,
};
use firstbyte_tests::dir::set_mode;
use firstbyte_tests::load::{BIG_BYTES, Download, Load};
use firstbyte_tests::server::OWN_BINARY;
use firstbyte_tests::{Client, Server, Signal, peer, process, wait_until};

/// How many clients connect anew for every request, and how many keep their connection.
const CONNECTING: usize = 8;
const KEEPING: usize = 16;
const IDLE: usize = 32;
const CHANGES: usize = 3;

/// Log line of USR2 if another binary runs already.
const REFUSED: &str = "the changing binary signal is ignored: you should shutdown or terminate \
                       before either old or new binary's process";

fn idle_clients(server: &Server) -> Vec<Client> {
    let mut idle: Vec<Client> = (0..IDLE).map(|_| server.client()).collect();
    for client in &mut idle {
        assert_eq!(client.get("/t.txt").text(), "text");
    }
    idle
}

/// One change of the binary while `load` continues; the old server ends and the new one is adopted.
fn change_under(load: &Load, server: &mut Server) {
    let idle = idle_clients(server);
    let mut slow = Download::begin(server);
    let new = change(server);
    load.go_on_for(500);
    server.signal(Signal::WINCH);
    wait_until("the new one answers", || served_by(server, new.pid));
    for mut client in idle {
        assert!(client.ended(), "an idle connection ends by FIN");
    }
    load.go_on_for(500);
    server.signal(Signal::QUIT);
    assert!(slow.is_whole(), "a running answer is finished");
    assert_eq!(server.wait_for_exit(), 0);
    assert!(!server.path("nginx.pid.oldbin").exists());
    assert_eq!(pid_in(server, "nginx.pid"), new.pid);
    server.adopt("nginx.pid");
}

#[test]
fn changes_under_load_lose_nothing() {
    let mut server = site("daemon on; worker_processes 2;", "", "access_log off;")
        .zeros("html/big", BIG_BYTES)
        .start();
    let load = Load::start(server.port(), CONNECTING, KEEPING);
    for _ in 0..CHANGES {
        change_under(&load, &mut server);
    }
    let figures = load.stop();
    println!("{CHANGES} changes of the binary: {figures:?}");
    assert_eq!((figures.failed, figures.cut), (0, 0), "{figures:?}");
    assert!(figures.ended > 0, "kept connections of the old one end");
    if peer::is_firstbyte() {
        assert_eq!(figures.reset, 0, "{figures:?}");
    }
}

#[test]
fn sockets_of_each_thread_are_handed_on() {
    let mut server = site(
        "daemon on; worker_processes 3;",
        " reuseport",
        "access_log off;",
    )
    .zeros("html/big", BIG_BYTES)
    .start();
    let load = Load::start(server.port(), CONNECTING, KEEPING);
    change_under(&load, &mut server);
    let figures = load.stop();
    assert_eq!((figures.failed, figures.cut), (0, 0), "{figures:?}");
}

#[test]
fn a_new_binary_that_fails_leaves_the_old_one_serving() {
    let server = site("daemon on;", "", "")
        .file("bin/fails", "#!/bin/sh\nexit 1\n")
        .file("bin/crashes", "#!/bin/sh\nkill -SEGV $$\n")
        .file("bin/text", "text")
        .prepare(|dir| {
            set_mode(&dir.join("bin/fails"), 0o755);
            set_mode(&dir.join("bin/crashes"), 0o755);
        })
        .allow("execve() failed")
        .allow("exited on signal 11")
        .allow("no_such_directive")
        .start();
    let old = server.pid();
    let mut kept = server.client();
    let own = server.path(OWN_BINARY);
    let broken = |name: &str| server.path(name);
    let failures = [
        (broken("bin/fails"), "exited with code 1".to_owned()),
        (broken("bin/crashes"), "exited on signal 11".to_owned()),
        (
            broken("bin/missing"),
            format!(
                "execve() failed while executing new binary process \"{}\" (2: No such file or directory)",
                own.display()
            ),
        ),
        (
            broken("bin/text"),
            format!("\"{}\" (13: Permission denied)", own.display()),
        ),
        (
            peer::binary().to_path_buf(),
            "unknown directive \"no_such_directive\"".to_owned(),
        ),
    ];
    for (binary, message) in failures {
        if message.contains("directive") {
            server.rewrite_conf(|text| text.replace("return 200 $pid;", "no_such_directive;"));
        }
        install(server.dir().path(), &binary);
        server.signal(Signal::USR2);
        server.wait_for_text("error.log", &message);
        wait_until("the pid file has its name back", || {
            !server.path("nginx.pid.oldbin").exists() && pid_in(&server, "nginx.pid") == old
        });
        assert!(served_by(&server, old), "{message}");
        assert_eq!(kept.get("/t.txt").text(), "text", "{message}");
    }
    server.rewrite_conf(|text| text.replace("no_such_directive;", "return 200 $pid;"));
    change(&server).end(Signal::TERM);
    wait_until_alone(&server);
}

#[test]
fn the_old_one_serves_again_when_the_new_one_ends() {
    let server = site("daemon on;", "", "")
        .allow("exited on signal 9")
        .start();
    let old = server.pid();
    for signal in [Signal::TERM, Signal::QUIT, Signal::KILL] {
        if signal == Signal::KILL && !peer::is_firstbyte() {
            // Workers of nginx outlive their supervisor.
            continue;
        }
        let new = change(&server);
        server.signal(Signal::WINCH);
        wait_until("the old one has no worker", || {
            workers_beside(old, new.pid).is_empty()
        });
        assert!(served_by(&server, new.pid));
        new.end(signal);
        wait_until_alone(&server);
        wait_until("the old one has a worker", || !server.workers().is_empty());
        assert!(served_by(&server, old), "{signal:?}");
    }
}

#[test]
fn hup_to_the_old_one_starts_its_workers_by_what_it_has_read() {
    let server = site("daemon on;", "", "").start();
    let old = server.pid();
    let new = change(&server);
    server.signal(Signal::WINCH);
    wait_until("the old one has no worker", || {
        workers_beside(old, new.pid).is_empty()
    });
    server.rewrite_conf(|text| text.replace("return 200 $pid;", "no_such_directive;"));
    server.signal(Signal::HUP);
    wait_until("it has one again", || {
        !workers_beside(old, new.pid).is_empty()
    });
    new.end(Signal::QUIT);
    wait_until_alone(&server);
    assert!(served_by(&server, old));
    assert!(!server.error_log().contains("no_such_directive"));
}

#[test]
fn a_second_usr2_is_refused_by_both_until_one_has_ended() {
    let mut server = site("daemon on;", "", "").start();
    let refusals = |server: &Server| server.error_log().matches(REFUSED).count();
    let new = change(&server);
    server.signal(Signal::USR2);
    wait_until("the old one refuses", || refusals(&server) == 1);
    assert!(process::signal(new.pid, Signal::USR2));
    wait_until("the new one refuses", || refusals(&server) == 2);
    assert_eq!(pid_in(&server, "nginx.pid"), new.pid);
    server.signal(Signal::QUIT);
    server.wait_for_exit();
    server.adopt("nginx.pid");
    let next = change(&server);
    assert_eq!(refusals(&server), 2, "the old one has ended");
    next.end(Signal::QUIT);
    wait_until_alone(&server);
}

#[test]
fn a_unix_socket_stays_while_one_of_them_lives() {
    let mut server = site("daemon on;", "; listen unix:%%DIR%%/s.sock", "").start();
    let path = server.path("s.sock");
    let answers = |path: &Path| Client::connect_unix(path).get("/t.txt").text() == "text";
    let _new = change(&server);
    assert!(answers(&path));
    server.signal(Signal::QUIT);
    server.wait_for_exit();
    assert!(answers(&path), "after the end of the old one");
    server.adopt("nginx.pid");
    change(&server).end(Signal::TERM);
    wait_until_alone(&server);
    assert!(answers(&path), "after the end of the new one");
    server.signal(Signal::QUIT);
    server.wait_for_exit();
    assert!(!path.exists(), "the last one takes it away");
}

#[test]
fn a_unix_socket_that_the_new_one_does_not_name_is_left_to_the_old_one() {
    if !peer::is_firstbyte() {
        return;
    }
    let mut server = site("daemon on;", "; listen unix:%%DIR%%/s.sock", "").start();
    let path = server.path("s.sock");
    let line = format!("; listen unix:{}", path.display());
    server.rewrite_conf(|text| text.replace(&line, ""));
    let _new = change(&server);
    assert_eq!(
        Client::connect_unix(&path).get("/t.txt").text(),
        "text",
        "by the old one"
    );
    server.signal(Signal::QUIT);
    server.wait_for_exit();
    server.adopt("nginx.pid");
    server.rewrite_conf(|text| text.replace(" root ", &format!("{}; root ", &line[1..])));
    server.signal(Signal::HUP);
    wait_until("the new one names it, too", || {
        std::os::unix::net::UnixStream::connect(&path).is_ok()
    });
    assert_eq!(Client::connect_unix(&path).get("/t.txt").text(), "text");
}

#[test]
fn a_server_in_the_foreground_changes_its_binary_too() {
    if !peer::is_firstbyte() {
        // nginx takes its shell for a predecessor, and refuses.
        return;
    }
    let mut server = site("", "", "").start();
    let new = change(&server);
    server.signal(Signal::QUIT);
    assert_eq!(server.wait_for_exit(), 0);
    server.adopt("nginx.pid");
    assert!(served_by(&server, new.pid));
    // Whoever was started by USR2 has no terminal of its own: WINCH is a request.
    server.signal(Signal::WINCH);
    wait_until("its worker finishes", || server.workers().is_empty());
    server.signal(Signal::HUP);
    wait_until("another one starts", || !server.workers().is_empty());
    assert_eq!(server.get("/t.txt").text(), "text");
}

#[test]
fn a_server_without_a_supervisor_ignores_usr2() {
    let mut server = site("master_process off;", "", "").start();
    server.signal(Signal::USR2);
    server.wait_for_text("error.log", "(SIGUSR2) received from");
    assert_eq!(server.get("/t.txt").text(), "text");
    assert!(!server.path("nginx.pid.oldbin").exists());
    assert!(server.workers().is_empty());
    server.signal(Signal::QUIT);
    server.wait_for_exit();
}

#[test]
fn connections_that_wait_when_a_server_ends_are_served() {
    if !peer::is_firstbyte() {
        return;
    }
    let mut server = site("", "", "").start();
    assert_eq!(server.get("/t.txt").text(), "text");
    let worker = server.workers()[0];
    wait_until("it has said that it is ready", || {
        process::is_waiting(worker)
    });
    assert!(process::signal(worker, Signal::STOP));
    let mut waiting: Vec<Client> = (0..100).map(|_| server.client()).collect();
    for client in &mut waiting {
        client.send("GET /t.txt HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    server.signal(Signal::QUIT);
    server.wait_for_text("error.log", "(SIGQUIT) received");
    assert!(process::signal(worker, Signal::CONT));
    for client in &mut waiting {
        assert_eq!(client.response().text(), "text");
    }
    drop(waiting);
    assert_eq!(server.wait_for_exit(), 0);
}
