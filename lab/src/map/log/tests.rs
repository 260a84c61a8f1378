//! Whole logs: threads, damage, limits, and rotation while they are followed.

use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::*;
use crate::map::CountryCode;
use firstbyte_tests::TempDir;

fn country(ip: IpAddr) -> Option<CountryCode> {
    match ip {
        IpAddr::V4(ip) if ip.octets()[0] == 192 => Some(*b"DE"),
        _ => None,
    }
}

fn job(paths: &[PathBuf], threads: usize) -> Job<'static> {
    let inputs = paths.iter().map(|path| Input {
        path: Some(path.clone()),
        formats: None,
    });
    Job {
        inputs: inputs.collect(),
        client: Field::default(),
        threads,
        follows: false,
        countries: &country,
    }
}

fn line(n: u32) -> String {
    let ip = format!("{}.0.{}.{}", 192 + n % 2, n >> 8 & 255, n & 255);
    format!(
        "{ip} - - [29/Nov/2026:11:00:00 +0000] \"GET /{n} HTTP/1.1\" 200 612 \"-\" \"curl\" min_rtt={} requests=1\n",
        1000 + n
    )
}

fn lines(range: std::ops::Range<u32>) -> String {
    range.map(line).collect()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).expect("memory has room");
    encoder.finish().expect("memory has room")
}

fn whole(job: &Job<'_>) -> Report {
    read(job, &mut |_| true).expect("the logs are there")
}

#[test]
fn figures_do_not_depend_on_threads() {
    let dir = TempDir::new();
    dir.write("a", lines(0..20_000) + "damaged\n" + &lines(20_000..30_000));
    dir.write("b", gzip(&lines(30_000..60_000)));
    let paths = ["a", "b"].map(|name| dir.path().join(name));
    let one = whole(&job(&paths, 1));
    assert_eq!((one.counts.lines, one.counts.minimum), (60_001, 60_000));
    let first = one.counts.first_damaged.clone().expect("there is one");
    assert_eq!((first.input, first.line), (0, 20_001));
    assert_eq!(one.map.countries[b"DE"].requests, 30_000);
    assert_eq!(one.map.unknown.rtt.count(), 30_000);
    let formats: Vec<&str> = one.detected.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(formats, ["min_rtt"; 2]);
    for threads in [2, 5, 256] {
        let many = whole(&job(&paths, threads));
        assert_eq!(many.map, one.map, "{threads}");
        assert_eq!(many.counts.damaged, 1);
        assert_eq!(many.counts.first_damaged, one.counts.first_damaged);
    }
}

#[test]
fn cut_logs_are_reported_and_the_rest_is_read() {
    let dir = TempDir::new();
    let packed = gzip(&lines(0..30_000));
    dir.write("cut.gz", &packed[..packed.len() / 2]);
    dir.write("whole", lines(0..10));
    let paths = ["cut.gz", "whole"].map(|name| dir.path().join(name));
    for threads in [1, 2] {
        let report = whole(&job(&paths, threads));
        assert!(report.counts.usable() > 10_000, "{:?}", report.counts);
        assert_eq!(report.broken.len(), 1);
        let why = "cut.gz: it ends within a compressed block; the rest is not read";
        assert!(report.broken[0].ends_with(why), "{:?}", report.broken);
    }
}

#[test]
fn long_lines_are_counted_once() {
    let dir = TempDir::new();
    let long = |length: usize| "a".repeat(length) + "\n";
    let text = lines(0..10) + &long(1 << 20) + &lines(0..5) + &long(LINE_BYTES_MAX + 1);
    dir.write("a", text + &lines(0..5) + "192.0.2.1 - without an end");
    let report = whole(&job(&[dir.path().join("a")], 1));
    let counts = &report.counts;
    assert_eq!((counts.lines, counts.damaged, counts.usable()), (23, 3, 20));
    let first = counts.first_damaged.as_ref().expect("there is one");
    assert_eq!((first.line, first.fault), (11, Fault::Length));
}

#[test]
fn wrong_files_are_reported_before_others_are_read() {
    let dir = TempDir::new();
    dir.write("a", lines(0..10));
    dir.write("x.xz", b"\xfd7zXZ\0");
    dir.write("unknown", "a b c\n");
    let path = |name: &str| dir.path().join(name);
    let refused = |names: &[&str]| {
        let paths: Vec<PathBuf> = names.iter().map(|name| path(name)).collect();
        let mut events = 0;
        let done = read(&job(&paths, 1), &mut |_| {
            events += 1;
            true
        });
        (done.expect_err("it cannot be read"), events)
    };
    let (why, events) = refused(&["a", "none"]);
    assert!(why.contains("none: 2: No such file"), "{why}");
    assert_eq!(events, 0);
    let (why, _) = refused(&["."]);
    assert!(why.ends_with("it is a directory"), "{why}");
    let (why, _) = refused(&["x.xz"]);
    assert!(why.contains("x.xz: it is compressed by xz"), "{why}");
    let (why, _) = refused(&["a", "unknown"]);
    assert!(why.contains("unknown: no known format"), "{why}");
}

