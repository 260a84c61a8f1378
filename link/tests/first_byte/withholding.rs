//! A server with the fault that the sweep looks for: it keeps the last byte of each body for a second write, on sockets
//! without TCP_NODELAY. So its kernel keeps that byte until the first write is acknowledged (RFC 896).
//!
//! It supports the protocols of the peers as simply as possible: one request at a time, bodies of one frame.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use engines::spdy::{self, Event};
use firstbyte_tests::h2::{ACK, DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame};
use firstbyte_tests::hpack::{self, Reader};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::h2::take_frame;
use crate::tls::chain::Chain;
use crate::tls::{self, Version};
use crate::transport::Wire;
use crate::{Framing, Protocol};
use spdy_response::response;

#[path = "../../../tests/tests/common/planted/spdy_response.rs"]
mod spdy_response;

/// The server: its address, and the thread that serves.
#[derive(Debug)]
pub(crate) struct Withholding {
    address: SocketAddr,
    thread: JoinHandle<io::Result<()>>,
}

impl Withholding {
    /// Its listener's address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the end of its last connection.
    pub(crate) fn join(self) {
        let served = self.thread.join().expect("the server did not panic");
        served.expect("the server served");
    }
}

/// Starts it in the namespace of the caller, for this many connections, one after the other.
pub(crate) fn serve(
    address: Ipv4Addr,
    connections: usize,
    protocol: Protocol,
    chain: &Chain,
) -> Withholding {
    let listener = TcpListener::bind((IpAddr::V4(address), 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let tls = protocol
        .version
        .map(|version| config(version, protocol.framing.alpn(), chain));
    let thread = thread::spawn(move || {
        for _ in 0..connections {
            let (stream, _) = listener.accept()?;
            let wire = wire(stream, tls.as_ref())?;
            match protocol.framing {
                Framing::Http1 => converse(wire)?,
                Framing::Http2 => converse_in_frames(wire)?,
                Framing::Spdy => converse_in_spdy(wire)?,
            }
        }
        Ok(())
    });
    Withholding { address, thread }
}

/// Without tickets: they would be sent before the first response, which then waited for their acknowledgement.
fn config(version: Version, alpn: &str, chain: &Chain) -> Arc<ServerConfig> {
    let certificates = CertificateDer::pem_slice_iter(chain.certificates.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .expect("it was made so");
    let key = PrivateKeyDer::from_pem_slice(chain.key.as_bytes()).expect("it was made so");
    let mut config = ServerConfig::builder_with_provider(tls::provider())
        .with_protocol_versions(version.alone())
        .expect("the version is built")
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .expect("they belong together");
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    Arc::new(config)
}

fn wire(stream: TcpStream, tls: Option<&Arc<ServerConfig>>) -> io::Result<Wire> {
    let Some(config) = tls else {
        return Ok(Wire::Plain(stream));
    };
    let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    Ok(Wire::Server(Box::new(StreamOwned::new(connection, stream))))
}

/// Reads the next data; nothing at the end, with or without an alert of TLS.
fn read(wire: &mut Wire, buffer: &mut [u8]) -> io::Result<usize> {
    match wire.read(buffer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        other => other,
    }
}

/// The size of the body that a path requests.
fn size(path: &str) -> usize {
    let size = path.trim_start_matches('/').parse();
    size.expect("the path is a size")
}

/// Appends a body of this size to `before` and writes it, the last byte separately.
fn withhold(wire: &mut Wire, mut before: Vec<u8>, size: usize) -> io::Result<()> {
    before.resize(before.len() + size - 1, b'x');
    wire.write_all(&before)?;
    wire.write_all(b"x")
}

fn converse(mut wire: Wire) -> io::Result<()> {
    let mut request = [0; 1024];
    loop {
        // The client sends each request in one write, and the next one after the response.
        let length = read(&mut wire, &mut request)?;
        if length == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&request[..length]);
        let size = size(text.split(' ').nth(1).unwrap_or_default());
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n");
        withhold(&mut wire, head.into_bytes(), size)?;
    }
}

fn converse_in_frames(mut wire: Wire) -> io::Result<()> {
    let mut preface = [0; PREFACE.len()];
    wire.read_exact(&mut preface)?;
    let mut reader = Reader::default();
    let mut buffer = Vec::new();
    // Sent with the first response, for the reason that there are no tickets for.
    let mut owed = [frame(SETTINGS, 0, 0, &[]), frame(SETTINGS, ACK, 0, &[])].concat();
    let mut piece = [0; 1024];
    loop {
        let length = read(&mut wire, &mut piece)?;
        if length == 0 {
            return Ok(());
        }
        buffer.extend_from_slice(&piece[..length]);
        while let Some(taken) = take_frame(&mut buffer) {
            if taken.kind != HEADERS {
                continue;
            }
            let fields = reader.read(&taken.payload);
            let path = fields.iter().find(|(name, _)| name == ":path");
            let size = size(path.map_or("", |(_, path)| path));
            let mut before = std::mem::take(&mut owed);
            let block = hpack::write(&[(":status", "200")]);
            before.extend(frame(HEADERS, END_HEADERS, taken.stream, &block));
            let data = frame(DATA, END_STREAM, taken.stream, &vec![b'x'; size]);
            before.extend_from_slice(&data[..data.len() - size]);
            withhold(&mut wire, before, size)?;
        }
    }
}

fn converse_in_spdy(mut wire: Wire) -> io::Result<()> {
    let mut conn = spdy::Conn::new(Rc::new(spdy::Settings::default()));
    let mut piece = [0; 1024];
    loop {
        let length = read(&mut wire, &mut piece)?;
        if length == 0 {
            return Ok(());
        }
        conn.receive(&piece[..length]);
        while let Some(event) = conn.event() {
            let Event::Head { stream, head } = event else {
                continue;
            };
            let size = size(&String::from_utf8_lossy(head.bytes(head.target)));
            let mut before = response(&mut conn, stream, size);
            before.truncate(before.len() - size);
            withhold(&mut wire, before, size)?;
        }
    }
}
