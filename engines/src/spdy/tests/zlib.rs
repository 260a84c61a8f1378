//! Header blocks as zlib writes and reads them.

use flate2::{Decompress, FlushDecompress, Status};

use super::super::dictionary::DICTIONARY;
use super::super::zlib::Unreadable;
use super::*;

/// Result of another zlib decoder for a stream that starts with these bytes.
struct Other(Decompress);

impl Other {
    fn read(&mut self, input: &[u8]) -> Vec<u8> {
        let mut out = vec![0; 1 << 20];
        let seen = self.0.total_in();
        let mut read = |at: usize, out: &mut [u8]| {
            self.0
                .decompress(&input[at..], out, FlushDecompress::Sync)
                .map_err(|error| error.needs_dictionary())
        };
        if let Err(id) = read(0, &mut out) {
            assert_eq!(id, Some(0xe3c6_a7c2), "the dictionary is named");
            let set = self.0.set_dictionary(DICTIONARY);
            set.expect("the dictionary is the one that was named");
            let at = (self.0.total_in() - seen) as usize;
            let read = self
                .0
                .decompress(&input[at..], &mut out, FlushDecompress::Sync);
            read.expect("the rest is DEFLATE");
        }
        let len = self.0.total_out() as usize;
        out.truncate(len);
        out
    }
}

#[test]
fn blocks_are_what_other_readers_of_zlib_take() {
    for level in 0..=9 {
        let mut deflater = Deflater::new(level);
        let mut whole = Vec::new();
        let mut text = Vec::new();
        for n in 0..20 {
            let part = format!("\0\0\0\x04date\0\0\0\x06secret{n}GMT and more of date");
            let start = part.find("secret").expect("it is there");
            let secret = start..start + 7;
            let secrets = std::slice::from_ref(&secret);
            deflater.block(part.as_bytes(), secrets, &mut whole);
            text.extend_from_slice(part.as_bytes());
        }
        let read = Other(Decompress::new(true)).read(&whole);
        assert_eq!(read, text, "level {level}");
    }
}

#[test]
fn blocks_of_every_size_are_read_back() {
    for level in [0, 1, 6, 9] {
        let (mut deflater, mut inflater) = (Deflater::new(level), Inflater::default());
        for size in [0, 1, 5, 4095, 4096, 4097, 65_535, 65_536, 200_000] {
            let text: Vec<u8> = (0..size).map(|n| (n * n % 251) as u8).collect();
            let (mut block, mut read) = (Vec::new(), Vec::new());
            deflater.block(&text, &[], &mut block);
            let result = inflater.block(&block, size, size, &mut read);
            assert_eq!((result, read == text), (Ok(()), true), "{size} at {level}");
        }
    }
}

/// CRIME guesses a secret by the length of a block that holds both the secret and the guess: the bytes around the
/// secret must not depend on the secret.
#[test]
fn nothing_but_the_secret_depends_on_the_secret() {
    const GUESS: &str = "session=0123456789abcdef0123456789abcdef";
    const OTHER: &str = "session=fedcba9876543210fedcba9876543210";
    let sent = |secret: &str, level, hidden: bool| {
        let mut deflater = Deflater::new(level);
        let mut out = Vec::new();
        for _ in 0..3 {
            let text = [GUESS, secret, GUESS].concat();
            let range = GUESS.len()..GUESS.len() + secret.len();
            let secrets = if hidden { vec![range] } else { Vec::new() };
            deflater.block(text.as_bytes(), &secrets, &mut out);
        }
        out
    };
    for level in 1..=9 {
        let right = sent(GUESS, level, false).len();
        let wrong = sent(OTHER, level, false).len();
        assert!(wrong > right + 10, "level {level} would tell it");
        let right = sent(GUESS, level, true);
        let wrong = sent(OTHER, level, true);
        let around = |sent: &[u8], secret: &str| text(sent).replacen(secret, "?", 3);
        assert_eq!(
            around(&right, GUESS),
            around(&wrong, OTHER),
            "level {level}"
        );
    }
}

