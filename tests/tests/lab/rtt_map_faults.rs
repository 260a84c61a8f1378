//! `lab_store`: a store that is full, locked or damaged, and a store process that hangs, is killed or replaced.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::recorded::{
    STORE, count, metric, rows, site, store_processes, visit, wait_for_rows, wait_for_rows_of,
};
use firstbyte_tests::small_disk::on_small_disk;
use firstbyte_tests::{Server, process, wait_until};
use rustix::process::Signal;

#[test]
fn end_of_the_server_writes_what_is_queued() {
    for main in ["", "master_process off;"] {
        let http = format!(
            "rtt_map on; {STORE} access_log off; server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; }}"
        );
        let mut server = Server::http_with(main, &http)
            .file("html/f.txt", "0123456789")
            .allow("rtt_map records no countries")
            .start();
        for _ in 0..50 {
            visit(&server);
        }
        server.signal(Signal::QUIT);
        assert_eq!(server.wait_for_exit(), 0, "{main}");
        assert_eq!(count(&server), 50, "{main}");
    }
}

#[test]
fn reload_changes_the_store_and_loses_nothing() {
    let server = site(STORE, "").start();
    let change = |from: &str, to: &str| {
        let before = store_processes(&server);
        let (from, to) = (from.to_owned(), to.to_owned());
        server.rewrite_conf(move |conf| conf.replace(&from, &to));
        server.signal(Signal::HUP);
        wait_until("another store process alone", || {
            let now = store_processes(&server);
            now.len() == 1 && now != before
        });
    };
    visit(&server);
    wait_for_rows(&server, 1);
    change("server=edge", "server=second");
    visit(&server);
    wait_for_rows(&server, 2);
    change("lab/store.db", "a/b/lab/other.db");
    visit(&server);
    wait_for_rows_of(&server, "a/b/lab/other.db", 1);
    change("a/b/lab/other.db", "lab/store.db");
    visit(&server);
    wait_for_rows(&server, 3);
    let names = rows(
        &server,
        "SELECT DISTINCT server FROM connections ORDER BY server",
    );
    let names: Vec<_> = names.iter().map(|row| row["server"].as_str()).collect();
    assert_eq!(names, [Some("edge"), Some("second")]);
    server.rewrite_conf(|conf| conf.replace("rtt_map on", "rtt_map off"));
    server.signal(Signal::HUP);
    wait_until("no store process", || store_processes(&server).is_empty());
    server.wait_for_text("error.log", "has no effect without \"rtt_map on\"");
    visit(&server);
}

#[test]
fn killed_store_process_is_started_again() {
    let server = site(STORE, "").allow("exited on signal 9").start();
    visit(&server);
    wait_for_rows(&server, 1);
    for n in 2..4 {
        let [pid] = store_processes(&server)[..] else {
            panic!("one store process");
        };
        assert!(process::signal(pid, Signal::KILL));
        // Samples wait in the socket meanwhile.
        visit(&server);
        wait_for_rows(&server, n);
        wait_until("another one", || {
            store_processes(&server).iter().any(|p| *p != pid)
        });
    }
}

#[test]
fn reopened_logs_receive_the_reports_of_the_store() {
    let server = site(STORE, "").start();
    server.wait_for_text("error.log", "is open");
    fs::rename(server.path("error.log"), server.path("error.log.1")).expect("it is ours");
    server.signal(Signal::USR1);
    server.wait_for_text("error.log", "is open");
}

#[test]
fn stores_that_fail_slow_nothing_and_are_reported() {
    let refused = site(STORE, "")
        .allow("cannot write the store")
        .prepare(|dir| {
            // The file's place is a directory.
            fs::create_dir_all(dir.join("lab/store.db")).expect("a folder");
            let open = fs::Permissions::from_mode(0o777);
            fs::set_permissions(dir.join("lab"), open).expect("it is ours");
        })
        .start();
    refused.wait_for_text("error.log", "cannot write the store");
    for _ in 0..20 {
        visit(&refused);
    }
    wait_until("metrics show it", || {
        metric(&refused, "firstbyte_lab_store_failing") == 1
            && metric(&refused, "firstbyte_lab_store_failed_writes_total") > 0
    });
    fs::remove_dir(refused.path("lab/store.db")).expect("it is empty");
    refused.wait_for_text("error.log", "can be written again");
    wait_until("rows have waited", || count(&refused) >= 20);
    wait_until("metrics show it", || {
        metric(&refused, "firstbyte_lab_store_failing") == 0
    });
}

