//! Visits of pages of servers in threads, over real sockets.

mod limits;
mod refusals;

use std::collections::BTreeSet;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use firstbyte_tests::port::Port;

use super::*;
use crate::client::{Protocol, Url};
use crate::fetch::tests::server::{Answer, PATIENCE, Secure, head, scripted, serve_with};
use crate::page::{Kind, Resource, View, Visit};

fn options(address: SocketAddr, protocol: Protocol, secure: Option<&Secure>) -> Options {
    let scheme = if secure.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://localhost:{}/", address.port());
    let mut options = Options::new(Url::parse(&url).expect("a URL"));
    options.protocol = Some(protocol);
    options.timeout = PATIENCE;
    if let Some(secure) = secure {
        options.trust = secure.trust();
    }
    options
}

fn cold(options: &Options) -> Visit {
    visit(options, &mut Kept::default(), &mut |_| true).expect("a document")
}

fn html(body: impl Into<Vec<u8>>) -> Answer {
    Answer::new(200, &[("Content-Type", "text/html")], body)
}

fn connections(visit: &Visit) -> BTreeSet<u64> {
    let carried = visit.resources.iter().filter_map(|one| one.connection);
    carried.collect()
}

fn find<'a>(visit: &'a Visit, path: &str) -> &'a Resource {
    let found = visit.resources.iter().find(|one| one.url.ends_with(path));
    found.unwrap_or_else(|| panic!("{path} was not asked for: {:?}", paths(visit)))
}

fn paths(visit: &Visit) -> Vec<&str> {
    let urls = visit.resources.iter();
    urls.map(|one| one.url.rsplit_once('/').map_or("", |(_, name)| name))
        .collect()
}

/// A page of a hundred files, answered by each file after its number.
fn hundred(path: &str) -> Answer {
    if path != "/" {
        return Answer::new(200, &[], vec![b'x'; 1024]);
    }
    let mut page = "<title>Hundred</title>".to_owned();
    for number in 0..98 {
        page += &format!("<img src=/{number}.png>");
    }
    page += "<script src=/last.js></script><link rel=stylesheet href=/last.css>";
    html(page)
}

#[test]
fn hundred_files_come_over_as_many_connections_as_browsers_make() {
    let secure = Secure::new(0);
    for (protocol, most) in [(Protocol::H1, 6), (Protocol::H2, 1), (Protocol::Spdy, 1)] {
        for secure in [None, Some(&secure)] {
            let address = serve_with(protocol, secure, hundred);
            let visit = cold(&options(address, protocol, secure));
            assert_eq!(visit.resources.len(), 101);
            assert_eq!(connections(&visit).len(), most, "{protocol:?}");
            assert_eq!(visit.title.as_deref(), Some("Hundred"));
            assert!(visit.round_trip_ms.is_some_and(|ms| ms > 0.0));
            assert!(!visit.agent.is_browser && visit.view == View::Cold);
            let page = &visit.resources[0];
            assert_eq!(page.kind, Kind::Document);
            assert_eq!(page.phases.tls_ms.is_some(), secure.is_some());
            assert!(page.phases.dns_ms.is_some() && page.phases.connect_ms.is_some());
            for file in &visit.resources[1..] {
                assert_eq!(
                    (file.status, file.body_bytes, &file.error),
                    (200, Some(1024), &None)
                );
                assert_eq!(file.initiator, Some(0));
                assert!(file.start_ms >= page.first_byte_ms() && file.phases.wait_ms.is_some());
                let bytes: u64 = file.pieces.iter().map(|piece| piece.bytes).sum();
                assert_eq!(bytes, 1024);
                let last = file.pieces.last().map(|piece| piece.at_ms);
                let gap = (last.expect("a piece") - file.end_ms()).abs();
                assert!(gap < 0.001, "the phases are the whole time: {file:?}");
            }
            let ends = visit.resources.iter().map(Resource::end_ms);
            assert_eq!(visit.timings.load_ms, ends.reduce(f64::max));
            assert_eq!(visit.timings.first_byte_ms, Some(page.first_byte_ms()));
        }
    }
}

