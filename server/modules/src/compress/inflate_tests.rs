//! Bodies in gzip, whole and not.

use std::io::Write;

use super::*;

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

/// The output for these pieces, and the maximum of one step.
fn run(pieces: &[&[u8]], step: u64) -> (Result<Vec<u8>, &'static str>, usize) {
    let mut inflate = Inflate::new(step);
    let (mut text, mut most) = (Vec::new(), 0);
    for piece in pieces {
        inflate.take(Chunk::Owned(piece.to_vec()));
        loop {
            match inflate.next() {
                Ok(Some(made)) => {
                    most = most.max(made.len());
                    text.extend_from_slice(&made);
                }
                Ok(None) => break,
                Err(broken) => return (Err(broken), most),
            }
        }
    }
    (inflate.end().map(|()| text), most)
}

#[test]
fn members_are_joined_however_they_are_cut() {
    let text: Vec<u8> = (0..3000_u32)
        .flat_map(|n| n.to_string().into_bytes())
        .collect();
    let bytes = [gzipped(&text), gzipped(b""), gzipped(b"end")].concat();
    let expected = [text.as_slice(), b"end"].concat();
    for cut in (0..bytes.len())
        .step_by(97)
        .chain([1, 9, 10, 11, bytes.len() - 1])
    {
        let (out, _) = run(&[&bytes[..cut], &bytes[cut..]], 1024);
        assert_eq!(out.as_ref(), Ok(&expected), "cut at {cut}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(run(&single, 1024).0.as_ref(), Ok(&expected));
}

#[test]
fn a_bomb_comes_out_in_pieces() {
    let bytes = gzipped(&vec![0; 8 << 20]);
    assert!(bytes.len() < 10_000);
    let (out, most) = run(&[&bytes], 64 << 10);
    assert_eq!(out.map(|text| text.len()), Ok(8 << 20));
    assert_eq!(most, 64 << 10);
    let (_, most) = run(&[&bytes], u64::MAX);
    assert_eq!(most as u64, STEP_MOST);
}

#[test]
fn what_is_no_gzip_breaks_the_response_off() {
    let bytes = gzipped(b"some text");
    for wrong in [
        &b"plain text"[..],
        &b""[..],
        &bytes[..bytes.len() - 1],
        &[bytes.as_slice(), b"trailing"].concat(),
    ] {
        assert!(run(&[wrong], 1024).0.is_err(), "{wrong:?}");
    }
    let mut changed = bytes.clone();
    let crc = bytes.len() - 8;
    changed[crc] ^= 1;
    assert!(run(&[&changed], 1024).0.is_err());
}
