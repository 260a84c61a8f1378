//! Plain, compressed and damaged bytes from pipes.

use std::io::Write;

use flate2::write::GzEncoder;

use super::*;

/// The bytes of a file with this content, and the error that ended them.
fn read(content: &[u8]) -> (Vec<u8>, Option<ErrorKind>) {
    let (reader, mut writer) = io::pipe().expect("a pipe");
    let content = content.to_vec();
    let writing = std::thread::spawn(move || {
        // Small pieces: decoders reach the end of the available bytes at every offset.
        for piece in content.chunks(7) {
            writer.write_all(piece).expect("somebody reads");
        }
    });
    let file = File::from(std::os::fd::OwnedFd::from(reader));
    let mut source = Source::new(file).expect("it is opened");
    assert_eq!(source.size, None);
    let (mut all, mut buf) = (Vec::new(), [0; 1000]);
    let error = loop {
        match source.bytes.read(&mut buf) {
            Ok(0) => break None,
            Ok(count) => all.extend_from_slice(&buf[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => break Some(error.kind()),
        }
    };
    drop(source);
    let _ = writing.join();
    (all, error)
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).expect("memory has room");
    encoder.finish().expect("memory has room")
}

fn zstd(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
    zstd_safe::compress(&mut out, text, 3).expect("there is room");
    out
}

fn text() -> Vec<u8> {
    let lines = (0..5000).map(|n| format!("192.0.2.{} line {n}\n", n % 256));
    lines.collect::<String>().into_bytes()
}

#[test]
fn plain_and_compressed_logs_are_read_by_their_content() {
    let text = text();
    assert_eq!(read(&text), (text.clone(), None));
    assert_eq!(read(b""), (Vec::new(), None));
    assert_eq!(read(b"\x1f"), (b"\x1f".to_vec(), None));
    for compress in [gzip, zstd] {
        assert_eq!(read(&compress(&text)), (text.clone(), None));
        // Logs that were compressed in parts: members of gzip, frames of Zstandard.
        let (first, rest) = text.split_at(1001);
        let parts = [compress(first), compress(b""), compress(rest)].concat();
        assert_eq!(read(&parts), (text.clone(), None));
    }
}

#[test]
fn cut_logs_give_what_is_whole() {
    let text = text();
    for compress in [gzip, zstd] {
        let whole = compress(&text);
        for cut in [whole.len() - 1, whole.len() / 2, 5] {
            let (read, error) = read(&whole[..cut]);
            assert_eq!(error, Some(ErrorKind::UnexpectedEof), "{cut}");
            assert!(text.starts_with(&read), "{cut}");
        }
    }
}

#[test]
fn damaged_logs_are_errors() {
    let text = text();
    for compress in [gzip, zstd] {
        let mut damaged = compress(&text);
        let middle = damaged.len() / 2;
        damaged[middle..middle + 20].fill(0xff);
        assert!(read(&damaged).1.is_some());
    }
}

#[test]
fn other_compressions_are_named() {
    for begin in [&b"\xfd7zXZ\0abc"[..], b"BZh9abc"] {
        assert_eq!(read(begin), (Vec::new(), Some(ErrorKind::Unsupported)));
    }
}