#[test]
fn text_beyond_the_limit_is_dropped_and_beyond_the_second_refused() {
    let mut deflater = Deflater::new(9);
    let mut block = Vec::new();
    deflater.block(&[b'a'; 10_000], &[], &mut block);
    assert!(block.len() < 100, "a bomb is small");
    let read = |keep, most| {
        let mut out = Vec::new();
        let result = Inflater::default().block(&block, keep, most, &mut out);
        (result, out.len())
    };
    assert_eq!(read(10_000, 10_000), (Ok(()), 10_000));
    assert_eq!(read(50, 10_000), (Ok(()), 50));
    assert_eq!(read(50, 9_999), (Err(Unreadable::TooLong), 50));
}

#[test]
fn what_is_no_zlib_is_refused() {
    let read = |bytes: &[u8]| Inflater::default().block(bytes, 100, 100, &mut Vec::new());
    assert_eq!(read(&[0x78, 0x9c]), Ok(()), "no dictionary is good as well");
    assert_eq!(read(&[0x79, 0x9c]), Err(Unreadable::Corrupted));
    assert_eq!(read(&[0x88, 0x1c]), Err(Unreadable::Corrupted));
    assert_eq!(read(&[0x78, 0x9d]), Err(Unreadable::Corrupted));
    let other = [0x78, 0xbb, 1, 2, 3, 4];
    assert_eq!(read(&other), Err(Unreadable::WrongDictionary));
    let reserved = [0x78, 0x9c, 0x06];
    assert_eq!(read(&reserved), Err(Unreadable::Corrupted));
    let ended = [0x78, 0x9c, 0x03, 0x00, 0, 0, 0, 1];
    assert_eq!(read(&ended), Err(Unreadable::Corrupted));
}

/// A new codec continues from the state of the old one, in both directions.
#[test]
fn streams_go_on_after_a_rest() {
    for level in [0, 1, 6, 9] {
        let (mut deflater, mut inflater) = (Deflater::new(level), Inflater::default());
        let mut restless = Inflater::default();
        let mut sent = 0;
        for n in 0..200 {
            let text = format!("date: today {n}\ncookie: secret {}\n", n * n).repeat(1 + n % 7);
            let start = text.find("secret").expect("it is there");
            let secret = start..start + 6;
            let secrets = if n % 5 == 0 { vec![secret] } else { Vec::new() };
            let mut block = Vec::new();
            deflater.block(text.as_bytes(), &secrets, &mut block);
            sent += block.len();
            for inflater in [&mut inflater, &mut restless] {
                let mut read = Vec::new();
                let result = inflater.block(&block, 10_000, 10_000, &mut read);
                assert_eq!((result, bed::text(&read)), (Ok(()), text.clone()), "{n}");
            }
            if n % 3 != 0 {
                deflater.shrink();
                inflater.shrink();
            }
        }
        if level > 0 {
            assert!(sent < 200 * 60, "{sent} bytes: what came before is of use");
        }
    }
}

/// A stored block ends between two bytes, but is no flush: the next bits may be anything.
#[test]
fn stream_is_kept_in_the_middle_of_something() {
    let mut inflater = Inflater::default();
    let mut read = Vec::new();
    for byte in [0x78, 0x9c, 0, 4, 0, 0xfb, 0xff, b'a', b'b'] {
        inflater.shrink();
        assert_eq!(inflater.block(&[byte], 9, 9, &mut read), Ok(()));
    }
    inflater.shrink();
    assert_eq!(inflater.block(b"cd\0\0\0\xff\xff", 9, 9, &mut read), Ok(()));
    inflater.shrink();
    assert_eq!(
        inflater.block(b"\0\x01\0\xfe\xffe", 9, 9, &mut read),
        Ok(())
    );
    assert_eq!(text(&read), "abcde");
}