#[test]
fn style_sheets_and_scripts_come_before_images() {
    let visit = cold(&options(
        serve_with(Protocol::H1, None, hundred),
        Protocol::H1,
        None,
    ));
    let sent = |path: &str| {
        let one = find(&visit, path);
        one.first_byte_ms() - one.phases.wait_ms.expect("it was sent")
    };
    // They are last in the document and are requested first. Only images sent before their discovery precede them.
    let images = (0..98).map(|number| sent(&format!("/{number}.png")));
    let before = images.filter(|image| *image < sent("/last.css")).count();
    assert!(before <= 12, "{before}");
    assert!(sent("/last.css") <= sent("/last.js"));
}

#[test]
fn what_style_sheets_name_is_asked_for_level_by_level() {
    let css = |text: &str| Answer::new(200, &[("Content-Type", "text/css")], text);
    let address = serve_with(Protocol::H2, None, move |path| match path {
        "/" => {
            html("<base href=/x/><link rel=stylesheet href=a.css><link rel=stylesheet href=a.css>")
        }
        "/x/a.css" => {
            css("@import '../b.css'; .a { background: url(a.png) } .b { background: url(data:,) }")
        }
        "/b.css" => {
            css("@font-face { src: url(f.woff2), url(f.woff) } .c { background: url(/x/a.png) }")
        }
        _ => Answer::new(404, &[], ""),
    });
    let visit = cold(&options(address, Protocol::H2, None));
    let found: Vec<_> = visit
        .resources
        .iter()
        .map(|one| (one.kind, one.initiator, one.status))
        .collect();
    assert_eq!(paths(&visit), ["", "a.css", "b.css", "a.png", "f.woff2"]);
    let expected = [
        (Kind::Document, None, 200),
        (Kind::Stylesheet, Some(0), 200),
        (Kind::Stylesheet, Some(1), 200),
        (Kind::Image, Some(1), 404),
        (Kind::Font, Some(2), 404),
    ];
    assert_eq!(found, expected);
    assert!(find(&visit, "a.png").url.ends_with("/x/a.png"));
    assert!(
        find(&visit, "f.woff2")
            .url
            .ends_with(&format!(":{}/f.woff2", address.port()))
    );
}

#[test]
fn resources_are_asked_for_while_the_document_streams_in() {
    let (asked, wait) = std::sync::mpsc::channel();
    let (asked, wait) = (Mutex::new(asked), Mutex::new(wait));
    let address = scripted(move |mut stream| {
        let path = head(&mut stream);
        if path.starts_with("GET /a.css ") {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            asked
                .lock()
                .expect("no panic")
                .send(())
                .expect("the page waits");
        } else {
            let start = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<link rel=stylesheet href=a.css>";
            let _ = stream.write_all(start);
            // The rest is sent after the request of the style sheet.
            let all = wait
                .lock()
                .expect("no panic")
                .recv_timeout(PATIENCE)
                .is_ok();
            let _ = stream.write_all(if all { b"<title>Whole</title>" } else { b"" });
        }
    });
    let visit = cold(&options(address, Protocol::H1, None));
    assert_eq!(visit.title.as_deref(), Some("Whole"));
    let [page, css] = &visit.resources[..] else {
        panic!("{:?}", paths(&visit));
    };
    assert!(css.start_ms < page.end_ms() && page.pieces.len() == 2);
}

#[test]
fn redirects_are_followed() {
    let address = serve_with(Protocol::H1, None, |path| match path {
        "/" => Answer::new(301, &[("Location", "/next")], "<img src=no.png>"),
        "/next" => Answer::new(302, &[("Location", "page/")], ""),
        "/page/" => html("<img src=i.png><img src=/loop>"),
        "/loop" => Answer::new(302, &[("Location", "/loop")], ""),
        _ => Answer::new(200, &[], "x"),
    });
    let visit = cold(&options(address, Protocol::H1, None));
    let statuses: Vec<u16> = visit.resources.iter().map(|one| one.status).collect();
    assert_eq!(statuses[..3], [301, 302, 200]);
    assert_eq!(find(&visit, "/page/i.png").initiator, Some(2));
    assert_eq!(
        paths(&visit).iter().filter(|path| **path == "loop").count(),
        1
    );
    assert_eq!(
        visit.timings.first_byte_ms,
        Some(visit.resources[2].first_byte_ms())
    );
}