#[test]
fn reading_ends_when_the_caller_wants_it() {
    let dir = TempDir::new();
    dir.write("a", lines(0..50_000));
    let (mut events, mut last) = (0, Progress::default());
    let report = read(&job(&[dir.path().join("a")], 1), &mut |event| {
        if let Event::Progress(progress) = event {
            last = progress;
        }
        events += 1;
        events < 4
    });
    let report = report.expect("it is read");
    assert!(report.interrupted && report.counts.lines < 50_000);
    assert!(report.counts.lines > 1000);
    assert_eq!(last.total, Some(lines(0..50_000).len() as u64));
    assert!(last.bytes > 0 && last.lines > 0);
}

/// Follows a log while `step` is called with the number of lines; it returns false at the end.
fn followed(path: &Path, threads: usize, step: impl FnMut(u64) -> bool) -> Report {
    all_followed(&[path.to_owned()], threads, step)
}

/// Follows several logs, as [`followed`] does.
fn all_followed(paths: &[PathBuf], threads: usize, mut step: impl FnMut(u64) -> bool) -> Report {
    let job = Job {
        follows: true,
        ..job(paths, threads)
    };
    let began = Instant::now();
    let report = read(&job, &mut |event| match event {
        Event::Progress(progress) => {
            assert!(began.elapsed() < Duration::from_secs(60), "{progress:?}");
            step(progress.lines)
        }
        Event::Refresh(_) => true,
    });
    report.expect("it is followed")
}

