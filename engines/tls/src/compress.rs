//! Compression of certificates at a speed suitable for handshakes.
//!
//! rustls compresses a chain when the first client supports it, and keeps the result. It requests the best quality,
//! which with brotli blocks a serving thread for some 20 ms. It saves only a few hundred bytes compared with the
//! quick level. Absent: compression before the first request, since a server may have thousands of chains.
//!
//! Source: RFC 8879.

use rustls::CertificateCompressionAlgorithm;
use rustls::compress::{
    BROTLI_COMPRESSOR, CertCompressor, CompressionCache, CompressionFailed, CompressionLevel,
    ZLIB_COMPRESSOR,
};

/// A compressor that always uses the level meant for handshakes.
#[derive(Debug)]
struct Quick(&'static dyn CertCompressor);

impl CertCompressor for Quick {
    fn compress(&self, input: Vec<u8>, _: CompressionLevel) -> Result<Vec<u8>, CompressionFailed> {
        self.0.compress(input, CompressionLevel::Interactive)
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        self.0.algorithm()
    }
}

static BROTLI: Quick = Quick(BROTLI_COMPRESSOR);
static ZLIB: Quick = Quick(ZLIB_COMPRESSOR);

/// The compressors, the most wanted first.
pub(crate) fn compressors() -> Vec<&'static dyn CertCompressor> {
    vec![&BROTLI, &ZLIB]
}

/// Capacity of the cache, in compressed chains: each by both compressors, with a stapled response and without.
pub(crate) fn cache(chains: usize) -> CompressionCache {
    CompressionCache::new(chains * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshake_does_not_wait_for_the_best_compression() {
        let text: Vec<u8> = (0..4000_u32).flat_map(|n| (n * n).to_be_bytes()).collect();
        for (quick, inner) in compressors()
            .into_iter()
            .zip([BROTLI_COMPRESSOR, ZLIB_COMPRESSOR])
        {
            assert_eq!(quick.algorithm(), inner.algorithm());
            let compress = |by: &dyn CertCompressor, level| {
                by.compress(text.clone(), level).expect("it is possible")
            };
            let asked_for_the_best = compress(quick, CompressionLevel::Amortized);
            assert!(asked_for_the_best == compress(inner, CompressionLevel::Interactive));
            assert!(asked_for_the_best.len() < text.len());
        }
    }
}
