//! `gzip`, `brotli`, `zstd` and `compress_cache`.

use std::cell::Cell;
use std::io::Read;

use engines::http::Chunk;
use server_http::exchange::{BODY_BUDGET_BYTES, Exchange, Pulled};

use crate::site::{Answer, Site};

const ALL: &str = "gzip on; brotli on; zstd on; types { text/html html; text/css css; }";

/// Returns compressible text.
pub(crate) fn text(len: usize) -> String {
    let lines = (0..).map(|n| format!("<p>line {} of a page</p>\n", n * 7919 % 10_007));
    let mut text = String::new();
    for line in lines {
        if text.len() >= len {
            break;
        }
        text.push_str(&line);
    }
    text.truncate(len);
    text
}

/// The text that a client decodes from these bytes; of an unfinished stream, its beginning.
pub(crate) fn decoded(coding: &str, bytes: &[u8]) -> String {
    let mut text = Vec::new();
    let mut read = |mut from: Box<dyn Read + '_>| {
        // A missing end is an error only after the text.
        let _ = from.read_to_end(&mut text);
    };
    match coding {
        "" => text.extend_from_slice(bytes),
        "gzip" => read(Box::new(flate2::read::MultiGzDecoder::new(bytes))),
        "br" => read(Box::new(brotlic::DecompressorReader::new(bytes))),
        "zstd" => {
            text.reserve(8 << 20);
            let mut to = zstd_safe::OutBuffer::around(&mut text);
            let mut from = zstd_safe::InBuffer::around(bytes);
            let mut decoder = zstd_safe::DCtx::create();
            let _ = decoder.decompress_stream(&mut to, &mut from);
        }
        other => panic!("an unknown coding: {other}"),
    }
    String::from_utf8(text).expect("what was sent is text")
}

pub(crate) fn accepting(site: &mut Site, target: &str, accept: &str) -> Answer {
    site.get_with(target, &format!("Accept-Encoding: {accept}\r\n"))
}

#[test]
fn a_body_is_compressed_as_the_client_likes_it_best() {
    let page = text(5000);
    let mut site = Site::server(ALL).file("/www/a.html", &page);
    for (accept, coding) in [
        ("gzip", "gzip"),
        ("gzip, deflate, br, zstd", "br"),
        ("gzip, zstd", "zstd"),
        ("gzip;q=1, br;q=0.5", "gzip"),
        ("*", "br"),
        ("br;q=0, zstd;q=0, gzip;q=0", ""),
        ("deflate", ""),
    ] {
        let answer = accepting(&mut site, "/a.html", accept);
        assert_eq!(answer.field("Content-Encoding"), coding, "{accept}");
        assert_eq!(answer.field("Vary"), "Accept-Encoding", "{accept}");
        assert_eq!(decoded(coding, &answer.bytes), page, "{accept}");
        assert_eq!(
            answer.field("Content-Length"),
            answer.bytes.len().to_string()
        );
        let plain = coding.is_empty();
        assert_eq!(answer.field("ETag").starts_with("W/"), !plain);
        assert_eq!(answer.field("Accept-Ranges").is_empty(), !plain);
        assert!(!answer.field("Last-Modified").is_empty());
    }
    assert_eq!(site.get("/a.html").field("Content-Encoding"), "");
}

#[test]
fn the_order_among_equals_can_be_changed() {
    let mut site = Site::server(&format!(
        "{ALL} location /z/ {{ compress_order zstd; }} location /g/ {{ compress_order gzip br zstd; }}"
    ))
    .file("/www/z/a.html", &text(500))
    .file("/www/g/a.html", &text(500));
    let accept = "gzip, br, zstd";
    for (target, coding) in [("/z/a.html", "zstd"), ("/g/a.html", "gzip")] {
        let answer = accepting(&mut site, target, accept);
        assert_eq!(answer.field("Content-Encoding"), coding);
    }
    let answer = accepting(&mut site, "/g/a.html", "gzip;q=0.5, br");
    assert_eq!(answer.field("Content-Encoding"), "br");
}

#[test]
fn a_body_of_any_size_is_whole() {
    for len in [20, 32 << 10, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20] {
        let page = text(len);
        let mut site = Site::server(&format!(
            "{ALL} compress_order br zstd gzip; brotli_comp_level 1;"
        ))
        .large_file("/www/a.html", &page);
        for coding in ["gzip", "br", "zstd"] {
            let answer = accepting(&mut site, "/a.html", coding);
            assert_eq!(answer.field("Content-Encoding"), coding);
            assert!(decoded(coding, &answer.bytes) == page, "{coding} {len}");
            let known = answer.field("Content-Length");
            assert_eq!(known.is_empty(), len > 1 << 20, "{coding} {len}");
        }
    }
}

