//! HTTP/1.1, one request at a time.

use std::io;

use super::{Wire, body};

pub(super) fn converse(mut wire: Wire) -> io::Result<()> {
    let mut request = [0; 2048];
    loop {
        // The client sends each request in one write, and the next one after the response.
        let length = wire.read(&mut request)?;
        if length == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&request[..length]);
        let path = text.split(' ').nth(1).unwrap_or_default();
        if path == "/flush" {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
            let first = [head.as_bytes(), &[b'a'; 500]].concat();
            wire.respond_in_two(&first, &[b'b'; 500])?;
            continue;
        }
        let body = body(path);
        let size = body.len();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n");
        let mut response = head.into_bytes();
        response.extend(body);
        wire.respond(&response, size)?;
    }
}
