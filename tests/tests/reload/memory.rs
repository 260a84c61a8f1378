//! Memory of a worker after many reloads of a large configuration: no higher than after a few.
//!
//! A configuration takes 19 MB here. Memory of the old one is returned to the system in whole pages. Fragments between
//! remaining allocations vary by half a megabyte from one reload to the next, without a trend. So the maximum of the
//! first three reloads is the reference.

use firstbyte_tests::{Server, Signal, peer, wait};

/// Server blocks, each with three locations.
const SERVERS: usize = 3000;
/// How much higher memory may be, in hundredths.
const MORE_HUNDREDTHS: u64 = 3;

fn conf() -> String {
    let mut text =
        "server { listen 127.0.0.1:%%PORT%%; location = /generation { return 200 g0; } }\n"
            .to_owned();
    for n in 0..SERVERS {
        text += &format!(
            "server {{ listen 127.0.0.1:%%PORT%%; server_name s{n}.test www.s{n}.test; root /srv/{n};\n\
             location / {{ index index.html; }}\n\
             location /assets/ {{ expires 30d; }}\n\
             location = /about {{ return 200 about; }} }}\n"
        );
    }
    text
}

/// Anonymous memory of the worker, in KiB.
fn anonymous_kib(server: &Server) -> u64 {
    let path = format!("/proc/{}/smaps_rollup", server.workers()[0]);
    let text = std::fs::read_to_string(path).expect("the worker lives");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Anonymous:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kib = kib.and_then(|kib| kib.trim().parse().ok());
    kib.expect("the kernel counts it")
}

fn reload(server: &Server, number: usize) {
    let (old, new) = (format!("g{}", number - 1), format!("g{number}"));
    server.rewrite_conf(|text| {
        text.replace(&format!("return 200 {old};"), &format!("return 200 {new};"))
    });
    server.signal(Signal::HUP);
    wait::wait_until("the new configuration answers", || {
        server.get("/generation").text() == new
    });
}

#[test]
fn ten_reloads_take_no_more_memory_than_three() {
    if !peer::is_firstbyte() {
        // In nginx another worker serves then, and the old one ends.
        return;
    }
    let server = Server::http(&conf()).start();
    assert_eq!(server.get("/generation").text(), "g0");
    let start = anonymous_kib(&server);
    let mut few = 0;
    for number in 1..=10 {
        reload(&server, number);
        // Two configurations take nearly twice as much.
        wait::wait_until("the old configuration is let go", || {
            anonymous_kib(&server) < start + start / 2
        });
        if number <= 3 {
            few = few.max(anonymous_kib(&server));
        }
    }
    let most = few * (100 + MORE_HUNDREDTHS) / 100;
    let many = || anonymous_kib(&server);
    let comes_down = wait::holds_within(wait::DEADLINE, || many() <= most);
    println!("after three reloads {few} KiB, after ten {} KiB", many());
    assert!(comes_down, "{few} KiB, then {} KiB", many());
}