fn append(path: &Path, text: &str) {
    let file = fs::OpenOptions::new().append(true).create(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.expect("the log can be written");
}

#[test]
fn renamed_logs_are_read_to_their_end() {
    for threads in [1, 2] {
        let dir = TempDir::new();
        let (log, old) = (dir.path().join("a.log"), dir.path().join("a.log.1"));
        let mut at = 0;
        let report = followed(&log, threads, |lines_read| {
            match (at, lines_read) {
                // It waits for the file.
                (0, 0) => append(&log, &lines(0..10)),
                (1, 10) => {
                    fs::rename(&log, &old).expect("it can be renamed");
                    // The server has not opened its log anew.
                    append(&old, &lines(10..20));
                }
                (2, 20) => {
                    append(&log, &lines(20..30));
                    append(&old, &lines(30..40));
                }
                (3, 40) => {
                    // The new file is known; the server writes its last line to the old one.
                    append(&old, &lines(40..50));
                    fs::remove_file(&old).expect("it can be removed");
                    append(&log, line(50).trim_end());
                }
                (4, 50) => return false,
                _ => return true,
            }
            at += 1;
            true
        });
        // The last line has no end.
        assert_eq!((report.counts.lines, report.counts.minimum), (51, 51));
        assert_eq!(report.counts.damaged, 0);
    }
}

/// The names of the two rotated files, and whether the log is copied and truncated.
#[test]
fn rotated_files_that_are_logs_of_their_own_are_read_once() {
    for (one, two, is_copied) in [
        ("a.log.1", "a.log.2", false),
        ("a.log.1", "a.log.2", true),
        ("a-1.log", "a-2.log", false),
    ] {
        let dir = TempDir::new();
        let paths = ["a.log", one, two].map(|name| dir.path().join(name));
        let [log, old, oldest] = &paths;
        append(log, &lines(0..100));
        append(old, &lines(100..200));
        let mut looks = 0;
        let mut at = 0;
        let report = all_followed(&paths[..2], 1, |lines_read| {
            match (at, lines_read) {
                (0, 200) => {
                    fs::rename(old, oldest).expect("it can be renamed");
                    match is_copied {
                        true => drop(fs::copy(log, old).expect("it can be copied")),
                        false => fs::rename(log, old).expect("it can be renamed"),
                    }
                    fs::write(log, lines(200..210)).expect("it can be written");
                }
                // Both names are looked at in each step.
                (1, 210..) if looks < 3 => {
                    looks += 1;
                    return true;
                }
                (1, 210..) => return false,
                _ => return true,
            }
            at += 1;
            true
        });
        assert_eq!(report.counts.lines, 210, "{one} {is_copied}");
        assert_eq!(report.broken, [""; 0]);
    }
}

/// Names that end in numbers are logs as well: they rotate on their own.
#[test]
fn logs_with_numbers_rotate_beside_others() {
    let dir = TempDir::new();
    let paths = ["a.log", "a-2.log"].map(|name| dir.path().join(name));
    let old = dir.path().join("a-2.log.1");
    append(&paths[0], &lines(0..10));
    append(&paths[1], &lines(10..20));
    let mut at = 0;
    let report = all_followed(&paths, 1, |lines_read| {
        match (at, lines_read) {
            (0, 20) => {
                fs::rename(&paths[1], &old).expect("it can be renamed");
                append(&paths[1], &lines(20..25));
            }
            (1, 25) => return false,
            _ => return true,
        }
        at += 1;
        true
    });
    assert_eq!(report.counts.lines, 25);
}

#[test]
fn logs_that_cannot_be_opened_for_a_moment_are_tried_again() {
    let dir = TempDir::new();
    let (log, old) = (dir.path().join("a.log"), dir.path().join("a.log.1"));
    append(&log, &lines(0..10));
    for is_healed in [true, false] {
        let (mut at, mut looks) = (0, 0);
        let report = followed(&log, 1, |lines_read| {
            match (at, lines_read) {
                (0, 10) => {
                    fs::rename(&log, &old).expect("it can be renamed");
                    std::os::unix::fs::symlink(&log, &log).expect("it can be made");
                }
                // The old file is read on meanwhile.
                (1, 10) if looks == 0 => {
                    append(&old, &lines(10..15));
                    looks = 1;
                    return true;
                }
                (1, 15) if !is_healed => return false,
                (1, 15) => {
                    fs::remove_file(&log).expect("it can be removed");
                    append(&log, &lines(15..25));
                }
                (2, 25) => return false,
                _ => return true,
            }
            at += 1;
            true
        });
        match is_healed {
            true => {
                assert_eq!((report.counts.lines, report.broken.len()), (25, 0));
                fs::remove_file(&old).expect("it can be removed");
                fs::write(&log, lines(0..10)).expect("it can be written");
            }
            false => {
                assert_eq!((report.counts.lines, report.broken.len()), (15, 1));
                let why = &report.broken[0];
                assert!(why.contains("a.log: 40: Too many"), "{why}");
            }
        }
    }
}

/// As many files as are compared have similar names and are newer.
#[test]
fn copies_are_found_among_other_files() {
    let dir = TempDir::new();
    let log = dir.path().join("a.log");
    append(&log, &lines(0..1000));
    let mut at = 0;
    let report = followed(&log, 1, |lines_read| {
        match (at, lines_read) {
            (0, 1000) => {
                dir.write("a.log.1", lines(0..1100));
                for n in 0..20 {
                    dir.write(&format!("ab{n}.log"), "x");
                    dir.write(&format!("a.log.{n}.xz"), "\u{fffd}7zXZ");
                }
                fs::write(&log, lines(1100..1200)).expect("it can be written");
            }
            (1, 1200) => return false,
            _ => return true,
        }
        at += 1;
        true
    });
    assert_eq!((report.counts.lines, report.broken.len()), (1200, 0));
}

#[test]
fn truncated_logs_are_read_on_and_their_copies_to_the_end() {
    for is_packed in [false, true] {
        let dir = TempDir::new();
        let log = dir.path().join("a.log");
        append(&log, &lines(0..1000));
        let mut at = 0;
        let report = followed(&log, 1, |lines_read| {
            match (at, lines_read) {
                (0, 1000) => {
                    // These are in the copy alone when the file is looked at again.
                    append(&log, &lines(1000..1100));
                    let text = fs::read_to_string(&log).expect("it can be read");
                    match is_packed {
                        false => dir.write("a.log.1", text),
                        true => dir.write("a.log-20261129.gz", gzip(&text)),
                    }
                    dir.write("a.log.2", lines(5000..6100));
                    fs::write(&log, lines(1100..1200)).expect("it can be written");
                }
                (1, 1200) => {
                    // It grows beyond the last place before it is looked at.
                    let text = fs::read_to_string(&log).expect("it can be read");
                    dir.write("a.log.1", text);
                    fs::write(&log, lines(1200..1500)).expect("it can be written");
                }
                (2, 1500) => return false,
                _ => return true,
            }
            at += 1;
            true
        });
        assert_eq!((report.counts.lines, report.counts.damaged), (1500, 0));
        assert_eq!(report.broken, [""; 0]);
    }
}

#[test]
fn truncated_logs_without_copy_are_reported() {
    let dir = TempDir::new();
    let log = dir.path().join("a.log");
    append(&log, &lines(0..1000));
    let mut at = 0;
    let report = followed(&log, 1, |lines_read| {
        match (at, lines_read) {
            (0, 1000) => fs::write(&log, lines(0..10)).expect("it can be written"),
            (1, 1010) => return false,
            _ => return true,
        }
        at += 1;
        true
    });
    assert_eq!(report.counts.lines, 1010);
    let why = "was truncated, and no copy was found: its last lines may be lost";
    assert!(report.broken[0].ends_with(why), "{:?}", report.broken);
}

#[test]
fn pipes_with_names_are_followed_from_their_first_byte() {
    let dir = TempDir::new();
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    for threads in [1, 2] {
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::write(pipe, lines(0..100))
        });
        // It ends with the pipe.
        let report = followed(&pipe, threads, |_| true);
        writer.join().expect("it ends").expect("all is read");
        assert_eq!((report.counts.lines, report.counts.damaged), (100, 0));
    }
}

#[test]
fn followed_logs_that_cannot_be_opened_are_errors() {
    let dir = TempDir::new();
    let log = dir.path().join("a.log");
    std::os::unix::fs::symlink(&log, &log).expect("it can be made");
    let job = Job {
        follows: true,
        ..job(&[log], 1)
    };
    // The second event would be of a wait without end.
    let mut events = 0;
    let done = read(&job, &mut |_| {
        events += 1;
        events < 2
    });
    let why = done.expect_err("it is a loop of links");
    assert!(why.contains("a.log: 40: Too many"), "{why}");
}
