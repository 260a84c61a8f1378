//! The file on disk is the truth: every change is visible in the next request.
//!
//! Each change is made between two requests of one keep-alive connection, without a pause, so the server must check
//! remembered data before it uses them. If the tests may arrange that, the worker runs as another user, so that modes
//! matter.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use firstbyte_tests::dir::{relink, replace, set_mode};
use firstbyte_tests::peer::is_firstbyte;
use firstbyte_tests::{Builder, Client, Server, wait_until};

fn site() -> Builder {
    Server::http(
        "types { text/html html; text/plain txt; } sendfile on; keepalive_requests 100000;
         server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; }",
    )
    .file("html/t.txt", "first")
    .file("html/index.html", "index")
}

#[track_caller]
fn assert_answer(client: &mut Client, path: &str, status: u16, body: &str) {
    let answer = client.get(path);
    assert_eq!(answer.status, status, "{path}");
    if status == 200 {
        assert_eq!(answer.text(), body, "{path}");
        assert_eq!(
            answer.header("Content-Length"),
            Some(body.len().to_string().as_str()),
            "{path}"
        );
    }
}

#[test]
fn a_replaced_file_shows_every_time() {
    let server = site().start();
    let path = server.path("html/t.txt");
    let mut client = server.client();
    assert_answer(&mut client, "/t.txt", 200, "first");
    for round in 0..200 {
        // Equal lengths and probably equal seconds: only the file's identity shows the change.
        let content = format!("round {round:04}");
        replace(&path, content.as_bytes());
        assert_answer(&mut client, "/t.txt", 200, &content);
    }
}

#[test]
fn a_file_rewritten_in_place_shows() {
    let server = site().start();
    let path = server.path("html/t.txt");
    let mut client = server.client();
    for content in ["first", "other", "a longer text", "", "again"] {
        fs::write(&path, content).expect("the file is writable");
        assert_answer(&mut client, "/t.txt", 200, content);
    }
}

#[test]
fn a_truncated_and_an_extended_file_show() {
    let server = site().start();
    let path = server.path("html/t.txt");
    let mut client = server.client();
    assert_answer(&mut client, "/t.txt", 200, "first");
    let file = fs::File::options()
        .write(true)
        .open(&path)
        .expect("the file is there");
    file.set_len(2).expect("it can be shortened");
    assert_answer(&mut client, "/t.txt", 200, "fi");
    file.set_len(0).expect("it can be emptied");
    assert_answer(&mut client, "/t.txt", 200, "");
    fs::write(&path, "first and more").expect("the file is writable");
    assert_answer(&mut client, "/t.txt", 200, "first and more");
}

#[test]
fn a_changed_time_shows_in_the_head() {
    let server = site().start();
    let file = fs::File::options()
        .write(true)
        .open(server.path("html/t.txt"))
        .expect("the file is there");
    let mut client = server.client();
    let before = client.get("/t.txt");
    file.set_modified(UNIX_EPOCH + Duration::from_secs(784_111_777))
        .expect("its time can be set");
    let after = client.get("/t.txt");
    assert_ne!(before.header("ETag"), after.header("ETag"));
    assert_eq!(
        after.header("Last-Modified"),
        Some("Sun, 06 Nov 1994 08:49:37 GMT")
    );
}

#[test]
fn a_removed_file_is_404_and_comes_back() {
    let server = site().start();
    let path = server.path("html/t.txt");
    let mut client = server.client();
    for _ in 0..3 {
        assert_answer(&mut client, "/t.txt", 200, "first");
        fs::remove_file(&path).expect("the file is there");
        assert_answer(&mut client, "/t.txt", 404, "");
        server.dir().write("html/t.txt", "first");
    }
    assert_answer(&mut client, "/t.txt", 200, "first");
}

