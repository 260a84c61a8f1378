//! OCSP responses fetched from a responder: a client that requests the status gets it, and a failed responder costs the
//! handshake only its staple.
//!
//! The `openssl` command is the responder, behind sockets of the test so that it is reached on 127.0.0.1 alone. It is
//! also the client. Source: nginx documentation, `ssl_stapling`.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::tls_client::{Authority, Tls, authority};
use firstbyte_tests::dir::TempDir;
use firstbyte_tests::port::Port;
use firstbyte_tests::wait::wait_until;
use firstbyte_tests::{Server, peer};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, SerialNumber};
use rustix::process::Signal;

/// The number of the server's certificate.
const SERIAL: u8 = 0x42;

/// An authority, a server's certificate, and the files of the responder, in a directory.
struct Scene {
    dir: TempDir,
    issuer: Authority,
}

impl Scene {
    fn new() -> Self {
        let (dir, issuer) = (TempDir::new(), authority("issuer"));
        let (certificate, key) = leaf("localhost", &issuer, SERIAL, &[]);
        dir.write("c.pem", certificate + &issuer.pem());
        dir.write("k.pem", key);
        dir.write("ca.pem", issuer.pem());
        let scene = Self { dir, issuer };
        scene.responder(
            "responder",
            &scene.issuer,
            &[ExtendedKeyUsagePurpose::OcspSigning],
        );
        let row =
            |status: &str, serial| format!("{status}\t{serial:02X}\tunknown\t/CN=localhost\n");
        scene.dir.write("good", row("V\t491231235959Z\t", SERIAL));
        scene
            .dir
            .write("revoked", row("R\t491231235959Z\t240101000000Z", SERIAL));
        scene.dir.write("empty", "");
        scene
    }

    /// A certificate and key for signing responses, in a file.
    fn responder(&self, name: &str, by: &Authority, usages: &[ExtendedKeyUsagePurpose]) {
        let (certificate, key) = leaf(name, by, 0x43, usages);
        self.dir.write(&format!("{name}.pem"), certificate + &key);
    }

    /// A responder with an index and a signer, by their files.
    fn openssl(&self, index: &str, signer: &str) -> Responder {
        let dir = self.dir.path().to_owned();
        let (index, signer) = (dir.join(index), dir.join(format!("{signer}.pem")));
        Responder::new(move |stream, request| {
            let response = answer(&dir, &index, &signer, request);
            let head = "HTTP/1.0 200 OK\r\nContent-type: application/ocsp-response\r\n\r\n";
            say(stream, &[head.as_bytes(), &response].concat());
        })
    }

    fn files(&self) -> String {
        let dir = self.dir.path().display();
        format!("ssl_certificate {dir}/c.pem; ssl_certificate_key {dir}/k.pem;")
    }
}

/// A certificate and its key, PEM.
fn leaf(
    name: &str,
    by: &Authority,
    serial: u8,
    usages: &[ExtendedKeyUsagePurpose],
) -> (String, String) {
    let mut params = CertificateParams::new([name.to_owned()]).expect("a host name");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::NoCa;
    params.serial_number = Some(SerialNumber::from(vec![serial]));
    params.extended_key_usages = usages.to_vec();
    let key = KeyPair::generate().expect("there is randomness");
    let certificate = params.signed_by(&key, by).expect("it can be signed");
    (certificate.pem(), key.serialize_pem())
}