#[test]
fn a_warm_view_takes_what_is_fresh_from_the_cache() {
    let secure = Secure::new(0);
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let address = serve_with(Protocol::H2, Some(&secure), move |path| {
        counter.fetch_add(1, Ordering::Relaxed);
        let fresh = ("Cache-Control", "max-age=600");
        match path {
            "/" => html("<link rel=stylesheet href=a.css><img src=b.png>"),
            "/a.css" => Answer::new(200, &[fresh], ".a { background: url(c.png) }"),
            "/c.png" => Answer::new(200, &[fresh], "c"),
            _ => Answer::new(200, &[], "b"),
        }
    });
    let options = options(address, Protocol::H2, Some(&secure));
    let mut kept = Kept::default();
    let first = visit(&options, &mut kept, &mut |_| true).expect("a document");
    assert!(first.resources.iter().all(|one| !one.from_cache));
    assert_eq!(asked.swap(0, Ordering::Relaxed), 4);
    let warm = visit(&options, &mut kept, &mut |_| true).expect("a document");
    assert_eq!((warm.view, asked.load(Ordering::Relaxed)), (View::Warm, 2));
    for (path, cached) in [
        ("/", false),
        ("/a.css", true),
        ("/b.png", false),
        ("/c.png", true),
    ] {
        let resource = find(&warm, path);
        assert_eq!(
            (resource.from_cache, resource.status),
            (cached, 200),
            "{path}"
        );
        assert_eq!(resource.connection.is_none(), cached, "{path}");
        assert_eq!(resource.end_ms() == resource.start_ms, cached, "{path}");
    }
    assert_eq!(find(&warm, "/c.png").initiator, Some(1));
}

#[test]
fn contents_are_decoded_to_find_what_they_name() {
    let mut page = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    page.write_all(b"<img src=a.png>").expect("memory");
    let page = page.finish().expect("memory");
    let length = page.len() as u64;
    let address = serve_with(Protocol::H1, None, move |path| match path {
        "/" => Answer::new(200, &[("Content-Encoding", "gzip")], page.clone()),
        _ => Answer::new(200, &[], "x"),
    });
    let visit = cold(&options(address, Protocol::H1, None));
    assert_eq!(paths(&visit), ["", "a.png"]);
    let page = &visit.resources[0];
    assert_eq!(
        (page.body_bytes, page.content_bytes),
        (Some(length), Some(15))
    );
}

#[test]
fn connections_that_close_are_replaced() {
    let first = AtomicUsize::new(0);
    let address = scripted(move |mut stream| {
        // The first connection is closed at its third request, others after some responses.
        let is_first = first.fetch_add(1, Ordering::Relaxed) == 0;
        for number in 0..20 {
            let head = head(&mut stream);
            let Some(path) = head.split(' ').nth(1).filter(|_| !is_first || number < 2) else {
                return;
            };
            let body = hundred(path).body;
            let length = body.len();
            let fields = format!("Content-Type: text/html\r\nContent-Length: {length}");
            let answer = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
            let _ = stream.write_all(&[answer.as_bytes(), &body].concat());
        }
    });
    let visit = cold(&options(address, Protocol::H1, None));
    let errors: Vec<_> = visit
        .resources
        .iter()
        .filter_map(|one| one.error.clone())
        .collect();
    assert_eq!((visit.resources.len(), errors), (101, Vec::new()));
    assert!(connections(&visit).len() >= 6);
}

#[test]
fn servers_that_do_not_answer_cost_their_resources_alone() {
    let silent = scripted(|mut stream| _ = std::io::copy(&mut stream, &mut std::io::sink()));
    let closed = Port::reserve();
    let gone = SocketAddr::from(([127, 0, 0, 1], closed.number()));
    // More than there are connections for.
    let lost: String = (0..8)
        .map(|n| format!("<img src=//{silent}/a{n}>"))
        .collect();
    let page = format!("{lost}<img src=//{gone}/b><img src=/c><img src=http://[::1/>");
    let address = serve_with(Protocol::H1, None, move |path| match path {
        "/" => html(page.clone()),
        _ => Answer::new(200, &[], "x"),
    });
    let mut options = options(address, Protocol::H1, None);
    options.timeout = Duration::from_secs(2);
    let start = Instant::now();
    let visit = cold(&options);
    assert!(start.elapsed() >= options.timeout && start.elapsed() < PATIENCE);
    let error = |path: &str| find(&visit, path).error.clone().unwrap_or_default();
    for number in 0..8 {
        let why = error(&format!("/a{number}"));
        assert_eq!(why, "not complete within the visit's 2 s");
    }
    assert_eq!(error("/b"), format!("cannot connect to {gone}: refused"));
    assert_eq!(
        (error("/c"), find(&visit, "/c").status),
        (String::new(), 200)
    );
    assert_eq!(visit.resources.len(), 11);
    assert!(visit.notes.iter().any(|note| note.contains("was stopped")));
}

