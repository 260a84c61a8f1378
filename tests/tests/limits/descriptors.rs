//! A full table of descriptors: signals are handled and no request in progress is lost.
//!
//! Source: nginx documentation, "Controlling nginx", `worker_rlimit_nofile`, `worker_connections`; getrlimit(2).

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use firstbyte_tests::backend::{Backend, Step, ok};
use firstbyte_tests::client::request;
use firstbyte_tests::limited::limited;
use firstbyte_tests::server::OWN_BINARY;
use firstbyte_tests::wait::DEADLINE;
use firstbyte_tests::{Builder, Client, Server, Signal, peer, process, wait_until};

/// Clients, the number of them that download a file, and the limit of open files.
const CLIENTS: usize = 300;
const DOWNLOADS: usize = 20;
const LIMIT: u64 = 64;

fn site() -> Builder {
    let http = "server { listen 127.0.0.1:%%PORT%% backlog=1024; root %%DIR%%/html;
         location = /generation { return 200 g1; } }";
    Server::http(http)
        .zeros("html/big", BIG_BYTES)
        .allow("accept4() failed")
}

/// More than the sockets of both ends buffer.
const BIG_BYTES: u64 = 20_000_000;

struct Full {
    downloads: Vec<TcpStream>,
    /// They only fill the table.
    _silent: Vec<Client>,
}

/// Begins downloads, and fills the descriptor table with silent clients.
fn fill(server: &Server) -> Full {
    let downloads = (0..DOWNLOADS).map(|_| begin(server)).collect();
    let silent = (DOWNLOADS..CLIENTS).map(|_| server.client()).collect();
    Full {
        downloads,
        _silent: silent,
    }
}

/// Requests the file, and waits until the response has begun.
fn begin(server: &Server) -> TcpStream {
    let address = ("127.0.0.1", server.port());
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(DEADLINE)).expect("not zero");
    let text = request("GET", "/big", &["Connection: close"]);
    stream.write_all(text.as_bytes()).expect("it is taken");
    let begun = stream.peek(&mut [0; 1]);
    assert!(matches!(begun, Ok(1)), "the download begins: {begun:?}");
    stream
}

/// Reads a response to its end; whether all of the file came.
fn is_whole(stream: &mut TcpStream) -> bool {
    let mut bytes = vec![0; 1 << 20];
    let mut head_bytes = None;
    let mut total = 0;
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        let end = || bytes[..count].windows(4).position(|w| w == b"\r\n\r\n");
        head_bytes = head_bytes.or_else(|| end().map(|at| at as u64 + 4));
        total += count as u64;
    }
    Some(total) == head_bytes.map(|head| head + BIG_BYTES)
}

impl Full {
    fn whole(&mut self) -> usize {
        let whole = self
            .downloads
            .iter_mut()
            .filter_map(|stream| is_whole(stream).then_some(()));
        whole.count()
    }
}

fn answers(server: &Server, wanted: &str) -> bool {
    Client::try_connect_to("127.0.0.1", server.port()).is_ok_and(|mut client| {
        client.send("GET /generation HTTP/1.1\r\nHost: localhost\r\n\r\n");
        matches!(client.try_response(), Ok(Some(answer)) if answer.text() == wanted)
    })
}

#[test]
fn a_reload_with_a_full_table_loses_nothing() {
    if !peer::is_firstbyte() {
        // Its connections wait for a descriptor.
        return;
    }
    let server = limited(site(), &format!("-n {LIMIT}")).start();
    let mut full = fill(&server);
    let workers = server.workers();
    for n in 1..=3 {
        server
            .rewrite_conf(|text| text.replace(&format!("200 g{n};"), &format!("200 g{};", n + 1)));
        server.signal(Signal::HUP);
        let wanted = format!("g{}", n + 1);
        wait_until("the new configuration answers", || {
            answers(&server, &wanted)
        });
    }
    assert_eq!(server.workers(), workers, "the worker lives");
    assert_eq!(full.whole(), DOWNLOADS);
}

#[test]
fn logs_are_opened_anew_with_a_full_table() {
    if !peer::is_firstbyte() {
        // Its connections wait for a descriptor.
        return;
    }
    let server = limited(site(), &format!("-n {LIMIT}")).start();
    let mut full = fill(&server);
    for n in 0..3 {
        let log = server.path("access.log");
        fs::rename(&log, server.path(&format!("access.log.{n}"))).expect("the log is there");
        server.signal(Signal::USR1);
        wait_until("the log is opened anew", || log.exists());
        wait_until("it is written to", || {
            answers(&server, "g1") && fs::metadata(&log).is_ok_and(|log| log.len() > 0)
        });
    }
    assert_eq!(full.whole(), DOWNLOADS);
}

