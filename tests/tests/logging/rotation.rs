//! Rotating logs with logrotate and the file of the packages: under load, no line is lost and none is doubled.
//!
//! logrotate renames the logs and sends USR1 to the number in the pid file. Until the server has opened its logs anew
//! it writes to the renamed files, and all the lines are looked for in all the files.
//! Source: logrotate(8); nginx documentation, "Controlling nginx", "Rotating Log-files".

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use firstbyte_tests::source::{read, root};
use firstbyte_tests::{Client, Server, Signal, peer, wait_until};

/// Clients that send requests without a pause, each on a connection of its own.
const CLIENTS: usize = 4;

/// Number of rotations; from the second one on, the renamed files are compressed.
const ROTATIONS: u32 = 5;

/// Requests of the clients.
#[derive(Default)]
struct Load {
    stop: AtomicBool,
    asked: AtomicU32,
}

/// Asks for files that are not there, so that each request leaves a line in both logs.
fn ask(port: u16, load: &Load) {
    let mut client = Client::connect(port);
    while !load.stop.load(Ordering::Relaxed) {
        let number = load.asked.fetch_add(1, Ordering::Relaxed);
        assert_eq!(client.get(&format!("/none-{number}-")).status, 404);
    }
}

fn start_load(port: u16) -> (Arc<Load>, Vec<JoinHandle<()>>) {
    let load = Arc::new(Load::default());
    let clients = (0..CLIENTS).map(|_| {
        let load = Arc::clone(&load);
        std::thread::spawn(move || ask(port, &load))
    });
    let clients = clients.collect();
    (load, clients)
}

/// The packages' file, for the logs of this test.
fn rotation(server: &Server) -> String {
    let text = read(&root().join("packaging/logrotate.in"));
    let (logs, pid) = (server.path("log"), server.path("nginx.pid"));
    let text = text
        .replace("/var/log/@NAME@", &logs.display().to_string())
        .replace("/run/@NAME@.pid", &pid.display().to_string());
    assert!(!text.contains('@'), "every name is replaced in {text}");
    let is_debian = read(Path::new("/etc/passwd")).contains("\nwww-data:");
    if peer::is_root() && is_debian {
        return text;
    }
    // Only root can change the owner of the new logs, and the user has another name on other systems.
    text.replace("create 0640 www-data adm", "create 0640")
}

/// Rotates once, and waits until the server writes to the new files.
fn rotate(server: &Server) {
    let outcome = Command::new("logrotate")
        .args(["--force", "--state"])
        .arg(server.path("state"))
        .arg(server.path("rotation"))
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .expect("logrotate is there: .ci/setup installs it");
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success() && said.is_empty(), "{said}");
    for log in ["log/access.log", "log/error.log"] {
        wait_until(&format!("{log} is written to again"), || {
            !server.dir().read(log).is_empty()
        });
    }
}

/// Number of lines with each number, in a log and in its renamed files, compressed or not.
fn numbers(logs: &Path, name: &str) -> BTreeMap<u32, u32> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(logs).expect("the logs' folder").flatten() {
        if !entry.file_name().to_string_lossy().starts_with(name) {
            continue;
        }
        let text = Command::new("gzip")
            .args(["--decompress", "--stdout", "--force"])
            .arg(entry.path())
            .output()
            .expect("gzip is there: .ci/setup installs it");
        for line in String::from_utf8_lossy(&text.stdout).lines() {
            let number = line
                .split("/none-")
                .nth(1)
                .and_then(|rest| rest.split('-').next());
            if let Some(number) = number.and_then(|text| text.parse().ok()) {
                *found.entry(number).or_default() += 1;
            }
        }
    }
    found
}

#[test]
fn logrotate_loses_no_line_under_load() {
    let mut server = Server::http_with(
        "error_log %%DIR%%/log/error.log;",
        "access_log %%DIR%%/log/access.log;
         server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; keepalive_requests 1000000; }",
    )
    .file("html/index.html", "")
    .file("log/access.log", "")
    .file("log/error.log", "")
    .start();
    let text = rotation(&server);
    server.dir().write("rotation", text);
    let (load, clients) = start_load(server.port());
    for _ in 0..ROTATIONS {
        let before = load.asked.load(Ordering::Relaxed);
        rotate(&server);
        wait_until("the load goes on", || {
            load.asked.load(Ordering::Relaxed) > before + 100
        });
    }
    load.stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("a client of the load ends");
    }
    let logs = server.path("log");
    let asked = load.asked.load(Ordering::Relaxed);
    assert!(logs.join("access.log.2.gz").exists() && logs.join("error.log.2.gz").exists());
    server.signal(Signal::QUIT);
    assert_eq!(server.wait_for_exit(), 0);
    for name in ["access.log", "error.log"] {
        let found = numbers(&logs, name);
        let lost: Vec<u32> = (0..asked)
            .filter(|number| !found.contains_key(number))
            .collect();
        assert!(lost.is_empty(), "{name} lacks {lost:?} of {asked}");
        let twice = found.values().filter(|&&count| count != 1).count();
        assert_eq!(twice, 0, "{name} has lines twice");
    }
}