/// Runs `openssl` with words and returns its output.
fn openssl(words: &[&str]) -> String {
    let mut command = Command::new("openssl");
    let command = command.args(words).stdin(Stdio::null());
    let output = command.output().expect("the openssl command is there");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Answer of the `openssl` command to a request, DER.
fn answer(dir: &Path, index: &Path, signer: &Path, request: &[u8]) -> Vec<u8> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = |kind: &str| dir.join(format!("{kind}{n}"));
    let (asked, answered) = (name("request"), name("response"));
    fs::write(&asked, request).expect("the directory is there");
    let text = |path: &Path| path.display().to_string();
    let said = openssl(&[
        "ocsp",
        "-index",
        &text(index),
        "-CA",
        &text(&dir.join("ca.pem")),
        "-rsigner",
        &text(signer),
        "-reqin",
        &text(&asked),
        "-respout",
        &text(&answered),
        "-ndays",
        "7",
    ]);
    fs::read(&answered).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// A responder on a port of 127.0.0.1, and the number of its requests.
struct Responder {
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl Responder {
    /// A responder that runs `act` for each request, DER.
    fn new(act: impl Fn(&mut TcpStream, &[u8]) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let port = listener.local_addr().expect("an address").port();
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("accept");
                let request = question(&mut stream);
                counter.fetch_add(1, Ordering::Relaxed);
                act(&mut stream, &request);
            }
        });
        Self { port, asked }
    }

    /// A responder that sends these bytes.
    fn saying(bytes: &'static [u8]) -> Self {
        Self::new(move |stream, _| say(stream, bytes))
    }

    fn request_count(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

fn say(stream: &mut TcpStream, bytes: &[u8]) {
    // The client may have left after enough bytes.
    let _ = stream.write_all(bytes);
}

/// The question of a GET request, DER.
fn question(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a whole head");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("it is ASCII");
    let target = head.strip_prefix("GET /status/").expect("a GET");
    let (target, _) = target.split_once(" HTTP/1.0\r\nHost: ").expect("HTTP/1.0");
    let digits = target
        .replace("%2B", "+")
        .replace("%2F", "/")
        .replace("%3D", "=");
    decode(&digits)
}

/// Bytes from base64.
fn decode(digits: &str) -> Vec<u8> {
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for digit in digits.trim_end_matches('=').chars() {
        let value = alphabet.find(digit).expect("base64");
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

/// Stapled status that a client gets in a handshake.
fn status(port: u16, name: &str, ca: &Path) -> String {
    let (to, ca) = (format!("127.0.0.1:{port}"), ca.display().to_string());
    let words = [
        "s_client",
        "-status",
        "-servername",
        name,
        "-CAfile",
        &ca,
        "-connect",
        &to,
    ];
    let text = openssl(&words);
    assert!(text.contains("Verify return code: 0 (ok)"), "{text}");
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with("Cert Status: "));
    match line {
        Some(line) => line.trim_start()["Cert Status: ".len()..].to_owned(),
        None => {
            assert!(text.contains("OCSP response: no response sent"), "{text}");
            "none".to_owned()
        }
    }
}

#[track_caller]
fn wait_for_good(port: u16, ca: &Path) {
    wait_until("the response is stapled", || {
        status(port, "localhost", ca) == "good"
    });
}

#[test]
fn what_the_responder_says_is_stapled_and_survives_a_reload() {
    let scene = Scene::new();
    let ca: PathBuf = scene.dir.path().join("ca.pem");
    let (responder, files) = (scene.openssl("good", "responder"), scene.files());
    let text = format!(
        "{files} ssl_stapling on; ssl_stapling_verify on; ssl_trusted_certificate {};
         ssl_stapling_responder http://127.0.0.1:{}/status;
         server {{ listen 127.0.0.1:%%PORT%% ssl; return 204; }}
         server {{ listen 127.0.0.1:%%PORT2%% ssl; return 204; }}",
        ca.display(),
        responder.port
    );
    let server = Server::http(&text).start();
    wait_for_good(server.port(), &ca);
    wait_for_good(server.port_number(2), &ca);
    if !peer::is_firstbyte() {
        return;
    }
    // One request is enough for both servers. After a reload they have the response at once, without another request.
    assert_eq!(responder.request_count(), 1);
    server.rewrite_conf(|text| text.replacen("204", "200 again", 1));
    server.signal(Signal::HUP);
    wait_until("the new configuration serves", || {
        Tls::new().get(server.port(), "localhost", "/").body == "again"
    });
    assert_eq!(status(server.port(), "localhost", &ca), "good");
    assert_eq!(status(server.port_number(2), "localhost", &ca), "good");
    assert_eq!(responder.request_count(), 1);
}

#[test]
fn names_of_responders_are_resolved() {
    let scene = Scene::new();
    let ca = scene.dir.path().join("ca.pem");
    let responder = scene.openssl("good", "responder");
    let (names, queries) = name_server();
    let text = format!(
        "{} ssl_stapling on; resolver 127.0.0.1:{names} ipv6=off; resolver_timeout 5s;
         server {{ listen 127.0.0.1:%%PORT%% ssl; return 204;
           ssl_stapling_responder http://localhost:{}/status; }}",
        scene.files(),
        responder.port
    );
    let server = Server::http(&text).start();
    wait_for_good(server.port(), &ca);
    assert!(queries.load(Ordering::Relaxed) > 0);
}

/// The port of a name server with one address, and the number of its queries.
fn name_server() -> (u16, Arc<AtomicUsize>) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let port = socket.local_addr().expect("an address").port();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    std::thread::spawn(move || {
        let mut query = [0; 512];
        loop {
            let (length, asker) = socket.recv_from(&mut query).expect("a query");
            counter.fetch_add(1, Ordering::Relaxed);
            let mut reply = query[..length].to_vec();
            (reply[2], reply[3], reply[7]) = (0x81, 0x80, 1);
            reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
            socket.send_to(&reply, asker).expect("send");
        }
    });
    (port, asked)
}

#[test]
fn whatever_is_wrong_with_a_responder_handshakes_go_on_without() {
    let scene = Scene::new();
    let ca = scene.dir.path().join("ca.pem");
    let (strange, issuer) = (authority("strange"), &scene.issuer);
    scene.responder("no-usage", issuer, &[ExtendedKeyUsagePurpose::ServerAuth]);
    scene.responder(
        "stranger",
        &strange,
        &[ExtendedKeyUsagePurpose::OcspSigning],
    );
    let page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>";
    let garbage = b"HTTP/1.1 200 OK\r\n\r\ngarbage";
    let short = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0";
    let forever = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&forever);
    let silent = Responder::new(move |stream, _| {
        // The connection stays open without a response.
        let stream = stream.try_clone().expect("a descriptor");
        kept.lock().expect("no panic before").push(stream);
    });
    let reserved = Port::reserve();
    let down = reserved.number();
    let cases = [
        (
            scene.openssl("revoked", "responder"),
            "certificate status \"revoked\" in the OCSP response",
        ),
        (
            scene.openssl("empty", "responder"),
            "certificate status \"unknown\" in the OCSP response",
        ),
        (
            scene.openssl("good", "no-usage"),
            "OCSP_basic_verify() failed",
        ),
        (
            scene.openssl("good", "stranger"),
            "OCSP_basic_verify() failed",
        ),
        (
            Responder::saying(page),
            "OCSP responder sent invalid \"Content-Type\" header: \"text/html\"",
        ),
        (Responder::saying(garbage), "d2i_OCSP_RESPONSE() failed"),
        (
            Responder::saying(short),
            if peer::is_firstbyte() {
                "prematurely closed"
            } else {
                "d2i_OCSP"
            },
        ),
        (
            Responder::saying(b"HTTP/1.1 200 OK\r\nX"),
            "OCSP responder prematurely closed connection",
        ),
        (
            Responder::saying(b"SSH-2.0\r\n"),
            "OCSP responder sent invalid response",
        ),
    ];
    let mut text = format!(
        "{} ssl_stapling on; ssl_stapling_verify on; ssl_trusted_certificate {};",
        scene.files(),
        ca.display()
    );
    let ports = cases.iter().map(|(responder, _)| responder.port);
    for (n, port) in ports.chain([down, silent.port]).enumerate() {
        text += &format!(
            "server {{ listen 127.0.0.1:%%PORT%% ssl; server_name s{n}; return 204;
               ssl_stapling_responder http://127.0.0.1:{port}/status; }}"
        );
    }
    let all = 0..cases.len() + 2;
    let server = Server::http(&text).start();
    for n in all.clone() {
        assert_eq!(status(server.port(), &format!("s{n}"), &ca), "none");
    }
    let end = format!(", certificate: \"{}/c.pem\"", scene.dir.path().display());
    let logged = |text: &str, port: u16| {
        let about = format!(
            " while requesting certificate status, responder: 127.0.0.1, peer: 127.0.0.1:{port}{end}"
        );
        wait_until(&format!("{text} {about}"), || {
            let log = server.error_log();
            log.lines()
                .any(|line| line.contains(text) && line.ends_with(&about))
        });
    };
    for (responder, text) in &cases {
        logged(text, responder.port);
    }
    logged("failed (111: Connection refused)", down);
    wait_until("the silent one is asked", || silent.request_count() == 1);
    for n in all {
        assert_eq!(status(server.port(), &format!("s{n}"), &ca), "none", "{n}");
    }
}
