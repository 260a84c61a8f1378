//! Tests of access log files.

use super::*;
use std::io::Read;

fn file(name: &str) -> (PathBuf, Arc<File>) {
    let path = std::env::temp_dir().join(format!("firstbyte-logs-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let file = open_append(&path).expect("the temporary directory is writable");
    (path, Arc::new(file))
}

fn opened(logs: &mut Logs, path: &Path) -> bool {
    let entry = logs.open.get_mut(path.as_os_str().as_bytes());
    entry.is_some_and(|entry| entry.file.is_some())
}

fn content(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("the file was made above")
}

#[test]
fn a_buffer_is_written_when_full_or_due() {
    let (path, log) = file("buffer");
    let how = Some(Buffering {
        size: 8,
        flush_ms: Some(100),
        gzip: None,
    });
    let mut logs = Logs::default();
    logs.write((&path, &log), b"aaaa\n", how, 0);
    assert_eq!(content(&path), b"");
    logs.write((&path, &log), b"bbbb\n", how, 10);
    assert_eq!(content(&path), b"aaaa\n");
    // First the due time of lines that were written meanwhile, then the due time of the lines still in the buffer.
    assert_eq!(logs.flush_due(50), Some(100));
    assert_eq!(logs.flush_due(100), Some(110));
    assert_eq!(logs.flush_due(110), None);
    assert_eq!(content(&path), b"aaaa\nbbbb\n");
    logs.write((&path, &log), b"longer than the buffer\n", how, 111);
    assert_eq!(content(&path), b"aaaa\nbbbb\nlonger than the buffer\n");
    let _ = std::fs::remove_file(path);
}

#[test]
fn a_compressed_buffer_is_readable() {
    let (path, log) = file("gzip");
    let how = Some(Buffering {
        size: 1024,
        flush_ms: None,
        gzip: Some(1),
    });
    let mut logs = Logs::default();
    logs.write((&path, &log), b"line\n", how, 0);
    drop(logs);
    let mut text = String::new();
    let bytes = content(&path);
    flate2::read::MultiGzDecoder::new(bytes.as_slice())
        .read_to_string(&mut text)
        .expect("gzip");
    assert_eq!(text, "line\n");
    let _ = std::fs::remove_file(path);
}

#[test]
fn files_named_by_variables_are_bounded() {
    let mut logs = Logs::default();
    let cache = Some(LogCache {
        max: 2,
        inactive_ms: 1000,
        valid_ms: 60_000,
        min_uses: 1,
    });
    for n in 0..5 {
        let (path, _) = file(&format!("var{n}"));
        logs.write_path(&path, b"x\n", cache, n).expect("writable");
        assert_eq!(content(&path), b"x\n");
        let _ = std::fs::remove_file(path);
    }
    assert_eq!(logs.open.len(), 2);
}

#[test]
fn a_file_that_is_not_used_is_closed_when_others_are() {
    let mut logs = Logs::default();
    let cache = Some(LogCache {
        max: 10,
        inactive_ms: 1000,
        valid_ms: 60_000,
        min_uses: 1,
    });
    let paths: Vec<PathBuf> = (0..3).map(|n| file(&format!("unused{n}")).0).collect();
    let mut write = |at: usize, now_ms| {
        let written = logs.write_path(&paths[at], b"x\n", cache, now_ms);
        written.expect("the temporary directory is writable");
        logs.open.len()
    };
    assert_eq!([write(0, 0), write(1, 0), write(0, 500)], [1, 2, 2]);
    assert_eq!(write(2, 1000), 3, "exactly `inactive` is not too long");
    assert_eq!(write(2, 1001), 2, "the second is gone");
    assert_eq!(write(2, 1501), 1, "and the first");
    for path in paths {
        let _ = std::fs::remove_file(path);
    }
}

#[test]
fn logs_are_flushed_in_pieces() {
    let how = Some(Buffering {
        size: 1024,
        flush_ms: Some(1000),
        gzip: None,
    });
    let cache = Some(LogCache {
        max: 10,
        inactive_ms: 1000,
        valid_ms: 60_000,
        min_uses: 1,
    });
    let files = [file("piece1"), file("piece2")];
    let (named, _) = file("piece3");
    let mut logs = Logs::default();
    for (path, log) in &files {
        logs.write((path, log), b"a", how, 0);
    }
    let written = logs.write_path(&named, b"x\n", cache, 0);
    written.expect("the temporary directory is writable");
    assert!(!logs.flush_some(1));
    assert_eq!(content(&files[0].0), b"", "the last one is flushed first");
    logs.write((&files[0].0, &files[0].1), b"b", how, 0);
    assert!(!logs.flush_some(1));
    assert_eq!(content(&files[0].0), b"ab");
    logs.write((&files[1].0, &files[1].1), b"c", how, 0);
    assert!(!logs.flush_some(1), "the file named by variables is open");
    assert_eq!(content(&files[1].0), b"ac");
    assert!(logs.flush_some(1) && logs.flush_some(0));
    assert_eq!(logs.flush_due(5000), None);
    for path in [&files[0].0, &files[1].0, &named] {
        let _ = std::fs::remove_file(path);
    }
}

#[test]
fn of_several_buffers_the_first_due_one_is_waited_for() {
    let how = |flush_ms| {
        Some(Buffering {
            size: 1024,
            flush_ms: Some(flush_ms),
            gzip: None,
        })
    };
    let (slow, slow_log) = file("slow");
    let (fast, fast_log) = file("fast");
    let mut logs = Logs::default();
    assert_eq!(logs.flush_due(0), None);
    logs.write((&slow, &slow_log), b"s", how(1000), 0);
    logs.write((&fast, &fast_log), b"f", how(100), 50);
    logs.write((&slow, &slow_log), b"s", how(1000), 60);
    assert_eq!(logs.flush_due(149), Some(150));
    assert_eq!(logs.flush_due(150), Some(1000));
    assert_eq!((content(&slow), content(&fast)), (vec![], b"f".to_vec()));
    assert_eq!(logs.flush_due(1000), None);
    assert_eq!(content(&slow), b"ss");
    for path in [slow, fast] {
        let _ = std::fs::remove_file(path);
    }
}

#[test]
fn a_file_named_by_variables_stays_open_from_its_min_uses_on() {
    let mut logs = Logs::default();
    let cache = Some(LogCache {
        max: 2,
        inactive_ms: 1000,
        valid_ms: 60_000,
        min_uses: 2,
    });
    let (path, _) = file("uses");
    for expected in [false, true] {
        logs.write_path(&path, b"x\n", cache, 0).expect("writable");
        assert_eq!(opened(&mut logs, &path), expected);
    }
    std::fs::remove_file(&path).expect("the file was made above");
    logs.write_path(&path, b"x\n", cache, 0)
        .expect("the descriptor is kept");
    assert!(!path.exists());
}
