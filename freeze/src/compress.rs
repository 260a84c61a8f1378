//! Compressed copies of files, made once so that no request waits for compression.
//!
//! A copy is kept only if it saves enough to be worth a file, a descriptor and a place in the cache. Absent:
//! dictionaries, which clients would need beforehand.
//!
//! Source: RFC 7932 (Brotli), RFC 8878 (Zstandard), RFC 1952 (gzip).

use brotlic::{CompressionMode, Quality, WindowSize};
use libdeflater::{CompressionLvl, Compressor};
use zstd_safe::{CCtx, CParameter};

/// A coding of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// Files end in `.br`.
    Brotli,
    /// Files end in `.zst`.
    Zstd,
    /// Files end in `.gz`.
    Gzip,
}

/// Effort of compression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Effort {
    /// Seconds for most sites.
    Fast,
    /// The best compression for a reasonable time.
    #[default]
    Good,
    /// Whatever the libraries can do.
    Best,
}

impl Effort {
    /// The effort with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "fast" => Self::Fast,
            "good" => Self::Good,
            "best" => Self::Best,
            _ => return None,
        })
    }
}

impl Coding {
    /// All codings, the smallest output first.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// The coding of files with this suffix.
    #[must_use]
    pub fn from_suffix(suffix: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|coding| coding.suffix() == suffix)
    }

    /// Returns the suffix of its files' names, without the dot.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zst",
            Self::Gzip => "gz",
        }
    }

    /// The level of its library.
    fn level(self, effort: Effort) -> i32 {
        match (self, effort) {
            (Self::Brotli, Effort::Fast) => 5,
            (Self::Brotli, Effort::Good) => 9,
            (Self::Brotli, Effort::Best) => 11,
            (Self::Zstd, Effort::Fast) => 6,
            (Self::Zstd, Effort::Good) => 15,
            (Self::Zstd, Effort::Best) => 19,
            (Self::Gzip, Effort::Fast) => 6,
            (Self::Gzip, Effort::Good) => 9,
            (Self::Gzip, Effort::Best) => 12,
        }
    }

    /// The compressed content; `None` if compression does not pay.
    ///
    /// # Errors
    /// Errors of the library.
    pub(super) fn compress(self, bytes: &[u8], effort: Effort) -> Result<Option<Vec<u8>>, String> {
        if bytes.len() < SIZE_MIN {
            return Ok(None);
        }
        let level = self.level(effort);
        let packed = match self {
            Self::Brotli => brotli(bytes, level),
            Self::Zstd => zstd(bytes, level),
            Self::Gzip => gzip(bytes, level),
        };
        let packed = packed.map_err(|why| format!("{}: {why}", self.suffix()))?;
        let saved = bytes.len().saturating_sub(packed.len());
        Ok((saved >= bytes.len() / SHARE_MIN).then_some(packed))
    }
}

/// Returns the settings of compression for the manifest: siblings made with others are made anew.
pub(super) fn settings(codings: &[Coding], effort: Effort) -> String {
    let all = Coding::ALL.iter().filter(|coding| codings.contains(coding));
    let all = all.map(|coding| format!("{}={}", coding.suffix(), coding.level(effort)));
    all.collect::<Vec<_>>().join(" ")
}

fn brotli(bytes: &[u8], level: i32) -> Result<Vec<u8>, String> {
    let quality = u8::try_from(level).ok().and_then(|n| Quality::new(n).ok());
    let quality = quality.unwrap_or_default();
    // A window larger than the content is of no use, and decoders reserve it.
    let bits = usize::BITS - bytes.len().leading_zeros();
    let bits = u8::try_from(bits).unwrap_or(24).clamp(16, 24);
    let window = WindowSize::new(bits).unwrap_or_default();
    // If the library has no bound, twice the size is far above it.
    let bound = brotlic::compress_bound(bytes.len(), quality).unwrap_or(bytes.len() * 2);
    let mut out = vec![0; bound.max(64)];
    let mode = CompressionMode::Text;
    let length = brotlic::compress(bytes, &mut out, quality, window, mode);
    out.truncate(length.map_err(|error| error.to_string())?);
    Ok(out)
}

fn zstd(bytes: &[u8], level: i32) -> Result<Vec<u8>, String> {
    let said = |code: usize| zstd_safe::get_error_name(code).to_owned();
    let mut context = CCtx::create();
    for parameter in [
        CParameter::CompressionLevel(level),
        // Browsers take no larger windows than 8 MiB: RFC 9659.
        CParameter::WindowLog(
            WINDOW_BITS_MAX.min((usize::BITS - bytes.len().leading_zeros()).max(10)),
        ),
    ] {
        context
            .set_parameter(parameter)
            .map_err(|error| format!("{error:?}"))?;
    }
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
    context.compress2(&mut out, bytes).map_err(said)?;
    Ok(out)
}

fn gzip(bytes: &[u8], level: i32) -> Result<Vec<u8>, String> {
    let level = CompressionLvl::new(level).map_err(|_| format!("no level {level}"))?;
    let mut compressor = Compressor::new(level);
    let mut out = vec![0; compressor.gzip_compress_bound(bytes.len())];
    let length = compressor.gzip_compress(bytes, &mut out);
    out.truncate(length.map_err(|error| error.to_string())?);
    Ok(out)
}

/// Smaller files fit into one packet uncompressed.
const SIZE_MIN: usize = 256;

/// A copy must save at least one part in this many.
const SHARE_MIN: usize = 10;

const WINDOW_BITS_MAX: u32 = 23;

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(coding: Coding, bytes: &[u8], length: usize) -> Vec<u8> {
        let mut out = vec![0; length];
        match coding {
            Coding::Brotli => {
                let n = brotlic::decompress(bytes, &mut out).expect("it is Brotli");
                assert_eq!(n, length);
            }
            Coding::Zstd => {
                let n = zstd_safe::decompress(&mut out[..], bytes).expect("it is Zstandard");
                assert_eq!(n, length);
            }
            Coding::Gzip => {
                let n = libdeflater::Decompressor::new().gzip_decompress(bytes, &mut out);
                assert_eq!(n, Ok(length));
            }
        }
        out
    }

    #[test]
    fn what_is_compressed_is_the_same_content() {
        let text = "The same words, over and over again. ".repeat(3000);
        for coding in Coding::ALL {
            for effort in [Effort::Fast, Effort::Good, Effort::Best] {
                let packed = coding
                    .compress(text.as_bytes(), effort)
                    .expect("it is compressed");
                let packed = packed.expect("it pays");
                assert!(packed.len() < 1000, "{coding:?}");
                assert_eq!(unpacked(coding, &packed, text.len()), text.as_bytes());
            }
        }
    }

    #[test]
    fn what_does_not_pay_is_not_compressed() {
        let small = [b'a'; SIZE_MIN - 1];
        // Each byte is another one, so that there is nothing to find.
        let noise: Vec<u8> = (0..=255).collect();
        for coding in Coding::ALL {
            assert_eq!(coding.compress(&small, Effort::Good), Ok(None));
            assert_eq!(coding.compress(&noise, Effort::Good), Ok(None));
            let least = [b'a'; SIZE_MIN];
            assert!(
                coding
                    .compress(&least, Effort::Good)
                    .is_ok_and(|made| made.is_some())
            );
        }
    }
}