#[test]
fn a_file_that_becomes_a_directory_redirects() {
    let server = site().start();
    let path = server.path("html/t.txt");
    let mut client = server.client();
    assert_answer(&mut client, "/t.txt", 200, "first");
    fs::remove_file(&path).expect("the file is there");
    fs::create_dir(&path).expect("its name is free");
    assert_answer(&mut client, "/t.txt", 301, "");
    fs::remove_dir(&path).expect("it is empty");
    server.dir().write("html/t.txt", "again");
    assert_answer(&mut client, "/t.txt", 200, "again");
}

#[test]
fn modes_of_a_file_and_of_its_folder_show() {
    let server = site().file("html/d/in.txt", "inside").start();
    let (file, folder) = (server.path("html/t.txt"), server.path("html/d"));
    let mut client = server.client();
    for _ in 0..3 {
        assert_answer(&mut client, "/t.txt", 200, "first");
        set_mode(&file, 0o000);
        assert_answer(&mut client, "/t.txt", 403, "");
        set_mode(&file, 0o644);
        assert_answer(&mut client, "/d/in.txt", 200, "inside");
        set_mode(&folder, 0o600);
        assert_answer(&mut client, "/d/in.txt", 403, "");
        set_mode(&folder, 0o755);
    }
    assert_answer(&mut client, "/d/in.txt", 200, "inside");
}

#[test]
fn a_relinked_file_and_a_relinked_folder_show() {
    let server = site()
        .file("a/t.txt", "release a")
        .file("b/t.txt", "release b")
        .prepare(|dir| {
            symlink("../a/t.txt", dir.join("html/link.txt")).expect("a link can be made");
            symlink("../a", dir.join("html/current")).expect("a link can be made");
        })
        .start();
    let mut client = server.client();
    for release in ["a", "b", "a", "b"] {
        relink(
            &format!("../{release}/t.txt"),
            &server.path("html/link.txt"),
        );
        relink(&format!("../{release}"), &server.path("html/current"));
        assert_answer(&mut client, "/link.txt", 200, &format!("release {release}"));
        assert_answer(
            &mut client,
            "/current/t.txt",
            200,
            &format!("release {release}"),
        );
    }
    relink("../nowhere", &server.path("html/current"));
    assert_answer(&mut client, "/current/t.txt", 404, "");
}

#[test]
fn a_new_index_shows_and_a_removed_one_goes() {
    let server = site().start();
    let mut client = server.client();
    assert_answer(&mut client, "/", 200, "index");
    replace(&server.path("html/index.html"), b"new index");
    assert_answer(&mut client, "/", 200, "new index");
    fs::remove_file(server.path("html/index.html")).expect("the file is there");
    assert_answer(&mut client, "/", 403, "");
}

