//! Files sent in another form: precompressed, decompressed, from an offset on (`flv`).

use std::io::Write;

use server_http::exchange::Pulled;

use crate::compressing::{accepting, decoded, text};
use crate::site::Site;

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

#[test]
fn files_compressed_before_are_sent_in_the_place_of_others() {
    let mut site = Site::server(
        "types { text/html html; } gzip_static on; brotli_static on; zstd_static on;
         location /off/ { gzip_static off; brotli_static off; zstd_static off; }
         location /quiet/ { gzip_vary off; }
         location /always/ { gzip_static always; }",
    );
    for dir in ["", "off/", "quiet/", "always/"] {
        site = site
            .file(&format!("/www/{dir}a.html"), "plain")
            .file(&format!("/www/{dir}a.html.gz"), "in gzip")
            .file(&format!("/www/{dir}a.html.br"), "in brotli");
    }
    site = site
        .file("/www/bare.html", "bare")
        .dir("/www/dir.html.gz")
        .file("/www/dir.html", "beside");
    for (target, accept, coding, body, vary) in [
        ("/a.html", "gzip", "gzip", "in gzip", true),
        ("/a.html", "gzip, br, zstd", "br", "in brotli", true),
        ("/a.html", "gzip, br;q=0.5", "gzip", "in gzip", true),
        ("/a.html", "zstd", "", "plain", true),
        ("/a.html", "", "", "plain", true),
        ("/quiet/a.html", "gzip", "gzip", "in gzip", false),
        ("/quiet/a.html", "", "", "plain", false),
        ("/off/a.html", "gzip, br", "", "plain", false),
        ("/always/a.html", "", "gzip", "in gzip", true),
        ("/always/a.html", "br", "br", "in brotli", true),
        ("/bare.html", "gzip, br", "", "bare", false),
        ("/dir.html", "gzip", "", "beside", true),
    ] {
        let answer = accepting(&mut site, target, accept);
        assert_eq!(
            answer.field("Content-Encoding"),
            coding,
            "{target} {accept}"
        );
        assert_eq!(answer.body, body, "{target} {accept}");
        assert_eq!(answer.field("Content-Type"), "text/html");
        assert_eq!(
            answer.field("Vary") == "Accept-Encoding",
            vary,
            "{target} {accept}"
        );
    }
    let answer = site.get_with("/a.html", "Accept-Encoding: gzip\r\nRange: bytes=0-1\r\n");
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (206, "in"),
        "as it lies there"
    );
}

#[test]
fn gzip_is_taken_off_for_those_who_do_not_take_it() {
    let page = text(300_000);
    let bytes = gzipped(page.as_bytes());
    let mut site = Site::server(
        "types { text/html html; } gzip_static always; gunzip on;
         location /again/ { alias /www/; brotli on; }",
    )
    .file_of_bytes("/www/a.html.gz", &bytes)
    .file_of_bytes("/www/short.html.gz", &bytes[..bytes.len() - 9]);
    let answer = accepting(&mut site, "/a.html", "gzip");
    assert_eq!(answer.field("Content-Encoding"), "gzip");
    assert!(answer.bytes == bytes);
    let answer = site.get("/a.html");
    assert!(answer.body == page);
    for (name, value) in [
        ("Content-Encoding", ""),
        ("Content-Length", ""),
        ("Accept-Ranges", ""),
        ("Vary", "Accept-Encoding"),
    ] {
        assert_eq!(answer.field(name), value);
    }
    assert!(answer.field("ETag").starts_with("W/\""));
    let head = site.send("HEAD /a.html HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((head.field("Content-Encoding"), head.bytes.len()), ("", 0));
    let answer = accepting(&mut site, "/again/a.html", "br");
    assert_eq!(answer.field("Content-Encoding"), "br");
    assert!(decoded("br", &answer.bytes) == page);
    let mut x = site.begin("/short.html");
    let end = loop {
        match site.pull(&mut x) {
            Pulled::Chunk(_) => {}
            end => break end,
        }
    };
    assert!(matches!(end, Pulled::Broken), "the end is missing: {end:?}");
}

#[test]
fn a_video_is_sent_from_the_middle() {
    let mut site = Site::server("location / { flv; }").large_file("/www/a.flv", "0123456789");
    const HEADER: &[u8] = b"FLV\x01\x05\0\0\0\x09\0\0\0\0";
    for (args, from) in [
        ("?start=4", 4),
        ("?a=b&START=9", 9),
        ("?start=10", 0),
        ("?start=-1", 0),
        ("?start=0", 0),
        ("", 0),
    ] {
        let answer = site.get(&format!("/a.flv{args}"));
        let header = if from > 0 { HEADER } else { b"" };
        let expected = [header, &b"0123456789"[from..]].concat();
        assert_eq!(answer.bytes, expected, "{args}");
        assert_eq!(answer.field("Content-Length"), expected.len().to_string());
    }
    let part = site.get_with("/a.flv?start=4", "Range: bytes=11-14\r\n");
    assert_eq!(
        (part.status, part.bytes.as_slice()),
        (206, &b"\x00\x0045"[..])
    );
    assert_eq!(part.field("Content-Range"), "bytes 11-14/19");
    assert_eq!(
        site.send("POST /a.flv HTTP/1.1\r\nHost: a\r\n\r\n").status,
        405
    );
    assert_eq!(site.get("/none.flv").status, 404);
}

#[test]
fn strings_are_replaced_on_the_way_from_one_coding_to_the_other() {
    let page = text(100_000);
    let bytes = gzipped(page.as_bytes());
    let mut site = Site::server(
        "types { text/html html; } gzip_static always; gunzip on; gzip on; gzip_min_length 0;
         sub_filter page leaf; sub_filter '</p>' '<i>$arg_x</i></p>'; sub_filter_once off; sub_filter_last_modified on;",
    )
    .file_of_bytes("/www/a.html.gz", &bytes);
    let expected = page.replace("page", "leaf").replace("</p>", "<i>y</i></p>");
    let answer = site.get("/a.html?x=y");
    assert!(answer.body == expected);
    assert!(answer.field("ETag").starts_with("W/"));
    assert!(!answer.field("Last-Modified").is_empty());
}
