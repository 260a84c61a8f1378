//! php-fpm killed, stopped, out of processes, restarted under load: nginx's statuses, and no part of a page that passes for all of it.
//!
//! Sources: FastCGI 1.0 specification, section 5.5; nginx documentation, `fastcgi_read_timeout`, `fastcgi_next_upstream`; PHP
//! manual, "FastCGI Process Manager".

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use firstbyte_tests::client::request;
use firstbyte_tests::packaged::with_packaged;
use firstbyte_tests::php::{self, Listen, Page};
use firstbyte_tests::process;
use firstbyte_tests::programs::Program;
use firstbyte_tests::wait::pause;
use firstbyte_tests::{Client, H2Client, Server, Signal, peer, wait_until};

/// The application in four ways: buffered or not, impatient or not.
fn server(listen: Listen, keep: bool) -> Server {
    let (group, on) = if keep {
        ("keepalive 4;", "on")
    } else {
        ("", "off")
    };
    let pass = listen.name();
    let server = Server::http_with(
        "worker_processes 1;",
        &format!(
            "upstream php {{ server {pass} max_fails=0; {group} }}
             server {{ listen 127.0.0.1:%%PORT%%; http2 on; root %%DIR%%/site;
                 include fastcgi_params;
                 fastcgi_split_path_info ^/[a-z]+(/app\\.php)(/.*)$;
                 fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
                 fastcgi_param PATH_INFO $fastcgi_path_info;
                 fastcgi_keep_conn {on};
                 location /buffered/ {{ fastcgi_pass php; }}
                 location /unbuffered/ {{ fastcgi_pass php; fastcgi_buffering off; }}
                 location /hasty/ {{ fastcgi_pass php; fastcgi_buffering off;
                     fastcgi_read_timeout 300ms; fastcgi_connect_timeout 300ms; }} }}"
        ),
    );
    php::with_site(with_packaged(server, &["fastcgi_params"])).start()
}

#[track_caller]
fn is_well(server: &Server) {
    let whole = whole_page();
    for _ in 0..4 {
        wait_until("the application answers", || {
            server.get("/buffered/app.php/page").status == 200
        });
    }
    assert_eq!(server.get("/unbuffered/app.php/page").text(), whole);
    assert_eq!(server.get("/hasty/app.php/page").text(), whole);
}

/// Kind of `/page`.
fn whole_page() -> String {
    (0..2000).map(|n| format!("line {n}\n")).collect()
}

/// Processes of php-fpm that are killed: the serving one, or all of them.
#[derive(Clone, Copy, Debug)]
enum Killed {
    Serving,
    All,
}

impl Killed {
    fn kill(self, php: &Program) {
        match self {
            // There is one process; a new one replaces it.
            Self::Serving => {
                for child in process::children(php.pid()) {
                    process::signal(child, Signal::KILL);
                }
            }
            Self::All => php.signal_all(Signal::KILL),
        }
    }
}

/// True when bytes of a response over HTTP/1.1 look like all of one to a client.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").expect("the head was there");
    let length = head
        .lines()
        .find_map(|l| l.strip_prefix("Content-Length: "));
    match length {
        Some(length) => length.parse() == Ok(body.len()),
        None => !head.contains("chunked") || body.ends_with("0\r\n\r\n"),
    }
}

/// Kills PHP in the middle of a page of ten parts, over both protocols; returns the cases in which a client would
/// accept the page as whole.
fn cut(server: &Server, listen: Listen, killed: Killed, target: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for over in ["HTTP/1.1", "HTTP/2"] {
        let php = php::start(server, listen, 1, "").expect("it is there");
        let name = format!("{over}{killed:?}{target}").replace(|c: char| !c.is_alphanumeric(), "");
        php::gates(server, &name);
        php::open(server, &name, 0);
        let target = format!("{target}gates={name}");
        let whole = if over == "HTTP/1.1" {
            let mut page = Page::ask(server, &target);
            page.until("part 0\n");
            killed.kill(&php);
            is_whole(&[page.seen.into_bytes(), page.client.rest()].concat())
        } else {
            let mut client = H2Client::connect(server.port());
            let stream = client.get(&target);
            client.until("the first part", |c| {
                c.so_far(stream).text().contains("part 0\n")
            });
            killed.kill(&php);
            client.reply(stream).reset.is_none()
        };
        if whole {
            findings.push(format!("{over} {target} {killed:?}"));
        }
    }
    findings
}

