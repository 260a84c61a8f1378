//! `aio` and `thread_pool`: refused values, and files that are not in the page cache.
//!
//! Source: nginx's documentation of ngx_http_core_module and of the core functionality.

use std::path::Path;
use std::process::Command;

use crate::tls_client::site as leaf_of;
use firstbyte_tests::tls_pipe::tls_pipe;
use firstbyte_tests::{Builder, Client, H2Client, Server, SpdyClient, peer, run};
use rustix::process::Signal;

/// Larger than one read task, and not a whole number of pages.
const FILE_BYTES: usize = (3 << 20) + 123;

fn content() -> Vec<u8> {
    (0..FILE_BYTES).map(|n| (n / 251) as u8).collect()
}

fn site(main: &str, aio: &str) -> Builder {
    let http = format!(
        "http2 on; {aio} server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; sendfile on; }}"
    );
    Server::http_with(main, &http)
        .bytes("html/large", &content())
        .bytes("html/small", &content()[..9000])
}

/// Writes a file to the disk, and asks the kernel to drop it from the page cache.
fn drop_pages(path: &Path) {
    let synced = std::fs::File::open(path).and_then(|file| file.sync_all());
    synced.expect("the file is there");
    let path = format!("if={}", path.display());
    let dropped = Command::new("dd")
        .args([path.as_str(), "iflag=nocache", "count=0", "status=none"])
        .status();
    assert!(dropped.is_ok_and(|status| status.success()));
}

/// Every way in which files leave: protocols, in the clear and over TLS.
fn secured(main: &str, aio: &str) -> Builder {
    let leaf = leaf_of("localhost");
    let spdy = if peer::is_firstbyte() { "spdy" } else { "" };
    let http = format!(
        "ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem; http2 on; sendfile on; {aio}
         server {{ listen 127.0.0.1:%%PORT%% {spdy}; listen 127.0.0.1:%%PORT2%% ssl {spdy}; root %%DIR%%/html; }}"
    );
    Server::http_with(main, &http)
        .bytes("c.pem", leaf.certificate.as_bytes())
        .bytes("k.pem", leaf.key.as_bytes())
        .bytes("html/large", &content())
        .bytes("html/small", &content()[..9000])
}

fn make_cold(server: &Server) {
    drop_pages(&server.path("html/large"));
    drop_pages(&server.path("html/small"));
}

const LAST_REQUEST: &str = "GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// With full queues as well, at which nginx ends responses.
const KINDS: [(&str, &str); 6] = [
    ("", ""),
    ("", "aio off;"),
    ("", "aio on;"),
    ("", "aio threads; tcp_nopush on; sendfile_max_chunk 100k;"),
    ("thread_pool one threads=1 max_queue=1;", "aio threads=one;"),
    ("thread_pool one threads=1 max_queue=0;", "aio threads=one;"),
];

fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_sound = |main: &str| peer::is_firstbyte() || !main.contains("max_queue");
    KINDS.into_iter().filter(move |(main, _)| is_sound(main))
}

#[test]
fn files_that_were_dropped_from_the_cache_are_served_whole() {
    for (main, aio) in kinds() {
        let server = site(main, aio).allow("queue overflow").start();
        let content = content();
        make_cold(&server);
        let mut clients: Vec<_> = (0..4).map(|_| server.client()).collect();
        for client in &mut clients {
            client.send(
                "GET /large HTTP/1.1\r\nHost: a\r\n\r\nGET /small HTTP/1.1\r\nHost: a\r\n\r\n",
            );
        }
        for client in &mut clients {
            assert!(client.response().body == content, "{aio}");
            assert!(client.response().body == content[..9000], "{aio}");
        }
        make_cold(&server);
        let from = (1 << 20) - 1;
        let range = format!("Range: bytes={from}-{}", from + (1 << 20));
        let part = server.client().get_with("/large", &[&range]);
        assert!(part.body == content[from..=from + (1 << 20)], "{aio}");
        make_cold(&server);
        let ranges = "Range: bytes=2000000-2099999,0-299999,1500000-1500009,3145000-";
        let parts = server.client().get_with("/large", &[ranges]);
        for part in [2_000_000..2_100_000, 0..300_000, 1_500_000..1_500_010] {
            let wanted = &content[part];
            let mut windows = parts.body.windows(wanted.len());
            assert!(windows.any(|bytes| bytes == wanted), "{aio}");
        }
    }
}

