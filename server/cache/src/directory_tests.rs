//! Files get the paths of entries, and are opened for hits.

use std::io::Read;

use super::*;
use crate::disk::encode;
use crate::key::CacheKey;

/// A directory that is removed at the end.
struct Site {
    path: PathBuf,
    directory: Directory,
}

impl Site {
    fn new(name: &str) -> Self {
        let path = format!("firstbyte-directory-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(path);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary directory");
        let levels = Levels::parse(b"1:2").expect("levels");
        let directory = Directory::open(&path, levels).expect("it exists");
        Self { path, directory }
    }

    /// Writes a temporary file.
    fn write(&self, name: &str, bytes: &[u8]) -> (PathBuf, File) {
        let path = self.path.join(name);
        fs::write(&path, bytes).expect("there is space");
        let file = File::open(&path).expect("it exists");
        (path, file)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn key() -> CacheKey {
    CacheKey::new(*b"/a").expect("it is short")
}

#[test]
fn metadata_are_those_of_the_file_that_was_written() {
    let site = Site::new("meta");
    let (temp, _) = site.write("temp", b"12345");
    // Another process replaces the path as soon as it exists.
    let (_, written) = site.write("written", b"123");
    let meta = site.directory.publish(&temp, &written, &key().id());
    assert_eq!(meta.expect("one directory").size(), 3);
}

#[test]
fn a_file_of_another_file_system_is_copied() {
    let site = Site::new("copy");
    let id = key().id();
    let path = site.directory.path_of(&id);
    let (temp, _) = site.write("temp", b"response");
    let meta = site.directory.publish_copy(&temp, &id).expect("a copy");
    assert_eq!((meta.size(), meta.mode() & 0o777), (8, 0o600));
    let found = fs::metadata(&path).expect("it has its name");
    assert_eq!(FileIdentity::of(&found), FileIdentity::of(&meta));
    assert_eq!(fs::read(&path).expect("it exists"), b"response");
    let parent = path.parent().expect("it has one");
    let names = fs::read_dir(parent).expect("it exists");
    assert_eq!(names.count(), 1, "the temporary name is gone");
    // Nothing is left of a copy that fails.
    let missing = site.path.join("missing");
    assert!(site.directory.publish_copy(&missing, &id).is_err());
    assert_eq!(fs::read_dir(parent).expect("it exists").count(), 1);
}

#[test]
fn a_hit_opens_and_reads_a_file_at_once() {
    let site = Site::new("hit");
    let key = key();
    let head = [&b"HTTP/1.1 200 OK\r\nX: "[..], &[b'x'; 5000], b"\r\n\r\n"].concat();
    let mut bytes = encode(&Header::default(), &key, &head, None).expect("it is short");
    let body_start = bytes.len();
    bytes.extend_from_slice(b"body");
    let (temp, file) = site.write("temp", &bytes);
    let meta = site.directory.publish(&temp, &file, &key.id());
    let meta = meta.expect("one directory");
    let body_start = body_start as u16;
    for hint in [0, 1, body_start - 1, body_start, body_start + 9, u16::MAX] {
        let opened = site.directory.open_entry(&key.id(), hint);
        let (mut file, start) = opened.expect("it exists");
        assert_eq!(start.identity(), FileIdentity::of(&meta));
        let prefix = start.parse().expect("it is whole");
        assert_eq!((prefix.head, prefix.body_len), (&head[..], 4));
        assert_eq!(prefix.key, key.text());
        let mut all = Vec::new();
        file.read_to_end(&mut all).expect("its position is 0");
        assert_eq!(all, bytes);
    }
    site.directory.remove(&key.id()).expect("it exists");
    let missing = site.directory.open_entry(&key.id(), 0);
    let error = missing.expect_err("it was removed").kind();
    assert_eq!(error, io::ErrorKind::NotFound);
}

#[test]
fn only_the_file_that_was_purged_becomes_stale() {
    let site = Site::new("expire");
    let key = key();
    let header = Header {
        valid_s: 100,
        ..Header::default()
    };
    let bytes = encode(&header, &key, b"A: b\r\n\r\n", None).expect("it is short");
    let (temp, first) = site.write("first", &bytes);
    let publish = |temp: &Path, file: &File| {
        let meta = site.directory.publish(temp, file, &key.id());
        FileIdentity::of(&meta.expect("one directory"))
    };
    let valid_s = || {
        let start = site.directory.read_start(&key.id()).expect("it exists");
        start.parse().expect("it is whole").header.valid_s
    };
    let seen = publish(&temp, &first);
    let (temp, second) = site.write("second", &bytes);
    let newer = publish(&temp, &second);
    let expire = |seen, now_s| site.directory.expire(&key.id(), seen, now_s);
    assert!(!expire(Some(seen), 50).expect("it is read"));
    assert_eq!(valid_s(), 100);
    assert!(expire(Some(newer), 50).expect("it is written"));
    assert_eq!(valid_s(), 49);
    assert!(expire(None, 40).expect("it is written"));
    assert_eq!(valid_s(), 39);
}