/// A repeated block is copied from some repetition on, and later blocks may still refer to it.
#[test]
fn blocks_that_repeat_are_read_back() {
    for level in [1, 6, 9] {
        for len in [1_usize, 10, 300, 5000] {
            let (mut deflater, mut inflater) = (Deflater::new(level), Inflater::default());
            let mut run = |text: &str, times: usize| {
                let mut lens = Vec::new();
                for _ in 0..times {
                    let (mut block, mut read) = (Vec::new(), Vec::new());
                    deflater.block(text.as_bytes(), &[], &mut block);
                    let result = inflater.block(&block, 10_000, 10_000, &mut read);
                    assert_eq!((result, bed::text(&read)), (Ok(()), text.to_owned()));
                    lens.push(block.len());
                }
                lens
            };
            let letters = |step: usize| -> String {
                let letter = |n: usize| char::from(b'a' + (n * n * step / 7 % 26) as u8);
                (0..len).map(letter).collect()
            };
            let (one, other) = (letters(3), letters(5));
            let times = 6000 / len + 5;
            let first = run(&one, times);
            assert_eq!(first[times - 1], first[times - 2]);
            run(&other, 2);
            run(&one, times);
            run(&format!("{one}{other}"), 1);
        }
    }
}

/// An apparent end of a flush may be a stored block's length without its complement yet.
#[test]
fn lengths_that_look_like_a_flush_are_none() {
    let mut inflater = Inflater::default();
    let mut read = Vec::new();
    let block = [0x78, 0x9c, 0, 0, 0xff, 0xff];
    assert_eq!(inflater.block(&block, 1 << 20, 1 << 20, &mut read), Ok(()));
    inflater.shrink();
    let text = [vec![0], vec![b'x'; 0xff00]].concat();
    assert_eq!(inflater.block(&text, 1 << 20, 1 << 20, &mut read), Ok(()));
    assert_eq!(read, text[1..]);
}

/// A block may end in the middle of a byte; the rest of the byte belongs to the next one.
#[test]
fn stream_goes_on_in_the_middle_of_a_byte() {
    // Two blocks with fixed codes and the letter `a`, 18 bits each, one behind the other.
    let bits = ["010", "10010001", "0000000"].concat().repeat(2);
    let bits: Vec<u8> = bits.bytes().map(|bit| bit - b'0').collect();
    let byte = |bits: &[u8]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit);
    let bytes: Vec<u8> = bits.chunks(8).map(byte).collect();
    for cut in 0..=bytes.len() {
        let mut inflater = Inflater::default();
        let mut read = Vec::new();
        for piece in [&[0x78, 0x9c], &bytes[..cut], &bytes[cut..]] {
            assert_eq!(inflater.block(piece, 99, 99, &mut read), Ok(()));
            inflater.shrink();
        }
        assert_eq!(text(&read), "aa", "cut at {cut}");
    }
}

/// Streams of every level, whole and with a byte or two changed, cut anywhere: read as zlib reads them, or refused.
#[test]
fn streams_are_read_as_zlib_reads_them() {
    let mut state = 7_u64;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    let (mut read, mut refused) = (0, 0);
    for n in 0..6000 {
        // Text of few letters or of many, so that codes are short and long.
        let letters = 1 + random(256) * usize::from(n % 3 > 0);
        let letter = |n: usize| (n * n / 255) as u8;
        let mut text: Vec<u8> = (0..random(3000))
            .map(|_| letter(random(letters.max(2))))
            .collect();
        // Some text repeats text from far before it.
        if n % 5 == 0 {
            let between = random(30_000);
            let again = text.clone();
            text.extend((0..between).map(|at| (at * at / 7) as u8));
            text.extend_from_slice(&again);
        }
        let mut stream = flate2::Compress::new(flate2::Compression::new(1 + n % 9), false);
        let mut bytes = Vec::with_capacity(60_000);
        let flush = flate2::FlushCompress::Sync;
        let done = stream.compress_vec(&text, &mut bytes, flush);
        done.expect("there is room for it");
        for _ in 0..n % 3 {
            let at = random(bytes.len());
            bytes[at] = random(256) as u8;
        }
        let mut expected = Vec::with_capacity(1 << 20);
        let mut other = Decompress::new(false);
        let taken = other.decompress_vec(&bytes, &mut expected, FlushDecompress::Sync);
        let taken = matches!(taken, Ok(Status::Ok | Status::BufError));
        let mut inflater = Inflater::default();
        let mut out = Vec::new();
        let cut = random(bytes.len());
        let result = [&[0x78, 0x9c], &bytes[..cut], &bytes[cut..]]
            .into_iter()
            .try_for_each(|piece| inflater.block(piece, 1 << 20, 1 << 20, &mut out));
        // A code for lengths without any codes is refused here at once, and by zlib at its first use.
        let text_agrees = out == expected;
        let mut doomed = || {
            let more = FlushDecompress::Sync;
            (0..100).any(|_| other.decompress_vec(&[0; 64], &mut expected, more).is_err())
        };
        let is_changed = n % 3 > 0;
        let agrees = result.is_ok() == taken || is_changed && taken && text_agrees && doomed();
        assert!(agrees, "{n}: {result:?} at {cut} of {bytes:?}");
        let taken = result.is_ok();
        if taken {
            assert!(text_agrees, "{n}, cut at {cut}");
            read += 1;
        } else {
            refused += 1;
        }
    }
    assert!(
        read > 2000 && refused > 1000,
        "{read} read, {refused} refused"
    );
}

