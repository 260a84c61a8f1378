//! Servers of the tests: over real sockets, with the engines in the server role and rustls.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use engines::http::{BodyLength, Chunk, OutputQueue, ResponseHead};
use engines::mux::server::{Conn, Protocol as Streams};
use engines::mux::{Event, SendAction, SendOptions};
use engines::{h2, spdy};
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::client::trust::Trust;
use crate::client::{Protocol, Request, Url};
use crate::fetch::{Dial, TlsOptions};

/// A server that runs a script for each connection; it ends with the process.
pub(crate) fn scripted(script: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let script = Arc::new(script);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let script = Arc::clone(&script);
            thread::spawn(move || script(stream));
        }
    });
    address
}

/// Reads a head of HTTP/1 and returns it; empty at the end of the stream.
pub(crate) fn head(stream: &mut impl Read) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => text.push(byte[0]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The settings of TLS that a server has at the moment, and the authority that clients trust.
#[derive(Clone)]
pub(crate) struct Secure {
    config: Arc<Mutex<Arc<ServerConfig>>>,
    authority: CertificateDer<'static>,
    pub(crate) chain: Vec<Vec<u8>>,
    key: Arc<Vec<u8>>,
}

impl Secure {
    /// Makes a certificate for localhost and its issuer, with names of `filler` bytes.
    pub(crate) fn new(filler: usize) -> Self {
        let key = || KeyPair::generate().expect("there is randomness");
        let mut params = CertificateParams::new(["authority".to_owned()]).expect("a name");
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let text = "firstbyte ".repeat(filler / 10);
        params
            .distinguished_name
            .push(rcgen::DnType::OrganizationName, text);
        let authority = CertifiedIssuer::self_signed(params, key()).expect("it can be signed");
        let own = key();
        let leaf = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        let leaf = leaf.signed_by(&own, &authority).expect("it can be signed");
        let new = Self {
            config: Arc::new(Mutex::new(Arc::new(config(&[], own.serialize_der())))),
            authority: authority.der().clone(),
            chain: vec![leaf.der().to_vec(), authority.der().to_vec()],
            key: Arc::new(own.serialize_der()),
        };
        new.renew(|_| {});
        new
    }

    /// Replaces the settings of the server, which then knows no earlier session.
    pub(crate) fn renew(&self, change: impl FnOnce(&mut ServerConfig)) {
        let mut config = config(&self.chain, self.key.to_vec());
        change(&mut config);
        let mut place = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(config);
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust::File(vec![self.authority.clone()])
    }
}

fn config(chain: &[Vec<u8>], key: Vec<u8>) -> ServerConfig {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .expect("the versions are built")
        .with_no_client_auth();
    let key = PrivateKeyDer::try_from(key).expect("it is a key");
    let chain = chain.iter().map(|one| CertificateDer::from(one.clone()));
    let mut chain: Vec<_> = chain.collect();
    if chain.is_empty() {
        // Replaced before it is used.
        let own = KeyPair::generate().expect("there is randomness");
        let params = CertificateParams::new(["none".to_owned()]).expect("a name");
        let made = params.self_signed(&own).expect("it can be signed");
        chain.push(made.der().clone());
        let key = PrivateKeyDer::try_from(own.serialize_der()).expect("it is a key");
        return builder.with_single_cert(chain, key).expect("they match");
    }
    let mut config = builder.with_single_cert(chain, key).expect("they match");
    config.alpn_protocols = Protocol::ALL.map(|one| one.alpn().to_vec()).to_vec();
    config
}

/// A response of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn new(status: u16, fields: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Self {
        let fields = fields
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        Self {
            status,
            fields: fields.collect(),
            body: body.into(),
        }
    }
}

/// The answer to the request of a path.
type Answers = Arc<dyn Fn(&str) -> Answer + Send + Sync>;

/// Starts a server that responds with the requested path; with TLS, ALPN selects the protocol.
pub(crate) fn serve(protocol: Protocol, secure: Option<&Secure>) -> SocketAddr {
    serve_with(protocol, secure, |path| {
        Answer::new(200, &[("X-A", "b")], path)
    })
}

/// Starts a server with these answers; with TLS, ALPN selects the protocol.
pub(crate) fn serve_with(
    protocol: Protocol,
    secure: Option<&Secure>,
    answers: impl Fn(&str) -> Answer + Send + Sync + 'static,
) -> SocketAddr {
    let secure = secure.cloned();
    let answers: Answers = Arc::new(answers);
    scripted(move |stream| {
        let _ = stream.set_nodelay(true);
        let _ = match &secure {
            None => speak(protocol, stream, &answers),
            Some(secure) => speak_tls(secure, stream, &answers),
        };
    })
}

