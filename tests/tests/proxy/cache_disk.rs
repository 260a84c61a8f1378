//! A failing directory of a cache: removed, read-only, full, with files that were cut or overwritten.
//!
//! A request is always answered, and with whole bodies. Sources: nginx documentation, `proxy_cache_path`; the format of
//! files in `server/cache/src/disk`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;

use firstbyte_tests::backend::{Backend, answer};
use firstbyte_tests::client::request;
use firstbyte_tests::dir::set_mode;
use firstbyte_tests::small_disk::on_small_disk;
use firstbyte_tests::{Server, peer, wait_until};

use crate::cache_server::{
    MINUTE, cached, file_of, fill, get, numbered, only_file, status_of, wait_for_stored,
};

/// Bytes of a response that does not fit on the small disk.
const LARGE: usize = 2 << 20;

#[test]
fn removed_files_are_requested_again() {
    let backend = numbered(MINUTE);
    let server = cached(&backend, "").start();
    fill(&server, "/a");
    fill(&server, "/b");
    for entry in fs::read_dir(server.path("cache"))
        .expect("it exists")
        .flatten()
    {
        fs::remove_dir_all(entry.path()).expect("the folder is the test's");
    }
    let answer = server.get("/a");
    assert_eq!(
        (status_of(&answer), answer.text().as_str()),
        ("MISS", "</a 3>")
    );
    wait_for_stored(&server, "</a 3>");
    assert_eq!(get(&server, "/a", "HIT").text(), "</a 3>");
    assert_eq!(server.get("/b").text(), "</b 4>");
}

#[test]
fn requests_are_answered_without_the_directory() {
    let backend = numbered(MINUTE);
    let server = cached(&backend, "").start();
    fill(&server, "/a");
    fs::remove_dir_all(server.path("cache")).expect("the folder is the test's");
    for path in ["/a", "/b", "/a", "/b"] {
        let answer = server.get(path);
        assert_eq!(answer.status, 200);
        assert!(
            answer.text().starts_with(&format!("<{path} ")),
            "{answer:?}"
        );
    }
}

/// Only another user is refused.
#[test]
fn a_read_only_directory_is_read() {
    let backend = numbered(MINUTE);
    let server = cached(&backend, "").start();
    fill(&server, "/a");
    let mut folders = vec![server.path("cache")];
    let mut at = 0;
    while let Some(folder) = folders.get(at).cloned() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(
            entries
                .map(|entry| entry.path())
                .filter(|path| path.is_dir()),
        );
        at += 1;
    }
    let set = |mode: u32| folders.iter().for_each(|folder| set_mode(folder, mode));
    set(0o555);
    assert_eq!(get(&server, "/a", "HIT").text(), "</a 1>");
    for number in 2..=4 {
        let answer = get(&server, "/b", "MISS");
        assert_eq!(answer.text(), format!("</b {number}>"));
    }
    server.wait_for_text("error.log", "/cache/");
    set(0o777);
    fill(&server, "/c");
    get(&server, "/c", "HIT");
}

#[test]
fn a_response_that_the_disk_cannot_store_is_not_served_short() {
    let backend = Backend::answering(|r| match r.target() {
        "/large" => answer("200 OK", MINUTE, vec![b'x'; LARGE]),
        target => answer("200 OK", MINUTE, format!("<{target}>")),
    });
    let pass = backend.name();
    let text = format!(
        "%%USER%%\ndaemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info;
         events {{ worker_connections 512; }} http {{ access_log %%DIR%%/access.log;
             client_body_temp_path %%DIR%%/body; proxy_temp_path %%DIR%%/small/temp;
             proxy_cache_path %%DIR%%/small/cache levels=1:2 keys_zone=one:1m;
             add_header X-Cache $upstream_cache_status always;
             server {{ listen 127.0.0.1:%%PORT%%;
                 location / {{ proxy_pass http://{pass}; proxy_cache one; }} }} }}"
    );
    let Some(server) = on_small_disk(Server::whole(&text), 256) else {
        return;
    };
    let server = server.start();
    for _ in 0..3 {
        let mut client = server.client();
        client.send(request("GET", "/large", &[]));
        // A response may be cut, and the client sees it.
        if let Ok(Some(answer)) = client.try_response() {
            assert_eq!(status_of(&answer), "MISS");
            assert!(answer.body.len() == LARGE, "{}", answer.body.len());
        }
        let small = server.get("/small");
        assert_eq!((small.status, small.text().as_str()), (200, "</small>"));
    }
    wait_until("a small response is stored", || {
        status_of(&server.get("/small")) == "HIT"
    });
}

/// nginx sends the bytes that are left, with the length of all.
#[test]
fn a_file_that_was_cut_is_requested_again() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = numbered(MINUTE);
    let server = cached(&backend, "").start();
    let mut body = fill(&server, "/a").text();
    let mut number = 1;
    for left in [0, 1, 100, 335, 336, 337, 400] {
        assert_eq!(get(&server, "/a", "HIT").text(), body);
        cut(&server, left);
        number += 1;
        body = requested_again(&server, number);
    }
    // Of the end.
    for lost in [1, 2, 5] {
        let len = fs::metadata(only_file(&server)).expect("it exists").len();
        cut(&server, len - lost);
        number += 1;
        requested_again(&server, number);
    }
    let file = fs::OpenOptions::new().append(true).open(only_file(&server));
    let written = file.expect("it exists").write_all(b"more");
    written.expect("it is the test's");
    requested_again(&server, number + 1);
}

/// Cuts the only file.
fn cut(server: &Server, len: u64) {
    let file = fs::OpenOptions::new().write(true).open(only_file(server));
    let file = file.expect("it exists");
    file.set_len(len).expect("it is the test's");
}

/// Asserts that a request for the damaged entry is sent to the server, and waits until its response is stored.
#[track_caller]
fn requested_again(server: &Server, number: usize) -> String {
    let answer = server.get("/a");
    assert_ne!(status_of(&answer), "HIT");
    assert_eq!(answer.text(), format!("</a {number}>"));
    wait_for_stored(server, &answer.text());
    answer.text()
}

/// Each byte in front of the body. A changed byte of a field can be a valid value.
#[test]
fn a_damaged_head_never_changes_the_body() {
    if !peer::is_firstbyte() {
        return;
    }
    let mut rng = fastrand::Rng::with_seed(3);
    let backend = numbered(MINUTE);
    let server = cached(&backend, "").start();
    for number in 0..200 {
        let path = format!("/a/{number}");
        let body = fill(&server, &path).text();
        let stored = file_of(&server, &body).expect("it is stored");
        let file = fs::OpenOptions::new().write(true).open(stored);
        let file = file.expect("it exists");
        let len = file.metadata().expect("it exists").len() - body.len() as u64;
        for _ in 0..=rng.usize(..4) {
            let at = rng.u64(..len);
            let written = file.write_all_at(&[rng.u8(..)], at);
            written.expect("it is the test's");
        }
        let mut client = server.client();
        client.send(request("GET", &path, &[]));
        let answer = client.try_response();
        let answer = answer.expect("it is whole").expect("there is one");
        let has_body = ![204, 304].contains(&answer.status);
        let is_of_path = answer.text().starts_with(&format!("<{path} "));
        assert!(is_of_path || !has_body, "{answer:?}");
    }
}