/// A page without a length ends with an END_REQUEST record. If only the connection ends, the page is cut.
#[test]
fn page_is_cut_where_php_is_killed_in_it() {
    let mut findings = Vec::new();
    for (listen, keep) in [(Listen::Unix, false), (Listen::Tcp, true)] {
        let server = server(listen, keep);
        if php::start(&server, listen, 1, "").is_none() {
            return;
        }
        for killed in [Killed::Serving, Killed::All] {
            let mut targets = vec!["/unbuffered/app.php/parts?length=1&"];
            // nginx takes the end of the connection for that of the page, unless it was to be kept.
            if keep || peer::is_firstbyte() {
                targets.push("/unbuffered/app.php/parts?");
            }
            // nginx collects a buffered response before it sends a part.
            if peer::is_firstbyte() {
                targets.extend([
                    "/buffered/app.php/parts?",
                    "/buffered/app.php/parts?length=1&",
                ]);
            }
            for target in targets {
                findings.extend(cut(&server, listen, killed, target));
            }
        }
        let _php = php::start(&server, listen, 4, "");
        is_well(&server);
    }
    assert!(findings.is_empty(), "whole: {}", findings.join("\n"));
}

#[test]
fn killed_before_the_head_is_502() {
    for (listen, keep) in [(Listen::Unix, true), (Listen::Tcp, false)] {
        let server = server(listen, keep);
        for killed in [Killed::Serving, Killed::All] {
            let Some(php) = php::start(&server, listen, 1, "") else {
                return;
            };
            let name = format!("{killed:?}");
            php::gates(&server, &name);
            let mut client = server.client();
            client.send(request(
                "GET",
                &format!("/buffered/app.php/slow?gates={name}"),
                &[],
            ));
            php::wait_until_begun(&server, &name);
            killed.kill(&php);
            assert_eq!(client.response().status, 502, "{killed:?}");
            server.wait_for_text("error.log", "while reading response header from upstream");
            if matches!(killed, Killed::All) {
                drop(php);
                // Nobody listens now.
                assert_eq!(server.get("/buffered/app.php/page").status, 502);
                server.wait_for_text("error.log", "while connecting to upstream");
            }
        }
        let _php = php::start(&server, listen, 4, "");
        is_well(&server);
    }
}

#[test]
fn stopped_php_is_504_before_the_head_and_a_cut_after_it() {
    for (listen, keep) in [(Listen::Unix, false), (Listen::Tcp, true)] {
        let server = server(listen, keep);
        let Some(php) = php::start(&server, listen, 2, "") else {
            return;
        };
        php::gates(&server, "stopped");
        php::open(&server, "stopped", 0);
        let mut page = Page::ask(&server, "/hasty/app.php/parts?gates=stopped");
        page.until("part 0\n");
        php.signal_all(Signal::STOP);
        for _ in 0..2 {
            assert_eq!(server.get("/hasty/app.php/page").status, 504);
        }
        let over_h2 = H2Client::connect(server.port()).fetch("/hasty/app.php/page");
        assert_eq!(over_h2.status, 504);
        let bytes = [page.seen.into_bytes(), page.client.rest()].concat();
        assert!(!is_whole(&bytes), "{}", String::from_utf8_lossy(&bytes));
        let log = server.error_log();
        for place in ["reading response header from upstream", "reading upstream"] {
            let line = format!("upstream timed out (110: Connection timed out) while {place}");
            assert!(log.contains(&line), "{line}: {log}");
        }
        // A waiting client gets its page after PHP resumes.
        let mut patient = server.client();
        patient.send(request("GET", "/buffered/app.php/page", &[]));
        php.signal_all(Signal::CONT);
        assert_eq!(patient.response().text(), whole_page());
        is_well(&server);
    }
}