#[test]
fn what_is_not_meant_is_left_as_it_is() {
    let mut site = Site::server(
        "gzip on; types { text/html html; text/css css; image/png png; }
         location /types/ { gzip_types text/css; }
         location /all/ { gzip_types *; }
         location /least/ { gzip_min_length 100; }
         location /off/ { gzip off; }
         location /error { return 500 \"an error that is long enough\"; }
         location /gone { return 404 \"a page that is long enough\"; }
         location /done { return 200 \"short\"; }
         location /old/ { gzip_http_version 1.0; }
         location /some/ { gzip_disable msie6 \"robot|crawler\"; }",
    );
    let page = text(200);
    for path in [
        "a.html",
        "a.css",
        "types/a.css",
        "types/a.png",
        "all/a.png",
        "off/a.html",
        "old/a.html",
        "some/a.html",
    ] {
        site = site.file(&format!("/www/{path}"), &page);
    }
    site = site
        .file("/www/least/99.html", &page[..99])
        .file("/www/least/100.html", &page[..100])
        .file("/www/19.html", &page[..19])
        .file("/www/20.html", &page[..20]);
    for (target, compressed) in [
        ("/a.html", true),
        ("/a.css", false),
        ("/types/a.css", true),
        ("/types/a.png", false),
        ("/all/a.png", true),
        ("/off/a.html", false),
        ("/error", false),
        ("/gone", false),
        ("/done", false),
        ("/least/99.html", false),
        ("/least/100.html", true),
        ("/19.html", false),
        ("/20.html", true),
    ] {
        let answer = accepting(&mut site, target, "gzip");
        assert_eq!(
            answer.field("Content-Encoding") == "gzip",
            compressed,
            "{target}"
        );
        assert_eq!(
            answer.field("Vary") == "Accept-Encoding",
            compressed,
            "{target}"
        );
    }
    let old = "HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n";
    let answer = site.send(&format!("GET /a.html {old}"));
    assert_eq!(
        (answer.field("Content-Encoding"), answer.field("Vary")),
        ("", "Accept-Encoding")
    );
    let answer = site.send(&format!("GET /old/a.html {old}"));
    assert_eq!(answer.field("Content-Encoding"), "gzip");
    for (agent, compressed) in [
        ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", false),
        (
            "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)",
            true,
        ),
        ("some Robot", false),
        ("curl", true),
    ] {
        let fields = format!("Accept-Encoding: gzip\r\nUser-Agent: {agent}\r\n");
        let answer = site.get_with("/some/a.html", &fields);
        assert_eq!(
            answer.field("Content-Encoding") == "gzip",
            compressed,
            "{agent}"
        );
    }
}

#[test]
fn through_a_proxy_gzip_depends_on_the_response() {
    let mut site = Site::server(
        "gzip on; types { text/html html; } etag off;
         location /expired { gzip_proxied expired; expires epoch; }
         location /later { gzip_proxied expired; expires max; }
         location /cached { gzip_proxied no-cache; add_header Cache-Control \"public, no-cache\"; }
         location /stored { gzip_proxied no-cache; add_header Cache-Control no-store; }
         location /auth { gzip_proxied auth; expires max; }
         location /dated { gzip_proxied no_last_modified; }
         location /tagged { gzip_proxied no_etag; }
         location /any { gzip_proxied any; }
         location /none { gzip_proxied any off; }",
    );
    let names = [
        "expired", "later", "cached", "stored", "auth", "dated", "tagged", "any", "none", "plain",
    ];
    for name in names {
        site = site.file(&format!("/www/{name}.html"), &text(100));
    }
    let fields = "Accept-Encoding: gzip\r\nVia: 1.1 proxy\r\n";
    let mut got = Vec::new();
    for name in names {
        let answer = site.get_with(&format!("/{name}.html"), fields);
        if answer.field("Content-Encoding") == "gzip" {
            got.push(name);
        }
    }
    assert_eq!(got, ["expired", "cached", "tagged", "any"]);
    let fields = format!("{fields}Authorization: Basic YTpi\r\n");
    let answer = site.get_with("/auth.html", &fields);
    assert_eq!(answer.field("Content-Encoding"), "gzip");
}

#[test]
fn caches_are_told_once() {
    let mut site = Site::server(
        "gzip on; types { text/html html; }
         location /off/ { gzip_vary off; }
         location /said/ { add_header Vary \"Cookie, Accept-Encoding\"; }",
    )
    .file("/www/a.html", &text(100))
    .file("/www/off/a.html", &text(100))
    .file("/www/said/a.html", &text(100));
    assert_eq!(
        accepting(&mut site, "/off/a.html", "gzip").field("Vary"),
        ""
    );
    let answer = accepting(&mut site, "/said/a.html", "gzip");
    assert_eq!(answer.head.matches("Vary: ").count(), 1);
    let answer = site.get_with("/a.html", "If-None-Match: *\r\n");
    assert_eq!(
        (answer.status, answer.field("Vary")),
        (304, "Accept-Encoding")
    );
}

#[test]
fn head_has_the_coding_and_a_range_the_whole() {
    let page = text(3000);
    let mut site = Site::server(ALL).file("/www/a.html", &page);
    let head = site.send("HEAD /a.html HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    assert_eq!(
        (head.field("Content-Encoding"), head.field("Content-Length")),
        ("gzip", "")
    );
    assert!(head.bytes.is_empty());
    let fields = "Accept-Encoding: gzip\r\nRange: bytes=0-9\r\n";
    let answer = site.get_with("/a.html", fields);
    assert_eq!((answer.status, answer.field("Content-Range")), (200, ""));
    assert_eq!(decoded("gzip", &answer.bytes), page);
    let answer = site.get_with("/a.html", "Range: bytes=0-9\r\n");
    assert_eq!((answer.status, answer.body.as_str()), (206, &page[..10]));
    let same = format!("If-None-Match: W/{}\r\n", site.get("/a.html").field("ETag"));
    assert_eq!(site.get_with("/a.html", &same).status, 304);
}

#[test]
fn the_ratio_is_known_when_the_body_is_over() {
    let mut site = Site::server(&format!(
        "{ALL} add_trailer R \"$gzip_ratio|$brotli_ratio|$zstd_ratio\";"
    ))
    .file("/www/a.html", &"x".repeat(10_000))
    .large_file("/www/b.html", &"x".repeat(2 << 20));
    let of = |answer: &Answer| {
        let line = answer.trailers.lines().next().unwrap_or_default();
        let ratios = line.strip_prefix("R: ").unwrap_or_default();
        let ratios: Vec<String> = ratios.split('|').map(str::to_owned).collect();
        ratios
    };
    for target in ["/a.html", "/b.html"] {
        for (slot, coding) in ["gzip", "br", "zstd"].into_iter().enumerate() {
            let answer = accepting(&mut site, target, coding);
            let ratios = of(&answer);
            assert_eq!(ratios.len(), 3);
            for (n, ratio) in ratios.iter().enumerate() {
                assert_eq!(ratio.is_empty(), n != slot, "{target} {coding} {ratios:?}");
            }
            let ratio: f64 = ratios[slot].parse().expect("a number");
            let original = if target == "/a.html" {
                10_000.0
            } else {
                f64::from(2 << 20)
            };
            assert!(
                (ratio - original / answer.bytes.len() as f64).abs() < 0.011,
                "{ratio}"
            );
        }
    }
}

/// Sets another source of an exchange than the file it was begun with.
fn feed(x: &mut Exchange, chunks: impl IntoIterator<Item = Chunk>) {
    x.body.chunks.clear();
    x.body.chunks.extend(chunks);
}

#[test]
fn what_the_source_flushes_can_be_read_at_once() {
    for coding in ["gzip", "br", "zstd"] {
        let mut site = Site::server(ALL).large_file("/www/a.html", &text(2 << 20));
        let (mut x, _) = site.begin_with(&format!(
            "GET /a.html HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n"
        ));
        let (mut sent, mut got) = (String::new(), Vec::new());
        for event in ["data: 1\n\n", "data: two\n\n", "data: 3\n\n"] {
            sent.push_str(event);
            let marked = [Chunk::Owned(event.into()), Chunk::Flush, Chunk::Flush];
            feed(&mut x, marked);
            let mut marks = 0;
            while marks < 2 {
                match site.pull(&mut x) {
                    Pulled::Chunk(Chunk::Flush) => marks += 1,
                    Pulled::Chunk(chunk) => got.extend_from_slice(chunk.bytes()),
                    other => panic!("{coding}: {other:?}"),
                }
                if marks == 1 {
                    assert_eq!(decoded(coding, &got), sent, "{coding}");
                }
            }
        }
        // The length that the response was begun with is kept.
        let rest = " ".repeat((2 << 20) - sent.len());
        sent.push_str(&rest);
        feed(&mut x, [Chunk::Owned(rest.into())]);
        loop {
            match site.pull(&mut x) {
                Pulled::Chunk(chunk) => got.extend_from_slice(chunk.bytes()),
                Pulled::End => break,
                Pulled::Pending | Pulled::BudgetSpent => panic!("nobody makes more of the body"),
                Pulled::Broken => panic!("the body breaks off"),
            }
        }
        assert_eq!(decoded(coding, &got), sent, "{coding}");
    }
}

/// A large body with little output does not block other connections.
#[test]
fn compressing_pauses_and_goes_on() {
    const LEN: usize = 3 << 20;
    let page = "x".repeat(LEN);
    let mut site = Site::server(ALL).file("/www/a.html", &page);
    for coding in ["gzip", "br", "zstd"] {
        let request =
            format!("GET /a.html HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: {coding}\r\n\r\n");
        let (mut x, _) = site.begin_with(&request);
        // As if read from a file.
        x.body.chunks.clear();
        let piece = || Chunk::Owned(vec![b'x'; BODY_BUDGET_BYTES as usize]);
        feed(
            &mut x,
            (0..LEN / BODY_BUDGET_BYTES as usize).map(|_| piece()),
        );
        let (mut bytes, mut pauses) = (Vec::new(), 0);
        let budget = Cell::new(BODY_BUDGET_BYTES);
        loop {
            match site.pull_within(&mut x, &budget) {
                Pulled::Chunk(chunk) => bytes.extend_from_slice(chunk.bytes()),
                Pulled::BudgetSpent => {
                    assert_eq!(budget.replace(BODY_BUDGET_BYTES), 0);
                    assert!(x.progress.pull_wait.is_some(), "it is to be asked again");
                    pauses += 1;
                }
                Pulled::Pending => panic!("nothing is waited for"),
                Pulled::End => break,
                Pulled::Broken => panic!("{coding}"),
            }
        }
        assert!(
            pauses >= LEN / BODY_BUDGET_BYTES as usize,
            "{coding}: {pauses}"
        );
        assert_eq!(decoded(coding, &bytes), page, "{coding}");
    }
}

#[test]
fn without_a_stage_a_mark_passes() {
    let mut site = Site::server("").file("/www/a", "text");
    let mut x = site.begin("/a");
    feed(&mut x, [Chunk::Flush]);
    assert!(matches!(site.pull(&mut x), Pulled::Chunk(Chunk::Flush)));
    assert!(matches!(site.pull(&mut x), Pulled::End));
}

#[test]
fn forms_of_a_file_are_kept_by_coding_and_level() {
    let page = text(50_000);
    let mut site = Site::http(&format!(
        "compress_cache 1m; server {{ root /www; {ALL} location /best/ {{ alias /www/; gzip_comp_level 9; }} }}"
    ))
    .large_file("/www/a.html", &page);
    let mut answers = Vec::new();
    for target in ["/a.html", "/best/a.html"] {
        for coding in ["gzip", "br", "zstd"] {
            let first = accepting(&mut site, target, coding);
            let second = accepting(&mut site, target, coding);
            assert_eq!(decoded(coding, &first.bytes), page);
            assert!(first.bytes == second.bytes && first.head == second.head);
            answers.push(first.bytes);
        }
    }
    assert!(answers[0] != answers[3], "levels differ");
    assert!(answers[1] == answers[4] && answers[2] == answers[5]);
}

#[test]
fn a_small_window_of_gzip_is_for_bodies_at_hand_as_well() {
    let page = text(20_000).repeat(2);
    let mut site = Site::server(&format!("{ALL} location /small/ {{ gzip_window 4k; }}"))
        .file("/www/a.html", &page)
        .file("/www/small/a.html", &page);
    let full = accepting(&mut site, "/a.html", "gzip");
    let small = accepting(&mut site, "/small/a.html", "gzip");
    for answer in [&full, &small] {
        assert!(decoded("gzip", &answer.bytes) == page);
        assert!(!answer.field("Content-Length").is_empty());
    }
    assert!(small.bytes.len() > full.bytes.len() * 3 / 2);
}

#[test]
fn wrong_values_are_told() {
    for (inner, said) in [
        ("gzip_comp_level 0;", "value must be between 1 and 9"),
        ("gzip_comp_level 10;", "value must be between 1 and 9"),
        ("brotli_comp_level 12;", "value must be between 0 and 11"),
        ("zstd_comp_level 23;", "value must be between 1 and 22"),
        ("gzip_http_version 2;", "invalid value \"2\""),
        ("gzip_static maybe;", "invalid value \"maybe\""),
        ("compress_order br deflate;", "invalid value \"deflate\""),
        ("compress_order br br;", "duplicate value \"br\""),
        ("gzip_disable \"(\";", "pcre2_compile() failed"),
    ] {
        let error = Site::refused(inner);
        assert!(error.contains(said), "{inner} {error}");
    }
    assert!(Site::refused("brotli_window 3k;").contains("must be 1k, 2k"));
    for inner in [
        "gzip_comp_level 1;",
        "gzip_comp_level 9;",
        "brotli_comp_level 0;",
        "zstd_comp_level 22;",
        "brotli_window 16m;",
    ] {
        assert_eq!(
            Site::warnings_with(inner, &[]),
            Vec::<String>::new(),
            "{inner}"
        );
    }
}
