//! Servers for the worker: threads with a listener.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

/// A server that passes its listener to a function on its own thread.
pub(crate) struct Server {
    pub(crate) port: u16,
    thread: JoinHandle<()>,
}

pub(crate) fn server(serve: impl FnOnce(TcpListener) + Send + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    Server {
        port,
        thread: std::thread::spawn(move || serve(listener)),
    }
}

impl Server {
    pub(crate) fn join(self) {
        self.thread.join().expect("it does not panic");
    }
}

/// Reads a request up to the end of its head, and `body` more bytes. Returns "" at the end of the connection.
pub(crate) fn request(socket: &mut impl Read, body: usize) -> String {
    let mut received = Vec::new();
    let mut byte = [0];
    while !received.ends_with(b"\r\n\r\n") {
        match socket.read(&mut byte) {
            Ok(1) => received.push(byte[0]),
            _ => break,
        }
    }
    let head = received.len();
    received.resize(head + body, 0);
    socket.read_exact(&mut received[head..]).expect("the body");
    String::from_utf8(received).expect("it is text")
}

pub(crate) fn send(socket: &mut TcpStream, text: &str) {
    socket.write_all(text.as_bytes()).expect("it is open");
}

/// A response that keeps the connection.
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

pub(crate) fn accept(listener: &TcpListener) -> TcpStream {
    listener.accept().expect("a connection comes").0
}