#[test]
fn full_disk_keeps_what_is_stored() {
    let lines = "lab_store sqlite:%%DIR%%/small/store.db;";
    let Some(server) = on_small_disk(site(lines, "").allow("cannot write the store"), 400) else {
        return;
    };
    let server = server.start();
    let written = || {
        metric(
            &server,
            "firstbyte_lab_store_samples_total{result=\"written\"}",
        )
    };
    wait_until("rows are stored", || written() > 0);
    let mut client = server.client();
    wait_until("the disk is full", || {
        for _ in 0..50 {
            visit(&server);
        }
        server.error_log().contains("cannot write the store")
    });
    assert_eq!(client.get("/f.txt").text(), "0123456789");
    wait_until("metrics show it", || {
        metric(&server, "firstbyte_lab_store_failing") == 1
    });
    assert!(
        metric(
            &server,
            "firstbyte_lab_store_samples_total{result=\"written\"}"
        ) > 0
    );
}

#[test]
fn damaged_store_is_moved_aside() {
    let server = site(STORE, "").allow("the store was damaged").start();
    visit(&server);
    wait_for_rows(&server, 1);
    let [before] = store_processes(&server)[..] else {
        panic!("one store process");
    };
    let file = server.path("lab/store.db");
    let bytes = fs::read(&file).expect("the store");
    let broken: Vec<u8> = bytes
        .iter()
        .enumerate()
        .map(|(at, byte)| if at < 4096 { *byte } else { !*byte })
        .collect();
    fs::write(&file, broken).expect("it is ours");
    server.signal(Signal::USR1);
    wait_until("another process", || {
        !store_processes(&server).contains(&before)
    });
    server.wait_for_text("error.log", "the store was damaged and is now");
    visit(&server);
    wait_for_rows(&server, 1);
    let aside = fs::read_dir(server.path("lab")).expect("the folder");
    let aside = aside.filter(|file| {
        let name = file.as_ref().expect("a file").file_name();
        name.to_string_lossy().contains(".damaged-")
    });
    assert!(aside.count() >= 1);
}

#[test]
fn store_process_that_hangs_slows_nothing() {
    let mut server = site(STORE, "").allow("exited on signal 9").start();
    visit(&server);
    wait_for_rows(&server, 1);
    let [pid] = store_processes(&server)[..] else {
        panic!("one store process");
    };
    assert!(process::signal(pid, Signal::STOP));
    wait_until("it is stopped", || process::is_stopped(pid));
    for _ in 0..300 {
        visit(&server);
    }
    assert_eq!(count(&server), 1);
    assert!(process::signal(pid, Signal::CONT));
    wait_for_rows(&server, 301);
    // The end of the server does not wait for it for ever.
    assert!(process::signal(pid, Signal::STOP));
    wait_until("it is stopped", || process::is_stopped(pid));
    server.signal(Signal::QUIT);
    assert_eq!(server.wait_for_exit(), 0);
    assert!(
        server
            .error_log()
            .contains(&format!("store process {pid} exited on signal 9"))
    );
}

#[test]
fn lock_of_another_program_slows_nothing() {
    let server = site(STORE, "").allow("cannot write the store").start();
    visit(&server);
    wait_for_rows(&server, 1);
    let script = "import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute('BEGIN IMMEDIATE')
print('locked', flush=True)
sys.stdin.read()";
    let mut locker = Command::new("python3")
        .args([
            "-c",
            script,
            &server.path("lab/store.db").display().to_string(),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut line = String::new();
    let output = locker.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("text");
    assert_eq!(line, "locked\n");
    for _ in 0..50 {
        visit(&server);
    }
    assert_eq!(count(&server), 1);
    drop(locker.stdin.take());
    assert!(locker.wait().expect("it ends").success());
    wait_for_rows(&server, 51);
}

#[test]
fn kill_of_the_server_loses_the_last_second_at_most() {
    let mut server = site(STORE, "").start();
    for _ in 0..100 {
        visit(&server);
    }
    wait_for_rows(&server, 100);
    visit(&server);
    server.signal(Signal::KILL);
    assert_eq!(server.wait_for_exit(), -1);
    // The store process ends with the last worker, and writes the received rows first.
    let file = server.path("lab/store.db-wal");
    wait_until("the store is closed", || !file.exists());
    assert!((100..=101).contains(&count(&server)), "{}", count(&server));
}