fn speak_tls(secure: &Secure, mut stream: TcpStream, answers: &Answers) -> io::Result<()> {
    let config = Arc::clone(&secure.config.lock().unwrap_or_else(PoisonError::into_inner));
    let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut early = Vec::new();
    while tls.is_handshaking() {
        tls.complete_io(&mut stream)?;
        if let Some(mut data) = tls.early_data() {
            data.read_to_end(&mut early)?;
        }
    }
    let protocol = Protocol::of_alpn(tls.alpn_protocol()).unwrap_or(Protocol::H1);
    let stream = StreamOwned::new(tls, stream);
    speak(protocol, Early { early, stream }, answers)
}

/// A stream with bytes received before.
struct Early<S> {
    early: Vec<u8>,
    stream: S,
}

impl<S: Read> Read for Early<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.early.is_empty() {
            return self.stream.read(buffer);
        }
        let len = self.early.len().min(buffer.len());
        buffer[..len].copy_from_slice(&self.early[..len]);
        self.early.drain(..len);
        Ok(len)
    }
}

impl<S: Write> Write for Early<S> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn speak(protocol: Protocol, mut stream: impl Read + Write, answers: &Answers) -> io::Result<()> {
    match protocol {
        Protocol::H1 => loop {
            let head = head(&mut stream);
            let Some(path) = head.split(' ').nth(1) else {
                return Ok(());
            };
            let answer = answers(path);
            let mut text = format!("HTTP/1.1 {} Some Reason\r\n", answer.status);
            text += &format!("Content-Length: {}\r\n", answer.body.len());
            for (name, value) in &answer.fields {
                text += &format!("{name}: {value}\r\n");
            }
            let text = [text.as_bytes(), b"\r\n", &answer.body].concat();
            stream.write_all(&text)?;
            stream.flush()?;
        },
        Protocol::H2 => streams(h2::Conn::new(Rc::default()), stream, answers),
        Protocol::Spdy => streams(spdy::Conn::new(Rc::default()), stream, answers),
    }
}

fn streams<P: Streams>(
    mut conn: Conn<P>,
    mut stream: impl Read + Write,
    answers: &Answers,
) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    let mut bodies = HashMap::new();
    loop {
        while let Some(event) = conn.event() {
            if let Event::Head { stream, head } = event {
                let path = String::from_utf8_lossy(head.bytes(head.target)).into_owned();
                let answer = answers(&path);
                send_head(&mut conn, stream, &answer);
                bodies.insert(stream, Some(answer.body));
            }
        }
        loop {
            match conn.advance(u64::MAX, 1) {
                SendAction::Body(stream) => match bodies.get_mut(&stream).and_then(Option::take) {
                    Some(body) => conn.send_data(stream, Chunk::Owned(body)),
                    None => conn.send_end(stream, None),
                },
                SendAction::Sent { .. } => {}
                SendAction::Nothing => break,
            }
        }
        let mut queue = OutputQueue::default();
        conn.transmit(&mut queue);
        let mut out = Vec::new();
        queue.drain_bytes(&mut out);
        stream.write_all(&out)?;
        stream.flush()?;
        let len = stream.read(&mut buffer)?;
        if len == 0 {
            return Ok(());
        }
        conn.receive(&buffer[..len]);
    }
}

fn send_head<P: Streams>(conn: &mut Conn<P>, stream: u32, answer: &Answer) {
    let mut head = ResponseHead {
        status: answer.status,
        body: BodyLength::Length(answer.body.len() as u64),
        ..ResponseHead::default()
    };
    head.push(b"content-length", answer.body.len().to_string().as_bytes());
    for (name, value) in &answer.fields {
        head.push(name.to_ascii_lowercase().as_bytes(), value.as_bytes());
    }
    let plan = SendOptions {
        trailers: false,
        chunk_bytes: 1 << 14,
    };
    conn.send_head(stream, &head, plan);
}

/// Longest wait of a test for an event.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A connection to a server of the tests, which is called localhost.
pub(crate) fn dial(address: SocketAddr, protocols: &[Protocol], secure: Option<&Secure>) -> Dial {
    let scheme = if secure.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://localhost:{}/", address.port());
    let url = Url::parse(&url).expect("a URL");
    let mut dial = Dial::new(&url, address, PATIENCE);
    dial.protocols = protocols.to_vec();
    dial.tls = secure.map(|secure| TlsOptions {
        trust: secure.trust(),
        ..TlsOptions::default()
    });
    dial
}

pub(crate) fn get(dial: &Dial, path: &str) -> Request {
    Request::new(&dial.url, "GET", path, &[], &[])
}
