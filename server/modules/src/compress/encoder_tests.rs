//! Streams go through the encoders and the libraries' decoders; commands decode them in the black-box tests.

use std::io::Read;

use super::*;

const ALL: [Params; 6] = [
    params(Coding::Gzip, 1),
    params(Coding::Gzip, 9),
    params(Coding::Brotli, 0),
    params(Coding::Brotli, 6),
    params(Coding::Zstd, 1),
    params(Coding::Zstd, 12),
];

const fn params(coding: Coding, level: u8) -> Params {
    let window_log = match coding {
        Coding::Gzip => 15,
        _ => 19,
    };
    Params {
        coding,
        level,
        window_log,
    }
}

/// The text that a client can decode from these bytes, whether the end is there or not.
fn decoded(coding: Coding, bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    match coding {
        Coding::Gzip => {
            // Bytes before a missing end are still decoded.
            let _ = flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut text);
        }
        Coding::Brotli => {
            let _ = brotlic::DecompressorReader::new(bytes).read_to_end(&mut text);
        }
        Coding::Zstd => {
            let mut decoder = zstd_safe::DCtx::create();
            let mut input = InBuffer::around(bytes);
            while input.pos() < bytes.len() {
                text.reserve(1 << 20);
                let filled = text.len();
                let mut to = OutBuffer::around_pos(&mut text, filled);
                assert!(decoder.decompress_stream(&mut to, &mut input).is_ok());
            }
        }
    }
    text
}

fn text(len: usize) -> Vec<u8> {
    let words = b"the quick brown fox jumps over the lazy dog ";
    let mut seed = 1_u32;
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        words[(seed >> 24) as usize % words.len()]
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn gzip_looks_back_as_far_as_its_window() {
    // The same 200 bytes at growing distances.
    let part = text(200);
    let mut input = Vec::new();
    let mut seed = 7_u32;
    for gap in [400, 900, 1900, 3900, 7900, 15_900, 31_000] {
        input.extend_from_slice(&part);
        input.extend((0..gap).map(|_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        }));
    }
    input.extend_from_slice(&part);
    for level in [1, 6, 9] {
        let mut lengths = Vec::new();
        for window_log in 9..=15 {
            let params = Params {
                coding: Coding::Gzip,
                level,
                window_log,
            };
            let mut out = Vec::new();
            let mut encoder = Encoder::new(params, None);
            encoder
                .write(&input, Until::Ended, &mut out)
                .expect("it works");
            assert!(decoded(Coding::Gzip, &out) == input, "{level} {window_log}");
            lengths.push(out.len());
        }
        // Each window reaches one more copy.
        let shorter = |a: &usize, b: &usize| *a > b + 100;
        assert!(lengths.is_sorted_by(shorter), "{level}: {lengths:?}");
    }
}

#[test]
fn what_goes_in_comes_out_however_it_is_cut() {
    let text = text(150_000);
    for params in ALL {
        for cut in [1_usize, 1000, 40_000, 200_000] {
            // Flushing each byte is slow, so the text is shorter for small cuts.
            let text = &text[..text.len().min(cut * 200)];
            for length in [None, Some(text.len() as u64)] {
                let mut encoder = Encoder::new(params, length);
                let mut out = Vec::new();
                for piece in text.chunks(cut) {
                    assert_eq!(encoder.write(piece, Until::Later, &mut out), Ok(()));
                }
                assert_eq!(encoder.write(b"", Until::Ended, &mut out), Ok(()));
                assert!(
                    decoded(params.coding, &out) == text,
                    "{params:?} {cut} {length:?}"
                );
            }
        }
    }
}

#[test]
fn a_flush_lets_the_client_read_all_that_came_before() {
    for params in ALL {
        let mut encoder = Encoder::new(params, None);
        let (mut out, mut sent) = (Vec::new(), Vec::new());
        for line in ["data: 1\n\n", "data: 2\n\n", "data: 22222\n\n"] {
            sent.extend_from_slice(line.as_bytes());
            assert_eq!(
                encoder.write(line.as_bytes(), Until::Later, &mut out),
                Ok(())
            );
            assert_eq!(encoder.write(b"", Until::Flushed, &mut out), Ok(()));
            assert_eq!(decoded(params.coding, &out), sent, "{params:?}");
        }
        assert_eq!(encoder.write(b"", Until::Ended, &mut out), Ok(()));
        assert_eq!(decoded(params.coding, &out), sent);
    }
}

#[test]
fn an_empty_body_is_a_whole_stream() {
    for params in ALL {
        let mut encoder = Encoder::new(params, None);
        let mut out = Vec::new();
        assert_eq!(encoder.write(b"", Until::Ended, &mut out), Ok(()));
        assert!(
            !out.is_empty() && decoded(params.coding, &out).is_empty(),
            "{params:?}"
        );
    }
}

#[test]
fn an_encoder_that_was_given_up_leaves_nothing_behind() {
    for params in ALL {
        let mut first = Encoder::new(params, Some(100));
        assert_eq!(
            first.write(&text(50), Until::Later, &mut Vec::new()),
            Ok(())
        );
        drop(first);
        let mut second = Encoder::new(params, None);
        let mut out = Vec::new();
        assert_eq!(second.write(b"short", Until::Ended, &mut out), Ok(()));
        assert_eq!(decoded(params.coding, &out), b"short", "{params:?}");
    }
}
