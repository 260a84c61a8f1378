//! Stored responses over reloads and changes of the binary: clients get nothing but hits.
//!
//! With `LAB_LONG` set, each step has 4,000 hits, at a rate of at least 2,000 a second.
//!
//! Source: nginx documentation, "Controlling nginx", `proxy_cache_path`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use firstbyte_tests::backend::Backend;
use firstbyte_tests::change::{change, install};
use firstbyte_tests::client::request;
use firstbyte_tests::{Client, Response, Server, Signal, peer, wait_until};

use crate::cache_server::{cached_with, files, fill, get, numbered, status_of};

/// Lines of a response that is fresh in the whole test.
const HOUR: &[&str] = &["Cache-Control: max-age=3600"];
/// Stored responses that are requested all the time.
const STORED: usize = 20;
/// Threads of clients.
const THREADS: usize = 4;
/// Requests of a connection.
const REQUESTS: usize = 50;
const RELOADS: usize = 6;
/// The smallest rate of hits with `LAB_LONG`, a second.
const RATE: f64 = 2000.0;

fn is_long() -> bool {
    std::env::var_os("LAB_LONG").is_some()
}

/// Number of hits after each change.
fn hits_a_step() -> usize {
    if is_long() { 4000 } else { 200 }
}

/// A server with a number in each response, which a reload changes.
fn server(backend: &Backend) -> Server {
    let number = "add_header X-Generation g0 always;";
    let builder = cached_with(number, backend, "");
    builder.prepare(|dir| install(dir, peer::binary())).start()
}

/// Reloads, with another change of the configuration, and waits until it is served.
#[track_caller]
fn reload(server: &Server, number: usize, change: impl FnOnce(String) -> String) {
    let (before, now) = (format!("g{}", number - 1), format!("g{number}"));
    let (from, to) = (
        format!("X-Generation {before} "),
        format!("X-Generation {now} "),
    );
    server.rewrite_conf(|text| change(text.replace(&from, &to)));
    server.signal(Signal::HUP);
    wait_until("the configuration is served", || {
        server.get("/plain").header("X-Generation") == Some(&now)
    });
}

/// Clients that request stored responses without a pause.
struct Hits {
    counts: Arc<Counts>,
    threads: Vec<JoinHandle<()>>,
    begun: Instant,
}

#[derive(Default)]
struct Counts {
    stop: AtomicBool,
    hits: AtomicUsize,
    faults: Mutex<Vec<String>>,
}

impl Hits {
    fn start(port: u16) -> Self {
        let counts = Arc::new(Counts::default());
        let thread = |n| {
            let counts = Arc::clone(&counts);
            thread::spawn(move || counts.request_all(port, n))
        };
        let threads = (0..THREADS).map(thread).collect();
        let begun = Instant::now();
        Self {
            counts,
            threads,
            begun,
        }
    }

    /// Waits for a number of further hits.
    #[track_caller]
    fn go_on_for(&self, count: usize) {
        let before = self.count();
        wait_until("the hits go on", || {
            self.count() > before + count || self.counts.has_faults()
        });
    }

    /// Ends the clients, and asserts that each response was a hit.
    #[track_caller]
    fn stop(self, during: &str) {
        let (taken, hits) = (self.begun.elapsed(), self.count());
        self.counts.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a client ends");
        }
        let faults = self.counts.faults.lock().expect("no client panics");
        assert!(
            faults.is_empty(),
            "{} faults: {:?}",
            faults.len(),
            faults.first()
        );
        let rate = hits as f64 / taken.max(Duration::from_millis(1)).as_secs_f64();
        println!("{hits} hits over {during}, {rate:.0} a second");
        assert!(!is_long() || rate >= RATE, "{rate:.0} hits a second");
    }

    fn count(&self) -> usize {
        self.counts.hits.load(Ordering::Relaxed)
    }
}

impl Counts {
    fn has_faults(&self) -> bool {
        self.faults.lock().is_ok_and(|faults| !faults.is_empty())
    }