#[test]
fn a_new_binary_starts_beside_a_full_table() {
    if !peer::is_firstbyte() {
        // Its connections wait for a descriptor.
        return;
    }
    let server = limited(site(), &format!("-n {LIMIT}")).start();
    let mut full = fill(&server);
    let old = server.dir().read("nginx.pid");
    server.signal(Signal::USR2);
    let mut new = None;
    wait_until("the new binary serves", || {
        let text = server.dir().read("nginx.pid");
        new = text.trim().parse().ok().filter(|_| text != old);
        new.is_some_and(|pid| !process::children(pid).is_empty())
    });
    let new: u32 = new.expect("as waited for");
    wait_until("requests are answered", || answers(&server, "g1"));
    // Not QUIT: some of the silent are the new one's, and are given their time.
    assert!(process::signal(new, Signal::TERM));
    wait_until("the new binary has ended", || !process::is_alive(new));
    assert_eq!(full.whole(), DOWNLOADS);
}

#[test]
fn a_table_that_was_full_takes_new_connections() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = limited(site(), &format!("-n {LIMIT}")).start();
    // Nobody can be closed for another one, and some wait.
    let running: Vec<TcpStream> = (0..LIMIT / 2).map(|_| begin(&server)).collect();
    let mut more: Vec<Client> = (0..LIMIT).map(|_| server.client()).collect();
    for client in &mut more {
        client.send(request("GET", "/big", &[]));
    }
    server.wait_for_text("error.log", "open files are not enough");
    drop((running, more));
    wait_until("the next ones are answered", || answers(&server, "g1"));
}

#[test]
fn messages_for_which_there_is_no_room_are_answered() {
    if !peer::is_firstbyte() {
        return;
    }
    // Only root may limit another user's process, and not everywhere.
    let user = if peer::is_root() { "user root;" } else { "" };
    let server = Server::whole(&format!(
        "{user} daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info; events {{ }}
         http {{ access_log %%DIR%%/access.log; client_body_temp_path %%DIR%%/body;
             server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
                 location = /generation {{ return 200 g1; }} }} }}"
    ))
    .zeros("html/big", BIG_BYTES)
    .allow("[emerg]")
    .start();
    let mut slow = begin(&server);
    let worker = server.workers()[0];
    let limits = limits_of(worker);
    // All that is open stays open, and nothing more can be.
    limit_files(worker, 0);
    server.signal(Signal::HUP);
    server.wait_for_text("error.log", "configuring the worker failed (24: ");
    server.signal(Signal::USR1);
    server.wait_for_text("error.log", "control message to the worker failed (24: ");
    limit_files(worker, limits);
    server.rewrite_conf(|text| text.replace("200 g1;", "200 g2;"));
    server.signal(Signal::HUP);
    wait_until("the next configuration is taken", || answers(&server, "g2"));
    assert_eq!(server.workers(), [worker]);
    assert!(is_whole(&mut slow));
}

fn limits_of(pid: u32) -> u64 {
    soft_and_hard(pid).0
}

/// The soft and the hard limit of open files.
fn soft_and_hard(pid: u32) -> (u64, u64) {
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs");
    let line = text.lines().find(|line| line.starts_with("Max open files"));
    let mut numbers = line.unwrap_or_default().split_whitespace().skip(3);
    let mut next = || numbers.next().and_then(|n| n.parse().ok());
    (next().expect("soft"), next().expect("hard"))
}

fn limit_files(pid: u32, files: u64) {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let resource = rustix::process::Resource::Nofile;
    let mut limits = rustix::process::getrlimit(resource);
    limits.current = Some(files);
    rustix::process::prlimit(pid, resource, limits).expect("it is ours");
}

#[test]
fn the_worker_takes_the_hard_limit_unless_one_is_written() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = limited(site(), "-S -n 100").start();
    let (supervisor, worker) = (server.pid(), server.workers()[0]);
    assert_eq!(soft_and_hard(supervisor).0, 100);
    wait_until("the worker has the hard limit", || {
        let (soft, hard) = soft_and_hard(worker);
        soft == hard && soft > 100
    });
    drop(server);
    // nginx's number is that of a process with one thread's connections.
    let http = "server { listen 127.0.0.1:%%PORT%%; location = /generation { return 200 g1; } }";
    let main = "worker_processes 3; worker_rlimit_nofile 200;";
    let server = Server::http_with(main, http).start();
    wait_until("each thread has its part", || {
        soft_and_hard(server.workers()[0]) == (600, 600)
    });
    let worker = server.workers()[0];
    server.rewrite_conf(|text| text.replace("worker_processes 3;", "worker_processes 4;"));
    server.signal(Signal::HUP);
    let refused = format!("prlimit({worker}, RLIMIT_NOFILE, 800) failed (1: ");
    wait_until("a further one, too, where the supervisor may", || {
        soft_and_hard(worker) == (800, 800) || server.error_log().contains(&refused)
    });
}

