//! Attempts with SCGI and uwsgi servers.

use std::io::Read;
use std::net::{Shutdown, TcpStream};

use super::server::{OK, accept, request, send, server};
use super::site::Site;

/// Reads this number of bytes.
fn bytes(socket: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut received = vec![0; len];
    socket.read_exact(&mut received).expect("they come");
    received
}

const SCGI_POST: &[u8] = b"21:CONTENT_LENGTH\x003\0A\0b\0,abc";
const SCGI_GET: &[u8] = b"21:CONTENT_LENGTH\x000\0A\0b\0,";
const UWSGI_POST: &[u8] = b"\x05\x19\0\x09\x0e\0CONTENT_LENGTH\x01\x003\x01\0A\x01\0babc";

#[test]
fn a_request_to_an_application_goes_through() {
    for (name, wanted) in [("scgi", SCGI_POST), ("uwsgi", UWSGI_POST)] {
        let server = server(move |listener| {
            let mut socket = accept(&listener);
            assert_eq!(bytes(&mut socket, wanted.len()), wanted);
            send(
                &mut socket,
                "Status: 404 No\r\nContent-Length: 5\r\n\r\nhello, and more",
            );
            assert_eq!(
                socket.read(&mut [0]).ok(),
                Some(0),
                "nothing comes behind it"
            );
        });
        let site = Site::new(16);
        // A pool changes nothing: each connection has one request.
        let received = site.get(&format!("/{}/{name}/post/pool", server.port));
        assert_eq!(received, "404 hello");
        server.join();
    }
}

#[test]
fn memory_of_one_protocol_is_not_used_for_another() {
    let server = server(|listener| {
        for _ in 0..3 {
            let mut socket = accept(&listener);
            request(&mut socket, 0);
            send(&mut socket, OK);
            let mut socket = accept(&listener);
            assert_eq!(bytes(&mut socket, SCGI_GET.len()), SCGI_GET);
            send(&mut socket, "A: b\n\nuntil the end");
            socket.shutdown(Shutdown::Write).expect("it is open");
            let mut socket = accept(&listener);
            bytes(&mut socket, UWSGI_POST.len() - 3);
            send(&mut socket, "HTTP/2.0 201 So\n\n");
            drop(socket);
        }
    });
    let site = Site::new(16);
    for _ in 0..3 {
        assert_eq!(site.get(&format!("/{}/http", server.port)), "200 hello");
        let received = site.get(&format!("/{}/scgi", server.port));
        assert_eq!(received, "200 until the end");
        assert_eq!(site.get(&format!("/{}/uwsgi", server.port)), "201 ");
    }
    server.join();
}

#[test]
fn an_answer_that_breaks_off_has_failed() {
    let sent = SCGI_GET.len();
    for (answer, received) in [
        ("", "Closed"),
        ("Status: 200 OK\r\n", "Closed"),
        ("Content-Length: 6\r\n\r\nhello", "200 helloClosed"),
        (
            "Status: 200\r\nStatus: 200\r\n\r\n",
            "Invalid(\"sent duplicate header line: \\\"Status\\\"\")",
        ),
        ("Status: none\r\n\r\n", "Invalid(\"sent invalid status\")"),
        (
            "Status: 101 Up\r\n\r\n",
            "Invalid(\"switched protocols without being asked\")",
        ),
    ] {
        let server = server(move |listener| {
            let mut socket = accept(&listener);
            bytes(&mut socket, sent);
            send(&mut socket, answer);
        });
        let site = Site::new(16);
        let told = site.get(&format!("/{}/scgi", server.port));
        let wanted = format!("{received} sent {sent} reused false untouched false");
        assert_eq!(told, wanted, "{answer:?}");
        server.join();
    }
}

#[test]
fn parameters_that_cannot_be_sent_are_not() {
    let server = server(|listener| {
        for _ in 0..3 {
            let received = accept(&listener).read(&mut [0]).ok();
            assert_eq!(received, Some(0), "nothing is sent");
        }
    });
    let site = Site::new(16);
    let nothing = "sent 0 reused false untouched true";
    for (words, why) in [
        (
            "scgi/bad_field",
            "a parameter has no name, or has a null character",
        ),
        ("scgi/huge", "the parameters are too large"),
        ("uwsgi/huge", "the parameters are too large"),
    ] {
        let told = site.get(&format!("/{}/{words}", server.port));
        assert_eq!(told, format!("Unsendable({why:?}) {nothing}"));
    }
    server.join();
}

#[test]
fn an_application_may_switch_protocols() {
    let server = server(|listener| {
        let mut socket = accept(&listener);
        bytes(&mut socket, SCGI_GET.len());
        send(&mut socket, "Status: 101 Up\r\nUpgrade: echo\r\n\r\n");
        assert_eq!(bytes(&mut socket, 4), b"ping");
        send(&mut socket, "pong, bye");
        assert_eq!(socket.read(&mut [0]).ok(), Some(0), "our side ends");
    });
    let site = Site::new(16);
    let received = site.get(&format!("/{}/scgi/tunnel", server.port));
    assert_eq!(received, "101 upgraded pong, bye");
    server.join();
}
