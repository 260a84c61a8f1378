//! Mirrors with real servers: silent, slow and broken ones delay no client, and bodies reach servers and mirrors.
//!
//! Sources: nginx documentation, ngx_http_mirror_module; docs/differences.md.

use std::path::Path;

use firstbyte_tests::backend::{Backend, Gate, Step, answer, ok, send};
use firstbyte_tests::client::request;
use firstbyte_tests::dir::set_mode;
use firstbyte_tests::port::Port;
use firstbyte_tests::{Builder, Client, H2Client, Server, Signal, peer, wait_until};

/// A server that passes requests on and mirrors them, each by its own group; these directives are in the location and in
/// that of the mirror.
fn mirrored(behind: &Backend, mirror: &str, location: &str, copies: &str) -> Builder {
    Server::http_with(
        "worker_processes 1;",
        &format!(
            "upstream behind {{ server {}; }}
             upstream mirrors {{ server {mirror}; }}
             server {{ listen 127.0.0.1:%%PORT%%; http2 on;
                 location / {{ proxy_pass http://behind; mirror /mirror; {location} }}
                 location /mirror {{ internal; proxy_pass http://mirrors; {copies} }}
                 location = /generation {{ return 200 g0; }} }}",
            behind.name()
        ),
    )
}

fn own() -> Backend {
    Backend::answering(|_| ok("own"))
}

fn silent() -> Backend {
    Backend::answering(|_| vec![Step::Hold])
}

/// nginx holds the connection until the mirror has answered.
#[test]
fn a_connection_takes_its_next_request_while_mirrors_are_silent() {
    let (behind, mirror) = (own(), silent());
    let server = mirrored(&behind, &mirror.name(), "", "").start();
    let mut client = server.client();
    let times = if peer::is_firstbyte() { 5 } else { 1 };
    for n in 1..=times {
        assert_eq!(client.get("/").text(), "own", "request {n}");
        wait_until("the mirror has it", || mirror.request_count() == n);
    }
    assert_eq!(behind.accepted(), 1);
    assert_eq!(mirror.open(), times, "each waits for its answer");
    // The end of the server waits for mirrors.
    drop(mirror);
}

#[test]
fn streams_of_a_connection_are_mirrored() {
    let (behind, mirror) = (own(), silent());
    let server = mirrored(&behind, &mirror.name(), "", "").start();
    let mut client = H2Client::connect(server.port());
    for _ in 0..3 {
        assert_eq!(client.fetch("/").text(), "own");
    }
    wait_until("the mirror has them", || mirror.request_count() == 3);
    drop(mirror);
}

/// The mirror has no listener, or it resets each connection.
#[test]
fn a_mirror_that_is_down_changes_no_response() {
    let port = Port::reserve();
    let nobody = format!("127.0.0.1:{}", port.number());
    let resets = Backend::answering(|_| vec![Step::Reset]);
    for mirror in [nobody, resets.name()] {
        let behind = own();
        let server = mirrored(&behind, &mirror, "", "").start();
        let mut client = server.client();
        for _ in 0..20 {
            assert_eq!(client.get("/").text(), "own");
        }
        server.wait_for_text("error.log", "subrequest: \"/mirror\"");
    }
}

#[test]
fn bodies_in_memory_and_in_files_reach_both() {
    let (behind, mirror) = (own(), own());
    let location = "client_body_buffer_size 16k; proxy_request_buffering off;";
    let server = mirrored(&behind, &mirror.name(), location, "").start();
    for len in [1, 16_000, 300_000] {
        let body: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
        let mut client = server.client();
        client.send(request("PUT", "/", &[&format!("Content-Length: {len}")]));
        client.send(&body);
        assert_eq!(client.response().status, 200);
        wait_until("the mirror has it", || {
            mirror
                .requests()
                .last()
                .is_some_and(|r| r.whole && r.body == body)
        });
        assert!(behind.latest().body == body, "{len}");
        assert_eq!(mirror.latest().method(), "PUT");
    }
}

/// The response has left, the mirror still reads the file.
#[test]
fn a_file_with_a_body_stays_until_the_mirror_has_ended() {
    let gate = Gate::default();
    let opened = gate.clone();
    let behind = own();
    let mirror = Backend::answering(move |_| [vec![Step::Gate(opened.clone())], ok("")].concat());
    let server = mirrored(
        &behind,
        &mirror.name(),
        "client_body_in_file_only clean;",
        "proxy_set_header X-File $request_body_file;",
    )
    .start();
    let mut client = server.client();
    client.send(request("POST", "/", &["Content-Length: 4"]) + "body");
    assert_eq!(client.response().text(), "own");
    let copy = mirror.latest();
    let file = copy.header("X-File").expect("it is set").to_owned();
    assert_eq!(std::fs::read(&file).expect("it is there"), b"body");
    gate.open();
    wait_until("it is removed", || !Path::new(&file).exists());
}

#[test]
fn a_client_that_leaves_ends_no_mirror() {
    let gate = Gate::default();
    let opened = gate.clone();
    let behind = own();
    let mirror = Backend::answering(move |_| [vec![Step::Gate(opened.clone())], ok("")].concat());
    let copies = "log_subrequest on; access_log %%DIR%%/copies.log copies;";
    let server = Server::http(&format!(
        "log_format copies '$uri $status $upstream_status.';
         server {{ listen 127.0.0.1:%%PORT%%;
             location / {{ proxy_pass http://{}; mirror /mirror; }}
             location /mirror {{ internal; proxy_pass http://{}; {copies} }} }}",
        behind.name(),
        mirror.name()
    ))
    .start();
    let mut client = server.client();
    assert_eq!(client.get("/").text(), "own");
    client.reset();
    let _ = mirror.latest();
    gate.open();
    server.wait_for_text("copies.log", "/mirror 200 200.");
}

#[test]
fn a_connection_to_a_mirror_is_kept_after_a_small_response_and_closed_within_a_large_one() {
    let behind = own();
    let small = Backend::answering(|_| answer("500 Failed", &[], "x".repeat(10_000)));
    let copies = "log_subrequest on; access_log %%DIR%%/copies.log;";
    let server = mirrored(&behind, &small.name(), "", copies).start();
    if !peer::is_firstbyte() {
        return;
    }
    for n in 1..=5 {
        assert_eq!(server.get("/").text(), "own");
        // A connection with a response in progress is not free.
        wait_until("the response has ended", || {
            server.dir().read("copies.log").lines().count() == n
        });
    }
    assert_eq!(small.accepted(), 1);
    let endless = Backend::answering(|_| {
        vec![
            send("HTTP/1.1 200 OK\r\n\r\n"),
            Step::Fill(1 << 30),
            Step::Hold,
        ]
    });
    let server = mirrored(&behind, &endless.name(), "", "").start();
    assert_eq!(server.get("/").text(), "own");
    wait_until("the mirror has it", || endless.request_count() == 1);
    wait_until("its connection is closed", || endless.open() == 0);
}

/// The log has a line about the first copy that was not made.
#[test]
fn mirror_max_limits_copies_in_progress_also_over_reloads() {
    if !peer::is_firstbyte() {
        return;
    }
    let (behind, mirror) = (own(), silent());
    let server = mirrored(&behind, &mirror.name(), "mirror_max 2;", "").start();
    let mut client = server.client();
    for _ in 0..2 {
        assert_eq!(client.get("/").text(), "own");
    }
    wait_until("both are there", || mirror.request_count() == 2);
    assert!(!server.error_log().contains("not mirrored"));
    for generation in 1..=3 {
        assert_eq!(client.get("/").text(), "own");
        let text = "requests were not mirrored to \"/mirror\": 2 others are in progress";
        server.wait_for_text("error.log", text);
        let (before, now) = (format!("g{}", generation - 1), format!("g{generation}"));
        server.rewrite_conf(|text| text.replace(&before, &now));
        server.signal(Signal::HUP);
        wait_until("it is taken", || client.get("/generation").text() == now);
    }
    assert_eq!((mirror.request_count(), mirror.open()), (2, 2));
    drop(mirror);
}

/// Each mirror is below its `mirror_max`; four of them would take all `worker_connections`.
#[test]
fn mirrors_together_leave_connections_to_clients() {
    /// Copies of a thread.
    const MOST: usize = 256;
    if !peer::is_firstbyte() {
        return;
    }
    let (behind, mirror) = (own(), silent());
    let others = "mirror /mirror/2; mirror /mirror/3; mirror /mirror/4;";
    let server = mirrored(&behind, &mirror.name(), others, "").start();
    let mut client = server.client();
    for _ in 0..MOST / 4 {
        assert_eq!(client.get("/").text(), "own");
    }
    wait_until("all are there", || mirror.request_count() == MOST);
    assert!(!server.error_log().contains("not mirrored"));
    assert_eq!(client.get("/").text(), "own");
    let text = format!("{MOST} others of all mirrors are in progress");
    server.wait_for_text("error.log", &text);
    assert_eq!((mirror.request_count(), mirror.open()), (MOST, MOST));
    drop(mirror);
}

/// Servers with a mirror of the same name have counts of their own.
#[test]
fn mirror_max_counts_copies_of_each_server() {
    if !peer::is_firstbyte() {
        return;
    }
    let (behind, mirror) = (own(), silent());
    let site = |port: &str| {
        let (own, copies) = (behind.name(), mirror.name());
        format!(
            "server {{ listen 127.0.0.1:%%{port}%%;
                 location / {{ proxy_pass http://{own}; mirror /mirror; mirror_max 1; }}
                 location /mirror {{ internal; proxy_pass http://{copies}; }} }}"
        )
    };
    let server = Server::http(&[site("PORT"), site("PORT2")].concat()).start();
    let mut clients = [1, 2].map(|n| Client::connect(server.port_number(n)));
    for copies in [1, 2] {
        assert_eq!(clients[copies - 1].get("/").text(), "own");
        wait_until("the mirror has it", || mirror.request_count() == copies);
        assert_eq!(clients[copies - 1].get("/").text(), "own");
    }
    let text = "requests were not mirrored to \"/mirror\": 1 others are in progress";
    wait_until("both are refused", || {
        server.error_log().matches(text).count() == 2
    });
    assert_eq!(mirror.request_count(), 2);
    drop(mirror);
}

/// The copies exceed `limit_conn` of their location, which only counts them.
#[test]
fn a_dry_run_of_limit_conn_leaves_the_counts_of_mirror_max() {
    if !peer::is_firstbyte() {
        return;
    }
    let (behind, mirror) = (own(), silent());
    let server = Server::http_with(
        "worker_processes 1;",
        &format!(
            "limit_conn_zone $host zone=copies:1m;
             server {{ listen 127.0.0.1:%%PORT%%;
                 location / {{ proxy_pass http://{}; mirror /mirror; mirror_max 2; }}
                 location /mirror {{ internal; limit_conn copies 1; limit_conn_dry_run on; proxy_pass http://{}; }} }}",
            behind.name(),
            mirror.name()
        ),
    )
    .start();
    let mut client = server.client();
    for copies in [1, 2] {
        assert_eq!(client.get("/").text(), "own");
        wait_until("the mirror has it", || mirror.request_count() == copies);
    }
    server.wait_for_text("error.log", "limiting connections, dry run, by zone");
    assert_eq!(client.get("/").text(), "own");
    server.wait_for_text("error.log", "not mirrored to \"/mirror\": 2 others");
    drop(mirror);
}

/// nginx stores it only with buffering, as here.
#[test]
fn a_response_that_is_stored_is_read_to_its_end() {
    const BYTES: usize = 300_000;
    let behind = own();
    let mirror = Backend::answering(|_| ok("x".repeat(BYTES)));
    let copies = "proxy_store %%DIR%%/kept/copy;";
    let server = mirrored(&behind, &mirror.name(), "", copies)
        .prepare(|dir| {
            let kept = dir.join("kept");
            std::fs::create_dir(&kept).expect("the folder is the test's");
            set_mode(&kept, 0o777);
        })
        .start();
    assert_eq!(server.get("/").text(), "own");
    let stored = server.path("kept/copy");
    wait_until("it is stored", || stored.exists());
    let length = std::fs::metadata(stored).expect("it is there").len();
    assert_eq!(length, BYTES as u64);
}

/// Clients that leave end no mirror, and free no place for another one; the end of a mirror does.
#[test]
fn places_of_mirrors_are_free_once_the_mirrors_have_ended() {
    if !peer::is_firstbyte() {
        return;
    }
    let gate = Gate::default();
    let opened = gate.clone();
    let behind = own();
    let mirror = Backend::answering(move |_| [vec![Step::Gate(opened.clone())], ok("")].concat());
    let server = mirrored(&behind, &mirror.name(), "mirror_max 2;", "").start();
    for copies in [1, 2] {
        let mut client = server.client();
        assert_eq!(client.get("/").text(), "own");
        wait_until("the mirror has it", || mirror.request_count() == copies);
        client.reset();
    }
    assert_eq!(server.get("/").text(), "own");
    server.wait_for_text("error.log", "not mirrored to \"/mirror\": 2 others");
    assert_eq!((mirror.request_count(), mirror.open()), (2, 2));
    gate.open();
    wait_until("a request is mirrored again", || {
        assert_eq!(server.get("/").text(), "own");
        mirror.request_count() > 2
    });
}

/// A reload ends no mirror.
#[test]
fn a_mirror_in_progress_outlives_a_reload() {
    let gate = Gate::default();
    let opened = gate.clone();
    let behind = own();
    let mirror = Backend::answering(move |_| [vec![Step::Gate(opened.clone())], ok("")].concat());
    let copies = "log_subrequest on; access_log %%DIR%%/copies.log;";
    let server = mirrored(&behind, &mirror.name(), "", copies).start();
    assert_eq!(server.get("/").text(), "own");
    let _ = mirror.latest();
    server.rewrite_conf(|text| text.replace("g0", "g1"));
    server.signal(Signal::HUP);
    wait_until("it is taken", || server.get("/generation").text() == "g1");
    gate.open();
    server.wait_for_text("copies.log", "\" 200 ");
}

/// Directives of the location of a mirror that log its end.
const LOGGED: &str = "log_subrequest on; access_log %%DIR%%/copies.log;";

/// A server of which requests to the mirror wait for a gate, with a time limit of its end.
fn ending(main: &str, behind: &Backend, gate: &Gate) -> (Server, Backend) {
    let opened = gate.clone();
    let mirror = Backend::answering(move |_| [vec![Step::Gate(opened.clone())], ok("")].concat());
    let server = Server::http_with(
        &format!("worker_processes 1; {main}"),
        &format!(
            "server {{ listen 127.0.0.1:%%PORT%%;
                 location / {{ proxy_pass http://{}; mirror /mirror; }}
                 location /mirror {{ internal; proxy_pass http://{}; {LOGGED} }}
                 location = /generation {{ return 200 g0; }} }}",
            behind.name(),
            mirror.name()
        ),
    )
    .start();
    assert_eq!(server.get("/").text(), "own");
    let _ = mirror.latest();
    (server, mirror)
}

#[test]
fn the_end_of_a_server_waits_for_its_mirrors() {
    let (gate, behind) = (Gate::default(), own());
    let (mut server, mirror) = ending("", &behind, &gate);
    server.signal(Signal::QUIT);
    wait_until("it accepts no connection", || {
        Client::try_connect_to("127.0.0.1", server.port()).is_err()
    });
    assert_eq!(mirror.open(), 1);
    gate.open();
    assert_eq!(server.wait_for_exit(), 0);
    server.wait_for_text("copies.log", "\" 200 ");
}

#[test]
fn worker_shutdown_timeout_bounds_mirrors() {
    if !peer::is_firstbyte() {
        return;
    }
    let main = "worker_shutdown_timeout 200ms;";
    let (gate, behind) = (Gate::default(), own());
    let (mut server, _mirror) = ending(main, &behind, &gate);
    server.signal(Signal::QUIT);
    assert_eq!(server.wait_for_exit(), 0);
    server.wait_for_text("copies.log", "\" 499 ");
    // Mirrors of an old configuration.
    let (server, _mirror) = ending(main, &behind, &gate);
    server.rewrite_conf(|text| text.replace("g0", "g1"));
    server.signal(Signal::HUP);
    server.wait_for_text("copies.log", "\" 499 ");
    assert_eq!(server.get("/generation").text(), "g1");
}

#[test]
fn a_fast_end_waits_for_no_mirror() {
    let (gate, behind) = (Gate::default(), own());
    let (mut server, _mirror) = ending("", &behind, &gate);
    server.signal(Signal::TERM);
    assert_eq!(server.wait_for_exit(), 0);
    gate.open();
}
