//! A port that forwards bytes to another port over TLS, so that every raw client can use TLS.
//!
//! It accepts any certificate, offers one protocol, and forwards each piece at once, so late bytes stay late.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use tls::AnyServer;

/// Listens, passes every connection on to `port` over TLS with this protocol chosen, and returns the port to connect to.
///
/// # Panics
/// When no port is free.
#[must_use]
pub fn tls_pipe(port: u16, alpn: &str) -> u16 {
    tls_pipe_to("localhost", port, alpn)
}

/// Does the work of [`tls_pipe`], with this server name in the handshake.
///
/// # Panics
/// If no port is free.
#[must_use]
pub fn tls_pipe_to(name: &'static str, port: u16, alpn: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let own = listener.local_addr().expect("it is bound").port();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .expect("the versions are built")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    let config = Arc::new(config);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let config = Arc::clone(&config);
            thread::spawn(move || carry(client, (name, port), config));
        }
    });
    own
}

/// Carries bytes both ways until either end is over; then both are.
fn carry(
    mut client: TcpStream,
    (name, port): (&'static str, u16),
    config: Arc<ClientConfig>,
) -> Option<()> {
    let mut server = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let name = ServerName::try_from(name).expect("a host name");
    let mut tls = ClientConnection::new(config, name).ok()?;
    server.set_nodelay(true).ok()?;
    client.set_nodelay(true).ok()?;
    // The handshake and all writing may block: clients of tests read.
    while tls.is_handshaking() {
        tls.complete_io(&mut server).ok()?;
    }
    let mut piece = vec![0; 64 << 10];
    loop {
        while tls.wants_write() {
            tls.write_tls(&mut server).ok()?;
        }
        let mut ready = [
            PollFd::new(&client, PollFlags::IN),
            PollFd::new(&server, PollFlags::IN),
        ];
        poll(&mut ready, None).ok()?;
        let (said, received) = (
            !ready[0].revents().is_empty(),
            !ready[1].revents().is_empty(),
        );
        if said {
            let count = client.read(&mut piece).ok().filter(|&count| count > 0)?;
            tls.writer().write_all(&piece[..count]).ok()?;
        }
        if received {
            let count = tls.read_tls(&mut server).ok()?;
            tls.process_new_packets().ok()?;
            loop {
                match tls.reader().read(&mut piece) {
                    Ok(0) => return None,
                    Ok(count) => client.write_all(&piece[..count]).ok()?,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => return None,
                }
            }
            if count == 0 {
                return None;
            }
        }
    }
}