#[test]
fn cold_files_leave_over_every_protocol() {
    for (main, aio) in kinds() {
        let server = secured(main, aio).allow("queue overflow").start();
        let content = content();
        let pipe = |alpn| tls_pipe(server.port_number(2), alpn);
        let h1 = pipe("http/1.1");
        make_cold(&server);
        let mut client = Client::connect(h1);
        assert!(client.get("/large").body == content, "TLS, {aio}");
        assert!(client.get("/small").body == content[..9000], "TLS, {aio}");
        let wanted = ["/large", "/small", "/large"];
        for port in [server.port(), pipe("h2")] {
            make_cold(&server);
            let mut client = H2Client::connect(port);
            let streams = wanted.map(|path| client.get(path));
            for (stream, len) in streams.into_iter().zip([FILE_BYTES, 9000, FILE_BYTES]) {
                assert!(client.reply(stream).body == content[..len], "HTTP/2, {aio}");
            }
        }
        if !peer::is_firstbyte() {
            continue;
        }
        for port in [server.port(), pipe("spdy/3.1")] {
            make_cold(&server);
            let mut client = SpdyClient::connect(port);
            let streams = wanted.map(|path| client.get(path));
            for (stream, len) in streams.into_iter().zip([FILE_BYTES, 9000, FILE_BYTES]) {
                assert!(client.reply(stream).body == content[..len], "SPDY, {aio}");
            }
        }
    }
}

#[test]
fn a_reload_leaves_a_download_in_progress_alone() {
    let server = site("thread_pool one threads=1;", "aio threads=one;").start();
    drop_pages(&server.path("html/large"));
    let mut client = server.client();
    client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    server.rewrite_conf(|text| text.replace("threads=one", "off"));
    server.signal(Signal::HUP);
    assert!(client.response().body == content());
    drop_pages(&server.path("html/large"));
    assert!(server.get("/large").body == content());
}

#[test]
fn a_server_that_quits_sends_what_it_reads() {
    let mut server = site("", "aio threads;").start();
    drop_pages(&server.path("html/large"));
    let mut client = server.client();
    client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    let begin = client.bytes(1);
    server.signal(Signal::QUIT);
    let rest = client.rest();
    assert_eq!(begin, b"H");
    assert!(rest.ends_with(&content()));
    assert_eq!(server.wait_for_exit(), 0);
}

#[test]
fn clients_that_leave_meanwhile_cost_nothing() {
    let server = site("", "aio threads;").start();
    for _ in 0..20 {
        drop_pages(&server.path("html/large"));
        let mut client = server.client();
        client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
        drop(client);
    }
    assert!(server.get("/large").body == content());
}

/// Length of the file of a test after it was cut, in bytes.
const CUT_AT: usize = 1000;
/// Bytes of a page of memory, on every system that runs the tests.
const PAGE_BYTES: usize = 4096;

/// Returns whether these bytes are the begin of the file of a test that was cut while it was sent.
///
/// truncate() fills the rest of the last page with zeros. sendfile() queues this page without a copy.
/// So the client may receive the zeros.
fn is_begin_of_cut_file(body: &[u8]) -> bool {
    let content = content();
    let zeroed = CUT_AT..PAGE_BYTES;
    let differs = |at: usize| body[at] != content[at] && !(zeroed.contains(&at) && body[at] == 0);
    body.len() <= content.len() && !(0..body.len()).any(differs)
}

#[test]
fn a_file_that_is_cut_while_it_is_sent_ends_the_connection() {
    for aio in ["", "aio off;"] {
        let server = site("", aio).allow("sendfile() reported that").start();
        let path = server.path("html/large");
        drop_pages(&path);
        let mut client = server.client();
        client.send(LAST_REQUEST);
        let file = std::fs::File::options().write(true).open(&path);
        let cut = file.and_then(|file| file.set_len(CUT_AT as u64));
        cut.expect("the file is ours");
        let got = client.rest();
        let end = got.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let (head, body) = got.split_at(end.expect("a head") + 4);
        assert!(is_begin_of_cut_file(body), "{aio}");
        // It was cut before its head was written, or the head may promise more than has come.
        let head = String::from_utf8_lossy(head);
        let promises = |len: usize| head.contains(&format!("Content-Length: {len}\r\n"));
        let is_sound = promises(FILE_BYTES) || promises(CUT_AT) && body.len() == CUT_AT;
        assert!(is_sound, "{} bytes after {head}", body.len());
    }
}