#[test]
fn a_page_without_an_answer_is_told() {
    let closed = Port::reserve();
    let gone = SocketAddr::from(([127, 0, 0, 1], closed.number()));
    let why = visit(
        &options(gone, Protocol::H1, None),
        &mut Kept::default(),
        &mut |_| true,
    );
    assert!(why.expect_err("nobody listens").contains("refused"));
    let nonsense = scripted(|mut stream| {
        head(&mut stream);
        let _ = stream.write_all(b"SSH-2.0-x\r\n");
    });
    let why = visit(
        &options(nonsense, Protocol::H1, None),
        &mut Kept::default(),
        &mut |_| true,
    );
    let port = nonsense.port();
    assert_eq!(
        why.expect_err("it is none"),
        format!("http://localhost:{port}/: server sent no valid HTTP/1.0 header")
    );
    // Each connection fails before a request could be sent.
    for greeting in [&b"SSH-2.0-x\r\n"[..], b""] {
        let early = scripted(move |mut stream| _ = stream.write_all(greeting));
        let start = Instant::now();
        let options = options(early, Protocol::H1, None);
        let why = visit(&options, &mut Kept::default(), &mut |_| true);
        assert!(why.is_err() && start.elapsed() < PATIENCE / 2, "{why:?}");
    }
    let address = serve_with(Protocol::H1, None, hundred);
    let stopped = visit(
        &options(address, Protocol::H1, None),
        &mut Kept::default(),
        &mut |_| false,
    );
    assert_eq!(stopped.expect_err("it was ended"), "interrupted");
}

#[test]
fn known_hosts_have_addresses_and_protocols_of_their_own() {
    let file = |_: &str| Answer::new(200, &[], "x");
    let arms = [Protocol::H1, Protocol::H2, Protocol::Spdy];
    let servers = arms.map(|protocol| serve_with(protocol, None, file));
    let images = servers.iter().enumerate().flat_map(|(arm, address)| {
        let port = address.port();
        (0..12).map(move |number| format!("<img src=http://s{arm}.test:{port}/{number}>"))
    });
    let images: String = images.collect();
    let page = serve_with(Protocol::H1, None, move |_| html(images.clone()));
    let known = |name: &str, protocol| HostOverride {
        name: name.to_owned(),
        address: Some(page.ip()),
        protocol,
    };
    let mut options = options(page, Protocol::H1, None);
    let url = format!("http://www.test:{}/", page.port());
    options.url = Url::parse(&url).expect("a URL");
    // The first has the protocol of the visit.
    options.hosts = vec![
        known("www.test", None),
        known("s0.test", None),
        known("s1.test", Some(Protocol::H2)),
        known("s2.test", Some(Protocol::Spdy)),
    ];
    let visit = cold(&options);
    for (arm, most) in [(0, 6), (1, 1), (2, 1)] {
        let host = format!("http://s{arm}.test:");
        let files = visit
            .resources
            .iter()
            .filter(|one| one.url.starts_with(&host));
        let files: Vec<_> = files.collect();
        let protocol = arms[arm].alpn();
        assert_eq!(files.len(), 12);
        for file in &files {
            assert_eq!((file.status, &file.error), (200, &None));
            assert_eq!(file.protocol.as_bytes(), protocol);
            assert!(file.phases.dns_ms.is_none(), "no name is looked up");
        }
        let used: BTreeSet<_> = files.iter().filter_map(|one| one.connection).collect();
        assert!(used.len() <= most, "{arm}: {used:?}");
    }
}