/// One process, and a queue of the kernel for those that wait.
#[test]
fn too_few_processes_are_504_and_a_full_queue_is_502() {
    let server = server(Listen::Unix, false);
    let Some(_php) = php::start(&server, Listen::Unix, 1, "listen.backlog = 1") else {
        return;
    };
    php::gates(&server, "busy");
    let mut busy = server.client();
    busy.send(request("GET", "/buffered/app.php/slow?gates=busy", &[]));
    php::wait_until_begun(&server, "busy");
    let mut clients: Vec<Client> = (0..8).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send(request("GET", "/hasty/app.php/page", &[]));
    }
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    for client in &mut clients {
        *statuses.entry(client.response().status).or_default() += 1;
    }
    // The kernel's queue is one longer than its limit. Queued clients wait; the others are refused.
    assert_eq!(statuses, BTreeMap::from([(502, 6), (504, 2)]));
    server.wait_for_text(
        "error.log",
        "failed (11: Resource temporarily unavailable) while connecting to upstream",
    );
    php::open(&server, "busy", 0);
    assert_eq!(busy.response().text(), "slow");
    is_well(&server);
}

/// php-fpm ends a request that takes too long itself.
#[test]
fn request_that_php_ends_is_502() {
    let server = server(Listen::Tcp, true);
    let more = "request_terminate_timeout = 1s";
    let Some(_php) = php::start(&server, Listen::Tcp, 1, more) else {
        return;
    };
    php::gates(&server, "ended");
    assert_eq!(server.get("/buffered/app.php/slow?gates=ended").status, 502);
    is_well(&server);
}

/// Results of clients: pages, errors, and pages with a visible cut.
#[derive(Debug, Default)]
struct Counts {
    whole: AtomicUsize,
    errors: AtomicUsize,
    cut: AtomicUsize,
    wrong: Mutex<Vec<String>>,
}

impl Counts {
    /// Counts a finished response.
    fn ended(&self, status: u16, text: &str) {
        let count = match status {
            200 if text == whole_page() => &self.whole,
            502 | 504 => &self.errors,
            _ => {
                let mut wrong = self.wrong.lock().expect("nobody panics with it");
                return wrong.push(format!("{status}, {} bytes", text.len()));
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn over_http1(&self, server: &Server) {
        let mut client = server.client();
        client.send(request("GET", "/buffered/app.php/page", &[]));
        match client.try_response() {
            Ok(Some(answer)) => self.ended(answer.status, &answer.text()),
            Ok(None) | Err(_) => drop(self.cut.fetch_add(1, Ordering::Relaxed)),
        }
    }

    fn over_http2(&self, server: &Server) {
        let reply = H2Client::connect(server.port()).fetch("/unbuffered/app.php/page");
        if reply.reset.is_some() {
            self.cut.fetch_add(1, Ordering::Relaxed);
        } else {
            self.ended(reply.status, &reply.text());
        }
    }

    /// Waits for this many more pages.
    #[track_caller]
    fn go_on_for(&self, pages: usize) {
        let before = self.whole.load(Ordering::Relaxed);
        wait_until("pages come", || {
            self.whole.load(Ordering::Relaxed) >= before + pages
        });
    }
}

/// During a restart, graceful or not, clients get whole pages or errors, and pages resume afterwards.
#[test]
fn restarts_under_load_give_no_half_pages() {
    for (listen, keep) in [
        (Listen::Unix, false),
        (Listen::Unix, true),
        (Listen::Tcp, true),
    ] {
        let server = server(listen, keep);
        let Some(mut php) = php::start(&server, listen, 4, "") else {
            return;
        };
        let (seen, stop) = (Counts::default(), AtomicBool::new(false));
        let goes_on = || !stop.load(Ordering::Relaxed);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while goes_on() {
                        seen.over_http1(&server)
                    }
                });
            }
            scope.spawn(|| {
                while goes_on() {
                    seen.over_http2(&server)
                }
            });
            seen.go_on_for(20);
            for _ in 0..2 {
                process::signal(php.pid(), Signal::USR2);
                pause(Duration::from_millis(100));
                seen.go_on_for(20);
            }
            for _ in 0..2 {
                php.signal_all(Signal::KILL);
                pause(Duration::from_millis(50));
                php = php::start(&server, listen, 4, "").expect("it is there");
                seen.go_on_for(20);
            }
            stop.store(true, Ordering::Relaxed);
        });
        let wrong = seen.wrong.lock().expect("nobody panics with it").clone();
        // nginx takes the end of a connection for that of a page, unless it was to be kept.
        let judged = keep || peer::is_firstbyte();
        assert!(!judged || wrong.is_empty(), "{listen:?} {keep}: {wrong:?}");
        assert!(seen.errors.load(Ordering::Relaxed) > 0, "{seen:?}");
        is_well(&server);
    }
}
