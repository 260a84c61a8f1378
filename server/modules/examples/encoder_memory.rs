//! Measures memory and time of an encoder of each coding, level and window after 900 KB of a page: the figures behind
//! `compress/fit.rs`, printed as rows of a table.
//!
//! `cargo run --release -p firstbyte-modules --example encoder_memory`
//!
//! Memory is the growth of resident memory. Each encoder is measured in a new process, so that none reuses the memory
//! of another.

use std::fs;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use brotlic::encode::BrotliOperation;
use brotlic::{BrotliEncoderOptions, Quality, WindowSize};
use flate2::{Compress, Compression, FlushCompress};
use zstd_safe::zstd_sys::ZSTD_EndDirective::ZSTD_e_continue;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [coding, level, window_log] = arguments.as_slice() {
        let number = |text: &String| text.parse().expect("a number");
        return measure(coding, number(level), number(window_log));
    }
    println!("| coding | level | window, log2 | KiB | ms |\n|---|---|---|---|---|");
    let own = std::env::current_exe().expect("it runs");
    let run = |coding: &str, level: u8, window_log: u8| {
        let words = [coding, &level.to_string(), &window_log.to_string()];
        let status = Command::new(&own).args(words).status();
        assert!(status.is_ok_and(|status| status.success()), "{words:?}");
    };
    for level in 0..=11 {
        for window_log in [10, 16, 18, 19, 20, 22, 24] {
            run("br", level, window_log);
        }
    }
    (1..=22).for_each(|level| run("zstd", level, 0));
    (1..=9).for_each(|level| run("gzip", level, 15));
}

fn measure(coding: &str, level: u8, window_log: u8) {
    let page = page();
    let mut out = vec![0_u8; 4 << 20];
    out.iter_mut().for_each(|byte| *byte = black_box(1));
    let before = resident_kib();
    let start = Instant::now();
    // Kept alive until memory has been measured.
    let encoder: Box<dyn std::any::Any> = match coding {
        "br" => Box::new(brotli(&page, &mut out, level, window_log)),
        "zstd" => Box::new(zstd(&page, &mut out, level)),
        _ => Box::new(gzip(&page, &mut out, level)),
    };
    let took = start.elapsed().as_millis();
    let kib = resident_kib().saturating_sub(before);
    drop(encoder);
    println!("| {coding} | {level} | {window_log} | {kib} | {took} |");
}

/// 900 KB of words and links.
fn page() -> Vec<u8> {
    let mut seed = 1_u32;
    let mut page = Vec::new();
    while page.len() < 900_000 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let word = (seed >> 20) % 2000;
        page.extend_from_slice(
            format!("word{word} <a href=\"/p/{}\">{}</a>\n", word * 7, word % 13).as_bytes(),
        );
    }
    page.truncate(900_000);
    page
}

fn resident_kib() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").expect("this is Linux");
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0_u64) * 4
}

fn brotli(page: &[u8], out: &mut [u8], level: u8, window_log: u8) -> brotlic::BrotliEncoder {
    let mut options = BrotliEncoderOptions::new();
    let quality = Quality::new(level).expect("a level of Brotli");
    let window = WindowSize::new(window_log).expect("a window of Brotli");
    options.size_hint(page.len() as u32);
    options.quality(quality).window_size(window);
    let mut encoder = options.build().expect("both are in their ranges");
    for mut piece in page.chunks(PIECE_BYTES) {
        while !piece.is_empty() || encoder.has_output() {
            let done = encoder.compress(piece, out, BrotliOperation::Process);
            piece = &piece[done.expect("it compresses").bytes_read..];
        }
    }
    encoder
}

fn zstd(page: &[u8], out: &mut [u8], level: u8) -> CCtx<'static> {
    let mut encoder = CCtx::create();
    let set = encoder.set_parameter(CParameter::CompressionLevel(level.into()));
    set.expect("a level of Zstandard");
    for piece in page.chunks(PIECE_BYTES) {
        let mut from = InBuffer::around(piece);
        let mut to = OutBuffer::around(&mut *out);
        let done = encoder.compress_stream2(&mut to, &mut from, ZSTD_e_continue);
        done.expect("it compresses");
    }
    encoder
}

fn gzip(page: &[u8], out: &mut [u8], level: u8) -> Compress {
    let mut encoder = Compress::new_gzip(Compression::new(level.into()), 15);
    for piece in page.chunks(PIECE_BYTES) {
        let done = encoder.compress(piece, out, FlushCompress::None);
        done.expect("it compresses");
    }
    encoder
}

/// Size of the chunks that stages are given, bytes.
const PIECE_BYTES: usize = 32 << 10;
