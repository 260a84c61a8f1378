//! A small client of HTTP: one connection for each request.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use store::{HttpRequest, HttpResponse, Transport, TransportError};

/// A server at a port of 127.0.0.1, which may change.
pub(crate) struct Http {
    pub(crate) port: Arc<AtomicU16>,
    /// Longest time without a byte.
    pub(crate) timeout: Duration,
}

impl Http {
    pub(crate) fn new(port: u16) -> Self {
        Self {
            port: Arc::new(port.into()),
            timeout: Duration::from_secs(30),
        }
    }

    /// Runs a statement, and returns its rows.
    #[track_caller]
    pub(crate) fn run(port: u16, statement: &str) -> String {
        Self::new(port).run_here(statement)
    }

    /// Runs a statement with this client, and returns its rows.
    #[track_caller]
    pub(crate) fn run_here(&mut self, statement: &str) -> String {
        let request = HttpRequest {
            method: "POST",
            target: "/",
            headers: &[("Content-Type", "text/plain")],
            body: statement.as_bytes(),
        };
        let response = self.send(&request).expect("a response");
        let text = String::from_utf8_lossy(&response.body).into_owned();
        assert_eq!(response.status, 200, "{text}");
        text
    }
}

impl Transport for Http {
    fn send(&mut self, request: &HttpRequest<'_>) -> Result<HttpResponse, TransportError> {
        let stream = TcpStream::connect(("127.0.0.1", self.port.load(Ordering::Relaxed)))
            .map_err(|error| TransportError::NotSent(error.to_string()))?;
        exchange(&stream, request, self.timeout)
            .map_err(|error| TransportError::Unknown(error.to_string()))
    }
}

fn exchange(
    mut stream: &TcpStream,
    request: &HttpRequest<'_>,
    timeout: Duration,
) -> std::io::Result<HttpResponse> {
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    let mut head = format!(
        "{} {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n",
        request.method,
        request.target,
        request.body.len()
    );
    for (name, value) in request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(request.body)?;
    read(&mut BufReader::new(stream))
}

fn read(from: &mut impl BufRead) -> std::io::Result<HttpResponse> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
    let mut response = HttpResponse {
        status: status.ok_or(ErrorKind::UnexpectedEof)?,
        ..HttpResponse::default()
    };
    loop {
        let line = line_of(from)?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        let field = (name.to_owned(), value.trim().to_owned());
        response.headers.push(field);
    }
    let field = |wanted: &str| {
        let mut found = response.headers.iter();
        found
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.clone())
    };
    if let Some(length) = field("content-length") {
        let length = length.parse().map_err(|_| ErrorKind::InvalidData)?;
        response.body = vec![0; length];
        from.read_exact(&mut response.body)?;
    } else if field("transfer-encoding").is_some() {
        loop {
            let size = usize::from_str_radix(&line_of(from)?, 16);
            let mut chunk = vec![0; size.map_err(|_| ErrorKind::InvalidData)? + 2];
            from.read_exact(&mut chunk)?;
            if chunk.len() == 2 {
                break;
            }
            response.body.extend_from_slice(&chunk[..chunk.len() - 2]);
        }
    } else {
        from.read_to_end(&mut response.body)?;
    }
    Ok(response)
}

/// Reads a line without its end.
fn line_of(from: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let whole = line.strip_suffix("\r\n").ok_or(ErrorKind::UnexpectedEof)?;
    Ok(whole.to_owned())
}
