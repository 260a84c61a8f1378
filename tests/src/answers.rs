//! A server that sends the same response to every request, for tests of measuring tools.
//!
//! HTTP/1.1 with keep-alive, requests without bodies, one thread for each connection. It ends with the process.
//! Deliberately absent: every check of a request.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// The response: a head alone.
pub const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Starts a server on a free port that does `work` for each request before it answers, and returns its address.
///
/// # Panics
/// When no port is free.
pub fn serve(work: impl Fn() + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let work = work.clone();
            thread::spawn(move || answer(stream, work));
        }
    });
    address
}

/// Answers requests on a connection until the client closes it; runs `work` before each response.
pub fn answer(mut stream: TcpStream, work: impl Fn()) {
    let _ = stream.set_nodelay(true);
    let Ok(reader) = stream.try_clone() else {
        return;
    };
    for line in BufReader::new(reader).lines().map_while(Result::ok) {
        // An empty line ends a request.
        if !line.is_empty() {
            continue;
        }
        work();
        if stream.write_all(ANSWER.as_bytes()).is_err() {
            return;
        }
    }
}