#[test]
fn a_large_file_replaced_under_a_download_is_sent_as_it_was_opened() {
    let old = vec![b'o'; 8_000_000];
    let server = site().bytes("html/big", &old).start();
    let mut slow = server.client();
    slow.send("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(slow.has_bytes_within(Duration::from_secs(5)));
    replace(&server.path("html/big"), &vec![b'n'; 1000]);
    assert_answer(&mut server.client(), "/big", 200, &"n".repeat(1000));
    assert!(
        slow.response().body == old,
        "the running answer keeps the file it began with"
    );
}

#[test]
fn a_file_that_shrinks_under_a_download_ends_the_connection() {
    let server = site()
        .zeros("html/big", 30_000_000)
        .allow("sendfile() reported that")
        .start();
    let mut slow = server.client();
    slow.send("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(slow.has_bytes_within(Duration::from_secs(5)));
    let file = fs::File::options()
        .write(true)
        .open(server.path("html/big"))
        .expect("the file is there");
    file.set_len(1000).expect("it can be shortened");
    let got = slow.rest();
    assert!(
        got.len() < 30_000_000,
        "a short answer is cut off, not filled up"
    );
    assert_eq!(
        server.get("/big").body.len(),
        1000,
        "and the server goes on"
    );
}

#[test]
fn with_open_file_cache_what_was_seen_stays_for_its_time() {
    let server = Server::http(
        "open_file_cache max=100 inactive=10m; open_file_cache_valid 10m; open_file_cache_errors on;
         server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; location /short/ { alias %%DIR%%/html/; open_file_cache off; } }",
    )
    .file("html/t.txt", "first")
    .start();
    let mut client = server.client();
    assert_answer(&mut client, "/t.txt", 200, "first");
    assert_answer(&mut client, "/late.txt", 404, "");
    replace(&server.path("html/t.txt"), b"second");
    server.dir().write("html/late.txt", "late");
    assert_answer(&mut client, "/t.txt", 200, "first");
    assert_answer(&mut client, "/late.txt", 404, "");
    assert_answer(&mut client, "/short/t.txt", 200, "second");
}

/// Content of a file of the test below after this many changes; always as long.
fn version(number: u64) -> String {
    format!("{number:08}")
}

/// Requests all files until the server reports that it holds the bytes of each.
fn wait_until_kept(server: &Server, files: u64) {
    if !is_firstbyte() {
        return;
    }
    let mut client = server.client();
    wait_until("the bytes of all files are kept", || {
        (0..files).for_each(|n| assert_eq!(client.get(&format!("/{n}")).status, 200));
        let page = client.get("/metrics").text();
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix("firstbyte_open_files_memory_bytes "));
        // An entry counts 384 bytes and more.
        line.and_then(|value| value.parse::<f64>().ok())
            .is_some_and(|bytes| bytes > files as f64 * 384.0)
    });
}

/// Asks for files at random; each must be as it was last published before the request, or newer.
fn ask_at_random(mut client: Client, published: &[AtomicU64], stop: &AtomicBool) -> u64 {
    let (mut seed, mut asked) = (18_u64, 0);
    while !stop.load(Ordering::Relaxed) {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let n = (seed >> 33) as usize % published.len();
        let before = published[n].load(Ordering::Acquire);
        let answer = client.get(&format!("/{n}"));
        let seen: Option<u64> = answer.text().parse().ok();
        assert!(
            seen >= Some(before),
            "/{n}: {seen:?}, published was {before}"
        );
        asked += 1;
    }
    asked
}

#[test]
fn ten_thousand_changes_of_kept_bytes_show_at_once_under_load() {
    let metrics = if is_firstbyte() {
        "location = /metrics { metrics; }"
    } else {
        ""
    };
    let server = Server::http(&format!(
        "keepalive_requests 10000000; server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; {metrics} }}"
    ))
    .prepare(|dir| {
        fs::create_dir(dir.join("html")).expect("a new directory");
        for n in 0..KEPT_FILES {
            fs::write(dir.join(format!("html/{n}")), version(0)).expect("it is writable");
        }
    })
    .start();
    let published: Vec<AtomicU64> = (0..KEPT_FILES).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    let asked: u64 = std::thread::scope(|scope| {
        let ask = || scope.spawn(|| ask_at_random(server.client(), &published, &stop));
        let askers = [ask(), ask()];
        let mut client = server.client();
        for round in 1..=CHANGES / KEPT_FILES {
            wait_until_kept(&server, KEPT_FILES);
            for n in 0..KEPT_FILES {
                let path = server.path(&format!("html/{n}"));
                let content = version(round);
                if (n + round) % 2 == 0 {
                    replace(&path, content.as_bytes());
                } else {
                    let file = fs::File::options().write(true).open(&path);
                    file.and_then(|file| file.write_all_at(content.as_bytes(), 0))
                        .expect("the file is writable");
                }
                published[n as usize].store(round, Ordering::Release);
                assert_eq!(client.get(&format!("/{n}")).text(), content, "/{n}");
            }
        }
        stop.store(true, Ordering::Relaxed);
        let each = askers
            .into_iter()
            .map(|asker| asker.join().expect("no stale answer"));
        each.sum()
    });
    assert!(asked > 0);
}

/// Files of the test above, and the changes of one of them.
const CHANGES: u64 = 10_000;
const KEPT_FILES: u64 = 1000;
