//! The wall clock is set while requests run: no connection ends by it, and the next ones are served.
//!
//! A preloaded library adds a number of seconds, read from a file, to the wall-clock results of clock_gettime(2) and
//! gettimeofday(2). It is compiled here; without a C compiler the test is skipped.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use firstbyte_tests::load::{BIG_BYTES, Download, Load};
use firstbyte_tests::server::OWN_BINARY;
use firstbyte_tests::skip::skip_outside_ci;
use firstbyte_tests::{Server, Signal, TempDir, peer, process, wait_until};

const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile long *offset;
__attribute__((constructor)) static void begin(void) {
    int fd = open(getenv("CLOCK_OFFSET"), O_RDONLY);
    void *at = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) offset = at;
    close(fd);
}
int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*next)(clockid_t, struct timespec *);
    if (!next) next = dlsym(RTLD_NEXT, "clock_gettime");
    int result = next(clock, time);
    if (offset && clock == CLOCK_REALTIME) time->tv_sec += *offset;
    return result;
}
int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return result;
}
"#;

const DAY_S: i64 = 86_400;

/// Makes the library and the file with the offset; false without a compiler.
fn make_library(dir: &TempDir) -> bool {
    dir.write("clock.c", SOURCE);
    dir.write("offset", 0_i64.to_ne_bytes());
    let place = |name: &str| dir.path().join(name);
    Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([place("clock.so"), place("clock.c")])
        .arg("-ldl")
        .status()
        .is_ok_and(|status| status.success())
}

/// Sets the seconds that the server adds to the clock from now on. The file is rewritten in place, since it is mapped.
fn jump(dir: &TempDir, offset_s: i64) {
    let file = fs::File::options()
        .write(true)
        .open(dir.path().join("offset"));
    let mut file = file.expect("it was made");
    file.write_all(&offset_s.to_ne_bytes()).expect("it is ours");
}

#[test]
fn a_clock_that_jumps_costs_no_request() {
    let library = TempDir::new();
    if !make_library(&library) {
        return skip_outside_ci("there is no C compiler");
    }
    let http = "keepalive_requests 10000000; keepalive_timeout 60s; open_file_cache max=10; open_file_cache_valid 1s;
         access_log %%DIR%%/access.log combined buffer=4k flush=1s;
         server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; location = /generation { return 200 g0; }
             location = /slow { limit_rate 1k; } }";
    let server = Server::http_with("worker_processes 2;", http)
        .file("html/t.txt", "text")
        .zeros("html/big", BIG_BYTES)
        .prepare(|dir| {
            let (place, binary) = (library.path().display(), peer::binary().display());
            let script = format!(
                "#!/bin/sh\nCLOCK_OFFSET={place}/offset LD_PRELOAD={place}/clock.so exec '{binary}' \"$@\"\n"
            );
            let path = dir.join(OWN_BINARY);
            fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
            fs::write(&path, script).expect("a script");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
        })
        .start();
    let year = |server: &Server| {
        let date = server.get("/t.txt").header("Date").map(str::to_owned);
        date.and_then(|date| date.split(' ').nth(3)?.parse::<i64>().ok())
    };
    let now = year(&server).expect("a date");
    let workers = server.workers();
    let mut slow = Download::begin(&server);
    let mut kept = server.client();
    assert_eq!(kept.get("/t.txt").status, 200);
    let mut half = server.client();
    half.send("GET /t.txt HTTP/1.1\r\nHost: loc");
    let load = Load::start(server.port(), 2, 4);
    let jumps = [DAY_S, -DAY_S, 3650 * DAY_S, -10_950 * DAY_S, 3600, 0];
    for (n, offset_s) in jumps.into_iter().enumerate() {
        jump(&library, offset_s);
        load.go_on_for(200);
        if offset_s.abs() > 1000 * DAY_S {
            let years = offset_s / (365 * DAY_S);
            wait_until("the date is that of the clock", || {
                year(&server).is_some_and(|year| (year - now - years).abs() <= 1)
            });
        }
        let next = format!("200 g{};", n + 1);
        server.rewrite_conf(|text| text.replace(&format!("200 g{n};"), &next));
        server.signal(Signal::HUP);
        wait_until("a reload is taken", || {
            next.contains(&server.get("/generation").text())
        });
        if peer::is_firstbyte() {
            assert_eq!(kept.get("/t.txt").text(), "text", "a kept connection lives");
        }
    }
    let figures = load.stop();
    assert_eq!(figures.failed + figures.cut, 0, "{figures:?}");
    if peer::is_firstbyte() {
        assert_eq!(figures.ended + figures.reset, 0, "{figures:?}");
        assert_eq!(server.workers(), workers);
    }
    half.send("alhost\r\n\r\n");
    assert_eq!(half.response().text(), "text", "its time has not passed");
    assert!(slow.is_whole());
    // Idle again, nothing spins because of a time that is past.
    let before = process::cpu_ticks(workers[0]);
    assert!(
        !server
            .client()
            .has_bytes_within(std::time::Duration::from_millis(500))
    );
    let spent = process::cpu_ticks(workers[0]) - before;
    assert!(spent <= 10, "{spent} hundredths of a second while idle");
}