#[test]
fn a_file_that_is_replaced_while_it_is_sent_is_sent_as_it_was() {
    let server = site("", "").start();
    let path = server.path("html/large");
    drop_pages(&path);
    let mut client = server.client();
    client.send(LAST_REQUEST);
    client.bytes(1);
    server.dir().write("html/new", "new");
    std::fs::rename(server.path("html/new"), &path).expect("the file is ours");
    assert!(client.rest().ends_with(&content()));
    assert_eq!(server.get("/large").text(), "new");
}

#[test]
fn files_of_other_file_systems_are_served() {
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() {
        return firstbyte_tests::skip::skip_outside_ci("there is no /dev/shm");
    }
    let name = format!("firstbyte-aio-{}", std::process::id());
    let path = shm.join(&name);
    std::fs::write(&path, content()).expect("it is writable");
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; root /dev/shm; location /proc/ { alias /proc/; } }",
    )
    .start();
    let body = server.get(&format!("/{name}")).body;
    let removed = std::fs::remove_file(&path);
    assert!(body == content());
    removed.expect("the file is ours");
    // A file of procfs has the size 0.
    assert_eq!(server.get("/proc/version").status, 200);
}

/// Output of `-t` for these lines.
fn test(text: &str) -> String {
    let conf = format!("error_log %%DIR%%/error.log;\npid %%DIR%%/nginx.pid;\n{text}\n");
    let server = Server::whole(&conf)
        .allow("[emerg]")
        .file("logs/unused", "")
        .written();
    let mut arguments = server.arguments();
    arguments.push("-t".to_owned());
    run(&arguments).stderr
}

#[test]
fn pools_are_known_by_name_wherever_they_are_defined() {
    let http = |aio: &str| format!("events {{}} http {{ access_log off; aio {aio}; }}");
    for sound in [
        format!("{} thread_pool p threads=2;", http("threads=p")),
        format!(
            "thread_pool default threads=2 max_queue=10; {}",
            http("threads")
        ),
        http("threads=default"),
        http("on"),
    ] {
        let said = test(&sound);
        assert!(said.contains("test is successful"), "{sound}: {said}");
    }
    for (wrong, message) in [
        (http("threads=p"), "unknown thread pool \"p\" in "),
        (http("yes"), "\"aio\" directive invalid value in "),
        (http("off; aio off"), "\"aio\" directive is duplicate in "),
        (
            format!(
                "thread_pool p threads=1; thread_pool p threads=1; {}",
                http("off")
            ),
            "duplicate thread pool \"p\" in ",
        ),
        (
            format!("thread_pool p threads=0; {}", http("off")),
            "invalid threads value \"threads=0\" in ",
        ),
        (
            format!("thread_pool p threads=1 max_queue=x; {}", http("off")),
            "invalid max_queue value \"max_queue=x\" in ",
        ),
        (
            format!("thread_pool p max_queue=1; {}", http("off")),
            "\"thread_pool\" must have \"threads\" parameter in ",
        ),
    ] {
        let said = test(&wrong);
        assert!(said.contains(message), "{wrong}: {said}");
    }
    if peer::is_firstbyte() {
        // nginx takes any number of threads, variables in the name and, silently, parameters that it does not know.
        for (wrong, message) in [
            (
                format!("thread_pool p threads=1025; {}", http("off")),
                "invalid threads value",
            ),
            (
                format!("thread_pool p threads=1 a=b; {}", http("off")),
                "invalid value \"a=b\"",
            ),
            (
                http("threads=$uri"),
                "variables are not supported in the name",
            ),
        ] {
            let said = test(&wrong);
            assert!(said.contains(message), "{wrong}: {said}");
        }
        let most = format!("thread_pool p threads=1024; {}", http("off"));
        assert!(test(&most).contains("test is successful"));
    }
}
