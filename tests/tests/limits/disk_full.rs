//! A full disk: only the data that cannot be written are lost.
//!
//! Every write to `/dev/full` fails with ENOSPC. If the tests may mount, uploads go to a small file system. Source:
//! full(4); nginx documentation, `access_log`, `client_body_temp_path`.

use std::os::unix::fs::symlink;

use firstbyte_tests::client::request;
use firstbyte_tests::load::Load;
use firstbyte_tests::small_disk::on_small_disk;
use firstbyte_tests::{Server, Signal, peer, wait_until};

#[test]
fn logs_without_room_cost_no_request() {
    let http = "access_log /dev/full; access_log %%DIR%%/full1 combined buffer=4k flush=10ms;
         access_log %%DIR%%/full2 combined gzip; keepalive_requests 10000000;
         server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; location = /generation { return 200 g1; }
             location /missing { log_not_found on; } }";
    let server = Server::http_with("error_log /dev/full debug;", http)
        .file("html/t.txt", "text")
        .prepare(|dir| {
            for name in ["full1", "full2"] {
                symlink("/dev/full", dir.join(name)).expect("a link");
            }
        })
        .start();
    let worker = server.workers();
    let load = Load::start(server.port(), 2, 4);
    for n in 1..=3 {
        load.go_on_for(200);
        assert_eq!(server.get("/missing").status, 404);
        server.signal(Signal::USR1);
        server
            .rewrite_conf(|text| text.replace(&format!("200 g{n};"), &format!("200 g{};", n + 1)));
        server.signal(Signal::HUP);
        let wanted = format!("g{}", n + 1);
        wait_until("the configuration is taken", || {
            server.get("/generation").text() == wanted
        });
    }
    let figures = load.stop();
    assert_eq!(figures.failed + figures.cut, 0, "{figures:?}");
    if peer::is_firstbyte() {
        assert_eq!(figures.ended + figures.reset, 0, "{figures:?}");
        assert_eq!(server.workers(), worker);
    }
}

#[test]
fn a_log_that_cannot_be_written_is_told_of_and_not_in_every_line() {
    let http = "access_log /dev/full; access_log %%DIR%%/full combined buffer=4k flush=10ms;
         server { listen 127.0.0.1:%%PORT%%; return 200 ok; }";
    let server = Server::http(http)
        .prepare(|dir| symlink("/dev/full", dir.join("full")).expect("a link"))
        .allow("write() to")
        .start();
    let paths = [
        "/dev/full".to_owned(),
        server.path("full").display().to_string(),
    ];
    let text = |path| format!("write() to \"{path}\" failed (28: No space left on device)");
    let told = paths.map(text);
    wait_until("both are told of", || {
        assert_eq!(server.get("/").text(), "ok");
        let log = server.error_log();
        told.iter().all(|text| log.contains(text))
    });
    for _ in 0..100 {
        assert_eq!(server.get("/").text(), "ok");
    }
    if peer::is_firstbyte() {
        // nginx logs it for each buffer that a timer has written.
        let log = server.error_log();
        for text in &told {
            assert_eq!(log.matches(text).count(), 1, "{log}");
        }
    }
}

#[test]
fn uploads_without_room_are_refused_and_the_next_ones_served() {
    let http = "server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/small/html; create_full_put_path on;
         client_max_body_size 0; client_body_buffer_size 1k; client_body_temp_path %%DIR%%/small/body; dav_methods PUT DELETE; }";
    let Some(server) = on_small_disk(Server::http(http), 96) else {
        return;
    };
    let server = server.start();
    let put = |bytes: usize| {
        let length = format!("Content-Length: {bytes}");
        let mut client = server.client();
        client.send(request("PUT", "/file", &[&length, "Connection: close"]));
        // The server may respond before it has the whole body.
        client.send(vec![b'x'; bytes]);
        client.response().status
    };
    assert_eq!(put(1000), 201);
    for _ in 0..3 {
        assert_eq!(put(40_000), 204, "there is room for one");
        assert_eq!(put(60_000), 500, "there is none for more");
    }
    assert_eq!(put(1000), 204, "nothing of those is left");
    let left = server.client().get("/file").body.len();
    assert_eq!(left, 1000);
}