#[test]
fn more_connections_than_open_files_are_warned_of() {
    for (main, connections, warned) in [
        ("worker_rlimit_nofile 512;", 512, None),
        ("worker_rlimit_nofile 512;", 513, Some((513, 512))),
        ("", 400, None),
        ("", 401, Some((401, 400))),
    ] {
        let server = limited(
            Server::whole(&format!(
                "%%USER%% daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info;
                 {main} events {{ worker_connections {connections}; }}
                 http {{ access_log off; client_body_temp_path %%DIR%%/body; server {{ listen 127.0.0.1:%%PORT%%; }} }}"
            )),
            "-n 400",
        )
        .written();
        let dir = server.dir().path().display().to_string();
        let said = std::process::Command::new(server.path(OWN_BINARY))
            .args(["-t", "-p", &dir, "-c", "nginx.conf", "-e", "error.log"])
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        let wanted = warned.map(|(connections, limit)| {
            format!(
                "[warn] {connections} worker_connections exceed open file resource limit: {limit}\n"
            )
        });
        match wanted {
            Some(wanted) => assert!(said.contains(&wanted), "{said}"),
            None => assert!(!said.contains("exceed"), "{said}"),
        }
    }
}

/// Descriptors of the worker for deleted files with this in their names.
fn open_temps(server: &Server, name: &str) -> usize {
    let workers = server.workers();
    let dirs = workers.iter().map(|pid| format!("/proc/{pid}/fd"));
    let entries = dirs.filter_map(|dir| fs::read_dir(dir).ok()).flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let texts = links.map(|link| link.to_string_lossy().into_owned());
    texts
        .filter(|text| text.contains(name) && text.ends_with("(deleted)"))
        .count()
}

#[test]
fn a_temporary_file_takes_one_descriptor() {
    let backend = Backend::answering(|r| match r.target() {
        "/upload" => vec![Step::Hold],
        _ => ok(vec![b'x'; BIG_BYTES as usize]),
    });
    let server = Server::http(&format!(
        "server {{ listen 127.0.0.1:%%PORT%%; client_body_buffer_size 4k;
             location / {{ proxy_pass http://{}; proxy_max_temp_file_size 64m; }} }}",
        backend.name()
    ));
    let server = server.start();
    let mut upload = server.client();
    upload.send(request("POST", "/upload", &["Content-Length: 10000"]) + &"x".repeat(10_000));
    assert_eq!(backend.latest().body.len(), 10_000);
    assert_eq!(open_temps(&server, "/client_body_temp/"), 1);
    let mut download = server.client();
    download.send(request("GET", "/download", &[]));
    wait_until("the response is in a file", || {
        server.error_log().contains("buffered to a temporary file")
            && open_temps(&server, "/proxy_temp/") > 0
    });
    assert_eq!(open_temps(&server, "/proxy_temp/"), 1);
}

#[test]
fn an_error_names_the_temporary_file_that_cannot_be_made() {
    let backend = Backend::answering(|_| ok("done"));
    let server = Server::http(&format!(
        "server {{ listen 127.0.0.1:%%PORT%%; client_body_buffer_size 4k;
             location / {{ proxy_pass http://{}; }} }}",
        backend.name()
    ));
    let server = server.allow("failed (20: Not a directory)").start();
    fs::remove_dir_all(server.path("client_body_temp")).expect("it is empty");
    fs::write(server.path("client_body_temp"), "a file").expect("the folder is the test's");
    let mut client = server.client();
    client.send(request("POST", "/", &["Content-Length: 10000"]) + &"x".repeat(10_000));
    assert_eq!(client.response().status, 500);
    let log = server.wait_for_text("error.log", "Not a directory");
    let line = log.lines().find(|line| line.contains("Not a directory"));
    let line = line.expect("it was there");
    assert!(line.contains("[crit]"), "{line}");
    assert!(
        line.contains("/client_body_temp/0000000001\" failed"),
        "{line}"
    );
}
