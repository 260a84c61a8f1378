//! Hits by files that a worker keeps open or in memory.
//!
//! A worker keeps a file once its times are three seconds old. Each change of the file must show on the next request.
//! Source: driver/src/io/files.rs.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use firstbyte_tests::backend::{Backend, answer};
use firstbyte_tests::client::request;
use firstbyte_tests::{Server, peer, wait_until};

use crate::cache_server::{MINUTE, cached, cached_with, file_of, fill, get, get_with};

/// Bytes of two responses: the file of one is kept in memory, that of the other has a descriptor.
const SIZES: [usize; 2] = [10_000, 100_000];
/// Least age of a file with kept bytes, seconds.
const SETTLED_S: i64 = 4;

/// Waits until files are old enough to be kept, and sends each path to both workers.
fn settle(server: &Server, files: &[PathBuf], paths: &[&str]) {
    wait_until("the files are old", || {
        files.iter().all(|file| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let now_s = now.unwrap_or(Duration::ZERO).as_secs() as i64;
            let changed_s = fs::metadata(file).map_or(i64::MAX, |meta| meta.ctime());
            changed_s.saturating_add(SETTLED_S) <= now_s
        })
    });
    for path in paths.iter().flat_map(|path| [path; 8]) {
        get(server, path, "HIT");
    }
}

/// A response of this size, made of the target and a number.
fn body(target: &str, number: usize, size: usize) -> String {
    let text = format!("<{target} {number}>");
    text.repeat(size / text.len() + 1)
}

fn sized(lines: &'static [&'static str]) -> Backend {
    let count = std::sync::atomic::AtomicUsize::new(1);
    Backend::answering(move |r| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let size = usize::from(!r.target().contains("small"));
        answer("200 OK", lines, body(r.target(), number, SIZES[size]))
    })
}

fn path_of(server: &Server, body: &str) -> PathBuf {
    file_of(server, body).expect("it is stored")
}

#[test]
fn kept_files_are_sent_whole_and_in_parts() {
    let backend = sized(MINUTE);
    let server = cached(&backend, "").start();
    let paths = ["/small", "/large"];
    let bodies = paths.map(|path| fill(&server, path).text());
    let files = bodies.each_ref().map(|body| path_of(&server, body));
    settle(&server, &files, &paths);
    for (path, body) in paths.iter().zip(&bodies) {
        for _ in 0..8 {
            assert_eq!(get(&server, path, "HIT").text(), *body);
            let part = get_with(&server, path, &["Range: bytes=5-9", "If-Range: x"], "HIT");
            assert_eq!(part.status, 200, "the condition is not met");
            let part = get_with(&server, path, &["Range: bytes=5-9"], "HIT");
            assert_eq!((part.status, part.text().as_str()), (206, &body[5..10]));
            let head = server.client().head(path);
            assert_eq!(
                head.header("Content-Length"),
                Some(body.len().to_string().as_str())
            );
        }
    }
    assert_eq!(backend.request_count(), 2);
}

/// Changes a kept file, and asserts that the next requests get another response.
fn assert_changes_show(change: impl Fn(&Path)) {
    let backend = sized(MINUTE);
    let server = cached(&backend, "").start();
    let paths = ["/small", "/large"];
    let bodies = paths.map(|path| fill(&server, path).text());
    let files = bodies.each_ref().map(|body| path_of(&server, body));
    settle(&server, &files, &paths);
    for (path, file) in paths.iter().zip(&files) {
        change(file);
        let before = backend.request_count();
        let answer = get(&server, path, "MISS");
        assert!(
            answer
                .text()
                .starts_with(&format!("<{path} {}>", before + 1))
        );
    }
}

#[test]
fn a_removed_file_is_not_served() {
    assert_changes_show(|file| fs::remove_file(file).expect("it exists"));
}

#[test]
fn a_cut_file_is_not_served() {
    if !peer::is_firstbyte() {
        return;
    }
    assert_changes_show(|file| {
        let opened = fs::OpenOptions::new().write(true).open(file);
        let opened = opened.expect("it exists");
        let len = opened.metadata().expect("it is open").len();
        opened.set_len(len - 1).expect("it is writable");
    });
}

#[test]
fn an_overwritten_head_is_not_served() {
    assert_changes_show(|file| {
        let opened = fs::OpenOptions::new().write(true).open(file);
        let opened = opened.expect("it exists");
        // The version of the format.
        opened.write_all_at(&[9], 0).expect("it is writable");
    });
}

/// The new file may have the inode number of the old one.
#[test]
fn a_purged_file_is_not_served() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = sized(MINUTE);
    let method = "map $request_method $purges { PURGE 1; default 0; }";
    let directives = "proxy_cache_key $uri; proxy_cache_purge $purges;";
    let server = cached_with(method, &backend, directives).start();
    let paths = ["/small", "/large"];
    let files = paths.map(|path| path_of(&server, &fill(&server, path).text()));
    settle(&server, &files, &paths);
    for (path, file) in paths.iter().zip(&files) {
        let mut client = server.client();
        assert_eq!(
            client.send(request("PURGE", path, &[])).response().status,
            204
        );
        wait_until("its file is removed", || !file.exists());
        let before = backend.request_count();
        let body = fill(&server, path).text();
        assert!(body.starts_with(&format!("<{path} {}>", before + 1)));
        for _ in 0..8 {
            assert_eq!(get(&server, path, "HIT").text(), body);
        }
    }
}

/// A 304 changes the times in a kept file, in place.
#[test]
fn a_confirmed_response_is_young_again() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = Backend::answering(|r| {
        let lines = &["Cache-Control: max-age=8", "ETag: \"one\""];
        match r.header("If-None-Match") {
            Some("\"one\"") => answer("304 Not Modified", lines, ""),
            _ => answer("200 OK", lines, body(r.target(), 1, SIZES[0])),
        }
    });
    let server = cached(&backend, "").start();
    let text = fill(&server, "/small").text();
    settle(&server, &[path_of(&server, &text)], &["/small"]);
    let age_of = |answer: &firstbyte_tests::Response| {
        let age = answer.header("Age").and_then(|age| age.parse().ok());
        age.unwrap_or(0_i64)
    };
    assert!(age_of(&get(&server, "/small", "HIT")) >= SETTLED_S);
    let mut last = String::new();
    wait_until("it is stale", || {
        let answer = server.get("/small");
        last = answer.header("X-Cache").unwrap_or_default().to_owned();
        last != "HIT"
    });
    assert_eq!(last, "REVALIDATED");
    for _ in 0..8 {
        let answer = get(&server, "/small", "HIT");
        assert!(age_of(&answer) < SETTLED_S && answer.text() == text);
    }
    assert_eq!(backend.request_count(), 2);
}