/// A match reaches back as far as the header's window, here 256 bytes, and no farther.
#[test]
fn matches_go_back_as_far_as_the_window() {
    for (extra, expected) in [("111111", Ok(())), ("0000000", Err(Unreadable::Corrupted))] {
        let mut inflater = Inflater::default();
        let mut read = Vec::new();
        let stored = [&[0x08, 0x1d, 0, 0x2c, 1, 0xd3, 0xfe][..], &[b'x'; 300]].concat();
        assert_eq!(inflater.block(&stored, 999, 999, &mut read), Ok(()));
        // Three bytes, from a distance of 193 and six bits more, or of 257 and seven.
        let distance = if extra.len() == 6 { "01111" } else { "10000" };
        let bits = ["010", "0000001", distance, extra, "0000000"].concat();
        let bits: Vec<u8> = bits.bytes().map(|bit| bit - b'0').collect();
        let byte = |bits: &[u8]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit);
        let bytes: Vec<u8> = bits.chunks(8).map(byte).collect();
        assert_eq!(inflater.block(&bytes, 999, 999, &mut read), expected);
        assert_eq!(read.len(), 300 + 3 * usize::from(expected.is_ok()));
    }
}

/// A peer cannot make the connection keep more than the window, however large the text of a few bytes.
#[test]
fn long_text_leaves_no_memory_behind() {
    let mut block = vec![0x78, 0x9c];
    let mut stream = flate2::Compress::new(flate2::Compression::new(9), false);
    let mut bytes = Vec::with_capacity(10_000);
    let done = stream.compress_vec(&[b'a'; 300_000], &mut bytes, flate2::FlushCompress::Sync);
    done.expect("there is room for it");
    block.extend_from_slice(&bytes);
    assert!(block.len() < 1000);
    let mut inflater = Inflater::default();
    assert_eq!(
        inflater.block(&block, 100, 300_000, &mut Vec::new()),
        Ok(())
    );
    assert!(
        inflater.memory_bytes() <= (32 << 10) + (16 << 10),
        "{}",
        inflater.memory_bytes()
    );
    assert!(inflater.holds_spare_memory());
    inflater.shrink();
    assert!(
        inflater.memory_bytes() <= 32 << 10,
        "{}",
        inflater.memory_bytes()
    );
    assert!(!inflater.holds_spare_memory());
}

/// The contents of a stored block may look like the end of a flush, whole or in part.
#[test]
fn text_that_looks_like_a_flush_is_none() {
    for len in 1..=4_u8 {
        let mut inflater = Inflater::default();
        let mut read = Vec::new();
        // A stored block that ends with `len` bytes of the mark as text, one byte before its end.
        let mut block = vec![0x78, 0x9c, 0, len + 1, 0, !(len + 1), 0xff];
        block.extend_from_slice(&[0, 0, 0xff, 0xff][..usize::from(len)]);
        assert_eq!(inflater.block(&block, 99, 99, &mut read), Ok(()));
        inflater.shrink();
        assert_eq!(inflater.block(b"x", 99, 99, &mut read), Ok(()));
        assert_eq!(read.last(), Some(&b'x'), "{len}");
    }
}
