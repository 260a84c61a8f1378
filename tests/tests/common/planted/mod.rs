//! Servers with one fault each, for the doctor to find: over HTTP/1.1, HTTP/2 and SPDY by prior knowledge, and HTTP/1.1 over TLS.
//!
//! - `/N`: a body of N bytes.
//! - `/page`: a document that names `/100`.
//! - `/flush`: the application flushes the first half 300 ms before the rest.
//! - Any other path: 800 bytes, at most ten pieces of a hundred with their head.
//!
//! They serve until they are dropped; each connection has a thread.

mod h1;
mod h2;
mod spdy;
mod spdy_response;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A fault of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No fault.
    None,
    /// Bodies up to a size keep their last byte for a second write, without TCP_NODELAY: the kernel keeps it until the
    /// first write is acknowledged (RFC 896).
    Withholds(usize),
    /// Bodies of fewer bytes than these take 30 ms.
    SlowBelow(usize),
    /// Everything is written a hundred bytes at a time, with TCP_NODELAY.
    Chops,
    /// A first part that is flushed leaves with the end.
    Buffers,
}

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http1Tls,
    Http2,
    Spdy,
}

impl Protocol {
    /// Its name as a command-line option.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http1 | Self::Http1Tls => "h1",
            Self::Http2 => "h2",
            Self::Spdy => "spdy",
        }
    }
}

/// A server.
pub(crate) struct Planted {
    address: SocketAddr,
    protocol: Protocol,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Planted {
    /// Starts a server.
    pub(crate) fn serve(protocol: Protocol, fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let tls = (protocol == Protocol::Http1Tls).then(config);
        let thread = thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let tls = tls.clone();
                // The thread ends with its connection. The client reports a broken one.
                thread::spawn(move || converse(stream, tls, protocol, fault));
            }
        });
        Self {
            address,
            protocol,
            is_over,
            thread: Some(thread),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = if self.protocol == Protocol::Http1Tls {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}{path}", self.address)
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn converse(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    protocol: Protocol,
    fault: Fault,
) -> io::Result<()> {
    let is_withholding = matches!(fault, Fault::Withholds(_));
    stream.set_nodelay(!is_withholding)?;
    let stream: Box<dyn Stream> = match tls {
        None => Box::new(stream),
        Some(config) => {
            let connection = ServerConnection::new(config).map_err(io::Error::other)?;
            Box::new(StreamOwned::new(connection, stream))
        }
    };
    let wire = Wire { stream, fault };
    match protocol {
        Protocol::Http1 | Protocol::Http1Tls => h1::converse(wire),
        Protocol::Http2 => h2::converse(wire),
        Protocol::Spdy => spdy::converse(wire),
    }
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// The server's end of a connection, with the fault.
struct Wire {
    stream: Box<dyn Stream>,
    fault: Fault,
}

impl Wire {
    /// Reads the next bytes; 0 at the end, with or without a TLS alert.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            other => other,
        }
    }

    /// Writes a whole response with a body of `size` bytes.
    fn respond(&mut self, response: &[u8], size: usize) -> io::Result<()> {
        match self.fault {
            Fault::Withholds(most) if size <= most => {
                let (first, last) = response.split_at(response.len() - 1);
                self.stream.write_all(first)?;
                self.stream.write_all(last)
            }
            Fault::SlowBelow(least) if size < least => {
                pause(Duration::from_millis(30));
                self.stream.write_all(response)
            }
            Fault::Chops => response.chunks(100).try_for_each(|piece| {
                self.stream.write_all(piece)?;
                // The kernel puts small writes together while a packet before them is on the device (autocorking).
                pause(Duration::from_micros(300));
                Ok(())
            }),
            _ => self.stream.write_all(response),
        }
    }

    /// Writes a response of two parts, as if the application flushed the first one.
    fn respond_in_two(&mut self, first: &[u8], rest: &[u8]) -> io::Result<()> {
        if self.fault == Fault::Buffers {
            pause(FLUSHED_BEFORE);
            return self.stream.write_all(&[first, rest].concat());
        }
        self.stream.write_all(first)?;
        pause(FLUSHED_BEFORE);
        self.stream.write_all(rest)
    }
}

/// The body that a path requests.
fn body(path: &str) -> Vec<u8> {
    if path == "/page" {
        return PAGE.to_vec();
    }
    let size = path.trim_start_matches('/').parse().unwrap_or(800);
    vec![b'x'; size]
}

/// A document that names a body of 100 bytes.
const PAGE: &[u8] = b"<!doctype html><title>t</title><link rel=icon href=data:,><img src=/100>";

fn pause(time: Duration) {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        thread::park_timeout(left);
    }
}

fn config() -> Arc<ServerConfig> {
    let leaf = crate::lab::leaf("localhost");
    let certificates = CertificateDer::pem_slice_iter(leaf.certificate.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .expect("it was made so");
    let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).expect("it was made so");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the version is built")
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .expect("they belong together");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

/// Time between the flush of an application and its rest.
const FLUSHED_BEFORE: Duration = Duration::from_millis(300);
