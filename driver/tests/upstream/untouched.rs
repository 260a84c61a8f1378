//! Requests on a connection that the server closes at that moment, untouched or not. Real sockets are needed, since the
//! kernel decides.
//!
//! A worker that sees the end of an idle connection does not use it. So the handler of the second request waits in its
//! turn until the server has acted.

use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use rustix::net::sockopt::set_tcp_quickack;
use sys::socket::set_linger_reset;

use super::server::{OK, accept, request, send, server};
use super::site::{Site, hold};

/// Keeps the second request waiting until it is dropped.
struct HeldOpen(#[expect(dead_code, reason = "its end is the message")] Sender<()>);

/// Makes a connection idle by one request. Then a POST waits in its handler until the server drops the guard. Returns
/// the POST's result.
fn second(meet: impl FnOnce(TcpStream, HeldOpen) + Send + 'static) -> String {
    let (held, is_held) = channel();
    let (go, may_go) = channel();
    let server = server(move |listener| {
        let mut socket = accept(&listener);
        request(&mut socket, 0);
        send(&mut socket, OK);
        is_held.recv().expect("the second request comes");
        meet(socket, HeldOpen(go));
    });
    let site = Site::new(16);
    let mut client = site.client();
    assert_eq!(client.get(&format!("/{}/pool", server.port)), "200 hello");
    hold(server.port, held, may_go);
    let received = client.get(&format!("/{}/pool/post/hold", server.port));
    server.join();
    received
}

#[test]
fn an_end_before_the_request_and_a_reset_in_answer_leave_it_untouched() {
    let received = second(|socket, held| {
        drop(socket);
        drop(held);
    });
    assert!(
        received.ends_with(" reused true untouched true"),
        "{received}"
    );
    assert!(!received.contains(" sent 0 "), "{received}");
}

#[test]
fn a_reset_before_the_request_leaves_it_untouched_since_nothing_is_sent() {
    let received = second(|socket, held| {
        set_linger_reset(socket.as_fd()).expect("a TCP socket");
        drop(socket);
        drop(held);
    });
    assert!(
        received.ends_with(" sent 0 reused true untouched true"),
        "{received}"
    );
}

#[test]
fn an_end_after_the_request_was_acknowledged_is_not_known_to_leave_it_untouched() {
    let received = second(|mut socket, held| {
        drop(held);
        request(&mut socket, 3);
    });
    assert!(received.starts_with("Closed sent "), "{received}");
    assert!(
        received.ends_with(" reused true untouched false"),
        "{received}"
    );
}

#[test]
fn a_reset_with_the_request_unread_is_not_known_to_leave_it_untouched() {
    let received = second(|socket, held| {
        drop(held);
        socket.peek(&mut [0]).expect("the request comes");
    });
    assert!(
        received.ends_with(" reused true untouched false"),
        "{received}"
    );
    assert!(received.contains("errno: 104"), "{received}");
}

#[test]
fn a_reset_with_the_acknowledgement_delayed_is_not_known_to_leave_it_untouched() {
    let received = second(|mut socket, held| {
        set_tcp_quickack(&socket, false).expect("a TCP socket");
        drop(held);
        request(&mut socket, 3);
        set_linger_reset(socket.as_fd()).expect("a TCP socket");
    });
    assert!(
        received.ends_with(" reused true untouched false"),
        "{received}"
    );
    assert!(received.contains("errno: 104"), "{received}");
}

#[test]
fn a_reset_after_an_end_is_not_enough_if_the_request_was_acknowledged() {
    let received = second(|mut socket, held| {
        socket.shutdown(Shutdown::Write).expect("it is open");
        drop(held);
        request(&mut socket, 3);
        // Longer than a delayed acknowledgement.
        let delay = Some(Duration::from_millis(250));
        socket.set_read_timeout(delay).expect("it is a time");
        assert!(socket.read(&mut [0]).is_err(), "nothing more comes");
        set_linger_reset(socket.as_fd()).expect("a TCP socket");
    });
    assert!(
        received.ends_with(" reused true untouched false"),
        "{received}"
    );
}

#[test]
fn an_end_without_a_reset_is_not_known_to_leave_it_untouched() {
    let received = second(|mut socket, held| {
        socket.shutdown(Shutdown::Write).expect("it is open");
        drop(held);
        request(&mut socket, 3);
        assert_eq!(request(&mut socket, 0), "", "the other side ends as well");
    });
    assert!(received.starts_with("Closed sent "), "{received}");
    assert!(
        received.ends_with(" reused true untouched false"),
        "{received}"
    );
}
