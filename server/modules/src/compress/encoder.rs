//! Encoders for streams: they accept chunks and append compressed bytes. A flush makes all input so far decodable.
//!
//! Threads reuse encoders of gzip and Zstandard; the Brotli library cannot reset an encoder.
//!
//! Source: the libraries' manuals; RFC 9659 for Zstandard's window.

use std::cell::RefCell;

use brotlic::encode::BrotliOperation;
use brotlic::{BrotliEncoder, BrotliEncoderOptions, Quality, WindowSize};
use flate2::{Compress, Compression, FlushCompress, Status};
use server_base::memory;
use server_http::exchange::Broken;
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective};

use super::coding::{Coding, Params};
use super::fit;

/// The flush mode of an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// No flush: output as suits the encoder.
    Later,
    /// All of it.
    Flushed,
    /// All output; the body is complete.
    Ended,
}

/// An encoder of one body.
pub(super) struct Encoder(Codec);

enum Codec {
    Gzip(Box<Compress>, GzipKey),
    Brotli(BrotliEncoder),
    Zstd(CCtx<'static>),
    /// The encoder was returned to the thread.
    Gone,
}

impl Encoder {
    /// Creates an encoder; `length` is the length of the body, if it is known.
    pub(super) fn new(params: Params, length: Option<u64>) -> Self {
        Self(match params.coding {
            Coding::Gzip => {
                let key = (params.level, params.window_log);
                Codec::Gzip(gzip(key), key)
            }
            Coding::Brotli => Codec::Brotli(brotli(params, length)),
            Coding::Zstd => Codec::Zstd(zstd(params.level, length)),
        })
    }

    /// Compresses bytes and appends the output.
    pub(super) fn write(
        &mut self,
        input: &[u8],
        until: Until,
        out: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        match &mut self.0 {
            Codec::Gzip(encoder, _) => write_gzip(encoder, input, until, out),
            Codec::Brotli(encoder) => write_brotli(encoder, input, until, out),
            Codec::Zstd(encoder) => write_zstd(encoder, input, until, out),
            Codec::Gone => Err(Broken("the encoder is gone")),
        }
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // While a thread ends its encoders may already be freed.
        let _ = IDLE.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            memory::on_relief(|| IDLE.with_borrow_mut(|kept| *kept = IdleEncoders::default()));
            match std::mem::replace(&mut self.0, Codec::Gone) {
                Codec::Gzip(encoder, key) if kept.gzip.len() < KEPT_MAX => {
                    kept.gzip.push((key, encoder))
                }
                Codec::Zstd(encoder)
                    if kept.zstd.len() < KEPT_MAX && encoder.sizeof() <= KEPT_BYTES =>
                {
                    kept.zstd.push(encoder);
                }
                _ => {}
            }
        });
    }
}

/// Idle encoders of a thread.
#[derive(Default)]
struct IdleEncoders {
    gzip: Vec<(GzipKey, Box<Compress>)>,
    zstd: Vec<CCtx<'static>>,
}

thread_local! {
    static IDLE: RefCell<IdleEncoders> = RefCell::default();
}

/// Level and window, as a power of two, of a gzip encoder.
type GzipKey = (u8, u8);

fn gzip(key: GzipKey) -> Box<Compress> {
    let kept = IDLE.with_borrow_mut(|kept| {
        let at = kept.gzip.iter().position(|(known, _)| *known == key)?;
        Some(kept.gzip.swap_remove(at).1)
    });
    match kept {
        Some(mut encoder) => {
            encoder.reset();
            encoder
        }
        None => {
            // Level 1 of the library makes larger bodies than that of zlib, level 2 smaller ones.
            let (level, window_log) = key;
            let level = Compression::new(u32::from(level.max(2)));
            Box::new(Compress::new_gzip(level, window_log))
        }
    }
}

fn brotli(params: Params, length: Option<u64>) -> BrotliEncoder {
    let window_log = fit::window_log(params.window_log, length);
    let mut options = BrotliEncoderOptions::new();
    if let Some(length) = length {
        options.size_hint(u32::try_from(length).unwrap_or(u32::MAX));
    }
    let quality = Quality::new(params.level).expect("levels are checked when they are read");
    let window = WindowSize::new(window_log).expect("windows are checked when they are read");
    options.quality(quality).window_size(window);
    options.build().expect("both are in their ranges")
}

