//! A page over FastCGI that flushes its head at once and its body half a second later: each part is sent to the client when
//! it comes.
//!
//! The scripted server sends its next piece only if the test permits it; PHP waits for a file of the test.
//! `FLUSH_LATE_MS=5` is the permitted delay of a byte; the default is generous. Own executable: delays of bytes are
//! measured. Sources: nginx documentation, `fastcgi_buffering`, `gzip`; FastCGI 1.0 specification, section 3.3;
//! docs/differences.md.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use firstbyte_tests::backend::{Backend, Gate, Step};
use firstbyte_tests::flushed::{Expected, Reader, judge};
use firstbyte_tests::packaged::with_packaged;
use firstbyte_tests::php::{self, Listen};
use firstbyte_tests::wait::DEADLINE;
use firstbyte_tests::{Server, fastcgi, peer};

/// Pause of the page after its head.
const PAUSE: Duration = Duration::from_millis(500);
/// Its pieces, one by one.
const PIECES: [&str; 3] = ["<p>one", "<p>two", "<p>three"];
const HEAD: &str = "Content-Type: text/html\r\nX-Powered-By: script\r\n\r\n";

/// A server with `/` buffered and `/unbuffered` not; `pass` is the directive for the upstream server.
fn server(pass: &str) -> Server {
    let codings = if peer::is_firstbyte() {
        "brotli on; brotli_types *; zstd on; zstd_types *;"
    } else {
        ""
    };
    let server = Server::http(&format!(
        "gzip on; gzip_types *; gzip_min_length 0; {codings}
         server {{ listen 127.0.0.1:%%PORT%%; http2 on; root %%DIR%%/site;
             include fastcgi_params;
             fastcgi_param SCRIPT_FILENAME $document_root/app.php;
             fastcgi_param PATH_INFO /parts;
             location / {{ fastcgi_pass {pass}; }}
             location /unbuffered {{ fastcgi_pass {pass}; fastcgi_buffering off; }} }}"
    ));
    php::with_site(with_packaged(server, &["fastcgi_params"])).start()
}

/// Requests, and ways to send them; nginx flushes only without buffering.
fn ways() -> Vec<(&'static str, &'static str, &'static str)> {
    let ours = peer::is_firstbyte();
    let codings = ["identity", "gzip", "br", "zstd"];
    let codings = &codings[..if ours { 4 } else { 2 }];
    let paths = ["/unbuffered", "/"];
    let paths = &paths[..if ours { 2 } else { 1 }];
    let mut ways = Vec::new();
    for protocol in ["http/1.1", "h2"] {
        for coding in codings {
            ways.extend(paths.iter().map(|path| (protocol, *coding, *path)));
        }
    }
    ways
}

/// The gates of the response that comes next: of its head, of each piece, of its end.
type Gates = Arc<Mutex<Vec<Gate>>>;

fn gated() -> (Backend, Gates) {
    let gates = Gates::default();
    let of_script = Arc::clone(&gates);
    let backend = Backend::scripted(move |_| {
        let own = of_script.lock().expect("nobody panics with it").clone();
        let mut own = own.into_iter();
        let mut gate = || Step::Gate(own.next().unwrap_or_default());
        let mut steps = vec![fastcgi::request(), gate(), fastcgi::stdout(HEAD)];
        for piece in PIECES {
            steps.extend([gate(), fastcgi::stdout(piece)]);
        }
        steps.extend([gate(), fastcgi::end()]);
        steps
    });
    (backend, gates)
}

/// Requests one page of the scripted server; returns the worst delay of its head and its pieces, or an error.
fn delay(
    gates: &Gates,
    port: u16,
    (protocol, coding, path): (&str, &str, &str),
) -> Result<Duration, String> {
    let own: Vec<Gate> = (0..PIECES.len() + 2).map(|_| Gate::default()).collect();
    let mut of_script = gates.lock().expect("nobody panics with it");
    of_script.clone_from(&own);
    drop(of_script);
    let mut reader = Reader::ask(protocol, port, path, coding);
    let start = Instant::now();
    own[0].open();
    if !reader.holds_within(DEADLINE / 4, |len| len.is_some()) {
        return Err("the head is held back".to_owned());
    }
    let late = start.elapsed();
    let expected = Expected {
        first: Vec::new(),
        pause: PAUSE,
        pieces: PIECES.map(Vec::from).into(),
        coding,
    };
    let worst = expected.worst_delay(&mut reader, |n| own[n + 1].open())?;
    own[PIECES.len() + 1].open();
    Ok(worst.max(late))
}

#[test]
fn head_and_body_leave_when_the_application_sends_them() {
    let (backend, gates) = gated();
    let server = server(&backend.name());
    let mut findings = Vec::new();
    for way in ways() {
        let once = || delay(&gates, server.port(), way);
        findings.extend(judge(&format!("{way:?}"), once));
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// Requests through PHP, which sends its head with the first line.
#[test]
fn what_php_flushes_leaves_when_it_does() {
    let server = server(Listen::Unix.name());
    let Some(_php) = php::start(&server, Listen::Unix, 4, "") else {
        return;
    };
    let mut pages = 0;
    let mut findings = Vec::new();
    for (protocol, coding, path) in ways() {
        let once = || {
            pages += 1;
            let name = format!("page{pages}");
            php::gates(&server, &name);
            let target = format!("{path}?gates={name}");
            let mut reader = Reader::ask(protocol, server.port(), &target, coding);
            let pieces = (0..10).map(|n| format!("part {n}\n").into_bytes());
            let expected = Expected {
                first: b"parts\n".to_vec(),
                pause: PAUSE,
                pieces: pieces.collect(),
                coding,
            };
            expected.worst_delay(&mut reader, |n| php::open(&server, &name, n))
        };
        findings.extend(judge(&format!("{protocol}, {coding}, {path}"), once));
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