    /// Requests stored responses, on connections for [`REQUESTS`] each. A server may end one between two responses.
    fn request_all(&self, port: u16, thread: usize) {
        let mut number = thread;
        while !self.stop.load(Ordering::Relaxed) {
            let mut client = match Client::try_connect_to("127.0.0.1", port) {
                Ok(client) => client,
                Err(error) => {
                    self.fault(format!("connect: {error}"));
                    continue;
                }
            };
            for at in 0..REQUESTS {
                number = (number + 1) % STORED;
                let path = format!("/{number}");
                client.send(request("GET", &path, &[]));
                match client.try_response() {
                    Ok(Some(answer)) => self.judge(&path, &answer),
                    Ok(None) if at > 0 => break,
                    Err(error) if at > 0 && is_reset(&error) => break,
                    other => {
                        self.fault(format!("{path}, request {at}: {other:?}"));
                        break;
                    }
                }
            }
        }
    }

    fn judge(&self, path: &str, answer: &Response) {
        let text = answer.text();
        let is_hit = answer.status == 200 && status_of(answer) == "HIT";
        if is_hit && text.starts_with(&format!("<{path} ")) && text.ends_with('>') {
            self.hits.fetch_add(1, Ordering::Relaxed);
        } else {
            self.fault(format!("{path}: {answer:?}"));
        }
    }

    fn fault(&self, text: String) {
        let mut faults = self.faults.lock().expect("no client panics");
        faults.push(text);
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn is_reset(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::ConnectionReset
}

#[test]
fn reloads_under_hits_keep_all_of_them() {
    let backend = numbered(HOUR);
    let server = server(&backend);
    for n in 0..STORED {
        fill(&server, &format!("/{n}"));
    }
    let hits = Hits::start(server.port());
    for number in 1..=RELOADS {
        reload(&server, number, |text| text);
        hits.go_on_for(hits_a_step());
    }
    hits.stop("six reloads");
    assert_eq!(backend.request_count(), STORED);
}

#[test]
fn a_change_of_the_binary_under_hits_keeps_all_of_them() {
    let backend = numbered(HOUR);
    let mut server = server(&backend);
    for n in 0..STORED {
        fill(&server, &format!("/{n}"));
    }
    let hits = Hits::start(server.port());
    let _new = change(&server);
    hits.go_on_for(hits_a_step());
    server.signal(Signal::QUIT);
    assert_eq!(server.wait_for_exit(), 0);
    server.adopt("nginx.pid");
    hits.go_on_for(hits_a_step());
    hits.stop("a change of the binary");
    assert_eq!(backend.request_count(), STORED);
    get(&server, "/0", "HIT");
}

/// Entries of `keys_zone` with 32 kilobytes: 8,000 a megabyte.
const SMALL_ZONE: usize = 250;
/// An eighth is free after an eviction.
const KEPT: usize = SMALL_ZONE - SMALL_ZONE / 8 - 1;

/// The time in seconds since 1970.
fn unix_s() -> u64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    time.expect("it is after 1970").as_secs()
}

/// nginx refuses another size of a zone that is in use.
#[test]
fn a_reload_with_another_size_keeps_entries_that_fit() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = numbered(HOUR);
    let server = server(&backend);
    let count = SMALL_ZONE + 50;
    for n in 0..count {
        get(&server, &format!("/{n}"), "MISS");
    }
    wait_until("all are stored", || files(&server).len() == count);
    reload(&server, 1, |text| text.replace("one:1m", "one:2m"));
    for n in 0..count {
        if n == count - KEPT {
            // Times of use are whole seconds.
            let start_s = unix_s();
            wait_until("a second has passed", || unix_s() > start_s + 1);
        }
        get(&server, &format!("/{n}"), "HIT");
    }
    reload(&server, 2, |text| text.replace("one:2m", "one:32k"));
    wait_until("entries without a place are removed", || {
        files(&server).len() <= SMALL_ZONE
    });
    for n in (count - KEPT..count).rev() {
        get(&server, &format!("/{n}"), "HIT");
    }
    assert_eq!(backend.request_count(), count);
}