fn zstd(level: u8, length: Option<u64>) -> CCtx<'static> {
    let kept = IDLE.with_borrow_mut(|kept| kept.zstd.pop());
    let mut encoder = kept.unwrap_or_else(CCtx::create);
    // These calls cannot fail between frames: the values are within their ranges.
    let set = [
        encoder.reset(ResetDirective::SessionAndParameters),
        encoder.set_parameter(CParameter::CompressionLevel(i32::from(level))),
        encoder.set_pledged_src_size(length),
    ];
    debug_assert!(set.iter().all(Result::is_ok), "{set:?}");
    if length.is_none_or(|length| length > 1 << ZSTD_WINDOW_LOG_MAX) {
        let limited = encoder.set_parameter(CParameter::WindowLog(window_log(level)));
        debug_assert!(limited.is_ok(), "{limited:?}");
    }
    encoder
}

/// Window of a level, limited to the size that every client supports; a power of two.
fn window_log(level: u8) -> u32 {
    match level {
        0..=1 => 19,
        2 => 20,
        3..=9 => 21,
        10..=16 => 22,
        _ => ZSTD_WINDOW_LOG_MAX,
    }
}

fn write_gzip(
    encoder: &mut Compress,
    input: &[u8],
    until: Until,
    out: &mut Vec<u8>,
) -> Result<(), Broken> {
    let flush = match until {
        Until::Later => FlushCompress::None,
        Until::Flushed => FlushCompress::Sync,
        Until::Ended => FlushCompress::Finish,
    };
    let mut rest = input;
    loop {
        out.reserve(STEP_BYTES);
        let before = encoder.total_in();
        let status = encoder
            .compress_vec(rest, out, flush)
            .map_err(|_| Broken("deflate() failed"))?;
        rest = &rest[(encoder.total_in() - before) as usize..];
        let room = out.len() < out.capacity();
        match until {
            Until::Ended if status == Status::StreamEnd => return Ok(()),
            Until::Later | Until::Flushed if rest.is_empty() && room => return Ok(()),
            _ => {}
        }
    }
}

fn write_brotli(
    encoder: &mut BrotliEncoder,
    input: &[u8],
    until: Until,
    out: &mut Vec<u8>,
) -> Result<(), Broken> {
    let operation = match until {
        Until::Later => BrotliOperation::Process,
        Until::Flushed => BrotliOperation::Flush,
        Until::Ended => BrotliOperation::Finish,
    };
    let mut rest = input;
    let mut room = [0; STEP_BYTES];
    loop {
        let done = encoder
            .compress(rest, &mut room, operation)
            .map_err(|_| Broken("the Brotli encoder failed"))?;
        rest = &rest[done.bytes_read..];
        out.extend_from_slice(&room[..done.bytes_written]);
        if rest.is_empty() && !encoder.has_output() {
            return Ok(());
        }
    }
}

fn write_zstd(
    encoder: &mut CCtx<'static>,
    input: &[u8],
    until: Until,
    out: &mut Vec<u8>,
) -> Result<(), Broken> {
    let operation = match until {
        Until::Later => ZSTD_EndDirective::ZSTD_e_continue,
        Until::Flushed => ZSTD_EndDirective::ZSTD_e_flush,
        Until::Ended => ZSTD_EndDirective::ZSTD_e_end,
    };
    let mut from = InBuffer::around(input);
    loop {
        out.reserve(STEP_BYTES);
        let filled = out.len();
        let mut to = OutBuffer::around_pos(out, filled);
        let left = encoder
            .compress_stream2(&mut to, &mut from, operation)
            .map_err(|_| Broken("the Zstandard encoder failed"))?;
        let taken = from.pos() == input.len();
        if taken && (until == Until::Later || left == 0) {
            return Ok(());
        }
    }
}

/// Room for the output of one step, bytes.
const STEP_BYTES: usize = 4 << 10;
/// Maximum number of idle encoders of a coding in a thread.
const KEPT_MAX: usize = 4;
/// Maximum size of a Zstandard encoder that is reused, bytes.
const KEPT_BYTES: usize = 4 << 20;
/// 8 MB, the window that every HTTP client must support (RFC 9659).
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

#[cfg(test)]
#[path = "encoder_tests.rs"]
mod tests;
