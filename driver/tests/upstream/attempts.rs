//! Attempts: actions of servers, and the resulting events of the handler.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use driver::worker::thread_commands::Command;
use sys::socket::set_linger_reset;

use super::server::{OK, accept, request, send, server};
use super::site::{FILE_BYTES, Site};

#[test]
fn a_request_goes_through() {
    let server = server(|listener| {
        let mut socket = accept(&listener);
        let received = request(&mut socket, 3);
        assert!(
            received.starts_with("POST /path HTTP/1.1\r\n"),
            "{received}"
        );
        assert!(received.ends_with("\r\n\r\nabc"), "{received}");
        send(&mut socket, "HTTP/1.1 103 Early Hints\r\n\r\n");
        send(&mut socket, OK);
        assert_eq!(request(&mut socket, 0), "", "without a pool it is closed");
    });
    let site = Site::new(16);
    let received = site.get(&format!("/{}/post", server.port));
    assert_eq!(received, "(103) 200 hello");
    server.join();
}

#[test]
fn a_connection_of_a_pool_is_used_again_as_often_as_it_may_be() {
    let server = server(|listener| {
        let mut socket = accept(&listener);
        for _ in 0..2 {
            request(&mut socket, 0);
            send(&mut socket, OK);
        }
        assert_eq!(request(&mut socket, 0), "", "it has served two");
        let mut socket = accept(&listener);
        request(&mut socket, 0);
        send(&mut socket, OK);
    });
    let site = Site::new(16);
    let uri = format!("/{}/pool/twice", server.port);
    assert_eq!(site.get(&uri), "200 hello");
    assert_eq!(site.get(&uri), "200 hello reused");
    assert_eq!(site.get(&uri), "200 hello");
    server.join();
}

#[test]
fn an_idle_connection_that_the_server_ends_is_not_used() {
    let (closed, is_closed) = channel();
    let server = server(move |listener| {
        for _ in 0..2 {
            let mut socket = accept(&listener);
            request(&mut socket, 0);
            send(&mut socket, OK);
            drop(socket);
            closed.send(()).expect("the test waits");
        }
    });
    let site = Site::new(16);
    let uri = format!("/{}/pool", server.port);
    assert_eq!(site.get(&uri), "200 hello");
    is_closed.recv().expect("the server closes");
    assert_eq!(site.get(&uri), "200 hello");
    server.join();
}

#[test]
fn unrequested_bytes_end_an_idle_connection() {
    let server = server(|listener| {
        for _ in 0..2 {
            let mut socket = accept(&listener);
            request(&mut socket, 0);
            send(&mut socket, &format!("{OK}surplus"));
            assert_eq!(request(&mut socket, 0), "");
        }
    });
    let site = Site::new(16);
    let uri = format!("/{}/pool", server.port);
    assert_eq!(site.get(&uri), "200 hello");
    assert_eq!(site.get(&uri), "200 hello");
    server.join();
}

#[test]
fn a_refused_connection_is_told() {
    let gone = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = gone.local_addr().expect("it is bound").port();
    drop(gone);
    let received = Site::new(16).get(&format!("/{port}"));
    let expected = "Socket { call: \"connect()\", errno: 111 } sent 0 reused false untouched true";
    assert_eq!(received, expected);
}

#[test]
fn unix_domain_sockets_are_connected_to_or_say_why_not() {
    let name = format!("firstbyte-upstream-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let uri = format!("/{}", path.to_string_lossy().replace('/', "|"));
    let site = Site::new(16);
    let received = site.get(&uri);
    let expected = "Socket { call: \"connect()\", errno: 2 } sent 0 reused false untouched true";
    assert_eq!(received, expected);
    let listener = UnixListener::bind(&path).expect("the directory is writable");
    let served = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection comes");
        request(&mut socket, 0);
        socket.write_all(OK.as_bytes()).expect("it is open");
    });
    assert_eq!(site.get(&uri), "200 hello");
    served.join().expect("it does not panic");
    std::fs::remove_file(path).expect("it is there");
}

#[test]
fn a_server_that_ends_too_early_is_told_of() {
    for (text, told) in [
        ("", "Closed"),
        ("HTTP/1.1 200 OK\r\nContent-Le", "Closed"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhell",
            "200 hellClosed",
        ),
    ] {
        let server = server(move |listener| {
            let mut socket = accept(&listener);
            request(&mut socket, 0);
            send(&mut socket, text);
        });
        let received = Site::new(16).get(&format!("/{}", server.port));
        let (failure, rest) = received.split_once(" sent ").expect("it failed");
        assert_eq!(failure, told);
        assert!(rest.ends_with("reused false untouched false"), "{rest}");
        server.join();
    }
}

#[test]
fn a_reset_is_told_by_its_call() {
    let server = server(|listener| {
        let mut socket = accept(&listener);
        request(&mut socket, 0);
        set_linger_reset(socket.as_fd()).expect("a TCP socket");
    });
    let received = Site::new(16).get(&format!("/{}", server.port));
    assert!(
        received.starts_with("Socket { call: \"recv()\", errno: 104 }"),
        "{received}"
    );
    assert!(received.ends_with("untouched false"), "{received}");
    server.join();
}

