//! Content codings: bytes of a body under each, and bodies without their coding.
//!
//! Source: RFC 1952 (gzip), RFC 7932 (Brotli), RFC 8878 (Zstandard).

use std::io::Write;

use brotlic::{BrotliEncoderOptions, CompressorWriter, Quality};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::fetch::Decoder;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Brotli,
    Zstd,
    Gzip,
}

impl Coding {
    pub(crate) const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// As in `Content-Encoding`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The level at which a server compresses while a client waits, with a good part of the savings of the highest.
    pub(crate) const fn level(self) -> u8 {
        match self {
            Self::Brotli => 5,
            Self::Zstd => 6,
            Self::Gzip => 6,
        }
    }

    /// Its name with its level.
    pub(crate) fn in_words(self) -> String {
        format!("{} at level {}", self.name(), self.level())
    }

    /// Bytes of a body under this coding at its level.
    pub(crate) fn bytes(self, body: &[u8]) -> Option<u64> {
        let out = match self {
            Self::Brotli => {
                let quality = Quality::new(self.level()).ok()?;
                let encoder = BrotliEncoderOptions::new().quality(quality).build().ok()?;
                let mut writer = CompressorWriter::with_encoder(encoder, Vec::new());
                writer.write_all(body).ok()?;
                writer.into_inner().ok()?
            }
            Self::Zstd => {
                let mut out = Vec::with_capacity(zstd_safe::compress_bound(body.len()));
                zstd_safe::compress(&mut out, body, i32::from(self.level())).ok()?;
                out
            }
            Self::Gzip => {
                let level = Compression::new(u32::from(self.level()));
                let mut encoder = GzEncoder::new(Vec::new(), level);
                encoder.write_all(body).ok()?;
                encoder.finish().ok()?
            }
        };
        Some(out.len() as u64)
    }
}

/// A body without its content coding; `None` for an unknown coding, for damaged bytes and above [`BODY_BYTES_MAX`].
pub(crate) fn decoded(body: &[u8], coding: &str) -> Option<Vec<u8>> {
    let mut decoder = Decoder::new(Some(coding), BODY_BYTES_MAX);
    let content = decoder.push(body);
    decoder.finish().then_some(content)
}

/// Most bytes of a decoded body that is judged.
pub(crate) const BODY_BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Vec<u8> {
        let line = |n: u32| format!("<li class=\"item\">number {n} of many</li>\n");
        (0..2000).map(line).collect::<String>().into_bytes()
    }

    #[test]
    fn codings_make_text_small() {
        let text = text();
        for coding in Coding::ALL {
            let bytes = coding.bytes(&text).expect("it can be compressed");
            assert!(bytes * 5 < text.len() as u64, "{coding:?}: {bytes}");
        }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
        encoder.write_all(bytes).expect("memory takes all");
        encoder.finish().expect("memory takes all")
    }

    fn brotli(bytes: &[u8]) -> Vec<u8> {
        let mut writer = CompressorWriter::new(Vec::new());
        writer.write_all(bytes).expect("memory takes all");
        writer.into_inner().expect("memory takes all")
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
        zstd_safe::compress(&mut out, bytes, 3).expect("there is room");
        out
    }

    #[test]
    fn codings_are_undone_and_what_is_cut_is_refused() {
        let text = text();
        let all: [(&str, Vec<u8>); 3] = [
            ("gzip", gzip(&text)),
            ("br", brotli(&text)),
            ("zstd", zstd(&text)),
        ];
        for (name, bytes) in all {
            assert!(decoded(&bytes, name).as_ref() == Some(&text), "{name}");
            let cut = &bytes[..bytes.len() / 2];
            assert_eq!(decoded(cut, name), None, "{name}");
            assert_eq!(decoded(b"nonsense", name), None, "{name}");
        }
        assert_eq!(decoded(b"a", "identity"), Some(b"a".to_vec()));
        assert_eq!(decoded(b"a", "compress"), None);
    }

    #[test]
    fn body_at_the_limit_is_taken_and_one_byte_more_is_not() {
        let most = vec![0; BODY_BYTES_MAX];
        let more = [&most[..], &[0]].concat();
        for (name, coded) in [
            ("gzip", gzip as fn(&[u8]) -> Vec<u8>),
            ("br", brotli),
            ("zstd", zstd),
        ] {
            assert_eq!(
                decoded(&coded(&most), name).map(|out| out.len()),
                Some(most.len()),
                "{name}"
            );
            assert_eq!(decoded(&coded(&more), name), None, "{name}");
        }
    }
}
