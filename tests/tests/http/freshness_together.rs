//! Changes are visible in concurrent requests as in single ones (`freshness.rs`).
//!
//! A worker that was stopped finds all requests at once when it resumes. It then checks the directory of their files
//! once, and skips files in watched directories.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::time::{Duration, Instant};

use firstbyte_tests::busy::inconclusive;
use firstbyte_tests::client::request;
use firstbyte_tests::dir::{relink, replace};
use firstbyte_tests::peer::is_firstbyte;
use firstbyte_tests::{Client, Server, Signal, process};

/// Content of a file after this many changes; always as long.
fn version(number: u64) -> String {
    format!("{number:08}")
}

/// Asks for a path on each connection, so that the workers find all requests at once; returns the bodies.
fn ask_together(workers: &[u32], clients: &mut [Client], paths: &[String]) -> Vec<String> {
    let signal_all = |signal| {
        let mut workers = workers.iter();
        workers.all(|worker| process::signal(*worker, signal))
    };
    assert!(signal_all(Signal::STOP));
    for (client, path) in clients.iter_mut().zip(paths) {
        client.send(request("GET", path, &[]));
    }
    assert!(signal_all(Signal::CONT));
    let asked = clients.iter_mut().zip(paths);
    asked.map(|(client, _)| client.response().text()).collect()
}

/// The root is a link that deployments switch, and requests come many at a time.
#[test]
fn a_switched_root_shows_in_all_requests_that_come_together() {
    let server = Server::http(
        "keepalive_requests 10000000; server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html/current; }",
    )
    .prepare(|dir| {
        for release in ["a", "b"] {
            let tree = dir.join("html").join(release);
            fs::create_dir_all(&tree).expect("a new directory");
            for n in 0..KEPT_FILES {
                fs::write(tree.join(n.to_string()), format!("{release}{n}")).expect("it is writable");
            }
        }
        symlink("a", dir.join("html/current")).expect("a link can be made");
    })
    .start();
    let workers = server.workers();
    let mut clients: Vec<Client> = (0..32).map(|_| server.client()).collect();
    let began = Instant::now();
    let mut asked = 0;
    // In the first seconds the files are too new to be kept.
    for round in 0.. {
        let release = ["a", "b"][round % 2];
        relink(release, &server.path("html/current"));
        for _ in 0..10 {
            let number = |at: usize| (asked + at) * 7919 % KEPT_FILES as usize;
            let paths: Vec<String> = (0..clients.len())
                .map(|at| format!("/{}", number(at)))
                .collect();
            let texts = ask_together(&workers, &mut clients, &paths);
            for (at, text) in texts.into_iter().enumerate() {
                assert_eq!(text, format!("{release}{}", number(at)), "round {round}");
            }
            asked += clients.len();
        }
        if began.elapsed() > Duration::from_secs(6) && round > 50 {
            break;
        }
    }
}

/// Number of directories that the kernel watches for a process.
fn watched_dirs(process: u32) -> usize {
    let infos = fs::read_dir(format!("/proc/{process}/fdinfo")).expect("it runs");
    let texts = infos.filter_map(|info| fs::read_to_string(info.ok()?.path()).ok());
    texts
        .map(|text| {
            text.lines()
                .filter(|line| line.starts_with("inotify"))
                .count()
        })
        .sum()
}

/// Files of several directories are changed in all ways while the kernel reports changes to the server; each shows in the first
/// request that is sent after it, among others that come with it.
#[test]
fn changes_in_watched_directories_show_in_requests_that_come_together() {
    const FOLDERS: usize = 10;
    let path_of = |n: usize| format!("/{}/{n}", n % FOLDERS);
    let server = Server::http(
        "keepalive_requests 10000000; server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; }",
    )
    .prepare(|dir| {
        for n in 0..KEPT_FILES as usize {
            let path = dir.join(format!("html{}", path_of(n)));
            fs::create_dir_all(path.parent().expect("a folder")).expect("a new directory");
            fs::write(path, version(0)).expect("it is writable");
        }
    })
    .start();
    let workers = server.workers();
    let mut clients: Vec<Client> = (0..16).map(|_| server.client()).collect();
    let mut versions = vec![0; KEPT_FILES as usize];
    let (mut seed, mut changes) = (18_u64, 0);
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    let began = Instant::now();
    let mut active = None;
    while changes < WATCHED_CHANGES {
        if active.is_none() {
            // The base directory and its folders are watched.
            let is_active = watched_dirs(workers[0]) > FOLDERS;
            active = is_active.then(Instant::now);
            if is_firstbyte() && !is_active && began.elapsed() > Duration::from_secs(20) {
                // On other file systems than local ones it cannot be.
                inconclusive("no directory is watched");
                return;
            }
        }
        let mut asked: Vec<usize> = (0..clients.len()).map(|_| random(versions.len())).collect();
        // All files must be kept and checked once first, which takes three seconds.
        let is_time = active.is_some_and(|since| since.elapsed() > Duration::from_secs(4));
        if !is_firstbyte() || is_time {
            let changed = random(versions.len());
            asked[random(clients.len())] = changed;
            versions[changed] += 1;
            changes += 1;
            let path = server.path(&format!("html{}", path_of(changed)));
            let content = version(versions[changed]);
            let result = match random(4) {
                0 => fs::write(&path, &content),
                1 => fs::remove_file(&path).and_then(|()| fs::write(&path, &content)),
                2 => {
                    let file = fs::File::options().write(true).open(&path);
                    file.and_then(|file| file.write_all_at(content.as_bytes(), 0))
                }
                _ => {
                    replace(&path, content.as_bytes());
                    Ok(())
                }
            };
            result.expect("it is writable");
        }
        let paths: Vec<String> = asked.iter().map(|n| path_of(*n)).collect();
        let texts = ask_together(&workers, &mut clients, &paths);
        for (number, text) in asked.into_iter().zip(texts) {
            assert_eq!(text, version(versions[number]), "change {changes}");
        }
    }
    if is_firstbyte() && watched_dirs(workers[0]) <= FOLDERS {
        inconclusive("directories were watched at first only");
    }
}

const KEPT_FILES: u64 = 1000;
const WATCHED_CHANGES: usize = 2000;
