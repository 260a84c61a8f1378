//! A server that answers each request with the same bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

/// Response of a [`start`]ed server.
#[derive(Clone)]
pub(crate) enum Response {
    /// These bytes, then the end of the connection.
    Bytes(Vec<u8>),
    /// No response until the client gives up.
    Nothing,
}

impl Response {
    /// A response of HTTP.
    pub(crate) fn http(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n");
        Self::Bytes([head.as_bytes(), body].concat())
    }
}

/// Starts a server, and returns its port. Its thread ends with the test.
pub(crate) fn start(response: Response) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that gives up is of no interest.
            let _ = serve(&stream, &response);
        }
    });
    port
}

fn serve(mut stream: &TcpStream, response: &Response) -> std::io::Result<()> {
    let mut from = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let line = line.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    match response {
        Response::Bytes(bytes) => {
            stream.write_all(bytes)?;
            stream.shutdown(Shutdown::Write)
        }
        Response::Nothing => from.read_to_end(&mut Vec::new()).map(|_| ()),
    }
}
