//! Reloads under proxied requests: connections to upstream servers stay, and requests in progress end by their old
//! configuration.
//!
//! X-Accel-Redirect serves files in their current state, even if the application wrote them just before. Sources: nginx
//! documentation, "Controlling nginx", `keepalive`, X-Accel-Redirect; docs/differences.md.

use std::path::PathBuf;

use firstbyte_tests::backend::{Backend, Gate, Step, answer, chunk, ok, send};
use firstbyte_tests::client::request;
use firstbyte_tests::{Builder, H2Client, Server, Signal, TempDir, peer, wait_until};

fn grouped(backend: &Backend) -> Builder {
    Server::http_with(
        "worker_processes 1;",
        &format!(
            "upstream behind {{ server {}; }}
             server {{ listen 127.0.0.1:%%PORT%%; http2 on;
                 location / {{ proxy_pass http://behind; }}
                 location = /generation {{ return 200 g0; }} }}",
            backend.name()
        ),
    )
}

/// Makes the server read its configuration again, the generation being one more.
#[track_caller]
fn reload(server: &Server, generation: usize) {
    let before = format!("200 g{};", generation - 1);
    let now = format!("g{generation}");
    server.rewrite_conf(|text| text.replace(&before, &format!("200 {now};")));
    server.signal(Signal::HUP);
    wait_until("the configuration is taken", || {
        server.get("/generation").text() == now
    });
}

/// nginx closes them all with its old worker.
#[test]
fn idle_connections_to_servers_survive_reloads() {
    let backend = Backend::answering(|r| ok(format!("{} {}", r.connection, r.number)));
    let server = grouped(&backend).start();
    assert_eq!(server.get("/").text(), "1 1");
    for n in 1..=6 {
        reload(&server, n);
        let text = server.get("/").text();
        if peer::is_firstbyte() {
            assert_eq!(text, format!("1 {}", n + 1), "reload {n}");
        }
    }
}

/// A reload replaces the group's server.
#[test]
fn servers_that_are_gone_from_the_group_are_asked_no_more() {
    let (old, new) = (
        Backend::answering(|_| ok("old")),
        Backend::answering(|_| ok("new")),
    );
    let server = grouped(&old).start();
    assert_eq!(server.get("/").text(), "old");
    let (from, to) = (
        format!("server {};", old.name()),
        format!("server {};", new.name()),
    );
    server.rewrite_conf(|text| text.replace(&from, &to));
    reload(&server, 1);
    // The old worker of nginx may still accept.
    wait_until("it is asked", || server.get("/").text() == "new");
    if peer::is_firstbyte() {
        for _ in 0..10 {
            assert_eq!(server.get("/").text(), "new");
        }
        assert_eq!(old.request_count(), 1);
    }
}

#[test]
fn requests_in_progress_end_as_they_began() {
    let gate = Gate::default();
    let of_script = gate.clone();
    let backend = Backend::answering(move |r| match r.target() {
        "/late" => [vec![Step::Gate(of_script.clone())], ok("late")].concat(),
        "/half" => vec![
            send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            chunk("first "),
            Step::Gate(of_script.clone()),
            chunk("second"),
            send("0\r\n\r\n"),
        ],
        _ => ok(r.body.len().to_string()),
    });
    let server = grouped(&backend).start();
    let mut late = server.client();
    late.send(request("GET", "/late", &[]));
    let mut half = server.client();
    half.send(request("GET", "/half", &[]));
    let mut h2 = H2Client::connect(server.port());
    let (first, second) = (h2.get("/late"), h2.get("/half"));
    let mut upload = server.client();
    upload.send(request("POST", "/", &["Content-Length: 10"]) + "first");
    h2.settle();
    wait_until("all are there", || backend.request_count() == 4);
    for n in 1..=3 {
        reload(&server, n);
    }
    gate.open();
    assert_eq!(late.response().text(), "late");
    assert_eq!(half.response().text(), "first second");
    assert_eq!(h2.reply(first).text(), "late");
    assert_eq!(h2.reply(second).text(), "first second");
    upload.send("final");
    assert_eq!(upload.response().text(), "10");
}

/// A server with an application that writes a file for each request and then names it.
fn writing(
    directives: &str,
    write: impl Fn(&PathBuf, usize) + Send + Sync + 'static,
) -> (TempDir, Backend, Server) {
    let dir = TempDir::new();
    let file = dir.path().join("file.txt");
    let backend = Backend::answering(move |r| {
        write(&file, r.number);
        answer(
            "200 OK",
            &[
                "X-Accel-Redirect: /files/file.txt",
                "Content-Type: text/x-own",
            ],
            "",
        )
    });
    let server = Server::http_with(
        "worker_processes 1;",
        &format!(
            "upstream behind {{ server {}; }} {directives}
             server {{ listen 127.0.0.1:%%PORT%%; http2 on;
                 location / {{ proxy_pass http://behind; }}
                 location /files/ {{ internal; alias {}/; }} }}",
            backend.name(),
            dir.path().display()
        ),
    )
    .start();
    (dir, backend, server)
}

/// A change that the application announces is seen from then on, whatever was known of the file before.
#[test]
fn file_that_was_just_written_is_served_as_it_is() {
    let (_dir, _backend, server) = writing("", |file, number| {
        std::fs::write(file, format!("written {number}")).expect("it is the test's");
        firstbyte_tests::dir::set_mode(file, 0o644);
    });
    let mut client = server.client();
    for number in 1..=200 {
        let answer = client.get("/");
        assert_eq!(
            (answer.status, answer.text()),
            (200, format!("written {number}"))
        );
        assert_eq!(answer.header("Content-Type"), Some("text/x-own"));
    }
    let mut h2 = H2Client::connect(server.port());
    for number in 201..=300 {
        assert_eq!(h2.fetch("/").text(), format!("written {number}"));
    }
}

/// A file that replaces another, as careful applications write, and one that was not there are seen, too.
#[test]
fn file_that_was_just_replaced_or_made_is_served_as_it_is() {
    let (_dir, _backend, server) = writing("", |file, number| {
        let other = file.with_extension("new");
        std::fs::write(&other, format!("replaced {number}")).expect("it is the test's");
        firstbyte_tests::dir::set_mode(&other, 0o644);
        std::fs::rename(&other, file).expect("they are in one folder");
    });
    for number in 1..=100 {
        assert_eq!(server.get("/").text(), format!("replaced {number}"));
    }
    let (_dir, _backend, server) = writing("", |file, number| {
        // Every second file is missing.
        let _ = std::fs::remove_file(file);
        if number % 2 == 0 {
            std::fs::write(file, format!("made {number}")).expect("it is the test's");
            firstbyte_tests::dir::set_mode(file, 0o644);
        }
    });
    for number in 1..=100 {
        let answer = server.get("/");
        if number % 2 == 0 {
            assert_eq!(answer.text(), format!("made {number}"));
        } else {
            assert_eq!(answer.status, 404);
        }
    }
}
