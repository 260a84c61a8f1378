//! `aio` and `thread_pool`: what is refused, and files that are not in the page cache, whoever reads them.
//!
//! Source: nginx's documentation of ngx_http_core_module and of the core functionality.

use std::path::Path;
use std::process::Command;

use firstbyte_tests::{Builder, H2Client, Server, peer, run};
use rustix::process::Signal;

/// Larger than what is read by one task, and by no whole number of pages.
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

/// Writes a file to the disk and drops it from the page cache, as far as the system does as it is asked.
fn drop_pages(path: &Path) {
    let synced = std::fs::File::open(path).and_then(|file| file.sync_all());
    synced.expect("the file is there");
    let path = format!("if={}", path.display());
    let dropped = Command::new("dd")
        .args([path.as_str(), "iflag=nocache", "count=0", "status=none"])
        .status();
    assert!(dropped.is_ok_and(|status| status.success()));
}

#[test]
fn files_that_were_dropped_from_the_cache_are_served_whole() {
    for (main, aio) in [
        ("", ""),
        ("", "aio off;"),
        ("", "aio on;"),
        ("", "aio threads;"),
        ("thread_pool one threads=1 max_queue=1;", "aio threads=one;"),
        ("thread_pool one threads=1 max_queue=0;", "aio threads=one;"),
    ] {
        let server = site(main, aio).allow("queue overflow").start();
        let cold = || {
            drop_pages(&server.path("html/large"));
            drop_pages(&server.path("html/small"));
        };
        let content = content();
        cold();
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
        cold();
        let from = (1 << 20) - 1;
        let range = format!("Range: bytes={from}-{}", from + (1 << 20));
        let part = server.client().get_with("/large", &[&range]);
        assert!(part.body == content[from..=from + (1 << 20)], "{aio}");
        cold();
        let mut client = H2Client::connect(server.port());
        let streams = [
            client.get("/large"),
            client.get("/small"),
            client.get("/large"),
        ];
        for (stream, len) in streams.into_iter().zip([FILE_BYTES, 9000, FILE_BYTES]) {
            assert!(client.reply(stream).body == content[..len], "{aio}");
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
fn a_file_that_is_cut_while_it_is_sent_ends_the_connection() {
    let server = site("", "").allow("truncated").start();
    let path = server.path("html/large");
    drop_pages(&path);
    let mut client = server.client();
    client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    let file = std::fs::File::options().write(true).open(&path);
    let cut = file.and_then(|file| file.set_len(1000));
    cut.expect("the file is ours");
    let got = client.rest();
    assert!(got.len() <= FILE_BYTES + 1000, "{}", got.len());
}

/// What `-t` says of these lines.
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
    let http = |aio: &str| format!("events {{}} http {{ aio {aio}; }}");
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