#[test]
fn a_silent_server_times_out() {
    let server = server(|listener| {
        let mut socket = accept(&listener);
        request(&mut socket, 0);
        assert_eq!(request(&mut socket, 0), "", "it is closed");
    });
    let received = Site::new(16).get(&format!("/{}/read_soon", server.port));
    assert!(received.starts_with("TimedOut sent "), "{received}");
    server.join();
}

#[test]
fn the_unwanted_rest_of_a_short_response_is_dropped_and_the_connection_kept() {
    let (given_up, is_given_up) = channel();
    let (said, is_said) = channel();
    let server = server(move |listener| {
        let mut socket = accept(&listener);
        request(&mut socket, 0);
        send(&mut socket, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
        is_given_up.recv().expect("the test goes on");
        send(&mut socket, "hello");
        said.send(()).expect("the test waits");
        request(&mut socket, 0);
        send(&mut socket, OK);
    });
    let site = Site::new(16);
    let uri = format!("/{}/pool", server.port);
    assert_eq!(site.get(&format!("{uri}/give_up")), "200 ");
    given_up.send(()).expect("the server waits");
    is_said.recv().expect("the server goes on");
    assert_eq!(site.get(&uri), "200 hello reused");
    server.join();
}

#[test]
fn a_response_in_small_pieces_waits_for_no_acknowledgement() {
    const ROUNDS: usize = 10;
    let server = server(|listener| {
        // One connection per request, then a kept one. They stay open: a close would send the last piece.
        for rounds in [[1; ROUNDS].as_slice(), &[ROUNDS]].concat() {
            let mut socket = accept(&listener);
            for _ in 0..rounds {
                request(&mut socket, 0);
                // TCP_NODELAY is not set: the kernel holds each piece until the previous one is acknowledged.
                for piece in [
                    "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n",
                    "two,",
                    "more",
                ] {
                    send(&mut socket, piece);
                }
            }
            assert_eq!(request(&mut socket, 0), "", "it is closed");
        }
    });
    let site = Site::new(16);
    for path in ["", "/pool"] {
        let uri = format!("/{}{path}", server.port);
        let mut client = site.client();
        let times = (0..ROUNDS).map(|round| {
            let begun = Instant::now();
            let reused = if path == "/pool" && round > 0 {
                " reused"
            } else {
                ""
            };
            assert_eq!(client.get(&uri), format!("200 two,more{reused}"));
            begun.elapsed()
        });
        let least = times.min().expect("there are rounds");
        assert!(
            least < Duration::from_millis(30),
            "{path} {least:?}, where a delayed one takes 40 ms"
        );
    }
    drop(site);
    server.join();
}

#[test]
fn the_unwanted_rest_of_a_long_response_ends_the_connection() {
    let server = server(|listener| {
        let mut socket = accept(&listener);
        request(&mut socket, 0);
        send(
            &mut socket,
            "HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n",
        );
        assert_eq!(request(&mut socket, 0), "");
    });
    let received = Site::new(16).get(&format!("/{}/pool/give_up", server.port));
    assert_eq!(received, "200 ");
    server.join();
}

#[test]
fn the_unwanted_rest_of_a_response_of_an_application_ends_the_connection() {
    let server = server(|listener| {
        let mut socket = accept(&listener);
        let mut received = [0; 4096];
        assert!(socket.read(&mut received).expect("a request comes") > 0);
        // A head in a FastCGI record. The five bytes of the body never come.
        send(
            &mut socket,
            "\x01\x06\0\x01\0\x15\0\0Content-Length: 5\r\n\r\n",
        );
        // Shorter than the timeout for dropping the rest.
        let timeout = Some(Duration::from_millis(500));
        socket.set_read_timeout(timeout).expect("it is a time");
        assert_eq!(socket.read(&mut received).expect("it is closed"), 0);
    });
    let site = Site::new(16);
    let received = site.get(&format!("/{}/pool/fastcgi/give_up", server.port));
    assert_eq!(received, "200 ");
    server.join();
}

#[test]
fn a_long_response_comes_whole() {
    const BYTES: usize = 5_000_000;
    let server = server(|listener| {
        let mut socket = accept(&listener);
        request(&mut socket, 0);
        send(
            &mut socket,
            &format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n"),
        );
        send(&mut socket, &"0123456789".repeat(BYTES / 10));
    });
    let received = Site::new(16).get(&format!("/{}", server.port));
    assert_eq!(received.len(), 4 + BYTES);
    assert!(
        received.as_bytes()["200 ".len()..]
            .chunks(10)
            .all(|ten| ten == b"0123456789")
    );
    server.join();
}

#[test]
fn a_thread_that_quits_does_not_wait_for_idle_connections() {
    let server = server(|listener| {
        let mut socket = accept(&listener);
        request(&mut socket, 0);
        send(&mut socket, OK);
        assert_eq!(request(&mut socket, 0), "", "it is closed");
    });
    let site = Site::new(16);
    assert_eq!(site.get(&format!("/{}/pool", server.port)), "200 hello");
    site.command(Command::Quit(None));
    site.join();
    server.join();
}

#[test]
fn idle_connections_make_room_for_clients_and_others() {
    let server = server(|listener| {
        let mut idle = accept(&listener);
        request(&mut idle, 0);
        send(&mut idle, OK);
        // The second client takes its place.
        assert_eq!(request(&mut idle, 0), "");
    });
    let site = Site::new(2);
    let mut first = site.client();
    assert_eq!(first.get(&format!("/{}/pool", server.port)), "200 hello");
    let mut second = site.client();
    let gone = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = gone.local_addr().expect("it is bound").port();
    second.ask(&format!("/{port}"));
    server.join();
}

#[test]
fn no_more_is_read_than_the_exchange_has_room_for() {
    let server = server(|listener| {
        let mut socket = accept(&listener);
        request(&mut socket, 0);
        send(&mut socket, "HTTP/1.1 200 OK\r\n");
        send(&mut socket, "Content-Length: 1000\r\n\r\n");
        send(&mut socket, &"x".repeat(1000));
    });
    let received = Site::new(16).get(&format!("/{}/narrow", server.port));
    assert_eq!(received, format!("200 {}", "x".repeat(1000)));
    server.join();
}

#[test]
fn a_body_in_a_file_goes_whole_to_a_server_that_reads_late() {
    let server = server(|listener| {
        let mut socket = accept(&listener);
        let received = request(&mut socket, FILE_BYTES as usize);
        let body = received.split_once("\r\n\r\n").expect("a head").1;
        assert!(body.bytes().all(|byte| byte == b'f'));
        send(&mut socket, OK);
    });
    let received = Site::new(16).get(&format!("/{}/file", server.port));
    assert_eq!(received, "200 hello");
    server.join();
}

#[test]
fn an_answer_before_the_end_of_the_request_is_heard_though_the_server_closes() {
    let server = server(|listener| {
        let mut socket = accept(&listener);
        request(&mut socket, 0);
        send(
            &mut socket,
            "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno",
        );
        // Closing with an unread request resets the connection.
    });
    let received = Site::new(16).get(&format!("/{}/file/pool", server.port));
    assert_eq!(received, "413 no");
    server.join();
}

#[test]
fn a_server_that_takes_nothing_times_out() {
    let (end, ended) = channel::<()>();
    let server = server(move |listener| {
        let mut socket = accept(&listener);
        request(&mut socket, 0);
        assert!(ended.recv().is_err());
    });
    let received = Site::new(16).get(&format!("/{}/file/send_soon", server.port));
    assert!(received.starts_with("TimedOut sent "), "{received}");
    drop(end);
    server.join();
}

#[test]
fn a_connection_that_is_not_established_times_out() {
    // A backlog takes one connection more than its length. Later ones are not answered.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let addr = listener.local_addr().expect("it is bound");
    rustix::net::listen(&listener, 0).expect("a backlog can be changed");
    let _queued = TcpStream::connect(addr).expect("there is room for one");
    let received = Site::new(16).get(&format!("/{}/connect_soon", addr.port()));
    assert_eq!(received, "TimedOut sent 0 reused false untouched true");
}

#[test]
fn a_tunnel_carries_both_ways_and_ends_side_by_side() {
    for server_first in [false, true] {
        let server = server(move |listener| {
            let mut socket = accept(&listener);
            let received = request(&mut socket, 0);
            assert!(received.contains("\r\nUpgrade: echo\r\n"), "{received}");
            send(
                &mut socket,
                "HTTP/1.1 101 Switching\r\nUpgrade: echo\r\n\r\nhi ",
            );
            let mut ping = [0; 4];
            socket.read_exact(&mut ping).expect("it comes");
            assert_eq!(&ping, b"ping");
            send(&mut socket, "bye");
            if server_first {
                socket.shutdown(Shutdown::Write).expect("it is open");
            }
            assert_eq!(socket.read(&mut ping).ok(), Some(0), "the other side ends");
        });
        let received = Site::new(16).get(&format!("/{}/tunnel/pool", server.port));
        assert_eq!(received, "101 upgraded hi bye");
        server.join();
    }
}

#[test]
fn a_silent_tunnel_times_out() {
    let server = server(|listener| {
        let mut socket = accept(&listener);
        request(&mut socket, 0);
        send(&mut socket, "HTTP/1.1 101 Switching\r\n\r\n");
        assert_eq!(request(&mut socket, 0), "ping", "then it is closed");
    });
    let received = Site::new(16).get(&format!("/{}/tunnel/read_soon", server.port));
    assert!(received.starts_with("101 upgraded TimedOut"), "{received}");
    server.join();
}

#[test]
fn an_invalid_request_is_reported_without_a_connection() {
    let server = server(|listener| {
        let mut socket = accept(&listener);
        assert_eq!(request(&mut socket, 0), "");
    });
    let received = Site::new(16).get(&format!("/{}/bad_field", server.port));
    assert!(received.starts_with("Unsendable("), "{received}");
    assert!(
        received.ends_with("sent 0 reused false untouched true"),
        "{received}"
    );
    server.join();
}
