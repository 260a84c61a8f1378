//! A server that does what the sweep looks for: it keeps the last byte of each body for a second write, on sockets
//! without TCP_NODELAY, so that its kernel keeps that byte until the first write is acknowledged (RFC 896).

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

/// The server: its address, and the thread that serves.
#[derive(Debug)]
pub(crate) struct Withholding {
    address: SocketAddr,
    thread: JoinHandle<io::Result<()>>,
}

impl Withholding {
    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the end of its last connection.
    pub(crate) fn join(self) {
        let served = self.thread.join().expect("the server did not panic");
        served.expect("the server served");
    }
}

/// Starts it in the namespace of the caller, for so many connections, one after the other.
pub(crate) fn serve(address: Ipv4Addr, connections: usize) -> Withholding {
    let listener = TcpListener::bind((IpAddr::V4(address), 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let thread = thread::spawn(move || {
        for _ in 0..connections {
            let (stream, _) = listener.accept()?;
            converse(stream)?;
        }
        Ok(())
    });
    Withholding { address, thread }
}

fn converse(mut stream: TcpStream) -> io::Result<()> {
    let mut request = [0; 1024];
    loop {
        // The client sends each request in one write, and the next one after the response.
        let length = stream.read(&mut request)?;
        if length == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&request[..length]);
        let path = text.split(' ').nth(1).unwrap_or_default();
        let size: usize = path
            .trim_start_matches('/')
            .parse()
            .expect("the path is a size");
        let mut response =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").into_bytes();
        response.resize(response.len() + size - 1, b'x');
        stream.write_all(&response)?;
        stream.write_all(b"x")?;
    }
}
