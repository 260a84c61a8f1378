//! Compresses complete bodies in one step, so that their length is known.
//!
//! libdeflate compresses gzip: it needs no window, since it sees the whole body. If `gzip_window` is below the maximum,
//! zlib does it. Encoders and buffers belong to the thread.

use std::cell::RefCell;

use engines::http::Chunk;
use libdeflater::{CompressionLvl, Compressor};
use server_http::exchange::{Ctx, Exchange};

use super::coding::{Coding, GZIP_WINDOW_LOG, Params};
use super::encoder::{Encoder, Until};

/// Whether the body can be compressed at once.
pub(super) fn is_at_hand(x: &Exchange, length: u64) -> bool {
    let whole = || x.body.chunks.iter().map(Chunk::len).sum::<u64>() == length;
    let marked = || {
        x.body
            .chunks
            .iter()
            .any(|chunk| matches!(chunk, Chunk::Flush))
    };
    length <= WHOLE_BYTES
        && x.body.stages.is_empty()
        && x.body.source.is_none()
        && whole()
        && !marked()
}

/// Returns the compressed body; `None` on failure, so that the body is compressed as a stream.
pub(super) fn compress(x: &mut Exchange, cx: &mut Ctx<'_>, params: Params) -> Option<Vec<u8>> {
    THREAD.with_borrow_mut(|thread| {
        let Thread {
            gzip,
            input,
            output,
        } = thread;
        let single = match x.body.chunks.front() {
            Some(Chunk::File(_)) | None => None,
            Some(memory) => Some(memory.bytes()).filter(|_| x.body.chunks.len() == 1),
        };
        let bytes = match single {
            Some(bytes) => bytes,
            None => {
                input.clear();
                for chunk in &x.body.chunks {
                    match chunk {
                        Chunk::File(range) => cx.files.read_into(range, input).ok()?,
                        memory => input.extend_from_slice(memory.bytes()),
                    }
                }
                input.as_slice()
            }
        };
        if params.coding == Coding::Gzip && params.window_log == GZIP_WINDOW_LOG {
            return deflate(gzip, params.level, bytes, output);
        }
        let mut encoder = Encoder::new(params, Some(bytes.len() as u64));
        output.clear();
        encoder.write(bytes, Until::Ended, output).ok()?;
        Some(output.as_slice().to_vec())
    })
}

fn deflate(
    gzip: &mut [Option<Compressor>; LEVELS],
    level: u8,
    bytes: &[u8],
    output: &mut Vec<u8>,
) -> Option<Vec<u8>> {
    let slot = gzip.get_mut(usize::from(level))?;
    if slot.is_none() {
        // libdeflate's levels 5 to 8 make larger bodies than those of zlib, so the next one is used.
        let own = i32::from(level) + i32::from((5..=8).contains(&level));
        *slot = Some(Compressor::new(CompressionLvl::new(own).ok()?));
    }
    let compressor = slot.as_mut()?;
    let bound = compressor.gzip_compress_bound(bytes.len());
    if output.len() < bound {
        output.resize(bound, 0);
    }
    let made = compressor.gzip_compress(bytes, output).ok()?;
    Some(output[..made].to_vec())
}

/// A thread's reusable encoders.
#[derive(Default)]
struct Thread {
    /// By level.
    gzip: [Option<Compressor>; LEVELS],
    input: Vec<u8>,
    output: Vec<u8>,
}

thread_local! {
    static THREAD: RefCell<Thread> = RefCell::default();
}

/// Number of gzip's levels, with an unused level 0.
const LEVELS: usize = 10;

/// Maximum size of a body that is compressed in one step, bytes. The two buffers of a thread grow to about this size.
pub(super) const WHOLE_BYTES: u64 = 1 << 20;
